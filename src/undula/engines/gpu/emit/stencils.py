"""Kernels for windows along the last two axes.

:func:`emit_stencil` computes a tile of results in each group. What is summed is evaluated once for each
sample of the tile and its halo, into shared memory; sums along rows go to a second array there, and sums down
columns to registers.

:func:`emit_marching_stencil` is for windows with equal weights, on devices whose lanes exchange values. A
warp goes down a strip of columns, two for each lane, and keeps the sums along the last rows in registers.
"""

from __future__ import annotations

from dataclasses import dataclass

from .borders import FOLDS
from .parts import PartsKernel, PartsSpec
from .text import Text

__all__ = [
    "STENCIL_ITEMS",
    "TileShape",
    "emit_marching_stencil",
    "emit_stencil",
    "marching_width",
    "tile_shape",
]

ITEMS = 256
STENCIL_ITEMS = 128
LANES = 32
MAX_MARCHING_TAPS = 17  # along each axis
SEGMENT = 8  # Sums of neighbouring places that an item computes from the same samples.
MAX_UNROLLED = 40  # samples in registers


@dataclass(frozen=True)
class TileShape:
    """A tile of results, and the reach of the window around each of them.

    Parameters
    ----------
    rows, columns : int
    above, left : int
        Reach of the window.
    """

    rows: int
    columns: int
    above: int
    left: int

    @property
    def high(self) -> int:
        """Rows with the halo."""
        return self.rows + 2 * self.above

    @property
    def wide(self) -> int:
        """Columns with the halo."""
        return self.columns + 2 * self.left

    @property
    def pitch(self) -> int:
        """Numbers from row to row of the samples; odd, so that items of a column use different banks."""
        return self.wide | 1

    @property
    def sums_pitch(self) -> int:
        """Numbers from row to row of the sums along rows."""
        return self.columns | 1

    @property
    def numbers(self) -> int:
        """Numbers in shared memory."""
        return self.high * (self.pitch + (self.sums_pitch if self.left else 0))


