"""Wavelets: names, filters and their polyphase matrices. Imports from ``algebra`` only."""

from .banks import orthfilt, orthogonal_filter_bank, qmf
from .continuous import ContinuousWavelet, DiscreteContinuousWavelet, Formula, any_wavelet
from .table import families, is_discrete, wavelist
from .wavelet import Wavelet, as_wavelet

__all__ = [
    "ContinuousWavelet",
    "DiscreteContinuousWavelet",
    "Formula",
    "Wavelet",
    "any_wavelet",
    "as_wavelet",
    "families",
    "is_discrete",
    "orthfilt",
    "orthogonal_filter_bank",
    "qmf",
    "wavelist",
]
