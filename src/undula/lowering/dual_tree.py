"""Graphs of the dual-tree complex wavelet transform, forward and back.

A dual tree is two real DWTs along each axis, tree a and tree b, whose wavelets are nearly a Hilbert pair
[1]_. Lines go on beyond their ends as their mirror images. The q-shift filters of tree b are those of tree a
in reverse order, so tree b of a line is tree a of its mirror image. Both trees of a line x are therefore
*one* periodic DWT of the line followed by its mirror image,

    [x, reversed x]  ──DWT──▶  [a, reversed b],

and the 2^d trees of an array with d axes are the 2^d corners of the bands of one DWT. At the first level the
filters are symmetric, of odd length, and the trees have the even and the odd places of the line.

With T[t] the coefficients of tree t, where t has a 0 or a 1 (tree a or b) for each axis, and signs s = ±1, of
which the last is 1, the complex coefficients are

    z[s] = 2^(1/2 - d) Σ Π (i s[k])^t[k] T[t].

References
----------
.. [1] I. W. Selesnick, R. G. Baraniuk and N. G. Kingsbury, "The dual-tree complex wavelet transform", IEEE
   Signal Processing Magazine 22 (6), 2005, 123-151.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product
from operator import add
from typing import Any

from ..arrays import ArrayView
from ..wavelets import Wavelet
from .expressions import Constant, Expression
from .graph import Graph, Pointwise, Transform
from .nesting import band_keys
from .spec import BandTree, TransformSpec
from .symbolic import SymbolicArray, symbolic, symbolic_input, xp

__all__ = ["COMPLEX", "DualTree", "Signs", "Trees", "orientations", "unit"]

Shape = tuple[int, ...]
Trees = tuple[int, ...]  # 0 or 1, tree a or b, for each axis
Signs = tuple[int, ...]  # 1 or -1 for each axis

COMPLEX = {"float32": "complex64", "float64": "complex128"}
# The bands of images by angle, from 15° to 165° in steps of 30°; see :func:`orientations`.
IMAGE_ORIENTATIONS = (
    ("da", (1, 1)),
    ("dd", (1, 1)),
    ("ad", (1, 1)),
    ("ad", (-1, 1)),
    ("dd", (-1, 1)),
    ("da", (-1, 1)),
)


def orientations(ndim: int) -> list[tuple[str, Signs]]:
    """Return the complex bands of a level: the key of the real bands, and the sign of each axis.

    Examples
    --------
    >>> orientations(1)
    [('d', (1,))]
    >>> len(orientations(2)), len(orientations(3))
    (6, 28)
    """
    if ndim == 2:
        return list(IMAGE_ORIENTATIONS)
    signs = [(*rest, 1) for rest in product((1, -1), repeat=ndim - 1)]
    return [(key, each) for key in band_keys(ndim)[1:] for each in signs]


@dataclass(frozen=True)
class DualTree:
    """A dual-tree transform of arrays of one shape.

    Parameters
    ----------
    shape : tuple of int
        Shape of the samples.
    axes : tuple of int
        Axes that are transformed, from 0.
    levels : int
        At least 1.
    first, wavelet : Wavelet
        The wavelets of tree a at the first level and at all others.
    dtype : str
        ``float32`` or ``float64``.
    """

    shape: Shape
    axes: tuple[int, ...]
    levels: int
    first: Wavelet
    wavelet: Wavelet
    dtype: str

    @property
    def ndim(self) -> int:
        """The number of axes that are transformed."""
        return len(self.axes)

    @cached_property
    def trees(self) -> list[Trees]:
        """All trees; those that have tree a along the last axis, which is not reversed, first."""
        return sorted(product((0, 1), repeat=self.ndim), key=lambda trees: trees[::-1])

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The axes of the samples, those that are transformed last."""
        return (*(axis for axis in range(len(self.shape)) if axis not in self.axes), *self.axes)

    @cached_property
    def outer(self) -> Shape:
        """The lengths along axes that are not transformed."""
        return tuple(self.shape[axis] for axis in self.order[: len(self.shape) - self.ndim])

    @cached_property
    def lengths(self) -> Shape:
        """The lengths along the axes that are transformed."""
        return tuple(self.shape[axis] for axis in self.axes)

    @cached_property
    def padded(self) -> Shape:
        """Those lengths, rounded up to what so many levels need."""
        return tuple(-(-n >> self.levels) << self.levels for n in self.lengths)

    @property
    def directions(self) -> Shape:
        """The number of complex bands of a level, as the shape of their axis; one band has none."""
        return (len(orientations(self.ndim)),) if self.ndim > 1 else ()

    def _direction(self, number: int) -> tuple[int, ...]:
        """Return the index of a complex band."""
        return (number,) if self.ndim > 1 else ()

    def band_lengths(self, level: int) -> Shape:
        """Return the lengths of complex bands; level 1 is the finest."""
        return tuple(n >> level for n in self.padded)

    @property
    def lowpass_lengths(self) -> Shape:
        """The lengths of the low-pass band, in which the trees alternate."""
        return tuple(2 * n >> self.levels for n in self.padded)

    # --- forward ----------------------------------------------------------------------------------

    def forward(self) -> Graph:
        """Return the graph from samples ``x`` to ``lowpass``, ``level1``, ``level2`` and so on.

        The first axis of a level has its orientations.
        """
        graph = Graph()
        levels = range(1, self.levels + 1)

        def target(level: int) -> ArrayView:
            name = f"level{level}"
            return self._output(graph, name, self.band_lengths(level), self.directions).as_pairs()

        lowpass = self._ordered(self._output(graph, "lowpass", self.lowpass_lengths))
        low = self.decompose(symbolic_input(graph, "x", self.shape, self.dtype), [target(k) for k in levels])
        scale = 2 ** (-self.ndim / 2)
        views = tuple(_part(lowpass, [..., *(slice(t, None, 2) for t in trees)]) for trees in self.trees)
        parts = [self._tree_samples(graph, low, trees) for trees in self.trees]
        graph.append(Pointwise(views, tuple(_weighted_sum([(scale, part)]) for part in parts)))
        return graph

    def decompose(self, x: SymbolicArray, targets: Sequence[ArrayView]) -> ArrayView:
        """Write the details of all levels, finest first; return the approximations of all trees.

        Targets have an axis of directions in front, unless there is only one, and in the end one of the real
        and the imaginary part.
        """
        graph, low = x.graph, self._mirrored(self._lines(x))
        details: list[dict[str, ArrayView]] = []
        for tree in self._transforms():
            bands = tuple(graph.allocate(shape, self.dtype) for shape in tree.flat_shapes)
            graph.phase = "forward"
            graph.append(Transform(tree, False, low, bands))
            graph.phase = "filter"
            low, *levels = tree.by_key(bands)
            details += levels[::-1]
        for target, by_key in zip(targets, details, strict=True):
            self._write_details(graph, target, by_key)
        return low

    def _write_details(self, graph: Graph, pairs: ArrayView, bands: dict[str, ArrayView]) -> None:
        """Compute the complex bands of a level from the trees."""
        views, values = [], []
        for number, (key, signs) in enumerate(orientations(self.ndim)):
            for odd in (0, 1):
                terms = [
                    (sign * 2 ** (0.5 - self.ndim), self._tree_samples(graph, bands[key], trees))
                    for trees in self.trees
                    for is_odd, sign in [unit(trees, signs, key)]
                    if is_odd == odd
                ]
                views.append(self._ordered(_part(pairs, [*self._direction(number), ..., odd])))
                values.append(_weighted_sum(terms))
        graph.append(Pointwise(tuple(views), tuple(values)))

    # --- back -------------------------------------------------------------------------------------

    def inverse(self, missing: frozenset[str]) -> Graph:
        """Return the graph from ``lowpass``, ``level1``, ``level2`` and so on to ``x``.

        Parameters
        ----------
        missing : frozenset of str
            The inputs that are zeros.
        """
        graph = Graph()
        inputs = self._inputs(graph, missing)
        *_, coarsest = self._transforms()
        low = graph.allocate(coarsest.approximation_shape, self.dtype)
        values: list[Expression] = [Constant(0.0)] * len(self.trees)
        if "lowpass" not in missing:
            lines, scale = self._lines(inputs["lowpass"]), 2 ** (self.ndim / 2)
            parts = [lines[_index(slice(t, None, 2) for t in trees)][_flip(trees)] for trees in self.trees]
            values = [_weighted_sum([(scale, part)]) for part in parts]
        graph.append(Pointwise(tuple(_corner(low, trees) for trees in self.trees), tuple(values)))
        details = [inputs.get(f"level{level}") for level in range(1, self.levels + 1)]
        mean = self.recompose(graph, low, details)
        graph.append(Pointwise((self._ordered(self._output(graph, "x", self.lengths)),), (mean,)))
        return graph

    def recompose(self, graph: Graph, low: ArrayView, details: Sequence[SymbolicArray | None]) -> Expression:
        """Return the samples, with the axes that are transformed last, from what ``decompose`` has made.

        Details are zero where they are None.
        """
        *others, coarsest = self._transforms()
        level = self.levels
        for tree in (coarsest, *reversed(others)):
            bands = [low]
            for shapes in tree.detail_shapes:
                bands += self._read_details(graph, details[level - 1], shapes)
                level -= 1
            low = graph.allocate(tree.sample_shapes[0], self.dtype)
            graph.phase = "inverse"
            graph.append(Transform(tree, True, low, tuple(bands)))
            graph.phase = "filter"
        cut = (..., *(slice(n) for n in self.lengths))
        parts = [self._tree_samples(graph, low, trees)[cut] for trees in self.trees]
        return _weighted_sum([(2.0**-self.ndim, part) for part in parts])

    def _inputs(self, graph: Graph, missing: frozenset[str]) -> dict[str, SymbolicArray]:
        """Add the inputs of the inverse, in the order of axes of the samples."""
        inputs = {}
        shapes = {"lowpass": (self.lowpass_lengths, False)}
        shapes |= {f"level{k}": (self.band_lengths(k), True) for k in range(1, self.levels + 1)}
        for name, (lengths, is_detail) in shapes.items():
            if name in missing:
                continue
            shape = self._band_shape(lengths)
            if is_detail:
                view = graph.add_input(name, (*self.directions, *shape), COMPLEX[self.dtype])
                inputs[name] = symbolic(graph, view.as_pairs())
            else:
                inputs[name] = symbolic_input(graph, name, shape, self.dtype)
        return inputs

    def _read_details(
        self, graph: Graph, pairs: SymbolicArray | None, shapes: dict[str, Shape]
    ) -> list[ArrayView]:
        """Compute the real bands of a level, with all trees."""
        bands = {key: graph.allocate(shape, self.dtype) for key, shape in shapes.items()}
        if pairs is None:
            graph.append(Pointwise(tuple(bands.values()), (Constant(0.0),) * len(bands)))
            return list(bands.values())
        views, values = [], []
        for key, band in bands.items():
            kinds = enumerate(orientations(self.ndim))
            members = [(self._direction(number), signs) for number, (name, signs) in kinds if name == key]
            for trees in self.trees:
                terms = []
                for direction, signs in members:
                    odd, sign = unit(trees, signs, key)
                    part = self._lines(pairs[(*direction, ..., odd)])
                    terms.append((sign * math.sqrt(2), part[_flip(trees)]))
                views.append(_corner(band, trees))
                values.append(_weighted_sum(terms))
        graph.append(Pointwise(tuple(views), tuple(values)))
        return list(bands.values())

    # --- arrays -----------------------------------------------------------------------------------

    def _lines(self, x: SymbolicArray) -> SymbolicArray:
        """Return an array with one axis of items, and then those that are transformed."""
        ordered = xp.permute_dims(x, self.order)
        return xp.reshape(ordered, (math.prod(self.outer), *ordered.shape[len(self.outer) :]))

    def _band_shape(self, lengths: Shape) -> Shape:
        """Return the shape of the samples with other lengths along the axes that are transformed."""
        along = dict(zip(self.axes, lengths, strict=True))
        return tuple(along.get(axis, n) for axis, n in enumerate(self.shape))

    def _output(self, graph: Graph, name: str, lengths: Shape, directions: Shape = ()) -> ArrayView:
        """Add an output; details are complex."""
        dtype = COMPLEX[self.dtype] if name.startswith("level") else self.dtype
        return graph.add_output(name, (*directions, *self._band_shape(lengths)), dtype)

    def _ordered(self, view: ArrayView) -> ArrayView:
        """Return a view with the axes that are transformed last."""
        shape, strides = (tuple(part[axis] for axis in self.order) for part in (view.shape, view.strides))
        return view._replace(shape=shape, strides=strides)

    def _tree_samples(self, graph: Graph, band: ArrayView, trees: Trees) -> SymbolicArray:
        """Return the coefficients of a tree, with all axes that are not transformed in place of items."""
        part = symbolic(graph, _tree_part(band, trees))
        return xp.reshape(part, (*self.outer, *part.shape[1:]))

    def _mirrored(self, x: SymbolicArray) -> ArrayView:
        """Return an array followed by its mirror image along each axis; its last samples fill the gap."""
        target = x.graph.allocate((x.shape[0], *(2 * n for n in self.padded)), self.dtype)
        pieces = []
        for n, padded in zip(self.lengths, self.padded, strict=True):
            along = [(slice(0, n), slice(None)), (slice(2 * padded - n, None), slice(None, None, -1))]
            if n < padded:
                along.append((slice(n, 2 * padded - n), slice(n - 1, n)))
            pieces.append(along)
        views, values = [], []
        for each in product(*pieces):
            views.append(_part(target, [slice(None), *(part for part, _ in each)]))
            values.append(x[_index(part for _, part in each)].expression)
        x.graph.append(Pointwise(tuple(views), tuple(values)))
        return target

    def _transforms(self) -> Iterator[BandTree]:
        """Yield the transform of the first level, and that of all others."""
        shape = (math.prod(self.outer), *(2 * n for n in self.padded))
        axes, modes = tuple(range(1, 1 + self.ndim)), ("periodization",) * self.ndim
        for wavelet, levels in ((self.first, 1), (self.wavelet, self.levels - 1)):
            if levels:
                spec = TransformSpec("dwt", axes, (wavelet,) * self.ndim, modes)
                tree = BandTree.of_samples(spec, shape, levels)
                shape = tree.approximation_shape
                yield tree


