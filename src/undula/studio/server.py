"""Serving: on which address, for whom."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import ArgumentError, FileError
from ..io.files import needed
from .decoding import Limits
from .guard import Guard, is_local
from .shelf import Shelf

__all__ = ["Options", "serve"]


@dataclass(frozen=True)
class Options:
    """How the Studio is served.

    Parameters
    ----------
    files : paths that every visitor finds in the strip
    host, port : where; port 0 is any that is free
    share : bool
        Whether other machines may come, which needs a token.
    token : str, optional
        What visitors must know; one is made where other machines may come.
    exports : path
        The one folder that exports are written to.
    show : bool
        Whether a browser is opened.
    """

    files: Sequence[Path] = ()
    host: str = "127.0.0.1"
    port: int = 8765
    share: bool = False
    token: str | None = None
    exports: Path = Path("undula-exports")
    limits: Limits = field(default_factory=Limits)
    show: bool = True


def _bound(host: str, port: int) -> socket.socket:
    """A socket that is listened on; the next free port, if this one is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    tries = [port] if port == 0 else range(port, port + 20)
    for number in tries:
        own = socket.socket(family)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            own.bind((host, number))
            own.listen(128)  # (whoever comes before all is loaded waits)
        except OSError as error:
            own.close()
            if isinstance(error, socket.gaierror) or number == tries[-1]:
                raise FileError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
            continue
        return own
    raise FileError(f"cannot listen on {host}:{port}")


def serve(options: Options, say: Callable[[str], None] = print) -> None:
    """Serves until somebody interrupts it."""
    needed("nicegui", "studio")
    uvicorn = needed("uvicorn", "studio")
    if not is_local(options.host) and not options.share:
        raise ArgumentError(
            f"{options.host} can be reached from other machines; if that is meant, add --share, and a token"
            " will be asked for"
        )
    for path in options.files:
        if not path.is_file():
            raise FileError(f"cannot read {path}: there is no such file")
    own = _bound(options.host, options.port)
    host, port = own.getsockname()[:2]
    token = options.token or (None if is_local(options.host) else secrets.token_urlsafe(24))
    from .web import application

    shelf = Shelf(options.limits, raw=is_local(options.host))
    app = application(options, shelf)
    hosts: list[str] | None = [host] if is_local(options.host) else None
    guarded = Guard(app, port, hosts, token)
    name = "127.0.0.1" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    address = f"http://{name}:{port}/" + (f"?token={token}" if token else "")
    say(f"Undula Studio: {address}")
    say(f"exports go to {options.exports.absolute()}; Ctrl+C ends it")
    if options.show:
        with suppress(webbrowser.Error):
            webbrowser.open(address)
    config = uvicorn.Config(
        guarded,
        log_level="warning",
        ws_max_size=80 << 20,
        ws_per_message_deflate=False,
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    try:
        uvicorn.Server(config).run(sockets=[own])
    except KeyboardInterrupt:
        pass
    finally:
        own.close()
