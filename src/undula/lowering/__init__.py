"""Lowering: from the description of a transform to operators in numbers, without arrays or devices."""

from .borders import LWT_MODES, MODES, Modes

__all__ = ["LWT_MODES", "MODES", "Modes"]
