"""Estimation of noise, and its distribution over the bands of a decomposition.

White noise of standard deviation σ has the standard deviation σ·‖f‖ in a band whose filters, cascaded, are f;
for orthogonal wavelets that is σ in every band. The finest diagonal band is mostly noise. The median of its
magnitudes gives a robust estimate, σ = median/0.6745, which the few large coefficients hardly influence.

Coefficients that are zero do not count, because backgrounds without noise have them. Drawings and text have
no noise, but coefficients at their edges, which have mostly zeros around them; those of noise have few. So σ
is multiplied by a share from 0 to 1, which grows with the density of coefficients that are not zero.
"""

from __future__ import annotations

import math
import warnings
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import given_array, library_of, refuse_gradients
from ..engines.base import Engine
from ..engines.dispatch import engine_for
from ..errors import ArgumentError, ArgumentTypeError
from ..lowering.axis_arguments import checked_axis
from ..lowering.graph import Graph
from ..lowering.symbolic import reduced, symbolic_input, symbolic_output, xp
from ..wavelets import Wavelet, as_wavelet
from .base import Details, Pyramid, argument
from .holes import valid_coefficients
from .operations import NORMAL_MEDIAN, OPERATIONS, rounding_floor
from .planes import largest_magnitude, unit_of
from .spectrum import NoiseSpectrum
from .transforms import PipelineTransform

__all__ = [
    "band_norms",
    "estimate_noise",
    "estimate_sigma",
    "estimated_noise",
    "finest_noise_share",
    "noise_argument",
    "noise_pyramid",
    "noise_share",
    "robust_sigma",
]

DENSITY_RADIUS = 5  # coefficients
# The share of noise grows from 0 to 1 between these densities, so that frames of a video that are close to a
# limit do not differ. Pages of text have up to 0.56, photographs and scans on a background from 0.83 on.
LEAST_DENSITY, CERTAIN_DENSITY = 0.6, 0.7


@lru_cache(maxsize=256)
def _band_filters(wavelet: Wavelet, levels: int) -> list[tuple[Any, Any]]:
    """Return the cascaded low-pass and high-pass filters along an axis, finest level first."""
    lowpass = np.ones(1)
    filters = []
    for level in range(levels):
        cascaded = []
        for taps in (wavelet.dec_lo, wavelet.dec_hi):
            dilated = np.zeros((len(taps) - 1) * 2**level + 1)
            dilated[:: 2**level] = taps
            cascaded.append(np.convolve(lowpass, dilated))
        lowpass = cascaded[0]
        filters.append((cascaded[0], cascaded[1]))
    return filters


def band_norms(
    wavelet: Wavelet, levels: int, ndim: int, spectrum: NoiseSpectrum | None = None
) -> list[dict[str, float]]:
    """Return what noise of standard deviation 1 has in each band, by key, for each level.

    For white noise, these are the norms of the cascaded filters.
    """
    norms = []
    for filters in _band_filters(wavelet, levels):
        deviations = {}
        if spectrum is not None:
            variances = spectrum.variances([filters] * ndim)
        for band in product((0, 1), repeat=ndim):
            if any(band):
                key = "".join("ad"[high] for high in band)
                if spectrum is None:
                    deviations[key] = math.prod(float(np.linalg.norm(filters[high])) for high in band)
                else:
                    deviations[key] = math.sqrt(variances[band])
        norms.append(deviations)
    return norms


def noise_argument() -> Any:
    """Return the field of a stage for the noise, which is estimated by default."""
    return argument(None, "Noise σ", 0, 0.25, 1 / 200, of_span=True, auto="estimated", hint="in grey levels")


def robust_sigma(band: Any, norm: float = 1.0, floor: Any = 0.0) -> Any:
    """Estimate the noise of each item from a band; magnitudes up to ``floor`` count as zero."""
    return OPERATIONS.median_magnitude(band, floor) / (NORMAL_MEDIAN * norm)


