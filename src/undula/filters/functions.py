"""Filters as functions, with defaults that suit most images."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import DASK, check_integer, given_array, is_integer, library_of
from ..engines.base import engine
from ..engines.cpu.filter_operations import median_magnitude
from ..errors import ArgumentError
from ..functions import dwtn
from ..lowering.graph import Graph
from ..lowering.symbolic import symbolic_input, symbolic_output
from ..wavelets import Wavelet, as_wavelet
from .calibration import CalibratedPipeline
from .deprecation import accept_former_names
from .holes import central_places, fill_holes
from .operations import NORMAL_MEDIAN
from .pipeline import Pipeline
from .planes import AUTO, GivenImage, checked_sigmas, largest_magnitude, unit_of
from .spectrum import as_spectrum
from .verbs import CORRELATED, GAUSSIAN, Denoising, Despeckling, Enhancing, Sharpening
from .video import denoised_clip

__all__ = ["denoise", "denoise_frames", "despeckle", "enhance", "sharpen"]

MIN_REGION_SAMPLES = 8
MAX_NOISE_STEPS = 9
LEAST_NOISE = 1e-6  # of a sample, relative to the largest noise of the image
LEAST_REGIONAL_NOISE = 1e-3  # the same for a region


def denoise(
    image: Any,
    sigma: Any = None,
    *,
    quality: str = Denoising.quality,
    method: str = Denoising.method,
    profile: str = Denoising.profile,
    strength: float = Denoising.strength,
    luma: float = Denoising.luma,
    chroma: float = Denoising.chroma,
    wavelet: str | Wavelet | None = Denoising.wavelet,
    level: int | None = Denoising.level,
    rule: str = Denoising.rule,
    invariant: bool | int = Denoising.invariant,
    noise: Any = Denoising.noise,
    gain: float | None = Denoising.gain,
    regions: int | None = None,
    color: str = Denoising.color,
    calibrate: bool = Denoising.calibrate,
    over_time: int = Denoising.over_time,
    channel_axis: int | str | None = AUTO,
    axes: Sequence[int] | None = None,
    mask: Any = None,
    backend: str = "auto",
) -> Any:
    """Remove noise from an image, a volume, a batch of them, or a video.

    Parameters
    ----------
    image : array
        Array of integers or floats of NumPy; of CuPy, PyTorch or JAX on a GPU; or of Dask, which is filtered
        when the result is computed.
    sigma : float, sequence of float, or array, optional
        Standard deviation of the noise, in units of the image: one number, one per channel, or one per
        sample. Estimated if None; 0 stands for no noise.
    quality : {"fast", "balanced", "best"}, default "fast"
        ``fast`` filters wavelet coefficients. ``balanced`` and ``best`` also filter groups of similar blocks,
        and blend both results; they take about 7 and 10 times as long. Signals are filtered by wavelets
        alone, and with ``best`` for all shifts.
    method : str, default "bivariate"
        One of ``bivariate``, ``block``, ``bayes``, ``sure``, ``hybrid``, ``minimax``, ``universal``,
        ``directional`` and ``collaborative``. ``bivariate`` is slightly better than ``block``; those after it
        select thresholds. ``directional`` shrinks the coefficients of a dual tree (:func:`undula.dtcwt2`): it
        is better than ``bivariate`` on average, and filters volumes plane by plane. ``collaborative``
        filters groups of similar blocks alone; those of volumes have three axes, and are for the CPU. With
        quality ``balanced`` and ``best``, this is the method whose result is blended with that of groups; the
        last two are for ``fast`` only.
    profile : {"fast", "normal", "best"}, default "normal"
        How many similar blocks ``collaborative`` looks for, and how far away.
    strength : float, default 1.0
        Higher values remove more.
    luma, chroma : float, default 1.0
        Factors of the strength for the luma and the chroma of colour images. ``luma`` also applies to grey
        images. ``chroma=2`` removes coarse spots of colour that a camera left.
    wavelet : str or Wavelet, optional
        ``db2`` if None, or ``bior4.4`` without shifts.
    level : int, optional
        Number of levels; up to 4, depending on the size of the image, if None.
    rule : {"soft", "hard", "garrote", "firm", "greater", "less"}, default "soft"
        Threshold rule of methods that select thresholds: ``soft`` shrinks what remains by the threshold,
        ``hard`` leaves it, ``garrote`` and ``firm`` are in between; ``greater`` and ``less`` compare values
        and not magnitudes.
    invariant : bool or int, default 2
        Number of the finest levels that are computed for all shifts; True stands for all levels. False or 0
        is several times faster, but leaves artefacts at edges.
    noise : {"gaussian", "correlated", "poisson", "poisson-gaussian"} or array, optional
        ``gaussian`` noise is white: that of neighbouring samples is independent. ``correlated`` noise, as in
        images that were scaled, demosaiced or compressed, is estimated from the image, for luma and chroma:
        for each band of wavelets; or for each frequency, where groups of blocks are filtered, by
        :func:`undula.estimate_spectrum`. Omit ``sigma``.
        If None, the correlated noise of cameras is recognised, in colour images by their chroma and in grey
        ones by traces of the mosaic of colours on the sensor, and any other noise is taken for white. So is
        that of volumes, and that of the methods ``directional`` and ``collaborative``. Where it is
        recognised, ``balanced`` and ``best`` leave out groups of blocks.
        ``poisson`` is the noise of counted photons, whose variance grows with the brightness; samples without
        light have to be 0. ``poisson-gaussian`` adds the read noise of a sensor, whose standard deviation is
        ``sigma``; :func:`undula.estimate_poisson` estimates both. For arrays of NumPy.
        An array is the power spectrum of correlated noise, in the order of ``numpy.fft.fftn`` and of any
        size. Its mean is the variance of the noise, unless ``sigma`` is given.
    gain : float, optional
        What one photon adds to a sample, for ``poisson`` and ``poisson-gaussian``; estimated if None.
    regions : int, optional
        Estimate the noise in regions of this many samples along each axis, for noise that varies over the
        image. The host estimates it, also for images on a device, and images of a batch are filtered one by
        one.
    color : {"ycbcr", "channels"}, default "ycbcr"
        Whether to filter luma and chroma, or each channel separately.
    calibrate : bool, default False
        Whether to find the strength with the least estimated error, by :func:`undula.calibrate`. That takes
        about twenty times as long.
    over_time : int, default 0
        For a video, an array with frames along the first axis: the number of frames around each frame, from 2
        to 14, in which motion is followed. 8 is a good choice. :func:`undula.denoise_frames` takes frames one
        by one, with the same arguments.
    channel_axis : int, None or "auto", default "auto"
        Axis of channels. ``auto`` takes the last of three axes if it has 3 or 4 samples.
    axes : sequence of int, optional
        Spatial axes; the other axes count images. All axes except that of the channels if None.
    mask : array of bool, optional
        True where samples are valid. Other samples, like NaNs and infinities, stay unchanged and are left out
        of all statistics. NaNs and infinities on a device are not detected; pass a mask.
    backend : {"auto", "cpu", "reference", "cuda", "opencl"}, default "auto"
        Where arrays of NumPy are filtered; ``auto`` is the CPU, ``reference`` is plain NumPy, and ``cuda:1``
        is the second GPU that :func:`undula.devices` lists. Arrays on a device are filtered where they are.

    Returns
    -------
    array
        Image of the shape, dtype and library of the input, on the same device.

    Notes
    -----
    For Dask arrays, NaNs are an error, and masks, ``regions``, noise per sample, any other ``quality`` and
    the methods ``sure``, ``hybrid``, ``directional`` and ``collaborative`` are not supported. Estimating
    their noise takes three more passes over the data, or five in double precision; pass ``sigma`` if it is
    known.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = np.add.outer(np.arange(64.0), np.arange(64.0))
    >>> noisy = clean + 5 * rng.standard_normal(clean.shape)
    >>> better = denoise(noisy)
    >>> bool(np.std(better - clean) < 0.4 * np.std(noisy - clean))
    True
    """
    check_integer(over_time, "over_time")
    verb = Denoising(
        quality=quality,
        method=method,
        profile=profile,
        strength=strength,
        luma=luma,
        chroma=chroma,
        wavelet=wavelet,
        level=level,
        rule=rule,
        invariant=invariant,
        color=color,
        noise=noise if noise is None or isinstance(noise, str) else as_spectrum(noise),
        gain=gain,
        calibrate=calibrate,
        over_time=over_time,
    )
    if over_time:
        for name, value in {"regions": regions, "axes": axes, "mask": mask}.items():
            if value is not None:
                raise ArgumentError(f"{name} does not apply to over_time={over_time!r}; omit one of them")
        return denoised_clip(verb.denoiser(), image, sigma, channel_axis, backend)
    pipeline = verb.pipeline()
    options = {"channel_axis": channel_axis, "axes": axes, "mask": mask, "backend": backend}
    if verb.noise == CORRELATED and sigma is not None:
        raise ArgumentError(f"noise={CORRELATED!r} is estimated from the image; omit sigma")
    if verb.noise not in (Denoising.noise, GAUSSIAN) and regions is not None:
        raise ArgumentError(f"regions are for noise='gaussian', got noise={noise!r}; omit one of them")
    if pipeline.photons is not None:
        return pipeline(image, sigma=sigma, **options)
    per_sample = np.ndim(sigma) > 1 or (np.ndim(sigma) == 1 and np.shape(sigma) == np.shape(image))
    if regions is not None or per_sample:
        if DASK.owns(image):
            raise ArgumentError(
                "regions, and noise per sample, are for arrays in memory; pass one sigma for a Dask array, or"
                " call its compute() first"
            )
        if calibrate:
            raise ArgumentError("calibrate needs one sigma; omit regions, and noise per sample")
        noise_map = _noise_map(image, sigma, regions, channel_axis, axes, mask)
        return _denoise_by_map(pipeline, image, noise_map, options)
    if calibrate:
        return CalibratedPipeline(pipeline)(image, sigma=sigma, **options)
    return pipeline(image, sigma=sigma, **options)


def denoise_frames(
    frames: Iterable[Any],
    sigma: Any = None,
    *,
    over_time: int = 8,
    quality: str = Denoising.quality,
    strength: float = Denoising.strength,
    color: str = Denoising.color,
    channel_axis: int | str | None = AUTO,
    backend: str = "auto",
) -> Iterator[Any]:
    """Remove noise from the frames of a video, following motion, in constant memory.

    Similar blocks of a frame and of the frames around it are filtered together. They are looked for along the
    motion of each block. What has no similar blocks in other frames, because it was hidden or the scene
    changed, is filtered within its frame, so that moving objects leave no ghosts.

    Parameters
    ----------
    frames : iterable of array
        Frames of one shape, ``(rows, columns)`` or with channels, and one dtype, of integers or floats. They
        are copied, so that an iterator may yield the same array with new contents.
    sigma : float or sequence of float, optional
        Standard deviation of the noise, or one per channel; estimated if None, also where it changes.
    over_time : int, default 8
        Number of frames around each frame, from 2 to 14; half of them are before it.
    quality : {"fast", "balanced", "best"}, default "fast"
        How densely blocks overlap: ``balanced`` takes about twice, and ``best`` four times as long.
    strength : float, default 1.0
        Higher values remove more.
    color : {"ycbcr", "channels"}, default "ycbcr"
        Whether to filter luma and chroma, with blocks matched in the luma, or each channel separately.
    channel_axis : int, None or "auto", default "auto"
        Axis of channels of a frame. ``auto`` takes the last of three axes if it has 3 or 4 samples.
    backend : {"auto", "cpu"}, default "auto"
        Frames are filtered on the CPU.

    Yields
    ------
    array
        Filtered frames in their order, of the dtype and library of the input. A frame is yielded when
        ``over_time + 4`` more frames have been read; if ``sigma`` is estimated, half of ``over_time`` more.

    See Also
    --------
    undula.denoise : Takes a whole clip as an array, with ``over_time=8``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = [100 + 50 * np.sin(np.add.outer(np.arange(32), np.arange(40) + t) / 5) for t in range(6)]
    >>> noisy = (frame + 10 * rng.standard_normal(frame.shape) for frame in clean)
    >>> denoised = list(denoise_frames(noisy, over_time=4))
    >>> len(denoised), bool(np.std(np.subtract(denoised, clean)) < 4)
    (6, True)
    """
    verb = Denoising(over_time=over_time, quality=quality, strength=strength, color=color)
    return verb.denoiser()(frames, sigma=sigma, channel_axis=channel_axis, backend=backend)


def _denoise_by_map(pipeline: Pipeline, image: Any, noise_map: NDArray[Any], options: dict[str, Any]) -> Any:
    """Denoise for several amounts of noise, and interpolate between the results at each sample."""
    given = GivenImage(image, options["channel_axis"], options["axes"], "channels", options["mask"])
    layout, mask, xp = given.layout, given.mask, given.xp
    if any(layout.shape[axis] > 1 for axis in layout.batch_axes):
        options = {**options, "channel_axis": layout.channel, "axes": layout.axes}

        def filtered(image: Any, mask: Any, place: Any) -> Any:
            return _denoise_by_map(pipeline, image, noise_map[place], {**options, "mask": mask})

        # The amounts of noise to denoise for depend on the image.
        return given.as_given(given.one_by_one(filtered))
    valid_noise = noise_map if mask is None else noise_map[_on_host(mask)]
    largest = float(valid_noise.max())
    if largest <= 0:
        return pipeline(image, sigma=0.0, **options)
    share, least = noise_map / largest, max(float(valid_noise.min()) / largest, LEAST_NOISE)
    count = 1
    if least < 1:  # Two steps for each doubling of the noise.
        count = min(MAX_NOISE_STEPS, 1 + math.ceil(-2 * math.log2(least) - 1e-9))
    shares = np.geomspace(least, 1, count)
    # Plain floats, whose mask also has the samples that a masked array hides.
    dtype = getattr(xp, layout.working_dtype)
    floats, options = xp.astype(given.in_units(), dtype), {**options, "mask": mask}
    unit = given.unit or 1.0
    pipeline, largest = pipeline.in_units(unit), largest / unit
    steps = np.interp(np.log(np.maximum(share, least)), np.log(shares), np.arange(count))
    device = {} if given.on_host else {"device": given.array.device}
    position = xp.asarray(steps.astype(layout.working_dtype), **device)
    total = xp.zeros_like(position)
    for step in range(count):
        if (np.abs(steps - step) < 1).any():
            denoised = pipeline(floats, sigma=float(shares[step] * largest), **options)
            if mask is not None:  # Other samples may be NaN or infinite.
                denoised = xp.where(mask, denoised, total)
            total = total + xp.clip(1 - xp.abs(position - step), 0, 1) * denoised
    return given.as_given(given.from_units(layout.restore(xp, total, given.array, mask)))


def _on_host(x: Any) -> NDArray[Any]:
    """Return an array of NumPy; arrays on a device are copied."""
    return x if isinstance(x, np.ndarray) else np.asarray(library_of(x).to_numpy(x))


def _noise_map(
    image: Any, sigma: Any, regions: int | None, channel_axis: Any, axes: Any, mask: Any
) -> NDArray[Any]:
    """Return the noise at each sample, on the host."""
    array = image if isinstance(image, np.ma.MaskedArray) else given_array(image, "image")
    shape = tuple(array.shape)
    if sigma is not None:
        noise_map = checked_sigmas(sigma)
        if regions is not None:
            raise ArgumentError("sigma and regions exclude each other; pass one of them")
        if noise_map.shape != shape:
            raise ArgumentError(
                f"sigma must be a number or have the shape of the image, {shape}; got shape {noise_map.shape}"
            )
        return noise_map
    if not is_integer(regions) or regions < MIN_REGION_SAMPLES:
        raise ArgumentError(f"regions must be an integer of at least {MIN_REGION_SAMPLES}, got {regions!r}")
    if not isinstance(array, np.ndarray):
        image, mask = _on_host(array), None if mask is None else _on_host(given_array(mask, "mask"))
    given = GivenImage(image, channel_axis, axes, "channels", mask)
    return np.asarray(given.layout.in_image_layout(np, _regional_noise(given, int(regions))))


def _regional_noise(given: GivenImage, size: int) -> NDArray[Any]:
    """Estimate the noise of regions, and interpolate linearly between their centres."""
    layout, ndim = given.layout, given.layout.ndim
    planes = layout.to_planes(np, given.array, given.mask)
    units = np.array([unit_of(largest_magnitude(plane)) for plane in planes])
    if (units != 1).any():
        planes /= units.reshape(-1, *[1] * ndim).astype(planes.dtype)
    if given.mask is not None:
        planes = _filled(planes, layout.mask_planes(np, given.mask))
    band = np.abs(dwtn(planes, "db2", axes=tuple(range(1, 1 + ndim)))["d" * ndim])
    if given.mask is not None:  # Zeros are not counted.
        band *= _valid_details(layout.mask_planes(np, given.mask), band.shape[1:])
    shape = planes.shape[1:]
    counts = [max(1, round(n / size)) for n in shape]
    noise = np.empty((band.shape[0], *counts))
    for index in np.ndindex(*noise.shape):
        region = tuple(
            slice(n * k // c, max(n * (k + 1) // c, n * k // c + 1))
            for n, k, c in zip(band.shape[1:], index[1:], counts, strict=True)
        )
        coefficients = np.ascontiguousarray(band[(index[0], *region)])
        noise[index] = median_magnitude(coefficients) / NORMAL_MEDIAN
        if given.mask is not None and not coefficients.any():
            noise[index] = np.nan
    for item in noise:  # Regions without valid samples get the median of the others.
        unknown = np.isnan(item)
        item[unknown] = np.median(item[~unknown]) if not unknown.all() else 0.0
    peaks = noise.max(axis=tuple(range(1, noise.ndim)), keepdims=True)
    noise = np.maximum(noise, LEAST_REGIONAL_NOISE * peaks)
    for axis, (n, c) in enumerate(zip(shape, counts, strict=True), 1):
        centres = (np.arange(c) + 0.5) * n / c - 0.5
        position = np.clip(np.interp(np.arange(n), centres, np.arange(c)), 0, c - 1)
        before = np.floor(position).astype(int)
        after = np.minimum(before + 1, c - 1)
        share = (position - before).reshape([-1 if a == axis else 1 for a in range(noise.ndim)])
        noise = np.take(noise, before, axis) * (1 - share) + np.take(noise, after, axis) * share
    return np.asarray(noise * units.reshape(-1, *[1] * ndim))


def _filled(planes: NDArray[Any], valid: NDArray[Any]) -> NDArray[Any]:
    """Return planes with smooth surfaces in place of invalid samples."""
    graph = Graph()
    x = symbolic_input(graph, "x", planes.shape, str(planes.dtype))
    mask = symbolic_input(graph, "valid", valid.shape, "bool")
    symbolic_output(graph, "y", fill_holes(x, mask, planes.ndim - 1))
    filled: NDArray[Any] = engine("cpu").compile_graph(graph).run({"x": planes, "valid": valid})["y"]
    return filled


def _valid_details(valid: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return where the samples at the centre of each coefficient of db2 are valid."""
    for axis, size in enumerate(shape, 1):
        even, odd = (
            np.take(valid, np.clip(places, 0, valid.shape[axis] - 1), axis)
            for places in central_places(as_wavelet("db2"), size)
        )
        valid = even & odd
    return valid


