"""The transform functions: those of PyWavelets, lifting transforms, and transforms of streams of rows."""

from .discrete import (
    dwt,
    dwt2,
    dwtn,
    idwt,
    idwt2,
    idwtn,
    wavedec,
    wavedec2,
    wavedecn,
    waverec,
    waverec2,
    waverecn,
)
from .lifted import ilwt, ilwt2, ilwtn, lwt, lwt2, lwtn
from .partial import FswavedecnResult, downcoef, fswavedecn, fswaverecn, upcoef
from .stream import ForwardStream, InverseStream, Rows, collect_rows

__all__ = [
    "ForwardStream",
    "FswavedecnResult",
    "InverseStream",
    "Rows",
    "collect_rows",
    "downcoef",
    "dwt",
    "dwt2",
    "dwtn",
    "fswavedecn",
    "fswaverecn",
    "idwt",
    "idwt2",
    "idwtn",
    "ilwt",
    "ilwt2",
    "ilwtn",
    "lwt",
    "lwt2",
    "lwtn",
    "upcoef",
    "wavedec",
    "wavedec2",
    "wavedecn",
    "waverec",
    "waverec2",
    "waverecn",
]
