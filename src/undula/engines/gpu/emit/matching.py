"""The kernel that finds groups of similar blocks; see :mod:`undula.lowering.collaborative`.

A group of work items has a strip of references, and the samples around them in shared memory. A work item has
one reference, whose samples are in registers, and compares it with four displacements along a row at a time.
With shuffles it computes half of a distance, since the other half is that of the next reference. The best
blocks are a sorted list of keys in registers: the leading bits of a distance, then the number of the
displacement. So the order in which displacements are visited does not matter; the nearest ones come first,
since their distances are smaller, and few keys are then inserted.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....lowering.collaborative import (
    BLOCK,
    FLOOR,
    MATCHING_MARGIN,
    MAX_MATCHED,
    NUMBER_BITS,
    STEP,
    displacements,
)
from .dialect import Dialect
from .kernel import Kernel, emit_pointers
from .text import Text

__all__ = ["MatchingTile", "emit_matching", "matching_tile", "packed_displacements", "visits"]

LANES = 32
MATCHED_AT_ONCE = 4  # displacements along a row
MAX_LINES = 4
FAR = "1e15f"  # A sample outside of the image, in units of the noise.
MOST = 0x7149F000  # Leading bits of 1e30: blocks that are further away have samples outside.
EXCLUDED = 0x7FFFFFFF  # Keys are unsigned, so neither this number nor those of NaNs are among the best.
MOVE_OFFSET = 128  # of displacements along each axis, which are kept in 8 bits


class MatchingTile(NamedTuple):
    """The strip of a group of work items.

    Parameters
    ----------
    lines : int
        Rows of references.
    across : int
        References of a row.
    halves : bool
        Whether work items compute halves of distances.
    """

    lines: int
    across: int
    halves: bool


def _margin(radius: int) -> int:
    """Return the number of columns to the left of the references: a multiple of that of a step."""
    return -(-radius // STEP) * STEP


def _strip(radius: int, lines: int) -> tuple[int, int]:
    """Return the rows of samples of a strip, and the number of their pieces of 4 samples."""
    columns = STEP * LANES + BLOCK + _margin(radius) + radius // STEP * STEP
    return STEP * lines + BLOCK - STEP + 2 * radius, columns // 4


def matching_tile(radius: int, shared: int, dialect: Dialect) -> MatchingTile | None:
    """Return the largest strip that fits into shared memory; None if there is none."""
    for lines in range(MAX_LINES, 0, -1):
        rows, pieces = _strip(radius, lines)
        if 16 * rows * pieces <= shared:
            halves = bool(dialect.shuffle)
            return MatchingTile(lines, LANES - halves, halves)
    return None


def visits(radius: int) -> NDArray[Any]:
    """Return what is compared at a time: the place in the strip, and the numbers of four displacements."""
    numbers = {(int(down), int(right)): k for k, (down, right) in enumerate(displacements(radius))}
    _, pieces = _strip(radius, 1)
    side, margin = range(-radius, radius + 1), _margin(radius)
    firsts = range(-margin, radius + 1, MATCHED_AT_ONCE)
    rows = []
    for down in sorted(side, key=abs):
        for right in sorted(firsts, key=lambda first: abs(first + MATCHED_AT_ONCE // 2)):
            listed = [numbers.get((down, right + k), EXCLUDED) for k in range(MATCHED_AT_ONCE)]
            rows.append([(down + radius) * pieces + (right + margin) // 4, *listed])
    return np.array(rows, np.int32)


def packed_displacements(radius: int) -> NDArray[Any]:
    """Return displacements by number, each as two bytes."""
    down, right = displacements(radius).T + MOVE_OFFSET
    return np.asarray(down << 8 | right, np.uint16)


@lru_cache(maxsize=16)
def emit_matching(radius: int, size: int, tile: MatchingTile, dialect: Dialect) -> Kernel:
    """Return the kernel that writes the displacements of the blocks of all groups.

    Parameters
    ----------
    radius, size : int
        Largest displacement, and number of blocks of a group.
    tile : MatchingTile
    dialect : Dialect
    """
    text, long, memory = Text(), dialect.long, dialect.global_memory
    rows, pieces = _strip(radius, tile.lines)
    items = LANES * tile.lines
    width = BLOCK // 2 if tile.halves else BLOCK
    arrays = {"image": "const float", "used": "const int", "numbers": "const int"}
    arrays |= {"moves": "const ushort", "places": "ushort"}
    starts = [f"{name}_start" for name in arrays]
    integers = ["rows", "columns", "down", "across", "strips", "tiers"]
    if dialect.prelude:
        text(*dialect.prelude.split("\n"))
    words = [f"{memory}{kind} *{dialect.restrict} {name}" for name, kind in arrays.items()]
    words += [f"const {long} {name}" for name in starts] + [f"const int {name}" for name in integers]
    listed = ",\n        ".join(words)
    with text.block(f"{dialect.kernel.format(items=items)} matching(\n        {listed})"):
        text(
            f"{dialect.shared_memory}float4 strip[{rows * pieces}];",
            f"const int item = {dialect.item}, lane = item % {LANES}, line = item / {LANES};",
            f"const int strip_number = {dialect.group} % strips, rest = {dialect.group} / strips;",
            "const int tier = rest % tiers, picture = rest / tiers;",
        )
        emit_pointers(text, dialect, ())
        text(*(f"{name} += {name}_start;" for name in arrays))
        text("if (!used[picture]) return;", f"image += ({long})picture * rows * columns;")
        text("const float scale = used[picture];")
        text(f"const int top = {STEP} * {tile.lines} * tier - {radius};")
        text(f"const int left = {STEP} * {tile.across} * strip_number - {_margin(radius)};")
        with text.block(f"for (int k = item; k < {rows * pieces}; k += {items})"):
            text(
                f"const int y = top + k / {pieces}, x = left + k % {pieces} * 4;",
                "float4 piece;",
                f"piece.x = piece.y = piece.z = piece.w = {FAR};",
            )
            with text.block("if (y >= 0 && y < rows && x >= 0 && x < columns)"):
                text(f"piece = *({memory}const float4 *)(image + y * columns + x);")
                with text.block("if (scale > 1)"):
                    for part in "xyzw":
                        rounded = f"floor((piece.{part} - {FLOOR - MATCHING_MARGIN}f) * scale + 0.5f)"
                        text(f"piece.{part} = fmin(fmax({rounded}, 0.0f), {MAX_MATCHED}.0f);")
            text("strip[k] = piece;")
        text(dialect.barrier)
        _emit_reference(text, radius, pieces, width)
        text(f"unsigned int keys[{size}];")
        with text.unrolled("k", size):
            text(f"keys[k] = {MOST};")
        text(f"const int corner = {STEP} * line * {pieces} + lane;")
        with text.block(f"for (int visit = 0; visit < {len(visits(radius))}; ++visit)"):
            text(f"{memory}const int *{dialect.restrict} listed = numbers + {MATCHED_AT_ONCE + 1} * visit;")
            _emit_distances(text, pieces, width)
            for k in range(MATCHED_AT_ONCE):
                if tile.halves:
                    other = dialect.shuffle.format(value=f"sums[{k}]", lane="lane + 1")
                    text(f"sums[{k}] += {other};")
                leading = f"{dialect.float_bits}(sums[{k}]) & {-1 << NUMBER_BITS & 0xFFFFFFFF:#x}u"
                text(f"const unsigned int key{k} = ({leading}) | (unsigned int)listed[{k + 1}];")
                with text.block(f"if (key{k} < keys[{size - 1}])"):
                    text("#pragma unroll")
                    with text.block(f"for (int j = {size - 1}; j > 0; --j)"):
                        text(f"keys[j] = min(keys[j], max(keys[j - 1], key{k}));")
                    text(f"keys[0] = min(keys[0], key{k});")
        text(f"const int y = {tile.lines} * tier + line, x = {tile.across} * strip_number + lane;")
        text(f"if (lane >= {tile.across} || y >= down || x >= across) return;")
        text(f"places += ((({long})picture * down + y) * across + x) * {size};")
        with text.unrolled("k", size):
            text(f"places[k] = moves[keys[k] & {(1 << NUMBER_BITS) - 1}];")
    parameters = (*((name, True) for name in starts), *((name, False) for name in integers))
    return Kernel("matching", str(text) + "\n", items, tuple(arrays), parameters)


def _emit_reference(text: Text, radius: int, pieces: int, width: int) -> None:
    """Append the samples of the reference."""
    text(f"float reference[{BLOCK}][{width}];")
    place = f"({STEP} * line + {radius} + i) * {pieces} + lane + {_margin(radius) // 4}"
    with text.unrolled("i", BLOCK):
        _emit_pieces(text, place, width // 4)
        for c in range(width):
            text(f"reference[i][{c}] = piece{c // 4}.{'xyzw'[c % 4]};")


def _emit_pieces(text: Text, place: str, count: int) -> None:
    """Append loads of so many pieces of a row, of 4 samples each."""
    pieces = ", ".join(f"piece{k} = strip[{place} + {k}]" for k in range(count))
    text(f"const float4 {pieces};")


def _emit_distances(text: Text, pieces: int, width: int) -> None:
    """Append the sums of squared differences of four displacements."""
    text("const int at = corner + listed[0];", f"float sums[{MATCHED_AT_ONCE}] = {{0, 0, 0, 0}};")
    with text.unrolled("i", BLOCK):
        count = width // 4 + 1
        _emit_pieces(text, f"at + i * {pieces}", count)
        values = ", ".join(f"piece{c // 4}.{'xyzw'[c % 4]}" for c in range(4 * count))
        text(f"const float samples[{4 * count}] = {{{values}}};")
        with text.unrolled("c", width), text.unrolled("d", MATCHED_AT_ONCE):
            text("const float difference = reference[i][c] - samples[c + d];")
            text("sums[d] += difference * difference;")
