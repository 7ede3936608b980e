"""CI fails if a part that is not on every machine was not tested."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from parts import REQUIRED, report

SCRIPT = Path(__file__).with_name("parts.py")


def run(folder: Path, tested: dict[str, int], *options: str) -> "subprocess.CompletedProcess[str]":
    file = folder / "tested.json"
    file.write_text(json.dumps(tested))
    return subprocess.run(
        [sys.executable, str(SCRIPT), str(file), *options], capture_output=True, text=True, check=False
    )


def test_a_machine_without_parts_says_so_in_one_line(tmp_path: Path) -> None:
    result = run(tmp_path, {**REQUIRED, "browser": 0, "JAX": 0})
    assert result.returncode == 0
    assert result.stdout.count("\n") == 1
    assert "browser, JAX were skipped" in result.stdout


@pytest.mark.parametrize("part", REQUIRED)
def test_each_part_is_required(tmp_path: Path, part: str) -> None:
    result = run(tmp_path, {**REQUIRED, part: REQUIRED[part] - 1}, "--require")
    assert result.returncode == 1
    assert f"{part}: {REQUIRED[part] - 1} tests passed, but at least" in result.stdout


def test_required_parts_are_listed_with_their_counts() -> None:
    lines, complete = report({part: least + 5 for part, least in REQUIRED.items()}, require=True)
    assert complete
    assert lines[1:] == [f"{part}: {least + 5} tests passed, as required" for part, least in REQUIRED.items()]


def test_passed_tests_are_counted(tmp_path: Path) -> None:
    """Skipped tests do not count, nor do tests named after a library that is not there."""
    folder = Path(__file__).parent
    file = tmp_path / "test_some.py"
    file.write_text(
        "import pytest, undula\n"
        "def test_device():\n    undula.wavedec([1.0, 2.0], 'haar', backend='opencl')\n"
        "def test_torch_without_torch(): pass\n"
        "@pytest.fixture\ndef browser(): pytest.skip('no browser')\n"
        "def test_page(browser): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "-p", "parts"]
    command += [
        "-c",
        os.devnull,
        "--rootdir",
        str(tmp_path),
        "--tested-parts",
        str(tmp_path / "tested.json"),
        str(file),
    ]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    passed = 2 - ("1 failed" in result.stdout)  # where there is no driver of OpenCL
    assert f"{passed} passed, 1 skipped" in result.stdout.replace("1 failed, ", ""), result.stdout
    tested = json.loads((tmp_path / "tested.json").read_text())
    assert tested == {"OpenCL": passed - 1, "browser": 0, "PyTorch": 0, "JAX": 0}
