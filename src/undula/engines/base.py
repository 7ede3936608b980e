"""The interface of engines, which compute transforms, and the table of all engines.

An engine compiles a transform into an executable, which runs on arrays:

    TransformSpec ──▶ BandTree ──Engine.compile──▶ Executable ──run──▶ arrays

Arrays are in flat order: the samples, the approximation, then details by level, coarsest first, in the order
of their keys.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..arrays import NUMPY, ArrayLibrary, ArrayView, check_out
from ..errors import ArgumentError, UnknownNameError
from ..lowering.choose import LiftingLimits
from ..lowering.graph import Graph
from ..lowering.mixing import Mixing, Unmixing
from ..lowering.spec import BandTree, LevelOperators
from .memory import empty

__all__ = [
    "BACKENDS",
    "DEFAULT_OPTIONS",
    "ENGINES",
    "Engine",
    "EngineEntry",
    "Executable",
    "GraphExecutable",
    "Knobs",
    "RunCache",
    "TransformOptions",
    "UnfollowableStridesError",
    "computes_on_host",
    "engine",
    "engine_module",
    "integer_dtype",
    "split_backend",
]


Shape = tuple[int, ...]


class EngineEntry(NamedTuple):
    """An entry of the table of engines.

    Attributes
    ----------
    module : str
        The module in this folder that has ``engine(number)``, which returns an :class:`Engine`, and
        ``names()``, which describes its devices. Without a number, it is the engine of the first device that
        can be used.
    numbered : bool
        Whether ``name:1`` stands for the second device.
    options : frozenset of str
        Which of ``strategy``, ``scheme`` and ``method`` callers may choose.
    """

    module: str
    numbered: bool = False
    options: frozenset[str] = frozenset()


_DEVICE_OPTIONS = frozenset({"strategy", "scheme", "method"})
ENGINES = {
    "cpu": EngineEntry("cpu.engine"),
    "cuda": EngineEntry("gpu.cuda.runtime", True, _DEVICE_OPTIONS),
    "opencl": EngineEntry("gpu.opencl.runtime", True, _DEVICE_OPTIONS),
    "reference": EngineEntry("reference", False, frozenset({"scheme"})),
}
BACKENDS = ("auto", *ENGINES)


@dataclass(frozen=True)
class Knobs:
    """Tuning parameters; 0, and -1 for ``prefetch`` and ``lockstep``, mean the default.

    Parameters
    ----------
    pixels, warps, strip, prefetch, unroll, lockstep : int
        Parameters of the sliding strategy; see :class:`~undula.engines.gpu.emit.sliding.LaneGeometry`.
    tile : (int, int)
        Quads along and down a tile.
    """

    pixels: int = 0
    warps: int = 0
    strip: int = 0
    prefetch: int = -1
    unroll: int = 0
    lockstep: int = -1
    tile: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class TransformOptions:
    """How an engine runs a transform.

    Parameters
    ----------
    strategy : str
        A key of :data:`~undula.engines.gpu.strategies.STRATEGIES`.
    scheme, method : str
    knobs : Knobs, optional
        Tuning parameters of a strategy.
    mixing, unmixing : optional
        Colour transforms of the samples, forward and inverse.
    rule : str, optional
        Inverse: threshold rule for details. Its limits are in one more array behind the coefficients: for
        each level, from fine to coarse, the lower and then the upper limits of all bands.
    each : bool
        Whether each plane has limits of its own, which follow those of the previous plane.
    """

    strategy: str = "auto"
    scheme: str = "auto"
    method: str = "auto"
    knobs: Knobs | None = None
    mixing: Mixing | None = None
    unmixing: Unmixing | None = None
    rule: str | None = None
    each: bool = False


DEFAULT_OPTIONS = TransformOptions()


class UnfollowableStridesError(Exception):
    """Kernels cannot follow the strides of an array, which has to be copied first.

    Attributes
    ----------
    buffer : int
        The number of its buffer.
    """

    def __init__(self, buffer: int, message: str = "") -> None:
        super().__init__(message)
        self.buffer = buffer


class Executable(Protocol):
    """A transform that is compiled for arrays of certain layouts."""

    def run(self, arrays: Sequence[Any]) -> Any:
        """Transform arrays in the memory of the device, in flat order; None stands for zeros.

        On the host these are arrays of NumPy, on other devices views of their memory.
        """


class GraphExecutable(Protocol):
    """A graph that is compiled for an engine."""

    def run(self, arrays: Mapping[str, Any], seconds: dict[str, float] | None = None) -> dict[str, Any]:
        """Return the outputs by name, as new arrays of the library of the engine.

        Parameters
        ----------
        arrays : mapping of str to array
            The inputs by name: arrays of the library of the engine, of any strides, or of NumPy.
        seconds : dict, optional
            The time of each phase is added to its entries; the engine is waited for after each phase.
        """


class RunCache:
    """What a plan keeps between runs of a transform.

    Attributes
    ----------
    repeat : function, optional
        Transforms arrays in flat order if they are like those of the last run, or returns False.
    executables : dict
        What was compiled for arrays on a device, with its scratch memory.
    """

    def __init__(self) -> None:
        self.repeat: Callable[..., bool] | None = None
        self.executables: dict[Any, Any] = {}


class Engine(ABC):
    """A device that compiles and runs transforms, for arrays of one library.

    An engine takes arrays of NumPy, unless a subclass overrides the methods on arrays.

    Attributes
    ----------
    name : str
        The key in :data:`ENGINES`.
    library : ArrayLibrary
        The library of the arrays that it takes.
    exact : bool
        Whether an inverse raises an error for integers that do not fit; otherwise they are clipped.
    lifting : LiftingLimits
        The liftings that its kernels run; none by default.
    """

    name: str
    library: ArrayLibrary = NUMPY
    exact = False
    lifting: LiftingLimits = LiftingLimits(0, 0, neighbours=False)

    def operators(
        self, tree: BandTree, dtype: np.dtype[Any], options: TransformOptions = DEFAULT_OPTIONS
    ) -> list[LevelOperators]:
        """Return the operators of each level, finest first, as :meth:`compile` runs them."""
        return tree.operators(dtype, self.lifting)

    @property
    def takes_numpy(self) -> bool:
        """Whether it takes arrays of NumPy, and not those of a library on a device."""
        return self.library is NUMPY

    # --- transforms -------------------------------------------------------------------------------

    @abstractmethod
    def compile(
        self,
        back: bool,
        tree: BandTree,
        dtype: np.dtype[Any],
        views: Sequence[ArrayView | None],
        options: TransformOptions = DEFAULT_OPTIONS,
    ) -> Executable:
        """Compile a transform.

        Parameters
        ----------
        back : bool
            Whether to compute samples from coefficients.
        tree : BandTree
        dtype : dtype
            Dtype of the coefficients.
        views : sequence of ArrayView or None
            Views of the arrays, in flat order, in any buffers; None for zeros. The reference needs none.
        options : TransformOptions, optional
        """

    @abstractmethod
    def run(
        self,
        back: bool,
        tree: BandTree,
        arrays: Sequence[Any],
        dtype: np.dtype[Any],
        options: TransformOptions = DEFAULT_OPTIONS,
        fresh: bool = True,
        cache: RunCache | None = None,
    ) -> None:
        """Compile a transform for arrays, unless that was done before, and run it.

        Parameters
        ----------
        back, tree, dtype, options
            As for :meth:`compile`.
        arrays : sequence
            Arrays in flat order; None for zeros. The samples may be smaller than those of the tree, and are
            then padded with zeros. With a rule, the last array has its limits.
        fresh : bool, default True
            Whether results are new arrays, which share no memory with others.
        cache : RunCache, optional
            What a plan keeps between runs.
        """

    @abstractmethod
    def compile_graph(self, graph: Graph, options: TransformOptions = DEFAULT_OPTIONS) -> GraphExecutable:
        """Compile the program of a pipeline; ``options`` are for its transforms."""

    # --- arrays -----------------------------------------------------------------------------------

    @abstractmethod
    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype in which samples of a dtype are transformed."""

    def coefficient_dtype(self, lifted: bool, dtypes: set[np.dtype[Any]]) -> np.dtype[Any]:
        """Return the dtype in which coefficients are transformed back; an error for mixed ones of an LWT."""
        common = np.result_type(*dtypes) if len(dtypes) > 1 else next(iter(dtypes))
        if not lifted:
            return self.result_dtype(common)
        if common.kind in "iu":
            return integer_dtype(common)
        if any(dtype.kind in "iu" for dtype in dtypes):
            raise ArgumentError(
                "coefficients of an LWT are all integers (unscaled) or all floats (scaled), got "
                f"{sorted(map(str, dtypes))}"
            )
        return self.result_dtype(common)

    def samples(self, x: Any) -> Any:
        """Return samples in a dtype that the engine reads."""
        return x.astype(self.result_dtype(x.dtype), copy=False)

    def integers(self, x: Any, dtype: np.dtype[Any]) -> Any:
        """Return integer samples that the engine can transform into coefficients of a dtype."""
        return x.astype(dtype, copy=False)

    def coefficients(self, x: Any, dtype: np.dtype[Any]) -> Any:
        """Return coefficients in the dtype in which they are transformed."""
        return x.astype(dtype, copy=False)

    def empty(self, shape: Shape, dtype: np.dtype[Any], like: Any) -> Any:
        """Allocate a result beside another array."""
        return empty(shape, dtype)

    def empty_bands(self, tree: BandTree, dtype: np.dtype[Any], like: Any) -> list[Any]:
        """Allocate all coefficients beside samples, in flat order."""
        return [empty(shape, dtype) for shape in tree.flat_shapes]

    def check_out(
        self, out: Any, shape: Shape, dtype: np.dtype[Any], inputs: Sequence[Any], what: str
    ) -> Any:
        """Return an array for a result, or raise an error that says why it cannot hold it."""
        return check_out(out, shape, dtype, inputs, what)

    def allocate(self, shape: Shape, dtype: str) -> Any:
        """Allocate an array in the memory of the device, for :meth:`bound`."""
        return np.zeros(shape, dtype)

    def upload(self, x: Any, target: Any = None) -> Any:
        """Copy an array of NumPy to the memory of the device, and return it there."""
        if target is None:
            return x
        target[...] = x
        return target

    def download(self, source: Any, out: Any) -> Any:
        """Copy an array from the memory of the device to one of NumPy, and return that."""
        out[...] = source
        return out

    def check_device(self) -> None:  # noqa: B027 (a host runs what is imported)
        """Raise an error unless the device runs a small kernel and computes the right result."""

    def finish(self) -> None:  # noqa: B027 (a host is never ahead of its caller)
        """Wait until the device has done everything that was started."""

    def bound(
        self,
        back: bool,
        tree: BandTree,
        arrays: Sequence[Any],
        dtype: np.dtype[Any],
        options: TransformOptions = DEFAULT_OPTIONS,
    ) -> Callable[[], Any]:
        """Return a function that transforms arrays in the memory of the device, to be called many times."""
        cache = RunCache()

        def transform() -> None:
            if cache.repeat is None or not cache.repeat(*arrays):
                self.run(back, tree, arrays, dtype, options, False, cache)

        return transform

    def copy(self, x: Any, shape: Shape, dtype: np.dtype[Any], out: Any = None) -> Any:
        """Return a copy of samples, cut or padded with zeros: the transform of no levels.

        It is in ``out`` if that is given.
        """
        if out is None:
            out = empty(shape, dtype)
        common = tuple(slice(min(pair)) for pair in zip(x.shape, shape, strict=True))
        out[...] = 0
        out[common] = x[common]
        return out

    def restore(self, results: Any, like: Any) -> Any:
        """Return results, however nested, as arrays of the library."""
        return results

    def memory_order(self, arrays: Sequence[Any]) -> list[int] | None:
        """Return the order of axes in which to transform arrays; None to leave them as they are."""
        return None

    def check_options(self, **options: str) -> None:
        """Raise an error for options other than ``"auto"`` that the engine does not have."""
        for option, value in options.items():
            if value != "auto" and option not in ENGINES[self.name].options:
                names = [repr(name) for name, entry in ENGINES.items() if option in entry.options]
                raise ArgumentError(
                    f"{option} {value!r} is for backends {', '.join(names[:-1])} and {names[-1]}, not for"
                    f" {self.name!r}; omit it, or choose another backend"
                )


