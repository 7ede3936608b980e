"""Kernels for the results of adjoints at the ends of lines, where they differ from plain operators.

A kernel combines lines along one axis, as :class:`~undula.lowering.adjoints.BorderRows` lists it: either the
results at both ends of lines, or all results. Two axes take two launches for the ends of each of them: along
that axis into a small array, and from there along the other one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ....lowering.adjoints import FROM_CENTRE, FROM_END, BorderRows, Term
from .dialect import Dialect
from .kernel import ELEMENTS, Kernel, KernelSpec, emit_prelude, load_expr, store_expr
from .text import Text, literal

__all__ = ["EXTENTS", "EndsSpec", "emit"]

# Strides are those of planes, rows, places and results of the arrays; a gap lies between both ends.
EXTENTS = (
    "planes", "rows", "length", "inner", "lengths0", "lengths1", "row_split", "row_gap", "place_gap",
    "inner_split", "inner_gap",
)  # fmt: skip
STRIDES = ("start", "plane", "row", "place")
ITEMS = 128
MAX_UNROLLED_TERMS = 512


@dataclass(frozen=True)
class EndsSpec:
    """Results of an adjoint along one axis.

    Parameters
    ----------
    rows : BorderRows
        What the results are made of.
    everywhere : bool
        Whether all results are computed, or those at both ends.
    sources : int
        How many sequences are read.
    source, result : str
        Dtypes of the arrays that are read and written.
    wide : bool
        Whether work items are counted in 64 bits, which takes longer.
    """

    rows: BorderRows
    everywhere: bool
    sources: int
    source: str
    result: str
    wide: bool = False

    @property
    def unrolled(self) -> bool:
        """Whether one work item computes all results at both ends of a line."""
        return not self.everywhere and sum(map(len, self._end_rows)) <= MAX_UNROLLED_TERMS

    @property
    def _end_rows(self) -> Sequence[tuple[Term, ...]]:
        return self.rows.rows[: self.rows.left] + self.rows.rows[self.rows.left + self.rows.phases :]

    def places(self, length: int) -> int:
        """Return how many results of a line are computed."""
        return length if self.everywhere else self.rows.left + self.rows.right

    @property
    def together(self) -> int:
        """How many results of a line one work item computes: those that are made of the same numbers."""
        return self.rows.phases if self.everywhere else 1

    def items(self, length: int) -> int:
        """Return how many work items a line takes."""
        return 1 if self.unrolled else -(-self.places(length) // self.together)


@lru_cache(maxsize=512)
def emit(spec: EndsSpec, dialect: Dialect) -> Kernel:
    """Return the kernel."""
    text, form = Text(), KernelSpec(False, None, None, 1, spec.source, spec.result)
    names = [f"s{k}" for k in range(spec.sources)]
    pointer = f"{dialect.global_memory}const {ELEMENTS[spec.source]} *{dialect.restrict}"
    words = [f"{pointer} {name}" for name in names]
    words.append(f"{dialect.global_memory}{ELEMENTS[spec.result]} *{dialect.restrict} y")
    integers = [(f"{name}_{what}", True) for name in (*names, "y") for what in STRIDES]
    integers += [(name, False) for name in EXTENTS]
    words += [f"const {dialect.long if wide else 'int'} {name}" for name, wide in integers]
    emit_prelude(text, dialect, form)
    if not spec.unrolled:
        _emit_tables(text, dialect, spec, form.number)
    name = "adjoint_all" if spec.everywhere else "adjoint_ends"
    listed = ",\n        ".join(words)
    with text.block(f"{dialect.kernel.format(items=ITEMS)} {name}(\n        {listed})"):
        _emit_item(text, dialect, spec, names)
        if spec.unrolled:
            _emit_unrolled(text, spec, form)
        elif spec.everywhere:
            _emit_everywhere(text, spec, form)
        else:
            _emit_listed(text, spec, form)
    return Kernel(name, str(text) + "\n", ITEMS, (*names, "y"), tuple(integers))


def _emit_tables(text: Text, dialect: Dialect, spec: EndsSpec, number: str) -> None:
    """Append the terms of all rows: where those of each source begin, their anchors, offsets and factors."""
    begins, terms = [0], []
    for row in spec.rows.rows:
        for source in range(spec.sources):
            terms += [term for term in row if term.sequence == source]
            begins.append(len(terms))
    tables = {
        "int begins": map(str, begins),
        "int anchors": (str(term.anchor) for term in terms),
        "int offsets": (str(term.offset) for term in terms),
        f"{number} factors": (literal(term.factor, number) for term in terms),
    }
    for head, values in tables.items():
        text(f"{dialect.constant}{head}[] = {{{', '.join(values) or '0'}}};")
    text("")


def _emit_item(text: Text, dialect: Dialect, spec: EndsSpec, names: Sequence[str]) -> None:
    """Append the line, and the result in it, of a work item; pointers then begin at the line."""
    count = str(spec.rows.left + spec.rows.right)
    if spec.everywhere:
        count = f"((length + {spec.together - 1}) / {spec.together})"
    places = "1" if spec.unrolled else count
    kind = dialect.long if spec.wide else "unsigned int"
    text(
        f"const {kind} item = ({kind}){dialect.group} * {ITEMS} + {dialect.item};",
        f"const {kind} line = item / inner;",
        f"const {kind} row_of_all = line / {places};",
        "const int k = (int)(item - line * inner);",
        f"const int number_of_place = (int)(line - row_of_all * {places});",
        f"const {dialect.long} plane = row_of_all / rows;",
        "const int row = (int)(row_of_all % rows);",
        "if (plane >= planes) return;",
    )
    if dialect.wait_for_previous:
        text(*dialect.wait_for_previous.split("\n"))
    for name in names:
        text(f"{name} += {name}_start + plane * {name}_plane + row * {name}_row + k;")
    text(
        "y += y_start + plane * y_plane + (row < row_split ? row : row + row_gap) * y_row"
        " + (k < inner_split ? k : k + inner_gap);"
    )


def _emit_unrolled(text: Text, spec: EndsSpec, form: KernelSpec) -> None:
    """Append the results at both ends of a line, whose terms are read once."""
    left, read = spec.rows.left, dict[tuple[int, int, int], str]()
    ends = [*spec.rows.rows[:left], *spec.rows.rows[left + spec.rows.phases :]]
    for row in ends:
        for source, anchor, offset, _ in row:
            if (source, anchor, offset) not in read:
                value = read[source, anchor, offset] = f"v{len(read)}"
                place = f"(lengths{source} + {offset})" if anchor == FROM_END else str(offset)
                text(f"const number {value} = {load_expr(form, f's{source}[{place} * s{source}_place]')};")
    for number, row in enumerate(ends):
        terms = [f"{literal(term.factor, form.number)} * {read[term[:3]]}" for term in row]
        place = f"{number} * y_place" if number < left else f"({number} + place_gap) * y_place"
        text(f"y[{place}] = {store_expr(form, ' + '.join(terms) or '0')};")


def _emit_everywhere(text: Text, spec: EndsSpec, form: KernelSpec) -> None:
    """Append neighbouring results: far from the ends by the terms of their phases, elsewhere as listed."""
    rows, phases = spec.rows, spec.rows.phases
    text(f"const int first = number_of_place * {phases};")
    with text.block(f"if (first >= {rows.left} && first + {phases} <= length - {rows.right})"):
        for source in range(spec.sources):
            text(f"s{source} += number_of_place * {rows.step} * s{source}_place;")
        text("y += first * y_place;")
        read = dict[tuple[int, int], str]()
        for phase in range(phases):
            terms = []
            for source, _, offset, factor in rows.rows[rows.left + phase]:
                if (source, offset) not in read:
                    value = read[source, offset] = f"v{len(read)}"
                    loaded = load_expr(form, f"s{source}[{offset} * s{source}_place]")
                    text(f"const number {value} = {loaded};")
                terms.append(f"{literal(factor, form.number)} * {read[source, offset]}")
            text(f"y[{phase} * y_place] = {store_expr(form, ' + '.join(terms) or '0')};")
        text("return;")
    stop = f"first + {phases} < length ? first + {phases} : length"
    with text.block(f"for (int place = first; place < ({stop}); ++place)"):
        text(f"const int centre = place / {phases} * {rows.step};")
        far = f"{rows.left + phases} + place - (length - {rows.right})"
        inner = f"{rows.left} + place % {phases}"
        outer = f"place < {rows.left} ? place : {far}"
        text(f"const int list = place >= {rows.left} && place < length - {rows.right} ? {inner} : {outer};")
        _emit_list(text, spec, form)


def _emit_listed(text: Text, spec: EndsSpec, form: KernelSpec) -> None:
    """Append one result at an end, as the tables list it."""
    rows = spec.rows
    text(
        f"const int place = number_of_place < {rows.left} ? number_of_place : number_of_place + place_gap;",
        "const int centre = 0;",
    )
    far = f"{rows.left + rows.phases} + place - (length - {rows.right})"
    text(f"const int list = place < {rows.left} ? place : {far};")
    _emit_list(text, spec, form)


def _emit_list(text: Text, spec: EndsSpec, form: KernelSpec) -> None:
    """Append the sum of a list of terms, which is the result at ``place``."""
    text("number sum = 0;")
    for source in range(spec.sources):
        first = f"begins[{spec.sources} * list + {source}"
        with text.block(f"for (int t = {first}]; t < {first} + 1]; ++t)"):
            base = f"anchors[t] == {FROM_END} ? lengths{source} : anchors[t] == {FROM_CENTRE} ? centre : 0"
            value = load_expr(form, f"s{source}[(({base}) + offsets[t]) * s{source}_place]")
            text(f"sum += factors[t] * {value};")
    text(f"y[place * y_place] = {store_expr(form, 'sum')};")
