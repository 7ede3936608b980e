"""Run experiments on the available devices, and save and load their results."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any

import undula

from ..engines.base import split_backend
from ..engines.devices import failure, failure_text
from ..errors import ArgumentError, DeviceError, FileError
from ..io.files import atomic_write
from .base import Experiment, Outcome, experiments
from .bench import Bench

__all__ = ["earlier", "load", "machine", "run", "save"]

PACKAGES = (
    "numpy numba llvmlite cuda-core cuda-bindings pyopencl PyWavelets ndwt ptwt pytorch-wavelets torch scikit-image"
).split()
Progress = Callable[[str, int, int], None]  # Takes the current experiment, the number done, and the total.


def machine() -> dict[str, Any]:
    """Describe this machine: processor, threads, system, date and versions.

    Returns
    -------
    dict
        Descriptions by name.

    Examples
    --------
    >>> machine()["threads"] >= 1
    True
    """
    processor = platform.processor() or platform.machine()
    with suppress(OSError):
        model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        processor = model[1] if model else processor
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return {
        "processor": processor,
        "threads": undula.get_num_threads(),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "date": date.today().isoformat(),
        "undula": undula.__version__,
        "versions": versions,
    }


def run(
    selection: Sequence[Experiment],
    devices: Sequence[str] | None = None,
    quick: bool = False,
    progress: Progress = lambda name, done, total: None,
    keep: Callable[[dict[str, Any]], None] = lambda results: None,
) -> dict[str, Any]:
    """Run experiments.

    Parameters
    ----------
    selection : sequence of Experiment
        The experiments.
    devices : sequence of str, optional
        Names of devices, as for ``backend``. The default is all devices that can be used.
    quick : bool, default False
        True for small sizes and few runs.
    progress : callable, optional
        Called before each experiment with its name, the number of those done, and the total.
    keep : callable, optional
        Called after each experiment with all results so far.

    Returns
    -------
    dict
        The machine, the devices and the results, as values that JSON can hold. ``skipped`` lists what a
        device does not run, or could not: then with the error.

    Raises
    ------
    DeviceError
        If one of ``devices`` is missing or unusable. Nothing is measured then.
    ArgumentError
        If none of the experiments runs on these devices.

    Examples
    --------
    >>> from undula.experiments import chosen
    >>> list(run(chosen(["colour/rmsy"]), ["cpu"], quick=True)["results"])
    ['colour/rmsy']
    """
    known = undula.devices()
    names = list(known) if devices is None else list(devices)
    for name in names:
        split_backend(name)
        if reason := failure(name):
            raise DeviceError(f"device {name!r} cannot be used: {reason}")
    begin = time.perf_counter()
    cpu = Bench("cpu", _title(known, "cpu"), quick)
    benches = [cpu if name == "cpu" else Bench(name, _title(known, name), quick, cpu) for name in names]
    outcomes: dict[str, Any] = {}
    skipped: list[str] = []
    total, done = len(benches) * len(selection), 0
    ceilings: dict[str, Any] = {}

    def record() -> dict[str, Any]:
        return {
            **machine(),
            "quick": quick,
            "seconds": time.perf_counter() - begin,
            "devices": {bench.device: bench.title for bench in benches},
            "ceilings": ceilings,
            "results": outcomes,
        }

    for bench in benches:
        for experiment in selection:
            what = f"{experiment.name} on {bench.title}"
            progress(what, done, total)
            done += 1
            try:
                if bench.device not in ceilings:
                    ceilings[bench.device] = json.loads(undula.ceilings(bench.device).to_json())
                outcome = _measure(bench, experiment)
            except DeviceError as error:  # The other devices and experiments do not depend on it.
                skipped.append(f"{what} ({failure_text(error)})")
                continue
            if outcome is None:
                skipped.append(what)
                continue
            outcomes.setdefault(experiment.name, {})[bench.device] = outcome.to_dict()
            keep(record())
    if not outcomes:
        raise ArgumentError(
            f"none of these experiments runs on {', '.join(bench.device for bench in benches)}:"
            f" {'; '.join(skipped)}; schemes and kernels need a cuda or opencl device, colour and peers the cpu"
        )
    progress("done", total, total)
    return {**record(), "skipped": skipped}


def _title(known: dict[str, str], name: str) -> str:
    title = known.get(name) or next((v for k, v in known.items() if k.startswith(f"{name}:")), name)
    kind = name.partition(":")[0]
    title = title.replace("Portable Computing Language", "PoCL").removeprefix("pthread-")
    return title if kind == "cpu" else f"{title}, {kind.upper() if kind == 'cuda' else 'OpenCL'}"


def _measure(bench: Bench, experiment: Experiment) -> Outcome | None:
    begin = time.perf_counter()
    bench.model, bench.checks = [], []
    outcome = experiment.measure(bench)
    if outcome is None or not (outcome.tables or outcome.charts or outcome.pictures):
        return None
    outcome.model, outcome.checks = bench.model, [*outcome.checks, *bench.checks]
    outcome.seconds = time.perf_counter() - begin
    return outcome


def save(measured: dict[str, Any], path: Path, before: dict[str, Any] | None = None) -> None:
    """Write results as JSON with four significant digits, atomically.

    Parameters
    ----------
    measured : dict
        Results as :func:`run` returns them.
    path : Path
        The file.
    before : dict, optional
        Results of an earlier run of the same kind, as :func:`earlier` returns them. They are kept unless
        they were measured again.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "results.json"
    >>> save({"results": {}, "devices": {}, "ceilings": {}}, path)
    >>> sorted(load(path))
    ['ceilings', 'devices', 'results']
    """
    if before is not None:
        results = {
            name: {**before["results"].get(name, {}), **outcomes}
            for name, outcomes in measured["results"].items()
        }
        measured = {
            **measured,
            "seconds": before["seconds"] + measured["seconds"],
            "results": {**before["results"], **results},
            "devices": {**before["devices"], **measured["devices"]},
            "ceilings": {**before["ceilings"], **measured["ceilings"]},
        }
    order = {name: place for place, name in enumerate(experiments())}
    ordered = sorted(measured["results"].items(), key=lambda entry: order.get(entry[0], len(order)))
    measured = {**measured, "results": dict(ordered)}
    text = json.dumps(_rounded(measured), ensure_ascii=False, separators=(",", ":"))
    # Start a line for each experiment, so that differences between two files can be read.
    text = re.sub(r'("(?:video|ultrasound|colour|schemes|tiles|peers)/)', r"\n\1", text)
    with atomic_write(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def earlier(path: Path, quick: bool) -> dict[str, Any] | None:
    """Load the results of an earlier run, or return None if there are none.

    Parameters
    ----------
    path : Path
        The file.
    quick : bool
        Whether the new run is a quick one.

    Returns
    -------
    dict or None
        The results, as :func:`run` returns them.

    Raises
    ------
    FileError
        If the file is damaged, or holds results of another machine, version or kind of run.

    Examples
    --------
    >>> earlier(Path("missing.json"), quick=True) is None
    True
    """
    if not path.exists():
        return None
    before, now = load(path), machine()
    expected = {name: now[name] for name in ("processor", "threads", "undula")} | {"quick": quick}
    differs = [
        f"{name} {before.get(name)!r}, now {value!r}"
        for name, value in expected.items()
        if before.get(name) != value
    ]
    if differs:
        raise FileError(
            f"{path} has results of a different kind of run ({'; '.join(differs)}); name another folder with --output"
        )
    return before


def load(path: Path) -> dict[str, Any]:
    """Load results that :func:`save` wrote.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict
        The results, as :func:`run` returns them.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "results.json"
    >>> save({"results": {}, "devices": {}, "ceilings": {}}, path)
    >>> load(path)["results"]
    {}
    """
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
        valid = isinstance(results, dict) and all(
            isinstance(results[k], dict) for k in ("results", "devices", "ceilings")
        )
        valid = valid and all(isinstance(outcomes, dict) for outcomes in results["results"].values())
    except (ValueError, KeyError):
        valid = False
    if not valid:
        raise FileError(f"{path} is damaged or not a file of results; remove it or name another folder")
    return dict(results)


def _rounded(value: Any) -> Any:
    """Round all floats to four significant digits."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    return value
