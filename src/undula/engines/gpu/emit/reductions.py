"""Kernels for one number of each item: sums, maxima, medians, and thresholds of least risk.

Results do not depend on the order in which groups run: partial sums are added in a fixed order, and medians
count in integers.
"""

from __future__ import annotations

from collections.abc import Sequence

from .dialect import Dialect
from .parts import PartsKernel, PartsSpec, size_fields

__all__ = [
    "BINS",
    "ITEMS",
    "SORTED_AT_ONCE",
    "STATE",
    "digits",
    "emit_folded",
    "emit_keys",
    "emit_median_pass",
    "emit_median_result",
    "emit_partials",
    "emit_risks",
    "emit_sort_block",
    "emit_sort_step",
]

ITEMS = 256
BINS = 2048  # of a histogram: one of all magnitudes, or those around two ranks
STATE = 5  # numbers that are kept between passes: prefix and rank of both middle magnitudes, and the count
LOADS_AT_ONCE = 4  # of an item, so that it waits for memory less often
SORTED_AT_ONCE = 2048  # numbers that a group sorts in shared memory
FOLDS = {"sum": "total + other", "max": "fmax(total, other)"}


def digits(number: str) -> list[tuple[int, int]]:
    """Return the shift and the number of bits of each pass over the bits of magnitudes, highest first."""
    widths = [11, 10, 10] if number == "float" else [11, 10, 10, 10, 10, 10, 2]
    rest = sum(widths)
    passes = []
    for bits in widths:
        rest -= bits
        passes.append((rest, bits))
    return passes


def _source_kernel(
    spec: PartsSpec, name: str, extra: Sequence[tuple[str, str]], integers: Sequence[str] = ()
) -> PartsKernel:
    """Return a kernel on chunks of items, which are along the first axis."""
    sizes = size_fields(range(1, spec.ndim))
    return spec.kernel(name, ITEMS, ["count", "chunk", "chunks", "entry", "padded", *sizes], extra, integers)


def _emit_chunk(kernel: PartsKernel) -> str:
    """Append the range of the group's chunk, and return the type of places in it."""
    kind = kernel.dialect.long if kernel.wide else "unsigned int"
    kernel.text(
        f"const {kind} begin = ({kind})(rank % (int)chunks) * ({kind})chunk;",
        f"const {kind} end = min(begin + ({kind})chunk, ({kind})count);",
    )
    return kind


def _loop_head(kernel: PartsKernel) -> str:
    """Append the range of the group's chunk, and return the head of the loop over it."""
    kind = _emit_chunk(kernel)
    return f"for ({kind} k = begin + item; k < end; k += {ITEMS})"


def _emit_item(kernel: PartsKernel) -> None:
    kernel.emit_part()
    kernel.text("const int entity = rank / (int)chunks;")
    kernel.emit_pointers(["entity"])


def _emit_source(kernel: PartsKernel, spec: PartsSpec, names: dict[int, str], root: int) -> str:
    """Append the value of a sample at place ``k`` of the item, and return its name."""
    indices = kernel.emit_indices("k", range(1, spec.ndim), spec.index)
    local = dict(names)
    kernel.emit_steps(spec.pattern, (root,), indices, local)
    return local[root]


def emit_partials(kind: str, spec: PartsSpec, direct: bool) -> PartsKernel:
    """Return the kernel that sums up, or takes the maximum, of each chunk of each item.

    If it is ``direct``, items have one chunk, and the result, behind the loads, is written.
    """
    kernel = _source_kernel(spec, "partial", [] if direct else [("number", "partials")])
    text, dialect, (root,) = kernel.text, spec.dialect, spec.pattern.roots
    kernel.emit_prelude()
    with text.block(kernel.head()):
        text(f"{dialect.shared_memory}number shared_total[{ITEMS}];")
        _emit_item(kernel)
        names = kernel.emit_uniform(spec.pattern, (root,), range(1, spec.ndim))
        head = _loop_head(kernel)
        text(f"number total = {_identity(kind, dialect)};")
        with text.block(head):
            text(f"const number other = {_emit_source(kernel, spec, names, root)};")
            text(f"total = {FOLDS[kind]};")
        _emit_group_fold(kernel, kind)
        with text.block("if (item == 0)"):
            if direct:
                kernel.emit_store(spec.accesses[-1], {}, "total")
            else:
                text("partials[entry + rank] = total;")
    return kernel


