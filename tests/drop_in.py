"""A plugin of pytest under which ``pywt`` is Undula, so that PyWavelets' own tests test Undula.

PyWavelets' tests also read private modules of PyWavelets. Those that hold public names lead to Undula here;
``pywt._pytest``, which has the numbers that Matlab computed, is PyWavelets' own file.
"""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from numpy.exceptions import AxisError

import undula.pywt

_spec = importlib.util.find_spec("pywt")
assert _spec is not None
assert _spec.origin is not None
PYWAVELETS = Path(_spec.origin).parent


def _module(name: str, **contents: object) -> None:
    """Add a private module to ``pywt``."""
    module = ModuleType(f"pywt.{name}")
    vars(module).update(contents)
    sys.modules[module.__name__] = module
    parent, _, child = module.__name__.rpartition(".")
    setattr(sys.modules[parent], child, module)


def _swt_axis(*_: object, **__: object) -> None:
    raise NotImplementedError("swt_axis is private to PyWavelets")


def _load_pytest_helpers() -> None:
    spec = importlib.util.spec_from_file_location("pywt._pytest", PYWAVELETS / "_pytest.py")
    assert spec is not None
    assert spec.loader is not None
    helpers = sys.modules["pywt._pytest"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(helpers)


def pytest_configure(config: pytest.Config) -> None:
    """Replace PyWavelets; not on import, since pytest imports this module to look for examples."""
    config.addinivalue_line("markers", "slow: PyWavelets' mark of slow tests")
    public = {name: getattr(undula.pywt, name) for name in undula.pywt.__all__}
    sys.modules["pywt"] = undula.pywt
    _module("_extensions")
    _module("_extensions._pywt", **public)
    _module("_extensions._swt", swt_axis=_swt_axis)
    _module("_dwt", **public)
    _module("_utils", AxisError=AxisError)
    _load_pytest_helpers()
