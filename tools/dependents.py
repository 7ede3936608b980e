"""Run the tests of packages that use PyWavelets, with PyWavelets and with Undula in its place.

Each package is installed into a virtual environment of its own, in its newest release on PyPI. The tests are
taken from the source distribution of that release or, where it has none, from the repository of the package.
In the second run, a folder with a module ``pywt`` that is ``undula.pywt`` stands first in the path.

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
        Files and folders among the sources.
    options : tuple of str, optional
        Further options of pytest.
    needs : tuple of str, optional
        Further packages that the tests import.
    overrides : tuple of str, optional
        Versions that are installed whatever the package says.
    repository : str, optional
        Owner and name on GitHub, if the source distribution has no tests.
    build : bool, optional
        Whether to install the package from that repository as well.
    data : tuple of str, optional
        Files and folders among the sources that the tests read.
    program : str, optional
        A test in place of those that cannot run.
    """

    name: str
    tests: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    overrides: tuple[str, ...] = ()
    repository: str = ""
    build: bool = False
    data: tuple[str, ...] = ()
    program: str = ""


# The tests of pyradiomics download volumes. An undecimated transform by orthonormal filters, with gain √2
# along each axis, multiplies the energy of a volume by 2³.
RADIOMICS = """
import numpy as np, pytest, SimpleITK as sitk
from radiomics import featureextractor, imageoperations

@pytest.mark.parametrize("wavelet", ["haar", "db4", "coif1", "sym5"])
@pytest.mark.parametrize("shape", [(16, 18, 20), (9, 12, 15)])
def test_wavelet_images(wavelet, shape):
    x = np.random.default_rng(0).normal(size=shape)
    image, mask = sitk.GetImageFromArray(x), sitk.GetImageFromArray(np.ones(shape, "u1"))
    found = {name: each for each, name, _ in imageoperations.getWaveletImage(image, mask, wavelet=wavelet)}
    assert len(found) == 8
    bands = [sitk.GetArrayFromImage(each) for each in found.values()]
    assert {band.shape for band in bands} == {shape}
    if not any(n % 2 for n in shape):
        np.testing.assert_allclose(sum((band**2).sum() for band in bands), 8 * (x**2).sum())

def test_wavelet_features():
    x = np.random.default_rng(0).normal(size=(16, 16, 16))
    extractor = featureextractor.RadiomicsFeatureExtractor()
    extractor.disableAllImageTypes()
    extractor.enableImageTypeByName("Wavelet")
    features = extractor.execute(sitk.GetImageFromArray(x), sitk.GetImageFromArray(np.ones(x.shape, "u1")))
    energy = sum(float(features[name]) for name in features if name.endswith("firstorder_Energy"))
    np.testing.assert_allclose(energy, 8 * (x**2).sum())
"""
DEPENDENTS = (
    Dependent(
        "scikit-image",
        ("tests/skimage/restoration/test_denoise.py",),
        ("-k", "wavelet or sigma or cycle"),
    ),
    Dependent(
        "ImageHash",
        ("tests/test_whash.py",),
        needs=("six",),
        data=("tests",),
        repository="JohannesBuchner/imagehash",
    ),
    Dependent("pylops", ("pytests/test_dwts.py",)),
    Dependent(
        "sigpy",
        ("tests/test_wavelet.py", "tests/test_linop.py", "tests/mri/test_app.py"),
        ("-k", "avelet"),
        repository="mikgroup/sigpy",
    ),
    # A plugin of pytest that ODL installs needs an older release of pytest than ODL itself asks for.
    Dependent(
        "odl",
        ("src/odl/test/trafos/wavelet_test.py", "src/odl/test/trafos/backends/pywt_bindings_test.py"),
        overrides=("pytest<9",),
    ),
    Dependent(
        "modopt",
        ("tests/test_opt.py", "tests/test_signal.py"),
        ("-k", "wavelet or linear"),
        ("joblib", "pytest-cases"),
        ("pytest<9",),  # which pytest-cases needs
        data=("tests/test_helpers",),
        repository="CEA-COSMIC/ModOpt",
    ),
    Dependent(
        "algotom",
        (
            "tests/test_util/test_utility.py",
            "tests/test_prep/test_removal.py",
            "tests/test_post/test_postprocessing.py",
        ),
        ("-k", "wavelet"),
        repository="algotom/algotom",
    ),
    Dependent("mne-features", ("mne_features/tests",), ("-k", "wavelet or teager"), ("pandas",)),
    Dependent("pyradiomics", repository="AIM-Harvard/pyradiomics", build=True, program=RADIOMICS),
    Dependent(
        "tsfresh", ("tests/units/feature_extraction/test_feature_calculations.py",), ("-k", "cwt or wavelet")
    ),
)


