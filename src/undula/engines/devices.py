"""The devices of this machine: which there are, and which of them can run kernels.

A driver may list devices for which it cannot compile, such as a processor that is newer than its compiler.
So each device runs one small kernel, the first time that anyone asks for the devices or for the default of a
backend. The outcome is kept for the process.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from ..errors import KernelError, MissingDeviceError, OutOfMemoryError
from .base import ENGINES, engine, engine_module

__all__ = ["devices", "failure", "failure_text", "first_usable", "unusable_devices"]

MAX_TEXT = 500  # characters of the log of a compiler


def devices() -> dict[str, str]:
    """Return a description of each device that transforms can run on, by the name that ``backend`` takes.

    The first call in a process runs a small kernel on each device. Those that cannot run it are left out;
    :func:`unusable_devices` lists them.

    Returns
    -------
    dict of str
        Descriptions by name.

    Examples
    --------
    >>> "cpu" in devices()
    True
    """
    descriptions, _ = _installed()
    return {name: about for name, about in descriptions.items() if failure(name) is None}


def unusable_devices() -> dict[str, str]:
    """Return why devices that are installed cannot be used, by the name that ``backend`` takes.

    A device is unusable if it cannot run a small kernel, which is tried once in a process. If the driver of
    all devices of a backend fails, the name is that of the backend.

    Returns
    -------
    dict of str
        Descriptions with reasons, by name; none if all devices can be used.

    Examples
    --------
    >>> set(unusable_devices()).isdisjoint(devices())
    True
    """
    descriptions, unusable = _installed()
    reasons = {name: f"{about}: {failure(name)}" for name, about in descriptions.items() if failure(name)}
    return unusable | reasons


def first_usable(name: str, numbers: Iterable[int]) -> int:
    """Return the first of some devices of an engine that can run a kernel, or raise an error if none can.

    Parameters
    ----------
    name : str
        The key in :data:`ENGINES`.
    numbers : iterable of int
        Numbers of devices, in the order of preference.
    """
    failures = {}
    for number in numbers:
        backend = f"{name}:{number}"
        reason = failure(backend)
        if reason is None:
            return number
        failures[backend] = reason
    reasons = "; ".join(f"{backend}: {reason}" for backend, reason in failures.items())
    raise MissingDeviceError(f"no device of backend {name!r} can be used ({reasons}); choose another backend")


@lru_cache(maxsize=64)
def failure(backend: str) -> str | None:
    """Return why a device cannot run a kernel, or None if it can; it is tried once in a process."""
    try:
        engine(backend).check_device()
    except OutOfMemoryError:  # Others use all of its memory now.
        return None
    except Exception as error:  # Drivers and compilers may raise anything.
        return failure_text(error)
    return None


def failure_text(error: Exception) -> str:
    """Return what an error says, in one line and without the text of a kernel."""
    text = f"its compiler fails: {error.log}" if isinstance(error, KernelError) else str(error)
    line = " ".join(text.split()) or type(error).__name__
    return line if len(line) <= MAX_TEXT else f"{line[: MAX_TEXT - 2]} …"


def _installed() -> tuple[dict[str, str], dict[str, str]]:
    """Return descriptions of all devices that drivers know, and why other drivers do not work, by name."""
    descriptions: dict[str, str] = {}
    broken: dict[str, str] = {}
    for name, entry in ENGINES.items():
        try:
            names: list[str] = engine_module(name).names()
        except MissingDeviceError:
            continue
        except Exception as error:  # The driver is installed, but does not work.
            broken[name] = f"its driver does not work: {failure_text(error)}"
            continue
        keys = (f"{name}:{number}" if entry.numbered else name for number in range(len(names)))
        descriptions |= dict(zip(keys, names, strict=True))
    return descriptions, broken
