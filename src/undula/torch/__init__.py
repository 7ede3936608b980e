"""Layers of PyTorch: wavelet transforms as ``torch.nn.Module``, with gradients of any order.

``DWTForward``, ``DWTInverse``, ``DWT1DForward`` and ``DWT1DInverse`` have the names, arguments, results and
buffers of pytorch_wavelets; the others follow them. :class:`LearnableDWT` learns a wavelet, and
:func:`as_expressions` is for exports to other formats. The functions of
``undula`` are differentiable as well.
"""

from ..engines.tensors.exporting import as_expressions
from .layers import (
    DWT1DForward,
    DWT1DInverse,
    DWT3DForward,
    DWT3DInverse,
    DWTForward,
    DWTInverse,
    SWTForward,
    SWTInverse,
)
from .learnable import LearnableDWT

__all__ = [
    "DWT1DForward",
    "DWT1DInverse",
    "DWT3DForward",
    "DWT3DInverse",
    "DWTForward",
    "DWTInverse",
    "LearnableDWT",
    "SWTForward",
    "SWTInverse",
    "as_expressions",
]
