"""Transforms on devices: where plans, programs and arrays of many libraries meet.

An array that is on a GPU already is transformed there, on the stream its library works on, into new arrays
of the same library. A NumPy array goes to a device when ``backend`` asks for it, and its results come back.
Programs are made once for each layout of arrays, and kept.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import ArgumentError, ArgumentTypeError
from ..inputs import is_tensor
from ..lowering.spec import BandTree, TransformSpec
from .arrays import check_out
from .base import DEFAULT_OPTIONS, TransformOptions, on_host, split_backend
from .cpu import empty
from .gpu.engine import device_engine, prepared_program
from .gpu.libraries import COMPLEX, RESULTS, Held, Library, library_of, same_library
from .gpu.transform import Layout
from .host import integer_dtype

__all__ = ["HostLibrary", "backward", "buffer_key", "engine", "forward", "host", "moves", "restorer"]

Shape = tuple[int, ...]


def engine(arrays: Sequence[Any], backend: str = "auto") -> Library | None:
    """What transforms these arrays on a device; None for engines on the host.

    Parameters
    ----------
    arrays : sequence
        As the caller gave them; None among them is left out.
    backend : str
        ``auto``, or as :func:`~undula.engines.base.engine` takes it.
    """
    name, _ = split_backend(backend)
    library = same_library(arrays)
    if library is None:
        return None if on_host(backend) else host(backend)
    if name not in ("auto", library.backend):
        raise ArgumentError(
            f"an array of {library.name} is transformed by backend {library.backend!r} where it is, not by"
            f" {backend!r}; give a NumPy array to have it brought there"
        )
    return library


_watched = threading.local()


@contextmanager
def moves() -> Iterator[Callable[[], float]]:
    """Tells, when asked, how many seconds this thread has brought NumPy's arrays to devices and back.

    While somebody wants to know, devices are waited for before and after.
    """
    before = getattr(_watched, "seconds", None)
    _watched.seconds = 0.0
    try:
        yield lambda: float(_watched.seconds)
    finally:
        _watched.seconds = before


@contextmanager
def _move(device: Any, queue: Any) -> Iterator[None]:
    """Something is brought somewhere."""
    if getattr(_watched, "seconds", None) is None:
        yield
        return
    device.finish(queue)
    begin = time.perf_counter()
    yield
    device.finish(queue)
    _watched.seconds += time.perf_counter() - begin


class HostLibrary(Library):
    """NumPy's arrays on a device: brought there, and their results brought back."""

    name = "NumPy"

    def __init__(self, backend: str) -> None:
        engine = device_engine(backend)
        self.backend, self._device = engine.name, engine.device

    def device(self, x: Any) -> Any:
        """The device that arrays are brought to."""
        return self._device

    def queue(self, x: Any) -> Any:
        """Its queue."""
        return self._device.queue

    def held(self, x: Any) -> Held:
        """An array that was brought there."""
        if isinstance(x, _Away):
            memory, shape, dtype = x.memory, x.shape, x.dtype
        else:
            array = np.ascontiguousarray(x)
            memory, shape, dtype = (
                self._device.allocate(array.nbytes, self.queue(x)),
                array.shape,
                str(array.dtype),
            )
            with _move(self._device, self.queue(x)):
                self._device.upload(array, memory, self.queue(x))
        layout = Layout.contiguous(shape, dtype)
        if dtype in COMPLEX:
            layout = Layout.contiguous((*shape, 2), COMPLEX[dtype])
        return Held(getattr(memory, "address", memory), layout, memory)

    def empty(self, shape: Shape, dtype: str, like: Any) -> Any:
        """Memory for a result."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        return _Away(self._device.allocate(size, self.queue(like)), shape, dtype)

    def samples(self, x: Any, what: str = "data") -> Any:
        """The array, in the byte order of the machine and of a dtype that kernels read."""
        array = x if isinstance(x, np.ndarray) else np.asarray(x)
        if str(array.dtype) in RESULTS:
            return array
        native = array.dtype.newbyteorder("=")
        if str(native) not in RESULTS:
            native = np.dtype(np.complex128 if native.kind == "c" else np.float64)
        return array.astype(native)

    def integers(self, x: Any, what: str = "data") -> Any:
        """The array, in the byte order of the machine."""
        array = np.asarray(x)
        return super().integers(array.astype(array.dtype.newbyteorder("="), copy=False), what)

    def converted(self, x: Any, dtype: str) -> Any:
        """An array of another dtype, still on the host."""
        return np.asarray(x).astype(dtype)

    def finished(self, results: Any, like: Any) -> Any:
        """Results brought back."""
        if isinstance(results, dict):
            return {key: self.finished(part, like) for key, part in results.items()}
        if isinstance(results, list):
            return [self.finished(part, like) for part in results]
        made = empty(results.shape, np.dtype(results.dtype))  # (memory that was touched before, if there is)
        with _move(self._device, self.queue(like)):
            self._device.download(results.memory, made, self.queue(like))
        return made


class _Away:
    """A result that is still on the device."""

    def __init__(self, memory: Any, shape: Shape, dtype: str) -> None:
        self.memory, self.shape, self.dtype = memory, shape, dtype


@lru_cache(maxsize=8)
def host(backend: str) -> HostLibrary:
    """What brings NumPy's arrays to a device."""
    return HostLibrary(backend)


