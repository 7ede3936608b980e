"""Compare random calls of Undula with the same calls of PyWavelets.

Each case is a function with random arguments: shapes, dtypes, memory orders, axes, modes, wavelets and
levels, some of them invalid. Values, shapes, dtypes and types of errors have to agree. A function is added by
one generator of arguments in ``CASES``; those that Undula does not have yet are left out.

    python tools/fuzz_pywavelets.py 20000
    python tools/fuzz_pywavelets.py 500 --only threshold --seed 7
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import undula

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
WAVELETS = "haar db2 db5 db38 sym4 sym13 coif1 bior1.3 bior2.2 bior3.1 bior6.8 rbio2.4 rbio3.9 dmey".split()
MODES = undula.MODES
DTYPES = "f4 f4 f8 f8 f8 c8 c16 f2 i1 u1 i4 i8 u8 ? >f8".split()
# Errors compare equal if both are of one of these: PyWavelets itself is not consistent about them.
KINDS = (ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError)


class Random:
    """Random arguments, from one generator."""

    def __init__(self, seed: list[int]) -> None:
        self.rng = np.random.default_rng(seed)

    def choice(self, values: Any) -> Any:
        """Return one of some values."""
        return values[int(self.rng.integers(len(values)))]

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return bool(self.rng.random() < probability)

    def integer(self, low: int, high: int) -> int:
        """Return an integer between two, both included."""
        return int(self.rng.integers(low, high + 1))

    def length(self) -> int:
        """Return the length of an axis."""
        return (
            self.choice([0, 1, 1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 40])
            if self.chance(0.7)
            else self.integer(2, 90)
        )

    def shape(self, dimensions: tuple[int, ...] = (1, 1, 2, 2, 3)) -> tuple[int, ...]:
        """Return a shape with one of these numbers of dimensions."""
        ndim = self.choice(dimensions)
        return tuple(min(self.length(), 90 if ndim < 3 else 12) for _ in range(ndim))

    def array(self, shape: tuple[int, ...] | None = None, dtype: str | None = None) -> Any:
        """Return samples in some memory order, or as a list."""
        shape = self.shape() if shape is None else shape
        dtype = dtype or self.choice(DTYPES)
        samples = self.rng.normal(0, 10, shape)
        if np.dtype(dtype).kind == "c":
            samples = samples + 1j * self.rng.normal(0, 10, shape)
        with np.errstate(invalid="ignore"):
            x = (np.abs(samples) if np.dtype(dtype).kind in "ub" else samples).astype(dtype)
        order = self.integer(0, 5)
        if order == 1:
            return np.asfortranarray(x)
        if order == 2:
            return np.repeat(x, 2, axis=-1)[..., ::2]
        if order == 3:
            return x[..., ::-1]
        if order == 4 and x.size < 200:
            return x.tolist()
        return x

    def wavelet(self) -> Any:
        """Return the name of a wavelet, rarely of none."""
        return "none" if self.chance(0.02) else self.choice(WAVELETS)

    def mode(self) -> Any:
        """Return a mode by name or number, rarely one that does not exist."""
        if self.chance(0.02):
            return self.choice(["none", -1, 9, None, 1.5])
        return self.integer(0, 8) if self.chance(0.1) else self.choice(MODES)

    def each(self, draw: Callable[[], Any], count: int) -> Any:
        """Return one value, or one for each axis."""
        return (
            draw() if self.chance(0.75) else [draw() for _ in range(self.choice([count, count, count, 1, 2]))]
        )

    def axis(self, ndim: int) -> int:
        """Return an axis, rarely one that does not exist."""
        return self.integer(-ndim, ndim - 1) if self.chance(0.97) else ndim

    def axes(self, ndim: int) -> Any:
        """Return some axes, or None for all."""
        if self.chance(0.5):
            return None
        count = self.integer(1, ndim) if self.chance(0.97) else 0
        drawn = [int(axis) for axis in self.rng.permutation(ndim)[:count]]
        if self.chance(0.05):
            drawn += drawn[:1]
        return tuple(axis - ndim if self.chance(0.3) else axis for axis in drawn)

    def level(self) -> int | None:
        """Return a number of levels, or None for as many as are useful."""
        return None if self.chance(0.3) else self.choice([-1, 0, 1, 1, 2, 2, 3, 4])


# --- the functions --------------------------------------------------------------------------------

# Bands are made by PyWavelets, so that both libraries get the same ones.
Maker = Callable[[Random, Any], Arguments]
CASES: dict[str, Maker] = {}


def case(*names: str) -> Callable[[Callable[[Random, Any, str], Arguments]], None]:
    """Register a generator of arguments for some functions."""

    def register(make: Callable[[Random, Any, str], Arguments]) -> None:
        for name in names:
            CASES[name] = lambda draw, pywt, name=name: make(draw, pywt, name)  # type: ignore[misc]

    return register


def _ndim(data: Any) -> int:
    return int(np.ndim(data)) or 1


def _bare(coeffs: Any, draw: Random) -> Any:
    """Drop, cut or replace a band now and then."""
    if draw.chance(0.8):
        return coeffs
    if isinstance(coeffs, dict):
        key = draw.choice(sorted(coeffs))
        return {**coeffs, key: draw.choice([None, coeffs[key][:-1], coeffs[key]])}
    place = draw.integer(0, len(coeffs) - 1)
    part = coeffs[place]
    if isinstance(part, (tuple, dict)) and draw.chance(0.7):
        new = _bare(part, draw)
    else:
        new = draw.choice([None, 5, np.ones(2)])
    return type(coeffs)([*coeffs[:place], new, *coeffs[place + 1 :]])


@case("dwt", "wavedec")
def _forward(draw: Random, pywt: Any, name: str) -> Arguments:
    data = draw.array()
    options: dict[str, Any] = {"mode": draw.mode(), "axis": draw.axis(_ndim(data))}
    if name == "wavedec":
        options["level"] = draw.level()
    return (data, draw.wavelet()), options


@case("dwt2", "dwtn", "wavedec2", "wavedecn")
def _forward_axes(draw: Random, pywt: Any, name: str) -> Arguments:
    data = draw.array()
    axes = draw.axes(_ndim(data))
    count = _ndim(data) if axes is None else len(axes)
    options: dict[str, Any] = {"mode": draw.each(draw.mode, count)}
    if name.endswith("n") or axes is not None:
        options["axes"] = axes
    if "dec" in name:
        options["level"] = draw.level()
    return (data, draw.each(draw.wavelet, count)), options


@case("idwt", "idwt2", "idwtn", "waverec", "waverec2", "waverecn")
def _inverse(draw: Random, pywt: Any, name: str) -> Arguments:
    forward = name[1:] if name.startswith("i") else name.replace("rec", "dec")
    while True:
        (data, wavelet), options = CASES[forward](draw, pywt)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                coeffs = getattr(pywt, forward)(data, wavelet, **options)
            break
        except Exception:
            continue
    options.pop("level", None)
    coeffs = _bare(coeffs, draw)
    if draw.chance(0.03):
        options["mode"] = draw.mode()
    return ((*coeffs, wavelet) if name == "idwt" else (coeffs, wavelet)), options


@case("downcoef")
def _downcoef(draw: Random, pywt: Any, name: str) -> Arguments:
    part, level = draw.choice("aadd") if draw.chance(0.97) else "f", draw.choice([1, 1, 2, 3, 0])
    data, mode = draw.array(draw.shape((1, 1, 1, 1, 2))), draw.mode()
    if mode in ("reflect", "antireflect", 6, 8) and (np.size(data) < 2 or level > 1):
        mode = "symmetric"  # PyWavelets never returns from the reflection of a single sample.
    return (part, data, draw.wavelet(), mode, level), {}


@case("upcoef")
def _upcoef(draw: Random, pywt: Any, name: str) -> Arguments:
    part, level = draw.choice("aadd") if draw.chance(0.97) else "f", draw.choice([1, 1, 2, 3, 0])
    data = draw.array(draw.shape((1, 1, 1, 1, 2)))
    return (part, data, draw.wavelet(), level, draw.choice([0, 0, 1, 5, 40, 1000])), {}


@case("fswavedecn", "fswaverecn")
def _fully_separable(draw: Random, pywt: Any, name: str) -> Arguments:
    data = draw.array()
    axes = draw.axes(_ndim(data))
    count = _ndim(data) if axes is None else len(axes)
    levels = draw.level() if draw.chance(0.6) else [draw.level() for _ in range(count)]
    options = {"mode": draw.each(draw.mode, count), "levels": levels, "axes": axes}
    return (data, draw.each(draw.wavelet, count)), options


@case("pad")
def _pad(draw: Random, pywt: Any, name: str) -> Arguments:
    x = draw.array()
    width = lambda: draw.choice([0, 1, 2, 3, 10, 30])  # noqa: E731
    widths: Any = width() if draw.chance(0.4) else (width(), width())
    if draw.chance(0.3):
        widths = [(width(), width()) for _ in range(_ndim(x))]
    mode = draw.choice(MODES) if draw.chance(0.97) else "none"
    if mode == "antisymmetric" and 0 in np.shape(x):  # PyWavelets would never return.
        mode = "zero"
    return (x, widths, mode), {}


@case("threshold")
def _threshold(draw: Random, pywt: Any, name: str) -> Arguments:
    mode = draw.choice("soft hard garrote garotte greater less none".split())
    value = draw.choice([0, 1, 2.5, 5, 10.0, -1, -2.5, np.float32(3), 1e9])
    substitute = draw.choice([0, 0, 0, 1, -2.5, 7])
    return (draw.array(), value, mode, substitute), {}


@case("threshold_firm")
def _threshold_firm(draw: Random, pywt: Any, name: str) -> Arguments:
    return (draw.array(), draw.choice([0, 1, 2.5, -1]), draw.choice([1, 5, 10.0, 1e9, np.inf])), {}


@case("dwt_max_level", "dwt_coeff_len")
def _lengths(draw: Random, pywt: Any, name: str) -> Arguments:
    length = draw.choice([draw.length(), draw.length(), 5.0, -1])
    taps = draw.choice([draw.integer(1, 40)] * 6 + [0, -3, 8.0, 2.5])
    if draw.chance(0.3) and name == "dwt_max_level":
        taps = draw.wavelet()
    return (length, taps, *([draw.choice(MODES)] if name == "dwt_coeff_len" else [])), {}


@case("dwtn_max_level", "wavedecn_shapes", "wavedecn_size")
def _shapes(draw: Random, pywt: Any, name: str) -> Arguments:
    shape = draw.shape()
    axes = draw.axes(len(shape))
    count = len(shape) if axes is None else len(axes)
    options: dict[str, Any] = {"axes": axes}
    if name != "dwtn_max_level":
        options |= {"mode": draw.each(draw.mode, count), "level": draw.level()}
    return (shape, draw.each(draw.wavelet, count)), options


@case("coeffs_to_array", "ravel_coeffs", "array_to_coeffs", "unravel_coeffs")
def _arranged(draw: Random, pywt: Any, name: str) -> Arguments:
    (coeffs, _), options = CASES[draw.choice(["waverec", "waverec2", "waverecn"])](draw, pywt)
    axes = options.get("axes") if draw.chance(0.7) else None
    options = {"axes": axes}
    if name == "coeffs_to_array":
        options["padding"] = draw.choice([0, 0, 3, None])
    if "to_coeffs" in name or name.startswith("un"):
        options["output_format"] = draw.choice(["wavedec", "wavedec2", "wavedecn", "none"])
    return (coeffs,), options


@case("qmf", "orthogonal_filter_bank")
def _filters(draw: Random, pywt: Any, name: str) -> Arguments:
    return (draw.array((draw.integer(0, 9),), draw.choice(["f4", "f8", "i8"])),), {}


def _even_array(draw: Random, dimensions: tuple[int, ...] = (1, 2, 3)) -> Any:
    """Return samples of which most have lengths that are multiples of eight."""
    shape = draw.shape(dimensions)
    if draw.chance(0.85):
        shape = tuple(8 * draw.integer(1, 5 if len(shape) < 3 else 2) for _ in shape)
    return draw.array(shape)


@case("swt", "mra")
def _stationary(draw: Random, pywt: Any, name: str) -> Arguments:
    data = _even_array(draw)
    options: dict[str, Any] = {
        "axis": draw.axis(_ndim(data)),
        "level": draw.choice([None, 1, 2, 2, 3, 0, -1]),
    }
    if name == "mra":
        options |= {"transform": draw.choice(["swt", "dwt"]), "mode": draw.choice(MODES)}
        if options["transform"] == "swt":
            options["mode"] = "periodization"
    else:
        options |= {
            "trim_approx": draw.chance(0.5),
            "norm": draw.chance(0.3),
            "start_level": draw.choice([0, 0, 1]),
        }
    return (data, draw.wavelet()), options


@case("swt2", "swtn")
def _stationary_axes(draw: Random, pywt: Any, name: str) -> Arguments:
    data = _even_array(draw, (2, 2, 3))
    axes = draw.axes(_ndim(data))
    if name == "swt2":
        axes = tuple(int(axis) for axis in draw.rng.permutation(_ndim(data))[:2])
    count = _ndim(data) if axes is None else len(axes)
    options = {"axes": axes, "trim_approx": draw.chance(0.5), "norm": draw.chance(0.3)}
    return (data, draw.each(draw.wavelet, count), draw.choice([1, 1, 2, 3, 0])), options


@case("mra2", "mran")
def _multiresolution(draw: Random, pywt: Any, name: str) -> Arguments:
    data = _even_array(draw, (2, 2, 3))
    axes = draw.axes(_ndim(data))
    if name == "mra2":
        axes = tuple(int(axis) for axis in draw.rng.permutation(_ndim(data))[:2])
    transform = "swt" if name == "mra2" else "swtn"
    if draw.chance(0.5):
        transform = transform.replace("s", "d", 1)
    mode = draw.mode() if transform.startswith("d") else "periodization"
    count = _ndim(data) if axes is None else len(axes)
    wavelet = draw.wavelet() if name == "mra2" else draw.each(draw.wavelet, count)
    level = draw.choice([None, 1, 1, 2, 2, 0, -1])
    options = {"level": level, "axes": axes, "transform": transform, "mode": mode}
    return (data, wavelet), options


@case("imra", "imra2", "imran")
def _multiresolution_inverse(draw: Random, pywt: Any, name: str) -> Arguments:
    shape = draw.shape({"imra": (1, 2), "imra2": (2, 3), "imran": (1, 2, 3)}[name])
    # PyWavelets adds to the first array in place, which then has to be one, of the dtype of the sum.
    dtype = draw.choice(["f4", "f8", "c16"])
    parts: list[Any] = [draw.rng.normal(0, 10, shape).astype(dtype)]
    for _ in range(draw.integer(0, 3)):
        arrays = [draw.rng.normal(0, 10, shape).astype(dtype) for _ in range(3)]
        keyed = dict(zip(("ad", "da", "dd")[: draw.integer(1, 3)], arrays, strict=False))
        parts.append({"imra": arrays[0], "imra2": tuple(arrays), "imran": keyed}[name])
    return (parts,), {}


@case("iswt", "iswt2", "iswtn")
def _stationary_inverse(draw: Random, pywt: Any, name: str) -> Arguments:
    while True:
        arguments, options = CASES[name[1:]](draw, pywt)
        options |= {"start_level": 0} if name == "iswt" else {}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                coeffs = getattr(pywt, name[1:])(*arguments, **options)
            break
        except Exception:
            continue
    kept = {key: options[key] for key in ("axis", "axes", "norm") if key in options}
    return (coeffs, arguments[1]), kept


@case("swt_max_level")
def _stationary_levels(draw: Random, pywt: Any, name: str) -> Arguments:
    return (draw.integer(0, 300),), {}


@case("cwt")
def _continuous(draw: Random, pywt: Any, name: str) -> Arguments:
    data = draw.rng.normal(0, 10, draw.shape((1, 1, 2)))
    scales = draw.choice([1, 2.5, [1, 2, 4], np.arange(1, 6), [3.3, 0.7]])
    wavelet = draw.choice("mexh morl gaus1 gaus4 cgau2 cmor1.5-1.0 shan1-1 fbsp2-1-1 none db2".split())
    options = {"method": draw.choice(["conv", "fft"]), "axis": draw.axis(data.ndim)}
    return (data, scales, wavelet), options


@case("WaveletPacket")
def _packets(draw: Random, pywt: Any, name: str) -> Arguments:
    # Lines that are long enough for three levels in every mode.
    data = draw.rng.normal(0, 10, 8 * draw.integer(2, 8) + draw.integer(0, 7))
    return (data, draw.choice("haar db2 sym4 bior2.2".split()), draw.choice(MODES)), {}


@case("WaveletPacket2D", "WaveletPacketND")
def _packets_of_images(draw: Random, pywt: Any, name: str) -> Arguments:
    ndim = draw.choice((2, 3))
    data = draw.rng.normal(0, 10, [4 * draw.integer(2, 5) + draw.integer(0, 3) for _ in range(ndim)])
    axes: Any = tuple(int(axis) - ndim for axis in draw.rng.permutation(ndim)[:2])
    if name == "WaveletPacketND":
        axes = draw.choice([None, axes, axes[:1]])
    return (data, draw.choice("haar db2 sym4 bior2.2".split()), draw.choice(MODES)), {"axes": axes}


@case("ContinuousWavelet", "DiscreteContinuousWavelet")
def _continuous_tables(draw: Random, pywt: Any, name: str) -> Arguments:
    families = (
        "mexh morl gaus1 gaus8 gaus9 cgau1 cgau8 cmor cmor1.5-1.0 cmor2 shan shan1-1 fbsp fbsp2-1-1 none"
    )
    if name == "DiscreteContinuousWavelet":
        families += " db2 sym4 bior2.2 dmey"
    return (draw.choice(families.split()), draw.integer(3, 9)), {}


@case("central_frequency", "scale2frequency", "frequency2scale", "integrate_wavelet")
def _frequencies(draw: Random, pywt: Any, name: str) -> Arguments:
    wavelet = draw.choice("mexh morl gaus2 cgau3 cmor1.5-1.0 shan1-1 fbsp2-1-1 db3 bior2.2 none".split())
    scales = (draw.choice([1, 0.25, [1, 2, 4], np.array([0.5, 3.0]), 0, -1]),) if "2" in name else ()
    return (wavelet, *scales), {"precision": draw.choice([6, 8, 10])}


@case("wavelist", "Wavelet")
def _tables(draw: Random, pywt: Any, name: str) -> Arguments:
    if name == "wavelist":
        return (draw.choice("haar db sym coif bior rbio dmey none".split()),), {"kind": "discrete"}
    return (draw.wavelet(),), {}


# Some functions take what another one returned, or return what has to be read.
def _fswaverecn(library: Any, *arguments: Any, **options: Any) -> Any:
    return library.fswaverecn(library.fswavedecn(*arguments, **options))


def _fswavedecn(library: Any, *arguments: Any, **options: Any) -> Any:
    result = library.fswavedecn(*arguments, **options)
    bands = {key: result[key] for key in result.detail_keys()}
    return result.coeffs, result.levels, result.modes, result.wavelet_names, tuple(result.axes), bands


def _array_to_coeffs(library: Any, coeffs: Any, output_format: str, axes: Any) -> Any:
    array, slices = library.coeffs_to_array(coeffs, axes=axes)
    return library.array_to_coeffs(array, slices, output_format)


def _unravel_coeffs(library: Any, coeffs: Any, output_format: str, axes: Any) -> Any:
    return library.unravel_coeffs(*library.ravel_coeffs(coeffs, axes=axes), output_format)


def _wavedecn_size(library: Any, *arguments: Any, **options: Any) -> Any:
    return int(library.wavedecn_size(library.wavedecn_shapes(*arguments, **options)))


def _wavelet(library: Any, name: str) -> Any:
    wavelet = library.Wavelet(name)
    names = "name family_name short_family_name orthogonal biorthogonal symmetry dec_len rec_len number"
    moments = [wavelet.vanishing_moments_psi, wavelet.vanishing_moments_phi]
    return [getattr(wavelet, key) for key in names.split()], moments, list(map(np.array, wavelet.filter_bank))


def _leaves(library: Any, data: Any, wavelet: str, mode: str) -> Any:
    packet = library.WaveletPacket(data, wavelet, mode, 2)
    nodes = packet.get_level(2, "freq")
    bands = [(node.path, node.data) for node in nodes]
    return bands, packet.maxlevel, packet.reconstruct(update=False)


def _leaves_of(name: str) -> Callable[..., Any]:
    def call(library: Any, data: Any, wavelet: Any, mode: str, axes: Any) -> Any:
        packet = getattr(library, name)(data, wavelet, mode, 2, axes)
        bands = [(node.path, node.level, node.data) for node in packet.get_leaf_nodes(True)]
        try:
            restored = packet.reconstruct(update=False)
        except IndexError:  # PyWavelets cannot cut the end off; what it restores would be the data.
            restored = data
        return bands, packet.maxlevel, restored

    return call


def _continuous_of(kind: str) -> Callable[..., Any]:
    def call(library: Any, name: str, level: int) -> Any:
        wavelet = getattr(library, kind)(name)
        names = "name family_name short_family_name orthogonal biorthogonal symmetry"
        if kind == "ContinuousWavelet":
            names += " complex_cwt lower_bound upper_bound"
        attributes = [getattr(wavelet, key) for key in names.split()]
        parameters = [getattr(wavelet, key, None) for key in ("center_frequency", "bandwidth_frequency")]
        order = getattr(wavelet, "fbsp_order", None)
        return attributes, parameters, order, list(wavelet.wavefun(level))

    return call


CALLS: dict[str, Callable[..., Any]] = {
    "WaveletPacket": _leaves,
    "WaveletPacket2D": _leaves_of("WaveletPacket2D"),
    "WaveletPacketND": _leaves_of("WaveletPacketND"),
    "ContinuousWavelet": _continuous_of("ContinuousWavelet"),
    "DiscreteContinuousWavelet": _continuous_of("DiscreteContinuousWavelet"),
    "fswaverecn": _fswaverecn,
    "fswavedecn": _fswavedecn,
    "array_to_coeffs": _array_to_coeffs,
    "unravel_coeffs": _unravel_coeffs,
    "wavedecn_size": _wavedecn_size,
    "Wavelet": _wavelet,
}

# --- comparison -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What a call returned, or the error that it raised."""

    result: Any = None
    error: Exception | None = None

    @staticmethod
    def of(library: Any, name: str, arguments: Arguments) -> Outcome:
        """Call a function of a library."""
        positional, named = arguments
        call = CALLS.get(name)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                if call is None:
                    return Outcome(getattr(library, name)(*positional, **named))
                return Outcome(call(library, *positional, **named))
            except Exception as error:
                return Outcome(error=error)


