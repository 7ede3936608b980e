"""Every error that Undula raises on purpose, and the tree they form.

::

    UndulaError
    ├── ArgumentError (ValueError)          a value that cannot be used
    │   ├── UnknownNameError                a wavelet, scheme or mode nobody knows
    │   ├── ReconstructionError             filters that do not give the signal back
    │   └── NotInvertibleError              a polynomial or matrix without an inverse
    └── ArgumentTypeError (TypeError)       a value of the wrong kind

Each message repeats what was passed, says what is allowed and, where there is one, what to do.
"""

from collections.abc import Iterable

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "NotInvertibleError",
    "ReconstructionError",
    "UndulaError",
    "UnknownNameError",
]


class UndulaError(Exception):
    """Base class of all errors raised by Undula."""


class ArgumentError(UndulaError, ValueError):
    """A value that cannot be used."""


class ArgumentTypeError(UndulaError, TypeError):
    """A value of the wrong kind."""


class ReconstructionError(ArgumentError):
    """Filters that do not give the signal back."""


class NotInvertibleError(ArgumentError):
    """A polynomial or matrix that has no inverse among Laurent polynomials."""


class UnknownNameError(ArgumentError):
    """A name nobody knows; the message lists the nearest ones.

    >>> str(UnknownNameError("wavelet", "db2x", ["db2", "db20", "haar"]))
    "unknown wavelet 'db2x'; did you mean 'db2' or 'db20'?"
    """

    def __init__(self, kind: str, name: object, known: Iterable[str]) -> None:
        from difflib import get_close_matches  # here, since no import should pay for it

        names = list(known)
        near = get_close_matches(str(name).lower(), names, n=4, cutoff=0.55)
        if near:
            quoted = [repr(n) for n in near]
            hint = "did you mean " + " or ".join(filter(None, [", ".join(quoted[:-1]), quoted[-1]]))
            hint += "?"
        else:
            hint = "known: " + ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
        super().__init__(f"unknown {kind} {name!r}; {hint}")
