"""Who may talk to the server: pages that it served itself, for visitors who came with the token.

    printed address, with the token ──▶ a cookie ──▶ page, sockets, uploads, exports, scripts: all need it

Host     is one that the server was started for, or a page elsewhere has made a name of its own point here
Origin   is that of this server, or a page elsewhere talks through the visitor's browser
token    was known to the visitor, on every address: any account of a machine can reach its 127.0.0.1
cookie   is named after the port, as browsers give cookies to all ports of a host, and signed with the token;
         it says who the visitor is, and what they open is theirs alone
length   of a request is no more than allowed, unless it is an upload, which has a limit of its own
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
MOST = 1 << 20  # bytes of a request that is no upload
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
BARE = (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'")
NEEDED = "this Studio needs a token: open the address that it printed when it was started"


def is_local(host: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    return host in LOCAL or host.startswith("127.")


def _headers(scope: Any) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def visitor_of(scope: Any) -> str:
    """Who asks, as their cookie says."""
    return str(scope.get("undula.visitor", ""))


class Guard:
    """Stands before an ASGI application.

    Parameters
    ----------
    app : ASGI application
    port : int
    token : str
        What a visitor must know.
    hosts : names that pages may be served under, besides those of this machine; None for any
    """

    def __init__(self, app: Any, port: int, token: str, hosts: Iterable[str] | None = ()) -> None:
        self.app, self._port, self._token = app, port, token
        self._hosts = (
            None if hosts is None else {f"[{name}]" if ":" in name else name for name in (*LOCAL, *hosts)}
        )
        self._ticket: str | None = None
        self._cookie = f"undula-studio-{port}"

    def ticket(self) -> str:
        """A token that admits once: for the command line of a browser, which all accounts can read."""
        self._ticket = secrets.token_urlsafe(24)
        return self._ticket

    def _is_mine(self, netloc: str) -> bool:
        """Whether it is a name of this server; any address, where the token alone tells who may come."""
        name, colon, port = netloc.rpartition(":")
        if not colon or (netloc.endswith("]")):
            name, port = netloc, "80"
        if not port.isdecimal() or int(port) != self._port:
            return False
        return self._hosts is None or name.lower() in self._hosts

    def _signed(self, visitor: str) -> str:
        """What a visitor's cookie says; only who knows the token can make one."""
        text = f"{self._cookie} {visitor}"
        return f"{visitor}.{hmac.new(self._token.encode(), text.encode(), hashlib.sha256).hexdigest()}"

    def _visitor(self, headers: dict[str, str]) -> str:
        """Whose cookie it is; nobody's, if there is none or somebody else made it."""
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return ""
        visitor = cookie.value.partition(".")[0] if cookie is not None else ""
        return visitor if cookie is not None and _same(cookie.value, self._signed(visitor)) else ""

    def _admits(self, token: str) -> bool:
        if _same(token, self._token):
            return True
        if self._ticket is None or not _same(token, self._ticket):
            return False
        self._ticket = None
        return True

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Passes on what may pass."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = _headers(scope)
        socket = scope["type"] == "websocket"
        wrong = self._wrong(scope, headers, socket)
        if wrong:
            await _refused(scope, receive, send, wrong)
            return
        visitor = self._visitor(headers)
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        entering = token is not None and not socket and scope["path"] == "/" and scope["method"] == "GET"
        if entering and token is not None and (self._admits(token[0]) or visitor):
            await _entered(send, self._cookie, self._signed(visitor or secrets.token_urlsafe(32)))
            return
        if not visitor:
            await _refused(scope, receive, send, NEEDED)
            return
        scope["undula.visitor"] = visitor
        if socket:
            await self.app(scope, receive, send)
            return

        async def answered(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *HEADERS]}
            await send(message)

        await self.app(scope, receive if _is_upload(scope) else _bounded(receive), answered)

    def _wrong(self, scope: Any, headers: dict[str, str], socket: bool) -> str:
        """Why a request may not pass; nothing if it may."""
        if not self._is_mine(headers.get("host", "")):
            return "this Studio was not started for that address"
        origin = headers.get("origin")
        if origin is None:
            # (Browsers always tell it of WebSockets, and of what changes something.)
            return "a page is needed to talk to this Studio" if socket or scope["method"] == "POST" else ""
        scheme, _, netloc = origin.partition("://")
        if scheme not in ("http", "https") or netloc != headers.get("host") or not self._is_mine(netloc):
            return "pages of other origins may not talk to this Studio"
        if not socket and int(headers.get("content-length") or 0) > MOST and not _is_upload(scope):
            return "that is too long"
        return ""


def _is_upload(scope: Any) -> bool:
    return bool(scope["path"].startswith("/studio/upload/"))


def _bounded(receive: Any) -> Any:
    """What is received, up to a limit."""
    taken = 0

    async def bounded() -> Any:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        return message if taken <= MOST else {"type": "http.disconnect"}

    return bounded


def _same(a: str, b: str) -> bool:
    return hmac.compare_digest(a.encode(), b.encode())


async def _answered(send: Any, status: int, kind: bytes, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    own = [
        (b"content-type", kind),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        BARE,
    ]
    await send({"type": "http.response.start", "status": status, "headers": [*own, *HEADERS, *headers]})
    await send({"type": "http.response.body", "body": body})


async def _refused(scope: Any, receive: Any, send: Any, why: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 4403, "reason": why})
        return
    await _answered(send, 403, b"text/plain; charset=utf-8", f"{why}\n".encode())


async def _entered(send: Any, name: str, value: str) -> None:
    """The token becomes a cookie, and leaves the address.

    It is a page that leads on, as browsers keep strict cookies from a redirection that began elsewhere, such
    as a click in a terminal that is a page itself.
    """
    page = b'<!doctype html><meta http-equiv="refresh" content="0;url=/"><title>Undula Studio</title>'
    cookie = f"{name}={value}; Path=/; HttpOnly; SameSite=Strict".encode()
    await _answered(send, 200, b"text/html; charset=utf-8", page, (b"set-cookie", cookie))
