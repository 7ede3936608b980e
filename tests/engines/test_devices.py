"""Results of kernels: every strategy, scheme, mode and dtype against PyWavelets and the reference.

The fixture ``target`` is every available backend: OpenCL on any machine, and CUDA if there is a GPU.
"""

import multiprocessing
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import pywt
from hypothesis import given, settings
from hypothesis import strategies as st

import undula
from cases import THOROUGH, parametrize_pairwise, parametrize_some
from comparing import TOLERANCE, flat, noise, reference
from undula import color
from undula.engines.gpu.strategies import STRATEGIES
from undula.plan import tuning

pytestmark = pytest.mark.filterwarnings("ignore:Level value")

# One of each family, short and long, symmetric and not, lifted and filtered, low band on odd samples.
WAVELETS = "haar db2 db7 sym4 coif1 bior2.4 bior3.3 bior4.4 rbio4.4 dd137 burt57".split()
REGISTERED = [name for name in STRATEGIES if name != "auto"]
FOR_ONE_AXIS = [name for name in REGISTERED if not STRATEGIES[name].needs_two_axes]
WAYS: dict[str, dict[str, str]] = {
    **{name: {"strategy": name} for name in REGISTERED},
    "rowcolumn": {"strategy": "rowcolumn", "method": "lifting"},
    "filtering": {"strategy": "rowcolumn", "method": "filters"},
}


def assert_near(mine: Any, theirs: Any, dtype: str = "float32", looser: float = 1) -> None:
    tolerance = {**TOLERANCE, "float16": 3e-3}[dtype]
    a, b = flat(mine), flat(theirs)
    assert [x.shape for x in a] == [x.shape for x in b]
    scale = max((float(np.abs(x).max()) for x in b if x.size), default=0.0) or 1.0
    for x, y in zip(a, b, strict=True):
        assert x.dtype == dtype
        np.testing.assert_allclose(x, y, rtol=0, atol=looser * tolerance * scale)


def check(target: str, x: Any, name: str, mode: str, level: int = 1, **options: Any) -> undula.Plan:
    """A plan forward and back, against PyWavelets in double precision."""
    dtype = {"i": "f8", "b": "f8"}.get(x.dtype.kind if x.dtype.itemsize != 2 else "", x.dtype)
    plan = undula.Plan(x.shape, name, level=level, mode=mode, dtype=dtype, backend=target, **options)
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    axes = options.get("axes") or tuple(range(x.ndim))
    known = undula.Wavelet(name)
    filters = pywt.Wavelet(name, filter_bank=known.filter_bank)
    theirs = pywt.wavedecn(wide, filters, mode, level, axes)
    dtype = plan.dtype.name
    made = plan.forward(x)
    keyed = [made[0]]
    for part in made[1:]:
        named = {2: ("da", "ad", "dd")}.get(len(axes))
        keyed.append(
            part if isinstance(part, dict) else dict(zip(named, part, strict=True)) if named else {"d": part}
        )
    assert_near(keyed, theirs, dtype, 3)
    rounded = [theirs[0].astype(dtype)]
    rounded += [{key: band.astype(dtype) for key, band in part.items()} for part in theirs[1:]]
    form = [rounded[0]]
    for part in rounded[1:]:
        order = {1: ("d",), 2: ("da", "ad", "dd")}.get(len(axes))
        form.append(
            part if order is None else part["d"] if len(order) == 1 else tuple(part[k] for k in order)
        )
    back = plan.inverse(form)
    assert back.shape == x.shape
    expected = pywt.waverecn(theirs, filters, mode, axes)[tuple(slice(n) for n in x.shape)]
    deep = max(float(np.abs(band).max()) for band in flat(theirs)) / float(np.abs(expected).max())
    assert_near([back], [expected], dtype, 5 * max(1.0, deep))
    return plan


# Each wavelet, strategy and alignment of rows is another kernel, which takes time to compile.
SHAPES = [(33, 40), (2, 8), (64, 144)]
KERNELS = [(way, name, shape) for way in WAYS for name in WAVELETS for shape in SHAPES]


@parametrize_some(
    ("way", "name", "shape"),
    KERNELS,
    [
        (way, name, shape)
        for way, name, shape in KERNELS
        if (shape == (33, 40) and (way == "sliding" or name in "haar sym4 bior4.4 rbio4.4".split()))
        or (name == "bior4.4" and (way == "sliding" or shape == (64, 144)))
        or (name == "haar" and way != "sliding" and shape == (2, 8))
    ],
)
def test_wavelets(target: str, way: str, name: str, shape: tuple[int, int]) -> None:
    options: Any = WAYS[way]
    check(target, noise(*shape, dtype="f4"), name, "symmetric", **options)


