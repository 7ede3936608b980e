"""A Studio that is served, and a browser that looks at it."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browsing import OpenTab, Serve, Served, Tab

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --use-fake-device-for-media-stream"
    " --use-fake-ui-for-media-stream --mute-audio --force-color-profile=srgb"
).split()


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Starts Studios; all are ended when the tests are over."""
    running: list[Any] = []

    def start(*arguments: str, temporary: Path | None = None, **variables: str) -> Served:
        exports = tmp_path_factory.mktemp("exports")
        temporary = temporary or tmp_path_factory.mktemp("temporary")
        log = tmp_path_factory.mktemp("log") / "stderr"
        command = [sys.executable, "-m", "undula", "studio", "--exports", str(exports)]
        command += ["--port", "0"] * ("--port" not in arguments)
        command += ["--no-browser"] * ("BROWSER" not in variables)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        environment |= {"TMPDIR": str(temporary), **variables}
        with log.open("w") as errors:
            process = subprocess.Popen(
                [*command, *arguments], stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
            )
        running.append(process)
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found is not None, log.read_text()
        return Served(found[0], exports, temporary, log, process)

    yield start
    for process in running:
        process.send_signal(signal.SIGINT)
    for process in running:
        process.wait(60)
        process.stdout.close()


@pytest.fixture(scope="session")
def studio(serve: Serve) -> Served:
    return serve()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: the Studio is not looked at in a browser")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        own = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield own
        own.close()


@pytest.fixture
def open_tab(browser: Any) -> Iterator[OpenTab]:
    """Tabs of browsers that know nothing of each other."""
    opened: list[Tab] = []

    def one(served: Served, **options: Any) -> Tab:
        told = {"viewport": {"width": 1280, "height": 720}, "accept_downloads": True, **options}
        opened.append(Tab(browser.new_context(**told), served.address))
        return opened[-1]

    yield one
    for tab in opened:
        tab.context.close()
        tab.check()


@pytest.fixture(scope="session")
def visitor(browser: Any) -> Iterator[Any]:
    """One visitor, with a browser that has loaded the page's parts before."""
    context = browser.new_context(viewport={"width": 1280, "height": 720}, accept_downloads=True)
    yield context
    context.close()


@pytest.fixture
def tab(visitor: Any, studio: Served) -> Iterator[Tab]:
    """A new tab, which has a session of its own."""
    own = Tab(visitor, studio.address)
    yield own
    own.page.close()
    own.check()


@pytest.fixture(scope="session")
def kept_tabs() -> Iterator[list[tuple[Tab, Any]]]:
    """A tab that tests use one after the other, and what its panel says in the beginning."""
    tabs: list[tuple[Tab, Any]] = []
    yield tabs
    for tab, _ in tabs:
        tab.page.close()


@pytest.fixture
def noisy_tab(
    request: pytest.FixtureRequest, visitor: Any, studio: Served, kept_tabs: list[tuple[Tab, Any]]
) -> Iterator[Tab]:
    """A tab that shows the photograph with noise, filtered as usual; for tests that open nothing else."""
    failed = request.session.testsfailed
    if kept_tabs:
        own, chain = kept_tabs.pop()  # (it comes back if all goes well)
        own.restore(chain)
    else:
        own = Tab(visitor, studio.address)
        own.sample("noisy")
        chain = own.chain()
    yield own
    if own.complaints or request.session.testsfailed > failed:
        own.page.close()
    else:
        kept_tabs.append((own, chain))
    own.check()


@pytest.fixture(scope="session")
def pictures(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go: the documentation, if asked."""
    folder = request.config.getoption("--screenshots")
    found = Path(folder) if folder else tmp_path_factory.mktemp("screenshots")
    found.mkdir(parents=True, exist_ok=True)
    return found
