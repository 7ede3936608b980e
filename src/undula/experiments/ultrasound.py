"""Nielsen, "Real-Time Wavelet Filtering on the GPU" (NTNU, 2007).

Three levels of CDF 9/7, shrinkage and reconstruction, including the upload: one channel and four, 16 and 32
bits; a breakdown of the time; the load of the CPU; and a performance model.
"""

from __future__ import annotations

import base64
import io as memory
import time
from typing import Any

import numpy as np

import undula

from .. import measures
from ..errors import UndulaError
from .base import Chart, Outcome, Table, experiment
from .bench import Bench, pictures
from .published import work

SIZES = (128, 256, 512, 1024, 2048)
PROGRAMS = {  # channels, dtype
    "mono-16": (1, "float16"),
    "mono-32": (1, "float32"),
    "colour-16": (4, "float16"),
    "colour-32": (4, "float32"),
}
LEVELS = 3
COMMON = """The wavelet is CDF 9/7 (the benchmarks of the thesis do not name theirs); the rule is the soft threshold,
applied while the reconstruction reads the details. The engine for the CPU computes in 32 bits, so rows of 16 bits are for devices
only. As in the thesis, times include the upload of the image but not the download (see Table 4.5). Filtering is the
time that the rule adds to the reconstruction; zero means that the difference is too small to measure. On a CPU that is shared
with others, waking up threads takes long, so below a megapixel more threads may be no faster."""


def _stages(bench: Bench, program: str, n: int, threads: int | None = None) -> dict[str, float] | None:
    """Seconds of each stage: upload, forward, inverse, thresholding and download."""

    def measure() -> dict[str, float] | None:
        channels, dtype = PROGRAMS[program]
        if bench.on_cpu and dtype == "float16":
            return None
        shape = (n, n) if channels == 1 else (n, n, channels)
        plan = bench.plan(shape, "cdf97", LEVELS, axes=(0, 1), dtype=dtype)
        images = [image.astype(dtype) for image in pictures((channels, n, n))]
        images = [
            image[0] if channels == 1 else np.ascontiguousarray(image.transpose(1, 2, 0)) for image in images
        ]
        plain = bench.resident(plan, images[0], inverse=True)
        shrinking = bench.resident(plan, images[0], inverse=True, rule="soft", threshold=15.0)
        turn = iter(range(10**9))
        upload = bench.seconds(lambda: shrinking.upload(images[next(turn) % len(images)]), shrinking.finish)
        forward = min(bench.run_seconds(shrinking) for _ in range(5))
        back = min(bench.run_seconds(plain, inverse=True) for _ in range(5))
        both = min(bench.run_seconds(shrinking, inverse=True) for _ in range(5))
        download = 0.0 if bench.on_cpu else bench.seconds(shrinking.download_samples)
        restored = shrinking.download_samples().astype(np.float64)
        expected = _expected(images[(next(turn) - 1) % len(images)], plan.axes)
        worst = float(np.abs(restored - expected).max())
        assert worst < (2.0 if dtype == "float16" else 0.02), f"{program} {n}: off by {worst}"
        bench.checks.append(f"{program}, {n}²: within {worst:.1e} of the result in float64")
        if threads is None:
            bench.compare_with_model(f"{program}, {n}², forward", plan, forward)
        return {
            "upload": 0.0 if bench.on_cpu else upload,
            "forward": forward,
            "back": min(back, both),
            "filtering": max(0.0, both - back),
            "download": download,
        }

    return bench.once((program, n, threads), measure)


def _expected(image: Any, axes: tuple[int, ...]) -> Any:
    """The result of the CPU engine in float64."""
    coeffs = undula.wavedec2(image.astype(np.float64), "cdf97", level=LEVELS, axes=axes)
    shrunk = [coeffs[0], *(tuple(undula.threshold(b, 15.0, "soft") for b in part) for part in coeffs[1:])]
    back = undula.waverec2(shrunk, "cdf97", axes=axes)
    return back[tuple(slice(n) for n in image.shape)]


def _seconds(stages: dict[str, float] | None) -> float | None:
    if stages is None:
        return None
    return sum(stages[name] for name in ("upload", "forward", "back", "filtering"))


def _sizes(bench: Bench) -> tuple[int, ...]:
    return bench.subset(*SIZES, quick=4, slow=3)


