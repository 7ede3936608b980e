"""Noise of cameras: JPEG files as a camera would have written them, denoised by Undula and scikit-image.

    python benchmarks/camera.py           run everything, about three minutes
    python benchmarks/camera.py --save    save the figures to benchmarks/results/camera.json

A photograph is taken back to the sensor, and developed again with noise::

    sRGB → linear light → white balance undone → Bayer pattern RGGB → photons and read noise → 12 bits
         → white balance → demosaicing → sRGB, 8 bits → JPEG, quality 90, chroma 4:2:0

Photons have Poisson noise, and read noise is Gaussian. Sensitivities (ISO) differ in the number of photons
that make a sample white. Colours are completed in two ways: ``bilinear`` takes the mean of the nearest
neighbours, and ``gradient`` corrects it by the gradient of the colour that is known (Malvar, He and Cutler,
2004), which leaves sharper images with more noise. Quality is measured against the photograph developed in
the same way, without noise and without JPEG.

No method knows the noise. Undula's `denoise` gets the image and nothing else. Non-local means get the noise
from `skimage.restoration.estimate_sigma`, once with the factor of `h` that the documentation of scikit-image
recommends, 0.8, and once with the one of `FACTORS` that is best in the mean over all images of this
benchmark, which users cannot know. The noise of these images is larger than estimated, because it is not
white. Times include the estimate.
"""

from __future__ import annotations

import argparse
import io
import json
import platform
import time
import warnings
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import PIL.Image
import scipy.ndimage
import skimage.data
import skimage.restoration
from numpy.typing import NDArray
from skimage.metrics import peak_signal_noise_ratio, structural_similarity

import undula

ROOT = Path(__file__).parent
NAMES = ("astronaut", "chelsea", "coffee", "rocket", "stereo_motorcycle", "immunohistochemistry")
PHOTONS = {1600: 2000, 6400: 500, 25600: 125}  # that make a sample white, by ISO
READ_NOISE = 3.0  # photons
SENSOR_BITS = 12
WHITE_BALANCE = (2.0, 1.0, 1.6)  # Gains of red, green and blue.
JPEG_QUALITY = 90
SIDE = 512  # Larger photographs are cropped.
RECOMMENDED = 0.8
FACTORS = (RECOMMENDED, 1.2, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0)
Image = NDArray[Any]
Row = dict[str, Any]


