"""Output to the terminal: lines, tables, errors, progress bars, and JSON for programs."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from ..engines.memory import MEMORY_ADVICE
from ..errors import UndulaError
from .wording import OptionName, in_options

_names: Mapping[str, OptionName] = {}  # the options of the command that runs
out, err = Console(), Console(stderr=True)
PROGRESS_DELAY_S = 1.0  # Work that takes less time has no progress bar.


def print_text(text: str) -> None:
    """Print a line without markup or line breaks of its own."""
    out.print(text, highlight=False, soft_wrap=True, markup=False)


@contextmanager
def wording(names: Mapping[str, OptionName]) -> Iterator[None]:
    """Print errors and warnings with these options in place of the arguments that they name."""
    global _names
    before, _names = _names, names
    try:
        yield
    finally:
        _names = before


def message_line(text: str) -> str:
    """Return a message in one line, in the words of the command."""
    return in_options(" ".join(text.split()), _names)


def print_error(text: str) -> None:
    """Print an error message as one line to standard error."""
    err.print("undula:", message_line(text), style="red", highlight=False, soft_wrap=True, markup=False)


def print_warning(text: str) -> None:
    """Print a warning as one line to standard error."""
    line = f"undula: warning: {message_line(text)}"
    err.print(line, style="yellow", highlight=False, soft_wrap=True, markup=False)


def error_text(error: Exception) -> str:
    """Describe an exception of any type in one line."""
    if isinstance(error, UndulaError):
        text = str(error)
    elif isinstance(error, MemoryError):
        text = f"not enough memory: {str(error) or 'the system provides no more'}; {MEMORY_ADVICE}"
    elif isinstance(error, OSError):
        reason = error.strerror or str(error)
        text = f"{error.filename}: {reason}" if error.filename else f"cannot write the output: {reason}"
    else:
        text = f"{type(error).__name__}: {error}"
    return message_line(text)


def print_json(report: Any, indent: int | None = 1) -> None:
    """Print a report as JSON, which has no NaN or infinity: both are written as null."""

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {str(key): plain(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)

    sys.stdout.write(json.dumps(plain(report), indent=indent) + "\n")
    sys.stdout.flush()


def print_output(target: object, as_json: bool, **details: Any) -> None:
    """Print the path of a file that was written, with details if as JSON."""
    if as_json:
        print_json({"output": str(target), **details})
    else:
        print_text(str(target))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table, with numbers aligned to the right."""
    table = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for number, name in enumerate(columns):
        is_numeric = bool(rows) and not isinstance(rows[0][number], str)
        table.add_column(name, justify="right" if is_numeric else "left")
    for row in rows:
        table.add_row(*map(_format_cell, row))
    out.print(table)


def _format_cell(value: Any) -> str:
    if isinstance(value, float):
        return "∞" if value == math.inf else "–" if math.isnan(value) else f"{value:.2f}"
    return str(value)


class ProgressBar:
    """A progress bar that appears after ``PROGRESS_DELAY_S`` seconds."""

    def __init__(self, bar: Progress, task: Any) -> None:
        self._bar, self._task, self._start = bar, task, time.perf_counter()

    def __call__(self, done: int, description: str | None = None) -> None:
        """Show how many items are done, and optionally a new description."""
        elapsed = time.perf_counter() - self._start
        if elapsed > PROGRESS_DELAY_S:
            rate = f"{done / elapsed:.1f}/s"
            self._bar.update(self._task, completed=done, visible=True, rate=rate, description=description)


@contextmanager
def progress_bar(description: str, total: int | None, quiet: bool = False) -> Iterator[ProgressBar]:
    """Show progress in the terminal, with items per second and the remaining time, unless ``quiet``."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=err,
        transient=True,
        disable=quiet or not err.is_terminal,
    )
    with bar:
        yield ProgressBar(bar, bar.add_task(description, total=total or None, visible=False, rate=""))
