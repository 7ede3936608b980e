"""Exact algebra of filters: Laurent polynomials and polyphase matrices.

The left end of the pipeline: it knows numbers, polynomials and matrices, and nothing of wavelets.
"""

from .laurent import Laurent
from .polyphase import PolyphaseMatrix
from .surd import ROOT2, Exact, Number, Surd, as_number, is_exact, surd

__all__ = [
    "ROOT2",
    "Exact",
    "Laurent",
    "Number",
    "PolyphaseMatrix",
    "Surd",
    "as_number",
    "is_exact",
    "surd",
]
