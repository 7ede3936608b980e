"""Read, filter and write images, DICOM files, arrays and videos.

The format of an input is detected by its content; the format of an output follows from its suffix. Files are
written atomically: a target is either complete or untouched.
"""

import warnings
from typing import Any

from .derivation import Derivation
from .display import window
from .files import DEFAULT_MAX_PIXELS, IMAGES, VIDEOS
from .picture import Picture
from .protection import find_protected
from .raster import read, write
from .samples import sample, samples
from .video import Video, probe, process, read_frames

__all__ = [
    "DEFAULT_MAX_PIXELS",
    "IMAGES",
    "VIDEOS",
    "Derivation",
    "Picture",
    "Video",
    "find_protected",
    "probe",
    "process",
    "read",
    "read_frames",
    "sample",
    "samples",
    "window",
    "write",
]

_DEPRECATED = {"LIMIT": "DEFAULT_MAX_PIXELS", "look": "probe"}


def __getattr__(name: str) -> Any:
    if name not in _DEPRECATED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    new = _DEPRECATED[name]
    warnings.warn(f"undula.io.{name} is deprecated; use undula.io.{new}", DeprecationWarning, stacklevel=2)
    return globals()[new]
