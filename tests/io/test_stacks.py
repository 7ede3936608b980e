"""Stacks of microscopes: axes, channels and distances are kept, and axes are filtered by name.

tifffile writes the files, and reads what Undula has written.
"""

import io as bytes_io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image

import undula
from undula import io
from undula.cli import main
from undula.io.raster import read_header
from undula.io.summary import summarize
from undula.stores import pictures
from undula.stores.pictures import filter_in_blocks, large_picture

SHAPE = (2, 16, 2, 40, 44)  # T, Z, C, Y, X
NAMES = ["DAPI", "GFP"]
OME: dict[str, Any] = {
    "axes": "TZCYX",
    "Channel": {"Name": NAMES},
    "PhysicalSizeX": 0.11,
    "PhysicalSizeXUnit": "µm",
    "PhysicalSizeY": 0.12,
    "PhysicalSizeYUnit": "µm",
    "PhysicalSizeZ": 0.5,
    "PhysicalSizeZUnit": "µm",
    "TimeIncrement": 2.0,
    "TimeIncrementUnit": "s",
}
IMAGEJ: dict[str, Any] = {"axes": "TZCYX", "unit": "um", "spacing": 0.5, "finterval": 2.0}


def stack() -> Any:
    rng = np.random.default_rng(0)
    t, z, c, y, x = np.indices(SHAPE)
    clean = (300 + 150 * np.sin(y / 6 + t) * np.cos(x / 7 + z / 5)) * (c + 1)
    return (clean + rng.normal(0, 10, SHAPE) * (c + 1)).astype("u2")


STACK = stack()


def write_ome(path: Path, pixels: Any = STACK, **changes: Any) -> None:
    tifffile.imwrite(path, pixels, ome=True, photometric="minisblack", metadata={**OME, **changes})


def by_volume(x: Any) -> Any:
    """Return what denoising of each volume by itself gives."""
    volumes = [[undula.denoise(x[t, :, c], channel_axis=None) for c in range(2)] for t in range(2)]
    return np.array(volumes).transpose(0, 2, 1, 3, 4)


@pytest.mark.parametrize("kind", ["ome", "imagej"])
def test_axes_channels_and_distances_are_kept(kind: str, tmp_path: Path) -> None:
    source, target = tmp_path / f"in.{kind}.tif", tmp_path / f"out.{kind}.tif"
    if kind == "ome":
        write_ome(source)
    else:
        tifffile.imwrite(source, STACK, imagej=True, resolution=(1 / 0.11, 1 / 0.12), metadata=IMAGEJ)
    given = io.read(source)
    axes = given.stack
    assert axes is not None
    assert (axes.names, axes.shape) == ("TZCYX", SHAPE)
    np.testing.assert_allclose([size or 0 for size in axes.spacing], [2, 0.5, 0, 0.12, 0.11], rtol=1e-6)
    assert axes.units == ("second", "micrometer", None, "micrometer", "micrometer")
    assert list(axes.channel_names) == (NAMES if kind == "ome" else [])
    io.write(target, given.filtered(undula.denoise, over="ZYX"))
    with tifffile.TiffFile(source) as before, tifffile.TiffFile(target) as after:
        assert after.series[0].axes == "TZCYX"
        assert after.ome_metadata == before.ome_metadata
        assert after.imagej_metadata == before.imagej_metadata
        assert after.pages.first.tags["XResolution"].value == before.pages.first.tags["XResolution"].value
        np.testing.assert_array_equal(after.asarray(), by_volume(STACK))
    header = read_header(source)
    assert header is not None
    assert (header.stack, header.pixels.shape) == (axes, given.pixels.shape)


