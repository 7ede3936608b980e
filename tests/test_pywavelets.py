"""PyWavelets' own tests, unmodified from its wheel, run with Undula in its place.

The plugin ``undula.pywt.testing`` makes ``pywt`` Undula. A test is left out only if it is named there.
"""

import re
import subprocess
import sys
from collections.abc import Sequence

import pytest

import undula
import undula.pywt
from cases import THOROUGH
from undula.pywt.testing import EXCEPTIONS, folder, run

FOLDER = folder() / "tests"
FILES = sorted(path.name for path in FOLDER.glob("test_*.py"))
# Tests that transform thousands of arrays; other tests call the same functions with fewer.
SLOW = [
    "test_perfect_reconstruction.py::test_perfect_reconstruction",
    "test_multilevel.py::test_wavedecn_coeff_reshape_even",
    "test_multilevel.py::test_waverec2_all_wavelets_modes",
    "test_multilevel.py::test_waverecn_all_wavelets_modes",
    "test_swt.py::test_swt2_iswt2_integration",
]
SLOW_FILES = ["test_perfect_reconstruction.py"]  # have no other tests


def run_files(names: Sequence[str], *options: str) -> subprocess.CompletedProcess[str]:
    """Run files of PyWavelets' tests with Undula as ``pywt``."""
    return run(["--tb=short", "--no-header", *options], names, capture_output=True)


@pytest.mark.thorough
def test_tests_of_pywavelets_pass() -> None:
    """One process runs all files, because it takes longer to start than most files."""
    left_out = {*EXCEPTIONS, *([] if THOROUGH else (*SLOW, *SLOW_FILES))}
    names = [name for name in FILES if name not in left_out]
    done = run_files(names, "-rp", *(f"--deselect={test}" for test in left_out))
    assert done.returncode == 0, done.stdout + done.stderr
    for name in names:
        assert re.search(rf"^PASSED .*{name}::", done.stdout, re.M), f"no test of {name} has passed"


def test_the_exceptions_are_few_and_needed() -> None:
    assert len(EXCEPTIONS) <= 6
    tests = {
        f"{name}::{test}"
        for name in FILES
        for test in re.findall(r"^def (test_\w+)", (FOLDER / name).read_text(encoding="utf-8"), re.M)
    }
    assert {*EXCEPTIONS, *SLOW} <= tests | {*FILES}
    done = run_files(["test__pywt.py"], "-k", "test_wavelet_repr")
    assert "1 failed" in done.stdout


def test_the_tests_can_be_run_by_name(capfd: pytest.CaptureFixture[str]) -> None:
    assert undula.pywt.test(tests=["test_deprecations.py"], extra_argv=["-k", "intwave"])
    assert not undula.pywt.test(tests=["test_deprecations.py"], extra_argv=["-k", "no such test"])
    assert "1 passed" in capfd.readouterr().out
    with pytest.raises(undula.ArgumentError, match="leave them False"):
        undula.pywt.test(doctests=True)


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
