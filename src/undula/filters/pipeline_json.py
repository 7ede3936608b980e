"""Pipelines as JSON: only what differs from the defaults is written."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError, ArgumentTypeError, UnknownNameError
from ..wavelets import Wavelet, as_wavelet, is_discrete
from .spectrum import NoiseSpectrum

if TYPE_CHECKING:
    from .pipeline import Pipeline

__all__ = ["arguments_from_json", "has_known_name", "pipeline_to_json"]

JSON_VERSION = 1


def pipeline_to_json(pipeline: Pipeline) -> str:
    """Return a pipeline as JSON."""
    wavelet = as_wavelet(pipeline.wavelet)
    if not has_known_name(wavelet):
        raise ArgumentError(
            f"only pipelines with a built-in wavelet can be written as JSON, got {wavelet.name!r}"
        )
    values: dict[str, Any] = {"undula": JSON_VERSION, "wavelet": wavelet.name, "level": pipeline.level}
    options = [option for option in fields(pipeline) if option.kw_only]
    values |= {
        option.name: getattr(pipeline, option.name)
        for option in options
        if getattr(pipeline, option.name) != option.default
    }
    if isinstance(pipeline.spectrum, NoiseSpectrum):
        values["spectrum"] = pipeline.spectrum.power.tolist()
    values["stages"] = [stage.to_dict() for stage in pipeline.stages]
    return json.dumps(values, indent=2)


def arguments_from_json(text: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the arguments of a pipeline from JSON; ``names`` are those that it has."""
    if not isinstance(text, (str, bytes, bytearray)):
        raise ArgumentTypeError(f"a pipeline is read from JSON text, got {type(text).__name__}")
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"a pipeline must be valid JSON: {error}") from None
    if not isinstance(values, dict):
        raise ArgumentError(f"a pipeline must be a JSON object, got {type(values).__name__}")
    version = values.pop("undula", JSON_VERSION)
    if version != JSON_VERSION:
        raise ArgumentError(f"cannot read a pipeline of version {version!r}; expected {JSON_VERSION}")
    for key in values:
        if key not in names:
            raise UnknownNameError("key of a pipeline", key, names)
    return values


def has_known_name(wavelet: Wavelet) -> bool:
    """Return whether the name of a wavelet stands for it."""
    return is_discrete(wavelet.name) and as_wavelet(wavelet.name) == wavelet
