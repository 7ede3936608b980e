"""The data table of built-in wavelets: names, families and filters.

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
from ..errors import UnknownNameError

__all__ = ["Bank", "WaveletRecord", "families", "record", "wavelist"]

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


@cache
def record(name: str) -> WaveletRecord:
    """Return the row of a built-in wavelet; names are not case-sensitive."""
    if not isinstance(name, str) or name.lower().strip() not in _table():
        hint = f"families: {', '.join(families())}; undula.wavelist() lists all names"
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


def wavelist(family: str | Sequence[str] | None = None, kind: str = "all") -> list[str]:
    """List the names of the built-in wavelets.

    Parameters
    ----------
    family : str or sequence of str, optional
        Short names of families. The default is all of them.
    kind : {"all", "continuous", "discrete"}, optional
        All built-in wavelets are discrete, so ``"continuous"`` gives an empty list. The default is ``"all"``.

    Returns
    -------
    list of str

    Examples
    --------
    >>> wavelist("coif")[:3]
    ['coif1', 'coif2', 'coif3']
    """
    if kind not in ("all", "discrete", "continuous"):
        raise UnknownNameError("kind of wavelet", kind, ("all", "discrete", "continuous"))
    chosen = families() if family is None else [family] if isinstance(family, str) else list(family)
    for name in chosen:
        if name not in families():
            raise UnknownNameError("wavelet family", name, families())
    if kind == "continuous":
        return []
    return [name for name, row in _table().items() if row["family"] in chosen]


def families(short: bool = True) -> list[str]:
    """List the names of the wavelet families.

    Parameters
    ----------
    short : bool, optional
        True (default) for short names such as ``"db"``, False for full names.

    Returns
    -------
    list of str

    Examples
    --------
    >>> families()[:4]
    ['haar', 'db', 'sym', 'coif']
    """
    return list(dict.fromkeys(str(row["family" if short else "family_name"]) for row in _table().values()))