def despeckle(
    image: Any,
    *,
    kind: str = Despeckling.kind,
    looks: float | None = Despeckling.looks,
    strength: float = Despeckling.strength,
    method: str = Despeckling.method,
    wavelet: str | Wavelet = Despeckling.wavelet,
    level: int | None = Despeckling.level,
    invariant: bool | int = Despeckling.invariant,
    noise: str | None = Despeckling.noise,
    channel_axis: int | str | None = AUTO,
    axes: Sequence[int] | None = None,
    mask: Any = None,
    backend: str = "auto",
) -> Any:
    """Remove speckle from ultrasound, radar or OCT images.

    Parameters
    ----------
    image : array
        Image without negative samples, unless ``kind`` is ``log``. Zeros, as around the sector of an
        ultrasound image, stay zeros and do not count in statistics; if ``kind`` is ``log``, neither do dark
        samples. On a device, negative samples become zeros, and if ``kind`` is ``log``, zeros and dark
        samples are not detected; pass a mask.
    kind : {"intensity", "amplitude", "log"}, default "intensity"
        Intensities or amplitudes of waves, whose logarithm is filtered; or ``log`` for images that are
        logarithms already, such as those on the screen of an ultrasound machine.
    looks : float, optional
        Number of looks that were averaged, which determines the noise; estimated if None.
    strength : float, default 1.0
        Higher values remove more; 0.5 keeps the texture of tissue.
    method : str, default "bivariate"
        How noise is separated from details: one of ``bivariate``, ``block``, ``bayes``, ``sure``, ``hybrid``,
        ``minimax`` and ``universal``. ``bivariate`` and ``block`` shrink coefficients by their neighbours;
        the others select thresholds.
    wavelet : str or Wavelet, default "db2"
        The wavelet.
    level : int, optional
        Number of levels. If None, 2 if ``kind`` is ``log``, else up to 4, depending on the size of the image.
    invariant : bool or int, default 2
        Number of the finest levels that are computed for all shifts; True stands for all levels. False or 0
        is several times faster, but leaves artefacts at edges.
    noise : {"white", "bands"}, optional
        ``white`` for speckle of single pixels; ``bands`` for speckle larger than pixels, as in interpolated
        images. ``bands`` if ``kind`` is ``log``, otherwise ``white``, if None.
    channel_axis : int, None or "auto", default "auto"
        Axis of channels. ``auto`` takes the last of three axes if it has 3 or 4 samples.
    axes : sequence of int, optional
        Spatial axes; the other axes count images. All axes except that of the channels if None.
    mask : array of bool, optional
        True where samples are valid. Other samples, like NaNs and infinities, stay unchanged and are left out
        of all statistics. NaNs and infinities on a device are not detected; pass a mask.
    backend : {"auto", "cpu", "reference", "cuda", "opencl"}, default "auto"
        Where arrays of NumPy are filtered; ``auto`` is the CPU, ``reference`` is plain NumPy, and ``cuda:1``
        is the second GPU that :func:`undula.devices` lists. Arrays on a device are filtered where they are.

    Returns
    -------
    array
        Image of the shape, dtype and library of the input, on the same device.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> speckled = 100 * rng.gamma(4, 1 / 4, (128, 128))
    >>> smooth = despeckle(speckled)
    >>> bool(smooth.std() < 0.3 * speckled.std()), bool(abs(smooth.mean() - 100) < 3)
    (True, True)
    """
    despeckling = Despeckling(
        kind=kind,
        looks=looks,
        strength=strength,
        method=method,
        wavelet=wavelet,
        level=level,
        invariant=invariant,
        noise=noise,
    )
    return despeckling.pipeline()(
        image, sigma=despeckling.noise_sigma, channel_axis=channel_axis, axes=axes, mask=mask, backend=backend
    )


