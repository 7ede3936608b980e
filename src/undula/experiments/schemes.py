"""Barina, Kula and Zemcik, "Parallel Wavelet Schemes for Images" (Brno, 2016).

Ten schemes of one transform: what they cost by counting, and how fast they run, with the image in memory and
with data that never leave the caches.
"""

from __future__ import annotations

import math
import statistics
from typing import Any

import undula

from ..backends.devices.transform import Layout, Options, Stage
from ..backends.strides import contiguous
from ..errors import UndulaError
from ..schemes import SCHEMES, Scheme, scheme
from ..transforms import ondevice
from .base import Chart, Outcome, Table, experiment
from .bench import Bench, pictures
from .published import work

WAVELETS = {"CDF 5/3": "cdf53", "CDF 9/7": "cdf97", "DD 13/7": "dd137"}
SIZES = (256, 512, 1024, 2048, 4096, 8192)
SMALL = 1024  # Pixels on a side of what stands for every part of a larger image, and stays in the caches.
COUNTED = """Counting needs no device. Every cell is compared with the one that is printed."""
RUNS = """The processor has an engine of its own that knows no schemes, so this is for devices. A throughput counts the
bytes of the image once in and once out, float32; how the paper counts is not printed in it. The tiles are ours:
32×32 quads shared by 256 work items, a barrier for each stage that reads neighbours."""


def _same(ours: Any, theirs: Any) -> str:
    return "equal" if ours == theirs else f"{theirs} printed"


def _paper(name: str) -> str:
    return name.capitalize()


@experiment("schemes", "table-2", "Barriers and operations", COUNTED)
def table_2(bench: Bench) -> Outcome | None:
    """By multiplying matrices out."""
    if not bench.on_cpu:
        return None
    published = {(row[0], row[1]): row[2:] for row in work("schemes").items["table-2"].rows}
    table = Table("counted here", ["wavelet", "scheme", "barriers", "operations", "beside the paper"])
    for title, wavelet in WAVELETS.items():
        for name in SCHEMES:
            one = scheme(wavelet, name)
            theirs = published.get((title, _paper(name)))
            said = "not printed" if theirs is None else _same([one.barriers, one.operations], theirs)
            table.add(title, name, one.barriers, one.operations, said)
    return _counted(table)


def _counted(table: Table) -> Outcome:
    said = [row[-1] for row in table.rows]
    equal, printed = said.count("equal"), sum(word != "not printed" for word in said)
    return Outcome([table], findings=[f"{equal} of {printed} rows that the paper prints are equal to ours."])


@experiment("schemes", "table-3", "Cells of local memory", COUNTED)
def table_3(bench: Bench) -> Outcome | None:
    """With one buffer and with two."""
    if not bench.on_cpu:
        return None
    table = Table(
        "counted here", ["scheme", "barriers", "single", "double", "double, connected", "beside the paper"]
    )
    for row in work("schemes").items["table-3"].rows:
        one, two = (scheme(wavelet, row[0].lower()) for wavelet in ("cdf53", "cdf97"))
        ours = [one.barriers, one.cells.single, one.cells.double]
        connected = two.cells.double
        theirs = [*row[1:4], row[4] or row[3]]
        table.add(row[0].lower(), *ours, connected, _same([*ours, connected], theirs))
    return _counted(table)


@experiment("schemes", "table-4", "Reads and writes of local memory", COUNTED)
def table_4(bench: Bench) -> Outcome | None:
    """For K lifting pairs, from the counts for one and for two."""
    if not bench.on_cpu:
        return None
    table = Table(
        "counted here", ["scheme", "writes", "reads, degree 1", "reads, degree 3", "beside the paper"]
    )
    for row in work("schemes").items["table-4"].rows:
        one, two, three = (scheme(wavelet, row[0].lower()) for wavelet in ("cdf53", "cdf97", "dd137"))
        each = two.writes - one.writes
        first = one.writes - each
        assert two.reads == 2 * one.reads
        ours = [f"{first} + {each}K" if first else f"{each}K", f"{one.reads}K", f"{three.reads}K"]
        table.add(row[0].lower(), *ours, _same(ours, row[1:]))
    return _counted(table)


# --- running --------------------------------------------------------------------------------------


