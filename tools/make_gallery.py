"""Run the code of docs/gallery.md and store the images that it writes in docs/images/gallery/."""

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
    shown = re.findall(r"images/gallery/([\w.-]+)", text)
    target = DOCS / "images" / "gallery"
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        exec("\n".join(re.findall(r"```python\n(.*?)```", text, re.S)), {"__name__": "gallery"})
        written = {name for name in os.listdir() if name.endswith(".png")}
        missing = sorted(set(shown) ^ written)
        if missing:
            raise SystemExit(f"not both written and shown on the page: {', '.join(missing)}")
        for name in shown:
            shutil.copy(name, target / name)
    print(f"wrote {len(shown)} images")


if __name__ == "__main__":
    main()
