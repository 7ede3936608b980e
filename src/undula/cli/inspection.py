"""Commands that inspect and compare: files, backends, schemes, and this installation."""

from __future__ import annotations

import math
import platform
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from typer import Argument, Option

import undula

from .. import io, measures
from ..errors import ArgumentError, FileError, UndulaError, install_hint
from ..filters import estimate_sigma
from ..io.dicom import get_element
from ..io.display import declared_window, frame_rate
from ..io.raster import read_header
from ..io.stack import unit_symbol
from ..io.summary import summarize
from ..stores import level_shapes
from ..stores.opening import open_group, open_source
from .clips import compare_clips
from .common import (
    AutoLevel,
    Image,
    Json,
    Level,
    MaxPixels,
    Overwrite,
    Wavelet,
    app,
    check_finite,
    similarity_text,
)
from .finding import LEFT_OUT, LeftOut, files_in, input_kind
from .jobs import input_path, read_image
from .outputs import PIPE, check_drawing, check_outputs
from .screen import print_json, print_table, print_text
from .zarr_stores import is_zarr

PANEL = "Information"
HEADER_SAMPLES = 1 << 24  # Of larger images, only headers are read.
LAYOUT = {"tiles": "tile", "levels": "levels"}


@app.command(rich_help_panel=PANEL)
def compare(
    a: Annotated[str, Argument(metavar="FILE", help="An image or a video, or - for standard input.")],
    b: Annotated[str, Argument(metavar="OTHER", help="Another image or video of the same size.")],
    wavelet: Wavelet = "cdf97",
    level: AutoLevel = None,
    difference: Annotated[
        Path | None, Option("--difference", help="Write the absolute difference as an image.")
    ] = None,
    plot: Annotated[
        Path | None, Option("--plot", help="Draw PSNR and SSIM of the frames of two videos over time.")
    ] = None,
    overwrite: Overwrite = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
) -> None:
    """Compare two images: PSNR, SSIM, and the PSNR of each wavelet band; or two videos, frame by frame.

    Example: `undula example photo.png && undula denoise photo.png b.png && undula compare photo.png b.png`
    """
    check_outputs(difference, plot, overwrite=overwrite, inputs=[a, b])
    check_drawing("--difference", difference)
    check_drawing("--plot", plot)
    kinds = [path != PIPE and input_kind(Path(path)) == "video" for path in (a, b)]
    if any(kinds):
        if not all(kinds):
            raise ArgumentError(f"only one of {a} and {b} is a video: they cannot be compared")
        if difference is not None:
            raise ArgumentError(
                "--difference applies to images only; --plot draws the measures of two videos"
            )
        compare_clips(a, b, plot, max_pixels, json_)
        return
    if plot is not None:
        raise ArgumentError(f"--plot applies to videos only; {a} is an image")
    first, second = _make_comparable(read_image(a, max_pixels), read_image(b, max_pixels))
    x, y = first.pixels, second.pixels
    if x.shape != y.shape:
        raise ArgumentError(f"{a} has shape {x.shape} and {b} has shape {y.shape}: they cannot be compared")
    scale = measures.value_range(x, y)
    gap = measures.difference(x, y)
    matched = ~np.isnan(gap)  # The other samples are NaN or infinite in only one of the images.
    unmatched = int(gap.size - np.count_nonzero(matched))
    report: dict[str, Any] = {
        "equal": not gap.any(),
        "psnr": measures.psnr(x[matched], y[matched], scale) if matched.any() else math.nan,
        "unmatched": unmatched,
    }
    if min(x.shape[axis] for axis in first.axes) >= 7:
        axis = -1 if first.channel_axis is not None else None
        pages = zip(x, y, strict=True) if first.pages else [(x, y)]
        report["ssim"] = float(np.mean([measures.ssim(p, q, scale, channel_axis=axis) for p, q in pages]))
    brightness, other_brightness = first.brightness(), second.brightness()
    if level is None:
        level = min(3, max(1, math.floor(math.log2(max(2, min(brightness.shape))))))
    bands = measures.compare_bands(brightness, other_brightness, wavelet, level, scale)
    if difference is not None:
        shown = gap[0] if first.pages else gap
        if first.channel_axis is not None:  # Show colours, unless other channels differ as well.
            is_colour = first.space == "rgb" and not shown[..., 3:].any()
            shown = shown[..., :3] if is_colour else shown.max(axis=-1)
        largest = np.nanmax(shown, initial=0) or 1.0
        io.write(difference, np.round(np.nan_to_num(255 * (shown / largest), nan=255)).astype(np.uint8))
    if json_:
        print_json({**report, "bands": [band._asdict() for band in bands]})
        return
    if report["equal"]:
        print_text(_equality_text(x, y))
    else:
        if unmatched:
            print_text(f"{unmatched} samples are NaN or infinite in only one of the images; for the others:")
        print_text(similarity_text(report))
    rows = [[str(band.level), band.band, band.psnr, band.inner] for band in bands]
    print_table("PSNR of bands, dB", ["level", "band", "all", "without borders"], rows)