def sharpen(
    image: Any,
    amount: float = Sharpening.amount,
    *,
    method: str = Sharpening.method,
    sigma: float = Sharpening.sigma,
    channel_axis: int | str | None = AUTO,
    axes: Sequence[int] | None = None,
    mask: Any = None,
    backend: str = "auto",
) -> Any:
    """Sharpen an image, a volume or a batch of them.

    Parameters
    ----------
    image : array
        Array of integers or floats of NumPy; of CuPy, PyTorch or JAX on a GPU; or of Dask, which is filtered
        when the result is computed.
    amount : float, default 1.0
        Strength of the sharpening; 0 changes nothing.
    method : {"unsharp", "laplace", "diagonal", "wavelet"}, default "unsharp"
        ``unsharp`` adds the difference from a Gaussian blur; ``laplace`` and ``diagonal`` subtract the
        Laplacian of 4 or 8 neighbours, times 0.1 for an ``amount`` of 1; ``wavelet`` amplifies fine details
        except noise.
    sigma : float, default 1.0
        Standard deviation of the blur of ``unsharp``, in samples.
    channel_axis : int, None or "auto", default "auto"
        Axis of channels. ``auto`` takes the last of three axes if it has 3 or 4 samples.
    axes : sequence of int, optional
        Spatial axes; the other axes count images. All axes except that of the channels if None.
    mask : array of bool, optional
        True where samples are valid. Other samples, like NaNs and infinities, stay unchanged and are left out
        of all statistics. NaNs and infinities on a device are not detected; pass a mask.
    backend : {"auto", "cpu", "reference", "cuda", "opencl"}, default "auto"
        Where arrays of NumPy are filtered; ``auto`` is the CPU, ``reference`` is plain NumPy, and ``cuda:1``
        is the second GPU that :func:`undula.devices` lists. Arrays on a device are filtered where they are.

    Returns
    -------
    array
        Image of the shape, dtype and library of the input, on the same device.

    Examples
    --------
    >>> step = np.repeat([[0.0, 1.0]], 8, axis=0).repeat(4, axis=1)
    >>> bool(sharpen(step).max() > 1)
    True
    """
    pipeline = Sharpening(amount=amount, method=method, sigma=sigma).pipeline()
    return pipeline(image, channel_axis=channel_axis, axes=axes, mask=mask, backend=backend)


