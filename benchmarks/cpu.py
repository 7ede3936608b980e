"""The CPU engine compared with a copy of the same bytes, PyWavelets, ndwt and ptwt (each if installed).

    python benchmarks/cpu.py            run everything, a few minutes
    python benchmarks/cpu.py --quick    run the headline figures
    python benchmarks/cpu.py --save     save the figures to benchmarks/results/, and draw the plot of the docs

The figures of a row are measured alternately in one run; each is the best of several, and only their ratios
matter. The lower bound is a copy of the same bytes by as many threads as the transform uses.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import platform
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import undula

ROOT = Path(__file__).parent
Array = NDArray[Any]
WAVELETS = {"CDF 9/7": "bior4.4", "CDF 5/3": "bior2.2", "db2": "db2", "db8": "db8", "coif3": "coif3"}
NDWT_NAMES = {
    "bior4.4": "CDF9_7",
    "bior2.2": "CDF5_3",
    "db2": "Daubechies2",
    "db8": "Daubechies8",
    "coif3": "Coiflet3",
}
FLOOR = ThreadPoolExecutor(max(1, undula.get_num_threads()))
BUDGET_S = 1.0  # Approximate time for a row; slow packages run once.


def module(name: str) -> Any:
    """Import a package, or return None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


pywt, ndwt, ptwt = module("pywt"), module("ndwt"), module("ptwt")


