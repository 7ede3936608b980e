"""Experiments: reproduce tables and figures of five published works on the devices that can run them.

Examples
--------
>>> from undula.experiments import experiments
>>> experiments()["schemes/table-2"].title
'Barriers and operations'
"""

from .base import Chart, Experiment, Outcome, Table, chosen, experiments
from .report import report
from .run import earlier, load, machine, run, save

__all__ = [
    "Chart",
    "Experiment",
    "Outcome",
    "Table",
    "chosen",
    "earlier",
    "experiments",
    "load",
    "machine",
    "report",
    "run",
    "save",
]
