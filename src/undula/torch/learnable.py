"""A wavelet that is learned: the coefficients of its lifting steps are parameters.

Each lifting step is inverted by a subtraction, so that the transform is inverted whatever the coefficients
are. With the samples split into L and H,

    H += P L,  L += U H,  …        yl = ζ L,  yh = H / ζ'

and the inverse subtracts in the opposite order. Lines are periods of even length.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..algebra import Laurent
from ..errors import ArgumentError
from ..liftings import Lifting, lifting
from ..wavelets import Wavelet, as_wavelet
from .layers import checked_count

__all__ = ["LearnableDWT"]


class LearnableDWT(nn.Module):
    """Several levels of a DWT along the last axes, with lifting coefficients that are parameters.

    Parameters
    ----------
    wave : str or Wavelet, default "haar"
        The wavelet to begin with; any but ``dmey``, which has no lifting.
    J : int, default 1
        The number of levels.
    ndim : int, default 2
        The number of axes that are transformed, the last ones.
    extra_taps : int, default 0
        How many taps to add to each step, zero at first, at both of its ends.

    Attributes
    ----------
    steps : ParameterList
        The coefficients of the lifting steps.
    scaling : Parameter
        The logarithms of the magnitudes of the scaling of the low and the high band.

    Examples
    --------
    >>> import torch
    >>> layer = LearnableDWT("cdf53", J=2)
    >>> x = torch.randn(1, 3, 16, 16)
    >>> yl, yh = layer(x)
    >>> yl.shape, yh[0].shape
    (torch.Size([1, 3, 4, 4]), torch.Size([1, 3, 3, 8, 8]))
    >>> torch.allclose(layer.inverse((yl, yh)), x, atol=1e-5)
    True
    """

    def __init__(self, wave: str | Wavelet = "haar", J: int = 1, ndim: int = 2, extra_taps: int = 0) -> None:
        super().__init__()
        steps = lifting(as_wavelet(wave))
        self.J, self.ndim = checked_count(J, "J", "levels"), checked_count(ndim, "ndim", "axes", 1)
        checked_count(extra_taps, "extra_taps", "added taps")
        self.odd = steps.odd  # H[n] is the sample after L[n], or before it.
        self.kinds = [step.kind for step in steps.steps]
        self.places: list[range] = []
        taps = []
        for step in steps.steps:
            polynomial = dict(step.filter.items())
            self.places.append(range(min(polynomial) - extra_taps, max(polynomial) + extra_taps + 1))
            taps.append(torch.tensor([float(polynomial.get(k, 0)) for k in self.places[-1]]))
        self.steps = nn.ParameterList(taps)
        scaling = torch.tensor([float(factor) for factor in steps.scaling])
        self.scaling = nn.Parameter(scaling.abs().log())
        self.register_buffer("signs", scaling.sign())

    def forward(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return the approximation, and the details of each level, finest first.

        Parameters
        ----------
        x : Tensor
            Samples; the lengths of the transformed axes are multiples of ``2**J``.

        Returns
        -------
        yl : Tensor
            The approximation.
        yh : list of Tensor
            Details of each level, with the bands, by key from ``ad`` to ``dd``, along a new axis before the
            transformed ones.
        """
        self._check(x)
        x = self._floats(x)
        levels = []
        for _ in range(self.J):
            bands = [x]
            for axis in range(-self.ndim, 0):
                bands = [half for band in bands for half in self._split(band, axis)]
            x, *details = bands
            levels.append(torch.stack(details, -self.ndim - 1))
        return x, levels

    def inverse(self, coeffs: tuple[Tensor, list[Tensor]]) -> Tensor:
        """Return the samples of coefficients.

        Parameters
        ----------
        coeffs : tuple
            Approximation and list of details, as :meth:`forward` returns them.

        Returns
        -------
        Tensor
            Samples.
        """
        x, levels = self._floats(coeffs[0]), coeffs[1]
        for level in reversed(levels):
            bands = [x, *self._floats(level).unbind(-self.ndim - 1)]
            for axis in range(-1, -self.ndim - 1, -1):
                bands = [self._merge(bands[k], bands[k + 1], axis) for k in range(0, len(bands), 2)]
            (x,) = bands
        return x

    def _check(self, x: Tensor) -> None:
        if x.ndim < self.ndim or any(n % 2**self.J for n in x.shape[-self.ndim :]):
            raise ArgumentError(
                f"the last {self.ndim} lengths must be multiples of {2**self.J} for {self.J} level(s), got"
                f" shape {tuple(x.shape)}"
            )

    def _floats(self, x: Tensor) -> Tensor:
        """Return integers in the dtype of the parameters, which would be truncated in theirs."""
        return x if x.is_floating_point() or x.is_complex() else x.to(self.scaling.dtype)

    def _factors(self, x: Tensor) -> Tensor:
        return (self.signs * self.scaling.exp()).to(x.dtype)

    def _sum(self, x: Tensor, number: int, axis: int) -> Tensor:
        """Return a line filtered by a step: the sum of ``taps[k] x[n + place k]``."""
        taps = self.steps[number].to(x.dtype)
        terms = [tap * x.roll(-place, axis) for tap, place in zip(taps, self.places[number], strict=True)]
        return torch.stack(terms).sum(0)

    def _split(self, x: Tensor, axis: int) -> tuple[Tensor, Tensor]:
        pairs = x.unflatten(axis, (-1, 2))
        low, high = pairs.unbind(axis if axis >= 0 else pairs.ndim + axis)
        if self.odd < 0:
            high = high.roll(1, axis)
        for number, kind in enumerate(self.kinds):
            if kind == "predict":
                high = high + self._sum(low, number, axis)
            else:
                low = low + self._sum(high, number, axis)
        factors = self._factors(x)
        return factors[0] * low, factors[1] * high

    def _merge(self, low: Tensor, high: Tensor, axis: int) -> Tensor:
        factors = self._factors(low)
        low, high = low / factors[0], high / factors[1]
        for number, kind in reversed(list(enumerate(self.kinds))):
            if kind == "predict":
                high = high - self._sum(low, number, axis)
            else:
                low = low - self._sum(high, number, axis)
        if self.odd < 0:
            high = high.roll(-1, axis)
        place = low.ndim + axis
        return torch.stack([low, high], place + 1).flatten(place, place + 1)

    def wavelet(self, name: str = "learned") -> Wavelet:
        """Return the wavelet of the present coefficients, for all functions of this package.

        Parameters
        ----------
        name : str, default "learned"
            Name of the wavelet.

        Returns
        -------
        Wavelet

        Examples
        --------
        >>> LearnableDWT("cdf53").wavelet().dec_len
        6
        """
        steps = [
            (kind, Laurent(dict(zip(places, taps.tolist(), strict=True))))
            for kind, places, taps in zip(self.kinds, self.places, self.steps, strict=True)
        ]
        low, high = self._factors(self.scaling.double()).tolist()
        return Lifting.make(steps, (low, high), -1 if self.odd < 0 else 1).wavelet(name)
