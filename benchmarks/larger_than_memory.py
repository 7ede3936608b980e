"""Denoise an array that is larger than memory, generated chunk by chunk, and reduced to checksums.

    python benchmarks/larger_than_memory.py --gigabytes 40 --workers 2 --save
    python benchmarks/larger_than_memory.py --gigabytes 6 --interrupted /tmp --save

Each worker has one thread and a memory limit. Checksums of some chunks are compared with those of a part of
the image that is denoised in memory.

With ``--interrupted``, the array is written to a Zarr store in a new folder there, and denoised to another
store twice: by one process without an interruption, and by a process that kills itself when half of the
regions are written, and another one that resumes. The two results are compared chunk by chunk, and all
stores are removed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import tempfile
import threading
import time
import zlib
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import psutil
from dask.distributed import Client, LocalCluster

import undula
import undula.stores
from undula.experiments.run import machine

RESULTS = Path(__file__).parent / "results"
CHUNK = 2048
SIGMA = 12.0


def generated(rows: slice, columns: slice) -> np.ndarray[Any, Any]:
    """Return a part of an endless image: waves and noise, which depend on the place alone."""
    y, x = np.arange(rows.start, rows.stop), np.arange(columns.start, columns.stop)
    clean = 100 + 50 * np.add.outer(np.sin(y / 97), np.cos(x / 61))
    rows_hashed = y.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    columns_hashed = x.astype(np.uint64) * np.uint64(0xC2B2AE3D27D4EB4F)
    place = np.add.outer(rows_hashed, columns_hashed)
    place ^= place >> np.uint64(29)
    place *= np.uint64(0xBF58476D1CE4E5B9)
    place ^= place >> np.uint64(32)
    # The sum of four uniform numbers is nearly normal.
    noise = sum((place >> np.uint64(16 * k) & np.uint64(0xFFFF)).astype(np.float32) for k in range(4))
    return (clean + SIGMA * (noise / 65536 - 2) / np.sqrt(1 / 3)).astype(np.float32)


def chunk(block_info: Any = None) -> np.ndarray[Any, Any]:
    (top, bottom), (left, right) = block_info[None]["array-location"]
    return generated(slice(top, bottom), slice(left, right))


def checksum(block: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.array([[zlib.crc32(np.ascontiguousarray(block))]], np.uint32)


class PeakMemory(threading.Thread):
    """The largest memory of this process and its children together."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak, self.done = 0, threading.Event()

    def run(self) -> None:
        """Look at all processes until this is done."""
        this = psutil.Process()
        while not self.done.wait(0.2):
            total = 0
            for process in (this, *this.children(recursive=True)):
                try:
                    total += process.memory_info().rss
                except psutil.Error:
                    continue
            self.peak = max(self.peak, total)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=1.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--estimate", action="store_true", help="estimate the noise, which takes more passes")
    parser.add_argument("--interrupted", metavar="FOLDER", help="from store to store, killed and resumed")
    parser.add_argument("--save", action="store_true", help=f"write a file in {RESULTS}")
    options = parser.parse_args()
    side = max(1, round((options.gigabytes * 1e9 / 4) ** 0.5 / CHUNK)) * CHUNK
    if options.interrupted:
        with tempfile.TemporaryDirectory(dir=options.interrupted) as folder:
            name, row = "resumed", interrupted(Path(folder), side)
    else:
        name, row = "larger_than_memory", reduced(options, side)
    row = {"machine": machine(), "date": date.today().isoformat()} | row
    print(json.dumps(row, indent=2))
    if options.save:
        (RESULTS / f"{name}.json").write_text(json.dumps(row, indent=2) + "\n", encoding="utf-8")


# --- from an endless image to checksums -----------------------------------------------------------


