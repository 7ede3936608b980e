"""The command line, ``undula``."""

from __future__ import annotations

import sys

from ..errors import install_hint

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    arguments : list of str, optional
        The command and its arguments. By default, those of this process.

    Returns
    -------
    int
        The exit status: 0 for success, 1 for an error, 2 for incorrect usage, 3 if ``undula accept`` finds
        the machine too slow, 4 if some of several files could not be filtered, 130 if interrupted.
    """
    try:
        from .app import run

        return run(arguments)
    except KeyboardInterrupt:
        print("undula: interrupted; nothing was left half done", file=sys.stderr)
        return 130
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich", "click"):
            raise
        hint = install_hint("app")
        print(f"undula: the command line needs the package {error.name!r}: {hint}", file=sys.stderr)
        return 2
