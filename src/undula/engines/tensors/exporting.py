"""The operators of PyTorch as expressions, for formats that do not have them, such as ONNX."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from ...errors import ArgumentTypeError
from ...lowering.spec import BandTree
from .encoding import decoded
from .expressions import decompose_expression, recompose_expression
from .operators import EXPRESSIONS

__all__ = ["as_expressions"]


class _Functions:
    """Functions of arrays by PyTorch, for tensors of one device."""

    moveaxis = staticmethod(torch.movedim)

    def __init__(self, device: Any) -> None:
        self.device = device

    def concatenate(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        return torch.cat(list(parts), axis)

    def asarray(self, values: Any, dtype: Any) -> Tensor:
        return torch.as_tensor(values, dtype=dtype, device=self.device)

    def take(self, x: Tensor, places: Any, axis: int) -> Tensor:
        return x.index_select(axis, self.asarray(places, torch.int64))

    def stack(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        return torch.stack(list(parts), axis)


def _decompose(x: Tensor, transform: str, levels: int, backend: str = "auto") -> list[Tensor]:
    tree = BandTree.of_samples(_forward(transform), tuple(map(int, x.shape)), levels)
    return decompose_expression(_Functions(x.device), tree, x)


def _recompose(bands: Sequence[Tensor | None], transform: str, shape: Any, backend: str = "auto") -> Tensor:
    spec = _forward(transform)
    tree = BandTree.of_samples(spec, tuple(map(int, shape)), (len(bands) - 1) // (len(spec.keys) - 1))
    example = next(band for band in bands if band is not None)
    ready = [
        example.new_zeros(part) if band is None else band
        for band, part in zip(bands, tree.flat_shapes, strict=True)
    ]
    samples: Tensor = recompose_expression(_Functions(example.device), tree, ready)
    return samples


def _forward(transform: str) -> Any:
    spec = decoded(transform)
    if spec.dual:
        raise ArgumentTypeError("adjoints are not exported as expressions; export the forward program alone")
    return spec


@contextmanager
def as_expressions() -> Iterator[None]:
    """Let transforms be computed by PyTorch's own operators, in place of kernels.

    Within this context, programs that PyTorch exports have no operators of this package: torch.onnx.export
    can translate them, and they run without Undula. They are slower than the kernels.

    Yields
    ------
    None
        Nothing; transforms are expressions until the block ends.

    Examples
    --------
    >>> import torch, undula.torch
    >>> layer = undula.torch.DWTForward(1, "haar")
    >>> with as_expressions():
    ...     program = torch.export.export(layer, (torch.ones(1, 1, 4, 4),))
    >>> any("undula" in str(node.target) for node in program.graph.nodes)
    False
    """
    token = EXPRESSIONS.set((_decompose, _recompose))
    try:
        yield
    finally:
        EXPRESSIONS.reset(token)
