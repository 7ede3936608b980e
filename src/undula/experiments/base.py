"""Experiments, their outcomes, and the registry of all experiments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import UnknownNameError

if TYPE_CHECKING:
    from .bench import Bench

__all__ = ["Chart", "Experiment", "Outcome", "Table", "chosen", "experiment", "experiments"]

Cell = str | float | int


@dataclass
class Table:
    """A table with a title, column headings and rows.

    Parameters
    ----------
    title : str
        The title.
    columns : sequence of str
        The headings.
    rows : list of list, optional
        The cells, row by row.

    Examples
    --------
    >>> table = Table("Times", ["size", "ms"])
    >>> table.add(512, 0.2)
    >>> table.rows
    [[512, 0.2]]
    """

    title: str
    columns: Sequence[str]
    rows: list[list[Cell]] = field(default_factory=list)

    def add(self, *cells: Cell) -> None:
        """Append a row.

        Parameters
        ----------
        *cells : str, int, float or None
            One cell for each column.
        """
        self.rows.append(list(cells))


@dataclass
class Chart:
    """A chart of measured and published points.

    Parameters
    ----------
    title : str
        The title.
    x, y : str
        The labels of the axes.
    series : dict of lists of pairs, optional
        Measured points by name.
    theirs : dict of lists of pairs, optional
        Published points by name, drawn dashed.
    kind : {"lines", "bars", "steps"}, default "lines"
        Lines over numbers, bars over names, or a histogram.
    log : str, default ""
        The axes with a logarithmic scale: ``"x"``, ``"y"`` or ``"xy"``.
    mark : tuple of str and float, optional
        Label and height of a horizontal line, such as a limit.

    Examples
    --------
    >>> Chart("Times", "size", "ms", {"forward": [(512, 0.2), (1024, 0.7)]}).kind
    'lines'
    """

    title: str
    x: str
    y: str
    series: dict[str, list[tuple[Cell, float]]] = field(default_factory=dict)
    theirs: dict[str, list[tuple[Cell, float]]] = field(default_factory=dict)
    kind: str = "lines"
    log: str = ""
    mark: tuple[str, float] | None = None  # Label and height of a horizontal line, such as a limit.


@dataclass
class Outcome:
    """The outcome of an experiment on one device.

    Parameters
    ----------
    tables : list of Table, optional
        Measured numbers.
    charts : list of Chart, optional
        Measured and published points.
    pictures : dict of str, optional
        Base64-encoded PNG by caption.
    findings : list of str, optional
        What follows from the numbers.
    checks : list of str, optional
        What was verified.
    model : list of dict, optional
        Predicted and measured times.
    seconds : float, default 0.0
        How long the experiment took.

    Examples
    --------
    >>> outcome = Outcome(findings=["twice as fast"])
    >>> Outcome.from_dict(outcome.to_dict()) == outcome
    True
    """

    tables: list[Table] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    pictures: dict[str, str] = field(default_factory=dict)  # Base64-encoded PNG, by caption.
    findings: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    model: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Convert the outcome to values that JSON can hold."""
        return asdict(self)

    @staticmethod
    def from_dict(record: dict[str, Any]) -> Outcome:
        """Restore an outcome that was read from JSON.

        Parameters
        ----------
        record : dict
            What :meth:`to_dict` returned.

        Returns
        -------
        Outcome
        """
        charts = []
        for chart in record["charts"]:
            points = {
                key: {name: [(x, y) for x, y in line] for name, line in chart[key].items()}
                for key in ("series", "theirs")
            }
            mark = None if chart["mark"] is None else (chart["mark"][0], chart["mark"][1])
            charts.append(Chart(**{**chart, **points, "mark": mark}))
        tables = [Table(**table) for table in record["tables"]]
        return Outcome(**{**record, "tables": tables, "charts": charts})


Measurement = Callable[["Bench"], Outcome | None]


@dataclass(frozen=True)
class Experiment:
    """A published table or figure, reproduced.

    Parameters
    ----------
    work : str
        The work that published it, one of ``WORKS``; ``peers`` for comparisons with other packages.
    item : str
        The table or figure of that work.
    title : str
        What it shows.
    measured : callable
        The function that measures it on a :class:`Bench`; returns None if that is impossible there.
    differs : str
        How the measurement differs from the published one.
    also : tuple of str, optional
        Other published items to show beside it.
    why : str, optional
        An explanation of the result.
    on : {"all", "cpu", "devices"}, optional
        Where it runs: everywhere (default), on the CPU engine only, or on CUDA and OpenCL devices only.

    Examples
    --------
    >>> from undula.experiments import experiments
    >>> experiment = experiments()["schemes/table-2"]
    >>> experiment.work, experiment.item
    ('schemes', 'table-2')
    """

    work: str
    item: str
    title: str
    measured: Measurement
    differs: str
    also: tuple[str, ...] = ()
    why: str = ""
    on: str = "all"

    @property
    def name(self) -> str:
        """The name on the command line, such as ``video/table-6.3``."""
        return f"{self.work}/{self.item}"

    def measure(self, bench: Bench) -> Outcome | None:
        """Measure on a device; None if the experiment does not run there.

        Parameters
        ----------
        bench : Bench
            The device, and how to measure on it.

        Returns
        -------
        Outcome or None
        """
        if self.on != "all" and bench.on_cpu != (self.on == "cpu"):
            return None
        return self.measured(bench)


_all: dict[str, Experiment] = {}
Measured = TypeVar("Measured", bound=Measurement)


def experiment(
    work: str,
    item: str,
    title: str,
    differs: str,
    also: tuple[str, ...] = (),
    why: str = "",
    on: str = "all",
) -> Callable[[Measured], Measured]:
    """Register the decorated function as an :class:`Experiment`."""

    def register(function: Measured) -> Measured:
        added = Experiment(
            work, item, title, function, " ".join(differs.split()), also, " ".join(why.split()), on
        )
        _all[added.name] = added
        return function

    return register


def experiments() -> dict[str, Experiment]:
    """Return all experiments by name, ordered by work and item.

    Returns
    -------
    dict of Experiment
        Experiments by name.

    Examples
    --------
    >>> "video/table-6.3" in experiments()
    True
    """
    from . import colour, peers, schemes, tiles, ultrasound, video

    order = [
        module.__name__.rpartition(".")[2] for module in (video, ultrasound, colour, schemes, tiles, peers)
    ]
    return dict(sorted(_all.items(), key=lambda entry: order.index(entry[1].work)))


def chosen(names: Sequence[str]) -> list[Experiment]:
    """Select experiments by name.

    Parameters
    ----------
    names : sequence of str
        Names of experiments, or of works for all of theirs; if empty, all experiments are returned.

    Returns
    -------
    list of Experiment
        The experiments in their order.

    Examples
    --------
    >>> [experiment.name for experiment in chosen(["schemes/table-2"])]
    ['schemes/table-2']
    """
    known = experiments()
    if not names:
        return list(known.values())
    selection: dict[str, Experiment] = {}
    for name in names:
        matches = {key: entry for key, entry in known.items() if name in (key, entry.work)}
        if not matches:
            works = dict.fromkeys(entry.work for entry in known.values())
            raise UnknownNameError("experiment", name, (*works, *known))
        selection |= matches
    return list(selection.values())
