"""Crandall and Klivington, "Vector implementation of color-image wavelet transform" (Apple, 1999).

Two integer pipelines: RGBA with D4, and YUV with Burt 5/7. Run times, and errors after a round trip.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .. import color
from ..errors import UndulaError
from ..io.samples import scene
from .base import Outcome, Table, experiment
from .bench import Bench
from .published import work

SIZES = {"640×480": (480, 640), "320×240": (240, 320)}
D4_LEVELS, LEVELS = 1, 3
PHOTOS = ("astronaut", "microscopy", "hubble", "scene")
COMMON = """The pipelines use the coefficients of the paper. The images are different ones, since theirs are not
published; the number of levels, which the paper does not state, is one for D4 and three for Burt 5/7. The pipelines run in
NumPy integers on one thread of the CPU, so this page has no results for GPUs."""


def _images() -> dict[str, dict[str, Any]]:
    """Photographs in both sizes: the installed samples, or else a synthetic scene."""
    from .. import io

    images: dict[str, dict[str, Any]] = {}
    for name in PHOTOS:
        if name not in io.samples():
            continue
        try:
            from PIL import Image

            photo = Image.fromarray(io.read(io.sample(name)).pixels[..., :3])
            images[name] = {
                size: np.asarray(photo.resize((width, height), Image.Resampling.LANCZOS))
                for size, (height, width) in SIZES.items()
            }
        except (ImportError, UndulaError):
            continue
    if not images:
        images["scene"] = {size: scene(*shape, 0.0, 0.0) for size, shape in SIZES.items()}
    return images


def _opaque(image: Any) -> Any:
    return np.concatenate([image, np.full((*image.shape[:2], 1), 255, np.uint8)], axis=-1)


@experiment("colour", "timing-rgba", "Times of D4 on RGBA", COMMON, on="cpu")
def timing_rgba(bench: Bench) -> Outcome:
    """Forward and inverse."""
    image = next(iter(bench.once("images", _images).values()))
    table = Table(f"{bench.title}: seconds", ["run", *SIZES])
    coeffs = {size: color.d4_forward(_opaque(image[size]), D4_LEVELS) for size in SIZES}
    forward = [bench.seconds(partial(color.d4_forward, _opaque(image[size]), D4_LEVELS)) for size in SIZES]
    inverse = [bench.seconds(partial(color.d4_inverse, coeffs[size])) for size in SIZES]
    table.add("integers, forward", *forward)
    table.add("integers, inverse", *inverse)
    plan = [_lifted(bench, size) for size in SIZES]
    table.add("float32 D4 of the same pixels (Plan), forward", *plan)
    theirs = work("colour").items["timing-rgba"].row("vector forward")
    finding = (
        f"Integers on {bench.title}: {theirs[0] / forward[0]:.1f} times as fast as the vector unit of the G4 at 640×480;"
        f" the engine in float32 is {theirs[0] / plan[0]:.0f} times as fast."
    )
    return Outcome([table], findings=[finding])


def _lifted(bench: Bench, size: str) -> float:
    """Seconds of the engine for D4 of four channels in float32."""
    plan = bench.plan((*SIZES[size], 4), "d4", D4_LEVELS, axes=(0, 1), mode="periodization", dtype="float32")
    x = np.ones(plan.shape, np.float32)
    coeffs = plan.forward(x)
    return bench.seconds(lambda: plan.forward(x, out=coeffs))


@experiment(
    "colour", "timing-yuv", "Time of a cycle of Burt 5/7 on YUV", COMMON, also=("timing-prose",), on="cpu"
)
def timing_yuv(bench: Bench) -> Outcome:
    """Colour conversion, subsampling and transform, forward and inverse."""
    image = next(iter(bench.once("images", _images).values()))
    table = Table(f"{bench.title}: seconds", ["run", *SIZES])
    cycle = [bench.seconds(partial(_burt, image[size])) for size in SIZES]
    engine = [bench.seconds(partial(_ict, image[size])) for size in SIZES]
    table.add("integers, full cycle", *cycle)
    table.add("the engine: ict + CDF 9/7, forward and inverse", *engine)
    theirs = work("colour").items["timing-yuv"].rows[0][1:]
    finding = (
        f"Integers on {bench.title}: {theirs[0] / cycle[0]:.1f} times as fast as the G4 at 640×480; the engine's lossy"
        f" colour cycle is {theirs[0] / engine[0]:.0f} times as fast, at full chroma."
    )
    return Outcome([table], findings=[finding])


def _burt(image: Any) -> Any:
    return color.burt_inverse(color.burt_forward(image, LEVELS))


def _ict(image: Any) -> Any:
    return color.inverse(color.forward(image, "cdf97", LEVELS, color="ict"), "cdf97", color="ict")


def _errors(bench: Bench, title: str, error: Any, item: str) -> Outcome:
    table = Table(title, ["image", *SIZES])
    for name, sizes in bench.once("images", _images).items():
        table.add(name, *(float(error(sizes[size])) for size in SIZES))
    theirs = [value for row in work("colour").items[item].rows for value in row[1:]]
    ours = [value for row in table.rows for value in row[1:] if not isinstance(value, str)]
    finding = (
        f"The errors are {min(ours):.2f} to {max(ours):.2f} for our images and {min(theirs):.2f} to"
        f" {max(theirs):.2f} for those of the paper."
    )
    return Outcome([table], findings=[finding])


ERRORS = COMMON + " Errors depend on the image, so only their order of magnitude can be compared."


@experiment("colour", "rmse", "Error of D4 on RGBA", ERRORS, on="cpu")
def rmse(bench: Bench) -> Outcome:
    """Over red, green and blue."""
    return _errors(
        bench,
        "RMSE after D4 forward and inverse, 8-bit levels",
        lambda i: color.rmse(_opaque(i), color.d4_inverse(color.d4_forward(_opaque(i), D4_LEVELS))),
        "rmse",
    )


@experiment("colour", "rmsy", "Error of Burt 5/7, luma", ERRORS, on="cpu")
def rmsy(bench: Bench) -> Outcome:
    """Of the plane Y."""
    return _errors(
        bench,
        "RMSY after the YUV cycle, 8-bit levels",
        lambda i: color.rmsy(i, color.burt_forward(i, LEVELS)),
        "rmsy",
    )


@experiment("colour", "rmse-yuv", "Error of Burt 5/7, colour", ERRORS, on="cpu")
def rmse_yuv(bench: Bench) -> Outcome:
    """Over red, green and blue, subsampling included."""
    return _errors(
        bench,
        "RMSE after the YUV cycle, 8-bit levels",
        lambda i: color.rmse(i, _burt(i)),
        "rmse-yuv",
    )
