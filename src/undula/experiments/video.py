"""Eskildsen, Peters, Leegaard and Ravn, "Wavelet transform for video coders using GPU" (Aalborg, 2012).

CDF 9/7 of colour images, by filtering and by lifting: what it takes to bring them to the device, to calculate,
and to bring them back; HD sizes, squares, HD sizes padded to squares; and video against the clock.
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

HD = {  # width × height: levels
    "852×480": 2,
    "1280×720": 4,
    "1920×1080": 3,
    "3840×2160": 4,
    "4520×2540": 2,
    "7680×4320": 4,
}
SQUARES = tuple(f"{n}×{n}" for n in (256, 512, 1024, 2048, 4096, 8192))
LIMIT = 40.0  # milliseconds: 25 frames in a second
METHODS = {"lifting": {}, "filtering": {"strategy": "rowcolumn", "method": "filters"}}
COMMON = """Our images are made of waves, edges and noise, not the authors' photographs; times do not depend on them.
Mode is periodization, which makes as many numbers as there are pixels. The number of runs is what time allows
(the table says how many). Where the device is the processor nothing is brought anywhere, and it only lifts."""


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
    back: bool = False,
    square: bool = False,
) -> Times | None:
    """One size by one method; None where this device cannot."""
    key = (size, method, level, planes, back, square)

    def measured() -> Times | None:
        options: dict[str, Any] = dict(METHODS.get(method, {}))
        if method == "first lifting":
            options = {"strategy": "rowcolumn", "method": "lifting"}
        if bench.on_cpu:
            if method != "lifting":
                return None
            options = {}
        shape = (planes, *_shape(size)) if planes > 1 else _shape(size)
        try:
            plan = bench.plan(
                shape,
                "cdf97",
                level,
                mode="periodization",
                axes=(-2, -1),
                dtype="float32",
                square=square,
                **options,
            )
        except UndulaError as error:
            bench.checks.append(f"{size} by {method}: not done ({error})")
            return None
        what = f"{size}{' grey' if planes == 1 else ''}{' padded' if square else ''}, {method}"
        return bench.times(f"{what}, {plan.level} levels", plan, back)

    found: Times | None = bench.once(key, measured)
    return found


def _hd(bench: Bench) -> tuple[str, ...]:
    return bench.some(*HD, quick=3, slow=2)


def _squares(bench: Bench) -> tuple[str, ...]:
    return bench.some(*SQUARES, quick=4, slow=2)


def _whole(size: str) -> int:
    return round(math.log2(_shape(size)[0]))


def _ms(seconds: float | None) -> float | str:
    return "–" if seconds is None else 1e3 * seconds


def _parts(times: Times | None) -> list[float | str]:
    if times is None:
        return ["–"] * 4
    return [_ms(times.upload), _ms(times.calc), _ms(times.download), _ms(times.total)]


def _printed(size: str, part: str) -> float | None:
    """Seconds of lifting on the GTX 680, in all (``total``) or calculating (``calc``), where the report has it."""
    for item in ("table-6.3", "table-6.4", "table-6.5"):
        table = work("video").items[item]
        name = f"GPU lifting {part} (ms)"
        for row in table.rows:
            if row[0] == size and name in table.columns:
                return float(row[table.columns.index(name)]) / 1e3
    return None


def _against(bench: Bench, sizes: tuple[str, ...], what: str, back: bool = False) -> Outcome:
    """Totals or calculation alone of both methods, beside the processor and the paper."""
    level = (lambda size: HD[size]) if sizes and sizes[0] in HD else _whole
    part = "total" if "total" in what else "calc"
    table = Table(
        f"{bench.title}: {what}, ms",
        [
            "size",
            "processor grey",
            "processor colour",
            "lifting",
            "filtering",
            "× processor",
            "× GTX 680",
            "runs",
        ],
    )
    outcome = Outcome([table])
    lines: dict[str, list[tuple[Any, float]]] = {"lifting": [], "filtering": [], "processor": []}
    ratios = []
    for size in sizes:
        ours = {m: _times(bench, size, m, level=level(size), back=back) for m in METHODS}
        cpu = _times(bench.cpu, size, "lifting", level=level(size), back=back)
        grey = _times(bench.cpu, size, "lifting", level=level(size), planes=1, back=back)
        values = {m: None if t is None else t.total if "total" in what else t.calc for m, t in ours.items()}
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
        f"{what} on {bench.title}", "pixels", "milliseconds", lines, log="xy", mark=("40 ms", LIMIT)
    )
    some: list[tuple[Any, float]] = [
        (math.prod(_shape(size)), 1e3 * t)
        for size in (*HD, *SQUARES)
        if (size in HD) == (sizes[0] in HD) and (t := _printed(size, part))
    ]
    if some:
        chart.theirs[f"GTX 680, lifting, {part}"] = some
    outcome.charts.append(chart)
    if ratios:
        outcome.findings.append(
            f"{bench.title} is {_times_of(ratios)} as fast as the GTX 680 on the same sizes ({what})."
        )
    gains = [float(row[5]) for row in table.rows if not isinstance(row[5], str)]
    if gains:
        outcome.findings.append(
            f"{bench.title} is {_times_of(gains)} as fast as the processor beside it, from {sizes[0]} to {sizes[-1]}:"
            f" {_faster(gains)} ({what})."
        )
    return outcome


def _times_of(ratios: list[float]) -> str:
    low, high = (f"{some:,.0f}" if some >= 10 else f"{some:.1f}" for some in (min(ratios), max(ratios)))
    return f"{low} times" if low == high else f"{low} to {high} times"


def _faster(gains: list[float]) -> str:
    """In how many cases it is faster."""
    count = sum(gain > 1 for gain in gains)
    return (
        "faster at all sizes" if count == len(gains) else f"faster at {count} of {plural(len(gains), 'size')}"
    )


@experiment("video", "table-6.3", "HD images, transfers included", COMMON)
def table_6_3(bench: Bench) -> Outcome:
    """HD sizes, everything counted."""
    return _against(bench, _hd(bench), "total with transfers")


@experiment("video", "table-6.4", "HD images, calculation alone", COMMON)
def table_6_4(bench: Bench) -> Outcome:
    """HD sizes, data on the device."""
    return _against(bench, _hd(bench), "calculation alone")


@experiment("video", "table-6.5", "Squares, all levels, transfers included", COMMON)
def table_6_5(bench: Bench) -> Outcome:
    """Squares, decomposed to the last pixel."""
    return _against(bench, _squares(bench), "total with transfers")


def _frames(bench: Bench) -> tuple[list[np.ndarray[Any, Any]], str]:
    """Frames of 1920×1080 in three planes of float32, as many as memory may hold; and what they are."""
    many = 6 if bench.slow else 12 if bench.quick else 48
    try:
        from PIL import Image

        from .. import io

        clip = list(io.read_frames(io.sample("bunny"), many))
        resized = [np.asarray(Image.fromarray(frame).resize((1920, 1080))) for frame in clip]
        planes = [np.ascontiguousarray(frame.transpose(2, 0, 1), np.float32) for frame in resized]
        return planes, "frames of Big Buck Bunny, made larger"
    except (ImportError, UndulaError):
        return pictures((3, 1080, 1920), min(many, 12)), "made frames (no clip is installed)"


def _video(bench: Bench) -> dict[str, Any]:
    """Milliseconds for each frame, timed around the call; forward by both methods, and back by lifting."""

    def measured() -> dict[str, Any]:
        frames, kind = _frames(bench)
        found: dict[str, Any] = {"kind": kind, "frames": len(frames), "times": {}}
        largest = 0.0
        for method in METHODS:
            if bench.on_cpu and method == "filtering":
                continue
            options = {} if bench.on_cpu else METHODS[method]
            plan = bench.plan(
                (3, 1080, 1920), "cdf97", 3, mode="periodization", axes=(1, 2), dtype="float32", **options
            )
            coeffs = [plan.forward(frame) for frame in frames[:2]]
            plan.inverse(coeffs[0])
            there: list[float] = []
            back: list[float] = []
            begin, spend = time.perf_counter(), 20 * bench.spend
            while time.perf_counter() - begin < spend or len(there) < len(frames):
                for frame in frames:
                    start = time.perf_counter()
                    coeffs_of = plan.forward(frame)
                    middle = time.perf_counter()
                    there.append(1e3 * (middle - start))
                    if method == "lifting":
                        start = time.perf_counter()
                        again = plan.inverse(coeffs_of)
                        back.append(1e3 * (time.perf_counter() - start))
                        if len(back) <= 2:
                            largest = max(largest, float(np.abs(again - frame).max()))
            found["times"][f"{method}, decomposition"] = there
            if back:
                found["times"][f"{method}, reconstruction"] = back
            if bench.kind == "cuda":
                start = time.perf_counter()
                count = sum(1 for _ in plan.frames(frames * 4))
                each = 1e3 * (time.perf_counter() - start) / count
                found["times"][f"{method}, decomposition, several in the works"] = [each] * count
        bench.checks.append(f"video: frames come back with a largest error of {largest:.1e} of 255")
        assert largest < 0.01
        return found

    found: dict[str, Any] = bench.once("video", measured)
    return found


VIDEO = (
    COMMON
    + """ Where the clip of the same film is installed, the frames are its, 1280×720 made larger (the authors had the trailer in
1920×1080); where it is not, they are made, and the table says so. 400 frames were held in memory then, and fewer are here.
`Plan.frames` keeps several frames in the works; on a machine whose processor is slow to copy frames into memory that the GPU can
read, it gains nothing."""
)


@experiment("video", "table-7.1", "Video against the clock", VIDEO)
def table_7_1(bench: Bench) -> Outcome:
    """Frames in a second, timed from outside."""
    found = _video(bench)
    published = work("video").items["table-7.1"]
    table = Table(
        f"{bench.title}: {found['frames']} {found['kind']}",
        ["method", "mean ms", "frames/s", "maximum ms", "minimum ms", "frames timed", "× GTX 680", "25 fps"],
    )
    for name, times in found["times"].items():
        method, direction = name.split(", ")[:2]
        theirs = [row[2] for row in published.rows if row[:2] == [method, direction]]
        mean = statistics.fmean(times)
        table.add(
            name, mean, 1e3 / mean, *((max(times), min(times)) if not name.endswith("in the works") else ("–", "–")), len(times),
            theirs[0] / mean if theirs else "–", "yes" if mean < LIMIT else "no",
        )  # fmt: skip
    rates = [row[2] for row in table.rows]
    finding = f"{bench.title} transforms 1920×1080 colour video at {min(rates):.0f} to {max(rates):.0f} frames a second, NumPy arrays in and out."
    return Outcome([table], findings=[finding])


@experiment("video", "figure-C.1", "Histogram of the times of frames", VIDEO)
def figure_c_1(bench: Bench) -> Outcome:
    """How the times of frames are spread."""
    found = _video(bench)
    chart = Chart(f"times of frames on {bench.title}", "milliseconds", "share of frames", kind="steps")
    table = Table(f"{bench.title}: ms", ["method", "5 %", "median", "95 %", "99 %", "mean", "frames timed"])
    for name, times in found["times"].items():
        if name.endswith("in the works"):  # (only their mean is known)
            continue
        top = float(np.percentile(times, 99.5))
        counts, edges = np.histogram(times, bins=40, range=(0.9 * min(times), max(top, 1.01 * min(times))))
        chart.series[name] = [
            (float(edge), float(count) / len(times)) for edge, count in zip(edges, counts, strict=False)
        ]
        table.add(
            name,
            *(float(np.percentile(times, q)) for q in (5, 50, 95, 99)),
            statistics.fmean(times),
            len(times),
        )
    return Outcome([table], [chart])


def _lifting_versions(bench: Bench, total: bool) -> Outcome:
    what = "total with transfers" if total else "calculation alone"
    table = Table(
        f"{bench.title}: grey squares, all levels, {what}, ms",
        [
            "size",
            "first, forward",
            "improved, forward",
            "first, back",
            "improved, back",
            "improved is faster",
        ],
    )
    chart = Chart(f"two versions of lifting, {what}, on {bench.title}", "pixels", "milliseconds", log="xy")
    gains = []
    for size in _squares(bench):
        found = {
            (name, back): _times(bench, size, method, level=_whole(size), planes=1, back=back)
            for name, method in (("first", "first lifting"), ("improved", "lifting"))
            for back in (False, True)
        }
        values = {key: None if t is None else t.total if total else t.calc for key, t in found.items()}
        first, better = values["first", False], values["improved", False]
        gain = first / better if first and better else "–"
        if not isinstance(gain, str):
            gains.append(gain)
        table.add(
            size, _ms(first), _ms(better), _ms(values["first", True]), _ms(values["improved", True]),
            gain if isinstance(gain, str) else f"{gain:.2f} ×",
        )  # fmt: skip
        for (name, back), value in values.items():
            if value is not None:
                label = f"{name}, {'back' if back else 'forward'}"
                chart.series.setdefault(label, []).append((math.prod(_shape(size)), 1e3 * value))
    outcome = Outcome([table], [chart])
    if gains:
        outcome.findings.append(
            f"One pass over both axes is {_times_of(gains)} as fast as two passes on {bench.title}, {what}: it reads"
            " and writes memory half as often, and starts a third of the kernels."
        )
    return outcome


LIFTING = (
    COMMON
    + """ Our first version is strategy `rowcolumn` by lifting (two passes), our improved one the default (one
pass); the processor has the improved one alone. The plot's times are not printed in the report."""
)


