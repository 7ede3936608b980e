"""Calibration without ground truth, compared with the best strength; correlated noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import pywt

import undula
from undula.measures import psnr

CAMERA = pywt.data.camera()[100:300, 150:370].astype(np.float32)
AERO = pywt.data.aero()[100:300, 150:370].astype(np.float32)
NOISE = np.random.default_rng(0).standard_normal(CAMERA.shape).astype(np.float32)


@pytest.mark.parametrize("clean", [CAMERA, AERO], ids=["camera", "aero"])
@pytest.mark.parametrize("options", [{}, {"method": "universal"}, {"quality": "balanced"}], ids=str)
def test_the_strength_is_nearly_the_best(clean: Any, options: dict[str, Any]) -> None:
    noisy = clean + 20 * NOISE
    calibration = undula.calibrate(noisy, 20.0, **options)

    def quality(strength: float) -> float:
        return psnr(clean, undula.denoise(noisy, 20.0, strength=strength, **options), 255)

    oracle = max(quality(strength) for strength in calibration.errors)
    assert quality(calibration.strength) > oracle - 0.15
    predicted = 10 * np.log10(255**2 / calibration.error)
    assert abs(predicted - quality(calibration.strength)) < 0.5
    if options.get("method") == "universal":  # Its thresholds are far too high for photographs.
        assert quality(calibration.strength) > quality(1.0) + 2


def test_channels_and_masks_of_calibrated_images() -> None:
    colour = np.stack([CAMERA, CAMERA[::-1], AERO], axis=-1)
    noisy = colour + np.array([10, 20, 30]) * np.random.default_rng(1).standard_normal(colour.shape)
    both = [undula.calibrate(noisy, sigma, color="channels").strength for sigma in (None, [10.0, 20.0, 30.0])]
    assert abs(np.log2(both[0] / both[1])) < 0.5
    broken = CAMERA + 20 * NOISE
    expected = undula.calibrate(broken, 20.0).strength
    broken[50:60, 50:60] = np.nan
    assert abs(np.log2(undula.calibrate(broken, 20.0).strength / expected)) < 0.3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sigma": 0.0}, "needs noise"),
        ({"sigma": CAMERA}, "one sigma"),
        ({"sigma": 1.0, "noise": "poisson"}, "takes no noise"),
        ({"sigma": 1.0, "strength": 2.0}, "takes no strength"),
    ],
)
def test_mistakes_of_calibration(options: dict[str, Any], message: str) -> None:
    with pytest.raises(undula.UndulaError, match=message):
        undula.calibrate(CAMERA, **options)
