"""All commands, with correct and incorrect arguments."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from pydicom import dcmread, examples

import undula
from cases import parametrize_some
from commands import call, json_of
from undula import io
from undula.cli.app import app
from undula.cli.filtering import SOME_FAILED
from undula.filters import Blur, Contrast, Gain, Laplace, Shrink, Unsharp
from undula.filters.words import format_stage, parse_stage

COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def examples_of(name: str) -> list[str]:
    text = typer.main.get_command(app).commands[name].help or ""  # type: ignore[attr-defined]
    return [code for code in re.findall(r"`([^`]*)`", text) if code.startswith("undula ")]


def test_samples_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("example volume.npy --sample volume") == 0
    assert Path("volume.npy").read_bytes() == io.sample("volume").read_bytes()
    assert call("example volume.npy --sample volume") != 0  # It exists.
    assert call("example volume.tif --sample volume") != 0
    assert "the sample 'volume' is a .npy file, got 'volume.tif'" in capsys.readouterr().err
    assert call("example x.png --sample nothing") != 0
    assert sorted(path.name for path in Path().iterdir()) == ["volume.npy"]


# The Studio runs until it is stopped; tests/studio covers it.
@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "studio"])
def test_examples_in_the_help_work(name: str) -> None:
    lines = examples_of(name)
    assert lines, f"undula {name} --help has no example"
    for line in lines:
        for part in line.split("&&"):
            words = part.strip().removeprefix("undula ")
            status = call(words)
            assert status == 0 or (name == "accept" and status == 3), part


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(f"{name} --help") == 0
    assert "Usage: undula" in capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_consists_of_sentences(name: str) -> None:
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    texts = [command.help.partition("\n")[0], *(parameter.help for parameter in command.params)]
    assert [text for text in texts if not re.fullmatch(r"[A-Z].*\.", text)] == []


SUFFIXES = "png jpg tif bmp webp jp2 npy npz".split()
FILTERS = ["denoise", "despeckle", "sharpen", "enhance", "filter -S soft:10", "approximate --share 0.1"]


# Commands do not know formats, nor formats commands: each format with two commands or more, and vice versa.
@parametrize_some(
    ("command", "suffix"),
    [(command, suffix) for command in FILTERS for suffix in SUFFIXES],
    [
        (FILTERS[k], suffix)
        for j, suffix in enumerate(SUFFIXES)
        for k in range(len(FILTERS))
        if (j + k) % 3 == 0
    ],
)
def test_every_format_with_every_command(
    command: str, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(f"example noisy.{suffix}") == 0
    assert call(f"{command} noisy.{suffix} out.{suffix}") == 0
    before, after = io.read(f"noisy.{suffix}"), io.read(f"out.{suffix}")
    assert after.pixels.shape == before.pixels.shape
    assert after.pixels.dtype == before.pixels.dtype
    assert (after.pixels != before.pixels).any()
    report = json_of(f"info out.{suffix}", capsys)
    assert (report["width"], report["height"]) == (320, 240)


def test_denoise_reduces_noise(capsys: pytest.CaptureFixture[str]) -> None:
    call("example noisy.png")
    call("denoise noisy.png out.png")
    assert json_of("info out.png", capsys)["noise"] < 0.3 * json_of("info noisy.png", capsys)["noise"]
    np.testing.assert_array_equal(io.read("out.png").pixels, undula.denoise(io.read("noisy.png").pixels))
    call("denoise noisy.png more.png --strength 3 --sigma 30")
    assert (
        json_of("compare noisy.png more.png", capsys)["psnr"]
        < json_of("compare noisy.png out.png", capsys)["psnr"]
    )


def test_depth_and_pages_are_preserved() -> None:
    deep = np.random.default_rng(0).integers(0, 65536, (3, 40, 50)).astype("u2")
    io.write("x.tif", io.Picture(deep, pages=True))
    assert call("denoise x.tif y.tif") == 0
    after = io.read("y.tif")
    assert after.pixels.dtype == np.uint16
    assert after.pixels.shape == deep.shape


def test_commands_have_the_defaults_of_the_functions() -> None:
    call("example noisy.png")
    pixels = io.read("noisy.png").pixels
    for function in (undula.denoise, undula.despeckle, undula.sharpen, undula.enhance):
        assert call(f"{function.__name__} noisy.png out.png --overwrite") == 0
        np.testing.assert_array_equal(io.read("out.png").pixels, function(pixels))


DICOM = ["rgb_color", "ybr_color", "palette_color", "ct"]


@parametrize_some(
    ("command", "name"),
    [(command, name) for command in ("denoise", "despeckle") for name in DICOM],
    [*(("denoise", name) for name in DICOM), ("despeckle", "ct")],
)
def test_dicom(command: str, name: str) -> None:
    source = examples.get_path(name)
    assert call(f"{command} {source} out.dcm") == 0
    before, after = dcmread(source), dcmread("out.dcm")
    assert after.PatientName == before.PatientName
    assert after.PatientID == before.PatientID
    assert after.SOPInstanceUID != before.SOPInstanceUID
    assert after.pixel_array.shape[:2] == before.pixel_array.shape[:2]
    assert after.SourceImageSequence[0].ReferencedSOPInstanceUID == before.SOPInstanceUID
    assert call(f"{command} {source} out.png") == (1 if name == "ct" else 0)


@pytest.mark.parametrize(
    "line",
    [
        "denoise ct.dcm x.png",
        "denoise ct.dcm x.jpg --dry-run",
        "denoise ct.dcm x.mp4",
        "approximate ct.dcm x.gif --low",
        "approximate ct.dcm x.mp4 --low",
    ],
)
def test_what_a_picture_cannot_store_of_dicom_is_exported(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    call("example ct.dcm")
    assert call(line) == 1
    assert (
        "; undula export writes DICOM as a screen shows it, as pictures or video" in capsys.readouterr().err
    )
    assert not list(Path().glob("x.*"))


def test_video(capsys: pytest.CaptureFixture[str]) -> None:
    call("example noisy.mp4")
    assert call("denoise noisy.mp4 out.mkv --crf 30 --preset ultrafast") == 0
    assert json_of("info out.mkv", capsys)["seconds"] == pytest.approx(2.0, abs=0.1)
    assert len(list(io.read_frames("out.mkv"))) == 50
    report = json_of("denoise noisy.mp4 over.mp4 --over-time 8 --frames 20", capsys)
    assert report["frames"] == 20
    for command in ("sharpen", "enhance", "despeckle", "filter -S bayes"):
        assert call(f"{command} noisy.mp4 x.mp4 -y") == 0
    assert call("denoise noisy.mp4 x.png") == 1
    assert call("example photo.png") == 0
    assert call("denoise photo.png x.mp4") == 1


def test_several_files_and_folders() -> None:
    Path("in/deeper").mkdir(parents=True)
    for name in ("a.png", "b.tif", "deeper/c.png"):
        assert call(f"example in/{name}") == 0
    Path("in/notes.txt").write_text("not an image")
    assert call("denoise in out") == 0
    assert sorted(p.name for p in Path("out").iterdir()) == ["a.png", "b.tif"]
    assert call("denoise in -o all --recursive") == 0
    assert sorted(str(p.relative_to("all")) for p in Path("all").rglob("*.*")) == [
        "a.png",
        "b.tif",
        "deeper/c.png",
    ]
    assert call("denoise in/a.png in/b.tif --output two") == 0
    assert len(list(Path("two").iterdir())) == 2
    Path("in/broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    assert call("denoise in -o some") == SOME_FAILED
    assert sorted(p.name for p in Path("some").iterdir()) == ["a.png", "b.tif"]


def test_pipes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    call("example noisy.png")
    run = [sys.executable, "-c", "import sys; from undula.cli import main; sys.exit(main())"]
    done = subprocess.run(
        [*run, "denoise", "-", "-"], input=Path("noisy.png").read_bytes(), capture_output=True, check=True
    )
    Path("out.png").write_bytes(done.stdout)
    np.testing.assert_array_equal(io.read("out.png").pixels, undula.denoise(io.read("noisy.png").pixels))
    assert not done.stderr
    for line, expected in (("denoise - new.png", "-"), ("info -", "png")):
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(done.stdout)))
        report = json_of(line, capsys)
        assert (report["files"][0]["input"] if "files" in report else report["kind"]) == expected


@pytest.mark.parametrize("name", ["x.jpg", "x.webp", "x.bmp", "x.tif", "x.png", "ct.dcm"])
def test_pipes_keep_the_format(
    name: str, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    if name == "ct.dcm":
        assert call(f"example {name}") == 0
    else:
        call("example photo.png")
        io.write(name, io.read("photo.png").pixels[:64, :64])
    assert call(f"denoise {name} expected{Path(name).suffix} --quiet") == 0
    expected = io.read(f"expected{Path(name).suffix}")
    lines = [f"denoise {name} -", "denoise - -", *(["approximate - - --share 1"] * (name == "x.webp"))]
    for line in lines:
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(Path(name).read_bytes())))
        capsysbinary.readouterr()
        assert call(line) == 0
        Path("out").write_bytes(capsysbinary.readouterr().out)
        result = io.read("out")
        assert result.kind == expected.kind
        if "denoise" in line:
            np.testing.assert_array_equal(result.pixels, expected.pixels)


def test_formats_of_pipes(
    monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    call("example photo.png")
    sizes = []
    for options in ("--format jpg", "--format .JPG --image-quality 20"):
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(Path("photo.png").read_bytes())))
        capsysbinary.readouterr()
        assert call(f"denoise - - {options}") == 0
        Path("out").write_bytes(capsysbinary.readouterr().out)
        assert io.read("out").kind == "jpeg"
        sizes.append(Path("out").stat().st_size)
    assert sizes[1] < sizes[0] / 2
    Path("in.y4m").write_bytes(b"YUV4MPEG2 W8 H8 F25:1 C420jpeg\n" + 2 * (b"FRAME\n" + bytes(96)))
    for line, message in (
        ("denoise photo.png - --format mp4", "is an image and cannot be written as a video, .mp4"),
        ("denoise photo.png - --image-quality 20", "is written as .png; choose one with --format"),
        ("denoise photo.png - --suffix -x", "is named already"),
        ("denoise in.y4m - --format png", "is written to standard output as Y4M; omit --format"),
    ):
        assert call(line) == 1
        captured = capsysbinary.readouterr()
        assert message in captured.err.decode()
        assert not captured.out


def test_transform_and_back(capsys: pytest.CaptureFixture[str]) -> None:
    call("example photo.png")
    assert call("transform photo.png c.npz --wavelet bior4.4 --level 4 --picture p.png") == 0
    assert call("inverse c.npz back.png") == 0
    np.testing.assert_array_equal(io.read("back.png").pixels, io.read("photo.png").pixels)
    assert io.read("p.png").pixels.shape == (240, 320)
    assert json_of("compare photo.png back.png", capsys)["psnr"] is None  # Infinity.
    assert call("denoise c.npz x.png") == 1
    assert call("inverse photo.png x.png") == 1


def test_approximations(capsys: pytest.CaptureFixture[str]) -> None:
    call("example photo.png")
    few, many = (json_of(f"approximate photo.png x.png -y --share {share}", capsys) for share in (0.02, 0.5))
    assert few["psnr"] < many["psnr"]
    assert few["share"] == pytest.approx(0.02, abs=1e-3)
    assert call("approximate photo.png low.png --low --level 2") == 0
    assert io.read("low.png").pixels.shape[0] in range(60, 70)
    assert call("approximate photo.png x.png") == 1
    assert call("approximate photo.png x.png --share 2") == 1


def test_pipelines_of_stages() -> None:
    assert parse_stage("soft:20:10") == Shrink("given", "soft", [20, 10])
    assert parse_stage("hard:30") == Shrink("given", "hard", 30.0)
    assert parse_stage("bayes:0.5") == Shrink("bayes", strength=0.5)
    assert parse_stage("blur:2@last") == Blur(2, at="last")
    assert parse_stage("unsharp:1:0.5") == Unsharp(1, 0.5)
    assert parse_stage("laplace:0.2@approximation") == Laplace(0.2, at="approximation")
    assert parse_stage("diagonal") == Laplace(0.1, "diagonal")
    assert parse_stage("gain:2:1") == Gain((2, 1))
    assert parse_stage("contrast:0.5") == Contrast(0.5)
    for text in (
        "soft:20:10",
        "hard:30",
        "bayes:0.5",
        "blur:2@last",
        "unsharp:1:0.5",
        "gain:2:1",
        "diagonal:0.2",
    ):
        assert format_stage(parse_stage(text)) == text
    assert format_stage(Shrink("bayes", levels=[1])) is None
    assert format_stage(Shrink("given", threshold=[{"ad": 1, "da": 2, "dd": 3}])) is None
    for text in ("sofd:20", "soft:x", "blur:1:2:3:4", "blur@nowhere", ""):
        with pytest.raises(undula.UndulaError):
            parse_stage(text)
    call("example noisy.png")
    assert call("filter noisy.png a.png -S bayes -S gain:1.5 --save p.json") == 0
    assert call("filter noisy.png b.png --pipeline p.json") == 0
    np.testing.assert_array_equal(io.read("a.png").pixels, io.read("b.png").pixels)
    assert call("filter noisy.png c.png") == 1
    assert call("filter noisy.png c.png -p none.json") == 1


@pytest.mark.usefixtures("opencl")
def test_json_reports(capsys: pytest.CaptureFixture[str]) -> None:
    assert json_of("info", capsys)["undula"] == undula.__version__
    assert "cdf97" in json_of("info --wavelets", capsys)
    report = json_of("scheme cdf53", capsys)
    assert {"scheme": "monolithic*", "operations": 18, "barriers": 2} in report["schemes"]
    assert json_of("scheme cdf53 sweldens", capsys)["operations"] == 16
    call("example photo.png")
    report = json_of("verify photo.png --second opencl:tiled", capsys)
    assert report["largest"] < 1e-9
    assert len(report["bands"]) == 10
    capsys.readouterr()
    status = call("accept --frames 3 --rate 0.01 --histogram h.png --json")
    report = json.loads(capsys.readouterr().out)
    assert status == 0
    assert report["accepted"]
    assert report["largest error"] <= 1
    assert io.read("h.png").pixels.shape == (300, 720, 3)
    assert call("accept --frames 2 --rate 1e9") == 3
    assert [row["size"] for row in json_of("bench --quick", capsys)] == ["512²", "1024²"]


@pytest.fixture(scope="module")
def some_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with images, an empty file and a text."""
    folder = tmp_path_factory.mktemp("files")
    for name in ("noisy", "kept"):
        assert call(f"example {folder / name}.png") == 0
    io.write(folder / "small.png", np.zeros((9, 9), "u1"))
    (folder / "empty.png").touch()
    (folder / "text.png").write_text("this is a text, not an image\n" * 20)
    return folder


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("denoise nothing.png x.png", "such file"),
        ("denoise noisy.png", "expected an input and an output"),
        ("denoise noisy.png noisy.png", "is an input"),
        ("denoise noisy.png ./noisy.png", "is an input"),
        ("denoise noisy.png x.xyz", "suffix"),
        ("denoise noisy.png x.png --method bays", "bayes"),
        ("denoise noisy.png x.png --wavelet dbb2", "db2"),
        ("denoise noisy.png x.png --level 50", "too many"),
        ("denoise noisy.png x.png --sigma -3", "negative"),
        ("denoise noisy.png x.png --max-pixels 10", "--max-pixels"),
        ("denoise noisy.png x.png --backend gpu", "cuda"),
        ("denoise noisy.png kept.png", "exists"),
        ("sharpen noisy.png x.png --method more", "unsharp"),
        ("enhance noisy.png x.png --amount 7", "from 0 to 1"),
        ("scheme cdf54", "cdf53"),
        ("scheme cdf53 swelden", "sweldens"),
        ("compare noisy.png small.png", "cannot be compared"),
        ("transform noisy.png x.txt", ".npz"),
        ("info empty.png", "empty"),
        ("info text.png", "no file format"),
        ("accept none.mp4", "such file"),
        ("example x.txt", "an image, a video, a DICOM file or a Zarr array"),
        ("filter noisy.png x.png -S soft:20 --save noisy.png", "is an input"),
        ("transform noisy.png x.npz --picture noisy.png", "is an input"),
        ("compare noisy.png kept.png --difference kept.png", "is an input"),
        ("approximate noisy.png noisy.png --share 0.1", "is an input"),
        ("denoise noisy.png x.png --over-time 8", "applies to video only"),
        ("denoise noisy.png kept.png -o many.png", "looks like a file"),
        ("denoise text.png x.mp4", "no file format"),
    ],
)
def test_errors_are_one_line(
    line: str, message: str, some_files: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(some_files, here, dirs_exist_ok=True)
    before = {p.name: p.read_bytes() for p in Path().iterdir()}
    capsys.readouterr()
    assert call(line) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("undula: ")
    assert error.count("\n") == 1
    assert {p.name: p.read_bytes() for p in Path().iterdir()} == before


def test_version_and_errors_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--version") == 0
    assert capsys.readouterr().out.strip() == undula.__version__
    assert call("info nothing.png --json") == 1
    assert "such file" in json.loads(capsys.readouterr().out)["error"]


def test_signals() -> None:
    """A signal while a video is written leaves no files behind."""
    import signal
    import time

    call("example noisy.mp4")
    run = [sys.executable, "-c", "import sys; from undula.cli import main; sys.exit(main())"]
    for number in (signal.SIGINT, signal.SIGTERM):
        busy = subprocess.Popen(
            [*run, "denoise", "noisy.mp4", "out.mp4", "--shifts", "4"], stderr=subprocess.PIPE, text=True
        )
        for _ in range(400):
            if [p for p in Path().iterdir() if p.name.startswith(".out")]:
                break
            time.sleep(0.02)
        busy.send_signal(number)
        _, error = busy.communicate(timeout=60)
        assert busy.returncode == 130
        assert "interrupted" in error
        assert sorted(p.name for p in Path().iterdir()) == ["noisy.mp4"]


def test_misspelled_command_and_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("denose x y") == 2
    assert call("denoise --strenght 3 x y") == 2
    assert "strength" in capsys.readouterr().err


@pytest.fixture(scope="module")
def fuzz() -> Any:
    """The module ``tools/fuzz.py``."""
    place = Path(__file__).parents[2] / "tools" / "fuzz.py"
    specification = importlib.util.spec_from_file_location("fuzz", place)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def sample_files(fuzz: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A small file of every kind, by name."""
    return fuzz.samples(tmp_path_factory.mktemp("fuzz") / "samples")  # type: ignore[no-any-return]


@pytest.mark.parametrize("part", range(4))
def test_files_with_flipped_bits(
    part: int, fuzz: Any, sample_files: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    """``tools/fuzz.py`` does this thousands of times; this test once for each format."""
    rng = np.random.default_rng(part)
    for name, content in list(sample_files.items())[part::4]:
        path = Path(f"broken{Path(name).suffix}")
        path.write_bytes(fuzz.mutated(content, rng))
        for line in (f"info {path}", f"denoise {path} out{path.suffix} -y --frames 3"):
            assert call(line) in (0, 1), line
            assert "Traceback" not in capsys.readouterr().err
    assert not [p for p in Path().iterdir() if p.name.startswith(".")]