@accept_former_names
def enhance(
    image: Any,
    amount: float = Enhancing.amount,
    *,
    denoise: bool = Enhancing.denoise,
    wavelet: str | Wavelet = Enhancing.wavelet,
    level: int | None = Enhancing.level,
    max_gain: float = Enhancing.max_gain,
    channel_axis: int | str | None = AUTO,
    axes: Sequence[int] | None = None,
    mask: Any = None,
    backend: str = "auto",
) -> Any:
    """Enhance weak structures at all scales, after removing some noise.

    Parameters
    ----------
    image : array
        Array of integers or floats of NumPy; of CuPy, PyTorch or JAX on a GPU; or of Dask, which is filtered
        when the result is computed.
    amount : float, default 0.4
        From 0, which changes nothing, to 1, which makes all details equally strong.
    denoise : bool, default True
        Whether to remove noise first.
    wavelet : str or Wavelet, default "bior4.4"
        The wavelet.
    level : int, optional
        Number of levels; up to 4, depending on the size of the image, if None.
    max_gain : float, default 3.0
        Upper limit on the gain applied to any detail.
    channel_axis : int, None or "auto", default "auto"
        Axis of channels. ``auto`` takes the last of three axes if it has 3 or 4 samples.
    axes : sequence of int, optional
        Spatial axes; the other axes count images. All axes except that of the channels if None.
    mask : array of bool, optional
        True where samples are valid. Other samples, like NaNs and infinities, stay unchanged and are left out
        of all statistics. NaNs and infinities on a device are not detected; pass a mask.
    backend : {"auto", "cpu", "reference", "cuda", "opencl"}, default "auto"
        Where arrays of NumPy are filtered; ``auto`` is the CPU, ``reference`` is plain NumPy, and ``cuda:1``
        is the second GPU that :func:`undula.devices` lists. Arrays on a device are filtered where they are.

    Returns
    -------
    array
        Image of the shape, dtype and library of the input, on the same device.

    Examples
    --------
    >>> image = 100 + 5 * np.sin(np.arange(64) / 3) * np.ones((64, 1))
    >>> bool(enhance(image).std() > image.std())
    True
    """
    pipeline = Enhancing(
        amount=amount, denoise=denoise, wavelet=wavelet, level=level, max_gain=max_gain
    ).pipeline()
    return pipeline(image, channel_axis=channel_axis, axes=axes, mask=mask, backend=backend)
