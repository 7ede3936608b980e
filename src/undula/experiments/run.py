"""Runs experiments on every device that there is, and keeps what came of them."""

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

from ..errors import ArgumentError, FileError
from ..io.files import atomic_write
from .base import Experiment, Outcome, experiments
from .bench import Bench

__all__ = ["earlier", "load", "machine", "run", "save"]

PACKAGES = (
    "numpy numba llvmlite cuda-core cuda-bindings pyopencl PyWavelets ndwt ptwt pytorch-wavelets torch scikit-image"
).split()
Told = Callable[[str, int, int], None]  # what is measured, how many are done, and of how many


def machine() -> dict[str, Any]:
    """What this runs on, when, and with which versions."""
    processor = platform.processor() or platform.machine()
    with suppress(OSError):
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        processor = found[1] if found else processor
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
    wanted: Sequence[Experiment],
    devices: Sequence[str] | None = None,
    quick: bool = False,
    told: Told = lambda what, done, whole: None,
    keep: Callable[[dict[str, Any]], None] = lambda found: None,
) -> dict[str, Any]:
    """Runs experiments, and returns what JSON can hold.

    Parameters
    ----------
    wanted : sequence of Experiment
    devices : sequence of str, optional
        As ``backend`` takes them; all that there are if not given.
    quick : bool
        Small sizes and few runs.
    told : callable
        Called before each with its name, how many are done, and of how many.
    keep : callable
        Called after each with all that was found so far.
    """
    known = undula.devices()
    names = list(known) if devices is None else list(devices)
    begin = time.perf_counter()
    cpu = Bench("cpu", _title(known, "cpu"), quick)
    benches = [cpu if name == "cpu" else Bench(name, _title(known, name), quick, cpu) for name in names]
    found: dict[str, Any] = {}
    skipped: list[str] = []
    whole, done = len(benches) * len(wanted), 0
    ceilings = {bench.device: json.loads(undula.ceilings(bench.device).to_json()) for bench in benches}

    def all_of_it() -> dict[str, Any]:
        return {
            **machine(),
            "quick": quick,
            "seconds": time.perf_counter() - begin,
            "devices": {bench.device: bench.title for bench in benches},
            "ceilings": ceilings,
            "results": found,
        }

    for bench in benches:
        for one in wanted:
            told(f"{one.name} on {bench.title}", done, whole)
            outcome = _one(bench, one)
            if outcome is None:
                skipped.append(f"{one.name} on {bench.title}")
            else:
                found.setdefault(one.name, {})[bench.device] = outcome.to_dict()
                keep(all_of_it())
            done += 1
    if not found:
        raise ArgumentError(
            f"nothing of this is for {', '.join(bench.device for bench in benches)}:"
            f" {', '.join(skipped)}; schemes and kernels are measured on cuda and opencl devices, colours and peers on the cpu"
        )
    told("done", whole, whole)
    return {**all_of_it(), "skipped": skipped}


def _title(known: dict[str, str], name: str) -> str:
    title = known.get(name) or next((v for k, v in known.items() if k.startswith(f"{name}:")), name)
    kind = name.partition(":")[0]
    title = title.replace("Portable Computing Language", "PoCL").removeprefix("pthread-")
    return title if kind == "cpu" else f"{title}, {kind.upper() if kind == 'cuda' else 'OpenCL'}"


def _one(bench: Bench, one: Experiment) -> Outcome | None:
    begin = time.perf_counter()
    bench.model, bench.checks = [], []
    outcome = one.measured(bench)
    if outcome is not None and not (outcome.tables or outcome.charts or outcome.pictures):
        return None
    if outcome is not None:
        outcome.model, outcome.checks = bench.model, [*outcome.checks, *bench.checks]
        outcome.seconds = time.perf_counter() - begin
    return outcome


def save(found: dict[str, Any], path: Path, before: dict[str, Any] | None = None) -> None:
    """Writes results as JSON, whole or not at all, with no more digits than mean something.

    ``before`` are those of an earlier run of the same kind, which stay but for what was measured again.
    """
    if before is not None:
        found = {
            **found,
            "seconds": before["seconds"] + found["seconds"],
            "results": {**before["results"], **_merged(before["results"], found["results"])},
            "devices": {**before["devices"], **found["devices"]},
            "ceilings": {**before["ceilings"], **found["ceilings"]},
        }
    order = list(experiments())
    results = sorted(
        found["results"].items(), key=lambda one: order.index(one[0]) if one[0] in order else len(order)
    )
    text = json.dumps(_short({**found, "results": dict(results)}), ensure_ascii=False, separators=(",", ":"))
    text = re.sub(r'("(?:video|ultrasound|colour|schemes|tiles|peers)/)', r"\n\1", text)  # (a line for each)
    with atomic_write(path) as beside:
        beside.write_text(text + "\n", encoding="utf-8")


def earlier(path: Path, quick: bool) -> dict[str, Any] | None:
    """Results that are in a folder already; an error where they are damaged, or of another kind of run."""
    if not path.exists():
        return None
    before, now = load(path), machine()
    alike = {name: now[name] for name in ("processor", "threads", "undula")} | {"quick": quick}
    differs = [
        f"{name} {before.get(name)!r}, now {value!r}"
        for name, value in alike.items()
        if before.get(name) != value
    ]
    if differs:
        raise FileError(
            f"{path} has results of another kind of run ({'; '.join(differs)}): name another folder with --output"
        )
    return before


def _merged(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    return {name: {**before.get(name, {}), **some} for name, some in now.items()}


def load(path: Path) -> dict[str, Any]:
    """Results from a file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        whole = isinstance(found, dict) and all(
            isinstance(found[k], dict) for k in ("results", "devices", "ceilings")
        )
        whole = whole and all(isinstance(some, dict) for some in found["results"].values())
    except (ValueError, KeyError):
        whole = False
    if not whole:
        raise FileError(f"{path} is damaged, or no results of experiments: remove it, or name another folder")
    return dict(found)


def _short(value: Any) -> Any:
    """Floats with four digits."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_short(one) for one in value]
    return value
