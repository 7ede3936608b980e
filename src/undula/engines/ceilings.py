"""Peak rates of devices, measured once and cached on disk.

A transform moves memory, multiplies and adds, exchanges values between threads, waits at barriers and has to
be started. A small program measures the peak rate of each. The performance model of a transform divides its
needs by these rates.
"""

from __future__ import annotations

import bisect
import json
import math
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from ..errors import ArgumentError
from .gpu import disk
from .gpu.emit import probes
from .gpu.launches import DeviceProgram, Launch
from .threads import get_num_threads, ranges, run, workers

__all__ = ["Ceilings", "of_cpu", "of_device", "seconds_of"]

SIZES_BYTES = tuple(1 << k for k in range(14, 29, 2))  # of copied arrays: 16 KiB to 256 MiB
VERSION = 7  # of the entries in the cache


@dataclass(frozen=True)
class Ceilings:
    """The peak rates of a device.

    Parameters
    ----------
    device : str
        Its name.
    copies : tuple of (bytes, seconds)
        Sizes of arrays, and the times to copy them without the start of the copy.
    operations : float
        Multiply-adds per second of all threads.
    single : float
        Multiply-adds per second of one thread on a CPU, which applies to arrays below half a megapixel.
    accesses : float
        Reads and writes of shared memory per second; 0 if there is none.
    barriers : float
        Barriers per second of groups of 256 work items; 0 if there are no groups.
    call : float
        Seconds that a run takes on the host regardless of its size; a GPU works at the same time.
    launch : float
        Seconds between two kernels of a run; on a CPU, until all threads are working.
    upload, download : float
        Bytes per second to and from the device; 0 if no transfer is needed.
    adds : bool
        Whether the times of memory and arithmetic add up, as on a CPU, or overlap.
    level : float
        Seconds that each further level takes on the host of a CPU.
    threads : int
        Threads of a CPU; 0 for other devices.

    Examples
    --------
    >>> copies = ((1024, 1e-6), (4096, 2e-6), (65536, 3.2e-5))
    >>> rates = Ceilings("a toy", copies, 1e9, 1e9, 0, 0, 0, 0, 0, 0, True)
    >>> round(rates.copy(131072) * 1e6, 6), round(rates.copy(2048) * 1e6, 3)
    (64.0, 1.414)
    """

    device: str
    copies: tuple[tuple[int, float], ...]
    operations: float
    single: float
    accesses: float
    barriers: float
    call: float
    launch: float
    upload: float
    download: float
    adds: bool
    level: float = 0.0
    threads: int = 0

    def copy(self, size: float) -> float:
        """Return the seconds for a copy of ``size`` bytes, interpolated between measured sizes.

        Parameters
        ----------
        size : float
            Number of bytes.

        Returns
        -------
        float
            Seconds.
        """
        sizes = [bytes_ for bytes_, _ in self.copies]
        place = bisect.bisect_left(sizes, size)
        if place == 0 or place == len(sizes):
            bytes_, seconds = self.copies[min(place, len(sizes) - 1)]
            return seconds * size / bytes_
        (less, short), (more, long) = self.copies[place - 1 : place + 1]
        share = math.log(size / less) / math.log(more / less)
        return math.exp(math.log(short) + share * math.log(long / short))

    def to_json(self) -> str:
        """Return the rates as JSON."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Ceilings:
        """Return the rates from the text of :meth:`to_json`.

        Parameters
        ----------
        text : str
            What :meth:`to_json` returned.

        Returns
        -------
        Ceilings
        """
        try:
            fields = json.loads(text)
            copies = tuple((int(a), float(b)) for a, b in fields["copies"])
            ceilings = Ceilings(**{**fields, "copies": copies})
        except (ValueError, TypeError, KeyError) as error:
            raise ArgumentError(
                f"expected the text of Ceilings.to_json(), got something else: {error!r}"
            ) from None
        if not copies or min(ceilings.operations, ceilings.single, *(t for _, t in copies)) <= 0:
            raise ArgumentError("copies and operations of ceilings must be positive")
        return ceilings


def seconds_of(
    work: Callable[[], Any],
    finish: Callable[[], Any] = lambda: None,
    spend: float = 0.05,
    usual: bool = False,
) -> float:
    """Measure the shortest time of repeated calls; with ``usual``, the median.

    Parameters
    ----------
    work : callable
        Calls that are too short for the clock are timed many at once.
    finish : callable
        Waits for work that was only started.
    spend : float
        Seconds to spend.
    usual : bool
    """
    work()
    finish()
    many, spent = 1, 0.0
    times: list[float] = []
    while spent < spend or not times:
        begin = time.perf_counter()
        for _ in range(many):
            work()
        finish()
        took = time.perf_counter() - begin
        spent += took
        if took < 1e-3 and many < 4096:
            many = min(4096, max(2 * many, math.ceil(many * 1.2e-3 / max(took, 1e-7))))
            continue
        times.append(took / many)
    return statistics.median(times) if usual else min(times)


def of_cpu(again: bool = False, host: Callable[[], tuple[float, float]] = lambda: (0.0, 0.0)) -> Ceilings:
    """Return the peak rates of the CPU, with as many threads as transforms use.

    Parameters
    ----------
    again : bool
        Measure even if there is an entry in the cache, which takes a few seconds.
    host : callable
        Measures the seconds of a call regardless of its size, and those of each further level.
    """
    threads = get_num_threads()
    name = f"CPU, {threads} thread{'s' * (threads > 1)}"
    key = f"{platform.node()} {platform.processor()} {name}"
    return _cached(key, again, lambda: _measure_cpu(name, *host()))


def of_device(device: Any, again: bool = False) -> Ceilings:
    """Return the peak rates of a CUDA or OpenCL device."""
    return _cached(device.key, again, lambda: _measure_device(device))


def _cached(key: str, again: bool, measure: Callable[[], Ceilings]) -> Ceilings:
    key = f"ceilings {VERSION} {key}"
    text = None if again else disk.load_text(key)
    if text is not None:
        return Ceilings.from_json(text)
    ceilings = measure()
    disk.save_text(key, ceilings.to_json())
    return ceilings


# --- the processor --------------------------------------------------------------------------------


def _measure_cpu(name: str, call: float, level: float) -> Ceilings:
    source = np.ones(SIZES_BYTES[-1] // 4, np.float32)
    target = np.zeros_like(source)
    copies = []
    for size in SIZES_BYTES:
        count = size // 4
        pieces = ranges(count, workers(count))

        def copied(pieces: list[tuple[int, int]] = pieces) -> None:
            run(lambda begin, end: np.copyto(target[begin:end], source[begin:end]), pieces)

        copies.append((size, seconds_of(copied, spend=0.1)))
    threads = get_num_threads()
    return Ceilings(
        device=name,
        copies=tuple(copies),
        operations=_multiply_adds(threads),
        single=_multiply_adds(1),
        accesses=0.0,
        barriers=0.0,
        call=call,
        launch=_wake_seconds(threads, source, target),
        upload=0.0,
        download=0.0,
        adds=True,
        level=level,
        threads=threads,
    )


def _wake_seconds(threads: int, source: Any, target: Any) -> float:
    """Measure the seconds to wake all threads: work for all of them, less the same work for one."""
    each = 1 << 17

    def copied(begin: int, end: int) -> None:
        np.copyto(target[begin:end], source[begin:end])

    pieces = [(k * each, (k + 1) * each) for k in range(threads)]
    together, alone = (seconds_of(partial(run, copied, parts), usual=True) for parts in (pieces, pieces[:1]))
    return max(1e-6, together - alone)


def _multiply_adds(threads: int) -> float:
    """Measure the multiply-adds per second of lifting steps on lines in the first-level cache."""
    from numba import njit

    @njit(nogil=True, fastmath=True)
    def steps(a: Any, b: Any, rounds: int) -> None:
        for _ in range(rounds):
            for i in range(a.size):
                a[i] += np.float32(0.001) * (b[i] + b[i + 1])
            for i in range(a.size):
                b[i] -= np.float32(0.001) * a[i]

    count, rounds = 1024, 2000
    lines = [(np.ones(count, np.float32), np.ones(count + 1, np.float32)) for _ in range(threads)]
    pieces = [(a, b, rounds) for a, b in lines]
    steps(*lines[0], 1)
    return 3 * count * rounds * threads / seconds_of(lambda: run(steps, pieces))


# --- devices --------------------------------------------------------------------------------------


def _measure_device(device: Any) -> Ceilings:
    queue, dialect = device.queue, device.dialect
    largest = SIZES_BYTES[-1]
    a, b = (device.allocate(largest, queue) for _ in range(2))
    buffers = [getattr(memory, "address", memory) for memory in (a, b)]

    def timed(*launches: Launch, usual: bool = False) -> float:
        executable = device.prepare(DeviceProgram(launches, ()))
        return seconds_of(lambda: executable.run(buffers, queue), lambda: device.finish(queue), usual=usual)

    def streamed(size: int) -> Launch:
        count = size // 16
        return Launch(probes.stream(dialect), -(-count // probes.ITEMS), (0, 1), (count,))

    def each(launch: Launch, size: int) -> float:
        """Time one of many launches in a run, without the start of the run on the host."""
        few, many = (timed(*[launch] * count) for count in ((32, 64) if size < 1 << 22 else (2, 6)))
        return max(0.0, many - few) / (32 if size < 1 << 22 else 4)

    call = timed(streamed(4096), usual=True)
    # The time between two kernels without work, and then that through a short kernel, from memory to memory.
    bare = max(1e-8, each(streamed(4096), 4096))
    launch = max(bare, each(Launch(probes.path(dialect), 1, (0, 1), (probes.PATH_EXCHANGES,)), 4096))
    times = {size: each(streamed(size), size) - bare for size in SIZES_BYTES}
    # Short times are uncertain; twice the best rate of the others bounds them.
    best_rate = 2 * max(largest / times[largest], *(size / t for size, t in times.items() if t > bare))
    copies = [(size, max(t, size / best_rate)) for size, t in times.items()]
    groups = max(1, device.limits.units) * (32 if device.limits.gpu else 2)
    rounds = 512 if device.limits.gpu else 64
    products = timed(Launch(probes.multiply(dialect), groups, (0,), (rounds,))) - call
    once, often = (
        timed(Launch(probes.exchange(dialect, reads), groups, (0,), (rounds,))) - call for reads in (1, 9)
    )
    accesses = groups * probes.ITEMS * rounds * 8 / max(often - once, 1e-9)
    waiting = max(once - groups * probes.ITEMS * rounds * 2 / accesses, once / 10)
    host = np.ones(1 << 24, np.uint8)
    moved = 1 << 24
    up = seconds_of(lambda: device.upload(host, a, queue), lambda: device.finish(queue))
    down = seconds_of(lambda: device.download(a, host, queue))
    operations = groups * probes.ITEMS * rounds * probes.CHAINS / max(products, 1e-9)
    return Ceilings(
        device=device.name,
        copies=tuple(copies),
        operations=operations,
        single=operations,
        accesses=accesses,
        barriers=groups * rounds * 2 / waiting,
        call=call,
        launch=launch,
        upload=moved / up,
        download=moved / down,
        adds=not device.limits.gpu,
    )
