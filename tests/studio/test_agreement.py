"""For every kind of file, the picture on the page, all exports, the command and the program agree."""

import asyncio
import shlex
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from inks import cmyk_profile
from PIL import Image

from cases import parametrize_some
from undula import io
from undula.cli import main
from undula.filters import Gain, Pipeline, Shrink
from undula.filters.calibration import CalibratedPipeline
from undula.io.samples import scene, write_clip
from undula.studio.budget import ServerBudget
from undula.studio.chain import FilterChain
from undula.studio.decoding import StudioLimits
from undula.studio.dialogs import reproducing_code
from undula.studio.export_jobs import ExportJob, run_job
from undula.studio.exports import _job_options
from undula.studio.extents import EACH, VOLUME
from undula.studio.session import Session

PIPELINE = Pipeline("db2", 2, [Shrink("bayes"), Gain(1.2)])
ROWS, COLUMNS = 40, 47
RNG = np.random.default_rng(2)
COLORS = scene(ROWS, COLUMNS, 0.3, 14.0)
GREY = COLORS[..., 1]
ALPHA = np.where(RNG.random((ROWS, COLUMNS)) < 0.25, 0, RNG.integers(1, 256, (ROWS, COLUMNS))).astype("u1")
RGBA = np.dstack([np.where(ALPHA[..., None] > 0, COLORS, RNG.integers(0, 256, COLORS.shape)), ALPHA]).astype(
    "u1"
)
TURNED = Image.Exif()
TURNED[274] = 6

Write = Callable[[Path], Any]


def tiff(pixels: Any, photometric: str, *extra: str, **options: Any) -> Write:
    extrasamples = list(extra) or None

    def write(path: Path) -> None:
        tifffile.imwrite(
            path, pixels, photometric=photometric, extrasamples=extrasamples, planarconfig="contig", **options
        )

    return write


def grey_tiff(pixels: Any, photometric: str = "minisblack", **options: Any) -> Write:
    return lambda path: tifffile.imwrite(path, pixels, photometric=photometric, **options)


def palette(path: Path) -> None:
    image = Image.fromarray(COLORS).quantize(60)
    image.save(path, transparency=bytes(0 if k % 4 == 0 else 255 for k in range(60)))


def animation(path: Path) -> None:
    frames = [
        Image.fromarray(np.dstack([np.roll(COLORS, k, 0), 255 * (ALPHA > 0).astype("u1")])) for k in range(3)
    ]
    frames[0].save(path, save_all=True, append_images=frames[1:], lossless=True, duration=40)


def sample(name: str) -> Write:
    def write(path: Path) -> None:
        if name not in io.samples():
            pytest.skip(f"the sample {name!r} comes with a package that is not installed")
        path.write_bytes(io.sample(name).read_bytes())

    return write


STACK = np.stack([np.roll(COLORS, k, 0) for k in range(6)])
KINDS: dict[str, Write] = {
    "rgba.png": lambda path: Image.fromarray(RGBA).save(path),
    "clear.png": lambda path: Image.fromarray(RGBA * np.uint8([1, 1, 1, 0])).save(path),
    "rgba16.png": lambda path: io.write(path, io.Picture(RGBA.astype("u2") * 257)),
    "palette.png": palette,
    "grey-alpha.png": lambda path: Image.fromarray(RGBA[..., [1, 3]], "LA").save(path),
    "grey16.png": lambda path: io.write(path, GREY.astype("u2") * 199),
    "turned.jpg": lambda path: Image.fromarray(COLORS).save(path, exif=TURNED, quality=95),
    "turned.png": lambda path: Image.fromarray(COLORS).save(path, exif=TURNED),
    "cmyk.jpg": lambda path: Image.fromarray(RGBA, "CMYK").save(path, exif=TURNED),
    "profile.jpg": lambda path: Image.fromarray(RGBA, "CMYK").save(
        path, exif=TURNED, icc_profile=cmyk_profile()
    ),
    "float.tif": grey_tiff(GREY.astype("f4") * 1e-4),
    "negative.tif": grey_tiff(GREY, "miniswhite"),
    "bilevel.tif": grey_tiff(GREY > 100),
    "big-endian.tif": grey_tiff(GREY.astype(">u2") * 31, byteorder=">"),
    "premultiplied.tif": tiff(RGBA, "rgb", "assocalpha"),
    "lab.tif": tiff(COLORS, "cielab"),
    "rgb-other.tif": tiff(RGBA, "rgb", "unspecified"),
    "channels.tif": tiff(RGBA[..., :3], "minisblack", "unspecified", "unassalpha"),
    "turned.tif": tiff(COLORS, "rgb", extratags=[(274, "H", 1, 6, True)]),
    "animation.webp": animation,
    "stack.ome.tif": lambda path: tifffile.imwrite(
        path, STACK.reshape(2, 3, ROWS, COLUMNS, 3)[..., 0], metadata={"axes": "TZYX"}
    ),
    "volume.npy": lambda path: np.save(path, STACK[..., 0].astype(">f8")),
    "ct.dcm": sample("ct"),
    "scan.dcm": sample("ultrasound"),
    "clip.mp4": lambda path: write_clip(path, 12.0, 3),
}


