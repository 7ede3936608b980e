"""The Plan: a transform made ready for arrays of one shape, to be run again and again.

The functions of this package make and keep such things by themselves; a Plan is for those who want to hold
one: to choose a device, a strategy and a scheme, to write results into arrays that exist, to read the
kernels, and to see what a transform costs.
"""

from __future__ import annotations

import copy
import math
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..arrays import (
    COMPLEX,
    ArrayView,
    check_out,
    get_backend,
    given_array,
    nested,
    numpy_array,
    refuse_gradients,
)
from ..engines import ondevice
from ..engines.base import TransformOptions, engine, on_host, split_backend
from ..engines.ceilings import Ceilings
from ..engines.cpu import empty
from ..engines.cpu.filters import RULES, shrink
from ..engines.gpu.arrays import RESULTS, DeviceArrays
from ..engines.gpu.engine import contiguous_views, device_levels
from ..engines.gpu.launches import Knobs, UnfusedError
from ..engines.gpu.strategies import STRATEGIES, choose
from ..engines.gpu.transform import DeviceLevel
from ..engines.host import HostEngine, array_call, checked_targets, decompose, recompose
from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from ..lowering.axes import Axes
from ..lowering.nesting import from_keys, keyed_as
from ..lowering.spec import BandTree, Operators, checked_level, transform_spec
from ..schemes import SCHEMES
from ..wavelets import Wavelet
from . import model
from .frames import frames
from .model import PlanCost, Prediction
from .tuning import fastest_knobs

__all__ = ["Plan", "flat"]

Array = NDArray[Any]

METHODS = ("auto", "lifting", "filters")


