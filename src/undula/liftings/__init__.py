"""Liftings: wavelets factored into predict and update steps. Imports from ``wavelets`` and ``algebra``."""

from .conditioning import Conditioning
from .factor import lifting
from .lifting import Lifting, LiftingStep

__all__ = ["Conditioning", "Lifting", "LiftingStep", "lifting"]
