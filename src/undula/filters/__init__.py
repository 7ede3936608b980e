"""Filters between decomposition and reconstruction.

A :class:`Pipeline` has a wavelet, a number of levels, and stages. The functions are ready-made pipelines.
"""

import warnings
from typing import Any

from . import stages
from .calibration import Calibration, calibrate
from .functions import denoise, denoise_frames, despeckle, enhance, sharpen
from .noise import estimate_sigma
from .pictures import picture
from .pipeline import Pipeline, Views
from .poisson import PoissonNoise, estimate_poisson
from .scikit_image import denoise_wavelet
from .shifts import cycle_spin
from .spectrum import estimate_spectrum
from .stages import *  # noqa: F403
from .threshold import threshold, threshold_firm
from .trace import Trace

__all__ = [
    "Calibration",
    "Pipeline",
    "PoissonNoise",
    "Trace",
    "Views",
    "calibrate",
    "cycle_spin",
    "denoise",
    "denoise_frames",
    "denoise_wavelet",
    "despeckle",
    "enhance",
    "estimate_poisson",
    "estimate_sigma",
    "estimate_spectrum",
    "picture",
    "sharpen",
    "threshold",
    "threshold_firm",
]
__all__ += stages.__all__


def __getattr__(name: str) -> Any:
    """Return ``FilterStage`` for ``Stage``, its former name."""
    if name == "Stage":
        warnings.warn("undula.filters.Stage is deprecated; use FilterStage", DeprecationWarning, stacklevel=2)
        return stages.FilterStage
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
