"""Denoise and transform an array in an object store, on the workers of a Dask cluster.

    python job.py tcp://scheduler:8786 s3://scans

The array ``volume.zarr`` of the bucket is denoised to ``clean.zarr``, and the coefficients of that are
written to ``coefficients.zarr``. A bucket without the array gets a synthetic one, to try things out. What is
complete is not computed again. s3fs reads keys and the address of the store from the environment:
``AWS_ACCESS_KEY_ID``, ``AWS_SECRET_ACCESS_KEY`` and ``AWS_ENDPOINT_URL``.
"""

import argparse
import os
import sys
from typing import Any

import dask.array as da
import fsspec
import numpy as np
import zarr
from distributed import Client

import undula

SHAPE, CHUNKS = (128, 512, 512), (64, 256, 256)
COMPLETE = "complete"  # A small object beside the chunks of an array, written last.


def synthetic() -> Any:
    """Counted photons of a smooth object."""

    def photons(block_id: Any = None, block_info: Any = None) -> Any:
        z, y, x = np.meshgrid(
            *(np.arange(*span) for span in block_info[None]["array-location"]), indexing="ij"
        )
        light = 60 + 30 * np.sin(z / 9) * np.cos(y / 17) * np.cos(x / 23)
        return np.random.default_rng(block_id).poisson(light).astype("uint16")

    chunks = da.core.normalize_chunks(CHUNKS, SHAPE)
    return da.map_blocks(photons, chunks=chunks, dtype="uint16", meta=np.empty((0, 0, 0), "uint16"))


def create_bucket(bucket: str) -> None:
    """Create the bucket if it does not exist."""
    system, path = fsspec.url_to_fs(bucket)
    system.makedirs(path, exist_ok=True)


def is_complete(url: str) -> bool:
    """Return whether an earlier run has written all of a group."""
    system, path = fsspec.url_to_fs(f"{url}/{COMPLETE}")
    return bool(system.exists(path))


def mark_complete(url: str) -> None:
    """Record that all of a group is written."""
    with fsspec.open(f"{url}/{COMPLETE}", "wb") as file:
        file.write(b"")


def store(url: str, arrays: dict[str, Any]) -> None:
    """Write arrays with regular chunks into a group, chunk by chunk and all in one pass."""
    group = zarr.create_group(url, overwrite=True)
    targets = [
        group.create_array(name, shape=x.shape, chunks=x.chunksize, dtype=x.dtype)
        for name, x in arrays.items()
    ]
    da.store(list(arrays.values()), targets, lock=False)
    mark_complete(url)
    print(f"{url}: {sum(x.nbytes for x in arrays.values()) / 1e6:.0f} MB")


def main() -> int:
    """Run the job."""
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("scheduler")
    parser.add_argument("bucket")
    given = parser.parse_args()
    bucket = given.bucket.rstrip("/")
    create_bucket(bucket)
    with Client(given.scheduler) as client:
        client.wait_for_workers(1, timeout=float(os.environ.get("WORKER_TIMEOUT", "120")))
        if not is_complete(f"{bucket}/volume.zarr"):
            store(f"{bucket}/volume.zarr", {"counts": synthetic()})
        if not is_complete(f"{bucket}/clean.zarr"):
            counts = da.from_zarr(f"{bucket}/volume.zarr", component="counts")
            # The square root makes the noise of counted photons the same everywhere: 1.
            flat = 2 * da.sqrt(counts.astype("float32") + 0.375)
            clean = undula.denoise(flat, sigma=1.0, level=2, invariant=0)
            store(f"{bucket}/clean.zarr", {"samples": (clean / 2) ** 2 - 0.375})
        if not is_complete(f"{bucket}/coefficients.zarr"):
            samples = da.from_zarr(f"{bucket}/clean.zarr", component="samples")
            low, *details = undula.lwtn(samples, "cdf97", level=2)
            bands = {"low": low}
            for level, part in zip((2, 1), details, strict=True):
                bands |= {f"level{level}-{key}": band for key, band in part.items()}
            store(f"{bucket}/coefficients.zarr", bands)
    return 0


if __name__ == "__main__":
    sys.exit(main())
