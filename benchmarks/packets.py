"""Wavelet packets: all nodes of a level, Undula compared with PyWavelets.

    python benchmarks/packets.py            run everything, about a minute
    python benchmarks/packets.py --quick    run the headline figures
    python benchmarks/packets.py --save     save the figures to benchmarks/results/packets.json

The figures of a row are measured alternately in one run; each is the best of several, and only their ratios
matter. A tree is built from the samples each time, by ``get_level``; ``reconstruct`` is its inverse.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pywt
from cpu import in_turns, machine

import undula

ROOT = Path(__file__).parent
CASES = [
    ("WaveletPacket", (2**20,), "db4", 5, "float32"),
    ("WaveletPacket2D", (1024, 1024), "db4", 3, "float32"),
    ("WaveletPacket", (2**20,), "db4", 5, "float64"),
    ("WaveletPacket", (1024,), "db4", 5, "float64"),
    ("WaveletPacket", (2**20,), "haar", 10, "float32"),
    ("WaveletPacket2D", (1024, 1024), "bior4.4", 3, "float32"),
    ("WaveletPacket2D", (1024, 1024), "db4", 3, "float64"),
    # PyWavelets does not reconstruct volumes of odd lengths, which longer filters lead to.
    ("WaveletPacketND", (128, 128, 128), "haar", 2, "float32"),
]
HEADLINES = 2


def works(
    package: Any, kind: str, x: Any, wavelet: str, level: int
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """What builds a tree down to a level, and what reconstructs the samples of such a tree."""
    build = getattr(package, kind)
    tree = build(x, wavelet, "symmetric", level)
    tree.get_level(level)
    return (
        lambda: build(x, wavelet, "symmetric", level).get_level(level),
        lambda: tree.reconstruct(update=False),
    )


def measured(kind: str, shape: tuple[int, ...], wavelet: str, level: int, dtype: str) -> list[dict[str, Any]]:
    """Measure both directions, and print their rows."""
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    theirs, ours = (works(package, kind, x, wavelet, level) for package in (pywt, undula))
    rows = []
    for name, their_work, our_work in zip(("get_level", "reconstruct"), theirs, ours, strict=True):
        times = in_turns({"PyWavelets": their_work, "undula": our_work})
        size = "×".join(map(str, shape))
        ratio = times["PyWavelets"] / times["undula"]
        print(
            f"{f'{kind}({size}) {name}({level}), {wavelet}, {dtype}':<66}"
            f"{times['PyWavelets']:>10.2f}{times['undula']:>10.2f}{ratio:>8.1f}",
            flush=True,
        )
        row = {"class": kind, "method": name, "shape": shape, "wavelet": wavelet, "level": level}
        rows.append(row | {"dtype": dtype, "times": {key: round(took, 3) for key, took in times.items()}})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="run the headline figures")
    parser.add_argument("--save", action="store_true", help="save the figures")
    arguments = parser.parse_args()
    where = machine()
    print(", ".join(f"{key} {value}" for key, value in where.items()))
    print("milliseconds, best of several; in the last column, how many times as long PyWavelets takes")
    print(f"{'':<66}{'PyWavelets':>10}{'undula':>10}{'ratio':>8}")
    cases = CASES[:HEADLINES] if arguments.quick else CASES
    results = [row for case in cases for row in measured(*case)]
    if arguments.save:
        file = ROOT / "results" / "packets.json"
        text = json.dumps({"machine": where, "unit": "ms", "results": results}, indent=1, ensure_ascii=False)
        file.write_text(text + "\n", encoding="utf-8")
        print(f"saved to {file.relative_to(ROOT.parent)}")


if __name__ == "__main__":
    main()
