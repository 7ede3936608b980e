"""Wavelet transforms of images, video and volumes.

The transform functions have the names, arguments and results of PyWavelets. They accept arrays of NumPy and
of GPU libraries, and run on the CPU, on CUDA and on OpenCL. :class:`Plan` prepares a transform for repeated
use, :func:`denoise` and its relatives filter images, and ``undula.io`` reads and writes files.

The algebra behind the transforms is exact: :func:`lifting` factors a wavelet into lifting steps, and
:func:`scheme` arranges them into a product of polyphase matrices that can be printed, counted, inverted and
compared.

Examples
--------
>>> import numpy as np
>>> import undula
>>> image = np.arange(48.0).reshape(6, 8)
>>> coeffs = undula.wavedec2(image, "haar", level=1)
>>> bool(np.allclose(undula.waverec2(coeffs, "haar"), image))
True
>>> print(undula.lifting("cdf53"))
split    L[n] = x[2n], H[n] = x[2n-1]
predict  P = -1/2 - 1/2·z⁻¹
update   U = 1/4·z + 1/4
scale    (√2·z⁻¹, √2/2)
>>> undula.scheme("cdf53", "monolithic*").operations
18
"""

import warnings

from . import color, data, filters, fixedpoint, io, measures
from .algebra import ROOT2, Laurent, PolyphaseMatrix
from .engines.base import devices
from .engines.cpu import get_num_threads, keep_memory, kept_memory, set_num_threads
from .errors import (
    ArgumentError,
    ArgumentTypeError,
    DeviceError,
    FileError,
    KernelError,
    MismatchedBandsError,
    MissingDeviceError,
    MissingExtraError,
    NotInvertibleError,
    OutOfMemoryError,
    ReconstructionError,
    SchedulerError,
    UndulaError,
    UnknownAxisError,
    UnknownNameError,
    UnknownNodeError,
)
from .filters import (
    Pipeline,
    denoise,
    denoise_wavelet,
    despeckle,
    enhance,
    estimate_sigma,
    sharpen,
    threshold,
    threshold_firm,
)
from .functions import (
    BaseNode,
    ForwardStream,
    FswavedecnResult,
    InverseStream,
    Node,
    Node2D,
    NodeND,
    Rows,
    WaveletPacket,
    WaveletPacket2D,
    WaveletPacketND,
    array_to_coeffs,
    best_basis,
    central_frequency,
    coeffs_to_array,
    collect_rows,
    cwt,
    downcoef,
    dwt,
    dwt2,
    dwt_coeff_len,
    dwt_max_level,
    dwtn,
    dwtn_max_level,
    frequency2scale,
    fswavedecn,
    fswaverecn,
    icwt,
    idwt,
    idwt2,
    idwtn,
    ilwt,
    ilwt2,
    ilwtn,
    imodwt,
    imra,
    imra2,
    imran,
    integrate_wavelet,
    iswt,
    iswt2,
    iswtn,
    lwt,
    lwt2,
    lwtn,
    modwt,
    modwt_mra,
    mra,
    mra2,
    mran,
    pad,
    ravel_coeffs,
    scale2frequency,
    swt,
    swt2,
    swt_max_level,
    swtn,
    unravel_coeffs,
    upcoef,
    wavedec,
    wavedec2,
    wavedecn,
    wavedecn_shapes,
    wavedecn_size,
    waverec,
    waverec2,
    waverecn,
)
from .liftings import Conditioning, Lifting, LiftingStep, lifting
from .lowering import LWT_MODES, MODES, Modes
from .plan import Ceilings, Plan, PlanCost, Prediction, ceilings
from .schemes import SCHEMES, Scheme, SchemeStage, scheme
from .wavelets import (
    ContinuousWavelet,
    DiscreteContinuousWavelet,
    Wavelet,
    families,
    orthfilt,
    orthogonal_filter_bank,
    qmf,
    wavelist,
)

__version__ = "0.1.0"

__all__ = [
    "LWT_MODES",
    "MODES",
    "ROOT2",
    "SCHEMES",
    "ArgumentError",
    "ArgumentTypeError",
    "BaseNode",
    "Ceilings",
    "Conditioning",
    "ContinuousWavelet",
    "DeviceError",
    "DiscreteContinuousWavelet",
    "FileError",
    "ForwardStream",
    "FswavedecnResult",
    "InverseStream",
    "KernelError",
    "Laurent",
    "Lifting",
    "LiftingStep",
    "MismatchedBandsError",
    "MissingDeviceError",
    "MissingExtraError",
    "Modes",
    "Node",
    "Node2D",
    "NodeND",
    "NotInvertibleError",
    "OutOfMemoryError",
    "Pipeline",
    "Plan",
    "PlanCost",
    "PolyphaseMatrix",
    "Prediction",
    "ReconstructionError",
    "Rows",
    "SchedulerError",
    "Scheme",
    "SchemeStage",
    "UndulaError",
    "UnknownAxisError",
    "UnknownNameError",
    "UnknownNodeError",
    "Wavelet",
    "WaveletPacket",
    "WaveletPacket2D",
    "WaveletPacketND",
    "__version__",
    "array_to_coeffs",
    "best_basis",
    "ceilings",
    "central_frequency",
    "coeffs_to_array",
    "collect_rows",
    "color",
    "cwt",
    "data",
    "denoise",
    "denoise_wavelet",
    "despeckle",
    "devices",
    "downcoef",
    "dwt",
    "dwt2",
    "dwt_coeff_len",
    "dwt_max_level",
    "dwtn",
    "dwtn_max_level",
    "enhance",
    "estimate_sigma",
    "families",
    "filters",
    "fixedpoint",
    "frequency2scale",
    "fswavedecn",
    "fswaverecn",
    "get_num_threads",
    "icwt",
    "idwt",
    "idwt2",
    "idwtn",
    "ilwt",
    "ilwt2",
    "ilwtn",
    "imodwt",
    "imra",
    "imra2",
    "imran",
    "integrate_wavelet",
    "io",
    "iswt",
    "iswt2",
    "iswtn",
    "keep_memory",
    "kept_memory",
    "lifting",
    "lwt",
    "lwt2",
    "lwtn",
    "measures",
    "modwt",
    "modwt_mra",
    "mra",
    "mra2",
    "mran",
    "orthfilt",
    "orthogonal_filter_bank",
    "pad",
    "qmf",
    "ravel_coeffs",
    "scale2frequency",
    "scheme",
    "set_num_threads",
    "sharpen",
    "swt",
    "swt2",
    "swt_max_level",
    "swtn",
    "threshold",
    "threshold_firm",
    "unravel_coeffs",
    "upcoef",
    "wavedec",
    "wavedec2",
    "wavedecn",
    "wavedecn_shapes",
    "wavedecn_size",
    "wavelist",
    "waverec",
    "waverec2",
    "waverecn",
]


def __getattr__(name: str) -> object:
    if name != "Stage":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn("undula.Stage is deprecated; use undula.SchemeStage", DeprecationWarning, stacklevel=2)
    return SchemeStage
