"""Nodes of trees of wavelet packets: what nodes of any dimension have in common.

A tree is made of entries: dictionaries that hold the data of a node, and the entries below it. The entry of
the root also holds the transform. A node is a handle, which refers to the node above and has an entry as its
``__dict__``. So all handles of an entry have the same attributes, a node keeps its tree alive, and there are
no cycles: the memory of a tree is free as soon as its last handle is gone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby
from typing import Any, Self, TypeVar

import numpy as np

from ..arrays import result_dtype, traceable_array
from ..errors import ArgumentError, ArgumentTypeError, UnknownNodeError
from ..lowering.nesting import band_keys
from .discrete import idwtn
from .packet_transforms import NodeTransform, layout, node_transform, stack, useful_levels

__all__ = ["BaseNode", "node_data", "shared_by_tree"]

Path = str | tuple[str, ...]
Entry = dict[str, Any]
Handle = TypeVar("Handle", bound="BaseNode")


def shared_by_tree(name: str) -> Any:
    """Return a property that all nodes of a tree share, in the entry of the root."""
    return property(
        lambda node: node._top.get(name),
        lambda node, value: node._top.update({name: value, "_transform": None}),
    )


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
        The node above; None for a root and for a removed node.
    path : str
        Names of the bands from the root to this node.
    level : int
        Number of levels between the root and this node.
    wavelet, mode, axes, backend : object
        The transform, as in the root.
    PARTS : sequence of str
        Names of the subnodes.
    PART_LEN : int
        Length of such a name.

    Examples
    --------
    >>> from undula import WaveletPacket
    >>> node = WaveletPacket([1.0, 2.0, 3.0, 4.0], "haar")["ad"]
    >>> isinstance(node, BaseNode), node.path, node.level
    (True, 'ad', 2)
    """

    __slots__ = ("__dict__", "__weakref__", "_parent", "_top")

    data: Any
    path: str
    _shape: tuple[int, ...] | None
    _subnodes: dict[str, Entry]
    PARTS: Collection[str] = ()
    PART_LEN: int = 0
    _parts: Sequence[str] = ()  # names of subnodes in the order of the tree
    _bands: Sequence[str] = ()  # the same in the order of the bands of dwtn
    wavelet, mode, axes = shared_by_tree("wavelet"), shared_by_tree("mode"), shared_by_tree("axes")
    backend, _maxlevel = shared_by_tree("backend"), shared_by_tree("_maxlevel")

    def __init__(self, parent: BaseNode | None, data: Any, node_name: str) -> None:
        data, shape = node_data(data)
        self._parent = parent
        self.__dict__ = _entry("" if parent is None else parent.path + node_name, data, shape)
        self._top: Entry = self.__dict__ if parent is None else parent._top

    def __copy__(self) -> Self:
        """Return a tree of other nodes with the same arrays; of a node, the tree below it."""
        duplicate = object.__new__(type(self))
        entry = _copied(self.__dict__) | {"_removed": True}
        duplicate.__setstate__((self._parent, entry if self._parent is None else self._top, entry))
        return duplicate

    def __getstate__(self) -> tuple[BaseNode | None, Entry, Entry]:
        return self._parent, self._top, self.__dict__

    def __setstate__(self, state: tuple[BaseNode | None, Entry, Entry]) -> None:
        self._parent, self._top, self.__dict__ = state

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BaseNode) and self.__dict__ is other.__dict__

    def __hash__(self) -> int:
        return id(self.__dict__)

    def __str__(self) -> str:
        return f"{self.path}: {self.data}"

    @abstractmethod
    def _subnode(self, part: str) -> Any:
        """Return the handle of a subnode; None if there is none."""

    def _handle(self, kind: type[Handle], part: str) -> Handle | None:
        entry = self._subnodes.get(part)
        if entry is None:
            return None
        node = object.__new__(kind)
        node._parent, node._top, node.__dict__ = self, self._top, entry
        return node

    def _existing(self) -> list[Any]:
        return [self._subnode(part) for part in self._parts if part in self._subnodes]

    # --- what a node is ---------------------------------------------------------------------------

    @property
    def parent(self) -> Any:
        """The node above, if there is one."""
        return None if "_removed" in self.__dict__ else self._parent

    @property
    def level(self) -> int:
        """Number of levels between the root and this node."""
        return len(self.path) // self.PART_LEN

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
        return bool(self._subnodes)

    @property
    def maxlevel(self) -> int | None:
        """The deepest level, counted from the root; None as long as no node of the tree has data."""
        deepest: int | None = self._top.get("_maxlevel")
        if deepest is None:
            deepest = self._maxlevel = self._useful_levels(self._top)
        return deepest

    def _useful_levels(self, entry: Entry) -> int | None:
        """Return the deepest level that is useful, judged by the first node with data."""
        if entry["data"] is not None:
            level = len(entry["path"]) // self.PART_LEN
            return level + useful_levels(np.shape(entry["data"]), self.wavelet, self._transformed_axes)
        levels = map(self._useful_levels, entry["_subnodes"].values())
        return next((level for level in levels if level is not None), None)

    @property
    def _depth(self) -> int:
        """The deepest level, or an error if it is unknown."""
        deepest = self.maxlevel
        if deepest is None:
            raise ArgumentTypeError(
                "this tree has no data, so there is nothing to decompose; assign coefficients to its nodes"
                " first, such as packet['a'] = …"
            )
        return deepest

    @property
    def _transformed_axes(self) -> tuple[int, ...]:
        axes = self._top["axes"]
        return (axes,) if isinstance(axes, int) else tuple(axes)

    @property
    def _transform(self) -> NodeTransform:
        top = self._top
        transform: NodeTransform | None = top.get("_transform")
        if transform is None:
            transform = node_transform(top["wavelet"], top["mode"], self._transformed_axes, top["backend"])
            top["_transform"] = transform
        return transform

    # --- other nodes ------------------------------------------------------------------------------

    def _split(self, path: str) -> list[str]:
        return [path[k : k + self.PART_LEN] for k in range(0, len(path), self.PART_LEN)]

    def _check_part(self, part: str) -> None:
        if part not in self._parts:
            raise UnknownNodeError(f"subnodes are named {', '.join(map(repr, self._parts))}; got {part!r}")

    def _names(self, path: object, above: str = "") -> list[str]:
        """Return the names in a path, or raise an error if it leads too deep."""
        joined = path
        if isinstance(path, tuple) and all(isinstance(part, str) for part in path):
            joined = "".join(path)
        if not isinstance(joined, str):
            raise ArgumentTypeError(f"a path is a string or a tuple of strings, got {path!r}")
        deepest = self.maxlevel
        if deepest is not None and len(above + joined) > deepest * self.PART_LEN:
            raise UnknownNodeError(
                f"path {path!r} leads below the last level of this tree, {deepest}; pass maxlevel= to"
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
        if part not in self._subnodes and decompose and self.data is not None:
            self._divide()
        return self._subnode(part)

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
            node._check_part(part)
            if part not in node._subnodes:
                node._subnodes[part] = _entry(node.path + part)
            node = node._subnode(part)
        given = data.data if isinstance(data, BaseNode) else data
        if given is None:
            raise ArgumentTypeError(
                f"the data of node {path!r} must be numbers, got None; to remove it, use del"
            )
        x, _ = node_data(given)
        if isinstance(x, (np.ndarray, list, tuple, int, float, complex)):
            x = np.asarray(x)
            x = x.astype(result_dtype(x.dtype), copy=False)
        node.data = x

    def __delitem__(self, path: Path) -> None:
        """Remove a node from its tree; whoever holds it can still use it."""
        node = self[path]
        if node.parent is not None:
            del node.parent._subnodes[node.node_name]
            node._removed = True

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
            for part in self._parts:
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
            for part in self._parts:
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

    def _nodes_at(self, level: int, decompose: bool) -> list[Any]:
        """Return the nodes of a level in the order of the tree."""
        self._checked_level(level)
        if decompose:
            self.decompose_to(level)
        nodes: list[Any] = [self]
        for _ in range(level):
            nodes = [subnode for node in nodes for subnode in node._existing()]
        return nodes

    # --- transforms -------------------------------------------------------------------------------

    def decompose(self) -> tuple[Any, ...]:
        """Compute the subnodes from the data; they replace those that there are.

        Returns
        -------
        tuple of BaseNode
            The subnodes, in the order of ``PARTS``. Those of a node without data are empty.
        """
        self._divide()
        return tuple(self._existing())

    def _divide(self) -> None:
        """Compute the subnodes."""
        entry, deepest = self.__dict__, self._depth
        if self.level >= deepest:
            raise ArgumentError(
                f"node {self.path!r} is at the last level of this tree, {deepest}; pass maxlevel= to"
                " have more levels"
            )
        path, data, subnodes = entry["path"], entry["data"], entry["_subnodes"]
        if data is None:
            for part in self._parts:
                if part not in subnodes:
                    subnodes[part] = _entry(path + part)
        elif type(data) is np.ndarray:
            for part, band in zip(self._bands, self._transform.bands(data), strict=True):
                subnodes[part] = _entry(path + part, band, band.shape)
        else:
            self._decompose([entry])

    def _decompose(self, entries: Sequence[Entry], batch: Any = None) -> tuple[list[Entry], Any]:
        """Decompose nodes of one layout, and return the entries of the subnodes and their data, stacked."""
        bands, batch = self._transform.decompose([entry["data"] for entry in entries], batch)
        subnodes, shape = [], tuple(bands[0].shape)
        places = [(entry, part) for part in self._bands for entry in entries]
        for (entry, part), data in zip(places, bands, strict=True):
            subnode = entry["_subnodes"][part] = _entry(entry["path"] + part, data, shape)
            subnodes.append(subnode)
        return subnodes, batch

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
        batch = self._stacked([self.__dict__])
        if batch is not None:
            x = batch[0]
        else:
            nodes = {part: self._subnode(part) for part in self._bands}
            parts = {part: None if node is None else node.reconstruct() for part, node in nodes.items()}
            if all(part is None for part in parts.values()):
                raise ArgumentError(
                    f"no subnode of node {self.path!r} has data to reconstruct it from; assign coefficients"
                    " to one of them, or remove them"
                )
            if len({tuple(part.shape) for part in parts.values() if part is not None}) > 1:
                # The reconstruction of data that was assigned to a node may have a sample too many.
                parts = {k: None if x is None else nodes[k]._cut_to_data(x) for k, x in parts.items()}
            axes = self._transformed_axes
            bands = dict(zip(band_keys(len(axes)), parts.values(), strict=True))
            x = idwtn(bands, self.wavelet, self.mode, axes, backend=self.backend)
        if self._shape is not None and tuple(x.shape) != self._shape:
            x = x[tuple(slice(length) for length in self._shape)]
        if update:
            self.data = x
        return x

    def _cut_to_data(self, x: Any) -> Any:
        return x if self.data is None else x[tuple(map(slice, np.shape(self.data)))]

    def _stacked(self, entries: Sequence[Entry]) -> Any:
        """Return the reconstructed data of nodes, stacked; None if they differ or are large."""
        below = [entry["_subnodes"] for entry in entries]
        if not any(below):
            return stack([entry["data"] for entry in entries])
        shape = entries[0]["_shape"]
        if any(len(e["_subnodes"]) < len(self._bands) or e["_shape"] != shape for e in entries):
            return None
        batch = self._stacked([parts[name] for name in self._bands for parts in below])
        return None if batch is None else self._transform.reconstruct(batch, shape)

    def decompose_to(self, level: int | None = None) -> None:
        """Decompose all nodes above a level that have no subnodes yet, those of each level by one transform.

        Parameters
        ----------
        level : int, optional
            The level, counted from the root. The default is ``maxlevel``.

        Examples
        --------
        >>> from undula import WaveletPacket
        >>> packet = WaveletPacket(np.arange(16.0), "haar")
        >>> packet.decompose_to(3)
        >>> len(packet.get_leaf_nodes())
        8
        """
        deepest = self._depth if level is None else self._checked_level(level)
        entries, batch = [self.__dict__], None
        for _ in range(self.level, deepest):
            if batch is None:
                bare = [e for e in entries if not e["_subnodes"] and e["data"] is not None]
                groups = [list(group) for _, group in groupby(bare, lambda entry: layout(entry["data"]))]
            else:
                groups = [entries]
            done = [self._decompose(group, batch) for group in groups]
            if groups and len(groups[0]) == len(entries):
                entries, batch = done[0]
            else:  # There were subnodes before, or nodes of other layouts.
                below = (e["_subnodes"] for e in entries)
                entries = [parts[name] for parts in below for name in self._parts if name in parts]
                batch = None

    def _checked_level(self, level: int) -> int:
        deepest = self._depth
        if not isinstance(level, (int, np.integer)) or isinstance(level, bool):
            raise ArgumentTypeError(f"level must be an integer from 0 to {deepest}, got {level!r}")
        if not 0 <= level <= deepest:
            raise ArgumentError(f"this tree has levels from 0 to {deepest}, got {level}")
        return int(level)


def node_data(data: Any) -> tuple[Any, tuple[int, ...] | None]:
    """Return what a node keeps of its data, and their shape, or raise an error."""
    if data is None:
        return None, None
    x = traceable_array(data, "the data of a node")
    return x if isinstance(data, np.ndarray) else data, tuple(x.shape)  # no memory map, and no other subclass


def _entry(path: str, data: Any = None, shape: tuple[int, ...] | None = None) -> Entry:
    """Return the entry of a node in its tree.

    The inverse transform of odd lengths has a sample too many, which is cut off, so the shape is kept.
    """
    return {"path": path, "data": data, "_shape": shape, "_subnodes": {}}


def _copied(entry: Entry) -> Entry:
    """Return the same for a tree with the same arrays."""
    return entry | {"_subnodes": {part: _copied(subnode) for part, subnode in entry["_subnodes"].items()}}
