"""Transforms as layers.

All of them take a batch of arrays with channels, ``(N, C, …)``, and transform the axes after these two. The
filters are kept as buffers under the names of pytorch_wavelets, so that checkpoints fit; transforms are
computed by the wavelet that the layer was created with, whose filters a checkpoint has to repeat.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn

from ..arrays import TORCH
from ..engines.tensors import call_untraced, is_torch_compiling
from ..engines.tensors.encoding import encoded
from ..engines.tensors.engine import decomposed, recomposed
from ..engines.tensors.stacking import Stacking
from ..errors import ArgumentError, ArgumentTypeError
from ..lowering.nesting import keyed_bands, shapes_of
from ..lowering.spec import BandTree, TransformSpec, transform_spec, undecimated_spec
from ..wavelets import Wavelet
from .banks import layer_wavelets

__all__ = [
    "DWT1DForward",
    "DWT1DInverse",
    "DWT3DForward",
    "DWT3DInverse",
    "DWTForward",
    "DWTInverse",
    "SWTForward",
    "SWTInverse",
    "checked_count",
]

MODE_ALIASES = {"per": "periodization", "replicate": "constant"}  # of pytorch_wavelets
Pyramid = tuple[Tensor, list[Tensor]]


@lru_cache(maxsize=256)
def _spec(wavelets: tuple[Wavelet, ...], mode: str, stationary: bool) -> TransformSpec:
    ndim = len(wavelets)
    make = undecimated_spec if stationary else transform_spec
    return make(2 + ndim, wavelets, mode, tuple(range(2, 2 + ndim)))


@lru_cache(maxsize=16)
def _stacking(ndim: int) -> Stacking | None:
    """Return how the details of a level are one tensor: with the bands along its third axis."""
    if ndim == 1:
        return None
    return Stacking(2, (1, 0, 2) if ndim == 2 else tuple(range(2**ndim - 1)))  # In 2-D: cH, cV, cD.


def _parts(
    x: Tensor, wavelets: Sequence[Wavelet], mode: str, levels: int, stationary: bool, before: int = 0
) -> list[Tensor]:
    """Return the approximation, and the details of each level, coarsest first.

    ``before`` is the number of levels of a stationary transform that were computed before.
    """
    if is_torch_compiling():
        return call_untraced(__name__, "_parts", x, wavelets, mode, levels, stationary, before)
    transform = encoded(_spec(tuple(wavelets), mode, stationary).at_level(before))
    return decomposed(x, transform, levels, stacking=_stacking(len(wavelets)))


def _samples(parts: list[Tensor | None], wavelets: Sequence[Wavelet], mode: str, stationary: bool) -> Tensor:
    """Return the samples of an approximation and of the details of each level, coarsest first."""
    if is_torch_compiling():
        return call_untraced(__name__, "_samples", parts, wavelets, mode, stationary)
    spec, stacking = _spec(tuple(wavelets), mode, stationary), _stacking(len(wavelets))
    low, *levels = parts
    bands = parts if stacking is None else stacking.unstack(parts)
    tree, cut = BandTree.of_bands(spec, shapes_of(keyed_bands(bands, spec.keys[1:]), TORCH))
    if low is not None and cut is not None:
        low = low[tuple(slice(n) for n in cut)]
    return recomposed([low, *levels], encoded(spec), tree.sample_shapes[0], stacking=stacking)


def checked_count(number: Any, name: str, what: str, least: int = 0) -> int:
    """Return an argument that counts something, or raise an error."""
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise ArgumentError(
            f"{name} must be the number of {what}, an integer of at least {least}, got {number!r}"
        )
    return number


class _WaveletLayer(nn.Module):
    """A wavelet for each axis, a boundary mode, and the filters of one direction as buffers."""

    ndim = 2
    inverse = False
    stationary = False

    def __init__(self, wave: Any, mode: str) -> None:
        super().__init__()
        self.mode = mode
        self.wavelets = layer_wavelets(wave, self.ndim, self.inverse)
        _spec(self.wavelets, self._undula_mode, self.stationary)  # Checks the mode.
        for name, taps in self._filters().items():
            self.register_buffer(name, taps)
        self.register_load_state_dict_post_hook(_check_filters)

    def _filters(self) -> dict[str, Tensor]:
        """Return the filters of each axis, by the name of the buffer."""
        suffixes = {1: [""], 2: ["_col", "_row"]}.get(self.ndim, ["_depth", "_col", "_row"])
        filters = {}
        for axis, (wavelet, suffix) in enumerate(zip(self.wavelets, suffixes, strict=True)):
            shape = [1, 1, *[-1 if k == axis else 1 for k in range(self.ndim)]]
            bank = wavelet.filter_bank
            # A correlation reads the filters of analysis backwards.
            pair = bank[2:] if self.inverse else (bank[0][::-1], bank[1][::-1])
            for number, taps in enumerate(pair):
                filters[f"{'g' if self.inverse else 'h'}{number}{suffix}"] = torch.tensor(taps).reshape(shape)
        return filters

    @property
    def _undula_mode(self) -> str:
        return MODE_ALIASES.get(self.mode, self.mode)

    def _check(self, x: Tensor, what: str, bands: int | None = None) -> None:
        """Raise an error unless this is a tensor of lines, images or volumes, or of as many bands of them."""
        before = "N, C" if bands is None else f"N, C, {bands}"
        axes = f"({before}, {('L', 'H, W', 'D, H, W')[self.ndim - 1]})"
        if not isinstance(x, Tensor):
            raise ArgumentTypeError(f"{what} must be a tensor of shape {axes}, got {type(x).__name__}")
        if x.ndim != axes.count(",") + 1 or (bands is not None and x.shape[2] != bands):
            raise ArgumentError(f"{what} must have shape {axes}, got {tuple(x.shape)}")

    def extra_repr(self) -> str:
        """Return the arguments, for ``print``."""
        levels = f"J={self.J}, " if hasattr(self, "J") else ""
        return f"{levels}wave={self.wavelets[0].name!r}, mode={self.mode!r}"


def _check_filters(layer: Any, incompatible: Any) -> None:
    """Raise an error if filters were loaded that are not those of the wavelet."""
    for name, taps in layer._filters().items():
        if not torch.allclose(layer.get_buffer(name).cpu().to(taps.dtype), taps, atol=1e-4):
            raise ArgumentError(
                f"the filter {name} of the checkpoint is not that of {layer.wavelets[0].name!r}; create the"
                " layer with the wavelet of the checkpoint"
            )


class _Analysis(_WaveletLayer):
    """The forward transform of several levels."""

    def __init__(self, J: int = 1, wave: Any = "db1", mode: str = "zero") -> None:
        super().__init__(wave, mode)
        self.J = checked_count(J, "J", "levels")

    def forward(self, x: Tensor) -> Pyramid:
        """Return the approximation, and the details of each level, finest first.

        Parameters
        ----------
        x : Tensor
            Samples ``(N, C, …)``.
        """
        self._check(x, "samples")
        low, *levels = _parts(x, self.wavelets, self._undula_mode, self.J, False)
        return low, levels[::-1]


class _Synthesis(_WaveletLayer):
    """The inverse transform of several levels."""

    inverse = True

    def __init__(self, wave: Any = "db1", mode: str = "zero") -> None:
        super().__init__(wave, mode)

    def forward(self, coeffs: Pyramid) -> Tensor:
        """Return the samples of coefficients.

        Parameters
        ----------
        coeffs : (Tensor, list of Tensor or None)
            As the forward layer returns them; None stands for zeros.
        """
        low, levels = coeffs
        self._check(low, "the approximation")
        for details in levels:
            if details is not None:
                self._check(details, "details", None if self.ndim == 1 else 2**self.ndim - 1)
        return _samples([low, *reversed(levels)], self.wavelets, self._undula_mode, False)


class DWT1DForward(_Analysis):
    """Several levels of the DWT of lines.

    Parameters
    ----------
    J : int, default 1
        The number of levels.
    wave : str, Wavelet, or sequence of filters, default "db1"
        The wavelet, or the filters of analysis, ``(low, high)``.
    mode : str, default "zero"
        How lines go on beyond their ends: one of ``undula.MODES``.

    Examples
    --------
    >>> import torch
    >>> yl, yh = DWT1DForward(J=2, wave="db2")(torch.randn(1, 3, 16))
    >>> yl.shape, [level.shape for level in yh]
    (torch.Size([1, 3, 6]), [torch.Size([1, 3, 9]), torch.Size([1, 3, 6])])
    """

    ndim = 1


class DWT1DInverse(_Synthesis):
    """The inverse of :class:`DWT1DForward`.

    Parameters
    ----------
    wave : str, Wavelet, or sequence of filters, default "db1"
        The wavelet, or the filters of synthesis, ``(low, high)``.
    mode : str, default "zero"
        The mode of the transform.

    Examples
    --------
    >>> import torch
    >>> x = torch.randn(1, 3, 16)
    >>> torch.allclose(DWT1DInverse("db2")(DWT1DForward(2, "db2")(x)), x, atol=1e-5)
    True
    """

    ndim = 1


class DWTForward(_Analysis):
    """Several levels of the DWT of images.

    Parameters
    ----------
    J : int, default 1
        The number of levels.
    wave : str, Wavelet, or sequence of filters, default "db1"
        The wavelet; the filters of analysis, ``(low, high)``; or those of columns and of rows.
    mode : str, default "zero"
        How lines go on beyond their ends: one of ``undula.MODES``.

    Examples
    --------
    The details of a level are one tensor, with horizontal, vertical and diagonal ones along its third axis.

    >>> import torch
    >>> yl, yh = DWTForward(J=2, wave="haar")(torch.randn(1, 3, 16, 16))
    >>> yl.shape, [level.shape for level in yh]
    (torch.Size([1, 3, 4, 4]), [torch.Size([1, 3, 3, 8, 8]), torch.Size([1, 3, 3, 4, 4])])
    """


class DWTInverse(_Synthesis):
    """The inverse of :class:`DWTForward`.

    Parameters
    ----------
    wave : str, Wavelet, or sequence of filters, default "db1"
        The wavelet; the filters of synthesis, ``(low, high)``; or those of columns and of rows.
    mode : str, default "zero"
        The mode of the transform.

    Examples
    --------
    >>> import torch
    >>> yl, yh = DWTForward(J=2, wave="haar")(torch.randn(1, 3, 16, 16))
    >>> DWTInverse("haar")((yl, [None, yh[1]])).shape
    torch.Size([1, 3, 16, 16])
    """


class DWT3DForward(_Analysis):
    """Several levels of the DWT of volumes.

    Parameters
    ----------
    J : int, default 1
        The number of levels.
    wave : str, Wavelet, or sequence of filters, default "db1"
        The wavelet, or the filters of analysis, for all axes or one pair for each.
    mode : str, default "zero"
        How lines go on beyond their ends: one of ``undula.MODES``.

    Examples
    --------
    The seven details of a level, in the order of their keys from ``aad`` to ``ddd``, are one tensor.

    >>> import torch
    >>> yl, yh = DWT3DForward()(torch.randn(1, 2, 8, 8, 8))
    >>> yl.shape, yh[0].shape
    (torch.Size([1, 2, 4, 4, 4]), torch.Size([1, 2, 7, 4, 4, 4]))
    """

    ndim = 3


class DWT3DInverse(_Synthesis):
    """The inverse of :class:`DWT3DForward`.

    Parameters
    ----------
    wave : str, Wavelet, or sequence of filters, default "db1"
        The wavelet, or the filters of synthesis, for all axes or one pair for each.
    mode : str, default "zero"
        The mode of the transform.

    Examples
    --------
    >>> import torch
    >>> x = torch.randn(1, 2, 8, 8, 8)
    >>> torch.allclose(DWT3DInverse()(DWT3DForward()(x)), x, atol=1e-5)
    True
    """

    ndim = 3


class SWTForward(_WaveletLayer):
    """Several levels of the stationary transform of images.

    Parameters
    ----------
    J : int, default 1
        The number of levels.
    wave : str, Wavelet, or sequence of filters, default "db1"
        The wavelet; the filters of analysis, ``(low, high)``; or those of columns and of rows.
    mode : str, default "periodization"
        How lines go on beyond their ends: one of ``undula.MODES``. With ``"periodization"``, bands have the
        shape of the image; with others they are longer.

    Examples
    --------
    >>> import torch
    >>> [level.shape for level in SWTForward(J=2)(torch.randn(1, 3, 8, 8))]
    [torch.Size([1, 3, 4, 8, 8]), torch.Size([1, 3, 4, 8, 8])]
    """

    stationary = True

    def __init__(self, J: int = 1, wave: Any = "db1", mode: str = "periodization") -> None:
        super().__init__(wave, mode)
        self.J = checked_count(J, "J", "levels")

    def forward(self, x: Tensor) -> list[Tensor]:
        """Return the approximation and the details of each level, finest first, each as one tensor."""
        self._check(x, "samples")
        levels = []
        for level in range(self.J):
            x, details = _parts(x, self.wavelets, self._undula_mode, 1, True, level)
            levels.append(torch.cat([x.unsqueeze(2), details], 2))
        return levels


class SWTInverse(_WaveletLayer):
    """The inverse of :class:`SWTForward`, of which it reads the coarsest approximation only.

    Parameters
    ----------
    wave : str, Wavelet, or sequence of filters, default "db1"
        The wavelet; the filters of synthesis, ``(low, high)``; or those of columns and of rows.
    mode : str, default "periodization"
        The mode of the transform.

    Examples
    --------
    >>> import torch
    >>> x = torch.randn(1, 3, 8, 8)
    >>> torch.allclose(SWTInverse("db2")(SWTForward(2, "db2")(x)), x, atol=1e-5)
    True
    """

    stationary = True
    inverse = True

    def __init__(self, wave: Any = "db1", mode: str = "periodization") -> None:
        super().__init__(wave, mode)

    def forward(self, coeffs: list[Tensor]) -> Tensor:
        """Return the samples of coefficients, as the forward layer returns them."""
        if not coeffs:
            raise ArgumentError("coefficients of at least one level are needed, got none")
        for level in coeffs:
            self._check(level, "each level", 2**self.ndim)
        details = [level[:, :, 1:] for level in reversed(coeffs)]
        return _samples([coeffs[-1][:, :, 0], *details], self.wavelets, self._undula_mode, True)
