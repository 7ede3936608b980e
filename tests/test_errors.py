"""Bad input is answered by an UndulaError that repeats what was passed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import undula
from comparing import by_scheme, reference
from undula.algebra import Laurent, PolyphaseMatrix

HAAR = undula.Wavelet("haar").filter_bank
NAN = float("nan")

CASES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "unknown wavelet": (lambda: undula.Wavelet("db39x"), ValueError, "'db39x'.*did you mean.*'db3"),
    "wavelet not a name": (lambda: undula.Wavelet(3), TypeError, "got 3"),  # type: ignore[arg-type]
    "unknown family": (lambda: undula.wavelist("dbx"), ValueError, "'dbx'.*'db'"),
    "unknown scheme": (lambda: undula.scheme("haar", "monolitic"), ValueError, "'monolitic'.*'monolithic'"),
    "scheme of a number": (lambda: undula.scheme(5, "sweldens"), TypeError, "got 5"),  # type: ignore[arg-type]
    "lifting of None": (lambda: undula.lifting(None), TypeError, "got None"),  # type: ignore[arg-type]
    "empty bank": (lambda: undula.Wavelet("x", ([], [], [], [])), ValueError, r"lengths \[0, 0, 0, 0\]"),
    "odd bank": (lambda: undula.Wavelet("x", ([1, 2, 1],) * 4), ValueError, r"\[3, 3, 3, 3\]"),
    "three filters": (lambda: undula.Wavelet("x", ([1, 1],) * 3), ValueError, "got 3"),
    "bank is a word": (lambda: undula.Wavelet("x", "haar"), TypeError, "'haar'"),
    "filter is a number": (lambda: undula.Wavelet("x", (1, 2, 3, 4)), TypeError, "got 1"),
    "tap is a word": (lambda: undula.Wavelet("x", (["a", "b"],) * 4), TypeError, "'a'"),
    "tap is NaN": (lambda: undula.Wavelet("x", ([NAN, 1.0], *HAAR[1:])), ValueError, "nan"),
    "tap is infinite": (lambda: undula.Wavelet("x", ([np.inf, 1.0], *HAAR[1:])), ValueError, "inf"),
    "does not reconstruct": (
        lambda: undula.Wavelet("x", (HAAR[0], HAAR[0], HAAR[2], HAAR[3])),
        undula.ReconstructionError,
        "do not reconstruct.*differs from the identity by",
    ),
    "all zero": (lambda: undula.Wavelet("x", ([0.0, 0.0],) * 4), ValueError, "do not reconstruct"),
    "lifting of dmey": (lambda: undula.lifting("dmey"), ValueError, "'dmey' has no lifting.*filter bank"),
    "scheme of dmey": (lambda: undula.scheme("dmey", "sweldens"), ValueError, "'dmey' has no lifting"),
    "step of a wrong kind": (
        lambda: undula.LiftingStep("scale", Laurent({0: 1})),  # type: ignore[arg-type]
        ValueError,
        "'scale'",
    ),
    "step without polynomial": (
        lambda: undula.LiftingStep("update", 0.5),  # type: ignore[arg-type]
        TypeError,
        "got 0.5",
    ),
    "zero scaling": (lambda: undula.Lifting.make([], (0, 1)), ValueError, "one monomial in each row"),
    "even split": (lambda: undula.Lifting.make([], odd=2), ValueError, "got 2"),  # type: ignore[arg-type]
    "wavefun level": (lambda: undula.Wavelet("haar").wavefun(0), ValueError, "got 0"),
    "mixed exponents": (lambda: Laurent({0: 1, (0, 1): 1}), ValueError, "all be pairs"),
    "fractional exponent": (lambda: Laurent({0.5: 1}), ValueError, "0.5"),
    "NaN coefficient": (lambda: Laurent({0: NAN}), ValueError, "nan"),
    "mixed variables": (lambda: Laurent({0: 1}) + Laurent({(0, 0): 1}), ValueError, "cannot combine"),
    "division by a sum": (
        lambda: Laurent({0: 1}) / Laurent({0: 1, 1: 1}),
        undula.NotInvertibleError,
        r"got \(z \+ 1\)",
    ),
    "ragged matrix": (lambda: PolyphaseMatrix([[1, 0], [1]]), ValueError, r"\[2, 1\]"),
    "singular matrix": (
        lambda: PolyphaseMatrix([[1, 1], [1, 1]]).inverse(),
        undula.NotInvertibleError,
        "monomial determinant",
    ),
    "sizes differ": (
        lambda: PolyphaseMatrix.identity(2) @ PolyphaseMatrix.identity(4),
        ValueError,
        "2×2.*4×4",
    ),
    "matrix makes no wavelet": (
        lambda: undula.Wavelet.from_polyphase(PolyphaseMatrix([[1, 1], [1, 1]])),
        undula.ReconstructionError,
        "defines no wavelet",
    ),
    "unknown mode": (lambda: reference.dwt2(np.ones((4, 4)), "haar", "symetric"), ValueError, "'symetric'"),
    "mode of the other family": (
        lambda: reference.lwt2(np.ones((4, 4)), "haar", mode="smooth"),
        ValueError,
        "smooth",
    ),
    "empty array": (lambda: reference.dwt2(np.ones((0, 4)), "haar"), ValueError, r"\(0, 4\)"),
    "single number": (lambda: reference.dwt(1.0, "haar"), ValueError, "got a single number"),
    "strings": (lambda: reference.dwt(["a", "b"], "haar"), TypeError, "dtype <U1"),
    "objects": (lambda: reference.dwt(np.array([None, 1]), "haar"), TypeError, "dtype object"),
    "missing axis": (lambda: reference.dwt(np.ones(4), "haar", axis=1), ValueError, r"\(1,\)"),
    "same axis twice": (
        lambda: reference.wavedec2(np.ones((4, 4)), "haar", axes=(0, -2)),
        ValueError,
        r"\(0, -2\)",
    ),
    "level too deep": (
        lambda: reference.wavedec2(np.ones((16, 8)), "db4", level=30_000),
        ValueError,
        "30000",
    ),
    "negative level": (lambda: reference.lwt(np.ones(8), "haar", level=-1), ValueError, "got -1"),
    "level not a number": (lambda: reference.lwt(np.ones(8), "haar", level="1"), TypeError, "'1'"),  # type: ignore[arg-type]
    "shapes of bands": (
        lambda: reference.idwt(np.ones(4), np.ones(7), "haar"),
        ValueError,
        r"'a': \(4,\), 'd': \(7,\)",
    ),
    "bands too small": (lambda: reference.idwt([1.0], [1.0], "db8"), ValueError, "1 along axis 0.*16 taps"),
    "missing bands": (
        lambda: reference.waverec2([np.ones((4, 4)), (np.ones((4, 4)),) * 2], "haar"),
        ValueError,
        "nested as wavedec2 does",
    ),
    "scheme on one axis": (
        lambda: undula.Plan(4, "haar", backend="reference", scheme="sweldens"),
        ValueError,
        "two axes.*got 1",
    ),
    "scheme of the reference": (
        lambda: undula.Plan((4, 4), "haar", backend="reference", scheme="swelden"),
        ValueError,
        "'swelden'.*'sweldens'",
    ),
    "integers by scheme": (
        lambda: by_scheme("monolithic", np.ones((4, 4), int), "cdf53", "symmetric", lifted=True),
        ValueError,
        "'monolithic'",
    ),
    "coefficients are None": (lambda: reference.waverec2(None, "haar"), ValueError, "NoneType"),  # type: ignore[arg-type]
    "no coefficients": (lambda: reference.waverecn([], "haar"), ValueError, "list too short"),
    "everything is None": (
        lambda: reference.waverec2([None, (None, None, None)], "haar"),
        ValueError,
        "At least one coefficient",
    ),
    "details are numbers": (
        lambda: reference.idwt2((np.ones((3, 3)), (1, 2, 3)), "haar"),
        ValueError,
        r"'ad': \(\)",
    ),
    "details are no mapping": (
        lambda: reference.waverecn([np.ones((4, 4)), 5], "haar"),
        ValueError,
        "nested as wavedecn does",
    ),
    "details of more axes": (
        lambda: reference.waverecn(
            [np.ones((4, 4)), dict.fromkeys(("ad", "da", "dd"), np.ones((4, 4, 4)))], "haar"
        ),
        ValueError,
        r"\(4, 4\).*\(4, 4, 4\)",
    ),
    "no bands": (lambda: reference.idwtn({}, "haar"), ValueError, "At least one coefficient"),
    "wrong keys": (
        lambda: reference.idwtn({"a": [1.0], "x": [1.0]}, "haar"),
        ValueError,
        r"\['a', 'd'\].*\['a', 'x'\]",
    ),
    "bands of an LWT": (
        lambda: reference.ilwt([np.ones(2), np.ones(5)], "cdf53"),
        ValueError,
        r"\(2,\).*\(5,\)",
    ),
    "one axis for an image": (
        lambda: reference.dwt2(np.ones((4, 4)), "haar", axes=(0,)),
        ValueError,
        r"\(0,\)",
    ),
    "fractional axis": (lambda: reference.dwtn(np.ones(4), "haar", axes=(0.5,)), TypeError, r"0\.5"),  # type: ignore[arg-type]
    "step is a number": (lambda: undula.Lifting.make([5]), TypeError, "got 5"),  # type: ignore[list-item]
    "one scaling": (lambda: undula.Lifting.make([], (1,)), ValueError, r"\(1,\)"),  # type: ignore[arg-type]
    "polynomial of a list": (lambda: Laurent([1, 2]), TypeError, r"\[1, 2\]"),  # type: ignore[arg-type]
    "fractional power": (lambda: Laurent({0: 1}) ** 0.5, TypeError, r"0\.5"),  # type: ignore[operator]
    "shift of two variables": (lambda: Laurent({(0, 0): 1}).shift(1), ValueError, r"\(1,\)"),
    "axes of one variable": (lambda: Laurent({0: 1}).exchange(), ValueError, "two variables"),
    "matrix of a number": (lambda: PolyphaseMatrix(5), TypeError, "got 5"),  # type: ignore[arg-type]
    "wavelet of a number": (lambda: undula.Wavelet.from_polyphase(5), TypeError, "got 5"),  # type: ignore[arg-type]
    "two axes for a line": (
        lambda: reference.dwt(np.ones((4, 4)), "haar", axis=(0, 1)),
        TypeError,
        r"\(0, 1\)",
    ),  # type: ignore[arg-type]
    "no axis for a line": (lambda: reference.lwt(np.ones(4), "haar", axis=None), TypeError, "None"),  # type: ignore[arg-type]
    "axis is a truth value": (lambda: reference.dwt(np.ones((4, 4)), "haar", axis=True), TypeError, "True"),
    "ragged list": (lambda: reference.dwt([[1, 2], [3]], "haar"), ValueError, "numbers"),
    "approximation alone": (lambda: reference.idwt2((np.ones((4, 4)),), "haar"), ValueError, "pair"),  # type: ignore[arg-type]
    "high longer than low": (
        lambda: reference.ilwt([np.ones(2), np.ones(3)], "cdf53"),
        ValueError,
        "do not make up one array",
    ),
    "LWT of mixed kinds": (
        lambda: reference.ilwt([np.ones(2, int), np.ones(2)], "cdf53"),
        ValueError,
        "all integers",
    ),
    "LWT levels without end": (
        lambda: reference.lwt(np.ones(4), "cdf53", level=3000),
        ValueError,
        "got 3000",
    ),
    "huge integers": (lambda: reference.lwt(np.array([2**41, 0]), "cdf53"), ValueError, "2⁴⁰"),
    "bank is one number": (lambda: undula.Wavelet("x", np.array(3.0)), ValueError, "got 0"),
    "tap beyond floats": (lambda: undula.Wavelet("x", ([10**400, 1],) * 4), ValueError, "too large"),
    "taps overflow": (lambda: undula.Wavelet("x", ([1e308, 1e308],) * 4), ValueError, "do not reconstruct"),
    "tap a little off": (
        lambda: undula.Wavelet("x", ([HAAR[0][0] + 4e-3, HAAR[0][1]], *HAAR[1:])),
        undula.ReconstructionError,
        "by 0.00",
    ),
    "fractional shift": (lambda: Laurent({0: 1}).shift(1.5), ValueError, r"1\.5"),  # type: ignore[arg-type]
    "product with a number": (lambda: PolyphaseMatrix.identity(2) @ 3, TypeError, "got 3"),  # type: ignore[operator]
    "composed scheme in an LWT": (
        lambda: by_scheme("polyphase", np.ones((4, 4)), "db2", "symmetric", lifted=True),
        ValueError,
        "'polyphase'.*'db2'.*sweldens",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input(case: str) -> None:
    act, kind, message = CASES[case]
    with pytest.raises(undula.UndulaError, match=f"(?s){message}") as caught:
        act()
    assert isinstance(caught.value, kind)


def test_values_cannot_be_changed() -> None:
    for value in (
        undula.Wavelet("haar"),
        Laurent({0: 1}),
        undula.lifting("haar"),
        undula.scheme("haar", "sweldens"),
    ):
        with pytest.raises(AttributeError):
            value.name = "other"  # type: ignore[union-attr, misc]
