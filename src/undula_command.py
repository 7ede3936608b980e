"""The entry point of the command ``undula``; it is outside the package on purpose.

Importing the package takes some tenths of a second. An interrupt in that time is caught here, and ends the
command with one line, as an interrupt does later.
"""

import sys


def main() -> int:
    """Runs the command; what it returns is the exit status."""
    try:
        from undula.cli import main as run

        return run()
    except KeyboardInterrupt:
        print("undula: interrupted; nothing was left half done", file=sys.stderr)
        return 130
