"""Streams: images that come and go by rows, and may be taller than memory.

Rows go in as they arrive, and coefficients of all levels come out as soon as they are known; the other way
round likewise. A level remembers a few rows, as many as its filters are long, so memory does not depend on
the height. Numbers are those of :func:`undula.wavedec2`, bit for bit where that runs the same kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..arrays import empty_like, keeps_library, library_of, numpy_array, result_dtype
from ..engines.cpu import FIRST_ARRAY, LIFTING, compile_rows
from ..engines.cpu.encoding import coefficient_ranges, sample_range
from ..errors import ArgumentError, ArgumentTypeError, UndulaError
from ..lowering.axis import AxisOp
from ..lowering.borders import BORDERS, MODES
from ..lowering.nesting import from_keys
from ..lowering.spec import MAX_LEVEL, LevelOperators, TransformSpec, transform_spec
from ..wavelets import Wavelet

__all__ = ["ForwardStream", "InverseStream", "Rows", "collect_rows"]

Array = NDArray[Any]
Part = tuple[int, int]

LOCAL = tuple(mode for mode in MODES if not BORDERS[mode].wraps)


class Rows(NamedTuple):
    """Some rows of the coefficients of one level.

    Attributes
    ----------
    level : int
        1 for the finest.
    start : int
        The number of the first row.
    bands : dict of arrays
        ``"da"``, ``"ad"``, ``"dd"`` (horizontal, vertical and diagonal details) and, of the coarsest level,
        ``"aa"``.

    Examples
    --------
    >>> stream = ForwardStream(8, "haar")
    >>> [part] = stream.push(np.ones((2, 8)))
    >>> part.level, part.start, sorted(part.bands)
    (1, 0, ['aa', 'ad', 'da', 'dd'])
    """

    level: int
    start: int
    bands: dict[str, Array]


class _Stage:
    """One level of a stream, and what it remembers."""

    def __init__(self, spec: TransformSpec, row: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.spec, self.row, self.dtype = spec, row, dtype
        self.kept = np.empty((0, *row), dtype)  # rows that are still needed,
        self.first = 0  # the first of them, an even one,
        self.done = 0  # and the coefficients, or pairs of rows, that are made
        wavelet, mode = spec.wavelets[0], spec.modes[0]
        self.taps = wavelet.dec_len
        self.band = (spec.counts(1, row[0])[0], *row[1:])
        self.mode = mode

    def down(self, rows: int) -> AxisOp:
        """Return the analysis down the columns of so many rows."""
        return self.spec.operators((rows, *self.row), self.dtype, LIFTING)[0].op

    def _transform(self, back: bool, rows: int, x: Array, bands: Mapping[str, Array], part: Part) -> None:
        """Compute some rows of a level, in arrays of results that begin with the first of them."""
        shape = (rows, *self.row)
        arrays = [x, *bands.values()]
        views = [library_of(a).view(a).at(number) for number, a in enumerate(arrays, FIRST_ARRAY)]
        level = LevelOperators(shape, self.spec.operators(shape, self.dtype, LIFTING))
        compile_rows(back, self.dtype, level, views, *part).run(arrays)

    # --- forward ----------------------------------------------------------------------------------

    def push(self, rows: Array, last: bool) -> tuple[int, dict[str, Array]]:
        """Return the coefficients that are known with these rows, and the number of their first row."""
        self.kept = np.concatenate([self.kept, rows]) if len(self.kept) else rows
        count = len(self.kept)
        nothing = {key: np.empty((0, *self.band), self.dtype) for key in self.spec.keys}
        if not count:
            return self.done, nothing
        down = self.down(count)
        begin = self.done - self.first // 2
        if last:
            end = down.counts[0]
        else:
            # The top of the image is known when the rows are that lie before it by reflection.
            lowest, highest = sample_range(down)
            end = (count - 1 - highest) // 2 + 1
            if self.first == 0 and count < 2 - lowest:
                end = 0
        if end <= begin:
            return self.done, nothing
        bands = {key: np.empty((end - begin, *self.band), self.dtype) for key in self.spec.keys}
        self._transform(False, count, self.kept, bands, (begin, end))
        start, self.done = self.done, self.done + end - begin
        if not last:
            spare = 2 * (self.done - self.first // 2) + sample_range(down)[0]
            # At the bottom, rows are reflected as at the top: keep as many as that may take.
            spare = min(spare, count - self.taps - 4)
            spare -= spare % 2
            if spare > 0:
                self.kept, self.first = self.kept[spare:].copy(), self.first + spare
        return start, bands


def _row_shape(width: object) -> tuple[int, ...]:
    row = tuple(width) if isinstance(width, Sequence) else (width,)
    if not row or not all(isinstance(n, (int, np.integer)) and n > 0 for n in row):
        raise ArgumentError(f"a row is given by its width, or by (width, channels); got {width!r}")
    return tuple(int(n) for n in row)


def _checked(
    width: object, wavelet: Any, number: object, mode: Any, dtype: DTypeLike
) -> tuple[tuple[int, ...], TransformSpec, int, np.dtype[Any]]:
    row = _row_shape(width)
    if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or not 1 <= number <= MAX_LEVEL:
        raise ArgumentError(f"level must be an integer from 1 to {MAX_LEVEL}, got {number!r}")
    spec = transform_spec(1 + len(row), wavelet, mode, (0, 1))
    if spec.modes[0] not in LOCAL:
        raise ArgumentError(
            f"mode {spec.modes[0]!r} needs the last rows for the first coefficients; a stream can be in"
            f" mode {', '.join(LOCAL)}"
        )
    return row, spec, int(number), result_dtype(np.dtype(dtype))


def _described(stream: ForwardStream | InverseStream, spec: TransformSpec) -> str:
    names, modes = (
        ", ".join(dict.fromkeys(words)) for words in ([w.name for w in spec.wavelets], spec.modes)
    )
    return (
        f"<{type(stream).__name__} of rows {stream.row} of {stream.dtype}: {names}, level {stream.level},"
        f" mode {modes}, {stream.rows} row(s) so far>"
    )


class ForwardStream:
    """The DWT of an image that arrives row by row.

    Parameters
    ----------
    width : int, or (width, channels)
        Length of a row.
    wavelet : Wavelet or str, or a pair of them
        The wavelet, or one for the columns and one for the rows.
    level : int, default 1
        Number of levels.
    mode : str or int, or a pair of them, default "symmetric"
        How lines go on beyond their ends: one of ``undula.MODES``, or one for the columns and one for the
        rows. Periodic modes cannot be used for the columns, because they would need the last row first.
    dtype : dtype, default float64
        Dtype of the rows.

    Examples
    --------
    >>> image = np.random.default_rng(0).random((100, 64))
    >>> stream = ForwardStream(64, "cdf97", level=2)
    >>> parts = []
    >>> for row in image:
    ...     parts += stream.push(row)
    >>> parts += stream.finish()
    >>> from undula import wavedec2
    >>> bool(np.allclose(collect_rows(parts)[0], wavedec2(image, "cdf97", level=2)[0]))
    True
    """

    def __init__(
        self,
        width: int | Sequence[int],
        wavelet: Wavelet | str | Sequence[Any],
        *,
        level: int = 1,
        mode: str | int | Sequence[Any] = "symmetric",
        dtype: DTypeLike = np.float64,
    ) -> None:
        row, self._spec, self.level, self.dtype = _checked(width, wavelet, level, mode, dtype)
        self.row = row
        self.rows = 0
        self._stages: list[_Stage] = []
        for _ in range(self.level):
            self._stages.append(_Stage(self._spec, row, self.dtype))
            row = self._stages[-1].band
        self._open = True
        self._like: Any = None  # an empty array of the library of what was pushed

    def __repr__(self) -> str:
        return _described(self, self._spec)

    def push(self, rows: ArrayLike) -> list[Rows]:
        """Take one or more rows, and return the coefficients that can be computed now.

        Parameters
        ----------
        rows : array_like
            One row, or several along the first axis, from the top down.

        Returns
        -------
        list of Rows
            Rows of coefficients, each with its level; empty if more rows are needed first.
        """
        self._check()
        x = numpy_array(rows, "rows")
        x = x[np.newaxis] if x.shape == self.row else x
        if x.shape[1:] != self.row or x.ndim != 1 + len(self.row):
            raise ArgumentError(
                f"rows must have the shape {self.row} or (n, {str(self.row)[1:]}, got {x.shape}"
            )
        if result_dtype(x.dtype) != self.dtype:
            raise ArgumentTypeError(
                f"this stream is transformed in {self.dtype}, got rows of {x.dtype}; give it that dtype"
            )
        self.rows += len(x)
        self._like = empty_like(rows)
        return self._restored(self._run(np.array(x, dtype=self.dtype, order="C"), False))

    def finish(self) -> list[Rows]:
        """End the image, and return all coefficients that are left."""
        self._check()
        if not self.rows:
            raise ArgumentError("no rows were pushed")
        self._open = False
        return self._restored(self._run(np.empty((0, *self.row), self.dtype), True))

    def _restored(self, parts: list[Rows]) -> list[Rows]:
        """Return coefficients as arrays of the library of the rows."""
        return library_of(self._like).restore(parts, self._like)  # type: ignore[no-any-return]

    def _check(self) -> None:
        if not self._open:
            raise UndulaError("this stream is finished; make another one for the next image")

    def _run(self, x: Array, last: bool) -> list[Rows]:
        known = []
        for number, stage in enumerate(self._stages, 1):
            start, bands = stage.push(x, last)
            x = bands["aa"] if number == self.level else bands.pop("aa")
            if len(bands["dd"]):
                known.append(Rows(number, start, bands))
            if not len(x) and not last:
                break
        return known


class InverseStream:
    """The inverse of :class:`ForwardStream`: rows of coefficients in, rows of the image out.

    Parameters
    ----------
    width : int, or (width, channels)
        Length of a row of the image.
    wavelet : Wavelet or str, or a pair of them
        The wavelet of the :class:`ForwardStream`.
    level : int, default 1
        Its number of levels.
    mode : str or int, or a pair of them, default "symmetric"
        Its boundary mode, or modes.
    dtype : dtype, default float64
        Dtype of the coefficients.
    height : int, optional
        Height of the image, if it is known; without it, an image with an odd number of rows comes back one
        row taller.

    Examples
    --------
    >>> image = np.random.default_rng(0).random((31, 64))
    >>> forward = ForwardStream(64, "db2", level=2)
    >>> back = InverseStream(64, "db2", level=2, height=31)
    >>> rows = [back.push(part) for part in [*forward.push(image), *forward.finish()]]
    >>> bool(np.allclose(np.concatenate([*rows, back.finish()]), image))
    True
    """

    def __init__(
        self,
        width: int | Sequence[int],
        wavelet: Wavelet | str | Sequence[Any],
        *,
        level: int = 1,
        mode: str | int | Sequence[Any] = "symmetric",
        dtype: DTypeLike = np.float64,
        height: int | None = None,
    ) -> None:
        row, self._spec, self.level, self.dtype = _checked(width, wavelet, level, mode, dtype)
        if height is not None and (not isinstance(height, (int, np.integer)) or height < 1):
            raise ArgumentError(f"height must be an integer from 1 on, got {height!r}")
        self.row, self.height = row, height
        self.rows = 0
        self._stages = []
        for _ in range(self.level):
            self._stages.append(_Back(self._spec, row, self.dtype))
            row = self._stages[-1].band
        self._open = True
        self._like: Any = None  # an empty array of the library of what was pushed

    def __repr__(self) -> str:
        return _described(self, self._spec)

    def push(self, part: Rows) -> Array:
        """Take some rows of coefficients of one level, and return the rows of the image that are known now.

        Levels may come in any order; of each, the rows from the top down.

        Parameters
        ----------
        part : Rows
            Rows of coefficients of one level, as a :class:`ForwardStream` returns them.

        Returns
        -------
        array
            Rows of the image, from the top down; empty if more coefficients are needed first.
        """
        if not self._open:
            raise UndulaError("this stream is finished; make another one for the next image")
        if not isinstance(part, tuple) or len(part) != 3 or not 1 <= part[0] <= self.level:
            raise ArgumentError(f"Rows of a level from 1 to {self.level} are needed, got {part!r}")
        number, start, bands = part
        keys = self._spec.keys if number == self.level else self._spec.keys[1:]
        stage = self._stages[number - 1]
        if sorted(bands) != sorted(keys):
            raise ArgumentError(f"level {number} of {self.level} has bands {keys}, got {sorted(bands)}")
        arrays = {
            key: np.ascontiguousarray(numpy_array(band, key), self.dtype) for key, band in bands.items()
        }
        shapes = {band.shape for band in arrays.values()}
        if len(shapes) != 1 or next(iter(shapes))[1:] != stage.band:
            raise ArgumentError(f"rows of level {number} have the shape (n, *{stage.band}), got {shapes}")
        if start != stage.known("dd"):
            raise ArgumentError(
                f"rows of level {number} come from the top down: {stage.known('dd')} is next, got {start}"
            )
        for key, band in arrays.items():
            stage.add(key, band)
        self._like = empty_like(next(iter(bands.values())))
        return self._restored(self._run(False))

    def finish(self) -> Array:
        """End the image, and return the rows that are left."""
        if not self._open:
            raise UndulaError("this stream is finished; make another one for the next image")
        self._open = False
        return self._restored(self._run(True))

    def _restored(self, rows: Array) -> Array:
        """Return rows as an array of the library of the coefficients."""
        return library_of(self._like).restore(rows, self._like)  # type: ignore[no-any-return]

    def _run(self, last: bool) -> Array:
        for number in range(self.level, 0, -1):
            stage = self._stages[number - 1]
            rows = stage.pull(last)
            if number > 1:
                finer = self._stages[number - 2]
                if last:  # an approximation of odd height comes back one row too tall
                    rows = rows[: max(0, finer.known("dd") - finer.known("aa"))]
                finer.add("aa", rows)
        if self.height is not None:
            rows = rows[: max(0, self.height - self.rows)]
        self.rows += len(rows)
        return rows


class _Back(_Stage):
    """One level of a stream back: coefficients that are still needed, from one even number on."""

    def __init__(self, spec: TransformSpec, row: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        super().__init__(spec, row, dtype)
        self.bands = {key: np.empty((0, *self.band), dtype) for key in spec.keys}

    def known(self, key: str) -> int:
        """Return how many rows of a band have come."""
        return self.first + len(self.bands[key])

    def add(self, key: str, band: Array) -> None:
        self.bands[key] = np.concatenate([self.bands[key], band])

    def pull(self, last: bool) -> Array:
        """Return the rows that are known now."""
        count = min(len(band) for band in self.bands.values())
        height = 2 * count - self.taps + 2
        if height < 1:
            return np.empty((0, *self.row), self.dtype)
        used = coefficient_ranges(self.down(height).inverse(), 2)  # by the first pair of rows
        begin = 2 * (self.done - self.first)
        if last:
            end = height
        else:
            after = max(end for _, end in used)
            end = 2 * (count - after + 1)
        if end <= begin:
            return np.empty((0, *self.row), self.dtype)
        rows = np.empty((end - begin, *self.row), self.dtype)
        block = {key: band[:count] for key, band in self.bands.items()}
        self._transform(True, height, rows, block, (begin, end))
        self.done += (end - begin) // 2
        if not last:
            spare = self.done - self.first + min(start for start, _ in used)
            if spare > 0:
                self.bands = {key: band[spare:].copy() for key, band in self.bands.items()}
                self.first += spare
        return rows


@keeps_library
def _joined(rows: list[Array]) -> Array:
    return np.concatenate(rows)


def collect_rows(parts: Iterable[Rows]) -> list[Any]:
    """Return all rows of a :class:`ForwardStream` as coefficients, nested as :func:`undula.wavedec2` does.

    Parameters
    ----------
    parts : iterable of Rows
        All that the methods ``push`` and ``finish`` of a stream returned.

    Returns
    -------
    list
        ``[approximation, (cH, cV, cD) of the coarsest level, …]``.

    Examples
    --------
    >>> stream = ForwardStream(8, "haar")
    >>> low, details = collect_rows([*stream.push(np.ones((4, 8))), *stream.finish()])
    >>> low.shape, details[0].shape
    ((2, 4), (2, 4))
    """
    by_level: dict[int, dict[str, list[Array]]] = {}
    for number, _, bands in parts:
        for key, band in bands.items():
            by_level.setdefault(number, {}).setdefault(key, []).append(band)
    if not by_level:
        raise ArgumentError("there are no rows to collect")
    levels = [
        {key: _joined(rows) for key, rows in by_level[number].items()}
        for number in sorted(by_level, reverse=True)
    ]
    low = levels[0].pop("aa")
    return from_keys([low, *levels], "wavedec2")
