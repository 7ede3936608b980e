"""A browser that looks at a Studio: what the tests of the Studio share."""

import base64
import http.client
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["OpenTab", "Serve", "Served", "Tab"]


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
        """What a browser has after it was there."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", f"/?token={self.token}")
        answer = connection.getresponse()
        connection.close()
        return str(answer.getheader("set-cookie"))

    def files(self) -> list[Path]:
        """Files that visitors have sent."""
        return [path for path in self.temporary.glob("undula-studio-*/session-*/*") if path.is_file()]


CHAIN = """() => [document.querySelector('[data-testid=wavelet]').value,
    ...[...document.querySelectorAll('section[aria-label=Wavelet], [data-testid^=stage-]')]
    .map((one) => one.innerText)]"""
Serve = Callable[..., Served]


class Tab:
    """A tab of a browser that looks at a Studio."""

    def __init__(self, context: Any, address: str) -> None:
        self.context = context
        self.page = context.new_page()
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type == "error" else None)
        self.page.set_default_timeout(60_000)
        self.page.goto(address)
        self.page.wait_for_function("window.undulaStudio?.socket?.readyState === 1")

    def at(self, test: str) -> Any:
        return self.page.get_by_test_id(test)

    def focus(self, test: str) -> None:
        """A slider, for keys."""
        self.at(test).locator("[tabindex]").focus()

    def js(self, code: str) -> Any:
        return self.page.evaluate(code)

    def until(self, code: str) -> None:
        self.page.wait_for_function(code)

    def sample(self, name: str) -> None:
        """Opens a sample, from the page's front or from its menu."""
        before = self.js("undulaStudio.painted.input ?? 0")
        if self.at("welcome").is_visible():
            self.at(f"sample-{name}").click()
        else:
            self.at("samples").click()
            self.at(f"menu-sample-{name}").click()
        self.until(f"undulaStudio.shown && (undulaStudio.painted.input ?? 0) !== {before}")
        self.settled()

    def chain(self) -> Any:
        """What the panel of filters says."""
        return self.js(CHAIN)

    def restore(self, chain: Any) -> None:
        """As it was when the first picture had been opened."""
        self.js("Object.assign(undulaStudio, {split: 0.5}).fit()")
        self.page.locator(".stage-canvas").focus()
        if self.chain() != chain:
            self.change(lambda: [self.at("presets").click(), self.at("preset-Plain shrinkage").click()])
            self.page.wait_for_function(f"(chain) => String(({CHAIN})()) === chain", arg=",".join(chain))
        if self.js("undulaStudio.view") != "divider":
            self.change(lambda: self.page.keyboard.press("2"))

    def settled(self) -> None:
        """Until the picture of everything that was done is drawn, and the server has no other to make."""
        self.page.wait_for_function(
            """async () => {
                const studio = undulaStudio, before = studio.painted.id;
                await new Promise((go) => setTimeout(go, 220)); // (sliders tell of changes within 50 ms)
                const state = await (await fetch(`/studio/state/${studio.path}`)).json();
                const { id, exact, version } = studio.painted;
                const newest = exact && !state.playing && version === state.version;
                return id === before && (studio.stream || newest);
            }"""
        )

    def change(self, do: Callable[[], Any]) -> None:
        """Does something, and waits for the picture of it."""
        before = self.js("undulaStudio.painted.version")
        do()
        self.until(f"undulaStudio.painted.version > {before}")
        self.settled()

    def pixels(self, name: str = "after") -> np.ndarray[Any, Any]:
        """A layer as the page has it: red, green and blue."""
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
        found = self.pixels(name)
        np.testing.assert_array_equal(found[..., 0], found[..., 1])
        return found[..., 0]

    def choose(self, test: str, option: str) -> None:
        """Something of a list."""
        self.page.locator(f"[data-testid='{test}']").click()
        self.page.locator(".q-menu .q-item").filter(
            has_text=re.compile(f"^{re.escape(option)}")
        ).first.click()

    def empty_chain(self) -> None:
        """No stages at all."""
        while self.at("remove-0").count():
            self.change(lambda: self.at("remove-0").click())

    def add(self, kind: str) -> None:
        self.at("add").click()
        self.change(lambda: self.at(f"add-{kind}").click())

    def check(self) -> None:
        """No errors in the page."""
        assert not self.complaints, self.complaints


OpenTab = Callable[..., Tab]
