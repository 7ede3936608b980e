"""Undula is on no package index yet: every way to install it works in a clone, and is written once."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from undula.errors import install_hint

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]
TEXTS = [
    path
    for folder in ("src", "docs", "tools", "examples", "benchmarks", ".")
    for path in sorted((ROOT / folder).glob("*" if folder == "." else "**/*"))
    if path.suffix in (".md", ".py", ".js", ".html", ".yml", ".css") or path.name == "Makefile"
]
COMMAND = re.compile(r"pip install ((?:-\S+ )*)(?P<quote>['\"]?)(?P<what>[^\s'\"`]+)(?P=quote)")
# Where the way from a clone is written down: for people, in messages, and for make. Others link to the first.
PLACES = {"docs/install.md", "README.md", "src/undula/errors.py", "Makefile"}


def lines() -> list[tuple[str, str]]:
    """Everything that is installed by a command somewhere, with the name of the file."""
    return [
        (str(path.relative_to(ROOT)), found["what"])
        for path in TEXTS
        for found in COMMAND.finditer(re.sub(r"\n *", " ", path.read_text(encoding="utf-8")))
    ]


def test_there_are_commands() -> None:
    """What looks for them finds them."""
    found = lines()
    assert len(TEXTS) > 200
    assert len(found) > 12
    assert {place for place, what in found if what.startswith(".")} == PLACES


def test_nobody_is_told_to_install_from_an_index() -> None:
    wrong = [f"{place}: pip install {what}" for place, what in lines() if re.match(r"undula\b", what)]
    assert not wrong, "\n".join(wrong)
    named = [
        str(path.relative_to(ROOT))
        for path in TEXTS
        if re.search(r"undula\[[a-z{]", path.read_text(encoding="utf-8"))
    ]
    assert not named, f"an extra is a part of a clone, such as '.[app]', in {named}"


def test_extras_that_are_named_exist() -> None:
    for place, what in lines():
        for extra in re.findall(r"[a-z]+", what.partition("[")[2]) if what.startswith(".[") else ():
            assert extra in (*EXTRAS, "extra"), f"{place}: {what}"  # (the message has a name to fill in)


def test_every_extra_is_on_the_page() -> None:
    text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    for extra, packages in EXTRAS.items():
        assert f"`{extra}`" in text, extra
        if extra in ("app", "studio", "cuda", "opencl"):  # what users install, and not developers
            for package in packages:
                name = re.split(r"[>=\[]", package)[0]
                assert name == "undula" or name in text.lower(), f"{extra}: {name}"


PACKED = """
import numpy, tifffile
tifffile.imwrite('x.tif', numpy.ones((4, 4, 3), 'u2'), photometric='rgb')
with tifffile.TiffFile('x.tif', mode='r+') as file: file.pages[0].tags['Compression'].overwrite(50000)
"""  # a TIFF that declares Zstandard


@pytest.mark.parametrize(
    ("package", "code", "extra"),
    [
        ("typer", "import sys; from undula.cli import main; sys.exit(main(['info']))", "app"),
        ("PIL", "from undula import io; io.read(io.sample('scene'))", "app"),
        ("pillow_heif", "from undula import io; io.write('x.heic', [[1, 2], [3, 4]])", "photo"),
        ("rawpy", "from undula import io; open('x', 'wb').write(b'FUJIFILMCCD-RAW '); io.read('x')", "photo"),
        ("imagecodecs", f"{PACKED}from undula import io; io.read('x.tif')", "photo"),
        ("nicegui", "import sys; from undula.cli import main; sys.exit(main(['studio']))", "studio"),
        ("matplotlib", "import sys; from undula.cli import main; sys.exit(main(['experiments']))", "bench"),
        ("cuda", "import undula; undula.dwt([1.0, 2.0], 'haar', backend='cuda')", "cuda"),
        ("pyopencl", "import undula; undula.dwt([1.0, 2.0], 'haar', backend='opencl')", "opencl"),
    ],
)
def test_messages_say_how(package: str, code: str, extra: str, tmp_path: Path) -> None:
    without = f"import sys; sys.modules[{package!r}] = None; {code}"
    run = [sys.executable, "-c", without]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == (2 if package == "typer" else 1)
    assert install_hint(extra) in " ".join(done.stderr.split())
