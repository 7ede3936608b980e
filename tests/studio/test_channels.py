"""Pictures other than grey and RGB, as the page shows and exports them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image, ImageOps

from undula import io
from undula.filters import Pipeline
from undula.studio.code import CodeSource, python_code
from undula.studio.decoding import StudioLimits
from undula.studio.export_jobs import ExportJob, run_job
from undula.studio.extents import AppliedChain
from undula.studio.inputs import open_input

PIPELINE = Pipeline("db2", 2, ["shrink"])
RGBA = np.random.default_rng(5).integers(60, 190, (40, 48, 5)).astype("u1")
ORIENTED = Image.Exif()
ORIENTED[274] = 6


def write_tiff(path: Path, count: int, photometric: str, *extra: str, **options: Any) -> None:
    """Write a picture with ``count`` channels."""
    arguments: dict[str, Any] = {"photometric": photometric, "extrasamples": list(extra) or None, **options}
    tifffile.imwrite(path, RGBA[..., :count], planarconfig="contig", **arguments)


def write_oriented(path: Path) -> None:
    """Write a photo whose orientation is not upright."""
    Image.fromarray(RGBA[..., :3]).save(path, exif=ORIENTED, quality=95)


def shown(path: Path) -> tuple[str, list[Any], str]:
    """Return kind, frames and thumbnail of a file, as the page has them."""
    opened_file = open_input(path, path.name, StudioLimits())
    try:
        return (
            opened_file.kind,
            [opened_file.frame(number) for number in range(opened_file.frame_count)],
            opened_file.thumbnail,
        )
    finally:
        opened_file.close()


def test_channels_are_shown_one_after_the_other(tmp_path: Path) -> None:
    write_tiff(tmp_path / "x.tif", 5, "minisblack", *["unspecified"] * 4)
    kind, frames, thumbnail = shown(tmp_path / "x.tif")
    assert kind == "volume"
    assert thumbnail.startswith("data:image/jpeg")
    np.testing.assert_array_equal(np.stack(frames, axis=-1), RGBA)


def test_photos_are_upright_and_in_rgb(tmp_path: Path) -> None:
    Image.fromarray(RGBA[..., :3]).convert("CMYK").save(tmp_path / "x.jpg", exif=ORIENTED)
    kind, (frame,), _ = shown(tmp_path / "x.jpg")
    assert kind == "picture"
    with Image.open(tmp_path / "x.jpg") as image:
        np.testing.assert_array_equal(frame, np.asarray(ImageOps.exif_transpose(image).convert("RGB")))


def export(source: Path, target: Path, frames: bool = False) -> None:
    """Do what the process of an export does."""
    job = ExportJob(str(source), str(target), PIPELINE.to_json(), frames=frames)
    run_job(job, lambda done, total: None)


def test_channels_are_exported_as_they_are_shown(tmp_path: Path) -> None:
    write_tiff(tmp_path / "x.tif", 2, "minisblack", "unspecified")
    export(tmp_path / "x.tif", tmp_path / "frames", frames=True)
    files = sorted((tmp_path / "frames").iterdir())
    correct = [PIPELINE(np.ascontiguousarray(RGBA[..., k]), channel_axis=None) for k in (0, 1)]
    np.testing.assert_array_equal(np.stack([io.read(path).pixels for path in files]), np.stack(correct))
    export(tmp_path / "x.tif", tmp_path / "y.tif")
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "y.tif"), np.stack(correct, axis=-1))


def test_code_keeps_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_oriented(Path("x.jpg"))
    exec(python_code(AppliedChain(PIPELINE), CodeSource("x.jpg"), "y.png"), {})
    result = io.read("y.png")
    assert result.orientation == 6
    np.testing.assert_array_equal(result.pixels, PIPELINE(io.read("x.jpg").pixels))
    write_tiff(Path("x.tif"), 2, "minisblack", "unspecified")
    exec(python_code(AppliedChain(PIPELINE), CodeSource("x.tif", 1), "page.png"), {})
    correct = PIPELINE(np.ascontiguousarray(RGBA[..., 1]), channel_axis=None)
    np.testing.assert_array_equal(io.read("page.png").pixels, correct)
