"""Batches: a file that cannot be filtered does not stop the others, and the report lists all of them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from commands import call
from undula import io
from undula.cli import jobs

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
    assert call("denoise in -o out --json") == 1
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
    assert call("sharpen in/04.png in/05.png missing.png -o out") == 1
    captured = capsys.readouterr()
    assert captured.out.splitlines() == ["out/04.png"]
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
    assert call("denoise in/02.png in/03.png in/04.png -o out --json") == 1
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
