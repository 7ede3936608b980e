"""The bar below the viewer: playback, the number of a frame or slice, and the plane of volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nicegui import ui

from .panels import identify

if TYPE_CHECKING:
    from .page import Page

__all__ = ["PlayerPanel"]

PLANES = {0: "XY", 1: "XZ", 2: "YZ"}
SPEEDS = {0.25: "¼ ×", 0.5: "½ ×", 1.0: "1 ×", 2.0: "2 ×", 0.0: "max"}


class PlayerPanel:
    """Buttons, a slider and lists; shown if an input has several frames or slices."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._own_scrub_value: int | None = None  # set by the server, not by the visitor
        self._holding = False
        self._resume = False

    def build(self) -> None:
        """Build the bar."""
        session = self.page.session
        with ui.row().classes("player").props('role="group" aria-label="Playback"') as self._bar:
            self.page.button("skip_previous", "First (Home)", "first", lambda: self.seek(0))
            self.page.button("chevron_left", "Previous (←)", "back", lambda: self.seek(session.number - 1))
            self._play = self.page.button("play_arrow", "Play or pause (Space)", "play", self.play)
            self.page.button("chevron_right", "Next (→)", "on", lambda: self.seek(session.number + 1))
            self._loop = self.page.button("repeat", "Loop (L)", "loop", self.loop)
            self._scrub = ui.slider(
                min=0, max=1, step=1, value=0, on_change=lambda event: self._scrub_to(event.value)
            )
            identify(self._scrub.props("dense"), "Frame or slice", "scrub")
            self._scrub.on("pan", lambda event: self._hold(event.args))
            self._position = ui.label("").classes("where").props('data-testid="where"')
            self._plane = ui.select(PLANES, value=0, on_change=lambda event: self.set_plane(event.value))
            self._plane.props("dense borderless options-dense").style("width:58px")
            identify(self._plane, "Plane of the slices", "plane")
            speed = ui.select(
                SPEEDS, value=session.playback.speed, on_change=lambda e: self._set_speed(e.value)
            )
            identify(speed.props("dense borderless options-dense").style("width:58px"), "Speed", "speed")

    def update(self) -> None:
        """Show the state of the session."""
        session, shown = self.page.session, self.page.session.current
        several = shown is not None and shown.frame_count > 1
        self._bar.set_visibility(several)
        if shown is not None and several:
            self._scrub.props(f"max={shown.frame_count - 1}")
            if self._scrub.value != session.number and not self._holding:
                self._own_scrub_value = session.number
                self._scrub.set_value(session.number)
            self._plane.set_visibility(shown.has_planes)
            self._plane.set_value(shown.plane)
            self._position.set_text(shown.position_text(session.number))
            self._play.props(f"icon={'pause' if session.playback.on else 'play_arrow'}")
            self._loop.props(f"color={'primary' if session.playback.loop else 'grey'}")

    def set_plane(self, axis: int) -> None:
        """Show the slices of a volume across another axis, beginning in the middle."""
        shown = self.page.session.current
        if shown is not None and shown.has_planes and axis != shown.plane:
            shown.set_plane(axis, self.page.session.number)
            self.page.session.seek(shown.frame_count // 2)
            self.page.refresh()

    def play(self) -> None:
        """Play or pause."""
        self.page.session.play(not self.page.session.playback.on)
        self.page.refresh()

    def loop(self) -> None:
        """Switch looping on or off."""
        self.page.session.playback.loop = not self.page.session.playback.loop
        self.page.refresh()

    def seek(self, number: int) -> None:
        """Show a frame, and stop playback."""
        self.page.session.play(False)
        self.page.session.seek(number)
        self.page.refresh()

    def _hold(self, phase: Any) -> None:
        """Interrupt playback while the slider is dragged."""
        self._holding = phase == "start"
        if self._holding:
            self._resume = self.page.session.playback.on
            self.page.session.play(False)
        elif self._resume:
            self.page.session.play(True)

    def _scrub_to(self, value: float | None) -> None:
        if value is None or int(value) == self._own_scrub_value:
            self._own_scrub_value = None
            return
        self.page.session.seek(int(value))

    def _set_speed(self, value: float) -> None:
        self.page.session.playback.speed = value
        self.page.session.seek(self.page.session.number)
