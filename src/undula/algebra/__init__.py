"""Exact algebra of filters: numbers ``a + b·√2``, Laurent polynomials and polyphase matrices."""

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
