"""Stationary transforms: PyWavelets' results, other modes against convolutions, all engines, bad input."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import pywt
from hypothesis import given, settings
from hypothesis import strategies as st

import undula
from cases import WAVELETS, pairwise, parametrize_some
from comparing import assert_identical, assert_same, flat, noise

THEIRS = pywt.wavelist(kind="discrete")
MODES = undula.MODES
DTYPES = ("f4", "f8", "c8", "c16", "f2", "i2")
# A shape, its axes and the number of levels: lines within rows and across them, planes, volumes, batches.
ARRAYS = [
    ((32,), (0,), 3),
    ((3, 16), (1,), 2),
    ((16, 40), (0,), 2),
    ((16, 3), (0,), 1),
    ((24, 16), (0, 1), 3),
    ((3, 8, 12), (1, 2), 2),
    ((8, 12, 3), (0, 1), 2),
    ((4, 8, 8), (0, 1, 2), 2),
    ((8, 3, 4), (2, 0), 2),
]
WAVELETS_ARRAYS_DTYPES = pairwise(THEIRS, ARRAYS, ("f4", "f8", "c16"))


@parametrize_some("name", THEIRS, [name for name in WAVELETS if name in THEIRS])
def test_every_wavelet(name: str) -> None:
    for wavelet, (shape, axes, level), dtype in WAVELETS_ARRAYS_DTYPES:
        if wavelet != name:
            continue
        x = noise(*shape, dtype=dtype)
        coeffs = pywt.swtn(x, name, level, axes=axes)
        assert_same(undula.swtn(x, name, level, axes=axes), coeffs)
        assert_same(undula.iswtn(coeffs, name, axes), pywt.iswtn(coeffs, name, axes))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trim", [False, True])
@pytest.mark.parametrize("norm", [False, True])
def test_forms(dtype: str, trim: bool, norm: bool) -> None:
    x = noise(16, 24, dtype=dtype)
    options = {"trim_approx": trim, "norm": norm}
    lines = undula.swt(x, "db2", 2, 1, axis=-1, **options)
    assert_same(lines, pywt.swt(x, "db2", 2, 1, axis=-1, **options))
    image = undula.swt2(x, ["haar", "db3"], 2, **options)
    assert_same(image, pywt.swt2(x, ["haar", "db3"], 2, **options))
    assert [type(level) for level in image] == [
        type(level) for level in pywt.swt2(x, ["haar", "db3"], 2, **options)
    ]
    keyed = undula.swtn(x, "sym4", 3, axes=(1,), **options)
    assert_same(keyed, pywt.swtn(x, "sym4", 3, axes=(1,), **options))
    whole = x.astype(flat(image)[0].dtype)
    assert_same(undula.iswt(undula.swt(x, "db2", 2, axis=0, **options), "db2", norm, 0), whole, 10)
    assert_same(undula.iswt(lines, "db2", norm, start_level=1), whole, 10)
    assert_same(undula.iswt2(image, ["haar", "db3"], norm), whole, 10)
    assert_same(undula.iswtn(keyed, "sym4", (1,), norm), whole, 10)


def _direct(x: np.ndarray, name: str, mode: str, level: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The undecimated transform of a line, by PyWavelets' padding and NumPy's convolution."""
    wavelet, low, levels = pywt.Wavelet(name), x, []
    for number in range(level):
        bands = []
        for taps in (wavelet.dec_lo, wavelet.dec_hi):
            dilated = np.zeros((len(taps) - 1) * 2**number + 1)
            dilated[:: 2**number] = taps
            if (
                mode == "periodization"
            ):  # The coefficient at a place reads as many samples before as after it.
                lead = (len(taps) // 2) * 2**number
                line = np.take(
                    low, np.arange(len(low) + dilated.size - 1) + lead - dilated.size + 1, mode="wrap"
                )
            else:
                line = pywt.pad(low, dilated.size - 1, mode)
            bands.append(np.convolve(line, dilated, "valid"))
        low = bands[0]
        levels.append((bands[0], bands[1]))
    return levels[::-1]


@settings(deadline=None, max_examples=60)
@given(
    name=st.sampled_from(["haar", "db2", "db5", "bior4.4", "rbio3.1", "sym4"]),
    mode=st.sampled_from(MODES),
    length=st.integers(1, 70),
    level=st.integers(1, 3),
)
def test_any_length_in_every_mode(name: str, mode: str, length: int, level: int) -> None:
    x = noise(length)
    coeffs = undula.swt(x, name, level, mode=mode)
    assert_same(coeffs, _direct(x, name, mode, level), 100)
    assert_same(undula.iswt(coeffs, name, mode=mode), x, 100)


@pytest.mark.parametrize("mode", MODES)
def test_two_axes_are_one_after_the_other(mode: str) -> None:
    x = noise(9, 14)
    ((low, (horizontal, _, _)),) = undula.swt2(x, "db3", 1, mode=mode)
    ((rows, _),) = undula.swt(x, "db3", 1, axis=1, mode=mode)
    ((twice, details),) = undula.swt(rows, "db3", 1, axis=0, mode=mode)
    assert_same([low, horizontal], [twice, details], 10)


@pytest.mark.thorough
@settings(max_examples=settings.default.max_examples // 2)  # Most have kernels of their own.
@given(
    mode=st.sampled_from([*MODES, None]),
    array=st.sampled_from(ARRAYS),
    name=st.sampled_from(["haar", "db4", "bior2.2"]),
    dtype=st.sampled_from(["f4", "f8", "c8"]),
)
def test_engines_agree(target: str, mode: Any, array: Any, name: str, dtype: str) -> None:
    shape, axes, level = array
    x = noise(*shape, dtype=dtype)
    options = {"axes": axes, "mode": mode}
    expected = undula.swtn(x, name, level, **options, backend="reference")
    for backend in ("cpu", target):
        coeffs = undula.swtn(x, name, level, **options, backend=backend)
        assert_same(coeffs, expected, 10)
        assert_same(undula.iswtn(coeffs, name, axes, mode=mode, backend=backend), x, 100)


@pytest.mark.parametrize("shape", [(3, 200, 301), (1_000_003,), (70, 50, 80), (600, 501, 2)])
def test_threads_do_not_change_a_bit(shape: tuple[int, ...]) -> None:
    x, axes = noise(*shape, dtype="f4"), (0, 1) if shape[-1] == 2 else None
    results = []
    try:
        for threads in (1, 3):
            undula.set_num_threads(threads)
            coeffs = undula.swtn(x, "bior4.4", 2, axes=axes, mode="smooth")
            results.append([*coeffs, undula.iswtn(coeffs, "bior4.4", axes, mode="smooth")])
    finally:
        undula.set_num_threads(None)
    assert_identical(*results)


def test_out_and_layouts() -> None:
    x = noise(16, 24)
    expected, trimmed = undula.swt2(x, "db2", 2), undula.swt2(x, "db2", 2, trim_approx=True)
    out = [(np.empty(x.shape), tuple(np.empty(x.shape) for _ in range(3))) for _ in range(2)]
    undula.swt2(x, "db2", 2, out=out)
    assert_identical(out, expected)
    out = [np.empty(x.shape), *(tuple(np.empty(x.shape) for _ in range(3)) for _ in range(2))]
    undula.swt2(x, "db2", 2, trim_approx=True, out=out)
    assert_identical(out, trimmed)
    target = np.empty((24, 16)).T
    undula.iswt2(expected, "db2", out=target)
    assert_same(target, x, 10)
    for other in (np.asfortranarray(x), np.repeat(x, 2, 1)[:, ::2], x[::-1, ::-1].copy()[::-1, ::-1]):
        assert_same(undula.swt2(other, "db2", 2), expected)
    keyed = undula.swtn(x, "haar", 1)
    keyed[0]["dd"] = None
    zeroed = [{**keyed[0], "dd": np.zeros(x.shape)}]
    assert_same(undula.iswtn(keyed, "haar"), pywt.iswtn(zeroed, "haar"))


def test_energy_is_kept() -> None:
    x = noise(30)
    coeffs = undula.swt(x, "sym5", 3, trim_approx=True, norm=True, mode="periodization")
    np.testing.assert_allclose(sum(np.sum(band**2) for band in coeffs), np.sum(x**2))


@pytest.mark.parametrize("backend", ["cpu", "opencl", "reference"])
def test_many_levels_of_a_short_period(backend: str) -> None:
    """Far beyond the length, taps meet again and again at the same samples."""
    x = noise(7)
    coeffs = undula.swt(x, "db2", 36, mode="periodization", norm=True, backend=backend)
    assert_same(undula.iswt(coeffs, "db2", True, mode="periodization", backend=backend), x, 100)
    np.testing.assert_allclose(coeffs[0][0], x.mean())  # Nothing but the mean is left.
    later = undula.swt(coeffs[1][0], "db2", 1, 35, mode="periodization", norm=True, backend=backend)
    assert_same(later, coeffs[:1])


def test_bands_in_one_array() -> None:
    x = noise(32)
    stacked = np.array(pywt.swt(x, "db2", 3, trim_approx=True))
    assert_same(undula.iswt(stacked, "db2"), x, 10)


def test_coefficients_move_with_the_samples() -> None:
    x = noise(33)
    moved = undula.swt(np.roll(x, 5), "db3", 3, mode="periodization")
    for mine, theirs in zip(flat(moved), flat(undula.swt(x, "db3", 3, mode="periodization")), strict=True):
        np.testing.assert_allclose(mine, np.roll(theirs, 5), atol=1e-12)


def test_default_levels() -> None:
    assert len(undula.swt(noise(48), "db2")) == len(pywt.swt(noise(48), "db2")) == 4
    assert len(undula.swt2(noise(8, 12), "db2", None)) == 2
    assert undula.swt(noise(8), "haar", mode="zero")[0][0].shape == (8 + 1 + 2 + 4,)
    assert undula.swtn(noise(8), "haar", 0) == []


BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "odd": (lambda: undula.swt(np.ones(7), "haar"), ValueError, r"multiple of .* got shape \(7,\); pad"),
    "deep": (lambda: undula.swt(np.ones(12), "haar", 3), ValueError, "from 1 to 2, got 3"),
    "start": (lambda: undula.swt(np.ones(8), "haar", 1, 3), ValueError, "no level is possible"),
    "start kind": (lambda: undula.swt(np.ones(8), "haar", 1, "a"), TypeError, "got 'a'"),
    "start range": (lambda: undula.swt(np.ones(8), "haar", 1, 41), ValueError, "from 0 to 40, got 41"),
    "long": (lambda: undula.swt(np.ones(8), "db2", 40, mode="zero"), ValueError, "would add .* coefficients"),
    "level kind": (lambda: undula.swt(np.ones(8), "haar", 1.5), TypeError, "integer, got 1.5"),
    "negative": (lambda: undula.swt2(np.ones((8, 8)), "haar", -1), ValueError, "from 0 to 40, got -1"),
    "zero": (lambda: undula.swt(np.ones(8), "haar", 0), ValueError, "greater than zero, got 0"),
    "empty": (lambda: undula.swt([], "haar"), ValueError, "must have samples"),
    "number": (lambda: undula.swt(3.0, "haar"), ValueError, "single number"),
    "axis": (lambda: undula.swt(np.ones(8), "haar", axis=1), ValueError, "do not exist"),
    "axes": (lambda: undula.swtn(np.ones((8, 8)), "haar", 1, axes=(0, 0)), ValueError, "unique"),
    "mode": (lambda: undula.swt(np.ones(8), "haar", mode="mirror"), ValueError, "mode"),
    "out": (lambda: undula.swt(np.ones(8), "haar", 2, out=[1]), ValueError, r"2 level\(s\), coarsest first"),
    "nothing": (lambda: undula.iswt([], "haar"), ValueError, "At least one"),
    "none": (lambda: undula.iswt([None, None], "haar"), ValueError, "At least one"),
    "kind": (lambda: undula.iswt(np.ones(3), "haar"), TypeError, "got ndarray"),
    "nesting": (lambda: undula.iswt2([np.ones((4, 4)), np.ones((4, 4))], "haar"), ValueError, "as swt2 does"),
    "keys": (lambda: undula.iswtn([{"a": np.ones(4), "x": np.ones(4)}], "haar"), ValueError, "keys among"),
    "triple": (lambda: undula.iswt([(np.ones(4),) * 3], "haar"), ValueError, "as swt does"),
    "short key": (lambda: undula.iswtn([{"aa": np.eye(4), "d": np.eye(4)}], "haar"), ValueError, "as swtn"),
    "list of arrays": (lambda: undula.iswtn([[np.eye(4)]], "haar"), ValueError, "as swtn does"),
    "shapes": (lambda: undula.iswt([(np.ones(4), np.ones(6))], "haar"), RuntimeError, "the same shape"),
    "short": (lambda: undula.iswt([(np.ones(4),) * 2], "db4", mode="zero"), ValueError, "too short"),
    "length kind": (lambda: undula.swt_max_level(1.5), TypeError, "got 1.5"),
    "length": (lambda: undula.swt_max_level(-1), ValueError, "size -1"),
    "no length": (lambda: undula.swt_max_level(0), ValueError, "Cannot apply swt to a size 0 signal"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    call, error, message = BAD[name]
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, undula.UndulaError)


def test_warnings() -> None:
    with pytest.warns(UserWarning, match="not orthogonal"):
        undula.swt(noise(8), "bior2.2", 1, norm=True)
    with pytest.warns(UserWarning, match="not orthogonal") as caught:
        undula.mra(noise(16), "bior2.2", 2)
    assert len(caught) == 1  # As in PyWavelets, inverses do not warn.
    with pytest.warns(UserWarning, match="No levels"):
        assert undula.swt_max_level(11) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [undula.swt_max_level(n) for n in (2, 12, 48)] == [1, 2, 4]
