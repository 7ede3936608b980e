"""Ceilings: what a device can do at most, measured once and remembered.

A transform reads and writes memory, multiplies and adds, exchanges numbers between neighbours and waits for
them, and has to be started. For each of these there is a small program here that does nothing else. A model
of a transform is what it needs of each, over what the device has.
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
from .clike import probes
from .cpu.threads import get_num_threads, ranges, run, workers
from .devices import disk
from .devices.launches import DeviceProgram, Launch

__all__ = ["Ceilings", "of_cpu", "of_device", "seconds_of"]

SIZES = tuple(1 << k for k in range(14, 29, 2))  # bytes that are copied: 16 KiB … 256 MiB
VERSION = 7  # of what is remembered


@dataclass(frozen=True)
class Ceilings:
    """What a device can do at most.

    Parameters
    ----------
    device : str
    copies : tuple of (bytes, seconds)
        Arrays of so many bytes, copied in so long, start of the copy not counted.
    operations : float
        Multiply-adds in a second, by all threads; of one thread on a CPU in ``single``.
    single : float
        What work below half a megapixel gets, where that is done by fewer threads.
    accesses : float
        Numbers read from or written to the memory that a group shares, in a second; 0 where there is none.
    barriers : float
        Barriers of groups of 256, in a second; 0 where there are no groups.
    call : float
        Seconds that a run takes the host, however little there is to do; a GPU works meanwhile.
    launch : float
        Seconds from one kernel to the next of a run; on a CPU, until all threads are at work.
    upload, download : float
        Bytes in a second to the device and back; 0 where nothing has to be moved.
    adds : bool
        Whether moving and calculating take turns, as on a CPU, and do not hide behind each other.
    level : float
        Seconds that each further level takes the host, on a CPU.
    threads : int
        Of a CPU; 0 for other devices.

    Examples
    --------
    >>> copies = ((1024, 1e-6), (4096, 2e-6), (65536, 3.2e-5))
    >>> one = Ceilings("a toy", copies, 1e9, 1e9, 0, 0, 0, 0, 0, 0, True)
    >>> round(one.copy(131072) * 1e6, 6), round(one.copy(2048) * 1e6, 3)
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
        """Seconds that a copy of an array of so many bytes takes, between those that were measured."""
        sizes = [bytes_ for bytes_, _ in self.copies]
        place = bisect.bisect_left(sizes, size)
        if place == 0 or place == len(sizes):
            bytes_, seconds = self.copies[min(place, len(sizes) - 1)]
            return seconds * size / bytes_
        (less, short), (more, long) = self.copies[place - 1 : place + 1]
        share = math.log(size / less) / math.log(more / less)
        return math.exp(math.log(short) + share * math.log(long / short))

    def to_json(self) -> str:
        """As text."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Ceilings:
        """From text."""
        try:
            read = json.loads(text)
            copies = tuple((int(a), float(b)) for a, b in read["copies"])
            found = Ceilings(**{**read, "copies": copies})
        except (ValueError, TypeError, KeyError) as error:
            raise ArgumentError(
                f"these are no ceilings as Ceilings.to_json() writes them: {error!r}"
            ) from None
        if not copies or min(found.operations, found.single, *(t for _, t in copies)) <= 0:
            raise ArgumentError("ceilings need copies and operations that take time")
        return found


def seconds_of(
    work: Callable[[], Any],
    finish: Callable[[], Any] = lambda: None,
    spend: float = 0.05,
    usual: bool = False,
) -> float:
    """What a piece of work takes at best, when it is done again and again; or usually.

    ``finish`` waits for what was only started. Pieces that are shorter than the clock can tell are done many
    at a time.
    """
    work()
    finish()
    many, spent = 1, 0.0
    found: list[float] = []
    while spent < spend or not found:
        begin = time.perf_counter()
        for _ in range(many):
            work()
        finish()
        took = time.perf_counter() - begin
        spent += took
        if took < 1e-3 and many < 4096:
            many = min(4096, max(2 * many, math.ceil(many * 1.2e-3 / max(took, 1e-7))))
            continue
        found.append(took / many)
    return statistics.median(found) if usual else min(found)


def of_cpu(again: bool = False, host: Callable[[], tuple[float, float]] = lambda: (0.0, 0.0)) -> Ceilings:
    """Of the processor, with as many threads as transforms use; takes some seconds, the first time.

    ``host`` measures what a call costs, whatever it has to do, and what each further level does.
    """
    threads = get_num_threads()
    name = f"CPU, {threads} thread{'s' * (threads > 1)}"
    key = f"{platform.node()} {platform.processor()} {name}"
    return _known(key, again, lambda: _measured_cpu(name, *host()))


def of_device(device: Any, again: bool = False) -> Ceilings:
    """Of a device of CUDA's or OpenCL's."""
    return _known(device.key, again, lambda: _measured_device(device))


def _known(key: str, again: bool, measured: Callable[[], Ceilings]) -> Ceilings:
    key = f"ceilings {VERSION} {key}"
    text = None if again else disk.remembered(key)
    if text is not None:
        return Ceilings.from_json(text)
    found = measured()
    disk.remember(key, found.to_json())
    return found


# --- the processor --------------------------------------------------------------------------------


def _measured_cpu(name: str, call: float, level: float) -> Ceilings:
    source = np.ones(SIZES[-1] // 4, np.float32)
    target = np.zeros_like(source)
    copies = []
    for size in SIZES:
        count = size // 4
        pieces = ranges(count, workers(count))

        def copied(pieces: list[tuple[int, int]] = pieces) -> None:
            run(lambda begin, end: np.copyto(target[begin:end], source[begin:end]), pieces)

        copies.append((size, seconds_of(copied, spend=0.1)))
    threads = get_num_threads()
    return Ceilings(
        device=name,
        copies=tuple(copies),
        operations=_lifted(threads),
        single=_lifted(1),
        accesses=0.0,
        barriers=0.0,
        call=call,
        launch=_handed_over(threads, source, target),
        upload=0.0,
        download=0.0,
        adds=True,
        level=level,
        threads=threads,
    )


def _handed_over(threads: int, source: Any, target: Any) -> float:
    """What it costs that others have to be woken: pieces for all, beside the same work for each alone."""
    each = 1 << 17

    def copied(begin: int, end: int) -> None:
        np.copyto(target[begin:end], source[begin:end])

    pieces = [(k * each, (k + 1) * each) for k in range(threads)]
    together, alone = (seconds_of(partial(run, copied, some), usual=True) for some in (pieces, pieces[:1]))
    return max(1e-6, together - alone)


def _lifted(threads: int) -> float:
    """Multiply-adds in a second: lifting steps on lines that are in the first cache."""
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


def _measured_device(device: Any) -> Ceilings:
    queue, dialect = device.queue, device.dialect
    largest = SIZES[-1]
    a, b = (device.allocate(largest, queue) for _ in range(2))
    buffers = [getattr(memory, "address", memory) for memory in (a, b)]

    def timed(*launches: Launch, usual: bool = False) -> float:
        made = device.prepare(DeviceProgram(launches, ()))
        return seconds_of(lambda: made.run(buffers, queue), lambda: device.finish(queue), usual=usual)

    def streamed(size: int) -> Launch:
        count = size // 16
        return Launch(probes.stream(dialect), -(-count // probes.ITEMS), (0, 1), (count,))

    def each(launch: Launch, size: int) -> float:
        """Of many in one run: what the host needs to start it is behind them."""
        some, more = (timed(*[launch] * many) for many in ((32, 64) if size < 1 << 22 else (2, 6)))
        return max(0.0, more - some) / (32 if size < 1 << 22 else 4)

    call = timed(streamed(4096), usual=True)
    # From one kernel to the next, with nothing to do: and then through a short one, from memory to memory.
    bare = max(1e-8, each(streamed(4096), 4096))
    launch = max(bare, each(Launch(probes.path(dialect), 1, (0, 1), (probes.PATH_EXCHANGES,)), 4096))
    found = {size: each(streamed(size), size) - bare for size in SIZES}
    least = 2 * max(SIZES[-1] / found[SIZES[-1]], *(size / t for size, t in found.items() if t > bare))
    copies = [(size, max(t, size / least)) for size, t in found.items()]
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
