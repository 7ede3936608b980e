"""Reading Zarr: which array a path stands for, what is known of its axes, and which arrays are refused."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..engines.threads import get_num_threads
from ..errors import NO_FILE, ArgumentError, ArgumentTypeError, FileError, UndulaError
from ..io.files import import_optional, short_message
from ..io.picture import RGB
from .partial import is_incomplete, is_store

__all__ = [
    "NamedArray",
    "SourceArray",
    "multiscale",
    "open_array",
    "open_group",
    "open_source",
    "read_window",
    "spatial_axes",
]

Interval = tuple[int, int]
OME_NAMES = "tczyx"
SPACE = "zyx"
COEFFICIENTS_KIND = "coefficients"  # The kind of a group of coefficients, in its attribute ``undula``.


def _location(path: str | Path) -> str:
    """Return a path or an address as Zarr takes it."""
    if not isinstance(path, (str, PathLike)):
        raise ArgumentTypeError(
            f"a store must be named by its path or address, got {type(path).__name__}; functions such as"
            " undula.denoise take Dask arrays, and dask.array.from_zarr makes one of an array of Zarr"
        )
    text = str(path)
    return text if "://" in text else str(Path(text).absolute())


def import_zarr() -> Any:
    """Import Zarr, with as many threads as Undula has if this is the first import in the process.

    By default it has more of them than cores, each with memory of its own.
    """
    is_first = "zarr" not in sys.modules
    zarr = import_optional("zarr", "scale")
    if is_first and zarr.config.get("threading.max_workers", None) is None:
        zarr.config.set({"threading.max_workers": get_num_threads()})
    return zarr


def _open(path: str | Path) -> Any:
    """Open a group or an array, and raise an error in one line for anything else."""
    zarr = import_zarr()
    location = _location(path)
    if "://" not in location:
        folder = Path(location)
        if not folder.exists():
            raise FileError(f"cannot read {path}: {NO_FILE}")
        if any(is_incomplete(each) for each in (folder, *folder.parents)):
            raise FileError(
                f"{path} is half written and has chunks missing; run the command that wrote it again to"
                " complete it"
            )
        if folder.is_dir() and not is_store(folder):
            raise FileError(f"{path} is not a Zarr store: it has no zarr.json, .zarray or .zgroup")
    try:
        return zarr.open(location, mode="r")
    except Exception as error:  # Damaged metadata may raise anything.
        if "'|O'" in str(error):
            raise FileError(f"{path} must have numbers, got dtype object") from None
        raise FileError(f"cannot read {path} as Zarr: {short_message(error)}") from None


@lru_cache(maxsize=128)
def open_array(location: str, token: str, writable: bool = False) -> Any:
    """Return an array that is known to exist; a worker opens it once for each run, which has a token."""
    import zarr

    return zarr.open_array(location, mode="r+" if writable else "r")


def open_group(path: str | Path) -> Any:
    """Open a group."""
    zarr = import_zarr()
    group = _open(path)
    if not isinstance(group, zarr.Group):
        raise FileError(f"{path} is an array of Zarr, and a group is needed")
    return group


def read_window(array: Any, segments: Sequence[Sequence[Interval]]) -> np.ndarray[Any, Any]:
    """Return the parts of an array that segments along each axis select, as one array."""
    if all(len(parts) == 1 for parts in segments):
        window = _read(array, tuple(slice(*parts[0]) for parts in segments))
    else:
        shape = tuple(sum(stop - start for start, stop in parts) for parts in segments)
        window = np.empty(shape, array.dtype)
        for pieces in product(*map(_placed, segments)):
            window[tuple(place for _, place in pieces)] = _read(array, tuple(source for source, _ in pieces))
    window = np.asarray(window)
    return window.astype(window.dtype.newbyteorder("="), copy=False)


def _read(array: Any, index: Any) -> Any:
    """Read a part of an array; an error names the array."""
    try:
        return array[index]
    except (MemoryError, UndulaError):
        raise
    except Exception as error:  # Codecs and stores raise errors of many kinds.
        path = str(array.store_path).removeprefix("file://")
        raise FileError(f"cannot read {path}: {type(error).__name__}: {short_message(error)}") from None


class NamedArray:
    """An array of a store as Dask reads it: errors name the array.

    Parameters
    ----------
    array : zarr.Array
    """

    def __init__(self, array: Any) -> None:
        self.array, self.shape, self.dtype, self.ndim = array, array.shape, array.dtype, array.ndim

    def __getitem__(self, index: Any) -> Any:
        return _read(self.array, index)


def _placed(parts: Sequence[Interval]) -> list[tuple[slice, slice]]:
    """Return segments of a line with their places in the window."""
    placed, before = [], 0
    for start, stop in parts:
        placed.append((slice(start, stop), slice(before, before + stop - start)))
        before += stop - start
    return placed


@dataclass(frozen=True)
class SourceArray:
    """An array of numbers in a store.

    Parameters
    ----------
    location : str
        The full path or address of the array.
    array : zarr.Array
    names : tuple of str or None
        Names of the axes, if they are known.
    scale : tuple of float or None
        Distance between samples along each axis, if it is known.
    units : tuple of str or None
        Unit along each axis; None where it is unknown.
    component : str
        Where the array is in its image of OME-Zarr; empty if it is not part of one.
    attributes : dict
        The attributes of that image.
    """

    location: str
    array: Any
    names: tuple[str, ...] | None = None
    scale: tuple[float, ...] | None = None
    units: tuple[str | None, ...] | None = None
    component: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return tuple(self.array.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype, in the byte order of this machine."""
        dtype: np.dtype[Any] = np.dtype(self.array.dtype)
        return dtype.newbyteorder("=")

    @property
    def chunks(self) -> tuple[int, ...]:
        """The parts in which the array is stored: shards, or else chunks; none is longer than the array."""
        sizes = self.array.shards or self.array.chunks
        return tuple(min(size, length) for size, length in zip(sizes, self.shape, strict=True))

    @property
    def omero(self) -> Mapping[str, Any] | None:
        """How channels are named and shown, in the words of OME-Zarr; None if that is unknown."""
        ome = self.attributes.get("ome")
        omero = (ome if isinstance(ome, Mapping) else self.attributes).get("omero")
        return omero if isinstance(omero, Mapping) else None

    @property
    def channel_names(self) -> tuple[str, ...]:
        """The names of channels; empty if they are unknown."""
        channels = (self.omero or {}).get("channels")
        if not isinstance(channels, list):
            return ()
        return tuple(str(each.get("label", "")) for each in channels if isinstance(each, Mapping))

    @property
    def color_axis(self) -> int | None:
        """The axis of red, green and blue, which are filtered together; other channels are not."""
        if tuple(name.lower() for name in self.channel_names) != RGB or self.names is None:
            return None
        names = [name.lower() for name in self.names]
        return names.index("c") if "c" in names else None

    def filtered_attributes(self) -> dict[str, Any]:
        """Return the attributes of an image of OME-Zarr that has this array only, without smaller levels."""
        attributes = dict(self.attributes)
        ome = dict(attributes["ome"]) if isinstance(attributes.get("ome"), Mapping) else attributes
        image = dict(ome["multiscales"][0])
        image["datasets"] = [each for each in image["datasets"] if str(each["path"]) == self.component]
        ome["multiscales"] = [image]
        return {**attributes, "ome": ome} if "ome" in attributes else ome

    @property
    def fingerprint(self) -> str:
        """A hash of the metadata, by which a changed source is recognised."""
        text = json.dumps(self.array.metadata.to_dict(), sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def open_source(path: str | Path) -> SourceArray:
    """Open the array that a path stands for, and check that it has numbers.

    The path leads to an array, to a group with a single array, or to an image of OME-Zarr, whose largest
    array is taken.
    """
    zarr = import_zarr()
    node = _open(path)
    names: tuple[str, ...] | None = None
    scale: tuple[float, ...] | None = None
    units: tuple[str | None, ...] | None = None
    location = _location(path)
    of_image: dict[str, Any] = {}
    if isinstance(node, zarr.Group):
        header = dict(node.attrs).get("undula")
        if isinstance(header, Mapping) and header.get("kind") == COEFFICIENTS_KIND:
            raise FileError(
                f"{path} holds wavelet coefficients; run `undula inverse` first, or name an array such as"
                f" {path}/approximation"
            )
        image = multiscale(node)
        try:
            if image is not None:
                axes = [{"name": a} if isinstance(a, str) else a for a in image.get("axes", ())]
                if axes:
                    names = tuple(str(axis["name"]) for axis in axes)
                    units = tuple(axis.get("unit") for axis in axes)
                dataset = image["datasets"][0]
                component = str(dataset["path"])
                for step in dataset.get("coordinateTransformations", ()):
                    if step.get("type") == "scale":
                        scale = tuple(float(size) for size in step["scale"])
                of_image = {"component": component, "attributes": dict(node.attrs)}
            else:
                arrays = sorted(name for name, _ in node.arrays())
                if len(arrays) != 1:
                    listed = ", ".join(f"{path}/{name}" for name in arrays[:5])
                    hint = f"name one of {listed}" if arrays else "name an array inside it"
                    raise FileError(f"{path} is a group with {len(arrays)} arrays; {hint}")
                component = arrays[0]
            node = node[component]
        except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
            raise FileError(f"cannot read {path} as OME-Zarr: {short_message(error)}") from None
        location = f"{location}/{component}"
    if names is None:
        names = _dimension_names(node)
    _check(path, node)
    ndim = len(node.shape)
    if names is not None and len(names) != ndim:
        raise FileError(f"{path} names {len(names)} axes, and its array has {ndim}")
    if scale is not None and len(scale) != ndim:
        scale = None
    return SourceArray(location, node, names, scale, units, **of_image)


def multiscale(group: Any) -> Any:
    """Return the first image of OME-Zarr in a group; None if there is none."""
    attributes = dict(group.attrs)
    ome = attributes.get("ome")
    images = (ome if isinstance(ome, Mapping) else attributes).get("multiscales")
    return images[0] if isinstance(images, list) and images else None


def _dimension_names(array: Any) -> tuple[str, ...] | None:
    names = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")
    if not names or any(name is None for name in names):
        return None
    return tuple(map(str, names))


def _check(path: str | Path, array: Any) -> None:
    """Raise an error if an array cannot be transformed."""
    dtype = np.dtype(array.dtype)
    if dtype.kind not in "biufc":
        kind = "object" if dtype.kind == "O" else str(dtype)
        raise FileError(f"{path} must have numbers, got dtype {kind}")
    if not array.shape or 0 in array.shape:
        raise FileError(f"{path} has no samples to transform, its shape is {tuple(array.shape)}")
    if 0 in array.chunks:
        raise FileError(f"{path} has chunks of zero length: {tuple(array.chunks)}; write it again")


def spatial_axes(source: SourceArray, axes: str | int | Sequence[int | str] | None) -> tuple[int, ...]:
    """Return the axes to transform: those that are given by number or name, or else all axes in space.

    Without names of axes, all axes are in space.

    Parameters
    ----------
    source : SourceArray
    axes : str or sequence of int and str, optional
        Such as ``"z,y,x"`` or ``(0, 1)``.
    """
    ndim, names = len(source.shape), source.names
    if axes is None:
        chosen = [
            axis for axis in range(ndim) if names is None or names[axis].lower() not in ("t", "c", "time")
        ]
        return tuple(chosen) or tuple(range(ndim))
    numbers = []
    if isinstance(axes, int):
        axes = (axes,)
    for word in axes.replace(",", " ").split() if isinstance(axes, str) else axes:
        if isinstance(word, str) and names is not None and word in names:
            numbers.append(names.index(word))
            continue
        try:
            number = int(word)
        except ValueError:
            known = ", ".join(names) if names else f"numbers from 0 to {ndim - 1}, the axes have no names"
            raise ArgumentError(f"unknown axis {word!r}; known: {known}") from None
        if not -ndim <= number < ndim:
            raise ArgumentError(f"axis {number} is out of range for an array of {ndim} axes")
        numbers.append(number % ndim)
    if not numbers or len(set(numbers)) < len(numbers):
        raise ArgumentError(f"axes must be named once each, got {axes!r}")
    return tuple(numbers)
