"""Decomposition, shrinkage and reconstruction of frames on a GPU, compared with a copy.

    python benchmarks/filters_gpu.py               print a table, about a minute
    python benchmarks/filters_gpu.py --save FILE   save the figures

Three levels of CDF 9/7 and soft thresholds, as Nielsen (NTNU, 2007) filters ultrasound; public functions
beside a copy and the CPU; the qualities of denoising; and frames from and to the host.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import deque
from datetime import date
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import gpu
import numpy as np
import pywt
import torch

import undula
from undula.filters.verbs import QUALITIES, Denoising
from undula.measures import psnr

Row = dict[str, Any]


def frames(n: int, dtype: str = "float32") -> Row:
    """Measure a plan, frame by frame, into preallocated arrays."""
    x = gpu.noise((n, n), getattr(torch, dtype))
    plan = undula.Plan((n, n), "bior4.4", level=3, dtype=dtype, backend="cuda")
    limits = torch.full((3, 2, 3), 20.0, device="cuda")
    coeffs = plan.forward(x)
    y = torch.empty_like(x)

    def work() -> None:
        plan.forward(x, out=coeffs)
        plan.inverse(coeffs, out=y, rule="soft", limits=limits)

    floor, filtered = gpu.copied(x), gpu.median(work, ahead=300_000)
    apart = gpu.median(lambda: (plan.forward(x, out=coeffs), plan.inverse(coeffs, out=y)), ahead=300_000)
    for _ in range(20):
        work()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(500):
        work()
    torch.cuda.synchronize()
    each = (time.perf_counter() - start) / 500
    print(
        f"{n:5}² {dtype}: copy {floor:6.1f} µs, three stages {filtered:6.1f} µs ({filtered / floor:.2f} ×),"
        f" without thresholds {apart:6.1f}; {1 / each:,.0f} frames/s"
    )
    return {"n": n, "dtype": dtype, "copy": floor, "whole": filtered, "plain": apart, "fps": 1 / each}


def functions(n: int) -> list[Row]:
    """Measure public functions on one image: on the GPU, on the CPU of the same machine, and a copy."""
    x = gpu.noise((n, n)).abs() + 1
    on_host = x.cpu().numpy()
    works = {
        "denoise": undula.denoise,
        "denoise, one shift": lambda y: undula.denoise(y, invariant=False),
        "despeckle": undula.despeckle,
        "denoise_wavelet": undula.denoise_wavelet,
        "sharpen": undula.sharpen,
        "enhance": undula.enhance,
    }
    floor, rows = gpu.copied(x) / 1e3, []
    for name, work in works.items():
        for _ in range(3):
            work(x)
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(50):
            work(x)
        torch.cuda.synchronize()
        each = 1e3 * (time.perf_counter() - start) / 50
        work(on_host)
        start = time.perf_counter()
        for _ in range(3):
            work(on_host)
        host = 1e3 * (time.perf_counter() - start) / 3
        print(f"{n:5}² {name:20} {each:8.3f} ms, {each / floor:6.1f} copies; CPU {host:8.2f} ms", flush=True)
        rows.append({"n": n, "what": name, "ms": each, "copy": floor, "cpu": host})
    return rows


def qualities(rows: int, columns: int, channels: int) -> list[Row]:
    """Measure the qualities of denoising on a photograph that is repeated and mirrored, with known noise."""
    photo = pywt.data.camera().astype(np.float32)
    tile = np.block([[photo, photo[:, ::-1]], [photo[::-1], photo[::-1, ::-1]]])
    clean = np.tile(tile, (-(-rows // 1024), -(-columns // 1024)))[:rows, :columns]
    if channels > 1:
        clean = np.stack([clean, 0.6 * clean + 50, 255 - 0.5 * clean], axis=-1)
    on_host = clean + 25 * np.random.default_rng(0).standard_normal(clean.shape, np.float32)
    x = torch.from_numpy(on_host).cuda()
    measured = []
    for quality in QUALITIES:

        def work(image: Any, quality: str = quality) -> Any:
            return undula.denoise(image, 25.0, quality=quality)

        result = work(x).cpu().numpy()
        each = gpu.median(lambda work=work: work(x), 11) / 1e3
        expected = work(on_host)
        start = time.perf_counter()
        work(on_host)
        host = 1e3 * (time.perf_counter() - start)
        row = {"shape": [rows, columns], "channels": channels, "quality": quality, "ms": each, "cpu": host}
        row |= {"psnr": psnr(clean, result, 255), "cpu psnr": psnr(clean, expected, 255)}
        print(
            f"{rows}×{columns}×{channels} {quality:8} {each:8.2f} ms, {row['psnr']:.3f} dB;"
            f" CPU {host:8.1f} ms, {row['cpu psnr']:.3f} dB",
            flush=True,
        )
        measured.append(row)
    return measured


def video() -> list[Row]:
    """Measure frames of 1080p from and to NumPy, and frames of a plan beside a plain loop."""
    rng = np.random.default_rng(0)
    colours = [rng.integers(0, 256, (1080, 1920, 3)).astype("uint8") for _ in range(4)]
    greys = [rng.standard_normal((1080, 1920)).astype("float32") for _ in range(4)]
    pipeline = Denoising().pipeline()
    plan = undula.Plan((1080, 1920), "bior4.4", level=3, dtype="float32", backend="cuda")
    rows = []
    for name, count, work in (
        ("denoise, RGB, frames", 120, lambda xs: pipeline.frames(xs, backend="cuda")),
        ("denoise, RGB, loop", 120, lambda xs: (pipeline(x, backend="cuda") for x in xs)),
        ("denoise, RGB, CPU frames", 24, pipeline.frames),
        ("Plan, frames", 200, plan.frames),
        ("Plan, loop", 200, lambda xs: (plan.forward(x) for x in xs)),
    ):
        arrays = greys if name.startswith("Plan") else colours
        deque(work(islice(cycle(arrays), 8)), 0)
        start = time.perf_counter()
        deque(work(islice(cycle(arrays), count)), 0)
        rate = count / (time.perf_counter() - start)
        print(f"1080p {name:26} {rate:8.1f} frames/s", flush=True)
        rows.append({"what": name, "fps": rate})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--save", type=Path, help="save the figures")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    results = {
        "machine": torch.cuda.get_device_name(),
        "date": date.today().isoformat(),
        "undula": undula.__version__,
        "frames": [
            *(frames(n) for n in (512, 1024, 2048, 4096, 8192)),
            *(frames(n, "float16") for n in (2048, 8192)),
        ],
        "functions": [*functions(512), *functions(2048), *functions(4096)],
        "qualities": [*qualities(512, 512, 1), *qualities(1080, 1920, 1), *qualities(2160, 3840, 3)],
        "video": video(),
    }
    if arguments.save:
        arguments.save.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
