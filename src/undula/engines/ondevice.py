"""Transforms on devices: where plans, programs and arrays of many libraries meet.

An array that is on a GPU already is transformed there, on the stream its library works on, into new arrays
of the same on_device. A NumPy array goes to a device when ``backend`` asks for it, and its results come back.
Programs are made once for each layout of arrays, and kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..arrays import COMPLEX, ArrayView, check_out
from ..errors import ArgumentError, ArgumentTypeError
from ..lowering.spec import BandTree, TransformSpec
from .base import DEFAULT_OPTIONS, TransformOptions, on_host, split_backend
from .gpu.arrays import RESULTS, DeviceArrays, UploadedArrays, common_arrays
from .gpu.engine import device_engine, prepared_program
from .host import integer_dtype

__all__ = ["backward", "buffer_key", "engine", "forward", "host"]

Shape = tuple[int, ...]


def engine(arrays: Sequence[Any], backend: str = "auto") -> DeviceArrays | None:
    """What transforms these arrays on a device; None for engines on the host.

    Parameters
    ----------
    arrays : sequence
        As the caller gave them; None among them is left out.
    backend : str
        ``auto``, or as :func:`~undula.engines.base.engine` takes it.
    """
    name, _ = split_backend(backend)
    on_device = common_arrays(arrays)
    if on_device is None:
        return None if on_host(backend) else host(backend)
    if name not in ("auto", on_device.backend):
        raise ArgumentError(
            f"an array of {on_device.library.name} is transformed by backend {on_device.backend!r} where it"
            f" is, not by {backend!r}; give a NumPy array to have it brought there"
        )
    return on_device


@lru_cache(maxsize=8)
def host(backend: str) -> UploadedArrays:
    """What brings NumPy's arrays to a device."""
    return UploadedArrays(device_engine(backend).device)


def _run(
    on_device: DeviceArrays,
    made: Any,
    views: Sequence[ArrayView | None],
    like: Any,
    kept: dict[Any, Any] | None,
    results: Sequence[Any],
) -> None:
    """Runs a program with memory of its own from the caller's library; ``kept`` keeps it for each queue."""
    queue = on_device.queue(like)
    scratch = None if kept is None else kept.get((made, queue))
    if scratch is None:
        scratch = [on_device.view(on_device.empty((n,), kind, like)) for n, kind in made.program.scratch]
        if kept is not None:
            kept[made, queue] = scratch
    buffers = [None if view is None else view.buffer for view in views]
    temporaries = [view.buffer for view in scratch]
    if kept is not None:
        kept["run"] = (made, [buffer_key(buffer) for buffer in buffers], temporaries, queue)
    # (Arrays of the host are waited for by themselves.)
    arrays = [] if on_device.uploaded else [view.owner for view in views if view is not None]
    event = made.run([*buffers, *temporaries], queue, on_device.library.events(arrays))
    if event is not None and not on_device.uploaded:
        on_device.library.add_event(results, event)


def buffer_key(buffer: Any) -> int:
    """What tells a buffer from others, without keeping it."""
    return int(getattr(buffer, "int_ptr", buffer or 0))


def _check_apart(targets: Sequence[ArrayView], sources: Sequence[ArrayView | None], what: str) -> None:
    """An error where results share memory with what is read, or with each other."""
    before = [view for view in sources if view is not None]
    for target in targets:
        if any(target.overlaps(view) for view in before):
            raise ArgumentError(f"{what} must not share memory with the input or with another result")
        before.append(target)


