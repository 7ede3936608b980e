typedef int number;

static inline int fitting(int value) {
    return (int)min(max(value, (int)-32767 - 1), (int)32767);
}
static inline int wrapped(int p, int n) {
    p += p < 0 ? n : 0;
    p -= p >= n ? n : 0;
    if (p < 0 || p >= n) p = (p % n + n) % n;
    return p;
}
static inline int mirrored(int p, int n, int last) {
    p = p < 0 ? -(last & 1) - p : p;
    p = p >= n ? last - p : p;
    while (p < 0 || p >= n) p = p < 0 ? -(last & 1) - p : last - p;
    return p;
}

static inline int down_low_place(int p, int n, int t) {
    return n == 1 ? 0 : mirrored(2 * p, n, 2 * n - 2) / 2;
}

static inline int down_high_place(int p, int n, int t) {
    return n == 1 ? -1 : mirrored(2 * p + 1, n, 2 * n - 2) / 2;
}

static inline int along_low_place(int p, int n, int t) {
    return n == 1 ? 0 : mirrored(2 * p, n, 2 * n - 2) / 2;
}

static inline int along_high_place(int p, int n, int t) {
    return n == 1 ? -1 : mirrored(2 * p + 1, n, 2 * n - 2) / 2;
}

static inline void load_row_inner(short *v, __global const short *low, __global const short *high, int m, const int *at, int rows, int columns, int low_rows, int high_rows, int low_columns, int high_columns) {
    {
        const int c = 0;
        {
            const short2 w = *(__global const short2 *)(low + c + 0);
            v[0] = w.x;
            v[2] = w.y;
        }
    }
    {
        const int c = 0;
        {
            const short2 w = *(__global const short2 *)(high + c + 0);
            v[1] = w.x;
            v[3] = w.y;
        }
    }
}

static inline void load_low_inner(short *v, __global const short *low, unsigned int low_bytes, __global const short *high, unsigned int high_bytes, int p, int m, const int *at, int rows, int columns, int low_rows, int high_rows, int low_columns, int high_columns) {
    const int q = (unsigned int)(p) < (unsigned int)low_rows ? p : down_low_place(p, rows, 0);
    load_row_inner(v, (__global const short *)((__global const char *)low + (unsigned long)(unsigned int)(q) * low_bytes), (__global const short *)((__global const char *)high + (unsigned long)(unsigned int)(q) * high_bytes), m, at, rows, columns, low_rows, high_rows, low_columns, high_columns);
}

static inline void load_high_inner(short *v, __global const short *low, unsigned int low_bytes, __global const short *high, unsigned int high_bytes, int p, int m, const int *at, int rows, int columns, int low_rows, int high_rows, int low_columns, int high_columns) {
    const int q = (unsigned int)(p) < (unsigned int)high_rows ? p : down_high_place(p, rows, 0);
    if (q >= 0) {
        load_row_inner(v, (__global const short *)((__global const char *)low + (unsigned long)(unsigned int)(q) * low_bytes), (__global const short *)((__global const char *)high + (unsigned long)(unsigned int)(q) * high_bytes), m, at, rows, columns, low_rows, high_rows, low_columns, high_columns);
    }
    else {
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            v[j] = 0;
        }
    }
}


static inline void load_row(short *v, __global const short *low, __global const short *high, int m, const int *at, int rows, int columns, int low_rows, int high_rows, int low_columns, int high_columns) {
    {
        const int c = m;
        if (c >= 0 && c + 2 <= low_columns) {
            {
                const short2 w = *(__global const short2 *)(low + c + 0);
                v[0] = w.x;
                v[2] = w.y;
            }
        }
        else {
            {
                const int p = c + 0, q = at[0];
                {
                    v[0] = q < 0 ? 0 : low[q * 1 + 0];
                }
            }
            {
                const int p = c + 1, q = at[2];
                {
                    v[2] = q < 0 ? 0 : low[q * 1 + 0];
                }
            }
        }
    }
    {
        const int c = m;
        if (c >= 0 && c + 2 <= high_columns) {
            {
                const short2 w = *(__global const short2 *)(high + c + 0);
                v[1] = w.x;
                v[3] = w.y;
            }
        }
        else {
            {
                const int p = c + 0, q = at[1];
                {
                    v[1] = q < 0 ? 0 : high[q * 1 + 0];
                }
            }
            {
                const int p = c + 1, q = at[3];
                {
                    v[3] = q < 0 ? 0 : high[q * 1 + 0];
                }
            }
        }
    }
}

