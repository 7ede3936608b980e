"""The dual-tree transform of Dask arrays.

As in :mod:`undula.lowering.dual_tree`, all trees are one periodic DWT of the array followed by its mirror
image. The DWT is that of :mod:`undula.engines.chunked.transforms`; what is before and after it are functions
of Dask.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from ...lowering.dual_tree import COMPLEX, DualTree, Signs, Trees, orientations, unit
from ...lowering.nesting import band_keys
from ...lowering.spec import TransformSpec
from .transforms import as_dask, decompose, recompose

__all__ = ["dual_tree_bands", "dual_tree_samples"]

Array = NDArray[Any]


def dual_tree_bands(tree: DualTree, x: Any, backend: str) -> dict[str, Any]:
    """Return ``lowpass``, ``level1``, ``level2`` and so on of a Dask array, as Dask arrays."""
    low = as_dask(x).astype(tree.dtype).transpose(tree.order)
    first = len(tree.outer)
    for axis, (n, padded) in enumerate(zip(tree.lengths, tree.padded, strict=True), first):
        end = (slice(None),) * axis
        mirrored = [low, low[(*end, slice(None, None, -1))]]
        if n < padded:
            mirrored.insert(1, da.repeat(low[(*end, slice(n - 1, n))], 2 * (padded - n), axis))
        low = da.concatenate(mirrored, axis)
    details: list[dict[str, Any]] = []
    for spec, levels in _transforms(tree):
        low, *coarsest_first = decompose(spec, low, levels, backend, None)
        details += coarsest_first[::-1]
    bands = {f"level{level}": _complex_bands(tree, by_key) for level, by_key in enumerate(details, 1)}
    parts = _aligned([_tree_part(tree, low, trees) for trees in tree.trees])
    chunks = tuple(
        tuple((2 if axis >= first else 1) * n for n in sizes) for axis, sizes in enumerate(parts[0].chunks)
    )
    scale = 2 ** (-tree.ndim / 2)
    lowpass = da.map_blocks(
        _interleaved, *parts, trees=tree.trees, scale=scale, chunks=chunks, dtype=tree.dtype
    )
    return {"lowpass": lowpass.transpose(_order_back(tree)), **bands}


def dual_tree_samples(tree: DualTree, bands: Mapping[str, Any], backend: str) -> Any:
    """Return the samples of ``lowpass``, ``level1`` and so on, as a Dask array; missing bands are zeros."""
    first, given = len(tree.outer), {name: as_dask(band) for name, band in bands.items()}
    scale = 2 ** (tree.ndim / 2)
    corners: dict[Trees, Any] = {}
    if "lowpass" in given:
        lowpass = given["lowpass"].astype(tree.dtype).transpose(tree.order)
        for trees in tree.trees:
            part = lowpass[(..., *(slice(t, None, 2) for t in trees))]
            corners[trees] = scale * _flipped(part, trees)
    low = _joined(tree, corners, tree.band_lengths(tree.levels), first)
    level = tree.levels
    for spec, levels in reversed(_transforms(tree)):
        keyed = [low]
        for _ in range(levels):
            keyed.append(_real_bands(tree, given.get(f"level{level}"), tree.band_lengths(level)))
            level -= 1
        low = recompose(spec, keyed, None, backend, np.dtype(tree.dtype))
    cut = (..., *map(slice, tree.lengths))
    mean = _weighted_sum([(2.0**-tree.ndim, _tree_part(tree, low, trees)[cut]) for trees in tree.trees])
    return mean.transpose(_order_back(tree))


def _order_back(tree: DualTree) -> tuple[int, ...]:
    """Return the places of the axes of the samples where those that are transformed are last."""
    return tuple(tree.order.index(axis) for axis in range(len(tree.order)))


def _transforms(tree: DualTree) -> list[tuple[TransformSpec, int]]:
    """Return the transform of the first level, and that of all others, with their levels."""
    axes = tuple(range(len(tree.outer), len(tree.shape)))
    modes = ("periodization",) * tree.ndim
    return [
        (TransformSpec("dwt", axes, (wavelet,) * tree.ndim, modes), levels)
        for wavelet, levels in ((tree.first, 1), (tree.wavelet, tree.levels - 1))
        if levels
    ]


def _complex_bands(tree: DualTree, bands: Mapping[str, Any]) -> Any:
    """Return the complex bands of a level, from those of all trees."""
    results = []
    for key, signs in orientations(tree.ndim):
        halves = [
            _weighted_sum(
                [
                    (sign * 2 ** (0.5 - tree.ndim), _tree_part(tree, bands[key], trees))
                    for trees, is_odd, sign in _units(tree, signs, key)
                    if is_odd == odd
                ]
            )
            for odd in (0, 1)
        ]
        band = da.map_blocks(_complex, *_aligned(halves), dtype=COMPLEX[tree.dtype])
        results.append(band.transpose(_order_back(tree)))
    return da.stack(results) if tree.ndim > 1 else results[0]


def _real_bands(tree: DualTree, band: Any, lengths: Sequence[int]) -> dict[str, Any]:
    """Return the real bands of a level, with all trees, from the complex ones; None stands for zeros."""
    keys, first = band_keys(tree.ndim)[1:], len(tree.outer)
    if band is None:
        return {key: _joined(tree, {}, lengths, first) for key in keys}
    each = band.astype(COMPLEX[tree.dtype])
    each = list(each) if tree.ndim > 1 else [each]
    results = {}
    for key in keys:
        members = [
            (part.transpose(tree.order), signs)
            for part, (name, signs) in zip(each, orientations(tree.ndim), strict=True)
            if name == key
        ]
        corners = {}
        for trees in tree.trees:
            terms = []
            for part, signs in members:
                odd, sign = unit(trees, signs, key)
                terms.append((sign * math.sqrt(2), _flipped(part.imag if odd else part.real, trees)))
            corners[trees] = _weighted_sum(terms)
        results[key] = _joined(tree, corners, lengths, first)
    return results


def _units(tree: DualTree, signs: Signs, key: str) -> list[tuple[Trees, int, int]]:
    return [(trees, *unit(trees, signs, key)) for trees in tree.trees]


def _weighted_sum(terms: Sequence[tuple[float, Any]]) -> Any:
    return reduce(add, (factor * part for factor, part in terms))


def _aligned(parts: Sequence[Any]) -> list[Any]:
    """Return arrays of one shape with the chunks of the first."""
    return [part.rechunk(parts[0].chunks) for part in parts]


def _flipped(part: Any, trees: Trees) -> Any:
    """Return the coefficients of a tree in the order of the DWT, or back: tree b is reversed."""
    return part[(..., *(slice(None, None, -1 if tree else 1) for tree in trees))]


def _tree_part(tree: DualTree, band: Any, trees: Trees) -> Any:
    """Return the coefficients of a tree, from the corner of a band."""
    halves = [n // 2 for n in band.shape[len(tree.outer) :]]
    corner = (..., *(slice(t * n, t * n + n) for t, n in zip(trees, halves, strict=True)))
    return _flipped(band[corner], trees)


def _joined(tree: DualTree, corners: dict[Trees, Any], lengths: Sequence[int], first: int) -> Any:
    """Return a band, given its corners; zeros without any."""
    if not corners:
        return da.zeros((*tree.outer, *(2 * n for n in lengths)), dtype=tree.dtype)
    for number in range(tree.ndim - 1, -1, -1):
        rest = {trees[:number] for trees in corners}
        corners = {t: da.concatenate([corners[(*t, 0)], corners[(*t, 1)]], first + number) for t in rest}
    return corners[()]


# --- on chunks ------------------------------------------------------------------------------------


def _complex(real: Array, imag: Array) -> Array:
    result = np.empty_like(real, dtype=COMPLEX[str(real.dtype)])
    result.real, result.imag = real, imag
    return result


def _interleaved(*parts: Array, trees: Sequence[Trees], scale: float) -> Any:
    """Return the samples of all trees in turn along the last axes."""
    ndim, shape = len(trees[0]), parts[0].shape
    outer = len(shape) - ndim
    result: Any = np.empty_like(parts[0], shape=(*shape[:outer], *(2 * n for n in shape[outer:])))
    for part, places in zip(parts, trees, strict=True):
        result[(..., *(slice(t, None, 2) for t in places))] = scale * part
    return result
