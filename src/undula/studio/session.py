"""The session of a tab: its inputs, its chain, and the loop that renders and sends pictures.

    a change ─▶ the newest state is rendered by a thread ─▶ sent ─▶ drawn and acknowledged by the page

Changes made while a picture is rendered are part of the next one, so that no queue builds up. Of large
pictures a JPEG preview is sent first, and the exact picture once nothing changes any more. During playback,
frames are rendered when they are due, and dropped when they are late.
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..engines.memory import free_kept
from ..engines.threads import WorkCancelledError, cancellable
from ..errors import ArgumentError, UndulaError
from ..filters.calibration import CalibratedPipeline
from ..filters.memory import working_memory
from .activities import Activity, ActivityList
from .budget import BYTES_PER_SAMPLE, ServerBudget, pyramid_memory
from .chain import PRESETS, FilterChain, History
from .encoding import encode_layers, pack_message
from .exports import ExportList
from .extents import EACH
from .inputs import Camera, Input, open_input
from .playback import Playback
from .renderer import RenderedView, Renderer, RenderRequest
from .views import (
    PYRAMID_VIEWS,
    BandHistogram,
    FilteredFrame,
    Settings,
    quality_figures,
    region_text,
)

__all__ = ["SentPicture", "Session"]

Send = Callable[[bytes], Awaitable[None]]
MAX_EXACT_BYTES = 1_500_000  # larger pictures are sent as a preview first
MAX_ZOOMED_OUT_BYTES = 24_000_000  # larger pictures are sent exactly only when zoomed in
UNKNOWN_SCALE = 0.5  # until the page reports its scale
QUIET_SECONDS = 0.1  # without a change, before the exact picture follows a preview
FIGURES_DELAY_SECONDS = 0.15  # without a change, before figures are computed
MAX_PICTURES_IN_FLIGHT = 2
MAX_INPUTS = 24


@dataclass(frozen=True)
class SentPicture:
    """The state of the session that a picture shows, and the milliseconds of its phases.

    The ``first_run`` of a filter takes longer, because it is prepared and compiled.
    """

    version: int
    milliseconds: dict[str, float]
    first_run: bool = False


@dataclass
class Session:
    """The state of a browser tab.

    Parameters
    ----------
    budget : ServerBudget
        Resources shared with other sessions.
    pool : ThreadPoolExecutor
        Threads that render pictures.
    raw : bool, default True
        Whether exact pixels are sent uncompressed, which is fastest on one machine, instead of as PNG.
    """

    budget: ServerBudget
    pool: ThreadPoolExecutor
    raw: bool = True
    key: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    inputs: list[Input] = field(default_factory=list)
    current: Input | None = None
    number: int = 0
    view: str = "divider"
    settings: Settings = field(default_factory=Settings)
    reference: Input | None = None
    slot: str = "A"
    slots: dict[str, FilterChain] = field(default_factory=dict)
    comparing: bool = False  # with the chain of the other slot, instead of the original
    band: tuple[int, str] = (1, "dd")
    playback: Playback = field(default_factory=Playback)
    draw_times: deque[float] = field(default_factory=lambda: deque(maxlen=100))
    figures: dict[str, float] = field(default_factory=dict)
    histogram: BandHistogram | None = None
    error_message: str = ""
    scale: float = UNKNOWN_SCALE  # screen pixels per pixel of the picture

    def __post_init__(self) -> None:
        self.history = History(FilterChain.from_pipeline(PRESETS["Plain shrinkage"][1]))
        self.folder = Path(tempfile.mkdtemp(prefix="session-", dir=self.budget.folder))
        self.closed = False
        self.version = 0
        self.last_sent: SentPicture | None = None
        self.sync_mark = ""  # the newest one that the page has sent
        self.page: Any = None
        self.exports = ExportList(self)
        self._reserved_slots = 0
        self._send: Send | None = None
        self._change_event = asyncio.Event()
        self._drawn_event = asyncio.Event()
        self._sent_id = self._drawn_id = 0
        self.renderer = Renderer(self.budget.memory)
        self._filtering: Activity | None = None
        self._sent_before: Any = None  # the frame whose original the page has
        self._preview_shown = False
        self._part_shown = False  # a part of a volume was filtered, and the rest follows
        self._measured_state: Any = None
        self._numbers: dict[int, int] = {}  # by input, the frame to return to
        self._camera_frames = 0
        self._kinds_run: set[Any] = set()  # of work that was done at least once
        self._first_run: dict[str, float] | None = None  # the times of the newest first run
        self.activities = ActivityList()
        self._drawn_state = (self.chain.enable_all(False), self.view, self.settings)
        self._loop = asyncio.create_task(self._paint_loop())

    # --- actions ----------------------------------------------------------------------------------

    @property
    def chain(self) -> FilterChain:
        """The current chain."""
        return self.history.current

    @property
    def fitted_chain(self) -> FilterChain:
        """The current chain, with no more levels than the current input allows."""
        return self.chain if self.current is None else self.chain.fit_shape(self.current.first_frame.shape)

    def set_chain(self, chain: FilterChain, gesture: Any = None) -> None:
        """Change the chain; changes by the same gesture are undone in one step."""
        self.history.record(chain, gesture)
        self.invalidate()

    async def calibrate(self) -> float:
        """Multiply the strengths of the chain by the factor with the least estimated error, and return it."""
        shown, chain = self.current, self.fitted_chain
        if shown is None:
            raise ArgumentError("open an image first: the strength is found for it")
        calibrated, number = CalibratedPipeline(chain.pipeline()), self.number

        def search(cancelled: threading.Event) -> float:
            with cancellable(cancelled):
                samples, options = shown.filter_input(number)
                return calibrated.calibration(samples, **options).strength

        with self.activities.working("Calibrating the strength") as activity:
            nbytes = working_memory(
                calibrated, shown.first_frame.shape, shown.first_frame.dtype, channel_axis=shown.channel_axis
            )
            async with self.budget.memory.lend(nbytes):
                run = asyncio.get_running_loop().run_in_executor
                factor = await run(self.pool, search, activity.cancelled)
        task = self.chain.task
        if task is not None:
            verb = replace(task, strength=factor * task.strength)  # type: ignore[type-var, attr-defined]
            chain = replace(chain, verb=verb)
        for link, stage in zip(
            (link for link in chain.links if link.enabled),
            calibrated.with_strength(factor).stages,
            strict=True,
        ):
            chain = chain.replace_stage(link.key, stage)
        self.set_chain(chain)
        return factor

    def notify_page(self) -> None:
        """Refresh the page, if it is open."""
        if self.page is not None:
            self.page.refresh()

    def invalidate(self) -> None:
        """Render again, because something about the picture changed."""
        self.version += 1
        if self._filtering is not None and self._filtering.is_refinement:
            self._filtering.supersede()
        self._change_event.set()

    @contextmanager
    def reserve_slot(self) -> Iterator[None]:
        """Reserve a slot for an input while it is opened."""
        if len(self.inputs) + self._reserved_slots >= MAX_INPUTS:
            raise ArgumentError(f"{MAX_INPUTS} files are open already; close one first")
        self._reserved_slots += 1
        try:
            yield
        finally:
            self._reserved_slots -= 1

    async def open_file(self, path: Path, name: str, source: str | None = None) -> Input:
        """Open a file and show it."""
        with self.reserve_slot():
            return await self.open_in_slot(path, name, source)

    async def open_in_slot(self, path: Path, name: str, source: str | None = None) -> Input:
        """Open a file in a slot that is already reserved, and show it."""
        memory = self.budget.memory
        limits = replace(self.budget.limits, memory=min(self.budget.limits.memory, memory.total // 2))
        with self.activities.working(f"Opening {name}") as activity:
            async with memory.lend(limits.memory):
                new_input = await asyncio.to_thread(
                    open_input, path, name, limits, source, memory, partial(setattr, activity, "process")
                )
        if self.closed:
            new_input.close()
            raise ArgumentError("this session has expired; reload the page")
        self.inputs.append(new_input)
        self.select(new_input)
        return new_input

    def show_camera(self) -> None:
        """Show the camera, and add it to the inputs if needed."""
        camera = next((each for each in self.inputs if isinstance(each, Camera)), None)
        if camera is None:
            with self.reserve_slot():
                camera = Camera()
                self.inputs.append(camera)
        self.select(camera)

    def select(self, selected: Input | None) -> None:
        """Show an input, in the middle of a volume or where it was left, or nothing."""
        if self.current is not None:
            self._numbers[self.current.id] = self.number
        self.current = selected
        self.number = 0 if selected is None else self._numbers.get(selected.id, selected.opening_number)
        self.playback.on = False
        self.figures, self.histogram, self.error_message = {}, None, ""
        self._measured_state = self.last_sent = None
        if self._filtering is not None:
            self._filtering.supersede()
        self.renderer.clear()
        self.draw_times.clear()
        self.invalidate()

    @property
    def other_slot(self) -> str:
        """The slot, A or B, whose chain is not the current one."""
        return "B" if self.slot == "A" else "A"

    @property
    def other_chain(self) -> FilterChain:
        """The chain of the other slot; the current one until that is used."""
        return self.slots.get(self.other_slot, self.chain)

    def switch_slot(self) -> None:
        """Keep the current chain in its slot, and go on with that of the other one."""
        chain = self.other_chain
        self.slots[self.slot] = self.chain
        self.slot = self.other_slot
        self.history.record(chain)
        self.history.end_gesture()
        self.invalidate()

    def close_input(self, closed: Input) -> None:
        """Close an input; if it is shown, show its neighbour."""
        index = self.inputs.index(closed)
        self.inputs.remove(closed)
        if self.reference is closed:
            self.reference = None
        if self.current is closed:
            self.select(self.inputs[min(index, len(self.inputs) - 1)] if self.inputs else None)
        self._numbers.pop(closed.id, None)
        closed.close()
        free_kept()
        if closed.path is not None and closed.path.parent == self.folder:
            self.budget.discard(closed.path.stat().st_size)
            closed.path.unlink()

    @property
    def rate(self) -> float:
        """Frames per second of playback."""
        assert self.current is not None
        return self.current.rate or 10.0

    def play(self, on: bool) -> None:
        """Play or pause."""
        if self.current is None or self.current.frame_count < 2:
            return
        if on and self.number >= self.current.frame_count - 1 and not self.playback.loop:
            self.number = 0
        self.playback.on = on
        self.playback.start(self.number)
        self.draw_times.clear()
        self.invalidate()

    def seek(self, number: int) -> None:
        """Show a frame or slice."""
        if self.current is not None:
            self.number = int(min(max(0, number), self.current.frame_count - 1))
            self.playback.start(self.number)
            self.invalidate()

    # --- connection to the page -------------------------------------------------------------------

    def attach(self, send: Send) -> None:
        """Send pictures to a page from now on."""
        self._send = send
        self._sent_id = self._drawn_id = 0
        self._sent_before = None
        self.scale = UNKNOWN_SCALE
        self.invalidate()

    def detach(self, send: Send) -> None:
        """Stop sending to a page, unless another one was attached in the meantime."""
        if self._send == send:
            self._send = None

    def acknowledge(self, number: int) -> None:
        """Note that the page has drawn a picture."""
        self._drawn_id = max(self._drawn_id, number)
        self.draw_times.append(time.perf_counter())
        self._drawn_event.set()

    def add_camera_frame(self, data: bytes, width: int, height: int) -> None:
        """Show a new frame of the camera."""
        self._camera_frames += 1
        if isinstance(self.current, Camera):
            self.current.set_frame(data, width, height)
            self._change_event.set()

    @property
    def fps(self) -> float:
        """Pictures per second that the page has drawn recently; 0 when nothing moves."""
        now = time.perf_counter()
        recent = [moment for moment in self.draw_times if now - moment < 3.0]
        if len(recent) < 2 or now - recent[-1] > 1.0:
            return 0.0
        return (len(recent) - 1) / (recent[-1] - recent[0])

    @property
    def moving(self) -> bool:
        """Whether new pictures come without a change by the visitor."""
        return self.playback.on or isinstance(self.current, Camera)

    async def _paint_loop(self) -> None:
        while True:
            exact = not self.playback.on and not await self._wait_for_change()
            self._change_event.clear()
            if self._send is None or self.current is None:
                if self.playback.on:
                    await self._change_event.wait()
                continue
            await self._wait_for_page()
            if self.playback.on and not await self._advance():
                continue
            try:
                await self._paint(exact)
            except asyncio.CancelledError:
                raise
            except WorkCancelledError:
                if self._filtering is None or not self._filtering.is_superseded:
                    self._restore_drawn()
            except Exception as error:  # The session survives any failure of a filter.
                text = str(error) if isinstance(error, UndulaError) else f"{type(error).__name__}: {error}"
                self.error_message = " ".join(text.split())[:400] or type(error).__name__
                self.playback.on = False
                self.notify_page()
                await self._send_empty()

    def _restore_drawn(self) -> None:
        """Return to what was drawn before, or to less work if that was the same."""
        chain, self.view, self.settings = self._drawn_state
        self.playback.on = False
        if chain == self.chain:
            chain = replace(chain, extent=EACH) if chain.extent else chain.enable_all(False)
        self.set_chain(chain)
        if self.page is not None:
            self.page.restore()

    async def _wait_for_change(self) -> bool:
        """Wait for a change; False if there is none for a while and the page shows a preview."""
        try:
            follows = self._preview_shown and (self._shows_exact or self._part_shown)
            await asyncio.wait_for(self._change_event.wait(), QUIET_SECONDS if follows else None)
        except TimeoutError:
            return False
        return True

    @property
    def _shows_exact(self) -> bool:
        """Whether the exact picture follows a preview: it is zoomed in, or not too large."""
        return (
            self.scale > 0.6
            or self.current is None
            or self.current.first_frame.nbytes <= MAX_ZOOMED_OUT_BYTES
        )

    def set_scale(self, scale: float) -> None:
        """Set the number of screen pixels per pixel of the picture."""
        self.scale = min(64.0, max(0.01, scale))
        if self._preview_shown and self._shows_exact:
            self._change_event.set()

    async def _wait_for_page(self) -> None:
        """Wait until the page has drawn the pictures that it received."""
        while self._sent_id - self._drawn_id >= MAX_PICTURES_IN_FLIGHT:
            self._drawn_event.clear()
            try:
                await asyncio.wait_for(self._drawn_event.wait(), 5.0)
            except TimeoutError:  # Tabs in the background do not draw.
                self._drawn_id = self._sent_id

    async def _advance(self) -> bool:
        """Go to the next frame when it is due; False if something changed in the meantime."""
        assert self.current is not None
        following = self.playback.next_frame(self.number, self.rate, self.current.frame_count)
        if following is None:
            self.number = self.current.frame_count - 1
            self.notify_page()
            return True
        wait = self.playback.seconds_until(following, self.rate)
        if wait > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._change_event.wait(), wait)
                return not self.playback.on
        self.number = following
        return True

    async def _paint(self, exact: bool) -> None:
        shown, number, version, view = self.current, self.number, self.version, self.view
        assert shown is not None
        moving = self.moving
        run = asyncio.get_running_loop().run_in_executor
        request = self._request(shown, exact)
        state = (self.chain, view, self.settings)
        async with self.budget.memory.lend(self.renderer.working_memory(request)):
            with self.activities.working("Filtering", exact and self._preview_shown) as self._filtering:
                rendered = await run(self.pool, self.renderer.render, request, self._filtering.cancelled)
            result, layers, note = rendered.result, rendered.layers, rendered.note
            self._filtering = None
            if not result.note:
                self._drawn_state = state
            if self.error_message:
                self.error_message = ""
                self.notify_page()
            before_key = (request.frame_key, shown.window, request.other)
            if "before" in layers and self._sent_before == before_key:
                del layers["before"]  # The page has it already.
            preview = (
                moving
                or bool(result.note)
                or (not exact and sum(bitmap.nbytes for bitmap in layers.values()) > MAX_EXACT_BYTES)
            )
            self._preview_shown, self._part_shown = preview and not moving, bool(result.note)
            parts = await run(self.pool, lambda: encode_layers(layers, preview, self.raw, self.scale))
        if self.current is not shown:
            return
        if "before" in layers:
            self._sent_before = None if preview else before_key
        self._sent_id += 1
        head = {
            "id": self._sent_id,
            "version": version,
            "view": view,
            "number": request.camera_frame if isinstance(shown, Camera) else number,
            "input": shown.id,
            "exact": not preview,
            "note": note or (shown.window_text if view not in PYRAMID_VIEWS else ""),
            "labels": [self.other_slot, self.slot] if self.comparing else ["Before", "After"],
            "warning": "Not for diagnosis" if shown.dicom is not None else "",
            "spacing": shown.facts.spacing if shown.plane == 0 and view not in PYRAMID_VIEWS else None,
            "probe": view not in PYRAMID_VIEWS
            and (result.before.dtype != np.uint8 or shown.dicom is not None),
        }
        if self._send is not None:
            await self._send(pack_message(head, parts))
        if self.current is not shown:
            return
        if request.work_kind not in self._kinds_run:
            self._kinds_run.add(request.work_kind)
            self._first_run = result.milliseconds
        self.last_sent = SentPicture(version, result.milliseconds, result.milliseconds is self._first_run)
        if self.version == version and not moving and (not preview or not self._shows_exact):
            await self._measure(request, result)
        if not moving:
            self.notify_page()

    async def describe(self, request: dict[str, Any]) -> None:
        """Tell the page the values at a place, or in a region, before and after the filter."""
        shown, rendered = self.current, self.renderer.last
        if shown is None or rendered is None or rendered.key[0][0] != shown.id or self._send is None:
            return
        pictures = (rendered.result.before, rendered.result.after)
        rows, columns = pictures[0].shape[:2]
        if "probe" in request:
            x, y = (int(n) for n in request["probe"])
            if not (0 <= x < columns and 0 <= y < rows):
                return
            values = [shown.value_text(picture[y, x]) for picture in pictures]
            head = {"probe": [x, y], "text": "  →  ".join(values)}
        else:
            left, top, right, bottom = (int(n) for n in request["region"])
            left, right = sorted(min(max(n, 0), columns) for n in (left, right))
            top, bottom = sorted(min(max(n, 0), rows) for n in (top, bottom))
            if left == right or top == bottom:
                return
            parts = [picture[top:bottom, left:right] for picture in pictures]
            text = await asyncio.to_thread(region_text, parts, shown.facts)
            head = {"region": request["region"], "text": text}
        await self._send(pack_message(head, []))

    async def _send_empty(self) -> None:
        """Clear the page, rather than show the picture of an earlier state."""
        if self._send is not None and self.current is not None:
            with suppress(Exception):  # The page may be gone.
                await self._send(pack_message({"input": self.current.id, "version": self.version}, []))

    # --- figures ----------------------------------------------------------------------------------

    async def _measure(self, request: RenderRequest, result: FilteredFrame) -> None:
        """Compute the figures, and the histogram if memory allows, unless something changes first."""
        shown, pipeline = request.shown, request.applied.pipeline
        state = (request.key, self.reference.id if self.reference else None, self.band)
        if state == self._measured_state:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._change_event.wait(), FIGURES_DELAY_SECONDS)
            return
        nbytes = pyramid_memory(shown.first_frame)
        with_histogram = self.budget.memory.can_lend(nbytes)

        def measure() -> tuple[dict[str, float], BandHistogram | None]:
            reference = self.reference
            expected = None
            if reference is not None:
                expected = reference.frame(self.number if reference.frame_count > 1 else 0)
            figures = quality_figures(result, expected, shown)
            has_bands = min(result.before.shape[:2]) > 1 and pipeline.level != 0
            if not with_histogram or not has_bands or request.applied.task is not None:
                return figures, None
            try:
                trace = self.renderer.pyramids(request, result)[2]
            except UndulaError:  # A slice of a volume may be too small to be filtered alone.
                return figures, None
            return figures, BandHistogram.from_trace(trace, *self.band)

        async with self.budget.memory.lend(
            nbytes if with_histogram else BYTES_PER_SAMPLE * shown.first_frame.size
        ):
            figures, histogram = await asyncio.get_running_loop().run_in_executor(self.pool, measure)
        if self.current is shown:
            self.figures, self.histogram, self._measured_state = figures, histogram, state

    def _request(self, shown: Input, exact: bool = True) -> RenderRequest:
        """Return what is to be rendered now."""
        shape, number = shown.first_frame.shape, self.number
        return RenderRequest(
            shown,
            number,
            self.chain.applied(shape, shown.extents),
            self.settings,
            self.view,
            self.other_chain.applied(shape, shown.extents) if self.comparing else None,
            number + 1 if self.moving and number + 1 < shown.frame_count else None,
            exact,
            self._camera_frames if isinstance(shown, Camera) else 0,
        )

    async def current_view(self) -> RenderedView:
        """Render the current frame with the current chain."""
        if self.current is None:
            raise ArgumentError("no file is open")
        request = self._request(self.current)
        async with self.budget.memory.lend(self.renderer.working_memory(request)):
            run = asyncio.get_running_loop().run_in_executor
            return await run(self.pool, self.renderer.render, request, threading.Event())

    def close(self) -> None:
        """Close all inputs and remove all files of the session."""
        self.closed = True
        self._loop.cancel()
        self.exports.close()
        self._send = None
        for each in [*self.inputs]:
            self.close_input(each)
        self.renderer.clear()
        shutil.rmtree(self.folder, ignore_errors=True)
