"""Kernels work on addresses: none may touch memory that is not its own."""

from collections.abc import Callable
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import undula
from comparing import assert_same, noise, reference
from undula.engines.chunked.blocks import ChunkedWindow, Fragment
from undula.engines.cpu import executable
from undula.engines.cpu.engine import CPU
from undula.lowering.spec import BandTree, transform_spec

GUARD = 1 << 13
COPIED_BEYOND = ("symmetric", "reflect", "periodic", "constant", "periodization")  # Samples are copied.
pytestmark = pytest.mark.filterwarnings("ignore:Level value")


@pytest.fixture(scope="module", autouse=True)
def _guarded() -> Any:
    """Scratch between walls, which must stand after every call of a kernel."""
    regions: list[Any] = []

    def scratch(size: int) -> Any:
        memory = np.full(size + 64 + 2 * GUARD, 0xAB, np.uint8)
        regions.append((memory, size))
        return memory, -(-(memory.ctypes.data + GUARD) // 64) * 64

    def check() -> None:
        memory, size = regions.pop()
        start = -(memory.ctypes.data + GUARD) % 64  # the first aligned byte
        assert (memory[: GUARD + start] == 0xAB).all()
        assert (memory[GUARD + start + size :] == 0xAB).all()

    play = executable.CpuExecutable.run_tape

    def checked_play(*arguments: Any) -> None:
        play(*arguments)
        check()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executable, "scratch_memory", scratch)
        patch.setattr(executable.CpuExecutable, "run_tape", checked_play)
        patch.setattr(executable, "WORTHWHILE", 0)  # Built-in functions have scratch of their own.
        yield


