"""Lossless codecs for 16-bit volumes: compression ratio and speed of lifting before zstd, beside blosc.

    python benchmarks/codec.py           run everything, about two minutes
    python benchmarks/codec.py --save    save the figures to benchmarks/results/codec.json

Everything runs in one thread, chunk by chunk. Speeds are megabytes of samples per second. nd-image-codecs is
measured as well where it can be imported, and so is a volume from the tests of NiBabel. The medical images of
pydicom are single slices; those that were stored with lossy JPEG 2000 are smoother than slices of a scanner.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pydicom
import scipy.ndimage
from numpy.typing import NDArray
from pydicom.data import get_testdata_file

import undula
from undula.codecs import NdLift
from undula.codecs.zigzag import folded, unfolded

ROOT = Path(__file__).parent
CHUNK = (32, 128, 128)
SLICES = {
    "CT, lossy JPEG 2000": "693_J2KI.dcm",
    "CT, lossless JPEG 2000": "J2K_pixelrep_mismatch.dcm",
    "MR slice": "examples_overlay.dcm",
    "CT slice": "CT_small.dcm",
}
Volume = NDArray[Any]
Row = dict[str, Any]


def light_sheet(photons: float) -> Volume:
    """Blurred cells in a volume of 64 × 256 × 256, with Poisson noise, an offset and the noise of reading.

    ``photons`` is what a sample has on the mean.
    """
    rng = np.random.default_rng(0)
    shape = (64, 256, 256)
    cells = np.zeros(shape)
    cells[tuple(rng.integers(0, n, 400) for n in shape)] = rng.gamma(2, 1, 400)
    blurred = scipy.ndimage.gaussian_filter(cells, (2.5, 4, 4))
    blurred += 0.5 * blurred.mean()  # background
    counts = rng.poisson(blurred * (photons / blurred.mean()))
    samples = 100 + 2 * counts + rng.normal(0, 2, shape)
    return samples.clip(0, 65535).astype(np.uint16)


def volumes() -> Iterator[tuple[str, Volume]]:
    """Volumes and slices of 16 bits that are at hand."""
    yield "light sheet, 40 photons", light_sheet(40)
    yield "light sheet, 2000 photons", light_sheet(2000)
    try:
        nibabel = importlib.import_module("nibabel")
    except ImportError:
        print("no MR volume: NiBabel cannot be imported")
    else:
        path = Path(nibabel.__file__).parent / "tests" / "data" / "example4d.nii.gz"
        scan = np.asarray(nibabel.load(path).dataobj)[..., 0]
        yield "MR volume", np.ascontiguousarray(scan.transpose(2, 1, 0))
    for name, file in SLICES.items():
        path = get_testdata_file(file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about tags that do not follow the standard
            yield name, np.ascontiguousarray(pydicom.dcmread(path).pixel_array)


def chunks_of(x: Volume) -> list[Volume]:
    """The chunks of a volume."""
    sizes = CHUNK[-x.ndim :]
    starts = itertools.product(*(range(0, n, size) for n, size in zip(x.shape, sizes, strict=True)))
    return [
        x[tuple(slice(a, a + size) for a, size in zip(start, sizes, strict=True))].copy() for start in starts
    ]


def transforms(dimensions: range, kind: str, levels: int) -> list[dict[str, Any]]:
    return [{"dimension": d, "kind": kind, "levels": levels} for d in dimensions]


Coding = tuple[Callable[[Volume], Any], Callable[[Any, Volume], Volume]]  # forward, and back like a chunk


def peer() -> Any | None:
    """The transforms of nd-image-codecs; None if it cannot be imported."""
    try:
        return importlib.import_module("nd_image_codecs._lift")
    except ImportError:
        return None


def codings(dimensions: int) -> dict[str, Coding]:
    """What is compared: functions that encode a chunk to bytes, and back."""
    blosc = numcodecs.Blosc("zstd", clevel=5, shuffle=numcodecs.Blosc.BITSHUFFLE)
    zstd = numcodecs.Zstd(level=3)
    everywhere, flat = range(dimensions), range(dimensions - 2, dimensions)
    lift = NdLift(transforms(everywhere, "lift53", 2))
    differences = NdLift(transforms(flat, "delta", 0))
    across = NdLift(transforms(range(1), "lift53", 2))

    def numbers(data: Any, dtype: Any, chunk: Volume) -> Volume:
        return np.frombuffer(data, dtype).reshape(chunk.shape)

    def lifted(compressor: Any, lifting: NdLift) -> Coding:
        return (
            lambda x: compressor.encode(lifting.encode(x)),
            lambda data, x: lifting.decode(numbers(compressor.decode(data), np.int32, x), x.dtype),
        )

    def lifted_and_folded(lifting: NdLift) -> Coding:
        return (
            lambda x: blosc.encode(folded(lifting.encode(x))),
            lambda data, x: lifting.decode(
                unfolded(numbers(blosc.decode(data), np.uint32, x), np.int32), x.dtype
            ),
        )

    table: dict[str, Coding] = {
        "zstd": (zstd.encode, lambda data, x: numbers(zstd.decode(data), x.dtype, x)),
        "blosc": (blosc.encode, lambda data, x: numbers(blosc.decode(data), x.dtype, x)),
        "delta + blosc": (
            lambda x: blosc.encode(numcodecs.Delta(x.dtype).encode(x)),
            lambda data, x: numcodecs.Delta(x.dtype).decode(numbers(blosc.decode(data), x.dtype, x)),
        ),
        "nd_lift lift53 + zstd": lifted(zstd, lift),
        "nd_lift lift53 + blosc": lifted(blosc, lift),
        "nd_lift lift53 + zigzag + blosc": lifted_and_folded(lift),
        "nd_lift lift53 first axis + zigzag + blosc": lifted_and_folded(across),
        "nd_lift delta yx + zigzag + blosc": lifted_and_folded(differences),
    }
    other = peer()
    if other is not None:
        steps = transforms(everywhere, "lift53", 2)
        table["nd_lift lift53 + zstd (nd-image-codecs)"] = (
            lambda x: zstd.encode(other.forward(x, steps)),
            lambda data, x: other.inverse(numbers(zstd.decode(data), np.int32, x), steps, x.dtype),
        )
    return table


def best(work: Callable[[], Any], runs: int) -> float:
    """Seconds, the best of several runs."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def ratios() -> list[Row]:
    """Ratio and speed of each coding for each volume."""
    rows = []
    for volume, x in volumes():
        chunks = chunks_of(x)
        megabytes = x.nbytes / 1e6
        runs = 3 if megabytes > 4 else 10
        for coding, (encode, decode) in codings(x.ndim).items():
            encoded = [encode(chunk) for chunk in chunks]
            for data, chunk in zip(encoded, chunks, strict=True):
                assert (decode(data, chunk).reshape(chunk.shape) == chunk).all(), (volume, coding)
            pairs = list(zip(encoded, chunks, strict=True))
            row = {
                "volume": volume,
                "shape": list(x.shape),
                "coding": coding,
                "ratio": x.nbytes / sum(len(data) for data in encoded),
                "encode": megabytes / best(lambda c=chunks, e=encode: [e(each) for each in c], runs),
                "decode": megabytes / best(lambda p=pairs, d=decode: [d(*each) for each in p], runs),
            }
            rows.append(row)
            print(
                f"{volume:26} {coding:44} {row['ratio']:6.2f}"
                f"  encode {row['encode']:5.0f}  decode {row['decode']:5.0f} MB/s"
            )
    return rows


