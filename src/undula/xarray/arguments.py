"""The arguments of callers: names of dimensions, values for each of them, and what is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import EllipsisType
from typing import Any

import xarray as xr

from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from ..wavelets import Wavelet

__all__ = ["Dims", "PerDim", "check_array", "checked_dims", "keeps_attrs", "numeric_variables", "per_dim"]

Dims = str | Iterable[str] | EllipsisType | None
PerDim = str | Wavelet | Sequence[Any] | Mapping[str, Any]


def check_array(x: object) -> None:
    """Raise an error unless this is a DataArray of numbers."""
    if not isinstance(x, xr.DataArray):
        raise ArgumentTypeError(f"a DataArray or a Dataset is needed, got {type(x).__name__}")
    if x.dtype.kind not in "biufc":
        raise ArgumentTypeError(
            f"numbers are needed, but {x.name!r} has dtype {x.dtype}; convert it, as by astype(float)"
        )


def checked_dims(x: xr.DataArray | xr.Dataset, dim: Dims) -> tuple[str, ...]:
    """Return the names of dimensions that a caller passed; all dimensions for None or ``...``."""
    known = tuple(str(name) for name in x.dims)
    names = known if dim is None or dim is ... else (dim,) if isinstance(dim, str) else tuple(dim)
    for name in names:
        if name not in known:
            raise UnknownNameError("dimension", name, known)
    if not names or len(set(names)) < len(names):
        raise ArgumentError(f"at least one dimension is needed, each once; got dim={dim!r}, known: {known}")
    return names


def per_dim(values: Any, dims: tuple[str, ...], what: str) -> Any:
    """Return the values of a mapping in the order of the dimensions; anything else as it is."""
    if not isinstance(values, Mapping):
        return values
    for name in values:
        if name not in dims:
            raise UnknownNameError("dimension", name, dims)
    missing = [name for name in dims if name not in values]
    if missing:
        raise ArgumentError(f"{what}={values!r} has no value for the dimensions {missing}")
    return tuple(values[name] for name in dims)


def keeps_attrs(keep_attrs: bool | None) -> bool:
    """Return whether attributes are kept: as passed, or by the option of xarray, or else True."""
    option = xr.get_options()["keep_attrs"] if keep_attrs is None else keep_attrs
    return True if option == "default" else bool(option)


def numeric_variables(x: xr.Dataset, dim: Dims) -> list[str]:
    """Return the names of the numeric variables of a dataset that have all dimensions."""
    needed = set() if dim is None or dim is ... else set(checked_dims(x, dim))
    numeric = [str(name) for name, array in x.data_vars.items() if array.dtype.kind in "iufc" and array.ndim]
    names = [name for name in numeric if needed <= set(x[name].dims)]
    if not names:
        raise ArgumentError(
            f"no numeric variable has all dimensions {sorted(needed)}; numeric variables: "
            + (", ".join(f"{name} {x[name].dims}" for name in numeric) or "none")
        )
    return names