LONG = [
    (name, dtype, shape)
    for name in ("coif17", "db38")
    for dtype in ("f8", "c8", "c16")
    for shape in [(200,), (5, 30)]
]


@parametrize_some(
    ("name", "dtype", "shape"),
    LONG,
    [("coif17", "f8", (5, 30)), ("coif17", "c8", (200,)), ("db38", "f8", (200,)), ("db38", "c16", (200,))],
)
def test_the_longest_wavelets(target: str, name: str, dtype: str, shape: tuple[int, ...]) -> None:
    """They reach further than a group of lanes with two columns each."""
    x = noise(*shape, dtype=dtype)
    made, theirs = undula.dwtn(x, name, backend=target), pywt.dwtn(x, name)
    assert_near(made, theirs, x.dtype.name, 3)
    back = undula.idwtn(theirs, name, backend=target)
    assert_near([back], [pywt.idwtn(theirs, name)], x.dtype.name, 10)


@pytest.mark.parametrize("way", FOR_ONE_AXIS)
def test_missing_bands_of_wide_rows(target: str, way: str) -> None:
    """One row of zeros stands for a missing band, also if rows are long."""
    options: Any = {**WAYS[way], "level": 1, "dtype": "f4", "backend": target}
    plan = undula.Plan((8, 100, 90), "haar", axes=(0,), **options)
    np.testing.assert_allclose(plan.inverse([np.ones((4, 100, 90), "f4"), None]), np.sqrt(0.5), rtol=1e-6)
    x = noise(6, 10, 12, dtype="f4")
    coeffs = pywt.wavedecn(x, "db2", level=1)
    some = [coeffs[0], {"aad": coeffs[1]["aad"]}]
    made = undula.waverecn(some, "db2", backend=target)
    assert_near([made], [pywt.waverecn(some, "db2")], looser=3)


def test_a_wavelet_without_lifting(target: str) -> None:
    check(target, noise(33, 40, dtype="f4"), "dmey", "symmetric", strategy="naive")
    with pytest.raises(undula.UndulaError, match="dmey"):
        undula.Plan((20, 20), "dmey", level=1, backend=target, strategy="rowcolumn", method="lifting")


@parametrize_pairwise(way=REGISTERED, mode=undula.MODES, shape=[(13, 20), (3, 28)])
def test_modes(target: str, way: str, mode: str, shape: tuple[int, int]) -> None:
    options: Any = WAYS[way]
    check(target, noise(*shape, dtype="f4"), "db2", mode, **options)


@parametrize_pairwise(way=list(WAYS), name=["haar", "bior1.3", "bior2.4"], dtype=["f4", "f8"])
def test_a_constant_has_no_details(target: str, way: str, name: str, dtype: str) -> None:
    """Taps that cancel do so exactly, regardless of how a compiler fuses products and sums."""
    options: Any = {**WAYS[way], "dtype": dtype, "backend": target}
    plan = undula.Plan((34, 40), name, level=1, mode="smooth", **options)
    _, *details = flat(plan.forward(np.full((34, 40), 1 / 3, dtype)))
    assert not any(part.any() for part in details)


@pytest.mark.parametrize("name", ["haar", "bior2.4"])
def test_a_constant_has_no_details_by_any_scheme(target: str, scheme_name: str, name: str) -> None:
    if name == "bior2.4" and scheme_name in ("polyphase*", "monolithic*"):
        pytest.skip("stages of these schemes mix results that were rounded in different ways")
    plan = undula.Plan((32, 32), name, level=1, dtype="f8", backend=target, scheme=scheme_name)
    _, *details = flat(plan.forward(np.full((32, 32), 0.1)))
    assert not any(part.any() for part in details)


