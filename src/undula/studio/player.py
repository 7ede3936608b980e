"""The controls for frames and slices: playback, position, plane and speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import ui

from .slider import RangeSlider
from .widgets import icon_button, identify

if TYPE_CHECKING:
    from .page import Page

__all__ = ["Player"]

PLANES = {0: "XY", 1: "XZ", 2: "YZ"}
SPEEDS = {0.25: "¼ ×", 0.5: "½ ×", 1.0: "1 ×", 2.0: "2 ×", 0.0: "max"}


class Player:
    """The controls below the viewer, which are shown for inputs with several frames."""

    def __init__(self, page: Page) -> None:
        self.session = page.session
        self._holding = self._resume = False

    def build(self) -> None:
        """Add the controls to the page."""
        session = self.session
        with ui.row().classes("player").props('role="group" aria-label="Playback"') as self._row:
            icon_button("skip_previous", "First (Home)", "first", lambda: self.seek(0))
            icon_button("chevron_left", "Previous (←)", "back", lambda: self.seek(session.number - 1))
            self._play = icon_button("play_arrow", "Play or pause (Space)", "play", self.play)
            icon_button("chevron_right", "Next (→)", "on", lambda: self.seek(session.number + 1))
            self._loop = icon_button("repeat", "Loop (L)", "loop", self.loop)
            self._slider = RangeSlider((0, 1, 1), 0, lambda value: session.seek(int(value)), hold=self._hold)
            identify(self._slider, "Frame or slice", "scrub")
            self._position = ui.label("").classes("where").props('data-testid="where"')
            self._plane = ui.select(PLANES, value=0, on_change=lambda event: self._set_plane(event.value))
            self._plane.props("dense borderless options-dense").style("width:58px")
            identify(self._plane, "Plane of the slices", "plane")
            speed = ui.select(
                SPEEDS, value=session.playback.speed, on_change=lambda e: self._set_speed(e.value)
            )
            identify(speed.props("dense borderless options-dense").style("width:58px"), "Speed", "speed")

    def update(self) -> None:
        """Show what the session shows."""
        session, shown = self.session, self.session.current
        several = shown is not None and shown.frame_count > 1
        self._row.set_visibility(several)
        if shown is None or not several:
            return
        if not self._holding:
            self._slider.show(session.number, shown.frame_count - 1)
        self._plane.set_visibility(shown.has_planes)
        self._plane.set_value(shown.plane)
        self._position.set_text(shown.position_text(session.number))
        self._play.props(f"icon={'pause' if session.playback.on else 'play_arrow'}")
        self._loop.props(f"color={'primary' if session.playback.loop else 'grey'}")

    # --- actions ----------------------------------------------------------------------------------

    def play(self) -> None:
        """Play or pause."""
        self.session.play(not self.session.playback.on)
        self.update()

    def loop(self) -> None:
        """Switch looping on or off."""
        self.session.playback.loop = not self.session.playback.loop
        self.update()

    def seek(self, number: int) -> None:
        """Show a frame, and stop playback."""
        self.session.play(False)
        self.session.seek(number)
        self.update()

    def seek_last(self) -> None:
        """Show the last frame, and stop playback."""
        shown = self.session.current
        self.seek(0 if shown is None else shown.frame_count - 1)

    def _hold(self, holding: bool) -> None:
        """Interrupt playback while the slider is dragged."""
        self._holding = holding
        if self._holding:
            self._resume = self.session.playback.on
            self.session.play(False)
        elif self._resume:
            self.session.play(True)

    def _set_plane(self, axis: int) -> None:
        """Show the slices of a volume across another axis, beginning in the middle."""
        shown = self.session.current
        if shown is not None and shown.has_planes and axis != shown.plane:
            shown.set_plane(axis, self.session.number)
            self.session.seek(shown.frame_count // 2)
            self.update()

    def _set_speed(self, value: float) -> None:
        self.session.playback.speed = value
        self.session.seek(self.session.number)
