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
static inline int border_a_place(int p, int n, int t) {
    return p < 0 || p >= n ? -1 : p;
}
static inline number take_a(__global const float *line, int step, int p, int n, int extent) {
    if (p >= 0 && p < n) return line[(long)p * step];
    const int q = border_a_place(p, extent, 0);
    return q < 0 ? 0 : line[(long)q * step];
}
static inline int border_d_place(int p, int n, int t) {
    return p < 0 || p >= n ? -1 : p;
}
static inline number take_d(__global const float *line, int step, int p, int n, int extent) {
    if (p >= 0 && p < n) return line[(long)p * step];
    const int q = border_d_place(p, extent, 0);
    return q < 0 ? 0 : line[(long)q * step];
}
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void rowcolumn_lifting_back(
        __global const float *restrict a,
        __global const float *restrict d,
        __global float *restrict x,
        const long a_start,
        const long a_plane,
        const int a_row,
        const long d_start,
        const long d_plane,
        const int d_row,
        const long x_start,
        const long x_plane,
        const int x_row,
        const int rows,
        const int low_rows,
        const int high_rows,
        const int row_pairs,
        const int columns,
        const int pieces,
        const int blocks) {
    __local number w[1032];  // places down, numbers side by side
    const int item = (int)get_local_id(0);
    const int block = (int)get_group_id(0) % blocks, piece = (int)get_group_id(0) / blocks % pieces;
    const long plane = (int)get_group_id(0) / blocks / pieces;
    const int first = 0 + piece * 512, left = block * 1;
    a += a_start + plane * a_plane;
    d += d_start + plane * d_plane;
    x += x_start + plane * x_plane;
    for (int e = item; e < 1032; e += 256) {
        const int place = e / 1, column = left + e % 1;
        const int m = first - 2 + place / 2;
        number value = 0;
        if (column < columns) {
            value = place % 2 == 0 ? take_a(a + column, a_row, m + 2, low_rows, low_rows) : take_d(d + column, d_row, m + 2, high_rows, high_rows);
        }
        w[e] = value;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = item + 1; e < 516; e += 256) {
        const int n = e / 1, c = e % 1;
        w[(2 * n + 0) * 1 + c] = w[(2 * n + 0) * 1 + c] + -0.586134342f * w[(2 * (n + -1) + 1) * 1 + c] + -0.586134342f * w[(2 * (n + 0) + 1) * 1 + c];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = item + 0; e < 515; e += 256) {
        const int n = e / 1, c = e % 1;
        w[(2 * n + 1) * 1 + c] = w[(2 * n + 1) * 1 + c] + -0.668067171f * w[(2 * (n + 0) + 0) * 1 + c] + -0.668067171f * w[(2 * (n + 1) + 0) * 1 + c];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = item + 1; e < 516; e += 256) {
        const int n = e / 1, c = e % 1;
        w[(2 * n + 0) * 1 + c] = w[(2 * n + 0) * 1 + c] + 0.0700180094f * w[(2 * (n + -1) + 1) * 1 + c] + 0.0700180094f * w[(2 * (n + 0) + 1) * 1 + c];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = item + 0; e < 515; e += 256) {
        const int n = e / 1, c = e % 1;
        w[(2 * n + 1) * 1 + c] = w[(2 * n + 1) * 1 + c] + 1.20017102f * w[(2 * (n + 0) + 0) * 1 + c] + 1.20017102f * w[(2 * (n + 1) + 0) * 1 + c];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = item; e < 512; e += 256) {
        const int n = e / 1 + 2, c = e % 1, column = left + c;
        const int m = first + e / 1;
        if (column >= columns) continue;
        if (2 * m + 0 >= 0 && 2 * m + 0 < rows) {
            x[(long)(2 * m + 0) * x_row + column] = w[(2 * n + 0) * 1 + c] * 0.869864452f;
        }
        if (2 * m + 1 >= 0 && 2 * m + 1 < rows) {
            x[(long)(2 * m + 1) * x_row + column] = w[(2 * n + 1) * 1 + c] * 1.1496044f;
        }
    }
}


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
static inline int border_a_place(int p, int n, int t) {
    return p < 0 || p >= n ? -1 : p;
}
static inline number take_a(__global const float *line, int step, int p, int n, int extent) {
    if (p >= 0 && p < n) return line[(long)p * step];
    const int q = border_a_place(p, extent, 0);
    return q < 0 ? 0 : line[(long)q * step];
}
static inline int border_d_place(int p, int n, int t) {
    return p < 0 || p >= n ? -1 : p;
}
static inline number take_d(__global const float *line, int step, int p, int n, int extent) {
    if (p >= 0 && p < n) return line[(long)p * step];
    const int q = border_d_place(p, extent, 0);
    return q < 0 ? 0 : line[(long)q * step];
}
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void rowcolumn_lifting_back(
        __global const float *restrict a,
        __global const float *restrict d,
        __global float *restrict x,
        const long a_start,
        const long a_plane,
        const int a_row,
        const long d_start,
        const long d_plane,
        const int d_row,
        const long x_start,
        const long x_plane,
        const int x_row,
        const int rows,
        const int low_rows,
        const int high_rows,
        const int row_pairs,
        const int columns,
        const int pieces,
        const int blocks) {
    __local number w[1280];  // places down, numbers side by side
    const int item = (int)get_local_id(0);
    const int block = (int)get_group_id(0) % blocks, piece = (int)get_group_id(0) / blocks % pieces;
    const long plane = (int)get_group_id(0) / blocks / pieces;
    const int first = 0 + piece * 16, left = block * 32;
    a += a_start + plane * a_plane;
    d += d_start + plane * d_plane;
    x += x_start + plane * x_plane;
    for (int e = item; e < 1280; e += 256) {
        const int place = e / 32, column = left + e % 32;
        const int m = first - 2 + place / 2;
        number value = 0;
        if (column < columns) {
            value = place % 2 == 0 ? take_a(a + column, a_row, m + 2, low_rows, low_rows) : take_d(d + column, d_row, m + 2, high_rows, high_rows);
        }
        w[e] = value;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = item + 32; e < 640; e += 256) {
        const int n = e / 32, c = e % 32;
        w[(2 * n + 0) * 32 + c] = w[(2 * n + 0) * 32 + c] + -0.586134342f * w[(2 * (n + -1) + 1) * 32 + c] + -0.586134342f * w[(2 * (n + 0) + 1) * 32 + c];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = item + 0; e < 608; e += 256) {
        const int n = e / 32, c = e % 32;
        w[(2 * n + 1) * 32 + c] = w[(2 * n + 1) * 32 + c] + -0.668067171f * w[(2 * (n + 0) + 0) * 32 + c] + -0.668067171f * w[(2 * (n + 1) + 0) * 32 + c];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = item + 32; e < 640; e += 256) {
        const int n = e / 32, c = e % 32;
        w[(2 * n + 0) * 32 + c] = w[(2 * n + 0) * 32 + c] + 0.0700180094f * w[(2 * (n + -1) + 1) * 32 + c] + 0.0700180094f * w[(2 * (n + 0) + 1) * 32 + c];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = item + 0; e < 608; e += 256) {
        const int n = e / 32, c = e % 32;
        w[(2 * n + 1) * 32 + c] = w[(2 * n + 1) * 32 + c] + 1.20017102f * w[(2 * (n + 0) + 0) * 32 + c] + 1.20017102f * w[(2 * (n + 1) + 0) * 32 + c];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = item; e < 512; e += 256) {
        const int n = e / 32 + 2, c = e % 32, column = left + c;
        const int m = first + e / 32;
        if (column >= columns) continue;
        if (2 * m + 0 >= 0 && 2 * m + 0 < rows) {
            x[(long)(2 * m + 0) * x_row + column] = w[(2 * n + 0) * 32 + c] * 0.869864452f;
        }
        if (2 * m + 1 >= 0 && 2 * m + 1 < rows) {
            x[(long)(2 * m + 1) * x_row + column] = w[(2 * n + 1) * 32 + c] * 1.1496044f;
        }
    }
}