def estimate_noise(details: Details, pyramid: Pyramid, sigma: float | None = None) -> Any:
    """Return the noise of each item: as given, as known of the pyramid, or from the finest diagonal band."""
    diagonal = "d" * pyramid.ndim
    if sigma is not None:
        return pyramid.operations.per_item(sigma, details[0][diagonal])
    if pyramid.sigma is not None:
        return pyramid.sigma
    masked, _ = pyramid.masked(details[0][diagonal], 0)
    sigma = robust_sigma(pyramid.sampled(masked), pyramid.norms[0][diagonal], pyramid.floor)
    return sigma * finest_noise_share(masked, pyramid)


def finest_noise_share(diagonal: Any, pyramid: Pyramid) -> Any:
    """Return the :func:`noise_share` of each item, by the masked diagonal band of the finest level."""
    valid = pyramid.valid[0] if pyramid.valid else None
    return noise_share(pyramid.one_shift(diagonal), pyramid.floor, pyramid.ndim, valid)


def noise_share(band: Any, floor: Any, ndim: int, valid: Any = None) -> Any:
    """Return the share of the finest diagonal details that may be noise, for each item.

    Parameters
    ----------
    band : SymbolicArray
        The details, of which those that are not valid do not exceed the floor.
    floor : float or SymbolicArray
        Magnitude up to which details count as zero.
    ndim : int
        Number of spatial axes.
    valid : SymbolicArray of bool, optional
        Where details are valid; everywhere if None.
    """
    exceeds = xp.abs(band) > OPERATIONS.spread(OPERATIONS.per_item(floor, band), band)
    nonzero = xp.where(exceeds, xp.ones_like(band), xp.zeros_like(band))
    occupied = nonzero if valid is None else xp.where(valid, nonzero, xp.ones_like(band))
    # Sums of counts are exact, in whatever order chunks and threads add them.
    neighbors = OPERATIONS.window_sums(occupied, nonzero, DENSITY_RADIUS, ndim)
    total, count = reduced("sum", [neighbors, nonzero])
    density = total / (xp.maximum(count, 1.0) * (2 * DENSITY_RADIUS + 1) ** ndim)
    return xp.clip((density - LEAST_DENSITY) / (CERTAIN_DENSITY - LEAST_DENSITY), 0.0, 1.0)


