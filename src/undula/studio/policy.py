"""What a page of the Studio may do in a browser: its Content-Security-Policy.

Everything comes from this server, and goes nowhere else. Exceptions, and why:

script-src 'nonce-…'       NiceGUI's page has inline scripts; each answer has a nonce of its own. What
                           visitors open and type reaches the page later, over a socket, and never gets one
script-src 'unsafe-eval'   NiceGUI evaluates what its server sends, and Vue compiles templates in the browser
style-src 'unsafe-inline'  widths of bars, colours of marks and the theme are written as styles of elements
img-src data:              thumbnails of the strip
"""

from __future__ import annotations

import secrets
from typing import Any

__all__ = ["Policy"]

RULES = {
    "default-src": "'self'",
    "script-src": "'self' 'unsafe-eval' 'nonce-{nonce}'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data:",
    "media-src": "'none'",
    "worker-src": "'none'",
    "frame-src": "'none'",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
TEXT = "; ".join(f"{name} {sources}" for name, sources in RULES.items())


class Policy:
    """Stands before an ASGI application, gives scripts of its pages a nonce, and all answers the policy."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Passes a request on, and its answer back."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if not scope["path"].startswith("/_nicegui/"):  # (a page is written into: it must not be compressed)
            scope = {**scope, "headers": [h for h in scope["headers"] if h[0].lower() != b"accept-encoding"]}
        nonce = secrets.token_urlsafe(16)
        start: Any = None  # of a page, which waits until all of it is there
        page = bytearray()

        async def answered(message: Any) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", []))
                headers.append((b"content-security-policy", TEXT.format(nonce=nonce).encode()))
                message = {**message, "headers": headers}
                kind = next((value for name, value in headers if name.lower() == b"content-type"), b"")
                if kind.startswith(b"text/html"):
                    start = message
                    return
            elif message["type"] == "http.response.body" and start is not None:
                page.extend(message.get("body", b""))
                if message.get("more_body"):
                    return
                whole = bytes(page).replace(b"<script", f'<script nonce="{nonce}"'.encode())
                others = [h for h in start["headers"] if h[0].lower() != b"content-length"]
                length = (b"content-length", str(len(whole)).encode())
                await send({**start, "headers": [*others, length]})
                message = {"type": "http.response.body", "body": whole}
            await send(message)

        await self.app(scope, receive, answered)