@pytest.mark.parametrize("mode", ["smooth", "antireflect"])
@pytest.mark.parametrize("way", [name if name != "rowcolumn" else "filtering" for name in REGISTERED])
def test_lines_are_extrapolated_precisely(target: str, way: str, mode: str) -> None:
    """Extrapolated values are large and rise slowly, which must not amplify rounding errors."""
    name = "db4" if way == "tiled" else "db8"
    x = (1000 + np.arange(40.0) / 7 + np.arange(34.0)[:, None] / 9).astype("f4")
    plan = undula.Plan(x.shape, name, level=1, mode=mode, dtype="f4", backend=target, **WAYS[way])
    exact = flat(pywt.dwt2(x.astype("f8"), name, mode))
    theirs, mine = flat(pywt.dwt2(x, name, mode)), flat(plan.forward(x))
    worst = [max(float(np.abs(a - b).max()) for a, b in zip(c, exact, strict=True)) for c in (mine, theirs)]
    assert worst[0] < 3 * worst[1]


@pytest.mark.parametrize("name", ["cdf53", "cdf97", "dd137", "bior6.8"])
def test_schemes(target: str, scheme_name: str, name: str) -> None:
    """Results, and which of them depend on a sample: a halo that is too narrow would lose some of these."""
    x = noise(71, 66, dtype="f4")
    plan = check(target, x, name, "symmetric", scheme=scheme_name)
    assert "tiled_forward" in plan.source
    theirs = undula.Plan(x.shape, name, level=1, dtype="f4", backend="reference", scheme=scheme_name)
    assert_near(plan.forward(x), theirs.forward(x), "float32", 3)
    x[::19, ::23] = np.nan
    bands = [[np.isnan(band) for band in flat(each.forward(x))] for each in (plan, theirs)]
    for mine, expected in zip(*bands, strict=True):
        np.testing.assert_array_equal(mine, expected)
    low, details = theirs.forward(noise(*x.shape, dtype="f4"))
    low[::9, ::11] = np.nan
    mine, expected = (np.isnan(each.inverse([low, details])) for each in (plan, theirs))
    np.testing.assert_array_equal(mine, expected)


DTYPES = ["f2", "f8", "u1", "u2", "i2", "c8", "c16", "i4", "?"]


@parametrize_some(
    ("way", "dtype"),
    [(way, dtype) for way in REGISTERED for dtype in DTYPES],
    [(way, dtype) for way in REGISTERED for dtype in (DTYPES if way == "sliding" else [*DTYPES[:3], "c8"])],
)
def test_dtypes(target: str, way: str, dtype: str) -> None:
    options: Any = WAYS[way]
    x = np.abs(noise(19, 34, dtype="f8")) * 3
    made = (x + 1j * x[::-1]).astype(dtype) if dtype[0] == "c" else x.astype(dtype)
    plan = check(target, made, "haar", "reflect", **options)
    expected = {"f2": "f2", "f8": "f8", "c8": "c8", "c16": "c16", "i4": "f8", "?": "f8"}
    assert plan.dtype == expected.get(dtype, "f4")


LAYOUTS = [
    ((200,), (0,), 3),
    ((5, 40), (1,), 2),
    ((40, 5), (0,), 2),
    ((40, 33), (0,), 2),
    ((3, 20, 31), (1, 2), 2),
    ((20, 31, 3), (0, 1), 2),
    ((20, 31, 4), (0, 1), 1),
    ((2, 20, 31, 2), (1, 2), 1),
    ((12, 20, 9), (0, 1), 1),
    ((12, 10, 14), (0, 1, 2), 1),
    ((12, 3, 14), (2, 0), 1),
    ((6, 5, 4, 7), (0, 1, 2, 3), 1),
]


@pytest.mark.parametrize("way", FOR_ONE_AXIS)
@pytest.mark.parametrize(("shape", "axes", "level"), LAYOUTS)
def test_axes_and_layouts(
    target: str, way: str, shape: tuple[int, ...], axes: tuple[int, ...], level: int
) -> None:
    options: Any = WAYS[way]
    check(target, noise(*shape, dtype="f4"), "db2", "symmetric", level, axes=axes, **options)


@settings(max_examples=30)
@given(
    shape=st.lists(st.integers(1, 70), min_size=1, max_size=3),
    mode=st.sampled_from(["symmetric"]),
    level=st.integers(1, 3),
    step=st.integers(1, 2),
    data=st.data(),
)
def test_any_shape(target: str, shape: list[int], mode: str, level: int, step: int, data: Any) -> None:
    axes = data.draw(st.permutations(range(len(shape))).map(lambda p: p[: max(1, len(p) - 1)]))
    x = noise(*(n * step for n in shape), dtype="f4")[(slice(None, None, step),) * len(shape)]
    theirs = pywt.wavedecn(x.astype("f8"), "db2", mode, level, axes)
    mine = undula.wavedecn(x, "db2", mode, level, axes, backend=target)
    assert_near(mine, theirs, "float32", 3)
    back = undula.waverecn(mine, "db2", mode, axes, shape=x.shape, backend=target)
    np.testing.assert_allclose(back, x, rtol=0, atol=1e-4 * float(np.abs(x).max() + 1))