def _infinity(dialect: Dialect) -> str:
    return f"{dialect.bits_float}(0x7f800000)"


def _identity(kind: str, dialect: Dialect) -> str:
    """Return what changes no sum, or no maximum."""
    return "0" if kind == "sum" else f"-{_infinity(dialect)}"


def _emit_group_fold(kernel: PartsKernel, kind: str) -> None:
    """Append the fold of ``total`` over all items of a group, which item 0 then has."""
    text, dialect = kernel.text, kernel.dialect
    text("shared_total[item] = total;", dialect.barrier)
    with text.block(f"for (int step = {ITEMS // 2}; step > 0; step >>= 1)"):
        with text.block("if (item < step)"):
            text("const number other = shared_total[item + step];")
            text(f"total = {FOLDS[kind]};", "shared_total[item] = total;")
        text(dialect.barrier)


def emit_folded(kind: str, spec: PartsSpec) -> PartsKernel:
    """Return the kernel that folds the chunks of each item; the result is the only array."""
    result, dialect = spec.accesses[-1], spec.dialect
    extra = [("const number", "partials")]
    kernel = PartsKernel("fold", dialect, spec.number, False, ITEMS, [result], ["chunks", "entry"], 0, extra)
    text = kernel.text
    kernel.emit_prelude()
    with text.block(kernel.head()):
        text(f"{dialect.shared_memory}number shared_total[{ITEMS}];")
        kernel.emit_part()
        kernel.emit_pointers(["rank"])
        text("partials += entry + rank * chunks;")
        text(f"number total = {_identity(kind, dialect)};")
        with text.block(f"for (int k = item; k < (int)chunks; k += {ITEMS})"):
            text("const number other = partials[k];", f"total = {FOLDS[kind]};")
        _emit_group_fold(kernel, kind)
        with text.block("if (item == 0)"):
            kernel.emit_store(result, {}, "total")
    return kernel


# --- medians --------------------------------------------------------------------------------------


def _emit_state(kernel: PartsKernel, key: str) -> None:
    """Append the state of an item before pass ``turn``: what the histograms of previous passes tell.

    That is the leading bits of both middle magnitudes, and their ranks among the magnitudes with these bits.
    Both histograms of a pass are scanned together; they are one if the leading bits are the same.
    """
    text, dialect = kernel.text, kernel.dialect
    memory, long = dialect.global_memory, dialect.long
    text(
        f"{memory}const {long} *state = states + (turn - 1) * {STATE};",
        "const int later = turn > 1;",
        f"{key} prefix0 = later ? ({key})state[0] : 0, prefix1 = later ? ({key})state[2] : 0;",
        "unsigned int rank0 = (unsigned int)state[1], rank1 = (unsigned int)state[3];",
        "unsigned int counted = (unsigned int)state[4];",
        f"const int each = later ? {BINS // 2 // ITEMS} : {BINS // ITEMS};",
        f"{memory}const unsigned int *bins0 = histograms + (turn - 1) * {BINS} + item * each;",
        f"{memory}const unsigned int *bins1 = bins0 + (prefix0 != prefix1 ? {BINS // 2} : 0);",
        "unsigned int own0 = 0, own1 = 0;",
        "for (int k = 0; k < each; ++k) { own0 += bins0[k]; own1 += bins1[k]; }",
        "sums[0][item] = own0;",
        "sums[1][item] = own1;",
        dialect.barrier,
    )
    with text.block(f"for (int step = 1; step < {ITEMS}; step <<= 1)"):
        for k in (0, 1):
            text(f"const unsigned int before{k} = item >= step ? sums[{k}][item - step] : 0;")
        text(dialect.barrier, "sums[0][item] += before0;", "sums[1][item] += before1;", dialect.barrier)
    with text.block("if (!later)"):
        text(
            f"counted = sums[0][{ITEMS - 1}];",
            "rank0 = counted ? (counted - 1) / 2 : 0;",
            "rank1 = counted / 2;",
        )
    for k in (0, 1):
        text(f"unsigned int below{k} = sums[{k}][item] - own{k};")
        with text.block(f"if (below{k} <= rank{k} && rank{k} < below{k} + own{k})"):
            text(
                "int bin = 0;",
                f"while (below{k} + bins{k}[bin] <= rank{k}) below{k} += bins{k}[bin++];",
                f"found[{2 * k}] = item * each + bin;",
                f"found[{2 * k + 1}] = below{k};",
            )
    text(dialect.barrier)
    with text.block("if (counted)"):
        text("prefix0 = prefix0 << previous_bits | found[0];", "rank0 -= found[1];")
        text("prefix1 = prefix1 << previous_bits | found[2];", "rank1 -= found[3];")
    with text.block("if (item == 0 && rank % (int)chunks == 0)"):
        text(f"{memory}{long} *next = states + turn * {STATE};")
        text(f"next[0] = ({long})prefix0;", "next[1] = rank0;")
        text(f"next[2] = ({long})prefix1;", "next[3] = rank1;", "next[4] = counted;")


