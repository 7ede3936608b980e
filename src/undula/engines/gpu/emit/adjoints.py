"""Kernels for the results of adjoints at the ends of lines, where they differ from plain operators.

A function of a kernel combines the numbers of one line as :class:`~undula.lowering.adjoints.BorderRows` lists
it: either the results at both ends of the line, or some of all its results. One axis takes the first of these
functions. The ends of two axes are the frame of a plane, which takes two phases: along one axis for the
results at its ends, into a buffer, and from there along the other axis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ....lowering.adjoints import FROM_CENTRE, FROM_END, BorderRows, Term
from .dialect import Dialect
from .kernel import ELEMENTS, Kernel, KernelSpec, emit_prelude, load_expr, store_expr
from .text import Text, literal

__all__ = [
    "FRAME_EXTENTS",
    "LINE_EXTENTS",
    "FrameSpec",
    "LineSpec",
    "emit_frame_calls",
    "emit_frame_functions",
    "emit_frame_phase",
    "emit_line_ends",
]

LINE_EXTENTS = ("inner", "length", "lengths0", "lengths1")
FRAME_EXTENTS = (
    "height0", "height1", "width0", "width1", "rows0", "rows1", "columns0", "columns1", "inner",
)  # fmt: skip
PHASES = ("ends", "rest")
ITEMS = 128
MAX_UNROLLED_TERMS = 512


@dataclass(frozen=True)
class LineSpec:
    """Results of an adjoint along one axis.

    Parameters
    ----------
    rows : BorderRows
        What the results are made of.
    sources : int
        How many sequences are read.
    source, result : str
        Dtypes of the arrays that are read and written.
    """

    rows: BorderRows
    sources: int
    source: str
    result: str

    @property
    def count(self) -> int:
        """The number of results at both ends of a line."""
        return self.rows.left + self.rows.right

    @property
    def unrolled(self) -> bool:
        """Whether one work item computes all results at both ends of a line."""
        return sum(map(len, self.end_rows)) <= MAX_UNROLLED_TERMS

    @property
    def end_rows(self) -> Sequence[tuple[Term, ...]]:
        """The lists of the results at both ends of a line."""
        return self.rows.rows[: self.rows.left] + self.rows.rows[self.rows.left + self.rows.phases :]

    @property
    def items(self) -> int:
        """How many work items the ends of a line take."""
        return 1 if self.unrolled else self.count

    @property
    def form(self) -> KernelSpec:
        """A specification with the dtypes."""
        return KernelSpec(False, None, None, 1, self.source, self.result)


# --- functions of lines ---------------------------------------------------------------------------


def _emit_head(dialect: Dialect, spec: LineSpec, name: str) -> str:
    """Return the head of a function of one line.

    ``number`` counts its results: those at the ends if they are not unrolled, and otherwise groups of results
    that are made of the same numbers. Results from ``first`` to ``last`` are computed.
    """
    source = f"{dialect.global_memory}const {ELEMENTS[spec.source]} *"
    words = [word for k in range(spec.sources) for word in (f"{source}s{k}", f"{dialect.long} s{k}_place")]
    words += [f"{dialect.global_memory}{ELEMENTS[spec.result]} *y", f"{dialect.long} y_place"]
    words += [
        f"int {word}" for word in ("number_of_place", "length", "lengths0", "lengths1", "first", "last")
    ]
    return f"{dialect.function} void {name}({', '.join(words)})"


def _call_expr(
    name: str, sources: Sequence[tuple[str, str]], result: tuple[str, str], rest: Sequence[str]
) -> str:
    """Return the call of a function of a line, given pointers and strides."""
    words = [word for pair in (*sources, result) for word in pair]
    return f"{name}({', '.join((*words, *rest))});"


def _emit_tables(text: Text, dialect: Dialect, spec: LineSpec, name: str) -> None:
    """Append the terms of all rows: where those of each source begin, their anchors, offsets and factors."""
    begins, terms = [0], []
    for row in spec.rows.rows:
        for source in range(spec.sources):
            terms += [term for term in row if term.sequence == source]
            begins.append(len(terms))
    number = spec.form.number
    tables = {
        f"int {name}_begins": map(str, begins),
        f"int {name}_anchors": (str(term.anchor) for term in terms),
        f"int {name}_offsets": (str(term.offset) for term in terms),
        f"{number} {name}_factors": (literal(term.factor, number) for term in terms),
    }
    for head, values in tables.items():
        text(f"{dialect.constant}{head}[] = {{{', '.join(values) or '0'}}};")


def _emit_ends(text: Text, dialect: Dialect, spec: LineSpec, name: str) -> None:
    """Append the function that computes the results at both ends of a line."""
    if not spec.unrolled:
        _emit_tables(text, dialect, spec, name)
    rows, form, left = spec.rows, spec.form, spec.rows.left
    with text.block(_emit_head(dialect, spec, name)):
        text(f"const int place_gap = last - {spec.count};")
        if not spec.unrolled:
            text(
                f"const int place = number_of_place < {left} ? number_of_place"
                " : number_of_place + place_gap;",
                "const int centre = 0;",
                f"const int list = place < {left} ? place : {left + rows.phases} + number_of_place - {left};",
            )
            _emit_list(text, spec, name)
            return
        read = dict[tuple[int, int, int], str]()
        for row in spec.end_rows:
            for source, anchor, offset, _ in row:
                if (source, anchor, offset) not in read:
                    value = read[source, anchor, offset] = f"v{len(read)}"
                    place = f"(lengths{source} + {offset})" if anchor == FROM_END else str(offset)
                    loaded = load_expr(form, f"s{source}[{place} * s{source}_place]")
                    text(f"const number {value} = {loaded};")
        for number, row in enumerate(spec.end_rows):
            terms = [f"{literal(term.factor, form.number)} * {read[term[:3]]}" for term in row]
            place = f"{number} * y_place" if number < left else f"({number} + place_gap) * y_place"
            text(f"y[{place}] = {store_expr(form, ' + '.join(terms) or '0')};")
    text("")


def _emit_rest(text: Text, dialect: Dialect, spec: LineSpec, name: str) -> None:
    """Append the function of neighbouring results: far from the ends by the terms of their phases."""
    rows, phases, form = spec.rows, spec.rows.phases, spec.form
    _emit_tables(text, dialect, spec, name)
    with text.block(_emit_head(dialect, spec, name)):
        text(f"const int begin = number_of_place * {phases};")
        regular = f"begin >= {rows.left} && begin + {phases} <= length - {rows.right}"
        with text.block(f"if ({regular} && begin >= first && begin + {phases} <= last)"):
            for source in range(spec.sources):
                text(f"s{source} += number_of_place * {rows.step} * s{source}_place;")
            text("y += begin * y_place;")
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
        with text.block(f"for (int place = max(begin, first); place < min(begin + {phases}, last); ++place)"):
            text(f"const int centre = place / {phases} * {rows.step};")
            far = f"{rows.left + phases} + place - (length - {rows.right})"
            inner = f"{rows.left} + place % {phases}"
            outer = f"place < {rows.left} ? place : {far}"
            text(
                f"const int list = place >= {rows.left} && place < length - {rows.right} ? {inner} : {outer};"
            )
            _emit_list(text, spec, name)
    text("")


def _emit_list(text: Text, spec: LineSpec, name: str) -> None:
    """Append the sum of a list of terms, which is the result at ``place``."""
    text("number sum = 0;")
    for source in range(spec.sources):
        begin = f"{name}_begins[{spec.sources} * list + {source}"
        with text.block(f"for (int t = {begin}]; t < {begin} + 1]; ++t)"):
            anchor = f"{name}_anchors[t]"
            base = f"{anchor} == {FROM_END} ? lengths{source} : {anchor} == {FROM_CENTRE} ? centre : 0"
            value = load_expr(spec.form, f"s{source}[(({base}) + {name}_offsets[t]) * s{source}_place]")
            text(f"sum += {name}_factors[t] * {value};")
    text(f"y[place * y_place] = {store_expr(spec.form, 'sum')};")


# --- one axis -------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def emit_line_ends(spec: LineSpec, dialect: Dialect, wide: bool) -> Kernel:
    """Return the kernel of the results at the ends of lines; ``wide`` counts work items in 64 bits.

    The strides of its arrays are those of planes and of places along the axis.
    """
    text = Text()
    names = [f"s{k}" for k in range(spec.sources)]
    arrays = (*names, "y")
    words, integers = _parameters(dialect, [(name, spec.source) for name in names], [("y", spec.result)])
    integers += [("lines", True), *((name, False) for name in LINE_EXTENTS)]
    words += _integer_words(dialect, integers)
    emit_prelude(text, dialect, spec.form)
    _emit_ends(text, dialect, spec, "line_ends")
    with text.block(_kernel_head(dialect, "adjoint_ends", words)):
        kind = dialect.long if wide else "unsigned int"
        text(
            f"const {kind} item = ({kind}){dialect.group} * {ITEMS} + {dialect.item};",
            f"const {kind} line = item / {spec.items};",
            f"const int number_of_place = (int)(item - line * {spec.items});",
            f"const {dialect.long} plane = line / inner;",
            "const int k = (int)(line % inner);",
            "if (line >= lines) return;",
        )
        _emit_pointers(text, dialect, arrays, "k")
        sources = [(name, f"{name}_row") for name in names]
        rest = ("number_of_place", "length", "lengths0", "lengths1", "0", "length")
        text(_call_expr("line_ends", sources, ("y", "y_row"), rest))
    return Kernel("adjoint_ends", str(text) + "\n", ITEMS, arrays, tuple(integers))


def _kernel_head(dialect: Dialect, name: str, words: Sequence[str]) -> str:
    listed = ",\n        ".join(words)
    return f"{dialect.kernel.format(items=ITEMS)} {name}(\n        {listed})"


def _parameters(
    dialect: Dialect, sources: Sequence[tuple[str, str]], results: Sequence[tuple[str, str]]
) -> tuple[list[str], list[tuple[str, bool]]]:
    """Return the pointers of a kernel, given names and dtypes, and the integers of its arrays."""
    words = []
    for const, arrays in (("const ", sources), ("", results)):
        words += [
            f"{dialect.global_memory}{const}{ELEMENTS[dtype]} *{dialect.restrict} {name}"
            for name, dtype in arrays
        ]
    names = [name for name, _ in (*sources, *results)]
    return words, [(f"{name}_{what}", True) for name in names for what in ("start", "plane", "row")]


def _integer_words(dialect: Dialect, integers: Sequence[tuple[str, bool]]) -> list[str]:
    return [f"const {dialect.long if wide else 'int'} {name}" for name, wide in integers]


def _emit_pointers(text: Text, dialect: Dialect, arrays: Sequence[str], place: str = "0") -> None:
    """Append the wait for the previous launch, and pointers to a plane."""
    if dialect.wait_for_previous:
        text(*dialect.wait_for_previous.split("\n"))
    text(*(f"{name} += {name}_start + plane * {name}_plane + {place};" for name in arrays))


# --- two axes -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FrameSpec:
    """The results of adjoints along two axes at the ends of both.

    Parameters
    ----------
    down, along : tuple of BorderRows
        What the sequences of results are made of.
    source, result : str
        Dtypes of the arrays that are read and written.
    columns : bool
        Whether the ends of rows are computed apart; they are not if the ends of columns are the plane.
    """

    down: tuple[BorderRows, ...]
    along: tuple[BorderRows, ...]
    source: str
    result: str
    columns: bool

    @property
    def number(self) -> str:
        """Dtype of the buffer."""
        return "float64" if "float64" in (self.source, self.result) else "float32"

    @property
    def source_names(self) -> list[str]:
        """Names of the arrays that are read, in the order of keys."""
        return [f"s{a}{b}" for a in range(3 - len(self.down)) for b in range(3 - len(self.along))]

    @property
    def result_names(self) -> list[str]:
        """Names of the arrays that are written, in the order of keys."""
        return [f"y{a}{b}" for a in range(len(self.down)) for b in range(len(self.along))]

    def line(self, axis: int, sequence: int, phase: str) -> LineSpec:
        """Return the results along an axis in one of the phases."""
        rows, dtypes = (self.down, self.along)[axis], (self.source, self.number, self.result)
        first = PHASES.index(phase)
        return LineSpec(rows[sequence], 3 - len(rows), *dtypes[first : first + 2])

    @property
    def ends(self) -> Iterator[tuple[int, int, LineSpec]]:
        """The axes and sequences whose results at the ends are computed, and those results."""
        for axis, rows in ((1, self.along), (0, self.down)):
            for sequence, row in enumerate(rows):
                if row.changed and (axis == 0 or self.columns):
                    yield axis, sequence, self.line(axis, sequence, "ends")

    def sizes(self, extents: Sequence[int]) -> tuple[int, int, int]:
        """Return the work items of both phases for one plane, and the elements of its buffer.

        ``extents`` are those of :data:`FRAME_EXTENTS`.
        """
        height, width, rows, columns, inner = *(extents[k : k + 2] for k in (0, 2, 4, 6)), extents[8]
        ends = rest = size = 0
        for axis, _, line in self.ends:
            across = (height if axis else width)[: 3 - len((self.along, self.down)[axis])]
            lines = sum(across) * inner
            ends, size = ends + lines * line.items, size + lines * line.count
            others = self.down if axis else self.along
            for other, length in zip(others, rows if axis else columns, strict=False):
                rest += -(-length // other.phases) * line.count * inner
        return ends, rest, size


def emit_frame_functions(
    text: Text, dialect: Dialect, spec: FrameSpec, suffix: str = "", phases: Sequence[str] = PHASES
) -> None:
    """Append the functions of phases, which take the number of a work item and a plane."""
    axes = [axis for axis, _, _ in spec.ends]
    if "ends" in phases:
        for axis, sequence, line in spec.ends:
            _emit_ends(text, dialect, line, _line_name(axis, sequence, "ends", suffix))
    if "rest" in phases:
        for axis, rows in enumerate((spec.down, spec.along)):
            for sequence in range(len(rows) if 1 - axis in axes else 0):
                name = _line_name(axis, sequence, "rest", suffix)
                _emit_rest(text, dialect, spec.line(axis, sequence, "rest"), name)
    for phase in phases:
        head = f"void frame_{phase}{suffix}({_frame_words(dialect, spec, phase)})"
        with text.block(f"{dialect.function} {head}"):
            (_emit_frame_ends if phase == "ends" else _emit_frame_rest)(text, dialect, spec, suffix)
        text("")


def _line_name(axis: int, sequence: int, phase: str, suffix: str) -> str:
    return f"{('down', 'along')[axis]}{sequence}_{phase}{suffix}"


def _frame_arrays(spec: FrameSpec, phase: str) -> list[str]:
    return spec.source_names if phase == "ends" else spec.result_names


def _frame_words(dialect: Dialect, spec: FrameSpec, phase: str) -> str:
    const, element = ("const ", spec.source) if phase == "ends" else ("", spec.result)
    words = ["int item", f"{dialect.global_memory}{ELEMENTS[spec.number]} *frame"]
    for name in _frame_arrays(spec, phase):
        words += [f"{dialect.global_memory}{const}{ELEMENTS[element]} *{name}", f"{dialect.long} {name}_row"]
    return ", ".join((*words, *(f"int {name}" for name in FRAME_EXTENTS)))


def _emit_frame_ends(text: Text, dialect: Dialect, spec: FrameSpec, suffix: str) -> None:
    """Append the first phase: results at the ends of one axis, for all lines of the sources."""
    for axis, sequence, line in spec.ends:
        name = _line_name(axis, sequence, "ends", suffix)
        across, places = ("height", "width") if axis else ("width", "height")
        for other in range(3 - len((spec.along, spec.down)[axis])):
            pairs = range(line.sources)
            with text.block():
                text(f"const int lines = {across}{other} * inner;")
                with text.block(f"if (item < lines * {line.items})"):
                    text(f"const int number = item % {line.items}, n = item / {line.items};")
                    if axis:
                        text("const int p = n / inner, c = n % inner;")
                        sources = [
                            (f"s{other}{k} + p * s{other}{k}_row + c", f"({dialect.long})inner")
                            for k in pairs
                        ]
                        target = (f"frame + p * {line.count} * inner + c", f"({dialect.long})inner")
                    else:
                        sources = [(f"s{k}{other} + n", f"s{k}{other}_row") for k in pairs]
                        target = ("frame + n", f"({dialect.long})lines")
                    lengths = (f"{places}0", f"{places}1", "0", str(line.count))
                    text(_call_expr(name, sources, target, ("number", "0", *lengths)), "return;")
                text(f"item -= lines * {line.items};", f"frame += lines * {line.count};")


def _emit_frame_rest(text: Text, dialect: Dialect, spec: FrameSpec, suffix: str) -> None:
    """Append the second phase: from the buffer along the other axis, into the results."""
    long, pointer = dialect.long, f"{dialect.global_memory}const {ELEMENTS[spec.number]} *"
    for axis, sequence, line in spec.ends:
        rows, others = line.rows, (spec.down if axis else spec.along)
        across = "height" if axis else "width"
        parts = [f"part{axis}{sequence}{k}" for k in range(3 - len(others))]
        for k, part in enumerate(parts):
            text(f"{pointer}{part} = frame;", f"frame += {across}{k} * inner * {line.count};")
        for number, other in enumerate(others):
            name = _line_name(1 - axis, number, "rest", suffix)
            result = f"y{number}{sequence}" if axis else f"y{sequence}{number}"
            length = f"rows{number}" if axis else f"columns{number}"
            with text.block():
                text(
                    f"const int groups = ({length} + {other.phases - 1}) / {other.phases};",
                    f"const int lines = groups * {line.count} * inner;",
                )
                with text.block("if (item < lines)"):
                    if axis:
                        text(
                            f"const int k = item % ({line.count} * inner);",
                            f"const int number = item / ({line.count} * inner);",
                            f"const int place = k < {rows.left} * inner ? k"
                            f" : k + (columns{sequence} - {line.count}) * inner;",
                        )
                        stride = f"({long}){line.count} * inner"
                        sources = [(f"{part} + k", stride) for part in parts]
                        target = f"{result} + place", f"{result}_row"
                        # The ends of columns belong to the other axis.
                        ends = (other.left, other.right) if other.changed else (0, 0)
                        first, last = str(ends[0]), f"{length} - {ends[1]}"
                    else:
                        text(
                            "const int c = item % inner, number = item / inner % groups;",
                            "const int k = item / inner / groups;",
                            f"const int place = k < {rows.left} ? k : k + rows{sequence} - {line.count};",
                        )
                        sources = [
                            (f"{part} + k * width{m} * inner + c", f"({long})inner")
                            for m, part in enumerate(parts)
                        ]
                        target = f"{result} + place * {result}_row + c", f"({long})inner"
                        first, last = "0", length
                    extents = (length, f"{across}0", f"{across}1", first, last)
                    text(_call_expr(name, sources, target, ("number", *extents)), "return;")
                text("item -= lines;")


def emit_frame_calls(
    text: Text, dialect: Dialect, spec: FrameSpec, suffix: str, items: int, words: Mapping[str, Sequence[str]]
) -> None:
    """Append both phases for a plane, which a group of so many work items computes.

    ``words`` has, for each phase, the number of its work items and the arguments of its function.
    """
    for phase in PHASES:
        count, *arguments = words[phase]
        with text.block(f"for (int item = {dialect.item}; item < {count}; item += {items})"):
            text(f"frame_{phase}{suffix}(item, {', '.join(arguments)});")
        text(dialect.memory_barrier)


@lru_cache(maxsize=512)
def emit_frame_phase(spec: FrameSpec, phase: str, dialect: Dialect) -> Kernel:
    """Return the kernel of one of the phases for all planes."""
    text = Text()
    arrays = _frame_arrays(spec, phase)
    if phase == "ends":
        words, integers = _parameters(
            dialect, [(name, spec.source) for name in arrays], [("frame", spec.number)]
        )
        arrays = [*arrays, "frame"]
    else:
        words, integers = _parameters(
            dialect, [], [("frame", spec.number), *((name, spec.result) for name in arrays)]
        )
        arrays = ["frame", *arrays]
    integers += [("planes", True), *((name, False) for name in ("items", *FRAME_EXTENTS))]
    words += _integer_words(dialect, integers)
    name = f"adjoint_frame_{phase}"
    emit_prelude(text, dialect, KernelSpec(False, None, None, 1, spec.source, spec.result))
    emit_frame_functions(text, dialect, spec, phases=(phase,))
    with text.block(_kernel_head(dialect, name, words)):
        text(
            f"const {dialect.long} number = ({dialect.long}){dialect.group} * {ITEMS} + {dialect.item};",
            f"const {dialect.long} plane = number / items;",
            "if (plane >= planes) return;",
        )
        _emit_pointers(text, dialect, arrays)
        words = ["(int)(number % items)", "frame"]
        for array in _frame_arrays(spec, phase):
            words += [array, f"{array}_row"]
        text(f"frame_{phase}({', '.join((*words, *FRAME_EXTENTS))});")
    return Kernel(name, str(text) + "\n", ITEMS, tuple(arrays), tuple(integers))
