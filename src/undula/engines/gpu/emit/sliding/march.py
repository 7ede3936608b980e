"""The sliding kernel: its place in the array, its loop over rows, and the operator across rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from .....lowering.axis import AxisOp
from ..dialect import Dialect
from ..kernel import (
    ELEMENTS,
    ITEMSIZE_BYTES,
    Kernel,
    KernelSpec,
    emit_pointers,
    emit_prelude,
    load_expr,
    mix_exprs,
    parameter_list,
    step_expr,
    threshold_expr,
)
from ..text import Text, literal
from .along import Exchange, emit_along
from .geometry import LaneGeometry, Lanes
from .load import emit_borders, emit_loads, place_arguments
from .packed import emit_inside
from .store import emit_each_place, emit_stores

__all__ = ["EXTENTS", "emit", "emit_functions", "emit_ranges", "emit_row_strides", "emit_strip"]

EXTENTS = (
    "rows", "columns", "low_rows", "high_rows", "low_columns", "high_columns", "row_pairs", "planes",
    "total", "ends", "ends_left", "end_groups", "end_strip", "end_strips", "strip", "strips", "blocks",
)  # fmt: skip


@lru_cache(maxsize=512)
def emit(spec: KernelSpec, geometry: LaneGeometry, dialect: Dialect) -> Kernel:
    """Return the kernel of a specification for one geometry."""
    text, lanes = Text(), Lanes(spec, geometry, dialect)
    items = geometry.lanes * geometry.warps
    parameters, arrays, integers = parameter_list(spec, dialect, EXTENTS)
    name = f"sliding_{'back' if spec.back else 'forward'}"
    exchange = emit_functions(text, lanes)
    with text.block(f"{dialect.kernel.format(items=items)} {name}(\n        {parameters})"):
        exchange.emit(text, lanes)
        _emit_place(text, lanes)
        emit_pointers(text, dialect, arrays, spec)
        emit_ranges(text, lanes)
        emit_strip(text, lanes, exchange)
    return Kernel(name, str(text) + "\n", items, arrays, integers)


def emit_functions(text: Text, lanes: Lanes) -> Exchange:
    """Append the functions of a kernel; return the exchange between lanes that they need."""
    emit_prelude(text, lanes.dialect, lanes.spec, lanes.has_long_borders)
    emit_borders(text, lanes)
    if lanes.geometry.apart:
        emit_loads(text, replace(lanes, inner=True))
    emit_loads(text, lanes)
    exchange = emit_along(text, lanes, lanes.along) if lanes.along else Exchange()
    text("")
    return exchange


def emit_strip(text: Text, lanes: Lanes, exchange: Exchange) -> None:
    """Append the loops over the rows of a strip, one of which is for groups of lanes that see no end."""
    if not lanes.geometry.apart:
        _emit_march(text, lanes, exchange)
        return
    with text.block("if (at_end)"):
        _emit_march(text, lanes, exchange)
    with text.block("else"):
        _emit_march(text, replace(lanes, inner=True), exchange)


def _emit_place(text: Text, lanes: Lanes) -> None:
    """Append the columns, the strip and the plane of a group of lanes.

    Groups at the ends of rows have more work per row, so they are launched first and have shorter strips. The
    loop of all others needs no bounds checks.
    """
    geometry, dialect = lanes.geometry, lanes.dialect
    uniform = dialect.uniform.format(value=f"{dialect.item} / {geometry.lanes}")
    text(f"const int lane = {dialect.item} % {geometry.lanes}, warp = {uniform}, group = {dialect.group};")
    at_ends = (
        f"const int turn = group * {geometry.warps} + warp, which = turn % ends;",
        "across = which < ends_left ? which : total - ends + which;",
        "strip_number = turn / ends % end_strips;",
        "plane = turn / ends / end_strips;",
        "own_strip = end_strip;",
        "if (plane >= planes) return;",
    )
    text(f"int across, strip_number, own_strip; {dialect.long} plane;")
    if not geometry.apart:
        text(*at_ends[:-1])  # With one group of lanes in each work group, none is superfluous.
        return
    text("const int at_end = group < end_groups;")
    with text.block("if (at_end)"):
        text(*at_ends)
    with text.block("else"):
        text(
            f"across = ends_left + (group - end_groups) % blocks * {geometry.warps} + warp;",
            "strip_number = (group - end_groups) / blocks % strips;",
            "plane = (group - end_groups) / blocks / strips;",
            "own_strip = strip;",
            "if (across >= total - ends + ends_left) return;",
        )


def emit_row_strides(text: Text, lanes: Lanes) -> None:
    """Append the distance of neighbouring rows in bytes."""
    spec = lanes.spec
    for array in (*spec.sources, *spec.results):
        size = ITEMSIZE_BYTES[spec.source if array in spec.sources else spec.result]
        text(f"const unsigned int {array}_bytes = (unsigned int){array}_row * {size};")


def emit_ranges(text: Text, lanes: Lanes) -> None:
    """Append the strides in bytes, the columns of the lane, and the rows of its strip."""
    spec, geometry = lanes.spec, lanes.geometry
    emit_row_strides(text, lanes)
    step, useful = lanes.half if lanes.along else geometry.pixels, geometry.useful(spec)
    before = geometry.overlap(spec)[0]
    first = lanes.down.first if lanes.down else 0
    text(
        f"const int m = {lanes.first} + (across * {useful} + lane - {before}) * {step};",
        f"const int useful = lane >= {before} && lane < {before + useful};",
        f"const int begin = {first} + strip_number * own_strip;",
        f"const int end = min(begin + own_strip, {first} + row_pairs);",
    )


# --- the loop over rows ---------------------------------------------------------------------------


@dataclass
class _Version:
    """A component after one of the steps across rows, computed ``delay`` rows after its inputs arrived."""

    name: str
    delay: int
    oldest: int = 0  # the age in rows up to which its values are needed
    rolls: bool = True  # whether all values age by one with each new row

    def at(self, age: int) -> str:
        self.oldest = max(self.oldest, age)
        return f"{self.name}_{age}[j]"


def _emit_march(text: Text, lanes: Lanes, exchange: Exchange) -> None:
    """Append the loop over pairs of rows."""
    op, geometry, size, dialect = lanes.down, lanes.geometry, lanes.size, lanes.dialect
    before, after = op.reach if op else (0, 0)
    inputs = [f"in{c}_0" for c in range(lanes.row_count)]
    finished = ["done0", "done1"] if op else inputs
    # Rounded steps are undone in reverse order: those within rows come first.
    along_first = lanes.spec.number == "int" and lanes.spec.back and op is not None
    _emit_columns(text, lanes)
    if geometry.packed:
        emit_inside(text, lanes)
    body, versions = _operator_across_rows(lanes, op) if op else ([], [])
    for version in versions:
        for age in range(1, version.oldest + 1):
            text(f"number {version.name}_{age}[{size}];")
    for version in versions:
        if version.oldest:
            with text.unrolled("j", size):
                text(" ".join(f"{version.name}_{age}[j] = 0;" for age in range(1, version.oldest + 1)))
    for age in range(geometry.prefetch):
        _emit_next_rows(text, lanes, age)
    for age in range(geometry.prefetch):
        _emit_fetch(text, lanes, f"begin - {before} + {age}", age)
    if geometry.unroll > 1 or geometry.packed:  # A compiler may unroll, too, and then needs more registers.
        text(f"#pragma unroll {geometry.unroll}")
    loop = f"for (int i = begin - {before}; i < end + {after}; ++i)"
    if geometry.packed:  # Lanes of two strips have different rows, but the same number of them.
        loop = f"for (int t = 0, i = begin - {before}; t < strip + {before + after}; ++t, ++i)"
    with text.block(loop):
        if lanes.inner and geometry.lockstep and geometry.warps > 1:
            # Neighbouring groups of lanes access parts of the same cache lines.
            text(f"if (i % {geometry.lockstep} == 0) {dialect.barrier}")
        text("number " + ", ".join(f"{name}[{size}]" for name in inputs) + ";")
        _emit_inputs(text, lanes, after)
        if along_first:
            _emit_along_calls(text, lanes, exchange, inputs)
        for line in body:
            if line.startswith("number"):
                text(line)
            else:
                with text.unrolled("j", size):
                    text(line)
        warm = f"i >= begin + {after}" if op and before + after else ""
        if warm and geometry.packed:
            warm = f"t >= {before + after}"
        # If lanes meet at barriers, all of them have to reach these in every iteration.
        with text.block(f"if ({warm})" if warm and dialect.shuffle else ""):
            text(f"const int n = i - {after};")
            if not along_first:
                _emit_along_calls(text, lanes, exchange, finished)
            emit_stores(text, lanes, finished, "" if dialect.shuffle else warm)
        shifts = [
            f"{version.name}_{age}[j] = {version.name}_{age - 1}[j];"
            for version in versions
            if version.rolls
            for age in range(version.oldest, 0, -1)
        ]
        if shifts:
            with text.unrolled("j", size):
                text(*shifts)


def _emit_along_calls(text: Text, lanes: Lanes, exchange: Exchange, names: list[str]) -> None:
    """Append the calls that run the operator within rows."""
    for k, name in enumerate(names):
        if lanes.along:
            cells = k * exchange.slots * lanes.geometry.lanes
            extra = "" if lanes.dialect.shuffle else f", exchange + {cells}"
            text(f"run_along({name}, lane{extra});")
    if exchange.rounds == 1 and not lanes.down:
        # The next row would overwrite the only exchange while other lanes still read it.
        text(lanes.dialect.barrier)


# --- reading --------------------------------------------------------------------------------------


def _emit_columns(text: Text, lanes: Lanes) -> None:
    """Append the places of a lane's columns in memory, which are the same for all rows."""
    if lanes.inner:
        text("const int *at = 0;")
        _emit_column_pointers(text, lanes)
        return
    channels = lanes.spec.channels
    text(f"int at[{lanes.geometry.pixels}];")
    for sequence, slots, shift in lanes.pieces(True):
        count, extent = lanes.extents("columns", sequence)
        for index, slot in enumerate(slots[::channels]):
            with text.block():
                text(f"const int p = {lanes.start_expr(shift, not lanes.spec.back)} + {index};")
                beyond = (
                    f"{lanes.border_name('along', sequence)}_place(p, {extent}, 0)" if lanes.along else "-1"
                )
                text(f"at[{slot // channels}] = p >= 0 && p < {count} ? p : {beyond};")


