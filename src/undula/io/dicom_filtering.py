"""Filter DICOM files: images, clips and series, without the regions that are to be left alone.

A clip is one file with many frames; a series is many files, whose images follow each other in space or time.
"""

from __future__ import annotations

import itertools
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError
from ..filters.memory import check_memory, working_memory
from ..filters.video import TemporalDenoiser
from .derivation import Derivation
from .dicom import read_header, refuse_map
from .files import output_kind
from .picture import RGB, Picture
from .protection import find_protected, is_grey_outside, show_protected
from .raster import read, save, write
from .video import Planes, check_window, filter_windows

__all__ = ["AUTOMATIC", "NOTHING", "DicomFilter", "DicomFrame", "FilteredDicom", "dicom_frames"]

Array = NDArray[Any]
Mask = NDArray[np.bool_]
Progress = Callable[[int], None]

AUTOMATIC, NOTHING = "auto", "none"
BLACK = 0.25  # The greatest brightness of black in a mask.
MAX_BETWEEN = 0.05  # The share of a mask that may be neither black nor white, as at smooth edges.
KEPT_NOTE = "burned-in text and coloured pixels unchanged"


@dataclass(frozen=True)
class FilteredDicom:
    """What was filtered.

    Attributes
    ----------
    shape : tuple of int
        That of the pixels.
    frames : int
    protected : float
        The share of the pixels that was left unchanged.
    lost : tuple of str
        What the result does not keep.
    """

    shape: tuple[int, ...]
    frames: int
    protected: float
    lost: tuple[str, ...] = ()


@dataclass(frozen=True)
class DicomFrame:
    """A frame of a clip or series, and where it is protected.

    With ``is_grey``, RGB pixels have hardly any colours where they are not protected. Then their brightness
    is filtered, and its change is added to each channel.
    """

    picture: Picture  # that the frame is from, with its metadata
    pixels: Array
    protected: Mask | None
    is_grey: bool = False

    @property
    def channel_axis(self) -> int | None:
        """The axis of channels of :attr:`samples`."""
        return -1 if self.picture.channels == RGB and not self.is_grey else None

    @property
    def samples(self) -> Array:
        """What is filtered."""
        if not self.is_grey:
            return self.pixels
        red, green, blue = np.moveaxis(self.pixels.astype(np.uint16), -1, 0)
        return np.asarray((red + 2 * green + blue + 2) >> 2, self.pixels.dtype)

    def valid(self) -> Mask:
        """Return a mask of the pixels that are filtered."""
        stored = self.picture.stored
        valid = None if stored is None or self.pixels.ndim == 3 else stored.valid(self.pixels)
        if self.protected is not None:
            return ~self.protected if valid is None else valid & ~self.protected
        return np.ones(self.pixels.shape[:2], bool) if valid is None else valid

    def filtered(self, work: Callable[..., Any], **options: Any) -> Array:
        """Filter the frame where it is valid."""
        result = _apply(work, self.samples, self.valid(), channel_axis=self.channel_axis, **options)
        return self.fitted(result)

    def fitted(self, result: Array) -> Array:
        """Return a result as it can be stored, with the pixels that are not filtered as they were."""
        stored, valid = self.picture.stored, self.valid()
        if self.is_grey:
            result = self.pixels + (result.astype(np.int16) - self.samples)[..., None]
        fitted = result if stored is None else stored.fitted(result, self.pixels)
        return np.where(valid if fitted.ndim == 2 else valid[..., None], fitted, self.pixels)


