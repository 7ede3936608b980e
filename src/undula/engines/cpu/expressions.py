"""Expressions compiled to kernels.

A kernel is a nest of four loops over the places of a result, the last one along contiguous samples. Its text
depends on the structure of expressions alone: constants, addresses, lengths and strides are arguments. So
there are few different kernels, and :mod:`.compiled` keeps them on disk.

The arguments of a kernel, in words:

    0 … 7   the first place and the one after the last, for each loop
    8       the number of rows, for windows
    9       the address of the constants
    10      the address of memory of the thread
    11 …    what belongs to the kind of kernel, then the operands: for each one its address and four strides
            in bytes; if it belongs to the next coarser level, an offset and the last place along three axes
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays import ArrayView
from ...lowering.expressions import OPERATIONS, Constant, Expression, Load, WindowSum, loads
from .executable import CALL_BYTES, SCRATCH_BUFFER, KernelCall
from .executable import address as array_address
from .kernel_layout import BINS
from .machine_code import source_address

__all__ = ["MAX_BOX_RADIUS", "KernelPart", "Nest", "UnsupportedExpressionError", "cut"]

Shape = tuple[int, ...]
Ranges = tuple[tuple[int, int], ...]

LOOPS = 4
FIRST_EXTRA = 11
MAX_WORDS = CALL_BYTES // 8 - 1
MAX_BOX_RADIUS = 4  # Wider windows are summed as those of other weights.
MAX_UNROLLED_RADIUS = 8
MAX_LITERAL_STEPS = 2  # Strides up to so many samples are written into kernels.
MAX_ROWS_AT_ONCE = 6  # More arrays in one loop are not vectorized: too many of them could overlap.
LOADABLE = {
    "float32",
    "float64",
    "bool",
    "uint8",
    "int8",
    "uint16",
    "int16",
    "uint32",
    "int32",
    "uint64",
    "int64",
}


class UnsupportedExpressionError(Exception):
    """No kernel can compute an expression."""


@dataclass(frozen=True)
class KernelPart:
    """Calls of kernels, one after the other, and how many samples they compute."""

    calls: list[KernelCall]
    samples: int


def cut(lengths: Sequence[int], size: int, least: int = 1) -> Iterator[Ranges]:
    """Cut loops into parts of about ``size`` places, the outer loops first; see ``ranges`` of threads.

    Parts have at least ``least`` places of the last loop that is given.

    Examples
    --------
    >>> list(cut((2, 10), 5))
    [((0, 1), (0, 5)), ((0, 1), (5, 10)), ((1, 2), (0, 5)), ((1, 2), (5, 10))]
    """
    if not lengths:
        yield ()
        return
    inner = math.prod(lengths[1:])
    step = max(1, size // max(1, inner), least if len(lengths) == 1 else 1)
    count = -(-lengths[0] // step)
    for k in range(count):
        part = lengths[0] * k // count, lengths[0] * (k + 1) // count
        if inner > size and len(lengths) > 1:
            for rest in cut(lengths[1:], size, least):
                yield part, *rest
        else:
            yield part, *((0, n) for n in lengths[1:])


@dataclass
class Operand:
    """An array of a kernel: strides in bytes along all axes, and which axes belong to the coarser level."""

    view: ArrayView
    strides: list[int]
    lasts: list[int] = field(default_factory=list)  # for coarser arrays, the last place, or -1
    offset: int = 0

    @property
    def finer(self) -> bool:
        """Whether the result belongs to the next finer level."""
        return any(last >= 0 for last in self.lasts)

    @property
    def is_row(self) -> bool:
        """Whether samples of a row are beside each other."""
        return not self.finer and self.strides[-1] == self.view.itemsize


def _operand(view: ArrayView, shape: Shape, finer: Shape = (), offset: int = 0) -> Operand:
    missing = len(shape) - len(view.shape)
    lengths, size = (1,) * missing + view.shape, view.itemsize
    strides = [0] * missing + [s * size for s in view.strides]
    coarse = len(shape) - len(finer)
    lasts = [n - 1 if axis >= coarse else -1 for axis, n in enumerate(lengths)] if finer else []
    if not finer and any(n not in (1, m) for n, m in zip(lengths, shape, strict=True)):
        raise ValueError(f"cannot broadcast an array of shape {view.shape} to {shape}")
    return Operand(view, [0 if n == 1 else s for n, s in zip(lengths, strides, strict=True)], lasts, offset)


class Nest:
    """Four loops over the places of a result, and the operands of expressions there.

    Parameters
    ----------
    shape : tuple of int
        The shape of the result.
    expressions : sequence of Expression
    result : ArrayView, optional
    apart : int, default 0
        Number of the last axes that must not be joined with others, or -1 to keep the first one apart.
    """

    def __init__(
        self, shape: Shape, expressions: Sequence[Expression], result: ArrayView | None = None, apart: int = 0
    ) -> None:
        self.operands: list[Operand] = []
        self.numbers: dict[int, int] = {}  # of the operand of each load
        known: dict[tuple[Any, ...], int] = {}
        for load in loads(*expressions):
            if load.view.dtype not in LOADABLE:
                raise UnsupportedExpressionError(f"no kernel loads {load.view.dtype}")
            key = (*load.view[:5], load.finer, load.offset)
            if key not in known:
                known[key] = len(self.operands)
                self.operands.append(_operand(load.view, shape, load.finer, load.offset))
            self.numbers[id(load)] = known[key]
        dtypes = [np.dtype(o.view.dtype) for o in self.operands if o.view.dtype != "bool"]
        if not dtypes and result is not None and result.dtype != "bool":
            dtypes = [np.dtype(result.dtype)]
        kind = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
        self.dtype = str(kind) if kind.kind == "f" else "float64"
        if result is not None:
            if result.dtype not in LOADABLE:
                raise UnsupportedExpressionError(f"no kernel stores {result.dtype}")
            self.operands.append(_operand(result, shape))
        self.result = result
        self.lengths = self._joined(shape, apart)
        self.constants: list[float] = []
        count = FIRST_EXTRA + len(MEDIAN_WORDS) + sum(9 if o.finer else 5 for o in self.operands)
        if count > MAX_WORDS:
            raise UnsupportedExpressionError(f"a kernel would have {count} arguments")

    @property
    def itemsize(self) -> int:
        """The size of the numbers that are computed with."""
        return np.dtype(self.dtype).itemsize

    def _joined(self, shape: Shape, apart: int) -> Shape:
        """Join axes that all operands have in order, and return four lengths."""
        joined: list[tuple[int, list[int]]] = []  # length, and the axes, of which the last one gives strides
        first_apart = len(shape) - apart if apart > 0 else len(shape)
        for axis, n in enumerate(shape):
            fixed = axis >= first_apart or (apart < 0 and axis == 0)
            if n == 1 and not fixed and not any(o.lasts and o.lasts[axis] >= 0 for o in self.operands):
                continue
            after_fixed = apart < 0 and joined and joined[-1][1] == [0]
            if joined and not fixed and not after_fixed and self._continues(joined[-1][1][-1], axis, n):
                joined[-1] = joined[-1][0] * n, [*joined[-1][1], axis]
            else:
                joined.append((n, [axis]))
        if len(joined) > LOOPS:
            raise UnsupportedExpressionError(f"no kernel has loops for shape {shape}")
        missing = LOOPS - len(joined)
        axes = [(n, group[-1]) for n, group in joined]
        if apart < 0:
            axes = [*axes[:1], *[(1, -1)] * missing, *axes[1:]]
        else:
            axes = [*[(1, -1)] * missing, *axes]
        for o in self.operands:
            o.strides = [0 if axis < 0 else o.strides[axis] for _, axis in axes]
            o.lasts = [-1 if axis < 0 or not o.lasts else o.lasts[axis] for _, axis in axes]
            if o.lasts[0] >= 0:
                raise UnsupportedExpressionError("no kernel has so many axes of a coarser level")
        return tuple(n for n, _ in axes)

    def _continues(self, before: int, axis: int, n: int) -> bool:
        return all(
            o.strides[before] == o.strides[axis] * n
            and (not o.lasts or (o.lasts[before] < 0 and o.lasts[axis] < 0))
            for o in self.operands
        )

    def call(
        self,
        text: str,
        dtype: str,
        table: NDArray[np.float64],
        ranges: Ranges,
        extras: Sequence[tuple[int, int]] = (),
        locate: Callable[[ArrayView], tuple[int, int]] = lambda view: (0, 0),
    ) -> KernelCall:
        """Return a call of a kernel.

        Parameters
        ----------
        text : str
        dtype : str
            The dtype by which the tape tells kernels the type of samples.
        table : ndarray
            The constants.
        ranges : tuple of (int, int)
            Of each loop.
        extras : sequence of (int, int)
            Words of this kind of kernel, each with the buffer that it is relative to, or -1.
        locate : callable
            Returns the buffer of a view, and the byte in it where the view begins.
        """
        words: list[int] = [bound for pair in ranges for bound in pair]
        words += [self.lengths[2], array_address(table), CALL_BYTES]
        relocations = [(len(words) - 1, SCRATCH_BUFFER)]
        for word, buffer in extras:
            if buffer >= 0:
                relocations.append((len(words), buffer))
            words.append(word)
        for o in self.operands:
            buffer, start = locate(o.view)
            relocations.append((len(words), buffer))
            words += [start, *o.strides]
            if o.finer:
                words += [o.offset, *o.lasts[1:]]
        kernel = source_address(text, dtype)
        return KernelCall(
            kernel,
            1,
            [8, *words],
            [(0, SCRATCH_BUFFER), *((word + 1, buffer) for word, buffer in relocations)],
        )


class KernelText:
    """The text of a kernel while it is written.

    ``lines`` has what is computed once (0), and for each plane (1). What is computed for each row and each
    sample is returned by :meth:`row`.
    """

    def __init__(self, nest: Nest, first: int) -> None:
        self.nest = nest
        self.lines: list[list[str]] = [[], []]
        self._shared: dict[Any, tuple[str, int]] = {}
        self._count = 0
        self.doubled = 0  # rows of memory for coarser levels
        self.places: list[int] = []
        for o in nest.operands:
            self.places.append(first)
            first += 9 if o.finer else 5

    def name(self) -> str:
        """Return a new name."""
        self._count += 1
        return f"v{self._count}"

    def address(self, number: int, row: str) -> str:
        """Return the address of a row of an operand."""
        o, at = self.nest.operands[number], self.places[number]
        parts = [f"w[{at}]"]
        for k, index in enumerate(("i0", "i1", row)):
            if o.finer and o.lasts[k] >= 0:
                index = f"min(({index} + w[{at + 5}]) >> 1, w[{at + 5 + k}])"
            if k < 2 or o.strides[k]:
                parts.append(f"{index} * w[{at + 1 + k}]")
        if o.strides[3] and not o.finer:
            parts.append(f"begin3 * w[{at + 4}]")
        return " + ".join(parts)

    def target(self, row: str = "i2") -> list[str]:
        """Return the lines by which the row of the result is found."""
        number = len(self.nest.operands) - 1
        return [
            f"out_start = {self.address(number, row)}",
            f"out = reals(out_start, {self.like(number)})",
        ]

    def step(self, number: int) -> str:
        """Return the stride of an operand along a row; LLVM makes vectors of small ones that it knows."""
        o, at = self.nest.operands[number], self.places[number]
        if abs(o.strides[3]) <= MAX_LITERAL_STEPS * o.view.itemsize:
            return str(o.strides[3])
        key = "step", number
        if key not in self._shared:
            name = self.name()
            self.lines[0].append(f"{name} = w[{at + 4}]")
            self._shared[key] = name, 0
        return self._shared[key][0]

    def store(self, value: str) -> str:
        """Return the line that stores a value at place j of the result."""
        number, result = len(self.nest.operands) - 1, self.nest.result
        assert result is not None
        stride = self.nest.operands[number].strides[3]
        place = "out[j]"
        if stride not in (0, result.itemsize):  # Numba would count a negative index from the end.
            place = f"reals(out_start + j * {self.step(number)}, {self.like(number)})[0]"
        if result.dtype == "bool":
            return f"{place} = 1 if {value} else 0"
        return f"{place} = np.{result.dtype}({value})"

    def like(self, number: int) -> str:
        """Return a number of the type of an operand."""
        dtype = self.nest.operands[number].view.dtype
        return f"np.{'uint8' if dtype == 'bool' else dtype}(0)"

    def row(self, expression: Expression, row: str, window: str = "") -> tuple[list[str], list[str], str]:
        """Return the lines for each row and for each sample, and the name of the value of a sample."""
        row_lines: list[str] = []
        sample_lines: list[str] = []
        local: dict[Any, tuple[str, int]] = {}

        def keep(key: Any, level: int, line: Callable[[str], str]) -> tuple[str, int]:
            table = self._shared if level < 2 else local
            if key not in table:
                name = self.name()
                (self.lines[level] if level < 2 else (row_lines, sample_lines)[level - 2]).append(line(name))
                table[key] = name, level
            return table[key]

        def load(number: int) -> tuple[str, int]:
            o = self.nest.operands[number]
            is_bool, real = o.view.dtype == "bool", o.view.dtype == self.nest.dtype
            convert = "{} != 0" if is_bool else "{}" if real else f"np.{self.nest.dtype}({{}})"
            if o.finer:
                if not real:
                    raise UnsupportedExpressionError("a coarser level has another dtype")
                pointer, _ = self._doubled_row(number, row, row_lines, local)
                return keep((number, "sample"), 3, lambda name: f"{name} = {pointer}[j]")
            if not o.strides[3]:
                level = 2 if o.strides[2] else 1
                source = f"reals({self.address(number, row)}, {self.like(number)})[0]"
                return keep(number, level, lambda name: f"{name} = {convert.format(source)}")
            if not o.is_row:
                start, _ = keep((number, "row"), 2, lambda name: f"{name} = {self.address(number, row)}")
                source = f"reals({start} + j * {self.step(number)}, {self.like(number)})[0]"
                return keep((number, "sample"), 3, lambda name: f"{name} = {convert.format(source)}")
            pointer, _ = keep(
                number, 2, lambda name: f"{name} = reals({self.address(number, row)}, {self.like(number)})"
            )
            return keep((number, "sample"), 3, lambda name: f"{name} = {convert.format(f'{pointer}[j]')}")

        def visit(part: Expression) -> tuple[str, int]:
            if isinstance(part, Constant):
                return self._constant(part)
            if isinstance(part, WindowSum):
                return window, 3
            if isinstance(part, Load):
                return load(self.nest.numbers[id(part)])
            key = (part.operation, id(part))
            for table in (self._shared, local):
                if key in table:
                    return table[key]
            arguments = [visit(argument) for argument in part.arguments]
            level = max(level for _, level in arguments)
            names = [name for name, _ in arguments]
            template = OPERATIONS[part.operation].python
            return keep(key, level, lambda name: f"{name} = {template.format(*names, type=self.nest.dtype)}")

        value, _ = visit(expression)
        return row_lines, sample_lines, value

    def _constant(self, constant: Constant) -> tuple[str, int]:
        key = ("constant", id(constant))
        if key not in self._shared:
            name = self.name()
            self.lines[0].append(f"{name} = np.{self.nest.dtype}(numbers[{len(self.nest.constants)}])")
            self.nest.constants.append(constant.value)
            self._shared[key] = name, 0
        return self._shared[key]

    def _doubled_row(
        self, number: int, row: str, row_lines: list[str], local: dict[Any, tuple[str, int]]
    ) -> tuple[str, int]:
        """Return the name of a row of the coarser level, in which each sample stands twice."""
        if number not in local:
            o, at = self.nest.operands[number], self.places[number]
            pointer, known = self.name(), self.name()
            place = f"w[10] + doubled + {self.doubled} * pitch"
            self.doubled += 1
            self.lines[1].append(f"{known} = -1")
            current = f"min(({row} + w[{at + 5}]) >> 1, w[{at + 7}])" if o.lasts[2] >= 0 else row
            row_lines += [
                f"if {current} != {known}:",
                f"    {known} = {current}",
                f"    source = {self.address(number, row)}",
                f"    double_row(source, {place}, n, w[{at + 5}], w[{at + 8}], w[{at + 4}], unit)",
                f"{pointer} = reals({place}, unit)",
            ]
            local[number] = pointer, 2
        return local[number]

    def planes(self, rows: Sequence[str]) -> list[str]:
        """Return loops over planes and rows around the lines of a row."""
        return [
            "for i1 in range(begin1, end1):",
            *_indented(self.lines[1]),
            "    for i2 in range(begin2, end2):",
            *_indented(rows, 2),
        ]

    def kernel(self, lines: Sequence[str], pitch: str = "n", doubled: str = "0") -> str:
        """Return the text of the kernel, given what it does for each item.

        ``pitch`` is the number of samples of a row in memory of the thread, and ``doubled`` where there are
        rows for coarser levels.
        """
        bounds = ", ".join(f"{name}{k}" for k in range(LOOPS) for name in ("begin", "end"))
        head = [
            f"{bounds} = {', '.join(f'w[{k}]' for k in range(2 * LOOPS))}",
            f"n = end{LOOPS - 1} - begin{LOOPS - 1}",
            f"unit = np.{self.nest.dtype}(0)",
            f"size = {self.nest.itemsize}",
            f"pitch = {_pitch(pitch)}",
            f"doubled = {doubled}",
            "numbers = reals(w[9], np.float64(0))",
            *self.lines[0],
        ]
        loop = ["for i0 in range(begin0, end0):", *_indented(lines)]
        return (
            "\n".join(["def kernel(block, like):", "    w = words(block)", *_indented([*head, *loop])]) + "\n"
        )


def _pitch(samples: str) -> str:
    return f"(({samples}) * size + 127) & -64"


def row_bytes(samples: int, itemsize: int) -> int:
    """Return the size of a row in memory of the thread, as kernels compute it."""
    return (samples * itemsize + 127) & -64


def _indented(lines: Sequence[str], depth: int = 1) -> list[str]:
    return [f"{'    ' * depth}{line}" for line in lines]


# --- kinds of kernels -----------------------------------------------------------------------------


def pointwise_text(nest: Nest, value: Expression) -> str:
    """Return the kernel that stores the value of an expression."""
    text = KernelText(nest, FIRST_EXTRA)
    rows, samples, name = text.row(value, "i2")
    loop = ["for j in range(n):", *_indented([*samples, text.store(name)])]
    return text.kernel(text.planes([*rows, *text.target(), *loop]))


def total_text(nest: Nest, source: Expression, kind: str) -> str:
    """Return the kernel that sums an expression, or finds its maximum, for each item.

    Its extra word is the address of one number, a float64, for each item.
    """
    text = KernelText(nest, FIRST_EXTRA + 1)
    rows, samples, name = text.row(source, "i2")
    if kind == "sum":
        first, part, join = "0.0", f"part += np.float64({name})", "total += part"
    else:
        first, part, join = "-np.inf", f"part = max(part, np.float64({name}))", "total = max(total, part)"
    row = [*rows, f"part = {first}", "for j in range(n):", *_indented([*samples, part]), join]
    end = "reals(w[11] + 8 * i0, np.float64(0))[0] = total"
    return text.kernel([f"total = {first}", *text.planes(row), end])


# Extra words of the kernel for medians, from 11 on.
MEDIAN_WORDS = (
    "counts", "counts_step", "state", "state_step", "candidates", "candidates_step", "limits", "limits_step",
    "results", "results_step", "phases", "splits", "split", "capacity",
)  # fmt: skip
TALLY, LOCATE, GATHER, SELECT = 1, 2, 4, 8
STATE_BYTES = 64  # The state of a median; the number of candidates of each split is behind it.
COUNTS_BYTES = 2 * 4 * (BINS + 1)


def median_text(nest: Nest, source: Expression, result: str) -> str:
    """Return the kernel that finds the median of magnitudes for each item, in phases.

    Magnitudes are counted by their leading bits first; only those around the median are compared.
    """
    text = KernelText(nest, FIRST_EXTRA + len(MEDIAN_WORDS))
    if isinstance(source, Load) and nest.operands[0].is_row and nest.operands[0].view.dtype == nest.dtype:
        row = [f"row = {text.address(0, 'i2')}"]
    else:
        rows, samples, name = text.row(source, "i2")
        row = [*rows, "row = w[10]", "line = reals(row, unit)"]
        row += ["for j in range(n):", *_indented([*samples, f"line[j] = {name}"])]
    bits = 8 * nest.itemsize
    most = int(np.array(np.inf, nest.dtype).view(f"int{bits}"))
    head = [
        *(f"{name} = w[{FIRST_EXTRA + k}]" for k, name in enumerate(MEDIAN_WORDS)),
        f"bit = np.int{bits}(0)",
        f"shift, mask = np.int{bits}({bits - 13}), np.int{bits}({2 ** (bits - 1) - 1})",
        f"most, step = np.int{bits}({most}), np.int{bits}(1)",
        "limit = limits + i0 * limits_step",
        "least = bit",
        "if not reals(limit, unit)[0] < 0:",
        f"    least = np.int{bits}(min(reals(limit, bit)[0] & mask, most - step) + step)",
        "place = state + i0 * state_step",
        "table = counts + i0 * counts_step",
        f"part = table + split * {COUNTS_BYTES}",
        "gathered = candidates + i0 * candidates_step",
        f"number = words(place + {STATE_BYTES} + 8 * split)",
        "located = words(place)",
    ]
    low = f"np.int{bits}(located[1]), np.int{bits}(located[2])"
    work = [
        f"if phases & {TALLY}:",
        "    zero_counts(part)",
        *_indented(text.planes([*row, "tally(row, n, part, shift, mask, least, most, bit)"])),
        f"if phases & {LOCATE}:",
        "    locate_median(place, table, splits, shift, least, most)",
        f"if phases & {GATHER}:",
        "    count = 0",
        "    if located[0] > 0:",
        f"        low, high = {low}",
        "        target = gathered + split * capacity * size",
        *_indented(text.planes([*row, "count = gather(row, n, target, count, low, high, mask, bit)"]), 2),
        "    number[0] = count",
        f"if phases & {SELECT}:",
        f"    gathered_counts = place + {STATE_BYTES}",
        "    middle = select_median(place, gathered, gathered_counts, splits, capacity, table, bit, unit)",
        f"    reals(results + i0 * results_step, np.{result}(0))[0] = middle",
    ]
    return text.kernel([*head, *work])


def box_text(nest: Nest, source: Expression, value: Expression, down: int, along: int) -> str:
    """Return the kernel for the mean over a small box; its extra word is the address of the weight.

    Sums along rows are kept in pairs of rows, so that a sum down the columns is half as long.
    """
    text = KernelText(nest, FIRST_EXTRA + 1)
    source_rows, source_samples, squared = text.row(source, "mirrored(i2, w[8])")
    rows, samples, name = text.row(value, "row", "window")
    width = 2 * along + 1
    pairs = [f"p{k}[j]" for k in range(down)]
    body = [
        *source_rows,
        f"line = reals(w[10] + {along} * size, unit)",
        "for j in range(n):",
        *_indented([*source_samples, f"line[j] = {squared}"]),
        f"mirror_ends(w[10], n, {along}, unit)",
        *(f"a{k} = reals(w[10] + {k} * size, unit)" for k in range(width)),
        "last = reals(w[10] + (1 + (i2 & 1)) * pitch, unit)",
        "previous = reals(w[10] + (2 - (i2 & 1)) * pitch, unit)",
        f"pair = reals(w[10] + (3 + (i2 - begin2 + {3 * down - 1}) % {2 * down}) * pitch, unit)"
        if down
        else "",
        "for j in range(n):",
        f"    total = {_balanced([f'a{k}[j]' for k in range(width)])}",
        "    pair[j] = previous[j] + total" if down else "",
        "    last[j] = total",
        f"if i2 >= begin2 + {down}:",
        f"    row = i2 - {down}",
        *_indented(rows),
        *_indented(text.target("row")),
        *(
            f"    p{k} = reals(w[10] + (3 + (i2 - begin2 + {down + 2 * k}) % {2 * down}) * pitch, unit)"
            for k in range(down)
        ),
        "    for j in range(n):",
        f"        window = {_balanced([*pairs, 'last[j]'])} * weight",
        *_indented([*samples, text.store(name)], 2),
    ]
    body = [line for line in body if line]
    planes = [
        f"weight = np.{nest.dtype}(reals(w[11], np.float64(0))[0])",
        "for i1 in range(begin1, end1):",
        *_indented(text.lines[1]),
        f"    for i2 in range(begin2 - {down}, end2 + {down}):",
        *_indented(body, 2),
    ]
    return text.kernel(planes, f"n + {2 * along}", f"{3 + 2 * down} * pitch")


def window_text(nest: Nest, source: Expression, value: Expression, down: int, along: int) -> str:
    """Return the kernel for a window of any weights.

    Its extra words are the radii down and along, and the addresses of the weights down and along. The text
    has the sums of small windows; large ones are summed by loops.
    """
    text = KernelText(nest, FIRST_EXTRA + 4)
    source_rows, source_samples, summed = text.row(source, "mirrored(i2, w[8])")
    rows, samples, name = text.row(value, "row", "window")
    other_row = "ring + (i2 - begin2 + down + 1 + {}) % slots * pitch"
    body = [
        *source_rows,
        "line = reals(w[10] + along * size, unit)",
        "for j in range(n):",
        *_indented([*source_samples, f"line[j] = {summed}"]),
        "mirror_ends(w[10], n, along, unit)",
        "last = ring + (i2 - begin2 + down) % slots * pitch",
        *_weighted_rows(nest.dtype, "last", "w[10] + {} * size", "along", along),
        "if i2 >= begin2 + down:",
        "    row = i2 - down",
        *_indented(rows),
        *_indented(text.target("row")),
        "    total = w[10] + pitch",
        *_indented(_weighted_rows(nest.dtype, "total", other_row, "down", down)),
        "    totals = reals(total, unit)",
        "    for j in range(n):",
        "        window = totals[j]",
        *_indented([*samples, text.store(name)], 2),
    ]
    planes = [
        "down, along, slots, ring = w[11], w[12], 2 * w[11] + 1, w[10] + 2 * pitch",
        "weights_down, weights_along = reals(w[13], np.float64(0)), reals(w[14], np.float64(0))",
        "for i1 in range(begin1, end1):",
        *_indented(text.lines[1]),
        "    for i2 in range(begin2 - down, end2 + down):",
        *_indented(body, 2),
    ]
    return text.kernel(planes, "n + 2 * w[12]", "(3 + 2 * w[11]) * pitch")


def _weighted_rows(dtype: str, target: str, place: str, axis: str, radius: int) -> list[str]:
    """Return the lines that add up rows with weights; ``place`` is the address of a row, given its number."""
    if radius > MAX_UNROLLED_RADIUS:
        return [
            f"for k in range(2 * {axis} + 1):",
            f"    add_scaled({target}, {place.format('k')}, n, weights_{axis}[k], k == 0, unit)",
        ]
    lines = [f"sums = reals({target}, unit)"]
    for first in range(0, 2 * radius + 1, MAX_ROWS_AT_ONCE):
        numbers = range(first, min(first + MAX_ROWS_AT_ONCE, 2 * radius + 1))
        lines += [f"a{k} = reals({place.format(k)}, unit)" for k in numbers]
        lines += [f"f{k} = np.{dtype}(weights_{axis}[{k}])" for k in numbers]
        terms = [f"f{k} * a{k}[j]" for k in numbers]
        lines += ["for j in range(n):", f"    sums[j] = {_balanced([*['sums[j]'] * (first > 0), *terms])}"]
    return lines


def _balanced(terms: Sequence[str]) -> str:
    """Return a sum of neighbours first."""
    if len(terms) == 1:
        return terms[0]
    half = 1 << ((len(terms) - 1).bit_length() - 1)
    return f"({_balanced(terms[:half])} + {_balanced(terms[half:])})"


COMBINE_TEXT = """
def kernel(block, like):
    w = words(block)
    parts, out = reals(w[0], np.float64(0)), reals(w[1], np.{dtype}(0))
    for item in range(w[2]):
        total = parts[item]
        for split in range(1, w[3]):
            total = {join}
        out[item] = total
