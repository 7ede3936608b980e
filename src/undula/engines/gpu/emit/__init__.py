"""Kernel texts: one emitter for all C-like languages.

A :class:`KernelSpec` says what a kernel computes: the operators along its axes and dtypes. The
emitters (``naive``, ``rowcolumn``, ``tiled``, ``sliding``, ``stepwise``) lay it out over work items and print
a :class:`Kernel`. A :class:`Dialect` holds the keywords in which CUDA and OpenCL differ. Coefficients and
small sizes are literals in the text; extents and strides are arguments, so that one kernel serves arrays of
any shape.
"""

from .dialect import CUDA, OPENCL, Dialect
from .kernel import Kernel, KernelSpec

__all__ = ["CUDA", "OPENCL", "Dialect", "Kernel", "KernelSpec"]
