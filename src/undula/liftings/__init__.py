"""Liftings: wavelets factored into predict and update steps."""

from .conditioning import Conditioning
from .factor import lifting
from .lifting import Lifting, LiftingStep

__all__ = ["Conditioning", "Lifting", "LiftingStep", "lifting"]