def walled(shape: tuple[int, ...], dtype: Any) -> tuple[Any, Callable[[], None]]:
    """An array between walls, and the test that they stand."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.full(size + 2 * GUARD, 0xCD, np.uint8)
    array = memory[GUARD : GUARD + size].view(dtype).reshape(shape)

    def check() -> None:
        assert (memory[:GUARD] == 0xCD).all()
        assert (memory[GUARD + size :] == 0xCD).all()

    return array, check


@settings(max_examples=300)
@given(
    st.sampled_from(["haar", "db2", "db7", "bior2.2", "bior4.4", "rbio4.4", "coif3", "dmey"]),
    st.sampled_from(undula.MODES),
    st.lists(st.integers(1, 70), min_size=1, max_size=3),
    st.sampled_from(["f4", "f8", "c8"]),
    st.integers(1, 3),
    st.integers(1, 4),
)
def test_kernels_stay_where_they_belong(
    name: str, mode: str, shape: list[int], dtype: str, level: int, threads: int
) -> None:
    x, check = walled(tuple(shape), dtype)
    x[...] = noise(*shape, dtype=dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executable, "workers", lambda samples: threads)
        plan = undula.Plan(shape, name, level=level, mode=mode, dtype=dtype)
        made, walls = [], [check]

        def placed(part: Any) -> Any:
            if isinstance(part, dict):
                return {key: placed(value) for key, value in part.items()}
            if isinstance(part, np.ndarray):
                array, wall = walled(part.shape, part.dtype)
                walls.append(wall)
                return array
            return type(part)(placed(value) for value in part)

        made = placed(plan.empty())
        plan.forward(x, out=made)
        back, wall = walled(tuple(shape), dtype)
        plan.inverse(made, out=back)
    for stands in (*walls, wall):
        stands()


@given(
    st.sampled_from(["cdf53", "cdf97", "bior1.3"]),
    st.sampled_from(["symmetric", "periodic"]),
    st.lists(st.integers(1, 70), min_size=1, max_size=3),
    st.sampled_from(["i2", "i4"]),
    st.integers(1, 3),
    st.integers(1, 4),
)
def test_kernels_of_integers_stay_where_they_belong(
    name: str, mode: str, shape: list[int], dtype: str, level: int, threads: int
) -> None:
    x, check = walled(tuple(shape), dtype)
    x[...] = np.random.default_rng(0).integers(-40, 40, shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executable, "workers", lambda samples: threads)
        usual = undula.lwtn(x, name, level, mode, dtype=dtype)
        walls, made = [check], [walled(usual[0].shape, dtype)]
        details = [{key: walled(band.shape, dtype) for key, band in part.items()} for part in usual[1:]]
        walls += [wall for _, wall in made] + [wall for part in details for _, wall in part.values()]
        out = [made[0][0], *({key: pair[0] for key, pair in part.items()} for part in details)]
        undula.lwtn(x, name, level, mode, dtype=dtype, out=out)
        back, wall = walled(tuple(shape), dtype)
        undula.ilwtn(out, name, mode, out=back)
    for stands in (*walls, wall):
        stands()
    np.testing.assert_array_equal(back, x)


@settings(max_examples=200)
@given(
    st.sampled_from(["haar", "db2", "db7", "bior2.2", "bior4.4", "dmey"]),
    st.sampled_from(COPIED_BEYOND),
    st.tuples(st.integers(1, 3), st.integers(8, 70), st.integers(8, 70), st.integers(1, 3)),
    st.sampled_from(["f4", "f8", "c8"]),
    st.integers(1, 3),
    st.integers(1, 4),
    st.integers(0, 2**32),
)
def test_rows_in_fragments_have_the_numbers_of_whole_rows(
    name: str, mode: str, shape: tuple[int, ...], dtype: str, level: int, threads: int, seed: int
) -> None:
    rng, axes = np.random.default_rng(seed), (1, 2)
    x = noise(*shape, dtype=dtype)
    window, arguments, walls = cut_window(rng, x)
    spec = transform_spec(4, name, mode, axes)
    tree = BandTree.of_samples(spec, shape, level)
    assert CPU.reads_fragments(tree, x.dtype)
    rows = window.rows(arguments, 1, x.dtype)
    assert rows is not None
    addresses, fragments, _arrays = rows
    made = [walled(part, dtype) for part in tree.flat_shapes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executable, "workers", lambda samples: threads)
        CPU.run_on_fragments(tree, addresses, fragments, [band for band, _ in made], x.dtype)
    for stands in (*walls, *(wall for _, wall in made)):
        stands()
    low, *details = undula.wavedecn(x, name, mode, level, axes)
    expected = [low, *(band for part in details for band in part.values())]
    for (band, _), whole in zip(made, expected, strict=True):
        np.testing.assert_array_equal(band, whole)


def cut_window(rng: np.random.Generator, x: Any) -> tuple[ChunkedWindow, list[Any], list[Callable[[], None]]]:
    """Fragments of an array that begin at even places along the third axis, each between walls of its own."""
    places = []
    for axis, length in enumerate(x.shape[:3]):
        unit = 2 if axis == 2 else 1
        inner = {unit * int(place) for place in rng.integers(0, length, 3)}
        places.append([0, *sorted(place for place in inner if 0 < place < length), length])
    fragments, arguments, walls = [], [], []
    for target in product(*([slice(*ends) for ends in pairwise(cuts)] for cuts in places)):
        target = (*target, slice(0, x.shape[3]))
        array, wall = walled(x[target].shape, x.dtype)
        array[...] = x[target]
        fragments.append(Fragment(len(arguments), None, None, target))
        arguments.append(array)
        walls.append(wall)
    return ChunkedWindow(x.shape, tuple(fragments)), arguments, walls


@given(st.integers(1, 90), st.integers(1, 90), st.sampled_from([3, 4]), st.integers(1, 3), st.integers(1, 4))
def test_planes_of_colours_stay_where_they_belong(
    height: int, width: int, channels: int, level: int, threads: int
) -> None:
    image, check = walled((height, width, channels), "u1")
    image[...] = np.random.default_rng(0).integers(0, 256, image.shape)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executable, "workers", lambda samples: threads)
        coeffs = undula.color.forward(image, level=level)
    check()
    np.testing.assert_array_equal(undula.color.inverse(coeffs), image)


@pytest.mark.parametrize("name", ["cdf53", "cdf97", "burt57", "bior2.4"])
@pytest.mark.parametrize("mode", ["symmetric", "periodic"])
def test_lifted_lines_stay_where_they_belong(name: str, mode: str) -> None:
    for shape in ((2, 3), (5, 4), (17, 64), (64, 33), (12, 10, 3), (40,), (41, 2)):
        x = noise(*shape, dtype="f4")
        axes = (0, 1) if len(shape) > 2 else None
        coeffs = undula.lwtn(x, name, 2, mode, axes)
        assert_same(coeffs, reference.lwtn(x, name, 2, mode, axes), 10)
        assert_same(undula.ilwtn(coeffs, name, mode, axes), x, 10)
