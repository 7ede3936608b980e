"""Reports of results and published numbers: one HTML page, or a Markdown page for each table and figure.

A page is a sequence of blocks: headings, paragraphs, lists, tables, charts, pictures and collapsible parts.
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
MAX_OPEN_ROWS = 14  # Longer tables of predictions are collapsed.


@dataclass
class Blocks:
    """The title and the blocks of a page."""

    title: str
    parts: list[tuple[str, Any]] = field(default_factory=list)

    def add(self, kind: str, content: Any) -> None:
        """Append a block."""
        self.parts.append((kind, content))


def number(value: Any) -> str:
    """Format a cell, numbers with about three significant digits."""
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
    """Describe the machine, date, version and kind of a run in one line."""
    gpus = [title for device, title in run["devices"].items() if device.startswith("cuda")]
    where = ", ".join([f"{run['processor']}, {run['threads']} threads", *gpus])
    kind = "quick run" if run["quick"] else "full run"
    return f"{where}; {run['date']}; Undula {run['undula']}; {kind}"


def page(experiment: Experiment, runs: Sequence[dict[str, Any]]) -> Blocks:
    """Lay out the page of an experiment.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    runs : sequence of dict
        Results of runs, as :func:`load` returns them.
    """
    items: list[Item] = []
    if experiment.work != "peers":
        published = work(experiment.work)
        items = [published.items[name] for name in (experiment.item, *experiment.also)]
    title = f"{items[0].title}: {experiment.title}" if items else experiment.title
    blocks = Blocks(title[:1].upper() + title[1:])
    findings = [
        line
        for run in runs
        for record in run["results"].get(experiment.name, {}).values()
        for line in record["findings"]
    ]
    if findings:
        blocks.add("list", list(dict.fromkeys(findings)))
    if items:
        blocks.add("heading", "Published")
        source = f"{published.place}, {published.year}"
        blocks.add("text", f"{published.authors}: “{published.title}”, {source}.")
        for item in items:
            _add_published(blocks, item)
    blocks.add("heading", "Today")
    measured = [run for run in runs if run["results"].get(experiment.name)]
    for run in measured:
        results = run["results"][experiment.name]
        blocks.add("subheading", machine_of(run))
        drawn = _charted_device(results)
        for device, record in results.items():
            outcome = Outcome.from_dict(record)
            for chart in outcome.charts if device == drawn else ():
                blocks.add("chart", chart)
            for what, png in outcome.pictures.items():
                blocks.add("picture", (what, png))
            for table in outcome.tables:
                blocks.add("table", table)
            _add_checks(blocks, outcome)
    if not measured:
        blocks.add("text", f"Not measured yet; run `undula experiments {experiment.name}`.")
    if experiment.why:
        blocks.add("heading", "Why")
        blocks.add("text", experiment.why)
    blocks.add("heading", "What can be compared")
    blocks.add("text", experiment.differs)
    _add_predictions(blocks, experiment, measured)
    blocks.add("code", f"undula experiments {experiment.name}")
    return blocks


def _charted_device(results: dict[str, Any]) -> str:
    """The device whose charts are shown: a GPU if there is one, else the CPU."""
    with_charts = [device for device, record in results.items() if record["charts"]]
    order = ("cuda", "cpu", "opencl")
    return min(with_charts, key=lambda d: order.index(d.partition(":")[0]), default="")


def _add_published(blocks: Blocks, item: Item) -> None:
    blocks.add("text", f"**{item.title}.** {item.what}")
    unit = f", {item.unit}" if item.unit else ""
    if item.rows and any(cell != "" for row in item.rows for cell in row[1:]):
        rows: list[list[Any]] = [
            [cell if isinstance(cell, str) else Printed(cell) for cell in row] for row in item.rows
        ]
        blocks.add("table", Table(f"{item.title}, as published{unit}", item.columns, rows))
    if item.note:
        blocks.add("fold", ("About these numbers", [("text", item.note)]))


class Printed(float):
    """A number shown with all digits of the publication."""

    def __str__(self) -> str:
        return f"{float(self):,.10g}"


def _add_checks(blocks: Blocks, outcome: Outcome) -> None:
    if outcome.checks:
        checks = list(dict.fromkeys(outcome.checks))
        blocks.add("fold", (f"Checks of the results ({len(checks)})", [("list", checks)]))


def _add_predictions(blocks: Blocks, experiment: Experiment, runs: Sequence[dict[str, Any]]) -> None:
    """Add a table of predicted and measured times."""
    rows = []
    for run in runs:
        for device, record in run["results"][experiment.name].items():
            for line in record["model"]:
                ratio = line["measured"] / line["predicted"]
                rows.append(
                    [run["devices"][device], line["what"], 1e3 * line["measured"], 1e3 * line["predicted"], ratio,
                     line["limit"], line["off"]]
                )  # fmt: skip
    blocks.add("heading", "The model")
    if not rows:
        blocks.add("text", "This page has no measurements of single plans, so there are no predictions.")
        return
    right = sum(not row[-1] for row in rows)
    blocks.add(
        "text",
        f"`plan.predict()` is within 30 % in {right} of the {len(rows)} measurements of this page; otherwise the last column"
        " names the term whose smallest change would explain the difference, if there is one.",
    )
    headings = "device,what,measured ms,predicted ms,ratio,limited by,if off by more than 30 %"
    table = ("table", Table("measured and predicted", headings.split(","), rows))
    if len(rows) > MAX_OPEN_ROWS:
        blocks.add("fold", (f"All {len(rows)} measurements", [table]))
    else:
        blocks.add(*table)


def summary(runs: Sequence[dict[str, Any]]) -> list[tuple[str, str, int, int]]:
    """For each device of each run: machine, device, number of measurements, and of those predicted within 30 %."""
    rows = []
    for run in runs:
        for device, title in run["devices"].items():
            records = [outcomes[device] for outcomes in run["results"].values() if device in outcomes]
            lines = [line for record in records for line in record.get("model", ())]
            unique = {(line["what"], line["measured"]): line for line in lines}
            if unique:
                right = sum(not line["off"] for line in unique.values())
                rows.append((machine_of(run), title, len(unique), right))
    return rows


# --- Markdown -------------------------------------------------------------------------------------


def pages(runs: Sequence[dict[str, Any]]) -> Iterator[tuple[str, Blocks]]:
    """Lay out a page for each experiment, by name."""
    for experiment in experiments().values():
        yield experiment.name, page(experiment, runs)


def markdown(blocks: Blocks, images: str, place: str, draw: bool = True) -> tuple[str, dict[str, bytes]]:
    """Format a page as Markdown.

    Parameters
    ----------
    blocks : Blocks
        The page.
    images : str
        The path of the folder of images, relative to the page.
    place : str
        Prefix of the names of images.
    draw : bool, optional
        False to leave charts empty. The default is True.

    Returns
    -------
    tuple of str and dict
        The text, and the contents of images by name.
    """
    files: dict[str, bytes] = {}

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
                name = f"{place}-{len(files)}.svg"
                files[name] = svg(content).encode() if draw else b""
                lines += [f"![{content.title}]({images}/{name})", ""]
            elif kind == "picture":
                what, png = content
                name = f"{place}-{len(files)}.png"
                files[name] = base64.b64decode(png)
                lines += [f"![{what}]({images}/{name})", "", f"*{what}*", ""]
            elif kind == "fold":
                title, inner = content
                lines += ['<details markdown="1">', f"<summary>{title}</summary>", ""]
                lines += [*printed(inner), "</details>", ""]
        return lines

    return "\n".join([f"# {blocks.title}", "", *printed(blocks.parts)]).rstrip() + "\n", files


def _numeric(table: Table) -> list[bool]:
    """True for each column with numbers."""
    return [any(isinstance(row[k], (int, float)) for row in table.rows) for k in range(len(table.columns))]


def _rows(table: Table) -> list[str]:
    lines = [list(table.columns), ["--:" if numeric else "---" for numeric in _numeric(table)]]
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
    """Format the results in a file as one self-contained HTML page.

    Parameters
    ----------
    path : str or Path
        A file that :func:`save` wrote.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> import tempfile
    >>> from undula.experiments import chosen, run, save
    >>> path = Path(tempfile.mkdtemp()) / "results.json"
    >>> save(run(chosen(["colour/rmsy"]), ["cpu"], quick=True), path)
    >>> report(path)[:15]
    '<!doctype html>'
    """
    run = load(Path(path))
    known = experiments()
    by_work: dict[str, list[Experiment]] = {name: [] for name in (*WORKS, "peers")}
    for name in run["results"]:
        if name in known:
            by_work[known[name].work].append(known[name])
    by_work = {name: shown for name, shown in by_work.items() if shown}
    body = [
        "<h1>Undula: tables and figures of five works, reproduced</h1>",
        f"<p>{html.escape(machine_of(run))}</p>",
    ]
    versions = ", ".join(f"{name} {value}" for name, value in run["versions"].items())
    body.append(f"<p>{html.escape(versions)}; measured in {run['seconds']:.0f} s.</p>")
    model = Table("accuracy of the model", ["device", "measurements", "within 30 %", "share"])
    for _, device, count, right in summary([run]):
        model.add(device, count, right, f"{100 * right / count:.0f} %")
    for name, shown in by_work.items():
        links = "".join(f'<a href="#{_anchor(e.name)}">{html.escape(page(e, []).title)}</a>' for e in shown)
        body.append(f"<nav><b>{html.escape(TITLES[name])}</b><br>{links}</nav>")
    if model.rows:
        body.append(_html([("table", model)]))
    for name, shown in by_work.items():
        body.append(f'<h2 id="{name}">{html.escape(TITLES[name])}</h2>')
        if name in WORKS:
            method = [("text", part) for part in work(name).method.strip().split("\n\n")]
            body.append(
                _html([("list", work(name).hardware), ("fold", ("How the authors measured", method))])
            )
        for experiment in shown:
            blocks = page(experiment, [run])
            body.append(f'<h3 id="{_anchor(experiment.name)}">{html.escape(blocks.title)}</h3>')
            body.append(_html(blocks.parts))
    footer = f"Undula {run['undula']}, {run['date']}. Published numbers belong to their authors; the wording is ours."
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
    """Convert inline Markdown (code, bold, italics) to HTML."""
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
    """Format a paragraph, followed by a list if lines begin with dashes."""
    head, *points = re.split(r"^- ", text, flags=re.M)
    items = "".join(f"<li>{_inline(point)}</li>" for point in points)
    return (f"<p>{_inline(head)}</p>" if head.strip() else "") + (f"<ul>{items}</ul>" if items else "")


def _table(table: Table) -> str:
    kinds = [' class="n"' if numeric else "" for numeric in _numeric(table)]
    head = "".join(f"<th{k}>{html.escape(name)}</th>" for k, name in zip(kinds, table.columns, strict=True))
    rows = "".join(
        "<tr>"
        + "".join(f"<td{k}>{html.escape(number(c))}</td>" for k, c in zip(kinds, row, strict=True))
        + "</tr>"
        for row in table.rows
    )
    title = html.escape(table.title)
    return f'<div class="wide"><table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
