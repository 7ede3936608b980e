"""The public DWT against PyWavelets: all wavelets, modes, dtypes, shapes, axes; threads; bad input."""

import contextlib
import multiprocessing
import signal
import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import pywt
from hypothesis import given
from hypothesis import strategies as st

import undula
from cases import pairwise, parametrize_pairwise
from comparing import assert_identical, assert_same, flat, noise

MODES = pywt.Modes.modes
THEIRS = pywt.wavelist(kind="discrete")
pytestmark = pytest.mark.filterwarnings("ignore:Level value")


ARRAYS = [
    (shape, dtype, level)
    for dtype in ("f8", "f4")
    for shape, level in (((64,), 1), ((37,), 1), ((6, 9), 1), ((33, 40), 1), ((33, 40), 2), ((4, 5, 6), 1))
]
WAVELETS_MODES_ARRAYS = pairwise(THEIRS, MODES, ARRAYS)


@pytest.mark.thorough
@pytest.mark.parametrize("name", THEIRS)
def test_every_wavelet_in_every_mode(name: str) -> None:
    cases = [(mode, array) for wavelet, mode, array in WAVELETS_MODES_ARRAYS if wavelet == name]
    assert {mode for mode, _ in cases} == set(MODES)
    for mode, (shape, dtype, level) in cases:
        x = noise(*shape, dtype=dtype)
        # Extrapolation makes huge numbers of small ones, and rounding errors with them: 100 taps of
        # float32 have no digit right in the second level, here or there.
        extrapolates = mode in ("smooth", "antireflect")
        if level == 1 or (extrapolates and dtype == "f4"):
            theirs = pywt.dwtn(x, name, mode)
            assert_same(undula.dwtn(x, name, mode), theirs)
            assert_same(undula.idwtn(theirs, name, mode), pywt.idwtn(theirs, name, mode))
        else:
            looser = 1000 if extrapolates else 3
            deep = pywt.wavedecn(x, name, mode, level)
            assert_same(undula.wavedecn(x, name, mode, level), deep, looser)
            assert_same(undula.waverecn(deep, name, mode), pywt.waverecn(deep, name, mode), looser)


@given(
    st.sampled_from(
        ["haar", "db2", "db5", "sym4", "coif2", "bior2.4", "bior3.3", "bior4.4", "rbio1.5", "dmey"]
    ),
    st.sampled_from(MODES),
    st.lists(st.integers(2, 20), min_size=1, max_size=3),
    st.integers(1, 3),
    st.sampled_from(["f2", "f4", "f8", "c8", "c16", "u1", "i2", "i8", "?"]),
    st.data(),
)
def test_several_levels(
    name: str, mode: str, shape: list[int], level: int, dtype: str, data: st.DataObject
) -> None:
    x = noise(*shape, dtype=dtype)
    axes = data.draw(st.none() | st.permutations(range(len(shape))))
    theirs = pywt.wavedecn(x, name, mode, level, axes)
    mine = undula.wavedecn(x, name, mode, level, axes)
    # (Extrapolation over many taps makes huge numbers of small ones: their rounding errors, too.)
    far = level > 1 and mode in ("smooth", "antireflect") and pywt.Wavelet(name).dec_len > 2 * min(shape)
    assert_same(mine, theirs, 100 if far else 1)
    assert_same(undula.waverecn(theirs, name, mode, axes), pywt.waverecn(theirs, name, mode, axes))


@pytest.mark.parametrize("order", [(1, 0), (2, 0, 1), (1, 2, 0)])
@pytest.mark.parametrize("dtype", ["f4", "c16"])
def test_arrays_in_another_order_are_transformed_as_their_transpose(order: Any, dtype: str) -> None:
    shape = (14, 19, 12)[: len(order)]
    plain = noise(*shape, dtype=dtype)
    turned = np.empty([shape[axis] for axis in order], dtype).transpose(np.argsort(order))
    turned[...] = plain
    for axes in (None, (-2, -1), (0,)):
        ours = undula.wavedecn(turned, "db3", level=1, axes=axes)
        assert_same(ours, pywt.wavedecn(plain, "db3", level=1, axes=axes))
        assert_same(undula.waverecn(ours, "db3", axes=axes, shape=shape), plain)
        assert ours[0].strides != np.ascontiguousarray(ours[0]).strides  # no copy was made


