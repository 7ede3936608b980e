"""Images for the demo and the documentation: pyramids, galleries and charts."""

from __future__ import annotations

import runpy
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from textwrap import wrap
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.font_manager import findfont
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

import undula
from undula.experiments.charts import INK, STYLE, themed

mpl.use("Agg")
import matplotlib.pyplot as plt

Array = NDArray[Any]
TITLE = "multiply-accumulates per quadruple of samples; dark: scalar terms computed separately; scales differ"
# These suit light and dark pages; pictures are transparent between their parts.
ACCENT, MUTED, GREY, CLEAR = "#1098ad", "#f76707", "#868e96", (128, 128, 128, 0)
FONT = findfont("DejaVu Sans")  # Included in matplotlib, and contains × and ψ.
PHONE_WIDTH = 358  # What the screen of a phone leaves for a picture of the site, in pixels.


def save(figure: Any, path: Path) -> None:
    """Write a chart: as SVG in the colours of its page, or else in black on white."""
    if path.suffix == ".svg":
        path.write_text(themed(figure), encoding="utf-8")
    else:
        figure.savefig(path, dpi=130, facecolor="white")
    plt.close(figure)


def pyramid(coeffs: Sequence[Any], gain: float = 1.0) -> Array:
    """Arrange the coefficients of :func:`lwt2` of an image (H, W, 3) in one image of the same size.

    The approximation is shown in its colours. Details are centred on mid-grey, and a square root amplifies
    small ones so that edges are visible at every level.
    """
    levels = len(coeffs) - 1
    picture = np.clip(coeffs[0] / 2**levels, 0, 1)
    for number, (ch, cv, cd) in enumerate(coeffs[1:]):
        scale = gain * 2.0 ** (levels - number - 1)
        ch, cv, cd = (_grey(band / scale) for band in (ch, cv, cd))
        picture = np.concatenate([np.concatenate([picture, cv], 1), np.concatenate([ch, cd], 1)], 0)
        row, column = picture.shape[0] - ch.shape[0], picture.shape[1] - cv.shape[1]
        picture[row - 1 : row + 1] = 1
        picture[:, column - 1 : column + 1] = 1
    return picture


def _grey(band: Array) -> Array:
    return np.clip(0.5 + 0.5 * np.sign(band) * np.sqrt(np.abs(band)), 0, 1)


def caption(picture: Array, lines: Sequence[str], scale: int = 1) -> Image.Image:
    """Convert an array with values from 0 to 1 to an image, with text below it."""
    image = Image.fromarray((np.clip(picture, 0, 1) * 255 + 0.5).astype(np.uint8))
    if scale > 1:
        image = image.resize((image.width * scale, image.height * scale), Image.Resampling.NEAREST)
    title, body = ImageFont.truetype(FONT, 17), ImageFont.truetype(FONT, 13)
    strip = 42 + 20 * (len(lines) - 1) if lines else 0
    sheet = Image.new("RGBA", (image.width, image.height + strip), CLEAR)
    sheet.paste(image, (0, 0))
    draw = ImageDraw.Draw(sheet)
    top = image.height + 8
    for number, line in enumerate(lines):
        draw.text((8, top), line, GREY, font=title if number == 0 else body)
        top += 26 if number == 0 else 20
    return sheet


def side_by_side(images: Sequence[Image.Image], gap: int = 12) -> Image.Image:
    """Place images in one row."""
    width = sum(image.width for image in images) + gap * (len(images) + 1)
    height = max(image.height for image in images) + 2 * gap
    sheet = Image.new("RGBA", (width, height), CLEAR)
    left = gap
    for image in images:
        sheet.paste(image, (left, gap))
        left += image.width + gap
    return sheet


@mpl.rc_context(STYLE)
def wavelet_gallery(names: Sequence[str], path: Path) -> None:
    """Plot the scaling functions and wavelets of several families, one panel each."""
    columns = 4
    rows = -(-len(names) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(2.15 * columns, 1.7 * rows), layout="constrained")
    for axis, name in zip(axes.flat, names, strict=True):
        *curves, x = undula.Wavelet(name).wavefun(9)
        phi, psi = curves[-2:]  # Those of the reconstruction, for biorthogonal wavelets.
        axis.axhline(0, color="#adb5bd", lw=0.8)
        axis.plot(x, phi, color=MUTED, lw=1.3)
        axis.plot(x, psi, color=ACCENT, lw=1.6)
        axis.set_title(name, fontsize=11, color=INK, loc="left")
        support = np.flatnonzero(np.maximum(np.abs(phi), np.abs(psi)) > 2e-3 * np.abs(psi).max())
        axis.set_xlim(x[support[0]], x[support[-1]])
        axis.set_yticks([])
        axis.tick_params(labelsize=9.5, color="#adb5bd", labelcolor=GREY)
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.spines["bottom"].set_color("#adb5bd")
    figure.suptitle("scaling function (orange) and wavelet (teal)", fontsize=10, color=GREY)
    save(figure, path)


