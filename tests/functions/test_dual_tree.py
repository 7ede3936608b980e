"""The dual-tree transform against its definition by two filtered trees, and its properties."""

from functools import partial
from itertools import product
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import undula
from comparing import noise
from undula.lowering.dual_tree import orientations

Array = NDArray[Any]
QSHIFT = ["qshift10", "qshift14", "qshift18"]


def first_level(x: Array, band: str, name: str) -> Array:
    """Filter a line at all places; the trees have every second coefficient, and alternate in the result."""
    wavelet, n = undula.Wavelet(name), len(x)
    taps = np.asarray(wavelet.dec_lo if band == "a" else wavelet.dec_hi) / np.sqrt(2)
    centre = len(taps) // 2 - (band == "d")
    places = np.arange(n)[:, None] + centre - np.arange(len(taps))
    full = mirrored(x, places) @ taps
    return full if band == "a" else full.reshape(-1, 2)[:, ::-1].ravel()


def next_level(x: Array, band: str, name: str) -> Array:
    """Filter tree a, and tree b in reverse order; the trees alternate in the line, and in the result."""
    wavelet, n = undula.Wavelet(name), len(x)
    taps = np.asarray(wavelet.dec_lo if band == "a" else wavelet.dec_hi)
    half, k = len(taps) // 2, np.arange(len(taps))
    m = np.arange(n // 4)[:, None]
    tree_a = mirrored(x, 2 * (2 * m + half - k)) @ taps
    tree_b = mirrored(x, 2 * (2 * m + 1 - half + k) + 1) @ taps
    return np.stack([tree_a, tree_b], axis=1).ravel()


def mirrored(x: Array, places: Array) -> Array:
    places = places % (2 * len(x))
    return x[np.minimum(places, 2 * len(x) - 1 - places)]


def by_definition(x: Array, levels: int, name: str, first: str) -> list[Array]:
    low, details = x, []
    for level in range(levels):
        bands = {"": low}
        step = partial(first_level, name=first) if level == 0 else partial(next_level, name=name)
        for axis in range(x.ndim):
            bands = {
                key + letter: np.apply_along_axis(step, axis, band, letter)
                for key, band in bands.items()
                for letter in "ad"
            }
        low = bands["a" * x.ndim]
        details.append(np.stack([complex_band(bands[key], key, s) for key, s in orientations(x.ndim)]))
    return [low, *(part[0] if x.ndim == 1 else part for part in details[::-1])]


def complex_band(band: Array, key: str, signs: tuple[int, ...]) -> Array:
    total: Any = 0
    for trees in product((0, 1), repeat=band.ndim):
        factors = [1j * s * (-1 if letter == "d" else 1) for s, letter in zip(signs, key, strict=True)]
        factor = np.prod([f if tree else 1 for f, tree in zip(factors, trees, strict=True)])
        total = total + factor * band[tuple(slice(tree, None, 2) for tree in trees)]
    return total / 2 ** ((band.ndim - 1) / 2)


@pytest.mark.parametrize("name", QSHIFT)
@pytest.mark.parametrize("first", ["cdf97", "cdf53", "bior6.8"])
def test_lines(name: str, first: str) -> None:
    x = noise(64)
    for result, expected in zip(
        undula.dtcwt(x, name, 4, first=first), by_definition(x, 4, name, first), strict=True
    ):
        np.testing.assert_allclose(result, expected, atol=1e-12)


@pytest.mark.parametrize("shape", [(16, 24), (8, 16, 8)])
def test_arrays(shape: tuple[int, ...]) -> None:
    x = noise(*shape)
    results, expected = undula.dtcwtn(x, level=3), by_definition(x, 3, "qshift14", "cdf97")
    assert [band.shape for band in results] == [band.shape for band in expected]
    for result, band in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, band, atol=1e-12)


