"""Denoising beside scikit-image: quality on ten photographs, time, speckle.

    python benchmarks/denoise.py           everything, about three minutes
    python benchmarks/denoise.py --save    keep the figures in benchmarks/results/denoise.json

The same method gives the same result, and is there for those who have it; the usual one of Undula is compared
with the best of scikit-image, cycle spinning and non-local means, each as its documentation advises. All get
the standard deviation of the noise.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import scipy.ndimage
import skimage.data
import skimage.restoration
from numpy.typing import NDArray
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

import undula
from undula.filters import Pipeline, Shrink

ROOT = Path(__file__).parent
NAMES = ("camera", "astronaut", "coins", "moon", "page", "chelsea", "coffee", "brick", "grass", "gravel")
SIGMAS = (0.05, 0.1, 0.2)
Image = NDArray[np.float32]
Row = dict[str, Any]


def photograph(name: str) -> Image:
    """A photograph in grey, from 0 to 1."""
    x = getattr(skimage.data, name)()
    grey = x[..., :3] @ [0.2125, 0.7154, 0.0721] if x.ndim == 3 else x
    return (grey / 255).astype(np.float32)


def methods(sigma: float) -> dict[str, Callable[[Image], Image]]:
    """What is compared."""
    wavelet = skimage.restoration.denoise_wavelet
    return {
        "skimage Bayes": lambda x: wavelet(x, sigma),
        "undula Bayes": lambda x: undula.denoise_wavelet(x, sigma),
        "skimage Visu": lambda x: wavelet(x, sigma, method="VisuShrink"),
        "undula Visu": lambda x: undula.denoise_wavelet(x, sigma, method="VisuShrink"),
        "skimage cycle_spin(3)": lambda x: skimage.restoration.cycle_spin(
            x, wavelet, 3, func_kw={"sigma": sigma}
        ),
        "skimage nl_means": lambda x: skimage.restoration.denoise_nl_means(
            x, patch_size=5, patch_distance=6, h=0.8 * sigma, sigma=sigma, fast_mode=True
        ),
        "undula denoise": lambda x: undula.denoise(x, sigma),
        "undula, all shifts": lambda x: undula.denoise(x, sigma, invariant=True),
    }


def quality() -> list[Row]:
    """PSNR and SSIM of every photograph, noise and method."""
    rows = []
    for name in NAMES:
        clean = photograph(name)
        for sigma in SIGMAS:
            noise = np.random.default_rng(0).standard_normal(clean.shape).astype(np.float32)
            x = clean + np.float32(sigma) * noise
            row: Row = {"image": name, "sigma": sigma}
            for what, work in {"noisy": lambda x: x, **methods(sigma)}.items():
                made = work(x)
                row[what] = {
                    "psnr": float(peak_signal_noise_ratio(clean, made, data_range=1)),
                    "ssim": float(structural_similarity(clean, made, data_range=1)),
                }
            rows.append(row)
            print(name, sigma, *(f"{k} {v['psnr']:.2f}" for k, v in row.items() if isinstance(v, dict)))
    return rows


def best(work: Callable[[], Any], runs: int) -> float:
    """Milliseconds, the best of some runs."""
    work()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def times() -> list[Row]:
    """Milliseconds of each method, at two sizes."""
    rows = []
    camera = photograph("camera")
    for n in (512, 2048):
        x = np.tile(camera, (n // 512, n // 512))
        x = x + 0.1 * np.random.default_rng(0).standard_normal(x.shape).astype(np.float32)
        row: Row = {"n": n}
        for what, work in methods(0.1).items():
            few = n > 512 and "skimage" in what and "Bayes" not in what and "Visu" not in what
            row[what] = best(lambda work=work, x=x: work(x), 1 if few else 3 if "skimage" in what else 15)
        rows.append(row)
        print(n, *(f"{k} {v:.1f}" for k, v in row.items() if k != "n"))
    return rows


def frames() -> list[Row]:
    """Three levels of analysis, shrinkage and synthesis, as Nielsen (2007) timed them: frames in a second."""
    rows = []
    for n in (256, 512, 1024, 2048):
        x = (100 + 30 * np.random.default_rng(0).standard_normal((n, n))).astype(np.float32)
        plan = undula.Plan((n, n), "bior4.4", level=3, dtype="float32")
        coeffs, y, limits = plan.forward(x), np.empty_like(x), np.full((3, 2, 3), 20.0)

        def work(plan: Any = plan, x: Any = x, c: Any = coeffs, y: Any = y, limits: Any = limits) -> None:
            plan.forward(x, out=c)
            plan.inverse(c, out=y, rule="soft", limits=limits)

        frame_ms = best(work, 200)
        pipeline = Pipeline("bior4.4", 3, [Shrink("given", threshold=20.0)])
        many = [x] * max(20, (1 << 24) // (n * n))
        list(pipeline.frames(many[:4]))
        start = time.perf_counter()
        for _ in pipeline.frames(many):
            pass
        fps = len(many) / (time.perf_counter() - start)
        rows.append({"n": n, "plan": 1e3 / frame_ms, "pipeline": fps})
        print(f"{n}²: a plan {1e3 / frame_ms:.0f} frames/s, Pipeline.frames {fps:.0f} frames/s")
    return rows


def speckle() -> list[Row]:
    """Simulated speckle of four looks: equivalent looks of even regions, and what is left of edges."""
    rows = []
    regions = {"camera": (slice(20, 90), slice(400, 480)), "moon": (slice(380, 480), slice(380, 480))}
    for name, region in regions.items():
        clean = 20 + 200 * photograph(name).astype(np.float64)
        x = clean * np.random.default_rng(0).gamma(4, 1 / 4, clean.shape)
        edges = scipy.ndimage.laplace(scipy.ndimage.gaussian_filter(clean, 1))
        row: Row = {"image": name}
        for what, filtered in (
            ("speckled", x),
            ("undula denoise", undula.denoise(x)),
            ("undula despeckle", undula.despeckle(x)),
            ("undula despeckle, 4 looks", undula.despeckle(x, looks=4)),
        ):
            own = scipy.ndimage.laplace(scipy.ndimage.gaussian_filter(filtered, 1))
            row[what] = {
                "looks": float(np.mean(filtered[region]) ** 2 / np.var(filtered[region] - clean[region])),
                "edges": float(np.corrcoef(own.ravel(), edges.ravel())[0, 1]),
                "psnr": float(peak_signal_noise_ratio(clean, filtered, data_range=255)),
                "mean": float(filtered.mean() / x.mean()),
            }
        rows.append(row)
        print(name, *(f"{k}: {v}" for k, v in row.items() if isinstance(v, dict)), sep="\n   ")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--save", type=Path, nargs="?", const=ROOT / "results" / "denoise.json", help="keep the figures"
    )
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    results = {
        "machine": f"{platform.machine()}, {undula.get_num_threads()} threads",
        "date": date.today().isoformat(),
        "undula": undula.__version__,
        "skimage": skimage.__version__,
        "times": times(),
        "frames": frames(),
        "speckle": speckle(),
        "quality": quality(),
    }
    means = {
        what: np.mean([row[what]["psnr"] for row in results["quality"]]) for what in ("noisy", *methods(0.1))
    }
    print("mean PSNR:", *(f"{what} {value:.2f}" for what, value in means.items()))
    if given.save:
        given.save.parent.mkdir(exist_ok=True)
        given.save.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
