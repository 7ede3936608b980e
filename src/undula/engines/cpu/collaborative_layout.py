"""The table of a tile of collaborative filtering: what the integers that its kernel reads are."""

from __future__ import annotations

__all__ = [
    "BEGIN",
    "BLOCKS",
    "CELL_BYTES",
    "COLUMNS",
    "DISPLACEMENTS",
    "END",
    "GROUP",
    "HEIGHT",
    "KEYS",
    "LANES",
    "LEFT",
    "LIMITS",
    "MATCH",
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
    "RADIUS",
    "ROW_BYTES",
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

LANES = 16  # cells, and references, of a vector

# The step: its images, with padding, and how groups are made.
(
    MATCH,  # address of the plane that blocks are matched in
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
) = range(15)
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
) = range(15, 24)
# Memory of the thread.
(
    PHASES,  # samples of the matched image, a row of each phase after the other
    PHASE_BYTES,
    OFFSETS,  # bytes to the samples of a cell, for each displacement to the right
    SUMS,  # distances of two cells, one above the other, then those of single cells
    CELL_BYTES,  # of distances of a row of cells
    LIMITS,  # keys have to be below, for each reference
    KEYS,  # of the group of each reference, then of a vector of blocks
    GROUP,  # coefficients
    PILOT_GROUP,
) = range(24, 33)
TABLE_WORDS = 33
