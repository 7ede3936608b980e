"""Long lines are computed by loops of their own, which must have the results of the kernels, bit by bit."""

import ctypes
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import undula
from comparing import noise
from undula.engines.cpu import executable, passes
from undula.engines.cpu.line_loops import line_loop

# Filters of few and of many taps, with products that are rounded, and liftings of one and two pairs of steps.
NAMES = ("haar", "db2", "db5", "db10", "bior1.3", "bior2.2", "bior3.5", "bior4.4", "rbio1.5", "coif3", "sym8")
LENGTHS = (2048, 2499, 5001)


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the loops that are used."""
    names: list[str] = []

    def noted(*arguments: Any) -> Any:
        loop = line_loop(*arguments)
        if loop is not None:
            names.append(loop.name)
        return loop

    monkeypatch.setattr(passes, "line_loop", noted)
    return names


def equal(x: Any, y: Any) -> bool:
    return np.ascontiguousarray(x).tobytes() == np.ascontiguousarray(y).tobytes()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", NAMES)
def test_loops_have_the_results_of_kernels(name: str, dtype: str) -> None:
    for length, mode in zip(LENGTHS, ("symmetric", "periodization", "antireflect"), strict=True):
        x = noise(length, dtype=dtype)
        # Kernels alone transform lines of which two are interleaved.
        several = np.stack([x, -x], axis=1)
        low, high = undula.dwt(x, name, mode)
        lows, highs = undula.dwt(several, name, mode, axis=0)
        assert equal(low, lows[:, 0])
        assert equal(high, highs[:, 0])
        back = undula.idwt(lows, highs, name, mode, axis=0)
        assert equal(undula.idwt(low, high, name, mode), back[:, 0])
        assert equal(undula.idwt(None, high, name, mode), undula.idwt(None, highs, name, mode, axis=0)[:, 0])


@pytest.mark.parametrize("name", ["haar", "db4", "bior4.4", "cdf53"])
def test_lines_of_a_batch_and_parts_of_lines(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = noise(3, 7001, dtype="f4")
    single = [undula.wavedec(line, name, level=3) for line in x]
    shared = undula.wavedec(x, name, level=3)
    for number, bands in enumerate(single):
        assert all(equal(band[number], line) for band, line in zip(shared, bands, strict=True))
    back = undula.waverec(shared, name)
    monkeypatch.setattr(executable, "workers", lambda samples: 5)
    monkeypatch.setattr(executable, "WORTHWHILE", 0)
    plan = undula.Plan(x.shape[1:], name, level=3, dtype="f4")
    assert all(equal(*pair) for pair in zip(plan.forward(x[0]), single[0], strict=True))
    assert equal(plan.inverse(single[0]), back[0, : x.shape[1]])


@pytest.mark.parametrize("name", ["haar", "db4", "db9", "bior2.2", "bior4.4"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_loops_read_nothing_beyond_the_ends(name: str, dtype: str) -> None:
    """Memory before and after each array cannot be read."""
    for length in (2049, 4096):
        x = noise(length, dtype=dtype)
        plan = undula.Plan((length,), name, dtype=dtype, level=1)
        expected = plan.forward(x)
        samples = plan.inverse(expected)
        for at_end in (False, True):
            place = _fenced(at_end)
            out = [place(band) for band in expected]
            plan.forward(place(x), out=out)
            assert all(equal(*pair) for pair in zip(out, expected, strict=True))
            result = place(x)
            plan.inverse(out, out=result)
            assert equal(result, samples)


def _fenced(at_end: bool) -> Callable[[Any], Any]:
    """Return a function that copies an array to pages between two that cannot be accessed."""
    protect = getattr(ctypes.CDLL(None), "mprotect", None)
    if protect is None:
        pytest.skip("pages cannot be protected on this system")

    def place(array: Any) -> Any:
        page = mmap.PAGESIZE
        size = -(-array.nbytes // page) * page
        memory = np.frombuffer(mmap.mmap(-1, size + 2 * page), np.uint8)
        start = page + (size - array.nbytes if at_end else 0)
        for fence in (0, page + size):
            address = memory.ctypes.data + fence
            assert protect(ctypes.c_void_p(address), ctypes.c_size_t(page), 0) == 0
        copied = memory[start : start + array.nbytes].view(array.dtype)
        copied[...] = array
        return copied

    return place


def test_which_lines_have_loops(loops: list[str]) -> None:
    undula.dwt(noise(2222, dtype="f8"), "db4")
    undula.dwt(noise(2221, dtype="f4"), "bior4.4")
    undula.idwt(*[noise(1200, dtype="f8")] * 2, "db4")
    undula.dwt(noise(2047, dtype="f8"), "db4")  # too short
    undula.dwt(noise(2223, dtype="f8"), "db20")  # too many taps
    if loops:  # The processor has vectors of 64 bytes.
        assert loops == [
            "line_analyse_filters_8_3_0_0",
            "line_analyse_lifting_2_1",
            "line_synthesise_filters_4_4_0_2",
        ]
