"""DICOM studies: new series, clips and series over time, compression."""

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
from pydicom.encaps import encapsulate
from pydicom.fileset import FileSet
from pydicom.uid import HTJ2KLossless
from scans import save, scan_path

import undula
from commands import call, json_of
from undula import io
from undula.filters.verbs import Despeckling

STUDY = Path(pydicom.__file__).parent / "data" / "test_files" / "dicomdirtests"
SLICES = STUDY / "98892001" / "CT5N"  # without suffixes


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- new series -----------------------------------------------------------------------------------


def test_results_are_a_new_series_of_the_same_study() -> None:
    shutil.copytree(SLICES, "slices")
    before = {path.name: path.read_bytes() for path in Path("slices").iterdir()}
    for output in ("a", "b"):
        assert call(f"denoise slices {output} --strength 0.7 --quiet") == 0
    assert {path.name: path.read_bytes() for path in Path("slices").iterdir()} == before
    sources = {name: pydicom.dcmread(SLICES / name) for name in before}
    results = {output: {name: pydicom.dcmread(f"{output}/{name}") for name in before} for output in "ab"}
    series = [{each.SeriesInstanceUID for each in files.values()} for files in results.values()]
    assert len(series[0]) == len(series[1]) == 1
    assert not series[0] & series[1]
    assert not series[0] & {each.SeriesInstanceUID for each in sources.values()}
    assert len({each.SOPInstanceUID for each in results["a"].values()}) == len(before)
    for name, result in results["a"].items():
        source = sources[name]
        for keyword in (
            "StudyInstanceUID",
            "PatientID",
            "PatientName",
            "FrameOfReferenceUID",
            "InstanceNumber",
        ):
            assert result[keyword] == source[keyword]
        assert result.SeriesNumber == source.SeriesNumber + 1000
        assert result.SeriesDescription == f"{source.SeriesDescription}, undula denoise --strength 0.7"
        assert result.ImageType[0] == "DERIVED"
        assert result.ImageType[1:] == source.ImageType[1:]
        assert result.DerivationDescription.endswith("denoise --strength 0.7; not for diagnosis")
        (reference,) = result.SourceImageSequence
        assert reference.ReferencedSOPInstanceUID == source.SOPInstanceUID
        assert result.file_meta.MediaStorageSOPInstanceUID == result.SOPInstanceUID
        assert pydicom.uid.UID(result.SeriesInstanceUID).is_valid


def test_descriptions_fit_their_elements_and_frames_are_derived() -> None:
    path = scan_path("eCT_Supplemental")
    dataset = pydicom.dcmread(path)
    dataset.SeriesDescription = "a description of exactly sixty-four characters, which is the most"[:64]
    dataset.DerivationDescription = "x" * 1024
    dataset.save_as("in.dcm")
    assert call("filter in.dcm out.dcm -S soft:20:10 -S unsharp:1:0.5@last --quiet") == 0
    result = pydicom.dcmread("out.dcm")
    assert len(result.SeriesDescription) <= 64
    assert result.SeriesDescription.endswith(
        ", undula filter --stage soft:20:10 --stage unsharp:1:0.5@last"[-40:]
    )
    assert len(result.DerivationDescription) == 1024
    assert result.DerivationDescription.endswith("not for diagnosis")
    (groups,) = result.SharedFunctionalGroupsSequence
    assert groups.CTImageFrameTypeSequence[0].FrameType[0] == result.ImageType[0] == "DERIVED"


def test_python_writes_one_series_with_one_derivation() -> None:
    derivation = io.Derivation("my filter")
    for path in SLICES.iterdir():
        io.write(f"{path.name}.dcm", io.read(path), derivation=derivation)
    results = [pydicom.dcmread(path) for path in Path().glob("*.dcm")]
    source = pydicom.dcmread(next(SLICES.iterdir())).SeriesInstanceUID
    assert {each.SeriesInstanceUID for each in results} == {derivation.new_uid(source)}
    assert results[0].SeriesDescription.endswith("undula my filter")