@dataclass(frozen=True)
class DicomFilter:
    """A filter for DICOM files, and how it is applied.

    Parameters
    ----------
    work : Pipeline, TemporalDenoiser or callable
        Takes an image and the keywords of a Pipeline.
    over_time : int, default 0
        The number of frames or slices that are filtered together; 0 for one by one. A
        :class:`~undula.filters.video.TemporalDenoiser` follows motion; other filters take windows as volumes.
    protect : {"auto", "none"} or path, default "auto"
        What is left unchanged. ``auto`` finds burned-in text and colour Doppler; a picture of the same size
        in black and white protects its white pixels.
    shown_mask : path, optional
        Where to write a picture that shows what is protected.
    derivation : Derivation, optional
        What results say about themselves; with the same one, those of several files form one series.
    sigma, backend, max_pixels
        As for other images.
    maps : bool, default False
        Whether to filter dose grids, parametric maps and segmentations, too.
    """

    work: Callable[..., Any]
    over_time: int = 0
    protect: str = AUTOMATIC
    shown_mask: Path | None = None
    derivation: Derivation | None = None
    sigma: float | None = None
    backend: str = "auto"
    max_pixels: int | None = None
    maps: bool = False

    def filter_file(
        self, source: Path, target: Path, begin: Callable[[int], Progress] | None = None
    ) -> FilteredDicom:
        """Filter an image or a clip.

        ``begin`` is called with the number of frames, and returns a function that is called with the number
        of frames done.
        """
        picture = self._read(source)
        if self.over_time and not picture.pages:
            raise ArgumentError(
                f"over_time applies to video, DICOM clips and folders of slices; {source} is one image"
            )
        protected = self._protected(picture)
        frames = list(dicom_frames(picture, protected))
        progress = begin(len(frames)) if begin is not None else None
        results = []
        for result in self.filtered(frames):
            results.append(result)
            if progress is not None:
                progress(len(results))
        lost = self._write(target, picture, np.stack(results) if picture.pages else results[0], protected)
        return FilteredDicom(picture.pixels.shape, len(frames), _share(protected), lost)

    def filter_series(self, sources: Sequence[Path], targets: Sequence[Path]) -> list[FilteredDicom]:
        """Filter images over time or space, in the order of ``sources``; write all targets, or none."""
        waiting: deque[DicomFrame] = deque()

        def frames() -> Iterator[DicomFrame]:
            for source in sources:
                picture = self._read(source)
                frame = DicomFrame(picture, picture.pixels, self._protected(picture))
                if waiting and frame.pixels.shape != waiting[0].pixels.shape:
                    raise ArgumentError(
                        f"images that are filtered together must have one size; {source} has shape"
                        f" {frame.pixels.shape}, others have {waiting[0].pixels.shape}"
                    )
                waiting.append(frame)
                yield frame

        headers = [read_header(source) for source in sources]  # of the neighbours of each image
        report = []
        with ExitStack() as stack:
            folders: dict[Path, Path] = {}
            for number, result in enumerate(self.filtered(frames())):
                target, frame = targets[number], waiting.popleft()
                if target.parent not in folders:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    folder = tempfile.TemporaryDirectory(prefix=".undula-", dir=target.parent)
                    folders[target.parent] = Path(stack.enter_context(folder))
                first, last = max(0, number - self.over_time), number + self.over_time + 1
                neighbors = (*headers[first:number], *headers[number + 1 : last])
                temporary = folders[target.parent] / target.name
                lost = self._write(temporary, frame.picture, result, frame.protected, neighbors)
                report.append(FilteredDicom(frame.pixels.shape, 1, _share(frame.protected), lost))
            for target in targets:
                (folders[target.parent] / target.name).replace(target)
        return report

    def _read(self, source: Path) -> Picture:
        picture = read(source, self.max_pixels)
        if not self.maps:
            refuse_map(source, picture.about["dataset"])
        return picture

    def _protected(self, picture: Picture) -> Mask | None:
        """Return a mask of protected pixels, or None, and write the picture that shows them."""
        protected = None
        if self.protect == AUTOMATIC:
            protected = find_protected(picture)
        elif self.protect != NOTHING:
            protected = _read_mask(Path(self.protect), picture)
        if self.shown_mask is not None:
            self.shown_mask.parent.mkdir(parents=True, exist_ok=True)
            write(self.shown_mask, show_protected(picture, protected))
        return protected

    def filtered(self, frames: Iterable[DicomFrame]) -> Iterator[Array]:
        """Yield the filtered pixels of frames that have one shape."""
        count = len(frames) if isinstance(frames, Sequence) else None
        frames = iter(frames)
        first = next(frames)
        frames = itertools.chain([first], frames)
        shape = " × ".join(map(str, first.pixels.shape))
        check_memory(self.working_memory(first, count), f"filtering frames of {shape} samples")
        options: dict[str, Any] = {"sigma": self.sigma, "backend": self.backend}
        if not self.over_time:
            for frame in frames:
                yield frame.filtered(self.work, **options)
            return
        options["channel_axis"] = first.channel_axis
        waiting: deque[DicomFrame] = deque()

        def planes() -> Iterator[Planes]:
            for frame in frames:
                waiting.append(frame)
                yield [frame.samples, frame.valid()]

        results: Iterator[Array]
        if isinstance(self.work, TemporalDenoiser):
            results = self.work((pixels for pixels, _ in planes()), **options)
        else:
            check_window(self.over_time)
            windows = filter_windows(planes(), lambda x: [_apply(self.work, *x, **options)], self.over_time)
            results = (pixels for (pixels,) in windows)
        for result in results:
            yield waiting.popleft().fitted(result)

    def working_memory(self, frame: DicomFrame, count: int | None = None) -> int:
        """Return the bytes that filtering a frame, or a window of frames, takes besides their pixels."""
        samples, together = frame.samples, self.over_time
        if count is not None:
            together = min(together, count)
        return working_memory(
            self.work,
            (together, *samples.shape) if together else samples.shape,
            samples.dtype,
            channel_axis=frame.channel_axis,
            sigma=self.sigma is not None,
            mask=True,
            backend=self.backend,
        )

    def _write(
        self, target: Path, picture: Picture, pixels: Array, protected: Mask | None, neighbors: Any = ()
    ) -> tuple[str, ...]:
        """Write the result for a file, and return what it does not keep."""
        options = {}
        if output_kind(target, picture.kind, picture.about.get("suffix", "")) == "dicom":
            note = "" if protected is None else KEPT_NOTE
            options["derivation"] = replace(
                self.derivation or Derivation(), note=note, neighbors=tuple(neighbors)
            )
        return save(target, picture.with_pixels(pixels), **options)


