"""A picture: pixels, what their channels are, and what has to come back with them into a file.

Readers say what each channel is, by what the file says. Filters go by it: red, green and blue are filtered
together, opacity is left as it is, and every other channel is filtered by itself.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, ArgumentTypeError
from .files import import_optional
from .stored import StoredRange

__all__ = ["ALPHA", "CMYK", "LAB", "MAX_CHANNELS", "RGB", "Picture", "picture_from_array"]

Array = NDArray[Any]

RGB = ("red", "green", "blue")
CMYK = ("cyan", "magenta", "yellow", "black")
LAB = ("lightness", "a", "b")  # a and b with an offset, so that grey is in the middle of what the dtype holds
ALPHA = ("alpha", "premultiplied alpha")
MAX_CHANNELS = 5  # an array with a longer last axis is taken for pages

# EXIF's and TIFF's orientation: whether rows and columns change places; then which of them are reversed.
_TURNS = {
    1: (False, False, False),
    2: (False, False, True),
    3: (False, True, True),
    4: (False, True, False),
    5: (True, False, False),
    6: (True, False, True),
    7: (True, True, True),
    8: (True, True, False),
}


@dataclass(frozen=True, eq=False)
class Picture:
    """Pixels, and what has to come back with them.

    Parameters
    ----------
    pixels : array
        ``(H, W)`` or ``(H, W, channels)``; several pages, frames or volumes have one more axis in front.
    kind : str
        Of the file.
    pages : bool
        Whether the first axis counts pages.
    profile, exif : bytes, optional
        The colour profile, and what a camera wrote.
    about : dict
        Anything else that a format keeps: resolution, durations of frames, a dataset.
    stored : StoredRange, optional
        The values that the file can store, where they are fewer than those of the dtype.
    channels : tuple of str, optional
        What each channel is: ``red``, ``green``, ``blue``; ``cyan``, ``magenta``, ``yellow``, ``black``;
        ``lightness``, ``a``, ``b``; or ``grey``; then ``alpha``, ``premultiplied alpha`` and ``other``.
        If not given, 3 channels are red, green and blue, and a fourth is alpha.
    orientation : int
        How the pixels are to be turned to be upright, 1 to 8 as in EXIF and TIFF; 1 is for not at all.
    """

    pixels: Array
    kind: str = ""
    pages: bool = False
    profile: bytes | None = None
    exif: bytes | None = None
    about: dict[str, Any] = field(default_factory=dict)
    stored: StoredRange | None = None
    channels: tuple[str, ...] = ()
    orientation: int = 1

    def __post_init__(self) -> None:
        count = 1 if self.channel_axis is None else int(self.pixels.shape[-1])
        names = tuple(self.channels)
        if not names:
            names = (*RGB, "alpha")[:count] if count in (3, 4) else ("grey", *["other"] * (count - 1))
        if len(names) != count:
            raise ArgumentError(
                f"pixels of shape {self.pixels.shape} have {count} channels, and there are {len(names)} names"
                f" for them: {', '.join(names)}"
            )
        if self.orientation not in _TURNS:
            raise ArgumentError(f"an orientation is from 1 to 8, got {self.orientation!r}")
        object.__setattr__(self, "channels", names)

    @property
    def channel_axis(self) -> int | None:
        """The last axis, where it has channels."""
        return self.pixels.ndim - 1 if self.pixels.ndim == 3 + self.pages else None

    @property
    def axes(self) -> tuple[int, int]:
        """Rows and columns."""
        return (int(self.pages), int(self.pages) + 1)

    @property
    def space(self) -> str:
        """What the first channels are: ``rgb``, ``cmyk``, ``lab`` or ``grey``."""
        for name, first in (("rgb", RGB), ("cmyk", CMYK), ("lab", LAB)):
            if self.channels[: len(first)] == first:
                return name
        return "grey"

    @property
    def extra_channels(self) -> tuple[str, ...]:
        """Those beside colours or grey."""
        return self.channels[{"rgb": 3, "cmyk": 4, "lab": 3, "grey": 1}[self.space] :]

    @property
    def all_pages(self) -> Array:
        """The pages along the first axis, also where there is but one."""
        return self.pixels if self.pages else self.pixels[None]

    def with_pixels(self, pixels: Array) -> Picture:
        """The same with other pixels."""
        same = (
            pixels.ndim == self.pixels.ndim
            and pixels.shape[2 + self.pages :] == self.pixels.shape[2 + self.pages :]
        )
        return replace(self, pixels=pixels, channels=self.channels if same else ())

    def filtered(
        self, work: Callable[..., Any], progress: Callable[[int], None] | None = None, **options: Any
    ) -> Picture:
        """Every page through a filter, each channel as what it is.

        Red, green and blue are filtered together, opacity stays as it is, and every other channel is filtered
        by itself.

        Parameters
        ----------
        work : callable
            A :class:`undula.Pipeline` or a function such as :func:`undula.denoise`.
        progress : callable, optional
            Is told how many pages are done.
        **options
            For ``work``; ``channel_axis`` is passed in any case.

        Examples
        --------
        >>> import undula
        >>> noisy = np.random.default_rng(0).integers(0, 256, (40, 50, 2)).astype("uint8")
        >>> scan = undula.io.Picture(noisy, channels=("grey", "alpha"))
        >>> better = scan.filtered(undula.denoise).pixels
        >>> bool((better[..., 1] == noisy[..., 1]).all()), bool((better[..., 0] == noisy[..., 0]).all())
        (True, False)
        """
        pages = []
        for page in self.filtered_pages(work, **options):
            pages.append(page)
            if progress is not None:
                progress(len(pages))
        return self.with_pixels(np.stack(pages) if self.pages else pages[0])

    def filtered_pages(self, work: Callable[..., Any], **options: Any) -> Iterator[Array]:
        """One page after the other, as :meth:`filtered` does them."""
        stored = self.stored

        def filtered(x: Array, channel_axis: int | None) -> Array:
            arguments = {"channel_axis": channel_axis, **options}
            return np.asarray(
                work(x, **arguments) if stored is None else stored.filtered(work, x, **arguments)
            )

        for page in self.all_pages:
            if self.channel_axis is None:
                yield filtered(page, None)
            elif self.channels == RGB:
                yield filtered(page, -1)
            else:
                first = 3 if self.space == "rgb" else 0
                parts = [filtered(np.ascontiguousarray(page[..., :3]), -1)] if first else []
                for place in range(first, len(self.channels)):
                    channel = np.ascontiguousarray(page[..., place])
                    untouched = self.channels[place] in ALPHA
                    parts.append((channel if untouched else filtered(channel, None))[..., None])
                yield np.concatenate(parts, axis=-1)

    def upright(self) -> Picture:
        """The same with its pixels turned, so that no orientation is needed."""
        across, rows, columns = _TURNS[self.orientation]
        if self.orientation == 1:
            return self
        row, column = self.axes
        pixels = np.swapaxes(self.pixels, row, column) if across else self.pixels
        pixels = np.flip(pixels, tuple(axis for axis, flip in ((row, rows), (column, columns)) if flip))
        about = dict(self.about)
        if across:
            about |= {key: tuple(about[key])[::-1] for key in ("dpi", "resolution") if key in about}
        return replace(self, pixels=np.ascontiguousarray(pixels), about=about, orientation=1)

    def brightness(self) -> NDArray[np.float64]:
        """Of the first page, as floats: of red, green and blue, or the mean of all channels but opacity."""
        page: NDArray[np.float64] = self.all_pages[0].astype(np.float64)
        if self.channel_axis is None:
            return page
        if self.space == "rgb":
            return np.asarray(page[..., :3] @ np.array([0.299, 0.587, 0.114]))
        shown = [place for place, name in enumerate(self.channels) if name not in ALPHA]
        return np.asarray(page[..., shown].mean(axis=-1))

    def as_rgb(self) -> Picture:
        """CMYK and Lab as red, green and blue, without the profile that they had; others as they are.

        Lab becomes sRGB, as does CMYK of 8 bits with a profile. Without one, each ink takes its share of the
        light.
        """
        if self.space not in ("cmyk", "lab"):
            return self
        if self.pixels.dtype not in (np.uint8, np.uint16):
            raise ArgumentTypeError(
                f"{self.space.upper()} of {self.pixels.dtype} is not converted; write TIFF"
            )
        count = 4 if self.space == "cmyk" else 3
        colors, rest = self.pixels[..., :count], self.pixels[..., count:]
        rgb, profile = None, None
        if self.space == "lab":
            rgb = _lab_to_srgb(colors, self.about.get("photometric") == "icclab")
        elif self.profile:
            rgb = _cmyk_by_profile(colors, self.profile)
        if rgb is not None:
            profile = _srgb_profile()
        else:
            most = np.iinfo(colors.dtype).max
            light = most - colors.astype(np.int64)
            rgb = ((2 * light[..., :3] * light[..., 3:] + most) // (2 * most)).astype(colors.dtype)
        about = {key: value for key, value in self.about.items() if key != "photometric"}
        pixels = np.concatenate([rgb, rest], axis=-1)
        names = (*RGB, *self.extra_channels)
        return replace(self, pixels=pixels, profile=profile, about=about, channels=names)

    def with_black_zero(self) -> Picture:
        """Grey whose 0 is white, with black at 0; others as they are."""
        if self.space != "grey" or self.about.get("photometric") != "miniswhite":
            return self
        pixels = self.pixels.copy()
        grey = pixels if self.channel_axis is None else pixels[..., 0]
        if self.stored is not None:
            grey[...] = self.stored.high + self.stored.low - grey.astype(np.int64)
        else:
            grey[...] = -grey if pixels.dtype.kind == "f" else ~grey
        about = {key: value for key, value in self.about.items() if key != "photometric"}
        return replace(self, pixels=pixels, about=about)

    def with_plain_alpha(self) -> Picture:
        """Colours that were multiplied with their opacity, as they are without."""
        if ALPHA[1] not in self.channels:
            return self
        place = self.channels.index(ALPHA[1])
        first = len(self.channels) - len(self.extra_channels)
        colors, alpha = self.pixels[..., :first], self.pixels[..., place : place + 1]
        if self.pixels.dtype.kind == "u":
            most = np.iinfo(self.pixels.dtype).max
            plain = np.minimum(np.floor(colors * float(most) / np.maximum(alpha, 1) + 0.5), most)
        else:
            plain = colors / np.where(alpha > 0, alpha, 1)
        pixels = self.pixels.copy()
        pixels[..., :first] = np.where(alpha > 0, plain, 0)
        names = tuple(ALPHA[0] if name == ALPHA[1] else name for name in self.channels)
        return replace(self, pixels=pixels, channels=names)

    def for_screen(self) -> Picture:
        """As a screen shows it: upright, grey or RGB with or without alpha.

        Channels beside red, green and blue are left out; those that are no colours become pages.
        """
        plain = self.upright().as_rgb()
        if "dataset" not in plain.about:  # (the window of DICOM turns black and white)
            plain = plain.with_black_zero()
        if plain.channel_axis is None or plain.channels in (RGB, (*RGB, ALPHA[0])):
            return plain
        plain = plain.with_plain_alpha()
        alpha = [place for place, name in enumerate(plain.channels) if name in ALPHA][:1]
        shown = [place for place, name in enumerate(plain.channels) if name not in ALPHA]
        if plain.space == "rgb":
            names = (*RGB, ALPHA[0])[: 3 + len(alpha)]
            return replace(
                plain, pixels=np.ascontiguousarray(plain.pixels[..., [0, 1, 2, *alpha]]), channels=names
            )
        if len(shown) == 1:
            if not alpha:
                return replace(plain, pixels=np.ascontiguousarray(plain.pixels[..., 0]), channels=("grey",))
            pixels = np.ascontiguousarray(plain.pixels[..., [*shown * 3, *alpha]])
            return replace(plain, pixels=pixels, channels=(*RGB, ALPHA[0]))
        pages = np.moveaxis(plain.pixels[..., shown], -1, int(plain.pages))
        pages = np.ascontiguousarray(pages.reshape(-1, *pages.shape[-2:]))
        return replace(plain, pixels=pages, pages=True, channels=("grey",))


def picture_from_array(pixels: Array, kind: str = "") -> Picture:
    """An array as a picture: its last axis has the channels if it is short, and axes in front count pages."""
    color = pixels.ndim >= 3 and pixels.shape[-1] <= MAX_CHANNELS
    if pixels.ndim - color <= 2:
        return Picture(pixels, kind)
    shape = pixels.shape
    return Picture(pixels.reshape(-1, *shape[len(shape) - 2 - color :]), kind, True, about={"shape": shape})


# --- colours --------------------------------------------------------------------------------------


def profile_space(profile: bytes) -> bytes:
    """The colours that an ICC profile is for, such as ``b"RGB "``; nothing where it is no such profile."""
    return profile[16:20] if profile[36:40] == b"acsp" else b""


def _srgb_profile() -> bytes:
    cms = import_optional("PIL.ImageCms")
    return bytes(cms.ImageCmsProfile(cms.createProfile("sRGB")).tobytes())


def _cmyk_by_profile(colors: Array, profile: bytes) -> Array | None:
    """Inks as sRGB, as a profile says that they look; None for a profile that does not say."""
    cms, image_module = import_optional("PIL.ImageCms"), import_optional("PIL.Image")
    try:
        given = cms.ImageCmsProfile(io.BytesIO(profile))
        transform = cms.buildTransform(given, cms.createProfile("sRGB"), "CMYK", "RGB")
    except (cms.PyCMSError, OSError):
        return None
    if colors.dtype != np.uint8:
        raise ArgumentTypeError(
            f"CMYK of {colors.dtype} with a colour profile is not converted to RGB; write TIFF"
        )
    flat = np.ascontiguousarray(colors).reshape(-1, colors.shape[-2], 4)  # (pages below each other)
    rgb = cms.applyTransform(image_module.fromarray(flat, "CMYK"), transform)
    return np.asarray(rgb).reshape(*colors.shape[:-1], 3)


def _lab_to_srgb(colors: Array, icc: bool) -> Array:
    """CIE L*a*b* with the white of D50 as sRGB, through XYZ."""
    most, unit = (255, 1) if colors.dtype == np.uint8 else (65535, 256)
    x = colors.astype(np.float64)
    lightness = x[..., 0] * (100 / (65280 if icc and unit > 1 else most))
    a, b = (x[..., k] / unit - 128 for k in (1, 2))
    y = (lightness + 16) / 116
    cubes = np.stack([y + a / 500, y, y - b / 200], axis=-1)
    xyz = np.where(cubes > 6 / 29, cubes**3, (cubes - 4 / 29) * (108 / 841)) * [0.96422, 1.0, 0.82521]
    # (From XYZ under D50 to linear sRGB under D65, with Bradford's adaptation.)
    linear = xyz @ np.array(
        [
            [3.1338561, -0.9787684, 0.0719453],
            [-1.6168667, 1.9161415, -0.2289914],
            [-0.4906146, 0.0334540, 1.4052427],
        ]
    )
    linear = np.clip(linear, 0, 1)
    shown = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.asarray(np.round(shown * most), colors.dtype)
