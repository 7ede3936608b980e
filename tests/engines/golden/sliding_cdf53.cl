typedef float number;

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

static inline int down_place(int p, int n, int t) {
    return mirrored(p, n, 2 * n - 1);
}

static inline int along_place(int p, int n, int t) {
    return mirrored(p, n, 2 * n - 1);
}

static inline void load_row_inner(float *v, __global const float *line, int m, const int *at, int rows, int columns, int low_rows, int high_rows, int low_columns, int high_columns) {
    {
        const int c = 0;
        {
            const float2 w = *(__global const float2 *)(line + c + 0);
            v[0] = w.x;
            v[1] = w.y;
        }
        {
            const float2 w = *(__global const float2 *)(line + c + 2);
            v[2] = w.x;
            v[3] = w.y;
        }
    }
}

static inline void load_inner(float *v, __global const float *line, unsigned int line_bytes, int p, int m, const int *at, int rows, int columns, int low_rows, int high_rows, int low_columns, int high_columns) {
    const int q = (unsigned int)(p) < (unsigned int)rows ? p : down_place(p, rows, 0);
    load_row_inner(v, (__global const float *)((__global const char *)line + (unsigned long)(unsigned int)(q) * line_bytes), m, at, rows, columns, low_rows, high_rows, low_columns, high_columns);
}


static inline void load_row(float *v, __global const float *line, int m, const int *at, int rows, int columns, int low_rows, int high_rows, int low_columns, int high_columns) {
    {
        const int c = 2 * m;
        if (c >= 0 && c + 4 <= columns) {
            {
                const float2 w = *(__global const float2 *)(line + c + 0);
                v[0] = w.x;
                v[1] = w.y;
            }
            {
                const float2 w = *(__global const float2 *)(line + c + 2);
                v[2] = w.x;
                v[3] = w.y;
            }
        }
        else {
            {
                const int p = c + 0, q = at[0];
                {
                    v[0] = q < 0 ? 0 : line[q * 1 + 0];
                }
            }
            {
                const int p = c + 1, q = at[1];
                {
                    v[1] = q < 0 ? 0 : line[q * 1 + 0];
                }
            }
            {
                const int p = c + 2, q = at[2];
                {
                    v[2] = q < 0 ? 0 : line[q * 1 + 0];
                }
            }
            {
                const int p = c + 3, q = at[3];
                {
                    v[3] = q < 0 ? 0 : line[q * 1 + 0];
                }
            }
        }
    }
}

static inline void load(float *v, __global const float *line, unsigned int line_bytes, int p, int m, const int *at, int rows, int columns, int low_rows, int high_rows, int low_columns, int high_columns) {
    const int q = (unsigned int)(p) < (unsigned int)rows ? p : down_place(p, rows, 0);
    load_row(v, (__global const float *)((__global const char *)line + (unsigned long)(unsigned int)(q) * line_bytes), m, at, rows, columns, low_rows, high_rows, low_columns, high_columns);
}

