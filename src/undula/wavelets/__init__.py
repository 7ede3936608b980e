"""Wavelets: names, filters and their polyphase matrices. Imports from ``algebra`` only."""

from .table import families, wavelist
from .wavelet import Wavelet

__all__ = ["Wavelet", "families", "wavelist"]