def _emit_column_pointers(text: Text, lanes: Lanes) -> None:
    """Append pointers to a lane's first column in each array."""
    spec = lanes.spec
    for reading in (True, False):
        is_bands = reading == spec.back
        element = ELEMENTS[spec.source if reading else spec.result]
        const = "const " if reading else ""
        for sequence, _, shift in lanes.pieces(reading):
            start = lanes.start_expr(shift, not (is_bands and lanes.along is not None))
            for row in range(lanes.row_count if is_bands else 1):
                array = lanes.band(row, sequence) if is_bands else "x"
                text(
                    f"{lanes.dialect.global_memory}{const}{element} *{array}_own ="
                    f" {array} + ({start}) * {spec.channels};"
                )


def _emit_next_rows(text: Text, lanes: Lanes, age: int) -> None:
    """Append the registers of rows that are loaded ahead."""
    names = ", ".join(f"next{age}_{c}[{lanes.size}]" for c in range(lanes.row_count))
    text(f"{lanes.register_type} {names};")


def _emit_inputs(text: Text, lanes: Lanes, after: int) -> None:
    """Append the conversion of the rows that have arrived, and the loads of the next ones."""
    spec, depth, count = lanes.spec, lanes.geometry.prefetch, lanes.row_count
    if not depth:
        _emit_next_rows(text, lanes, 0)
        _emit_fetch(text, lanes, "i", 0)
    with text.unrolled("j", lanes.size):
        for c in range(count):
            value = f"next0_{c}[j]"
            text(f"in{c}_0[j] = {load_expr(spec, value) if lanes.raw else value};")
            for age in range(1, depth):
                text(f"next{age - 1}_{c}[j] = next{age}_{c}[j];")
    if spec.mixing is not None:
        for c in range(count):
            emit_each_place(text, lanes, f"in{c}_0", mix_exprs)
    if spec.rule is not None:
        _emit_thresholds(text, lanes)
    if depth:
        last = f"begin + strip + {after - 1}" if lanes.geometry.packed else f"end + {after - 1}"
        text(f"const int ahead = min(i + {depth}, {last});")
        _emit_fetch(text, lanes, "ahead", depth - 1)


