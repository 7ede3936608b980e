"""The tiled strategy: one pass, a tile of quads in shared memory, one barrier for each stage of a scheme.

Each work item keeps a few quads in registers, the four components of the scheme. Before a stage that reads
neighbours it puts those of its components that others want into shared memory, waits, and calculates.
Factors that stay within their quad cost neither memory nor waiting. All ten schemes are printed by this one
emitter, from their matrices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from ...algebra import PolyphaseMatrix
from ...liftings import lifting
from ...schemes import Scheme, scheme
from ...wavelets import Wavelet
from .borders import Border
from .dialect import Dialect
from .kernel import ELEMENTS, Kernel, Pass, emit_beyond, limited, opened, parameters, prelude, read, written
from .text import Text, literal

__all__ = ["EXTENTS", "Gate", "Quads", "Shape", "emit", "quads"]

EXTENTS = (
    "rows", "columns", "low_rows", "high_rows", "low_columns", "high_columns", "across", "downwards",
)  # fmt: skip
MOST_TERMS = 3000  # of all stages: longer texts take minutes to compile


@dataclass(frozen=True)
class Gate:
    """A component of the scheme comes from, or goes to, one of four: ``[n + exponents]``, scaled."""

    component: int
    other: int
    down: int
    along: int
    scale: float


@dataclass(frozen=True)
class Quads:
    """A scheme for one direction, ready for printing.

    Parameters
    ----------
    factors : tuple of PolyphaseMatrix
        In the order in which they are applied.
    before, after : tuple of Gate
        Where components come from and go to.
    lead : int
        Places by which the samples of a quad are moved.
    halo : ((left, right), (above, below))
    """

    name: str
    factors: tuple[PolyphaseMatrix, ...]
    before: tuple[Gate, ...]
    after: tuple[Gate, ...]
    lead: int
    halo: tuple[tuple[int, int], tuple[int, int]]

    @property
    def terms(self) -> int:
        """Products in the text, for one quad."""
        return sum(len(entry) for matrix in self.factors for row in matrix.rows for entry in row)

    def range(self, back: bool, axis: int, length: int, counts: tuple[int, int]) -> tuple[int, int]:
        """First quad with results along an axis (0 is down) and how many there are."""
        first, last = [], []
        for gate in self.after:
            exponent = gate.along if axis else gate.down
            phase = (gate.other if axis else gate.other >> 1) & 1
            if back:  # sample i = 2 (n - exponent) + phase + lead
                first.append(exponent - (phase + self.lead) // 2)
                last.append(exponent + (length - 1 - phase - self.lead) // 2)
            else:
                first.append(exponent)
                last.append(exponent + counts[phase] - 1)
        return min(first), max(last) - min(first) + 1


@lru_cache(maxsize=256)
def quads(wavelet: Wavelet, name: str, periodized: bool, lifted: bool, back: bool) -> Quads:
    """The scheme of a wavelet for one direction."""
    made = scheme(lifting(wavelet).on_line() if lifted else wavelet, name)
    lead = wavelet.dec_len // 2 - 1 if periodized else 0
    turned: Scheme = made.inverse() if back else made
    return Quads(
        name,
        tuple(factor.matrix for factor in turned.factors),
        _gates(turned.before, False),
        _gates(turned.after, True),
        lead,
        turned.halo,
    )


def _gates(matrix: PolyphaseMatrix, leaving: bool) -> tuple[Gate, ...]:
    gates = []
    for i, row in enumerate(matrix.rows):
        ((j, key, value),) = [(j, key, value) for j, entry in enumerate(row) for key, value in entry.items()]
        along, down = key if isinstance(key, tuple) else (key, 0)
        gates.append(
            Gate(j, i, down, along, float(value)) if leaving else Gate(i, j, down, along, float(value))
        )
    return tuple(gates)


@dataclass(frozen=True)
class Shape:
    """A tile: quads along and down, with what is around the results; and the work items."""

    along: int = 32
    down: int = 32
    items: int = 256

    @property
    def own(self) -> int:
        """Quads of each work item, one below the other."""
        return self.along * self.down // self.items

    def results(self, made: Quads) -> tuple[int, int]:
        """Quads with results: along, down."""
        (left, right), (above, below) = made.halo
        return self.along - left - right, self.down - above - below

    def shared(self, made: Quads, number: str) -> int:
        """Bytes of shared memory."""
        plan = _Plan.of(made)
        return (
            plan.slots
            * (self.along * self.down + 2 * plan.margin(self.along))
            * (8 if number == "double" else 4)
        )


@dataclass(frozen=True)
class _Plan:
    """Which component goes to which slot of shared memory before which factor.

    A component that is written again goes to its other slot, since the first may still be read.
    """

    writes: tuple[tuple[tuple[int, int], ...], ...]  # for each factor: (component, slot)
    reads: tuple[tuple[int, ...], ...]  # for each factor: the slot of each component, or -1
    slots: int
    reach: tuple[int, int]  # the farthest exponents along and down

    def margin(self, along: int) -> int:
        """Numbers before and after a slot that may be read, and mean nothing."""
        return self.reach[1] * along + self.reach[0]

    @staticmethod
    def of(made: Quads) -> _Plan:
        return _plan(made)


@lru_cache(maxsize=256)
def _plan(made: Quads) -> _Plan:
    fresh = [-1] * 4  # slot with the current value of each component
    last = [-1] * 4  # slot it was written to last
    own: list[list[int]] = [[], [], [], []]
    slots, writes, reads = 0, [], []
    reach = [0, 0]
    for matrix in made.factors:
        wanted = set()
        for row in matrix.rows:
            for j, entry in enumerate(row):
                for key, _ in entry.items():
                    along, down = key if isinstance(key, tuple) else (key, 0)
                    if along or down:
                        wanted.add(j)
                        reach = [max(reach[0], abs(along)), max(reach[1], abs(down))]
        here = []
        for j in sorted(wanted):
            if fresh[j] < 0:
                free = [slot for slot in own[j] if slot != last[j]]
                if not free:
                    own[j].append(slots)
                    slots += 1
                    free = own[j][-1:]
                fresh[j] = last[j] = free[0]
                here.append((j, free[0]))
        writes.append(tuple(here))
        reads.append(tuple(fresh))
        for i, row in enumerate(matrix.rows):
            if not _unchanged(row, i):
                fresh[i] = -1
    return _Plan(tuple(writes), tuple(reads), slots, (reach[0], reach[1]))


def _unchanged(row: object, i: int) -> bool:
    entries = [(j, key, value) for j, entry in enumerate(row) for key, value in entry.items()]  # type: ignore[arg-type,var-annotated]
    return len(entries) == 1 and entries[0][0] == i and entries[0][2] == 1 and _still(entries[0][1])


def _still(key: object) -> bool:
    return key in (0, (0, 0))


@lru_cache(maxsize=512)
def emit(work: Pass, made: Quads, shape: Shape, dialect: Dialect) -> Kernel:
    """The kernel of a pass over two axes; its flows are not looked at, the scheme is what runs."""
    return _Tiled(work, made, shape, dialect).kernel()


class _Tiled:
    def __init__(self, work: Pass, made: Quads, shape: Shape, dialect: Dialect) -> None:
        self.work, self.made, self.shape, self.dialect = work, made, shape, dialect
        self.plan = _Plan.of(made)
        self.text = Text()

    def kernel(self) -> Kernel:
        work, made, shape, dialect, text = self.work, self.made, self.shape, self.dialect, self.text
        listed, arrays, integers = parameters(work, dialect, EXTENTS)
        name = f"tiled_{'back' if work.back else 'forward'}"
        prelude(text, dialect, work)
        self._takes()
        margin = self.plan.margin(shape.along)
        size = shape.along * shape.down + 2 * margin
        wide, high = shape.results(made)
        (left, _), (above, _) = made.halo
        own = shape.own
        first_down, first_along = self._first(0), self._first(1)
        text(f"// {made.name}: {len(made.factors)} factors, {self.plan.slots} slots of shared memory", "")
        with text.block(f"{dialect.kernel.format(items=shape.items)} {name}(\n        {listed})"):
            if self.plan.slots:
                text(f"{dialect.within}number tile[{self.plan.slots * size}];")
            text(
                f"const int item = {dialect.item}, group = {dialect.group};",
                f"const int channel = group % {work.channels}, tx = group / {work.channels} % across;",
                f"const int ty = group / {work.channels} / across % downwards;",
                f"const {dialect.long} plane = group / {work.channels} / across / downwards;",
                f"const int x0 = item % {shape.along}, y0 = item / {shape.along};",
                f"const int nx = {first_along} + tx * {wide} - {left} + x0;",
                f"const int ny = {first_down} + ty * {high} - {above} + y0;",
                f"number q[{own}][4];",
            )
            opened(text, dialect, arrays, work)
            for array in (*work.sources, *work.results):
                text(f"{array} += channel;")
            rows = shape.items // shape.along
            with text.unrolled("k", own):
                text(f"const int n = ny + k * {rows};")
                for gate in made.before:
                    scale = f" * {literal(gate.scale, work.number)}" if gate.scale != 1 else ""
                    text(f"q[k][{gate.component}] = {self._source(gate)}{scale};")
            for number, matrix in enumerate(made.factors):
                self._factor(number, matrix, size, margin, rows)
            with text.block(f"if (x0 >= {left} && x0 < {left + wide})"), text.unrolled("k", own):
                text(f"const int y = y0 + k * {rows}, n = ny + k * {rows};")
                with text.block(f"if (y >= {above} && y < {above + high})"):
                    for gate in made.after:
                        self._store(gate)
        return Kernel(name, str(text) + "\n", shape.items, arrays, integers)

    def _first(self, axis: int) -> int:
        # The first quad does not depend on lengths.
        return self.made.range(self.work.back, axis, 2, (1, 1))[0]

    def _source(self, gate: Gate) -> str:
        """What a component is at the beginning."""
        down, along = _plus("n", gate.down), _plus("nx", gate.along)
        if not self.work.back:
            lead = self.made.lead
            return (
                f"take_x(x, x_row, {_plus(f'2 * ({down})', (gate.other >> 1) + lead)},"
                f" {_plus(f'2 * ({along})', (gate.other & 1) + lead)}, rows, columns)"
            )
        array = self.work.bands[gate.other]
        told = []
        for axis, own, bit in (
            ("rows", self.work.down, gate.other >> 1),
            ("columns", self.work.along, gate.other & 1),
        ):
            assert own is not None
            folded = own.borders[bit].kind.startswith("folded")
            told.append(axis if folded else f"{('low', 'high')[bit]}_{axis}")
        taken = f"take_{array}({array}, {array}_row, {down}, {along}, {', '.join(told)})"
        return limited(self.work, array, taken)

    def _store(self, gate: Gate) -> None:
        text, work, dialect = self.text, self.work, self.dialect
        row, column = _plus("n", -gate.down), _plus("nx", -gate.along)
        if work.back:
            array, lead = "x", self.made.lead
            row = _plus(f"2 * ({row})", (gate.other >> 1) + lead)
            column = _plus(f"2 * ({column})", (gate.other & 1) + lead)
            limits = ("rows", "columns")
        else:
            array = work.bands[gate.other]
            limits = (
                ("low_rows", "high_rows")[gate.other >> 1],
                ("low_columns", "high_columns")[gate.other & 1],
            )
        value = f"q[k][{gate.component}]"
        if gate.scale != 1:
            value += f" * {literal(gate.scale, work.number)}"
        with text.block():
            text(f"const int r = {row}, c = {column};")
            with text.block(f"if (r >= 0 && r < {limits[0]} && c >= 0 && c < {limits[1]})"):
                text(
                    f"{array}[({dialect.long})r * {array}_row + ({dialect.long})c * {work.channels}]"
                    f" = {written(work, value)};"
                )

    def _takes(self) -> None:
        """Functions that read a sample or a coefficient wherever it is."""
        text, work, dialect = self.text, self.work, self.dialect
        assert work.down is not None
        assert work.along is not None
        kind = f"{dialect.everywhere}const {ELEMENTS[work.source]} *"
        for number, array in enumerate(work.sources):
            down = work.down.borders[number >> 1 if work.back else 0]
            along = work.along.borders[number & 1 if work.back else 0]
            for name, border in ((f"{array}_down", down), (f"{array}_along", along)):
                border.emit(text, dialect, name, "number")
            if down.weighted or along.weighted:
                self._take_in_row(array, kind, along)
            counts = ["rows", "columns"]
            if work.back:
                counts = [f"{array}_rows", f"{array}_columns"]
            head = f"number take_{array}({kind}plane, int step, int r, int c, int rows, int columns)"
            with text.block(f"{dialect.function} {head}"):
                if work.back:
                    for axis, bit, border in (("rows", number >> 1, down), ("columns", number & 1, along)):
                        count = axis
                        if border.kind.startswith("folded"):
                            count = f"({axis} + {1 - bit}) / 2"
                        text(f"const int {array}_{axis} = {count};")
                at = read(work, f"plane[({dialect.long})i * step + j * {work.channels}]")
                text(f"const int inside_r = r >= 0 && r < {counts[0]}, inside_c = c >= 0 && c < {counts[1]};")
                if not (down.weighted or along.weighted):
                    text("int i = r, j = c;")
                    text(f"if (!inside_r) i = {array}_down_place(r, rows, 0);")
                    text(f"if (!inside_c) j = {array}_along_place(c, columns, 0);")
                    text(f"return i < 0 || j < 0 ? 0 : {at};")
                    continue
                text("int i = r;")
                inner = f"{array}_in_row(plane, step, %s, c, columns)"
                if down.weighted:
                    text(f"if (inside_r) return {inner % 'i'};")
                    emit_beyond(text, down, f"{array}_down", "sum", "r", "rows", inner)
                    text("return sum;")
                else:
                    text(f"if (!inside_r) i = {array}_down_place(r, rows, 0);")
                    text(f"return i < 0 ? 0 : {inner % 'i'};")
            text("")

    def _take_in_row(self, array: str, kind: str, border: Border) -> None:
        """A function that reads a row wherever it is along it; forward only, where borders have factors."""
        text, work, dialect = self.text, self.work, self.dialect
        head = f"number {array}_in_row({kind}plane, int step, int i, int c, int columns)"
        at = read(work, f"plane[({dialect.long})i * step + %s * {work.channels}]")
        with text.block(f"{dialect.function} {head}"):
            text(f"if (c >= 0 && c < columns) return {at % 'c'};")
            name = f"{array}_along"
            if border.weighted:
                emit_beyond(text, border, name, "sum", "c", "columns", at)
                text("return sum;")
            else:
                text(f"const int j = {name}_place(c, columns, 0);", f"return j < 0 ? 0 : {at % 'j'};")

    def _factor(self, number: int, matrix: PolyphaseMatrix, size: int, margin: int, rows: int) -> None:
        text, shape = self.text, self.shape
        here = f"{margin} + (y0 + k * {rows}) * {shape.along} + x0"
        for component, slot in self.plan.writes[number]:
            with text.unrolled("k", shape.own):
                text(f"tile[{slot * size} + {here}] = q[k][{component}];")
        slots = self.plan.reads[number]
        moved = any(not _still(key) for row in matrix.rows for entry in row for key, _ in entry.items())
        if moved:
            text(self.dialect.barrier)
        changed = [i for i, row in enumerate(matrix.rows) if not _unchanged(row, i)]
        with text.unrolled("k", shape.own):
            for i in changed:
                terms = []
                for j, entry in enumerate(matrix.rows[i]):
                    for key, value in entry.items():
                        if _still(key):
                            source = f"q[k][{j}]"
                        else:
                            along, down = key if isinstance(key, tuple) else (key, 0)
                            offset = slots[j] * size + down * shape.along + along
                            source = f"tile[{_plus(here, offset)}]"
                        terms.append((float(value), source))
                text(f"const number new{i} = {_sum(terms, self.work.number)};")
            for i in changed:
                text(f"q[k][{i}] = new{i};")


def _sum(terms: list[tuple[float, str]], number: str) -> str:
    """Sources times factors, added up; those whose factors cancel before they are multiplied.

    Factors that differ by powers of two alone are one number times small integers. Products with those are
    exact, fused with a sum or not, so where the integers add up to 0, a constant makes exactly 0 of them.
    """
    groups: dict[float, list[tuple[float, str]]] = {}
    for factor, source in terms:
        groups.setdefault(math.frexp(abs(factor))[0], []).append((factor, source))
    parts = []
    for mantissa, group in groups.items():
        unit = 1.0
        if mantissa != 0.5 and sum(factor for factor, _ in group) == 0:
            unit, group = min(abs(factor) for factor, _ in group), _by_turns(group)
        products = [
            source if factor == unit else f"{literal(factor / unit, number)} * {source}"
            for factor, source in group
        ]
        parts.append(
            " + ".join(products) if unit == 1 else f"{literal(unit, number)} * ({' + '.join(products)})"
        )
    return " + ".join(parts) or "0"


def _by_turns(terms: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Terms in an order in which signs take turns, so that the sum so far stays small, and with it exact."""
    rest, ordered, total = list(terms), [], 0.0
    while rest:
        number = next((k for k, (factor, _) in enumerate(rest) if factor * total <= 0), 0)
        ordered.append(rest.pop(number))
        total += ordered[-1][0]
    return ordered


def _plus(text: str, offset: int) -> str:
    return text if not offset else f"{text} {'+' if offset > 0 else '-'} {abs(offset)}"
