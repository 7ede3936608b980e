"""The documentation: what it shows runs, and the site holds together by itself."""

import importlib.util
import inspect
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

import undula
from documented import documented_modules
from undula.cli import main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NAMES = (
    "index",
    "install",
    "start",
    "overview",
    "why",
    "gallery",
    "continuous",
    "dual-tree",
    "model",
    "mathematics",
    "packets",
    "boundaries",
    "transforms",
    "xarray",
    "zarr",
    "zarr-codec",
    "scale",
    "petabyte",
)
PAGES = [DOCS / f"{name}.md" for name in NAMES]
TASKS = DOCS / "guides" / "tasks.md"
PAGES += sorted({*DOCS.glob("guides/*.md")} - {TASKS}) + sorted(DOCS.glob("developing/*.md"))
BLOCK = re.compile(r"(?:<!-- needs: ([\w, ]+) -->\n)?```(python|sh)\n(.*?)```", re.S)


def missing(needs: str | None) -> list[str]:
    """What a block needs and is not here; ``cuda`` is an NVIDIA GPU."""

    def there(name: str) -> bool:
        if name == "cuda":
            return any(device.startswith("cuda") for device in undula.devices())
        return importlib.util.find_spec(name) is not None

    return [name for name in re.split(r"[, ]+", needs or "") if name and not there(name)]


def run(page: Path, found: re.Match[str], names: dict[str, object]) -> None:
    """One block, in the names of its page."""
    _, kind, code = found.groups()
    if kind == "python":
        line = page.read_text(encoding="utf-8")[: found.start(3)].count("\n")
        exec(compile("\n" * line + code, str(page), "exec"), names)
        return
    for command in re.sub(r"\\\n\s*", " ", code).splitlines():
        words = shlex.split(command, comments=True)
        if words[:1] == ["undula"] and words[1:2] != ["studio"]:  # (which serves until it is stopped)
            assert main(words[1:]) == 0, command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    zarr = pytest.importorskip("zarr", reason="Zarr is not installed")
    codecs = zarr.config.get("codecs")
    names: dict[str, object] = {"__name__": "page"}
    with zarr.config.set(codecs=dict(codecs)):  # One page adds a codec.
        run_blocks(page, names)


def run_blocks(page: Path, names: dict[str, object]) -> None:
    for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if not missing(found[1]):
            run(page, found, names)


ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| (.+) \|$", re.M)


