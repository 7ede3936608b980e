"""Peak memory of filters, in fresh processes, beside what they estimate.

    python benchmarks/memory.py --save
    python benchmarks/memory.py photographs zarr --folder /tmp/memory --save

Sections:

    stacks       arrays of 10 MB with one to five axes, filtered in Python with each quality
    photographs  JPEG and TIFF of 24 and 61 million pixels, by ``undula denoise``
    zarr         Zarr arrays: images of 128 MB and 1 GB, a volume of 128 MB, by ``undula denoise``

Memory is the resident set of a process and its children, read 100 times a second. A process that takes more
than ``--limit`` gigabytes is ended, and its figure is the limit. With ``--save``, figures of a section are
added to those of the others as soon as they are known.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
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

from undula.experiments.run import machine
from undula.filters.memory import working_memory
from undula.filters.verbs import QUALITIES, Denoising

RESULTS = Path(__file__).parent / "results" / "memory.json"
STACKS = {1: (5_000_000,), 2: (2000, 2500), 3: (80, 250, 250), 4: (12, 16, 160, 160), 5: (6, 8, 16, 80, 80)}
PHOTOGRAPHS = {"24 MP": (4000, 6000), "61 MP": (6376, 9568)}
ZARR = {"image 128 MB": (8000, 8000), "image 1 GB": (22400, 22400), "volume 128 MB": (64, 1000, 1000)}
NOISE = 10.0
BAND = 500  # rows that are made at a time

STACK = """
import sys, time
import numpy as np
from undula.filters.memory import working_memory
from undula.filters.verbs import Denoising
pipeline = Denoising(quality={quality!r}).pipeline()
rng = np.random.default_rng(0)
x = rng.integers(80, 120, {shape!r}, dtype=np.uint16)
pipeline(x[tuple(slice(24) for n in x.shape)])  # Loads the package.
print(working_memory(pipeline, x.shape, x.dtype), flush=True)  # Compiles the program.
sys.stdin.readline()
pipeline(x)
"""


def megabytes(nbytes: float) -> int:
    """Return bytes as whole megabytes."""
    return round(nbytes / 1e6)


def resident(process: psutil.Popen) -> int:
    """Return the resident set of a process and its children."""
    total = 0
    for each in (process, *process.children(recursive=True)):
        try:
            total += each.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total


def watched(process: psutil.Popen, limit: float) -> int:
    """Wait for a process, and return its peak in bytes. End it if it takes too much."""
    peak = 0
    while process.poll() is None:
        try:
            peak = max(peak, resident(process))
        except psutil.NoSuchProcess:
            break
        if peak > limit * 1e9:
            for each in (*process.children(recursive=True), process):
                each.kill()
            process.wait()
            return peak
        time.sleep(0.01)
    if process.wait():
        raise SystemExit(f"{process.args} failed")
    return peak


def stacks(folder: Path, limit: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the figures of arrays in Python, without those of the program and the array."""
    for ndim, shape in STACKS.items():
        samples = math.prod(shape)
        for quality in QUALITIES:
            code = STACK.format(quality=quality, shape=shape)
            pipe = subprocess.PIPE
            process = psutil.Popen([sys.executable, "-c", code], stdin=pipe, stdout=pipe, text=True)
            estimate = int(process.stdout.readline())
            before = resident(process)
            process.stdin.write("\n")
            process.stdin.flush()
            peak = watched(process, limit)
            yield (
                f"{ndim}-D {quality}",
                {
                    "shape": list(shape),
                    "megabytes": megabytes(peak - before),
                    "estimated megabytes": megabytes(estimate),
                    "bytes per sample": round((peak - before) / samples, 1),
                    "estimated bytes per sample": round(estimate / samples, 1),
                },
            )


