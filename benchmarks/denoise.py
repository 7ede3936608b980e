"""Denoising compared with scikit-image: quality on ten photographs, time, and speckle.

    python benchmarks/denoise.py           run everything, about three minutes
    python benchmarks/denoise.py --save    save the figures to benchmarks/results/denoise.json

`denoise_wavelet` gives the same results in both packages. The default method of Undula is compared with the
best methods of scikit-image, cycle spinning and non-local means, with the parameters that its documentation
recommends. All methods get the standard deviation of the noise.
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
    """A greyscale photograph with values in [0, 1]."""
    x = getattr(skimage.data, name)()
    grey = x[..., :3] @ [0.2125, 0.7154, 0.0721] if x.ndim == 3 else x
    return (grey / 255).astype(np.float32)


def methods(sigma: float) -> dict[str, Callable[[Image], Image]]:
    """The methods, by name."""
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
    """PSNR and SSIM for every photograph, noise level and method."""
    rows = []
    for name in NAMES:
        clean = photograph(name)
        for sigma in SIGMAS:
            noise = np.random.default_rng(0).standard_normal(clean.shape).astype(np.float32)
            x = clean + np.float32(sigma) * noise
            row: Row = {"image": name, "sigma": sigma}
            for what, work in {"noisy": lambda x: x, **methods(sigma)}.items():
                denoised = work(x)
                row[what] = {
                    "psnr": float(peak_signal_noise_ratio(clean, denoised, data_range=1)),
                    "ssim": float(structural_similarity(clean, denoised, data_range=1)),
                }
            rows.append(row)
            print(name, sigma, *(f"{k} {v['psnr']:.2f}" for k, v in row.items() if isinstance(v, dict)))
    return rows


def best(work: Callable[[], Any], runs: int) -> float:
    """Milliseconds, the best of several runs."""
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
    """Frames per second of decomposition, shrinkage and reconstruction, as measured by Nielsen (2007)."""
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
        clip = [x] * max(20, (1 << 24) // (n * n))
        list(pipeline.frames(clip[:4]))
        start = time.perf_counter()
        for _ in pipeline.frames(clip):
            pass
        fps = len(clip) / (time.perf_counter() - start)
        rows.append({"n": n, "plan": 1e3 / frame_ms, "pipeline": fps})
        print(f"{n}²: a plan {1e3 / frame_ms:.0f} frames/s, Pipeline.frames {fps:.0f} frames/s")
    return rows


def speckle() -> list[Row]:
    """Simulated speckle of four looks: equivalent looks in flat regions, and correlation of edges."""
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
            kept_edges = scipy.ndimage.laplace(scipy.ndimage.gaussian_filter(filtered, 1))
            row[what] = {
                "looks": float(np.mean(filtered[region]) ** 2 / np.var(filtered[region] - clean[region])),
                "edges": float(np.corrcoef(kept_edges.ravel(), edges.ravel())[0, 1]),
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
        "--save", type=Path, nargs="?", const=ROOT / "results" / "denoise.json", help="save the figures"
    )
    arguments = parser.parse_args()
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
    if arguments.save:
        arguments.save.parent.mkdir(exist_ok=True)
        arguments.save.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