def differences(ours: Any, theirs: Any, scale: float, where: str = "result") -> Iterator[str]:
    """Yield what differs between two results; ``scale`` is the largest magnitude that came in."""
    if isinstance(theirs, Mapping):
        if not isinstance(ours, Mapping) or sorted(ours) != sorted(theirs):
            yield f"{where} has the keys {list(ours)!r:.60}, not {list(theirs)!r:.60}"
            return
        for key in theirs:
            yield from differences(ours[key], theirs[key], scale, f"{where}[{key!r}]")
    elif isinstance(theirs, (list, tuple)):
        if type(ours) is not type(theirs) or len(ours) != len(theirs):
            yield f"{where} is {ours!r:.60}, not {theirs!r:.60}"
            return
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(one, other, scale, f"{where}[{number}]")
    elif isinstance(theirs, np.ndarray):
        if not isinstance(ours, np.ndarray):
            yield f"{where} is {type(ours).__name__}, not an array"
        elif ours.shape != theirs.shape:
            yield f"{where} has shape {ours.shape}, not {theirs.shape}"
        elif ours.dtype != theirs.dtype.newbyteorder("="):  # Results have the byte order of the machine.
            yield f"{where} has dtype {ours.dtype}, not {theirs.dtype}"
        else:
            half = np.float16 in (ours.dtype, theirs.dtype)
            precise = (
                ours.dtype.itemsize // (2 if ours.dtype.kind == "c" else 1) > 4 or ours.dtype.kind in "iu"
            )
            tolerance = (1e-9 if precise else 1e-2 if half else 2e-4) * max(scale, 1e-300)
            rtol = 1e-6 if precise else 1e-3
            if half:  # Beyond this, rounding decides between the largest number and infinity.
                ours, theirs = np.clip(ours, -6e4, 6e4), np.clip(theirs, -6e4, 6e4)
            with np.errstate(over="ignore"):  # of a tolerance in float16
                same = np.allclose(ours, theirs, rtol=rtol, atol=tolerance, equal_nan=True)
            if not same:
                yield f"{where} has other values, off by {np.max(np.abs(ours - theirs)):.2g} of {scale:.2g}"
    elif ours != theirs:
        yield f"{where} is {ours!r:.80}, not {theirs!r:.80}"