def _rates(bench: Bench) -> dict[str, dict[int, float]]:
    """Seconds of a frame by program and size."""
    rates: dict[str, dict[int, float]] = {}
    for program in PROGRAMS:
        for n in _sizes(bench):
            seconds = _seconds(_stages(bench, program, n))
            if seconds is not None:
                rates.setdefault(program, {})[n] = seconds
    return rates


def _single(bench: Bench) -> dict[int, float]:
    """Seconds of one thread of the CPU for one channel, by size."""
    single = {}
    for n in _sizes(bench):
        with bench.threads(1):
            seconds = _seconds(_stages(bench.cpu, "mono-32", n, 1))
        assert seconds is not None
        single[n] = seconds
    return single


def _elements(program: str, n: int) -> int:
    return PROGRAMS[program][0] * n * n


def _by_size(bench: Bench, what: str, unit: str, value: Any, item: str) -> Outcome:
    """A table with a row for each program; ``value`` is a function of program, size and seconds."""
    sizes = _sizes(bench)
    table = Table(f"{bench.title}: {what}, {unit}", ["program", *(f"{n}²" for n in sizes)])
    chart = Chart(f"{what} on {bench.title}", "side, pixels", unit, log="xy")
    for program, seconds in _rates(bench).items():
        table.add(program, *(value(program, n, seconds[n]) for n in sizes))
        chart.series[program] = [(n, value(program, n, seconds[n])) for n in sizes]
    single = _single(bench)
    table.add("processor, one thread", *(value("mono-32", n, single[n]) for n in sizes))
    published = work("ultrasound").items[item]
    for name in ("gpu-mono-16", "gpu-colour-16", "cpu-mono-32-single"):
        rows = [row for row in published.rows if row[0] == name]
        if rows:
            chart.theirs[name] = list(zip(SIZES, rows[0][1:], strict=True))
    return Outcome([table], [chart])


@experiment("ultrasound", "table-4.2", "Elements per microsecond", COMMON)
def table_4_2(bench: Bench) -> Outcome:
    """Throughput; a colour pixel is four elements."""
    outcome = _by_size(
        bench, "throughput", "elements/µs", lambda p, n, s: _elements(p, n) / (1e6 * s), "table-4.2"
    )
    published = work("ultrasound").items["table-4.2"]
    rates = _rates(bench)
    program = "mono-16" if "mono-16" in rates else "mono-32"
    ratios = [
        _elements(program, n) / (1e6 * rates[program][n]) / published.row("gpu-mono-16")[SIZES.index(n)]
        for n in _sizes(bench)
    ]
    outcome.findings.append(
        f"{bench.title} has {min(ratios):.2g} to {max(ratios):.2g} times the throughput of the GeForce 8800 GTX"
        f" ({program} against gpu-mono-16)."
    )
    return outcome


@experiment("ultrasound", "figure-4.1", "Elements per microsecond, plotted", COMMON, also=("table-4.2",))
def figure_4_1(bench: Bench) -> Outcome:
    """The plot of Table 4.2."""
    outcome = table_4_2(bench)
    return Outcome(charts=outcome.charts, findings=outcome.findings)


@experiment(
    "ultrasound",
    "table-4.3",
    "Speed-up over one thread of the CPU",
    COMMON + " The CPU is that of the same machine; the thesis used a different one.",
)
def table_4_3(bench: Bench) -> Outcome:
    """Throughput relative to one thread."""
    single = _single(bench)
    return _by_size(
        bench,
        "speed-up",
        "× one thread of the CPU",
        lambda p, n, s: (_elements(p, n) / s) / (n * n / single[n]),
        "table-4.3",
    )


@experiment("ultrasound", "table-4.4", "Frames per second", COMMON)
def table_4_4(bench: Bench) -> Outcome:
    """Frames per second, of one channel or four."""
    outcome = _by_size(bench, "frames", "frames/s", lambda p, n, s: 1 / s, "table-4.4")
    rates = _rates(bench)
    n = 512
    if n in rates["mono-32"]:
        fast = max(1 / seconds[n] for name, seconds in rates.items() if name.startswith("mono"))
        outcome.findings.append(
            f"512² with one channel: {fast:,.0f} frames per second on {bench.title}, 975 on the GeForce 8800 GTX."
        )
    return outcome


