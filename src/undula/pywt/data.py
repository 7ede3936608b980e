"""The samples of ``undula.data``, where ``import pywt.data`` looks for them."""

# This module may be imported under the name pywt.data, to which a relative import would be relative.
from undula.data import aero, ascent, camera, demo_signal, ecg, nino

__all__ = ["aero", "ascent", "camera", "demo_signal", "ecg", "nino"]
