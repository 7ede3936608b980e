"""Schemes: a two-dimensional transform as stages between barriers.

A *factor* is one 4×4 matrix on the quadruple ``[LL, HL, LH, HH]``. A *stage* is what runs between two
barriers: one factor that reads neighbouring quadruples, then factors that stay within their own. A
*scheme* is a sequence of stages, between a renumbering of the samples and the scaling:

    M ⊗ M = after · stage_n | … | stage_1 | before
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from ..algebra import Laurent, PolyphaseMatrix
from ..algebra.polyphase import draw
from .cost import Cells, Traffic, traffic

__all__ = ["Factor", "Scheme", "Stage"]


@dataclass(frozen=True)
class Factor:
    """One matrix of a scheme, with the name and the symbols that a paper would print.

    Parameters
    ----------
    label : str
        Such as ``T^H_P``.
    matrix : PolyphaseMatrix
        The 4×4 matrix.
    symbols : tuple of tuples of str
        The entries as text; empty to print the polynomials.
    known_inverse : PolyphaseMatrix, optional
        The inverse, where it is known better than by calculation.
    inverse_of, adjoint_of : Factor, optional
        The factor that this one was made from; inverting or transposing again gives it back.
    """

    label: str
    matrix: PolyphaseMatrix
    symbols: tuple[tuple[str, ...], ...] = field(default=(), compare=False)
    known_inverse: PolyphaseMatrix | None = field(default=None, compare=False, repr=False)
    inverse_of: Factor | None = field(default=None, compare=False, repr=False)
    adjoint_of: Factor | None = field(default=None, compare=False, repr=False)

    @property
    def local(self) -> bool:
        """True when no neighbouring quadruple is read."""
        return self.matrix.is_scalar

    def inverse(self) -> Factor:
        """The factor that undoes this one."""
        if self.inverse_of is not None:
            return self.inverse_of
        inverse = self.matrix.inverse() if self.known_inverse is None else self.known_inverse
        return Factor(f"({self.label})⁻¹", inverse, known_inverse=self.matrix, inverse_of=self)

    def adjoint(self) -> Factor:
        """The factor of the adjoint operator."""
        if self.adjoint_of is not None:
            return self.adjoint_of
        inverse = None if self.known_inverse is None else self.known_inverse.adjoint()
        return Factor(f"({self.label})†", self.matrix.adjoint(), known_inverse=inverse, adjoint_of=self)

    def __str__(self) -> str:
        entries = self.symbols or [[str(entry) for entry in row] for row in self.matrix.rows]
        return _beside(f"{self.label} = ", draw(entries))


@dataclass(frozen=True)
class Stage:
    """What runs between two barriers: at most one factor that reads neighbours, the first one."""

    factors: tuple[Factor, ...]

    @property
    def barrier(self) -> bool:
        """True when neighbours are read, so that a barrier must stand before the stage."""
        return not self.factors[0].local

    @cached_property
    def matrix(self) -> PolyphaseMatrix:
        """The product of the factors."""
        return PolyphaseMatrix.product((factor.matrix for factor in self.factors), 4)

    @property
    def operations(self) -> int:
        """Multiply-accumulates per quadruple."""
        return sum(factor.matrix.operations for factor in self.factors)

    @property
    def halo(self) -> tuple[tuple[int, ...], ...]:
        """Quadruples read to the left and right, and above and below."""
        return self.factors[0].matrix.halo

    def __str__(self) -> str:
        return " ".join(factor.label for factor in reversed(self.factors))


@dataclass(frozen=True)
class Scheme:
    """A two-dimensional wavelet transform in stages.

    Attributes
    ----------
    name : str
        Name of the scheme, such as ``monolithic*``.
    wavelet : str
        Name of the wavelet.
    factors : tuple of Factor
        The matrices in the order in which they are applied.
    after, before : PolyphaseMatrix
        What follows and precedes them: scaling, delays and the choice of samples. Free or nearly so, and
        left out of all counts, as is usual.
    polynomials : tuple of (str, Laurent)
        The operators that the labels of the factors speak of.

    Examples
    --------
    >>> from undula.schemes import scheme
    >>> s = scheme("cdf97", "monolithic*")
    >>> s.barriers, s.operations, s.halo
    (4, 36, ((2, 2), (2, 2)))
    """

    name: str
    wavelet: str
    factors: tuple[Factor, ...]
    after: PolyphaseMatrix
    before: PolyphaseMatrix
    polynomials: tuple[tuple[str, Laurent], ...] = field(default=(), compare=False)

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The factors between barriers: a factor that reads neighbours begins a stage."""
        groups: list[list[Factor]] = []
        for factor in self.factors:
            if factor.local and groups:
                groups[-1].append(factor)
            else:
                groups.append([factor])
        return tuple(Stage(tuple(group)) for group in groups)

    # --- calculating ------------------------------------------------------------------------------

    def matrix(self) -> PolyphaseMatrix:
        """The 4×4 polyphase matrix: everything multiplied out."""
        chain = [self.before, *(factor.matrix for factor in self.factors), self.after]
        return PolyphaseMatrix.product(chain, 4)

    def inverse(self) -> Scheme:
        """The scheme of the inverse transform."""
        return self._turned(
            _turned_name("inverse", self.name),
            (factor.inverse() for factor in reversed(self.factors)),
            self.before.inverse(),
            self.after.inverse(),
        )

    def adjoint(self) -> Scheme:
        """The scheme of the adjoint operator, which carries gradients back."""
        return self._turned(
            _turned_name("adjoint", self.name),
            (factor.adjoint() for factor in reversed(self.factors)),
            self.before.adjoint(),
            self.after.adjoint(),
        )

    def _turned(
        self, name: str, factors: Iterable[Factor], after: PolyphaseMatrix, before: PolyphaseMatrix
    ) -> Scheme:
        return Scheme(name, self.wavelet, tuple(factors), after, before, self.polynomials)

    def __len__(self) -> int:
        """Number of stages."""
        return len(self.stages)

    def __iter__(self) -> Iterator[Stage]:
        return iter(self.stages)

    # --- counting ---------------------------------------------------------------------------------

    @property
    def barriers(self) -> int:
        """Number of barriers, the one before the first stage included where it is needed."""
        return sum(stage.barrier for stage in self.stages)

    @property
    def operations(self) -> int:
        """Multiply-accumulates per quadruple, the scaling left out."""
        return sum(stage.operations for stage in self.stages)

    @property
    def halo(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Quadruples that the whole scheme needs around a block: (left, right), (above, below)."""
        halos = [stage.halo for stage in self.stages] or [((0, 0), (0, 0))]
        left, right = (sum(halo[0][side] for halo in halos) for side in (0, 1))
        above, below = (sum(halo[1][side] for halo in halos) for side in (0, 1))
        return (left, right), (above, below)

    @cached_property
    def _traffic(self) -> Traffic:
        return traffic(
            [[factor.matrix for factor in stage.factors] for stage in self.stages],
            [stage.barrier for stage in self.stages],
        )

    @property
    def cells(self) -> Cells:
        """Local memory cells per quadruple, with single and with double buffering."""
        return self._traffic.cells

    @property
    def reads(self) -> int:
        """Reads from local memory per quadruple; values once read stay in registers."""
        return self._traffic.reads

    @property
    def writes(self) -> int:
        """Writes to local memory per quadruple; values that have not changed stay where they are."""
        return self._traffic.writes

    # --- showing ----------------------------------------------------------------------------------

    def formula(self) -> str:
        """The scheme in one line, the first stage rightmost, ``|`` for each barrier.

        ``E`` chooses the samples that are called L and H, and ``Z`` scales the bands; both are left out
        where they do nothing.

        Examples
        --------
        >>> from undula.schemes import scheme
        >>> scheme("cdf53", "monolithic").formula()
        'y = Z S_U | T_P | E x'
        """
        words = ["y =", *([] if self.after.is_identity else ["Z"])]
        for stage in reversed(self.stages):
            words += [str(stage), "|"] if stage.barrier else [str(stage)]
        return " ".join([*words, *([] if self.before.is_identity else ["E"]), "x"])

    def __str__(self) -> str:
        (left, right), (above, below) = self.halo
        parts = [
            f"{self.name} of {self.wavelet}: {self.barriers} barrier{'s' * (self.barriers != 1)},"
            f" {self.operations} operations, halo {left}+{right} × {above}+{below}",
            self.formula(),
        ]
        if any(factor.symbols for factor in self.factors):
            parts.append("\n".join(f"{symbol} = {value}" for symbol, value in self.polynomials))
        parts += [str(factor) for factor in dict.fromkeys(self.factors)]
        for name, matrix in (("Z", self.after), ("E", self.before)):
            if not matrix.is_identity:
                parts.append(_renumbering_text(name, matrix))
        return "\n\n".join(filter(None, parts))


def _turned_name(how: str, name: str) -> str:
    """``inverse of sweldens`` for ``sweldens``, and back."""
    return name.removeprefix(f"{how} of ") if name.startswith(f"{how} of ") else f"{how} of {name}"


def _renumbering_text(name: str, matrix: PolyphaseMatrix) -> str:
    if all(matrix[i, i] for i in range(matrix.size)):
        return f"{name} = diag({', '.join(str(matrix[i, i]) for i in range(matrix.size))})"
    return _beside(f"{name} = ", str(matrix))


def _beside(label: str, block: str) -> str:
    lines = block.split("\n")
    middle = (len(lines) - 1) // 2
    return "\n".join((label if i == middle else " " * len(label)) + line for i, line in enumerate(lines))