def photograph(name: str) -> Image:
    """The centre of a colour photograph."""
    x = getattr(skimage.data, name)()
    x = x[0] if isinstance(x, tuple) else x
    top, left = (max(0, (n - SIDE) // 2) for n in x.shape[:2])
    return np.ascontiguousarray(x[top : top + SIDE, left : left + SIDE, :3])


def to_linear(x: Image) -> Image:
    """Linear light of sRGB, both from 0 to 1."""
    return np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)


def to_srgb(x: Image) -> Image:
    """Return sRGB of linear light, both from 0 to 1."""
    return np.where(x <= 0.0031308, 12.92 * x, 1.055 * np.maximum(x, 0.0031308) ** (1 / 2.4) - 0.055)


def bayer(shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Where the sensor has red, green and blue samples."""
    masks = np.zeros((*shape, 3), bool)
    masks[0::2, 0::2, 0] = masks[0::2, 1::2, 1] = masks[1::2, 0::2, 1] = masks[1::2, 1::2, 2] = True
    return masks


def convolved(raw: Image, taps: Any, divisor: float) -> Image:
    """Weighted sums of the samples around each one."""
    return np.asarray(scipy.ndimage.convolve(raw, np.array(taps) / divisor, mode="mirror"))


def bilinear(raw: Image) -> Image:
    """Complete colours by the mean of their nearest neighbours."""
    masks = bayer(raw.shape)
    cross, square = [[0, 1, 0], [1, 4, 1], [0, 1, 0]], [[1, 2, 1], [2, 4, 2], [1, 2, 1]]
    planes = [
        convolved(np.where(masks[..., k], raw, 0), taps, 4) for k, taps in enumerate((square, cross, square))
    ]
    return np.stack(planes, axis=-1)


def gradient(raw: Image) -> Image:
    """Complete colours by their neighbours, corrected by the gradient of the colour that is known."""
    red, green, blue = np.moveaxis(bayer(raw.shape), -1, 0)
    along = np.array(
        [[0, 0, 0.5, 0, 0], [0, -1, 0, -1, 0], [-1, 4, 5, 4, -1], [0, -1, 0, -1, 0], [0, 0, 0.5, 0, 0]]
    )
    cross = [[0, 0, -1, 0, 0], [0, 0, 2, 0, 0], [-1, 2, 4, 2, -1], [0, 0, 2, 0, 0], [0, 0, -1, 0, 0]]
    oblique = [
        *([0, 0, -1.5, 0, 0], [0, 2, 0, 2, 0], [-1.5, 0, 6, 0, -1.5]),
        *([0, 2, 0, 2, 0], [0, 0, -1.5, 0, 0]),
    ]
    in_row, in_column, opposite = (convolved(raw, taps, 8) for taps in (along, along.T, oblique))
    of_red_rows = np.zeros(raw.shape, bool)
    of_red_rows[0::2] = True
    first, second = np.where(of_red_rows, (in_row, in_column), (in_column, in_row))
    planes = [
        np.where(red, raw, np.where(green, first, opposite)),
        np.where(green, raw, convolved(raw, cross, 8)),
        np.where(blue, raw, np.where(green, second, opposite)),
    ]
    return np.stack(planes, axis=-1)


DEMOSAICING: dict[str, Callable[[Image], Image]] = {"bilinear": bilinear, "gradient": gradient}


def develop(name: str, photons: int | None, demosaicing: str = "bilinear", seed: int = 0) -> Image:
    """The photograph as developed by a camera, with the noise of so many photons, or without noise."""
    light = to_linear(photograph(name) / 255) / WHITE_BALANCE
    raw = np.where(bayer(light.shape[:2]), light, 0).sum(axis=-1)
    if photons is not None:
        rng = np.random.default_rng(seed)
        raw = (rng.poisson(raw * photons) + READ_NOISE * rng.standard_normal(raw.shape)) / photons
        levels = 2**SENSOR_BITS - 1
        raw = np.minimum(np.round(raw * levels) / levels, 1)  # A black level keeps negative samples.
    rgb = np.clip(DEMOSAICING[demosaicing](raw) * WHITE_BALANCE, 0, 1)
    return np.round(255 * to_srgb(rgb)).astype(np.uint8)


def as_jpeg(image: Image) -> Image:
    """The image written as JPEG and read again."""
    file = io.BytesIO()
    PIL.Image.fromarray(image).save(file, "JPEG", quality=JPEG_QUALITY, subsampling="4:2:0")
    return np.asarray(PIL.Image.open(file))


def nl_means(x: Image, factor: float) -> Image:
    """Non-local means of scikit-image, with estimated noise; fast mode, as recommended."""
    samples = (x / 255).astype(np.float32)
    sigma = float(np.mean(skimage.restoration.estimate_sigma(samples, channel_axis=-1)))
    filtered = skimage.restoration.denoise_nl_means(
        samples, patch_size=5, patch_distance=6, h=factor * sigma, sigma=sigma, channel_axis=-1
    )
    return np.asarray(255 * filtered)


METHODS: dict[str, Callable[[Image], Image]] = {
    "noisy": lambda x: x,
    **{f"nl_means {factor:g}": partial(nl_means, factor=factor) for factor in FACTORS},
    "undula denoise": undula.denoise,
    "undula, white noise": lambda x: undula.denoise(x, noise="gaussian"),
    "undula, all shifts": lambda x: undula.denoise(x, invariant=True),
}


def quality() -> list[Row]:
    """PSNR and SSIM for every photograph, way of demosaicing, sensitivity and method."""
    rows = []
    for demosaicing in DEMOSAICING:
        for name in NAMES:
            clean = develop(name, None, demosaicing)
            for iso, photons in PHOTONS.items():
                x = as_jpeg(develop(name, photons, demosaicing))
                row: Row = {"demosaicing": demosaicing, "image": name, "iso": iso}
                for method, work in METHODS.items():
                    result = np.clip(work(x), 0, 255)
                    row[method] = {
                        "psnr": float(peak_signal_noise_ratio(clean, result, data_range=255)),
                        "ssim": float(structural_similarity(clean, result, data_range=255, channel_axis=-1)),
                    }
                rows.append(row)
                print(demosaicing, name, iso, *(f"{m} {row[m]['psnr']:.2f}" for m in METHODS))
    return rows


def times(runs: int = 7) -> Row:
    """Milliseconds of an image of 512², methods in turns: of the clock, and of all processors."""
    x = as_jpeg(develop("astronaut", PHOTONS[6400]))
    measured: dict[str, list[tuple[float, float]]] = {}
    methods = {name: work for name, work in METHODS.items() if "nl_means" not in name and name != "noisy"}
    methods["nl_means"] = METHODS[f"nl_means {RECOMMENDED:g}"]
    for run in range(runs + 1):
        for name, work in methods.items():
            start = time.perf_counter(), time.process_time()
            work(x)
            seconds = time.perf_counter() - start[0], time.process_time() - start[1]
            if run:  # Programs are compiled in the first one.
                measured.setdefault(name, []).append(seconds)
    return {
        name: {"clock": 1e3 * min(each[0] for each in listed), "processors": 1e3 * min(p for _, p in listed)}
        for name, listed in measured.items()
    }


def main() -> None:
    """Run all comparisons, print them, and save the figures if asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--save", action="store_true", help="save the figures to benchmarks/results")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    results: Row = {
        "machine": f"{platform.machine()}, {undula.get_num_threads()} threads",
        "date": date.today().isoformat(),
        "undula": undula.__version__,
        "skimage": skimage.__version__,
        "pillow": PIL.__version__,
        "times": times(),
        "quality": quality(),
    }
    means = {name: float(np.mean([row[name]["psnr"] for row in results["quality"]])) for name in METHODS}
    results["best_factor"] = max(FACTORS, key=lambda factor: means[f"nl_means {factor:g}"])
    print("mean PSNR:", *(f"{name} {value:.2f}" for name, value in means.items()))
    print("milliseconds:", *(f"{name} {value['clock']:.1f}" for name, value in results["times"].items()))
    if arguments.save:
        path = ROOT / "results" / "camera.json"
        path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
