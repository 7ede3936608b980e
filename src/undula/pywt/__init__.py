"""PyWavelets' public names, for programs that keep their ``import pywt``.

The functions and classes are those of :mod:`undula`. This module has exactly the names that PyWavelets has,
so that ``from undula.pywt import *`` brings nothing else into a program::

    import undula.pywt as pywt

A program that cannot be changed, or a package that imports PyWavelets itself, gets Undula if this runs before
its first ``import pywt``::

    import sys
    import undula.pywt

    sys.modules["pywt"] = undula.pywt

Examples
--------
>>> import undula.pywt as pywt
>>> cA, cD = pywt.dwt([1.0, 2.0, 3.0, 4.0], "haar")
>>> cA.round(3).tolist()
[2.121, 4.95]
"""

from importlib import import_module
from typing import Any

from . import data, testing, version
from .deprecated import centrfrq, intwave, scal2frq

__all__ = [
    "BaseNode", "ContinuousWavelet", "DiscreteContinuousWavelet", "FswavedecnResult", "Modes", "Node",
    "Node2D", "NodeND", "Wavelet", "WaveletPacket", "WaveletPacket2D", "WaveletPacketND", "array_to_coeffs",
    "central_frequency", "centrfrq", "coeffs_to_array", "cwt", "data", "downcoef", "dwt", "dwt2",
    "dwt_coeff_len", "dwt_max_level", "dwtn", "dwtn_max_level", "families", "frequency2scale", "fswavedecn",
    "fswaverecn", "idwt", "idwt2", "idwtn", "imra", "imra2", "imran", "integrate_wavelet", "intwave", "iswt",
    "iswt2", "iswtn", "mra", "mra2", "mran", "orthfilt", "orthogonal_filter_bank", "pad", "qmf",
    "ravel_coeffs", "scal2frq", "scale2frequency", "swt", "swt2", "swt_max_level", "swtn", "threshold",
    "threshold_firm", "unravel_coeffs", "upcoef", "wavedec", "wavedec2", "wavedecn", "wavedecn_shapes",
    "wavedecn_size", "wavelist", "waverec", "waverec2", "waverecn",
]  # fmt: skip

__version__ = version.version
test = testing.run_tests

_undula = import_module(__name__.rpartition(".")[0])


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_undula, name)
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
