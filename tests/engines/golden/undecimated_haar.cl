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
static inline int border_x_place(int p, int n, int t) {
    return mirrored(p, n, 2 * n - 1);
}
static inline number take_x(__global const float *line, int step, int p, int n, int extent) {
    if (p >= 0 && p < n) return line[(long)p * step];
    const int q = border_x_place(p, extent, 0);
    return q < 0 ? 0 : line[(long)q * step];
}
__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void undecimated_forward(
        __global const float *restrict x,
        __global float *restrict a,
        __global float *restrict d,
        const long x_start,
        const long x_plane,
        const int x_row,
        const long a_start,
        const long a_plane,
        const int a_row,
        const long d_start,
        const long d_plane,
        const int d_row,
        const int rows,
        const int count,
        const int dilation,
        const int columns,
        const int shift,
        const int across,
        const int downwards) {
    const int item = (int)get_local_id(0), group = (int)get_group_id(0), high = 128 >> shift;
    const int column = (group % across << shift) + (item & (1 << shift) - 1);
    const int plane = group / across / downwards;
    const int first = group / across % downwards * (high * 4) + (item >> shift);
    const int last = first + high * 3;
    x += x_start + plane * x_plane;
    a += a_start + plane * a_plane;
    d += d_start + plane * d_plane;
    if (column >= columns || first >= count) return;
    x += column;
    a += column;
    d += column;
    const long x_step = (long)dilation * x_row;
    if (first + (long)dilation * -1 >= 0 && last + (long)dilation * 0 < rows && last < count) {
        #pragma unroll
        for (int v = 0; v < 4; ++v) {
            const int k = first + v * high;
            number result0 = 0, result1 = 0;
            {
                const number value = x[(long)k * x_row + -1 * x_step];
                result0 += 0.707106781f * value;
                result1 += 0.707106781f * value;
            }
            {
                const number value = x[(long)k * x_row + 0 * x_step];
                result0 += 0.707106781f * value;
                result1 += -0.707106781f * value;
            }
            a[(long)k * a_row] = result0;
            d[(long)k * d_row] = result1;
        }
    }
    else {
        #pragma unroll 1
        for (int k = first; k <= min(last, count - 1); k += high) {
            number result0 = 0, result1 = 0;
            {
                const number value = take_x(x, x_row, k + dilation * -1, rows, rows);
                result0 += 0.707106781f * value;
                result1 += 0.707106781f * value;
            }
            {
                const number value = take_x(x, x_row, k + dilation * 0, rows, rows);
                result0 += 0.707106781f * value;
                result1 += -0.707106781f * value;
            }
            a[(long)k * a_row] = result0;
            d[(long)k * d_row] = result1;
        }
    }
}
