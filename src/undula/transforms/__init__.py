"""Transforms of arrays: the public functions. Here plan and backend meet."""

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
from .ondevice import devices
from .partial import FswavedecnResult, downcoef, fswavedecn, fswaverecn, upcoef
from .plan import Plan, PlanCost
from .stream import ForwardStream, InverseStream, Rows, collect_rows

__all__ = [
    "ForwardStream",
    "FswavedecnResult",
    "InverseStream",
    "Plan",
    "PlanCost",
    "Rows",
    "collect_rows",
    "devices",
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
