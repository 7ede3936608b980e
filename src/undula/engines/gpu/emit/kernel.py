"""Kernel specifications, and the parts of kernels that all strategies share.

A :class:`KernelSpec` says what a kernel computes; a strategy prints a :class:`Kernel` for it. Functions whose
names begin with ``emit_`` append statements to a :class:`~.text.Text`; those that end in ``_expr`` return a C
expression.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ....lowering.axis import AxisOp
from ....lowering.borders import Border
from ....lowering.expressions import OPERATIONS, Call, Constant, Expression, Load
from ....lowering.mixing import Mixing, Unmixing
from ....lowering.polyphase import Step
from ....lowering.rules import rule_expression
from .borders import FOLDS, emit_border
from .dialect import Dialect
from .text import Text, literal

__all__ = [
    "ELEMENTS",
    "INTEGERS",
    "ITEMSIZE_BYTES",
    "Kernel",
    "KernelSpec",
    "emit_beyond",
    "emit_plane_take",
    "emit_pointers",
    "emit_prelude",
    "emit_take",
    "load_expr",
    "mix_exprs",
    "parameter_list",
    "step_expr",
    "store_expr",
    "take_expr",
    "threshold_expr",
    "unmix_exprs",
]

# C types of elements by dtype. Half-precision numbers are stored as their bits.
ELEMENTS = {
    "float32": "float",
    "float64": "double",
    "float16": "ushort",
    "uint8": "uchar",
    "int8": "char",
    "uint16": "ushort",
    "int16": "short",
    "int32": "int",
}

ITEMSIZE_BYTES = {
    "float32": 4, "float64": 8, "float16": 2, "uint8": 1, "int8": 1, "uint16": 2, "int16": 2, "int32": 4,
}  # fmt: skip
INTEGERS = ("int16", "int32")  # dtypes of integer bands


@dataclass(frozen=True)
class KernelSpec:
    """The computation of one kernel: one or two neighbouring axes, forward or inverse.

    Parameters
    ----------
    back : bool
        Whether the kernel computes samples from bands.
    down, along : AxisOp or None
        The operators across rows and within rows, for any length. At least one of them is given.
    channels : int
        Number of interleaved values at each place of a row.
    source, result : str
        dtypes of the arrays that are read and written.
    mixing : Mixing, optional
        Forward: colour transform applied to the channels as they are read.
    unmixing : Unmixing, optional
        Inverse: colour transform applied before the channels are written.
    rule : str, optional
        Inverse: rule for details as they are read, one of :data:`~undula.lowering.rules.DETAIL_RULES`. Its
        limits come from an array ``limits``: the lower limit of each detail band, then the upper limit of
        each.
    shifted_nodes : int, default 0
        Forward: if not 0, planes are those of all shifts by one sample, in the order of items, shifts, and so
        many nodes. A shifted line begins one sample earlier, with a sample that is in memory there.
    """

    back: bool
    down: AxisOp | None
    along: AxisOp | None
    channels: int
    source: str
    result: str
    mixing: Mixing | None = None
    unmixing: Unmixing | None = None
    rule: str | None = None
    shifted_nodes: int = 0

    @property
    def number(self) -> str:
        """C type of intermediate values."""
        if self.band_dtype in INTEGERS:
            return "int"
        return "double" if "float64" in (self.source, self.result) else "float"

    @property
    def band_dtype(self) -> str:
        """Dtype of the bands."""
        return self.source if self.back else self.result

    @property
    def bands(self) -> tuple[str, ...]:
        """Names of the bands in the list of parameters; the first letter refers to ``down``."""
        return ("aa", "ad", "da", "dd") if self.down and self.along else ("a", "d")

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the arrays that are read."""
        return self.bands if self.back else ("x",)

    @property
    def results(self) -> tuple[str, ...]:
        """Names of the arrays that are written."""
        return ("x",) if self.back else self.bands


@dataclass(frozen=True)
class Kernel:
    """The text of a kernel and its calling convention.

    Parameters
    ----------
    name, source : str
    items : int
        Work items in a group.
    arrays : tuple of str
        Names of the arrays, which are the first parameters. The integers begin with three values for each
        array, in elements: its start, and the strides of planes and rows.
    integers : tuple of (str, bool)
        Names of the integer parameters, and whether they have 64 bits.
    shared_bytes : int, default 0
        Memory that a group shares, besides what the text declares.
    """

    name: str
    source: str
    items: int
    arrays: tuple[str, ...]
    integers: tuple[tuple[str, bool], ...]
    shared_bytes: int = 0


