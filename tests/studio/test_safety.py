"""Access to a Studio and its limits: the token, other origins, other visitors, other machines."""

import asyncio
import http.client
import http.server
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undula
from browsing import TIMEOUT_SECONDS, OpenTab, Serve, Served, Tab
from undula import io
from undula.filters import Pipeline, Shrink
from undula.filters.memory import working_memory
from undula.studio import ServerOptions, StudioLimits
from undula.studio import serve as serve_here
from undula.studio.budget import MemoryBudget, ServerBudget, pyramid_memory
from undula.studio.folders import private_folder
from undula.studio.guard import Guard
from undula.studio.inputs import Camera, open_input
from undula.studio.session import MAX_INPUTS, Session
from undula.studio.uploads import receiving


def complaint(tab: Tab, path: Path) -> str:
    """Upload a file that is refused, and return the message."""
    tab.at("file-input").set_input_files(path)
    tab.page.locator(".uploads .failed").first.wait_for()
    text: str = tab.page.locator(".uploads .failed").first.inner_text()
    tab.page.get_by_role("button", name="Dismiss").click()
    return text


def test_uploads_that_are_too_large_or_broken(tab: Tab, tmp_path: Path) -> None:
    np.lib.format.open_memmap(tmp_path / "large.npy", "w+", np.uint8, (4600, 4600))  # a sparse file
    assert "larger than 20 MB" in complaint(tab, tmp_path / "large.npy")
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(200))
    assert "cannot read the file as png" in complaint(tab, tmp_path / "broken.png")
    (tmp_path / "bomb.png").write_bytes(png(60_000, 60_000, zlib.compress(bytes(100_000))))
    assert "declares 3,600,000,000 pixels" in complaint(tab, tmp_path / "bomb.png")
    (tmp_path / "text.mp4").write_bytes(b"no video at all, but a text that is called one")
    assert "no file format" in complaint(tab, tmp_path / "text.mp4")
    (tmp_path / "empty.png").write_bytes(b"")
    assert "empty" in complaint(tab, tmp_path / "empty.png")
    # The page still works.
    io.write(tmp_path / "good.png", np.zeros((90, 120), np.uint8))
    tab.upload(tmp_path / "good.png")
    tab.complaints = [text for text in tab.complaints if "status of 4" not in text]


