"""Decoders and encoders of other packages may raise anything; only the file that they fail on is lost."""

import json
from pathlib import Path

import numpy as np
import pytest
from pydicom import examples
from pydicom.uid import RLELossless
from scans import damage_rle, save

import undula
from commands import call
from undula.cli.filtering import SOME_FAILED
from undula.io.foreign import foreign_code
from undula.studio.decoding import FileDecoder


class PanicError(BaseException):
    """What pyo3 raises for a panic of Rust."""


@pytest.fixture
def scans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four slices in RLE, one of which is damaged."""
    monkeypatch.chdir(tmp_path)
    cells = np.random.default_rng(0).integers(0, 4096, (4, 40, 48)).astype("u2")
    (tmp_path / "scans").mkdir()
    for number, page in enumerate(cells):
        save(tmp_path / f"scans/{number}.dcm", page, 12, syntax=RLELossless, InstanceNumber=number)
    damage_rle(tmp_path / "scans/1.dcm")
    return tmp_path / "scans"


@pytest.mark.parametrize("options", ["", "--jobs 2", "--workers 1"])
def test_a_batch_goes_on(options: str, scans: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(f"denoise scans -o out --json {options}") == SOME_FAILED
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    assert sorted(Path(file["output"]).name for file in report["files"]) == ["0.dcm", "2.dcm", "3.dcm"]
    assert [Path(error["input"]).name for error in report["errors"]] == ["1.dcm"]
    assert report["errors"][0]["error"].startswith("cannot read ")
    assert "Traceback" not in captured.err
    assert len(list(Path("out").iterdir())) == 3


def test_commands_for_single_files(scans: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("export scans -o pictures") == 1
    assert len(list(Path("pictures").iterdir())) == 3
    for command in ("info scans/1.dcm", "denoise scans/1.dcm x.dcm", "denoise scans -o stack --over-time 4"):
        assert call(f"{command} --json") == 1
        captured = capsys.readouterr()
        assert "1.dcm" in json.dumps(json.loads(captured.out[captured.out.index("{") :]))
        assert "Traceback" not in captured.err
    assert not Path("stack").exists()


def test_studio_names_the_cause(scans: Path) -> None:
    with pytest.raises(undula.FileError, match="cannot read the file as dicom"):
        FileDecoder(scans / "1.dcm").close()


@pytest.mark.parametrize("error", [PanicError("index out of bounds"), SystemExit(3), ValueError("bad")])
def test_anything_becomes_an_error_of_a_file(error: BaseException) -> None:
    with pytest.raises(undula.FileError, match=r"^cannot read x\.rle: (index out of bounds|3|bad)$"):
        with foreign_code("cannot read x.rle"):
            raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), undula.ArgumentError("x"), OSError(28, "full")])
def test_what_is_passed(error: BaseException) -> None:
    with pytest.raises(type(error)), foreign_code("cannot write x.rle", OSError):
        raise error


def test_damaged_elements_for_the_display_name_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.dcm"
    content = Path(examples.get_path("ct")).read_bytes()
    assert content.count(b"\x28\x00\x52\x10DS") == 1
    path.write_bytes(content.replace(b"\x28\x00\x52\x10DS", b"\x28\x00\x52\x10DC"))
    assert call(f"info {path}") == 1
    assert "x.dcm" in capsys.readouterr().err
