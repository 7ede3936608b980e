"""The function that runs the operator within a row, whose values are distributed over lanes."""

from __future__ import annotations

from dataclasses import dataclass

from .....lowering.axis import AxisOp
from .....lowering.polyphase import Step
from ..kernel import step_expr
from ..text import Text, literal
from .geometry import Lanes

__all__ = ["Exchange", "emit_along"]


@dataclass
class Exchange:
    """Shared memory through which lanes exchange values, in dialects without shuffles.

    Parameters
    ----------
    slots : int
        Values of each lane in shared memory.
    rounds : int
        How often values are exchanged within a row.
    """

    slots: int = 0
    rounds: int = 0

    def emit(self, text: Text, lanes: Lanes) -> None:
        """Append the declaration of the memory."""
        if lanes.along and not lanes.dialect.shuffle:
            cells = lanes.row_count * max(1, self.slots) * lanes.geometry.lanes
            text(f"{lanes.dialect.shared_memory}number exchange[{cells}];")


def emit_along(text: Text, lanes: Lanes, op: AxisOp) -> Exchange:
    """Append a function that runs the operator within a row in place; return the exchange that it needs."""
    dialect, exchange = lanes.dialect, Exchange()
    extra = "" if dialect.shuffle else f", {dialect.shared_memory}number *exchange"
    with text.block(f"{dialect.function} void run_along(number *v, int lane{extra})"):
        if op.filters:
            _emit_filters(text, lanes, op, exchange)
        else:
            for step in op.steps:
                _emit_step(text, lanes, step, exchange)
    return exchange


def _emit_gather(
    text: Text, lanes: Lanes, exchange: Exchange, component: int, name: str, lowest: int, highest: int
) -> None:
    """Append the array ``name``: a component of pairs ``lowest`` to ``highest`` around those of the lane."""
    channels, half, count = lanes.spec.channels, lanes.half, lanes.geometry.lanes
    shuffle = lanes.dialect.shuffle
    text(f"number {name}[{(half + highest - lowest) * channels}];")
    outside = []
    for n in range(lowest, half + highest):
        for c in range(channels):
            target = f"{name}[{(n - lowest) * channels + c}]"
            value = f"v[{(2 * (n % half) + component) * channels + c}]"
            if 0 <= n < half:
                text(f"{target} = {value};")
            else:
                outside.append((target, value, n // half))
    if shuffle:
        for target, value, distance in outside:
            lane = f"lane {'+' if distance > 0 else '-'} {abs(distance)}"
            text(f"{target} = {shuffle.format(value=value, lane=lane)};")
        return
    if not outside:
        return
    values = dict.fromkeys(value for _, value, _ in outside)
    slots = {value: exchange.slots + k for k, value in enumerate(values)}
    for value, slot in slots.items():
        text(f"exchange[{slot * count} + lane] = {value};")
    text(lanes.dialect.barrier)
    for target, value, distance in outside:
        lane = f"lane + {distance} < {count} ? lane + {distance} : {count - 1}"
        if distance < 0:
            lane = f"lane >= {-distance} ? lane - {-distance} : 0"
        text(f"{target} = exchange[{slots[value] * count} + ({lane})];")
    exchange.slots += len(slots)
    exchange.rounds += 1


def _emit_step(text: Text, lanes: Lanes, step: Step, exchange: Exchange) -> None:
    channels = lanes.spec.channels
    offsets = [tap.offset for tap in step.taps]
    lowest, highest = min(0, *offsets), max(0, *offsets)
    with text.block():
        _emit_gather(text, lanes, exchange, 1 - step.target, "other", lowest, highest)
        with text.unrolled("n", lanes.half), text.unrolled("c", channels):
            target = f"v[(2 * n + {step.target}) * {channels} + c]"
            values = [f"other[(n + {offset - lowest}) * {channels} + c]" for offset in offsets]
            text(f"{target} = {step_expr(lanes.spec, lanes.dialect, target, step, values)};")


def _emit_filters(text: Text, lanes: Lanes, op: AxisOp, exchange: Exchange) -> None:
    channels = lanes.spec.channels
    gathered = {}
    for component, name in ((0, "first"), (1, "second")):
        offsets = [0, *(t.offset for taps in op.filters for t in taps if t.component == component)]
        gathered[component] = (name, min(offsets))
        _emit_gather(text, lanes, exchange, component, name, min(offsets), max(offsets))
    with text.unrolled("n", lanes.half), text.unrolled("c", channels):
        for result, taps in enumerate(op.filters):
            terms = []
            for tap in taps:
                name, lowest = gathered[tap.component]
                value = f"{name}[(n + {tap.offset - lowest}) * {channels} + c]"
                terms.append(f"{literal(tap.factor, lanes.spec.number)} * {value}")
            text(f"v[(2 * n + {result}) * {channels} + c] = {' + '.join(terms) or '0'};")
