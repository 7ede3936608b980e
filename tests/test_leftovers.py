"""What a test changes for all later tests is found."""

import os
from pathlib import Path

import numpy as np
import pytest

import undula
from leftovers import changes, definitions, registries, settings
from undula.engines.gpu.strategies import STRATEGIES


def test_nothing_changes_by_itself() -> None:
    for state in (registries, settings, definitions):
        assert not changes(state(), state())


def test_registries_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    before = registries()
    monkeypatch.setitem(STRATEGIES, "test", STRATEGIES["naive"])
    changed = changes(before, registries())
    assert "STRATEGIES of undula.engines.gpu.strategies" in changed
    assert all(name.startswith("STRATEGIES of ") for name in changed)  # in each module that imports it


def test_definitions_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    before = definitions()
    monkeypatch.setattr(undula.Plan, "forward", None)
    assert any(name.startswith("Plan.forward of ") for name in changes(before, definitions()))


def test_settings_are_compared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = settings()
    monkeypatch.setenv("UNDULA_TEST", "1")
    monkeypatch.chdir(tmp_path)
    with np.errstate(all="raise"):
        undula.set_num_threads(1)
        changed = changes(before, settings())
        undula.set_num_threads(None)
    assert sorted(changed) == [
        "UNDULA_TEST of the environment",
        "errors of numpy",
        "number of threads of undula",
        "working directory of the process",
    ]
    assert "UNDULA_TEST" in os.environ
