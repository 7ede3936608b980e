"""The tables of collaborative filtering of video: what the integers that its kernels read are."""

from __future__ import annotations

__all__ = [
    "BEGIN",
    "CANDIDATES",
    "COARSE",
    "COARSE_COLUMNS",
    "COARSE_ROWS",
    "END",
    "FIELDS",
    "FIELD_COLUMNS",
    "FIELD_ROWS",
    "FORWARD",
    "FRAMES",
    "GROUP",
    "HEIGHT",
    "KEYS",
    "MOTION",
    "MOTION_WORDS",
    "NOISY",
    "ORIGINS",
    "PILOTS",
    "PILOT_GROUP",
    "PLANES",
    "PLANE_BYTES",
    "SHRINKAGE",
    "SOURCE",
    "STEP",
    "TABLE_WORDS",
    "TARGET",
    "TOTALS",
    "VARIANCES",
    "WEIGHTED",
    "WEIGHTS",
    "WIDTH",
]

# Shapes of frames, and the rows that a thread works on.
(
    HEIGHT,
    WIDTH,
    BEGIN,  # row of the first reference, or of blocks of a field
    END,
) = range(4)
# A step of the filter. Tables have an address for each frame: first that of the references, then those after
# it, then those before it.
(
    PLANES,
    PLANE_BYTES,
    STEP,  # samples from one reference to the next
    WEIGHTED,  # whether this is the second step
    FRAMES,  # number of frames
    FORWARD,  # number of those after the references
    NOISY,  # table of frames
    PILOTS,  # table of results of the first step
    TOTALS,  # table of the weighted sums of blocks; 0 for frames that blocks are not written to
    WEIGHTS,  # table of the weights of blocks, at their first sample
    FIELDS,  # table of the motion to each frame from the one between it and the references
    FIELD_ROWS,
    FIELD_COLUMNS,
    SHRINKAGE,  # address of the thresholds of coefficients, or of the noise in their gains
    VARIANCES,  # address of the variances of the noise of coefficients
    KEYS,  # memory for the keys of a group
    CANDIDATES,  # for the distances, then the keys, of the blocks of a window
    ORIGINS,  # for the row and the column of the window in each frame
    GROUP,  # for coefficients
    PILOT_GROUP,
) = range(4, 24)
TABLE_WORDS = 24
# Estimation of motion between two images.
(
    SOURCE,  # address of the image with the references
    TARGET,
    MOTION,  # address of the displacements of all blocks
    COARSE,  # address of those of half the size; 0 if there are none
    COARSE_ROWS,
    COARSE_COLUMNS,
) = range(4, 10)
MOTION_WORDS = 24  # as above: the memory is the same
