"""Translation of loops over numbers in memory from Python to LLVM.

Generated kernels, and the functions in :mod:`.kernels` that they call, are written in a small part of Python:
assignments, ``for`` over ranges, ``while``, ``if``, numbers, and arrays at addresses. Numba compiles much
more, but takes about a second for a kernel, most of it for the inference of types. Here a variable has the
type of the first value that is assigned to it, and calls are replaced by the body of the function, so one
walk over the syntax tree is enough.

- Numbers are of the types of NumPy. A literal takes the type of the other operand.
- ``a if c else b`` evaluates both values, so that loops with it can be vectorized; so do ``and`` and ``or``.
- Indices are never negative.
- :func:`reals`, :func:`words`, :func:`converted`, :func:`size_of`, :func:`bits_of`, :func:`number_of` and
  :func:`fused` are what the language has beyond arithmetic. They also run in Python, and so does every
  kernel, slowly.
"""

from __future__ import annotations

import ast
import ctypes
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

__all__ = [
    "Library",
    "bits_of",
    "converted",
    "function_definitions",
    "fused",
    "number_of",
    "object_code",
    "optimised_object",
    "reals",
    "size_of",
    "words",
]

SYMBOL = "undula_kernel"
MAX_BYTES = 1 << 40  # of an array at an address
FAST = ("nsz",)  # what LLVM may do with floats
# Sums over a loop may also be reordered, and fused with products. Elsewhere, LLVM would do so differently in
# whole vectors and at the ends of rows, and results would depend on where rows begin.
ACCUMULATED = ("contract", "nsz", "reassoc")

Definitions = Mapping[str, ast.FunctionDef]


class Library(NamedTuple):
    """What kernels can use.

    Parameters
    ----------
    functions : mapping of str to ast.FunctionDef
    exact : collection of str
        Names of the functions whose sums LLVM must not reorder.
    constants : mapping of str to int or float
    """

    functions: Definitions
    exact: Collection[str]
    constants: Mapping[str, Any]


# --- what kernels can call -------------------------------------------------------------------------


def reals(address: int, like: Any) -> np.ndarray[Any, Any]:
    """Return the numbers of the type of ``like`` at an address, as an array."""
    memory: Any = (ctypes.c_byte * MAX_BYTES).from_address(int(address))
    return np.asarray(np.frombuffer(memory, np.dtype(type(like))))


def words(address: int) -> np.ndarray[Any, Any]:
    """Return the integers at an address, as an array."""
    return reals(address, np.int64(0))


def converted(value: Any, like: Any) -> Any:
    """Return a number in the type of ``like``."""
    return type(like)(value)


def size_of(like: Any) -> int:
    """Return the size of a number in bytes."""
    return np.dtype(type(like)).itemsize


def bits_of(x: Any) -> Any:
    """Return the bits of a float as an integer."""
    return x.view(f"int{8 * x.itemsize}")


def number_of(bits: Any) -> Any:
    """Return the float that has the bits of an integer."""
    return bits.view(f"float{8 * bits.itemsize}")


def fused(a: Any, b: Any, c: Any) -> Any:
    """Return ``a·b + c``, rounded once; in Python, products of double precision are rounded, too."""
    return type(a)(np.float64(a) * np.float64(b) + np.float64(c))


# --- translation -----------------------------------------------------------------------------------


class Value(NamedTuple):
    """A number: its dtype and its value in LLVM. Literals have the dtype ``literal``, and are numbers."""

    dtype: str
    value: Any


class Pointer(NamedTuple):
    """An array: the dtype of its numbers, and the address of the first one."""

    dtype: str
    value: Any


LITERAL = "literal"
BINARY: dict[type, tuple[Callable[[Any, Any], Any], str, str]] = {
    ast.Add: (operator.add, "add", "fadd"),
    ast.Sub: (operator.sub, "sub", "fsub"),
    ast.Mult: (operator.mul, "mul", "fmul"),
    ast.Div: (operator.truediv, "", "fdiv"),
    ast.Mod: (operator.mod, "srem", ""),
    ast.BitAnd: (operator.and_, "and_", ""),
    ast.BitOr: (operator.or_, "or_", ""),
    ast.BitXor: (operator.xor, "xor", ""),
    ast.LShift: (operator.lshift, "shl", ""),
    ast.RShift: (operator.rshift, "ashr", ""),
}
COMPARED = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
FUNCTIONS = {"math.sqrt": "llvm.sqrt", "np.rint": "llvm.rint", "abs": "llvm.fabs"}


