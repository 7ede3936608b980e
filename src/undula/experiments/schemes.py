"""Barina, Kula and Zemcik, "Parallel Wavelet Schemes for Images" (Brno, 2016).

Ten schemes of one transform: their counted costs, and their speed with the image in memory and with data that
stay in the caches.
"""

from __future__ import annotations

import itertools
import math
import statistics
from typing import Any

import undula

from ..arrays import ArrayView, contiguous
from ..engines.base import TransformOptions
from ..engines.gpu.engine import device_engine
from ..engines.gpu.launches import DeviceLevel
from ..engines.gpu.transform import device_levels, transform_program
from ..errors import UndulaError
from ..schemes import SCHEMES, Scheme, scheme
from .base import Chart, Outcome, Table, experiment
from .bench import Bench, pictures
from .published import work

WAVELETS = {"CDF 5/3": "cdf53", "CDF 9/7": "cdf97", "DD 13/7": "dd137"}
SIZES = (256, 512, 1024, 2048, 4096, 8192)
CACHED_SIDE = 1024  # Side of an image that stays in the caches, in pixels.
COUNTED = """Counting needs no device. Every cell is compared with the printed one."""
RUNS = """The engine for the CPU does not use schemes, so this is for devices only. The throughput counts the bytes of the
float32 image once as input and once as output; the paper does not state how it counts. Our tiles have 32×32 quads and 256 work
items, with a barrier before each stage that reads neighbours."""


def _compared(ours: Any, theirs: Any) -> str:
    return "equal" if ours == theirs else f"{theirs} printed"


@experiment("schemes", "table-2", "Barriers and operations", COUNTED, on="cpu")
def table_2(bench: Bench) -> Outcome:
    """Counted from the matrices."""
    published = {(row[0], row[1]): row[2:] for row in work("schemes").items["table-2"].rows}
    table = Table("counted here", ["wavelet", "scheme", "barriers", "operations", "compared"])
    for title, wavelet in WAVELETS.items():
        for name in SCHEMES:
            counts = [(counted := scheme(wavelet, name)).barriers, counted.operations]
            theirs = published.get((title, name.capitalize()))
            table.add(title, name, *counts, "not printed" if theirs is None else _compared(counts, theirs))
    return _counted(table)


def _counted(table: Table) -> Outcome:
    verdicts = [row[-1] for row in table.rows]
    equal, printed = verdicts.count("equal"), sum(verdict != "not printed" for verdict in verdicts)
    return Outcome([table], findings=[f"{equal} of {printed} rows of the paper are equal to ours."])


@experiment("schemes", "table-3", "Cells of local memory", COUNTED, on="cpu")
def table_3(bench: Bench) -> Outcome:
    """With single and double buffering."""
    table = Table("counted here", ["scheme", "barriers", "single", "double", "double, connected", "compared"])
    for row in work("schemes").items["table-3"].rows:
        cdf53, cdf97 = (scheme(wavelet, row[0].lower()) for wavelet in ("cdf53", "cdf97"))
        ours = [cdf53.barriers, cdf53.cells.single, cdf53.cells.double]
        connected = cdf97.cells.double
        theirs = [*row[1:4], row[4] or row[3]]
        table.add(row[0].lower(), *ours, connected, _compared([*ours, connected], theirs))
    return _counted(table)


@experiment("schemes", "table-4", "Reads and writes of local memory", COUNTED, on="cpu")
def table_4(bench: Bench) -> Outcome:
    """For K lifting pairs, from the counts for one pair and two pairs."""
    table = Table("counted here", ["scheme", "writes", "reads, degree 1", "reads, degree 3", "compared"])
    for row in work("schemes").items["table-4"].rows:
        cdf53, cdf97, dd137 = (scheme(wavelet, row[0].lower()) for wavelet in ("cdf53", "cdf97", "dd137"))
        each = cdf97.writes - cdf53.writes
        first = cdf53.writes - each
        assert cdf97.reads == 2 * cdf53.reads
        ours = [f"{first} + {each}K" if first else f"{each}K", f"{cdf53.reads}K", f"{dd137.reads}K"]
        table.add(row[0].lower(), *ours, _compared(ours, row[1:]))
    return _counted(table)


