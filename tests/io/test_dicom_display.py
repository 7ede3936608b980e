"""What is protected in DICOM images, and how they are displayed and exported."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
from PIL import Image, ImageDraw
from pydicom.pixels import apply_modality_lut, apply_voi, apply_windowing
from pydicom.uid import UltrasoundMultiFrameImageStorage
from scans import save, scan_path

import undula
from commands import call, json_of
from undula import io

SLICES = Path(pydicom.__file__).parent / "data" / "test_files" / "dicomdirtests" / "98892001" / "CT5N"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- protection -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn() -> tuple[Any, Any, Any]:
    """A clip of a sector with moving speckle, and masks of the text drawn on it and of the sector."""
    rng = np.random.default_rng(0)
    rows, columns = np.mgrid[:160, :200]
    sector = (np.abs(columns - 100) < rows - 20) & (np.hypot(rows - 20, columns - 100) < 110)
    frames = np.where(sector, rng.gamma(4, 20, (6, *sector.shape)), 0).clip(0, 255)
    text = Image.new("L", (200, 160))
    draw = ImageDraw.Draw(text)
    draw.text((2, 2), "MI 1.2  TIS 0.4", fill=220)
    draw.text((150, 145), "LIVER", fill=160)
    draw.line([(190, 20), (190, 120)], fill=200)
    letters = np.asarray(text)
    clip = np.where(letters > 0, letters, frames).astype("u1")
    return clip, letters > 0, sector & (letters == 0)


def save_scan(path: str, pixels: Any, **elements: Any) -> None:
    uid = {"SOPClassUID": UltrasoundMultiFrameImageStorage, "Modality": "US"}
    save(Path(path), pixels, 8, **{**uid, **elements})


@pytest.mark.parametrize("frames", [1, 6])
def test_burned_in_text_is_protected(frames: int, drawn: tuple[Any, Any, Any]) -> None:
    clip, text, tissue = drawn
    save_scan("in.dcm", clip[:frames] if frames > 1 else clip[0])
    protected = io.find_protected(io.read("in.dcm"))
    assert protected is not None
    assert protected[text].mean() > 0.99
    assert protected[tissue].mean() < 0.05
    assert call("despeckle in.dcm out.dcm --kind log --quiet") == 0
    before, after = pydicom.dcmread("in.dcm").pixel_array, pydicom.dcmread("out.dcm").pixel_array
    np.testing.assert_array_equal(after[..., text], before[..., text])
    assert (after[..., tissue] != before[..., tissue]).mean() > 0.5
    assert "burned-in text" in pydicom.dcmread("out.dcm").DerivationDescription


def test_colours_in_grey_scans_are_protected() -> None:
    source = scan_path("US1_UNCR")
    given = io.read(source)
    protected = io.find_protected(given)
    assert protected is not None
    colored = np.ptp(given.pixels.astype(int), axis=-1) > 40
    assert colored.sum() > 10000
    assert protected[colored].all()
    assert protected[130:200, 60:110].mean() < 0.15  # (tissue without flow)
    assert call(f"sharpen {source} out.dcm --quiet") == 0
    np.testing.assert_array_equal(io.read("out.dcm").pixels[protected], given.pixels[protected])


def test_a_grey_scan_in_rgb_is_filtered_as_its_channels_would_be() -> None:
    source = scan_path("US1_UNCR")
    given = io.read(source)
    protected = io.find_protected(given)
    assert protected is not None
    assert call(f"despeckle {source} out.dcm --kind log --quiet") == 0
    expected = undula.despeckle(given.pixels, kind="log", mask=~protected)
    np.testing.assert_array_equal(io.read("out.dcm").pixels, expected)


def test_regions_of_ultrasound() -> None:
    given = io.read(scan_path("JPGLosslessP14SV1_1s_1f_8b"))
    (region,) = given.about["dataset"].SequenceOfUltrasoundRegions
    assert (region.RegionLocationMinX0, region.RegionLocationMaxY1) == (14, 758)
    protected = io.find_protected(given)
    assert protected is not None
    assert protected[:, :14].all()
    assert protected[759:].all()
    assert protected[300:600, 300:400].mean() < 0.02
    region.RegionLocationMaxX1 = 5000  # as of another size
    protected = io.find_protected(given)
    assert protected is not None
    assert protected[759:, 100:900].mean() < 0.1


@pytest.mark.parametrize("name", ["CT_small", "MR_small", "emri_small", "SC_jpeg_no_color_transform"])
def test_other_images_are_filtered_everywhere(name: str) -> None:
    assert io.find_protected(io.read(scan_path(name))) is None


def test_masks_can_be_shown_switched_off_and_given(
    drawn: tuple[Any, Any, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    clip, text, tissue = drawn
    save_scan("in.dcm", clip)
    report = json_of("despeckle in.dcm auto.dcm --kind log --show-mask shown/mask.png", capsys)
    protected = io.find_protected(io.read("in.dcm"))
    assert protected is not None
    assert report["files"][0]["protected"] == round(protected.mean(), 4)
    shown = io.read("shown/mask.png").pixels.astype(int)
    np.testing.assert_array_equal(shown[..., 1] > shown[..., 0], protected)
    assert call("despeckle in.dcm none.dcm --kind log --mask none --quiet") == 0
    filtered = pydicom.dcmread("none.dcm").pixel_array
    assert (filtered[:, text] != clip[:, text]).any()
    io.write("mine.png", np.where(tissue, 255, 0).astype("u1"))
    assert call("despeckle in.dcm mine.dcm --kind log --mask mine.png --quiet") == 0
    np.testing.assert_array_equal(pydicom.dcmread("mine.dcm").pixel_array[:, tissue], clip[:, tissue])


@pytest.mark.parametrize("name", ["mask.png", "mask.jpg"])
@pytest.mark.parametrize("white", [1, 90, 255])
def test_masks_are_white_on_black(name: str, white: int, capsys: pytest.CaptureFixture[str]) -> None:
    """JPEG has some noise around edges, and programs write masks with several values of white."""
    assert call("example scan.dcm") == 0
    mask = np.zeros((240, 320), bool)
    mask[48:96, 64:160] = True
    if white == 1 and name == "mask.jpg":  # Such small values do not survive.
        white = 128
    io.write(name, np.where(mask, white, 0).astype("u1"))
    assert call(f"denoise scan.dcm out.dcm --mask {name} --quiet") == 0
    before, after = (io.read(path).pixels[..., 0] for path in ("scan.dcm", "out.dcm"))
    np.testing.assert_array_equal(after[mask], before[mask])
    assert (after != before)[~mask & (before > 20)].mean() > 0.3


def test_the_picture_of_a_mask_is_no_mask(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("example scan.dcm") == 0
    assert call("denoise scan.dcm out.dcm --show-mask shown.png --quiet") == 0
    capsys.readouterr()
    assert call("denoise scan.dcm other.dcm --mask shown.png") == 1
    assert "of the mask shown.png are neither black nor white; paint what" in capsys.readouterr().err
    assert not Path("other.dcm").exists()


def test_mistakes_with_masks(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("example scan.dcm") == 0
    assert call("example photo.png") == 0
    shutil.copytree(SLICES, "slices")
    io.write("small.png", np.zeros((5, 7), "u1"))
    for line, message in {
        "denoise scan.dcm out.dcm --mask small.png": "small.png has 7 × 5 pixels, and the image 320 × 240",
        "denoise scan.dcm out.dcm --mask nothing.png": "nothing.png",
        "denoise photo.png out.png --show-mask x.png": "--show-mask applies to DICOM files only",
        "denoise slices out --show-mask x.png": "the mask of one file; got 5 inputs",
        "denoise scan.dcm out.dcm --show-mask photo.png": "photo.png exists",
        "denoise scan.dcm out.dcm --show-mask x.dcm": "--show-mask is written as an image, got x.dcm",
    }.items():
        capsys.readouterr()
        assert call(line) == 1
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
        assert not any(Path(name).exists() for name in ("out.dcm", "out.png", "out", "x.png"))


# --- windows --------------------------------------------------------------------------------------


def windowed_by_pydicom(dataset: Any) -> Any:
    """The pixels in the window of a dataset, from 0 to 255."""
    values = apply_windowing(apply_modality_lut(dataset.pixel_array, dataset), dataset)
    bits = dataset.BitsStored
    ends = (-(1 << bits - 1), (1 << bits - 1) - 1) if dataset.PixelRepresentation else (0, (1 << bits) - 1)
    slope, intercept = dataset.get("RescaleSlope", 1), dataset.get("RescaleIntercept", 0)
    low, high = (slope * end + intercept for end in ends)
    shown = 255 * (values - low) / (high - low)
    return 255 - shown if dataset.PhotometricInterpretation == "MONOCHROME1" else shown


@pytest.mark.parametrize("name", ["MR_small", "693_UNCR", "RG3_UNCR"])
@pytest.mark.parametrize("function", ["LINEAR", "LINEAR_EXACT", "SIGMOID"])
def test_windows_are_those_of_pydicom(name: str, function: str) -> None:
    dataset = pydicom.dcmread(scan_path(name))
    dataset.VOILUTFunction = function
    dataset.save_as("in.dcm")
    np.testing.assert_allclose(io.window(io.read("in.dcm")), windowed_by_pydicom(dataset), atol=0.51)


def test_tables_of_values_are_those_of_pydicom() -> None:
    given = io.read(scan_path("vlut_04"))
    dataset = given.about["dataset"]
    bits = dataset.VOILUTSequence[0].LUTDescriptor[2]
    expected = apply_voi(given.pixels, dataset) * (255 / ((1 << bits) - 1))
    np.testing.assert_allclose(io.window(given), expected, atol=0.51)


def test_a_given_window_and_those_of_enhanced_images() -> None:
    given = io.read(scan_path("CT_small"))
    shown = io.window(given, 40, 400)
    hounsfield = apply_modality_lut(given.pixels, given.about["dataset"])
    assert (shown[hounsfield <= -160] == 0).all()
    assert (shown[hounsfield >= 240] == 255).all()
    assert abs(int(shown[np.abs(hounsfield - 40) < 1].mean()) - 128) <= 1
    enhanced = io.read(scan_path("eCT_Supplemental"))
    groups = enhanced.about["dataset"].SharedFunctionalGroupsSequence[0]
    item = groups.FrameVOILUTSequence
    center, width = (float(np.atleast_1d(item[0][name].value)[0]) for name in ("WindowCenter", "WindowWidth"))
    np.testing.assert_array_equal(io.window(enhanced)[0], io.window(enhanced, center, width)[0])
    with pytest.raises(undula.ArgumentError, match="positive width"):
        io.window(given, 40, 0)
    with pytest.raises(undula.ArgumentError, match="grey images"):
        io.window(io.read(scan_path("examples_rgb_color")), 40, 400)


# --- export ---------------------------------------------------------------------------------------


def test_pictures_are_exported_by_their_window() -> None:
    for name, window in (("MR_small", ()), ("CT_small", (-600.0, 1500.0))):
        source = scan_path(name)
        words = f"--window {window[0]} {window[1]}" if window else ""
        assert call(f"export {source} {name}.png {words} --quiet") == 0
        np.testing.assert_array_equal(io.read(f"{name}.png").pixels, io.window(io.read(source), *window))


@pytest.mark.parametrize("target", ["clip.mp4", "clip.webm", "clip.gif"])
def test_clips_are_exported_at_their_rate(target: str, drawn: tuple[Any, Any, Any]) -> None:
    clip = drawn[0][:, :159, :199]  # (odd sides)
    smooth = np.stack(
        [undula.denoise(frame.astype("f4"), 60).round().clip(0, 255).astype("u1") for frame in clip]
    )
    save_scan("in.dcm", smooth, FrameTime=50.0)
    assert call(f"export in.dcm {target} --quiet") == 0
    if target.endswith(".gif"):
        given = io.read(target)
        assert given.about["durations"] == [50] * 6
        assert given.pixels.shape[:3] == smooth.shape
        return
    video = io.probe(target)
    assert (video.frames, round(video.rate, 2), video.width, video.height) == (6, 20, 200, 160)
    decoded = np.stack(list(io.read_frames(Path(target))))[:, :159, :199]
    assert np.abs(decoded.mean(axis=-1) - smooth).mean() < 3


def test_a_series_is_exported_as_a_video_in_the_order_of_its_slices() -> None:
    Path("series").mkdir()
    for number in range(6):
        place = {"ImageOrientationPatient": [1, 0, 0, 0, 1, 0], "ImagePositionPatient": [0, 0, -2.0 * number]}
        pixels = np.full((32, 32), 100 * number, "u2")
        pixels[:8] = 1000
        save(Path("series") / f"{number}.dcm", pixels, 12, SeriesInstanceUID="1.2.3", **place)
    assert call("export series scroll.mp4 --rate 5 --quiet") == 0
    frames = np.stack(list(io.read_frames(Path("scroll.mp4"))))
    np.testing.assert_allclose(frames[:, 20, 16, 0], [127.5, 102, 76.5, 51, 25.5, 0], atol=3)
    assert io.probe("scroll.mp4").rate == 5


def test_folders_are_exported_file_by_file(capsys: pytest.CaptureFixture[str]) -> None:
    Path("study").mkdir()
    for name in ("CT_small", "examples_ybr_color"):
        shutil.copy(scan_path(name), "study")
    shutil.copy(scan_path("MR_small"), "study/1.2.840.55")
    report = json_of("export study --output pictures", capsys)
    names = {Path(entry["output"]).name: entry["frames"] for entry in report["files"]}
    assert names == {"CT_small.png": 1, "examples_ybr_color.mp4": 30, "1.2.840.55.png": 1}


def test_mistakes_with_exports(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("example ct.dcm") == 0
    assert call("example clip.dcm") == 0
    shutil.copytree(SLICES.parent, "study")
    shutil.copytree(SLICES.parents[1] / "77654033" / "CT2", "study/CT2")
    for line, message in {
        "export clip.dcm out.png": "has 30 frames, which .png does not play; write a video such as out.mp4",
        "export clip.dcm out.png --frame 30": "has frames 0 to 29",
        "export ct.dcm out.png --window 40 -1": "ct.dcm: a window has a center and a positive width",
        "export clip.dcm out.mp4 --window 40 80": "a window is for grey images",
        "export ct.dcm out.dcm": "is no picture or video",
        "export study out.mp4 -r": "2 series of several images",
        "export nothing.dcm out.png": "nothing.dcm",
    }.items():
        capsys.readouterr()
        assert call(line) == 1
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
        assert not list(Path().glob("out*"))
