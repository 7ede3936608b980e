"""Tutorials: scripts in the percent format, from which pages of the site and notebooks are made.

A script in ``examples/tutorials`` consists of cells. ``# %% [markdown]`` begins a cell of comments, which is
text in Markdown, and ``# %%`` a cell of code; Jupyter (with jupytext), VS Code, PyCharm and Spyder read this
format as well. What a cell prints, and the figures that it shows, follow it on the page.

python tools/tutorials.py                       run all scripts, write docs/tutorials and its pictures
python tools/tutorials.py NAME ...              only these
python tools/tutorials.py --check               fail if a page has not the text and the code of its script
python tools/tutorials.py --notebooks FOLDER    write notebooks
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "examples" / "tutorials"
PAGES = ROOT / "docs" / "tutorials"
PICTURES = ROOT / "docs" / "images" / "tutorials"


@dataclass(frozen=True)
class Cell:
    """A part of a tutorial: text in Markdown, or code."""

    is_code: bool
    text: str


def scripts() -> list[Path]:
    """Return the scripts in the order of the tutorials, which is that of the menu."""
    return sorted(SCRIPTS.glob("*.py"))


def page_name(script: Path) -> str:
    """Return the name of the page of a script: without its number, and with hyphens."""
    return re.sub(r"^\d+_", "", script.stem).replace("_", "-")


def cells(script: Path) -> list[Cell]:
    """Split a script into its cells."""
    parts = re.split(r"^# %%(.*)\n", script.read_text(encoding="utf-8"), flags=re.M)
    found = []
    for kind, body in zip(parts[1::2], parts[2::2], strict=True):
        if kind.strip() == "[markdown]":
            body = re.sub(r"^# ?", "", body, flags=re.M)
        found.append(Cell(not kind.strip(), body.strip("\n")))
    return found


def notebook(script: Path) -> dict[str, Any]:
    """Return the script as a notebook in Jupyter's format, without outputs."""
    entries = []
    for number, cell in enumerate(cells(script)):
        entry: dict[str, Any] = {"id": f"cell-{number}", "metadata": {}, "source": cell.text}
        if cell.is_code:
            entry |= {"cell_type": "code", "execution_count": None, "outputs": []}
        else:
            entry |= {"cell_type": "markdown"}
        entries.append(entry)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": entries, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def head(script: Path, title: str) -> str:
    """Return what stands above the text of a page; the site offers a notebook, too."""
    place = f"../../examples/tutorials/{script.name}"
    return (
        f"# {title}\n\n*Download this tutorial as a [script]({place}).*"
        " *This page is generated from the script by `tools/tutorials.py`.*\n\n"
    )


def page(script: Path, outputs: list[str]) -> str:
    """Return the script as a page, with the output of each cell behind it."""
    first, *rest = cells(script)
    title, _, text = first.text.partition("\n")
    parts = [head(script, title.removeprefix("# ")), text.strip("\n") + "\n\n" if text.strip() else ""]
    for cell, output in zip(rest, outputs[1:], strict=True):
        parts.append(f"```python\n{cell.text}\n```\n\n{output}" if cell.is_code else f"{cell.text}\n\n")
    return "".join(parts).rstrip("\n") + "\n"


def run(script: Path) -> list[str]:
    """Run the cells of a script, write their figures, and return the output of each in Markdown."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from undula.experiments.charts import COLORS, INK, STYLE, themed

    name, names, outputs = page_name(script), {"__name__": "__main__"}, []
    PICTURES.mkdir(parents=True, exist_ok=True)
    for old in PICTURES.glob(f"{name}-[0-9].*"):
        old.unlink()
    pictures = 0
    grid = {"axes.grid": False, "grid.color": INK, "grid.alpha": 0.18, "figure.dpi": 100}
    style = {**STYLE, **grid, "axes.prop_cycle": mpl.cycler(color=COLORS)}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), mpl.rc_context(style):
        for cell in cells(script):
            output = ""
            if cell.is_code:
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    exec(compile(cell.text, str(script), "exec"), names)
                if printed.getvalue().strip():
                    output += f"```text\n{printed.getvalue().rstrip()}\n```\n\n"
                for number in plt.get_fignums():
                    pictures += 1
                    output += _saved(plt.figure(number), f"{name}-{pictures}", themed, INK)
                    plt.close(number)
            outputs.append(output)
    return outputs


def _saved(figure: Any, name: str, themed: Any, ink: str) -> str:
    """Write a figure, as SVG unless it has images, and return a link to it."""
    label = figure.get_label() or name
    if any(axes.images for axes in figure.axes):
        for text in figure.findobj(lambda part: hasattr(part, "get_color") and hasattr(part, "set_text")):
            if text.get_color() == ink:
                text.set_color("#868e96")  # Legible in light and dark pages.
        name += ".webp"
        figure.savefig(PICTURES / name, dpi=110, transparent=True, pil_kwargs={"quality": 88})
    else:
        name += ".svg"
        (PICTURES / name).write_text(themed(figure), encoding="utf-8")
    return f"![{label}](../images/tutorials/{name})\n\n"


def bare(text: str) -> str:
    """Return a page without the output of its cells."""
    return re.sub(
        r"^(```text\n.*?\n```|!\[[^\]]*\]\(\.\./images/tutorials/.*?\))\n+", "", text, flags=re.M | re.S
    )


def check() -> None:
    for script in scripts():
        path = PAGES / f"{page_name(script)}.md"
        blank = page(script, [""] * len(cells(script)))
        if not path.exists() or bare(path.read_text(encoding="utf-8")).strip() != bare(blank).strip():
            raise SystemExit(
                f"{path.relative_to(ROOT)} is out of date: run python tools/tutorials.py {path.stem}"
            )


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--check"]:
        return check()
    if arguments[:1] == ["--notebooks"]:
        folder = Path(arguments[1])
        folder.mkdir(parents=True, exist_ok=True)
        for script in scripts():
            text = json.dumps(notebook(script), indent=1, ensure_ascii=False)
            (folder / f"{page_name(script)}.ipynb").write_text(text + "\n", encoding="utf-8")
        return None
    PAGES.mkdir(exist_ok=True)
    for script in scripts():
        name = page_name(script)
        if not arguments or name in arguments:
            text = page(script, run(script))
            (PAGES / f"{name}.md").write_text(text, encoding="utf-8")
            print(f"wrote docs/tutorials/{name}.md")
    return None


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main(sys.argv[1:])
