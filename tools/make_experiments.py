"""Writes the pages of docs/experiments/ from the results that are kept, and the drawings of docs/why.md.

python tools/make_experiments.py            writes them
python tools/make_experiments.py --check    tells whether the pages are up to date
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import undula
from undula.experiments import Chart, experiments, load
from undula.experiments.charts import svg
from undula.experiments.published import WORKS, work
from undula.experiments.report import TITLES, machine_of, markdown, pages, summary

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
RUNS = ("h200", "two-cores")  # in benchmarks/results/experiments-NAME.json; the first is shown first
NOTE = "*Made by `tools/make_experiments.py` from `benchmarks/results/experiments-*.json`.*\n"


def runs() -> list[dict]:
    found = [ROOT / "benchmarks" / "results" / f"experiments-{name}.json" for name in RUNS]
    return [load(path) for path in found if path.exists()]


def index(found: list[dict]) -> str:
    """The first page: what was run where, how good the model is, what was found."""
    lines = [
        "# Every table of five works, again",
        "",
        "Undula stands on five papers and reports about fast wavelet transforms. `undula experiments` makes each of their tables and"
        " figures again on the machine at hand, on every device in it, and writes one report with the published numbers beside"
        " today's. These pages are made from such runs:",
        "",
        *(f"- {machine_of(run)}, {run['seconds']:.0f} s" for run in found),
        "",
        "```sh",
        "undula experiments schemes/table-2 --device cpu",
        "undula experiments --list",
        "```",
        "",
        "`undula experiments --quick` takes some minutes on two cores; without it, sizes are those of the works.",
        "",
        "The rules are those of the works: everything is warmed up, images are switched between runs, a figure is the median of as"
        " many runs as time allows, and what was calculated is checked: sums of coefficients beside PyWavelets' or those of a"
        " calculation in float64, and the way back beside the image.",
        "",
        "## The model",
        "",
        "[`plan.predict()`](../model.md) stands beside every measurement. How often it is within 30 per cent:",
        "",
        "| machine | device | measurements | within 30 % |",
        "|---|---|--:|--:|",
        *(
            f"| {where.split(';')[0]} | {device} | {count} | {right} ({100 * right / count:.0f} %) |"
            for where, device, count, right in summary(found)
        ),
        "",
    ]
    for name, title in TITLES.items():
        lines += [f"## {title}", ""]
        if name in WORKS:
            own = work(name)
            lines += [f"{own.authors.partition(' (')[0]}: [“{own.title}”]({name}/index.md).", ""]
        lines += ["| page | what was found |", "|---|---|"]
        for one in (e for e in experiments().values() if e.work == name):
            said = [
                line
                for run in found
                for told in run["results"].get(one.name, {}).values()
                for line in told["findings"][:1]
            ]
            label = one.title if name == "peers" else f"{_titled(one.work, one.item)}: {one.title}"
            told = " ".join(list(dict.fromkeys(said))[:2]).replace("*", "\\*")
            lines.append(f"| [{label}]({one.name}.md) | {told} |")
        lines.append("")
    return "\n".join([*lines, NOTE])


def _titled(name: str, item: str) -> str:
    title = work(name).items[item].title
    return title[:1].upper() + title[1:]


def about(name: str) -> str:
    """A work: what it was measured on, and how."""
    own = work(name)
    lines = [
        f"# {TITLES[name]}",
        "",
        f"{own.authors}: “{own.title}”, {own.place}, {own.year}.",
        "",
        "| table or figure | |",
        "|---|---|",
        *(
            f"| [{_titled(name, one.item)}]({one.item}.md) | {one.title} |"
            for one in experiments().values()
            if one.work == name
        ),
        "",
        "## What it was measured on",
        "",
        *(f"- {line}" for line in own.hardware),
        "",
        "## How",
        "",
        re.sub(r"^# ", "### ", own.method.strip(), flags=re.M),
        "",
    ]
    return "\n".join([*lines, NOTE])


def texts(draw: bool = True) -> tuple[dict[str, str], dict[str, bytes]]:
    """All pages and all pictures, by their paths in docs/; empty ones where they need not be drawn."""
    found = runs()
    made = {"experiments/index.md": index(found)}
    kept: dict[str, bytes] = {}
    for name in WORKS:
        made[f"experiments/{name}/index.md"] = about(name)
    for name, blocks in pages(found):
        text, pictures = markdown(blocks, "../../images/experiments", name.replace("/", "-"), draw)
        made[f"experiments/{name}.md"] = f"---\nhide:\n  - toc\n---\n\n{text}\n{NOTE}"
        kept |= {f"images/experiments/{key}": value for key, value in pictures.items()}
    return made, kept


def bytes_moved() -> str:
    """Bytes for a pixel: two passes, one pass, and one and five levels."""
    chart = Chart("bytes moved for a pixel of float32, CDF 9/7", "", "bytes", kind="bars")
    n, bytes_ = 2048, {}
    for level in (1, 5):
        once = undula.Plan((n, n), "cdf97", level=level, dtype="float32").cost.bytes
        bytes_[level] = {
            "a copy": 8.0,
            "one pass (Undula)": once / n**2,
            "rows, then columns": 2 * once / n**2,
        }
    for level, some in bytes_.items():
        chart.series[f"{level} level{'s' * (level > 1)}"] = list(some.items())
    return svg(chart)


def main() -> None:
    made, kept = texts(draw="--check" not in sys.argv)
    if "--check" in sys.argv:
        stale = [
            name
            for name, text in made.items()
            if not (DOCS / name).exists() or (DOCS / name).read_text(encoding="utf-8") != text
        ]
        if stale:
            raise SystemExit(f"run python tools/make_experiments.py: not up to date: {', '.join(stale)}")
        return
    for folder in ("experiments", "images/experiments"):
        for old in (DOCS / folder).rglob("*.*"):
            old.unlink()
    for name, content in {**{k: v.encode() for k, v in made.items()}, **kept}.items():
        path = DOCS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (DOCS / "images" / "why-bytes.svg").write_text(bytes_moved(), encoding="utf-8")
    print(f"{len(made)} pages, {len(kept)} pictures")


if __name__ == "__main__":
    main()
