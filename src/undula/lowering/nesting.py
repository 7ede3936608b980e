"""How coefficients are nested: the one place that knows, for functions, plans and engines.

The same bands occur in three arrangements:

    nested   as a function returns them: ``[cA, (cH, cV, cD), …]`` and so on
    keyed    ``[approximation, details of the coarsest level, …]``, the details of a level as a dictionary
    flat     the approximation, then details by level, coarsest first, in the order of their keys

Callers pass and get nested coefficients, ``engines.dispatch`` works with keyed ones, and engines run on flat
ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np

from ..arrays import NUMPY, ArrayLibrary, numpy_array
from ..errors import ArgumentError, ArgumentTypeError
from .axis_arguments import one_axis, two_axes

__all__ = [
    "FORMS",
    "TUPLE_KEYS",
    "Form",
    "arrays_of",
    "band_keys",
    "details_by_level",
    "flat_as",
    "flat_bands",
    "from_keys",
    "keyed_as",
    "keyed_bands",
    "out_name",
    "shapes_of",
    "to_keys",
]

Item = TypeVar("Item")

FORMATS = ("wavedec", "wavedec2", "wavedecn")
TUPLE_KEYS = ("da", "ad", "dd")  # the order of a wavedec2 tuple: horizontal, vertical, diagonal

NESTING = {
    "wavedec": "[cA, cD of the coarsest level, …]",
    "wavedec2": "[cA, (cH, cV, cD) of the coarsest level, …], details three arrays each",
    "wavedecn": "[approximation, details of the coarsest level, …], details a dictionary of arrays each",
}


def band_keys(axes: int) -> list[str]:
    """Return the keys of the bands of one level in alphabetical order: the approximation, then details.

    Examples
    --------
    >>> band_keys(2)
    ['aa', 'ad', 'da', 'dd']
    """
    return ["".join(letters) for letters in product("ad", repeat=axes)]


_TUPLE_PLACES = [band_keys(2).index(key) for key in TUPLE_KEYS]  # of the bands of one level in flat order

# --- flat and keyed -------------------------------------------------------------------------------


def details_by_level(details: Sequence[Item], count: int) -> list[Sequence[Item]]:
    """Divide details in flat order into levels of ``count`` bands, coarsest first.

    Examples
    --------
    >>> details_by_level(["ad2", "da2", "dd2", "ad1", "da1", "dd1"], 3)
    [['ad2', 'da2', 'dd2'], ['ad1', 'da1', 'dd1']]
    """
    return [details[k : k + count] for k in range(0, len(details), count)]


def keyed_bands(flat: Sequence[Any], keys: Sequence[str]) -> list[Any]:
    """Return bands in flat order as keyed coefficients; ``keys`` are those of the details of a level."""
    count = len(keys)
    starts = range(1, len(flat), count)  # This runs in every call, so levels are divided on the spot.
    return [flat[0], *[dict(zip(keys, flat[k : k + count], strict=True)) for k in starts]]


def flat_bands(keyed: Sequence[Any], keys: Sequence[str]) -> list[Any]:
    """Return keyed coefficients in flat order, None for missing ones; the inverse of :func:`keyed_bands`."""
    return [keyed[0], *[level.get(key) for level in keyed[1:] for key in keys]]


def arrays_of(keyed: Sequence[Any]) -> list[Any]:
    """Return all bands that keyed coefficients hold, None included, in the order of the dictionaries."""
    return [keyed[0], *[band for level in keyed[1:] for band in level.values()]]


def shapes_of(keyed: Sequence[Any], library: ArrayLibrary = NUMPY) -> list[Any]:
    """Return the shapes of keyed coefficients, arrays of one library; None for those that are None."""
    shape_of = library.shape
    approximation = None if keyed[0] is None else shape_of(keyed[0])
    details = [
        {key: None if band is None else shape_of(band) for key, band in level.items()} for level in keyed[1:]
    ]
    return [approximation, *details]


# --- nested ---------------------------------------------------------------------------------------


def to_keys(coeffs: Sequence[Any], read: Callable[[Any], Any] = numpy_array) -> list[Any]:
    """Return complete coefficients, nested in any form, as keyed ones.

    Parameters
    ----------
    coeffs : sequence
        Coefficients as ``wavedec``, ``wavedec2`` or ``wavedecn`` returns them.
    read : callable, default numpy_array
        Converts what the caller passed as a band to an array.
    """
    if isinstance(coeffs, (str, Mapping, np.ndarray)) or not isinstance(coeffs, Sequence):
        raise ArgumentTypeError(
            f"coefficients are a list [approximation, details, …], got {type(coeffs).__name__}"
        )
    if not coeffs:
        raise ArgumentError("coefficients are a list [approximation, details, …], got an empty list")
    if coeffs[0] is None:
        raise ArgumentError("the approximation is needed, got None")
    levels = []
    for number, level in enumerate(coeffs[1:], 1):
        if isinstance(level, Mapping):
            named = dict(level)
        elif isinstance(level, (tuple, list)):
            if len(level) != 3:
                raise ArgumentError(f"details {number} are three arrays (cH, cV, cD), got {len(level)}")
            named = dict(zip(TUPLE_KEYS, level, strict=True))
        else:
            named = {"d": level}
        missing = [key for key, array in named.items() if array is None]
        if missing or not named:
            raise ArgumentError(f"details {number} are needed as arrays, got None for {missing}")
        levels.append({key: read(named[key]) for key in sorted(named)})
    return [read(coeffs[0]), *levels]


def from_keys(coeffs: Sequence[Any], output_format: str) -> list[Any]:
    """Return keyed coefficients as ``wavedec``, ``wavedec2`` or ``wavedecn`` nests them."""
    if output_format not in FORMATS:
        raise ArgumentError(f"output_format is one of {FORMATS}, got {output_format!r}")
    try:
        if output_format == "wavedec":
            return [coeffs[0], *(level["d"] for level in coeffs[1:])]
        if output_format == "wavedec2":
            return [coeffs[0], *(tuple(level[key] for key in TUPLE_KEYS) for level in coeffs[1:])]
    except KeyError:
        keys = "d" if output_format == "wavedec" else ", ".join(TUPLE_KEYS)
        raise ArgumentError(
            f"output_format {output_format!r} is for details {keys}, got {', '.join(map(str, coeffs[1]))}"
        ) from None
    return list(coeffs)


def keyed_as(coeffs: Any, form: str) -> list[Any] | None:
    """Return coefficients nested in this form as keyed ones; None if they are nested in another way.

    A level that is None has no details.
    """
    if not isinstance(coeffs, (list, tuple)) or not coeffs:
        return None
    keyed: list[Any] = [coeffs[0]]
    for level in coeffs[1:]:
        if form == "wavedec" and not isinstance(level, Mapping):
            keyed.append({"d": level})
        elif form == "wavedec2" and isinstance(level, (tuple, list)) and len(level) == 3:
            keyed.append(dict(zip(TUPLE_KEYS, level, strict=True)))
        elif form == "wavedecn" and isinstance(level, Mapping):
            keyed.append(dict(level))
        elif level is None:
            keyed.append({})
        else:
            return None
    return keyed


def flat_as(coeffs: Any, form: str, keys: Sequence[str]) -> list[Any] | None:
    """Return coefficients nested in this form in flat order; None if they are nested in another way.

    This is the short way for arrays that are checked later; ``keys`` are those of the details of a level.
    """
    try:
        if form == "wavedec":
            return list(coeffs)
        flat = [coeffs[0]]
        for level in coeffs[1:]:
            if len(level) != len(keys):
                return None
            if form == "wavedec2":
                horizontal, vertical, diagonal = level
                flat += (vertical, horizontal, diagonal)
            else:
                flat += [level[key] for key in keys]
    except (TypeError, ValueError, KeyError, IndexError):
        return None
    return flat


def out_name(out: Any, number: int, key: str) -> str:
    """Return how a caller writes the array of ``out``, nested in any form, for a band.

    Examples
    --------
    >>> out_name([[0], ([1], [2], [3])], 1, "ad")
    'out[1][1]'
    """
    if isinstance(out, Mapping):
        return f"out[{key or 'a' * len(next(iter(out)))!r}]"
    level = out[number]
    if not number or not isinstance(level, (Mapping, list, tuple)):
        return f"out[{number}]"
    return (
        f"out[{number}][{key!r}]" if isinstance(level, Mapping) else f"out[{number}][{TUPLE_KEYS.index(key)}]"
    )


@dataclass(frozen=True)
class Form:
    """How one of the functions of the DWT nests coefficients.

    Parameters
    ----------
    name : str
        Name of the function.
    multilevel : {"wavedec", "wavedec2", "wavedecn"}
        The function of several levels that nests details in the same way.
    expected : str
        Start of the error message for 0-d input.
    """

    name: str
    multilevel: str
    expected: str

    @cached_property
    def single(self) -> bool:
        """Whether the function computes a single level."""
        return self.name != self.multilevel

    def axes(self, axes: Any) -> Any:
        """Return the axes that the caller passed, or raise an error unless they are as many as needed."""
        if self.multilevel == "wavedec":
            return one_axis(axes)
        return two_axes(axes) if self.multilevel == "wavedec2" else axes

    def keyed(self, nested: Any, low: str) -> list[Any] | None:
        """Return coefficients in this form as keyed ones; None if they are nested in another way.

        Parameters
        ----------
        nested : object
            What the caller passed.
        low : str
            Key of the approximation.
        """
        if self.name == "dwtn":
            if not isinstance(nested, Mapping) or low not in nested:
                return None
            return [nested[low], {key: band for key, band in nested.items() if key != low}]
        keyed = keyed_as(nested, self.multilevel)
        return None if keyed is None or (self.single and len(keyed) != 2) else keyed

    def from_bands(self, bands: dict[str, Any]) -> Any:
        """Return the bands of a single level, by key, in this form."""
        if self.name == "dwtn":
            return bands
        low, *details = bands
        return self.from_keyed([bands[low], {key: bands[key] for key in details}])

    def from_keyed(self, keyed: Sequence[Any]) -> Any:
        """Return keyed coefficients in this form."""
        nested = from_keys(keyed, self.multilevel)
        if not self.single:
            return nested
        if self.name == "dwtn":
            low = "a" * len(next(iter(nested[1])))
            return {low: nested[0], **nested[1]}
        return tuple(nested)

    def flat_nesting(self, keys: Sequence[str], levels: int) -> Callable[[Sequence[Any]], Any]:
        """Return a function that nests bands in flat order; ``keys`` are those of the details of a level."""
        if self.multilevel == "wavedec":
            return tuple if self.single else list
        if self.multilevel == "wavedecn":
            if self.single:
                names = "a" * len(keys[0]), *keys
                return lambda flat: dict(zip(names, flat, strict=True))
            return lambda flat: keyed_bands(flat, keys)
        parts = [itemgetter(*(k + place for place in _TUPLE_PLACES)) for k in range(0, 3 * levels, 3)]
        if self.single:
            return lambda flat: (flat[0], parts[0](flat))
        return lambda flat: [flat[0], *[details(flat) for details in parts]]

    def listed(self, nested: Any) -> tuple[list[Any], tuple[Any, ...]] | None:
        """Return all bands in the order of the form, and the keys of each dictionary.

        This is the short way for coefficients in plain lists, tuples and dictionaries; None for others.
        """
        if type(nested) not in (list, tuple):
            is_level = self.name == "dwtn" and type(nested) is dict
            return (list(nested.values()), tuple(nested)) if is_level else None
        if self.multilevel == "wavedec":
            return list(nested), ()
        if self.single and (len(nested) != 2 or self.name == "dwtn"):
            return None
        bands, keys = list(nested[:1]), []
        for level in nested[1:]:
            if self.multilevel == "wavedec2":
                if type(level) not in (list, tuple) or len(level) != 3:
                    return None
                bands += level
            elif type(level) is dict:
                bands += level.values()
                keys.append(tuple(level))
            else:
                return None
        return bands, tuple(keys)


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
