"""Programs of pipelines: from the description of a pipeline to the graph of operations on one kind of image.

Symbolic arrays record what the stages do with planes, one for each image and channel, and engines compile
what was recorded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..engines.base import Engine, TransformOptions
from ..errors import ArgumentError
from ..lowering.checkpoints import checkpoint_buffers, computing, reading
from ..lowering.graph import Graph
from ..lowering.symbolic import symbolic_input, symbolic_output, xp
from ..wavelets import as_wavelet
from . import shifts
from .base import Details, FilteredImage, Pyramid
from .camera import camera_share, mosaic_contrast
from .holes import fill_holes, valid_coefficients
from .noise import band_norms, estimated_noise
from .operations import OPERATIONS, rounding_floor
from .planes import ImageLayout
from .speckle import MULTIPLICATIVE, Logarithm
from .spectrum import NoiseSpectrum
from .stages import Shrink
from .trace import keep_coefficients, keep_limits
from .transforms import PipelineTransform

if TYPE_CHECKING:
    from .pipeline import Pipeline

__all__ = [
    "ImageRecipe",
    "WindowProgram",
    "WindowTarget",
    "compiled_pipeline",
    "filtered_pyramid",
    "has_pyramid",
    "image_graph",
    "pipeline_graph",
    "window_program",
]

Shape = tuple[int, ...]


class ImageRecipe(NamedTuple):
    """What the program of a pipeline depends on, besides the pipeline.

    Parameters
    ----------
    layout : ImageLayout
    sigma : bool
        Whether the noise of each item is given.
    mask, counted : bool
        Whether there is a mask of valid samples, and one of samples that count in statistics.
    positive : bool
        Whether all valid samples are known to be above zero.
    keep : bool
        Whether coefficients and thresholds are outputs, too.
    image_shape : tuple of int, default ()
        For a window of an image, the spatial shape of the image.
    """

    layout: ImageLayout
    sigma: bool = False
    mask: bool = False
    counted: bool = False
    positive: bool = False
    keep: bool = False
    image_shape: Shape = ()


def pipeline_graph(pipeline: Pipeline, recipe: ImageRecipe) -> Graph:
    """Return the operations of a pipeline on an image."""
    return image_graph(pipeline, recipe, filtered_pyramid)


def image_graph(pipeline: Pipeline, recipe: ImageRecipe, pyramid: Callable[..., Any]) -> Graph:
    """Return the operations on an image; ``pyramid`` adds those of :func:`filtered_pyramid`."""
    graph, layout = Graph(), recipe.layout
    if isinstance(pipeline.spectrum, NoiseSpectrum) and len(pipeline.spectrum.shape) != layout.ndim:
        raise ArgumentError(
            f"the spectrum of the noise must have {layout.ndim} axes, as the image has; got"
            f" {pipeline.spectrum.shape}"
        )
    if recipe.image_shape:
        graph.extents = _extents(pipeline, layout.planes_shape[1:], recipe.image_shape)
    image = symbolic_input(graph, "image", layout.shape, layout.dtype)
    sigma = mask = valid = None
    if recipe.sigma:
        sigma = symbolic_input(graph, "sigma", layout.planes_shape[:1], layout.working_dtype)
    if recipe.mask:
        mask = symbolic_input(graph, "mask", layout.shape, "bool")
        valid = layout.mask_planes(xp, mask)
    planes = layout.to_planes(xp, image, mask)
    if valid is not None:
        planes = fill_holes(planes, valid, layout.ndim)
    if recipe.counted:
        counted = layout.mask_planes(xp, symbolic_input(graph, "counted", layout.shape, "bool"))
        valid = counted if valid is None else valid & counted
    if pipeline.speckle in MULTIPLICATIVE:
        logarithm = Logarithm(pipeline.speckle, pipeline.looks, layout.ndim)
        logs = logarithm.forward(planes, valid, recipe.positive)
        filtered = _filtered_planes(pipeline, logs, recipe, sigma, logarithm.valid, pyramid)
        planes = logarithm.inverse(filtered)
    else:
        planes = _filtered_planes(pipeline, planes, recipe, sigma, valid, pyramid)
    symbolic_output(graph, "result", layout.to_image(xp, planes, image, mask))
    return graph


def _extents(pipeline: Pipeline, shape: Shape, image_shape: Shape) -> dict[Shape, int]:
    """Return the number of samples of an image at each level, by the shape of a window of it."""
    of_image = pipeline.level_shapes(image_shape)
    of_window = pipeline.level_shapes(shape, len(of_image) - 1)
    return dict(zip(of_window, map(math.prod, of_image), strict=True))


def _filtered_planes(
    pipeline: Pipeline, x: Any, recipe: ImageRecipe, sigma: Any, valid: Any, pyramid: Callable[..., Any]
) -> Any:
    """Run all stages on planes."""
    layout, given = recipe.layout, x
    for stage in pipeline.stages:
        if "image" in stage.places():
            x = stage.on_samples(x, OPERATIONS, layout.ndim)
    result = pyramid(pipeline, x, given, recipe, sigma, valid)

    def noise() -> Any:
        return sigma if sigma is not None else estimated_noise(x, valid, layout.ndim)

    channels = 3 if layout.mixed else 1

    def share() -> Any:
        return 0.0 if sigma is not None else camera_share(x, valid, layout.ndim, channels)

    strengths = _strengths(pipeline, x, channels)
    image = FilteredImage(x, noise, layout.ndim, channels, pipeline.spectrum, strengths, share)
    for stage in pipeline.stages:
        if "result" in stage.places():
            result = stage.on_result(result, image)
    return result


def has_pyramid(pipeline: Pipeline, recipe: ImageRecipe, shape: Shape) -> bool:
    """Return whether images of this shape are decomposed."""
    stages = [stage for stage in pipeline.stages if not {"image", "result"} & {*stage.places()}]
    return pipeline.levels_for(shape) > 0 and bool(stages or recipe.keep)


def filtered_pyramid(
    pipeline: Pipeline,
    x: Any,
    given: Any,
    recipe: ImageRecipe,
    sigma: Any,
    valid: Any,
    one_shift: bool = False,
) -> Any:
    """Decompose planes, run the stages on coefficients, and reconstruct.

    The planes are ``x``, or one of the shifts of the first level; ``given`` are the planes before the stages
    on images.
    """
    ndim, wavelet = recipe.layout.ndim, as_wavelet(pipeline.wavelet)
    transform = PipelineTransform(wavelet, pipeline.mode)
    shape = recipe.image_shape or x.shape[1:]
    levels = pipeline.levels_for(shape)
    if not has_pyramid(pipeline, recipe, shape):
        return x
    low, details, shapes = _decomposed(pipeline, x, ndim, levels, transform, one_shift)
    if recipe.keep:
        keep_coefficients(x.graph, "before", low, details)
    channels = 3 if recipe.layout.mixed else 1
    pyramid = Pyramid(
        operations=OPERATIONS,
        norms=band_norms(wavelet, levels, ndim, pipeline.spectrum),
        samples=math.prod(shape),
        ndim=ndim,
        offset=max(0, (wavelet.dec_len - 3) // 2),
        sigma=sigma,
        valid=valid_coefficients(valid, details, ndim, wavelet, pipeline.invariant),
        floor=rounding_floor(low, levels, ndim),
        channels=channels,
        strength=_strengths(pipeline, x, channels),
        # The contrast is that of a part of the image, at whose ends stages on images would mirror it.
        mosaic_contrast=partial(mosaic_contrast, given, transform),
    )
    for k, stage in enumerate(pipeline.stages):
        if "last" in stage.places():
            low = stage.on_samples(low, OPERATIONS, ndim)
        if "details" in stage.places():
            if recipe.keep and isinstance(stage, Shrink):
                keep_limits(x, k, stage.limits(details, pyramid))
            details = stage.on_details(details, pyramid)
    if recipe.keep:
        keep_coefficients(x.graph, "after", low, details)
    if pipeline.invariant:
        return shifts.inverse(low, details, shapes, transform, ndim, pipeline.shifted_levels, one_shift)
    return transform.recompose(low, details, x.shape, range(1, 1 + ndim))


def _strengths(pipeline: Pipeline, x: Any, channels: int) -> Any:
    """Return the factor of the strengths of stages, or that of each item if they differ."""
    if channels == 1 or pipeline.luma == pipeline.chroma:
        return pipeline.luma
    images = x.shape[0] // channels
    item = x[:images, *[0] * (len(x.shape) - 1)]
    factors = [pipeline.luma] + [pipeline.chroma] * (channels - 1)
    return xp.concat([xp.full_like(item, factor) for factor in factors])


def _decomposed(
    pipeline: Pipeline, x: Any, ndim: int, levels: int, transform: PipelineTransform, one_shift: bool
) -> tuple[Any, Details, list[tuple[int, ...]]]:
    """Return the approximation, details finest level first, and for all shifts the decomposed shapes."""
    between = [stage for stage in pipeline.stages if "approximation" in stage.places()]

    def on_approximation(low: Any, level: int) -> Any:
        for stage in between:
            if getattr(stage, "levels", None) is None or level in stage.levels:
                low = stage.on_samples(low, OPERATIONS, ndim)
        return low

    if pipeline.invariant:
        return shifts.forward(
            x, transform, levels, ndim, on_approximation, pipeline.shifted_levels, one_shift
        )
    axes = tuple(range(1, 1 + ndim))
    if not between:
        return *transform.decompose(x, levels, axes), []
    low, details = x, []
    for level in range(1, levels + 1):
        low, bands = transform.decompose_level(low, axes)
        details.append(bands)
        if level < levels:
            low = on_approximation(low, level)
    return low, details, []


@lru_cache(maxsize=64)
def compiled_pipeline(
    pipeline: Pipeline, recipe: ImageRecipe, engine: Engine, options: TransformOptions
) -> Any:
    """Return the executable of a pipeline for an image."""
    from .shift_blocks import shift_blocks

    blocks = shift_blocks(pipeline, recipe, engine)
    return engine.compile_graph(pipeline.graph(recipe), options) if blocks is None else blocks


class WindowTarget(NamedTuple):
    """What is computed of a window: a statistic or a checkpoint by its number, or else the filtered window.

    ``given`` are the numbers of checkpoints that are inputs.
    """

    statistic: int | None = None
    checkpoint: int | None = None
    given: tuple[int, ...] = ()


class WindowProgram(NamedTuple):
    """A compiled program of a window of an image, its inputs for each statistic, and for checkpoints."""

    executable: Any
    statistics: list[list[str]]
    checkpoints: list[str]


@lru_cache(maxsize=64)
def window_program(
    pipeline: Pipeline, recipe: ImageRecipe, engine: Engine, target: WindowTarget
) -> WindowProgram:
    """Return the program of a window of an image, with statistics of the image as inputs.

    Parameters
    ----------
    pipeline : Pipeline
    recipe : ImageRecipe
        With the shape of the image.
    engine : Engine
    target : WindowTarget
        A statistic has its sources as outputs, and those before it as inputs; others have all statistics.
    """
    graph = pipeline.graph(recipe)
    names = [[view.buffer for view in node.writes] for node in graph.reductions()]
    levels = {shape: level for level, shape in enumerate(graph.extents)}
    checkpoints = checkpoint_buffers(graph, levels) if target.given or target.checkpoint is not None else []
    if target.statistic is not None:
        names = names[: target.statistic]
        graph = graph.reduction_sources(target.statistic)
    else:
        if target.checkpoint is not None:
            graph = computing(graph, checkpoints[target.checkpoint])
        graph = graph.with_known_reductions(len(names))
    given = [checkpoints[number] for number in target.given]
    return WindowProgram(engine.compile_graph(reading(graph, given) if given else graph), names, given)