@mpl.rc_context(STYLE)
def boundary_chart(path: Path, wavelet: str = "db4", length: int = 40) -> None:
    """Plot the details of a step and of a ramp under all modes and boundary methods."""
    methods = [undula.Decay(0.5), undula.Polynomial(2), undula.Taper(), undula.BoundaryFilters()]
    places = np.arange(length)
    signals = {"step": (places >= length // 2).astype(float) + 0.5, "ramp": 0.5 + places / length}
    figure, axes = plt.subplots(7, 4, figsize=(8.6, 10.4), sharey=True, layout="constrained")
    for axis in axes.flat[2 * (len(undula.MODES) + len(methods)) :]:
        axis.set_visible(False)
    cells = [(mode, name) for mode in (*undula.MODES, *methods) for name in signals]
    for axis, (mode, name) in zip(axes.flat, cells, strict=False):
        _, details = undula.dwt(signals[name], wavelet, mode)
        axis.axhline(0, color="#adb5bd", lw=0.8)
        axis.vlines(np.arange(details.size), 0, np.abs(details), color=ACCENT, lw=1.8)
        label = mode if isinstance(mode, str) else type(mode).__name__
        axis.set_title(f"{label}, {name}", fontsize=9.5, color=INK, loc="left")
        axis.set_xticks([])
        axis.tick_params(labelsize=9.5, color="#adb5bd", labelcolor=GREY)
        axis.spines[["top", "right"]].set_visible(False)
        axis.spines[["left", "bottom"]].set_color("#adb5bd")
    figure.suptitle(
        f"magnitudes of the details of {length} samples, one level of {wavelet}", fontsize=10, color=GREY
    )
    save(figure, path)


def direction_chart(path: Path, level: int = 4, size: int = 128) -> None:
    """Draw the wavelets of the six directions of images, and the real wavelets of the DWT."""
    shape, band = (size, size), size >> level
    figure, axes = plt.subplots(5, 3, figsize=(6, 10.7), layout="constrained")
    for axis in axes.flat:
        axis.set_axis_off()
    for part, (unit, label) in enumerate(((1, "real part"), (1j, "imaginary part"))):
        for number in range(6):
            coeffs: list[Any] = [None] * (level + 1)
            coeffs[1] = np.zeros((6, band, band), complex)
            coeffs[1][number, band // 2, band // 2] = unit
            coeffs[level] = np.zeros((6, size // 2, size // 2), complex)
            title = f"{15 + 30 * number}°, {label}"
            _draw_wavelet(
                axes[2 * (number // 3) + part, number % 3], undula.idtcwt2(coeffs, shape=shape), title
            )
    real_wavelets = (("horizontal edges", "da"), ("vertical edges", "ad"), ("diagonals", "dd"))
    for axis, (label, key) in zip(axes[4], real_wavelets, strict=True):
        keyed = undula.wavedecn(np.zeros(shape), "bior4.4", "periodization", level)
        keyed[1][key][band // 2, band // 2] = 1
        wave = undula.waverecn(keyed, "bior4.4", "periodization")
        _draw_wavelet(axis, wave, f"DWT, {label}")
    figure.savefig(path, dpi=100, transparent=True)
    plt.close(figure)


def _draw_wavelet(axis: Any, wave: Array, title: str) -> None:
    peak = np.abs(wave).max()
    axis.imshow(wave, cmap="RdBu_r", vmin=-peak, vmax=peak)
    axis.set_title(title, fontsize=10.5, color=GREY, loc="left")


@mpl.rc_context(STYLE)
def shift_chart(path: Path, length: int = 256, level: int = 4, shifts: int = 16) -> None:
    """Plot what one level contributes to steps at several places, and the energy of that level."""
    figure, axes = plt.subplots(1, 3, figsize=(9.4, 4.2), layout="constrained")
    energies: dict[str, list[float]] = {"dual tree": [], "DWT": []}
    for shift in range(shifts):
        x = (np.arange(length) >= length // 2 - shifts // 2 + shift).astype(float)
        dual = [None if k > 1 else band for k, band in enumerate(undula.dtcwt(x, level=level))]
        real = undula.wavedec(x, "qshift14", "symmetric", level)
        energies["dual tree"].append(float(np.sum(np.abs(dual[1]) ** 2)))
        energies["DWT"].append(float(np.sum(real[1] ** 2)))
        dual[0], dual[-1] = None, np.zeros(length // 2, complex)
        real = [band if k == 1 else np.zeros_like(band) for k, band in enumerate(real)]
        lines = undula.idtcwt(dual), undula.waverec(real, "qshift14", "symmetric")[:length]
        for axis, line in zip(axes, lines, strict=False):
            axis.plot(line - 0.25 * shift, color=ACCENT, lw=0.9)
    for axis, name in zip(axes, energies, strict=False):
        axis.set_title(f"level {level} of steps: {name}", fontsize=9.5, color=INK, loc="left")
        axis.set_yticks([])
        axis.set_xlim(length // 4, 3 * length // 4)
    for color, (name, values) in zip((ACCENT, MUTED), energies.items(), strict=True):
        axes[2].plot(np.array(values) / np.mean(values), color=color, label=name, marker="o", ms=3)
    axes[2].set_title("energy of that level / mean", fontsize=9.5, color=INK, loc="left")
    axes[2].set_xlabel("shift, in samples", fontsize=10)
    axes[2].set_ylim(0)
    axes[2].legend(frameon=False)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    save(figure, path)


@mpl.rc_context(STYLE)
def scheme_chart(path: Path, wavelets: Sequence[str] = ("cdf53", "cdf97", "dd137")) -> None:
    """Draw the operations of the ten schemes as bars, labelled with their barriers."""
    names = list(reversed(undula.SCHEMES))
    figure, axes = plt.subplots(1, len(wavelets), figsize=(9.4, 4.2), sharey=True, layout="constrained")
    for axis, wavelet in zip(axes, wavelets, strict=True):
        schemes = [undula.scheme(wavelet, name) for name in names]
        widest = max(s.operations for s in schemes)
        colors = [ACCENT if name.endswith("*") else "#99b7c9" for name in names]
        axis.barh(names, [s.operations for s in schemes], color=colors, height=0.66)
        for row, s in enumerate(schemes):
            plural = "" if s.barriers == 1 else "s"
            axis.text(
                s.operations + 0.015 * widest,
                row,
                f"{s.operations} · {s.barriers} barrier{plural}",
                va="center",
                fontsize=10,
            )
        axis.set_title(wavelet, loc="left", fontsize=11, color=INK)
        axis.set_xlim(0, 1.75 * widest)
        axis.set_xticks([])
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
    figure.suptitle(TITLE, fontsize=10, color=GREY)
    save(figure, path)


@mpl.rc_context(STYLE)
def strategy_chart(rows: Sequence[dict[str, Any]], machine: str, path: Path) -> None:
    """Draw the times of strategies and schemes on a GPU as bars, with a line for the copy."""
    wavelets = list(dict.fromkeys(row["wavelet"] for row in rows))
    ways = list(dict.fromkeys(row["way"] for row in rows))[::-1]
    figure, axes = plt.subplots(1, len(wavelets), figsize=(9.4, 4.8), sharey=True, layout="constrained")
    for axis, wavelet in zip(axes, wavelets, strict=True):
        measured = {row["way"]: row["forward"] for row in rows if row["wavelet"] == wavelet}
        times = [measured.get(way, 0.0) for way in ways]
        widest = max(times)
        colors = [ACCENT if way == "sliding" else "#99b7c9" for way in ways]
        axis.barh(ways, times, color=colors, height=0.66)
        for k, time in enumerate(times):
            axis.text(time + 0.015 * widest, k, f"{time:.0f}" if time else "–", va="center", fontsize=10)
        floor = rows[0]["copy"]
        axis.axvline(floor, color=INK, linewidth=1, linestyle=":")
        axis.text(floor, len(ways) - 0.35, f" copy {floor:.0f} µs", fontsize=10, color=INK, va="bottom")
        axis.set_title(wavelet, loc="left", fontsize=11, color=INK, pad=14)
        axis.set_xlim(0, 1.18 * widest)
        axis.set_xticks([])
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
    figure.suptitle(
        f"one level of 4096², float32, forward: microseconds on an {machine}", fontsize=10, color=GREY
    )
    save(figure, path)


@mpl.rc_context(STYLE)
def speed_chart(benchmark: dict[str, Any], path: Path) -> None:
    """Plot the time per pixel on the CPU over the size of the image, beside other packages and a copy."""
    where, squares = benchmark["machine"], _square_images(benchmark)
    figure, axes = plt.subplots(figsize=(8, 4.6), layout="constrained")
    for name, (color, style, text) in PACKAGES.items():
        points = [
            (row["shape"][0], 1e6 * row["times"][name] / np.prod(row["shape"]))
            for row in squares
            if name in row["times"]
        ]
        axes.plot(*zip(*points, strict=True), style, color=color, marker="o", markersize=4, label=text)
    axes.set(xscale="log", yscale="log", xlabel="side of the image, pixels", ylabel="nanoseconds per pixel")
    ticks = [row["shape"][0] for row in squares]
    axes.set_xticks(ticks, [str(side) for side in ticks])
    axes.minorticks_off()
    threads, processor, date = (where[key] for key in ("threads", "processor", "date"))
    axes.set_title(f"CDF 9/7, one level, float32, {threads} threads, {processor}, {date}", fontsize=10)
    axes.grid(True, which="major", color=INK, alpha=0.18, linewidth=0.6)
    axes.legend(fontsize=9)
    save(figure, path)


@mpl.rc_context(STYLE)
def peer_chart(benchmark: dict[str, Any], path: Path, side: int = 2048) -> None:
    """Draw the times of packages for one level of an image as bars, beside a copy of its bytes."""
    times = next(row["times"] for row in _square_images(benchmark) if row["shape"][0] == side)
    shown = [(times[name], *PACKAGES[name]) for name in sorted(PACKAGES, key=times.__getitem__, reverse=True)]
    figure, axes = plt.subplots(figsize=(6.4, 2.2), layout="constrained")
    axes.tick_params(labelsize=12)
    axes.barh([text for *_, text in shown], [time for time, *_ in shown], color=[row[1] for row in shown])
    for place, (time, *_) in enumerate(shown):
        axes.text(time + 0.01 * shown[0][0], place, f"{time:.3g} ms", va="center", fontsize=12)
    axes.set_xlim(0, 1.16 * shown[0][0])
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    save(figure, path)


PACKAGES = {
    "copy": (GREY, "--", "a copy of the same bytes"),
    "undula, out=": (ACCENT, "-", "Undula"),
    "ndwt": ("#f59f00", "-", "ndwt (Rust)"),
    "ptwt": ("#ae3ec9", "-", "ptwt (PyTorch)"),
    "PyWavelets": (MUTED, "-", "PyWavelets"),
}


@mpl.rc_context(STYLE)
def denoising_chart(methods: dict[str, tuple[float, float]], path: Path) -> None:
    """Draw the mean PSNR of methods of denoising over their time, from their dB and milliseconds."""
    figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    axes.tick_params(labelsize=12)
    for name, (quality, time) in methods.items():
        color = ACCENT if name.startswith("Undula") else MUTED
        axes.plot(time, quality, "o", color=color, markersize=8)
        left = time > 1000 or "balanced" in name  # Avoids the border and other texts.
        place: Any = {"xytext": (-8 if left else 8, -5), "ha": "right" if left else "left"}
        axes.annotate(name, (time, quality), textcoords="offset points", fontsize=12, color=INK, **place)
    axes.set(xscale="log", xlim=(2, 6000))
    axes.set_xticks([10, 100, 1000], ["10 ms", "100 ms", "1 s"])
    axes.minorticks_off()
    axes.margins(y=0.12)
    axes.set_xlabel("time for 512 × 512 pixels; left is faster", fontsize=12)
    axes.set_ylabel("PSNR, dB; up is better", fontsize=12)
    axes.grid(True, color=INK, alpha=0.18, linewidth=0.6)
    save(figure, path)


def _square_images(benchmark: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the results for one level of square images in float32, by all threads."""
    plain = {"wavelet": "CDF 9/7", "levels": 1, "dtype": "f4"}.items()
    return [
        row
        for row in benchmark["results"]
        if plain <= row.items()
        and len(row["shape"]) == 2
        and len({*row["shape"]}) == 1
        and not row.get("back")
        and "threads" not in row
    ]


# --- filters --------------------------------------------------------------------------------------


def labelled(pictures: Sequence[tuple[Array, str]], scale: float = 1.0, columns: int = 2) -> Image.Image:
    """Arrange images of one size in rows, with captions that can be read on a phone.

    Values of images are from 0 to 255.
    """
    height, width = (round(side * scale) for side in pictures[0][0].shape[:2])
    font = ImageFont.truetype(FONT, round(9 * columns * width / PHONE_WIDTH))
    letters = int(width / font.getlength("n"))
    captions = [wrap(text.replace(" dB", "\xa0dB"), letters, break_on_hyphens=False) for _, text in pictures]
    line = round(1.3 * font.size)
    strip = line * max(map(len, captions)) + 6
    tiles = []
    for (picture, _), lines in zip(pictures, captions, strict=True):
        image = Image.fromarray(np.clip(picture, 0, 255).astype(np.uint8)).convert("RGB")
        filtering = Image.Resampling.LANCZOS if scale < 1 else Image.Resampling.NEAREST
        sheet = Image.new("RGBA", (width, height + strip), CLEAR)
        sheet.paste(image.resize((width, height), filtering), (0, 0))
        for number, text in enumerate(lines):
            ImageDraw.Draw(sheet).text((2, height + 5 + number * line), text, GREY, font=font)
        tiles.append(sheet)
    rows = [side_by_side(tiles[k : k + columns], 10) for k in range(0, len(tiles), columns)]
    sheet = Image.new("RGBA", (max(r.width for r in rows), sum(r.height for r in rows)), CLEAR)
    top = 0
    for row in rows:
        sheet.paste(row, (0, top))
        top += row.height
    return sheet


def video_gallery(folder: Path) -> None:
    """Generate the image of frames that are denoised alone and over time."""
    import av

    from undula import io

    tiles = []
    places = {"carphone_pristine": (20, 0, 0), "bigbuckbunny": (60, 330, 560)}
    for name, (begin, top, left) in places.items():
        cut = (slice(top, top + 144), slice(left, left + 176))
        with av.open(str(io.sample("bunny").with_name(f"{name}.mp4"))) as container:
            frames = islice(container.decode(video=0), begin, begin + 25)
            clean = np.stack([frame.to_ndarray(format="gray") for frame in frames]).astype(np.float32)
        noisy = clean + 20 * np.random.default_rng(0).standard_normal(clean.shape).astype(np.float32)
        alone = undula.denoise(noisy[12], 20.0, quality="best")
        together = undula.denoise(noisy, 20.0, over_time=8, quality="best")[12]
        tiles.append((clean[12][cut], "a frame"))
        for frame, text in (
            (noisy[12], "noise, σ = 20"),
            (alone, "alone, best"),
            (together, "over time, best"),
        ):
            tiles.append((frame[cut], f"{text}, {undula.measures.psnr(clean[12], frame, 255):.1f} dB"))
    labelled(tiles, 2).save(folder / "over-time.png")


def camera_gallery(folder: Path) -> None:
    """Generate the image of a photograph with the noise of a camera."""
    benchmark = runpy.run_path(str(Path(__file__).parents[1] / "benchmarks" / "camera.py"))
    clean = benchmark["develop"]("coffee", None)
    noisy = benchmark["as_jpeg"](benchmark["develop"]("coffee", benchmark["PHOTONS"][25600]))
    tiles = [(clean, "without noise")]
    for image, text in (
        (noisy, "ISO 25600, JPEG 4:2:0"),
        (benchmark["nl_means"](noisy, benchmark["RECOMMENDED"]), "scikit-image, non-local means"),
        (undula.denoise(noisy, noise="gaussian"), "undula, noise='gaussian'"),
        (undula.denoise(noisy), "undula.denoise"),
        (undula.denoise(noisy, luma=0.5, chroma=2), "luma=0.5, chroma=2"),
    ):
        tiles.append((image, f"{text}, {undula.measures.psnr(clean, image, 255):.1f} dB"))
    cut = (slice(90, 250), slice(180, 400))
    labelled([(picture[cut], text) for picture, text in tiles], 1.5).save(folder / "camera.png")


def filter_gallery(folder: Path) -> None:
    """Generate the images of the page on filters."""
    import skimage.data
    import skimage.restoration
    from pydicom import examples

    from undula.filters import Pipeline, Shrink

    camera = skimage.data.camera().astype(np.float32)
    noisy = camera + 25.5 * np.random.default_rng(0).standard_normal(camera.shape).astype(np.float32)
    cut = (slice(60, 260), slice(130, 380))

    def db(image: Array) -> str:
        return f"{10 * np.log10(255**2 / np.mean((image - camera) ** 2)):.1f} dB"

    theirs = 255 * skimage.restoration.denoise_wavelet(noisy / 255)
    tiles = [
        (noisy, f"noisy, {db(noisy)}"),
        (theirs, f"scikit-image, {db(theirs)}"),
        (ours := undula.denoise_wavelet(noisy), f"undula.denoise_wavelet, {db(ours)}"),
        (best := undula.denoise(noisy), f"undula.denoise, {db(best)}"),
    ]
    labelled([(picture[cut], text) for picture, text in tiles], 1.4).save(folder / "denoise.png")

    similar = skimage.restoration.denoise_nl_means(
        noisy / 255, patch_size=5, patch_distance=6, h=0.08, sigma=0.1, fast_mode=True
    )
    tiles = [
        (noisy, f"noisy, {db(noisy)}"),
        (similar := 255 * similar, f"scikit-image, non-local means, {db(similar)}"),
        (fast := undula.denoise(noisy, 25.5), f"undula, fast, {db(fast)}"),
        (best := undula.denoise(noisy, 25.5, quality="best"), f"undula, best, {db(best)}"),
    ]
    labelled([(picture[cut], text) for picture, text in tiles], 1.4).save(folder / "qualities.png")
    crop = (slice(70, 220), slice(150, 330))
    shown = [(noisy, "noisy"), (similar, "scikit-image, non-local means"), (best, "undula, best")]
    tiles = [(picture, f"{text}, {db(picture)}") for picture, text in shown]
    labelled([(picture[crop], text) for picture, text in tiles], 1.5, 3).save(folder / "best.png")

    hard = Pipeline("cdf97", 4, [Shrink("given", "hard", 250.0)])(camera)
    rough = camera + 15 * np.random.default_rng(1).standard_normal(camera.shape).astype(np.float32)
    thresholds = [30.0, 20.0, 10.0]
    soft32 = Pipeline("cdf97", 3, [Shrink("given", "soft", thresholds)])(rough)
    hard32 = Pipeline("cdf97", 3, [Shrink("given", "hard", [60.0, 45.0, 30.0])])(rough)
    coeffs = undula.wavedec2(rough, "cdf97", level=3)
    halves = [coeffs[0].astype(np.float16), *(tuple(b.astype(np.float16) for b in d) for d in coeffs[1:])]
    singles = [halves[0].astype("f4"), *(tuple(b.astype("f4") for b in d) for d in halves[1:])]
    for level, details in enumerate(reversed(singles[1:])):
        for band in details:
            band[...] = undula.threshold(band, thresholds[level], "soft")
    soft16 = undula.waverec2(singles, "cdf97")
    difference = np.abs(soft16 - soft32).max()
    tiles = [
        (camera, "a photograph"),
        (hard, "excessive hard thresholding (t = 250)"),
        (rough, f"noise, σ = 15, {db(rough)}"),
        (hard32, f"hard, 60 / 45 / 30 by level, {db(hard32)}"),
        (soft32, f"soft, 30 / 20 / 10, 32 bits, {db(soft32)}"),
        (soft16, f"the same in 16 bits: differs by {difference:.1f} of 255"),
    ]
    labelled([(picture[cut], text) for picture, text in tiles], 1.25).save(folder / "thresholds.png")

    clean = 20 + 0.8 * camera
    speckled = clean * np.random.default_rng(0).gamma(4, 1 / 4, clean.shape)
    tiles = [
        (clean, "a photograph"),
        (speckled, "speckle of four looks"),
        (undula.denoise(speckled), "undula.denoise"),
        (undula.despeckle(speckled), "undula.despeckle"),
    ]
    labelled([(picture[cut], text) for picture, text in tiles], 1.25).save(folder / "speckle.png")

    scan = examples.ybr_color.pixel_array[0]
    calm = undula.despeckle(scan, kind="log", strength=0.5)
    heart = (slice(35, 175), slice(90, 250))
    labelled([(scan[heart], "ultrasound"), (calm[heart], "despeckled")], 2.2).save(folder / "ultrasound.png")

    views = Pipeline("cdf97", 3, [Shrink("bayes")]).views(rough.astype(np.float32))
    tiles = [
        (views.analysis, "analysis"),
        (views.filtered, "filtered analysis"),
        (views.synthesis, "synthesis"),
    ]
    labelled(tiles, 0.7, 3).save(folder / "views.png")
