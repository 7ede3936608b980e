"""Transforms as text: arguments of PyTorch's operators are tensors, numbers and strings.

The text holds everything, so that compiled and exported programs can be run by another process.
"""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ...algebra import Number, Surd
from ...lowering.spec import TransformSpec
from ...wavelets import Wavelet

__all__ = ["adjoint_of", "decoded", "encoded", "moved"]


@lru_cache(maxsize=512)
def encoded(spec: TransformSpec) -> str:
    """Return a transform as text.

    Examples
    --------
    >>> from undula.lowering.spec import transform_spec
    >>> encoded(transform_spec(3, "db2", "zero", (1,)))
    '["dwt", [1], ["db2"], ["zero"], 1, 1.0, false, false]'
    """
    wavelets = [_entry(wavelet) for wavelet in spec.wavelets]
    numbers = spec.dilation, spec.gain, spec.causal, spec.dual
    return json.dumps([spec.family, spec.axes, wavelets, spec.modes, *numbers])


@lru_cache(maxsize=512)
def decoded(text: str) -> TransformSpec:
    """Return the transform that :func:`encoded` wrote.

    Examples
    --------
    >>> decoded('["dwt", [1], ["db2"], ["zero"], 1, 1.0, false, false]').axes
    (1,)
    """
    family, axes, wavelets, modes, *numbers = json.loads(text)
    banks = tuple(map(_wavelet, wavelets))
    return TransformSpec(family, tuple(axes), banks, tuple(modes), *numbers)


@lru_cache(maxsize=512)
def adjoint_of(transform: str) -> str:
    """Return the transform of the adjoints of a transform."""
    return encoded(decoded(transform).adjoint())


@lru_cache(maxsize=512)
def moved(transform: str, place: int) -> str:
    """Return a transform for arrays with another axis at a place."""
    spec = decoded(transform)
    return encoded(replace(spec, axes=tuple(axis + (axis >= place) for axis in spec.axes)))


def _entry(wavelet: Wavelet) -> Any:
    """Return the name of a built-in wavelet, or the name and all taps of another one."""
    if wavelet.short_family_name:
        return wavelet.name
    return [wavelet.name, [[_tap_entry(tap) for tap in taps] for taps in wavelet.bank]]


def _wavelet(entry: Any) -> Wavelet:
    if isinstance(entry, str):
        return Wavelet(entry)
    name, bank = entry
    return Wavelet(name, [[_tap(tap) for tap in taps] for taps in bank])


def _tap_entry(tap: Number) -> Any:
    """Return a float as it is, and the parts of an exact number as text."""
    if isinstance(tap, float):
        return tap
    return [str(tap.a), str(tap.b)] if isinstance(tap, Surd) else str(tap)


def _tap(entry: Any) -> Number:
    if isinstance(entry, list):
        return Surd(*map(Fraction, entry))
    return Fraction(entry) if isinstance(entry, str) else float(entry)