def speeds() -> list[Row]:
    """Speed of the transforms alone, for a chunk of 32 × 128 × 128 samples of 16 bits."""
    x = light_sheet(40)[: CHUNK[0], : CHUNK[1], : CHUNK[2]].copy()
    rows, other = [], peer()
    for what, steps in {
        "delta, last axis": transforms(range(2, 3), "delta", 0),
        "haar, first axis, 2 levels": transforms(range(1), "haar", 2),
        "lift53, first axis, 2 levels": transforms(range(1), "lift53", 2),
        "lift53, last axis, 2 levels": transforms(range(2, 3), "lift53", 2),
        "lift53, three axes, 2 levels": transforms(range(3), "lift53", 2),
    }.items():
        lift = NdLift(steps)
        coefficients = lift.encode(x)
        megabytes = x.nbytes / 1e6
        row: Row = {
            "what": what,
            "encode": megabytes / best(lambda lift=lift: lift.encode(x), 50),
            "decode": megabytes / best(lambda lift=lift, c=coefficients: lift.decode(c, x.dtype), 50),
        }
        if other is not None:
            row["peer_encode"] = megabytes / best(lambda s=steps: other.forward(x, s), 5)
            row["peer_decode"] = megabytes / best(
                lambda s=steps, c=coefficients: other.inverse(c, s, x.dtype), 5
            )
            assert (other.forward(x, steps) == coefficients).all()
        rows.append(row)
        beside = f"  nd-image-codecs {row['peer_encode']:5.0f}, {row['peer_decode']:5.0f}" if other else ""
        print(f"{what:30} encode {row['encode']:5.0f}  decode {row['decode']:5.0f} MB/s{beside}")
    return rows


def versions() -> dict[str, str]:
    """Versions of the packages that are compared."""
    found = {"numcodecs": numcodecs.__version__}
    if peer() is not None:
        found["nd-image-codecs"] = importlib.import_module("nd_image_codecs").__version__
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--save", type=Path, nargs="?", const=ROOT / "results" / "codec.json", help="save the figures"
    )
    given = parser.parse_args()
    numcodecs.blosc.use_threads = False
    results = {
        "machine": f"{platform.machine()}, one thread",
        "date": date.today().isoformat(),
        "undula": undula.__version__,
        "versions": versions(),
        "speeds": speeds(),
        "ratios": ratios(),
    }
    if given.save:
        given.save.parent.mkdir(exist_ok=True)
        given.save.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
