"""Streams: bit for bit what the functions for arrays give, in memory that does not grow."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

import undula
from cases import THOROUGH, parametrize_pairwise
from comparing import assert_identical, noise

MODES = ("zero", "constant", "symmetric", "reflect", "smooth", "antisymmetric", "antireflect")
pytestmark = pytest.mark.filterwarnings("ignore:Level value")


@parametrize_pairwise(
    name=["haar", "bior2.2", "bior4.4", "db4", "db10"],
    mode=MODES,
    shape=[(100, 64), (37, 33), (5, 40), (1, 16), (2, 9), (64, 20, 3)],
    chunk=[1, 7, 1000],
    dtype=["f8", "f4", "c16"],
)
def test_rows_in_and_coefficients_out(
    name: str, mode: str, shape: tuple[int, ...], chunk: int, dtype: str
) -> None:
    if mode.endswith("reflect"):  # needs two rows, also at the second level
        shape = (max(5, shape[0]), *shape[1:])
    x = noise(*shape, dtype=dtype)
    options: Any = {"level": 3, "mode": mode, "dtype": dtype}
    forward = undula.ForwardStream(shape[1:], name, **options)
    parts = []
    for start in range(0, shape[0], chunk):
        parts += forward.push(x[start : start + chunk])
    parts += forward.finish()
    wanted = undula.wavedec2(x, name, mode, 3, axes=(0, 1))
    assert_identical(undula.collect_rows(parts), wanted)
    back = undula.InverseStream(shape[1:], name, height=shape[0], **options)
    rows = [back.push(part) for part in parts]
    image = np.concatenate([*rows, back.finish()])
    assert_identical(image, undula.waverec2(wanted, name, mode, (0, 1), shape=shape))


def test_rows_in_any_memory_order() -> None:
    x = noise(24, 16)
    expected = undula.wavedec2(x, "haar", level=2)
    for view in (np.asfortranarray(x), np.repeat(x, 2, 1)[:, ::2], x[::-1][::-1]):
        forward = undula.ForwardStream(16, "haar", level=2)
        parts = [*forward.push(view), *forward.finish()]
        assert_identical(undula.collect_rows(parts), expected)
        back = undula.InverseStream(16, "haar", level=2, height=24)
        for part in parts:
            part.bands.update({key: np.asfortranarray(band) for key, band in part.bands.items()})
        image = np.concatenate([*[back.push(part) for part in parts], back.finish()])
        np.testing.assert_allclose(image, x, atol=1e-12)


def test_coefficients_come_as_soon_as_they_are_known() -> None:
    x = noise(64, 16)
    forward = undula.ForwardStream(16, "haar", level=2)
    counts = [sum(len(part.bands["dd"]) for part in forward.push(row)) for row in x]
    # Every second row makes a row of details, every fourth one of the second level; one more is kept back
    # until the top is known.
    assert counts[-8:] == [0, 1, 0, 2, 0, 1, 0, 2]
    wide = undula.ForwardStream(16, "cdf97", level=1)
    first = next(number for number, row in enumerate(x) if wide.push(row))
    assert first <= 12


@pytest.mark.thorough
def test_memory_does_not_depend_on_the_height() -> None:
    def peak(height: int) -> int:
        forward = undula.ForwardStream(2048, "cdf97", level=4, dtype="f4")
        back = undula.InverseStream(2048, "cdf97", level=4, dtype="f4")
        block = noise(32, 2048, dtype="f4")
        tracemalloc.start()
        for _ in range(height // 32):
            for part in forward.push(block):
                back.push(part)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert back.rows > height - 500
        return most

    undula.keep_memory(0)
    try:
        height = 2048 if THOROUGH else 1024
        peak(height // 2)
        assert peak(4 * height) < 1.1 * peak(height)
    finally:
        undula.keep_memory(None)


def stream() -> undula.ForwardStream:
    return undula.ForwardStream(8, "haar")


def finished() -> undula.ForwardStream:
    done = stream()
    done.push(np.ones((4, 8)))
    done.finish()
    return done


def details(start: int, width: int = 4) -> undula.Rows:
    return undula.Rows(1, start, {key: np.ones((1, width)) for key in ("aa", "ad", "da", "dd")})


BAD: dict[str, tuple[Any, str]] = {
    "periodic": (lambda: undula.ForwardStream(8, "haar", mode="periodic"), "'periodic'"),
    "no width": (lambda: undula.ForwardStream(0, "haar"), "0"),
    "no level": (lambda: undula.ForwardStream(8, "haar", level=0), "level"),
    "another width": (lambda: stream().push(np.ones((2, 9))), r"\(2, 9\)"),
    "another dtype": (lambda: stream().push(np.ones(8, "f4")), "float32"),
    "after the end": (lambda: finished().push(np.ones(8)), "finished"),
    "nothing": (lambda: stream().finish(), "no rows"),
    "nothing to collect": (lambda: undula.collect_rows([]), "no rows"),
    "rows out of order": (lambda: undula.InverseStream(8, "haar").push(details(3)), "0 is next"),
    "coefficients of another width": (
        lambda: undula.InverseStream(8, "haar").push(details(0, 5)),
        r"\(1, 5\)",
    ),
    "another level": (lambda: undula.InverseStream(8, "haar").push(undula.Rows(2, 0, {})), "from 1 to 1"),
    "missing bands": (lambda: undula.InverseStream(8, "haar").push(undula.Rows(1, 0, {})), "'aa'"),
    "no height": (lambda: undula.InverseStream(8, "haar", height=0), "height"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str) -> None:
    act, message = BAD[case]
    with pytest.raises(undula.UndulaError, match=message):
        act()


def test_streams_are_printed() -> None:
    stream = undula.ForwardStream(8, "haar", level=2, mode=("zero", "periodic"), dtype="f4")
    parts = stream.push(np.ones((4, 8), "f4"))
    details = "(8,) of float32: haar, level 2, mode zero, periodic"
    assert repr(stream) == f"<ForwardStream of rows {details}, 4 row(s) so far>"
    back = undula.InverseStream(8, "haar", level=2, mode=("zero", "periodic"), dtype="f4")
    assert parts
    assert repr(back) == f"<InverseStream of rows {details}, 0 row(s) so far>"
