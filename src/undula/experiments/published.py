"""The published numbers of five works, as data."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

__all__ = ["WORKS", "Item", "Work", "work"]

WORKS = ("video", "ultrasound", "colour", "schemes", "tiles")


@dataclass(frozen=True)
class Item:
    """A published table or figure: its contents, and notes on how to compare them."""

    id: str
    what: str
    unit: str
    columns: list[str]
    rows: list[list[Any]]
    note: str

    @property
    def title(self) -> str:
        """The title, such as ``Table 6.3`` or ``Figure C.1``."""
        kind, _, number = self.id.partition("-")
        return f"{kind.capitalize()} {number}" if kind in ("table", "figure") else self.id.replace("-", " ")

    def row(self, label: str) -> list[Any]:
        """The cells of a row, without its label."""
        return next(row[1:] for row in self.rows if row[0] == label)

    def column(self, name: str) -> list[Any]:
        """The cells of a column."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]


@dataclass(frozen=True)
class Work:
    """A paper or report: authors, hardware, method, and its tables and figures."""

    name: str
    title: str
    authors: str
    year: int
    place: str
    hardware: list[str]
    method: str
    items: dict[str, Item]


@cache
def work(name: str) -> Work:
    """Return a published work, one of :data:`WORKS`.

    Examples
    --------
    >>> work("video").items["table-6.4"].row("1920×1080")[1]
    3.43
    """
    text = resources.files(__package__).joinpath("published", f"{name}.toml").read_text(encoding="utf-8")
    fields = tomllib.loads(text)
    items = {item["id"]: Item(**item) for item in fields.pop("item")}
    return Work(name=name, items=items, **fields)
