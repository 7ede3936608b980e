"""The program behind ``make demo``: shows transforms, speed and filters on one screen and in six images."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pywt
import skimage.data
from numpy.typing import NDArray

import pictures
import undula
from undula.cli import main as main_command

Array = NDArray[Any]
WAVELET, LEVEL = "cdf97", 3
GALLERY = "haar db2 db8 sym4 coif2 rbio4.4 bior3.5 dmey cdf53 cdf97 dd137 burt57".split()


def flat(coeffs: Sequence[Any]) -> list[Array]:
    return [coeffs[0], *(band for level in coeffs[1:] for band in level)]


def psnr(a: Array, b: Array) -> float:
    return float(10 * np.log10(1 / np.mean((a - b) ** 2)))


def entropy(values: Array) -> float:
    """Return the bits per value of an ideal coder that knows the frequency of each value."""
    counts = np.unique(values, return_counts=True)[1]
    frequencies = counts / counts.sum()
    return float(-(frequencies * np.log2(frequencies)).sum())


def largest(coeffs: Sequence[Any], fraction: float) -> list[Any]:
    """Set all coefficients to zero except for the largest ``fraction``."""
    magnitudes = np.concatenate([np.abs(band).ravel() for band in flat(coeffs)])
    threshold = np.quantile(magnitudes, 1 - fraction)
    shrink = lambda band: np.where(np.abs(band) >= threshold, band, 0)  # noqa: E731
    return [shrink(coeffs[0]), *(tuple(shrink(band) for band in level) for level in coeffs[1:])]


def best(work: Callable[[], object], runs: int = 5) -> float:
    """Return the shortest run time of several, after one warm-up run."""
    work()
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def heading(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    photo = skimage.data.astronaut()
    image = photo / 255
    axes = (0, 1)

    print(f"Undula {undula.__version__}: wavelet transforms and denoising")
    shape = f"{photo.shape[1]}×{photo.shape[0]}"
    heading(f"1  {shape} colour photograph, {WAVELET}, {LEVEL} levels: energy by band")
    begin = time.perf_counter()
    coeffs = undula.lwt2(image, WAVELET, LEVEL, axes=axes)
    restored = undula.ilwt2(coeffs, WAVELET, axes=axes)
    compiled = time.perf_counter() - begin
    seconds = best(lambda: undula.ilwt2(undula.lwt2(image, WAVELET, LEVEL, axes=axes), WAVELET, axes=axes))
    total = sum(float(np.sum(band**2)) for band in flat(coeffs))
    print("   level   band              size     rms   near zero    energy")
    names = ("horizontal", "vertical", "diagonal")
    rows = [(LEVEL, "approximation", coeffs[0])]
    rows += [
        (LEVEL - k, name, band)
        for k, level in enumerate(coeffs[1:])
        for name, band in zip(names, level, strict=True)
    ]
    for level, name, band in rows:
        near, energy = np.mean(np.abs(band) < 1 / 255), np.sum(band**2) / total
        size = f"{band.shape[1]}×{band.shape[0]}"
        rms = np.sqrt(np.mean(band**2))
        print(f"   {level:>5}   {name:<13}{size:>9}{rms:>8.3f}{near:>11.0%}{energy:>10.3%}")
    error = np.abs(restored - image).max()
    first = f"the first run took {compiled:.1f} s to compile or load kernels"
    print(f"   round trip: largest error {error:.1e}, {seconds * 1e3:.0f} ms ({first})")
    lines = [f"{WAVELET}, {LEVEL} levels", "as many coefficients as pixels; details centred on mid-grey"]
    pyramid = pictures.caption(pictures.pyramid(coeffs), lines)
    original = pictures.caption(image, ["original", f"{shape}, 24 bit"])
    pictures.side_by_side([original, pyramid]).save(folder / "pyramid.png")

    heading("2  A few coefficients are enough")
    panels = [pictures.caption(image[40:300, 120:380], ["original"])]
    line = []
    for fraction in (0.10, 0.04, 0.015):
        approximation = undula.ilwt2(largest(coeffs, fraction), WAVELET, axes=axes)
        quality = psnr(approximation, image)
        line.append(f"{fraction:.1%} kept: {quality:.1f} dB")
        panels.append(
            pictures.caption(approximation[40:300, 120:380], [f"{fraction:.1%} kept, {quality:.1f} dB"])
        )
    print("   " + "     ".join(line))
    pictures.side_by_side(panels).save(folder / "kept.png")

    heading("3  Lossless integers: the reversible 5/3 transform of JPEG 2000")
    integers = undula.lwt2(photo, "cdf53", 5, axes=axes)
    same = np.array_equal(undula.ilwt2(integers, "cdf53", axes=axes), photo)
    bits = sum(entropy(band) * band.size for band in flat(integers)) / photo.size
    print(f"   exact reconstruction: {same}     entropy {entropy(photo):.2f} → {bits:.2f} bits per sample")

    heading("4  Ten schemes for CDF 5/3, proved equal by exact multiplication of their matrices")
    matrix = undula.Wavelet("cdf53").polyphase
    product = matrix.tensor(matrix)
    print("   scheme        barriers  operations  cells  reads  writes   product of all matrices")
    for name in undula.SCHEMES:
        s = undula.scheme("cdf53", name)
        verdict = "= polyphase matrix" if s.matrix() == product else "DIFFERS"
        counts = f"{s.barriers:>7}{s.operations:>12}{s.cells.single:>7}{s.reads:>7}{s.writes:>8}"
        print(f"   {name:<14}{counts}   {verdict}")
    pictures.scheme_chart(folder / "schemes.png")

    pictures.wavelet_gallery(GALLERY, folder / "wavelets.png")

    heading("5  The same results as PyWavelets, in less time")
    large = np.random.default_rng(0).normal(size=(4096, 4096)).astype(np.float32)
    target = np.empty_like(large)
    floor = best(lambda: np.copyto(target, large), runs=9)
    ours = best(lambda: undula.wavedec2(large, "bior4.4", level=3), runs=9)
    theirs = best(lambda: pywt.wavedec2(large, "bior4.4", level=3), runs=1)
    bands = (flat(module.wavedec2(large, "bior4.4", level=3)) for module in (undula, pywt))
    difference = max(float(np.abs(a - b).max()) for a, b in zip(*bands, strict=True))
    times = f"{ours * 1e3:.1f} ms, PyWavelets {theirs * 1e3:.0f} ms: {theirs / ours:.0f} times as fast"
    print(f"   4096×4096 float32, bior4.4, 3 levels, {undula.get_num_threads()} threads: {times}")
    print(f"   np.copyto of the image: {floor * 1e3:.1f} ms; difference from PyWavelets: {difference:.0e}")

    command_line(folder, photo)
    images = [f"{name}.png" for name in ("noise", "ultrasound", "pyramid", "kept", "schemes", "wavelets")]
    print(f"\nImages in {folder}: {', '.join(images)}")


def command_line(folder: Path, photo: Array) -> None:
    """Filter files with the command ``undula``: a noisy photograph and an ultrasound clip in DICOM format."""
    from pydicom import examples

    heading("6  The command line: denoising a photograph, despeckling an ultrasound clip")
    noisy = np.clip(photo + np.random.default_rng(0).normal(0, 20, photo.shape), 0, 255).astype(np.uint8)
    source, target = folder / "noisy.png", folder / "clean.png"
    undula.io.write(source, noisy)
    seconds = command("denoise", source, target)
    clean = undula.io.read(target).pixels
    before, after = (undula.measures.psnr(photo, x) for x in (noisy, clean))
    summary = f"{before:.1f} → {after:.1f} dB in {seconds:.2f} s"
    print(f"   $ undula denoise noisy.png clean.png     {summary}")
    source, target = folder / "ultrasound.dcm", folder / "despeckled.dcm"
    source.write_bytes(Path(examples.get_path("ybr_color")).read_bytes())
    seconds = command("despeckle", source, target, "--kind", "log", "--strength", 0.5)
    clip, filtered = (undula.io.read(path).pixels for path in (source, target))
    summary = f"{len(clip)} frames in {seconds:.1f} s"
    print(f"   $ undula despeckle ultrasound.dcm {target.name} --kind log --strength 0.5     {summary}")
    crop = (slice(30, 290), slice(130, 430))
    panels = [(noisy[crop], f"noisy, {before:.1f} dB"), (clean[crop], f"undula denoise, {after:.1f} dB")]
    pictures.labelled(panels, 1.5).save(folder / "noise.png")
    sector = (slice(20, 220), slice(60, 260))  # A crop, so that the speckle is visible.
    panels = [(clip[0][sector], "ultrasound"), (filtered[0][sector], "undula despeckle")]
    pictures.labelled(panels, 2.4).save(folder / "ultrasound.png")


def command(*words: object) -> float:
    """Return the run time of a command in seconds, after one warm-up run."""
    arguments = [*map(str, words), "--quiet", "--overwrite"]
    main_command(arguments)
    begin = time.perf_counter()
    assert main_command(arguments) == 0
    return time.perf_counter() - begin


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("demo"))