def emit_prelude(text: Text, dialect: Dialect, spec: KernelSpec, outlined: bool = False) -> None:
    """Append the types and functions that every kernel begins with.

    ``outlined`` keeps those that fold places at the ends of a line out of line.
    """
    if dialect.prelude:
        text(*dialect.prelude.split("\n"))
    text(f"typedef {spec.number} number;", "")
    if spec.number == "int" and spec.back:
        largest = 2 ** (8 * ITEMSIZE_BYTES[spec.band_dtype] - 1) - 1
        kind = "int" if spec.band_dtype == "int16" else dialect.long
        with text.block(f"{dialect.function} int fitting({kind} value)"):
            text(f"return (int)min(max(value, ({kind})-{largest} - 1), ({kind}){largest});")
    if spec.rule is not None:
        with text.block(f"{dialect.function} number shrunk(number v, number low, number high)"):
            text(f"return {_c_expr(rule_expression(spec.rule))};")
    if "float16" in (spec.source, spec.result):
        with text.block(f"{dialect.function} float half_value(ushort bits)"):
            text(*dialect.half_value.split("\n"))
        with text.block(f"{dialect.function} ushort value_half(float value)"):
            text(*dialect.value_half.split("\n"))
    function = dialect.outlined_function if outlined else dialect.function
    text(*FOLDS.format(function=function).split("\n"))


def load_expr(spec: KernelSpec, value: str) -> str:
    """Return an element that was read, converted to a number."""
    if spec.source == "float16":
        return f"half_value({value})"
    if spec.source == "int8":  # C leaves open whether a plain char is signed.
        return f"(number)(signed char){value}"
    return value if ELEMENTS[spec.source] == spec.number else f"(number){value}"


def store_expr(spec: KernelSpec, value: str) -> str:
    """Return a number converted to an element of the result."""
    if spec.result == "float16":
        return f"value_half({value})"
    if spec.unmixing is not None:  # Colour channels are rounded and clipped to their range.
        largest = 2 ** (8 * ITEMSIZE_BYTES[spec.result]) - 1
        if spec.number == "int":
            return f"({ELEMENTS[spec.result]})min(max({value}, 0), {largest})"
        return f"({ELEMENTS[spec.result]})(int)min(max(floor({value} + 0.5f), 0.0f), {largest}.0f)"
    return value if ELEMENTS[spec.result] == spec.number else f"({ELEMENTS[spec.result]})({value})"


def step_expr(spec: KernelSpec, dialect: Dialect, target: str, step: Step, values: Sequence[str]) -> str:
    """Return the result of a lifting step on ``target``, given the values at its taps."""
    if spec.number != "int":
        terms = [f"{literal(t.factor, spec.number)} * {v}" for t, v in zip(step.taps, values, strict=True)]
        return " + ".join((target, *terms))
    weights, offset, shift = step.rounded
    # Sums of 16-bit values fit into 32 bits, as do sums of 32-bit values that are not multiplied.
    wide = f"({dialect.long})" if spec.band_dtype == "int32" and max(map(abs, weights)) > 1 else ""
    terms = [f"{wide}{w} * {value}" for w, value in zip(weights, values, strict=True)]
    added = f"(({' + '.join(terms)} + {offset}) >> {shift})"
    if not spec.back:
        return f"{target} + {'(int)' if wide else ''}{added}"
    # Coefficients that were modified may overflow, so results of the inverse are clipped.
    return f"fitting({f'({dialect.long})' if spec.band_dtype == 'int32' else ''}{target} + {added})"


def mix_exprs(spec: KernelSpec, values: Sequence[str]) -> list[str]:
    """Return the colour planes at one place, given its channels."""
    assert spec.mixing is not None
    planes = []
    for weights, offset, shift in zip(*spec.mixing, strict=True):
        terms = [
            value if weight == 1 else f"{literal(weight, spec.number)} * {value}"
            for weight, value in zip(weights, values, strict=True)
            if weight
        ]
        if offset:
            terms.append(literal(offset, spec.number))
        planes.append(f"({' + '.join(terms)})" + (f" >> {shift}" if shift else ""))
    return planes


