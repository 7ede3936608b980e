"""Kernels for groups of similar blocks; see :mod:`undula.lowering.collaborative`.

    units      the noise of each plane, and what its samples are divided by
    scaled     planes in units of the noise, extended by mirrored samples
    matching   the displacements of the blocks of each group: :mod:`.matching`
    clear      zeros for sums and weights
    groups     what groups change, as weighted sums of blocks
    pilot      samples and sums, divided by their weights: the result of the first step
    result     the same for the second step, in the units of the caller

32 lanes have a group: 4 blocks side by side, one after the other, each lane one column or row of a block.
So the transform along the group is one of registers, except for its last two levels.

Sums are integers, which do not depend on the order of additions, so results are the same in every run. They
are added up in shared memory by the groups of 8×8 references, and then in two parts in global memory: the
lower 16 bits, and the others. What is added are changes of samples, which are small; large ones, which could
overflow in shared memory, are added in global memory at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

import numpy as np

from ....lowering.collaborative import (
    BLOCK,
    COARSEST,
    FINEST,
    FLOOR,
    LEAST_GAIN,
    MATCHING_MARGIN,
    MAX_MATCHED,
    MAX_NOISE,
    MAX_RANGE,
    STEP,
    WINDOW_TAPS,
    cosine_matrix,
    wavelet_matrix,
)
from .dialect import Dialect
from .kernel import ELEMENTS, Kernel, emit_pointers
from .matching import LANES, MOVE_OFFSET
from .text import Text, literal

__all__ = [
    "CLEARED",
    "FLAT_ITEMS",
    "REFERENCES",
    "UNIT_NUMBERS",
    "WEIGHED_TILE",
    "emit_clear",
    "emit_groups",
    "emit_scaled",
    "emit_units",
    "emit_weighed",
]

FLAT_ITEMS = 256
CLEARED = 16 * FLAT_ITEMS  # integers that a group sets to zero
WARPS = 4  # of a group of work items
REFERENCES = 8  # along each axis of the tile of a group of work items
GROUPS_PER_UNIT = {(True, 16): 4, (True, 32): 3}  # Compilers would use too many registers.
WEIGHED_TILE = (32, 64)  # rows and columns
STRIP = 8  # rows of a work item that divides by weights
WEIGHT_SCALE = 2**22  # Of at most 4: each of about a hundred references adds up to one block at a place.
MAX_WEIGHT = 4.0
SUM_SCALE = 2**17
MAX_TOTAL = 2**31  # of a sum in shared memory
HALF = 0.5**0.5
PITCH = BLOCK + 1  # of rows of a block in shared memory, without bank conflicts
TAPS = tuple(float(tap) for tap in WINDOW_TAPS)
UNIT_NUMBERS = 3  # of a plane
# Integers of kernels on planes. A chunk has some of all images; planes are those of the first channel, then
# of the second one, and so on.
PLACING = ("rows", "columns", "tiles", "tiers", "chunk", "images")
ITEM = "plane / chunk * images + plane % chunk"  # the number of a plane among all


class _Emission:
    """The text of a kernel, and its parameters: arrays, their starts, and further integers."""

    def __init__(
        self, name: str, items: int, arrays: Mapping[str, str], integers: Sequence[str], dialect: Dialect
    ) -> None:
        self.name, self.items, self.arrays, self.dialect = name, items, dict(arrays), dialect
        self.integers = [(f"{each}_start", True) for each in arrays]
        self.integers += [(each, each.endswith("_step")) for each in integers]
        self.unrolled = True  # whether loops over blocks are
        self.groups = 0  # that a unit of the device must have registers for; 0 leaves that to the compiler
        self.text = Text()
        if dialect.prelude:
            self.text(*dialect.prelude.split("\n"))

    def head(self) -> str:
        """Return the head of the kernel."""
        dialect = self.dialect
        words = [
            f"{dialect.global_memory}{kind} *{dialect.restrict} {name}" for name, kind in self.arrays.items()
        ]
        words += [f"const {dialect.long if wide else 'int'} {name}" for name, wide in self.integers]
        listed = ",\n        ".join(words)
        bound = dialect.groups_bound.format(groups=self.groups) if self.groups else ""
        return f"{dialect.kernel.format(items=f'{self.items}{bound}')} {self.name}(\n        {listed})"

    def emit_pointers(self) -> None:
        """Append statements that move pointers to the starts of arrays."""
        emit_pointers(self.text, self.dialect, ())
        self.text(*(f"{name} += {name}_start;" for name in self.arrays))

    def emit_tile(self, rows: int, columns: int) -> None:
        """Append the place of the tile of a group of work items."""
        self.text(
            f"const int item = {self.dialect.item}, tile = {self.dialect.group};",
            f"const int left = tile % tiles * {columns}, top = tile / tiles % tiers * {rows};",
            "const int plane = tile / (tiles * tiers);",
        )

    def over_blocks(self, count: int, step: int = 1) -> AbstractContextManager[None]:
        """Append a loop over blocks, whose coefficients are in registers of devices that have them."""
        self.text("#pragma unroll" if self.unrolled else "#pragma unroll 1")
        return self.text.block(f"for (int b = 0; b < {count}; b += {step})")

    def kernel(self) -> Kernel:
        """Return the kernel, whose text is complete."""
        source = str(self.text) + "\n"
        return Kernel(self.name, source, self.items, tuple(self.arrays), tuple(self.integers))


@lru_cache(maxsize=8)
def emit_units(dtype: str, noise: str, dialect: Dialect) -> Kernel:
    """Return the kernel that writes the units of planes, and the scales of those that have groups.

    The numbers of a plane are the least sample minus the floor, the inverse of the unit, and the unit, or 0
    for planes that stay as they are. A plane without noise has groups if it is the first channel, in which
    blocks are matched, and other channels have noise. ``lowest`` has the maxima of negative samples. Samples
    are matched in units of the noise divided by the scale; see ``matching_scale``.
    """
    number = ELEMENTS[dtype]
    arrays = {"noise": f"const {ELEMENTS[noise]}", "lowest": f"const {number}", "highest": f"const {number}"}
    arrays |= {"units": number, "used": "int"}
    emission = _Emission("units_of_planes", FLAT_ITEMS, arrays, ["items", "images", "noise_step"], dialect)
    text, limit = emission.text, literal(MAX_RANGE, number)
    given, most = f"({number})noise[{{0}} * noise_step]", f"{literal(MAX_NOISE, number)} * extent"
    limited = f"extent > 0 ? min({given}, {most}) : {given}"
    with text.block(emission.head()):
        emission.emit_pointers()
        text(
            f"const int k = {dialect.group} * {FLAT_ITEMS} + {dialect.item};",
            "if (k >= items) return;",
            f"{number} largest = 0;",
        )
        with text.block("for (int other = k % images; other < items; other += images)"):
            text(
                f"const {number} extent = highest[other] + lowest[other];",
                f"const {number} sigma = {limited.format('other')};",
                f"if (sigma > largest && extent < {limit} * sigma) largest = sigma;",
            )
        text(
            f"const {number} extent = highest[k] + lowest[k];",
            f"const {number} sigma = {limited.format('k')};",
            f"const int noisy = sigma > 0 && extent < {limit} * sigma;",
            f"{number} unit = noisy ? sigma : max(largest, extent * {literal(1 / MAX_RANGE, number)});",
            "if (!(unit > 0)) unit = 1;",
            f"units[{UNIT_NUMBERS} * k] = -lowest[k] - {literal(FLOOR, number)} * unit;",
            f"units[{UNIT_NUMBERS} * k + 1] = 1 / unit;",
            f"units[{UNIT_NUMBERS} * k + 2] = noisy ? unit : 0;",
            "int scale = 1;",  # for images with too large a range to be matched in integers
            f"const {number} range = extent / unit;",
            f"if (range <= {literal(MAX_MATCHED / COARSEST, number)}) scale = {FINEST:.0f};",
            f"while (scale > 1 && scale * (range + {2 * MATCHING_MARGIN:.0f}) > {MAX_MATCHED}) scale /= 2;",
            "used[k] = noisy || (k < images && largest > 0) ? scale : 0;",
        )
    return emission.kernel()


@lru_cache(maxsize=8)
def emit_scaled(dtype: str, dialect: Dialect) -> Kernel:
    """Return the kernel that writes planes in units of their noise, with mirrored samples behind the ends."""
    number = ELEMENTS[dtype]
    arrays = {"x": f"const {number}", "units": f"const {number}", "noisy": "float"}
    integers = [*PLACING, "x_item_step", "x_row_step", "x_column_step", "samples_down", "samples_across"]
    emission = _Emission("scaled", FLAT_ITEMS, arrays, integers, dialect)
    text, long, (high, wide) = emission.text, dialect.long, WEIGHED_TILE
    with text.block(emission.head()):
        emission.emit_tile(high, wide)
        emission.emit_pointers()
        text(
            f"const int entity = {ITEM};",
            f"const {number} least = units[{UNIT_NUMBERS} * entity];",
            f"const {number} inverse = units[{UNIT_NUMBERS} * entity + 1];",
            f"const int column = left + item % {wide};",
            "if (column >= columns) return;",
            "int j = column % (2 * samples_across);",
            "j = min(j, 2 * samples_across - 1 - j);",
            "x += entity * x_item_step + j * x_column_step;",
            f"noisy += ({long})plane * rows * columns + column;",
        )
        with text.block(f"for (int k = item / {wide}; k < {high}; k += {FLAT_ITEMS // wide})"):
            text(
                "const int row = top + k;",
                "if (row >= rows) return;",
                "int i = row % (2 * samples_down);",
                "i = min(i, 2 * samples_down - 1 - i);",
                "noisy[row * columns] = (float)((x[i * x_row_step] - least) * inverse);",
            )
    return emission.kernel()


@lru_cache(maxsize=4)
def emit_clear(dialect: Dialect) -> Kernel:
    """Return the kernel that sets integers, in pieces of 4, to zero."""
    emission = _Emission("clear", FLAT_ITEMS, {"sums": "int"}, ["count_step"], dialect)
    text, long = emission.text, dialect.long
    with text.block(emission.head()):
        emission.emit_pointers()
        text("int4 zero;", "zero.x = zero.y = zero.z = zero.w = 0;")
        with text.unrolled("j", CLEARED // FLAT_ITEMS // 4):
            text(
                f"const {long} k = ({long}){dialect.group} * {CLEARED // 4}"
                f" + j * {FLAT_ITEMS} + {dialect.item};"
            )
            text(f"if (4 * k < count_step) *({dialect.global_memory}int4 *)(sums + 4 * k) = zero;")
    return emission.kernel()


# --- groups ---------------------------------------------------------------------------------------


def _product_lines(matrix: Any) -> list[str]:
    """Return statements that multiply ``v`` by a matrix.

    Matrices whose rows are even and odd by turns, or whose columns are, need half of the products.
    """
    half = BLOCK // 2
    signs = np.array([1, -1] * half)

    def combined(weights: Any, names: Sequence[str]) -> str:
        terms = [
            f"{literal(float(weight), 'float')} * {name}"
            for weight, name in zip(weights, names, strict=True)
            if abs(weight) > 1e-12
        ]
        return " + ".join(terms)

    names = [f"v[{k}]" for k in range(BLOCK)]
    lines: list[str] = []
    if np.allclose(matrix, matrix[:, ::-1] * signs[:, None]):
        for k in range(half):
            lines.append(
                f"const float e{k} = v[{k}] + v[{BLOCK - 1 - k}], o{k} = v[{k}] - v[{BLOCK - 1 - k}];"
            )
        for k in range(BLOCK):
            parts = [f"{'eo'[k % 2]}{j}" for j in range(half)]
            lines.append(f"v[{k}] = {combined(matrix[k, :half], parts)};")
    elif np.allclose(matrix, matrix[::-1] * signs):
        for k in range(half):
            lines.append(f"const float e{k} = {combined(matrix[k, 0::2], names[0::2])};")
            lines.append(f"const float o{k} = {combined(matrix[k, 1::2], names[1::2])};")
        for k in range(half):
            lines += [f"v[{k}] = e{k} + o{k};", f"v[{BLOCK - 1 - k}] = e{k} - o{k};"]
    else:
        sums = [f"const float s{k} = {combined(matrix[k], names)};" for k in range(BLOCK)]
        lines = [*sums, *(f"v[{k}] = s{k};" for k in range(BLOCK))]
    return lines


@lru_cache(maxsize=16)
def emit_groups(
    radius: int, size: int, weighted: bool, shrinkage: float, gpu: bool, dialect: Dialect
) -> Kernel:
    """Return the kernel that adds up what groups change.

    Parameters
    ----------
    radius, size : int
        Largest displacement, and number of blocks of a group.
    weighted : bool
        Whether this is the second step, in which a pilot determines gains.
    shrinkage : float
        Threshold of the first step, or the variance of the noise in the gains of the second one.
    gpu : bool
        Whether work items have registers. For other devices, short kernels are compiled in less time.
    dialect : Dialect
    """
    blocks, items, limit = size // 4, LANES * WARPS, literal(shrinkage, "float")
    side = STEP * (REFERENCES - 1) + BLOCK + 2 * radius
    arrays = {"noisy": "const float", "places": "const ushort", "used": "const int", "sums": "int"}
    if weighted:
        arrays["pilot"] = "const float"
    integers = [*PLACING, "down", "across", "planes"]
    emission = _Emission(
        "weighted_groups" if weighted else "thresholded_groups", items, arrays, integers, dialect
    )
    emission.unrolled, emission.groups = gpu, GROUPS_PER_UNIT.get((weighted, size), 0)
    text, long, memory = emission.text, dialect.long, dialect.global_memory
    matrix = cosine_matrix() if weighted else wavelet_matrix()
    for name, factors in (("transform", matrix), ("invert", np.linalg.inv(matrix))):
        with text.block(f"{dialect.function} void {name}(float *v)"):
            text(*_product_lines(factors))
    text(f"{dialect.constant}float taps[{BLOCK}] = {{{', '.join(literal(t, 'float') for t in TAPS)}}};")
    with text.block(emission.head()):
        text(
            f"{dialect.shared_memory}int totals[{side * side}];",
            f"{dialect.shared_memory}float exchanges[{WARPS}][{4 * BLOCK * PITCH}];",
        )
        emission.emit_tile(REFERENCES, REFERENCES)
        text(
            f"const int lane = item % {LANES}, warp = item / {LANES};",
            f"const int j = lane % {BLOCK}, turn = lane / {BLOCK};",
            f"const {long} area = ({long})rows * columns;",
        )
        emission.emit_pointers()
        text(
            f"if (!used[{ITEM}]) return;",
            "noisy += plane * area;",
            *(["pilot += plane * area;"] if weighted else []),
            f"places += ({long})(plane % chunk) * down * across * {size};",
            f"{memory}int *low = sums + plane * area, *high = low + planes * area;",
            f"{memory}int *weights = high + planes * area;",
            f"for (int k = item; k < {side * side}; k += {items}) totals[k] = 0;",
            dialect.barrier,
            f"const float tap = {SUM_SCALE}.0f * taps[j];",
        )
        # The same place is read by columns and by rows, without bank conflicts.
        rows = f"exchanges[warp][turn * {BLOCK * PITCH} + j * {PITCH} + i]"
        columns = f"exchanges[warp][turn * {BLOCK * PITCH} + i * {PITCH} + j]"
        with text.block(f"for (int number = warp; number < {REFERENCES**2}; number += {WARPS})"):
            text(
                f"const int reference_row = top + number / {REFERENCES};",
                f"const int reference_column = left + number % {REFERENCES};",
                "const int y = min(reference_row, down - 1), x = min(reference_column, across - 1);",
                "const int inside = reference_row < down && reference_column < across;",
                f"{memory}const ushort *listed = places + (y * across + x) * ({long}){size};",
                f"int moved[{blocks}], at[{blocks}];",
            )
            with emission.over_blocks(blocks):
                text(
                    f"const int place = listed[turn * {blocks} + b];",
                    f"const int below = (place >> 8) - {MOVE_OFFSET}, right = (place & 255) - {MOVE_OFFSET};",
                    f"at[b] = ({STEP} * y + below) * columns + {STEP} * x + right + j;",
                    f"moved[b] = ({STEP} * (y - top) + {radius} + below) * {side}"
                    f" + {STEP} * (x - left) + {radius} + right + j;",
                )
            if weighted:
                _emit_coefficients(emission, "pilot", "gains", blocks, rows, columns)
                text("float total = 0;")
                with emission.over_blocks(blocks), text.unrolled("i", BLOCK):
                    text(
                        "const float energy = gains[b][i] * gains[b][i];",
                        f"const float rest = {dialect.reciprocal.format(f'{limit} + energy')};",
                        "const float gain = energy * rest;",
                        "total += gain * gain;",
                        f"gains[b][i] = -{limit} * rest;",
                    )
                _emit_coefficients(emission, "noisy", "group", blocks, rows, columns)
                with emission.over_blocks(blocks), text.unrolled("i", BLOCK):
                    text("group[b][i] *= gains[b][i];")
            else:
                _emit_coefficients(emission, "noisy", "group", blocks, rows, columns)
                text("float total = 0;")
                with emission.over_blocks(blocks), text.unrolled("i", BLOCK):
                    text(
                        f"const int large = fabs(group[b][i]) > {limit};",
                        "total += large ? 1.0f : 0.0f;",
                        "group[b][i] = large ? 0.0f : -group[b][i];",
                    )
            _emit_lanes_total(emission)
            least = literal(max(LEAST_GAIN, 1 / MAX_WEIGHT) if weighted else 1.0, "float")
            text(
                f"const int amount = (int)({WEIGHT_SCALE}.0f / max(total, {least}) + 0.5f);",
                f"const float weight = amount * {literal(1 / WEIGHT_SCALE, 'float')} * tap;",
            )
            _emit_haar(emission, "group", blocks, True)
            with emission.over_blocks(blocks):
                text("float *v = group[b];", "invert(v);")
                with text.unrolled("i", BLOCK):
                    text(f"{rows} = v[i];")
                text(dialect.lanes_barrier)
                with text.unrolled("i", BLOCK):
                    text(f"v[i] = {columns};")
                text(dialect.lanes_barrier, "invert(v);")
                with text.block("if (inside)"):
                    with text.unrolled("i", BLOCK):
                        text("const float change = rint(v[i] * (weight * taps[i]));")
                        shared = dialect.atomic_add.format(
                            address=f"&totals[moved[b] + i * {side}]", value="(int)change"
                        )
                        most = literal(MAX_TOTAL / (REFERENCES**2 * size), "float")
                        text(f"if (fabs(change) < {most}) {shared}")
                        with text.block("else"):
                            text("const float leading = floor(change * (1.0f / 65536));")
                            place = "at[b] + i * columns"
                            _emit_addition(emission, place, "(int)(change - 65536 * leading)", "(int)leading")
                    add = dialect.atomic_add.format(address="&weights[at[b]]", value="amount")
                    text(f"if (j == 0) {add}")
        text(dialect.barrier)
        with text.block(f"for (int k = item; k < {side * side}; k += {items})"):
            text(
                "const int value = totals[k];",
                "if (!value) continue;",
                f"const int row = {STEP} * top - {radius} + k / {side};",
                f"const int at = row * columns + {STEP} * left - {radius} + k % {side};",
            )
            _emit_addition(emission, "at", "value & 65535", "value >> 16")
    return emission.kernel()


def _emit_addition(emission: _Emission, place: str, low: str, high: str) -> None:
    """Append the addition of both parts of an integer in global memory."""
    for name, value in (("low", low), ("high", high)):
        emission.text(emission.dialect.atomic_add.format(address=f"&{name}[{place}]", value=value))


def _emit_coefficients(
    emission: _Emission, source: str, target: str, blocks: int, rows: str, columns: str
) -> None:
    """Append the coefficients of a group: a row of each fourth block."""
    text, barrier = emission.text, emission.dialect.lanes_barrier
    text(f"float {target}[{blocks}][{BLOCK}];")
    with emission.over_blocks(blocks):
        text(f"float *v = {target}[b];")
        with text.unrolled("i", BLOCK):
            text(f"v[i] = {source}[at[b] + i * columns];")
        text("transform(v);")
        with text.unrolled("i", BLOCK):
            text(f"{columns} = v[i];")
        text(barrier)
        with text.unrolled("i", BLOCK):
            text(f"v[i] = {rows};")
        text(barrier, "transform(v);")
    _emit_haar(emission, target, blocks, False)


def _emit_haar(emission: _Emission, name: str, blocks: int, back: bool) -> None:
    """Append the Haar transform along a group, or its inverse: first, or last, within lanes."""
    steps = [1 << k for k in range(blocks.bit_length() - 1)]
    if back:
        for step in (2, 1):
            _emit_lane_step(emission, name, step)
        for step in reversed(steps):
            _emit_block_step(emission, name, step, blocks)
    else:
        for step in steps:
            _emit_block_step(emission, name, step, blocks)
        for step in (1, 2):
            _emit_lane_step(emission, name, step)


def _emit_block_step(emission: _Emission, name: str, step: int, blocks: int) -> None:
    text = emission.text
    with emission.over_blocks(blocks, 2 * step), text.unrolled("i", BLOCK):
        text(
            f"const float first = {name}[b][i], second = {name}[b + {step}][i];",
            f"{name}[b][i] = {literal(HALF, 'float')} * (first + second);",
            f"{name}[b + {step}][i] = {literal(HALF, 'float')} * (first - second);",
        )


def _emit_lane_step(emission: _Emission, name: str, step: int) -> None:
    """Append a step between the first blocks of lanes, of which those with details of other steps stay."""
    text, dialect, bit = emission.text, emission.dialect, step * BLOCK
    others = dialect.shuffle.format(value=f"{name}[0][i]", lane=f"lane ^ {bit}")
    if not dialect.shuffle:
        with text.unrolled("i", BLOCK):
            text(f"exchanges[warp][{LANES} * i + lane] = {name}[0][i];")
        text(dialect.lanes_barrier)
        others = f"exchanges[warp][{LANES} * i + (lane ^ {bit})]"
    with text.unrolled("i", BLOCK):
        text(
            f"const float other = {others};",
            f"const float value = {literal(HALF, 'float')} * (lane & {bit} ? other - {name}[0][i]"
            f" : other + {name}[0][i]);",
            f"{name}[0][i] = {f'lane & {BLOCK * (step - 1)} ? {name}[0][i] : ' if step > 1 else ''}value;",
        )
    if not dialect.shuffle:
        text(dialect.lanes_barrier)


def _emit_lanes_total(emission: _Emission) -> None:
    """Append the sum of ``total`` over all lanes."""
    text, dialect = emission.text, emission.dialect
    if dialect.shuffle:
        for bit in (1, 2, 4, 8, 16):
            text(f"total += {dialect.shuffle.format(value='total', lane=f'lane ^ {bit}')};")
        return
    text("exchanges[warp][lane] = total;", dialect.lanes_barrier, "total = 0;")
    text(f"for (int k = 0; k < {LANES}; ++k) total += exchanges[warp][k];", dialect.lanes_barrier)


# --- results --------------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def emit_weighed(dtype: str | None, dialect: Dialect) -> Kernel:
    """Return the kernel that divides sums by weights.

    Parameters
    ----------
    dtype : str, optional
        Of the result; None for the pilot.
    dialect : Dialect
    """
    long, (high, wide) = dialect.long, WEIGHED_TILE
    arrays = {"sums": "const int", "used": "const int"}
    integers = [*PLACING, "planes"]
    if dtype is None:
        arrays |= {"noisy": "const float", "pilot": "float"}
    else:
        number = ELEMENTS[dtype]
        arrays |= {"x": f"const {number}", "units": f"const {number}", "result": number}
        integers += [f"{name}_{what}_step" for name in ("x", "result") for what in ("item", "row", "column")]
        integers += ["samples_down", "samples_across"]
    emission = _Emission(
        "pilot_samples" if dtype is None else "result_samples", FLAT_ITEMS, arrays, integers, dialect
    )
    text = emission.text
    text(f"{dialect.constant}float taps[{BLOCK}] = {{{', '.join(literal(t, 'float') for t in TAPS)}}};")
    with text.block(emission.head()):
        emission.emit_tile(high, wide)
        emission.emit_pointers()
        extent = ("rows", "columns") if dtype is None else ("samples_down", "samples_across")
        text(
            f"const int entity = {ITEM};",
            f"const int column = left + item % {wide}, first = top + item / {wide} * {STRIP};",
            f"if (column >= {extent[1]} || first >= {extent[0]}) return;",
            f"const {long} area = ({long})rows * columns;",
            f"{dialect.global_memory}const int *low = sums + plane * area + column;",
            f"{dialect.global_memory}const int *high = low + planes * area, *weights = high + planes * area;",
        )
        if dtype is None:
            text(
                "if (!used[entity]) return;",
                "noisy += plane * area + column;",
                "pilot += plane * area + column;",
            )
        else:
            text(
                f"const {number} unit = units[{UNIT_NUMBERS} * entity + 2];",
                "x += entity * x_item_step + column * x_column_step;",
                "result += entity * result_item_step + column * result_column_step;",
            )
            with text.block("if (unit == 0)"):
                with text.block(f"for (int row = first; row < min(first + {STRIP}, samples_down); ++row)"):
                    text("result[row * result_row_step] = x[row * x_row_step];")
                text("return;")
        text(f"float sums_along[{STRIP + BLOCK - 1}];")
        with text.unrolled("k", STRIP + BLOCK - 1):
            text(f"const int row = first + k - {BLOCK - 1};", "float along = 0;")
            with text.block("if (row >= 0 && row < rows)"), text.unrolled("t", BLOCK):
                text("if (column >= t) along += taps[t] * (float)weights[row * columns - t];")
            text("sums_along[k] = along;")
        with text.unrolled("k", STRIP):
            text("const int row = first + k;", "float weight = 0;")
            with text.unrolled("t", BLOCK):
                text(f"weight += taps[t] * sums_along[k + {BLOCK - 1} - t];")
            with text.block(f"if (row < {extent[0]})"):
                text(
                    f"const {long} total = ({long})high[row * columns] * 65536 + low[row * columns];",
                    f"const float change = (float)total / weight * {WEIGHT_SCALE // SUM_SCALE}.0f;",
                )
                if dtype is None:
                    text("pilot[row * columns] = noisy[row * columns] + change;")
                else:
                    text("result[row * result_row_step] = x[row * x_row_step] + change * unit;")
    return emission.kernel()
