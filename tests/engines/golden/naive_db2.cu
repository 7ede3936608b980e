typedef unsigned char uchar;
typedef unsigned short ushort;
typedef float number;

static __device__ __forceinline__ int wrapped(int p, int n) {
    p += p < 0 ? n : 0;
    p -= p >= n ? n : 0;
    if (p < 0 || p >= n) p = (p % n + n) % n;
    return p;
}
static __device__ __forceinline__ int mirrored(int p, int n, int last) {
    p = p < 0 ? -(last & 1) - p : p;
    p = p >= n ? last - p : p;
    while (p < 0 || p >= n) p = p < 0 ? -(last & 1) - p : last - p;
    return p;
}
static __device__ __forceinline__ int border_x_place(int p, int n, int t) {
    if (t == 0) return n == 1 ? 0 : wrapped(p, 2 * n - 2) >= n ? (p < 0 ? 0 : n - 1) : mirrored(p, n, 2 * n - 2);
    if (t == 1) return p < 0 ? 0 : n - 1;
    if (t == 2) return n == 1 ? 0 : mirrored(p, n, 2 * n - 2);
    if (t == 3) return n - 1;
    return 0;
}
static __device__ __forceinline__ number border_x_weight(int p, int n, int t) {
    if (t == 0) return 1;
    if (t == 1) return n > 1 && wrapped(p, 2 * n - 2) >= n ? 1 : 0;
    return n == 1 ? 0 : 2 * ((p - wrapped(p, 2 * n - 2)) / (2 * n - 2) + (wrapped(p, 2 * n - 2) >= n && p < 0 ? 1 : 0));
}
static __device__ __forceinline__ number take_x(const float *line, int step, int p, int n, int extent) {
    if (p >= 0 && p < n) return line[(long long)p * step];
    number sum = border_x_weight(p, extent, 0) * line[(long long)border_x_place(p, extent, 0) * step];
    for (int t = 1; t <= 2; ++t) {
        const number rise = line[(long long)border_x_place(p, extent, 2 * t - 1) * step] - line[(long long)border_x_place(p, extent, 2 * t) * step];
        sum += border_x_weight(p, extent, t) * rise;
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(128) naive_forward(
        const float *__restrict__ x,
        float *__restrict__ a,
        float *__restrict__ d,
        const long long x_start,
        const long long x_plane,
        const int x_row,
        const long long a_start,
        const long long a_plane,
        const int a_row,
        const long long d_start,
        const long long d_plane,
        const int d_row,
        const int rows,
        const int low_rows,
        const int high_rows,
        const int row_pairs,
        const int columns,
        const int planes) {
    const long long place = (long long)(int)blockIdx.x * 128 + (int)threadIdx.x;
    const long long each = (long long)columns * row_pairs;
    const long long plane = place / each;
    if (plane >= planes) return;
    const int column = place % each % columns;
    const int m = 0 + (int)(place % each / columns);
    #if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    #endif
    x += x_start + plane * x_plane;
    a += a_start + plane * a_plane;
    d += d_start + plane * d_plane;
    x += column;
    a += column;
    d += column;
    number result0 = 0, result1 = 0;
    result0 += 0.224143868f * take_x(x, x_row, 2 * (m + 0) + 0, rows, rows);
    result0 += -0.129409523f * take_x(x, x_row, 2 * (m + 0) + 1, rows, rows);
    result0 += 0.482962913f * take_x(x, x_row, 2 * (m + -1) + 0, rows, rows);
    result0 += 0.836516304f * take_x(x, x_row, 2 * (m + -1) + 1, rows, rows);
    result1 += 0.836516304f * take_x(x, x_row, 2 * (m + 0) + 0, rows, rows);
    result1 += -0.482962913f * take_x(x, x_row, 2 * (m + 0) + 1, rows, rows);
    result1 += -0.129409523f * take_x(x, x_row, 2 * (m + -1) + 0, rows, rows);
    result1 += -0.224143868f * take_x(x, x_row, 2 * (m + -1) + 1, rows, rows);
    if (m - 0 >= 0 && m - 0 < low_rows) {
        a[(long long)(m - 0) * a_row] = result0;
    }
    if (m - 0 >= 0 && m - 0 < high_rows) {
        d[(long long)(m - 0) * d_row] = result1;
    }
}
