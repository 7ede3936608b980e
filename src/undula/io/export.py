"""Write images as they are displayed: DICOM as pictures of 8 bits or as video, by a window."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, FileError, FormatWarning
from .derivation import get_element, has_overlays
from .dicom import read_header
from .display import declared_window, frame_rate, value_range, window
from .files import VIDEOS, atomic_write, import_optional, output_kind, short_message
from .picture import Picture
from .raster import read, write
from .series import group_series

__all__ = ["export_picture", "export_series", "write_frames"]

Shown = NDArray[np.uint8]
Window = tuple[float, float]

ANIMATED = ("gif", "webp")
DEFAULT_RATE = 25.0  # of clips that do not declare theirs
SLICE_RATE = 10.0  # of slices, which have no times
MAX_RATE_DENOMINATOR = 1000


def write_frames(
    target: Path, frames: Iterable[Shown], rate: float, options: dict[str, str] | None = None
) -> int:
    """Encode grey or RGB frames of 8 bits as a video, and return their number.

    A row or column is repeated where the encoder needs even sides.
    """
    av = import_optional("av")
    from .containers import CONTAINERS, muxer_options
    from .encoder import BT601, LIMITED_RANGE
    from .encoder_choice import repeatable_options

    kind, count, stream = VIDEOS[target.suffix.lower()], 0, None
    encoder = CONTAINERS[kind].encoders[0]
    with (
        atomic_write(target) as temporary,
        av.open(str(temporary), "w", format=kind, options=muxer_options(target)) as container,
    ):
        for pixels in frames:
            height, width = pixels.shape[:2]
            sides = [(0, height % 2), (0, width % 2), (0, 0)][: pixels.ndim]
            even = np.pad(pixels, sides, mode="edge") if height % 2 or width % 2 else pixels
            rgb = even if even.ndim == 3 else np.repeat(even[..., None], 3, axis=-1)
            if stream is None:
                given = {**repeatable_options(encoder, rgb.shape[1]), **(options or {})}
                speed = Fraction(rate).limit_denominator(MAX_RATE_DENOMINATOR)
                stream = container.add_stream(encoder, rate=speed, options=given)
                stream.height, stream.width, stream.pix_fmt = *rgb.shape[:2], "yuv420p"
                stream.codec_context.colorspace, stream.codec_context.color_range = BT601, LIMITED_RANGE
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(rgb), format="rgb24")
            container.mux(stream.encode(frame.reformat(format="yuv420p")))
            count += 1
        if stream is None:
            raise FileError(f"there are no frames to write to {target}")
        container.mux(stream.encode(None))
    return count


def _quality_options(target: Path, quality: int) -> dict[str, str]:
    is_constant = VIDEOS[target.suffix.lower()] != "avi"
    return {"crf": str(quality), "b": "0"} if is_constant else {"b": "8M"}


def export_picture(
    source: Path,
    target: Path,
    shown_window: Window | None = None,
    frame: int | None = None,
    rate: float | None = None,
    quality: int = 18,
    max_pixels: int | None = None,
) -> int:
    """Write an image as it is displayed, or a clip as a video; return the number of frames.

    Parameters
    ----------
    source, target : path
    shown_window : pair of float, optional
        Center and width; by default that of the file, or the range of its values.
    frame : int, optional
        The frame of a clip to write, from 0; all by default.
    rate : float, optional
        Frames per second; by default those of the file.
    quality : int, default 18
        Constant quality of a video, from 0, the best, to 51.
    max_pixels : int, optional
        The maximum number of pixels.
    """
    picture = read(source, max_pixels).for_screen()
    shown = _shown(source, picture, shown_window)
    pages = shown if picture.pages else shown[None]
    if frame is not None:
        if not 0 <= frame < len(pages):
            raise ArgumentError(f"{source} has frames 0 to {len(pages) - 1}; got frame={frame}")
        pages = pages[frame : frame + 1]
    rate = rate or frame_rate(picture.about.get("dataset")) or DEFAULT_RATE
    kind = output_kind(target)
    if has_overlays(picture.about.get("dataset", ())):
        _warn_of_overlays(target)
    if kind == "video":
        return write_frames(target, pages, rate, _quality_options(target, quality))
    if len(pages) > 1 and kind not in ANIMATED:
        raise FileError(
            f"{source} has {len(pages)} frames, which {target.suffix} does not play; write a video such as"
            f" {target.stem}.mp4, or choose a frame with frame="
        )
    if len(pages) == 1:
        write(target, pages[0])
    else:
        durations = [1000 / rate] * len(pages)
        write(target, Picture(pages, pages=True, about={"durations": durations}))
    return len(pages)


def export_series(
    sources: Sequence[Path],
    target: Path,
    shown_window: Window | None = None,
    rate: float | None = None,
    quality: int = 18,
    max_pixels: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Write the images of a DICOM series as a video, in their order; return the number of frames.

    Without a window, that of the image in the middle is used for all of them, so that their brightness can be
    compared; or the range of all values.
    """
    headers = {source: read_header(source) for source in sources}
    stacks = [stack for stack in group_series(headers) if len(stack) > 1]
    if len(stacks) != 1:
        names = {
            str(get_element(headers[stack[0]], "SeriesDescription", "without description"))
            for stack in stacks
        }
        listed = f": {', '.join(sorted(names))}" if names else ""
        raise FileError(
            f"a video needs the images of one series, and {len(sources)} files have {len(stacks)} series of"
            f" several images{listed}; pass the files or the folder of one"
        )
    (stack,) = stacks
    if shown_window is None:
        shown_window = declared_window(headers[stack[len(stack) // 2]])
    if shown_window is None and int(get_element(headers[stack[0]], "SamplesPerPixel", 1)) == 1:
        ranges = [value_range(read(source, max_pixels)) for source in stack]
        low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
        shown_window = ((low + high + 1) / 2, high - low + 1)

    if any(has_overlays(headers[source]) for source in stack):
        _warn_of_overlays(target)

    def frames() -> Iterator[Shown]:
        for number, source in enumerate(stack):
            yield _shown(source, read(source, max_pixels).for_screen(), shown_window)
            if progress is not None:
                progress(number + 1)

    return write_frames(target, frames(), rate or SLICE_RATE, _quality_options(target, quality))


def _warn_of_overlays(target: Path) -> None:
    warnings.warn(f"{target.name} does not show the overlays of the DICOM file", FormatWarning, stacklevel=3)


def _shown(source: Path, picture: Picture, shown_window: Window | None) -> Shown:
    """Return the pixels as they are displayed, without alpha."""
    try:
        shown = window(picture, *(shown_window or ()))
    except ArgumentError as error:
        raise ArgumentError(f"{source}: {error}") from None
    except Exception as error:
        raise FileError(f"cannot display {source}: {short_message(error)}") from None
    return shown if picture.channel_axis is None else np.ascontiguousarray(shown[..., :3])
