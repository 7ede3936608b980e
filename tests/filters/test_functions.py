"""Filters as functions, compared with scikit-image, and with unusual arguments."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import skimage.data
import skimage.restoration
from skimage.metrics import peak_signal_noise_ratio

import undula
from undula.filters.speckle import digamma, trigamma


def noisy(image: np.ndarray[Any, Any], sigma: float, seed: int = 0) -> np.ndarray[Any, Any]:
    return image + sigma * np.random.default_rng(seed).standard_normal(image.shape).astype(image.dtype)


CAMERA = skimage.data.camera()[:256, 100:356] / np.float32(255)


def psnr(x: np.ndarray[Any, Any], expected: np.ndarray[Any, Any] = CAMERA) -> float:
    return float(peak_signal_noise_ratio(expected, x, data_range=1))


# --- compared with scikit-image -------------------------------------------------------------------


@pytest.mark.parametrize("method", ["BayesShrink", "VisuShrink"])
@pytest.mark.parametrize("mode", ["soft", "hard"])
@pytest.mark.parametrize("wavelet", ["db1", "sym4", "db6"])
def test_denoise_wavelet_matches_scikit_image(method: str, mode: str, wavelet: str) -> None:
    for dtype in ("f4", "f8"):
        x = noisy(CAMERA.astype(dtype), 0.1)[:, :199]
        for sigma in (None, 0.08):
            options = {"method": method, "mode": mode, "wavelet": wavelet, "sigma": sigma}
            ours = undula.denoise_wavelet(x, **options)
            expected = skimage.restoration.denoise_wavelet(x, **options)
            assert ours.dtype == expected.dtype
            np.testing.assert_allclose(ours, expected, atol=1e-5 if dtype == "f4" else 1e-12)


@pytest.mark.parametrize("dtype", ["u1", "u2", "i2", "f2"])
def test_dtypes_match_scikit_image(dtype: str) -> None:
    x = noisy(CAMERA, 0.1).clip(0, 1)
    x = (x if dtype == "f2" else x * np.iinfo(dtype).max).astype(dtype)
    for sigma in (None, 20.0):
        ours = undula.denoise_wavelet(x, sigma)
        expected = skimage.restoration.denoise_wavelet(x, sigma)
        assert ours.dtype == expected.dtype
        np.testing.assert_allclose(ours, expected, atol=1e-5 if dtype == "f2" else 1e-10)


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">f2", ">u2"])
def test_byte_order_does_not_matter(dtype: str) -> None:
    x = (100 * noisy(CAMERA, 0.1)).clip(0, None).astype(dtype)
    native = x.astype(np.dtype(dtype).newbyteorder("="))
    np.testing.assert_array_equal(undula.denoise_wavelet(x), undula.denoise_wavelet(native))
    assert undula.estimate_sigma(x) == undula.estimate_sigma(native)


@pytest.mark.parametrize("convert", [False, True])
@pytest.mark.parametrize("axis", [-1, 0])
def test_channels_match_scikit_image(convert: bool, axis: int) -> None:
    x = noisy(skimage.data.astronaut()[:90, :101] / 255.0, 0.1)
    for sigma in (None, 0.1, [0.1, 0.05, 0.2]):
        expected = skimage.restoration.denoise_wavelet(x, sigma, convert2ycbcr=convert, channel_axis=-1)
        ours = undula.denoise_wavelet(
            np.moveaxis(x, -1, axis), sigma, convert2ycbcr=convert, channel_axis=axis
        )
        np.testing.assert_allclose(np.moveaxis(ours, axis, -1), expected, atol=1e-6)


@pytest.mark.parametrize("shape", [(300,), (20, 24, 22)])
def test_lines_and_volumes_match_scikit_image(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape) + 5
    np.testing.assert_allclose(undula.denoise_wavelet(x), skimage.restoration.denoise_wavelet(x), atol=1e-12)


def test_estimated_noise_matches_scikit_image() -> None:
    x = noisy(CAMERA, 0.07)
    assert undula.estimate_sigma(x) == pytest.approx(skimage.restoration.estimate_sigma(x), rel=1e-4)
    color = noisy(skimage.data.astronaut() / 255.0, 0.1)
    expected = skimage.restoration.estimate_sigma(color, channel_axis=-1)
    np.testing.assert_allclose(undula.estimate_sigma(color, channel_axis=-1), expected)
    np.testing.assert_allclose(undula.estimate_sigma(color, True, channel_axis=-1), np.mean(expected))
    volume = np.random.default_rng(0).standard_normal((20, 30, 40))
    assert undula.estimate_sigma(volume) == pytest.approx(skimage.restoration.estimate_sigma(volume))
    with pytest.warns(UserWarning, match="channel_axis=-1"):
        undula.estimate_sigma(color[..., :3])
    holes = x.copy()
    holes[::17, ::13] = np.nan
    assert undula.estimate_sigma(holes) == pytest.approx(undula.estimate_sigma(x), rel=0.05)


# --- denoise --------------------------------------------------------------------------------------


def test_defaults_outperform_scikit_image() -> None:
    x = noisy(CAMERA, 0.1)
    ours = psnr(undula.denoise(x))
    assert ours > psnr(skimage.restoration.denoise_wavelet(x)) + 1
    nl = skimage.restoration.denoise_nl_means(x, h=0.08, sigma=0.1, fast_mode=True, patch_size=5)
    assert ours > psnr(nl)
    assert ours > psnr(undula.denoise(x, invariant=False)) > psnr(x) + 6


@pytest.mark.parametrize("method", ["bivariate", "block", "bayes", "sure", "hybrid", "minimax", "universal"])
@pytest.mark.parametrize("invariant", [False, 2, True])
def test_every_method_removes_noise(method: str, invariant: bool) -> None:
    x = noisy(CAMERA, 0.1)
    assert psnr(undula.denoise(x, method=method, invariant=invariant)) > psnr(x) + 3
    assert psnr(undula.denoise(x, 0.1, method=method, invariant=invariant)) > psnr(x) + 3


@pytest.mark.parametrize(
    "wavelet", ["haar", "db8", "sym8", "coif3", "bior2.2", "bior6.8", "rbio4.4", "cdf97", "dd137"]
)
def test_every_wavelet_removes_noise(wavelet: str) -> None:
    assert psnr(undula.denoise(noisy(CAMERA, 0.1), wavelet=wavelet)) > 26.5


@pytest.mark.parametrize("dtype", ["u1", "i1", "u2", "i2", "u4", "i4", "i8", "f2", "f4", "f8", ">u2", ">f4"])
def test_every_dtype_is_preserved(dtype: str) -> None:
    kind = np.dtype(dtype)
    high = 1.0 if kind.kind == "f" else min(float(np.iinfo(kind).max), 1e6)
    x = (noisy(CAMERA, 0.1).clip(0, 1) * high).astype(kind)
    result = undula.denoise(x)
    assert result.dtype == kind.newbyteorder("=")
    assert psnr(result.astype("f8") / high) > 27


@pytest.mark.parametrize(
    "shape", [(1,), (7,), (300,), (1, 1), (2, 3), (5, 64), (63, 65), (9, 10, 11), (40, 33, 3), (30, 31, 4)]
)
def test_every_shape_is_preserved(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype("f4")
    for invariant in (False, 1, True):
        result = undula.denoise(x, invariant=invariant)
        assert result.shape == shape
        assert np.isfinite(result).all()


def test_colours_and_alpha() -> None:
    image = skimage.data.astronaut()[:128, :120]
    rough = np.clip(image + 20 * np.random.default_rng(0).standard_normal(image.shape), 0, 255).astype("u1")
    result = undula.denoise(rough)
    assert result.dtype == np.uint8
    assert psnr(result / 255, image / 255) > psnr(rough / 255, image / 255) + 5
    planar = undula.denoise(np.moveaxis(rough, -1, 0), channel_axis=0)
    np.testing.assert_array_equal(np.moveaxis(planar, 0, -1), result)
    opaque = np.concatenate([rough, np.full((128, 120, 1), 77, "u1")], axis=-1)
    with_opacity = undula.denoise(opaque)
    np.testing.assert_array_equal(with_opacity[..., 3], 77)
    np.testing.assert_allclose(with_opacity[..., :3].astype(int), result.astype(int), atol=1)
    floats = undula.denoise(rough.astype("f8"))
    np.testing.assert_allclose(np.clip(np.round(floats), 0, 255), result, atol=1)
    apart = undula.denoise(rough, color="channels")
    np.testing.assert_array_equal(apart[..., 1], undula.denoise(np.ascontiguousarray(rough[..., 1])))
    known = undula.denoise(rough, [20, 20, 20])
    np.testing.assert_array_equal(known, undula.denoise(rough, 20))


def test_a_batch_is_filtered_as_its_images() -> None:
    x = np.stack([noisy(CAMERA, sigma, k) for k, sigma in enumerate((0.05, 0.2, 0.1))])
    result = undula.denoise(x, axes=(1, 2))
    for image, denoised in zip(x, result, strict=True):
        np.testing.assert_allclose(undula.denoise(image), denoised, atol=1e-6)
    turned = undula.denoise(np.moveaxis(x, 0, -1), axes=(0, 1), channel_axis=None)
    np.testing.assert_allclose(np.moveaxis(turned, -1, 0), result, atol=1e-6)


def test_invariant_results_do_not_depend_on_the_first_sample() -> None:
    x = noisy(CAMERA, 0.1)
    pipeline = undula.Pipeline("haar", 3, [undula.filters.Shrink("given", threshold=0.2)], invariant=True)
    full, part = pipeline(x), pipeline(np.ascontiguousarray(x[3:, 5:]))
    np.testing.assert_allclose(part[32:-32, 32:-32], full[35:-32, 37:-32], atol=1e-5)
    plain = undula.Pipeline("haar", 3, [undula.filters.Shrink("given", threshold=0.2)])
    assert np.abs(plain(x[3:, 5:])[32:-32, 32:-32] - plain(x)[35:-32, 37:-32]).max() > 0.05


def test_all_shifts_match_cycle_spinning() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((32, 32))
    stage = undula.filters.Shrink("given", threshold=1.0)
    spun = undula.filters.cycle_spin(x, undula.Pipeline("haar", 2, [stage]), 3)
    result = undula.Pipeline("haar", 2, [stage], invariant=True)(x)
    np.testing.assert_allclose(result[8:-8, 8:-8], spun[8:-8, 8:-8], atol=1e-12)


def test_shifts_along_five_axes() -> None:
    x = np.random.default_rng(0).normal(10, 1, (3, 4, 2, 3, 2))
    pipeline = undula.Pipeline("haar", 1, [undula.filters.Shrink("given", threshold=1.0)], invariant=True)
    result = pipeline(x, backend="cpu")
    assert np.abs(result - x).max() > 0.1
    np.testing.assert_allclose(result, pipeline(x, backend="reference"), rtol=1e-12)


def test_invalid_samples_stay_unchanged_and_do_not_count() -> None:
    x = noisy(CAMERA, 0.1)
    holes = x.copy()
    holes[40:60, 50:90] = np.nan
    holes[100, ::3] = np.inf
    hole = ~np.isfinite(holes)
    for invariant in (False, True):
        result = undula.denoise(holes, invariant=invariant)
        assert (np.isfinite(result) == ~hole).all()
        np.testing.assert_array_equal(result[hole], holes[hole])
        assert psnr(np.where(hole, CAMERA, result)) > psnr(x) + 6
    marked = x.copy()
    marked[hole] = 1e6
    result = undula.denoise(marked, mask=~hole)
    np.testing.assert_array_equal(result[hole], 1e6)
    np.testing.assert_allclose(result[~hole], undula.denoise(holes)[~hole], atol=1e-5)
    color = np.stack([holes] * 3, axis=-1)
    assert (np.isfinite(undula.denoise(color)) == np.isfinite(color)).all()


def test_noise_that_varies_over_an_image() -> None:
    rise = np.linspace(0.02, 0.3, 256, dtype="f4")[None, :] * np.ones((256, 1), "f4")
    x = CAMERA + rise * np.random.default_rng(0).standard_normal(CAMERA.shape).astype("f4")
    plain, known, regional = undula.denoise(x), undula.denoise(x, rise), undula.denoise(x, regions=64)
    assert psnr(known) > psnr(plain) + 1
    assert psnr(regional) > psnr(plain) + 0.7
    assert undula.denoise((x.clip(0, 1) * 255).astype("u1"), regions=64).dtype == np.uint8


def test_images_without_noise_stay_unchanged() -> None:
    flat = np.full((40, 50), 7.25)
    np.testing.assert_allclose(undula.denoise(flat), flat, atol=1e-12)
    np.testing.assert_allclose(undula.denoise_wavelet(flat), flat, atol=1e-12)
    np.testing.assert_allclose(undula.enhance(flat), flat, atol=1e-12)
    assert undula.estimate_sigma(flat) == 0
    x = noisy(CAMERA, 0.1)
    np.testing.assert_allclose(undula.denoise(x, 0), x, atol=1e-5)
    np.testing.assert_array_equal(undula.denoise(np.zeros((9, 9), "u1")), np.zeros((9, 9)))


def test_the_largest_floats_stay_finite() -> None:
    for dtype in ("f4", "f8"):
        largest = np.finfo(dtype).max
        x = np.where(CAMERA > 0.5, largest, -largest).astype(dtype)
        assert np.isfinite(undula.denoise(x)).all()
        assert abs(undula.sharpen(x)).max() == largest


WRONG = ["1", True, np.nan, np.inf, -1, 1j, np.ones((2, 2)), [1, "a"]]
NUMERIC: dict[Any, list[str]] = {
    undula.denoise: [
        *"sigma strength luma chroma level invariant gain regions over_time channel_axis axes".split()
    ],
    undula.sharpen: ["amount", "channel_axis", "axes"],
    undula.enhance: ["amount", "channel_axis", "axes"],
    undula.despeckle: ["strength", "looks", "level", "channel_axis", "axes"],
    undula.denoise_wavelet: ["sigma", "wavelet_levels", "channel_axis"],
    undula.calibrate: ["sigma", "seed", "channel_axis"],
    undula.estimate_sigma: ["channel_axis"],
    undula.estimate_spectrum: ["channel_axis"],
    undula.estimate_poisson: ["sigma"],
}
FITTING = {"channel_axis": [-1], "axes": [-1], "invariant": [True]}


@pytest.mark.parametrize(
    ("verb", "name"), [(verb, name) for verb, names in NUMERIC.items() for name in names]
)
def test_only_numbers_are_numbers(verb: Any, name: str) -> None:
    x = noisy(CAMERA, 0.1)[:32, :32]
    more = {"noise": "poisson"} if name == "gain" else {}
    for value in WRONG:
        if not any(value is fitting for fitting in FITTING.get(name, [])):
            with pytest.raises(undula.UndulaError):
                verb(x, **{name: value}, **more)


BAD: list[tuple[Callable[[], Any], str]] = [
    (lambda: undula.sharpen(CAMERA, np.inf), "amount must be finite and at least 0, got inf"),
    (lambda: undula.enhance(CAMERA, np.nan), "amount must be finite and at least 0, got nan"),
    (lambda: undula.denoise(CAMERA, -1), "sigma must be finite and not negative, got -1"),
    (lambda: undula.denoise(CAMERA, [1, 2]), r"one for each of 1 channel"),
    (
        lambda: undula.denoise("photo.png"),
        r"got 'photo.png'; undula.io.read\(path\).pixels reads image files",
    ),
    (lambda: undula.denoise(CAMERA, np.ones((3, 3))), "the shape of the image"),
    (lambda: undula.denoise(CAMERA, method="bays"), "bayes"),
    (lambda: undula.denoise(CAMERA, rule="sof"), "soft"),
    (lambda: undula.denoise(CAMERA, wavelet="db99"), "db"),
    (lambda: undula.denoise(CAMERA, level=20), "20 levels are too many"),
    (lambda: undula.denoise(CAMERA, level=-1), "level"),
    (lambda: undula.denoise(CAMERA, color="lab"), "ycbcr"),
    (lambda: undula.denoise(CAMERA, channel_axis=5), "channel_axis"),
    (lambda: undula.denoise(CAMERA, axes=(0, 5)), "axes|axis"),
    (lambda: undula.denoise(CAMERA, mask=np.ones((3, 3), bool)), "shape of the image"),
    (lambda: undula.denoise(CAMERA, mask=np.ones((256, 256))), "True where samples are valid"),
    (lambda: undula.denoise(np.full((5, 5), np.nan)), "no sample is valid"),
    (lambda: undula.denoise(np.empty((0, 4))), "samples"),
    (lambda: undula.denoise(CAMERA.astype(complex)), "real numbers"),
    (lambda: undula.denoise(CAMERA > 0.5), "bool"),
    (lambda: undula.denoise(CAMERA, strength=-1), "strength"),
    (lambda: undula.denoise(CAMERA, regions=2), "regions"),
    (lambda: undula.denoise(CAMERA, method="given"), "Pipeline"),
    (lambda: undula.despeckle(-CAMERA - 1), "not be negative"),
    (lambda: undula.despeckle(CAMERA, kind="intensive"), "intensity"),
    (lambda: undula.despeckle(CAMERA, looks=0), "looks"),
    (lambda: undula.sharpen(CAMERA, method="unsharpen"), "unsharp"),
    (lambda: undula.sharpen(CAMERA, -1), "amount"),
    (lambda: undula.enhance(CAMERA, 2), "from 0 to 1"),
    (lambda: undula.denoise_wavelet(CAMERA, method="Bayes"), "BayesShrink"),
    (lambda: undula.denoise_wavelet(CAMERA, mode="softly"), "soft"),
    (lambda: undula.denoise_wavelet(CAMERA, -1), "negative"),
    (lambda: undula.denoise_wavelet(CAMERA, convert2ycbcr=True), "channel_axis"),
]


@pytest.mark.parametrize(("call", "message"), BAD, ids=[message for _, message in BAD])
def test_errors_name_invalid_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(undula.UndulaError, match=message):
        call()


# --- speckle, edges, contrast ---------------------------------------------------------------------


def test_digamma_and_trigamma_match_scipy() -> None:
    scipy = pytest.importorskip("scipy.special")
    for x in (0.1, 0.5, 1, 3.7, 20, 1000):
        assert digamma(x) == pytest.approx(scipy.digamma(x), rel=1e-9)
        assert trigamma(x) == pytest.approx(scipy.polygamma(1, x), rel=1e-9)


@pytest.mark.parametrize("kind", ["intensity", "amplitude"])
@pytest.mark.parametrize("looks", [None, 4])
def test_speckle_is_removed_without_bias(kind: str, looks: int | None) -> None:
    rng = np.random.default_rng(0)
    clean = 20 + 200 * CAMERA.astype("f8")
    grains = rng.gamma(4, 1 / 4, clean.shape)
    speckled = clean * (grains if kind == "intensity" else np.sqrt(grains))
    result = undula.despeckle(speckled, kind=kind, looks=looks)
    assert np.log(result / clean).std() < 0.55 * np.log(speckled / clean).std()
    assert result.mean() == pytest.approx(speckled.mean(), rel=0.05)
    plain = undula.denoise(speckled)
    assert np.log(result / clean).std() < np.log(np.maximum(plain, 1) / clean).std()


def test_zeros_stay_zeros() -> None:
    x = np.random.default_rng(0).gamma(4, 25, (64, 64))
    x[10:20, :] = 0
    result = undula.despeckle(x)
    assert (result[10:20] == 0).all()
    assert (result[30:] > 50).all()
    integers = undula.despeckle(x.astype("u1"))
    assert integers.dtype == np.uint8
    assert (integers[10:20] == 0).all()


def test_speckle_larger_than_pixels() -> None:
    import scipy.ndimage

    rng = np.random.default_rng(0)
    grains = scipy.ndimage.gaussian_filter(rng.standard_normal((256, 256)), 1.5) * 60
    x = 100 + 60 * (CAMERA > 0.5) + grains
    white, bands = (undula.despeckle(x, kind="log", noise=noise) for noise in ("white", "bands"))
    assert (bands - x).std() > 2 * (white - x).std()
    assert np.std(bands - (x - grains)) < np.std(grains)


def test_sharpening_matches_scipy() -> None:
    import scipy.ndimage

    x = CAMERA.astype("f8")
    blur = scipy.ndimage.gaussian_filter(x, 1.5, mode="reflect")
    np.testing.assert_allclose(undula.sharpen(x, 0.7, sigma=1.5), x + 0.7 * (x - blur), atol=1e-12)
    expected = x - 0.1 * scipy.ndimage.laplace(x, mode="reflect")
    np.testing.assert_allclose(undula.sharpen(x, method="laplace"), expected, atol=1e-12)
    eight = scipy.ndimage.convolve(x, np.ones((3, 3)), mode="reflect") - 9 * x
    np.testing.assert_allclose(undula.sharpen(x, method="diagonal"), x - 0.1 * eight, atol=1e-12)
    for method in ("unsharp", "laplace", "diagonal", "wavelet"):
        result = undula.sharpen((x * 255).astype("u1"), method=method)
        assert result.dtype == np.uint8
        assert (
            np.abs(np.diff(result.astype(int), axis=1)).mean()
            > np.abs(np.diff((x * 255).astype("u1").astype(int), axis=1)).mean()
        )
    np.testing.assert_allclose(undula.sharpen(x, 0), x, atol=1e-12)


def test_weak_details_are_enhanced() -> None:
    rows = np.arange(256)
    weak = 100 + 2 * np.sin(rows / 2)[:, None] * np.ones((1, 256))
    weak[:, 128:] += 60 * np.sign(np.sin(rows / 10))[:, None]
    result = undula.enhance(weak, denoise=False)
    assert result[:, 20:100].std() > 1.3 * weak[:, 20:100].std()
    rough = weak + 0.5 * np.random.default_rng(0).standard_normal(weak.shape)
    assert np.std(undula.enhance(rough)[:, 20:100].mean(axis=1)) > np.std(weak[:, 20:100].mean(axis=1))
    np.testing.assert_allclose(undula.enhance(weak, 0, denoise=False), weak, atol=1e-9)


def test_no_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for image in (CAMERA, np.zeros((20, 20), "u1"), np.ones((3, 3))):
            for work in (
                undula.denoise,
                undula.despeckle,
                undula.sharpen,
                undula.enhance,
                undula.denoise_wavelet,
            ):
                work(image)


# --- unusual images -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("scale", [1e-30, 1e-9, 1e9, 1e30])
@pytest.mark.parametrize("method", ["bivariate", "block", "bayes", "sure"])
def test_units_do_not_matter(method: str, scale: float, dtype: str) -> None:
    x = noisy(CAMERA, 0.1).astype(dtype)
    expected = undula.denoise(x.astype("f8"), method=method)
    unit = np.dtype(dtype).type(scale)
    result = undula.denoise((x * unit).astype(dtype), method=method) / unit
    np.testing.assert_allclose(result, expected, atol=2e-3)
    result = undula.enhance((x * unit).astype(dtype)) / unit
    np.testing.assert_allclose(result, undula.enhance(x.astype("f8")), atol=2e-3)


@pytest.mark.parametrize("method", ["bayes", "sure", "hybrid"])
def test_rounding_does_not_count_as_noise_of_a_band(method: str) -> None:
    # One coefficient of level 2 is zero in exact arithmetic, and 3e-5 with other rounding.
    x = np.random.default_rng(32).integers(80, 200, (5, 40)).astype("f4")
    pipeline = undula.Pipeline("haar", 2, [undula.filters.Shrink(method, noise="bands")])
    expected = pipeline(x.astype("f8"), backend="reference")
    for backend in ("cpu", "reference"):
        np.testing.assert_allclose(pipeline(x, backend=backend), expected, atol=1e-3)


def test_axes_of_one_sample_are_ignored() -> None:
    x = noisy(CAMERA, 0.1)
    expected = undula.denoise(x)
    for shape in ((256, 256, 1), (1, 256, 256)):
        np.testing.assert_array_equal(undula.denoise(x.reshape(shape)), expected.reshape(shape))
        assert undula.estimate_sigma(x.reshape(shape), channel_axis=None) == undula.estimate_sigma(x)


def test_cycle_spinning_of_integers() -> None:
    flat = np.full((8, 8), 200, "u1")
    np.testing.assert_array_equal(undula.filters.cycle_spin(flat, lambda part: part, 1), 200)
    with pytest.raises(undula.ArgumentError, match="keep the shape"):
        undula.filters.cycle_spin(flat, lambda part: part[:3], 1)


def test_a_map_of_noise_of_a_signal() -> None:
    x = noisy(CAMERA, 0.1)[100]
    np.testing.assert_allclose(undula.denoise(x, np.full(x.shape, 0.1)), undula.denoise(x, 0.1), rtol=1e-6)
    np.testing.assert_array_equal(undula.denoise(x, [0.1]), undula.denoise(x, 0.1))


@pytest.mark.parametrize("by_region", [True, False], ids=["regions", "map"])
@pytest.mark.parametrize("channel_axis", [None, -1])
def test_a_map_of_noise_depends_on_one_image_only(by_region: bool, channel_axis: int | None) -> None:
    rng = np.random.default_rng(0)
    shape = (48, 64) if channel_axis is None else (48, 64, 3)
    ramp = np.linspace(1, 4, 48).reshape(-1, *[1] * (len(shape) - 1))
    sigmas = np.stack([ramp * np.ones(shape) * scale for scale in (1, 0.003, 50)])
    images = 100 + sigmas * rng.standard_normal(sigmas.shape)
    images[1, 5:9, 7:12] = np.nan
    options: dict[str, Any] = {"channel_axis": channel_axis}

    def denoised(image: Any, sigma: Any, axes: tuple[int, int]) -> Any:
        noise = {"regions": 16} if by_region else {"sigma": sigma}
        return undula.denoise(image, axes=axes, **noise, **options)

    batch = denoised(images, sigmas, (1, 2))
    for number in range(3):
        np.testing.assert_array_equal(batch[number], denoised(images[number], sigmas[number], (0, 1)))
    pairs = denoised(images[:2, None].repeat(2, axis=1), sigmas[:2, None].repeat(2, axis=1), (2, 3))
    np.testing.assert_array_equal(pairs, batch[:2, None].repeat(2, axis=1))


def test_a_batch_with_an_image_that_is_not_valid() -> None:
    images = np.stack([noisy(CAMERA[:64, :64], 0.1), np.full((64, 64), np.nan, np.float32)])
    result = undula.denoise(images, regions=16, axes=(1, 2))
    np.testing.assert_array_equal(result[0], undula.denoise(images[0], regions=16))
    assert np.isnan(result[1]).all()


def test_a_map_of_noise_leaves_no_seam() -> None:
    steps = np.where(np.arange(256) < 128, 5.0, 40.0)[None] * np.ones((256, 1))
    flat = np.full((256, 256), 100.0)
    np.testing.assert_allclose(undula.denoise(flat, steps), flat, atol=1e-9)


def test_amplitudes_keep_their_mean() -> None:
    waves = 100 * np.sqrt(np.random.default_rng(0).gamma(1, 1, (256, 256)))
    for looks in (None, 1):
        result = undula.despeckle(waves, kind="amplitude", looks=looks)
        assert result.mean() == pytest.approx(waves.mean(), rel=0.02)


def test_zeros_do_not_make_their_neighbours_darker() -> None:
    x = 100 * np.random.default_rng(0).gamma(4, 1 / 4, (256, 256))
    x[:100] = 0
    result = undula.despeckle(x)
    assert result[100:104].mean() == pytest.approx(100, rel=0.04)
    assert result[150:].mean() == pytest.approx(100, rel=0.02)


def test_dark_background_does_not_count_as_speckle() -> None:
    import scipy.ndimage

    rng = np.random.default_rng(0)
    tissue = 90 + 300 * scipy.ndimage.gaussian_filter(rng.standard_normal((64, 64)), 0.8)
    wide = rng.integers(0, 3, (256, 256)).astype(float)
    wide[96:160, 96:160] = tissue
    alone = undula.despeckle(tissue, kind="log")
    result = undula.despeckle(wide, kind="log")[96:160, 96:160]
    assert result[8:-8, 8:-8].std() < 0.75 * tissue[8:-8, 8:-8].std()
    assert result[8:-8, 8:-8].std() == pytest.approx(alone[8:-8, 8:-8].std(), rel=0.25)


@pytest.mark.parametrize(
    "options",
    [{}, {"regions": 32}, {"sigma": np.full(CAMERA.shape, 0.1)}, {"calibrate": True}],
    ids=["all", "regions", "map", "calibrate"],
)
def test_masked_arrays_match_masks(options: dict[str, Any]) -> None:
    x = noisy(CAMERA, 0.1)
    hidden = np.zeros(x.shape, bool)
    hidden[50:60] = True
    x[hidden] *= 50
    result = undula.denoise(np.ma.masked_array(x, hidden), **options)
    np.testing.assert_array_equal(result, undula.denoise(x, mask=~hidden, **options))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i2"])
def test_masked_samples_do_not_count_as_noise(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = (100 * rng.standard_normal((128, 128, 2)) * [1, 3]).astype(dtype)
    expected = undula.estimate_sigma(x, channel_axis=-1)
    hidden = np.zeros(x.shape, bool)
    hidden[:70] = True
    x[hidden] = 0
    result = undula.estimate_sigma(np.ma.masked_array(x, hidden), channel_axis=-1)
    np.testing.assert_allclose(result, expected, rtol=0.05)
    with pytest.raises(undula.ArgumentError, match="masked"):
        undula.estimate_sigma(np.ma.masked_array(x[..., 0], True))


def test_masked_arrays_without_masked_samples_match_scikit_image() -> None:
    x = noisy(CAMERA, 0.1)
    expected = skimage.restoration.denoise_wavelet(x)
    np.testing.assert_allclose(undula.denoise_wavelet(np.ma.masked_array(x, False)), expected, atol=1e-5)


def test_masks_of_dask_are_for_images_of_dask() -> None:
    dask_array = pytest.importorskip("dask.array")
    with pytest.raises(undula.ArgumentTypeError, match="mask is a Dask array"):
        undula.denoise(CAMERA, mask=dask_array.ones(CAMERA.shape, dtype=bool))


def test_half_precision_is_clipped_to_its_range() -> None:
    x = np.zeros((16, 16), np.float16)
    x[:, 8:] = 65000
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = undula.sharpen(x)
    expected = undula.sharpen(x.astype(np.float32)).clip(-65504, 65504).astype(np.float16)
    assert expected.max() == 65504
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("work", [undula.denoise, undula.despeckle])
def test_known_methods_are_those_that_are_accepted(work: Callable[..., Any]) -> None:
    with pytest.raises(undula.UnknownNameError, match=r"known: bayes.*block"):
        work(CAMERA, method="foo")
    with pytest.raises(undula.ArgumentError, match="Pipeline"):
        work(CAMERA, method="given")


def test_built_in_wavelets_are_written_by_name() -> None:
    pipeline = undula.Pipeline(undula.Wavelet("db3"), 2, ["Shrink"])
    assert undula.Pipeline.from_json(pipeline.to_json()) == pipeline


MORE_BAD: list[tuple[Callable[[], Any], str]] = [
    (lambda: undula.despeckle(CAMERA + 1, looks=np.inf), "looks"),
    (lambda: undula.estimate_sigma(np.full((9, 9), np.nan)), "NaN"),
    (lambda: undula.denoise_wavelet(np.full((9, 9), np.nan)), "NaN"),
    (lambda: undula.estimate_sigma(np.ones((9, 9), complex)), "real numbers"),
    (lambda: undula.denoise_wavelet(np.ma.masked_equal(np.eye(9), 1)), "masked samples"),
    (lambda: undula.estimate_spectrum(np.ma.masked_equal(np.eye(9), 1)), "masked samples"),
    (lambda: undula.threshold(np.ma.masked_equal(np.eye(9), 1), 0.5), "masked samples"),
    (lambda: undula.dwt2(np.ma.masked_equal(np.eye(9), 1), "haar"), "masked samples.*filled"),
    (lambda: undula.denoise(np.ones((9, 9), np.longdouble)), "at most 64 bits, got"),
    (lambda: undula.denoise_wavelet(np.ones((9, 9), np.longdouble)), "at most 64 bits, got"),
    (lambda: undula.denoise_wavelet(CAMERA, wavelet_levels=0), "wavelet_levels"),
    (lambda: undula.Pipeline("db2", 0, []).views(CAMERA), "nothing to see"),
    (lambda: undula.denoise(CAMERA, sigma="much"), "must be a number"),
    (lambda: undula.enhance(CAMERA, denoise="no"), "True or False"),
    (lambda: undula.Pipeline("db2", 2, looks=3), "speckle"),
    (lambda: undula.Pipeline("db2", 2, [undula.filters.Shrink(levels=[9])])(CAMERA), "there are 2"),
    (
        lambda: undula.Pipeline("db2", 2, [undula.filters.Shrink("given", threshold=[1, 2, 3])])(CAMERA),
        "there are 2",
    ),
    (lambda: undula.filters.Shrink("given", threshold=[[1, 2, 3]]), "by key"),
    (lambda: undula.filters.Shrink(bands=["aa"]), "keys"),
]


@pytest.mark.parametrize(("call", "message"), MORE_BAD, ids=[message for _, message in MORE_BAD])
def test_more_errors_name_invalid_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(undula.UndulaError, match=message):
        call()


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32"])
@pytest.mark.parametrize("sigma", [None, 1.0])
def test_the_largest_integers_do_not_wrap(dtype: str, sigma: float | None) -> None:
    info = np.iinfo(dtype)
    for limit in (info.max, info.min):
        result = undula.denoise(np.full((12, 14), limit, dtype), sigma)
        assert abs(int(result.astype(object).min()) - limit) <= 2**11
        assert abs(int(result.astype(object).max()) - limit) <= 2**11


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("invariant", [1, 2])
def test_a_batch_of_volumes_has_the_bits_of_single_ones(invariant: int, dtype: str) -> None:
    volumes = noisy(np.full((3, 12, 14, 16), 100, dtype), 20)
    together = undula.denoise(volumes, 5.0, axes=(1, 2, 3), channel_axis=None, invariant=invariant)
    for volume, filtered in zip(volumes, together, strict=True):
        alone = undula.denoise(volume, 5.0, channel_axis=None, invariant=invariant)
        np.testing.assert_array_equal(filtered, alone)
