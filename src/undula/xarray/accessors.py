"""The accessor ``undula``: the functions of this package as methods of xarray objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import xarray as xr

from . import filtering, transforms

__all__ = ["DataArrayAccessor", "DataTreeAccessor", "DatasetAccessor"]


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of an accessor that passes the object to a function."""

    @wraps(function)
    def method(self: Accessor, *args: Any, **kwargs: Any) -> Any:
        return function(self.obj, *args, **kwargs)

    return method


class Accessor:
    """Methods of an object, which are functions of :mod:`undula.xarray` with the object as first argument."""

    def __init__(self, obj: Any) -> None:
        self.obj = obj


@xr.register_dataarray_accessor("undula")
class DataArrayAccessor(Accessor):
    """The accessor ``DataArray.undula``: transforms and filters.

    Parameters
    ----------
    obj : DataArray
        The object whose methods these are.

    Examples
    --------
    >>> x = xr.DataArray([1.0, 3.0], dims="t")
    >>> x.undula.dwt("haar", "t").undula.idwt().round(9).values
    array([1., 3.])
    """

    dwt = _method(transforms.dwt)
    wavedec = _method(transforms.wavedec)
    lwt = _method(transforms.lwt)
    denoise = _method(filtering.denoise)
    despeckle = _method(filtering.despeckle)
    sharpen = _method(filtering.sharpen)
    enhance = _method(filtering.enhance)
    apply_pipeline = _method(filtering.apply_pipeline)
    denoise_wavelet = _method(filtering.denoise_wavelet)
    estimate_sigma = _method(filtering.estimate_sigma)


@xr.register_dataset_accessor("undula")
class DatasetAccessor(DataArrayAccessor):
    """The accessor ``Dataset.undula``: transforms and filters of variables, and the inverse of one level.

    Parameters
    ----------
    obj : Dataset
        The object whose methods these are.

    Examples
    --------
    >>> x = xr.Dataset({"height": ("t", [1.0, 3.0])})
    >>> x.undula.dwt("haar", "t").undula.idwt()["height"].round(9).values
    array([1., 3.])
    """

    idwt = _method(transforms.idwt)


@xr.register_datatree_accessor("undula")
class DataTreeAccessor(Accessor):
    """The accessor ``DataTree.undula``: inverse transforms.

    Parameters
    ----------
    obj : DataTree
        The object whose methods these are.

    Examples
    --------
    >>> x = xr.DataArray([1.0, 3.0], dims="t")
    >>> x.undula.wavedec("haar", "t").undula.waverec().round(9).values
    array([1., 3.])
    """

    idwt = _method(transforms.idwt)
    waverec = _method(transforms.waverec)
    ilwt = _method(transforms.ilwt)
