"""Kernels on many arrays at once, and expressions as C.

The arrays of a node that have the same expression are *parts* of one launch. All that differs between parts
is numbers: each has a row in a table of 64-bit integers, and its constants. A group finds its part by the
first column, the number of the first group of each part. So texts do not depend on sizes and strengths.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from ....lowering.expressions import OPERATIONS, Constant, Expression, Load, WindowSum
from .dialect import Dialect
from .kernel import ELEMENTS, Kernel
from .text import Text

__all__ = [
    "DTYPES",
    "Access",
    "PartsKernel",
    "PartsSpec",
    "Pattern",
    "divider",
    "pattern_of",
    "size_fields",
    "size_numbers",
]

# C types of elements. Truth values are stored in bytes.
DTYPES = {**ELEMENTS, "bool": "uchar", "uint32": "unsigned int", "int64": "long64", "uint64": "ulong64"}

MIN_LAZY_LOADS = 2  # of a value that is computed only where it is needed

# How an index along an axis becomes an offset, and the numbers that this needs.
AXIS_FIELDS = {"none": (), "stride": ("step",), "finer": ("step", "shift", "last"), "places": ("places",)}


def size_fields(axes: Sequence[int]) -> list[str]:
    """Return the names of the numbers by which a place counted in C order becomes indices along axes."""
    return [*(f"size{axis}" for axis in axes), *(f"divider{axis}" for axis in axes[1:])]


def size_numbers(sizes: Sequence[int]) -> list[int]:
    """Return the numbers for :func:`size_fields`, given the lengths of axes."""
    return [*sizes, *map(divider, sizes[1:])]


def divider(n: int) -> int:
    """Return a factor below 2³² and, from bit 32 on, a shift: ``k // n == (2 * k * factor >> 32) >> shift``.

    That holds for all k below 2³¹, and takes a few instructions where a division takes twenty.

    Examples
    --------
    >>> factor, shift = divider(7) % 2**32, divider(7) >> 32
    >>> all(2 * k * factor >> 32 + shift == k // 7 for k in (0, 6, 7, 2**31 - 2, 2**31 - 1))
    True
    """
    n = max(1, n)
    shift = (n - 1).bit_length()
    return -(-(1 << shift + 31) // n) | shift << 32 if n < 2**31 else 0


@dataclass(frozen=True)
class Pattern:
    """Expressions without their arrays and constants: what parts of one launch have in common.

    Parameters
    ----------
    steps : tuple of tuple
        In the order of computation: ``("constant", k)``, ``("load", k)``, ``("window",)``, or an operation
        and the numbers of the steps that are its arguments.
    roots : tuple of int
        The steps that are the values of the expressions.
    """

    steps: tuple[tuple[object, ...], ...]
    roots: tuple[int, ...]

    def needed(self, roots: Iterable[int], without: tuple[int, int] | None = None) -> set[int]:
        """Return all steps that some steps depend on, themselves included.

        ``without`` is a step and the number of one of its arguments, which is left out.
        """
        needed: set[int] = set()
        waiting = list(roots)
        while waiting:
            step = waiting.pop()
            if step not in needed:
                needed.add(step)
                arguments = list(self.arguments(step))
                if without is not None and step == without[0]:
                    del arguments[without[1]]
                waiting += arguments
        return needed

    def arguments(self, step: int) -> tuple[int, ...]:
        """Return the steps that are the arguments of an operation."""
        name, *arguments = self.steps[step]
        return tuple(arguments) if name in OPERATIONS else ()  # type: ignore[arg-type]

    def uniform(self, slots: Collection[int]) -> set[int]:
        """Return the steps that depend on constants and on loads of these numbers alone."""
        steps: set[int] = set()
        for number, (name, *arguments) in enumerate(self.steps):
            if name == "window" or (name == "load" and arguments[0] not in slots):
                continue
            if name not in OPERATIONS or steps.issuperset(arguments):
                steps.add(number)
        return steps


def pattern_of(*expressions: Expression) -> tuple[Pattern, list[Load], list[float]]:
    """Return the pattern of expressions, with their different loads and their constants in order."""
    steps: list[tuple[object, ...]] = []
    loads: dict[object, int] = {}
    kept: list[Load] = []
    constants: list[float] = []
    numbers: dict[int, int] = {}

    def visit(part: Expression) -> int:
        number = numbers.get(id(part))
        if number is not None:
            return number
        if isinstance(part, Constant):
            step: tuple[object, ...] = ("constant", len(constants))
            constants.append(part.value)
        elif isinstance(part, Load):
            key = (part.view, part.finer, part.offset)
            if key not in loads:
                loads[key] = len(kept)
                kept.append(part)
            step = ("load", loads[key])
        elif isinstance(part, WindowSum):
            step = ("window",)
        else:
            step = (part.operation, *map(visit, part.arguments))
        if step[0] != "constant" and step in steps:
            numbers[id(part)] = steps.index(step)
        else:
            steps.append(step)
            numbers[id(part)] = len(steps) - 1
        return numbers[id(part)]

    roots = tuple(map(visit, expressions))
    return Pattern(tuple(steps), roots), kept, constants


@dataclass(frozen=True)
class Access:
    """An array of a kernel.

    Parameters
    ----------
    name, dtype : str
    axes : tuple of str
        How the index along each axis becomes an offset: ``none`` if all samples along it are the same,
        ``stride``, ``finer`` for the parent of a coefficient, ``places`` by a table.
    written : bool
    """

    name: str
    dtype: str
    axes: tuple[str, ...]
    written: bool = False

    @property
    def fields(self) -> list[str]:
        """The names of its numbers in the row of a part."""
        fields = [f"{self.name}_start"]
        for axis, kind in enumerate(self.axes):
            fields += [f"{self.name}_{what}{axis}" for what in AXIS_FIELDS[kind]]
        return fields

    def offset_expr(self, axis: int, index: str) -> str:
        """Return the offset of an index along an axis; empty if there is none."""
        kind, step = self.axes[axis], f"{self.name}_step{axis}"
        if kind == "none":
            return ""
        if kind == "places":
            return f"(place)table[{self.name}_places{axis} + {index}]"
        if kind == "finer":
            parent = f"((int){index} + (int){self.name}_shift{axis}) >> 1"
            return f"(place)min({parent}, (int){self.name}_last{axis}) * {step}"
        return f"(place){index} * {step}"

    def element_expr(self, indices: dict[int, str]) -> str:
        """Return the element at indices by axis; those of other axes are in the pointer already."""
        offsets = [self.offset_expr(axis, index) for axis, index in indices.items()]
        return f"{self.name}[{' + '.join(filter(None, offsets)) or '0'}]"


@dataclass(frozen=True)
class PartsSpec:
    """What the kernel of some parts computes.

    Parameters
    ----------
    pattern : Pattern
    accesses : tuple of Access
        The loads of the pattern, then others, such as the result.
    ndim : int
        Number of axes.
    number : {"float", "double"}
        C type of intermediate values.
    constants : int
        Number of constants of a part.
    wide : bool
        Whether offsets within a part need 64 bits.
    dialect : Dialect
    guard : str, default ""
        The dtype of a further number, the *guard*; the kernel does nothing if that is zero. Empty: no guard.
    """

    pattern: Pattern
    accesses: tuple[Access, ...]
    ndim: int
    number: str
    constants: int
    wide: bool
    dialect: Dialect
    guard: str = ""

    def kernel(
        self,
        name: str,
        items: int,
        fields: Sequence[str],
        extra: Sequence[tuple[str, str]] = (),
        integers: Sequence[str] = (),
    ) -> PartsKernel:
        """Return a kernel without text; the arguments are those of :class:`PartsKernel`."""
        if self.guard:
            extra = [*extra, (f"const {DTYPES[self.guard]}", "guard")]
        return PartsKernel(
            name,
            self.dialect,
            self.number,
            self.wide,
            items,
            self.accesses,
            fields,
            self.constants,
            extra,
            integers,
        )

    @property
    def index(self) -> str:
        """C type of places in a part."""
        return self.dialect.long if self.wide else "unsigned int"


@dataclass
class PartsKernel:
    """The text of a kernel on many parts, while it is written.

    Parameters
    ----------
    name : str
    dialect : Dialect
    number : str
        C type of intermediate values.
    wide : bool
        Whether offsets within a part need 64 bits.
    items : int
        Work items in a group.
    accesses : sequence of Access
    fields : sequence of str
        Further numbers in the row of a part.
    constants : int
        Number of constants of a part.
    extra : sequence of (str, str)
        C types and names of further arrays, which have a start each.
    integers : sequence of str
        Names of further integer parameters.
    """

    name: str
    dialect: Dialect
    number: str
    wide: bool
    items: int
    accesses: Sequence[Access]
    fields: Sequence[str]
    constants: int = 0
    extra: Sequence[tuple[str, str]] = ()
    integers: Sequence[str] = ()
    text: Text = field(default_factory=Text)

    @property
    def row(self) -> list[str]:
        """The names of the numbers of a part, in their order."""
        return ["first", *self.fields, *(name for access in self.accesses for name in access.fields)]

    def emit_prelude(self) -> None:
        """Append the types and functions before the kernel."""
        text, dialect = self.text, self.dialect
        if dialect.prelude:
            text(*dialect.prelude.split("\n"))
        text(f"typedef {self.number} number;", f"typedef {dialect.long if self.wide else 'int'} place;", "")
        if any(access.dtype.endswith("int64") for access in self.accesses):
            text(f"typedef {dialect.long} long64;", f"typedef unsigned {dialect.long} ulong64;", "")
        if any(access.dtype == "float16" for access in self.accesses):
            with text.block(f"{dialect.function} float half_value(ushort bits)"):
                text(*dialect.half_value.split("\n"))
            with text.block(f"{dialect.function} ushort value_half(float value)"):
                text(*dialect.value_half.split("\n"))

    def head(self) -> str:
        """Return the head of the kernel."""
        dialect = self.dialect
        const = f"{dialect.global_memory}const "
        words = [f"{const}{dialect.long} *{dialect.restrict} table"]
        words.append(f"{const}number *{dialect.restrict} constants")
        words += [f"{dialect.global_memory}{kind} *{name}" for kind, name in self.extra]
        for access in self.accesses:
            memory = dialect.global_memory if access.written else const
            words.append(f"{memory}{DTYPES[access.dtype]} *{dialect.restrict} {access.name}")
        words += [f"const {dialect.long if wide else 'int'} {name}" for name, wide in self.parameters]
        listed = ",\n        ".join(words)
        return f"{dialect.kernel.format(items=self.items)} {self.name}(\n        {listed})"

    @property
    def parameters(self) -> tuple[tuple[str, bool], ...]:
        """The integer parameters, and whether they have 64 bits."""
        wide = ["table_start", "constants_start", *(f"{name}_start" for _, name in self.extra)]
        narrow = ["parts", "stride", *self.integers]
        return (*((name, True) for name in wide), *((name, False) for name in narrow))

    def kernel(self) -> Kernel:
        """Return the kernel, when its text is complete."""
        arrays = ("table", "constants", *(name for _, name in self.extra), *(a.name for a in self.accesses))
        return Kernel(self.name, str(self.text) + "\n", self.items, arrays, self.parameters)

    def emit_part(self) -> None:
        """Append statements that find the part of the group and read its numbers.

        Groups whose guard is zero return at once. So kernels with guards must not have barriers: compilers of
        OpenCL for CPUs need all items at each of them.
        """
        text, dialect, row = self.text, self.dialect, self.row
        if self.guarded:
            text(*dialect.wait_for_previous.split("\n"))
            text("if (guard[guard_start] == 0) return;")
        text(
            f"const int item = {dialect.item}, group = {dialect.group};",
            "table += table_start;",
            "constants += constants_start;",
            "int part = 0;",
        )
        with text.block("for (int step = stride; step > 0; step >>= 1)"):
            text(f"if (part + step < parts && table[(part + step) * {len(row)}] <= group) part += step;")
        text(f"{dialect.global_memory}const {dialect.long} *row = table + part * {len(row)};")
        text("const int rank = group - (int)row[0];")
        for column, name in enumerate(row):
            if name.endswith("_start") or "_places" in name or name in ("entry", "padded"):
                text(f"const {dialect.long} {name} = row[{column}];")
            elif name.startswith("divider"):
                text(f"const unsigned int {name} = (unsigned int)row[{column}];")
                text(f"const int {name}_shift = (int)(row[{column}] >> 32);")
            elif column:
                text(f"const place {name} = (place)row[{column}];")
        for k in range(self.constants):
            text(f"const number c{k} = constants[part * {self.constants} + {k}];")
        # Tables never change; all else is written by previous launches.
        if dialect.wait_for_previous and not self.guarded:
            text(*dialect.wait_for_previous.split("\n"))

    @property
    def guarded(self) -> bool:
        """Whether the last further array is a guard; see :class:`PartsSpec`."""
        return any(name == "guard" for _, name in self.extra)

    def emit_pointers(self, outer: Sequence[str] = ()) -> None:
        """Append statements that move pointers to their first element, at indices along the first axes."""
        for _, name in self.extra:
            self.text(f"{name} += {name}_start;")
        for access in self.accesses:
            offsets = [
                f"({self.dialect.long}){access.offset_expr(axis, i)}" for axis, i in enumerate(outer)
                if access.axes[axis] != "none"
            ]  # fmt: skip
            self.text(f"{access.name} += {' + '.join([f'{access.name}_start', *offsets])};")

    def emit_indices(self, value: str, axes: Sequence[int], kind: str = "unsigned int") -> dict[int, str]:
        """Append the indices along axes of a place counted in C order, and return their names."""
        indices: dict[int, str] = {}
        rest = value
        for axis in reversed(axes[1:]):
            quotient = f"{rest} / ({kind})size{axis}"
            if kind == "unsigned int":
                product = self.dialect.high_product.format(f"{rest} + {rest}", f"divider{axis}")
                quotient = f"{product} >> divider{axis}_shift"
            self.text(f"const {kind} rest{axis} = {quotient};")
            self.text(f"const {kind} i{axis} = {rest} - rest{axis} * ({kind})size{axis};")
            indices[axis], rest = f"i{axis}", f"rest{axis}"
        if axes:
            indices[axes[0]] = rest
        return dict(sorted(indices.items()))

    # --- expressions ------------------------------------------------------------------------------

    def load_expr(self, access: Access, indices: dict[int, str]) -> str:
        """Return a sample as a number, or as a condition."""
        return self.value_expr(access, access.element_expr(indices))

    def value_expr(self, access: Access, element: str) -> str:
        """Return an element of an array in memory as a number, or as a condition."""
        if access.dtype == "bool":
            return f"({element} != 0)"
        if access.dtype == "float16":
            return f"half_value({element})"
        if access.dtype == "int8":
            return f"(number)(signed char){element}"
        return element if DTYPES[access.dtype] == self.number else f"(number){element}"

    def emit_store(self, access: Access, indices: dict[int, str], value: str) -> None:
        """Append a statement that writes a value."""
        if access.dtype == "bool":
            value = f"{value} != 0"
        elif access.dtype == "float16":
            value = f"value_half({value})"
        kind = DTYPES[access.dtype]
        cast = "" if kind == self.number or access.dtype == "float16" else f"({kind})"
        self.text(f"{access.element_expr(indices)} = {cast}({value});")

    def emit_steps(
        self,
        pattern: Pattern,
        roots: Iterable[int],
        indices: dict[int, str],
        names: dict[int, str],
        window: str = "",
    ) -> None:
        """Append statements that compute steps, and add their names to ``names``.

        Parameters
        ----------
        pattern : Pattern
            Its load k is access k of the kernel.
        roots : iterable of int
            Steps to compute, besides what they depend on.
        indices : dict of int to str
            Indices by axis.
        names : dict of int to str
            Names of the steps that were computed before.
        window : str
            Expression for the sum over a window.
        """
        branches = self._lazy_branches(pattern, roots, names)
        deferred = {step for _, steps in branches.values() for step in steps}
        for step in sorted(pattern.needed(roots)):
            if step in names or step in deferred:
                continue
            name, *arguments = pattern.steps[step]
            if step in branches:
                self._emit_choice(pattern, step, branches[step][0], indices, names, window)
                continue
            if name == "constant":
                names[step] = f"c{arguments[0]}"
                continue
            if name == "window":
                names[step] = window
                continue
            condition = self._is_condition(pattern, step)
            if name == "load":
                value = self.load_expr(self.accesses[arguments[0]], indices)  # type: ignore[call-overload]
            else:
                value = self._operation_expr(pattern, step, names)
            names[step] = f"v{step}"
            self.text(f"const {'int' if condition else 'number'} v{step} = {value};")

    def _operation_expr(self, pattern: Pattern, step: int, names: dict[int, str]) -> str:
        """Return the value of an operation on steps that were computed before."""
        name, arguments = pattern.steps[step][0], pattern.arguments(step)
        if name == "divide" and pattern.steps[arguments[1]][0] == "sqrt":
            # A single instruction on GPUs, where a root and a division are about ten each.
            (square,) = pattern.arguments(arguments[1])
            return f"({names[arguments[0]]} * rsqrt({names[square]}))"
        return OPERATIONS[name].c.format(*(names[k] for k in arguments))  # type: ignore[index]

    def _lazy_branches(
        self, pattern: Pattern, roots: Iterable[int], names: dict[int, str]
    ) -> dict[int, tuple[int, set[int]]]:
        """Return for choices between two values the one that is computed only where it is needed.

        Parameters
        ----------
        pattern : Pattern
        roots : iterable of int
        names : dict of int to str
            Steps that were computed before.

        Returns
        -------
        branches : dict
            For the steps of choices, the number of the argument with several loads that nothing else needs,
            and all steps that belong to it alone.
        """
        branches: dict[int, tuple[int, set[int]]] = {}
        roots, hidden = list(roots), set(names)
        for step in sorted(pattern.needed(roots), reverse=True):
            if pattern.steps[step][0] != "where" or step in hidden:
                continue
            for argument in (1, 2):
                steps = pattern.needed([pattern.arguments(step)[argument]])
                steps -= pattern.needed(roots, without=(step, argument)) | names.keys()
                if sum(pattern.steps[k][0] == "load" for k in steps) >= MIN_LAZY_LOADS:
                    branches[step] = argument, steps
                    hidden |= steps
                    break
        return branches

    def _emit_choice(
        self,
        pattern: Pattern,
        step: int,
        lazy: int,
        indices: dict[int, str],
        names: dict[int, str],
        window: str,
    ) -> None:
        """Append a choice between two values; that of argument ``lazy`` is computed in a branch."""
        condition, *values = pattern.arguments(step)
        kind = "int" if self._is_condition(pattern, step) else "number"
        needed = names[condition] if lazy == 1 else f"!{names[condition]}"
        self.text(f"{kind} v{step} = {names[values[2 - lazy]]};")
        with self.text.block(f"if ({needed})"):
            local = dict(names)
            self.emit_steps(pattern, (values[lazy - 1],), indices, local, window)
            self.text(f"v{step} = {local[values[lazy - 1]]};")
        names[step] = f"v{step}"

    def _is_condition(self, pattern: Pattern, step: int) -> bool:
        name, *arguments = pattern.steps[step]
        if name == "load":
            return self.accesses[arguments[0]].dtype == "bool"  # type: ignore[call-overload,no-any-return]
        if name == "where":
            return all(self._is_condition(pattern, k) for k in pattern.arguments(step)[1:])
        return name in OPERATIONS and OPERATIONS[name].condition

    def emit_uniform(self, pattern: Pattern, roots: Iterable[int], inner: Iterable[int]) -> dict[int, str]:
        """Append what is the same at all indices along inner axes; return the names of these steps."""
        axes = list(inner)
        slots = [
            k for k, access in enumerate(self.accesses) if all(access.axes[axis] == "none" for axis in axes)
        ]
        names: dict[int, str] = {}
        uniform = pattern.uniform(slots) & pattern.needed(roots)
        self.emit_steps(pattern, uniform, {}, names)
        return names