@parametrize_pairwise(
    name=["cdf53", "db2"],
    mode=undula.LWT_MODES,
    size=[((33, 40), 2), ((32, 16), 3), ((1, 7), 2), ((5, 2), 3)],
)
def test_lwt(target: str, name: str, mode: str, size: tuple[tuple[int, int], int]) -> None:
    shape, level = size
    x = noise(*shape, dtype="f4")
    theirs = reference.lwtn(x, name, level, mode)
    mine = undula.lwtn(x, name, level, mode, backend=target)
    assert_near(mine, theirs, "float32", 3)
    back = undula.ilwtn(mine, name, mode, backend=target)
    np.testing.assert_allclose(back, x, rtol=0, atol=1e-4 * float(np.abs(x).max()))


@given(
    name=st.sampled_from(["db2", "cdf53", "cdf97"]),
    mode=st.sampled_from(undula.LWT_MODES),
    shape=st.lists(st.integers(1, 60), min_size=1, max_size=3),
    level=st.integers(1, 4),
    dtype=st.sampled_from(["u1", "i1", "u2", "i2", "i4"]),
    seed=st.integers(0, 2**32 - 1),
    data=st.data(),
)
@pytest.mark.thorough
@settings(max_examples=settings.default.max_examples // 3)
def test_integers(
    target: str, name: str, mode: str, shape: list[int], level: int, dtype: str, seed: int, data: Any
) -> None:
    """Coefficients equal those of the CPU, and the inverse is exact, for several arrays of each kind."""
    info, rng = np.iinfo(dtype), np.random.default_rng(seed)
    low, high = (info.min, info.max) if info.bits <= 16 else (-4000, 4000)
    axes = data.draw(st.none() | st.permutations(range(len(shape))))
    for turn in range(10 if THOROUGH else 2):  # Many lengths have kernels of their own.
        x = rng.integers(low, high, (shape[0] + turn, *shape[1:]), dtype, endpoint=True)
        if turn % 3 == 0:
            x = np.where(x > (low + high) // 2, np.array(high, dtype), np.array(low, dtype))
        mine = undula.lwtn(x, name, level, mode, axes, backend=target)
        for part, other in zip(flat(mine), flat(undula.lwtn(x, name, level, mode, axes)), strict=True):
            assert part.dtype == other.dtype
            np.testing.assert_array_equal(part, other)
        back = undula.ilwtn(mine, name, mode, axes, backend=target)
        assert back.dtype == mine[0].dtype
        np.testing.assert_array_equal(back, x)


def test_integers_along_the_last_axis_first(target: str) -> None:
    x = noise(9, 7, dtype="u1")
    mine = undula.lwtn(x, "cdf53", 2, axes=(1, 0), backend=target)
    for part, other in zip(flat(mine), flat(undula.lwtn(x, "cdf53", 2, axes=(1, 0))), strict=True):
        np.testing.assert_array_equal(part, other)
    np.testing.assert_array_equal(undula.ilwtn(mine, "cdf53", axes=(1, 0), backend=target), x)


@pytest.mark.parametrize("name", ["haar", "dd137", "burt57", "sym6"])
def test_integers_of_other_wavelets(target: str, name: str) -> None:
    x = noise(21, 34, dtype="u1")
    mine = undula.lwt2(x, name, 2, backend=target)
    for part, other in zip(flat(mine), flat(undula.lwt2(x, name, 2)), strict=True):
        np.testing.assert_array_equal(part, other)
    np.testing.assert_array_equal(undula.ilwt2(mine, name, backend=target), x)


def test_integers_that_devices_do_not_lift(target: str) -> None:
    with pytest.raises(undula.ArgumentTypeError, match="64-bit integers"):
        undula.lwt2(np.ones((8, 8), "i8"), "cdf53", backend=target)
    with pytest.raises(undula.ArgumentError, match="could overflow"):
        undula.lwt2(np.full((8, 8), 2**30, "i4"), "cdf53", backend=target)
    with pytest.raises(undula.ArgumentError, match="no larger ones"):
        undula.lwt2(np.ones((512, 512), "u2"), "db6", level=8, backend=target)
    with pytest.raises(undula.ArgumentTypeError, match="round them first"):
        undula.lwt2(np.ones((8, 8)), "cdf53", dtype="i2", backend=target)
    coeffs = [np.full((4, 4), 30000, "i2"), tuple(np.full((4, 4), 30000, "i2") for _ in range(3))]
    for name in ("cdf53", "cdf97"):  # nothing wraps
        exact = undula.ilwt2([coeffs[0].astype("i8"), tuple(d.astype("i8") for d in coeffs[1])], name)
        back = undula.ilwt2(coeffs, name, backend=target)
        assert (np.sign(back) == np.sign(exact))[np.abs(exact) > 40000].all()


@pytest.mark.parametrize(("space", "dtype"), [*((name, "u1") for name in color.SPACES), ("rct", "u2")])
def test_colours(target: str, space: str, dtype: str) -> None:
    """The first level applies the colour transform as it reads, and the last one its inverse as it writes."""
    channels = 4 if (space, dtype) in (("rct", "u2"), ("ict", "u1")) else 3
    image = np.random.default_rng(3).integers(0, np.iinfo(dtype).max, (33, 101, channels), dtype)
    mine = color.forward(image, level=2, color=space, backend=target)
    host = color.forward(image, level=2, color=space)
    for part, other in zip(flat(mine), flat(host), strict=True):
        assert part.shape == other.shape
        assert part.dtype == other.dtype
        loose = 0 if part.dtype.kind == "i" else 1e-5 * float(np.abs(other).max())
        np.testing.assert_allclose(part, other, rtol=0, atol=loose)
    back = color.inverse(mine, color=space, dtype=dtype, backend=target)
    again = color.inverse(host, color=space, dtype=dtype)
    assert back.dtype == image.dtype
    np.testing.assert_allclose(back.astype(int), again, rtol=0, atol=int(part.dtype.kind == "f"))
    beside = color.inverse(mine, color=space, dtype=dtype, backend=target, channel_axis=0)
    np.testing.assert_array_equal(np.moveaxis(beside, 0, -1), back)
    with pytest.raises(undula.ArgumentError, match="symmetric lifting steps"):
        color.forward(image, "db2", 1, color=space, backend=target)


@pytest.fixture
def limit_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Give the OpenCL device other limits, such as those of a GPU."""
    from undula.engines.gpu.engine import prepared_program
    from undula.engines.gpu.opencl.runtime import default_device

    device = default_device()
    prepared_program.cache_clear()
    yield lambda **limits: monkeypatch.setattr(device, "limits", device.limits._replace(**limits))
    prepared_program.cache_clear()


ROWS = [((33, 300), (0, 1)), ((16, 512), (0, 1)), ((8, 256), (0,)), ((3, 700), (1,))]


@parametrize_some(
    ("name", "rows"),
    [(name, rows) for name in ("haar", "db2", "cdf97") for rows in ROWS],
    [*(("cdf97", rows) for rows in ROWS), ("haar", ROWS[0]), ("db2", ROWS[1])],
)
def test_loops_for_gpus_on_any_device(
    name: str, rows: tuple[tuple[int, int], tuple[int, ...]], limit_device: Callable[..., None]
) -> None:
    """The separate loops for the interior of rows, which CPUs do not use by default, also run there."""
    limit_device(gpu=True)
    shape, axes = rows
    plan = check("opencl", noise(*shape, dtype="f4"), name, "symmetric", axes=axes, strategy="sliding")
    assert "at_end" in plan.source


@pytest.mark.parametrize("name", ["haar", "cdf97"])
def test_levels_that_would_leave_a_gpu_without_work(name: str, limit_device: Callable[..., None]) -> None:
    limit_device(gpu=True, units=4)
    plan = undula.Plan((150, 170), name, level=3, dtype="f4", backend="opencl")
    assert plan.strategy == ("sliding" if name == "haar" else "tiled and sliding")
    x = noise(150, 170, dtype="f4")
    coeffs = plan.forward(x)
    np.testing.assert_allclose(coeffs[0], undula.wavedec2(x, name, level=3)[0], rtol=0, atol=2e-4)
    np.testing.assert_allclose(plan.inverse(coeffs), x, rtol=0, atol=1e-4)


LINES = [(2, 10000), (20481,), (16384,)]


@parametrize_some(
    ("mode", "shape"),
    [(mode, shape) for mode in undula.MODES for shape in LINES],
    [
        *(("symmetric", shape) for shape in LINES),
        *((mode, LINES[k % 3]) for k, mode in enumerate(undula.MODES) if mode != "symmetric"),
    ],
)
def test_levels_of_long_lines(target: str, mode: str, shape: tuple[int, ...]) -> None:
    name = "bior4.4" if mode in ("symmetric", "periodization") else "db2"
    x = noise(*shape, dtype="f4")
    theirs = pywt.wavedec(x.astype("f8"), name, mode, 4)
    mine = undula.wavedec(x, name, mode, 4, backend=target)
    assert_near(mine, theirs, "float32", 3)


def test_functions_of_one_two_and_many_axes(target: str) -> None:
    x = noise(24, 30, dtype="f4")
    assert_near(undula.dwt(x, "db2", axis=0, backend=target), pywt.dwt(x, "db2", axis=0))
    assert_near(undula.dwt2(x, "db2", backend=target), pywt.dwt2(x, "db2"))
    assert_near(undula.dwtn(x, "db2", backend=target), pywt.dwtn(x, "db2"))
    assert_near(undula.wavedec(x, "db2", level=2, backend=target), pywt.wavedec(x, "db2", level=2))
    deep = pywt.wavedec2(x, "db2", level=2)
    assert_near(undula.wavedec2(x, "db2", level=2, backend=target), deep)
    assert_near([undula.waverec2(deep, "db2", backend=target)], [pywt.waverec2(deep, "db2")], looser=3)
    pair = pywt.dwt(x, "db2")
    assert_near([undula.idwt(*pair, "db2", backend=target)], [pywt.idwt(*pair, "db2")])
    assert_near([undula.idwt(None, pair[1], "db2", backend=target)], [pywt.idwt(None, pair[1], "db2")])
    bands = pywt.dwt2(x, "db2")
    assert_near([undula.idwt2(bands, "db2", backend=target)], [pywt.idwt2(bands, "db2")])
    some = [deep[0], (None, deep[1][1], None), (None, None, None)]
    assert_near([undula.waverec2(some, "db2", backend=target)], [pywt.waverec2(some, "db2")])
    none = undula.wavedec2(x, "db2", level=0, backend=target)
    np.testing.assert_array_equal(none[0], x)


def test_different_wavelets_and_modes_along_axes(target: str) -> None:
    x = noise(24, 30, dtype="f4")
    options: Any = (["db2", "bior4.4"], ["periodization", "symmetric"])
    theirs = pywt.wavedec2(x, *options, level=2)
    mine = undula.wavedec2(x, *options, level=2, backend=target)
    assert_near(mine, theirs, looser=3)
    assert_near(
        [undula.waverec2(mine, *options, backend=target)], [pywt.waverec2(theirs, *options)], looser=3
    )


def test_a_batch_of_more_planes_than_a_grid_has_rows(target: str) -> None:
    x = noise(66000, 4, 4, dtype="f4")
    mine = undula.wavedec2(x, "haar", level=1, backend=target)
    np.testing.assert_allclose(mine[0], undula.wavedec2(x, "haar", level=1)[0], atol=1e-4)


def test_empty_batches(target: str) -> None:
    mine = undula.wavedec2(np.zeros((0, 8, 8), "f4"), "haar", level=1, backend=target)
    assert mine[0].shape == (0, 4, 4)
    assert undula.waverec2(mine, "haar", backend=target).shape == (0, 8, 8)


def test_square(target: str) -> None:
    x = noise(9, 14, dtype="f4")
    plan = undula.Plan(x.shape, "haar", mode="periodization", dtype="f4", backend=target, square=True)
    assert plan.level == 4
    whole = np.zeros((16, 16), "f4")
    whole[:9, :14] = x
    made = plan.forward(x)
    assert made[0].shape == (1, 1)
    assert_near(made, pywt.wavedec2(whole, "haar", "periodization", 4))
    np.testing.assert_allclose(plan.inverse(made), x, atol=1e-4)
    host = undula.Plan(x.shape, "haar", mode="periodization", dtype="f4", square=True)
    assert_near(made, host.forward(x))
    np.testing.assert_allclose(host.inverse(made), x, atol=1e-4)


def test_frames(target: str) -> None:
    plan = undula.Plan((30, 44), "cdf97", level=2, dtype="u1", backend=target)
    frames = [(np.arange(30 * 44).reshape(30, 44) * (k + 1) % 251).astype("u1") for k in range(7)]
    made = list(plan.frames(frames))
    assert len(made) == 7
    for frame, coeffs in zip(frames, made, strict=True):
        assert_near(coeffs, plan.forward(frame))
    with pytest.raises(undula.ArgumentError, match="this plan is for arrays of shape"):
        list(plan.frames([frames[0], frames[0].T]))


def test_tuning_results_are_cached(target: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    x = noise(40, 64, dtype="f4")
    options: Any = {"level": 1, "dtype": "f4", "backend": target, "scheme": "sweldens", "tune": True}
    plan = undula.Plan(x.shape, "haar", **options)
    assert_near(plan.forward(x), pywt.wavedec2(x, "haar", level=1))
    monkeypatch.setattr(tuning, "run_seconds", lambda _: pytest.fail("measured again"))
    again = undula.Plan(x.shape, "haar", **options)
    assert again.options == plan.options


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scheme": "sweldens", "strategy": "naive"}, "run by strategy 'tiled'"),
        ({"scheme": "sweldens", "axes": (0,)}, "two neighbouring axes"),
        ({"wavelet": "db12", "scheme": "polyphase"}, "those that do: convolution"),
        ({"scheme": "sweldens", "axes": (0, 1), "shape": (40, 40, 5)}, "at most 4 numbers"),
        ({"scheme": "sweldens", "wavelet": ("haar", "db2")}, "one wavelet for both axes"),
        ({"scheme": "sweldens", "method": "filters"}, "'tiled', which runs schemes"),
        ({"strategy": "tiled", "axes": (0,)}, "two neighbouring axes"),
        ({"strategy": "tiled", "wavelet": "db38"}, "does not fit into a tile"),
        ({"strategy": "naive", "method": "lifting"}, "runs filters"),
        ({"strategy": "slidign"}, "did you mean 'sliding'"),
        ({"method": "fft"}, "unknown method"),
    ],
)
def test_invalid_choices(target: str, options: dict[str, Any], said: str) -> None:
    own = dict(options)
    with pytest.raises(undula.ArgumentError, match=said):
        undula.Plan(own.pop("shape", (40, 40)), own.pop("wavelet", "db2"), level=1, backend=target, **own)


def test_plans_report_their_choices(target: str) -> None:
    made = [
        undula.Plan((64, 64), "cdf97", level=1, dtype="f4", backend=target, **way)
        for way in (
            {"strategy": "sliding"},
            {"method": "filters"},
            {"strategy": "naive"},
            {"scheme": "convolution"},
            {"scheme": "sweldens"},
        )
    ]
    assert [plan.method for plan in made] == ["lifting", "filters", "filters", "filters", "lifting"]
    assert [plan.strategy for plan in made] == ["sliding", "sliding", "naive", "tiled", "tiled"]
    assert made[2].cost.bytes == 2 * made[0].cost.bytes
    assert "scheme='sweldens'" in repr(made[4])
    plan = undula.Plan((64, 64), "cdf97", level=1, dtype="f4", backend=target)
    assert plan.strategy in ("sliding", "tiled")
    assert f"{plan.strategy}_forward" in plan.source
    assert "strategy='auto'" in repr(plan)


def test_plans_without_levels_or_elements(target: str) -> None:
    plan = undula.Plan((4, 4), "cdf97", level=0, dtype="f4", backend=target)
    x = noise(4, 4, dtype="f4")
    np.testing.assert_array_equal(plan.forward(x)[0], x)
    np.testing.assert_array_equal(plan.inverse([x]), x)
    assert plan.source == ""
    empty = undula.Plan((0, 8, 8), "haar", level=1, axes=(1, 2), dtype="f4", backend=target)
    assert empty.forward(np.zeros((0, 8, 8), "f4"))[0].shape == (0, 4, 4)


def test_out_arrays_on_the_host(target: str) -> None:
    plan = undula.Plan((20, 30), "db2", level=2, dtype="f4", backend=target)
    x, out = noise(20, 30, dtype="f4"), plan.empty()
    assert plan.forward(x, out=out)[0] is out[0]
    assert_near(out, pywt.wavedec2(x, "db2", level=2))
    back = np.empty_like(x)
    assert plan.inverse(out, out=back) is back
    np.testing.assert_allclose(back, x, atol=1e-4)
    with pytest.raises(undula.ArgumentError, match="must have shape"):
        plan.inverse(out, out=np.empty((20, 31), "f4"))


def test_tuning_skips_candidates_that_do_not_fit(
    target: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tuning, "run_seconds", lambda plan: len(plan.source))
    options: Any = {"dtype": "f8", "level": 1, "backend": target, "scheme": "convolution"}
    plan = undula.Plan((40, 40), "bior6.8", tune=True, **options)
    refused = 0
    for knobs in tuning.knob_candidates(plan):
        try:
            plan.with_knobs(knobs)
        except undula.ArgumentError:
            refused += 1
    assert refused  # or nothing had to be left out


def test_invalid_arrays(target: str) -> None:
    plan = undula.Plan((8, 8), "haar", level=1, dtype="f4", backend=target)
    with pytest.raises(undula.ArgumentError, match="this plan is for arrays of shape"):
        plan.forward(np.zeros((8, 9), "f4"))
    with pytest.raises(undula.UndulaError, match="must be numbers"):
        plan.forward("abc")
    with pytest.raises(undula.ArgumentError, match="nested as the result"):
        plan.forward(np.zeros((8, 8), "f4"), out=5)
    with pytest.raises(undula.ArgumentError, match="nested as the result"):
        plan.forward(np.zeros((8, 8), "f4"), out=[])
    assert plan.inverse([np.zeros((4, 4)), (None, None, None)]).dtype == "f4"
    with pytest.raises(undula.ArgumentTypeError, match="got coefficients of complex"):
        plan.inverse([np.zeros((4, 4), "c8"), (None, None, None)])
    with pytest.raises(undula.ArgumentTypeError, match="nonsense"):
        undula.Plan((8, 8), "haar", level=1, dtype="nonsense")
    with pytest.raises(undula.ArgumentError, match="unknown backend"):
        undula.wavedec2(np.zeros((8, 8)), "haar", backend="gpu")
    with pytest.raises(undula.ArgumentError, match="samples along"):
        undula.wavedec2(np.zeros((0, 8)), "haar", level=1, backend=target)


def test_strategies_and_schemes_need_a_device() -> None:
    with pytest.raises(undula.ArgumentError, match="for backends 'cuda'"):
        undula.Plan((8, 8), "haar", strategy="tiled")
    with pytest.raises(undula.ArgumentError, match="has no kernels to show"):
        _ = undula.Plan((8, 8), "haar", level=1).source


def test_devices_have_numbers(target: str) -> None:
    found = undula.devices()
    assert next(iter(found)) == "cpu"
    assert f"{target}:0" in found
    x = np.arange(64.0, dtype=np.float32).reshape(8, 8)
    one, two = (undula.wavedec2(x, "db2", level=1, backend=name) for name in (target, f"{target}:0"))
    np.testing.assert_array_equal(one[0], two[0])
    plan = undula.Plan(x.shape, "db2", level=1, backend=f"{target}:0", dtype="float32")
    np.testing.assert_array_equal(plan.forward(x)[0], two[0])
    assert plan.backend == target
    with pytest.raises(undula.MissingDeviceError, match="number 1000"):
        undula.dwt2(x, "db2", backend=f"{target}:1000")
    for wrong in (f"{target}:x", f"{target}:", "cpu:0"):
        with pytest.raises(undula.ArgumentError, match="unknown backend"):
            undula.dwt2(x, "db2", backend=wrong)


def error_in_child(call: Callable[[], Any]) -> str:
    """Return the error that a call raises in a child of this process."""

    def answer(pipe: Any) -> None:
        try:
            call()
        except undula.errors.DeviceError as error:
            pipe.send(str(error))
        pipe.close()

    context = multiprocessing.get_context("fork")
    reader, writer = context.Pipe(duplex=False)
    child = context.Process(target=answer, args=(writer,))
    child.start()
    try:
        return str(reader.recv()) if reader.poll(60) else "no answer"
    finally:
        child.kill()
        child.join()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_is_an_error(target: str) -> None:
    x = noise(16, 16)
    plan = undula.Plan(x.shape, "haar", backend=target)
    coeffs = plan.forward(x)
    calls: list[Callable[[], Any]] = [
        lambda: undula.wavedec2(x, "haar", backend=target),
        lambda: plan.forward(x, out=coeffs),
        lambda: undula.Plan((18, 20), "db2", backend=f"{target}:0"),
    ]
    for call in calls:
        assert "'spawn'" in error_in_child(call)
    assert_near(plan.forward(x), coeffs, "float64")
