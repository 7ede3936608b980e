"""Code that reproduces a result outside the Studio: a command line and a Python program."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, fields
from typing import Any

from ..filters import Pipeline
from ..filters.spectrum import NoiseSpectrum
from ..filters.verbs import Denoising, Verb
from ..filters.words import format_stage
from .extents import AppliedChain

__all__ = ["CodeSource", "command_line", "command_words", "python_code"]

TEMPORAL_OPTIONS = ("quality", "strength", "luma", "chroma", "color")  # of denoising over time


def _options(pipeline: Pipeline) -> dict[str, Any]:
    """Return the options of a pipeline that differ from their defaults."""
    options = [each for each in fields(Pipeline) if each.kw_only]
    return {e.name: getattr(pipeline, e.name) for e in options if getattr(pipeline, e.name) != e.default}


def _temporal_options(task: Verb) -> dict[str, Any]:
    """Return the options of denoising over time that differ from their defaults."""
    options = {name: getattr(task, name) for name in TEMPORAL_OPTIONS}
    return {name: value for name, value in options.items() if value != getattr(Denoising, name)}


def command_words(applied: AppliedChain) -> str:
    """Return the command and its options, without files, for the description of DICOM series."""
    return shlex.join(_command(applied)[1:])


def _command(applied: AppliedChain) -> list[str]:
    """Return the words of a command, without files.

    Stages are written with ``-S`` if all of them have such a form, and as JSON otherwise.
    """
    pipeline = applied.pipeline
    if applied.task is not None:
        chosen = _temporal_options(applied.task)
        words = [word for name, value in chosen.items() for word in (f"--{name}", f"{value}")]
        return ["undula", "denoise", *words, *applied.command_options()]
    stages = [format_stage(stage) for stage in pipeline.stages]
    plain = _options(pipeline).keys() <= {"invariant"}
    words = ["undula", "filter"]
    if stages and None not in stages and plain and pipeline.level is not None:
        words += ["-w", str(pipeline.wavelet), "-l", str(pipeline.level)]
        words += ["--shifts", str(int(pipeline.invariant))] * bool(pipeline.invariant)
        words += [word for stage in stages for word in ("-S", str(stage))]
    else:
        words += ["-p", json.dumps(json.loads(pipeline.to_json()), separators=(",", ":"))]
    return [*words, *applied.command_options()]


def command_line(
    applied: AppliedChain, source: str, target: str, sample_suffix: str = "", protects: bool = True
) -> str:
    """Return the command that filters a file.

    A sample, such as ``sample:camera``, is first written to a file with ``sample_suffix``. Without
    ``protects``, burned-in text and colours of a DICOM file are filtered, too.
    """
    scheme, _, sample = source.partition(":")
    if scheme == "sample":
        source = f"{sample}{sample_suffix}"
        first = shlex.join(["undula", "example", source, "--sample", sample])
        return f"{first} && {command_line(applied, source, target, protects=protects)}"
    return shlex.join(_command_with_files(applied, source, target, protects))


def _command_with_files(applied: AppliedChain, source: str, target: str, protects: bool) -> list[str]:
    words = [*_command(applied), *["--mask", "none"] * (not protects)]
    files = [source, target]
    if any(name.startswith("-") for name in files):
        return [*words, "--", *files]
    return [*words[:2], *files, *words[2:]]


@dataclass(frozen=True)
class CodeSource:
    """The file that a program reads.

    Parameters
    ----------
    name : str
        Its name; ``sample:camera`` stands for ``undula.io.sample("camera")``.
    page : int, optional
        Index of the page or frame to filter, for files with several.
    plane : int, default 0
        The axis of a volume across which pages are taken.
    volume : str, default ""
        The expression that selects the volume from the pixels of a stack of several ones.
    kind : {"picture", "video", "dicom"}, default "picture"
    protects : bool, default True
        Whether burned-in text and colours of a DICOM file are left alone.
    """

    name: str
    page: int | None = None
    plane: int = 0
    volume: str = ""
    kind: str = "picture"
    protects: bool = True

    @property
    def code(self) -> str:
        """The expression of its path."""
        scheme, _, sample = self.name.partition(":")
        return f"undula.io.sample({sample!r})" if scheme == "sample" else repr(self.name)


def python_code(applied: AppliedChain, source: CodeSource, target: str) -> str:
    """Return a Python program that filters a file into another one.

    If pages are filtered one by one, the program filters the one that is shown. DICOM files are always
    filtered completely, by the command.
    """
    if source.kind == "dicom":
        return _program_of_command(applied, source, target)
    if applied.task is not None:
        return _program_over_time(applied, applied.task, source, target)
    imports, lines = ["import undula"], _definition(applied)
    kinds = sorted({type(stage).__name__ for stage in applied.pipeline.stages})
    if kinds:
        imports.append(f"from undula.filters import {', '.join(kinds)}")
    if source.kind == "video":
        imports = ["from itertools import islice", "", *imports]
        lines.append(f"frames = undula.io.read_frames({source.code})")
        if not applied.is_window:
            lines.append(f"frame = next(islice(frames, {source.page or 0}, None))")
            lines[-1] += "  # for all frames: pipeline.frames(frames)"
            lines.append("result = pipeline(frame)")
        else:
            imports.append("from undula.io.video import filter_windows")
            lines.append("planes = ([frame] for frame in frames)")
            lines.append(
                "windows = filter_windows(planes, lambda window: [pipeline(window[0], channel_axis=-1)],"
                f" {applied.over_time})"
            )
            lines.append(f"(result,) = next(islice(windows, {source.page or 0}, None))")
    elif applied.extent is not None:
        axes = "" if applied.extent.axes is None else f".with_axes({applied.extent.axes!r})"
        lines.append(f"picture = undula.io.read({source.code}){axes}")
        lines.append(f"result = picture.filtered(pipeline, over={applied.over!r})")
    elif source.page is None:
        lines += [f"picture = undula.io.read({source.code})", "result = picture.filtered(pipeline)"]
    else:
        if source.plane:
            lines += [
                f"volume = undula.io.read({source.code}).for_screen()",
                f"pixels = volume.pixels{source.volume}[{':, ' * source.plane}{source.page}]",
                "page = undula.io.Picture(pixels, stored=volume.stored)",
            ]
        else:
            lines.append(f"page = undula.io.read({source.code}).page({source.page})")
        lines.append("result = page.filtered(pipeline).for_screen().pixels")
    return _program(imports, [*lines, f"undula.io.write({target!r}, result)"])


def _program_of_command(applied: AppliedChain, source: CodeSource, target: str) -> str:
    """Return a program that runs the command."""
    words = _command_with_files(applied, source.name, target, source.protects)[1:]
    codes = [source.code if word == source.name else repr(word) for word in words]
    imports = ["import subprocess", "import sys", *["", "import undula"] * source.name.startswith("sample:")]
    lines = ["command = [", "    sys.executable, '-m', 'undula',", *(f"    {code}," for code in codes), "]"]
    return _program(imports, [*lines, "subprocess.run(command, check=True)"])


def _program_over_time(applied: AppliedChain, task: Verb, source: CodeSource, target: str) -> str:
    """Return a program that denoises a video along its motion, up to the frame that is shown."""
    chosen = {"over_time": applied.over_time, **_temporal_options(task)}
    options = ", ".join(f"{name}={value!r}" for name, value in chosen.items())
    if {"luma", "chroma"} & chosen.keys():  # Only the function for whole clips has them.
        imports = ["import numpy as np", "import undula"]
        lines = [
            f"clip = np.stack(list(undula.io.read_frames({source.code})))",
            f"result = undula.denoise(clip, {options})[{source.page or 0}]",
        ]
    else:
        imports = ["from itertools import islice", "", "import undula"]
        lines = [
            f"frames = undula.denoise_frames(undula.io.read_frames({source.code}), {options})",
            f"result = next(islice(frames, {source.page or 0}, None))",
        ]
    return _program(imports, [*lines, f"undula.io.write({target!r}, result)"])


def _program(imports: list[str], lines: list[str]) -> str:
    return "\n".join([*imports, "", *lines]) + "\n"


def _definition(applied: AppliedChain) -> list[str]:
    """Return the lines that define the pipeline."""
    pipeline = applied.pipeline
    stages = "".join(f"\n        {stage!r}," for stage in pipeline.stages)
    arguments = [f"{pipeline.wavelet!r}", f"{pipeline.level!r}", f"[{stages}\n    ]" if stages else "[]"]
    for name, value in _options(pipeline).items():
        array = value.power.tolist() if isinstance(value, NoiseSpectrum) else value
        arguments.append(f"{name}={array!r}")
    return ["pipeline = undula.Pipeline(", *(f"    {argument}," for argument in arguments), ")"]
