"""The sliding strategy: one pass, everything in registers.

Each lane owns a few columns and marches down the rows of its strip, two rows at a time. Steps along columns
keep what they need of earlier rows in registers; steps along rows take what they need from neighbouring
lanes. Lanes at the ends of a group of lanes overlap with the next group, and strips with the next strip, by
as much as results reach. No shared memory, no barrier:

    for each pair of rows:  load the pair after next │ steps down │ steps along │ store four bands
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ...plans.flow import Flow, FlowStep
from .borders import Border
from .dialect import Dialect
from .kernel import (
    ELEMENTS,
    ITEMSIZE,
    Kernel,
    Pass,
    emit_beyond,
    limited,
    mixed,
    opened,
    parameters,
    prelude,
    read,
    stepped,
    unmixed,
    written,
)
from .text import Text, literal

__all__ = ["EXTENTS", "Shape", "emit"]

EXTENTS = (
    "rows", "columns", "low_rows", "high_rows", "low_columns", "high_columns", "row_pairs", "planes",
    "total", "ends", "ends_left", "end_groups", "end_strip", "end_strips", "strip", "strips", "blocks",
)  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """How a pass is laid over lanes.

    Parameters
    ----------
    pixels : int
        Columns that a lane owns, an even number.
    warps : int
        Groups of lanes in a work group, side by side.
    prefetch : int
        Pairs of rows that are on their way from memory.
    wide_source, wide_result : int
        Elements that are read and written at once, where arrays are aligned so.
    unroll : int
        Turns of the loop over rows that are written out.
    lockstep : int
        After how many pairs of rows the groups of lanes wait for each other, which share lines of the cache.
    apart : bool
        Groups of lanes that see no end of a row have a loop of their own.
    lanes : int
    """

    pixels: int = 8
    warps: int = 4
    prefetch: int = 2
    wide_source: int = 4
    wide_result: int = 4
    unroll: int = 1
    lockstep: int = 4
    apart: bool = True
    lanes: int = 32

    def useful(self, work: Pass) -> int:
        """Lanes that have results."""
        return self.lanes - sum(self.overlap(work))

    def overlap(self, work: Pass) -> tuple[int, int]:
        """Lanes at both ends that only feed the others."""
        if work.along is None:
            return 0, 0
        before, after = work.along.flow.reach
        half = self.pixels // 2
        return -(-before // half), -(-after // half)

    def ends(self, work: Pass, total: int, counts: tuple[int, int, int]) -> tuple[int, int]:
        """How many groups of lanes at the left and at the right see an end of a row.

        ``counts`` are those of the samples, of the low and of the high band.
        """
        first, step = (work.along.flow.first, self.pixels // 2) if work.along else (0, self.pixels)
        before = self.overlap(work)[0]
        left = right = 0
        for across in range(total):
            start = first + (across * self.useful(work) - before) * step
            if all(scale * start + shift >= 0 for scale, shift, _ in _edges(work)):
                break
            left += 1
        for across in range(total - 1, left - 1, -1):
            stop = first + (across * self.useful(work) - before + self.lanes) * step
            if all(scale * stop + shift <= counts[which] for scale, shift, which in _edges(work)):
                break
            right += 1
        return left, right

    def step(self, work: Pass) -> int:
        """Columns, or pairs of columns, by which one group of lanes is on from the last."""
        return self.useful(work) * (self.pixels if work.along is None else self.pixels // 2)


def _edges(work: Pass) -> list[tuple[int, int, int]]:
    """What a lane that starts at m reads and writes: from ``scale · m + shift`` on, up to which count."""
    if work.along is None:
        return [(1, 0, 0)]
    flow = work.along.flow
    bands = (
        [(1, entry.shift, 1 + entry.sequence) for entry in flow.entries]
        if work.back
        else [(1, -way.shift, 1 + band) for band, way in enumerate(flow.exits)]
    )
    return [(2, 0, 0), *bands]


@lru_cache(maxsize=512)
def emit(work: Pass, shape: Shape, dialect: Dialect) -> Kernel:
    """The kernel of a pass."""
    return _Sliding(work, shape, dialect).kernel()


@dataclass
class _Node:
    """One version of a component while rows go by: made ``delay`` rows after its inputs came."""

    name: str
    delay: int
    oldest: int = 0  # how many rows back it is still wanted
    rolls: bool = True  # each row that comes makes all others one older

    def at(self, age: int) -> str:
        self.oldest = max(self.oldest, age)
        return f"{self.name}_{age}[j]"


@dataclass
class _Sliding:
    work: Pass
    shape: Shape
    dialect: Dialect
    text: Text = field(default_factory=Text)

    def __post_init__(self) -> None:
        work, shape = self.work, self.shape
        self.down = work.down.flow if work.down else None
        self.along = work.along.flow if work.along else None
        self.half = shape.pixels // 2
        self.size = shape.pixels * work.channels  # numbers of a row that a lane owns
        self.before = shape.overlap(work)[0]
        self.first = self.along.first if self.along else 0
        # What is on its way from memory stays as it is, unless it has to be weighted first.
        axes = [axis for axis in (work.down, work.along) if axis]
        self.raw = not any(border.weighted for axis in axes for border in axis.borders)
        self.kept = ELEMENTS[work.source] if self.raw else "number"
        self.exchanges = 0
        self.inner = False
        # Rounded steps have to be undone in their order: those along rows first.
        self.along_first = work.number == "int" and work.back and self.down is not None
        self.kinds = (True, False) if self.shape.apart else (False,)

    # --- the whole --------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        work, shape, text, dialect = self.work, self.shape, self.text, self.dialect
        items = shape.lanes * shape.warps
        listed, arrays, integers = parameters(work, dialect, EXTENTS)
        name = f"sliding_{'back' if work.back else 'forward'}"
        prelude(text, dialect, work)
        self._borders()
        for kind in self.kinds:
            self.inner = kind
            self._loads()
        if self.along:
            self._along(self.along)
        text("")
        with text.block(f"{dialect.kernel.format(items=items)} {name}(\n        {listed})"):
            if self.along and not dialect.shuffle:
                slots = max(1, self.slots) * shape.lanes
                text(f"{dialect.within}number exchange[{(2 if self.down else 1) * slots}];")
            self._place()
            opened(text, dialect, arrays, work)
            for array in (*work.sources, *work.results):
                size = ITEMSIZE[work.source if array in work.sources else work.result]
                text(f"const unsigned int {array}_bytes = (unsigned int){array}_row * {size};")
            step, useful = self.half if self.along else shape.pixels, shape.useful(work)
            text(
                f"const int m = {self.first} + (across * {useful} + lane - {self.before}) * {step};",
                f"const int useful = lane >= {self.before} && lane < {self.before + useful};",
            )
            first = self.down.first if self.down else 0
            text(
                f"const int begin = {first} + strip_number * own_strip;",
                f"const int end = min(begin + own_strip, {first} + row_pairs);",
            )
            if len(self.kinds) == 1:
                self._march()
            else:
                self.inner = False
                with text.block("if (at_end)"):
                    self._march()
                self.inner = True
                with text.block("else"):
                    self._march()
        return Kernel(name, str(text) + "\n", items, arrays, integers)

    def _place(self) -> None:
        """Which columns and rows a group of lanes has.

        Those at the ends of rows have more to do, so they come first and have shorter strips; the loop of all
        others has no questions in it.
        """
        text, shape, dialect = self.text, self.shape, self.dialect
        uniform = dialect.uniform.format(value=f"{dialect.item} / {shape.lanes}")
        text(
            f"const int lane = {dialect.item} % {shape.lanes}, warp = {uniform}, group = {dialect.group};",
        )
        at_ends = (
            f"const int turn = group * {shape.warps} + warp, which = turn % ends;",
            "across = which < ends_left ? which : total - ends + which;",
            "strip_number = turn / ends % end_strips;",
            "plane = turn / ends / end_strips;",
            "own_strip = end_strip;",
            "if (plane >= planes) return;",
        )
        text(f"int across, strip_number, own_strip; {dialect.long} plane;")
        if len(self.kinds) == 1:
            text(*at_ends[:-1])  # (there is one group of lanes in a work group, and none too many)
            return
        text("const int at_end = group < end_groups;")
        with text.block("if (at_end)"):
            text(*at_ends)
        with text.block("else"):
            text(
                f"across = ends_left + (group - end_groups) % blocks * {shape.warps} + warp;",
                "strip_number = (group - end_groups) / blocks % strips;",
                "plane = (group - end_groups) / blocks / strips;",
                "own_strip = strip;",
                "if (across >= total - ends + ends_left) return;",
            )

    # --- reading ----------------------------------------------------------------------------------

    def _borders(self) -> None:
        for name, axis in (("down", self.work.down), ("along", self.work.along)):
            if axis is None:
                continue
            for band, border in enumerate(axis.borders):
                self.text("")
                border.emit(self.text, self.dialect, self._border(name, band), "number")

    def _border(self, axis: str, band: int) -> str:
        return f"{axis}_{'low' if band == 0 else 'high'}" if self.work.back else axis

    def _extents(self, axis: str, band: int) -> tuple[str, str]:
        """The count of what is there, and what the functions of the border are told."""
        if not self.work.back:
            return (axis, axis)
        count = f"{'low' if band == 0 else 'high'}_{axis}"
        own = self.work.down if axis == "rows" else self.work.along
        assert own is not None
        return count, axis if own.borders[band].kind.startswith("folded") else count

    def _pieces(self, reading: bool) -> Iterator[tuple[int, list[int], int]]:
        """For each sequence along a row: its number, the places of its elements in a lane, where they start.

        The start is in elements from ``m``, of the row's or the band's own memory.
        """
        channels = self.work.channels
        if self.along is None:
            yield 0, list(range(self.size)), 0
        elif reading == self.work.back:  # bands
            for component in (0, 1):
                slots = [
                    (2 * n + component) * channels + c for n in range(self.half) for c in range(channels)
                ]
                if self.work.back:
                    entry = self.along.entries[component]
                    yield entry.sequence, slots, entry.shift
                else:
                    sequence = [e.component for e in self.along.exits].index(component)
                    yield sequence, slots, -self.along.exits[sequence].shift
        else:
            yield 0, list(range(self.size)), 0

    def _loads(self) -> None:
        """Functions that read one row of a lane, and one that may be beyond the ends."""
        text, dialect, work = self.text, self.dialect, self.work
        kind = f"{dialect.everywhere}const {ELEMENTS[work.source]} *"
        lists = [(*piece, self._line(piece[0], work.back)) for piece in self._pieces(True)]
        lines = ", ".join(f"{kind}{line}" for *_, line in lists)
        text("")
        extents = "int rows, int columns, int low_rows, int high_rows, int low_columns, int high_columns"
        kind_name = self._kind()
        place = f"int m, const int *at, {extents}"
        with text.block(f"{dialect.function} void load_row{kind_name}({self.kept} *v, {lines}, {place})"):
            for sequence, slots, shift, line in lists:
                self._load_piece(sequence, slots, shift, line)
        text("")
        names = [line for *_, line in lists]
        rows = ", ".join(f"{kind}{name}, unsigned int {name}_bytes" for name in names)
        told = "m, at, rows, columns, low_rows, high_rows, low_columns, high_columns"
        if self.down is None:
            return
        for band in (0, 1) if work.back else (0,):
            count, extent = self._extents("rows", band)
            assert work.down is not None
            border, name = work.down.borders[band], self._border("down", band)
            suffix = ("_low", "_high")[band] if work.back else ""
            at = ", ".join(self._row(n, "q", True) for n in names)
            head = f"void load{suffix}{kind_name}({self.kept} *v, {rows}, int p, {place})"
            with text.block(f"{dialect.function} {head}"):
                if border.weighted:
                    with text.block(f"if (p < 0 || p >= {count})"):
                        text(f"const int q = {name}_place(p, {extent}, 0);")
                        text(f"load_row{kind_name}(v, {at}, {told});")
                        with text.unrolled("j", self.size):
                            text(f"v[j] *= {name}_weight(p, {extent}, 0);")
                        if border.differences:
                            self._add_differences(border, name, extent, f"load_row{kind_name}", at, told)
                        text("return;")
                text(f"const int q = {_within('p', count)} ? p : {name}_place(p, {extent}, 0);")
                if border.certain:
                    text(f"load_row{kind_name}(v, {at}, {told});")
                else:
                    with text.block("if (q >= 0)"):
                        text(f"load_row{kind_name}(v, {at}, {told});")
                    with text.block("else"), text.unrolled("j", self.size):
                        text("v[j] = 0;")
            text("")

    def _add_differences(self, border: Border, name: str, extent: str, load: str, at: str, told: str) -> None:
        """To a row that is beyond the ends, multiples of how much rows are above others."""
        text = self.text
        with text.block(f"for (int t = 1; t <= {border.differences}; ++t)"):
            text(f"number plus[{self.size}], minus[{self.size}];")
            text(f"int q = {name}_place(p, {extent}, 2 * t - 1);", f"{load}(plus, {at}, {told});")
            text(f"q = {name}_place(p, {extent}, 2 * t);", f"{load}(minus, {at}, {told});")
            with text.unrolled("j", self.size):
                text(f"v[j] += {name}_weight(p, {extent}, t) * (plus[j] - minus[j]);")

    def _row(self, array: str, row: str, reading: bool, own: bool = False) -> str:
        """The address of a row: one instruction, where rows are bytes apart."""
        dialect, work = self.dialect, self.work
        const = "const " if reading else ""
        element = ELEMENTS[work.source if reading else work.result]
        byte = f"({dialect.everywhere}{const}char *){array}{'_own' if own else ''}"
        return (
            f"({dialect.everywhere}{const}{element} *)({byte}"
            f" + (unsigned {dialect.long})(unsigned int)({row}) * {array}_bytes)"
        )

    def _kind(self) -> str:
        return "_inner" if self.inner else ""

    def _line(self, sequence: int, split: bool) -> str:
        return ("low", "high")[sequence] if split and self.along else "line"

    def _load_piece(self, sequence: int, slots: Sequence[int], shift: int, line: str) -> None:
        """One piece of a row: all at once where it is inside, one by one at the ends."""
        text, work, channels = self.text, self.work, self.work.channels
        count, extent = ("columns", "columns") if self.along is None else self._extents("columns", sequence)
        places = len(slots) // channels
        start = self._start(shift, not work.back)
        with text.block():
            text(f"const int c = {0 if self.inner else start};")
            wide = self._wide(places * channels, shift, not work.back, self.shape.wide_source)
            if self.inner:
                self._wide_load(line, slots, wide)
                return
            with text.block(f"if (c >= 0 && c + {places} <= {count})"):
                self._wide_load(line, slots, wide)
            with text.block("else"):
                for index in range(places):
                    self._edge_load(line, slots, index, sequence, count, extent)

    def _start(self, shift: int, interleaved: bool) -> str:
        """Where a lane's piece begins, counted in places."""
        base = "2 * m" if interleaved and self.along else "m"
        return base if not shift else f"{base} {'+' if shift > 0 else '-'} {abs(shift)}"

    def _wide(self, elements: int, shift: int, interleaved: bool, most: int) -> int:
        """Elements that may be moved at once: a piece has whole ones, and every lane begins with one."""
        channels = self.work.channels
        if self.along is None:
            return math.gcd(elements, most)
        offset = (2 * self.first if interleaved else self.first + shift) * channels
        return math.gcd(elements, offset, most)

    def _wide_load(self, line: str, slots: Sequence[int], wide: int) -> None:
        text, work = self.text, self.work
        element, channels = ELEMENTS[work.source], work.channels
        convert = (lambda v: v) if self.raw else (lambda v: read(work, v))
        for begin in range(0, len(slots), wide):
            place = f"c * {channels} + {begin}" if channels > 1 else f"c + {begin}"
            if wide == 1:
                text(f"v[{slots[begin]}] = {convert(f'{line}[{place}]')};")
                continue
            vector = f"{self.dialect.everywhere}const {element}{wide} *"
            with text.block():
                text(f"const {element}{wide} w = *({vector})({line} + {place});")
                for k in range(wide):
                    text(f"v[{slots[begin + k]}] = {convert('w.' + 'xyzw'[k])};")

    def _edge_load(
        self, line: str, slots: Sequence[int], index: int, sequence: int, count: str, extent: str
    ) -> None:
        text, work, channels = self.text, self.work, self.work.channels
        name = self._border("along", sequence)
        own = range(index * channels, (index + 1) * channels)
        convert = (lambda v: v) if self.raw else (lambda v: read(work, v))
        with text.block():
            text(f"const int p = c + {index}, q = at[{slots[own[0]] // channels}];")
            border = work.along.borders[sequence if work.back else 0] if work.along else None
            if border is not None and border.weighted:
                with text.block(f"if (p < 0 || p >= {count})"):
                    for c, slot in enumerate(own):
                        value = read(work, f"{line}[%s * {channels} + {c}]")
                        with text.block():
                            emit_beyond(text, border, name, "sum", "p", extent, value)
                            text(f"v[{slots[slot]}] = sum;")
                head = "else"
            else:
                head = ""
            with text.block(head):
                for c, slot in enumerate(own):
                    text(f"v[{slots[slot]}] = q < 0 ? 0 : {convert(f'{line}[q * {channels} + {c}]')};")

    # --- along rows -------------------------------------------------------------------------------

    def _along(self, flow: Flow) -> None:
        """A function that runs the flow along one row, in place."""
        text, dialect = self.text, self.dialect
        extra = "" if dialect.shuffle else f", {dialect.within}number *exchange"
        self.slots = 0
        with text.block(f"{dialect.function} void run_along(number *v, int lane{extra})"):
            if flow.filters:
                self._filter_along(flow)
            else:
                for step in flow.steps:
                    self._step_along(step)
        if self.exchanges == 1 and not self.down:
            self.exchanges = -1  # one exchange alone would be written to while others read it

    def _gather(self, component: int, name: str, lowest: int, highest: int) -> None:
        """``name``: a component of the lane's pairs, from ``lowest`` before to ``highest`` after them."""
        text, channels, half, lanes = self.text, self.work.channels, self.half, self.shape.lanes
        text(f"number {name}[{(half + highest - lowest) * channels}];")
        outside = []
        for n in range(lowest, half + highest):
            for c in range(channels):
                own, target = n % half, f"{name}[{(n - lowest) * channels + c}]"
                value = f"v[{(2 * own + component) * channels + c}]"
                if 0 <= n < half:
                    text(f"{target} = {value};")
                else:
                    outside.append((target, value, n // half))
        if self.dialect.shuffle:
            for target, value, distance in outside:
                lane = f"lane {'+' if distance > 0 else '-'} {abs(distance)}"
                text(f"{target} = {self.dialect.shuffle.format(value=value, lane=lane)};")
            return
        if not outside:
            return
        slots = {value: self.slots + k for k, value in enumerate(dict.fromkeys(v for _, v, _ in outside))}
        for value, slot in slots.items():
            text(f"exchange[{slot * lanes} + lane] = {value};")
        text(self.dialect.barrier)
        for target, value, distance in outside:
            lane = f"lane + {distance} < {lanes} ? lane + {distance} : {lanes - 1}"
            if distance < 0:
                lane = f"lane >= {-distance} ? lane - {-distance} : 0"
            text(f"{target} = exchange[{slots[value] * lanes} + ({lane})];")
        self.slots += len(slots)
        self.exchanges += 1

    def _step_along(self, step: FlowStep) -> None:
        text, channels, target = self.text, self.work.channels, step.target
        offsets = [tap.offset for tap in step.taps]
        lowest, highest = min(0, *offsets), max(0, *offsets)
        with text.block():
            self._gather(1 - target, "other", lowest, highest)
            with text.unrolled("n", self.half), text.unrolled("c", channels):
                own = f"v[(2 * n + {target}) * {channels} + c]"
                values = [f"other[(n + {offset - lowest}) * {channels} + c]" for offset in offsets]
                text(f"{own} = {stepped(self.work, self.dialect, own, step, values)};")

    def _filter_along(self, flow: Flow) -> None:
        text, channels = self.text, self.work.channels
        ranges = {}
        for component, name in ((0, "first"), (1, "second")):
            offsets = [0, *(t.offset for taps in flow.filters for t in taps if t.component == component)]
            ranges[component] = (name, min(offsets))
            self._gather(component, name, min(offsets), max(offsets))
        with text.unrolled("n", self.half), text.unrolled("c", channels):
            for result, taps in enumerate(flow.filters):
                terms = [
                    f"{literal(t.factor, self.work.number)} * {ranges[t.component][0]}"
                    f"[(n + {t.offset - ranges[t.component][1]}) * {channels} + c]"
                    for t in taps
                ]
                text(f"v[(2 * n + {result}) * {channels} + c] = {' + '.join(terms) or '0'};")

    # --- marching down ----------------------------------------------------------------------------

    def _march(self) -> None:
        text, flow, shape, size = self.text, self.down, self.shape, self.size
        before, after = flow.reach if flow else (0, 0)
        count = 2 if flow else 1
        self._places()
        body, nodes = self._steps(flow) if flow else ([], [])
        for node in nodes:
            for age in range(1, node.oldest + 1):
                text(f"number {node.name}_{age}[{size}];")
        for node in nodes:
            if node.oldest:
                with text.unrolled("j", size):
                    text(" ".join(f"{node.name}_{age}[j] = 0;" for age in range(1, node.oldest + 1)))
        self._begin(before, count)
        if shape.unroll > 1:
            text(f"#pragma unroll {shape.unroll}")
        with text.block(f"for (int i = begin - {before}; i < end + {after}; ++i)"):
            if self.inner and shape.lockstep and shape.warps > 1:
                # Groups of lanes side by side read and write parts of the same lines of the cache.
                text(f"if (i % {shape.lockstep} == 0) {self.dialect.barrier}")
            text("number " + ", ".join(f"in{c}_0[{size}]" for c in range(count)) + ";")
            self._next(after, count)
            if self.along_first:
                self._along_rows([f"in{c}_0" for c in range(count)])
            for line in body:
                if line.startswith("number"):
                    text(line)
                else:
                    with text.unrolled("j", size):
                        text(line)
            warm = f"i >= begin + {after}" if flow and before + after else ""
            # Where lanes meet at barriers, all of them have to come there in every turn.
            with text.block(f"if ({warm})" if warm and self.dialect.shuffle else ""):
                text(f"const int n = i - {after};")
                self._finish(count, "" if self.dialect.shuffle else warm)
            shifts = [
                f"{node.name}_{age}[j] = {node.name}_{age - 1}[j];"
                for node in nodes
                if node.rolls
                for age in range(node.oldest, 0, -1)
            ]
            if shifts:
                with text.unrolled("j", size):
                    text(*shifts)

    def _pointers(self) -> None:
        """Where a lane's columns begin in each array, found once for all rows."""
        for reading in (True, False):
            for sequence, _, shift in self._pieces(reading):
                split = self.along is not None and reading == self.work.back
                for row in (0, 1):
                    array = self._array(row, sequence) if reading == self.work.back else "x"
                    if self.along is None and reading == self.work.back:
                        array = "ad"[row]
                    element = ELEMENTS[self.work.source if reading else self.work.result]
                    const = "const " if reading else ""
                    start = self._start(shift, not split)
                    if row and (array == "x" or not self.down):
                        continue
                    self.text(
                        f"{self.dialect.everywhere}{const}{element} *{array}_own ="
                        f" {array} + ({start}) * {self.work.channels};"
                    )

    def _begin(self, before: int, count: int) -> None:
        """The first rows on their way, to registers."""
        for age in range(self.shape.prefetch):
            self.text(f"{self.kept} " + ", ".join(f"next{age}_{c}[{self.size}]" for c in range(count)) + ";")
        for age in range(self.shape.prefetch):
            self._fetch(f"begin - {before} + {age}", f"next{age}_", count)

    def _next(self, after: int, count: int) -> None:
        """Rows that have come, and those that are to come next."""
        text, size, deep = self.text, self.size, self.shape.prefetch
        if not deep:
            text(f"{self.kept} " + ", ".join(f"next0_{c}[{size}]" for c in range(count)) + ";")
            self._fetch("i", "next0_", count)
        with text.unrolled("j", size):
            for c in range(count):
                value = f"next0_{c}[j]"
                text(f"in{c}_0[j] = {read(self.work, value) if self.raw else value};")
                for age in range(1, deep):
                    text(f"next{age - 1}_{c}[j] = next{age}_{c}[j];")
        if self.work.mixing is not None:
            for c in range(count):
                self._each_place(f"in{c}_0", mixed)
        if self.work.rule is not None:
            self._limit(count)
        if deep:
            text(f"const int ahead = min(i + {deep}, end + {after - 1});")
            self._fetch("ahead", f"next{deep - 1}_", count)

    def _limit(self, count: int) -> None:
        """Details that have come, by their limits."""
        for c in range(count):
            row = self.down.entries[c].sequence if self.down else 0
            for sequence, slots, _ in self._pieces(True):
                band = self._array(row, sequence)
                if band == self.work.bands[0]:
                    continue
                for slot in slots:
                    own = f"in{c}_0[{slot}]"
                    self.text(f"{own} = {limited(self.work, band, own)};")

    def _each_place(self, name: str, change: Callable[[Pass, Sequence[str]], list[str]]) -> None:
        """Changes the channels of every place of a row that is in registers."""
        channels = self.work.channels
        values = [f"channel{k}" for k in range(channels)]
        with self.text.unrolled("p", self.shape.pixels):
            own = [f"{name}[p * {channels} + {k}]" for k in range(channels)]
            self.text(
                "const number " + ", ".join(f"{v} = {o}" for v, o in zip(values, own, strict=True)) + ";"
            )
            self.text(*(f"{o} = {new};" for o, new in zip(own, change(self.work, values), strict=True)))

    def _places(self) -> None:
        """Where in memory a lane's columns are, looked up once for all rows."""
        text = self.text
        if self.inner:
            text("const int *at = 0;")
            self._pointers()
            return
        text(f"int at[{self.shape.pixels}];")
        for sequence, slots, shift in self._pieces(True):
            count, extent = (
                ("columns", "columns") if self.along is None else self._extents("columns", sequence)
            )
            for index, slot in enumerate(slots[:: self.work.channels]):
                with text.block():
                    text(f"const int p = {self._start(shift, not self.work.back)} + {index};")
                    beyond = (
                        f"{self._border('along', sequence)}_place(p, {extent}, 0)" if self.along else "-1"
                    )
                    text(f"at[{slot // self.work.channels}] = p >= 0 && p < {count} ? p : {beyond};")

    def _fetch(self, i: str, target: str, count: int) -> None:
        """Rows of pair i, from memory."""
        text, work, flow = self.text, self.work, self.down
        told = "m, at, rows, columns, low_rows, high_rows, low_columns, high_columns"
        own = "_own" if self.inner else ""
        for component in range(count):
            into = f"{target}{component}"
            if flow is None:
                lines = [self._array(0, piece[0]) for piece in self._pieces(True)] if work.back else ["x"]
                at = ", ".join(self._row(a, i, True, self.inner) for a in lines)
                text(f"load_row{self._kind()}({into}, {at}, {told});")
            elif not work.back:
                text(f"load{self._kind()}({into}, x{own}, x_bytes, 2 * ({i}) + {component}, {told});")
            else:
                entry = flow.entries[component]
                arrays = [self._array(entry.sequence, piece[0]) for piece in self._pieces(True)]
                at = ", ".join(f"{a}{own}, {a}_bytes" for a in arrays)
                suffix = ("_low", "_high")[entry.sequence]
                text(f"load{suffix}{self._kind()}({into}, {at}, ({i}) + {entry.shift}, {told});")

    def _array(self, row: int, column: int) -> str:
        """The band that is this sequence down and that sequence along."""
        if self.down and self.along:
            return "ad"[row] + "ad"[column]
        return "ad"[row if self.down else column]

    def _steps(self, flow: Flow) -> tuple[list[str], list[_Node]]:
        """The flow along columns, for one pair of rows that came in: statements, and what they remember."""
        size = self.size
        inputs = [_Node("in0", 0), _Node("in1", 0)]
        if flow.filters:
            return self._filter_down(flow, inputs)
        body: list[str] = []
        nodes, current = list(inputs), list(inputs)
        for k, step in enumerate(flow.steps):
            own, other = current[step.target], current[1 - step.target]
            highest = max(tap.offset for tap in step.taps)
            node = _Node(f"step{k}", max(own.delay, other.delay + highest))
            kept = own.at(node.delay - own.delay)
            values = [other.at(node.delay - tap.offset - other.delay) for tap in step.taps]
            body.append(f"number {node.name}_0[{size}];")
            body.append(f"{node.name}_0[j] = {stepped(self.work, self.dialect, kept, step, values)};")
            nodes.append(node)
            current[step.target] = node
        after = flow.reach[1]
        body.append(f"number done0[{size}], done1[{size}];")
        body.append(" ".join(f"done{c}[j] = {current[c].at(after - current[c].delay)};" for c in (0, 1)))
        return body, nodes

    def _filter_down(self, flow: Flow, inputs: list[_Node]) -> tuple[list[str], list[_Node]]:
        """Filters as sums that grow: each pair of rows is added to all the results that it is part of."""
        size, number = self.size, self.work.number
        before, after = flow.reach
        body = [f"number done0[{size}], done1[{size}];"]
        nodes = []
        for result, taps in enumerate(flow.filters):
            sums = _Node(f"sum{result}", 0, before + after, rolls=False)
            # sum_m holds what is known of the result m pairs on from the one that is finished now.
            for m in range(before + after + 1):
                terms = [
                    f"{literal(t.factor, number)} * in{t.component}_0[j]"
                    for t in taps
                    if t.offset == after - m
                ]
                if m < before + after:
                    terms.insert(0, f"{sums.name}_{m + 1}[j]")
                target = f"done{result}[j]" if m == 0 else f"{sums.name}_{m}[j]"
                body.append(f"{target} = {' + '.join(terms) or '0'};")
            nodes.append(sums)
        return body, nodes

    # --- writing ----------------------------------------------------------------------------------

    def _finish(self, count: int, warm: str) -> None:
        """Steps along the finished rows, and their way to memory."""
        text, work, flow = self.text, self.work, self.down
        names = ["done0", "done1"] if flow else ["in0_0"]
        if not self.along_first:
            self._along_rows(names)
        with text.block(f"if (useful && {warm})" if warm else "if (useful)"):
            if work.unmixing is not None:
                self._scale_rows(names)
                for name in names:
                    self._each_place(name, unmixed)
            for sequence in range(count):
                component, shift, scale = flow.exits[sequence] if flow else (0, 0, 1.0)
                row, limit = "n", "rows"
                if flow and not work.back:
                    row, limit = f"n - {shift}" if shift else "n", ("low_rows", "high_rows")[sequence]
                elif flow:
                    row = f"2 * n + {sequence}"
                with text.block():
                    text(f"const int r = {row};")
                    guarded = f"if ({_within('r', limit)})" if flow else ""
                    with text.block(guarded):
                        for piece in self._pieces(False):
                            self._store(sequence, names[component], scale, *piece)

    def _scale_rows(self, names: Sequence[str]) -> None:
        """Floats are scaled before they become channels."""
        if self.work.number == "int" or self.down is None or self.along is None:
            return
        channels = self.work.channels
        for down in self.down.exits:
            for phase, along in enumerate(self.along.exits):
                scale = literal(down.scale * along.scale, self.work.number)
                with self.text.unrolled("p", self.half), self.text.unrolled("c", channels):
                    place = f"{names[down.component]}[(2 * p + {phase}) * {channels} + c]"
                    self.text(f"{place} = {place} * {scale};")

    def _along_rows(self, names: Sequence[str]) -> None:
        """The steps along rows that are in registers."""
        for k, name in enumerate(names):
            if self.along:
                extra = "" if self.dialect.shuffle else f", exchange + {k * self.slots * self.shape.lanes}"
                self.text(f"run_along({name}, lane{extra});")
        if self.exchanges < 0:
            self.text(self.dialect.barrier)

    def _store(self, row: int, name: str, scale: float, sequence: int, slots: list[int], shift: int) -> None:
        text, work, channels, number = self.text, self.work, self.work.channels, self.work.number
        array = "x" if work.back else self._array(row, sequence)
        count = "columns"
        if self.along and not work.back:
            count = ("low_columns", "high_columns")[sequence]
        element = ELEMENTS[work.result]
        scales = [scale] * len(slots)
        if self.along:
            for k, slot in enumerate(slots):
                parity = slot // channels % 2
                column = self.along.exits[parity if work.back else sequence].scale
                scales[k] = scale * column
        if work.unmixing is not None:
            scales = [1.0] * len(slots)
        values = [
            f"{name}[{slot}]" + (f" * {literal(s, number)}" if s != 1 else "")
            for slot, s in zip(slots, scales, strict=True)
        ]
        places = len(slots) // channels
        wide = self._wide(len(slots), shift, work.back, self.shape.wide_result)
        with text.block():
            line = self._row(array, "r", False, self.inner)
            if not self.inner:
                text(f"const int c = {self._start(shift, work.back)};")
                line += f" + c * {channels}"
            text(f"{self.dialect.everywhere}{element} *line = {line};")
            with text.block("" if self.inner else f"if (c >= 0 && c + {places} <= {count})"):
                for begin in range(0, len(slots), wide):
                    some = [written(work, value) for value in values[begin : begin + wide]]
                    if wide == 1:
                        text(f"line[{begin}] = {some[0]};")
                        continue
                    with text.block():
                        text(f"{element}{wide} w;")
                        text(*(f"w.{'xyzw'[k]} = {value};" for k, value in enumerate(some)))
                        text(f"*({self.dialect.everywhere}{element}{wide} *)(line + {begin}) = w;")
            if self.inner:
                return
            with text.block(f"else if (c + {places} > 0 && c < {count})"):
                for index in range(places):
                    with text.block(f"if (c + {index} >= 0 && c + {index} < {count})"):
                        for k in range(index * channels, (index + 1) * channels):
                            text(f"line[{k}] = {written(work, values[k])};")


def _within(place: str, count: str) -> str:
    """From 0 to below a count, asked at once."""
    return f"(unsigned int)({place}) < (unsigned int){count}"
