"""Plots as SVG: scaling function and wavelet, the histogram of a band, the time of each phase."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..wavelets import as_wavelet
from .views import BandHistogram

__all__ = ["PHASE_COLORS", "histogram", "time_bar", "wavelet_functions"]


def _curve(x: Any, y: Any, box: tuple[float, float, float, float], color: str) -> str:
    left, top, width, height = box
    low, high = float(np.min(y)), float(np.max(y))
    span = (high - low) or 1.0
    start, end = float(x[0]), float(x[-1])
    step = max(1, len(x) // 220)
    points = " ".join(
        f"{left + width * (a - start) / ((end - start) or 1):.1f},{top + height * (high - b) / span:.1f}"
        for a, b in zip(x[::step], y[::step], strict=True)
    )
    zero = top + height * high / span
    axis = f'<line x1="{left}" x2="{left + width}" y1="{zero:.1f}" y2="{zero:.1f}" stroke="var(--line)"/>'
    return f'{axis}<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.8"/>'


@lru_cache(maxsize=256)
def wavelet_functions(name: str) -> str:
    """Plot scaling function and wavelet of the analysis, with the synthesis functions behind if different."""
    wavelet = as_wavelet(name)
    *curves, x = (np.asarray(samples, float) for samples in wavelet.wavefun(level=7))
    body = []
    for number, (color, label) in enumerate((("var(--accent)", "scaling φ"), ("var(--hot)", "wavelet ψ"))):
        left = 4 + 136 * number
        if len(curves) == 4:
            body.append(_curve(x, curves[2 + number], (left, 18, 124, 62), "var(--line)"))
        body.append(_curve(x, curves[number], (left, 18, 124, 62), color))
        body.append(f'<text x="{left}" y="11">{label}</text>')
    title = f"Scaling function and wavelet of {wavelet.name}"
    return (
        f'<svg class="plot" viewBox="0 0 268 84" role="img" aria-label="{title}"><title>{title}</title>'
        f"{''.join(body)}</svg>"
    )


def histogram(band: BandHistogram, level: int, name: str) -> str:
    """Plot the histograms of a band before and after filtering, with its thresholds as dashed lines."""
    width, height, base = 268.0, 96.0, 84.0
    bins = len(band.before)
    top = math.log1p(max(max(band.before), 1))

    def bars(counts: Sequence[int], style: str) -> str:
        step = width / bins
        parts = [
            f"M{k * step:.2f},{base}v{-(base - 6) * math.log1p(n) / top:.2f}h{step * 0.86:.2f}V{base}z"
            for k, n in enumerate(counts)
            if n
        ]
        return f'<path d="{"".join(parts)}" {style}/>'

    lines = ""
    for threshold in [threshold for threshold in band.thresholds if threshold <= band.limit]:
        for side in (-1, 1):
            at = width * (0.5 + side * threshold / (2 * band.limit))
            lines += (
                f'<line class="threshold" x1="{at:.1f}" x2="{at:.1f}" y1="2" y2="{base}" stroke="var(--hot)"'
                ' stroke-width="1.6" stroke-dasharray="4 2"/>'
            )
    thresholds = ", ".join(f"{threshold:.3g}" for threshold in band.thresholds)
    title = (
        f"Histogram of {name}, level {level}; {f'threshold {thresholds}' if thresholds else 'no threshold'}"
    )
    return (
        f'<svg class="plot" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">'
        + f"<title>{title}</title>"
        + bars(band.before, 'fill="var(--soft)" opacity="0.45"')
        + bars(band.after, 'fill="none" stroke="var(--accent)" stroke-width="0.9"')
        + lines
        + f'<text x="0" y="95">−{band.limit:.3g}</text>'
        + f'<text x="{width / 2}" y="95" text-anchor="middle">0</text>'
        + f'<text x="{width}" y="95" text-anchor="end">{band.limit:.3g}</text></svg>'
    )


PHASE_COLORS = {
    "forward": "#0d9488",
    "filter": "#ea580c",
    "inverse": "#2563eb",
    "transfer": "#a855f7",
    "colour and rounding": "#94a3b8",
}


def time_bar(milliseconds: dict[str, float]) -> str:
    """Plot the share of each phase in the total time as a bar."""
    total = milliseconds.get("total") or 1.0
    parts = "".join(
        f'<i style="width:{100 * milliseconds.get(name, 0.0) / total:.1f}%;background:{color}"></i>'
        for name, color in PHASE_COLORS.items()
    )
    return f'<div class="bar" aria-hidden="true">{parts}</div>'
