"""Wavelets as pytorch_wavelets takes them: by name, as an object, or by the filters of one direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..wavelets import Wavelet, as_wavelet

__all__ = ["layer_wavelets"]


def layer_wavelets(wave: Any, ndim: int, inverse: bool) -> tuple[Wavelet, ...]:
    """Return a wavelet for each axis.

    Parameters
    ----------
    wave : str, Wavelet, or sequence of filters
        A wavelet for all axes; ``(low, high)``, the filters of the layer for all axes; or those of one axis
        after the other, that of columns first.
    ndim : int
        The number of axes.
    inverse : bool
        Whether filters are those of synthesis.

    Examples
    --------
    >>> haar = as_wavelet("haar")
    >>> [wavelet.name for wavelet in layer_wavelets((haar.dec_lo, haar.dec_hi), 2, False)]
    ['custom', 'custom']
    """
    if isinstance(wave, str) or not isinstance(wave, (list, tuple)):
        return (as_wavelet(wave),) * ndim
    if len(wave) == 2:
        return (_bank(wave[0], wave[1], inverse),) * ndim
    if len(wave) == 2 * ndim:
        return tuple(_bank(wave[2 * k], wave[2 * k + 1], inverse) for k in range(ndim))
    raise ArgumentError(
        f"wave must be a wavelet, two filters, or two for each of {ndim} axes; got {len(wave)} filters"
    )


def _bank(low: Sequence[float], high: Sequence[float], inverse: bool) -> Wavelet:
    """Return the wavelet of two filters; those of the other direction follow, as aliases have to cancel."""
    taps = [np.asarray(filt, np.float64).ravel() for filt in (low, high)]
    signs = (-1.0) ** np.arange(max(filt.size for filt in taps))
    first, second = (np.pad(filt, (0, signs.size - filt.size)) for filt in taps)
    sign = -1.0 if inverse else 1.0
    others = [-sign * signs * second, sign * signs * first]
    product = np.convolve(first, others[0]) + np.convolve(second, others[1])
    gain = product[np.abs(product).argmax()] / 2 or 1.0
    rest = [filt / gain for filt in others]
    bank = [*rest, first, second] if inverse else [first, second, *rest]
    return Wavelet("custom", [filt.tolist() for filt in bank])
