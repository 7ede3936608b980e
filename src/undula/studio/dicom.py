"""What the Studio shows of a DICOM file besides its pixels: patient, modality, spacing, units and windows.

Stored values become values of the modality, such as Hounsfield units, by ``slope * stored + intercept``.
Windows have a centre and a width in these values.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from ..io.dicom import get_element

__all__ = ["CT_WINDOWS", "DicomFacts", "dicom_facts"]

CT_WINDOWS = {
    "Soft tissue": (40.0, 400.0),
    "Lung": (-600.0, 1500.0),
    "Bone": (400.0, 1800.0),
    "Brain": (40.0, 80.0),
    "Liver": (60.0, 160.0),
}
CENTIMETRES = 3  # the code of this unit in the regions of ultrasound
MAX_TEXT = 64


@dataclass(frozen=True)
class DicomFacts:
    """Facts of a DICOM file.

    ``spacing`` is the distance of rows and of columns in millimetres, and ``windows`` are pairs of centre and
    width by name, of which the first ``file_windows`` are in the file.
    """

    patient: str = ""
    modality: str = ""
    description: str = ""
    spacing: tuple[float, float] | None = None
    slope: float = 1.0
    intercept: float = 0.0
    unit: str = ""
    windows: tuple[tuple[str, float, float], ...] = ()
    file_windows: int = 0

    @property
    def is_ultrasound(self) -> bool:
        """Whether the pixels are those of ultrasound, compressed logarithmically for display."""
        return self.modality in ("US", "IVUS")

    def to_modality(self, stored: float) -> float:
        """Return the value of the modality for a stored one."""
        return self.slope * stored + self.intercept

    def to_stored(self, value: float) -> float:
        """Return the stored value for a value of the modality."""
        return (value - self.intercept) / self.slope

    @property
    def stored_window(self) -> tuple[float, float] | None:
        """The stored values that the first window of the file shows as black and white, if it has one."""
        if self.file_windows == 0:
            return None
        _, center, width = self.windows[0]
        low, high = sorted(self.to_stored(center + side * width / 2) for side in (-1, 1))
        return low, high

    def to_dict(self) -> dict[str, Any]:
        """Return the facts for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> DicomFacts:
        """Return the facts that :meth:`to_dict` has returned."""
        spacing, windows = values["spacing"], values["windows"]
        return cls(
            **{
                **values,
                "spacing": None if spacing is None else tuple(spacing),
                "windows": tuple((name, center, width) for name, center, width in windows),
            }
        )


def dicom_facts(dataset: Any) -> DicomFacts:
    """Read the facts of a dataset; missing and malformed elements are left out."""

    def text(name: str) -> str:
        return " ".join(str(get_element(dataset, name, "")).replace("^", " ").split())[:MAX_TEXT]

    modality = text("Modality")
    slope, intercept = _number(dataset, "RescaleSlope") or 1.0, _number(dataset, "RescaleIntercept") or 0.0
    unit = text("RescaleType") or ("HU" if modality == "CT" else "")
    windows = _windows(dataset)
    count = len(windows)
    if modality == "CT" and unit in ("HU", "US", ""):
        unit = "HU"
        windows += tuple((name, *window) for name, window in CT_WINDOWS.items())
    return DicomFacts(
        text("PatientName"),
        modality,
        text("SeriesDescription") or text("StudyDescription"),
        _spacing(dataset),
        slope,
        intercept,
        "" if unit == "US" else unit,
        windows,
        count,
    )


def _number(dataset: Any, name: str) -> float | None:
    with suppress(TypeError, ValueError):
        return float(get_element(dataset, name))
    return None


def _numbers(value: Any) -> list[float]:
    with suppress(TypeError, ValueError):
        return [
            float(v) for v in (value if hasattr(value, "__len__") and not isinstance(value, str) else [value])
        ]
    return []


def _windows(dataset: Any) -> tuple[tuple[str, float, float], ...]:
    """Return the windows that the file has, with their explanations as names."""
    centers, widths = (_numbers(get_element(dataset, name)) for name in ("WindowCenter", "WindowWidth"))
    names = get_element(dataset, "WindowCenterWidthExplanation", [])
    names = [names] if isinstance(names, str) else list(names)
    pairs = [(center, width) for center, width in zip(centers, widths, strict=False) if width > 0]
    return tuple(
        (str(names[k])[:MAX_TEXT] if k < len(names) else f"Of the file{f' {k + 1}' if k else ''}", *pair)
        for k, pair in enumerate(pairs)
    )


def _spacing(dataset: Any) -> tuple[float, float] | None:
    """Return the distance of rows and columns in millimetres, if the file has it."""
    for name in ("PixelSpacing", "ImagerPixelSpacing", "NominalScannedPixelSpacing"):
        spacing = _numbers(get_element(dataset, name))
        if len(spacing) == 2 and min(spacing) > 0:
            return spacing[0], spacing[1]
    with suppress(Exception):  # pydicom converts elements of sequences lazily; malformed ones raise anything.
        region = dataset.SequenceOfUltrasoundRegions[0]
        units = region.PhysicalUnitsXDirection, region.PhysicalUnitsYDirection
        spacing = [10 * abs(float(region.PhysicalDeltaY)), 10 * abs(float(region.PhysicalDeltaX))]
        if units == (CENTIMETRES, CENTIMETRES) and min(spacing) > 0:
            return spacing[0], spacing[1]
    return None
