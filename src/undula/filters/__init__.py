"""Filters between decomposition and reconstruction.

A :class:`Pipeline` has a wavelet, a number of levels, and stages. The functions are ready-made pipelines.
"""

import warnings
from typing import Any

from .functions import denoise, despeckle, enhance, sharpen
from .noise import estimate_sigma
from .pictures import picture
from .pipeline import Pipeline, Views
from .scikit_image import denoise_wavelet
from .shifts import cycle_spin
from .stages import (
    METHODS,
    PLACES,
    RULES,
    STAGES,
    Blur,
    Contrast,
    FilterStage,
    Gain,
    Laplace,
    Shrink,
    Unsharp,
)
from .threshold import threshold, threshold_firm
from .trace import Trace

__all__ = [
    "METHODS",
    "PLACES",
    "RULES",
    "STAGES",
    "Blur",
    "Contrast",
    "FilterStage",
    "Gain",
    "Laplace",
    "Pipeline",
    "Shrink",
    "Trace",
    "Unsharp",
    "Views",
    "cycle_spin",
    "denoise",
    "denoise_wavelet",
    "despeckle",
    "enhance",
    "estimate_sigma",
    "picture",
    "sharpen",
    "threshold",
    "threshold_firm",
]


def __getattr__(name: str) -> Any:
    """Return ``FilterStage`` for ``Stage``, its former name."""
    if name == "Stage":
        warnings.warn("undula.filters.Stage is deprecated; use FilterStage", DeprecationWarning, stacklevel=2)
        return FilterStage
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
