"""The ten schemes as data: nine from lifting steps, one from the filters.

``MATRICES`` defines the 4×4 matrices in terms of the operators ``P`` and ``U`` of one lifting pair, with a
star for the vertical direction, and ``V = 1 + PU``. ``CHAINS`` lists for each scheme the matrices of one pair
in the order of application. The index 0 stands for the scalar term of ``P`` or ``U``, which reads no
neighbours, and 1 for the other terms. Splitting them makes the starred schemes cheaper.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, reduce
from operator import mul

from ..algebra import Laurent, PolyphaseMatrix
from ..errors import UnknownNameError
from ..liftings import Lifting, lifting
from ..wavelets import Wavelet, as_wavelet
from .scheme import Factor, Scheme

__all__ = ["SCHEMES", "STEPWISE", "check_name", "scheme"]

MATRICES = {
    # Separable steps, horizontal and vertical.
    "T^H": "1 0 0 0 / P 1 0 0 / 0 0 1 0 / 0 0 P 1",
    "T^V": "1 0 0 0 / 0 1 0 0 / P* 0 1 0 / 0 P* 0 1",
    "S^H": "1 U 0 0 / 0 1 0 0 / 0 0 1 U / 0 0 0 1",
    "S^V": "1 0 U* 0 / 0 1 0 U* / 0 0 1 0 / 0 0 0 1",
    # Iwahashi: everything flows into HH, then into HL and LH, then into LL.
    "T^I": "1 0 0 0 / 0 1 0 0 / 0 0 1 0 / PP* P* P 1",
    "R^I": "1 0 0 0 / P 1 0 U* / P* 0 1 U / 0 0 0 1",
    "S^I": "1 U U* -UU* / 0 1 0 0 / 0 0 1 0 / 0 0 0 1",
    # Explosive: everything flows out of LL, then out of HL and LH, then out of HH.
    "T^E": "1 0 0 0 / P 1 0 0 / P* 0 1 0 / -PP* 0 0 1",
    "R^E": "1 U U* 0 / 0 1 0 0 / 0 0 1 0 / 0 P* P 1",
    "S^E": "1 0 0 UU* / 0 1 0 U* / 0 0 1 U / 0 0 0 1",
    # Monolithic: one spatial predict, one spatial update.
    "T": "1 0 0 0 / P 1 0 0 / P* 0 1 0 / PP* P* P 1",
    "S": "1 U U* UU* / 0 1 0 U* / 0 0 1 U / 0 0 0 1",
    # Polyphase: the pair in one matrix.
    "N": "V*V V*U U*V U*U / V*P V* U*P U* / P*V P*U V U / P*P P* P 1",
}

CHAINS = {
    "polyphase": "N",
    "polyphase*": "T^H0 T^V0 N1 S^H0 S^V0",
    "sweldens": "T^H T^V S^H S^V",
    "iwahashi": "T^I R^I S^I",
    "iwahashi*": "T^H0 T^V0 T^I1 R^I1 S^I1 S^H0 S^V0",
    "explosive": "T^E R^E S^E",
    "explosive*": "T^H0 T^V0 T^E1 R^E1 S^E1 S^H0 S^V0",
    "monolithic": "T S",
    "monolithic*": "T1 T^H0 T^V0 S1 S^H0 S^V0",
}

SCHEMES = ("convolution", *CHAINS)
"""Names of the ten schemes."""

STEPWISE = tuple(name for name, chain in CHAINS.items() if "N" not in chain)
"""The schemes in which no entry composes two steps along one axis.