def repository(dependent: Dependent, folder: Path) -> Path:
    """Return the folder with the tests, or with all sources, of the repository of a package."""
    target = folder / "repository"
    address = f"https://github.com/{dependent.repository}"
    options = ["--quiet", "--depth", "1", "--filter=blob:none", "--no-checkout"]
    paths = [".", ":!data"] if dependent.build else [*dependent.tests, *dependent.data]
    for command in (
        ["git", "clone", *options, address, str(target)],
        ["git", "-C", str(target), "checkout", "--quiet", "HEAD", "--", *paths],
    ):
        subprocess.run(command, check=True, timeout=TIMEOUT_S, capture_output=True, text=True)
    return target


def distribution(name: str, version: str, folder: Path, timeout: float = 60) -> Path:
    """Return the folder with the source distribution of a release, unpacked from PyPI."""
    index = f"https://pypi.org/pypi/{name}/json"
    with urllib.request.urlopen(index, timeout=timeout) as reply:
        files = json.load(reply)["releases"][version]
    archive = next(file for file in files if file["packagetype"] == "sdist")
    path = folder / archive["filename"]
    with (
        urllib.request.urlopen(urljoin(index, archive["url"]), timeout=timeout) as reply,
        path.open("wb") as file,
    ):
        shutil.copyfileobj(reply, file)
    with tarfile.open(path) as packed:
        packed.extractall(folder / "source", filter="data")
    return next((folder / "source").iterdir())


def install(dependent: Dependent, package: str, folder: Path) -> Path:
    """Return the Python of a new environment with a package, PyWavelets and Undula."""
    uv = shutil.which(
        "uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    )
    if uv is None:
        sys.exit("uv is needed; make setup installs it")
    environment, overrides = folder / "environment", folder / "overrides.txt"
    overrides.write_text("\n".join(dependent.overrides), encoding="utf-8")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(environment)], check=True)
    python = environment / "bin" / "python"
    command = [uv, "pip", "install", "--quiet", "--python", str(python), "--override", str(overrides)]
    command += [package, "pytest", "PyWavelets", *dependent.needs, str(ROOT)]
    subprocess.run(command, check=True, timeout=TIMEOUT_S, capture_output=True, text=True)
    return python


def prepare(dependent: Dependent, folder: Path) -> tuple[Path, str]:
    """Install a package and copy its tests; return the Python of its environment and the release."""
    source = repository(dependent, folder) if dependent.repository else None
    python = install(dependent, str(source) if dependent.build else dependent.name, folder)
    program = f"from importlib.metadata import version; print(version({dependent.name!r}), end='')"
    version = subprocess.run([str(python), "-c", program], check=True, capture_output=True, text=True).stdout
    if source is None:
        source = distribution(dependent.name, version, folder)
    # Only the tests are copied, so that the package comes from its wheel, where its extension modules are.
    (folder / "tests").mkdir()
    (folder / "tests" / "test_program.py").write_text(dependent.program, encoding="utf-8")
    for path in (*dependent.data, *dependent.tests):
        target = folder / "tests" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if (source / path).is_dir():
            shutil.copytree(source / path, target)
            (target / "__init__.py").touch()  # for relative imports
        else:
            shutil.copy(source / path, target)
    return python, version


def run(python: Path, dependent: Dependent, folder: Path, shim: Path | None) -> str:
    """Run the tests, and return how many passed and failed."""
    environment = {**os.environ, "PYTHONPATH": str(shim) if shim else "", "MPLBACKEND": "agg"}
    which = [str(python), "-c", "import pywt; print(pywt.dwt.__module__)"]
    module = subprocess.run(
        which, cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout
    if not module.startswith("undula." if shim else "pywt."):
        raise OSError(f"the wrong library would be tested: {module.strip()}")
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line", "-c", os.devnull]
    command += ["--rootdir", str(folder / "tests"), *dependent.options]
    command += [str(folder / "tests" / path) for path in dependent.tests or ("test_program.py",)]
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
    print("| package | release | with PyWavelets | with Undula |\n|---|---|---|---|", flush=True)
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
                python, version = prepare(dependent, folder)
                results = [version, *(run(python, dependent, folder, each) for each in (None, shim))]
            except (OSError, subprocess.SubprocessError, StopIteration) as error:
                text = getattr(error, "stderr", None) or str(error)
                results = [
                    f"not installed: {text.strip().splitlines()[-1] if text.strip() else error!r:.100}",
                    "",
                    "",
                ]
            print(f"| {dependent.name} | {' | '.join(results)} |", flush=True)


if __name__ == "__main__":
    main()
