"""The DWT and the LWT of DataArrays and Datasets, and back.

Coefficients of several levels are a ``DataTree``: the nodes ``approximation`` and ``level_1`` (the finest),
``level_2`` … are datasets of bands, named by their keys, and ``samples`` has the coordinates of the samples.
The attribute ``undula`` of the root describes the transform in JSON, which all formats of files can store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from xarray import DataArray, Dataset, DataTree

from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from ..functions import dwtn, ilwtn, lwtn, wavedecn, waverecn
from ..lowering.spec import TransformSpec, transform_spec
from ..wavelets import Wavelet
from .arguments import Dims, PerDim, check_array, checked_dims, keeps_attrs, numeric_variables, per_dim
from .coordinates import band_coordinates, filter_centres, positions

__all__ = ["dwt", "idwt", "ilwt", "lwt", "wavedec", "waverec"]

METADATA = "undula"  # The attribute that describes the transform.
SAMPLES = "samples"  # The node of the coordinates of the samples; in a dataset, the ending of their names.
UNCHANGED = "unchanged"  # The node of the variables of a dataset that are not transformed.
HIGH = "_detail"  # The ending of the dimensions of high-pass coefficients of the LWT.


def dwt(
    x: DataArray | Dataset,
    wavelet: PerDim,
    dim: Dims = None,
    *,
    mode: Any = "symmetric",
    keep_attrs: bool | None = None,
    backend: str = "auto",
) -> Any:
    """Compute one level of the DWT along some dimensions.

    Parameters
    ----------
    x : DataArray or Dataset
        Samples. Those in Dask arrays are transformed lazily.
    wavelet : Wavelet or str, or a sequence or mapping of them
        The wavelet, or one for each dimension, as ``{dim: wavelet}`` or in the order of ``dim``.
    dim : str or iterable of str, optional
        Dimensions to transform. The default is all dimensions.
    mode : str, or a sequence or mapping of str, default "symmetric"
        How lines go on beyond their ends: one of ``undula.MODES``, or one for each dimension.
    keep_attrs : bool, optional
        Whether bands have the attributes of ``x``. The default is the option of xarray, or else True.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    Dataset or DataTree
        Bands by key: ``ad`` is low along the first dimension and high along the second. The coordinates of
        the samples are in it as well, with names that end in ``_samples``. For a Dataset, a DataTree with
        such a dataset for each numeric variable that has the dimensions; other variables are in the node
        ``unchanged``.

    Examples
    --------
    >>> x = DataArray([1.0, 3.0, 5.0, 5.0], coords={"t": [0, 10, 20, 30]})
    >>> bands = dwt(x, "haar", "t")
    >>> bands.t.values, bands.d.values.round(3)
    (array([ 5., 25.]), array([-1.414,  0.   ]))
    """
    if isinstance(x, Dataset):
        options = {"mode": mode, "keep_attrs": keep_attrs, "backend": backend}
        return _transform_variables(x, dim, "dwt", lambda v: DataTree(dwt(v, wavelet, dim, **options)))
    call = _Forward.of(x, wavelet, dim, mode, keep_attrs, lifted=False)
    arrays = dwtn(x.data, call.spec.wavelets, call.spec.modes, call.spec.axes, backend=backend)
    stored = call.samples()
    names = {*stored.coords, *(dim for dim in stored.dims if dim in call.dims)}
    stored = stored.rename({name: f"{name}_{SAMPLES}" for name in names})
    bands = call.bands(arrays, 1, "ad").assign_coords(stored.coords)
    return bands.assign_attrs(call.metadata("dwt", 1))


def idwt(
    coeffs: Dataset | DataTree,
    wavelet: PerDim | None = None,
    *,
    keep_attrs: bool | None = None,
    backend: str = "auto",
) -> Any:
    """Compute the inverse of :func:`dwt`.

    Parameters
    ----------
    coeffs : Dataset or DataTree
        Coefficients as :func:`dwt` returns them. Details that are missing are zero.
    wavelet : Wavelet or str, or a sequence or mapping of them, optional
        The wavelet, which is needed only if it is not a built-in one.
    keep_attrs : bool, optional
        Whether the result has the attributes of the approximation. The default is the option of xarray, or
        else True.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    DataArray or Dataset
        Samples with their shape, dtype, name and coordinates. Integers are rounded and clipped.

    Examples
    --------
    >>> x = DataArray([3, 1, 2], coords={"t": [0.0, 0.5, 1.0]}, name="x")
    >>> idwt(dwt(x, "db2")).identical(x)
    True
    """
    description = _description(coeffs, "dwt")
    if "variables" in description:
        invert = partial(idwt, wavelet=wavelet, keep_attrs=keep_attrs, backend=backend)
        return _invert_variables(coeffs, description["variables"], invert)
    bands = coeffs.to_dataset() if isinstance(coeffs, DataTree) else coeffs
    names = [name for name in bands.coords if str(name).endswith(f"_{SAMPLES}")]
    stored = bands[names]
    stored = stored.rename({n: str(n).removesuffix(f"_{SAMPLES}") for n in {*names, *stored.dims}})
    approximation = bands.drop_vars(names)["a" * len(description["sizes"])]
    return _samples(description, approximation, [bands], stored, wavelet, keep_attrs, backend)


def wavedec(
    x: DataArray | Dataset,
    wavelet: PerDim,
    dim: Dims = None,
    *,
    mode: Any = "symmetric",
    level: int | None = None,
    keep_attrs: bool | None = None,
    backend: str = "auto",
) -> DataTree:
    """Compute several levels of the DWT along some dimensions.

    Parameters
    ----------
    x : DataArray or Dataset
        Samples. Those in Dask arrays are transformed lazily.
    wavelet : Wavelet or str, or a sequence or mapping of them
        The wavelet, or one for each dimension, as ``{dim: wavelet}`` or in the order of ``dim``.
    dim : str or iterable of str, optional
        Dimensions to transform. The default is all dimensions.
    mode : str, or a sequence or mapping of str, default "symmetric"
        How lines go on beyond their ends: one of ``undula.MODES``, or one for each dimension.
    level : int, optional
        How often the approximation is decomposed. The default is as often as is useful.
    keep_attrs : bool, optional
        Whether bands have the attributes of ``x``. The default is the option of xarray, or else True.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    DataTree
        The nodes ``approximation``, and ``level_1``, the finest, to ``level_n`` with details, by key;
        ``samples`` has the coordinates of the samples. For a Dataset, a node with these for each numeric
        variable that has the dimensions; other variables are in the node ``unchanged``.

    Examples
    --------
    >>> x = DataArray(np.eye(8), dims=("y", "x"), name="image")
    >>> tree = wavedec(x, "haar", level=2)
    >>> list(tree.children), list(tree["level_1"].data_vars), dict(tree["level_1"].sizes)
    (['approximation', 'level_2', 'level_1', 'samples'], ['ad', 'da', 'dd'], {'y': 4, 'x': 4})
    """
    if isinstance(x, Dataset):
        options = {"mode": mode, "level": level, "keep_attrs": keep_attrs, "backend": backend}
        return _transform_variables(x, dim, "wavedec", lambda v: wavedec(v, wavelet, dim, **options))
    call = _Forward.of(x, wavelet, dim, mode, keep_attrs, lifted=False)
    spec = call.spec
    return call.tree(wavedecn(x.data, spec.wavelets, spec.modes, level, spec.axes, backend=backend))


def waverec(
    coeffs: DataTree,
    wavelet: PerDim | None = None,
    *,
    keep_attrs: bool | None = None,
    backend: str = "auto",
) -> Any:
    """Compute the inverse of :func:`wavedec`.

    Parameters
    ----------
    coeffs : DataTree
        Coefficients as :func:`wavedec` returns them. Details that are missing, and missing nodes of them, are
        zero.
    wavelet : Wavelet or str, or a sequence or mapping of them, optional
        The wavelet, which is needed only if it is not a built-in one.
    keep_attrs : bool, optional
        Whether the result has the attributes of the approximation. The default is the option of xarray, or
        else True.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    DataArray or Dataset
        Samples with their shape, dtype, name and coordinates. Integers are rounded and clipped.

    Examples
    --------
    >>> x = DataArray(np.arange(15, dtype="int16"), dims="t", name="x", attrs={"units": "m"})
    >>> waverec(wavedec(x, "db2", level=2)).identical(x)
    True
    """
    return _invert_tree(coeffs, "wavedec", wavelet, keep_attrs, backend)


def lwt(
    x: DataArray | Dataset,
    wavelet: PerDim,
    dim: Dims = None,
    *,
    level: int | None = 1,
    mode: Any = "symmetric",
    dtype: DTypeLike | None = None,
    keep_attrs: bool | None = None,
    backend: str = "auto",
) -> DataTree:
    """Compute the LWT along some dimensions: as many coefficients as samples, and integers exactly.

    Parameters
    ----------
    x : DataArray or Dataset
        Samples. Those in Dask arrays are transformed lazily.
    wavelet : Wavelet or str, or a sequence or mapping of them
        The wavelet, or one for each dimension, as ``{dim: wavelet}`` or in the order of ``dim``.
    dim : str or iterable of str, optional
        Dimensions to transform. The default is all dimensions.
    level : int or None, default 1
        How often the approximation is decomposed; None for as often as there is something to decompose.
    mode : str, or a sequence or mapping of str, default "symmetric"
        How lines go on beyond their ends: one of ``undula.LWT_MODES``, or one for each dimension.
    dtype : {int16, int32, int64}, optional
        Dtype of the coefficients of integers. The default for 8 and 16 bits is the smallest that provably
        holds whatever such samples can lead to in this shape; for 32 and 64 bits, as many. Samples that could
        lead to more are an error; those on a device are not checked.
    keep_attrs : bool, optional
        Whether bands have the attributes of ``x``. The default is the option of xarray, or else True.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    DataTree
        Nodes as those of :func:`wavedec`. High-pass coefficients along ``x`` have the dimension ``x_detail``,
        since there is one less of them if the length is odd.

    Examples
    --------
    >>> x = DataArray([1, 2, 3, 4, 5], coords={"t": range(5)})
    >>> tree = lwt(x, "cdf53")
    >>> tree["approximation"].t.values, tree["level_1"].t_detail.values
    (array([0., 2., 4.]), array([1., 3.]))
    """
    if isinstance(x, Dataset):
        options = {"level": level, "mode": mode, "dtype": dtype, "keep_attrs": keep_attrs, "backend": backend}
        return _transform_variables(x, dim, "lwt", lambda v: lwt(v, wavelet, dim, **options))
    call = _Forward.of(x, wavelet, dim, mode, keep_attrs, lifted=True)
    spec = call.spec
    return call.tree(lwtn(x.data, spec.wavelets, level, spec.modes, spec.axes, dtype=dtype, backend=backend))


def ilwt(
    coeffs: DataTree,
    wavelet: PerDim | None = None,
    *,
    keep_attrs: bool | None = None,
    backend: str = "auto",
) -> Any:
    """Compute the inverse of :func:`lwt`.

    Parameters
    ----------
    coeffs : DataTree
        Coefficients as :func:`lwt` returns them. Details that are missing are zero.
    wavelet : Wavelet or str, optional
        The wavelet, or one for each dimension. The default is that of the attributes of the coefficients.
    keep_attrs : bool, optional
        Whether the result has the attributes of the approximation. The default is the option of xarray, or
        else True.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

    Returns
    -------
    DataArray or Dataset
        Samples with their shape, dtype, name and coordinates.

    Examples
    --------
    >>> x = DataArray(np.arange(15, dtype="uint8").reshape(3, 5), dims=("y", "x"))
    >>> ilwt(lwt(x, "cdf53", level=2)).identical(x)
    True
    """
    return _invert_tree(coeffs, "lwt", wavelet, keep_attrs, backend)


@dataclass(frozen=True)
class _Forward:
    """A transform of a DataArray."""

    x: DataArray
    dims: tuple[str, ...]
    spec: TransformSpec
    attrs: Mapping[Any, Any]

    @staticmethod
    def of(
        x: DataArray, wavelet: PerDim, dim: Dims, mode: Any, keep_attrs: bool | None, *, lifted: bool
    ) -> _Forward:
        """Return the transform that a caller asks for."""
        check_array(x)
        dims = checked_dims(x, dim)
        values = per_dim(wavelet, dims, "wavelet"), per_dim(mode, dims, "mode")
        spec = transform_spec(x.ndim, *values, x.get_axis_num(dims), lifted)
        names = {str(name) for name in (*x.dims, *x.coords)}
        reserved = {*spec.keys, *(f"{name}{HIGH if lifted else '_' + SAMPLES}" for name in names)}
        if names & reserved:
            raise ArgumentError(
                f"bands use the names {sorted(names & reserved)}; rename these dimensions or coordinates"
            )
        return _Forward(x, dims, spec, x.attrs if keeps_attrs(keep_attrs) else {})

    def tree(self, coeffs: list[Any]) -> DataTree:
        """Return the tree of coefficients that are nested as :func:`undula.wavedecn` nests them."""
        levels = len(coeffs) - 1
        nodes = {"/": Dataset(attrs=self.metadata("lwt" if self.spec.lifted else "wavedec", levels))}
        nodes["approximation"] = self.bands({self.spec.keys[0]: coeffs[0]}, levels, "a")
        for level, details in zip(range(levels, 0, -1), coeffs[1:], strict=True):
            nodes[f"level_{level}"] = self.bands(details, level, "d" if len(self.dims) == 1 else "ad")
        return DataTree.from_dict({**nodes, SAMPLES: self.samples()})

    def bands(self, arrays: Mapping[str, Any], level: int, letters: str) -> Dataset:
        """Return bands of one level. Those of the DWT are at the centres of the filters in ``letters``."""
        lifted = self.spec.lifted
        variables = {
            key: (_band_dims(self.x.dims, self.dims, key, lifted), array, self.attrs)
            for key, array in arrays.items()
        }
        bands = Dataset(variables, coords=_other_coords(self.x, self.dims))
        low, high = {}, {}
        for dim, wavelet, mode in zip(self.dims, self.spec.wavelets, self.spec.modes, strict=True):
            centres = filter_centres(wavelet, mode, lifted)
            at = {"a": centres.delay, "d": centres.high, "ad": (centres.low + centres.high) / 2}
            if not level:  # The formula of positions would round.
                low[dim] = np.arange(float(bands.sizes[dim]))
            elif dim in bands.sizes:
                centre = at["a" if lifted else letters]
                low[dim] = positions(centres.delay, level, centre, bands.sizes[dim])
            if f"{dim}{HIGH}" in bands.sizes and lifted:
                high[dim] = positions(centres.delay, level, at["d"], bands.sizes[f"{dim}{HIGH}"])
        coords = band_coordinates(self.x, self.dims, low) | band_coordinates(self.x, self.dims, high, HIGH)
        return bands.assign_coords(coords)

    def samples(self) -> Dataset:
        """Return the coordinates of the samples along transformed dimensions."""
        return self.x.coords.to_dataset().drop_vars(_other_coords(self.x, self.dims))

    def metadata(self, transform: str, levels: int) -> dict[str, str]:
        """Return the attribute that describes the transform."""
        description = {
            "transform": transform,
            "sizes": {dim: self.x.sizes[dim] for dim in self.dims},
            "wavelets": [wavelet.name if _is_builtin(wavelet) else None for wavelet in self.spec.wavelets],
            "modes": self.spec.modes,
            "levels": levels,
            "dtype": self.x.dtype.str,
            "name": self.x.name,
        }
        return {METADATA: json.dumps(description)}


def _invert_tree(
    tree: DataTree, transform: str, wavelet: PerDim | None, keep_attrs: bool | None, backend: str
) -> Any:
    """Return the samples of a tree of coefficients."""
    description = _description(tree, transform)
    if "variables" in description:
        rest = transform, wavelet, keep_attrs, backend
        return _invert_variables(tree, description["variables"], lambda node: _invert_tree(node, *rest))
    approximation = tree["approximation"].to_dataset()["a" * len(description["sizes"])]
    names = [f"level_{level}" for level in range(1, description["levels"] + 1)]
    levels = [tree[name].to_dataset() if name in tree.children else Dataset() for name in names]
    stored = tree[SAMPLES].to_dataset()
    return _samples(description, approximation, levels, stored, wavelet, keep_attrs, backend)


def _samples(
    description: dict[str, Any],
    approximation: DataArray,
    levels: Sequence[Dataset],
    stored: Dataset,
    wavelet: PerDim | None,
    keep_attrs: bool | None,
    backend: str,
) -> DataArray:
    """Return the samples of coefficients.

    Parameters
    ----------
    description : dict
        How the coefficients were made.
    approximation : DataArray
        It has the dimensions, the attributes and the other coordinates of the samples.
    levels : sequence of Dataset
        The details, finest first. Missing bands are zero.
    stored : Dataset
        The coordinates of the samples along transformed dimensions.
    wavelet, keep_attrs, backend
        See :func:`waverec`.
    """
    sizes, lifted = description["sizes"], description["transform"] == "lwt"
    dims = tuple(sizes)
    wavelets = tuple(description["wavelets"]) if wavelet is None else per_dim(wavelet, dims, "wavelet")
    if wavelet is None and None in wavelets:
        raise ArgumentError("these are coefficients of a wavelet that is not built-in; pass it as wavelet=")
    axes, modes = approximation.get_axis_num(dims), tuple(description["modes"])
    spec = transform_spec(approximation.ndim, wavelets, modes, axes, lifted)

    shape = inner = tuple(sizes.get(dim, size) for dim, size in approximation.sizes.items())
    coeffs: list[Any] = []
    for bands in levels:
        shapes, details = spec.band_shapes(inner), {}
        for key in spec.keys[1:]:
            if key in bands:
                band_dims = _band_dims(approximation.dims, dims, key, lifted)
                details[key] = bands[key].transpose(*band_dims).data
            else:
                details[key] = np.zeros_like(approximation.data, shape=shapes[key])
        coeffs.insert(0, details)
        inner = shapes[spec.keys[0]]
    coeffs.insert(0, approximation.data)
    if lifted:
        array = ilwtn(coeffs, spec.wavelets, spec.modes, spec.axes, backend=backend)
    else:
        array = waverecn(coeffs, spec.wavelets, spec.modes, spec.axes, shape=shape, backend=backend)
    x = DataArray(
        _as_dtype(array, np.dtype(description["dtype"])),
        dims=approximation.dims,
        coords=_other_coords(approximation, dims),
        name=description["name"],
        attrs=approximation.attrs if keeps_attrs(keep_attrs) else {},
    )
    return x.assign_coords(stored.coords)


def _transform_variables(
    x: Dataset, dim: Dims, transform: str, function: Callable[[DataArray], DataTree]
) -> DataTree:
    """Return a tree with a node for each variable that is transformed, and one for all others."""
    names = numeric_variables(x, dim)
    if UNCHANGED in names:
        raise ArgumentError(f"{UNCHANGED!r} is the name of a node; rename this variable")
    children = {name: function(x[name]) for name in names}
    children[UNCHANGED] = DataTree(x.drop_vars(names).drop_attrs(deep=False))
    metadata = json.dumps({"transform": transform, "variables": [str(name) for name in x.data_vars]})
    return DataTree(Dataset(attrs={**x.attrs, METADATA: metadata}), children=children)


def _invert_variables(tree: Any, names: list[str], function: Callable[[DataTree], DataArray]) -> Dataset:
    """Return the dataset of which variables were transformed."""
    others = tree[UNCHANGED].to_dataset()
    variables = {name: others[name] if name in others else function(tree[name]) for name in names}
    attrs = {name: value for name, value in tree.attrs.items() if name != METADATA}
    dataset: Dataset = others.assign(variables)[names].assign_coords(others.coords)
    return dataset.assign_attrs(attrs)


def _description(coeffs: object, transform: str) -> dict[str, Any]:
    """Return how coefficients were made."""
    if not isinstance(coeffs, Dataset | DataTree):
        raise ArgumentTypeError(f"coefficients are a Dataset or a DataTree, got {type(coeffs).__name__}")
    if METADATA not in coeffs.attrs:
        raise ArgumentError(
            f"the coefficients have no attribute {METADATA!r}, which describes the transform; if an operation"
            " dropped it, use xarray.set_options(keep_attrs=True), or copy it to the result"
        )
    description: dict[str, Any] = json.loads(coeffs.attrs[METADATA])
    if description["transform"] != transform:
        raise ArgumentError(f"these are coefficients of {description['transform']}, not of {transform}")
    return description


def _band_dims(order: Iterable[Any], dims: tuple[str, ...], key: str, lifted: bool) -> list[Any]:
    """Return the dimensions of a band: high-pass coefficients of the LWT have their own."""
    high = [dim for dim, letter in zip(dims, key, strict=True) if lifted and letter == "d"]
    return [f"{dim}{HIGH}" if dim in high else dim for dim in order]


def _other_coords(x: DataArray, dims: Iterable[Any]) -> Any:
    """Return the coordinates without these dimensions."""
    return x.coords.to_dataset().drop_vars([n for n, c in x.coords.items() if {*dims} & {*c.dims}]).coords


def _is_builtin(wavelet: Wavelet) -> bool:
    try:
        return Wavelet(wavelet.name) == wavelet
    except UnknownNameError:
        return False


def _as_dtype(x: Any, dtype: np.dtype[Any]) -> Any:
    """Return an array in the dtype of the samples; integers are rounded and clipped."""
    if x.dtype == dtype:
        return x
    if dtype.kind in "biu" and x.dtype.kind in "iuf":
        low, high = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        if x.dtype.kind == "f":
            # The largest integer of 64 bits is no float: the next smaller one is taken.
            largest = float(high) if int(float(high)) <= high else np.nextafter(float(high), 0)
            x = np.clip(np.rint(x), float(low), largest)
        else:
            x = np.clip(x, max(low, np.iinfo(x.dtype).min), min(high, np.iinfo(x.dtype).max))
    elif x.dtype.kind == "c" and dtype.kind != "c":
        return x  # Somebody has made the coefficients complex.
    return x.astype(dtype)
