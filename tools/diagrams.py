"""Draw the diagrams of the structure of the code in ``docs/`` from the code.

python tools/diagrams.py            write them to docs/images/diagrams/
python tools/diagrams.py --check    fail if they are out of date
"""

from __future__ import annotations

import importlib
import runpy
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images" / "diagrams"

# The first layer of each group, with the colour and the label of the group.
GROUPS = {
    "errors": ("currentColor", "errors: everybody's"),
    "algebra": ("#7048e8", "algebra: exact values, no device, no shape"),
    "lowering": ("#1098ad", "numbers: shapes, devices, arrays"),
    "codecs": ("#f76707", "applications: on the transforms"),
    "studio": ("#2f9e44", "front ends: on the applications"),
}
WIDTH = 800
BOX = (94, 27)  # Width and height of a layer.
PITCH = 37  # Distance between rows.
SIZE = 13.5  # Font size.
BUS = 16  # Distance from the left edge of a box to its vertical line.


def imports() -> dict[str, list[str]]:
    """The layers that each layer imports, as the test of the layers finds them."""
    test: dict[str, Any] = runpy.run_path(str(ROOT / "tests" / "test_layers.py"))
    layers, walk = test["LAYERS"], test["imported_layers"]
    imported: dict[str, set[str]] = {layer: set() for layer in layers}
    for path in test["MODULES"]:
        layer = path.relative_to(test["ROOT"]).parts[0].removesuffix(".py")
        if layer in imported:
            imported[layer] |= walk(path) - {layer}
    return {layer: sorted(imported[layer], key=layers.index) for layer in layers}


