"""Commands on images with unusual channels, and on very thin images."""

from typing import Any

import numpy as np
import pytest
import tifffile
from PIL import Image

from commands import call, json_of
from undula import io

CLEAN = (np.add.outer(2 * np.arange(40), np.arange(48))[..., None] + [20, 60, 90, 120, 10]).astype("u1")
NOISY = (CLEAN + np.random.default_rng(2).integers(0, 40, CLEAN.shape)).astype("u1")
LAYOUTS: dict[str, Any] = {
    "grey-alpha": (2, "minisblack", ["unassalpha"]),
    "two": (2, "minisblack", ["unspecified"]),
    "three": (3, "minisblack", ["unspecified"] * 2),
    "five": (5, "minisblack", ["unspecified"] * 4),
    "near-infrared": (4, "rgb", ["unspecified"]),
    "inks": (4, "separated", None),
}


@pytest.fixture(params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> Any:
    """The name of a layout of channels, in which x.tif and y.tif are written."""
    count, photometric, extra = LAYOUTS[request.param]
    for name, pixels in (("x.tif", NOISY), ("y.tif", CLEAN)):
        arguments: dict[str, Any] = {"photometric": photometric, "extrasamples": extra}
        tifffile.imwrite(name, pixels[..., :count], planarconfig="contig", **arguments)
    return request.param


def test_info(layout: str, capsys: pytest.CaptureFixture[str]) -> None:
    report = json_of("info x.tif", capsys)
    assert report["channels"] == len(report["channel names"]) == LAYOUTS[layout][0]
    assert (report["width"], report["height"]) == (48, 40)
    assert "pages" not in report
    assert 3 < report["noise"] < 30
    assert call("info x.tif") == 0
    assert ", ".join(report["channel names"]) in capsys.readouterr().out


def test_compare(layout: str, capsys: pytest.CaptureFixture[str]) -> None:
    report = json_of("compare x.tif y.tif --difference d.png", capsys)
    assert report["psnr"] < 40
    assert np.isfinite(report["bands"][0]["psnr"])
    shown = io.read("d.png")
    assert "alpha" not in shown.channels
    assert shown.pixels.max() == 255


def test_transform_and_back(layout: str) -> None:
    assert call("transform x.tif c.npz --picture p.png") == 0
    assert io.read("p.png").pixels.shape == (40, 48)
    assert call("inverse c.npz back.tif") == 0
    before, after = io.read("x.tif"), io.read("back.tif")
    assert after.channels == before.channels
    np.testing.assert_array_equal(after.pixels, before.pixels)


@pytest.mark.parametrize("command", ["denoise", "despeckle", "sharpen", "enhance", "approximate --share 0.2"])
def test_filters(layout: str, command: str) -> None:
    assert call(f"{command} x.tif out.tif") == 0
    with tifffile.TiffFile("x.tif") as before, tifffile.TiffFile("out.tif") as after:
        assert len(after.pages) == 1
        assert after.pages[0].photometric == before.pages[0].photometric
        assert after.pages[0].extrasamples == before.pages[0].extrasamples
        given, result = before.asarray(), after.asarray()
    changed = [bool((given[..., k] != result[..., k]).any()) for k in range(result.shape[-1])]
    opaque = layout == "grey-alpha" and "approximate" not in command
    assert changed == ([True, False] if opaque else [True] * len(changed))


def test_verify(layout: str) -> None:
    assert call("verify x.tif -l 2") == 0


# --- thin images ----------------------------------------------------------------------------------


THIN = [(1, 40, 3), (40, 1, 3), (1, 40, 4), (1, 40)]
TINY = [(1, 1, 3), (2, 1, 3)]
COMMANDS = ["denoise", "sharpen", "enhance", "despeckle", "filter -S soft:10"]


@pytest.mark.parametrize("suffix", ["png", "tif"])
@pytest.mark.parametrize(
    ("command", "shape"),
    [(command, shape) for command in COMMANDS for shape in THIN]
    + [(command, shape) for command in COMMANDS[:3] for shape in TINY],
    ids=str,
)
def test_sides_of_one_pixel(command: str, shape: tuple[int, ...], suffix: str) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, shape).astype("u1")
    io.write(f"x.{suffix}", pixels)
    assert call(f"{command} x.{suffix} y.{suffix}") == 0
    assert io.read(f"y.{suffix}").pixels.shape == pixels.shape


@pytest.mark.parametrize(
    "command", ["info x.png", "compare x.png x.png", "transform x.png c.npz --picture p.png"]
)
@pytest.mark.parametrize("shape", [(1, 40, 3), (40, 1, 4), (1, 1, 3)], ids=str)
def test_inspecting_sides_of_one_pixel(command: str, shape: tuple[int, ...]) -> None:
    io.write("x.png", np.random.default_rng(0).integers(0, 256, shape).astype("u1"))
    assert call(command) == 0


# --- orientation and colours ----------------------------------------------------------------------


def test_images_are_compared_as_displayed(capsys: pytest.CaptureFixture[str]) -> None:
    exif = Image.Exif()
    exif[274] = 6
    Image.fromarray(CLEAN[..., :3]).save("x.png", exif=exif)
    io.write("y.bmp", io.read("x.png"))
    assert json_of("compare x.png y.bmp", capsys)["equal"]
    assert json_of("info x.png", capsys)["orientation"] == 6
    Image.fromarray(CLEAN[..., :3]).convert("CMYK").save("x.tif")
    io.write("z.png", io.read("x.tif"))
    assert json_of("compare x.tif z.png", capsys)["equal"]
    assert call("transform x.png c.npz") == 0
    assert call("inverse c.npz back.png") == 0
    np.testing.assert_array_equal(io.read("back.png").pixels, io.read("y.bmp").pixels)
