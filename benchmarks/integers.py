"""Integers and colour: reversible transforms compared with floats and a copy, colour in one pass with two.

    python benchmarks/integers.py           run everything, about half a minute
    python benchmarks/integers.py --save    save the figures to benchmarks/results/integers.json

With an NVIDIA GPU and PyTorch, the GPU is measured as well. The table of Crandall and Klivington (1999) is
reproduced from the colour images of scikit-image.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import undula
from undula import color

ROOT = Path(__file__).parent
PHOTOS = ("astronaut", "chelsea", "coffee", "rocket", "retina", "hubble_deep_field", "immunohistochemistry")
HOST_CYCLES = 1_500_000  # GPU cycles, more than the host takes to prepare a call without a plan.
Row = dict[str, Any]


def best(work: Callable[[], Any], runs: int = 15) -> float:
    """Milliseconds, the best of several runs."""
    work()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def transforms(n: int = 4096) -> list[Row]:
    """Forward and inverse of one level on the CPU, into preallocated arrays."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (n, n))
    rows = []
    for what, name, dtype in (
        ("reversible CDF 5/3", "cdf53", "int16"),
        ("reversible CDF 9/7", "cdf97", "int16"),
        ("reversible CDF 5/3", "cdf53", "int32"),
        ("reversible CDF 9/7", "cdf97", "int32"),
        ("CDF 5/3", "cdf53", "float32"),
        ("CDF 9/7", "cdf97", "float32"),
    ):
        x = pixels.astype(dtype)
        target = np.empty_like(x)
        copy = best(lambda x=x, target=target: np.copyto(target, x))
        options = {"dtype": dtype} if dtype.startswith("int") else {}
        out = undula.lwt2(x, name, **options)
        forward = best(lambda x=x, out=out, name=name, o=options: undula.lwt2(x, name, out=out, **o))
        back = best(lambda out=out, target=target, name=name: undula.ilwt2(out, name, out=target))
        rows.append({"what": what, "dtype": dtype, "n": n, "copy": copy, "forward": forward, "back": back})
        print(f"{what:20} {dtype:8} {n}²  copy {copy:6.2f}  forward {forward:6.2f}  inverse {back:6.2f} ms")
    return rows


def colours() -> list[Row]:
    """1080p, 8 bits, three levels: in one call, and as conversion and transform."""
    image = np.random.default_rng(0).integers(0, 256, (1080, 1920, 3)).astype(np.uint8)
    rows = []
    for space, wavelet in (("rct", "cdf53"), ("ict", "cdf97")):
        one_call = best(lambda space=space, wavelet=wavelet: color.forward(image, wavelet, 3, color=space))
        mixed = best(lambda space=space: color.to_planes(image, space))
        planes = color.to_planes(image, space)
        kept = {"dtype": "int16"} if space == "rct" else {}
        apart = best(
            lambda planes=planes, wavelet=wavelet, kept=kept: undula.lwt2(planes, wavelet, 3, **kept)
        )
        coeffs = color.forward(image, wavelet, 3, color=space)
        back = best(lambda c=coeffs, space=space, wavelet=wavelet: color.inverse(c, wavelet, color=space))
        rows.append(
            {"color": space, "wavelet": wavelet, "one": one_call, "mix": mixed, "lwt": apart, "back": back}
        )
        print(
            f"1080p {space} + {wavelet}, 3 levels: one call {one_call:.2f} ms, two calls {mixed:.2f} +"
            f" {apart:.2f}; inverse {back:.2f}"
        )
    return rows


