"""Hooks of mkdocs: pages from other folders, inline SVG that follows the theme, formulas as MathML, menus."""

from __future__ import annotations

import json
import posixpath
import re
import runpy
from html import unescape
from pathlib import Path
from typing import Any

import yaml
from latex2mathml.converter import convert
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# Files of the repository that are pages of the site.
INCLUDED = {
    "changelog.md": "CHANGELOG.md",
    "code-of-conduct.md": "CODE_OF_CONDUCT.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
}


def on_config(config: Any) -> Any:
    """Add the pages of the experiments to the menu."""
    import sys

    sys.path.insert(0, str(DOCS.parent / "src"))
    from undula.experiments import experiments
    from undula.experiments.report import TITLES

    menu: list[Any] = ["experiments/index.md"]
    for work, title in TITLES.items():
        pages: list[Any] = [f"experiments/{work}/index.md"] if work != "peers" else []
        pages += [f"experiments/{entry.name}.md" for entry in experiments().values() if entry.work == work]
        menu.append({title: pages})
    for section in config["nav"]:
        for name, pages in section.items():
            if name == "Performance":
                section[name] = [{"Experiments": menu} if "Experiments" in page else page for page in pages]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add pages from files of the repository, and the tutorials as scripts and notebooks."""
    for uri, name in INCLUDED.items():
        text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
        for other, place in INCLUDED.items():
            text = text.replace(f"]({place}", f"]({other}")
        files.append(File.generated(config, uri, content=text))
    tutorials = runpy.run_path(str(ROOT / "tools" / "tutorials.py"))
    for script in tutorials["scripts"]():
        name = f"tutorials/{tutorials['page_name'](script)}"
        notebook = json.dumps(tutorials["notebook"](script), indent=1, ensure_ascii=False)
        files.append(File.generated(config, f"{name}.ipynb", content=notebook))
        files.append(File.generated(config, f"{name}.py", content=script.read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Let links to files of the repository lead to their pages, and fill in the citation."""
    for uri, name in INCLUDED.items():
        markdown = re.sub(rf"\]\(((?:\.\./)*)\.\./{re.escape(name)}", rf"](\1{uri}", markdown)
    script = re.compile(r"\[script\]\((?:\.\./)*examples/tutorials/\d+_(\w+)\.py\)")
    found = script.search(markdown)
    if found:
        name = found[1].replace("_", "-")
        links = f"[notebook]({name}.ipynb) or as a [script]({name}.py)"
        markdown = markdown.replace(found[0], links)
    return markdown.replace("<!-- citation -->", citation())


def citation() -> str:
    """Return the contents of CITATION.cff as BibTeX and as a line of text."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    authors = [
        author.get("name") or f"{author['given-names']} {author['family-names']}"
        for author in cited["authors"]
    ]
    year = str(cited["date-released"])[:4]
    fields = {
        "title": f"{{{cited['title']}}}",
        "author": " and ".join(f"{{{author}}}" for author in authors),
        "version": str(cited["version"]),
        "year": year,
        "note": f"Python package, {cited['license']}",
    }
    lines = ",\n".join(f"  {name} = {{{text}}}" for name, text in fields.items())
    line = f"{', '.join(authors)} ({year}). {cited['title']}. Version {cited['version']}."
    return f"```bibtex\n@software{{undula,\n{lines}\n}}\n```\n\nAs a line of text:\n\n> {line}"


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Inline SVG files, so that they take the colours of the page, and convert LaTeX to MathML."""
    here = posixpath.dirname(page.file.dest_uri)

    def inlined(match: re.Match[str]) -> str:
        source = re.search(r'src="([^"]+\.svg)"', match[0])
        label = re.search(r'alt="([^"]*)"', match[0])
        assert source is not None
        path = DOCS / posixpath.normpath(posixpath.join(here, source[1]))
        text = path.read_text(encoding="utf-8")
        text = text[text.index("<svg") :]
        attributes = f'role="img" aria-label="{label[1] if label else ""}" class="drawing" '
        return text.replace("<svg ", f"<svg {attributes}", 1)

    html = re.sub(r'<img [^>]*src="[^"]+\.svg"[^>]*>', inlined, html)
    html = re.sub(r"<table>.*?</table>", with_breaks, html, flags=re.S)
    html = re.sub(r":(?:func|meth|class|data|attr|mod):(?=<code>)", "", html)  # Roles in docstrings.

    def formula(match: re.Match[str]) -> str:
        text = unescape(match[2])
        block = match[1] == "div"
        return convert(text.strip()[2:-2], display="block" if block else "inline")

    return re.sub(r'<(span|div) class="arithmatex">(.*?)</\1>', formula, html, flags=re.S)


def with_breaks(table: re.Match[str]) -> str:
    """Let names in tables be broken after dots, and long ones after other signs, but no options."""

    def broken(word: str) -> str:
        if word.startswith("-"):
            return f'<span class="whole">{word}</span>'
        signs = "./_(,=" if len(word) > 24 else "./"
        return re.sub(rf"(?<=[\w\])])([{signs}])(?=[A-Za-z_])", r"\1<wbr>", word)

    def code(match: re.Match[str]) -> str:
        return f"<code>{' '.join(map(broken, match[1].split(' ')))}</code>"

    return re.sub(r"<code>([^<]*)</code>", code, table[0])


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Load the script for searching a local copy of the site from the site itself."""
    up = "../" * page.file.dest_uri.count("/")
    return output.replace("https://unpkg.com/iframe-worker/shim", f"{up}worker.js")


def on_post_template(output: str, template_name: str, config: Any) -> str:
    """Do the same on pages of the theme, such as the page for error 404."""
    return output.replace("https://unpkg.com/iframe-worker/shim", "worker.js")
