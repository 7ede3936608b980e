"""Charts as SVG; text and axes take the text colour of the page, so that they suit light and dark themes."""

from __future__ import annotations

import io
import re
from textwrap import wrap
from typing import Any

from .base import Chart

__all__ = ["COLORS", "INK", "STYLE", "svg", "themed"]

INK = "#010203"  # Replaced by currentColor in the SVG.
COLORS = ("#1098ad", "#f76707", "#7048e8", "#2f9e44", "#e64980", "#f59f00", "#4263eb", "#868e96", "#0ca678", "#c92a2a", "#ae3ec9")  # fmt: skip
MARKERS = "osD^vPX*<>h"


STYLE: Any = {
    "svg.fonttype": "none", "svg.hashsalt": "undula", "font.family": "sans-serif", "font.size": 10.5,
    "text.color": INK, "axes.edgecolor": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK,
    "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False, "axes.linewidth": 0.8,
}  # fmt: skip


def svg(chart: Chart) -> str:
    """Draw a chart as SVG text."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(7.4, 4.1), layout="constrained")
        axes = figure.add_subplot()
        axes.set_title("\n".join(wrap(chart.title, 72)), fontsize=11.5, loc="left")
        {"lines": _lines, "bars": _bars, "steps": _steps}[chart.kind](axes, chart)
        if chart.mark is not None:
            name, value = chart.mark
            axes.axhline(value, color="#c92a2a", linewidth=1, linestyle=":")
            label: Any = {"ha": "right", "va": "bottom", "color": "#c92a2a", "fontsize": 9}
            axes.text(0.995, value, name, transform=axes.get_yaxis_transform(), **label).set_in_layout(False)
        axes.set_xlabel(chart.x)
        axes.set_ylabel(chart.y)
        axes.grid(True, alpha=0.18, color=INK, linewidth=0.6)
        if len(chart.series) + len(chart.theirs) > 1:
            axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)
        return themed(figure)


def themed(figure: Any) -> str:
    """Return a figure that was drawn in :data:`STYLE` as SVG text in the font and the text colour of its page."""
    from matplotlib import rc_context

    file = io.StringIO()
    with rc_context(STYLE):
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.S)
    text = re.sub(r"font: (?:italic )?([\d.]+)px [^;\"]*", r"font-size: \1px; font-family: inherit", text)
    text = re.sub(
        r"font-size: ([\d.]+)px; font-family: inherit, [^;\"]*",
        r"font-size: \1px; font-family: inherit",
        text,
    )
    return re.sub(r" +\n", "\n", text)


def _lines(axes: Any, chart: Chart) -> None:
    for number, (name, points) in enumerate(chart.series.items()):
        color = COLORS[number % len(COLORS)]
        x, y = zip(*points, strict=True) if points else ((), ())
        marker = MARKERS[number % len(MARKERS)] if len(points) <= 24 else None
        axes.plot(x, y, color=color, marker=marker, markersize=4.5, linewidth=1.6, label=name)
    for number, (name, points) in enumerate(chart.theirs.items()):
        x, y = zip(*points, strict=True)
        color = COLORS[(number + len(chart.series)) % len(COLORS)]
        style: Any = {"linestyle": "--", "marker": "x", "markersize": 4, "linewidth": 1.1}
        axes.plot(x, y, color=color, label=f"{name} (published)", **style)
    if "x" in chart.log:
        axes.set_xscale("log", base=2 if _powers(chart) else 10)
        if _powers(chart):
            ticks = sorted({x for points in chart.series.values() for x, _ in points})
            axes.set_xticks(ticks, [str(t) for t in ticks])
            axes.minorticks_off()
    if "y" in chart.log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)


def _powers(chart: Chart) -> bool:
    """True if all x values are powers of two."""
    places = [x for points in chart.series.values() for x, _ in points]
    return bool(places) and all(isinstance(x, int) and x < 1 << 16 and x & (x - 1) == 0 for x in places)


def _bars(axes: Any, chart: Chart) -> None:
    names = list(dict.fromkeys(str(x) for points in chart.series.values() for x, _ in points))
    count = len(chart.series)
    for number, (name, points) in enumerate(chart.series.items()):
        heights = {str(x): y for x, y in points}
        places = [k + (number - (count - 1) / 2) * 0.8 / count for k in range(len(names))]
        color = COLORS[number % len(COLORS)]
        axes.bar(places, [heights.get(n, 0) for n in names], 0.76 / count, color=color, label=name)
    axes.set_xticks(range(len(names)), names)


def _steps(axes: Any, chart: Chart) -> None:
    for number, (name, points) in enumerate(chart.series.items()):
        x, y = zip(*points, strict=True)
        axes.step(x, y, where="post", color=COLORS[number % len(COLORS)], linewidth=1.5, label=name)
        axes.fill_between(x, y, step="post", color=COLORS[number % len(COLORS)], alpha=0.15, linewidth=0)
