"""Passes and kernels: what is to be done, and the text that does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ...plans.flow import Flow, FlowStep
from ...plans.mixing import Mixing, Unmixing
from .borders import FOLDS, Border
from .dialect import Dialect
from .text import Text, literal

__all__ = [
    "ELEMENTS",
    "INTEGERS",
    "ITEMSIZE",
    "RULES",
    "Axis",
    "Kernel",
    "Pass",
    "emit_beyond",
    "emit_take",
    "limited",
    "mixed",
    "opened",
    "parameters",
    "prelude",
    "read",
    "stepped",
    "taken",
    "unmixed",
    "written",
]

# What elements are called in C, by dtype; halves travel as their bits.
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

ITEMSIZE = {
    "float32": 4, "float64": 8, "float16": 2, "uint8": 1, "int8": 1, "uint16": 2, "int16": 2, "int32": 4,
}  # fmt: skip
INTEGERS = ("int16", "int32")  # that bands are kept in

# What is done to a detail v, with a lower and an upper limit.
RULES = {
    "soft": "v - min(max(v, -low), low)",
    "hard": "fabs(v) >= low ? v : 0",
    "garrote": "fabs(v) > low ? v - low * low / v : 0",
    "firm": "fabs(v) > high ? v : fabs(v) > low"
    " ? (v < 0 ? -high : high) * (fabs(v) - low) / (high - low) : 0",
    "greater": "v >= low ? v : 0",
    "less": "v <= low ? v : 0",
    "gain": "v * low",
}


@dataclass(frozen=True)
class Axis:
    """What is done along one axis.

    Parameters
    ----------
    flow : Flow
    borders : tuple of Border
        Of the samples; on the way back, of the low and of the high band.
    """

    flow: Flow
    borders: tuple[Border, ...]


@dataclass(frozen=True)
class Pass:
    """What one kernel does: one or two neighbouring axes, forward or back.

    Parameters
    ----------
    back : bool
        From bands to samples.
    down, along : Axis or None
        Along rows' numbers and within rows; where one is missing, the other is the only axis.
    channels : int
        Numbers side by side that belong to one place of a row.
    source, result : str
        dtypes of what is read and of what is written.
    mixing : Mixing, optional
        Forward, what channels become as they are read.
    unmixing : Unmixing, optional
        Back, what they become before they are written.
    rule : str, optional
        Back, what is done to details as they are read: one of :data:`RULES`, by limits in an array of that
        name: for each band of details the first, then for each the second.
    """

    back: bool
    down: Axis | None
    along: Axis | None
    channels: int
    source: str
    result: str
    mixing: Mixing | None = None
    unmixing: Unmixing | None = None
    rule: str | None = None

    @property
    def number(self) -> str:
        """What is calculated in."""
        if self.kept in INTEGERS:
            return "int"
        return "double" if "float64" in (self.source, self.result) else "float"

    @property
    def kept(self) -> str:
        """The dtype of the bands."""
        return self.source if self.back else self.result

    @property
    def bands(self) -> tuple[str, ...]:
        """Names of the bands, as the parameters have them: down first, then along."""
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
    """A kernel as text, and how it is called.

    Parameters
    ----------
    name, source : str
    items : int
        Work items in a group.
    arrays : tuple of str
        Names of the arrays, the first parameters; for each there follow among the integers where it starts,
        how far its planes and how far its rows are apart, in elements.
    integers : tuple of (str, bool)
        Names of the integers, and whether they have 64 bits.
    """

    name: str
    source: str
    items: int
    arrays: tuple[str, ...]
    integers: tuple[tuple[str, bool], ...]

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The names of the integers."""
        return tuple(name for name, _ in self.integers)


