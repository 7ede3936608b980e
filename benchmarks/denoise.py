"""Denoising compared with scikit-image: quality on ten photographs, time, and speckle.

    python benchmarks/denoise.py           run everything, about three minutes
    python benchmarks/denoise.py --save    save the figures to benchmarks/results/denoise.json
    python benchmarks/denoise.py --directional    compare the method directional with others of Undula
    python benchmarks/denoise.py --peers   compare qualities with scikit-image, OpenCV and bm3d

The last one writes benchmarks/results/denoise_peers.json after each image, and goes on where it stopped.
OpenCV and bm3d are left out where they are not installed.

`denoise_wavelet` gives the same results in both packages. The default method of Undula is compared with the
best methods of scikit-image, cycle spinning and non-local means, with the parameters that its documentation
recommends. All methods get the standard deviation of the noise.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import time
import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pywt
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


def directional() -> list[Row]:
    """Mean PSNR over the photographs, and processor time of 512², of wavelets and of a dual tree."""
    options: dict[str, dict[str, Any]] = {"fast": {}, "all shifts": {"invariant": True}}
    options["directional"] = {"method": "directional"}
    rows = []
    for sigma in SIGMAS:
        row: Row = {"sigma": sigma}
        for method, chosen in options.items():
            results = []
            for name in NAMES:
                clean = photograph(name)
                x = clean + np.float32(sigma) * np.random.default_rng(0).standard_normal(clean.shape).astype(
                    np.float32
                )
                results.append(
                    float(peak_signal_noise_ratio(clean, undula.denoise(x, sigma, **chosen), data_range=1))
                )
            row[method] = {"psnr": results}
            times = []
            for _ in range(9):
                start = time.process_time()
                undula.denoise(photograph("camera"), sigma, **chosen)
                times.append(time.process_time() - start)
            row[method]["ms"] = 1e3 * min(times)
            print(sigma, method, f"{np.mean(results):.2f} dB, {row[method]['ms']:.1f} ms")
        rows.append(row)
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


# Parameters of the filters were chosen with a view to the first and second sets, not to the third one.
SETS = {
    "tuned": ("camera", "astronaut", "coins", "moon", "chelsea", "brick", "gravel", "rocket"),
    "seen": ("coffee", "page", "clock", "text", "grass", "cell", "hubble_deep_field", "retina"),
    "new": (
        *("aero", "ascent", "immunohistochemistry", "microaneurysms", "stereo_motorcycle"),
        *("shepp_logan_phantom", "colorwheel"),
    ),
}
COLORED = ("astronaut", "chelsea", "coffee", "rocket", "immunohistochemistry", "colorwheel")
PEER_SIGMAS = (25, 50, 15, 10)  # of 255
MAX_SIDE = 512


def peer_image(name: str, color: bool) -> Image:
    """Return the centre of an image, with values in [0, 1]."""
    x = getattr(pywt.data if name in ("aero", "ascent") else skimage.data, name)()
    x = x[0] if isinstance(x, tuple) else x
    x = x / 255 if x.dtype == np.uint8 else x.astype(float)
    if x.ndim == 3:
        x = x[..., :3] if color else x[..., :3] @ [0.2125, 0.7154, 0.0721]
    top, left = (max(0, (n - MAX_SIDE) // 2) for n in x.shape[:2])
    return np.ascontiguousarray(x[top : top + MAX_SIDE, left : left + MAX_SIDE]).astype(np.float32)


def peer_methods(sigma: float, color: bool) -> dict[str, Callable[[Image], Image]]:
    """The methods whose quality is compared, by name; bm3d, which takes longest, is the last one."""
    channel_axis = -1 if color else None
    known: dict[str, Callable[[Image], Image]] = {
        "noisy": lambda x: x,
        "skimage nl_means": lambda x: skimage.restoration.denoise_nl_means(
            x, patch_size=5, patch_distance=6, h=0.8 * sigma, sigma=sigma, channel_axis=channel_axis
        ),
        "undula fast": lambda x: undula.denoise(x, sigma),
        "undula, all shifts": lambda x: undula.denoise(x, sigma, invariant=True),
        "undula balanced": lambda x: undula.denoise(x, sigma, quality="balanced"),
        "undula best": lambda x: undula.denoise(x, sigma, quality="best"),
        "undula collaborative": lambda x: undula.denoise(x, sigma, method="collaborative", profile="best"),
    }
    if importlib.util.find_spec("cv2"):
        import cv2

        def opencv(x: Image) -> Image:
            integers = np.clip(255 * x + 0.5, 0, 255).astype(np.uint8)
            h = 255 * sigma
            if color:
                result = cv2.fastNlMeansDenoisingColored(integers, None, h, h, 7, 21)
            else:
                result = cv2.fastNlMeansDenoising(integers, None, h, 7, 21)
            return np.asarray(result / np.float32(255))

        known["OpenCV nl_means"] = opencv
    if importlib.util.find_spec("bm3d"):
        import bm3d

        work = bm3d.bm3d_rgb if color else bm3d.bm3d
        known["bm3d"] = lambda x: np.asarray(work(x.astype(np.float64), sigma), np.float32)
    return known


def peer_row(clean: Image, sigma: float, known: dict[str, Any], slow: bool) -> Row:
    """Add what is missing to the figures of an image: PSNR, SSIM and seconds of each method."""
    color = clean.ndim == 3
    noise = np.random.default_rng(1).standard_normal(clean.shape).astype(np.float32)
    x = clean + np.float32(sigma / 255) * noise
    for name, work in peer_methods(sigma / 255, color).items():
        if name in known or (name == "bm3d" and not slow):
            continue
        start = time.perf_counter()
        denoised = np.clip(work(x), 0, 1)
        known[name] = {
            "seconds": time.perf_counter() - start,
            "psnr": float(peak_signal_noise_ratio(clean, denoised, data_range=1)),
            "ssim": float(
                structural_similarity(clean, denoised, data_range=1, channel_axis=-1 if color else None)
            ),
        }
    return known


def photons() -> list[Row]:
    """PSNR of images of counted photons: filtered as they are, and as what they are."""
    rows = []
    for name in (name for names in SETS.values() for name in names):
        clean = peer_image(name, False)
        for peak in (1, 5, 20):
            counts = np.random.default_rng(1).poisson(peak * clean).astype(np.float32)
            noise = undula.estimate_poisson(counts, 0.0)
            row: Row = {"image": name, "peak": peak, "gain": noise.gain}
            kinds: dict[str, Any] = {"gaussian": {}, "poisson": {"noise": "poisson"}}
            for kind, options in kinds.items():
                for level in ("fast", "best"):
                    denoised = undula.denoise(counts, quality=level, **options) / peak
                    row[f"{kind} {level}"] = float(
                        peak_signal_noise_ratio(clean, np.clip(denoised, 0, 1), data_range=1)
                    )
            if importlib.util.find_spec("bm3d"):
                import bm3d

                filtered = bm3d.bm3d(noise.stabilized(counts).astype(np.float64), 1.0)
                denoised = noise.restored(filtered) / peak
                row["Anscombe + bm3d"] = float(
                    peak_signal_noise_ratio(clean, np.clip(denoised, 0, 1), data_range=1)
                )
            rows.append(row)
            print(*row.values(), flush=True)
    return rows


def peer_times(bm3d_runs: int) -> Row:
    """Seconds for 512² and 1080p, methods in turns: of the clock, and of all processors."""
    result: Row = {}
    camera = peer_image("camera", False)
    for shape, runs in (((512, 512), 15), ((1080, 1920), 5)):
        x = np.tile(camera, (3, 4))[: shape[0], : shape[1]]
        x = x + 0.1 * np.random.default_rng(0).standard_normal(x.shape).astype(np.float32)
        times: dict[str, list[tuple[float, float]]] = {}
        for run in range(runs + 1):
            for name, work in peer_methods(0.1, False).items():
                few = name == "bm3d" and (run > bm3d_runs or shape[0] > 512)
                if name == "noisy" or few or ("nl_means" in name and run > 3):
                    continue
                start = time.perf_counter(), time.process_time()
                work(x)
                seconds = time.perf_counter() - start[0], time.process_time() - start[1]
                if run or name == "bm3d":
                    times.setdefault(name, []).append(seconds)
        result["×".join(map(str, shape))] = {
            name: dict(zip(("clock", "processors"), map(min, zip(*listed, strict=True)), strict=True))
            for name, listed in times.items()
        }
    return result


def compare_photons(path: Path) -> None:
    """Compare methods on images of counted photons, and write the figures."""
    results = json.loads(path.read_text(encoding="utf-8"))
    results["photons"] = {"date": date.today().isoformat(), "rows": photons()}
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def compare_peers(path: Path, slow: bool, measure_times: bool) -> None:
    """Compare methods on all images, and write the figures after each."""
    results: Row = (
        json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"grey": {}, "color": {}}
    )
    results |= {
        "machine": f"{platform.machine()}, {undula.get_num_threads()} threads",
        "date": date.today().isoformat(),
        "undula": undula.__version__,
        "skimage": skimage.__version__,
    }
    if measure_times:
        results["times"] = peer_times(2 if slow else 0)
    for sigma in PEER_SIGMAS:
        cases = [(name, False) for names in SETS.values() for name in names] + [
            (name, True) for name in COLORED
        ]
        for name, color in cases:
            rows = results["color" if color else "grey"]
            key = f"{name} {sigma}"
            rows[key] = peer_row(peer_image(name, color), sigma, rows.get(key, {}), slow)
            print(key, *(f"{k} {v['psnr']:.2f}" for k, v in rows[key].items()), flush=True)
            path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if "photons" not in results:
        compare_photons(path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--save", type=Path, nargs="?", const=ROOT / "results" / "denoise.json", help="save the figures"
    )
    parser.add_argument("--directional", action="store_true", help="only the method directional")
    parser.add_argument("--peers", action="store_true", help="compare qualities with other packages")
    parser.add_argument("--photons", action="store_true", help="only images of counted photons, with peers")
    parser.add_argument("--without-bm3d", action="store_true", help="leave out bm3d, which takes hours")
    parser.add_argument("--times", action="store_true", help="with --peers: measure times, too")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    peers = ROOT / "results" / "denoise_peers.json"
    if arguments.photons:
        compare_photons(peers)
        return
    if arguments.peers:
        compare_peers(peers, not arguments.without_bm3d, arguments.times)
        return
    path = arguments.save or ROOT / "results" / "denoise.json"
    if arguments.directional:
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        known["directional"] = directional()
        if arguments.save:
            path.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
        return
    results = {
        "machine": f"{platform.machine()}, {undula.get_num_threads()} threads",
        "date": date.today().isoformat(),
        "undula": undula.__version__,
        "skimage": skimage.__version__,
        "times": times(),
        "frames": frames(),
        "speckle": speckle(),
        "quality": quality(),
        "directional": directional(),
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
