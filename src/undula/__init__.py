"""Undula: wavelet transforms of images, video and volumes.

A wavelet becomes lifting steps, lifting steps become a scheme, and a scheme is a product of polyphase
matrices that can be printed, counted, inverted and compared exactly:

>>> import undula
>>> print(undula.lifting("cdf53"))
split    L[n] = x[2n], H[n] = x[2n-1]
predict  P = -1/2 - 1/2·z⁻¹
update   U = 1/4·z + 1/4
scale    (√2·z⁻¹, √2/2)
>>> undula.scheme("cdf53", "monolithic*").operations
18
"""

from .algebra import ROOT2, Laurent, PolyphaseMatrix
from .errors import (
    ArgumentError,
    ArgumentTypeError,
    NotInvertibleError,
    ReconstructionError,
    UndulaError,
    UnknownNameError,
)
from .liftings import Conditioning, Lifting, LiftingStep, lifting
from .schemes import SCHEMES, Scheme, Stage, scheme
from .wavelets import Wavelet, families, wavelist

__version__ = "0.1.0"

__all__ = [
    "ROOT2",
    "SCHEMES",
    "ArgumentError",
    "ArgumentTypeError",
    "Conditioning",
    "Laurent",
    "Lifting",
    "LiftingStep",
    "NotInvertibleError",
    "PolyphaseMatrix",
    "ReconstructionError",
    "Scheme",
    "Stage",
    "UndulaError",
    "UnknownNameError",
    "Wavelet",
    "__version__",
    "families",
    "lifting",
    "scheme",
    "wavelist",
]
