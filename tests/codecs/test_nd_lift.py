"""The format ``nd_lift``: published vectors, an independent implementation of its formulas, bad input."""

import json
import threading
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undula.codecs import AxisLifting, NdLift
from undula.engines.cpu import coding
from undula.errors import UndulaError

VECTORS = json.loads((Path(__file__).parent / "nd_lift_vectors.json").read_text(encoding="utf-8"))
DTYPES = "uint8 int8 uint16 int16 uint32 int32 uint64 int64".split()
KINDS = "delta haar lift53".split()
Transform = dict[str, Any]


def level_of(x: list[int], kind: str) -> tuple[list[int], list[int]]:
    """One level of a line by the published formulas, in the integers of Python."""

    def at(k: int) -> int:  # mirrored beyond the ends
        return x[2 * (len(x) - 1) - k if k >= len(x) else abs(k)]

    def detail(k: int) -> int:  # of the odd sample k
        if kind == "haar":
            return at(k) - at(k - 1)
        return at(k) - (at(k - 1) + at(k + 1) + 1) // 2

    def approximation(k: int) -> int:  # of the even sample k
        if kind == "haar":
            return at(k) + (detail(k + 1) // 2 if k + 1 < len(x) else 0)
        left = abs(k - 1)
        right = k + 1 if k + 1 < len(x) else 2 * (len(x) - 1) - (k + 1)
        return at(k) + (detail(left) + detail(right) + 2) // 4

    return [approximation(k) for k in range(0, len(x), 2)], [detail(k) for k in range(1, len(x), 2)]


def expected_line(x: list[int], kind: str, levels: int) -> list[int]:
    if kind == "delta":
        return [b - a for a, b in zip([0, *x], x, strict=False)]
    details: list[int] = []
    for _ in range(levels):
        if len(x) < 2:
            break
        x, finer = level_of(x, kind)
        details = finer + details
    return x + details


def expected(x: Any, transforms: list[Transform]) -> Any:
    result = x.astype(np.int64 if x.dtype.itemsize == 8 else np.int32)
    for transform in transforms:
        length = x.shape[transform["dimension"]]
        group = transform.get("group", 0) or max(1, length)
        lines = np.moveaxis(result, transform["dimension"], -1)
        for index in np.ndindex(lines.shape[:-1]):
            line = lines[index].tolist()
            parts = [line[k : k + group] for k in range(0, length, group)]
            numbers = (expected_line(part, transform["kind"], transform.get("levels", 0)) for part in parts)
            lines[index] = list(chain.from_iterable(numbers))
    return result


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["name"])
def test_published_vectors(case: dict[str, Any]) -> None:
    lift = NdLift.parse({"version": VECTORS["version"], "transforms": case["transforms"]})
    x = np.array(case["input"], case["dtype"]).reshape(case["shape"])
    coefficients = lift.encode(x)
    assert coefficients.dtype == case["dtype"]
    assert coefficients.ravel().tolist() == case["expected"]
    np.testing.assert_array_equal(lift.decode(coefficients, x.dtype), x)


@st.composite
def chunks(draw: Any) -> tuple[Any, list[Transform]]:
    """Chunks with axes that are odd, single and empty, and transforms along some of them."""
    shape = tuple(draw(st.lists(st.integers(0, 9), min_size=1, max_size=4)))
    if draw(st.booleans()):  # a long axis
        shape = (*shape[:1], draw(st.integers(30, 200)), *shape[1:2])
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    most = min(int(np.iinfo(dtype).max), 10**6 if dtype.itemsize == 4 else 10**12)
    x = rng.integers(0 if dtype.kind == "u" else -most - 1, most, shape, dtype, endpoint=True)
    transform = st.fixed_dictionaries(
        {
            "dimension": st.integers(0, len(shape) - 1),
            "kind": st.sampled_from(KINDS),
            "levels": st.integers(1, 3),
            "group": st.sampled_from([0, 0, 1, 2, 3, 7, 300]),
        }
    )
    return x, draw(st.lists(transform, max_size=3))


