"""A browser tab that shows a Studio, with the actions that tests of the Studio share."""

import base64
import http.client
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["CHAIN", "OpenTab", "Serve", "Served", "Tab"]

# Generous, because a first start compiles kernels: tests wait for conditions, never for a fixed time.
TIMEOUT_SECONDS = 240
SIZE = {"width": 1280, "height": 720}
DEFAULT_PRESET = "Plain shrinkage"


@dataclass
class Served:
    """A Studio in a process of its own; ``address`` is the one that it printed, with the token."""

    address: str
    exports: Path
    temporary: Path
    log: Path
    process: Any

    @property
    def base(self) -> str:
        return self.address.partition("?")[0]

    @property
    def token(self) -> str:
        return self.address.partition("?token=")[2]

    @property
    def port(self) -> int:
        return int(re.search(r":(\d+)/", self.address)[1])  # type: ignore[index]

    @cached_property
    def cookie(self) -> str:
        """The cookie that a browser gets for the token."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_SECONDS)
        connection.request("GET", f"/?token={self.token}")
        answer = connection.getresponse()
        connection.close()
        return str(answer.getheader("set-cookie"))

    def files(self) -> list[Path]:
        """Files that visitors have uploaded."""
        return [path for path in self.temporary.glob("undula-studio-*/session-*/*") if path.is_file()]


Serve = Callable[..., Served]

CHAIN = """() => [...document.querySelectorAll('section[aria-label=Wavelet], [data-testid^=stage-]')]
    .map((card) => [card.innerText, ...[...card.querySelectorAll('input')].map((box) => box.value)]).join()"""

# Sliders report their last value at most 50 ms late, and the server handles events in the order in which they
# were sent: all were handled once the state of the session has a mark that was sent after that time.
SYNC = f"""
    const studio = window.undulaStudio, deadline = performance.now() + {1000 * TIMEOUT_SECONDS};
    const pause = (milliseconds) => new Promise((go) => setTimeout(go, milliseconds));
    const state = async () => (await fetch(`/studio/state/${{studio.path}}`)).json();
    const until = async (condition, what) => {{
        while (!(await condition())) {{
            if (performance.now() > deadline) throw new Error(`timed out: ${{what}}`);
            await pause(30);
        }}
    }};
    await pause(60);
    const mark = String(Math.random());
    studio.$emit('sync', {{ mark }});
    await until(async () => (await state()).mark === mark, 'events are handled');
"""
SETTLE = f"""async () => {{ {SYNC}
    await until(async () => {{
        const {{ version, playing }} = await state();
        const drawn = () => studio.stream
            ? !studio.camera && studio.painted.number === studio.cameraFrames
            : studio.painted.exact && studio.painted.version === version;
        for (let k = 0; k < 20 && !drawn(); k++) await pause(10);
        return drawn() && !playing;
    }}, 'the newest picture is drawn');
}}"""


# Each tab begins without the chain that other tabs of its visitor have kept.
FORGET = """
    if (!sessionStorage.getItem('begun')) localStorage.removeItem('undula-studio-chains');
    sessionStorage.setItem('begun', 'yes');