def estimate_sigma(image: ArrayLike, average_sigmas: bool = False, *, channel_axis: int | None = None) -> Any:
    """Estimate the standard deviation of the Gaussian noise in an image or volume.

    Parameters
    ----------
    image : array_like
        Array of any dimension. NaNs, infinities and masked samples are ignored.
    average_sigmas : bool, default False
        Whether to return the mean over all channels.
    channel_axis : int, optional
        Axis of the channels, which are estimated separately.

    Returns
    -------
    float or list of float
        Noise of the image, or of each channel. For arrays on a device, arrays there.

    Notes
    -----
    The result equals that of scikit-image, except for images with constant regions: details that are zero up
    to rounding are ignored here, while scikit-image takes them for noise of 1e-17. Drawings and text without
    noise have an estimate of 0 here: nearly all of their details are zero or have zeros around them. So have
    images with less than about one count in 20 samples; filter these with ``noise="poisson"``.

    Examples
    --------
    >>> noisy = 5 * np.random.default_rng(0).standard_normal((256, 256))
    >>> abs(estimate_sigma(noisy) - 5) < 0.1
    True
    """
    hidden = None
    if isinstance(image, np.ma.MaskedArray):
        hidden, image = np.ma.getmaskarray(image), image.data
    x = given_array(image, "image")
    if hidden is not None and x.dtype.kind in "biuf":
        x = np.where(hidden, np.nan, x.astype(np.result_type(x.dtype, np.float16)))
    if "complex" in str(x.dtype):
        raise ArgumentTypeError(f"images must have real numbers, got {x.dtype}")
    ndim = len(x.shape)
    if ndim == 0 or 0 in x.shape:
        raise ArgumentError(f"an array with samples is needed, got shape {tuple(x.shape)}")
    refuse_gradients(x, "an array")
    library = library_of(x)
    on_host = library.device(x).on_host
    if channel_axis is not None:
        axis = checked_axis(channel_axis, ndim)
        before = [slice(None)] * axis
        sigmas = [estimate_sigma(x[(*before, channel, ...)]) for channel in range(x.shape[axis])]
        return sum(sigmas) / len(sigmas) if average_sigmas else sigmas
    if ndim > 1 and 1 < x.shape[-1] <= 4:
        warnings.warn(
            f"the last axis has {x.shape[-1]} samples; if these are channels, pass channel_axis=-1",
            stacklevel=2,
        )
    unit = 1.0
    if on_host and x.dtype.kind == "f":
        largest = largest_magnitude(x)
        if not math.isfinite(largest):
            x = np.where(np.isfinite(x), x, np.nan)  # Coefficients near a NaN become NaN, and are ignored.
            if np.isnan(x).all():
                raise ArgumentError("all samples are masked, NaN or infinite")
            largest = float(np.nanmax(np.abs(x)))
        unit = unit_of(largest)
        x = x if unit == 1 else x / x.dtype.type(unit)
    engine = engine_for([x], "auto")
    dtype = engine.result_dtype(np.dtype(library.dtype(x)))
    x = engine.coefficients(engine.samples(x), dtype)
    # There is no noise along an axis of one sample.
    shape = tuple(int(n) for n in x.shape)
    axes = tuple(axis for axis, n in enumerate(shape) if n > 1) or (0,)
    (sigma,) = _sigma_program(shape, str(dtype), axes, engine).run({"x": x}).values()
    return float(sigma[0]) * unit if on_host else sigma[0]


@lru_cache(maxsize=64)
def _sigma_program(shape: tuple[int, ...], dtype: str, axes: tuple[int, ...], engine: Engine) -> Any:
    """Return the program that estimates the noise of an array."""
    graph = Graph()
    x = symbolic_input(graph, "x", shape, dtype)
    planes = xp.reshape(x, (1, *(shape[axis] for axis in axes)))
    ndim = len(axes)
    low, (bands,) = PipelineTransform(as_wavelet("db2")).decompose(planes, 1, range(1, 1 + ndim))
    magnitudes = xp.abs(low[..., :: max(1, low.shape[-1] // 64)])
    floor = rounding_floor(xp.where(magnitudes < math.inf, magnitudes, 0.0), 1, ndim)
    band = bands["d" * ndim]
    share = noise_share(band, floor, ndim, band == band)  # NaNs are not valid.
    symbolic_output(graph, "sigma", share * robust_sigma(band, 1.0, floor))
    return engine.compile_graph(graph)


def estimated_noise(x: Any, valid: Any, ndim: int) -> Any:
    """Estimate the noise of each item from the finest diagonal band."""
    return estimate_noise(*noise_pyramid(x, valid, ndim, 1))


def noise_pyramid(x: Any, valid: Any, ndim: int, levels: int, channels: int = 1) -> tuple[Details, Pyramid]:
    """Return the details of planes, from which their noise is estimated, and the properties of these."""
    wavelet = as_wavelet("db2")
    low, details = PipelineTransform(wavelet).decompose(x, levels, range(1, 1 + ndim))
    pyramid = Pyramid(
        operations=OPERATIONS,
        norms=band_norms(wavelet, levels, ndim),
        samples=math.prod(x.shape[1:]),
        ndim=ndim,
        offset=0,
        valid=valid_coefficients(valid, details, ndim, wavelet, False),
        floor=rounding_floor(low, levels, ndim),
        channels=channels,
    )
    return details, pyramid
