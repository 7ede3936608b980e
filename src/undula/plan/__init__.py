"""Plans: transforms prepared for repeated use, with their cost and a prediction of their speed."""

from .model import Ceilings, PlanCost, Prediction, ceilings
from .plan import Plan

__all__ = ["Ceilings", "Plan", "PlanCost", "Prediction", "ceilings"]
