"""The same work without the page: as a command line, and as Python."""

from __future__ import annotations

import json
import shlex

from ..filters import Pipeline
from ..filters.words import format_stage

__all__ = ["command_line", "python_code"]


def command_line(pipeline: Pipeline, source: str, target: str) -> str:
    """A command that filters a file as the page does; stages in words where there are words for all."""
    words = [format_stage(stage) for stage in pipeline.stages]
    plain = pipeline.mode == "symmetric" and pipeline.color == "ycbcr" and pipeline.speckle is None
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
    pipeline: Pipeline, source: str, target: str, *, page: int | None = None, video: bool = False
) -> str:
    """A program that filters a file as the page does.

    Parameters
    ----------
    pipeline : Pipeline
    source, target : str
        Names of files; ``sample:camera`` is one of :func:`undula.io.samples`.
    page : int, optional
        Which of several pages or frames is shown.
    video : bool
        Whether it is one.
    """
    name, _, sample = source.partition(":")
    given = f"undula.io.sample({sample!r})" if name == "sample" else repr(source)
    kinds = sorted({type(stage).__name__ for stage in pipeline.stages})
    lines = ["from itertools import islice", ""] if video else []
    lines += ["import undula"]
    lines += [f"from undula.filters import {', '.join(kinds)}"] * bool(kinds)
    told = [f"{pipeline.wavelet!r}", f"{pipeline.level!r}"]
    told += ["[" + "".join(f"\n        {stage!r}," for stage in pipeline.stages) + "\n    ]"]
    told[-1] = told[-1] if pipeline.stages else "[]"
    usual = Pipeline()
    told += [
        f"{key}={getattr(pipeline, key)!r}"
        for key in ("mode", "invariant", "color", "speckle", "looks")
        if getattr(pipeline, key) != getattr(usual, key)
    ]
    lines += ["", "pipeline = undula.Pipeline(", *(f"    {part}," for part in told), ")"]
    if video:
        lines += [
            f"frames = undula.io.read_frames({given})",
            f"frame = next(islice(frames, {page or 0}, None))  # all of them: pipeline.frames(frames)",
            "result = pipeline(frame)",
        ]
    else:
        lines += [f"picture = undula.io.read({given}){'' if page is None else '.for_screen()'}"]
        if page is None:
            lines += ["result = picture.filtered(pipeline)"]
        else:
            lines += [
                "channels = None if picture.channel_axis is None else -1",
                f"result = pipeline(picture.pixels[{page}], channel_axis=channels)",
            ]
    return "\n".join([*lines, f"undula.io.write({target!r}, result)"]) + "\n"
