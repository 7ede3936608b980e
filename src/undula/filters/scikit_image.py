"""Wavelet denoising with the signature of scikit-image."""

from __future__ import annotations

import math
import warnings
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import check_integer, differentiable_image, library_of
from ..engines.base import Engine
from ..engines.dispatch import engine_for
from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from ..functions import dwtn_max_level
from ..lowering.axis_arguments import checked_axis
from ..lowering.graph import Graph
from ..lowering.symbolic import SymbolicArray, symbolic_input, symbolic_output, xp
from ..wavelets import Wavelet, as_wavelet
from .base import replace_bands
from .noise import robust_sigma
from .operations import OPERATIONS, item_size, rounding_floor
from .planes import checked_sigmas, native_samples
from .transforms import PipelineTransform

__all__ = ["denoise_wavelet"]

METHODS = ("BayesShrink", "VisuShrink")
MODES = ("soft", "hard")

# Rec. 601, from the range 0 … 1 to 16 … 235 and 16 … 240.
_YCBCR = np.array([[65.481, 128.553, 24.966], [-37.797, -74.203, 112.0], [112.0, -93.786, -18.214]])
_YCBCR_OFFSET = np.array([16.0, 128.0, 128.0])


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
) -> Any:
    """Denoise with the arguments and the results of ``skimage.restoration.denoise_wavelet``.

    Parameters
    ----------
    image : array
        Array of NumPy, or of CuPy, PyTorch or JAX, on the host or on a GPU. As in scikit-image, integers are
        converted to floats from 0 to 1, or from -1 if they are signed. Masked samples are an error.
    sigma : float or sequence of float, optional
        Standard deviation of the noise, or one per channel; estimated from the finest diagonal band if None.
    wavelet : str or Wavelet, default "db1"
        The wavelet.
    mode : {"soft", "hard"}, default "soft"
        Threshold rule.
    wavelet_levels : int, optional
        Number of levels; three fewer than the maximum if None.
    convert2ycbcr : bool, default False
        Whether to filter channels as YCbCr, each scaled to the range from 0 to 1.
    method : {"BayesShrink", "VisuShrink"}, default "BayesShrink"
        Thresholds for each band, or one for all bands.
    rescale_sigma : bool, default True
        Whether sigma is given in units of the original image if that has integers.
    channel_axis : int, optional
        Axis of channels. By default, the image has none.

    Returns
    -------
    array
        Floats of the shape and library of the image, on the same device.

    See Also
    --------
    undula.denoise : Gives better results.

    Notes
    -----
    If sigma is estimated, results for images with constant regions may differ from scikit-image; see
    :func:`estimate_sigma`.

    Examples
    --------
    >>> noisy = np.random.default_rng(0).standard_normal((64, 64)) * 0.1 + 0.5
    >>> bool(denoise_wavelet(noisy).std() < 0.05)
    True
    """
    x = differentiable_image(image)
    library = library_of(x)
    on_host = isinstance(x, np.ndarray)
    if on_host:
        x = native_samples(x)
    shape, dtype = tuple(int(n) for n in x.shape), library.dtype(x)
    if method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    if mode not in MODES:
        raise UnknownNameError("mode", mode, MODES)
    if 0 in (len(shape), *shape):
        raise ArgumentError(f"an image with samples is needed, got shape {shape}")
    if dtype.startswith("complex"):
        raise ArgumentTypeError(f"images must have real numbers, got {dtype}")
    if channel_axis is None and convert2ycbcr:
        raise ArgumentError("convert2ycbcr requires channel_axis to be set")
    if on_host and dtype.startswith("float") and not np.isfinite(x).any():
        raise ArgumentError("all samples are NaN or infinite")
    if wavelet_levels is not None:
        check_integer(wavelet_levels, "wavelet_levels", 1)
    wavelet = as_wavelet(wavelet)
    if not wavelet.orthogonal:
        warnings.warn(
            f"these thresholds are meant for orthogonal wavelets, but {wavelet.name} is not orthogonal;"
            " undula.denoise handles all wavelets",
            stacklevel=2,
        )
    channel = None if channel_axis is None else checked_axis(channel_axis, len(shape))
    channels = 1 if channel is None else shape[channel]
    if convert2ycbcr and channels != 3:
        raise ArgumentError(f"convert2ycbcr needs 3 channels, got {channels}")
    recipe = _Recipe(
        shape,
        dtype,
        channel,
        wavelet,
        mode,
        wavelet_levels,
        method,
        convert2ycbcr,
        bool(rescale_sigma),
        sigma is not None,
    )
    arrays = {"image": x}
    if sigma is not None:
        arrays["sigma"] = _channel_sigmas(sigma, channels).astype(recipe.working_dtype)
    result = _compiled(recipe, engine_for([x], "auto")).run(arrays)["result"]
    return library_of(image).restore(result, image)


def _channel_sigmas(sigma: Any, channels: int) -> NDArray[np.float64]:
    """Return the noise of each channel."""
    sigmas = np.atleast_1d(checked_sigmas(sigma))
    if sigmas.size not in (1, channels):
        raise ArgumentError(
            f"sigma must be a number, or one for each of {channels} channels; got {sigmas.size} numbers"
        )
    return np.broadcast_to(sigmas, (channels,))


class _Recipe(NamedTuple):
    """What the program depends on."""

    shape: tuple[int, ...]
    dtype: str
    channel: int | None
    wavelet: Wavelet
    mode: str
    levels: int | None
    method: str
    ycbcr: bool
    rescales_sigma: bool
    has_sigma: bool

    @property
    def working_dtype(self) -> str:
        """The dtype of results."""
        return "float32" if self.dtype in ("float16", "float32") else "float64"


