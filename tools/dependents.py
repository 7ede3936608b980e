"""Run the tests of packages that use PyWavelets, with PyWavelets and with Undula in its place.

Each package is installed into a virtual environment of its own, in its newest release on PyPI; the tests are
taken from its source distribution. In the second run, a folder with a module ``pywt`` that is ``undula.pywt``
stands first in the path.

    python tools/dependents.py
    python tools/dependents.py pylops imagehash --folder environments
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urljoin

ROOT = Path(__file__).parents[1]
SHIM = "import sys\n\nimport undula.pywt\n\nsys.modules[__name__] = undula.pywt\n"
TIMEOUT_S = 1200


@dataclass(frozen=True)
class Dependent:
    """A package that uses PyWavelets, and those of its tests that do.

    Parameters
    ----------
    name : str
        Name on PyPI.
    tests : tuple of str
        Files in the source distribution.
    options : tuple of str, optional
        Further options of pytest.
    needs : tuple of str, optional
        Further packages that the tests import.
    program : str, optional
        A test in place of those that a source distribution does not have.
    """

    name: str
    tests: tuple[str, ...]
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    program: str = ""


HASHES = """
import imagehash, numpy as np
from PIL import Image

x, y = np.mgrid[:128, :128]
image = Image.fromarray((127 + 120 * np.sin(x / 17) * np.cos(y / 11)).astype("u1"))

def test_hashes():
    assert str(imagehash.whash(image)) == "9898986767676798"
    assert str(imagehash.whash(image, mode="db4")) == "fc47f11fc47f11fc43f31fce7f3100000c603180c6fcc7f39"
"""
LINEAR_OPERATORS = """
import numpy as np, pytest, sigpy

@pytest.mark.parametrize("wavelet", ["haar", "db4", "sym8"])
@pytest.mark.parametrize("shape", [(16,), (11, 14), (6, 7, 9)])
@pytest.mark.parametrize("axes", [None, (-1,)])
def test_wavelets(shape, wavelet, axes):
    x = np.random.default_rng(0).normal(size=shape)
    operator = sigpy.linop.Wavelet(shape, wave_name=wavelet, axes=axes)
    np.testing.assert_allclose(operator.H(operator(x)), x, atol=1e-10)
"""
OPERATORS = """
import numpy as np, pytest
from modopt.opt.linear.wavelet import CPUWaveletTransform

@pytest.mark.parametrize("mode", ["periodization", "symmetric", "zero"])
def test_wavelets(mode):
    x = np.random.default_rng(0).normal(size=(64, 64))
    operator = CPUWaveletTransform("db4", (64, 64), level=2, mode=mode)
    np.testing.assert_allclose(operator.adj_op(operator.op(x)), x, atol=1e-10)
"""
DECOMPOSITIONS = """
import numpy as np
from algotom.util import utility

def test_wavelets():
    x = np.random.default_rng(0).normal(size=(64, 50))
    coeffs = utility.apply_wavelet_decomposition(x, "db9", level=2)
    np.testing.assert_allclose(utility.apply_wavelet_reconstruction(coeffs, "db9"), x, atol=1e-10)
