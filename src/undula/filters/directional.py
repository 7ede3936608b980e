"""The stage that shrinks the coefficients of a dual tree, which have a direction.

Coefficients z of a direction are shrunk by the bivariate rule [1]_, with their parents p, those of the next
coarser level at the same place, and the variance s² of the image around them, without that of the noise n²::

    gain = max(0, 1 - c n²/(s √(|z|² + |p|²)))

.. [1] L. Şendur, I. W. Selesnick: Bivariate shrinkage with local variance estimation. IEEE Signal Processing
       Letters, 2002.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..errors import ArgumentError
from ..lowering.dual_tree import DualTree
from ..lowering.graph import Pointwise
from ..lowering.symbolic import materialize, symbolic, xp
from ..wavelets import as_wavelet
from .base import FilteredImage, FilterStage, Word, argument, check_number
from .noise import noise_argument
from .operations import OPERATIONS, smallest_normal

__all__ = ["Directional"]

FIRST, WAVELET = "cdf97", "qshift14"
# Standard deviation of coefficients of white noise with unit variance, finest level first.
NORMS = (0.7085, 0.7550, 0.6688, 0.6884, 0.7185)
WINDOW = np.full(7, 1 / 7)  # taps along an axis of the mean around a coefficient
FACTOR = 1.4  # c, with n² of the real and the imaginary part together
LEAST_VARIANCE = 1e-6  # of the image, in units of that of the noise
TINY = 1e-30  # of a squared energy, in units of that of the noise


@dataclass(frozen=True, repr=False)
class Directional(FilterStage):
    """Shrink the coefficients of a dual tree, which removes noise and keeps edges of all directions.

    For images; volumes are filtered plane by plane. It takes the place of the wavelet of the pipeline.

    Parameters
    ----------
    sigma : float, optional
        Standard deviation of the noise; estimated if None.
    strength : float, default 1.0
        Factor of the noise; higher values remove more.

    Examples
    --------
    >>> from undula.filters import Pipeline
    >>> noisy = 100 + np.random.default_rng(0).standard_normal((64, 64))
    >>> bool(Pipeline(stages=[Directional()])(noisy).std() < 0.3)
    True
    """

    kind: ClassVar[str] = "directional"
    description: ClassVar[str] = "Reduce noise by shrinking small details of all directions"
    icon: ClassVar[str] = "explore"
    words: ClassVar = {"directional": Word(("strength",))}
    sigma: float | None = noise_argument()
    strength: float = argument(1.0, "Strength", 0, 3, 0.01)

    def _check(self) -> None:
        check_number(self.strength, "strength")
        if self.sigma is not None:
            check_number(self.sigma, "sigma")

    def places(self) -> tuple[str, ...]:
        """Return the place of the stage: behind the reconstruction."""
        return ("result",)

    def on_result(self, x: Any, image: FilteredImage) -> Any:
        """Shrink the coefficients of the image."""
        if image.ndim < 2:
            raise ArgumentError(
                "the method directional needs images with at least two axes of more than one sample; use"
                " another method, such as 'bivariate'"
            )
        sigma = image.noise() if self.sigma is None else OPERATIONS.per_item(self.sigma, image.samples)
        planes = xp.reshape(x, (-1, *x.shape[-2:]))
        count = planes.shape[0] // x.shape[0]  # planes of a volume
        sigma = sigma * (self.strength * image.strength)
        noise = xp.reshape(xp.broadcast_to(xp.reshape(sigma, (-1, 1)), (x.shape[0], count)), (-1,))
        return xp.reshape(_shrunk(planes, noise), x.shape)


def _shrunk(x: Any, sigma: Any) -> Any:
    """Shrink the coefficients of planes with noise of each item."""
    graph = x.graph
    levels = min(len(NORMS), max(1, (min(x.shape[1:]) - 1).bit_length()))
    tree = DualTree(x.shape, (1, 2), levels, as_wavelet(FIRST), as_wavelet(WAVELET), x.dtype)
    materialize(x)
    bands, targets = [], []
    for level in range(1, levels + 1):
        # Real and imaginary parts are apart in memory.
        view = graph.allocate((2, *tree.directions, x.shape[0], *tree.band_lengths(level)), x.dtype)
        shape, strides = ((*part[1:], part[0]) for part in (view.shape, view.strides))
        targets.append(view._replace(shape=shape, strides=strides))
        bands.append(symbolic(graph, targets[-1]))
    low = tree.decompose(x, targets)
    # Energies are in units of that of the noise, so that small and large samples leave no range of floats.
    noisy = sigma >= smallest_normal(x)
    unit = OPERATIONS.spread(OPERATIONS.per_item(1 / xp.where(noisy, sigma, 1.0), x), x)
    variance = OPERATIONS.spread(OPERATIONS.per_item(xp.where(noisy, 1.0, 0.0), x), x)
    energies = [(band[..., 0] * unit) ** 2 + (band[..., 1] * unit) ** 2 for band in bands]
    materialize(*energies)
    shrunk = []
    for level, (band, energy) in enumerate(zip(bands, energies, strict=True)):
        noise = variance * NORMS[level] ** 2
        around = OPERATIONS.convolve(energy, WINDOW, 2)
        total = energy
        if level + 1 < levels:
            parent = energies[level + 1] * (NORMS[level] / NORMS[level + 1]) ** 2
            for axis in (2, 3):
                places = [k // 2 for k in range(energy.shape[axis])]
                parent = xp.take(parent, places, axis)
            total = total + parent
        signal = xp.maximum(around - noise, noise * LEAST_VARIANCE)
        gain = xp.maximum(1 - FACTOR * noise / xp.sqrt(xp.maximum(signal * total, TINY)), 0.0)
        shrunk.append(band * gain[..., None])
    result = graph.allocate(x.shape, x.dtype)
    graph.append(Pointwise((result,), (tree.recompose(graph, low, shrunk),)))
    return symbolic(graph, result)
