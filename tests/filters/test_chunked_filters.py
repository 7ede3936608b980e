"""Filters of Dask arrays have the numbers of the whole image, and are lazy."""

from typing import Any

import numpy as np
import pytest

import undula
from cases import THOROUGH
from undula.errors import ArgumentError, ArgumentTypeError
from undula.filters import Blur, Contrast, Gain, Laplace, Pipeline, Shrink, Unsharp

dask = pytest.importorskip("dask", reason="Dask is not installed")
da = pytest.importorskip("dask.array", reason="Dask is not installed")

CASES = 600 if THOROUGH else 15
PLACES = "image approximation last details".split()
DTYPES = "uint8 uint16 float32 float64".split()


def image(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    clean = np.full(shape, 120.0)
    for axis, n in enumerate(shape):
        clean += 25 * np.sin(np.linspace(0, 9, n)).reshape(
            [-1 if k == axis else 1 for k in range(len(shape))]
        )
    return np.clip(clean + 12 * rng.standard_normal(shape), 1, 255).astype(dtype)


def random_chunks(rng: np.random.Generator, length: int) -> tuple[int, ...]:
    cuts = np.unique(rng.integers(1, length, rng.integers(0, 3))) if length > 1 else []
    return tuple(int(size) for size in np.diff([0, *cuts, length]))


def stages(rng: np.random.Generator) -> list[Any]:
    known = [
        lambda: Shrink("bivariate", radius=int(rng.integers(1, 4))),
        lambda: Shrink("block"),
        lambda: Shrink("bayes", rule=str(rng.choice(["soft", "hard", "garrote"]))),
        lambda: Shrink("universal"),
        lambda: Shrink("minimax", noise="bands"),
        lambda: Shrink("given", threshold=10.0),
        lambda: Gain((1.5, 1.2)),
        lambda: Contrast(),
        lambda: Unsharp(sigma=1.0, amount=0.5, at=str(rng.choice(PLACES))),
        lambda: Blur(sigma=0.8, at=str(rng.choice(PLACES))),
        lambda: Laplace(0.1, at=str(rng.choice(PLACES))),
    ]
    return [known[k]() for k in rng.choice(len(known), rng.integers(1, 3), replace=False)]


def uses_sums(stage: Any) -> bool:
    """Sums are exact here, and are rounded after each addition in memory; medians are exact in both."""
    return isinstance(stage, Contrast) or getattr(stage, "method", "") == "bayes"


def assert_same(result: Any, expected: Any, sums: bool) -> None:
    if not sums:
        np.testing.assert_array_equal(result, expected)
    elif expected.dtype.kind == "f":
        largest = abs(expected).max()
        np.testing.assert_allclose(result, expected, 0, 100 * np.finfo(expected.dtype).eps * largest)
    else:  # A difference in the last bit may change how a sample is rounded.
        assert (result != expected).mean() < 1e-3
        np.testing.assert_allclose(result.astype(float), expected, 0, 1)


@pytest.mark.thorough
@pytest.mark.parametrize("case", range(CASES))
def test_random_pipelines_have_the_bits_of_the_whole(case: int) -> None:
    rng = np.random.default_rng(case)
    ndim = int(rng.choice([1, 2, 2, 2, 3]))
    shape = tuple(
        int(n) for n in rng.integers({1: 200, 2: 70, 3: 20}[ndim], {1: 900, 2: 260, 3: 50}[ndim], ndim)
    )
    options: dict[str, Any] = {}
    kind = rng.choice(["plain", "batch", "color"]) if ndim == 2 else "plain"
    if kind == "batch":
        shape, options = (3, *shape), {"axes": (1, 2)}
    elif kind == "color":
        shape = (*shape, 3)
    pipeline = Pipeline(
        str(rng.choice(["haar", "db2", "bior2.2", "bior4.4", "sym4"])),
        int(rng.integers(1, 4)),
        stages(rng),
        mode=str(rng.choice(undula.MODES)),
        invariant=[False, 1, 2, True][rng.integers(0, 4)],
    )
    if rng.random() < 0.5:
        options["sigma"] = 12.0
    x = image(shape, str(rng.choice(DTYPES)), case)
    lazy = da.from_array(x, chunks=tuple(random_chunks(rng, n) for n in shape))
    result = pipeline(lazy, **options)
    expected = pipeline(x, **options)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
    assert_same(result.compute(scheduler="sync"), expected, any(map(uses_sums, pipeline.stages)))


@pytest.mark.parametrize("dtype", ["uint8", "float64"])
@pytest.mark.parametrize("name", ["denoise", "despeckle", "sharpen", "enhance"])
def test_functions(name: str, dtype: str) -> None:
    x = image((150, 170), dtype)
    function = getattr(undula, name)
    result = function(da.from_array(x, chunks=(64, 100)))
    assert isinstance(result, da.Array)
    assert_same(result.compute(scheduler="sync"), function(x), name in ("despeckle", "enhance"))


@pytest.mark.parametrize("name", ["denoise", "enhance"])
def test_chunks_without_samples(name: str) -> None:
    function, x = getattr(undula, name), image((2, 38, 129), "uint8")
    for chunks in (((2, 0), (38,), (129,)), ((0, 1, 1, 0), (0, 38), (64, 0, 65))):
        result = function(da.from_array(x, chunks=chunks), axes=(1, 2)).compute(scheduler="sync")
        assert_same(result, function(x, axes=(1, 2)), name == "enhance")


def test_results_do_not_depend_on_the_chunks() -> None:
    x = image((150, 170), "float64")
    first, second = (undula.enhance(da.from_array(x, chunks=chunks)) for chunks in ((64, 100), (33, 170)))
    np.testing.assert_array_equal(first.compute(scheduler="sync"), second.compute(scheduler="sync"))


def test_statistics_are_those_of_the_image() -> None:
    # All noise is in one corner, so that the estimates of blocks would be far from that of the image.
    x = np.zeros((128, 128), np.float32)
    x[:40, :40] = image((40, 40), "float32")
    lazy = da.from_array(x, chunks=32)
    for method in ("bivariate", "bayes"):
        expected = undula.denoise(x, method=method)
        result = undula.denoise(lazy, method=method).compute(scheduler="sync")
        assert_same(result, expected, method == "bayes")
    np.testing.assert_array_equal(
        undula.denoise(da.zeros((64, 64), chunks=20)).compute(scheduler="sync"), np.zeros((64, 64))
    )


def test_nothing_is_computed_early() -> None:
    def fail(block_id: Any = None) -> Any:
        raise AssertionError("a chunk was computed")

    x = da.map_blocks(fail, chunks=((40, 40), (40, 30)), dtype=np.uint8, meta=np.empty((0, 0), np.uint8))
    for function in (undula.denoise, undula.despeckle, undula.sharpen, undula.enhance):
        result = function(x)
        with pytest.raises(AssertionError, match="a chunk was computed"):
            result.compute(scheduler="sync")


def test_arguments_that_need_the_image_in_memory() -> None:
    x = da.from_array(image((64, 64), "float32"), chunks=32)
    with pytest.raises(ArgumentError, match="mask is for arrays in memory"):
        undula.denoise(x, mask=np.ones((64, 64), bool))
    with pytest.raises(ArgumentError, match="SURE sorts all coefficients"):
        undula.denoise(x, method="sure")
    with pytest.raises(ArgumentError, match="dark background"):
        undula.despeckle(x, kind="log")
    with pytest.raises(ArgumentError, match="regions"):
        undula.denoise(x, regions=16)
    with pytest.raises(ArgumentError, match=r"above zero, got 0\.0"):
        undula.despeckle(da.zeros((64, 64), chunks=32)).compute(scheduler="sync")
    holes = image((64, 64), "float32")
    holes[40, 40] = np.nan
    with pytest.raises(ArgumentError, match="NaNs or infinities"):
        undula.denoise(da.from_array(holes, chunks=32)).compute(scheduler="sync")
    with pytest.raises(undula.UnknownNameError, match="unknown backend 'fpga'"):
        undula.denoise(x, backend="fpga")


def test_foreign_byte_order() -> None:
    x = image((70, 80), ">f4")
    result = undula.denoise(da.from_array(x, chunks=40)).compute(scheduler="sync")
    np.testing.assert_array_equal(result, undula.denoise(x))


def test_large_images_are_read_again_for_each_pass() -> None:
    reads = []

    def chunk(block_id: Any = None) -> Any:
        reads.append(block_id)
        return image((50, 60), "float32", sum(block_id))

    x = da.map_blocks(chunk, chunks=((50, 50), (60, 60)), dtype=np.float32, meta=np.empty((0, 0), np.float32))
    kept = undula.denoise(x).compute(scheduler="sync")
    assert len(reads) == 4
    with dask.config.set({"undula.kept-bytes": 0}):
        again = undula.denoise(x)
    np.testing.assert_array_equal(again.compute(scheduler="sync"), kept)
    # The rounding floor, two digits of the median, the density of details, the mosaic, and the result.
    assert len(reads) == 4 + 6 * 4


@pytest.mark.parametrize(
    "function",
    [
        undula.estimate_poisson,
        lambda x: undula.calibrate(x, 0.1),
        lambda x: undula.denoise(x, over_time=4),
        undula.color.forward,
    ],
    ids=["poisson", "calibrate", "over_time", "color"],
)
def test_functions_for_arrays_in_memory_say_so(function: Any) -> None:
    def fail() -> Any:
        raise AssertionError("a chunk was computed")

    x = da.from_delayed(dask.delayed(fail)(), (32, 32, 3), np.uint8)
    with pytest.raises(ArgumentTypeError, match=r"is a Dask array, and .* call its compute\(\) first"):
        function(x)
