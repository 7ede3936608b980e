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

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from .arrays import DASK, result_dtype
from .engines.chunked.plans import PLANS, PlanStage, StageCost, chosen_stages, total_cost, undecimated_stages
from .engines.chunked.transforms import as_chunked
from .errors import ArgumentTypeError, UnknownNameError
from .lowering.spec import BandTree, check_extension, checked_level, transform_spec, undecimated_spec
from .plan.arguments import TRANSFORMS

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

    Examples
    --------
    >>> import dask.array as da
    >>> explain(da.zeros((512, 512), chunks=256), "haar", level=2, transform="swt").plans["auto"].levels
    (1, 1)
    """

    levels: tuple[int, ...]
    tasks_per_chunk: float
    cost: StageCost


@dataclass(frozen=True)
class Explanation:
    """What the plans of a transform cost.

    Attributes
    ----------
    plans : dict of PlanSummary
        Plans by name; ``auto`` is what is used by default.

    Examples
    --------
    >>> import dask.array as da
    >>> explanation = explain(da.zeros((512, 512), chunks=256), "haar", level=2)
    >>> "auto" in explanation.plans
    True
    """

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
    x: Any,
    wavelet: Any,
    mode: Any = None,
    level: int | None = None,
    axes: Any = None,
    *,
    transform: str = "dwt",
) -> Explanation:
    """Return what the plans of a multilevel transform of a Dask array cost.

    Parameters
    ----------
    x : dask.array.Array
        The array.
    wavelet : Wavelet or str, or a sequence of them
        The wavelet, or one for each axis.
    mode : str, optional
        How lines go on beyond their ends. The default is ``"symmetric"`` for the DWT, and
        ``"periodization"`` for the SWT.
    level : int, optional
        How often the approximation is decomposed. The default is as often as is useful.
    axes : int or sequence of int, optional
        Axes to transform. The default is all axes.
    transform : {"dwt", "swt"}, default "dwt"
        The transform of :func:`undula.wavedecn`, or the stationary one of :func:`undula.swtn`, whose only
        plan has a stage for each level.

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
    >>> print(explain(image, "haar", level=2, transform="swt"))
    plan  levels  tasks  per chunk  halo MB  redundant  peak MB
    auto     1+1    768       12.0      3.1       0.1%    100.9
    """
    if not DASK.owns(x):
        raise ArgumentTypeError(f"explain takes a Dask array, got {type(x).__name__}")
    if transform not in TRANSFORMS:
        raise UnknownNameError("transform", transform, TRANSFORMS)
    x = DASK.wrap(x)
    stationary = transform == "swt"
    if mode is None:
        mode = "periodization" if stationary else "symmetric"
    spec = (undecimated_spec if stationary else transform_spec)(x.ndim, wavelet, mode, axes)
    levels = max(1, checked_level(x.shape, spec.wavelets, spec.axes, level))
    if stationary:
        check_extension(spec, levels)
    tree, source, dtype = BandTree.of_samples(spec, x.shape, levels), as_chunked(x), result_dtype(x.dtype)
    if stationary:
        plans = {"auto": undecimated_stages(tree, source, dtype)}
    else:
        plans = {name: chosen_stages(tree, source, dtype, name) for name in PLANS}
    chunks = prod(map(len, source.chunks))
    return Explanation({name: _summary(stages, chunks) for name, stages in plans.items()})


def _summary(stages: Sequence[PlanStage], chunks: int) -> PlanSummary:
    cost = total_cost(stages)
    return PlanSummary(tuple(stage.tree.levels for stage in stages), cost.tasks / chunks, cost)
