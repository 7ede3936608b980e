"""Schemes: what is computed between barriers. Imports from ``liftings``, ``wavelets`` and ``algebra``."""

from .catalogue import SCHEMES, STEPWISE, check_name, scheme
from .cost import Cells
from .scheme import Factor, Scheme, Stage

__all__ = ["SCHEMES", "STEPWISE", "Cells", "Factor", "Scheme", "Stage", "check_name", "scheme"]
