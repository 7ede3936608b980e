"""Engines: what computes transforms, and the table of them.

An engine compiles a transform into an executable, which runs on arrays:

    TransformSpec ──▶ BandTree ──Engine.compile──▶ Executable ──run──▶ arrays

Arrays are in flat order: the samples, the approximation, then details by level, coarsest first, in the order
of their keys.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from ..errors import ArgumentError, MissingDeviceError, UnknownNameError
from ..lowering.choose import LiftingLimits
from ..lowering.mixing import Mixing, Unmixing
from ..lowering.spec import BandTree, Operators

if TYPE_CHECKING:
    from .gpu.launches import Knobs

__all__ = [
    "BACKENDS",
    "DEFAULT_OPTIONS",
    "ENGINES",
    "Engine",
    "EngineEntry",
    "Executable",
    "TransformOptions",
    "devices",
    "engine",
    "on_host",
    "split_backend",
]


class EngineEntry(NamedTuple):
    """An entry of the table of engines.

    Attributes
    ----------
    module : str
        The module in this folder that has ``engine(number)``, which returns an :class:`Engine`, and
        ``names()``, which describes its devices.
    numbered : bool
        Whether ``name:1`` stands for the second device.
    options : frozenset of str
        Those of ``strategy``, ``scheme`` and ``method`` that callers may choose.
    """

    module: str
    numbered: bool = False
    options: frozenset[str] = frozenset()


_DEVICE_OPTIONS = frozenset({"strategy", "scheme", "method"})
ENGINES = {
    "cpu": EngineEntry("host"),
    "cuda": EngineEntry("gpu.cuda.runtime", True, _DEVICE_OPTIONS),
    "opencl": EngineEntry("gpu.opencl.runtime", True, _DEVICE_OPTIONS),
    "reference": EngineEntry("reference", False, frozenset({"scheme"})),
}
BACKENDS = ("auto", *ENGINES)


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


class Executable(Protocol):
    """A transform that is compiled for arrays of certain layouts."""

    def run(self, arrays: Sequence[Any]) -> Any:
        """Transform arrays in flat order; None stands for zeros."""


class Engine(ABC):
    """One device that runs transforms.

    Attributes
    ----------
    name : str
        The key in :data:`ENGINES`.
    lifting : LiftingLimits
        The liftings that its kernels run; none by default.
    """

    name: str
    lifting: LiftingLimits = LiftingLimits(0, 0, neighbours=False)

    def operators(
        self, tree: BandTree, dtype: np.dtype[Any], options: TransformOptions = DEFAULT_OPTIONS
    ) -> list[tuple[tuple[int, ...], Operators]]:
        """Return for each level, finest first, the shape of its samples and the operators along its axes."""
        return tree.operators(dtype, self.lifting)

    @abstractmethod
    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype in which samples of a dtype are transformed."""

    @abstractmethod
    def compile(
        self,
        back: bool,
        tree: BandTree,
        dtype: np.dtype[Any],
        layouts: Sequence[Any],
        options: TransformOptions = DEFAULT_OPTIONS,
    ) -> Executable:
        """Compile a transform.

        Parameters
        ----------
        back : bool
            Whether to compute samples from coefficients.
        tree : BandTree
        dtype : dtype
            Of the coefficients.
        layouts : sequence
            Of the arrays, in flat order, as the engine describes them; None for zeros.
        options : TransformOptions, optional
        """

    def check_options(self, **options: str) -> None:
        """Raise an error for options other than ``"auto"`` that the engine does not have."""
        for option, value in options.items():
            if value != "auto" and option not in ENGINES[self.name].options:
                names = [repr(name) for name, entry in ENGINES.items() if option in entry.options]
                raise ArgumentError(
                    f"{option} {value!r} is for backends {', '.join(names[:-1])} and {names[-1]}, not for"
                    f" {self.name!r}; omit it, or choose another backend"
                )


def split_backend(backend: str) -> tuple[str, int | None]:
    """Return the name of a backend and the number of its device: ``cuda:1`` is the second GPU of CUDA."""
    name, colon, number = backend.partition(":") if isinstance(backend, str) else (backend, "", "")
    if name not in BACKENDS or (
        colon and not (name in ENGINES and ENGINES[name].numbered and number.isdecimal())
    ):
        raise UnknownNameError("backend", backend, BACKENDS)
    return name, int(number) if colon else None


def on_host(backend: str) -> bool:
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
    name, number = split_backend(backend)
    return _engine("cpu" if name == "auto" else name, number)


@lru_cache(maxsize=16)
def _engine(name: str, number: int | None) -> Engine:
    made: Engine = _module(name).engine(number)
    return made


def _module(name: str) -> Any:
    return import_module(f"{__package__}.{ENGINES[name].module}")


def devices() -> dict[str, str]:
    """Every device that transforms can run on, by the name that ``backend`` takes, and what it is.

    Examples
    --------
    >>> "cpu" in devices()
    True
    """
    descriptions: dict[str, str] = {}
    for name, entry in ENGINES.items():
        try:
            names: list[str] = _module(name).names()
        except MissingDeviceError:
            continue
        except Exception as error:  # The driver is installed, but does not work.
            warnings.warn(f"the driver of {name} does not work: {error}", RuntimeWarning, stacklevel=2)
            continue
        keys = (f"{name}:{number}" if entry.numbered else name for number in range(len(names)))
        descriptions |= dict(zip(keys, names, strict=True))
    return descriptions
