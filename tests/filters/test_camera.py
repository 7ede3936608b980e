"""The noise of cameras: simulated, recognised and removed, while other noise is taken for white."""

from __future__ import annotations

import io as memory
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import scipy.ndimage
import skimage.data
from numpy.typing import NDArray

import undula
from commands import call
from undula import io
from undula.filters import Blur, Pipeline, Shrink
from undula.filters.verbs import Denoising
from undula.measures import psnr

Array = NDArray[Any]
PHOTO = skimage.data.coffee()[60:252, 180:420]
TEXTURE = skimage.data.immunohistochemistry()[100:292, 100:340]
BARS = np.array(list(np.ndindex(2, 2, 2)), np.uint8) * 255  # of saturated colours
GAMMA = 2.2


def developed(photo: Array, photons: float | None = 40) -> Array:
    """Return a photograph with the noise of a sensor with a Bayer pattern, bilinear colours and gamma."""
    light = (photo / 255) ** GAMMA
    masks = np.zeros(light.shape, bool)
    for row, column, color in ((0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 2)):
        masks[row::2, column::2, color] = True
    if photons is not None:
        light = np.random.default_rng(0).poisson(light * photons) / photons
    cross, square = np.array([[0, 1, 0], [1, 4, 1], [0, 1, 0]]), np.outer([1, 2, 1], [1, 2, 1])
    planes = [
        scipy.ndimage.convolve(np.where(masks[..., k], light[..., k], 0), taps / 4, mode="mirror")
        for k, taps in enumerate((square, cross, square))
    ]
    return np.round(255 * np.clip(np.stack(planes, -1), 0, 1) ** (1 / GAMMA)).astype(np.uint8)


def as_jpeg(image: Array) -> Array:
    file = memory.BytesIO()
    PIL.Image.fromarray(image).save(file, "JPEG", quality=90, subsampling="4:2:0")
    return np.asarray(PIL.Image.open(file))


@pytest.fixture(scope="module")
def clean() -> Array:
    return developed(PHOTO, None)


@pytest.fixture(scope="module")
def noisy() -> Array:
    return as_jpeg(developed(PHOTO))


def test_the_noise_of_a_camera_is_removed(clean: Array, noisy: Array) -> None:
    white = undula.denoise(noisy, noise="gaussian")
    better = undula.denoise(noisy)
    assert psnr(clean, better, 255) > psnr(clean, white, 255) + 2
    np.testing.assert_array_equal(better, undula.denoise(noisy, noise="correlated"))
    for options in ({"method": "bayes"}, {"invariant": 0}):
        gain = psnr(clean, undula.denoise(noisy, **options), 255)
        assert gain > psnr(clean, undula.denoise(noisy, noise="gaussian", **options), 255) + 1


def test_wide_integers_and_opacity_are_no_obstacle(noisy: Array) -> None:
    expected = undula.denoise(noisy)
    deep = undula.denoise(noisy.astype("uint16") * 257)
    assert np.abs(deep / 257 - expected).max() < 0.6
    opaque = np.dstack([noisy, np.full(noisy.shape[:2], 99, np.uint8)])
    np.testing.assert_array_equal(undula.denoise(opaque)[..., :3], expected)


@pytest.mark.parametrize("photo", [PHOTO, TEXTURE], ids=["photo", "texture"])
@pytest.mark.parametrize("sigma", [1, 2, 5, 25])
def test_white_noise_is_taken_for_white(photo: Array, sigma: float) -> None:
    image = photo + sigma * np.random.default_rng(1).standard_normal(photo.shape)
    for given in (image.astype("float32"), np.clip(np.round(image), 0, 255).astype("uint8")):
        np.testing.assert_array_equal(undula.denoise(given), undula.denoise(given, noise="gaussian"))


@pytest.mark.parametrize(
    "image",
    [
        np.repeat(skimage.data.camera()[:128, :128, None], 3, axis=-1),  # grey, stored as colours
        np.full((40, 52, 3), 7, np.uint8),
        as_jpeg(developed(PHOTO))[:11, :60],  # too small for two levels
        as_jpeg(PHOTO)[..., 1],  # JPEG, but no mosaic
        np.kron(PHOTO[..., 1], np.ones((2, 2), np.uint8)),  # enlarged
        skimage.data.grass()[:192, :240],
        np.repeat(np.repeat(BARS[None], 96, axis=0), 40, axis=1),  # without noise
    ],
    ids=["grey", "constant", "small", "jpeg", "enlarged", "texture", "bars"],
)
def test_other_images_are_filtered_as_if_noise_were_white(image: Array) -> None:
    for options in ({}, {"quality": "balanced"}):
        expected = undula.denoise(image, noise="gaussian", **options)
        np.testing.assert_array_equal(undula.denoise(image, **options), expected)