@pytest.mark.parametrize("given", ["study", "study/DICOMDIR"])
def test_a_dicomdir_stands_for_its_images(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(STUDY, "study")
    listed = FileSet(STUDY / "DICOMDIR")
    report = json_of(f"denoise {given} out", capsys)
    written = {Path(entry["output"]).relative_to("out") for entry in report["files"]}
    assert written == {Path(each.path).relative_to(STUDY) for each in listed}
    assert report["errors"] == []  # Files without an image, such as those of TINY_ALPHA, are left out.


# --- over time ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stack() -> Any:
    """Noisy slices of 12 bits, in which a disc grows."""
    distance = np.hypot(*np.mgrid[-20:20, -24:24])
    discs = np.stack([np.where(distance < 6 + size, 2600, 900) for size in range(10)])
    return (discs + np.random.default_rng(0).normal(0, 120, discs.shape)).round().astype("u2")


@pytest.fixture
def series(stack: Any) -> list[Path]:
    """The slices as files, whose names are not in the order of their positions."""
    Path("series").mkdir()
    shared = {"SeriesInstanceUID": "1.2.3", "ImageOrientationPatient": [1, 0, 0, 0, 1, 0]}
    paths = [Path("series") / f"IM{(7 * number) % len(stack):04d}" for number in range(len(stack))]
    for number, path in enumerate(paths):
        save(path, stack[number], 12, ImagePositionPatient=[0, 0, 5.0 * number], **shared)
    return paths


def test_a_clip_is_filtered_as_a_volume(stack: Any) -> None:
    save(Path("clip.dcm"), stack, 12, FrameTime=40.0, RecommendedDisplayFrameRate=25, CineRate=25)
    assert call("filter clip.dcm out.dcm -S soft:300 -w haar --over-time 20 --quiet") == 0
    after = pydicom.dcmread("out.dcm")
    pipeline = undula.Pipeline("haar", 3, [undula.filters.words.parse_stage("soft:300")])
    np.testing.assert_array_equal(after.pixel_array, pipeline(stack, channel_axis=None))
    assert (after.FrameTime, after.RecommendedDisplayFrameRate, after.CineRate) == (40, 25, 25)


@pytest.mark.parametrize("command", ["denoise --over-time 4", "despeckle --kind log --over-time 8"])
def test_slices_are_filtered_as_the_frames_of_a_clip(command: str, stack: Any, series: list[Path]) -> None:
    save(Path("clip.dcm"), stack, 12)
    assert call(f"{command} clip.dcm clip-out.dcm --quiet") == 0
    assert call(f"{command} series out --quiet") == 0
    expected = pydicom.dcmread("clip-out.dcm").pixel_array
    results = [pydicom.dcmread(Path("out") / path.name) for path in series]
    np.testing.assert_array_equal([each.pixel_array for each in results], expected)
    assert (expected != stack).any()
    assert len({each.SeriesInstanceUID for each in results}) == 1
    uids = [pydicom.dcmread(path).SOPInstanceUID for path in series]
    references = [each.ReferencedSOPInstanceUID for each in results[0].SourceImageSequence]
    reach = int(command.split()[-1])
    assert references == uids[: reach + 1]


def test_images_at_the_same_position_are_filtered_over_time(stack: Any) -> None:
    Path("series").mkdir()
    for number, pixels in enumerate(stack):
        place = {"ImageOrientationPatient": [1, 0, 0, 0, 1, 0], "ImagePositionPatient": [0, 0, number % 2]}
        options = {
            "SeriesInstanceUID": "1.2.3",
            "InstanceNumber": 20 - number,
            "TemporalPositionIdentifier": number + 1,
        }
        save(Path("series") / f"{(3 * number) % 10}.dcm", pixels, 12, **place, **options)
    for half in (0, 1):
        save(Path(f"clip{half}.dcm"), stack[half::2], 12)
        assert call(f"denoise clip{half}.dcm half{half}.dcm --over-time 4 --quiet") == 0
    assert call("denoise series out --over-time 4 --quiet") == 0
    for half in (0, 1):
        paths = [Path("out") / f"{(3 * number) % 10}.dcm" for number in range(half, 10, 2)]
        expected = pydicom.dcmread(f"half{half}.dcm").pixel_array
        np.testing.assert_array_equal([pydicom.dcmread(path).pixel_array for path in paths], expected)


def test_a_damaged_slice_stops_its_series_alone(
    series: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    series[6].write_bytes(series[6].read_bytes()[:-500])
    save(Path("series") / "other.dcm", np.full((16, 16), 7, "u2"), 12, SeriesInstanceUID="1.2.4")
    assert call("denoise series out --over-time 4") == 4
    captured = capsys.readouterr()
    assert "10 of 11 files were not filtered" in captured.err
    assert [path.name for path in Path("out").iterdir()] == ["other.dcm"]


def test_over_time_needs_several_images(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("example ct.dcm --overwrite") == 0
    assert call("denoise ct.dcm out.dcm --over-time 4") == 1
    assert "ct.dcm is one image" in capsys.readouterr().err
    assert call("despeckle ct.dcm out.mp4") == 1
    assert "undula export" in capsys.readouterr().err


# --- compression ----------------------------------------------------------------------------------

KEPT = {
    "MR_small_RLE": "RLE Lossless",
    "emri_small_RLE": "RLE Lossless",
    "MR_small_jpeg_ls_lossless": "JPEG-LS Lossless Image Compression",
    "MR_small_jp2klossless": "JPEG 2000 Image Compression (Lossless Only)",
    "693_J2KI": "JPEG 2000 Image Compression (Lossless Only)",
    "US1_J2KR": "JPEG 2000 Image Compression (Lossless Only)",
    "SC_rgb_jpeg_gdcm": "JPEG-LS Lossless Image Compression",
    "JPEG-LL": "JPEG-LS Lossless Image Compression",
    "JPGExtended": "JPEG-LS Lossless Image Compression",
    "examples_ybr_color": "JPEG-LS Lossless Image Compression",
    "image_dfl": "Deflated Explicit VR Little Endian",
    "MR_small_bigendian": "Explicit VR Little Endian",
    "SC_rgb_rle_32bit": "Explicit VR Little Endian",  # pydicom does not encode 32 bits.
}


NO_ENCODER = "pyjpegls, which encodes JPEG-LS, has no wheels for this Python"


@pytest.mark.parametrize("name", KEPT)
def test_results_are_compressed_as_their_sources_without_loss(name: str) -> None:
    if "JPEG-LS" in KEPT[name]:
        pytest.importorskip("jpeg_ls", reason=NO_ENCODER)
    source = scan_path(name)
    given = io.read(source)
    io.write("out.dcm", given)
    before, after = pydicom.dcmread(source), pydicom.dcmread("out.dcm")
    assert after.file_meta.TransferSyntaxUID.name == KEPT[name]
    np.testing.assert_array_equal(after.pixel_array, before.pixel_array)
    np.testing.assert_array_equal(io.read("out.dcm").pixels, given.pixels)
    for keyword in ("LossyImageCompression", "LossyImageCompressionRatio", "LossyImageCompressionMethod"):
        assert after.get(keyword) == before.get(keyword)
    assert after.SOPInstanceUID == after.file_meta.MediaStorageSOPInstanceUID != before.SOPInstanceUID


def test_a_loss_that_the_source_does_not_declare_is_declared() -> None:
    source = pydicom.dcmread(scan_path("JPEGLSNearLossless_08"))
    assert "LossyImageCompression" not in source
    io.write("out.dcm", io.read(scan_path("JPEGLSNearLossless_08")))
    after = pydicom.dcmread("out.dcm")
    assert (after.LossyImageCompression, after.LossyImageCompressionMethod) == ("01", "ISO_14495_1")
    assert after.LossyImageCompressionRatio == pytest.approx(450 / len(source.PixelData), abs=0.01)


def test_padding_beyond_the_stored_bits_survives_compression() -> None:
    pytest.importorskip("jpeg_ls", reason=NO_ENCODER)
    cells = np.full((16, 16), 1000, "u2")
    cells[:4] = 63536
    save(Path("plain.dcm"), cells, 12, PixelPaddingValue=63536)
    dataset = pydicom.dcmread("plain.dcm")
    dataset.BitsStored, dataset.HighBit = 16, 15
    dataset.compress("1.2.840.10008.1.2.4.80")
    dataset.BitsStored, dataset.HighBit = 12, 11
    dataset.save_as("in.dcm")
    given = io.read("in.dcm")
    np.testing.assert_array_equal(given.pixels, cells)
    io.write("out.dcm", given)
    np.testing.assert_array_equal(io.read("out.dcm").pixels, cells)


# The image 40 y + 17 x of 12 rows and 10 columns, by OpenJPH.
HTJ2K = (
    "|4;u>04YEK0000A0000C00000000000000A0000C0000000000009pH0sl|{2mk^A000XAQUDA90ssL31q1{@0smY86Cj9?kdTm&k"
    "dTm&kdTmwh=~7W02crOPjF>!N>E53R%LP^FfKASE;BCwkN^q*00000YXAZNlfVEbCH@5mbN~Rr0206e695zehjaj}{sISd0Kfndzy"
    "K0}0TTeV{xUNFzyK0J02Lq%a&!Q)va-M-0sgiCzyK=X02P2B03ZO^FW2A;cK}Yuah&u7Mi7DQxB&mz"
)


def test_high_throughput_jpeg_2000() -> None:
    rows, columns = np.mgrid[:12, :10]
    pixels = (40 * rows + 17 * columns).astype("u2")
    save(Path("plain.dcm"), pixels, 16)
    dataset = pydicom.dcmread("plain.dcm")
    dataset.PixelData = encapsulate([base64.b85decode(HTJ2K)])
    dataset["PixelData"].is_undefined_length = True
    dataset.file_meta.TransferSyntaxUID = HTJ2KLossless
    dataset.save_as("in.dcm")
    np.testing.assert_array_equal(io.read("in.dcm").pixels, pixels)
    io.write("out.dcm", io.read("in.dcm"))
    np.testing.assert_array_equal(pydicom.dcmread("out.dcm").pixel_array, pixels)


def test_a_syntax_without_a_decoder(capsys: pytest.CaptureFixture[str]) -> None:
    dataset = pydicom.dcmread(scan_path("MR_small_RLE"))
    dataset.file_meta.TransferSyntaxUID = pydicom.uid.MPEG4HP41
    dataset.save_as("in.dcm")
    assert call("denoise in.dcm out.dcm") == 1
    assert "H.264 High Profile / Level 4.1, which pydicom cannot decode" in capsys.readouterr().err
    assert not Path("out.dcm").exists()


def test_despeckling_over_time_uses_all_frames(stack: Any) -> None:
    """A window as long as the clip gives the pipeline of the verb with Haar wavelets."""
    save(Path("clip.dcm"), stack, 12)
    assert call("despeckle clip.dcm out.dcm --kind log --over-time 16 --quiet") == 0
    pipeline = Despeckling(kind="log", wavelet="haar").pipeline()
    expected = pipeline(stack, channel_axis=None)
    np.testing.assert_array_equal(pydicom.dcmread("out.dcm").pixel_array, np.clip(expected, 0, 4095))


def test_clips_that_are_cut_off_are_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("example clip.dcm") == 0
    Path("cut.dcm").write_bytes(Path("clip.dcm").read_bytes()[:40_000])
    assert call("denoise cut.dcm out.dcm") == 1
    assert "cut.dcm is cut off or damaged: its PixelData cannot be read" in capsys.readouterr().err


def test_files_without_pixels_are_listed_as_unreadable(capsys: pytest.CaptureFixture[str]) -> None:
    """They may have been cut off, so that they are not left out like reports."""
    shutil.copytree(SLICES, "slices")
    name = sorted(path.name for path in Path("slices").iterdir())[0]
    dataset = pydicom.dcmread(SLICES / name)
    del dataset.PixelData
    dataset.save_as(f"slices/{name}")
    count = len(list(Path("slices").iterdir()))
    report = json_of("info slices", capsys)
    assert [entry["file"] for entry in report["files"] if "error" in entry] == [name]
    assert "error" in report["files"][0]
    assert report["files"][0]["error"].endswith(
        f"{name} is a DICOM file without an image: it has no PixelData"
    )
    assert call("denoise slices out --dry-run --json") == 4
    planned = json.loads(capsys.readouterr().out)
    assert (planned["planned"], planned["failed"]) == (count - 1, 1)


def test_files_without_an_image_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """Whether they have a class or not; but those whose header is cut off are errors."""
    shutil.copytree(SLICES, "slices")
    content = next(SLICES.iterdir()).read_bytes()
    Path("slices/cut.dcm").write_bytes(content[: content.index(b"DICM") + 600])
    Path("slices/zeros.dcm").write_bytes(bytes(300))
    names = ["test-SR.dcm", "priv_SQ.dcm", "UN_sequence.dcm", "nested_priv_SQ.dcm"]
    for name in names:
        shutil.copy(scan_path(name.removesuffix(".dcm")), "slices")
    report = json_of("info slices", capsys)
    errors = {entry["file"]: entry["error"] for entry in report["files"] if "error" in entry}
    assert list(errors) == ["cut.dcm", "zeros.dcm"]
    assert all("cut off or damaged" in error for error in errors.values())
    assert {Path(entry["input"]).name: entry["reason"] for entry in report["left out"]} == dict.fromkeys(
        names, "DICOM without an image"
    )
