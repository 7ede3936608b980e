"""Expressions as the texts of kernels.

The text of a kernel depends on the structure of expressions alone: constants, addresses, lengths and strides
are arguments; see :mod:`.nests`. So there are few different kernels, and :mod:`.machine_code` keeps them on
disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...lowering.expressions import OPERATIONS, Constant, Expression, Load, WindowSum
from .nests import FIRST_EXTRA, LOOPS, Nest, NoKernelError

__all__ = ["KernelText", "indented", "pointwise_text", "row_bytes"]

MAX_LITERAL_STEPS = 2  # Strides up to so many samples are written into kernels.


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
            first += 9 if o.is_coarser else 5

    def name(self) -> str:
        """Return a new name."""
        self._count += 1
        return f"v{self._count}"

    def address(self, number: int, row: str) -> str:
        """Return the address of a row of an operand."""
        o, at = self.nest.operands[number], self.places[number]
        parts = [f"w[{at}]"]
        for k, index in enumerate(("i0", "i1", row)):
            if o.is_coarser and o.lasts[k] >= 0:
                index = f"min(({index} + w[{at + 5}]) >> 1, w[{at + 5 + k}])"
            if k < 2 or o.strides[k]:
                parts.append(f"{index} * w[{at + 1 + k}]")
        if o.strides[3] and not o.is_coarser:
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
            if o.is_coarser:
                if not real:
                    raise NoKernelError("a coarser level has another dtype")
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
            *indented(self.lines[1]),
            "    for i2 in range(begin2, end2):",
            *indented(rows, 2),
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
        loop = ["for i0 in range(begin0, end0):", *indented(lines)]
        return (
            "\n".join(["def kernel(block, like):", "    w = words(block)", *indented([*head, *loop])]) + "\n"
        )


def _pitch(samples: str) -> str:
    return f"(({samples}) * size + 127) & -64"


def row_bytes(samples: int, itemsize: int) -> int:
    """Return the size of a row in memory of the thread, as kernels compute it."""
    return (samples * itemsize + 127) & -64


def indented(lines: Sequence[str], depth: int = 1) -> list[str]:
    """Return lines of a block."""
    return [f"{'    ' * depth}{line}" for line in lines]


def pointwise_text(nest: Nest, value: Expression) -> str:
    """Return the kernel that stores the value of an expression."""
    text = KernelText(nest, FIRST_EXTRA)
    rows, samples, name = text.row(value, "i2")
    loop = ["for j in range(n):", *indented([*samples, text.store(name)])]
    return text.kernel(text.planes([*rows, *text.target(), *loop]))