def _emit_shared_sums(kernel: PartsKernel) -> None:
    shared = kernel.dialect.shared_memory
    kernel.text(f"{shared}unsigned int sums[2][{ITEMS}];", f"{shared}unsigned int found[4];")


def _key(number: str, dialect: Dialect) -> tuple[str, str, str]:
    """Return the type of the bits of numbers, and the functions to bits and back."""
    if number == "float":
        return "unsigned int", dialect.float_bits, dialect.bits_float
    return f"unsigned {dialect.long}", dialect.double_bits, dialect.bits_double


def _emit_item_memory(kernel: PartsKernel, turns: int) -> None:
    kernel.text(
        f"histograms += (entry + entity) * {turns * BINS};",
        f"states += (entry + entity) * {(turns + 1) * STATE};",
    )


def emit_median_pass(first: bool, spec: PartsSpec) -> PartsKernel:
    """Return the kernel of the first pass over the bits of magnitudes, or of the others.

    It counts magnitudes with the leading bits known so far by their next bits. The roots of the pattern are
    the samples and the limit of an item.
    """
    turns = len(digits(spec.number))
    pattern, dialect = spec.pattern, spec.dialect
    key, to_bits, _ = _key(spec.number, dialect)
    extra = [("unsigned int", "histograms"), (dialect.long, "states")]
    integers = ["turn", "shift", "bits", "previous_bits"]
    kernel = _source_kernel(spec, "median_first" if first else "median_pass", extra, integers)
    text, (source, limit) = kernel.text, pattern.roots
    kernel.emit_prelude()
    with text.block(kernel.head()):
        text(f"{dialect.shared_memory}unsigned int counts[{BINS}];")
        if not first:
            _emit_shared_sums(kernel)
        _emit_item(kernel)
        _emit_item_memory(kernel, turns)
        text(f"for (int k = item; k < {BINS}; k += {ITEMS}) counts[k] = 0;", dialect.barrier)
        if first:
            text(f"const {key} prefix0 = 0, prefix1 = 0;", "const unsigned int counted = 1;")
        else:
            _emit_state(kernel, key)
        names = kernel.emit_uniform(pattern, pattern.roots, range(1, spec.ndim))
        text(f"const number lowest = {names[limit]};")
        kind = _emit_chunk(kernel)
        stride = ITEMS * LOADS_AT_ONCE
        with (
            text.block("if (counted)"),
            text.block(f"for ({kind} first = begin + item; first < end; first += {stride})"),
        ):
            text(f"number magnitudes[{LOADS_AT_ONCE}];")
            with text.unrolled("j", LOADS_AT_ONCE):
                text(f"const {kind} k = first + j * {ITEMS};", f"magnitudes[j] = {_infinity(dialect)};")
                with text.block("if (k < end)"):
                    text(f"magnitudes[j] = fabs({_emit_source(kernel, spec, names, source)});")
            inside = f"magnitude > lowest && magnitude < {_infinity(dialect)}"
            with text.unrolled("j", LOADS_AT_ONCE):
                text("const number magnitude = magnitudes[j];", f"if (!({inside})) continue;")
                text(f"const {key} magnitude_bits = {to_bits}(magnitude);")
                add = dialect.atomic_add.format(address="&counts[%s]", value=1)
                text(f"const {key} leading = {'0' if first else 'magnitude_bits >> (shift + bits)'};")
                text(f"const int bin = (int)(magnitude_bits >> shift & ((({key})1 << bits) - 1));")
                text(f"if (leading == prefix0) {add % 'bin'}")
                text(f"else if (leading == prefix1) {add % f'{BINS // 2} + bin'}")
        text(dialect.barrier)
        with text.block(f"for (int k = item; k < {BINS}; k += {ITEMS})"):
            target = f"&histograms[turn * {BINS} + k]"
            text(f"if (counts[k]) {dialect.atomic_add.format(address=target, value='counts[k]')}")
    return kernel


