"""The backend of the page "Add a backend", made from the text of the page."""

import ctypes
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import undula
from undula.engines import base
from undula.engines.gpu.emit.dialect import OPENCL
from undula.engines.gpu.engine import DeviceEngine
from undula.engines.gpu.launches import DeviceLimits
from undula.engines.gpu.strategies import STRATEGIES
from undula.errors import KernelError, MissingDeviceError

PAGE = Path(__file__).parents[2] / "docs" / "developing" / "add-backend.md"
# What the page says that it omits.
IMPORTS = {
    "ctypes": ctypes, "shutil": shutil, "subprocess": subprocess, "tempfile": tempfile, "replace": replace,
    "cache": cache, "np": np, "OPENCL": OPENCL, "DeviceEngine": DeviceEngine, "DeviceLimits": DeviceLimits,
    "KernelError": KernelError, "MissingDeviceError": MissingDeviceError,
}  # fmt: skip


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> str:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    dialect, runtime, entry = re.findall(r"```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    module = ModuleType("undula.engines.c.runtime")
    vars(module).update(IMPORTS)
    exec(dialect + runtime, vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    entries = eval(f"{{{entry}}}", vars(base).copy())
    for name, engine in entries.items():
        monkeypatch.setitem(base.ENGINES, name, engine)
    monkeypatch.setattr(base, "BACKENDS", (*base.BACKENDS, *entries))
    return next(iter(entries))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_documented_backend_runs_every_strategy(backend: str, strategy: str) -> None:
    x = np.random.default_rng(0).random((40, 33, 32), np.float32)  # All levels of a batch are one launch.
    plan = undula.Plan(
        x.shape, "cdf53", axes=(1, 2), level=2, dtype="float32", backend=backend, strategy=strategy
    )
    coeffs = plan.forward(x)
    np.testing.assert_allclose(coeffs[0], undula.wavedec2(x, "cdf53", level=2)[0], atol=1e-5)
    np.testing.assert_allclose(plan.inverse(coeffs), x, atol=1e-5)


def test_work_items_of_the_documented_backend_may_return_early(backend: str) -> None:
    x = np.random.default_rng(0).random((3, 700), np.float32)  # Groups have lanes for more lines.
    coeffs = undula.wavedec(x, "db2", level=2, backend=backend)
    for band, expected in zip(coeffs, undula.wavedec(x, "db2", level=2), strict=True):
        np.testing.assert_allclose(band, expected, atol=1e-5)
