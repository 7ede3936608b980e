"""What a filter says if it found no noise: that it changed nothing."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import NoNoiseWarning
from .collaborative import Collaborative
from .directional import Directional
from .shrinkage import Shrink

if TYPE_CHECKING:
    from .pipeline import Pipeline

__all__ = ["NoiseReport", "estimates_noise", "filtering_parts", "is_unchanged", "warn_of_no_noise"]

COMPARED = 4096  # samples that are compared first: images with noise differ in one of them
ROUNDING = 64  # times the precision of floats is what a transform and its inverse may change


_filters_parts: ContextVar[bool] = ContextVar("filters_parts", default=False)


@contextmanager
def filtering_parts() -> Iterator[None]:
    """Say nothing of what is filtered, as planes are, that are parts of something."""
    token = _filters_parts.set(True)
    try:
        yield
    finally:
        _filters_parts.reset(token)


def warn_of_no_noise(stacklevel: int = 3) -> None:
    """Warn that an image or a video is unchanged, because no noise was found in it."""
    if not _filters_parts.get():
        warnings.warn(
            "no noise was found, so nothing was changed; pass sigma= if there is some",
            NoNoiseWarning,
            stacklevel=stacklevel,
        )


class NoiseReport:
    """Warns once if a pipeline that estimates noise has left an image or a frame unchanged.

    Parameters
    ----------
    pipeline : Pipeline
    sigma : float or sequence of float, optional
        The noise, if the caller knows it. Then nothing is reported.
    """

    def __init__(self, pipeline: Pipeline, sigma: Any) -> None:
        self._lock = Lock()  # Frames are filtered by several threads.
        self.silent = sigma is not None or not estimates_noise(pipeline)

    def compare(self, image: Any, result: Any) -> None:
        """Compare an array of NumPy with its result; others may be on a device, which nobody waits for."""
        if self.silent or not isinstance(image, np.ndarray) or not isinstance(result, np.ndarray):
            return
        if is_unchanged(image, result):
            with self._lock:
                silent, self.silent = self.silent, True
            if not silent:
                warn_of_no_noise(4)


def estimates_noise(pipeline: Pipeline) -> bool:
    """Return whether all stages of a pipeline remove noise that they estimate."""
    return bool(pipeline.stages) and all(map(_estimates, pipeline.stages))


def is_unchanged(image: Any, result: Any) -> bool:
    """Return whether a result is its image, up to rounding."""
    image, result = np.ma.getdata(image), np.ma.getdata(result)
    sparse = slice(None, None, max(1, image.size // COMPARED))
    return _equal(image.flat[sparse], result.flat[sparse]) and _equal(image, result)


def _estimates(stage: Any) -> bool:
    """Return whether a stage removes noise that it estimates."""
    return (
        isinstance(stage, (Shrink, Directional, Collaborative))
        and stage.sigma is None
        and stage.strength > 0
        and getattr(stage, "threshold", None) is None
    )


def _equal(image: Any, result: Any) -> bool:
    """Return whether arrays are equal up to rounding."""
    if image.dtype.kind != "f":
        return bool((image == result).all())
    finite = np.isfinite(image)
    largest = np.abs(image, where=finite, out=np.zeros_like(image)).max()
    limit = largest * (ROUNDING * np.finfo(image.dtype).eps)
    with np.errstate(invalid="ignore", over="ignore"):
        return bool((~finite | (np.abs(result - image) <= limit)).all())
