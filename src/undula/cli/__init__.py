"""The command line: ``undula``."""

from __future__ import annotations

import sys

from ..errors import install_hint

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; what it returns is the exit status."""
    try:
        from .app import run

        return run(arguments)
    except KeyboardInterrupt:
        print("undula: interrupted; nothing was left half done", file=sys.stderr)
        return 130
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("typer", "rich", "click"):
            raise
        print(
            f"undula: the command line needs the package {error.name!r}: {install_hint('app')}",
            file=sys.stderr,
        )
        return 2