def reduced(options: argparse.Namespace, side: int) -> dict[str, Any]:
    """Denoise the image on workers, keep checksums of the chunks, and return the figures."""
    chunks = (CHUNK,) * (side // CHUNK)
    image = da.map_blocks(chunk, chunks=(chunks, chunks), dtype=np.float32, meta=np.empty((0, 0), np.float32))
    denoised = undula.denoise(image, sigma=None if options.estimate else SIGMA, level=4)
    sums = denoised.map_blocks(checksum, chunks=(1, 1), dtype=np.uint32)
    memory = PeakMemory()
    memory.start()
    start = time.perf_counter()
    limit = f"{3.2 / options.workers:.2f}GB"
    with (
        LocalCluster(
            n_workers=options.workers, threads_per_worker=1, memory_limit=limit, dashboard_address=None
        ) as cluster,
        Client(cluster),
    ):
        result = sums.compute()
    seconds = time.perf_counter() - start
    memory.done.set()
    if not options.estimate:
        middle = len(chunks) // 2
        for row, column in {(0, 0), (middle, middle), (middle, 0)}:
            check(row, column, side, int(result[row, column]))
    return {
        "gigabytes": side * side * 4 / 1e9,
        "chunks": len(chunks) ** 2,
        "workers": options.workers,
        "estimated noise": options.estimate,
        "seconds": round(seconds, 1),
        "megabytes per second": round(side * side * 4 / 1e6 / seconds, 1),
        "peak megabytes of all processes": round(memory.peak / 1e6),
        "checksum of checksums": zlib.crc32(result),
    }


def check(row: int, column: int, side: int, expected: int) -> None:
    """Compare the checksum of a chunk with that of a part of the image that is denoised in memory."""
    margin = 512
    ends = [
        (max(0, number * CHUNK - margin), min(side, (number + 1) * CHUNK + margin))
        for number in (row, column)
    ]
    part = undula.denoise(generated(*(slice(*end) for end in ends)), sigma=SIGMA, level=4)
    (top, _), (left, _) = ends
    block = part[row * CHUNK - top :, column * CHUNK - left :][:CHUNK, :CHUNK]
    if zlib.crc32(np.ascontiguousarray(block)) != expected:
        raise SystemExit(f"chunk ({row}, {column}) differs from that of the part in memory")


# --- from store to store --------------------------------------------------------------------------


def write_image(path: Path, side: int) -> None:
    """Write the image to a Zarr store."""
    import zarr

    array = zarr.create_array(
        path, shape=(side, side), chunks=(CHUNK, CHUNK), dtype=np.float32, compressors=None
    )
    for top, left in product(range(0, side, CHUNK), repeat=2):
        rows, columns = slice(top, top + CHUNK), slice(left, left + CHUNK)
        array[rows, columns] = generated(rows, columns)


def filtered(x: Any) -> Any:
    return undula.denoise(x, sigma=SIGMA, level=4)


def filter_store(source: Path, target: Path, share: float, regions: Any) -> None:
    """Denoise a store, and kill this process when a share of the regions is written."""

    def progress(done: int, total: int) -> None:
        regions.append(done)
        if done >= share * total:
            os.kill(os.getpid(), signal.SIGKILL)

    undula.stores.apply(source, target, filtered, description=SIGMA, progress=progress)


def filtering(source: Path, target: Path, share: float = 2.0) -> dict[str, Any]:
    """Run :func:`filter_store` in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        regions = manager.list()
        start = time.perf_counter()
        process = context.Process(target=filter_store, args=(source, target, share, regions))
        process.start()
        process.join()
        seconds = time.perf_counter() - start
        return {
            "seconds": round(seconds, 1),
            "exit status": process.exitcode,
            "regions at the start": regions[0],
            "regions at the end": regions[-1],
        }


def interrupted(folder: Path, side: int) -> dict[str, Any]:
    """Denoise a store with and without an interruption, compare the results, and return the figures."""
    import zarr

    source, whole, resumed = (folder / f"{name}.zarr" for name in ("image", "whole", "resumed"))
    write_image(source, side)
    runs = {"uninterrupted": filtering(source, whole), "killed": filtering(source, resumed, 0.5)}
    if runs["killed"]["exit status"] != -signal.SIGKILL or resumed.exists():
        raise SystemExit(f"the process was not killed at half: {runs['killed']}")
    runs["resumed"] = filtering(source, resumed)
    results = zarr.open_array(whole, mode="r"), zarr.open_array(resumed, mode="r")
    places = [
        (slice(top, top + CHUNK), slice(left, left + CHUNK))
        for top, left in product(range(0, side, CHUNK), repeat=2)
    ]
    different = [place for place in places if not np.array_equal(*(result[place] for result in results))]
    if different:
        raise SystemExit(f"{len(different)} of {len(places)} chunks differ, the first at {different[0]}")
    return {"gigabytes": side * side * 4 / 1e9, "chunks": len(places), **runs, "equal chunks": len(places)}


if __name__ == "__main__":
    main()
