"""The command that reproduces tables and figures of five publications."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

import undula

from ..errors import FileError, MissingExtraError, install_hint
from ..io.files import atomic_write
from .common import Json, Overwrite, Quiet, app
from .outputs import check_outputs
from .screen import print_error, print_json, print_table, print_text, progress_bar


@app.command(rich_help_panel="Measurements")
def experiments(
    names: Annotated[
        list[str] | None,
        Argument(
            metavar="NAME", help="Experiments, such as video or tiles/figure-7; by default, all of them."
        ),
    ] = None,
    quick: Annotated[
        bool, Option("--quick", help="Use small sizes and few runs; takes a few minutes.")
    ] = False,
    device: Annotated[
        list[str] | None,
        Option(
            "--device",
            "-d",
            help="A device, such as cpu, cuda:0 or opencl:0; repeat the option for several devices.",
            show_default="all devices that can be used",
        ),
    ] = None,
    output: Annotated[
        Path, Option("--output", "-o", help="The folder for the results and the report.")
    ] = Path("experiments"),
    overwrite: Overwrite = False,
    list_: Annotated[bool, Option("--list", help="List the experiments and exit.")] = False,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce tables and figures of five publications on the devices of this machine that can run them.

    Writes results.json and report.html, which shows the published numbers next to the new ones.

    Example: `undula experiments schemes/table-2 --device cpu --quick`
    """
    from ..experiments import chosen, earlier, report, run, save

    selection = chosen(names or [])
    if list_:
        titles = {experiment.name: experiment.title for experiment in selection}
        print_json(titles) if json_ else print_table("experiments", ["name", "title"], list(titles.items()))
        return
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(f"a report needs Matplotlib: {install_hint('bench')}") from error
    results_path, report_path = output / "results.json", output / "report.html"
    if output.exists() and not output.is_dir():
        raise FileError(f"{output} is a file, but results need a folder; name another one with --output")
    previous = earlier(results_path, quick)
    if previous is None:  # Otherwise, the report was made from these results alone.
        check_outputs(report_path, overwrite=overwrite, advice="name another folder with --output")
    elif not overwrite:
        selected = [experiment.name for experiment in selection]
        _check_measured(previous, selected, device or list(undula.devices()), results_path)
    output.mkdir(parents=True, exist_ok=True)
    saved = 0

    def save_results(measured: dict[str, Any]) -> None:
        """Save the results after each experiment, so that an interrupt loses none."""
        nonlocal saved
        saved = sum(map(len, measured["results"].values()))
        save(measured, results_path, previous)

    with progress_bar("experiments", 1000, quiet or json_) as progress:
        try:
            measured = run(
                selection,
                device,
                quick,
                lambda name, done, total: progress(round(1000 * done / total), name),
                save_results,
            )
        except KeyboardInterrupt:
            if not saved:
                raise
            _write_page(report_path, report(results_path))
            print_error(f"interrupted; {saved} result(s) saved to {results_path} and shown in {report_path}")
            raise typer.Exit(130) from None
    _write_page(report_path, report(results_path))
    findings = {
        name: [line for outcome in outcomes.values() for line in outcome["findings"]]
        for name, outcomes in measured["results"].items()
    }
    if json_:
        print_json(
            {
                "results": str(results_path),
                "report": str(report_path),
                "seconds": measured["seconds"],
                "findings": findings,
                "skipped": measured["skipped"],
            }
        )
    elif not quiet:
        rows = [
            [name, len(outcomes), sum(o["seconds"] for o in outcomes.values()), "".join(findings[name][:1])]
            for name, outcomes in measured["results"].items()
        ]
        print_table("experiments", ["name", "devices", "seconds", "finding"], rows)
        if measured["skipped"]:
            print_text(f"not available on these devices: {'; '.join(measured['skipped'])}")
        print_text(f"{measured['seconds']:.0f} s; results in {results_path}; open {report_path} in a browser")


def _check_measured(previous: dict[str, Any], names: list[str], devices: list[str], path: Path) -> None:
    """Raise an error if this run would replace results of a previous one."""
    repeated = [
        f"{name} on {device}"
        for name in names
        for device in devices
        if device in previous["results"].get(name, {})
    ]
    if repeated:
        others = f" and {len(repeated) - 3} more" if len(repeated) > 3 else ""
        raise FileError(
            f"{path} contains results of {', '.join(repeated[:3])}{others}, which would be lost; add"
            " --overwrite (-y) to measure them again, or name another folder with --output"
        )


def _write_page(path: Path, text: str) -> None:
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
