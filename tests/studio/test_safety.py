"""Who may do what with a Studio: limits of files, other origins, other visitors, other machines."""

import http.client
import http.server
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browsing import OpenTab, Serve, Served, Tab
from undula import io


@pytest.fixture(scope="session")
def strict(serve: Serve) -> Served:
    """A Studio that takes little."""
    return serve("--max-upload", "1", "--max-pixels", "300000")


def complaint(tab: Tab) -> str:
    tab.page.locator(".uploads .failed").first.wait_for()
    text: str = tab.page.locator(".uploads .failed").first.inner_text()
    tab.page.get_by_role("button", name="Dismiss").click()
    return text


def test_uploads_that_are_too_large_or_broken(open_tab: OpenTab, strict: Served, tmp_path: Path) -> None:
    tab = open_tab(strict)
    rng = np.random.default_rng(0)
    io.write(tmp_path / "large.npy", rng.integers(0, 256, (1100, 1100)).astype(np.uint8))
    tab.at("file-input").set_input_files(tmp_path / "large.npy")
    assert "larger than 1 MB" in complaint(tab)
    (tmp_path / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(200))
    tab.at("file-input").set_input_files(tmp_path / "broken.png")
    assert "cannot read the file as png" in complaint(tab)
    (tmp_path / "bomb.png").write_bytes(bomb(60_000, 60_000))
    tab.at("file-input").set_input_files(tmp_path / "bomb.png")
    assert "says that it has 3,600,000,000 pixels" in complaint(tab)
    (tmp_path / "text.mp4").write_bytes(b"no video at all, but a text that is called one")
    tab.at("file-input").set_input_files(tmp_path / "text.mp4")
    assert "no kind of file" in complaint(tab)
    (tmp_path / "empty.png").write_bytes(b"")
    tab.at("file-input").set_input_files(tmp_path / "empty.png")
    assert "empty" in complaint(tab)
    # The page lives on.
    io.write(tmp_path / "good.png", rng.integers(0, 256, (90, 120)).astype(np.uint8))
    tab.at("file-input").set_input_files(tmp_path / "good.png")
    tab.until("undulaStudio.shown")
    tab.complaints = [one for one in tab.complaints if "status of 4" not in one]
    assert not tab.complaints


