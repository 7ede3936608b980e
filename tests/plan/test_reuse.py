"""Plans that run again on the same arrays: every result is that of a plan that has never run before."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import undula
from comparing import assert_identical, flat

pytestmark = pytest.mark.filterwarnings("ignore:Level value")

Array = NDArray[Any]

LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "every second": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "backwards": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "part of complex": lambda x: np.stack([x, x], -1)[..., 0],
    "rows of a larger array": lambda x: np.concatenate([x, x], -1)[..., : x.shape[-1]],
    "unaligned": lambda x: _unaligned(x),
}


def _unaligned(x: Array) -> Array:
    memory = np.zeros(x.nbytes + 1, np.uint8)
    shifted = np.ndarray(x.shape, x.dtype, memory.data, 1)
    shifted[...] = x
    return shifted


def _fill(rng: np.random.Generator, x: Array) -> None:
    x[...] = 50 * rng.standard_normal(x.shape)
    if x.dtype.kind == "c":
        x.imag = rng.standard_normal(x.shape)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, ...]:
    shape = tuple(draw(st.lists(st.integers(1, 20), min_size=1, max_size=3)))
    axes = draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))
    plan = {
        "shape": shape,
        "wavelet": draw(st.sampled_from(["haar", "bior4.4", "db3"])),
        "level": draw(st.sampled_from([None, 0, 1, 2, 3])),
        "mode": draw(st.sampled_from(["symmetric", "periodization", "smooth"])),
        "axes": tuple(sorted(axes)),
        "dtype": draw(st.sampled_from(["f4", "f8", "c8", "c16"])),
        "square": draw(st.sampled_from([False, False, True])),
    }
    layouts = st.sampled_from(sorted(LAYOUTS))
    sample_dtype = (
        draw(st.sampled_from(["same", "same", "i2", "f2"])) if plan["dtype"] in ("f4", "f8") else "same"
    )
    if (plan["dtype"], sample_dtype) in (("f4", "i2"), ("f8", "f2")):
        sample_dtype = "same"
    return plan, draw(layouts), draw(layouts), draw(layouts), sample_dtype


@given(cases(), st.integers(0, 2**31))
def test_reused_plans_give_what_new_ones_give(case: tuple[Any, ...], seed: int) -> None:
    options, order_of_samples, order_of_bands, order_of_result, sample_dtype = case
    rng = np.random.default_rng(seed)
    plan = undula.Plan(**options)
    dtype = plan.dtype if sample_dtype == "same" else np.dtype(sample_dtype)
    x = LAYOUTS[order_of_samples](np.zeros(plan.shape, dtype))
    y = LAYOUTS[order_of_result](np.zeros(plan.shape, plan.dtype))
    form = plan.empty()
    coeffs = _mapped(form, lambda band: LAYOUTS[order_of_bands](np.zeros_like(band)))
    rules: list[dict[str, Any]] = [{}]
    if plan.dtype.kind == "f":
        limits = np.full((plan.level, 2, 2 ** len(plan.axes) - 1), 20.0)
        rules.append({"rule": "soft", "limits": limits})
    for turn in range(3):
        _fill(rng, x)
        plan.forward(x, out=coeffs)
        assert_identical(coeffs, undula.Plan(**options).forward(np.ascontiguousarray(x)))
        for band in flat(coeffs):
            _fill(rng, band)
        for rule in rules:
            plan.inverse(coeffs, out=y, **rule)
            contiguous = _mapped(coeffs, np.ascontiguousarray)
            assert_identical(y, undula.Plan(**options).inverse(contiguous, **rule))
        if turn == 1 and len(rules) == 2:
            limits *= 0.5


def _mapped(coeffs: Any, change: Callable[[Array], Array]) -> Any:
    if isinstance(coeffs, np.ndarray):
        return change(coeffs)
    if isinstance(coeffs, dict):
        return {key: _mapped(band, change) for key, band in coeffs.items()}
    return type(coeffs)(_mapped(part, change) for part in coeffs)


@pytest.mark.parametrize("level", [0, None])
@pytest.mark.parametrize("shape", [(3, 3), 5, (2, 3, 4)])
def test_plans_without_levels(shape: Any, level: int | None) -> None:
    plan = undula.Plan(shape, "db2" if level is None else "haar", level=level)
    if level is None:
        plan = undula.Plan(shape, "db8")
    assert plan.level == 0
    x, y, coeffs = np.empty(plan.shape), np.empty(plan.shape), plan.empty()
    for turn in range(3):
        x[...] = turn
        assert plan.forward(x, out=coeffs)[0].min() == turn
        coeffs[0][...] = 10 + turn
        assert plan.inverse(coeffs, out=y).max() == 10 + turn


def _ready() -> tuple[undula.Plan, Array, list[Any], Array]:
    """A plan that has run three times both ways on these arrays."""
    plan = undula.Plan((16, 12), "bior4.4", level=2, dtype="f8")
    x, y = np.random.default_rng(1).standard_normal((16, 12)), np.zeros((16, 12))
    coeffs = plan.empty()
    for _ in range(3):
        plan.forward(x, out=coeffs)
        plan.inverse(coeffs, out=y)
    return plan, x, coeffs, y


@pytest.mark.parametrize("number", [0, 1, 6])
def test_reused_plans_leave_read_only_arrays_alone(number: int) -> None:
    plan, x, coeffs, y = _ready()
    band = flat(coeffs)[number]
    before = band.copy()
    band.flags.writeable = False
    x += 1
    with pytest.raises(undula.ArgumentError, match="writeable"):
        plan.forward(x, out=coeffs)
    assert_identical(band, before)
    assert_identical(plan.inverse(coeffs, out=y), undula.Plan(**_OPTIONS).inverse(coeffs))  # it is only read
    y.flags.writeable = False
    before = y.copy()
    flat(coeffs)[2][...] = 5
    with pytest.raises(undula.ArgumentError, match="writeable"):
        plan.inverse(coeffs, out=y)
    assert_identical(y, before)


_OPTIONS: dict[str, Any] = {"shape": (16, 12), "wavelet": "bior4.4", "level": 2}


def test_read_only_samples_may_be_read_again() -> None:
    plan, x, coeffs, _ = _ready()
    x += 1
    x.flags.writeable = False
    assert_identical(plan.forward(x, out=coeffs), undula.Plan(**_OPTIONS).forward(x))


CHANGES: dict[str, tuple[str, Any]] = {
    "shape": ("shape", (12, 16)),
    "one axis": ("shape", (192,)),
    "byte order": ("dtype", np.dtype(">f8")),
    "integers": ("dtype", np.dtype("i8")),
    "float32": ("dtype", np.dtype("f4")),
}


@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
@pytest.mark.parametrize("change", CHANGES)
def test_reused_plans_see_arrays_that_were_changed_in_place(change: str) -> None:
    """Results for the arrays as they are now, or an error: nothing is taken for what it was before."""
    plan, x, coeffs, y = _ready()
    setattr(x, *CHANGES[change])
    setattr(y, *CHANGES[change])
    before = y.copy()
    if change in ("byte order", "integers"):
        assert_identical(plan.forward(x, out=coeffs), undula.Plan(**_OPTIONS).forward(x))
    else:
        with pytest.raises(undula.ArgumentError, match="shape"):
            plan.forward(x, out=coeffs)
    with pytest.raises(undula.ArgumentError, match="must have shape"):
        plan.inverse(coeffs, out=y)
    assert_identical(y, before)


@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
@pytest.mark.parametrize("change", ["byte order", "integers", "one axis"])
def test_reused_plans_see_bands_that_were_changed_in_place(change: str) -> None:
    plan, x, coeffs, y = _ready()
    band = flat(coeffs)[2]
    setattr(band, *(("shape", (band.size,)) if change == "one axis" else CHANGES[change]))
    with pytest.raises(undula.ArgumentError, match="must have shape"):
        plan.forward(x, out=coeffs)
    if change == "one axis":
        with pytest.raises(undula.ArgumentError, match="same shape"):
            plan.inverse(coeffs, out=y)
    else:
        assert_identical(plan.inverse(coeffs, out=y), undula.Plan(**_OPTIONS).inverse(coeffs))


@pytest.mark.filterwarnings("ignore:Setting the:DeprecationWarning")
def test_strides_that_were_changed_in_place() -> None:
    plan = undula.Plan((16, 16), "bior4.4", level=2)
    x = np.random.default_rng(0).standard_normal((16, 16))
    coeffs = plan.empty()
    plan.forward(x, out=coeffs)
    x.strides = x.strides[::-1]  # the same memory, transposed
    expected = undula.Plan((16, 16), "bior4.4", level=2).forward(np.ascontiguousarray(x))
    assert_identical(plan.forward(x, out=coeffs), expected)


def test_reused_plans_look_at_the_nesting() -> None:
    plan, x, coeffs, _ = _ready()
    bad = [coeffs[0], dict(zip("xyz", coeffs[1], strict=True)), coeffs[2]]
    for act in (lambda: plan.forward(x, out=bad), lambda: plan.inverse(bad)):
        with pytest.raises(undula.ArgumentError, match="nested"):
            act()


@pytest.fixture(scope="module")
def queue() -> Any:
    cl = pytest.importorskip("pyopencl", reason="PyOpenCL is not installed")
    from undula.engines.gpu.opencl.runtime import default_device

    own = default_device()
    return cl.CommandQueue(own.context, own.handle)


def test_plans_without_levels_on_a_device(queue: Any) -> None:
    from pyopencl import array

    plan = undula.Plan((4, 4), "haar", level=0, dtype="u1", backend="opencl")
    coeffs, y = [array.zeros(queue, (4, 4), "f4")], array.zeros(queue, (4, 4), "f4")
    for turn in range(3):
        x = array.to_device(queue, np.full((4, 4), turn, "u1"))
        assert plan.forward(x, out=coeffs)[0].get().min() == turn
        coeffs[0][...] = np.float32(10 + turn)
        assert plan.inverse(coeffs, out=y).get().max() == 10 + turn
    for bad in (array.zeros(queue, (1, 4), "f4"), array.zeros(queue, (4, 4), "f8")):
        with pytest.raises(undula.ArgumentError, match="must have shape"):
            plan.forward(x, out=[bad])
    with pytest.raises(undula.ArgumentError, match="share memory"):
        plan.inverse(coeffs, out=coeffs[0])


def test_reused_plans_see_device_arrays_that_were_changed_in_place(queue: Any) -> None:
    from pyopencl import array

    plan = undula.Plan((16, 16), "haar", level=1, dtype="f4", backend="opencl")
    x = array.to_device(queue, np.ones((16, 16), "f4"))
    coeffs = plan.forward(x)
    for _ in range(3):
        plan.forward(x, out=coeffs)
    x.shape = (256,)
    with pytest.raises(undula.ArgumentError, match=r"\(256,\)"):
        plan.forward(x, out=coeffs)


def test_plans_of_one_shape_run_side_by_side() -> None:
    """Plans of one shape share an executable; what a plan runs stays when another one is made."""
    x = np.random.default_rng(0).standard_normal((20, 22))
    plans = [undula.Plan(x.shape, "db3", level=2) for _ in range(4)]
    expected = undula.wavedec2(x, "db3", level=2)
    results = [plan.empty() for plan in plans]
    for plan, out in zip(plans, results, strict=True):
        plan.forward(x, out=out)
    for _ in range(50):
        churn = [np.full(size, -1, np.int64) for size in range(20, 200)]  # over memory that was given back
        for plan, out in zip(plans, results, strict=True):
            out[0][...] = 0
            plan.forward(x, out=out)
            assert_identical(out, expected)
        del churn


def test_tables_of_colours_stay_with_what_reads_them() -> None:
    from undula.engines.cpu.mixing import mixing_table

    image = np.random.default_rng(0).integers(0, 256, (24, 20, 3), np.uint8)
    expected = undula.color.forward(image, level=2)
    mixing_table.cache_clear()  # as when many other tables have come
    churn = [np.full(size, -1, np.int64) for size in range(4, 64) for _ in range(8)]
    assert_identical(undula.color.forward(image, level=2), expected)
    del churn
