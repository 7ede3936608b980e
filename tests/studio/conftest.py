"""A Studio that is served, and a browser that shows it."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from browsing import SIZE, TIMEOUT_SECONDS, OpenTab, Serve, Served, Tab

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --use-fake-device-for-media-stream"
    " --use-fake-ui-for-media-stream --mute-audio --force-color-profile=srgb"
).split()


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Start Studios; all of them are stopped after the tests."""
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
        address = re.search(r"http://\S+", process.stdout.readline())
        assert address is not None, log.read_text()
        return Served(address[0], exports, temporary, log, process)

    yield start
    for process in running:
        process.send_signal(signal.SIGINT)
    for process in running:
        process.wait(TIMEOUT_SECONDS)
        process.stdout.close()


@pytest.fixture(scope="session")
def studio(serve: Serve) -> Served:
    return serve("--max-upload", "20", "--max-pixels", "50000000")


@pytest.fixture(scope="session")
def shared_studio(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Served:
    """A Studio for other machines; its browser is a script that writes the address to a file."""
    folder = tmp_path_factory.mktemp("browser")
    script = folder / "browser.sh"
    script.write_text(f'#!/bin/sh\necho "$1" >> {folder}/opened.txt\n')
    script.chmod(0o755)
    return serve("--share", temporary=folder, BROWSER=f"{script} %s")


@pytest.fixture(scope="session")
def browser(serve: Serve) -> Iterator[Any]:
    """A browser, closed before the servers so that these need not wait for its connections."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: the Studio is not tested in a browser")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def open_tab(browser: Any) -> Iterator[OpenTab]:
    """Open tabs of separate visitors."""
    opened: list[Tab] = []

    def open_one(served: Served) -> Tab:
        opened.append(Tab(browser.new_context(viewport=SIZE), served.address))
        return opened[-1]

    yield open_one
    for tab in opened:
        tab.context.close()
        tab.check()


@pytest.fixture(scope="session")
def visitor(browser: Any) -> Iterator[Any]:
    """One visitor, whose browser keeps the files of the page in its cache."""
    context = browser.new_context(viewport=SIZE, accept_downloads=True)
    yield context
    context.close()


@pytest.fixture
def new_tab(visitor: Any, studio: Served) -> Iterator[Tab]:
    """A new tab, with a session of its own."""
    tab = Tab(visitor, studio.address)
    yield tab
    tab.page.close()
    tab.check()


@pytest.fixture(scope="session")
def kept_tabs() -> dict[str, Tab]:
    """Tabs that tests use one after the other."""
    return {}


@contextmanager
def borrowed(
    request: pytest.FixtureRequest, kept: dict[str, Tab], name: str, visitor: Any, studio: Served
) -> Iterator[Tab]:
    """Lend a kept tab, or a new one if there is none; tabs of failed tests are closed."""
    failed = request.session.testsfailed
    tab = kept.pop(name, None) or Tab(visitor, studio.address)
    tab.page.bring_to_front()  # Browsers deny full screen to other tabs.
    yield tab
    if tab.complaints or request.session.testsfailed > failed:
        tab.page.close()
    else:
        kept[name] = tab
    tab.check()


@pytest.fixture
def tab(
    request: pytest.FixtureRequest, visitor: Any, studio: Served, kept_tabs: dict[str, Tab]
) -> Iterator[Tab]:
    """A tab in which nothing is open."""
    with borrowed(request, kept_tabs, "empty", visitor, studio) as tab:
        tab.close_inputs()
        tab.restore()
        yield tab


@pytest.fixture
def noisy_tab(
    request: pytest.FixtureRequest, visitor: Any, studio: Served, kept_tabs: dict[str, Tab]
) -> Iterator[Tab]:
    """A tab that shows the noisy photograph with the default chain; for tests that open nothing else."""
    with borrowed(request, kept_tabs, "noisy", visitor, studio) as tab:
        if tab.at("welcome").is_visible():
            tab.sample("noisy")
            tab.initial_chain = tab.chain()
        tab.restore()
        tab.settled()
        yield tab


@pytest.fixture(scope="session")
def pictures(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for screenshots: that of the documentation, if requested."""
    folder = request.config.getoption("--screenshots")
    path = Path(folder).absolute() if folder else tmp_path_factory.mktemp("screenshots")
    path.mkdir(parents=True, exist_ok=True)
    return path
