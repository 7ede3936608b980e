"""Runs the blocks of docs/gallery.md, and keeps the pictures that they write in docs/images/gallery/."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def main() -> None:
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    wanted = re.findall(r"images/gallery/([\w.-]+)", text)
    target = DOCS / "images" / "gallery"
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        exec("\n".join(re.findall(r"```python\n(.*?)```", text, re.S)), {"__name__": "gallery"})
        made = {name for name in os.listdir() if name.endswith(".png")}
        missing = sorted(set(wanted) ^ made)
        if missing:
            raise SystemExit(f"pictures that are not both made and shown: {', '.join(missing)}")
        for name in wanted:
            shutil.copy(name, target / name)
    print(f"{len(wanted)} pictures")


if __name__ == "__main__":
    main()
