"""Eskildsen, Peters, Leegaard and Ravn, "Wavelet transform for video coders using GPU" (Aalborg, 2012).

CDF 9/7 of colour images by filtering and by lifting, with times of upload, computation and download: HD sizes,
squares, HD sizes padded to squares; and video in real time.
"""

from __future__ import annotations

import math
import statistics
import time
from typing import Any

import numpy as np

from ..errors import UndulaError
from .base import Chart, Outcome, Table, experiment
from .bench import Bench, Times, pictures, plural
from .published import work

HD = {  # Levels by width × height.
    "852×480": 2,
    "1280×720": 4,
    "1920×1080": 3,
    "3840×2160": 4,
    "4520×2540": 2,
    "7680×4320": 4,
}
SQUARES = tuple(f"{n}×{n}" for n in (256, 512, 1024, 2048, 4096, 8192))
FRAME_MS = 40.0  # Time for a frame at 25 frames per second.
METHODS = {"lifting": {}, "filtering": {"strategy": "rowcolumn", "method": "filters"}}
PLAN: dict[str, Any] = {"mode": "periodization", "axes": (-2, -1), "dtype": "float32"}
COMMON = """Our images are synthetic (chirps, edges and noise) instead of photographs; times do not depend on the content.
The mode is periodization, so there are as many coefficients as pixels. The number of runs depends on the time available
(see the table). The CPU needs no transfers, and its engine uses lifting only."""


def _shape(size: str) -> tuple[int, int]:
    width, height = (int(n) for n in size.split("×"))
    return height, width


def _times(
    bench: Bench,
    size: str,
    method: str,
    *,
    level: int | None,
    planes: int = 3,
    inverse: bool = False,
    square: bool = False,
) -> Times | None:
    """Times of one size by one method, or None if the device does not support the method."""
    key = (size, method, level, planes, inverse, square)

    def measure() -> Times | None:
        options: dict[str, Any] = dict(METHODS.get(method, {}))
        if method == "first lifting":
            options = {"strategy": "rowcolumn", "method": "lifting"}
        if bench.on_cpu:
            if method != "lifting":
                return None
            options = {}
        shape = (planes, *_shape(size)) if planes > 1 else _shape(size)
        try:
            plan = bench.plan(shape, "cdf97", level, square=square, **PLAN, **options)
        except UndulaError as error:
            bench.checks.append(f"{size} by {method}: not run ({error})")
            return None
        label = f"{size}{' grey' if planes == 1 else ''}{' padded' if square else ''}, {method}"
        return bench.times(f"{label}, {plan.level} levels", plan, inverse)

    return bench.once(key, measure)


def _hd(bench: Bench) -> tuple[str, ...]:
    return bench.subset(*HD, quick=3, slow=2)


def _squares(bench: Bench) -> tuple[str, ...]:
    return bench.subset(*SQUARES, quick=4, slow=2)


def _all_levels(size: str) -> int:
    """Number of levels down to one pixel."""
    return round(math.log2(_shape(size)[0]))


def _ms(seconds: float | None) -> float | str:
    return "–" if seconds is None else 1e3 * seconds


def _printed(size: str, part: str) -> float | None:
    """Published seconds of lifting on the GTX 680, ``total`` or computation only (``calc``), if any."""
    for item in ("table-6.3", "table-6.4", "table-6.5"):
        table = work("video").items[item]
        name = f"GPU lifting {part} (ms)"
        for row in table.rows:
            if row[0] == size and name in table.columns:
                return float(row[table.columns.index(name)]) / 1e3
    return None


