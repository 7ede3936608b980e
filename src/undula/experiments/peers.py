"""Others beside us, in the same run: PyWavelets, ndwt, ptwt, pytorch_wavelets, scikit-image, each if installed."""

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
    except (ImportError, AttributeError, TypeError, ValueError, OSError):  # (some fail on a new NumPy)
        return None


def _version(module: Any) -> str:
    return str(getattr(module, "__version__", "?"))


def _on_cpu(x: Any, level: int) -> Iterator[tuple[str, Work, Work]]:
    """Name, the work, what to wait for."""
    pywt, ndwt, ptwt = (_module(name) for name in ("pywt", "ndwt", "ptwt"))
    if pywt is not None:
        yield "PyWavelets", lambda: pywt.wavedec2(x, "bior4.4", level=level), NOTHING
    if ndwt is not None and hasattr(ndwt, "Wavelet"):
        own = getattr(ndwt.Wavelet, "CDF9_7", None)
        if own is not None:
            yield "ndwt", lambda: ndwt.lwt(own, x, level=level), NOTHING
    torch = _module("torch")
    if torch is not None and ptwt is not None and pywt is not None:
        tensor, wavelet = torch.from_numpy(x)[None], pywt.Wavelet("bior4.4")
        yield "ptwt", lambda: ptwt.wavedec2(tensor, wavelet, level=level, mode="symmetric"), NOTHING


def _on_cuda(x: Any, level: int) -> Iterator[tuple[str, Work, Work]]:
    torch = _module("torch")
    if torch is None or not torch.cuda.is_available():
        return
    tensor = torch.from_numpy(x).cuda()
    waits = torch.cuda.synchronize
    ptwt, theirs, pywt = (_module(name) for name in ("ptwt", "pytorch_wavelets", "pywt"))
    if ptwt is not None and pywt is not None:
        yield "ptwt", lambda: ptwt.wavedec2(tensor[None], "bior4.4", level=level, mode="symmetric"), waits
    if theirs is not None:
        forward = theirs.DWTForward(J=level, wave="bior4.4", mode="symmetric").cuda()
        yield "pytorch_wavelets", lambda: forward(tensor[None, None]), waits


def _said(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}"


DIFFERS = """Each peer by its own function for the same decomposition: bior4.4, float32, symmetric borders (ndwt has lifting
without added numbers). A peer that is not installed has no row. On a GPU the data are there already."""


@experiment("peers", "transforms", "Transforms beside those of other packages", DIFFERS)
def transforms(bench: Bench) -> Outcome | None:
    """One level and five, several sizes."""
    if bench.kind == "opencl":
        return None
    table = Table(f"{bench.title}: milliseconds", ["package", "size", "levels", "ms", "Undula", "ratio"])
    ratios: dict[str, list[float]] = {}
    for n in bench.some(512, 1024, 2048, 4096, quick=3):
        x = pictures((n, n), 1)[0]
        for level in (1, 5):
            plan = bench.plan((n, n), "bior4.4", level, dtype="float32")
            ours = bench.times(f"{n}², {level} level(s)", plan, moves=False).calc
            if bench.on_cpu:
                seconds = bench.seconds(partial(undula.wavedec2, x, "bior4.4", level=level))
                table.add("Undula, new arrays", f"{n}²", level, 1e3 * seconds, 1e3 * ours, seconds / ours)
            for name, run, waits in (_on_cpu if bench.on_cpu else _on_cuda)(x, level):
                seconds = bench.seconds(run, waits)
                table.add(name, f"{n}²", level, 1e3 * seconds, 1e3 * ours, seconds / ours)
                ratios.setdefault(name, []).append(seconds / ours)
    findings = [
        f"{bench.title}: {_said(statistics.median(some))} times as fast as {name} in the middle, {_said(min(some))} to"
        f" {_said(max(some))}{'; slower in ' + str(sum(r < 1 for r in some)) + ' of ' + str(len(some)) if min(some) < 1 else ''}."
        for name, some in ratios.items()
    ]
    missing = [name for name in ("PyWavelets", "ndwt", "ptwt") if bench.on_cpu and name not in ratios]
    checks = [f"not installed, so not measured: {', '.join(missing)}"] if missing else []
    return Outcome([table], findings=findings, checks=checks)


@experiment(
    "peers",
    "denoising",
    "Denoising beside scikit-image",
    "scikit-image's denoise_wavelet and ours of the same name, BayesShrink, soft; a photograph's noise is white, σ = 0.1.",
)
def denoising(bench: Bench) -> Outcome | None:
    """The same function, both packages."""
    restoration = _module("skimage.restoration")
    if not bench.on_cpu or restoration is None or _module("pywt") is None:
        return None
    table = Table(
        f"{bench.title}: denoise_wavelet, ms",
        ["size", "scikit-image", "Undula", "ratio", "largest difference", "dB gained"],
    )
    ratios = []
    for n in bench.some(256, 512, 1024, 2048, quick=3):
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
            f"denoise_wavelet: {min(ratios):.0f} to {max(ratios):.0f} times as fast as scikit-image's, same result."
        ],
    )