def test_clean_photographs_keep_their_details(clean: Array) -> None:
    assert psnr(clean, undula.denoise(clean), 255) > 42
    assert psnr(TEXTURE, undula.denoise(TEXTURE), 255) > 42


def test_noise_that_is_known_is_white(noisy: Array) -> None:
    image = noisy[:80, :96]
    for options in ({"sigma": 8.0}, {"regions": 48}):
        expected = undula.denoise(image, noise="gaussian", **options)
        np.testing.assert_array_equal(undula.denoise(image, **options), expected)


def test_groups_of_blocks_leave_the_noise_of_cameras_to_wavelets(noisy: Array) -> None:
    floats = noisy.astype("float32")
    np.testing.assert_allclose(undula.denoise(floats, quality="balanced"), undula.denoise(floats), atol=1e-3)


def grey(image: Array) -> Array:
    """Return a photograph as it is saved in grey."""
    return np.asarray(PIL.Image.fromarray(image).convert("L"))


@pytest.mark.parametrize("corner", [(0, 0), (0, 1), (1, 1)], ids=str)
def test_the_mosaic_of_a_camera_is_recognized_in_grey_images(
    clean: Array, noisy: Array, corner: tuple[int, int]
) -> None:
    row, column = corner  # The mosaic may begin with any of its colours.
    image, reference = grey(noisy)[row:, column:], grey(clean)[row:, column:]
    better = undula.denoise(image)
    assert psnr(reference, better, 255) > psnr(reference, undula.denoise(image, noise="gaussian"), 255) + 1.5
    deep = undula.denoise(image.astype("uint16") * 257)
    assert np.abs(deep / 257 - better).max() < 0.6
    assert psnr(reference, undula.denoise(image, wavelet="bior4.4", invariant=0), 255) > psnr(
        reference, undula.denoise(image, wavelet="bior4.4", invariant=0, noise="gaussian"), 255
    )


def test_groups_and_channels_recognize_the_mosaic(clean: Array, noisy: Array) -> None:
    floats = grey(noisy).astype("float32")
    np.testing.assert_allclose(undula.denoise(floats, quality="balanced"), undula.denoise(floats), atol=1e-3)
    channels = undula.denoise(noisy, color="channels")
    white = undula.denoise(noisy, color="channels", noise="gaussian")
    assert psnr(clean, channels, 255) > psnr(clean, white, 255) + 1


@pytest.mark.parametrize("photo", [PHOTO, TEXTURE], ids=["photo", "texture"])
@pytest.mark.parametrize("sigma", [1, 5, 25])
def test_white_noise_in_grey_images_is_taken_for_white(photo: Array, sigma: float) -> None:
    image = grey(photo) + sigma * np.random.default_rng(1).standard_normal(photo.shape[:2])
    given = np.clip(np.round(image), 0, 255).astype("uint8")
    for each in (given, given[:64, :64]):
        np.testing.assert_array_equal(undula.denoise(each), undula.denoise(each, noise="gaussian"))


@pytest.mark.parametrize("backend", ["reference", "opencl"])
def test_engines_agree(noisy: Array, backend: str) -> None:
    image = noisy[:120, :140].astype("float32")
    for given, options in ((image, {"luma": 0.5, "chroma": 2.0}), (image[..., 1], {})):
        expected = undula.denoise(given, backend="cpu", **options)
        result = undula.denoise(given, backend=backend, **options)
        np.testing.assert_allclose(result, expected, atol=2e-3)


def test_batches_and_chunks_give_the_same_pixels(noisy: Array) -> None:
    da = pytest.importorskip("dask.array")
    image = noisy[:120, :140].astype("float32")
    expected = undula.denoise(image, chroma=2.0)
    white = PHOTO[:120, :140] + np.random.default_rng(2).normal(0, 10, image.shape).astype("float32")
    batch = undula.denoise(np.stack([image, white]), axes=(1, 2), channel_axis=3, chroma=2.0)
    np.testing.assert_array_equal(batch[0], expected)
    np.testing.assert_array_equal(batch[1], undula.denoise(white, chroma=2.0))
    chunks = da.from_array(image, chunks=(64, 64, 3))
    np.testing.assert_array_equal(undula.denoise(chunks, chroma=2.0).compute(), expected)
    expected = undula.denoise(image[..., 1])
    assert (expected != undula.denoise(image[..., 1], noise="gaussian")).any()
    batch = undula.denoise(np.stack([image[..., 1], white[..., 1]]), axes=(1, 2))
    np.testing.assert_array_equal(batch[0], expected)
    np.testing.assert_array_equal(batch[1], undula.denoise(white[..., 1], noise="gaussian"))
    chunks = da.from_array(image[..., 1], chunks=(50, 67))
    np.testing.assert_array_equal(undula.denoise(chunks).compute(), expected)


