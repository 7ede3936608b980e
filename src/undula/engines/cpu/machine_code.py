"""The machine code of kernels: compiled once, kept on disk, and called without Numba.

Importing Numba and waking its compiler takes longer than most transforms, and more memory than a stream. A
kernel is a function of addresses alone, so its machine code can be kept and loaded by itself. What is kept is
good for one version of the sources and one processor; where it cannot be written, nothing is kept.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import Lock
from typing import Any

from ..digests import read_file, write_file

__all__ = ["kernel", "kernel_address", "source_address"]

HERE = Path(__file__).parent
GENERATED = "generated_"  # Names of kernels that are given as text begin so.
LINE_LOOPS = "line_"  # Names of loops of lines begin so.
# What machine code depends on: that of transforms, and that of generated kernels.
SOURCES = (
    "emitter.py", "simd.py", "kernel_layout.py", "rows.py", "analysis.py", "synthesis.py",
    "sample_kernels.py", "builtin_layout.py", "tape.py", "machine_code.py",
)  # fmt: skip
COLLABORATIVE_SOURCES = (
    "emitter.py", "simd.py", "rows.py", "collaborative_layout.py", "collaborative_instructions.py",
    "collaborative_matching.py", "collaborative_blocks.py", "collaborative_kernels.py",
    "../../lowering/collaborative.py", "machine_code.py",
)  # fmt: skip
TEMPORAL_SOURCES = (
    *COLLABORATIVE_SOURCES, "temporal_layout.py", "temporal_kernels.py", "../../lowering/temporal.py",
)  # fmt: skip
GENERATED_SOURCES = (
    "kernel_layout.py", "functions.py", "kernels.py", "coding_kernels.py", "undecimated_kernels.py",
    "border_kernels.py", "translate.py", "machine_code.py",
)  # fmt: skip
LINE_SOURCES = (
    "emitter.py", "kernel_layout.py", "line_loops.py", "line_code.py", "translate.py", "machine_code.py",
)  # fmt: skip
MONTH = 30 * 24 * 3600  # seconds

_lock = Lock()


def _forget() -> None:
    """Make a new lock: a thread that the child of a fork does not have may hold the old one."""
    global _lock
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)

_loaded: list[Any] = []  # What LLVM and ctypes made of the code, which has to stay alive.


# How many addresses a kernel takes.
ADDRESSES = {
    "analyse_planes": 11,
    "analyse_columns": 4,
    "analyse_lines": 4,
    "synthesise_planes": 6,
    "synthesise_columns": 4,
    "synthesise_lines": 4,
    "mix_planes": 1,
    "find_largest": 4,
    "play": 2,
    "play_arrays": 3,
    "play_steps": 3,
    "filter_tile": 1,
    "filter_cubes": 1,
    "filter_references": 1,
    "estimate_motion": 1,
    "halve_rows": 6,
    "weigh_rows": 8,
    "weigh_layers": 10,
}
COLLABORATIVE = ("filter_tile", "filter_cubes", "weigh_rows", "weigh_layers")
TEMPORAL = ("filter_references", "estimate_motion", "halve_rows")


ENTRY_NAME = "entry"  # The function that Python calls, and that calls ``play_arrays``.

# What tells a kernel the type of samples.
LIKE: dict[str, Any] = {
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    "int16": ctypes.c_int16,
    "int32": ctypes.c_int32,
}


def kernel(name: str, dtype: str) -> Callable[..., None]:
    """Return a kernel by name, for floats or integers of one size; it is called with addresses."""
    with _lock:
        return _kernel(name, dtype)


def kernel_address(name: str, dtype: str) -> int:
    """Return the address at which the machine code of a kernel begins."""
    with _lock:
        return _kernel_address(name, dtype)


def source_address(text: str, dtype: str) -> int:
    """Where the machine code of a kernel begins that is given as text.

    The text defines a function ``kernel`` of an address and a number, in the language of :mod:`.translate`.
    It can call the functions of :mod:`.kernels`.
    """
    with _lock:
        return _kernel_address(f"{GENERATED}{hashlib.sha256(text.encode()).hexdigest()[:16]}", dtype, text)


@cache
def _kernel_address(name: str, dtype: str, text: str = "") -> int:
    code = _kept(name, dtype)
    if code is None:
        code = _compile(name, dtype, text)
        _keep(name, dtype, code)
    symbol, _, machine_code = code.partition(b"\0")
    return _load(symbol.decode(), machine_code)


@cache
def _kernel(name: str, dtype: str) -> Callable[..., None]:
    # Numba's convention: where to put a result and an error, of which there are none, then the arguments.
    kind = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * ADDRESSES[name], LIKE[dtype]
    )
    function = kind(_kernel_address(name, dtype))
    nothing = (ctypes.c_int64 * 2)()
    result, error = ctypes.addressof(nothing), ctypes.addressof(nothing) + 8
    _loaded.extend((function, nothing))

    def call(*addresses: int) -> None:
        function(result, error, *addresses, 0)

    return call


def _compile(name: str, dtype: str, text: str) -> bytes:
    """Compile a kernel, and return its symbol and its machine code."""
    if text:
        from .kernels import library
        from .translate import object_code

        return object_code(text, dtype, library())
    if name == ENTRY_NAME:
        return _compile_entry(dtype)
    if name.startswith(LINE_LOOPS):
        from . import line_code

        return line_code.object_code(name, dtype)
    from numba import int64, types

    dispatcher = getattr(_module(name), name)
    signature = (int64,) * ADDRESSES[name] + (getattr(types, dtype),)
    dispatcher.compile(signature)
    compiled = dispatcher.overloads[signature]
    _, _, (machine_code, _) = compiled.library.serialize_using_object_code()
    return bytes(compiled.fndesc.llvm_func_name.encode() + b"\0" + machine_code)


def _module(name: str) -> Any:
    """Return the module of a kernel that Numba compiles."""
    if name in COLLABORATIVE:
        from . import collaborative_kernels

        return collaborative_kernels
    if name in TEMPORAL:
        from . import temporal_kernels

        return temporal_kernels
    from . import analysis, sample_kernels, synthesis, tape

    modules = {"analyse": analysis, "synthesise": synthesis, "play": tape}
    return modules.get(name.partition("_")[0], sample_kernels)


def _compile_entry(dtype: str) -> bytes:
    """Compile the function through which Python calls ``play_arrays``, and return the same."""
    import llvmlite.binding as llvm
    from numba import types
    from numba.core.registry import cpu_target

    from .tape import entry_module

    symbol = f"undula_{ENTRY_NAME}_{dtype}"
    real = cpu_target.target_context.get_value_type(getattr(types, dtype))
    code = llvm.parse_assembly(str(entry_module(symbol, object.__basicsize__, real)))
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    return symbol.encode() + b"\0" + bytes(machine.emit_object(code))


def _load(symbol: str, code: bytes) -> int:
    """Load machine code, and return the address of a function in it."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    if not _loaded:
        # Machine code of Numba's mentions the end of counted references; nothing is counted here.
        end = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda pointer: None)
        llvm.add_symbol("NRT_MemInfo_call_dtor", ctypes.cast(end, ctypes.c_void_p).value)
        _loaded.append(end)
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _loaded.append(engine)
    address: int = engine.get_function_address(symbol)
    return address


