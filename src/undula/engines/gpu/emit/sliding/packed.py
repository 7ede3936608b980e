"""Loads and stores of packed lanes, of which most groups see an end of a row.

Branches over the ends would cost such a group both ways in every row. So it is known before the first row
whether all lanes of a group are inside. If one is not, all of them load and store single elements, each if it
exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..kernel import ELEMENTS, store_expr
from ..text import Text
from .geometry import Lanes, Piece, within

__all__ = ["emit_inside", "emit_packed_loads", "emit_packed_stores"]


def emit_inside(text: Text, lanes: Lanes) -> None:
    """Append whether no lane of a group has a column beyond an end of the row."""
    conditions = []
    for reading in (True, False):
        for piece in lanes.pieces(reading):
            is_samples = reading != lanes.spec.back
            count = "columns" if is_samples else ("low_columns", "high_columns")[piece.sequence]
            start, places = lanes.start_expr(piece.shift, is_samples), len(piece.slots) // lanes.spec.channels
            conditions.append(f"{start} >= 0 && {start} + {places} <= {count}")
    everywhere = " && ".join(dict.fromkeys(conditions))
    text(f"const int inside = {lanes.dialect.all_lanes.format(condition=everywhere)};")


def emit_packed_loads(text: Text, lanes: Lanes, lines: Sequence[str], certain: bool) -> None:
    """Append the body of a function that loads row ``q``: zeros if ``q`` is negative, unless it cannot be."""
    spec, along, channels = lanes.spec, lanes.along, lanes.spec.channels
    assert along is not None
    pieces = list(zip(lanes.pieces(True), lines, strict=True))
    with text.unrolled("j", lanes.size):
        text("v[j] = 0;")
    row = [] if certain else ["q >= 0"]
    with _inside(text, row):
        for (_, slots, shift), line in pieces:
            width = lanes.access_width(len(slots), shift, not spec.back, lanes.geometry.wide_source)
            start = lanes.start_expr(shift, not spec.back)
            for begin in range(0, len(slots), width):
                place = f"({start}) * {channels} + {begin}"
                with text.block():
                    text(f"const {_vector(spec.source, width)} w = {_element(lanes, line, place, width)};")
                    parts = [f"w.{'xyzw'[k]}" for k in range(width)] if width > 1 else ["w"]
                    text(*(f"v[{slots[begin + k]}] = {part};" for k, part in enumerate(parts)))
    with text.block("else"):
        for (sequence, slots, _), line in pieces:
            column_certain = along.borders[sequence if spec.back else 0].certain
            for slot in slots:
                column, channel = divmod(slot, channels)
                exists = " && ".join(row if column_certain else [*row, f"at[{column}] >= 0"])
                value = _element(lanes, line, f"at[{column}] * {channels} + {channel}", 1)
                text(f"{f'if ({exists}) ' if exists else ''}v[{slot}] = {value};")


def emit_packed_stores(
    text: Text, lanes: Lanes, array: str, piece: Piece, values: Sequence[str], count: str
) -> None:
    """Append the stores of one piece of row ``r``; ``count`` is the number of columns that exist."""
    spec, channels = lanes.spec, lanes.spec.channels
    elements = [store_expr(spec, value) for value in values]
    width = lanes.access_width(len(values), piece.shift, spec.back, lanes.geometry.wide_result)
    start = lanes.start_expr(piece.shift, spec.back)

    def target(k: int, width: int) -> str:
        return _element(lanes, array, f"({start}) * {channels} + {k}", width, "r")

    with _inside(text, []):
        for begin in range(0, len(values), width):
            parts = elements[begin : begin + width]
            if width == 1:
                text(f"{target(begin, 1)} = {parts[0]};")
                continue
            with text.block():
                text(f"{_vector(spec.result, width)} w;")
                text(*(f"w.{'xyzw'[k]} = {part};" for k, part in enumerate(parts)))
                text(f"{target(begin, width)} = w;")
    with text.block("else"):
        for k, element in enumerate(elements):
            text(f"if ({within(f'{start} + {k // channels}', count)}) {target(k, 1)} = {element};")


@contextmanager
def _inside(text: Text, conditions: Sequence[str]) -> Iterator[None]:
    with text.block("if (inside)"), text.block(f"if ({' && '.join(conditions)})" if conditions else ""):
        yield


def _vector(dtype: str, width: int) -> str:
    return f"{ELEMENTS[dtype]}{width if width > 1 else ''}"


def _element(lanes: Lanes, array: str, place: str, width: int, row: str = "") -> str:
    """Return elements of a row, of row ``q`` that is read or of another one that is written.

    The address within the row comes first: it stays the same, and only the distance of the row is added.
    """
    dialect, reading = lanes.dialect, not row
    const = "const " if reading else ""
    kind = _vector(lanes.spec.source if reading else lanes.spec.result, width)
    memory = dialect.global_memory
    distance = f"(unsigned {dialect.long})(unsigned int){row or 'q'} * {array}_bytes"
    return f"*({memory}{const}{kind} *)(({memory}{const}char *)({array} + ({place})) + {distance})"
