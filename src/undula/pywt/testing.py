"""PyWavelets' own tests, run with Undula in its place; they come with PyWavelets, which has to be installed.

This module is the plugin of pytest under which ``pywt`` is Undula. PyWavelets' tests also read its private
modules. Those that hold public names lead to Undula here; ``pywt._pytest``, which has the numbers that Matlab
computed, is PyWavelets' own file.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from numpy.exceptions import AxisError

from ..errors import ArgumentError

__all__ = ["EXCEPTIONS", "folder", "run", "run_tests"]

# Tests that cannot pass, and why.
EXCEPTIONS = {
    "test__pywt.py::test_wavelet_repr": "evaluates a representation that names a private module",
    "test__pywt.py::test_ContinuousWavelet_repr": "likewise",
    "test_swt.py::test_swtn_axes": "ends with calls of a private function of an extension module",
    "test_wavelet.py::test_custom_wavelet": "expects that nothing is known about a user's filters",
    "test_doc.py": "reads pages of documentation that PyWavelets does not install",
}


def folder() -> Path:
    """Return the folder of the installed PyWavelets; an error if there is none."""
    # While Undula stands for PyWavelets, only the folders of packages lead to it.
    for place in sys.path:
        if (Path(place) / "pywt" / "_pytest.py").is_file():
            return Path(place) / "pywt"
    raise ImportError("PyWavelets, whose tests these are, is not installed; run: pip install PyWavelets")


def run(options: Sequence[str], files: Sequence[str], **arguments: Any) -> subprocess.CompletedProcess[str]:
    """Run files of PyWavelets' tests in a new process in which ``pywt`` is Undula.

    Parameters
    ----------
    options : sequence of str
        Options of pytest.
    files : sequence of str
        Names of files, or of tests in them as pytest writes them; all files if there are none.
    **arguments
        Of :func:`subprocess.run`.
    """
    tests = folder() / "tests"
    paths = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    # Neither the caller's settings nor the conftest of PyWavelets, which imports PyWavelets, apply.
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(tests), "-p", __name__]
    command += ["--confcutdir", str(tests), "-p", "no:cacheprovider", "-q", *options]
    # pytest starts in half the time without the plugins that are installed.
    environment = {**os.environ, "PYTHONPATH": paths, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    where = [str(tests / file) for file in files] or [str(tests)]
    return subprocess.run([*command, *where], cwd=tests, env=environment, text=True, check=False, **arguments)


def run_tests(
    label: str = "fast",
    verbose: int = 1,
    extra_argv: Sequence[str] | None = None,
    doctests: bool = False,
    coverage: bool = False,
    durations: int = -1,
    tests: Sequence[str] | None = None,
) -> bool:
    """Run PyWavelets' own tests with Undula in its place; PyWavelets and pytest have to be installed.

    Tests of private modules and of documentation, which :data:`undula.pywt.testing.EXCEPTIONS` names, are
    left out.

    Parameters
    ----------
    label : str, default "fast"
        ``"fast"`` leaves out tests that PyWavelets marks as slow, ``"full"`` runs all, and anything else is
        an expression of marks.
    verbose : int, default 1
        How much is printed, from 1 to 3.
    extra_argv : sequence of str, optional
        Further options of pytest.
    doctests, coverage : bool, default False
        PyWavelets has no doctests here, and the coverage of its sources would say nothing: True is refused.
    durations : int, default -1
        How many of the slowest tests are listed; 0 for all, and a negative number for none.
    tests : sequence of str, optional
        Names of test files, such as ``"test_dwt_idwt.py"``. The default is all files.

    Returns
    -------
    bool
        Whether all tests passed.
    """
    if doctests or coverage:
        raise ArgumentError("doctests and coverage are not supported; leave them False")
    options = [f"--deselect={name}" for name in EXCEPTIONS]
    if verbose > 1:
        options.append("-" + "v" * verbose)
    if label != "full":
        options += ["-m", "not slow" if label == "fast" else label]
    if durations >= 0:
        options.append(f"--durations={durations}")
    return run([*options, *(extra_argv or ())], tests or ()).returncode == 0


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
    spec = importlib.util.spec_from_file_location("pywt._pytest", folder() / "_pytest.py")
    assert spec is not None
    assert spec.loader is not None
    helpers = sys.modules["pywt._pytest"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(helpers)


def pytest_configure(config: Any) -> None:
    """Replace PyWavelets; not on import, since this module is also imported to start the tests."""
    config.addinivalue_line("markers", "slow: PyWavelets' mark of slow tests")
    package = sys.modules[__name__.rpartition(".")[0]]
    public = {name: getattr(package, name) for name in package.__all__}
    sys.modules["pywt"] = package
    _module("_extensions")
    _module("_extensions._pywt", **public)
    _module("_extensions._swt", swt_axis=_swt_axis)
    _module("_dwt", **public)
    _module("_utils", AxisError=AxisError)
    _load_pytest_helpers()