def png(width: int, height: int, rows: bytes) -> bytes:
    """A grey PNG with compressed rows."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def test_two_browsers_see_their_own_pictures(
    tab: Tab, open_tab: OpenTab, studio: Served, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    mine, yours = (rng.integers(0, 256, (64, 80)).astype(np.uint8) for _ in range(2))
    other = open_tab(studio)
    for each, name, pixels in ((tab, "mine.png", mine), (other, "yours.png", yours)):
        io.write(tmp_path / name, pixels)
        each.upload(tmp_path / name)
    np.testing.assert_array_equal(tab.grey("before"), mine)
    np.testing.assert_array_equal(other.grey("before"), yours)
    for each, name in ((tab, "yours.png"), (other, "mine.png")):
        assert name not in each.page.content()
    # The key of a session is of no use to other visitors.
    key = tab.js("undulaStudio.path")
    assert key != other.js("undulaStudio.path")
    assert other.js(f"fetch('/studio/export/{key}/1').then((r) => r.status)") == 404
    assert (
        other.js(
            f"fetch('/studio/upload/{key}?name=a.png', {{method: 'POST', body: 'x'}}).then((r) => r.status)"
        )
        == 404
    )
    opened = other.js(
        f"""new Promise((done) => {{
            const socket = new WebSocket(`ws://${{location.host}}/studio/pictures/{key}`);
            socket.onmessage = () => done('a picture');
            socket.onclose = () => done('closed');
        }})"""
    )
    assert opened == "closed"
    other.change(lambda: other.at("remove-0").click())
    assert tab.at("stage-0").count() == 1
    other.complaints = []


@pytest.fixture
def elsewhere() -> Iterator[str]:
    """A page of another origin."""

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>elsewhere</title>")

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_a_foreign_origin_is_refused(tab: Tab, studio: Served, elsewhere: str) -> None:
    key = tab.js("undulaStudio.path")
    stranger = tab.context.new_page()
    stranger.goto(elsewhere)
    for path in (f"/studio/pictures/{key}", "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"):
        address = studio.base.replace("http", "ws").rstrip("/") + path
        outcome = stranger.evaluate(
            f"""new Promise((done) => {{
                const socket = new WebSocket('{address}');
                socket.onopen = () => done('open');
                socket.onerror = () => done('refused');
            }})"""
        )
        assert outcome == "refused"
    upload = f"{studio.base}studio/upload/{key}?name=a.png"
    post = "{method: 'POST', mode: 'no-cors', body: 'x'}"
    outcome = stranger.evaluate(f"fetch('{upload}', {post}).then((r) => r.type, () => 'failed')")
    assert outcome in ("opaque", "failed")
    stranger.close()
    tab.complaints = []
    assert tab.at("welcome").is_visible()


SOCKET = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"


def request(port: int, path: str = "/", method: str = "GET", **headers: str) -> tuple[int, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_SECONDS)
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, headers=headers, body=b"x" if method == "POST" else None)
    answer = connection.getresponse()
    result = answer.status, dict(answer.getheaders())
    if answer.status != 101:
        answer.read()
    connection.close()
    return result


def socket_headers(**more: str) -> dict[str, str]:
    return {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec_WebSocket_Version": "13",
        "Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==",
        **more,
    }


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:{port}.evil.example"}, 403),
        ({"Origin": "http://localhost:{port}"}, 403),  # another name than that of the request
        ({"Origin": "http://127.0.0.1:{port}"}, 101),
        ({"Origin": "http://evil.example:{port}", "Host": "evil.example:{port}"}, 403),
    ],
    ids=str,
)
def test_sockets_need_the_page_of_this_server(studio: Served, headers: dict[str, str], status: int) -> None:
    sent = {name: value.format(port=studio.port) for name, value in headers.items()}
    assert request(studio.port, SOCKET, Cookie=studio.cookie, **socket_headers(**sent))[0] == status


def test_other_names_and_long_requests_are_refused(studio: Served) -> None:
    port, cookie = studio.port, studio.cookie
    assert request(port, Cookie=cookie)[0] == 200
    assert request(port, Cookie=cookie)[1]["x-frame-options"] == "DENY"
    assert request(port, Cookie=cookie, Host="evil.example")[0] == 403
    assert request(port, Cookie=cookie, Host=f"evil.example:{port}")[0] == 403
    assert request(port, Cookie=cookie, Host=f"localhost:{port}")[0] == 200
    assert request(port, "/studio/upload/x", "POST", Cookie=cookie)[0] == 403
    headers = {"Origin": f"http://127.0.0.1:{port}", "Host": f"127.0.0.1:{port}", "Cookie": cookie}
    assert request(port, "/_nicegui/x", "POST", Content_Length=str(5 << 20), **headers)[0] == 403
    for path in ("/studio/export/x/1", "/studio/export/../../etc/passwd", "/..%2f..%2fetc/passwd"):
        assert request(port, path, Cookie=cookie)[0] in (400, 404, 422)


# --- the token ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/", "GET", 200),
        ("/favicon.ico", "GET", 200),
        ("/_nicegui/{version}/static/nicegui.js", "GET", 200),
        ("/studio/export/x/1", "GET", 404),
        ("/studio/upload/x", "POST", 404),
        ("/studio/pictures/x", "socket", 403),  # there is no session with this key
        (SOCKET, "socket", 101),
    ],
)
def test_nothing_is_answered_without_the_token(
    studio: Served, shared_studio: Served, path: str, method: str, status: int
) -> None:
    from nicegui import __version__

    path = path.format(version=__version__)
    origin = {"Origin": f"http://127.0.0.1:{studio.port}"} if method != "GET" else {}
    sent = socket_headers(**origin) if method == "socket" else origin
    verb = "POST" if method == "POST" else "GET"
    # Cookies of another server are not valid, under any name.
    other = cookie_value(shared_studio)
    others = [f"undula-studio-{port}={other}" for port in (shared_studio.port, studio.port)]
    visitor = cookie_value(studio).partition(".")[0]
    for wrong in ("", f"undula-studio-{studio.port}={visitor}.{'0' * 64}", *others):
        assert request(studio.port, path, verb, Cookie=wrong, **sent)[0] == 403
    answer, headers = request(studio.port, path, verb, Cookie=studio.cookie, **sent)
    assert answer == status
    if answer == 200:
        assert "default-src 'self'" in headers["content-security-policy"]


def cookie_value(served: Served) -> str:
    return served.cookie.partition("=")[2].partition(";")[0]


def test_a_cookie_belongs_to_port_and_token(studio: Served) -> None:
    name, _, rest = studio.cookie.partition("=")
    assert name == f"undula-studio-{studio.port}"
    assert studio.token not in rest
    assert rest.partition("; ")[2] == "Path=/; HttpOnly; SameSite=Strict"
    for token in ("", "guess", studio.token + "x", "%FF%00"):
        status, headers = request(studio.port, f"/?token={token}")
        assert status == 403
        assert "set-cookie" not in headers
    # A visitor who has a cookie keeps it.
    again = request(studio.port, f"/?token={studio.token}", Cookie=studio.cookie)[1]["set-cookie"]
    assert again == studio.cookie


def test_a_ticket_admits_once() -> None:
    seen: list[int] = []

    async def send(message: Any) -> None:
        seen.append(message.get("status", 0))

    async def visit(guard: Guard, token: str) -> int:
        seen.clear()
        scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"localhost:8000")]}
        await guard({**scope, "query_string": f"token={token}".encode()}, None, send)
        return seen[0]

    async def run() -> None:
        guard = Guard(None, 8000, "a long token")
        ticket = guard.ticket()
        assert [await visit(guard, ticket) for _ in range(2)] == [200, 403]
        assert [await visit(guard, "a%20long%20token") for _ in range(2)] == [200, 200]

    run_async(run())


def run_async(work: Any) -> None:
    """Runs something by an event loop of its own; the browser of other tests may have one in this thread."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()


