"""What the browser keeps for later visits: the versions of the chain, the theme, and settings."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from nicegui import ui

from ..errors import UndulaError
from .versions import ChainVersions
from .widgets import identify

if TYPE_CHECKING:
    from .page import Page

__all__ = ["BrowserStorage"]

THEMES = """[document.body.classList.contains('body--dark'),
    matchMedia('(prefers-color-scheme: dark)').matches]"""


class BrowserStorage:
    """Keeps settings and chains in the browser, and offers the chains of an earlier session."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.letters = True  # whether single characters are shortcuts
        self._newest = ChainVersions.of(page.session)
        self._offered: ChainVersions | None = None

    def build(self) -> None:
        """Build the offer to restore a chain, which is hidden at first."""
        with ui.row().classes("offer").props('role="status" data-testid="offer"') as self._offer:
            ui.label("This browser has kept the filter chain of an earlier session.")
            for word, action in (("Restore", self._restore), ("Discard", self._discard)):
                button = ui.button(word, on_click=action).props("flat dense size=sm")
                identify(button, f"{word} the filter chain", f"offer-{word.lower()}")
        self._offer.set_visibility(False)

    def use(self, kept: dict[str, Any]) -> None:
        """Use what the browser has kept: settings at once, and chains if the visitor wants them."""
        self.letters = kept.get("letters") is not False
        if kept.get("theme") in ("light", "dark"):
            self.page.dark.set_value(kept["theme"] == "dark")
        session = self.page.session
        with suppress(UndulaError):
            versions = ChainVersions.from_json(str(kept.get("chains")))
            changed = session.history.can_undo or session.history.can_redo or session.slots
            if not changed and versions != self._newest:
                self._offered = versions
                self._offer.set_visibility(True)

    def update(self) -> None:
        """Let the browser keep the versions of the chain, once they were changed."""
        versions = ChainVersions.of(self.page.session)
        if versions != self._newest:
            self._newest = versions
            self._keep("chains", versions.to_json())

    def _keep(self, name: str, value: str | None) -> None:
        self.page.viewer.run_method("keep", name, value)

    def _restore(self) -> None:
        assert self._offered is not None
        self._offered.restore(self.page.session)
        self.page.show_slot()
        self._offer.set_visibility(False)

    def _discard(self) -> None:
        self._keep("chains", None)
        self._offer.set_visibility(False)

    def use_letters(self, use: bool) -> None:
        """Choose whether single characters are shortcuts."""
        self.letters = use
        self.page.viewer.run_method("useLetters", use)

    async def toggle_theme(self) -> None:
        """Switch between light and dark; that of the system is followed again where it is the same."""
        is_dark, is_preferred_dark = await ui.run_javascript(THEMES)
        follows = is_preferred_dark != is_dark
        self._keep("theme", None if follows else "light" if is_dark else "dark")
        self.page.dark.set_value(None if follows else not is_dark)
