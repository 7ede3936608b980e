"""Continuous wavelets: functions given by formulas, for the continuous wavelet transform.

The classes and names are those of PyWavelets. A :class:`ContinuousWavelet` has attributes that can be
changed; its :attr:`~ContinuousWavelet.formula` is the value behind them, which computes

    ψ(x) = g(x) · h(x),        g a Gaussian or a power of sinc, h a polynomial or a carrier
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.hermite import hermval
from numpy.typing import DTypeLike, NDArray

from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from .table import FAMILIES, continuous_names, families, is_discrete, wavelist
from .wavelet import Wavelet

__all__ = ["ContinuousWavelet", "DiscreteContinuousWavelet", "Formula", "any_wavelet"]

Samples = NDArray[Any]
Reals = NDArray[np.float64]
MAX_LEVEL = 24  # of wavefun: 2**24 samples


@dataclass(frozen=True)
class Formula:
    """A continuous wavelet as a value: everything on which its samples depend.

    Parameters
    ----------
    family : str
        Short name of the family.
    order : int
        Number of derivatives of a Gaussian, or order of a B-spline; 0 for other families.
    bandwidth, center : float
        Bandwidth and centre frequency; 0 for families without them.
    lower, upper : float
        The interval that is sampled.
    dtype : str
        ``"float32"`` or ``"float64"``.
    conjugate : bool
        Whether the transform has complex results.
    """

    family: str
    order: int
    bandwidth: float
    center: float
    lower: float
    upper: float
    dtype: str
    conjugate: bool

    def sample(self, length: int) -> tuple[Samples, Samples]:
        """Return so many samples of the wavelet, from the lower to the upper bound, and their places."""
        places = np.linspace(self.lower, self.upper, length, dtype=self.dtype)
        values = _FUNCTIONS[self.family](places.astype(np.float64), self)
        single = "complex64" if values.dtype.kind == "c" else "float32"
        return values.astype(single) if self.dtype == "float32" else values, places


def _hermite(order: int, z: Samples) -> Samples:
    """Return the polynomial before the Gaussian in the derivative of exp(-z²) of an order."""
    polynomial: Samples = hermval(z, [0.0] * order + [(-1.0) ** order])
    return polynomial


def _normal_moment(power: int) -> int:
    """Return the mean of an even power of a standard normal variable."""
    return math.prod(range(1, power, 2))


def _norm(moment: int) -> float:
    """Return the norm of a derivative of a Gaussian.

    By Parseval's theorem, its energy is √(π/2) times a moment of a normal variable: of Z for exp(-x²), and of
    Z - 1 for exp(-x² - ix).
    """
    return math.sqrt(math.sqrt(math.pi / 2) * moment)


def _gaus(x: Reals, formula: Formula) -> Samples:
    order = formula.order
    sign = 1 if order % 4 in (0, 1) else -1
    return sign * _hermite(order, x) * np.exp(-(x**2)) / _norm(_normal_moment(2 * order))


def _cgau(x: Reals, formula: Formula) -> Samples:
    # exp(-x² - ix) is a Gaussian around -i/2, so its derivatives have the same polynomials.
    order = formula.order
    moment = sum(math.comb(2 * order, k) * _normal_moment(k) for k in range(0, 2 * order + 1, 2))
    return _hermite(order, x + 0.5j) * np.exp(-(x**2) - 1j * x) / _norm(moment)


def _mexh(x: Reals, formula: Formula) -> Samples:
    values: Samples = 2 / (math.sqrt(3) * math.pi**0.25) * np.exp(-(x**2) / 2) * (1 - x**2)
    return values


def _morl(x: Reals, formula: Formula) -> Samples:
    return np.exp(-(x**2) / 2) * np.cos(5 * x)


def _carrier(x: Reals, formula: Formula) -> Samples:
    carrier: Samples = np.exp(2j * math.pi * formula.center * x)
    return carrier


def _shan(x: Reals, formula: Formula) -> Samples:
    return math.sqrt(formula.bandwidth) * np.sinc(formula.bandwidth * x) * _carrier(x, formula)


def _fbsp(x: Reals, formula: Formula) -> Samples:
    window = np.sinc(formula.bandwidth * x / formula.order) ** formula.order
    return math.sqrt(formula.bandwidth) * window * _carrier(x, formula)


def _cmor(x: Reals, formula: Formula) -> Samples:
    window = np.exp(-(x**2) / formula.bandwidth) / math.sqrt(math.pi * formula.bandwidth)
    return window * _carrier(x, formula)


_FUNCTIONS: dict[str, Callable[[Reals, Formula], Samples]] = {
    "gaus": _gaus,
    "mexh": _mexh,
    "morl": _morl,
    "cgau": _cgau,
    "shan": _shan,
    "fbsp": _fbsp,
    "cmor": _cmor,
}


class _Family(NamedTuple):
    """What the wavelets of a family have in common; ``parameters`` are those of the bare name."""

    bound: float
    symmetry: str
    conjugate: bool = False
    parameters: tuple[float, ...] = ()


_FAMILIES = {
    "gaus": _Family(5, "symmetric"),
    "mexh": _Family(8, "symmetric"),
    "morl": _Family(8, "symmetric"),
    "cgau": _Family(5, "symmetric", True),
    "shan": _Family(20, "asymmetric", True, (0.5, 1.0)),
    "fbsp": _Family(20, "asymmetric", True, (2, 1.0, 0.5)),
    "cmor": _Family(8, "asymmetric", True, (1.0, 0.5)),
}


class ContinuousWavelet:
    """A continuous wavelet: a function on an interval, given by a formula.

    Parameters
    ----------
    name : str
        ``"gausN"`` or ``"cgauN"`` with N from 1 to 8, ``"mexh"``, ``"morl"``, ``"cmorB-C"``, ``"shanB-C"`` or
        ``"fbspM-B-C"``, with the bandwidth B, the centre frequency C and the order M of the B-spline.
    dtype : {float64, float32}, optional
        The dtype of the samples of :meth:`wavefun`. The default is float64.

    Attributes
    ----------
    name, family_name, short_family_name : str
        Such as ``"gaus2"``, ``"Gaussian"`` and ``"gaus"``.
    number : int
        The order of ``gausN`` and ``cgauN``, otherwise 0.
    symmetry : {"symmetric", "anti-symmetric", "asymmetric"}
        The symmetry of the wavelet about its centre.
    orthogonal, biorthogonal : bool
        False: there is no filter bank.
    lower_bound, upper_bound : float
        The interval on which the wavelet is sampled; it can be changed.
    center_frequency, bandwidth_frequency : float or None
        The parameters C and B, rounded to single precision as in PyWavelets. They can be changed.
    fbsp_order : int or None
        The parameter M. It can be changed.
    complex_cwt : bool
        Whether the transform has complex results.

    Examples
    --------
    >>> wavelet = ContinuousWavelet("cmor1.5-1.0")
    >>> wavelet.bandwidth_frequency, wavelet.center_frequency, wavelet.complex_cwt
    (1.5, 1.0, True)
    >>> psi, x = ContinuousWavelet("mexh").wavefun(length=5)
    >>> [round(float(value), 3) for value in x], round(float(psi[2]), 4)
    ([-8.0, -4.0, 0.0, 4.0, 8.0], 0.8673)
    """

    orthogonal = False
    biorthogonal = False

    def __init__(self, name: str = "", dtype: DTypeLike = np.float64) -> None:
        if not isinstance(name, str):
            raise ArgumentTypeError(f"name must be a string, got {name!r} ({type(name).__name__})")
        self._name = name.lower()
        family, number = _parsed(self._name)
        parameters = _parameters(self._name, family) if _FAMILIES[family].parameters else ()
        try:
            kind = np.dtype(dtype)
        except TypeError as error:
            raise ArgumentTypeError(f"dtype must be float32 or float64: {error}") from None
        if kind not in (np.float32, np.float64):
            raise ArgumentError(f"the dtype of a continuous wavelet is float32 or float64, got {kind}")
        self._family, self._number, self.dt = family, number, dtype
        bound = _FAMILIES[family].bound
        self.lower_bound, self.upper_bound = -float(bound), float(bound)
        self.complex_cwt = _FAMILIES[family].conjugate
        self.fbsp_order = int(parameters[0]) if family == "fbsp" else None
        # PyWavelets keeps these in single precision, and its results depend on that.
        frequencies = [float(np.float32(value)) for value in parameters[-2:]]
        self.bandwidth_frequency: float | None = frequencies[0] if frequencies else None
        self.center_frequency: float | None = frequencies[1] if frequencies else None

    @property
    def name(self) -> str:
        """The name, in lower case."""
        return self._name

    @property
    def family_name(self) -> str:
        """Full name of the family."""
        return FAMILIES[self._family]

    @property
    def short_family_name(self) -> str:
        """Short name of the family."""
        return self._family

    @property
    def number(self) -> int:
        """The order of ``gausN`` and ``cgauN``, otherwise 0."""
        return self._number

    @property
    def family_number(self) -> int:
        """:attr:`number`, under the other name that PyWavelets has for it."""
        return self._number

    @property
    def symmetry(self) -> str:
        """The symmetry of the wavelet."""
        return "anti-symmetric" if self._number % 2 else _FAMILIES[self._family].symmetry

    @property
    def formula(self) -> Formula:
        """The wavelet as a value, for the attributes as they are now."""
        try:
            lower, upper = float(self.lower_bound), float(self.upper_bound)
            bandwidth, center = float(self.bandwidth_frequency or 0), float(self.center_frequency or 0)
            order = int(self.fbsp_order or 0) or self._number
        except (TypeError, ValueError) as error:
            raise ArgumentTypeError(f"the attributes of {self._name} must be numbers: {error}") from None
        if self._family == "fbsp" and order < 1:
            raise ArgumentError(f"fbsp_order must be at least 1, got {self.fbsp_order!r}")
        if _FAMILIES[self._family].parameters and bandwidth <= 0:
            raise ArgumentError(f"the bandwidth must be positive, got {self.bandwidth_frequency!r}")
        dtype = np.dtype(self.dt).name
        return Formula(self._family, order, bandwidth, center, lower, upper, dtype, bool(self.complex_cwt))

    def wavefun(self, level: int = 8, length: int | None = None) -> tuple[Samples, Samples]:
        """Sample the wavelet.

        Parameters
        ----------
        level : int, optional
            Take ``2**level`` samples. The default is 8.
        length : int, optional
            The number of samples, instead of ``level``.

        Returns
        -------
        psi, x : ndarray
            The samples, real or complex, and their places from :attr:`lower_bound` to :attr:`upper_bound`.
        """
        if length is None:
            if not isinstance(level, (int, float, np.number)):
                raise ArgumentTypeError(f"level must be a number from 0 to {MAX_LEVEL}, got {level!r}")
            if not 0 <= level <= MAX_LEVEL:
                raise ArgumentError(f"level must be a number from 0 to {MAX_LEVEL}, got {level!r}")
            length = int(2**level)
        elif not isinstance(length, (int, np.integer)):
            raise ArgumentTypeError(f"length must be a positive integer, got {length!r}")
        elif length < 1:
            raise ArgumentError(f"length must be a positive integer, got {length}")
        return self.formula.sample(int(length))

    def __reduce__(self) -> tuple[Any, ...]:
        state = {name: value for name, value in vars(self).items() if name[0] != "_"}
        return _unpickled, (self._name, state)

    def __repr__(self) -> str:
        return f"ContinuousWavelet({self.name!r})"

    def __str__(self) -> str:
        return "\n".join(
            [
                f"ContinuousWavelet {self.name}",
                f"  Family name:    {self.family_name}",
                f"  Short name:     {self.short_family_name}",
                f"  Symmetry:       {self.symmetry}",
                "  DWT:            False",
                "  CWT:            True",
                f"  Complex CWT:    {self.complex_cwt}",
            ]
        )


def _unpickled(name: str, state: dict[str, Any]) -> ContinuousWavelet:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        wavelet = ContinuousWavelet(name)
    vars(wavelet).update(state)
    return wavelet


def _parsed(name: str) -> tuple[str, int]:
    """Return the family of a continuous wavelet and its order, or raise an error."""
    family = name[:4]
    if family not in _FAMILIES or not (_FAMILIES[family].parameters or name in continuous_names()):
        hint = f"families: {', '.join(_FAMILIES)}; undula.wavelist(kind='continuous') lists all names"
        if is_discrete(name):
            raise ArgumentError(f"{name!r} is a discrete wavelet; use undula.Wavelet({name!r})")
        raise UnknownNameError("continuous wavelet", name, continuous_names(), hint)
    digits = name[4:]
    return family, int(digits) if digits.isdecimal() and not _FAMILIES[family].parameters else 0


def _parameters(name: str, family: str) -> tuple[float, ...]:
    """Return the parameters that the name of a wavelet of such a family contains."""
    default = _FAMILIES[family].parameters
    form = f"{family}B-C, with the bandwidth B and the centre frequency C"
    if family == "fbsp":
        form = "fbspM-B-C, with the order M, the bandwidth B and the centre frequency C"
    example = family + "-".join(map(str, default))
    if name == family:
        warnings.warn(
            f"the name {family!r} without parameters is deprecated; it stands for {example!r}. Names have"
            f" the form {form}",
            FutureWarning,
            stacklevel=3,
        )
        return default
    try:
        values = tuple(float(part) for part in name[4:].split("-"))
    except ValueError:
        values = ()
    if len(values) != len(default) or not all(map(math.isfinite, values)) or values[-2] <= 0:
        raise ArgumentError(f"{name!r} is not a wavelet; names have the form {form}, such as {example!r}")
    if family == "fbsp" and (values[0] < 1 or values[0] % 1):
        raise ArgumentError(f"the order of {name!r} must be an integer of at least 1, got {values[0]:g}")
    return values


def any_wavelet(wavelet: object) -> Wavelet | ContinuousWavelet:
    """Return a discrete or continuous wavelet for its name, or as it is."""
    if isinstance(wavelet, (Wavelet, ContinuousWavelet)):
        return wavelet
    if not isinstance(wavelet, str):
        raise ArgumentTypeError(
            f"a wavelet must be a name, an undula.Wavelet or an undula.ContinuousWavelet, got {wavelet!r:.60}"
        )
    return DiscreteContinuousWavelet(wavelet)


def DiscreteContinuousWavelet(  # noqa: N802 (the name in PyWavelets, where it is a function as well)
    name: str = "", filter_bank: Any = None
) -> Wavelet | ContinuousWavelet:
    """Return the discrete or continuous wavelet of a name.

    Parameters
    ----------
    name : str, default ""
        Name of a wavelet of either kind.
    filter_bank : sequence of four filters, or object with a ``filter_bank``, optional
        If given, the result is ``Wavelet(name, filter_bank)``.

    Returns
    -------
    Wavelet or ContinuousWavelet
        The wavelet.

    Examples
    --------
    >>> DiscreteContinuousWavelet("db2"), DiscreteContinuousWavelet("mexh")
    (Wavelet('db2'), ContinuousWavelet('mexh'))
    """
    if filter_bank is None and isinstance(name, str) and name:
        lowered = name.lower().strip()
        if lowered[:4] in _FAMILIES:
            return ContinuousWavelet(name)
        if not is_discrete(lowered):
            hint = f"families: {', '.join(families())}; undula.wavelist() lists all names"
            raise UnknownNameError("wavelet", name, wavelist(), hint)
    return Wavelet(name, filter_bank)
