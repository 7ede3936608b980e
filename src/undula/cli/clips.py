"""Comparison of two videos: a table of PSNR and SSIM, and a picture of both over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import io
from ..io.comparison import VideoComparison, compare_videos
from .screen import print_json, print_table, print_text, progress_bar

WIDTH, PANEL_HEIGHT = 960, 300
LEFT, RIGHT, TOP, BOTTOM = 70, 30, 58, 44  # Margins of a panel, in pixels.
INK, GRID, CURVE, WORST = "#1d2733", "#dee2e6", "#1971c2", "#c92a2a"


def compare_clips(a: str, b: str, plot: Path | None, max_pixels: int | None, as_json: bool) -> None:
    """Compare two videos and print a report; draw the measures if ``plot`` is a file."""
    with progress_bar(Path(a).name, io.probe(a, max_pixels).frames, as_json) as progress:
        comparison = compare_videos(a, b, max_pixels, progress)
    if plot is not None:
        io.write(plot, draw_comparison(comparison, f"{Path(a).name} and {Path(b).name}"))
    rows = [
        ["PSNR, dB", comparison.mean_psnr, *_worst(comparison, comparison.psnr)],
        ["SSIM", comparison.mean_ssim, *_worst(comparison, comparison.ssim)],
    ]
    if as_json:
        print_json(
            {
                "frames": list(comparison.frames),
                "pixels": comparison.pixels,
                **{
                    name: {"mean": row[1], "worst": row[2], "worst frame": row[3], "worst time": row[4]}
                    for name, row in zip(("psnr", "ssim"), rows, strict=True)
                },
                "times": comparison.times,
                "psnr of frames": comparison.psnr,
                "ssim of frames": comparison.ssim,
            }
        )
        return
    if len(set(comparison.frames)) > 1:
        first, second = comparison.frames
        print_text(
            f"{a} has {first} frames and {b} has {second}; the first {min(first, second)} are compared"
        )
    if min(comparison.psnr) == math.inf:
        print_text(f"all {len(comparison.times)} frames are equal")
        return
    title = f"{len(comparison.times)} frames of {comparison.pixels}"
    cells = [
        [name, f"{mean:.4g}", f"{worst:.4g}", str(number), f"{time:.3f}"]
        for name, mean, worst, number, time in rows
    ]
    print_table(title, ["", "mean", "worst", "in frame", "at second"], cells)


def _worst(comparison: VideoComparison, values: Sequence[float]) -> tuple[float, int, float]:
    """Return the lowest value, with the number and the time of its frame."""
    number = int(np.argmin(values))
    return values[number], number, comparison.times[number]


def draw_comparison(comparison: VideoComparison, title: str) -> np.ndarray[Any, Any]:
    """Draw PSNR and SSIM over time, with their means and their worst frames."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (WIDTH, 2 * PANEL_HEIGHT), "white")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(15)
    draw.text((LEFT, 8), title, fill=INK, font=font)
    panels = (
        ("PSNR, dB", comparison.psnr, comparison.mean_psnr, ".1f"),
        ("SSIM", comparison.ssim, comparison.mean_ssim, ".3f"),
    )
    for number, (name, values, mean, pattern) in enumerate(panels):
        _draw_panel(draw, font, number * PANEL_HEIGHT, name, comparison.times, values, mean, pattern)
    return np.asarray(image)


def _draw_panel(
    draw: Any,
    font: Any,
    offset: int,
    name: str,
    times: Sequence[float],
    values: Sequence[float],
    mean: float,
    pattern: str,
) -> None:
    """Draw one measure over time; frames that are equal are drawn at the upper edge."""
    finite = [value for value in (*values, mean) if math.isfinite(value)] or [1.0]
    low, high = min(finite), max(finite)
    margin = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
    low, high = low - margin, high + margin
    start, end = times[0], max(times[-1], times[0] + 1e-3)
    top, bottom = offset + TOP, offset + PANEL_HEIGHT - BOTTOM

    def place(time: float, value: float) -> tuple[float, float]:
        share = (min(value, high) - low) / (high - low) if not math.isnan(value) else 0.0
        x = LEFT + (WIDTH - LEFT - RIGHT) * (time - start) / (end - start)
        return x, bottom - (bottom - top) * share

    for tick in _ticks(low, high):
        _, y = place(start, tick)
        draw.line([LEFT, y, WIDTH - RIGHT, y], fill=GRID)
        draw.text((LEFT - 8, y), f"{tick:g}", fill=INK, font=font, anchor="rm")
    for tick in _ticks(start, end):
        x, _ = place(tick, low)
        draw.line([x, bottom, x, bottom + 5], fill=INK)
        draw.text((x, bottom + 8), f"{tick:g} s", fill=INK, font=font, anchor="mt")
    draw.line([LEFT, bottom, WIDTH - RIGHT, bottom], fill=INK)
    draw.text((LEFT, top - 6), name, fill=CURVE, font=font, anchor="lb")
    if math.isfinite(mean):
        _, y = place(start, mean)
        for x in range(LEFT, WIDTH - RIGHT, 12):
            draw.line([x, y, x + 6, y], fill=INK)
        draw.text((WIDTH - RIGHT, top - 6), f"mean {mean:{pattern}}", fill=INK, font=font, anchor="rb")
    draw.line(
        [place(*point) for point in zip(times, values, strict=True)], fill=CURVE, width=2, joint="curve"
    )
    worst = int(np.argmin(values))
    if math.isfinite(values[worst]):
        x, y = place(times[worst], values[worst])
        draw.ellipse([x - 4, y - 4, x + 4, y + 4], fill=WORST)
        label = f"worst {values[worst]:{pattern}} in frame {worst}"
        is_right = x > (LEFT + WIDTH - RIGHT) / 2
        draw.text(
            (x - 10 if is_right else x + 10, y),
            label,
            fill=WORST,
            font=font,
            anchor="rm" if is_right else "lm",
        )


def _ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers between two limits."""
    raw = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    first = math.ceil(low / step)
    return [round(k * step, 10) for k in range(first, math.floor(high / step) + 1)]