def _compare(bench: Bench, sizes: tuple[str, ...], what: str) -> Outcome:
    """Totals or computation only of both methods, compared with the CPU and the paper."""
    level = (lambda size: HD[size]) if sizes and sizes[0] in HD else _all_levels
    part = "total" if "total" in what else "calc"
    table = Table(
        f"{bench.title}: {what}, ms",
        "size,processor grey,processor colour,lifting,filtering,× processor,× GTX 680,runs".split(","),
    )
    outcome = Outcome([table])
    lines: dict[str, list[tuple[Any, float]]] = {"lifting": [], "filtering": [], "processor": []}
    ratios = []
    for size in sizes:
        ours = {m: _times(bench, size, m, level=level(size)) for m in METHODS}
        cpu = _times(bench.cpu, size, "lifting", level=level(size))
        grey = _times(bench.cpu, size, "lifting", level=level(size), planes=1)
        values = {m: None if t is None else t.total if part == "total" else t.calc for m, t in ours.items()}
        first, colour = ours["lifting"], None if cpu is None else cpu.calc
        theirs = _printed(size, part)
        lifted = values["lifting"]
        if lifted and theirs:
            ratios.append(theirs / lifted)
        table.add(
            size,
            _ms(None if grey is None else grey.calc),
            _ms(colour),
            _ms(lifted),
            _ms(values["filtering"]),
            "–" if bench.on_cpu or not lifted or not colour else colour / lifted,
            theirs / lifted if theirs and lifted else "–",
            0 if first is None else first.runs,
        )
        pixels = math.prod(_shape(size))
        for name, value in (*values.items(), ("processor", colour)):
            if value is not None and not (name == "processor" and bench.on_cpu):
                lines[name].append((pixels, 1e3 * value))
    chart = Chart(
        f"{what} on {bench.title}", "pixels", "milliseconds", lines, log="xy", mark=("40 ms", FRAME_MS)
    )
    printed: list[tuple[Any, float]] = [
        (math.prod(_shape(size)), 1e3 * t)
        for size in (*HD, *SQUARES)
        if (size in HD) == (sizes[0] in HD) and (t := _printed(size, part))
    ]
    if printed:
        chart.theirs[f"GTX 680, lifting, {part}"] = printed
    outcome.charts.append(chart)
    if ratios:
        outcome.findings.append(
            f"{bench.title} is {_times_of(ratios)} as fast as the GTX 680 on the same sizes ({what})."
        )
    gains = [float(row[5]) for row in table.rows if not isinstance(row[5], str)]
    if gains:
        outcome.findings.append(
            f"{bench.title} is {_times_of(gains)} as fast as the CPU of the same machine, from {sizes[0]} to {sizes[-1]}:"
            f" {_faster(gains)} ({what})."
        )
    return outcome


def _times_of(ratios: list[float]) -> str:
    low, high = (f"{r:,.0f}" if r >= 10 else f"{r:.1f}" for r in (min(ratios), max(ratios)))
    return f"{low} times" if low == high else f"{low} to {high} times"


def _faster(gains: list[float]) -> str:
    """The number of sizes at which it is faster, as text."""
    count = sum(gain > 1 for gain in gains)
    return (
        "faster at all sizes" if count == len(gains) else f"faster at {count} of {plural(len(gains), 'size')}"
    )


@experiment("video", "table-6.3", "HD images, transfers included", COMMON)
def table_6_3(bench: Bench) -> Outcome:
    """HD sizes, including transfers."""
    return _compare(bench, _hd(bench), "total with transfers")


@experiment("video", "table-6.4", "HD images, computation only", COMMON)
def table_6_4(bench: Bench) -> Outcome:
    """HD sizes, with data on the device."""
    return _compare(bench, _hd(bench), "computation only")


@experiment("video", "table-6.5", "Squares, all levels, transfers included", COMMON)
def table_6_5(bench: Bench) -> Outcome:
    """Squares, decomposed down to one pixel."""
    return _compare(bench, _squares(bench), "total with transfers")


def _frames(bench: Bench) -> tuple[list[np.ndarray[Any, Any]], str]:
    """Frames of 1920×1080 as three planes of float32, and their description."""
    count = 6 if bench.slow else 12 if bench.quick else 48
    try:
        from PIL import Image

        from .. import io

        clip = list(io.read_frames(io.sample("bunny"), count))
        resized = [np.asarray(Image.fromarray(frame).resize((1920, 1080))) for frame in clip]
        planes = [np.ascontiguousarray(frame.transpose(2, 0, 1), np.float32) for frame in resized]
        return planes, "frames of Big Buck Bunny, enlarged"
    except (ImportError, UndulaError):
        return pictures((3, 1080, 1920), min(count, 12)), "synthetic frames (no clip is installed)"