Their operators may handle boundaries individually, so these schemes can compute the non-expansive
transform of every wavelet.
"""


def scheme(wavelet: Wavelet | Lifting | str, name: str) -> Scheme:
    """Return a scheme for one level of the two-dimensional transform of a wavelet.

    Parameters
    ----------
    wavelet : Wavelet, Lifting or str
        The wavelet. A Lifting may have any number of steps and begin with either kind.
    name : str
        One of :data:`undula.SCHEMES`.

    Returns
    -------
    Scheme

    Raises
    ------
    UnknownNameError
        If there is no scheme or wavelet of that name.
    ReconstructionError
        If the scheme needs lifting steps and the wavelet has none, as ``dmey``.

    Examples
    --------
    >>> for name in ("sweldens", "monolithic*", "polyphase"):
    ...     s = scheme("cdf53", name)
    ...     print(name, s.barriers, s.operations)
    sweldens 4 16
    monolithic* 2 18
    polyphase 1 63
    """
    source = wavelet if isinstance(wavelet, Lifting) else as_wavelet(wavelet)
    return _scheme(source, check_name(name))


def check_name(name: object) -> str:
    """Return the normalised name of a scheme, or raise an error that suggests the nearest names."""
    if not isinstance(name, str) or name.lower().strip() not in SCHEMES:
        raise UnknownNameError("scheme", name, SCHEMES)
    return name.lower().strip()


@lru_cache(maxsize=256)
def _scheme(wavelet: Wavelet | Lifting, name: str) -> Scheme:
    title = (wavelet.name if isinstance(wavelet, Wavelet) else "") or "a custom wavelet"
    if name == "convolution":
        return _convolution(wavelet, title)
    chain = lifting(wavelet) if isinstance(wavelet, Wavelet) else wavelet
    pairs, mirrored = chain.pairs(), False
    if len(chain.mirrored().pairs()) < len(pairs):
        # The steps alternate update and predict: with L and H exchanged they form complete pairs.
        pairs, mirrored = chain.mirrored().pairs(), True
    factors: list[Factor] = []
    polynomials: dict[str, Laurent] = {}
    for number, (predict, update) in enumerate(pairs):
        mark = "" if len(pairs) == 1 else f"⁽{str(number).translate(_SUPER)}⁾"
        for word in CHAINS[name].split():
            factor, named = _factor(word, predict, update, mark, mirrored)
            if not factor.matrix.is_identity:
                factors.append(factor)
                polynomials |= named
    return Scheme(
        name,
        title,
        tuple(factors),
        after=chain.after.tensor(chain.after),
        before=chain.before.tensor(chain.before),
        polynomials=tuple(polynomials.items()),
    )


_SUPER = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _factor(
    word: str, predict: Laurent, update: Laurent, mark: str, mirrored: bool
) -> tuple[Factor, dict[str, Laurent]]:
    """Return a matrix of a chain, such as ``T^I1``, and its operators by name.

    If mirrored, L and H are exchanged: components are in reverse order, P of the catalogue is an update
    and U a predict, and the label gets a prime.
    """
    kind, index = (word[:-1], word[-1]) if word[-1].isdigit() else (word, "")
    suffix = mark + {"": "", "0": "₀", "1": "₁"}[index]
    if index:
        predict, update = (_split(filt)[int(index)] for filt in (predict, update))
    operators = {"P": predict, "U": update, "V": predict * update + 1}
    letters = dict(zip("PUV", "UPV" if mirrored else "PUV", strict=True))
    names = {symbol: letter + suffix for symbol, letter in letters.items()}
    used = [symbol for symbol in "PUV" if symbol in MATRICES[kind]]
    cells = [row.split() for row in MATRICES[kind].split("/")]
    matrix = PolyphaseMatrix([[_evaluate(cell, operators) for cell in row] for row in cells])
    known_inverse = None
    if kind == "N":
        line_inverse = PolyphaseMatrix([[1, -update], [-predict, operators["V"]]])
        known_inverse = line_inverse.tensor(line_inverse)
    if mirrored:
        cells = [row[::-1] for row in cells[::-1]]
        matrix = matrix.backwards()
        known_inverse = known_inverse.backwards() if known_inverse is not None else None
    label = kind.replace("^", "'^") if "^" in kind else kind + "'"
    factor = Factor(
        (label if mirrored else kind) + "_" + ",".join(names[symbol] for symbol in used if symbol != "V"),
        matrix,
        symbols=tuple(tuple(_renamed(cell, names) for cell in row) for row in cells),
        known_inverse=known_inverse,
    )
    return factor, {names[symbol]: operators[symbol] for symbol in used if operators[symbol]}


def _split(filt: Laurent) -> tuple[Laurent, Laurent]:
    scalar = Laurent({0: filt[0]}) if filt[0] else Laurent({}, 1)
    return scalar, filt - scalar


def _symbols(cell: str) -> Iterator[tuple[str, bool]]:
    """Yield the operators in an entry such as ``-UU*``, each with True if it is vertical."""
    for place, letter in enumerate(cell):
        if letter in "PUV":
            yield letter, cell[place + 1 : place + 2] == "*"


_ONE = Laurent({(0, 0): 1})


def _evaluate(cell: str, operators: dict[str, Laurent]) -> Laurent:
    if cell in "01":
        return _ONE if cell == "1" else Laurent.zero(2)
    product = reduce(mul, (operators[s].along(int(vertical)) for s, vertical in _symbols(cell)))
    return -product if cell.startswith("-") else product


def _renamed(cell: str, names: dict[str, str]) -> str:
    return "".join(names.get(letter, letter) for letter in cell)


def _convolution(wavelet: Wavelet | Lifting, title: str) -> Scheme:
    """Return four two-dimensional filters: the polyphase matrix, with the scaling, in one stage."""
    if isinstance(wavelet, Wavelet):
        matrix, inverse = wavelet.polyphase, wavelet.synthesis
    else:
        matrix, inverse = wavelet.matrix(), wavelet.inverse().matrix()
    # Delaying a band costs nothing: centre the filters of each row and move the delay to ``after``.
    delays = []
    for row in matrix.rows:
        supports = [entry.support[0] for entry in row if entry]
        delays.append((min(s[0] for s in supports) + max(s[1] for s in supports)) // 2)
    delay = PolyphaseMatrix.diagonal([Laurent.monomial(d) for d in delays])
    centred = delay.inverse() @ matrix
    uncentred = inverse @ delay
    factor = Factor("C", centred.tensor(centred), known_inverse=uncentred.tensor(uncentred))
    identity = PolyphaseMatrix.identity(4)
    return Scheme("convolution", title, (factor,), delay.tensor(delay), identity)
