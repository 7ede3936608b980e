"""The engine of devices: the levels of a transform as one program of kernels.

A :class:`DeviceEngine` copies arrays of NumPy to its device and results back. A :class:`LibraryEngine` takes
arrays that are on the device already, from any library, and works on the stream or queue of that library.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from ...arrays import COMPLEX, ArrayLibrary, ArrayView, dtype_name, library_of
from ...errors import ArgumentError, ArgumentTypeError, DeviceError
from ...lowering.graph import Graph
from ...lowering.spec import BandTree, LevelOperators, Task
from ..base import DEFAULT_OPTIONS, Engine, RunCache, TransformOptions, UnfollowableStridesError, engine
from .arrays import (
    READABLE,
    READABLE_INTEGERS,
    RESULTS,
    DeviceArray,
    common_device,
    device_of,
    timed_transfer,
)
from .emit import probes
from .graphs import DeviceGraph, ScratchPool
from .launches import DeviceProgram, Launch
from .strategies import STRATEGIES
from .strategies.base import LIFTING
from .transform import device_levels, transform_program

__all__ = [
    "DeviceEngine",
    "DeviceExecutable",
    "LibraryEngine",
    "device_engine",
    "library_engine",
    "prepared_program",
]

Shape = tuple[int, ...]
Views = Sequence[ArrayView | None]


class DeviceExecutable:
    """A program on a device, with its scratch memory for each queue.

    Parameters
    ----------
    engine : DeviceEngine
    prepared : CudaProgram or OpenCLProgram
        Launches with compiled kernels.
    """

    def __init__(self, engine: DeviceEngine, prepared: Any) -> None:
        self.engine, self.prepared = engine, prepared
        self._scratch: dict[Any, list[ArrayView]] = {}

    @property
    def program(self) -> Any:
        """The launches of kernels."""
        return self.prepared.program

    def scratch(self, queue: Any, like: Any = None) -> list[Any]:
        """Return the buffers of scratch memory, which belongs to the executable."""
        views = self._scratch.get(queue)
        if views is None:
            sizes = self.prepared.program.scratch
            views = self._scratch[queue] = [self.engine.allocate((n,), kind, like) for n, kind in sizes]
        return [view.buffer for view in views]

    def run(self, arrays: Views, queue: Any = None, events: Sequence[Any] = (), like: Any = None) -> Any:
        """Run on views of arrays in flat order, and return the last event, if queues have events.

        Parameters
        ----------
        arrays : sequence of ArrayView or None
            The samples, the bands, and the limits of a rule if there is one.
        queue : optional
            Stream or queue to run on; that of the device if not given.
        events : sequence, optional
            Events to wait for.
        like : array, optional
            Scratch memory is allocated beside this array.
        """
        queue = self.engine.device.queue if queue is None else queue
        buffers = [None if view is None else view.buffer for view in arrays]
        return self.prepared.run([*buffers, *self.scratch(queue, like)], queue, events)


class DeviceEngine(Engine):
    """Kernels on one device, for arrays of NumPy, which are copied there and back.

    Parameters
    ----------
    name : str
        The key in :data:`~undula.engines.base.ENGINES`.
    device : CudaDevice or OpenCLDevice
    """

    lifting = LIFTING

    def __init__(self, name: str, device: Any) -> None:
        self.name, self.device = name, device
        self.scratch_pool = ScratchPool()

    def operators(
        self, tree: BandTree, dtype: np.dtype[Any], options: TransformOptions = DEFAULT_OPTIONS
    ) -> list[LevelOperators]:
        """Return the operators of each level, finest first, as the strategy runs them."""
        strategy, levels = STRATEGIES[options.strategy], device_levels(tree, dtype_name(dtype))
        return [
            LevelOperators(
                shape, tuple(Task(axis, strategy.operator(op, options.method)) for axis, op in level.tasks)
            )
            for shape, level in zip(tree.sample_shapes, levels, strict=True)
        ]

    def compile(
        self,
        back: bool,
        tree: BandTree,
        dtype: np.dtype[Any],
        views: Views,
        options: TransformOptions = DEFAULT_OPTIONS,
    ) -> DeviceExecutable:
        """Compile a transform for views of arrays, in which complex numbers are pairs along one more axis.

        The samples may be smaller than those of the tree, and then are padded with zeros. The limits of a
        rule may follow the bands. A program is kept for the next time, whatever the buffers of the views are.
        """
        arrays = views[: 1 + len(tree.flat_shapes)]
        layouts = tuple([None if view is None else view[1:6] for view in arrays])
        prepared = prepared_program(self.device, back, tree, dtype_name(dtype), layouts, options)
        return DeviceExecutable(self, prepared)

    def run(
        self,
        back: bool,
        tree: BandTree,
        arrays: Sequence[Any],
        dtype: np.dtype[Any],
        options: TransformOptions = DEFAULT_OPTIONS,
        fresh: bool = True,
        cache: RunCache | None = None,
    ) -> None:
        """Copy samples or coefficients to the device, transform them, and copy results back."""
        views: list[ArrayView | None] = []
        results: list[tuple[ArrayView, Any]] = []
        for number, array in enumerate(arrays):
            if array is None:
                views.append(None)
            elif (number == 0) == back:
                view = self.allocate(array.shape, str(array.dtype))
                results.append((view, array))
                views.append(view)
            else:
                views.append(self.upload(array))
        executable = self.compile(back, tree, dtype, views, options)
        if cache is not None:
            executable = cache.executables.setdefault((self, executable.prepared), executable)
        executable.run(views)
        for view, array in results:
            self.download(view, array)

    def compile_graph(self, graph: Graph, options: TransformOptions = DEFAULT_OPTIONS) -> DeviceGraph:
        """Compile the program of a pipeline; ``options`` are for its transforms."""
        return DeviceGraph(self, graph, options)

    # --- memory of the device ---------------------------------------------------------------------

    def allocate(self, shape: Shape, dtype: str, like: Any = None) -> ArrayView:
        """Return a view of new memory of the device; complex numbers are pairs."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        memory = self.device.allocate(size, self.device.queue)
        return ArrayView.contiguous(getattr(memory, "address", memory), shape, dtype, owner=memory).as_pairs()

    def upload(self, x: Any, target: ArrayView | None = None) -> ArrayView:
        """Copy an array of NumPy to the device, into new memory if there is no target."""
        array = np.ascontiguousarray(x)
        target = self.allocate(array.shape, str(array.dtype)) if target is None else target
        with timed_transfer(self.device):
            self.device.upload(array, target.owner, self.device.queue)
        return target

    def download(self, source: ArrayView, out: Any) -> Any:
        """Copy memory of the device to an array of NumPy, and return it."""
        array = out if out.flags.c_contiguous else np.empty(out.shape, out.dtype)
        with timed_transfer(self.device):
            self.device.download(source.owner, array, self.device.queue)
        if array is not out:
            out[...] = array
        return out

    def bound(
        self,
        back: bool,
        tree: BandTree,
        arrays: Views,
        dtype: np.dtype[Any],
        options: TransformOptions = DEFAULT_OPTIONS,
    ) -> Callable[[], Any]:
        """Return a function that transforms arrays in the memory of the device, to be called many times."""
        return partial(self.compile(back, tree, dtype, arrays, options).run, arrays)

    def check_device(self) -> None:
        """Raise an error unless the device copies an array by a kernel."""
        queue = self.device.queue
        x, y = np.arange(4 * probes.ITEMS, dtype=np.float32), np.zeros(4 * probes.ITEMS, np.float32)
        source, target = (self.device.allocate(x.nbytes, queue) for _ in range(2))
        self.device.upload(x, source, queue)
        self.device.upload(y, target, queue)
        launch = Launch(probes.stream(self.device.dialect), 1, (0, 1), (probes.ITEMS,))
        program = self.device.prepare(DeviceProgram((launch,), ()))
        program.run([getattr(memory, "address", memory) for memory in (source, target)], queue)
        self.device.download(target, y, queue)
        if not np.array_equal(x, y):
            raise DeviceError(
                f"{self.device.name} computes wrong results: a kernel that copies an array changed it"
            )

    def finish(self) -> None:
        """Wait until the device has done everything that was started."""
        self.device.finish(self.device.queue)

    # --- arrays -----------------------------------------------------------------------------------

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype of results: float16 stays, integers of 8 and 16 bits become float32."""
        wide = "complex128" if dtype.kind == "c" else "float64"
        return np.dtype(RESULTS.get(dtype_name(dtype), wide))

    def coefficient_dtype(self, lifted: bool, dtypes: set[np.dtype[Any]]) -> np.dtype[Any]:
        """Return the dtype in which coefficients are transformed back; an error for mixed ones of an LWT."""
        if lifted and any(dtype.kind in "iu" for dtype in dtypes):
            return super().coefficient_dtype(lifted, dtypes)
        return np.result_type(*[self.result_dtype(dtype) for dtype in dtypes])

    def samples(self, x: Any, what: str = "data") -> Any:
        """Return the array, in the byte order of the machine and of a dtype that kernels read."""
        if str(x.dtype) in RESULTS:
            return x
        native = x.dtype.newbyteorder("=")
        return x.astype(native if native.name in RESULTS else self.result_dtype(native))

    def integers(self, x: Any, dtype: np.dtype[Any], what: str = "data") -> Any:
        """Return the array, or raise an error unless kernels can lift its integers."""
        return self._readable_integers(x.astype(x.dtype.newbyteorder("="), copy=False), what)

    def _readable_integers(self, x: Any, what: str) -> Any:
        name = self.library.dtype(x)
        if name in READABLE_INTEGERS:
            return x
        raise ArgumentTypeError(
            f"{what} has dtype {name}; kernels support {', '.join(READABLE_INTEGERS)}: convert the array, or"
            " move it to the host, which supports 64-bit integers"
        )

    def coefficients(self, x: Any, dtype: np.dtype[Any]) -> Any:
        """Return coefficients in the dtype in which they are transformed."""
        what = "coefficients"
        x = self.integers(x, dtype, what) if dtype.kind in "iu" else self.samples(x, what)
        return x if self.library.dtype(x) == dtype_name(dtype) else self.library.convert(x, dtype_name(dtype))


class LibraryEngine(DeviceEngine):
    """Kernels on arrays of one library that are on the device already.

    Parameters
    ----------
    library : ArrayLibrary
    device : CudaDevice or OpenCLDevice
    """

    def __init__(self, library: ArrayLibrary, device: Any) -> None:
        super().__init__(device.dialect.name, device)
        self.library = library

    def run(
        self,
        back: bool,
        tree: BandTree,
        arrays: Sequence[Any],
        dtype: np.dtype[Any],
        options: TransformOptions = DEFAULT_OPTIONS,
        fresh: bool = True,
        cache: RunCache | None = None,
    ) -> None:
        """Transform arrays where they are, on the stream or queue of their library."""
        library = self.library
        views = [None if array is None else library.view(array) for array in arrays]
        if dtype.kind == "c":
            views = [None if view is None else view.as_pairs() for view in views]
        executable = self.compile(back, tree, dtype, views, options)
        if cache is not None:
            executable = cache.executables.setdefault((self, executable.prepared), executable)
        if not fresh:
            _check_apart(views[:1] if back else views[1:], views[1:] if back else views[:1])
        present = [array for array in arrays if array is not None]
        like = present[1] if back else present[0]
        queue = library.queue(like)
        event = executable.run(views, queue, library.events(present), like)
        if event is not None:
            library.add_event(arrays[:1] if back else arrays[1:], event)
        if cache is not None and not fresh and len(present) == len(arrays):
            cache.repeat = BoundRun(executable, back, arrays, views, queue, like)

    def allocate(self, shape: Shape, dtype: str, like: Any = None) -> ArrayView:
        """Return a view of a new array of the library; complex numbers are pairs."""
        return self.library.view(self.empty(shape, np.dtype(dtype), like)).as_pairs()

    def empty(self, shape: Shape, dtype: np.dtype[Any], like: Any) -> Any:
        """Allocate a result, by the library of the caller if it can."""
        if self.library.allocates:
            return self.library.empty(shape, dtype_name(dtype), like)
        queue = self.library.queue(like)
        memory = self.device.allocate(math.prod(shape) * dtype.itemsize, queue)
        return DeviceArray(memory, shape, dtype_name(dtype), queue, self.device.number)

    def empty_bands(self, tree: BandTree, dtype: np.dtype[Any], like: Any) -> list[Any]:
        """Allocate all coefficients beside samples, in flat order."""
        return [self.empty(shape, dtype, like) for shape in tree.flat_shapes]

    def check_out(
        self, out: Any, shape: Shape, dtype: np.dtype[Any], inputs: Sequence[Any], what: str
    ) -> Any:
        """Return an array for a result, or raise an error; overlaps are found when it is run."""
        library = library_of(out)
        if library is not self.library:
            raise ArgumentTypeError(
                f"{what} must be an array of {self.library.name}, like the others; got {type(out).__name__}"
            )
        library.check_writable(out, what)
        if device_of(library.device(out)) is not self.device:
            raise ArgumentError(f"{what} is on another device than the other arrays")
        if library.shape(out) != shape or library.dtype(out) != dtype_name(dtype):
            raise ArgumentError(
                f"{what} must have shape {shape} and dtype {dtype}, got {library.shape(out)} and"
                f" {library.dtype(out)}"
            )
        return out

    def copy(self, x: Any, shape: Shape, dtype: np.dtype[Any], out: Any = None) -> Any:
        """Return a copy of samples, in ``out`` if that is given; they are neither cut nor padded."""
        converted = (
            x if self.library.dtype(x) == dtype_name(dtype) else self.library.convert(x, dtype_name(dtype))
        )
        if out is None:
            return self.library.copy(x) if converted is x else converted
        _check_apart([self.library.view(out)], [self.library.view(x)])
        out[...] = converted
        return out

    def samples(self, x: Any, what: str = "data") -> Any:
        """Return the array, converted if kernels cannot read its dtype."""
        x = self.library.materialize(x)
        name = self.library.dtype(x)
        if name in RESULTS:
            return x
        if name in ("bool", "int8", "uint32", "int32", "uint64", "int64"):
            return self.library.convert(x, "float64")
        raise ArgumentTypeError(
            f"{what} has dtype {name}, which kernels cannot read; convert it to one of"
            f" {', '.join((*READABLE, *COMPLEX))}"
        )

    def integers(self, x: Any, dtype: np.dtype[Any], what: str = "data") -> Any:
        """Return the array, or raise an error unless kernels can lift its integers."""
        return self._readable_integers(self.library.materialize(x), what)

    def restore(self, results: Any, like: Any) -> Any:
        """Return results, however nested, as arrays of the library."""
        return self.library.restore(results, like)


class BoundRun:
    """A run on arrays of a library, to be repeated as long as only their numbers change.

    The arrays themselves are not kept alive.
    """

    def __init__(
        self,
        executable: DeviceExecutable,
        back: bool,
        arrays: Sequence[Any],
        views: Views,
        queue: Any,
        like: Any,
    ) -> None:
        self._prepared, self._library = executable.prepared, executable.engine.library
        self._scratch, self._queue = executable.scratch(queue, like), queue
        self._results = slice(1) if back else slice(1, None)
        self._references = [weakref.ref(array) for array in arrays]
        self._layouts = self._library.layout_keys(arrays)
        self._keys = [0 if view is None else _buffer_key(view.buffer) for view in views]

    def __call__(self, *arrays: Any) -> bool:
        """Run again on the same arrays; return False, and do nothing, if something else has changed."""
        if len(arrays) != len(self._references):
            return False
        for reference, array in zip(self._references, arrays, strict=True):
            if array is None or reference() is not array:
                return False
        library = self._library
        if library.layout_keys(arrays) != self._layouts:
            return False
        buffers = [library.buffer(array) for array in arrays]
        # Addresses are their own keys.
        if buffers != self._keys and [_buffer_key(buffer) for buffer in buffers] != self._keys:
            return False
        if library.queue(arrays[0]) != self._queue:
            return False
        event = self._prepared.run([*buffers, *self._scratch], self._queue, library.events(arrays))
        if event is not None:
            library.add_event(arrays[self._results], event)
        return True


def _buffer_key(buffer: Any) -> int:
    """Return a number that tells a buffer from others, without keeping it alive."""
    return int(getattr(buffer, "int_ptr", buffer or 0))


def _check_apart(targets: Views, sources: Views) -> None:
    """Raise an error if results share memory with what is read, or with each other."""
    present = [view for view in (*sources, *targets) if view is not None]
    if _lie_apart(present):
        return
    before = [view for view in sources if view is not None]
    for target in targets:
        if target is None:
            continue
        if any(target.overlaps(view) for view in before):
            raise ArgumentError("out must not share memory with the input or with another result")
        before.append(target)


def _lie_apart(views: Sequence[ArrayView]) -> bool:
    """Return whether arrays are in separate ranges of addresses, which most are."""
    if not all(isinstance(view.buffer, int) for view in views):
        return False
    ranges = sorted((view.buffer + view.extent[0], view.buffer + view.extent[1]) for view in views)
    return all(end <= first for (_, end), (first, _) in pairwise(ranges))


def library_engine(arrays: Sequence[Any]) -> LibraryEngine | None:
    """Return the engine of arrays that are on a device; None if they are on the host."""
    common = common_device(arrays)
    return None if common is None else _library_engine(*common)


@lru_cache(maxsize=64)
def _library_engine(library: ArrayLibrary, device: Any) -> LibraryEngine:
    return LibraryEngine(library, device)


def device_engine(backend: str) -> DeviceEngine:
    """Return the engine of a device, such as ``cuda:1``; an error for engines on the host."""
    device_engine = engine(backend)
    if not isinstance(device_engine, DeviceEngine):
        raise ArgumentError(f"backend {backend!r} is no device; expected 'cuda' or 'opencl'")
    return device_engine


@lru_cache(maxsize=256)
def prepared_program(
    device: Any,
    back: bool,
    tree: BandTree,
    dtype: str,
    layouts: tuple[Any, ...],
    options: TransformOptions,
) -> Any:
    """Return the program of a transform, ready to run on a device.

    Layouts are views of the arrays, in flat order, without their buffers and owners.
    """
    samples, *coefficients = (
        None if layout is None else ArrayView(number, *layout) for number, layout in enumerate(layouts)
    )
    assert samples is not None
    levels = device_levels(tree, dtype)
    try:
        program = transform_program(
            back, levels, samples, coefficients, device.dialect, device.limits, options
        )
    except UnfollowableStridesError as error:
        raise ArgumentError(f"out has strides that kernels do not follow: {error}") from None
    return device.prepare(program)