def layers() -> str:
    """Draw the layers along the diagonal, with a dot for each import and an arrow at the imported layer."""
    imported = imports()
    names = list(imported)
    step = (WIDTH - BOX[0] - 8) / max(1, len(names) - 1)
    place = {name: (4 + k * step, 4 + k * PITCH) for k, name in enumerate(names)}
    colors, current = {}, "currentColor"
    for name in names:
        current = GROUPS.get(name, (current, ""))[0]
        colors[name] = current
    height = 8 + (len(names) - 1) * PITCH + BOX[1]
    said = f"{len(names)} layers of Undula and what each imports: " + "; ".join(
        f"{name} from {', '.join(others)}" for name, others in imported.items() if others
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
        f' viewBox="0 0 {WIDTH} {height}" font-family="inherit" font-size="{SIZE}" fill="none" role="img">',
        f"<title>{said}</title>",
    ]
    for name, (x, y) in place.items():  # Down from the imported layer to the last importing one.
        rows = [place[other][1] for other, theirs in imported.items() if name in theirs]
        if rows:
            column, top, bottom = x + BUS, y + BOX[1], max(rows) + BOX[1] / 2
            parts.append(
                f'<path d="{_moved(column, top)}V{bottom:g}" stroke="currentColor" stroke-opacity="0.4"/>'
                f'<path d="{_moved(column, top)}l-4 7h8z" fill="currentColor"/>'
            )
    for name, others in imported.items():  # Along from the importing layer to the farthest imported one.
        if others:
            x, y = place[name]
            row = y + BOX[1] / 2
            start = min(place[other][0] for other in others) + BUS
            parts.append(f'<path d="{_moved(x, row)}H{start:g}" stroke="{colors[name]}"/>')
            parts += [
                f'<circle cx="{place[other][0] + BUS:g}" cy="{row:g}" r="3.5" fill="{colors[name]}"/>'
                for other in others
            ]
    for name, (x, y) in place.items():
        parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{BOX[0]}" height="{BOX[1]}" rx="5"'
            f' stroke="{colors[name]}" stroke-width="1.6"/>'
            f'<text x="{x + BOX[0] / 2:g}" y="{y + BOX[1] / 2 + SIZE / 3:g}" text-anchor="middle"'
            f' fill="currentColor">{name}</text>'
        )
    left, line = WIDTH * 0.55, 4 + BOX[1] / 2
    for color, told in GROUPS.values():
        parts.append(
            f'<circle cx="{left:g}" cy="{line:g}" r="5" fill="{color}"/>'
            f'<text x="{left + 14:g}" y="{line + SIZE / 3:g}" fill="currentColor">{told}</text>'
        )
        line += 23
    parts.append(f'<text x="{left - 5:g}" y="{line + 8:g}" fill="currentColor">a dot is an import</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


PHASES = (
    # module, class, and what it gives the next one
    ("undula.lowering.spec", "TransformSpec", "shape"),
    ("undula.lowering.spec", "BandTree", "dtype"),
    ("undula.lowering.axis", "AxisOp", "compile"),
    ("undula.engines.base", "Executable", "run"),
)
NEUTRAL = "#768390"  # readable on light and on dark pages


def phases() -> str:
    """Draw the values between a call and its results, with what the code says of each."""
    from undula.arrays.libraries import LIBRARIES
    from undula.engines.base import ENGINES
    from undula.engines.gpu.strategies import STRATEGIES

    box, gap, left, top = (148, 46), 60, 6, 34
    notes = {
        "TransformSpec": "wavelets, modes, axes",
        "BandTree": "shapes of all bands",
        "AxisOp": "lifting or filters",
        "Executable": "kernels, ready to run",
    }
    columns = [left + k * (box[0] + gap) for k in range(len(PHASES))]
    width, height = columns[-1] + box[0] + left, 194
    parts = []
    for (module, name, label), x in zip(PHASES, columns, strict=True):
        assert hasattr(importlib.import_module(module), name), f"{module} has no {name}"
        middle = x + box[0] / 2
        parts += [
            f'<rect x="{x:g}" y="{top}" width="{box[0]}" height="{box[1]}" rx="7" stroke="#1098ad"'
            ' stroke-width="1.8"/>',
            _text(middle, top + 20, name, "#1098ad", weight=600),
            _text(middle, top + 38, notes[name], NEUTRAL, 11.5),
            _text(middle, top + box[1] + 17, module.removeprefix("undula."), NEUTRAL, 12, mono=True),
        ]
        if x != columns[-1]:
            parts.append(_arrow(x + box[0] + 3, top + box[1] / 2, x + box[0] + gap - 3))
            parts.append(_text(x + box[0] + gap / 2, top + box[1] / 2 - 9, label, NEUTRAL, 12))
    parts.append(_text(columns[0] + box[0] / 2, 20, "wavedec2(image, …)", "#7048e8", 13.5, mono=True))
    rows = (
        ("engines", ", ".join(ENGINES)),
        ("strategies on a GPU", ", ".join(STRATEGIES)),
        ("arrays", ", ".join(library.name for library in LIBRARIES)),
    )
    for number, (title, words) in enumerate(rows):
        y = top + box[1] + 58 + 24 * number
        parts.append(
            f'<text x="{left}" y="{y}" fill="{NEUTRAL}" font-size="{SIZE}">'
            f'<tspan font-weight="600">{title}:</tspan> {words}</text>'
        )
    said = "The values of a transform: " + " → ".join(name for _, name, _ in PHASES)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height}"'
            f' viewBox="0 0 {width:g} {height}" font-family="system-ui, sans-serif" fill="none" role="img">',
            f"<title>{said}</title>",
            *parts,
            "</svg>\n",
        ]
    )


def _text(
    x: float, y: float, text: str, color: str, size: float = SIZE, weight: int = 400, mono: bool = False
) -> str:
    family = ' font-family="ui-monospace, monospace"' if mono else ""
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="middle" fill="{color}" font-size="{size:g}"'
        f' font-weight="{weight}"{family}>{text}</text>'
    )


def _arrow(start: float, y: float, end: float) -> str:
    return (
        f'<path d="M{start:g} {y:g}H{end - 7:g}" stroke="{NEUTRAL}" stroke-width="1.6"/>'
        f'<path d="M{end:g} {y:g}l-9 -4.5v9z" fill="{NEUTRAL}"/>'
    )


def _moved(x: float, y: float) -> str:
    return f"M{x:g} {y:g}"


DIAGRAMS = {"layers": layers, "phases": phases}


if __name__ == "__main__":
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name, draw in DIAGRAMS.items():
        path = IMAGES / f"{name}.svg"
        if "--check" not in sys.argv:
            path.write_text(draw(), encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
        elif not path.exists() or path.read_text(encoding="utf-8") != draw():
            sys.exit(f"{path.relative_to(ROOT)} is out of date: run python tools/diagrams.py")
