"""The table of a tile of collaborative filtering: what the integers that its kernel reads are."""

from __future__ import annotations

import llvmlite.binding as llvm

__all__ = [
    "BEGIN",
    "BLOCKS",
    "CELLS",
    "CELL_BYTES",
    "COLUMNS",
    "COUNTS",
    "DISPLACEMENTS",
    "END",
    "GROUP",
    "HEIGHT",
    "KEYS",
    "LANES",
    "LEFT",
    "LIMITS",
    "MATCH",
    "MATCH_FIRST",
    "MATCH_SCALE",
    "NOISY",
    "NUMBERS",
    "OFFSETS",
    "OUT_ROW",
    "PHASES",
    "PHASE_BYTES",
    "PILOT",
    "PILOT_GROUP",
    "PLANES",
    "PLANE_BYTES",
    "QUEUE",
    "QUEUES",
    "RADIUS",
    "ROW_BYTES",
    "SAMPLES",
    "SIDE",
    "SUMS",
    "TABLE_WORDS",
    "THRESHOLD",
    "TOTALS",
    "TOTAL_BYTES",
    "VECTORS",
    "WEIGHTED",
    "WEIGHTS",
    "WIDTH",
]

# Cells, and references, of a vector: as many integers of 32 bits as a register has. More would be kept in
# memory: a row of references takes 8 registers, of which there are 16 of 32 bytes, or 32 of 64 bytes.
LANES = 16 if llvm.get_host_cpu_features().get("avx512bw") else 8
QUEUE = 8  # vectors of keys that are sorted together

# The step: its images, with padding, and how groups are made.
(
    MATCH,  # address of the plane that blocks are matched in
    MATCH_FIRST,  # address of the sample that becomes the integer 0
    MATCH_SCALE,  # address of the factor of samples
    NOISY,  # address of all planes
    PILOT,  # the same of the result of the first step
    PLANES,
    PLANE_BYTES,
    ROW_BYTES,
    HEIGHT,
    WIDTH,
    RADIUS,
    SIDE,  # number of displacements along an axis
    BLOCKS,  # number of blocks of a group
    WEIGHTED,  # whether this is the second step
    THRESHOLD,  # address of the threshold of the first step
    DISPLACEMENTS,  # address of the displacements, by number
    NUMBERS,  # address of their numbers, for all down and right in the order of loops, then of all down
) = range(17)
# The tile.
(
    BEGIN,  # rows of references, and one more row of cells
    END,
    LEFT,  # first sample of a row
    COLUMNS,  # number of references of a row
    VECTORS,  # number of vectors of a row of cells
    TOTALS,  # address of the weighted sums of blocks, for all planes
    WEIGHTS,  # address of the weights of blocks, at their first sample
    TOTAL_BYTES,  # of a plane of both
    OUT_ROW,  # bytes of a row of both
) = range(17, 26)
# Memory of the thread.
(
    SAMPLES,  # a row of the matched image as integers
    PHASES,  # pairs of them, a row of each phase after the other
    PHASE_BYTES,
    OFFSETS,  # bytes to the pairs of a cell, for each displacement to the right
    CELLS,  # distances of a row of cells, for each displacement to the right
    CELL_BYTES,  # of distances of a row of cells
    SUMS,  # distances of two cells, one above the other
    LIMITS,  # keys have to be below, for each reference
    KEYS,  # lists of vectors of references
    QUEUES,  # keys that are to be merged into them
    COUNTS,  # of vectors in queues
    GROUP,  # coefficients
    PILOT_GROUP,
) = range(26, 39)
TABLE_WORDS = 39
