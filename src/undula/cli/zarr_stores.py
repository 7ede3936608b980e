"""Commands on Zarr stores: pyramids, and what other commands do with stores."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from .. import stores
from ..errors import ArgumentError, FileError
from ..io.stack import UNKNOWN, StackAxes, StackLayout
from ..stores.opening import SPACE, SourceArray, open_source, spatial_axes
from ..stores.partial import is_incomplete, is_store, partial_path
from ..stores.pictures import filter_stack, imported_image, joined_chunks
from ..stores.running import TaskRunner
from .common import WAVELET_HELP, Axes, Backend, Json, Overwrite, Quiet, Resume, Scheduler, Workers, app
from .screen import print_error, print_output, progress_bar

SUFFIX = ".zarr"


class InterruptedWorkError(Exception):
    """An interrupt of work that can be continued; the command prints the message and has the status 130."""


def is_zarr(path: str | Path) -> bool:
    """Return whether a path is meant to be a Zarr store: by its suffix, a part of it, or its content."""
    parts = str(path).rstrip("/").split("/")
    return any(part.lower().endswith(SUFFIX) for part in parts if part != SUFFIX) or (
        is_store(path) or is_incomplete(path)
    )


def check_zarr_target(source: str | Path, target: str | Path) -> None:
    """Raise an error if the output of a Zarr store is to be a file of another kind."""
    if Path(target).suffix.lower() != SUFFIX:
        raise FileError(
            f"{source} is a Zarr store, and its output must be one; name an output that ends in {SUFFIX}"
        )


def refuse_store_options(
    source: str | Path, scheduler: str | None, workers: int | None, axes: str | None = None
) -> None:
    """Raise an error if options of Zarr stores are given for an image."""
    given = {"--scheduler": scheduler, "--workers": workers, "--axes": axes}
    for name, value in given.items():
        if value is not None:
            raise ArgumentError(f"{name} applies to Zarr stores only; {source} is none")


@contextmanager
def store_work(target: str | Path, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that shows progress over regions; an interrupt says how to go on."""
    with ExitStack() as stack:
        bars: list[Any] = []

        def progress(done: int, total: int) -> None:
            if not bars:
                bars.append(stack.enter_context(progress_bar(Path(target).name, total, quiet)))
            bars[0](done)

        try:
            yield progress
        except KeyboardInterrupt:
            partial = partial_path(Path(target))
            if not partial.exists():
                raise
            raise InterruptedWorkError(
                f"interrupted; {partial} keeps what is done, run the same command again to continue"
            ) from None


def filter_store(
    source: Path,
    target: Path,
    pipeline: Any,
    sigma: float | None,
    backend: str,
    overwrite: bool,
    resume: bool,
    quiet: bool,
    runner: TaskRunner | None,
    names: str | None = None,
    over: str | None = None,
) -> tuple[int, ...]:
    """Filter an array of Zarr by a pipeline, and return its shape.

    ``names`` are those of the axes, and ``over`` the axes that are filtered together.
    """
    check_zarr_target(source, target)
    given = open_source(source)
    options: dict[str, Any] = {"sigma": sigma, "backend": backend}
    if given.names is not None:
        options["channel_axis"] = given.color_axis
        options["axes"] = spatial_axes(given, None)
    layout = None
    if names is not None or over is not None:
        layout = _store_layout(source, given, names, over)
        options = {"sigma": sigma, "backend": backend, "channel_axis": given.color_axis}
    stacked = {} if layout is None else {"over": [layout.axes.names, list(layout.places)]}

    def work(x: Any) -> Any:
        return pipeline(x, **options) if layout is None else filter_stack(x, pipeline, layout, options)

    with store_work(target, quiet) as progress:
        stores.apply(
            source,
            target,
            work,
            description={"pipeline": pipeline.to_json(), **options, **stacked},
            blocks=None if layout is None else joined_chunks(layout, given.chunks),
            overwrite=overwrite,
            resume=resume,
            progress=progress,
            runner=runner,
        )
    return given.shape


def _store_layout(source: Path, given: SourceArray, names: str | None, over: str | None) -> StackLayout:
    """Return the axes of an array, and those that are filtered together."""
    letters = "".join(name[:1].upper() for name in given.names or ())
    if len(set(letters)) < len(given.shape):
        letters = UNKNOWN * len(given.shape)
    if names is not None:
        letters = names.upper()
        if len(letters) != len(given.shape) or len(set(letters)) < len(letters) or not letters.isalpha():
            raise ArgumentError(
                f"--axes must have a letter of its own for each axis of {source}, whose shape is"
                f" {given.shape}; got {names!r}"
            )
    in_space = "".join(name for name in SPACE.upper() if name in letters)
    return StackLayout.of(StackAxes(letters, given.shape), over or in_space)


@app.command(rich_help_panel="Transforms")
def pyramid(
    source: Annotated[
        str, Argument(metavar="IMAGE", help="A Zarr array, an OME-Zarr image, or a TIFF file.")
    ],
    target: Annotated[Path, Argument(metavar="OUTPUT", help="The OME-Zarr image to write.")],
    wavelet: Annotated[str, Option("--wavelet", "-w", help=WAVELET_HELP)] = "cdf53",
    levels: Annotated[
        int | None,
        Option(
            "--levels",
            "-l",
            min=0,
            help="Number of levels below the image itself.",
            show_default="until no axis is longer than 256",
        ),
    ] = None,
    axes: Axes = None,
    details: Annotated[
        bool,
        Option("--details", help="Also store the details, to restore finer levels and the image."),
    ] = False,
    scale: Annotated[
        str | None,
        Option(
            "--scale",
            help="Distance between samples along each axis, such as 2,0.5,0.5.",
            show_default="that of the source, or 1",
        ),
    ] = None,
    unit: Annotated[
        str | None, Option("--unit", help="Unit of --scale for the axes in space, such as micrometer.")
    ] = None,
    backend: Backend = "auto",
    overwrite: Overwrite = False,
    json_: Json = False,
    quiet: Quiet = False,
    scheduler: Scheduler = None,
    workers: Workers = None,
    resume: Resume = True,
) -> None:
    """Write an OME-Zarr 0.5 image with smaller and smaller levels, the approximations of a wavelet transform.

    Example: `undula example volume.zarr && undula pyramid volume.zarr image.zarr --levels 2`
    """
    check_zarr_target(source, target)
    is_file = Path(source).is_file()
    with (
        imported_image(Path(source), target) if is_file else nullcontext(source) as stored,
        store_work(target, quiet or json_) as progress,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.filterwarnings("always", ".* NaN or infinite")
        stores.pyramid(
            stored,
            target,
            wavelet,
            levels,
            axes,
            details=details,
            scale=_numbers(scale),
            unit=unit,
            name=Path(source).name.partition(".")[0],
            backend=backend,
            scheduler=scheduler,
            workers=workers,
            overwrite=overwrite,
            resume=resume and not is_file,
            progress=progress,
        )
    for warning in caught:
        print_error(f"warning: {warning.message}")
    if json_ or not quiet:
        print_output(target, json_, levels=stores.level_shapes(target))


def _numbers(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(word) for word in text.replace(",", " ").split()]
    except ValueError:
        raise ArgumentError(f"--scale takes numbers such as 2,0.5,0.5, got {text!r}") from None