def integer_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which integer coefficients of a dtype are lifted."""
    signed = dtype.itemsize if dtype.kind == "i" else min(8, 2 * dtype.itemsize)
    return np.dtype(f"i{max(2, signed)}")


def split_backend(backend: str) -> tuple[str, int | None]:
    """Return the name of a backend and the number of its device: ``cuda:1`` is the second GPU of CUDA."""
    name, colon, number = backend.partition(":") if isinstance(backend, str) else (backend, "", "")
    if name not in BACKENDS or (
        colon and not (name in ENGINES and ENGINES[name].numbered and number.isdecimal())
    ):
        raise UnknownNameError("backend", backend, BACKENDS)
    return name, int(number) if colon else None


def computes_on_host(backend: str) -> bool:
    """Return whether a backend computes with arrays of NumPy where they are."""
    name, _ = split_backend(backend)
    return name == "auto" or not ENGINES[name].numbered


def engine(backend: str = "auto") -> Engine:
    """Return an engine by the name that ``backend`` takes; ``auto`` is the CPU.

    Examples
    --------
    >>> engine("auto") is engine("cpu")
    True
    >>> engine("reference").result_dtype(np.dtype("int16"))
    dtype('float64')
    """
    if not isinstance(backend, str):
        raise UnknownNameError("backend", backend, BACKENDS)
    return _engine(backend) if backend != "auto" else _engine("cpu")


@lru_cache(maxsize=16)
def _engine(backend: str) -> Engine:
    name, number = split_backend(backend)
    opened: Engine = engine_module(name).engine(number)
    return opened


def engine_module(name: str) -> Any:
    """Return the module of an engine by its key in :data:`ENGINES`."""
    return import_module(f"{__package__}.{ENGINES[name].module}")
