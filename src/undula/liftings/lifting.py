"""Lifting steps and liftings: a polyphase matrix as a sequence of invertible steps.

A line is split into samples ``L[n]`` and their neighbours ``H[n]``. A *predict* step adds filtered ``L`` to
``H``, an *update* step adds filtered ``H`` to ``L``; a scaling follows:

    M = diag(ζ₀, ζ₁) · … [1 U; 0 1] [1 0; P 1] · split

Every step is inverted by a subtraction, whatever the boundary extension and the rounding.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from ..algebra import Laurent, Number, PolyphaseMatrix
from ..errors import ArgumentError, ArgumentTypeError
from ..wavelets import Wavelet
from .conditioning import Conditioning, round_trip_error

__all__ = ["Lifting", "LiftingStep"]


@dataclass(frozen=True)
class LiftingStep:
    """A lifting step: ``predict`` (H += filter·L) or ``update`` (L += filter·H).

    Parameters
    ----------
    kind : {"predict", "update"}
        The kind of step.
    filter : Laurent
        A polynomial in one variable.

    Examples
    --------
    >>> print(LiftingStep("update", Laurent({0: 1, 1: 1})))
    update   U = z + 1
    """

    kind: Literal["predict", "update"]
    filter: Laurent

    def __post_init__(self) -> None:
        if self.kind not in ("predict", "update"):
            raise ArgumentError(f"kind must be 'predict' or 'update', got {self.kind!r}")
        if not isinstance(self.filter, Laurent) or self.filter.variables != 1:
            raise ArgumentTypeError(
                f"filter must be a Laurent polynomial in one variable, got {self.filter!r}"
            )

    @property
    def is_predict(self) -> bool:
        """True if the step changes the high component."""
        return self.kind == "predict"

    @property
    def matrix(self) -> PolyphaseMatrix:
        """The 2×2 matrix of the step on ``[L, H]``."""
        if self.is_predict:
            return PolyphaseMatrix([[1, 0], [self.filter, 1]])
        return PolyphaseMatrix([[1, self.filter], [0, 1]])

    def inverse(self) -> LiftingStep:
        """Return the inverse step, which subtracts."""
        return LiftingStep(self.kind, -self.filter)

    def adjoint(self) -> LiftingStep:
        """Return the adjoint step: the other kind, with the filter reversed."""
        return LiftingStep("update" if self.is_predict else "predict", self.filter.reverse())

    def __str__(self) -> str:
        return f"{self.kind:<8} {'P' if self.is_predict else 'U'} = {self.filter}"


@dataclass(frozen=True)
class Lifting:
    """A sequence of lifting steps between two matrices that scale and reorder samples.

    Parameters
    ----------
    steps : tuple of LiftingStep
        The steps, in the order of application.
    after : PolyphaseMatrix
        The 2×2 matrix that follows the steps, with one monomial in each row and column: usually the
        scaling ``diag(ζ₀, ζ₁)``, with a delay of each band.
    before : PolyphaseMatrix
        The matrix that precedes them, of the same form: the choice of the samples L and H.
    residual : float, optional
        The largest deviation of the product of the steps from the factored matrix.

    See Also
    --------
    Lifting.make : Create a lifting from steps and a scaling.
    undula.lifting : Factor a wavelet.

    Examples
    --------
    >>> import undula
    >>> steps = undula.lifting("cdf53")
    >>> [step.kind for step in steps.steps], steps.operations
    (['predict', 'update'], 4)
    """

    steps: tuple[LiftingStep, ...]
    after: PolyphaseMatrix
    before: PolyphaseMatrix
    residual: float = field(default=0.0, compare=False)

    def __post_init__(self) -> None:
        for matrix in (self.after, self.before):
            if (matrix.size, matrix.variables) != (2, 1) or not matrix.is_monomial:
                raise ArgumentError(
                    "before and after must be 2×2 matrices with one monomial in each row and column,"
                    f" got\n{matrix}"
                )

    @classmethod
    def make(
        cls,
        steps: Iterable[LiftingStep | tuple[str, Laurent]],
        scaling: tuple[Any, Any] = (1, 1),
        odd: Literal[-1, 1] = -1,
    ) -> Lifting:
        """Create a lifting from steps and a scaling.

        Parameters
        ----------
        steps : iterable of LiftingStep or (kind, filter)
            The steps, in the order of application.
        scaling : pair of numbers, optional
            ``(ζ₀, ζ₁)`` for the low and the high band. The default is ``(1, 1)``.
        odd : {-1, 1}, optional
            ``H[n] = x[2n + odd]``. With -1 (default), the usual choice in the literature, ``1 + z⁻¹``
            adds the two neighbours of ``H[n]``.

        Returns
        -------
        Lifting

        Examples
        --------
        >>> from fractions import Fraction as F
        >>> from undula.algebra import ROOT2
        >>> P, U = Laurent({0: F(-1, 2), -1: F(-1, 2)}), Laurent({0: F(1, 4), 1: F(1, 4)})
        >>> lifting = Lifting.make([("predict", P), ("update", U)], (ROOT2, 1 / ROOT2))
        >>> lifting.wavelet("mine").dec_len
        6
        """
        if odd not in (-1, 1):
            raise ArgumentError(f"odd must be -1 or 1, got {odd!r}")
        if not isinstance(steps, Iterable):
            raise ArgumentTypeError(f"steps must be LiftingSteps or pairs (kind, filter), got {steps!r}")
        if not isinstance(scaling, Sequence) or isinstance(scaling, str) or len(scaling) != 2:
            raise ArgumentError(f"scaling must be a pair of numbers, got {scaling!r}")
        return cls(tuple(map(_step, steps)), PolyphaseMatrix.diagonal(scaling), _split(odd))

    # --- inspection -------------------------------------------------------------------------------

    @property
    def scaling(self) -> tuple[Number, Number]:
        """The final factors of the low and the high band."""
        low, high = (value for row in self.after.rows for entry in row for _, value in entry.items())
        return low, high

    @property
    def places(self) -> tuple[int, int]:
        """Offsets of the components: ``L[n] = x[2n + places[0]]``, ``H[n] = x[2n + places[1]]``."""
        low, high = (
            2 * exponent + phase
            for row in self.before.rows
            for phase, entry in enumerate(row)
            for exponent, _ in entry.items()
        )
        return low, high

    @property
    def odd(self) -> int:
        """Distance from ``L[n]`` to ``H[n]`` on the line, in samples: an odd number, usually 1 or -1."""
        return self.places[1] - self.places[0]

    @property
    def exact(self) -> bool:
        """True if every coefficient is exact."""
        return all(step.filter.exact for step in self.steps) and self.after.exact and self.before.exact

    @property
    def operations(self) -> int:
        """Multiply-accumulates per pair of samples, without the scaling."""
        return sum(len(step.filter) for step in self.steps)

    @property
    def largest(self) -> float:
        """The largest magnitude among the coefficients of the steps."""
        return max((step.filter.max_abs() for step in self.steps), default=0.0)

    @cached_property
    def conditioning(self) -> Conditioning:
        """Numerical conditioning of the steps, measured in float32."""
        return Conditioning(self.largest, round_trip_error(self), self.residual)

    @property
    def symmetric(self) -> bool:
        """True if the filter of every step is symmetric about the sample that it changes.

        Every step then preserves whole-sample symmetric extension.
        """
        for step in self.steps:
            # Distance of the centre of the sources from the changed sample, in samples of the line.
            centre = self.odd if not step.is_predict else -self.odd
            low, high = step.filter.support[0]
            if step.filter and (2 * (low + high) + 2 * centre != 0 or step.filter.symmetry != 1):
                return False
        return True

    # --- derivation -------------------------------------------------------------------------------

    def matrix(self) -> PolyphaseMatrix:
        """Return the polyphase matrix on ``[x[2n], x[2n + 1]]``: the product of all steps."""
        chain = [self.before, *(step.matrix for step in self.steps), self.after]
        return PolyphaseMatrix.product(chain, 2)

    def inverse(self) -> Lifting:
        """Return the inverse lifting: negated steps in reverse order."""
        return Lifting(
            tuple(step.inverse() for step in reversed(self.steps)),
            after=self.before.inverse(),
            before=self.after.inverse(),
        )

    def adjoint(self) -> Lifting:
        """Return the lifting of the adjoint operator."""
        return Lifting(
            tuple(step.adjoint() for step in reversed(self.steps)),
            after=self.before.adjoint(),
            before=self.after.adjoint(),
        )

    def wavelet(self, name: str = "") -> Wavelet:
        """Return the wavelet of this lifting, with bands aligned as in PyWavelets.

        Parameters
        ----------
        name : str, default ''
            Name of the wavelet.

        Returns
        -------
        Wavelet
        """
        return Wavelet.from_polyphase(self.matrix(), name)

    def on_line(self) -> Lifting:
        """Return the same steps and scaling, with the low band at 2n and the high band at 2n + 1.

        This is the non-expansive transform.
        """
        low, high = self.scaling
        delay = (1 - self.odd) // 2
        return Lifting(
            self.steps,
            after=PolyphaseMatrix.diagonal([low, Laurent.monomial(delay, coefficient=high)]),
            before=_split(self.odd),
        )

    def shifted(self) -> Lifting:
        """Return the lifting with ``H`` renumbered: ``H[n]`` before ``L[n]`` instead of after it, or back."""
        move = 1 if self.odd > 0 else -1
        renumber = PolyphaseMatrix.diagonal([1, Laurent.monomial(move)])
        steps = tuple(
            LiftingStep(step.kind, step.filter.shift(-move if step.is_predict else move))
            for step in self.steps
        )
        return replace(
            self,
            steps=steps,
            before=renumber.inverse() @ self.before,
            after=self.after @ renumber,
        )

    def mirrored(self) -> Lifting:
        """Return the same steps with L and H, and so predicts and updates, exchanged."""
        steps = tuple(
            LiftingStep("update" if step.is_predict else "predict", step.filter) for step in self.steps
        )
        return replace(self, steps=steps, after=self.after.backwards(), before=self.before.backwards())

    @property
    def reach(self) -> int:
        """Number of neighbouring pairs read, summed over the steps."""
        supports = [step.filter.support[0] for step in self.steps]
        return sum(max(0, -low) + max(0, high) for low, high in supports)

    def pairs(self) -> tuple[tuple[Laurent, Laurent], ...]:
        """Return the filters as pairs (predict, update), padded with zero filters at the ends."""
        zero = Laurent({}, 1)
        pairs: list[tuple[Laurent, Laurent]] = []
        predict: Laurent | None = None
        for step in self.steps:
            if step.is_predict:
                if predict is not None:
                    pairs.append((predict, zero))
                predict = step.filter
            else:
                pairs.append((predict if predict is not None else zero, step.filter))
                predict = None
        if predict is not None:
            pairs.append((predict, zero))
        return tuple(pairs)

    def __str__(self) -> str:
        if _only_renumbers(self.before):
            low, high = (f"x[2n{place:+d}]" if place else "x[2n]" for place in self.places)
            first = f"split    L[n] = {low}, H[n] = {high}"
        else:
            first = _scale_text(self.before)
        last = _merge_text(self.after) if _only_renumbers(self.after) else _scale_text(self.after)
        return "\n".join([first, *map(str, self.steps), last])


def _only_renumbers(matrix: PolyphaseMatrix) -> bool:
    return all(value == 1 for row in matrix.rows for entry in row for _, value in entry.items())


def _scale_text(matrix: PolyphaseMatrix) -> str:
    entries = [(str(entry), "LH"[j]) for row in matrix.rows for j, entry in enumerate(row) if entry]
    swapped = [name for _, name in entries] != ["L", "H"]
    words = [f"{text}·{name}" if swapped else text for text, name in entries]
    return f"scale    ({', '.join(words)})"


def _merge_text(matrix: PolyphaseMatrix) -> str:
    words = []
    for phase, row in enumerate(matrix.rows):
        for name, entry in zip("LH", row, strict=True):
            for exponent, _ in entry.items():
                index = f"n{exponent:+d}" if exponent else "n"
                words.append(f"x[2n{'+1' if phase else ''}] = {name}[{index}]")
    return f"merge    {', '.join(words)}"


def _step(given: object) -> LiftingStep:
    if isinstance(given, LiftingStep):
        return given
    if not isinstance(given, tuple) or len(given) != 2:
        raise ArgumentTypeError(f"a step must be a LiftingStep or a pair (kind, filter), got {given!r}")
    return LiftingStep(*given)


def _split(odd: int) -> PolyphaseMatrix:
    return PolyphaseMatrix.diagonal([1, Laurent.monomial((odd - 1) // 2)])


def merged(steps: Sequence[LiftingStep]) -> tuple[LiftingStep, ...]:
    """Merge consecutive steps of the same kind and drop empty steps."""
    chain: list[LiftingStep] = []
    for step in steps:
        if not step.filter:
            continue
        if chain and chain[-1].kind == step.kind:
            total = chain.pop().filter + step.filter
            if total:
                chain.append(LiftingStep(step.kind, total))
        else:
            chain.append(step)
    return tuple(chain)
