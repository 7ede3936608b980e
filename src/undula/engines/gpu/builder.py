"""The builder of programs: levels of a transform as launches of kernels.

A level is a number of passes, each over one axis or over two neighbouring axes; the strategy turns a pass
into launches. Buffers are numbered, those of the caller first. A device only has to compile the kernels,
allocate the scratch buffers and run one launch after the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from ...arrays import ArrayView, contiguous
from ...errors import ArgumentError
from ...lowering.adjoints import differs_at_ends
from ...lowering.axis import AxisOp
from ...lowering.mixing import Mixing, Unmixing
from ...lowering.spec import Task
from ..base import UnfollowableStridesError
from .adjoints import BorderFrame, line_ends
from .emit import KernelSpec, moves
from .emit.kernel import INTEGERS
from .launches import DeviceProgram, Launch, UnfusedError
from .strategies import STEPWISE, UNDECIMATED, Strategy, Target, Views, Workload

__all__ = ["ProgramBuilder"]

MAX_CHANNELS = 4  # interleaved values at each place of a row

Shape = tuple[int, ...]
Bands = Sequence[ArrayView | None]


@dataclass
class ProgramBuilder:
    """Builds a program, level by level.

    Parameters
    ----------
    strategy : Strategy
    target : Target
    caller_buffers : int
        Number of buffers that the caller provides.
    """

    strategy: Strategy
    target: Target
    caller_buffers: int
    launches: list[Launch] = field(default_factory=list)
    scratch: list[tuple[int, str]] = field(default_factory=list)
    _colors: tuple[Mixing | None, Unmixing | None] = (None, None)
    _limits: tuple[str, ArrayView, int] | None = None
    _shifted_nodes: int = 0
    _scratch_used: int = 0
    _adjoints: Mapping[int, AxisOp] = field(default_factory=dict)

    def program(self) -> DeviceProgram:
        """Return the program that was built."""
        return DeviceProgram(tuple(self.launches), tuple(self.scratch))

    def allocate(self, shape: Shape, dtype: str, pad: int = 1) -> ArrayView:
        """Return a scratch array; its rows are padded to a multiple of ``pad`` elements."""
        padded = (*shape[:-1], -(-shape[-1] // pad) * pad)
        number, size = self._scratch_used, max(1, math.prod(padded))
        self._scratch_used += 1
        if number == len(self.scratch):
            self.scratch.append((size, dtype))
        before, kind = self.scratch[number]
        assert kind == dtype
        self.scratch[number] = max(before, size), dtype
        return ArrayView(self.caller_buffers + number, shape, contiguous(padded), dtype)

    def reuse_scratch(self) -> None:
        """Let launches from here on use the scratch arrays of those before, in the same order."""
        self._scratch_used = 0

    # --- levels -----------------------------------------------------------------------------------

    def level(
        self,
        back: bool,
        x: ArrayView,
        tasks: Sequence[Task],
        bands: Mapping[str, ArrayView | None],
        colors: tuple[Mixing | None, Unmixing | None] = (None, None),
        limits: tuple[str, ArrayView, int] | None = None,
        transposed: Sequence[Task] = (),
    ) -> None:
        """Append the launches of one level.

        Parameters
        ----------
        back : bool
            Whether samples are computed from bands.
        x : ArrayView
            The samples.
        tasks : sequence of Task
        bands : mapping of str to ArrayView or None
            The bands by key, whose letters are in the order of the tasks; None for zeros.
        colors : tuple
            Colour transforms of the samples.
        limits : tuple, optional
            The threshold rule for details, the array of its limits, and the stride of that array between
            planes.
        transposed : sequence of Task
            The adjoints of which the tasks are the plain operators.
        """
        self._colors, self._limits = colors, limits
        self._adjoints = {axis: op.inverse() if back else op for axis, op in transposed}
        order = _order_of_axes(tasks, _band_dtype(list(bands.values())))
        place = [order.index(k) for k in range(len(order))]
        keys = ["".join(letters[k] for k in place) for letters in product("ad", repeat=len(order))]
        self._axes(back, x, [tasks[k] for k in order], [bands[key] for key in keys])

    def shifted_level(self, x: ArrayView, tasks: Sequence[Task], bands: Bands) -> bool:
        """Append one launch for all shifts of a level, or return False if that is impossible.

        Parameters
        ----------
        x : ArrayView
            The samples, with axes for items and nodes, with samples in memory before the first of each line.
        tasks : sequence of Task
        bands : sequence of ArrayView
            In the order of their keys, with all shifts of the nodes along axis 1.
        """
        if len(tasks) != 2 or not self.in_one_pass(x.shape, tasks, x.dtype):
            return False
        ordered = sorted(tasks, key=lambda task: task.axis)
        strides = x.plane_strides(ordered[0].axis, ordered[1].axis)
        if strides is None or min(strides) < 0:
            return False  # Samples would be copied, without those before the first.
        self._colors, self._limits, self._shifted_nodes = (None, None), None, x.shape[1]
        self._two_axes(False, x, ordered, bands)
        self._shifted_nodes = 0
        return True

    def _axes(self, back: bool, x: ArrayView, tasks: Sequence[Task], bands: Bands) -> None:
        """Append passes over several axes, outermost first."""
        if len(tasks) == 1:
            self._one_axis(back, x, tasks[0], bands)
            return
        if len(tasks) == 2 and self._fits_one_pass(x, tasks):
            self._two_axes(back, x, tasks, bands)
            return
        if self._limits is not None:
            raise UnfusedError("details of more than two axes are read in several passes")
        if self._colors != (None, None):
            raise ArgumentError(
                "on a device, colour transforms are part of a lifting pass over both axes: use a wavelet with"
                " symmetric lifting steps, such as cdf53 or cdf97, in mode 'symmetric', or in mode 'periodic'"
                " with even sides; or use the CPU"
            )
        if self.target.scheme != "auto":
            raise ArgumentError(
                f"scheme {self.target.scheme!r} transforms two neighbouring axes with at most {MAX_CHANNELS}"
                f" numbers at each place; got axes {tuple(task.axis for task in tasks)} of shape {x.shape}"
            )
        axis, op = tasks[0]
        half = len(bands) // 2
        parts: list[ArrayView | None] = []
        for k, count in enumerate(op.counts):
            inner_bands = bands[k * half : (k + 1) * half]
            if back and all(band is None for band in inner_bands):
                parts.append(None)
                continue
            shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
            parts.append(self.allocate(shape, x.dtype if back else _band_dtype(bands)))
        if not back:
            self._one_axis(back, x, tasks[0], parts)
        for k, part in enumerate(parts):
            if part is not None and 0 not in part.shape:
                self._axes(back, part, tasks[1:], bands[k * half : (k + 1) * half])
        if back:
            self._one_axis(back, x, tasks[0], parts)

    def in_one_pass(self, shape: Shape, tasks: Sequence[Task], dtype: str) -> bool:
        """Return whether a level over the last two axes is one pass, so that rows may be padded."""
        ordered = [tasks[k] for k in _order_of_axes(tasks, dtype)]
        if [task.axis for task in ordered] != [len(shape) - 2, len(shape) - 1]:
            return False
        strategy = self._common_strategy(ordered)
        return strategy is not None and strategy.fits(ordered, dtype, self.target)

    def _common_strategy(self, tasks: Sequence[Task]) -> Strategy | None:
        """Return the strategy that runs all axes; None if they need different ones."""
        required = {_required_strategy(task.op) for task in tasks}
        return (required.pop() or self.strategy) if len(required) == 1 else None

    def _fits_one_pass(self, x: ArrayView, tasks: Sequence[Task]) -> bool:
        """Return whether one pass transforms two axes; an error if the caller's scheme does not fit."""
        down, along = tasks
        strategy = self._common_strategy(tasks)
        if (
            strategy is None
            or along.axis != down.axis + 1
            or math.prod(x.shape[along.axis + 1 :]) > MAX_CHANNELS
        ):
            return False
        if strategy is UNDECIMATED and (self._limits is not None or self._colors != (None, None)):
            return False  # Its kernels apply neither threshold rules nor colour transforms.
        if strategy.fits(tasks, x.dtype, self.target):
            return True
        error = strategy.misfit(tasks, x.dtype, self.target)
        if error is not None:
            raise error
        return False

    # --- passes -----------------------------------------------------------------------------------

    def _one_axis(self, back: bool, x: ArrayView, task: Task, bands: Bands) -> None:
        """Append a pass over one axis: across rows, or within rows of a few interleaved values."""
        axis, op = task
        strategy = _required_strategy(op) or self.strategy.one_axis
        if self._limits is not None and not strategy.applies_rules:
            raise UnfusedError(f"strategy {strategy.name!r} applies no rule to the details that it reads")
        spec = self._spec(back, x, bands)
        inner, outer = math.prod(x.shape[axis + 1 :]), math.prod(x.shape[:axis])
        if strategy.within_rows and inner <= MAX_CHANNELS:
            if self._limits is not None and self._limits[2]:
                raise UnfusedError(
                    "limits differ between planes, and the rows of a pass have the same limits"
                )
            spec = replace(spec, along=self._operator(strategy, task, spec), channels=inner)
            row = inner * max(x.shape[axis], *op.counts)
            views = self._views(back, x, bands, lambda view: (0, self._strides(view, axis, axis)[0]), row)
            workload = Workload(spec, views, (task,), outer, (0, 0), x.shape[axis], op.counts, 1)
        else:
            if strategy is not STEPWISE:
                spec = replace(spec, down=self._operator(strategy, task, spec))
            views = self._views(back, x, bands, lambda view: self._strides(view, axis, axis + 1), inner)
            workload = Workload(spec, views, (task,), x.shape[axis], op.counts, inner, (0, 0), outer)
        self.launches += strategy.launches(workload, self.target)
        self._ends(back, x, (task,), bands)

    def _two_axes(self, back: bool, x: ArrayView, tasks: Sequence[Task], bands: Bands) -> None:
        """Append a pass over two neighbouring axes."""
        strategy = self._common_strategy(tasks)
        assert strategy is not None
        self.launches += strategy.launches(self.plane_workload(back, x, tasks, bands), self.target)
        self._ends(back, x, tasks, bands)

    def plane_workload(self, back: bool, x: ArrayView, tasks: Sequence[Task], bands: Bands) -> Workload:
        """Return the pass over two neighbouring axes, of which one strategy runs both."""
        axis, strategy = tasks[0].axis, self._common_strategy(tasks)
        assert strategy is not None
        spec = self._spec(back, x, bands)
        down, along = (self._operator(strategy, task, spec) for task in tasks)
        mixing, unmixing = self._colors
        channels = math.prod(x.shape[axis + 2 :])
        spec = replace(spec, down=down, along=along, channels=channels, mixing=mixing, unmixing=unmixing)
        row_counts, column_counts = (task.op.counts for task in tasks)
        rows, columns = x.shape[axis : axis + 2]
        row = channels * max(columns, *column_counts)
        views = self._views(back, x, bands, lambda view: self._strides(view, axis, axis + 1), row)
        planes = math.prod(x.shape[:axis]) * (4 if self._shifted_nodes else 1)
        return Workload(spec, views, tuple(tasks), rows, row_counts, columns, column_counts, planes)

    def plane_operators(self, tasks: Sequence[Task]) -> tuple[AxisOp, ...] | None:
        """Return the operators for any length with which the strategy runs two axes; None if it does not."""
        if [task.axis for task in tasks] != sorted(task.axis for task in tasks):
            return None
        if self._common_strategy(tasks) is not self.strategy or not self.strategy.fits(
            tasks, "", self.target
        ):
            return None
        return tuple(self.strategy.operator(task.op, self.target.method).any_length for task in tasks)

    def _ends(self, back: bool, x: ArrayView, tasks: Sequence[Task], bands: Bands) -> None:
        """Append launches for the results at the ends of lines where adjoints differ from plain operators."""
        ops = [self._adjoints[task.axis] for task in tasks if task.axis in self._adjoints]
        if any(map(differs_at_ends, ops)):
            axis = tasks[0].axis
            row = math.prod(x.shape[axis + 1 :])
            if len(ops) == 2:
                row = row // x.shape[axis + 1] * max(x.shape[axis + 1], *ops[1].counts)
            views = self._views(back, x, bands, lambda view: self._strides(view, axis, axis + 1), row)
            arrays = [pair for name, pair in views.items() if name != "x"]
            inputs, outputs = (arrays, [views["x"]]) if back else ([views["x"]], arrays)
            planes, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + len(ops) :])
            dialect = self.target.dialect
            if len(ops) == 1:
                self.launches += line_ends(dialect, ops[0], planes, inner, inputs, outputs)
                return
            frame = BorderFrame(ops, inner, inputs[0][0].dtype, outputs[0][0].dtype)
            self.launches += frame.launches(dialect, self.allocate, planes, inputs, outputs)

    def _spec(self, back: bool, x: ArrayView, bands: Bands) -> KernelSpec:
        """Return a specification without axes."""
        source, result = x.dtype, _band_dtype(bands)
        if back:
            source, result = result, source
        rule = None if self._limits is None else self._limits[0]
        return KernelSpec(back, None, None, 1, source, result, rule=rule, shifted_nodes=self._shifted_nodes)

    def _operator(self, strategy: Strategy, task: Task, spec: KernelSpec) -> AxisOp:
        """Return the operator that a kernel runs along an axis of any length."""
        op = strategy.operator(task.op, self.target.method)
        return (op.inverse() if spec.back else op).any_length

    def _views(
        self,
        back: bool,
        x: ArrayView,
        bands: Bands,
        strides: Callable[[ArrayView], tuple[int, int]],
        row: int,
    ) -> Views:
        """Return the arrays of a pass by name, with the strides of planes and rows.

        ``row`` is the largest number of elements in a row of any array.
        """
        names = ("aa", "ad", "da", "dd") if len(bands) == 4 else ("a", "d")
        views: dict[str, tuple[ArrayView, tuple[int, int]]] = {}
        if self._limits is not None:
            views["limits"] = (self._limits[1], (self._limits[2], 0))
        for name, view in zip(("x", *names), (x, *bands), strict=True):
            if view is None:
                zeros = self.allocate((row,), x.dtype)
                self._fill(zeros)
                views[name] = (zeros, (0, 0))  # One row of zeros stands for all rows.
                continue
            try:
                views[name] = (view, strides(view))
            except UnfollowableStridesError:
                if (name == "x") == back:  # A result cannot be replaced by a copy.
                    raise
                packed = self.allocate(view.shape, view.dtype)
                self.copy(view, packed)
                views[name] = (packed, strides(packed))
        return views

    def _strides(self, view: ArrayView, outer: int, inner: int) -> tuple[int, int]:
        if math.prod(view.shape[inner:]) >= 2**31:
            raise ArgumentError(
                f"rows of shape {view.shape[inner:]} have more elements than kernels can count"
            )
        strides = view.plane_strides(outer, inner)
        if strides is None or min(strides) < 0:
            raise UnfollowableStridesError(
                view.buffer,
                f"strides {view.strides} of shape {view.shape}; pass an array with contiguous rows",
            )
        return strides

    # --- moving data ------------------------------------------------------------------------------

    def _fill(self, view: ArrayView) -> None:
        """Append a launch that sets an array to zero."""
        kernel, count = moves.fill(view.dtype, self.target.dialect), math.prod(view.shape)
        groups = -(-count // kernel.items)
        self.launches.append(Launch(kernel, groups, (view.buffer,), (count,)))

    def padded(self, view: ArrayView, shape: Shape) -> ArrayView:
        """Return a copy in the first corner of a larger array of zeros."""
        target = self.allocate(shape, view.dtype)
        self._fill(target)
        self.copy(view, target)
        return target

    def copy(self, source: ArrayView, target: ArrayView) -> None:
        """Append a launch that copies an array; of different shapes, the corner that both have."""
        shape = tuple(min(pair) for pair in zip(source.shape, target.shape, strict=True))
        kernel = moves.copy(source.dtype, len(shape), self.target.dialect)
        count = math.prod(shape)
        values = [count, source.offset, target.offset]
        for numbers in zip(shape, source.strides, target.strides, strict=True):
            values += numbers
        groups = -(-count // kernel.items)
        self.launches.append(Launch(kernel, groups, (source.buffer, target.buffer), tuple(values)))


def _required_strategy(op: AxisOp) -> Strategy | None:
    """Return the strategy that runs an operator whatever the caller asks for; None if there is a choice."""
    if op.family == "swt":
        return UNDECIMATED
    return STEPWISE if op.method == "steps" else None


def _order_of_axes(tasks: Sequence[Task], dtype: str) -> list[int]:
    """Return the order in which the tasks of a level run; that matters only where steps are rounded."""
    order = list(range(len(tasks)))
    return order if dtype in INTEGERS else sorted(order, key=lambda k: tasks[k].axis)


def _band_dtype(bands: Bands) -> str:
    return next(band.dtype for band in bands if band is not None)