def _emit_thresholds(text: Text, lanes: Lanes) -> None:
    """Append the threshold rule for the details that have arrived."""
    for c in range(lanes.row_count):
        row = lanes.down.entries[c].sequence if lanes.down else 0
        for sequence, slots, _ in lanes.pieces(True):
            band = lanes.band(row, sequence)
            if band == lanes.spec.bands[0]:
                continue
            for slot in slots:
                value = f"in{c}_0[{slot}]"
                text(f"{value} = {threshold_expr(lanes.spec, band, value)};")


def _emit_fetch(text: Text, lanes: Lanes, i: str, age: int) -> None:
    """Append the loads of the rows of pair ``i``."""
    spec, op, suffix = lanes.spec, lanes.down, lanes.suffix
    pointer = "_own" if lanes.inner else ""
    for component in range(lanes.row_count):
        target = f"next{age}_{component}"
        if op is None:
            arrays = [lanes.band(0, piece.sequence) for piece in lanes.pieces(True)] if spec.back else ["x"]
            rows = ", ".join(lanes.row_expr(array, i, True) for array in arrays)
            text(f"load_row{suffix}({target}, {rows}, {place_arguments(lanes)});")
        elif not spec.back:
            place = f"2 * ({i}) + {component}"
            text(f"load{suffix}({target}, x{pointer}, x_bytes, {place}, {place_arguments(lanes)});")
        else:
            entry = op.entries[component]
            arrays = [lanes.band(entry.sequence, piece.sequence) for piece in lanes.pieces(True)]
            rows = ", ".join(f"{array}{pointer}, {array}_bytes" for array in arrays)
            band = ("_low", "_high")[entry.sequence]
            text(f"load{band}{suffix}({target}, {rows}, ({i}) + {entry.shift}, {place_arguments(lanes)});")


