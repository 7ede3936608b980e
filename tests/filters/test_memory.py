"""The memory of filters: the estimate, its bound for any number of axes, and what does not fit."""

import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import undula
from cases import parametrize_some
from undula.engines import memory
from undula.engines.cpu.graphs import CpuGraph
from undula.filters import Blur, Contrast, Pipeline, Shrink, Unsharp
from undula.filters.memory import check_memory, working_memory
from undula.filters.planes import image_layout
from undula.filters.programs import ImageRecipe
from undula.filters.verbs import Denoising

Array = NDArray[Any]
QUALITIES = ("fast", "balanced", "best")
STACKS = {1: (1_500_000,), 2: (1200, 1250), 3: (60, 150, 160), 4: (10, 14, 100, 110), 5: (4, 6, 12, 70, 80)}


def noisy(shape: tuple[int, ...]) -> Array:
    waves = 30 * np.sin(np.indices(shape, dtype=np.float32).sum(0) / 5)
    return np.asarray(100 + waves + 10 * np.random.default_rng(1).normal(size=shape), np.float32)


def at_once(pipeline: Pipeline, x: Array) -> Array:
    """Filter by one program for all shifts."""
    recipe = ImageRecipe(image_layout(x.shape, "float32", None))
    return CpuGraph(pipeline.graph(recipe)).run({"image": x})["result"]


IN_BLOCKS = {
    "fast": Denoising(quality="fast").pipeline(),
    "best": Denoising(quality="best").pipeline(),
    "sure": Denoising(method="sure").pipeline(),
    "bands": Pipeline("bior4.4", 2, [Shrink("bivariate", noise="bands")], invariant=True),
    "approximations": Pipeline(
        "haar", 3, [Shrink("block"), Blur(1.0, at="approximation"), Unsharp(1.0)], invariant=2
    ),
}


@parametrize_some(
    ("name", "shape"),
    [(name, shape) for name in IN_BLOCKS for shape in ((18, 21, 24), (6, 9, 16, 17))],
    [*((name, (18, 21, 24)) for name in IN_BLOCKS), ("fast", (6, 9, 16, 17))],
)
def test_blocks_of_shifts_have_the_bits_of_all_at_once(name: str, shape: tuple[int, ...]) -> None:
    pipeline, x = IN_BLOCKS[name], noisy(shape)
    np.testing.assert_array_equal(pipeline(x, channel_axis=None), at_once(pipeline, x))


@pytest.mark.parametrize("quality", ["fast", "balanced"])
def test_large_images_are_filtered_by_channel_with_the_same_bits(quality: str) -> None:
    shape = (1650, 1700, 3)
    noise = np.random.default_rng(0).normal(0, 10, (825, 850, 3)).repeat(2, 0).repeat(2, 1)  # as of a camera
    image = np.clip(128 + 40 * np.sin(np.indices(shape).sum(0) / 50) + noise, 0, 255).astype(np.uint8)
    pipeline = Denoising(quality=quality).pipeline()
    recipe = ImageRecipe(image_layout(image.shape, "uint8"))
    expected = CpuGraph(pipeline.graph(recipe)).run({"image": image})["result"]
    np.testing.assert_array_equal(pipeline(image), expected)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_large_grey_images_have_the_same_bits(dtype: str) -> None:
    """Their shifts are made of the image itself."""
    image = np.random.default_rng(0).normal(128, 10, (2881, 2912)).astype(dtype)
    pipeline = Pipeline("haar", 2, [Shrink("bivariate")], invariant=2)
    recipe = ImageRecipe(image_layout(image.shape, dtype))
    before = image.copy()
    expected = CpuGraph(pipeline.graph(recipe)).run({"image": image})["result"]
    np.testing.assert_array_equal(pipeline(image), expected)
    np.testing.assert_array_equal(image, before)


def test_stages_on_images_are_applied_before_the_shifts() -> None:
    pipeline, x = Pipeline("db2", 2, [Blur(0.7), Shrink("bivariate")], invariant=2), noisy((18, 21, 24))
    np.testing.assert_array_equal(pipeline(x, channel_axis=None), at_once(pipeline, x))


@pytest.mark.parametrize("stage", [Shrink("bayes"), Contrast(0.4)])
def test_sums_over_blocks_of_shifts_differ_by_rounding(stage: object) -> None:
    pipeline, x = Pipeline("db2", 2, [stage], invariant=2), noisy((18, 21, 24))
    np.testing.assert_allclose(pipeline(x), at_once(pipeline, x), rtol=1e-5)


def test_coarser_levels_of_four_axes_are_followed_by_kernels() -> None:
    """A window over four axes, with parents of the next level, has the numbers of NumPy."""
    pipeline, x = Pipeline("haar", 2, [Shrink("bivariate", sigma=9.0)], invariant=1), noisy((9, 8, 10, 12))
    np.testing.assert_allclose(pipeline(x), pipeline(x, backend="reference"), rtol=1e-5)


