"""Dialects: the words in which C-like languages differ."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CUDA", "OPENCL", "Dialect"]


@dataclass(frozen=True)
class Dialect:
    """How one language spells what kernels need.

    Parameters
    ----------
    name : str
    kernel, function : str
        What stands before a kernel, given its work items, and before a function.
    everywhere, within : str
        Qualifiers of memory that all groups see, and that one group shares.
    restrict : str
        Of pointers that nothing else points to.
    group, item : str
        The number of the group, and of the work item in it.
    barrier : str
        All items of a group wait here.
    long : str
        An integer of 64 bits.
    shuffle : str
        Another lane's value, given value and lane; empty where lanes exchange through shared memory.
    uniform : str
        A value that is the same in all lanes, said so that the compiler knows.
    ready : str
        What stands before the first look at memory: the next launch may get ready from here on, and what the
        last one wrote is there; empty where launches never overlap.
    half_value, value_half : str
        Functions between 16 bits and the number they stand for.
    prelude : str
        What a text begins with.
    """

    name: str
    kernel: str
    function: str
    everywhere: str
    within: str
    restrict: str
    group: str
    item: str
    barrier: str
    long: str
    shuffle: str
    uniform: str
    ready: str
    half_value: str
    value_half: str
    prelude: str = ""


CUDA = Dialect(
    name="cuda",
    kernel='extern "C" __global__ void __launch_bounds__({items})',
    function="static __device__ __forceinline__",
    everywhere="",
    within="__shared__ ",
    restrict="__restrict__",
    group="(int)blockIdx.x",
    item="(int)threadIdx.x",
    barrier="__syncthreads();",
    long="long long",
    shuffle="__shfl_sync(0xffffffffu, {value}, {lane})",
    uniform="__shfl_sync(0xffffffffu, {value}, 0)",
    # (What it calculates before this, and its start, a launch has behind it when the last one ends.)
    ready="""\
#if __CUDA_ARCH__ >= 900
asm volatile("griddepcontrol.launch_dependents;");
asm volatile("griddepcontrol.wait;" ::: "memory");
#endif""",
    half_value='float value; asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits)); return value;',
    value_half='unsigned short bits; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value)); return bits;',
    prelude="typedef unsigned char uchar;\ntypedef unsigned short ushort;",
)

OPENCL = Dialect(
    name="opencl",
    kernel="__kernel __attribute__((reqd_work_group_size({items}, 1, 1))) void",
    function="static inline",
    everywhere="__global ",
    within="__local ",
    restrict="restrict",
    group="(int)get_group_id(0)",
    item="(int)get_local_id(0)",
    barrier="barrier(CLK_LOCAL_MEM_FENCE);",
    long="long",
    shuffle="",
    uniform="{value}",
    ready="",
    # (By their bits: vload_half and vstore_half on private memory go wrong on some platforms.)
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
)