"""


def combine_text(kind: str, dtype: str) -> str:
    """Return the kernel that joins the parts of sums or maxima of items.

    Its words are the addresses of the parts and of the results, the number of items, and that of parts.
    """
    part = "parts[split * w[2] + item]"
    return COMBINE_TEXT.format(
        dtype=dtype, join=f"total + {part}" if kind == "sum" else f"max(total, {part})"
    )


MOVE_TEXT = """
def kernel(block, like):
    w = words(block)
    outer, rows = words(w[7]), words(w[8])
    for i0 in range(w[0], w[1]):
        for i1 in range(w[2], w[3]):
            for i2 in range(w[4], w[5]):
                source = w[10] + i0 * w[11] + outer[i1] * w[12] + rows[i2] * w[13]
                target = w[14] + i0 * w[15] + i1 * w[16] + i2 * w[17]
                copy_row(source, target, w[6], w[9], np.{dtype}(0))
"""


def move_text(itemsize: int) -> str:
    """Return the kernel that copies rows.

    Its words are the first place and the one after the last of three loops; the number of runs (see
    ``kernels.copy_row``); the addresses of tables with the places of the second and third loop in the source,
    and of the runs; and the address and three strides of the source and of the target.
    """
    return MOVE_TEXT.format(dtype=f"uint{8 * itemsize}")
