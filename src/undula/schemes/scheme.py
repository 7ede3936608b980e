"""Schemes: a two-dimensional transform as stages between barriers.

A *factor* is a 4×4 matrix on the quadruple ``[LL, HL, LH, HH]``. A *stage* runs between two barriers: one
factor that reads neighbouring quadruples, followed by factors that do not. A *scheme* is a sequence of
stages, preceded by a choice of samples and followed by the scaling:

    M ⊗ M = after · stage_n | … | stage_1 | before
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from ..algebra import Laurent, PolyphaseMatrix
from ..algebra.polyphase import draw
from .cost import Cells, Traffic, traffic

__all__ = ["Factor", "Scheme", "SchemeStage"]


@dataclass(frozen=True)
class Factor:
    """A matrix of a scheme, with the label and the symbols of its formula.

    Parameters
    ----------
    label : str
        The name of the matrix, such as ``T^H_P``.
    matrix : PolyphaseMatrix
        The 4×4 matrix.
    symbols : tuple of tuples of str
        The entries as text; if empty, the polynomials are printed.
    known_inverse : PolyphaseMatrix, optional
        The inverse, if it is known more accurately than it can be computed.
    inverse_of, adjoint_of : Factor, optional
        The factor that this one is the inverse or the adjoint of.
    """

    label: str
    matrix: PolyphaseMatrix
    symbols: tuple[tuple[str, ...], ...] = field(default=(), compare=False)
    known_inverse: PolyphaseMatrix | None = field(default=None, compare=False, repr=False)
    inverse_of: Factor | None = field(default=None, compare=False, repr=False)
    adjoint_of: Factor | None = field(default=None, compare=False, repr=False)

    @property
    def local(self) -> bool:
        """True if no neighbouring quadruple is read."""
        return self.matrix.is_scalar

    def inverse(self) -> Factor:
        """Return the inverse factor."""
        if self.inverse_of is not None:
            return self.inverse_of
        inverse = self.matrix.inverse() if self.known_inverse is None else self.known_inverse
        return Factor(f"({self.label})⁻¹", inverse, known_inverse=self.matrix, inverse_of=self)

    def adjoint(self) -> Factor:
        """Return the factor of the adjoint operator."""
        if self.adjoint_of is not None:
            return self.adjoint_of
        inverse = None if self.known_inverse is None else self.known_inverse.adjoint()
        return Factor(f"({self.label})†", self.matrix.adjoint(), known_inverse=inverse, adjoint_of=self)

    def __str__(self) -> str:
        entries = self.symbols or [[str(entry) for entry in row] for row in self.matrix.rows]
        return _beside(f"{self.label} = ", draw(entries))


@dataclass(frozen=True)
class SchemeStage:
    """The factors between two barriers; only the first may read neighbours.

    Parameters
    ----------
    factors : tuple of Factor
        The matrices of the stage, in the order of a product: the last one is applied first.

    Examples
    --------
    >>> import undula
    >>> stage = undula.scheme("cdf53", "sweldens").stages[0]
    >>> type(stage).__name__, len(stage.factors)
    ('SchemeStage', 1)
    """

    factors: tuple[Factor, ...]

    @property
    def barrier(self) -> bool:
        """True if neighbours are read, so that a barrier must precede the stage."""
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
        The matrices that follow and precede them: scaling, delays and the choice of samples. They cost
        little and are not counted.
    polynomials : tuple of (str, Laurent)
        The operators in the labels of the factors, by name.

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
    def stages(self) -> tuple[SchemeStage, ...]:
        """The stages: each begins with a factor that reads neighbours."""
        groups: list[list[Factor]] = []
        for factor in self.factors:
            if factor.local and groups:
                groups[-1].append(factor)
            else:
                groups.append([factor])
        return tuple(SchemeStage(tuple(group)) for group in groups)

    # --- calculating ------------------------------------------------------------------------------

    def matrix(self) -> PolyphaseMatrix:
        """Return the 4×4 polyphase matrix: the product of all factors."""
        chain = [self.before, *(factor.matrix for factor in self.factors), self.after]
        return PolyphaseMatrix.product(chain, 4)

    def inverse(self) -> Scheme:
        """Return the scheme of the inverse transform."""
        return self._with_factors(
            _derived_name("inverse", self.name),
            (factor.inverse() for factor in reversed(self.factors)),
            self.before.inverse(),
            self.after.inverse(),
        )

    def adjoint(self) -> Scheme:
        """Return the scheme of the adjoint operator, which propagates gradients."""
        return self._with_factors(
            _derived_name("adjoint", self.name),
            (factor.adjoint() for factor in reversed(self.factors)),
            self.before.adjoint(),
            self.after.adjoint(),
        )

    def _with_factors(
        self, name: str, factors: Iterable[Factor], after: PolyphaseMatrix, before: PolyphaseMatrix
    ) -> Scheme:
        return Scheme(name, self.wavelet, tuple(factors), after, before, self.polynomials)

    def __len__(self) -> int:
        """Return the number of stages."""
        return len(self.stages)

    def __iter__(self) -> Iterator[SchemeStage]:
        return iter(self.stages)

    # --- counting ---------------------------------------------------------------------------------

    @property
    def barriers(self) -> int:
        """Number of barriers, including one before the first stage if it reads neighbours."""
        return sum(stage.barrier for stage in self.stages)

    @property
    def operations(self) -> int:
        """Multiply-accumulates per quadruple, without the scaling."""
        return sum(stage.operations for stage in self.stages)

    @property
    def halo(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Quadruples needed around a block: ((left, right), (above, below)).

        A result needs the quadruples on all paths to it, also where their contributions cancel, because those
        that were computed from quadruples outside a block do not.
        """
        (left, right), (above, below) = (
            tuple(_reach(self.factors, axis, sign) for sign in (-1, 1)) for axis in (0, 1)
        )
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
        """Reads from local memory per quadruple; values stay in registers once read."""
        return self._traffic.reads

    @property
    def writes(self) -> int:
        """Writes to local memory per quadruple; unchanged values are not written again."""
        return self._traffic.writes

    # --- showing ----------------------------------------------------------------------------------

    def formula(self) -> str:
        """Return the scheme as a formula, with the first stage on the right and ``|`` for each barrier.

        ``E`` selects the samples of L and H, and ``Z`` scales the bands; identities are omitted.

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


def _reach(factors: Iterable[Factor], axis: int, sign: int) -> int:
    """Return how many quadruples away the farthest one is that results depend on, in one direction."""
    reach = [0] * 4  # of each component
    for factor in factors:
        reach = [
            max(
                reach[j] + max(sign * exponent for exponent in entry.support[axis])
                for j, entry in enumerate(row)
                if entry
            )
            for row in factor.matrix.rows
        ]
    return max(0, *reach)


def _derived_name(how: str, name: str) -> str:
    """Return ``inverse of sweldens`` for ``sweldens``, and vice versa."""
    return name.removeprefix(f"{how} of ") if name.startswith(f"{how} of ") else f"{how} of {name}"


def _renumbering_text(name: str, matrix: PolyphaseMatrix) -> str:
    if all(matrix[i, i] for i in range(matrix.size)):
        return f"{name} = diag({', '.join(str(matrix[i, i]) for i in range(matrix.size))})"
    return _beside(f"{name} = ", str(matrix))


def _beside(label: str, block: str) -> str:
    lines = block.split("\n")
    middle = (len(lines) - 1) // 2
    return "\n".join((label if i == middle else " " * len(label)) + line for i, line in enumerate(lines))
