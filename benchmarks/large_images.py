"""Memory and time of commands on an image file that is larger than what fits into memory with its filter.

    python benchmarks/large_images.py --folder /tmp --save
    python benchmarks/large_images.py --side 8000 --kinds tiles png

A grey image of 8 bits with noise is written to each kind of file. ``undula info`` and ``undula denoise`` run
as processes of their own; their memory is the resident set of the process and its children, read 50 times a
second. A part of each result is compared with the same part of the others.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import tifffile
from PIL import Image

from undula.experiments.run import machine
from undula.io.bands import series_bands

RESULTS = Path(__file__).parent / "results" / "large_images.json"
KINDS = ("contiguous", "strips", "tiles", "png")
TILE = 512
SIGMA = 15.0


def rows(side: int) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the image, as many rows at a time as tiles have."""
    rng, x = np.random.default_rng(0), np.arange(side)
    for top in range(0, side, TILE):
        y = np.arange(top, min(side, top + TILE))[:, None]
        noise = rng.standard_normal((len(y), side), np.float32)
        yield np.clip(128 + 60 * np.sin(y / 70) * np.cos(x / 90) + SIGMA * noise, 0, 255).astype(np.uint8)


def write(path: Path, kind: str, side: int) -> None:
    """Write the image to a file."""
    pixels = np.concatenate(list(rows(side)))
    if kind == "png":
        Image.fromarray(pixels).save(path, compress_level=1)
        return
    options: dict[str, Any] = {"compression": "zlib", "compressionargs": {"level": 1}}
    layout = {
        "contiguous": {},
        "strips": {"rowsperstrip": 16, **options},
        "tiles": {"tile": (TILE, TILE), **options},
    }
    tifffile.imwrite(path, pixels, photometric="minisblack", **layout[kind])


def run(*arguments: str) -> tuple[float, float]:
    """Run a command, and return its seconds and the largest number of megabytes that it had."""
    start, peak = time.perf_counter(), 0
    process = psutil.Popen([sys.executable, "-m", "undula", *arguments], stdout=subprocess.DEVNULL)
    while process.poll() is None:
        try:
            tree = [process, *process.children(recursive=True)]
            peak = max(peak, sum(each.memory_info().rss for each in tree))
        except psutil.NoSuchProcess:
            pass
        time.sleep(0.02)
    if process.returncode:
        raise SystemExit(f"undula {' '.join(arguments)} failed")
    return time.perf_counter() - start, peak / 1e6


def corner(path: Path) -> np.ndarray[Any, Any]:
    """Return the first rows of a result."""
    if path.suffix == ".png":
        Image.MAX_IMAGE_PIXELS = None
        with Image.open(path) as image:
            return np.asarray(image.crop((0, 0, image.width, TILE)))
    return next(band[:TILE] for _, _, band in series_bands(path, TILE))


def main() -> None:
    """Measure all kinds of files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--side", type=int, default=30_000, help="rows and columns of the image")
    parser.add_argument("--kinds", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--folder", type=Path, help="where files are written, and kept")
    parser.add_argument("--save", action="store_true", help=f"add the figures to {RESULTS.name}")
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp())
    figures: dict[str, Any] = {}
    first: np.ndarray[Any, Any] | None = None
    for kind in given.kinds:
        suffix = ".png" if kind == "png" else ".tif"
        source, target = (folder / f"{kind}-{given.side}{end}{suffix}" for end in ("", "-denoised"))
        if not source.exists():
            write(source, kind, given.side)
        _, info_megabytes = run("info", str(source))
        limit = ["--max-pixels", str(given.side**2)] if kind == "png" else []
        seconds, megabytes = run("denoise", str(source), str(target), "--overwrite", *limit)
        part = corner(target)
        first = part if first is None else first
        if not np.array_equal(part, first):
            raise SystemExit(f"the result of {kind} differs from the others")
        figures[kind] = {
            "seconds": round(seconds, 1),
            "peak megabytes": round(megabytes),
            "peak megabytes of info": round(info_megabytes),
        }
        print(kind, figures[kind], flush=True)
    if given.save:
        saved = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        known = saved.get("kinds", {}) if saved.get("side") == given.side else {}
        report = {
            "machine": machine(),
            "date": str(date.today()),
            "side": given.side,
            "kinds": {**known, **figures},
        }
        RESULTS.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
