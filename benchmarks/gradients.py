"""Forward and backward of the DWT in PyTorch, beside ptwt and pytorch_wavelets.

``python benchmarks/gradients.py`` measures on the CPU, ``--cuda`` on a GPU; ``--save`` writes the figures to
``benchmarks/results``. Peers that cannot be imported are left out. All are measured in turn, and the shortest
time of each counts.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import types
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import torch

import undula
from undula.torch import DWTForward

LEVELS, WAVELET, MODE = 3, "db2", "zero"
Forward = Callable[[Any], list[Any]]


def flat(nested: Any) -> list[Any]:
    if isinstance(nested, torch.Tensor):
        return [nested]
    return [tensor for part in nested for tensor in flat(part)]


def forwards(device: str) -> dict[str, Forward]:
    layer = DWTForward(LEVELS, WAVELET, MODE).to(device)
    calls: dict[str, Forward] = {
        "undula": lambda x: flat(undula.wavedec2(x, WAVELET, MODE, LEVELS)),
        "undula.torch": lambda x: flat(layer(x)),
    }
    try:
        import ptwt

        calls["ptwt"] = lambda x: flat(ptwt.wavedec2(x, WAVELET, mode=MODE, level=LEVELS))
    except ImportError as error:
        print(f"ptwt: {error}")
    try:
        # It reads a data file for another transform by a module that setuptools no longer has.
        sys.modules.setdefault("pkg_resources", types.ModuleType("pkg_resources"))
        sys.modules["pkg_resources"].__dict__.setdefault("resource_stream", None)
        import pytorch_wavelets

        peer = pytorch_wavelets.DWTForward(J=LEVELS, wave=WAVELET, mode=MODE).to(device)
        calls["pytorch_wavelets"] = lambda x: flat(peer(x))
    except ImportError as error:
        print(f"pytorch_wavelets: {error}")
    return calls


def synchronise(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def shortest(calls: dict[str, Callable[[], Any]], device: str, repeats: int) -> dict[str, float]:
    best = dict.fromkeys(calls, float("inf"))
    for number in range(repeats + 2):
        for name, call in calls.items():
            synchronise(device)
            start = time.perf_counter()
            call()
            synchronise(device)
            if number > 1:
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def backward(forward: Forward, x: Any) -> None:
    bands = forward(x)
    torch.autograd.grad(bands, x, [band.detach() for band in bands])


def host_time(forward: Forward, device: str) -> float:
    """Microseconds of a forward call of a small image that requires a gradient."""
    x = torch.randn(64, 64, device=device, requires_grad=True)
    best = float("inf")
    for _ in range(300):
        start = time.perf_counter()
        for _ in range(10):
            forward(x)
        best = min(best, (time.perf_counter() - start) / 10)
        synchronise(device)
    return best * 1e6


def peak_memory(forward: Forward, x: Any) -> float:
    """Peak memory of a forward call that records gradients, relative to the size of its results."""
    bands = forward(x)
    size = sum(band.numel() * band.element_size() for band in bands)
    del bands
    synchronise("cuda")
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    forward(x)
    synchronise("cuda")
    return (torch.cuda.max_memory_allocated() - before) / size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuda", action="store_true", help="measure on a GPU")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--save", action="store_true", help="write the figures to benchmarks/results")
    options = parser.parse_args()
    device = "cuda" if options.cuda else "cpu"
    shape = (16, 64, 256, 256) if options.cuda else (8, 3, 512, 512)
    x = torch.randn(shape, device=device, requires_grad=True)
    calls = forwards(device)
    expected = calls["undula"](x)[0]
    for name, call in calls.items():
        torch.testing.assert_close(call(x)[0], expected, rtol=1e-4, atol=1e-4, msg=f"{name} differs")
    figures: dict[str, dict[str, float]] = {name: {} for name in calls}
    alone = shortest({name: lambda f=f: f(x) for name, f in calls.items()}, device, options.repeats)
    both = shortest({name: lambda f=f: backward(f, x) for name, f in calls.items()}, device, options.repeats)
    for name, call in calls.items():
        row = figures[name]
        row["forward_ms"], row["both_ms"] = alone[name] * 1e3, both[name] * 1e3
        row["relative"] = both[name] / both["undula"]
        small = (lambda y, f=call: f(y[None, None])) if name in ("undula.torch", "pytorch_wavelets") else call
        row["host_us"] = host_time(small, device)
        if options.cuda:
            row["peak"] = peak_memory(call, x)
    heads = ["", *next(iter(figures.values()))]
    print(f"{shape}, {WAVELET}, {LEVELS} levels, {device}, torch {torch.__version__}")
    print(" ".join(f"{head:>16}" for head in heads))
    for name, row in figures.items():
        print(f"{name:>16} " + " ".join(f"{value:16.2f}" for value in row.values()))
    if options.save:
        machine = torch.cuda.get_device_name() if options.cuda else platform.processor() or platform.machine()
        packages = {"torch": torch.__version__, "undula": undula.__version__}
        result = {
            "shape": shape, "wavelet": WAVELET, "levels": LEVELS, "machine": machine,
            "date": date.today().isoformat(), "threads": torch.get_num_threads(), "packages": packages,
            "figures": figures,
        }  # fmt: skip
        path = Path(__file__).parent / "results" / f"gradients-{device}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
