"""What others published: the numbers of five works, as data."""

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
    """A table or a figure: what it shows, its numbers, and what a reader must know to compare them."""

    id: str
    what: str
    unit: str
    columns: list[str]
    rows: list[list[Any]]
    note: str

    @property
    def title(self) -> str:
        """``Table 6.3``, ``Figure C.1``."""
        kind, _, number = self.id.partition("-")
        return f"{kind.capitalize()} {number}" if kind in ("table", "figure") else self.id.replace("-", " ")

    def row(self, first: str) -> list[Any]:
        """The numbers of the row with this in front."""
        return next(row[1:] for row in self.rows if row[0] == first)

    def column(self, name: str) -> list[Any]:
        """The cells below a heading."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]


@dataclass(frozen=True)
class Work:
    """A paper or a report: who made it, on what, how it was measured, and its numbers."""

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
    """One of :data:`WORKS`.

    Examples
    --------
    >>> work("video").items["table-6.4"].row("1920×1080")[1]
    3.43
    """
    text = resources.files(__package__).joinpath("published", f"{name}.toml").read_text(encoding="utf-8")
    told = tomllib.loads(text)
    items = {one["id"]: Item(**one) for one in told.pop("item")}
    return Work(name=name, items=items, **told)
