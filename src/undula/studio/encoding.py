"""Encoding of pictures for the page: raw bytes, PNG, or JPEG at the size they are displayed."""

from __future__ import annotations

import io
import json
import struct
from typing import Any

import numpy as np

from ..io.files import import_optional
from .views import Bitmap

__all__ = ["encode_layers", "pack_message", "reduce_to_scale"]

Layer = tuple[dict[str, Any], bytes]


def encode_layers(bitmaps: dict[str, Bitmap], preview: bool, raw: bool, scale: float) -> list[Layer]:
    """Encode layers, each with the header that the page needs.

    Parameters
    ----------
    bitmaps : dict
        Pixels by the name of the layer.
    preview : bool
        Whether speed matters more than exact pixels.
    raw : bool
        Whether exact pixels are sent uncompressed, which is fastest on one machine, instead of as PNG.
    scale : float
        Screen pixels per pixel of the picture.
    """
    layers = []
    for name, pixels in bitmaps.items():
        height, width = pixels.shape[:2]
        channels = 1 if pixels.ndim == 2 else pixels.shape[2]
        if preview and channels != 4:
            subsampling = 0 if channels == 1 else 2
            kind, data = (
                "jpeg",
                _save("JPEG", reduce_to_scale(pixels, scale), quality=92, subsampling=subsampling),
            )
        elif raw:
            kind, data = "raw", np.ascontiguousarray(pixels).tobytes()
        else:
            kind, data = "png", _save("PNG", pixels, compress_level=1)
        size = {"name": name, "width": width, "height": height, "channels": channels}
        layers.append(({**size, "format": kind, "size": len(data)}, data))
    return layers


def pack_message(head: dict[str, Any], layers: list[Layer]) -> bytes:
    """Pack the length of the header, the header as JSON, and the bytes of all layers."""
    text = json.dumps({**head, "layers": [header for header, _ in layers]}).encode()
    return b"".join([struct.pack("<I", len(text)), text, *(data for _, data in layers)])


def reduce_to_scale(pixels: Bitmap, scale: float) -> Bitmap:
    """Downsample a picture to the size it is displayed at, if that is clearly smaller."""
    height, width = (max(1, round(scale * n)) for n in pixels.shape[:2])
    if scale > 0.9 or min(width, height) < 16:
        return pixels
    av, kind = import_optional("av"), "gray" if pixels.ndim == 2 else "rgb24"
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format=kind)
    reduced: Bitmap = frame.reformat(width, height, format=kind, interpolation="AREA").to_ndarray()
    return reduced


def _save(kind: str, pixels: Bitmap, **options: Any) -> bytes:
    out = io.BytesIO()
    import_optional("PIL.Image").fromarray(pixels).save(out, kind, **options)
    return out.getvalue()