def restorer(data: Any) -> Callable[[Any], Any]:
    """What makes of NumPy's results the kind of array that the caller gave."""
    if not is_tensor(data) or library_of(data) is not None:
        return lambda results: results
    torch = sys.modules["torch"]

    def restored(results: Any) -> Any:
        if isinstance(results, dict):
            return {key: restored(part) for key, part in results.items()}
        if isinstance(results, (list, tuple)):
            return type(results)(restored(part) for part in results)
        return torch.from_numpy(results) if isinstance(results, np.ndarray) else results

    return restored


def _run(
    library: Library,
    made: Any,
    held: Sequence[Held | None],
    like: Any,
    kept: dict[Any, Any] | None,
    results: Sequence[Any],
) -> None:
    """Runs a program with memory of its own from the caller's library; ``kept`` keeps it for each queue."""
    queue = library.queue(like)
    own = None if kept is None else kept.get((made, queue))
    if own is None:
        own = [library.held(library.empty((n,), kind, like)) for n, kind in made.program.scratch]
        if kept is not None:
            kept[made, queue] = own
    buffers = [None if one is None else one.buffer for one in held]
    mine = [one.buffer for one in own]
    if kept is not None:
        kept["run"] = (made, [buffer_key(buffer) for buffer in buffers], mine, queue)
    # (Arrays of the host are waited for by themselves.)
    arrays = [] if isinstance(library, HostLibrary) else [one.array for one in held if one is not None]
    event = made.run([*buffers, *mine], queue, library.events(arrays))
    if event is not None and not isinstance(library, HostLibrary):
        library.add_event(results, event)


def buffer_key(buffer: Any) -> int:
    """What tells a buffer from others, without keeping it."""
    return int(getattr(buffer, "int_ptr", buffer or 0))


class _Place:
    """Memory that NumPy may think about, and must not touch."""

    def __init__(self, held: Held) -> None:
        layout = held.layout
        dtype = np.dtype(layout.dtype)
        base = held.buffer if isinstance(held.buffer, int) else 1 << 40
        self.__array_interface__ = {
            "data": (base + layout.start * dtype.itemsize, False),
            "shape": layout.shape,
            "strides": tuple(step * dtype.itemsize for step in layout.strides),
            "typestr": dtype.str,
            "version": 3,
        }


