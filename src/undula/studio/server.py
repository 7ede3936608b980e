"""Serving: on which address, for whom, until when."""

from __future__ import annotations

import secrets
import signal
import socket
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ..errors import ArgumentError, FileError
from ..io.files import import_optional
from .decoding import Limits
from .folders import private_folder
from .guard import Guard, is_local
from .policy import Policy
from .room import ServerBudget
from .shelf import Shelf

__all__ = ["Options", "serve"]

EVERYWHERE = ("0.0.0.0", "::")
SHORTEST = 12  # characters of a token that somebody chose


@dataclass(frozen=True)
class Options:
    """How the Studio is served.

    Parameters
    ----------
    files : paths that every visitor finds in the strip
    host : str, optional
        The address to listen on: 127.0.0.1 if none is given, or all addresses with ``share``.
    port : int
        0 is any that is free.
    share : bool
        Whether other machines may come.
    token : str, optional
        What visitors must know; a new one if none is given.
    exports : path
        The one folder that exports are written to.
    show : bool
        Whether a browser is opened.
    """

    files: Sequence[Path] = ()
    host: str | None = None
    port: int = 8765
    share: bool = False
    token: str | None = None
    exports: Path = Path("undula-exports")
    limits: Limits = field(default_factory=Limits)
    show: bool = True


def _bound(host: str, port: int) -> socket.socket:
    """A socket that is listened on; the next free port, if this one is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    tries = [port] if port == 0 else range(port, min(port + 20, 1 << 16))
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


def _checked(options: Options) -> tuple[str, str]:
    """The address to listen on and the token, if all that was asked for can be."""
    host = options.host or ("0.0.0.0" if options.share else "127.0.0.1")
    if not is_local(host) and not options.share:
        raise ArgumentError(f"{host} can be reached from other machines; if that is meant, add --share")
    if is_local(host) and options.share:
        raise ArgumentError(
            f"{host} can be reached from this machine alone, and --share is for others: leave --host out to"
            " listen on all addresses, or give one of this machine's addresses in the network"
        )
    if options.token is not None and len(options.token) < SHORTEST:
        raise ArgumentError(
            f"a token of {SHORTEST} characters or more is needed, got {len(options.token)};"
            " leave --token out, and one is made"
        )
    for path in options.files:
        if not path.is_file():
            raise FileError(f"cannot read {path}: there is no such file")
    return host, options.token or secrets.token_urlsafe(24)


def _reached_by(host: str) -> list[str]:
    """Names to put into an address: first that for this machine."""
    if host not in EVERYWHERE:
        return [f"[{host}]" if ":" in host else host]
    names = ["127.0.0.1"]
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # (nothing is sent: it tells which address would be used)
        names.append(probe.getsockname()[0])
    return names


class _Ending:
    """A signal ends the server, also one that comes before there is one.

    Handlers only note it. One that raises may do so where nobody hears it, such as in a callback of an
    import, and the signal is lost.
    """

    server: Any = None
    asked = False

    def __call__(self, number: int, frame: Any) -> None:
        self.asked = True
        if self.server is not None:
            self.server.should_exit = True

    @contextmanager
    def handled(self) -> Iterator[None]:
        before: dict[signal.Signals, Any] = {}
        with suppress(ValueError):  # (only the main thread may)
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                if hasattr(signal, name):
                    before[signal.Signals[name]] = signal.signal(signal.Signals[name], self)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def serve(options: Options, say: Callable[[str], None] = print) -> None:
    """Serves until somebody interrupts it."""
    ending = _Ending()
    with ending.handled():
        _serve(options, say, ending)


def _serve(options: Options, say: Callable[[str], None], ending: _Ending) -> None:
    host, token = _checked(options)
    import_optional("nicegui", "studio")
    uvicorn = import_optional("uvicorn", "studio")
    with _bound(host, options.port) as own, private_folder() as folder:
        host, port = own.getsockname()[:2]
        from .web import application

        shelf = Shelf(ServerBudget(options.limits, folder), raw=is_local(host))
        app = Policy(application(options, shelf))
        guard = Guard(app, port, token, [host] if is_local(host) else None)
        config = uvicorn.Config(
            guard,
            log_level="warning",
            access_log=False,  # (addresses have the token in them)
            ws_max_size=80 << 20,
            ws_per_message_deflate=False,
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        ending.server = uvicorn.Server(config)
        names = _reached_by(host)
        say(f"Undula Studio: http://{names[0]}:{port}/?token={quote(token)}")
        for name in names[1:]:
            say(f"for other machines: http://{name}:{port}/?token={quote(token)}")
        say(f"exports go to {options.exports.absolute()}; Ctrl+C ends it")
        if options.show and not ending.asked:
            with suppress(webbrowser.Error):
                webbrowser.open(f"http://{names[0]}:{port}/?token={guard.ticket()}")
        if ending.asked:
            ending.server.should_exit = True
        ending.server.run(sockets=[own])