def largest(value: Any) -> float:
    """Return the largest magnitude in nested arguments."""
    if isinstance(value, Mapping):
        return max(map(largest, value.values()), default=0.0)
    if isinstance(value, (list, tuple)) and not np.isscalar(value):
        return max(map(largest, value), default=0.0)
    if isinstance(value, (np.ndarray, int, float, complex)) and np.size(value):
        finite = np.abs(np.asarray(value, dtype=complex))
        return float(np.max(finite[np.isfinite(finite)], initial=0.0))
    return 0.0


def kind(error: Exception) -> type[Exception]:
    """Return the class of an error by which callers catch it."""
    return next((one for one in KINDS if isinstance(error, one)), type(error))


def verdict(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> str:
    """Return what differs between two outcomes; nothing if they agree."""
    if ours.error is None and theirs.error is None:
        scale = largest(arguments) * (100 if "smooth" in str(arguments[1]) + str(arguments[0][-2:]) else 1)
        # Extrapolation makes numbers that are far larger than the samples, with rounding errors to match.
        scale = max(scale, largest(theirs.result))
        return next(differences(ours.result, theirs.result, scale), "")
    if ours.error is None:
        return f"no error, not {type(theirs.error).__name__}: {str(theirs.error).splitlines()[:1]}"
    if theirs.error is None:
        return f"{type(ours.error).__name__}: {ours.error}"
    if not isinstance(ours.error, (undula.UndulaError,)):
        return f"{type(ours.error).__name__} is no error of Undula: {ours.error}"
    if kind(ours.error) is not kind(theirs.error):
        return f"{type(ours.error).__name__} for {type(theirs.error).__name__}: {ours.error}; {theirs.error}"
    return ""


# --- what differs on purpose ----------------------------------------------------------------------


@dataclass(frozen=True)
class Deliberate:
    """A difference that is meant: which calls, and why."""

    reason: str
    applies: Callable[[str, Arguments, Outcome, Outcome], bool]


def _unequal(ours: Outcome, theirs: Outcome) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    return np.asarray(ours.result), np.asarray(theirs.result)


def _no_level(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> bool:
    """Whether nothing was transformed, so that PyWavelets returned the samples as they came."""
    if not name.startswith(("wavedec", "waverec", "fswave", "mra")) or ours.error or theirs.error:
        return False
    result, expected = (r[0] if isinstance(r, (list, tuple)) else r for r in (ours.result, theirs.result))
    if (
        not isinstance(expected, np.ndarray)
        or result.shape != expected.shape
        or result.dtype == expected.dtype
    ):
        return False
    return result.dtype.kind in "fc" and np.allclose(result, expected, equal_nan=True)


def _unused(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> bool:
    """Whether PyWavelets did not look at an argument since it needed it not."""
    if ours.error is None or theirs.error is not None:
        return False
    if name.startswith(("waverec", "array_to", "unravel")):
        return len(arguments[0][0]) == 1
    return name in ("wavedec", "wavedec2", "wavedecn") and len(theirs.result) == 1


def _same_axis(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> bool:
    """Whether an axis is repeated, once from the start and once from the end, or no axis is left."""
    axes = arguments[1].get("axes")
    if axes == () and ours.error is not None:
        return True
    if axes is None or (ours.error is None) == (theirs.error is None):
        return False
    return not axes or (any(axis < 0 for axis in axes) and any(axis >= 0 for axis in axes))


def _errors(*classes: type[Exception]) -> Callable[[str, Arguments, Outcome, Outcome], bool]:
    return lambda name, arguments, ours, theirs: (
        isinstance(ours.error, (ValueError, TypeError))
        and isinstance(theirs.error, classes)
        and not isinstance(theirs.error, ValueError)
    )


def _wrong_nesting(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> bool:
    if not name.startswith(("idwt", "waverec", "coeffs_to", "ravel", "array_to", "unravel")):
        return False
    return isinstance(ours.error, ValueError) and isinstance(theirs.error, (TypeError, IndexError))


def _no_mode(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> bool:
    return isinstance(ours.error, TypeError) and "a mode is a name" in str(ours.error)


def _refused(*names: str) -> Callable[[str, Arguments, Outcome, Outcome], bool]:
    return lambda name, arguments, ours, theirs: (
        name in names and isinstance(ours.error, ValueError) and theirs.error is None
    )


def _accepted(*names: str) -> Callable[[str, Arguments, Outcome, Outcome], bool]:
    return lambda name, arguments, ours, theirs: (
        name in names and ours.error is None and theirs.error is not None
    )


def _any_analysis(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> bool:
    """Whether PyWavelets misses the shape of a list, or cannot invert the transform that it computed."""
    if name not in ("mra", "mra2", "mran") or ours.error is not None or theirs.error is None:
        return False
    if isinstance(arguments[0][0], list) and isinstance(theirs.error, (AttributeError, TypeError)):
        return True
    return arguments[1]["transform"].startswith("swt") and isinstance(theirs.error, (ValueError, IndexError))


def _not_finite(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> bool:
    """Whether PyWavelets divides by zero, or overflows integers of 8 or 16 bits, in a threshold."""
    if not name.startswith("threshold") or ours.error or theirs.error:
        return False
    result, expected = _unequal(ours, theirs)
    data = np.asarray(arguments[0][0])
    if result.dtype != expected.dtype:  # (a threshold has a dtype of its own)
        return isinstance(arguments[0][1], np.floating)
    return not np.isfinite(expected).all() or (data.dtype.kind in "iu" and data.itemsize < 8)


def _kept(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> bool:
    """Whether PyWavelets forgets large magnitudes, which it does if all are first along the first axis."""
    if name != "threshold_firm" or ours.error or theirs.error:
        return False
    x = np.asarray(arguments[0][0])
    large = np.abs(x) > arguments[0][2]
    return not np.where(large)[0].any() and np.allclose(np.asarray(ours.result)[large], x[large])


def _inconsistent(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> bool:
    """Whether coefficients that are not those of one transform are arranged in an array."""
    arranges = name in ("coeffs_to_array", "ravel_coeffs", "array_to_coeffs", "unravel_coeffs")
    return arranges and isinstance(ours.error, ValueError) and theirs.error is None


def _padding(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> bool:
    if name != "pad":
        return False
    x, mode = np.asarray(arguments[0][0]), arguments[0][2]
    return mode in ("smooth", "antisymmetric", "antireflect") and (
        x.dtype.kind in "biu"
        or x.dtype == np.float16
        or 1 in x.shape
        or 0 in x.shape
        or theirs.error is not None
    )


def _complex_list(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> bool:
    return isinstance(theirs.error, TypeError) and "complex" in str(theirs.error)


def _same_with_a_level(name: str, arguments: Arguments, ours: Outcome) -> bool:
    """Whether PyWavelets returns the same if it is told how many levels to compute."""
    import pywt

    for level in range(12):
        told = arguments[0], {**arguments[1], "level": level}
        outcome = Outcome.of(pywt, name, told)
        if outcome.error is None and not verdict(name, told, ours, outcome):
            return True
    return False


def _other_shapes(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> bool:
    """Whether ``wavedecn_shapes`` of PyWavelets takes another default level than its ``wavedecn``."""
    if name not in ("wavedecn_shapes", "wavedecn_size") or arguments[1]["level"] is not None or ours.error:
        return False
    return _same_with_a_level(name, arguments, ours)


def _missing_level(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> bool:
    return (
        ours.error is None
        and name in ("idwt2", "waverec2", "waverecn")
        and any(part is None for part in arguments[0][0][1:])
    )


def _approximation_alone(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> bool:
    return ours.error is None and name.startswith("iswt") and len(arguments[0][0]) == 1


def _cut_approximation(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> bool:
    if ours.error is not None or name != "waverecn" or not isinstance(arguments[0][0][1], dict):
        return False
    low, details = np.shape(arguments[0][0][0]), next(map(np.shape, arguments[0][0][1].values()))
    return all(n - m in (0, 1) for n, m in zip(low, details, strict=False))


def _number_as_band(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> bool:
    return name == "idwt" and ours.error is not None and any(np.ndim(band) == 0 for band in arguments[0][:2])


def _default_level(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> bool:
    options = arguments[1]
    if name != "swt" or ours.error or options["level"] is not None or options["start_level"] < 1:
        return False
    return _same_with_a_level(name, arguments, ours)


def _negative_level(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> bool:
    level = arguments[1].get("level")
    return isinstance(level, int) and level < 0 and isinstance(ours.error, ValueError)


def _repeated_axes_first(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> bool:
    mode = arguments[1].get("mode")
    wrong = isinstance(mode, (list, tuple)) and not all(isinstance(part, (str, int)) for part in mode)
    return wrong and "axes must be unique" in str(ours.error) and isinstance(theirs.error, TypeError)


def _refused_if_empty(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> bool:
    return name == "cwt" and isinstance(ours.error, ValueError) and 0 in np.shape(arguments[0][0])


def _no_samples(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> bool:
    inverse = name in ("idwt", "idwt2", "idwtn")
    return inverse and "too short" in str(ours.error) and 0 in np.shape(theirs.result)


ACCIDENTAL = (RuntimeError, KeyError, AttributeError, OverflowError, IndexError)
DELIBERATE = (
    Deliberate("without any level, coefficients are floats as they are with levels", _no_level),
    Deliberate("arguments are checked even where they are not used", _unused),
    Deliberate("an axis is the same axis counted from either end, and one is needed", _same_axis),
    Deliberate("None in place of a level stands for zeros", _missing_level),
    Deliberate("lists of complex numbers are transformed", _complex_list),
    Deliberate("what PyWavelets trips over is refused by a ValueError or TypeError", _errors(*ACCIDENTAL)),
    Deliberate("coefficients that are not nested as they should be are a ValueError", _wrong_nesting),
    Deliberate("a mode that is neither a name nor a number is a TypeError", _no_mode),
    Deliberate(
        "filters have a whole number of taps, and at least one",
        _refused("dwt_coeff_len", "orthogonal_filter_bank"),
    ),
    Deliberate(
        "array_like is taken as coefficients",
        _accepted("coeffs_to_array", "ravel_coeffs", "array_to_coeffs", "unravel_coeffs"),
    ),
    Deliberate("multiresolution analyses of lists, of any length and of no level", _any_analysis),
    Deliberate("thresholds keep the precision of the data, and zeros stay zeros", _not_finite),
    Deliberate("threshold_firm keeps all magnitudes above the second threshold", _kept),
    Deliberate("only coefficients of one transform are arranged in an array", _inconsistent),
    Deliberate("lines are padded as the DWT extends them, and integers do not wrap around", _padding),
    Deliberate("wavedecn_shapes has the levels of wavedecn", _other_shapes),
    Deliberate("an approximation alone is a stationary transform of no levels", _approximation_alone),
    Deliberate("an approximation that is one coefficient too long is cut", _cut_approximation),
    Deliberate("a number in place of a band is not taken for all of its coefficients", _number_as_band),
    Deliberate("a continuous transform needs samples", _refused_if_empty),
    Deliberate("bands that are too short for any sample are refused along any axis", _no_samples),
    Deliberate("the default level of swt is smaller after a start_level", _default_level),
    Deliberate("negative levels are refused", _negative_level),
    Deliberate(
        "repeated axes are named before a mode that is neither a name nor a number", _repeated_axes_first
    ),
)


def why(name: str, arguments: Arguments, ours: Outcome, theirs: Outcome) -> str:
    """Return the reason of a difference that is meant; nothing if it is not."""
    return next((d.reason for d in DELIBERATE if d.applies(name, arguments, ours, theirs)), "")


def run(count: int, seed: int = 0, only: str = "") -> tuple[Counter[str], Counter[str], list[str]]:
    """Compare ``count`` calls.

    Returns
    -------
    calls, meant : Counter
        The number of calls by function, and of differences by reason.
    wrong : list of str
        Differences that are not meant.
    """
    import pywt

    names = [name for name in CASES if only in name and hasattr(undula, name)]
    calls: Counter[str] = Counter()
    meant: Counter[str] = Counter()
    wrong = []
    for number in range(count):
        name = names[number % len(names)]
        draw = Random([seed, number])
        arguments = CASES[name](draw, pywt)
        ours, theirs = (Outcome.of(library, name, arguments) for library in (undula, pywt))
        calls[name] += 1
        difference = verdict(name, arguments, ours, theirs)
        reason = difference and why(name, arguments, ours, theirs)
        if reason:
            meant[reason] += 1
        elif difference:
            shown = ", ".join(
                [*map(short, arguments[0]), *(f"{k}={short(v)}" for k, v in arguments[1].items())]
            )
            wrong.append(f"{number} {name}({shown}): {difference}")
    return calls, meant, wrong


def short(value: Any) -> str:
    """Print an argument on one line."""
    if isinstance(value, np.ndarray):
        return f"<{value.dtype}{list(value.shape)}>"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {short(part)}" for key, part in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(map(short, value)):.90})"
    return repr(value)


def main() -> None:
    """Compare calls, and print a summary by function."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("count", nargs="?", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="call only functions whose names contain this")
    arguments = parser.parse_args()
    calls, meant, wrong = run(arguments.count, arguments.seed, arguments.only)
    failed = Counter(line.split()[1].partition("(")[0] for line in wrong)
    for line in wrong:
        print(line)
    for name, number in calls.items():
        print(f"{name:<24}{number:>8} calls{failed[name]:>6} differ")
    for reason, number in meant.most_common():
        print(f"{number:>8} on purpose: {reason}")
    print(f"{sum(calls.values())} calls, {len(wrong)} differ, {sum(meant.values())} differ on purpose")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
