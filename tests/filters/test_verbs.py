"""One table of verbs makes functions, commands and presets."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import undula
from commands import call
from undula import io
from undula.filters.verbs import VERBS

IMAGE = np.random.default_rng(0).integers(0, 256, (40, 52)).astype("uint8")


@pytest.mark.parametrize("name", VERBS)
def test_functions_have_the_options_and_defaults_of_the_table(name: str) -> None:
    parameters = inspect.signature(getattr(undula, name)).parameters
    for each in fields(VERBS[name]):  # type: ignore[arg-type]
        assert parameters[each.name].default == each.default


@pytest.mark.parametrize("name", VERBS)
def test_functions_document_all_choices(name: str) -> None:
    text = inspect.getdoc(getattr(undula, name)) or ""
    for option, description in VERBS[name].options().items():
        assert f"\n{option} : " in text or f"{option}," in text or f", {option}\n" in text
        if f"\n{option} : " in text:  # Otherwise the text refers to another function.
            assert all(choice in text for choice in description.choices)


@pytest.mark.parametrize("name", VERBS)
def test_commands_and_functions_give_the_same_pixels(name: str, tmp_path: Path) -> None:
    source, target = tmp_path / "in.png", tmp_path / "out.png"
    io.write(source, IMAGE)
    assert call(f"{name} {source} {target}") == 0
    np.testing.assert_array_equal(io.read(target).pixels, getattr(undula, name)(IMAGE))


def test_options_of_commands_reach_the_pipeline(tmp_path: Path) -> None:
    source, target = tmp_path / "in.png", tmp_path / "out.png"
    io.write(source, IMAGE)
    assert call(f"denoise {source} {target} --quality balanced --sigma 20") == 0
    balanced = undula.denoise(IMAGE, 20.0, quality="balanced")
    np.testing.assert_array_equal(io.read(target).pixels, balanced)
    options = "--overwrite --method bayes --rule hard --shifts 0 --level 2 --strength 0.7 --sigma 20"
    assert call(f"denoise {source} {target} {options}") == 0
    expected = undula.denoise(IMAGE, 20.0, method="bayes", rule="hard", invariant=0, level=2, strength=0.7)
    np.testing.assert_array_equal(io.read(target).pixels, expected)
