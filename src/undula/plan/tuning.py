"""Tuning: a few layouts of the work of a plan on its device are measured, and the fastest is remembered."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..engines.base import Knobs
from ..engines.ceilings import seconds_of
from ..engines.gpu import disk
from ..engines.gpu.engine import device_engine
from ..engines.gpu.strategies import STRATEGIES
from ..errors import ArgumentError

if TYPE_CHECKING:
    from .plan import Plan

__all__ = ["fastest_knobs", "knob_candidates", "run_seconds"]


def knob_candidates(plan: Plan) -> list[Knobs | None]:
    """Return the knobs to measure; None stands for the defaults, which come first."""
    return [None, *STRATEGIES[plan.options.strategy].candidates]


def fastest_knobs(plan: Plan) -> Knobs | None:
    """Return the knobs with which a plan is fastest, measured now or at an earlier time."""
    key = f"{device_engine(plan.device_name).device.key} {plan!r} {plan.options}"
    known, candidates = disk.load_text(key), knob_candidates(plan)
    for knobs in candidates:
        if repr(knobs) == known:
            return knobs
    least, fastest = math.inf, None
    for knobs in candidates:
        try:
            seconds = run_seconds(plan.with_knobs(knobs))
        except ArgumentError:  # This candidate does not fit.
            continue
        if seconds < least:
            least, fastest = seconds, knobs
    disk.save_text(key, repr(fastest))
    return fastest


def run_seconds(plan: Plan) -> float:
    """Return the time of one run of a plan with all arrays on its device, at best."""
    resident = plan.resident()
    resident.upload(np.zeros(plan.shape, plan.source_dtype))
    return seconds_of(resident.forward, resident.finish)