def _breakdown(bench: Bench) -> Outcome:
    sizes = _sizes(bench)
    program = "mono-32" if bench.on_cpu else "mono-16"
    table = Table(f"{bench.title}: {program}, ms", ["stage", *(f"{n}²" for n in sizes)])
    chart = Chart(f"stages of {program} on {bench.title}", "side, pixels", "milliseconds", log="xy")
    stages = {n: _stages(bench, program, n) for n in sizes}
    for name in ("forward", "back", "filtering", "upload", "download"):
        values = [1e3 * seconds[name] for seconds in stages.values() if seconds is not None]
        if any(values):
            table.add(name, *values)
            chart.series[name] = [(n, v) for n, v in zip(sizes, values, strict=True) if v > 0]
    published = work("ultrasound").items["table-4.5"]
    for row in published.rows:
        chart.theirs[f"8800 GTX: {row[0].lower()}"] = list(zip(SIZES, row[1:], strict=True))
    last = stages[sizes[-1]]
    assert last is not None
    shares = ", ".join(f"{name} {100 * s / sum(last.values()):.0f} %" for name, s in last.items() if s)
    return Outcome([table], [chart], findings=[f"At {sizes[-1]}² on {bench.title}: {shares}."])


@experiment("ultrasound", "table-4.5", "Breakdown of the time", COMMON)
def table_4_5(bench: Bench) -> Outcome:
    """Forward, inverse, filtering, transfers."""
    return _breakdown(bench)


@experiment("ultrasound", "figure-4.2", "Breakdown of the time, plotted", COMMON, also=("table-4.5",))
def figure_4_2(bench: Bench) -> Outcome:
    """The plot of Table 4.5."""
    return Outcome(charts=_breakdown(bench).charts)


LOAD = (
    COMMON
    + """ The load is the CPU time of the process over the elapsed time, while it processes a frame of 32 bits every 50 ms and
sleeps in between; 100 % is one core. The thesis took the load of its GPU program from the task manager, and computed that of the
CPU."""
)


def _load(bench: Bench, n: int) -> float:
    """Cores in use at 20 frames per second, with NumPy arrays as input and output."""

    def measure() -> float:
        plan = bench.plan((n, n), "cdf97", LEVELS, dtype="float32")
        image = pictures((n, n), 1)[0]
        limits = np.full((LEVELS, 2, 3), 15.0, np.float32)
        resident = bench.resident(plan, image, inverse=True, rule="soft", threshold=15.0)

        def frame() -> None:
            if bench.on_cpu:
                plan.inverse(plan.forward(image), rule="soft", limits=limits)
            else:
                resident.upload(image)
                resident.forward()
                resident.inverse()
                resident.download_samples()

        frame()
        frames = 10 if bench.quick else 30
        begin, used = time.perf_counter(), time.process_time()
        for number in range(frames):
            frame()
            time.sleep(max(0.0, begin + (number + 1) / 20 - time.perf_counter()))
        return (time.process_time() - used) / (time.perf_counter() - begin)

    return bench.once(("load", n), measure)


@experiment("ultrasound", "table-4.6", "Load of the CPU at 20 frames per second", LOAD)
def table_4_6(bench: Bench) -> Outcome:
    """Share of a core in use."""
    sizes = _sizes(bench)
    table = Table(
        f"{bench.title}: load at 20 frames/s, % of one core", ["program", *(f"{n}²" for n in sizes)]
    )
    table.add("mono-32", *(100 * _load(bench, n) for n in sizes))
    chart = Chart(f"load at 20 frames/s, {bench.title}", "side, pixels", "% of one core", log="xy")
    chart.series["mono-32"] = [(n, 100 * _load(bench, n)) for n in sizes]
    for row in work("ultrasound").items["table-4.6"].rows[:2]:
        chart.theirs[row[0]] = list(zip(SIZES, row[1:], strict=True))
    return Outcome([table], [chart])


@experiment("ultrasound", "figure-4.3", "Load of the CPU at 512²", LOAD, also=("table-4.6",))
def figure_4_3(bench: Bench) -> Outcome:
    """The bars for 512²."""
    load = 100 * _load(bench, 512)
    chart = Chart(f"load at 512², 20 frames/s, {bench.title}", "", "% of one core", kind="bars")
    chart.series["load"] = [("CPU 2007", 29.0), ("8800 GTX", 1.0), (bench.title, load)]
    return Outcome(
        charts=[chart],
        findings=[f"512² at 20 frames per second takes {load:.1f} % of a core with {bench.title}."],
    )