@pytest.mark.parametrize("mode", MODES)
def test_one_and_two_axes(mode: str) -> None:
    x = noise(5, 40, 31)
    for axis in (0, 1, -1):
        theirs = pywt.wavedec(x, "db2", mode, 1, axis)
        assert_same(undula.wavedec(x, "db2", mode, 1, axis), theirs)
        assert_same(undula.waverec(theirs, "db2", mode, axis), pywt.waverec(theirs, "db2", mode, axis))
        pair = pywt.dwt(x, "db2", mode, axis)
        assert_same(undula.dwt(x, "db2", mode, axis), pair)
        assert_same(undula.idwt(*pair, "db2", mode, axis), pywt.idwt(*pair, "db2", mode, axis))
    for axes in ((-2, -1), (2, 0)):
        coeffs = pywt.wavedec2(x, "bior4.4", mode, 2, axes)
        assert_same(undula.wavedec2(x, "bior4.4", mode, 2, axes), coeffs)
        assert_same(
            undula.waverec2(coeffs, "bior4.4", mode, axes), pywt.waverec2(coeffs, "bior4.4", mode, axes)
        )
        single = pywt.dwt2(x, "bior4.4", mode, axes)
        assert_same(undula.dwt2(x, "bior4.4", mode, axes), single)
        assert_same(undula.idwt2(single, "bior4.4", mode, axes), pywt.idwt2(single, "bior4.4", mode, axes))


@pytest.mark.parametrize(
    "shape", [(300_000,), (3, 200_000), (1100, 1030), (2, 700, 601), (70, 80, 90), (200_000, 3), (2, 600_001)]
)
def test_large_arrays_and_threads(shape: tuple[int, ...]) -> None:
    for dtype in ("f4", "c16"):
        x = noise(*shape, dtype=dtype)
        try:
            undula.set_num_threads(3)
            coeffs = undula.wavedecn(x, "db3", "reflect", 1)
            back = undula.waverecn(coeffs, "db3", "reflect")
            undula.set_num_threads(1)
            assert undula.get_num_threads() == 1
            for a, b in zip(flat(coeffs), flat(undula.wavedecn(x, "db3", "reflect", 1)), strict=True):
                np.testing.assert_array_equal(a, b)
            np.testing.assert_array_equal(back, undula.waverecn(coeffs, "db3", "reflect"))
        finally:
            undula.set_num_threads(None)
        assert_same(coeffs, pywt.wavedecn(x, "db3", "reflect", 1))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["haar", "db3", "bior4.4", "db20"])
def test_planes_in_one_pass(name: str, mode: str) -> None:
    for shape in ((128, 130), (151, 149), (2, 100, 101), (5000, 4), (4, 5001), (2, 3, 64, 65)):
        x = noise(*shape, dtype="f4" if len(shape) == 4 else "f8")
        assert_same(undula.dwt2(x, name, mode), pywt.dwt2(x, name, mode))
    other: Any = (("db2", name), (mode, "periodic"))
    assert_same(undula.dwt2(x, *other), pywt.dwt2(x, *other))


DEEP = {(300, 301): "f8", (3, 200, 133): "f4", (257, 130, 2): "c8", (900, 801): "f4"}


@parametrize_pairwise(name=["haar", "db5", "bior2.2", "bior4.4"], mode=MODES, shape=DEEP)
def test_deep_images(name: str, mode: str, shape: tuple[int, ...]) -> None:
    x = noise(*shape, dtype=DEEP[shape])
    axes = (0, 1) if shape[-1] == 2 else (-2, -1)
    theirs = pywt.wavedec2(x, name, mode, 4, axes)
    # (Extrapolation makes large numbers of small ones, and rounding errors with them.)
    looser = 30 if mode in ("smooth", "antireflect") else 1
    mine = undula.wavedec2(x, name, mode, 4, axes)
    assert_same(mine, theirs, looser)
    back = pywt.waverec2(theirs, name, mode, axes)
    assert_same(undula.waverec2(theirs, name, mode, axes), back, looser)
    assert_same(undula.waverec2(mine, name, mode, axes, shape=shape), x, 100 * looser)


