"""The tiled emitter: one pass, with a tile of quads in shared memory and one barrier for each factor.

Each work item keeps a few quads, the four components of the scheme, in registers. Before a factor that reads
neighbours it writes the components that other items need to shared memory and waits at a barrier. Factors
that stay within their quad need neither. All ten schemes are printed from their matrices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from ....algebra import PolyphaseMatrix
from ....liftings import lifting
from ....schemes import Scheme, scheme
from ....wavelets import Wavelet
from .dialect import Dialect
from .kernel import (
    Kernel,
    KernelSpec,
    emit_plane_take,
    emit_pointers,
    emit_prelude,
    parameter_list,
    store_expr,
    threshold_expr,
)
from .text import Text, literal

__all__ = ["EXTENTS", "MAX_TERMS", "Gate", "Quads", "TileGeometry", "emit", "quads"]

EXTENTS = (
    "rows", "columns", "low_rows", "high_rows", "low_columns", "high_columns", "across", "downwards",
)  # fmt: skip
MAX_TERMS = 3000  # in all factors; longer texts take minutes to compile


@dataclass(frozen=True)
class Gate:
    """Where a component of the scheme comes from or goes to: a sequence at ``n + (down, along)``, scaled."""

    component: int
    other: int
    down: int
    along: int
    scale: float


@dataclass(frozen=True)
class Quads:
    """A scheme in one direction, ready for printing.

    Parameters
    ----------
    factors : tuple of PolyphaseMatrix
        In the order in which they are applied.
    before, after : tuple of Gate
        Where components come from, and where they go.
    lead : int
        Offset of the samples of a quad.
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
        """Products per quad."""
        return sum(len(entry) for matrix in self.factors for row in matrix.rows for entry in row)

    def range(self, back: bool, axis: int, length: int, counts: tuple[int, int]) -> tuple[int, int]:
        """Return the first quad with results along an axis (0 is down), and the number of such quads."""
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
    """Return the scheme of a wavelet in one direction."""
    forward = scheme(lifting(wavelet).on_line() if lifted else wavelet, name)
    lead = wavelet.dec_len // 2 - 1 if periodized else 0
    directed: Scheme = forward.inverse() if back else forward
    return Quads(
        name,
        tuple(factor.matrix for factor in directed.factors),
        _gates(directed.before, False),
        _gates(directed.after, True),
        lead,
        directed.halo,
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
class TileGeometry:
    """The size of a tile, halo included, in quads along and down, and the number of work items."""

    along: int = 32
    down: int = 32
    items: int = 256

    @property
    def quads_per_item(self) -> int:
        """Quads of each work item, which lie below each other."""
        return self.along * self.down // self.items

    def results(self, quads: Quads) -> tuple[int, int]:
        """Return the quads with results, along and down."""
        (left, right), (above, below) = quads.halo
        return self.along - left - right, self.down - above - below

    def shared_bytes(self, quads: Quads, number: str) -> int:
        """Return the bytes of shared memory for a scheme."""
        schedule = _slot_schedule(quads)
        size = self.along * self.down + 2 * schedule.margin(self.along)
        return schedule.slots * size * (8 if number == "double" else 4)


@dataclass(frozen=True)
class _SlotSchedule:
    """Which component is written to which slot of shared memory before each factor.

    A component that is written again goes to its other slot, since the first one may still be read.
    """

    writes: tuple[tuple[tuple[int, int], ...], ...]  # for each factor: (component, slot)
    reads: tuple[tuple[int, ...], ...]  # for each factor: the slot of each component, or -1
    slots: int
    reach: tuple[int, int]  # the farthest exponents along and down

    def margin(self, along: int) -> int:
        """Return the numbers before and after a slot that items at the rim of a tile may read."""
        return self.reach[1] * along + self.reach[0]


@lru_cache(maxsize=256)
def _slot_schedule(quads: Quads) -> _SlotSchedule:
    current = [-1] * 4  # slot with the current value of each component
    last = [-1] * 4  # slot to which it was last written
    allotted: list[list[int]] = [[], [], [], []]
    slots, writes, reads = 0, [], []
    reach = [0, 0]
    for matrix in quads.factors:
        needed = set()
        for row in matrix.rows:
            for j, entry in enumerate(row):
                for key, _ in entry.items():
                    along, down = key if isinstance(key, tuple) else (key, 0)
                    if along or down:
                        needed.add(j)
                        reach = [max(reach[0], abs(along)), max(reach[1], abs(down))]
        written = []
        for j in sorted(needed):
            if current[j] < 0:
                free = [slot for slot in allotted[j] if slot != last[j]]
                if not free:
                    allotted[j].append(slots)
                    slots += 1
                    free = allotted[j][-1:]
                current[j] = last[j] = free[0]
                written.append((j, free[0]))
        writes.append(tuple(written))
        reads.append(tuple(current))
        for i, row in enumerate(matrix.rows):
            if not _unchanged(row, i):
                current[i] = -1
    return _SlotSchedule(tuple(writes), tuple(reads), slots, (reach[0], reach[1]))


def _unchanged(row: object, i: int) -> bool:
    entries = [(j, key, value) for j, entry in enumerate(row) for key, value in entry.items()]  # type: ignore[arg-type,var-annotated]
    return len(entries) == 1 and entries[0][0] == i and entries[0][2] == 1 and _still(entries[0][1])


def _still(key: object) -> bool:
    return key in (0, (0, 0))


@lru_cache(maxsize=512)
def emit(spec: KernelSpec, quads: Quads, geometry: TileGeometry, dialect: Dialect) -> Kernel:
    """Return the kernel that runs a scheme; the operators of the specification are not used."""
    return _TiledEmitter(spec, quads, geometry, dialect).kernel()


class _TiledEmitter:
    def __init__(self, spec: KernelSpec, quads: Quads, geometry: TileGeometry, dialect: Dialect) -> None:
        self.spec, self.quads, self.geometry, self.dialect = spec, quads, geometry, dialect
        self.schedule = _slot_schedule(quads)
        self.text = Text()

    def kernel(self) -> Kernel:
        spec, quads, geometry, dialect, text = self.spec, self.quads, self.geometry, self.dialect, self.text
        listed, arrays, integers = parameter_list(spec, dialect, EXTENTS)
        name = f"tiled_{'back' if spec.back else 'forward'}"
        emit_prelude(text, dialect, spec)
        self._emit_takes()
        margin = self.schedule.margin(geometry.along)
        size = geometry.along * geometry.down + 2 * margin
        wide, high = geometry.results(quads)
        (left, _), (above, _) = quads.halo
        per_item = geometry.quads_per_item
        first_down, first_along = self._first_quad(0), self._first_quad(1)
        text(
            f"// {quads.name}: {len(quads.factors)} factors, {self.schedule.slots} slots of shared memory", ""
        )
        with text.block(f"{dialect.kernel.format(items=geometry.items)} {name}(\n        {listed})"):
            if self.schedule.slots:
                text(f"{dialect.shared_memory}number tile[{self.schedule.slots * size}];")
            text(
                f"const int item = {dialect.item}, group = {dialect.group};",
                f"const int channel = group % {spec.channels}, tx = group / {spec.channels} % across;",
                f"const int ty = group / {spec.channels} / across % downwards;",
                f"const {dialect.long} plane = group / {spec.channels} / across / downwards;",
                f"const int x0 = item % {geometry.along}, y0 = item / {geometry.along};",
                f"const int nx = {first_along} + tx * {wide} - {left} + x0;",
                f"const int ny = {first_down} + ty * {high} - {above} + y0;",
                f"number q[{per_item}][4];",
            )
            emit_pointers(text, dialect, arrays, spec)
            for array in (*spec.sources, *spec.results):
                text(f"{array} += channel;")
            rows = geometry.items // geometry.along
            with text.unrolled("k", per_item):
                text(f"const int n = ny + k * {rows};")
                for gate in quads.before:
                    scale = f" * {literal(gate.scale, spec.number)}" if gate.scale != 1 else ""
                    text(f"q[k][{gate.component}] = {self._source_expr(gate)}{scale};")
            for number, matrix in enumerate(quads.factors):
                self._emit_factor(number, matrix, size, margin, rows)
            with text.block(f"if (x0 >= {left} && x0 < {left + wide})"), text.unrolled("k", per_item):
                text(f"const int y = y0 + k * {rows}, n = ny + k * {rows};")
                with text.block(f"if (y >= {above} && y < {above + high})"):
                    for gate in quads.after:
                        self._emit_store(gate)
        return Kernel(name, str(text) + "\n", geometry.items, arrays, integers)

    def _first_quad(self, axis: int) -> int:
        # It does not depend on the lengths.
        return self.quads.range(self.spec.back, axis, 2, (1, 1))[0]

    def _source_expr(self, gate: Gate) -> str:
        """Return the initial value of a component."""
        down, along = _plus("n", gate.down), _plus("nx", gate.along)
        if not self.spec.back:
            lead = self.quads.lead
            return (
                f"take_x(x, x_row, {_plus(f'2 * ({down})', (gate.other >> 1) + lead)},"
                f" {_plus(f'2 * ({along})', (gate.other & 1) + lead)}, rows, columns)"
            )
        array = self.spec.bands[gate.other]
        extents = []
        for name, axis, bit in (
            ("rows", self.spec.down, gate.other >> 1),
            ("columns", self.spec.along, gate.other & 1),
        ):
            assert axis is not None
            extents.append(name if axis.borders[bit].folded else f"{('low', 'high')[bit]}_{name}")
        value = f"take_{array}({array}, {array}_row, {down}, {along}, {', '.join(extents)})"
        return threshold_expr(self.spec, array, value)

    def _emit_store(self, gate: Gate) -> None:
        text, spec, dialect = self.text, self.spec, self.dialect
        row, column = _plus("n", -gate.down), _plus("nx", -gate.along)
        if spec.back:
            array, lead = "x", self.quads.lead
            row = _plus(f"2 * ({row})", (gate.other >> 1) + lead)
            column = _plus(f"2 * ({column})", (gate.other & 1) + lead)
            limits = ("rows", "columns")
        else:
            array = spec.bands[gate.other]
            limits = (
                ("low_rows", "high_rows")[gate.other >> 1],
                ("low_columns", "high_columns")[gate.other & 1],
            )
        value = f"q[k][{gate.component}]"
        if gate.scale != 1:
            value += f" * {literal(gate.scale, spec.number)}"
        with text.block():
            text(f"const int r = {row}, c = {column};")
            with text.block(f"if (r >= 0 && r < {limits[0]} && c >= 0 && c < {limits[1]})"):
                text(
                    f"{array}[({dialect.long})r * {array}_row + ({dialect.long})c * {spec.channels}]"
                    f" = {store_expr(spec, value)};"
                )

    def _emit_takes(self) -> None:
        """Append functions that read an element at any place, also beyond the ends."""
        spec = self.spec
        assert spec.down is not None
        assert spec.along is not None
        for number, array in enumerate(spec.sources):
            down = spec.down.borders[number >> 1 if spec.back else 0]
            along = spec.along.borders[number & 1 if spec.back else 0]
            emit_plane_take(self.text, self.dialect, spec, array, down, along)

    def _emit_factor(self, number: int, matrix: PolyphaseMatrix, size: int, margin: int, rows: int) -> None:
        text, geometry = self.text, self.geometry
        here = f"{margin} + (y0 + k * {rows}) * {geometry.along} + x0"
        for component, slot in self.schedule.writes[number]:
            with text.unrolled("k", geometry.quads_per_item):
                text(f"tile[{slot * size} + {here}] = q[k][{component}];")
        slots = self.schedule.reads[number]
        moved = any(not _still(key) for row in matrix.rows for entry in row for key, _ in entry.items())
        if moved:
            text(self.dialect.barrier)
        changed = [i for i, row in enumerate(matrix.rows) if not _unchanged(row, i)]
        with text.unrolled("k", geometry.quads_per_item):
            for i in changed:
                terms = []
                for j, entry in enumerate(matrix.rows[i]):
                    for key, value in entry.items():
                        if _still(key):
                            source = f"q[k][{j}]"
                        else:
                            along, down = key if isinstance(key, tuple) else (key, 0)
                            offset = slots[j] * size + down * geometry.along + along
                            source = f"tile[{_plus(here, offset)}]"
                        terms.append((float(value), source))
                text(f"const number new{i} = {_sum(terms, self.spec.number)};")
            for i in changed:
                text(f"q[k][{i}] = new{i};")


def _sum(terms: list[tuple[float, str]], number: str) -> str:
    """Return the sum of products of factors and sources; factors that cancel share one multiplication.

    Factors that differ by powers of two are one number times small integers. Products with small integers are
    exact, fused with a sum or not, so if the integers add up to 0, a constant signal gives exactly 0.
    """
    groups: dict[float, list[tuple[float, str]]] = {}
    for factor, source in terms:
        groups.setdefault(math.frexp(abs(factor))[0], []).append((factor, source))
    parts = []
    for mantissa, group in groups.items():
        unit = 1.0
        if mantissa != 0.5 and sum(factor for factor, _ in group) == 0:
            unit, group = min(abs(factor) for factor, _ in group), _alternating(group)
        products = [
            source if factor == unit else f"{literal(factor / unit, number)} * {source}"
            for factor, source in group
        ]
        parts.append(
            " + ".join(products) if unit == 1 else f"{literal(unit, number)} * ({' + '.join(products)})"
        )
    return " + ".join(parts) or "0"


def _alternating(terms: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Return terms in an order of alternating signs, which keeps partial sums small and thereby exact."""
    remaining, ordered, total = list(terms), [], 0.0
    while remaining:
        number = next((k for k, (factor, _) in enumerate(remaining) if factor * total <= 0), 0)
        ordered.append(remaining.pop(number))
        total += ordered[-1][0]
    return ordered


def _plus(text: str, offset: int) -> str:
    return text if not offset else f"{text} {'+' if offset > 0 else '-'} {abs(offset)}"
