"""Fixtures for all tests: registries, settings and definitions are afterwards what they were before."""

import os
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from copy import deepcopy
from difflib import unified_diff
from functools import cache
from pprint import pformat
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from _pytest.doctest import DoctestModule

from undula.engines import memory, threads

State = dict[str, dict[str, Any]]  # values by their owner, a module or a library, and by their names

CACHES = {"CALLS"}  # tables that may grow in a test

ENVIRONMENT = "the environment"
# Libraries set variables of their own when they are imported; these change what the package and its tests do.
VARIABLES = (
    "UNDULA",
    "NUMBA",
    "OCL_",
    "POCL_",
    "PYOPENCL_BUILD",
    "CUDA",
    "XLA_",
    "HOME",
    "PATH",
    "LANG",
    "TMPDIR",
)


def _package() -> list[tuple[str, ModuleType]]:
    """Return the modules of the package that are loaded."""
    return [
        (name, module) for name, module in list(sys.modules.items()) if name.partition(".")[0] == "undula"
    ]


@cache
def _tables(modules: int) -> list[tuple[str, str, Any]]:
    """Return the owner, the name and the content of each table, while so many modules are loaded."""
    return [
        (owner, name, value)
        for owner, module in _package()
        for name, value in list(vars(module).items())
        if name.isupper() and isinstance(value, (dict, list, set)) and name not in CACHES
    ]


def registries() -> State:
    """Return the tables of the package: the constants that are dictionaries, lists or sets."""
    state: State = defaultdict(dict)
    for owner, name, value in _tables(len(sys.modules)):
        items = value.values() if isinstance(value, dict) else value
        state[owner][name] = (list(value) if isinstance(value, dict) else None, list(map(id, items)))
    return state


def settings() -> State:
    """Return the settings of the process, of the package, and of the libraries that tests configure."""
    state: State = {
        ENVIRONMENT: {name: value for name, value in os.environ.items() if name.startswith(VARIABLES)},
        "the process": {
            "working directory": os.getcwd(),
            "path of modules": list(sys.path),
            "handlers of signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        },
        "numpy": {"errors": np.geterr(), "printing": str(np.get_printoptions())},
        "undula": {"number of threads": threads._requested_threads, "memory to keep": memory._limit},
    }
    if (zarr := sys.modules.get("zarr")) is not None and hasattr(zarr, "config"):
        state["zarr"] = {"configuration": deepcopy(zarr.config.config)}
    if (torch := sys.modules.get("torch")) is not None and hasattr(torch, "get_default_dtype"):
        state["torch"] = {"dtype": torch.get_default_dtype(), "gradients": torch.is_grad_enabled()}
    if (jax := sys.modules.get("jax")) is not None and hasattr(jax, "config"):
        state["jax"] = {"doubles": jax.config.jax_enable_x64}
    return state


def definitions() -> State:
    """Return the functions and classes of the package, and what its classes define."""
    state: State = {}
    for owner, module in _package():
        names = state[owner] = {}
        for name, value in list(vars(module).items()):
            if callable(value):
                names[name] = id(value)
            if isinstance(value, type) and value.__module__ == owner:
                members = {key: id(item) for key, item in vars(value).items() if key not in IMPLIED}
                names |= {f"{name}.{key}": member for key, member in members.items()}
    return state


# What Python itself adds to classes when they are used.
IMPLIED = {
    "__slotnames__",
    "__abstractmethods__",
    "_abc_impl",
    "__annotations__",
    "__annotations_cache__",
    "__doc__",
}


def changes(before: State, after: State) -> dict[str, str]:
    """Return what differs, by its name; modules may be loaded, and may load what they define."""
    return {
        f"{name} of {owner}": "\n".join(unified_diff(*map(pformat_lines, values), lineterm="", n=0))
        for owner, before_names in before.items()
        for name in {**before_names, **(after.get(owner, {}) if owner == ENVIRONMENT else {})}
        if (values := (before_names.get(name), after.get(owner, {}).get(name)))[0] != values[1]
    }


def pformat_lines(value: Any) -> list[str]:
    """Return a value in lines, one for each of its items."""
    return pformat(value).splitlines()


def _watch(request: pytest.FixtureRequest, *states: Callable[[], State]) -> Iterator[None]:
    before = [state() for state in states]
    yield
    for state, old in zip(states, before, strict=True):
        changed = changes(old, state())
        if changed:
            lines = [f"{name}:\n{difference}" for name, difference in changed.items()]
            pytest.fail(
                f"{request.node.nodeid} changes for all later tests " + "\n".join(lines), pytrace=False
            )


@pytest.fixture(autouse=True)
def _nothing_is_left_by_a_test(request: pytest.FixtureRequest) -> Iterator[None]:
    yield from _watch(request, registries, settings)


@pytest.fixture(autouse=True, scope="module")
def _nothing_is_left_by_a_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compare definitions, too, which takes longer; examples in docstrings replace none."""
    examples = isinstance(request.node, DoctestModule)
    yield from _watch(request, registries, settings, *([] if examples else [definitions]))
