"""Which parts were really tested: OpenCL, a browser, PyTorch and JAX are not on every machine.

Each worker notes the parts that a test used, and the process that reports counts the tests that passed, in
the file of ``--tested-parts``. ``python tests/parts.py FILE`` then says in one line what was not tested here;
with ``--require`` it lists all parts with their counts, and fails if one was tested too little.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

REQUIRED = {"OpenCL": 401, "browser": 1, "PyTorch": 1, "JAX": 1}  # tests of each part that have to pass in CI
MODULES = {"PyTorch": "torch", "JAX": "jax"}

_launches: Counter[str] = Counter()  # of kernels, in this process


@pytest.fixture(scope="session", autouse=True)
def _count_launches() -> Iterator[None]:
    from undula.engines.gpu.opencl.runtime import OpenCLProgram

    launch = OpenCLProgram.launch

    def counted(*arguments: Any) -> Any:
        _launches["OpenCL"] += 1
        return launch(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OpenCLProgram, "launch", counted)
        yield


def parts_of(item: pytest.Item, launches: int) -> list[str]:
    """Return the parts that a test used, which launched kernels of OpenCL so many times.

    Tests of a library have its name in theirs; where it is not installed, none loads it.
    """
    parts = ["OpenCL"] * (launches > 0)
    parts += ["browser"] * ("browser" in getattr(item, "fixturenames", ()))
    return parts + [
        part for part, module in MODULES.items() if module in item.nodeid.lower() and module in sys.modules
    ]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    item.stash[LAUNCHES] = _launches["OpenCL"]
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    result = yield
    used = parts_of(item, _launches["OpenCL"] - item.stash[LAUNCHES])
    item.user_properties += [("part", part) for part in used]
    return result


LAUNCHES = pytest.StashKey[int]()
PASSED: Counter[str] = Counter()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tested-parts", metavar="FILE", help="write how many tests passed of each part")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.passed:
        PASSED.update(value for name, value in report.user_properties if name == "part")


def pytest_sessionfinish(session: pytest.Session) -> None:
    file = session.config.getoption("--tested-parts")
    if file and not hasattr(session.config, "workerinput"):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).write_text(json.dumps({part: PASSED[part] for part in REQUIRED}))


def report(tested: dict[str, int], require: bool) -> tuple[list[str], bool]:
    """Return the lines to show for numbers of tests, and whether all required parts were tested."""
    if not require:
        missing = [part for part in REQUIRED if not tested[part]]
        names = f"all tests of {', '.join(missing)} were skipped" if missing else "all were tested"
        return [f"parts that are not on every machine ({', '.join(REQUIRED)}): {names}"], True
    lines = [
        f"{part}: {tested[part]} tests passed, "
        + ("as required" if tested[part] >= least else f"but at least {least} are required")
        for part, least in REQUIRED.items()
    ]
    return ["required parts:", *lines], all(tested[part] >= least for part, least in REQUIRED.items())


def main() -> None:
    parser = argparse.ArgumentParser(description="Say which parts a run of the tests has tested.")
    parser.add_argument("file", type=Path, help="the file of --tested-parts")
    parser.add_argument("--require", action="store_true", help="fail if a part was not tested")
    arguments = parser.parse_args()
    lines, good = report(json.loads(arguments.file.read_text()), arguments.require)
    print("\n".join(lines))
    sys.exit(not good)


if __name__ == "__main__":
    main()
