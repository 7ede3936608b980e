"""The program: its commands, and what becomes of an error."""

from __future__ import annotations

import logging
import signal
import sys
import warnings
from contextlib import suppress
from typing import Any

import typer

from ..errors import UndulaError
from . import coefficients, experiments, filtering, looking, samples, speed, studio
from .common import app
from .screen import complain, explained, show_json

__all__ = ["app", "coefficients", "experiments", "filtering", "looking", "run", "samples", "speed", "studio"]

# What is wrong with how a command was called; typer has it from click, or has it itself.
USAGE: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def _stopped(number: int, frame: Any) -> None:
    """Somebody wants the program to end: it cleans up first."""
    raise KeyboardInterrupt


def run(arguments: list[str] | None = None) -> int:
    """Runs a command; one line for an error, and its exit status."""
    for name in ("tifffile", "pydicom", "libav"):  # (what is wrong is told in one line)
        logging.getLogger(name).setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    command = typer.main.get_command(app)
    told = sys.argv[1:] if arguments is None else arguments
    with suppress(ValueError):  # (only the main thread may)
        for name in ("SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), _stopped)
    try:
        found = command.main(arguments, prog_name="undula", standalone_mode=False)
        if found == 130:  # (what typer makes of an interrupt)
            raise KeyboardInterrupt
        return found if isinstance(found, int) else 0
    except typer.Exit as error:
        return int(error.exit_code)
    except USAGE as error:
        error.show()
        return 2
    except typer.Abort:
        raise KeyboardInterrupt from None
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except (UndulaError, MemoryError, OSError) as error:
        if "--json" in told:
            show_json({"error": explained(error)})
        complain(explained(error))
        return 1