@pytest.mark.parametrize("axes", [(1, 2), (1,), (0,)])
def test_batches_of_small_images_start_no_threads(axes: tuple[int, ...]) -> None:
    x = noise(200, 8, 8)
    before = threading.active_count()
    coeffs = undula.wavedecn(x, "haar", level=1, axes=axes)
    np.testing.assert_allclose(undula.waverecn(coeffs, "haar", axes=axes), x)
    assert threading.active_count() == before


@pytest.mark.parametrize("name", ["db2", "bior4.4", "coif3"])
@pytest.mark.parametrize("shape", [(900, 800), (5, 400, 401), (1_000_001,), (700, 801, 3), (90, 100, 80)])
def test_threads_do_not_change_a_bit(name: str, shape: tuple[int, ...]) -> None:
    x = noise(*shape, dtype="f4")
    axes = (0, 1) if shape[-1] == 3 else None
    undula.set_num_threads(1)
    try:
        wanted = undula.wavedecn(x, name, level=3, axes=axes)
        back = undula.waverecn(wanted, name, axes=axes)
        for threads in (2, 3, 7):
            undula.set_num_threads(threads)
            assert_identical(undula.wavedecn(x, name, level=3, axes=axes), wanted)
            assert_identical(undula.waverecn(wanted, name, axes=axes), back)
    finally:
        undula.set_num_threads(None)


def test_out_is_filled_and_given_back() -> None:
    x = noise(50, 37, dtype="f4")
    for name in ("cdf97", "db3"):
        wanted = undula.wavedec2(x, name, level=3)
        made = [np.empty_like(wanted[0]), *(tuple(map(np.empty_like, level)) for level in wanted[1:])]
        result = undula.wavedec2(x, name, level=3, out=made)
        assert_identical(result, wanted)
        assert all(a is b for a, b in zip(flat(result), flat(made), strict=True))
        array = np.empty_like(x)
        assert undula.waverec2(wanted, name, shape=x.shape, out=array) is array
        assert_same(array, x)
    pair = np.zeros(19), np.zeros(19)
    assert undula.dwt(noise(37), "db1", out=pair)[0] is pair[0]
    bands = {key: np.empty((26, 20), "f4") for key in ("aa", "ad", "da", "dd")}
    assert_identical(undula.dwtn(x, "db2", out=bands), undula.dwtn(x, "db2"))
    strided = np.zeros((52, 40), "f4")[::2, ::2]  # (results go to any strides)
    made = (strided, tuple(np.zeros((26, 40), "f4")[:, ::2] for _ in range(3)))
    assert_identical(undula.dwt2(x, "db2", out=made), undula.dwt2(x, "db2"))
    whole, slices = undula.coeffs_to_array(undula.wavedec2(x, "haar", level=2))
    views = undula.array_to_coeffs(np.zeros_like(whole), slices, "wavedec2")
    undula.wavedec2(x, "haar", level=2, out=views)
    assert_identical(views, undula.array_to_coeffs(whole, slices, "wavedec2"))


@given(
    st.sampled_from(["haar", "db3", "cdf97", "dmey"]),
    st.sampled_from(MODES),
    st.lists(st.integers(2, 33), min_size=1, max_size=3),
    st.integers(1, 4),
)
def test_shape_brings_odd_lengths_back(name: str, mode: str, shape: list[int], level: int) -> None:
    x = noise(*shape)
    coeffs = undula.wavedecn(x, name, mode, level)
    back = undula.waverecn(coeffs, name, mode, shape=shape)
    assert back.shape == x.shape
    if name != "dmey" and mode not in ("smooth", "antireflect"):
        assert_same(back, x, 100)
    # Without details, only the shape tells which lengths were odd.
    zeros = [{key: np.zeros_like(band) for key, band in details.items()} for details in coeffs[1:]]
    for number in range(len(coeffs)):
        sparse = [coeffs[0] if number == 0 else None, *({} for _ in zeros)]
        full = [coeffs[0] if number == 0 else np.zeros_like(coeffs[0]), *zeros]
        if number:
            sparse[number], full[number] = coeffs[number], coeffs[number]
        back = undula.waverecn(sparse, name, mode, shape=shape)
        assert_same(back, undula.waverecn(full, name, mode, shape=shape), 100)


