"""Plans: what a transform does to one shape. Imports from everything to its left, and from no device."""

from .borders import LWT_MODES, MODES, Modes, dwt_coeff_len, dwt_max_level, pad
from .coeffs import (
    array_to_coeffs,
    coeffs_to_array,
    dwtn_max_level,
    ravel_coeffs,
    unravel_coeffs,
    wavedecn_shapes,
    wavedecn_size,
)

__all__ = [
    "LWT_MODES",
    "MODES",
    "Modes",
    "array_to_coeffs",
    "coeffs_to_array",
    "dwt_coeff_len",
    "dwt_max_level",
    "dwtn_max_level",
    "pad",
    "ravel_coeffs",
    "unravel_coeffs",
    "wavedecn_shapes",
    "wavedecn_size",
]
