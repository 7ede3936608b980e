"""Which DICOM images of a folder belong together, and in which order."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .derivation import get_element

__all__ = ["group_series"]

# Images of a series that differ in one of these do not show the same thing a little later.
SEPARATING_ELEMENTS = (
    "SeriesInstanceUID Rows Columns SamplesPerPixel PhotometricInterpretation BitsAllocated"
    " PixelRepresentation ImageType EchoNumbers DiffusionBValue"
).split()
# The order in time of images at the same position.
TIME_ELEMENTS = ("TemporalPositionIdentifier", "AcquisitionNumber", "TriggerTime", "InstanceNumber")
DECIMALS = 3  # of positions in millimetres, and of the cosines of orientations


def group_series(headers: Mapping[Path, Any]) -> list[list[Path]]:
    """Group DICOM images into stacks of slices or frames, in their order in space or time.

    Parameters
    ----------
    headers : mapping of path to dataset
        DICOM files with one frame each.

    Returns
    -------
    list of list of path
        One list for each series, or several if its images differ in size, orientation or kind. If a series
        has several images at the same position, there is one list for each position, in the order of time.
    """
    series: dict[Any, list[tuple[Path, Any]]] = {}
    for path, header in headers.items():
        key = (*(str(get_element(header, name)) for name in SEPARATING_ELEMENTS), _orientation(header))
        series.setdefault(key, []).append((path, header))
    groups: list[list[Path]] = []
    for images in series.values():
        positions = [_position(header) for _, header in images]
        counts = {position: positions.count(position) for position in positions}
        if None in counts or len(counts) < len(images):
            stacks = [
                [image for image, other in zip(images, positions, strict=True) if other == position]
                for position in counts
            ]
            stacks = [sorted(stack, key=lambda image: _time(*image)) for stack in stacks]
        else:
            order = sorted(range(len(images)), key=lambda number: positions[number] or 0)
            stacks = [[images[number] for number in order]]
        groups += [[path for path, _ in stack] for stack in stacks]
    return groups


def _numbers(header: Any, name: str, count: int) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    try:
        values = np.array([float(value) for value in get_element(header, name, ())])
    except (TypeError, ValueError):
        return None
    return values if values.size == count and np.isfinite(values).all() else None


def _orientation(header: Any) -> tuple[float, ...] | None:
    cosines = _numbers(header, "ImageOrientationPatient", 6)
    return None if cosines is None else tuple(np.round(cosines, DECIMALS) + 0.0)


def _position(header: Any) -> float | None:
    """Return the position of a slice along the normal of its plane, in millimetres; None if it has none."""
    cosines = _numbers(header, "ImageOrientationPatient", 6)
    corner = _numbers(header, "ImagePositionPatient", 3)
    if cosines is None or corner is None:
        return None
    return float(np.round(np.cross(cosines[:3], cosines[3:]) @ corner, DECIMALS))


def _time(path: Path, header: Any) -> tuple[Any, ...]:
    """Return a key for the order in time; by name if the image says nothing about it."""
    values = []
    for name in TIME_ELEMENTS:
        try:
            values.append(float(get_element(header, name, 0)))
        except (TypeError, ValueError):
            values.append(0.0)
    return (*values, path.name)
