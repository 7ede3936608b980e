"""The filter chain that a visitor edits: a pipeline whose stages can be disabled, with undo and redo."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from ..filters import Contrast, FilterStage, Gain, Pipeline, Shrink, Unsharp
from ..filters.verbs import Denoising, Despeckling, Verb
from .extents import EACH, AppliedChain, Extent

__all__ = ["PRESETS", "FilterChain", "History", "Link"]

_next_key = count(1)
PLAIN = Pipeline("cdf97", 3)


@dataclass(frozen=True)
class Link:
    """A stage of a chain; ``key`` identifies it while the chain is edited."""

    stage: FilterStage
    enabled: bool = True
    key: int = field(default_factory=lambda: next(_next_key), compare=False)


@dataclass(frozen=True)
class FilterChain:
    """An immutable filter chain: every edit returns a new one.

    Parameters
    ----------
    base : Pipeline
        The settings of the chain: a pipeline without stages.
    links : tuple of Link
        The stages.
    verb : Verb, optional
        The task that the chain was made for; it may have been changed since.
    extent : str, optional
        What is filtered together, a key of :func:`~undula.studio.extents.extents_of`. Inputs that have no
        such extent are filtered page by page.
    over_time : int, default 8
        Number of frames that are filtered together, where these are not all along an axis.
    """

    base: Pipeline = PLAIN
    links: tuple[Link, ...] = ()
    verb: Verb | None = None
    extent: str = EACH
    over_time: int = 8

    @classmethod
    def from_pipeline(cls, pipeline: Pipeline) -> FilterChain:
        """Return the chain equivalent to a pipeline."""
        return cls().with_pipeline(pipeline)

    def with_pipeline(self, pipeline: Pipeline, verb: Verb | None = None) -> FilterChain:
        """Return the chain equivalent to a pipeline, which filters the same things together as this one."""
        wavelet = pipeline.wavelet if isinstance(pipeline.wavelet, str) else pipeline.wavelet.name
        invariant = 64 if pipeline.invariant is True else int(pipeline.invariant)
        base = replace(pipeline, wavelet=wavelet, invariant=invariant, stages=())
        return replace(self, base=base, links=tuple(Link(stage) for stage in pipeline.stages), verb=verb)

    @property
    def task(self) -> Verb | None:
        """The task that the chain was made for; None if the chain has been changed since."""
        intact = self.verb is not None and self == self.with_pipeline(self.verb.pipeline(), self.verb)
        return self.verb if intact else None

    @property
    def follows_motion(self) -> bool:
        """Whether several frames are filtered along their motion, as denoising does."""
        return isinstance(self.task, Denoising)

    def applied(self, shape: Sequence[int], extents: Mapping[str, Extent]) -> AppliedChain:
        """Return the chain as it is applied to frames of a shape, of an input with these extents."""
        pipeline, task = self.fit_shape(shape).pipeline(), self.task
        denoising = task if isinstance(task, Denoising) else None
        return AppliedChain.of(pipeline, extents.get(self.extent), self.over_time, denoising)

    @property
    def wavelet(self) -> str:
        """The name of the wavelet."""
        return str(self.base.wavelet)

    @property
    def level(self) -> int | None:
        """Number of levels; None if it depends on the size of the image."""
        return self.base.level

    def pipeline(self) -> Pipeline:
        """Return the pipeline of the enabled stages."""
        return replace(self.base, stages=[link.stage for link in self.links if link.enabled])

    def configure(self, **settings: Any) -> FilterChain:
        """Change settings other than the stages; stages are adapted to a new number of levels."""
        chain = replace(self, base=replace(self.base, **settings))
        if chain.level is None:
            return chain
        level = max(1, chain.level)
        return chain._map_links(lambda link: replace(link, stage=_fit_levels(link.stage, level, self.level)))

    def fit_shape(self, shape: Sequence[int]) -> FilterChain:
        """Limit the number of levels to what a picture of this shape allows."""
        deepest = math.ceil(math.log2(max(2, *shape[:2])))
        return self if self.level is None or self.level <= deepest else self.configure(level=deepest)

    def link(self, key: int) -> Link:
        """Return the link with this key."""
        return next(link for link in self.links if link.key == key)

    def append(self, stage: FilterStage) -> FilterChain:
        """Add a stage at the end."""
        return replace(self, links=(*self.links, Link(stage)))

    def remove(self, key: int) -> FilterChain:
        """Remove a stage."""
        return replace(self, links=tuple(link for link in self.links if link.key != key))

    def enable(self, key: int, enabled: bool) -> FilterChain:
        """Enable or disable a stage."""
        return self._map_links(lambda link: replace(link, enabled=enabled) if link.key == key else link)

    def enable_all(self, enabled: bool) -> FilterChain:
        """Enable or disable every stage."""
        return self._map_links(lambda link: replace(link, enabled=enabled))

    def move(self, key: int, offset: int) -> FilterChain:
        """Move a stage by ``offset`` positions towards the end."""
        links = list(self.links)
        index = next(k for k, link in enumerate(links) if link.key == key)
        links.insert(max(0, index + offset), links.pop(index))
        return replace(self, links=tuple(links))

    def replace_stage(self, key: int, stage: FilterStage) -> FilterChain:
        """Replace the stage of a link."""
        return self._map_links(lambda link: replace(link, stage=stage) if link.key == key else link)

    def _map_links(self, change: Callable[[Link], Link]) -> FilterChain:
        return replace(self, links=tuple(change(link) for link in self.links))


def _fit_levels(stage: FilterStage, level: int, previous: int | None) -> FilterStage:
    """Drop the settings of levels that no longer exist.

    Where every previous level had a value of its own, new levels get the value of the coarsest one.
    """
    changes: dict[str, Any] = {}
    levels = getattr(stage, "levels", None)
    if levels is not None and max(levels, default=0) > level:
        changes["levels"] = tuple(n for n in levels if n <= level) or None
    if isinstance(stage, Shrink) and isinstance(stage.threshold, tuple) and len(stage.threshold) > level:
        changes["threshold"] = stage.threshold[:level]
    for name in (name for name, argument in stage.arguments().items() if argument.per_level):
        per_level = getattr(stage, name)
        if isinstance(per_level, tuple) and previous is not None and len(per_level) == previous < level:
            changes[name] = (*per_level, *[per_level[-1]] * (level - previous))
    return replace(stage, **changes) if changes else stage


class History:
    """The current chain, with the chains to return to by undo and redo.

    Examples
    --------
    >>> history = History(FilterChain(Pipeline(level=3)))
    >>> history.record(FilterChain(Pipeline(level=4)))
    >>> history.undo().level, history.redo().level
    (3, 4)
    """

    MAX_STEPS = 200

    def __init__(self, chain: FilterChain) -> None:
        self.current = chain
        self._undo: list[FilterChain] = []
        self._redo: list[FilterChain] = []
        self._gesture: Any = None

    def record(self, chain: FilterChain, gesture: Any = None) -> None:
        """Make a chain the current one.

        Consecutive changes by the same ``gesture``, such as a slider being dragged, are undone in one step.
        """
        if chain == self.current:
            return
        if gesture is None or gesture != self._gesture:
            self._undo = [*self._undo[-self.MAX_STEPS :], self.current]
        self.current, self._redo, self._gesture = chain, [], gesture

    def end_gesture(self) -> None:
        """Make the next change a step of its own."""
        self._gesture = None

    @property
    def can_undo(self) -> bool:
        """Whether there is a step to undo."""
        return bool(self._undo)

    @property
    def can_redo(self) -> bool:
        """Whether there is a step to redo."""
        return bool(self._redo)

    def undo(self) -> FilterChain:
        """Undo one step, if there is one, and return the current chain."""
        return self._step(self._undo, self._redo)

    def redo(self) -> FilterChain:
        """Redo one step, if there is one, and return the current chain."""
        return self._step(self._redo, self._undo)

    def _step(self, source: list[FilterChain], target: list[FilterChain]) -> FilterChain:
        if source:
            target.append(self.current)
            self.current = source.pop()
        self._gesture = None
        return self.current


PRESETS: dict[str, tuple[str, Pipeline]] = {
    "Ultrasound": (
        "Reduce speckle in log-compressed scans, keeping tissue texture",
        Despeckling(kind="log", strength=0.5).pipeline(),
    ),
    "Photo": (
        "Reduce camera noise, then sharpen slightly",
        Pipeline("db2", 4, [Shrink("bivariate"), Gain((1.15, 1.1, 1.0))], invariant=2),
    ),
    "Microscopy": (
        "Reduce noise, then enhance weak structures at all scales",
        Pipeline("sym4", 4, [Shrink("bayes"), Contrast(0.3, 2.5)]),
    ),
    "Astronomy": (
        "Reduce noise at the finest scales, then enhance faint, extended structures",
        Pipeline("bior4.4", 5, [Shrink("block", strength=1.2), Gain((1.0, 1.1, 1.4, 1.5, 1.3))]),
    ),
    "Plain shrinkage": (
        "Three levels, one threshold per band: the fastest",
        Pipeline("cdf97", 3, [Shrink("bayes")]),
    ),
    "Sharpen": ("An unsharp mask only", Pipeline("cdf97", 3, [Unsharp(1.5, 0.8)])),
}