@given(chunks())
def test_chunks_follow_the_formulas(case: tuple[Any, list[Transform]]) -> None:
    x, transforms = case
    lift = NdLift(transforms)
    coefficients = lift.encode(x)
    np.testing.assert_array_equal(coefficients, expected(x, transforms))
    assert coefficients.dtype == (np.int64 if x.dtype.itemsize == 8 else np.int32)
    samples = lift.decode(coefficients, x.dtype)
    assert samples.dtype == x.dtype
    np.testing.assert_array_equal(samples, x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_kernels_stay_where_they_belong(dtype: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    regions: list[tuple[Any, int]] = []

    def walled(shape: tuple[int, ...], kind_of_number: Any) -> Any:
        size = int(np.prod(shape)) * np.dtype(kind_of_number).itemsize
        memory = np.full(size + 8192, 0xCD, np.uint8)
        regions.append((memory, size))
        return memory[4096 : 4096 + size].view(kind_of_number).reshape(shape)

    monkeypatch.setattr(coding, "empty", walled)
    for shape in ((33, 70), (2, 2), (5, 1, 300), (1, 257), (3, 4, 5, 6)):
        for group in (0, 1, 2, 5):
            lift = NdLift([AxisLifting(d, kind, 3, group=group) for d in range(len(shape))])
            x = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
            np.testing.assert_array_equal(lift.decode(lift.encode(x), dtype), x)
            for memory, size in regions:
                assert (memory[:4096] == 0xCD).all()
                assert (memory[4096 + size :] == 0xCD).all()
            assert len(regions) >= 4 or max(shape) < 2
            regions.clear()


def test_large_blocks_and_wide_tiles() -> None:
    x = np.random.default_rng(0).integers(0, 4000, (9, 410, 333), np.uint16)
    first = [{"dimension": d, "kind": "lift53", "levels": 2} for d in range(3)]
    last = [{"dimension": d, "kind": "haar", "levels": 1, "group": 200} for d in (2, 0, 1)]
    lift = NdLift([*first, *last])
    coefficients = lift.encode(x)
    separate = x
    for transform in (*first, *last):  # each alone, without blocks that stay in a cache
        separate = NdLift([transform]).encode(separate)
    np.testing.assert_array_equal(coefficients, separate)
    np.testing.assert_array_equal(lift.decode(coefficients, x.dtype), x)


@pytest.mark.parametrize("order", ["big-endian", "transposed", "strided", "read-only", "unaligned"])
def test_memory_layouts(order: str) -> None:
    x = np.random.default_rng(0).integers(0, 60000, (6, 10, 8), np.uint16)
    lift = NdLift([AxisLifting(1, "lift53", 2), AxisLifting(2, "haar", 1)])
    if order == "big-endian":
        x = x.astype(">u2")
    elif order == "transposed":
        x = x.transpose(2, 0, 1)
    elif order == "strided":
        x = x[::2, ::-1]
    elif order == "read-only":
        x.flags.writeable = False
    else:
        memory = np.empty(x.nbytes + 1, np.uint8)
        view = memory[1:].view(np.uint16).reshape(x.shape)
        view[...] = x
        x = view
    coefficients = lift.encode(x)
    np.testing.assert_array_equal(coefficients, expected(x, [t.configuration() for t in lift.transforms]))
    coefficients.flags.writeable = False
    samples = lift.decode(coefficients, x.dtype)
    assert samples.dtype == x.dtype
    np.testing.assert_array_equal(samples, x)


def test_damaged_coefficients_wrap_or_are_refused() -> None:
    lift = NdLift([AxisLifting(0, "lift53", 3), AxisLifting(1, "delta"), AxisLifting(1, "haar", 2)])
    for plane, dtype in ((np.int32, np.int32), (np.int64, np.int64)):
        info = np.iinfo(plane)
        damaged = np.random.default_rng(0).integers(info.min, info.max, (17, 9), plane, endpoint=True)
        assert lift.decode(damaged, dtype).dtype == dtype
    for narrow in (np.uint8, np.int16, np.uint32, np.uint64):
        plane = np.int64 if narrow is np.uint64 else np.int32
        with pytest.raises(UndulaError, match="damaged"):
            lift.decode(np.full((17, 9), -70000, plane), narrow)
    with pytest.raises(UndulaError, match="damaged"):
        NdLift().decode(np.array([300], np.int32), np.uint8)


@pytest.mark.parametrize(
    ("values", "transforms", "accepted"),
    [
        (np.array([0, 2**31 - 1], np.uint32), [], True),
        (np.array([0, 2**31], np.uint32), [], False),
        (np.array([0, 2**63], np.uint64), [], False),
        (np.array([-1, 2**31 - 2], np.int32), [AxisLifting(0, "delta")], True),
        (np.array([-1, 2**31 - 1], np.int32), [AxisLifting(0, "delta")], False),
        (np.array([0, 2**30 - 1], np.int32), [AxisLifting(0, "haar", 1)], True),
        (np.array([0, 2**31 - 1], np.int32), [AxisLifting(0, "haar", 1)], False),
        (np.array([0, 2**30 - 2], np.int32), [AxisLifting(0, "lift53", 9)], True),
        (np.array([0, 2**30 - 1], np.int32), [AxisLifting(0, "lift53", 9)], False),
        (np.full((2, 2**14), 65535, np.uint16), [AxisLifting(1, "lift53", 255)], True),
    ],
)
def test_ranges_that_could_overflow(values: Any, transforms: list[AxisLifting], accepted: bool) -> None:
    lift = NdLift(transforms)
    if accepted:
        np.testing.assert_array_equal(lift.decode(lift.encode(values), values.dtype), values)
    else:
        with pytest.raises(UndulaError, match="could overflow int"):
            lift.encode(values)


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        ({"version": "0.2", "transforms": []}, "version '0.2' is unknown; this is version '0.1'"),
        ({"version": 0.1, "transforms": []}, "version must be a text"),
        ({"transforms": []}, "needs 'version'"),
        ({"version": "0.1"}, "needs 'transforms'"),
        (
            {"version": "0.1", "transforms": [], "levels": 2},
            "unknown member .* 'levels'",
        ),
        ({"version": "0.1", "transforms": {}}, "transforms must be a list"),
        ({"version": "0.1", "transforms": ["delta"]}, "a transform is an object"),
        ([], "a configuration is an object"),
    ],
)
def test_bad_configurations(configuration: Any, message: str) -> None:
    with pytest.raises(UndulaError, match=message) as raised:
        NdLift.parse(configuration)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        ({"dimension": 0, "kind": "lift97", "levels": 1}, "unknown kind .* 'lift97'; did you mean 'lift53'"),
        ({"dimension": 0, "kind": None}, "unknown kind .* None"),
        ({"dimension": 0}, "needs 'kind'"),
        ({"kind": "delta"}, "needs 'dimension'"),
        ({"dimension": 0, "kind": "haar"}, "haar needs levels from 1 on"),
        ({"dimension": 0, "kind": "haar", "levels": 2.0}, "levels must be an integer, got 2.0"),
        ({"dimension": 0, "kind": "haar", "levels": True}, "levels must be an integer, got True"),
        ({"dimension": 0, "kind": "haar", "levels": 256}, "levels must be from 0 to 255, got 256"),
        ({"dimension": -1, "kind": "delta"}, "dimension must be from 0"),
        ({"dimension": 0, "kind": "delta", "group": -1}, "group must be from 0"),
        ({"dimension": 0, "kind": "delta", "axis": 3}, "axis must be the name"),
        ({"dimension": 0, "kind": "delta", "level": 3}, "unknown member .* 'level'; did you mean 'levels'"),
        ({"dimension": 2, "kind": "delta"}, "dimension 2 is out of range for chunks of 2 dimension"),
    ],
)
def test_bad_transforms(transform: Transform, message: str) -> None:
    with pytest.raises(UndulaError, match=message) as raised:
        NdLift([transform]).encode(np.zeros((2, 2), np.uint8))
    assert isinstance(raised.value, (ValueError, TypeError))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, np.complex64, "M8[s]"])
