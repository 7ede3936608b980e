"""Results beside the published numbers: one HTML page of everything, or a Markdown page for each table and figure.

A page is blocks (headings, paragraphs, lists, tables, charts, pictures, parts to unfold), which two printers print.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .base import Chart, Experiment, Outcome, Table, experiments
from .charts import svg
from .published import WORKS, Item, work
from .run import load

__all__ = ["Blocks", "page", "pages", "report", "summary"]

TITLES = {
    "video": "Video coding on a GPU (Aalborg, 2012)",
    "ultrasound": "Ultrasound in real time (NTNU, 2007)",
    "colour": "Colour in integers (Apple, 1999)",
    "schemes": "Ten parallel schemes (Brno, 2016)",
    "tiles": "Tiles and blocks (Columbia, 2019)",
    "peers": "Other packages",
}
MOST = 14  # rows of the model's table that are shown unfolded


@dataclass
class Blocks:
    """What a page is made of."""

    title: str
    parts: list[tuple[str, Any]] = field(default_factory=list)

    def add(self, kind: str, content: Any) -> None:
        """One more block."""
        self.parts.append((kind, content))


def number(value: Any) -> str:
    """A cell as text: no more digits than mean something."""
    if isinstance(value, (bool, Printed)) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) < 0.001:
        return f"{value:.2g}"
    digits = f"{value:.3g}"
    return f"{value:.0f}" if "e" in digits else digits


def machine_of(run: dict[str, Any]) -> str:
    """A line about where and when."""
    gpus = [title for device, title in run["devices"].items() if device.startswith("cuda")]
    where = ", ".join([f"{run['processor']}, {run['threads']} threads", *gpus])
    kind = "quick run" if run["quick"] else "full run"
    return f"{where}; {run['date']}; Undula {run['undula']}; {kind}"


def page(one: Experiment, runs: Sequence[dict[str, Any]]) -> Blocks:
    """All about one table or figure."""
    items = [] if one.work == "peers" else [work(one.work).items[name] for name in (one.item, *one.also)]
    title = f"{items[0].title}: {one.title}" if items else one.title
    blocks = Blocks(title[:1].upper() + title[1:])
    findings = [
        (machine_of(run), line)
        for run in runs
        for told in run["results"].get(one.name, {}).values()
        for line in told["findings"]
    ]
    if findings:
        blocks.add("list", list(dict.fromkeys(line for _, line in findings)))
    if items:
        own = work(one.work)
        blocks.add("heading", "Published")
        blocks.add("text", f"{own.authors}: “{own.title}”, {own.place}, {own.year}.")
        for item in items:
            _published(blocks, item)
    blocks.add("heading", "Today")
    seen = False
    for run in runs:
        results = run["results"].get(one.name, {})
        if not results:
            continue
        seen = True
        blocks.add("subheading", machine_of(run))
        drawn = _drawn(results)
        for device, told in results.items():
            outcome = Outcome.from_dict(told)
            for chart in outcome.charts if device == drawn else ():
                blocks.add("chart", chart)
            for what, png in outcome.pictures.items():
                blocks.add("picture", (what, png))
            for table in outcome.tables:
                blocks.add("table", table)
            _checked(blocks, outcome)
    if not seen:
        blocks.add("text", "Not measured yet: `undula experiments " + one.name + "` does it.")
    if one.why:
        blocks.add("heading", "Why")
        blocks.add("text", one.why)
    blocks.add("heading", "What can be compared")
    blocks.add("text", one.differs)
    _modelled(blocks, one, runs)
    blocks.add("code", f"undula experiments {one.name}")
    return blocks


def _drawn(results: dict[str, Any]) -> str:
    """The device whose charts are shown: a GPU if there is one, then the processor."""
    with_charts = [device for device, told in results.items() if told["charts"]]
    order = ("cuda", "cpu", "opencl")
    return min(with_charts, key=lambda d: order.index(d.partition(":")[0]), default="")


def _published(blocks: Blocks, item: Item) -> None:
    blocks.add("text", f"**{item.title}.** {item.what}")
    unit = f", {item.unit}" if item.unit else ""
    if item.rows and any(cell != "" for row in item.rows for cell in row[1:]):
        rows = [[cell if isinstance(cell, str) else _printed(cell) for cell in row] for row in item.rows]
        blocks.add("table", Table(f"{item.title}, as published{unit}", item.columns, rows))
    if item.note:
        blocks.add("fold", ("About these numbers", [("text", item.note)]))


class Printed(float):
    """A number that is shown as it was printed."""

    def __str__(self) -> str:
        return f"{float(self):,.10g}"


def _printed(value: float) -> float:
    return Printed(value)


def _checked(blocks: Blocks, outcome: Outcome) -> None:
    if outcome.checks:
        checks = list(dict.fromkeys(outcome.checks))
        blocks.add("fold", (f"What was calculated, checked ({len(checks)})", [("list", checks)]))


def _modelled(blocks: Blocks, one: Experiment, runs: Sequence[dict[str, Any]]) -> None:
    """Predicted beside measured."""
    rows = []
    for run in runs:
        for device, told in run["results"].get(one.name, {}).items():
            for line in told["model"]:
                ratio = line["measured"] / line["predicted"]
                rows.append(
                    [run["devices"][device], line["what"], 1e3 * line["measured"], 1e3 * line["predicted"], ratio,
                     line["limit"], line["off"]]
                )  # fmt: skip
    blocks.add("heading", "The model")
    if not rows:
        blocks.add("text", "No plan is measured by itself on this page, so there is nothing to predict.")
        return
    right = sum(not row[-1] for row in rows)
    blocks.add(
        "text",
        f"`plan.predict()` is within 30 % in {right} of the {len(rows)} measurements of this page; where it is not, the last column"
        " names the term whose smallest change would explain it, if there is one.",
    )
    columns = [
        "device",
        "what",
        "measured ms",
        "predicted ms",
        "ratio",
        "limited by",
        "if off by more than 30 %",
    ]
    table = ("table", Table("measured and predicted", columns, rows))
    if len(rows) > MOST:
        blocks.add("fold", (f"All {len(rows)} measurements", [table]))
    else:
        blocks.add(*table)


def summary(runs: Sequence[dict[str, Any]]) -> list[tuple[str, str, int, int]]:
    """For each device of each run: machine, device, measurements, and how many the model has within 30 %."""
    found = []
    for run in runs:
        for device, title in run["devices"].items():
            lines = [
                line for some in run["results"].values() for line in some.get(device, {}).get("model", ())
            ]
            unique = {(line["what"], line["measured"]): line for line in lines}
            if unique:
                right = sum(not line["off"] for line in unique.values())
                found.append((machine_of(run), title, len(unique), right))
    return found


# --- Markdown -------------------------------------------------------------------------------------


def pages(runs: Sequence[dict[str, Any]]) -> Iterator[tuple[str, Blocks]]:
    """A page for each experiment, by its name."""
    for one in experiments().values():
        yield one.name, page(one, runs)


def markdown(blocks: Blocks, images: str, place: str, draw: bool = True) -> tuple[str, dict[str, bytes]]:
    """A page as Markdown, and its pictures by name; ``images`` leads to their folder.

    Without ``draw`` charts are empty.
    """
    kept: dict[str, bytes] = {}

    def printed(parts: Sequence[tuple[str, Any]]) -> list[str]:
        lines: list[str] = []
        for kind, content in parts:
            if kind in ("heading", "subheading"):
                lines += [f"{'##' if kind == 'heading' else '###'} {content}", ""]
            elif kind == "text":
                lines += [content, ""]
            elif kind == "code":
                lines += ["```sh", content, "```", ""]
            elif kind == "list":
                lines += [*("- " + line.replace("*", "\\*") for line in content), ""]
            elif kind == "table":
                lines += [f"*{content.title}*", "", *_rows(content), ""]
            elif kind == "chart":
                name = f"{place}-{len(kept)}.svg"
                kept[name] = svg(content).encode() if draw else b""
                lines += [f"![{content.title}]({images}/{name})", ""]
            elif kind == "picture":
                what, png = content
                name = f"{place}-{len(kept)}.png"
                kept[name] = base64.b64decode(png)
                lines += [f"![{what}]({images}/{name})", "", f"*{what}*", ""]
            elif kind == "fold":
                title, inner = content
                lines += [
                    '<details markdown="1">',
                    f"<summary>{title}</summary>",
                    "",
                    *printed(inner),
                    "</details>",
                    "",
                ]
        return lines

    return "\n".join([f"# {blocks.title}", "", *printed(blocks.parts)]).rstrip() + "\n", kept


def _rows(table: Table) -> list[str]:
    right = [any(isinstance(row[k], (int, float)) for row in table.rows) for k in range(len(table.columns))]
    lines = [list(table.columns), ["--:" if some else "---" for some in right]]
    lines += [[number(cell).replace("|", "\\|").replace("*", "\\*") for cell in row] for row in table.rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


# --- HTML -----------------------------------------------------------------------------------------

STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --accent: #1098ad; }
body { font: 16px/1.55 system-ui, sans-serif; margin: 0 auto; max-width: 68rem; padding: 1.5rem; }
h1 { font-size: 1.9rem; margin: .2em 0; } h2 { margin: 2.6em 0 .4em; padding-top: .5em; border-top: 2px solid var(--accent); }
h3 { margin: 2.2em 0 .3em; } h4 { margin: 1.4em 0 .2em; } h5 { margin: 1em 0 .2em; font-size: 1em; opacity: .8; }
table { border-collapse: collapse; font-size: .86rem; font-variant-numeric: tabular-nums; margin: .4em 0 1em; }
th, td { padding: .22em .7em; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
td.n, th.n { text-align: right; } caption { text-align: left; font-style: italic; padding: .3em 0; }
.wide { overflow-x: auto; } svg { max-width: 100%; height: auto; } img { max-width: 100%; }
nav a { display: inline-block; margin: 0 1em .2em 0; } a { color: var(--accent); }
code { background: var(--soft); padding: .1em .35em; border-radius: 4px; } details { margin: .4em 0 1em; }
summary { cursor: pointer; } footer { margin-top: 4em; font-size: .85rem; opacity: .7; }
"""