def emit_median_result(spec: PartsSpec) -> PartsKernel:
    """Return the kernel that stores medians, and clears the histograms for the next time."""
    turns, result, dialect = len(digits(spec.number)), spec.accesses[-1], spec.dialect
    key, _, from_bits = _key(spec.number, dialect)
    extra = [("unsigned int", "histograms"), (dialect.long, "states")]
    fields, integers = ["chunks", "entry"], ["turn", "previous_bits"]
    kernel = PartsKernel(
        "median_result", dialect, spec.number, False, ITEMS, [result], fields, 0, extra, integers
    )
    text = kernel.text
    kernel.emit_prelude()
    with text.block(kernel.head()):
        _emit_shared_sums(kernel)
        kernel.emit_part()
        text("const int entity = rank;")
        kernel.emit_pointers(["entity"])
        _emit_item_memory(kernel, turns)
        _emit_state(kernel, key)
        text(dialect.barrier.replace("LOCAL", "GLOBAL"))
        text(f"for (int k = item; k < {turns * BINS}; k += {ITEMS}) histograms[k] = 0;")
        with text.block("if (item == 0)"):
            text(f"const number low = {from_bits}(prefix0), high = {from_bits}(prefix1);")
            kernel.emit_store(result, {}, "counted ? low + (high - low) / 2 : 0")
    return kernel


# --- thresholds of least risk ---------------------------------------------------------------------


def emit_keys(spec: PartsSpec) -> PartsKernel:
    """Return the kernel that writes magnitudes to be sorted, padded with infinity to a power of two.

    The chunks of an item cover the padded numbers.
    """
    kernel = _source_kernel(spec, "keys", [("number", "keys")])
    text, dialect, kind = kernel.text, spec.dialect, spec.index
    source = spec.pattern.roots[0]
    kernel.emit_prelude()
    with text.block(kernel.head()):
        _emit_item(kernel)
        text("keys += entry + entity * padded;")
        names = kernel.emit_uniform(spec.pattern, (source,), range(1, spec.ndim))
        text(
            f"const {kind} begin = ({kind})(rank % (int)chunks) * ({kind})chunk;",
            f"const {kind} end = min(begin + ({kind})chunk, ({kind})padded);",
        )
        with text.block(f"for ({kind} k = begin + item; k < end; k += {ITEMS})"):
            text(f"number magnitude = {_infinity(dialect)};")
            with text.block(f"if (k < ({kind})count)"):
                value = _emit_source(kernel, spec, names, source)
                text(f"const number size = fabs({value});", "if (size < magnitude) magnitude = size;")
            text("keys[k] = magnitude;")
    return kernel


