"""Transforms and filters of xarray objects: the numbers of the functions, with names and coordinates."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undula
from undula.errors import ArgumentError, ArgumentTypeError, UnknownNameError

xr = pytest.importorskip("xarray", reason="xarray is not installed")
import undula.xarray as ux  # noqa: E402 (it needs xarray)

TYPES = ("float32", "float64", "uint8", "int16", "complex64", ">f8", "bool")


def temperatures(shape: tuple[int, ...] = (3, 11, 14), dtype: Any = "float64") -> Any:
    """Maps over time, with coordinates of all kinds and odd sizes."""
    time, lat, lon = shape
    rng = np.random.default_rng(0)
    x = xr.DataArray(
        (50 + 20 * rng.standard_normal(shape)).astype(dtype),
        dims=("time", "lat", "lon"),
        coords={
            "time": np.datetime64("2026-01-01T00", "ns") + np.arange(time) * np.timedelta64(6, "h"),
            "lat": ("lat", np.linspace(60, 40, lat), {"units": "degrees_north"}),
            "lon": 0.1 * np.arange(lon) ** 1.5,
            "season": ("time", ["winter"] * time),
            "station": ("lat", [f"s{k}" for k in range(lat)]),
            "height": (("lat", "lon"), rng.standard_normal((lat, lon))),
            "member": 7,
        },
        name="temperature",
        attrs={"units": "K", "valid_range": [0.0, 100.0]},
    )
    x.lon.attrs["units"] = "degrees_east"
    return x


def assert_restored(result: Any, x: Any) -> None:
    """Samples up to rounding; everything else exactly."""
    assert result.dtype == x.dtype
    xr.testing.assert_identical(result.copy(data=x.data), x)
    if x.dtype.kind in "biu":
        xr.testing.assert_identical(result, x)
    else:
        tolerance = 1e-4 if x.dtype in ("float32", "complex64") else 1e-9
        np.testing.assert_allclose(result.values, x.values, rtol=tolerance, atol=tolerance)


# --- transforms ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", ["lat", ("lat", "lon"), ("lon", "lat"), ("time", "lon"), None])
def test_wavedec_has_the_numbers_of_the_function_on_axes(dim: Any) -> None:
    x = temperatures((16, 31, 34))
    tree = ux.wavedec(x, "db2", dim, level=2)
    axes = None if dim is None else x.get_axis_num((dim,) if isinstance(dim, str) else dim)
    approximation, *details = undula.wavedecn(x.values, "db2", level=2, axes=axes)
    (key,) = tree["approximation"].data_vars
    np.testing.assert_array_equal(tree["approximation"][key].values, approximation)
    for level, bands in zip((2, 1), details, strict=True):
        node = tree[f"level_{level}"]
        assert sorted(node.data_vars) == sorted(bands)
        for name, band in bands.items():
            assert node[name].dims == x.dims
            np.testing.assert_array_equal(node[name].values, band)


@pytest.mark.parametrize("dim", ["lon", ("lon", "lat")])
def test_dwt_has_the_numbers_of_the_function_on_axes(dim: Any) -> None:
    x = temperatures()
    bands = ux.dwt(x, "bior2.2", dim, mode="periodic")
    axes = x.get_axis_num((dim,) if isinstance(dim, str) else dim)
    expected = undula.dwtn(x.values, "bior2.2", "periodic", axes)
    assert sorted(bands.data_vars) == sorted(expected)
    for key, band in expected.items():
        np.testing.assert_array_equal(bands[key].values, band)


def test_lwt_has_the_numbers_of_the_function_on_axes() -> None:
    x = temperatures(dtype="uint8")
    tree = ux.lwt(x, "cdf53", ("lat", "lon"), level=2)
    low, coarse, fine = undula.lwtn(x.values, "cdf53", 2, axes=(1, 2))
    np.testing.assert_array_equal(tree["approximation"].aa.values, low)
    for node, bands in ((tree["level_2"], coarse), (tree["level_1"], fine)):
        for key, band in bands.items():
            assert node[key].dtype == band.dtype
            np.testing.assert_array_equal(node[key].values, band)
    assert tree["level_1"].da.dims == ("time", "lat_detail", "lon")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("dim", ["lat", ("lon", "lat"), None])
def test_inverses_restore_everything(dim: Any, dtype: str) -> None:
    x = temperatures(dtype=dtype)
    assert_restored(ux.idwt(ux.dwt(x, "db2", dim)), x)
    assert_restored(ux.waverec(ux.wavedec(x, "haar", dim, level=1, mode="periodization")), x)
    assert_restored(ux.ilwt(ux.lwt(x, "cdf97", dim, level=2)), x)


@pytest.mark.parametrize("level", [0, 1, 3])
@pytest.mark.parametrize("size", [16, 17, 19, 30])
def test_odd_sizes_without_coordinates_or_name(size: int, level: int) -> None:
    x = xr.DataArray(np.random.default_rng(size).standard_normal(size), dims="x")
    assert_restored(ux.waverec(ux.wavedec(x, "haar", level=level)), x)
    assert_restored(ux.ilwt(ux.lwt(x, "db2", level=level)), x)


def test_integers_of_64_bits_and_other_large_ones_are_clipped() -> None:
    x = xr.DataArray(np.array([2**63 - 1, -(2**63), 5, 2**62]), dims="x")
    np.testing.assert_allclose(
        ux.idwt(ux.dwt(x, "haar")).values.astype(float), x.values.astype(float), atol=2e3
    )
    tree = ux.wavedec(xr.DataArray(np.full(8, 250, "uint8"), dims="x"), "haar", level=1)
    tree["approximation"]["a"] = tree["approximation"].a * 2
    assert ux.waverec(tree).values.tolist() == [255] * 8


def test_wavelets_and_modes_by_dimension() -> None:
    x = temperatures()
    tree = ux.wavedec(
        x,
        {"lon": "haar", "lat": "bior2.2"},
        ("lat", "lon"),
        mode={"lat": "zero", "lon": "periodization"},
        level=1,
    )
    low, bands = undula.wavedecn(x.values, ["bior2.2", "haar"], ["zero", "periodization"], 1, (1, 2))
    np.testing.assert_array_equal(tree["approximation"].aa.values, low)
    np.testing.assert_array_equal(tree["level_1"].ad.values, bands["ad"])
    assert_restored(tree.undula.waverec(), x)
    lifted = ux.lwt(x, {"lat": "db2", "lon": "haar"}, ("lat", "lon"), mode={"lat": "zero", "lon": "periodic"})
    assert_restored(lifted.undula.ilwt(), x)


def test_custom_wavelets_are_passed_again() -> None:
    bank = undula.Wavelet("db2").filter_bank
    wavelet = undula.Wavelet("haar", filter_bank=bank)  # not the built-in wavelet of this name
    x = temperatures()
    tree = ux.wavedec(x, wavelet, "lat", level=1)
    with pytest.raises(ArgumentError, match="pass it as wavelet="):
        ux.waverec(tree)
    assert_restored(ux.waverec(tree, wavelet), x)
    assert_restored(ux.waverec(tree, {"lat": wavelet}), x)


def test_images_can_be_selected_before_the_inverse() -> None:
    x = temperatures()
    tree = ux.wavedec(x, "haar", ("lat", "lon"), level=1)
    selected = tree.map_over_datasets(lambda bands: bands.isel(time=1) if "time" in bands.dims else bands)
    selected.attrs = tree.attrs
    assert_restored(ux.waverec(selected), x.isel(time=1))
    swapped = tree.map_over_datasets(lambda bands: bands.transpose("lon", ..., missing_dims="ignore"))
    swapped.attrs = tree.attrs
    assert_restored(ux.waverec(swapped), x.transpose("lon", "time", "lat"))


def test_missing_details_are_zero() -> None:
    x = temperatures((2, 16, 16))
    tree = ux.wavedec(x, "db2", ("lat", "lon"), level=2)
    low, coarse, fine = undula.wavedecn(x.values, "db2", level=2, axes=(1, 2))
    del tree["level_1"]
    tree["level_2"].dataset = tree["level_2"].to_dataset().drop_vars("dd")
    nothing = {key: np.zeros_like(band) for key, band in fine.items()}
    del coarse["dd"]
    expected = undula.waverecn([low, coarse, nothing], "db2", axes=(1, 2), shape=x.shape)
    np.testing.assert_array_equal(ux.waverec(tree).values, expected)
    bands = ux.dwt(x, "haar", "lat")
    smooth = undula.idwtn({"a": bands.a.values}, "haar", axes=1)
    np.testing.assert_array_equal(ux.idwt(bands.drop_vars("d")).values, smooth)


# --- coordinates --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["symmetric", "periodization"])
@pytest.mark.parametrize(
    "wavelet", ["haar", "db2", "db8", "sym5", "bior2.2", "bior4.4", "bior3.1", "coif2", "dmey"]
)
def test_trends_keep_their_coordinates(wavelet: str, mode: str) -> None:
    """Far from the borders, the approximation of a ramp has the value of the ramp at its coordinate."""
    level, n = 3, 1400
    t = -7 + 0.25 * np.arange(n)
    x = xr.DataArray(t, coords={"t": t})
    transforms = [ux.wavedec(x, wavelet, level=level, mode=mode)]
    if wavelet != "dmey" and mode == "symmetric":
        transforms.append(ux.lwt(x, wavelet, level=level))
    for tree in transforms:
        a = tree["approximation"].a
        inner = a.isel(t=slice(a.size // 2 - 5, a.size // 2 + 5))
        gain = sum(undula.Wavelet(wavelet).dec_lo) ** level
        np.testing.assert_allclose(inner.values / gain, inner.t.values, rtol=1e-6)
        np.testing.assert_allclose(np.diff(a.t), 0.25 * 2**level)


@pytest.mark.parametrize("wavelet", ["haar", "db3", "sym8", "bior2.2", "bior4.4"])
def test_details_are_where_they_come_from(wavelet: str) -> None:
    """The energy of the filter that gives a detail has its centre at the coordinate of the detail."""
    n = 128
    t = 100.0 + np.arange(n)
    detail = ux.wavedec(xr.DataArray(np.zeros(n), coords={"t": t}), wavelet, level=1)["level_1"].d
    k = detail.size // 2
    taps = undula.wavedec(np.eye(n), wavelet, level=1, axis=0)[1][k]
    assert float(detail.t[k]) == pytest.approx((t * taps**2).sum() / (taps**2).sum())


def test_bands_of_one_level_have_common_coordinates() -> None:
    """Those of orthogonal wavelets are the centre of the support of both filters."""
    x = xr.DataArray(np.ones((8, 8)), coords={"y": np.arange(8.0), "x": np.arange(8.0)})
    bands = ux.dwt(x, "haar")
    xr.testing.assert_identical(bands.x, x.coarsen(x=2, y=2).mean().x)
    assert (bands.ad**2 + bands.da**2 + bands.dd**2).shape == (4, 4)
    wide = ux.dwt(x, "db2")  # The four samples of coefficient 0 begin two samples before the first.
    np.testing.assert_allclose(wide.x, 2 * np.arange(5) - 0.5)


def test_coordinates_of_all_kinds() -> None:
    x = temperatures((8, 10, 12))
    tree = ux.wavedec(x, "haar", ("time", "lat", "lon"), level=1)
    level = tree["level_1"]
    assert level.time.dtype == x.time.dtype
    assert level.time.values[0] == np.datetime64("2026-01-01T03")
    assert level.lat.attrs == x.lat.attrs
    np.testing.assert_allclose(level.lat, (x.lat.values[::2] + x.lat.values[1::2]) / 2)
    np.testing.assert_allclose(level.lon, (x.lon.values[::2] + x.lon.values[1::2]) / 2)
    np.testing.assert_allclose(level.height, x.height.values.reshape(5, 2, 6, 2).mean((1, 3)))
    assert "station" not in level.coords
    assert int(level.member) == 7
    kept = ux.wavedec(x, "haar", "lon", level=1)["level_1"]
    xr.testing.assert_identical(kept.time, x.time.drop_vars("member").assign_coords(member=7))
    xr.testing.assert_identical(kept.station.variable, x.station.variable)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_dates_between_seconds(unit: str) -> None:
    times = np.datetime64("2026-01-01", unit) + np.arange(6) * np.timedelta64(1, "s").astype(f"m8[{unit}]")
    x = xr.DataArray(np.arange(6.0), coords={"t": times})
    tree = ux.wavedec(x, "haar", level=1)
    assert tree["level_1"].t.values[1] == np.datetime64("2026-01-01T00:00:02.5")
    assert_restored(ux.waverec(tree), x)


def test_coordinates_with_nothing_in_between_are_left_out_and_restored() -> None:
    pd = pytest.importorskip("pandas")
    coords = {
        "class": ("x", pd.Categorical(list("aabbccdd"))),
        "bin": ("x", pd.IntervalIndex.from_breaks(np.arange(9))),
        "month": ("x", pd.period_range("2026", periods=8, freq="M")),
        "unknown": ("x", np.full(8, "NaT", "M8[ns]")),
        "delay": ("x", np.arange(8) * np.timedelta64(1, "s")),
    }
    x = xr.DataArray(np.arange(8.0), dims="x", coords=coords)
    tree, bands, lifted = ux.wavedec(x, "db2", level=1), ux.dwt(x, "db2"), ux.lwt(x, "db2")
    assert set(tree["level_1"].coords) == {"unknown", "delay"}
    assert tree["level_1"].unknown.isnull().all()
    for result in (ux.waverec(tree), ux.idwt(bands), ux.ilwt(lifted)):
        assert_restored(result, x)


def test_unsigned_decreasing_and_single_coordinates() -> None:
    x = xr.DataArray(np.arange(4.0), coords={"x": np.array([30, 20, 10, 0], "uint8")})
    assert ux.dwt(x, "haar").x.values.tolist() == [25.0, 5.0]
    one = xr.DataArray([3.0], coords={"x": [5]})
    assert ux.dwt(one, "haar").x.values.tolist() == [5.0]
    assert_restored(ux.idwt(ux.dwt(one, "haar")), one)


def test_a_multi_index_is_restored() -> None:
    x = xr.DataArray(np.arange(6.0), dims="z", name="v")
    x = x.assign_coords(run=("z", [1, 1, 1, 2, 2, 2]), part=("z", list("xyzxyz"))).set_index(
        z=["run", "part"]
    )
    for result in (ux.waverec(ux.wavedec(x, "haar", level=1)), ux.idwt(ux.dwt(x, "haar"))):
        xr.testing.assert_allclose(result, x)
        assert result.indexes["z"].equals(x.indexes["z"])


# --- attributes ---------------------------------------------------------------------------------------------


def test_attributes_are_kept_as_xarray_keeps_them() -> None:
    x = temperatures()
    assert ux.wavedec(x, "haar", "lat", level=1)["level_1"].d.attrs == x.attrs
    for result in (
        ux.wavedec(x, "haar", "lat", level=1, keep_attrs=False)["level_1"].d,
        ux.idwt(ux.dwt(x, "haar", "lat"), keep_attrs=False),
        ux.denoise(x, dim=("lat", "lon"), keep_attrs=False),
    ):
        assert result.attrs == {}
        assert result.lat.attrs == x.lat.attrs
    with xr.set_options(keep_attrs=False):
        assert ux.dwt(x, "haar", "lat").a.attrs == {}
        assert ux.dwt(x, "haar", "lat", keep_attrs=True).a.attrs == x.attrs


def test_arithmetic_on_the_tree() -> None:
    x = temperatures()
    with xr.set_options(keep_attrs=True):
        tree = ux.wavedec(x, "haar", ("lat", "lon"), level=2) * 2
    xr.testing.assert_allclose(ux.waverec(tree).drop_attrs(), (2 * x).drop_attrs())
    del tree.attrs["undula"]
    with pytest.raises(ArgumentError, match="keep_attrs=True"):
        ux.waverec(tree)


# --- datasets -----------------------------------------------------------------------------------------------


def dataset() -> Any:
    x = temperatures()
    return xr.Dataset(
        {
            "temperature": x,
            "names": ("lat", [f"n{k}" for k in range(11)]),
            "wind": x.astype("int16").drop_attrs(deep=False) + 1,
            "profile": ("time", [1.0, 2.0, 3.0]),
            "valid": x > 40,
        },
        attrs={"title": "weather"},
    )


def test_datasets_are_restored() -> None:
    ds = dataset()
    tree = ds.undula.wavedec("db2", ("lat", "lon"), level=1)
    assert list(tree.children) == ["temperature", "wind", "unchanged"]
    alone = ds.wind.undula.wavedec("db2", ("lat", "lon"), level=1)
    alone.name = "wind"
    xr.testing.assert_identical(tree["wind"], alone)
    xr.testing.assert_identical(tree["unchanged/profile"], ds.profile)
    for result in (
        tree.undula.waverec(),
        ds.undula.dwt("haar", ("lon",)).undula.idwt(),
        ds.undula.lwt("cdf53", "lat", level=2).undula.ilwt(),
    ):
        assert list(result.data_vars) == list(ds.data_vars)
        assert result.attrs == ds.attrs
        assert_restored(result.temperature, ds.temperature)
        xr.testing.assert_identical(result.drop_vars("temperature"), ds.drop_vars("temperature"))


def test_datasets_are_filtered_where_they_have_the_dimensions() -> None:
    ds = dataset()
    result = ds.undula.denoise(dim=("lat", "lon"))
    changed = ["temperature", "wind"]
    xr.testing.assert_identical(result.drop_vars(changed), ds.drop_vars(changed))
    for name in changed:
        xr.testing.assert_identical(result[name], ds[name].undula.denoise(dim=("lat", "lon")))
    assert ds.undula.denoise(dim=("lat", "lon"), keep_attrs=False).attrs == {}


# --- filters ------------------------------------------------------------------------------------------------


def photos(dtype: str = "float32") -> Any:
    rng = np.random.default_rng(1)
    x = 100 + 10 * rng.standard_normal((2, 3, 24, 20))
    coords = {"time": [0, 1], "color": list("rgb"), "y": np.arange(24.0)}
    return xr.DataArray(
        x.astype(dtype), dims=("time", "color", "y", "x"), coords=coords, name="photo", attrs={"units": "DN"}
    )


FILTERS: dict[str, dict[str, Any]] = {
    "denoise": {"method": "bayes"},
    "despeckle": {"strength": 0.7},
    "sharpen": {"amount": 2.0},
    "enhance": {"amount": 0.5},
}


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_filters_have_the_numbers_of_the_functions(name: str, dtype: str) -> None:
    x = photos(dtype)
    function, options = getattr(undula, name), FILTERS[name]
    gray = getattr(x.undula, name)(dim=("y", "x"), **options)
    expected = function(x.values, axes=(2, 3), channel_axis=None, **options)
    xr.testing.assert_identical(gray, x.copy(data=expected))
    color = getattr(ux, name)(x, dim=("y", "x"), channel_dim="color", **options)
    expected = function(x.values, axes=(2, 3), channel_axis=1, **options)
    xr.testing.assert_allclose(color, x.copy(data=expected))  # Colours are summed in another order.
    volume = getattr(ux, name)(x.isel(time=0), channel_dim="color", **options)
    expected = function(x.values[0], channel_axis=0, **options)
    xr.testing.assert_allclose(volume, x.isel(time=0).copy(data=expected))


def test_pipelines() -> None:
    x = photos()
    pipeline = undula.Pipeline("db2", 2, [undula.filters.Shrink("bayes")])
    result = x.undula.apply_pipeline(pipeline, dim=("x", "y"), channel_dim="color", sigma=5.0)
    expected = pipeline(x.values, sigma=5.0, axes=(2, 3), channel_axis=1)
    xr.testing.assert_allclose(result, x.copy(data=expected))
    counted = x.isel(time=0, color=0, drop=True) > 95
    result = x.undula.apply_pipeline(pipeline, dim=("y", "x"), counted=counted)
    full = np.broadcast_to(counted.values, x.shape)
    expected = pipeline(x.values, axes=(2, 3), channel_axis=None, counted=full)
    np.testing.assert_array_equal(result, expected)
    with pytest.raises(ArgumentTypeError, match="Pipeline is needed, got str"):
        x.undula.apply_pipeline("db2")


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "uint8", "int32"])
def test_functions_of_scikit_image(dtype: str) -> None:
    x = photos(dtype)
    result = x.undula.denoise_wavelet(dim=("y", "x"), channel_dim="color", wavelet="db2")
    lazy = x.chunk(time=1).undula.denoise_wavelet(dim=("y", "x"), channel_dim="color", wavelet="db2")
    expected = np.stack([undula.denoise_wavelet(image, wavelet="db2", channel_axis=0) for image in x.values])
    assert result.dtype == expected.dtype == lazy.dtype
    np.testing.assert_array_equal(result, expected)
    xr.testing.assert_identical(lazy.compute(), result)
    sigma = x.undula.estimate_sigma(dim=("y", "x"))
    assert sigma.dims == ("time", "color")
    assert sigma.attrs == x.attrs
    expected = [[undula.estimate_sigma(plane) for plane in image] for image in x.values]
    np.testing.assert_array_equal(sigma, expected)


def test_masks_and_noise_by_name() -> None:
    x = photos("float64")
    mask = xr.DataArray(np.random.default_rng(0).random((20, 24)) > 0.2, dims=("x", "y"))
    result = ux.denoise(x, dim=("y", "x"), mask=mask)
    full = np.broadcast_to(mask.values.T, x.shape)
    expected = undula.denoise(x.values, axes=(2, 3), channel_axis=None, mask=full)
    np.testing.assert_array_equal(result, expected)
    for sigma in (x.undula.estimate_sigma(dim=("y", "x")).mean("color"), x.time * 3.0 + 2.0):
        result = ux.denoise(x, sigma, dim=("y", "x"), channel_dim="color")
        for image, noise, each in zip(x.values, sigma.values, result.values, strict=True):
            np.testing.assert_allclose(each, undula.denoise(image, float(noise), channel_axis=0), rtol=1e-12)
    per_channel = xr.DataArray([5.0, 8.0, 10.0], coords={"color": x.color})
    result = ux.denoise(x, per_channel, dim=("y", "x"), channel_dim="color", color="channels")
    options = {"axes": (2, 3), "channel_axis": 1, "color": "channels"}
    np.testing.assert_allclose(result, undula.denoise(x.values, [5.0, 8.0, 10.0], **options), rtol=1e-12)
    per_sample = xr.DataArray(np.linspace(1, 20, 24), coords={"y": x.y}).broadcast_like(x)
    result = ux.denoise(x, xr.DataArray(np.linspace(1, 20, 24), coords={"y": x.y}), dim=("y", "x"))
    expected = undula.denoise(x.values, per_sample.values, axes=(2, 3), channel_axis=None)
    np.testing.assert_allclose(result, expected, rtol=1e-12)


# --- Dask ---------------------------------------------------------------------------------------------------


def never_computed(x: Any, chunks: dict[str, int]) -> Any:
    """The same as Dask arrays of which every chunk is an error to compute."""
    da = pytest.importorskip("dask.array", reason="Dask is not installed")

    def fail(block: Any) -> Any:
        raise AssertionError("a chunk was computed")

    data = x.chunk(chunks).data
    return x.copy(data=da.map_blocks(fail, data, dtype=data.dtype, meta=np.empty((0,) * x.ndim, data.dtype)))


def test_nothing_is_computed_early() -> None:
    x = temperatures((4, 16, 20))
    x["height"] = x.height.copy()
    for dtype in ("float32", "uint8"):
        lazy = never_computed(x.astype(dtype), {"time": 1, "lat": 8, "lon": 7})
        lazy = lazy.assign_coords(height=never_computed(x.height, {"lat": 4}))
        dims = ("lat", "lon")
        samples = [
            lazy.undula.dwt("db2", dims).undula.idwt(),
            lazy.undula.wavedec("haar", dims, level=2).undula.waverec(),
            lazy.undula.lwt("cdf53", dims, level=2).undula.ilwt(),
        ]
        images = never_computed(x.astype(dtype), {"time": 1})
        samples += [getattr(images.undula, name)(dim=dims, **FILTERS[name]) for name in FILTERS]
        samples.append(images.undula.denoise(images.undula.estimate_sigma(dim=dims), dim=dims))
        pipeline = undula.Pipeline("db2", 2, [undula.filters.Shrink("bayes")])
        samples.append(images.undula.apply_pipeline(pipeline, dim=dims, mask=images > 40))
        for result in samples:
            assert result.chunks is not None
            assert (result.dims, result.shape, result.dtype) == (x.dims, x.shape, np.dtype(dtype))
        tree = lazy.to_dataset().undula.wavedec("haar", "lon", level=1)
        assert all(v.chunks for node in tree.subtree for v in node.data_vars.values())
    with pytest.raises(AssertionError, match="a chunk was computed"):
        samples[0].compute()


def test_dask_arrays_have_the_same_results() -> None:
    pytest.importorskip("dask.array", reason="Dask is not installed")
    x = temperatures((4, 16, 20))
    lazy = x.chunk(time=2, lat=5, lon=7)
    xr.testing.assert_identical(
        lazy.undula.wavedec("db2", ("lat", "lon"), level=2).compute(),
        x.undula.wavedec("db2", ("lat", "lon"), level=2),
    )
    xr.testing.assert_allclose(lazy.undula.dwt("db2").undula.idwt().compute(), x)
    images = x.chunk(time=1)
    xr.testing.assert_identical(
        images.undula.denoise(dim=("lat", "lon")).compute(), x.undula.denoise(dim=("lat", "lon"))
    )
    # Chunks within images are for the filters, which give the same numbers up to rounding.
    xr.testing.assert_allclose(
        lazy.undula.denoise(dim=("lat", "lon")).compute(), x.undula.denoise(dim=("lat", "lon"))
    )
    for call in (lazy.undula.estimate_sigma, lambda dim: lazy.undula.denoise(dim=dim, mask=x > 40)):
        with pytest.raises(ArgumentError, match=r"several chunks along \['lat', 'lon'\].*use x.chunk"):
            call(dim=("lat", "lon"))


# --- files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_coefficients_are_restored_from_zarr(tmp_path: Path, dtype: str) -> None:
    pytest.importorskip("zarr", reason="Zarr is not installed")
    x = temperatures((4, 17, 21), dtype).drop_vars(["season", "station"])  # Texts have no type in Zarr 3 yet.
    trees = {
        "dwt": x.undula.wavedec("db2", ("lat", "lon"), level=2),
        "lwt": x.undula.lwt("cdf53", level=2),
        "lazy": x.chunk(lat=9).undula.wavedec("db2", ("lat", "lon"), level=2),
        "dataset": x.to_dataset().undula.wavedec("haar", "lon", level=2),
    }
    for name, tree in trees.items():
        path = tmp_path / f"{name}.zarr"
        tree.to_zarr(path, consolidated=False)
        with xr.open_datatree(path, engine="zarr", consolidated=False) as stored:
            xr.testing.assert_identical(stored.load(), tree.compute())
            result = stored.undula.ilwt() if name == "lwt" else stored.undula.waverec()
            assert_restored(result.temperature if name == "dataset" else result, x)
    bands = x.undula.dwt("db2", "lat")
    bands.to_zarr(tmp_path / "bands.zarr", consolidated=False)
    with xr.open_zarr(tmp_path / "bands.zarr", consolidated=False, chunks=None) as stored:
        assert_restored(stored.undula.idwt(), x)


# --- errors and imports -------------------------------------------------------------------------------------


def test_errors_say_what_to_do() -> None:
    x, ds = temperatures(), dataset()
    with pytest.raises(UnknownNameError, match="unknown dimension 'lta'; did you mean 'lat'"):
        x.undula.wavedec("haar", "lta")
    with pytest.raises(UnknownNameError, match="unknown dimension 'long'; did you mean 'lon'"):
        ds.undula.denoise(dim="long")
    with pytest.raises(UnknownNameError, match="unknown dimension 'z'"):
        x.undula.dwt({"lat": "haar", "z": "haar"}, ("lat", "lon"))
    with pytest.raises(ArgumentError, match=r"wavelet=.* has no value for the dimensions \['lon'\]"):
        x.undula.dwt({"lat": "haar"}, ("lat", "lon"))
    with pytest.raises(ArgumentError, match="each once"):
        x.undula.dwt("haar", ("lat", "lat"))
    with pytest.raises(ArgumentError, match="no numeric variable has all dimensions"):
        ds[["names", "profile"]].undula.dwt("haar", ("lat", "time"))
    with pytest.raises(ArgumentTypeError, match=r"'names' has dtype .* convert it"):
        ds.names.astype(object).undula.dwt("haar")
    with pytest.raises(ArgumentTypeError, match="DataArray or a Dataset is needed, got ndarray"):
        ux.dwt(x.values, "haar")
    with pytest.raises(ArgumentTypeError, match="Dataset or a DataTree, got ndarray"):
        ux.waverec(x.values)
    with pytest.raises(ArgumentError, match=r"bands use the names \['d'\]; rename"):
        x.rename(lat="d").undula.dwt("haar", "lon")
    with pytest.raises(ArgumentError, match="coefficients of lwt, not of wavedec"):
        ux.waverec(x.undula.lwt("haar", "lat"))
    with pytest.raises(ArgumentError, match="'unchanged' is the name of a node"):
        x.to_dataset(name="unchanged").undula.dwt("haar")
    with pytest.raises(ArgumentError, match="dimension of channels and cannot be in dim"):
        x.undula.denoise(dim=("time", "lat"), channel_dim="time")
    with pytest.raises(ArgumentTypeError, match="mask must be a DataArray, got ndarray"):
        x.undula.denoise(mask=x.values > 0)
    with pytest.raises(UnknownNameError, match="unknown dimension 'z'"):
        x.undula.denoise(mask=xr.DataArray([True], dims="z"))
    with pytest.raises(ValueError, match="exact"):
        x.undula.denoise(mask=x.isel(lat=slice(3)) > 0)


def test_import_registers_accessors_and_undula_does_not_import_xarray() -> None:
    code = (
        "import sys, undula; assert 'xarray' not in sys.modules; import xarray;"
        "assert not hasattr(xarray.Dataset, 'undula'); import undula.xarray;"
        "print([hasattr(c, 'undula') for c in (xarray.DataArray, xarray.Dataset, xarray.DataTree)])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[True, True, True]"
