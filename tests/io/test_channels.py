"""Channels are filtered by the meaning that a file gives them, and written with it."""

import re
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.ndimage
import tifffile
from PIL import Image

import undula
from undula import io
from undula.io.filtering import filter_picture

ROWS, COLUMNS = 40, 48
RGB = ("red", "green", "blue")
PIPELINE = undula.Pipeline("db2", 2, ["shrink"])
TAGS = {"photometric", "planarconfig", "extrasamples", "samplesperpixel", "bitspersample", "sampleformat"}


def noisy(*shape: int, dtype: str = "u1") -> Any:
    """A gradient with noise, different in every channel and page."""
    noise = np.random.default_rng(sum(shape)).normal(0, 12, (*shape[:-3], ROWS, COLUMNS, shape[-1]))
    slope = np.add.outer(np.arange(ROWS), np.arange(COLUMNS))[..., None] + 5 * np.arange(shape[-1])
    return np.clip(np.round(90 + slope + noise), 0, 255).astype(dtype)


def filter_file(source: Path, target: Path) -> None:
    """Filter a file as the commands and the Studio do."""
    filter_picture(source, target, PIPELINE)


def expected(pixels: Any, names: tuple[str, ...]) -> Any:
    """Filter RGB together and every other channel independently, where pixels are visible; keep alpha."""
    if pixels.ndim > 3:
        return np.stack([expected(page, names) for page in pixels])
    result = pixels.copy()
    alphas = [place for place, name in enumerate(names) if "alpha" in name]
    visible = (pixels[..., alphas] > 0).all(axis=-1)
    mask = None if visible.all() else visible
    if names[:3] == RGB:
        colors = np.ascontiguousarray(pixels[..., :3])
        result[..., :3] = PIPELINE(colors, channel_axis=-1, mask=mask)
    for place, name in enumerate(names):
        if name not in (*RGB, "alpha", "premultiplied alpha"):
            channel = np.ascontiguousarray(pixels[..., place])
            result[..., place] = PIPELINE(channel, channel_axis=None, mask=mask)
    return result


class Layout(NamedTuple):
    """The layout that a TIFF declares, and the names of its channels."""

    photometric: str
    extra: tuple[str, ...]
    names: tuple[str, ...]


LAYOUTS = [
    Layout("minisblack", ("unspecified",), ("grey", "other")),
    Layout("minisblack", ("unassalpha",), ("grey", "alpha")),
    Layout("minisblack", ("assocalpha",), ("grey", "premultiplied alpha")),
    Layout("miniswhite", ("unassalpha",), ("grey", "alpha")),
    Layout("minisblack", ("unspecified",) * 2, ("grey", "other", "other")),
    Layout("minisblack", ("unspecified",) * 3, ("grey", "other", "other", "other")),
    Layout("minisblack", ("unspecified",) * 4, ("grey", "other", "other", "other", "other")),
    Layout("rgb", (), RGB),
    Layout("rgb", ("unspecified",), (*RGB, "other")),
    Layout("rgb", ("unassalpha",), (*RGB, "alpha")),
    Layout("rgb", ("assocalpha",), (*RGB, "premultiplied alpha")),
    Layout("rgb", ("unassalpha", "unspecified"), (*RGB, "alpha", "other")),
    Layout("separated", (), ("cyan", "magenta", "yellow", "black")),
    Layout("separated", ("unassalpha",), ("cyan", "magenta", "yellow", "black", "alpha")),
]