def emit_sort_step(number: str, dialect: Dialect) -> PartsKernel:
    """Return the kernel of one step of a bitonic network: it orders numbers that are ``distance`` apart.

    Sequences of a ``length``, of which the parameter is the logarithm, are alternately ascending and
    descending.
    """
    kernel = _sorting_kernel("sort_step", number, dialect, ["length_bits", "distance"])
    text, long, half = kernel.text, dialect.long, SORTED_AT_ONCE // 2
    kernel.emit_prelude()
    with text.block(kernel.head()):
        _emit_sorting_block(kernel)
        with text.block(f"for (int k = item; k < {half}; k += {ITEMS})"):
            text(
                f"const {long} pair = ({long})block_number * {half} + k;",
                f"const {long} low = pair / distance * 2 * distance + pair % distance;",
            )
            with text.block("if (length <= padded && low + distance < padded)"):
                text("const number a = keys[low], b = keys[low + distance];")
                with text.block("if ((a > b) == ((low & length) == 0))"):
                    text("keys[low] = b;", "keys[low + distance] = a;")
    return kernel


def emit_sort_block(number: str, dialect: Dialect) -> PartsKernel:
    """Return the kernel of all steps of a bitonic network within blocks, in shared memory.

    It sorts sequences of a block, or with ``length_bits`` finishes the sequences of that length.
    """
    kernel = _sorting_kernel("sort_block", number, dialect, ["length_bits"])
    text, long, half = kernel.text, dialect.long, SORTED_AT_ONCE // 2
    kernel.emit_prelude()
    with text.block(kernel.head()):
        text(f"{dialect.shared_memory}number block[{SORTED_AT_ONCE}];")
        _emit_sorting_block(kernel)
        text(f"const {long} base = ({long})block_number * {SORTED_AT_ONCE};")
        # Sequences that are longer than an item are not touched.
        text("const int active = !length_bits || length <= padded;")
        with text.block(f"for (int k = item; k < {SORTED_AT_ONCE}; k += {ITEMS})"):
            text(f"block[k] = base + k < padded ? keys[base + k] : {_infinity(dialect)};")
        text(dialect.barrier)
        text(f"const {long} last = length_bits ? length : {SORTED_AT_ONCE};")
        with text.block(
            f"for ({long} sequence = length_bits ? length : 2; sequence <= last; sequence <<= 1)"
        ):
            text(f"int gap = sequence > {SORTED_AT_ONCE} ? {half} : (int)(sequence >> 1);")
            with text.block("for (; gap > 0; gap >>= 1)"):
                with text.block(f"for (int k = item; k < {half}; k += {ITEMS})"):
                    text(
                        "const int low = k / gap * 2 * gap + k % gap;",
                        "const number a = block[low], b = block[low + gap];",
                    )
                    with text.block("if ((a > b) == (((base + low) & sequence) == 0))"):
                        text("block[low] = b;", "block[low + gap] = a;")
                text(dialect.barrier)
        with text.block(f"for (int k = item; k < {SORTED_AT_ONCE}; k += {ITEMS})"):
            text("if (active && base + k < padded) keys[base + k] = block[k];")
    return kernel


def _sorting_kernel(name: str, number: str, dialect: Dialect, integers: list[str]) -> PartsKernel:
    fields, extra = ["blocks", "entry", "padded"], [("number", "keys")]
    return PartsKernel(name, dialect, number, False, ITEMS, [], fields, 0, extra, integers)


def _emit_sorting_block(kernel: PartsKernel) -> None:
    """Append the block of the group, and the length of the sequences."""
    long = kernel.dialect.long
    kernel.emit_part()
    kernel.emit_pointers()
    kernel.text(
        f"const {long} length = ({long})1 << length_bits;",
        "const int entity = rank / (int)blocks, block_number = rank % (int)blocks;",
        "keys += entry + entity * padded;",
    )