def unmix_exprs(spec: KernelSpec, values: Sequence[str]) -> list[str]:
    """Return the channels at one place, given its colour planes; planes beyond three are kept."""
    assert spec.unmixing is not None
    extra = list(values[3:])
    if spec.unmixing.matrix is None:  # the reversible colour transform of JPEG 2000
        y, u, v = values[:3]
        green = f"({y} - (({u} + {v}) >> 2))"
        return [f"{v} + {green}", green, f"{u} + {green}", *extra]
    channels = []
    for row in spec.unmixing.matrix:
        terms = [
            f"{literal(w, spec.number)} * {value}" for w, value in zip(row, values[:3], strict=True) if w
        ]
        channels.append(" + ".join(terms))
    return channels + extra


def parameter_list(
    spec: KernelSpec, dialect: Dialect, extents: tuple[str, ...]
) -> tuple[str, tuple[str, ...], tuple[tuple[str, bool], ...]]:
    """Return the parameters of a kernel as text, the names of its arrays, and its integers."""
    arrays = (*spec.sources, *spec.results)
    words = []
    for name in arrays:
        kind = ELEMENTS[spec.source if name in spec.sources else spec.result]
        const = "const " if name in spec.sources else ""
        words.append(f"{dialect.global_memory}{const}{kind} *{dialect.restrict} {name}")
    if spec.rule is not None:
        arrays = (*arrays, "limits")
        words.append(f"{dialect.global_memory}const {spec.number} *{dialect.restrict} limits")
    integers = [(f"{name}_{what}", what != "row") for name in arrays for what in ("start", "plane", "row")]
    integers += [(name, False) for name in extents]
    words += [f"const {dialect.long if wide else 'int'} {name}" for name, wide in integers]
    return ",\n        ".join(words), arrays, tuple(integers)


def emit_pointers(
    text: Text, dialect: Dialect, arrays: tuple[str, ...], spec: KernelSpec | None = None
) -> None:
    """Append statements that move pointers to the group's plane and load its threshold limits.

    Memory must not be accessed before these statements: they also wait for the previous launch.
    """
    if dialect.wait_for_previous:
        text(*dialect.wait_for_previous.split("\n"))
    for name in arrays:
        if name == "x" and spec is not None and spec.shifted_nodes:
            _emit_shifted_pointer(text, dialect, spec)
        else:
            text(f"{name} += {name}_start + plane * {name}_plane;")
    if spec is not None and spec.rule is not None:
        count = len(spec.bands) - 1
        for number, band in enumerate(spec.bands[1:]):
            text(f"const number low_{band} = limits[{number}], high_{band} = limits[{count + number}];")


def _emit_shifted_pointer(text: Text, dialect: Dialect, spec: KernelSpec) -> None:
    """Append the statement that moves the pointer of the samples to the plane of a shift."""
    nodes, steps = spec.shifted_nodes, []
    if spec.down:
        steps.append("x_row")
    if spec.along:
        steps.append(str(spec.channels))
    shifts = 2 ** len(steps)
    text(f"const int shift = (int)(plane / {nodes} % {shifts});")
    moved = [f"({dialect.long})(shift >> {len(steps) - 1 - k} & 1) * {step}" for k, step in enumerate(steps)]
    text(
        f"x += x_start + (plane / {nodes * shifts} * {nodes} + plane % {nodes}) * x_plane"
        f" - {' - '.join(moved)};"
    )


def _c_expr(expression: Expression) -> str:
    """Return an expression of variables, which are named like the buffers that are loaded."""
    if isinstance(expression, Constant):
        # The largest number times ten is infinite in any precision.
        return "(number)1e308 * 10" if math.isinf(expression.value) else f"(number){expression.value!r}"
    if isinstance(expression, Load):
        return str(expression.view.buffer)
    assert isinstance(expression, Call)
    return OPERATIONS[expression.operation].c.format(*map(_c_expr, expression.arguments))


def threshold_expr(spec: KernelSpec, band: str, value: str) -> str:
    """Return a coefficient of a band after the rule for details."""
    if spec.rule is None or band == spec.bands[0]:
        return value
    return f"shrunk({value}, low_{band}, high_{band})"


def take_expr(spec: KernelSpec, component: int, m: str) -> str:
    """Return component ``m`` of a line across rows, also beyond its ends; see :func:`emit_take`."""
    assert spec.down is not None
    if not spec.back:
        return f"take_x(x, x_row, 2 * ({m}) + {component}, rows, rows)"
    sequence, shift = spec.down.entries[component]
    array, count = spec.bands[sequence], ("low_rows", "high_rows")[sequence]
    extent = "rows" if spec.down.borders[sequence].folded else count
    return f"take_{array}({array}, {array}_row, {m} + {shift}, {count}, {extent})"


