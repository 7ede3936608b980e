"""Littlejohn and Yao, "Accelerated Discrete Wavelet Transforms" (Columbia, 2019).

CDF 9/7 by a serial program, a kernel in two dimensions, a naive one along each axis and one with tiles: random
arrays of many sizes, square and not, with two sizes of blocks; 750 images; and a profile.
"""

from __future__ import annotations

import math
import time
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

import undula

from ..errors import UndulaError
from ..transforms.resident import Resident
from .base import Chart, Outcome, Table, experiment
from .bench import Bench
from .published import work
from .schemes import rims

STEPS = (1, 5, 10, 20, 35, 50, 2, 30)  # L: sides are a hundred times as long
WAYS: dict[str, dict[str, Any]] = {
    "non-separable": {"scheme": "convolution"},
    "naive separable": {"strategy": "naive"},
    "tiled separable": {"scheme": "sweldens"},
    "sliding": {"strategy": "sliding"},
}
COMMON = """Serial is PyWavelets, as in the report, where it is installed. Non-separable is scheme `convolution`, whose 16
polyphase filters are two-dimensional; it has tiles in shared memory, which the report's kernel had not. Tiled is scheme
`sweldens`. A block is a tile of so many quads on a side; naive and sliding have none. Times are without transfers; the
report does not say whether its own are. The processor's engine has its own way, and stands beside them as `processor`."""


def _shape(step: int, square: bool) -> tuple[int, int]:
    return (100 * step, 100 * step) if square else (100 * step, 50 * step)


def _serial(bench: Bench, x: Any) -> tuple[float, Any] | None:
    """PyWavelets' seconds and results."""
    try:
        import pywt
    except ImportError:
        return None
    found = pywt.dwt2(x, "bior4.4", mode="zero")
    if x.size > 4e6:  # (once is enough of what takes so long)
        begin = time.perf_counter()
        found = pywt.dwt2(x, "bior4.4", mode="zero")
        return time.perf_counter() - begin, found
    return bench.seconds(lambda: pywt.dwt2(x, "bior4.4", mode="zero")), found


def _arrays(bench: Bench, step: int, square: bool) -> tuple[Any, float | None, Any]:
    """A random array, and what the serial program makes of it, on this machine."""

    def measured() -> tuple[Any, float | None, Any]:
        x = np.random.default_rng(step).random(_shape(step, square)).astype(np.float32)
        serial = _serial(bench, x)
        low, high = undula.dwt2(x.astype(np.float64), "bior4.4", mode="zero") if serial is None else serial[1]
        return x, None if serial is None else serial[0], (low, *high)

    found: tuple[Any, float | None, Any] = bench.cpu.once(("array", step, square), measured)
    return found


def _run(bench: Bench, way: str, step: int, square: bool, block: int) -> float | None:
    """Seconds of one way; its results are compared with the serial program's."""
    options = {} if bench.on_cpu else dict(WAYS[way])
    if "scheme" in options:
        options["tile"] = block

    def measured() -> float | None:
        x, _, expected = _arrays(bench, step, square)
        try:
            plan = bench.plan(x.shape, "bior4.4", 1, mode="zero", dtype="float32", **options)
        except UndulaError as error:
            bench.checks.append(f"{way}, blocks of {block}: not run ({error})")
            return None
        there = Resident(plan)
        there.upload(x)
        there.forward()
        there.finish()
        low, ad, da, dd = there.download()
        apart = max(float(np.abs(a - b).max()) for a, b in zip((low, da, ad, dd), expected, strict=True))
        assert apart < 1e-4, f"{way} {x.shape}: off by {apart}"
        bench.checks.append(
            f"{way}, {x.shape[0]}×{x.shape[1]}, block {block}: equal to the serial one to {apart:.0e}"
        )
        seconds = float(np.median([bench.calculated(there, False) for _ in range(7)]))
        bench._predicted(f"{way}, {x.shape[0]}×{x.shape[1]}, block {block}", plan, seconds)
        return seconds

    found: float | None = bench.once((way, step, square, block if "tile" in options else 0), measured)
    return found


