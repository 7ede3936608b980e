"""Filters: what is done to coefficients between decomposition and reconstruction."""

from .threshold import threshold, threshold_firm

__all__ = ["threshold", "threshold_firm"]