@pytest.mark.parametrize("pages", [0, 2])
@pytest.mark.parametrize("planar", ["contig", "separate"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: "-".join([layout[0], *layout[1]]))
def test_channels_of_tiff(layout: Layout, planar: str, pages: int, tmp_path: Path) -> None:
    pixels = noisy(*([pages] if pages else []), ROWS, COLUMNS, len(layout.names), dtype="u2")
    stored = np.moveaxis(pixels, -1, -3) if planar == "separate" else pixels
    source, target = tmp_path / "x.tif", tmp_path / "y.tif"
    tifffile.imwrite(
        source,
        stored,
        photometric=layout.photometric,
        planarconfig=planar,
        extrasamples=layout.extra or None,
        resolution=(300, 150),
        resolutionunit=3,
        description="taken on a Monday",
        metadata=None,
    )
    filter_file(source, target)
    with tifffile.TiffFile(source) as before, tifffile.TiffFile(target) as after:
        assert len(after.pages) == len(before.pages)
        for one, two in zip(before.pages, after.pages, strict=True):
            assert {name: getattr(two, name) for name in TAGS} == {name: getattr(one, name) for name in TAGS}
        for name in ("XResolution", "YResolution", "ResolutionUnit", "ImageDescription"):
            assert after.pages[0].tags[name].value == before.pages[0].tags[name].value
    result = tifffile.imread(target)
    result = np.moveaxis(result, -3, -1) if planar == "separate" else result
    np.testing.assert_array_equal(result, expected(pixels, layout.names))


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: "-".join([layout[0], *layout[1]]))
def test_channels_have_names(layout: Layout, tmp_path: Path) -> None:
    given = tmp_path / "x.tif"
    pixels = noisy(ROWS, COLUMNS, len(layout.names))
    kinds = {"photometric": layout.photometric, "extrasamples": layout.extra or None}
    tifffile.imwrite(given, pixels, planarconfig="contig", **kinds)
    assert io.read(given).channels == layout.names


@pytest.mark.parametrize("kind", ["imagej", "ome", "shaped"])
def test_hyperstacks_keep_their_axes_and_metadata(kind: str, tmp_path: Path) -> None:
    pixels = np.moveaxis(noisy(2, ROWS, COLUMNS, 3, dtype="u2"), -1, 1)  # slices, channels, rows, columns
    source, target = tmp_path / "x.tif", tmp_path / "y.tif"
    arguments: dict[str, Any] = {"metadata": {"axes": "ZCYX", "spacing": 2.5}}
    if kind == "shaped":
        arguments = {}
    else:
        arguments[kind] = True
    tifffile.imwrite(source, pixels, photometric="minisblack", **arguments)
    filter_file(source, target)
    with tifffile.TiffFile(source) as before, tifffile.TiffFile(target) as after:
        assert after.series[0].axes == before.series[0].axes
        assert getattr(after, f"is_{kind}")
        assert after.imagej_metadata == before.imagej_metadata
        assert after.ome_metadata == before.ome_metadata
    correct = [[PIPELINE(channel, channel_axis=None) for channel in page] for page in pixels]
    np.testing.assert_array_equal(tifffile.imread(target), np.stack(correct))


def test_descriptions_of_another_shape_are_dropped(tmp_path: Path) -> None:
    tifffile.imwrite(
        tmp_path / "x.tif", noisy(2, ROWS, COLUMNS, 1)[..., 0], photometric="minisblack", ome=True
    )
    given = io.read(tmp_path / "x.tif")
    io.write(tmp_path / "y.tif", given.with_pixels(given.pixels[:, :20]))
    with tifffile.TiffFile(tmp_path / "y.tif") as file:
        assert file.series[0].shape == (2, 20, COLUMNS)
        assert not file.is_ome


