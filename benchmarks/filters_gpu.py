"""Analysis, shrinkage and synthesis of frames that are on a GPU, beside a copy of them.

    python benchmarks/filters_gpu.py               a table, about a minute
    python benchmarks/filters_gpu.py --save FILE   keep the figures

Three levels of CDF 9/7 and soft thresholds, as Nielsen (NTNU, 2007) filters ultrasound; then whole functions.
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
    """One frame after the other through a plan, into arrays that exist."""
    x = gpu.noise((n, n), getattr(torch, dtype))
    plan = undula.Plan((n, n), "bior4.4", level=3, dtype=dtype, backend="cuda")
    limits = torch.full((3, 2, 3), 20.0, device="cuda")
    coeffs = plan.forward(x)
    y = torch.empty_like(x)

    def work() -> None:
        plan.forward(x, out=coeffs)
        plan.inverse(coeffs, out=y, rule="soft", limits=limits)

    floor, whole = gpu.copied(x), gpu.median(work, ahead=300_000)
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
        f"{n:5}² {dtype}: copy {floor:6.1f} µs, three stages {whole:6.1f} µs ({whole / floor:.2f} ×),"
        f" without thresholds {apart:6.1f}; {1 / each:,.0f} frames/s"
    )
    return {"n": n, "dtype": dtype, "copy": floor, "whole": whole, "plain": apart, "fps": 1 / each}


def functions(n: int) -> list[Row]:
    """Whole functions on one image."""
    x = gpu.noise((n, n))
    found = []
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
        found.append({"n": n, "what": name, "ms": each})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--save", type=Path, help="keep the figures")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {
        "machine": torch.cuda.get_device_name(),
        "date": date.today().isoformat(),
        "undula": undula.__version__,
        "frames": [
            *(frames(n) for n in (512, 1024, 2048, 4096, 8192)),
            *(frames(n, "float16") for n in (2048, 8192)),
        ],
        "functions": [*functions(512), *functions(2048)],
    }
    if given.save:
        given.save.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
