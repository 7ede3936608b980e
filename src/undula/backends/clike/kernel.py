"""Passes and kernels: what is to be done, and the text that does it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ...plans.flow import Flow
from .borders import FOLDS, Border
from .dialect import Dialect
from .text import Text

__all__ = [
    "ELEMENTS",
    "ITEMSIZE",
    "Axis",
    "Kernel",
    "Pass",
    "emit_take",
    "opened",
    "parameters",
    "prelude",
    "read",
    "taken",
    "written",
]

# What elements are called in C, by dtype; halves travel as their bits.
ELEMENTS = {
    "float32": "float",
    "float64": "double",
    "float16": "ushort",
    "uint8": "uchar",
    "uint16": "ushort",
    "int16": "short",
}

ITEMSIZE = {"float32": 4, "float64": 8, "float16": 2, "uint8": 1, "uint16": 2, "int16": 2}


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
    """

    back: bool
    down: Axis | None
    along: Axis | None
    channels: int
    source: str
    result: str

    @property
    def number(self) -> str:
        """What is calculated in."""
        return "double" if "float64" in (self.source, self.result) else "float"

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
    return value if ELEMENTS[work.source] == work.number else f"(number){value}"


def written(work: Pass, value: str) -> str:
    """A number, as an element to be written."""
    if work.result == "float16":
        return f"value_half({value})"
    return value if ELEMENTS[work.result] == work.number else f"({ELEMENTS[work.result]})({value})"


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
    integers = [(f"{name}_{what}", what != "row") for name in arrays for what in ("start", "plane", "row")]
    integers += [(name, False) for name in extents]
    words += [f"const {dialect.long if wide else 'int'} {name}" for name, wide in integers]
    return ",\n        ".join(words), arrays, tuple(integers)


def opened(text: Text, dialect: Dialect, arrays: tuple[str, ...]) -> None:
    """Memory is there; pointers moved to the plane that the group works on."""
    if dialect.ready:
        text(*dialect.ready.split("\n"))
    for name in arrays:
        text(f"{name} += {name}_start + plane * {name}_plane;")


def taken(work: Pass, component: int, m: str) -> str:
    """Component ``m`` of a line that runs down, wherever it is, by the functions of :func:`emit_take`."""
    assert work.down is not None
    if not work.back:
        return f"take_x(x, x_row, 2 * ({m}) + {component}, rows, rows)"
    sequence, shift = work.down.flow.entries[component]
    array, count = work.bands[sequence], ("low_rows", "high_rows")[sequence]
    extent = "rows" if work.down.borders[sequence].kind.startswith("folded") else count
    return f"take_{array}({array}, {array}_row, {m} + {shift}, {count}, {extent})"


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
        text("number sum = 0;")
        with text.block(f"for (int t = 0; t < {border.terms}; ++t)"):
            text(f"const int q = border_{array}_place(p, extent, t);")
            text(f"sum += border_{array}_weight(p, extent, t) * {at % 'q'};")
        text("return sum;")
    text("")
