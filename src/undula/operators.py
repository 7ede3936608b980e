"""Transforms as linear operators on vectors, for solvers such as those of ``scipy.sparse.linalg``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import keeps_library, numpy_array
from .errors import ArgumentError
from .functions import ravel_coeffs, unravel_coeffs
from .plan import Plan

__all__ = ["WaveletOperator"]

Array = NDArray[Any]


class WaveletOperator:
    """The matrix of a transform, without its numbers: from samples to coefficients, both as vectors.

    It has what ``scipy.sparse.linalg.aslinearoperator`` expects, and SciPy is not needed.

    Parameters
    ----------
    plan : Plan
        The transform, of real or complex arrays on the host.
    inverse : bool, default False
        Whether this is the inverse transform, from coefficients to samples.

    Attributes
    ----------
    shape : (int, int)
    dtype : dtype
        Complex vectors give complex results also if this is real.

    Examples
    --------
    >>> operator = WaveletOperator(Plan((8, 8), "db2", level=1))
    >>> operator.shape
    (100, 64)
    >>> x, y = np.arange(64.0), np.arange(100.0)
    >>> bool(np.isclose((operator @ x) @ y, x @ (operator.T @ y)))
    True
    >>> bool(np.allclose(operator.inverse() @ (operator @ x), x))
    True
    """

    __array_ufunc__ = None  # NumPy leaves products to the operator.

    def __init__(self, plan: Plan, inverse: bool = False) -> None:
        if not isinstance(plan, Plan):
            raise ArgumentError(f"an operator is made of a Plan, got {type(plan).__name__}")
        self.plan, self._inverse, self.dtype = plan, inverse, plan.dtype
        zeros = plan.empty()
        _, self._places, self._shapes = ravel_coeffs(zeros, axes=plan.axes)
        self._form = {1: "wavedec", 2: "wavedec2"}.get(len(plan.axes), "wavedecn")
        count = sum(math.prod(s) for s in _flat_shapes(self._shapes))
        size = math.prod(plan.shape)
        self.shape = (size, count) if inverse else (count, size)

    def inverse(self) -> WaveletOperator:
        """Return the operator of the transform in the other direction."""
        return WaveletOperator(self.plan, not self._inverse)

    def adjoint(self) -> WaveletOperator:
        """Return the conjugate transpose; the matrix is real, so that it is also the transpose."""
        return WaveletOperator(self.plan.adjoint, not self._inverse)

    @property
    def H(self) -> WaveletOperator:  # noqa: N802 (SciPy's name)
        """The conjugate transpose."""
        return self.adjoint()

    @property
    def T(self) -> WaveletOperator:  # noqa: N802 (SciPy's name)
        """The transpose."""
        return self.adjoint()

    @keeps_library
    def matvec(self, x: Any) -> Array:
        """Return the product with a vector.

        Parameters
        ----------
        x : array_like ``(n,)``
            A vector with one entry for each column of the operator.

        Returns
        -------
        array
        """
        vector = numpy_array(x, "the vector")
        if vector.size != self.shape[1] or vector.ndim not in (1, 2):
            raise ArgumentError(f"this operator takes vectors of {self.shape[1]} numbers, got {vector.shape}")
        if vector.dtype.kind == "c" and self.dtype.kind != "c":  # The matrix is real.
            return np.asarray(self.matvec(vector.real) + 1j * self.matvec(vector.imag))
        vector = vector.reshape(-1).astype(self.dtype, copy=False)
        if self._inverse:
            coeffs = unravel_coeffs(vector, self._places, self._shapes, self._form)
            return np.asarray(self.plan.inverse(coeffs)).reshape(-1)
        return ravel_coeffs(self.plan.forward(vector.reshape(self.plan.shape)), axes=self.plan.axes)[0]

    def rmatvec(self, x: Any) -> Array:
        """Return the product of the conjugate transpose with a vector.

        Parameters
        ----------
        x : array_like ``(m,)``
            A vector with one entry for each row of the operator.

        Returns
        -------
        array
        """
        return self.adjoint().matvec(x)

    @keeps_library
    def matmat(self, x: Any) -> Array:
        """Return the product with the columns of a matrix.

        Parameters
        ----------
        x : array_like ``(n, k)``
            A matrix with one row for each column of the operator.

        Returns
        -------
        array ``(m, k)``
        """
        matrix = numpy_array(x, "the matrix")
        if matrix.ndim != 2 or matrix.shape[0] != self.shape[1]:
            raise ArgumentError(
                f"this operator takes vectors of {self.shape[1]} numbers, and matrices with so many rows, got"
                f" {matrix.shape}"
            )
        if not matrix.shape[1]:
            return np.empty((self.shape[0], 0), np.result_type(self.dtype, matrix.dtype))
        return np.stack([self.matvec(column) for column in matrix.T], axis=1)

    @keeps_library
    def __matmul__(self, x: Any) -> Array:
        """Return the product with a vector or a matrix."""
        x = numpy_array(x, "the vector or matrix")
        return self.matvec(x) if x.ndim == 1 else self.matmat(x)

    @keeps_library
    def __rmatmul__(self, x: Any) -> Array:
        """Return the product of a vector, or of the rows of a matrix, with the operator."""
        adjoint = self.adjoint()
        return adjoint.matvec(x) if x.ndim == 1 else adjoint.matmat(x.T).T


def _flat_shapes(shapes: Any) -> list[tuple[int, ...]]:
    return [s for part in shapes for s in (part.values() if isinstance(part, dict) else [part])]
