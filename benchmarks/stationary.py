"""Stationary transforms: Undula compared with PyWavelets, and on a GPU with a copy of the same bytes.

    python benchmarks/stationary.py            run everything on the CPU, about a minute
    python benchmarks/stationary.py --cuda     measure plans on a GPU instead, data on the device
    python benchmarks/stationary.py --save     save the figures to benchmarks/results/

The figures of a row are measured alternately in one run; each is the best of several, and only their ratios
matter. PyWavelets has no MODWT: ``modwt`` is compared with its ``swt``, which has as many coefficients.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from cpu import in_turns, machine

import undula

ROOT = Path(__file__).parent
# The function, the shape, the wavelet, the levels and the dtype; the first two are the headlines.
CASES: list[tuple[str, tuple[int, ...], str, int, str]] = [
    ("swt2", (1024, 1024), "db4", 3, "float32"),
    ("swt", (2**20,), "db4", 6, "float32"),
    ("iswt2", (1024, 1024), "db4", 3, "float32"),
    ("iswt", (2**20,), "db4", 6, "float32"),
    ("modwt", (2**20,), "db4", 6, "float32"),
    ("swt2", (1024, 1024), "haar", 3, "float32"),
    ("swt2", (1024, 1024), "bior4.4", 3, "float64"),
    ("swt2", (256, 256), "db4", 3, "float32"),
    ("swtn", (128, 128, 128), "db2", 2, "float32"),
    ("swt", (1024,), "db4", 3, "float64"),
    ("swt", (64,), "db4", 3, "float64"),
]
SIDES = (1024, 4096)  # of images on a GPU


def works(name: str, x: Any, wavelet: str, level: int) -> dict[str, Callable[[], Any]]:
    """What both packages compute."""
    import pywt

    if name == "modwt":
        return {
            "PyWavelets": lambda: pywt.swt(x, wavelet, level, trim_approx=True),
            "undula": lambda: undula.modwt(x, wavelet, level),
        }
    if name.startswith("i"):
        coeffs = getattr(pywt, name[1:])(x, wavelet, level)
        return {
            "PyWavelets": lambda: getattr(pywt, name)(coeffs, wavelet),
            "undula": lambda: getattr(undula, name)(coeffs, wavelet),
        }
    return {
        "PyWavelets": lambda: getattr(pywt, name)(x, wavelet, level),
        "undula": lambda: getattr(undula, name)(x, wavelet, level),
    }


def measured(name: str, shape: tuple[int, ...], wavelet: str, level: int, dtype: str) -> dict[str, Any]:
    """Measure a call in both packages, and print the row."""
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    times = in_turns(works(name, x, wavelet, level))
    size = "×".join(map(str, shape))
    ratio = times["PyWavelets"] / times["undula"]
    head = f"{name}({size}), {level} levels, {wavelet}, {dtype}"
    print(f"{head:<56}{times['PyWavelets']:>11.3f}{times['undula']:>11.3f}{ratio:>8.1f}", flush=True)
    row = {"function": name, "shape": shape, "wavelet": wavelet, "level": level, "dtype": dtype}
    return row | {"times": {key: round(took, 4) for key, took in times.items()}}


def on_gpu(side: int, levels: int = 3) -> dict[str, Any]:
    """Measure a plan on a GPU beside the time that its bytes take at the speed of a copy."""
    shape = (side, side)
    plan = undula.Plan(shape, "db4", level=levels, transform="swt", dtype="float32", backend="cuda")
    resident, runs, forward = plan.resident(), 50, float("inf")
    for _ in range(5):
        resident.finish()
        begin = time.perf_counter()
        for _ in range(runs):
            resident.forward()
        resident.finish()
        forward = min(forward, (time.perf_counter() - begin) / runs)
    # Each level reads an image and writes four; a copy reads one and writes one.
    floor = levels * 5 / 2 * undula.ceilings("cuda").copy(side * side * 4)
    times = f"{1e6 * forward:.0f} µs, floor {1e6 * floor:.0f} µs: {floor / forward:.2f}"
    print(f"swt2 {side}², {levels} levels: {times}")
    return {"side": side, "levels": levels, "us": 1e6 * forward, "floor_us": 1e6 * floor}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cuda", action="store_true", help="measure on a GPU")
    parser.add_argument("--save", action="store_true", help="save the figures")
    arguments = parser.parse_args()
    where = machine()
    print(", ".join(f"{key} {value}" for key, value in where.items()))
    if arguments.cuda:
        results = [on_gpu(side) for side in SIDES]
    else:
        print("milliseconds, best of several; in the last column, how many times as long PyWavelets takes")
        print(f"{'':<56}{'PyWavelets':>11}{'undula':>11}{'ratio':>8}")
        results = [measured(*case) for case in CASES]
    if arguments.save:
        file = ROOT / "results" / ("stationary_gpu.json" if arguments.cuda else "stationary.json")
        text = json.dumps({"machine": where, "unit": "ms", "results": results}, indent=1, ensure_ascii=False)
        file.write_text(text + "\n", encoding="utf-8")
        print(f"saved to {file.relative_to(ROOT.parent)}")


if __name__ == "__main__":
    main()
