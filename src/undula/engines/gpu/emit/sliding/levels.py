"""All levels of a batch of planes in one launch.

A group of work items computes all levels of a plane, then those of the next plane. The approximations between
levels are arrays of the group, which stay in the cache of the device:

    for each plane:  for each level:  strips of rows │ barrier │ the ends of lines, if an adjoint needs them
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ..adjoints import FrameSpec, emit_frame_calls, emit_frame_functions
from ..dialect import Dialect
from ..kernel import ELEMENTS, Kernel, KernelSpec
from ..text import Text
from .geometry import LaneGeometry, Lanes
from .march import emit_functions, emit_ranges, emit_strip

__all__ = ["LEVEL_EXTENTS", "emit_levels"]

LEVEL_EXTENTS = (
    "rows", "columns", "low_rows", "high_rows", "low_columns", "high_columns", "row_pairs",
    "total", "ends_left", "ends_right", "strip", "strips", "ends_items", "rest_items",
)  # fmt: skip
FRAME = "frame"


@lru_cache(maxsize=256)
def emit_levels(
    spec: KernelSpec,
    geometry: LaneGeometry,
    frames: tuple[FrameSpec | None, ...],
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
    groups_per_unit : int
        How many groups run at once on a unit of the device.
    dialect : Dialect
    """
    text, lanes = Text(), Lanes(spec, geometry, dialect)
    items, count = geometry.lanes * geometry.warps, len(frames)
    names = [f"{name}_{level}" for level in range(count) for name in (*spec.sources, *spec.results)]
    if any(frames):
        names.append(FRAME)
    integers = [(f"{name}_{what}", what != "row") for name in names for what in ("start", "plane", "row")]
    integers += [(f"{name}_{level}", False) for level in range(count) for name in LEVEL_EXTENTS]
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
                _emit_selection(text, lanes, count)
                with text.block(f"for (int turn = warp; turn < total * strips; turn += {geometry.warps})"):
                    text(
                        "const int across = turn % total, strip_number = turn / total, own_strip = strip;",
                        "const int at_end = across < ends_left || across >= total - ends_right;",
                    )
                    emit_ranges(text, lanes)
                    emit_strip(text, lanes, exchange)
                text(dialect.memory_barrier)
                for number, frame in enumerate(distinct):
                    chosen = [f"level == {level}" for level in range(count) if frames[level] == frame]
                    with text.block(f"if ({' || '.join(chosen)})"):
                        arguments = _frame_arguments(spec, frame)
                        emit_frame_calls(text, dialect, frame, f"_{number}", items, arguments)
    return Kernel(kind, str(text) + "\n", items, tuple(names), tuple(integers))


def _element(spec: KernelSpec, name: str) -> str:
    if name == FRAME:
        return spec.number
    return ELEMENTS[spec.source if name.rpartition("_")[0] in spec.sources else spec.result]


def _emit_selection(text: Text, lanes: Lanes, count: int) -> None:
    """Append the arrays and extents of a level, under the names that they have in other kernels."""
    spec, dialect = lanes.spec, lanes.dialect

    def choice(values: Sequence[str]) -> str:
        terms = [f"level == {level} ? {value} : " for level, value in enumerate(values[:-1])]
        return "".join(terms) + values[-1]

    for name in (*spec.sources, *spec.results):
        starts = []
        for level in range(count):
            # Samples of the first level and details are the caller's; approximations are the group's.
            shared = level > 0 if name == "x" else name == spec.bands[0] and level < count - 1
            array = f"{name}_{level}"
            starts.append(f"{array} + ({array}_start + {'group' if shared else 'plane'} * {array}_plane)")
        element = ELEMENTS[spec.source if name in spec.sources else spec.result]
        const = "const " if name in spec.sources else ""
        text(f"{dialect.global_memory}{const}{element} *{name} = {choice(starts)};")
        text(f"const int {name}_row = {choice([f'{name}_{level}_row' for level in range(count)])};")
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
