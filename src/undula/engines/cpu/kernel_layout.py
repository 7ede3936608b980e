"""The layout of the arrays that kernels read, and the sizes of what they process at a time.

An *encoded operator* is two arrays that say what is done along an axis, one of integers and one of numbers
(see ``encoding``); the *arguments* of a kernel are one array of integers.
"""

from __future__ import annotations

from ...lowering.borders import DIFFERENCES as DIFFERENCES
from ...lowering.borders import TERMS as TERMS

# Entries of an encoded operator: integers of both directions, of analysis, and of synthesis,
KIND, PAIRS, LENGTH, LOW, HIGH, PLACE, FIRST = range(7)
START, TAPS, LEFT, RIGHT, RIMS, NEAR_END, NEAR_START, TURN, HIGH_BEGIN, HIGH_END = range(7, 17)
DELTA, LOW_START, LOW_TAPS, HIGH_START, HIGH_TAPS, LOW_LEFT, LOW_RIGHT, HIGH_LEFT, HIGH_RIGHT = range(7, 16)
LOW_TURN, HIGH_TURN = 16, 17
# of adjoints: how many samples are computed before those of the line, the length of the line, how many
# samples are added to others, and where their places and weights are,
BEFORE, INSIDE, FOLDS, FOLD_PLACES, FOLD_WEIGHTS = range(18, 23)
# what lies beyond the ends: where the table begins, integers and factors of one of its entries,
TABLE, ENTRY, FACTORS = 23, TERMS + 1, 1 + DIFFERENCES
# and numbers: the factors of steps, two scales, 1 and 0, the taps of filters, the factors of the table.
SCALE, ONE, ZERO, FILTERS = 4, 6, 7, 8
# (Steps of integers have three integers each, and one more for all, at this byte.)
INTEGER_FACTORS = 64
LIFTED, FILTERED = 0, 1  # kinds

# Entries of the arguments: addresses, and strides in bytes.
X, X_PLANE, X_ROW, BANDS, BAND_PLANE, BAND_ROW = 0, 1, 2, 3, 7, 11
PLANES, BEGIN, END, CHANNELS, SCRATCH, SLOT, HALF, ORIGIN, BUFFER, MIX = range(15, 25)
# Where samples are made of others: how many channels, of how many bytes; then, for each plane, six numbers.
MIX_CHANNELS, MIX_BYTES, MIX_TABLE, MIX_PLANE = 0, 1, 16, 48
# Where rows are in fragments, there are no channels: how many fragments there are, and samples of each.
FRAGMENT_COUNT, FRAGMENTS = 1, 2

SPLIT, PLAIN, JOIN = range(3)  # layouts of rows

CHUNK = 512  # Samples lifted at a time along a row: what they need stays in the first cache.
SHORT = 1024  # Places of a row below which a copy of all its coefficients is the least work.
BLOCK = 16  # Rows of a second level made at a time: what they need of the first stays in a cache.
LINE = 1024  # Places of a line that are worked on at a time: they stay in the first or second cache.
STRIP = 2048  # Samples side by side that are worked on from top to bottom, where rows are no lines.
BINS = 1 << 12  # For medians, magnitudes are counted by their exponent and the first bits of their mantissa.

# Words of the counters that the threads of a graph share. Those that change are on cache lines of their own.
TAKEN, FINISHED, COUNTER_END, SLEEP = 0, 8, 16, 17
COUNTER_BYTES = 192
