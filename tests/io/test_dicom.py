"""DICOM: values stay within the stored bits; padding and overlays are kept."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
from pydicom.uid import ExplicitVRBigEndian, ImplicitVRLittleEndian, RLELossless
from scans import save, scan_path

import undula
from undula import FormatWarning, io
from undula.cli import main
from undula.io.export import export_picture


def cells_of(path: Path) -> Any:
    """The cells of a file, including their unused bits."""
    return pydicom.pixels.pixel_array(pydicom.dcmread(path), raw=True, correct_unused_bits=False)


def steps(low: int, high: int, dtype: str, channels: int = 0) -> Any:
    """Noisy stripes from the smallest to the largest value, so that filters overshoot both."""
    rng = np.random.default_rng(0)
    x = np.where((np.arange(48) // 6) % 2, high, low) + rng.normal(0, 0.02 * (high - low), (40, 48))
    x = np.clip(np.round(x), low, high)
    return np.stack([x] * channels, axis=-1).astype(dtype) if channels else x.astype(dtype)


DEPTHS = [
    ("u2", 12, False, 0),
    ("u2", 10, False, 0),
    ("i2", 12, True, 0),
    ("u1", 7, False, 0),
    ("u4", 20, False, 0),
    ("i4", 24, True, 0),
    ("u2", 16, False, 0),
    ("u2", 12, False, 3),
]


@pytest.mark.parametrize(("dtype", "stored", "signed", "channels"), DEPTHS)
def test_results_stay_within_the_stored_bits(
    dtype: str, stored: int, signed: bool, channels: int, tmp_path: Path
) -> None:
    low, high = (-(1 << stored - 1), (1 << stored - 1) - 1) if signed else (0, (1 << stored) - 1)
    source = save(tmp_path / "in.dcm", steps(low, high, dtype, channels), stored, signed)
    assert main(["sharpen", str(source), str(tmp_path / "out.dcm"), "--quiet"]) == 0
    result = cells_of(tmp_path / "out.dcm")
    assert (result.min(), result.max()) == (low, high)
    after = pydicom.dcmread(tmp_path / "out.dcm")
    assert (after.BitsStored, after.HighBit, after.PixelRepresentation) == (stored, stored - 1, signed)
    free = undula.sharpen(io.read(source).pixels.astype("f8"), channel_axis=2 if channels else None)
    if channels == 0:
        np.testing.assert_allclose(result, np.clip(np.round(free), low, high), atol=1)


@pytest.mark.parametrize("syntax", [ImplicitVRLittleEndian, ExplicitVRBigEndian, RLELossless])
def test_results_stay_within_the_stored_bits_in_every_syntax(syntax: Any, tmp_path: Path) -> None:
    source = save(tmp_path / "in.dcm", steps(-2048, 2047, "i2"), 12, True, syntax=syntax)
    assert main(["sharpen", str(source), str(tmp_path / "out.dcm"), "--quiet"]) == 0
    result = cells_of(tmp_path / "out.dcm")
    assert (result.min(), result.max()) == (-2048, 2047)


def test_write_clips_values_that_cannot_be_stored(tmp_path: Path) -> None:
    given = io.read(save(tmp_path / "in.dcm", steps(0, 4095, "u2"), 12))
    for pixels in (given.pixels + 100, given.pixels.astype("f4") * 1.5, given.pixels.astype("i8") - 100):
        io.write(tmp_path / "out.dcm", given.with_pixels(pixels))
        np.testing.assert_array_equal(cells_of(tmp_path / "out.dcm"), np.clip(np.round(pixels), 0, 4095))
    broken = given.pixels.astype("f4")
    broken[3, 4] = np.nan
    with pytest.raises(undula.ArgumentError, match="NaN or infinity"):
        io.write(tmp_path / "out.dcm", given.with_pixels(broken))


def test_smallest_and_largest_values_are_updated(tmp_path: Path) -> None:
    extrema = {"SmallestImagePixelValue": 5, "LargestImagePixelValue": 6}
    extrema |= {"SmallestPixelValueInSeries": 7, "LargestPixelValueInSeries": 8}
    cells = steps(100, 3000, "u2")
    cells[:9] = 4000
    source = save(tmp_path / "in.dcm", cells, 12, PixelPaddingValue=4000, **extrema)
    assert main(["denoise", str(source), str(tmp_path / "out.dcm"), "--quiet"]) == 0
    after = pydicom.dcmread(tmp_path / "out.dcm")
    result = after.pixel_array[9:]
    assert (after.SmallestImagePixelValue, after.LargestImagePixelValue) == (result.min(), result.max())
    assert "SmallestPixelValueInSeries" not in after
    assert "LargestPixelValueInSeries" not in after
    color = save(tmp_path / "rgb.dcm", steps(0, 255, "u1", 3), 8, **extrema)
    io.write(tmp_path / "color.dcm", io.read(color))
    assert "SmallestImagePixelValue" not in pydicom.dcmread(tmp_path / "color.dcm")


# --- padding --------------------------------------------------------------------------------------


def padded(folder: Path, value: int, cells: Any, where: Any, **elements: Any) -> Path:
    """Write a file with these cells and padding at some places."""
    cells = np.where(where, np.array(value).astype(cells.dtype), cells)
    return save(folder / f"in{value}.dcm", cells, 16, True, PixelPaddingValue=value, **elements)


ROUND = np.hypot(*np.mgrid[-20:20, -24:24]) > 19


@pytest.mark.parametrize("command", ["denoise", "despeckle", "sharpen", "enhance"])
def test_padding_is_kept_and_excluded_from_statistics(command: str, tmp_path: Path) -> None:
    cells = steps(900, 1400, "i2")
    results = []
    for value in (-2000, 20000):
        source = padded(tmp_path, value, cells, ROUND)
        target = tmp_path / f"out{value}.dcm"
        assert main([command, str(source), str(target), "--quiet"]) == 0
        result = cells_of(target)
        assert (result[ROUND] == value).all()
        assert not (result[~ROUND] == value).any()
        results.append(result[~ROUND])
    np.testing.assert_array_equal(*results)
    assert (results[0] != cells[~ROUND]).mean() > 0.5


def test_padding_may_be_a_range_and_no_result_becomes_padding(tmp_path: Path) -> None:
    cells = steps(-900, 900, "i2")
    cells[ROUND] = np.where(np.arange(int(ROUND.sum())) % 2, -2000, -910)
    source = save(tmp_path / "in.dcm", cells, 16, True, PixelPaddingValue=-910, PixelPaddingRangeLimit=-2000)
    assert main(["sharpen", str(source), str(tmp_path / "out.dcm"), "--quiet", "--amount", "3"]) == 0
    result = cells_of(tmp_path / "out.dcm")
    np.testing.assert_array_equal(result[ROUND], cells[ROUND])
    assert not ((result >= -2000) & (result <= -910))[~ROUND].any()
    assert (result[~ROUND] == -909).any()
    # The same for a filter that ignores padding.
    given = io.read(source)
    io.write(tmp_path / "shifted.dcm", given.with_pixels(given.pixels - 30))
    result = cells_of(tmp_path / "shifted.dcm")
    np.testing.assert_array_equal(result[ROUND], cells[ROUND])
    np.testing.assert_array_equal(result[~ROUND], np.maximum(cells[~ROUND] - 30, -909))


def test_padding_beyond_the_stored_bits_and_frames_of_padding(tmp_path: Path) -> None:
    cells = np.stack([steps(100, 4000, "u2"), np.full((40, 48), 63536, "u2")])
    cells[0, ROUND] = 63536  # -2000 in 16 bits, as some scanners pad.
    source = save(tmp_path / "in.dcm", cells, 12, PixelPaddingValue=63536)
    assert main(["denoise", str(source), str(tmp_path / "out.dcm"), "--quiet"]) == 0
    result = cells_of(tmp_path / "out.dcm")
    np.testing.assert_array_equal(result[1], cells[1])
    np.testing.assert_array_equal(result[0, ROUND], cells[0, ROUND])
    assert result[0, ~ROUND].max() <= 4095


def test_padding_with_the_wrong_sign(tmp_path: Path) -> None:
    cells = steps(900, 1400, "i2")
    cells[ROUND] = -2000
    source = save(tmp_path / "in.dcm", cells, 16, True)
    dataset = pydicom.dcmread(source)
    dataset.add_new("PixelPaddingValue", "US", 63536)
    dataset.save_as(source)
    assert main(["sharpen", str(source), str(tmp_path / "out.dcm"), "--quiet"]) == 0
    assert (cells_of(tmp_path / "out.dcm")[ROUND] == -2000).all()


def test_padding_is_excluded_from_info_and_display(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import json

    cells = steps(900, 1400, "i2")
    reports, shown = [], []
    for value in (-2000, 20000):
        source = padded(tmp_path, value, cells, ROUND)
        assert main(["info", str(source), "--json"]) == 0
        reports.append(json.loads(capsys.readouterr().out))
        shown.append(io.window(io.read(source)))
    assert (reports[0]["least"], reports[0]["most"]) == (cells[~ROUND].min(), cells[~ROUND].max())
    assert reports[0]["noise"] == reports[1]["noise"]
    np.testing.assert_array_equal(*shown)
    assert shown[0][~ROUND].max() == 255
    assert (shown[0][ROUND] == 0).all()


def test_the_studio_shows_what_is_written(tmp_path: Path) -> None:
    pytest.importorskip("nicegui", reason="the Studio needs nicegui")
    from undula.filters.verbs import Sharpening
    from undula.studio.decoding import StudioLimits
    from undula.studio.export_jobs import ExportJob, run_job
    from undula.studio.inputs import open_input
    from undula.studio.views import Settings, filter_frame, quality_figures, render_pyramids

    cells = np.stack([steps(0, 4095, "u2")] * 2)
    cells[:, ROUND] = 63536
    source = save(tmp_path / "in.dcm", cells, 12, PixelPaddingValue=63536)
    assert main(["sharpen", str(source), str(tmp_path / "out.dcm"), "--quiet"]) == 0
    expected = cells_of(tmp_path / "out.dcm")[1]
    given = open_input(source, "in.dcm", StudioLimits())
    assert given.display.high == 4095
    pipeline = Sharpening().pipeline()
    result = filter_frame(given.frame(1), None, pipeline, Settings(), partial(given.filtered, 1))
    np.testing.assert_array_equal(result.after, expected)
    assert quality_figures(result, None, given)["noise before"] < 4095
    other = np.where(ROUND, 4000, cells[1]).astype("u2")
    frames = (given.visible(cells[1]), (other, None))
    by_mask, by_value = (render_pyramids(x, None, pipeline, mask)[0] for x, mask in frames)
    assert (by_mask != by_value).any()
    job = ExportJob(str(source), str(tmp_path / "frames"), pipeline.to_json(), "cpu", True)
    run_job(job, lambda done, total: None)
    frame = io.read(sorted((tmp_path / "frames").iterdir())[1]).pixels
    np.testing.assert_array_equal(frame, expected)


# --- unused bits ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("high_bit", "position"), [(11, 12), (15, 0)])
def test_overlays_in_unused_bits_are_kept(high_bit: int, position: int, tmp_path: Path) -> None:
    overlay = np.indices((40, 48)).sum(axis=0) % 5 == 0
    values = steps(0, 4095, "u2")
    cells = (values << (high_bit - 11)) | (overlay.astype("u2") << position)
    source = save(tmp_path / "in.dcm", cells, 12)
    dataset = pydicom.dcmread(source)
    dataset.HighBit = high_bit
    for element, vr, value in ((0x0010, "US", 40), (0x0011, "US", 48), (0x0040, "CS", "G")):
        dataset.add_new((0x6000, element), vr, value)
    dataset.add_new((0x6000, 0x0050), "SS", [1, 1])
    dataset.add_new((0x6000, 0x0100), "US", 16)
    dataset.add_new((0x6000, 0x0102), "US", position)
    dataset.save_as(source)
    given = io.read(source)
    np.testing.assert_array_equal(given.pixels, values)
    assert main(["sharpen", str(source), str(tmp_path / "out.dcm"), "--quiet"]) == 0
    result = cells_of(tmp_path / "out.dcm")
    np.testing.assert_array_equal((result >> position) & 1, overlay)
    again = io.read(tmp_path / "out.dcm").pixels
    assert (again != values).any()
    assert (again.min(), again.max()) == (0, 4095)
    assert pydicom.dcmread(tmp_path / "out.dcm").HighBit == high_bit


def test_garbage_in_unused_bits_is_ignored(tmp_path: Path) -> None:
    values = steps(0, 4095, "u2")
    source = save(tmp_path / "in.dcm", values | 0x5000, 12)
    given = io.read(source)
    np.testing.assert_array_equal(given.pixels, values)
    io.write(tmp_path / "out.dcm", given)
    np.testing.assert_array_equal(cells_of(tmp_path / "out.dcm"), values)


# --- what is broken -------------------------------------------------------------------------------


def test_malformed_elements_do_not_matter_until_they_are_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elements = {"Modality": "CT", "WindowCenter": "40.5", "WindowWidth": "9"}
    source = save(tmp_path / "in.dcm", steps(0, 4095, "u2"), 12, **elements)
    data = source.read_bytes()
    source.write_bytes(data.replace(b"CT", b"\xff\xfe", 1).replace(b"40.5", b"4x.,"))
    for words in (["info", str(source)], ["denoise", str(source), str(tmp_path / "out.dcm"), "-q"]):
        assert main(words) == 0, capsys.readouterr().err
    with pytest.raises(undula.FileError, match=r"in\.dcm"):
        io.window(io.read(source))


def test_an_element_that_cannot_be_copied_is_an_error_of_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = save(tmp_path / "in.dcm", steps(0, 4095, "u2"), 12)
    rubbish = np.random.default_rng(3).integers(0, 256, 999).astype("u1").tobytes()
    source.write_bytes(source.read_bytes() + b"\xff\xff" + rubbish)
    assert main(["denoise", str(source), str(tmp_path / "out.dcm"), "-q"]) == 1
    message = capsys.readouterr().err
    assert "in.dcm has elements besides its pixels" in message.replace("\n", " ")
    assert "Traceback" not in message
    assert not (tmp_path / "out.dcm").exists()


@pytest.mark.parametrize(
    ("name", "value"), [("BitsStored", 17), ("BitsStored", 0), ("Rows", 0), ("SamplesPerPixel", 0)]
)
def test_impossible_values_are_errors(name: str, value: int, tmp_path: Path) -> None:
    source = save(tmp_path / "in.dcm", steps(0, 4095, "u2"), 12)
    dataset = pydicom.dcmread(source)
    setattr(dataset, name, value)
    dataset.save_as(source)
    with pytest.raises(undula.FileError, match=r"in\.dcm"):
        io.read(source)


# --- names ----------------------------------------------------------------------------------------


def without_preamble(path: Path) -> Path:
    """Rewrite a file without preamble and meta information, as the first scanners wrote it."""
    dataset = pydicom.dcmread(path)
    dataset.preamble = None
    dataset.file_meta = pydicom.dataset.FileMetaDataset()
    pydicom.dcmwrite(path, dataset, implicit_vr=True, little_endian=True)
    assert path.read_bytes()[128:132] != b"DICM"
    return path


def disc(folder: Path) -> list[str]:
    """Write a folder as on a disc: DICOMDIR, and files without suffixes in folders."""
    (folder / "DICOM" / "PAT1").mkdir(parents=True)
    names = ["DICOM/PAT1/IM000001", "DICOM/PAT1/1.2.840.55", "DICOM/slice.IMA", "DICOM/old"]
    for number, name in enumerate(names):
        save(folder / name, steps(0, 4000 + number, "u2"), 12)
    without_preamble(folder / names[3])
    (folder / "README").write_text("not a picture, and long enough to be looked at\n" * 9)
    (folder / "DICOM" / "empty").touch()
    directory = pydicom.dcmread(folder / names[0])
    directory.file_meta.MediaStorageSOPClassUID = directory.SOPClassUID = "1.2.840.10008.1.3.10"
    for name in ("Rows", "Columns", "PixelData"):
        delattr(directory, name)
    directory.DirectoryRecordSequence = []
    directory.save_as(folder / "DICOMDIR")
    return names


@pytest.mark.parametrize("given", ["CD", "CD/DICOMDIR"])
def test_files_on_a_disc_are_found_by_their_content(given: str, tmp_path: Path) -> None:
    names = disc(tmp_path / "CD")
    out = tmp_path / "out"
    assert main(["denoise", str(tmp_path / given), "-o", str(out), "--quiet"]) == 0
    assert sorted(str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()) == sorted(names)
    for name in names:
        assert io.read(out / name).kind == "dicom"
        assert "undula" in pydicom.dcmread(out / name).DerivationDescription


def test_files_without_a_suffix_are_found_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disc(tmp_path / "CD")
    folder, out = tmp_path / "CD" / "DICOM" / "PAT1", tmp_path / "out"
    assert main(["denoise", str(folder), "-o", str(out), "--quiet"]) == 0
    assert sorted(path.name for path in out.iterdir()) == ["1.2.840.55", "IM000001"]
    assert main(["denoise", str(folder / "IM000001"), str(tmp_path / "IM000002"), "--quiet"]) == 0
    expected = io.read(out / "IM000001").pixels
    np.testing.assert_array_equal(io.read(tmp_path / "IM000002").pixels, expected)
    save(tmp_path / "scan.mr", steps(0, 4000, "u2"), 12)
    assert main(["denoise", str(tmp_path / "scan.mr"), "-o", str(out), "--quiet"]) == 0
    np.testing.assert_array_equal(io.read(out / "scan.mr").pixels, expected)
    capsys.readouterr()
    for name in ("x.pgm", "x.mha"):  # Another format is requested, and DICOM would be wrong.
        assert main(["denoise", str(folder / "IM000001"), str(tmp_path / name)]) == 1
        assert "no known format" in capsys.readouterr().err
    assert main(["info", str(tmp_path / "CD" / "DICOMDIR")]) == 1
    assert "folder" in capsys.readouterr().err
    (tmp_path / "CD" / "DICOMDIR").unlink()
    assert main(["denoise", str(tmp_path / "CD"), "-o", str(tmp_path / "more")]) == 1
    assert "--recursive" in capsys.readouterr().err


def test_dicom_through_a_pipe_stays_dicom(tmp_path: Path) -> None:
    import subprocess
    import sys

    source = save(tmp_path / "IM000001", steps(0, 4000, "u2"), 12)
    words = [sys.executable, "-m", "undula", "sharpen", "-", "-", "--quiet"]
    result = subprocess.run(words, input=source.read_bytes(), capture_output=True, timeout=120).stdout
    assert result[128:132] == b"DICM"


def test_bare_datasets_are_read(tmp_path: Path) -> None:
    cells = steps(0, 4000, "u2")
    source = without_preamble(save(tmp_path / "IM1", cells, 12))
    np.testing.assert_array_equal(io.read(source).pixels, cells)
    assert main(["sharpen", str(source), str(tmp_path / "IM2"), "--quiet"]) == 0
    assert io.read(tmp_path / "IM2").pixels.max() == 4095


def test_elements_whose_vr_is_not_the_declared_one(tmp_path: Path) -> None:
    """This file declares explicit value representations, and its elements have none."""
    source, target = scan_path("SC_rgb_jpeg"), tmp_path / "out.dcm"
    with pytest.warns(UserWarning, match="Expected explicit VR"):
        picture = io.read(source)
    with pytest.warns(UserWarning, match="Expected explicit VR"):
        before = pydicom.dcmread(source)
    io.write(target, picture.filtered(undula.denoise))
    after = pydicom.dcmread(target)
    assert (after.ContentDate, after.ContentTime) == (before.ContentDate, before.ContentTime)
    assert after.StudyInstanceUID == before.StudyInstanceUID
    assert io.read(target).pixels.shape == (256, 256, 3)


def test_what_a_derived_image_does_not_keep_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    icon = pydicom.Dataset()
    icon.Rows = icon.Columns = 2
    source = save(tmp_path / "in.dcm", steps(0, 4095, "u2"), 12, IconImageSequence=[icon])
    assert main(["denoise", str(source), str(tmp_path / "out.dcm"), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["files"][0]["lost"] == ["icon image"]
    assert "out.dcm does not keep icon image" in captured.err
    assert "IconImageSequence" not in pydicom.dcmread(tmp_path / "out.dcm")


@pytest.mark.parametrize("target", ["out.png", "out.mp4"])
def test_overlays_that_are_not_shown_are_named(target: str, tmp_path: Path) -> None:
    source = save(tmp_path / "in.dcm", np.stack([steps(0, 255, "u1")] * 2), 8)
    dataset = pydicom.dcmread(source)
    dataset.add_new((0x6002, 0x0010), "US", 40)
    dataset.save_as(source)
    with pytest.warns(FormatWarning, match=f"{target} does not show the overlays"):
        export_picture(source, tmp_path / target, frame=0 if target == "out.png" else None)
    with pytest.warns(FormatWarning, match="DICOM header, overlays"):
        io.write(tmp_path / "out.tif", io.read(source))
