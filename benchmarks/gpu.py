"""The GPU engine compared with a copy of the same bytes on the device, and with packages for PyTorch.

    python benchmarks/gpu.py            run everything, about two minutes
    python benchmarks/gpu.py --quick    run the headline figures
    python benchmarks/gpu.py --save     save the figures to benchmarks/results/gpu.json

This needs an NVIDIA GPU, and PyTorch for allocation and timing. Every figure is the median of many runs
between two events, with all data on the device. Only the ratio to a copy in the same run matters.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import torch

import undula

ROOT = Path(__file__).parent
NAMES = {"CDF 9/7": "cdf97", "CDF 5/3": "cdf53", "DD 13/7": "dd137"}
Row = dict[str, Any]


def median(work: Callable[[], Any], runs: int = 41, ahead: int = 400_000) -> float:
    """Median microseconds between two events; the device sleeps ``ahead`` cycles while the host queues."""
    for _ in range(5):
        work()
    times = []
    for _ in range(runs):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(ahead)  # The host gets ahead, so that the device never waits for it.
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(1e3 * begin.elapsed_time(end))
    return statistics.median(times)


def noise(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return (100 + 30 * torch.randn(shape, device="cuda")).to(dtype)


def copied(x: torch.Tensor) -> float:
    """Median microseconds of a copy, the lower bound."""
    target = torch.empty_like(x)
    return median(lambda: target.copy_(x))


def both(shape: tuple[int, ...], name: str, level: int, **options: Any) -> tuple[float, float]:
    """Median microseconds of a plan, forward and inverse, into preallocated arrays."""
    dtype = options.pop("dtype", "float32")
    x = noise(shape, getattr(torch, dtype))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = undula.Plan(shape, name, level=level, dtype=dtype, backend="cuda", **options)
    coeffs = plan.forward(x)
    back = plan.inverse(coeffs)
    forward = median(lambda: plan.forward(x, out=coeffs))
    return forward, median(lambda: plan.inverse(coeffs, out=back))


def row(what: str, shape: tuple[int, ...], name: str, level: int, **options: Any) -> Row:
    """Measure one row of the table."""
    floor = copied(noise(shape, getattr(torch, options.get("dtype", "float32"))))
    forward, back = both(shape, name, level, **options)
    record = {
        "what": what, "shape": list(shape), "wavelet": name, "level": level, "copy": floor,
        "forward": forward, "back": back, "ratio": floor / forward, "ratio_back": floor / back,
    }  # fmt: skip
    print(
        f"{what:34} {'×'.join(map(str, shape)):>16} copy {floor:8.1f}  forward {forward:8.1f}"
        f" ({floor / forward:.2f})  back {back:8.1f} ({floor / back:.2f})",
        flush=True,
    )
    return record


def sizes(quick: bool) -> list[Row]:
    square = (
        [(8192, 8192), (4096, 4096)]
        if quick
        else [(16384,) * 2, (8192,) * 2, (4096,) * 2, (2048,) * 2, (1024,) * 2]
    )
    rows = []
    for shape in square:
        for mode in ("symmetric", "periodization"):
            for level in (1, 5):
                rows.append(row(f"CDF 9/7 {mode} {level} level(s)", shape, "bior4.4", level, mode=mode))
    if quick:
        return rows
    for title, name in (("CDF 5/3", "bior2.2"), ("Haar", "haar"), ("db8", "db8"), ("db8 filters", "db8")):
        extra = {"method": "filters"} if "filters" in title else {}
        rows.append(row(f"{title} periodization", (8192, 8192), name, 1, mode="periodization", **extra))
    rows.append(row("volume, 1 level", (512, 512, 512), "bior4.4", 1, mode="periodization"))
    rows.append(row("signal, 8 levels", (1 << 28,), "bior4.4", 8, mode="periodization"))
    rows.append(row("batch, 1 level", (1000, 256, 256), "bior4.4", 1, axes=(1, 2), mode="periodization"))
    rows.append(row("float16, 1 level", (8192, 8192), "bior4.4", 1, dtype="float16", mode="periodization"))
    rows.append(row("1080p RGB interleaved, 3 levels", (1080, 1920, 3), "bior4.4", 3, axes=(0, 1)))
    return rows


def strategies() -> list[Row]:
    """Every strategy and scheme on one image, as in the paper's figures."""
    shape, rows = (4096, 4096), []
    floor = copied(noise(shape))
    ways: list[dict[str, str]] = [{"strategy": "naive"}]
    ways += [{"strategy": "rowcolumn", "method": method} for method in ("filters", "lifting")]
    ways += [{"scheme": name} for name in undula.SCHEMES]
    ways += [{"strategy": "sliding"}]
    for title, name in NAMES.items():
        for way in ways:
            try:
                forward, back = both(shape, name, 1, **way)
            except undula.UndulaError as error:
                print(title, way, error)
                continue
            label = way.get("scheme") or " ".join(way.values())
            rows.append({"wavelet": title, "way": label, "copy": floor, "forward": forward, "back": back})
            print(
                f"{title:8} {label:20} forward {forward:8.1f} ({floor / forward:.2f})  back {back:8.1f}",
                flush=True,
            )
    return rows


