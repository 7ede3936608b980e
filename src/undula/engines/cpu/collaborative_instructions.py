"""What the kernels of collaborative filtering are written with: functions of LLVM, loads and stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .emitter import INDEX, INT, Emitter

__all__ = [
    "ADDRESS",
    "FLOAT",
    "KEY",
    "Body",
    "Vector",
    "constant",
    "function",
    "integers",
    "load",
    "store",
    "store_integers",
]

Vector = Any  # a value of LLVM
Body = Callable[[Emitter, list[Any]], Any]

ADDRESS, FLOAT, KEY = types.int64, types.float32, types.int32


def function(name: str, parameters: Sequence[Any], result: Any, body: Body, inline: bool = False) -> Any:
    """Return a function for kernels whose body is written as instructions, into its callers if ``inline``."""

    def typed(context: Any, *_: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            if inline:
                return body(Emitter(builder, "float32"), list(values))
            kinds = [context.get_value_type(kind) for kind in parameters]
            kind = ir.FunctionType(
                ir.VoidType() if result == types.void else context.get_value_type(result), kinds
            )
            function = cgutils.get_or_insert_function(builder.module, kind, f"undula_{name}")
            if function.is_declaration:
                function.linkage = "linkonce_odr"
                function.attributes.add("noinline")
                inside = ir.IRBuilder(function.append_basic_block("entry"))
                value = body(Emitter(inside, "float32"), list(function.args))
                inside.ret_void() if value is None else inside.ret(value)
            value = builder.call(function, values)
            return context.get_dummy_value() if result == types.void else value

        return result(*parameters), generate

    # Numba looks at the names of parameters, so the function needs as many as it takes.
    names = ", ".join(f"x{k}" for k in range(len(parameters)))
    scope: dict[str, Any] = {"typed": typed}
    exec(f"def {name}(context, {names}):\n    return typed(context, {names})", scope)
    return intrinsic(scope[name])


def load(emit: Emitter, place: Vector, lanes: int) -> Vector:
    """Load floats from an address."""
    return emit.load(emit.pointer(place), INT(0), lanes)


def store(emit: Emitter, value: Vector, place: Vector, lanes: int) -> None:
    """Store floats at an address."""
    emit.store(value, emit.pointer(place), INT(0), lanes)


def integers(emit: Emitter, place: Vector, lanes: int, bits: int = INDEX.width) -> Vector:
    """Load integers from an address."""
    kind = ir.VectorType(ir.IntType(bits), lanes)
    return emit.b.load(emit.b.inttoptr(place, kind.as_pointer()), align=4)


def store_integers(emit: Emitter, value: Vector, place: Vector) -> None:
    """Store integers at an address."""
    emit.b.store(value, emit.b.inttoptr(place, value.type.as_pointer()), align=4)


def constant(value: float, lanes: int) -> Vector:
    """Return a float in all lanes."""
    return ir.Constant(ir.VectorType(ir.FloatType(), lanes), [float(value)] * lanes)
