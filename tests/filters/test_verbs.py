"""One table of verbs makes functions, commands and presets."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undula
from commands import call
from undula import io
from undula.filters.verbs import VERBS, Denoising

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


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"profile": "best"}, "profile='best' does not apply to method='bivariate'"),
        (
            {"method": "collaborative", "wavelet": "db4"},
            "wavelet='db4' does not apply to method='collaborative'",
        ),
        ({"method": "collaborative", "level": 2}, "method='collaborative'"),
        ({"method": "directional", "invariant": True}, "method='directional'"),
        ({"method": "directional", "noise": "poisson"}, "method='directional'"),
        ({"method": "block", "rule": "hard"}, "rule='hard' does not apply to method='block'"),
        ({"quality": "best", "profile": "fast"}, "quality='best'"),
        ({"quality": "best", "method": "collaborative"}, "omit method"),
        ({"gain": 2.0}, "gain is for noise='poisson'"),
    ],
)
def test_options_that_do_not_apply_are_errors(options: dict[str, Any], message: str) -> None:
    with pytest.raises(undula.ArgumentError, match=message):
        undula.denoise(IMAGE, **options)


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("--noise poisson", {"noise": "poisson"}),
        (
            "--noise poisson-gaussian --sigma 3 --gain 2",
            {"noise": "poisson-gaussian", "sigma": 3.0, "gain": 2.0},
        ),
        ("--noise correlated --method collaborative", {"noise": "correlated", "method": "collaborative"}),
        (
            "--noise poisson --quality balanced --gain 1.5",
            {"noise": "poisson", "quality": "balanced", "gain": 1.5},
        ),
    ],
)
def test_commands_take_all_kinds_of_noise(words: str, options: dict[str, Any], tmp_path: Path) -> None:
    source, target = tmp_path / "in.png", tmp_path / "out.png"
    image = np.random.default_rng(0).poisson(np.add.outer(np.arange(40), np.arange(52)) + 2).astype("uint8")
    io.write(source, image)
    assert call(f"denoise {source} {target} {words}") == 0
    np.testing.assert_array_equal(io.read(target).pixels, undula.denoise(image, **options))


def test_the_strength_is_calibrated(tmp_path: Path) -> None:
    source, target = tmp_path / "in.png", tmp_path / "out.png"
    rows, columns = np.mgrid[:48, :56]
    clean = 128 + 60 * np.sin(rows / 5) * np.cos(columns / 7)
    image = np.clip(clean + 20 * np.random.default_rng(1).standard_normal(clean.shape), 0, 255).astype(
        "uint8"
    )
    io.write(source, image)
    assert call(f"denoise {source} {target} --calibrate --sigma 20 --method universal") == 0
    strength = undula.calibrate(image, 20.0, method="universal").strength
    expected = undula.denoise(image, 20.0, method="universal", strength=strength)
    np.testing.assert_array_equal(io.read(target).pixels, expected)
    calibrated = undula.denoise(image, 20.0, method="universal", calibrate=True)
    np.testing.assert_array_equal(calibrated, expected)
    assert np.std(expected - clean) < np.std(undula.denoise(image, 20.0, method="universal") - clean)
    for options in ({"strength": 2.0}, {"noise": "poisson"}, {"regions": 16}, {"over_time": 4}):
        with pytest.raises(undula.ArgumentError, match="calibrate"):
            undula.denoise(image, calibrate=True, **options)


def test_pipelines_of_equal_options_are_built_once() -> None:
    assert Denoising(invariant=2).pipeline() is Denoising().pipeline()
    assert Denoising(invariant=1).pipeline().invariant is not Denoising(invariant=True).pipeline().invariant
    for _ in range(2):  # Errors are raised each time.
        with pytest.raises(undula.ArgumentTypeError):
            Denoising(strength=True).pipeline()
