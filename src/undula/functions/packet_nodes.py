"""Nodes of wavelet packets of lines, images and arrays of any dimension."""

from __future__ import annotations

from typing import Any

from ..lowering.nesting import band_keys
from .packet_tree import BaseNode, shared_by_tree

__all__ = ["Node", "Node2D", "NodeND"]


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

    Examples
    --------
    >>> from undula import WaveletPacket
    >>> node = WaveletPacket([1.0, 2.0, 3.0, 4.0], "haar")["a"]
    >>> type(node).__name__, node.data.round(3).tolist()
    ('Node', [2.121, 4.95])
    """

    A, D = "a", "d"
    PARTS = _parts = _bands = A, D
    PART_LEN = 1

    def _subnode(self, part: str) -> Node | None:
        return self._handle(Node, part)

    @property
    def a(self) -> Node | None:
        """The approximation; None if there is no such subnode yet."""
        return self._subnode("a")

    @property
    def d(self) -> Node | None:
        """The details; None if there is no such subnode yet."""
        return self._subnode("d")


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

    Examples
    --------
    >>> from undula import WaveletPacket2D
    >>> node = WaveletPacket2D([[1.0, 2.0], [3.0, 4.0]], "haar")["h"]
    >>> type(node).__name__, node.data.round(3).tolist()
    ('Node2D', [[-2.0]])
    """

    LL, HL, LH, HH = "a", "h", "v", "d"
    PARTS = _parts = LL, HL, LH, HH
    PART_LEN = 1
    _bands = LL, LH, HL, HH

    def _subnode(self, part: str) -> Node2D | None:
        return self._handle(Node2D, part)

    @property
    def a(self) -> Node2D | None:
        """The approximation; None if there is no such subnode yet."""
        return self._subnode("a")

    @property
    def h(self) -> Node2D | None:
        """The horizontal details; None if there is no such subnode yet."""
        return self._subnode("h")

    @property
    def v(self) -> Node2D | None:
        """The vertical details; None if there is no such subnode yet."""
        return self._subnode("v")

    @property
    def d(self) -> Node2D | None:
        """The diagonal details; None if there is no such subnode yet."""
        return self._subnode("d")

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
        >>> import numpy as np
        >>> from undula import WaveletPacket2D
        >>> WaveletPacket2D(np.eye(8), "haar").expand_2d_path("vh")
        ('lh', 'hl')
        """
        for part in path:
            self._check_part(part)
        filters = [("ll", "lh", "hl", "hh")[self._bands.index(part)] for part in path]
        return "".join(pair[0] for pair in filters), "".join(pair[1] for pair in filters)


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

    Examples
    --------
    >>> from undula import WaveletPacketND
    >>> node = WaveletPacketND([[1.0, 2.0], [3.0, 4.0]], "haar")["ad"]
    >>> type(node).__name__, node.data.round(3).tolist()
    ('NodeND', [[-1.0]])
    """

    ndim, ndim_transform, PART_LEN = (
        shared_by_tree("ndim"),
        shared_by_tree("ndim_transform"),
        shared_by_tree("ndim_transform"),
    )
    _parts = _bands = shared_by_tree("_parts")

    def __init__(
        self, parent: BaseNode | None, data: Any, node_name: str, ndim: int, ndim_transform: int
    ) -> None:
        super().__init__(parent, data, node_name)
        self.ndim, self.ndim_transform, self._parts = ndim, ndim_transform, band_keys(ndim_transform)

    @property
    def PARTS(self) -> dict[str, Any]:  # type: ignore[override]  # noqa: N802 (PyWavelets' name)
        """The subnodes by name; None in place of those that there are not yet."""
        return {part: self._subnode(part) for part in self._parts}

    def _subnode(self, part: str) -> NodeND | None:
        return self._handle(NodeND, part)
