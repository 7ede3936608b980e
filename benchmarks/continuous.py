"""Continuous wavelet transforms beside PyWavelets, in one run.

    python benchmarks/continuous.py           run everything, about half a minute
    python benchmarks/continuous.py --save    save the figures to benchmarks/results/continuous.json

Times are the best of several runs, in milliseconds. The first call for a length and scales computes the
kernels, which the following ones share; both are shown.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pywt

import undula

ROOT = Path(__file__).parent
LINEAR, OCTAVES = np.arange(1, 65), np.geomspace(1, 512, 64)
Row = dict[str, Any]
CASES = (
    ("morl", "1 … 64", LINEAR, (1 << 16,), "float64"),
    ("morl", "1 … 64", LINEAR, (1 << 16,), "float32"),
    ("morl", "1 … 512", OCTAVES, (1 << 16,), "float64"),
    ("mexh", "1 … 64", LINEAR, (1 << 16,), "float64"),
    ("cmor1.5-1.0", "1 … 64", LINEAR, (1 << 16,), "float64"),
    ("cmor1.5-1.0", "1 … 512", OCTAVES, (1 << 16,), "float32"),
    ("morl", "1 … 64", LINEAR, (64, 1024), "float64"),
    ("morl", "1 … 64", LINEAR, (1024,), "float64"),
    ("morl", "1 … 64", LINEAR, (1 << 20,), "float32"),
)


def best(work: Callable[[], Any], runs: int) -> float:
    """Milliseconds, the best of several runs."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def transforms() -> list[Row]:
    """All cases, with both methods of PyWavelets."""
    rows = []
    times = f"{'first':>8} {'next':>8}   PyWavelets: conv, fft"
    print(f"{'wavelet':12} {'scales':10} {'samples':>10} {'dtype':8} {times}")
    for name, range_of_scales, scales, shape, dtype in CASES:
        x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
        runs = 3 if x.size > 1 << 16 else 9
        first = best(lambda x=x, s=scales, n=name: undula.cwt(x, s, n), 1)
        ours = best(lambda x=x, s=scales, n=name: undula.cwt(x, s, n), runs)
        theirs = {
            method: best(lambda x=x, s=scales, n=name, m=method: pywt.cwt(x, s, n, method=m), 2)
            for method in ("conv", "fft")
        }
        mine, other = undula.cwt(x, scales, name)[0], pywt.cwt(x, scales, name, method="fft")[0]
        error = float(np.abs(mine - other).max() / np.abs(other).max())
        assert error < (1e-12 if dtype == "float64" else 1e-4), error
        rows.append(
            {"wavelet": name, "scales": range_of_scales, "shape": shape, "dtype": dtype, "first": first}
            | {"undula": ours, **theirs, "difference": error}
        )
        samples = "×".join(map(str, shape))
        ratios = ", ".join(f"{t:8.2f} ({t / ours:.1f}×)" for t in theirs.values())
        print(f"{name:12} {range_of_scales:10} {samples:>10} {dtype:8} {first:8.2f} {ours:8.2f}   {ratios}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--save", type=Path, nargs="?", const=ROOT / "results" / "continuous.json", help="save the figures"
    )
    given = parser.parse_args()
    undula.cwt(np.ones(8), [1], "mexh")  # imports everything
    results = {
        "machine": f"{platform.machine()}, {undula.get_num_threads()} threads",
        "date": date.today().isoformat(),
        "undula": undula.__version__,
        "pywavelets": pywt.__version__,
        "transforms": transforms(),
    }
    if given.save:
        given.save.parent.mkdir(exist_ok=True)
        given.save.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
