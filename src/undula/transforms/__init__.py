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
from .model import Ceilings, PlanCost, Prediction, ceilings
from .ondevice import devices
from .partial import FswavedecnResult, downcoef, fswavedecn, fswaverecn, upcoef
from .plan import Plan
from .stream import ForwardStream, InverseStream, Rows, collect_rows

__all__ = [
    "Ceilings",
    "ForwardStream",
    "FswavedecnResult",
    "InverseStream",
    "Plan",
    "PlanCost",
    "Prediction",
    "Rows",
    "ceilings",
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
