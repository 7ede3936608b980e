"""Convolution of lines with many kernels at once, by FFT: what the continuous wavelet transform computes.

    out[k, n] = Σ_j taps_k[j] · x[n + origin_k - j],     x = 0 outside of the line

Kernels of similar lengths form a group with one length of the FFT, so that the spectrum of the line is
computed once for all of them. A long line is divided into overlapping blocks, whose spectra stay in a cache
of the processor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from .threads import run, workers

__all__ = ["Convolution", "LineKernel", "convolve_on_device", "fast_length"]

Array = NDArray[Any]
Piece = tuple[slice, slice, slice]  # of kernels, lines and blocks
PIECE = 1 << 15  # samples that are multiplied and transformed back together, so that they stay in a cache
MAX_KEPT = 1 << 20  # numbers in the spectra of all kernels, up to which they are computed in advance
MAX_ON_DEVICE = 1 << 26  # numbers in one step on a device


@dataclass(frozen=True, eq=False)
class LineKernel:
    """A kernel, and the tap that meets the sample at the place of the result."""

    taps: Array
    origin: int

    @property
    def before(self) -> int:
        """How many samples before its place a result depends on."""
        return self.taps.size - 1 - self.origin

    def cropped(self, length: int) -> LineKernel:
        """Return the kernel without the taps that meet no sample of a line of this length."""
        first, last = max(0, self.origin - length + 1), self.origin + length
        return LineKernel(self.taps[first:last], self.origin - first)


def fast_length(least: int) -> int:
    """Return the next length of the form 2ᵏ, 3·2ᵏ, 5·2ᵏ or 15·2ᵏ, whose FFT is fast.

    Examples
    --------
    >>> [fast_length(n) for n in (1, 7, 11, 17, 1025)]
    [1, 8, 12, 20, 1280]
    """
    return min(odd << max(0, math.ceil(math.log2(least / odd))) for odd in (1, 3, 5, 15))


class _Group:
    """Kernels that share the blocks of a line and their spectra.

    Blocks are ``size`` samples long and ``step`` apart, and begin ``lead`` samples before their results. The
    whole line is one block if its end can wrap around to its beginning without meeting samples.
    """

    def __init__(
        self, kernels: Sequence[LineKernel], indices: list[int], length: int, real: bool, divide: bool = True
    ) -> None:
        self.kernels, self.indices, self.length, self.real = kernels, indices, length, real
        before, after = max(k.before for k in kernels), max(k.origin for k in kernels)
        self.size, self.step, self.lead = fast_length(length + max(before, after)), length, 0
        cost, size = self.size * math.log2(2 * self.size), 1 << (before + after + 1).bit_length()
        while divide and size < self.size:
            step = size - before - after
            cost_in_blocks = math.ceil(length / step) * size * math.log2(2 * size)
            if cost_in_blocks < cost:
                cost, self.size, self.step, self.lead = cost_in_blocks, size, step, before
            size *= 2
        self.blocks = math.ceil(length / self.step)
        self.spectra: Array | None = None

    def shifted(self, first: int, last: int) -> Array:
        """Return some kernels at the length of a block, with their origin at the first sample."""
        rows = np.zeros((last - first, self.size), np.float64 if self.real else np.complex128)
        for row, kernel in zip(rows, self.kernels[first:last], strict=True):
            row[: kernel.before + 1] = kernel.taps[kernel.origin :]
            if kernel.origin:
                row[-kernel.origin :] = kernel.taps[: kernel.origin]
        return rows

    def spectra_of(self, first: int, last: int) -> Array:
        """Return the spectra of some kernels."""
        if self.spectra is not None:
            return self.spectra[first:last]
        rows = self.shifted(first, last)
        return np.fft.rfft(rows) if self.real else np.fft.fft(rows)

    def spectra_of_lines(self, x: Array) -> Array:
        """Return the spectra of all blocks of all lines."""
        padded = np.zeros((len(x), (self.blocks - 1) * self.step + self.size), np.result_type(x, np.float64))
        padded[:, self.lead : self.lead + self.length] = x
        blocks = sliding_window_view(padded, self.size, -1)[:, :: self.step]
        return np.fft.rfft(blocks) if self.real else np.fft.fft(blocks)

    def pieces(self, lines: int) -> Iterator[Piece]:
        """Divide the work into slices of kernels, lines and blocks."""
        rows = max(1, PIECE // self.size)
        blocks = min(rows, self.blocks)
        some_lines = min(max(1, rows // blocks), lines) if blocks == self.blocks else 1
        kernels = max(1, rows // (blocks * some_lines))
        for k in range(0, len(self.kernels), kernels):
            for i in range(0, lines, some_lines):
                for j in range(0, self.blocks, blocks):
                    yield (
                        slice(k, min(k + kernels, len(self.kernels))),
                        slice(i, i + some_lines),
                        slice(j, min(j + blocks, self.blocks)),
                    )


class Convolution:
    """Convolutions of lines of one length with the same kernels.

    Parameters
    ----------
    kernels : sequence of LineKernel
    length : int
        Number of samples of a line.
    dtype : dtype
        The dtype of results; a real one takes real lines and real kernels.
    grouped : bool
        Whether to separate kernels of different lengths. This costs more for small results, and less for
        large ones.
    """

    def __init__(
        self, kernels: Sequence[LineKernel], length: int, dtype: np.dtype[Any], grouped: bool
    ) -> None:
        self.dtype, self.real = dtype, dtype.kind != "c"
        members: dict[int, list[int]] = {}
        short = [kernel.cropped(length) for kernel in kernels]
        for index, kernel in enumerate(short):
            members.setdefault(kernel.taps.size.bit_length() if grouped else 0, []).append(index)
        self.groups = [
            _Group([short[index] for index in indices], indices, length, self.real)
            for indices in members.values()
        ]
        if sum(len(group.kernels) * group.size for group in self.groups) <= MAX_KEPT:
            for group in self.groups:
                group.spectra = self._rounded(group.spectra_of(0, len(group.kernels)))

    def _rounded(self, spectrum: Array) -> Array:
        """Return a spectrum in the precision of the results; it was computed in double precision."""
        single = self.dtype in (np.float32, np.complex64)
        return spectrum.astype(np.complex64, copy=False) if single else spectrum

    def __call__(self, x: Array, out: Array) -> None:
        """Convolve lines of shape (lines, length) to results of shape (kernels, lines, length)."""
        for group in self.groups:
            spectra = self._rounded(group.spectra_of_lines(x))
            pieces = list(group.pieces(len(x)))
            threads = min(workers(group.size * group.blocks * len(x) * len(group.kernels)), len(pieces))
            run(self._work, [(group, spectra, pieces[first::threads], out) for first in range(threads)])

    def _work(self, group: _Group, spectra: Array, pieces: list[Piece], out: Array) -> None:
        current: slice | None = None
        for kernels, lines, blocks in pieces:
            if kernels != current:
                factors, current = self._rounded(group.spectra_of(kernels.start, kernels.stop)), kernels
            product = spectra[lines, blocks] * factors[:, None, None]
            inverse = np.fft.irfft(product, group.size) if self.real else np.fft.ifft(product)
            _store(group, inverse, kernels, lines, blocks, out)


def _store(group: _Group, blocks: Array, kernels: slice, lines: slice, places: slice, out: Array) -> None:
    """Copy the valid part of blocks, of shape (kernels, lines, blocks, size), to the results."""
    valid = blocks[..., group.lead : group.lead + group.step]
    full = min(places.stop, group.length // group.step)
    begin, end, rest = places.start * group.step, full * group.step, full - places.start
    for index, part in zip(group.indices[kernels], valid, strict=True):
        target = out[index, lines]
        target[:, begin:end].reshape(len(target), rest, group.step)[...] = part[:, :rest]
        if full < places.stop:
            target[:, end:] = part[:, rest, : group.length - end]


def convolve_on_device(
    xp: Any, x: Any, kernels: Sequence[LineKernel], dtype: np.dtype[Any], to_device: Any
) -> Any:
    """Convolve lines on a device, of shape (lines, length), by the FFT of their array library.

    Parameters
    ----------
    xp : module
        The functions of the array API for ``x``.
    x : array
        Of the dtype of the results, or of its real numbers.
    kernels : sequence of LineKernel
    dtype : dtype
        The dtype of the results.
    to_device : callable
        Copies a NumPy array to where ``x`` is.

    Returns
    -------
    array
        Of shape (kernels, lines, length).
    """
    lines, length = x.shape
    real, count = dtype.kind != "c", len(kernels)
    cropped = [kernel.cropped(length) for kernel in kernels]
    group = _Group(cropped, [*range(count)], length, real, divide=False)
    forward = xp.fft.rfft if real else xp.fft.fft
    spectrum, step, parts = forward(x, n=group.size), max(1, MAX_ON_DEVICE // (lines * group.size)), []
    for first in range(0, count, step):
        rows = to_device(group.shifted(first, min(first + step, count)).astype(dtype))
        product = forward(rows)[:, None, :] * spectrum[None]
        inverse = xp.fft.irfft(product, n=group.size) if real else xp.fft.ifft(product)
        parts.append(inverse[..., :length])
    return xp.concat(parts, axis=0)