def test_all_tasks_of_users_can_be_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run one after the other; ways through the Studio name a test that takes them in a browser."""
    monkeypatch.chdir(tmp_path)
    text = TASKS.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        run(TASKS, found, {})
    clicked = (ROOT / "tests" / "studio" / "test_browser.py").read_text(encoding="utf-8")
    rows = [row for row in ROW.findall(text) if row[0] != "task"]
    assert len(rows) > 30
    for task, command, way in rows:
        assert command != "–" or way != "–", task
        for words in map(shlex.split, re.findall("`(undula [^`]+)`", command)):
            assert main(words[1:]) == 0, task
        if way != "–":
            (test,) = re.findall(r"<!-- (test_\w+) -->", way)
            assert f"def {test}(" in clicked, task


WANTING = [page for page in PAGES if "<!-- needs:" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", WANTING, ids=lambda page: str(page.relative_to(DOCS)))
def test_no_block_is_left_out(page: Path) -> None:
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    wanting = sorted({name for block in found for name in missing(block[1])})
    if wanting:
        pytest.skip(f"some blocks need {', '.join(wanting)}, which is not here")


def test_there_are_blocks() -> None:
    """What looks for them finds them."""
    assert sum(len(BLOCK.findall(page.read_text(encoding="utf-8"))) for page in PAGES) > 100


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    build = "import gc; gc.disable(); from mkdocs.__main__ import cli; cli()"  # A fifth faster.
    command = [sys.executable, "-c", build, "build", "--strict", "--quiet", "--site-dir", str(target)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "SITE_URL": "https://example.org/undula/"}
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "WARNING" not in result.stdout + result.stderr
    return target


def test_site_links_lead_somewhere_and_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    assert len(pages) > 80
    anchors = {path: set(re.findall(r'\bid="?([^"\s>]+)', text)) for path, text in pages.items()}
    dead = []
    for path, text in pages.items():
        if path.name == "404.html":
            continue
        loaded = re.findall(r'<(?:script|img|iframe|source)[^>]*\bsrc="?([^"\s>]+)', text)
        loaded += re.findall(r'<link[^>]*rel="?(?:stylesheet|preconnect|icon)[^>]*href="?([^"\s>]+)', text)
        outside = [url for url in loaded if re.match(r"(https?:)?//", url)]
        assert not outside, f"{path.name} loads {outside}"
        for url in [*re.findall(r'<a[^>]*\bhref="?([^"\s>]+)', text), *loaded]:
            if re.match(r"[a-z]+:|//", url):
                continue
            place, anchor = urldefrag(unquote(url))
            target = (path.parent / place).resolve() if place else path
            target = target / "index.html" if target.is_dir() else target
            known = anchors.get(target)
            if not target.exists() or (anchor and known is not None and anchor not in known):
                dead.append(f"{path.relative_to(site)} → {url}")
    assert not dead, "\n".join(sorted(set(dead))[:20])


def test_site_works_in_a_folder_of_its_server(site: Path) -> None:
    """No page refers to the root of the server, because a site is often published below it."""
    for path in site.rglob("*.html"):
        if path.name != "404.html":
            text = path.read_text(encoding="utf-8")
            assert not re.search(r'\b(?:href|src)="?/', text), path.relative_to(site)
    # The page for error 404 is shown in place of pages of any folder.
    references = re.findall(r'\b(?:href|src)="?(/[^">\s]*)', (site / "404.html").read_text(encoding="utf-8"))
    assert len(references) > 10
    assert all(reference.startswith("/undula/") for reference in references)


def test_reference_has_all_public_names(site: Path) -> None:
    anchors = set()
    for path in (site / "api").glob("*.html"):
        anchors |= set(re.findall(r'\bid="?([\w.]+)', path.read_text(encoding="utf-8")))
    missing = []
    for module in documented_modules():
        for name in module.__all__:
            value = getattr(module, name)
            homes = ("undula", module.__name__, getattr(value, "__module__", ""))
            places = {f"{home}.{name}" for home in homes}
            if not inspect.ismodule(value) and not name.startswith("_") and not places & anchors:
                missing.append(f"{module.__name__}.{name}")
    assert not missing


def test_examples_of_docstrings_are_shown_as_code(site: Path) -> None:
    """A prompt that is no code would be a quote in a quote in a quote to Markdown."""
    code = 0
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        where = path.relative_to(site)
        assert not re.search(r"<blockquote>\s*<blockquote>", text), where
        assert "&gt;&gt;&gt;" not in re.sub(r"<(pre|code|title|math)\b.*?</\1>", "", text, flags=re.S), where
        code += text.count('<span class="gp">&gt;&gt;&gt;')
    assert code > 150


def test_formulas_need_no_script(site: Path) -> None:
    text = (site / "mathematics.html").read_text(encoding="utf-8")
    assert text.count("<math") > 20
    assert "arithmatex" not in text


def test_drawings_follow_the_theme(site: Path) -> None:
    text = (site / "mathematics.html").read_text(encoding="utf-8")
    assert text.count('class="drawing"') >= 12
    assert 'fill="currentColor"' in text


def test_names_in_the_glossary_exist() -> None:
    text = (DOCS / "developing" / "glossary.md").read_text(encoding="utf-8")
    code = "".join(line.rpartition("| ")[2] for line in text.splitlines() if line.startswith("| **"))
    names = sorted(set(re.findall(r"`([\w.]+)`", code)))
    assert len(names) > 30
    for name in names:
        try:
            pkgutil.resolve_name(f"undula.{name}")
        except (ImportError, AttributeError) as error:
            pytest.fail(f"the glossary names {name}, which does not exist: {error}")


def test_names_in_the_architecture_exist() -> None:
    text = (DOCS / "developing" / "architecture.md").read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```", "", text, flags=re.S)
    names = {name for name in re.findall(r"`([a-z_]+(?:\.\w+)+)`", prose) if not name.endswith(".py")}
    names -= {"jax.numpy", "np.ndarray", "undula.torch.as_expressions"}
    assert len(names) > 50
    unknown = [name for name in sorted(names) if not any(is_defined(folder, name) for folder in FOLDERS)]
    assert not unknown, f"the page on the architecture names {unknown}, which do not exist"


FOLDERS = [ROOT / "src" / "undula", ROOT / "src" / "undula" / "engines"]


def is_defined(folder: Path, name: str) -> bool:
    """Return whether a module, or its source, has a name; importing all modules would take long."""
    first, _, rest = name.partition(".")
    if (folder / first).is_dir():
        return not rest or is_defined(folder / first, rest)
    module = folder / f"{first}.py" if (folder / f"{first}.py").exists() else folder / "__init__.py"
    words = rest.split(".") if module.stem == first else [first, *rest.split(".")]
    source = module.read_text(encoding="utf-8")
    definition = r"\b{}\b" if module.stem == "__init__" else r"^ *(?:def |class |){}\b *[(:=,]"
    return all(re.search(definition.format(word), source, re.M) for word in words if word)


@pytest.mark.parametrize("folder", ["gpu", "cpu"])
def test_modules_of_engines_are_listed(folder: str) -> None:
    text = (DOCS / "developing" / "engines.md").read_text(encoding="utf-8")
    table = re.search(rf"\| module of `engines/{folder}`.*?\n\n", text, re.S)
    assert table is not None
    listed = re.findall(r"`([\w/]+)`", "".join(row.split("|")[1] for row in table[0].split("\n")[2:-2]))
    package = ROOT / "src" / "undula" / "engines" / folder
    modules = {
        path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert sorted(listed) == sorted(modules - {"__init__"})


CHANGES = [
    (page, block)
    for page in sorted(DOCS.glob("developing/add-*.md"))
    for block in re.findall(r"```diff\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
]


@pytest.mark.parametrize(("page", "block"), CHANGES, ids=lambda value: getattr(value, "stem", ""))
def test_shown_changes_apply(page: Path, block: str) -> None:
    name, _, hunks = block.partition("\n")
    text = (ROOT / name.removeprefix("# ")).read_text(encoding="utf-8")
    for hunk in hunks.split("@@\n"):
        before = "".join(f"{line[1:]}\n" for line in hunk.splitlines() if line[:1] in (" ", "-"))
        assert before in text, f"{page.name} changes lines that {name} does not have:\n{before}"
