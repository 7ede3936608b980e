"""Dask arrays: how their transforms are planned.

All transform functions and filters take Dask arrays, and return Dask arrays that are computed later::

    import dask.array as da
    import undula

    image = da.from_zarr("image.zarr")
    coeffs = undula.wavedec2(image, "bior4.4", level=5)

The setting ``undula.plan`` of Dask chooses how the levels of a transform are divided into stages: ``"fused"``
for one stage, ``"level"`` for a stage for each level, and ``"auto"``, the default, for the division that
:func:`explain` estimates to take the least time. Results are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

from .arrays import DASK, result_dtype
from .engines.chunked.plans import PLANS, StageCost, chosen_stages, total_cost
from .engines.chunked.transforms import as_chunked
from .errors import ArgumentTypeError
from .lowering.spec import BandTree, checked_level, transform_spec

__all__ = ["Explanation", "PlanSummary", "explain"]


@dataclass(frozen=True)
class PlanSummary:
    """A plan of a transform.

    Attributes
    ----------
    levels : tuple of int
        How many levels each stage has.
    tasks_per_chunk : float
        Tasks for each chunk of the array.
    cost : StageCost
        The cost of all stages.
    """

    levels: tuple[int, ...]
    tasks_per_chunk: float
    cost: StageCost


@dataclass(frozen=True)
class Explanation:
    """The plans of a transform by name; ``auto`` is what is used by default."""

    plans: dict[str, PlanSummary]

    def __str__(self) -> str:
        heads = ("plan", "levels", "tasks", "per chunk", "halo MB", "redundant", "peak MB")
        rows = [heads]
        for name, plan in self.plans.items():
            cost, levels = plan.cost, "+".join(map(str, plan.levels))
            numbers = f"{cost.halo_bytes / 1e6:.1f}", f"{cost.redundant:.1%}", f"{cost.peak_bytes / 1e6:.1f}"
            rows.append((name, levels, str(cost.tasks), f"{plan.tasks_per_chunk:.1f}", *numbers))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows
        )


def explain(
    x: Any, wavelet: Any, mode: Any = "symmetric", level: int | None = None, axes: Any = None
) -> Explanation:
    """Return what the plans of a multilevel transform of a Dask array cost.

    Parameters
    ----------
    x : dask.array.Array
    wavelet, mode, level, axes
        As for :func:`undula.wavedecn`.

    Returns
    -------
    Explanation
        Printed, it is a table: the levels of each stage, the number of tasks, the bytes that blocks get from
        their neighbours, the share of samples that is transformed more than once, and the bytes of the
        largest task.

    Examples
    --------
    >>> import dask.array as da
    >>> image = da.zeros((16384, 16384), dtype="float32", chunks=2048)
    >>> print(explain(image, "bior4.4", level=5))  # doctest: +SKIP
    """
    if not DASK.owns(x):
        raise ArgumentTypeError(f"explain takes a Dask array, got {type(x).__name__}")
    x = DASK.wrap(x)
    spec = transform_spec(x.ndim, wavelet, mode, axes)
    levels = max(1, checked_level(x.shape, spec.wavelets, spec.axes, level))
    tree, source = BandTree.of_samples(spec, x.shape, levels), as_chunked(x)
    plans = {}
    for name in PLANS:
        stages = chosen_stages(tree, source, result_dtype(x.dtype), name)
        cost = total_cost(stages)
        depths = tuple(stage.tree.levels for stage in stages)
        plans[name] = PlanSummary(depths, cost.tasks / prod(map(len, source.chunks)), cost)
    return Explanation(plans)
