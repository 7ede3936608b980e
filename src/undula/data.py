"""Signals and images for demonstrations, under the names of ``pywt.data``.

:func:`demo_signal` computes signals from their published formulas. The images and measured series are files
of PyWavelets, with terms of their own, so Undula does not contain them: it reads them where PyWavelets is
installed, without importing it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import ArgumentError, ArgumentTypeError, MissingExtraError, UnknownNameError

__all__ = ["aero", "ascent", "camera", "demo_signal", "ecg", "nino"]

Signal = NDArray[Any]
Reals = NDArray[np.float64]

# Places, heights and widths of the jumps and bumps of Donoho and Johnstone.
PLACES = (0.1, 0.13, 0.15, 0.23, 0.25, 0.4, 0.44, 0.65, 0.76, 0.78, 0.81)
JUMPS = (4, -5, 3, -4, 5, -4.2, 2.1, 4.3, -3.1, 2.1, -4.2)
HEIGHTS = (4, 5, 3, 4, 5, 4.2, 2.1, 4.3, 3.1, 5.1, 4.2)
WIDTHS = (0.005, 0.005, 0.006, 0.01, 0.01, 0.03, 0.01, 0.01, 0.005, 0.008, 0.005)


def demo_signal(name: str = "Bumps", n: int | None = None) -> Any:
    """Return one of the common test signals for wavelets.

    Parameters
    ----------
    name : str, optional
        Name of the signal, in upper or lower case; ``"list"`` returns all names. The default is ``"Bumps"``.
    n : int, optional
        The number of samples. It is needed for all signals except ``"Gabor"`` and ``"sineoneoverx"``, whose
        lengths are fixed.

    Returns
    -------
    ndarray or list of str
        The samples; ``"Gabor"`` is complex.

    References
    ----------
    .. [1] D. L. Donoho and I. M. Johnstone, "Ideal spatial adaptation by wavelet shrinkage", Biometrika 81,
       pp. 425-455, 1994.
    .. [2] S. Mallat, "A Wavelet Tour of Signal Processing: The Sparse Way", Academic Press, 2009.
    .. [3] J. B. Buckheit and D. L. Donoho, "WaveLab and reproducible research", in Wavelets and Statistics,
       Springer, 1995.

    Examples
    --------
    >>> demo_signal("Ramp", 4).tolist()
    [0.25, -0.5, -0.25, 0.0]
    >>> demo_signal("list")[:3]
    ['Blocks', 'Bumps', 'HeaviSine']
    """
    if not isinstance(name, str):
        raise ArgumentTypeError(f"name must be a string, got {name!r}")
    key = name.lower()
    if key == "list":
        return list(_SIGNALS)
    signals = {known.lower(): signal for known, signal in _SIGNALS.items()}
    if n is not None and (not isinstance(n, (int, float, np.number)) or n < 1 or n % 1):
        raise ArgumentError(f"n must be an integer of at least 1, got {n!r}")
    if key not in signals:
        raise UnknownNameError("signal", name, signals)
    if key in ("gabor", "sineoneoverx"):
        if n is not None:
            raise ArgumentError(f"the length of {name!r} is fixed; n must be None, got {n}")
        return signals[key](np.empty(0), 0)
    if n is None:
        raise ArgumentError(f"n must be provided for {name!r}: its number of samples")
    length = int(n)
    # Multiples of 1/n, whose rounding decides on which side of a jump a sample lies.
    return signals[key](np.arange(1 / length, 1 + 1 / length, 1 / length)[:length], length)


def _blocks(t: Reals, n: int) -> Signal:
    jumps = zip(PLACES, JUMPS, strict=True)
    return sum((height * (1 + np.sign(t - place)) / 2 for place, height in jumps), np.zeros_like(t))


def _bumps(t: Reals, n: int) -> Reals:
    bumps = zip(PLACES, HEIGHTS, WIDTHS, strict=True)
    return sum((h / (1 + np.abs((t - place) / width)) ** 4 for place, h, width in bumps), np.zeros_like(t))


def _heavisine(t: Reals, n: int) -> Signal:
    return 4 * np.sin(4 * np.pi * t) - np.sign(t - 0.3) - np.sign(0.72 - t)


def _doppler(t: Reals, n: int) -> Signal:
    return np.sqrt(np.maximum(t * (1 - t), 0)) * np.sin(2.1 * np.pi / (t + 0.05))


def _ramp(t: Reals, n: int) -> Signal:
    return t - (t >= 0.37)


def _sine(frequency: float, power: int = 1) -> Callable[[Reals, int], Signal]:
    """Return the signal sin(π · frequency · n · t**power): a tone, or a chirp."""
    return lambda t, n: np.sin(np.pi * frequency * n * t**power)


def _sum(*signals: Callable[[Reals, int], Signal]) -> Callable[[Reals, int], Signal]:
    return lambda t, n: np.sum([signal(t, n) for signal in signals], axis=0)


def _rise(count: int, last: float) -> Reals:
    """Return samples that rise from 0 to 1 as a half period of a sine, which ends at ``last``."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return (1 + np.sin(np.pi * (np.arange(count) / last - 0.5))) / 2


