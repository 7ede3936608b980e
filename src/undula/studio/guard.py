"""Who may talk to the server: pages that it served itself, and visitors who know the token.

Host     is one that the server was started for, or a page elsewhere has made a name of its own point here
Origin   is that of this server, or a page elsewhere talks through the visitor's browser
token    is known, where the server can be reached from other machines
visitor  has a cookie that nobody else knows; what they open is theirs alone
length   of a request is no more than allowed, unless it is an upload, which has a limit of its own
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

__all__ = ["VISITOR", "Guard", "is_local", "visitor_of"]

VISITOR = "undula-visitor"
TOKEN = "undula-token"
LOCAL = ("127.0.0.1", "localhost", "::1")
MOST = 1 << 20  # bytes of a request that is no upload
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]


def is_local(host: str) -> bool:
    """Whether an address can be reached from this machine alone."""
    return host in LOCAL or host.startswith("127.")


def _headers(scope: Any) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def _cookies(headers: dict[str, str]) -> dict[str, str]:
    try:
        return {name: part.value for name, part in SimpleCookie(headers.get("cookie", "")).items()}
    except CookieError:
        return {}


def visitor_of(scope: Any) -> str:
    """Who asks: what their cookie says, or will say from now on."""
    return str(scope.get("undula.visitor", ""))


class Guard:
    """Stands before an ASGI application.

    Parameters
    ----------
    app : ASGI application
    port : int
    hosts : names that pages may be served under, besides those of this machine; None for any, with a token
    token : str, optional
        What a visitor must know.
    """

    def __init__(
        self, app: Any, port: int, hosts: Iterable[str] | None = (), token: str | None = None
    ) -> None:
        self.app, self.token = app, token
        self._any = hosts is None and token is not None
        self._hosts = {f"[{name}]" if ":" in name else name for name in (*LOCAL, *(hosts or ()))}
        self._port = port

    def _own(self, netloc: str) -> bool:
        """Whether it is a name of this server; any address, where the token tells who may come."""
        name, colon, port = netloc.rpartition(":")
        if not colon or (netloc.endswith("]")):
            name, port = netloc, "80"
        if not port.isdecimal() or int(port) != self._port:
            return False
        return self._any or name.lower() in self._hosts

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
        cookies, new = _cookies(headers), []
        if self.token is not None and not _same(cookies.get(TOKEN, ""), self.token):
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
            if socket or not _same(given, self.token):
                await _refused(
                    scope, receive, send, "this Studio needs the token that it printed when it was started"
                )
                return
            await _entered(send, self.token)
            return
        visitor = cookies.get(VISITOR, "")
        if len(visitor) < 32:
            visitor = secrets.token_urlsafe(32)
            new.append((b"set-cookie", _cookie(VISITOR, visitor)))
        scope["undula.visitor"] = visitor
        if socket:
            await self.app(scope, receive, send)
            return

        async def answered(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *HEADERS, *new]}
            await send(message)

        await self.app(scope, receive if _is_upload(scope) else _bounded(receive), answered)

    def _wrong(self, scope: Any, headers: dict[str, str], socket: bool) -> str:
        """Why a request may not pass; nothing if it may."""
        if not self._own(headers.get("host", "")):
            return "this Studio was not started for that address"
        origin = headers.get("origin")
        if origin is None:
            # (Browsers always tell it of WebSockets, and of what changes something.)
            return "a page is needed to talk to this Studio" if socket or scope["method"] == "POST" else ""
        scheme, _, netloc = origin.partition("://")
        if scheme not in ("http", "https") or netloc != headers.get("host") or not self._own(netloc):
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


def _cookie(name: str, value: str) -> bytes:
    return f"{name}={value}; Path=/; HttpOnly; SameSite=Strict".encode()


async def _refused(scope: Any, receive: Any, send: Any, why: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 4403, "reason": why})
        return
    body = f"{why}\n".encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 403, "headers": [*headers, *HEADERS]})
    await send({"type": "http.response.body", "body": body})


async def _entered(send: Any, token: str) -> None:
    """The token becomes a cookie, and leaves the address."""
    headers = [(b"location", b"/"), (b"set-cookie", _cookie(TOKEN, token)), *HEADERS]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