def test_imagej_stacks_that_are_cut_off(tmp_path: Path) -> None:
    stack = np.zeros((4, 2, 32, 40), np.float32)
    tifffile.imwrite(tmp_path / "whole.tif", stack, imagej=True, metadata={"axes": "ZCYX"})
    assert io.read(tmp_path / "whole.tif").pixels.size == stack.size
    content = (tmp_path / "whole.tif").read_bytes()
    (tmp_path / "part.tif").write_bytes(content[: len(content) * 6 // 10])
    with pytest.raises(undula.UndulaError, match=r"part\.tif.* cut off"):
        io.read(tmp_path / "part.tif")


CUT_OFF: dict[str, Any] = {
    "plain.tif": {"metadata": None},
    "described.tif": {},
    "packed.tif": {"metadata": None, "compression": "zlib"},
    "x.ome.tif": {"metadata": {"axes": "ZYX"}},
    "big.ome.tif": {"metadata": {"axes": "ZYX"}, "bigtiff": True, "compression": "zlib"},
    "motorola.tif": {"byteorder": ">", "tile": (16, 16)},
    "x.gif": None,
}


@pytest.mark.parametrize("name", CUT_OFF)
def test_no_pages_are_lost_when_a_file_is_cut_off(name: str, tmp_path: Path) -> None:
    pages = np.random.default_rng(0).integers(0, 256, (4, 10, 12)).astype("u1")
    whole, part = tmp_path / name, tmp_path / f"part-{name}"
    if name.endswith("gif"):
        io.write(whole, io.Picture(pages, pages=True))
    else:
        tifffile.imwrite(whole, pages, photometric="minisblack", **CUT_OFF[name])
    content, expected = whole.read_bytes(), io.read(whole)
    assert expected.pixels.shape[:3] == pages.shape
    errors = 0
    for length in range(9, len(content), 7):
        part.write_bytes(content[:length])
        for reader in (io.read, read_header, summarize):
            try:
                found = reader(part)
            except undula.FileError:
                errors += 1
                continue
            if reader is io.read:  # Padding after the last page may be missing.
                np.testing.assert_array_equal(found.pixels, expected.pixels)
                assert found.stack == expected.stack
    assert errors > len(content) // 7


def test_ome_tiff_without_its_description(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tifffile.imwrite(tmp_path / "x.ome.tif", np.zeros((5, 32, 40), "u1"), ome=False)
    assert main(["info", str(tmp_path / "x.ome.tif")]) == 1
    assert "no description of OME" in capsys.readouterr().err
    (tmp_path / "x.ome.tif").rename(tmp_path / "x.tif")
    assert main(["info", str(tmp_path / "x.tif")]) == 0


def test_arrays_of_many_axes_keep_their_shape(tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", STACK)
    io.write(tmp_path / "out.npy", io.read(tmp_path / "in.npy"))  # A warning would be an error.
    assert np.load(tmp_path / "out.npy").shape == STACK.shape


def test_imagej_to_ome_and_arrays_to_ome(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "in.tif", STACK, imagej=True, resolution=(10, 10), metadata=IMAGEJ)
    io.write(tmp_path / "a.ome.tif", io.read(tmp_path / "in.tif"))
    np.save(tmp_path / "in.npy", STACK)
    io.write(tmp_path / "b.ome.tif", io.read(tmp_path / "in.npy").with_axes("TZCYX"))
    for name in "ab":
        with tifffile.TiffFile(tmp_path / f"{name}.ome.tif") as file:
            assert file.is_ome
            assert (file.series[0].axes, file.series[0].shape) == ("TZCYX", SHAPE)
            np.testing.assert_array_equal(file.asarray(), STACK)
    axes = io.read(tmp_path / "a.ome.tif").stack
    assert axes is not None
    np.testing.assert_allclose(axes.spacing[1], 0.5)
    assert axes.units[-1] == "micrometer"


def test_pages_are_named_and_divided(tmp_path: Path) -> None:
    volume = STACK[0]
    pages = volume.reshape(-1, *SHAPE[3:])
    tifffile.imwrite(tmp_path / "in.tif", pages, photometric="minisblack", metadata=None)
    given = io.read(tmp_path / "in.tif")
    assert given.stack_axes.names == "IYX"
    named = given.with_axes("Z16C2YX")
    filtered = named.filtered(undula.denoise, over="zyx")
    expected = np.stack([undula.denoise(volume[:, c], channel_axis=None) for c in range(2)], axis=1)
    np.testing.assert_array_equal(filtered.pixels.reshape(volume.shape), expected)
    assert named.with_axes("ZCYX").stack == named.stack
    assert given.with_axes("ZC2YX").stack == named.stack
    io.write(tmp_path / "out.tif", filtered)
    assert io.read(tmp_path / "out.tif").stack_axes.names == "ZCYX"


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("XYZ", "axes must be letters that end with YX"),
        ("ZZYX", "a letter of its own"),
        ("SYX", "a letter of its own"),
        ("T2ZCYX", "do not match the 3 axes of the file, I 64, Y 40, X 44"),
        ("Z5C3YX", "do not match"),
        ("Z-YX", "axes must be letters"),
        ("ZY4X", "do not match"),
    ],
)
def test_wrong_names_of_axes(names: str, message: str) -> None:
    with pytest.raises(undula.ArgumentError, match=message):
        io.Picture(STACK.reshape(-1, *SHAPE[3:])[:64], pages=True).with_axes(names)


@pytest.mark.parametrize(
    ("over", "message"), [("QYX", "no axis 'Q'"), ("YY", "named once"), ("", "named once")]
)
def test_wrong_axes_to_filter_over(over: str, message: str) -> None:
    with pytest.raises(undula.ArgumentError, match=message):
        io.Picture(STACK[0, :, 0], pages=True).with_axes("ZYX").filtered(undula.denoise, over=over)


def test_short_and_single_axes() -> None:
    clean = np.broadcast_to(100 * np.sin(np.arange(96) / 9) + 200, (5, 80, 96)).astype("f4")
    noisy = clean + np.random.default_rng(1).normal(0, 20, clean.shape).astype("f4")
    picture = io.Picture(noisy, pages=True).with_axes("ZYX")
    by_page = picture.filtered(undula.denoise).pixels
    by_stack = picture.filtered(undula.denoise, over="ZYX").pixels
    assert np.std(by_stack - clean) < 0.9 * np.std(by_page - clean)
    single = io.Picture(noisy[:1], pages=True).with_axes("ZYX")
    np.testing.assert_array_equal(single.filtered(undula.denoise, over="ZYX").pixels, by_page[:1])


def test_colours_of_volumes() -> None:
    rng = np.random.default_rng(2)
    pixels = rng.integers(0, 256, (16, 32, 36, 4)).astype("u1")
    colors = (*("red", "green", "blue"), "alpha")
    result = (
        io.Picture(pixels, pages=True, channels=colors).with_axes("ZYX").filtered(undula.denoise, over="ZYX")
    )
    visible = pixels[..., 3] > 0
    expected = undula.denoise(pixels[..., :3], channel_axis=-1, mask=visible)
    np.testing.assert_array_equal(result.pixels[..., :3], expected)
    np.testing.assert_array_equal(result.pixels[..., 3], pixels[..., 3])


# --- files that are filtered in blocks ------------------------------------------------------------

PAGE = np.random.default_rng(3).normal(120, 20, (210, 330)).clip(0, 255).astype("u1")
COLORS = np.dstack([PAGE, PAGE[::-1], PAGE[:, ::-1]])
FILES: dict[str, Any] = {
    "one strip": (PAGE, {}),
    "strips": (PAGE, {"rowsperstrip": 7}),
    "packed strips": (PAGE.astype("u2") * 200, {"rowsperstrip": 50, "compression": "zlib"}),
    "big-endian": (PAGE.astype("u2") * 200, {"byteorder": ">"}),
    "tiles": (PAGE, {"tile": (64, 48), "compression": "zlib", "predictor": True}),
    "big tiles": (PAGE.astype("f4"), {"tile": (256, 256), "bigtiff": True}),
    "colours": (COLORS, {"photometric": "rgb", "tile": (32, 32)}),
    "pages": (np.stack([PAGE, PAGE[::-1], PAGE // 2]), {"rowsperstrip": 64, "metadata": {"axes": "ZYX"}}),
}


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Filter every file in blocks, of about a hundred rows and columns."""
    monkeypatch.setattr(pictures, "LARGE_ITEM_SAMPLES", 1000)
    monkeypatch.setattr(pictures, "BLOCK_SAMPLES", 1 << 14)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    "layout",
    [
        name
        if name in ("packed strips", "tiles", "pages")
        else pytest.param(name, marks=pytest.mark.thorough)
        for name in FILES
    ],
)
def test_blocks_have_the_numbers_of_the_whole_image(layout: str, tmp_path: Path) -> None:
    pixels, options = FILES[layout]
    source, target = tmp_path / "in.tif", tmp_path / "out.tif"
    tifffile.imwrite(source, pixels, **{"photometric": "minisblack", **options})
    header = large_picture(source)
    assert header is not None
    reports: list[tuple[int, int]] = []
    filter_in_blocks(source, target, header, undula.denoise, progress=lambda *done: reports.append(done))
    np.testing.assert_array_equal(tifffile.imread(target), io.read(source).filtered(undula.denoise).pixels)
    assert reports[-1][0] == reports[-1][1] > 1
    with tifffile.TiffFile(source) as before, tifffile.TiffFile(target) as after:
        assert after.is_bigtiff == before.is_bigtiff
        assert after.series[0].axes == before.series[0].axes
        page, other = after.pages.first, before.pages.first
        assert (page.is_tiled, page.tilewidth, page.tilelength) == (
            other.is_tiled,
            other.tilewidth,
            other.tilelength,
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.tif", "out.tif"]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("pixels", [PAGE, PAGE.astype("u2") * 200, COLORS], ids=["8", "16", "colours"])
def test_png_in_blocks(pixels: Any, tmp_path: Path) -> None:
    io.write(tmp_path / "in.png", pixels)
    header = large_picture(tmp_path / "in.png")
    assert header is not None
    filter_in_blocks(tmp_path / "in.png", tmp_path / "out.png", header, undula.denoise)
    np.testing.assert_array_equal(io.read(tmp_path / "out.png").pixels, undula.denoise(pixels))


@pytest.mark.usefixtures("small_blocks")
def test_volumes_in_blocks(tmp_path: Path) -> None:
    write_ome(tmp_path / "in.ome.tif")
    header = large_picture(tmp_path / "in.ome.tif", over="ZYX")
    assert header is not None
    filter_in_blocks(tmp_path / "in.ome.tif", tmp_path / "out.ome.tif", header, undula.denoise, over="ZYX")
    with tifffile.TiffFile(tmp_path / "out.ome.tif") as file:
        assert file.series[0].axes == "TZCYX"
        np.testing.assert_array_equal(file.asarray(), by_volume(STACK))


@pytest.mark.usefixtures("small_blocks")
def test_a_damaged_file_in_blocks_leaves_nothing(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "in.tif", PAGE, compression="zlib", rowsperstrip=20)
    with tifffile.TiffFile(tmp_path / "in.tif") as file:
        offset = file.pages.first.dataoffsets[5]
    content = bytearray((tmp_path / "in.tif").read_bytes())
    content[offset : offset + 20] = bytes(20)
    (tmp_path / "in.tif").write_bytes(content)
    header = large_picture(tmp_path / "in.tif")
    assert header is not None
    with pytest.raises(undula.UndulaError, match=r"cannot read .*in\.tif"):
        filter_in_blocks(tmp_path / "in.tif", tmp_path / "out.tif", header, undula.denoise)
    assert [path.name for path in tmp_path.iterdir()] == ["in.tif"]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("in_blocks", [False, True])
def test_pyramids_stay_pyramids(in_blocks: bool, tmp_path: Path) -> None:
    source, target = tmp_path / "in.tif", tmp_path / "out.tif"
    with tifffile.TiffWriter(source) as writer:
        options: dict[str, Any] = {"tile": (64, 64), "photometric": "minisblack"}
        writer.write(PAGE, subifds=2, **options)
        writer.write(PAGE[::2, ::2], subfiletype=1, **options)
        writer.write(PAGE[::4, ::4], subfiletype=1, **options)
    if in_blocks:
        header = large_picture(source)
        assert header is not None
        filter_in_blocks(source, target, header, undula.denoise)
    else:
        io.write(target, io.read(source).filtered(undula.denoise))
    with tifffile.TiffFile(target) as file:
        levels = file.series[0].levels
        assert [level.shape for level in levels] == [(210, 330), (105, 165), (53, 83)]
        assert all(level.keyframe.is_tiled for level in levels)
        base = levels[0].asarray()
        np.testing.assert_array_equal(base, undula.denoise(PAGE))
        means = base.reshape(105, 2, 165, 2).mean(axis=(1, 3), dtype=np.float32)
        np.testing.assert_array_equal(levels[1].asarray(), np.rint(means).astype("u1"))
        assert abs(float(levels[2].asarray().mean()) - float(base.mean())) < 1


def test_headers_are_read_without_pixels(tmp_path: Path) -> None:
    tifffile.imwrite(tmp_path / "x.tif", np.zeros((300, 400), "u2"), photometric="minisblack")
    io.write(tmp_path / "x.png", PAGE)
    np.save(tmp_path / "x.npy", PAGE)
    for path, shape in (("x.tif", (300, 400)), ("x.png", PAGE.shape), ("x.npy", PAGE.shape)):
        file = tmp_path / path
        before = read_header(file)
        assert before is not None
        assert before.pixels.shape == shape
        assert before.pixels.strides == (0, 0)
    file = tmp_path / "x.png"  # Most of the pixels are missing, and not missed.
    file.write_bytes(file.read_bytes()[:2000])
    assert read_header(file) is not None
    with pytest.raises(undula.FileError):
        io.read(file)


@pytest.mark.parametrize("orientation", [1, 6])
def test_tiles_that_pillow_decodes_stay_tiles(orientation: int, tmp_path: Path) -> None:
    """tifffile needs another package for JPEG, which is hidden here."""
    pixels = np.indices((64, 96)).sum(axis=0).astype("u1")

    def jpegs() -> Iterator[bytes]:
        for top in range(0, 64, 32):
            for left in range(0, 96, 16):
                encoded = bytes_io.BytesIO()
                Image.fromarray(pixels[top : top + 32, left : left + 16]).save(encoded, "JPEG", quality=95)
                yield encoded.getvalue()

    source, target = tmp_path / "in.tif", tmp_path / "out.tif"
    tifffile.imwrite(
        source,
        jpegs(),
        shape=(64, 96),
        dtype="u1",
        tile=(32, 16),
        compression="zlib",
        photometric="minisblack",
        extratags=[(33550, 12, 3, (2.0, 2.0, 0.0), True), (274, 3, 1, orientation, True)],
    )
    with tifffile.TiffFile(source, mode="r+b") as file:
        file.pages.first.tags[259].overwrite(7)  # JPEG
    code = "import sys; sys.modules['imagecodecs'] = None; from undula.cli import main; sys.exit(main())"
    subprocess.run([sys.executable, "-c", code, "denoise", source, target, "--quiet"], check=True)
    with tifffile.TiffFile(target) as file:
        page = file.pages.first
        assert page.tile == ((32, 16) if orientation == 1 else (16, 32))
        assert page.shape == ((64, 96) if orientation == 1 else (96, 64))
        assert (33550 in page.tags) == (orientation == 1)