def test_bilevel_pictures_are_filtered_as_grey(tmp_path: Path) -> None:
    pixels = noisy(ROWS, COLUMNS, 1)[..., 0] > 130
    tifffile.imwrite(tmp_path / "x.tif", pixels, photometric="miniswhite")
    given = io.read(tmp_path / "x.tif")
    np.testing.assert_array_equal(given.pixels, pixels * np.uint8(255))
    io.write(tmp_path / "same.tif", given)
    with tifffile.TiffFile(tmp_path / "same.tif") as file:
        assert file.pages[0].bitspersample == 1
        np.testing.assert_array_equal(file.asarray(), pixels)
    filter_file(tmp_path / "x.tif", tmp_path / "y.tif")
    with tifffile.TiffFile(tmp_path / "y.tif") as file:
        assert file.pages[0].photometric.name == "MINISWHITE"
        np.testing.assert_array_equal(file.asarray(), PIPELINE(given.pixels))


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "CMYK", "LAB", "I;16"])
@pytest.mark.parametrize("packed", ["tiff_lzw", "jpeg"])
def test_compressions_without_a_decoder_in_tifffile(mode: str, packed: str, tmp_path: Path) -> None:
    if packed == "jpeg" and mode in ("RGBA", "LAB", "I;16"):
        pytest.skip("JPEG in TIFF has neither alpha nor 16 bits, and Lab is not written so")
    rgb = Image.fromarray(noisy(ROWS, COLUMNS, 3))
    image = (
        Image.fromarray(noisy(ROWS, COLUMNS, 1, dtype="u2")[..., 0]) if mode == "I;16" else rgb.convert(mode)
    )
    image.save(tmp_path / "x.tif", compression=packed)
    given = io.read(tmp_path / "x.tif")
    with Image.open(tmp_path / "x.tif") as source:
        stored = correct = np.asarray(source)
    correct = (
        correct ^ np.array([0, 128, 128], "u1") if mode == "LAB" else correct
    )  # Lab is stored with an offset.
    np.testing.assert_array_equal(given.pixels, correct)
    io.write(tmp_path / "y.tif", given)
    with Image.open(tmp_path / "y.tif") as back:
        assert back.mode == mode
        np.testing.assert_array_equal(np.asarray(back), stored)


