"""One visitor's work: inputs, the chain, what is shown, and the loop that paints it.

    a change ─▶ the newest state is rendered by a thread ─▶ sent ─▶ drawn, and told so

What changed while a picture was made is in the next one; nothing piles up. Large pictures come as JPEG first,
which is sooner there, and as they are when nothing changes any more. While something plays, frames are
rendered when they are due, and left out when it is too late for them.
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..errors import ArgumentError, UndulaError
from ..filters import Pipeline, Trace
from .chain import PRESETS, Chain, History
from .encoding import encoded, message
from .inputs import Camera, Input, opened
from .rendering import PYRAMIDS, Band, Made, Settings, Shown, bands, compared, difference, layers, made
from .room import SAMPLE, ServerBudget, work_for

__all__ = ["Painted", "Session"]

Send = Callable[[bytes], Awaitable[None]]
SMALL = 1_500_000  # bytes that are sent as they are at once
LARGE = 24_000_000  # bytes of a picture that are sent as they are when it is looked at from near
UNKNOWN = 0.5  # until a page tells its scale
REST = 0.1  # seconds without a change after which others are, too
AHEAD = 2  # pictures that are on their way before one was drawn
LATE = 0.3  # seconds after which frames are left out
MOST_INPUTS = 24


@dataclass(frozen=True)
class Painted:
    """What went to the page, and what is known of it."""

    id: int
    version: int
    number: int
    milliseconds: dict[str, float]
    shown: tuple[str, ...]


@dataclass
class Playing:
    """How something plays; ``speed`` is 0 for as fast as it goes."""

    on: bool = False
    loop: bool = True
    speed: float = 1.0
    _began: float = 0.0
    _from: int = 0

    def start(self, number: int) -> None:
        """From this frame on, from now on."""
        self._began, self._from = time.perf_counter(), number

    def due(self, number: int, rate: float) -> float:
        """Seconds until a frame is to be shown; negative if it is late."""
        if self.speed == 0:
            return 0.0
        return self._began + (number - self._from) / (rate * self.speed) - time.perf_counter()


@dataclass
class Session:
    """A tab of a visitor's browser.

    Parameters
    ----------
    room : ServerBudget
        What it shares with others.
    pool : executor
        Where pictures are made.
    raw : bool
        Whether pictures are sent as they are, which is fastest on one machine, or as PNG.
    """

    room: ServerBudget
    pool: ThreadPoolExecutor
    raw: bool = True
    key: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    inputs: list[Input] = field(default_factory=list)
    current: Input | None = None
    number: int = 0
    view: str = "divider"
    settings: Settings = field(default_factory=Settings)
    reference: Input | None = None
    band: tuple[int, str] = (1, "dd")
    histogram: bool = True
    playing: Playing = field(default_factory=Playing)
    drawn: deque[float] = field(default_factory=lambda: deque(maxlen=100))
    figures: dict[str, float] = field(default_factory=dict)
    trouble: str = ""
    scale: float = UNKNOWN  # pixels of the screen for one of the picture

    def __post_init__(self) -> None:
        self.history = History(Chain.of(PRESETS["Plain shrinkage"][1]))
        self.folder = Path(tempfile.mkdtemp(prefix="session-", dir=self.room.folder))
        self.closed = False
        self._arriving = 0  # what has a place in the strip already
        self.version = 0
        self.painted: Painted | None = None
        self.page: Any = None
        self.exported: dict[int, Path] = {}
        self._send: Send | None = None
        self._wanted = asyncio.Event()
        self._acked = asyncio.Event()
        self._sent = self._drawn = 0
        self._kept: tuple[Any, Made] | None = None
        self._pyramid: tuple[Any, tuple[Shown, Shown, Trace]] | None = None
        self._histogram: Band | None = None
        self._before_sent: Any = None
        self._rough = False
        self._measured: Any = None
        self._seen = 0
        self._loop = asyncio.create_task(self._painting())

    # --- what can be done -------------------------------------------------------------------------

    @property
    def chain(self) -> Chain:
        """As it is now."""
        return self.history.now

    @property
    def fitting(self) -> Chain:
        """The chain, with no more levels than what is shown can have."""
        return self.chain if self.current is None else self.chain.fitting(self.current.first.shape)

    def do(self, chain: Chain, why: Any = None) -> None:
        """Changes the chain; dragging, with the same ``why``, is one step to undo."""
        self.history.do(chain, why)
        self.changed()

    def told(self) -> None:
        """There is news for the page."""
        if self.page is not None:
            self.page.news()

    def changed(self) -> None:
        """Something about what is shown is other than before."""
        self.version += 1
        self._wanted.set()

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place in the strip for what is on its way, however many come at once."""
        if len(self.inputs) + self._arriving >= MOST_INPUTS:
            raise ArgumentError(f"{MOST_INPUTS} things are open already; close one first")
        self._arriving += 1
        try:
            yield
        finally:
            self._arriving -= 1

    async def open(self, path: Path, name: str, source: str | None = None) -> Input:
        """A file for the strip, decoded by a worker; it is shown."""
        with self.place():
            return await self.opened(path, name, source)

    async def opened(self, path: Path, name: str, source: str | None = None) -> Input:
        """A file, for the place that it has already."""
        memory = self.room.memory
        limits = replace(self.room.limits, memory=min(self.room.limits.memory, memory.total // 2))
        run = asyncio.get_running_loop().run_in_executor
        async with memory.lend(limits.memory):
            found = await run(None, lambda: opened(path, name, limits, source, memory))
        if self.closed:
            found.close()
            raise ArgumentError("this page is no longer known; load it again")
        self.inputs.append(found)
        self.choose(found)
        return found

    def camera(self) -> Camera:
        """The camera, in the strip; it is shown."""
        own = next((one for one in self.inputs if isinstance(one, Camera)), None)
        if own is None:
            with self.place():
                own = Camera()
                self.inputs.append(own)
        self.choose(own)
        return own

    def choose(self, own: Input | None) -> None:
        """Shows something of the strip, or nothing."""
        self.current, self.number = own, 0
        self.playing.on = False
        self.figures, self._histogram, self.trouble = {}, None, ""
        self._kept = self._pyramid = self._measured = self.painted = None  # (they tell of something else)
        self.drawn.clear()
        self.changed()

    def close_input(self, own: Input) -> None:
        """Takes something out of the strip."""
        place = self.inputs.index(own)
        self.inputs.remove(own)
        if self.reference is own:
            self.reference = None
        if self.current is own:
            left = self.inputs
            self.choose(left[min(place, len(left) - 1)] if left else None)
        own.close()
        if own.path is not None and own.path.parent == self.folder:
            self.room.discard(own.path.stat().st_size)
            own.path.unlink()

    @property
    def rate(self) -> float:
        """Frames in a second at which it plays."""
        assert self.current is not None
        return self.current.rate or 10.0

    def play(self, on: bool) -> None:
        """Plays or pauses."""
        own = self.current
        if own is None or own.count < 2:
            return
        if on and self.number >= own.count - 1 and not self.playing.loop:
            self.number = 0
        self.playing.on = on
        self.playing.start(self.number)
        self.drawn.clear()
        self.changed()

    def seek(self, number: int) -> None:
        """Shows a frame or slice."""
        if self.current is not None:
            self.number = int(min(max(0, number), self.current.count - 1))
            self.playing.start(self.number)
            self.changed()

    # --- the page ---------------------------------------------------------------------------------

    def attach(self, send: Send) -> None:
        """Where pictures go."""
        self._send = send
        self._sent = self._drawn = 0
        self._before_sent = None
        self.scale = UNKNOWN
        self.changed()

    def detach(self, send: Send) -> None:
        """That page is gone; another one may have come already."""
        if self._send == send:
            self._send = None

    def acknowledged(self, number: int) -> None:
        """The page has drawn a picture."""
        self._drawn = max(self._drawn, number)
        self.drawn.append(time.perf_counter())
        self._acked.set()

    def saw(self, data: bytes, width: int, height: int) -> None:
        """The browser's camera has a new frame."""
        if isinstance(self.current, Camera):
            self.current.see(data, width, height)
            self._seen += 1
            self._wanted.set()

    @property
    def fps(self) -> float:
        """Pictures in a second that the page has drawn lately; 0 when nothing moves."""
        now = time.perf_counter()
        lately = [moment for moment in self.drawn if now - moment < 3.0]
        if len(lately) < 2 or now - lately[-1] > 1.0:
            return 0.0
        return (len(lately) - 1) / (lately[-1] - lately[0])

    @property
    def moving(self) -> bool:
        """Whether pictures come by themselves."""
        return self.playing.on or isinstance(self.current, Camera)

    async def _painting(self) -> None:
        while True:
            exact = not self.playing.on and not await self._changed()
            self._wanted.clear()
            if self._send is None or self.current is None:
                if self.playing.on:
                    await self._wanted.wait()
                continue
            await self._room()
            if self.playing.on and not await self._next():
                continue
            try:
                await self._paint(exact)
            except asyncio.CancelledError:
                raise
            except Exception as error:  # (the page lives on, whatever a filter does)
                self._failed(error)
                self.playing.on = False
                self.told()
                await self._nothing()

    async def _changed(self) -> bool:
        """Until something changes; False when nothing does, and what is shown is not exact yet."""
        try:
            rest = REST if self._rough and self._near else None
            await asyncio.wait_for(self._wanted.wait(), rest)
        except TimeoutError:
            return False
        return True

    @property
    def _near(self) -> bool:
        """Whether single pixels can be seen, or there are so few that all are sent anyway."""
        return self.scale > 0.6 or self.current is None or self.current.first.nbytes <= LARGE

    def zoomed(self, scale: float) -> None:
        """So many pixels of the screen are one of the picture now."""
        self.scale = min(64.0, max(0.01, scale))
        if self._rough and self._near:
            self._wanted.set()

    async def _room(self) -> None:
        """Until the page has drawn what it got."""
        while self._sent - self._drawn >= AHEAD:
            self._acked.clear()
            try:
                await asyncio.wait_for(self._acked.wait(), 5.0)
            except TimeoutError:  # (a tab that nobody looks at does not draw)
                self._drawn = self._sent

    async def _next(self) -> bool:
        """The next frame, when it is due; False if something else came in between."""
        assert self.current is not None
        number = self.number + 1
        late = -self.playing.due(number, self.rate)
        if self.playing.speed and late > LATE:  # (a little is caught up)
            number += int(late * self.rate * self.playing.speed)
        if number >= self.current.count:
            if not self.playing.loop:
                self.playing.on = False
                self.number = self.current.count - 1
                self.told()
                return True
            number = 0
            self.playing.start(0)
        wait = self.playing.due(number, self.rate)
        if wait > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), wait)
                return not self.playing.on  # (something was changed: look again)
        self.number = number
        return True

    async def _paint(self, exact: bool) -> None:
        own, number, version, view = self.current, self.number, self.version, self.view
        assert own is not None
        moving = self.moving
        pipeline, settings = self.fitting.pipeline(), self.settings
        run = asyncio.get_running_loop().run_in_executor
        ahead = number + 1 if moving and number + 1 < own.count else None
        need = max(work_for(own.first, pipeline), work_for(own.first, pipeline, True) * (view in PYRAMIDS))
        async with self.room.memory.lend(need):
            key, result, shown, note = await run(
                self.pool, lambda: self._rendered(own, number, ahead, pipeline, settings, view)
            )
            self._recovered()
            if "before" in shown and self._before_sent == key[0]:
                del shown["before"]  # (the page has it)
            quick = moving or (not exact and sum(one.nbytes for one in shown.values()) > SMALL)
            self._rough = quick and not moving
            parts = await run(self.pool, lambda: encoded(shown, quick, self.raw, self.scale))
        if self.current is not own:
            return
        if "before" in shown:
            self._before_sent = None if quick else key[0]
        self._sent += 1
        head = {
            "id": self._sent,
            "version": version,
            "view": view,
            "number": number,
            "input": own.id,
            "exact": not quick,
            "note": note,
        }
        send = self._send
        if send is not None:
            await send(message(head, parts))
        if self.current is not own:
            return
        self.painted = Painted(self._sent, version, number, result.milliseconds, tuple(shown))
        if self.version == version and not moving and (not quick or not self._near):
            await self._look(own, key, result, pipeline)
        if not moving:
            self.told()

    async def _nothing(self) -> None:
        """What could not be made is not shown as something else."""
        if self._send is not None and self.current is not None:
            with suppress(Exception):  # (a page that is gone)
                await self._send(message({"input": self.current.id, "version": self.version}, []))

    def _failed(self, error: Exception) -> None:
        text = str(error) if isinstance(error, UndulaError) else f"{type(error).__name__}: {error}"
        self.trouble = " ".join(text.split())[:400] or type(error).__name__

    def _recovered(self) -> None:
        if self.trouble:
            self.trouble = ""
            self.told()

    # --- by a thread ------------------------------------------------------------------------------

    def _rendered(
        self,
        own: Input,
        number: int,
        ahead: int | None,
        pipeline: Pipeline,
        settings: Settings,
        view: str,
    ) -> tuple[Any, Made, dict[str, Shown], str]:
        """The result, the layers of a view, and a word about them; for the same state it is made once."""
        what = (own.id, number, self._seen if isinstance(own, Camera) else 0)
        key = (what, pipeline, settings)
        kept = self._kept
        if kept is None or kept[0] != key:
            frame = own.frame(number, ahead)
            self._kept = kept = (key, made(frame, own.channel_axis, pipeline, settings, own.stored))
        result = kept[1]
        pyramid = None
        if view in PYRAMIDS:
            pyramid = self._bands(key, result, own, pipeline)[:2]
        if view == "difference":
            found, gain = difference(result, own.screen)
            return key, result, {view: found}, f"difference × {gain:g}, around mid-grey"
        return key, result, layers(view, result, own.screen, pyramid), ""

    def _bands(self, key: Any, result: Made, own: Input, pipeline: Pipeline) -> tuple[Shown, Shown, Trace]:
        pyramid = self._pyramid
        if pyramid is None or pyramid[0] != key:
            self._pyramid = pyramid = (key, bands(result.before, own.channel_axis, pipeline, own.stored))
        return pyramid[1]

    # --- figures, when there is time --------------------------------------------------------------

    async def _look(self, own: Input, key: Any, result: Made, pipeline: Pipeline) -> None:
        """Figures, and a histogram if there is memory for it, when nothing else is wanted any more."""
        asked = (key, self.reference.id if self.reference else None, self.band, self.histogram)
        if asked == self._measured:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._wanted.wait(), 0.15)
            return
        run = asyncio.get_running_loop().run_in_executor
        need = work_for(own.first, pipeline, True)
        histogram = self.histogram and self.room.memory.has(need)

        def look() -> tuple[dict[str, float], Band | None]:
            other = (
                self.reference.frame(self.number if self.reference.count > 1 else 0)
                if self.reference
                else None
            )
            found = compared(result, other, own)
            if not histogram or min(result.before.shape[:2]) < 2 or pipeline.level == 0:
                return found, None
            return found, Band.of(self._bands(key, result, own, pipeline)[2], *self.band)

        async with self.room.memory.lend(need if histogram else SAMPLE * own.first.size):
            figures, band = await run(self.pool, look)
        if self.current is own:
            self.figures, self._histogram, self._measured = figures, band, asked

    @property
    def distribution(self) -> Band | None:
        """The histogram of the band that was chosen."""
        return self._histogram

    @property
    def result(self) -> Made | None:
        """What was made last."""
        return self._kept[1] if self._kept is not None else None

    async def current_result(self) -> Made:
        """The result of what is set up now."""
        own, pipeline = self.current, self.fitting.pipeline()
        if own is None:
            raise ArgumentError("nothing is open")
        run = asyncio.get_running_loop().run_in_executor
        async with self.room.memory.lend(work_for(own.first, pipeline)):
            frame = await run(self.pool, lambda: own.frame(self.number))
            return await run(
                self.pool, lambda: made(frame, own.channel_axis, pipeline, self.settings, own.stored)
            )

    def close(self) -> None:
        """Ends everything, and leaves no file behind."""
        self.closed = True
        self._loop.cancel()
        self._send = None
        for own in [*self.inputs]:
            self.close_input(own)
        self._kept = self._pyramid = None
        shutil.rmtree(self.folder, ignore_errors=True)