static inline void run_along(number *v, int lane, __local number *exchange) {
    {
        number other[3];
        other[0] = v[0];
        other[1] = v[2];
        exchange[0 + lane] = v[0];
        barrier(CLK_LOCAL_MEM_FENCE);
        other[2] = exchange[0 + (lane + 1 < 32 ? lane + 1 : 31)];
        #pragma unroll
        for (int n = 0; n < 2; ++n) {
            #pragma unroll
            for (int c = 0; c < 1; ++c) {
                v[(2 * n + 1) * 1 + c] = v[(2 * n + 1) * 1 + c] + -0.5f * other[(n + 0) * 1 + c] + -0.5f * other[(n + 1) * 1 + c];
            }
        }
    }
    {
        number other[3];
        other[1] = v[1];
        other[2] = v[3];
        exchange[32 + lane] = v[3];
        barrier(CLK_LOCAL_MEM_FENCE);
        other[0] = exchange[32 + (lane >= 1 ? lane - 1 : 0)];
        #pragma unroll
        for (int n = 0; n < 2; ++n) {
            #pragma unroll
            for (int c = 0; c < 1; ++c) {
                v[(2 * n + 0) * 1 + c] = v[(2 * n + 0) * 1 + c] + 0.25f * other[(n + 0) * 1 + c] + 0.25f * other[(n + 1) * 1 + c];
            }
        }
    }
}

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void sliding_forward(
        __global const float *restrict x,
        __global float *restrict aa,
        __global float *restrict ad,
        __global float *restrict da,
        __global float *restrict dd,
        const long x_start,
        const long x_plane,
        const int x_row,
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
    x += x_start + plane * x_plane;
    aa += aa_start + plane * aa_plane;
    ad += ad_start + plane * ad_plane;
    da += da_start + plane * da_plane;
    dd += dd_start + plane * dd_plane;
    const unsigned int x_bytes = (unsigned int)x_row * 4;
    const unsigned int aa_bytes = (unsigned int)aa_row * 4;
    const unsigned int ad_bytes = (unsigned int)ad_row * 4;
    const unsigned int da_bytes = (unsigned int)da_row * 4;
    const unsigned int dd_bytes = (unsigned int)dd_row * 4;
    const int m = -1 + (across * 30 + lane - 1) * 2;
    const int useful = lane >= 1 && lane < 31;
    const int begin = -1 + strip_number * own_strip;
    const int end = min(begin + own_strip, -1 + row_pairs);
    if (at_end) {
        int at[4];
        {
            const int p = 2 * m + 0;
            at[0] = p >= 0 && p < columns ? p : along_place(p, columns, 0);
        }
        {
            const int p = 2 * m + 1;
            at[1] = p >= 0 && p < columns ? p : along_place(p, columns, 0);
        }
        {
            const int p = 2 * m + 2;
            at[2] = p >= 0 && p < columns ? p : along_place(p, columns, 0);
        }
        {
            const int p = 2 * m + 3;
            at[3] = p >= 0 && p < columns ? p : along_place(p, columns, 0);
        }
        number in0_1[4];
        number in1_1[4];
        number step0_1[4];
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            in0_1[j] = 0;
        }
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            in1_1[j] = 0;
        }
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            step0_1[j] = 0;
        }
        float next0_0[4], next0_1[4];
        load(next0_0, x, x_bytes, 2 * (begin - 1 + 0) + 0, m, at, rows, columns, low_rows, high_rows, low_columns, high_columns);
        load(next0_1, x, x_bytes, 2 * (begin - 1 + 0) + 1, m, at, rows, columns, low_rows, high_rows, low_columns, high_columns);
        for (int i = begin - 1; i < end + 1; ++i) {
            number in0_0[4], in1_0[4];
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                in0_0[j] = next0_0[j];
                in1_0[j] = next0_1[j];
            }
            const int ahead = min(i + 1, end + 0);
            load(next0_0, x, x_bytes, 2 * (ahead) + 0, m, at, rows, columns, low_rows, high_rows, low_columns, high_columns);
            load(next0_1, x, x_bytes, 2 * (ahead) + 1, m, at, rows, columns, low_rows, high_rows, low_columns, high_columns);
            number step0_0[4];
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                step0_0[j] = in1_1[j] + -0.5f * in0_1[j] + -0.5f * in0_0[j];
            }
            number step1_0[4];
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                step1_0[j] = in0_1[j] + 0.25f * step0_1[j] + 0.25f * step0_0[j];
            }
            number done0[4], done1[4];
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                done0[j] = step1_0[j]; done1[j] = step0_0[j];
            }
            {
                const int n = i - 1;
                run_along(done0, lane, exchange + 0);
                run_along(done1, lane, exchange + 64);
                if (useful && i >= begin + 1) {
                    {
                        const int r = n - -1;
                        if ((unsigned int)(r) < (unsigned int)low_rows) {
                            {
                                const int c = m + 1;
                                __global float *line = (__global float *)((__global char *)aa + (unsigned long)(unsigned int)(r) * aa_bytes) + c * 1;
                                if (c >= 0 && c + 2 <= low_columns) {
                                    {
                                        float2 w;
                                        w.x = done0[0] * 2.0f;
                                        w.y = done0[2] * 2.0f;
                                        *(__global float2 *)(line + 0) = w;
                                    }
                                }
                                else if (c + 2 > 0 && c < low_columns) {
                                    if (c + 0 >= 0 && c + 0 < low_columns) {
                                        line[0] = done0[0] * 2.0f;
                                    }
                                    if (c + 1 >= 0 && c + 1 < low_columns) {
                                        line[1] = done0[2] * 2.0f;
                                    }
                                }
                            }
                            {
                                const int c = m + 1;
                                __global float *line = (__global float *)((__global char *)ad + (unsigned long)(unsigned int)(r) * ad_bytes) + c * 1;
                                if (c >= 0 && c + 2 <= high_columns) {
                                    {
                                        float2 w;
                                        w.x = done0[1] * 1.0f;
                                        w.y = done0[3] * 1.0f;
                                        *(__global float2 *)(line + 0) = w;
                                    }
                                }
                                else if (c + 2 > 0 && c < high_columns) {
                                    if (c + 0 >= 0 && c + 0 < high_columns) {
                                        line[0] = done0[1] * 1.0f;
                                    }
                                    if (c + 1 >= 0 && c + 1 < high_columns) {
                                        line[1] = done0[3] * 1.0f;
                                    }
                                }
                            }
                        }
                    }
                    {
                        const int r = n - -1;
                        if ((unsigned int)(r) < (unsigned int)high_rows) {
                            {
                                const int c = m + 1;
                                __global float *line = (__global float *)((__global char *)da + (unsigned long)(unsigned int)(r) * da_bytes) + c * 1;
                                if (c >= 0 && c + 2 <= low_columns) {
                                    {
                                        float2 w;
                                        w.x = done1[0] * 1.0f;
                                        w.y = done1[2] * 1.0f;
                                        *(__global float2 *)(line + 0) = w;
                                    }
                                }
                                else if (c + 2 > 0 && c < low_columns) {
                                    if (c + 0 >= 0 && c + 0 < low_columns) {
                                        line[0] = done1[0] * 1.0f;
                                    }
                                    if (c + 1 >= 0 && c + 1 < low_columns) {
                                        line[1] = done1[2] * 1.0f;
                                    }
                                }
                            }
                            {
                                const int c = m + 1;
                                __global float *line = (__global float *)((__global char *)dd + (unsigned long)(unsigned int)(r) * dd_bytes) + c * 1;
                                if (c >= 0 && c + 2 <= high_columns) {
                                    {
                                        float2 w;
                                        w.x = done1[1] * 0.5f;
                                        w.y = done1[3] * 0.5f;
                                        *(__global float2 *)(line + 0) = w;
                                    }
                                }
                                else if (c + 2 > 0 && c < high_columns) {
                                    if (c + 0 >= 0 && c + 0 < high_columns) {
                                        line[0] = done1[1] * 0.5f;
                                    }
                                    if (c + 1 >= 0 && c + 1 < high_columns) {
                                        line[1] = done1[3] * 0.5f;
                                    }
                                }
                            }
                        }
                    }
                }
            }
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                in0_1[j] = in0_0[j];
                in1_1[j] = in1_0[j];
                step0_1[j] = step0_0[j];
            }
        }
    }
    else {
        const int *at = 0;
        __global const float *x_own = x + (2 * m) * 1;
        __global float *aa_own = aa + (m + 1) * 1;
        __global float *da_own = da + (m + 1) * 1;
        __global float *ad_own = ad + (m + 1) * 1;
        __global float *dd_own = dd + (m + 1) * 1;
        number in0_1[4];
        number in1_1[4];
        number step0_1[4];
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            in0_1[j] = 0;
        }
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            in1_1[j] = 0;
        }
        #pragma unroll
        for (int j = 0; j < 4; ++j) {
            step0_1[j] = 0;
        }
        float next0_0[4], next0_1[4];
        load_inner(next0_0, x_own, x_bytes, 2 * (begin - 1 + 0) + 0, m, at, rows, columns, low_rows, high_rows, low_columns, high_columns);
        load_inner(next0_1, x_own, x_bytes, 2 * (begin - 1 + 0) + 1, m, at, rows, columns, low_rows, high_rows, low_columns, high_columns);
        for (int i = begin - 1; i < end + 1; ++i) {
            number in0_0[4], in1_0[4];
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                in0_0[j] = next0_0[j];
                in1_0[j] = next0_1[j];
            }
            const int ahead = min(i + 1, end + 0);
            load_inner(next0_0, x_own, x_bytes, 2 * (ahead) + 0, m, at, rows, columns, low_rows, high_rows, low_columns, high_columns);
            load_inner(next0_1, x_own, x_bytes, 2 * (ahead) + 1, m, at, rows, columns, low_rows, high_rows, low_columns, high_columns);
            number step0_0[4];
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                step0_0[j] = in1_1[j] + -0.5f * in0_1[j] + -0.5f * in0_0[j];
            }
            number step1_0[4];
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                step1_0[j] = in0_1[j] + 0.25f * step0_1[j] + 0.25f * step0_0[j];
            }
            number done0[4], done1[4];
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                done0[j] = step1_0[j]; done1[j] = step0_0[j];
            }
            {
                const int n = i - 1;
                run_along(done0, lane, exchange + 0);
                run_along(done1, lane, exchange + 64);
                if (useful && i >= begin + 1) {
                    {
                        const int r = n - -1;
                        if ((unsigned int)(r) < (unsigned int)low_rows) {
                            {
                                __global float *line = (__global float *)((__global char *)aa_own + (unsigned long)(unsigned int)(r) * aa_bytes);
                                {
                                    {
                                        float2 w;
                                        w.x = done0[0] * 2.0f;
                                        w.y = done0[2] * 2.0f;
                                        *(__global float2 *)(line + 0) = w;
                                    }
                                }
                            }
                            {
                                __global float *line = (__global float *)((__global char *)ad_own + (unsigned long)(unsigned int)(r) * ad_bytes);
                                {
                                    {
                                        float2 w;
                                        w.x = done0[1] * 1.0f;
                                        w.y = done0[3] * 1.0f;
                                        *(__global float2 *)(line + 0) = w;
                                    }
                                }
                            }
                        }
                    }
                    {
                        const int r = n - -1;
                        if ((unsigned int)(r) < (unsigned int)high_rows) {
                            {
                                __global float *line = (__global float *)((__global char *)da_own + (unsigned long)(unsigned int)(r) * da_bytes);
                                {
                                    {
                                        float2 w;
                                        w.x = done1[0] * 1.0f;
                                        w.y = done1[2] * 1.0f;
                                        *(__global float2 *)(line + 0) = w;
                                    }
                                }
                            }
                            {
                                __global float *line = (__global float *)((__global char *)dd_own + (unsigned long)(unsigned int)(r) * dd_bytes);
                                {
                                    {
                                        float2 w;
                                        w.x = done1[1] * 0.5f;
                                        w.y = done1[3] * 0.5f;
                                        *(__global float2 *)(line + 0) = w;
                                    }
                                }
                            }
                        }
                    }
                }
            }
            #pragma unroll
            for (int j = 0; j < 4; ++j) {
                in0_1[j] = in0_0[j];
                in1_1[j] = in1_0[j];
                step0_1[j] = step0_0[j];
            }
        }
    }
}
