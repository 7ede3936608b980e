"""Decomposition, shrinkage and reconstruction of frames on a GPU, compared with a copy.

    python benchmarks/filters_gpu.py               print a table, about a minute
    python benchmarks/filters_gpu.py --save FILE   save the figures

Three levels of CDF 9/7 and soft thresholds, as Nielsen (NTNU, 2007) filters ultrasound; and public functions.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from datetime import date
from pathlib import Path
from typing import Any

import gpu
import torch

import undula
from undula.filters import Pipeline, Shrink

Row = dict[str, Any]


def frames(n: int, dtype: str = "float32") -> Row:
    """Measure a plan, frame by frame, into preallocated arrays."""
    x = gpu.noise((n, n), getattr(torch, dtype))
    plan = undula.Plan((n, n), "bior4.4", level=3, dtype=dtype, backend="cuda")
    limits = torch.full((3, 2, 3), 20.0, device="cuda")
    coeffs = plan.forward(x)
    y = torch.empty_like(x)

    def work() -> None:
        plan.forward(x, out=coeffs)
        plan.inverse(coeffs, out=y, rule="soft", limits=limits)

    floor, filtered = gpu.copied(x), gpu.median(work, ahead=300_000)
    apart = gpu.median(lambda: (plan.forward(x, out=coeffs), plan.inverse(coeffs, out=y)), ahead=300_000)
    for _ in range(20):
        work()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(500):
        work()
    torch.cuda.synchronize()
    each = (time.perf_counter() - start) / 500
    print(
        f"{n:5}² {dtype}: copy {floor:6.1f} µs, three stages {filtered:6.1f} µs ({filtered / floor:.2f} ×),"
        f" without thresholds {apart:6.1f}; {1 / each:,.0f} frames/s"
    )
    return {"n": n, "dtype": dtype, "copy": floor, "whole": filtered, "plain": apart, "fps": 1 / each}


def functions(n: int) -> list[Row]:
    """Measure public functions on one image."""
    x = gpu.noise((n, n))
    rows = []
    works = {
        "Pipeline, given thresholds": Pipeline("bior4.4", 3, [Shrink("given", threshold=20.0)]),
        "Pipeline, Bayes": Pipeline("bior4.4", 3, [Shrink("bayes")]),
        "denoise, one shift": lambda y: undula.denoise(y, invariant=False),
        "denoise": undula.denoise,
    }
    for name, work in works.items():
        for _ in range(3):
            work(x)
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(20):
            work(x)
        torch.cuda.synchronize()
        each = 1e3 * (time.perf_counter() - start) / 20
        print(f"{n:5}² {name:28} {each:8.2f} ms")
        rows.append({"n": n, "what": name, "ms": each})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--save", type=Path, help="save the figures")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    results = {
        "machine": torch.cuda.get_device_name(),
        "date": date.today().isoformat(),
        "undula": undula.__version__,
        "frames": [
            *(frames(n) for n in (512, 1024, 2048, 4096, 8192)),
            *(frames(n, "float16") for n in (2048, 8192)),
        ],
        "functions": [*functions(512), *functions(2048)],
    }
    if arguments.save:
        arguments.save.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
