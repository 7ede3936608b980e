"""Kernels as text: one emitter for every C-like language.

A *pass* says what is done to an array: which flows run along which axes, how lines go on, which elements are
read and written. A *strategy* (``naive``, ``rowcolumn``, ``tiled``, ``sliding``) lays it over a device and
prints a :class:`Kernel`; a :class:`Dialect` spells the words in which languages differ. Coefficients and
small sizes are literals in the text, extents and strides are arguments, so a kernel serves arrays of any
shape.
"""

from .dialect import CUDA, OPENCL, Dialect
from .kernel import Kernel, Pass

__all__ = ["CUDA", "OPENCL", "Dialect", "Kernel", "Pass"]
