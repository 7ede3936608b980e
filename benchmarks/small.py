"""Small arrays, where most programs with wavelets live: Undula compared with PyWavelets.

    python benchmarks/small.py            run everything, some minutes
    python benchmarks/small.py --quick    run one wavelet and one dtype
    python benchmarks/small.py --save     save the figures to benchmarks/results/small.json

The figures of a row are measured alternately in one run, in many short rounds; each is the best of them, so
that other work on the machine matters little. ``out=`` is a plan that writes into arrays of the caller.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pywt
from cpu import machine

import undula

ROOT = Path(__file__).parent
LENGTHS = (16, 64, 256, 1000, 10_000, 100_000, 1_000_000)
SIDES = (8, 16, 64, 128, 512)
LEVELS = 3  # of the functions of several levels
ROUND_S = 2e-4  # Time for which one of the peers is run before the next one is.
ROW_S = 0.5  # Time for all rounds of a row.
MIN_ROUNDS = 7

Works = dict[str, Callable[[], Any]]


def in_turns(works: Works) -> dict[str, float]:
    """The best time of each, in microseconds."""
    counts = {}
    for name, work in works.items():
        work()  # Compile, and touch the memory.
        counts[name] = max(1, math.floor(ROUND_S / _once(work, 1)))
    best = dict.fromkeys(works, math.inf)
    end, rounds = time.perf_counter() + ROW_S, 0
    while rounds < MIN_ROUNDS or time.perf_counter() < end:
        for name, work in works.items():
            best[name] = min(best[name], _once(work, counts[name]))
        rounds += 1
    return {name: round(1e6 * took, 3) for name, took in best.items()}


def _once(work: Callable[[], Any], count: int) -> float:
    """The time of one call, in seconds, from so many."""
    repeats = range(count)
    start = time.perf_counter()
    for _ in repeats:
        work()
    return (time.perf_counter() - start) / count


def transforms(shape: tuple[int, ...], wavelet: str, dtype: str, levels: int) -> Iterator[tuple[str, Works]]:
    """The functions forward and back for so many axes and levels, and what to measure of each."""
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    samples = np.empty_like(x)
    names = ("dwt", "idwt") if levels == 1 else ("wavedec", "waverec")
    forward, back = (name if len(shape) == 1 else f"{name}2" for name in names)
    options = {} if levels == 1 else {"level": levels}
    plan = undula.Plan(shape, wavelet, level=levels, dtype=dtype)
    out = plan.empty()
    their_forward, our_forward = getattr(pywt, forward), getattr(undula, forward)
    their_back, our_back = getattr(pywt, back), getattr(undula, back)
    yield (
        forward,
        {
            "PyWavelets": lambda: their_forward(x, wavelet, **options),
            "undula": lambda: our_forward(x, wavelet, **options),
            "undula, out=": lambda: plan.forward(x, out=out),
        },
    )
    # idwt takes its two bands one by one, all others take them together.
    coeffs = their_forward(x, wavelet, **options)
    bands = coeffs if back == "idwt" else (coeffs,)
    yield (
        back,
        {
            "PyWavelets": lambda: their_back(*bands, wavelet),
            "undula": lambda: our_back(*bands, wavelet),
            "undula, out=": lambda: plan.inverse(out, out=samples),
        },
    )


def measured(shape: tuple[int, ...], wavelet: str, dtype: str) -> Iterator[dict[str, Any]]:
    """Measure all functions of one shape, wavelet and dtype, and print their rows."""
    size = f"{shape[0]:,}" + "²" * (len(shape) == 2)
    for levels in (1, LEVELS):
        for name, works in transforms(shape, wavelet, dtype, levels):
            times = in_turns(works)
            theirs, ours, best = times.values()
            print(
                f"{f'{name} {size}, {wavelet}, {dtype}':<40}{theirs:>12.2f}"
                f"{ours:>12.2f} {f'({ours / theirs:.2f})':<7}{best:>12.2f} ({best / theirs:.2f})",
                flush=True,
            )
            yield {"function": name, "shape": shape, "wavelet": wavelet, "dtype": dtype, "times": times}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="run one wavelet and one dtype")
    parser.add_argument("--save", action="store_true", help="save the figures")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", "Level value")
    where = machine()
    print(", ".join(f"{key} {value}" for key, value in where.items()))
    print("microseconds, best of many; in brackets, the time relative to PyWavelets'")
    print(f"{'':<40}{'PyWavelets':>12}{'undula':>12}{'':>8}{'out=':>12}")
    shapes: list[tuple[int, ...]] = [*((n,) for n in LENGTHS), *((n, n) for n in SIDES)]
    wavelets = ("db4",) if arguments.quick else ("db4", "bior4.4", "haar")
    dtypes = ("float64",) if arguments.quick else ("float64", "float32")
    results = [
        result
        for wavelet, dtype, shape in product(wavelets, dtypes, shapes)
        for result in measured(shape, wavelet, dtype)
    ]
    if arguments.save:
        file = ROOT / "results" / "small.json"
        file.parent.mkdir(exist_ok=True)
        text = json.dumps({"machine": where, "unit": "µs", "results": results}, indent=1, ensure_ascii=False)
        file.write_text(text + "\n", encoding="utf-8")
        print(f"saved to {file.relative_to(ROOT.parent)}")


if __name__ == "__main__":
    main()