def test_memory_of_results_is_kept_and_bounded() -> None:
    x = noise(600, 600)
    try:
        undula.keep_memory(0)
        assert undula.kept_memory() == 0
        undula.keep_memory(4_000_000)
        for _ in range(3):
            wanted = undula.wavedec2(x, "db2", level=2)
            held = [array.copy() for array in flat(wanted)]
            undula.wavedec2(-x, "db2", level=2)  # (must not be written where results are still in use)
            assert_identical(wanted, held)
        part = undula.dwt2(x, "db2")[0][10:20]
        copied = part.copy()
        undula.dwt2(-x, "db2")
        assert_identical(part, copied)
        assert 0 < undula.kept_memory() <= 4_000_000
        for n in range(400, 600, 10):  # (other sizes take the place of those not used for longest)
            undula.dwt2(x[:n, :n], "haar")
        assert 0 < undula.kept_memory() <= 4_000_000
        undula.keep_memory(1000)
        assert undula.kept_memory() <= 1000
    finally:
        undula.keep_memory(None)


def test_peak_memory_is_input_and_output() -> None:
    x = noise(2000, 2100, dtype="f4")
    undula.set_num_threads(1)  # Each thread has some scratch rows.
    for name in ("cdf97", "db4"):  # (compiles, and imports what it needs)
        undula.wavedec2(x, name, level=5)  # (and makes the scratch rows that are kept)
    undula.keep_memory(0)
    try:
        for name in ("cdf97", "db4"):
            for level in (1, 3, 5):
                tracemalloc.start()
                coeffs = undula.wavedec2(x, name, level=level)
                _, peak = tracemalloc.get_traced_memory()
                tracemalloc.stop()
                made = sum(array.nbytes for array in flat(coeffs))
                assert peak <= made + 0.05 * (made + x.nbytes)
    finally:
        undula.keep_memory(None)
        undula.set_num_threads(None)


def test_a_wavelet_and_a_mode_for_each_axis() -> None:
    x = noise(16, 20, 24)
    options: Any = (("haar", "db3", "bior2.2"), ("zero", "periodization", "smooth"))
    theirs = pywt.dwtn(x, *options)
    assert_same(undula.dwtn(x, *options), theirs)
    assert_same(undula.idwtn(theirs, *options), pywt.idwtn(theirs, *options))


def test_missing_coefficients_are_zero() -> None:
    x = noise(16, 12)
    cA, (cH, cV, cD) = pywt.dwt2(x, "db2")
    for coeffs in ((cA, (None, None, None)), (None, (cH, None, cD)), (cA, (None, cV, None))):
        assert_same(undula.idwt2(coeffs, "db2"), pywt.idwt2(coeffs, "db2"))
    assert_same(undula.idwt(cA, None, "db2"), pywt.idwt(cA, None, "db2"))
    assert_same(undula.idwt(None, cA, "db2"), pywt.idwt(None, cA, "db2"))
    assert_same(undula.idwtn({"dd": cD}, "db2"), pywt.idwtn({"dd": cD}, "db2"))
    coeffs = pywt.wavedec2(x, "haar", level=2)
    coeffs[1] = (None, None, None)
    assert_same(undula.waverec2(coeffs, "haar"), pywt.waverec2(coeffs, "haar"))
    line = pywt.wavedec(x[0], "haar", level=2)
    line[2] = None
    assert_same(undula.waverec(line, "haar"), pywt.waverec(line, "haar"))


@pytest.mark.parametrize("name", ["idwt2", "waverec2", "idwtn", "waverecn"])
def test_an_array_in_place_of_several_bands_does_not_affect_later_calls(name: str) -> None:
    x, zeros = noise(14, 18), np.zeros((7, 9))
    low, (horizontal, vertical, diagonal) = pywt.dwt2(x, "haar")

    def inverse(low: Any, horizontal: Any, vertical: Any, diagonal: Any) -> Any:
        keyed = {"ad": vertical, "da": horizontal, "dd": diagonal}
        nested: dict[str, Any] = {
            "idwt2": (low, (horizontal, vertical, diagonal)),
            "waverec2": [low, (horizontal, vertical, diagonal)],
            "idwtn": {"aa": low, **keyed},
            "waverecn": [low, keyed],
        }
        return getattr(undula, name)(nested[name], "haar")

    assert_same(inverse(low, zeros, zeros, zeros), pywt.idwt2((low, (None, None, None)), "haar"))
    assert_same(inverse(low, horizontal, vertical, diagonal), x)


