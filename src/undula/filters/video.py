"""Denoising of video over time: similar blocks of several frames are filtered together, along their motion.

Frames come one by one, and results follow a few frames later, so memory does not grow with the clip. Noise is
estimated in each frame; the median over the frames around it is used, in which single frames, such as those
of a fade, do not matter. Where this median changes by a quarter, a new clip begins.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import DASK, given_array
from ..errors import ArgumentError, ArgumentTypeError
from ..lowering.collaborative import FLOOR, MAX_RANGE, limited_noise
from ..lowering.temporal import MAX_FRAMES, TemporalProfile
from .noise import estimate_sigma
from .planes import AUTO, GivenImage, find_channel_axis
from .unchanged import warn_of_no_noise

if TYPE_CHECKING:
    from ..engines.cpu.temporal import TemporalFilter

__all__ = ["LEAST_NEIGHBOURS", "MOST_NEIGHBOURS", "TemporalDenoiser", "denoised_clip"]

Array = NDArray[Any]

LEAST_NEIGHBOURS, MOST_NEIGHBOURS = 2, MAX_FRAMES // 2 * 2
NEW_NOISE = 1.25  # The factor by which noise changes where a new clip begins.
HOST_BACKENDS = ("auto", "cpu")


class _MeasuredFrame(NamedTuple):
    """A frame, and the noise of its planes."""

    image: GivenImage
    sigmas: Array


@dataclass(frozen=True)
class TemporalDenoiser:
    """A filter of frames of one shape that come one by one.

    Parameters
    ----------
    over_time : int
        Number of frames around a frame whose blocks it gets, half of them before it.
    step : int
        Samples from one reference to the next; fewer take longer, and leave less noise.
    strength : float, default 1.0
        Factor of the noise.
    color : {"ycbcr", "channels"}, default "ycbcr"
        Whether colours have the groups of their luma, or each channel has its own.
    luma, chroma : float, default 1.0
        Factors of the strength for luma and chroma; ``luma`` also applies to grey frames.
    """

    over_time: int
    step: int
    strength: float = 1.0
    color: str = "ycbcr"
    luma: float = 1.0
    chroma: float = 1.0

    def __post_init__(self) -> None:
        given = self.over_time
        if isinstance(given, bool) or not isinstance(given, (int, np.integer)):
            raise ArgumentTypeError(f"over_time must be an integer, got {given!r}")
        if not LEAST_NEIGHBOURS <= given <= MOST_NEIGHBOURS:
            raise ArgumentError(
                f"over_time must be from {LEAST_NEIGHBOURS} to {MOST_NEIGHBOURS} frames; got {given}"
            )

    def __call__(
        self,
        frames: Iterable[Any],
        *,
        sigma: Any = None,
        channel_axis: int | str | None = AUTO,
        backend: str = "auto",
    ) -> Iterator[Any]:
        """Yield filtered frames, in their order; the arguments are those of :func:`undula.denoise_frames`."""
        if backend not in HOST_BACKENDS:
            raise ArgumentError(
                f"denoising over time runs on the CPU; pass backend='cpu' or 'auto', got {backend!r}"
            )
        known = sigma is not None
        return self._filtered(self._steady(self._measured(frames, sigma, channel_axis), known), known)

    @property
    def _radius(self) -> int:
        return int(self.over_time) // 2

    def _measured(
        self, frames: Iterable[Any], sigma: Any, channel_axis: int | str | None
    ) -> Iterator[_MeasuredFrame]:
        """Yield frames with their noise, after checks."""
        for number, frame in enumerate(frames):
            shape = tuple(int(n) for n in given_array(frame, "frame").shape)
            channel = find_channel_axis(shape, channel_axis, None)
            axes = [axis for axis in range(len(shape)) if axis != channel]
            if len(axes) != 2:
                raise ArgumentError(
                    f"frames must have rows, columns and possibly channels, got shape {shape}"
                )
            image = GivenImage(frame, channel, axes, self.color)
            layout = image.layout
            if not image.on_host:
                raise ArgumentError("denoising over time is for frames in the memory of the host; copy them")
            if image.mask is not None:
                raise ArgumentError(
                    f"frame {number} has NaNs, infinities or masked samples; fill them before denoising"
                )
            if number == 0:
                first, unit = layout, image.unit
            elif layout != first:
                raise ArgumentError(
                    f"frames must have one shape and dtype: frame 0 has {first.shape} and {first.dtype},"
                    f" frame {number} {layout.shape} and {layout.dtype}"
                )
            image.unit = unit
            # The caller may use its memory for the next frame.
            image.array = image.in_units() if unit != 1 else image.array.copy()
            if sigma is not None:
                sigmas = layout.item_sigmas(sigma, unit or 1.0).astype(float)
            else:
                planes = layout.to_planes(np, image.array)
                # An axis of few samples in the end would look like channels.
                upright = [plane if plane.shape[0] <= plane.shape[1] else plane.T for plane in planes]
                sigmas = np.array([estimate_sigma(plane) for plane in upright])
            yield _MeasuredFrame(image, sigmas)

    def _steady(self, frames: Iterator[_MeasuredFrame], known: bool) -> Iterator[_MeasuredFrame]:
        """Yield frames with the median of the noise of the frames around them, where it is about the same."""
        if known:
            yield from frames
            return
        radius = self._radius
        near: list[Array] = []  # the noise of frames, up to ``radius`` of which have been yielded
        waiting: deque[_MeasuredFrame] = deque()

        def steadied() -> _MeasuredFrame:
            place = len(near) - len(waiting)
            around = near[max(0, place - radius) : place + radius + 1]
            sigmas = np.median([other for other in around if _similar(other, near[place])], axis=0)
            del near[: max(0, place - radius)]
            return waiting.popleft()._replace(sigmas=sigmas)

        for frame in frames:
            near.append(frame.sigmas)
            waiting.append(frame)
            if len(waiting) > radius:
                yield steadied()
        while waiting:
            yield steadied()

    def _filtered(self, frames: Iterator[_MeasuredFrame], known: bool) -> Iterator[Any]:
        """Filter frames; begin anew where the noise changes."""
        clip: _Clip | None = None
        reported = known or self.strength == 0
        for image, measured in frames:
            factors = [self.luma, self.chroma, self.chroma] if image.layout.mixed else self.luma
            sigmas = measured * self.strength * factors
            if clip is not None and not clip.has_noise(sigmas):
                yield from clip.finish()
                clip = None
            if clip is None:
                profile = TemporalProfile(self._radius, self.step)
                clip = _Clip(image, sigmas, profile)
                if not clip.filters and not reported:
                    warn_of_no_noise(2)
                    reported = True
            yield from clip.push(image)
        if clip is not None:
            yield from clip.finish()


def _similar(sigmas: Array, others: Array) -> bool:
    """Return whether planes have about as much noise as others."""
    return bool(((sigmas <= NEW_NOISE * others) & (others <= NEW_NOISE * sigmas)).all())


class _Clip:
    """Frames with noise of the same standard deviation.

    Parameters
    ----------
    image : GivenImage
        The first frame.
    sigmas : array
        Noise of each plane.
    profile : TemporalProfile
    """

    def __init__(self, image: GivenImage, sigmas: Array, profile: TemporalProfile) -> None:
        from ..engines.cpu.temporal import TemporalFilter  # (imports llvmlite)

        layout, self.sigmas = image.layout, sigmas
        planes = layout.to_planes(np, image.array)
        least = planes.min(axis=(1, 2)).astype(float)
        extent = planes.max(axis=(1, 2)) - least
        sigmas = limited_noise(sigmas, extent)
        noisy = (sigmas > 0) & (extent < MAX_RANGE * sigmas)
        self.waiting: deque[GivenImage] = deque()
        self.results: list[deque[Array]] = []
        self.filters: list[TemporalFilter] = []
        self.planes: list[Array] = []  # numbers of the planes of each filter
        # Blocks are matched in the luma, whether it has noise or not.
        together = [np.arange(len(planes))] if layout.mixed else [np.array([k]) for k in range(len(planes))]
        self.units, self.floors, self.noisy = np.ones(len(planes)), least, noisy
        for numbers in together:
            members = noisy[numbers]
            if not members.any():
                continue
            most = sigmas[numbers][members].max()
            self.units[numbers] = np.where(
                members, sigmas[numbers], np.maximum(most, extent[numbers] / MAX_RANGE)
            )
            used = numbers[members | (numbers == numbers[0])]
            self.planes.append(used)
            self.filters.append(TemporalFilter(len(used), planes.shape[1:], profile))
            self.results.append(deque())
        self.floors = least - FLOOR * self.units

    def has_noise(self, sigmas: Array) -> bool:
        """Return whether planes have about as much noise as those of this clip."""
        return _similar(sigmas, self.sigmas)

    def _scaled(self, planes: Array, number: int) -> Array:
        """Return planes of one filter in units of their noise."""
        used = self.planes[number]
        unit, floor = (values[used][:, None, None] for values in (self.units, self.floors))
        return np.asarray((planes[used] - floor) / unit, np.float32)

    def push(self, image: GivenImage) -> Iterator[Any]:
        """Take the next frame; yield filtered ones."""
        planes = image.layout.to_planes(np, image.array)
        self.waiting.append(image)
        for number, each in enumerate(self.filters):
            self.results[number].extend(each.push(self._scaled(planes, number)))
        yield from self._finished()

    def finish(self) -> Iterator[Any]:
        """Yield the remaining frames."""
        for results, each in zip(self.results, self.filters, strict=True):
            results.extend(each.finish())
        yield from self._finished()

    def _finished(self) -> Iterator[Any]:
        """Yield the frames of which all planes are filtered."""
        while self.waiting and all(self.results):
            image = self.waiting.popleft()
            planes = image.layout.to_planes(np, image.array)
            for number, results in enumerate(self.results):
                # Only differences are rounded to single precision.
                changes = results.popleft() - self._scaled(planes, number)
                for k, change in zip(self.planes[number], changes, strict=True):
                    if self.noisy[k]:
                        planes[k] += (change * self.units[k]).astype(planes.dtype)
            yield image.as_given(image.from_units(image.layout.to_image(np, planes, image.array)))


def denoised_clip(denoiser: TemporalDenoiser, clip: Any, sigma: Any, channel_axis: Any, backend: str) -> Any:
    """Filter a clip that is one array, with its frames along the first axis."""
    if DASK.owns(clip):
        raise ArgumentTypeError(
            "the clip is a Dask array, and denoising over time works on arrays in memory; call its compute()"
            " first, or pass its frames one by one to undula.denoise_frames"
        )
    array = given_array(clip, "image")
    if len(array.shape) not in (3, 4) or 0 in array.shape:
        raise ArgumentError(
            "with over_time, frames are along the first axis of an array with 3 axes, or 4 with channels,"
            f" none of them empty; got shape {tuple(array.shape)}"
        )
    video = GivenImage(clip, None, None, "channels")
    axis = channel_axis
    if isinstance(axis, (int, np.integer)) and not isinstance(axis, bool):
        if axis in (0, -len(array.shape)):
            raise ArgumentError("with over_time, the first axis is that of the frames, not of channels")
        axis = int(axis) - (axis > 0)
    if not video.on_host:
        raise ArgumentError(
            "denoising over time runs on the CPU; copy the clip to the host first, or pass its frames one by"
            " one, as arrays of the host, to undula.denoise_frames"
        )
    frames = denoiser(video.array, sigma=sigma, channel_axis=axis, backend=backend)
    return video.as_given(np.stack(list(frames)))
