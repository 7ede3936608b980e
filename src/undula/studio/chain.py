"""What a visitor has set up: a pipeline whose stages can be switched off, and the way back to how it was."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from ..filters import Contrast, FilterStage, Gain, Pipeline, Shrink, Unsharp
from ..filters.verbs import Despeckling

__all__ = ["PRESETS", "Chain", "History", "Link"]

_numbers = count(1)


@dataclass(frozen=True)
class Link:
    """A stage in a chain, on or off; ``key`` tells it from others while the chain changes."""

    stage: FilterStage
    on: bool = True
    key: int = field(default_factory=lambda: next(_numbers), compare=False)


@dataclass(frozen=True)
class Chain:
    """A value: every change makes another one, so that nothing is ever half changed."""

    wavelet: str = "cdf97"
    level: int | None = 3
    mode: str = "symmetric"
    invariant: int = 0
    color: str = "ycbcr"
    speckle: str | None = None
    looks: float | None = None
    links: tuple[Link, ...] = ()

    @classmethod
    def of(cls, pipeline: Pipeline) -> Chain:
        """The chain that does what a pipeline does."""
        wavelet = pipeline.wavelet if isinstance(pipeline.wavelet, str) else pipeline.wavelet.name
        return cls(
            wavelet,
            None if pipeline.level is None else int(pipeline.level),
            pipeline.mode,
            64 if pipeline.invariant is True else int(pipeline.invariant),
            pipeline.color,
            pipeline.speckle,
            pipeline.looks,
            tuple(Link(stage) for stage in pipeline.stages),
        )

    def pipeline(self) -> Pipeline:
        """What is run: the stages that are on."""
        return Pipeline(
            self.wavelet,
            self.level,
            [link.stage for link in self.links if link.on],
            mode=self.mode,
            invariant=self.invariant,
            color=self.color,
            speckle=self.speckle,
            looks=self.looks if self.speckle else None,
        )

    def set(self, **told: Any) -> Chain:
        """With other settings; thresholds of levels that are no longer there are left out."""
        made = replace(self, **told)
        if made.level is None:
            return made
        level, before = max(1, made.level), self.level
        return made._each(lambda stage: _fitting(stage, level, before))

    def fitting(self, shape: Sequence[int]) -> Chain:
        """With no more levels than a picture of that shape can have."""
        deepest = math.ceil(math.log2(max(2, *shape[:2])))
        return self if self.level is None or self.level <= deepest else self.set(level=deepest)

    def _each(self, change: Any) -> Chain:
        return replace(self, links=tuple(replace(link, stage=change(link.stage)) for link in self.links))

    def link(self, key: int) -> Link:
        """A link by its key."""
        return next(link for link in self.links if link.key == key)

    def added(self, stage: FilterStage) -> Chain:
        """With one more stage at the end."""
        return replace(self, links=(*self.links, Link(stage)))

    def removed(self, key: int) -> Chain:
        """Without a stage."""
        return replace(self, links=tuple(link for link in self.links if link.key != key))

    def switched(self, key: int, on: bool) -> Chain:
        """With a stage on or off."""
        return replace(self, links=tuple(replace(n, on=on) if n.key == key else n for n in self.links))

    def moved(self, key: int, by: int) -> Chain:
        """With a stage earlier or later."""
        links = list(self.links)
        place = next(k for k, link in enumerate(links) if link.key == key)
        links.insert(max(0, place + by), links.pop(place))
        return replace(self, links=tuple(links))

    def ordered(self, keys: Iterable[int]) -> Chain:
        """With the stages in this order."""
        return replace(self, links=tuple(self.link(key) for key in keys))

    def changed(self, key: int, stage: FilterStage) -> Chain:
        """With another stage in the place of one."""
        return replace(self, links=tuple(replace(n, stage=stage) if n.key == key else n for n in self.links))


def _fitting(stage: FilterStage, level: int, before: int | None) -> FilterStage:
    """A stage without what it says of levels that are gone; where each has a number, so have new ones."""
    told: dict[str, Any] = {}
    levels = getattr(stage, "levels", None)
    if levels is not None and max(levels, default=0) > level:
        told["levels"] = tuple(n for n in levels if n <= level) or None
    if isinstance(stage, Shrink) and isinstance(stage.threshold, tuple) and len(stage.threshold) > level:
        told["threshold"] = stage.threshold[:level]
    for name in ("threshold", "gains"):
        each = getattr(stage, name, None)
        if isinstance(each, tuple) and before is not None and len(each) == before < level:
            told[name] = (*each, *[each[-1]] * (level - before))
    return replace(stage, **told) if told else stage


class History:
    """A chain, what it was before, and what was undone.

    Examples
    --------
    >>> history = History(Chain(level=3))
    >>> history.do(Chain(level=4))
    >>> history.undo().level, history.redo().level
    (3, 4)
    """

    MOST = 200

    def __init__(self, chain: Chain) -> None:
        self.now = chain
        self._before: list[Chain] = []
        self._after: list[Chain] = []
        self._why: Any = None

    def do(self, chain: Chain, why: Any = None) -> None:
        """Another chain; for the same reason as the last one, as while a slider is dragged, in one step."""
        if chain == self.now:
            return
        if why is None or why != self._why:
            self._before = [*self._before[-self.MOST :], self.now]
        self.now, self._after, self._why = chain, [], why

    def settle(self) -> None:
        """What comes next is a step of its own."""
        self._why = None

    @property
    def can_undo(self) -> bool:
        """Whether there is something before."""
        return bool(self._before)

    @property
    def can_redo(self) -> bool:
        """Whether something was undone."""
        return bool(self._after)

    def undo(self) -> Chain:
        """As it was before; the chain that it is now."""
        if self._before:
            self._after.append(self.now)
            self.now = self._before.pop()
        self._why = None
        return self.now

    def redo(self) -> Chain:
        """As it was before it was undone; the chain that it is now."""
        if self._after:
            self._before.append(self.now)
            self.now = self._after.pop()
        self._why = None
        return self.now


def _preset(**told: Any) -> Pipeline:
    stages = told.pop("stages")
    return Pipeline(told.pop("wavelet"), told.pop("level", None), stages, **told)


PRESETS: dict[str, tuple[str, Pipeline]] = {
    "Ultrasound": (
        "speckle of a scan as screens show it, with the texture of tissue kept",
        Despeckling(kind="log", strength=0.5).pipeline(),
    ),
    "Photo": (
        "noise of a camera, then edges a little steeper",
        _preset(
            wavelet="db2",
            level=4,
            invariant=2,
            stages=[Shrink("bivariate"), Gain((1.15, 1.1, 1.0))],
        ),
    ),
    "Microscopy": (
        "noise, then weak structures at all scales",
        _preset(
            wavelet="sym4",
            level=4,
            stages=[Shrink("bayes"), Contrast(0.3, 2.5)],
        ),
    ),
    "Astronomy": (
        "noise of the finest scales, then faint and wide structures",
        _preset(
            wavelet="bior4.4",
            level=5,
            stages=[Shrink("block", strength=1.2), Gain((1.0, 1.1, 1.4, 1.5, 1.3))],
        ),
    ),
    "Plain shrinkage": (
        "three levels, thresholds by band: the quick way",
        _preset(wavelet="cdf97", level=3, stages=[Shrink("bayes")]),
    ),
    "Sharpen": (
        "an unsharp mask alone",
        _preset(wavelet="cdf97", level=3, stages=[Unsharp(1.5, 0.8)]),
    ),
}