def _sweep(bench: Bench, square: bool, block: int, item: str) -> Outcome:
    steps = sorted(bench.some(*STEPS, quick=3, slow=2))
    ways = ["processor"] if bench.on_cpu else list(WAYS)
    shape = "square" if square else "rectangular"
    table = Table(
        f"{bench.title}: {shape} arrays, blocks of {block}, ms",
        [
            "size",
            "serial (PyWavelets)",
            *ways,
            "serial / tiled" if not bench.on_cpu else "serial / processor",
        ],
    )
    chart = Chart(f"{shape}, blocks of {block}, on {bench.title}", "L (side / 100)", "milliseconds", log="y")
    for step in steps:
        _, serial, _ = _arrays(bench, step, square)
        found = {way: _run(bench, way, step, square, block) for way in ways}
        best = found.get("tiled separable") or found.get("processor")
        height, width = _shape(step, square)
        table.add(
            f"{height}×{width}",
            "–" if serial is None else 1e3 * serial,
            *("–" if s is None else 1e3 * s for s in found.values()),
            serial / best if serial and best else "–",
        )
        for name, seconds in (("serial (PyWavelets)", serial), *found.items()):
            if seconds is not None:
                chart.series.setdefault(name, []).append((step, 1e3 * seconds))
    outcome = Outcome([table], [chart])
    ratios = [row[-1] for row in table.rows if not isinstance(row[-1], str)]
    if ratios:
        printed = [
            row[1] for row in work("tiles").items[item].rows if row[0] == "serial time / tiled separable time"
        ]
        said = f"; the report has {printed[0]}" if printed else ""
        outcome.findings.append(
            f"{bench.title}: {min(ratios):,.0f} to {max(ratios):,.0f} times as fast as the serial program{said}."
        )
    return outcome


@experiment("tiles", "figure-7", "Square arrays, blocks of 16", COMMON)
def figure_7(bench: Bench) -> Outcome:
    """100L × 100L."""
    return _sweep(bench, True, 16, "figure-7")


@experiment("tiles", "figure-8", "Rectangular arrays, blocks of 16", COMMON)
def figure_8(bench: Bench) -> Outcome:
    """100L × 50L."""
    return _sweep(bench, False, 16, "figure-8")


def _with_blocks(bench: Bench, square: bool, item: str) -> Outcome:
    outcome = _sweep(bench, square, 32, item)
    if bench.on_cpu:
        return outcome
    step = max(bench.some(*STEPS, quick=3, slow=2))
    for way in ("tiled separable", "non-separable"):
        made = undula.scheme("bior4.4", str(WAYS[way]["scheme"]))
        small, large = (_run(bench, way, step, square, block) for block in (16, 32))
        if small and large:
            outcome.findings.append(
                f"{bench.title}, {way}, L = {step}: blocks of 16 take {small / large:.2f} times as long as blocks of 32"
                f" ({rims(made, 16):.2f} and {rims(made, 32):.2f} quads are calculated for each result)."
            )
    return outcome


@experiment("tiles", "figure-9", "Square arrays, blocks of 32", COMMON, also=("tile-ratio",))
def figure_9(bench: Bench) -> Outcome:
    """100L × 100L."""
    return _with_blocks(bench, True, "figure-9")


@experiment("tiles", "figure-10", "Rectangular arrays, blocks of 32", COMMON, also=("tile-ratio",))
def figure_10(bench: Bench) -> Outcome:
    """100L × 50L."""
    return _with_blocks(bench, False, "figure-10")


SHAPES = {"square": (1, 1), "wide 1:2": (1, 2), "tall 2:1": (2, 1)}


