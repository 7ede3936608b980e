"""What is computed, in numbers: the boundary modes, the operators along an axis, and how they are chosen."""

from .borders import LWT_MODES, MODES, Modes
from .boundary_methods import BoundaryFilters, BoundaryMethod, Decay, Polynomial, Taper

__all__ = [
    "LWT_MODES",
    "MODES",
    "BoundaryFilters",
    "BoundaryMethod",
    "Decay",
    "Modes",
    "Polynomial",
    "Taper",
]
