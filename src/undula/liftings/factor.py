"""``lifting(wavelet)``: the best known lifting of a wavelet.

Candidates come from Euclid's algorithm and, for orthogonal wavelets, from rotations. Each is multiplied
out and compared with the polyphase matrix. Among those that keep precision the cheapest wins.
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

COMFORTABLE = 2e-7  # A float32 round trip as good as this needs no improvement; fewer operations do.
FACTORED = 1e-6  # A chain further than this from its matrix computes something else.


def lifting(wavelet: Wavelet | str) -> Lifting:
    """Factors a wavelet into predict and update steps and a scaling.

    Parameters
    ----------
    wavelet : Wavelet or str
        Any wavelet whose filters reconstruct.

    Returns
    -------
    Lifting
        Exact where the wavelet is. Its ``conditioning`` tells how well it keeps numbers, and
        ``conditioning.good`` whether to run it or the filter bank.

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
            f"wavelet {wavelet.name!r} has no lifting: its filters reconstruct only to"
            f" {wavelet.reconstruction_error:.2g}; run it as a filter bank: as a DWT, by its filters or by"
            " scheme 'convolution'"
        )
    # Of a symmetric wavelet the symmetric chains come first: they need no care at borders.
    if any(candidate.symmetric for candidate in candidates):
        candidates = [candidate for candidate in candidates if candidate.symmetric]
    precise = max(1e-13, 4 * wavelet.reconstruction_error)
    comfortable = [
        candidate
        for candidate in candidates
        if candidate.residual <= precise and candidate.conditioning.float32_error <= COMFORTABLE
    ]
    if comfortable:
        return min(comfortable, key=_cost)
    return min(candidates, key=lambda c: (not c.conditioning.good, c.conditioning.float32_error))


def _cost(chain: Lifting) -> tuple[float, bool, float]:
    """Multiplications, and the samples beyond the own ones that a block of them needs."""
    opening_update = bool(chain.steps) and not chain.steps[0].is_predict
    return (
        chain.operations + euclid.REACH * chain.reach,
        opening_update,
        chain.conditioning.float32_error,
    )


_SWAP = PolyphaseMatrix([[0, 1], [1, 0]])


def _candidates(wavelet: Wavelet) -> Iterator[Lifting]:
    matrix = wavelet.polyphase
    symmetric = wavelet.symmetry == "symmetric"
    # Divisions amplify what is wrong with the filters; more of it is known to mean nothing where the
    # filters should be symmetric.
    error = wavelet.reconstruction_error * (32 if symmetric else 1)
    chains = list(_checked(euclid.factor(matrix, error), matrix))
    if wavelet.orthogonal and not wavelet.exact:
        chains += _checked(rotations.factor(matrix), matrix)
    if symmetric and not any(chain.symmetric for chain in chains):
        # The low band may be centred on the odd samples: factor with the two exchanged.
        swapped = (replace(chain, before=_SWAP) for chain in euclid.factor(matrix @ _SWAP, error))
        chains += [chain for chain in _checked(swapped, matrix) if chain.symmetric]
    return iter(chains)


def _checked(chains: Iterable[Lifting], matrix: PolyphaseMatrix) -> Iterator[Lifting]:
    """The chains that multiply out to the matrix, each with the better numbering of H."""
    for chain in chains:
        residual = chain.matrix().distance(matrix)
        if residual <= FACTORED:
            # With a tie in reach H comes before L: the form in which textbooks write the steps.
            forms = sorted((chain, chain.shifted()), key=lambda form: (form.reach, form.odd))
            yield replace(forms[0], residual=residual)