def photograph(shape: tuple[int, int]) -> np.ndarray[Any, Any]:
    """Return a colour photograph with noise."""
    rng, x = np.random.default_rng(0), np.arange(shape[1])
    pixels = np.empty((*shape, 3), np.uint8)
    for top in range(0, shape[0], BAND):
        y = np.arange(top, min(shape[0], top + BAND))[:, None]
        clean = 128 + 60 * np.sin(y / 70) * np.cos(x / 90)
        noisy = clean[..., None] + NOISE * rng.standard_normal((*clean.shape, 3), np.float32)
        pixels[top : top + BAND] = np.clip(noisy, 0, 255)
    return pixels


def photographs(folder: Path, limit: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the figures of the command on photographs: of the whole process."""
    import tifffile
    from PIL import Image

    for name, shape in PHOTOGRAPHS.items():
        for suffix in (".jpg", ".tif"):
            source = folder / f"photograph-{shape[0]}{suffix}"
            if not source.exists():
                pixels = photograph(shape)
                if suffix == ".jpg":
                    Image.fromarray(pixels).save(source, quality=95)
                else:
                    tifffile.imwrite(source, pixels, photometric="rgb")
                del pixels
            for quality in ("fast", "balanced"):
                target = folder / f"result{suffix}"
                samples = 3 * math.prod(shape)
                options = ["--quality", quality, "--overwrite", "--quiet"]
                figures = command(["denoise", str(source), str(target), *options], limit)
                target.unlink(missing_ok=True)
                estimate = working_memory(
                    Denoising(quality=quality).pipeline(), (*shape, 3), np.uint8, channel_axis=-1
                )
                yield (
                    f"{name} {suffix[1:]} {quality}",
                    {
                        **figures,
                        "bytes per sample": round(1e6 * figures["megabytes"] / samples, 1),
                        "estimated bytes per sample": round(estimate / samples, 1),
                    },
                )


def zarr(folder: Path, limit: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the figures of the command on Zarr arrays: of the whole process."""
    import zarr as library

    for name, shape in ZARR.items():
        source, target = folder / f"{name.replace(' ', '-')}.zarr", folder / "result.zarr"
        if not source.exists():
            rng = np.random.default_rng(0)
            chunks = (*(1 for _ in shape[:-2]), 500, 500)
            array = library.create_array(str(source), shape=shape, chunks=chunks, dtype="uint16")
            rows = 1 if len(shape) > 2 else 500
            for k in range(0, shape[0], rows):
                part = array[k : k + rows].shape
                array[k : k + rows] = rng.integers(800, 1200, part, dtype=np.uint16)
        shutil.rmtree(target, ignore_errors=True)
        yield name, command(["denoise", str(source), str(target), "--quiet"], limit)
        shutil.rmtree(target, ignore_errors=True)


def command(arguments: list[str], limit: float) -> dict[str, Any]:
    """Run a command, and return its figures."""
    process = psutil.Popen([sys.executable, "-m", "undula", *arguments], stdout=subprocess.DEVNULL)
    return {"megabytes": megabytes(watched(process, limit))}


SECTIONS = {"stacks": stacks, "photographs": photographs, "zarr": zarr}


def main() -> None:
    """Measure the chosen sections."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("sections", nargs="*", help=f"some of {', '.join(SECTIONS)}; all by default")
    parser.add_argument("--folder", type=Path, help="where files are written, and kept")
    parser.add_argument("--limit", type=float, default=12.0, help="gigabytes that end a process")
    parser.add_argument("--save", action="store_true", help=f"add the figures to {RESULTS.name}")
    given = parser.parse_args()
    unknown = set(given.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"there is no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    temporary = None if given.folder else tempfile.TemporaryDirectory()
    folder = given.folder or Path(temporary.name)
    folder.mkdir(parents=True, exist_ok=True)
    for section in given.sections or SECTIONS:
        figures = {}
        for name, row in SECTIONS[section](folder, given.limit):
            figures[name] = row
            print(section, name, row, flush=True)
        if given.save:
            saved = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
            report = saved | {"machine": machine(), "date": str(date.today()), section: figures}
            RESULTS.write_text(json.dumps(report, indent=2) + "\n")
    if temporary is not None:
        temporary.cleanup()


if __name__ == "__main__":
    main()
