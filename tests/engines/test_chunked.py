"""Transforms of Dask arrays have the numbers of the whole transform, bit for bit, and are lazy."""

import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import undula
from cases import THOROUGH, WAVELETS
from undula.engines.chunked import blocks
from undula.engines.chunked.blocks import ChunkedWindow
from undula.errors import ArgumentError, ArgumentTypeError, UnknownNameError

dask = pytest.importorskip("dask", reason="Dask is not installed")
da = pytest.importorskip("dask.array", reason="Dask is not installed")

PLANS = ("auto", "fused", "level")
LONGEST = {1: 300, 2: 40, 3: 14}  # samples along an axis, by the number of axes
LARGEST = 1_000_000  # samples of a band; stationary transforms by long filters extend volumes a lot
GROUPS, CASES = (100, 100) if THOROUGH else (20, 25)


def random_chunks(rng: np.random.Generator, length: int) -> tuple[int, ...]:
    """Chunks of one size, of any sizes, some of them empty, or one chunk; most have several samples."""
    kind = rng.integers(0, 3)
    if kind == 0 or length < 2:
        return (length,)
    if kind == 1:
        size = int(rng.integers(max(1, length // 6), length + 1))
        return (*[size] * (length // size), *([length % size] if length % size else []))
    cuts = np.sort(rng.integers(0, length + 1, rng.integers(1, 4)))
    return tuple(int(size) for size in np.diff([0, *cuts, length]))


def chunked(rng: np.random.Generator, x: Any) -> Any:
    return da.from_array(x, chunks=tuple(random_chunks(rng, n) for n in x.shape))


def flat(coeffs: list[Any]) -> list[Any]:
    return [coeffs[0], *(band for level in coeffs[1:] for band in level.values())]


def rechunked(rng: np.random.Generator, coeffs: list[Any]) -> list[Any]:
    """Coefficients in memory as Dask arrays, each with chunks of its own."""
    details = [{key: chunked(rng, band) for key, band in level.items()} for level in coeffs[1:]]
    return [chunked(rng, coeffs[0]), *details]


def assert_same(results: list[Any], expected: list[Any]) -> None:
    for result, whole in zip(results, expected, strict=True):
        assert (result.shape, result.dtype) == (whole.shape, whole.dtype)
        np.testing.assert_array_equal(result, whole)


@pytest.mark.thorough
@pytest.mark.parametrize("group", range(GROUPS))
def test_random_transforms_have_the_bits_of_the_whole(group: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if group % 2:  # Small windows are treated like large ones: read in fragments, or joined in stripes.
        monkeypatch.setattr(blocks, "STRIPE_BYTES", 200)
        monkeypatch.setattr(blocks, "STRIPE_TAPS", 1)
    if group % 4 == 1:
        monkeypatch.setattr(ChunkedWindow, "rows", lambda *arguments: None)
    for case in range(CASES):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about levels
            check_random_transform(np.random.default_rng((group, case)))


def check_random_transform(rng: np.random.Generator) -> None:
    ndim = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(1, LONGEST[ndim], ndim))
    family = str(rng.choice(["dwt", "lwt", "swt"], p=[0.4, 0.35, 0.25]))
    lifted = family == "lwt"
    known = undula.wavelist(undula.families(), kind="discrete") if THOROUGH else WAVELETS
    names = [name for name in known if name != "dmey" or not lifted]
    wavelet, level = str(rng.choice(names)), int(rng.integers(1, 4))
    mode = str(rng.choice(undula.LWT_MODES if lifted else undula.MODES))
    if family == "dwt" and mode.endswith("reflect"):  # Two samples are needed, also at the third level.
        shape = tuple(max(8, n) for n in shape)
    axes = tuple(int(axis) for axis in rng.permutation(ndim)[: rng.integers(1, ndim + 1)])
    taps = undula.Wavelet(wavelet).dec_len
    while level > 1 and family == "swt" and np.prod([shape[k] + 2**level * taps for k in axes]) > LARGEST:
        level -= 1
    dtype = str(rng.choice("f4 f8 c8 u1 u2 i2 i4".split() if lifted else "f2 f4 f8 c8 c16 u1 i2".split()))
    x = 50 * rng.standard_normal(shape)
    if dtype[0] == "c":
        x = x + 1j * rng.standard_normal(shape)
    x = (abs(x) if dtype[0] == "u" else x).astype(dtype)

    def forward(x: Any) -> Any:
        if lifted:
            return undula.lwtn(x, wavelet, level, mode, axes)
        if family == "swt":
            return undula.swtn(x, wavelet, level, axes=axes, trim_approx=True, mode=mode)
        return undula.wavedecn(x, wavelet, mode, level, axes)

    def inverse(coeffs: Any) -> Any:
        if lifted:
            return undula.ilwtn(coeffs, wavelet, mode, axes)
        if family == "swt":
            return undula.iswtn(coeffs, wavelet, axes, mode=mode)
        return undula.waverecn(coeffs, wavelet, mode, axes, shape=shape)

    expected = forward(x)
    with dask.config.set({"scheduler": "sync", "undula.plan": str(rng.choice(PLANS))}):
        coeffs = forward(chunked(rng, x))
        samples = inverse(coeffs if rng.random() < 0.5 else rechunked(rng, expected))
        computed, again = dask.compute(coeffs, samples)
    assert_same(flat(computed), flat(expected))
    assert [(a.shape, a.dtype) for a in flat(coeffs)] == [(a.shape, a.dtype) for a in flat(expected)]
    assert_same([again], [inverse(expected)])


def turned(x: Any) -> Any:
    """The same numbers, in columns."""
    return np.asfortranarray(x)


def unaligned(x: Any) -> Any:
    """The same numbers at an odd address, as chunks that come from another worker may be."""
    memory = np.empty(x.nbytes + 1, np.uint8)
    result = np.ndarray(x.shape, x.dtype, memory, 1)
    result[...] = x
    return result


def doubled(x: Any) -> Any:
    """Another dtype than the array says."""
    return x.astype(np.float64)


def reversed_rows(x: Any) -> Any:
    """The same numbers from the last row in memory to the first."""
    return np.ascontiguousarray(x[::-1])[::-1]


@pytest.mark.parametrize("layout", [turned, unaligned, doubled, reversed_rows])
def test_chunks_of_any_layout(layout: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "STRIPE_BYTES", 200)
    monkeypatch.setattr(blocks, "STRIPE_TAPS", 1)
    x = np.random.default_rng(0).standard_normal((120, 90)).astype(np.float32)
    lazy = da.from_array(x, chunks=(60, 30)).map_blocks(layout, dtype=np.float32)
    results = dask.compute(undula.wavedecn(lazy, "bior4.4", level=2), scheduler="sync")[0]
    for band, whole in zip(flat(results), flat(undula.wavedecn(x, "bior4.4", level=2)), strict=True):
        np.testing.assert_allclose(band, whole, rtol=0, atol=1e-5 if layout is doubled else 0)


def test_chunks_of_other_shapes_than_the_array_says_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "STRIPE_BYTES", 200)
    x = da.ones((400, 400), chunks=200).map_blocks(lambda x: x[:, :-2], dtype=float, chunks=(200, 200))
    coeffs = undula.wavedec2(x, "db2", level=2)
    with pytest.raises(ValueError, match="could not broadcast"):
        dask.compute(coeffs, scheduler="sync")


def never_computed(shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
    """A Dask array whose chunks raise an error as soon as somebody computes them."""

    def fail(block_id: Any = None) -> Any:
        raise AssertionError("a chunk was computed")

    return da.map_blocks(
        fail,
        chunks=tuple((n // 2, n - n // 2) for n in shape),
        dtype=dtype,
        meta=np.empty((0,) * len(shape), dtype),
    )


def test_nothing_is_computed_early() -> None:
    x = never_computed((64, 48))
    calls = [
        undula.dwt(x, "db2"),
        undula.dwt2(x, "db2"),
        undula.dwtn(x, "db2"),
        undula.wavedec(x, "db2", level=2),
        undula.wavedec2(x, "db2", level=2),
        undula.wavedecn(x, "db2", level=2),
        undula.lwt2(x, "cdf53", 2),
        undula.waverec2(undula.wavedec2(x, "db2", level=2), "db2"),
        undula.idwt2(undula.dwt2(x, "db2"), "db2"),
        undula.ilwt2(undula.lwt2(x, "cdf53", 2), "cdf53"),
        undula.lwt2(never_computed((64, 48), np.int64), "cdf53", 2),
        undula.swt2(x, "db2", 2),
        undula.iswt2(undula.swt2(x, "db2", 2), "db2"),
    ]
    for result in calls:
        with pytest.raises(AssertionError, match="a chunk was computed"):
            dask.compute(result, scheduler="sync")


@pytest.mark.parametrize(
    "name", ["dwt", "dwt2", "dwtn", "wavedec", "wavedec2", "wavedecn", "lwt", "lwt2", "lwtn"]
)
def test_results_are_nested_as_in_memory(name: str) -> None:
    x = np.random.default_rng(0).random((20, 30))
    function = getattr(undula, name)
    got, expected = function(da.from_array(x, chunks=(7, 11)), "haar"), function(x, "haar")

    def assert_alike(got: Any, expected: Any) -> None:
        if isinstance(expected, np.ndarray):
            assert isinstance(got, da.Array)
            np.testing.assert_array_equal(got.compute(scheduler="sync"), expected)
        elif isinstance(expected, dict):
            assert got.keys() == expected.keys()
            assert_alike(list(got.values()), list(expected.values()))
        else:
            assert type(got) is type(expected)
            assert len(got) == len(expected)
            for parts in zip(got, expected, strict=True):
                assert_alike(*parts)

    assert_alike(got, expected)


def test_missing_bands_are_zeros() -> None:
    x = np.random.default_rng(0).random((40, 30))
    low, (horizontal, vertical, _) = undula.dwt2(x, "db3")
    parts = [da.from_array(band, chunks=13) for band in (low, horizontal, vertical)]
    result = undula.idwt2((parts[0], (parts[1], parts[2], None)), "db3")
    np.testing.assert_array_equal(
        result.compute(scheduler="sync"), undula.idwt2((low, (horizontal, vertical, None)), "db3")
    )
    mixed = undula.idwt2((parts[0], (horizontal, parts[2], None)), "db3")
    np.testing.assert_array_equal(mixed.compute(scheduler="sync"), result.compute(scheduler="sync"))


def test_large_integers_are_refused_when_they_are_read() -> None:
    x = np.zeros((32, 32), np.int64)
    x[20, 20] = np.iinfo(np.int64).max
    coeffs = undula.lwt2(da.from_array(x, chunks=10), "cdf53", 2)
    assert coeffs[0].dtype == np.int64
    with pytest.raises(ArgumentError, match="could overflow: samples from"):
        dask.compute(coeffs, scheduler="sync")


def test_integers_that_do_not_fit_on_the_way_back_are_refused() -> None:
    low, (_, _, diagonal) = undula.lwt2(np.full((16, 16), 30000, np.int16), "cdf53", dtype="int32")[:2]
    bands = [da.from_array(band.astype(np.int16), chunks=3) for band in (low, diagonal)]
    large = da.full((8, 8), 32000, dtype=np.int16, chunks=3)
    with pytest.raises(ArgumentError, match="which int16 does not hold"):
        undula.ilwt2([bands[0], (large, large, bands[1])], "cdf53").compute(scheduler="sync")


def test_tasks_travel_and_have_stable_names() -> None:
    x = da.random.default_rng(0).random((64, 64), chunks=20)
    low = undula.wavedec2(x, "bior4.4", level=2)[0]
    assert low.name == undula.wavedec2(x, "bior4.4", level=2)[0].name
    assert low.name != undula.wavedec2(x, "bior2.2", level=2)[0].name
    again = pickle.loads(pickle.dumps(low))
    np.testing.assert_array_equal(again.compute(scheduler="sync"), low.compute(scheduler="sync"))


def test_bad_arrays() -> None:
    x = da.ones((16, 16), chunks=5)
    unknown = x[x[:, 0] > 0]
    with pytest.raises(ArgumentError, match=r"unknown sizes.*compute_chunk_sizes"):
        undula.wavedec2(unknown, "haar")
    with pytest.raises(ArgumentTypeError, match="with numbers, got dtype object"):
        undula.wavedec2(x.astype(object), "haar")
    with pytest.raises(ArgumentTypeError, match="masked arrays, whose masks would be lost"):
        undula.wavedec2(da.from_array(np.ma.masked_greater(np.ones((8, 8)), 2), chunks=5), "haar")
    with pytest.raises(ArgumentError, match="omit out"):
        undula.dwt(x, "haar", out=(np.empty((16, 8)), np.empty((16, 8))))
    with pytest.raises(ArgumentTypeError, match=r"Dask array.*compute\(\)"):
        undula.coeffs_to_array([x])
    with (
        dask.config.set({"undula.plan": "best"}),
        pytest.raises(ArgumentError, match=r"undula\.plan is one of"),
    ):
        undula.wavedec2(x, "haar")


@pytest.mark.parametrize("shape", [(0, 16), (3, 0, 16)])
def test_arrays_without_samples_beside_the_transformed_axes(shape: tuple[int, ...]) -> None:
    low, high = undula.dwt(da.ones(shape, chunks=5), "haar")
    assert low.compute().shape == high.compute().shape == (*shape[:-1], 8)


def test_explanations_count_what_is_built() -> None:
    import undula.dask

    x = da.zeros((2000, 1500), dtype=np.float32, chunks=(200, 250))
    explanation = undula.dask.explain(x, "bior4.4", level=4)
    assert list(explanation.plans) == list(PLANS)
    assert explanation.plans["fused"].levels == (4,)
    assert explanation.plans["level"].levels == (1, 1, 1, 1)
    for name in ("fused", "level"):
        with dask.config.set({"undula.plan": name}):
            low, *details = undula.wavedec2(x, "bior4.4", level=4)
        keys = {
            key for band in (low, *(b for level in details for b in level)) for key in band.__dask_graph__()
        }
        tasks = len(keys) - x.npartitions
        # Chunks that no other block needs have no rims.
        assert 0.9 * tasks <= explanation.plans[name].cost.tasks <= 1.2 * tasks
    fused, by_level = (explanation.plans[name].cost for name in ("fused", "level"))
    assert fused.redundant > by_level.redundant > 0
    assert fused.halo_bytes > by_level.halo_bytes > 0
    assert "per chunk" in str(explanation)
    with pytest.raises(ArgumentTypeError, match="takes a Dask array"):
        undula.dask.explain(np.ones((8, 8)), "haar")
    with pytest.raises(UnknownNameError, match="lwt"):
        undula.dask.explain(x, "haar", transform="lwt")


@pytest.mark.parametrize("mode", ["periodization", "symmetric"])
def test_explanations_of_stationary_transforms_count_what_is_built(mode: str) -> None:
    import undula.dask

    x = da.zeros((960, 800), dtype=np.float32, chunks=(200, 250))
    explanation = undula.dask.explain(x, "bior2.2", mode, level=3, transform="swt")
    ((name, plan),) = explanation.plans.items()
    assert (name, plan.levels) == ("auto", (1, 1, 1))
    coeffs = undula.swtn(x, "bior2.2", 3, trim_approx=True, mode=mode)
    keys = {key for band in flat(coeffs) for key in band.__dask_graph__()}
    tasks = len(keys) - x.npartitions
    assert tasks <= plan.cost.tasks <= 1.1 * tasks  # Chunks that no other block needs have no rims.
    assert plan.cost.redundant > 0
    assert plan.tasks_per_chunk == plan.cost.tasks / x.npartitions


def test_workers_use_one_thread_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from undula.engines import threads

    undula.set_num_threads(None)
    threads._threads_of_environment.cache_clear()
    monkeypatch.delenv("UNDULA_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with threads.single_thread():
        assert undula.get_num_threads() == 1
    for variable, other, count in (("OMP_NUM_THREADS", "", 3), ("UNDULA_NUM_THREADS", "5", 2)):
        threads._threads_of_environment.cache_clear()
        monkeypatch.setenv("OMP_NUM_THREADS", other or "3")
        monkeypatch.setenv(variable, str(count))
        assert undula.get_num_threads() == count
        with threads.single_thread():
            assert undula.get_num_threads() == count
    threads._threads_of_environment.cache_clear()
    monkeypatch.setenv("UNDULA_NUM_THREADS", "many")
    with pytest.warns(RuntimeWarning, match="UNDULA_NUM_THREADS='many' is not a number of threads"):
        undula.get_num_threads()
    threads._threads_of_environment.cache_clear()
