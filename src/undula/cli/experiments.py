"""The command that makes the tables of five works again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import MissingExtraError
from .common import Json, Quiet, app
from .screen import complain, say, show_json, show_table, steps


@app.command()
def experiments(
    names: Annotated[
        list[str] | None, typer.Argument(help="such as video, or tiles/figure-7; all if none is given")
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
    from ..experiments import chosen, earlier, report, run, save

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
    output.mkdir(parents=True, exist_ok=True)
    results, page = output / "results.json", output / "report.html"
    before = earlier(results, quick)
    kept = 0

    def keep(some: dict[str, Any]) -> None:
        """So that nothing is lost."""
        nonlocal kept
        kept = sum(map(len, some["results"].values()))
        save(some, results, before)

    with steps("experiments", 1000, quiet or json_) as progress:
        try:
            found = run(
                wanted,
                device,
                quick,
                lambda what, done, whole: progress(round(1000 * done / whole), what),
                keep,
            )
        except KeyboardInterrupt:
            if not kept:
                raise
            page.write_text(report(results), encoding="utf-8")
            complain(f"interrupted; {kept} results are kept in {results} and shown in {page}")
            raise typer.Exit(130) from None
    page.write_text(report(results), encoding="utf-8")
    if json_:
        told = {
            name: [line for one in some.values() for line in one["findings"]]
            for name, some in found["results"].items()
        }
        show_json(
            {
                "results": str(results),
                "report": str(page),
                "seconds": found["seconds"],
                "findings": told,
                "skipped": found["skipped"],
            }
        )
        return
    rows = [
        [name, len(some), sum(one["seconds"] for one in some.values()), _first(some)]
        for name, some in found["results"].items()
    ]
    if not quiet:
        show_table("experiments", ["name", "devices", "seconds", "finding"], rows)
        if found["skipped"]:
            say(f"not for this device: {', '.join(found['skipped'])}")
        say(f"{found['seconds']:.0f} s; numbers are in {results}; open {page} in a browser")


def _first(some: dict[str, dict[str, list[str]]]) -> str:
    """The first thing that was found."""
    return next((line for one in some.values() for line in one["findings"]), "")