"""


class Tab:
    """A browser tab that shows a Studio."""

    def __init__(self, context: Any, address: str) -> None:
        self.context = context
        self.page = context.new_page()
        self.page.add_init_script(FORGET)
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type == "error" else None)
        self.page.set_default_timeout(1000 * TIMEOUT_SECONDS)
        self.page.goto(address)
        self.until("window.undulaStudio?.socket?.readyState === 1")
        self.initial_chain = self.chain()

    def at(self, test_id: str) -> Any:
        return self.page.get_by_test_id(test_id)

    def focus(self, test_id: str) -> None:
        """Focus a slider."""
        self.at(test_id).focus()

    def js(self, code: str) -> Any:
        return self.page.evaluate(code)

    def until(self, code: str, argument: Any = None) -> None:
        self.page.wait_for_function(code, arg=argument, polling=30)

    def upload(self, *paths: Path) -> None:
        """Open files, and wait for the picture of the last one."""
        count = self.page.locator(".thumb-box").count() + len(paths)
        self.at("file-input").set_input_files(list(paths))
        self._wait_for_input(count)

    def sample(self, name: str) -> None:
        """Open a sample, from the welcome page or from the menu."""
        count = self.page.locator(".thumb-box").count() + 1
        if self.at("welcome").is_visible():
            self.at(f"sample-{name}").click()
        else:
            self.at("samples").click()
            self.at(f"menu-sample-{name}").click()
        self._wait_for_input(count)

    def _wait_for_input(self, count: int) -> None:
        """Wait until so many inputs are open and the picture of the selected one is drawn."""
        self.until(
            """(count) => document.querySelectorAll('.thumb-box').length === count && undulaStudio.shown
                && document.querySelector(`.thumb.now[data-testid=input-${undulaStudio.painted.input}]`)""",
            count,
        )
        self.settled()

    def preset(self, name: str) -> None:
        """Choose a preset, without waiting for the picture."""
        self.at("presets").click()
        self.at(f"preset-{name}").click()

    def chain(self) -> Any:
        """The text of the filter panel."""
        return self.js(CHAIN)

    def restore(self) -> None:
        """Bring the chain and the view to their initial state."""
        self.js("Object.assign(undulaStudio, {split: 0.5}).fit()")
        self.page.locator(".stage-canvas").focus()
        if self.chain() != self.initial_chain:
            self.preset(DEFAULT_PRESET)
            self.until(f"(chain) => ({CHAIN})() === chain", self.initial_chain)
        self.page.keyboard.press("2")

    def close_inputs(self) -> None:
        """Close all inputs, so that the welcome page is shown."""
        buttons = self.page.locator(".thumb-box .shut")
        while count := buttons.count():
            buttons.first.click()
            self.until(f"document.querySelectorAll('.thumb-box').length < {count}")
        self.at("welcome").wait_for(state="visible")

    def synced(self) -> None:
        """Wait until the server has handled everything that was done in this tab."""
        self.js(f"async () => {{ {SYNC} }}")

    def settled(self) -> None:
        """Wait until the picture of everything that was done in this tab is drawn."""
        self.js(SETTLE)

    def change(self, do: Callable[[], Any]) -> None:
        """Do something that changes the picture, and wait for the new one."""
        before = self.js("undulaStudio.painted.version")
        do()
        self.until(f"undulaStudio.painted.version > {before}")
        self.settled()

    def pixels(self, name: str = "after") -> np.ndarray[Any, Any]:
        """The RGB pixels of a layer in the page."""
        width, height = self.js(f"(({{width, height}}) => [width, height])(undulaStudio.layers[{name!r}])")
        data = self.bytes(f"undulaStudio.pixels({name!r})")
        return data.reshape(height, width, 4)[..., :3]

    def bytes(self, code: str) -> np.ndarray[Any, Any]:
        """An array of bytes in the page."""
        data = self.js(
            f"""() => {{
                const data = {code};
                let text = '';
                for (let i = 0; i < data.length; i += 32768)
                    text += String.fromCharCode.apply(null, data.subarray(i, i + 32768));
                return btoa(text);
            }}"""
        )
        return np.frombuffer(base64.b64decode(data), np.uint8)

    def grey(self, name: str = "after") -> np.ndarray[Any, Any]:
        pixels = self.pixels(name)
        np.testing.assert_array_equal(pixels[..., 0], pixels[..., 1])
        return pixels[..., 0]

    def choose(self, test_id: str, option: str) -> None:
        """Choose an option of a list.

        On a busy machine a menu can open without being laid out; it is then closed and opened again.
        """
        from playwright.sync_api import TimeoutError as NotVisible

        menu = self.page.locator(".q-menu")
        item = menu.locator(".q-item").filter(has_text=re.compile(f"^{re.escape(option)}")).first
        for attempt in range(10):
            self.page.locator(f"[data-testid='{test_id}']").click()
            try:
                item.click(timeout=5000 * (attempt + 1))
                return
            except NotVisible:
                if menu.count():
                    self.page.locator(f"[data-testid='{test_id}']").click()
                    menu.first.wait_for(state="detached")
        raise AssertionError(f"{option!r} of {test_id!r} cannot be chosen")

    def empty_chain(self) -> None:
        """Remove all stages."""
        while self.at("remove-0").count():
            self.change(lambda: self.at("remove-0").click())

    def add(self, kind: str) -> None:
        self.at("add").click()
        self.change(lambda: self.at(f"add-{kind}").click())

    def check(self) -> None:
        """Check that the page reported no errors."""
        assert not self.complaints, self.complaints


OpenTab = Callable[..., Tab]