# --- the operator across rows ---------------------------------------------------------------------


def _operator_across_rows(lanes: Lanes, op: AxisOp) -> tuple[list[str], list[_Version]]:
    """Return the statements for a pair of rows that has arrived, and the versions that they remember."""
    if op.filters:
        return _filters_across_rows(lanes, op)
    size = lanes.size
    current = [_Version("in0", 0), _Version("in1", 0)]
    body: list[str] = []
    versions = list(current)
    for k, step in enumerate(op.steps):
        target, other = current[step.target], current[1 - step.target]
        highest = max(tap.offset for tap in step.taps)
        version = _Version(f"step{k}", max(target.delay, other.delay + highest))
        old = target.at(version.delay - target.delay)
        values = [other.at(version.delay - tap.offset - other.delay) for tap in step.taps]
        body.append(f"number {version.name}_0[{size}];")
        body.append(f"{version.name}_0[j] = {step_expr(lanes.spec, lanes.dialect, old, step, values)};")
        versions.append(version)
        current[step.target] = version
    after = op.reach[1]
    body.append(f"number done0[{size}], done1[{size}];")
    body.append(" ".join(f"done{c}[j] = {current[c].at(after - current[c].delay)};" for c in (0, 1)))
    return body, versions


def _filters_across_rows(lanes: Lanes, op: AxisOp) -> tuple[list[str], list[_Version]]:
    """Return filters as running sums: each pair of rows is added to all results that depend on it."""
    size, number = lanes.size, lanes.spec.number
    before, after = op.reach
    body = [f"number done0[{size}], done1[{size}];"]
    versions = []
    for result, taps in enumerate(op.filters):
        sums = _Version(f"sum{result}", 0, before + after, rolls=False)
        # sum_m is the partial sum of the result that is m pairs ahead of the one that is finished now.
        for m in range(before + after + 1):
            terms = [
                f"{literal(t.factor, number)} * in{t.component}_0[j]" for t in taps if t.offset == after - m
            ]
            if m < before + after:
                terms.insert(0, f"{sums.name}_{m + 1}[j]")
            target = f"done{result}[j]" if m == 0 else f"{sums.name}_{m}[j]"
            body.append(f"{target} = {' + '.join(terms) or '0'};")
        versions.append(sums)
    return body, versions