def report(path: str | Path) -> str:
    """One HTML page of the results in a file: everything in it, nothing to be loaded."""
    run = load(Path(path))
    known = experiments()
    wanted = [known[name] for name in run["results"] if name in known]
    body = [
        "<h1>Undula: tables and figures of five works, again</h1>",
        f"<p>{html.escape(machine_of(run))}</p>",
    ]
    versions = ", ".join(f"{name} {value}" for name, value in run["versions"].items())
    body.append(f"<p>{html.escape(versions)}; measured in {run['seconds']:.0f} s.</p>")
    model = Table("how often the model is right", ["device", "measurements", "within 30 %", "share"])
    for _, device, count, right in summary([run]):
        model.add(device, count, right, f"{100 * right / count:.0f} %")
    for own in (*WORKS, "peers"):
        some = [one for one in wanted if one.work == own]
        if not some:
            continue
        links = "".join(
            f'<a href="#{_anchor(one.name)}">{html.escape(page(one, []).title)}</a>' for one in some
        )
        body.append(f"<nav><b>{html.escape(TITLES[own])}</b><br>{links}</nav>")
    if model.rows:
        body.append(_html([("table", model)]))
    for own in (*WORKS, "peers"):
        some = [one for one in wanted if one.work == own]
        if not some:
            continue
        body.append(f'<h2 id="{own}">{html.escape(TITLES[own])}</h2>')
        if own in WORKS:
            inner = [("text", part) for part in work(own).method.strip().split("\n\n")]
            body.append(_html([("list", work(own).hardware), ("fold", ("How it was measured then", inner))]))
        for one in some:
            blocks = page(one, [run])
            body.append(f'<h3 id="{_anchor(one.name)}">{html.escape(blocks.title)}</h3>')
            body.append(_html(blocks.parts))
    footer = f"Undula {run['undula']}, {run['date']}. Published numbers are their authors'; wording is ours."
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Undula: experiments</title><style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(body)
        + f"\n<footer>{html.escape(footer)}</footer>\n</body></html>\n"
    )


