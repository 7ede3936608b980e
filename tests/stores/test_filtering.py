"""Filters from store to store: what they do is known, so that only the same work is resumed."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undula
from undula import stores
from undula.errors import FileError
from undula.filters import Pipeline, Shrink, Unsharp
from undula.stores import blocks, filter_passes

zarr = pytest.importorskip("zarr", reason="Zarr is not installed")
pytest.importorskip("dask.array", reason="Dask is not installed")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run each test in an empty folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(blocks, "BLOCK_SAMPLES", 1 << 12)
    monkeypatch.setattr(filter_passes, "WORK_BYTES", 1)
    return tmp_path


def write(shape: tuple[int, ...] = (192, 160), dtype: str = "f4", **options: Any) -> Any:
    rng = np.random.default_rng(0)
    x = (100 + 20 * np.sin(np.indices(shape).sum(0) / 9) + rng.normal(0, 5, shape)).astype(dtype)
    chunks = (1,) * (len(shape) - 2) + (32, 32) if shape[0] < 4 else tuple(min(n, 32) for n in shape)
    zarr.create_array("x.zarr", data=x, chunks=chunks, **options)
    return x


def read(name: str) -> Any:
    return zarr.open_array(name, mode="r")[...]


class Interruption:
    """Progress that interrupts the work after some regions, and counts."""

    def __init__(self, after: int) -> None:
        self.after, self.first = after, -1

    def __call__(self, done: int, total: int) -> None:
        if self.first < 0:
            self.first = done
        if done - self.first >= self.after:
            raise KeyboardInterrupt


def interrupt(work: Any, after: int = 5, **options: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        stores.apply("x.zarr", "y.zarr", work, progress=Interruption(after), **options)
    assert not Path("y.zarr").exists()


def scaled(x: Any, factor: float) -> Any:
    return x * np.float32(factor)


PIPELINE = Pipeline("haar", 1, [Shrink("given", threshold=9.0)])
FILTERS: list[tuple[Any, Any]] = [
    (PIPELINE, Pipeline("haar", 1, [Shrink("given", threshold=3.0)])),
    (partial(PIPELINE, channel_axis=None), partial(PIPELINE, axes=(0,))),
    (partial(undula.denoise, sigma=5.0), partial(undula.denoise, sigma=6.0)),
    (undula.sharpen, undula.enhance),
    (lambda x: undula.sharpen(x, amount=1.0), lambda x: undula.sharpen(x, amount=2.0)),
    (PIPELINE, lambda x: x * np.float32(2)),
]


@pytest.mark.parametrize(("work", "other"), FILTERS)
def test_filters_describe_themselves(work: Any, other: Any) -> None:
    x = write()
    interrupt(work)
    with pytest.raises(FileError, match=r"half-written output of other work \(.*\); .*overwrite=True"):
        stores.apply("x.zarr", "y.zarr", other)
    progress = Interruption(1000)
    stores.apply("x.zarr", "y.zarr", work, progress=progress)
    assert progress.first >= 5
    np.testing.assert_allclose(read("y.zarr"), work(x), rtol=1e-6)


@pytest.mark.parametrize("resume", [True, False])
def test_functions_without_a_description_begin_again(resume: bool) -> None:
    x = write()
    for factor in (100, 2):
        interrupt(partial(scaled, factor=factor))
    assert not Path("y.zarr.partial").exists()
    stores.apply("x.zarr", "y.zarr", partial(scaled, factor=3), resume=resume)
    np.testing.assert_array_equal(read("y.zarr"), 3 * x)


def test_what_unknown_work_has_left_is_not_used() -> None:
    x = write()
    interrupt(partial(scaled, factor=100), description="factor 100")
    journal = Path("y.zarr.partial/.undula-journal")
    journal.write_text(journal.read_text().replace('"factor 100"', "null"))
    stores.apply("x.zarr", "y.zarr", partial(scaled, factor=2))
    np.testing.assert_array_equal(read("y.zarr"), 2 * x)


def test_functions_with_a_description_are_resumed() -> None:
    x = write()
    interrupt(partial(scaled, factor=2), description={"factor": 2})
    with pytest.raises(FileError, match=r"\(factor was 2, and is 3\)"):
        stores.apply("x.zarr", "y.zarr", partial(scaled, factor=3), description={"factor": 3})
    progress = Interruption(1000)
    stores.apply("x.zarr", "y.zarr", partial(scaled, factor=2), description={"factor": 2}, progress=progress)
    assert progress.first >= 5
    np.testing.assert_array_equal(read("y.zarr"), 2 * x)


def test_stages_of_other_packages_begin_again() -> None:
    class Louder(Unsharp):
        pass

    write()
    interrupt(Pipeline("haar", 1, [Louder(sigma=1.0, amount=1.0)]))
    assert not Path("y.zarr.partial").exists()


def test_wavelets_without_a_name_are_told_apart() -> None:
    write()
    first, second = (
        undula.Wavelet("mine", filter_bank=undula.Wavelet(name).filter_bank) for name in ("db2", "db3")
    )
    interrupt(Pipeline(first, 1, PIPELINE.stages))
    with pytest.raises(FileError, match="filters is another"):
        stores.apply("x.zarr", "y.zarr", Pipeline(second, 1, PIPELINE.stages))


SHAPES: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((100, 90), {}),
    ((3, 75, 90), {"axes": (1, 2), "channel_axis": None}),
    ((3, 30, 28), {"axes": (1, 2), "channel_axis": None}),
    ((40, 70, 3), {}),
    ((36, 40, 44), {}),
]


@pytest.mark.parametrize(("shape", "options"), SHAPES)
def test_passes_have_the_bits_of_the_whole(shape: tuple[int, ...], options: Any) -> None:
    x = write(shape, "f8" if len(shape) == 2 else "u2")
    stores.apply("x.zarr", "y.zarr", partial(undula.denoise, **options))
    np.testing.assert_array_equal(read("y.zarr"), undula.denoise(x, **options))


def test_chunks_of_any_length_and_lines_that_go_on_at_their_other_end() -> None:
    x = np.random.default_rng(0).normal(100, 5, (90, 101)).astype("f4")
    zarr.create_array("x.zarr", data=x, chunks=(37, 50))
    pipeline = Pipeline("db3", 2, [Shrink("universal")], mode="periodization", invariant=1)
    stores.apply("x.zarr", "y.zarr", pipeline)
    np.testing.assert_array_equal(read("y.zarr"), pipeline(x))


@pytest.mark.parametrize("after", [1, 40, 80])
def test_passes_are_resumed(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = write((2, 160, 160), "u2")
    monkeypatch.setattr(filter_passes, "REGIONS_AT_ONCE", 1)
    options: Any = {"axes": (1, 2), "channel_axis": None, "level": 1}
    interrupt(partial(undula.denoise, **options), after)
    progress = Interruption(10_000)
    stores.apply("x.zarr", "y.zarr", partial(undula.denoise, **options), progress=progress)
    assert after <= progress.first <= after + 1
    np.testing.assert_array_equal(read("y.zarr"), undula.denoise(x, **options))
    assert sorted(path.name for path in Path("y.zarr").iterdir()) == ["c", "zarr.json"]


DIVIDED: list[tuple[tuple[int, ...], Any, dict[str, Any]]] = [
    ((140, 120), undula.denoise, {}),
    ((2, 84, 90), undula.denoise, {"axes": (1, 2), "channel_axis": None}),
    ((70, 61, 3), undula.denoise, {}),
    ((36, 70, 44), undula.denoise, {}),
    ((150, 141), Pipeline("db3", 3, [Shrink("universal")], mode="periodization", invariant=2), {}),
    (
        (150, 141),
        Pipeline("bior4.4", 3, [Shrink("bivariate"), Unsharp(sigma=1.0, amount=0.5)], invariant=3),
        {},
    ),
    ((130, 90), partial(undula.denoise, sigma=5.0), {}),
]


@pytest.mark.parametrize(("shape", "work", "options"), DIVIDED)
def test_work_that_is_divided_has_the_bits_of_the_whole(
    shape: tuple[int, ...], work: Any, options: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filter_passes, "MAX_OVERLAP", 0)
    monkeypatch.setattr(filter_passes, "WORK_BYTES", 4 << 20)
    x = write(shape, "u2")
    stores.apply("x.zarr", "y.zarr", partial(work, **options))
    np.testing.assert_array_equal(read("y.zarr"), work(x, **options))
    assert sorted(path.name for path in Path("y.zarr").iterdir()) == ["c", "zarr.json"]


def test_blocks_of_other_lengths_are_other_work() -> None:
    x = write()
    work = partial(scaled, factor=2)
    interrupt(work, description="twice", blocks=(64, 32))
    with pytest.raises(FileError, match=r"regions was .*64, 32.*, and is .*32, 64"):
        stores.apply("x.zarr", "y.zarr", work, description="twice", blocks=(32, 64))
    stores.apply("x.zarr", "y.zarr", work, description="twice", blocks=(64, 32))
    np.testing.assert_array_equal(read("y.zarr"), 2 * x)


def test_regions_do_not_depend_on_the_number_of_threads() -> None:
    x = write()
    interrupt(PIPELINE)
    try:
        undula.set_num_threads(undula.get_num_threads() + 3)
        stores.apply("x.zarr", "y.zarr", PIPELINE)
    finally:
        undula.set_num_threads(None)
    np.testing.assert_array_equal(read("y.zarr"), PIPELINE(x))


def test_changes_of_the_array_before_a_filter_are_kept() -> None:
    x = write()

    def work(chunks: Any) -> Any:
        chunks[:10] = 0
        return undula.denoise(chunks)

    stores.apply("x.zarr", "y.zarr", work)
    x[:10] = 0
    np.testing.assert_array_equal(read("y.zarr"), undula.denoise(x))
