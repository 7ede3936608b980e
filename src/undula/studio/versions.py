"""The versions of the chain of a session, as a text that restores them in another session."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError, UndulaError
from ..filters import Pipeline
from ..filters.verbs import VERBS
from .chain import FilterChain

if TYPE_CHECKING:
    from .session import Session

__all__ = ["MAX_STAGES", "ChainVersions", "check_stages"]

MAX_STAGES = 40
MAX_CHARACTERS = 800_000


def check_stages(pipeline: Pipeline) -> Pipeline:
    """Return a pipeline, if the page can show all of its stages."""
    if len(pipeline.stages) > MAX_STAGES:
        raise ArgumentError(f"got {len(pipeline.stages)} stages; the page supports up to {MAX_STAGES}")
    return pipeline


@dataclass(frozen=True)
class ChainVersions:
    """The versions of the chain by their names, and the name of the current one.

    Examples
    --------
    >>> versions = ChainVersions("B", {"A": FilterChain(), "B": FilterChain(over_time=4)})
    >>> ChainVersions.from_json(versions.to_json()) == versions
    True
    """

    slot: str
    chains: dict[str, FilterChain]

    @staticmethod
    def of(session: Session) -> ChainVersions:
        """Return the versions of a session."""
        return ChainVersions(session.slot, {**session.slots, session.slot: session.chain})

    def restore(self, session: Session) -> None:
        """Replace the chains of a session; undo brings the current one back."""
        session.slot, session.slots = self.slot, {k: v for k, v in self.chains.items() if k != self.slot}
        session.set_chain(self.chains[self.slot])
        session.history.end_gesture()

    def to_json(self) -> str:
        """Return the text that the browser keeps."""
        chains = {name: _chain_parts(chain) for name, chain in self.chains.items()}
        return json.dumps({"slot": self.slot, "chains": chains})

    @classmethod
    def from_json(cls, text: str) -> ChainVersions:
        """Return the versions that a text describes; the browser may have sent anything."""
        try:
            if len(text) > MAX_CHARACTERS:
                raise ArgumentError(f"kept chains have up to {MAX_CHARACTERS} characters, got {len(text)}")
            parts = json.loads(text)
            slot, chains = parts["slot"], {name: parts["chains"].get(name) for name in ("A", "B")}
            versions = cls(slot, {name: _chain(each) for name, each in chains.items() if each is not None})
            if slot not in versions.chains:
                raise ArgumentError(f"the version {slot!r} is current, but not among the chains")
            return versions
        except UndulaError:
            raise
        except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as error:
            raise ArgumentError(f"invalid chains: {type(error).__name__}: {error}") from None


def _chain_parts(chain: FilterChain) -> dict[str, Any]:
    pipeline = replace(chain.base, stages=[link.stage for link in chain.links])
    verb = chain.verb
    return {
        "pipeline": json.loads(pipeline.to_json()),
        "enabled": [link.enabled for link in chain.links],
        "task": next((name for name, kind in VERBS.items() if type(verb) is kind), None),
        "options": None if verb is None else asdict(verb),  # type: ignore[call-overload]
        "extent": chain.extent,
        "over_time": chain.over_time,
    }


def _chain(parts: dict[str, Any]) -> FilterChain:
    pipeline = check_stages(Pipeline.from_json(json.dumps(parts["pipeline"])))
    verb = None if parts["task"] is None else VERBS[parts["task"]](**parts["options"])
    if verb is not None:
        verb.pipeline()
    chain = FilterChain(extent=str(parts["extent"]), over_time=int(parts["over_time"]))
    chain = chain.with_pipeline(pipeline, verb)
    for link, enabled in zip(chain.links, parts["enabled"], strict=True):
        chain = chain.enable(link.key, bool(enabled))
    return chain