def test_without_a_decoder_for_tifffile_pillow_decodes(tmp_path: Path) -> None:
    image = Image.fromarray(noisy(ROWS, COLUMNS, 3))
    for packed in ("tiff_lzw", "zstd"):
        image.save(tmp_path / f"{packed}.tif", compression=packed)
    code = (
        "import sys; sys.modules['imagecodecs'] = None\n"
        "import numpy as np; from undula import io\n"
        "first, second = (io.read(f'{name}.tif').pixels for name in ('tiff_lzw', 'zstd'))\n"
        "assert np.array_equal(first, second); np.save('x.npy', first)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), np.asarray(image))


@pytest.mark.parametrize("packed", ["lzw", "zstd", "lerc", "jpegxl"])
@pytest.mark.parametrize(("dtype", "channels"), [("u2", 3), ("f4", 1)])
def test_imagecodecs_decodes_what_pillow_cannot(
    packed: str, dtype: str, channels: int, tmp_path: Path
) -> None:
    pytest.importorskip("imagecodecs")
    pixels = noisy(ROWS, COLUMNS, channels, dtype="u2").astype(dtype)
    pixels = pixels if channels > 1 else pixels[..., 0]
    kind = "rgb" if channels > 1 else "minisblack"
    tifffile.imwrite(tmp_path / "x.tif", pixels, photometric=kind, compression=packed)
    np.testing.assert_array_equal(io.read(tmp_path / "x.tif").pixels, pixels)
    filter_file(tmp_path / "x.tif", tmp_path / "y.tif")
    assert tifffile.imread(tmp_path / "y.tif").dtype == dtype


@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "u4", "f2", "f4", "f8", ">u2"])
def test_dtypes_of_tiff(dtype: str, tiled: bool, tmp_path: Path) -> None:
    pixels = noisy(ROWS, COLUMNS, 2, dtype="u2").astype("i4")
    pixels = (pixels // 3 - 60).clip(-128, 127).astype(dtype) if "u" not in dtype else pixels.astype(dtype)
    kinds: dict[str, Any] = {"photometric": "minisblack", "planarconfig": "contig"}
    tifffile.imwrite(tmp_path / "x.tif", pixels, tile=(16, 16) if tiled else None, **kinds)
    filter_file(tmp_path / "x.tif", tmp_path / "y.tif")
    result = tifffile.imread(tmp_path / "y.tif")
    assert result.dtype == np.dtype(dtype).newbyteorder("=")
    np.testing.assert_array_equal(result, expected(pixels, ("grey", "other")))


def test_a_stack_of_one_page(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "x.tif", noisy(1, ROWS, COLUMNS, 1)[..., 0], photometric="minisblack")
    filter_file(tmp_path / "x.tif", tmp_path / "y.tif")
    assert tifffile.imread(tmp_path / "y.tif").shape == tifffile.imread(tmp_path / "x.tif").shape


# --- opacity in other formats ---------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["u1", "u2"])
@pytest.mark.parametrize("grey", [True, False])
def test_alpha_of_png(dtype: str, grey: bool, tmp_path: Path) -> None:
    names = ("grey", "alpha") if grey else (*RGB, "alpha")
    pixels = noisy(ROWS, COLUMNS, len(names)).astype(dtype)
    pixels = pixels * 257 if dtype == "u2" else pixels
    io.write(tmp_path / "x.png", io.Picture(pixels, channels=names))
    assert (tmp_path / "x.png").read_bytes()[24:26] == bytes([8 * pixels.itemsize, 4 if grey else 6])
    filter_file(tmp_path / "x.png", tmp_path / "y.png")
    back = io.read(tmp_path / "y.png")
    assert back.channels == names
    np.testing.assert_array_equal(back.pixels, expected(pixels, names))


@pytest.mark.parametrize("mode", ["1", "L", "RGB", "I;16", "RGB48", "L4"])
def test_a_transparent_color_becomes_alpha(mode: str, tmp_path: Path) -> None:
    """PNG may declare one colour as transparent instead of storing an alpha channel."""
    import struct
    import zlib

    depth = {"1": 1, "L4": 4, "I;16": 16, "RGB48": 16}.get(mode, 8)
    colors = 3 if mode.startswith("RGB") else 1
    levels = np.random.default_rng(0).integers(0, 2**depth, (ROWS, COLUMNS, colors))
    levels[3:9, 5:20] = key = [1] * colors
    if depth < 8:
        bits = np.unpackbits(levels.astype("u1"), axis=-1)[..., 8 - depth :].reshape(ROWS, -1)
        rows = np.packbits(bits, axis=-1)
    else:
        rows = levels.astype(">u2" if depth == 16 else "u1").reshape(ROWS, -1).view("u1")
    lines = np.concatenate([np.zeros((ROWS, 1), "u1"), rows], axis=1)
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", COLUMNS, ROWS, depth, 2 if colors == 3 else 0, 0, 0, 0)),
        (b"tRNS", struct.pack(f">{colors}H", *key)),
        (b"IDAT", zlib.compress(lines.tobytes())),
        (b"IEND", b""),
    ]
    data = b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in parts
    )
    (tmp_path / "x.png").write_bytes(b"\x89PNG\r\n\x1a\n" + data)
    given = io.read(tmp_path / "x.png")
    most = 65535 if depth == 16 else 255
    opaque = (levels != key).any(axis=-1) * most
    assert given.channels == ((*RGB, "alpha") if colors == 3 else ("grey", "alpha"))
    np.testing.assert_array_equal(given.pixels[..., -1], opaque)
    np.testing.assert_array_equal(given.pixels[..., :-1], levels * (most // (2**depth - 1)))


def test_premultiplied_alpha_is_divided_for_formats_without_it(tmp_path: Path) -> None:
    pixels = np.zeros((9, 9, 4), "u1")
    pixels[:4] = [50, 100, 0, 100]
    pixels[4] = [120, 0, 0, 255]
    io.write(tmp_path / "x.png", io.Picture(pixels, channels=(*RGB, "premultiplied alpha")))
    back = io.read(tmp_path / "x.png").pixels
    np.testing.assert_array_equal(back[0, 0], [128, 255, 0, 100])
    np.testing.assert_array_equal(back[4, 0], [120, 0, 0, 255])
    np.testing.assert_array_equal(back[8, 0], [0, 0, 0, 0])


def cut_out(path: Path, hidden: str, grey: bool = False) -> Any:
    """Write a noisy photograph with a soft round edge; return where it is visible."""
    photo = np.asarray(Image.open(io.sample("scene")).convert("RGB").crop((200, 150, 296, 230)), float)
    rng = np.random.default_rng(0)
    distance = np.hypot(*np.mgrid[-40:40, -48:48])
    pixels = np.dstack([photo + rng.normal(0, 12, photo.shape), 60 * (36 - distance)]).clip(0, 255)
    visible = pixels[..., 3] >= 1
    garbage = {"black": 0, "white": 255, "noise": rng.integers(0, 256, ((~visible).sum(), 3))}
    pixels[~visible, :3] = garbage[hidden]
    Image.fromarray(pixels.astype("u1")).convert("LA" if grey else "RGBA").save(
        path, exact=True, lossless=True
    )
    return visible


VERBS = {
    "denoise": undula.denoise,
    "best": partial(undula.denoise, quality="best"),
    "despeckle": partial(undula.despeckle, kind="log"),
    "sharpen": undula.sharpen,
    "enhance": undula.enhance,
}


@pytest.mark.parametrize(
    ("source", "target", "verb"),
    [
        *(("png", "png", verb) for verb in VERBS),
        *((each, each, "denoise") for each in ("tif", "webp")),
        *(("png", each, "denoise") for each in ("gif", "avif", "heic", "jp2")),
    ],
)
@pytest.mark.filterwarnings("ignore:.*256 colours:undula.FormatWarning")
def test_hidden_colors_do_not_influence_visible_ones(
    source: str, target: str, verb: str, tmp_path: Path
) -> None:
    results = []
    for hidden in ("black", "white", "noise"):
        before, after = tmp_path / f"{hidden}.{source}", tmp_path / f"{hidden}-filtered.{target}"
        visible = cut_out(before, hidden)
        io.write(after, io.read(before).filtered(VERBS[verb]))
        results.append(io.read(after).pixels)
    given = np.asarray(Image.open(before))
    for result in results[1:]:
        np.testing.assert_array_equal(result[visible], results[0][visible])
    if target != "gif":  # GIF has no partial transparency.
        np.testing.assert_allclose(result[..., 3], given[..., 3], atol=8 if target in ("avif", "heic") else 0)
        assert (result[visible] != given[visible]).any()
    if target in ("png", "tif"):
        np.testing.assert_array_equal(result[~visible], given[~visible])


@pytest.mark.parametrize("grey", [False, True])
def test_an_edge_of_transparency_is_filtered_like_the_photograph(grey: bool, tmp_path: Path) -> None:
    """Hidden black would darken the rim of the visible part."""
    visible = cut_out(tmp_path / "x.png", "black", grey)
    filter_file(tmp_path / "x.png", tmp_path / "y.png")
    before, after = (np.asarray(Image.open(tmp_path / name), float)[..., 0] for name in ("x.png", "y.png"))
    inner = scipy.ndimage.binary_erosion(visible, iterations=2)
    rim = visible & ~inner
    assert abs((after - before)[rim].mean()) < 1
    assert (after - before)[rim].std() > 2


def test_a_page_without_visible_pixels_stays(tmp_path: Path) -> None:
    pixels = noisy(2, ROWS, COLUMNS, 4)
    pixels[0, ..., 3] = 0
    io.write(tmp_path / "x.tif", io.Picture(pixels, pages=True))
    filter_file(tmp_path / "x.tif", tmp_path / "y.tif")
    result = io.read(tmp_path / "y.tif").pixels
    np.testing.assert_array_equal(result[0], pixels[0])
    assert (result[1] != pixels[1]).any()


@pytest.mark.parametrize(("colors", "lost"), [(256, False), (257, True)])
def test_gif_warns_of_colors_beyond_its_palette(colors: int, lost: bool, tmp_path: Path) -> None:
    pixels = np.zeros((2, 20, 20, 3), "u1")
    pixels[1].reshape(-1, 3)[:colors] = np.stack(
        [np.arange(colors) % 256, np.arange(colors) // 256, np.full(colors, 9)], axis=-1
    )
    pixels[1].reshape(-1, 3)[colors:] = [0, 0, 9]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        io.write(tmp_path / "x.gif", io.Picture(pixels, pages=True))
    messages = [str(each.message) for each in caught if each.category is undula.FormatWarning]
    assert messages == ["x.gif does not keep more than 256 colours"] * lost


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "bmp", "gif", "jp2"])
@pytest.mark.parametrize("names", [(*RGB, "other"), ("grey", "other", "other"), ("grey", "other")])
def test_channels_that_a_format_cannot_store(names: tuple[str, ...], suffix: str, tmp_path: Path) -> None:
    picture = io.Picture(noisy(ROWS, COLUMNS, len(names)), channels=names)
    with pytest.raises(undula.UndulaError, match=r"channels .*other.*TIFF"):
        io.write(tmp_path / f"x.{suffix}", picture)
    assert not list(tmp_path.iterdir())


def test_grey_and_alpha_in_every_format(tmp_path: Path) -> None:
    picture = io.Picture(noisy(ROWS, COLUMNS, 2), channels=("grey", "alpha"))
    for suffix in ("webp", "jp2", "tif", "png"):
        io.write(tmp_path / f"x.{suffix}", picture)
        back = io.read(tmp_path / f"x.{suffix}")
        assert "alpha" in back.channels
        for place in range(len(back.channels) - 1):
            np.testing.assert_array_equal(back.pixels[..., place], picture.pixels[..., 0])
        np.testing.assert_array_equal(back.pixels[..., -1], picture.pixels[..., 1])


@pytest.mark.parametrize("suffix", ["npy", "npz", "tif"])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_channels_of_arrays(count: int, suffix: str, tmp_path: Path) -> None:
    pixels = noisy(ROWS, COLUMNS, count)
    io.write(tmp_path / f"x.{suffix}", pixels)
    assert io.read(tmp_path / f"x.{suffix}").pages is False
    filter_file(tmp_path / f"x.{suffix}", tmp_path / "y.npy")
    result = np.load(tmp_path / "y.npy").reshape(pixels.shape)
    np.testing.assert_array_equal(result, expected(pixels, ("grey", *["other"] * (count - 1))))


def test_a_volume_is_written_as_pages(tmp_path: Path) -> None:
    volume = np.moveaxis(noisy(ROWS, COLUMNS, 9), -1, 0)
    io.write(tmp_path / "x.tif", volume)
    assert io.read(tmp_path / "x.tif").pages
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "x.tif"), volume)