@experiment("video", "figure-5.14", "First and improved lifting, calculation alone", LIFTING)
def figure_5_14(bench: Bench) -> Outcome:
    """Two passes against one."""
    return _lifting_versions(bench, False)


@experiment("video", "figure-5.15", "First and improved lifting, transfers included", LIFTING)
def figure_5_15(bench: Bench) -> Outcome:
    """The same with moving the data."""
    return _lifting_versions(bench, True)


def _broken_down(bench: Bench, kinds: list[tuple[str, tuple[str, ...], str, bool]]) -> Outcome:
    """To the device, calculated, back, and all: for kinds of (title, sizes, method, padded)."""
    outcome = Outcome()
    for title, sizes, method, square in kinds:
        table = Table(
            f"{bench.title}: {title}, {method}, ms",
            ["size", "levels", "to the device", "calculated", "back", "total", "within 40 ms", "runs"],
        )
        chart = Chart(
            f"{title}, {method}, on {bench.title}", "pixels", "milliseconds", log="xy", mark=("40 ms", LIMIT)
        )
        for size in sizes:
            side = 2 ** math.ceil(math.log2(max(_shape(size))))
            level = round(math.log2(side)) if square else HD.get(size) or _whole(size)
            found = _times(bench, size, method, level=None if square else level, square=square)
            if found is None:
                continue
            total = 1e3 * found.total
            table.add(size, level, *_parts(found), "yes" if total < LIMIT else "no", found.runs)
            for name, value in (
                ("to the device", found.upload),
                ("calculated", found.calc),
                ("back", found.download),
                ("total", found.total),
            ):
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


