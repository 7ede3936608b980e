"""Kernels for expressions at each place, also with a sum along one axis, and for the mean over shifts."""

from __future__ import annotations

from itertools import product

from .dialect import Dialect
from .kernel import Kernel, emit_pointers
from .parts import DTYPES, Access, PartsKernel, PartsSpec, size_fields
from .text import Text

__all__ = ["elements_per_group", "emit_mean", "emit_pointwise"]

ITEMS = 256
ELEMENTS_PER_ITEM = 4
GUARDED_ELEMENTS_PER_ITEM = 64  # Fewer groups take less time if they have nothing to do.
TAPS_PER_SUM = 64  # Long sums are split, which keeps them precise.


def elements_per_group(guarded: bool) -> int:
    """Return how many places a group of :func:`emit_pointwise` computes."""
    return ITEMS * (GUARDED_ELEMENTS_PER_ITEM if guarded else ELEMENTS_PER_ITEM)


def emit_pointwise(spec: PartsSpec, window_axis: int | None = None) -> PartsKernel:
    """Return the kernel of an expression.

    Parameters
    ----------
    spec : PartsSpec
        Behind the loads is the result.
    window_axis : int, optional
        The axis along which a further array, behind the result, is summed, with ``taps`` weights.
    """
    axes, pattern, kind = range(spec.ndim), spec.pattern, spec.index
    result = next(access for access in spec.accesses if access.written)
    fields = ["count", *size_fields(axes)]
    if window_axis is None:
        kernel = spec.kernel("pointwise", ITEMS, fields)
    else:
        kernel = spec.kernel("window", ITEMS, fields, [("const number", "weights")], ["taps"])
    text = kernel.text
    kernel.emit_prelude()
    with text.block(kernel.head()):
        kernel.emit_part()
        kernel.emit_pointers()
        names = kernel.emit_uniform(pattern, pattern.roots, axes)
        elements = elements_per_group(bool(spec.guard))
        text("#pragma unroll 4")
        with text.block(f"for (int j = 0; j < {elements // ITEMS}; ++j)"):
            text(f"const {kind} k = ({kind})rank * {elements} + j * {ITEMS} + item;")
            with text.block(f"if (k < ({kind})count)"):
                indices = kernel.emit_indices("k", axes, kind)
                if window_axis is not None:
                    _emit_window(kernel, spec.accesses[-1], window_axis, indices)
                local = dict(names)
                kernel.emit_steps(pattern, pattern.roots, indices, local, "window")
                kernel.emit_store(result, indices, local[pattern.roots[0]])
    return kernel


def _emit_window(kernel: PartsKernel, source: Access, axis: int, indices: dict[int, str]) -> None:
    """Append the weighted sum around a place along an axis, mirrored at the ends."""
    text = kernel.text
    others = {k: index for k, index in indices.items() if k != axis}
    offsets = [source.offset_expr(k, index) for k, index in others.items()]
    base = " + ".join(filter(None, offsets)) or "0"
    step = f"source_step{axis}" if source.axes[axis] == "stride" else "0"
    text(
        f"const place base = {base};",
        f"const int n = (int)size{axis}, begin = (int){indices[axis]} - taps / 2;",
    )
    text("number window = 0;")
    with text.block(f"for (int t0 = 0; t0 < taps; t0 += {TAPS_PER_SUM})"):
        text("number partial = 0;", f"const int end = min(taps, t0 + {TAPS_PER_SUM});")
        with text.block("for (int t = t0; t < end; ++t)"):
            text("int p = begin + t;")
            with text.block("if (p < 0 || p >= n)"):
                text("p %= 2 * n;", "p += p < 0 ? 2 * n : 0;", "p = p < n ? p : 2 * n - 1 - p;")
            sample = kernel.value_expr(source, f"source[base + (place)p * {step}]")
            text(f"partial += weights[t] * {sample};")
        text("window += partial;")


def emit_mean(dtype: str, axes: int, wide: bool, dialect: Dialect) -> Kernel:
    """Return the kernel that takes the mean over the shifts of an array along its last axes.

    Planes of the source, in the order of items, shifts and nodes, are ``plane_step`` apart.
    """
    text, number = Text(), DTYPES[dtype]
    long, memory = dialect.long, dialect.global_memory
    kind = long if wide else "unsigned int"
    integers = ["count", "nodes", "source_start", "result_start", "plane_step", "item_step", "node_step"]
    integers += [f"{what}{axis}" for axis in range(axes) for what in ("size", "from", "to")]
    if dialect.prelude:
        text(*dialect.prelude.split("\n"))
    words = [
        f"{memory}const {number} *{dialect.restrict} source",
        f"{memory}{number} *{dialect.restrict} result",
        *(f"const {long} {name}" for name in integers),
    ]
    listed = ",\n        ".join(words)
    with text.block(f"{dialect.kernel.format(items=ITEMS)} mean_of_shifts(\n        {listed})"):
        emit_pointers(text, dialect, ())
        text("source += source_start;", "result += result_start;")
        for axis in range(axes):
            text(f"const int n{axis} = (int)size{axis};")
        with text.unrolled("j", ELEMENTS_PER_ITEM):
            begin = f"({kind}){dialect.group} * {elements_per_group(False)}"
            text(f"const {kind} k = {begin} + j * {ITEMS} + {dialect.item};")
            with text.block(f"if (k < ({kind})count)"):
                rest = "k"
                for axis in reversed(range(axes)):
                    text(f"const int i{axis} = (int)({rest} % ({kind})n{axis});")
                    text(f"const {kind} rest{axis} = {rest} / ({kind})n{axis};")
                    rest = f"rest{axis}"
                text(f"const {kind} each = ({kind})nodes, entry = {rest} / each, node = {rest} % each;")
                places = " + ".join(f"i{axis} * from{axis}" for axis in range(axes))
                pointer = f"{memory}const {number} *{dialect.restrict} at"
                text(f"{pointer} = source + (entry * {2**axes} * each + node) * plane_step + {places};")
                text(f"{number} sum = 0;", "int shifts = 0;")
                for shift, bits in enumerate(product((0, 1), repeat=axes)):
                    shifted = [axis for axis in range(axes) if bits[axis]]
                    offsets = [f"{shift} * each * plane_step", *(f"from{axis}" for axis in shifted)]
                    conditions = " && ".join(f"i{axis} + 1 < n{axis}" for axis in shifted)
                    with text.block(f"if ({conditions})" if shifted else ""):
                        text(f"sum += at[{' + '.join(offsets)}];", "++shifts;")
                steps = ["entry * item_step", "node * node_step"]
                target = " + ".join([*steps, *(f"i{axis} * to{axis}" for axis in range(axes))])
                text(f"result[{target}] = sum / shifts;")
    parameters = tuple((name, True) for name in integers)
    return Kernel("mean_of_shifts", str(text) + "\n", ITEMS, ("source", "result"), parameters)