def test_the_number_of_names_must_match_the_channels() -> None:
    with pytest.raises(undula.ArgumentError, match=r"2 channels.*3 names"):
        io.Picture(noisy(ROWS, COLUMNS, 2), channels=RGB)


# --- several pictures in one file -----------------------------------------------------------------


@pytest.mark.parametrize("same", [True, False])
def test_only_the_first_image_of_a_jpeg_file_is_read(same: bool, tmp_path: Path) -> None:
    rough = noisy(ROWS, COLUMNS, 3)
    second = Image.fromarray(rough[::-1] if same else rough[:10, :10])
    exif = Image.Exif()
    exif[274] = 6
    Image.fromarray(rough).save(tmp_path / "x.jpg", "MPO", save_all=True, append_images=[second], exif=exif)
    given = io.read(tmp_path / "x.jpg")
    assert not given.pages
    assert given.kind == "jpeg"
    assert given.orientation == 6
    with Image.open(tmp_path / "x.jpg") as image:
        assert image.n_frames == 2
        np.testing.assert_array_equal(given.pixels, np.asarray(image))
    filter_file(tmp_path / "x.jpg", tmp_path / "y.jpg")
    with Image.open(tmp_path / "y.jpg") as image:
        assert image.format == "JPEG"
        assert image.getexif()[274] == 6
        assert undula.measures.psnr(np.asarray(image), PIPELINE(given.pixels)) > 30


