"""Code that reproduces a result outside the Studio: a command line and a Python program."""

from __future__ import annotations

import json
import shlex
from dataclasses import fields
from typing import Any

from ..filters import Pipeline
from ..filters.spectrum import NoiseSpectrum
from ..filters.words import format_stage

__all__ = ["command_line", "python_code"]


def _options(pipeline: Pipeline) -> dict[str, Any]:
    """Return the options of a pipeline that differ from their defaults."""
    options = [each for each in fields(Pipeline) if each.kw_only]
    return {e.name: getattr(pipeline, e.name) for e in options if getattr(pipeline, e.name) != e.default}


def command_line(pipeline: Pipeline, source: str, target: str, sample_suffix: str = "") -> str:
    """Return the ``undula filter`` command for a file.

    Stages are written with ``-S`` if all of them have such a form, and as JSON otherwise. A sample, such as
    ``sample:camera``, is first written to a file with ``sample_suffix``.
    """
    scheme, _, sample = source.partition(":")
    if scheme == "sample":
        source = f"{sample}{sample_suffix}"
        first = shlex.join(["undula", "example", source, "--sample", sample])
        return f"{first} && {command_line(pipeline, source, target)}"
    words = [format_stage(stage) for stage in pipeline.stages]
    plain = _options(pipeline).keys() <= {"invariant"}
    files = [source, target]
    parts = ["undula", "filter"] + ([] if any(name.startswith("-") for name in files) else files)
    if words and None not in words and plain and pipeline.level is not None:
        parts += ["-w", str(pipeline.wavelet), "-l", str(pipeline.level)]
        parts += ["--shifts", str(int(pipeline.invariant))] * bool(pipeline.invariant)
        parts += [part for word in words for part in ("-S", str(word))]
    else:
        parts += ["-p", json.dumps(json.loads(pipeline.to_json()), separators=(",", ":"))]
    return shlex.join(parts if files[0] in parts else [*parts, "--", *files])


def python_code(
    pipeline: Pipeline,
    source: str,
    target: str,
    *,
    page: int | None = None,
    plane: int = 0,
    video: bool = False,
) -> str:
    """Return a Python program that filters a file.

    Parameters
    ----------
    pipeline : Pipeline
    source, target : str
        Names of files; ``sample:camera`` stands for ``undula.io.sample("camera")``.
    page : int, optional
        Index of the page or frame to filter, for files with several.
    plane : int, default 0
        The axis of a volume across which pages are taken.
    video : bool, default False
        Whether the source is a video.
    """
    scheme, _, sample = source.partition(":")
    source_code = f"undula.io.sample({sample!r})" if scheme == "sample" else repr(source)
    kinds = sorted({type(stage).__name__ for stage in pipeline.stages})
    lines = ["from itertools import islice", ""] if video else []
    lines += ["import undula"]
    lines += [f"from undula.filters import {', '.join(kinds)}"] * bool(kinds)
    stages = "".join(f"\n        {stage!r}," for stage in pipeline.stages)
    arguments = [f"{pipeline.wavelet!r}", f"{pipeline.level!r}", f"[{stages}\n    ]" if stages else "[]"]
    for name, value in _options(pipeline).items():
        array = value.power.tolist() if isinstance(value, NoiseSpectrum) else value
        arguments.append(f"{name}={array!r}")
    lines += ["", "pipeline = undula.Pipeline(", *(f"    {argument}," for argument in arguments), ")"]
    if video:
        lines += [
            f"frames = undula.io.read_frames({source_code})",
            f"frame = next(islice(frames, {page or 0}, None))  # for all frames: pipeline.frames(frames)",
            "result = pipeline(frame)",
        ]
    elif page is None:
        lines += [f"picture = undula.io.read({source_code})", "result = picture.filtered(pipeline)"]
    else:
        lines += [
            f"picture = undula.io.read({source_code}).for_screen()",
            "channels = None if picture.channel_axis is None else -1",
            f"result = pipeline(picture.pixels[{':, ' * plane}{page}], channel_axis=channels)",
        ]
    return "\n".join([*lines, f"undula.io.write({target!r}, result)"]) + "\n"
