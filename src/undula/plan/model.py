"""The performance model: what a plan needs, over what a device can do at most.

    max(call, start + max(memory, arithmetic + exchange + barriers))   on a GPU, which hides one in the other
    call + start + memory + arithmetic + exchange + barriers           on a CPU, where they take turns

A level is one pass over its samples, or one for each axis. Memory is a copy of as many bytes, which the
device was seen to do in so long; arithmetic are multiply-adds; exchange are numbers that go through the
memory that a group of threads shares; at a barrier a group waits for itself. A call is what the host does
before, and a start what each kernel takes, however little it has to do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..engines import ceilings as measured
from ..engines.base import computes_on_host
from ..engines.ceilings import Ceilings
from ..engines.gpu.engine import device_engine
from ..engines.gpu.strategies import STRATEGIES, UNDECIMATED, Strategy
from ..engines.threads import WORTHWHILE
from ..errors import ArgumentError, ArgumentTypeError

if TYPE_CHECKING:
    from .plan import Plan

__all__ = ["Ceilings", "PlanCost", "Prediction", "ceilings", "cost", "predict"]

TERMS = ("call", "start", "memory", "arithmetic", "exchange", "barriers", "transfer")
MAX_FACTOR = 6.0  # A term that would have to be off by more does not explain a measured time.


class PlanCost(NamedTuple):
    """What one run of a plan costs.

    Attributes
    ----------
    bytes : int
        Bytes read from and written to memory.
    operations : int
        Multiply-adds.
    barriers : int
        How often all threads wait for each other.

    Examples
    --------
    >>> import undula
    >>> cost = undula.Plan((64, 64), "cdf97", level=1, dtype="float32").cost
    >>> cost.barriers, cost.bytes > 8 * 64 * 64
    (1, True)
    """

    bytes: int
    operations: int
    barriers: int


class LevelWork(NamedTuple):
    """The work of a level: its samples, its passes over memory, and what it needs for each sample."""

    samples: int
    bytes: int
    times: int
    operations: float
    accesses: float
    waits: float


@dataclass(frozen=True)
class Prediction:
    """How long a run of a plan should take, and why.

    Attributes
    ----------
    device : str
        Name of the device.
    bytes : int
        Bytes read from and written to memory.
    operations : int
        Multiply-adds.
    barriers : int
        How often threads wait: all of them between two passes, and the groups of a device within one.
    launches : int
        Kernels that are started, or passes on a CPU.
    terms : dict
        Seconds for each of call, start, memory, arithmetic, exchange, barriers and transfer.
    adds : bool
        Whether the terms take place one after the other, and not at the same time.
    seconds : float
        The predicted time.

    Examples
    --------
    >>> terms = dict.fromkeys(TERMS, 0.0) | {"start": 1e-6, "memory": 4e-6, "arithmetic": 2e-6}
    >>> one = Prediction("a toy", 100, 50, 0, 1, terms, False)
    >>> f"{one.seconds:.0e} s, limited by {one.limit}"
    '5e-06 s, limited by memory'
    >>> one.off(9e-6)
    'memory took 2.0 times what the model has'
    """

    device: str
    bytes: int
    operations: int
    barriers: int
    launches: int
    terms: Mapping[str, float]
    adds: bool

    @property
    def seconds(self) -> float:
        """All terms together."""
        return _together(self.terms, self.adds)

    @property
    def limit(self) -> str:
        """The term that is the longest."""
        return max(self.terms, key=lambda name: self.terms[name])

    def off(self, seconds: float, tolerance: float = 0.3) -> str | None:
        """Return which term explains a measured time that is off by more than a tolerance; None if it is not.

        The term is the one whose smallest change would make the model right. No term explains the time if
        each would have to be many times as long or as short.

        Parameters
        ----------
        seconds : float
            The measured time.
        tolerance : float, default 0.3
            The largest relative difference that needs no explanation.

        Returns
        -------
        str or None
            Name of a term, or None.
        """
        if not (isinstance(seconds, (int, float)) and 0 < seconds < math.inf):
            raise ArgumentError(f"a measured time is a number of seconds above zero, got {seconds!r}")
        ratio = seconds / self.seconds
        if 1 / (1 + tolerance) <= ratio <= 1 + tolerance:
            return None
        explanations: list[tuple[float, str, float]] = []
        for name, term in self.terms.items():
            factor = self._factor(name, seconds) if term > 0 else None
            if factor is not None:
                explanations.append((abs(math.log(factor)), name, factor))
        if not explanations:
            return f"measured is {ratio:.2f} times the model, which no single term explains"
        _, name, factor = min(explanations)
        return f"{name} took {factor:.1f} times what the model has"

    def _factor(self, name: str, seconds: float) -> float | None:
        """Return the factor of a term with which the sum would be right; None if there is none."""

        def total(factor: float) -> float:
            return _together({**self.terms, name: self.terms[name] * factor}, self.adds)

        low, high = 1 / MAX_FACTOR, MAX_FACTOR
        if not total(low) <= seconds <= total(high):
            return None
        for _ in range(60):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if total(middle) < seconds else (low, middle)
        return high

    def __str__(self) -> str:
        lines = [f"{self.device}: {1e3 * self.seconds:.4g} ms, limited by {self.limit}"]
        lines += [
            f"  {name:11}{1e3 * seconds:10.4f} ms" for name, seconds in self.terms.items() if seconds > 0
        ]
        counts = (
            f"{self.bytes:,} bytes, {self.operations:,} multiply-adds, {self.launches} launch(es),"
            f" {self.barriers:,} barrier(s)"
        )
        return "\n".join([*lines, f"  {counts}"])


def _together(terms: Mapping[str, float], adds: bool) -> float:
    work = [terms[name] for name in ("arithmetic", "exchange", "barriers")]
    if adds:
        return terms["call"] + terms["start"] + terms["memory"] + sum(work) + terms["transfer"]
    return max(terms["call"], terms["start"] + max(terms["memory"], sum(work))) + terms["transfer"]


# --- what a plan needs ----------------------------------------------------------------------------


def strategy(plan: Plan) -> Strategy:
    """Return the strategy of a plan; that of a plan with several, and of the CPU, is the default."""
    if plan.spec.family == "swt":
        return UNDECIMATED
    chosen = STRATEGIES.get(plan.strategy, STRATEGIES["auto"])
    return (chosen.with_scheme or chosen) if plan.scheme != "auto" else chosen


def passes(plan: Plan) -> Iterator[LevelWork]:
    """Yield what each level needs, finest first."""
    wavelet = plan.spec.wavelets[0]
    parts = 2 if plan.dtype.kind == "c" else 1  # A complex number is two real ones.
    distribution = strategy(plan)
    for number, (shape, operators) in enumerate(plan.operators()):
        samples = math.prod(shape)
        written = sum(math.prod(s) for s in plan.spec.at_level(number).band_shapes(shape).values())
        operations = sum(op.operations for _, op in operators)
        level = distribution.cost(len(operators), operations, wavelet, plan.scheme)
        size = _source_size(plan) if number == 0 else plan.dtype.itemsize
        moved = round(level.rereads * samples) * size + written * plan.dtype.itemsize
        moved += (level.passes - 1) * (samples + written) * plan.dtype.itemsize
        yield LevelWork(
            samples, moved, level.passes, parts * level.operations, parts * level.accesses, level.barriers
        )


def _source_size(plan: Plan) -> int:
    """Return the size in bytes of a sample as it is first read."""
    return np.dtype(plan.source_dtype).itemsize


def cost(plan: Plan) -> PlanCost:
    """Return what one run forward costs."""
    levels = list(passes(plan))
    return PlanCost(
        sum(level.bytes for level in levels),
        round(sum(level.samples * level.operations for level in levels)),
        sum(level.times for level in levels),
    )


# --- what a device has ----------------------------------------------------------------------------


def ceilings(device: str = "cpu", again: bool = False) -> Ceilings:
    """Return what a device can do at most: measured the first time, and remembered.

    Parameters
    ----------
    device : str, default "cpu"
        Name of a device, as ``backend`` takes it: ``"cpu"``, ``"cuda"``, ``"opencl:1"``.
        :func:`undula.devices` lists them.
    again : bool, default False
        Whether to measure again. Do so on a machine that has nothing else to do.

    Returns
    -------
    Ceilings
        The measured limits of the device.

    Raises
    ------
    MissingDeviceError
        If there is no such device, or a package or driver for it is missing.

    Examples
    --------
    >>> found = ceilings("cpu")
    >>> found.operations > 1e8, found.copy(1 << 20) > 0
    (True, True)
    """
    if computes_on_host(device):
        return measured.of_cpu(again, _call)
    return measured.of_device(device_engine(device).device, again)


def _call() -> tuple[float, float]:
    """Measure the seconds that a call of a plan takes on the host, and those of each further level.

    Arrays change from call to call: with the same ones again it would be less.
    """
    from .plan import Plan

    turns, seconds = cycle([np.zeros((16, 16), np.float32) for _ in range(2)]), []
    for level in (1, 4):
        plan = Plan((16, 16), "haar", level=level, dtype="float32")
        run = partial(_next, plan, turns, plan.forward(next(turns)))
        seconds.append(measured.seconds_of(run, usual=True))
    return seconds[0], max(0.0, (seconds[1] - seconds[0]) / 3)


def _next(plan: Plan, turns: Iterator[Any], coeffs: list[Any]) -> None:
    plan.forward(next(turns), out=coeffs)


def predict(plan: Plan, device: str | Ceilings | None = None, *, transfers: bool = False) -> Prediction:
    """Predict how long one run of a plan takes; see :meth:`undula.Plan.predict`."""
    if plan.backend == "reference":
        raise ArgumentError(
            "backend 'reference' is there to be right, and has no model; 'cpu' and devices have"
        )
    if device is None:
        device = plan.device_name
    if isinstance(device, str):
        device = ceilings("cpu" if device == "auto" else device)
    if not isinstance(device, Ceilings):
        raise ArgumentTypeError(
            f"a plan is predicted for a device by its name, or for undula.Ceilings; got {device!r}"
        )
    levels = list(passes(plan))
    launches = _launches(plan, levels)
    on_cpu = not device.accesses
    memory = arithmetic = exchange = barriers = 0.0
    waits = 0
    for level in levels:
        each = level.bytes / level.times / 2
        memory += level.times * device.copy(each)
        rate = device.single if on_cpu and level.samples < WORTHWHILE else device.operations
        wide = plan.dtype in (np.float64, np.complex128)
        work = level.samples * level.operations * (2 if wide and on_cpu else 1)
        arithmetic += work / rate
        if not on_cpu:
            exchange += level.samples * level.accesses / device.accesses
            barriers += level.samples * level.waits / device.barriers
            waits += math.ceil(level.samples * level.waits)
    call, start = device.call, launches * device.launch
    if on_cpu:
        call += device.level * max(0, plan.level - 1)
        many = sum(level.times for level in levels if level.samples >= WORTHWHILE)
        start = device.launch * many if device.threads > 1 else 0.0
    size = math.prod(plan.shape) * _source_size(plan)
    back = sum(level.bytes for level in levels[:1]) - size if levels else 0
    transfer = size / device.upload + back / device.download if transfers and device.upload else 0.0
    terms = dict(zip(TERMS, (call, start, memory, arithmetic, exchange, barriers, transfer), strict=True))
    operations = round(sum(level.samples * level.operations for level in levels))
    return Prediction(
        device.device,
        sum(level.bytes for level in levels),
        operations,
        waits + launches,
        launches,
        terms,
        device.adds,
    )


def _launches(plan: Plan, levels: list[LevelWork]) -> int:
    if plan.on_device and plan.level:
        program: Any = plan.executable(False).program
        return len(program.launches)
    return sum(level.times for level in levels)