def test_the_still_of_an_animation_stays_apart(tmp_path: Path) -> None:
    frames = [Image.fromarray(np.roll(noisy(ROWS, COLUMNS, 3), 5 * k, axis=0)) for k in range(3)]
    arguments: dict[str, Any] = {"save_all": True, "append_images": frames[1:], "duration": [40, 80]}
    frames[0].save(tmp_path / "x.png", default_image=True, **arguments)
    io.write(tmp_path / "y.png", io.read(tmp_path / "x.png"))
    with Image.open(tmp_path / "y.png") as image:
        assert image.info.get("default_image")
        assert image.n_frames == 3
        durations = [image.seek(k) or image.info.get("duration") for k in (1, 2)]
    assert durations == [40, 80]


# --- as a screen shows them -----------------------------------------------------------------------

FIVE = noisy(ROWS, COLUMNS, 5)


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (("grey", "alpha"), FIVE[..., [0, 0, 0, 1]]),
        (("grey", "other"), np.moveaxis(FIVE[..., :2], -1, 0)),
        (("grey", "other", "other"), np.moveaxis(FIVE[..., :3], -1, 0)),
        (("grey", "other", "other", "other", "other"), np.moveaxis(FIVE, -1, 0)),
        (RGB, FIVE[..., :3]),
        ((*RGB, "other"), FIVE[..., :3]),
        ((*RGB, "alpha"), FIVE[..., :4]),
        ((*RGB, "other", "alpha"), FIVE[..., [0, 1, 2, 4]]),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_pictures_for_screens_are_grey_or_rgb(names: tuple[str, ...], shown: Any) -> None:
    result = io.Picture(FIVE[..., : len(names)], channels=names).for_screen()
    np.testing.assert_array_equal(result.pixels, shown)
    assert result.pages == ("other" in names and "red" not in names)
    pages = np.stack([FIVE, FIVE[::-1]])[..., : len(names)]
    several = io.Picture(pages, pages=True, channels=names).for_screen()
    assert len(several.pixels) == (2 * len(names) if result.pages else 2)
    np.testing.assert_array_equal(several.pixels[0], result.pixels[0] if result.pages else result.pixels)


