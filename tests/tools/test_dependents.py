"""Tests of a package that uses PyWavelets, from its source distribution on PyPI, with Undula in its place.

``tools/dependents.py`` runs the tests of all packages, each in an environment of its own.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import urllib.error
from importlib.metadata import version
from pathlib import Path

import pytest

import undula

_spec = importlib.util.spec_from_file_location(
    "dependents", Path(__file__).parents[2] / "tools" / "dependents.py"
)
assert _spec is not None
assert _spec.loader is not None
dependents = importlib.util.module_from_spec(_spec)
sys.modules["dependents"] = dependents  # where dataclasses look for their module
_spec.loader.exec_module(dependents)
SCIKIT_IMAGE = next(each for each in dependents.DEPENDENTS if each.name == "scikit-image")


def test_tests_of_scikit_image_pass(tmp_path: Path) -> None:
    try:
        source = dependents.distribution(SCIKIT_IMAGE.name, version(SCIKIT_IMAGE.name), tmp_path, 10)
    except (urllib.error.URLError, TimeoutError) as error:
        pytest.skip(f"the tests are in the source distribution, and PyPI cannot be reached: {error}")
    tests = [str(shutil.copy(source / path, tmp_path)) for path in SCIKIT_IMAGE.tests]
    paths = os.pathsep.join([str(Path(undula.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        os.devnull,
        "--rootdir",
        str(tmp_path),
        "-q",
        "--tb=short",
    ]
    command += ["-p", "no:cacheprovider", "-p", "undula.pywt.testing", *tests]
    command += ["-k", "wavelet or sigma"]  # Cycle spinning takes as long as all others.
    environment = {**os.environ, "PYTHONPATH": paths, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed
    assert int(passed[1]) > 50