def _video(bench: Bench) -> dict[str, Any]:
    """Milliseconds of each frame: decomposition by both methods, reconstruction by lifting."""

    def measure() -> dict[str, Any]:
        frames, kind = _frames(bench)
        times: dict[str, list[float]] = {}
        largest = 0.0
        for method in METHODS:
            if bench.on_cpu and method == "filtering":
                continue
            options = {} if bench.on_cpu else METHODS[method]
            plan = bench.plan((3, 1080, 1920), "cdf97", 3, **PLAN, **options)
            coeffs = [plan.forward(frame) for frame in frames[:2]]
            plan.inverse(coeffs[0])
            forward: list[float] = []
            inverse: list[float] = []
            begin = time.perf_counter()
            while time.perf_counter() - begin < 20 * bench.budget_s or len(forward) < len(frames):
                for frame in frames:
                    start = time.perf_counter()
                    decomposed = plan.forward(frame)
                    forward.append(1e3 * (time.perf_counter() - start))
                    if method == "lifting":
                        start = time.perf_counter()
                        restored = plan.inverse(decomposed)
                        inverse.append(1e3 * (time.perf_counter() - start))
                        if len(inverse) <= 2:
                            largest = max(largest, float(np.abs(restored - frame).max()))
            times[f"{method}, decomposition"] = forward
            if inverse:
                times[f"{method}, reconstruction"] = inverse
            if bench.kind == "cuda":
                start = time.perf_counter()
                count = sum(1 for _ in plan.frames(frames * 4))
                each = 1e3 * (time.perf_counter() - start) / count
                times[f"{method}, decomposition, pipelined"] = [each] * count
        bench.checks.append(f"video: largest error of reconstructed frames {largest:.1e} of 255")
        assert largest < 0.01
        return {"kind": kind, "frames": len(frames), "times": times}

    return bench.once("video", measure)


VIDEO = (
    COMMON
    + """ The frames come from a clip of the same film, enlarged from 1280×720 (the authors had the trailer in 1920×1080); if
the clip is not installed, they are synthetic, and the table says so. The authors held 400 frames in memory; we hold fewer.
`Plan.frames` pipelines several frames; it gains nothing if the CPU is slow to copy frames into memory that the GPU can read."""
)


@experiment("video", "table-7.1", "Video in real time", VIDEO)
def table_7_1(bench: Bench) -> Outcome:
    """Frames per second."""
    video = _video(bench)
    published = work("video").items["table-7.1"]
    table = Table(
        f"{bench.title}: {video['frames']} {video['kind']}",
        ["method", "mean ms", "frames/s", "maximum ms", "minimum ms", "frames timed", "× GTX 680", "25 fps"],
    )
    for name, times in video["times"].items():
        method, direction = name.split(", ")[:2]
        theirs = [row[2] for row in published.rows if row[:2] == [method, direction]]
        mean = statistics.fmean(times)
        extremes = ("–", "–") if name.endswith("pipelined") else (max(times), min(times))
        table.add(
            name, mean, 1e3 / mean, *extremes, len(times),
            theirs[0] / mean if theirs else "–", "yes" if mean < FRAME_MS else "no",
        )  # fmt: skip
    rates = [row[2] for row in table.rows]
    finding = f"{bench.title} transforms 1920×1080 colour video at {min(rates):.0f} to {max(rates):.0f} frames per second"
    return Outcome([table], findings=[f"{finding}, with NumPy arrays as input and output."])