class Results:
    """A file as it is shown and written by a session, a command and a program."""

    def __init__(
        self,
        path: Path,
        chain: FilterChain,
        number: int | None = None,
        plane: int = 0,
        calibrate: bool = False,
    ) -> None:
        self.path, self.chain = path, chain
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, self._run_session(number, plane, calibrate)).result()

    async def _run_session(self, number: int | None, plane: int, calibrate: bool) -> None:
        with ThreadPoolExecutor(2) as pool:
            session = Session(ServerBudget(StudioLimits(), self.path.parent), pool)
            try:
                shown = await session.open_file(self.path, self.path.name)
                if plane:
                    shown.set_plane(plane, number)
                session.seek(shown.frame_count - 1 if number is None else number)
                session.set_chain(self.chain)
                view = await session.current_view()
                self.before, self.shown = view.result.before, view.result.after
                self.kind, self.number, self.count = shown.kind, session.number, shown.frame_count
                suffix = session.exports.kinds()["picture"].suffixes[0]
                session.exports.start("picture", f"result{suffix}", (), self.path.parent)
                (export,) = session.exports.exports
                assert export.task is not None
                await export.task
                assert export.path is not None
                self.result = io.read(export.path).pixels
                self.command, self.program = reproducing_code(session)
                self.strength = await session.calibrate() if calibrate else None
            finally:
                session.close()

    def run(self, work: Callable[[], Any], name: str) -> Path:
        """Return the file that code writes."""
        before = {*Path().iterdir()}
        work()
        (written,) = {*Path().iterdir()} - before
        return written.rename(f"{name}{''.join(written.suffixes[-2:])}")

    def run_command(self) -> Path:
        return self.run(lambda: main(shlex.split(self.command)[1:]), "command")

    def run_program(self) -> Path:
        return self.run(lambda: exec(self.program, {}), "program")

    def run_export(self, target: str, **options: Any) -> Path:
        job = ExportJob(str(self.path), target, **_job_options(self.chain), **options)
        run_job(job, lambda done, total: None)
        return Path(target)


def is_lossy(path: Path) -> bool:
    return path.suffix in (".jpg", ".mp4")


CHOSEN = (
    "rgba.png palette.png grey-alpha.png turned.jpg profile.jpg float.tif negative.tif channels.tif".split()
)
CHOSEN += ["animation.webp", "scan.dcm", "clip.mp4"]


@parametrize_some("name", list(KINDS), CHOSEN)
def test_what_is_shown_is_what_is_written(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    KINDS[name](tmp_path / name)
    results = Results(tmp_path / name, FilterChain.from_pipeline(PIPELINE))
    shown = results.shown
    if name != "clear.png":
        assert (shown != results.before).any()
    np.testing.assert_array_equal(results.result, shown)
    command, program = results.run_command(), results.run_program()
    export = results.run_export(f"export{''.join(command.suffixes)}")
    if is_lossy(export):
        if results.kind == "picture":
            expected = io.read(results.path).filtered(PIPELINE).for_screen().pixels
            np.testing.assert_array_equal(shown, expected)
    else:
        written = io.read(export)
        np.testing.assert_array_equal(written.page(results.number).for_screen().pixels, shown)
        np.testing.assert_array_equal(written.pixels, io.read(command).pixels)
    if results.count > 1:
        np.testing.assert_array_equal(io.read(program).pixels, shown)
        frames = sorted(results.run_export("frames", frames=True).iterdir())
        assert len(frames) == results.count
        np.testing.assert_array_equal(io.read(frames[results.number]).pixels, shown)
    elif not name.endswith(".dcm"):  # Each result of DICOM files has an identifier of its own.
        assert program.read_bytes() == export.read_bytes() == command.read_bytes()
    else:
        np.testing.assert_array_equal(io.read(program).pixels, written.pixels)


def test_slices_of_one_volume_of_several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program takes a slice across another axis from the volume that is shown."""
    monkeypatch.chdir(tmp_path)
    pixels = np.random.default_rng(1).integers(0, 4000, (2, 18, ROWS, COLUMNS)).astype("u2")
    tifffile.imwrite("stack.ome.tif", pixels, metadata={"axes": "TZYX"})
    for extent in (EACH, VOLUME):
        chain = replace(FilterChain.from_pipeline(PIPELINE), extent=extent)
        results = Results(tmp_path / "stack.ome.tif", chain, number=20, plane=2)
        np.testing.assert_array_equal(results.before, pixels[1, :, :, 20])
        if extent == EACH:
            np.testing.assert_array_equal(io.read(results.run_program()).pixels, results.shown)
        else:
            export = io.read(results.run_export("export.ome.tif")).pixels.reshape(pixels.shape)
            np.testing.assert_array_equal(export[1, :, :, 20], results.shown)


def test_strengths_are_calibrated_as_by_the_command(tmp_path: Path) -> None:
    """Transparent pixels have no influence."""
    KINDS["rgba.png"](tmp_path / "rgba.png")
    results = Results(tmp_path / "rgba.png", FilterChain.from_pipeline(PIPELINE), calibrate=True)
    strength = CalibratedPipeline(PIPELINE).calibration(COLORS, mask=ALPHA > 0).strength
    assert results.strength == strength
    assert strength != CalibratedPipeline(PIPELINE).calibration(RGBA[..., :3]).strength
