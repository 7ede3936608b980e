"""Pipelines: a decomposition, the stages that filter it, and the reconstruction, as one value."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..engines.base import TransformOptions, computes_on_host
from ..engines.cpu import get_num_threads
from ..engines.dispatch import engine_for, recompose
from ..engines.gpu.launches import UnfusedError
from ..errors import ArgumentError, ArgumentTypeError, FileError, UndulaError, UnknownNameError
from ..functions import dwtn_max_level
from ..lowering.borders import MODES, check_mode
from ..wavelets import Wavelet, as_wavelet, wavelist
from . import shifts
from .background import scan_masks
from .base import Details, Pyramid
from .noise import band_norms
from .operations import ArrayOperations, rounding_floor, take
from .pictures import picture
from .planes import AUTO, COLORS, ImagePlanes
from .rules import like
from .shrinkage import LOCAL_METHODS
from .speckle import KINDS, MULTIPLICATIVE, Logarithm, check_looks
from .stages import FilterStage, Gain, Shrink, as_stage
from .trace import RunOptions, Trace
from .transforms import MAX_LEVELS, PipelineTransform

__all__ = ["Pipeline", "Views", "valid_coefficients"]

DEFAULT_LEVELS = 4
JSON_VERSION = 1


class Views(NamedTuple):
    """Pictures of the coefficients before and after the stages of a pipeline, and the filtered image."""

    analysis: Any
    filtered: Any
    synthesis: Any


@dataclass(frozen=True)
class Pipeline:
    """A wavelet decomposition with stages that filter it.

    Parameters
    ----------
    wavelet : str or Wavelet, default "db2"
    level : int, optional
        Number of levels; up to 4, depending on the size of the image, if None.
    stages : sequence, default ()
        Stages, names of stages, or dictionaries as in JSON.
    mode : str, default "symmetric"
        Boundary mode, one of ``undula.MODES``.
    invariant : bool or int, default False
        Whether to compute all shifts of each level and average over them, which avoids artefacts but takes
        about four times as long per level. An integer is the number of the finest levels with all shifts.
    color : {"ycbcr", "channels"}, default "ycbcr"
        Whether to filter luma and chroma, or each channel separately.
    speckle : {"intensity", "amplitude", "log"}, optional
        ``intensity`` and ``amplitude`` stand for multiplicative noise: logarithms are filtered. ``log`` is
        for scans that are logarithms already: their black background is left out of all statistics, except
        on a device, where it is not detected.
    looks : float, optional
        Number of independent looks that were averaged in an image with speckle; estimated if None.

    Examples
    --------
    >>> from undula.filters import Pipeline, Shrink, Unsharp
    >>> pipeline = Pipeline("bior4.4", 3, [Shrink("bayes"), Unsharp(sigma=1, amount=0.5, at="last")])
    >>> image = np.random.default_rng(0).integers(0, 256, (60, 80)).astype("uint8")
    >>> pipeline(image).shape, pipeline(image).dtype
    ((60, 80), dtype('uint8'))
    >>> Pipeline.from_json(pipeline.to_json()) == pipeline
    True
    """

    wavelet: str | Wavelet = "db2"
    level: int | None = None
    stages: Sequence[Any] = ()
    mode: str = field(default="symmetric", kw_only=True)
    invariant: bool | int = field(default=False, kw_only=True)
    color: str = field(default="ycbcr", kw_only=True)
    speckle: str | None = field(default=None, kw_only=True)
    looks: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        wavelet = as_wavelet(self.wavelet)
        if not isinstance(self.wavelet, str) and _has_known_name(wavelet):
            object.__setattr__(self, "wavelet", wavelet.name)  # As JSON has it.
        check_mode(self.mode, MODES)
        if isinstance(self.stages, (str, FilterStage, dict)):
            object.__setattr__(self, "stages", (self.stages,))
        if not isinstance(self.stages, Sequence):
            raise ArgumentTypeError(f"stages must be a sequence, got {self.stages!r}")
        object.__setattr__(self, "stages", tuple(map(as_stage, self.stages)))
        level = self.level
        integer = isinstance(level, (int, np.integer)) and not isinstance(level, bool)
        if level is not None and not (integer and 0 <= level <= MAX_LEVELS):
            raise ArgumentError(f"level must be an integer from 0 to {MAX_LEVELS}, or None; got {level!r}")
        if self.color not in COLORS:
            raise UnknownNameError("colour", self.color, COLORS)
        if self.speckle is not None and self.speckle not in KINDS:
            raise UnknownNameError("kind of speckle", self.speckle, KINDS)
        if self.looks is not None:
            check_looks(self.looks)
            if self.speckle not in MULTIPLICATIVE:
                raise ArgumentError("looks need speckle='intensity' or speckle='amplitude'")
        if not isinstance(self.invariant, (bool, int)) or self.invariant < 0:
            raise ArgumentTypeError(
                f"invariant must be True, False or a number of levels, got {self.invariant!r}"
            )

    @property
    def colors(self) -> str:
        """How colours are filtered: always as channels if logarithms are taken."""
        return "channels" if self.speckle in MULTIPLICATIVE else self.color

    @property
    def _shifted_levels(self) -> int:
        return MAX_LEVELS if self.invariant is True else int(self.invariant)

    def __str__(self) -> str:
        name = as_wavelet(self.wavelet).name
        head = f"{name}, {'default' if self.level is None else self.level} level(s), {self.mode}"
        if self.invariant:
            head += ", all shifts" + ("" if self.invariant is True else f" of {self.invariant} level(s)")
        if self.speckle:
            head += ", logarithmic scan" if self.speckle == "log" else f", logarithms of {self.speckle}"
        lines = [f"  {number}. {stage!r}" for number, stage in enumerate(self.stages, 1)]
        return "\n".join([head, *lines])

    # --- JSON -------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return the pipeline as JSON, for :meth:`from_json`."""
        wavelet = as_wavelet(self.wavelet)
        if not _has_known_name(wavelet):
            raise ArgumentError(
                f"only pipelines with a built-in wavelet can be written as JSON, got {wavelet.name!r}"
            )
        values: dict[str, Any] = {"undula": JSON_VERSION, "wavelet": wavelet.name, "level": self.level}
        options = [option for option in fields(self) if option.kw_only]
        values |= {
            option.name: getattr(self, option.name)
            for option in options
            if getattr(self, option.name) != option.default
        }
        values["stages"] = [stage.to_dict() for stage in self.stages]
        return json.dumps(values, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Pipeline:
        """Return the pipeline that :meth:`to_json` has written."""
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ArgumentError(f"a pipeline must be valid JSON: {error}") from None
        if not isinstance(values, dict):
            raise ArgumentError(f"a pipeline must be a JSON object, got {type(values).__name__}")
        version = values.pop("undula", JSON_VERSION)
        if version != JSON_VERSION:
            raise ArgumentError(f"cannot read a pipeline of version {version!r}; expected {JSON_VERSION}")
        names = tuple(option.name for option in fields(cls))
        for key in values:
            if key not in names:
                raise UnknownNameError("key of a pipeline", key, names)
        return cls(**values)

    def save(self, path: str | Path) -> None:
        """Write the pipeline to a JSON file."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Pipeline:
        """Read a pipeline from a JSON file."""
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise FileError(f"cannot read {path}: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise FileError(f"cannot read {path}: expected a pipeline as JSON, but it is not text") from None
        except UndulaError as error:
            error.args = (f"cannot read {path}: {error}",)
            raise

    # --- running ----------------------------------------------------------------------------------

    def __call__(
        self,
        x: Any,
        *,
        sigma: Any = None,
        channel_axis: int | str | None = AUTO,
        axes: Sequence[int] | None = None,
        mask: Any = None,
        backend: str = "auto",
        strategy: str = "auto",
        scheme: str = "auto",
        counted: Any = None,
        trace: Trace | None = None,
    ) -> Any:
        """Filter an image, a volume or a batch of them.

        Parameters
        ----------
        x : array
            Array of NumPy, or of CuPy, PyTorch or JAX on a GPU. Integers of 32 and 64 bits and float64 are
            filtered in float64, so that integers beyond 2^53 lose precision; all others in float32.
        sigma : float or sequence of float, optional
            Standard deviation of the noise, or one per channel, for stages without their own; estimated if
            None.
        channel_axis : int, None or "auto", default "auto"
            Axis of channels. ``auto`` takes the last of three axes if it has 3 or 4 samples.
        axes : sequence of int, optional
            Spatial axes; the other axes count images. All axes except that of the channels if None.
        mask : array of bool, optional
            True where samples are valid. Other samples, like NaNs and infinities, stay unchanged and are left
            out of all statistics. Pixels that lack some of their colours are filtered by channel. NaNs and
            infinities on a device are not detected, because the host would have to wait for it; pass a mask.
        backend : {"auto", "cpu", "cuda", "opencl"}, default "auto"
            ``cuda:1`` is the second GPU that :func:`undula.devices` lists.
        strategy, scheme : str, default "auto"
            How a device computes transforms, as for :class:`undula.Plan`; results are the same.
        counted : array of bool, optional
            True where samples count in statistics; all samples are filtered. It has the shape of the image.
        trace : Trace, optional
            Records times, and coefficients and thresholds if it keeps them.

        Returns
        -------
        array
            Image of the shape, dtype and library of the input, on the same device.
        """
        planar, valid = self.image_planes(x, channel_axis, axes, mask, counted)
        planes = self.on_planes(
            planar.operations,
            planar.planes,
            planar.ndim,
            planar.item_sigmas(sigma),
            valid,
            RunOptions(backend, strategy, scheme, trace),
        )
        options = {"backend": backend, "strategy": strategy, "scheme": scheme, "counted": counted}
        options |= {"sigma": sigma, "channel_axis": channel_axis, "axes": axes, "mask": mask}
        return self._complete(planar, planes, x, options)

    def image_planes(
        self,
        x: Any,
        channel_axis: int | str | None,
        axes: Sequence[int] | None,
        mask: Any,
        counted: Any = None,
    ) -> tuple[ImagePlanes, Any]:
        """Return an image as planes, and where samples of the planes count in statistics.

        The arguments are those of a call. The second result is None if all samples count.
        """
        if self.speckle == "log":
            mask, bright = scan_masks(x, channel_axis, axes, mask)
            if bright is not None:
                counted = bright if counted is None else counted & bright
        planar = ImagePlanes(x, channel_axis, axes, self.colors, mask)
        if counted is None:
            return planar, planar.valid
        counted = planar.arrange(counted)
        return planar, counted if planar.valid is None else planar.valid & counted

    def _complete(self, planar: ImagePlanes, planes: Any, x: Any, options: dict[str, Any]) -> Any:
        """Convert planes to an image; pixels that lack some channels are filtered again, by channel."""
        image = planar.to_image(planes)
        if not planar.uneven:
            return image
        return planar.join(image, replace(self, color="channels")(x, **options))

    def frames(self, frames: Iterable[Any], *, workers: int | None = None, **options: Any) -> Iterator[Any]:
        """Filter frames in their order, several at a time, in constant memory.

        Parameters
        ----------
        frames : iterable of array
        workers : int, optional
            Number of frames to filter at the same time; the number of threads if None.
        **options
            Arguments of a call.

        Yields
        ------
        array
        """
        count = get_num_threads() if workers is None else workers
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise ArgumentError(f"workers must be an integer of at least 1, got {workers!r}")
        if count == 1:
            for frame in frames:
                yield self(frame, **options)
            return
        waiting: deque[Any] = deque()
        with ThreadPoolExecutor(count, "undula-frames") as pool:
            try:
                for frame in frames:
                    waiting.append(pool.submit(self, frame, **options))
                    if len(waiting) > count:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for task in waiting:
                    task.cancel()

    def views(
        self,
        x: Any,
        *,
        sigma: Any = None,
        channel_axis: int | str | None = AUTO,
        axes: Sequence[int] | None = None,
        mask: Any = None,
        backend: str = "auto",
    ) -> Views:
        """Return pictures of the coefficients before and after the stages, and the filtered image.

        Details are shown around a mid-grey. The pictures have the size of the image. The arguments are those
        of a call.
        """
        planar, valid = self.image_planes(x, channel_axis, axes, mask)
        if planar.ndim != 2:
            raise ArgumentError(f"views need an image with 2 axes, got {planar.ndim}")
        shape = planar.planes.shape[1:]
        if self.levels_for(shape) == 0:
            raise ArgumentError("without a level there is nothing to see; pass level=1 or more")
        backend = backend or "auto"
        trace = Trace(keep=True)
        arguments = (planar.operations, planar.planes, 2, planar.item_sigmas(sigma), valid)
        decimated = replace(self, invariant=False)
        planes = decimated.on_planes(*arguments, RunOptions(backend, trace=trace))
        if self.invariant:
            planes = self.on_planes(*arguments, RunOptions(backend))
        assert trace.before is not None
        assert trace.after is not None
        pictures = [picture(*coefficients, shape) for coefficients in (trace.before, trace.after)]
        if planar.mixed:  # Of colours, show the luma alone.
            pictures = [channels[:1] for channels in pictures]
        analysis, filtered = (p[0] if p.shape[0] == 1 else p for p in pictures)
        options = {"sigma": sigma, "channel_axis": channel_axis, "axes": axes, "mask": mask}
        return Views(analysis, filtered, self._complete(planar, planes, x, {**options, "backend": backend}))

    def levels_for(self, shape: Sequence[int]) -> int:
        """Return the number of levels for an image of this shape."""
        wavelet = as_wavelet(self.wavelet)
        useful = max(1, dwtn_max_level(tuple(shape), wavelet))
        if self.level is None:
            return min(DEFAULT_LEVELS, useful)
        deepest = max(1, math.ceil(math.log2(max(2, *shape))))
        if self.level > deepest:
            raise ArgumentError(
                f"{self.level} levels are too many for an image of shape {tuple(shape)}: pass at most"
                f" {deepest}, or {useful} so that no line gets shorter than the filters of {wavelet.name!r}"
            )
        return int(self.level)

    def on_planes(
        self,
        operations: ArrayOperations,
        x: Any,
        ndim: int,
        sigma: Any = None,
        valid: Any = None,
        options: RunOptions | None = None,
    ) -> Any:
        """Filter planes of floats with items first.

        Parameters
        ----------
        operations : ArrayOperations
        x : array of shape (items, ...)
        ndim : int
            Number of spatial axes.
        sigma : array, optional
            Noise of each item; estimated if None.
        valid : array of bool, optional
            Samples that count in statistics; all if None.
        options : RunOptions, optional
        """
        options = options or RunOptions()
        with nullcontext() if options.trace is None else options.trace.watching():
            if self.speckle not in MULTIPLICATIVE:
                return self._filter_planes(operations, x, ndim, sigma, valid, options)
            logarithm = Logarithm(operations, self.speckle, self.looks, ndim)
            logs = logarithm.forward(x, valid)
            return logarithm.inverse(
                self._filter_planes(operations, logs, ndim, sigma, logarithm.valid, options)
            )

    def _filter_planes(
        self,
        operations: ArrayOperations,
        x: Any,
        ndim: int,
        sigma: Any,
        valid: Any,
        options: RunOptions,
    ) -> Any:
        """Decompose planes, run all stages, and reconstruct; the arguments are those of :meth:`on_planes`."""
        trace = options.trace
        keep = trace is not None and trace.keep
        wavelet = as_wavelet(self.wavelet)
        transform = PipelineTransform(wavelet, self.mode, options.backend, options.strategy, options.scheme)
        transform.check(x)
        for stage in self.stages:
            if "image" in stage.places():
                x = stage.on_samples(x, operations, ndim)
        if trace is not None:
            trace.lap("filter", operations, x)
        shape = tuple(int(n) for n in x.shape[1:])
        levels = self.levels_for(shape)
        stages = [(k, stage) for k, stage in enumerate(self.stages) if "image" not in stage.places()]
        if levels == 0 or not (stages or keep):
            return x
        low, details, shapes = self._decompose(operations, x, ndim, levels, transform)
        if trace is not None:
            trace.lap("forward", operations, low)
            if keep:
                trace.before = (low, details)
        pyramid = Pyramid(
            operations=operations,
            norms=_band_norms(wavelet, levels, ndim),
            samples=math.prod(shape),
            ndim=ndim,
            offset=max(0, (wavelet.dec_len - 3) // 2),
            sigma=sigma,
            valid=valid_coefficients(operations, valid, details, ndim, wavelet, self.invariant),
            overwrite=not keep,
            floor=rounding_floor(operations, low, levels, ndim),
        )
        fused = None if keep else self._fused_stage([stage for _, stage in stages], operations, transform)
        for k, stage in stages:
            if "last" in stage.places():
                low = stage.on_samples(low, operations, ndim)
            if "details" in stage.places() and stage is not fused:
                if trace is not None and keep and isinstance(stage, Shrink):
                    trace.keep_limits(k, stage.limits(details, pyramid), int(x.shape[0]))
                details = stage.on_details(details, pyramid)
        if trace is not None:
            trace.lap("filter", operations, next(iter(details[-1].values())))
            if keep:
                trace.after = (low, details)
        if self.invariant:
            filtered = shifts.inverse(operations, low, details, shapes, transform, ndim, self._shifted_levels)
        elif fused is not None:
            filtered = self._reconstruct_fused(fused, low, details, pyramid, x, transform)
        else:
            filtered = _reconstruct(low, details, x, transform)
        if trace is not None:
            trace.lap("inverse", operations, filtered)
        return filtered

    def _decompose(
        self, operations: ArrayOperations, x: Any, ndim: int, levels: int, transform: PipelineTransform
    ) -> tuple[Any, Details, list[tuple[int, ...]]]:
        """Return the approximation, details finest level first, and for all shifts the decomposed shapes."""
        between = [stage for stage in self.stages if "approximation" in stage.places()]

        def on_approximation(low: Any, level: int) -> Any:
            for stage in between:
                if getattr(stage, "levels", None) is None or level in stage.levels:
                    low = stage.on_samples(low, operations, ndim)
            return low

        if self.invariant:
            return shifts.forward(
                operations, x, transform, levels, ndim, on_approximation, self._shifted_levels
            )
        axes = tuple(range(1, 1 + ndim))
        if not between and levels <= dwtn_max_level(tuple(x.shape[1:]), transform.wavelet):
            coeffs = transform.decompose(x, levels, axes)
            return coeffs[0], list(reversed(coeffs[1:])), []
        low, details = x, []
        for level in range(1, levels + 1):
            bands = dict(transform.decompose_level(low, axes))
            low = bands.pop("a" * ndim)
            details.append(bands)
            if level < levels:
                low = on_approximation(low, level)
        return low, details, []

    def _fused_stage(
        self, stages: Sequence[FilterStage], operations: ArrayOperations, transform: PipelineTransform
    ) -> Shrink | Gain | None:
        """Return the last stage on details if a device can apply it while it reads them for the inverse."""
        on_details = [stage for stage in stages if "details" in stage.places()]
        on_cpu = operations.host and computes_on_host(transform.backend)
        if self.invariant or on_cpu or not transform.automatic or not on_details:
            return None
        last = on_details[-1]
        if isinstance(last, Gain):
            return last
        if not isinstance(last, Shrink) or last.method in LOCAL_METHODS:
            return None
        # A threshold of 0 leaves the bands unchanged that are not selected, except with these rules.
        selects = last.levels is not None or last.bands is not None
        return None if selects and last.rule in ("greater", "less") else last

    def _reconstruct_fused(
        self,
        stage: Shrink | Gain,
        low: Any,
        details: Details,
        pyramid: Pyramid,
        x: Any,
        transform: PipelineTransform,
    ) -> Any:
        """Reconstruct on a device that applies thresholds or gains to details while it reads them."""
        operations, xp = pyramid.operations, pyramid.operations.xp
        limits = stage.limits(details, pyramid)
        assert limits is not None
        pairs = dict(zip(limits.bands, zip(limits.lows, limits.highs, strict=True), strict=True))
        keys = sorted(details[0])
        # For each level, the first thresholds of all bands, then the second ones.
        values = [
            pairs.get((index, key), (0.0, 0.0))[side]
            for index in range(len(details))
            for side in (0, 1)
            for key in keys
        ]
        counts = (len(details), 2, len(keys))
        per_item = not all(isinstance(value, float) for value in (*limits.lows, *limits.highs))
        if per_item:
            columns = [operations.per_item(value, x) for value in values]
            table = xp.reshape(xp.stack(columns, axis=-1), (int(x.shape[0]), *counts))
        else:
            table = xp.reshape(like(xp, np.array(values, np.float64), x), counts)
        engine = engine_for([x], transform.backend)
        try:
            samples = recompose(
                engine,
                transform.spec(x, range(1, 1 + pyramid.ndim)),
                [low, *reversed(details)],
                tuple(int(n) for n in x.shape),
                options=TransformOptions(rule=limits.rule, each=per_item),
                limits=table,
            )
            return engine.restore(samples, x)
        except UnfusedError:
            return _reconstruct(low, limits.apply(details, pyramid), x, transform)


def _has_known_name(wavelet: Wavelet) -> bool:
    """Return whether the name of a wavelet stands for it."""
    return wavelet.name in wavelist() and as_wavelet(wavelet.name) == wavelet


def _reconstruct(low: Any, details: Details, x: Any, transform: PipelineTransform) -> Any:
    """Return the planes of coefficients, with the shape of the planes ``x``."""
    shape = tuple(int(n) for n in x.shape)
    return transform.recompose([low, *reversed(details)], shape, range(1, len(shape)))


def _band_norms(wavelet: Wavelet, levels: int, ndim: int) -> list[dict[str, float]]:
    """Return the norms of the bands by key, for each level."""
    keys = ["".join(letters) for letters in product("ad", repeat=ndim)][1:]
    return [
        {key: math.prod(high if letter == "d" else low for letter in key) for key in keys}
        for low, high in band_norms(wavelet, levels)
    ]


def valid_coefficients(
    operations: ArrayOperations,
    valid: Any,
    details: Details,
    ndim: int,
    wavelet: Wavelet,
    invariant: bool | int,
) -> list[Any]:
    """Return for each level where the two samples at the centre of each coefficient are valid.

    A coefficient also depends on other samples. Those that are not valid are filled in from their neighbours,
    so that they hardly matter. The list is empty if all samples are valid.
    """
    if valid is None:
        return []
    masks = []
    delay = (wavelet.dec_len - 2) // 2
    for bands in details:
        band = next(iter(bands.values()))
        for axis in range(1, 1 + ndim):
            count, size = valid.shape[axis], band.shape[len(band.shape) - ndim + axis - 1]
            even, odd = (
                take(operations.xp, valid, np.clip(2 * np.arange(size) - delay + side, 0, count - 1), axis)
                for side in (0, 1)
            )
            valid = even & odd
        masks.append(valid[:, None] if invariant else valid)
    return masks