def test_other_dtypes_are_refused(dtype: Any) -> None:
    with pytest.raises(TypeError, match="integers of 8 to 64 bits are needed"):
        NdLift().encode(np.zeros(3, dtype))
    with pytest.raises(TypeError, match="coefficients of uint8 samples are int32, got int64"):
        NdLift().decode(np.zeros(3, np.int64), np.uint8)


def test_configurations_come_back() -> None:
    lift = NdLift([AxisLifting(0, "lift53", 2, "z", 8), {"dimension": np.int64(1), "kind": "delta"}], "0.1.7")
    text = json.dumps(lift.configuration())
    assert NdLift.parse(json.loads(text)) == lift
    assert hash(NdLift.parse(json.loads(text))) == hash(lift)


def test_many_threads_at_once() -> None:
    lift = NdLift([AxisLifting(d, "lift53", 2) for d in range(3)])
    chunks = [np.random.default_rng(k).integers(0, 4000, (16, 40, 50), np.uint16) for k in range(8)]
    alone = [lift.encode(chunk) for chunk in chunks]
    equal = [0] * len(chunks)

    def work(k: int) -> None:
        for _ in range(20):
            coefficients = lift.encode(chunks[k])
            equal[k] += bool((coefficients == alone[k]).all())
            equal[k] += bool((lift.decode(coefficients, np.uint16) == chunks[k]).all())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(chunks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert equal == [40] * len(chunks)
