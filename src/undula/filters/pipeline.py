"""Pipelines: a decomposition, the stages that filter it, and the reconstruction, as one value."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..arrays import DASK, given_array, refuse_gradients
from ..engines.base import TransformOptions, computes_on_host
from ..engines.dispatch import engine_for
from ..engines.gpu.strategies import STRATEGIES
from ..engines.threads import frame_workers, share_of_threads
from ..errors import NO_FILE, ArgumentError, ArgumentTypeError, FileError, UndulaError, UnknownNameError
from ..functions import dwtn_max_level
from ..lowering.borders import MODES, check_mode
from ..lowering.graph import Graph
from ..lowering.spec import BandTree, transform_spec
from ..schemes import SCHEMES
from ..wavelets import Wavelet, as_wavelet
from .background import scan_masks
from .base import check_choice, check_number, plain_number
from .image_spectrum import image_spectrum
from .pictures import Views, picture
from .pipeline_json import arguments_from_json, has_known_name, pipeline_to_json
from .planes import AUTO, COLORS, GivenImage, checked_counted, copied_frame, is_constant
from .poisson import PHOTON_NOISE, filter_photons
from .programs import ImageRecipe, compiled_pipeline, pipeline_graph
from .speckle import KINDS, MULTIPLICATIVE, check_intensities, check_looks
from .spectrum import ESTIMATED, NoiseSpectrum, as_spectrum
from .stages import FilterStage, as_stage
from .trace import RunOptions, Trace
from .transforms import MAX_LEVELS
from .unchanged import NoiseReport

__all__ = ["Pipeline", "Views"]

Shape = tuple[int, ...]
DEFAULT_LEVELS = 4
FRAMES_ON_DEVICE = 3


@dataclass(frozen=True)
class Pipeline:
    """A wavelet decomposition with stages that filter it.

    Parameters
    ----------
    wavelet : str or Wavelet, default "db2"
        The wavelet.
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
    photons : {"poisson", "poisson-gaussian"}, optional
        The noise of counted photons, which is made equal everywhere before filtering; for arrays of NumPy.
    gain : float, optional
        What one photon adds to a sample; estimated if None.
    spectrum : array or "estimated", optional
        Power spectrum of noise that is not white, in the order of ``numpy.fft.fftn``. Its mean is the
        variance of the noise, unless ``sigma`` is given.
    max_level : int, default 4
        The largest number of levels if ``level`` is None.
    luma, chroma : float, default 1.0
        Factors of the strengths of stages that remove noise, for the luma and the chroma of colours. ``luma``
        also applies to grey images, and to channels that are filtered separately.

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
    photons: str | None = field(default=None, kw_only=True)
    gain: float | None = field(default=None, kw_only=True)
    spectrum: Any = field(default=None, kw_only=True)
    max_level: int = field(default=DEFAULT_LEVELS, kw_only=True)
    luma: float = field(default=1.0, kw_only=True)
    chroma: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        wavelet = as_wavelet(self.wavelet)
        if not isinstance(self.wavelet, str) and has_known_name(wavelet):
            object.__setattr__(self, "wavelet", wavelet.name)  # As JSON has it.
        object.__setattr__(self, "mode", check_mode(self.mode, MODES))
        for name in ("level", "invariant", "looks", "gain", "max_level", "luma", "chroma"):
            object.__setattr__(self, name, plain_number(getattr(self, name)))
        if isinstance(self.stages, (str, FilterStage, dict)):
            object.__setattr__(self, "stages", (self.stages,))
        if not isinstance(self.stages, Sequence):
            raise ArgumentTypeError(f"stages must be a sequence, got {self.stages!r}")
        object.__setattr__(self, "stages", tuple(map(as_stage, self.stages)))
        level = self.level
        integer = isinstance(level, int) and not isinstance(level, bool)
        if level is not None and not (integer and 0 <= level <= MAX_LEVELS):
            alternative = "" if integer else ", or None"  # Commands have no None.
            raise ArgumentError(
                f"level must be an integer from 0 to {MAX_LEVELS}{alternative}; got {level!r}"
            )
        if self.color not in COLORS:
            raise UnknownNameError("colour", self.color, COLORS)
        if self.speckle is not None and self.speckle not in KINDS:
            raise UnknownNameError("kind of speckle", self.speckle, KINDS)
        if self.looks is not None:
            check_looks(self.looks)
            if self.speckle not in MULTIPLICATIVE:
                raise ArgumentError("looks need speckle='intensity' or speckle='amplitude'")
        self._check_noise()
        check_number(self.luma, "luma")
        check_number(self.chroma, "chroma")
        if not isinstance(self.invariant, (bool, int)) or self.invariant < 0:
            raise ArgumentTypeError(
                f"invariant must be True, False or a number of levels, got {self.invariant!r}"
            )

    def _check_noise(self) -> None:
        """Raise an error for wrong kinds of noise."""
        if self.photons is not None:
            check_choice(self.photons, "photons", PHOTON_NOISE)
            if self.speckle is not None or self.spectrum is not None:
                raise ArgumentError("photons have neither speckle nor a spectrum; pass one of the three")
        if self.gain is not None:
            check_number(self.gain, "gain", exclusive=True)
            if self.photons is None:
                raise ArgumentError(f"gain is for noise='poisson' and 'poisson-gaussian', got {self.gain!r}")
        if self.spectrum is not None and not isinstance(self.spectrum, str):
            object.__setattr__(self, "spectrum", as_spectrum(self.spectrum))
        elif self.spectrum not in (None, ESTIMATED):
            raise UnknownNameError("spectrum", self.spectrum, (ESTIMATED,))
        limit = self.max_level
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LEVELS:
            raise ArgumentError(f"max_level must be an integer from 1 to {MAX_LEVELS}, got {limit!r}")

    @property
    def colors(self) -> str:
        """How colours are filtered: always as channels if logarithms are taken."""
        return "channels" if self.speckle in MULTIPLICATIVE else self.color

    @property
    def shifted_levels(self) -> int:
        """Number of the finest levels that are computed for all shifts."""
        return MAX_LEVELS if self.invariant is True else int(self.invariant)

    def __str__(self) -> str:
        name = as_wavelet(self.wavelet).name
        head = f"{name}, {'default' if self.level is None else self.level} level(s), {self.mode}"
        if self.invariant:
            head += ", all shifts" + ("" if self.invariant is True else f" of {self.invariant} level(s)")
        if self.speckle:
            head += ", logarithmic scan" if self.speckle == "log" else f", logarithms of {self.speckle}"
        if self.looks is not None:
            head += f", {self.looks:g} look(s)"
        if self.photons is not None:
            head += f", {self.photons} noise" + ("" if self.gain is None else f" with gain {self.gain:g}")
        if self.spectrum is not None:
            head += ", noise with a spectrum"
        if self.color != Pipeline.color:
            head += ", each channel separately"
        if self.luma != 1 or self.chroma != 1:
            head += f", luma × {self.luma:g}, chroma × {self.chroma:g}"
        lines = [f"  {number}. {stage!r}" for number, stage in enumerate(self.stages, 1)]
        return "\n".join([head, *lines])

    # --- JSON -------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """Return the pipeline as JSON, for :meth:`from_json`."""
        return pipeline_to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Pipeline:
        """Return the pipeline that :meth:`to_json` has written.

        Parameters
        ----------
        text : str
            What :meth:`to_json` returned.

        Returns
        -------
        Pipeline
        """
        return cls(**arguments_from_json(text, tuple(option.name for option in fields(cls))))

    def save(self, path: str | Path) -> None:
        """Write the pipeline to a JSON file.

        Parameters
        ----------
        path : str or Path
            The file, which is replaced if it exists.
        """
        text = self.to_json() + "\n"
        try:
            Path(path).write_text(text, encoding="utf-8")
        except OSError as error:
            raise FileError(f"cannot write {path}: {error.strerror or error}") from None

    @classmethod
    def load(cls, path: str | Path) -> Pipeline:
        """Read a pipeline from a JSON file.

        Parameters
        ----------
        path : str or Path
            A file that :meth:`save` wrote.

        Returns
        -------
        Pipeline
        """
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            cause = NO_FILE if isinstance(error, FileNotFoundError) else error.strerror or error
            raise FileError(f"cannot read {path}: {cause}") from None
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
        backend : {"auto", "cpu", "reference", "cuda", "opencl"}, default "auto"
            ``reference`` is plain NumPy, to check the others. ``cuda:1`` is the second GPU that
            :func:`undula.devices` lists.
        strategy, scheme : str, default "auto"
            How a device computes transforms, as for :class:`undula.Plan`; results are the same.
        counted : array of bool, optional
            True where samples count in statistics; all samples are filtered. It has the shape of the image.
        trace : Trace, optional
            Records times, and coefficients and thresholds if it keeps them.

        Returns
        -------
        array
            Image of the shape, dtype and library of the input, on the same device. Results beyond the range
            of integers or float16 become its limits.
        """
        run = (backend, strategy, scheme, counted, trace)
        result = self._filtered(x, sigma, channel_axis, axes, mask, *run)
        NoiseReport(self, sigma).compare(x, result)
        return result

    def _filtered(
        self, x: Any, sigma: Any = None, channel_axis: int | str | None = AUTO,
        axes: Sequence[int] | None = None, mask: Any = None, backend: str = "auto", strategy: str = "auto",
        scheme: str = "auto", counted: Any = None, trace: Trace | None = None,
    ) -> Any:  # fmt: skip
        """Filter an image as a call does, and do not say whether anything was changed."""
        if trace is not None and not isinstance(trace, Trace):
            raise ArgumentTypeError(f"trace must be an undula.filters.Trace, got {trace!r}")
        if self.photons is not None or self.spectrum == ESTIMATED:
            options = {"channel_axis": channel_axis, "axes": axes, "mask": mask, "backend": backend}
            options |= {"strategy": strategy, "scheme": scheme, "counted": counted, "trace": trace}
            if self.photons is not None:
                return filter_photons(self, x, sigma, options)
            if is_constant(x, mask):  # It has no noise to estimate.
                return x.copy()
            spectrum = image_spectrum(x, channel_axis, axes, self.colors, mask)
            return replace(self, spectrum=spectrum)._filtered(x, sigma=sigma, **options)
        if isinstance(self.spectrum, NoiseSpectrum) and sigma is None:
            sigma = self.spectrum.sigma
        if DASK.owns(x):
            from .chunked import filter_chunks

            refused = {"mask": mask, "counted": counted, "trace": trace}
            return filter_chunks(self, x, sigma, channel_axis, axes, backend, refused)
        image, counted = self._given(x, channel_axis, axes, mask, counted)
        run = RunOptions(backend, strategy, scheme, trace)
        if image.unit is None:
            return self._one_by_one(image, counted, sigma, run)
        result = image.as_given(self._run(image, counted, sigma, run))
        if not image.uneven:
            return result
        options = {"backend": backend, "strategy": strategy, "scheme": scheme, "counted": counted}
        options |= {"sigma": sigma, "channel_axis": channel_axis, "axes": axes, "mask": mask}
        return image.join(result, replace(self, color="channels")._filtered(x, **options))

    def _one_by_one(self, given: GivenImage, counted: Any, sigma: Any, options: RunOptions) -> Any:
        """Filter the images of a batch one by one, because their magnitudes are too different."""

        def filtered(image: Any, mask: Any, place: Any) -> Any:
            layout, part = given.layout, None if counted is None else counted[place]
            run = {**options._asdict(), "counted": part, "mask": mask}
            return self._filtered(image, sigma, layout.channel, layout.axes, **run)

        return given.as_given(given.one_by_one(filtered))

    def in_units(self, unit: float) -> Pipeline:
        """Return the pipeline for samples that were divided by a number.

        Parameters
        ----------
        unit : float
            The number, above 0.

        Returns
        -------
        Pipeline
            Its stages have their noise and their thresholds in this unit.
        """
        return self if unit == 1 else replace(self, stages=[stage.in_units(unit) for stage in self.stages])

    def _given(
        self, x: Any, channel_axis: int | str | None, axes: Sequence[int] | None, mask: Any, counted: Any
    ) -> tuple[GivenImage, Any]:
        """Return an image with its mask, and where samples count in statistics; None if all valid ones do."""
        if counted is not None:
            counted = checked_counted(counted, tuple(given_array(x, "image").shape))
        if self.speckle == "log":
            mask, bright = scan_masks(x, channel_axis, axes, mask)
            if bright is not None:
                counted = bright if counted is None else counted & bright
        return GivenImage(x, channel_axis, axes, self.colors, mask), counted

    def _run(self, image: GivenImage, counted: Any, sigma: Any, options: RunOptions) -> Any:
        """Compile the pipeline for an image, unless that was done before, and run it."""
        layout, trace = image.layout, options.trace
        engine = engine_for([image.array], options.backend)
        for name, value, known in (
            ("strategy", options.strategy, tuple(STRATEGIES)),
            ("scheme", options.scheme, ("auto", *SCHEMES)),
        ):
            if value not in known:
                raise UnknownNameError(name, value, known)
            engine.check_options(**{name: value})
        positive = False
        if self.speckle in MULTIPLICATIVE and image.on_host:
            positive = check_intensities(image.array, image.mask)
        keep = trace is not None and trace.keep
        recipe = ImageRecipe(
            layout, sigma is not None, image.mask is not None, counted is not None, positive, keep
        )
        strategy = options.strategy if options.scheme == "auto" else "tiled"
        unit = image.unit or 1.0
        pipeline = self.in_units(unit)
        executable = compiled_pipeline(pipeline, recipe, engine, TransformOptions(strategy, options.scheme))
        arrays = {"image": image.in_units()}
        if sigma is not None:
            arrays["sigma"] = layout.item_sigmas(sigma, unit)
        if image.mask is not None:
            arrays["mask"] = image.mask
        if counted is not None:
            arrays["counted"] = counted
        if trace is None:
            return image.from_units(executable.run(arrays)["result"])
        with trace.watching():
            outputs = executable.run(arrays, trace.seconds)
        trace.keep_outputs(outputs, unit)
        return image.from_units(outputs["result"])

    def frames(self, frames: Iterable[Any], *, workers: int | None = None, **options: Any) -> Iterator[Any]:
        """Filter frames in their order, several at a time, in constant memory.

        Parameters
        ----------
        frames : iterable of array
            Arrays on the host are copied before the next one is requested, so that an iterator may yield the
            same array with new contents.
        workers : int, optional
            Number of frames to filter at the same time, each with its share of the threads. If None, up to 4;
            on a device 3, so that one is uploaded and another one downloaded while a third one is filtered.
        **options
            Arguments of a call.

        Yields
        ------
        array
        """
        count = workers
        if count is None:
            on_host = computes_on_host(options.get("backend", "auto"))
            count = frame_workers() if on_host else FRAMES_ON_DEVICE
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise ArgumentError(f"workers must be an integer of at least 1, got {workers!r}")
        report = NoiseReport(self, options.get("sigma"))
        if count == 1:
            for frame in frames:
                result = self._filtered(frame, **options)
                report.compare(frame, result)
                yield result
            return
        waiting: deque[Any] = deque()

        def filtered(frame: Any) -> Any:
            with share_of_threads(count):
                result = self._filtered(frame, **options)
            report.compare(frame, result)
            return result

        pool = ThreadPoolExecutor(count, "undula-frames")
        try:
            for frame in frames:
                waiting.append(pool.submit(filtered, copied_frame(frame)))
                if len(waiting) > count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            # The garbage collector may close this generator. When a thread that is being started calls it,
            # waiting for other threads is a deadlock.
            pool.shutdown(wait=False, cancel_futures=True)

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

        Details are shown around a mid-grey. The pictures have the size of the image.

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
        backend : {"auto", "cpu", "reference", "cuda", "opencl"}, default "auto"
            ``reference`` is plain NumPy, to check the others. ``cuda:1`` is the second GPU that
            :func:`undula.devices` lists.

        Returns
        -------
        Views
            The three pictures: ``analysis``, ``filtered`` and ``synthesis``.
        """
        refuse_gradients(x, "image")
        image, _ = self._given(x, channel_axis, axes, mask, None)
        if image.layout.ndim != 2:
            raise ArgumentError(f"views need an image with 2 axes, got {image.layout.ndim}")
        shape = image.layout.planes_shape[1:]
        if self.levels_for(shape) == 0:
            raise ArgumentError("without a level there is nothing to see; pass level=1 or more")
        trace = Trace(keep=True)
        options = {
            "sigma": sigma,
            "channel_axis": channel_axis,
            "axes": axes,
            "mask": mask,
            "backend": backend,
        }
        synthesis = replace(self, invariant=False)(x, trace=trace, **options)
        if self.invariant:
            synthesis = self(x, **options)
        assert trace.before is not None
        assert trace.after is not None
        pictures = [picture(*coefficients, shape) for coefficients in (trace.before, trace.after)]
        if image.layout.mixed:  # Of colours, show the luma alone.
            pictures = [channels[:1] for channels in pictures]
        analysis, filtered = (p[0] if p.shape[0] == 1 else p for p in pictures)
        return Views(analysis, filtered, synthesis)

    def levels_for(self, shape: Sequence[int]) -> int:
        """Return the number of levels for an image of this shape.

        Parameters
        ----------
        shape : sequence of int
            Spatial shape of the image.

        Returns
        -------
        int
            ``level`` of the pipeline. If that is None, the largest number that is useful for this shape, but
            at most ``max_level``.
        """
        wavelet = as_wavelet(self.wavelet)
        useful = max(1, dwtn_max_level(tuple(shape), wavelet))
        if self.level is None:
            return min(self.max_level, useful)
        deepest = max(1, math.ceil(math.log2(max(2, *shape))))
        if self.level > deepest:
            raise ArgumentError(
                f"{self.level} levels are too many for an image of shape {tuple(shape)}: pass at most"
                f" {deepest}, or {useful} so that no line gets shorter than the filters of {wavelet.name!r}"
            )
        return int(self.level)

    def graph(self, recipe: ImageRecipe) -> Graph:
        """Return the program of the pipeline.

        Parameters
        ----------
        recipe : ImageRecipe
            Shape, dtype and options of the image to filter.

        Returns
        -------
        Graph
            The operations that an engine compiles.
        """
        return pipeline_graph(self, recipe)

    def level_shapes(self, shape: Shape, levels: int | None = None) -> list[Shape]:
        """Return the spatial shapes of an image and of its approximations.

        Parameters
        ----------
        shape : tuple of int
            Spatial shape of the image.
        levels : int, optional
            Number of levels; that of :meth:`levels_for` if None.

        Returns
        -------
        list of tuple of int
            The shape of the image first, then those of its approximations, finest first.
        """
        spec = transform_spec(len(shape), as_wavelet(self.wavelet), self.mode, None)
        levels = self.levels_for(shape) if levels is None else levels
        if levels == 0:
            return [shape]
        tree = BandTree.of_samples(spec, shape, levels)
        return [*tree.sample_shapes, tree.approximation_shape]