def peak_and_estimate(quality: str, shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the peak of a fresh process above its state before the filter, and the estimate."""
    code = f"""
import resource, numpy as np
from undula.filters.memory import working_memory
from undula.filters.verbs import Denoising
pipeline, shape = Denoising(quality={quality!r}).pipeline(), {shape!r}
x = np.random.default_rng(0).integers(90, 110, shape).astype(np.uint16)
pipeline(x[tuple(slice(24) for n in shape)])
estimate = working_memory(pipeline, shape, x.dtype)
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
status = lambda name: int(open("/proc/self/status").read().split(name)[1].split()[0]) << 10
before = status("VmRSS:")
pipeline(x)
print(status("VmHWM:") - before, estimate)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    peak, estimate = map(int, run.stdout.split())
    return peak, estimate


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak is measured on Linux")
@parametrize_some(
    ("ndim", "quality"),
    [(n, q) for n in STACKS for q in QUALITIES],
    [(2, "balanced"), (3, "fast"), (4, "best")],
)
def test_estimate_is_right(ndim: int, quality: str) -> None:
    peak, estimate = peak_and_estimate(quality, STACKS[ndim])
    slack = 32 << 20  # of any process
    assert estimate / 1.5 - slack < peak < 1.5 * estimate + slack


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("ndim", STACKS)
def test_memory_is_bounded_for_any_number_of_axes(ndim: int, quality: str) -> None:
    pipeline = Denoising(quality=quality).pipeline()
    nbytes = working_memory(pipeline, STACKS[ndim], "float32")
    assert nbytes < 160 * math.prod(STACKS[ndim])


@pytest.mark.parametrize(("quality", "most"), [("fast", 15), ("balanced", 31), ("best", 31)])
@pytest.mark.parametrize("shape", [(3000, 4000, 3), (3000, 4000)], ids=["colour", "grey"])
def test_photographs_take_little_memory(shape: tuple[int, ...], quality: str, most: int) -> None:
    nbytes = working_memory(Denoising(quality=quality).pipeline(), shape, "uint8")
    assert nbytes < most * math.prod(shape)  # One more with the image.


def test_what_does_not_fit_is_refused_with_its_size() -> None:
    with pytest.raises(
        undula.NotEnoughMemoryError, match=r"^it takes 1,000,000\.0 GB of memory, and .* fewer"
    ):
        check_memory(10**15, "it")
    check_memory(1, "it")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="addresses are limited on Linux")
def test_command_refuses_a_stack_before_it_is_decoded(tmp_path: Path) -> None:
    np.lib.format.open_memmap(tmp_path / "stack.npy", "w+", np.float32, (20, 20, 350, 350)).flush()
    code = """
import resource
from undula.cli import main
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (2 << 30)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
raise SystemExit(main("denoise stack.npy out.npy --axes TZYX --filter-over TZYX --quality best".split()))
"""
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 1
    assert re.search(r"filtering stack.npy takes [3-9]\.\d GB of memory, and 1\.\d GB are", run.stderr)
    assert not (tmp_path / "out.npy").exists()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="addresses are limited on Linux")
@pytest.mark.parametrize("kind", ["frames of Studio", "DICOM"])
def test_exports_refuse_what_does_not_fit_before_they_filter(tmp_path: Path, kind: str) -> None:
    code = f"""
import resource, numpy as np, undula
from pathlib import Path
from undula.filters.verbs import Denoising
from undula.io.dicom_filtering import DicomFilter, dicom_frames
from undula.studio.export_jobs import ExportJob, run_job
pipeline = Denoising(quality="balanced").pipeline()
picture = undula.io.Picture(np.zeros((3600, 3600), np.uint16))
undula.io.write("a.npy", picture)
pipeline(picture.pixels[:64, :64])  # Loads what it needs.
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + (256 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    if {kind!r} == "DICOM":
        next(DicomFilter(pipeline).filtered(list(dicom_frames(picture, None))))
    else:
        run_job(ExportJob("a.npy", "out", pipeline.to_json(), frames=True), lambda done, total: None)
except undula.NotEnoughMemoryError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert re.match(r"filtering .* takes [3-9]\d\d MB of memory, and [12]\d\d MB are", run.stdout), run.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("ndim", [7, 10])
@pytest.mark.parametrize("function", [undula.denoise, undula.enhance, undula.calibrate, undula.dtcwtn])
def test_too_many_axes_are_refused(function: Callable[[Array], Any], ndim: int) -> None:
    with pytest.raises(undula.ArgumentError, match=rf"at most \d axes, got {ndim}"):
        function(np.random.default_rng(0).normal(size=(2,) * ndim))


def test_axes_that_count_images_are_not_limited() -> None:
    x = np.random.default_rng(0).normal(size=(2,) * 6 + (8, 8))
    expected = undula.denoise(x.reshape(64, 8, 8), sigma=1.0, axes=(1, 2)).reshape(x.shape)
    np.testing.assert_array_equal(undula.denoise(x, sigma=1.0, axes=(6, 7)), expected)


def test_errors_of_memory_say_what_was_needed() -> None:
    with pytest.raises(MemoryError, match=r"does not fit into memory: use fewer levels"):
        memory.empty((1 << 50,), np.dtype(np.float32))
    assert memory.memory_size(3 << 20) == "3 MB"