def _peers(x: torch.Tensor) -> Iterator[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    """Those that are installed: a level forward, and back."""
    with suppress(ImportError):
        from pytorch_wavelets import DWTForward, DWTInverse

        there = DWTForward(J=1, wave="bior4.4", mode="symmetric").cuda()
        back = DWTInverse(wave="bior4.4", mode="symmetric").cuda()
        made = there(x)
        yield "pytorch_wavelets", lambda: there(x), lambda: back(made)
    with suppress(ImportError):
        import ptwt

        theirs = ptwt.wavedec2(x[0], "bior4.4", mode="symmetric", level=1)
        yield (
            "ptwt",
            lambda: ptwt.wavedec2(x[0], "bior4.4", mode="symmetric", level=1),
            lambda: ptwt.waverec2(theirs, "bior4.4"),
        )


def peers() -> list[Row]:
    """PyTorch's packages, on the same images."""
    rows = []
    for n in (1024, 4096, 8192):
        x = noise((1, 1, n, n))
        for peer, there, back in _peers(x):
            rows.append({"peer": peer, "n": n, "forward": median(there, 11), "back": median(back, 11)})
        forward, inverse = both((n, n), "bior4.4", 1)
        rows.append({"peer": "undula", "n": n, "forward": forward, "back": inverse})
    for line in rows:
        print(
            f"{line['peer']:18} {line['n']:6} forward {line['forward']:10.1f}  back {line['back']:10.1f}",
            flush=True,
        )
    return rows


def host_times() -> Row:
    """What a call costs on the host, and the first call on a new shape when kernels are on disk."""
    x = noise((1024, 1024))
    plan = undula.Plan(x.shape, "bior4.4", level=5, dtype="float32", backend="cuda", mode="periodization")
    coeffs = plan.forward(x)
    for _ in range(50):
        plan.forward(x, out=coeffs)
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(200):
        plan.forward(x, out=coeffs)
    host = (time.perf_counter() - start) / 200
    torch.cuda.synchronize()
    first = []
    undula.wavedec2(noise((1400, 1402)), "bior4.4", level=3)  # (kernels that are not on disk yet)
    for n in (1500, 1502, 1600, 1700):
        y = noise((n, n + 2))
        torch.cuda.synchronize()
        start = time.perf_counter()
        undula.wavedec2(y, "bior4.4", level=3)
        torch.cuda.synchronize()
        first.append(time.perf_counter() - start)
    made = {"reused_plan_us": 1e6 * host, "first_calls_ms": [1e3 * t for t in first]}
    print(f"a reused plan costs the host {made['reused_plan_us']:.1f} µs")
    print("first calls on new shapes, ms:", *(f"{t:.1f}" for t in made["first_calls_ms"]))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="the headline figures only")
    parser.add_argument("--save", type=Path, nargs="?", const=ROOT / "results" / "gpu.json", help="keep them")
    given = parser.parse_args()
    results: dict[str, Any] = {
        "machine": torch.cuda.get_device_name(),
        "date": date.today().isoformat(),
        "undula": undula.__version__,
        "torch": torch.__version__,
    }
    print(results)
    results["sizes"] = sizes(given.quick)
    results["host"] = host_times()
    if not given.quick:
        results["strategies"] = strategies()
        results["peers"] = peers()
    if given.save:
        given.save.parent.mkdir(exist_ok=True)
        given.save.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
