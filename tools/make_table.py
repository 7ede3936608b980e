"""Generate ``src/undula/wavelets/table.json``, which holds every built-in wavelet, one per line.

The filters of PyWavelets' discrete wavelets are taken from PyWavelets; rational multiples of √2 are detected
and stored as integers with a common denominator. The additional wavelets are defined here, by lifting steps or
by filters.

    python tools/make_table.py            write the table
    python tools/make_table.py --check    fail if the table is out of date
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import pywt

from undula.algebra import ROOT2, Laurent, PolyphaseMatrix, Surd
from undula.liftings import Lifting
from undula.wavelets import Wavelet

# Low-pass filters for dual trees, from tools/design_qshift.py.
QSHIFT = (
    (
        0.007663030089563779, 0.035119515012220145, -0.09115606875104365, 0.0024793435227699243,
        0.5598460516533285, 0.775155326389102, 0.25193233763379913, -0.11026853859117994,
        -0.02117856943910019, 0.004621134853635357,
    ),
    (
        -0.0036812258938672747, -0.004368602993630534, 0.014640849922416545, 0.021019723021323086,
        -0.10059479688398355, 0.007854446393033033, 0.5663089830565093, 0.7628075147767265,
        0.2674521647205903, -0.1136149088896285, -0.03386996860474891, 0.03075489804429166,
        -0.0031492251303688193, 0.002653710834432418,
    ),
    (
        0.0016054532966225093, 0.0008089500550355234, -0.002416433096561555, -0.005690474534087656,
        0.02739309017359206, 0.017918198788022536, -0.1148832967420863, 0.02009675622277715,
        0.5653703104544283, 0.7567078180867683, 0.2762579258178579, -0.11273458182970122,
        -0.04784148618406314, 0.04040385750704986, 0.0009663401746936271, -0.009104064716462943,
        0.000654877292064213, -0.001299678392853986,
    ),
)  # fmt: skip
TABLE = Path(__file__).parents[1] / "src/undula/wavelets/table.json"


def filters(dec_lo: Sequence[Any], rec_lo: Sequence[Any], sign: int = 1) -> dict[str, Any]:
    """Return the two low-pass filters as a row of the table, exact if both are rational multiples of √2."""
    row: dict[str, Any] = {} if sign == 1 else {"sign": sign}
    exact = [[rational(tap) for tap in taps] for taps in (dec_lo, rec_lo)]
    if all(tap is not None for taps in exact for tap in taps):
        denominator = math.lcm(*(tap.denominator for taps in exact for tap in taps))
        row["denominator"] = denominator
        dec, rec = ([int(tap * denominator) for tap in taps] for taps in exact)
    else:
        dec, rec = [float(tap) for tap in dec_lo], [float(tap) for tap in rec_lo]
    row["dec_lo"] = dec
    if rec != dec[::-1]:
        row["rec_lo"] = rec
    return row


def rational(tap: Any) -> F | None:
    """Return ``tap / √2`` if it is rational (for floats: with a small power of two as denominator), or None."""
    if isinstance(tap, (F, Surd)):
        quotient = tap / ROOT2
        return quotient if isinstance(quotient, F) else None
    fraction = F(tap / math.sqrt(2)).limit_denominator(2**20)
    dyadic = fraction.denominator & (fraction.denominator - 1) == 0
    return fraction if dyadic and abs(float(fraction) * math.sqrt(2) - tap) < 4e-16 else None


def from_pywavelets() -> Iterator[tuple[str, dict[str, Any]]]:
    for family in pywt.families():
        for name in pywt.wavelist(family):
            try:
                wavelet = pywt.Wavelet(name)
            except ValueError:  # a continuous wavelet
                continue
            yield (
                name,
                {
                    "family": wavelet.short_family_name,
                    "family_name": wavelet.family_name,
                    "number": wavelet.number,
                    "symmetry": wavelet.symmetry,
                    "orthogonal": wavelet.orthogonal,
                    "biorthogonal": wavelet.biorthogonal,
                    "vanishing_moments_psi": wavelet.vanishing_moments_psi,
                    "vanishing_moments_phi": wavelet.vanishing_moments_phi,
                    **filters(wavelet.dec_lo, wavelet.rec_lo),
                },
            )


def additional_wavelets() -> Iterator[tuple[str, str, str, int, Wavelet]]:
    """Yield the wavelets that PyWavelets does not have: name, family, name of the family, number, wavelet."""
    half, scaling = F(1, 2), (ROOT2, 1 / ROOT2)
    cdf = "Cohen-Daubechies-Feauveau"

    def neighbours(value: Any, sign: int) -> Laurent:
        return Laurent({0: value, sign: value})

    steps = [("predict", neighbours(-half, -1)), ("update", neighbours(half**2, 1))]
    yield "cdf53", "cdf", cdf, 53, Lifting.make(steps, scaling).wavelet()

    numbers = (-1.586134342059924, -0.052980118572961, 0.882911075530934, 0.443506852043971)
    kinds = ("predict", "update") * 2
    steps = [
        (kind, neighbours(value, -1 if kind == "predict" else 1))
        for kind, value in zip(kinds, numbers, strict=True)
    ]
    zeta = 1.149604398860241
    yield "cdf97", "cdf", cdf, 97, Lifting.make(steps, (zeta, 1 / zeta)).wavelet()

    predict = Laurent({1: F(1, 16), 0: F(-9, 16), -1: F(-9, 16), -2: F(1, 16)})
    update = Laurent({2: F(-1, 32), 1: F(9, 32), 0: F(9, 32), -1: F(-1, 32)})
    steps = [("predict", predict), ("update", update)]
    yield "dd137", "dd", "Deslauriers-Dubuc", 137, Lifting.make(steps, scaling).wavelet()

    h = [F(3, 5), F(1, 4), F(-1, 20)]
    g = [F(-170, 280), F(73, 280), F(15, 280), F(-3, 280)]
    matrix = PolyphaseMatrix(
        [
            [Laurent({-1: h[2], 0: h[0], 1: h[2]}), Laurent({-1: h[1], 0: h[1]})],
            [
                Laurent({-1: g[3], 0: g[1], 1: g[1], 2: g[3]}),
                Laurent({-1: g[2], 0: g[0], 1: g[2]}),
            ],
        ]
    )
    yield "burt57", "burt", "Burt", 57, Wavelet.from_polyphase(matrix * ROOT2)

    root3 = math.sqrt(3)
    taps = [(a + b * root3) / (4 * math.sqrt(2)) for a, b in ((1, 1), (3, 1), (3, -1), (1, -1))]
    high = [taps[3], -taps[2], taps[1], -taps[0]]
    bank = (taps[::-1], high[::-1], taps, high)
    yield "d4", "d", "Daubechies D4", 4, Wavelet("d4", filter_bank=bank)

    for taps in QSHIFT:
        number = len(taps)
        high = [(-1) ** (k + 1) * tap for k, tap in enumerate(reversed(taps))]
        bank = (list(taps), high, list(taps[::-1]), high[::-1])
        yield f"qshift{number}", "qshift", "Q-shift", number, Wavelet("", filter_bank=bank)


def from_undula() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, family, family_name, number, wavelet in additional_wavelets():
        dec_lo, dec_hi, rec_lo, rec_hi = wavelet.bank
        sign = next(
            sign
            for sign in (1, -1)
            if all(
                abs(float(dec_hi[k] + sign * (-1) ** k * rec_lo[k])) < 1e-12
                and abs(float(rec_hi[k] - sign * (-1) ** k * dec_lo[k])) < 1e-12
                for k in range(wavelet.dec_len)
            )
        )
        yield (
            name,
            {
                "family": family,
                "family_name": family_name,
                "number": number,
                "symmetry": wavelet.symmetry,
                "orthogonal": wavelet.orthogonal,
                "biorthogonal": wavelet.biorthogonal,
                "vanishing_moments_psi": wavelet.vanishing_moments_psi,
                "vanishing_moments_phi": 0 if wavelet.orthogonal else wavelet.vanishing_moments_phi,
                **filters(dec_lo, rec_lo, sign),
            },
        )


def text() -> str:
    """Return the text of the table."""
    about = (
        "Written by tools/make_table.py; do not edit. With a denominator d, a tap n stands for √2·n/d."
        " Where rec_lo is missing it is dec_lo reversed."
        " dec_hi[k] = -sign·(-1)^k·rec_lo[k], rec_hi[k] = sign·(-1)^k·dec_lo[k]; sign is 1 if missing."
    )
    rows = dict(from_pywavelets()) | dict(from_undula())
    lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    return f'{{\n  "about": {json.dumps(about, ensure_ascii=False)},\n  "wavelets": {{\n{lines}\n  }}\n}}\n'


if __name__ == "__main__":
    current = TABLE.read_text(encoding="utf-8") if TABLE.exists() else ""
    if "--check" in sys.argv:
        sys.exit(0 if current == text() else f"{TABLE} is out of date: run {sys.argv[0]}")
    TABLE.write_text(text(), encoding="utf-8")
    print(f"wrote {TABLE}")
