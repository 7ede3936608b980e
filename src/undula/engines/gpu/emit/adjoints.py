"""Kernels for the results of adjoints at the ends of lines, where they differ from plain operators.

Each work item computes one result of one array, from the terms that
:class:`~undula.lowering.adjoints.BorderRows` lists for its row and for its column. Terms are tables in the
text of the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ....lowering.adjoints import FROM_CENTRE, FROM_END, BorderRows
from .dialect import Dialect
from .kernel import ELEMENTS, Kernel, KernelSpec, emit_pointers, emit_prelude, load_expr, store_expr
from .text import Text, literal

__all__ = ["EXTENTS", "BorderSpec", "emit"]

EXTENTS = (
    "rows", "columns", "source_rows0", "source_rows1", "source_columns0", "source_columns1", "planes",
)  # fmt: skip
ITEMS = 128


@dataclass(frozen=True)
class BorderSpec:
    """The results of one array at the ends of its rows and columns.

    Parameters
    ----------
    down : BorderRows
        What the results down a column are made of.
    along : BorderRows or None
        What those along a row are made of; None if rows are not transformed.
    sources : (int, int)
        How many sequences are read down columns and along rows.
    channels : int
        Number of interleaved values at each place of a row.
    source, result : str
        Dtypes of the arrays that are read and written.
    """

    down: BorderRows
    along: BorderRows | None
    sources: tuple[int, int]
    channels: int
    source: str
    result: str

    @property
    def height(self) -> tuple[int, int]:
        """How many rows at the top and at the bottom are computed."""
        return (self.down.left, self.down.right) if self.down.changed else (0, 0)

    @property
    def width(self) -> tuple[int, int]:
        """How many columns at both ends of rows are computed."""
        return (self.along.left, self.along.right) if self.along and self.along.changed else (0, 0)

    @property
    def names(self) -> list[str]:
        """Names of the arrays that are read."""
        return [f"s{a}{b}" for a in range(self.sources[0]) for b in range(self.sources[1])]

    def results(self, rows: int, columns: int) -> int:
        """Return how many results of a plane are computed."""
        inner = max(0, rows - sum(self.height))
        return self.channels * (sum(self.height) * columns + inner * sum(self.width))


@lru_cache(maxsize=512)
def emit(spec: BorderSpec, dialect: Dialect) -> Kernel:
    """Return the kernel."""
    text, form = Text(), KernelSpec(False, None, None, spec.channels, spec.source, spec.result)
    arrays = (*spec.names, "y")
    words = [
        f"{dialect.global_memory}const {ELEMENTS[spec.source]} *{dialect.restrict} {name}"
        for name in spec.names
    ]
    words.append(f"{dialect.global_memory}{ELEMENTS[spec.result]} *{dialect.restrict} y")
    integers = [(f"{name}_{what}", what != "row") for name in arrays for what in ("start", "plane", "row")]
    integers += [(name, False) for name in EXTENTS]
    words += [f"const {dialect.long if wide else 'int'} {name}" for name, wide in integers]
    emit_prelude(text, dialect, form)
    _emit_tables(text, dialect, spec.down, spec.sources[0], "down", form.number)
    if spec.along is not None:
        _emit_tables(text, dialect, spec.along, spec.sources[1], "along", form.number)
    listed = ",\n        ".join(words)
    with text.block(f"{dialect.kernel.format(items=ITEMS)} adjoint_ends(\n        {listed})"):
        _emit_place(text, dialect, spec)
        emit_pointers(text, dialect, arrays)
        _emit_row(text, spec.down, "down", "i", "rows")
        if spec.along is not None:
            _emit_row(text, spec.along, "along", "j", "columns")
        text("number sum = 0;")
        for a in range(spec.sources[0]):
            for b in range(spec.sources[1]):
                _emit_terms(text, dialect, spec, form, a, b)
        text(f"y[({dialect.long})i * y_row + j * {spec.channels} + c] = {store_expr(form, 'sum')};")
    return Kernel("adjoint_ends", str(text) + "\n", ITEMS, arrays, tuple(integers))


def _emit_tables(
    text: Text, dialect: Dialect, rows: BorderRows, sources: int, name: str, number: str
) -> None:
    """Append the terms of all rows: where those of each source begin, their anchors, offsets and factors."""
    begins, anchors, offsets, factors = [0], [], [], []
    for row in rows.rows:
        for source in range(sources):
            for term in row:
                if term.sequence == source:
                    anchors.append(str(term.anchor))
                    offsets.append(str(term.offset))
                    factors.append(literal(term.factor, number))
            begins.append(len(factors))

    def table(kind: str, what: str, values: Sequence[str]) -> None:
        text(f"{dialect.constant}{kind} {name}_{what}[] = {{{', '.join(values) or '0'}}};")

    table("int", "begins", [str(begin) for begin in begins])
    table("int", "anchors", anchors)
    table("int", "offsets", offsets)
    table(number, "factors", factors)
    text("")


def _emit_place(text: Text, dialect: Dialect, spec: BorderSpec) -> None:
    """Append the plane, the row i, the place j and the channel c of the result."""
    (top, bottom), (left, right), channels = spec.height, spec.width, spec.channels
    long = dialect.long
    text(
        f"const {long} number_of_result = ({long}){dialect.group} * {ITEMS} + {dialect.item};",
        f"const int inner = max(0, rows - {top + bottom});",
        f"const {long} ends = ({long}){top + bottom} * columns * {channels};",
        f"const {long} each = ends + ({long})inner * {(left + right) * channels};",
        f"const {long} plane = number_of_result / each;",
        "if (plane >= planes) return;",
        f"{long} rest = number_of_result % each;",
        "int i, j, c;",
    )
    with text.block("if (rest < ends)"):
        text(
            f"i = (int)(rest / (columns * {channels}));",
            f"j = (int)(rest % (columns * {channels}));",
            f"if (i >= {top}) i += rows - {top + bottom};",
            f"c = j % {channels};",
            f"j /= {channels};",
        )
    with text.block("else"):
        wide = max(1, (left + right) * channels)
        text(
            "rest -= ends;",
            f"i = {top} + (int)(rest / {wide});",
            f"j = (int)(rest % {wide});",
            f"c = j % {channels};",
            f"j /= {channels};",
            f"if (j >= {left}) j += columns - {left + right};",
        )


def _emit_row(text: Text, rows: BorderRows, name: str, place: str, length: str) -> None:
    """Append the number of the row of terms of a result, and what its terms are counted from."""
    far = f"{rows.left + rows.phases} + {place} - ({length} - {rows.right})"
    near = f"{place} >= {length} - {rows.right} ? {far} : {rows.left} + {place} % {rows.phases}"
    text(
        f"const int {name}_row = {place} < {rows.left} ? {place} : {near};",
        f"const int {name}_centre = {place} / {rows.phases} * {rows.step};",
    )


def _emit_terms(text: Text, dialect: Dialect, spec: BorderSpec, form: KernelSpec, a: int, b: int) -> None:
    """Append the sum of the terms that are read from one array."""
    array = f"s{a}{b}"

    def loop(name: str, source: int, sources: int, k: str) -> str:
        first = f"{name}_begins[{sources} * {name}_row + {source}"
        return f"for (int {k} = {first}]; {k} < {first} + 1]; ++{k})"

    def place(name: str, k: str, extent: str) -> str:
        anchor = f"{name}_anchors[{k}]"
        base = f"({anchor} == {FROM_CENTRE} ? {name}_centre : {anchor} == {FROM_END} ? {extent} : 0)"
        return f"{base} + {name}_offsets[{k}]"

    with text.block(loop("down", a, spec.sources[0], "k")):
        number = place("down", "k", f"source_rows{a}")
        text(f"const {dialect.long} row = ({dialect.long})({number}) * {array}_row;")
        if spec.along is None:
            value = load_expr(form, f"{array}[row + j * {spec.channels} + c]")
            text(f"sum += down_factors[k] * {value};")
            return
        text("number part = 0;")
        with text.block(loop("along", b, spec.sources[1], "t")):
            text(f"const int column = {place('along', 't', f'source_columns{b}')};")
            value = load_expr(form, f"{array}[row + column * {spec.channels} + c]")
            text(f"part += along_factors[t] * {value};")
        text("sum += down_factors[k] * part;")