@experiment("video", "figure-C.1", "Histogram of frame times", VIDEO)
def figure_c_1(bench: Bench) -> Outcome:
    """Distribution of frame times."""
    chart = Chart(f"frame times on {bench.title}", "milliseconds", "share of frames", kind="steps")
    table = Table(f"{bench.title}: ms", ["method", "5 %", "median", "95 %", "99 %", "mean", "frames timed"])
    for name, times in _video(bench)["times"].items():
        if name.endswith("pipelined"):  # Only their mean is known.
            continue
        top = float(np.percentile(times, 99.5))
        counts, edges = np.histogram(times, bins=40, range=(0.9 * min(times), max(top, 1.01 * min(times))))
        chart.series[name] = [
            (float(edge), float(count) / len(times)) for edge, count in zip(edges, counts, strict=False)
        ]
        percentiles = (float(np.percentile(times, q)) for q in (5, 50, 95, 99))
        table.add(name, *percentiles, statistics.fmean(times), len(times))
    return Outcome([table], [chart])


def _lifting_versions(bench: Bench, total: bool) -> Outcome:
    what = "total with transfers" if total else "computation only"
    table = Table(
        f"{bench.title}: grey squares, all levels, {what}, ms",
        ["size", "first, forward", "improved, forward", "first, inverse", "improved, inverse", "gain"],
    )
    chart = Chart(f"two versions of lifting, {what}, on {bench.title}", "pixels", "milliseconds", log="xy")
    gains = []
    for size in _squares(bench):
        times = {
            (name, inverse): _times(bench, size, method, level=_all_levels(size), planes=1, inverse=inverse)
            for name, method in (("first", "first lifting"), ("improved", "lifting"))
            for inverse in (False, True)
        }
        values = {key: None if t is None else t.total if total else t.calc for key, t in times.items()}
        first, better = values["first", False], values["improved", False]
        gain = first / better if first and better else "–"
        if not isinstance(gain, str):
            gains.append(gain)
        table.add(
            size, _ms(first), _ms(better), _ms(values["first", True]), _ms(values["improved", True]),
            gain if isinstance(gain, str) else f"{gain:.2f} ×",
        )  # fmt: skip
        for (name, inverse), value in values.items():
            if value is not None:
                label = f"{name}, {'inverse' if inverse else 'forward'}"
                chart.series.setdefault(label, []).append((math.prod(_shape(size)), 1e3 * value))
    outcome = Outcome([table], [chart])
    if gains:
        outcome.findings.append(
            f"One pass over both axes is {_times_of(gains)} as fast as two passes on {bench.title}, {what}: it reads"
            " and writes memory half as often, and launches a third of the kernels."
        )
    return outcome


LIFTING = (
    COMMON
    + """ Our first version is strategy `rowcolumn` with lifting (two passes), our improved version the default (one pass);
the CPU has the improved one only. The report does not print the times of its plot."""
)


@experiment("video", "figure-5.14", "First and improved lifting, computation only", LIFTING)
def figure_5_14(bench: Bench) -> Outcome:
    """Two passes compared with one."""
    return _lifting_versions(bench, False)


@experiment("video", "figure-5.15", "First and improved lifting, transfers included", LIFTING)
def figure_5_15(bench: Bench) -> Outcome:
    """Two passes compared with one, including transfers."""
    return _lifting_versions(bench, True)


def _broken_down(bench: Bench, kinds: list[tuple[str, tuple[str, ...], str, bool]]) -> Outcome:
    """Upload, computation, download and total, for each (title, sizes, method, padded)."""
    outcome = Outcome()
    for title, sizes, method, square in kinds:
        table = Table(
            f"{bench.title}: {title}, {method}, ms",
            ["size", "levels", "upload", "computation", "download", "total", "within 40 ms", "runs"],
        )
        chart = Chart(
            f"{title}, {method}, on {bench.title}",
            "pixels",
            "milliseconds",
            log="xy",
            mark=("40 ms", FRAME_MS),
        )
        for size in sizes:
            side = 2 ** math.ceil(math.log2(max(_shape(size))))
            level = round(math.log2(side)) if square else HD.get(size) or _all_levels(size)
            times = _times(bench, size, method, level=None if square else level, square=square)
            if times is None:
                continue
            in_time = "yes" if 1e3 * times.total < FRAME_MS else "no"
            parts = {"upload": times.upload, "computation": times.calc, "download": times.download}
            parts["total"] = times.total
            table.add(size, level, *map(_ms, parts.values()), in_time, times.runs)
            for name, value in parts.items():
                if value:
                    chart.series.setdefault(name, []).append((math.prod(_shape(size)), 1e3 * value))
        if table.rows:
            outcome.tables.append(table)
            outcome.charts.append(chart)
            passed = [str(row[0]) for row in table.rows if row[6] == "yes"]
            if passed:
                outcome.findings.append(
                    f"{bench.title}, {title}, {method}: up to {passed[-1]} within 40 ms, transfers included."
                )
    return outcome