# --- on disk --------------------------------------------------------------------------------------


@cache
def _fingerprint(sources: tuple[str, ...]) -> str:
    """Return a digest of the sources, of what compiles them, and of the processor."""
    import llvmlite.binding as llvm

    known = hashlib.sha256()
    for name in sources:
        known.update((HERE / name).read_bytes())
    for package in ("numba", "llvmlite"):
        try:
            known.update(version(package).encode())
        except PackageNotFoundError:
            known.update(b"?")
    known.update(bytes([object.__basicsize__]))  # Builds of Python without a global lock have another one.
    known.update(llvm.get_default_triple().encode())
    known.update(llvm.get_host_cpu_name().encode())
    known.update(str(sorted(llvm.get_host_cpu_features().items())).encode())
    return known.hexdigest()[:24]


def _folders() -> Iterator[Path]:
    """Yield the folders in which machine code may be kept: beside the sources, or in the user's cache."""
    yield HERE / "__pycache__"
    with suppress(RuntimeError):  # Some users have no home folder.
        yield Path.home() / ".cache" / "undula"


def _name(name: str, dtype: str) -> str:
    sources: tuple[str, ...] = GENERATED_SOURCES if name.startswith(GENERATED) else SOURCES
    sources = LINE_SOURCES if name.startswith(LINE_LOOPS) else sources
    sources = COLLABORATIVE_SOURCES if name in COLLABORATIVE else sources
    sources = TEMPORAL_SOURCES if name in TEMPORAL else sources
    return f"{name}-{dtype}-{_fingerprint(sources)}.bin"


def _kept(name: str, dtype: str) -> bytes | None:
    """Return machine code from the disk; None if there is none, or if it is damaged."""
    for folder in _folders():
        code = read_file(folder / _name(name, dtype))
        if code is not None:
            return code
    return None


def _keep(name: str, dtype: str, code: bytes) -> None:
    """Write machine code to the first folder that can be written to, and remove what is a month old."""
    for folder in _folders():
        target = folder / _name(name, dtype)
        if not write_file(target, code):
            continue
        prefix = target.name.rpartition("-")[0]
        for other in folder.glob(f"{prefix}*.bin"):
            with suppress(OSError):
                if other.stat().st_mtime < target.stat().st_mtime - MONTH:
                    other.unlink()
        return