@lru_cache(maxsize=64)
def _compiled(recipe: _Recipe, engine: Engine) -> Any:
    return engine.compile_graph(_graph(recipe))


def _graph(recipe: _Recipe) -> Graph:
    """Return the program that denoises an image; each channel is an item."""
    graph, ndim = Graph(), len(recipe.shape)
    image = symbolic_input(graph, "image", recipe.shape, recipe.dtype)
    channels = 1 if recipe.channel is None else recipe.shape[recipe.channel]
    sigma = symbolic_input(graph, "sigma", (channels,), recipe.working_dtype) if recipe.has_sigma else None
    x = xp.astype(image, recipe.working_dtype)
    integers = not recipe.dtype.startswith("float")
    if integers:
        scaled = x if recipe.dtype == "bool" else xp.maximum(x / float(np.iinfo(recipe.dtype).max), -1.0)
        if sigma is not None and recipe.rescales_sigma:
            span = 1.0 if recipe.dtype == "bool" else _span(x)
            sigma = sigma * xp.where(_span(x) > 0, _span(scaled) / span, 1.0)
        x, least = scaled, _least(x)
    order = [] if recipe.channel is None else [recipe.channel]
    order += [axis for axis in range(ndim) if axis != recipe.channel]
    planes = x[None, ...] if recipe.channel is None else xp.permute_dims(x, order)
    planes = (_denoised_ycbcr if recipe.ycbcr else _denoised)(planes, sigma, recipe)
    if integers:
        planes = xp.clip(planes, OPERATIONS.spread(xp.where(least < 0, -1.0, 0.0), planes), 1.0)
    if recipe.channel is None:
        result = planes[0]
    else:
        result = xp.permute_dims(planes, [order.index(axis) for axis in range(ndim)])
    symbolic_output(graph, "result", result)
    return graph


def _least(x: SymbolicArray) -> Any:
    """Return the least sample of an array."""
    flat = xp.reshape(x, (1, -1))
    return -xp.max(-flat, axis=(1,))


def _span(x: SymbolicArray) -> Any:
    """Return the difference between the largest and the least sample of an array."""
    return xp.max(xp.reshape(x, (1, -1)), axis=(1,)) - _least(x)


def _denoised(planes: SymbolicArray, sigma: Any, recipe: _Recipe) -> SymbolicArray:
    """Return denoised planes; the noise of each is estimated if it is None."""
    ndim, wavelet = planes.ndim - 1, recipe.wavelet
    levels = recipe.levels
    if levels is None:
        levels = max(dwtn_max_level(planes.shape[1:], wavelet) - 3, 1)
    transform = PipelineTransform(wavelet)
    axes = tuple(range(1, 1 + ndim))
    low, details = transform.decompose(planes, levels, axes)
    if sigma is None:
        sigma = robust_sigma(details[0]["d" * ndim], 1.0, rounding_floor(low, levels, ndim))
    places = [(index, key) for index, bands in enumerate(details) for key in bands]
    bands = [details[index][key] for index, key in places]
    limits = [sigma * math.sqrt(2 * math.log(item_size(planes)))] * len(bands)
    if recipe.method == "BayesShrink":
        tiny = float(np.finfo(planes.dtype).eps)
        means = [e / item_size(band) for e, band in zip(OPERATIONS.energies(bands), bands, strict=True)]
        limits = [sigma * sigma / xp.sqrt(xp.maximum(mean - sigma * sigma, tiny)) for mean in means]
    details = replace_bands(details, places, OPERATIONS.shrink(bands, recipe.mode, limits, limits))
    return transform.recompose(low, details, planes.shape, axes)


def _denoised_ycbcr(planes: SymbolicArray, sigma: Any, recipe: _Recipe) -> SymbolicArray:
    """Return denoised planes of red, green and blue; luma and chroma are scaled to the range 0 … 1."""
    mixed = _mixed(planes, _YCBCR, _YCBCR_OFFSET)
    if sigma is not None and recipe.rescales_sigma:
        variances = [sigma[k : k + 1] * sigma[k : k + 1] for k in range(3)]
        rows = [sum(float(w) ** 2 * v for w, v in zip(row, variances, strict=True)) for row in _YCBCR]
        sigma = xp.sqrt(xp.concat(rows, axis=0))
    axes = tuple(range(1, mixed.ndim))
    least = -xp.max(-mixed, axis=axes)
    span = xp.max(mixed, axis=axes) - least
    divisor = xp.where(span == 0, 1.0, span)
    shift, scale = OPERATIONS.spread(least, mixed), OPERATIONS.spread(divisor, mixed)
    denoised = _denoised((mixed - shift) / scale, None if sigma is None else sigma / divisor, recipe)
    restored = xp.where(OPERATIONS.spread(span, mixed) == 0, mixed, denoised * scale + shift)
    inverse = np.linalg.inv(_YCBCR)
    return _mixed(restored, inverse, -inverse @ _YCBCR_OFFSET)


def _mixed(planes: SymbolicArray, matrix: NDArray[Any], offset: NDArray[Any]) -> SymbolicArray:
    """Return weighted sums of three planes."""
    rows = [
        sum(float(weight) * planes[k] for k, weight in enumerate(row)) + float(constant)
        for row, constant in zip(matrix, offset, strict=True)
    ]
    return xp.stack(rows, axis=0)
