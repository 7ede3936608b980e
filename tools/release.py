"""Build the sdist and the wheel, check them, and run the examples of the documentation from both.

Each is installed in an empty environment.

``python tools/release.py build install`` does both; the workflow of releases does them on different machines.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"


def run(*command: str | Path, folder: Path = ROOT) -> None:
    """Run a command with no way to import this repository; stop if it fails."""
    print("$", *(Path(part).name if part is command[0] else part for part in command), flush=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run(command, cwd=folder, env=environment, check=True)


def environment(folder: Path, *packages: str | Path) -> Path:
    """Create an environment with packages, and return the folder of its commands."""
    venv.create(folder, with_pip=True)
    commands = folder / ("Scripts" if sys.platform == "win32" else "bin")
    run(commands / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return commands


def build() -> None:
    """Build both distributions in ``dist``, the wheel from the sdist, and check metadata and contents."""
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        commands = environment(Path(folder), "build", "twine", "check-wheel-contents")
        run(commands / "python", "-m", "build", "--outdir", DIST)
        run(commands / "twine", "check", "--strict", *DIST.iterdir())
        run(commands / "check-wheel-contents", *DIST.glob("*.whl"))


def install() -> None:
    """Install each distribution in an empty environment, and run the command and the examples."""
    distributions = sorted(DIST.glob("undula-*"))
    if len(distributions) != 2:
        raise SystemExit(f"expected an sdist and a wheel in {DIST}; run: python tools/release.py build")
    for distribution in distributions:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            # Only the test and its pages are copied: nothing but the installed package can be imported.
            for name in ("tests/test_project.py", "README.md", "docs/overview.md"):
                (folder / name).parent.mkdir(exist_ok=True)
                shutil.copy(ROOT / name, folder / name)
            commands = environment(folder / "venv", f"{distribution}[app]", "pytest")
            run(commands / "undula", "--version")
            run(commands / "undula", "info")
            examples = "tests/test_project.py::test_examples_in_the_readme_and_the_overview"
            run(commands / "pytest", "-q", examples, folder=folder)


if __name__ == "__main__":
    steps = {"build": build, "install": install}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("steps", nargs="+", choices=steps)
    for step in parser.parse_args().steps:
        steps[step]()
