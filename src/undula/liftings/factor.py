"""``lifting(wavelet)``: factor a wavelet into lifting steps.

Candidates come from Euclid's algorithm and, for orthogonal wavelets, from rotations. The product of each is
compared with the polyphase matrix. The cheapest of the well-conditioned candidates is chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from ..algebra import PolyphaseMatrix
from ..errors import ReconstructionError
from ..wavelets import Wavelet, as_wavelet
from . import euclid, rotations
from .lifting import Lifting

__all__ = ["lifting"]

GOOD_FLOAT32_ERROR = 2e-7  # Among candidates with at most this round-trip error, the cheapest is chosen.
MAX_RESIDUAL = 1e-6  # Candidates that deviate more than this from the polyphase matrix are rejected.


def lifting(wavelet: Wavelet | str) -> Lifting:
    """Factor a wavelet into predict and update steps and a scaling.

    Parameters
    ----------
    wavelet : Wavelet or str
        A wavelet with perfect reconstruction.

    Returns
    -------
    Lifting
        Exact if the wavelet is. ``conditioning.good`` is True if the lifting is accurate enough to replace
        the filter bank.

    Raises
    ------
    ReconstructionError
        If the filters do not reconstruct accurately enough to be factored.

    Examples
    --------
    >>> print(lifting("cdf53"))
    split    L[n] = x[2n], H[n] = x[2n-1]
    predict  P = -1/2 - 1/2·z⁻¹
    update   U = 1/4·z + 1/4
    scale    (√2·z⁻¹, √2/2)
    >>> lifting("db4").operations, lifting("db4").conditioning.good
    (8, True)
    """
    return _lifting(as_wavelet(wavelet))


@lru_cache(maxsize=512)
def _lifting(wavelet: Wavelet) -> Lifting:
    candidates = list(_candidates(wavelet))
    if not candidates:
        raise ReconstructionError(
            f"wavelet {wavelet.name!r} has no lifting: its reconstruction error is"
            f" {wavelet.reconstruction_error:.2g}; use its filter bank: a DWT, method 'filters' or"
            " scheme 'convolution'"
        )
    # Prefer symmetric steps: they preserve symmetric extension.
    if any(candidate.symmetric for candidate in candidates):
        candidates = [candidate for candidate in candidates if candidate.symmetric]
    precise = max(1e-13, 4 * wavelet.reconstruction_error)
    good = [
        candidate
        for candidate in candidates
        if candidate.residual <= precise and candidate.conditioning.float32_error <= GOOD_FLOAT32_ERROR
    ]
    if good:
        return min(good, key=_cost)
    return min(candidates, key=lambda c: (not c.conditioning.good, c.conditioning.float32_error))


def _cost(chain: Lifting) -> tuple[float, bool, float]:
    """Sort key: multiplications and reach, then the kind of the first step, then accuracy."""
    opening_update = bool(chain.steps) and not chain.steps[0].is_predict
    return (
        chain.operations + euclid.REACH_COST * chain.reach,
        opening_update,
        chain.conditioning.float32_error,
    )


_SWAP = PolyphaseMatrix([[0, 1], [1, 0]])


def _candidates(wavelet: Wavelet) -> Iterator[Lifting]:
    matrix = wavelet.polyphase
    symmetric = wavelet.symmetry == "symmetric"
    # Divisions amplify the error of the filters. If the filters should be symmetric, larger remainders can
    # safely count as zero.
    error = wavelet.reconstruction_error * (32 if symmetric else 1)
    chains = list(_checked(euclid.factor(matrix, error), matrix))
    if wavelet.orthogonal and not wavelet.exact:
        chains += _checked(rotations.factor(matrix), matrix)
    if symmetric and not any(chain.symmetric for chain in chains):
        # The low band may be centred on the odd samples: exchange the phases and factor again.
        swapped = (replace(chain, before=_SWAP) for chain in euclid.factor(matrix @ _SWAP, error))
        chains += [chain for chain in _checked(swapped, matrix) if chain.symmetric]
    return iter(chains)


def _checked(chains: Iterable[Lifting], matrix: PolyphaseMatrix) -> Iterator[Lifting]:
    """Yield the candidates whose product is the matrix, each with the better numbering of H."""
    for chain in chains:
        residual = chain.matrix().distance(matrix)
        if residual <= MAX_RESIDUAL:
            # For equal reach, put H before L, as is usual in the literature.
            forms = sorted((chain, chain.shifted()), key=lambda form: (form.reach, form.odd))
            yield replace(forms[0], residual=residual)
