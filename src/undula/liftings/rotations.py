"""Factoring an orthogonal wavelet into rotations, and each rotation into three small steps.

The polyphase matrix of an orthogonal wavelet is a product of plane rotations of neighbouring samples,

    M = R(θ_k) · D_k ⋯ D_1 · R(θ_0),      D = diag(1, z^±1)

and a rotation is three shears, ``[1 -t; 0 1][1 0; s 1][1 -t; 0 1]`` with ``s = sin θ`` and ``t = tan θ/2``.
With angles of at most a quarter turn no coefficient exceeds 1, so every orthogonal wavelet has an accurate
lifting, whatever its length; Euclid's algorithm does not guarantee that. A rotation costs three
multiplications, compared with two by Euclid's algorithm and four by the filter bank.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..algebra import Laurent, PolyphaseMatrix
from .lifting import Lifting, LiftingStep, merged

__all__ = ["factor"]

Matrix = NDArray[np.float64]


def factor(matrix: PolyphaseMatrix) -> Iterator[Lifting]:
    """Factor a paraunitary 2×2 matrix into rotations, and each rotation into shears.

    Yields
    ------
    Lifting
        Two liftings: with shears in the order predict, update, predict, and update, predict, update.
    """
    lowest, highest = matrix_support(matrix)
    # taps[k] is the 2×2 matrix of coefficients of z^(highest - k).
    taps = np.array(
        [[[float(entry[e]) for entry in row] for row in matrix.rows] for e in range(highest, lowest - 1, -1)]
    )
    # `drift` is the delay of H against L. It alternates between 0 and -1, so that every rotation acts on
    # two neighbouring samples: x[2n] and x[2n + 1], then x[2n] and x[2n - 1].
    drift, lead = 0, highest
    turns: list[tuple[float, int]] = []
    while len(taps) > 1:
        delay = drift == 0
        angle = _angle(taps[-1], taps[0]) if delay else _angle(taps[0], taps[-1])
        turns.append((angle, drift))
        low, high = np.moveaxis(taps @ _rotation(angle).T, 2, 0)
        # The last coefficient of one column and the first of the other are now zero: drop them.
        taps = np.stack([low[:-1], high[1:]] if delay else [low[1:], high[:-1]], axis=2)
        drift, lead = (-1, lead) if delay else (0, lead - 1)
    angle = _angle(np.array([taps[0][0] @ _QUARTER.T]), np.zeros((1, 2)))
    turns.append((angle, drift))
    scale = np.diag(taps[0] @ _rotation(angle).T)
    after = PolyphaseMatrix.diagonal(
        [
            Laurent.monomial(lead, coefficient=float(scale[0])),
            Laurent.monomial(lead + drift, coefficient=float(scale[1])),
        ]
    )
    for first in ("predict", "update"):
        steps = [step for angle, drift in turns for step in _shears(angle, drift, first)]
        yield Lifting(merged(steps), after=after, before=PolyphaseMatrix.identity(2))


def matrix_support(matrix: PolyphaseMatrix) -> tuple[int, int]:
    """Return the lowest and highest exponent of any entry."""
    supports = [entry.support[0] for row in matrix.rows for entry in row if entry]
    return min(low for low, _ in supports), max(high for _, high in supports)


_QUARTER = np.array([[0.0, -1.0], [1.0, 0.0]])


def _rotation(angle: float) -> Matrix:
    return np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])


def _angle(left: Matrix, right: Matrix) -> float:
    """Return the angle, up to a quarter turn, that minimises ``left`` in column L and ``right`` in column H.

    Both vanish for exact rotations; for rounded filters, the sum of their squares is minimal.
    """
    weighted = left.T @ left + _QUARTER.T @ right.T @ right @ _QUARTER
    cosine, minus_sine = np.linalg.eigh(weighted)[1][:, 0]
    return math.atan2(-minus_sine, cosine) if cosine >= 0 else math.atan2(minus_sine, -cosine)


def _shears(angle: float, drift: int, first: str) -> list[LiftingStep]:
    sine, half = math.sin(angle), math.tan(angle / 2)
    outer, inner = (half, -sine) if first == "predict" else (-half, sine)
    kinds = ("predict", "update") if first == "predict" else ("update", "predict")
    # The steps L += u·H' and H' += p·L, with H' = z^drift H, in terms of H.
    power = {"update": drift, "predict": -drift}
    chain = [(kinds[0], outer), (kinds[1], inner), (kinds[0], outer)]
    return [
        LiftingStep(kind, Laurent.monomial(power[kind], coefficient=value))  # type: ignore[arg-type]
        for kind, value in chain
        if value
    ]
