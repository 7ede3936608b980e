"""The table of a tile of collaborative filtering: what the integers that its kernel reads are."""

from __future__ import annotations

import llvmlite.binding as llvm

__all__ = [
    "BEGIN",
    "BLOCKS",
    "CELLS",
    "CELL_BYTES",
    "CLEARED",
    "COLUMNS",
    "COUNTS",
    "DEPTH",
    "END",
    "FIRST_LAYER",
    "FIRST_ROW",
    "GROUP",
    "HEIGHT",
    "KEYS",
    "LANES",
    "LAYER_BYTES",
    "LEFT",
    "LIMITS",
    "MATCH",
    "MATCH_FIRST",
    "MATCH_SCALE",
    "MOVES",
    "MOVE_COUNT",
    "NOISY",
    "NUMBERS",
    "OFFSETS",
    "ORIGIN",
    "PENALTIES",
    "PHASES",
    "PHASE_BYTES",
    "PHASE_LAYERS",
    "PHASE_ROWS",
    "PILOT",
    "PILOT_GROUP",
    "PLANES",
    "PLANE_BYTES",
    "QUEUE",
    "QUEUES",
    "RIGHTS",
    "ROW_BYTES",
    "SAMPLES",
    "SHRINKAGE",
    "SIDE",
    "SOURCE_MOVES",
    "SOURCE_START",
    "SOURCE_STEP",
    "SUMS",
    "TABLE_WORDS",
    "TOTALS",
    "TOTAL_BYTES",
    "TOTAL_LAYER",
    "TOTAL_MOVES",
    "TOTAL_ROW",
    "TOTAL_START",
    "TOTAL_STEP",
    "VARIANCES",
    "VECTORS",
    "WEIGHTED",
    "WEIGHTS",
    "WIDTH",
]

# Cells, and references, of a vector: as many integers of 32 bits as a register has. More would be kept in
# memory: a row of references takes 8 registers, of which there are 16 of 32 bytes, or 32 of 64 bytes.
LANES = 16 if llvm.get_host_cpu_features().get("avx512bw") else 8
QUEUE = 16  # vectors of keys that are sorted together

# The step: its images or volumes, with padding, and how groups are made.
(
    MATCH,  # address of the plane that blocks are matched in
    MATCH_FIRST,  # address of the sample that becomes the integer 0
    MATCH_SCALE,  # address of the factor of samples
    NOISY,  # address of all planes; those of a volume have layers
    PILOT,  # the same of the result of the first step
    PLANES,
    PLANE_BYTES,
    LAYER_BYTES,
    ROW_BYTES,
    DEPTH,  # number of layers
    HEIGHT,
    WIDTH,
    SIDE,  # number of displacements along an axis
    BLOCKS,  # number of blocks of a group
    WEIGHTED,  # whether this is the second step
    SHRINKAGE,  # address of the thresholds of coefficients, or of the noise in their gains
    VARIANCES,  # address of the variances of the noise of coefficients
    SOURCE_MOVES,  # address of displacements in bytes, by number
    NUMBERS,  # address of the numbers of displacements, in the order of loops
    PENALTIES,  # address of what is added to the distance of a cell, in the order of loops
    RIGHTS,  # address of the displacements along a row, in the order of loops
) = range(21)

# The tile.
(
    BEGIN,  # rows of references, and one more row of cells
    END,
    LEFT,  # first sample of a row
    COLUMNS,  # number of references of a row
    VECTORS,  # number of vectors of a row of cells
    MOVES,  # address of the displacements other than along a row: rows of cells from and to, and bytes
    MOVE_COUNT,
    SOURCE_START,  # bytes to the first reference
    SOURCE_STEP,  # bytes to the next row of references
    TOTALS,  # address of the weighted sums of blocks, for all planes
    WEIGHTS,  # address of the weights of blocks, at their first sample
    CLEARED,  # bytes of both that are set to zero before
    TOTAL_MOVES,  # address of displacements in bytes of both, by number
    TOTAL_START,  # bytes to the sums of the first reference
    TOTAL_STEP,  # bytes to the next row of references
    TOTAL_BYTES,  # of a plane of both
    TOTAL_LAYER,  # bytes of a layer of both
    TOTAL_ROW,  # bytes of a row of both
) = range(21, 39)

# Memory of the thread.
(
    SAMPLES,  # a row of the matched image as integers
    PHASES,  # pairs of them, a row of each phase after the other
    PHASE_BYTES,
    FIRST_LAYER,  # layer and row of the image that the phases begin with
    FIRST_ROW,
    PHASE_LAYERS,  # number of layers and rows of phases
    PHASE_ROWS,
    ORIGIN,  # address of the pairs of the first cell
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
) = range(39, 57)
TABLE_WORDS = 57