def _album(bench: Bench) -> dict[str, Any]:
    """Many images of three shapes, each with its transfers; pixels and seconds as they add up."""

    def measured() -> dict[str, Any]:
        count = 10 if bench.slow else 30 if bench.quick else 750
        rng = np.random.default_rng(0)
        sides = [int(n) for n in rng.integers(100, 1001 if not bench.slow else 400, count // 3)]
        ways = {"processor": {}} if bench.on_cpu else dict(WAYS)
        canvas = rng.random((3, 2000, 2000)).astype(np.float32)
        found: dict[str, Any] = {"curves": {}, "profile": {}, "count": 3 * len(sides)}
        for shape, (tall, wide) in SHAPES.items():
            for way, options in ways.items():
                pixels, seconds, curve = 0, 0.0, []
                own = found["profile"].setdefault(
                    way, {"up": 0.0, "kernels": 0.0, "down": 0.0, "bytes up": 0, "bytes down": 0}
                )
                for number, side in enumerate(sides):
                    rows, columns = tall * side, wide * side
                    image = np.ascontiguousarray(canvas[:, :rows, :columns])
                    try:
                        plan = bench.plan(
                            image.shape, "bior4.4", 1, mode="zero", dtype="float32", axes=(1, 2), **options
                        )
                    except UndulaError:
                        break
                    there = Resident(plan)
                    there.forward()
                    there.finish()
                    marks = [time.perf_counter()]
                    for step in (partial(there.upload, image), there.forward, there.download):
                        step()
                        there.finish()
                        marks.append(time.perf_counter())
                    if number == 0:
                        _same_as_serial(there.download(), image)
                    up, kernels, down = (b - a for a, b in pairwise(marks))
                    own["up"] += up
                    own["kernels"] += kernels
                    own["down"] += down
                    own["bytes up"] += image.nbytes
                    own["bytes down"] += sum(band.nbytes for band in there.download())
                    pixels += rows * columns
                    seconds += kernels if not bench.on_cpu else up + kernels + down
                    curve.append((pixels, seconds))
                if curve:
                    found["curves"][shape, way] = curve
        bench.checks.append(f"{found['count']} images: the first of each shape equal to the serial program's")
        return found

    made: dict[str, Any] = bench.once("album", measured)
    return made


def _same_as_serial(found: Any, image: Any) -> None:
    low, (horizontal, vertical, diagonal) = undula.dwt2(
        image.astype(np.float64), "bior4.4", mode="zero", axes=(1, 2)
    )
    for ours, other in zip(found, (low, vertical, horizontal, diagonal), strict=True):
        assert np.abs(ours - other).max() < 1e-4


def _serial_album(bench: Bench) -> float | None:
    """PyWavelets' seconds for a megapixel of colour."""

    def measured() -> float | None:
        try:
            import pywt
        except ImportError:
            return None
        image = np.random.default_rng(0).random((3, 600, 600)).astype(np.float32)
        return bench.seconds(lambda: pywt.dwt2(image, "bior4.4", "zero", (1, 2))) / 0.36

    found: float | None = bench.cpu.once("serial album", measured)
    return found


@experiment(
    "tiles",
    "figure-11",
    "750 images of three shapes",
    COMMON
    + """ The report's images are not published; ours are random, three planes each, with the shortest side between 100 and
    1000. A quick run has fewer of them. The serial line is PyWavelets' speed on one size, times the pixels.""",
)
def figure_11(bench: Bench) -> Outcome:
    """Seconds over pixels, as they add up."""
    album, serial = _album(bench), _serial_album(bench)
    outcome = Outcome()
    table = Table(
        f"{bench.title}: {album['count']} images, seconds for all of a shape",
        ["shape", "way", "megapixels", "seconds", "megapixels/s", "serial / this"],
    )
    for shape in SHAPES:
        chart = Chart(f"{shape} on {bench.title}", "megapixels", "seconds", log="y")
        for (own, way), curve in album["curves"].items():
            if own == shape:
                chart.series[way] = [(p / 1e6, s) for p, s in curve]
                pixels, seconds = curve[-1]
                gain = serial * pixels / 1e6 / seconds if serial else "–"
                table.add(shape, way, pixels / 1e6, seconds, pixels / 1e6 / seconds, gain)
        if serial and chart.series:
            last = next(iter(chart.series.values()))
            chart.series["serial (PyWavelets)"] = [(p, float(p) * serial) for p, _ in last]
        outcome.charts.append(chart)
    outcome.tables.append(table)
    gains = [row[5] for row in table.rows if not isinstance(row[5], str)]
    if gains:
        outcome.findings.append(
            f"{bench.title}: {min(gains):,.0f} to {max(gains):,.0f} times as fast as the serial program on images."
        )
    return outcome


@experiment(
    "tiles",
    "figure-14",
    "Profile: kernels and transfers",
    COMMON
    + " Amounts and shares are of the images of Figure 11, each way by itself; the report has one profile of all kernels.",
)
def figure_14(bench: Bench) -> Outcome | None:
    """What the time goes to."""
    if bench.on_cpu:
        return None
    album = _album(bench)
    table = Table(
        f"{bench.title}: {album['count']} images",
        [
            "way",
            "GB up",
            "s up",
            "GB/s up",
            "s kernels",
            "GB down",
            "s down",
            "GB/s down",
            "kernels, % of all",
        ],
    )
    chart = Chart(f"seconds on {bench.title}", "", "seconds", kind="bars")
    for way, own in album["profile"].items():
        whole = own["up"] + own["kernels"] + own["down"]
        if not whole:
            continue
        table.add(
            way, own["bytes up"] / 1e9, own["up"], own["bytes up"] / own["up"] / 1e9, own["kernels"],
            own["bytes down"] / 1e9, own["down"], own["bytes down"] / own["down"] / 1e9,
            100 * own["kernels"] / whole,
        )  # fmt: skip
        for name, key in (("up", "up"), ("kernels", "kernels"), ("down", "down")):
            chart.series.setdefault(name, []).append((way, own[key]))
    kernels = {row[0]: float(row[4]) for row in table.rows}
    total = sum(kernels.values())
    finding = "Shares of all kernels' time: " + ", ".join(
        f"{k} {100 * v / total:.0f} %" for k, v in kernels.items()
    )
    return Outcome(
        [table], [chart], findings=[f"{finding} ({bench.title})."] if math.isfinite(total) and total else []
    )