def in_turns(works: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The best time of each, in milliseconds, measured alternately under the same conditions."""
    best = dict.fromkeys(works, math.inf)
    spent = dict.fromkeys(works, 0.0)
    for name, work in works.items():
        if name != "PyWavelets":
            work()  # Compile, and touch the memory.
    for _ in range(20):
        for name, work in works.items():
            for _ in range(3):  # Only the first run finds the caches of another package.
                if spent[name] > BUDGET_S / 3 and best[name] < math.inf:
                    continue
                start = time.perf_counter()
                work()
                took = time.perf_counter() - start
                best[name], spent[name] = min(best[name], took), spent[name] + took
    return {name: 1e3 * took for name, took in best.items()}


def copy(x: Array, target: Array) -> Callable[[], None]:
    """Copy an array to another one with all threads."""
    pieces = undula.get_num_threads()
    lines, copies = x.reshape(-1), target.reshape(-1)
    cuts = [slice(x.size * k // pieces, x.size * (k + 1) // pieces) for k in range(pieces)]

    def run() -> None:
        others = [FLOOR.submit(np.copyto, copies[cut], lines[cut]) for cut in cuts[1:]]
        np.copyto(copies[cuts[0]], lines[cuts[0]])
        for other in others:
            other.result()

    return run


def torch_ptwt() -> tuple[Any, Any] | None:
    if ptwt is None:
        return None
    torch = importlib.import_module("torch")
    torch.set_num_threads(undula.get_num_threads())
    return torch, ptwt


def image(
    size: tuple[int, ...], wavelet: str, levels: int, dtype: str, back: bool, peers: bool = True
) -> dict[str, float]:
    """Measure one shape and wavelet: Undula, also with preallocated arrays, a copy, and other packages."""
    x = np.random.default_rng(0).random(size).astype(dtype)
    axes = tuple(range(-min(len(size), 3 if len(size) == 3 and size[-1] > 4 else 2), 0))
    if len(size) == 3 and size[-1] <= 4:
        axes = (0, 1)
    plan = undula.Plan(size, wavelet, level=levels, axes=axes, dtype=dtype)
    coeffs = plan.forward(x)
    preallocated, samples, target = plan.empty(), np.empty_like(x), np.empty_like(x)
    form = {1: "wavedec", 2: "wavedec2"}.get(len(axes), "wavedecn")
    options: dict[str, Any] = {"axis": axes[0]} if len(axes) == 1 else {"axes": axes}
    works: dict[str, Callable[[], Any]] = {"copy": copy(x, target)}
    if back:
        rec = form.replace("dec", "rec")
        works["undula, out="] = lambda: plan.inverse(coeffs, out=samples)
        works["undula"] = lambda: getattr(undula, rec)(coeffs, wavelet, **options)
        if pywt and peers:
            works["PyWavelets"] = lambda: getattr(pywt, rec)(coeffs, wavelet, **options)
    else:
        works["undula, out="] = lambda: plan.forward(x, out=preallocated)
        works["undula"] = lambda: getattr(undula, form)(x, wavelet, level=levels, **options)
        if pywt and peers:
            works["PyWavelets"] = lambda: getattr(pywt, form)(x, wavelet, level=levels, **options)
        add_ndwt(works, x, wavelet, levels, axes if peers else ())
        add_ptwt(works, x, wavelet, levels, axes if peers else ())
    return in_turns(works)


def add_ndwt(
    works: dict[str, Callable[[], Any]], x: Array, wavelet: str, levels: int, axes: tuple[int, ...]
) -> None:
    """Add the lifting transform of ndwt, if it has the wavelet."""
    if ndwt is None or len(axes) != 2 or x.ndim != 2:
        return
    theirs = getattr(ndwt.Wavelet, NDWT_NAMES.get(wavelet, ""), None)
    if theirs is not None:
        works["ndwt"] = lambda: ndwt.lwt(theirs, x, level=levels)


def add_ptwt(
    works: dict[str, Callable[[], Any]], x: Array, wavelet: str, levels: int, axes: tuple[int, ...]
) -> None:
    packages = torch_ptwt() if len(axes) == 2 and x.ndim == 2 else None
    if packages is None or pywt is None:
        return
    torch, transforms = packages
    tensor = torch.from_numpy(x)[None]
    theirs = pywt.Wavelet(wavelet)
    works["ptwt"] = lambda: transforms.wavedec2(tensor, theirs, level=levels, mode="symmetric")


# --- rows of the table ----------------------------------------------------------------------------


def rows(quick: bool) -> list[dict[str, Any]]:
    """The rows to measure, as arguments of :func:`measure`."""
    selection: list[dict[str, Any]] = []

    def row(shape: tuple[int, ...], name: str, levels: int = 1, dtype: str = "f4", **more: Any) -> None:
        selection.append({"shape": shape, "wavelet": name, "levels": levels, "dtype": dtype, **more})

    sizes = (64, 512, 4096) if quick else (64, 128, 256, 512, 1024, 2048, 4096, 8192)
    for n in sizes:
        for back in (False, True):
            row((n, n), "CDF 9/7", back=back)
    for n in (4096,) if quick else (512, 4096, 8192):
        for levels in (3, 5):
            for back in (False, True):
                row((n, n), "CDF 9/7", levels, back=back)
    row((1080, 1920, 3), "CDF 9/7", 3)
    row((256, 256, 256), "CDF 9/7")
    if quick:
        return selection
    for threads in (1,):
        for back in (False, True):
            row((4096, 4096), "CDF 9/7", back=back, threads=threads)
    for name in (*list(WAVELETS)[1:], "coif15"):
        for back in (False, True):
            row((2048, 2048), name, back=back)
    for name in WAVELETS:
        row((2048, 2048), name, dtype="f8")
    row((4096, 4096), "coif15")
    row((10_000_000,), "CDF 9/7")
    row((10_000_000,), "CDF 9/7", 5)
    row((10_000, 1000), "CDF 9/7", lines=True)
    row((2000, 64, 64), "CDF 9/7", batch=True)
    return selection


def measure(row: dict[str, Any]) -> dict[str, float]:
    wavelet = WAVELETS.get(row["wavelet"], row["wavelet"])
    shape, dtype = row["shape"], row["dtype"]
    undula.set_num_threads(row.get("threads"))
    try:
        if row.get("lines") or row.get("batch"):
            return many(shape, wavelet, dtype)
        return image(shape, wavelet, row["levels"], dtype, row.get("back", False))
    finally:
        undula.set_num_threads(None)


def many(shape: tuple[int, ...], wavelet: str, dtype: str) -> dict[str, float]:
    """Measure a batch of short lines or small images."""
    x = np.random.default_rng(0).random(shape).astype(dtype)
    target = np.empty_like(x)
    axes = (-1,) if len(shape) == 2 else (-2, -1)
    plan = undula.Plan(shape, wavelet, level=1, axes=axes, dtype=dtype)
    preallocated = plan.empty()
    works: dict[str, Callable[[], Any]] = {
        "copy": copy(x, target),
        "undula, out=": lambda: plan.forward(x, out=preallocated),
        "undula": lambda: undula.dwtn(x, wavelet, axes=axes),
    }
    if pywt:
        works["PyWavelets"] = lambda: pywt.dwtn(x, wavelet, axes=axes)
    return in_turns(works)


def label(row: dict[str, Any]) -> str:
    shape = "×".join(map(str, row["shape"]))
    if row["shape"][-1:] * 2 == row["shape"]:
        shape = f"{row['shape'][0]}²"
    words = [shape, row["wavelet"], row["dtype"].replace("f4", "float32").replace("f8", "float64")]
    words.append(f"{row['levels']} level{'s' * (row['levels'] > 1)}")
    words.append("inverse" if row.get("back") else "forward")
    if row.get("threads"):
        words.append(f"{row['threads']} thread")
    return ", ".join(words)


HEAD = f"{'':<52}{'copy':>8}{'undula':>9}{'out=':>9}{'× copy':>8}   times faster than"


def line(row: dict[str, Any], times: dict[str, float]) -> str:
    ours, best = times["undula"], times["undula, out="]
    peers = [f"{name} {times[name] / ours:.1f}" for name in ("PyWavelets", "ndwt", "ptwt") if name in times]
    return (
        f"{label(row):<52}{times['copy']:>8.2f}{ours:>9.2f}{best:>9.2f}{best / times['copy']:>8.2f}"
        f"   {', '.join(peers)}"
    )


def machine() -> dict[str, Any]:
    """Describe the machine and the versions."""
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [text.split(":")[1].strip() for text in info.read_text().splitlines() if "model name" in text]
        processor = names[0] if names else processor
    versions = {}
    for name in ("numpy", "llvmlite", "PyWavelets", "ndwt", "ptwt", "torch"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "date": date.today().isoformat(),
        "processor": processor,
        "threads": undula.get_num_threads(),
        "python": platform.python_version(),
        "undula": undula.__version__,
        **versions,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="run only the headline figures")
    parser.add_argument("--save", action="store_true", help="save the figures for the docs")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", "Level value")
    where = machine()
    print(", ".join(f"{key} {value}" for key, value in where.items()))
    print(f"milliseconds, best of several\n{HEAD}")
    results = []
    for row in rows(arguments.quick):
        times = measure(row)
        results.append({**row, "times": times})
        print(line(row, times), flush=True)
    if arguments.save:
        (ROOT / "results").mkdir(exist_ok=True)
        file = ROOT / "results" / "cpu.json"
        file.write_text(json.dumps({"machine": where, "results": results}, indent=1) + "\n", encoding="utf-8")
        print(f"saved to {file.relative_to(ROOT.parent)}; make pages draws it")


if __name__ == "__main__":
    main()