def test_a_click_on_the_address_enters(browser: Any, studio: Served, elsewhere: str) -> None:
    """The link may be on a page of another origin, such as a terminal in a browser."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(elsewhere)
    page.evaluate(f"document.body.innerHTML = '<a href=\"{studio.address}\">Undula Studio</a>'")
    page.get_by_role("link").click()
    page.wait_for_function("window.undulaStudio?.socket?.readyState === 1", timeout=1000 * TIMEOUT_SECONDS)
    assert page.url == studio.base
    context.close()


def test_pages_run_no_scripts_but_their_own(noisy_tab: Tab, studio: Served) -> None:
    policy = request(studio.port, Cookie=studio.cookie)[1]["content-security-policy"]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert "'unsafe-inline'" not in rules["script-src"]
    for name in ("object-src", "base-uri", "form-action", "frame-ancestors", "frame-src"):
        assert rules[name] == "'none'"
    nonces = {re.search("'nonce-(.*)'", rules["script-src"])[1]}  # type: ignore[index]
    nonces.add(request(studio.port, Cookie=studio.cookie)[1]["content-security-policy"])
    assert len(nonces) == 2
    noisy_tab.js(
        """() => {
            window.ran = [];
            document.body.insertAdjacentHTML('beforeend', '<img id=bad src=x: onerror="ran.push(1)">');
            const script = document.createElement('script');
            script.textContent = 'ran.push(2)';
            document.body.append(script);
            const other = document.createElement('script');
            other.src = 'https://evil.example/x.js';
            other.onerror = () => { window.refused = true; };
            document.body.append(other);
        }"""
    )
    noisy_tab.until("window.refused")
    assert noisy_tab.js("window.ran") == []
    assert any("Content Security Policy" in text for text in noisy_tab.complaints)
    noisy_tab.js("document.querySelector('#bad').remove()")
    noisy_tab.complaints.clear()


def test_other_machines_can_connect_with_share(shared_studio: Served, open_tab: OpenTab) -> None:
    """``--share`` alone listens on all addresses, opens a browser with a ticket, and logs no token."""
    shared = shared_studio
    line = shared.process.stdout.readline()
    other = re.search(r"From other machines: http://([\d.]+):", line)
    if other is not None:  # there is a network
        assert shared.token in line
        connection = http.client.HTTPConnection(other[1], shared.port, timeout=TIMEOUT_SECONDS)
        connection.request("GET", "/")
        assert connection.getresponse().status == 403
        connection.close()
    assert request(shared.port)[0] == 403
    assert request(shared.port, f"/?token={shared.token[:-1]}")[0] == 403
    origin = {"Origin": f"http://127.0.0.1:{shared.port}"}
    assert request(shared.port, SOCKET, **socket_headers(**origin))[0] == 403
    (address,) = (shared.temporary / "opened.txt").read_text().split()
    assert address.startswith(f"{shared.base}?token=")
    assert shared.token not in address
    tab = open_tab(replace(shared, address=address))
    assert "token" not in tab.page.url
    tab.sample("noisy")
    np.testing.assert_array_equal(tab.grey("before"), io.read(io.sample("noisy")).pixels)
    assert request(shared.port, address.removeprefix(shared.base.rstrip("/")))[0] == 403
    for secret in (shared.token, address.partition("token=")[2]):
        assert secret not in shared.log.read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (ServerOptions(host="0.0.0.0"), "add --share"),
        (ServerOptions(host="127.0.0.1", share=True), "from this machine only"),
        (ServerOptions(token="short"), "12 characters"),
        (ServerOptions(token=""), "12 characters"),
    ],
    ids=["no share", "local share", "short token", "empty token"],
)
def test_invalid_options_are_refused(options: ServerOptions, message: str) -> None:
    with pytest.raises(undula.ArgumentError, match=message):
        serve_here(options)


# --- resources of a server ------------------------------------------------------------------------


@contextmanager
def private_folder_in(folder: Path) -> Iterator[Path]:
    before = tempfile.tempdir
    tempfile.tempdir = str(folder)
    try:
        with private_folder() as created:
            yield created
    finally:
        tempfile.tempdir = before
    assert not created.exists()


def test_folders_of_others_are_left_run_async(tmp_path: Path) -> None:
    for name in ("undula-studio-odd", "undula-studio-older"):
        (tmp_path / name).mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "lock").touch()
    (tmp_path / "undula-studio-link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "undula-studio-older" / "lock").symlink_to(tmp_path / "elsewhere" / "lock")
    with private_folder_in(tmp_path):
        assert (tmp_path / "elsewhere" / "lock").exists()
        assert len([*tmp_path.glob("undula-studio-*")]) == 4


def test_an_interrupted_upload_leaves_no_file(noisy_tab: Tab, studio: Served) -> None:
    key, before = noisy_tab.js("undulaStudio.path"), studio.files()
    cookies = noisy_tab.context.cookies()
    cookie = next(each for each in cookies if each["name"].endswith(str(studio.port)))
    with socket.create_connection(("127.0.0.1", studio.port), timeout=TIMEOUT_SECONDS) as connection:
        head = [
            f"POST /studio/upload/{key}?name=a.png HTTP/1.1",
            f"Host: 127.0.0.1:{studio.port}",
            f"Origin: http://127.0.0.1:{studio.port}",
            f"Cookie: {cookie['name']}={cookie['value']}",
            "Content-Length: 1000000",
        ]
        connection.sendall("\r\n".join([*head, "", ""]).encode() + bytes(300_000))
        wait_for(lambda: any(path.stat().st_size > 100_000 for path in {*studio.files()} - {*before}))
    wait_for(lambda: studio.files() == before)


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_uploads_share_one_disk(tmp_path: Path) -> None:
    """Simultaneous uploads together cannot exceed the limit."""
    room = ServerBudget(StudioLimits(upload=600, disk=1000), tmp_path)

    async def chunks(count: int) -> Any:
        for _ in range(count):
            await asyncio.sleep(0)
            yield bytes(100)

    async def send(name: str) -> None:
        with receiving(room, tmp_path / name) as upload:
            await upload.receive(chunks(6))
            upload.keep()

    async def run() -> None:
        results = await asyncio.gather(*(send(str(k)) for k in range(8)), return_exceptions=True)
        assert all(result is None or "--max-disk" in str(result) for result in results)
        assert results.count(None) <= 1
        stored = sum(path.stat().st_size for path in tmp_path.iterdir())
        assert stored == room.stored == 600 * results.count(None)
        with (
            pytest.raises(undula.FileError, match="--max-upload"),
            receiving(ServerBudget(StudioLimits(upload=600), tmp_path), tmp_path / "x") as upload,
        ):
            await upload.receive(chunks(7))

    run_async(run())


def test_the_number_of_inputs_is_limited(tmp_path: Path) -> None:
    """The limit includes files that are being opened."""
    for number in range(3):
        (tmp_path / f"{number}.png").write_bytes(b"no picture")

    async def run() -> None:
        with ThreadPoolExecutor(1) as pool:
            session = Session(ServerBudget(StudioLimits(), tmp_path), pool)
            session.inputs = [Camera() for _ in range(MAX_INPUTS - 1)]
            work = [session.open_file(tmp_path / f"{k}.png", "x") for k in range(3)]
            results = [str(error) for error in await asyncio.gather(*work, return_exceptions=True)]
            assert sum("files are open already" in text for text in results) == 2
            session.close()
            assert not session.folder.exists()

    run_async(run())


def test_memory_is_shared_and_waited_for(tmp_path: Path) -> None:
    memory = MemoryBudget(1 << 30)
    order: list[str] = []

    async def work(name: str, nbytes: int) -> None:
        async with memory.lend(nbytes):
            order.append(name)
            assert memory.held + memory.working <= memory.total
            await asyncio.sleep(0)
            order.append(name)

    async def run() -> None:
        memory.hold(300 << 20)
        with pytest.raises(undula.FileError, match="--max-memory"):
            memory.hold(300 << 20)
        with pytest.raises(undula.FileError, match="fewer shifts"):
            await work("never", 800 << 20)
        await asyncio.gather(*(work(name, 500 << 20) for name in "abc"))
        assert "".join(order) in ("aabbcc", "aaccbb")
        memory.release(300 << 20)
        assert (memory.held, memory.working) == (0, 0)

    run_async(run())


def test_a_small_file_with_a_large_picture_is_refused(tmp_path: Path) -> None:
    """Memory is accounted for by the size of the picture, before its pixels are received."""
    width = height = 1200
    rows = zlib.compress(bytes((width + 1) * height), 9)
    (tmp_path / "flat.png").write_bytes(png(width, height, rows))
    assert (tmp_path / "flat.png").stat().st_size < 100_000
    memory = MemoryBudget(40 << 20)
    with pytest.raises(undula.FileError, match="showing it takes"):
        open_input(tmp_path / "flat.png", "flat", StudioLimits(), memory=memory)
    assert memory.held == 0
    memory = MemoryBudget(100 << 20)
    flat = open_input(tmp_path / "flat.png", "flat", StudioLimits(), memory=memory)
    assert memory.held == flat.held > 14 * width * height
    flat.close()
    flat.close()
    assert memory.held == 0


@pytest.mark.parametrize(
    "pipeline",
    [
        Pipeline("db2", 4, [Shrink("bivariate")]),
        Pipeline("db2", 4, [Shrink("bivariate")], invariant=2),
        Pipeline("db2", 4, [Shrink("bivariate"), "collaborative"], photons="poisson"),
    ],
    ids=["plain", "shifts", "photons"],
)
def test_filters_take_no_more_memory_than_declared(pipeline: Pipeline) -> None:
    frame = np.zeros((1200, 1200, 3), np.uint8)
    code = f"""
