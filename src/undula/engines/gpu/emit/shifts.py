"""Kernels for all shifts of a level at once, in the form of filters.

A line that is shifted by s begins with s samples more, which are mirrored: its sample p is x[p - s], where
x[-1] stands for x[1]. Filters of L taps compute the coefficients

    low_s[k] = Σ f[m] · line_s[2k + 1 - m],   m = 0 … L - 1

A group computes those of a tile for all shifts and bands: first along rows, into shared memory or, for short
filters, into registers, then down columns. So samples are read once, or from a cache.

The inverse for all shifts is the mean of their reconstructions. A group computes a tile of it: sums along
rows, over both shifts along them, go to shared memory, and sums down columns to the result. So every
coefficient is read once, and only the mean is written. Sample i of a line is

    x[i] = mean over shifts s of  Σ low_s[k] f[i + s + L - 2 - 2k] + Σ high_s[k] g[i + s + L - 2 - 2k]

for filters f and g of L taps; the last sample has the shift 0 alone.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product

from ....lowering.borders import Border
from .borders import FOLDS, emit_border
from .dialect import Dialect
from .kernel import ELEMENTS, Kernel, emit_pointers
from .text import Text

__all__ = [
    "BAND_COLUMNS",
    "COLUMNS",
    "MARCHING_COLUMNS",
    "MARCHING_ITEMS",
    "MAX_MARCHING_TAPS",
    "emit_marching_shifted",
    "emit_marching_unshifted",
    "emit_shifted",
    "emit_unshifted",
    "marching_tile",
    "shifted_rows",
    "unshifted_rows",
]

ITEMS = 256
COLUMNS = 64  # of a tile of samples
BAND_COLUMNS = 32  # of a tile of coefficients
BANDS = ("aa", "ad", "da", "dd")
MARCHING_ITEMS = 64
MARCHING_COLUMNS = 2 * MARCHING_ITEMS
MARCHING_ROWS = (64, 32, 16, 8)
MARCHING_GROUPS = 64  # for each unit of the device
MAX_MARCHING_TAPS = 8  # Longer filters need too many registers.


def unshifted_rows(taps: int, itemsize: int, shared: int) -> int | None:
    """Return the rows of a tile for filters of so many taps down; None if no tile fits into shared memory."""
    for rows in (32, 16):
        if 4 * (rows + taps) // 2 * COLUMNS * itemsize <= shared:
            return rows
    return None


def _emit_row_sums(
    text: Text, dialect: Dialect, number: int, case: tuple[int, int], along: int, depth: int
) -> None:
    """Append the sums along rows, over both shifts along them, for one shift and one band down."""
    shift, band = case
    names = [BANDS[2 * band + other] for other in (0, 1)]
    for (other, name), moved in product(enumerate(names), (0, 1)):
        plane = f"((entity * 4 + {2 * shift + moved}) * ({dialect.long})nodes + node) * {name}_plane"
        kind = f"{dialect.global_memory}const number *{dialect.restrict}"
        text(f"{kind} p{other}{moved} = {name} + {name}_start + {plane};")
    with text.block(f"for (int k = item / {COLUMNS // 2}; k < {depth}; k += {2 * ITEMS // COLUMNS})"):
        text("const int row = min(first / 2 + k, band_rows - 1);")
        text("number e0 = 0, e1 = 0, o0 = 0, o1 = 0;")
        for other, name in enumerate(names):
            text(f"const {dialect.long} at{other} = ({dialect.long})row * {name}_row;")
            for t in range(along // 2):
                text(
                    f"const number v{other}{t} = p{other}0[at{other} + place{t}];",
                    f"e0 += taps[{other}][{along - 2 - 2 * t}] * v{other}{t};",
                    f"o0 += taps[{other}][{along - 1 - 2 * t}] * v{other}{t};",
                )
            for t in range(along // 2 + 1):
                text(f"const number w{other}{t} = p{other}1[at{other} + place{t}];")
                if t < along // 2:
                    text(f"e1 += taps[{other}][{along - 1 - 2 * t}] * w{other}{t};")
                if t:
                    text(f"o1 += taps[{other}][{along - 2 * t}] * w{other}{t};")
        text(f"sums[{number}][k][2 * pair] = even0 * e0 + even1 * e1;")
        text(f"sums[{number}][k][2 * pair + 1] = odd0 * o0 + odd1 * o1;")


def shifted_rows(taps: int, itemsize: int, shared: int) -> int | None:
    """Return the rows of a tile of coefficients for filters of so many taps down; None if no tile fits."""
    for rows in (16, 8):
        if 4 * (2 * rows + taps - 2) * BAND_COLUMNS * itemsize <= shared:
            return rows
    return None


@lru_cache(maxsize=64)
def emit_shifted(
    dtype: str, taps: tuple[int, int], borders: tuple[Border, Border], rows: int, dialect: Dialect
) -> Kernel:
    """Return the forward kernel.

    Parameters
    ----------
    dtype : str
    taps : (int, int)
        Taps of the filters down and along. The weights are those of f and g down, then along.
    borders : (Border, Border)
        How lines go on beyond their ends: down, and along. Each place beyond is that of a sample.
    rows : int
        Rows of a tile of coefficients.
    dialect : Dialect
    """
    text, long = Text(), dialect.long
    down, along = taps
    depth, step = 2 * rows + down - 2, ITEMS // BAND_COLUMNS
    arrays, integers = _parameters(("x", "weights"), BANDS)
    _emit_types(text, dtype, dialect)
    _emit_places(text, borders, dialect)
    with text.block(_head("shifted", arrays, integers, BANDS, dialect)):
        text(f"{dialect.shared_memory}number sums[4][{depth}][{BAND_COLUMNS}];")
        _emit_tile(text, dialect, BAND_COLUMNS, rows)
        text(f"const int column = item % {BAND_COLUMNS};")
        _emit_forward_taps(text, down, along)
        text(f"int places[2][{along}];")
        left = f"tile % across * {BAND_COLUMNS}"
        text(f"const int inside = 2 * ({left}) >= {along - 1} && 2 * ({left} + {BAND_COLUMNS}) <= columns;")
        with text.unrolled("m", along):
            for shift in (0, 1):
                text(f"places[{shift}][m] = 2 * j + 1 - m - {shift};")
        with text.block("if (!inside)"), text.unrolled("m", along):
            for shift in (0, 1):
                position = "2 * min(j, band_columns - 1) + 1 - m"
                text(f"places[{shift}][m] = along_place({position}, columns, {shift});")
        emit_pointers(text, dialect, ())
        text("x += x_start + entity * x_item + node * x_node;")
        for name in BANDS:
            text(f"{name} += {name}_start + (entity * 4 * ({long})nodes + node) * {name}_plane + j;")
        for shift in (0, 1):
            with text.block(f"for (int k = line; k < {depth}; k += {step})"):
                # Rows beyond those of the last coefficients are not used.
                text(f"const int p = min(2 * first + {2 - down} + k, 2 * band_rows - 1);")
                text(f"const {long} at = ({long})down_place(p, rows, {shift}) * x_row;")
                for moved in (0, 1):
                    text(f"number low{moved} = 0, high{moved} = 0;")
                    with text.unrolled("m", along):
                        text(
                            f"const number value = x[at + places[{moved}][m]];",
                            f"low{moved} += along_taps[0][m] * value;",
                            f"high{moved} += along_taps[1][m] * value;",
                        )
                    text(f"sums[{2 * moved}][k][column] = low{moved};")
                    text(f"sums[{2 * moved + 1}][k][column] = high{moved};")
            text(dialect.barrier)
            with text.block(f"for (int k = line; k < {rows}; k += {step})"):
                text("const int i = first + k;")
                with text.block("if (i < band_rows && j < band_columns)"):
                    for moved, band in product((0, 1), repeat=2):
                        names = (BANDS[band], BANDS[2 + band])
                        text(f"number low{moved}{band} = 0, high{moved}{band} = 0;")
                        with text.unrolled("m", down):
                            sums = f"sums[{2 * moved + band}]"
                            text(
                                f"const number value = {sums}[2 * k + {down - 1} - m][column];",
                                f"low{moved}{band} += down_taps[0][m] * value;",
                                f"high{moved}{band} += down_taps[1][m] * value;",
                            )
                        for name, value in zip(names, ("low", "high"), strict=True):
                            plane = f"{2 * shift + moved} * ({long})nodes * {name}_plane"
                            text(f"{name}[{plane} + ({long})i * {name}_row] = {value}{moved}{band};")
            if not shift:
                text(dialect.barrier)
    return Kernel("shifted", str(text) + "\n", ITEMS, arrays, integers)


@lru_cache(maxsize=64)
def emit_marching_shifted(
    dtype: str, taps: tuple[int, int], borders: tuple[Border, Border], rows: int, dialect: Dialect
) -> Kernel:
    """Return the forward kernel for short filters; the arguments are those of :func:`emit_shifted`.

    An item goes down a column of coefficients, which are at two columns of samples, and keeps the sums along
    the last rows of samples in registers. Coefficients of shift 0 follow from an odd row and those before it,
    and coefficients of shift 1 from an even row. Only at the ends of lines are the rows of both not the same,
    so tiles there are computed in two passes. Places within an image and its coefficients have 31 bits.
    """
    text, long = Text(), dialect.long
    down, along = taps
    arrays, integers = _parameters(("x", "weights"), BANDS)
    _emit_types(text, dtype, dialect)
    _emit_places(text, borders, dialect)
    with text.block(_head("marching_shifted", arrays, integers, BANDS, dialect, MARCHING_ITEMS)):
        _emit_tile(text, dialect, MARCHING_ITEMS, rows)
        text(f"const int last = min(first + {rows}, band_rows);")
        _emit_forward_taps(text, down, along)
        emit_pointers(text, dialect, ())
        text("if (j >= band_columns) return;", f"int places[2][{along}];")
        text(f"const int between = 2 * j >= {along - 1} && 2 * j + 1 < columns;")
        with text.unrolled("m", along):
            for moved in (0, 1):
                place = f"along_place(2 * j + 1 - m, columns, {moved})"
                text(f"places[{moved}][m] = between ? 2 * j + 1 - m - {moved} : {place};")
        text("x += x_start + entity * x_item + node * x_node;")
        for name in BANDS:
            text(f"{name} += {name}_start + (entity * 4 * ({long})nodes + node) * {name}_plane + j;")
        text(f"const int start = 2 * first - {down - 1};", f"number ring[4][{down}];")
        with text.block("if (start >= 0 && 2 * last <= rows)"):
            _emit_march(text, taps, "p", True, dialect)
        with text.block("else"), text.block("for (int pass = 0; pass < 2; ++pass)"):
            _emit_march(text, taps, "down_place(p, rows, pass)", False, dialect)
    return Kernel("marching_shifted", str(text) + "\n", MARCHING_ITEMS, arrays, integers)


def _emit_march(text: Text, taps: tuple[int, int], row: str, both: bool, dialect: Dialect) -> None:
    """Append the way down a tile.

    Parameters
    ----------
    text : Text
    taps : (int, int)
    row : str
        The row of samples at place ``p`` of the line.
    both : bool
        Whether coefficients of both shifts down are computed, or those of shift ``pass``.
    dialect : Dialect
    """
    down, along = taps
    with text.block(f"for (int base = start; base < 2 * last; base += {down})"):
        for t in range(down):
            with text.block():
                text(f"const int p = min(base + {t}, 2 * last - 1);")
                text(f"{dialect.global_memory}const number *{dialect.restrict} line = x + {row} * x_row;")
                for moved in (0, 1):
                    text(f"number samples{moved}[{along}];")
                    with text.unrolled("m", along):
                        text(f"samples{moved}[m] = line[places[{moved}][m]];")
                for moved, band in product((0, 1), repeat=2):
                    terms = (f"along_taps[{band}][{m}] * samples{moved}[{m}]" for m in range(along))
                    text(f"ring[{2 * moved + band}][{t}] = {' + '.join(terms)};")
                if both or t % 2 == 0:
                    with text.block(f"if (base + {t} >= 2 * first && base + {t} < 2 * last)"):
                        shift = str(t % 2) if both else "pass"
                        _emit_marching_coefficients(text, t, down, shift)


def _emit_marching_coefficients(text: Text, t: int, down: int, shift: str) -> None:
    """Append coefficients of one shift down, and both along, given the row at place ``t`` of the ring."""
    for moved, band in product((0, 1), repeat=2):
        for filtered, name in enumerate((BANDS[band], BANDS[2 + band])):
            terms = (
                f"down_taps[{filtered}][{m}] * ring[{2 * moved + band}][{(t - m) % down}]"
                for m in range(down)
            )
            place = f"(2 * {shift} + {moved}) * nodes * (int){name}_plane + (p >> 1) * {name}_row"
            text(f"{name}[{place}] = {' + '.join(terms)};")


def _emit_places(text: Text, borders: tuple[Border, Border], dialect: Dialect) -> None:
    """Append functions for the places of samples of shifted lines, down and along."""
    text(*FOLDS.format(function=dialect.function).split("\n"))
    for border, axis in zip(borders, ("down", "along"), strict=True):
        emit_border(text, dialect, border, f"border_{axis}")
        with text.block(f"{dialect.function} int {axis}_place(int p, int n, int shift)"):
            text(f"const int q = border_{axis}_place(p, n, 0) - shift;", "return q < 0 ? min(1, n - 1) : q;")


def _emit_forward_taps(text: Text, down: int, along: int) -> None:
    """Append the weights of both filters of both axes."""
    for axis, length, start in (("down", down, 0), ("along", along, 2 * down)):
        text(f"number {axis}_taps[2][{length}];")
        with text.unrolled("m", length):
            text(f"{axis}_taps[0][m] = weights[{start} + m];")
            text(f"{axis}_taps[1][m] = weights[{start + length} + m];")


def _parameters(
    read: tuple[str, ...], written: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[tuple[str, bool], ...]]:
    """Return the names of all arrays, and the integer parameters."""
    arrays = (*read, *written)
    integers = [(f"{name}_start", True) for name in arrays]
    integers += [(f"{name}_{what}", what == "plane") for name in BANDS for what in ("plane", "row")]
    integers += [("x_item", True), ("x_node", True), ("x_row", False)]
    names = ("rows", "columns", "band_rows", "band_columns", "nodes", "across", "downwards")
    return arrays, (*integers, *((name, False) for name in names))


def _emit_types(text: Text, dtype: str, dialect: Dialect) -> None:
    if dialect.prelude:
        text(*dialect.prelude.split("\n"))
    text(f"typedef {ELEMENTS[dtype]} number;", "")


def _head(
    name: str,
    arrays: tuple[str, ...],
    integers: tuple[tuple[str, bool], ...],
    written: tuple[str, ...],
    dialect: Dialect,
    items: int = ITEMS,
) -> str:
    """Return the head of a kernel."""
    words = []
    for array in arrays:
        const = "" if array in written else "const "
        words.append(f"{dialect.global_memory}{const}number *{dialect.restrict} {array}")
    words += [f"const {dialect.long if wide else 'int'} {integer}" for integer, wide in integers]
    listed = ",\n        ".join(words)
    return f"{dialect.kernel.format(items=items)} {name}(\n        {listed})"


def _emit_tile(text: Text, dialect: Dialect, columns: int, rows: int) -> None:
    """Append the plane and the tile of the group, the column of the item, and its first line."""
    text(
        f"const int item = {dialect.item}, group = {dialect.group};",
        "const int tile = group % (across * downwards), plane = group / (across * downwards);",
        "const int entity = plane / nodes, node = plane % nodes;",
        f"const int j = tile % across * {columns} + item % {columns};",
        f"const int first = tile / across * {rows}, line = item / {columns};",
        "weights += weights_start;",
    )


@lru_cache(maxsize=64)
def emit_unshifted(dtype: str, taps: tuple[int, int], rows: int, dialect: Dialect) -> Kernel:
    """Return the kernel of the inverse.

    Parameters
    ----------
    dtype : str
    taps : (int, int)
        Taps of the filters down and along, even numbers. The weights are those of f and g down, then along.
    rows : int
        Rows of a tile.
    dialect : Dialect
    """
    text, long = Text(), dialect.long
    down, along = taps
    depth, each = (rows + down) // 2, rows * COLUMNS // ITEMS
    arrays, integers = _parameters((*BANDS, "weights"), ("x",))
    _emit_types(text, dtype, dialect)
    with text.block(_head("unshifted", arrays, integers, ("x",), dialect)):
        text(f"{dialect.shared_memory}number sums[4][{depth}][{COLUMNS}];")
        _emit_tile(text, dialect, COLUMNS, rows)
        for name, length, start in (("f", down, 0), ("g", down, down)):
            text(f"number {name}[{length}];")
            with text.unrolled("t", length):
                text(f"{name}[t] = weights[{start} + t];")
        text(f"number taps[2][{along}];")
        with text.unrolled("t", along):
            text(f"taps[0][t] = weights[{2 * down} + t];", f"taps[1][t] = weights[{2 * down + along} + t];")
        # An item sums up an even column and the next one, which depend on almost the same coefficients.
        text(
            f"const int pair = item % {COLUMNS // 2}, even = tile % across * {COLUMNS} + 2 * pair;",
            "const number even0 = even + 1 < columns ? (number)0.5 : 1, even1 = 1 - even0;",
            "const number odd0 = even + 2 < columns ? (number)0.5 : 1, odd1 = 1 - odd0;",
        )
        for t in range(along // 2 + 1):
            text(f"const int place{t} = min(even / 2 + {t}, band_columns - 1);")
        emit_pointers(text, dialect, ())
        with text.block("if (even < columns)"):
            for number, (shift, band) in enumerate(product((0, 1), repeat=2)):
                with text.block():
                    _emit_row_sums(text, dialect, number, (shift, band), along, depth)
        text(dialect.barrier)
        text("x += x_start + entity * x_item + node * x_node + j;")
        with text.block("if (j < columns)"), text.unrolled("r", each):
            text(f"const int y = line * {each} + r, i = first + y;")
            with text.block("if (i < rows)"):
                for shift in (0, 1):
                    text(f"number sum{shift} = 0;")
                    with text.unrolled("t", down // 2):
                        for band, name in enumerate("fg"):
                            value = f"sums[{2 * shift + band}][(y + {shift}) / 2 + t][item % {COLUMNS}]"
                            weight = f"{name}[{down - 2} + (r + {shift} & 1) - 2 * t]"
                            text(f"sum{shift} += {weight} * {value};")
                text(f"x[({long})i * x_row] = i + 1 < rows ? (number)0.5 * (sum0 + sum1) : sum0;")
    return Kernel("unshifted", str(text) + "\n", ITEMS, arrays, integers)


def marching_tile(rows: int, columns: int, planes: int, units: int, width: int) -> tuple[int, int]:
    """Return rows and columns of a tile for items that go down columns, so that all units are busy.

    ``width`` is the number of columns of a group: ``MARCHING_COLUMNS`` samples, or ``MARCHING_ITEMS``
    coefficients.
    """
    height = MARCHING_ROWS[0]
    for height in MARCHING_ROWS:
        if planes * (rows // height + 1) * (columns // width + 1) >= MARCHING_GROUPS * units:
            break
    return height, width


@lru_cache(maxsize=64)
def emit_marching_unshifted(dtype: str, taps: tuple[int, int], rows: int, dialect: Dialect) -> Kernel:
    """Return the kernel of the inverse for short filters; the arguments are those of :func:`emit_unshifted`.

    An item computes two columns, and goes down a tile by two rows at a time. It keeps the sums along the last
    rows of coefficients in registers. Places within the coefficients of an image have 31 bits.
    """
    text = Text()
    down, along = taps
    high, wide = down // 2, along // 2
    arrays, integers = _parameters((*BANDS, "weights"), ("x",))
    _emit_types(text, dtype, dialect)
    with text.block(_head("marching_unshifted", arrays, integers, ("x",), dialect, MARCHING_ITEMS)):
        text(
            f"const int item = {dialect.item}, group = {dialect.group};",
            "const int tile = group % (across * downwards), plane = group / (across * downwards);",
            "const int entity = plane / nodes, node = plane % nodes;",
            f"const int pair = tile % across * {MARCHING_ITEMS} + item, j = 2 * pair;",
            f"const int first = tile / across * {rows}, end = min(first + {rows}, rows);",
            "weights += weights_start;",
        )
        begin = 0
        for name, count in (("f", down), ("g", down), ("u", along), ("v", along)):
            text(f"number {name}[{count}];")
            with text.unrolled("t", count):
                text(f"{name}[t] = weights[{begin} + t];")
            begin += count
        emit_pointers(text, dialect, ())
        text("if (j >= columns) return;")
        # The last sample has the shift 0 alone.
        for side in (0, 1):
            text(
                f"const number share{side} = j + {side + 1} < columns ? (number)0.5 : (number)1;",
                f"const number rest{side} = 1 - share{side};",
            )
        text(f"number z[2][2][{high + 1}][2];")
        text("x += x_start + entity * x_item + node * x_node + j;")
        for name in BANDS:
            plane = f"(entity * 4 * ({dialect.long})nodes + node) * {name}_plane"
            text(f"{name} += {name}_start + {plane} + pair;")
        text(f"const int right = tile % across * {MARCHING_ITEMS} + {MARCHING_ITEMS + wide};")
        # Only groups at the right border have coefficients that are repeated.
        with text.block("if (right <= band_columns)"):
            _emit_march_back(text, high, wide, True, dialect)
        with text.block("else"):
            _emit_march_back(text, high, wide, False, dialect)
    return Kernel("marching_unshifted", str(text) + "\n", MARCHING_ITEMS, arrays, tuple(integers))


def _emit_march_back(text: Text, high: int, wide: int, inside: bool, dialect: Dialect) -> None:
    """Append the way down a tile of samples; all coefficients of a group exist if it is ``inside``."""
    with text.block(f"for (int k = first / 2; 2 * (k - {high}) < end; ++k)"):
        text("const int row = min(k, band_rows - 1);")
        for shift, band in product((0, 1), repeat=2):
            with text.block():
                _emit_marching_sums(text, shift, band, wide, inside, dialect)
                with text.unrolled("t", high):
                    for side in (0, 1):
                        text(f"z[{shift}][{band}][t][{side}] = z[{shift}][{band}][t + 1][{side}];")
                for side, name in enumerate(("even", "odd")):
                    mean = f"share{side} * {name}0 + rest{side} * {name}1"
                    text(f"z[{shift}][{band}][{high}][{side}] = {mean};")
        text(f"const int i = 2 * (k - {high});", "if (i < first) continue;")
        for side in (0, 1):
            with text.block(f"if (j + {side} < columns)"):
                _emit_column_sums(text, side, high, dialect)


def _emit_marching_sums(text: Text, shift: int, band: int, wide: int, inside: bool, dialect: Dialect) -> None:
    """Append sums along a row of coefficients: at both columns of an item, for both shifts along the row."""
    last = 2 * wide - 1
    for moved in (0, 1):
        text(f"number even{moved} = 0, odd{moved} = 0;")
        for other, taps in enumerate("uv"):
            name = BANDS[2 * band + other]
            with text.block():
                start = f"{name} + ({2 * shift + moved} * nodes * (int){name}_plane + row * {name}_row)"
                text(f"{dialect.global_memory}const number *{dialect.restrict} p = {start};")
                for t in range(wide + moved):
                    text(f"const number c{t} = p[{t if inside else f'min({t}, band_columns - 1 - pair)'}];")
                    # The line of a shift begins one sample earlier: even samples are odd ones there.
                    if not moved:
                        text(f"even0 += c{t} * {taps}[{last - 1 - 2 * t}];")
                        text(f"odd0 += c{t} * {taps}[{last - 2 * t}];")
                    if moved and t < wide:
                        text(f"even1 += c{t} * {taps}[{last - 2 * t}];")
                    if moved and t:
                        text(f"odd1 += c{t} * {taps}[{last - 1 - 2 * (t - 1)}];")


def _emit_column_sums(text: Text, side: int, high: int, dialect: Dialect) -> None:
    """Append two samples of a column, which follow from the rows of coefficients in ``z``."""
    last = 2 * high - 1
    text("number even0 = 0, odd0 = 0, even1 = 0, odd1 = 0;")
    for t in range(high):
        for band, taps in enumerate("fg"):
            text(
                f"even0 += z[0][{band}][{t}][{side}] * {taps}[{last - 1 - 2 * t}];",
                f"odd0 += z[0][{band}][{t}][{side}] * {taps}[{last - 2 * t}];",
                f"even1 += z[1][{band}][{t}][{side}] * {taps}[{last - 2 * t}];",
                f"odd1 += z[1][{band}][{t + 1}][{side}] * {taps}[{last - 1 - 2 * t}];",
            )
    target = f"x[({dialect.long})(i + %s) * x_row + {side}]"
    text(
        f"{target % 0} = i + 1 < rows ? (number)0.5 * (even0 + even1) : even0;",
        f"if (i + 1 < end) {target % 1} = i + 2 < rows ? (number)0.5 * (odd0 + odd1) : odd0;",
    )
