"""The filters as functions: good without an argument, and as far as one wants with some."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from ..inputs import numpy_array
from ..plans import dwtn_max_level
from ..transforms import wavedecn, waverecn
from ..transforms.arrays import as_array
from ..wavelets import Wavelet, as_wavelet
from .arrays import HOST, arrays_for, rounding_of
from .noise import sigma_of
from .pipeline import Pipeline, valid_levels
from .speckle import KINDS
from .stages import Contrast, Gain, Laplace, Shrink, Stage, Unsharp
from .subjects import AUTO, Subject

__all__ = [
    "denoise",
    "denoise_wavelet",
    "despeckle",
    "enhance",
    "enhancing",
    "sharpen",
    "sharpening",
]


def denoise(
    image: Any,
    sigma: Any = None,
    *,
    method: str = "bivariate",
    strength: float = 1.0,
    wavelet: str | Wavelet = "db2",
    level: int | None = None,
    rule: str = "soft",
    invariant: bool | int = 2,
    regions: int | None = None,
    color: str = "ycbcr",
    channel_axis: int | str | None = AUTO,
    axes: Sequence[int] | None = None,
    mask: Any = None,
    backend: str = "auto",
) -> Any:
    """Takes the noise out of an image, a volume or a batch of them.

    Parameters
    ----------
    image : array
        Integers come back as the same integers, floats as floats; on a GPU (CuPy, PyTorch, JAX) it stays
        there.
    sigma : number, one for each channel, or an array of the shape of the image; optional
        The standard deviation of the noise, in units of the image; estimated if not given. 0 is for no noise.
    method : str
        ``bivariate`` is the best, ``block`` near it; ``bayes``, ``sure``, ``hybrid``, ``minimax`` and
        ``universal`` choose thresholds.
    strength : number
        Above 1 more is taken out.
    wavelet : str or Wavelet
    level : int, optional
    rule : str
        For methods with thresholds: ``soft``, ``hard``, ``garrote``, ``firm``.
    invariant : bool or int
        How many of the finest levels have all shifts: True for every level, 0 or False for none, which is
        several times faster and leaves artefacts at edges.
    regions : int, optional
        The noise is estimated in regions of so many samples along each axis, where it differs over the image.
    color : str
        ``ycbcr`` or ``channels``.
    channel_axis, axes, mask, backend
        As for :class:`undula.Pipeline`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = np.add.outer(np.arange(64.0), np.arange(64.0))
    >>> noisy = clean + 5 * rng.standard_normal(clean.shape)
    >>> better = denoise(noisy)
    >>> bool(np.std(better - clean) < 0.4 * np.std(noisy - clean))
    True
    """
    if method == "given":
        raise ArgumentError("thresholds of one's own belong to a Pipeline: Shrink('given', threshold=...)")
    pipeline = Pipeline(
        wavelet, level, [Shrink(method, rule, strength=strength)], invariant=invariant, color=color
    )
    told = {"channel_axis": channel_axis, "axes": axes, "mask": mask, "backend": backend}
    if regions is not None or (sigma is not None and np.ndim(sigma) > 1):
        return _by_map(pipeline, image, _noise_map(image, sigma, regions, channel_axis, axes, mask), told)
    return pipeline(image, sigma=sigma, **told)


def _by_map(pipeline: Pipeline, image: Any, noise: NDArray[Any], told: dict[str, Any]) -> Any:
    """Noise that differs from place to place: the image for several amounts of noise, and between them."""
    subject = Subject(image, told["channel_axis"], told["axes"], "channels", told["mask"])
    shown = noise if subject.keep is None else noise[subject.keep]
    least, most = max(float(shown.min()), 1e-6 * float(shown.max()), 1e-300), float(shown.max())
    if most <= 0:
        return pipeline(image, sigma=0.0, **told)
    count = min(9, 1 + math.ceil(2 * math.log2(most / least) - 1e-9)) if most > least else 1
    steps = np.geomspace(least, most, count)
    floats = Subject(image, told["channel_axis"], told["axes"], "channels").given.astype(subject.working)
    place = np.interp(np.log(np.maximum(noise, least)), np.log(steps), np.arange(count))
    total = np.zeros(noise.shape, subject.working)
    for number, sigma in enumerate(steps):
        weight = np.clip(1 - np.abs(place - number), 0, 1).astype(subject.working)
        if weight.any():
            total += weight * np.nan_to_num(pipeline(floats, sigma=float(sigma), **told))
    return subject.restored(total)


def _noise_map(
    image: Any, sigma: Any, regions: int | None, channel_axis: Any, axes: Any, mask: Any
) -> NDArray[Any]:
    """The noise at every sample."""
    if not arrays_for(image).host:
        raise ArgumentTypeError(
            "noise that differs over the image is found on the host; bring the image there"
        )
    given = as_array(image, "image")
    if sigma is not None:
        wide = numpy_array(sigma, "sigma").astype(np.float64)
        if regions is not None:
            raise ArgumentError("sigma is given, so regions has nothing to estimate; pass one of them")
        if wide.shape != given.shape:
            raise ArgumentError(
                f"sigma is a number or has the shape of the image, {given.shape}; got {wide.shape}"
            )
        if not np.isfinite(wide).all() or (wide < 0).any():
            raise ArgumentError("sigma must not be negative, and a number everywhere")
        return wide
    if isinstance(regions, bool) or not isinstance(regions, (int, np.integer)) or regions < 8:
        raise ArgumentError(f"regions are at least 8 samples wide, got {regions!r}")
    subject = Subject(image, channel_axis, axes, "channels", mask)
    return np.asarray(subject.spread_map(_regional(subject, int(regions))))


def _regional(subject: Subject, size: int) -> NDArray[Any]:
    """The noise of regions, between their middles a smooth way from one to the next."""
    from ..transforms import dwtn

    places = subject.places
    axes = tuple(range(1, 1 + places))
    band = np.abs(dwtn(subject.planes, "db2", axes=axes)["d" * places])
    if subject.valid is not None:  # (zeros are not counted)
        band *= valid_levels(HOST, subject.valid, [{"d": band}], places, as_wavelet("db2"), False)[0]
    shape = subject.planes.shape[1:]
    counts = [max(1, round(n / size)) for n in shape]
    found = np.empty((band.shape[0], *counts))
    for where in np.ndindex(*found.shape):
        cut = tuple(
            slice(n * k // c, max(n * (k + 1) // c, n * k // c + 1))
            for n, k, c in zip(band.shape[1:], where[1:], counts, strict=True)
        )
        found[where] = sigma_of(HOST, np.ascontiguousarray(band[(where[0], *cut)])[None])[0]
        if subject.valid is not None and not band[(where[0], *cut)].any():
            found[where] = np.nan
    for item in found:  # what nothing is known of is as noisy as the rest
        unknown = np.isnan(item)
        item[unknown] = np.median(item[~unknown]) if not unknown.all() else 0.0
    floor = max(float(found.max()) * 1e-3, 1e-12)
    found = np.maximum(found, floor)
    for axis, (n, c) in enumerate(zip(shape, counts, strict=True), 1):
        middles = (np.arange(c) + 0.5) * n / c - 0.5
        at = np.clip(np.interp(np.arange(n), middles, np.arange(c)), 0, c - 1)
        low = np.floor(at).astype(int)
        high = np.minimum(low + 1, c - 1)
        share = (at - low).reshape([-1 if a == axis else 1 for a in range(found.ndim)])
        found = np.take(found, low, axis) * (1 - share) + np.take(found, high, axis) * share
    return found


def despeckle(
    image: Any,
    *,
    kind: str = "intensity",
    looks: float | None = None,
    strength: float = 1.0,
    method: str = "bivariate",
    wavelet: str | Wavelet = "db2",
    level: int | None = None,
    invariant: bool | int = 2,
    noise: str | None = None,
    channel_axis: int | str | None = AUTO,
    axes: Sequence[int] | None = None,
    mask: Any = None,
    backend: str = "auto",
) -> Any:
    """Takes speckle out of ultrasound, radar or OCT images.

    Parameters
    ----------
    image : array
        Not negative, where logarithms are taken. Zeros have none, and are what is around the sector of an
        ultrasound image: they stay zeros, and out of all statistics.
    kind : str
        ``intensity`` or ``amplitude`` of waves, whose logarithm is filtered; ``log`` for images that are
        logarithms already, as those on the screen of an ultrasound machine are.
    looks : number, optional
        How many looks were averaged: how much noise there is, known. Estimated if not given.
    strength : number
        Above 1 more is taken out; 0.5 keeps the texture of tissue.
    noise : str, optional
        ``white`` for speckle of single pixels; ``bands`` for speckle that is larger than pixels, as in images
        that were interpolated: this is usual for ``log``, and so are two levels. What is nearly black says
        nothing about it, and is not counted.
    method, wavelet, level, invariant, channel_axis, axes, mask, backend
        As for :func:`denoise`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> speckled = 100 * rng.gamma(4, 1 / 4, (128, 128))
    >>> made = despeckle(speckled)
    >>> bool(made.std() < 0.3 * speckled.std()), bool(abs(made.mean() - 100) < 3)
    (True, True)
    """
    if kind not in KINDS:
        raise UnknownNameError("kind of speckle", kind, KINDS)
    sigma = None
    if looks is not None:
        from .speckle import trigamma

        if (
            isinstance(looks, bool)
            or not isinstance(looks, (int, float, np.number))
            or not 0 < looks < math.inf
        ):
            raise ArgumentError(f"looks must be a number above 0, got {looks!r}")
        if kind == "log":
            raise ArgumentError("looks tell the noise of intensities and amplitudes, not of kind='log'")
        sigma = float(np.sqrt(trigamma(float(looks)))) * (1.0 if kind == "intensity" else 0.5)
    if noise is None:
        noise = "bands" if kind == "log" else "white"
    if kind == "log":
        level = 2 if level is None else level  # (grains of a few pixels; what is larger is tissue)
    stage = Shrink(method, strength=strength, noise=noise)
    pipeline = Pipeline(
        wavelet,
        level,
        [stage],
        invariant=invariant,
        speckle=kind,
        looks=None if looks is None else float(looks),
    )
    return pipeline(image, sigma=sigma, channel_axis=channel_axis, axes=axes, mask=mask, backend=backend)


def sharpen(
    image: Any,
    amount: float = 1.0,
    *,
    method: str = "unsharp",
    sigma: float = 1.0,
    channel_axis: int | str | None = AUTO,
    axes: Sequence[int] | None = None,
    mask: Any = None,
    backend: str = "auto",
) -> Any:
    """Makes edges steeper.

    Parameters
    ----------
    image : array
    amount : number
        0 for nothing.
    method : str
        ``unsharp`` adds what a Gaussian blur of ``sigma`` takes away; ``laplace`` and ``diagonal`` subtract
        the Laplacian of 4 or 8 neighbours, a tenth of it for an ``amount`` of 1; ``wavelet`` brings out fine
        details and leaves noise alone.

    Examples
    --------
    >>> step = np.repeat([[0.0, 1.0]], 8, axis=0).repeat(4, axis=1)
    >>> bool(sharpen(step).max() > 1)
    True
    """
    pipeline = sharpening(amount, method, sigma)
    return pipeline(image, channel_axis=channel_axis, axes=axes, mask=mask, backend=backend)


def sharpening(amount: float = 1.0, method: str = "unsharp", sigma: float = 1.0) -> Pipeline:
    """The pipeline of :func:`sharpen`."""
    if isinstance(amount, bool) or not isinstance(amount, (int, float, np.number)) or not amount >= 0:
        raise ArgumentError(f"amount must be a number from 0 on, got {amount!r}")
    methods: dict[str, Sequence[Stage]] = {
        "unsharp": [Unsharp(sigma, amount)],
        "laplace": [Laplace(0.1 * amount)],
        "diagonal": [Laplace(0.1 * amount, "diagonal")],
        "wavelet": [Contrast(0.25, 1.0 + amount), Gain((1 + 0.5 * amount, 1 + 0.25 * amount, 1.0))],
    }
    if method not in methods:
        raise UnknownNameError("method", method, tuple(methods))
    return Pipeline("bior4.4", None, methods[method])


def enhance(
    image: Any,
    amount: float = 0.4,
    *,
    denoise: bool = True,
    wavelet: str | Wavelet = "bior4.4",
    level: int | None = None,
    most: float = 3.0,
    channel_axis: int | str | None = AUTO,
    axes: Sequence[int] | None = None,
    mask: Any = None,
    backend: str = "auto",
) -> Any:
    """Brings out weak structures at all scales, and takes some noise out before.

    Parameters
    ----------
    image : array
    amount : number
        From 0, nothing, to 1, all details alike.
    denoise : bool
        Whether noise is taken out first.
    most : number
        What no detail is multiplied with more than.

    Examples
    --------
    >>> image = 100 + 5 * np.sin(np.arange(64) / 3) * np.ones((64, 1))
    >>> bool(enhance(image).std() > image.std())
    True
    """
    pipeline = enhancing(amount, denoise, wavelet, level, most)
    return pipeline(image, channel_axis=channel_axis, axes=axes, mask=mask, backend=backend)


def enhancing(
    amount: float = 0.4,
    denoise: bool = True,
    wavelet: str | Wavelet = "bior4.4",
    level: int | None = None,
    most: float = 3.0,
) -> Pipeline:
    """The pipeline of :func:`enhance`."""
    if not isinstance(denoise, (bool, np.bool_)):
        raise ArgumentTypeError(f"denoise is True or False, got {denoise!r}")
    stages: list[Stage] = [Shrink("bayes", strength=0.7)] if denoise else []
    return Pipeline(wavelet, level, [*stages, Contrast(amount, most)])


# --- as scikit-image has it -----------------------------------------------------------------------


def denoise_wavelet(
    image: ArrayLike,
    sigma: Any = None,
    wavelet: str | Wavelet = "db1",
    mode: str = "soft",
    wavelet_levels: int | None = None,
    convert2ycbcr: bool = False,
    method: str = "BayesShrink",
    rescale_sigma: bool = True,
    *,
    channel_axis: int | None = None,
) -> NDArray[Any]:
    """Wavelet denoising with the arguments and the results of ``skimage.restoration.denoise_wavelet``.

    Integer images become floats from 0 to 1 (or from -1, where they are signed), as there. For the best
    result rather than the same one, see :func:`denoise`. Where sigma is estimated and a picture has even
    parts, results may differ: see :func:`estimate_sigma`.

    Parameters
    ----------
    image : array_like
    sigma : number or one for each channel, optional
        The noise; estimated from the finest diagonal band if not given.
    wavelet : str or Wavelet
    mode : "soft" or "hard"
    wavelet_levels : int, optional
        Three fewer than there could be, if not given.
    convert2ycbcr : bool
        Channels become YCbCr, each scaled to 0 … 1 while it is filtered.
    method : "BayesShrink" or "VisuShrink"
    rescale_sigma : bool
        Whether sigma is in units of an image of integers.
    channel_axis : int, optional

    Examples
    --------
    >>> noisy = np.random.default_rng(0).standard_normal((64, 64)) * 0.1 + 0.5
    >>> bool(denoise_wavelet(noisy).std() < 0.05)
    True
    """
    x = as_array(image, "image")
    if method not in ("BayesShrink", "VisuShrink"):
        raise UnknownNameError("method", method, ("BayesShrink", "VisuShrink"))
    if mode not in ("soft", "hard"):
        raise UnknownNameError("mode", mode, ("soft", "hard"))
    if x.ndim == 0 or x.size == 0:
        raise ArgumentError(f"an image with samples is needed, got shape {x.shape}")
    if x.dtype.kind == "c":
        raise ArgumentTypeError(f"images are real numbers, got {x.dtype}")
    if channel_axis is None and convert2ycbcr:
        raise ArgumentError("convert2ycbcr requires channel_axis to be set")
    if x.dtype.kind == "f" and not np.isfinite(x).any():
        raise ArgumentError("no sample is a number")
    if wavelet_levels is not None and wavelet_levels < 1:
        raise ArgumentError(f"wavelet_levels must be 1 or more, got {wavelet_levels!r}")
    own = as_wavelet(wavelet)
    if not own.orthogonal:
        warnings.warn(
            f"thresholds are meant for orthogonal wavelets, which {own.name} is not; undula.denoise knows how"
            " noise spreads over the bands of any wavelet",
            stacklevel=2,
        )
    channels = 1
    if channel_axis is not None:
        if not -x.ndim <= channel_axis < x.ndim:
            raise ArgumentError(f"channel_axis must be from {-x.ndim} to {x.ndim - 1}, got {channel_axis}")
        x = np.moveaxis(x, channel_axis, 0)
        channels = x.shape[0]
    sigmas = _each(sigma, channels)
    whole = x.dtype.kind != "f"
    signed = False
    if whole:
        before = np.ptp(x) if x.dtype.kind != "b" else 1
        signed = bool((x < 0).any())
        x = _as_float(x)
        if rescale_sigma and before:
            factor = float(np.ptp(x)) / float(before)
            sigmas = [None if s is None else s * factor for s in sigmas]
    elif x.dtype.itemsize < 4:
        x = x.astype(np.float32)
    planes = x if channel_axis is not None else x[None]
    if convert2ycbcr:
        made = _in_ycbcr(planes, own, mode, wavelet_levels, method, sigmas, rescale_sigma)
    else:
        parts = [
            _shrunk(plane, own, mode, wavelet_levels, method, s)
            for plane, s in zip(planes, sigmas, strict=True)
        ]
        made = parts[0][None] if len(parts) == 1 else np.stack(parts)
    if whole:
        np.clip(made, -1 if signed else 0, 1, out=made)
    return made[0] if channel_axis is None else np.moveaxis(made, 0, channel_axis)


def _each(sigma: Any, channels: int) -> list[float | None]:
    """The noise of each channel."""
    if sigma is None:
        return [None] * channels
    given = np.atleast_1d(numpy_array(sigma, "sigma")).astype(np.float64)
    if given.size not in (1, channels):
        raise ArgumentError(f"sigma is a number, or one for each of {channels} channels; got {given.size}")
    if not np.isfinite(given).all() or (given < 0).any():
        raise ArgumentError(f"sigma must not be negative, got {sigma!r}")
    return [float(s) for s in np.broadcast_to(given, (channels,))]


def _as_float(x: NDArray[Any]) -> NDArray[Any]:
    """Integers from 0 to 1, signed ones from -1; float64 as scikit-image makes them."""
    if x.dtype.kind == "b":
        return x.astype(np.float64)
    return np.maximum(x / np.float64(np.iinfo(x.dtype).max), -1.0)


def _shrunk(
    plane: NDArray[Any], wavelet: Wavelet, mode: str, levels: int | None, method: str, sigma: float | None
) -> NDArray[Any]:
    """One channel, in the way of scikit-image."""
    if levels is None:
        levels = max(dwtn_max_level(plane.shape, wavelet) - 3, 1)
    plane = np.ascontiguousarray(plane)
    low, *details = wavedecn(plane, wavelet, level=levels)
    if sigma is None:
        least = rounding_of(HOST, low[None], levels, plane.ndim)
        sigma = float(sigma_of(HOST, details[-1]["d" * plane.ndim][None], 1.0, least)[0])
    bands = [band[None] for found in details for band in found.values()]
    limits = [sigma * math.sqrt(2 * math.log(plane.size))] * len(bands)
    if method == "BayesShrink":
        least = float(np.finfo(low.dtype).eps)
        energies = [float(e[0]) / band.size for e, band in zip(HOST.energies(bands), bands, strict=True)]
        limits = [sigma * sigma / math.sqrt(max(energy - sigma * sigma, least)) for energy in energies]
    HOST.shrink(bands, mode, limits, limits, own=True)  # (in place)
    return waverecn([low, *details], wavelet, shape=plane.shape).astype(plane.dtype, copy=False)


# Rec. 601 from 0 … 1 to 16 … 235 and 16 … 240.
_YCBCR = np.array(
    [[65.481, 128.553, 24.966], [-37.797, -74.203, 112.0], [112.0, -93.786, -18.214]],
)


def _in_ycbcr(
    planes: NDArray[Any],
    wavelet: Wavelet,
    mode: str,
    levels: int | None,
    method: str,
    sigmas: list[float | None],
    rescale: bool,
) -> NDArray[Any]:
    if planes.shape[0] != 3:
        raise ArgumentError(f"YCbCr has 3 channels, got {planes.shape[0]}")
    offset = np.array([16.0, 128.0, 128.0]).reshape(-1, *[1] * (planes.ndim - 1))
    mixed = np.tensordot(_YCBCR.astype(planes.dtype), planes, 1) + offset.astype(planes.dtype)
    if rescale and sigmas[0] is not None:
        squares = np.array([float(s or 0.0) ** 2 for s in sigmas])
        sigmas = [float(s) for s in np.sqrt((_YCBCR**2) @ squares)]
    for k in range(3):
        least, most = mixed[k].min(), mixed[k].max()
        span = most - least
        if span == 0:
            continue
        s = sigmas[k]
        part = (mixed[k] - least) / span
        mixed[k] = _shrunk(part, wavelet, mode, levels, method, None if s is None else s / float(span))
        mixed[k] = mixed[k] * span + least
    back = np.linalg.inv(_YCBCR).astype(planes.dtype)
    return np.asarray(np.tensordot(back, mixed - offset.astype(planes.dtype), 1))
