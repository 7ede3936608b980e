"""The views of a frame: it is filtered, drawn as bitmaps and measured; nothing here depends on pages."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import library_of, upload
from ..errors import ArgumentError
from ..filters import Pipeline, Trace, estimate_sigma, picture
from ..filters.planes import GivenImage
from ..measures import psnr, ssim
from .dicom import DicomFacts
from .inputs import DisplayRange, Input

__all__ = [
    "VIEWS",
    "BandHistogram",
    "FilteredFrame",
    "Settings",
    "TimedWork",
    "filter_frame",
    "quality_figures",
    "region_text",
    "render_difference",
    "render_pyramids",
    "view_layers",
]

Array = NDArray[Any]
Bitmap = NDArray[np.uint8]

VIEWS = {
    "synthesis": "Result",
    "divider": "Before | After",
    "side": "Side by side",
    "difference": "Difference",
    "analysis": "Analysis",
    "filtered": "Filtered",
}
PYRAMID_VIEWS = ("analysis", "filtered")


@dataclass(frozen=True)
class Settings:
    """The device that runs a chain, and how."""

    backend: str = "cpu"
    strategy: str = "auto"
    scheme: str = "auto"


def _upload(x: Array, backend: str) -> tuple[Any, str]:
    """Copy an array to a GPU with CuPy or PyTorch, and return it with the backend to use.

    Without these libraries the array stays on the host, and the transforms copy it.
    """
    name, _, number = backend.partition(":")
    uploaded = upload(x, int(number or 0)) if name == "cuda" else None
    return (x, backend) if uploaded is None else (uploaded, "auto")


@dataclass
class FilteredFrame:
    """A frame before and after filtering, and the milliseconds of each phase; ``note`` is empty if exact."""

    before: Array
    after: Array
    milliseconds: dict[str, float] = field(default_factory=dict)
    note: str = ""  # what is not exact about a preview


class TimedWork:
    """A pipeline on the chosen device, called as Undula calls filters; it measures the time of each phase."""

    def __init__(self, pipeline: Pipeline, settings: Settings) -> None:
        self._pipeline, self._settings = pipeline, settings
        self._trace, self._transfer = Trace(), 0.0
        self._begin = time.perf_counter()

    def __call__(self, x: Array, *, channel_axis: int | None, mask: Any = None, **options: Any) -> Array:
        """Filter an image or a volume."""
        settings = self._settings
        options = {"channel_axis": channel_axis, "trace": self._trace}
        if settings.backend == "cpu":  # The CPU engine has no choice of schemes and strategies.
            return np.asarray(self._pipeline(x, mask=mask, **options))
        begin = time.perf_counter()
        uploaded, backend = _upload(x, settings.backend)
        mask = None if mask is None else _upload(mask, settings.backend)[0]
        self._transfer += time.perf_counter() - begin
        options |= {"backend": backend, "strategy": settings.strategy, "scheme": settings.scheme}
        result = self._pipeline(uploaded, mask=mask, **options)
        begin = time.perf_counter()
        result = library_of(result).to_numpy(result).astype(x.dtype, copy=False)
        self._transfer += time.perf_counter() - begin
        return np.asarray(result)

    def milliseconds(self) -> dict[str, float]:
        """Return the time of each phase since the start."""
        total = time.perf_counter() - self._begin
        seconds = dict(self._trace.seconds)
        seconds["transfer"] = self._transfer + seconds.get("transfer", 0.0)
        seconds["colour and rounding"] = max(0.0, total - sum(seconds.values()))
        seconds["total"] = total
        return {name: 1e3 * value for name, value in seconds.items()}


def filter_frame(
    frame: Array,
    channel_axis: int | None,
    pipeline: Pipeline,
    settings: Settings,
    filtered: Callable[[TimedWork], Array] | None = None,
) -> FilteredFrame:
    """Filter a frame: its samples as they are, or by a function that applies a filter to its file."""
    work = TimedWork(pipeline, settings)
    result = work(frame, channel_axis=channel_axis) if filtered is None else filtered(work)
    return FilteredFrame(frame, result, work.milliseconds())


def render_pyramids(
    frame: Array, channel_axis: int | None, pipeline: Pipeline, mask: NDArray[np.bool_] | None = None
) -> tuple[Bitmap, Bitmap, Trace]:
    """Return the pyramid before and after filtering as bitmaps, and the trace with the coefficients.

    For colour it is the pyramid of the luma, and for translation-invariant chains that without shifts.
    """
    image = GivenImage(frame, channel_axis, None, pipeline.colors, mask)
    layout, mask = image.layout, image.mask
    if layout.ndim != 2:
        raise ArgumentError("the pyramid can be shown for two-dimensional images only")
    shape = layout.planes_shape[1:]
    if pipeline.levels_for(shape) == 0:
        raise ArgumentError("there is no pyramid with 0 levels; choose at least one level")
    if layout.mixed:
        frame, channel_axis = layout.to_planes(np, image.array, mask)[0], None
        mask = None if mask is None else layout.mask_planes(np, mask)[0]
    trace = Trace(keep=True)
    replace(pipeline, invariant=False)(frame, channel_axis=channel_axis, mask=mask, trace=trace)
    assert trace.before is not None
    assert trace.after is not None
    pictures = [picture(*pair, shape) for pair in (trace.before, trace.after)]
    before, after = (np.moveaxis(p, 0, -1) if len(p) in (3, 4) else p[0] for p in pictures)
    return np.ascontiguousarray(before), np.ascontiguousarray(after), trace


@dataclass(frozen=True)
class BandHistogram:
    """Histograms of a band before and after filtering, from -``limit`` to ``limit``, and its thresholds."""

    before: tuple[int, ...]
    limit: float
    thresholds: tuple[float, ...]
    after: tuple[int, ...]

    @classmethod
    def from_trace(cls, trace: Trace, level: int, key: str, bins: int = 121) -> BandHistogram:
        """Count the coefficients of a band; level 1 is the finest."""
        assert trace.before is not None
        assert trace.after is not None
        level = min(level, len(trace.before[1]))
        before, after = (
            np.asarray(pyramid[1][level - 1][key])[0].ravel() for pyramid in (trace.before, trace.after)
        )
        band = (level - 1, key)
        thresholds = [float(limits[band][0]) for limits in trace.limits.values() if band in limits]
        # Rare outliers are cut off, but thresholds are shown if they are not far outside.
        spread = (float(np.quantile(np.abs(before), 0.995)) if before.size else 0.0) or 1.0
        limit = max(spread, min(1.15 * max(thresholds, default=0.0), 3 * spread))
        edges = np.linspace(-limit, limit, bins + 1)
        counts = [tuple(map(int, np.histogram(x, edges)[0])) for x in (before, after)]
        return cls(counts[0], limit, tuple(thresholds), counts[1])


def view_layers(
    view: str, result: FilteredFrame, display: DisplayRange, pyramids: tuple[Bitmap, Bitmap] | None = None
) -> dict[str, Bitmap]:
    """Return the bitmaps that a view consists of, by name."""
    if view in PYRAMID_VIEWS:
        assert pyramids is not None
        return {view: pyramids[PYRAMID_VIEWS.index(view)]}
    if view == "difference":
        return {"difference": render_difference(result, display)[0]}
    after = {"after": display.to_uint8(result.after)}
    return {"before": display.to_uint8(result.before), **after} if view in ("divider", "side") else after


def render_difference(result: FilteredFrame, display: DisplayRange) -> tuple[Bitmap, float]:
    """Return the change by the filter around mid-grey, and the gain it was amplified with."""
    dtype = np.float32 if result.before.dtype.itemsize <= 2 else np.float64
    change = result.after.astype(dtype) - result.before.astype(dtype)
    if change.ndim == 3 and change.shape[2] != 3:
        change = change[..., :3] if change.shape[2] > 3 else change[..., 0]
    scaled = np.nan_to_num(change) * change.dtype.type(255 / display.span)
    spread = 2.5 * float(np.sqrt(np.mean(scaled * scaled, dtype=np.float64)))
    gain = 2.0 ** min(5, max(0, math.floor(math.log2(128 / spread)))) if 0 < spread < math.inf else 1.0
    return np.asarray(np.clip(gain * scaled + 128, 0, 255), np.uint8), gain


def region_text(parts: Sequence[Array], facts: DicomFacts) -> str:
    """Return mean, standard deviation and size of a region before and after filtering, in real units."""
    scaled = [facts.slope * part.astype(np.float64) + facts.intercept for part in parts]
    texts = [
        f"{name} " + " → ".join(f"{float(measure(part)):.4g}" for part in scaled)
        for name, measure in (("mean", np.nanmean), ("SD", np.nanstd))
    ]
    height, width = parts[0].shape[:2]
    size = f"{width} × {height} px"
    if facts.spacing is not None:
        size = f"{width * facts.spacing[1]:.4g} × {height * facts.spacing[0]:.4g} mm"
    return "\n".join([*texts, f"{facts.unit}  {size}".strip()])


def quality_figures(result: FilteredFrame, reference: Array | None, source: Input) -> dict[str, float]:
    """Return noise levels, the change by the filter, and PSNR and SSIM against a reference."""
    (before, valid), (after, _) = source.visible(result.before), source.visible(result.after)
    figures: dict[str, float] = {}
    if min(before.shape[:2]) > 4:
        figures["noise before"], figures["noise after"] = (_noise(x, valid) for x in (before, after))
    span, axis = source.display.span, source.channel_axis
    figures["change"] = span * 10 ** (-_psnr(before, after, span) / 20)
    if reference is not None and reference.shape == result.after.shape:
        reference = source.visible(reference)[0]
        figures |= {"psnr": _psnr(reference, after, span), "psnr before": _psnr(reference, before, span)}
        if min(after.shape[:2]) >= 7:
            # Windows are 7 rows high: strips with a margin of 3 rows contain each of them once.
            strips = _strips(reference, 3)
            for name, x in (("ssim", after), ("ssim before", before)):
                parts = [(s.stop - s.start - 6) * ssim(reference[s], x[s], span, axis) for s in strips]
                figures[name] = sum(parts) / (len(reference) - 6)
    return {name: value for name, value in figures.items() if not math.isnan(value)}


STRIP_SAMPLES = 1 << 20  # samples compared at once: figures take many float64 arrays of that size


def _strips(x: Array, margin: int = 0) -> list[slice]:
    """Split the rows of a picture into strips of similar size that overlap by twice the margin."""
    count = max(1, min(x.size // STRIP_SAMPLES, (len(x) - 2 * margin) // (2 * margin + 1)))
    ends = np.linspace(margin, len(x) - margin, count + 1).astype(int).tolist()
    return [slice(a - margin, b + margin) for a, b in pairwise(ends)]


def _psnr(a: Array, b: Array, span: float) -> float:
    """Return the PSNR, computed strip by strip."""
    error = sum((s.stop - s.start) * 10 ** (-psnr(a[s], b[s], span) / 10) for s in _strips(a)) / len(a)
    return math.inf if error == 0 else -10 * math.log10(error)


def _noise(x: Array, valid: NDArray[np.bool_] | None) -> float:
    grey = x.astype(np.float32)
    if grey.ndim == 3:
        luma = np.array([0.299, 0.587, 0.114], np.float32)
        grey = grey[..., :3] @ luma if x.shape[2] >= 3 else grey[..., 0]
    if valid is not None:  # The estimate ignores NaNs.
        return float(estimate_sigma(np.where(valid, grey, np.float32(np.nan))))
    return float(estimate_sigma(np.nan_to_num(grey)))