def _with_memory(bench: Bench, wavelet: str, name: str, n: int) -> float | None:
    """Seconds of one level of an image in memory."""

    def measured() -> float | None:
        options = {"strategy": "sliding"} if name == "sliding" else {"scheme": name}
        try:
            plan = bench.plan((n, n), wavelet, 1, dtype="float32", mode="symmetric", **options)
        except UndulaError as error:
            bench.checks.append(f"{name} of {wavelet}: not run ({error})")
            return None
        return bench.times(f"{name} of {wavelet}, {n}²", plan, moves=False).calc

    found: float | None = bench.once((wavelet, name, n), measured)
    return found


def _in_caches(bench: Bench, wavelet: str, name: str, n: int) -> float | None:
    """Seconds of as many small images as make a large one, all in the same place, so that none leaves the caches."""

    def measured() -> float | None:
        device = ondevice.host(bench.device).device(None)
        queue, side = device.queue, min(n, SMALL)
        try:
            plan = bench.plan((side, side), wavelet, 1, dtype="float32", mode="symmetric", scheme=name)
        except UndulaError:
            return None
        _, stages = plan._programs(False)
        count = (n // side) ** 2
        one = stages[0]
        tasks = tuple(task._replace(axis=task.axis + 1) for task in one.tasks)
        many = Stage((count, *one.shape), tasks, {key: (count, *shape) for key, shape in one.shapes.items()})

        def stacked(shape: tuple[int, ...]) -> Layout:
            return Layout((count, *shape), (0, *contiguous(shape)), "float32")

        layouts = [stacked(one.shapes[key]) for key in one.shapes]
        made = ondevice.prepared(
            device, False, (many,), stacked(one.shape), tuple(layouts), Options("tiled", name)
        )
        memory = [
            device.allocate(4 * math.prod(layout.shape[1:]), queue)
            for layout in (stacked(one.shape), *layouts)
        ]
        device.upload(pictures((side, side), 1)[0], memory[0], queue)
        buffers = [getattr(m, "address", m) for m in memory]
        buffers += [
            getattr(device.allocate(4 * size, queue), "address", None) for size, _ in made.program.scratch
        ]
        runs = [
            bench.together(lambda: made.run(buffers, queue), lambda: device.finish(queue)) for _ in range(12)
        ]
        return statistics.median(runs[1:])

    found: float | None = bench.once(("caches", wavelet, name, n), measured)
    return found


def _rate(n: int, seconds: float) -> float:
    """GB/s, read and written."""
    return 2 * 4 * n * n / seconds / 1e9


def _sizes(bench: Bench) -> tuple[int, ...]:
    return bench.some(*SIZES, quick=3, slow=2)


def _curves(bench: Bench, names: list[str], wavelets: list[str], seconds: Any, what: str) -> Outcome:
    outcome = Outcome()
    for title in wavelets:
        sizes = _sizes(bench)
        table = Table(f"{bench.title}: {title}, {what}, GB/s", ["scheme", *(f"{n}²" for n in sizes)])
        chart = Chart(f"{title}, {what}, on {bench.title}", "pixels on a side", "GB/s in and out", log="x")
        for name in names:
            found = [seconds(bench, WAVELETS[title], name, n) for n in sizes]
            table.add(name, *("–" if s is None else _rate(n, s) for n, s in zip(sizes, found, strict=True)))
            points: list[tuple[str | float, float]] = [
                (n, _rate(n, s)) for n, s in zip(sizes, found, strict=True) if s is not None
            ]
            if points:
                chart.series[name] = points
        outcome.tables.append(table)
        outcome.charts.append(chart)
    return outcome


PLAIN = ["sweldens", "iwahashi", "explosive", "monolithic", "polyphase", "convolution"]
ALONE = (
    RUNS
    + """ For the transform alone the paper left input and output away; here a small image stands for every part of
a large one, so that reads and writes stay in the caches, but are done: on a GPU that is as slow as memory where it is the tiles
that take the time, and then this is no faster than with memory."""
)


@experiment("schemes", "figure-17", "The transform alone: schemes as they are, two degrees", ALONE)
def figure_17(bench: Bench) -> Outcome | None:
    """Degree 1 and degree 3."""
    if bench.on_cpu:
        return None
    return _curves(bench, PLAIN, ["CDF 5/3", "DD 13/7"], _in_caches, "in the caches")


@experiment(
    "schemes", "figure-18", "The transform alone: improved schemes, degree 1", ALONE, also=("table-6",)
)
def figure_18(bench: Bench) -> Outcome | None:
    """All schemes of CDF 5/3 and 9/7."""
    if bench.on_cpu:
        return None
    return _curves(bench, list(SCHEMES), ["CDF 5/3", "CDF 9/7"], _in_caches, "in the caches")


@experiment("schemes", "figure-19", "With memory, CDF 9/7", RUNS + " The paper used texture memory.")
def figure_19(bench: Bench) -> Outcome | None:
    """All schemes of CDF 9/7, and sliding, which has no barrier."""
    if bench.on_cpu:
        return None
    outcome = _curves(bench, [*SCHEMES, "sliding"], ["CDF 9/7"], _with_memory, "with memory")
    n = _sizes(bench)[-1]
    floor = 2 * 4 * n * n / (undula.ceilings(bench.device).copy(4 * n * n)) / 1e9
    outcome.charts[0].mark = ("a copy", floor)
    best = max(
        (row for row in outcome.tables[0].rows if not isinstance(row[-1], str)), key=lambda row: row[-1]
    )
    outcome.findings.append(
        f"At {n}² the fastest is {best[0]} with {best[-1]:,.0f} GB/s on {bench.title}; a copy moves {floor:,.0f} GB/s."
    )
    return outcome


def _details(bench: Bench, wavelet: str, name: str) -> dict[str, int]:
    """What the compiler tells of the kernel: registers, spilled bytes, shared bytes, groups at once."""
    device = ondevice.host(bench.device).device(None)
    if not hasattr(device, "details"):
        return {}
    try:
        plan = bench.plan((1024, 1024), wavelet, 1, dtype="float32", mode="symmetric", scheme=name)
    except UndulaError:
        return {}
    kernel = plan._programs(False)[0].program.launches[0].kernel
    told: dict[str, int] = device.details(kernel)
    return told


@experiment(
    "schemes",
    "table-6",
    "Ranking of schemes, and why",
    ALONE
    + """ Which CDF wavelet the paper's table is for is not said; ours is CDF 5/3, and 9/7 beside it. Registers, spills and
    occupancy are what the compiler and the driver of CUDA tell; OpenCL tells neither.""",
    also=("table-8",),
    why="""A barrier costs a group its time, and not the unit: while one group waits, others work. The cards of the paper had few
    groups to turn to and packed four or five operations into one instruction, so two barriers less were worth more than some
    operations. A GPU of today does billions of barriers in a second (the model has them at one or two per cent of a level),
    and what is left are operations and numbers that go through shared memory, each times the quads that a tile calculates
    for one that it keeps. There the order turns: the stages of iwahashi and explosive reach one quad further for each lifting
    pair, so 1.78 quads are calculated for one result of CDF 9/7 where sweldens, monolithic and polyphase need 1.31; sweldens
    has the fewest operations and exchanges of all; and polyphase of DD 13/7, with 255 operations at once, takes so many
    registers that a quarter of the threads find room. It makes little difference whether the image is in
    memory or in the caches: it is the tiles that limit all ten, and the strategy without any barrier or tile, sliding, is ahead
    of them (Figure 19).""",
)
def table_6(bench: Bench) -> Outcome | None:
    """Throughput at the largest size, in the order of the paper, with counts beside it."""
    if bench.on_cpu:
        return None
    outcome = Outcome()
    n = _sizes(bench)[-1]
    for title, wavelet in WAVELETS.items():
        names = [name for name in SCHEMES if _fits(bench, wavelet, name)]
        alone = {name: _in_caches(bench, wavelet, name, n) for name in names}
        memory = {name: _with_memory(bench, wavelet, name, n) for name in names}
        told = {name: _details(bench, wavelet, name) for name in names}
        rates = [{name: _rate(n, s) for name, s in some.items() if s} for some in (alone, memory)]
        table, findings = ranking(bench.title, title, n, rates[0], rates[1], told)
        outcome.tables.append(table)
        if not bench.slow:  # (work items that are turns of a loop say nothing about barriers)
            outcome.findings += findings
    return outcome


def _fits(bench: Bench, wavelet: str, name: str) -> bool:
    try:
        bench.plan((256, 256), wavelet, 1, dtype="float32", mode="symmetric", scheme=name)
    except UndulaError:
        return False
    return True


COLUMNS = (
    "scheme", "barriers", "operations", "reads + writes", "quads / result", "registers", "spilled B", "occupancy %",
    "caches GB/s", "memory GB/s", "HD 6970 GB/s", "rank", "rank printed",
)  # fmt: skip


def rims(made: Scheme, tile: int = 32) -> float:
    """Quads of a tile for each that has results: those at its rims are calculated by its neighbours as well."""
    (left, right), (above, below) = made.halo
    return tile * tile / ((tile - left - right) * (tile - above - below))


def ranking(
    device: str,
    title: str,
    n: int,
    caches: dict[str, float],
    memory: dict[str, float],
    told: dict[str, dict[str, int]],
) -> tuple[Table, list[str]]:
    """Schemes with their counts and GB/s, the fastest of the paper first; and what the order goes by."""
    printed = (
        {row[0].lower(): row[1] for row in work("schemes").items["table-6"].rows}
        if title != "DD 13/7"
        else {}
    )
    ranks = {name: k for k, name in enumerate(sorted(printed, key=lambda s: -printed[s]), 1)}
    order = {name: k for k, name in enumerate(sorted(caches, key=lambda s: -caches[s]), 1)}
    table = Table(f"{device}: {title}, {n}²", COLUMNS)
    counts = {name: scheme(WAVELETS[title], name) for name in caches}
    for name in sorted(caches, key=lambda s: (ranks.get(s, 99), order[s])):
        one, own = counts[name], told.get(name, {})
        table.add(
            name, one.barriers, one.operations, one.reads + one.writes, rims(one),
            own.get("registers", "–"), own.get("spilled", "–"), own.get("occupancy", "–"),
            caches[name], memory.get(name, "–"), printed.get(name, "–"), order[name], ranks.get(name, "–"),
        )  # fmt: skip
    return table, _ranked(device, title, counts, caches, printed)


def _ranked(
    device: str, title: str, counts: dict[str, Scheme], found: dict[str, float], printed: dict[str, float]
) -> list[str]:
    """Where the order is another one than the paper's, and which count explains it."""
    if not found:
        return []
    by = {
        "operations": {name: -one.operations * rims(one) for name, one in counts.items()},
        "barriers": {name: -float(one.barriers) for name, one in counts.items()},
        "reads and writes of shared memory": {
            name: -(one.reads + one.writes) * rims(one) for name, one in counts.items()
        },
    }
    agreement = {what: _order(found, values) for what, values in by.items()}
    what = max(agreement, key=lambda k: agreement[k])
    said = ", ".join(f"{name} {value:+.2f}" for name, value in agreement.items())
    lines = [
        f"{title} on {device}: the order of schemes goes by {what}, rims of tiles included (rank correlation: {said})."
    ]
    both = [name for name in found if name in printed]
    if not both:
        return lines
    best = max(both, key=lambda name: printed[name])
    ours = max(both, key=lambda name: found[name])
    if best == ours:
        return [*lines, f"{title}: the paper's fastest scheme, {best}, is the fastest here as well."]
    one, two = counts[best], counts[ours]
    lines.append(
        f"{title}: the paper's fastest, {best}, does {found[best]:,.0f} GB/s here and {ours} {found[ours]:,.0f}:"
        f" {one.barriers} barriers, {one.operations} operations, {one.reads + one.writes} reads and writes against"
        f" {two.barriers}, {two.operations} and {two.reads + two.writes}."
    )
    return lines


def _order(one: dict[str, float], two: dict[str, float]) -> float:
    """Spearman's rank correlation; equal values share their rank."""

    def ranks(values: dict[str, float]) -> list[float]:
        some = list(values.values())
        return [
            sum(v < w for v in some) + sum(v == w for v in some) / 2 for w in (values[name] for name in one)
        ]

    a, b = ranks(one), ranks(two)
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    cross = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True))
    size = math.sqrt(sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b))
    return cross / size if size else 0.0