static inline void load_low(short *v, __global const short *low, unsigned int low_bytes, __global const short *high, unsigned int high_bytes, int p, int m, const int *at, int rows, int columns, int low_rows, int high_rows, int low_columns, int high_columns) {
    const int q = (unsigned int)(p) < (unsigned int)low_rows ? p : down_low_place(p, rows, 0);
    load_row(v, (__global const short *)((__global const char *)low + (unsigned long)(unsigned int)(q) * low_bytes), (__global const short *)((__global const char *)high + (unsigned long)(unsigned int)(q) * high_bytes), m, at, rows, columns, low_rows, high_rows, low_columns, high_columns);
}

static inline void load_high(short *v, __global const short *low, unsigned int low_bytes, __global const short *high, unsigned int high_bytes, int p, int m, const int *at, int rows, int columns, int low_rows, int high_rows, int low_columns, int high_columns) {
    const int q = (unsigned int)(p) < (unsigned int)high_rows ? p : down_high_place(p, rows, 0);
    if (q >= 0) {
        load_row(v, (__global const short *)((__global const char *)low + (unsigned long)(unsigned int)(q) * low_bytes), (__global const short *)((__global const char *)high + (unsigned long)(unsigned int)(q) * high_bytes), m, at, rows, columns, low_rows, high_rows, low_columns, high_columns);
    }
    else {
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            v[j] = 0;
        }
    }
}

