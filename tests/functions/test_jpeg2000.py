"""The reversible CDF 5/3 is that of JPEG 2000: what OpenJPEG decodes at lower resolutions is its low band."""

import io
from typing import Any

import numpy as np
import pytest
import skimage.data
from PIL import Image

import undula

LEVELS = 5
NAMES = "camera coins moon page text clock brick grass gravel cell".split()


def file(x: Any) -> bytes:
    """A lossless file."""
    made = io.BytesIO()
    Image.fromarray(x).save(
        made, "JPEG2000", irreversible=False, num_resolutions=LEVELS + 1, quality_mode="rates"
    )
    return made.getvalue()


def decoded(data: bytes, level: int) -> Any:
    """The image at a lower resolution; None where Pillow does not find its way in a file of odd sides."""
    image = Image.open(io.BytesIO(data))
    image.reduce = level  # type: ignore[method-assign, assignment]
    try:
        return np.asarray(image)
    except OSError:
        return None


@pytest.mark.parametrize("name", NAMES)
def test_low_bands_are_what_openjpeg_decodes(name: str) -> None:
    whole = getattr(skimage.data, name)()
    x = np.ascontiguousarray(whole if whole.ndim == 2 else whole[..., 1])
    even = np.ascontiguousarray(x[: x.shape[0] // 32 * 32, : x.shape[1] // 32 * 32])
    odd = np.ascontiguousarray(x[: (x.shape[0] - 1) // 2 * 2 - 1, : (x.shape[1] - 1) // 2 * 2 - 1])
    found = 0
    for image in (even, odd, odd[:, :-1].copy(), even.astype(np.uint16) * 257):
        bits = 8 * image.dtype.itemsize
        middle = 1 << (bits - 1)
        data = file(image)
        centred = image.astype(np.int32) - middle
        for level in range(LEVELS + 1):
            theirs = decoded(data, level)
            if theirs is None:
                assert image is not even
                continue
            found += 1
            low = undula.lwt2(centred, "cdf53", level, dtype="i4")[0]
            np.testing.assert_array_equal(np.clip(low + middle, 0, 2 * middle - 1), theirs)
    assert found >= 2 * (LEVELS + 1) + 2