def test_lengths_are_rounded_up() -> None:
    x = noise(13)
    padded = undula.dtcwt(np.pad(x, (0, 3), "edge"), level=3)
    for result, expected in zip(undula.dtcwt(x, level=3), padded, strict=True):
        np.testing.assert_allclose(result, expected, atol=1e-13)


@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=3),
    st.integers(1, 4),
    st.sampled_from(QSHIFT),
    st.sampled_from(["f4", "f8"]),
    st.randoms(use_true_random=False),
)
def test_reconstruction(shape: list[int], level: int, name: str, dtype: str, random: Any) -> None:
    axes = random.sample(range(len(shape)), random.randint(1, len(shape)))
    shortest = min(shape[axis] for axis in axes)
    level = min(level, max(1, (shortest - 1).bit_length()))
    x = noise(*shape).astype(dtype)
    coeffs = undula.dtcwtn(x, name, level, axes)
    assert coeffs[0].dtype == x.dtype
    assert {band.dtype for band in coeffs[1:]} == {np.result_type(x, np.complex64)}
    back = undula.idtcwtn(coeffs, name, axes, shape=x.shape)
    assert back.dtype == x.dtype
    np.testing.assert_allclose(back, x, atol=1e-5 if dtype == "f4" else 1e-13)


@pytest.mark.parametrize("dtype", ["f2", "u1", "i8", "bool"])
def test_dtypes(dtype: str) -> None:
    x = (10 * noise(9, 10)).astype(dtype)
    coeffs = undula.dtcwt2(x, level=2)
    expected = np.dtype("f4" if dtype == "f2" else "f8")
    assert coeffs[0].dtype == expected
    np.testing.assert_allclose(undula.idtcwt2(coeffs, shape=x.shape), x.astype(expected), atol=1e-4)


def test_batches_and_axes() -> None:
    x = noise(2, 12, 3, 16)
    coeffs = undula.dtcwt2(x, level=2, axes=(1, 3))
    single = undula.dtcwt2(x[1, :, 2], level=2)
    for k, (band, expected) in enumerate(zip(coeffs, single, strict=True)):
        np.testing.assert_allclose(band[1, :, 2] if k == 0 else band[:, 1, :, 2], expected, atol=1e-13)
    np.testing.assert_allclose(undula.idtcwt2(coeffs, axes=(1, 3)), x, atol=1e-13)
    swapped = undula.dtcwtn(x[1, :, 2], level=2, axes=(1, 0))
    again = undula.dtcwtn(x[1, :, 2].T, level=2)
    np.testing.assert_allclose(swapped[1], again[1].transpose(0, 2, 1), atol=1e-13)


def test_engines(target: str) -> None:
    x = noise(2, 13, 18)
    for backend in (target, "reference"):
        coeffs = undula.dtcwt2(x, level=2, backend=backend)
        for band, expected in zip(coeffs, undula.dtcwt2(x, level=2), strict=True):
            np.testing.assert_allclose(band, expected, atol=1e-12)
        back = undula.idtcwt2([None, *coeffs[1:]], shape=x.shape, backend=backend)
        np.testing.assert_allclose(back, undula.idtcwt2([None, *coeffs[1:]], shape=x.shape), atol=1e-12)


def test_missing_bands_are_zeros() -> None:
    coeffs = undula.dtcwt2(noise(16, 16), level=2)
    for missing in ([0], [1], [2], [0, 2], [0, 1]):
        none = [None if k in missing else band for k, band in enumerate(coeffs)]
        zeros = [np.zeros_like(band) if k in missing else band for k, band in enumerate(coeffs)]
        np.testing.assert_allclose(undula.idtcwt2(none), undula.idtcwt2(zeros), atol=1e-13)


def test_tensors() -> None:
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(noise(3, 16, 16))
    coeffs = undula.dtcwt2(x, level=2)
    assert all(isinstance(band, torch.Tensor) for band in coeffs)
    assert coeffs[1].dtype == torch.complex128
    torch.testing.assert_close(undula.idtcwt2(coeffs), x)


