"""The command that makes the tables of five works again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import MissingExtraError
from .common import Json, Quiet, app
from .screen import say, show_json, show_table, steps


@app.command()
def experiments(
    names: Annotated[
        list[str] | None, typer.Argument(help="such as video, or schemes/table-6; all if none is given")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="small sizes and few runs: some minutes")] = False,
    device: Annotated[
        list[str] | None, typer.Option("--device", "-d", help="cpu, cuda:0, opencl:0 …; all that there are")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="a folder for results and report")] = Path(
        "experiments"
    ),
    list_: Annotated[bool, typer.Option("--list", help="tell their names, and no more")] = False,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make the tables and figures of five works again, on every device of this machine.

    Writes results.json and report.html, with the published numbers beside those of today.

    Example: `undula experiments schemes/table-2 --device cpu --quick`
    """
    from ..experiments import chosen, report, run, save

    wanted = chosen(names or [])
    if list_:
        if json_:
            show_json({one.name: one.title for one in wanted})
        else:
            show_table("experiments", ["name", "what"], [[one.name, one.title] for one in wanted])
        return
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("a report needs Matplotlib: pip install 'undula[bench]'") from error
    with steps("experiments", 1000, quiet or json_) as progress:
        found = run(
            wanted,
            device,
            quick,
            lambda what, done, whole: progress(round(1000 * done / max(1, whole)), what),
            lambda some: save(some, output / "results.json"),  # (so that nothing is lost)
        )
    page = output / "report.html"
    page.write_text(report(output / "results.json"), encoding="utf-8")
    if json_:
        show_json({"results": str(output / "results.json"), "report": str(page), "seconds": found["seconds"]})
        return
    rows = [
        [name, len(some), sum(one["seconds"] for one in some.values()), _first(some)]
        for name, some in found["results"].items()
    ]
    if not quiet:
        show_table("experiments", ["name", "devices", "seconds", "finding"], rows)
        say(f"{found['seconds']:.0f} s; numbers are in {output / 'results.json'}; open {page} in a browser")


def _first(some: dict[str, dict[str, list[str]]]) -> str:
    """The first thing that was found."""
    return next((line for one in some.values() for line in one["findings"]), "")
