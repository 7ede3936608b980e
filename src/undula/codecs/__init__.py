"""Codecs for chunked storage: the lossless integer lifting ``nd_lift`` in front of a compressor.

``nd_lift`` and ``zigzag`` are the formats, without any storage library. ``zarr3`` has the codecs of Zarr 3
arrays and ``zarr2`` the filters of Zarr 2 arrays; Zarr and numcodecs find them by entry points, and import
them when needed.
"""

from __future__ import annotations

from .nd_lift import AxisLifting, NdLift

__all__ = ["AxisLifting", "NdLift"]