static inline void run_along(number *v, int lane, __local number *exchange) {
    {
        number other[3];
        other[1] = v[1];
        other[2] = v[3];
        exchange[0 + lane] = v[3];
        barrier(CLK_LOCAL_MEM_FENCE);
        other[0] = exchange[0 + (lane >= 1 ? lane - 1 : 0)];
        #pragma unroll
        for (int n = 0; n < 2; ++n) {
            #pragma unroll
            for (int c = 0; c < 1; ++c) {
                v[(2 * n + 0) * 1 + c] = fitting(v[(2 * n + 0) * 1 + c] + ((-1 * other[(n + 0) * 1 + c] + -1 * other[(n + 1) * 1 + c] + 1) >> 2));
            }
        }
    }
    {
        number other[3];
        other[0] = v[0];
        other[1] = v[2];
        exchange[32 + lane] = v[0];
        barrier(CLK_LOCAL_MEM_FENCE);
        other[2] = exchange[32 + (lane + 1 < 32 ? lane + 1 : 31)];
        #pragma unroll
        for (int n = 0; n < 2; ++n) {
            #pragma unroll
            for (int c = 0; c < 1; ++c) {
                v[(2 * n + 1) * 1 + c] = fitting(v[(2 * n + 1) * 1 + c] + ((1 * other[(n + 0) * 1 + c] + 1 * other[(n + 1) * 1 + c] + 0) >> 1));
            }
        }
    }
}

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void sliding_back(
        __global const short *restrict aa,
        __global const short *restrict ad,
        __global const short *restrict da,
        __global const short *restrict dd,
        __global short *restrict x,
        const long aa_start,
        const long aa_plane,
        const int aa_row,
        const long ad_start,
        const long ad_plane,
        const int ad_row,
        const long da_start,
        const long da_plane,
        const int da_row,
        const long dd_start,
        const long dd_plane,
        const int dd_row,
        const long x_start,
        const long x_plane,
        const int x_row,
        const int rows,
        const int columns,
        const int low_rows,
        const int high_rows,
        const int low_columns,
        const int high_columns,
        const int row_pairs,
        const int planes,
        const int total,
        const int ends,
        const int ends_left,
        const int end_groups,
        const int end_strip,
        const int end_strips,
        const int strip,
        const int strips,
        const int blocks) {
    __local number exchange[128];
    const int lane = (int)get_local_id(0) % 32, warp = (int)get_local_id(0) / 32, group = (int)get_group_id(0);
    int across, strip_number, own_strip; long plane;
    const int at_end = group < end_groups;
    if (at_end) {
        const int turn = group * 1 + warp, which = turn % ends;
        across = which < ends_left ? which : total - ends + which;
        strip_number = turn / ends % end_strips;
        plane = turn / ends / end_strips;
        own_strip = end_strip;
        if (plane >= planes) return;
    }
    else {
        across = ends_left + (group - end_groups) % blocks * 1 + warp;
        strip_number = (group - end_groups) / blocks % strips;
        plane = (group - end_groups) / blocks / strips;
        own_strip = strip;
        if (across >= total - ends + ends_left) return;
    }
    aa += aa_start + plane * aa_plane;
    ad += ad_start + plane * ad_plane;
    da += da_start + plane * da_plane;
    dd += dd_start + plane * dd_plane;
    x += x_start + plane * x_plane;
    const unsigned int aa_bytes = (unsigned int)aa_row * 2;
    const unsigned int ad_bytes = (unsigned int)ad_row * 2;
    const unsigned int da_bytes = (unsigned int)da_row * 2;
    const unsigned int dd_bytes = (unsigned int)dd_row * 2;
    const unsigned int x_bytes = (unsigned int)x_row * 2;
    const int m = 0 + (across * 30 + lane - 1) * 2;
    const int useful = lane >= 1 && lane < 31;
    const int begin = 0 + strip_number * own_strip;
    const int end = min(begin + own_strip, 0 + row_pairs);
    if (at_end) {
        int at[4];
        {
            const int p = m + 0;
            at[0] = p >= 0 && p < low_columns ? p : along_low_place(p, columns, 0);
        }
        {
            const int p = m + 1;
            at[2] = p >= 0 && p < low_columns ? p : along_low_place(p, columns, 0);
        }
        {
            const int p = m + 0;
            at[1] = p >= 0 && p < high_columns ? p : along_high_place(p, columns, 0);
        }
        {
            const int p = m + 1;
            at[3] = p >= 0 && p < high_columns ? p : along_high_place(p, columns, 0);
        }
        number in1_1[4];
        number step0_1[4];
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            in1_1[j] = 0;
        }
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            step0_1[j] = 0;
        }
        for (int i = begin - 1; i < end + 1; ++i) {
            number in0_0[4], in1_0[4];
            short next0_0[4], next0_1[4];
            load_low(next0_0, aa, aa_bytes, ad, ad_bytes, (i) + 0, m, at, rows, columns, low_rows, high_rows, low_columns, high_columns);
            load_high(next0_1, da, da_bytes, dd, dd_bytes, (i) + 0, m, at, rows, columns, low_rows, high_rows, low_columns, high_columns);
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                in0_0[j] = (number)next0_0[j];
                in1_0[j] = (number)next0_1[j];
            }
            run_along(in0_0, lane, exchange + 0);
            run_along(in1_0, lane, exchange + 64);
            number step0_0[4];
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                step0_0[j] = fitting(in0_0[j] + ((-1 * in1_1[j] + -1 * in1_0[j] + 1) >> 2));
            }
            number step1_0[4];
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                step1_0[j] = fitting(in1_1[j] + ((1 * step0_1[j] + 1 * step0_0[j] + 0) >> 1));
            }
            number done0[4], done1[4];
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                done0[j] = step0_1[j]; done1[j] = step1_0[j];
            }
            {
                const int n = i - 1;
                if (useful && i >= begin + 1) {
                    {
                        const int r = 2 * n + 0;
                        if ((unsigned int)(r) < (unsigned int)rows) {
                            {
                                const int c = 2 * m;
                                __global short *line = (__global short *)((__global char *)x + (unsigned long)(unsigned int)(r) * x_bytes) + c * 1;
                                if (c >= 0 && c + 4 <= columns) {
                                    {
                                        short4 w;
                                        w.x = (short)(done0[0]);
                                        w.y = (short)(done0[1]);
                                        w.z = (short)(done0[2]);
                                        w.w = (short)(done0[3]);
                                        *(__global short4 *)(line + 0) = w;
                                    }
                                }
                                else if (c + 4 > 0 && c < columns) {
                                    if (c + 0 >= 0 && c + 0 < columns) {
                                        line[0] = (short)(done0[0]);
                                    }
                                    if (c + 1 >= 0 && c + 1 < columns) {
                                        line[1] = (short)(done0[1]);
                                    }
                                    if (c + 2 >= 0 && c + 2 < columns) {
                                        line[2] = (short)(done0[2]);
                                    }
                                    if (c + 3 >= 0 && c + 3 < columns) {
                                        line[3] = (short)(done0[3]);
                                    }
                                }
                            }
                        }
                    }
                    {
                        const int r = 2 * n + 1;
                        if ((unsigned int)(r) < (unsigned int)rows) {
                            {
                                const int c = 2 * m;
                                __global short *line = (__global short *)((__global char *)x + (unsigned long)(unsigned int)(r) * x_bytes) + c * 1;
                                if (c >= 0 && c + 4 <= columns) {
                                    {
                                        short4 w;
                                        w.x = (short)(done1[0]);
                                        w.y = (short)(done1[1]);
                                        w.z = (short)(done1[2]);
                                        w.w = (short)(done1[3]);
                                        *(__global short4 *)(line + 0) = w;
                                    }
                                }
                                else if (c + 4 > 0 && c < columns) {
                                    if (c + 0 >= 0 && c + 0 < columns) {
                                        line[0] = (short)(done1[0]);
                                    }
                                    if (c + 1 >= 0 && c + 1 < columns) {
                                        line[1] = (short)(done1[1]);
                                    }
                                    if (c + 2 >= 0 && c + 2 < columns) {
                                        line[2] = (short)(done1[2]);
                                    }
                                    if (c + 3 >= 0 && c + 3 < columns) {
                                        line[3] = (short)(done1[3]);
                                    }
                                }
                            }
                        }
                    }
                }
            }
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                in1_1[j] = in1_0[j];
                step0_1[j] = step0_0[j];
            }
        }
    }
    else {
        const int *at = 0;
        __global const short *aa_own = aa + (m) * 1;
        __global const short *da_own = da + (m) * 1;
        __global const short *ad_own = ad + (m) * 1;
        __global const short *dd_own = dd + (m) * 1;
        __global short *x_own = x + (2 * m) * 1;
        number in1_1[4];
        number step0_1[4];
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            in1_1[j] = 0;
        }
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            step0_1[j] = 0;
        }
        for (int i = begin - 1; i < end + 1; ++i) {
            number in0_0[4], in1_0[4];
            short next0_0[4], next0_1[4];
            load_low_inner(next0_0, aa_own, aa_bytes, ad_own, ad_bytes, (i) + 0, m, at, rows, columns, low_rows, high_rows, low_columns, high_columns);
            load_high_inner(next0_1, da_own, da_bytes, dd_own, dd_bytes, (i) + 0, m, at, rows, columns, low_rows, high_rows, low_columns, high_columns);
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                in0_0[j] = (number)next0_0[j];
                in1_0[j] = (number)next0_1[j];
            }
            run_along(in0_0, lane, exchange + 0);
            run_along(in1_0, lane, exchange + 64);
            number step0_0[4];
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                step0_0[j] = fitting(in0_0[j] + ((-1 * in1_1[j] + -1 * in1_0[j] + 1) >> 2));
            }
            number step1_0[4];
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                step1_0[j] = fitting(in1_1[j] + ((1 * step0_1[j] + 1 * step0_0[j] + 0) >> 1));
            }
            number done0[4], done1[4];
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                done0[j] = step0_1[j]; done1[j] = step1_0[j];
            }
            {
                const int n = i - 1;
                if (useful && i >= begin + 1) {
                    {
                        const int r = 2 * n + 0;
                        if ((unsigned int)(r) < (unsigned int)rows) {
                            {
                                __global short *line = (__global short *)((__global char *)x_own + (unsigned long)(unsigned int)(r) * x_bytes);
                                {
                                    {
                                        short4 w;
                                        w.x = (short)(done0[0]);
                                        w.y = (short)(done0[1]);
                                        w.z = (short)(done0[2]);
                                        w.w = (short)(done0[3]);
                                        *(__global short4 *)(line + 0) = w;
                                    }
                                }
                            }
                        }
                    }
                    {
                        const int r = 2 * n + 1;
                        if ((unsigned int)(r) < (unsigned int)rows) {
                            {
                                __global short *line = (__global short *)((__global char *)x_own + (unsigned long)(unsigned int)(r) * x_bytes);
                                {
                                    {
                                        short4 w;
                                        w.x = (short)(done1[0]);
                                        w.y = (short)(done1[1]);
                                        w.z = (short)(done1[2]);
                                        w.w = (short)(done1[3]);
                                        *(__global short4 *)(line + 0) = w;
                                    }
                                }
                            }
                        }
                    }
                }
            }
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                in1_1[j] = in1_0[j];
                step0_1[j] = step0_0[j];
            }
        }
    }
}
