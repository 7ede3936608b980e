"""How much memory a filter takes: the one estimate, by which commands and Studio refuse what does not fit.

    pipeline, shape ──compiled_pipeline──▶ program ──nbytes──▶ its buffers, outputs and scratch memory

Programs are laid out before they run, so their memory is known. That of the calls around them is estimated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..engines.base import TransformOptions, computes_on_host
from ..engines.cpu.engine import CPU
from ..engines.memory import MEMORY_ADVICE, available_memory, memory_size
from ..errors import NotEnoughMemoryError
from .calibration import CalibratedPipeline
from .pipeline import Pipeline
from .planes import AUTO, image_layout
from .programs import ImageRecipe, compiled_pipeline
from .spectrum import ESTIMATED

__all__ = ["check_memory", "working_memory"]

# Arrays in the working precision, besides those of the program.
PHOTON_ARRAYS = 24  # stabilized, halved and restored samples, and memory kept of each size of image
SPECTRUM_ARRAYS = 12  # windows in double precision
CALIBRATION_ARRAYS = 10  # the probe, two results, and their differences in double precision


def working_memory(
    work: Any,
    shape: tuple[int, ...],
    dtype: Any,
    *,
    channel_axis: int | str | None = AUTO,
    axes: Sequence[int] | None = None,
    sigma: bool = False,
    mask: bool = False,
    backend: str = "auto",
) -> int:
    """Return the bytes that filtering an image takes on the host, besides the image.

    Parameters
    ----------
    work : Pipeline or other callable
        The estimate of filters that are no pipelines is that of their result.
    shape : tuple of int
    dtype : dtype
    channel_axis, axes
        As for a call of the pipeline.
    sigma, mask : bool
        Whether the noise is given, and whether there is a mask.
    backend : str
    """
    dtype = np.dtype(dtype)
    samples = math.prod(shape)
    calibrated = isinstance(work, CalibratedPipeline)
    pipeline = work.pipeline if calibrated else work
    if not isinstance(pipeline, Pipeline) or not computes_on_host(backend):
        return int(samples * dtype.itemsize)
    layout = image_layout(shape, dtype.name, channel_axis, axes, pipeline.colors)
    arrays = CALIBRATION_ARRAYS * calibrated
    if pipeline.photons is not None:
        pipeline, sigma = replace(pipeline, photons=None, gain=None), True
        layout = replace(layout, dtype=layout.working_dtype)
        arrays += PHOTON_ARRAYS
    if pipeline.spectrum == ESTIMATED:
        pipeline = replace(pipeline, spectrum=None)
        arrays += SPECTRUM_ARRAYS
    recipe = ImageRecipe(layout, sigma or calibrated, mask)
    program: Any = compiled_pipeline(pipeline, recipe, CPU, TransformOptions("auto", "auto"))
    itemsize = np.dtype(layout.working_dtype).itemsize
    return int(program.nbytes) + samples * (arrays * itemsize + 2 * mask)


def check_memory(nbytes: int, what: str) -> None:
    """Raise an error unless ``nbytes`` are available; ``what`` names the work that needs them."""
    available = available_memory()
    if available is not None and nbytes > available:
        raise NotEnoughMemoryError(
            f"{what} takes {memory_size(nbytes)} of memory, and {memory_size(available)} are available:"
            f" {MEMORY_ADVICE}"
        )
