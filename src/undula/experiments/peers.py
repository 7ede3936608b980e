"""Comparison with PyWavelets, ndwt, ptwt, pytorch_wavelets and scikit-image, as far as installed, in one run."""

from __future__ import annotations

import importlib
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import undula

from .base import Outcome, Table, experiment
from .bench import Bench, pictures

Work = Callable[[], Any]
NOTHING: Work = lambda: None  # noqa: E731


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except (ImportError, AttributeError, TypeError, ValueError, OSError):  # Some fail with a recent NumPy.
        return None


def _on_cpu(x: Any, level: int) -> Iterator[tuple[str, Work, Work]]:
    """The name of each package, its transform, and a function that waits for the result."""
    pywt, ndwt, ptwt = (_module(name) for name in ("pywt", "ndwt", "ptwt"))
    if pywt is not None:
        yield "PyWavelets", lambda: pywt.wavedec2(x, "bior4.4", level=level), NOTHING
    if ndwt is not None and hasattr(ndwt, "Wavelet"):
        cdf97 = getattr(ndwt.Wavelet, "CDF9_7", None)
        if cdf97 is not None:
            yield "ndwt", lambda: ndwt.lwt(cdf97, x, level=level), NOTHING
    torch = _module("torch")
    if torch is not None and ptwt is not None and pywt is not None:
        tensor, wavelet = torch.from_numpy(x)[None], pywt.Wavelet("bior4.4")
        yield "ptwt", lambda: ptwt.wavedec2(tensor, wavelet, level=level, mode="symmetric"), NOTHING


def _on_cuda(x: Any, level: int) -> Iterator[tuple[str, Work, Work]]:
    torch = _module("torch")
    if torch is None or not torch.cuda.is_available():
        return
    tensor = torch.from_numpy(x).cuda()
    wait = torch.cuda.synchronize
    ptwt, pytorch_wavelets, pywt = (_module(name) for name in ("ptwt", "pytorch_wavelets", "pywt"))
    if ptwt is not None and pywt is not None:
        yield "ptwt", lambda: ptwt.wavedec2(tensor[None], "bior4.4", level=level, mode="symmetric"), wait
    if pytorch_wavelets is not None:
        forward = pytorch_wavelets.DWTForward(J=level, wave="bior4.4", mode="symmetric").cuda()
        yield "pytorch_wavelets", lambda: forward(tensor[None, None]), wait


def _ratio_text(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}"


DIFFERS = """Each package runs its own function for the same decomposition: bior4.4, float32, symmetric extension (ndwt has
non-expansive lifting). Packages that are not installed have no row. On a GPU the data are already in its memory."""


@experiment("peers", "transforms", "Transforms compared with other packages", DIFFERS)
def transforms(bench: Bench) -> Outcome | None:
    """One level and five, several sizes."""
    if bench.kind == "opencl":
        return None
    table = Table(f"{bench.title}: milliseconds", ["package", "size", "levels", "ms", "Undula", "ratio"])
    ratios: dict[str, list[float]] = {}
    for n in bench.subset(512, 1024, 2048, 4096, quick=3):
        x = pictures((n, n), 1)[0]
        for level in (1, 5):
            plan = bench.plan((n, n), "bior4.4", level, dtype="float32")
            ours = bench.times(f"{n}², {level} level(s)", plan, transfers=False).calc
            if bench.on_cpu:
                seconds = bench.seconds(partial(undula.wavedec2, x, "bior4.4", level=level))
                table.add("Undula, new arrays", f"{n}²", level, 1e3 * seconds, 1e3 * ours, seconds / ours)
            for name, transform, wait in (_on_cpu if bench.on_cpu else _on_cuda)(x, level):
                seconds = bench.seconds(transform, wait)
                table.add(name, f"{n}²", level, 1e3 * seconds, 1e3 * ours, seconds / ours)
                ratios.setdefault(name, []).append(seconds / ours)
    findings = [
        f"{bench.title}: {_ratio_text(statistics.median(values))} times as fast as {name} (median),"
        f" {_ratio_text(min(values))} to {_ratio_text(max(values))}"
        f"{f'; slower in {sum(r < 1 for r in values)} of {len(values)}' if min(values) < 1 else ''}."
        for name, values in ratios.items()
    ]
    missing = [name for name in ("PyWavelets", "ndwt", "ptwt") if bench.on_cpu and name not in ratios]
    checks = [f"not measured, since not installed: {', '.join(missing)}"] if missing else []
    return Outcome([table], findings=findings, checks=checks)


@experiment(
    "peers",
    "denoising",
    "Denoising compared with scikit-image",
    "`denoise_wavelet` of scikit-image and of Undula, BayesShrink, soft thresholds; white noise with σ = 0.1 in a photograph.",
    on="cpu",
)
def denoising(bench: Bench) -> Outcome | None:
    """`denoise_wavelet` of both packages."""
    restoration = _module("skimage.restoration")
    if restoration is None or _module("pywt") is None:
        return None
    table = Table(
        f"{bench.title}: denoise_wavelet, ms",
        ["size", "scikit-image", "Undula", "ratio", "largest difference", "dB gained"],
    )
    ratios = []
    for n in bench.subset(256, 512, 1024, 2048, quick=3):
        clean = pictures((n, n), 1)[0] / 255
        noisy = (clean + 0.1 * np.random.default_rng(1).standard_normal(clean.shape)).astype(np.float32)
        theirs = restoration.denoise_wavelet(noisy)
        ours = undula.denoise_wavelet(noisy)
        slow = bench.seconds(partial(restoration.denoise_wavelet, noisy))
        fast = bench.seconds(partial(undula.denoise_wavelet, noisy))
        ratios.append(slow / fast)
        gained = undula.measures.psnr(clean, ours, 1.0) - undula.measures.psnr(clean, noisy, 1.0)
        table.add(f"{n}²", 1e3 * slow, 1e3 * fast, slow / fast, float(np.abs(theirs - ours).max()), gained)
    return Outcome(
        [table],
        findings=[
            f"denoise_wavelet is {min(ratios):.0f} to {max(ratios):.0f} times as fast as that of scikit-image, same result."
        ],
    )
