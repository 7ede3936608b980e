"""The server of the Studio: its address, token and lifetime."""

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

from ..errors import NO_FILE, ArgumentError, FileError
from ..io.files import import_optional
from .budget import ServerBudget
from .decoding import StudioLimits
from .folders import private_folder
from .guard import Guard, is_local
from .policy import Policy
from .session_registry import SessionRegistry

__all__ = ["ServerOptions", "serve"]

ALL_ADDRESSES = ("0.0.0.0", "::")
MIN_TOKEN_CHARACTERS = 12


@dataclass(frozen=True)
class ServerOptions:
    """Options of a server.

    Parameters
    ----------
    files : sequence of Path, default ()
        Files that are open in every new tab.
    host : str, optional
        The address to listen on; the default is 127.0.0.1, or all addresses with ``share``.
    port : int, default 8765
        The first port to try; 0 stands for any free port.
    share : bool, default False
        Whether other machines may connect.
    token : str, optional
        The secret that visitors must present; the default is a random one.
    exports : Path, default "undula-exports"
        The folder that exports are written to.
    limits : StudioLimits, optional
        The resources that visitors may use.
    show : bool, default True
        Whether to open a browser.
    """

    files: Sequence[Path] = ()
    host: str | None = None
    port: int = 8765
    share: bool = False
    token: str | None = None
    exports: Path = Path("undula-exports")
    limits: StudioLimits = field(default_factory=StudioLimits)
    show: bool = True


def _listen(host: str, port: int) -> socket.socket:
    """Listen on a port, or on the next free one if it is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ports = [port] if port == 0 else range(port, min(port + 20, 1 << 16))
    for number in ports:
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, number))
            listener.listen(128)  # Connections wait until everything is loaded.
        except OSError as error:
            listener.close()
            if isinstance(error, socket.gaierror) or number == ports[-1]:
                raise FileError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
            continue
        return listener
    raise FileError(f"cannot listen on {host}:{port}")


def _check(options: ServerOptions) -> tuple[str, str]:
    """Check the options, and return the address to listen on and the token."""
    host = options.host or ("0.0.0.0" if options.share else "127.0.0.1")
    if not is_local(host) and not options.share:
        raise ArgumentError(f"{host} is reachable from other machines; add --share to allow that")
    if is_local(host) and options.share:
        raise ArgumentError(
            f"--share is for other machines, and {host} is reachable from this machine only: omit --host to"
            " listen on all addresses, or pass an address of this machine in the network"
        )
    if options.token is not None and len(options.token) < MIN_TOKEN_CHARACTERS:
        raise ArgumentError(
            f"--token needs at least {MIN_TOKEN_CHARACTERS} characters, got {len(options.token)};"
            " omit it for a random token"
        )
    for path in options.files:
        if not path.is_file():
            raise FileError(f"cannot read {path}: {NO_FILE}")
    return host, options.token or secrets.token_urlsafe(24)


def _host_names(host: str) -> list[str]:
    """Return the host names for addresses to print; the first one is for this machine."""
    if host not in ALL_ADDRESSES:
        return [f"[{host}]" if ":" in host else host]
    names = ["127.0.0.1"]
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # Sends nothing, but selects the address in the network.
        names.append(probe.getsockname()[0])
    return names


class _StopSignal:
    """A signal handler that stops the server, even if the signal comes before the server runs.

    It only sets flags. An exception could be raised in a callback of an import, where it would be swallowed
    and the signal lost.
    """

    server: Any = None
    received = False

    def __call__(self, number: int, frame: Any) -> None:
        self.received = True
        if self.server is not None:
            self.server.should_exit = True

    @contextmanager
    def installed(self) -> Iterator[None]:
        previous: dict[signal.Signals, Any] = {}
        with suppress(ValueError):  # Only the main thread can install handlers.
            for name in ("SIGINT", "SIGTERM", "SIGHUP"):
                if hasattr(signal, name):
                    previous[signal.Signals[name]] = signal.signal(signal.Signals[name], self)
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


def serve(options: ServerOptions, say: Callable[[str], None] = print) -> None:
    """Serve the Studio until the process is interrupted.

    Parameters
    ----------
    options : ServerOptions
    say : callable, default print
        Called with each line to print, such as the address of the page.
    """
    stop = _StopSignal()
    with stop.installed():
        _serve(options, say, stop)


def _serve(options: ServerOptions, say: Callable[[str], None], stop: _StopSignal) -> None:
    host, token = _check(options)
    import_optional("nicegui", "studio")
    uvicorn = import_optional("uvicorn", "studio")
    with _listen(host, options.port) as listener, private_folder() as folder:
        host, port = listener.getsockname()[:2]
        from .web import application

        sessions = SessionRegistry(ServerBudget(options.limits, folder), raw=is_local(host))
        app = Policy(application(options, sessions))
        guard = Guard(app, port, token, [host] if is_local(host) else None)
        config = uvicorn.Config(
            guard,
            log_level="warning",
            access_log=False,  # Addresses contain the token.
            ws_max_size=80 << 20,
            ws_per_message_deflate=False,
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        stop.server = uvicorn.Server(config)
        names = _host_names(host)
        say(f"Undula Studio: http://{names[0]}:{port}/?token={quote(token)}")
        for name in names[1:]:
            say(f"From other machines: http://{name}:{port}/?token={quote(token)}")
        say(f"Exports are written to {options.exports.absolute()}; press Ctrl+C to stop")
        if options.show and not stop.received:
            with suppress(webbrowser.Error):
                webbrowser.open(f"http://{names[0]}:{port}/?token={guard.ticket()}")
        if stop.received:
            stop.server.should_exit = True
        stop.server.run(sockets=[listener])
