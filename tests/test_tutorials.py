"""The tutorials: their notebooks run, and their pages have the text and the code of the scripts."""

import json
import re
import runpy
from pathlib import Path

import matplotlib as mpl
import pytest

from cases import parametrize_some

ROOT = Path(__file__).parents[1]
TOOL = runpy.run_path(str(ROOT / "tools" / "tutorials.py"))
SCRIPTS = {TOOL["page_name"](script): script for script in TOOL["scripts"]()}
QUICK = ["compress-a-volume", "find-spikes-in-a-signal", "from-lifting-to-a-gpu-kernel"]


@parametrize_some("name", list(SCRIPTS), QUICK)
def test_notebooks_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    notebook = json.loads(json.dumps(TOOL["notebook"](SCRIPTS[name])))
    code = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    if any(re.search(r"^import torch", cell, re.M) for cell in code):
        pytest.importorskip("torch", reason="this tutorial trains with PyTorch")
    monkeypatch.chdir(tmp_path)
    # Cells show figures by a backend that has no screen, which warns.
    monkeypatch.setattr(plt, "show", lambda: None)
    names = {"__name__": "__main__"}
    for number, cell in enumerate(code):
        exec(compile(cell, f"{name}, cell {number}", "exec"), names)
    assert plt.get_fignums(), "a tutorial has pictures"
    plt.close("all")


def test_pages_are_current() -> None:
    TOOL["check"]()


def test_scripts_consist_of_text_and_code() -> None:
    for script in SCRIPTS.values():
        first, *others = TOOL["cells"](script)
        assert first.text.startswith("# "), "the first cell is the title"
        assert sum(cell.is_code for cell in others) >= 3
        text = "\n".join(cell.text for cell in others)
        assert "%%" not in text, script.name
