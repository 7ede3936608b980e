"""Boundary modes as C functions.

Each border has a function ``<name>_place(p, n, t)``: the index on the line of the t-th sample from which the
value at place p is computed, or -1 for none. Modes with weights also have ``<name>_weight(p, n, t)``: weight
0 is that of sample 0, weight 1 that of the difference of samples 1 and 2, weight 2 that of the difference of
samples 3 and 4 (see ``lowering.borders.combinations``). For the inverse, p is the index of a coefficient; an
LWT folds it on the line of n samples, and a DWT has n coefficients and zeros beyond.
"""

from __future__ import annotations

from dataclasses import dataclass

from .dialect import Dialect
from .text import Text

# Most places beyond the ends are close to them: one addition suffices, and the division is in a rare branch.
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

# Bodies of the functions, in terms of p, n and t. ``wrapped`` is the non-negative remainder, and ``mirrored``
# reflects at both ends so that ``last`` maps to 0.
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
    # Low and high coefficients of an LWT stand at the places 2k and 2k + 1 of a line of n samples.
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
    """The extension of a line beyond its ends.

    Parameters
    ----------
    kind : str
        A mode of the DWT, or ``folded low``, ``folded high`` or ``wrapped`` for coefficients of an LWT.
    """

    kind: str

    @property
    def differences(self) -> int:
        """Number of weighted differences in a value beyond the ends."""
        return _DIFFERENCES.get(self.kind, 0)

    @property
    def weighted(self) -> bool:
        """Whether samples are multiplied by weights."""
        return self.kind in _WEIGHTS

    @property
    def certain(self) -> bool:
        """Whether every place beyond the ends is computed from samples, and none is zero."""
        return self.kind not in ("zero", "folded high", "wrapped")

    @property
    def is_long(self) -> bool:
        """Whether the functions are so long that copies of them dominate a kernel."""
        return self.kind in ("antisymmetric", "antireflect")

    @property
    def folded(self) -> bool:
        """Whether places are folded on the line of samples, not on that of coefficients."""
        return self.kind in ("folded low", "folded high")

    def emit(self, text: Text, dialect: Dialect, name: str, number: str) -> None:
        """Append the functions."""
        with text.block(f"{dialect.function} int {name}_place(int p, int n, int t)"):
            text(*_PLACES[self.kind].split("\n"))
        if self.weighted:
            with text.block(f"{dialect.function} {number} {name}_weight(int p, int n, int t)"):
                text(*_WEIGHTS[self.kind].split("\n"))


def forward_border(mode: str) -> Border:
    """Return the border of samples in a mode of the DWT."""
    return Border(mode)


def back_borders(family: str, mode: str) -> tuple[Border, Border]:
    """Return the borders of the low and of the high band for the inverse."""
    if family == "lwt" and mode == "reflect":
        return Border("folded low"), Border("folded high")
    # An LWT is wrapped only if both bands have the same length.
    kind = "periodic" if family == "lwt" or mode == "periodization" else "zero"
    return Border(kind), Border(kind)
