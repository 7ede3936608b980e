"""What the project says about itself: the README's examples, the docs' numbers, the demo."""

import doctest
import re
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path

import pytest
from PIL import Image

import undula

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(("page", "least"), [("README.md", 6), ("docs/overview.md", 40)])
def test_examples_in_the_readme_and_the_overview(page: str, least: int) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = "\n".join(re.findall(r"```(?:python|pycon)\n(>>>.*?)```", text, re.S))
    blocks = re.sub(r"\n\n(?!>>>)", "\n<BLANKLINE>\n", blocks)
    # (The measured figures differ between machines.)
    blocks = re.sub(r"float32 round trip .*: good", "float32 round trip ...: good", blocks)
    test = doctest.DocTestParser().get_doctest(blocks, {}, page, None, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert runner.run(test).failed == 0
    assert len(test.examples) >= least


def test_counts_in_the_docs_are_current() -> None:
    subprocess.run([sys.executable, str(ROOT / "tools" / "make_docs.py"), "--check"], check=True)


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_speed_that_is_promised_was_measured(page: str) -> None:
    promised = re.search(r"up to (\d+) times as fast", (ROOT / page).read_text(encoding="utf-8"))
    assert promised is not None
    rows = re.findall(
        r"^\| 2 CPU cores: .*? \| [\d.]+\sms \| (\d+)\s×", (ROOT / "README.md").read_text("utf-8"), re.M
    )
    assert len(rows) > 4
    assert int(promised[1]) <= max(map(int, rows)) < 1.2 * int(promised[1])


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_denoising_that_is_promised_was_measured(page: str) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    promised = re.search(
        r"([\d.]+) dB better than non-local means in a fifth of the time, and as good as BM3D in a hundredth",
        text,
    )
    assert promised is not None
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = [
        line.split(" | ")[1:]
        for line in readme.splitlines()
        if line.startswith(("| Denoising,", "| mean PSNR", "| 512² on 2 CPU cores, ms"))
    ]
    names, quality, times = ([cell.strip("| `").replace(",", "") for cell in row] for row in rows)
    figures = {name: (float(dB), float(ms)) for name, dB, ms in zip(names, quality, times, strict=True)}
    best, slow = figures["Undula `best"], figures["bm3d"]
    nl_means = max(figures["scikit-image NL-means"], figures["OpenCV NL-means"])
    assert float(promised[1]) == round(best[0] - nl_means[0], 1)
    assert best[0] >= slow[0]
    assert 4.5 < nl_means[1] / best[1] < 5.5
    assert 90 < slow[1] / best[1] < 130


def test_every_wavelet_is_in_the_docs() -> None:
    text = (ROOT / "docs" / "lifting.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (\S+) \| \d", text, re.M)
    assert [*listed, "dmey"] == [
        n for n in undula.wavelist(undula.families(), kind="discrete") if n != "dmey"
    ] + ["dmey"]
    assert "This applies to\n**dmey**" in text


def test_demo_shows_what_it_promises(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = run.stdout.splitlines()
    assert len(lines) <= 48, "the demo fits one screen"
    assert max(map(len, lines[:-1])) <= 110
    assert "exact reconstruction: True" in run.stdout
    quality = re.search(r"noisy.png .* ([.\d]+) → ([.\d]+) dB", run.stdout)
    assert quality is not None
    assert float(quality[2]) > float(quality[1]) + 6
    assert "30 frames" in run.stdout
    assert run.stdout.count("= polyphase matrix") == len(undula.SCHEMES)
    error = re.search(r"largest error ([-+.e\d]+)", run.stdout)
    assert error is not None
    assert float(error[1]) < 1e-12
    for name in ("noise", "ultrasound", "pyramid", "kept", "schemes", "wavelets"):
        with Image.open(tmp_path / f"{name}.png") as picture:
            assert min(picture.size) > 250
            assert len(picture.convert("RGB").resize((64, 64)).getcolors(4096) or range(4096)) > 20


PAGES = sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/**/*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_the_drawing_of_the_layers_is_current() -> None:
    subprocess.run([sys.executable, str(ROOT / "tools" / "diagrams.py"), "--check"], check=True)


def test_versions_agree() -> None:
    sections = re.findall(r"^## (.*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert sections[0] == "[Unreleased]"
    released = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - (\S+)", section) for section in sections[1:]]
    assert all(released), sections
    versions = [
        (tuple(map(int, found[1].split("."))), date.fromisoformat(found[2])) for found in released if found
    ]
    assert versions == sorted(versions, reverse=True)
    assert undula.__version__ == released[0][1]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {released[0][1]}\n" in citation
    assert f"\ndate-released: {released[0][2]}\n" in citation


def test_entries_of_released_versions_are_short() -> None:
    """A merge that puts the long entries of an old list back into a released version is noticed, too."""
    released = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("\n## [Unreleased]\n")[2]
    entries = re.findall(r"^- .*(?:\n  .*)*", released.partition("\n## [")[2], re.M)
    assert entries
    assert [entry for entry in entries if entry.count("\n") > 1] == []


def test_workflows_test_the_versions_of_python_that_are_supported() -> None:
    yaml = pytest.importorskip("yaml")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    supported = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert project["requires-python"] == f">={supported[0]}"
    workflows = ROOT / ".github" / "workflows"
    jobs = yaml.safe_load((workflows / "tests.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["tests"]["strategy"]["matrix"]["python"] == supported
    assert set(jobs["passed"]["needs"]) == jobs.keys() - {"passed"}
    release = yaml.safe_load((workflows / "release.yml").read_text(encoding="utf-8"))["jobs"]
    assert release["install"]["strategy"]["matrix"]["python"] == [supported[0], supported[-1]]