def prelude(text: Text, dialect: Dialect, work: Pass) -> None:
    """What every kernel begins with."""
    if dialect.prelude:
        text(*dialect.prelude.split("\n"))
    text(f"typedef {work.number} number;", "")
    if work.number == "int" and work.back:
        most = 2 ** (8 * ITEMSIZE[work.kept] - 1) - 1
        kind = "int" if work.kept == "int16" else dialect.long
        with text.block(f"{dialect.function} int fitting({kind} value)"):
            text(f"return (int)min(max(value, ({kind})-{most} - 1), ({kind}){most});")
    if work.rule is not None:
        with text.block(f"{dialect.function} number shrunk(number v, number low, number high)"):
            text(f"return {RULES[work.rule]};")
    if "float16" in (work.source, work.result):
        with text.block(f"{dialect.function} float half_value(ushort bits)"):
            text(*dialect.half_value.split("\n"))
        with text.block(f"{dialect.function} ushort value_half(float value)"):
            text(*dialect.value_half.split("\n"))
    text(*FOLDS.format(function=dialect.function).split("\n"))


def read(work: Pass, value: str) -> str:
    """An element that was read, as a number."""
    if work.source == "float16":
        return f"half_value({value})"
    if work.source == "int8":  # (a plain char may have a sign or not)
        return f"(number)(signed char){value}"
    return value if ELEMENTS[work.source] == work.number else f"(number){value}"


def written(work: Pass, value: str) -> str:
    """A number, as an element to be written."""
    if work.result == "float16":
        return f"value_half({value})"
    if work.unmixing is not None:  # (rounded, and cut to what a channel holds)
        most = 2 ** (8 * ITEMSIZE[work.result]) - 1
        if work.number == "int":
            return f"({ELEMENTS[work.result]})min(max({value}, 0), {most})"
        return f"({ELEMENTS[work.result]})(int)min(max(floor({value} + 0.5f), 0.0f), {most}.0f)"
    return value if ELEMENTS[work.result] == work.number else f"({ELEMENTS[work.result]})({value})"


def stepped(work: Pass, dialect: Dialect, own: str, step: FlowStep, values: Sequence[str]) -> str:
    """What a lifting step makes of a number, given those that it adds to it."""
    if step.rounded is None:
        terms = [f"{literal(t.factor, work.number)} * {v}" for t, v in zip(step.taps, values, strict=True)]
        return " + ".join((own, *terms))
    whole, offset, shift = step.rounded
    # Sums of 16 bits fit into 32, as do those of larger ones that are not multiplied.
    wide = f"({dialect.long})" if work.kept == "int32" and max(map(abs, whole)) > 1 else ""
    terms = [f"{wide}{w} * {value}" for w, value in zip(whole, values, strict=True)]
    added = f"(({' + '.join(terms)} + {offset}) >> {shift})"
    if not work.back:
        return f"{own} + {'(int)' if wide else ''}{added}"
    # (Coefficients that were changed may lead anywhere; those that were not lead back.)
    return f"fitting({f'({dialect.long})' if work.kept == 'int32' else ''}{own} + {added})"


def mixed(work: Pass, values: Sequence[str]) -> list[str]:
    """Planes, of the channels of one place as they are read."""
    assert work.mixing is not None
    found = []
    for weights, offset, shift in zip(*work.mixing, strict=True):
        terms = [
            value if weight == 1 else f"{literal(weight, work.number)} * {value}"
            for weight, value in zip(weights, values, strict=True)
            if weight
        ]
        if offset:
            terms.append(literal(offset, work.number))
        found.append(f"({' + '.join(terms)})" + (f" >> {shift}" if shift else ""))
    return found


def unmixed(work: Pass, values: Sequence[str]) -> list[str]:
    """Channels, of the planes of one place; the reversible ones are found one after the other."""
    assert work.unmixing is not None
    rest = list(values[3:])
    if work.unmixing.matrix is None:
        y, u, v = values[:3]
        green = f"({y} - (({u} + {v}) >> 2))"
        return [f"{v} + {green}", green, f"{u} + {green}", *rest]
    found = []
    for row in work.unmixing.matrix:
        terms = [
            f"{literal(w, work.number)} * {value}" for w, value in zip(row, values[:3], strict=True) if w
        ]
        found.append(" + ".join(terms))
    return found + rest