def _make_comparable(first: io.Picture, second: io.Picture) -> tuple[io.Picture, io.Picture]:
    """Convert both images if they differ in orientation, in the meaning of 0, or in channels."""
    if first.orientation != second.orientation:
        first, second = first.upright(), second.upright()
    if first.about.get("photometric") != second.about.get("photometric"):
        first, second = first.with_black_zero(), second.with_black_zero()
    return (first, second) if first.channels == second.channels else (first.as_rgb(), second.as_rgb())


def _equality_text(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> str:
    """Describe in what respect two arrays with equal values are equal."""
    if a.dtype != b.dtype:
        return f"all values are equal, but the types differ: {a.dtype} and {b.dtype}"
    return "identical" if a.tobytes() == b.tobytes() else "all values are equal"


@app.command(rich_help_panel=PANEL)
def verify(
    source: Image,
    first: Annotated[str, Option("--first", help="Backend: reference, cpu, opencl or cuda.")] = "reference",
    second: Annotated[
        str,
        Option(
            "--second", help="Another backend; either may have a strategy or a scheme, such as opencl:tiled."
        ),
    ] = "cpu",
    wavelet: Wavelet = "cdf97",
    level: Level = 3,
    max_pixels: MaxPixels = None,
    json_: Json = False,
) -> None:
    """Compare two backends, strategies or schemes on an image, band by band.

    Example: `undula example photo.png && undula verify photo.png --first reference --second cpu`
    """
    image = read_image(source, max_pixels).brightness()
    check_finite(image, source)

    def make_plan(text: str) -> undula.Plan:
        backend, _, choice = text.partition(":")
        options: dict[str, Any] = {}
        if choice:
            options["scheme" if choice in undula.SCHEMES else "strategy"] = choice
        return undula.Plan(image.shape, wavelet, level=level, backend=backend, dtype="float64", **options)

    plans = [make_plan(first), make_plan(second)]
    coeffs = [plan.forward(image) for plan in plans]
    rows = []
    for number in range(len(coeffs[0])):
        names = ("cH", "cV", "cD") if number else ("cA",)
        parts = [c[number] if number else c[:1] for c in coeffs]
        depth = len(coeffs[0]) - max(1, number)
        for name, p, q in zip(names, *parts, strict=True):
            rows.append([str(depth), name, measures.psnr(p, q, 255.0), float(np.abs(p - q).max())])
    error = max(float(np.abs(plan.inverse(c) - image).max()) for plan, c in zip(plans, coeffs, strict=True))
    largest = max(row[3] for row in rows)
    if json_:
        print_json(
            {
                "first": repr(plans[0]),
                "second": repr(plans[1]),
                "bands": [dict(zip(("level", "band", "psnr", "largest"), row, strict=True)) for row in rows],
                "largest": largest,
                "back": error,
            }
        )
        return
    cells = [[*row[:3], f"{row[3]:.1e}"] for row in rows]
    print_table(f"{first} and {second}", ["level", "band", "PSNR, dB", "largest difference"], cells)
    print_text(f"largest difference {largest:.1e}; largest reconstruction error {error:.1e}")


@app.command(rich_help_panel=PANEL)
def scheme(
    wavelet: Annotated[str, Argument(metavar="WAVELET", help="Name of a wavelet.")],
    name: Annotated[
        str | None, Argument(metavar="SCHEME", help="Name of a scheme to print; by default, all are counted.")
    ] = None,
    json_: Json = False,
) -> None:
    """Print the lifting steps of a wavelet and the costs of its schemes, or the matrices of a scheme.

    Example: `undula scheme cdf53 "monolithic*"`
    """
    names = undula.SCHEMES if name is None else (name,)
    schemes = [undula.scheme(wavelet, each) for each in names]
    counts = [
        {"scheme": key, "operations": value.operations, "barriers": value.barriers}
        for key, value in zip(names, schemes, strict=True)
    ]
    if name is None and json_:
        print_json({"wavelet": wavelet, "lifting": str(undula.lifting(wavelet)), "schemes": counts})
    elif name is None:
        print_text(str(undula.lifting(wavelet)))
        print_table("", list(counts[0]), [list(count.values()) for count in counts])
    elif json_:
        print_json({**counts[0], "text": str(schemes[0])})
    else:
        print_text(str(schemes[0]))
        print_text(f"{schemes[0].operations} operations, {schemes[0].barriers} barrier(s)")


@app.command(rich_help_panel=PANEL)
def info(
    source: Annotated[
        str | None,
        Argument(
            metavar="FILE",
            help="An image, a video, a Zarr store, a folder, or - for standard input; by default, this"
            " installation.",
        ),
    ] = None,
    wavelets: Annotated[bool, Option("--wavelets", help="List all discrete wavelets and exit.")] = False,
    noise: Annotated[
        bool,
        Option(
            "--noise",
            help=f"Also read the pixels of files with more than {HEADER_SAMPLES >> 20} million samples, for"
            " their range and noise.",
        ),
    ] = False,
    recursive: Annotated[
        bool, Option("--recursive", "-r", help="Also list the files in the subfolders of a folder.")
    ] = False,
    max_pixels: MaxPixels = None,
    json_: Json = False,
) -> None:
    """Describe this installation and its devices, or a file: size, type, axes, noise.

    Of large images, Zarr stores and the files of a folder, only the headers are read. `--noise` reads all of
    a large image.

    Example: `undula info` or `undula example photo.png && undula info photo.png`
    """
    if wavelets:
        names = undula.wavelist(undula.families(), kind="discrete")
        print_json(names) if json_ else print_text(" ".join(names))
        return
    if source is None:
        report = _describe_installation()
    elif is_zarr(source):
        report = _describe_store(source)
    elif Path(source).is_dir():
        report = _describe_folder(Path(source), recursive, max_pixels)
        if not json_:
            _print_folder(report)
            return
    else:
        report = _describe_file(source, max_pixels, noise)
    if json_:
        print_json(report)
        return
    rows = _combine_rows(report)
    width = max(map(len, rows))
    for key, value in rows.items():
        print_text(f"{key:{width}}  {value}")


def _combine_rows(report: dict[str, Any]) -> dict[str, Any]:
    """Combine entries that belong together, such as the width and the height, into one row."""
    shown = dict(report)
    if "width" in shown:
        size = f"{shown.pop('width')} × {shown.pop('height')}"
        shown = {"file": shown.pop("file"), "kind": shown.pop("kind"), "size": size, **shown}
    if "channel names" in shown:
        names = ", ".join(shown.pop("channel names"))
        shown["channels"] = f"{shown['channels']} ({names})"
    if "window" in shown:
        shown["window"] = "center {:g}, width {:g}".format(*shown["window"])
    if "least" in shown:
        shown["range"] = f"{shown.pop('least')} to {shown.pop('most')}"
    if "axes" in shown:
        axes = zip(shown["axes"], shown.pop("lengths"), strict=True)
        shown["axes"] = ", ".join(f"{name} {length}" for name, length in axes)
    if "spacing" in shown:
        sizes = shown.pop("spacing").items()
        shown["spacing"] = ", ".join(
            f"{name} {size:g} {unit_symbol(unit)}".rstrip() for name, (size, unit) in sizes
        )
    for key in ("stack channels", "channel noise"):
        if key in shown:
            shown[key] = ", ".join(map(str, shown[key]))
    if "levels" in shown:
        shown["levels"] = ", ".join(f"{width} × {height}" for height, width in shown["levels"])
    if "tiles" in shown:
        shown["tiles"] = "{1} × {0}".format(*shown["tiles"])
    return shown


def _describe_store(source: str) -> dict[str, Any]:
    """Return what the metadata of a Zarr store tells, or a list of its arrays if there are several."""
    try:
        array = open_source(source)
    except FileError:
        arrays = {name: each.shape for name, each in sorted(open_group(source).arrays())}
        if not arrays:
            raise
        shapes = [f"{name} ({' × '.join(map(str, shape))})" for name, shape in arrays.items()]
        return {"file": source, "kind": "Zarr group", "arrays": ", ".join(shapes)}
    report: dict[str, Any] = {
        "file": source,
        "kind": f"Zarr {array.array.metadata.zarr_format} array",
        "axes": list(array.names or map(str, range(len(array.shape)))),
        "lengths": list(array.shape),
        "type": str(array.dtype),
        "chunks": " × ".join(map(str, array.chunks)),
        "bytes": math.prod(array.shape) * array.dtype.itemsize,
    }
    if array.component:
        report["kind"] = "OME-Zarr image"
        report["levels"] = [shape[-2:] for shape in level_shapes(source)]
    if array.scale is not None and array.names is not None:
        units = array.units or [None] * len(array.scale)
        pairs = zip(array.scale, units, strict=True)
        report["spacing"] = dict(zip(array.names, pairs, strict=True))
    if array.channel_names:
        report["stack channels"] = list(array.channel_names)
    return report


def _describe_folder(folder: Path, recursive: bool, max_pixels: int | None) -> dict[str, Any]:
    """Return what the headers of the files of a folder tell."""
    files: list[dict[str, Any]] = []
    left_out = LeftOut()
    for path in files_in(folder, recursive, left_out=left_out):
        entry: dict[str, Any] = {"file": str(path.relative_to(folder))}
        try:
            if is_zarr(path):
                array = open_source(path)
                entry |= {"kind": "zarr", "shape": list(array.shape)}
            else:
                entry |= summarize(path, max_pixels)._asdict()
        except UndulaError as error:
            entry["error"] = str(error)
        files.append(entry)
    return {"folder": str(folder), "files": files, LEFT_OUT: left_out.entries}


def _print_folder(report: dict[str, Any]) -> None:
    """Print a table of the files of a folder, and how many there are of each kind."""
    rows = []
    for entry in report["files"]:
        size = entry["error"] if "error" in entry else _size_text(entry)
        rows.append([entry["file"], entry.get("kind", "?"), size])
    print_table("", ["file", "kind", "size"], rows)
    counts = Counter(entry.get("kind", "unreadable") for entry in report["files"])
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    print_text(f"{len(rows)} file{'s' if len(rows) != 1 else ''} in {report['folder']}: {kinds}")
    for line in LeftOut(report[LEFT_OUT]).lines():
        print_text(line)


def _size_text(entry: dict[str, Any]) -> str:
    if "shape" in entry:
        return " × ".join(map(str, entry["shape"]))
    size = f"{entry['width']} × {entry['height']}"
    return size if entry["frames"] == 1 else f"{size} × {entry['frames']}"


def _describe_file(source: str, max_pixels: int | None, noise: bool = False) -> dict[str, Any]:
    with input_path(source) as path:
        if input_kind(path) == "video":
            video = io.probe(path, max_pixels)
            frame = next(io.read_frames(path, 1, max_pixels), None)
            if frame is None:
                raise FileError(f"{path} has no frames that can be decoded")
            return {
                "file": source,
                "kind": f"video, {video.codec} in {video.container}",
                "width": video.width,
                "height": video.height,
                "frames": video.frames,
                "rate": round(video.rate, 3),
                "seconds": round(video.seconds, 3),
                "pixels": video.pixels,
                "audio": ", ".join(video.audio) or "none",
                "noise": _noise(io.Picture(frame)),
            }
        header = None if noise else read_header(path)
        is_large = header is not None and header.pixels.size > HEADER_SAMPLES
        image = header if header is not None and is_large else io.read(path, max_pixels)
    pixels = image.pixels
    report: dict[str, Any] = {
        "file": source,
        "kind": image.kind,
        "width": int(pixels.shape[image.axes[1]]),
        "height": int(pixels.shape[image.axes[0]]),
        "channels": len(image.channels),
        "channel names": list(image.channels),
        "type": str(pixels.dtype),
    }
    if not is_large:
        report |= _describe_samples(image)
    if image.orientation != 1:
        report["orientation"] = image.orientation
    report |= _describe_stack(image)
    if image.pages:
        report["pages"] = len(pixels)
    if image.profile:
        report["colour profile"] = f"{len(image.profile)} bytes"
    blocks = {"EXIF": image.exif, "XMP": image.xmp, "IPTC": image.iptc, **image.texts}
    if any(blocks.values()):
        report["metadata"] = ", ".join(name for name, value in blocks.items() if value)
    if image.lost:
        report["not read"] = ", ".join(image.lost)
    dataset = image.about.get("dataset")
    if dataset is not None:
        report["modality"] = str(get_element(dataset, "Modality", "?"))
        report["photometric"] = str(get_element(dataset, "PhotometricInterpretation", "?"))
        report["series"] = str(get_element(dataset, "SeriesDescription", "?"))
        report["encoding"] = dataset.file_meta.TransferSyntaxUID.name
        if image.pages and frame_rate(dataset):
            report["rate"] = round(frame_rate(dataset), 3)
        center_and_width = declared_window(dataset)
        if center_and_width is not None:
            report["window"] = list(center_and_width)
    return report


def _describe_samples(image: io.Picture) -> dict[str, Any]:
    """Return the range and the noise of the samples that are valid and finite."""
    pixels = image.pixels
    finite = np.isfinite(pixels)
    valid = image.stored.valid(pixels) if image.stored is not None else None
    samples = pixels[finite if valid is None or not valid.any() else valid & finite]
    report = {
        "least": samples.min().item() if samples.size else math.nan,
        "most": samples.max().item() if samples.size else math.nan,
        "noise": _noise(image, valid[0] if valid is not None and image.pages else valid),
    }
    if not finite.all():
        report["not finite"] = int(np.count_nonzero(~finite))
    stack = image.stack_axes
    if stack.length("C") > 1:  # The noise of the first plane of each channel.
        planes = pixels.reshape(*stack.shape, *pixels.shape[2 + image.pages :])
        place = stack.names.index("C")
        firsts = (
            planes[tuple(channel if axis == place else 0 for axis in range(len(stack.shape) - 2))]
            for channel in range(stack.shape[place])
        )
        report["channel noise"] = [_noise(io.Picture(plane, channels=image.channels)) for plane in firsts]
    return report


def _describe_stack(image: io.Picture) -> dict[str, Any]:
    """Return what a file tells of the axes of a stack, and how its pixels are stored."""
    stack, report = image.stack_axes, dict[str, Any]()
    if len(stack.shape) > 2:
        report |= {"axes": stack.names, "lengths": list(stack.shape)}
    if stack.channel_names:
        report["stack channels"] = list(stack.channel_names)
    sizes = {
        name: (size, unit)
        for name, size, unit in zip(stack.names, stack.spacing, stack.units, strict=True)
        if size is not None
    }
    if sizes:
        report["spacing"] = sizes
    return report | {key: image.about[name] for key, name in LAYOUT.items() if name in image.about}


def _noise(image: io.Picture, valid: np.ndarray[Any, Any] | None = None) -> float:
    """Estimate the standard deviation of the noise from the valid and finite samples."""
    x = image.brightness()
    if valid is not None:
        x[~valid] = np.nan
    x[~np.isfinite(x)] = np.nan
    if np.isnan(x).all():
        return math.nan
    return round(float(estimate_sigma(x)), 4) if min(x.shape) > 4 else 0.0


def _describe_installation() -> dict[str, Any]:
    from importlib.metadata import PackageNotFoundError, version

    report: dict[str, Any] = {
        "undula": undula.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "threads": undula.get_num_threads(),
    }
    extras = {
        "pillow-heif": "photo",
        "rawpy": "photo",
        "imagecodecs": "photo",
        "cuda-core": "cuda",
        "pyopencl": "opencl",
        "nicegui": "studio",
    }
    packages = ("numpy", "numba", "pillow", "tifffile", "pydicom", "av", *extras)
    for package in packages:
        try:
            report[package] = version(package)
        except PackageNotFoundError:
            report[package] = f"missing: {install_hint(extras.get(package, 'app'))}"
    for backend in ("cuda", "opencl"):
        report[f"backend {backend}"] = _device_name(backend)
    unusable = {name: f"unusable: {about}" for name, about in undula.unusable_devices().items()}
    return report | {f"device {name}": about for name, about in (undula.devices() | unusable).items()}


def _device_name(backend: str) -> str:
    from ..engines.devices import failure_text
    from ..engines.gpu.engine import device_engine

    try:
        device = device_engine(backend).device
    except Exception as error:  # A driver that is installed but does not work may raise anything.
        return f"none: {failure_text(error)}"
    return str(device.name)
