"""From a frame and a chain to what a view shows, with figures; nothing here knows of pages or browsers."""

from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError
from ..filters import Pipeline, Trace, estimate_sigma, picture
from ..filters.pictures import to_numpy
from ..filters.planes import ImagePlanes
from ..filters.trace import RunOptions
from ..io.stored import StoredRange
from ..measures import psnr, ssim
from .inputs import Input, Screen

__all__ = ["VIEWS", "Band", "Made", "Place", "Settings", "bands", "compared", "layers", "made"]

Array = NDArray[Any]
Shown = NDArray[np.uint8]

VIEWS = {
    "synthesis": ("Result", "the filtered picture (synthesis)"),
    "divider": ("Before | After", "both, with a divider to drag"),
    "side": ("Side by side", "the original and the result"),
    "difference": ("Difference", "what the filter changed, around mid-grey"),
    "analysis": ("Analysis", "the wavelet pyramid, details at mid-grey"),
    "filtered": ("Filtered", "the pyramid after the filter (filtered analysis)"),
}
PYRAMIDS = ("analysis", "filtered")


@dataclass(frozen=True)
class Settings:
    """Where, and how, a chain is run."""

    backend: str = "cpu"
    strategy: str = "auto"
    scheme: str = "auto"


@dataclass(frozen=True)
class Place:
    """A device for arrays: those of an array library, where one is installed for it."""

    backend: str

    def _library(self) -> Any:
        """CuPy or PyTorch, if either is there and knows the GPU."""
        if not self.backend.startswith("cuda"):
            return None
        for name in ("cupy", "torch"):
            try:
                module = sys.modules.get(name) or __import__(name)
                if name == "cupy" or module.cuda.is_available():
                    return module
            except ImportError:
                continue
        return None

    def put(self, x: Array) -> tuple[Any, str]:
        """The array there, and the backend to ask for; NumPy's stay, and transforms bring them there."""
        library = self._library()
        number = int(self.backend.partition(":")[2] or 0)
        if library is None:
            return x, self.backend
        if library.__name__ == "cupy":
            with library.cuda.Device(number):
                there = library.asarray(x)
                library.cuda.get_current_stream().synchronize()
            return there, "auto"
        if x.dtype in (np.uint16, np.uint32, np.uint64):
            x = x.astype(np.int64 if x.dtype == np.uint64 else f"i{2 * x.dtype.itemsize}")
        there = library.from_numpy(np.ascontiguousarray(x)).to(f"cuda:{number}")
        library.cuda.synchronize(number)
        return there, "auto"


@dataclass
class Made:
    """A result, and how long it took."""

    before: Array
    after: Array
    milliseconds: dict[str, float] = field(default_factory=dict)
    trace: Trace | None = None


def made(
    frame: Array,
    channel_axis: int | None,
    pipeline: Pipeline,
    settings: Settings,
    stored: StoredRange | None = None,
) -> Made:
    """A frame, filtered; with values that its file can store."""
    begin = time.perf_counter()
    valid = stored.valid(frame) if stored is not None else None
    if valid is not None and not valid.any():
        return Made(frame, frame, {"all": 0.0})
    trace = Trace()
    told: dict[str, Any] = {"channel_axis": channel_axis, "trace": trace}
    if settings.backend == "cpu":  # (which has one way of its own, whatever the scheme)
        result = pipeline(frame, mask=valid, **told)
        moved = 0.0
    else:
        place = Place(settings.backend)
        there, backend = place.put(frame)
        told["mask"] = None if valid is None else place.put(valid)[0]
        up = time.perf_counter()
        result = pipeline(there, backend=backend, strategy=settings.strategy, scheme=settings.scheme, **told)
        down = time.perf_counter()
        result = np.asarray(to_numpy(result)).astype(frame.dtype, copy=False)
        moved = (up - begin) + (time.perf_counter() - down)
    if stored is not None:
        result = stored.fitted(result, frame)
    whole = time.perf_counter() - begin
    moved += trace.seconds.pop("transfer")
    parts = {name: 1e3 * seconds for name, seconds in trace.seconds.items()}
    rest = 1e3 * whole - sum(parts.values()) - 1e3 * moved
    return Made(
        frame,
        result,
        {**parts, "transfer": 1e3 * moved, "colour and rounding": max(0.0, rest), "all": 1e3 * whole},
    )


def bands(
    frame: Array, channel_axis: int | None, pipeline: Pipeline, stored: StoredRange | None = None
) -> tuple[Shown, Shown, Trace]:
    """The pyramid before and after the filter, as pictures, and what was seen of it.

    It is that of brightness, where there are colours, and of one shift, also where the chain has all of them.
    """
    seen = stored.valid(frame) if stored is not None else None
    subject = ImagePlanes(frame, channel_axis, None, pipeline.colors, seen)
    if subject.ndim != 2:
        raise ArgumentError("there are pyramids of pictures with two axes")
    if pipeline.levels_for(subject.planes.shape[1:]) == 0:
        raise ArgumentError("there is no pyramid without a level; choose one or more")
    trace = Trace(keep=True)
    planes = subject.planes[:1] if subject.mixed else subject.planes
    valid = subject.valid[:1] if subject.valid is not None and subject.mixed else subject.valid
    options = RunOptions(trace=trace)
    replace(pipeline, invariant=False).on_planes(subject.arrays, planes, 2, None, valid, options)
    assert trace.before is not None
    assert trace.after is not None
    shape = planes.shape[1:]
    pictures = [picture(*pair, shape) for pair in (trace.before, trace.after)]
    before, after = (np.moveaxis(p, 0, -1) if len(p) in (3, 4) else p[0] for p in pictures)
    return np.ascontiguousarray(before), np.ascontiguousarray(after), trace


