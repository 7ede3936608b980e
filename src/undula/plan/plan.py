"""Plans: transforms compiled for arrays of one shape, to be run many times.

The functions of this package compile transforms, and keep them, without being asked. A :class:`Plan` gives
control over that: it chooses a device, a strategy and a scheme, writes results into existing arrays, and
tells what a transform costs and which kernels it runs.
"""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..arrays import ArrayView, given_array, library_of, refuse_gradients, traceable_array
from ..engines.base import Engine, Knobs, RunCache, TransformOptions, computes_on_host, engine, split_backend
from ..engines.ceilings import Ceilings
from ..engines.dispatch import decompose, engine_for, recompose
from ..engines.gpu.arrays import RESULTS
from ..engines.gpu.engine import DeviceEngine, DeviceExecutable
from ..engines.gpu.launches import DeviceLevel, UnfusedError
from ..engines.gpu.strategies import STRATEGIES, UNDECIMATED, choose
from ..engines.gpu.transform import device_levels
from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from ..lowering.axis_arguments import Axes
from ..lowering.nesting import arrays_of, flat_as, from_keys, keyed_as
from ..lowering.rules import DETAIL_RULES
from ..lowering.spec import (
    BandTree,
    LevelOperators,
    check_extension,
    checked_level,
)
from ..wavelets import Wavelet
from . import model
from .arguments import check_choices, check_dtype, check_flags, plan_dtype, plan_shape, plan_spec
from .frames import FrameSlot, frames
from .model import PlanCost, Prediction
from .resident import Resident
from .tuning import fastest_knobs

__all__ = ["Plan"]