@experiment("ultrasound", "table-4.7", "One channel compared with four", COMMON)
def table_4_7(bench: Bench) -> Outcome:
    """Throughput of one channel relative to four."""
    sizes, rates = _sizes(bench), _rates(bench)
    table = Table(f"{bench.title}: throughput of mono, % of colour", ["program", *(f"{n}²" for n in sizes)])
    for bits in ("16", "32"):
        if f"mono-{bits}" in rates:
            shares = [100 * rates[f"colour-{bits}"][n] / (4 * rates[f"mono-{bits}"][n]) for n in sizes]
            table.add(f"mono-{bits}", *shares)
    return Outcome([table])


@experiment(
    "ultrasound",
    "table-4.11",
    "The performance model: predicted and measured",
    """The model of the thesis divides bytes by bandwidth and operations by their rate, from data sheets, at one size. Ours
    has the same terms, also those of launches, exchange and barriers, with ceilings measured on the device. The table is for the
    forward transform, three levels of 512².""",
    also=("table-3.3", "model-constants"),
)
def table_4_11(bench: Bench) -> Outcome:
    """Predicted and measured times of 512²."""
    plan = bench.plan((512, 512), "cdf97", LEVELS, dtype="float32")
    times = bench.times("512², 3 levels", plan)
    prediction = plan.predict()
    table = Table(
        f"{bench.title}: 512², 3 levels forward, ms",
        ["quantity", "predicted", "measured", "measured / predicted"],
    )
    table.add("time", 1e3 * prediction.seconds, 1e3 * times.calc, times.calc / prediction.seconds)
    if not bench.on_cpu:
        cpu = bench.cpu.plan((512, 512), "cdf97", LEVELS, dtype="float32")
        predicted = cpu.predict().seconds / prediction.seconds
        measured = bench.cpu.times("512², 3 levels", cpu).calc / times.calc
        table.add("speed-up over the CPU", predicted, measured, measured / predicted)
        moved = plan.predict(transfers=True)
        table.add("with transfers", 1e3 * moved.seconds, 1e3 * times.total, times.total / moved.seconds)
    relation = "their sum counts" if prediction.adds else "the longest counts"
    terms = Table(f"{bench.title}: terms of the prediction ({relation})", ["term", "ms"])
    for name, seconds in prediction.terms.items():
        if seconds:
            terms.add(name, 1e3 * seconds)
    right = sum(1 / 1.3 <= float(row[-1]) <= 1.3 for row in table.rows)
    reason = prediction.off(times.calc)
    finding = f"{bench.title}: the model is within 30 % in {right} of {len(table.rows)} quantities"
    return Outcome([table, terms], findings=[f"{finding}; {reason}." if reason else f"{finding}."])


@experiment(
    "ultrasound",
    "figure-4.4",
    "16 bits by size",
    COMMON
    + """ The thesis compares throughput with the prices of two cards. The program does not know prices, so this is
    throughput only.""",
    also=("table-4.10",),
)
def figure_4_4(bench: Bench) -> Outcome | None:
    """Throughput of the programs with 16 bits."""
    rates = {name: times for name, times in _rates(bench).items() if name.endswith("16")}
    if not rates:
        return None
    chart = Chart(f"16 bits on {bench.title}", "side, pixels", "elements/µs", log="xy")
    for name, times in rates.items():
        chart.series[name] = [(n, _elements(name, n) / (1e6 * s)) for n, s in times.items()]
    for name in ("gpu-mono-16", "gpu-colour-16"):
        chart.theirs[name] = list(zip(SIZES, work("ultrasound").items["table-4.2"].row(name), strict=True))
    return Outcome(charts=[chart])