def emit_beyond(
    text: Text,
    border: Border,
    name: str,
    target: str,
    p: str,
    extent: str,
    value: str,
    outlined: bool = False,
) -> None:
    """Append the declaration of ``target``: the weighted sum at place ``p`` beyond the ends of a line.

    ``value`` is an expression that reads the place ``%s``; ``outlined`` keeps the loop over differences.
    """
    place = f"{name}_place({p}, {extent}, %s)"
    text(f"number {target} = {name}_weight({p}, {extent}, 0) * {value % (place % '0')};")
    if border.differences:
        if outlined:
            text("#pragma unroll 1")
        with text.block(f"for (int t = 1; t <= {border.differences}; ++t)"):
            plus, minus = (value % (place % t) for t in ("2 * t - 1", "2 * t"))
            text(f"const number rise = {plus} - {minus};")
            text(f"{target} += {name}_weight({p}, {extent}, t) * rise;")


def emit_take(text: Text, dialect: Dialect, spec: KernelSpec, array: str, border: Border) -> None:
    """Append a function that reads a line of an array at any place, also beyond its ends."""
    kind = f"{dialect.global_memory}const {ELEMENTS[spec.source]} *"
    emit_border(text, dialect, border, f"border_{array}")
    with text.block(
        f"{dialect.function} number take_{array}({kind}line, int step, int p, int n, int extent)"
    ):
        at = load_expr(spec, f"line[({dialect.long})%s * step]")
        text(f"if (p >= 0 && p < n) return {at % 'p'};")
        if not border.weighted:
            text(f"const int q = border_{array}_place(p, extent, 0);", f"return q < 0 ? 0 : {at % 'q'};")
            return
        emit_beyond(text, border, f"border_{array}", "sum", "p", "extent", at)
        text("return sum;")
    text("")


def emit_plane_take(
    text: Text, dialect: Dialect, spec: KernelSpec, array: str, down: Border, along: Border
) -> None:
    """Append a function that reads an array at any row and column, also beyond the ends.

    Its parameters ``rows`` and ``columns`` are the extents that the borders count.
    """
    kind = f"{dialect.global_memory}const {ELEMENTS[spec.source]} *"
    for name, border in ((f"{array}_down", down), (f"{array}_along", along)):
        emit_border(text, dialect, border, name)
    if down.weighted or along.weighted:
        _emit_take_in_row(text, dialect, spec, array, along)
    counts = {"rows": "rows", "columns": "columns"}
    head = f"number take_{array}({kind}plane, int step, int r, int c, int rows, int columns)"
    with text.block(f"{dialect.function} {head}"):
        if spec.back:
            number = spec.bands.index(array)
            for axis, bit, border in (("rows", number >> 1, down), ("columns", number & 1, along)):
                count = f"({axis} + {1 - bit}) / 2" if border.folded else axis
                counts[axis] = f"{array}_{axis}"
                text(f"const int {array}_{axis} = {count};")
        at = load_expr(spec, f"plane[({dialect.long})i * step + j * {spec.channels}]")
        inside = "{0} >= 0 && {0} < {1}"
        text(
            f"const int inside_r = {inside.format('r', counts['rows'])},"
            f" inside_c = {inside.format('c', counts['columns'])};"
        )
        if not (down.weighted or along.weighted):
            text("int i = r, j = c;")
            text(f"if (!inside_r) i = {array}_down_place(r, rows, 0);")
            text(f"if (!inside_c) j = {array}_along_place(c, columns, 0);")
            text(f"return i < 0 || j < 0 ? 0 : {at};")
            return
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


def _emit_take_in_row(text: Text, dialect: Dialect, spec: KernelSpec, array: str, border: Border) -> None:
    """Append a function that reads a row at any place; it is needed for weighted borders only."""
    kind = f"{dialect.global_memory}const {ELEMENTS[spec.source]} *"
    head = f"number {array}_in_row({kind}plane, int step, int i, int c, int columns)"
    at = load_expr(spec, f"plane[({dialect.long})i * step + %s * {spec.channels}]")
    with text.block(f"{dialect.function} {head}"):
        text(f"if (c >= 0 && c < columns) return {at % 'c'};")
        name = f"{array}_along"
        if border.weighted:
            emit_beyond(text, border, name, "sum", "c", "columns", at)
            text("return sum;")
        else:
            text(f"const int j = {name}_place(c, columns, 0);", f"return j < 0 ? 0 : {at % 'j'};")