def tile_shape(taps: tuple[int, int], itemsize: int, shared: int) -> TileShape | None:
    """Return the tile for windows of so many taps down and along; None if it does not fit."""
    for columns, rows in ((64, 24), (64, 16), (32, 16), (32, 8)):
        tile = TileShape(rows, columns, taps[0] // 2, taps[1] // 2)
        if tile.numbers * itemsize <= shared and 4 * rows * columns >= tile.high * tile.wide:
            return tile
    return None


def emit_stencil(spec: PartsSpec, tile: TileShape, boxes: tuple[bool, bool]) -> PartsKernel:
    """Return the kernel of a stencil.

    Parameters
    ----------
    spec : PartsSpec
        The roots of its pattern are what is summed, and the value. Behind the loads is the result. The last
        two axes are those of the tile.
    tile : TileShape
    boxes : (bool, bool)
        Whether all weights down and along are equal. Their product then is the first of ``weights``, and 1
        takes the place of each.
    """
    pattern, dialect, result = spec.pattern, spec.dialect, spec.accesses[-1]
    source, value = pattern.roots
    outer = list(range(spec.ndim - 2))
    row_axis, column_axis = len(outer), len(outer) + 1
    fields = ["rows", "columns", "across", "tiles", *(f"size{axis}" for axis in outer)]
    kernel = spec.kernel("stencil", ITEMS, fields, [("const number", "weights")])
    text = kernel.text
    kernel.emit_prelude()
    text(*FOLDS.format(function=dialect.function).split("\n")[6:])
    high, columns = tile.high, tile.columns
    with text.block(kernel.head()):
        text(f"{dialect.shared_memory}number samples[{high * tile.pitch}];")
        if tile.left:
            text(f"{dialect.shared_memory}number sums[{high * tile.sums_pitch}];")
        kernel.emit_part()
        text("const int in_plane = rank % (int)tiles, plane = rank / (int)tiles;")
        text(
            f"const int row0 = in_plane / (int)across * {tile.rows} - {tile.above};",
            f"const int column0 = in_plane % (int)across * {columns} - {tile.left};",
        )
        ends = (f"row0 + {high} <= (int)rows", f"column0 + {tile.wide} <= (int)columns")
        text(f"const int inside = row0 >= 0 && column0 >= 0 && {' && '.join(ends)};")
        indices = kernel.emit_indices("plane", outer, "int")
        kernel.emit_pointers(list(indices.values()))
        names = kernel.emit_uniform(pattern, pattern.roots, (row_axis, column_axis))
        with text.block(f"for (int k = item; k < {high * tile.wide}; k += {ITEMS})"):
            text(f"const int y = k / {tile.wide}, x = k % {tile.wide};")
            # Only tiles at the borders are mirrored, and have rows and columns that are not used.
            needed = f"row0 + y < (int)rows + {tile.above} && column0 + x < (int)columns + {tile.left}"
            with text.block(f"if (inside || ({needed}))"):
                text(f"int i{row_axis} = row0 + y, i{column_axis} = column0 + x;")
                with text.block("if (!inside)"):
                    text(
                        f"i{row_axis} = mirrored(i{row_axis}, (int)rows, 2 * (int)rows - 1);",
                        f"i{column_axis} = mirrored(i{column_axis}, (int)columns, 2 * (int)columns - 1);",
                    )
                local = dict(names)
                places = {row_axis: f"i{row_axis}", column_axis: f"i{column_axis}"}
                kernel.emit_steps(pattern, (source,), places, local)
                text(f"samples[y * {tile.pitch} + x] = {local[source]};")
        text(dialect.barrier)
        if tile.left:
            with text.block(f"for (int k = item; k < {high * (columns // SEGMENT)}; k += {ITEMS})"):
                text(f"const int y = k % {high}, x = k / {high} * {SEGMENT};")
                read = f"samples[y * {tile.pitch} + x + %s]"
                _emit_sums(
                    text, read, tile.left, SEGMENT, "0" if boxes[1] else f"{2 * tile.above + 2}", boxes[1]
                )
                with text.unrolled("j", SEGMENT):
                    text(f"sums[y * {tile.sums_pitch} + x + j] = total[j];")
            text(dialect.barrier)
        array, pitch = ("sums", tile.sums_pitch) if tile.left else ("samples", tile.pitch)
        each = tile.rows * columns // ITEMS
        text(f"const int x = item % {columns}, y = item / {columns} * {each};")
        read = f"{array}[(y + %s) * {pitch} + x]"
        _emit_sums(text, read, tile.above, each, "1", boxes[0])
        text(f"const int i{column_axis} = column0 + {tile.left} + x;")
        with text.block(f"if (i{column_axis} < (int)columns)"), text.unrolled("j", each):
            text(f"const int i{row_axis} = row0 + {tile.above} + y + j;")
            with text.block(f"if (i{row_axis} < (int)rows)"):
                text("const number window = total[j] * weights[0];")
                local = dict(names)
                kernel.emit_steps(pattern, (value,), places, local, "window")
                kernel.emit_store(result, places, local[value])
    return kernel


def marching_width(taps: tuple[int, int]) -> int:
    """Return how many columns of results a warp computes for windows of so many taps; 0 if it cannot."""
    return 0 if max(taps) > MAX_MARCHING_TAPS else 2 * LANES - taps[1] + 1


def emit_marching_stencil(spec: PartsSpec, taps: tuple[int, int]) -> PartsKernel:
    """Return the kernel of a stencil with equal weights, their product being the first of ``weights``.

    Parameters
    ----------
    spec : PartsSpec
        As for :func:`emit_stencil`.
    taps : (int, int)
        Taps down and along.
    """
    pattern, dialect, result = spec.pattern, spec.dialect, spec.accesses[-1]
    source, value = pattern.roots
    outer = list(range(spec.ndim - 2))
    row_axis, column_axis = len(outer), len(outer) + 1
    (down, along), width = taps, marching_width(taps)
    above, left = down // 2, along // 2
    fields = ["rows", "columns", "across", "tiles", "strip", "units", *(f"size{axis}" for axis in outer)]
    kernel = spec.kernel("marching_stencil", STENCIL_ITEMS, fields, [("const number", "weights")])
    text = kernel.text
    kernel.emit_prelude()
    text(*FOLDS.format(function=dialect.function).split("\n")[6:])
    with text.block(kernel.head()):
        kernel.emit_part()
        text(
            f"const int lane = item % {LANES}, unit = rank * {STENCIL_ITEMS // LANES} + item / {LANES};",
            "if (unit >= (int)units) return;",
            "const int in_plane = unit % (int)tiles, plane = unit / (int)tiles;",
            "const int first = in_plane / (int)across * (int)strip;",
            "const int end = min(first + (int)strip, (int)rows);",
            f"const int column0 = in_plane % (int)across * {width} + 2 * lane, column1 = column0 + 1;",
        )
        for k in (0, 1):
            text(
                f"const int source{k} = mirrored(column{k} - {left}, (int)columns, 2 * (int)columns - 1);",
                f"const bool stored{k} = lane < {width // 2} && column{k} < (int)columns;",
                f"const int place{k} = min(column{k}, (int)columns - 1);",
            )
        indices = kernel.emit_indices("plane", outer, "int")
        kernel.emit_pointers(list(indices.values()))
        names = kernel.emit_uniform(pattern, pattern.roots, (row_axis, column_axis))
        # Sums of the last rows, and of pairs of rows, so that a sum down the columns is half as long.
        text(f"number ring[2][{down}] = {{{{0}}}}, pairs[2][{down}] = {{{{0}}}};")
        text(
            "const number scale = weights[0];",
            "const int row_end = 2 * (int)rows - 1;",
            f"const bool inside = first >= {above} && end + {above + down} <= (int)rows;",
        )
        with text.block(f"for (int base = first - {above}; base < end + {above}; base += {down})"):
            text(f"number fresh[2][{down}];")
            for head, row in (
                ("if (inside)", "base + t"),
                ("else", "mirrored(base + t, (int)rows, row_end)"),
            ):
                with text.block(head), text.unrolled("t", down):
                    text(f"const int source_row = {row};")
                    for k in (0, 1):
                        with text.block():
                            local = dict(names)
                            places = {row_axis: "source_row", column_axis: f"source{k}"}
                            kernel.emit_steps(pattern, (source,), places, local)
                            text(f"fresh[{k}][t] = {local[source]};")
            with text.unrolled("t", down):
                _emit_lane_sums(text, dialect.shuffle, left)
                for k in (0, 1):
                    text(f"pairs[{k}][t] = ring[{k}][t] + ring[{k}][(t + {down - 1}) % {down}];")
                text(f"const int i{row_axis} = base + t - {above};")
                with text.block(f"if (i{row_axis} >= first && i{row_axis} < end)"):
                    # Both columns are computed without branches, one while the other waits.
                    text("number value0, value1;")
                    for k in (0, 1):
                        with text.block():
                            terms = [
                                f"pairs[{k}][(t + {down - row}) % {down}]" for row in range(0, down - 1, 2)
                            ]
                            total = " + ".join([*terms, f"ring[{k}][(t + 1) % {down}]"])
                            text(f"const number window = ({total}) * scale;")
                            local = dict(names)
                            places = {row_axis: f"i{row_axis}", column_axis: f"place{k}"}
                            kernel.emit_steps(pattern, (value,), places, local, "window")
                            text(f"value{k} = {local[value]};")
                    for k in (0, 1):
                        with text.block(f"if (stored{k})"):
                            places = {row_axis: f"i{row_axis}", column_axis: f"column{k}"}
                            kernel.emit_store(result, places, f"value{k}")
    return kernel


def _emit_lane_sums(text: Text, shuffle: str, reach: int) -> None:
    """Append the sums of ``fresh`` along the row, over ``2 * reach`` columns beyond each one, to ``ring``.

    Both columns of a lane have the pairs of the next lanes in common, except for one sample each.
    """
    text("const number left = fresh[0][t], right = fresh[1][t], pair = left + right;")
    for k in range(1, reach + 1):
        text(f"const number pair{k} = {shuffle.format(value='pair', lane=f'lane + {k}')};")
    if reach == 0:
        text("ring[0][t] = left;", "ring[1][t] = right;")
        return
    text(f"const number last = {shuffle.format(value='left', lane=f'lane + {reach}')};")
    common = [f"pair{k}" for k in range(1, reach)]
    text(f"ring[0][t] = {' + '.join(['pair', *common, 'last'])};")
    text(f"ring[1][t] = {' + '.join(['right', *common, f'pair{reach}'])};")


def _emit_sums(text: Text, read: str, reach: int, count: int, weights: str, box: bool) -> None:
    """Append ``total``: the sums over ``count`` neighbouring windows of samples that ``read`` reads.

    Sums over equal weights are those of pairs, of pairs of pairs, and so on. They are more precise than
    running sums, from which samples are subtracted again.
    """
    taps = 2 * reach + 1
    text(f"number total[{count}];")
    if not box or taps + count > MAX_UNROLLED:
        with text.unrolled("j", count):
            text("total[j] = 0;")
        with text.block(f"for (int t = 0; t < {taps}; ++t)"):
            if not box:
                text(f"const number weight = weights[{weights} + t];")
            with text.unrolled("j", count):
                text(f"total[j] += {'' if box else 'weight * '}{read % 'j + t'};")
        return
    length = count + taps - 1
    text(f"number n1[{length}];")
    with text.unrolled("j", length):
        text(f"n1[j] = {read % 'j'};")
    terms, width, done = [], 1, 0
    while width <= taps:
        if taps & width:
            terms.append(f"n{width}[j + {done}]")
            done += width
        if 2 * width <= taps:
            length -= width
            text(f"number n{2 * width}[{length}];")
            with text.unrolled("j", length):
                text(f"n{2 * width}[j] = n{width}[j] + n{width}[j + {width}];")
        width *= 2
    with text.unrolled("j", count):
        text(f"total[j] = {' + '.join(terms)};")