def forward(
    on_device: DeviceArrays,
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
    x = on_device.samples(data) if whole is None else on_device.integers(data)
    shape, dtype = on_device.library.shape(x), whole or RESULTS[on_device.library.dtype(x)]
    if on_device.uploaded and out is not None:
        fresh = forward(on_device, x, spec, levels, None, options, inner, kept, whole)
        _filled(out, fresh, x)
        return list(out)
    if levels == 0:
        return _copied(on_device, x, dtype, out)
    tree = BandTree.of_samples(spec, inner or shape, levels)
    keys = spec.keys[1:]
    if out is None:
        arrays = [on_device.empty(s, dtype, x) for s in tree.flat_shapes]
    else:
        arrays = [out[0], *(part[key] for part in out[1:] for key in keys)]
        for number, (array, wanted) in enumerate(zip(arrays, tree.flat_shapes, strict=True)):
            _check_out(on_device, array, wanted, dtype, f"array {number} of out")
    targets = [on_device.view(array) for array in arrays]
    source = on_device.view(x)
    if math.prod(shape):
        views = _numbered([source, *targets])
        made = prepared_program(on_device.device, False, tree, dtype, views, options)
        if out is not None:
            _check_apart(targets, [source], "out")
        _run(on_device, made, [source, *targets], x, kept, arrays)
    results: list[Any] = [arrays[0]]
    for number in range(levels):
        begin = 1 + number * len(keys)
        results.append(dict(zip(keys, arrays[begin : begin + len(keys)], strict=True)))
    return list(out) if out is not None else on_device.finished(results, x)


def backward(
    on_device: DeviceArrays,
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
    if on_device.uploaded and out is not None:
        fresh = backward(
            on_device, coeffs, spec, shape, None, options, cut, kept, dtype, whole, limits=limits
        )
        check_out(out, fresh.shape, fresh.dtype, [np.asarray(a) for a in given], "out")[...] = fresh
        return out
    like, library = given[0], on_device.library
    if whole:
        dtypes = {library.dtype(on_device.integers(a, "coefficients")) for a in given}
    else:
        dtypes = {RESULTS.get(library.dtype(on_device.samples(a, "coefficients")), "float64") for a in given}
    common = str(np.result_type(*dtypes)) if len(dtypes) > 1 else dtypes.pop()
    if dtype is None:
        dtype = str(integer_dtype(np.dtype(common))) if whole else common
    elif common in COMPLEX and dtype not in COMPLEX:
        raise ArgumentTypeError(f"this plan is transformed in {dtype}, got coefficients of {common}")

    def typed(a: Any) -> Any:
        if a is None:
            return None
        ready = on_device.integers(a, "coefficients") if whole else on_device.samples(a, "coefficients")
        return ready if library.dtype(ready) == dtype else library.convert(ready, dtype)

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
        return _copied(on_device, ready[0], dtype, None if out is None else [out])[0]
    keys = spec.keys[1:]
    wants = cut or shapes[0]
    if out is None:
        x = on_device.empty(wants, result or dtype, like)
    else:
        _check_out(on_device, out, wants, dtype, "out")
        x = out
    target = on_device.view(x)
    flat = [ready[0], *(part.get(key) for part in ready[1:] for key in keys)]
    if flat[0] is not None and low is not None and library.shape(flat[0]) != low:
        flat[0] = flat[0][tuple(slice(n) for n in low)]
    sources = [None if a is None else on_device.view(a) for a in flat]
    if math.prod(shapes[0]):
        views = _numbered([target, *sources])
        made = prepared_program(on_device.device, True, tree, dtype, views, options)
        if out is not None:
            _check_apart([target], sources, "out")
        limit_views = [] if limits is None else [on_device.view(limits)]
        _run(on_device, made, [target, *sources, *limit_views], like, kept, [x])
    return out if out is not None else on_device.finished(x, like)


def _numbered(views: Sequence[ArrayView | None]) -> tuple[ArrayView | None, ...]:
    """Arrays with the numbers of their buffers, as a program knows them."""
    return tuple(None if view is None else view.at(number) for number, view in enumerate(views))


def _check_out(on_device: DeviceArrays, array: Any, shape: Shape, dtype: str, what: str) -> None:
    on_device.check(array, what)
    if on_device.library.shape(array) != shape or on_device.library.dtype(array) != dtype:
        raise ArgumentError(
            f"{what} must have shape {shape} and dtype {dtype}, got {on_device.library.shape(array)} and"
            f" {on_device.library.dtype(array)}"
        )


def _copied(on_device: DeviceArrays, x: Any, dtype: str, out: Sequence[Any] | None) -> list[Any]:
    """No level at all: the samples themselves."""
    if on_device.uploaded:
        return [np.array(x, dtype=dtype)]
    if out is not None:
        _check_out(on_device, out[0], on_device.library.shape(x), dtype, "out")
        _check_apart([on_device.view(out[0])], [on_device.view(x)], "out")
    made = x if on_device.library.dtype(x) == dtype else on_device.library.convert(x, dtype)
    if out is not None:
        out[0][...] = made
        return list(out)
    return [on_device.library.copy(x) if made is x else made]


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