def _scan() -> tuple[Any, str]:
    """A greyscale ultrasound scan, or a synthetic one, and its description."""
    from .. import io

    try:
        frame = io.read(io.sample("ultrasound-clip")).pixels[0]
        grey = frame[20:204, 80:232].astype(np.float64) @ [0.299, 0.587, 0.114]
        bright = 255 * np.sqrt(grey / grey.max())  # Brighten dark parts for the report.
        return bright.repeat(2, 0).repeat(2, 1), "ultrasound of a heart (pydicom's example)"
    except (ImportError, UndulaError, ValueError):
        y, x = np.mgrid[-1:1:384j, -1:1:512j]
        clean = 40 + 120 * (np.hypot(x, y) < 0.7) * (0.5 + 0.5 * np.cos(9 * np.hypot(x - 0.2, y)))
        speckle = np.random.default_rng(0).gamma(4.0, 0.25, clean.shape)
        return np.clip(clean * speckle, 0, 255), "synthetic scan with speckle (pydicom is not installed)"


def _png(panels: list[Any]) -> str | None:
    """Pictures side by side as a base64-encoded PNG, or None without Pillow."""
    try:
        from PIL import Image
    except ImportError:
        return None
    gap = np.full((panels[0].shape[0], 6), 255.0)
    wide = np.concatenate([part for panel in panels for part in (panel, gap)][:-1], axis=1)
    file = memory.BytesIO()
    Image.fromarray(np.clip(np.round(wide), 0, 255).astype(np.uint8)).save(file, "PNG", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def _filtered(bench: Bench, image: Any, dtype: str, threshold: float) -> Any:
    plan = bench.plan(image.shape, "cdf97", LEVELS, dtype=dtype)
    resident = bench.resident(plan, image.astype(dtype), inverse=True, rule="soft", threshold=threshold)
    return resident.download_samples().astype(np.float64)


@experiment(
    "ultrasound",
    "figure-4.5",
    "Soft threshold and wavelet shrinkage, images",
    """The thesis shows images and states neither thresholds nor a measure of quality. Our scan is an example of pydicom, or
    a synthetic one if pydicom is not installed (see the caption). The soft threshold is the same for all details; shrinkage has
    a threshold for each level and band, estimated from the noise.""",
    on="cpu",
)
def figure_4_5(bench: Bench) -> Outcome:
    """An ultrasound scan, filtered in two ways."""
    image, what = _scan()
    soft = _filtered(bench, image, "float32", 18.0)
    shrunk = np.asarray(undula.despeckle(image.astype(np.float32)), float)
    table = Table(what, ["", "noise left, grey levels", "PSNR to the scan, dB", "SSIM to the scan"])
    table.add("scan", undula.estimate_sigma(image), "–", "–")
    for name, panel in (("soft threshold 18", soft), ("despeckle", shrunk)):
        psnr, ssim = (f(image, panel, data_range=255) for f in (measures.psnr, measures.ssim))
        table.add(name, undula.estimate_sigma(panel), psnr, ssim)
    picture = _png([image, soft, shrunk])
    shown = {f"left to right: {what}, soft threshold, despeckle": picture} if picture else {}
    return Outcome([table], pictures=shown)


@experiment(
    "ultrasound",
    "figure-4.6",
    "16 bits and 32 bits, images",
    """The thesis shows images without a measure of their difference; here it is measured. The engine for the CPU computes in
    32 bits, so this is for devices only.""",
    also=("table-4.2",),
    on="devices",
)
def figure_4_6(bench: Bench) -> Outcome:
    """The same scan, filtered in 16 and 32 bits."""
    image, what = _scan()
    half, full = (_filtered(bench, image, dtype, 18.0) for dtype in ("float16", "float32"))
    difference = np.abs(half - full)
    table = Table(f"{bench.title}: {what}, filtered", ["", "value"])
    table.add("largest difference, grey levels", float(difference.max()))
    table.add("PSNR between them, dB", measures.psnr(full, half, data_range=255))
    table.add("pixels that differ after rounding, %", 100 * float((np.round(half) != np.round(full)).mean()))
    rates, n = _rates(bench), _sizes(bench)[-1]
    for kind in ("mono", "colour"):
        table.add(
            f"16 bits faster than 32 at {n}², {kind}, %",
            100 * (rates[f"{kind}-32"][n] / rates[f"{kind}-16"][n] - 1),
        )
    picture = _png([full, half])
    shown = {f"left 32 bits, right 16 bits: {what}": picture} if picture else {}
    finding = (
        f"16 bits and 32 bits differ by at most {float(difference.max()):.2f} grey levels on {bench.title}."
    )
    return Outcome([table], pictures=shown, findings=[finding])
