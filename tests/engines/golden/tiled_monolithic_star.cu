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
static __device__ __forceinline__ int x_down_place(int p, int n, int t) {
    return mirrored(p, n, 2 * n - 1);
}
static __device__ __forceinline__ int x_along_place(int p, int n, int t) {
    return mirrored(p, n, 2 * n - 1);
}
static __device__ __forceinline__ number take_x(const float *plane, int step, int r, int c, int rows, int columns) {
    const int inside_r = r >= 0 && r < rows, inside_c = c >= 0 && c < columns;
    int i = r, j = c;
    if (!inside_r) i = x_down_place(r, rows, 0);
    if (!inside_c) j = x_along_place(c, columns, 0);
    return i < 0 || j < 0 ? 0 : plane[(long long)i * step + j * 1];
}
// monolithic*: 6 factors, 6 slots of shared memory

extern "C" __global__ void __launch_bounds__(256) tiled_forward(
        const float *__restrict__ x,
        float *__restrict__ aa,
        float *__restrict__ ad,
        float *__restrict__ da,
        float *__restrict__ dd,
        const long long x_start,
        const long long x_plane,
        const int x_row,
        const long long aa_start,
        const long long aa_plane,
        const int aa_row,
        const long long ad_start,
        const long long ad_plane,
        const int ad_row,
        const long long da_start,
        const long long da_plane,
        const int da_row,
        const long long dd_start,
        const long long dd_plane,
        const int dd_row,
        const int rows,
        const int columns,
        const int low_rows,
        const int high_rows,
        const int low_columns,
        const int high_columns,
        const int across,
        const int downwards) {
    __shared__ number tile[6540];
    const int item = (int)threadIdx.x, group = (int)blockIdx.x;
    const int channel = group % 1, tx = group / 1 % across;
    const int ty = group / 1 / across % downwards;
    const long long plane = group / 1 / across / downwards;
    const int x0 = item % 32, y0 = item / 32;
    const int nx = -1 + tx * 30 - 1 + x0;
    const int ny = -1 + ty * 30 - 1 + y0;
    number q[4][4];
    #if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    #endif
    x += x_start + plane * x_plane;
    aa += aa_start + plane * aa_plane;
    ad += ad_start + plane * ad_plane;
    da += da_start + plane * da_plane;
    dd += dd_start + plane * dd_plane;
    x += channel;
    aa += channel;
    ad += channel;
    da += channel;
    dd += channel;
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
        const int n = ny + k * 8;
        q[k][0] = take_x(x, x_row, 2 * (n), 2 * (nx), rows, columns);
        q[k][1] = take_x(x, x_row, 2 * (n), 2 * (nx - 1) + 1, rows, columns);
        q[k][2] = take_x(x, x_row, 2 * (n - 1) + 1, 2 * (nx), rows, columns);
        q[k][3] = take_x(x, x_row, 2 * (n - 1) + 1, 2 * (nx - 1) + 1, rows, columns);
    }
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
        tile[0 + 33 + (y0 + k * 8) * 32 + x0] = q[k][0];
    }
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
        tile[1090 + 33 + (y0 + k * 8) * 32 + x0] = q[k][1];
    }
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
        tile[2180 + 33 + (y0 + k * 8) * 32 + x0] = q[k][2];
    }
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
        const number new1 = -0.5f * tile[33 + (y0 + k * 8) * 32 + x0 - 1] + q[k][1];
        const number new2 = -0.5f * tile[33 + (y0 + k * 8) * 32 + x0 - 32] + q[k][2];
        const number new3 = 0.25f * tile[33 + (y0 + k * 8) * 32 + x0 - 33] + -0.5f * tile[33 + (y0 + k * 8) * 32 + x0 + 1058] + -0.5f * tile[33 + (y0 + k * 8) * 32 + x0 + 2179] + q[k][3];
        q[k][1] = new1;
        q[k][2] = new2;
        q[k][3] = new3;
    }
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
        const number new1 = -0.5f * q[k][0] + q[k][1];
        const number new3 = -0.5f * q[k][2] + q[k][3];
        q[k][1] = new1;
        q[k][3] = new3;
    }
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
        const number new2 = -0.5f * q[k][0] + q[k][2];
        const number new3 = -0.5f * q[k][1] + q[k][3];
        q[k][2] = new2;
        q[k][3] = new3;
    }
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
        tile[3270 + 33 + (y0 + k * 8) * 32 + x0] = q[k][1];
    }
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
        tile[4360 + 33 + (y0 + k * 8) * 32 + x0] = q[k][2];
    }
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
        tile[5450 + 33 + (y0 + k * 8) * 32 + x0] = q[k][3];
    }
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
        const number new0 = q[k][0] + 0.25f * tile[33 + (y0 + k * 8) * 32 + x0 + 3271] + 0.25f * tile[33 + (y0 + k * 8) * 32 + x0 + 4392] + 0.0625f * tile[33 + (y0 + k * 8) * 32 + x0 + 5483];
        const number new1 = q[k][1] + 0.25f * tile[33 + (y0 + k * 8) * 32 + x0 + 5482];
        const number new2 = q[k][2] + 0.25f * tile[33 + (y0 + k * 8) * 32 + x0 + 5451];
        q[k][0] = new0;
        q[k][1] = new1;
        q[k][2] = new2;
    }
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
        const number new0 = q[k][0] + 0.25f * q[k][1];
        const number new2 = q[k][2] + 0.25f * q[k][3];
        q[k][0] = new0;
        q[k][2] = new2;
    }
    #pragma unroll
    for (int k = 0; k < 4; ++k) {
        const number new0 = q[k][0] + 0.25f * q[k][2];
        const number new1 = q[k][1] + 0.25f * q[k][3];
        q[k][0] = new0;
        q[k][1] = new1;
    }
    if (x0 >= 1 && x0 < 31) {
        #pragma unroll
        for (int k = 0; k < 4; ++k) {
            const int y = y0 + k * 8, n = ny + k * 8;
            if (y >= 1 && y < 31) {
                {
                    const int r = n + 1, c = nx + 1;
                    if (r >= 0 && r < low_rows && c >= 0 && c < low_columns) {
                        aa[(long long)r * aa_row + (long long)c * 1] = q[k][0] * 2.0f;
                    }
                }
                {
                    const int r = n + 1, c = nx;
                    if (r >= 0 && r < low_rows && c >= 0 && c < high_columns) {
                        ad[(long long)r * ad_row + (long long)c * 1] = q[k][1];
                    }
                }
                {
                    const int r = n, c = nx + 1;
                    if (r >= 0 && r < high_rows && c >= 0 && c < low_columns) {
                        da[(long long)r * da_row + (long long)c * 1] = q[k][2];
                    }
                }
                {
                    const int r = n, c = nx;
                    if (r >= 0 && r < high_rows && c >= 0 && c < high_columns) {
                        dd[(long long)r * dd_row + (long long)c * 1] = q[k][3] * 0.5f;
                    }
                }
            }
        }
    }
}