def unit(trees: Trees, signs: Signs, key: str) -> tuple[int, int]:
    """Return whether the factor of a tree is imaginary, and its sign.

    The low-pass filter of tree b is behind that of tree a, and its high-pass filter ahead of it.
    """
    sign = -1 if sum(trees) % 4 in (2, 3) else 1
    for tree, each, letter in zip(trees, signs, key, strict=True):
        sign *= (-each if letter == "d" else each) if tree else 1
    return sum(trees) % 2, sign


def _weighted_sum(terms: Sequence[tuple[float, SymbolicArray]]) -> Expression:
    """Return a sum as an expression with a factor for each term, so that sums of any signs share a kernel."""
    total: SymbolicArray = reduce(add, (factor * part for factor, part in terms))
    return total.expression


def _index(parts: Any) -> tuple[Any, ...]:
    """Return the index of items, all of which are taken, and of other axes."""
    return (slice(None), *parts)


def _part(view: ArrayView, index: Sequence[Any]) -> ArrayView:
    """Return the part of a view that an index selects."""
    result = symbolic(Graph(), view)[tuple(index)].expression
    selected: ArrayView = result.view  # type: ignore[union-attr]
    return selected


def _corner(view: ArrayView, trees: Trees) -> ArrayView:
    """Return the corner of a band that belongs to a tree, as it is in memory."""
    halves = [n // 2 for n in view.shape[1:]]
    return _part(view, _index(slice(t * n, t * n + n) for t, n in zip(trees, halves, strict=True)))


def _flip(trees: Trees) -> tuple[Any, ...]:
    return _index(slice(None, None, -1 if tree else 1) for tree in trees)


def _tree_part(view: ArrayView, trees: Trees) -> ArrayView:
    """Return the coefficients of a tree, of which tree b is stored in reverse order."""
    return _part(_corner(view, trees), _flip(trees))
