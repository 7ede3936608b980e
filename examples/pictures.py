"""Pictures for the demo and the docs: pyramids, galleries, charts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.font_manager import findfont
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

import undula

mpl.use("Agg")
import matplotlib.pyplot as plt

Array = NDArray[Any]
TITLE = (
    "multiply-accumulates per quadruple of samples; dark: scalar terms split off; each panel to its own scale"
)
INK, PAPER, ACCENT, MUTED = "#1d2733", "#ffffff", "#0b7285", "#e8590c"
FONT = findfont("DejaVu Sans")  # it comes with matplotlib, and has × and ψ


def pyramid(coeffs: Sequence[Any], gain: float = 1.0) -> Array:
    """The coefficients of :func:`lwt2` of an image (H, W, 3) as one picture of its size.

    The approximation comes in its own colours; details are drawn around mid-grey, small ones lifted by a
    square root so that edges can be seen at every level.
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
    """A picture with values from 0 to 1 as an image, with text on a white strip below it."""
    image = Image.fromarray((np.clip(picture, 0, 1) * 255 + 0.5).astype(np.uint8))
    if scale > 1:
        image = image.resize((image.width * scale, image.height * scale), Image.Resampling.NEAREST)
    title, body = ImageFont.truetype(FONT, 17), ImageFont.truetype(FONT, 13)
    strip = 16 + 26 * bool(lines) + 20 * (len(lines) - 1)
    sheet = Image.new("RGB", (image.width, image.height + strip), PAPER)
    sheet.paste(image, (0, 0))
    draw = ImageDraw.Draw(sheet)
    top = image.height + 8
    for number, line in enumerate(lines):
        draw.text((8, top), line, INK, font=title if number == 0 else body)
        top += 26 if number == 0 else 20
    return sheet


def side_by_side(images: Sequence[Image.Image], gap: int = 12) -> Image.Image:
    """Images in one row on white."""
    width = sum(image.width for image in images) + gap * (len(images) + 1)
    height = max(image.height for image in images) + 2 * gap
    sheet = Image.new("RGB", (width, height), PAPER)
    left = gap
    for image in images:
        sheet.paste(image, (left, gap))
        left += image.width + gap
    return sheet


def wavelet_gallery(names: Sequence[str], path: Path) -> None:
    """Scaling functions and wavelets of several families, one panel each."""
    columns = 4
    rows = -(-len(names) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(3.1 * columns, 2.1 * rows), layout="constrained")
    for axis, name in zip(axes.flat, names, strict=True):
        *curves, x = undula.Wavelet(name).wavefun(9)
        phi, psi = curves[-2:]  # of the reconstruction, where there are two sides
        axis.axhline(0, color="#dee2e6", lw=0.8)
        axis.plot(x, phi, color=MUTED, lw=1.3)
        axis.plot(x, psi, color=ACCENT, lw=1.6)
        axis.set_title(name, fontsize=11, color=INK, loc="left")
        shown = np.flatnonzero(np.maximum(np.abs(phi), np.abs(psi)) > 2e-3 * np.abs(psi).max())
        axis.set_xlim(x[shown[0]], x[shown[-1]])
        axis.set_yticks([])
        axis.tick_params(labelsize=8, color="#adb5bd", labelcolor="#868e96")
        axis.spines[["top", "right", "left"]].set_visible(False)
        axis.spines["bottom"].set_color("#adb5bd")
    figure.suptitle("scaling function (orange) and wavelet (teal)", fontsize=10, color="#868e96")
    figure.savefig(path, dpi=130, facecolor=PAPER)
    plt.close(figure)


def scheme_chart(path: Path, wavelets: Sequence[str] = ("cdf53", "cdf97", "dd137")) -> None:
    """Operations of the ten schemes as bars, with their barriers."""
    names = list(reversed(undula.SCHEMES))
    figure, axes = plt.subplots(1, len(wavelets), figsize=(12.4, 4.2), sharey=True, layout="constrained")
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
                fontsize=8.5,
            )
        axis.set_title(wavelet, loc="left", fontsize=11, color=INK)
        axis.set_xlim(0, 1.42 * widest)
        axis.set_xticks([])
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
    figure.suptitle(TITLE, fontsize=10, color="#868e96")
    figure.savefig(path, dpi=130, facecolor=PAPER)
    plt.close(figure)


def strategy_chart(rows: Sequence[dict[str, Any]], machine: str, path: Path) -> None:
    """Times of strategies and schemes on a GPU as bars, with the copy as a line."""
    wavelets = list(dict.fromkeys(row["wavelet"] for row in rows))
    ways = list(dict.fromkeys(row["way"] for row in rows))[::-1]
    figure, axes = plt.subplots(1, len(wavelets), figsize=(12.4, 4.8), sharey=True, layout="constrained")
    for axis, wavelet in zip(axes, wavelets, strict=True):
        found = {row["way"]: row for row in rows if row["wavelet"] == wavelet}
        times = [found[way]["forward"] if way in found else 0.0 for way in ways]
        widest = max(times)
        colors = [ACCENT if way == "sliding" else "#99b7c9" for way in ways]
        axis.barh(ways, times, color=colors, height=0.66)
        for k, time in enumerate(times):
            axis.text(time + 0.015 * widest, k, f"{time:.0f}" if time else "–", va="center", fontsize=8.5)
        floor = rows[0]["copy"]
        axis.axvline(floor, color=INK, linewidth=1, linestyle=":")
        axis.text(floor, len(ways) - 0.35, f" copy {floor:.0f} µs", fontsize=8.5, color=INK, va="bottom")
        axis.set_title(wavelet, loc="left", fontsize=11, color=INK, pad=14)
        axis.set_xlim(0, 1.18 * widest)
        axis.set_xticks([])
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
    figure.suptitle(
        f"one level of 4096², float32, forward: microseconds on an {machine}", fontsize=10, color="#868e96"
    )
    figure.savefig(path, dpi=130, facecolor=PAPER)
    plt.close(figure)