def test_chunks_of_images_larger_than_the_compared_part(noisy: Array) -> None:
    """The mosaic is looked for in the middle of an image, wherever its chunks are."""
    da = pytest.importorskip("dask.array")
    image = np.tile(grey(noisy), (3, 3)).astype("float32")  # 576 × 720
    image[::7, :100] += 20  # Left of the middle there is something else.
    expected = undula.denoise(image)
    assert (expected != undula.denoise(image, noise="gaussian")).any()
    for chunks in (200, (576, 300), (555, 700)):
        given = da.from_array(image, chunks=chunks)
        np.testing.assert_allclose(undula.denoise(given).compute(), expected, atol=1e-3)
    pipeline = Pipeline("db2", None, [Blur(0.5, at="image"), Shrink("bivariate", noise="auto")])
    blurred = pipeline(da.from_array(image, chunks=200)).compute()
    np.testing.assert_allclose(blurred, pipeline(image), atol=1e-3)
    both = da.from_array(np.stack([image, image[::-1]]), chunks=(1, 300, 300))
    expected = undula.denoise(np.stack([image, image[::-1]]), axes=(1, 2))
    np.testing.assert_allclose(undula.denoise(both, axes=(1, 2)).compute(), expected, atol=1e-3)


def luma(image: Array) -> Array:
    return np.asarray(image @ [0.299, 0.587, 0.114])


@pytest.mark.parametrize("options", [{}, {"method": "bayes"}, {"method": "directional"}], ids=str)
def test_luma_and_chroma_have_strengths_of_their_own(noisy: Array, options: dict[str, Any]) -> None:
    image = noisy.astype(float)
    expected = undula.denoise(image, **options)
    only_luma = undula.denoise(image, chroma=0, **options)
    np.testing.assert_allclose(luma(only_luma), luma(expected), atol=0.05)
    np.testing.assert_allclose(only_luma - image, np.stack([luma(only_luma - image)] * 3, -1), atol=0.1)
    only_chroma = undula.denoise(image, luma=0, **options)
    np.testing.assert_allclose(luma(only_chroma), luma(image), atol=0.05)
    assert np.abs(only_chroma - image).mean() > 0.1
    both = undula.denoise(image, luma=1.5, chroma=1.5, **options)
    np.testing.assert_array_equal(both, undula.denoise(image, strength=1.5, **options))


def test_strengths_over_time_and_of_groups(noisy: Array) -> None:
    image = noisy[:64, :64].astype(float)
    for options in ({"method": "collaborative"}, {"over_time": 2}):
        given = np.stack([image] * 3) if "over_time" in options else image
        unchanged = undula.denoise(given, luma=0, sigma=20.0, **options)
        np.testing.assert_allclose(luma(unchanged), luma(given), atol=0.05)
        assert np.abs(unchanged - given).mean() > 1


def test_commands_and_pipelines_have_strengths(noisy: Array, tmp_path: Path) -> None:
    source, target = tmp_path / "in.png", tmp_path / "out.png"
    io.write(source, noisy)
    assert call(f"denoise {source} {target} --luma 0.5 --chroma 2") == 0
    expected = undula.denoise(noisy, luma=0.5, chroma=2.0)
    np.testing.assert_array_equal(io.read(target).pixels, expected)
    pipeline = Denoising(luma=0.5, chroma=2.0).pipeline()
    assert "chroma × 2" in str(pipeline)
    np.testing.assert_array_equal(Pipeline.from_json(pipeline.to_json())(noisy), expected)


def test_planes_of_a_video_have_strengths(tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    source, target = tmp_path / "in.mkv", tmp_path / "out.mkv"
    with av.open(str(source), "w") as container:
        stream = container.add_stream("ffv1", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        planes = np.random.default_rng(3).normal(120, 15, (72, 64)).astype("uint8")
        for packet in (av.VideoFrame.from_ndarray(planes, format="yuv420p"), None):
            container.mux(stream.encode(packet))
    for words in ("", "--over-time 2"):
        assert call(f"denoise {source} {target} --luma 0 --codec ffv1 --overwrite {words}") == 0
        with av.open(str(target)) as container:
            (frame,) = (frame.to_ndarray() for frame in container.decode(video=0))
        np.testing.assert_array_equal(frame[:48], planes[:48])
        assert np.std(frame[48:]) < 0.8 * np.std(planes[48:])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"luma": -1}, "luma must be finite and at least 0"),
        ({"chroma": "much"}, "chroma must be a number"),
        ({"chroma": 2.0, "color": "channels"}, "chroma=2.0 does not apply to color='channels'"),
        ({"luma": float("nan"), "over_time": 4}, "luma must be finite"),
    ],
)
def test_mistakes_are_explained(options: dict[str, Any], message: str) -> None:
    with pytest.raises(undula.UndulaError, match=message):
        undula.denoise(PHOTO, **options)
