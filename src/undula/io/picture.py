"""The class Picture: pixels, the meaning of their channels, and the metadata that is written with them.

Readers name each channel as the file does, and filters follow these names: red, green and blue are filtered
together, alpha is kept, and every other channel is filtered independently. Colours of transparent pixels are
masked, since they are invisible and may be anything.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, ArgumentTypeError
from ..filters.memory import working_memory
from .files import import_optional
from .stack import UNKNOWN, StackAxes, StackLayout, named_axes
from .stored import StoredRange

__all__ = ["ALPHA", "CMYK", "LAB", "MAX_CHANNELS", "RGB", "Picture", "picture_from_array"]

Array = NDArray[Any]

RGB = ("red", "green", "blue")
CMYK = ("cyan", "magenta", "yellow", "black")
LAB = ("lightness", "a", "b")  # a and b are offset: grey is at the middle of the dtype's range.
ALPHA = ("alpha", "premultiplied alpha")
MAX_CHANNELS = 5  # The last axis of an array has channels if it is not longer.
ORIENTATION_TAG = 274  # of EXIF and TIFF


@dataclass(frozen=True, eq=False)
class Picture:
    """Pixels, the meaning of their channels, and metadata.

    Parameters
    ----------
    pixels : ndarray
        Of shape ``(H, W)`` or ``(H, W, channels)``, with one more axis in front for pages, frames or slices.
    kind : str, default ""
        The format of the file that the pixels were read from.
    pages : bool, default False
        Whether the first axis counts pages.
    profile, exif : bytes, optional
        The ICC colour profile and the EXIF data.
    about : dict, optional
        Other metadata of the format, such as the resolution, the durations of frames or a DICOM dataset.
    stored : StoredRange, optional
        The range of values that the file can store, if it is smaller than that of the dtype.
    channels : tuple of str, optional
        The name of each channel: ``red``, ``green``, ``blue``; ``cyan``, ``magenta``, ``yellow``, ``black``;
        ``lightness``, ``a``, ``b``; or ``grey``; followed by any of ``alpha``, ``premultiplied alpha`` and
        ``other``. By default, 3 channels are RGB, 4 are RGBA, and others are grey and ``other``.
    orientation : int, default 1
        How to turn the pixels upright, 1 to 8 as in EXIF and TIFF; 1 if they are upright.
    stack : StackAxes, optional
        What the pages are: the slices, channels or times of a stack, with the distances of samples.
    xmp, iptc : bytes, optional
        The XMP packet and the IPTC data.
    texts : dict, optional
        Texts by their keywords, such as those of PNG; the comment of a JPEG or GIF is ``Comment``.
    lost : tuple of str, optional
        Parts of the file that were not read, such as layers.

    Examples
    --------
    >>> picture = Picture(np.zeros((4, 6, 3), "uint8"))
    >>> picture.pixels.shape, picture.channels
    ((4, 6, 3), ('red', 'green', 'blue'))
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
    stack: StackAxes | None = None
    xmp: bytes | None = None
    iptc: bytes | None = None
    texts: dict[str, str] = field(default_factory=dict)
    lost: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        count = 1 if self.channel_axis is None else int(self.pixels.shape[-1])
        names = tuple(self.channels)
        if not names:
            names = (*RGB, "alpha")[:count] if count in (3, 4) else ("grey", *["other"] * (count - 1))
        if len(names) != count:
            raise ArgumentError(
                f"pixels of shape {self.pixels.shape} have {count} channels, got {len(names)} names for them:"
                f" {', '.join(names)}"
            )
        if self.orientation not in range(1, 9):
            raise ArgumentError(f"orientation must be an integer from 1 to 8, got {self.orientation!r}")
        object.__setattr__(self, "channels", names)

    @property
    def channel_axis(self) -> int | None:
        """The axis of the channels; None if there is none."""
        return self.pixels.ndim - 1 if self.pixels.ndim == 3 + self.pages else None

    @property
    def axes(self) -> tuple[int, int]:
        """The axes of rows and columns."""
        return (int(self.pages), int(self.pages) + 1)

    @property
    def space(self) -> str:
        """The colour space: ``rgb``, ``cmyk``, ``lab`` or ``grey``."""
        for space, names in (("rgb", RGB), ("cmyk", CMYK), ("lab", LAB)):
            if self.channels[: len(names)] == names:
                return space
        return "grey"

    @property
    def extra_channels(self) -> tuple[str, ...]:
        """The names of the channels after the colours."""
        return self.channels[{"rgb": 3, "cmyk": 4, "lab": 3, "grey": 1}[self.space] :]

    @property
    def all_pages(self) -> Array:
        """The pixels with an axis of pages in front, even for a single page."""
        return self.pixels if self.pages else self.pixels[None]

    def with_pixels(self, pixels: Array) -> Picture:
        """Return a copy with other pixels; channels keep their names if their number is unchanged.

        Parameters
        ----------
        pixels : array
            Pixels with the same axes.

        Returns
        -------
        Picture
        """
        same = (
            pixels.ndim == self.pixels.ndim
            and pixels.shape[2 + self.pages :] == self.pixels.shape[2 + self.pages :]
        )
        return replace(self, pixels=pixels, channels=self.channels if same else ())

    def matches(self, stack: StackAxes) -> bool:
        """Return whether axes have as many pages, rows and columns as the pixels.

        Parameters
        ----------
        stack : StackAxes
            Axes of a file.

        Returns
        -------
        bool
        """
        page_shape = tuple(self.pixels.shape[axis] for axis in self.axes)
        return stack.shape[-2:] == page_shape and math.prod(stack.shape[:-2]) == len(self.all_pages)

    def with_axes(self, names: str) -> Picture:
        """Return a copy whose axes have other names, such as ``"TZCYX"``.

        ``Z40C3YX`` also gives lengths, for pages whose axes the file does not tell.

        Parameters
        ----------
        names : str
            One letter for each axis, each optionally followed by its length.

        Returns
        -------
        Picture
        """
        named = named_axes(names, self.stack_axes, self.channel_axis is not None)
        if named == self.stack:
            return self
        lost = ("ImageJ metadata",) if str(self.about.get("description", "")).startswith("ImageJ=") else ()
        return replace(self, stack=named, about={**self.about, "renamed": True}, lost=(*self.lost, *lost))

    @property
    def stack_axes(self) -> StackAxes:
        """The axes of the stack; pages of which nothing is known are named ``I``."""
        if self.stack is not None and self.matches(self.stack):
            return self.stack
        shape = tuple(self.pixels.shape[axis] for axis in self.axes)
        return StackAxes("IYX", (len(self.pixels), *shape)) if self.pages else StackAxes("YX", shape)

    def filtered(
        self,
        work: Callable[..., Any],
        progress: Callable[[int], None] | None = None,
        *,
        over: str | None = None,
        **options: Any,
    ) -> Picture:
        """Filter every page, or every volume of a stack.

        Red, green and blue are filtered together, alpha is kept, and every other channel is filtered
        independently. The noise of each page or volume is estimated by itself, and so that of each channel.
        Pixels that are transparent stay as they are, and do not influence others.

        Parameters
        ----------
        work : callable
            A :class:`undula.Pipeline` or a function such as :func:`undula.denoise`.
        progress : callable, optional
            Called with the number of pages or volumes done.
        over : str, optional
            The axes that are filtered together, such as ``"ZYX"``; by default ``"YX"``, page by page. Axes
            shorter than 16 are extended by reflection meanwhile.
        **options
            Passed to ``work``, together with ``channel_axis``, and ``mask`` if pixels are transparent.

        Returns
        -------
        Picture

        Examples
        --------
        >>> import undula
        >>> noisy = np.random.default_rng(0).integers(0, 256, (40, 50, 2)).astype("uint8")
        >>> scan = undula.io.Picture(noisy, channels=("grey", "alpha"))
        >>> better = scan.filtered(undula.denoise).pixels
        >>> bool((better[..., 1] == noisy[..., 1]).all()), bool((better[..., 0] == noisy[..., 0]).all())
        (True, False)

        A volume of 20 slices, filtered along all three axes:

        >>> slices = undula.io.Picture(np.tile(noisy[..., 0], (20, 1, 1)), pages=True).with_axes("ZYX")
        >>> slices.filtered(undula.denoise, over="ZYX").pixels.shape
        (20, 40, 50)
        """
        results = []
        layout = StackLayout.of(self.stack_axes, "YX" if over is None else over)
        stack = self.pixels.reshape(*layout.axes.shape, *self.pixels.shape[2 + self.pages :])
        for place in layout.items():
            results.append(layout.restored(self._filter_item(work, layout.extended(stack[place]), **options)))
            if progress is not None:
                progress(len(results))
        if over is None:
            return self.with_pixels(np.stack(results) if self.pages else results[0])
        filtered = np.empty(stack.shape, results[0].dtype)
        for place, result in zip(layout.items(), results, strict=True):
            filtered[place] = result
        return self.with_pixels(filtered.reshape(self.pixels.shape))

    def working_memory(self, work: Callable[..., Any], *, over: str | None = None, **options: Any) -> int:
        """Return the bytes that :meth:`filtered` takes, besides those of the pixels.

        Parameters
        ----------
        work : callable
            A :class:`undula.Pipeline`; other functions are taken for ones that need no memory.
        over : str, optional
            The axes that are filtered together.
        **options
            Passed to ``work``.

        Returns
        -------
        int
            An estimate.
        """
        layout = StackLayout.of(self.stack_axes, "YX" if over is None else over)
        shape, dtype = layout.extended_shape, self.pixels.dtype
        colors = 3 if self.space == "rgb" and self.channel_axis is not None else 0
        known = {"sigma": options.get("sigma") is not None, "backend": options.get("backend", "auto")}
        sizes = []
        if colors:
            sizes.append(working_memory(work, (*shape, colors), dtype, channel_axis=-1, **known))
        if len(self.channels) > colors:
            sizes.append(working_memory(work, shape, dtype, channel_axis=None, **known))
        return max(sizes) + self.pixels.nbytes

    def filtered_pages(self, work: Callable[..., Any], **options: Any) -> Iterator[Array]:
        """Filter one page after the other, as :meth:`filtered` does.

        Parameters
        ----------
        work : callable
            Function that filters an array, such as :func:`undula.denoise`.
        **options
            Keyword arguments of ``work``.

        Yields
        ------
        array
            The pixels of one page.
        """
        for page in self.all_pages:
            yield self._filter_item(work, page, **options)

    def _filter_item(self, work: Callable[..., Any], item: Array, **options: Any) -> Array:
        """Filter a page or a volume; the last axis has the channels, if there are several."""
        function = work if self.stored is None else partial(self.stored.filtered, work)
        visible = self._visible(item)
        if visible is not None:
            if not visible.any():
                return item
            options = {"mask": visible, **options}

        def filtered(x: Array, channel_axis: int | None) -> Array:
            return np.asarray(function(x, **{"channel_axis": channel_axis, **options}))

        if self.channel_axis is None:
            return filtered(np.ascontiguousarray(item), None)
        if self.channels == RGB:
            return filtered(np.ascontiguousarray(item), -1)
        colors = 3 if self.space == "rgb" else 0
        parts = [filtered(np.ascontiguousarray(item[..., :3]), -1)] if colors else []
        for index, name in enumerate(self.channels[colors:], colors):
            channel = np.ascontiguousarray(item[..., index])
            parts.append((channel if name in ALPHA else filtered(channel, None))[..., None])
        return np.concatenate(parts, axis=-1)

    def _visible(self, item: Array) -> NDArray[np.bool_] | None:
        """Return where the pixels of a page or volume are visible; None if all of them are."""
        alphas = self._indices(alpha=True)
        if not alphas:
            return None
        visible = np.asarray((item[..., alphas] > 0).all(axis=-1))
        return None if visible.all() else visible

    def upright(self) -> Picture:
        """Return a copy with its pixels turned upright, so that its orientation is 1."""
        if self.orientation == 1:
            return self
        row, column = self.axes
        pixels, about = self.pixels, dict(self.about)
        if self.orientation in (5, 6, 7, 8):
            pixels = np.swapaxes(pixels, row, column)
            about |= {key: tuple(about[key])[::-1] for key in ("dpi", "resolution") if key in about}
        if self.orientation in (3, 4, 7, 8):
            pixels = np.flip(pixels, row)
        if self.orientation in (2, 3, 6, 7):
            pixels = np.flip(pixels, column)
        return replace(self, pixels=np.ascontiguousarray(pixels), about=about, orientation=1)

    def brightness(self) -> NDArray[np.float64]:
        """Return the luma of the first page as floats; without RGB, the mean of all channels but alpha."""
        page: NDArray[np.float64] = self.all_pages[0].astype(np.float64)
        if self.channel_axis is None:
            return page
        if self.space == "rgb":
            return np.asarray(page[..., :3] @ np.array([0.299, 0.587, 0.114]))
        return np.asarray(page[..., self._indices(alpha=False)].mean(axis=-1))

    def _indices(self, alpha: bool) -> list[int]:
        """Return the indices of the alpha channels, or of all others."""
        return [index for index, name in enumerate(self.channels) if (name in ALPHA) == alpha]

    def _about_without_photometric(self) -> dict[str, Any]:
        return {key: value for key, value in self.about.items() if key != "photometric"}

    def as_rgb(self) -> Picture:
        """Convert CMYK and Lab to RGB; other pictures are returned as they are.

        Lab becomes sRGB, and so does 8-bit CMYK with a profile. CMYK without a profile is converted by
        multiplying the light that the inks let through.
        """
        if self.space not in ("cmyk", "lab"):
            return self
        if self.pixels.dtype not in (np.uint8, np.uint16):
            raise ArgumentTypeError(
                f"{self.space.upper()} of dtype {self.pixels.dtype} cannot be converted to RGB; write TIFF"
            )
        count = 4 if self.space == "cmyk" else 3
        colors, extra = self.pixels[..., :count], self.pixels[..., count:]
        rgb, profile = None, None
        if self.space == "lab":
            rgb = _lab_to_srgb(colors, self.about.get("photometric") == "icclab")
        elif self.profile:
            rgb = _cmyk_by_profile(colors, self.profile)
        if rgb is not None:
            profile = _srgb_profile()
        else:
            white = np.iinfo(colors.dtype).max
            light = white - colors.astype(np.int64)
            rgb = ((2 * light[..., :3] * light[..., 3:] + white) // (2 * white)).astype(colors.dtype)
        return replace(
            self,
            pixels=np.concatenate([rgb, extra], axis=-1),
            profile=profile,
            about=self._about_without_photometric(),
            channels=(*RGB, *self.extra_channels),
        )

    def with_black_zero(self) -> Picture:
        """Invert grey whose 0 is white; other pictures are returned as they are."""
        if self.space != "grey" or self.about.get("photometric") != "miniswhite":
            return self
        pixels = self.pixels.copy()
        grey = pixels if self.channel_axis is None else pixels[..., 0]
        if self.stored is not None:
            grey[...] = self.stored.high + self.stored.low - grey.astype(np.int64)
        else:
            grey[...] = -grey if pixels.dtype.kind == "f" else ~grey
        return replace(self, pixels=pixels, about=self._about_without_photometric())

    def with_plain_alpha(self) -> Picture:
        """Divide colours that are premultiplied by alpha; other pictures are returned as they are."""
        if ALPHA[1] not in self.channels:
            return self
        index = self.channels.index(ALPHA[1])
        count = len(self.channels) - len(self.extra_channels)
        colors, alpha = self.pixels[..., :count], self.pixels[..., index : index + 1]
        if self.pixels.dtype.kind == "u":
            opaque = np.iinfo(self.pixels.dtype).max
            plain = np.minimum(np.floor(colors * float(opaque) / np.maximum(alpha, 1) + 0.5), opaque)
        else:
            plain = colors / np.where(alpha > 0, alpha, 1)
        pixels = self.pixels.copy()
        pixels[..., :count] = np.where(alpha > 0, plain, 0)
        names = tuple(ALPHA[0] if name == ALPHA[1] else name for name in self.channels)
        return replace(self, pixels=pixels, channels=names)

    def without_hidden_colors(self) -> Picture:
        """Replace the colours of transparent pixels by the mean colour of the page, for lossy formats."""
        pages = [(page, self._visible(page)) for page in self.all_pages]
        if all(visible is None for _, visible in pages):
            return self
        results = []
        for page, visible in pages:
            result = page.copy()
            if visible is not None:
                colors = self._indices(alpha=False)
                mean = page[visible][:, colors].mean(axis=0) if visible.any() else 0
                result[..., colors] = np.where(visible[..., None], page[..., colors], np.round(mean))
            results.append(result)
        return self.with_pixels(np.stack(results) if self.pages else results[0])

    @property
    def page_channels(self) -> list[int]:
        """The indices of the channels that :meth:`for_screen` makes pages of; empty if it keeps pages."""
        others = self._indices(alpha=False)
        return others if self.space == "grey" and len(others) > 1 else []

    @property
    def page_count(self) -> int:
        """The number of pages that :meth:`for_screen` returns."""
        return len(self.all_pages) * max(1, len(self.page_channels))

    def page(self, number: int) -> Picture:
        """Return the part of a picture that is shown as one page of :meth:`for_screen`.

        It has all channels of a page, or one of them and alpha if each is shown as a page, so that filtering
        it gives what filtering the whole picture gives there.

        Parameters
        ----------
        number : int
            The index of the page; 0 for a picture without pages.

        Returns
        -------
        Picture

        Examples
        --------
        >>> scan = Picture(np.zeros((4, 6, 2), "uint8"))
        >>> scan.for_screen().pixels.shape, scan.page(1).pixels.shape, scan.page(1).channels
        ((2, 4, 6), (4, 6), ('grey',))
        """
        channels = self.page_channels
        index, place = divmod(number, max(1, len(channels)))
        if not 0 <= number < self.page_count:
            raise ArgumentError(f"page must be from 0 to {self.page_count - 1}, got {number}")
        page = replace(self, pixels=self.all_pages[index], pages=False, stack=None)
        return page.single_channel(channels[place]) if channels else page

    def single_channel(self, index: int) -> Picture:
        """Return one channel of a picture without colours as grey, with alpha.

        Parameters
        ----------
        index : int
            The index of the channel.

        Returns
        -------
        Picture
        """
        kept = [index, *self._indices(alpha=True)]
        alphas, about = [self.channels[k] for k in kept[1:]], self.about
        if index:  # Only the first channel is inverted, or premultiplied.
            alphas, about = [ALPHA[0]] * len(alphas), self._about_without_photometric()
        pixels = self.pixels[..., kept] if len(kept) > 1 else self.pixels[..., index]
        return replace(self, pixels=np.ascontiguousarray(pixels), channels=("grey", *alphas), about=about)

    def for_screen(self) -> Picture:
        """Convert to what a screen can show: upright, grey, RGB or RGBA.

        Extra channels of RGB are dropped; without RGB, each channel but alpha becomes a page, with alpha.
        """
        plain = self.upright().as_rgb()
        if "dataset" not in plain.about:  # For DICOM, window() inverts.
            plain = plain.with_black_zero()
        if plain.channel_axis is None or plain.channels in (RGB, (*RGB, ALPHA[0])):
            return plain
        plain = plain.with_plain_alpha()
        alpha, others = plain._indices(alpha=True)[:1], plain._indices(alpha=False)
        if plain.space == "rgb" or (len(others) == 1 and alpha):
            shown = [*([0, 1, 2] if plain.space == "rgb" else others * 3), *alpha]
            pixels, names = plain.pixels[..., shown], (*RGB, ALPHA[0])[: len(shown)]
            return replace(plain, pixels=np.ascontiguousarray(pixels), channels=names)
        if len(others) == 1:
            return replace(plain, pixels=np.ascontiguousarray(plain.pixels[..., 0]), channels=("grey",))
        if alpha:
            pages = np.stack([plain.page(number).for_screen().pixels for number in range(plain.page_count)])
            return replace(plain, pixels=pages, pages=True, channels=(*RGB, ALPHA[0]))
        pages = np.moveaxis(plain.pixels[..., others], -1, int(plain.pages))
        pages = np.ascontiguousarray(pages.reshape(-1, *pages.shape[-2:]))
        return replace(plain, pixels=pages, pages=True, channels=("grey",))


def picture_from_array(pixels: Array, kind: str = "") -> Picture:
    """Make a picture of an array: a short last axis has channels, and all axes in front count pages."""
    color = pixels.ndim >= 3 and pixels.shape[-1] <= MAX_CHANNELS
    if pixels.ndim - color <= 2:
        return Picture(pixels, kind)
    shape = pixels.shape
    axes = shape[: len(shape) - color]
    return Picture(
        pixels.reshape(-1, *shape[len(axes) - 2 :]),
        kind,
        True,
        about={"shape": shape},
        stack=StackAxes(UNKNOWN * (len(axes) - 2) + "YX", axes),
    )


# --- colours --------------------------------------------------------------------------------------


def profile_space(profile: bytes) -> bytes:
    """Return the colour space of an ICC profile, such as ``b"RGB "``; empty if the profile is invalid."""
    return profile[16:20] if profile[36:40] == b"acsp" else b""


def _srgb_profile() -> bytes:
    cms = import_optional("PIL.ImageCms")
    return bytes(cms.ImageCmsProfile(cms.createProfile("sRGB")).tobytes())


def _cmyk_by_profile(colors: Array, profile: bytes) -> Array | None:
    """Convert CMYK to sRGB by a profile; None if the profile cannot be used."""
    cms, image_module = import_optional("PIL.ImageCms"), import_optional("PIL.Image")
    try:
        source = cms.ImageCmsProfile(io.BytesIO(profile))
        transform = cms.buildTransform(source, cms.createProfile("sRGB"), "CMYK", "RGB")
    except (cms.PyCMSError, OSError):
        return None
    if colors.dtype != np.uint8:
        raise ArgumentTypeError(
            f"CMYK of dtype {colors.dtype} with a colour profile cannot be converted to RGB; write TIFF"
        )
    flat = np.ascontiguousarray(colors).reshape(-1, colors.shape[-2], 4)  # Pages are stacked vertically.
    rgb = cms.applyTransform(image_module.fromarray(flat, "CMYK"), transform)
    return np.asarray(rgb).reshape(*colors.shape[:-1], 3)


def _lab_to_srgb(colors: Array, icc: bool) -> Array:
    """Convert CIE L*a*b* under D50 to sRGB, by way of XYZ."""
    white, unit = (255, 1) if colors.dtype == np.uint8 else (65535, 256)
    x = colors.astype(np.float64)
    lightness = x[..., 0] * (100 / (65280 if icc and unit > 1 else white))
    a, b = (x[..., k] / unit - 128 for k in (1, 2))
    y = (lightness + 16) / 116
    cubes = np.stack([y + a / 500, y, y - b / 200], axis=-1)
    xyz = np.where(cubes > 6 / 29, cubes**3, (cubes - 4 / 29) * (108 / 841)) * [0.96422, 1.0, 0.82521]
    # XYZ under D50 to linear sRGB under D65, with Bradford adaptation.
    linear = xyz @ np.array(
        [
            [3.1338561, -0.9787684, 0.0719453],
            [-1.6168667, 1.9161415, -0.2289914],
            [-0.4906146, 0.0334540, 1.4052427],
        ]
    )
    linear = np.clip(linear, 0, 1)
    encoded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.asarray(np.round(encoded * white), colors.dtype)
