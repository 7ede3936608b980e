"""Transforms and filters of xarray objects, by the names of dimensions.

Importing this package registers the accessor ``undula`` of ``DataArray``, ``Dataset`` and ``DataTree``.
The functions of :mod:`undula` compute everything, lazily for Dask arrays. This package keeps names,
coordinates and attributes, and stores with the coefficients what is needed to restore them.
"""

from ..errors import MissingExtraError, install_hint

try:
    from xarray import DataTree as _DataTree  # noqa: F401 (the newest name that is needed)
except ImportError as error:
    raise MissingExtraError(
        f"undula.xarray needs xarray 2024.10 or later: {install_hint('scale')}"
    ) from error

from .accessors import DataArrayAccessor, DatasetAccessor, DataTreeAccessor
from .filtering import apply_pipeline, denoise, denoise_wavelet, despeckle, enhance, estimate_sigma, sharpen
from .transforms import dwt, idwt, ilwt, lwt, wavedec, waverec

__all__ = [
    "DataArrayAccessor",
    "DataTreeAccessor",
    "DatasetAccessor",
    "apply_pipeline",
    "denoise",
    "denoise_wavelet",
    "despeckle",
    "dwt",
    "enhance",
    "estimate_sigma",
    "idwt",
    "ilwt",
    "lwt",
    "sharpen",
    "wavedec",
    "waverec",
]
