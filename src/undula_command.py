"""The entry point of the command ``undula``, outside the package so that an interrupt is caught early.

Importing the package takes some tenths of a second. An interrupt during that time ends the command with one
line instead of a traceback, as it does later.
"""

import sys


def main() -> int:
    """Run the command and return its exit status."""
    try:
        from undula.cli import main as run

        return run()
    except KeyboardInterrupt:
        print("undula: interrupted; nothing was left half done", file=sys.stderr)
        return 130
