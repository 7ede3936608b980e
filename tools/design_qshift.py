"""Design the q-shift wavelets of ``tools/make_table.py``: orthonormal filters with a delay of 1/4 sample.

Let p be the symmetric filter of 2L taps in which a filter h of L taps and its mirror image alternate. If p is
a low-pass filter, both are samples of one smooth curve, and h is delayed by 1/4 sample from its centre. So
the energy of p in its stop band is minimised [1]_, among all h that are orthonormal to their shifts by even
numbers and have the given number of vanishing moments. Newton's method makes the constraints exact. The taps
are not those of the publication.

    python tools/design_qshift.py     print the taps

References
----------
.. [1] N. G. Kingsbury, "Design of q-shift complex wavelets for image processing using frequency domain energy
   minimization", IEEE International Conference on Image Processing, 2003.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Array = NDArray[np.float64]
STOP_BAND = 1.15  # its lower end, in radians per sample of p; that of h ends at π / 2
DESIGNS = ((10, 1), (14, 2), (18, 2))  # numbers of taps and of vanishing moments
WIDTHS = (1.0, 1.5, 2.0, 3.0)  # of the windows of first guesses


def alternating(h: Array) -> Array:
    """Return the symmetric filter in which a filter and its mirror image alternate."""
    return np.stack([h, h[::-1]], axis=1).ravel()


def stop_band_energy(taps: int) -> Array:
    """Return the matrix Q for which ``h @ Q @ h`` is the energy of p in the stop band."""
    rows = np.array([alternating(row) for row in np.eye(taps)])
    distances = np.subtract.outer(np.arange(2.0 * taps), np.arange(2.0 * taps))
    energy = np.sinc(distances) - STOP_BAND / math.pi * np.sinc(STOP_BAND / math.pi * distances)
    matrix: Array = rows @ energy @ rows.T
    return matrix


def design(taps: int, moments: int) -> Array:
    """Return the low-pass analysis filter of tree a."""
    energy = stop_band_energy(taps)
    places = np.arange(taps) - (taps - 1) / 2
    linear = [(-1.0) ** np.arange(taps) * (places / taps) ** k for k in range(moments)]
    matrix = np.array([*linear, np.ones(taps)])
    values = np.array([0.0] * moments + [math.sqrt(2)])
    shifts = [np.eye(taps, k=2 * m) for m in range(1, taps // 2)]

    def constraints(h: Array) -> Array:
        return np.concatenate([[h @ shift @ h for shift in shifts], matrix @ h - values])

    def derivatives(h: Array) -> Array:
        return np.concatenate([[(shift + shift.T) @ h for shift in shifts], matrix])

    rules: Any = {"type": "eq", "fun": constraints, "jac": derivatives}
    best: Array | None = None
    for width in WIDTHS:
        delayed = places - 0.25
        guess = np.sinc(delayed / 2) * np.exp(-width * (2 * delayed / taps) ** 2)
        h: Array = minimize(
            lambda h: float(h @ energy @ h),
            guess * math.sqrt(2) / guess.sum(),
            jac=lambda h: 2 * energy @ h,
            constraints=[rules],
            method="SLSQP",
            options={"maxiter": 2000, "ftol": 1e-18},
        ).x
        for _ in range(20):
            h = h - np.linalg.pinv(derivatives(h), rcond=1e-10) @ constraints(h)
        if best is None or (np.abs(constraints(h)).max() < 1e-13 and h @ energy @ h < best @ energy @ best):
            best = h
    assert best is not None
    return best


if __name__ == "__main__":
    for taps, moments in DESIGNS:
        print(f"qshift{taps}: {design(taps, moments).tolist()}")
