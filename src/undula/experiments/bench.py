"""A device to measure on, and the rules by which it is done.

Everything is warmed up first. Images are switched between runs, so that no run finds the results of the one
before. What was calculated is summed and compared with the sum of an independent calculation at the end. A
figure is the median of its runs, of which there are as many as time allows.
"""

from __future__ import annotations

import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import undula

from ..backends.devices.launches import Knobs
from ..transforms.plan import Plan
from ..transforms.resident import Resident

__all__ = ["Bench", "Times", "pictures", "plural"]

Array = NDArray[Any]
FEWEST, MOST = 5, 1000  # runs
LARGE = 1 << 21  # Samples that PyWavelets is asked to sum, and no more.
BATCH = 5e-4  # Seconds that runs are gathered for where one is too short for the clock.


@dataclass(frozen=True)
class Times:
    """Medians in seconds: to the device, calculated, back from it, and all of it; and how many runs."""

    upload: float
    calc: float
    download: float
    runs: int

    @property
    def total(self) -> float:
        """All three."""
        return self.upload + self.calc + self.download


def plural(count: int, what: str) -> str:
    """``3 runs``, ``1 run``."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def pictures(shape: Sequence[int], count: int = 3, dtype: str = "float32") -> list[Array]:
    """Different images of one shape: waves of many lengths, edges, and noise."""
    return _pictures(tuple(shape), count, dtype)


@lru_cache(maxsize=2)
def _pictures(shape: tuple[int, ...], count: int, dtype: str) -> list[Array]:
    *lead, height, width = shape
    y = np.linspace(0, 1, height, dtype=np.float32)[:, None]
    x = np.linspace(0, 1, width, dtype=np.float32)
    grain = np.random.default_rng(0).standard_normal((509, 1021), np.float32)
    down, along = -(-height // 509), -(-width // 1021)
    rough = np.tile(10 * grain, (down, along))[:height, :width]
    made = []
    for number in range(count):
        grey = 120 + 60 * np.sin(40 * x * x + number) * np.cos(25 * y) + 40 * (x + y > 0.8 + 0.1 * number)
        image = np.empty(shape, np.float32)
        for plane, place in enumerate(np.ndindex(*lead)):
            np.add(grey, np.roll(rough, 17 * number + 5 * plane, axis=1), out=image[place])
        made.append(image.astype(dtype, copy=False))
    return made


def _details(x: Array, plan: Plan, axes: tuple[int, ...]) -> tuple[float, str]:
    """The sum over the horizontal details of one level, and who says so."""
    wavelet, mode = plan._recipe.wavelets[0], plan._recipe.modes[0]
    wide = x.astype(np.float64)
    if x.size <= LARGE:
        try:
            import pywt
        except ImportError:
            pass
        else:
            theirs = pywt.Wavelet("theirs", filter_bank=[list(f) for f in wavelet.filter_bank])
            return float(np.abs(pywt.dwt2(wide, theirs, mode, axes)[1][0]).sum()), "PyWavelets"
    one = Plan(x.shape, wavelet, level=1, mode=mode, axes=axes)
    return float(np.abs(one.forward(wide)[1][0]).sum()), "the CPU in float64"


class Bench:
    """A device, how much time there is, and what was measured on it already.

    Parameters
    ----------
    device : str
        As ``backend`` takes it.
    title : str
        What it is.
    quick : bool
        Small sizes and few runs.
    cpu : Bench, optional
        The processor of the same machine, to compare with; itself if not given.
    """

    def __init__(self, device: str, title: str, quick: bool = False, cpu: Bench | None = None) -> None:
        self.device, self.title, self.quick = device, title, quick
        self.cpu = cpu or self
        self.spend = 0.06 if quick else 0.2  # seconds for one figure, roughly
        self.model: list[dict[str, Any]] = []
        self.checks: list[str] = []
        self._known: dict[Any, Any] = {}
        self.kind = device.partition(":")[0]
        self.slow = self.kind == "opencl" and not self._limits().gpu  # kernels for GPUs, run by a CPU

    def _limits(self) -> Any:
        from ..transforms import ondevice

        return ondevice.host(self.device).device(None).limits

    @property
    def on_cpu(self) -> bool:
        """Whether it is the processor, with the engine made for it."""
        return self.kind == "cpu"

    def once(self, key: Any, measured: Callable[[], Any]) -> Any:
        """What several tables show is measured once, with what the model said of it."""
        if key not in self._known:
            begin, checked = len(self.model), len(self.checks)
            self._known[key] = (measured(), self.model[begin:], self.checks[checked:])
        else:
            _, model, checks = self._known[key]
            self.model += [one for one in model if one not in self.model]
            self.checks += [one for one in checks if one not in self.checks]
        return self._known[key][0]

    def some(self, *values: Any, quick: int = 3, slow: int | None = None) -> tuple[Any, ...]:
        """The first few of these where there is little time, and fewer still where kernels run on a CPU."""
        if self.slow:
            return values[: quick - 1 if slow is None else slow]
        return values[:quick] if self.quick else values

    # --- plans ------------------------------------------------------------------------------------

    def plan(self, shape: Sequence[int], wavelet: str, level: int | None, **options: Any) -> Plan:
        """A plan for this device; ``tile`` is how many quads a tile of strategy ``tiled`` has on a side."""
        tile = options.pop("tile", None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # (so many levels are the experiment's)
            plan = Plan(tuple(shape), wavelet, level=level, backend=self.device, **options)
        if tile is not None:
            plan._options = replace(plan._options, knobs=Knobs(tile=(tile, tile)))
            plan._programs(False)  # (an error, if it does not fit)
        return plan

    def times(self, what: str, plan: Plan, back: bool = False, moves: bool = True) -> Times:
        """Moving and calculating of different images, in turns; sums are checked."""
        images = pictures(plan.shape, dtype=str(plan.dtype) if plan.dtype != np.float16 else "float16")
        there = Resident(plan)
        there.upload(images[0])
        there.forward()
        if back:
            there.inverse()
        there.finish()
        move = moves and not self.on_cpu
        calc, up, down = [], [], []
        begin, number = time.perf_counter(), 0
        while number < FEWEST or (time.perf_counter() - begin < self.spend and number < MOST):
            number += 1
            image = images[number % len(images)]
            start = time.perf_counter()
            if move or self.on_cpu:
                there.upload(image)
                there.finish()
            middle = time.perf_counter()
            calc.append(self.calculated(there, back))
            if move:
                late = time.perf_counter()
                _ = there.download_samples() if back else there.download()
                down.append(time.perf_counter() - late)
                up.append(middle - start)
            if number >= FEWEST and time.perf_counter() - begin > 20 * self.spend:
                break
        seconds = statistics.median(calc)
        self._check_sums(what, there, plan, images, back)
        found = Times(statistics.median(up or [0.0]), seconds, statistics.median(down or [0.0]), number)
        self._predicted(what + (", back" if back else ""), plan, seconds)
        if move:
            self._predicted(
                f"{what}{', back' if back else ''}, with transfers", plan, found.total, transfers=True
            )
        return found

    def calculated(self, there: Resident, back: bool = False) -> float:
        """Seconds of one run."""
        return self.together(there.inverse if back else there.forward, there.finish)

    @staticmethod
    def together(work: Callable[[], Any], finish: Callable[[], Any]) -> float:
        """Seconds of a piece of work; those that are shorter than the clock is good for are done some at a time."""
        many = 1
        while True:
            start = time.perf_counter()
            for _ in range(many):
                work()
            finish()
            took = time.perf_counter() - start
            if took > BATCH or many >= 64:
                return took / many
            many = min(64, many * max(2, math.ceil(BATCH / max(took, 1e-6))))

    def _check_sums(self, what: str, there: Resident, plan: Plan, images: list[Array], back: bool) -> None:
        """The sum over all coefficients, of each image, beside what the reference of another kind says."""
        image = images[-1]
        there.upload(image)
        there.forward()
        there.inverse()
        there.finish()
        # The horizontal details of the finest level: a band that every step has a part in.
        band, axes, samples = there.download()[-2], plan.axes, image
        if plan._inner != plan.shape:  # (with zeros around)
            samples = np.zeros(plan._inner, image.dtype)
            samples[tuple(slice(n) for n in image.shape)] = image
        if axes == (1, 2):
            band, samples, axes = band[0], samples[0], (0, 1)
        own = float(np.abs(band, dtype=np.float64).sum())
        key = ("details", samples.shape, str(samples.dtype), repr(plan._recipe), axes, plan.shape)
        total, whose = self.cpu.once(key, lambda: _details(samples, plan, axes))
        loose = 2e-2 if plan.dtype == np.float16 else 1e-4
        restored = float(np.abs(there.download_samples().astype(np.float64) - image).max())
        scale = float(np.abs(image).max())
        if abs(own - total) > loose * total or restored > loose * 10 * scale:
            raise AssertionError(
                f"{what} on {self.title}: sums {own} and {total}, back with an error of {restored}"
            )
        off = abs(own - total) / total
        self.checks.append(f"{what}: sum as by {whose} to {off:.0e}, largest error back {restored:.1e}")

    def _predicted(self, what: str, plan: Plan, seconds: float, transfers: bool = False) -> None:
        told = plan.predict(transfers=transfers)
        self.model.append(
            {
                "what": what,
                "measured": seconds,
                "predicted": told.seconds,
                "limit": told.limit,
                "off": told.off(seconds) or "",
                "terms": dict(told.terms),
            }
        )

    def seconds(self, work: Callable[[], Any], finish: Callable[[], Any] = lambda: None) -> float:
        """The median of some runs of anything."""
        work()
        finish()
        found: list[float] = []
        begin = time.perf_counter()
        while len(found) < FEWEST or (time.perf_counter() - begin < self.spend and len(found) < MOST):
            start = time.perf_counter()
            work()
            finish()
            found.append(time.perf_counter() - start)
            if len(found) >= 2 and time.perf_counter() - begin > 20 * self.spend:
                break
        return statistics.median(found)

    @contextmanager
    def threads(self, count: int) -> Iterator[None]:
        """So many threads for the processor."""
        before = undula.get_num_threads()
        undula.set_num_threads(count)
        try:
            yield
        finally:
            undula.set_num_threads(before)
