"""Dialects: the keywords in which C-like languages differ."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CUDA", "OPENCL", "Dialect"]


@dataclass(frozen=True)
class Dialect:
    """The keywords of one language.

    Parameters
    ----------
    name : str
    kernel, function : str
        Qualifiers of a kernel, with a field for the work items of a group, and of a function.
    groups_bound : str
        What follows the work items of a group for kernels that need few enough registers for a number of
        groups on each unit of the device; empty if the language has no such bound.
    outlined_function : str
        Qualifiers of a function that is not inlined, if the language has such.
    global_memory, shared_memory, constant : str
        Address space of arrays, of the memory that a group shares, and of tables in the text.
    group_memory : str
        Declaration of ``group_memory``, memory of a group whose size a launch chooses, and to which pointers
        are like those to arrays. Empty if there is none.
    restrict : str
        Qualifier of pointers without aliases.
    group, item : str
        The index of the group, and of the work item in the group.
    barrier, lanes_barrier, memory_barrier : str
        Statements at which all items of a group, or at least all lanes, wait for each other. After the last
        of them, the items see what others wrote to arrays.
    long : str
        The type of 64-bit integers.
    shuffle : str
        Expression for the value of another lane, with fields for value and lane; empty if lanes exchange
        values through shared memory.
    uniform : str
        Expression that marks a value as equal in all lanes.
    all_lanes : str
        Expression for whether a condition holds in all lanes; in the lane itself, if lanes exchange values
        through shared memory.
    wait_for_previous : str
        Statements before the first memory access: they let the next launch start, and wait for the results of
        the previous one. Empty if launches never overlap.
    half_value, value_half : str
        Bodies of the conversions from and to the bits of a half-precision number.
    high_product : str
        Expression for the upper half of the product of two unsigned integers of 32 bits.
    reciprocal : str
        Expression for the reciprocal of a float, to about its precision.
    atomic_add : str
        Statement that adds to an integer in memory, with fields for its address and the value.
    float_bits, bits_float, double_bits, bits_double : str
        Functions from floating-point numbers to their bits and back.
    prelude : str
        The first lines of a text.
    """

    name: str
    kernel: str
    groups_bound: str
    function: str
    outlined_function: str
    global_memory: str
    shared_memory: str
    group_memory: str
    constant: str
    restrict: str
    group: str
    item: str
    barrier: str
    lanes_barrier: str
    memory_barrier: str
    long: str
    shuffle: str
    uniform: str
    all_lanes: str
    wait_for_previous: str
    half_value: str
    value_half: str
    high_product: str
    reciprocal: str
    atomic_add: str
    float_bits: str
    bits_float: str
    double_bits: str
    bits_double: str
    prelude: str = ""


CUDA = Dialect(
    name="cuda",
    kernel='extern "C" __global__ void __launch_bounds__({items})',
    groups_bound=", {groups}",
    function="static __device__ __forceinline__",
    outlined_function="static __device__ __noinline__",
    global_memory="",
    shared_memory="__shared__ ",
    group_memory="extern __shared__ __align__(16) unsigned char group_memory[];",
    constant="static __device__ const ",
    restrict="__restrict__",
    group="(int)blockIdx.x",
    item="(int)threadIdx.x",
    barrier="__syncthreads();",
    lanes_barrier="__syncwarp();",
    memory_barrier="__syncthreads();",
    long="long long",
    shuffle="__shfl_sync(0xffffffffu, {value}, {lane})",
    uniform="__shfl_sync(0xffffffffu, {value}, 0)",
    all_lanes="__all_sync(0xffffffffu, {condition})",
    # A launch starts, and computes its indices, while the previous one is still running.
    wait_for_previous="""\
#if __CUDA_ARCH__ >= 900
asm volatile("griddepcontrol.launch_dependents;");
asm volatile("griddepcontrol.wait;" ::: "memory");
#endif""",
    half_value='float value; asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits)); return value;',
    value_half='unsigned short bits; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value)); return bits;',
    high_product="__umulhi({}, {})",
    reciprocal="__fdividef(1.0f, {})",
    atomic_add="atomicAdd({address}, {value});",
    float_bits="__float_as_uint",
    bits_float="__uint_as_float",
    double_bits="(unsigned long long)__double_as_longlong",
    bits_double="__longlong_as_double",
    prelude="typedef unsigned char uchar;\ntypedef unsigned short ushort;",
)

OPENCL = Dialect(
    name="opencl",
    kernel="__kernel __attribute__((reqd_work_group_size({items}, 1, 1))) void",
    groups_bound="",
    function="static inline",
    outlined_function="static inline",
    global_memory="__global ",
    shared_memory="__local ",
    group_memory="",
    constant="__constant ",
    restrict="restrict",
    group="(int)get_group_id(0)",
    item="(int)get_local_id(0)",
    barrier="barrier(CLK_LOCAL_MEM_FENCE);",
    lanes_barrier="barrier(CLK_LOCAL_MEM_FENCE);",
    memory_barrier="barrier(CLK_GLOBAL_MEM_FENCE);",
    long="long",
    shuffle="",
    uniform="{value}",
    all_lanes="{condition}",
    wait_for_previous="",
    # Bits are converted by hand, since vload_half and vstore_half fail for private memory on some platforms.
    half_value="""\
const float size = as_float((bits & 0x7fff) << 13) * 0x1p112f;
const uint whole = (bits & 0x7c00) == 0x7c00 ? as_uint(size) | 0x7f800000 : as_uint(size);
return as_float(whole | (uint)(bits & 0x8000) << 16);""",
    value_half="""\
const uint size = as_uint(value) & 0x7fffffff, sign = as_uint(value) >> 16 & 0x8000;
if (size > 0x7f800000) return sign | 0x7e00;
if (size >= 0x477ff000) return sign | 0x7c00;
if (size < 0x38800000) return sign | (as_uint(as_float(size) + 0.5f) - 0x3f000000);
return sign | (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;""",
    high_product="mul_hi({}, {})",
    reciprocal="(1.0f / ({}))",
    atomic_add="atomic_add({address}, {value});",
    float_bits="as_uint",
    bits_float="as_float",
    double_bits="as_ulong",
    bits_double="as_double",
)