def parameters(
    work: Pass, dialect: Dialect, extents: tuple[str, ...]
) -> tuple[str, tuple[str, ...], tuple[tuple[str, bool], ...]]:
    """The list of parameters as text, the arrays, and the integers."""
    arrays = (*work.sources, *work.results)
    words = []
    for name in arrays:
        kind = ELEMENTS[work.source if name in work.sources else work.result]
        const = "const " if name in work.sources else ""
        words.append(f"{dialect.everywhere}{const}{kind} *{dialect.restrict} {name}")
    if work.rule is not None:
        arrays = (*arrays, "limits")
        words.append(f"{dialect.everywhere}const {work.number} *{dialect.restrict} limits")
    integers = [(f"{name}_{what}", what != "row") for name in arrays for what in ("start", "plane", "row")]
    integers += [(name, False) for name in extents]
    words += [f"const {dialect.long if wide else 'int'} {name}" for name, wide in integers]
    return ",\n        ".join(words), arrays, tuple(integers)


def opened(text: Text, dialect: Dialect, arrays: tuple[str, ...], work: Pass | None = None) -> None:
    """Memory is there; pointers moved to the plane that the group works on, and its limits read."""
    if dialect.ready:
        text(*dialect.ready.split("\n"))
    for name in arrays:
        text(f"{name} += {name}_start + plane * {name}_plane;")
    if work is not None and work.rule is not None:
        count = len(work.bands) - 1
        for number, band in enumerate(work.bands[1:]):
            text(f"const number low_{band} = limits[{number}], high_{band} = limits[{count + number}];")


def limited(work: Pass, band: str, value: str) -> str:
    """A coefficient that was read, by the rule for details."""
    if work.rule is None or band == work.bands[0]:
        return value
    return f"shrunk({value}, low_{band}, high_{band})"


def taken(work: Pass, component: int, m: str) -> str:
    """Component ``m`` of a line that runs down, wherever it is, by the functions of :func:`emit_take`."""
    assert work.down is not None
    if not work.back:
        return f"take_x(x, x_row, 2 * ({m}) + {component}, rows, rows)"
    sequence, shift = work.down.flow.entries[component]
    array, count = work.bands[sequence], ("low_rows", "high_rows")[sequence]
    extent = "rows" if work.down.borders[sequence].kind.startswith("folded") else count
    return f"take_{array}({array}, {array}_row, {m} + {shift}, {count}, {extent})"


def emit_beyond(text: Text, border: Border, name: str, target: str, p: str, extent: str, value: str) -> None:
    """A number beyond the ends of a line whose border has factors; ``value`` reads the place ``%s``."""
    place = f"{name}_place({p}, {extent}, %s)"
    text(f"number {target} = {name}_weight({p}, {extent}, 0) * {value % (place % '0')};")
    if border.differences:
        with text.block(f"for (int t = 1; t <= {border.differences}; ++t)"):
            plus, minus = (value % (place % t) for t in ("2 * t - 1", "2 * t"))
            text(f"const number rise = {plus} - {minus};")
            text(f"{target} += {name}_weight({p}, {extent}, t) * rise;")


def emit_take(text: Text, dialect: Dialect, work: Pass, array: str, border: Border) -> None:
    """A function that reads at any place of a line."""
    kind = f"{dialect.everywhere}const {ELEMENTS[work.source]} *"
    border.emit(text, dialect, f"border_{array}", "number")
    with text.block(
        f"{dialect.function} number take_{array}({kind}line, int step, int p, int n, int extent)"
    ):
        at = read(work, f"line[({dialect.long})%s * step]")
        text(f"if (p >= 0 && p < n) return {at % 'p'};")
        if not border.weighted:
            text(f"const int q = border_{array}_place(p, extent, 0);", f"return q < 0 ? 0 : {at % 'q'};")
            return
        emit_beyond(text, border, f"border_{array}", "sum", "p", "extent", at)
        text("return sum;")
    text("")
