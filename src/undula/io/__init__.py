"""Files: pictures of every usual kind, DICOM, arrays, and video.

What a file is, is seen by its content; what is written, by the suffix. Nothing is ever half written.
"""

from .dicom import window
from .files import IMAGES, LIMIT, VIDEOS
from .picture import Picture
from .raster import read, write
from .samples import sample, samples
from .video import Video, look, process, read_frames

__all__ = [
    "IMAGES",
    "LIMIT",
    "VIDEOS",
    "Picture",
    "Video",
    "look",
    "process",
    "read",
    "read_frames",
    "sample",
    "samples",
    "window",
    "write",
]