def function_definitions(text: str) -> Definitions:
    """Return the functions of a module by name."""
    tree = ast.parse(text)
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def object_code(text: str, dtype: str, library: Library) -> bytes:
    """Compile the function ``kernel`` of a text, and return its symbol, a zero byte and its object code.

    Parameters
    ----------
    text : str
        The function takes an address, and a number that tells the type of samples.
    dtype : str
        Of this number.
    library : Library
    """
    (definition,) = ast.parse(text).body
    assert isinstance(definition, ast.FunctionDef)
    return SYMBOL.encode() + b"\0" + optimised_object(_module(definition, dtype, library))


def optimised_object(module: Any) -> bytes:
    """Return the object code of a module of LLVM, optimised for this processor."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3, jit=True
    )
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    code = llvm.parse_assembly(str(module))
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = tuning.slp_vectorization = True
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(code, passes)
    return bytes(machine.emit_object(code))


def _module(definition: ast.FunctionDef, dtype: str, library: Library) -> Any:
    """Return the module of LLVM with a kernel, which is called as Numba calls functions."""
    from llvmlite import ir

    address = ir.IntType(64)
    kind = ir.FunctionType(ir.IntType(32), [address, address, address, _type(dtype)])
    module = ir.Module("undula")
    function = ir.Function(module, kind, SYMBOL)
    function.attributes.add("nounwind")
    writer = _Writer(function, library)
    writer.call(definition, [Value("int64", function.args[2]), Value(dtype, function.args[3])])
    writer.finish()
    return module


def _type(dtype: str) -> Any:
    """Return the type of LLVM."""
    from llvmlite import ir

    if dtype.startswith("float"):
        return ir.FloatType() if dtype == "float32" else ir.DoubleType()
    return ir.IntType(1 if dtype == "bool" else 8 * np.dtype(dtype).itemsize)


def _is_float(dtype: str) -> bool:
    return dtype.startswith("float")


class _Scope:
    """The variables of a call, and what it returns."""

    def __init__(self, exact: bool, after: Any) -> None:
        self.variables: dict[str, Value | Pointer] = {}  # with the memory that they are in
        self.flags: tuple[str, ...] = () if exact else FAST
        self.after = after  # the block behind the call
        self.result: Value | None = None  # with the memory that it is in


class _Writer:
    """The function of LLVM while it is written."""

    def __init__(self, function: Any, library: Library) -> None:
        from llvmlite import ir

        self.ir, self.function, self.library = ir, function, library
        self.entry = ir.IRBuilder(function.append_basic_block("entry"))  # has the memory of all variables
        self.start = function.append_basic_block("start")
        self.b = ir.IRBuilder(self.start)
        self.scope = _Scope(False, None)
        self.ends: list[Any] = []  # the blocks behind the loops around the statement

    def finish(self) -> None:
        """Return without an error."""
        self.b.ret(self.ir.IntType(32)(0))
        self.entry.branch(self.start)

    # --- functions and statements -----------------------------------------------------------------

    def call(self, definition: ast.FunctionDef, arguments: Sequence[Value | Pointer]) -> Value | None:
        """Append the body of a function, and return its result."""
        outer, self.scope = self.scope, _Scope(definition.name in self.library.exact, self._block("after"))
        for name, argument in zip(definition.args.args, arguments, strict=True):
            self._assign_name(name.arg, argument, definition)
        self.statements(definition.body)
        if not self.b.block.is_terminated:
            self.b.branch(self.scope.after)
        self.b.position_at_end(self.scope.after)
        result, self.scope = self.scope.result, outer
        return None if result is None else Value(result.dtype, self.b.load(result.value))

    def statements(self, body: Sequence[ast.stmt]) -> None:
        """Append statements, up to the first one that leaves the block."""
        for statement in body:
            if self.b.block.is_terminated:
                return
            write = getattr(self, f"_write_{type(statement).__name__.lower()}", None)
            if write is None:
                self._refuse(statement)
            write(statement)

    def _write_expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # Texts that describe a function do nothing.
            self.evaluate(node.value)

    def _write_assign(self, node: ast.Assign) -> None:
        (target,) = node.targets
        if not isinstance(target, ast.Tuple):
            self._assign(target, self.evaluate(node.value))
            return
        assert isinstance(node.value, ast.Tuple)
        values = [self.evaluate(value) for value in node.value.elts]
        for each, value in zip(target.elts, values, strict=True):
            self._assign(each, value)

    def _write_augassign(self, node: ast.AugAssign) -> None:
        read = ast.parse(ast.unparse(node.target), mode="eval").body
        values = self.evaluate(read), self.evaluate(node.value)
        flags, scope = self.scope.flags, self.scope
        if flags and isinstance(node.target, ast.Name):
            scope.flags = ACCUMULATED
        self._assign(node.target, self._binary(node, node.op, *values))
        scope.flags = flags

    def _write_return(self, node: ast.Return) -> None:
        if node.value is not None:
            value = self._typed(self._number(node.value))
            if self.scope.result is None:
                self.scope.result = Value(value.dtype, self._memory(_type(value.dtype)))
            self.b.store(self._as(value, self.scope.result.dtype), self.scope.result.value)
        self.b.branch(self.scope.after)

    def _write_break(self, node: ast.Break) -> None:
        self.b.branch(self.ends[-1])

    def _write_if(self, node: ast.If) -> None:
        then, other, after = self._block("then"), self._block("else"), self._block("after")
        self.b.cbranch(self._condition(node.test), then, other)
        for block, body in ((then, node.body), (other, node.orelse)):
            self.b.position_at_end(block)
            self.statements(body)
            if not self.b.block.is_terminated:
                self.b.branch(after)
        self.b.position_at_end(after)

    def _write_while(self, node: ast.While) -> None:
        self._loop(lambda: self._condition(node.test), lambda: self.statements(node.body))

    def _write_for(self, node: ast.For) -> None:
        call, integer = node.iter, self.ir.IntType(64)
        if not (isinstance(call, ast.Call) and ast.unparse(call.func) == "range" and len(call.args) < 3):
            self._refuse(node)
        bounds = [self._as(self._number(argument), "int64") for argument in call.args]
        first, last = bounds if len(bounds) == 2 else (integer(0), *bounds)
        counter = self._memory(integer)
        self.b.store(first, counter)

        def body() -> None:
            self._assign(node.target, Value("int64", self.b.load(counter)))
            self.statements(node.body)
            if not self.b.block.is_terminated:
                self.b.store(self.b.add(self.b.load(counter), integer(1), flags=("nsw",)), counter)

        self._loop(lambda: self.b.icmp_signed("<", self.b.load(counter), last), body)

    def _loop(self, condition: Callable[[], Any], body: Callable[[], None]) -> None:
        test, inside, end = self._block("test"), self._block("inside"), self._block("end")
        self.b.branch(test)
        self.b.position_at_end(test)
        self.b.cbranch(condition(), inside, end)
        self.b.position_at_end(inside)
        self.ends.append(end)
        body()
        self.ends.pop()
        if not self.b.block.is_terminated:
            self.b.branch(test)
        self.b.position_at_end(end)

    # --- variables and memory ---------------------------------------------------------------------

    def _block(self, name: str) -> Any:
        return self.function.append_basic_block(name)

    def _memory(self, kind: Any) -> Any:
        return self.entry.alloca(kind)

    def _assign(self, target: ast.expr, value: Value | Pointer) -> None:
        if isinstance(target, ast.Name):
            self._assign_name(target.id, value, target)
        elif isinstance(target, ast.Subscript):
            pointer, dtype = self._element(target)
            assert isinstance(value, Value)
            self.b.store(self._as(value, dtype), pointer, align=np.dtype(dtype).itemsize)
        else:
            self._refuse(target)

    def _assign_name(self, name: str, value: Value | Pointer, node: ast.AST) -> None:
        variable = self.scope.variables.get(name)
        value = value if isinstance(value, Pointer) else self._typed(value, variable)
        if variable is None:
            memory = self._memory(value.value.type)
            variable = self.scope.variables[name] = type(value)(value.dtype, memory)
        if type(variable) is not type(value) or variable.dtype != value.dtype:
            raise TypeError(f"{name} is {variable.dtype}, and {value.dtype} in: {ast.unparse(node)}")
        self.b.store(value.value, variable.value)

    def _element(self, node: ast.Subscript) -> tuple[Any, str]:
        """Return the place of an element of an array, and its dtype."""
        array = self.evaluate(node.value)
        if not isinstance(array, Pointer):
            self._refuse(node)
        place = self._as(self._number(node.slice), "int64")
        return self.b.gep(array.value, [place]), array.dtype

    # --- expressions ------------------------------------------------------------------------------

    def evaluate(self, node: ast.expr) -> Value | Pointer:
        """Append what computes an expression, and return its value."""
        evaluate = getattr(self, f"_evaluate_{type(node).__name__.lower()}", None)
        if evaluate is None:
            self._refuse(node)
        value: Value | Pointer = evaluate(node)
        return value

    def _number(self, node: ast.expr) -> Value:
        value = self.evaluate(node)
        if not isinstance(value, Value):
            self._refuse(node)
        return value

    def _condition(self, node: ast.expr) -> Any:
        return self._as(self._number(node), "bool")

    def _evaluate_constant(self, node: ast.Constant) -> Value:
        return Value(LITERAL, node.value)

    def _evaluate_attribute(self, node: ast.Attribute) -> Value:
        return Value(LITERAL, {"np.inf": np.inf, "np.nan": np.nan}[ast.unparse(node)])

    def _evaluate_name(self, node: ast.Name) -> Value | Pointer:
        variable = self.scope.variables.get(node.id)
        if variable is None:
            if node.id not in self.library.constants:
                self._refuse(node)
            return Value(LITERAL, self.library.constants[node.id])
        return type(variable)(variable.dtype, self.b.load(variable.value))

    def _evaluate_subscript(self, node: ast.Subscript) -> Value:
        pointer, dtype = self._element(node)
        return Value(dtype, self.b.load(pointer, align=np.dtype(dtype).itemsize))

    def _evaluate_unaryop(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            return Value("bool", self.b.not_(self._condition(node.operand)))
        value = self._number(node.operand)
        if not isinstance(node.op, ast.USub):
            self._refuse(node)
        if value.dtype == LITERAL:
            return Value(LITERAL, -value.value)
        negative = self.b.fneg(value.value, self.scope.flags) if _is_float(value.dtype) else None
        return Value(value.dtype, self.b.neg(value.value) if negative is None else negative)

    def _evaluate_binop(self, node: ast.BinOp) -> Value:
        return self._binary(node, node.op, self.evaluate(node.left), self.evaluate(node.right))

    def _evaluate_boolop(self, node: ast.BoolOp) -> Value:
        join = self.b.and_ if isinstance(node.op, ast.And) else self.b.or_
        first, *others = (self._condition(value) for value in node.values)
        for other in others:
            first = join(first, other)
        return Value("bool", first)

    def _evaluate_compare(self, node: ast.Compare) -> Value:
        values = [self._number(each) for each in (node.left, *node.comparators)]
        result = None
        for left, kind, right in zip(values, node.ops, values[1:], strict=False):
            condition = self._compared(COMPARED[type(kind)], left, right)
            result = condition if result is None else self.b.and_(result, condition)
        return Value("bool", result)

    def _evaluate_ifexp(self, node: ast.IfExp) -> Value:
        condition = self._condition(node.test)
        first, second = self._number(node.body), self._number(node.orelse)
        dtype = self._common(first, second)
        return Value(dtype, self.b.select(condition, self._as(first, dtype), self._as(second, dtype)))

    def _evaluate_call(self, node: ast.Call) -> Value | Pointer:
        name = ast.unparse(node.func)
        arguments = [self.evaluate(argument) for argument in node.args]
        if name in self.library.functions:
            result = self.call(self.library.functions[name], arguments)
            return Value(LITERAL, 0) if result is None else result
        first, *others = (each for each in arguments if isinstance(each, Value))
        if name in ("min", "max"):
            return self._extreme("<" if name == "min" else ">", first, *others)
        if name in ("reals", "words"):
            dtype = others[0].dtype if others else "int64"
            return Pointer(dtype, self.b.inttoptr(self._as(first, "int64"), _type(dtype).as_pointer()))
        if name == "converted":
            return Value(others[0].dtype, self._as(first, others[0].dtype))
        if name == "size_of":
            return Value(LITERAL, np.dtype(first.dtype).itemsize)
        if name in ("bits_of", "number_of"):
            kind = "int" if name == "bits_of" else "float"
            dtype = f"{kind}{8 * np.dtype(first.dtype).itemsize}"
            return Value(dtype, self.b.bitcast(first.value, _type(dtype)))
        if name == "fused":
            return Value(first.dtype, self.b.fma(first.value, *(each.value for each in others)))
        if name in FUNCTIONS:
            intrinsic = self.function.module.declare_intrinsic(FUNCTIONS[name], [first.value.type])
            return Value(first.dtype, self.b.call(intrinsic, [first.value], fastmath=self.scope.flags))
        prefix, _, dtype = name.rpartition(".")
        if prefix != "np" or not isinstance(getattr(np, dtype, None), type):
            self._refuse(node)
        return Value(dtype, self._as(first, dtype))

    # --- arithmetic -------------------------------------------------------------------------------

    def _binary(
        self, node: ast.AST, operation: ast.operator, left: Value | Pointer, right: Value | Pointer
    ) -> Value:
        if type(operation) not in BINARY or isinstance(left, Pointer) or isinstance(right, Pointer):
            self._refuse(node)
        fold, of_integers, of_floats = BINARY[type(operation)]
        if left.dtype == right.dtype == LITERAL:
            return Value(LITERAL, fold(left.value, right.value))
        dtype = self._common(left, right)
        if isinstance(operation, ast.Div) and not _is_float(dtype):
            dtype = "float64"
        first, second = self._as(left, dtype), self._as(right, dtype)
        if _is_float(dtype):
            if not of_floats:
                self._refuse(node)
            return Value(dtype, getattr(self.b, of_floats)(first, second, flags=self.scope.flags))
        if isinstance(operation, ast.Mod):  # The result has the sign of the divisor.
            rest = self.b.srem(first, second)
            zero = _type(dtype)(0)
            other_sign = self.b.icmp_signed("<", self.b.xor(rest, second), zero)
            moved = self.b.and_(other_sign, self.b.icmp_signed("!=", rest, zero))
            return Value(dtype, self.b.select(moved, self.b.add(rest, second), rest))
        if of_integers == "ashr" and dtype.startswith("u"):
            of_integers = "lshr"
        # Numbers of 64 bits are places and addresses, which do not overflow.
        keywords = {"flags": ("nsw",)} if dtype == "int64" and of_integers in ("add", "sub", "mul") else {}
        return Value(dtype, getattr(self.b, of_integers)(first, second, **keywords))

    def _compared(self, kind: str, left: Value, right: Value) -> Any:
        dtype = self._common(left, right)
        first, second = self._as(left, dtype), self._as(right, dtype)
        if _is_float(dtype):
            compare = self.b.fcmp_unordered if kind == "!=" else self.b.fcmp_ordered
            return compare(kind, first, second)
        unsigned = dtype == "bool" or dtype.startswith("u")
        return (self.b.icmp_unsigned if unsigned else self.b.icmp_signed)(kind, first, second)

    def _extreme(self, kind: str, first: Value, second: Value) -> Value:
        dtype = self._common(first, second)
        better = self._compared(kind, second, first)
        return Value(dtype, self.b.select(better, self._as(second, dtype), self._as(first, dtype)))

    def _common(self, first: Value, second: Value) -> str:
        """Return the dtype in which two numbers are computed with."""
        if LITERAL in (first.dtype, second.dtype):
            return self._typed(first, second).dtype if first.dtype == LITERAL else first.dtype
        return first.dtype if first.dtype == second.dtype else str(np.result_type(first.dtype, second.dtype))

    def _typed(self, value: Value, like: Value | Pointer | None = None) -> Value:
        """Return a number with a dtype; literals take the one of another number."""
        if value.dtype != LITERAL:
            return value
        dtype = like.dtype if like is not None and like.dtype != LITERAL else ""
        dtype = dtype or ("float64" if isinstance(value.value, float) else "int64")
        return Value(dtype, self._as(value, dtype))

    def _as(self, value: Value, dtype: str) -> Any:
        """Return a number in another dtype."""
        kind, given = _type(dtype), value.value
        if value.dtype == LITERAL:
            if not _is_float(dtype) and given != int(given):
                raise TypeError(f"{given} is not of dtype {dtype}")
            return kind(float(np.dtype(dtype).type(given)) if _is_float(dtype) else int(given))
        if value.dtype == dtype:
            return given
        if dtype == "bool":
            return self._compared("!=", value, Value(LITERAL, 0))
        unsigned = value.dtype == "bool" or value.dtype.startswith("u")
        if _is_float(value.dtype):
            if _is_float(dtype):
                return self.b.fpext(given, kind) if dtype == "float64" else self.b.fptrunc(given, kind)
            return self.b.fptoui(given, kind) if dtype.startswith("u") else self.b.fptosi(given, kind)
        if _is_float(dtype):
            return self.b.uitofp(given, kind) if unsigned else self.b.sitofp(given, kind)
        if kind.width == given.type.width:
            return given
        if kind.width < given.type.width:
            return self.b.trunc(given, kind)
        return self.b.zext(given, kind) if unsigned else self.b.sext(given, kind)

    def _refuse(self, node: ast.AST) -> NoReturn:
        raise TypeError(f"kernels cannot be written so: {ast.unparse(node)}")
