"""The layout of the table that ``play_arrays`` reads, and of the fields of NumPy's array objects."""

from __future__ import annotations

# Entries of the table: what is run and the memory for it, functions of Python, what the arrays have to be.
(
    KERNEL, TAPE, MEMORY_BYTES, TEMPORARY_START, BUFFER_START, SPARE, RELEASES_GIL,
    MALLOC, FREE, SAVE_THREAD, RESTORE_THREAD, MAKE_BOOL, MAKE_BYTES,
    HEADER_WORDS, ARRAY_TYPE, NONE, DTYPE_WORD, MISALIGNED_BITS, NDIM, ARRAYS, VIEWS,
) = range(21)  # fmt: skip
# The view of each array, from VIEWS on: its role, the bytes that it covers before and after the address of
# its first sample, and for each axis the length and the stride.
ROLE, BYTES_BEFORE, BYTES_AFTER, AXES = range(4)
ABSENT, READ, WRITTEN = range(3)  # roles
MAX_SPARE_BYTES = 1 << 21  # The memory of a call is kept for the next one, unless it is larger.

# Fields of an array, in words after the header that all objects have; and one of its dtype, likewise.
DATA, DIMENSIONS, LENGTHS, STRIDES, DTYPE, FLAGS = 0, 1, 2, 3, 5, 6
KIND = 1  # kind, character, byte order, flags, and the number of the dtype
INT_BITS = (1 << 32) - 1  # Where an int of C stands in a word.
KIND_BITS = ~(255 << 24)  # All but the flags.
WRITEABLE = 1 << 10
