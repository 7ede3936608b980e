"""Wavelet packets: trees in which details are decomposed as well as approximations.

The classes have the names, arguments and behaviour of PyWavelets. A :class:`WaveletPacket` is the root of a
tree, a node holds coefficients as ``data``, and ``packet["ad"]`` decomposes what is not decomposed yet. The
subnodes of a node ``x`` are the bands of ``dwtn(x)``.

All nodes of a level have the same shape. :meth:`WaveletPacket.get_level` therefore stacks them along a new
first axis, and computes the next level by one transform: the batch ``(K, N)`` is decomposed into the bands
``(2, K, N / 2)``, which are the batch ``(2K, N / 2)`` of the next level without a copy.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby, product
from typing import Any, ClassVar, Self
from weakref import ref

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import given_array, library_of, result_dtype
from ..engines.dispatch import engine_for
from ..errors import ArgumentError, ArgumentTypeError, UnknownNodeError
from ..lowering.axis_arguments import Axes, checked_axes, one_axis, per_axis, two_axes
from ..lowering.borders import check_mode, max_level
from ..lowering.spec import BandTree, transform_spec
from ..wavelets import Wavelet, as_wavelet
from .discrete import dwtn, idwtn

__all__ = [
    "BaseNode",
    "Node",
    "Node2D",
    "NodeND",
    "WaveletPacket",
    "WaveletPacket2D",
    "WaveletPacketND",
]

Array = NDArray[Any]
Path = str | tuple[str, ...]
MAX_DIMENSIONS = 64  # of NumPy's arrays, for trees whose data are unknown


class BaseNode(ABC):
    """A node of a tree of wavelet packets: what nodes of any dimension have in common.

    Parameters
    ----------
    parent : BaseNode or None
        The node of which this one is a band; None for a root.
    data : array_like or None
        Samples of a root, or coefficients; None if they are unknown.
    node_name : str
        Name of the band, one of ``PARTS`` of the parent; empty for a root.

    Attributes
    ----------
    data : array_like or None
        Coefficients; assign other ones to change what :meth:`reconstruct` returns.
    parent : BaseNode or None
        The node above; None for a root, for a removed node, and once nobody holds the tree any more.
    path : str
        Names of the bands from the root to this node.
    level : int
        Number of levels between the root and this node.
    wavelet, mode, axes, backend
        The transform, as in the root.
    PARTS : sequence of str
        Names of the subnodes.
    PART_LEN : int
        Length of such a name.
    """

    PARTS: Collection[str] = ()
    PART_LEN: int = 0
    # Bands of dwtn by the names of subnodes, where the two differ.
    _KEYS: ClassVar[Mapping[str, str]] = {}

    def __init__(self, parent: BaseNode | None, data: Any, node_name: str) -> None:
        # A tree without cycles returns its memory at once, which the next one can use.
        self._parent = None if parent is None else ref(parent)
        self.data = data
        self.wavelet: Any = None if parent is None else parent.wavelet
        self.mode: Any = None if parent is None else parent.mode
        self.axes: Any = None if parent is None else parent.axes
        self.backend: str = "auto" if parent is None else parent.backend
        self.path: str = "" if parent is None else parent.path + node_name
        self.level: int = 0 if parent is None else parent.level + 1
        self._maxlevel: int | None = None if parent is None else parent.maxlevel
        # The inverse transform of odd lengths has a sample too many, which is cut off.
        self._shape = None if data is None else tuple(np.shape(data))
        self._subnodes: dict[str, Any] = dict.fromkeys(self._part_names())

    def __copy__(self) -> Self:
        """Return a tree of other nodes with the same arrays; of a node, the tree below it."""
        duplicate = object.__new__(type(self))
        subnodes = {part: None if node is None else node.__copy__() for part, node in self._subnodes.items()}
        duplicate.__setstate__(self.__getstate__() | {"_subnodes": subnodes})
        return duplicate

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_parent": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for node in self._existing():
            node._parent = ref(self)

    def __str__(self) -> str:
        return f"{self.path}: {self.data}"

    def _part_names(self) -> Iterable[str]:
        return self.PARTS

    def _existing(self) -> list[Any]:
        return [node for node in self._subnodes.values() if node is not None]

    @abstractmethod
    def _create_subnode(self, part: str, data: Any = None) -> Any:
        """Return a new subnode, which takes the place of one that there may be."""

    # --- what a node is ---------------------------------------------------------------------------

    @property
    def parent(self) -> Any:
        """The node above, if there is one."""
        return None if self._parent is None else self._parent()

    @property
    def node_name(self) -> str:
        """Name of the band, the last part of the path."""
        return self.path[-self.PART_LEN :]

    @property
    def path_tuple(self) -> tuple[str, ...]:
        """The path as a tuple, with one name for each level."""
        return tuple(self._split(self.path))

    @property
    def is_empty(self) -> bool:
        """Whether the node has no data."""
        return self.data is None

    @property
    def has_any_subnode(self) -> bool:
        """Whether there is a subnode, with data or without."""
        return any(node is not None for node in self._subnodes.values())

    @property
    def maxlevel(self) -> int | None:
        """The deepest level, counted from the root; None as long as no node of the tree has data."""
        if self._maxlevel is None:
            self._maxlevel = self._maxlevel_above()
        if self._maxlevel is None:
            self._maxlevel = self._maxlevel_below()
        return self._maxlevel

    def _maxlevel_above(self) -> int | None:
        if self._maxlevel is not None:
            return self._maxlevel
        if self.data is not None:
            return self.level + useful_levels(np.shape(self.data), self.wavelet, self._transformed_axes)
        return None if self.parent is None else self.parent._maxlevel_above()

    def _maxlevel_below(self) -> int | None:
        levels = (node._maxlevel_above() or node._maxlevel_below() for node in self._existing())
        return next((level for level in levels if level is not None), None)

    @property
    def _depth(self) -> int:
        """The deepest level, or an error if it is unknown."""
        if self.maxlevel is None:
            raise ArgumentTypeError(
                "this tree has no data, so there is nothing to decompose; assign coefficients to its nodes"
                " first, such as packet['a'] = …"
            )
        return self.maxlevel

    @property
    def _transformed_axes(self) -> tuple[int, ...]:
        return tuple(self.axes) if isinstance(self.axes, Iterable) else (self.axes,)

    # --- other nodes ------------------------------------------------------------------------------

    def _split(self, path: str) -> list[str]:
        return [path[k : k + self.PART_LEN] for k in range(0, len(path), self.PART_LEN)]

    def _check_part(self, part: str) -> None:
        if part not in self._subnodes:
            raise UnknownNodeError(f"subnodes are named {', '.join(map(repr, self._subnodes))}; got {part!r}")

    def _names(self, path: object, above: str = "") -> list[str]:
        """Return the names in a path, or raise an error if it leads too deep."""
        joined = path
        if isinstance(path, tuple) and all(isinstance(part, str) for part in path):
            joined = "".join(path)
        if not isinstance(joined, str):
            raise ArgumentTypeError(f"a path is a string or a tuple of strings, got {path!r}")
        if self.maxlevel is not None and len(above + joined) > self.maxlevel * self.PART_LEN:
            raise UnknownNodeError(
                f"path {path!r} leads below the last level of this tree, {self.maxlevel}; pass maxlevel= to"
                " have more levels"
            )
        return self._split(joined)

    def get_subnode(self, part: str, decompose: bool = True) -> Any:
        """Return a subnode.

        Parameters
        ----------
        part : str
            Name of the subnode, one of ``PARTS``.
        decompose : bool, default True
            Whether to decompose the node if it does not have this subnode.

        Returns
        -------
        BaseNode or None
            The subnode; None if there is none.
        """
        self._check_part(part)
        if self._subnodes[part] is None and decompose and not self.is_empty:
            self.decompose()
        return self._subnodes[part]

    def __getitem__(self, path: Path) -> Any:
        """Return the node at a path; what is on the way is decomposed."""
        node = self
        for part in self._names(path):
            above, node = node, node.get_subnode(part)
            if node is None:
                raise ArgumentTypeError(
                    f"there is no node {above.path + part!r}: node {above.path!r} has no data to decompose;"
                    " assign coefficients to one of the two"
                )
        return node

    def __setitem__(self, path: Path, data: Any) -> None:
        """Replace the data of a node by an array, or by the data of another node."""
        node = self
        for part in self._names(path, self.path):
            subnode = node.get_subnode(part, False)
            node = node._create_subnode(part) if subnode is None else subnode
        x = given_array(data.data if isinstance(data, BaseNode) else data, "the data of a node")
        if isinstance(x, np.ndarray):
            x = x.astype(result_dtype(x.dtype), copy=False)
        node.data = x

    def __delitem__(self, path: Path) -> None:
        """Remove a node from its tree; whoever holds it can still use it."""
        node = self[path]
        if node.parent is not None:
            node.parent._subnodes[node.node_name] = None
            node._parent = None

    def walk(
        self,
        func: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        decompose: bool = True,
    ) -> None:
        """Call a function with each node, a node before its subnodes.

        Parameters
        ----------
        func : callable
            Called as ``func(node, *args, **kwargs)``. The nodes below are left out if it returns False.
        args : sequence, default ()
            Further arguments.
        kwargs : mapping, optional
            Further arguments by name.
        decompose : bool, default True
            Whether to decompose nodes down to ``maxlevel``; otherwise only nodes that exist are visited.
        """
        if func(self, *args, **(kwargs or {})) and self.level < self._depth:
            for part in self._subnodes:
                subnode = self.get_subnode(part, decompose)
                if subnode is not None:
                    subnode.walk(func, args, kwargs, decompose)

    def walk_depth(
        self,
        func: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        decompose: bool = True,
    ) -> None:
        """Call a function with each node, a node after its subnodes.

        Parameters
        ----------
        func : callable
            Called as ``func(node, *args, **kwargs)``.
        args : sequence, default ()
            Further arguments.
        kwargs : mapping, optional
            Further arguments by name.
        decompose : bool, default True
            Whether to decompose nodes down to ``maxlevel``; otherwise only nodes that exist are visited.
        """
        if decompose:
            self.decompose_to()
        if self.level < self._depth:
            for part in self._subnodes:
                subnode = self.get_subnode(part, decompose)
                if subnode is not None:
                    subnode.walk_depth(func, args, kwargs, decompose)
        func(self, *args, **(kwargs or {}))

    def get_leaf_nodes(self, decompose: bool = False) -> list[Any]:
        """Return the nodes that have no subnodes.

        Parameters
        ----------
        decompose : bool, default False
            Whether to decompose all nodes down to ``maxlevel`` first.

        Returns
        -------
        list of BaseNode
            The leaves, in the order of the tree.
        """
        if decompose:
            self.decompose_to()
        leaves = []

        def collect(node: BaseNode) -> bool:
            last = node.level == node.maxlevel and not node.is_empty
            if last or not (decompose or node.has_any_subnode):
                leaves.append(node)
                return False
            return True

        self.walk(collect, decompose=decompose)
        return leaves

    # --- transforms -------------------------------------------------------------------------------

    def decompose(self) -> tuple[Any, ...]:
        """Compute the subnodes from the data; they replace those that there are.

        Returns
        -------
        tuple of BaseNode
            The subnodes, in the order of ``PARTS``. Those of a node without data are empty.
        """
        if self.level >= self._depth:
            raise ArgumentError(
                f"node {self.path!r} is at the last level of this tree, {self.maxlevel}; pass maxlevel= to"
                " have more levels"
            )
        if self.data is None:
            for part, node in self._subnodes.items():
                if node is None:
                    self._create_subnode(part)
        else:
            bands = dwtn(self.data, self.wavelet, self.mode, self._transformed_axes, backend=self.backend)
            for part in self._subnodes:
                self._create_subnode(part, bands[self._KEYS.get(part, part)])
        return tuple(self._subnodes.values())

    def reconstruct(self, update: bool = False) -> Any:
        """Compute the data from the subnodes.

        Parameters
        ----------
        update : bool, default False
            Whether the result becomes the data of the node.

        Returns
        -------
        array
            The inverse transform of the leaves below; the data of a node without subnodes.
        """
        if not self.has_any_subnode:
            return self.data
        bands = {
            self._KEYS.get(part, part): None if node is None else node.reconstruct()
            for part, node in self._subnodes.items()
        }
        if all(band is None for band in bands.values()):
            raise ArgumentError(
                f"no subnode of node {self.path!r} has data to reconstruct it from; assign coefficients to"
                " one of them, or remove them"
            )
        x = idwtn(bands, self.wavelet, self.mode, self._transformed_axes, backend=self.backend)
        if self._shape is not None and tuple(x.shape) != self._shape:
            x = x[tuple(slice(length) for length in self._shape)]
        if update:
            self.data = x
        return x

    def decompose_to(self, level: int | None = None) -> None:
        """Decompose all nodes above a level that have no subnodes yet, those of each level by one transform.

        Parameters
        ----------
        level : int, optional
            The level, counted from the root. The default is ``maxlevel``.

        Examples
        --------
        >>> packet = WaveletPacket(np.arange(16.0), "haar")
        >>> packet.decompose_to(3)
        >>> len(packet.get_leaf_nodes())
        8
        """
        deepest = self._depth if level is None else self._checked_level(level)
        nodes: list[Any] = [self]
        batch = None
        while nodes and nodes[0].level < deepest:
            if batch is None:
                bare = [node for node in nodes if not node.has_any_subnode and not node.is_empty]
                alike = [list(group) for _, group in groupby(bare, _layout)]
            else:
                bare, alike = nodes, [nodes]
            batches = [_decompose_together(group, batch) for group in alike]
            if len(alike) == 1 and len(bare) == len(nodes):
                nodes, batch = batches[0]
            else:  # There were subnodes before, or nodes of other shapes.
                nodes, batch = [subnode for node in nodes for subnode in node._existing()], None

    def _checked_level(self, level: int) -> int:
        if not 0 <= level <= self._depth:
            raise ArgumentError(f"this tree has levels from 0 to {self.maxlevel}, got {level}")
        return level


def _layout(node: BaseNode) -> tuple[Any, ...]:
    """Return what nodes have in common that can be decomposed by one transform."""
    data = node.data
    return (
        type(data),
        tuple(np.shape(data)),
        str(getattr(data, "dtype", None)),
        str(getattr(data, "device", 0)),
    )


def _decompose_together(nodes: Sequence[BaseNode], batch: Any) -> tuple[list[Any], Any]:
    """Decompose nodes of one layout by one transform.

    Parameters
    ----------
    nodes : sequence of BaseNode
        The nodes.
    batch : array or None
        Their data, stacked along a new first axis, if there is such an array.

    Returns
    -------
    subnodes : list of BaseNode
        The first subnodes of all nodes, then the second ones, and so on.
    batch : array or None
        Their data, stacked; None if arrays of this library cannot be parts of another one.
    """
    first = nodes[0]
    x = given_array(first.data)
    shape = tuple(x.shape)
    engine = engine_for([x], first.backend)
    library = engine.library
    if not library.allocates or not math.prod(shape):
        return [subnode for node in nodes for subnode in node.decompose()], None
    if len(nodes) == 1:
        batch = x.reshape((1, *shape))
    elif batch is None:
        batch = engine.empty((len(nodes), *shape), np.dtype(library.dtype(x)), x)
        for number, node in enumerate(nodes):
            batch[number] = given_array(node.data)
    axes = [axis + 1 for axis in checked_axes(first._transformed_axes, len(shape))]
    spec = transform_spec(len(shape) + 1, first.wavelet, first.mode, axes)
    tree = BandTree.of_samples(spec, (len(nodes), *shape), 1)
    batch = engine.samples(batch)
    dtype = engine.result_dtype(np.dtype(library.dtype(batch)))
    bands = engine.empty((len(spec.keys), *tree.flat_shapes[0]), dtype, x)
    engine.run(False, tree, [batch, *(bands[number] for number in range(len(spec.keys)))], dtype)
    parts = {first._KEYS.get(part, part): part for part in first._subnodes}
    results = bands.reshape((len(spec.keys) * len(nodes), *bands.shape[2:]))
    restore = library_of(first.data).restore
    subnodes = [
        node._create_subnode(parts[key], restore(results[number], first.data))
        for number, (key, node) in enumerate(product(spec.keys, nodes))
    ]
    return subnodes, results


def useful_levels(shape: Sequence[int], wavelet: Any, axes: Sequence[int]) -> int:
    """Return how often an array can be decomposed along all of some axes, with a wavelet for each of them.

    Examples
    --------
    >>> useful_levels((64, 16), Wavelet("haar"), (0, 1))
    4
    """
    wavelets = per_axis(wavelet, len(axes), "wavelet")
    return min(max_level(shape[axis], bank.dec_len) for axis, bank in zip(axes, wavelets, strict=True))


class Node(BaseNode):
    """A node of a :class:`WaveletPacket`, with the subnodes ``a`` (approximation) and ``d`` (details).

    Parameters
    ----------
    parent : BaseNode or None
        The node of which this one is a band.
    data : array_like or None
        Coefficients.
    node_name : {"a", "d"}
        Name of the band.
    """

    A, D = "a", "d"
    PARTS = A, D
    PART_LEN = 1

    def _create_subnode(self, part: str, data: Any = None) -> Node:
        self._subnodes[part] = Node(self, data, part)
        return self._subnodes[part]  # type: ignore[no-any-return]

    @property
    def a(self) -> Node | None:
        """The approximation; None if there is no such subnode yet."""
        return self._subnodes["a"]  # type: ignore[no-any-return]

    @property
    def d(self) -> Node | None:
        """The details; None if there is no such subnode yet."""
        return self._subnodes["d"]  # type: ignore[no-any-return]


class Node2D(BaseNode):
    """A node of a :class:`WaveletPacket2D`, with the subnodes ``a``, ``h``, ``v`` and ``d``.

    They are the approximation and the horizontal, vertical and diagonal details of :func:`undula.dwt2`.

    Parameters
    ----------
    parent : BaseNode or None
        The node of which this one is a band.
    data : array_like or None
        Coefficients.
    node_name : {"a", "h", "v", "d"}
        Name of the band.
    """

    LL, HL, LH, HH = "a", "h", "v", "d"
    PARTS = LL, HL, LH, HH
    PART_LEN = 1
    _KEYS: ClassVar[Mapping[str, str]] = {LL: "aa", HL: "da", LH: "ad", HH: "dd"}

    def _create_subnode(self, part: str, data: Any = None) -> Node2D:
        self._subnodes[part] = Node2D(self, data, part)
        return self._subnodes[part]  # type: ignore[no-any-return]

    @property
    def a(self) -> Node2D | None:
        """The approximation; None if there is no such subnode yet."""
        return self._subnodes["a"]  # type: ignore[no-any-return]

    @property
    def h(self) -> Node2D | None:
        """The horizontal details; None if there is no such subnode yet."""
        return self._subnodes["h"]  # type: ignore[no-any-return]

    @property
    def v(self) -> Node2D | None:
        """The vertical details; None if there is no such subnode yet."""
        return self._subnodes["v"]  # type: ignore[no-any-return]

    @property
    def d(self) -> Node2D | None:
        """The diagonal details; None if there is no such subnode yet."""
        return self._subnodes["d"]  # type: ignore[no-any-return]

    def expand_2d_path(self, path: str) -> tuple[str, str]:
        """Return the filters that lead to a node, along the first axis and along the second.

        Parameters
        ----------
        path : str
            Path of the node.

        Returns
        -------
        rows, columns : str
            A letter for each level: ``l`` for the low-pass filter, ``h`` for the high-pass filter.

        Examples
        --------
        >>> WaveletPacket2D(np.eye(8), "haar").expand_2d_path("vh")
        ('lh', 'hl')
        """
        for part in path:
            self._check_part(part)
        letters = [self._KEYS[part].translate({ord("a"): "l", ord("d"): "h"}) for part in path]
        return "".join(pair[0] for pair in letters), "".join(pair[1] for pair in letters)


class NodeND(BaseNode):
    """A node of a :class:`WaveletPacketND`, whose subnodes are named as the bands of :func:`undula.dwtn`.

    Parameters
    ----------
    parent : BaseNode or None
        The node of which this one is a band.
    data : array_like or None
        Coefficients.
    node_name : str
        Name of the band, with a letter for each axis: ``"ad"`` is low-pass along the first.
    ndim : int
        Number of dimensions of the data.
    ndim_transform : int
        Number of axes that are transformed.
    """

    def __init__(
        self, parent: BaseNode | None, data: Any, node_name: str, ndim: int, ndim_transform: int
    ) -> None:
        self.ndim = ndim
        self.ndim_transform = self.PART_LEN = ndim_transform
        super().__init__(parent, data, node_name)

    def _part_names(self) -> Iterable[str]:
        return map("".join, product("ad", repeat=self.ndim_transform))

    @property
    def PARTS(self) -> dict[str, Any]:  # type: ignore[override]  # noqa: N802 (PyWavelets' name)
        """The subnodes by name; None in place of those that there are not yet."""
        return self._subnodes

    def _create_subnode(self, part: str, data: Any = None) -> NodeND:
        self._subnodes[part] = NodeND(self, data, part, self.ndim, self.ndim_transform)
        return self._subnodes[part]  # type: ignore[no-any-return]


# --- roots ----------------------------------------------------------------------------------------


class PacketRoot(BaseNode):
    """The root of a tree of wavelet packets: what trees of any dimension have in common."""

    data_size: tuple[int, ...] | None

    def _configure(self, wavelet: Any, mode: Any, maxlevel: int | None, axes: Any, backend: str) -> None:
        """Check and keep the arguments that all nodes share."""
        self.axes = axes
        count = len(self._transformed_axes)
        wavelets = tuple(as_wavelet(name) for name in per_axis(wavelet, count, "wavelet"))
        for name in per_axis(mode, count, "mode"):
            check_mode(name)
        self.wavelet = wavelets if isinstance(wavelet, (list, tuple)) else wavelets[0]
        self.mode = tuple(mode) if isinstance(mode, list) else mode
        self.backend = backend
        self.data_size = self._shape
        if maxlevel is None and self._shape is not None:
            maxlevel = useful_levels(self._shape, self.wavelet, self._transformed_axes)
        self._maxlevel = maxlevel

    def reconstruct(self, update: bool = True) -> Any:
        """Compute the data from the subnodes.

        Parameters
        ----------
        update : bool, default True
            Whether the result becomes the data of the root.

        Returns
        -------
        array
            The inverse transform of the leaves; the data of a tree without subnodes.
        """
        return super().reconstruct(update)

    def _nodes_at(self, level: int, decompose: bool) -> list[Any]:
        """Return the nodes of a level in the order of the tree."""
        self._checked_level(level)
        if decompose:
            self.decompose_to(level)
        nodes = []

        def collect(node: BaseNode) -> bool:
            if node.level == level:
                nodes.append(node)
            return node.level < level

        self.walk(collect, decompose=decompose)
        return nodes


def _check_order(order: object) -> None:
    if order not in ("natural", "freq"):
        raise ArgumentError(f"order must be 'natural' or 'freq', got {order!r}")


def _frequency(path: str) -> int:
    """Return the place of a path of filters among those of its level, by rising frequency.

    A high-pass filter followed by decimation reverses the order of frequencies, so the letters of a path,
    high as 1, are the Gray code of the place.

    Examples
    --------
    >>> [_frequency(path) for path in ("aa", "ad", "dd", "da")]
    [0, 1, 2, 3]
    """
    place = 0
    for letter in path:
        place = 2 * place + ((letter in "dh") ^ (place & 1))
    return place


class WaveletPacket(PacketRoot, Node):
    """Wavelet packets along one axis.

    Parameters
    ----------
    data : array_like or None
        Samples, real or complex; see :func:`undula.dwtn` for dtypes and devices. None for an empty tree, to
        whose nodes coefficients are assigned.
    wavelet : Wavelet or str
        The wavelet.
    mode : str or int, default "symmetric"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number.
    maxlevel : int, optional
        The deepest level. The default is as many as are useful, :func:`undula.dwt_max_level`.
    axis : int, default -1
        Axis to transform.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; see :func:`undula.dwtn`.

    See Also
    --------
    best_basis : The nodes that represent the data best.

    Notes
    -----
    Nodes are decomposed when they are accessed. :meth:`get_level`, ``get_leaf_nodes(decompose=True)`` and
    :meth:`walk_depth` decompose all nodes of a level by one transform; the data of these nodes are parts of
    one array.

    Examples
    --------
    >>> packet = WaveletPacket([1, 2, 3, 4, 5, 6, 7, 8], "haar")
    >>> packet["ad"].data.round(3).tolist()
    [-2.0, -2.0]
    >>> [node.path for node in packet.get_level(2, "freq")]
    ['aa', 'ad', 'dd', 'da']

    Without the slowest oscillation:

    >>> packet["ad"] = [0.0, 0.0]
    >>> packet.reconstruct(update=False).round(3).tolist()
    [2.0, 3.0, 2.0, 3.0, 6.0, 7.0, 6.0, 7.0]
    """

    def __init__(
        self,
        data: ArrayLike | None,
        wavelet: Wavelet | str,
        mode: str | int = "symmetric",
        maxlevel: int | None = None,
        axis: int = -1,
        *,
        backend: str = "auto",
    ) -> None:
        super().__init__(None, data, "")
        numbers = one_axis(axis)
        if self._shape is not None:
            numbers = (checked_axes(numbers, len(self._shape))[0],)
        self._configure(wavelet, mode, maxlevel, numbers[0], backend)

    def get_level(self, level: int, order: str = "natural", decompose: bool = True) -> list[Any]:
        """Return the nodes of a level.

        Parameters
        ----------
        level : int
            The level; 0 is the root.
        order : {"natural", "freq"}, default "natural"
            ``natural`` is the order of the tree, also called Paley order. ``freq`` is the order of rising
            frequencies, also called sequency order [1]_.
        decompose : bool, default True
            Whether to decompose nodes down to this level; otherwise only nodes that exist are returned.

        Returns
        -------
        list of Node
            The nodes.

        References
        ----------
        .. [1] M. V. Wickerhauser, *Adapted Wavelet Analysis from Theory to Software*, A K Peters, 1994.

        Examples
        --------
        >>> packet = WaveletPacket(np.arange(16.0), "haar")
        >>> [float(node.data[0].round(3)) for node in packet.get_level(2)]
        [3.0, -2.0, -1.0, 0.0]
        """
        _check_order(order)
        nodes = self._nodes_at(level, decompose)
        return nodes if order == "natural" else sorted(nodes, key=lambda node: _frequency(node.path))


class WaveletPacket2D(PacketRoot, Node2D):
    """Wavelet packets of images.

    Parameters
    ----------
    data : array_like or None
        Samples, real or complex, of two or more dimensions; see :func:`undula.dwtn` for dtypes and devices.
        None for an empty tree, to whose nodes coefficients are assigned.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    mode : str or int, or a sequence of them, default "smooth"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number, or one for each axis.
    maxlevel : int, optional
        The deepest level. The default is as many as are useful, :func:`undula.dwtn_max_level`.
    axes : pair of int, default (-2, -1)
        Vertical and horizontal axis; the other axes are those of a batch.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; see :func:`undula.dwtn`.

    See Also
    --------
    WaveletPacket : More about trees.

    Examples
    --------
    >>> packet = WaveletPacket2D(np.eye(8), "haar")
    >>> len(packet.get_level(2)), packet["ad"].data.shape
    (16, (2, 2))
    >>> bool(np.allclose(packet.reconstruct(), np.eye(8)))
    True
    """

    def __init__(
        self,
        data: ArrayLike | None,
        wavelet: Wavelet | str | Sequence[Any],
        mode: str | int | Sequence[Any] = "smooth",
        maxlevel: int | None = None,
        axes: Sequence[int] = (-2, -1),
        *,
        backend: str = "auto",
    ) -> None:
        super().__init__(None, data, "")
        pair = two_axes(axes)
        if self._shape is not None and len(self._shape) < 2:
            raise ArgumentError(f"an image has two or more dimensions, got data of shape {self._shape}")
        checked_axes(pair, MAX_DIMENSIONS if self._shape is None else len(self._shape))
        self._configure(wavelet, mode, maxlevel, pair, backend)

    def get_level(self, level: int, order: str = "natural", decompose: bool = True) -> list[Any]:
        """Return the nodes of a level.

        Parameters
        ----------
        level : int
            The level; 0 is the root.
        order : {"natural", "freq"}, default "natural"
            ``natural`` is the order of the tree. ``freq`` is a list of rows by rising frequency along the
            first axis, and within each row by rising frequency along the second.
        decompose : bool, default True
            Whether to decompose nodes down to this level; otherwise only nodes that exist are returned.

        Returns
        -------
        list of Node2D, or list of lists of Node2D
            The nodes.

        Examples
        --------
        >>> rows = WaveletPacket2D(np.eye(8), "haar").get_level(2, "freq")
        >>> [node.path for node in rows[1]]
        ['ah', 'ad', 'vd', 'vh']
        """
        _check_order(order)
        nodes = self._nodes_at(level, decompose)
        if order == "natural":
            return nodes

        def place(node: Node2D) -> tuple[int, int]:
            row, column = self.expand_2d_path(node.path)
            return _frequency(row), _frequency(column)

        rows = groupby(sorted(nodes, key=place), lambda node: place(node)[0])
        return [list(row) for _, row in rows]


class WaveletPacketND(PacketRoot, NodeND):
    """Wavelet packets along any number of axes.

    Parameters
    ----------
    data : array_like or None
        Samples, real or complex; see :func:`undula.dwtn` for dtypes and devices. None for an empty tree, to
        whose nodes coefficients are assigned; ``axes`` are needed then.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    mode : str or int, or a sequence of them, default "smooth"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number, or one for each axis.
    maxlevel : int, optional
        The deepest level. The default is as many as are useful, :func:`undula.dwtn_max_level`.
    axes : int or sequence of int, optional
        Axes to transform. The default is all axes; the other axes are those of a batch.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; see :func:`undula.dwtn`.

    See Also
    --------
    WaveletPacket : More about trees.

    Examples
    --------
    >>> packet = WaveletPacketND(np.ones((4, 8, 8)), "haar", axes=(1, 2))
    >>> packet["aa", "ad"].data.shape, packet["aaad"].path_tuple
    ((4, 2, 2), ('aa', 'ad'))
    """

    def __init__(
        self,
        data: ArrayLike | None,
        wavelet: Wavelet | str | Sequence[Any],
        mode: str | int | Sequence[Any] = "smooth",
        maxlevel: int | None = None,
        axes: Axes = None,
        *,
        backend: str = "auto",
    ) -> None:
        shape = None if data is None else tuple(np.shape(data))
        if shape is None and axes is None:
            raise ArgumentError("a tree without data needs axes, got data=None and axes=None")
        if shape == ():
            raise ArgumentError("data must have at least one dimension, got a single number")
        if axes is None:
            axes = range(len(shape or ()))
        numbers = tuple(axes) if isinstance(axes, Iterable) else (axes,)
        ndim = len(numbers) if shape is None else len(shape)
        checked_axes(numbers, MAX_DIMENSIONS if shape is None else ndim)
        super().__init__(None, data, "", ndim, len(numbers))
        self._configure(wavelet, mode, maxlevel, numbers, backend)

    def get_level(self, level: int, decompose: bool = True) -> list[Any]:
        """Return the nodes of a level, in the order of the tree.

        Parameters
        ----------
        level : int
            The level; 0 is the root.
        decompose : bool, default True
            Whether to decompose nodes down to this level; otherwise only nodes that exist are returned.

        Returns
        -------
        list of NodeND
            The nodes.

        Examples
        --------
        >>> [node.path for node in WaveletPacketND(np.eye(4), "haar").get_level(1)]
        ['aa', 'ad', 'da', 'dd']
        """
        return self._nodes_at(level, decompose)
