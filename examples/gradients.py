"""Three uses of gradients, with pictures: a loss in the wavelet domain, deblurring, a learned wavelet.

Run ``python examples/gradients.py FOLDER``; it takes about a minute on a CPU, and needs PyTorch. The guide on
gradients explains the code.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import skimage.data
import torch

import undula
from undula.experiments.charts import INK, STYLE, themed
from undula.torch import LearnableDWT

mpl.use("Agg")
import matplotlib.pyplot as plt

SIDE = 144


def photograph() -> Any:
    """Return a part of a photograph as one image of a batch, from 0 to 1."""
    photo = torch.from_numpy(skimage.data.camera()[80 : 80 + SIDE, 170 : 170 + SIDE].copy())
    return (photo / 255.0)[None, None]


def blur(x: Any) -> Any:
    """Return the mean over windows of five by five pixels, the same number at each border."""
    padded = torch.nn.functional.pad(x, (2, 2, 2, 2), mode="replicate")
    return torch.nn.functional.avg_pool2d(padded, 5, 1)


def wavelet_loss(result: Any, target: Any) -> Any:
    """Return the mean magnitude of all coefficients of the difference, each level with the same weight."""
    low, *levels = undula.wavedec2(result - target, "sym4", level=3)
    return low.abs().mean() + sum(band.abs().mean() for details in levels for band in details)


def sharpened(loss: Any, steps: int = 120) -> Any:
    """Return a blurred image after a small network was trained by a loss to undo the blur."""
    torch.manual_seed(0)
    sharp = photograph()
    blurred = blur(sharp)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 5, padding=2, padding_mode="replicate"),
        torch.nn.ReLU(),
        torch.nn.Conv2d(8, 1, 5, padding=2, padding_mode="replicate"),
    )
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(steps):
        optimiser.zero_grad()
        loss(blurred + network(blurred), sharp).backward()
        optimiser.step()
    return (blurred + network(blurred)).detach()


def deblurred(y: Any, step: Any, threshold: Any, iterations: int = 8) -> Any:
    """Return an image after unrolled iterations of shrinkage."""
    x = y
    for _ in range(iterations):
        x = x + step * blur(y - blur(x))
        low, *levels = undula.wavedec2(x, "db2", "periodization", level=3)
        shrunk = [
            tuple(torch.nn.functional.softshrink(b / threshold, 1) * threshold for b in level)
            for level in levels
        ]
        x = undula.waverec2([low, *shrunk], "db2", "periodization")
    return x


def learned_deblurring(steps: int = 15) -> tuple[Any, Any, Any]:
    """Return a noisy and blurred image, and its restoration before and after both parameters were learned."""
    torch.manual_seed(0)
    sharp = photograph()
    y = blur(sharp) + 0.01 * torch.randn_like(sharp)
    step, threshold = (torch.tensor(value, requires_grad=True) for value in (0.5, 0.05))
    before = deblurred(y, step, threshold).detach()
    optimiser = torch.optim.Adam([{"params": [step], "lr": 0.1}, {"params": [threshold], "lr": 0.003}])
    for _ in range(steps):
        optimiser.zero_grad()
        (deblurred(y, step, threshold) - sharp).square().mean().backward()
        optimiser.step()
        threshold.data.clamp_(min=1e-4)
    return y, before, deblurred(y, step, threshold).detach()


def learned_wavelet(steps: int = 150) -> tuple[Any, Any, Any]:
    """Return oscillations, and their details by CDF 5/3 before and after its coefficients were learned."""
    time = torch.arange(256.0)
    signals = torch.stack([torch.sin(0.9 * time + phase) for phase in range(4)])
    layer = LearnableDWT("cdf53", J=1, ndim=1, extra_taps=1)
    before = layer(signals)[1][0].detach()
    optimiser = torch.optim.Adam(list(layer.steps), lr=0.01)
    for _ in range(steps):
        optimiser.zero_grad()
        layer(signals)[1][0].square().sum().backward()
        optimiser.step()
    return signals, before, layer(signals)[1][0].detach()


def psnr(x: Any) -> float:
    """Return the quality of a restored photograph in dB."""
    return float(-10 * torch.log10((x - photograph()).square().mean()))


def show(path: Path, images: Sequence[tuple[str, Any]]) -> None:
    """Write enlarged parts of four images."""
    figure, axes = plt.subplots(2, 2, figsize=(5.8, 6.4), layout="constrained")
    for axis, (title, image) in zip(axes.flat, images, strict=True):
        axis.imshow(image[0, 0, 8:136, 8:136], cmap="gray", vmin=0, vmax=1)
        axis.set_title(title, fontsize=11, color="#868e96")
        axis.set_axis_off()
    figure.savefig(path, dpi=130, transparent=True)
    plt.close(figure)


def main(folder: Path) -> None:
    folder.mkdir(exist_ok=True, parents=True)
    blurred = blur(photograph())
    by_pixels = sharpened(lambda result, target: (result - target).square().mean())
    by_wavelets = sharpened(wavelet_loss)
    show(
        folder / "wavelet-loss.png",
        [
            ("original", photograph()),
            (f"blurred, {psnr(blurred):.1f} dB", blurred),
            (f"squared error, {psnr(by_pixels):.1f} dB", by_pixels),
            (f"wavelet loss, {psnr(by_wavelets):.1f} dB", by_wavelets),
        ],
    )
    observed, before, after = learned_deblurring()
    show(
        folder / "unrolled.png",
        [
            ("original", photograph()),
            (f"blur and noise, {psnr(observed):.1f} dB", observed),
            (f"first parameters, {psnr(before):.1f} dB", before),
            (f"learned parameters, {psnr(after):.1f} dB", after),
        ],
    )
    signals, before, after = learned_wavelet()
    plt.rcParams.update(STYLE)
    figure, axes = plt.subplots(1, 2, figsize=(8.6, 2.6), layout="constrained")
    axes[0].plot(signals[0, :64], color=INK, lw=1)
    axes[0].set_title("a signal", fontsize=10.5)
    axes[1].plot(before.reshape(4, -1)[0, :64], color="#f76707", lw=1, label="CDF 5/3")
    axes[1].plot(after.reshape(4, -1)[0, :64], color="#1098ad", lw=1.5, label="learned")
    axes[1].set_title("its details", fontsize=10.5)
    axes[1].legend(frameon=False, fontsize=10, loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=10)
    (folder / "learned.svg").write_text(themed(figure), encoding="utf-8")
    plt.close(figure)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