def bomb(width: int, height: int) -> bytes:
    """A PNG that says that it is huge."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(bytes(100_000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def test_two_browsers_see_their_own_pictures(open_tab: OpenTab, studio: Served, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    mine, yours = (rng.integers(0, 256, (64, 80)).astype(np.uint8) for _ in range(2))
    one, two = open_tab(studio), open_tab(studio)
    for tab, name, pixels in ((one, "mine.png", mine), (two, "yours.png", yours)):
        io.write(tmp_path / name, pixels)
        tab.at("file-input").set_input_files(tmp_path / name)
    for tab in (one, two):
        tab.until("undulaStudio.shown")
        tab.settled()
    np.testing.assert_array_equal(one.grey("before"), mine)
    np.testing.assert_array_equal(two.grey("before"), yours)
    for tab, name in ((one, "yours.png"), (two, "mine.png")):
        assert name not in tab.page.content()
    # Even who knows the key of another's session gets nothing of it.
    key = one.js("undulaStudio.path")
    assert key != two.js("undulaStudio.path")
    assert two.js(f"fetch('/studio/export/{key}/1').then((r) => r.status)") == 404
    assert (
        two.js(
            f"fetch('/studio/upload/{key}?name=a.png', {{method: 'POST', body: 'x'}}).then((r) => r.status)"
        )
        == 404
    )
    opened = two.js(
        f"""new Promise((done) => {{
            const socket = new WebSocket(`ws://${{location.host}}/studio/pictures/{key}`);
            socket.onmessage = () => done('a picture');
            socket.onclose = () => done('closed');
        }})"""
    )
    assert opened == "closed"
    two.change(lambda: two.at("remove-0").click())
    assert one.at("stage-0").count() == 1
    two.complaints = []


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


def test_a_foreign_origin_is_refused(open_tab: OpenTab, studio: Served, elsewhere: str) -> None:
    tab = open_tab(studio)
    key = tab.js("undulaStudio.path")
    stranger = tab.context.new_page()
    stranger.goto(elsewhere)
    for path in (f"/studio/pictures/{key}", "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"):
        address = studio.address.replace("http", "ws").rstrip("/") + path
        told = stranger.evaluate(
            f"""new Promise((done) => {{
                const socket = new WebSocket('{address}');
                socket.onopen = () => done('open');
                socket.onerror = () => done('refused');
            }})"""
        )
        assert told == "refused"
    upload = f"{studio.address}studio/upload/{key}?name=a.png"
    post = "{method: 'POST', mode: 'no-cors', body: 'x'}"
    told = stranger.evaluate(f"fetch('{upload}', {post}).then((r) => r.type, () => 'failed')")
    assert told in ("opaque", "failed")  # (nobody can read it; and nothing was taken)
    tab.complaints = []
    assert tab.at("welcome").is_visible()


def asked(
    port: int, path: str = "/", method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, headers=named, body=b"x" if method == "POST" else None)
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders())
    if answer.status != 101:
        answer.read()
    connection.close()
    return found


def socket_headers(port: int, **more: str) -> dict[str, str]:
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
        ({"Origin": "http://localhost:{port}"}, 403),  # (another name than that of the request)
        ({"Origin": "http://127.0.0.1:{port}"}, 101),
        ({"Origin": "http://evil.example:{port}", "Host": "evil.example:{port}"}, 403),
    ],
    ids=str,
)
def test_sockets_need_the_page_of_this_server(studio: Served, headers: dict[str, str], status: int) -> None:
    port = studio.port
    own = {name: value.format(port=port) for name, value in headers.items()}
    path = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    assert asked(port, path, **socket_headers(port, **own))[0] == status


def test_other_names_and_long_requests_are_refused(studio: Served) -> None:
    port = studio.port
    status, headers = asked(port)
    assert status == 200
    assert headers["x-frame-options"] == "DENY"
    assert "HttpOnly" in headers["set-cookie"]
    assert "SameSite=Strict" in headers["set-cookie"]
    assert asked(port, Host="evil.example")[0] == 403
    assert asked(port, Host=f"evil.example:{port}")[0] == 403
    assert asked(port, Host=f"localhost:{port}")[0] == 200
    assert asked(port, "/studio/upload/x", "POST")[0] == 403
    own = {"Origin": f"http://127.0.0.1:{port}", "Host": f"127.0.0.1:{port}"}
    assert asked(port, "/_nicegui/x", "POST", Content_Length=str(5 << 20), **own)[0] == 403
    for path in ("/studio/export/x/1", "/studio/export/../../etc/passwd", "/..%2f..%2fetc/passwd"):
        assert asked(port, path)[0] in (400, 404, 422)


def test_other_machines_need_a_flag_and_a_token(serve: Serve, open_tab: OpenTab) -> None:
    command = [sys.executable, "-m", "undula", "studio", "--no-browser", "--host", "0.0.0.0"]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 1
    assert "add --share" in refused.stderr
    shared = serve("--host", "0.0.0.0", "--share")
    assert "token=" in shared.address
    assert asked(shared.port)[0] == 403
    assert asked(shared.port, "/?token=guess")[0] == 403
    origin = {"Origin": f"http://127.0.0.1:{shared.port}"}
    path = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    assert asked(shared.port, path, **socket_headers(shared.port, **origin))[0] == 403
    tab = open_tab(shared)
    assert "token" not in tab.page.url
    tab.sample("noisy")
    np.testing.assert_array_equal(tab.grey("before"), io.read(io.sample("noisy")).pixels)
