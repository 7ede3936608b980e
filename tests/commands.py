"""Running commands of ``undula`` in tests."""

import json
import shlex
from typing import Any

import pytest

from undula.cli import main


def call(line: str) -> int:
    """Run a command, given as in a shell, and return its exit status."""
    return main(shlex.split(line))


def json_of(line: str, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command with ``--json`` and return its report."""
    capsys.readouterr()
    assert call(f"{line} --json") == 0
    return json.loads(capsys.readouterr().out)