def emit_risks(stage: str, spec: PartsSpec) -> PartsKernel:
    """Return a kernel that finds the magnitude of least risk among sorted ones.

    Parameters
    ----------
    stage : {"squares", "risks", "threshold"}
        The sum of the squares of each chunk, the least risk of each chunk and where it is, or the result.
    spec : PartsSpec
        The roots of its pattern are the samples and the limit of an item. Behind the loads is the result.
    """
    dialect, limit = spec.dialect, spec.pattern.roots[1]
    extra = [("const number", "keys"), ("double", "partials")]
    fields = ["count", "chunk", "chunks", "entry", "padded", "partial"]
    kernel = spec.kernel(f"sure_{stage}", ITEMS, fields, extra)
    text, long = kernel.text, dialect.long
    kernel.emit_prelude()
    with text.block(kernel.head()):
        text(
            f"{dialect.shared_memory}double totals[{ITEMS}];", f"{dialect.shared_memory}int places[{ITEMS}];"
        )
        kernel.emit_part()
        groups = "1" if stage == "threshold" else "(int)chunks"
        text(f"const int entity = rank / {groups}, turn = rank % {groups};")
        kernel.emit_pointers(["entity"])
        # For each chunk of each item: the sum of its squares, its least risk, and the place of that.
        text(f"keys += entry + entity * ({long})padded;", "partials += partial + entity * chunks * 3;")
        if stage == "threshold":
            text(f"double best = {_infinity(dialect)};", "int at = 0;")
            with text.block(f"for (int k = item; k < (int)chunks; k += {ITEMS})"):
                text("const double risk = partials[3 * k + 1];")
                text("if (risk < best) { best = risk; at = (int)partials[3 * k + 2]; }")
            _emit_least(kernel)
            with text.block("if (item == 0)"):
                kernel.emit_store(spec.accesses[-1], {}, "totals[0] < (double)count ? keys[places[0]] : 0")
            return kernel
        # Each item has consecutive magnitudes of the chunk.
        text(
            f"const int each = ((int)chunk + {ITEMS - 1}) / {ITEMS};",
            "const int begin = turn * (int)chunk + item * each;",
            "const int end = min(min(begin + each, (turn + 1) * (int)chunk), (int)count);",
            "double sum = 0;",
            "for (int k = begin; k < end; ++k) sum += (double)keys[k] * keys[k];",
            "totals[item] = sum;",
            dialect.barrier,
        )
        with text.block(f"for (int step = 1; step < {ITEMS}; step <<= 1)"):
            text("const double before = item >= step ? totals[item - step] : 0;", dialect.barrier)
            text("totals[item] += before;", dialect.barrier)
        if stage == "squares":
            text(f"if (item == 0) partials[3 * turn] = totals[{ITEMS - 1}];")
            return kernel
        names = kernel.emit_uniform(spec.pattern, (limit,), ())
        text(f"const number limit = {names[limit]};")
        text(
            "double squares = item ? totals[item - 1] : 0;",
            "for (int k = 0; k < turn; ++k) squares += partials[3 * k];",
            f"double best = {_infinity(dialect)};",
            "int at = 0;",
        )
        with text.block("for (int k = begin; k < end; ++k)"):
            text("const double square = (double)keys[k] * keys[k];", "squares += square;")
            text("const double larger = (double)(count - k - 1);")
            text("const double risk = (double)count - 2.0 * (k + 1) + squares + larger * square;")
            text("if (keys[k] <= limit && risk < best) { best = risk; at = k; }")
        text(dialect.barrier)
        _emit_least(kernel)
        text("if (item == 0) { partials[3 * turn + 1] = totals[0]; partials[3 * turn + 2] = places[0]; }")
    return kernel


def _emit_least(kernel: PartsKernel) -> None:
    """Append the least ``best`` of a group and its place; the first one if several are equal."""
    text, dialect = kernel.text, kernel.dialect
    text("totals[item] = best;", "places[item] = at;", dialect.barrier)
    with text.block(f"for (int step = {ITEMS // 2}; step > 0; step >>= 1)"):
        with text.block("if (item < step)"):
            text("const double other = totals[item + step];", "const int position = places[item + step];")
            condition = "other < totals[item] || (other == totals[item] && position < places[item])"
            text(f"if ({condition}) {{ totals[item] = other; places[item] = position; }}")
        text(dialect.barrier)
