"""What videos are read from: files, cameras and pipes, opened as containers of FFmpeg.

A file is opened only if it is a container itself: a playlist would make FFmpeg open whatever it names.
"""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import FileError
from .files import Y4M_SIGNATURE, import_optional, pixel_limit, short_message
from .foreign import foreign_code
from .truncation import is_index_truncated, lacks_index

__all__ = [
    "VideoSource",
    "Y4MReader",
    "damage_error",
    "decode_error",
    "decoder_limit",
    "directshow_name",
    "is_live",
    "open_container",
]

# Containers in one file. Playlists and session descriptions would make FFmpeg open whatever they name.
READABLE_CONTAINERS = (
    "mov matroska avi mpegts mpeg mpegvideo flv asf ogg mxf nut ivf yuv4mpegpipe dv gif h264 hevc obu m4v"
).split()
PLAYLISTS = (b"#EXTM3U", b"ffconcat", b"v=0", b"<?xml", b"<MPD", b"[playlist]", b"[Reference]", b"<asx")


class Y4MReader:
    """Reads Y4M from a file object that can be read only once, such as standard input.

    The header is read at once, so that the properties of the video are known before its frames.

    Parameters
    ----------
    file : file object
        A binary file.
    head : bytes, optional
        The beginning of the file, if it has been read already.
    """

    MAX_HEADER_BYTES = 4096

    def __init__(self, file: Any, head: bytes = b"") -> None:
        self.header = head if b"\n" in head else head + file.readline(self.MAX_HEADER_BYTES)
        if not self.header.startswith(Y4M_SIGNATURE):
            raise FileError(f"cannot read {self} as a video: only Y4M can be read from a pipe")
        self._file, self._unread, self.size = file, self.header, 0

    def __str__(self) -> str:
        return "standard input"

    def read(self, count: int) -> bytes:
        """Read bytes, as a file does."""
        data = self._unread or self._file.read(count)
        data, self._unread = data[:count], data[count:]
        self.size += len(data)
        return bytes(data)

    def without_frames(self) -> Y4MReader:
        """Return a reader of the header alone."""
        return Y4MReader(io.BytesIO(), self.header)


VideoSource = str | Path | Y4MReader


def is_live(source: VideoSource) -> bool:
    """Return whether a source is a camera or a pipe, which can be read only once."""
    return isinstance(source, Y4MReader) or str(source).startswith("camera:")


def _camera(text: str) -> tuple[str, str]:
    """Return FFmpeg's name and format of a camera such as ``camera:0``."""
    number = text.partition(":")[2] or "0"
    if not number.isdigit():
        raise FileError(f"expected camera:0, camera:1 and so on, got {text!r}")
    if sys.platform == "darwin":
        return number, "avfoundation"
    if sys.platform == "win32":
        listed = import_optional("av").enumerate_input_devices("dshow")
        return f"video={directshow_name(int(number), listed)}", "dshow"
    return f"/dev/video{number}", "v4l2"


def directshow_name(number: int, listed: Sequence[Any]) -> str:
    """Return the name by which DirectShow, which knows no numbers, opens a camera.

    Parameters
    ----------
    number : int
        The number of the camera, in the order of the list.
    listed : sequence of av.DeviceInfo
        All devices that DirectShow lists, microphones included.
    """
    # Devices that are in use may not tell what they record.
    cameras = [device for device in listed if "video" in device.media_types or not device.media_types]
    if number < len(cameras):
        return str(cameras[number].name)
    names = ", ".join(f"camera:{place} ({device.description})" for place, device in enumerate(cameras))
    raise FileError(f"there is no camera:{number}; DirectShow lists {names or 'no cameras'}")


def decode_error(path: VideoSource, number: int, error: BaseException) -> FileError:
    """Return an error that names the frame that could not be decoded."""
    refused = getattr(error, "errno", None) == errno.EINVAL
    cause = "it is damaged, or larger than the limit, max_pixels"
    return FileError(f"cannot read frame {number} of {path}: {cause if refused else short_message(error)}")


def damage_error(path: VideoSource, number: int) -> FileError:
    """Return an error that names the damaged frame."""
    advice = f", or read the frames before it with count={number}" if number else ""
    return FileError(f"frame {number} of {path} is damaged; fetch the file again{advice}")


def decoder_limit(max_pixels: int | None) -> str:
    """Return the limit on pixels as an option of FFmpeg, which refuses larger numbers than 31 bits."""
    return str(min(pixel_limit(max_pixels), (1 << 31) - 1))


def open_container(path: VideoSource, max_pixels: int | None, **options: str) -> Any:
    """Open a local file or a camera; decoders refuse frames that are too large."""
    av, problem = import_optional("av"), f"cannot read {path} as a video"
    limit = {"max_pixels": decoder_limit(max_pixels)}
    if isinstance(path, Y4MReader):
        with foreign_code(problem):
            return av.open(path, format="yuv4mpegpipe", options=limit)
    if str(path).startswith("camera:"):
        with foreign_code(problem):
            name, kind = _camera(str(path))
            return av.open(name, format=kind, options=limit)
    try:
        with Path(str(path)).open("rb") as file:
            head = file.read(64)
    except OSError as error:
        raise FileError(f"cannot read {path}: {short_message(error)}") from None
    if not head:
        raise FileError(f"{path} is empty")
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(PLAYLISTS):
        raise FileError(f"{path} is a playlist; pass the videos that it lists instead")
    allowed = {"protocol_whitelist": "file", "format_whitelist": ",".join(READABLE_CONTAINERS), **options}
    # PyAV 19 always keeps tags that are not UTF-8 as surrogates; PyAV 18 has to be told to.
    tags = (
        {"metadata_errors": "surrogateescape"} if hasattr(av.container.Container, "metadata_errors") else {}
    )

    def open_error(error: BaseException) -> FileError:
        if lacks_index(Path(str(path))):
            return FileError(
                f"{problem}: it has no index of its frames (moov), which is often at the end; it is cut off,"
                " or its recording was not finished: fetch it again"
            )
        return FileError(f"{problem}: {short_message(error)}")

    with foreign_code(open_error):
        container = av.open(f"file:{path}", container_options=allowed, options=limit, **tags)
    if container.format.name.startswith("mov") and is_index_truncated(Path(str(path))):
        container.close()
        raise FileError(
            f"{path} ends within the index of its frames (moov), so that streams, frames or tags are missing:"
            " it is cut off; fetch it again, or save its video (ffmpeg -i … -map 0:v -c copy …)"
        )
    return container
