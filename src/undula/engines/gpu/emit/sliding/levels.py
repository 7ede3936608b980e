"""All levels of a batch of planes in one launch.

A group of work items computes all levels of a plane, then those of the next plane. The approximations between
levels are in memory that the group shares, or in arrays of the group:

    for each plane:  for each level:  strips of rows │ barrier │ the ends of lines, if an adjoint needs them
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ..adjoints import FrameSpec, emit_frame_calls, emit_frame_functions
from ..dialect import Dialect
from ..kernel import ELEMENTS, Kernel, KernelSpec
from ..text import Text
from .geometry import LaneGeometry, Lanes
from .march import emit_functions, emit_row_strides, emit_strip

__all__ = ["LEVEL_EXTENTS", "SharedApproximations", "emit_levels"]

LEVEL_EXTENTS = (
    "rows", "columns", "low_rows", "high_rows", "low_columns", "high_columns",
    "strip_lanes", "strip", "strips", "ends_items", "rest_items",
)  # fmt: skip
FRAME = "frame"


class SharedApproximations(NamedTuple):
    """The approximations in memory that a group shares: those from level ``first`` on, and their size."""

    first: int
    bytes: int


@lru_cache(maxsize=256)
def emit_levels(
    spec: KernelSpec,
    geometry: LaneGeometry,
    frames: tuple[FrameSpec | None, ...],
    shared: SharedApproximations,
    groups_per_unit: int,
    dialect: Dialect,
) -> Kernel:
    """Return the kernel that computes all levels.

    Parameters
    ----------
    spec : KernelSpec
        The computation of each level.
    geometry : LaneGeometry
    frames : tuple of FrameSpec or None
        What each level computes anew at the ends of lines, finest level first.
    shared : SharedApproximations
    groups_per_unit : int
        How many groups run at once on a unit of the device.
    dialect : Dialect
    """
    text, lanes = Text(), Lanes(spec, geometry, dialect)
    items, count = geometry.lanes * geometry.warps, len(frames)
    arrays = (*spec.sources, *spec.results)
    names = [
        f"{name}_{level}"
        for level in range(count)
        for name in arrays
        if _approximation(spec, name, level, count) < shared.first
    ]
    if any(frames):
        names.append(FRAME)
    integers = [(f"{name}_{what}", what != "row") for name in names for what in ("start", "plane", "row")]
    integers += [(f"{name}_{level}", False) for level in range(count) for name in LEVEL_EXTENTS]
    inner = range(shared.first, count - 1)
    integers += [(f"shared_{number}_{what}", False) for number in inner for what in ("start", "row")]
    integers += [("planes", False), ("slots", False)]
    # An approximation is written and read by the same launch, so that no pointer is const or restrict.
    words = [f"{dialect.global_memory}{_element(spec, name)} *{name}" for name in names]
    words += [f"const {dialect.long if wide else 'int'} {name}" for name, wide in integers]
    exchange = emit_functions(text, lanes)
    distinct = list(dict.fromkeys(frame for frame in frames if frame is not None))
    for number, frame in enumerate(distinct):
        emit_frame_functions(text, dialect, frame, f"_{number}")
    kind = f"levels_{'back' if spec.back else 'forward'}"
    bound = f"{items}{dialect.groups_bound.format(groups=groups_per_unit)}"
    listed = ",\n        ".join(words)
    with text.block(f"{dialect.kernel.format(items=bound)} {kind}(\n        {listed})"):
        exchange.emit(text, lanes)
        if inner:
            text(dialect.group_memory)
        uniform = dialect.uniform.format(value=f"{dialect.item} / {geometry.lanes}")
        text(
            f"const int lane = {dialect.item} % {geometry.lanes}, warp = {uniform}, group = {dialect.group};"
        )
        if dialect.wait_for_previous:
            text(*dialect.wait_for_previous.split("\n"))
        with text.block("for (int plane = group; plane < planes; plane += slots)"):
            text("#pragma unroll 1")
            order = f"{count - 1}; level >= 0; --level" if spec.back else f"0; level < {count}; ++level"
            with text.block(f"for (int level = {order})"):
                _emit_selection(text, lanes, count, shared.first)
                useful = geometry.useful(spec)
                turns = f"turn * {useful} < strips * strip_lanes"
                with text.block(f"for (int turn = warp; {turns}; turn += {geometry.warps})"):
                    _emit_place(text, lanes)
                    emit_strip(text, lanes, exchange)
                text(dialect.memory_barrier)
                for number, frame in enumerate(distinct):
                    chosen = [f"level == {level}" for level in range(count) if frames[level] == frame]
                    with text.block(f"if ({' || '.join(chosen)})"):
                        arguments = _frame_arguments(spec, frame)
                        emit_frame_calls(text, dialect, frame, f"_{number}", items, arguments)
    return Kernel(kind, str(text) + "\n", items, tuple(names), tuple(integers), shared.bytes)


def _approximation(spec: KernelSpec, name: str, level: int, count: int) -> int:
    """Return the level from which the array is the approximation for the next one; -1 for other arrays."""
    if name == "x":
        return level - 1
    return level if name == spec.bands[0] and level < count - 1 else -1


def _emit_place(text: Text, lanes: Lanes) -> None:
    """Append the columns of a lane and the rows of its strip.

    The lanes of all strips form one sequence, from which a group of lanes takes those of its turn. So a group
    may end one strip and begin the next, and rows of any length leave few lanes idle.
    """
    spec, geometry = lanes.spec, lanes.geometry
    useful, (before, after) = geometry.useful(spec), geometry.overlap(spec)
    first_row = lanes.down.first if lanes.down else 0
    emit_row_strides(text, lanes)
    text(
        f"const int place = turn * {useful} + lane - {before};",
        "const int strip_number = place < 0 ? 0 : place / strip_lanes;",
        "const int across = place - strip_number * strip_lanes;",
        f"const int m = {lanes.first} + (across - {before}) * {lanes.half};",
        f"const int useful = lane >= {before} && lane < {before + useful} && strip_number < strips"
        f" && across >= {before} && across < strip_lanes - {after};",
        f"const int begin = {first_row} + strip_number * strip;",
    )


def _element(spec: KernelSpec, name: str) -> str:
    if name == FRAME:
        return spec.number
    return ELEMENTS[spec.source if name.rpartition("_")[0] in spec.sources else spec.result]


def _emit_selection(text: Text, lanes: Lanes, count: int, first_shared: int) -> None:
    """Append the arrays and extents of a level, under the names that they have in other kernels."""
    spec, dialect = lanes.spec, lanes.dialect

    def choice(values: Sequence[str]) -> str:
        terms = [f"level == {level} ? {value} : " for level, value in enumerate(values[:-1])]
        return "".join(terms) + values[-1]

    for name in (*spec.sources, *spec.results):
        element = ELEMENTS[spec.source if name in spec.sources else spec.result]
        starts, rows = [], []
        for level in range(count):
            # Samples of the first level and details are the caller's; approximations are the group's.
            array, number = f"{name}_{level}", _approximation(spec, name, level, count)
            if number >= first_shared:
                starts.append(f"({element} *)group_memory + shared_{number}_start")
                rows.append(f"shared_{number}_row")
                continue
            plane = "group" if number >= 0 else "plane"
            starts.append(f"{array} + ({array}_start + {plane} * {array}_plane)")
            rows.append(f"{array}_row")
        const = "const " if name in spec.sources else ""
        text(f"{dialect.global_memory}{const}{element} *{name} = {choice(starts)};")
        text(f"const int {name}_row = {choice(rows)};")
    for name in LEVEL_EXTENTS:
        text(f"const int {name} = {choice([f'{name}_{level}' for level in range(count)])};")


def _frame_arguments(spec: KernelSpec, frame: FrameSpec) -> dict[str, list[str]]:
    """Return the number of work items and the arguments of both phases."""
    samples = ["rows", "rows", "columns", "columns"]
    bands = ["low_rows", "high_rows", "low_columns", "high_columns"]
    extents = [*(bands + samples if spec.back else samples + bands), str(spec.channels)]
    buffer = f"{FRAME} + ({FRAME}_start + group * {FRAME}_plane)"
    return {
        phase: [
            f"{phase}_items",
            buffer,
            *(word for name in names for word in (name, f"{name}_row")),
            *extents,
        ]
        for phase, names in (("ends", spec.sources), ("rest", spec.results))
    }