def test_arrays_of_opencl() -> None:
    """Arrays of any strides, complex ones too."""
    cl = pytest.importorskip("pyopencl")
    arrays = pytest.importorskip("pyopencl.array")
    queue = cl.CommandQueue(cl.create_some_context(interactive=False))
    x = noise(16, 12, 2)
    low, details = undula.dtcwt2(arrays.to_device(queue, x), level=1, axes=(0, 1))
    expected = undula.dtcwt2(x, level=1, axes=(0, 1))
    np.testing.assert_allclose(details.get(), expected[1], atol=1e-12)
    turned = [low.transpose((1, 0, 2)), details.transpose((0, 2, 1, 3))]
    back = undula.idtcwtn(turned, axes=(1, 0))
    np.testing.assert_allclose(back.get(), x.transpose(1, 0, 2), atol=1e-12)


# --- properties -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "bound"), [("qshift10", 2e-3), ("qshift14", 3e-4), ("qshift18", 1e-4)])
def test_wavelets_have_positive_frequencies(name: str, bound: float) -> None:
    n, level = 1024, 4
    shapes = undula.dtcwt(np.zeros(n), name, level)
    parts = []
    for unit in (1, 1j):
        bands = [None] * (level + 1)
        for number in range(2, level + 1):
            band = np.zeros(n >> number, complex)
            band[n >> (number + 1)] = unit
            bands[level + 1 - number] = band
            parts.append(undula.idtcwt([*bands[:-1], np.zeros_like(shapes[-1])], name))
            bands[level + 1 - number] = None
    for real, imaginary in zip(parts[: level - 1], parts[level - 1 :], strict=True):
        energy = np.abs(np.fft.fft(real + 1j * imaginary)) ** 2
        assert energy[n // 2 :].sum() < bound * energy.sum()


def relative_change(energies: list[float]) -> float:
    """Return how much the energy of a band changes under shifts, relative to its mean."""
    return float(np.std(energies) / np.mean(energies))


@pytest.mark.parametrize("name", QSHIFT)
def test_energy_of_bands_hardly_changes_under_shifts(name: str) -> None:
    shifted = [(np.arange(512) >= 250 + shift).astype(float) for shift in range(16)]
    duals = [undula.dtcwt(each, name, 4) for each in shifted]
    reals = [undula.wavedec(each, name, "symmetric", 4) for each in shifted]
    for place in (1, 2, 3):  # the three coarsest of four levels
        assert relative_change([np.sum(np.abs(bands[place]) ** 2) for bands in duals]) < 0.08
        assert relative_change([np.sum(bands[place] ** 2) for bands in reals]) > 0.3


def test_directions_of_images() -> None:
    y, x = np.mgrid[:128, :128]
    for number, angle in enumerate(np.deg2rad([20, 45, 70, 110, 135, 160])):
        # Lines at an angle from the horizontal axis, counterclockwise; y is downwards.
        across = x * np.sin(angle) + y * np.cos(angle)
        frequency = 1.67 if number in (1, 4) else 1.25  # the middle of the bands of level 2
        bands = undula.dtcwt2(np.cos(frequency * across), level=2)[1]
        energies = np.sum(np.abs(bands[:, 8:-8, 8:-8]) ** 2, axis=(1, 2))
        assert energies.argmax() == number
        assert energies[number] > 0.8 * energies.sum()


def test_nearly_keeps_energy() -> None:
    x = noise(64, 64)
    energy = sum(np.sum(np.abs(band) ** 2) for band in undula.dtcwt2(x))
    assert energy == pytest.approx(np.sum(x**2), rel=0.05)


@pytest.mark.parametrize("name", QSHIFT)
def test_q_shift_wavelets(name: str) -> None:
    wavelet = undula.Wavelet(name)
    taps = np.asarray(wavelet.dec_lo)
    products = np.convolve(taps, taps[::-1])[len(taps) - 1 :: 2]
    np.testing.assert_allclose(products, np.eye(1, len(products))[0], atol=1e-15)
    assert wavelet.orthogonal
    places = np.arange(len(taps)) - (len(taps) - 1) / 2
    assert taps @ places / taps.sum() == pytest.approx(0.25, abs=0.1)


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"data": 1.0}, "must have axes and samples"),
        ({"data": np.ones((0, 4))}, "must have axes and samples"),
        ({"data": np.ones(8, complex)}, "data must be real, got complex128"),
        ({"wavelet": "db4"}, "delay of 0.25 samples, such as 'qshift14'; 'db4' has"),
        ({"wavelet": "bior4.4"}, "not orthogonal"),
        ({"first": "db4"}, "symmetric filters of odd lengths"),
        ({"level": 0}, "level must be from 1 to 4 for lines of 16 samples"),
        ({"level": 5}, "level must be from 1 to 4"),
        ({"level": 2.0}, "level must be an integer or None, got 2.0"),
        ({"axes": (0, 3)}, "do not exist"),
        ({"backend": "gpu"}, "gpu"),
    ],
)
def test_errors_of_the_transform(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(undula.UndulaError, match=message):
        undula.dtcwtn(**{"data": np.ones((16, 16)), **arguments})


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda c: "abc", {}, "a list .*, got str|got str"),
        (lambda c: c[:1], {}, "got a list of 1"),
        (lambda c: [None, None, None], {}, "At least one"),
        (lambda c: [c[0], c[2], c[1]], {}, "details of level 2 must have shape"),
        (lambda c: [c[0] + 1j, *c[1:]], {}, "low-pass band must be real"),
        (lambda c: c, {"shape": (12, 16)}, "expected from 13 to 16 along axis 0"),
        (lambda c: c, {"shape": 16}, "shape must be 2 integers"),
    ],
)
def test_errors_of_the_inverse(change: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(undula.UndulaError, match=message):
        undula.idtcwt2(change(undula.dtcwt2(np.ones((16, 16)), level=2)), **options)


@pytest.mark.parametrize(
    ("shape", "axes", "level"),
    [((23,), (0,), 3), ((1,), (0,), 1), ((3, 14), (1,), 2), ((13, 18), (0, 1), 2), ((7, 2, 9), (0, 2), 1),
     ((6, 5, 7), (0, 1, 2), 1)],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_dask_arrays(shape: tuple[int, ...], axes: tuple[int, ...], level: int, dtype: str) -> None:
    """The numbers are those of arrays in memory, bit for bit, whatever the chunks are."""
    rng = np.random.default_rng(len(dtype) + sum(shape))
    chunks = tuple(_random_chunks(rng, n) for n in shape)
    x = (100 * noise(*shape)).astype(dtype)
    expected: list[Any] = undula.dtcwtn(x, level=level, axes=axes)
    later: list[Any] = undula.dtcwtn(da.from_array(x, chunks=chunks), level=level, axes=axes)
    assert all(isinstance(band, da.Array) for band in later)
    computed = dask.compute(*later, scheduler="synchronous")
    for band, plan, other in zip(computed, later, expected, strict=True):
        assert band.dtype == plan.dtype == other.dtype
        np.testing.assert_array_equal(band, other)
    missing = int(rng.integers(0, level + 1))
    later[missing] = expected[missing] = None
    back = undula.idtcwtn(later, axes=axes, shape=shape)
    assert isinstance(back, da.Array)
    result = back.compute(scheduler="synchronous")
    np.testing.assert_array_equal(result, undula.idtcwtn(expected, axes=axes, shape=shape))
    assert result.dtype == back.dtype


def _random_chunks(rng: np.random.Generator, n: int) -> tuple[int, ...]:
    place = int(rng.integers(0, n))
    return tuple(size for size in (place, n - place) if size)
