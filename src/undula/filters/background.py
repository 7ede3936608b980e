"""The black background of scans, which stays unchanged and is left out of all statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import given_array, numpy_array
from .planes import align_mask, find_channel_axis

__all__ = ["scan_masks"]

DARK_SHARE = 0.03  # Samples up to this share of the maximum are dark.


def scan_masks(image: Any, channel_axis: Any, axes: Any, mask: Any) -> tuple[Any, Any]:
    """Find the samples of a scan that are valid, and those that count in statistics.

    Samples of zero are not valid. Dark samples, mostly around the scanned sector, say nothing about speckle
    and do not count. A pixel is neither if one of its channels is bright.

    Returns
    -------
    valid, counted : array of bool or None
        ``valid`` is ``mask``, and ``counted`` is None, if nothing is to be excluded. On a device, nothing is
        excluded, because the host would have to wait for the device.
    """
    if not isinstance(given_array(image, "image"), np.ndarray):
        return mask, None
    x = numpy_array(image, "image")
    channel = find_channel_axis(x.shape, channel_axis, axes)

    def in_any_channel(samples: Any) -> Any:
        if channel is None:
            return samples
        return np.broadcast_to(samples.any(axis=channel, keepdims=True), x.shape)

    given = np.True_ if mask is None else align_mask(mask, np, x.shape, channel, axes)
    known = given & np.isfinite(x) if x.dtype.kind == "f" else given
    with np.errstate(invalid="ignore"):
        bright = in_any_channel((x > DARK_SHARE * np.nanmax(x, initial=0, where=known)) & known)
    counted = bright if 0.01 < bright.mean() < 1 else None
    valid = in_any_channel((x != 0) & given)
    return (mask if valid.all() or not valid.any() else valid & given), counted
