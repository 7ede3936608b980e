"""Wavelets: names, filters and their polyphase matrices. Imports from ``algebra`` only."""

from .banks import orthfilt, orthogonal_filter_bank, qmf
from .table import families, wavelist
from .wavelet import Wavelet, as_wavelet

__all__ = ["Wavelet", "as_wavelet", "families", "orthfilt", "orthogonal_filter_bank", "qmf", "wavelist"]
