"""Commands that measure."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import undula

from .. import io
from ..errors import ArgumentError, FileError
from .common import Backend, Json, Level, MaxPixels, Overwrite, Quiet, Wave, app
from .outputs import check_outputs
from .screen import say, show_json, show_table, steps


@app.command()
def accept(
    source: Annotated[str | None, typer.Argument(help="a video; 1920×1080 noise if not given")] = None,
    frames: Annotated[int, typer.Option("--frames", min=1, help="frames that are kept in memory")] = 50,
    wavelet: Wave = "cdf97",
    level: Level = 3,
    backend: Backend = "auto",
    rate: Annotated[float, typer.Option("--rate", help="frames per second that are needed")] = 25.0,
    histogram: Annotated[
        Path | None, typer.Option("--histogram", help="write a picture of the times")
    ] = None,
    overwrite: Overwrite = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Test whether this machine transforms video in time: colour frames, forward and back, one by one.

    Example: `undula accept --frames 20`
    """
    if not 0 < rate < float("inf"):
        raise ArgumentError(f"--rate is a number of frames in a second above 0, got {rate}")
    check_outputs(histogram, overwrite=overwrite, inputs=[] if source is None else [source])
    if source is None:
        rng = np.random.default_rng(0)
        held = [rng.integers(0, 256, (1080, 1920, 3)).astype(np.uint8) for _ in range(min(frames, 8))]
        held = [held[k % len(held)] for k in range(frames)]
    else:
        if not source.startswith("camera:") and not Path(source).exists():
            raise FileError(f"cannot read {source}: there is no such file")
        held = list(io.read_frames(source, frames, max_pixels))
    if not held:
        raise FileError(f"{source} has no frames that could be decoded")
    forward_times, back_times = [], []
    error = 0.0
    with steps("frames", len(held), quiet or json_) as progress:
        for number, frame in enumerate([held[0]] * 2 + held):
            begin = time.perf_counter()
            coeffs = undula.color.forward(frame, wavelet, level, color="ict", backend=backend)
            middle = time.perf_counter()
            back = undula.color.inverse(coeffs, wavelet, color="ict", backend=backend)
            end = time.perf_counter()
            if number < 2:  # warming up
                continue
            forward_times.append(1e3 * (middle - begin))
            back_times.append(1e3 * (end - middle))
            error = max(error, float(np.abs(back.astype(np.float64) - frame).max()))
            progress(number - 1)
    found: dict[str, Any] = {
        "frames": len(held),
        "size": f"{held[0].shape[1]} × {held[0].shape[0]}",
        "backend": backend,
        "wavelet": wavelet,
        "level": level,
        "largest error": error,
    }
    for name, some in (("forward", forward_times), ("back", back_times)):
        found[name] = {
            "mean": float(np.mean(some)),
            "min": min(some),
            "max": max(some),
            "fps": 1e3 / float(np.mean(some)),
        }
    accepted = min(found["forward"]["fps"], found["back"]["fps"]) >= rate
    found["accepted"] = accepted
    if histogram is not None:
        io.write(histogram, _histogram({"forward": forward_times, "back": back_times}, 1e3 / rate))
    if json_:
        show_json(found)
    else:
        rows = [[n, *(found[n][k] for k in ("mean", "min", "max", "fps"))] for n in ("forward", "back")]
        title = f"{found['size']}, {len(held)} frames, {wavelet}, {level} levels, milliseconds"
        show_table(title, ["", "mean", "min", "max", "frames/s"], rows)
        say(f"{'accepted' if accepted else 'NOT accepted'}: {rate:g} frames in a second are needed")
    if not accepted:
        raise typer.Exit(3)


def _histogram(times: dict[str, list[float]], limit: float) -> np.ndarray[Any, Any]:
    """Bars of times, with a line where they should end."""
    from PIL import Image, ImageDraw

    width, height, pad = 720, 300, 40
    sheet = Image.new("RGB", (width, height), "white")
    draw = ImageDraw.Draw(sheet)
    longest = max(max(some) for some in times.values())
    top = max(longest * 1.05, limit * 1.1)
    bins = np.linspace(0, top, 61)
    counts = {name: np.histogram(some, bins)[0] for name, some in times.items()}
    most = max(int(c.max()) for c in counts.values())
    step = (width - 2 * pad) / 60
    for name, color, shift in (("forward", "#0b7285", 0.0), ("back", "#e8590c", 0.5)):
        for k, count in enumerate(counts[name]):
            if count:
                left = pad + (k + shift) * step
                high = (height - 2 * pad) * count / most
                draw.rectangle([left, height - pad - high, left + step / 2 - 1, height - pad], fill=color)
    draw.line([pad, height - pad, width - pad, height - pad], fill="#868e96")
    at = pad + (width - 2 * pad) * limit / top
    draw.line([at, pad / 2, at, height - pad], fill="#c92a2a", width=2)
    draw.text((at - 90, pad / 2 - 12), f"limit {limit:.1f} ms", fill="#c92a2a")
    for share in (0, 0.25, 0.5, 0.75, 1):
        draw.text(
            (pad + share * (width - 2 * pad) - 10, height - pad + 6), f"{share * top:.1f} ms", fill="#1d2733"
        )
    draw.text((pad, 8), "forward", fill="#0b7285")
    draw.text((pad + 60, 8), "back", fill="#e8590c")
    return np.asarray(sheet)


@app.command()
def bench(
    json_: Json = False,
    quick: Annotated[bool, typer.Option("--quick", help="small sizes alone")] = False,
) -> None:
    """Measure this machine: transforms beside a copy, and denoising.

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
                _best(lambda x=x, y=y: np.copyto(y, x)),
                _best(lambda p=plan, x=x, c=coeffs: p.forward(x, out=c)),
                _best(lambda p=plan, y=y, c=coeffs: p.inverse(c, out=y)),
                _best(lambda x=x: undula.denoise_wavelet(x)),
                _best(lambda x=x: undula.denoise(x), 3),
            ]
        )
    names = ["size", "copy", "forward", "back", "denoise_wavelet", "denoise"]
    if json_:
        show_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        show_table("milliseconds, float32, CDF 9/7, all levels that are usual", names, rows)


def _best(do: Any, runs: int = 9) -> float:
    do()
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        do()
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times)