class Plan:
    """A transform for arrays of one shape and dtype.

    Parameters
    ----------
    shape : tuple of int
        Shape of the arrays to be transformed.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    level : int, optional
        How often the approximation is decomposed. The default is as often as is useful.
    mode : str or int, or a sequence of them, optional
        How lines go on beyond their ends: one of ``undula.MODES`` or its number, or one for each axis. The
        default is ``"symmetric"`` for the DWT, and ``"periodization"`` for a stationary transform.
    axes : int or sequence of int, optional
        Axes to transform. The default is all axes.
    transform : {"dwt", "swt"}, default "dwt"
        The DWT, or the stationary transform of :func:`undula.swtn` for lines of any length. The coefficients
        of the latter have one approximation, as with ``trim_approx=True``: those of the other levels would
        have to be written as well.
    norm : bool, default False
        Whether a stationary transform divides its filters by √2, so that an orthogonal wavelet keeps the
        energy of the samples.
    start_level : int, default 0
        How many levels of a stationary transform were computed before.
    dtype : dtype, default float64
        Dtype of the arrays: float32, float64, complex64 or complex128. Plans for a device also take float16,
        and integers of 8 and 16 bits, whose results are float32. Arrays of other dtypes can be passed to a
        plan of the dtype in which they are transformed: on the CPU, int16 to one of float64.
    backend : {"auto", "cpu", "cuda", "opencl", "reference"}, default "auto"
        ``auto`` is the CPU. ``cuda`` and ``opencl`` take NumPy arrays, and arrays that are on the device;
        ``cuda:1`` is the second GPU, as :func:`undula.devices` lists them.
        ``reference`` is plain NumPy in extended precision, slow.
    strategy : {"auto", "naive", "rowcolumn", "tiled", "sliding"}, default "auto"
        How the work is distributed over a device; see ``docs/gpu.md``. ``auto`` is ``sliding``, and ``tiled``
        for levels that are too small for it; the attribute ``strategy`` then names those that the plan uses.
    scheme : str, default "auto"
        The scheme by which two axes are transformed, for strategy ``tiled`` and for the reference: ``auto``,
        or one of ``undula.SCHEMES``. Schemes, strategies and methods are those of the DWT.
    method : {"auto", "lifting", "filters"}, default "auto"
        How lines are transformed on a device.
    square : bool, default False
        Whether to pad the samples with zeros to a square whose side is a power of two, which the inverse cuts
        off again. A level of None then means a complete decomposition.
    tune : bool, default False
        Whether to measure a few settings of the strategy on a device first, and keep the fastest.

    Attributes
    ----------
    shapes : list
        The shapes of the coefficients, nested as they are.
    cost : PlanCost
        What one run forward costs.
    source : str
        The source code of the kernels of a plan for a device, in both directions.

    Examples
    --------
    >>> plan = Plan((64, 48), "cdf97", level=2, dtype="float32")
    >>> x = np.ones((64, 48), "float32")
    >>> coeffs = plan.forward(x)
    >>> again = plan.forward(2 * x, out=coeffs)
    >>> bool(np.allclose(plan.inverse(again), 2, atol=1e-5))
    True
    """

    def __init__(
        self,
        shape: Sequence[int] | int,
        wavelet: Wavelet | str | Sequence[Any],
        *,
        level: int | None = None,
        mode: str | int | Sequence[Any] | None = None,
        axes: Axes = None,
        transform: str = "dwt",
        norm: bool = False,
        start_level: int = 0,
        dtype: DTypeLike = np.float64,
        backend: str = "auto",
        strategy: str = "auto",
        scheme: str = "auto",
        method: str = "auto",
        square: bool = False,
        tune: bool = False,
    ) -> None:
        self.shape, dtype = plan_shape(shape), plan_dtype(dtype)
        self.spec = plan_spec(len(self.shape), wavelet, mode, axes, transform, norm, start_level)
        self.axes, self.square = self.spec.axes, square
        stationary = self.spec.family == "swt"
        self.on_device = not computes_on_host(backend)
        check_choices(strategy, scheme, method, stationary)
        check_flags(square, tune, norm, stationary, self.on_device)
        if any(self.shape[axis] < 1 for axis in self.axes):
            raise ArgumentError(f"a plan needs samples along the transformed axes, got shape {self.shape}")
        side = 2 ** math.ceil(math.log2(max(self.shape[axis] for axis in self.axes)))
        self.padded_shape = (
            tuple(side if axis in self.axes else n for axis, n in enumerate(self.shape))
            if square
            else self.shape
        )
        if square and level is None:
            level = round(math.log2(side))
            self.level = level
        else:
            with warnings.catch_warnings():
                if stationary:  # More levels than are useful for the DWT.
                    warnings.simplefilter("ignore", UserWarning)
                self.level = checked_level(self.padded_shape, self.spec.wavelets, self.axes, level)
        if stationary:
            check_extension(self.spec, self.level)
        name, _ = split_backend(backend)
        self.backend, self.device_name = ("cpu", "cpu") if name == "auto" else (name, backend)
        self.engine = engine(backend)
        self.engine.check_options(strategy=strategy, scheme=scheme, method=method)
        check_dtype(self.engine, dtype, self.on_device)
        self.dtype = self.engine.result_dtype(dtype)
        native = dtype.newbyteorder("=").name
        self.source_dtype = native if self.on_device and native in RESULTS else self.dtype.name
        self.scheme, self.strategy, self._method = scheme, strategy, method
        self.tree = BandTree.of_samples(self.spec, self.padded_shape, self.level)
        self._form = {1: "wavedec", 2: "wavedec2"}.get(len(self.axes), "wavedecn")
        self._shapes: list[Any] = self.tree.shapes if self.level else [self.padded_shape]
        self._caches: dict[Any, RunCache] = defaultdict(RunCache)
        self.options = TransformOptions(strategy, scheme, method)
        if self.on_device:
            self._choose_strategy(tune)
        elif scheme != "auto" and self._runs:
            self.engine.compile(False, self.tree, self.dtype, (), self.options)  # Checks the scheme.

    def _choose_strategy(self, tune: bool) -> None:
        """Choose the strategy of a plan for a device, or raise an error if it does not fit."""
        self.strategy = choose(self.strategy, self.scheme, self._method, self.axes).name
        self.options = replace(self.options, strategy=self.strategy)
        if not self._runs:
            return
        program = self.executable(False).program  # Raises an error for what cannot be laid out so.
        if self.strategy == "auto":
            names = [launch.kernel.name.partition("_")[0] for launch in program.launches]
            used = [strategy for strategy in (*STRATEGIES, UNDECIMATED.name) if strategy in names]
            self.strategy = " and ".join(used)
        if tune:
            self.options = replace(self.options, knobs=fastest_knobs(self))

    @property
    def _runs(self) -> bool:
        """Whether there is anything to compute."""
        return self.level > 0 and math.prod(self.shape) > 0

    def operators(self) -> list[LevelOperators]:
        """Return the operators of each level, finest first."""
        return self.engine.operators(self.tree, self.dtype, self.options)

    @cached_property
    def adjoint(self) -> Plan:
        """The plan of the adjoint operators: exact transposes, also at the ends of lines.

        Its ``inverse`` is the adjoint of ``forward``, from coefficients to samples. Its ``forward`` is the
        adjoint of ``inverse``, from samples to coefficients.

        Examples
        --------
        >>> plan = Plan(50, "bior4.4", level=2, mode="smooth")
        >>> rng = np.random.default_rng(0)
        >>> x, y = rng.standard_normal(50), [rng.standard_normal(shape) for (shape,) in plan.shapes]
        >>> product = sum(a @ b for a, b in zip(plan.forward(x), y))
        >>> bool(np.isclose(product, x @ plan.adjoint.inverse(y)))
        True
        """
        if self.scheme != "auto":
            raise ArgumentError(f"adjoints run by filters or lifting, not by scheme {self.scheme!r}; omit it")
        plan = copy(self)
        plan.__dict__.pop("adjoint", None)
        plan.spec = self.spec.adjoint()
        plan.tree = BandTree.of_samples(plan.spec, self.padded_shape, self.level)
        plan._caches = defaultdict(RunCache)
        return plan

    @property
    def shapes(self) -> list[Any]:
        """The shapes of the coefficients, nested as they are."""
        return from_keys(self._shapes, self._form)

    def empty(self) -> list[Any]:
        """Return uninitialised NumPy arrays for the coefficients, to be passed as ``out=``."""
        arrays: list[Any] = [np.empty(self._shapes[0], self.dtype)]
        arrays += [{key: np.empty(s, self.dtype) for key, s in part.items()} for part in self._shapes[1:]]
        return from_keys(arrays, self._form)

    # --- running ----------------------------------------------------------------------------------

    def forward(self, x: Any, out: Sequence[Any] | None = None) -> list[Any]:
        """Return the coefficients, as ``wavedec``, ``wavedec2`` or ``wavedecn`` does for this number of axes.

        Parameters
        ----------
        x : array
            Samples, of the shape of the plan.
        out : list of arrays, optional
            Arrays for the coefficients, nested as :meth:`empty` returns them.

        Returns
        -------
        list
            Coefficients, coarsest first; ``out`` if it is given.
        """
        cache = self._caches[False, None]
        if out is not None and cache.repeat is not None:
            bands = flat_as(out, self._form, self.spec.keys[1:])
            if bands is not None and cache.repeat(x, *bands):
                return list(out)
        given, x = x, traceable_array(x)
        engine = engine_for([x], self.device_name)
        self._check_samples(engine, x)
        keyed = None if out is None else keyed_as(out, self._form)
        coeffs = decompose(
            engine, self.spec, x, self.level, out, keyed,
            options=self.options, padded=self.padded_shape, cache=cache,
        )  # fmt: skip
        if out is not None:
            return list(out)
        return from_keys(library_of(given).restore(engine.restore(coeffs, x), given), self._form)

    def _check_rule(self, rule: str | None, limits: Any) -> None:
        if rule is None and limits is None:
            return
        if rule is None or limits is None:
            raise ArgumentError("a rule and its limits belong together")
        if rule not in DETAIL_RULES:
            raise UnknownNameError("rule", rule, DETAIL_RULES)
        refuse_gradients(limits, "limits")
        if self.dtype.kind == "c":
            raise ArgumentTypeError("rules are for real coefficients")
        expected = (self.level, 2, 2 ** len(self.axes) - 1)
        if not hasattr(limits, "shape") or tuple(limits.shape) != expected:
            got = tuple(limits.shape) if hasattr(limits, "shape") else type(limits).__name__
            raise ArgumentError(f"limits of this plan are an array of shape {expected}, got {got}")
        kind = "float64" if self.dtype == np.float64 else "float32"
        if self.on_device and library_of(limits).dtype(limits) != kind:
            raise ArgumentTypeError(f"limits of this plan are {kind}, got {limits.dtype}")

    def _check_samples(self, engine: Engine, x: Any) -> None:
        shape, dtype = engine.library.shape(x), engine.library.dtype(x)
        known = dtype != "bfloat16"  # NumPy has no such dtype.
        if shape != self.shape or not known or self.engine.result_dtype(np.dtype(dtype)) != self.dtype:
            raise ArgumentError(
                f"this plan is for arrays of shape {self.shape} that are transformed in {self.dtype}, got"
                f" {shape} and {dtype}"
            )

    def inverse(
        self, coeffs: Sequence[Any], out: Any = None, *, rule: str | None = None, limits: Any = None
    ) -> Any:
        """Return the samples, in the shape of the plan; None in place of coefficients stands for zeros.

        Parameters
        ----------
        coeffs : list
            Coefficients, nested as :meth:`forward` returns them.
        out : array, optional
            Array for the result.
        rule : str, optional
            Threshold rule that is applied to details as they are read: ``soft``, ``hard``, ``garrote``,
            ``firm``, ``greater`` or ``less``; or ``gain``. It takes no additional time on a device.
        limits : array ``(level, 2, bands)``, optional
            Thresholds or gains for each level, finest first. The last axis has the bands in the order of
            their keys: ad, da, dd for images (cV, cH, cD). The second row of a level has the upper
            thresholds of ``firm``. The dtype is float64 for coefficients of float64 and float32 otherwise;
            the array is on the device of the coefficients.

        Returns
        -------
        array
            Samples; ``out`` if it is given.

        Examples
        --------
        >>> x = np.random.default_rng(0).standard_normal((16, 16))
        >>> plan = Plan((16, 16), "haar", level=2)
        >>> low = plan.inverse(plan.forward(x), rule="hard", limits=np.full((2, 2, 3), 9.0))
        >>> bool(np.allclose(low, plan.inverse([plan.forward(x)[0], *[(None,) * 3] * 2])))
        True
        """
        cache = self._caches[True, rule]
        if out is not None and cache.repeat is not None:
            flat = flat_as(coeffs, self._form, self.spec.keys[1:])
            if flat is not None and cache.repeat(out, *flat, *([] if limits is None else [limits])):
                return out
        self._check_rule(rule, limits)
        keyed = keyed_as(coeffs, self._form)
        if keyed is None or len(keyed) != self.level + 1:
            raise ArgumentError(
                f"coefficients of this plan are nested as {self._form} does, with {self.level} level(s) of"
                " details"
            )
        bands = _read(keyed)
        engine = engine_for(arrays_of(bands), self.device_name)
        try:
            x = recompose(
                engine, self.spec, bands, self.padded_shape, out,
                options=self.options if rule is None else replace(self.options, rule=rule), cut=self.shape,
                dtype=self.dtype, limits=None if limits is None else given_array(limits), cache=cache,
            )  # fmt: skip
        except UnfusedError as error:
            raise ArgumentError(f"this plan shrinks no details on the way back: {error}") from None
        if out is not None:
            return out
        given = next(filter(_is_array, arrays_of(keyed)))
        return library_of(given).restore(engine.restore(x, next(filter(_is_array, arrays_of(bands)))), given)

    def frames(self, arrays: Iterable[Any], depth: int = 2) -> Iterator[list[Any]]:
        """Yield the coefficients of many NumPy arrays, one after the other.

        On a CUDA device, frames are copied to and from the device while another one is transformed.

        Parameters
        ----------
        arrays : iterable
            Arrays of the shape and dtype of the plan.
        depth : int, default 2
            Number of frames that are processed at the same time.

        Yields
        ------
        list
            Coefficients of one array, as :meth:`forward` returns them.
        """
        if isinstance(depth, bool) or not isinstance(depth, (int, np.integer)) or depth < 1:
            raise ArgumentError(f"depth must be an integer of at least 1, got {depth!r}")
        if self.backend != "cuda" or not self._runs:
            yield from (self.forward(x) for x in arrays)
            return
        executable, shapes = self.executable(False), self.tree.flat_shapes

        def new_slot() -> FrameSlot:
            bands = [(shape, self.dtype) for shape in shapes]
            device = executable.engine.device
            return FrameSlot(device, executable.prepared, (self.shape, self.source_dtype), bands)

        for bands in frames(arrays, partial(self._check_samples, self.engine), new_slot, depth):
            yield from_keys(self.tree.by_key(bands), self._form)

    def resident(self, rule: str | None = None, limit: float = 0.0) -> Resident:
        """Return arrays of this plan on its device, to run it without transfers, for instance to measure it.

        Parameters
        ----------
        rule, limit : str and float, optional
            Threshold rule that the inverse applies to details, and its threshold, the same for all.

        Returns
        -------
        Resident
            Arrays for samples and coefficients, with methods that run the plan on them.
        """
        return Resident(self, rule, limit)

    # --- inspection -------------------------------------------------------------------------------

    def executable(self, back: bool, rule: str | None = None) -> DeviceExecutable:
        """Return the executable of a plan for a device, for arrays in C order.

        Parameters
        ----------
        back : bool
            Whether it computes samples from coefficients.
        rule : str, optional
            Threshold rule for details, as for :meth:`inverse`.

        Returns
        -------
        DeviceExecutable
        """
        if not isinstance(self.engine, DeviceEngine):
            raise ArgumentError(f"backend {self.backend!r} has no kernels to show; 'cuda' and 'opencl' have")
        samples = ArrayView.contiguous(0, self.shape, self.dtype.name if back else self.source_dtype)
        views = [view.as_pairs() for view in (samples, *self.tree.contiguous_views(self.dtype.name)[1:])]
        return self.engine.compile(back, self.tree, self.dtype, views, replace(self.options, rule=rule))

    def program(self, back: bool, rule: str | None = None) -> DeviceExecutable:
        """Return :meth:`executable`, of which this is the deprecated name.

        Parameters
        ----------
        back : bool
            Whether it computes samples from coefficients.
        rule : str, optional
            Threshold rule for details, as for :meth:`inverse`.

        Returns
        -------
        DeviceExecutable
        """
        warnings.warn("Plan.program is deprecated; use Plan.executable", DeprecationWarning, stacklevel=2)
        return self.executable(back, rule)

    @property
    def stages(self) -> tuple[DeviceLevel, ...]:
        """The levels of a plan for a device, finest first; deprecated."""
        warnings.warn("Plan.stages is deprecated; use Plan.operators()", DeprecationWarning, stacklevel=2)
        return device_levels(self.tree, str(self.dtype))

    def with_knobs(self, knobs: Knobs | None) -> Plan:
        """Return the plan with other tuning parameters; an error if the device cannot run it with them.

        Parameters
        ----------
        knobs : Knobs or None
            Tuning parameters of the strategy; None for its defaults.

        Returns
        -------
        Plan
        """
        plan = object.__new__(Plan)
        vars(plan).update(vars(self))
        plan.options, plan._caches = replace(self.options, knobs=knobs), defaultdict(RunCache)
        plan.executable(False)
        return plan

    @property
    def source(self) -> str:
        """The kernels, as text."""
        if self.on_device and not self._runs:
            return ""
        texts = [self.executable(back).program.source for back in (False, True)]
        return "\n".join(texts)

    @property
    def cost(self) -> PlanCost:
        """The bytes that a run forward moves, its operations, and how often threads wait for each other."""
        return model.cost(self)

    def predict(self, device: str | Ceilings | None = None, *, transfers: bool = False) -> Prediction:
        """Predict the least time of one forward run, from what it needs and what the device can do at most.

        An inverse run needs as many bytes and operations.

        Parameters
        ----------
        device : str or Ceilings, optional
            Name of a device, or the limits that :func:`undula.ceilings` measured, here or on another machine;
            the device of the plan if None. A device is measured when it is first used, which takes some
            seconds, and the result is stored.
        transfers : bool, default False
            Whether to include the copies of samples to the device, and of coefficients to the host.

        Returns
        -------
        Prediction
            Bytes, operations, barriers, seconds, and the terms of which they are the sum.

        Examples
        --------
        >>> prediction = Plan((1024, 1024), "cdf97", level=1, dtype="float32").predict()
        >>> prediction.operations, prediction.bytes
        (10485760, 8454400)
        >>> prediction.seconds > 0 and prediction.limit in prediction.terms
        True
        """
        return model.predict(self, device, transfers=transfers)

    @property
    def method(self) -> str:
        """``"lifting"`` or ``"filters"``: what the plan has decided on, along its last axis."""
        if self.on_device and self.spec.family == "dwt":
            wavelet, mode, single = self.spec.wavelets[-1], self.spec.modes[-1], self.dtype.char in "efF"
            return model.strategy(self).method(wavelet, mode, self._method, self.scheme, single)
        tree = BandTree.of_samples(self.spec, self.padded_shape, 1)  # The plan may have no levels.
        return self.engine.operators(tree, self.dtype, self.options)[0].operators[-1].op.method

    @property
    def _arguments(self) -> tuple[tuple[str, Any], ...]:
        """The arguments of an equal plan, by name; strategy and level are those that were chosen."""
        return (
            ("shape", self.shape),
            ("wavelet", self.spec.wavelets),
            ("level", self.level),
            ("mode", self.spec.modes),
            ("axes", self.axes),
            ("transform", self.spec.family),
            ("norm", self.spec.gain != 1),
            ("start_level", self.spec.dilation.bit_length() - 1),
            ("dtype", self.source_dtype),
            ("backend", self.device_name),
            ("strategy", self.options.strategy),
            ("scheme", self.scheme),
            ("method", self._method),
            ("square", self.square),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        return (self._arguments, self.options.knobs) == (other._arguments, other.options.knobs)

    def __hash__(self) -> int:
        return hash((self._arguments, self.options.knobs))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments: what was compiled belongs to this process."""
        return _rebuild, (self._arguments, self.options.knobs)

    def __repr__(self) -> str:
        names = dict.fromkeys(wavelet.name for wavelet in self.spec.wavelets)
        modes = dict.fromkeys(self.spec.modes)
        wavelet = (
            repr(next(iter(names))) if len(names) == 1 else str(tuple(w.name for w in self.spec.wavelets))
        )
        mode = repr(next(iter(modes))) if len(modes) == 1 else str(self.spec.modes)
        words = [f"{self.shape}, {wavelet}", f"level={self.level}", f"mode={mode}", f"axes={self.axes}"]
        words += [f"transform={self.spec.family!r}"] * (self.spec.family != "dwt")
        words += ["norm=True"] * (self.spec.gain != 1)
        words += [f"start_level={self.spec.dilation.bit_length() - 1}"] * (self.spec.dilation != 1)
        words += [f"dtype={str(self.dtype)!r}", f"backend={self.backend!r}"]
        if self.on_device:
            words += [f"strategy={self.options.strategy!r}", f"method={self._method!r}"]
        words += [f"scheme={self.scheme!r}"] * (self.scheme != "auto") + ["square=True"] * self.square
        return f"Plan({', '.join(words)})"


def _rebuild(arguments: tuple[tuple[str, Any], ...], knobs: Knobs | None) -> Plan:
    """Return the plan that was pickled."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The caller has seen them when the plan was created.
        plan = Plan(**dict(arguments))
    plan.options = replace(plan.options, knobs=knobs)
    return plan


def _read(keyed: Sequence[Any]) -> list[Any]:
    """Return coefficients as arrays, on the host or on a device."""

    def read(band: Any) -> Any:
        return None if band is None else traceable_array(band, "coefficients")

    return [read(keyed[0]), *({key: read(band) for key, band in part.items()} for part in keyed[1:])]


def _is_array(band: Any) -> bool:
    return band is not None
