"""Fixtures for the tests of commands."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run each test in an empty folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