@dataclass(frozen=True)
class Band:
    """Coefficients of one band, counted, and the thresholds of stages in it."""

    counts: tuple[int, ...]
    limit: float
    thresholds: tuple[float, ...]
    after: tuple[int, ...]

    @classmethod
    def of(cls, trace: Trace, level: int, key: str, bins: int = 121) -> Band:
        """A band of a trace, by level from 1, the finest, and key."""
        assert trace.before is not None
        assert trace.after is not None
        level = min(level, len(trace.before[1]))
        found = np.asarray(trace.before[1][level - 1][key])[0].ravel()
        kept = np.asarray(trace.after[1][level - 1][key])[0].ravel()
        limits = [float(one[level - 1, key][0]) for one in trace.limits.values() if (level - 1, key) in one]
        wide = max(float(np.quantile(np.abs(found), 0.995)) if found.size else 0.0, 1e-9)
        top = max(wide, min(1.15 * max(limits, default=0.0), 3 * wide))
        edges = np.linspace(-top, top, bins + 1)
        counts, after = (np.histogram(x, edges)[0] for x in (found, kept))
        return cls(tuple(map(int, counts)), top, tuple(limits), tuple(map(int, after)))


def layers(
    view: str, own: Made, screen: Screen, pyramid: tuple[Shown, Shown] | None = None
) -> dict[str, Shown]:
    """The pictures that a view is made of, by name."""
    if view in PYRAMIDS:
        assert pyramid is not None
        return {view: pyramid[PYRAMIDS.index(view)]}
    if view == "difference":
        return {"difference": difference(own, screen)[0]}
    after = {"after": screen.shown(own.after)}
    return {"before": screen.shown(own.before), **after} if view in ("divider", "side") else after


def difference(own: Made, screen: Screen) -> tuple[Shown, float]:
    """What the filter changed, around mid-grey, and how much that was brought out."""
    kind = np.float32 if own.before.dtype.itemsize <= 2 else np.float64
    change = own.after.astype(kind) - own.before.astype(kind)
    if change.ndim == 3 and change.shape[2] != 3:
        change = change[..., :3] if change.shape[2] > 3 else change[..., 0]
    scaled = np.nan_to_num(change) * change.dtype.type(255 / screen.span)
    spread = 2.5 * float(np.sqrt(np.mean(scaled * scaled, dtype=np.float64)))
    gain = 2.0 ** min(5, max(0, math.floor(math.log2(128 / spread)))) if 0 < spread < math.inf else 1.0
    return np.asarray(np.clip(gain * scaled + 128, 0, 255), np.uint8), gain


def compared(own: Made, reference: Array | None, source: Input) -> dict[str, float]:
    """How noisy both are, and how near the result is to the original or to a reference."""
    found: dict[str, float] = {}
    if min(own.before.shape[:2]) > 4:
        valid = source.stored.valid(own.before) if source.stored is not None else None
        found["noise before"], found["noise after"] = (_noise(x, valid) for x in (own.before, own.after))
    against = own.before if reference is None else reference
    if against.shape != own.after.shape:
        return found
    span, axis = source.screen.span, source.channel_axis
    found["psnr"] = _psnr(against, own.after, span)
    if min(own.after.shape[:2]) >= 7:
        # (Windows are 7 high: strips of a picture, with three rows more at both ends, have all of them once.)
        strips = _strips(against, 3)
        parts = [(s.stop - s.start - 6) * ssim(against[s], own.after[s], span, axis) for s in strips]
        found["ssim"] = sum(parts) / (len(against) - 6)
    if reference is not None:
        found["psnr before"] = _psnr(against, own.before, span)
    return {name: value for name, value in found.items() if not math.isnan(value)}


STRIP = 1 << 20  # samples that are compared at once: figures are numbers of eight bytes, and many for each


def _strips(x: Array, margin: int = 0) -> list[slice]:
    """Rows of a picture, by parts of about one size, with so many more at both ends."""
    count = max(1, min(x.size // STRIP, (len(x) - 2 * margin) // (2 * margin + 1)))
    ends = np.linspace(margin, len(x) - margin, count + 1).astype(int).tolist()
    return [slice(a - margin, b + margin) for a, b in pairwise(ends)]


def _psnr(a: Array, b: Array, span: float) -> float:
    """The PSNR, by parts."""
    error = sum((s.stop - s.start) * 10 ** (-psnr(a[s], b[s], span) / 10) for s in _strips(a)) / len(a)
    return math.inf if error == 0 else -10 * math.log10(error)


def _noise(x: Array, valid: NDArray[np.bool_] | None) -> float:
    grey = x.astype(np.float32)
    if valid is not None:  # (what is no number is left out)
        return float(estimate_sigma(np.where(valid, grey, np.float32(np.nan))))
    if grey.ndim == 3:
        grey = (
            grey[..., :3] @ np.array([0.299, 0.587, 0.114], np.float32) if x.shape[2] >= 3 else grey[..., 0]
        )
    return float(estimate_sigma(np.nan_to_num(grey)))
