"""Pyramids of OME-Zarr: time and memory of Undula, ome-zarr-py and ngff-zarr, from a Zarr array to an image.

    python benchmarks/pyramid.py               a stack of 30 × 4000 × 4000 samples of 16 bits, five levels
    python benchmarks/pyramid.py --save        save the figures to benchmarks/results/pyramid.json
    python benchmarks/pyramid.py --slices 4    a smaller stack

Needs ``ome-zarr`` and ``ngff-zarr[validate]``, which may need an environment of their own. Every builder runs
in a process of its own, with the methods that it offers, reads the same array in chunks of 1 × 1024 × 1024
and halves y and x four times. Builders run in turn, three rounds. Times are medians, without imports;
memory is the largest resident set of all rounds. The image of Undula is checked against the schema of
OME-Zarr 0.5 that ngff-zarr carries, and opened by ome-zarr.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROOT = Path(__file__).parent
CHUNKS = (1, 1024, 1024)
LEVELS = 4
ROUNDS = 3
SLOW_S = 60  # Methods that take longer run once.
FACTORS = [{"z": 1, "y": 2**level, "x": 2**level} for level in range(1, LEVELS + 1)]


def undula_builder(wavelet: str) -> Callable[[str, str], None]:
    from undula import stores

    def build(source: str, target: str) -> None:
        stores.pyramid(source, target, wavelet, LEVELS, axes=(1, 2))

    return build


def ome_zarr_builder(method: str) -> Callable[[str, str], None]:
    import dask.array as da
    from ome_zarr.scale import Methods
    from ome_zarr.writer import write_image

    def build(source: str, target: str) -> None:
        options = {"axes": "zyx", "storage_options": {"chunks": CHUNKS}}
        factors: Any = FACTORS
        write_image(da.from_zarr(source), target, scale_factors=factors, method=Methods(method), **options)

    return build


def ngff_zarr_builder(method: str) -> Callable[[str, str], None]:
    import dask.array as da
    import ngff_zarr

    def build(source: str, target: str) -> None:
        image = ngff_zarr.to_ngff_image(da.from_zarr(source), dims=("z", "y", "x"))
        pyramid = ngff_zarr.to_multiscales(
            image,
            scale_factors=FACTORS,
            method=ngff_zarr.Methods(method),
            chunks=dict(zip("zyx", CHUNKS, strict=True)),
        )
        ngff_zarr.to_ngff_zarr(target, pyramid, version="0.5")

    return build


BUILDERS: dict[str, Callable[[str], Callable[[str, str], None]]] = {
    "undula": undula_builder,
    "ome-zarr": ome_zarr_builder,
    "ngff-zarr": ngff_zarr_builder,
}
METHODS = [
    ("undula", "cdf53"),
    ("undula", "cdf97"),
    ("undula", "haar"),
    ("ome-zarr", "resize"),
    ("ome-zarr", "nearest"),
    ("ngff-zarr", "itkwasm_gaussian"),
    ("ngff-zarr", "itkwasm_bin_shrink"),
    ("ngff-zarr", "dask_bin_shrink"),
]
UNDULA_METHODS = 3


def measure(package: str, method: str, source: str, target: str) -> None:
    """Build an image in this process, and print its time and the memory of the process."""
    build = BUILDERS[package](method)
    start = time.perf_counter()
    build(source, target)
    seconds = time.perf_counter() - start
    # Unlike the usage of resources, this begins with the program and not with the process that started it.
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    print(json.dumps({"seconds": seconds, "peak_mb": peak}))


def run_builder(package: str, method: str, source: str, target: str) -> dict[str, float]:
    """Build an image in a new process, and return its time and memory."""
    shutil.rmtree(target, ignore_errors=True)
    command = [sys.executable, __file__, "--measure", package, method, source, target]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    row: dict[str, float] = json.loads(text.splitlines()[-1])
    return row


def write_stack(path: str, slices: int, length: int) -> None:
    """Write slices of smooth structures with the noise of photons."""
    import zarr

    rng = np.random.default_rng(0)
    array = zarr.create_array(path, shape=(slices, length, length), chunks=CHUNKS, dtype="u2")
    y, x = np.mgrid[:length, :length].astype(np.float32)
    noise = rng.normal(0, 1, (length, length)).astype(np.float32)
    for number in range(slices):
        clean = 400 + 200 * np.sin(x / 90 + number / 5) * np.sin(y / 70) + 100 * np.sin(x * y / 4e5)
        array[number] = np.clip(clean + np.sqrt(clean) * np.roll(noise, 97 * number), 0, 65535).astype("u2")


def check(path: str, shape: tuple[int, ...]) -> None:
    """Validate the metadata of an image, and open it with ome-zarr."""
    import ngff_zarr
    import zarr
    from ome_zarr.io import parse_url
    from ome_zarr.reader import Reader

    ngff_zarr.validate(
        {"ome": dict(zarr.open_group(path, mode="r").attrs)["ome"]}, version="0.5", model="image"
    )
    (node,) = list(Reader(parse_url(path))())
    assert node.data[0].shape == shape
    assert len(node.data) == LEVELS + 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--slices", type=int, default=30)
    parser.add_argument("--length", type=int, default=4000)
    parser.add_argument("--folder", help="where to write, by default the folder for temporary files")
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(*arguments.measure)
        return
    shape = (arguments.slices, arguments.length, arguments.length)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        source, target = f"{folder}/source.zarr", f"{folder}/image.zarr"
        small = f"{folder}/small.zarr"
        write_stack(source, *shape[:2])
        write_stack(small, 1, min(1500, arguments.length))
        for package, method in METHODS[:UNDULA_METHODS]:  # Kernels are compiled once and kept on disk.
            run_builder(package, method, small, target)
        runs: dict[tuple[str, str], list[dict[str, float]]] = {key: [] for key in METHODS}
        for number in range(ROUNDS):
            for key, results in runs.items():
                if number and results[0]["seconds"] > SLOW_S:
                    continue
                results.append(run_builder(*key, source, target))
                if number == 0 and key == METHODS[0]:
                    check(target, shape)
        for (package, method), results in runs.items():
            times = [result["seconds"] for result in results]
            row: dict[str, Any] = {"package": package, "method": method, "seconds": median(times)}
            row |= {"all_seconds": times, "peak_mb": max(result["peak_mb"] for result in results)}
            rows.append(row)
            print(f"{package:10} {method:20} {row['seconds']:8.1f} s {row['peak_mb']:8.0f} MB  {times}")
    if arguments.save:
        packages = {name: version(name) for name in ("undula", "ome-zarr", "ngff-zarr", "zarr", "dask")}
        machine = {"machine": platform.machine(), "cores": os.cpu_count(), "date": str(date.today())}
        report = {"shape": shape, "levels": LEVELS, "rows": rows, "versions": packages, **machine}
        (ROOT / "results" / "pyramid.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
