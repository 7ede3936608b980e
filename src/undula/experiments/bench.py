"""Bench: a device to measure on, and the method of measurement.

Every measurement starts with a warm-up. Images alternate between runs, so that no run can reuse cached
results. At the end, the sum of the coefficients is compared with that of an independent computation. A
figure is the median of as many runs as time allows.
"""

from __future__ import annotations

import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import undula

from ..engines.base import Knobs
from ..engines.gpu.engine import device_engine
from ..plan import Plan
from ..plan.resident import Resident

__all__ = ["Bench", "Times", "pictures", "plural"]

Array = NDArray[Any]
MIN_RUNS, MAX_RUNS = 5, 1000
MAX_PYWT_SAMPLES = 1 << 21  # Larger arrays are checked by the CPU engine instead of PyWavelets.
BATCH_SECONDS = 5e-4  # Shorter runs are timed in batches of at least this length.
T = TypeVar("T")


@dataclass(frozen=True)
class Times:
    """Median seconds of upload, computation and download, and the number of runs."""

    upload: float
    calc: float
    download: float
    runs: int

    @property
    def total(self) -> float:
        """Upload, computation and download."""
        return self.upload + self.calc + self.download


def plural(count: int, noun: str) -> str:
    """A count and a noun: ``3 runs``, ``1 run``."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def pictures(shape: Sequence[int], count: int = 3, dtype: str = "float32") -> list[Array]:
    """Return synthetic images of one shape, all different: chirps, edges and noise."""
    return _pictures(tuple(shape), count, dtype)


@lru_cache(maxsize=2)
def _pictures(shape: tuple[int, ...], count: int, dtype: str) -> list[Array]:
    *lead, height, width = shape
    y = np.linspace(0, 1, height, dtype=np.float32)[:, None]
    x = np.linspace(0, 1, width, dtype=np.float32)
    grain = np.random.default_rng(0).standard_normal((509, 1021), np.float32)
    down, along = -(-height // 509), -(-width // 1021)
    rough = np.tile(10 * grain, (down, along))[:height, :width]
    images = []
    for number in range(count):
        grey = 120 + 60 * np.sin(40 * x * x + number) * np.cos(25 * y) + 40 * (x + y > 0.8 + 0.1 * number)
        image = np.empty(shape, np.float32)
        for plane, place in enumerate(np.ndindex(*lead)):
            np.add(grey, np.roll(rough, 17 * number + 5 * plane, axis=1), out=image[place])
        images.append(image.astype(dtype, copy=False))
    return images


def _details(x: Array, plan: Plan, axes: tuple[int, ...]) -> tuple[float, str]:
    """The sum of magnitudes of the horizontal details of one level, and its source."""
    wavelet, mode = plan.spec.wavelets[0], plan.spec.modes[0]
    wide = x.astype(np.float64)
    if x.size <= MAX_PYWT_SAMPLES:
        try:
            import pywt
        except ImportError:
            pass
        else:
            bank = pywt.Wavelet("bank", filter_bank=[list(f) for f in wavelet.filter_bank])
            return float(np.abs(pywt.dwt2(wide, bank, mode, axes)[1][0]).sum()), "PyWavelets"
    level = Plan(x.shape, wavelet, level=1, mode=mode, axes=axes)
    return float(np.abs(level.forward(wide)[1][0]).sum()), "the CPU in float64"


class Bench:
    """A device to measure on, with the results so far.

    Parameters
    ----------
    device : str
        Name of the device, as for ``backend``.
    title : str
        Name of the device in reports.
    quick : bool, optional
        True for small sizes and few runs. The default is False.
    cpu : Bench, optional
        The CPU of the same machine, for comparison. The default is this bench itself.
    """

    def __init__(self, device: str, title: str, quick: bool = False, cpu: Bench | None = None) -> None:
        self.device, self.title, self.quick = device, title, quick
        self.cpu = cpu or self
        self.budget_s = 0.06 if quick else 0.2  # Approximate time for one figure.
        self.model: list[dict[str, Any]] = []
        self.checks: list[str] = []
        self._measured: dict[Any, Any] = {}
        self.kind = device.partition(":")[0]
        self.slow = self.kind == "opencl" and not self._limits().gpu  # GPU kernels that run on a CPU.

    def _limits(self) -> Any:
        return device_engine(self.device).device.limits

    @property
    def on_cpu(self) -> bool:
        """True for the CPU engine."""
        return self.kind == "cpu"

    def once(self, key: Any, measure: Callable[[], T]) -> T:
        """Measure once for all tables that share a result, including its predictions and checks."""
        if key not in self._measured:
            begin, checked = len(self.model), len(self.checks)
            self._measured[key] = (measure(), self.model[begin:], self.checks[checked:])
        else:
            _, model, checks = self._measured[key]
            self.model += [prediction for prediction in model if prediction not in self.model]
            self.checks += [check for check in checks if check not in self.checks]
        result: T = self._measured[key][0]
        return result

    def subset(self, *values: Any, quick: int = 3, slow: int | None = None) -> tuple[Any, ...]:
        """The first few values in a quick run, fewer still if GPU kernels run on a CPU, else all."""
        if self.slow:
            return values[: quick - 1 if slow is None else slow]
        return values[:quick] if self.quick else values

    # --- plans ------------------------------------------------------------------------------------

    def plan(self, shape: Sequence[int], wavelet: str, level: int | None, **options: Any) -> Plan:
        """Create a plan for this device; ``tile`` is the side of the tiles of strategy ``tiled``, in quads."""
        tile = options.pop("tile", None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Many levels are part of the experiment.
            plan = Plan(tuple(shape), wavelet, level=level, backend=self.device, **options)
        if tile is not None:
            plan = plan.with_knobs(Knobs(tile=(tile, tile)))
        return plan

    @staticmethod
    def resident(
        plan: Plan, image: Array, inverse: bool = False, rule: str | None = None, threshold: float = 0.0
    ) -> Resident:
        """Allocate the arrays of a plan on its device, upload an image and run the plan once."""
        resident = plan.resident(rule, threshold)
        resident.upload(image)
        resident.forward()
        if inverse:
            resident.inverse()
        resident.finish()
        return resident

    def times(self, label: str, plan: Plan, inverse: bool = False, transfers: bool = True) -> Times:
        """Measure transfers and computation with alternating images, and check the results."""
        images = pictures(plan.shape, dtype=str(plan.dtype) if plan.dtype != np.float16 else "float16")
        resident = self.resident(plan, images[0], inverse)
        transfers = transfers and not self.on_cpu
        calc, up, down = [], [], []
        begin, number = time.perf_counter(), 0
        while number < MIN_RUNS or (time.perf_counter() - begin < self.budget_s and number < MAX_RUNS):
            number += 1
            image = images[number % len(images)]
            start = time.perf_counter()
            if transfers or self.on_cpu:
                resident.upload(image)
                resident.finish()
            uploaded = time.perf_counter()
            calc.append(self.run_seconds(resident, inverse))
            if transfers:
                computed = time.perf_counter()
                _ = resident.download_samples() if inverse else resident.download()
                down.append(time.perf_counter() - computed)
                up.append(uploaded - start)
            if number >= MIN_RUNS and time.perf_counter() - begin > 20 * self.budget_s:
                break
        seconds = statistics.median(calc)
        self._check_sums(label, resident, plan, images)
        times = Times(statistics.median(up or [0.0]), seconds, statistics.median(down or [0.0]), number)
        label += ", back" if inverse else ""
        self.compare_with_model(label, plan, seconds)
        if transfers:
            self.compare_with_model(f"{label}, with transfers", plan, times.total, transfers=True)
        return times

    def run_seconds(self, resident: Resident, inverse: bool = False) -> float:
        """Seconds of one run, forward or inverse."""
        return self.batch_seconds(resident.inverse if inverse else resident.forward, resident.finish)

    @staticmethod
    def batch_seconds(work: Callable[[], Any], finish: Callable[[], Any]) -> float:
        """Seconds of one call, timed in batches that are long enough for the clock."""
        count = 1
        while True:
            start = time.perf_counter()
            for _ in range(count):
                work()
            finish()
            seconds = time.perf_counter() - start
            if seconds > BATCH_SECONDS or count >= 64:
                return seconds / count
            count = min(64, count * max(2, math.ceil(BATCH_SECONDS / max(seconds, 1e-6))))

    def _check_sums(self, label: str, resident: Resident, plan: Plan, images: list[Array]) -> None:
        """Compare a sum of coefficients with an independent computation, and the reconstruction with the image."""
        image = images[-1]
        resident.upload(image)
        resident.forward()
        resident.inverse()
        resident.finish()
        # The horizontal details of the finest level depend on every step.
        band, axes, samples = resident.download()[-2], plan.axes, image
        if plan.padded_shape != plan.shape:
            samples = np.zeros(plan.padded_shape, image.dtype)
            samples[tuple(slice(n) for n in image.shape)] = image
        if axes == (1, 2):
            band, samples, axes = band[0], samples[0], (0, 1)
        total = float(np.abs(band, dtype=np.float64).sum())
        key = ("details", samples.shape, str(samples.dtype), repr(plan.spec), axes, plan.shape)
        expected, source = self.cpu.once(key, lambda: _details(samples, plan, axes))
        tolerance = 2e-2 if plan.dtype == np.float16 else 1e-4
        deviation = abs(total - expected) / expected
        error = float(np.abs(resident.download_samples().astype(np.float64) - image).max())
        if deviation > tolerance or error > 10 * tolerance * float(np.abs(image).max()):
            raise AssertionError(
                f"{label} on {self.title}: sums {total} and {expected}, reconstruction error {error}"
            )
        self.checks.append(
            f"{label}: sum as by {source} to {deviation:.0e}, reconstruction error {error:.1e}"
        )

    def compare_with_model(self, label: str, plan: Plan, seconds: float, transfers: bool = False) -> None:
        """Record the prediction for a plan beside its measured time."""
        prediction = plan.predict(transfers=transfers)
        self.model.append(
            {
                "what": label,
                "measured": seconds,
                "predicted": prediction.seconds,
                "limit": prediction.limit,
                "off": prediction.off(seconds) or "",
                "terms": dict(prediction.terms),
            }
        )

    def seconds(self, work: Callable[[], Any], finish: Callable[[], Any] = lambda: None) -> float:
        """Median seconds of a function, after a warm-up."""
        work()
        finish()
        runs: list[float] = []
        begin = time.perf_counter()
        while len(runs) < MIN_RUNS or (time.perf_counter() - begin < self.budget_s and len(runs) < MAX_RUNS):
            start = time.perf_counter()
            work()
            finish()
            runs.append(time.perf_counter() - start)
            if len(runs) >= 2 and time.perf_counter() - begin > 20 * self.budget_s:
                break
        return statistics.median(runs)

    @contextmanager
    def threads(self, count: int) -> Iterator[None]:
        """Set the number of threads of the CPU engine within a ``with`` block."""
        before = undula.get_num_threads()
        undula.set_num_threads(count)
        try:
            yield
        finally:
            undula.set_num_threads(before)
