"""Batches: a file that cannot be filtered does not stop the others, and the report lists all of them."""

import json
import shutil
import signal
from concurrent.futures import as_completed
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

from commands import call
from undula import io
from undula.cli import jobs
from undula.cli.filtering import SOME_FAILED

COUNT = 17


@pytest.fixture
def pictures() -> Path:
    """A folder of images, one of which is truncated."""
    folder = Path("in")
    folder.mkdir()
    for number in range(COUNT):
        io.write(folder / f"{number:02}.png", np.full((16, 16), 10 * number, "u1"))
    (folder / "05.png").write_bytes((folder / "05.png").read_bytes()[:40])
    return folder


def test_report_lists_results_and_errors(pictures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("denoise in -o out --json") == SOME_FAILED
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert [Path(file["output"]).name for file in report["files"]] == [
        f"{number:02}.png" for number in range(COUNT) if number != 5
    ]
    assert report["frames"] == COUNT - 1
    assert [error["input"] for error in report["errors"]] == [str(pictures / "05.png")]
    assert "05.png" in report["errors"][0]["error"]
    assert captured.err.splitlines()[-1] == f"undula: 1 of {COUNT} files was not filtered"
    assert len(list(Path("out").iterdir())) == COUNT - 1


def test_printed_errors_name_the_file(pictures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("sharpen in/04.png in/05.png missing.png -o out") == SOME_FAILED
    captured = capsys.readouterr()
    written, summary = captured.out.splitlines()
    assert written == "out/04.png"
    assert summary.startswith("3 files: 1 written, 2 failed, in ")
    first, second, last = captured.err.splitlines()
    assert "in/05.png" in first
    assert "missing.png" in second
    assert last == "undula: 2 of 3 files were not filtered"


def test_error_shared_by_all_files_is_printed_once(
    pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("denoise in/00.png in/01.png in/02.png -o out --sigma -3") == 1
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("undula: in/00.png and 2 more: ")
    assert last == "undula: 3 of 3 files were not filtered"


@pytest.mark.parametrize(
    "error", [RuntimeError("decoder"), MemoryError(), OSError(5, "Input/output error"), KeyError("codec")]
)
def test_exception_of_any_type_fails_one_file_only(
    error: Exception, monkeypatch: pytest.MonkeyPatch, pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Decoders raise exceptions of many types."""
    picture = jobs.filter_picture

    def reader(source: Path, *arguments: Any, **options: Any) -> Any:
        if source.name == "03.png":
            raise error
        return picture(source, *arguments, **options)

    monkeypatch.setattr(jobs, "filter_picture", reader)
    assert call("denoise in/02.png in/03.png in/04.png -o out --json") == SOME_FAILED
    report = json.loads(capsys.readouterr().out)
    assert [file["input"] for file in report["files"]] == ["in/02.png", "in/04.png"]
    assert [each["input"] for each in report["errors"]] == ["in/03.png"]
    assert report["errors"][0]["error"]


def test_missing_device(pictures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("denoise in/00.png in/01.png -o out --backend opencl:99 --json") == 1
    report = json.loads(capsys.readouterr().out)
    assert report["files"] == []
    assert len(report["errors"]) == 2


def test_number_of_printed_errors_is_limited(capsys: pytest.CaptureFixture[str]) -> None:
    missing = " ".join(f"{number}.png" for number in range(30))
    assert call(f"denoise {missing} -o out") == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 22
    assert "10 more errors; --json lists all of them" in lines[20]
    assert lines[21] == "undula: 30 of 30 files were not filtered"
    assert call(f"denoise {missing} -o out --json") == 1
    assert len(json.loads(capsys.readouterr().out)["errors"]) == 30


@pytest.mark.parametrize("line", ["denoise in/05.png out.png", "denoise in/05.png -o out"])
def test_report_of_one_file_has_the_same_form(
    line: str, pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(f"{line} --json") == 1
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert report["files"] == []
    assert [error["input"] for error in report["errors"]] == ["in/05.png"]
    assert captured.err == f"undula: {report['errors'][0]['error']}\n"


def test_report_without_errors(pictures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("denoise in/00.png in/01.png -o out --json") == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["files"]) == 2
    assert report["errors"] == []


# --- many files -----------------------------------------------------------------------------------


@pytest.fixture
def shoot() -> Path:
    """A folder of small images of several formats."""
    folder = Path("shoot")
    folder.mkdir()
    rough = np.random.default_rng(0).integers(0, 256, (24, 24, 3)).astype("u1")
    for name in ("a.jpg", "b.png", "c.heic"):
        io.write(folder / name, rough)
    return folder


def files(folder: str) -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def test_suffix_and_format_name_the_results(shoot: Path) -> None:
    assert call("denoise shoot -o out --suffix -clean --format webp") == 0
    assert files("out") == ["a-clean.webp", "b-clean.webp", "c-clean.webp"]
    assert io.read("out/a-clean.webp").kind == "webp"
    assert call("denoise shoot new --format .PNG") == 0
    assert files("new") == ["a.png", "b.png", "c.png"]


def test_results_beside_their_inputs(shoot: Path) -> None:
    assert call("denoise shoot/a.jpg shoot/b.png --suffix _x") == 0
    assert call("denoise shoot/c.heic --format png") == 0
    expected = ["a.jpg", "a_x.jpg", "b.png", "b_x.png", "c.heic", "c.png"]
    assert files("shoot") == expected
    assert call("denoise shoot --suffix _x -y") == 0  # Results are not filtered again.
    found = files("shoot")
    assert call(f"denoise {' '.join(f'shoot/{name}' for name in found)} --suffix _x -y") == 0
    assert files("shoot") == found  # Nor are those that a pattern matches.
    assert files("shoot") == sorted([*expected, "c_x.heic", "c_x.png"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("denoise shoot/a.jpg out.jpg --suffix -x", "named already"),
        ("denoise shoot -o out --format bmpp", "bmp"),
        ("denoise shoot -o out --suffix a/b", "got a path"),
        ("denoise shoot -o out --skip-existing --overwrite", "choose one"),
        ("denoise shoot -o out --jobs 2 --workers 2", "omit it"),
        ("denoise shoot/b.png out.png --image-quality 80", "out.png is not one of them"),
        ("denoise shoot -o out --preview p.png", "a single image, got 3 files"),
        ("denoise shoot/a.jpg out.jpg --preview out.jpg", "two outputs"),
        ("denoise shoot/a.jpg out.jpg --preview shoot/a.jpg -y", "is an input"),
        ("denoise shoot/a.jpg out.jpg --preview p.mp4", "as an image"),
        ("denoise - --suffix -x", "name the output"),
        ("denoise shoot/a.jpg shoot/b.png shoot/c.heic", "--suffix; got 3"),
    ],
)
def test_options_that_contradict_each_other(
    line: str, message: str, shoot: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(line) == 1
    assert message in capsys.readouterr().err
    assert files(".") == ["shoot"]
    assert files("shoot") == ["a.jpg", "b.png", "c.heic"]


def test_skip_existing(shoot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("out").mkdir()
    Path("out/b.png").write_text("mine")
    assert call("denoise shoot -o out --skip-existing --json") == 0
    report = json.loads(capsys.readouterr().out)
    assert [file["status"] for file in report["files"]] == ["written", "skipped", "written"]
    assert (report["written"], report["skipped"], report["failed"], report["frames"]) == (2, 1, 0, 2)
    assert Path("out/b.png").read_text() == "mine"
    assert call("denoise shoot -o out --skip-existing") == 0
    assert capsys.readouterr().out.startswith("3 files: 3 skipped, in ")


def test_dry_run_writes_nothing(shoot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("shoot/d.gif").write_bytes(b"")
    assert call("denoise shoot shoot/a.jpg -o out --dry-run") == 1
    assert "shoot/a.jpg was given twice" in capsys.readouterr().err
    assert call("filter shoot -o out -S soft:3 --save chain.json --format tif --dry-run") == SOME_FAILED
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[:3] == [f"shoot/{name} → out/{name[0]}.tif" for name in ("a.jpg", "b.png", "c.heic")]
    assert lines[3].startswith("4 files: 3 planned, 1 failed, in ")
    assert "shoot/d.gif is empty" in captured.err
    assert files(".") == ["shoot"]


def test_dry_run_reads_headers(shoot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a real run refuses for its headers, a dry run lists as failed, and both leave no folders."""
    Path("shoot/d.png").write_bytes(Path("shoot/b.png").read_bytes()[:20])
    Path("shoot/e.jpg").write_bytes(Path("shoot/a.jpg").read_bytes()[:9])
    Path("shoot/f.mp4").write_bytes(b"\0\0\0\x18ftypmp42" + bytes(40))
    io.write("shoot/g.png", np.zeros((16, 16, 4), "u1"))  # JPEG has no transparency,
    io.write("shoot/h.npy", np.zeros((16, 16), "f4"))  # no floats,
    shutil.copy(io.sample("ct"), "shoot/i.dcm")  # and no 16 bits.
    Path("shoot/j.zarr").mkdir()
    Path("shoot/j.zarr/zarr.json").write_text("{}")
    failed = []
    for words in ("--dry-run", ""):
        assert call(f"denoise shoot -o out/of/results --format jpg --json {words}") == SOME_FAILED
        report = json.loads(capsys.readouterr().out)
        failed.append({Path(error["input"]).name: error["error"] for error in report["errors"]})
        assert [Path(file["input"]).name for file in report["files"]] == ["a.jpg", "b.png", "c.heic"]
        assert Path("out").exists() == (words == "")
    assert failed[0].keys() == failed[1].keys()
    assert "no alpha" in failed[0]["g.png"]
    assert "float32" in failed[0]["h.npy"]
    assert "16" in failed[0]["i.dcm"]


def test_no_empty_folders_are_left(shoot: Path) -> None:
    Path("shoot/d.png").write_bytes(b"no image")
    assert call("denoise shoot/d.png new/folder/d.png") == 1
    assert call("denoise shoot/d.png missing.png -o new/folder --jobs 2") == 1
    assert files(".") == ["shoot"]
    assert call("denoise shoot/d.png shoot/b.png -o new/folder") == SOME_FAILED
    assert files("new/folder") == ["b.png"]


def test_info_of_folders_and_stores(shoot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    zarr = pytest.importorskip("zarr")
    Path("shoot/deep").mkdir()
    io.write("shoot/deep/pages.tif", np.zeros((3, 20, 30), "u2"))
    Path("shoot/bad.gif").write_bytes(b"GIF89a")
    group = zarr.create_group("shoot/pair.zarr")
    for name, shape in (("first", (4, 30)), ("second", (5,))):
        group.create_array(name, shape=shape, dtype="u1")
    zarr.create_array(
        "shoot/x.zarr", shape=(6, 20, 30), chunks=(2, 10, 10), dtype="u2", dimension_names="zyx"
    )
    assert call("info shoot -r --json") == 0
    listed = {entry.pop("file"): entry for entry in json.loads(capsys.readouterr().out)["files"]}
    assert listed["deep/pages.tif"] == {"kind": "tiff", "width": 30, "height": 20, "frames": 3}
    assert listed["x.zarr"] == {"kind": "zarr", "shape": [6, 20, 30]}
    assert "error" in listed["bad.gif"]
    assert "2 arrays" in listed["pair.zarr"]["error"]
    for name in ("a.jpg", "b.png", "c.heic"):
        height, width = io.read(f"shoot/{name}").pixels.shape[:2]
        assert (listed[name]["width"], listed[name]["height"]) == (width, height)
    assert call("info shoot") == 0
    printed = capsys.readouterr().out
    assert "deep/pages.tif" not in printed
    assert "left out: shoot/deep: a folder, which --recursive searches" in printed
    assert "6 files in shoot: " in printed
    assert call("info shoot/x.zarr --json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["axes"], report["lengths"], report["type"]) == (["z", "y", "x"], [6, 20, 30], "uint16")
    assert call("info shoot/pair.zarr") == 0
    assert "first (4 × 30), second (5)" in capsys.readouterr().out


def test_jobs_give_the_same_results(pictures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("denoise in -o one --quiet") == SOME_FAILED
    assert call("denoise in -o four --jobs 4 --json") == SOME_FAILED
    report = json.loads(capsys.readouterr().out)
    assert [file["input"] for file in report["files"]] == [
        f"in/{number:02}.png" for number in range(COUNT) if number != 5
    ]
    assert files("one") == files("four")
    assert all(Path("one", name).read_bytes() == Path("four", name).read_bytes() for name in files("one"))


def test_one_line_of_json_for_each_file(pictures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("denoise in/04.png in/05.png -o out --json-lines") == SOME_FAILED
    first, second, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["output"], first["status"], first["lost"]) == ("out/04.png", "written", [])
    assert (second["input"], second["status"]) == ("in/05.png", "failed")
    assert "05.png" in second["error"]
    assert (last["written"], last["failed"]) == (1, 1)
    assert call("denoise in/05.png out.png --json-lines") == 1
    assert json.loads(capsys.readouterr().out.splitlines()[0])["status"] == "failed"


def test_losses_are_named_once(shoot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.png", "b.png"):
        io.write(shoot / name, replace(io.read(shoot / "a.jpg"), texts={"Author": "Ann"}))
    (shoot / "c.heic").unlink()
    assert call("denoise shoot/a.png shoot/b.png -o out --format webp") == 0
    warning = "undula: warning: out/a.webp and 1 more do not keep text (Author)\n"
    assert capsys.readouterr().err == warning
    assert call("denoise shoot/a.png out.webp") == 0
    assert capsys.readouterr().err == "undula: warning: out.webp does not keep text (Author)\n"
    assert call("denoise shoot/a.png out.webp -y --quiet") == 0
    assert capsys.readouterr().err == ""


def test_warnings_of_several_files_are_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    for number in range(3):
        io.write(f"dim{number}.png", rng.poisson(1.5, (64, 64)).astype("u1"))
        assert call(f"example scan{number}.dcm --json") == 0
    capsys.readouterr()
    assert call("denoise dim0.png dim1.png dim2.png -o out --noise poisson") == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("undula: warning: results are rounded to uint8, in which so few photons are lost")
    assert call("denoise scan0.dcm scan1.dcm scan2.dcm -o out --format png") == 0
    assert capsys.readouterr().err == "undula: warning: out/scan0.png and 2 more do not keep DICOM header\n"
    assert call("denoise dim0.png scan0.dcm -o out2 --noise poisson --format png --quiet") == 0
    assert capsys.readouterr().err == ""


def test_empty_files_of_a_folder_are_errors(capsys: pytest.CaptureFixture[str]) -> None:
    """They are images by their suffix; other files are left out."""
    for name in ("in/a.png", "in/b.dcm", "in/c"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).touch()
    assert call("denoise in -o out") == 1
    assert [line.split(" ")[1] for line in capsys.readouterr().err.splitlines()] == [
        "in/a.png",
        "in/b.dcm",
        "2",
    ]


def test_image_quality(shoot: Path) -> None:
    for quality in (20, 95):
        assert call(f"denoise shoot -o out{quality} --image-quality {quality}") == 0
    for name in ("a.jpg", "c.heic"):
        assert Path("out20", name).stat().st_size < Path("out95", name).stat().st_size
    assert Path("out20/b.png").read_bytes() == Path("out95/b.png").read_bytes()


def test_preview(shoot: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("denoise shoot/b.png out.png --preview p.png") == 0
    shown = io.read("p.png").pixels
    scale = (shown.shape[1] - 36) // 48
    after = shown[34:-28, 24 + 24 * scale : -12][::scale, ::scale]
    np.testing.assert_array_equal(after, io.read("out.png").pixels)
    assert call("denoise shoot/b.png out.png -y --preview p.png") == 0
    Path("x.mkv").write_bytes(b"\x1aE\xdf\xa3")
    capsys.readouterr()
    assert call("denoise x.mkv out.mkv --preview q.png") == 1
    assert "applies to images only" in capsys.readouterr().err
    assert not Path("out.mkv").exists()


@pytest.mark.parametrize("words", ["", "--jobs 2", "--json"])
def test_an_interrupt_reports_what_was_written(
    words: str, pictures: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_job, begun, warned = jobs._run_job, [], Event()

    def interrupted(job: Any, **options: Any) -> Any:
        begun.append(job)
        if len(begun) > 3 and "jobs" not in words:
            signal.raise_signal(signal.SIGINT)
        assert len(begun) <= 3 or warned.wait(60)
        return run_job(job, **options)

    def waited(futures: Any) -> Any:
        yield from as_completed(list(futures)[:3])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(jobs, "_run_job", interrupted)
        patch.setattr(jobs, "as_completed", waited)
        patch.setattr(jobs, "print_warning", lambda text: warned.set())
        assert call(f"denoise in -o out {words}") == 130
    captured = capsys.readouterr()
    written = len(list(Path("out").iterdir()))
    assert 3 <= written < COUNT - 1
    assert captured.err.splitlines()[-1] == (
        f"undula: interrupted; {written} of {COUNT} files were written, and nothing was left half done. Add"
        " --skip-existing to go on"
    )
    if words == "--json":
        assert json.loads(captured.out)["written"] == written
    assert call("denoise in -o out --skip-existing --quiet") == SOME_FAILED
    assert len(list(Path("out").iterdir())) == COUNT - 1