def _check_apart(targets: Sequence[Held], sources: Sequence[Held | None], what: str) -> None:
    """An error where results share memory with what is read, or with each other."""
    before = [(buffer_key(one.buffer), np.asarray(_Place(one))) for one in sources if one is not None]
    for target in targets:
        key, place = buffer_key(target.buffer), np.asarray(_Place(target))
        for other, memory in before:
            same = isinstance(target.buffer, int) or key == other
            if same and np.may_share_memory(place, memory) and np.shares_memory(place, memory):
                raise ArgumentError(f"{what} must not share memory with the input or with another result")
        before.append((key, place))


def forward(
    library: Library,
    data: Any,
    spec: TransformSpec,
    levels: int,
    out: Sequence[Any] | None = None,
    options: TransformOptions = DEFAULT_OPTIONS,
    inner: Shape | None = None,
    kept: dict[Any, Any] | None = None,
    whole: str | None = None,
) -> list[Any]:
    """``[approximation, details by key, …]``, coarsest first, in the caller's kind of arrays.

    ``inner`` is a larger shape whose rest is zeros, and ``kept`` keeps memory for the next time; ``whole``
    says in which integers results of integers are kept.
    """
    x = library.samples(data) if whole is None else library.integers(data)
    shape, dtype = library.shape(x), whole or RESULTS[library.dtype(x)]
    if isinstance(library, HostLibrary) and out is not None:
        fresh = forward(library, x, spec, levels, None, options, inner, kept, whole)
        _filled(out, fresh, x)
        return list(out)
    if levels == 0:
        return _copied(library, x, dtype, out)
    tree = BandTree.of_samples(spec, inner or shape, levels)
    keys = spec.keys[1:]
    if out is None:
        arrays = [library.empty(s, dtype, x) for s in tree.flat_shapes]
    else:
        arrays = [out[0], *(part[key] for part in out[1:] for key in keys)]
        for number, (array, wanted) in enumerate(zip(arrays, tree.flat_shapes, strict=True)):
            _check_out(library, array, x, wanted, dtype, f"array {number} of out")
    targets = [library.held(array) for array in arrays]
    held = library.held(x)
    device = library.device(x)
    if math.prod(shape):
        made = prepared_program(
            device, False, tree, dtype, (held.layout, *(target.layout for target in targets)), options
        )
        if out is not None:
            _check_apart(targets, [held], "out")
        _run(library, made, [held, *targets], x, kept, arrays)
    results: list[Any] = [arrays[0]]
    for number in range(levels):
        begin = 1 + number * len(keys)
        results.append(dict(zip(keys, arrays[begin : begin + len(keys)], strict=True)))
    return list(out) if out is not None else library.finished(results, x)


