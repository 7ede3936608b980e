"""Filtered frames of the current input, and the layers of the view that shows them.

    each page alone     filtered when it is shown
    a volume            filtered once, then sliced; of a large one, a part around the slice is shown first
    frames over time    filtered in their order, from shortly before the frame that is shown

Results are kept until something about them changes. All of this runs in threads, one call at a time.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..engines.threads import cancellable
from ..errors import ArgumentError
from ..filters import Pipeline, Trace
from ..filters.memory import working_memory
from ..filters.unchanged import estimates_noise, is_unchanged
from ..filters.video import TemporalDenoiser
from ..io import Picture
from ..io.dicom_filtering import NOTHING, DicomFilter, DicomFrame
from ..io.stack import StackAxes
from .budget import MemoryBudget, pyramid_memory
from .extents import AppliedChain, filter_clip
from .inputs import Input
from .views import (
    PYRAMID_VIEWS,
    Bitmap,
    FilteredFrame,
    Settings,
    TimedWork,
    filter_frame,
    render_difference,
    render_pyramids,
    view_layers,
)

__all__ = ["RenderRequest", "RenderedView", "Renderer", "filter_memory"]

Array = NDArray[Any]
MAX_LIVE_SAMPLES = 1 << 23  # of a volume that is filtered as a whole while a slider moves
MIN_SLAB = 16  # slices of the part of a larger one that is filtered meanwhile
NO_NOISE = "no noise was found, so nothing was changed"
KEPT_VOLUMES = 2  # those of versions A and B


@dataclass(frozen=True)
class RenderRequest:
    """What to render: a frame of an input, filtered by a chain, and possibly by another one to compare with.

    ``ahead`` is the number of the frame that will be needed next; ``exact`` is False if a preview will do.
    """

    shown: Input
    number: int
    applied: AppliedChain
    settings: Settings
    view: str = "synthesis"
    other: AppliedChain | None = None
    ahead: int | None = None
    exact: bool = True
    camera_frame: int = 0

    @property
    def frame_key(self) -> Any:
        """Identifies the unfiltered frame."""
        return (self.shown.id, self.shown.plane, self.number, self.camera_frame, self.shown.protects)

    @property
    def key(self) -> Any:
        """Identifies the filtered frame."""
        return (self.frame_key, self.applied, self.settings)

    @property
    def work_kind(self) -> Any:
        """Equal for work that the same compiled code does: numbers of its stages differ at most."""
        frame, pipeline = self.shown.first_frame, self.applied.pipeline
        stages = [
            (type(stage), *(value for value in vars(stage).values() if isinstance(value, str)))
            for stage in pipeline.stages
        ]
        applied = (self.applied.extent, self.applied.over_time, self.applied.task is not None)
        return (
            frame.shape,
            frame.dtype.str,
            str(replace(pipeline, stages=())),
            *stages,
            *applied,
            self.settings,
        )


@dataclass(frozen=True)
class RenderedView:
    """A filtered frame, the layers of a view by name, and a note about them."""

    key: Any
    result: FilteredFrame
    layers: dict[str, Bitmap]
    note: str


def frames_together(shown: Input, applied: AppliedChain) -> int:
    """Return how many pages of an input are filtered at the same time."""
    if applied.extent is None:
        return 1
    if applied.is_window:
        return min(applied.over_time + 1, shown.frame_count)
    return max(1, shown.together(0, applied.extent)[0].size // shown.page_samples)


def filter_memory(shown: Input, applied: AppliedChain) -> int:
    """Return the bytes that filtering a page takes, with all that is filtered at the same time."""
    frame, pipeline, extent = shown.first_frame, applied.pipeline, applied.extent
    if extent is not None and not extent.is_window:
        return shown.picture_together(0, extent)[0].working_memory(pipeline, over=extent.over)
    shape = frame.shape
    if applied.is_window:
        shape = (frames_together(shown, applied), *shape)
    axis = None if shown.channel_axis is None else len(shape) - 1
    return working_memory(pipeline, shape, frame.dtype, channel_axis=axis)


def _is_slab(request: RenderRequest, applied: AppliedChain) -> bool:
    """Return whether a part of a volume, around the slice, is filtered until nothing changes any more."""
    if request.exact or applied.extent is None or applied.extent.is_window or len(applied.extent.over) < 3:
        return False
    return frames_together(request.shown, applied) * request.shown.page_samples > MAX_LIVE_SAMPLES


def _slab(request: RenderRequest, applied: AppliedChain) -> tuple[Picture, int, str]:
    """Return the part of a volume around a slice, at the time that is shown; its place; and the axes."""
    shown, extent = request.shown, applied.extent
    assert extent is not None
    thickness = max(MIN_SLAB, MAX_LIVE_SAMPLES // shown.first_frame.size)
    slab, place = shown.slab(request.number, extent, thickness)
    over = extent.over[-3:]
    axes = StackAxes(over, slab.shape[:3])
    return Picture(np.ascontiguousarray(slab), pages=True, stored=shown.stored, stack=axes), place, over


class FrameStream:
    """Frames of a clip, filtered together in their order; the last ones are kept."""

    def __init__(self, shown: Input, number: int, applied: AppliedChain, settings: Settings) -> None:
        first = applied.first_frame(number, shown.first_frame.size)
        self.next = first
        self._ahead = max(number - first, applied.over_time)  # how far it goes on, before one begins anew
        self._shown, self._applied = shown, applied
        self._kept: OrderedDict[int, FilteredFrame] = OrderedDict()
        self._originals: list[Array] = []
        self._timer = TimedWork(applied.pipeline, settings)
        self._results = self._filtered(first, settings)

    def frame(self, number: int) -> FilteredFrame | None:
        """Return a filtered frame; None if it is too far from the last one."""
        if number in self._kept:
            return self._kept[number]
        if not self.next <= number <= self.next + self._ahead:
            return None
        begin = time.perf_counter()
        while self.next <= number:
            after = next(self._results)
            times = {"total": 1e3 * (time.perf_counter() - begin)}
            self._kept[self.next] = FilteredFrame(self._originals.pop(0), after, times)
            self.next += 1
        while len(self._kept) > 2 * self._applied.over_time:
            self._kept.popitem(last=False)
        return self._kept[number]

    def _frames(self, first: int) -> Iterator[Array]:
        last = self._shown.frame_count - 1
        for number in range(first, last + 1):
            frame = self._shown.frame(number, number + 1 if number < last else None)
            self._originals.append(frame)
            yield frame

    def _filtered(self, first: int, settings: Settings) -> Iterator[Array]:
        shown, applied = self._shown, self._applied
        work: Any = applied.work
        if isinstance(work, TemporalDenoiser) and settings.backend != "cpu":
            raise ArgumentError("denoising over time runs on the CPU; choose it as the device")
        if shown.dicom is not None:
            return DicomFilter(self._work(work), applied.over_time, NOTHING, backend="cpu").filtered(
                self._scans(first)
            )
        options = {"backend": "cpu"} if isinstance(work, TemporalDenoiser) else {}
        work = self._work(work)
        return filter_clip(self._frames(first), work, applied.over_time, shown.channel_axis, **options)

    def _work(self, work: Pipeline | TemporalDenoiser) -> Any:
        return work if isinstance(work, TemporalDenoiser) else self._timer

    def _scans(self, first: int) -> Iterator[DicomFrame]:
        for number, frame in enumerate(self._frames(first), first):
            scan = self._shown.scan(number, frame)
            assert scan is not None
            yield scan


class Renderer:
    """Filters frames and renders views of them, for one session."""

    def __init__(self, memory: MemoryBudget) -> None:
        self._memory = memory
        self._lock = threading.Lock()
        self.last: RenderedView | None = None
        self._frames: OrderedDict[Any, FilteredFrame] = OrderedDict()
        self._volumes: OrderedDict[Any, tuple[Array, dict[str, float]]] = OrderedDict()
        self._streams: OrderedDict[Any, tuple[FrameStream, int]] = OrderedDict()
        self._pyramids: tuple[Any, tuple[Bitmap, Bitmap, Trace]] | None = None

    def clear(self) -> None:
        """Forget all results; this does not wait for a call that is running."""
        volumes, self._volumes = self._volumes, OrderedDict()
        streams, self._streams = self._streams, OrderedDict()
        for volume, _ in volumes.values():
            self._memory.release(volume.nbytes)
        for _, nbytes in streams.values():
            self._memory.release(nbytes)
        self._frames, self.last, self._pyramids = OrderedDict(), None, None

    def working_memory(self, request: RenderRequest) -> int:
        """Return an upper bound on the bytes that rendering takes."""
        shown, chains = request.shown, [request.applied, *([request.other] if request.other else [])]
        nbytes = 0
        for applied in chains:
            if _is_slab(request, applied):
                picture, _, over = _slab(request, applied)
                nbytes = max(nbytes, picture.working_memory(applied.pipeline, over=over))
            else:
                nbytes = max(nbytes, filter_memory(shown, applied))
        return max(nbytes, pyramid_memory(shown.first_frame) * (request.view in PYRAMID_VIEWS))

    def render(self, request: RenderRequest, cancelled: threading.Event) -> RenderedView:
        """Filter a frame, and render the layers of the view."""
        shown, view = request.shown, request.view
        with self._lock, cancellable(cancelled):
            result = compared = self._filtered(request, request.applied)
            note = result.note
            if request.other is not None and view not in PYRAMID_VIEWS:
                other = self._filtered(request, request.other)
                compared = FilteredFrame(other.after, result.after)
                note = note or other.note
            pipeline = request.applied.pipeline
            if not note and estimates_noise(pipeline) and is_unchanged(result.before, result.after):
                note = NO_NOISE
            if view == "difference":
                bitmap, gain = render_difference(compared, shown.window)
                layers = {view: bitmap}
                note = note or f"difference × {gain:g}, around mid-grey"
            else:
                pyramids = self._rendered_pyramids(request, result)[:2] if view in PYRAMID_VIEWS else None
                layers = view_layers(view, compared, shown.window, pyramids)
                if pyramids is not None and request.applied.extent is not None:
                    note = f"pyramid of this {shown.position_name} alone"
        self.last = RenderedView(request.key, result, layers, note)
        return self.last

    def pyramids(self, request: RenderRequest, result: FilteredFrame) -> tuple[Bitmap, Bitmap, Trace]:
        """Return both pyramids of a frame as bitmaps, and the trace with their coefficients."""
        with self._lock:
            return self._rendered_pyramids(request, result)

    def _rendered_pyramids(
        self, request: RenderRequest, result: FilteredFrame
    ) -> tuple[Bitmap, Bitmap, Trace]:
        if self._pyramids is None or self._pyramids[0] != request.key:
            shown = request.shown
            colors, mask = shown.visible(result.before)
            pipeline = request.applied.pipeline
            self._pyramids = (
                request.key,
                render_pyramids(colors, shown.channel_axis, pipeline, mask),
            )
        return self._pyramids[1]

    # --- filtering --------------------------------------------------------------------------------

    def _filtered(self, request: RenderRequest, applied: AppliedChain) -> FilteredFrame:
        shown = request.shown
        if applied.is_window and not shown.plane:
            return self._stream_frame(request, applied)
        if applied.extent is not None:
            return self._volume_slice(request, applied)
        key = (request.frame_key, applied, request.settings)
        result = self._frames.get(key)
        if result is None:
            frame = shown.frame(request.number, request.ahead)
            filtered = partial(shown.filtered, request.number, pixels=frame)
            result = filter_frame(frame, shown.channel_axis, applied.pipeline, request.settings, filtered)
            self._frames[key] = result
            while len(self._frames) > 2:
                self._frames.popitem(last=False)
        return result

    def _stream_frame(self, request: RenderRequest, applied: AppliedChain) -> FilteredFrame:
        """Return a frame that is filtered with those around it."""
        shown = request.shown
        key = (shown.id, shown.protects, applied, request.settings)
        stream, nbytes = self._streams.pop(key, (None, 0))
        result = None
        try:
            if stream is not None:
                result = stream.frame(request.number)
            if result is None:
                self._memory.release(nbytes)
                nbytes = 0
                while len(self._streams) >= KEPT_VOLUMES:
                    self._memory.release(self._streams.popitem(last=False)[1][1])
                kept = 6 * (applied.over_time + 1) * shown.first_frame.nbytes
                self._memory.hold(kept)
                nbytes = kept
                stream = FrameStream(shown, request.number, applied, request.settings)
                result = stream.frame(request.number)
        except BaseException:
            self._memory.release(nbytes)  # The stream has ended, and is not kept.
            raise
        assert stream is not None
        assert result is not None
        self._streams[key] = (stream, nbytes)
        return result

    def _volume_slice(self, request: RenderRequest, applied: AppliedChain) -> FilteredFrame:
        """Return a slice of a filtered volume; if a preview will do, of a part of a large one."""
        shown, number, extent = request.shown, request.number, applied.extent
        assert extent is not None
        before = shown.frame(number)
        index = None if extent.is_window else shown.together(shown.page_of(number), extent)[1]
        key = (shown.id, str(index), applied, request.settings)
        kept = self._volumes.get(key)
        if kept is None:
            if _is_slab(request, applied):
                return self._slab_slice(request, applied, before)
            kept = self._filtered_volume(request, applied)
            while len(self._volumes) >= KEPT_VOLUMES:
                self._memory.release(self._volumes.popitem(last=False)[1][0].nbytes)
            self._memory.hold(kept[0].nbytes)
            self._volumes[key] = kept
        volume, times = kept
        if extent.is_window:
            return FilteredFrame(before, np.ascontiguousarray(volume.take(number, shown.plane)), times)
        return FilteredFrame(before, shown.slice_of(volume, number, extent), times)

    def _filtered_volume(
        self, request: RenderRequest, applied: AppliedChain
    ) -> tuple[Array, dict[str, float]]:
        shown, extent = request.shown, applied.extent
        assert extent is not None
        timer = TimedWork(applied.pipeline, request.settings)
        if extent.is_window:  # Slices across the frames of a DICOM file.
            work: Any = applied.work
            work = work if isinstance(work, TemporalDenoiser) else timer
            scans = DicomFilter(work, applied.over_time, NOTHING, backend="cpu").filtered(shown.scans())
            volume = np.stack(list(scans))
        else:
            volume = shown.filtered_together(request.number, extent, timer)
        return volume, timer.milliseconds()

    def _slab_slice(self, request: RenderRequest, applied: AppliedChain, before: Array) -> FilteredFrame:
        shown = request.shown
        picture, place, over = _slab(request, applied)
        work = TimedWork(applied.pipeline, request.settings)
        after = picture.filtered(work, over=over).pixels.take(place, shown.plane)
        note = f"preview of {picture.pixels.shape[shown.plane]} slices; the whole volume follows"
        return FilteredFrame(before, np.ascontiguousarray(after), work.milliseconds(), note)
