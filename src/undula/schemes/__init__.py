"""Schemes: a two-dimensional transform as stages between barriers."""

from .catalogue import SCHEMES, STEPWISE, check_name, scheme
from .cost import Cells
from .scheme import Factor, Scheme, SchemeStage

__all__ = ["SCHEMES", "STEPWISE", "Cells", "Factor", "Scheme", "SchemeStage", "check_name", "scheme"]
