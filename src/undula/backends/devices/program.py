"""Programs: a transform of arrays of one shape, as launches of kernels.

Each level is passes over one axis, or over two neighbouring ones at once; which kernel makes a pass is a
matter of the strategy. Buffers are numbers here: those of the caller first, then the program's own. A device
only has to compile the kernels, find the memory and launch one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from ...errors import ArgumentError
from ...liftings import lifting
from ...plans.flow import Entry, Exit, Flow, Tap, flow
from ...plans.line import PRECISE, Line, Steps
from ...plans.mixing import Mixing, Unmixing
from ...schemes import SCHEMES
from ...wavelets import Wavelet
from ..clike import Dialect, Kernel, Pass, moves, naive, rowcolumn, sliding, stepwise, tiled
from ..clike.borders import Border, back_borders, forward_border
from ..clike.kernel import INTEGERS, Axis
from ..strides import contiguous, plane_strides
from .launches import Knobs, Launch, Limits, Program, Ref, Task, UnfollowableError, UnfusedError

__all__ = ["STRATEGIES", "Builder"]

STRATEGIES = ("auto", "naive", "rowcolumn", "tiled", "sliding")
LONGEST_STRIP = 96  # pairs of rows
END_STRIP = 0.75  # of a strip, at the ends of rows
SHORT = 16  # Pairs of rows: where strips would be shorter, lanes have fewer columns.
SMALL = 512  # Quads for each unit of a device: so few are sooner done in tiles, which have no long loops.
TILES = ((32, 32), (32, 16), (64, 64), (32, 64))  # quads along and down, the best first
SMALL_TILES = ((16, 16), (32, 16))  # likewise, where there are few
MOST_CHANNELS = 4  # Numbers at one place of a row that a lane keeps together.

Shape = tuple[int, ...]
Views = Mapping[str, "tuple[Ref, tuple[int, int]]"]  # arrays by name; how far planes and rows are apart


@dataclass
class Builder:
    """Makes a program, launch by launch.

    Parameters
    ----------
    dialect : Dialect
    limits : Limits
    given : int
        Buffers that the caller has.
    strategy, scheme, method : str
    knobs : Knobs
    capacity : callable, optional
        How many groups of a kernel the device runs at once.
    """

    dialect: Dialect
    limits: Limits
    given: int
    strategy: str = "auto"
    scheme: str = "auto"
    method: str = "auto"
    knobs: Knobs = field(default_factory=Knobs)
    capacity: Callable[[Kernel], int] | None = None
    launches: list[Launch] = field(default_factory=list)
    own: list[tuple[int, str]] = field(default_factory=list)
    _colors: tuple[Mixing | None, Unmixing | None] = (None, None)
    _limits: tuple[str, Ref, int] | None = None

    @property
    def slides(self) -> bool:
        """Passes slide, unless something is better."""
        return self.strategy in ("auto", "sliding")

    def program(self) -> Program:
        """What was made."""
        return Program(tuple(self.launches), tuple(self.own), self.given)

    def memory(self, shape: Shape, dtype: str, pad: int = 1) -> Ref:
        """An array of the program's own; rows are padded to a multiple of ``pad`` elements."""
        padded = (*shape[:-1], -(-shape[-1] // pad) * pad)
        self.own.append((max(1, math.prod(padded)), dtype))
        return Ref(self.given + len(self.own) - 1, shape, contiguous(padded), dtype)

    # --- levels -----------------------------------------------------------------------------------

    def level(
        self,
        back: bool,
        x: Ref,
        tasks: Sequence[Task],
        bands: Mapping[str, Ref | None],
        colors: tuple[Mixing | None, Unmixing | None] = (None, None),
        limits: tuple[str, Ref, int] | None = None,
    ) -> None:
        """One level of an array; bands by key, in the order of the tasks.

        ``colors`` say what becomes of the channels of the samples; ``limits`` are a rule for details, where
        its numbers are, and how far those of the next plane are.
        """
        self._colors, self._limits = colors, limits
        order = list(range(len(tasks)))
        if next(band.dtype for band in bands.values() if band is not None) not in INTEGERS:
            order.sort(key=lambda k: tasks[k].axis)  # (rounding makes the order of integer steps matter)
        place = [order.index(k) for k in range(len(order))]
        keys = ["".join(letters[k] for k in place) for letters in product("ad", repeat=len(order))]
        self._axes(back, x, [tasks[k] for k in order], [bands[key] for key in keys])

    def _axes(self, back: bool, x: Ref, tasks: Sequence[Task], bands: Sequence[Ref | None]) -> None:
        """Several axes, the first of them outermost."""
        if len(tasks) == 1:
            self._axis(back, x, tasks[0], bands)
            return
        if len(tasks) == 2 and self._together(x, tasks):
            self._plane(back, x, tasks, bands)
            return
        if self._limits is not None:
            raise UnfusedError("details of more than two axes are read in several passes")
        if self._colors != (None, None):
            raise ArgumentError(
                "on a device, colours become planes as an image is read: that takes a wavelet that is lifted"
                " alike on both sides, such as cdf53 or cdf97, in mode 'symmetric', or 'periodic' with even"
                " sides; use these, or the CPU"
            )
        if self.scheme != "auto":
            raise ArgumentError(
                f"scheme {self.scheme!r} transforms two neighbouring axes with at most {MOST_CHANNELS}"
                f" numbers at each place; got axes {tuple(task.axis for task in tasks)} of shape {x.shape}"
            )
        axis, line = tasks[0].axis, tasks[0].line
        half = len(bands) // 2
        parts: list[Ref | None] = []
        for k, count in enumerate(line.counts):
            under = bands[k * half : (k + 1) * half]
            if back and all(band is None for band in under):
                parts.append(None)
                continue
            shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
            dtype = x.dtype if back else next(band.dtype for band in bands if band is not None)
            parts.append(self.memory(shape, dtype))
        if not back:
            self._axis(back, x, tasks[0], parts)
        for k, part in enumerate(parts):
            if part is not None and 0 not in part.shape:
                self._axes(back, part, tasks[1:], bands[k * half : (k + 1) * half])
        if back:
            self._axis(back, x, tasks[0], parts)

    def in_one_pass(self, shape: Shape, tasks: Sequence[Task], dtype: str) -> bool:
        """A level that is one pass over rows, which then need not lie side by side."""
        return (
            len(tasks) == 2
            and sorted(task.axis for task in tasks) == [len(shape) - 2, len(shape) - 1]
            and (self.slides or self.strategy == "tiled")
            and all(isinstance(task.line, Line) for task in tasks)
            and (
                self.slides
                or all(self._tile(sorted(tasks, key=lambda t: t.axis), b, dtype) for b in (False, True))
            )
        )

    def _together(self, x: Ref, tasks: Sequence[Task]) -> bool:
        """Two axes that one kernel can work on."""
        down, along = tasks
        return (
            (self.slides or self.strategy == "tiled")
            and along.axis == down.axis + 1
            and isinstance(down.line, Line)
            and isinstance(along.line, Line)
            and math.prod(x.shape[along.axis + 1 :]) <= MOST_CHANNELS
            and (self.slides or self._fits(tasks, x.dtype))
        )

    def _fits(self, tasks: Sequence[Task], dtype: str) -> bool:
        """Whether a scheme fits into a tile; an error where it was asked for by name and does not."""
        if self._tile(tasks, False, dtype) is not None and self._tile(tasks, True, dtype) is not None:
            return True
        periodized = {task.line.mode == "periodization" for task in tasks if isinstance(task.line, Line)}
        if len({task.wavelet for task in tasks}) > 1 or len(periodized) > 1:
            if self.scheme == "auto":
                return False
            raise ArgumentError(
                f"scheme {self.scheme!r} has one wavelet for both axes, and periodization for both or none"
            )
        asked, possible = self.scheme, []
        for name in SCHEMES:
            self.scheme = name
            if self._tile(tasks, False, dtype) is not None and self._tile(tasks, True, dtype) is not None:
                possible.append(name)
        self.scheme = asked
        names = dict.fromkeys(task.wavelet.name for task in tasks)
        asked = "sweldens" if asked == "auto" else asked
        raise ArgumentError(
            f"scheme {asked!r} of {', '.join(names)} does not fit into a tile; "
            + (f"those that do: {', '.join(possible)}" if possible else "none does: use strategy 'sliding'")
        )

    def _tile(
        self, tasks: Sequence[Task], back: bool, dtype: str, sizes: Sequence[tuple[int, int]] = TILES
    ) -> tuple[tiled.Quads, tiled.Shape] | None:
        """The scheme and the tile for two axes; None where there are none that fit."""
        down, along = (task.line for task in tasks)
        assert isinstance(down, Line)
        assert isinstance(along, Line)
        if tasks[0].wavelet != tasks[1].wavelet or (down.mode == "periodization") != (
            along.mode == "periodization"
        ):
            return None
        name = self.scheme
        if name == "auto":
            name = "sweldens"
            if dtype == "float64" and _imprecise(tasks[0].wavelet):
                name = "convolution"
        if name != "convolution" and tasks[0].wavelet.reconstruction_error > 1e-6:
            return None
        made = tiled.quads(tasks[0].wavelet, name, down.mode == "periodization", down.family == "lwt", back)
        if made.terms > tiled.MOST_TERMS:
            return None
        items = min(256, self.limits.items)
        for wide, high in [self.knobs.tile] if self.knobs.tile[0] else sizes:
            shape = tiled.Shape(wide, high, items)
            results = shape.results(made)
            if (
                min(results) >= 4
                and shape.shared(made, "double" if dtype == "float64" else "float") <= self.limits.shared
            ):
                return made, shape
        return None

    def _small_tile(
        self, tasks: Sequence[Task], back: bool, x: Ref
    ) -> tuple[tiled.Quads, tiled.Shape] | None:
        """Tiles for a plane that is too small to fill the device with strips; None for all others."""
        quads = math.prod(x.shape) // 4
        if not self.limits.gpu or self.method != "auto" or quads > SMALL * self.limits.units:
            return None
        return self._tile(tasks, back, x.dtype, SMALL_TILES)

    # --- passes -----------------------------------------------------------------------------------

    def _flow(self, task: Task, back: bool, number: str) -> Axis:
        line = task.line
        assert isinstance(line, Line)
        method = self.method
        if self.strategy == "naive":
            method = "filters"
        own = flow(
            task.wavelet, line.mode, back, method, line.family == "lwt", number == "float", number == "int"
        )
        borders = back_borders(line.family, line.mode) if back else (forward_border(line.mode),)
        return Axis(own, borders)

    def _types(self, back: bool, x: Ref, bands: Sequence[Ref | None]) -> tuple[str, str, str]:
        """Dtypes of what is read and written, and the type to calculate in."""
        band = next(band.dtype for band in bands if band is not None)
        source, result = (band, x.dtype) if back else (x.dtype, band)
        return source, result, Pass(back, None, None, 1, source, result).number

    def _axis(self, back: bool, x: Ref, task: Task, bands: Sequence[Ref | None]) -> None:
        """One axis: down rows, or along them where rows are made of this axis alone."""
        axis, line = task.axis, task.line
        if self._limits is not None and (isinstance(line, Steps) or not self.slides):
            raise UnfusedError("only passes that slide, or tiles, take limits")
        if isinstance(line, Steps):
            self._stepwise(back, x, axis, line, bands)
            return
        source, result, number = self._types(back, x, bands)
        own = self._flow(task, back, number)
        inner = math.prod(x.shape[axis + 1 :])
        if self.slides and inner <= MOST_CHANNELS:
            work = Pass(back, None, own, inner, source, result, rule=self._rule())
            if work.rule is not None and self._limits is not None and self._limits[2]:
                raise UnfusedError("rows are no planes, and limits differ")
            flat = (math.prod(x.shape[:axis]), x.shape[axis] * inner)
            row = inner * max(x.shape[axis], *line.counts)
            views = self._views(back, x, bands, lambda r: self._flat(r, axis), row)
            self._sliding(work, views, flat[0], (0, 0), x.shape[axis], line.counts, 1)
            return
        work = Pass(back, own, None, 1, source, result, rule=self._rule())
        views = self._views(back, x, bands, lambda r: self._strides(r, axis, axis + 1), inner)
        planes, rows = math.prod(x.shape[:axis]), x.shape[axis]
        if self.slides:
            self._sliding(work, views, rows, line.counts, inner, (0, 0), planes)
        elif self.strategy == "naive":
            pairs = own.flow.pairs(_results(back, rows, line.counts))
            extents = (rows, *line.counts, pairs, inner, planes)
            kernel = naive.emit(work, self.dialect)
            self._launch(kernel, -(-inner * pairs * planes // kernel.items), views, extents)
        else:
            pairs = own.flow.pairs(_results(back, rows, line.counts))
            self._rowcolumn(work, views, rows, line.counts, pairs, inner, planes)

    def _plane(self, back: bool, x: Ref, tasks: Sequence[Task], bands: Sequence[Ref | None]) -> None:
        """Two neighbouring axes at once."""
        source, result, number = self._types(back, x, bands)
        down, along = (self._flow(task, back, number) for task in tasks)
        axis = tasks[0].axis
        channels = math.prod(x.shape[axis + 2 :])
        work = Pass(back, down, along, channels, source, result, *self._colors, self._rule())
        lines = [task.line for task in tasks]
        row = channels * max(x.shape[axis + 1], *lines[1].counts)
        views = self._views(back, x, bands, lambda r: self._strides(r, axis, axis + 1), row)
        planes, rows, columns = math.prod(x.shape[:axis]), x.shape[axis], x.shape[axis + 1]
        fitting = None
        if self.strategy == "tiled":
            fitting = self._tile(tasks, back, x.dtype)
        elif self.strategy == "auto" and any(down.flow.reach) and number != "int" and not any(self._colors):
            fitting = self._small_tile(tasks, back, x)
        if fitting is None:
            self._sliding(work, views, rows, lines[0].counts, columns, lines[1].counts, planes)
        else:
            made, shape = fitting
            wide, high = shape.results(made)
            downwards = -(-made.range(back, 0, rows, lines[0].counts)[1] // high)
            across = -(-made.range(back, 1, columns, lines[1].counts)[1] // wide)
            extents = (rows, columns, *lines[0].counts, *lines[1].counts, across, downwards)
            kernel = tiled.emit(work, made, shape, self.dialect)
            self._launch(kernel, across * downwards * planes * channels, views, extents)

    def _rule(self) -> str | None:
        return None if self._limits is None else self._limits[0]

    def _views(
        self,
        back: bool,
        x: Ref,
        bands: Sequence[Ref | None],
        strides: Callable[[Ref], tuple[int, int]],
        row: int,
    ) -> dict[str, tuple[Ref, tuple[int, int]]]:
        """The arrays of a pass by name, each with how far planes and rows are apart.

        ``row`` is the most numbers that a row of any of them has.
        """
        names = ("aa", "ad", "da", "dd") if len(bands) == 4 else ("a", "d")
        found: dict[str, tuple[Ref, tuple[int, int]]] = {}
        if self._limits is not None:
            found["limits"] = (self._limits[1], (self._limits[2], 0))
        for name, ref in zip(("x", *names), (x, *bands), strict=True):
            if ref is None:
                # One row of zeros stands for all.
                zeros = self._zeros(x.dtype, row)
                found[name] = (zeros, (0, 0))
            else:
                try:
                    found[name] = (ref, strides(ref))
                except UnfollowableError:
                    if (name == "x") == back:  # it is written to
                        raise
                    ref = self._gathered(ref)
                    found[name] = (ref, strides(ref))
        return found

    def _zeros(self, dtype: str, count: int) -> Ref:
        zeros = self.memory((count,), dtype)
        self._fill(zeros)
        return zeros

    def _fill(self, ref: Ref) -> None:
        kernel, count = moves.fill(ref.dtype, self.dialect), math.prod(ref.shape)
        groups = -(-count // kernel.items)
        self.launches.append(Launch(kernel, groups, (ref.buffer,), (count,)))

    def _gathered(self, ref: Ref) -> Ref:
        """A copy in one piece."""
        made = self.memory(ref.shape, ref.dtype)
        self.copy(ref, made)
        return made

    def padded(self, ref: Ref, shape: Shape) -> Ref:
        """A copy in the corner of a larger array of zeros."""
        made = self.memory(shape, ref.dtype)
        self._fill(made)
        self.copy(ref, made)
        return made

    def copy(self, ref: Ref, made: Ref) -> None:
        """Numbers of one array, or of its corner, to another or to its corner."""
        shape = tuple(min(pair) for pair in zip(ref.shape, made.shape, strict=True))
        kernel = moves.copy(ref.dtype, len(shape), self.dialect)
        count = math.prod(shape)
        values = [count, ref.start, made.start]
        for numbers in zip(shape, ref.strides, made.strides, strict=True):
            values += numbers
        groups = -(-count // kernel.items)
        self.launches.append(Launch(kernel, groups, (ref.buffer, made.buffer), tuple(values)))

    def _strides(self, ref: Ref, outer: int, inner: int) -> tuple[int, int]:
        if math.prod(ref.shape[inner:]) >= 2**31:
            raise ArgumentError(f"rows of shape {ref.shape[inner:]} have more numbers than kernels count")
        found = plane_strides(ref.shape, ref.strides, 1, outer, inner)
        if found is None or min(found) < 0:
            raise UnfollowableError(
                f"strides {ref.strides} of shape {ref.shape}; give an array whose rows are in one piece"
            )
        return found

    def _flat(self, ref: Ref, axis: int) -> tuple[int, int]:
        """All axes before this one as rows."""
        plane, _ = self._strides(ref, axis, axis)
        return 0, plane

    def _rowcolumn(
        self,
        work: Pass,
        views: Views,
        rows: int,
        counts: tuple[int, int],
        row_pairs: int,
        columns: int,
        planes: int,
    ) -> None:
        width = 32 if columns > 8 else columns
        pairs = self.knobs.tile[1] or max(16, 512 // width)
        shape = rowcolumn.Shape(pairs, width, min(256, self.limits.items))
        while shape.shared(work) > self.limits.shared and width > 1:
            width //= 2
            shape = rowcolumn.Shape(max(16, pairs // 2), width, shape.items)
        pieces, blocks = -(-row_pairs // shape.pairs), -(-columns // shape.width)
        kernel = rowcolumn.emit(work, shape, self.dialect)
        extents = (rows, *counts, row_pairs, columns, pieces, blocks)
        self._launch(kernel, pieces * blocks * planes, views, extents)

    def _stepwise(self, back: bool, x: Ref, axis: int, line: Steps, bands: Sequence[Ref | None]) -> None:
        """Lifting steps one by one, in the bands forward, in the samples on the way back."""
        source, result, _ = self._types(back, x, bands)
        scales = [1 / s for s in line.scaling] if back else list(line.scaling)
        whole = Pass(back, None, None, 1, source, result).number == "int"
        if whole:
            scales = [1.0, 1.0]
        plain = Flow(
            (Entry(0, 0), Entry(1, 0)),
            (),
            ((Tap(0, 0, 1.0),), (Tap(1, 0, 1.0),)),
            (Exit(0, 0, scales[0]), Exit(1, 0, scales[1])),
        )
        borders = (Border("zero"), Border("zero")) if back else (Border("zero"),)
        work = Pass(back, Axis(plain, borders), None, 1, source, result)
        inner = math.prod(x.shape[axis + 1 :])
        views = self._views(back, x, bands, lambda r: self._strides(r, axis, axis + 1), inner)
        planes, rows = math.prod(x.shape[:axis]), x.shape[axis]
        pairs = (rows + 1) // 2
        kernel = naive.emit(work, self.dialect)
        extents = (rows, *line.counts, pairs, inner, planes)
        self._launch(kernel, -(-inner * pairs * planes // kernel.items), views, extents)
        if back:  # both sequences are in the samples
            ref, (plane, row) = views["x"]
            halves = [(ref._replace(start=ref.start + k * row), (plane, 2 * row)) for k in (0, 1)]
        else:
            halves = [views["a"], views["d"]]
        for step in reversed(line.steps) if back else line.steps:
            own, other = step.target, 1 - step.target
            # Forward, bands have been scaled before the steps.
            ratio = -1.0 if back else scales[own] / scales[other]
            kind = {"symmetric": ("folded low", "folded high"), "periodic": ("wrapped",) * 2}
            border = Border(kind.get(line.mode, ("zero",) * 2)[other])
            kernel = stepwise.emit(
                result,
                tuple(ratio * factor for factor in step.factors),
                tuple(step.offsets.tolist()),
                (step.rounded.undone() if back else step.rounded) if whole else None,
                border,
                self.dialect,
                back,
            )
            told = (rows, line.counts[own], line.counts[other], inner, planes)
            groups = -(-inner * line.counts[own] * planes // kernel.items)
            self._launch(kernel, groups, {"a": halves[other], "d": halves[own]}, told)

    # --- launches ---------------------------------------------------------------------------------

    def _sliding(
        self,
        work: Pass,
        views: Views,
        rows: int,
        row_counts: tuple[int, int],
        columns: int,
        column_counts: tuple[int, int],
        planes: int,
    ) -> None:
        knobs = self.knobs
        pairs = columns
        if work.along is not None:
            pairs = work.along.flow.pairs(_results(work.back, columns, column_counts))
        if work.down is None:
            row_pairs, overlap = rows, 0
        else:
            row_pairs = work.down.flow.pairs(_results(work.back, rows, row_counts))
            overlap = sum(work.down.flow.reach)
        pixels = knobs.pixels or self._pixels(work, pairs, row_pairs * planes)
        if work.along is None:
            pixels = min(pixels, 4)
        # (Halves and bytes would be converted early; and on the way back, many columns leave no room.)
        kinds = ("float32", "float64") if work.back else ("float32", "float64", "int16", "int32")
        ahead = bool(self.dialect.shuffle) and work.source in kinds and overlap > 0
        ahead = ahead and (not work.back or pixels <= 10)
        shape = sliding.Shape(
            pixels=pixels,
            warps=(knobs.warps or 4) if self.dialect.shuffle else 1,
            prefetch=knobs.prefetch if knobs.prefetch >= 0 else int(ahead),
            unroll=knobs.unroll or 1,
            lockstep=knobs.lockstep if knobs.lockstep >= 0 else 4,
            apart=self.limits.gpu,
            wide_source=min(self._wide(views[name]) for name in work.sources),
            wide_result=min(self._wide(views[name]) for name in work.results),
        )
        kernel = sliding.emit(work, shape, self.dialect)
        total = -(-pairs // shape.step(work))
        left, right = (total, 0)
        if shape.apart:
            left, right = shape.ends(work, total, (columns, *column_counts))
        ends = left + right
        blocks = -(-(total - ends) // shape.warps)
        # Groups at the ends of rows have more to do for each row, so they have fewer rows.
        shorter = END_STRIP if blocks else 1.0
        wide = planes * (blocks + ends / shape.warps / shorter)
        longest = (
            SHORT if work.kept == "int16" else LONGEST_STRIP
        )  # (half the bytes are done in half the time)
        usual = self._strip(kernel, row_pairs, wide, overlap, longest)
        strip = max(1, min(knobs.strip or usual, row_pairs))
        end_strip = max(1, int(shorter * strip))
        strips, end_strips = -(-row_pairs // strip), -(-row_pairs // end_strip)
        end_groups = -(-ends * end_strips * planes // shape.warps)
        extents = [rows, columns, *row_counts, *column_counts, row_pairs, planes]
        extents += [total, ends, left, end_groups, end_strip, end_strips, strip, strips]
        extents += [max(1, blocks)]
        self._launch(kernel, end_groups + blocks * strips * planes, views, extents)

    def _pixels(self, work: Pass, pairs: int, all_rows: int) -> int:
        """Columns of a lane: as many as leave room for what is remembered of earlier rows.

        Where rows are short, fewer may leave fewer lanes without work; and where there is little to do at
        all, more lanes are sooner done.
        """
        if work.along is None:
            return 4
        remembered = 4
        if work.down is not None:
            own = work.down.flow
            remembered = len(own.steps) if own.steps else 2 * sum(own.reach)
        # (Where lanes exchange through shared memory, short texts are worth more. Halves are half the bytes,
        # and the work of a lane is what takes the time.)
        wide = self.dialect.shuffle and (work.back or "float16" not in (work.source, work.result))
        most = 8 if remembered <= 8 and wide else 4
        if work.number == "double":
            most = max(2, most // 2)
        most = max(2, most // {1: 1, 2: 2, 3: 4, 4: 4}[work.channels])

        def groups(pixels: int) -> float:
            shape = sliding.Shape(pixels=pixels)
            return -(-pairs // shape.step(work)) if shape.useful(work) > 0 else math.inf

        def lanes(pixels: int) -> float:
            return groups(pixels) * pixels * (1.5 if pixels < most else 1.0)

        best = min((n for n in (most, most // 2) if n >= 2), key=lanes)
        if most >= 4 and self.dialect.shuffle:
            # Rows that one or two groups of lanes can have for themselves: any number of columns may do.
            for pixels in (10, 12):
                if groups(pixels) <= 2 and groups(pixels) * (pixels + 1.5) < groups(best) * (best + 1.5):
                    best = pixels
        if best == 8 and groups(best) * all_rows < SHORT * 12 * self.limits.units:
            best = 4
        return best

    def _strip(self, kernel: Kernel, row_pairs: int, wide: float, overlap: int, longest: int) -> int:
        """Pairs of rows that a group of lanes works on, where ``wide`` groups are as wide as the rows.

        What two strips share is read twice, so they should be long; but there must be enough for all units,
        and the last groups to be started should not be few.
        """
        if not overlap and self.limits.gpu:
            return 2  # (groups that run at once work side by side)
        at_once: int = self.limits.units * 512 // kernel.items
        if self.capacity is not None:
            at_once = self.capacity(kernel)
        rounds = 1
        while True:
            strips = max(1, int(rounds * at_once / wide))
            strip = -(-row_pairs // strips)
            if strip <= longest or strips >= row_pairs:
                return max(strip, 2 if overlap else 1)
            rounds += 1

    def _wide(self, view: tuple[Ref, tuple[int, int]]) -> int:
        """Elements of at most 16 bytes that may be moved at once."""
        ref, (plane, row) = view
        size = int(ref.dtype.lstrip("uinfloat")) // 8
        aligned = math.gcd(ref.alignment, 16) // size if ref.alignment % size == 0 else 1
        return max(1, math.gcd(ref.start, plane, row, aligned, 4 if size < 8 else 2))

    def _launch(
        self,
        kernel: Kernel,
        groups: int,
        views: Views,
        extents: Sequence[int],
    ) -> None:
        if groups <= 0:
            return
        values: list[int] = []
        for name in kernel.arrays:
            ref, (plane, row) = views[name]
            values += [ref.start, plane, row]
        buffers = tuple(views[name][0].buffer for name in kernel.arrays)
        self.launches.append(Launch(kernel, groups, buffers, (*values, *extents)))


def _imprecise(wavelet: Wavelet) -> bool:
    """The lifting of a wavelet is not its filters to the last digits of a double."""
    return wavelet.reconstruction_error > 1e-6 or lifting(wavelet).residual > PRECISE


def _results(back: bool, length: int, counts: tuple[int, int]) -> tuple[int, int]:
    """How many numbers flow out as first and as second sequence."""
    return ((length + 1) // 2, length // 2) if back else counts
