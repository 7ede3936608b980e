"""Borders: what stands beyond the ends of a line, as functions of a kernel.

Each border is two functions: ``<name>_place(p, n, t)``, the place on the line of the t-th sample that place p
is made of, -1 for nothing; and ``<name>_weight(p, n, t)``, where there are factors: the first one is that of
sample 0, the next that of the difference of samples 1 and 2, the last that of samples 3 and 4 (see
``plans.boundary.combinations``). On the way back p numbers coefficients; an LWT folds their places on the
line of n samples, and a DWT has n coefficients and nothing beyond.
"""

from __future__ import annotations

from dataclasses import dataclass

from .dialect import Dialect
from .text import Text

# (Beyond the ends is mostly just beyond: one addition, and a division in a branch that is hardly ever taken.)
FOLDS = """\
{function} int wrapped(int p, int n) {{
    p += p < 0 ? n : 0;
    p -= p >= n ? n : 0;
    if (p < 0 || p >= n) p = (p % n + n) % n;
    return p;
}}
{function} int mirrored(int p, int n, int last) {{
    p = p < 0 ? -(last & 1) - p : p;
    p = p >= n ? last - p : p;
    while (p < 0 || p >= n) p = p < 0 ? -(last & 1) - p : last - p;
    return p;
}}"""

__all__ = ["FOLDS", "Border", "back_borders", "forward_border"]

# Each body is a sequence of statements with p, n and t; ``wrapped`` is the remainder that is never
# negative, and ``mirrored`` folds at both ends, so that ``last`` comes back to 0.
_PLACES = {
    "zero": "return p < 0 || p >= n ? -1 : p;",
    "constant": "return p < 0 ? 0 : p >= n ? n - 1 : p;",
    "symmetric": "return mirrored(p, n, 2 * n - 1);",
    "periodic": "return wrapped(p, n);",
    "periodization": "const int q = wrapped(p, n + n % 2);\nreturn q < n ? q : n - 1;",
    "reflect": "return n == 1 ? 0 : mirrored(p, n, 2 * n - 2);",
    "antisymmetric": "return mirrored(p, n, 2 * n - 1);",
    "smooth": "if (t < 2) return p < 0 ? 0 : n - 1;\nreturn n == 1 ? 0 : p < 0 ? 1 : n - 2;",
    "antireflect": (
        "if (n == 1 || t == 4) return 0;\nif (t == 3) return n - 1;\n"
        "const int back = wrapped(p, 2 * n - 2) >= n;\n"
        "if (t == 1 || (t == 0 && back)) return p < 0 ? 0 : n - 1;\nreturn mirrored(p, n, 2 * n - 2);"
    ),
    # Coefficients of an LWT, low and high, by the places 2k and 2k + 1 of a line of n samples.
    "folded low": "return n == 1 ? 0 : mirrored(2 * p, n, 2 * n - 2) / 2;",
    "folded high": "return n == 1 ? -1 : mirrored(2 * p + 1, n, 2 * n - 2) / 2;",
    "wrapped": "return n == 0 ? -1 : wrapped(p, n);",
}
_WEIGHTS = {
    "antisymmetric": "return wrapped(p, 2 * n) < n ? 1 : -1;",
    "smooth": "return t == 0 ? 1 : p < 0 ? -p : p - n + 1;",
    "antireflect": (
        "if (n == 1 || t == 0) return t == 0;\n"
        "const int q = wrapped(p, 2 * n - 2), back = q >= n, turn = (p - q) / (2 * n - 2);\n"
        "return t == 1 ? back : 2 * (turn + (back && p < 0));"
    ),
}
_DIFFERENCES = {"smooth": 1, "antireflect": 2}


@dataclass(frozen=True)
class Border:
    """How a line goes on.

    Parameters
    ----------
    kind : str
        A mode of the DWT; ``folded low`` and ``folded high`` for coefficients of an LWT.
    """

    kind: str

    @property
    def differences(self) -> int:
        """Differences of samples that a place beyond the ends is made of, besides one sample."""
        return _DIFFERENCES.get(self.kind, 0)

    @property
    def weighted(self) -> bool:
        """Samples have factors."""
        return self.kind in _WEIGHTS

    @property
    def certain(self) -> bool:
        """Every place beyond the ends is made of samples."""
        return self.kind not in ("zero", "folded high", "wrapped")

    def emit(self, text: Text, dialect: Dialect, name: str, number: str) -> None:
        """The functions."""
        with text.block(f"{dialect.function} int {name}_place(int p, int n, int t)"):
            text(*_PLACES[self.kind].split("\n"))
        if self.weighted:
            with text.block(f"{dialect.function} {number} {name}_weight(int p, int n, int t)"):
                text(*_WEIGHTS[self.kind].split("\n"))


def forward_border(mode: str) -> Border:
    """Of samples, in a mode of the DWT."""
    return Border(mode)


def back_borders(family: str, mode: str) -> tuple[Border, Border]:
    """Of the low and of the high band, on the way back; ``mode`` is that of the line."""
    if family == "lwt" and mode == "reflect":
        return Border("folded low"), Border("folded high")
    # (The LWT wraps only where both bands have as many coefficients.)
    kind = "periodic" if family == "lwt" or mode == "periodization" else "zero"
    return Border(kind), Border(kind)