def _apply(work: Callable[..., Any], x: Array, valid: Mask, **options: Any) -> Array:
    """Filter an image or a volume where it is valid."""
    if not valid.any():
        return x
    mask = {} if valid.all() else {"mask": valid}
    return np.asarray(work(x, **mask, **options))


def dicom_frames(picture: Picture, protected: Mask | None) -> Iterator[DicomFrame]:
    """Yield the frames of a clip, or the only one of an image."""
    is_grey = protected is not None and is_grey_outside(picture, protected)
    for number, page in enumerate(picture.all_pages):
        mask = protected[number] if protected is not None and protected.ndim == 3 else protected
        yield DicomFrame(picture, page, mask, is_grey)


def _share(protected: Mask | None) -> float:
    return 0.0 if protected is None else float(protected.mean())


def _read_mask(path: Path, picture: Picture) -> Mask:
    """Read a mask of protected pixels from a picture in black and white, where they are white."""
    given = read(path).upright()
    levels = given.all_pages[0]
    if given.channel_axis is not None:
        levels = levels[..., : 3 if given.space == "rgb" else 1].max(axis=-1)
    size = tuple(picture.pixels.shape[axis] for axis in picture.axes)
    if levels.shape != size:
        raise ArgumentError(
            f"the mask {path} has {levels.shape[1]} × {levels.shape[0]} pixels, and the image"
            f" {size[1]} × {size[0]}"
        )
    brightness = levels / (float(levels.max()) or 1.0)
    between = float(np.mean((brightness > BLACK) & (brightness < 1 - BLACK)))
    if between > MAX_BETWEEN:
        raise ArgumentError(
            f"{between:.0%} of the mask {path} are neither black nor white; paint what is to be left"
            " unchanged in white on black (show_mask writes a picture to look at, not a mask)"
        )
    return np.asarray(brightness > BLACK)