def _anchor(name: str) -> str:
    return re.sub(r"[^\w]+", "-", name)


def _inline(text: str) -> str:
    """Text with `code` and **strong** in it."""
    safe = html.escape(text, quote=False)
    safe = re.sub(r"`([^`]+)`", r"<code>\1</code>", safe)
    safe = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", safe)
    return re.sub(r"(?<![\w*])\*([^*\s][^*]*)\*(?!\w)", r"<i>\1</i>", safe)


def _html(parts: Sequence[tuple[str, Any]]) -> str:
    lines: list[str] = []
    for kind, content in parts:
        if kind in ("heading", "subheading"):
            tag = "h4" if kind == "heading" else "h5"
            lines.append(f"<{tag}>{_inline(content)}</{tag}>")
        elif kind == "text":
            lines.append(_paragraph(content))
        elif kind == "code":
            lines.append(f"<p><code>{html.escape(content)}</code></p>")
        elif kind == "list":
            lines.append("<ul>" + "".join(f"<li>{_inline(line)}</li>" for line in content) + "</ul>")
        elif kind == "table":
            lines.append(_table(content))
        elif kind == "chart":
            chart: Chart = content
            label = html.escape(chart.title)
            lines.append(svg(chart).replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1))
        elif kind == "picture":
            what, png = content
            lines.append(
                f'<figure><img alt="{html.escape(what)}" src="data:image/png;base64,{png}">'
                f"<figcaption>{html.escape(what)}</figcaption></figure>"
            )
        elif kind == "fold":
            title, inner = content
            lines.append(f"<details><summary>{_inline(title)}</summary>{_html(inner)}</details>")
    return "\n".join(lines)


def _paragraph(text: str) -> str:
    """A paragraph, or a list where lines begin with dashes."""
    head, *rest = re.split(r"^- ", text, flags=re.M)
    points = "".join(f"<li>{_inline(point)}</li>" for point in rest)
    return (f"<p>{_inline(head)}</p>" if head.strip() else "") + (f"<ul>{points}</ul>" if points else "")


def _table(table: Table) -> str:
    right = [any(isinstance(row[k], (int, float)) for row in table.rows) for k in range(len(table.columns))]
    kinds = [' class="n"' if some else "" for some in right]
    head = "".join(f"<th{k}>{html.escape(name)}</th>" for k, name in zip(kinds, table.columns, strict=True))
    rows = "".join(
        "<tr>"
        + "".join(f"<td{k}>{html.escape(number(c))}</td>" for k, c in zip(kinds, row, strict=True))
        + "</tr>"
        for row in table.rows
    )
    title = html.escape(table.title)
    return f'<div class="wide"><table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
