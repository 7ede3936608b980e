"""Littlejohn and Yao, "Accelerated Discrete Wavelet Transforms" (Columbia, 2019).

CDF 9/7 by a serial program, a two-dimensional kernel, a naive kernel along each axis and a tiled one: random
arrays of many sizes, square and rectangular, with two block sizes; 750 images; and a profile.
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
from .base import Chart, Outcome, Table, experiment
from .bench import Bench
from .published import work
from .schemes import overlap

LENGTHS = (1, 5, 10, 20, 35, 50, 2, 30)  # L of the report: sides in hundreds of samples.
WAYS: dict[str, dict[str, Any]] = {
    "non-separable": {"scheme": "convolution"},
    "naive separable": {"strategy": "naive"},
    "tiled separable": {"scheme": "sweldens"},
    "sliding": {"strategy": "sliding"},
}
COMMON = """The serial program is PyWavelets, as in the report, if installed. Non-separable is scheme `convolution`, with 16
two-dimensional polyphase filters; unlike the kernel of the report, it uses tiles in shared memory. Tiled is scheme `sweldens`.
The block size is the side of a tile in quads; naive and sliding have no tiles. Times exclude transfers; the report does not say
whether its times do. The engine for the CPU has none of these kernels; its times are in column `processor`."""


def _shape(step: int, square: bool) -> tuple[int, int]:
    return (100 * step, 100 * step) if square else (100 * step, 50 * step)


def _serial(bench: Bench, x: Any) -> tuple[float, Any] | None:
    """Seconds and coefficients of PyWavelets."""
    try:
        import pywt
    except ImportError:
        return None
    coeffs = pywt.dwt2(x, "bior4.4", mode="zero")
    if x.size > 4e6:  # Large arrays take long, so one run must do.
        begin = time.perf_counter()
        coeffs = pywt.dwt2(x, "bior4.4", mode="zero")
        return time.perf_counter() - begin, coeffs
    return bench.seconds(lambda: pywt.dwt2(x, "bior4.4", mode="zero")), coeffs


def _arrays(bench: Bench, step: int, square: bool) -> tuple[Any, float | None, Any]:
    """A random array, the seconds of the serial program on this machine, and its coefficients."""

    def measure() -> tuple[Any, float | None, Any]:
        x = np.random.default_rng(step).random(_shape(step, square)).astype(np.float32)
        serial = _serial(bench, x)
        low, high = undula.dwt2(x.astype(np.float64), "bior4.4", mode="zero") if serial is None else serial[1]
        return x, None if serial is None else serial[0], (low, *high)

    return bench.cpu.once(("array", step, square), measure)


def _run(bench: Bench, way: str, step: int, square: bool, block: int) -> float | None:
    """Seconds of one kernel; its results are compared with those of the serial program."""
    options = {} if bench.on_cpu else dict(WAYS[way])
    if "scheme" in options:
        options["tile"] = block

    def measure() -> float | None:
        x, _, expected = _arrays(bench, step, square)
        try:
            plan = bench.plan(x.shape, "bior4.4", 1, mode="zero", dtype="float32", **options)
        except UndulaError as error:
            bench.checks.append(f"{way}, blocks of {block}: not run ({error})")
            return None
        resident = bench.resident(plan, x)
        low, ad, da, dd = resident.download()
        deviation = max(float(np.abs(a - b).max()) for a, b in zip((low, da, ad, dd), expected, strict=True))
        assert deviation < 1e-4, f"{way} {x.shape}: off by {deviation}"
        label = f"{way}, {x.shape[0]}×{x.shape[1]}, block {block}"
        bench.checks.append(f"{label}: equal to the serial one to {deviation:.0e}")
        seconds = float(np.median([bench.run_seconds(resident) for _ in range(7)]))
        bench.compare_with_model(label, plan, seconds)
        return seconds

    return bench.once((way, step, square, block if "tile" in options else 0), measure)


def _sweep(bench: Bench, square: bool, block: int, item: str) -> Outcome:
    steps = sorted(bench.subset(*LENGTHS, quick=3, slow=2))
    ways = ["processor"] if bench.on_cpu else list(WAYS)
    shape = "square" if square else "rectangular"
    table = Table(
        f"{bench.title}: {shape} arrays, blocks of {block}, ms",
        ["size", "serial (PyWavelets)", *ways, f"serial / {'processor' if bench.on_cpu else 'tiled'}"],
    )
    chart = Chart(f"{shape}, blocks of {block}, on {bench.title}", "L (side / 100)", "milliseconds", log="y")
    for step in steps:
        _, serial, _ = _arrays(bench, step, square)
        times = {way: _run(bench, way, step, square, block) for way in ways}
        best = times.get("tiled separable") or times.get("processor")
        height, width = _shape(step, square)
        table.add(
            f"{height}×{width}",
            "–" if serial is None else 1e3 * serial,
            *("–" if s is None else 1e3 * s for s in times.values()),
            serial / best if serial and best else "–",
        )
        for name, seconds in (("serial (PyWavelets)", serial), *times.items()):
            if seconds is not None:
                chart.series.setdefault(name, []).append((step, 1e3 * seconds))
    outcome = Outcome([table], [chart])
    ratios = [row[-1] for row in table.rows if not isinstance(row[-1], str)]
    if ratios:
        printed = [
            row[1] for row in work("tiles").items[item].rows if row[0] == "serial time / tiled separable time"
        ]
        comparison = f"; the report has {printed[0]}" if printed else ""
        outcome.findings.append(
            f"{bench.title}: {min(ratios):,.0f} to {max(ratios):,.0f} times as fast as the serial program{comparison}."
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
    step = max(bench.subset(*LENGTHS, quick=3, slow=2))
    for way in ("tiled separable", "non-separable"):
        scheme = undula.scheme("bior4.4", str(WAYS[way]["scheme"]))
        small, large = (_run(bench, way, step, square, block) for block in (16, 32))
        if small and large:
            outcome.findings.append(
                f"{bench.title}, {way}, L = {step}: blocks of 16 take {small / large:.2f} times as long as blocks of 32"
                f" ({overlap(scheme, 16):.2f} and {overlap(scheme, 32):.2f} quads are computed per result)."
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
    """Cumulative pixels and seconds over many images of three shapes, and totals of transfers."""

    def measure() -> dict[str, Any]:
        count = 10 if bench.slow else 30 if bench.quick else 750
        rng = np.random.default_rng(0)
        sides = [int(n) for n in rng.integers(100, 1001 if not bench.slow else 400, count // 3)]
        ways = {"processor": {}} if bench.on_cpu else dict(WAYS)
        canvas = rng.random((3, 2000, 2000)).astype(np.float32)
        album: dict[str, Any] = {"curves": {}, "profile": {}, "count": 3 * len(sides)}
        for shape, (tall, wide) in SHAPES.items():
            for way, options in ways.items():
                pixels, seconds, curve = 0, 0.0, []
                profile = album["profile"].setdefault(
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
                    resident = bench.resident(plan, image)
                    marks = [time.perf_counter()]
                    for action in (partial(resident.upload, image), resident.forward, resident.download):
                        action()
                        resident.finish()
                        marks.append(time.perf_counter())
                    if number == 0:
                        _check_as_serial(resident.download(), image)
                    up, kernels, down = (b - a for a, b in pairwise(marks))
                    profile["up"] += up
                    profile["kernels"] += kernels
                    profile["down"] += down
                    profile["bytes up"] += image.nbytes
                    profile["bytes down"] += sum(band.nbytes for band in resident.download())
                    pixels += rows * columns
                    seconds += kernels if not bench.on_cpu else up + kernels + down
                    curve.append((pixels, seconds))
                if curve:
                    album["curves"][shape, way] = curve
        bench.checks.append(f"{album['count']} images: the first of each shape equals the serial result")
        return album

    return bench.once("album", measure)


def _check_as_serial(bands: Any, image: Any) -> None:
    low, (horizontal, vertical, diagonal) = undula.dwt2(
        image.astype(np.float64), "bior4.4", mode="zero", axes=(1, 2)
    )
    for ours, expected in zip(bands, (low, vertical, horizontal, diagonal), strict=True):
        assert np.abs(ours - expected).max() < 1e-4


def _serial_album(bench: Bench) -> float | None:
    """Seconds of PyWavelets per megapixel of colour."""

    def measure() -> float | None:
        try:
            import pywt
        except ImportError:
            return None
        image = np.random.default_rng(0).random((3, 600, 600)).astype(np.float32)
        return bench.seconds(lambda: pywt.dwt2(image, "bior4.4", "zero", (1, 2))) / 0.36

    return bench.cpu.once("serial album", measure)


@experiment(
    "tiles",
    "figure-11",
    "750 images of three shapes",
    COMMON
    + """ The images of the report are not published; ours are random, with three planes and a shortest side between 100 and
    1000. A quick run has fewer of them. The serial line is the speed of PyWavelets at one size, times the pixels.""",
)
def figure_11(bench: Bench) -> Outcome:
    """Cumulative seconds over pixels."""
    album, serial = _album(bench), _serial_album(bench)
    outcome = Outcome()
    table = Table(
        f"{bench.title}: {album['count']} images, seconds for each shape",
        ["shape", "way", "megapixels", "seconds", "megapixels/s", "serial / this"],
    )
    for shape in SHAPES:
        chart = Chart(f"{shape} on {bench.title}", "megapixels", "seconds", log="y")
        for (curve_shape, way), curve in album["curves"].items():
            if curve_shape == shape:
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
    + " Amounts and shares are those of the images of Figure 11, for each kernel; the report has one profile of all kernels.",
    on="devices",
)
def figure_14(bench: Bench) -> Outcome:
    """Shares of kernels and transfers."""
    album = _album(bench)
    table = Table(
        f"{bench.title}: {album['count']} images",
        "way,GB up,s up,GB/s up,s kernels,GB down,s down,GB/s down,kernels %".split(","),
    )
    chart = Chart(f"seconds on {bench.title}", "", "seconds", kind="bars")
    for way, profile in album["profile"].items():
        up, kernels, down = (profile[part] for part in ("up", "kernels", "down"))
        if not up + kernels + down:
            continue
        gb_up, gb_down = profile["bytes up"] / 1e9, profile["bytes down"] / 1e9
        share = 100 * kernels / (up + kernels + down)
        table.add(way, gb_up, up, gb_up / up, kernels, gb_down, down, gb_down / down, share)
        for name in ("up", "kernels", "down"):
            chart.series.setdefault(name, []).append((way, profile[name]))
    seconds = {row[0]: float(row[4]) for row in table.rows}
    total = sum(seconds.values())
    shares = ", ".join(f"{way} {100 * s / total:.0f} %" for way, s in seconds.items())
    finding = f"Shares of the time of all kernels: {shares}"
    return Outcome(
        [table], [chart], findings=[f"{finding} ({bench.title})."] if math.isfinite(total) and total else []
    )
