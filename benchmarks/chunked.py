"""Transforms and filters of Dask arrays on processes of this machine, compared with those in memory.

    python benchmarks/chunked.py                  wavedec2 of 16384² in chunks of 2048², five levels
    python benchmarks/chunked.py --denoise        also the throughput of denoise with a given sigma
    python benchmarks/chunked.py --scaling        weak scaling instead: as many large chunks for each worker
    python benchmarks/chunked.py --save           save the figures to benchmarks/results/
    python benchmarks/chunked.py --size 2048 --chunk 256 --denoise    a quick trial
    python benchmarks/chunked.py --scaling --scaling-chunk 1024       a quick trial

Workers have one thread each, and the transform in memory as many threads as there are workers. The image is
in the memory of the workers beforehand, some columns of chunks on each, and so are the results afterwards:
neither files nor transfers to the client are part of the time. ``--placement scheduler`` leaves to the
scheduler which worker makes which chunk of the image. The transform in memory is measured twice: into new
memory, which the system has to provide as it does for the results of workers, and into memory that is reused.
Each figure is the best of several runs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import psutil
from distributed import Client, LocalCluster, wait

import undula
import undula.dask

ROOT = Path(__file__).parent
Row = dict[str, Any]
WAVELET, SIGMA = "bior4.4", 0.1
SAMPLING_S = 0.005  # Time between two readings of the memory of a worker.
MAX_WORKERS = 16
REFERENCE_RUNS = 5


# --- what workers run -----------------------------------------------------------------------------


class MemoryReader:
    """Reads the memory of a worker again and again, and keeps the largest reading."""

    def __init__(self) -> None:
        self.peak, self._process = 0, psutil.Process()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            self.peak = max(self.peak, self._process.memory_info().rss)
            time.sleep(SAMPLING_S)

    def restart(self) -> int:
        """Forget the peak, and return what the worker uses now."""
        self.peak = self._process.memory_info().rss
        return self.peak


def memory_reader(dask_worker: Any) -> MemoryReader:
    """Return the reader of a worker, which is started by the first call."""
    if not hasattr(dask_worker, "memory_reader"):
        dask_worker.memory_reader = MemoryReader()
    reader: MemoryReader = dask_worker.memory_reader
    return reader


def idle_bytes(dask_worker: Any) -> int:
    return memory_reader(dask_worker).restart()


def peak_bytes(dask_worker: Any) -> int:
    return memory_reader(dask_worker).peak


def sent_bytes(dask_worker: Any) -> int:
    return int(dask_worker.transfer_outgoing_bytes_total)


def copy_seconds(nbytes: int) -> float:
    """Copy as many bytes into new memory; the time of one of several copies."""
    x = np.ones(nbytes // 4, np.float32)
    start = time.perf_counter()
    for _ in range(REFERENCE_RUNS):
        x.copy()
    return (time.perf_counter() - start) / REFERENCE_RUNS


def arithmetic_seconds(nbytes: int) -> float:
    """Multiply numbers in the cache of a core, as many as there are in so many bytes."""
    x = np.ones(1 << 13, np.float32)
    start = time.perf_counter()
    for _ in range(REFERENCE_RUNS * nbytes // x.nbytes):
        np.multiply(x, x, out=x)
    return (time.perf_counter() - start) / REFERENCE_RUNS


def chunk_of_image(block_id: Any = None, block_info: Any = None) -> Any:
    """One chunk of waves with noise."""
    y, x = (np.arange(*span, dtype=np.float32) for span in block_info[None]["array-location"])
    noise = np.random.default_rng(block_id).standard_normal((len(y), len(x)), np.float32)
    return np.sin(y[:, None] / 40) * np.cos(x / 60) + np.float32(SIGMA) * noise


# --- measuring ------------------------------------------------------------------------------------


def lazy_image(shape: tuple[int, int], chunk: int) -> Any:
    """The image in chunks."""
    chunks = da.core.normalize_chunks((chunk, chunk), shape)
    meta = np.empty((0, 0), np.float32)
    return da.map_blocks(chunk_of_image, chunks=chunks, dtype=np.float32, meta=meta)


@contextmanager
def cluster_of(workers: int) -> Iterator[Client]:
    """Processes with one thread each, which never write chunks to the disk."""
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=0,
            dashboard_address=":0",
            silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(workers)
        yield client


def flat(coeffs: list[Any]) -> list[Any]:
    """All bands, the approximation first."""
    return [coeffs[0], *(band for level in coeffs[1:] for band in level)]


def best(work: Callable[[], Any], runs: int, release: Callable[[], None] = lambda: None) -> float:
    """Seconds, the best of several runs after one that compiles; ``release`` is called between them."""
    times = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
        del result
        release()
    return min(times[1:])


def kept_on_workers(client: Client, arrays: list[Any]) -> list[Any]:
    """Compute arrays, and leave the chunks where they are."""
    kept = client.persist(arrays)
    wait(kept)
    return kept


def image_on_workers(client: Client, image: Any, placement: str) -> Any:
    """Make the image, and leave the chunks where they are: by columns, some on each worker."""
    if placement == "scheduler":
        return kept_on_workers(client, [image])[0]
    workers, rows = sorted(client.scheduler_info(n_workers=-1)["workers"]), image.numblocks[0]

    def worker_of(key: Any) -> list[str]:
        _, row, column = key
        return [workers[(column * rows + row) * len(workers) // image.npartitions]]

    with dask.annotate(workers=worker_of):
        # Annotations are those of the layers that are made here.
        return kept_on_workers(client, [lazy_image(image.shape, image.chunksize[0])])[0]


def wait_for_release(client: Client, count: int) -> None:
    """Wait until the cluster holds only so many tasks."""
    while client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)) > count:
        time.sleep(0.01)


def distributed_figures(
    client: Client, image: Any, make: Callable[[Any], list[Any]], runs: int, placement: str
) -> Row:
    """Time, bytes sent and memory of what ``make`` returns for an image on the workers."""
    # The same work beforehand loads packages and compiles kernels, which is part of the idle memory.
    single = lazy_image(image.chunksize, max(image.chunksize))
    kept_on_workers(client, make(single))
    wait_for_release(client, 0)
    idle = client.run(idle_bytes)
    image = image_on_workers(client, image, placement)
    before = sum(client.run(sent_bytes).values())
    # Results that the scheduler still holds would not be computed again.
    seconds = best(
        lambda: kept_on_workers(client, make(image)),
        runs,
        lambda: wait_for_release(client, image.npartitions),
    )
    sent = (sum(client.run(sent_bytes).values()) - before) / (runs + 1)
    peak = client.run(peak_bytes)
    above = [peak[address] - idle[address] for address in idle]
    chunk_bytes = image.nbytes / image.npartitions
    # A worker has its share of the image, and results of about the same size.
    beyond = max(above) - 2 * image.nbytes / len(idle)
    return {
        "seconds": seconds,
        "gigabytes_per_second": image.nbytes / seconds / 1e9,
        "tasks_per_chunk": task_count(image, make(image)) / image.npartitions,
        "bytes_sent": sent,
        "idle_bytes": max(idle.values()),
        "peak_bytes_above_idle": max(above),
        "peak_chunks_beyond_image_and_results": beyond / chunk_bytes,
    }


def task_count(image: Any, arrays: list[Any]) -> int:
    """Tasks without those of the image."""
    given = set(image.__dask_graph__())
    return len({key for array in arrays for key in array.__dask_graph__()} - given)


def in_memory_figures(x: Any, make: Callable[[Any], Any], threads: int, runs: int) -> Row:
    """Time of the same in memory, into new memory that is kept and into memory that is reused."""
    undula.set_num_threads(threads)
    undula.keep_memory(0)
    make(x)
    kept, times = [], []
    for _ in range(runs):
        start = time.perf_counter()
        kept.append(make(x))
        times.append(time.perf_counter() - start)
    del kept
    undula.keep_memory(4 * x.nbytes)
    reused = best(lambda: make(x), runs)
    undula.keep_memory(None)
    undula.set_num_threads(None)
    return {"new_memory_seconds": min(times), "reused_memory_seconds": reused}


def compare(
    what: str, size: int, chunk: int, workers: int, runs: int, placement: str, make: Callable[[Any], Any]
) -> Row:
    """Measure the same work on workers and in memory, and check that the numbers are equal."""
    image = lazy_image((size, size), chunk)

    def arrays(image: Any) -> list[Any]:
        made = make(image)
        return flat(made) if isinstance(made, list) else [made]

    with cluster_of(workers) as client:
        row = distributed_figures(client, image, arrays, runs, placement)
        row["in_memory"] = in_memory_figures(image.compute(), make, workers, runs)
        result = arrays(image)[0].compute()
    expected = make(image.compute())
    assert np.array_equal(result, expected[0] if isinstance(expected, list) else expected), what
    row = {"what": what, "size": size, "chunk": chunk, "workers": workers, "placement": placement} | row
    new, reused = (row["in_memory"][f"{name}_memory_seconds"] for name in ("new", "reused"))
    print(
        f"{what}, {size}² in chunks of {chunk}², {workers} worker(s):"
        f" {row['seconds'] * 1e3:.0f} ms, {row['gigabytes_per_second']:.2f} GB/s\n"
        f"  in memory, {workers} thread(s):"
        f" {new * 1e3:.0f} ms into new memory ({row['seconds'] / new:.2f} ×),"
        f" {reused * 1e3:.0f} ms into reused memory ({row['seconds'] / reused:.2f} ×)\n"
        f"  {row['tasks_per_chunk']:.1f} tasks per chunk, {row['bytes_sent'] / 1e6:.1f} MB sent,"
        f" at most {row['peak_bytes_above_idle'] / 1e6:.0f} MB of a worker above its"
        f" {row['idle_bytes'] / 1e6:.0f} MB when idle,"
        f" {row['peak_chunks_beyond_image_and_results']:.1f} chunks beyond the image and the results"
    )
    return row


def transform(level: int) -> Callable[[Any], Any]:
    return lambda x: undula.wavedec2(x, WAVELET, level=level)


def denoise(level: int) -> Callable[[Any], Any]:
    return lambda x: undula.denoise(x, sigma=SIGMA, level=level)


def scaling(chunk: int, chunks: int, level: int, most: int, runs: int) -> list[Row]:
    """Weak scaling: each worker has as many chunks, in an image that grows with the number of workers.

    Beside it are the efficiencies of as many threads that transform an image of one worker in memory, and of
    as many processes that only copy memory, or only compute in their caches: no cluster scales better.
    """
    rows, workers, make = list[Row](), 1, transform(level)
    columns = max(n for n in range(1, chunks + 1) if chunks % n == 0 and n * n <= chunks)
    in_memory = lazy_image((chunks // columns * chunk, columns * chunk), chunk).compute()
    print("workers         shape      ms    GB/s  efficiency  in memory  copy  arithmetic  tasks  MB sent")
    while workers <= most:
        count = workers * chunks
        columns = max(n for n in range(1, count + 1) if count % n == 0 and n * n <= count)
        image = lazy_image((count // columns * chunk, columns * chunk), chunk)
        with cluster_of(workers) as client:
            row = distributed_figures(client, image, lambda x: flat(make(x)), runs, "columns")
            references = {
                work.__name__: max(client.run(work, image.nbytes // workers).values())
                for work in (copy_seconds, arithmetic_seconds)
            }
        row = {"workers": workers, "shape": list(image.shape), "chunk": chunk} | row
        row["in_memory"] = in_memory_figures(in_memory, make, workers, runs)
        first = rows[0] if rows else row
        row["efficiency"] = first["seconds"] / row["seconds"]
        reused = [of["in_memory"]["reused_memory_seconds"] for of in (first, row)]
        row["in_memory"]["efficiency"] = reused[0] / reused[1] / workers
        row["references"] = references
        efficiencies = {name: first["references"][name] / references[name] for name in references}
        row["references"] = references | {f"{name[:-8]}_efficiency": e for name, e in efficiencies.items()}
        rows.append(row)
        print(
            f"{workers:7} {'×'.join(map(str, image.shape)):>13} {row['seconds'] * 1e3:7.0f}"
            f" {row['gigabytes_per_second']:7.2f} {row['efficiency']:11.0%}"
            f" {row['in_memory']['efficiency']:10.0%}"
            f" {efficiencies['copy_seconds']:5.0%} {efficiencies['arithmetic_seconds']:11.0%}"
            f" {row['tasks_per_chunk'] * count:6.0f} {row['bytes_sent'] / 1e6:8.1f}"
        )
        workers *= 2
    return rows


def machine() -> Row:
    """Describe the machine and the versions."""
    processor, info = platform.processor() or platform.machine(), Path("/proc/cpuinfo")
    if info.is_file():
        names = [text.split(":")[1].strip() for text in info.read_text().splitlines() if "model name" in text]
        processor = names[0] if names else processor
    packages = ("numpy", "dask", "distributed")
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "versions": {"undula": undula.__version__} | {name: version(name) for name in packages},
    }


def main() -> None:
    cores = min(MAX_WORKERS, undula.get_num_threads())
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=16384, help="rows and columns of the image")
    parser.add_argument("--chunk", type=int, default=2048, help="rows and columns of a chunk")
    parser.add_argument("--level", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2, help="number of processes")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--placement", choices=("columns", "scheduler"), default="columns")
    parser.add_argument("--denoise", action="store_true", help="also measure denoise with a given sigma")
    parser.add_argument("--scaling", action="store_true", help="measure weak scaling instead")
    parser.add_argument("--most", type=int, default=cores, help="largest number of workers for --scaling")
    parser.add_argument("--per-worker", type=int, default=4, help="chunks for each worker for --scaling")
    parser.add_argument("--scaling-chunk", type=int, default=8192, help="rows of a chunk for --scaling")
    parser.add_argument(
        "--save", type=Path, nargs="?", const=ROOT / "results", help="folder, or file of JSON"
    )
    given = parser.parse_args()
    results: Row = {"machine": machine()}
    if given.scaling:
        results["scaling"] = scaling(
            given.scaling_chunk, given.per_worker, given.level, given.most, given.runs
        )
    else:
        sizes = given.size, given.chunk, given.workers, given.runs, given.placement
        example = lazy_image((given.size, given.size), given.chunk)
        print(undula.dask.explain(example, WAVELET, level=given.level))
        what = f"wavedec2, {given.level} levels of {WAVELET}"
        results["transform"] = compare(what, *sizes, transform(given.level))
        if given.denoise:
            levels = min(4, given.level)
            results["denoise"] = compare(f"denoise, {levels} levels", *sizes, denoise(levels))
    if given.save:
        name = "chunked_scaling.json" if given.scaling else "chunked.json"
        path = given.save if given.save.suffix == ".json" else given.save / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
