"""Undula in napari: filters of layers with live sliders, and multiscale layers."""

from ._widgets import DenoiseWidget, DespeckleWidget, EnhanceWidget, PyramidWidget, SharpenWidget, pyramid

__all__ = [
    "DenoiseWidget",
    "DespeckleWidget",
    "EnhanceWidget",
    "PyramidWidget",
    "SharpenWidget",
    "pyramid",
]
