"""Plans: what a transform does to one shape. Imports from everything to its left, and from no device."""

from .boundary import LWT_MODES, MODES

__all__ = ["LWT_MODES", "MODES"]
