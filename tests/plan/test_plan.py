"""Plans: the results of the functions, into arrays that exist, and what they cost."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import undula
from comparing import assert_identical, assert_same, flat, noise
from undula.engines.base import Knobs

pytestmark = pytest.mark.filterwarnings("ignore:Level value")


@pytest.mark.parametrize("name", ["haar", "cdf97", "db4", "dmey"])
def test_plans_do_what_functions_do(name: str) -> None:
    x = noise(60, 51, 40, dtype="f4")
    for axes, function in ((-1, undula.wavedec), ((0, 1), undula.wavedec2), (None, undula.wavedecn)):
        plan = undula.Plan(x.shape, name, level=1, mode="reflect", axes=axes, dtype=x.dtype)
        options: dict[str, Any] = {"axis": axes} if axes == -1 else {"axes": axes}
        wanted: Any = function(x, name, "reflect", 1, **options)
        coeffs = plan.forward(x)
        assert type(coeffs[1]) is type(wanted[1])
        assert_identical(coeffs, wanted)
        made = plan.empty()
        assert all(a is b for a, b in zip(flat(plan.forward(x, out=made)), flat(made), strict=True))
        assert_identical(made, wanted)
        assert [np.shape(a) for a in flat(made)] == [a.shape for a in flat(wanted)]
        back = plan.inverse(coeffs)
        assert back.shape == x.shape
        if name != "dmey":
            assert_same(back, x)
        array = np.empty_like(x)
        assert plan.inverse(coeffs, out=array) is array
        assert_identical(array, back)


@pytest.mark.parametrize("scheme", ["auto", "sweldens", "monolithic*", "convolution"])
def test_the_reference_runs_any_scheme(scheme: str) -> None:
    x = noise(41, 54)
    plan = undula.Plan(x.shape, "cdf97", level=2, backend="reference", scheme=scheme)
    coeffs = plan.forward(x)
    assert_same(coeffs, undula.wavedec2(x, "cdf97", level=2), 10)
    assert_same(plan.inverse(coeffs), x, 10)
    made = plan.empty()
    assert_identical(plan.forward(x, out=made), coeffs)


@pytest.mark.parametrize("backend", ["cpu", "reference", "opencl"])
def test_squares_without_levels_are_padded(backend: str) -> None:
    x = noise(5, 6, dtype="f4")
    plan = undula.Plan(x.shape, "haar", level=0, square=True, dtype="f4", backend=backend)
    (low,) = plan.forward(x)
    assert [low.shape] == plan.shapes == [(8, 8)]
    assert_identical(low[:5, :6], x)
    assert not low[5:].any()
    assert_identical(plan.inverse([low]), x)


@pytest.mark.parametrize("backend", ["cpu", "reference", "opencl"])
def test_one_wavelet_and_mode_for_each_axis(backend: str) -> None:
    x = noise(21, 30)
    axes: Any = {"wavelet": ("db2", "bior4.4"), "mode": ("zero", "periodization")}
    plan = undula.Plan(x.shape, **axes, level=2, backend=backend)
    assert_same(plan.forward(x), undula.wavedec2(x, **axes, level=2), 10)
    assert_same(plan.inverse(plan.forward(x)), x, 10)


def test_what_plans_tell() -> None:
    plan = undula.Plan((1024, 512), "cdf97", level=2, dtype="f4")
    assert plan.method == "lifting"
    assert undula.Plan((64, 64), "db8").method == "filters"
    # CDF 9/7 in double precision is not run by lifting where PyWavelets' filters differ from it.
    assert undula.Plan((64, 64), "bior4.4").method == "filters"
    one = undula.Plan((1024, 512), "cdf97", level=1, dtype="f4").cost
    assert one.barriers == 1
    low = (1024 + 9) // 2 * ((512 + 9) // 2)
    assert one.bytes == 4 * (1024 * 512 + 4 * low)
    assert one.operations == 1024 * 512 * 2 * 5  # four steps on half of the samples each, and the scaling
    assert plan.cost.bytes > one.bytes
    assert plan.shapes[0] == plan.forward(np.ones((1024, 512), "f4"))[0].shape
    assert "cdf97" in repr(plan)
    assert "level=2" in repr(plan)


BAD: dict[str, tuple[Any, str]] = {
    "another shape": (lambda: undula.Plan((8, 8), "haar", level=1).forward(np.ones((8, 9))), r"\(8, 9\)"),
    "another dtype": (lambda: undula.Plan(8, "haar", level=1).forward(np.ones(8, "f4")), "float32"),
    "no shape": (lambda: undula.Plan("ab", "haar"), "ab"),  # type: ignore[arg-type]
    "empty": (lambda: undula.Plan((0, 3), "haar"), r"\(0, 3\)"),
    "unknown backend": (lambda: undula.Plan(8, "haar", backend="gpu"), "'gpu'"),
    "unknown scheme": (lambda: undula.Plan((8, 8), "haar", scheme="swelden"), "'sweldens'"),
    "unknown strategy": (lambda: undula.Plan(8, "haar", strategy="tiled"), "'tiled'"),
    "a scheme on the CPU": (lambda: undula.Plan((8, 8), "haar", scheme="sweldens"), "reference"),
    "half precision on the CPU": (lambda: undula.Plan(8, "haar", dtype="f2"), "dtype='float32', in which"),
    "integers on the CPU": (lambda: undula.Plan(8, "haar", dtype="i2"), "dtype='float64', in which"),
    "tuning on the CPU": (lambda: undula.Plan(8, "haar", tune=True), "'cuda' and 'opencl'"),
    "a word as a flag": (lambda: undula.Plan(8, "haar", square="no"), "square must be True or False"),  # type: ignore[arg-type]
    **{
        f"{name} of a stationary transform": (
            lambda name=name, value=value: undula.Plan((8, 8), "haar", transform="swt", **{name: value}),
            f"{name} '?{value}'? is for transform='dwt'|{name}=True is for transform='dwt'",
        )
        for name, value in {
            "scheme": "sweldens",
            "strategy": "naive",
            "method": "filters",
            "tune": True,
        }.items()
    },
    "fewer levels": (
        lambda: undula.Plan(8, "haar", level=2).inverse([np.ones(4), np.ones(4)]),
        "2 level",
    ),
    "out of another shape": (
        lambda: undula.Plan(8, "haar", level=1).forward(np.ones(8), [np.ones(4), np.ones(5)]),
        r"\(5,\)",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str) -> None:
    act, message = BAD[case]
    with pytest.raises(undula.UndulaError, match=f"(?s){message}"):
        act()


def test_what_is_run_again_sees_what_has_changed() -> None:
    """The same arrays once more are a short cut; everything about them may be other than before."""
    rng = np.random.default_rng(0)
    plan = undula.Plan((60, 44), "bior4.4", level=3)
    x, y = rng.standard_normal((60, 44)), np.empty((60, 44))
    coeffs = plan.forward(x)
    limits = np.full((3, 2, 3), 0.3)
    for turn in range(6):
        x[...] = rng.standard_normal(x.shape)
        if turn == 3:
            limits[...] = 0.7
        if turn == 4:
            undula.set_num_threads(3)
        plan.forward(x, out=coeffs)
        wanted = undula.wavedec2(x, "bior4.4", level=3)
        np.testing.assert_array_equal(coeffs[0], wanted[0])
        np.testing.assert_array_equal(coeffs[3][2], wanted[3][2])
        plan.inverse(coeffs, out=y)
        np.testing.assert_allclose(y, x, atol=1e-9)
        plan.inverse(coeffs, out=y, rule="soft", limits=limits)
        fresh = plan.inverse(coeffs, rule="soft", limits=limits)
        np.testing.assert_array_equal(y, fresh)
    undula.set_num_threads(None)
    other = rng.standard_normal((60, 44))
    plan.forward(other, out=coeffs)
    np.testing.assert_array_equal(coeffs[0], undula.wavedec2(other, "bior4.4", level=3)[0])
    whole = x.astype("i4")  # converted first, so that there is nothing to run again
    for turn in range(3):
        whole[...] = turn
        plan.forward(whole, out=coeffs)
        np.testing.assert_allclose(coeffs[0], 8 * turn, atol=1e-6)
    turned = np.asfortranarray(x)
    for _ in range(3):
        turned[...] = rng.standard_normal(turned.shape)
        plan.forward(turned, out=coeffs)
        np.testing.assert_allclose(coeffs[0], undula.wavedec2(turned, "bior4.4", level=3)[0], atol=1e-12)


def test_operators_are_those_that_run() -> None:
    """Kernels for planes know no mixture of lifting and filters, but a third axis has its own method."""
    wavelets = ("bior4.4", "bior4.4", "db8")
    plan = undula.Plan((32, 32, 32), wavelets, level=1, dtype="float32")
    [(shape, operators)] = plan.operators()
    assert shape == (32, 32, 32)
    assert [op.method for _, op in operators] == ["lifting", "filters", "filters"]
    assert undula.Plan((32, 32), ("db8", "bior4.4"), level=1, dtype="float32").method == "filters"


def test_the_program_of_a_plan_is_now_its_executable(target: str) -> None:
    plan = undula.Plan((32, 32), "haar", level=1, backend=target)
    with pytest.warns(DeprecationWarning, match="use Plan.executable"):
        assert plan.program(False).program is plan.executable(False).program
    with pytest.warns(DeprecationWarning, match="use Plan.operators"):
        assert [level.shape for level in plan.stages] == [shape for shape, _ in plan.operators()]


PICKLED: list[dict[str, Any]] = [
    {},
    {"level": 9, "mode": "periodization"},
    {"wavelet": ("haar", "db2"), "mode": ("zero", "reflect"), "dtype": "c8"},
    {"square": True, "dtype": "f4", "axes": (1,)},
    {"backend": "reference", "scheme": "sweldens"},
    {"backend": "opencl", "dtype": "u1"},
    {"backend": "opencl", "scheme": "monolithic", "wavelet": "cdf53"},
    {"backend": "opencl", "strategy": "rowcolumn", "method": "filters"},
]


@pytest.mark.parametrize("options", PICKLED, ids=str)
@pytest.mark.parametrize(
    "duplicate", [lambda plan: pickle.loads(pickle.dumps(plan)), copy.deepcopy, copy.copy]
)
def test_plans_are_pickled_as_their_arguments(options: dict[str, Any], duplicate: Any) -> None:
    x = np.abs(noise(12, 10)).astype(options.get("dtype", "f8"))
    plan = undula.Plan(x.shape, **{"wavelet": "haar", **options})
    made, out = plan.forward(x), plan.empty()
    for _ in range(2):
        plan.inverse(plan.forward(x, out=out), out=np.empty(x.shape, plan.dtype))
    again = duplicate(plan)
    assert repr(again) == repr(plan)
    assert (again, hash(again), again.options) == (plan, hash(plan), plan.options)
    assert_identical(again.forward(x), made)


def test_a_pickled_plan_keeps_its_knobs(target: str) -> None:
    plan = undula.Plan((32, 32), "haar", level=1, backend=target, strategy="sliding")
    tuned = plan.with_knobs(Knobs(pixels=2))
    assert pickle.loads(pickle.dumps(tuned)).options.knobs == Knobs(pixels=2)
    assert tuned != plan


def test_plans_that_differ_are_unequal() -> None:
    plan = undula.Plan((12, 10), "haar")
    assert plan == undula.Plan([12, 10], undula.Wavelet("haar"), axes=(-2, -1), backend="cpu")
    others: list[dict[str, Any]] = [{"level": 1}, {"mode": "zero"}, {"dtype": "f4"}, {"backend": "reference"}]
    assert all(undula.Plan((12, 10), "haar", **other) != plan for other in others)
    assert plan != "a plan"


@pytest.mark.parametrize("depth", [0, "a", 1.5, True])
def test_depth_of_frames(depth: Any) -> None:
    plan = undula.Plan((8, 8), "db2")
    with pytest.raises(undula.ArgumentError, match="depth must be an integer of at least 1"):
        next(plan.frames([np.ones((8, 8))], depth=depth))


@pytest.mark.parametrize("backend", ["cpu", "reference", "opencl"])
def test_stationary_plans(backend: str) -> None:
    x = noise(12, 20)
    plan = undula.Plan(x.shape, "db2", level=2, transform="swt", backend=backend)
    expected = undula.swt2(x, "db2", 2, trim_approx=True)
    coeffs = plan.forward(x)
    assert_same(coeffs, expected)
    assert_same(plan.inverse(coeffs), x, 10)
    assert plan.shapes == [(12, 20), ((12, 20),) * 3, ((12, 20),) * 3]
    for number in range(3):  # The same plan again, into the same arrays.
        out = plan.forward(number * x, out=coeffs)
        assert_same(out, undula.swt2(number * x, "db2", 2, trim_approx=True))
        assert_same(plan.inverse(out, out=np.empty(x.shape)), number * x, 10)
    other = pickle.loads(pickle.dumps(plan))
    assert other == plan != undula.Plan(x.shape, "db2", level=2, mode="periodization", backend=backend)
    assert "transform='swt'" in repr(other)
    assert plan.method == "filters"
    assert plan.cost.operations == 12 * 20 * 2 * 2 * 8
    options: Any = {"level": 2, "norm": True, "start_level": 1}
    further = undula.Plan((16,), "db3", transform="swt", backend=backend, **options)
    line = noise(16)
    assert_same(further.forward(line), undula.swt(line, "db3", trim_approx=True, **options))
    assert_same(further.inverse(further.forward(line)), line, 10)
    assert pickle.loads(pickle.dumps(further)) == further
    assert further != undula.Plan((16,), "db3", level=2, transform="swt", backend=backend)
    assert "norm=True, start_level=1" in repr(further)
    odd = undula.Plan((7,), "db3", level=2, mode="smooth", transform="swt", backend=backend)
    assert_same(odd.inverse(odd.forward(noise(7))), noise(7), 100)


def test_stationary_plans_that_cannot_be() -> None:
    with pytest.raises(undula.ArgumentError, match="omit square"):
        undula.Plan((8, 8), "haar", transform="swt", square=True)
    with pytest.raises(undula.ArgumentError, match="for transform='swt', got norm=True"):
        undula.Plan((8, 8), "haar", norm=True)
    with pytest.raises(undula.ArgumentError, match="from 0 to 40, got 41"):
        undula.Plan((8, 8), "haar", transform="swt", start_level=41)
    with pytest.raises(undula.ArgumentError, match="transform 'lwt'"):
        undula.Plan((8, 8), "haar", transform="lwt")
