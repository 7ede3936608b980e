"""Colour images: conversion to planes and back, and wavelet transforms.

Examples
--------
>>> import numpy as np
>>> from undula import color
>>> image = np.random.default_rng(0).integers(0, 256, (48, 64, 3)).astype("uint8")
>>> coeffs = color.forward(image, level=3)            # reversible colours, reversible CDF 5/3
>>> bool((color.inverse(coeffs) == image).all())
True
"""

from .apple import BurtCoeffs, burt_forward, burt_inverse, d4_forward, d4_inverse, rmse, rmsy
from .images import expand, forward, from_planes, inverse, subsample, to_planes
from .spaces import SPACES, Space, space

__all__ = [
    "SPACES",
    "BurtCoeffs",
    "Space",
    "burt_forward",
    "burt_inverse",
    "d4_forward",
    "d4_inverse",
    "expand",
    "forward",
    "from_planes",
    "inverse",
    "rmse",
    "rmsy",
    "space",
    "subsample",
    "to_planes",
]
