"""Transforms and filters of arrays in Zarr stores, which may be larger than memory.

:func:`transform` writes coefficients, :func:`inverse` reads them back, :func:`pyramid` writes images of
OME-Zarr, and :func:`apply` filters an array. All work region by region: a task reads, computes and writes a
region, on threads, on processes of this machine or on a cluster of Dask. An output has its name when it is
complete. Until then it is called ``out.zarr.partial``, and the same call resumes it.

The packages of the extra ``scale`` are imported when they are needed.
"""

from .filtering import apply
from .functions import inverse, read_coefficients, transform
from .pyramids import level_shapes, pyramid, refine

__all__ = ["apply", "inverse", "level_shapes", "pyramid", "read_coefficients", "refine", "transform"]
