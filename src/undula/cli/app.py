"""The program: all commands, error reporting and signals."""

from __future__ import annotations

import logging
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer

from ..errors import FormatWarning, NoNoiseWarning, UndulaError
from . import coefficients, experiments, export, filtering, inspection, samples, speed, studio, zarr_stores
from .common import PANELS, app
from .screen import error_text, print_error, print_json, print_warning, wording
from .wording import option_names

__all__ = [
    "app",
    "coefficients",
    "experiments",
    "export",
    "filtering",
    "inspection",
    "run",
    "samples",
    "speed",
    "studio",
    "zarr_stores",
]

# Base class of usage errors. Some versions of Typer use Click's, others have a copy of their own.
UsageError: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

app.registered_commands.sort(key=lambda command: PANELS.index(str(command.rich_help_panel)))


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """Handle signals that end the process like Ctrl+C, so that temporary files are removed."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    handlers: dict[int, Any] = {}
    with suppress(ValueError):  # Only the main thread can set signal handlers.
        for name in ("SIGTERM", "SIGHUP"):
            if (number := getattr(signal, name, None)) is not None:
                handlers[number] = signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _warning_printer() -> Callable[..., None]:
    """Return a function that prints a warning as one line, without the place in the code, and only once."""
    printed: set[str] = set()

    def show_warning(message: Warning | str, *details: Any, **options: Any) -> None:
        if str(message) not in printed:
            printed.add(str(message))
            print_warning(str(message))

    return show_warning


def run(arguments: list[str] | None = None) -> int:
    """Run a command, print errors as one line, and return the exit status."""
    # These libraries log what they also raise, and an error is reported in one line; asyncio logs what Zarr
    # reads while the process ends.
    for name in ("tifffile", "pydicom", "libav", "distributed", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    warnings.filterwarnings("default", category=UserWarning, module=r"undula\.filters")
    for category in (FormatWarning, NoNoiseWarning):
        warnings.simplefilter("always", category)
    warnings.showwarning = _warning_printer()
    given = sys.argv[1:] if arguments is None else arguments
    program: Any = typer.main.get_command(app)
    chosen = [program.commands[word] for word in given if word in program.commands]
    with wording(option_names([*program.commands.values(), *chosen[:1]])):
        return _run(program, given)


def _run(program: Any, given: list[str]) -> int:
    try:
        with _signals_interrupt():
            status = program.main(given, prog_name="undula", standalone_mode=False)
        if status == 130:  # Typer returns this when it catches an interrupt.
            raise KeyboardInterrupt
        return status if isinstance(status, int) else 0
    except typer.Exit as error:
        return int(error.exit_code)
    except UsageError as error:
        error.show()
        return 2
    except typer.Abort:
        raise KeyboardInterrupt from None
    except zarr_stores.InterruptedWorkError as error:
        print_error(str(error))
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except (UndulaError, MemoryError, OSError) as error:
        if "--json" in given or "--json-lines" in given:
            print_json({"error": error_text(error)}, 1 if "--json" in given else None)
        print_error(error_text(error))
        return 1