@experiment("video", "figure-6.1", "HD images: transfers and computation", COMMON)
def figure_6_1(bench: Bench) -> Outcome:
    """Breakdown of the total."""
    return _broken_down(
        bench, [("HD images", _hd(bench), method, False) for method in ("filtering", "lifting")]
    )


PADDED = (
    COMMON
    + """ Computation includes padding, as in the report. That work had to pad HD sizes to squares to decompose an image fully;
Undula decomposes any shape, and offers padding as `Plan(square=True)`."""
)


def _padded(bench: Bench, method: str) -> Outcome:
    padded = tuple(size for size in _hd(bench) if size != "7680×4320")
    return _broken_down(
        bench,
        [("HD images padded to squares", padded, method, True), ("squares", _squares(bench), method, False)],
    )


@experiment("video", "figure-6.2", "Padded and square images by filtering", PADDED)
def figure_6_2(bench: Bench) -> Outcome:
    """All levels, by filtering."""
    return _padded(bench, "filtering")


@experiment("video", "figure-6.3", "Padded and square images by lifting", PADDED)
def figure_6_3(bench: Bench) -> Outcome:
    """All levels, by lifting."""
    return _padded(bench, "lifting")


def _both_times(bench: Bench, sizes: tuple[str, ...]) -> Outcome:
    total, computation = (_compare(bench, sizes, w) for w in ("total with transfers", "computation only"))
    return Outcome(
        [*total.tables, *computation.tables],
        [*total.charts, *computation.charts],
        findings=[*total.findings, *computation.findings],
    )


@experiment("video", "figure-6.4", "HD images: GPU against CPU", COMMON, also=("table-6.3", "table-6.4"))
def figure_6_4(bench: Bench) -> Outcome:
    """Totals and computation of HD sizes, compared with the CPU."""
    return _both_times(bench, _hd(bench))


@experiment("video", "figure-6.5", "Squares: GPU against CPU", COMMON, also=("table-6.5",))
def figure_6_5(bench: Bench) -> Outcome:
    """Totals and computation of squares, compared with the CPU."""
    return _both_times(bench, _squares(bench))


@experiment(
    "video",
    "figure-6.6",
    "Reconstruction: GPU against CPU",
    COMMON + " The report prints mean speed-ups only, relative to three times the grey time of one core.",
)
def figure_6_6(bench: Bench) -> Outcome:
    """Reconstruction of HD sizes and squares."""
    outcome = Outcome()
    for title, sizes in (("HD images", _hd(bench)), ("squares", _squares(bench))):
        table = Table(
            f"{bench.title}: reconstruction of {title}, ms",
            ["size", "processor", "computation", "total", "total × processor", "inverse / forward"],
        )
        gains = []
        for size in sizes:
            level = HD.get(size) or _all_levels(size)
            inverse, forward = (_times(bench, size, "lifting", level=level, inverse=i) for i in (True, False))
            cpu = _times(bench.cpu, size, "lifting", level=level, inverse=True)
            if inverse is None or cpu is None or forward is None:
                continue
            gains.append(cpu.calc / inverse.total)
            ratio = inverse.calc / forward.calc
            table.add(size, _ms(cpu.calc), _ms(inverse.calc), _ms(inverse.total), gains[-1], ratio)
        outcome.tables.append(table)
        if gains and not bench.on_cpu:
            outcome.findings.append(
                f"Reconstruction of {title} with transfers: {bench.title} is {_times_of(gains)} as fast as the CPU of the same"
                f" machine, {_faster(gains)}; the means in the paper are 10.24 and 10.66 relative to one core."
            )
    return outcome
