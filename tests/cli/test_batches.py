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
    """A folder with seventeen pictures, one of which is broken."""
    folder = Path("in")
    folder.mkdir()
    for number in range(COUNT):
        io.write(folder / f"{number:02}.png", np.full((16, 16), 10 * number, "u1"))
    (folder / "05.png").write_bytes((folder / "05.png").read_bytes()[:40])
    return folder


def test_the_report_has_what_worked_and_what_did_not(
    pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("denoise in -o out --json") == 1
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert [Path(file["output"]).name for file in report["files"]] == [
        f"{number:02}.png" for number in range(COUNT) if number != 5
    ]
    assert report["frames"] == COUNT - 1
    assert [error["input"] for error in report["errors"]] == [str(pictures / "05.png")]
    assert "05.png" in report["errors"][0]["error"]
    assert said.err.splitlines()[-1] == f"undula: 1 of {COUNT} files was not filtered"
    assert len(list(Path("out").iterdir())) == COUNT - 1


def test_errors_for_people_name_their_file(pictures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("sharpen in/04.png in/05.png missing.png -o out") == 1
    said = capsys.readouterr()
    assert said.out.splitlines() == ["out/04.png"]
    first, second, last = said.err.splitlines()
    assert "in/05.png" in first
    assert "missing.png" in second
    assert last == "undula: 2 of 3 files were not filtered"


def test_an_error_that_all_files_share_is_said_once(
    pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("denoise in/00.png in/01.png in/02.png -o out --sigma -3") == 1
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("undula: in/00.png and 2 more: ")
    assert last == "undula: 3 of 3 files were not filtered"


@pytest.mark.parametrize(
    "error", [RuntimeError("decoder"), MemoryError(), OSError(5, "Input/output error"), KeyError("codec")]
)
def test_whatever_is_raised_for_one_file(
    error: Exception, monkeypatch: pytest.MonkeyPatch, pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Libraries that decode raise errors of any kind."""
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


def test_a_device_that_is_not_there(pictures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("denoise in/00.png in/01.png -o out --backend opencl:99 --json") == 1
    report = json.loads(capsys.readouterr().out)
    assert report["files"] == []
    assert len(report["errors"]) == 2


def test_errors_of_many_files_fit_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    missing = " ".join(f"{number}.png" for number in range(30))
    assert call(f"denoise {missing} -o out") == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 22
    assert "10 more errors; --json lists all of them" in lines[20]
    assert lines[21] == "undula: 30 of 30 files were not filtered"
    assert call(f"denoise {missing} -o out --json") == 1
    assert len(json.loads(capsys.readouterr().out)["errors"]) == 30


@pytest.mark.parametrize("line", ["denoise in/05.png out.png", "denoise in/05.png -o out"])
def test_the_report_of_one_file_is_like_that_of_many(
    line: str, pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(f"{line} --json") == 1
    said = capsys.readouterr()
    report = json.loads(said.out)
    assert report["files"] == []
    assert [error["input"] for error in report["errors"]] == ["in/05.png"]
    assert said.err == f"undula: {report['errors'][0]['error']}\n"


def test_everything_worked(pictures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("denoise in/00.png in/01.png -o out --json") == 0
    report = json.loads(capsys.readouterr().out)
    assert len(report["files"]) == 2
    assert report["errors"] == []