def test_strides_and_alignment_do_not_matter_and_input_is_not_touched() -> None:
    big = noise(50, 60)
    views = [
        big[::2, ::-3],
        big.T,
        np.asfortranarray(big),
        np.frombuffer(b"x" + big.tobytes(), "f8", 3000, 1),
    ]
    for view in views:
        before = view.copy()
        view.flags.writeable = False
        assert_same(undula.wavedecn(view, "cdf97", level=1), undula.wavedecn(before, "cdf97", level=1))
        np.testing.assert_array_equal(view, before)
    whole = undula.wavedec2(big, "haar", level=0)[0]
    assert not np.shares_memory(whole, big)


def test_own_wavelets_and_those_of_others() -> None:
    x = noise(30, 31)
    assert_same(undula.dwt2(x, pywt.Wavelet("sym5")), pywt.dwt2(x, "sym5"))  # type: ignore[arg-type]
    for name in ("cdf53", "cdf97", "dd137", "burt57", "d4"):
        bank = pywt.Wavelet(name, filter_bank=undula.Wavelet(name).filter_bank)
        coeffs = undula.wavedec2(x, name, level=2)
        assert_same(coeffs, pywt.wavedec2(x, bank, level=2))
        np.testing.assert_allclose(undula.waverec2(coeffs, name)[:30, :31], x, atol=1e-10)


def test_nan_stays_where_it_is() -> None:
    x = np.ones(64)
    x[20] = np.nan
    cA, _ = undula.dwt(x, "db2")
    assert np.isnan(cA).sum() == 2
    assert np.isfinite(cA[:9]).all()


def round_trip(seed: int) -> float:
    x = np.random.default_rng(seed).standard_normal((900, 800))
    return float(np.abs(undula.waverec2(undula.wavedec2(x, "db4", level=3), "db4") - x).max())


def test_many_callers_at_once() -> None:
    x = noise(900, 800)
    coeffs = undula.wavedec2(x, "cdf97", level=3)
    wanted, back = flat(coeffs), undula.waverec2(coeffs, "cdf97")
    wrong: list[object] = []

    def work() -> None:
        for _ in range(3):
            found = flat(undula.wavedec2(x, "cdf97", level=3))
            wrong.extend(None for a, b in zip(found, wanted, strict=True) if not np.array_equal(a, b))
            if not np.array_equal(undula.waverec2(coeffs, "cdf97"), back):
                wrong.append(None)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not wrong
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timer signals")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_leaves_everything_usable() -> None:
    x = noise(1200, 1300)
    wanted = undula.wavedec2(x, "db4", level=2)

    def alarm(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, alarm)
    try:
        for number in range(60):
            with contextlib.suppress(TimeoutError):
                signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.0003 * number)
                for _ in range(100):
                    undula.waverec2(undula.wavedec2(x, "db4", level=2), "db4")
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert_identical(undula.wavedec2(x, "db4", level=2), wanted)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_after_a_fork() -> None:
    assert round_trip(0) < 1e-10
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert max(pool.map_async(round_trip, range(4)).get(timeout=120)) < 1e-10


