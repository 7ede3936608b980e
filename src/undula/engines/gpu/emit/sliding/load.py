"""Functions that read a row of a lane, also beyond the ends of the array."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .....lowering.borders import Border
from ..borders import emit_border
from ..kernel import ELEMENTS, emit_beyond, load_expr
from ..text import Text
from .geometry import Lanes, Piece, within
from .packed import emit_packed_loads

__all__ = ["emit_borders", "emit_loads", "place_arguments"]

EXTENTS = ("rows", "columns", "low_rows", "high_rows", "low_columns", "high_columns")


def place_arguments(lanes: Lanes) -> str:
    """Return the arguments of a function that loads a row."""
    return ", ".join(("m, at", *EXTENTS, *(["inside"] if lanes.lean else [])))


def _place_parameters(lanes: Lanes) -> str:
    extents = (f"int {extent}" for extent in EXTENTS)
    return ", ".join(("int m, const int *at", *extents, *(["int inside"] if lanes.lean else [])))


def emit_borders(text: Text, lanes: Lanes) -> None:
    """Append the functions of all borders."""
    for name, axis in (("down", lanes.spec.down), ("along", lanes.spec.along)):
        if axis is None:
            continue
        for band, border in enumerate(axis.borders):
            text("")
            emit_border(text, lanes.dialect, border, lanes.border_name(name, band))
            if name == "along" and border.is_long:
                _emit_value_beyond(text, lanes, border, lanes.border_name(name, band))


def _emit_value_beyond(text: Text, lanes: Lanes, border: Border, name: str) -> None:
    """Append a function that returns a value beyond the ends of a row.

    Rows are loaded in dozens of places, each with all columns of a lane. Inlined everywhere, this function
    took most of the time to compile a kernel, and most of its machine code.
    """
    spec, dialect = lanes.spec, lanes.dialect
    kind = f"{dialect.global_memory}const {ELEMENTS[spec.source]} *"
    with text.block(f"{dialect.outlined_function} number {name}_beyond({kind}line, int p, int extent)"):
        value = load_expr(spec, f"line[%s * {spec.channels}]")
        emit_beyond(text, border, name, "sum", "p", "extent", value, outlined=True)
        text("return sum;")


def emit_loads(text: Text, lanes: Lanes) -> None:
    """Append a function that reads a row, and functions that read a row which may be beyond the ends."""
    dialect, spec = lanes.dialect, lanes.spec
    kind = f"{dialect.global_memory}const {ELEMENTS[spec.source]} *"
    pieces = list(lanes.pieces(True))
    split = spec.back and lanes.along is not None
    lines = [("low", "high")[piece.sequence] if split else "line" for piece in pieces]
    text("")
    pointers = ", ".join(f"{kind}{line}" for line in lines)
    head = f"void load_row{lanes.suffix}({lanes.register_type} *v, {pointers}, {_place_parameters(lanes)})"
    if not lanes.lean:
        with text.block(f"{dialect.function} {head}"):
            for piece, line in zip(pieces, lines, strict=True):
                _emit_piece(text, lanes, piece, line)
        text("")
    if spec.down is None:
        return
    rows = ", ".join(f"{kind}{line}, unsigned int {line}_bytes" for line in lines)
    row_addresses = ", ".join(lanes.plane_row_expr(line, "q") for line in lines)
    load_row = f"load_row{lanes.suffix}(%s, {row_addresses}, {place_arguments(lanes)});"
    for band in (0, 1) if spec.back else (0,):
        count, extent = lanes.extents("rows", band)
        border, name = spec.down.borders[band], lanes.border_name("down", band)
        suffix = (("_low", "_high")[band] if spec.back else "") + lanes.suffix
        head = f"void load{suffix}({lanes.register_type} *v, {rows}, int p, {_place_parameters(lanes)})"
        with text.block(f"{dialect.function} {head}"):
            if border.weighted:
                with text.block(f"if (p < 0 || p >= {count})"):
                    _emit_weighted_row(text, lanes, border, name, extent, load_row)
            text(f"const int q = {within('p', count)} ? p : {name}_place(p, {extent}, 0);")
            if lanes.lean:
                emit_packed_loads(text, lanes, lines, border.certain)
            elif border.certain:
                text(load_row % "v")
            else:
                with text.block("if (q >= 0)"):
                    text(load_row % "v")
                with text.block("else"), text.unrolled("j", lanes.size):
                    text("v[j] = 0;")
        text("")


def _emit_weighted_row(
    text: Text, lanes: Lanes, border: Border, name: str, extent: str, load_row: str
) -> None:
    """Append the weighted sum of rows that stands for a row beyond the ends."""
    text(f"const int q = {name}_place(p, {extent}, 0);")
    text(load_row % "v")
    with text.unrolled("j", lanes.size):
        text(f"v[j] *= {name}_weight(p, {extent}, 0);")
    if border.differences:
        if border.is_long:
            text("#pragma unroll 1")
        with text.block(f"for (int t = 1; t <= {border.differences}; ++t)"):
            text(f"number plus[{lanes.size}], minus[{lanes.size}];")
            text(f"int q = {name}_place(p, {extent}, 2 * t - 1);", load_row % "plus")
            text(f"q = {name}_place(p, {extent}, 2 * t);", load_row % "minus")
            with text.unrolled("j", lanes.size):
                text(f"v[j] += {name}_weight(p, {extent}, t) * (plus[j] - minus[j]);")
    text("return;")


def _emit_piece(text: Text, lanes: Lanes, piece: Piece, line: str) -> None:
    """Append the loads of one piece: wide ones where it is inside, single ones at the ends of the row."""
    spec, (sequence, slots, shift) = lanes.spec, piece
    count, extent = lanes.extents("columns", sequence)
    places = len(slots) // spec.channels
    width = lanes.access_width(len(slots), shift, not spec.back, lanes.geometry.wide_source)
    with text.block():
        text(f"const int c = {0 if lanes.inner else lanes.start_expr(shift, not spec.back)};")
        if lanes.inner:
            _emit_wide_loads(text, lanes, line, slots, width)
            return
        with text.block(f"if (c >= 0 && c + {places} <= {count})"):
            _emit_wide_loads(text, lanes, line, slots, width)
        with text.block("else"):
            for index in range(places):
                _emit_load_at_end(text, lanes, piece, line, index, count, extent)


def _converter(lanes: Lanes) -> Callable[[str], str]:
    return (lambda value: value) if lanes.raw else (lambda value: load_expr(lanes.spec, value))


def _emit_wide_loads(text: Text, lanes: Lanes, line: str, slots: Sequence[int], width: int) -> None:
    element, channels, convert = ELEMENTS[lanes.spec.source], lanes.spec.channels, _converter(lanes)
    for begin in range(0, len(slots), width):
        place = f"c * {channels} + {begin}" if channels > 1 else f"c + {begin}"
        if width == 1:
            text(f"v[{slots[begin]}] = {convert(f'{line}[{place}]')};")
            continue
        vector = f"{lanes.dialect.global_memory}const {element}{width} *"
        with text.block():
            text(f"const {element}{width} w = *({vector})({line} + {place});")
            for k in range(width):
                text(f"v[{slots[begin + k]}] = {convert('w.' + 'xyzw'[k])};")


def _emit_load_at_end(
    text: Text, lanes: Lanes, piece: Piece, line: str, index: int, count: str, extent: str
) -> None:
    """Append the load of one place, which may be beyond an end of the row."""
    spec, channels, convert = lanes.spec, lanes.spec.channels, _converter(lanes)
    slots = piece.slots[index * channels : (index + 1) * channels]
    border = spec.along.borders[piece.sequence if spec.back else 0] if spec.along else None
    head = ""
    with text.block():
        text(f"const int p = c + {index}, q = at[{slots[0] // channels}];")
        if border is not None and border.weighted:
            name = lanes.border_name("along", piece.sequence)
            with text.block(f"if (p < 0 || p >= {count})"):
                for channel, slot in enumerate(slots):
                    if border.is_long:
                        text(f"v[{slot}] = {name}_beyond({line} + {channel}, p, {extent});")
                        continue
                    value = load_expr(spec, f"{line}[%s * {channels} + {channel}]")
                    with text.block():
                        emit_beyond(text, border, name, "sum", "p", extent, value)
                        text(f"v[{slot}] = sum;")
            head = "else"
        with text.block(head):
            for channel, slot in enumerate(slots):
                text(f"v[{slot}] = q < 0 ? 0 : {convert(f'{line}[q * {channels} + {channel}]')};")
