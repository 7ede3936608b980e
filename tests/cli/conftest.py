"""What all tests of commands share."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Everything happens in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
