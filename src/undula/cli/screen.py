"""What commands put on a screen: progress, tables, one line for an error; or JSON for machines."""

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

from ..errors import UndulaError

__all__ = ["Steps", "complain", "explained", "say", "show_json", "show_table", "steps"]

out, err = Console(), Console(stderr=True)
SOON = 1.0  # seconds after which progress is shown


def say(text: str) -> None:
    """A line for people."""
    out.print(text, highlight=False, soft_wrap=True, markup=False)


def complain(text: str) -> None:
    """One line about what is wrong."""
    err.print("undula:", " ".join(text.split()), style="red", highlight=False, soft_wrap=True, markup=False)


def explained(error: Exception) -> str:
    """An error in one line, whoever raised it."""
    if isinstance(error, UndulaError):
        text = str(error)
    elif isinstance(error, MemoryError):
        text = "there is not enough memory for this"
    elif isinstance(error, OSError):
        text = f"{error.filename or 'a file'}: {error.strerror or error}"
    else:
        text = f"{type(error).__name__}: {error}"
    return " ".join(text.split())


def show_json(found: Any) -> None:
    """For machines: numbers that are none are null."""

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {str(key): plain(part) for key, part in value.items()}
        if isinstance(value, (list, tuple)):
            return [plain(part) for part in value]
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)

    sys.stdout.write(json.dumps(plain(found), indent=1) + "\n")


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table; numbers to the right."""
    table = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for number, name in enumerate(columns):
        right = bool(rows) and not isinstance(rows[0][number], str)
        table.add_column(name, justify="right" if right else "left")
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    out.print(table)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "∞" if value == math.inf else "–" if math.isnan(value) else f"{value:.2f}"
    return str(value)


class Steps:
    """Tells how far something is; nothing is shown of what is done in a moment."""

    def __init__(self, bar: Progress, task: Any) -> None:
        self._bar, self._task, self._begin = bar, task, time.perf_counter()

    def __call__(self, done: int, what: str | None = None) -> None:
        """So many are done, and this is what is done now."""
        passed = time.perf_counter() - self._begin
        rate = f"{done / passed:.1f}/s" if passed > 0 else ""
        if passed > SOON:
            self._bar.update(self._task, completed=done, visible=True, rate=rate, description=what)


@contextmanager
def steps(what: str, total: int | None, quiet: bool = False) -> Iterator[Steps]:
    """A bar with how many in a second and the time that is left."""
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
        task = bar.add_task(what, total=total or None, visible=False, rate="")
        yield Steps(bar, task)
