"""The performance model: what a plan needs over what a device has."""

import math
from dataclasses import replace

import pytest

import undula
from undula.plan.model import TERMS, Prediction

TOY = undula.Ceilings(
    "a toy", ((1 << 10, 1e-6), (1 << 30, 1e-6 * (1 << 20))), 1e9, 1e9, 1e12, 1e9, 1e-6, 2e-6, 1e9, 1e9, False
)


def plan(n: int = 256, level: int = 1, **options: object) -> undula.Plan:
    return undula.Plan((n, n), "cdf97", level=level, dtype="float32", **options)  # type: ignore[arg-type]


def test_counts_are_those_of_the_cost() -> None:
    one = plan(level=3)
    told = one.predict(TOY)
    assert (told.bytes, told.operations) == one.cost[:2]


def test_terms_are_needs_over_ceilings() -> None:
    one = plan(mode="periodization")
    told = one.predict(TOY)
    assert one.cost.bytes == 2 * 4 * 256 * 256
    assert told.terms["memory"] == pytest.approx(TOY.copy(4 * 256 * 256))
    assert told.terms["arithmetic"] == pytest.approx(one.cost.operations / TOY.operations)
    assert told.terms["start"] == pytest.approx(TOY.launch)
    assert told.terms["transfer"] == 0


def test_a_gpu_hides_the_shorter_one_and_a_cpu_does_not() -> None:
    terms = dict.fromkeys(TERMS, 0.0) | {"memory": 3.0, "arithmetic": 2.0, "start": 1.0, "call": 0.5}
    assert Prediction("gpu", 0, 0, 0, 1, terms, False).seconds == 4.0
    assert Prediction("cpu", 0, 0, 0, 1, terms, True).seconds == 6.5
    assert Prediction("gpu", 0, 0, 0, 1, {**terms, "call": 9.0}, False).seconds == 9.0


def test_transfers_are_counted_when_asked() -> None:
    told = plan(mode="periodization").predict(TOY, transfers=True)
    assert told.terms["transfer"] == pytest.approx(2 * 4 * 256 * 256 / 1e9)


def test_a_faster_device_is_predicted_faster() -> None:
    slow = plan(1024).predict(TOY)
    fast = plan(1024).predict(
        replace(TOY, operations=1e12, single=1e12, copies=((1 << 10, 1e-9), (1 << 30, 1e-3)))
    )
    assert fast.seconds < slow.seconds / 10


@pytest.mark.parametrize("name", TERMS[2:4])
@pytest.mark.parametrize("factor", [0.2, 3.0])
def test_off_names_the_term_that_was_changed(name: str, factor: float) -> None:
    terms = dict.fromkeys(TERMS, 0.1) | {name: 10.0}
    told = Prediction("a toy", 0, 0, 0, 1, terms, True)
    changed = Prediction("a toy", 0, 0, 0, 1, {**terms, name: 10.0 * factor}, True)
    assert told.off(changed.seconds) == f"{name} took {factor:.1f} times what the model has"


def test_off_says_nothing_of_what_is_near() -> None:
    told = plan().predict(TOY)
    assert told.off(told.seconds) is told.off(1.29 * told.seconds) is told.off(told.seconds / 1.29) is None
    assert (
        told.off(1e6 * told.seconds)
        == "measured is 1000000.00 times the model, which no single term explains"
    )


def test_every_strategy_and_scheme_is_predicted_on_a_device() -> None:
    found = {}
    for options in (
        {"strategy": "naive"},
        {"strategy": "rowcolumn"},
        {"strategy": "sliding"},
        {"scheme": "sweldens"},
        {"scheme": "polyphase"},
    ):
        one = plan(512, backend="opencl", **options)
        told = one.predict(TOY)
        assert (told.launches > 1) == (options.get("strategy") in ("naive", "rowcolumn"))
        assert all(math.isfinite(seconds) and seconds >= 0 for seconds in told.terms.values())
        found[next(iter(options.values()))] = told
    assert found["naive"].bytes > 1.9 * found["sliding"].bytes
    assert found["polyphase"].operations > 3 * found["sweldens"].operations
    assert found["polyphase"].barriers < found["sweldens"].barriers
    assert found["sliding"].terms["exchange"] == 0 < found["sweldens"].terms["exchange"]


@pytest.mark.parametrize("device", ["cpu", "opencl"])
def test_ceilings_are_measured_and_remembered(device: str) -> None:
    found = undula.ceilings(device)
    assert undula.ceilings(device) == found == undula.Ceilings.from_json(found.to_json())
    assert min(found.operations, found.single, found.call, found.launch) > 0
    seconds = [t for _, t in found.copies]
    assert all(t > 0 for t in seconds)
    assert found.copy(found.copies[-1][0]) == pytest.approx(seconds[-1])
    assert found.copy(2 * found.copies[-1][0]) == pytest.approx(2 * seconds[-1])
    told = plan(backend=device).predict()
    assert told.seconds > 0
    assert told.device in str(told)
    assert told.limit in str(told)


def test_wrong_devices_are_refused() -> None:
    with pytest.raises(undula.UnknownNameError, match="unknown backend 'abacus'"):
        plan().predict("abacus")
    with pytest.raises(undula.ArgumentTypeError, match="got 7"):
        plan().predict(7)  # type: ignore[arg-type]


def test_complex_numbers_are_two_and_wide_ones_take_longer() -> None:
    found = [
        undula.Plan((512, 512), "cdf97", level=1, dtype=d)
        for d in ("float32", "complex64", "float64", "complex128")
    ]
    costs = [one.cost.operations for one in found]
    assert costs == [costs[0], 2 * costs[0], costs[0], 2 * costs[0]]
    seconds = [one.predict().seconds for one in found]
    assert seconds[0] < min(seconds[1:3]) <= max(seconds[1:3]) < seconds[3]


def test_ceilings_of_another_processor_count_its_calls() -> None:
    here = undula.ceilings("cpu")
    slow = replace(here, call=5.0)
    assert plan(64).predict(slow).seconds > 5 > plan(64).predict(here).seconds


@pytest.mark.parametrize(
    "text", ["{", "{}", "[]", '{"copies": []}', TOY.to_json().replace("]]", ']], "extra": 1')]
)
def test_what_is_no_ceilings_is_refused(text: str) -> None:
    with pytest.raises(undula.ArgumentError, match="eilings"):
        undula.Ceilings.from_json(text)


@pytest.mark.parametrize("seconds", [-1.0, 0.0, math.nan, math.inf, "x"])
def test_what_is_no_time_is_refused(seconds: object) -> None:
    with pytest.raises(undula.ArgumentError, match="seconds above zero"):
        plan().predict(TOY).off(seconds)  # type: ignore[arg-type]


def test_the_reference_has_no_model() -> None:
    with pytest.raises(undula.ArgumentError, match="reference"):
        plan(64, backend="reference").predict()