import resource, numpy as np
from undula.filters import Pipeline
from undula.studio.views import Settings, filter_frame, quality_figures, render_pyramids
from undula.studio.inputs import Camera
frame = np.random.default_rng(0).integers(0, 256, {frame.shape}).astype(np.uint8)
pipeline, source, axis = Pipeline.from_json({pipeline.to_json()!r}), Camera(), -1
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
quality_figures(filter_frame(frame[:64, :64], axis, pipeline, Settings()), None, source)
render_pyramids(frame[:64, :64], axis, pipeline)
before = peak()
result = filter_frame(frame, axis, pipeline, Settings())
print(peak() - before)
quality_figures(result, None, source)
render_pyramids(frame, axis, pipeline)
print(peak() - before)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    filtering, rendering = map(int, run.stdout.split())
    needed = working_memory(pipeline, frame.shape, frame.dtype)
    slack = 128 << 20  # for a strip that is compared, and the memory of any process
    assert filtering < needed + slack
    assert rendering < max(needed, pyramid_memory(frame)) + slack


def test_leftovers_of_killed_servers_are_removed_and_no_signal_is_lost(
    serve: Serve, shared_studio: Served
) -> None:
    """The last test that uses this Studio: it is killed."""
    folder = shared_studio.temporary
    shared_studio.process.kill()
    shared_studio.process.wait()
    (left,) = folder.glob("undula-studio-*")
    assert left.stat().st_mode & 0o077 == 0
    (left / "session-x").mkdir()
    (left / "session-x" / "upload.png").write_bytes(b"x")
    with private_folder_in(folder) as living:
        assert not left.exists()
        ended = serve(temporary=folder)
        ended.process.send_signal(signal.SIGTERM)  # it has printed its address, and is not ready yet
        assert ended.process.wait(TIMEOUT_SECONDS) == 0
        assert [*folder.glob("undula-studio-*")] == [living]
