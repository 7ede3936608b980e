"""The best basis of wavelet packets: those nodes of the tree that represent the data at the least cost.

The leaves of any tree of packets are a basis. If the cost of a basis is the sum of the costs of its
coefficients, the best of all bases is found from the bottom of the tree upwards: a node is kept whole where
it costs no more than the best bases of its subnodes together [1]_,

    best(x) = min(cost(x), Σ best(subnode of x)).

References
----------
.. [1] R. R. Coifman and M. V. Wickerhauser, "Entropy-based algorithms for best basis selection", IEEE
   Transactions on Information Theory 38 (2), 1992, 713-718.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import Any, TypeVar

import numpy as np

from ..arrays import given_array, is_number, library_of
from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from .packet_tree import BaseNode
from .packets import PacketRoot

__all__ = ["BASIS_COSTS", "best_basis"]

BASIS_COSTS = ("entropy", "log energy", "threshold", "norm")
ROUNDING = 32 * float(np.finfo(np.float32).eps)  # of single precision, so that both choose the same basis
Packet = TypeVar("Packet", bound=PacketRoot)
Cost = Callable[[Any], float]


def best_basis(
    packet: Packet,
    cost: str | Cost = "entropy",
    *,
    threshold: float | None = None,
    p: float = 1.0,
    level: int | None = None,
) -> Packet:
    """Find the nodes of a tree of wavelet packets that represent the data at the least cost.

    Parameters
    ----------
    packet : WaveletPacket, WaveletPacket2D or WaveletPacketND
        The tree. Only its data, its transform and its ``maxlevel`` matter; it is not changed.
    cost : {"entropy", "log energy", "threshold", "norm"} or callable, default "entropy"
        The cost of coefficients; the names are explained below. A callable takes the coefficients of a node
        and returns a number. Costs of nodes are added, and the least sum is the best.
    threshold : float, optional
        Magnitude of coefficients that count; needed by the cost ``threshold``.
    p : float, default 1.0
        Exponent of the cost ``norm``, between 0 and 2.
    level : int, optional
        The deepest level of the basis. The default is ``packet.maxlevel``.

    Returns
    -------
    WaveletPacket, WaveletPacket2D or WaveletPacketND
        A new tree whose leaves are the best basis; ``get_leaf_nodes()`` returns them, and
        ``reconstruct()`` the samples.

    Notes
    -----
    The costs of coefficients ``c`` of data of the energy ``E = Σ |x|²`` are:

    - ``entropy``: ``-Σ |c|²/E log(|c|²/E)``, which is small if few coefficients have most of the energy;
    - ``log energy``: ``Σ log |c|²`` over all ``c`` but zeros, small if many coefficients are small;
    - ``threshold``: how many ``|c|`` are above the threshold;
    - ``norm``: ``Σ |c|**p``, small if few coefficients are large.

    Magnitudes that may be zeros with the rounding of single precision count as zeros, except for
    ``threshold``, so that the basis hardly depends on the dtype.

    If two bases cost the same, that of fewer levels is taken. In boundary modes other than ``periodization``
    bands are longer than half of their node, so deeper bases have slightly more coefficients.

    Arrays on a device are evaluated there, if their library has the array API (PyTorch, CuPy).

    References
    ----------
    .. [1] R. R. Coifman and M. V. Wickerhauser, "Entropy-based algorithms for best basis selection", IEEE
       Transactions on Information Theory 38 (2), 1992, 713-718.

    Examples
    --------
    The band of a tone is decomposed as often as possible:

    >>> from undula import WaveletPacket
    >>> tone = np.cos(0.9 * np.arange(256))
    >>> basis = best_basis(WaveletPacket(tone, "db4", "periodization", maxlevel=4))
    >>> max(basis.get_leaf_nodes(), key=lambda node: abs(node.data).max()).path
    'adda'
    >>> bool(np.allclose(basis.reconstruct(), tone))
    True

    Remove noise by keeping large coefficients of the best basis only:

    >>> from undula import threshold
    >>> noisy = tone + 0.3 * np.random.default_rng(0).standard_normal(256)
    >>> basis = best_basis(WaveletPacket(noisy, "sym8", "periodization", maxlevel=4))
    >>> for leaf in basis.get_leaf_nodes():
    ...     leaf.data = threshold(leaf.data, 0.9, "hard")
    >>> error = basis.reconstruct() - tone
    >>> bool(error.std() < 0.7 * (noisy - tone).std())
    True
    """
    if not isinstance(packet, PacketRoot):
        raise ArgumentTypeError(f"a tree of wavelet packets is needed, got {type(packet).__name__}")
    tree = copy(packet)
    if tree.data is None:
        tree.reconstruct()
    if tree.data is None:
        raise ArgumentError("this tree has no data; pass samples, or assign coefficients to its nodes first")
    for part in tree.PARTS:
        if tree.get_subnode(part, False) is not None:
            del tree[part]
    tree.decompose_to(level)
    price = cost if callable(cost) else _cost(cost, tree, level, threshold, p)
    _prune(tree, price)
    return tree


def _prune(node: BaseNode, price: Cost) -> float:
    """Remove subnodes that cost more than their node, from the bottom upwards, and return the least cost."""
    value = price(node.data)
    try:
        cost = float(value)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"the cost of a node must be a number, got {value!r:.60} for node {node.path!r}"
        ) from None
    if math.isnan(cost):
        raise ArgumentError(f"the cost of node {node.path!r} is NaN; samples and costs must be finite")
    if not node.has_any_subnode:
        return cost
    divided = sum(_prune(node.get_subnode(part), price) for part in node.PARTS)
    if divided < cost:
        return divided
    for part in node.PARTS:
        del node[part]
    return cost


def _magnitudes(x: Any) -> Any:
    """Return the magnitudes of coefficients, or of samples of any dtype, as floats; for NumPy in float64."""
    x = given_array(x)
    return abs(x.astype(np.result_type(x.dtype, np.float64), copy=False) if isinstance(x, np.ndarray) else x)


def _finite_magnitudes(coefficients: Any) -> Any:
    """Return the magnitudes of coefficients; raise an error for those beyond the range of their dtype."""
    magnitudes = _magnitudes(coefficients)
    if math.prod(magnitudes.shape) and not math.isfinite(float(magnitudes.max())):
        raise ArgumentError(
            f"coefficients are beyond the range of {library_of(coefficients).dtype(coefficients)}; divide the"
            " samples by a power of two, or pass them as float64"
        )
    return magnitudes


def _cost(name: object, tree: PacketRoot, level: int | None, threshold: float | None, p: float) -> Cost:
    """Return the cost of a name as a function of the coefficients of nodes of a tree up to a level.

    Magnitudes are divided by the largest sample before they are squared, and logarithms are taken of
    magnitudes, so that neither leaves the range of floats.
    """
    if name not in BASIS_COSTS:
        raise UnknownNameError("cost", name, BASIS_COSTS)
    magnitudes = _magnitudes(tree.data)
    largest = float(magnitudes.max()) if math.prod(magnitudes.shape) else 0.0
    if not math.isfinite(largest):
        raise ArgumentError(f"samples must be finite, got {largest}")
    unit = largest or 1.0
    if name == "threshold":
        if not is_number(threshold) or not threshold >= 0:
            raise ArgumentError(
                f"cost 'threshold' needs a threshold of 0 or more, got threshold={threshold!r}"
            )
        return lambda c: float((_finite_magnitudes(c) > threshold).sum())
    # Coefficients that are zero but for rounding have logarithms that nothing but rounding determines.
    deepest = (tree.maxlevel if level is None else level) or 0
    floor = ROUNDING * largest * len(tree.PARTS) ** (deepest / 2)  # Approximations grow with the levels.

    def nonzero(coefficients: Any) -> Any:
        magnitudes = _finite_magnitudes(coefficients)
        return magnitudes[magnitudes > floor]

    if name == "norm":
        if not is_number(p) or not 0 < p < 2:
            raise ArgumentError(f"the exponent of cost 'norm' is between 0 and 2, got p={p!r}")
        return lambda c: float(((nonzero(c) / unit) ** p).sum())
    root = math.sqrt(float(((magnitudes / unit) ** 2).sum())) or 1.0  # of the energy

    def logarithmic(coefficients: Any) -> float:
        magnitudes = nonzero(coefficients)
        logarithms = 2 * library_of(magnitudes).namespace(magnitudes).log(magnitudes)
        if name == "log energy":
            return float(logarithms.sum())
        shares = (magnitudes / unit / root) ** 2
        return float((shares * (2 * (math.log(unit) + math.log(root)) - logarithms)).sum())

    return logarithmic
