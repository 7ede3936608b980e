"""How coefficients are nested: the forms of PyWavelets' functions, and details by key.

Three orders of the same bands occur:

    nested   as a function returns them: ``[cA, (cH, cV, cD), …]`` and so on
    keyed    ``[approximation, details of the coarsest level, …]``, the details of a level as a dictionary
    flat     the approximation, then details by level, coarsest first, in the order of their keys
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ..arrays import numpy_array
from ..errors import ArgumentError, ArgumentTypeError
from .axes import one_axis, two_axes

__all__ = ["FORMS", "Form", "detail_keys", "from_keys", "keyed_as", "to_keys"]

FORMATS = ("wavedec", "wavedec2", "wavedecn")
_TUPLE = ("da", "ad", "dd")  # the order of a wavedec2 tuple: horizontal, vertical, diagonal

NESTING = {
    "wavedec": "[cA, cD of the coarsest level, …]",
    "wavedec2": "[cA, (cH, cV, cD) of the coarsest level, …], details three arrays each",
    "wavedecn": "[approximation, details of the coarsest level, …], details a dictionary of arrays each",
}


def detail_keys(axes: int) -> list[str]:
    """Return the keys of the details of one level, in alphabetical order.

    Examples
    --------
    >>> detail_keys(2)
    ['ad', 'da', 'dd']
    """
    return ["".join(letters) for letters in product("ad", repeat=axes)][1:]


def to_keys(coeffs: Sequence[Any], read: Callable[[Any], Any] = numpy_array) -> list[Any]:
    """Return coefficients in any nesting with the details of each level as a dictionary of arrays.

    ``read`` converts what the caller passed to an array.
    """
    if isinstance(coeffs, (str, Mapping, np.ndarray)) or not isinstance(coeffs, Sequence) or not coeffs:
        raise ArgumentTypeError(
            f"coefficients are a list [approximation, details, …], got {type(coeffs).__name__}"
        )
    if coeffs[0] is None:
        raise ArgumentError("the approximation is needed, got None")
    levels = []
    for number, level in enumerate(coeffs[1:], 1):
        if isinstance(level, Mapping):
            named = dict(level)
        elif isinstance(level, (tuple, list)):
            if len(level) != 3:
                raise ArgumentError(f"details {number} are three arrays (cH, cV, cD), got {len(level)}")
            named = dict(zip(_TUPLE, level, strict=True))
        else:
            named = {"d": level}
        missing = [key for key, array in named.items() if array is None]
        if missing or not named:
            raise ArgumentError(f"details {number} are needed as arrays, got None for {missing}")
        levels.append({key: read(named[key]) for key in sorted(named)})
    return [read(coeffs[0]), *levels]


def from_keys(coeffs: Sequence[Any], output_format: str) -> list[Any]:
    """Return coefficients with details by key in the nesting of ``wavedec``, ``wavedec2`` or ``wavedecn``."""
    if output_format not in FORMATS:
        raise ArgumentError(f"output_format is one of {FORMATS}, got {output_format!r}")
    if output_format == "wavedec":
        return [coeffs[0], *(level["d"] for level in coeffs[1:])]
    if output_format == "wavedec2":
        return [coeffs[0], *(tuple(level[key] for key in _TUPLE) for level in coeffs[1:])]
    return list(coeffs)


def keyed_as(coeffs: Any, form: str) -> list[Any] | None:
    """Return coefficients with details by key; None if they are not nested in this form."""
    if not isinstance(coeffs, (list, tuple)) or not coeffs:
        return None
    keyed: list[Any] = [coeffs[0]]
    for level in coeffs[1:]:
        if form == "wavedec":
            keyed.append({"d": level})
        elif form == "wavedec2" and isinstance(level, (tuple, list)) and len(level) == 3:
            keyed.append(dict(zip(_TUPLE, level, strict=True)))
        elif form == "wavedecn" and isinstance(level, Mapping):
            keyed.append(dict(level))
        elif level is None:
            keyed.append({})
        else:
            return None
    return keyed


@dataclass(frozen=True)
class Form:
    """The arguments and results of one of the functions.

    Parameters
    ----------
    name : str
        Of the function.
    multilevel : str
        The function of several levels that nests details in the same way.
    expected : str
        How an error begins that tells of an array without axes.
    """

    name: str
    multilevel: str
    expected: str

    @property
    def single(self) -> bool:
        """Whether there is one level only."""
        return self.name != self.multilevel

    def axes(self, axes: Any) -> Any:
        """Return the axes that a caller gave, checked for how many there are."""
        if self.multilevel == "wavedec":
            return one_axis(axes)
        return two_axes(axes) if self.multilevel == "wavedec2" else axes

    def keyed(self, nested: Any, low: str) -> list[Any] | None:
        """Return coefficients with details by key; None where they are not nested in this form."""
        if self.name == "dwtn":
            if not isinstance(nested, Mapping) or low not in nested:
                return None
            return [nested[low], {key: band for key, band in nested.items() if key != low}]
        keyed = keyed_as(nested, self.multilevel)
        return None if keyed is None or (self.single and len(keyed) != 2) else keyed

    def from_keyed(self, keyed: Sequence[Any]) -> Any:
        """Return coefficients in this form."""
        nested = from_keys(keyed, self.multilevel)
        if not self.single:
            return nested
        if self.name == "dwtn":
            low = "a" * len(next(iter(nested[1])))
            return {low: nested[0], **nested[1]}
        return tuple(nested)

    def from_flat(self, flat: list[Any], keys: Sequence[str]) -> Any:
        """Return bands in flat order in this form; ``keys`` are those of the details of a level."""
        if self.multilevel == "wavedec":
            return tuple(flat) if self.single else flat
        if self.multilevel == "wavedec2":
            if self.single:
                return flat[0], (flat[2], flat[1], flat[3])
            details = [(flat[k + 1], flat[k], flat[k + 2]) for k in range(1, len(flat), 3)]
            return [flat[0], *details]
        count = len(keys)
        by_key = [dict(zip(keys, flat[k : k + count], strict=True)) for k in range(1, len(flat), count)]
        return {"a" * len(keys[0]): flat[0], **by_key[0]} if self.single else [flat[0], *by_key]


FORMS = {
    form.name: form
    for form in (
        Form("dwt", "wavedec", "Input data must be at least 1D"),
        Form("dwt2", "wavedec2", "Expected at least 2D input data"),
        Form("dwtn", "wavedecn", "Input data must be at least 1D"),
        Form("wavedec", "wavedec", "Expected at least 1D input data"),
        Form("wavedec2", "wavedec2", "Expected at least 1D input data"),
        Form("wavedecn", "wavedecn", "Expected at least 1D input data"),
    )
}