def paper() -> list[Row]:
    """Errors and times of both pipelines of 1999, on photographs of the sizes of the paper."""
    import skimage.data
    import skimage.transform

    rows = []
    for name in PHOTOS:
        photo = getattr(skimage.data, name)()[..., :3]
        for height, width in ((480, 640), (240, 320)):
            small = skimage.transform.resize(photo, (height, width), anti_aliasing=True)
            image = (255 * small + 0.5).astype(np.uint8)
            opaque = np.concatenate([image, np.full((height, width, 1), 255, np.uint8)], axis=-1)
            d4 = color.d4_inverse(color.d4_forward(opaque))
            error = np.abs(d4.astype(int) - opaque)[..., :3]
            coeffs = color.burt_forward(image)
            back = color.burt_inverse(coeffs)
            rows.append(
                {
                    "image": name,
                    "size": f"{width}×{height}",
                    "d4_rmse": color.rmse(image, d4),
                    "d4_off": float((error > 0).mean()),
                    "d4_most": int(error.max()),
                    "burt_rmsy": color.rmsy(image, coeffs),
                    "burt_rmse": color.rmse(image, back),
                    "d4_ms": best(lambda o=opaque: color.d4_inverse(color.d4_forward(o)), 3),
                    "burt_ms": best(lambda i=image: color.burt_inverse(color.burt_forward(i)), 3),
                }
            )
            row = rows[-1]
            off = f"{100 * row['d4_off']:.1f} % off by up to {row['d4_most']}"
            print(
                f"{name:22} {row['size']}: D4 RMSE {row['d4_rmse']:.3f}, {off}; Burt RMSY"
                f" {row['burt_rmsy']:.3f}, RMSE {row['burt_rmse']:.2f}"
            )
    return rows


def on_gpu() -> list[Row]:
    """8192² on a GPU and a copy, in microseconds between events; empty without a GPU."""
    try:
        import torch
    except ImportError:
        return []
    if not torch.cuda.is_available():
        return []
    import gpu

    rows = []
    for what, name, dtype in (
        ("reversible CDF 5/3", "cdf53", torch.int16),
        ("reversible CDF 9/7", "cdf97", torch.int16),
        ("reversible CDF 5/3", "cdf53", torch.int32),
        ("CDF 9/7", "cdf97", torch.float32),
    ):
        x = torch.randint(0, 256, (8192, 8192), device="cuda").to(dtype)
        floor = gpu.copied(x)
        kept = {} if dtype is torch.float32 else {"dtype": str(dtype)[6:]}
        out = undula.lwt2(x, name, **kept)
        back = torch.empty_like(x)
        there = gpu.median(
            lambda x=x, n=name, k=kept, o=out: undula.lwt2(x, n, out=o, **k), ahead=HOST_CYCLES
        )
        again = gpu.median(lambda n=name, o=out, b=back: undula.ilwt2(o, n, out=b), ahead=HOST_CYCLES)
        assert (back == x).all() or dtype is torch.float32
        rows.append(
            {"what": what, "dtype": str(dtype)[6:], "n": 8192, "copy": floor, "forward": there, "back": again}
        )
        print(
            f"{what:20} {str(dtype)[6:]:8} 8192²  copy {floor:6.1f}  forward {there:6.1f}"
            f" ({floor / there:.2f})  back {again:6.1f} ({floor / again:.2f}) µs"
        )
    image = torch.randint(0, 256, (1080, 1920, 3), device="cuda").to(torch.uint8)
    for space, wavelet in (("rct", "cdf53"), ("ict", "cdf97")):
        coeffs = color.forward(image, wavelet, 3, color=space)
        there = gpu.median(lambda s=space, w=wavelet: color.forward(image, w, 3, color=s), ahead=HOST_CYCLES)
        again = gpu.median(
            lambda c=coeffs, s=space, w=wavelet: color.inverse(c, w, color=s), ahead=HOST_CYCLES
        )
        rows.append({"what": f"1080p {space} + {wavelet}, 3 levels", "forward": there, "back": again})
        print(f"1080p {space} + {wavelet}, 3 levels: forward {there:.1f}, back {again:.1f} µs")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--save", type=Path, nargs="?", const=ROOT / "results" / "integers.json", help="save the figures"
    )
    given = parser.parse_args()
    results = {
        "machine": f"{platform.machine()}, {undula.get_num_threads()} threads",
        "date": date.today().isoformat(),
        "undula": undula.__version__,
        "transforms": transforms(),
        "colours": colours(),
        "paper": paper(),
        "gpu": on_gpu(),
    }
    if given.save:
        given.save.parent.mkdir(exist_ok=True)
        given.save.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