"""
DEPENDENTS = (
    Dependent(
        "scikit-image", ("tests/skimage/restoration/test_denoise.py",), ("-k", "wavelet or sigma or cycle")
    ),
    Dependent("ImageHash", (), program=HASHES),
    Dependent("pylops", ("pytests/test_dwts.py",)),
    Dependent("sigpy", (), program=LINEAR_OPERATORS),
    Dependent("odl", ("src/odl/test/trafos/wavelet_test.py",), (), ("pytest<8", "scipy", "setuptools<80")),
    Dependent("modopt", (), needs=("joblib",), program=OPERATORS),
    Dependent("algotom", (), program=DECOMPOSITIONS),
    Dependent("mne-features", ("mne_features/tests",), ("-k", "wavelet or teager"), ("pandas",)),
    Dependent("pyradiomics", ("tests",), ("-k", "wavelet or imageoperations")),
    Dependent(
        "tsfresh", ("tests/units/feature_extraction/test_feature_calculations.py",), ("-k", "cwt or wavelet")
    ),
)


def sources(name: str, folder: Path) -> Path:
    """Return the folder with the newest source distribution of a package."""
    index = f"https://pypi.org/pypi/{name}/json"
    with urllib.request.urlopen(index, timeout=60) as reply:
        files = json.load(reply)["urls"]
    archive = next(file for file in files if file["packagetype"] == "sdist")
    path = folder / archive["filename"]
    with (
        urllib.request.urlopen(urljoin(index, archive["url"]), timeout=300) as reply,
        path.open("wb") as file,
    ):
        shutil.copyfileobj(reply, file)
    with tarfile.open(path) as packed:
        packed.extractall(folder / "source", filter="data")
    return next((folder / "source").iterdir())


def install(dependent: Dependent, folder: Path) -> Path:
    """Return the Python of a new environment with a package, PyWavelets and Undula."""
    uv = shutil.which(
        "uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    )
    if uv is None:
        sys.exit("uv is needed; make setup installs it")
    environment = folder / "environment"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(environment)], check=True)
    python = environment / "bin" / "python"
    packages = [dependent.name, "pytest", "PyWavelets", *dependent.needs]
    command = [uv, "pip", "install", "--quiet", "--python", str(python), *packages, str(ROOT)]
    subprocess.run(command, check=True, timeout=TIMEOUT_S, capture_output=True, text=True)
    return python


def run(python: Path, dependent: Dependent, source: Path, folder: Path, shim: Path | None) -> str:
    """Run the tests, and return how many passed and failed."""
    # Only the tests are copied, so that the package comes from its wheel, where its extension modules are.
    tests = []
    if dependent.program:
        tests.append(str(folder / "tests" / "test_program.py"))
        (folder / "tests").mkdir(exist_ok=True)
        Path(tests[0]).write_text(dependent.program, encoding="utf-8")
    for test in dependent.tests:
        target = folder / "tests" / test
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            if (source / test).is_dir():
                shutil.copytree(source / test, target)
                (target / "__init__.py").touch()  # for relative imports
            else:
                shutil.copy(source / test, target)
        tests.append(str(target))
    environment = {**os.environ, "PYTHONPATH": str(shim) if shim else "", "MPLBACKEND": "agg"}
    which = [str(python), "-c", "import pywt; print(pywt.dwt.__module__)"]
    module = subprocess.run(
        which, cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout
    if not module.startswith("undula." if shim else "pywt."):
        raise OSError(f"the wrong library would be tested: {module.strip()}")
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line", "-c", os.devnull]
    command += ["--rootdir", str(folder / "tests"), *dependent.options, *tests]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    (folder / f"{'undula' if shim else 'pywavelets'}.log").write_text(
        done.stdout + done.stderr, encoding="utf-8"
    )
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout)}
    if not counts:
        return f"did not run (exit status {done.returncode})"
    return ", ".join(
        f"{counts.get(word, 0)} {word}" for word in ("passed", "failed", "error") if word in counts
    )


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", help="packages; all if none is named")
    parser.add_argument("--folder", type=Path, help="keep environments and logs there")
    arguments = parser.parse_args()
    chosen = [
        d for d in DEPENDENTS if not arguments.names or d.name.lower() in map(str.lower, arguments.names)
    ]
    print("| package | with PyWavelets | with Undula |\n|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        base = (arguments.folder or Path(temporary)).resolve()
        shim = base / "shim"
        shim.mkdir(parents=True, exist_ok=True)
        (shim / "pywt.py").write_text(SHIM, encoding="utf-8")
        for dependent in chosen:
            folder = base / dependent.name
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            try:
                source, python = sources(dependent.name, folder), install(dependent, folder)
                results = [run(python, dependent, source, folder, each) for each in (None, shim)]
            except (OSError, subprocess.SubprocessError, StopIteration) as error:
                text = getattr(error, "stderr", None) or str(error)
                results = [
                    f"not installed: {text.strip().splitlines()[-1] if text.strip() else error!r:.100}",
                    "",
                ]
            print(f"| {dependent.name} | {' | '.join(results)} |", flush=True)


if __name__ == "__main__":
    main()
