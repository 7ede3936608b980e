"""Pictures as bytes for the page: as they are, as PNG, or as a JPEG that is as large as it is seen."""

from __future__ import annotations

import io
import json
import struct
from typing import Any

import numpy as np

from ..io.files import import_optional
from .rendering import Shown

__all__ = ["encoded", "message", "smaller"]

Layer = tuple[dict[str, Any], bytes]


def encoded(shown: dict[str, Shown], quick: bool, raw: bool, scale: float) -> list[Layer]:
    """Layers, each with what the page must know of it.

    Parameters
    ----------
    shown : dict
        Pixels by the name of the layer.
    quick : bool
        Whether being there soon matters more than being exact.
    raw : bool
        Whether exact pixels are sent as they are, which is fastest on one machine, or as PNG.
    scale : float
        Pixels of the screen for one of the picture.
    """
    layers = []
    for name, pixels in shown.items():
        height, width = pixels.shape[:2]
        channels = 1 if pixels.ndim == 2 else pixels.shape[2]
        if quick and channels != 4:
            subsampling = 0 if channels == 1 else 2
            kind, data = "jpeg", _as("JPEG", smaller(pixels, scale), quality=92, subsampling=subsampling)
        elif raw:
            kind, data = "raw", np.ascontiguousarray(pixels).tobytes()
        else:
            kind, data = "png", _as("PNG", pixels, compress_level=1)
        about = {"name": name, "width": width, "height": height, "channels": channels}
        layers.append(({**about, "format": kind, "size": len(data)}, data))
    return layers


def message(head: dict[str, Any], layers: list[Layer]) -> bytes:
    """A head as JSON, with its length before it, and the bytes of all layers."""
    text = json.dumps({**head, "layers": [about for about, _ in layers]}).encode()
    return b"".join([struct.pack("<I", len(text)), text, *(data for _, data in layers)])


def smaller(pixels: Shown, scale: float) -> Shown:
    """A picture as large as it is seen, if that is smaller."""
    height, width = (max(1, round(scale * n)) for n in pixels.shape[:2])
    if scale > 0.9 or min(width, height) < 16:
        return pixels
    av, kind = import_optional("av"), "gray" if pixels.ndim == 2 else "rgb24"
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format=kind)
    reduced: Shown = frame.reformat(width, height, format=kind, interpolation="AREA").to_ndarray()
    return reduced


def _as(kind: str, pixels: Shown, **options: Any) -> bytes:
    out = io.BytesIO()
    import_optional("PIL.Image").fromarray(pixels).save(out, kind, **options)
    return out.getvalue()