class Plan:
    """A DWT for arrays of one shape and dtype.

    Parameters
    ----------
    shape : tuple of int
        Of the arrays to be transformed.
    wavelet : Wavelet, str, or one for each axis
    level : int, optional
        How often the approximation is decomposed; as often as is useful if not given.
    mode : str, int, or one for each axis
        How lines go on beyond their ends: one of ``undula.MODES``.
    axes : sequence of int, optional
        All axes if not given.
    dtype : dtype
        Of the arrays. On the CPU results are float32, float64, complex64 or complex128; on a device float16
        stays, and integers of 8 and 16 bits become float32.
    backend : "auto", "cpu", "cuda", "opencl" or "reference"
        ``auto`` is the CPU. ``cuda`` and ``opencl`` take NumPy's arrays, and those that are on the device;
        ``cuda:1`` is the second GPU, as :func:`undula.devices` lists them.
        ``reference`` is plain NumPy in extended precision, slow.
    strategy : "auto", "naive", "rowcolumn", "tiled" or "sliding"
        How the work is laid over a device; see ``docs/gpu.md``. ``auto`` slides, and has tiles for levels
        that are too small for it; the plan then tells which of them it has.
    scheme : str
        ``auto``, or one of ``undula.SCHEMES``.
        By which scheme two axes are transformed: for strategy ``tiled``, and for the reference.
    method : "auto", "lifting" or "filters"
        What is done along an axis, on a device.
    square : bool
        Zeros are put around the samples, up to a square whose side is a power of two, and cut off again on
        the way back: then a level of None means the whole decomposition.
    tune : bool
        On a device, a few ways to lay out the work are measured first, and the fastest is remembered for
        that device.

    Attributes
    ----------
    shapes : list
        The shapes of the coefficients, nested as they are.
    cost : PlanCost
        What one run forward costs.
    source : str
        The kernels of a plan for a device, forward and back.

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
        mode: str | int | Sequence[Any] = "symmetric",
        axes: Axes = None,
        dtype: DTypeLike = np.float64,
        backend: str = "auto",
        strategy: str = "auto",
        scheme: str = "auto",
        method: str = "auto",
        square: bool = False,
        tune: bool = False,
    ) -> None:
        self.shape = _shape(shape)
        try:
            dtype = np.dtype(dtype)
        except TypeError:
            raise ArgumentTypeError(f"a plan is for arrays of numbers, got dtype {dtype!r}") from None
        if dtype.kind not in "biufc":
            raise ArgumentTypeError(f"a plan is for arrays of numbers, got dtype {dtype!r}")
        self.spec = transform_spec(len(self.shape), wavelet, mode, axes)
        self.axes = self.spec.axes
        if any(self.shape[axis] < 1 for axis in self.axes):
            raise ArgumentError(f"a plan needs samples along the transformed axes, got shape {self.shape}")
        self.square = square
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
            self.level = checked_level(self.padded_shape, self.spec.wavelets, self.axes, level)
        for what, value, known in (
            ("scheme", scheme, ("auto", *SCHEMES)),
            ("strategy", strategy, tuple(STRATEGIES)),
            ("method", method, METHODS),
        ):
            if value not in known:
                raise UnknownNameError(what, value, known)
        name, _ = split_backend(backend)
        self.backend, self.device_name = "cpu" if name == "auto" else name, backend
        self.scheme, self.strategy = scheme, strategy
        self.on_device = not on_host(backend)
        self._last: dict[bool, Any] = {}
        self.engine = engine(backend)
        self.engine.check_options(strategy=strategy, scheme=scheme, method=method)
        self.dtype = self.engine.result_dtype(dtype)
        self._form = {1: "wavedec", 2: "wavedec2"}.get(len(self.axes), "wavedecn")
        self.tree = BandTree.of_samples(self.spec, self.padded_shape, self.level)
        self._shapes: list[Any] = self.tree.shapes if self.level else [self.padded_shape]
        self._direct: dict[bool, Callable[..., bool]] = {}
        self.options = TransformOptions(strategy, scheme, method)
        if self.backend == "reference" and self._runs:
            self.engine.compile(False, self.tree, self.dtype, (), self.options)  # Checks the scheme.
        if self.on_device:
            self.host: DeviceArrays = ondevice.host(backend)
            self.source_dtype = str(dtype.newbyteorder("="))
            chosen = choose(strategy, scheme, method, self.axes).name
            self.options = TransformOptions(chosen, scheme, method)
            self._memory: dict[Any, Any] = {}
            self.strategy, self._method = chosen, method
            if self._runs:
                program = self.program(False).program  # Raises an error for what cannot be laid out so.
                if chosen == "auto":
                    names = [launch.kernel.name.partition("_")[0] for launch in program.launches]
                    self.strategy = " and ".join(name for name in STRATEGIES if name in names)
                if tune:
                    self.options = replace(self.options, knobs=fastest_knobs(self))

    @property
    def _runs(self) -> bool:
        """Whether there is anything to compute."""
        return self.level > 0 and math.prod(self.shape) > 0

    def operators(self) -> list[tuple[tuple[int, ...], Operators]]:
        """Return for each level, finest first, the shape of its samples and the operators along its axes."""
        return self.engine.operators(self.tree, self._real(), self.options)

    def _real(self) -> np.dtype[Any]:
        """What a level is asked for in: its lines depend on the precision alone."""
        return np.dtype(np.float32 if self.dtype == np.float16 else self.dtype)

    @property
    def shapes(self) -> list[Any]:
        """The shapes of the coefficients, nested as they are."""
        return from_keys(self._shapes, self._form)

    def empty(self) -> list[Any]:
        """NumPy arrays for the coefficients, with nothing in them yet: for ``out=``."""
        made: list[Any] = [np.empty(self._shapes[0], self.dtype)]
        made += [{key: np.empty(s, self.dtype) for key, s in part.items()} for part in self._shapes[1:]]
        return from_keys(made, self._form)

    # --- running ----------------------------------------------------------------------------------

    def forward(self, x: Any, out: Sequence[Any] | None = None) -> list[Any]:
        """The coefficients, as ``wavedec``, ``wavedec2`` or ``wavedecn`` would give them for so many axes."""
        if out is not None and not self.on_device and self._run_directly(False, x, out):
            return list(out)
        keyed = None if out is None else keyed_as(out, self._form)
        targets = None if keyed is None else self._in_order(keyed)
        if out is not None and targets is not None and self.on_device and self._again(False, [x, *targets]):
            return list(out)
        if self.on_device:
            x = given_array(x)
            on_device = self._device_arrays([x])
            self._check_shape(tuple(x.shape), on_device.library.dtype(x))
            if out is not None and (keyed is None or len(keyed) != self.level + 1):
                raise ArgumentError(
                    f"out must be nested as the result is, with {self.level} level(s) of details"
                )
            coeffs = ondevice.forward(
                on_device, x, self.spec, self.level, keyed, self.options, self.padded_shape, self._memory
            )
            if out is None:
                return from_keys(coeffs, self._form)
            if targets is not None:
                self._remember(False, on_device, [x, *targets])
            return list(out)
        array = numpy_array(x)
        self._check_shape(array.shape, array.dtype)
        given, array = array, self._padded(array.astype(self.dtype, copy=False))
        if out is not None:
            keyed = list(checked_targets(self.spec, array, self.level, out, keyed, given))
        assert isinstance(self.engine, HostEngine)
        coeffs = decompose(self.spec, array, self.level, keyed, self.engine, self.options)
        return list(out) if out is not None else from_keys(coeffs, self._form)

    def _run_directly(self, back: bool, x: Any, coeffs: Any) -> bool:
        """Run on arrays of the CPU in C order; False where something has to be checked or converted first."""
        call = self._direct.get(back)
        if call is None:
            if self.backend != "cpu" or self.square or not self._runs:
                return False
            call = self._direct[back] = array_call(back, self.tree, self.dtype)
        arrays = [x]
        try:
            if self._form == "wavedec":
                arrays += coeffs
            elif self._form == "wavedec2":
                arrays.append(coeffs[0])
                for horizontal, vertical, diagonal in coeffs[1:]:
                    arrays += (vertical, horizontal, diagonal)
            else:
                keys = self.spec.keys[1:]
                arrays.append(coeffs[0])
                for part in coeffs[1:]:
                    if len(part) != len(keys):
                        return False
                    arrays += (part[key] for key in keys)
        except (TypeError, ValueError, KeyError, IndexError):  # It is nested otherwise.
            return False
        return call(*arrays)

    def _check_rule(self, rule: str | None, limits: Any) -> None:
        if rule is None and limits is None:
            return
        if rule is None or limits is None:
            raise ArgumentError("a rule and its limits belong together")
        if rule not in RULES:
            raise UnknownNameError("rule", rule, RULES)
        refuse_gradients(limits, "limits")
        if self.dtype.kind == "c":
            raise ArgumentTypeError("rules are for real coefficients")
        wanted = (self.level, 2, 2 ** len(self.axes) - 1)
        if not hasattr(limits, "shape") or tuple(limits.shape) != wanted:
            got = tuple(limits.shape) if hasattr(limits, "shape") else type(limits).__name__
            raise ArgumentError(f"limits of this plan are an array of shape {wanted}, got {got}")
        kind = "float64" if self.dtype == np.float64 else "float32"
        if self.on_device and get_backend(limits).dtype(limits) != kind:
            raise ArgumentTypeError(f"limits of this plan are {kind}, got {limits.dtype}")

    def _remember(
        self, back: bool, on_device: DeviceArrays, arrays: Sequence[Any], rule: str | None = None
    ) -> None:
        """What was run last, so that it can be run again at once on the same arrays."""
        last = self._memory.get("run")
        if on_device.uploaded or last is None or any(a is None for a in arrays):
            return
        made, keys, own, queue = last
        library = on_device.library
        layouts = [library.layout_key(a) for a in arrays]
        refs = [weakref.ref(a) for a in arrays]
        self._last[back] = (refs, library, made, keys, own, queue, rule, layouts)

    def _again(self, back: bool, arrays: Sequence[Any], rule: str | None = None) -> bool:
        """Runs again what was run last, if these are the same arrays, and only their numbers have changed."""
        last = self._last.get(back)
        if last is None or len(last[0]) != len(arrays):
            return False
        for ref, array in zip(last[0], arrays, strict=True):
            if array is None or ref() is not array:
                return False
        for array in arrays:
            refuse_gradients(array)
        _, library, made, keys, own, queue, known, layouts = last
        if known != rule or [library.layout_key(array) for array in arrays] != layouts:
            return False
        buffers = [library.buffer(array) for array in arrays]
        # (Addresses are their own keys.)
        if buffers != keys and [ondevice.buffer_key(b) for b in buffers] != keys:
            return False
        if library.queue(arrays[0]) != queue:
            return False
        event = made.run([*buffers, *own], queue, library.events(arrays))
        if event is not None:
            library.add_event(arrays[:1] if back else arrays[1:], event)
        return True

    def _in_order(self, keyed: Sequence[Any]) -> list[Any] | None:
        """Arrays in the order of their buffers; None unless there is one for every band, and no other."""
        keys = self.spec.keys[1:]
        if len(keyed) != self.level + 1 or any(len(part) != len(keys) for part in keyed[1:]):
            return None
        return [keyed[0], *(part.get(key) for part in keyed[1:] for key in keys)]

    def _check_shape(self, shape: tuple[int, ...], dtype: Any) -> None:
        result = self.engine.result_dtype(np.dtype(dtype))
        if shape != self.shape or result != self.dtype:
            raise ArgumentError(
                f"this plan is for arrays of shape {self.shape} that are transformed in {self.dtype}, got"
                f" {shape} and {dtype}"
            )

    def _padded(self, x: Array) -> Array:
        if self.padded_shape == self.shape:
            return x
        whole = np.zeros(self.padded_shape, x.dtype)
        whole[tuple(slice(n) for n in self.shape)] = x
        return whole

    def inverse(
        self, coeffs: Sequence[Any], out: Any = None, *, rule: str | None = None, limits: Any = None
    ) -> Any:
        """The samples, in the shape of the plan; None in place of coefficients stands for zeros.

        Parameters
        ----------
        coeffs : list
        out : array, optional
            For the result.
        rule : str, optional
            What is done to details while they are read: ``soft``, ``hard``, ``garrote``, ``firm``,
            ``greater``, ``less``, or ``gain``. On a device that costs nothing.
        limits : array ``(level, 2, bands)``
            Of the rule, for each level, finest first: the thresholds (or gains) of its bands in the order of
            their keys, which is ad, da, dd for images (cV, cH, cD); and for ``firm`` the second ones. Of the
            dtype that kernels count in (float32, or float64 for that), and where the coefficients are.

        Examples
        --------
        >>> x = np.random.default_rng(0).standard_normal((16, 16))
        >>> plan = Plan((16, 16), "haar", level=2)
        >>> low = plan.inverse(plan.forward(x), rule="hard", limits=np.full((2, 2, 3), 9.0))
        >>> bool(np.allclose(low, plan.inverse([plan.forward(x)[0], *[(None,) * 3] * 2])))
        True
        """
        if out is not None and not self.on_device and rule is None and self._run_directly(True, out, coeffs):
            return out
        keyed = keyed_as(coeffs, self._form)
        bands = None if keyed is None else self._in_order(keyed)
        arrays = (
            None if out is None or bands is None else [out, *bands, *([] if limits is None else [limits])]
        )
        if arrays is not None and self.on_device and self._again(True, arrays, rule):
            return out
        self._check_rule(rule, limits)
        if keyed is None or len(keyed) != self.level + 1:
            raise ArgumentError(
                f"coefficients of this plan are nested as {self._form} does, with {self.level} level(s) of"
                " details"
            )
        if self.on_device:
            on_device = self._device_arrays(ondevice.arrays_of(keyed))
            try:
                made = ondevice.backward(
                    on_device,
                    _given(keyed),
                    self.spec,
                    self.padded_shape,
                    out,
                    replace(self.options, rule=rule),
                    self.shape,
                    self._memory,
                    str(self.dtype),
                    limits=limits,
                )
            except UnfusedError as error:
                raise ArgumentError(f"this plan shrinks no details on the way back: {error}") from None
            if arrays is not None:
                self._remember(True, on_device, arrays, rule)
            return made
        if out is not None:
            check_out(out, self.shape, self.dtype, nested(list(coeffs)), "out")
        read: list[Any] = [_typed(keyed[0], self.dtype)]
        read += [{key: _typed(band, self.dtype) for key, band in part.items()} for part in keyed[1:]]
        if rule is not None:
            read = [read[0], *_shrunk(read[1:], rule, numpy_array(limits, "limits").astype(np.float64))]
        assert isinstance(self.engine, HostEngine)
        if self.padded_shape == self.shape:
            return recompose(self.spec, read, self.shape, out, self.engine, self.options)
        padded = recompose(self.spec, read, self.padded_shape, None, self.engine, self.options)
        samples = padded[tuple(slice(n) for n in self.shape)]
        if out is None:
            return samples
        check_out(out, self.shape, self.dtype, nested(list(coeffs)), "out")[...] = samples
        return out

    def frames(self, arrays: Iterable[Any], depth: int = 3) -> Iterator[list[Any]]:
        """The coefficients of many NumPy arrays, one after the other, as they come.

        On a CUDA device some frames are on their way there or back while another one is transformed.

        Parameters
        ----------
        arrays : iterable
            Of the shape and dtype of the plan.
        depth : int
            Frames that are in the works at once.
        """
        if self.backend != "cuda" or not self._runs:
            yield from (self.forward(x) for x in arrays)
            return
        program, layouts = self.program(False), self.layouts
        for bands in frames(
            self.host.device, program, arrays, self._check_shape, self.source_dtype, layouts, depth
        ):
            yield from_keys(self.tree.by_key(bands), self._form)

    def _device_arrays(self, arrays: Sequence[Any]) -> DeviceArrays:
        on_device = ondevice.engine(arrays, self.device_name)
        assert on_device is not None
        return on_device

    # --- looking ----------------------------------------------------------------------------------

    def program(self, back: bool, rule: str | None = None) -> Any:
        """The program of a plan for a device, for arrays in C order, ready to run.

        Parameters
        ----------
        back : bool
            From coefficients to samples.
        rule : str, optional
            What is done to details on the way back, as for :meth:`inverse`.
        """
        return self._program(back, replace(self.options, rule=rule))

    @property
    def stages(self) -> tuple[DeviceLevel, ...]:
        """The levels of a plan for a device, finest first, as its program is built of them."""
        return device_levels(self.tree, str(self.dtype))

    @property
    def layouts(self) -> list[ArrayView]:
        """The layouts of the coefficients of a plan for a device, in the order of their buffers."""
        return contiguous_views(self.tree, str(self.dtype))

    def with_knobs(self, knobs: Knobs | None) -> Plan:
        """Return the plan with another layout of its work on the device; an error if that does not fit."""
        plan = copy.copy(self)
        plan.options, plan._memory, plan._last = replace(self.options, knobs=knobs), {}, {}
        plan.program(False)
        return plan

    def _program(self, back: bool, options: TransformOptions) -> Any:
        """The program for arrays in one piece, ready to run."""
        real = COMPLEX.get(str(self.dtype), str(self.dtype))
        pair = str(self.dtype) in COMPLEX
        source = real if back or pair or self.source_dtype not in RESULTS else self.source_dtype
        samples = ArrayView.contiguous(0, (*self.shape, 2) if pair else self.shape, source)
        layouts = [samples, *contiguous_views(self.tree, str(self.dtype))]
        return self.engine.compile(back, self.tree, self.dtype, layouts, options)

    @property
    def source(self) -> str:
        """The kernels, as text."""
        if not self.on_device:
            raise ArgumentError(f"backend {self.backend!r} has no kernels to show; 'cuda' and 'opencl' have")
        if not self._runs:
            return ""
        texts = [self.program(back).program.source for back in (False, True)]
        return "\n".join(texts)

    @property
    def cost(self) -> PlanCost:
        """Bytes that a run forward moves, operations it does, and how often threads wait for each other."""
        return model.cost(self)

    def predict(self, device: str | Ceilings | None = None, *, transfers: bool = False) -> Prediction:
        """How long one run forward should take at least: what it needs, over what a device can do at most.

        The way back needs as many bytes and operations.

        Parameters
        ----------
        device : str or Ceilings, optional
            A device by name, or what :func:`undula.ceilings` found of one, here or elsewhere; the plan's own
            if not given. A device is measured the first time, which takes some seconds, and remembered.
        transfers : bool
            With bringing samples to the device, and coefficients back.

        Returns
        -------
        Prediction
            Bytes, operations, barriers, seconds, and the terms of which they are the sum.

        Examples
        --------
        >>> told = Plan((1024, 1024), "cdf97", level=1, dtype="float32").predict()
        >>> told.operations, told.bytes
        (10485760, 8454400)
        >>> told.seconds > 0 and told.limit in told.terms
        True
        """
        return model.predict(self, device, transfers=transfers)

    @property
    def method(self) -> str:
        """``"lifting"`` or ``"filters"``: what the plan has decided on, along its last axis."""
        if self.on_device:
            wavelet, mode, single = (
                self.spec.wavelets[-1],
                self.spec.modes[-1],
                self._real().char in "fF",
            )
            return model.strategy(self).method(wavelet, mode, self._method, self.scheme, single)
        return self.spec.operators(self.padded_shape, self._real(), self.engine.lifting)[-1][1].method

    def __repr__(self) -> str:
        names = dict.fromkeys(wavelet.name for wavelet in self.spec.wavelets)
        modes = dict.fromkeys(self.spec.modes)
        wavelet = (
            repr(next(iter(names))) if len(names) == 1 else str(tuple(w.name for w in self.spec.wavelets))
        )
        mode = repr(next(iter(modes))) if len(modes) == 1 else str(self.spec.modes)
        words = [f"{self.shape}, {wavelet}", f"level={self.level}", f"mode={mode}", f"axes={self.axes}"]
        words += [f"dtype={str(self.dtype)!r}", f"backend={self.backend!r}"]
        if self.on_device:
            words += [f"strategy={self.options.strategy!r}", f"method={self._method!r}"]
        words += [f"scheme={self.scheme!r}"] * (self.scheme != "auto") + ["square=True"] * self.square
        return f"Plan({', '.join(words)})"


def flat(coeffs: Any) -> list[Any]:
    """Arrays in the order of their buffers: the approximation, then details by key."""
    arrays = list(coeffs[:1])
    for part in coeffs[1:]:
        if isinstance(part, dict):
            arrays += [part[key] for key in sorted(part)]
        elif isinstance(part, (list, tuple)) and len(part) == 3:
            arrays += [part[1], part[0], part[2]]  # ad, da, dd
        else:
            arrays.append(part)
    return arrays


def _given(keyed: Sequence[Any]) -> list[Any]:
    """Coefficients as arrays, on the host or on a device."""

    def read(band: Any) -> Any:
        return None if band is None else given_array(band, "coefficients")

    return [read(keyed[0]), *({key: read(band) for key, band in part.items()} for part in keyed[1:])]


def _shrunk(details: Sequence[Any], rule: str, limits: Array) -> list[Any]:
    """Details by a rule, on the host; coarsest first, and limits finest first."""
    found = [
        (number, key, band)
        for number, part in enumerate(reversed(details))
        for key, band in part.items()
        if band is not None
    ]
    places = {key: k for k, key in enumerate(sorted(details[0]))} if details else {}
    sources = [np.ascontiguousarray(band) for _, _, band in found]
    made = [empty(band.shape, band.dtype) for band in sources]
    lows, highs = ([float(limits[n, side, places[key]]) for n, key, _ in found] for side in (0, 1))
    shrink(sources, rule, lows, highs, made)
    new = [dict(part) for part in details]
    for (number, key, _), band in zip(found, made, strict=True):
        new[len(details) - 1 - number][key] = band
    return new


def _typed(band: ArrayLike | None, dtype: np.dtype[Any]) -> Array | None:
    if band is None:
        return None
    array = numpy_array(band, "coefficients")
    if array.dtype.kind == "c" and dtype.kind != "c":
        raise ArgumentTypeError(f"this plan is transformed in {dtype}, got coefficients of {array.dtype}")
    return array.astype(dtype, copy=False)


def _shape(shape: Sequence[int] | int) -> tuple[int, ...]:
    whole = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
    if not whole or not all(isinstance(n, (int, np.integer)) and n >= 0 for n in whole):
        raise ArgumentError(f"a shape is one or more whole numbers, got {shape!r}")
    return tuple(int(n) for n in whole)
