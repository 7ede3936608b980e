"""Invalid samples do not influence valid ones, in the same or in other channels and images."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import undula
from cases import parametrize_some
from undula.filters import Blur, Contrast, Pipeline, Shrink

Array = NDArray[Any]

FILTERS: dict[str, Callable[..., Any]] = {
    "denoise": undula.denoise,
    "denoise, thresholds": lambda x, **options: undula.denoise(x, method="bayes", invariant=False, **options),
    "denoise, regions": lambda x, **options: undula.denoise(x, regions=16, **options),
    "enhance": undula.enhance,
    "sharpen": undula.sharpen,
    "sharpen, wavelet": lambda x, **options: undula.sharpen(x, method="wavelet", **options),
    "despeckle": undula.despeckle,
    "despeckle, log": lambda x, **options: undula.despeckle(x, kind="log", **options),
    "pipeline": Pipeline("bior4.4", 2, [Blur(1.0), Shrink("sure")]),
}


def _image(channels: int = 3, seed: int = 0) -> Array:
    """Return an image with edges and noise, without dark samples."""
    rng = np.random.default_rng(seed)
    rows, columns = np.mgrid[:48, :40]
    clean = 100 + 60 * ((rows // 6 + columns // 6) % 2)
    image = np.stack([clean + 10 * k for k in range(channels)], -1) + 4 * rng.standard_normal(
        (48, 40, channels)
    )
    return np.asarray(image)


@pytest.fixture(params=FILTERS)
def act(request: pytest.FixtureRequest) -> Callable[..., Any]:
    return FILTERS[request.param]


@parametrize_some(
    ("name", "channels"),
    [(name, channels) for name in FILTERS for channels in (3, 4)],
    [(name, channels) for k, name in enumerate(FILTERS) for channels in (3, 4)[: 1 + k % 2]],
)
def test_a_channel_of_nans(name: str, channels: int) -> None:
    x, act = _image(channels), FILTERS[name]
    tolerance = 1e-2 if "regions" in name else 1e-9  # The noise steps are common to all channels.
    x[..., 1] = np.nan
    result = act(x)
    assert np.isnan(result[..., 1]).all()
    for k in (0, 2):
        np.testing.assert_allclose(result[..., k], act(x[..., k]), rtol=tolerance)


@parametrize_some(
    ("name", "dtype"),
    [(name, dtype) for name in FILTERS for dtype in ("f4", "u1", "u2")],
    [(name, dtype) for k, name in enumerate(FILTERS) for dtype in ("f4", ("u1", "u2")[k % 2])],
)
def test_a_mask_that_excludes_a_channel(name: str, dtype: str) -> None:
    x, act = _image().astype(dtype), FILTERS[name]
    tolerance = 1e-2 if "regions" in name else 1e-4
    mask = np.ones(x.shape, bool)
    mask[..., 2] = False
    result = act(x, mask=mask)
    np.testing.assert_array_equal(result[..., 2], x[..., 2])
    for k in (0, 1):
        # Integers halfway between two may be rounded either way.
        np.testing.assert_allclose(
            result[..., k], act(x[..., k]), rtol=tolerance, atol=0 if dtype == "f4" else 1
        )


def test_a_hole_in_one_channel_leaves_the_others_alone(act: Callable[..., Any]) -> None:
    """Edges in the other channels are preserved; a smooth surface would be off by 30."""
    x = _image()
    without = act(x)
    alone = [act(x[..., k]) for k in range(3)]
    hole = (slice(10, 30), slice(10, 30))
    x[(*hole, 1)] = np.nan
    result = act(x)
    assert np.isnan(result[(*hole, 1)]).all()
    for k in (0, 2):
        assert np.abs(result[..., k] - alone[k])[hole].max() < 3
    assert np.abs(result - without)[40:].max() < 6


def test_one_missing_sample_does_not_change_how_colours_are_filtered() -> None:
    x = _image()
    complete = undula.denoise(x)
    x[3, 3, 0] = np.nan
    np.testing.assert_allclose(undula.denoise(x)[16:], complete[16:], atol=0.2)


@given(st.sampled_from([0.2, 0.5, 0.9]), st.integers(0, 99), st.sampled_from(["f4", "f8", "u1"]))
def test_valid_samples_keep_their_level(share: float, seed: int, dtype: str) -> None:
    rng = np.random.default_rng(seed)
    x = (100 + 3 * rng.standard_normal((24, 20, 3))).astype(dtype)
    mask = rng.random(x.shape) < share
    result = undula.denoise(x, mask=mask)
    np.testing.assert_array_equal(result[~mask], x[~mask])
    assert np.abs(result[mask].astype(float) - 100).max() < 20


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_channels_along_any_axis(axis: int) -> None:
    x = _image()
    x[..., 1] = np.nan
    result = undula.denoise(np.moveaxis(x, -1, axis), channel_axis=axis)
    np.testing.assert_allclose(np.moveaxis(result, axis, -1), undula.denoise(x), rtol=1e-9)


def test_batches_with_a_channel_of_nans_in_one_image() -> None:
    x = np.stack([_image(seed=k) for k in range(2)])
    x[1, ..., 1] = np.nan
    result = undula.denoise(x, channel_axis=-1, axes=(1, 2))
    assert np.isnan(result[1, ..., 1]).all()
    np.testing.assert_allclose(result[1, ..., 0], undula.denoise(x[1, ..., 0]), rtol=1e-9)


@pytest.mark.parametrize("method", ["bayes", "bivariate"])
def test_statistics_are_per_item(method: str) -> None:
    """The mask of one item does not change the others."""
    x = np.stack([_image(1, seed=k)[..., 0] for k in range(3)])
    mask = np.ones(x.shape, bool)
    mask[1, 4:] = False
    result = undula.denoise(x, axes=(1, 2), mask=mask, method=method, channel_axis=None)
    np.testing.assert_allclose(result[0], undula.denoise(x[0], method=method), rtol=1e-9)


def test_masked_values_do_not_influence_regional_noise() -> None:
    x = _image(1)[..., 0]
    mask = np.ones(x.shape, bool)
    mask[5:25, 5:25] = False
    result = []
    for value in (0.0, 1e6 * np.random.default_rng(0).standard_normal((20, 20))):
        x[5:25, 5:25] = value
        result.append(undula.denoise(x, regions=16, mask=mask)[mask])
    np.testing.assert_allclose(result[0], result[1], rtol=1e-9)


def test_views_of_images_with_nans_in_one_channel() -> None:
    x = _image()
    x[10:20, 10:20, 1] = np.nan
    pipeline = Pipeline("db2", 2, ["shrink"])
    np.testing.assert_array_equal(pipeline.views(x).synthesis, pipeline(x))


def test_values_for_missing_samples_may_be_masked() -> None:
    """Some programs write the largest float where there is no sample."""
    x = _image().astype("f4")
    x[5:9, 5:9] = -np.finfo("f4").max
    mask = x > 0
    result = undula.denoise(x, mask=mask)
    assert np.isfinite(result).all()
    np.testing.assert_array_equal(result[~mask], x[~mask])
    expected = undula.denoise(np.where(mask, x, np.float32(0)), mask=mask)
    np.testing.assert_array_equal(result[mask], expected[mask])


@pytest.mark.parametrize("value", [0.0, 7.0])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_contrast_of_constant_images(value: float, dtype: str) -> None:
    """No division by zero occurs: warnings are errors in tests."""
    x = np.full((32, 32), value, dtype)
    np.testing.assert_allclose(Pipeline("db2", 2, [Contrast(0.5, sigma=3.0)])(x), x, atol=1e-5)
    np.testing.assert_allclose(undula.enhance(x), x, atol=1e-5)


def test_contrast_is_per_item() -> None:
    x = np.stack([_image(1, seed=k)[..., 0] for k in range(3)])
    mask = np.ones(x.shape, bool)
    mask[1, 4:] = False
    result = undula.enhance(x, axes=(1, 2), mask=mask, channel_axis=None)
    np.testing.assert_allclose(result[0], undula.enhance(x[0]), rtol=1e-9)


def test_masks_of_one_image_apply_to_a_whole_batch() -> None:
    """This holds for any axis of images, even if all axes have the same length."""
    rng = np.random.default_rng(0)
    x = 100 + 4 * rng.standard_normal((32, 32, 32))
    x[:2, :, :] = 0  # black around a scan
    mask = np.ones((32, 32), bool)
    mask[20:, :5] = False
    expected = undula.despeckle(
        x, kind="log", axes=(0, 1), mask=np.repeat(mask[..., None], 32, -1), channel_axis=None
    )
    result = undula.despeckle(x, kind="log", axes=(0, 1), mask=mask, channel_axis=None)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(result[20:, :5], x[20:, :5])


def test_masks_combine_with_masked_arrays() -> None:
    x = _image()
    hidden = np.zeros(x.shape, bool)
    hidden[5:9, 5:9] = True
    mask = np.ones(x.shape[:2], bool)
    mask[20:30, 3:8] = False
    result = undula.denoise(np.ma.masked_array(x, hidden), mask=mask)
    np.testing.assert_array_equal(result, undula.denoise(x, mask=mask[..., None] & ~hidden))
