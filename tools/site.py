"""What mkdocs does besides: drawings follow the theme, formulas need no script, experiments have a menu."""

from __future__ import annotations

import posixpath
import re
from html import unescape
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

DOCS = Path(__file__).parents[1] / "docs"


def on_config(config: Any) -> Any:
    """The pages of experiments, in the order in which they are listed."""
    import sys

    sys.path.insert(0, str(DOCS.parent / "src"))
    from undula.experiments import experiments
    from undula.experiments.report import TITLES

    menu: list[Any] = ["experiments/index.md"]
    for work, title in TITLES.items():
        some = [one for one in experiments().values() if one.work == work]
        own: list[Any] = [f"experiments/{work}/index.md"] if work != "peers" else []
        menu.append({title: own + [f"experiments/{one.name}.md" for one in some]})
    for section in config["nav"]:
        for name, pages in section.items():
            if name == "Performance":
                section[name] = [{"Experiments": menu} if "Experiments" in page else page for page in pages]
    return config


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """SVG files become part of the page, and take its colours; LaTeX becomes MathML."""
    here = posixpath.dirname(page.file.dest_uri)

    def inlined(found: re.Match[str]) -> str:
        source = re.search(r'src="([^"]+\.svg)"', found[0])
        label = re.search(r'alt="([^"]*)"', found[0])
        assert source is not None
        path = DOCS / posixpath.normpath(posixpath.join(here, source[1]))
        text = path.read_text(encoding="utf-8")
        text = text[text.index("<svg") :]
        said = f'role="img" aria-label="{label[1] if label else ""}" class="drawing" '
        return text.replace("<svg ", f"<svg {said}", 1)

    html = re.sub(r'<img [^>]*src="[^"]+\.svg"[^>]*>', inlined, html)
    html = re.sub(r":(?:func|meth|class|data|attr|mod):(?=<code>)", "", html)  # (of docstrings)

    def formula(found: re.Match[str]) -> str:
        text = unescape(found[2])
        block = found[1] == "div"
        return convert(text.strip()[2:-2], display="block" if block else "inline")

    return re.sub(r'<(span|div) class="arithmatex">(.*?)</\1>', formula, html, flags=re.S)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """What lets people search a site on their disk is in the site itself."""
    up = "../" * page.file.dest_uri.count("/")
    return output.replace("https://unpkg.com/iframe-worker/shim", f"{up}worker.js")


def on_post_template(output: str, template_name: str, config: Any) -> str:
    """Likewise on pages that are none of ours, such as the one for what is not found."""
    return output.replace("https://unpkg.com/iframe-worker/shim", "worker.js")
