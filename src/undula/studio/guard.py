"""Access control: only pages of this server, for visitors who presented its token, get an answer.

    printed address with the token ──▶ a cookie ──▶ required for page, sockets, uploads, exports and scripts

Host     must be a name that the server was started for: a foreign page may let a name of its own point here
Origin   must be this server: a foreign page may send requests through the visitor's browser
token    is required even on 127.0.0.1, which every account of a machine can reach
cookie   is named after the port, since browsers send cookies to all ports of a host, and signed with the
         token; it identifies the visitor, who alone has access to the files that they open
length   of requests is limited; uploads have a limit of their own
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

__all__ = ["Guard", "is_local", "visitor_of"]

LOCAL = ("127.0.0.1", "localhost", "::1")
MAX_REQUEST_BYTES = 1 << 20  # of requests other than uploads
SECURITY_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
STRICT_POLICY = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'")
TOKEN_REQUIRED = "a token is required: open the address that the Studio printed when it was started"


def is_local(host: str) -> bool:
    """Return whether an address is reachable from this machine only."""
    return host in LOCAL or host.startswith("127.")


def _headers(scope: Any) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def visitor_of(scope: Any) -> str:
    """Return the visitor of a request, as identified by the cookie."""
    return str(scope.get("undula.visitor", ""))


class Guard:
    """ASGI middleware that checks every request.

    Parameters
    ----------
    app : ASGI application
    port : int
    token : str
        The secret that visitors must present.
    hosts : iterable of str or None, default ()
        Host names to serve, besides those of the local machine; None for any.
    """

    def __init__(self, app: Any, port: int, token: str, hosts: Iterable[str] | None = ()) -> None:
        self.app, self._port, self._token = app, port, token
        self._hosts = (
            None if hosts is None else {f"[{name}]" if ":" in name else name for name in (*LOCAL, *hosts)}
        )
        self._ticket: str | None = None
        self._cookie = f"undula-studio-{port}"

    def ticket(self) -> str:
        """Return a token that is valid once, for the command line of a browser, which everyone can read."""
        self._ticket = secrets.token_urlsafe(24)
        return self._ticket

    def _is_own_address(self, netloc: str) -> bool:
        """Return whether a host and port are this server's; the host is not checked if any is allowed."""
        name, colon, port = netloc.rpartition(":")
        if not colon or (netloc.endswith("]")):
            name, port = netloc, "80"
        if not port.isdecimal() or int(port) != self._port:
            return False
        return self._hosts is None or name.lower() in self._hosts

    def _sign(self, visitor: str) -> str:
        """Return the cookie of a visitor, signed with the token."""
        text = f"{self._cookie} {visitor}"
        return f"{visitor}.{hmac.new(self._token.encode(), text.encode(), hashlib.sha256).hexdigest()}"

    def _visitor(self, headers: dict[str, str]) -> str:
        """Return the visitor that the cookie identifies, or "" without a valid cookie."""
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return ""
        visitor = cookie.value.partition(".")[0] if cookie is not None else ""
        return visitor if cookie is not None and _same(cookie.value, self._sign(visitor)) else ""

    def _accept(self, token: str) -> bool:
        if _same(token, self._token):
            return True
        if self._ticket is None or not _same(token, self._ticket):
            return False
        self._ticket = None
        return True

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = _headers(scope)
        socket = scope["type"] == "websocket"
        objection = self._objection(scope, headers, socket)
        if objection:
            await _refuse(scope, receive, send, objection)
            return
        visitor = self._visitor(headers)
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        entering = token is not None and not socket and scope["path"] == "/" and scope["method"] == "GET"
        if entering and token is not None and (self._accept(token[0]) or visitor):
            await _enter(send, self._cookie, self._sign(visitor or secrets.token_urlsafe(32)))
            return
        if not visitor:
            await _refuse(scope, receive, send, TOKEN_REQUIRED)
            return
        scope["undula.visitor"] = visitor
        if socket:
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *SECURITY_HEADERS]}
            await send(message)

        await self.app(scope, receive if _is_upload(scope) else _limited(receive), send_with_headers)

    def _objection(self, scope: Any, headers: dict[str, str], socket: bool) -> str:
        """Return why a request is refused, or ""."""
        if not self._is_own_address(headers.get("host", "")):
            return "this Studio was not started for this address"
        origin = headers.get("origin")
        if origin is None:
            # Browsers always send an origin with WebSockets and POST requests.
            return "only pages of this Studio may connect" if socket or scope["method"] == "POST" else ""
        scheme, _, netloc = origin.partition("://")
        if (
            scheme not in ("http", "https")
            or netloc != headers.get("host")
            or not self._is_own_address(netloc)
        ):
            return "pages of other origins may not connect to this Studio"
        if (
            not socket
            and int(headers.get("content-length") or 0) > MAX_REQUEST_BYTES
            and not _is_upload(scope)
        ):
            return "the request is too long"
        return ""


def _is_upload(scope: Any) -> bool:
    return bool(scope["path"].startswith("/studio/upload/"))


def _limited(receive: Any) -> Any:
    """Disconnect when more than the largest allowed request was received."""
    received = 0

    async def limited() -> Any:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        return message if received <= MAX_REQUEST_BYTES else {"type": "http.disconnect"}

    return limited


def _same(a: str, b: str) -> bool:
    return hmac.compare_digest(a.encode(), b.encode())


async def _respond(send: Any, status: int, kind: bytes, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    headers += ((b"content-type", kind), (b"content-length", str(len(body)).encode()))
    headers += ((b"cache-control", b"no-store"), STRICT_POLICY, *SECURITY_HEADERS)
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _refuse(scope: Any, receive: Any, send: Any, reason: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 4403, "reason": reason})
        return
    await _respond(send, 403, b"text/plain; charset=utf-8", f"{reason}\n".encode())


async def _enter(send: Any, name: str, value: str) -> None:
    """Turn the token into a cookie, and remove it from the address.

    The answer is a page that loads the Studio. Browsers would withhold strict cookies after an HTTP
    redirection that began on another site, such as a click in a terminal that runs in the browser.
    """
    page = b'<!doctype html><meta http-equiv="refresh" content="0;url=/"><title>Undula Studio</title>'
    cookie = f"{name}={value}; Path=/; HttpOnly; SameSite=Strict".encode()
    await _respond(send, 200, b"text/html; charset=utf-8", page, (b"set-cookie", cookie))
