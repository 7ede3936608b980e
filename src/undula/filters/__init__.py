"""Filters: what is done to coefficients between decomposition and reconstruction.

A :class:`Pipeline` has a wavelet, a number of levels, and stages; the functions are pipelines that are ready
to use.
"""

from .functions import denoise, denoise_wavelet, despeckle, enhance, sharpen
from .noise import estimate_sigma
from .pictures import picture
from .pipeline import Pipeline, Views
from .shifts import cycle_spin
from .stages import METHODS, PLACES, RULES, STAGES, Blur, Contrast, Gain, Laplace, Shrink, Stage, Unsharp
from .threshold import threshold, threshold_firm
from .trace import Trace

__all__ = [
    "METHODS",
    "PLACES",
    "RULES",
    "STAGES",
    "Blur",
    "Contrast",
    "Gain",
    "Laplace",
    "Pipeline",
    "Shrink",
    "Stage",
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