LINE, WHOLE, BUFFER = np.ones(8), np.arange(64), np.ones((8, 8))
TWISTED = np.lib.stride_tricks.as_strided(LINE, (8,), (0,))
BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a shape that is no integer": (
        lambda: undula.waverec([LINE, LINE], "haar", shape=9.0),  # type: ignore[arg-type]
        ValueError,
        "1 integers.*9.0",
    ),
    "too many threads": (lambda: undula.set_num_threads(10000), ValueError, "from 1 to 4096.*10000"),
    "no axes": (lambda: undula.wavedecn(BUFFER, "haar", axes=()), ValueError, r"at least one axis.*\(\)"),
    "out of one axis": (
        lambda: undula.wavedec(LINE, "haar", level=1, out=[np.empty(4), np.empty(3)]),
        ValueError,
        r"out\[1\] must",
    ),
    "out in a tuple": (
        lambda: undula.dwt2(
            BUFFER, "haar", out=(np.empty((4, 4)), (np.empty((4, 4)), np.empty((4, 3)), np.empty((4, 4))))
        ),
        ValueError,
        r"out\[1\]\[1\] must",
    ),
    "out by key": (
        lambda: undula.dwtn(LINE, "haar", out={"a": np.empty(3), "d": np.empty(4)}),
        ValueError,
        r"out\['a'\] must",
    ),
    "strings": (lambda: undula.dwt(["a"], "haar"), TypeError, "dtype"),
    "objects": (lambda: undula.dwt2(np.array([[None, 1]]), "haar"), TypeError, "object"),
    "ragged": (lambda: undula.dwt([[1, 2], [3]], "haar"), ValueError, "numbers"),
    "empty axis": (lambda: undula.dwt2(np.ones((0, 3)), "haar"), ValueError, r"\(0, 3\)"),
    "a number": (lambda: undula.dwt(3.0, "haar"), ValueError, "single number"),
    "a number, deep": (lambda: undula.wavedec(3.0, "haar"), ValueError, "single number"),
    "axis beyond": (lambda: undula.dwt(np.ones(4), "haar", axis=1), ValueError, r"\(1,\)"),
    "axis beyond, as NumPy says it": (
        lambda: undula.wavedec2(np.ones((4, 4)), "haar", axes=(0, 5)),
        IndexError,
        "5",
    ),
    "axis twice": (lambda: undula.wavedec2(np.ones((4, 4)), "haar", axes=(1, -1)), ValueError, "unique"),
    "axis of no integer": (lambda: undula.dwtn(np.ones(4), "haar", axes=(0.5,)), TypeError, "0.5"),  # type: ignore[arg-type]
    "two axes for a line": (lambda: undula.dwt(np.ones((4, 4)), "haar", axis=(0, 1)), TypeError, "0, 1"),  # type: ignore[arg-type]
    "three axes for a plane": (
        lambda: undula.dwt2(np.ones((4, 4, 4)), "haar", axes=(0, 1, 2)),
        ValueError,
        "2 axes",
    ),
    "unknown wavelet": (lambda: undula.dwt(np.ones(4), "harr"), ValueError, "'haar'"),
    "unknown mode": (lambda: undula.dwt(np.ones(4), "haar", "symetric"), ValueError, "'symmetric'"),
    "two modes for three axes": (
        lambda: undula.dwtn(np.ones((4, 4, 4)), "haar", ("zero", "zero")),
        ValueError,
        "3 axes",
    ),
    "no coefficients": (lambda: undula.idwt(None, None, "haar"), ValueError, "At least one"),
    "unequal bands": (lambda: undula.idwt(np.ones(3), np.ones(5), "haar"), ValueError, r"\(3,\).*\(5,\)"),
    "short bands": (lambda: undula.idwt([1.0], [1.0], "db8"), ValueError, "16 taps"),
    "wrong keys": (lambda: undula.idwtn({"a": [1.0], "q": [1.0]}, "haar"), ValueError, "'q'"),
    "bands in a list": (lambda: undula.idwtn([1, 2], "haar"), TypeError, "list"),  # type: ignore[arg-type]
    "levels that do not fit": (
        lambda: undula.waverec([np.ones(4), np.ones(4), np.ones(20)], "haar"),
        ValueError,
        r"\(8,\).*\(20,\)",
    ),
    "details of a plane": (
        lambda: undula.waverec2([np.ones((4, 4)), (np.ones((4, 4)),) * 2], "haar"),
        ValueError,
        "2",
    ),
    "a plane and no details": (lambda: undula.idwt2((np.ones((4, 4)),), "haar"), ValueError, "pair"),  # type: ignore[arg-type]
    "nothing to recompose": (lambda: undula.waverec([], "haar"), ValueError, "too short"),
    "no list": (lambda: undula.waverec2(None, "haar"), ValueError, "sequence"),  # type: ignore[arg-type]
    "out of another shape": (
        lambda: undula.dwt(np.ones(8), "haar", out=(np.ones(4), np.ones(5))),
        ValueError,
        r"\(4,\).*\(5,\)",
    ),
    "out of another dtype": (
        lambda: undula.dwt(np.ones(8), "haar", out=(np.ones(4), np.ones(4, "f4"))),
        ValueError,
        "float64.*float32",
    ),
    "out that is no array": (lambda: undula.dwt(np.ones(8), "haar", out=([], [])), TypeError, "list"),  # type: ignore[arg-type]
    "out that overlaps": (
        lambda: undula.dwt(LINE, "haar", out=(LINE[:4], np.ones(4))),
        ValueError,
        "share memory",
    ),
    "out of the same memory and another type": (
        lambda: undula.dwt(WHOLE, "haar", out=(WHOLE.view("f8")[:32], WHOLE.view("f8")[32:])),
        ValueError,
        "share memory",
    ),
    "out on a coarse level": (
        lambda: undula.waverec2([BUFFER[:2, :2], (None,) * 3, (np.ones((4, 4)),) * 3], "haar", out=BUFFER),
        ValueError,
        "share memory",
    ),
    "out on itself": (
        lambda: undula.idwt(np.ones(4), np.ones(4), "haar", out=TWISTED),
        ValueError,
        "itself",
    ),
    "a mode that equals a number": (
        lambda: (undula.dwt(LINE, "haar", 1), undula.dwt(LINE, "haar", 1.0)),
        TypeError,
        "1.0",
    ),  # type: ignore[arg-type]
    "out twice": (
        lambda: undula.dwt(np.ones(8), "haar", out=(LINE[:4], LINE[3:7])),
        ValueError,
        "share memory",
    ),
    "out of another nesting": (
        lambda: undula.wavedec2(np.ones((8, 8)), "haar", level=1, out=[np.ones((4, 4))]),
        ValueError,
        "nested",
    ),
    "out that overlaps, back": (
        lambda: undula.idwt(LINE[:4], LINE[4:], "haar", out=LINE),
        ValueError,
        "share memory",
    ),
    "read-only out": (
        lambda: undula.idwt(np.ones(4), np.ones(4), "haar", out=np.broadcast_to(1.0, 8)),
        ValueError,
        "writeable",
    ),
    "another shape": (
        lambda: undula.idwt(np.ones(4), np.ones(4), "haar", shape=6),
        ValueError,
        r"\(6,\).*\(7,\) and \(8,\)",
    ),
    "no shape": (lambda: undula.idwt(np.ones(4), np.ones(4), "haar", shape=(8, 8)), ValueError, "1 integers"),
    "memory below nothing": (lambda: undula.keep_memory(-1), ValueError, "-1"),
    "negative level": (lambda: undula.wavedec(np.ones(8), "haar", level=-1), ValueError, "-1"),
    "no threads": (lambda: undula.set_num_threads(0), ValueError, "got 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str) -> None:
    act, kind, message = BAD[case]
    with pytest.raises(undula.UndulaError, match=f"(?s){message}") as caught:
        act()
    assert isinstance(caught.value, kind)


def test_levels_too_deep_are_warned_of() -> None:
    with pytest.warns(UserWarning, match="Level value of 4 is too high"):
        undula.wavedec(np.ones(8), "db2", level=4)


def test_calls_seen_before_still_check_the_types_of_their_arguments() -> None:
    """True and 1.0 are equal to 1, but they are no axis, level or mode."""
    x = noise(8, 8)
    coeffs = undula.wavedec2(x, "haar", 1, 1, (0, 1))
    undula.waverec2(coeffs, "haar", 1, (0, 1))
    for level, mode, axes in ((True, 1, (0, 1)), (1, True, (0, 1)), (1, 1, (0.0, 1.0)), (1, 1, (False, 1))):
        with pytest.raises(undula.UndulaError):
            undula.wavedec2(x, "haar", mode, level, axes)
        if level is not True:
            with pytest.raises(undula.UndulaError):
                undula.waverec2(coeffs, "haar", mode, axes)
