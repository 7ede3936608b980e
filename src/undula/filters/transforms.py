"""The wavelet transform of a pipeline: its wavelet, its boundary mode, and where and how it is computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..engines.base import TransformOptions
from ..engines.dispatch import decompose, engine_for, recompose
from ..engines.gpu.engine import DeviceEngine
from ..engines.gpu.strategies import STRATEGIES
from ..errors import ArgumentError, UnknownNameError
from ..functions import dwtn, idwtn, wavedecn, waverecn
from ..lowering.spec import TransformSpec, transform_spec
from ..schemes import SCHEMES
from ..wavelets import Wavelet

__all__ = ["MAX_LEVELS", "PipelineTransform"]

MAX_LEVELS = 64  # No array is large enough for more.


@dataclass(frozen=True)
class PipelineTransform:
    """A transform of planes, with the strategy and the scheme that the caller has chosen.

    Parameters
    ----------
    wavelet : Wavelet
    mode : str
        Boundary mode.
    backend, strategy, scheme : str, default "auto"
        As for :class:`undula.Pipeline`.
    """

    wavelet: Wavelet
    mode: str = "symmetric"
    backend: str = "auto"
    strategy: str = "auto"
    scheme: str = "auto"

    @property
    def automatic(self) -> bool:
        """Whether the library chooses strategy and scheme."""
        return self.strategy == self.scheme == "auto"

    def check(self, x: Any) -> None:
        """Raise an error for a strategy or scheme that does not exist, or that does not apply here."""
        for name, value, known in (
            ("strategy", self.strategy, tuple(STRATEGIES)),
            ("scheme", self.scheme, ("auto", *SCHEMES)),
        ):
            if value not in known:
                raise UnknownNameError(name, value, known)
        if not self.automatic:
            self._chosen_engine(x)

    def _chosen_engine(self, x: Any) -> tuple[DeviceEngine, TransformOptions]:
        """Return the engine and the options for a strategy or scheme that the caller has chosen."""
        engine = engine_for([x], self.backend)
        if not isinstance(engine, DeviceEngine):
            raise ArgumentError(
                f"strategy {self.strategy!r} and scheme {self.scheme!r} are for backends 'cuda' and"
                f" 'opencl', not for {self.backend!r}"
            )
        return engine, TransformOptions(self.strategy if self.scheme == "auto" else "tiled", self.scheme)

    def spec(self, x: Any, axes: Sequence[int]) -> TransformSpec:
        """Return the transform of an array along its spatial axes."""
        return transform_spec(len(x.shape), self.wavelet, self.mode, tuple(axes))

    def decompose(self, x: Any, levels: int, axes: Sequence[int]) -> list[Any]:
        """Return the approximation, then the details of each level by key, coarsest first."""
        if self.automatic:
            return wavedecn(x, self.wavelet, self.mode, levels, tuple(axes), backend=self.backend)
        engine, options = self._chosen_engine(x)
        coeffs = decompose(engine, self.spec(x, axes), x, levels, options=options)
        return list(engine.restore(coeffs, x))

    def recompose(self, coeffs: list[Any], shape: tuple[int, ...], axes: Sequence[int]) -> Any:
        """Return the samples of the coefficients of :meth:`decompose`."""
        if self.automatic:
            return waverecn(coeffs, self.wavelet, self.mode, tuple(axes), shape=shape, backend=self.backend)
        engine, options = self._chosen_engine(coeffs[0])
        spec = self.spec(coeffs[0], axes)
        return engine.restore(recompose(engine, spec, coeffs, shape, options=options), coeffs[0])

    def decompose_level(
        self, x: Any, axes: Sequence[int], out: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return all bands of one level by key, or write them into ``out``."""
        if self.automatic:
            return dwtn(x, self.wavelet, self.mode, tuple(axes), out=out, backend=self.backend)
        low_key = "a" * len(axes)
        if out is None:
            low, details = self.decompose(x, 1, axes)
            return {low_key: low, **details}
        engine, options = self._chosen_engine(x)
        keyed = [out[low_key], {key: band for key, band in out.items() if key != low_key}]
        decompose(engine, self.spec(x, axes), x, 1, keyed, keyed, options=options)
        return out

    def recompose_level(self, bands: dict[str, Any], shape: tuple[int, ...], axes: Sequence[int]) -> Any:
        """Return the samples of the bands of :meth:`decompose_level`."""
        if self.automatic:
            return idwtn(bands, self.wavelet, self.mode, tuple(axes), shape=shape, backend=self.backend)
        details = dict(bands)
        return self.recompose([details.pop("a" * len(axes)), details], shape, axes)
