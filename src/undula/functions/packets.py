"""Wavelet packets: trees in which details are decomposed as well as approximations.

The classes have the names, arguments and behaviour of PyWavelets. A :class:`WaveletPacket` is the root of a
tree, a node holds coefficients as ``data``, and ``packet["ad"]`` decomposes what is not decomposed yet. The
subnodes of a node ``x`` are the bands of ``dwtn(x)``. All nodes of a level are computed by one transform.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError, ArgumentTypeError
from ..lowering.axis_arguments import Axes, checked_axes, one_axis, per_axis, two_axes
from ..lowering.borders import MODES, check_mode
from ..wavelets import Wavelet, as_wavelet
from .packet_nodes import Node, Node2D, NodeND
from .packet_transforms import useful_levels
from .packet_tree import BaseNode, node_data

__all__ = ["PacketRoot", "WaveletPacket", "WaveletPacket2D", "WaveletPacketND"]

MAX_DIMENSIONS = 64  # of NumPy's arrays, for trees whose data are unknown


class PacketRoot(BaseNode):
    """The root of a tree of wavelet packets: what trees of any dimension have in common."""

    data_size: tuple[int, ...] | None

    def _configure(self, wavelet: Any, mode: Any, maxlevel: int | None, axes: Any, backend: str) -> None:
        """Check and keep the arguments that all nodes share."""
        numbers = axes if isinstance(axes, tuple) else (axes,)
        if isinstance(wavelet, (list, tuple)):
            wavelet = tuple([as_wavelet(name) for name in per_axis(wavelet, len(numbers), "wavelet")])
        else:
            wavelet = as_wavelet(wavelet)
        if mode not in MODES:
            for name in per_axis(mode, len(numbers), "mode"):
                check_mode(name)
        self.data_size = shape = self._shape
        if maxlevel is not None:
            if not isinstance(maxlevel, (int, np.integer)) or isinstance(maxlevel, bool):
                raise ArgumentTypeError(f"maxlevel must be an integer or None, got {maxlevel!r}")
            if maxlevel < 0:
                raise ArgumentError(f"maxlevel must be 0 or more, got {maxlevel}")
        elif shape is not None:
            maxlevel = useful_levels(shape, wavelet, numbers)
        mode = tuple(mode) if isinstance(mode, list) else mode
        self._top.update(wavelet=wavelet, mode=mode, axes=axes, backend=backend, _maxlevel=maxlevel)

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
        Samples, real or complex, of any strides and dtype. Arrays of PyTorch, CuPy, JAX, Numba and PyOpenCL
        on a device are transformed there, Dask arrays when their results are computed. None for an empty
        tree, to whose nodes coefficients are assigned.
    wavelet : Wavelet or str
        The wavelet.
    mode : str or int, default "symmetric"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number.
    maxlevel : int, optional
        The deepest level. The default is as many as are useful, :func:`undula.dwt_max_level`.
    axis : int, default -1
        Axis to transform.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

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
        (number,) = one_axis(axis)
        if self._shape is not None:
            (number,) = checked_axes(number, len(self._shape))
        self._configure(wavelet, mode, maxlevel, number, backend)

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
        Samples, real or complex, of two or more dimensions. Arrays of PyTorch, CuPy, JAX, Numba and PyOpenCL
        on a device are transformed there, Dask arrays when their results are computed. None for an empty
        tree, to whose nodes coefficients are assigned.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    mode : str or int, or a sequence of them, default "smooth"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number, or one for each axis.
    maxlevel : int, optional
        The deepest level. The default is as many as are useful, :func:`undula.dwtn_max_level`.
    axes : pair of int, default (-2, -1)
        Vertical and horizontal axis; the other axes are those of a batch.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

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
        Samples, real or complex, of any strides and dtype. Arrays of PyTorch, CuPy, JAX, Numba and PyOpenCL
        on a device are transformed there, Dask arrays when their results are computed. None for an empty
        tree, to whose nodes coefficients are assigned.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    mode : str or int, or a sequence of them, default "smooth"
        How lines go on beyond their ends: one of ``undula.MODES`` or its number, or one for each axis.
    maxlevel : int, optional
        The deepest level. The default is as many as are useful, :func:`undula.dwtn_max_level`.
    axes : int or sequence of int, optional
        Axes to transform. The default is all axes; the other axes are those of a batch.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        Where NumPy arrays are transformed; ``auto`` is the CPU. ``reference`` is plain NumPy in extended
        precision, slow. Arrays on a device are transformed where they are.

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
        data, shape = node_data(data)
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
