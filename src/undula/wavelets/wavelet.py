"""Wavelet: four filters, their properties and their polyphase matrix.

The attributes are those of ``pywt.Wavelet``. With the signal split into even
and odd samples, the analysis filters ``lo`` and ``hi`` become the polyphase matrix

    M = ⎡ lo_odd  lo_even ⎤         a[n] = Σ lo[k] x[2n + 1 - k]
        ⎣ hi_odd  hi_even ⎦

on the vector ``[x[2n], x[2n + 1]]``; the synthesis filters make its inverse.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import fields
from functools import cache, cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..algebra import Laurent, Number, PolyphaseMatrix, as_number, is_exact
from ..arrays import refuse_gradients
from ..errors import ArgumentError, ArgumentTypeError, NotInvertibleError, ReconstructionError
from .table import CONTINUOUS, Bank, is_discrete, record

__all__ = ["Wavelet", "as_wavelet"]

# Custom banks with a larger reconstruction error are rejected. Taps of four digits pass, a wrong tap does
# not. (The built-in discrete Meyer wavelet reconstructs to 0.0022.)
RECONSTRUCTION_TOLERANCE = 1e-3


class Wavelet:
    """A wavelet: a built-in one, or one defined by a filter bank.

    Parameters
    ----------
    name : str
        Name of a built-in wavelet, one of :func:`undula.wavelist`, or any name if ``filter_bank`` is given.
    filter_bank : sequence of four filters, or object with a ``filter_bank``, optional
        ``(dec_lo, dec_hi, rec_lo, rec_hi)``, all of the same even length and aligned as in PyWavelets. The
        wavelet is exact if all taps are integers, Fractions or :class:`~undula.algebra.Surd`.

    Examples
    --------
    >>> w = Wavelet("cdf53")
    >>> w.dec_len, w.symmetry, w.vanishing_moments_psi
    (6, 'symmetric', 2)
    >>> print(Wavelet("haar").polyphase)
    ⎡ √2/2   √2/2 ⎤
    ⎣ √2/2  -√2/2 ⎦

    The sign of the high band of Haar is that of PyWavelets.
    """

    name: str
    family_name: str
    short_family_name: str
    number: int
    symmetry: str
    orthogonal: bool
    biorthogonal: bool
    vanishing_moments_psi: int | None
    vanishing_moments_phi: int | None
    bank: Bank

    def __init__(self, name: str = "", filter_bank: Any = None) -> None:
        if filter_bank is None:
            if not isinstance(name, str):
                raise ArgumentTypeError(f"name must be a string, got {name!r} ({type(name).__name__})")
            if not name:
                raise ArgumentTypeError(
                    "a wavelet needs a name, such as 'db2', or a filter_bank; got neither"
                )
            facts = _facts(name)
        else:
            bank = _checked_bank(filter_bank)
            facts = {"name": str(name), "family_name": "", "short_family_name": "", "number": 0}
            facts |= _measured_properties(bank) | {"bank": bank}
        self.__dict__.update(facts)

    @classmethod
    def from_polyphase(cls, matrix: PolyphaseMatrix, name: str = "") -> Wavelet:
        """Return the wavelet with this analysis matrix, up to a delay of each band.

        Bands are delayed and filters padded with zeros to obtain the shortest bank with the alignment of
        PyWavelets.

        Parameters
        ----------
        matrix : PolyphaseMatrix
            A 2×2 matrix in one variable, with a monomial determinant.
        name : str, optional
            Name of the wavelet.

        Returns
        -------
        Wavelet
        """
        if not isinstance(matrix, PolyphaseMatrix):
            raise ArgumentTypeError(f"expected a PolyphaseMatrix, got {matrix!r}")
        if (matrix.size, matrix.variables) != (2, 1):
            raise ArgumentError(
                f"a wavelet has a 2×2 polyphase matrix in one variable, got {matrix.size}×"
                f"{matrix.size} in {matrix.variables} variable(s)"
            )
        try:
            inverse = matrix.inverse()
        except NotInvertibleError as error:
            raise ReconstructionError(f"this polyphase matrix defines no wavelet: {error}") from None
        bands: list[list[dict[int, Number]]] = [[], []]
        length = 2
        for band in (0, 1):
            # Sample 2n + p, counted from 2n, that a band reads (analysis) or writes (synthesis).
            read = {2 * e + p: c for p in (0, 1) for e, c in matrix[band, p].items()}
            write = {p - 2 * e: c for p in (0, 1) for e, c in inverse[p, band].items()}
            delay = 2 * math.floor((1 - max(*read, *write)) / 2)
            bands[band] = [{i + delay: c for i, c in atoms.items()} for atoms in (read, write)]
            length = max(length, 2 - min(min(atoms) for atoms in bands[band]))
        length += length % 2
        dec = [[bands[b][0].get(1 - k, 0) for k in range(length)] for b in (0, 1)]
        rec = [[bands[b][1].get(k + 2 - length, 0) for k in range(length)] for b in (0, 1)]
        return cls(name, filter_bank=(*dec, *rec))

    def __setattr__(self, name: str, value: object) -> None:
        # As in PyWavelets, what is said about a bank may be corrected, since no transform depends on it.
        if name not in ("orthogonal", "biorthogonal"):
            raise AttributeError("a Wavelet is immutable; create a new one from its filter_bank")
        self.__dict__[name] = bool(value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Wavelet):
            return NotImplemented
        return (self.name, self.bank) == (other.name, other.bank)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.name, self.bank))

    def __reduce__(self) -> tuple[Any, ...]:
        if self.short_family_name:
            return (Wavelet, (self.name,))
        return (Wavelet, (self.name, self.bank))

    # --- filters ----------------------------------------------------------------------------------

    @cached_property
    def dual(self) -> Wavelet:
        """The wavelet with analysis and synthesis exchanged: the adjoint of one is the other of its dual.

        An orthogonal wavelet is its own dual.

        Examples
        --------
        >>> Wavelet("db2").dual.name, Wavelet("bior2.2").dual.filter_bank == Wavelet("rbio2.2").filter_bank
        ('db2', True)
        """
        dec_lo, dec_hi, rec_lo, rec_hi = self.bank
        bank = (rec_lo[::-1], rec_hi[::-1], dec_lo[::-1], dec_hi[::-1])
        if bank == self.bank:
            return self
        partner = {"bior": "rbio", "rbio": "bior"}.get(self.short_family_name)
        if partner is not None:
            return Wavelet(self.name.replace(self.short_family_name, partner))
        dual = Wavelet(f"dual of {self.name}", bank)
        dual.__dict__["dual"] = self
        return dual

    def _filter(self, index: int) -> list[float]:
        return [float(value) for value in self.bank[index]]

    @property
    def dec_lo(self) -> list[float]:
        """Low-pass analysis filter."""
        return self._filter(0)

    @property
    def dec_hi(self) -> list[float]:
        """High-pass analysis filter."""
        return self._filter(1)

    @property
    def rec_lo(self) -> list[float]:
        """Low-pass synthesis filter."""
        return self._filter(2)

    @property
    def rec_hi(self) -> list[float]:
        """High-pass synthesis filter."""
        return self._filter(3)

    @property
    def dec_len(self) -> int:
        """Length of the analysis filters."""
        return len(self.bank[0])

    @property
    def rec_len(self) -> int:
        """Length of the synthesis filters."""
        return len(self.bank[2])

    def __len__(self) -> int:
        return self.dec_len

    @property
    def filter_bank(self) -> tuple[list[float], list[float], list[float], list[float]]:
        """``(dec_lo, dec_hi, rec_lo, rec_hi)``."""
        return self.dec_lo, self.dec_hi, self.rec_lo, self.rec_hi

    @property
    def inverse_filter_bank(self) -> tuple[list[float], list[float], list[float], list[float]]:
        """The bank with the roles of analysis and synthesis exchanged."""
        return self.rec_lo[::-1], self.rec_hi[::-1], self.dec_lo[::-1], self.dec_hi[::-1]

    def get_filters_coeffs(self) -> tuple[list[float], list[float], list[float], list[float]]:
        """Return :attr:`filter_bank`; the legacy name."""
        return self.filter_bank

    def get_reverse_filters_coeffs(self) -> tuple[list[float], list[float], list[float], list[float]]:
        """Return :attr:`inverse_filter_bank`; the legacy name."""
        return self.inverse_filter_bank

    # --- properties -------------------------------------------------------------------------------

    @property
    def short_name(self) -> str:
        """Short name of the family."""
        return self.short_family_name

    @property
    def family_number(self) -> int:
        """:attr:`number`, under the other name that PyWavelets has for it."""
        return self.number

    @property
    def exact(self) -> bool:
        """True if all taps are exact numbers, so that schemes can be compared exactly."""
        return all(is_exact(value) for filt in self.bank for value in filt)

    @cached_property
    def polyphase(self) -> PolyphaseMatrix:
        """The 2×2 analysis matrix on ``[x[2n], x[2n + 1]]``."""
        lo, hi = self.bank[:2]
        return PolyphaseMatrix([[_phase(lo, 1), _phase(lo, 0)], [_phase(hi, 1), _phase(hi, 0)]])

    @cached_property
    def synthesis(self) -> PolyphaseMatrix:
        """The 2×2 synthesis matrix; ``synthesis @ polyphase`` is the identity."""
        lo, hi = self.bank[2:]
        advance = (len(lo) - 2) // 2
        return PolyphaseMatrix([[_phase(lo, p).shift(advance), _phase(hi, p).shift(advance)] for p in (0, 1)])

    @cached_property
    def reconstruction_error(self) -> float:
        """The largest deviation of ``synthesis @ polyphase`` from the identity."""
        return (self.synthesis @ self.polyphase).distance(PolyphaseMatrix.identity(2))

    def wavefun(self, level: int = 8) -> tuple[NDArray[np.float64], ...]:
        """Sample the scaling function and the wavelet by the cascade algorithm.

        Parameters
        ----------
        level : int, optional
            Number of refinements, from 1 to 20; the samples are ``2**-level`` apart. The default is 8.

        Returns
        -------
        tuple of ndarray
            ``(phi, psi, x)`` for an orthogonal wavelet, else ``(phi_d, psi_d, phi_r, psi_r, x)`` for
            decomposition (d) and reconstruction (r).
        """
        if not isinstance(level, (int, np.integer)):
            raise ArgumentTypeError(f"level must be an integer from 1 to 20, got {level!r}")
        if not 1 <= level <= 20:
            raise ArgumentError(f"level must be an integer from 1 to 20, got {level}")
        step = 2**level
        # One sample before and one after the support, so that plots start and end at zero.
        length = max(step * (self.dec_len - 1) + self.orthogonal, (step - 1) * (self.dec_len - 1) + 3)
        sides = [(self.rec_lo, self.rec_hi)]
        sign = 1.0
        if not self.orthogonal:
            sides.insert(0, (self.dec_lo[::-1], self.dec_hi[::-1]))
            # The sign of a biorthogonal high-pass filter is arbitrary: make the main lobe positive.
            sign = 1.0 if max(self.rec_hi, key=lambda tap: abs(round(tap, 12))) > 0 else -1.0
        curves = []
        for low, high in sides:
            curves += [_cascade(low, low, level, length), sign * _cascade(low, high, level, length)]
        return (*curves, np.arange(length) / step)

    def __repr__(self) -> str:
        if self.short_family_name:
            return f"Wavelet({self.name!r})"
        return f"Wavelet({self.name!r}, filter_bank={self.filter_bank!r})"

    def __str__(self) -> str:
        return "\n".join(
            [
                f"Wavelet {self.name}",
                *([f"  Family name:    {self.family_name}"] if self.family_name else []),
                *([f"  Short name:     {self.short_family_name}"] if self.family_name else []),
                f"  Filters length: {self.dec_len}",
                f"  Orthogonal:     {self.orthogonal}",
                f"  Biorthogonal:   {self.biorthogonal}",
                f"  Symmetry:       {self.symmetry}",
                f"  Moments:        {self.vanishing_moments_psi} of psi, {self.vanishing_moments_phi} of phi",
                f"  Exact:          {self.exact}",
            ]
        )


def as_wavelet(given: object) -> Wavelet:
    """Return a Wavelet for a name, a Wavelet, or an object with a ``filter_bank``, as in PyWavelets."""
    if isinstance(given, Wavelet):
        return given
    if isinstance(given, str):
        return Wavelet(given)
    name, bank = getattr(given, "name", ""), getattr(given, "filter_bank", None)
    if bank is None and getattr(given, "short_family_name", None) in CONTINUOUS:
        raise ArgumentError(
            f"A ContinuousWavelet object was provided, {name}, but the DWT needs a discrete wavelet;"
            " undula.wavelist(kind='discrete') lists them, and cwt takes continuous ones"
        )
    if bank is None:
        raise ArgumentTypeError(
            f"a wavelet must be a name or an undula.Wavelet, got {given!r:.60} ({type(given).__name__})"
        )
    if is_discrete(name) and np.array_equal(Wavelet(name).filter_bank, bank):
        return Wavelet(name)
    return Wavelet(name, filter_bank=bank)


@cache
def _facts(name: str) -> dict[str, Any]:
    """Return the attributes of a built-in wavelet, with its hash, as numbers with roots take long to hash."""
    row = record(name)
    facts = {field.name: getattr(row, field.name) for field in fields(row) if field.name != "family"}
    return facts | {"short_family_name": row.family, "_hash": hash((row.name, row.bank))}


def _phase(taps: Sequence[Number], parity: int) -> Laurent:
    return Laurent({-j: value for j, value in enumerate(taps[parity::2])}, 1)


def _cascade(low: Sequence[float], last: Sequence[float], level: int, length: int) -> NDArray[np.float64]:
    """Return the samples of a function: ``level`` synthesis steps applied to one coefficient, scaled."""
    samples = np.ones(1)
    for taps in [last] + [low] * (level - 1):
        spread = np.zeros(2 * samples.size - 1)
        spread[::2] = samples
        samples = np.convolve(spread, np.asarray(taps))
    curve = np.zeros(length)
    samples = samples[: length - 1]
    curve[1 : 1 + samples.size] = samples * 2 ** (level / 2)
    return curve


def _checked_bank(filter_bank: Any) -> Bank:
    source = getattr(filter_bank, "filter_bank", filter_bank)
    source = source() if callable(source) else source
    if isinstance(source, str) or not isinstance(source, Iterable):
        raise ArgumentTypeError(
            "filter_bank must be four filters (dec_lo, dec_hi, rec_lo, rec_hi), got"
            f" {source!r} ({type(source).__name__})"
        )
    filters = list(source) if getattr(source, "ndim", 1) else []
    if len(filters) != 4:
        raise ArgumentError(
            f"filter_bank must be four filters (dec_lo, dec_hi, rec_lo, rec_hi), got {len(filters)}"
        )
    for taps in filters:
        if isinstance(taps, str) or not isinstance(taps, Iterable):
            raise ArgumentTypeError(f"a filter must be a sequence of numbers, got {taps!r}")
        refuse_gradients(taps, "a filter")
    bank = cast(Bank, tuple(tuple(as_number(tap) for tap in taps) for taps in filters))
    lengths = [len(taps) for taps in bank]
    if len(set(lengths)) != 1 or lengths[0] == 0 or lengths[0] % 2:
        raise ArgumentError(
            "the four filters must have one even length, got lengths"
            f" {lengths}; pad the shorter ones with zeros (see Wavelet.from_polyphase)"
        )
    return bank


def _measured_properties(bank: Bank) -> dict[str, object]:
    """Return the properties of a custom bank, measured from its filters."""
    trial = object.__new__(Wavelet)
    trial.__dict__["bank"] = bank
    with np.errstate(over="ignore", invalid="ignore"):
        error = trial.reconstruction_error
    if not error <= RECONSTRUCTION_TOLERANCE:
        raise ReconstructionError(
            f"these filters do not reconstruct: synthesis after analysis differs from the identity by"
            f" {error:.3g} (at most {RECONSTRUCTION_TOLERANCE:g} is accepted); check their order"
            f" (dec_lo, dec_hi, rec_lo, rec_hi), signs and alignment"
        )
    lo, hi, rec_lo, rec_hi = (np.array([float(tap) for tap in taps]) for taps in bank)
    orthogonal = bool(np.allclose(lo[::-1], rec_lo, atol=1e-7) and np.allclose(hi[::-1], rec_hi, atol=1e-7))
    symmetric = all(Laurent(dict(enumerate(taps)), 1).symmetry for taps in bank[:2])
    return {
        "orthogonal": orthogonal,
        "biorthogonal": True,
        "symmetry": "symmetric" if symmetric else "asymmetric",
        "vanishing_moments_psi": _vanishing_moments(hi),
        "vanishing_moments_phi": _vanishing_moments(rec_hi),
    }


def _vanishing_moments(taps: NDArray[np.float64]) -> int:
    """Count the leading moments Σ hi[k], Σ k hi[k], Σ k² hi[k], … that are zero."""
    places = np.arange(taps.size) - (taps.size - 1) / 2
    scale = np.abs(taps).sum() or 1.0
    count = 0
    while count < taps.size:
        weights = places**count
        if abs(taps @ weights) > 1e-7 * scale * max(1.0, float(np.abs(weights).max())):
            break
        count += 1
    return count