@pytest.mark.parametrize("orientation", [1, 6])
@pytest.mark.parametrize("about", [{}, {"photometric": "miniswhite"}], ids=["", "negative"])
@pytest.mark.parametrize(
    "names",
    [
        ("grey", "other", "alpha"),
        ("grey", "other", "other", "premultiplied alpha"),
        ("grey", "alpha"),
        (*RGB, "other", "alpha"),
        ("cyan", "magenta", "yellow", "black"),
    ],
    ids="-".join,
)
def test_pages_are_those_that_a_screen_shows(
    names: tuple[str, ...], about: dict[str, Any], orientation: int
) -> None:
    pages = np.stack([FIVE, FIVE[::-1]])[..., : len(names)]
    given = io.Picture(pages, pages=True, channels=names, about=about, orientation=orientation)
    shown, filtered = given.for_screen(), given.filtered(PIPELINE).for_screen()
    assert len(shown.pixels) == given.page_count
    for number in range(given.page_count):
        page = given.page(number)
        np.testing.assert_array_equal(page.for_screen().pixels, shown.pixels[number])
        np.testing.assert_array_equal(page.filtered(PIPELINE).for_screen().pixels, filtered.pixels[number])
        assert page.for_screen().channels == shown.channels
    with pytest.raises(undula.ArgumentError, match=f"page must be from 0 to {number}, got {number + 1}"):
        given.page(number + 1)


@pytest.mark.parametrize("layout", ["rgb48le", "rgba64le"])
def test_jpeg_2000_of_16_bits_in_colors(layout: str, tmp_path: Path) -> None:
    from fractions import Fraction

    import av

    names = (*RGB, "alpha")[: 3 + ("a" in layout)]
    pixels = noisy(ROWS, COLUMNS, len(names), dtype="u2") * 257 ^ 3
    encoder = av.codec.Codec("jpeg2000", "w").create()
    encoder.width, encoder.height, encoder.pix_fmt = COLUMNS, ROWS, layout
    encoder.time_base, encoder.options = Fraction(1, 25), {"pred": "1", "format": "jp2"}
    packets = [*encoder.encode(av.VideoFrame.from_ndarray(pixels, format=layout)), *encoder.encode(None)]
    (tmp_path / "x.jp2").write_bytes(b"".join(bytes(packet) for packet in packets))
    given = io.read(tmp_path / "x.jp2")
    assert given.channels == names
    np.testing.assert_array_equal(given.pixels, pixels)


