"""Transforms and filters on a cluster of processes, one of which is killed in the middle."""

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import undula
from chunks import samples

distributed = pytest.importorskip("distributed", reason="Dask's scheduler is not installed")
da = pytest.importorskip("dask.array", reason="Dask is not installed")


@pytest.fixture(scope="module")
def client(cluster: Any) -> Iterator[Any]:
    with distributed.Client(cluster) as client:
        yield client


def slow_image(seconds: float) -> Any:
    meta = np.empty((0, 0), np.float32)
    return da.map_blocks(
        samples, chunks=((100,) * 4, (90,) * 4), dtype=np.float32, meta=meta, seconds=seconds
    )


def process_of_a_worker(client: Any) -> int:
    """The process of one of the workers."""
    return int(next(iter(client.run(os.getpid).values())))


@pytest.mark.parametrize("killed", [False, True], ids=["", "killed"])
def test_results_are_those_in_memory(client: Any, killed: bool) -> None:
    lazy = slow_image(0.1 if killed else 0.0)
    x = lazy.compute(scheduler="sync") if not killed else slow_image(0.0).compute(scheduler="sync")
    coeffs = undula.wavedec2(lazy, "bior4.4", level=3)
    results = client.compute(
        [coeffs[0], coeffs[-1][2], undula.waverec2(coeffs, "bior4.4"), undula.denoise(lazy)]
    )
    if killed:
        time.sleep(0.5)
        os.kill(process_of_a_worker(client), signal.SIGKILL)
    low, diagonal, again, denoised = client.gather(results)
    expected = undula.wavedec2(x, "bior4.4", level=3)
    np.testing.assert_array_equal(low, expected[0])
    np.testing.assert_array_equal(diagonal, expected[-1][2])
    np.testing.assert_array_equal(again, undula.waverec2(expected, "bior4.4"))
    np.testing.assert_array_equal(denoised, undula.denoise(x))


def test_errors_of_tasks_reach_the_caller(client: Any) -> None:
    with pytest.raises(undula.ArgumentError, match=r"above zero, got 0"):
        undula.despeckle(da.zeros((64, 64), chunks=32)).compute(scheduler=client)
