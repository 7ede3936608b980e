"""The Content-Security-Policy of the page.

The page loads from this server only, and connects to no other. Exceptions, with their reasons:

script-src 'nonce-…'       NiceGUI's page has inline scripts; every response has a new nonce. Names and files
                           of visitors reach the page later, over a socket, and never get a nonce
script-src 'unsafe-eval'   NiceGUI evaluates code from its server, and Vue compiles templates in the browser
style-src 'unsafe-inline'  bar widths, colours and the theme are set as styles of elements
img-src data:              thumbnails of the inputs
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
POLICY = "; ".join(f"{name} {sources}" for name, sources in RULES.items())


class Policy:
    """ASGI middleware that adds the policy to every response, and a nonce to the scripts of pages."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # Nonces are inserted into pages, so these must not be compressed.
        if not scope["path"].startswith("/_nicegui/"):
            scope = {**scope, "headers": [h for h in scope["headers"] if h[0].lower() != b"accept-encoding"]}
        nonce = secrets.token_urlsafe(16)
        start: Any = None  # the start of a page, held back until the page is complete
        page = bytearray()

        async def send_with_policy(message: Any) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", []))
                headers.append((b"content-security-policy", POLICY.format(nonce=nonce).encode()))
                message = {**message, "headers": headers}
                kind = next((value for name, value in headers if name.lower() == b"content-type"), b"")
                if kind.startswith(b"text/html"):
                    start = message
                    return
            elif message["type"] == "http.response.body" and start is not None:
                page.extend(message.get("body", b""))
                if message.get("more_body"):
                    return
                html = bytes(page).replace(b"<script", f'<script nonce="{nonce}"'.encode())
                others = [h for h in start["headers"] if h[0].lower() != b"content-length"]
                length = (b"content-length", str(len(html)).encode())
                await send({**start, "headers": [*others, length]})
                message = {"type": "http.response.body", "body": html}
            await send(message)

        await self.app(scope, receive, send_with_policy)
