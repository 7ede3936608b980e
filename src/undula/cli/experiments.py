"""The command that makes the tables of five works again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import undula

from ..errors import FileError, MissingExtraError, install_hint
from ..io.files import atomic_write
from .common import Json, Overwrite, Quiet, app
from .outputs import check_outputs
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
    overwrite: Overwrite = False,
    list_: Annotated[bool, typer.Option("--list", help="print the names and exit")] = False,
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
        raise MissingExtraError(f"a report needs Matplotlib: {install_hint('bench')}") from error
    results, page = output / "results.json", output / "report.html"
    if output.exists() and not output.is_dir():
        raise FileError(f"{output} is a file, and results go to a folder; name another one with --output")
    before = earlier(results, quick)
    if before is None:  # (else the page was made from these results, and has nothing else in it)
        check_outputs(page, overwrite=overwrite, advice="name another folder with --output")
    elif not overwrite:
        _check_measured(before, [one.name for one in wanted], device or list(undula.devices()), results)
    output.mkdir(parents=True, exist_ok=True)
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
            _write_page(page, report(results))
            complain(f"interrupted; {kept} results are kept in {results} and shown in {page}")
            raise typer.Exit(130) from None
    _write_page(page, report(results))
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


def _check_measured(before: dict[str, Any], names: list[str], devices: list[str], path: Path) -> None:
    """Raises an error for results of an earlier run that this one would measure again."""
    both = [
        f"{name} on {device}"
        for name in names
        for device in devices
        if device in before["results"].get(name, {})
    ]
    if both:
        more = f" and {len(both) - 3} more" if len(both) > 3 else ""
        raise FileError(
            f"{path} has results of {', '.join(both[:3])}{more}, which would be lost; add --overwrite (-y) to"
            " measure them again, or name another folder with --output"
        )


def _write_page(path: Path, text: str) -> None:
    with atomic_write(path) as beside:
        beside.write_text(text, encoding="utf-8")


def _first(some: dict[str, dict[str, list[str]]]) -> str:
    """The first thing that was found."""
    return next((line for one in some.values() for line in one["findings"]), "")