# --- running --------------------------------------------------------------------------------------


def _with_memory(bench: Bench, wavelet: str, name: str, n: int) -> float | None:
    """Seconds of one level of an image in memory."""

    def measure() -> float | None:
        options = {"strategy": "sliding"} if name == "sliding" else {"scheme": name}
        try:
            plan = bench.plan((n, n), wavelet, 1, dtype="float32", mode="symmetric", **options)
        except UndulaError as error:
            bench.checks.append(f"{name} of {wavelet}: not run ({error})")
            return None
        return bench.times(f"{name} of {wavelet}, {n}²", plan, transfers=False).calc

    return bench.once((wavelet, name, n), measure)


def _in_caches(bench: Bench, wavelet: str, name: str, n: int) -> float | None:
    """Seconds of as many small images as make up a large one, at the same address, so that they stay in the caches."""

    def measure() -> float | None:
        device = device_engine(bench.device).device
        queue, side = device.queue, min(n, CACHED_SIDE)
        try:
            plan = bench.plan((side, side), wavelet, 1, dtype="float32", mode="symmetric", scheme=name)
        except UndulaError:
            return None
        count, level = (n // side) ** 2, device_levels(plan.tree, str(plan.dtype))[0]
        tasks = tuple(task._replace(axis=task.axis + 1) for task in level.tasks)
        shapes = {key: (count, *shape) for key, shape in level.shapes.items()}
        batch = DeviceLevel((count, *level.shape), tasks, shapes)

        def stacked(number: int, shape: tuple[int, ...]) -> ArrayView:
            return ArrayView(number, (count, *shape), (0, *contiguous(shape)), "float32")

        samples, *bands = itertools.starmap(stacked, enumerate((level.shape, *level.shapes.values())))
        options = TransformOptions("tiled", name)
        program = transform_program(False, [batch], samples, bands, device.dialect, device.limits, options)
        prepared = device.prepare(program)
        # All buffers are held until the last run has finished: the program only knows their addresses.
        sizes = [math.prod(layout.shape[1:]) for layout in (samples, *bands)]
        sizes += [size for size, _ in prepared.program.scratch]
        memory = [device.allocate(4 * size, queue) for size in sizes]
        device.upload(pictures((side, side), 1)[0], memory[0], queue)
        buffers = [getattr(buffer, "address", buffer) for buffer in memory]

        def run() -> None:
            prepared.run(buffers, queue)

        runs = [bench.batch_seconds(run, lambda: device.finish(queue)) for _ in range(12)]
        return statistics.median(runs[1:])

    return bench.once(("caches", wavelet, name, n), measure)


def _rate(n: int, seconds: float) -> float:
    """GB/s of input and output."""
    return 2 * 4 * n * n / seconds / 1e9


def _sizes(bench: Bench) -> tuple[int, ...]:
    return bench.subset(*SIZES, quick=3, slow=2)


def _curves(bench: Bench, names: list[str], wavelets: list[str], seconds: Any, what: str) -> Outcome:
    outcome = Outcome()
    for title in wavelets:
        sizes = _sizes(bench)
        table = Table(f"{bench.title}: {title}, {what}, GB/s", ["scheme", *(f"{n}²" for n in sizes)])
        chart = Chart(f"{title}, {what}, on {bench.title}", "pixels on a side", "GB/s in and out", log="x")
        for name in names:
            times = {n: seconds(bench, WAVELETS[title], name, n) for n in sizes}
            table.add(name, *("–" if s is None else _rate(n, s) for n, s in times.items()))
            points: list[tuple[str | float, float]] = [
                (n, _rate(n, s)) for n, s in times.items() if s is not None
            ]
            if points:
                chart.series[name] = points
        outcome.tables.append(table)
        outcome.charts.append(chart)
    return outcome


WIDE_HALOS = """ When this was measured, the tiles of iwahashi and explosive, with * and without, had twice the halo that
they need."""
PLAIN = ["sweldens", "iwahashi", "explosive", "monolithic", "polyphase", "convolution"]
ALONE = (
    RUNS
    + """ For the transform alone, the paper omits input and output. Here the transform of a small image is repeated, so that
reads and writes stay in the caches but still happen. Where the tiles take most of the time, this is no faster than with
memory."""
    + WIDE_HALOS
)


@experiment("schemes", "figure-17", "The transform alone: original schemes, two degrees", ALONE, on="devices")
def figure_17(bench: Bench) -> Outcome:
    """Degree 1 and degree 3."""
    return _curves(bench, PLAIN, ["CDF 5/3", "DD 13/7"], _in_caches, "in the caches")


@experiment(
    "schemes",
    "figure-18",
    "The transform alone: improved schemes, degree 1",
    ALONE,
    also=("table-6",),
    on="devices",
)
def figure_18(bench: Bench) -> Outcome:
    """All schemes of CDF 5/3 and 9/7."""
    return _curves(bench, list(SCHEMES), ["CDF 5/3", "CDF 9/7"], _in_caches, "in the caches")


@experiment(
    "schemes",
    "figure-19",
    "With memory, CDF 9/7",
    RUNS + " The paper used texture memory." + WIDE_HALOS,
    on="devices",
)
def figure_19(bench: Bench) -> Outcome:
    """All schemes of CDF 9/7, and strategy sliding, which has no barriers."""
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
    """What the compiler reports about the kernel: registers, spilled bytes, shared bytes, occupancy."""
    device = device_engine(bench.device).device
    if not hasattr(device, "details"):
        return {}
    try:
        plan = bench.plan((1024, 1024), wavelet, 1, dtype="float32", mode="symmetric", scheme=name)
    except UndulaError:
        return {}
    kernel = plan.executable(False).program.launches[0].kernel
    details: dict[str, int] = device.details(kernel)
    return details


@experiment(
    "schemes",
    "table-6",
    "Ranking of schemes, and why",
    ALONE
    + """ The paper does not say which CDF wavelet its table is for; ours are CDF 5/3 and 9/7. Registers, spills and occupancy
    are reported by the compiler and the driver of CUDA; OpenCL has neither.""",
    also=("table-8",),
    why="""At a barrier one group waits, but the multiprocessor works on others. The cards of the paper had few other groups and
    packed four or five operations into one instruction, so two barriers less were worth more than some operations. A current GPU
    executes billions of barriers per second (one or two per cent of a level in the model). What matters are the operations and
    the traffic in shared memory, multiplied by the quads that a tile computes per result. This changes the order: the tiles of
    iwahashi and explosive overlapped by more quads than they need, so they computed 1.78 quads per result of CDF 9/7, where
    sweldens, monolithic and polyphase compute 1.31; sweldens has the fewest operations and exchanges; and polyphase of DD 13/7,
    with 255 operations in one stage, takes so many registers that only a quarter of the threads fit. It makes little difference
    whether the image is in memory or in the caches: the tiles limit all ten schemes, and strategy sliding, which has neither
    barriers nor tiles, is faster (Figure 19).""",
    on="devices",
)
def table_6(bench: Bench) -> Outcome:
    """Throughput at the largest size, in the order of the paper, with counts."""
    outcome = Outcome()
    n = _sizes(bench)[-1]
    for title, wavelet in WAVELETS.items():
        names = [name for name in SCHEMES if _fits(bench, wavelet, name)]
        alone = {name: _in_caches(bench, wavelet, name, n) for name in names}
        memory = {name: _with_memory(bench, wavelet, name, n) for name in names}
        details = {name: _details(bench, wavelet, name) for name in names}
        rates = [{name: _rate(n, s) for name, s in times.items() if s} for times in (alone, memory)]
        table, findings = ranking(bench.title, title, n, rates[0], rates[1], details)
        outcome.tables.append(table)
        if not bench.slow:  # If work items are iterations of a loop, barriers cost nothing.
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


def overlap(scheme: Scheme, tile: int = 32) -> float:
    """Quads computed per result: tiles overlap by the halo of the scheme."""
    (left, right), (above, below) = scheme.halo
    return tile * tile / ((tile - left - right) * (tile - above - below))


def ranking(
    device: str,
    title: str,
    n: int,
    caches: dict[str, float],
    memory: dict[str, float],
    details: dict[str, dict[str, int]],
) -> tuple[Table, list[str]]:
    """A table of schemes with counts and GB/s, the fastest of the paper first, and findings on the order."""
    rows = work("schemes").items["table-6"].rows if title != "DD 13/7" else []
    printed = {row[0].lower(): row[1] for row in rows}
    ranks = {name: k for k, name in enumerate(sorted(printed, key=lambda s: -printed[s]), 1)}
    order = {name: k for k, name in enumerate(sorted(caches, key=lambda s: -caches[s]), 1)}
    table = Table(f"{device}: {title}, {n}²", COLUMNS)
    counts = {name: scheme(WAVELETS[title], name) for name in caches}
    for name in sorted(caches, key=lambda s: (ranks.get(s, 99), order[s])):
        counted, kernel = counts[name], details.get(name, {})
        table.add(
            name, counted.barriers, counted.operations, counted.reads + counted.writes, overlap(counted),
            kernel.get("registers", "–"), kernel.get("spilled", "–"), kernel.get("occupancy", "–"),
            caches[name], memory.get(name, "–"), printed.get(name, "–"), order[name], ranks.get(name, "–"),
        )  # fmt: skip
    return table, _explain_order(device, title, counts, caches, printed)


def _explain_order(
    device: str, title: str, counts: dict[str, Scheme], rates: dict[str, float], printed: dict[str, float]
) -> list[str]:
    """Which count explains the order of the schemes, and how it differs from that of the paper."""
    if not rates:
        return []
    by = {
        "operations": {name: -s.operations * overlap(s) for name, s in counts.items()},
        "barriers": {name: -float(s.barriers) for name, s in counts.items()},
        "reads and writes of shared memory": {
            name: -(s.reads + s.writes) * overlap(s) for name, s in counts.items()
        },
    }
    agreement = {what: _rank_correlation(rates, values) for what, values in by.items()}
    what = max(agreement, key=lambda k: agreement[k])
    correlations = ", ".join(f"{name} {value:+.2f}" for name, value in agreement.items())
    lines = [
        f"{title} on {device}: the order of schemes follows {what}, including the overlap of tiles"
        f" (rank correlation: {correlations})."
    ]
    both = [name for name in rates if name in printed]
    if not both:
        return lines
    best = max(both, key=lambda name: printed[name])
    ours = max(both, key=lambda name: rates[name])
    if best == ours:
        return [*lines, f"{title}: the fastest scheme of the paper, {best}, is the fastest here as well."]
    theirs, fastest = counts[best], counts[ours]
    lines.append(
        f"{title}: the fastest scheme of the paper, {best}, reaches {rates[best]:,.0f} GB/s here, and {ours} {rates[ours]:,.0f}:"
        f" {theirs.barriers} barriers, {theirs.operations} operations, {theirs.reads + theirs.writes} reads and writes"
        f" compared with {fastest.barriers}, {fastest.operations} and {fastest.reads + fastest.writes}."
    )
    return lines


def _rank_correlation(first: dict[str, float], second: dict[str, float]) -> float:
    """Spearman's rank correlation; equal values share their rank."""

    def ranks(values: dict[str, float]) -> list[float]:
        ordered = [values[name] for name in first]
        return [
            sum(v < w for v in values.values()) + sum(v == w for v in values.values()) / 2 for w in ordered
        ]

    a, b = ranks(first), ranks(second)
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    cross = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b, strict=True))
    size = math.sqrt(sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b))
    return cross / size if size else 0.0