def _hyperbolic_chirps(t: Reals, n: int) -> Signal:
    t = (np.arange(1, n + 1) + 0.001) / n
    low, high = 5 * np.pi * n / 1024, 15 * np.pi * n / 1024
    chirps = np.sin(high / (0.8 - t)) * (t > 0.1) * (t < 0.68) + np.sin(low / (0.8 - t)) * (t > 0.1) * (
        t < 0.75
    )
    size, begin = round(0.65 * n), -(-n // 10) - 1
    window, ramp = np.zeros(n), _rise(size // 4, size // 4 - 1)
    window[begin : begin + size] = 1
    window[begin : begin + ramp.size] = ramp
    window[begin + size - ramp.size : begin + size] = ramp[::-1]
    windowed: Signal = chirps * window
    return windowed


def _linear_chirps(t: Reals, n: int) -> Signal:
    t = np.arange(1, n + 1) / n
    offset, rate = 100 * np.pi * n / 1024, 250 * np.pi * n / 1024
    chirps = np.cos(rate * t**2) + np.cos(offset * t + rate * t**2)
    windowed: Signal = np.sqrt((t - 1 / n) * (1 - t)) * chirps
    return windowed


def _chirps(t: Reals, n: int) -> Signal:
    t, unit = np.arange(1, n + 1) / n, n / 1024
    bell = np.exp(-4 * unit * (20 * np.arange(-n, n + 1) / n) ** 2)
    total = np.cos((10 * np.pi * t) ** 2 * unit) + np.cos(30 * unit * (np.pi * t) ** 3)[::-1]
    total += bell[n // 2 : n // 2 + n] * np.cos(50 * np.pi * unit * t)
    total += bell[n // 8 : n // 8 + n] * np.cos(350 * np.pi * unit * t)
    ramp = _rise(n // 8, n / 8 - 1)
    total[: ramp.size] *= ramp
    total[n - ramp.size :] *= ramp[::-1]
    return total


def _piecewise_regular(t: Reals, n: int) -> Signal:
    third, half, fifth, seventh = n // 3, n // 2, n // 5, n // 7
    twelfth, twentieth = n // 12, n // 20
    bell = -70 * np.exp(-((np.arange(1, third + 1) / third - 0.5) ** 2) / (2 * (6 / 40) ** 2))
    cusp = -np.exp(4 * np.arange(1, twelfth + 1) / twelfth)
    total = np.zeros(n)
    total[:third] = bell
    total[seventh:fifth] /= 2
    total[third:half] = -15 * _bumps(t, n)[third:half]
    total[half : half + twelfth] = cusp
    total[half + twelfth : half + 2 * twelfth] = cusp[::-1]
    plateau = half + 2 * twelfth + twentieth
    end = plateau + 2 * twentieth
    total[plateau:end] = -25
    total[end : end + seventh] = np.exp(4 * np.arange(1, seventh + 1) / seventh) - np.exp(4)
    _mirror_beginning(total, 5 * fifth)
    total -= total.mean()
    return -total


def _piecewise_polynomial(t: Reals, n: int) -> Signal:
    fifth, tenth, twentieth = n // 5, n // 10, n // 20
    u = np.arange(1, fifth + 1) / fifth
    pieces = (
        20 * (u**3 + u**2 + 4),
        (10 * u**3 + 45)[::-1],
        40 * (2 * u**3 + u) + 100,
        16 * u**2 + 8 * u + 16,
        (20 * (u + 4))[::-1],
    )
    total = np.zeros(n)
    total[: 5 * fifth] = np.concatenate(pieces)
    _mirror_beginning(total, 5 * fifth)
    total[twentieth : twentieth + tenth] = 10
    total[n - tenth : n - tenth + twentieth] = 150
    total -= total.mean()
    return total


def _mirror_beginning(signal: Signal, place: int) -> None:
    """Fill the samples from a place on with the first ones, reversed."""
    signal[place:] = signal[: signal.size - place][::-1]


def _riemann(t: Reals, n: int) -> Signal:
    k = np.arange(1, int(n**0.5) + 1)
    spectrum = np.zeros(n)
    spectrum[k * k - 1] = 1 / k
    return np.fft.ifft(spectrum).real


def _gabor(t: Reals, n: int) -> Signal:
    n = 512
    t, bell = np.arange(1, n + 1) / n, np.exp(-20 * (5 * np.arange(-n, n + 1) / n) ** 2)
    slow = bell[n // 2 : n // 2 + n] * np.exp(1j * np.pi * (n // 16) * t)
    fast = bell[n // 4 : n // 4 + n] * np.exp(1j * np.pi * (n // 4) * t)
    total: Signal = 3 * (slow + fast)
    return total


def _sine_of_inverse(t: Reals, n: int) -> Signal:
    n = 1024
    x = np.arange(1 - n, n + 1, dtype=np.float64)
    x[n - 1] = 0.01  # in place of zero
    return np.sin(1.5 * (n - 1) / x)[n // 2 : n // 2 + n]


_SIGNALS: dict[str, Callable[[Reals, int], Signal]] = {
    "Blocks": _blocks,
    "Bumps": _bumps,
    "HeaviSine": _heavisine,
    "Doppler": _doppler,
    "Ramp": _ramp,
    "HiSine": _sine(0.6902),
    "LoSine": _sine(0.3333),
    "LinChirp": _sine(0.5, 2),
    "TwoChirp": _sum(_sine(1, 2), _sine(1 / 3, 2)),
    "QuadChirp": _sine(1 / 3, 3),
    "MishMash": _sum(_sine(1 / 3, 3), _sine(0.6902), _sine(0.125, 2)),
    "WernerSorrows": _sum(_sine(0.5, 3), _sine(0.6902), _sine(1, 2), _bumps),
    "HypChirps": _hyperbolic_chirps,
    "LinChirps": _linear_chirps,
    "Chirps": _chirps,
    "Gabor": _gabor,
    "sineoneoverx": _sine_of_inverse,
    "Piece-Regular": _piecewise_regular,
    "Piece-Polynomial": _piecewise_polynomial,
    "Riemann": _riemann,
}


def _file(name: str) -> Signal | None:
    """Return the array in a file of PyWavelets, or None where it is not installed."""
    for folder in sys.path:
        path = Path(folder, "pywt", "data", f"{name}.npz")
        if path.is_file():
            with np.load(path) as arrays:
                return np.asarray(arrays["data"])
    return None


def _required(name: str) -> Signal:
    array = _file(name)
    if array is None:
        raise MissingExtraError(
            f"{name}.npz is a file of PyWavelets, which is not installed; run pip install PyWavelets"
        )
    return array


def ascent() -> Signal:
    """Return the image of a person on stairs, 512 × 512, uint8.

    Returns
    -------
    ndarray
        Read from an installed PyWavelets.

    Examples
    --------
    >>> ascent().shape
    (512, 512)
    """
    return _required("ascent")


def aero() -> Signal:
    """Return an aerial image, 512 × 512, uint8.

    Returns
    -------
    ndarray
        Read from an installed PyWavelets.

    Examples
    --------
    >>> aero().shape
    (512, 512)
    """
    return _required("aero")


def camera() -> Signal:
    """Return the image of a photographer, 512 × 512, uint8.

    Returns
    -------
    ndarray
        Read from an installed PyWavelets, or else from scikit-image.

    Examples
    --------
    >>> camera().shape
    (512, 512)
    """
    array = _file("camera")
    if array is None:
        try:
            from skimage import data
        except ImportError:
            return _required("camera")
        array = np.asarray(data.camera())  # type: ignore[no-untyped-call]
    return array


def ecg() -> Signal:
    """Return an electrocardiogram, 1024 samples.

    Returns
    -------
    ndarray
        Read from an installed PyWavelets.

    Examples
    --------
    >>> ecg().shape
    (1024,)
    """
    return _required("ecg")


def nino() -> tuple[Signal, Signal]:
    """Return the sea surface temperature of the eastern Pacific in each quarter, from 1950 to 2016.

    Returns
    -------
    time : ndarray
        In years.
    sst : ndarray
        Means of three months in the region Niño 3, standardised. Read from an installed PyWavelets.

    Examples
    --------
    >>> time, sst = nino()
    >>> time.shape == sst.shape, float(time[0])
    (True, 1950.0)
    """
    months = _required("sst_nino3")
    years = len(months) // 12
    quarters = months[: 12 * years, 4].reshape(-1, 3).mean(axis=1)  # Column 4 is the region Niño 3.
    sst = (quarters - quarters.mean()) / quarters.std(ddof=1)
    return 1950 + np.arange(sst.size) / 4, sst
