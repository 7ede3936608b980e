"""Denoise an array that is larger than memory, generated chunk by chunk, and reduced to checksums.

    python benchmarks/larger_than_memory.py --gigabytes 40 --workers 2 --save

Each worker has one thread and a memory limit. Checksums of some chunks are compared with those of a part of
the image that is denoised in memory.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
import zlib
from datetime import date
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import psutil
from dask.distributed import Client, LocalCluster

import undula
from undula.experiments.run import machine

RESULTS = Path(__file__).parent / "results" / "larger_than_memory.json"
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
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    side = max(1, round((options.gigabytes * 1e9 / 4) ** 0.5 / CHUNK)) * CHUNK
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
    row = {
        "machine": machine(),
        "date": date.today().isoformat(),
        "gigabytes": side * side * 4 / 1e9,
        "chunks": len(chunks) ** 2,
        "workers": options.workers,
        "estimated noise": options.estimate,
        "seconds": round(seconds, 1),
        "megabytes per second": round(side * side * 4 / 1e6 / seconds, 1),
        "peak megabytes of all processes": round(memory.peak / 1e6),
        "checksum of checksums": zlib.crc32(result),
    }
    print(json.dumps(row, indent=2))
    if options.save:
        RESULTS.write_text(json.dumps(row, indent=2) + "\n", encoding="utf-8")


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


if __name__ == "__main__":
    main()
