"""The stage as an element of the page."""

from __future__ import annotations

from nicegui.element import Element

__all__ = ["Viewer"]


class Viewer(Element, component="static/viewer.js"):
    """A canvas that gets its pictures by a WebSocket of its own; ``path`` is the session's secret key.

    Events: ``shortcut`` (a key that somebody pressed), ``pipeline`` (a file with one), ``camera``.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._props["path"] = path
        self._props["label"] = (
            "Picture. Plus and minus zoom, 0 fits, arrow keys step, question mark shows all keys"
        )

    def say(self, label: str) -> None:
        """What a screen reader says of the picture."""
        self._props["label"] = label
        self.update()
