typedef float number;

static inline float half_value(ushort bits) {
    const float size = as_float((bits & 0x7fff) << 13) * 0x1p112f;
    const uint whole = (bits & 0x7c00) == 0x7c00 ? as_uint(size) | 0x7f800000 : as_uint(size);
    return as_float(whole | (uint)(bits & 0x8000) << 16);
}
static inline ushort value_half(float value) {
    const uint size = as_uint(value) & 0x7fffffff, sign = as_uint(value) >> 16 & 0x8000;
    if (size > 0x7f800000) return sign | 0x7e00;
    if (size >= 0x477ff000) return sign | 0x7c00;
    if (size < 0x38800000) return sign | (as_uint(as_float(size) + 0.5f) - 0x3f000000);
    return sign | (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
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
static inline int border_x_place(int p, int n, int t) {
    return p < 0 || p >= n ? -1 : p;
}
static inline number take_x(__global const ushort *line, int step, int p, int n, int extent) {
    if (p >= 0 && p < n) return half_value(line[(long)p * step]);
    const int q = border_x_place(p, extent, 0);
    return q < 0 ? 0 : half_value(line[(long)q * step]);
}
__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void naive_forward(
        __global const ushort *restrict x,
        __global ushort *restrict a,
        __global ushort *restrict d,
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
        const int low_rows,
        const int high_rows,
        const int row_pairs,
        const int columns,
        const int planes) {
    const long place = (long)(int)get_group_id(0) * 128 + (int)get_local_id(0);
    const long each = (long)columns * row_pairs;
    const long plane = place / each;
    if (plane >= planes) return;
    const int column = place % each % columns;
    const int m = 0 + (int)(place % each / columns);
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
        a[(long)(m - 0) * a_row] = value_half(result0 * 1.93185165f);
    }
    if (m - 0 >= 0 && m - 0 < high_rows) {
        d[(long)(m - 0) * d_row] = value_half(result1 * -0.51763809f);
    }
}


typedef float number;

static inline float half_value(ushort bits) {
    const float size = as_float((bits & 0x7fff) << 13) * 0x1p112f;
    const uint whole = (bits & 0x7c00) == 0x7c00 ? as_uint(size) | 0x7f800000 : as_uint(size);
    return as_float(whole | (uint)(bits & 0x8000) << 16);
}
static inline ushort value_half(float value) {
    const uint size = as_uint(value) & 0x7fffffff, sign = as_uint(value) >> 16 & 0x8000;
    if (size > 0x7f800000) return sign | 0x7e00;
    if (size >= 0x477ff000) return sign | 0x7c00;
    if (size < 0x38800000) return sign | (as_uint(as_float(size) + 0.5f) - 0x3f000000);
    return sign | (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
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
static inline int border_place(int p, int n, int t) {
    return p < 0 || p >= n ? -1 : p;
}
__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void lifting_step(
        __global const ushort *a,
        __global ushort *d,
        const long a_start,
        const long a_plane,
        const int a_row,
        const long d_start,
        const long d_plane,
        const int d_row,
        const int length,
        const int own,
        const int other,
        const int columns,
        const int planes) {
    const long place = (long)(int)get_group_id(0) * 128 + (int)get_local_id(0);
    const long plane = place / columns / own;
    if (plane >= planes) return;
    const int column = place % columns, k = (int)(place / columns % own);
    a += a_start + plane * a_plane;
    d += d_start + plane * d_plane;
    __global ushort *target = d + (long)k * d_row + column;
    number value0 = 0;
    {
        int q = k + 0;
        if (q < 0 || q >= other) q = border_place(q, other, 0);
        if (q >= 0) value0 = half_value(a[(long)q * a_row + column]);
    }
    *target = value_half(half_value(*target) + 0.464101615f * value0);
}


typedef float number;

static inline float half_value(ushort bits) {
    const float size = as_float((bits & 0x7fff) << 13) * 0x1p112f;
    const uint whole = (bits & 0x7c00) == 0x7c00 ? as_uint(size) | 0x7f800000 : as_uint(size);
    return as_float(whole | (uint)(bits & 0x8000) << 16);
}
static inline ushort value_half(float value) {
    const uint size = as_uint(value) & 0x7fffffff, sign = as_uint(value) >> 16 & 0x8000;
    if (size > 0x7f800000) return sign | 0x7e00;
    if (size >= 0x477ff000) return sign | 0x7c00;
    if (size < 0x38800000) return sign | (as_uint(as_float(size) + 0.5f) - 0x3f000000);
    return sign | (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
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
static inline int border_place(int p, int n, int t) {
    return p < 0 || p >= n ? -1 : p;
}
__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void lifting_step(
        __global const ushort *a,
        __global ushort *d,
        const long a_start,
        const long a_plane,
        const int a_row,
        const long d_start,
        const long d_plane,
        const int d_row,
        const int length,
        const int own,
        const int other,
        const int columns,
        const int planes) {
    const long place = (long)(int)get_group_id(0) * 128 + (int)get_local_id(0);
    const long plane = place / columns / own;
    if (plane >= planes) return;
    const int column = place % columns, k = (int)(place / columns % own);
    a += a_start + plane * a_plane;
    d += d_start + plane * d_plane;
    __global ushort *target = d + (long)k * d_row + column;
    number value0 = 0, value1 = 0;
    {
        int q = k + 0;
        if (q < 0 || q >= other) q = border_place(q, other, 0);
        if (q >= 0) value0 = half_value(a[(long)q * a_row + column]);
    }
    {
        int q = k + 1;
        if (q < 0 || q >= other) q = border_place(q, other, 0);
        if (q >= 0) value1 = half_value(a[(long)q * a_row + column]);
    }
    *target = value_half(half_value(*target) + -1.6160254f * value0 + 0.25f * value1);
}


typedef float number;

static inline float half_value(ushort bits) {
    const float size = as_float((bits & 0x7fff) << 13) * 0x1p112f;
    const uint whole = (bits & 0x7c00) == 0x7c00 ? as_uint(size) | 0x7f800000 : as_uint(size);
    return as_float(whole | (uint)(bits & 0x8000) << 16);
}
static inline ushort value_half(float value) {
    const uint size = as_uint(value) & 0x7fffffff, sign = as_uint(value) >> 16 & 0x8000;
    if (size > 0x7f800000) return sign | 0x7e00;
    if (size >= 0x477ff000) return sign | 0x7c00;
    if (size < 0x38800000) return sign | (as_uint(as_float(size) + 0.5f) - 0x3f000000);
    return sign | (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
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
static inline int border_place(int p, int n, int t) {
    return p < 0 || p >= n ? -1 : p;
}
__kernel __attribute__((reqd_work_group_size(128, 1, 1))) void lifting_step(
        __global const ushort *a,
        __global ushort *d,
        const long a_start,
        const long a_plane,
        const int a_row,
        const long d_start,
        const long d_plane,
        const int d_row,
        const int length,
        const int own,
        const int other,
        const int columns,
        const int planes) {
    const long place = (long)(int)get_group_id(0) * 128 + (int)get_local_id(0);
    const long plane = place / columns / own;
    if (plane >= planes) return;
    const int column = place % columns, k = (int)(place / columns % own);
    a += a_start + plane * a_plane;
    d += d_start + plane * d_plane;
    __global ushort *target = d + (long)k * d_row + column;
    number value0 = 0;
    {
        int q = k + -1;
        if (q < 0 || q >= other) q = border_place(q, other, 0);
        if (q >= 0) value0 = half_value(a[(long)q * a_row + column]);
    }
    *target = value_half(half_value(*target) + -0.267949192f * value0);
}
