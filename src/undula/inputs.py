"""Arrays as callers give them, read as NumPy's; an error for those whose gradients would be lost.

Undula computes no gradients. A tensor of PyTorch that requires one would come back without it, and training
would go on with wrong numbers: so it is refused wherever arrays are taken, as are values that JAX traces.

Packages are looked up among those that have been imported: whoever has a tensor has imported its package.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import ArgumentError, ArgumentTypeError

__all__ = ["is_tensor", "numpy_array", "refuse_gradients"]

_PLAIN = (np.ndarray, np.generic, int, float, complex, str)


def is_tensor(x: object) -> bool:
    """Whether this is a tensor of PyTorch, or of a subclass of its."""
    kind = getattr(sys.modules.get("torch"), "Tensor", None)
    return kind is not None and isinstance(x, kind)


def refuse_gradients(data: Any, what: str = "data") -> None:
    """Raises an error for an array, or a sequence of numbers, that expects a gradient."""
    if isinstance(data, _PLAIN) or not ("torch" in sys.modules or "jax" in sys.modules):
        return
    if isinstance(data, (list, tuple)):
        for part in data:
            refuse_gradients(part, what)
    elif is_tensor(data):
        torch = sys.modules["torch"]
        if data.requires_grad and torch.is_grad_enabled():
            raise ArgumentTypeError(
                f"{what} is a tensor with requires_grad=True, and Undula computes no gradients yet; pass its"
                " .detach(), or call this within torch.no_grad()"
            )
        if torch.autograd.forward_ad.unpack_dual(data).tangent is not None:
            raise ArgumentTypeError(
                f"{what} is a tensor with a tangent, and Undula computes no derivatives yet; pass its"
                " .detach()"
            )
    else:
        tracer = getattr(getattr(sys.modules.get("jax"), "core", None), "Tracer", None)
        if tracer is not None and isinstance(data, tracer):
            raise ArgumentTypeError(
                f"{what} is a value that JAX traces within jit, grad or vmap, and Undula computes with arrays"
                " alone, without gradients; call it outside of them, or within jit by jax.pure_callback"
            )


def numpy_array(data: ArrayLike, what: str = "data") -> NDArray[Any]:
    """An array of numbers that NumPy can read where it is, or an error."""
    if not isinstance(data, np.ndarray):
        refuse_gradients(data, what)
        if is_tensor(data):
            data = data.detach().resolve_conj().resolve_neg()  # type: ignore[union-attr]
    try:
        x = np.asarray(data)
    except (TypeError, RuntimeError) as error:  # such as bfloat16, arrays on a GPU, what torch.func wraps
        raise ArgumentTypeError(f"{what} must be an array of numbers that NumPy can read: {error}") from None
    except ValueError as error:
        raise ArgumentError(f"{what} must be an array of numbers: {error}") from None
    if x.dtype.kind not in "biufc":
        hint = "; bring arrays of a device to the host first" if x.dtype.kind == "O" else ""
        raise ArgumentTypeError(f"{what} must be numbers, got dtype {x.dtype}{hint}")
    return x
