"""Commands that measure the speed of this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from typer import Argument, Option

import undula

from .. import io
from ..errors import ArgumentError, FileError
from .common import Backend, Json, Level, MaxPixels, Overwrite, Quiet, Wavelet, app
from .outputs import check_outputs
from .screen import print_json, print_table, print_text, progress_bar

PANEL = "Measurements"
COLORS = {"forward": "#0b7285", "back": "#e8590c"}


@app.command(rich_help_panel=PANEL)
def accept(
    source: Annotated[
        str | None,
        Argument(metavar="VIDEO", help="A video file or camera:0; by default, 1920×1080 frames of noise."),
    ] = None,
    frames: Annotated[
        int, Option("--frames", min=1, help="Number of frames to transform; all are held in memory.")
    ] = 50,
    wavelet: Wavelet = "cdf97",
    level: Level = 3,
    backend: Backend = "auto",
    rate: Annotated[float, Option("--rate", help="Required number of frames per second.")] = 25.0,
    histogram: Annotated[
        Path | None, Option("--histogram", help="Write a histogram of the times as an image.")
    ] = None,
    overwrite: Overwrite = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Test whether this machine transforms colour video in real time, forward and inverse, frame by frame.

    The exit status is 3 if it is too slow.

    Example: `undula accept --frames 20`
    """
    if not 0 < rate < float("inf"):
        raise ArgumentError(f"--rate must be a positive number of frames per second, got {rate}")
    check_outputs(histogram, overwrite=overwrite, inputs=[] if source is None else [source])
    if source is None:
        rng = np.random.default_rng(0)
        noise = [rng.integers(0, 256, (1080, 1920, 3)).astype(np.uint8) for _ in range(min(frames, 8))]
        images = [noise[k % len(noise)] for k in range(frames)]
    else:
        images = list(io.read_frames(source, frames, max_pixels))
    if not images:
        raise FileError(f"{source} has no frames that can be decoded")
    times: dict[str, list[float]] = {"forward": [], "back": []}
    error = 0.0
    with progress_bar("frames", len(images), quiet or json_) as progress:
        for number, image in enumerate([images[0]] * 2 + images):
            start = time.perf_counter()
            coeffs = undula.color.forward(image, wavelet, level, color="ict", backend=backend)
            middle = time.perf_counter()
            restored = undula.color.inverse(coeffs, wavelet, color="ict", backend=backend)
            end = time.perf_counter()
            if number < 2:  # The first two runs are for warming up.
                continue
            times["forward"].append(1e3 * (middle - start))
            times["back"].append(1e3 * (end - middle))
            error = max(error, float(np.abs(restored.astype(np.float64) - image).max()))
            progress(number - 1)
    report: dict[str, Any] = {
        "frames": len(images),
        "size": f"{images[0].shape[1]} × {images[0].shape[0]}",
        "backend": backend,
        "wavelet": wavelet,
        "level": level,
        "largest error": error,
    }
    for name, values in times.items():
        mean = float(np.mean(values))
        report[name] = {"mean": mean, "min": min(values), "max": max(values), "fps": 1e3 / mean}
    accepted = min(report[name]["fps"] for name in times) >= rate
    report["accepted"] = accepted
    if histogram is not None:
        io.write(histogram, _draw_histogram(times, 1e3 / rate))
    if json_:
        print_json(report)
    else:
        rows = [["inverse" if name == "back" else name, *report[name].values()] for name in times]
        title = f"{report['size']}, {len(images)} frames, {wavelet}, {level} levels, milliseconds"
        print_table(title, ["", "mean", "min", "max", "frames/s"], rows)
        print_text(f"{'accepted' if accepted else 'NOT accepted'}: {rate:g} frames per second are required")
    if not accepted:
        raise typer.Exit(3)


def _draw_histogram(times: dict[str, list[float]], limit_ms: float) -> np.ndarray[Any, Any]:
    """Draw a histogram of times in milliseconds, with a line at the longest time that is allowed."""
    from PIL import Image, ImageDraw

    width, height, pad, bins = 720, 300, 40, 60
    image = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(image)
    end = max(1.05 * max(map(max, times.values())), 1.1 * limit_ms)
    counts = {name: np.histogram(values, bins, (0, end))[0] for name, values in times.items()}
    tallest = max(int(count.max()) for count in counts.values())
    bar_width = (width - 2 * pad) / bins / 2
    for shift, (name, color) in enumerate(COLORS.items()):
        for k, count in enumerate(counts[name]):
            if count:
                left = pad + (2 * k + shift) * bar_width
                top = height - pad - (height - 2 * pad) * count / tallest
                draw.rectangle([left, top, left + bar_width - 1, height - pad], fill=color)
        draw.text((pad + 60 * shift, 8), "inverse" if name == "back" else name, fill=color)
    draw.line([pad, height - pad, width - pad, height - pad], fill="#868e96")
    x = pad + (width - 2 * pad) * limit_ms / end
    draw.line([x, pad / 2, x, height - pad], fill="#c92a2a", width=2)
    draw.text((x - 90, pad / 2 - 12), f"limit {limit_ms:.1f} ms", fill="#c92a2a")
    for share in (0, 0.25, 0.5, 0.75, 1):
        place = (pad + share * (width - 2 * pad) - 10, height - pad + 6)
        draw.text(place, f"{share * end:.1f} ms", fill="#1d2733")
    return np.asarray(image)


@app.command(rich_help_panel=PANEL)
def bench(
    json_: Json = False, quick: Annotated[bool, Option("--quick", help="Measure small sizes only.")] = False
) -> None:
    """Measure the speed of copies, transforms and denoising on this machine.

    Example: `undula bench --quick`
    """
    rows = []
    for n in (512, 1024) if quick else (512, 1024, 2048, 4096):
        x = np.random.default_rng(0).standard_normal((n, n)).astype(np.float32)
        y = np.empty_like(x)
        plan = undula.Plan((n, n), "cdf97", level=5 if n > 512 else 4, dtype="float32")
        coeffs = plan.forward(x)
        rows.append(
            [
                f"{n}²",
                _best_ms(lambda x=x, y=y: np.copyto(y, x)),
                _best_ms(lambda p=plan, x=x, c=coeffs: p.forward(x, out=c)),
                _best_ms(lambda p=plan, y=y, c=coeffs: p.inverse(c, out=y)),
                _best_ms(lambda x=x: undula.denoise_wavelet(x)),
                _best_ms(lambda x=x: undula.denoise(x), 3),
            ]
        )
    names = ["size", "copy", "forward", "back", "denoise_wavelet", "denoise"]
    if json_:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        title = "milliseconds, float32, CDF 9/7, 4 levels at 512², else 5"
        print_table(title, ["inverse" if name == "back" else name for name in names], rows)


def _best_ms(function: Callable[..., Any], runs: int = 9) -> float:
    """Return the shortest time of several runs, after one for warming up."""
    function()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)
