"""Indented program text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Text", "literal"]


class Text:
    """Lines of a C-like language.

    Examples
    --------
    >>> text = Text()
    >>> with text.block("for (int j = 0; j < 4; ++j)"):
    ...     text("v[j] = 0;")
    >>> print(text)
    for (int j = 0; j < 4; ++j) {
        v[j] = 0;
    }
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._depth = 0

    def __call__(self, *lines: str) -> None:
        """Append lines."""
        for line in lines:
            self._lines.append("    " * self._depth + line if line else "")

    @contextmanager
    def block(self, head: str = "") -> Iterator[None]:
        """Indent what is appended within the context, in braces after ``head``."""
        self(f"{head} {{".lstrip())
        self._depth += 1
        yield
        self._depth -= 1
        self("}")

    @contextmanager
    def unrolled(self, name: str, count: int, start: int = 0) -> Iterator[None]:
        """Append a loop that the compiler unrolls completely."""
        self("#pragma unroll")
        with self.block(f"for (int {name} = {start}; {name} < {count}; ++{name})"):
            yield

    def __str__(self) -> str:
        return "\n".join(self._lines)


def literal(value: float, number: str) -> str:
    """Return a coefficient as a literal that round-trips in its type.

    Examples
    --------
    >>> literal(0.5, "float"), literal(1 / 3, "double"), literal(-2.0, "float")
    ('0.5f', '0.3333333333333333', '-2.0f')
    """
    if number == "int":
        return repr(int(value))
    if number == "double":
        return repr(float(value))
    text = f"{value:.9g}"
    return (text if any(c in text for c in ".en") else text + ".0") + "f"
