"""Pipelines: a decomposition, what is done to it, and the reconstruction, as one value."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..backends.cpu import get_num_threads
from ..backends.devices.launches import UnfusedError
from ..errors import ArgumentError, ArgumentTypeError, FileError, UndulaError, UnknownNameError
from ..plans import dwtn_max_level
from ..plans.boundary import MODES, check_mode
from ..transforms import dwtn, wavedecn, waverecn
from ..transforms.levels import recipe
from ..transforms.ondevice import Options, backward, engine, forward
from ..wavelets import Wavelet, as_wavelet, wavelist
from . import shifts
from .arrays import Arrays, rounding_of
from .dark import lit
from .noise import band_norms
from .pictures import on_host, picture
from .speckle import KINDS, MULTIPLIED, Logarithm
from .stages import Gain, Pyramid, Shrink, Stage, applied, stage_of
from .subjects import AUTO, COLORS, Subject
from .trace import How, Trace

__all__ = ["Pipeline", "Views", "valid_levels"]

USUAL_LEVEL = 4
DEEPEST = 64  # no array is larger than what so many levels decompose
VERSION = 1


class Views(NamedTuple):
    """What a pipeline sees: coefficients before and after its stages, as pictures, and its result."""

    analysis: Any
    filtered: Any
    synthesis: Any


@dataclass(frozen=True)
class Pipeline:
    """A wavelet, a number of levels, and stages.

    Parameters
    ----------
    wavelet : str or Wavelet
    level : int, optional
        As deep as is usual for the size, if not given.
    stages : sequence of stages, of their names, or of dictionaries as JSON has them
    mode : str
        How lines go on beyond their ends, one of ``undula.MODES``.
    invariant : bool or int
        All shifts of every level, and their mean: fewer artefacts, at about four times the work of a level. A
        number is for so many of the finest levels, which is most of it.
    color : str
        ``ycbcr`` filters brightness and colour differences, ``channels`` each channel by itself.
    speckle : str, optional
        ``intensity`` or ``amplitude``: noise is multiplied, so logarithms are filtered. ``log`` is for what
        is logarithmic already, as scans on screens are: black around them stays, and out of all statistics.
    looks : number, optional
        Of speckle: how many independent looks were averaged; estimated if not given.

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
        own = as_wavelet(self.wavelet)
        if not isinstance(self.wavelet, str) and own.name in wavelist() and as_wavelet(own.name) == own:
            object.__setattr__(self, "wavelet", own.name)  # (as it is written down)
        check_mode(self.mode, MODES)
        if isinstance(self.stages, (str, Stage, dict)):
            object.__setattr__(self, "stages", (self.stages,))
        if not isinstance(self.stages, Sequence):
            raise ArgumentTypeError(f"stages are a sequence, got {self.stages!r}")
        object.__setattr__(self, "stages", tuple(stage_of(each) for each in self.stages))
        level = self.level
        whole = isinstance(level, (int, np.integer)) and not isinstance(level, bool)
        if level is not None and not (whole and 0 <= level <= DEEPEST):
            raise ArgumentError(f"level must be an integer from 0 to {DEEPEST}, or None; got {level!r}")
        if self.color not in COLORS:
            raise UnknownNameError("colour", self.color, COLORS)
        if self.speckle is not None and self.speckle not in KINDS:
            raise UnknownNameError("kind of speckle", self.speckle, KINDS)
        if self.looks is not None and not (
            isinstance(self.looks, (int, float)) and 0 < self.looks < math.inf
        ):
            raise ArgumentError(f"looks must be a number above 0, got {self.looks!r}")
        if self.looks is not None and self.speckle not in MULTIPLIED:
            raise ArgumentError("looks are those of speckle: pass speckle='intensity' or 'amplitude', too")
        if not isinstance(self.invariant, (bool, int)) or self.invariant < 0:
            raise ArgumentTypeError(
                f"invariant is True, False, or a number of levels, got {self.invariant!r}"
            )

    @property
    def colors(self) -> str:
        """As which planes colours are filtered: logarithms are taken of channels."""
        return "channels" if self.speckle in MULTIPLIED else self.color

    @property
    def _shifted(self) -> int:
        """Levels that have all shifts."""
        return 64 if self.invariant is True else int(self.invariant)

    def __str__(self) -> str:
        name = as_wavelet(self.wavelet).name
        head = f"{name}, {'usual' if self.level is None else self.level} level(s), {self.mode}"
        if self.invariant:
            head += ", all shifts" + ("" if self.invariant is True else f" of {self.invariant} level(s)")
        if self.speckle:
            head += ", a scan" if self.speckle == "log" else f", logarithms of {self.speckle}"
        lines = [f"  {number}. {stage!r}" for number, stage in enumerate(self.stages, 1)]
        return "\n".join([head, *lines])

    # --- JSON -------------------------------------------------------------------------------------

    def to_json(self) -> str:
        """A text that :meth:`from_json` makes the same pipeline of."""
        name = as_wavelet(self.wavelet).name
        if name not in wavelist() or as_wavelet(name) != as_wavelet(self.wavelet):
            raise ArgumentError(f"only wavelets that are known by name can be written down, got {name!r}")
        found: dict[str, Any] = {"undula": VERSION, "wavelet": name, "level": self.level}
        usual = {"mode": "symmetric", "invariant": False, "color": "ycbcr", "speckle": None, "looks": None}
        found |= {key: getattr(self, key) for key, value in usual.items() if getattr(self, key) != value}
        found["stages"] = [stage.to_dict() for stage in self.stages]
        return json.dumps(found, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Pipeline:
        """A pipeline that was written down."""
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ArgumentError(f"a pipeline is written as JSON: {error}") from None
        if not isinstance(found, dict):
            raise ArgumentError(f"a pipeline in JSON is an object, got {type(found).__name__}")
        version = found.pop("undula", VERSION)
        if version != VERSION:
            raise ArgumentError(f"a pipeline of version {version!r}; this is version {VERSION}")
        known = ("wavelet", "level", "stages", "mode", "invariant", "color", "speckle", "looks")
        for key in found:
            if key not in known:
                raise UnknownNameError("key of a pipeline", key, known)
        return cls(**found)

    def save(self, path: str | Path) -> None:
        """Writes the pipeline to a file."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> Pipeline:
        """Reads a pipeline from a file."""
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise FileError(f"cannot read {path}: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise FileError(
                f"cannot read {path}: a pipeline is written as JSON, and this is no text"
            ) from None
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
        """An image, a volume or a batch, filtered; of the same shape and dtype.

        Parameters
        ----------
        x : array
            Of NumPy; or of CuPy, PyTorch or JAX on a GPU, where the result stays, too. Integers of 32 and 64
            bits are filtered in float64, so those beyond 2^53 are rounded to its precision; all others, but
            for float64, in float32.
        sigma : number or one for each channel, optional
            The noise, for stages that do not say; estimated if not given.
        channel_axis : int, None or "auto"
            The axis of channels; ``auto`` takes a third axis of 3 or 4 for it.
        axes : sequence of int, optional
            Those of an image; the others count images. All but that of the channels, if not given.
        mask : array of bool, optional
            True where samples are valid. Others stay as they are, and out of all statistics, as does what is
            no number. Where pixels lack some of their colours, channels are filtered each by itself.
        backend : "auto", "cpu", "cuda" or "opencl"
            ``cuda:1`` is the second GPU, as :func:`undula.devices` lists them.
        strategy, scheme : str
            How transforms are laid over a device, as for :class:`undula.Plan`; the numbers are the same.
        counted : array of bool of the shape of the image, optional
            True where samples count in statistics; all are filtered.
        trace : Trace, optional
            Is told how long what took, and gets coefficients and thresholds if it keeps them.
        """
        if self.speckle == "log":
            mask, bright = lit(x, channel_axis, axes, mask)
            if bright is not None:
                counted = bright if counted is None else counted & bright
        subject = Subject(x, channel_axis, axes, self.colors, mask)
        valid = subject.valid
        if counted is not None:
            seen = subject.arranged(counted)
            valid = seen if valid is None else valid & seen
        how = How(backend, strategy, scheme, trace)
        made = self.on_planes(
            subject.arrays, subject.planes, subject.places, subject.sigmas(sigma), valid, how
        )
        options = {"backend": backend, "strategy": strategy, "scheme": scheme, "counted": counted}
        options |= {"sigma": sigma, "channel_axis": channel_axis, "axes": axes, "mask": mask}
        return self._completed(subject, subject.closed(made), x, options)

    def _completed(self, subject: Subject, made: Any, x: Any, options: dict[str, Any]) -> Any:
        """Where pixels lack some of their channels, the others are filtered each by itself."""
        if not subject.uneven:
            return made
        return subject.joined(made, replace(self, color="channels")(x, **options))

    def frames(self, frames: Iterable[Any], *, workers: int | None = None, **options: Any) -> Iterator[Any]:
        """Each frame, filtered, in their order; some are worked on at once, and no more than that are kept.

        Parameters
        ----------
        frames : iterable of arrays
        workers : int, optional
            How many frames are worked on at once: as many as there are cores, if not given.
        **options
            As for a call.
        """
        count = get_num_threads() if workers is None else workers
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise ArgumentError(f"workers must be a number from 1 on, got {workers!r}")
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

    def views(self, x: Any, **options: Any) -> Views:
        """The coefficients before and after the stages, as pictures, and the filtered image.

        Details are shown around a mid-grey; the pictures are of the size of the image.
        """
        channel_axis, axes = options.pop("channel_axis", AUTO), options.pop("axes", None)
        mask, sigma = options.pop("mask", None), options.pop("sigma", None)
        how = How(options.pop("backend", None) or "auto")
        if options:
            raise ArgumentTypeError(f"unknown option(s) {sorted(options)}")
        subject = Subject(x, channel_axis, axes, self.colors, mask)
        if subject.places != 2:
            raise ArgumentError(f"pictures are made of images, with 2 axes; these have {subject.places}")
        if self.levels_for(subject.planes.shape[1:]) == 0:
            raise ArgumentError("there is nothing to see of no level; pass level=1 or more")
        seen = Trace(keep=True)
        given = (subject.arrays, subject.planes, 2, subject.sigmas(sigma), subject.valid)
        made = replace(self, invariant=False).on_planes(*given, replace(how, trace=seen))
        if self.invariant:
            made = self.on_planes(*given, how)
        assert seen.before is not None
        assert seen.after is not None
        pictures = [picture(*pair, subject.planes.shape[1:]) for pair in (seen.before, seen.after)]
        shown = [subject_picture(subject, each) for each in pictures]
        told = {"sigma": sigma, "channel_axis": channel_axis, "axes": axes, "mask": mask}
        made = self._completed(subject, subject.closed(made), x, {**told, "backend": how.backend})
        return Views(shown[0], shown[1], made)

    def levels_for(self, shape: Sequence[int]) -> int:
        """How many levels an image of this shape gets."""
        wavelet = as_wavelet(self.wavelet)
        most = max(1, dwtn_max_level(tuple(shape), wavelet))
        if self.level is None:
            return min(USUAL_LEVEL, most)
        deepest = max(1, math.ceil(math.log2(max(2, *shape))))
        if self.level > deepest:
            raise ArgumentError(
                f"{self.level} levels are too many for an image of {tuple(shape)}: at most {deepest}, and"
                f" {most} without lines shorter than {wavelet.name!r}"
            )
        return int(self.level)

    def on_planes(
        self,
        arrays: Arrays,
        x: Any,
        places: int,
        sigma: Any = None,
        valid: Any = None,
        how: How | None = None,
    ) -> Any:
        """Planes of floats with items first, filtered."""
        how = how or How()
        with nullcontext() if how.trace is None else how.trace.watching():
            return self._on_planes(arrays, x, places, sigma, valid, how)

    def _on_planes(self, arrays: Arrays, x: Any, places: int, sigma: Any, valid: Any, how: How) -> Any:
        if self.speckle in MULTIPLIED:
            log = Logarithm(arrays, self.speckle, self.looks, places)
            made = self._linear(arrays, log.taken(x, valid), places, sigma, log.valid, how)
            return log.undone(made)
        return self._linear(arrays, x, places, sigma, valid, how)

    def _linear(
        self,
        arrays: Arrays,
        x: Any,
        places: int,
        sigma: Any,
        valid: Any,
        how: How,
    ) -> Any:
        trace = how.trace
        keep = trace is not None and trace.keep
        for stage in self.stages:
            if "image" in stage.places():
                x = stage.on_samples(x, arrays, places)
        if trace is not None:
            trace.lap("filter", arrays, x)
        shape = tuple(int(n) for n in x.shape[1:])
        levels = self.levels_for(shape)
        work = [stage for stage in self.stages if "image" not in stage.places()]
        if levels == 0 or not (work or keep):
            return x
        wavelet = as_wavelet(self.wavelet)
        low, details, shapes = self._analysed(arrays, x, places, levels, how)
        if trace is not None:
            trace.lap("forward", arrays, low)
            if keep:
                trace.before = (low, details)
        pyramid = Pyramid(
            arrays,
            _norms(wavelet, levels, places),
            math.prod(shape),
            places,
            max(0, (wavelet.dec_len - 3) // 2),
            sigma,
            valid_levels(arrays, valid, details, places, wavelet, self.invariant),
            own=not keep,
            least=rounding_of(arrays, low, levels, places),
        )
        late = None if keep else self._late(work, arrays, how)
        for stage in work:
            if "last" in stage.places():
                low = stage.on_samples(low, arrays, places)
            if "details" in stage.places() and stage is not late:
                if trace is not None and keep and isinstance(stage, Shrink):
                    number = next(k for k, each in enumerate(self.stages) if each is stage)
                    _told(trace, number, stage.limits(details, pyramid), arrays, x)
                details = stage.on_details(details, pyramid)
        if trace is not None:
            trace.lap("filter", arrays, next(iter(details[-1].values())))
            if keep:
                trace.after = (low, details)
        if self.invariant:
            made = shifts.backward(
                arrays, low, details, shapes, wavelet, places, self.mode, how.backend, self._shifted
            )
        elif late is not None:
            made = self._fused(late, low, details, pyramid, x, how)
        else:
            made = self._synthesised(low, details, x, how)
        if trace is not None:
            trace.lap("inverse", arrays, made)
        return made

    def _synthesised(self, low: Any, details: list[dict[str, Any]], x: Any, how: How) -> Any:
        axes = tuple(range(1, len(x.shape)))
        coeffs = [low, *reversed(details)]
        wavelet, shape = as_wavelet(self.wavelet), tuple(int(n) for n in x.shape)
        if not how.usual:
            wanted = recipe(len(shape), wavelet, self.mode, axes)
            return backward(_device(x, how), coeffs, wanted, shape, options=_options(how))
        return waverecn(coeffs, wavelet, self.mode, axes, shape=shape, backend=how.backend)

    def _late(self, work: Sequence[Stage], arrays: Arrays, how: How) -> Shrink | Gain | None:
        """A stage on details that a device can do while it reads them on the way back: the last one."""
        ends = [stage for stage in work if "details" in stage.places()]
        on_host = arrays.host and how.backend in ("auto", "cpu")
        if self.invariant or on_host or not how.usual or not ends:
            return None
        last = ends[-1]
        if isinstance(last, Gain):
            return last
        if not isinstance(last, Shrink) or last.method in ("bivariate", "block"):
            return None
        # (A threshold of 0 leaves bands that are not meant as they are, but for these rules.)
        some = last.levels is not None or last.bands is not None
        return None if some and last.rule in ("greater", "less") else last

    def _fused(
        self,
        stage: Shrink | Gain,
        low: Any,
        details: list[dict[str, Any]],
        pyramid: Pyramid,
        x: Any,
        how: How,
    ) -> Any:
        """The way back, with thresholds on the way."""
        arrays, xp = pyramid.arrays, pyramid.arrays.xp
        found = stage.limits(details, pyramid)
        assert found is not None
        rule, chosen, lows, highs = found
        keys = sorted(details[0])
        items = int(x.shape[0])
        known = {place: pair for place, *pair in zip(chosen, lows, highs, strict=True)}
        plain = all(isinstance(value, float) for value in (*lows, *highs))
        rows = []
        for level in range(len(details)):
            for side in (0, 1):
                for key in keys:
                    value = known.get((level, key), (0.0, 0.0))[side]
                    rows.append(value if plain else arrays.per_item(value, x))
        counts = (len(details), 2, len(keys))
        if plain:
            numbers = np.array(rows, np.float64).reshape(counts)
            limits = numbers.astype(x.dtype) if arrays.host else _placed(xp, numbers, x)
        else:
            limits = xp.reshape(xp.stack(rows, axis=-1), (items, *counts))
        wanted = recipe(len(x.shape), as_wavelet(self.wavelet), self.mode, tuple(range(1, len(x.shape))))
        library = engine([x], how.backend)
        assert library is not None
        try:
            return backward(
                library,
                [low, *reversed(details)],
                wanted,
                tuple(int(n) for n in x.shape),
                options=Options(rule=rule, each=not plain),
                limits=limits,
            )
        except UnfusedError:
            return self._synthesised(low, applied(details, pyramid, *found), x, how)

    def _analysed(
        self, arrays: Arrays, x: Any, places: int, levels: int, how: How
    ) -> tuple[Any, list[dict[str, Any]], list[tuple[int, ...]]]:
        """The approximation, details finest first, and the shapes of what was decomposed."""
        between = [stage for stage in self.stages if "approximation" in stage.places()]

        def changed(low: Any, level: int) -> Any:
            """An approximation that is to be decomposed further."""
            for stage in between:
                if getattr(stage, "levels", None) is None or level in stage.levels:
                    low = stage.on_samples(low, arrays, places)
            return low

        wavelet = as_wavelet(self.wavelet)
        if self.invariant:
            return shifts.forward(
                arrays, x, wavelet, levels, places, self.mode, how.backend, changed, self._shifted
            )
        axes = tuple(range(1, 1 + places))
        if not between and levels <= dwtn_max_level(tuple(x.shape[1:]), wavelet):
            if how.usual:
                coeffs = wavedecn(x, wavelet, self.mode, levels, axes, backend=how.backend)
            else:
                wanted = recipe(len(x.shape), wavelet, self.mode, axes)
                coeffs = forward(_device(x, how), x, wanted, levels, options=_options(how))
            return coeffs[0], list(reversed(coeffs[1:])), []
        low, details = x, []
        for level in range(1, levels + 1):
            found = dict(dwtn(low, wavelet, self.mode, axes, backend=how.backend))
            low = found.pop("a" * places)
            details.append(found)
            if level < levels:
                low = changed(low, level)
        return low, details, []


def _device(x: Any, how: How) -> Any:
    """Where a strategy or a scheme of one's own is run."""
    library = engine([x], how.backend)
    if library is None:
        raise ArgumentError(
            f"strategy {how.strategy!r} and scheme {how.scheme!r} are for backends 'cuda' and 'opencl', not"
            f" for {how.backend!r}"
        )
    return library


def _options(how: How) -> Options:
    return Options(how.strategy if how.scheme == "auto" else "tiled", how.scheme)


def _told(trace: Trace, number: int, found: Any, arrays: Arrays, x: Any) -> None:
    """Thresholds of a stage, a number for each item."""
    if found is None:
        return
    _, chosen, lows, _ = found
    items = int(x.shape[0])
    trace.limits[number] = {
        place: np.broadcast_to(np.asarray(on_host(low), np.float64), (items,)).copy()
        for place, low in zip(chosen, lows, strict=True)
    }


def _placed(xp: Any, numbers: np.ndarray[Any, Any], like: Any) -> Any:
    """Numbers of the host, beside an array."""
    from array_api_compat import device

    return xp.asarray(numbers.tolist(), dtype=like.dtype, device=device(like))


def subject_picture(subject: Subject, planes: Any) -> Any:
    """Pictures of planes: of brightness alone, where there are colours."""
    planes = planes[:1] if subject.mixed else planes
    return planes[0] if planes.shape[0] == 1 else planes


def _norms(wavelet: Wavelet, levels: int, places: int) -> list[dict[str, float]]:
    """For each level, the norms of its bands by key."""
    found = []
    for low, high in band_norms(wavelet, levels):
        keys = ["".join(letters) for letters in product("ad", repeat=places)][1:]
        found.append({key: math.prod(high if letter == "d" else low for letter in key) for key in keys})
    return found


def valid_levels(
    arrays: Arrays,
    valid: Any,
    details: list[dict[str, Any]],
    places: int,
    wavelet: Wavelet,
    invariant: bool | int,
) -> list[Any]:
    """For each level, where coefficients have to do with valid samples alone."""
    if valid is None:
        return []
    xp = arrays.xp
    found = []
    back = (wavelet.dec_len - 2) // 2
    for level in details:
        band = next(iter(level.values()))
        for axis in range(1, 1 + places):
            count, own = valid.shape[axis], band.shape[len(band.shape) - places + axis - 1]
            pairs = [np.clip(2 * np.arange(own) - back + side, 0, count - 1) for side in (0, 1)]
            lines = [pair if arrays.host else _indices(xp, pair, valid) for pair in pairs]
            valid = xp.take(valid, lines[0], axis=axis) & xp.take(valid, lines[1], axis=axis)
        found.append(valid[:, None] if invariant else valid)
    return found


def _indices(xp: Any, places: np.ndarray[Any, Any], like: Any) -> Any:
    from array_api_compat import device

    return xp.asarray(places.tolist(), device=device(like))