# --- white at 0 -----------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["png", "jpg", "bmp", "jp2", "webp", "gif"])
@pytest.mark.parametrize("dtype", ["u1", "u2"])
def test_white_stays_white(dtype: str, suffix: str, tmp_path: Path) -> None:
    if dtype == "u2" and suffix not in ("png", "jp2"):
        pytest.skip(f"{suffix} has 8 bits")
    pixels = noisy(ROWS, COLUMNS, 1)[..., 0].astype(dtype) * (257 if dtype == "u2" else 1)
    tifffile.imwrite(tmp_path / "x.tif", pixels, photometric="miniswhite")
    filter_picture(tmp_path / "x.tif", tmp_path / f"y.{suffix}", lambda x, **options: x)
    back = io.read(tmp_path / f"y.{suffix}")
    correct = np.iinfo(dtype).max - pixels.astype(int)
    assert np.abs(back.brightness() - correct).max() < (12 if suffix == "jpg" else 1)
    np.testing.assert_array_equal(io.read(tmp_path / "x.tif").for_screen().pixels, correct)


def test_scans_with_white_at_zero(tmp_path: Path) -> None:
    from pydicom import dcmread, examples

    dataset = dcmread(examples.get_path("ct"))
    dataset.PhotometricInterpretation = "MONOCHROME1"
    dataset.save_as(tmp_path / "x.dcm")
    given = io.read(tmp_path / "x.dcm")
    with pytest.warns(undula.FormatWarning, match="does not keep DICOM header, rescale of stored values"):
        io.write(tmp_path / "y.tif", given)
    with tifffile.TiffFile(tmp_path / "y.tif") as file:
        assert file.pages[0].photometric.name == "MINISWHITE"
        np.testing.assert_array_equal(file.asarray(), given.pixels)
    np.testing.assert_array_equal(given.for_screen().pixels, given.pixels)  # Its window is inverted.
    assert given.stored is not None
    shown = given.with_black_zero().pixels.astype(int)
    np.testing.assert_array_equal(shown + given.pixels, given.stored.low + given.stored.high)


def test_ome_descriptions_refer_to_the_written_file(tmp_path: Path) -> None:
    """A description of planes in several files is rewritten for the file that contains them all."""
    pixels = np.moveaxis(noisy(2, ROWS, COLUMNS, 3, dtype="u2"), -1, 1)
    tifffile.imwrite(
        tmp_path / "x.tif", pixels, photometric="minisblack", ome=True, metadata={"axes": "ZCYX"}
    )
    with tifffile.TiffFile(tmp_path / "x.tif") as file:
        text = file.pages[0].description
    identifier = re.search(r'UUID="([^"]+)"', text)
    assert identifier is not None
    identity = identifier[1]
    planes = "".join(
        f'<TiffData IFD="{k}" FirstZ="{k // 3}" FirstC="{k % 3}" FirstT="0" PlaneCount="1">'
        f'<UUID FileName="x.tif">{identity}</UUID></TiffData>'
        for k in range(6)
    )
    start, end = text.index("<TiffData"), text.rindex("</Pixels>")
    arguments = text[:start] + planes + text[end:]
    tifffile.imwrite(
        tmp_path / "x.tif",
        pixels.reshape(6, ROWS, COLUMNS),
        photometric="minisblack",
        description=arguments,
        metadata=None,
    )
    filter_file(tmp_path / "x.tif", tmp_path / "y.tif")
    (tmp_path / "x.tif").unlink()
    with tifffile.TiffFile(tmp_path / "y.tif") as file:
        assert "x.tif" not in file.pages[0].description
        assert file.series[0].axes == "ZCYX"
        correct = [[PIPELINE(channel, channel_axis=None) for channel in page] for page in pixels]
        np.testing.assert_array_equal(file.series[0].asarray(), np.stack(correct))
