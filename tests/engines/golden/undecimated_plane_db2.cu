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
typedef float2 number2;
static __device__ __forceinline__ int x_down_place(int p, int n, int t) {
    return mirrored(p, n, 2 * n - 1);
}
static __device__ __forceinline__ int x_along_place(int p, int n, int t) {
    return mirrored(p, n, 2 * n - 1);
}
extern "C" __global__ void __launch_bounds__(96, 14) undecimated_plane_forward(
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
        const int read_rows,
        const int read_columns,
        const int rows,
        const int columns,
        const int row_dilation,
        const int column_dilation,
        const int across,
        const int runs,
        const int phases,
        const int strip,
        const int strips) {
    __shared__ number2 complete[2][2][96];
    const int item = (int)threadIdx.x;
    int rest = (int)blockIdx.x;
    const int tile = rest % across;
    rest /= across;
    const int begin_run = rest % runs * 2;
    rest /= runs;
    const int phase = rest % phases;
    rest /= phases;
    const int begin = rest % strips * strip;
    const int plane = rest / strips;
    const int end = min(begin + strip, (rows - phase + row_dilation - 1) / row_dilation);
    const int start = begin - 4;
    #if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    #endif
    x += x_start + plane * x_plane;
    aa += aa_start + plane * aa_plane;
    ad += ad_start + plane * ad_plane;
    da += da_start + plane * da_plane;
    dd += dd_start + plane * dd_plane;
    const int t = tile * 64 + item;
    const int within = begin_run + t % 2, channel = within % 1;
    const long long column = (long long)column_dilation * (t / 2) + within / 1;
    const int result = item < 64 && column < columns && within < column_dilation * 1;
    const int target = result ? (int)column * 1 + channel : -1;
    const int c = (int)min(column + (long long)column_dilation * -3, (long long)columns - 1 + (long long)column_dilation * 0);
    const int read = c >= 0 && c < read_columns ? c : x_along_place(c, read_columns, 0);
    const int place = read < 0 ? -1 : read * 1 + channel;
    number next_x[2];
    #pragma unroll
    for (int b = 0; b < 2; ++b) {
        const int r = row_dilation * (min(start + b, end - 1) + 0) + phase;
        const int row = r >= 0 && r < read_rows ? r : x_down_place(r, read_rows, 0);
        next_x[b] = x[(long long)row * x_row + place];
    }
    number sums0[3], sums1[3];
    #pragma unroll
    for (int t = 0; t < 3; ++t) {
        sums0[t] = sums1[t] = 0;
    }
    const long long aa_step = (long long)row_dilation * aa_row;
    aa += begin * aa_step + (long long)phase * aa_row;
    const long long ad_step = (long long)row_dilation * ad_row;
    ad += begin * ad_step + (long long)phase * ad_row;
    const long long da_step = (long long)row_dilation * da_row;
    da += begin * da_step + (long long)phase * da_row;
    const long long dd_step = (long long)row_dilation * dd_row;
    dd += begin * dd_step + (long long)phase * dd_row;
    int side = 0;
    for (int n = start; n < end; n += 2) {
        #pragma unroll
        for (int b = 0; b < 2; ++b) {
            number2 sum;
            sum.x = sums0[0] + -0.129409523f * next_x[b];
            sums0[0] = sums0[1] + 0.224143868f * next_x[b];
            sums0[1] = sums0[2] + 0.836516304f * next_x[b];
            sums0[2] = 0.482962913f * next_x[b];
            sum.y = sums1[0] + -0.482962913f * next_x[b];
            sums1[0] = sums1[1] + 0.836516304f * next_x[b];
            sums1[1] = sums1[2] + -0.224143868f * next_x[b];
            sums1[2] = -0.129409523f * next_x[b];
            complete[side][b][item] = sum;
        }
        #pragma unroll
        for (int b = 0; b < 2; ++b) {
            const int r = row_dilation * (min(n + 2 + b, end - 1) + 0) + phase;
            const int row = r >= 0 && r < read_rows ? r : x_down_place(r, read_rows, 0);
            next_x[b] = x[(long long)row * x_row + place];
        }
        if (n >= begin) {
            __syncthreads();
            #pragma unroll
            for (int b = 0; b < 2; ++b) {
                if (target >= 0 && n + b < end) {
                    number result_aa = 0, result_ad = 0, result_da = 0, result_dd = 0;
                    {
                        const number2 sum = complete[side][b][item + 0];
                        result_aa += 0.482962913f * sum.x;
                        result_ad += -0.129409523f * sum.x;
                        result_da += 0.482962913f * sum.y;
                        result_dd += -0.129409523f * sum.y;
                    }
                    {
                        const number2 sum = complete[side][b][item + 2];
                        result_aa += 0.836516304f * sum.x;
                        result_ad += -0.224143868f * sum.x;
                        result_da += 0.836516304f * sum.y;
                        result_dd += -0.224143868f * sum.y;
                    }
                    {
                        const number2 sum = complete[side][b][item + 4];
                        result_aa += 0.224143868f * sum.x;
                        result_ad += 0.836516304f * sum.x;
                        result_da += 0.224143868f * sum.y;
                        result_dd += 0.836516304f * sum.y;
                    }
                    {
                        const number2 sum = complete[side][b][item + 6];
                        result_aa += -0.129409523f * sum.x;
                        result_ad += -0.482962913f * sum.x;
                        result_da += -0.129409523f * sum.y;
                        result_dd += -0.482962913f * sum.y;
                    }
                    aa[target] = result_aa;
                    ad[target] = result_ad;
                    da[target] = result_da;
                    dd[target] = result_dd;
                }
                aa += aa_step;
                ad += ad_step;
                da += da_step;
                dd += dd_step;
            }
            side = 1 - side;
        }
    }
}
