"""Colours: against scikit-image and exact sums; reversible ones bit for bit; the pipelines of 1999."""

from typing import Any

import numpy as np
import pytest
import skimage.color
import skimage.data
import skimage.transform
from hypothesis import given, settings
from hypothesis import strategies as st

import undula
from comparing import flat
from undula import color

PHOTOS = ("astronaut", "chelsea", "coffee", "rocket", "retina", "hubble_deep_field", "immunohistochemistry")


def photo(name: str, height: int, width: int) -> Any:
    image = getattr(skimage.data, name)()[..., :3]
    return (skimage.transform.resize(image, (height, width), anti_aliasing=True) * 255 + 0.5).astype(np.uint8)


def pixels(*shape: int, dtype: str = "u1", seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("dtype", ["u1", "u2"])
@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("name", color.SPACES)
def test_planes_are_sums_of_channels(name: str, channels: int, dtype: str) -> None:
    for shape in ((1, 1), (3, 5), (17, 40), (5, 33)):
        image = pixels(*shape, channels, dtype=dtype)
        own = color.space(name)
        planes = color.to_planes(image, name)
        exact = np.einsum("pc,hwc->phw", own.matrix(), image[..., :3].astype("f8"))
        if own.integer:
            assert planes.dtype == ("i2" if dtype == "u1" else "i4")
            exact = np.floor(exact + (0.5 if name == "apple" else 0))
            np.testing.assert_array_equal(planes[:3], exact)
        else:
            assert planes.dtype == np.float32
            np.testing.assert_allclose(planes[:3], exact, rtol=0, atol=2e-7 * np.iinfo(dtype).max)
        if channels == 4:
            np.testing.assert_array_equal(planes[3], image[..., 3])
        back = color.from_planes(planes, name, dtype=dtype)
        error = np.abs(back.astype("i8") - image)
        # (Of Apple's space, the way back has an error of 1/128 of a channel.)
        most = {"rct": 0, "apple": 1.5 + np.iinfo(dtype).max / 128}.get(name, 0 if dtype == "u1" else 1)
        assert error.max() <= most
        beside = np.moveaxis(image, -1, 0)
        np.testing.assert_array_equal(color.to_planes(beside, name, channel_axis=0), planes)
        again = color.from_planes(planes, name, dtype=dtype, channel_axis=0)
        np.testing.assert_array_equal(again, np.moveaxis(back, -1, 0))


def test_bt601_is_that_of_others() -> None:
    image = photo("astronaut", 60, 80)
    theirs = skimage.color.rgb2ypbpr(image)
    mine = np.moveaxis(color.to_planes(image, "bt601"), 0, -1) / 255
    np.testing.assert_allclose(mine, theirs, atol=2e-3)  # (they have three digits)


def test_apples_inverse() -> None:
    """0 and ±1, and nearly the inverse: green exactly, red and blue but for 1/128 of others."""
    own = color.space("apple")
    back = np.array(own.inverse)
    assert set(back.ravel().tolist()) == {0, 1, -1}
    expected = np.array([[128, -1, 1], [0, 128, 0], [1, -1, 128]]) / 128
    np.testing.assert_array_equal(back @ own.matrix(), expected)


def test_what_does_not_fit_is_cut_off() -> None:
    planes = np.array([[[300, -20]], [[0, 0]], [[0, 0]]], "i2")
    for name in ("rct", "apple"):
        assert color.from_planes(planes, name).tolist() == [[[255] * 3, [0] * 3]]
    assert color.from_planes(planes.astype("f4"), "ict").tolist() == [[[255] * 3, [0] * 3]]
    huge = np.array([2**64 - 1, 0, 0], "u8")[:, np.newaxis, np.newaxis]
    assert color.from_planes(huge).tolist() == [[[255] * 3]]
    assert color.from_planes(planes.astype(">i4")).tolist() == color.from_planes(planes).tolist()


def test_other_byte_orders() -> None:
    image = pixels(9, 10, 3, dtype="u2")
    mine, other = color.forward(image.astype(">u2")), color.forward(image)
    for a, b in zip(flat(mine), flat(other), strict=True):
        np.testing.assert_array_equal(a, b)


@given(
    st.integers(1, 70),
    st.integers(1, 70),
    st.sampled_from([3, 4]),
    st.sampled_from(["u1", "u2"]),
    st.sampled_from(["cdf53", "cdf97", "haar", "db2", "dd137"]),
    st.none() | st.integers(0, 6),
    st.integers(0, 2**32 - 1),
)
@pytest.mark.thorough
@settings(max_examples=2 * settings.default.max_examples)
def test_reversible_images_come_back_bit_for_bit(
    height: int, width: int, channels: int, dtype: str, name: str, level: int | None, seed: int
) -> None:
    image = pixels(height, width, channels, dtype=dtype, seed=seed)
    coeffs = color.forward(image, name, level)
    np.testing.assert_array_equal(color.inverse(coeffs, name, dtype=dtype), image)
    # One pass gives what conversion and transform apart do.
    apart = undula.lwt2(color.to_planes(image), name, level, dtype=coeffs[0].dtype)
    for mine, other in zip(flat(coeffs), flat(apart), strict=True):
        np.testing.assert_array_equal(mine, other)


@pytest.mark.parametrize("name", ["ict", "bt601", "bt709"])
@pytest.mark.parametrize("wavelet", ["cdf97", "db4", None])
def test_floats_in_one_pass(name: str, wavelet: str | None) -> None:
    for shape in ((33, 50, 3), (64, 64, 4)):
        image = pixels(*shape)
        coeffs = color.forward(image, wavelet, 3, color=name)
        apart = undula.lwt2(color.to_planes(image, name), wavelet or "cdf97", 3)
        for mine, other in zip(flat(coeffs), flat(apart), strict=True):
            np.testing.assert_array_equal(mine, other)
        np.testing.assert_array_equal(color.inverse(coeffs, wavelet, color=name), image)


@pytest.mark.parametrize("name", PHOTOS)
def test_photographs(name: str) -> None:
    image = getattr(skimage.data, name)()[..., :3]
    np.testing.assert_array_equal(color.inverse(color.forward(image, level=5)), image)
    deep = image.astype(np.uint16) * 257
    np.testing.assert_array_equal(color.inverse(color.forward(deep, level=5), dtype="u2"), deep)


@pytest.mark.parametrize("name", ["astronaut", "retina"])
def test_photographs_on_a_device(name: str) -> None:
    image = getattr(skimage.data, name)()[:500, :501, :3]
    for pixel, dtype in ((image, "u1"), (image.astype(np.uint16) * 257, "u2")):
        coeffs = color.forward(pixel, level=3, backend="opencl")
        np.testing.assert_array_equal(color.inverse(coeffs, dtype=dtype, backend="opencl"), pixel)


def test_quarters() -> None:
    x = pixels(7, 10).astype("i2")
    small = color.subsample(x)
    assert small.shape == (4, 5)
    assert small.dtype == x.dtype
    assert small[1, 2] == (int(x[2:4, 4:6].sum()) + 2) >> 2
    assert small[3, 0] == (2 * int(x[6, 0:2].sum()) + 2) >> 2
    wide = color.expand(small, x.shape)
    assert wide.shape == x.shape
    assert wide[3, 5] == small[1, 2]
    np.testing.assert_array_equal(color.subsample(wide), small)
    np.testing.assert_allclose(color.subsample(np.full((4, 4), 0.5)), 0.5)
    for large in (np.full((2, 2), 2**63 - 1), np.full((2, 2), 60000, "f2"), np.full((2, 2), 255, "u1")):
        assert color.subsample(large) == large[0, 0]


@pytest.mark.parametrize("size", [(480, 640), (240, 320)])
@pytest.mark.parametrize("name", PHOTOS)
def test_apples_pipelines(name: str, size: tuple[int, int]) -> None:
    image = photo(name, *size)
    back = color.d4_inverse(color.d4_forward(image))
    assert color.rmse(image, back) <= 1.1
    coeffs = color.burt_forward(image)
    assert coeffs.y[0].shape == (size[0] // 8, size[1] // 8)
    assert coeffs.u[0].shape == (size[0] // 16, size[1] // 16)
    assert {part.dtype for part in flat(coeffs.y)} == {np.dtype(np.int16)}
    assert color.rmsy(image, coeffs) <= 0.6
    again = color.burt_inverse(coeffs)
    assert again.shape == image.shape
    assert color.rmse(image, again) < 5  # (a quarter of the colours)
    opaque = np.concatenate([image, np.full((*size, 1), 255, np.uint8)], axis=-1)
    np.testing.assert_array_equal(color.d4_inverse(color.d4_forward(opaque))[..., 3], 255)


def test_bright_images_have_as_many_levels_as_fit() -> None:
    rng = np.random.default_rng(0)
    extremes = np.where(rng.random((64, 64, 3)) < 0.5, 0, 255).astype("u1")
    for image in (np.full((64, 64, 3), 255, "u1"), extremes):
        back = color.d4_inverse(color.d4_forward(image, 3))
        assert np.abs(back.astype(int) - image).max() <= 4
    with pytest.raises(undula.UndulaError, match="use fewer levels"):
        color.d4_forward(np.full((64, 64, 3), 255, "u1"), 4)
    assert color.d4_forward(np.full((64, 64, 3), 120, "u1"), 4)[0].max() == 120 * 256


BAD: dict[str, tuple[Any, str]] = {
    "two channels": (lambda: color.to_planes(pixels(4, 4, 2)), r"got 2 \(shape \(4, 4, 2\)\)"),
    "no channels": (lambda: color.to_planes(pixels(4, 4)), "three axes"),
    "floats": (lambda: color.forward(np.ones((4, 4, 3))), "float64"),
    "a space": (lambda: color.to_planes(pixels(4, 4, 3), "yuv"), "yuv.*rct"),
    "an axis": (lambda: color.to_planes(pixels(4, 4, 3), channel_axis=3), "got 3"),
    "nothing": (lambda: color.to_planes(pixels(0, 4, 3)), r"\(0, 4, 3\)"),
    "planes of floats": (lambda: color.from_planes(np.ones((3, 4, 4))), "are integers, got float64"),
    "planes of channels": (lambda: color.from_planes(np.ones((2, 4, 4), int)), r"\(2, 4, 4\)"),
    "complex planes": (lambda: color.from_planes(np.ones((3, 2, 2), complex), "ict"), "complex128"),
    "of either": (lambda: color.inverse(color.forward(pixels(8, 8, 3, dtype="u2"))), "dtype='uint16'"),
    "another space": (
        lambda: color.inverse(color.forward(pixels(8, 8, 3)), color="ict"),
        "not those of 'ict'",
    ),
    "no coefficients": (lambda: color.inverse([]), "list"),
    "no planes": (lambda: color.inverse([np.ones((2, 4, 4), "i2")]), r"\(2, 4, 4\)"),
    "an axis back": (lambda: color.inverse(color.forward(pixels(8, 8, 3)), channel_axis=7), "got 7"),
    "images of two sizes": (lambda: color.rmse(pixels(4, 4, 3), pixels(1, 4, 3)), r"\(1, 4, 3\)"),
    "no shape": (lambda: color.expand(np.ones((2, 2)), 5), "got 5"),  # type: ignore[arg-type]
    "bytes": (lambda: color.from_planes(np.ones((3, 4, 4), int), dtype="f4"), "float32"),
    "quarters": (lambda: color.expand(np.ones((2, 2)), (5, 4)), r"\(2, 2\)"),
    "sides": (lambda: color.burt_forward(pixels(40, 64, 3)), r"2\^4 must divide"),
    "opacity": (lambda: color.burt_forward(pixels(64, 64, 4)), "3 channels"),
    "sixteen bits": (lambda: color.d4_forward(pixels(8, 8, 3, dtype="u2")), "takes uint8"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str) -> None:
    act, said = BAD[case]
    with pytest.raises(undula.UndulaError, match=f"(?s){said}"):
        act()


def test_former_names_of_attributes_are_deprecated() -> None:
    space = color.space("ict")
    with pytest.warns(DeprecationWarning, match="integer"):
        assert space.whole is space.integer
    with pytest.warns(DeprecationWarning, match="inverse"):
        assert space.back is space.inverse
    with pytest.raises(AttributeError, match="'front'"):
        _ = space.front
