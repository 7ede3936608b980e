typedef unsigned char uchar;
typedef unsigned short ushort;
typedef float number;

static __device__ __forceinline__ float half_value(ushort bits) {
    float value; asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits)); return value;
}
static __device__ __forceinline__ ushort value_half(float value) {
    unsigned short bits; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value)); return bits;
}
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
    return p < 0 || p >= n ? -1 : p;
}
static __device__ __forceinline__ number take_x(const ushort *line, int step, int p, int n, int extent) {
    if (p >= 0 && p < n) return half_value(line[(long long)p * step]);
    const int q = border_x_place(p, extent, 0);
    return q < 0 ? 0 : half_value(line[(long long)q * step]);
}
extern "C" __global__ void __launch_bounds__(128) naive_forward(
        const ushort *__restrict__ x,
        ushort *__restrict__ a,
        ushort *__restrict__ d,
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
    result0 += take_x(x, x_row, 2 * (m + 0) + 0, rows, rows);
    result1 += take_x(x, x_row, 2 * (m + 0) + 1, rows, rows);
    if (m - 0 >= 0 && m - 0 < low_rows) {
        a[(long long)(m - 0) * a_row] = value_half(result0 * 1.93185165f);
    }
    if (m - 0 >= 0 && m - 0 < high_rows) {
        d[(long long)(m - 0) * d_row] = value_half(result1 * -0.51763809f);
    }
}


typedef unsigned char uchar;
typedef unsigned short ushort;
typedef float number;

static __device__ __forceinline__ float half_value(ushort bits) {
    float value; asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits)); return value;
}
static __device__ __forceinline__ ushort value_half(float value) {
    unsigned short bits; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value)); return bits;
}
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
static __device__ __forceinline__ int border_place(int p, int n, int t) {
    return p < 0 || p >= n ? -1 : p;
}
extern "C" __global__ void __launch_bounds__(128) lifting_step(
        const ushort *a,
        ushort *d,
        const long long a_start,
        const long long a_plane,
        const int a_row,
        const long long d_start,
        const long long d_plane,
        const int d_row,
        const int length,
        const int own,
        const int other,
        const int columns,
        const int planes) {
    const long long place = (long long)(int)blockIdx.x * 128 + (int)threadIdx.x;
    const long long plane = place / columns / own;
    if (plane >= planes) return;
    const int column = place % columns, k = (int)(place / columns % own);
    #if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    #endif
    a += a_start + plane * a_plane;
    d += d_start + plane * d_plane;
    ushort *target = d + (long long)k * d_row + column;
    number value0 = 0;
    {
        int q = k + 0;
        if (q < 0 || q >= other) q = border_place(q, other, 0);
        if (q >= 0) value0 = half_value(a[(long long)q * a_row + column]);
    }
    *target = value_half(half_value(*target) + 0.464101615f * value0);
}


typedef unsigned char uchar;
typedef unsigned short ushort;
typedef float number;

static __device__ __forceinline__ float half_value(ushort bits) {
    float value; asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits)); return value;
}
static __device__ __forceinline__ ushort value_half(float value) {
    unsigned short bits; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value)); return bits;
}
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
static __device__ __forceinline__ int border_place(int p, int n, int t) {
    return p < 0 || p >= n ? -1 : p;
}
extern "C" __global__ void __launch_bounds__(128) lifting_step(
        const ushort *a,
        ushort *d,
        const long long a_start,
        const long long a_plane,
        const int a_row,
        const long long d_start,
        const long long d_plane,
        const int d_row,
        const int length,
        const int own,
        const int other,
        const int columns,
        const int planes) {
    const long long place = (long long)(int)blockIdx.x * 128 + (int)threadIdx.x;
    const long long plane = place / columns / own;
    if (plane >= planes) return;
    const int column = place % columns, k = (int)(place / columns % own);
    #if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    #endif
    a += a_start + plane * a_plane;
    d += d_start + plane * d_plane;
    ushort *target = d + (long long)k * d_row + column;
    number value0 = 0, value1 = 0;
    {
        int q = k + 0;
        if (q < 0 || q >= other) q = border_place(q, other, 0);
        if (q >= 0) value0 = half_value(a[(long long)q * a_row + column]);
    }
    {
        int q = k + 1;
        if (q < 0 || q >= other) q = border_place(q, other, 0);
        if (q >= 0) value1 = half_value(a[(long long)q * a_row + column]);
    }
    *target = value_half(half_value(*target) + -1.6160254f * value0 + 0.25f * value1);
}


typedef unsigned char uchar;
typedef unsigned short ushort;
typedef float number;

static __device__ __forceinline__ float half_value(ushort bits) {
    float value; asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits)); return value;
}
static __device__ __forceinline__ ushort value_half(float value) {
    unsigned short bits; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value)); return bits;
}
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
static __device__ __forceinline__ int border_place(int p, int n, int t) {
    return p < 0 || p >= n ? -1 : p;
}
extern "C" __global__ void __launch_bounds__(128) lifting_step(
        const ushort *a,
        ushort *d,
        const long long a_start,
        const long long a_plane,
        const int a_row,
        const long long d_start,
        const long long d_plane,
        const int d_row,
        const int length,
        const int own,
        const int other,
        const int columns,
        const int planes) {
    const long long place = (long long)(int)blockIdx.x * 128 + (int)threadIdx.x;
    const long long plane = place / columns / own;
    if (plane >= planes) return;
    const int column = place % columns, k = (int)(place / columns % own);
    #if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    #endif
    a += a_start + plane * a_plane;
    d += d_start + plane * d_plane;
    ushort *target = d + (long long)k * d_row + column;
    number value0 = 0;
    {
        int q = k + -1;
        if (q < 0 || q >= other) q = border_place(q, other, 0);
        if (q >= 0) value0 = half_value(a[(long long)q * a_row + column]);
    }
    *target = value_half(half_value(*target) + -0.267949192f * value0);
}
