"""Old names of functions, which warn as they do in PyWavelets."""

from __future__ import annotations

import warnings
from typing import Any

from ..functions.continuous import central_frequency, integrate_wavelet, scale2frequency

__all__ = ["centrfrq", "intwave", "scal2frq"]


def _warn(old: str, new: str) -> None:
    warnings.warn(f"{old} is the old name of {new}", DeprecationWarning, stacklevel=3)


def centrfrq(wavelet: Any, precision: int = 8) -> float:
    """Return :func:`undula.central_frequency`; the old name, which warns."""
    _warn("centrfrq", "central_frequency")
    return central_frequency(wavelet, precision)


def intwave(wavelet: Any, precision: int = 8) -> Any:
    """Return :func:`undula.integrate_wavelet`; the old name, which warns."""
    _warn("intwave", "integrate_wavelet")
    return integrate_wavelet(wavelet, precision)


def scal2frq(wavelet: Any, scale: Any, precision: int = 8) -> Any:
    """Return :func:`undula.scale2frequency`; the old name, which warns."""
    _warn("scal2frq", "scale2frequency")
    return scale2frequency(wavelet, scale, precision)
