"""Bounds on reversible integers, checked by the inputs that lead to the largest numbers.

Everything that a step computes is a sum of samples, so the worst samples for it are known: the largest ones,
with the signs of the factors. :func:`walk` is a plain lifting in integers that shows everything it computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import undula
from cases import parametrize_pairwise, parametrize_some
from comparing import reference
from undula import LWT_MODES
from undula.liftings import lifting
from undula.lowering.borders import source_places
from undula.lowering.growth import KINDS, Growth, gains_back, growth
from undula.lowering.rounding import rounding

Array = NDArray[Any]
NAMES = [name for name in undula.wavelist(undula.families(), kind="discrete") if name != "dmey"]
SAMPLE = (
    *("haar", "db2", "db3", "db5", "db10", "sym4", "sym5", "sym12", "coif1", "coif3", "bior1.3"),
    *("bior2.4", "bior3.3", "bior5.5", "rbio3.1", "rbio4.4", "cdf53", "cdf97", "dd137", "burt57"),
)
FRAGILE = [
    *(f"coif{n}" for n in (6, 12, 13, 14)),
    *(f"db{n}" for n in (10, 19, 21, 32, 34, 35)),
    *(f"sym{n}" for n in (5, 8, 19, 20)),
]


def walk(x: Array, wavelet: str, mode: str, exact: bool = False) -> Iterator[tuple[str, Array]]:
    """Everything that one level computes along the first axis, and at last the two bands.

    Rounded as integers are, or ``exact``: then from samples to the factors they count with.
    """
    chain = lifting(undula.Wavelet(wavelet))
    parts = [x[0::2].copy(), x[1::2].copy()]
    yield "numbers", x
    for step in chain.steps if len(x) > 1 else ():
        target = int(step.is_predict)
        source, terms = parts[1 - target], list(step.filter.items())
        whole, offset, shift = rounding([value for _, value in terms])
        total = np.zeros_like(parts[target])
        for (exponent, _), factor in zip(terms, whole, strict=True):
            places = 2 * np.arange(len(total)) + target + (1 - 2 * target) * chain.odd + 2 * exponent
            at = source_places(places, len(x), mode)
            total[at >= 0] += factor * source[at[at >= 0] // 2]
        added = total / 2**shift if exact else (total + offset) >> shift
        # Between two neighbours, vectors of 16 bits have no wider numbers; other sums have at least 32 bits.
        between_two = len(whole) == 2 and whole[0] == whole[1]
        own = "narrow" if between_two else "medium"
        if max(map(abs, whole)) <= 1:
            yield own, total if exact else total + offset
        if between_two and whole[0]:
            yield "medium", total / whole[0] if exact else total // whole[0]
        yield own, added
        yield "wide", total if exact else total + offset
        parts[target] = parts[target] + added
        yield "numbers", parts[target]
    yield "low", parts[0]
    yield "high", parts[1]


@cache
def responses(wavelet: str, mode: str, length: int, levels: int) -> list[tuple[int, str, Array]]:
    """Level, kind, and the factors of samples in everything that is computed along a line."""
    found, low = [], np.eye(length)
    for level in range(levels):
        for kind, rows in walk(low, wavelet, mode, exact=True):
            found.append((level, kind, rows))
            if kind == "low":
                after = rows
        low = after
    return found


def worst_arrays(wavelet: str, mode: str, shape: tuple[int, ...], levels: int) -> list[Array]:
    """The signs of samples that lead to the largest numbers of each level, along each axis."""
    found = []
    for last in range(levels):

        def row(length: int, *kinds: str, last: int = last) -> Array:
            """The factors that have the largest sum; of the line as the level gets it, if no kinds."""
            listed = [r for r in responses(wavelet, mode, length, levels) if r[0] == last]
            rows = np.concatenate([rows for _, kind, rows in listed if kind in kinds] or [listed[0][2]])
            best: Array = rows[np.abs(rows).sum(axis=1).argmax()]
            return best

        for axis in range(len(shape)):
            total = np.ones(())
            for number, length in enumerate(shape):
                kinds = ("low", "high") if number < axis else ("numbers",) if number == axis else ()
                total = np.multiply.outer(total, row(length, *kinds))
            found.append(np.where(total < 0, -1, 1))
    return found


def flat(coeffs: Sequence[Any]) -> list[Array]:
    """All bands in one list."""
    bands: list[Array] = [coeffs[0]]
    for part in coeffs[1:]:
        bands += part.values() if isinstance(part, dict) else part if isinstance(part, tuple) else [part]
    return bands


def check(x: Array, wavelet: str, levels: int, mode: str, axes: tuple[int, ...], **options: Any) -> None:
    """Samples come back, and coefficients are those that integers without limits give."""
    coeffs = undula.lwtn(x, wavelet, levels, mode, axes, **options)
    np.testing.assert_array_equal(undula.ilwtn(coeffs, wavelet, mode, axes, **options), x)
    exact = reference.lwtn(x.astype("i8"), wavelet, levels, mode, axes=axes)
    for band, wanted in zip(flat(coeffs), flat(exact), strict=True):
        np.testing.assert_array_equal(np.asarray(band), wanted)


# --- samples come back ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["camera", "coins", "text", "page", "astronaut"])
def test_images_come_back(name: str) -> None:
    image = getattr(pytest.importorskip("skimage.data"), name)()
    image = image if image.ndim == 2 else image[..., 1]
    coeffs = undula.lwt2(image, "sym12", 5)
    np.testing.assert_array_equal(undula.ilwt2(coeffs, "sym12"), image)


def test_nine_pixels_come_back() -> None:
    """Every image of 3 × 3 pixels that are black or white."""
    images = 255 * (np.arange(512)[:, np.newaxis] >> np.arange(9) & 1).astype("u1").reshape(512, 3, 3)
    np.testing.assert_array_equal(undula.ilwt2(undula.lwt2(images, "coif12"), "coif12"), images)


@parametrize_pairwise(
    name=FRAGILE,
    mode=LWT_MODES,
    shape=[(3, 3), (5, 5), (8, 8), (12, 12), (5, 5, 5)],
)
def test_the_worst_samples_come_back(name: str, mode: str, shape: tuple[int, ...]) -> None:
    """Samples of 8 and 16 bits with the signs of responses, on images and volumes."""
    levels, dtype = (1 if shape == (3, 3) else 2), ("i1" if len(shape) == 2 else "i2")
    info = np.iinfo(dtype)
    for signs in worst_arrays(name, mode, shape, levels)[-len(shape) :]:
        x = np.where(signs > 0, info.max, info.min).astype(dtype)
        coeffs = undula.lwtn(x, name, levels, mode)
        np.testing.assert_array_equal(undula.ilwtn(coeffs, name, mode), x)


@pytest.mark.parametrize("name", ["cdf97", "sym5"])
def test_the_worst_samples_come_back_on_devices(target: str, name: str) -> None:
    for signs in worst_arrays(name, "symmetric", (33, 33), 5)[-2:]:
        check(np.where(signs > 0, 127, -128).astype("i1"), name, 5, "symmetric", (0, 1), backend=target)


# --- bounds ---------------------------------------------------------------------------------------


def grown(name: str, mode: str, shape: tuple[int, ...], levels: int) -> Growth:
    return growth((undula.Wavelet(name),) * len(shape), (mode,) * len(shape), shape, levels)


def largest(x: Array, wavelet: str, mode: str, levels: int) -> dict[str, int]:
    """The largest of each kind that a transform along all axes computes, in integers without limits."""
    found = dict.fromkeys(KINDS, 0)
    for _ in range(levels):
        arrays = [x]
        for axis in range(x.ndim):
            bands: list[Array] = []
            for array in arrays:
                for kind, values in walk(np.moveaxis(array, axis, 0), wavelet, mode):
                    if kind in KINDS:
                        found[kind] = max(found[kind], int(np.abs(values).max(initial=0)))
                    else:
                        bands.append(np.moveaxis(values, 0, axis))
            arrays = bands
        x = arrays[0]
    return found


def check_bounds(grows: Growth, signs: Sequence[Array], wavelet: str, mode: str, levels: int) -> None:
    """No bound is passed, by large samples or by small ones, and that of the numbers is reached."""
    for size in (2, 2**24):
        found = [largest(size * array, wavelet, mode, levels) for array in signs]
        for kind in KINDS:
            assert max(each[kind] for each in found) <= grows.bound(size, kind), (kind, size)
    assert max(each["numbers"] for each in found) >= 0.99 * grows.gains[0] * size


@pytest.mark.parametrize("mode", LWT_MODES)
@parametrize_some("name", NAMES, SAMPLE)
def test_bounds_of_lines_hold_and_are_reached(name: str, mode: str) -> None:
    for length, levels in ((1, 2), (2, 1), (3, 2), (5, 3), (13, 1), (37, 3)):
        grows = grown(name, mode, (length,), levels)
        rows = np.concatenate(
            [r for _, kind, r in responses(name, mode, length, levels) if kind == "numbers"]
        )
        np.testing.assert_allclose(grows.gains[0], np.abs(rows).sum(axis=1).max(), rtol=1e-6)
        # (All signs at once: lines are along the first axis, side by side.)
        signs = np.unique(np.where(rows < 0, -1, 1), axis=0).T
        for size in (2, 2**24):
            low, found = size * signs, dict.fromkeys(KINDS, 0)
            for _ in range(levels):
                for kind, values in walk(low, name, mode):
                    if kind in KINDS:
                        found[kind] = max(found[kind], int(np.abs(values).max(initial=0)))
                    elif kind == "low":
                        after = values
                low = after
            for kind in KINDS:
                assert found[kind] <= grows.bound(size, kind), (kind, size, length, levels)
        assert found["numbers"] >= 0.99 * grows.gains[0] * size


@pytest.mark.parametrize("mode", LWT_MODES)
@parametrize_some("name", NAMES, ["db3", "cdf53", "cdf97"])
def test_bounds_of_images_and_volumes_hold_and_are_reached(name: str, mode: str) -> None:
    for shape, levels in (((3, 3), 1), ((9, 6), 3), ((3, 4, 5), 2)):
        check_bounds(
            grown(name, mode, shape, levels), worst_arrays(name, mode, shape, levels), name, mode, levels
        )


@pytest.mark.parametrize("mode", LWT_MODES)
@pytest.mark.parametrize("name", ["haar", "db2", "db4", "coif1", "cdf53", "cdf97", "dd137"])
def test_long_lines_are_bounded_by_what_is_near_their_ends(name: str, mode: str) -> None:
    for length, levels in ((98, 1), (100, 2), (157, 3)):
        exact = [
            np.abs(r).sum(axis=1).max() for _, k, r in responses(name, mode, length, levels) if k == "numbers"
        ]
        np.testing.assert_allclose(grown(name, mode, (length,), levels).gains[0], max(exact), rtol=1e-6)


@pytest.mark.parametrize("mode", LWT_MODES)
def test_bits_of_small_samples(mode: str) -> None:
    """8 bits are kept in 16 wherever those hold everything, and not elsewhere."""
    for name in ("haar", "db2", "sym4", "coif1", "bior2.4", "cdf53", "cdf97", "dd137", "burt57"):
        assert grown(name, mode, (512, 512), 5).fits(255, 16), name
    assert grown("sym12", mode, (512, 512), 5).fits(255, 16) == (mode == "periodic")
    assert grown("sym12", mode, (512, 512), 5).fits(255, 32)


@pytest.mark.parametrize("mode", LWT_MODES)
@parametrize_some("name", NAMES, ["haar", "db2", "sym5", "cdf53", "cdf97", "dd137"])
def test_coefficients_that_fit_lead_to_nothing_larger(name: str, mode: str) -> None:
    """All signs of coefficients that are as large as the bound of the way back allows."""
    for length, levels in ((2, 1), (5, 2), (9, 2), (9, 4)):
        for bits in (16, 32):  # No coefficient of a few wavelets fits into 16 bits.
            weights, error = gains_back((undula.Wavelet(name),), (mode,), (length,), levels, bits)
            size = int((1 - error) / weights.sum())
            if size > 0:
                break
        signs = 2 * (np.arange(2**length)[:, np.newaxis] >> np.arange(length) & 1) - 1
        shapes = [part.shape[1] for part in undula.lwt(np.zeros((1, length), "u1"), name, levels, mode)]
        coeffs = np.split((size * signs).astype(f"i{bits // 8}"), np.cumsum(shapes)[:-1], axis=1)
        exact = undula.ilwt([part.astype("i8") for part in coeffs], name, mode)
        assert size > 0
        np.testing.assert_array_equal(undula.ilwt(coeffs, name, mode), exact)
