"""How denoising and a transform of a large image gain from threads.

    python benchmarks/threads.py           run everything, about a minute
    python benchmarks/threads.py --save    save the figures to benchmarks/results/threads.json

The memory of results is kept between runs, as it is in a program that filters many images.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from cpu import machine

import undula

ROOT = Path(__file__).parent
SIDE = 4096
RUNS = 7


def best_of(work: Callable[[], Any]) -> float:
    """The least time of several runs, in milliseconds."""
    work()
    work()
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        work()
        times.append(1e3 * (time.perf_counter() - start))
    return round(min(times), 2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--save", action="store_true", help="save the figures")
    arguments = parser.parse_args()
    x = (np.random.default_rng(0).standard_normal((SIDE, SIDE)) + 5).astype("float32")
    plan = undula.Plan(x.shape, "bior4.4", level=4, dtype="float32")
    out = plan.empty()
    cores, counts = undula.get_num_threads(), [1]
    while 2 * counts[-1] <= cores:
        counts.append(2 * counts[-1])
    rows: list[dict[str, Any]] = []
    for threads in counts:
        undula.set_num_threads(threads)
        row = {
            "threads": threads,
            "denoise": best_of(lambda: undula.denoise(x)),
            "wavedec2": best_of(lambda: plan.forward(x, out=out)),
        }
        rows.append(row)
        gains = ", ".join(
            f"{name} {row[name]} ms ({rows[0][name] / row[name]:.2f} ×)" for name in ("denoise", "wavedec2")
        )
        print(f"{threads} threads: {gains}", flush=True)
    if arguments.save:
        result = {"machine": machine(), "unit": "ms", "shape": [SIDE, SIDE], "results": rows}
        file = ROOT / "results" / "threads.json"
        file.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"saved to {file.relative_to(ROOT.parent)}")


if __name__ == "__main__":
    main()