def backward(
    library: Library,
    coeffs: Sequence[Any],
    spec: TransformSpec,
    shape: Shape | None = None,
    out: Any = None,
    options: TransformOptions = DEFAULT_OPTIONS,
    cut: Shape | None = None,
    kept: dict[Any, Any] | None = None,
    dtype: str | None = None,
    whole: bool = False,
    result: str | None = None,
    limits: Any = None,
) -> Any:
    """The samples; of a corner of them, where ``cut`` is smaller than what the coefficients make.

    ``result`` is their dtype, where it is another than that of the coefficients; ``limits`` are those of the
    rule of the options.
    """
    given = [a for a in (coeffs[0], *(b for part in coeffs[1:] for b in part.values())) if a is not None]
    if not given:
        raise ArgumentError("At least one coefficient parameter must be specified.")
    if isinstance(library, HostLibrary) and out is not None:
        fresh = backward(library, coeffs, spec, shape, None, options, cut, kept, dtype, whole, limits=limits)
        check_out(out, fresh.shape, fresh.dtype, [np.asarray(a) for a in given], "out")[...] = fresh
        return out
    like = given[0]
    if whole:
        dtypes = {library.dtype(library.integers(a, "coefficients")) for a in given}
    else:
        dtypes = {RESULTS.get(library.dtype(library.samples(a, "coefficients")), "float64") for a in given}
    common = str(np.result_type(*dtypes)) if len(dtypes) > 1 else dtypes.pop()
    if dtype is None:
        dtype = str(integer_dtype(np.dtype(common))) if whole else common
    elif common in COMPLEX and dtype not in COMPLEX:
        raise ArgumentTypeError(f"this plan is transformed in {dtype}, got coefficients of {common}")

    def typed(a: Any) -> Any:
        if a is None:
            return None
        ready = library.integers(a, "coefficients") if whole else library.samples(a, "coefficients")
        return ready if library.dtype(ready) == dtype else library.converted(ready, dtype)

    ready: list[Any] = [typed(coeffs[0])]
    ready += [{key: typed(band) for key, band in part.items()} for part in coeffs[1:]]
    sizes: list[Any] = [None if ready[0] is None else library.shape(ready[0])]
    sizes += [
        {key: None if band is None else library.shape(band) for key, band in part.items()}
        for part in ready[1:]
    ]
    tree, low = BandTree.of_bands(spec, sizes, shape)
    used, shapes = tree.levels, tree.sample_shapes
    ready = [ready[0], *ready[len(ready) - used :]]
    if used == 0:
        return _copied(library, ready[0], dtype, None if out is None else [out])[0]
    keys = spec.keys[1:]
    wants = cut or shapes[0]
    if out is None:
        x = library.empty(wants, result or dtype, like)
    else:
        _check_out(library, out, like, wants, dtype, "out")
        x = out
    target = library.held(x)
    flat = [ready[0], *(part.get(key) for part in ready[1:] for key in keys)]
    if flat[0] is not None and low is not None and library.shape(flat[0]) != low:
        flat[0] = flat[0][tuple(slice(n) for n in low)]
    sources = [None if a is None else library.held(a) for a in flat]
    if math.prod(shapes[0]):
        device = library.device(like)
        made = prepared_program(device, True, tree, dtype, (target.layout, *_layouts(sources)), options)
        if out is not None:
            _check_apart([target], sources, "out")
        held = [target, *sources, *([] if limits is None else [library.held(limits)])]
        _run(library, made, held, like, kept, [x])
    return out if out is not None else library.finished(x, like)


def _layouts(sources: Sequence[Held | None]) -> tuple[Layout | None, ...]:
    return tuple(None if source is None else source.layout for source in sources)


def _check_out(library: Library, array: Any, like: Any, shape: Shape, dtype: str, what: str) -> None:
    library.check(array, like, what)
    if library.shape(array) != shape or library.dtype(array) != dtype:
        raise ArgumentError(
            f"{what} must have shape {shape} and dtype {dtype}, got {library.shape(array)} and"
            f" {library.dtype(array)}"
        )


def _copied(library: Library, x: Any, dtype: str, out: Sequence[Any] | None) -> list[Any]:
    """No level at all: the samples themselves."""
    if isinstance(library, HostLibrary):
        return [np.array(x, dtype=dtype)]
    if out is not None:
        _check_out(library, out[0], x, library.shape(x), dtype, "out")
        _check_apart([library.held(out[0])], [library.held(x)], "out")
    made = x if library.dtype(x) == dtype else library.converted(x, dtype)
    if out is not None:
        out[0][...] = made
        return list(out)
    return [made.copy() if made is x and hasattr(x, "copy") else made.clone() if made is x else made]


def _filled(out: Sequence[Any], fresh: Sequence[Any], x: Any) -> None:
    """Results of the device in NumPy arrays of the caller's."""
    before = [x]
    for number, (target, part) in enumerate(zip(out, fresh, strict=True)):
        pairs = [(target[key], band) for key, band in part.items()] if number else [(target, part)]
        for array, values in pairs:
            before.append(check_out(array, values.shape, values.dtype, before, f"out[{number}]"))
            array[...] = values


def arrays_of(coeffs: Sequence[Any]) -> list[Any]:
    """All arrays of nested coefficients, None among them."""
    found: list[Any] = []
    for part in coeffs:
        found += list(part.values()) if isinstance(part, Mapping) else [part]
    return found
