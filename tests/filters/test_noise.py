"""Whether there is noise: drawings have none, and backgrounds without noise do not count."""

from typing import Any

import numpy as np
import pytest

import undula


def drawing() -> np.ndarray[Any, Any]:
    """Boxes, a diagonal and isolated corners on white, without noise."""
    x = np.full((256, 384), 255, "u1")
    for k in range(8):
        x[200 - 20 * k : 220, 40 * k + 10 : 40 * k + 35] = 25 * k
    diagonal = np.arange(256)
    x[diagonal, diagonal + 100] = 0
    x[30:40, 300:380:16] = 60
    return x


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"quality": "balanced"},
        {"method": "directional"},
        {"noise": "gaussian"},
        {"noise": "correlated"},
        {"calibrate": True},
        {"mask": np.arange(384) > 50},
    ],
    ids=str,
)
@pytest.mark.parametrize("colored", [False, True])
def test_drawings_without_noise_stay_unchanged(options: dict[str, Any], colored: bool) -> None:
    x = drawing()
    if colored:
        x = np.stack([x, np.roll(x, 7, 0), x], axis=-1)
    if "mask" in options:
        options = {"mask": np.broadcast_to(options["mask"], x.shape[:2])}
    np.testing.assert_array_equal(undula.denoise(x, **options), x)


def test_noise_on_a_background_without_noise_is_estimated() -> None:
    """Most coefficients are zero, but those of the noise are close together."""
    x = np.zeros((256, 256))
    x[80:160, 60:150] = np.random.default_rng(0).normal(100, 5, (80, 90))
    assert abs(undula.estimate_sigma(x) - 5) < 0.3
    assert undula.denoise(x)[85:155, 65:145].std() < 2
    assert undula.estimate_sigma(drawing()) == 0


def test_noise_beyond_the_range_of_floats_removes_everything() -> None:
    x = np.random.default_rng(0).normal(100, 5, (32, 32)).astype("f4")
    np.testing.assert_array_equal(undula.denoise(x, 1e300), undula.denoise(x, 1e30))


def test_drawings_have_no_photon_noise() -> None:
    with pytest.raises(undula.ArgumentError, match="does not grow with its brightness; pass gain"):
        undula.denoise(drawing(), noise="poisson")
