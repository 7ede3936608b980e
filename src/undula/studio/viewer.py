"""The viewer as an element of the page."""

from __future__ import annotations

from nicegui.element import Element

__all__ = ["Viewer"]


class Viewer(Element, component="static/viewer.js"):
    """A canvas that receives pictures over its own WebSocket; ``path`` is the secret key of the session.

    Events: ``shortcut`` (a key was pressed), ``pipeline`` (a pipeline file was chosen), ``camera`` (the
    camera was started, or failed), ``sync`` (a mark that the state of the session then reports).
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._props["path"] = path
        self._props["label"] = (
            "Image. Plus and minus zoom, 0 fits, arrow keys step, question mark lists all keys"
        )

    def set_label(self, label: str) -> None:
        """Set the description that screen readers speak."""
        self._props["label"] = label
        self.update()
