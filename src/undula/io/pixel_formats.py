"""Pixel formats of FFmpeg: the bits of their samples, and which have planes that can be filtered."""

from __future__ import annotations

from functools import cache
from typing import Any

from .files import import_optional

__all__ = ["filterable_format", "is_filterable", "pixel_format", "sample_bits"]


def pixel_format(name: str) -> Any:
    """Return a format by its name, as an object that describes it."""
    return import_optional("av").VideoFormat(name, 16, 16)


@cache
def sample_bits(pixels: str) -> int:
    """Return the number of bits of a sample in a pixel format."""
    return max(int(component.bits) for component in pixel_format(pixels).components)


@cache
def is_filterable(pixels: str) -> bool:
    """Return whether components are planes of 8-bit samples, or of 9 to 16 bits in little-endian words."""
    kind = pixel_format(pixels)
    components = kind.components
    sizes = {component.bits for component in components}
    return (
        len(sizes) == 1
        and 8 <= max(sizes) <= 16
        and not (kind.is_big_endian and max(sizes) > 8)
        and not kind.has_palette
        and not kind.is_bit_stream
        and len({component.plane for component in components}) == len(components)
        and not any(word in pixels for word in ("f16", "msb"))  # Floats, and samples in the upper bits.
    )


@cache
def filterable_format(pixels: str) -> str:
    """Return the format to filter frames in: their own, or the nearest with a plane for each component."""
    if is_filterable(pixels):
        return pixels
    av = import_optional("av")
    names = sorted(name for name in av.video.format.names if is_filterable(name))
    best, _ = av.codec.codec.find_best_pix_fmt_of_list(names, pixels, True)
    return str(best.name)
