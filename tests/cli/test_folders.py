"""Folders: which of their files are filtered, what their results are called, and what is left out."""

import json
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from pydicom.uid import CTImageStorage, ParametricMapStorage, RTDoseStorage
from scans import save

import undula
from clips import write_test_clip
from commands import call, json_of
from films import RATE, add_frames
from undula import io
from undula.cli.outputs import ResultNames
from undula.io.dicom_filtering import DicomFilter
from undula.io.files import READ_ONLY_VIDEOS

CELLS = np.random.default_rng(0).integers(0, 4096, (24, 24)).astype("u2")


@pytest.fixture
def mixed() -> Path:
    """A folder of images, and of what is none."""
    folder = Path("in")
    (folder / "below").mkdir(parents=True)
    io.write(folder / "a.png", CELLS)
    io.write(folder / "below/b.png", CELLS)
    save(folder / "ct", CELLS, 12, SOPClassUID=CTImageStorage, Modality="CT")
    save(folder / "dose.dcm", CELLS, 12, SOPClassUID=RTDoseStorage, Modality="RTDOSE")
    save(folder / "map", CELLS, 12, SOPClassUID=ParametricMapStorage, Modality="MR")
    for name in ("notes.txt", "more.txt", "a.xyz"):
        (folder / name).write_text("no image")
    return folder


def left_out(report: dict[str, Any]) -> dict[str, str]:
    return {Path(entry["input"]).name: entry["reason"] for entry in report["left out"]}


def test_what_is_left_out_is_reported(mixed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = {
        "notes.txt": "no image or video by its name",
        "more.txt": "no image or video by its name",
        "a.xyz": "no image or video by its name",
        "below": "a folder, which --recursive searches",
        "dose.dcm": "dose grid, which --maps includes",
        "map": "parametric map, which --maps includes",
    }
    for options in ("--dry-run", ""):
        report = json_of(f"denoise in -o out {options}", capsys)
        assert sorted(Path(file["input"]).name for file in report["files"]) == ["a.png", "ct"]
        assert left_out(report) == expected
    assert call("denoise in -o again --json-lines") == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sum(line.get("status") == "left out" for line in lines) == len(expected)
    assert call("denoise in -o third") == 0
    printed = capsys.readouterr().out
    assert "left out: in/a.xyz and 2 more: no image or video by its name" in printed
    assert "left out: in/dose.dcm: dose grid" in printed
    report = json_of("denoise in -o deep --recursive", capsys)
    assert set(left_out(report)) == set(expected) - {"below"}
    assert set(left_out(json_of("info in", capsys))) == set(expected) - {"dose.dcm", "map"}
    assert "a.xyz" in left_out(json_of("export in -o pictures", capsys))


def test_earlier_results_and_empty_folders(mixed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("denoise in/a.png --suffix -x") == 0
    assert left_out(json_of("denoise in --suffix -x -y", capsys))["a-x.png"] == "a result of an earlier run"
    Path("doses").mkdir()
    (mixed / "dose.dcm").rename("doses/dose.dcm")
    assert call("denoise doses -o none") == 1
    assert (
        "doses contains no images or videos; left out: doses/dose.dcm: dose grid" in capsys.readouterr().err
    )


@pytest.mark.parametrize("name", ["dose.dcm", "map"])
def test_maps_are_filtered_only_if_asked_for(
    name: str, mixed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    targets = ("out.dcm", "out.dcm --dry-run", "out.png", "out.zarr", "out.zarr --dry-run")
    for target in targets:
        assert call(f"denoise in/{name} {target}") == 1
        assert "its samples are measurements or labels" in capsys.readouterr().err
    with pytest.raises(undula.FileError, match="maps=True"):
        DicomFilter(undula.denoise).filter_series([mixed / name], [Path("y.dcm")])
    assert not Path("out.dcm").exists()
    assert call(f"denoise in/{name} out.dcm --maps") == 0
    assert (io.read("out.dcm").pixels != CELLS).any()
    assert len(json_of("denoise in -o out --maps", capsys)["files"]) == 4


# --- videos that are read and never written -------------------------------------------------------

READ_ONLY = {
    "x.wmv": ("wmv2", "asf"),
    "x.asf": ("msmpeg4", "asf"),
    "x.flv": ("flv", "flv"),
    "h264.flv": ("libx264", "flv"),
    "x.ogv": ("libvpx", "ogg"),
    "x.vob": ("mpeg2video", "vob"),
    "x.3gp": ("libx264", "3gp"),
    "x.3g2": ("mpeg4", "3g2"),
    "x.m2v": ("mpeg2video", "mpeg2video"),
    "x.nut": ("mpeg4", "nut"),
}


def write_read_only(path: Path) -> Path:
    codec, container_format = READ_ONLY[path.name]
    with av.open(str(path), "w", format=container_format) as container:
        stream = container.add_stream(codec, rate=RATE)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        add_frames(container, stream)
    return path


def times(path: Path) -> list[float]:
    with av.open(str(path)) as container:
        return [float(frame.time) for frame in container.decode(video=0)]


@pytest.mark.parametrize("name", READ_ONLY)
def test_videos_that_are_only_read(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_read_only(Path(name))
    Path("in").mkdir()
    source = source.rename(Path("in") / name)
    count = len(list(io.read_frames(source)))
    assert count == 24
    assert call(f"info {source}") == 0
    report = json_of("denoise in -o out", capsys)
    (entry,) = report["files"]
    assert (Path(entry["output"]).name, entry["frames"]) == (f"{source.stem}.mkv", count)
    if name != "x.m2v":  # A bare stream has no times.
        before, after = np.array(times(source)), np.array(times(Path(entry["output"])))
        np.testing.assert_allclose(after - after[0], before - before[0], atol=2e-3)
    assert call(f"denoise in/{name} out{source.suffix}") == 1
    assert "are read, not written; write .mkv, .mp4 or .webm" in capsys.readouterr().err
    assert json_of("denoise in -o mp4 --format mp4", capsys)["written"] == 1
    assert [path.suffix for path in Path("mp4").iterdir()] == [".mp4"]


def test_every_suffix_that_is_only_read_is_tested() -> None:
    assert {Path(name).suffix for name in READ_ONLY} | {".f4v"} == READ_ONLY_VIDEOS


def test_results_of_unknown_names(capsys: pytest.CaptureFixture[str]) -> None:
    """They are named by their content; DICOM files keep theirs."""
    write_test_clip(Path("clip.mp4"), count=6).rename("clip.xyz")
    io.write("picture.png", CELLS)
    Path("picture.png").rename("picture.jfif")
    save(Path("1.2.840"), CELLS, 12)
    names = {"clip.xyz": "clip.mkv", "picture.jfif": "picture.png", "1.2.840": "1.2.840"}
    for name, expected in names.items():
        assert ResultNames().of(Path(name)) == expected
    report = json_of("denoise clip.xyz picture.jfif 1.2.840 -o out", capsys)
    assert sorted(Path(file["output"]).name for file in report["files"]) == sorted(names.values())
    assert ResultNames(format="mp4").of(Path("clip.xyz")) == "clip.mp4"
    assert ResultNames(format="tif").of(Path("picture.jfif")) == "picture.tif"
    assert ResultNames(format="png").of(Path("g.3gp")) == "g.mkv"
    assert ResultNames(format="mov").of(Path("g.3gp")) == "g.mov"
