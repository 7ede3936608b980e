"""The elements that make a copy of a DICOM dataset a derived image, in a series of its own.

Study, patient, geometry and acquisition stay as they are. The UIDs, the number and the description of the
series are new, and so are the elements that say which images were filtered, how, and by what program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4, uuid5

from .files import import_optional

__all__ = ["Derivation", "get_element", "has_overlays", "stale_parts"]

SERIES_NUMBER_STEP = 1000  # Added to the number of a series, so that the results are listed after the study.
MAX_SHORT_CHARACTERS = 64  # of an element of VR LO
MAX_LONG_CHARACTERS = 1024  # of an element of VR ST
DISCLAIMER = "not for diagnosis"
# Elements that are wrong for other pixels, and what users call them.
STALE_ELEMENTS = {
    "DigitalSignaturesSequence": "digital signatures",
    "MACParametersSequence": "digital signatures",
    "IconImageSequence": "icon image",
}
OVERLAY_GROUPS = range(0x6000, 0x6020, 2)
OVERLAY_ROWS = 0x0010


def get_element(dataset: Any, name: str, default: Any = None) -> Any:
    """Return the value of an element; the default if it is missing, empty or malformed."""
    try:
        value = dataset.get(name)
    except Exception:  # pydicom converts values lazily, and malformed ones raise all kinds of errors.
        return default
    return default if value is None or value == "" else value


def stale_parts(dataset: Any) -> tuple[str, ...]:
    """Name the parts of a dataset that a derived image does not keep."""
    return tuple(dict.fromkeys(part for name, part in STALE_ELEMENTS.items() if name in dataset))


def has_overlays(dataset: Any) -> bool:
    """Return whether a dataset has overlays, which viewers draw over the pixels."""
    return any((group, OVERLAY_ROWS) in dataset for group in OVERLAY_GROUPS)


@dataclass(frozen=True)
class Derivation:
    """What was done to DICOM images, for the elements of the results.

    Results that are written with one derivation form one new series for each series of their sources.

    Parameters
    ----------
    description : str, default "filter"
        The filter and its options, such as ``"despeckle --kind log"``. It becomes part of SeriesDescription
        and of DerivationDescription.
    note : str, default ""
        What else DerivationDescription should say.
    neighbors : tuple of datasets, optional
        Other images that the result depends on.
    namespace : UUID, optional
        New UIDs are computed from it and from those of the source; by default it is random.
    created : datetime, optional
        By default, now.

    Examples
    --------
    >>> series = Derivation("denoise --strength 0.5")
    >>> series.new_uid("1.2.3") == series.new_uid("1.2.3") != Derivation().new_uid("1.2.3")
    True
    """

    description: str = "filter"
    note: str = ""
    neighbors: tuple[Any, ...] = ()
    namespace: UUID = field(default_factory=uuid4)
    created: datetime = field(default_factory=datetime.now)

    def new_uid(self, uid: str) -> str:
        """Return the UID that replaces another one: the same for the same derivation.

        Parameters
        ----------
        uid : str
            The UID of a study, a series or an instance.

        Returns
        -------
        str
        """
        return f"2.25.{uuid5(self.namespace, uid).int}"

    def apply(self, dataset: Any, source: Any) -> None:
        """Turn a copy of an image into a derived image of a new series.

        Parameters
        ----------
        dataset : pydicom.Dataset
            The copy, which is changed.
        source : pydicom.Dataset
            The original image.
        """
        self._identify(dataset, source)
        self._refer(dataset, source)
        for name in STALE_ELEMENTS:
            if name in dataset:
                delattr(dataset, name)

    def _identify(self, dataset: Any, source: Any) -> None:
        """Set the UIDs of the image and of its series, and what viewers list them by."""
        dataset.SOPInstanceUID = self.new_uid(
            str(get_element(source, "SOPInstanceUID", "") or source.filename)
        )
        dataset.SeriesInstanceUID = self.new_uid(str(get_element(source, "SeriesInstanceUID", "")))
        dataset.SeriesNumber = int(get_element(source, "SeriesNumber", 0)) + SERIES_NUMBER_STEP
        before = str(get_element(source, "SeriesDescription", "")).strip()
        name = f"undula {self.description}"[:MAX_SHORT_CHARACTERS]
        kept = before[: max(0, MAX_SHORT_CHARACTERS - len(name) - 2)]
        dataset.SeriesDescription = f"{kept}, {name}" if kept else name
        dataset.InstanceCreationDate = self.created.strftime("%Y%m%d")
        dataset.InstanceCreationTime = self.created.strftime("%H%M%S")
        meta = dataset.file_meta
        meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
        if "MediaStorageSOPClassUID" not in meta and "SOPClassUID" in dataset:
            meta.MediaStorageSOPClassUID = dataset.SOPClassUID

    def _refer(self, dataset: Any, source: Any) -> None:
        """Say what the image is derived from, and how."""
        from .. import __version__

        pydicom = import_optional("pydicom")
        dataset.ImageType = _derived_type(get_element(source, "ImageType", []))
        for groups in ("SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence"):
            for group in get_element(dataset, groups, ()):
                for element in group:
                    if element.VR == "SQ" and element.keyword.endswith("FrameTypeSequence"):
                        for item in element.value:
                            item.FrameType = _derived_type(get_element(item, "FrameType", []))
        purpose = _code("121322", "Source image for image processing operation")
        origins = []
        for each in (source, *self.neighbors):
            if "SOPInstanceUID" in each and "SOPClassUID" in each:
                origin = pydicom.Dataset()
                origin.ReferencedSOPClassUID = each.SOPClassUID
                origin.ReferencedSOPInstanceUID = each.SOPInstanceUID
                origin.PurposeOfReferenceCodeSequence = [purpose]
                origins.append(origin)
        if origins:
            dataset.SourceImageSequence = origins
        elif "SourceImageSequence" in dataset:
            del dataset.SourceImageSequence
        before = str(get_element(dataset, "DerivationDescription", "")).strip()
        parts = [before, f"undula {__version__}: {self.description}", self.note, DISCLAIMER]
        dataset.DerivationDescription = "; ".join(filter(None, parts))[-MAX_LONG_CHARACTERS:]
        program = pydicom.Dataset()
        program.Manufacturer = program.ManufacturerModelName = "Undula"
        program.SoftwareVersions = __version__
        program.ContributionDateTime = self.created.strftime("%Y%m%d%H%M%S")
        program.ContributionDescription = "wavelet filter, " + DISCLAIMER
        program.PurposeOfReferenceCodeSequence = [_code("109102", "Processing Equipment")]
        equipment = list(get_element(dataset, "ContributingEquipmentSequence", ()))
        dataset.ContributingEquipmentSequence = [*equipment, program]


def _derived_type(values: Sequence[str] | str) -> list[str]:
    """Return an image type or frame type whose first value is DERIVED."""
    others = [] if isinstance(values, str) else list(values)[1:]
    return ["DERIVED", *(others or ["SECONDARY"])]


def _code(value: str, meaning: str) -> Any:
    """Return an item of a code sequence, of the DICOM terminology."""
    item = import_optional("pydicom").Dataset()
    item.CodeValue, item.CodingSchemeDesignator, item.CodeMeaning = value, "DCM", meaning
    return item
