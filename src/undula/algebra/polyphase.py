"""Square matrices of Laurent polynomials: wavelet transforms as operators on polyphase components.

A 2×2 matrix maps the even and odd samples of a line onto low and high band; a 4×4 matrix maps the
quadruple ``[LL, HL, LH, HH]`` of an image onto the four bands. Component ``2·v + h`` is high (1) or low
(0) vertically ``v`` and horizontally ``h``, so a separable transform is the tensor product

    M(zₙ) ⊗ M(zₘ)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from operator import add
from typing import Any

from ..errors import ArgumentError, ArgumentTypeError, NotInvertibleError
from .laurent import Laurent

__all__ = ["PolyphaseMatrix"]


@dataclass(frozen=True)
class PolyphaseMatrix:
    """An immutable square matrix of Laurent polynomials.

    Numbers among the entries become constant polynomials. ``A @ B`` applies ``B`` first.

    Parameters
    ----------
    rows : iterable of iterables
        The entries, row by row: polynomials, or numbers.

    Examples
    --------
    >>> M = PolyphaseMatrix([[1, 0], [Laurent({0: -1}), 1]])
    >>> print(M @ M)
    ⎡  1  0 ⎤
    ⎣ -2  1 ⎦
    >>> M.inverse() @ M == PolyphaseMatrix.identity(2)
    True
    """

    rows: tuple[tuple[Laurent, ...], ...]

    def __init__(self, rows: Iterable[Iterable[Any]]) -> None:
        try:
            table = [list(row) for row in rows]
        except TypeError:
            raise ArgumentTypeError(f"rows must be an iterable of rows of entries, got {rows!r}") from None
        size = len(table)
        if size == 0 or any(len(row) != size for row in table):
            raise ArgumentError(
                f"a polyphase matrix must be square, got rows of {[len(row) for row in table]} entries"
            )
        counts = {entry.variables for row in table for entry in row if isinstance(entry, Laurent)}
        if len(counts) > 1:
            raise ArgumentError("all entries must have the same number of variables")
        variables = counts.pop() if counts else (2 if size == 4 else 1)
        object.__setattr__(
            self,
            "rows",
            tuple(
                tuple(
                    entry if isinstance(entry, Laurent) else Laurent.constant(entry, variables)
                    for entry in row
                )
                for row in table
            ),
        )

    # --- construction -----------------------------------------------------------------------------

    @staticmethod
    @cache
    def identity(size: int, variables: int | None = None) -> PolyphaseMatrix:
        """Return the identity matrix; by default in two variables if it is 4×4, else in one."""
        variables = variables if variables is not None else (2 if size == 4 else 1)
        return PolyphaseMatrix.diagonal([Laurent.constant(1, variables)] * size)

    @classmethod
    def diagonal(cls, entries: Sequence[Any]) -> PolyphaseMatrix:
        """Return the matrix with these entries on its diagonal.

        Parameters
        ----------
        entries : sequence of Laurent or number
            The entries, from the upper left to the lower right.

        Returns
        -------
        PolyphaseMatrix
        """
        size = len(entries)
        return cls([[entries[i] if i == j else 0 for j in range(size)] for i in range(size)])

    @classmethod
    def product(cls, factors: Iterable[PolyphaseMatrix], size: int) -> PolyphaseMatrix:
        """Return the product of factors, given in the order of application.

        Parameters
        ----------
        factors : iterable of PolyphaseMatrix
            The factors, the one that is applied first at the beginning.
        size : int
            Number of rows, for the identity if there are no factors.

        Returns
        -------
        PolyphaseMatrix
        """
        return reduce(lambda done, factor: factor @ done, factors, cls.identity(size))

    # --- inspection -------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @property
    def variables(self) -> int:
        """Number of variables of the entries."""
        return self.rows[0][0].variables

    @property
    def exact(self) -> bool:
        """True if all coefficients are exact numbers."""
        return all(entry.exact for row in self.rows for entry in row)

    def __getitem__(self, index: tuple[int, int]) -> Laurent:
        return self.rows[index[0]][index[1]]

    @property
    def is_identity(self) -> bool:
        """True for the identity matrix."""
        return all(
            entry.is_one if i == j else not entry
            for i, row in enumerate(self.rows)
            for j, entry in enumerate(row)
        )

    @property
    def is_monomial(self) -> bool:
        """True if each row and column has one non-zero entry, a monomial: a scaled permutation."""
        return all(
            sum(len(entry) for entry in line) == 1 for line in (*self.rows, *zip(*self.rows, strict=True))
        )

    @property
    def is_scalar(self) -> bool:
        """True if all entries are constants, so that no neighbouring tuple is read."""
        return all(entry.is_scalar for row in self.rows for entry in row)

    @property
    def operations(self) -> int:
        """Multiply-accumulates per tuple: the terms of all entries, except ones on the diagonal."""
        return sum(
            len(entry)
            for i, row in enumerate(self.rows)
            for j, entry in enumerate(row)
            if not (i == j and entry.is_one)
        )

    @property
    def halo(self) -> tuple[tuple[int, int], ...]:
        """Number of tuples read before and after the current one, for each variable."""
        supports = [entry.support for row in self.rows for entry in row if entry]
        return tuple(
            (max(0, *(-s[d][0] for s in supports)), max(0, *(s[d][1] for s in supports)))
            for d in range(self.variables)
        )

    # --- comparison -------------------------------------------------------------------------------

    def distance(self, other: PolyphaseMatrix) -> float:
        """Return the largest magnitude among the coefficients of the difference.

        Parameters
        ----------
        other : PolyphaseMatrix
            A matrix of the same size.

        Returns
        -------
        float
        """
        self._check(other)
        return max(
            a.distance(b)
            for row, other_row in zip(self.rows, other.rows, strict=True)
            for a, b in zip(row, other_row, strict=True)
        )

    def close(self, other: PolyphaseMatrix, tolerance: float = 1e-10) -> bool:
        """Return True if no coefficient differs by more than ``tolerance``.

        Parameters
        ----------
        other : PolyphaseMatrix
            A matrix of the same size.
        tolerance : float, default 1e-10
            The largest difference that counts as equal.

        Returns
        -------
        bool
        """
        return self.distance(other) <= tolerance

    # --- arithmetic -------------------------------------------------------------------------------

    def _check(self, other: PolyphaseMatrix) -> None:
        if not isinstance(other, PolyphaseMatrix):
            raise ArgumentTypeError(f"expected a PolyphaseMatrix, got {other!r}")
        if (other.size, other.variables) != (self.size, self.variables):
            raise ArgumentError(
                f"cannot combine a {self.size}×{self.size} matrix in {self.variables} variable(s) with a"
                f" {other.size}×{other.size} matrix in {other.variables}"
            )

    def __matmul__(self, other: PolyphaseMatrix) -> PolyphaseMatrix:
        self._check(other)
        columns = list(zip(*other.rows, strict=True))
        zero = Laurent.zero(self.variables)
        return PolyphaseMatrix(
            [
                [
                    Laurent.sum([a * b for a, b in zip(row, column, strict=True) if a and b] or [zero])
                    for column in columns
                ]
                for row in self.rows
            ]
        )

    def __add__(self, other: PolyphaseMatrix) -> PolyphaseMatrix:
        self._check(other)
        return PolyphaseMatrix(
            [
                [a + b for a, b in zip(row, other_row, strict=True)]
                for row, other_row in zip(self.rows, other.rows, strict=True)
            ]
        )

    def __neg__(self) -> PolyphaseMatrix:
        return self.map(lambda entry: -entry)

    def __sub__(self, other: PolyphaseMatrix) -> PolyphaseMatrix:
        return self + (-other)

    def __mul__(self, factor: Any) -> PolyphaseMatrix:
        """Multiply every entry by a number or a polynomial."""
        return self.map(lambda entry: entry * factor)

    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> PolyphaseMatrix:
        base = self if exponent >= 0 else self.inverse()
        return reduce(
            lambda done, _: done @ base,
            range(abs(exponent)),
            PolyphaseMatrix.identity(self.size, self.variables),
        )

    def map(self, change: Callable[[Laurent], Laurent]) -> PolyphaseMatrix:
        """Apply a function to every entry.

        Parameters
        ----------
        change : callable
            Function from one polynomial to another.

        Returns
        -------
        PolyphaseMatrix
        """
        return PolyphaseMatrix([[change(entry) for entry in row] for row in self.rows])

    def transpose(self) -> PolyphaseMatrix:
        """Return the transpose."""
        return PolyphaseMatrix(zip(*self.rows, strict=True))

    def reverse(self) -> PolyphaseMatrix:
        """Substitute ``z⁻¹`` for ``z``."""
        return self.map(Laurent.reverse)

    def adjoint(self) -> PolyphaseMatrix:
        """Return the matrix of the adjoint operator: the transpose with ``z⁻¹`` for ``z``."""
        return self.transpose().reverse()

    def exchange(self) -> PolyphaseMatrix:
        """Exchange the axes: the variables and, in a 4×4 matrix, the components HL and LH."""
        order = (0, 2, 1, 3) if self.size == 4 else range(self.size)
        return PolyphaseMatrix([[self.rows[i][j].exchange() for j in order] for i in order])

    def backwards(self) -> PolyphaseMatrix:
        """Reverse the order of rows and columns, which exchanges low and high."""
        return PolyphaseMatrix([row[::-1] for row in self.rows[::-1]])

    def tensor(self, other: PolyphaseMatrix) -> PolyphaseMatrix:
        """Return the 4×4 tensor product ``self(zₙ) ⊗ other(zₘ)`` of vertical and horizontal 2×2 matrices.

        Parameters
        ----------
        other : PolyphaseMatrix
            The horizontal 2×2 matrix.

        Returns
        -------
        PolyphaseMatrix
        """
        self._check(other)
        if (self.size, self.variables) != (2, 1):
            raise ArgumentError("tensor() needs two 2×2 matrices in one variable")
        vertical = self.map_along(1)
        horizontal = other.map_along(0)
        return PolyphaseMatrix(
            [[vertical[i // 2][j // 2] * horizontal[i % 2][j % 2] for j in range(4)] for i in range(4)]
        )

    def map_along(self, axis: int) -> tuple[tuple[Laurent, ...], ...]:
        """Return the entries as polynomials in two variables, along one axis.

        Parameters
        ----------
        axis : {0, 1}
            0 for horizontal, 1 for vertical.

        Returns
        -------
        tuple of tuple of Laurent
            The rows of the matrix.
        """
        return tuple(tuple(entry.along(axis) for entry in row) for row in self.rows)

    def determinant(self) -> Laurent:
        """Return the determinant, by expansion along the first row."""
        if self.size == 1:
            return self.rows[0][0]
        terms = (
            (entry if j % 2 == 0 else -entry) * self._minor(0, j).determinant()
            for j, entry in enumerate(self.rows[0])
            if entry
        )
        return reduce(add, terms, Laurent({}, self.variables))

    def _minor(self, i: int, j: int) -> PolyphaseMatrix:
        return PolyphaseMatrix(
            [[entry for c, entry in enumerate(row) if c != j] for r, row in enumerate(self.rows) if r != i]
        )

    def inverse(self, tolerance: float = 1e-9) -> PolyphaseMatrix:
        """Return the inverse of a matrix whose determinant is a monomial.

        A matrix ``1 + N`` with ``N`` nilpotent, such as every lifting step, has the finite inverse
        ``1 - N + N² - …``; others are inverted by the adjugate.

        Parameters
        ----------
        tolerance : float, optional
            Float coefficients of the determinant below this share of its largest one count as zero.

        Returns
        -------
        PolyphaseMatrix

        Raises
        ------
        NotInvertibleError
            If the determinant is not a monomial.
        """
        if self.is_monomial:
            return self.transpose().map(lambda entry: entry**-1 if entry else entry)
        total = PolyphaseMatrix.identity(self.size, self.variables)
        power = residue = total - self
        for _ in range(self.size):
            if not any(entry for row in power.rows for entry in row):
                return total
            total, power = total + power, power @ residue
        determinant = self.determinant()
        determinant = determinant.chop(tolerance * determinant.max_abs())
        if not determinant.is_monomial:
            raise NotInvertibleError(f"an inverse needs a monomial determinant, got ({determinant})")
        return PolyphaseMatrix(
            [
                [
                    (
                        self._minor(j, i).determinant()
                        if (i + j) % 2 == 0
                        else -self._minor(j, i).determinant()
                    )
                    / determinant
                    for j in range(self.size)
                ]
                for i in range(self.size)
            ]
        )

    # --- formatting -------------------------------------------------------------------------------

    def __str__(self) -> str:
        return draw([[str(entry) for entry in row] for row in self.rows])


def draw(cells: Sequence[Sequence[str]]) -> str:
    """Format a matrix of strings between tall brackets."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    last = len(cells) - 1
    lines = []
    for i, row in enumerate(cells):
        left, right = ("⎡", "⎤") if i == 0 else ("⎣", "⎦") if i == last else ("⎢", "⎥")
        body = "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        lines.append(f"{left} {body} {right}")
    return "\n".join(lines)
