"""The results of a pair of rows, written to memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..kernel import ELEMENTS, KernelSpec, store_expr, unmix_exprs
from ..text import Text, literal
from .geometry import Lanes, Piece, within
from .packed import emit_packed_stores

__all__ = ["emit_each_place", "emit_stores"]


def emit_stores(text: Text, lanes: Lanes, names: Sequence[str], condition: str) -> None:
    """Append the stores of finished rows, for lanes that have results and if ``condition`` holds."""
    spec, op = lanes.spec, lanes.down
    with text.block(f"if (useful && {condition})" if condition else "if (useful)"):
        if spec.unmixing is not None:
            _emit_scaling(text, lanes, names)
            for name in names:
                emit_each_place(text, lanes, name, unmix_exprs)
        for sequence in range(lanes.row_count):
            component, shift, scale = op.exits[sequence] if op else (0, 0, 1.0)
            row, limit = "n", "rows"
            if op and not spec.back:
                row, limit = f"n - {shift}" if shift else "n", ("low_rows", "high_rows")[sequence]
            elif op:
                row = f"2 * n + {sequence}"
            with text.block():
                text(f"const int r = {row};")
                with text.block(f"if ({within('r', limit)})" if op else ""):
                    for piece in lanes.pieces(False):
                        _emit_piece(text, lanes, sequence, names[component], scale, piece)


def emit_each_place(
    text: Text, lanes: Lanes, name: str, change: Callable[[KernelSpec, Sequence[str]], list[str]]
) -> None:
    """Append a loop that changes the channels at every place of a row in registers."""
    channels = lanes.spec.channels
    values = [f"channel{k}" for k in range(channels)]
    with text.unrolled("p", lanes.geometry.pixels):
        targets = [f"{name}[p * {channels} + {k}]" for k in range(channels)]
        text("const number " + ", ".join(f"{v} = {t}" for v, t in zip(values, targets, strict=True)) + ";")
        text(*(f"{t} = {new};" for t, new in zip(targets, change(lanes.spec, values), strict=True)))


def _emit_scaling(text: Text, lanes: Lanes, names: Sequence[str]) -> None:
    """Append the scaling of floating-point rows, which comes before the colour transform."""
    if lanes.spec.number == "int" or lanes.down is None or lanes.along is None:
        return
    channels = lanes.spec.channels
    for down in lanes.down.exits:
        for phase, along in enumerate(lanes.along.exits):
            scale = literal(down.scale * along.scale, lanes.spec.number)
            with text.unrolled("p", lanes.half), text.unrolled("c", channels):
                place = f"{names[down.component]}[(2 * p + {phase}) * {channels} + c]"
                text(f"{place} = {place} * {scale};")


def _scale(lanes: Lanes, row_scale: float, sequence: int, slot: int) -> float:
    """Return the factor of a value before it is stored."""
    if lanes.spec.unmixing is not None:  # It was scaled before the colour transform.
        return 1.0
    if lanes.along is None:
        return row_scale
    phase = slot // lanes.spec.channels % 2
    return row_scale * lanes.along.exits[phase if lanes.spec.back else sequence].scale


def _emit_piece(text: Text, lanes: Lanes, row: int, name: str, row_scale: float, piece: Piece) -> None:
    """Append the stores of one piece: wide ones where it is inside, single ones at the ends of the row."""
    spec, channels, (sequence, slots, shift) = lanes.spec, lanes.spec.channels, piece
    array = "x" if spec.back else lanes.band(row, sequence)
    count = "columns"
    if lanes.along and not spec.back:
        count = ("low_columns", "high_columns")[sequence]
    values = []
    for slot in slots:
        scale = _scale(lanes, row_scale, sequence, slot)
        values.append(f"{name}[{slot}]" + (f" * {literal(scale, spec.number)}" if scale != 1 else ""))
    places = len(slots) // channels
    if lanes.geometry.packed:
        emit_packed_stores(text, lanes, array, piece, values, count)
        return
    with text.block():
        line = lanes.row_expr(array, "r", False)
        if not lanes.inner:
            text(f"const int c = {lanes.start_expr(shift, spec.back)};")
            line += f" + c * {channels}"
        text(f"{lanes.dialect.global_memory}{ELEMENTS[spec.result]} *line = {line};")
        with text.block("" if lanes.inner else f"if (c >= 0 && c + {places} <= {count})"):
            _emit_wide_stores(text, lanes, values, shift)
        if lanes.inner:
            return
        with text.block(f"else if (c + {places} > 0 && c < {count})"):
            for index in range(places):
                with text.block(f"if (c + {index} >= 0 && c + {index} < {count})"):
                    for k in range(index * channels, (index + 1) * channels):
                        text(f"line[{k}] = {store_expr(spec, values[k])};")


def _emit_wide_stores(text: Text, lanes: Lanes, values: Sequence[str], shift: int) -> None:
    spec, element = lanes.spec, ELEMENTS[lanes.spec.result]
    width = lanes.access_width(len(values), shift, spec.back, lanes.geometry.wide_result)
    for begin in range(0, len(values), width):
        elements = [store_expr(spec, value) for value in values[begin : begin + width]]
        if width == 1:
            text(f"line[{begin}] = {elements[0]};")
            continue
        with text.block():
            text(f"{element}{width} w;")
            text(*(f"w.{'xyzw'[k]} = {value};" for k, value in enumerate(elements)))
            text(f"*({lanes.dialect.global_memory}{element}{width} *)(line + {begin}) = w;")
