"""Make docs/performance-history.md: the most important figures of all benchmarks, from their first run to the latest.

Each file of ``benchmarks/results`` holds the latest run of a benchmark, and Git the runs before it. Run a benchmark, then
``make pages``; there is nothing else to do. A new benchmark needs an entry in ``FIGURES``, or a reason in ``NOT_SHOWN``.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "performance-history.md"

# Runs on a machine with other work on it differ by up to this much.
TOLERANCE = 0.1


@dataclass(frozen=True)
class Figure:
    """A number in a file of results, and whether less of it is better."""

    area: str
    file: str
    title: str
    path: tuple[Any, ...]
    unit: str
    less_is_better: bool = True

    def value(self, document: Any) -> float | None:
        """Follow the path; a dictionary in it selects the first item of a list with these values."""
        for step in self.path:
            if isinstance(step, dict):
                matches = (item for item in document if step.items() <= item.items())
                document = next(matches, None)
            else:
                document = document.get(step)
            if document is None:
                return None
        return float(document)


def formatted(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


@dataclass(frozen=True)
class Run:
    """A run of a benchmark."""

    date: str
    machine: str
    document: Any


def _cpu(levels: int, back: bool) -> tuple[Any, ...]:
    chosen = {"shape": [4096, 4096], "wavelet": "CDF 9/7", "levels": levels, "dtype": "f4", "back": back}
    return ("results", chosen, "times", "undula, out=")


def _gpu(levels: int, direction: str) -> tuple[Any, ...]:
    return ("sizes", {"shape": [8192, 8192], "what": f"CDF 9/7 symmetric {levels} level(s)"}, direction)


def _first(**values: Any) -> tuple[Any, ...]:
    return ("results", values, "times", "undula")


FIGURES = (
    Figure("CPU", "cpu", "DWT of 4096², 1 level", _cpu(1, False), "ms"),
    Figure("CPU", "cpu", "DWT of 4096², 5 levels", _cpu(5, False), "ms"),
    Figure("CPU", "cpu", "inverse DWT of 4096², 5 levels", _cpu(5, True), "ms"),
    Figure(
        "CPU", "threads", "`wavedec2` of 4096², 16 threads", ("results", {"threads": 16}, "wavedec2"), "ms"
    ),
    Figure(
        "CPU", "small", "`dwt` of 1,000 samples", _first(function="dwt", shape=[1000], wavelet="db4"), "µs"
    ),
    Figure(
        "CPU", "stationary", "`swt2` of 1024², 3 levels", _first(function="swt2", shape=[1024, 1024]), "ms"
    ),
    Figure(
        "CPU",
        "packets",
        "packets of 1024², 3 levels",
        _first(**{"class": "WaveletPacket2D", "method": "get_level"}),
        "ms",
    ),
    Figure(
        "CPU",
        "continuous",
        "`cwt` of 65,536 samples, 64 scales",
        ("transforms", {"wavelet": "morl", "dtype": "float32"}, "undula"),
        "ms",
    ),
    Figure(
        "CPU",
        "integers",
        "reversible CDF 5/3 of 4096², int16",
        ("transforms", {"what": "reversible CDF 5/3", "dtype": "int16"}, "forward"),
        "ms",
    ),
    Figure(
        "CPU",
        "gradients-cpu",
        "DWT with PyTorch, forward and gradient",
        ("figures", "undula", "both_ms"),
        "ms",
    ),
    Figure("GPU", "gpu", "DWT of 8192², 1 level", _gpu(1, "forward"), "µs"),
    Figure("GPU", "gpu", "DWT of 8192², 5 levels", _gpu(5, "forward"), "µs"),
    Figure("GPU", "gpu", "inverse DWT of 8192², 5 levels", _gpu(5, "back"), "µs"),
    Figure("GPU", "gpu", "host time of a plan that is run again", ("host", "reused_plan_us"), "µs"),
    Figure(
        "GPU",
        "stationary_gpu",
        "`swt2` of 4096², 3 levels, on an H200",
        ("results", {"side": 4096, "levels": 3}, "us"),
        "µs",
    ),
    Figure(
        "GPU",
        "filters_gpu",
        "`denoise` of 2048²",
        ("functions", {"n": 2048, "what": "denoise"}, "ms"),
        "ms",
    ),
    Figure(
        "GPU",
        "filters_gpu",
        "`denoise`, balanced, of 1920×1080",
        ("qualities", {"shape": [1080, 1920], "quality": "balanced"}, "ms"),
        "ms",
    ),
    Figure(
        "GPU",
        "gradients-cuda",
        "DWT with PyTorch, forward and gradient",
        ("figures", "undula", "both_ms"),
        "ms",
    ),
    Figure("Filters", "denoise", "`denoise` of 2048²", ("times", {"n": 2048}, "undula denoise"), "ms"),
    Figure(
        "Filters", "threads", "`denoise` of 4096², 16 threads", ("results", {"threads": 16}, "denoise"), "ms"
    ),
    Figure(
        "Filters",
        "denoise_peers",
        "`denoise`, balanced, of 1920×1080",
        ("times", "1080×1920", "undula balanced", "clock"),
        "s",
    ),
    Figure(
        "Filters",
        "denoise_peers",
        "`denoise`, best, of 1920×1080",
        ("times", "1080×1920", "undula best", "clock"),
        "s",
    ),
    Figure(
        "Filters", "camera", "`denoise` of camera noise, 512²", ("times", "undula denoise", "clock"), "ms"
    ),
    Figure("Larger than memory", "chunked", "`wavedec2` of 16384² with Dask", ("transform", "seconds"), "s"),
    Figure(
        "Larger than memory",
        "chunked_scaling",
        "16 workers of Dask",
        ("scaling", {"workers": 16}, "gigabytes_per_second"),
        "GB/s",
        less_is_better=False,
    ),
    Figure(
        "Larger than memory",
        "large_images",
        "`undula denoise` of a tiled TIFF of 30,000²",
        ("kinds", "tiles", "seconds"),
        "s",
    ),
    Figure(
        "Larger than memory",
        "larger_than_memory",
        "filter of a Zarr store of 40 GB",
        ("megabytes per second",),
        "MB/s",
        less_is_better=False,
    ),
    Figure(
        "Larger than memory",
        "pyramid",
        "OME-Zarr pyramid of 30×4000×4000",
        ("rows", {"package": "undula", "method": "cdf53"}, "seconds"),
        "s",
    ),
    Figure(
        "Larger than memory",
        "codec",
        "codec `nd_lift`, three axes",
        ("speeds", {"what": "lift53, three axes, 2 levels"}, "encode"),
        "MB/s",
        less_is_better=False,
    ),
    Figure(
        "Video and Studio",
        "video",
        "denoising of 1280×720 from file to file",
        ("rates", "file"),
        "frames/s",
        less_is_better=False,
    ),
    Figure(
        "Video and Studio",
        "video",
        "reversible transform of 1920×1080 RGB",
        ("acceptance", "forward"),
        "frames/s",
        less_is_better=False,
    ),
    Figure(
        "Video and Studio",
        "studio",
        "slider to screen, 1024² grey",
        ("slider", "1024² grey, synthesis", "on the screen, median"),
        "ms",
    ),
)

NOT_SHOWN = {
    "compare": "two versions side by side",
    "compare_gpu": "two versions side by side",
    "experiments-h200": "has pages of its own",
    "experiments-two-cores": "has pages of its own",
    "resumed": "shows that interrupted work is resumed",
    "studio-soak-clip": "shows that memory does not grow",
}


def git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, check=True, text=True, encoding="utf-8"
    ).stdout


def machine(document: Any) -> str:
    """The processor and its threads, or the GPU."""
    found = document.get("machine")
    description = found if isinstance(found, dict) else document | {"processor": found}
    name = str(description["processor"]).replace("(R)", "").replace(" Processor", "")
    count = description.get("threads", description.get("cores"))
    if count is None or name.startswith("NVIDIA"):
        return name
    return f"{name}, {count} {'thread' if count == 1 else 'threads'}"


@cache
def runs(file: str) -> tuple[Run, ...]:
    """All runs of a benchmark that were committed, and the one in the working tree, from the first to the latest."""
    path = f"benchmarks/results/{file}.json"
    commits = [line.split() for line in git("log", "--reverse", "--format=%H %as", "--", path).splitlines()]
    texts = [(git("show", f"{commit}:{path}"), date) for commit, date in commits]
    texts.append((RESULTS.joinpath(f"{file}.json").read_text(encoding="utf-8"), ""))
    found: dict[str, Run] = {}
    for text, committed in texts:
        document = json.loads(text)
        described = document.get("machine")
        date = document.get("date") or (described.get("date") if isinstance(described, dict) else None)
        found.setdefault(text, Run(date or committed or "not committed", machine(document), document))
    return tuple(found.values())


def series(figure: Figure) -> dict[str, list[tuple[str, float]]]:
    """The dates and values of a figure for each machine, without runs that left this figure as it was."""
    found: dict[str, list[tuple[str, float]]] = {}
    for run in runs(figure.file):
        value = figure.value(run.document)
        if value is not None and value not in [old for _, old in found.get(run.machine, [])]:
            found.setdefault(run.machine, []).append((run.date, value))
    if figure.value(runs(figure.file)[-1].document) is None:
        raise SystemExit(f"{figure.file}.json does not have {figure.title!r}; correct its path in {__file__}")
    return found


def drawing(points: list[tuple[str, float]], unit: str) -> str:
    """A small chart from zero to the largest value, in the colours of the page."""
    width, step = 96, 16  # Pixels: the chart, and the most from one run to the next.
    step = min(step, (width - 8) // max(1, len(points) - 1))
    top = max(value for _, value in points)
    places = [(4 + step * number, 27 - 22 * value / top) for number, (_, value) in enumerate(points)]
    line = " ".join(f"{x},{y:.1f}" for x, y in places)
    label = "; ".join(f"{date}: {formatted(value)} {unit}" for date, value in points)
    dots = "".join(f'<circle cx="{x}" cy="{y:.1f}" r="2"/>' for x, y in places)
    return (
        f'<svg viewBox="0 0 {width} 28" width="{width}" height="28" role="img" style="min-width: {width}px"'
        f' aria-label="{label}">'
        f'<title>{label}</title><path d="M0 27.5H{width}" stroke="currentColor" opacity=".3"/>'
        f'<g style="fill: var(--md-accent-fg-color); stroke: var(--md-accent-fg-color)">'
        f'<polyline points="{line}" fill="none"/>{dots}</g></svg>'
    )


def loss(figure: Figure, points: list[tuple[str, float]]) -> float:
    """How much worse the latest value is than the best one before it; negative where it is better."""
    if len(points) < 2:
        return 0.0
    earlier = [value for _, value in points[:-1]]
    latest = points[-1][1]
    return latest / min(earlier) - 1 if figure.less_is_better else max(earlier) / latest - 1


def row(figure: Figure, name: str, points: list[tuple[str, float]]) -> str:
    difference = loss(figure, points)
    if len(points) == 1:
        verdict = "–"
    elif abs(difference) < 0.005:
        verdict = "equal"
    elif difference < 0:
        verdict = f"{1 / (1 + difference):.2f}× better"
    elif difference <= TOLERANCE:
        verdict = f"{difference:.0%} worse"
    else:
        verdict = f"**{difference:.0%} worse**"
    date, latest = points[-1]
    # Numbers and dates are not broken into lines.
    facts = [
        f"{formatted(latest)}\N{NO-BREAK SPACE}{figure.unit}",
        date.replace("-", "\N{NON-BREAKING HYPHEN}"),
    ]
    cells = [figure.title, name, drawing(points, figure.unit), *facts, verdict, figure.file]
    return "| " + " | ".join(cells) + " |"


def page() -> str:
    known = {figure.file for figure in FIGURES} | NOT_SHOWN.keys()
    if unknown := {path.stem for path in RESULTS.glob("*.json")} ^ known:
        raise SystemExit(
            f"add these results to FIGURES or NOT_SHOWN, or remove them there: {', '.join(unknown)}"
        )
    lines = []
    worse = []
    for area, figures in groupby(FIGURES, lambda figure: figure.area):
        lines += [
            f"\n## {area}\n",
            "| figure | machine | runs | latest | date | change | results |",
        ]
        lines.append("| --- | --- | --- | --- | --- | --- | --- |")
        for figure in figures:
            for name, points in series(figure).items():
                lines.append(row(figure, name, points))
                if loss(figure, points) > TOLERANCE:
                    best = (min if figure.less_is_better else max)(value for _, value in points[:-1])
                    worse.append(
                        f"- {figure.title} (`{figure.file}`) on {name}: {formatted(points[-1][1])} {figure.unit}, was {formatted(best)}"
                    )
    verdict = "\n".join(worse) if worse else "None."
    return f"""# History of the benchmarks

The most important figures of all benchmarks, on every machine that they were run on. Each point of a chart is a run; charts start
at zero, and show date and value under the pointer. *Change* compares the latest run with the best one before it. Compare rows only
where the machine is the same. A machine named only by its
architecture may have been another one of its kind from run to run.

The latest runs are the files of `benchmarks/results`, which also hold the figures of other packages, measured at the same time, and the
versions of all packages. To add a run, run the benchmark, such as `python benchmarks/cpu.py`, and `make pages`.

## Worse than before

Figures whose latest run is more than {TOLERANCE:.0%} worse than the best run before it on the same machine:

{verdict}
""" + "\n".join([*lines, ""])


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
