"""PyWavelets' own tests, unmodified from its wheel, run with Undula in its place.

The plugin ``drop_in`` makes ``pywt`` Undula. A test is left out only if it is named here.
"""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import undula
import undula.pywt
from cases import THOROUGH

_spec = importlib.util.find_spec("pywt")
assert _spec is not None
assert _spec.origin is not None
FOLDER = Path(_spec.origin).parent / "tests"
FILES = sorted(path.name for path in FOLDER.glob("test_*.py"))

# Tests that cannot pass, and why.
EXCEPTIONS = {
    "test__pywt.py::test_wavelet_repr": "evaluates a representation that names a private module",
    "test__pywt.py::test_ContinuousWavelet_repr": "likewise",
    "test_swt.py::test_swtn_axes": "ends with calls of a private function of an extension module",
    "test_wavelet.py::test_custom_wavelet": "expects that nothing is known about a user's filters",
}
# Tests that take a minute, since they transform tens of thousands of lines of different lengths.
SLOW = ["test_perfect_reconstruction.py::test_perfect_reconstruction"]


def run_file(name: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run a file of PyWavelets' tests with Undula as ``pywt``."""
    source, plugins = Path(undula.__file__).parents[1], Path(__file__).parent
    paths = os.pathsep.join([str(source), str(plugins), os.environ.get("PYTHONPATH", "")])
    # Neither the settings of this project nor the conftest of PyWavelets, which imports PyWavelets, apply.
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(FOLDER), "-p", "drop_in"]
    command += ["--confcutdir", str(FOLDER), "-p", "no:cacheprovider", "-q", "--tb=short", "--no-header"]
    return subprocess.run(
        [*command, *options, str(FOLDER / name)],
        cwd=FOLDER,
        env={
            **os.environ,
            "PYTHONPATH": paths,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },  # starts in half the time
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in FILES if name != "test_doc.py"])
def test_tests_of_pywavelets_pass(name: str) -> None:
    left_out = [*EXCEPTIONS, *([] if THOROUGH else SLOW)]
    done = run_file(name, *(f"--deselect={test}" for test in left_out if test.startswith(f"{name}::")))
    passed = re.search(r"(\d+) passed", done.stdout)
    if done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED:
        pytest.skip("its only test is slow")
    assert done.returncode == 0, done.stdout + done.stderr
    assert passed


def test_the_exceptions_are_few_and_needed() -> None:
    assert len(EXCEPTIONS) <= 6
    tests = {
        f"{name}::{test}"
        for name in FILES
        for test in re.findall(r"^def (test_\w+)", (FOLDER / name).read_text(encoding="utf-8"), re.M)
    }
    assert {*EXCEPTIONS, *SLOW} <= tests
    done = run_file("test__pywt.py", "-k", "test_wavelet_repr")
    assert "1 failed" in done.stdout


def test_names_are_those_of_pywavelets() -> None:
    import pywt

    assert set(undula.pywt.__all__) == set(pywt.__all__)
    assert dir(undula.pywt)[-3:] == ["waverec", "waverec2", "waverecn"]
    for name in set(undula.pywt.__all__) - {"data", "centrfrq", "intwave", "scal2frq"}:
        assert getattr(undula.pywt, name) is getattr(undula, name)
    with pytest.raises(AttributeError, match="no attribute 'denoise'"):
        _ = undula.pywt.denoise


def test_programs_run_unchanged() -> None:
    program = (
        "import sys, undula.pywt; sys.modules['pywt'] = undula.pywt\n"
        "import pywt, pywt.data\n"
        "from pywt import *\n"
        "from pywt import Wavelet, dwt2\n"
        "assert dwt2 is pywt.dwt2 and wavedec2.__module__.startswith('undula.')\n"
        "assert tuple(map(int, pywt.__version__.split('.'))) >= (1, 1, 0)\n"
        "assert pywt.version.version == pywt.__version__\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