@experiment("video", "figure-6.1", "HD images: transfers and calculation", COMMON)
def figure_6_1(bench: Bench) -> Outcome:
    """What the total is made of."""
    return _broken_down(
        bench, [("HD images", _hd(bench), method, False) for method in ("filtering", "lifting")]
    )


PADDED = (
    COMMON
    + """ Padding is counted as calculation, as in the report. HD sizes padded to squares are what that work needed to
decompose an image fully; Undula decomposes any shape, and keeps padding as `Plan(square=True)`."""
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
    whole, alone = (_against(bench, sizes, what) for what in ("total with transfers", "calculation alone"))
    return Outcome(
        [*whole.tables, *alone.tables],
        [*whole.charts, *alone.charts],
        findings=[*whole.findings, *alone.findings],
    )


@experiment("video", "figure-6.4", "HD images: GPU against CPU", COMMON, also=("table-6.3", "table-6.4"))
def figure_6_4(bench: Bench) -> Outcome:
    """Totals and calculation of HD sizes, beside the processor."""
    return _both_times(bench, _hd(bench))


@experiment("video", "figure-6.5", "Squares: GPU against CPU", COMMON, also=("table-6.5",))
def figure_6_5(bench: Bench) -> Outcome:
    """Totals and calculation of squares, beside the processor."""
    return _both_times(bench, _squares(bench))


@experiment(
    "video",
    "figure-6.6",
    "Reconstruction: GPU against CPU",
    COMMON + " The report prints the mean speed-ups alone, over three times the grey time of one core.",
)
def figure_6_6(bench: Bench) -> Outcome:
    """The way back, of HD sizes and squares."""
    outcome = Outcome()
    for title, sizes in (("HD images", _hd(bench)), ("squares", _squares(bench))):
        table = Table(
            f"{bench.title}: reconstruction of {title}, ms",
            ["size", "processor", "calculated", "total", "total × processor", "back / forward"],
        )
        gains = []
        for size in sizes:
            level = HD.get(size) or _whole(size)
            back, forward = (_times(bench, size, "lifting", level=level, back=b) for b in (True, False))
            cpu = _times(bench.cpu, size, "lifting", level=level, back=True)
            if back is None or cpu is None or forward is None:
                continue
            gains.append(cpu.calc / back.total)
            table.add(
                size, _ms(cpu.calc), _ms(back.calc), _ms(back.total), gains[-1], back.calc / forward.calc
            )
        outcome.tables.append(table)
        if gains and not bench.on_cpu:
            outcome.findings.append(
                f"Reconstruction of {title} with transfers: {bench.title} is {_times_of(gains)} as fast as the processor beside"
                f" it, {_faster(gains)}; the paper has a mean of 10.24 and 10.66 over one core."
            )
    return outcome
