"""The data table of built-in wavelets: names and families of all wavelets, filters of the discrete ones.

The filters are stored in ``table.json``, which ``tools/make_table.py`` writes. Filters of rational wavelets
are stored exactly, as integers ``n`` for the taps ``√2 · n / denominator``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

from ..algebra import Number, surd
from ..errors import ArgumentError, UnknownNameError

__all__ = [
    "CONTINUOUS",
    "FAMILIES",
    "Bank",
    "WaveletRecord",
    "continuous_names",
    "families",
    "is_discrete",
    "record",
    "wavelist",
]

# In the order of PyWavelets, and then the families that it does not have.
FAMILIES = {
    "haar": "Haar",
    "db": "Daubechies",
    "sym": "Symlets",
    "coif": "Coiflets",
    "bior": "Biorthogonal",
    "rbio": "Reverse biorthogonal",
    "dmey": "Discrete Meyer (FIR Approximation)",
    "gaus": "Gaussian",
    "mexh": "Mexican hat wavelet",
    "morl": "Morlet wavelet",
    "cgau": "Complex Gaussian wavelets",
    "shan": "Shannon wavelets",
    "fbsp": "Frequency B-Spline wavelets",
    "cmor": "Complex Morlet wavelets",
    "cdf": "Cohen-Daubechies-Feauveau",
    "dd": "Deslauriers-Dubuc",
    "burt": "Burt",
    "d": "Daubechies D4",
    "qshift": "Q-shift",
}
CONTINUOUS = ("gaus", "mexh", "morl", "cgau", "shan", "fbsp", "cmor")
Bank = tuple[tuple[Number, ...], tuple[Number, ...], tuple[Number, ...], tuple[Number, ...]]


@dataclass(frozen=True)
class WaveletRecord:
    """A row of the table."""

    name: str
    family: str
    family_name: str
    number: int
    symmetry: str
    orthogonal: bool
    biorthogonal: bool
    vanishing_moments_psi: int | None
    vanishing_moments_phi: int | None
    bank: Bank


@cache
def _table() -> dict[str, dict[str, object]]:
    text = Path(__file__).with_name("table.json").read_text(encoding="utf-8")
    wavelets: dict[str, dict[str, object]] = json.loads(text)["wavelets"]
    return wavelets


def is_discrete(name: str) -> bool:
    """Return whether this is the name of a built-in discrete wavelet."""
    return name in _table()


@cache
def record(name: str) -> WaveletRecord:
    """Return the row of a built-in discrete wavelet; names are not case-sensitive."""
    if not isinstance(name, str) or name.lower().strip() not in _table():
        discrete = [family for family in FAMILIES if family not in CONTINUOUS]
        hint = f"families: {', '.join(discrete)}; undula.wavelist(kind='discrete') lists all names"
        if isinstance(name, str) and name.lower().strip()[:4] in CONTINUOUS:
            raise _continuous_error(name.lower().strip())
        raise UnknownNameError("wavelet", name, _table(), hint)
    name = name.lower().strip()
    row = dict(_table()[name])
    denominator = row.pop("denominator", None)

    def numbers(key: str) -> tuple[Number, ...]:
        values = row.pop(key, None)
        assert isinstance(values, list)
        if denominator is None:
            return tuple(float(value) for value in values)
        return tuple(surd(0, Fraction(value, int(str(denominator)))) for value in values)

    dec_lo = numbers("dec_lo")
    rec_lo = numbers("rec_lo") if "rec_lo" in row else dec_lo[::-1]
    # The high-pass filters are the low-pass ones of the other side with alternating signs.
    sign = int(str(row.pop("sign", 1)))
    dec_hi = tuple(-sign * value if k % 2 == 0 else sign * value for k, value in enumerate(rec_lo))
    rec_hi = tuple(sign * value if k % 2 == 0 else -sign * value for k, value in enumerate(dec_lo))
    return WaveletRecord(name=name, bank=(dec_lo, dec_hi, rec_lo, rec_hi), **row)  # type: ignore[arg-type]


def _continuous_error(name: str) -> ArgumentError:
    """Return the error for the name of a continuous wavelet, with the words of PyWavelets."""
    advice = (
        f"use ContinuousWavelet({name!r}), with cwt; wavelist(kind='discrete') lists wavelets for the DWT"
    )
    if name in continuous_names():
        return ArgumentError(f"The `Wavelet` class is for discrete wavelets, {name} is continuous; {advice}")
    error = ArgumentError(f"Invalid wavelet name {name!r}.")  # PyWavelets' tests expect this and no more.
    error.add_note(f"If this is a continuous wavelet, {advice}")
    return error


def continuous_names() -> list[str]:
    """Return the names of the continuous wavelets; families with parameters have one name."""
    orders = {"gaus": range(1, 9), "cgau": range(1, 9)}
    return [f"{family}{order}" for family in CONTINUOUS for order in orders.get(family, [""])]


def _alphabetical(name: str) -> tuple[str, float]:
    """Return the key that sorts ``db2`` before ``db10``."""
    family = name.rstrip("0123456789.")
    return family, float(name[len(family) :] or 0)


def wavelist(family: str | Sequence[str] | None = None, kind: str = "all") -> list[str]:
    """List the names of the built-in wavelets.

    Parameters
    ----------
    family : str or sequence of str, optional
        Short names of families, whose wavelets are listed in the order of the families. By default, all
        wavelets are listed in alphabetical order.
    kind : {"all", "continuous", "discrete"}, optional
        The kind of wavelets. As in PyWavelets, it is ignored for a single family, whose wavelets are of one
        kind. The default is ``"all"``.

    Returns
    -------
    list of str
        The names of PyWavelets in its order, among them the discrete wavelets that it does not have.

    Examples
    --------
    >>> wavelist("coif")[:3]
    ['coif1', 'coif2', 'coif3']
    >>> wavelist(kind="continuous")[-4:]
    ['gaus8', 'mexh', 'morl', 'shan']
    """
    kinds = {"all": {*FAMILIES}, "continuous": {*CONTINUOUS}, "discrete": {*FAMILIES} - {*CONTINUOUS}}
    if kind not in kinds:
        raise UnknownNameError("kind of wavelet", kind, kinds)
    requested = [family] if isinstance(family, str) else list(FAMILIES) if family is None else list(family)
    for name in requested:
        if name not in FAMILIES:
            raise UnknownNameError("wavelet family", name, FAMILIES)
    if not isinstance(family, str):
        requested = [name for name in requested if name in kinds[kind]]
    members: dict[str, list[str]] = {name: [] for name in FAMILIES}
    for name, row in _table().items():
        members[str(row["family"])].append(name)
    for name in continuous_names():
        members[name.rstrip("12345678")].append(name)
    names = [name for short in requested for name in members[short]]
    return sorted(names, key=_alphabetical) if family is None else names


def families(short: bool = True) -> list[str]:
    """List the names of the wavelet families.

    Parameters
    ----------
    short : bool, optional
        True (default) for short names such as ``"db"``, False for full names.

    Returns
    -------
    list of str
        The families of PyWavelets in its order, and then those that it does not have.

    Examples
    --------
    >>> families()[:4]
    ['haar', 'db', 'sym', 'coif']
    """
    return list(FAMILIES if short else FAMILIES.values())
