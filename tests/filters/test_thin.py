"""Colour images with a side of one pixel, or filtered along one axis."""

from typing import Any

import numpy as np
import pytest

import undula
from undula.filters import Pipeline

WORK: dict[str, Any] = {
    "denoise": undula.denoise,
    "despeckle": lambda x, **arguments: undula.despeckle(x, kind="intensity", **arguments),
    "sharpen": undula.sharpen,
    "enhance": undula.enhance,
    "pipeline": Pipeline("bior4.4", 1, ["shrink"]),
}
SHAPES: list[tuple[tuple[int, ...], int]] = [((1, 40, 3), -1), ((40, 1, 4), 2), ((3, 1, 40), 0)]


@pytest.mark.parametrize("dtype", ["u1", "u2"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
@pytest.mark.parametrize("name", WORK)
def test_thin_images(name: str, shape: tuple[int, ...], axis: int, dtype: str) -> None:
    x = np.random.default_rng(3).integers(20, 200, shape).astype(dtype)
    result = WORK[name](x, channel_axis=axis)
    assert (result.shape, result.dtype) == (x.shape, x.dtype)
    floats = WORK[name](x.astype("f4"), channel_axis=axis)
    assert np.abs(result - np.clip(floats, 0, np.iinfo(dtype).max)).max() <= 0.51


@pytest.mark.parametrize("name", WORK)
def test_filters_along_one_axis(name: str) -> None:
    x = np.random.default_rng(4).integers(20, 200, (5, 40, 3)).astype("u1")
    result = WORK[name](x, channel_axis=-1, axes=(1,))
    floats = WORK[name](x.astype("f4"), channel_axis=-1, axes=(1,))
    assert np.abs(result - np.clip(floats, 0, 255)).max() <= 0.51


def test_images_of_one_pixel() -> None:
    x = np.array([[[10, 200, 30]]], "u1")
    np.testing.assert_array_equal(undula.denoise(x), x)
    assert undula.Pipeline("db2", 0, ["unsharp"])(x).shape == x.shape
