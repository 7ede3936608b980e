"""Kernels of undecimated transforms for two axes: their results, and when they are used."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import undula
from cases import parametrize_some
from comparing import TOLERANCE, flat, noise, reference
from undula.engines.base import Knobs
from undula.engines.gpu.emit import CUDA
from undula.engines.gpu.launches import DeviceLimits
from undula.engines.gpu.strategies import UNDECIMATED, Target
from undula.lowering.axis import AxisOp
from undula.lowering.spec import Task

NAMES = ("haar", "db4", "db10", "bior2.2", "rbio3.1")
DTYPES = ("f4", "c8", "f2", "f8")
LEVELS = (0, 2, 4, 1)  # Taps are 1, 4, 16 and 2 samples apart.
# Each of these has its own kernels, which take time to compile.
KERNELS = [
    (name, mode, DTYPES[k % 4], LEVELS[k // 4 % 4])
    for k, (name, mode) in enumerate(product(NAMES, undula.MODES))
]
EACH_MODE = [KERNELS[(k % len(NAMES)) * len(undula.MODES) + k] for k in range(len(undula.MODES))]


def assert_near(mine: Any, theirs: Any, source: Any) -> None:
    """The results of a source are those of a higher precision, relative to the largest number of both."""
    dtype = flat(source)[0].dtype
    scale = max(float(np.abs(part).max()) for part in (*flat(source), *flat(theirs)))
    tolerance = 10 * {**TOLERANCE, "float16": 3e-4}[dtype.name]
    for part, expected in zip(flat(mine), flat(theirs), strict=True):
        assert part.dtype == dtype
        np.testing.assert_allclose(part, expected, rtol=0, atol=tolerance * scale)


def leaves_range(results: Any, dtype: Any) -> bool:
    """Return whether a dtype cannot hold results: lines that are extrapolated far exceed float16."""
    return max(float(np.abs(part).max()) for part in flat(results)) > float(np.finfo(dtype).max)


def check(target: str, x: Any, name: str, level: int, **options: Any) -> None:
    """Compare one level, forward and back, with the reference."""
    wide = np.result_type(x, "f8")
    theirs = reference.swtn(x.astype(wide), name, 1, level, **options)
    if leaves_range(theirs, x.dtype):
        return
    mine = undula.swtn(x, name, 1, level, **options, backend=target)
    assert_near(mine, theirs, x)
    # Reversed bands are not the transform of anything.
    bands = [{key: band[::-1, ::-1].copy() for key, band in mine[0].items()}]
    theirs = reference.iswtn(
        [{key: band.astype(wide) for key, band in bands[0].items()}], name, **options, start_level=level
    )
    if leaves_range(theirs, x.dtype):
        return
    back = undula.iswtn(bands, name, **options, start_level=level, backend=target)
    assert_near(back, theirs, bands)


@parametrize_some(("name", "mode", "dtype", "level"), KERNELS, EACH_MODE)
@settings(max_examples=4)
@given(planes=st.integers(1, 2), rows=st.integers(1, 30), columns=st.integers(1, 20))
def test_any_plane(
    target: str, name: str, mode: str, dtype: str, level: int, planes: int, rows: int, columns: int
) -> None:
    """Also planes that are smaller than the dilated filters."""
    check(target, noise(planes, rows, columns, dtype=dtype), name, level, mode=mode, axes=(1, 2))


@pytest.mark.parametrize(("shape", "level"), [((141, 400), 1), ((70, 50, 3), 0), ((81, 90), 6)])
def test_many_strips_and_tiles(target: str, shape: tuple[int, ...], level: int) -> None:
    check(target, noise(*shape, dtype="f4"), "db2", level, mode="periodization", axes=(0, 1))


def test_axes_that_differ(target: str) -> None:
    x = noise(21, 26, dtype="f4")
    wavelets, modes = ["haar", "db3"], ["smooth", "periodization"]
    mine = undula.swtn(x, wavelets, 1, 1, mode=modes, backend=target)
    assert_near(mine, reference.swtn(x.astype("f8"), wavelets, 1, 1, mode=modes), x)
    assert_near(undula.iswtn(mine, wavelets, mode=modes, start_level=1, backend=target), x, mine)


@pytest.mark.parametrize(
    ("name", "length", "dilation", "items", "fits"),
    [
        ("db10", 100, 64, 256, True),
        ("db11", 100, 1, 256, False),
        ("db10", 100, 1, 128, False),
        ("haar", 2**29, 1, 256, False),
        ("haar", 100, 2**28, 256, False),
    ],
)
def test_what_one_pass_can_transform(name: str, length: int, dilation: int, items: int, fits: bool) -> None:
    """Filters have to fit into registers, tiles into groups, and places into 32 bits."""
    target = Target(CUDA, DeviceLimits(items=items), "auto", "auto", Knobs())
    along = AxisOp(undula.Wavelet(name), "periodization", length).undecimated(dilation)
    down = AxisOp(undula.Wavelet("haar"), "periodization", 8).undecimated()
    assert UNDECIMATED.fits([Task(0, down), Task(1, along)], "float32", target) == fits
