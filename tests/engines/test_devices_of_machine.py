"""Which devices a machine has, and which of them are unusable, because they cannot run a kernel."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import undula
from undula.engines import base, devices
from undula.engines.base import ENGINES, EngineEntry
from undula.engines.gpu.opencl import runtime
from undula.engines.reference import ReferenceEngine

NO_OPTION = "-no-such-option"  # No compiler of OpenCL builds kernels with it.


def test_devices_run_transforms_and_unusable_ones_do_not() -> None:
    usable, unusable = undula.devices(), undula.unusable_devices()
    assert usable.keys().isdisjoint(unusable)
    x = np.arange(64.0).reshape(8, 8)
    expected = undula.wavedec2(x, "db2", level=1)[0]
    for name in usable:
        np.testing.assert_allclose(undula.wavedec2(x, "db2", level=1, backend=name)[0], expected)
    for name, reason in unusable.items():
        assert "\n" not in reason
        with pytest.raises(undula.DeviceError):
            undula.wavedec2(x, "db2", level=1, backend=name)


class Broken(ReferenceEngine):
    """A device that fails its first kernel."""

    def check_device(self) -> None:
        raise undula.KernelError("stream", "int x\nint y", "unknown target\nCPU 'generic'")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that adds the backend "two", with two devices, to those of the machine."""

    def add(*engines: type[ReferenceEngine]) -> None:
        module: Any = ModuleType("undula.engines.two")
        module.names = lambda: [engine.__name__ for engine in engines]
        module.engine = lambda number: engines[
            devices.first_usable("two", range(2)) if number is None else number
        ]()
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(ENGINES, "two", EngineEntry("two", numbered=True))
        monkeypatch.setattr(base, "BACKENDS", ("auto", *ENGINES))

    yield add
    base._engine.cache_clear()
    devices.failure.cache_clear()


def test_a_broken_device_is_no_default(machine: Any) -> None:
    machine(Broken, ReferenceEngine)
    assert "two:0" not in undula.devices()
    assert undula.devices()["two:1"] == "ReferenceEngine"
    assert undula.unusable_devices()["two:0"] == "Broken: its compiler fails: unknown target CPU 'generic'"
    assert type(base.engine("two")) is ReferenceEngine
    x = np.arange(16.0)
    np.testing.assert_allclose(undula.dwt(x, "db2", backend="two")[0], undula.dwt(x, "db2")[0])


def test_without_any_usable_device_the_error_has_the_reasons(machine: Any) -> None:
    machine(Broken, Broken)
    with pytest.raises(undula.MissingDeviceError, match=r"'two' can be used .*two:0: its .*two:1: its"):
        undula.dwt([1.0, 2.0], "haar", backend="two")
    assert "cpu" in undula.devices()


def test_a_driver_that_fails_is_listed(machine: Any) -> None:
    def fails() -> list[str]:
        raise RuntimeError("the driver\nis too old")

    machine(Broken, Broken)
    sys.modules["undula.engines.two"].names = fails  # type: ignore[attr-defined]
    assert undula.unusable_devices()["two"] == "its driver does not work: the driver is too old"
    assert "cpu" in undula.devices()


def test_memory_that_others_use_now_makes_no_device_unusable(machine: Any) -> None:
    class Full(ReferenceEngine):
        def check_device(self) -> None:
            raise undula.OutOfMemoryError("no memory is left")

    machine(Full, ReferenceEngine)
    assert "two:0" in undula.devices()


USE_BROKEN_DEVICES = """
import contextlib, io, json, sys
import undula
from undula.cli import main

def told(*arguments):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        status = main(list(arguments))
    return status, out.getvalue() + err.getvalue()

folder = sys.argv[1]
result = {"devices": list(undula.devices()), "unusable": undula.unusable_devices()}
result["info"] = told("info")
result["experiments"] = told("experiments", "schemes/table-2", "--quick", "--output", f"{folder}/all")
result["chosen"] = told(
    "experiments", "schemes/table-2", "--quick", "--device", "opencl:0", "--output", f"{folder}/one"
)
print(json.dumps(result))
"""


def test_a_compiler_that_fails_stops_nothing_but_its_devices(tmp_path: Path) -> None:
    runtime.names()  # raises an error where no driver of OpenCL is
    done = subprocess.run(
        [sys.executable, "-c", USE_BROKEN_DEVICES, str(tmp_path)],
        env=os.environ | {"PYOPENCL_BUILD_OPTIONS": NO_OPTION},
        capture_output=True,
        text=True,
        check=True,
    )
    result = json.loads(done.stdout)
    assert "cpu" in result["devices"]
    assert not any(name.startswith("opencl") for name in result["devices"])
    assert NO_OPTION in result["unusable"]["opencl:0"]
    status, text = result["info"]
    assert status == 0
    assert "unusable: " in text
    assert "device opencl:0" in text
    assert "none: no device of backend 'opencl' can be used" in text
    assert result["experiments"][0] == 0, result["experiments"][1]
    assert (tmp_path / "all" / "report.html").exists()
    status, text = result["chosen"]
    assert status == 1
    assert "device 'opencl:0' cannot be used: its compiler fails" in text
    assert not (tmp_path / "one" / "results.json").exists()


def test_plain_calls_on_the_cpu_ask_no_device() -> None:
    code = (
        "import sys, numpy as np, undula; undula.wavedec2(np.ones((16, 16)), 'db2');"
        "undula.denoise(np.ones((16, 16)));"
        "assert not {'pyopencl', 'undula.engines.gpu.opencl.runtime', 'cuda.core'} & sys.modules.keys();"
        "from undula.engines.devices import failure; assert not failure.cache_info().misses"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
