"""Wavelets: names, filters and their polyphase matrices. Imports from ``algebra`` only."""

from .table import families, wavelist
from .wavelet import Wavelet, as_wavelet

__all__ = ["Wavelet", "as_wavelet", "families", "wavelist"]
