"""What an experiment is, what comes of it, and the list of all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import UnknownNameError

if TYPE_CHECKING:
    from .bench import Bench

__all__ = ["Chart", "Experiment", "Outcome", "Table", "chosen", "experiment", "experiments"]

Cell = str | float | int


@dataclass
class Table:
    """A table: what it shows, its columns and its rows."""

    title: str
    columns: Sequence[str]
    rows: list[list[Cell]] = field(default_factory=list)

    def add(self, *cells: Cell) -> None:
        """One more row."""
        self.rows.append(list(cells))


@dataclass
class Chart:
    """A plot: ``lines`` over numbers, ``bars`` over names, or ``steps`` for histograms.

    ``series`` are points by name; what others published stands in ``theirs`` and is drawn dashed.
    """

    title: str
    x: str
    y: str
    series: dict[str, list[tuple[Cell, float]]] = field(default_factory=dict)
    theirs: dict[str, list[tuple[Cell, float]]] = field(default_factory=dict)
    kind: str = "lines"
    log: str = ""
    mark: tuple[str, float] | None = None  # a line across, such as a limit


@dataclass
class Outcome:
    """What came of an experiment on one device."""

    tables: list[Table] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    pictures: dict[str, str] = field(default_factory=dict)  # PNG in base 64, by what it shows
    findings: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    model: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(told: dict[str, Any]) -> Outcome:
        """From JSON."""
        charts = []
        for one in told["charts"]:
            points = {
                key: {name: [(x, y) for x, y in some] for name, some in one[key].items()}
                for key in ("series", "theirs")
            }
            mark = None if one["mark"] is None else (one["mark"][0], one["mark"][1])
            charts.append(Chart(**{**one, **points, "mark": mark}))
        return Outcome(**{**told, "tables": [Table(**one) for one in told["tables"]], "charts": charts})


Measured = Callable[["Bench"], Outcome | None]


@dataclass(frozen=True)
class Experiment:
    """One table or figure, made again.

    Parameters
    ----------
    work : str
        Whose: the name of a file of published numbers; ``peers`` for our own comparison.
    item : str
        Which of its tables and figures.
    title : str
    measured : callable
        Makes it on a device; None where that device has nothing to say, and then ``why`` says why.
    differs : str
        What cannot be compared, and why.
    also : tuple of str
        Other published items that belong beside it.
    why : str
        What explains the result, where that needs words.
    """

    work: str
    item: str
    title: str
    measured: Measured
    differs: str
    also: tuple[str, ...] = ()
    why: str = ""

    @property
    def name(self) -> str:
        """As the command line has it."""
        return f"{self.work}/{self.item}"


_all: dict[str, Experiment] = {}


def experiment(
    work: str, item: str, title: str, differs: str, also: tuple[str, ...] = (), why: str = ""
) -> Callable[[Measured], Measured]:
    """Puts a function on the list."""

    def put(function: Measured) -> Measured:
        one = Experiment(work, item, title, function, " ".join(differs.split()), also, " ".join(why.split()))
        _all[one.name] = one
        return function

    return put


def experiments() -> dict[str, Experiment]:
    """All, by name, in the order of the works and of their tables and figures."""
    from . import colour, peers, schemes, tiles, ultrasound, video

    order = [
        module.__name__.rpartition(".")[2] for module in (video, ultrasound, colour, schemes, tiles, peers)
    ]
    return dict(sorted(_all.items(), key=lambda one: order.index(one[1].work)))


def chosen(names: Sequence[str]) -> list[Experiment]:
    """Those with these names; ``video`` stands for all of that work, and no name for all."""
    known = experiments()
    if not names:
        return list(known.values())
    found: dict[str, Experiment] = {}
    for name in names:
        some = {key: one for key, one in known.items() if name in (key, one.work)}
        if not some:
            raise UnknownNameError(
                "experiment", name, (*dict.fromkeys(e.work for e in known.values()), *known)
            )
        found |= some
    return list(found.values())
