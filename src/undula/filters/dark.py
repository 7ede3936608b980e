"""What is black around a scan: it stays as it is, and out of all statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..transforms.arrays import as_array
from .arrays import arrays_for
from .subjects import Subject

__all__ = ["lit"]


def lit(image: Any, channel_axis: Any, axes: Any, mask: Any) -> tuple[Any, Any]:
    """Where samples are valid, and where they count: not where they are zero, and where they are not dark."""
    return _not_zero(image, channel_axis, axes, mask), _not_dark(image, channel_axis, axes)


def _not_dark(image: Any, channel_axis: Any, axes: Any) -> Any:
    """Where something was seen: what is nearly black, mostly all around, says nothing about speckle."""
    if not arrays_for(image).host:
        return None
    x = as_array(image, "image")
    channel = Subject._channel_of(x.shape, channel_axis, axes)
    with np.errstate(invalid="ignore"):
        bright = x > 0.03 * np.nanmax(x, initial=0, where=np.isfinite(x) if x.dtype.kind == "f" else True)
    if channel is not None:
        bright = np.broadcast_to(bright.any(axis=channel, keepdims=True), x.shape)
    return bright if 0.01 < bright.mean() < 1 else None


def _not_zero(image: Any, channel_axis: Any, axes: Any, mask: Any) -> Any:
    """Where an image is not black; None where it never is, and on devices, where nobody waits to know."""
    if not arrays_for(image).host:
        return mask
    x = as_array(image, "image")
    channel = Subject._channel_of(x.shape, channel_axis, axes)
    found = x != 0
    if channel is not None:
        found = np.broadcast_to(found.any(axis=channel, keepdims=True), x.shape)
    if found.all() or not found.any():
        return mask
    if mask is None:
        return found
    return found & Subject.aligned(mask, np, x.shape, channel, axes)
