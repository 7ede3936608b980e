"""Existing files are replaced only with ``--overwrite``."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import typer

from commands import call
from undula import io
from undula.cli.app import app
from undula.cli.filtering import SOME_FAILED

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]
# Parameters that name files to write.
OUTPUTS = {"paths", "target", "output", "difference", "show", "histogram", "save", "show_mask"}
# Commands that replace no files. The Studio exports under new names.
READ_ONLY = {"verify", "scheme", "info", "bench", "studio"}
# Commands that write folders, which test_zarr.py tests.
WRITE_STORES = {"pyramid"}

# Command lines, and the file that each would replace.
LINES = {
    "denoise in.png out.png": "out.png",
    "denoise in.png --output out.png": "out.png",
    "denoise in.png --output folder": "folder/in.png",
    "denoise pictures folder": "folder/one.png",
    "despeckle in.png out.png": "out.png",
    "sharpen in.png out.png": "out.png",
    "enhance in.png out.png": "out.png",
    "filter in.png out.png -S soft:3": "out.png",
    "filter in.png new.png -S soft:3 --save chain.json": "chain.json",
    "transform in.png coeffs.npz": "coeffs.npz",
    "transform in.png new.npz --picture out.png": "out.png",
    "inverse coeffs.npz out.png": "out.png",
    "approximate in.png out.png --share 0.1": "out.png",
    "compare in.png other.png --difference out.png": "out.png",
    "accept --frames 1 --rate 0.001 --histogram out.png clip.mp4": "out.png",
    "denoise scan.dcm new.dcm --show-mask out.png": "out.png",
    "export in.png out.png": "out.png",
    "example out.png": "out.png",
    "experiments schemes/table-2 --quick --device cpu --output folder": "folder/report.html",
}


def contents() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def picture(name: str, seed: int = 0) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    noise = 10 * np.random.default_rng(seed).standard_normal((32, 40))
    io.write(name, np.clip(np.arange(40) * 5 + noise, 0, 255).astype("u1"))


@pytest.mark.parametrize("line", LINES)
def test_existing_files_are_replaced_only_with_overwrite(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, name in enumerate(("in.png", "other.png", "out.png", "pictures/one.png", "folder/in.png")):
        picture(name, number)
    picture("folder/one.png", 9)
    assert call("transform in.png coeffs.npz") == 0
    Path("chain.json").write_text("some text")
    Path("folder/report.html").write_text("some text")
    for name in ("clip.mp4", "scan.dcm"):
        if name in line:
            call(f"example {name}")
    before = contents()
    capsys.readouterr()
    assert call(line) == 1
    message = capsys.readouterr().err
    assert LINES[line] in message
    assert f"{len(before[LINES[line]]):,} bytes" in message
    assert "--overwrite" in message
    assert message.count("\n") == 1
    assert contents() == before
    assert call(f"{line} --overwrite") == 0
    assert contents()[LINES[line]] != before[LINES[line]] or line.startswith("transform in.png coeffs")


@pytest.mark.parametrize(
    "line",
    [
        *(line for line in LINES if line.split()[0] not in ("accept", "example", "experiments")),
        "denoise in.png out.png --skip-existing",
        "denoise in.png store.zarr",
        "denoise in.png new.png --preview out.png",
        "accept --frames 1 --histogram out.png in.mp4",
    ],
)
def test_an_input_that_is_missing_is_named_first(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = line.split()
    source = words[-1] if words[0] == "accept" else words[1]
    words[words.index(source)] = gone = f"gone{source[-4:] if '.' in source else ''}"
    for name in ("other.png", "out.png", "folder/in.png", "coeffs.npz", "chain.json", "folder/gone.png"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("some text")
    (Path("store.zarr") / "zarr.json").parent.mkdir()
    Path("store.zarr/zarr.json").write_text("{}")
    before = contents()
    assert call(" ".join(words)) == 1
    message = capsys.readouterr().err
    assert f"cannot read {gone}: no such file or directory" in message
    assert contents() == before


def test_pattern_that_matches_two_images(capsys: pytest.CaptureFixture[str]) -> None:
    """``undula denoise *.png`` where two files match does not take the second as output."""
    picture("a.png")
    picture("b.png", 1)
    before = contents()
    assert call("denoise a.png b.png") == 1
    message = capsys.readouterr().err
    assert "b.png exists" in message
    assert "a PNG file of" in message
    assert "--output" in message
    assert contents() == before
    assert call("denoise a.png b.png -y") == 0
    assert contents()["a.png"] == before["a.png"]
    assert contents()["b.png"] != before["b.png"]


@pytest.mark.parametrize("output", ["b.png/out.png", "b.png/deep/out.png"])
def test_files_are_no_folders(output: str, capsys: pytest.CaptureFixture[str]) -> None:
    picture("a.png")
    picture("b.png", 1)
    before = contents()
    assert call(f"denoise a.png {output} -y") == 1
    assert capsys.readouterr().err == f"undula: cannot write {output}: b.png is not a folder\n"
    assert contents() == before


def test_every_command_with_outputs_is_tested() -> None:
    for name, command in COMMANDS.items():
        writes = OUTPUTS & {parameter.name for parameter in command.params}
        options = {word for parameter in command.params for word in parameter.opts}
        assert bool(writes) == ({"--overwrite", "-y"} <= options), name
        assert "--keep" not in options
        assert bool(writes) == (name not in READ_ONLY)
        assert not writes or name in WRITE_STORES or any(line.split()[0] == name for line in LINES)


def test_batch_skips_existing_outputs(capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(3):
        picture(f"in/{number}.png", number)
    picture("out/1.png", 7)
    kept = Path("out/1.png").read_bytes()
    assert call("denoise in -o out --json") == SOME_FAILED
    report = json.loads(capsys.readouterr().out)
    assert [file["output"] for file in report["files"]] == ["out/0.png", "out/2.png"]
    assert [error["input"] for error in report["errors"]] == ["in/1.png"]
    assert Path("out/1.png").read_bytes() == kept


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("transform in.png x.npz --picture ./x.npz -y", "two outputs"),
        ("filter in.png x.png -S soft:3 --save x.png -y", "two outputs"),
        ("filter in.png x.png -S soft:3 --save in.png -y", "is an input"),
        ("filter in.png x.png --pipeline chain.json --save chain.json -y", "is an input"),
        ("denoise in.png in.png -y", "is an input"),
        ("denoise folder/in.png in.png -o . -y", "would both be written to"),
        ("denoise folder/in.png folder -y", "is an input"),
        ("denoise a/x.png b/y.png c/y.png -o d -y", "would both be written to"),
        ("denoise a/x.png x.png -o . -y", "would both be written to"),
        ("compare in.png out.png --difference out.png -y", "is an input"),
        ("example folder -y", "is a folder"),
        ("inverse coeffs.npz folder -y", "is a folder"),
        ("compare in.png out.png --difference folder -y", "is a folder"),
    ],
)
def test_output_that_is_an_input_a_folder_or_another_output(
    line: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("in.png", "out.png", "folder/in.png", "a/x.png", "b/y.png", "c/y.png", "x.png"):
        picture(name)
    Path("chain.json").write_text('{"wavelet": "haar", "level": 1, "stages": []}')
    call("transform in.png coeffs.npz")
    before = contents()
    capsys.readouterr()
    assert call(line) == 1
    assert message in capsys.readouterr().err
    assert contents() == before


def test_batch_does_not_replace_its_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    """A result would replace a file that is read later."""
    picture("in/a.png", 1)
    picture("in/deep/b.png", 2)
    picture("in/b.png", 3)
    before = contents()
    assert call("denoise in/deep/b.png in/a.png -o in -y") == SOME_FAILED
    assert "is an input" in capsys.readouterr().err
    assert {name: contents()[name] for name in ("in/a.png", "in/deep/b.png")} == {
        name: before[name] for name in ("in/a.png", "in/deep/b.png")
    }


def test_links(capsys: pytest.CaptureFixture[str]) -> None:
    """A broken link counts as an existing file, and a link is replaced, not its target."""
    picture("in.png")
    picture("precious.png", 1)
    kept = Path("precious.png").read_bytes()
    os.symlink("nowhere.png", "broken.png")
    os.symlink("precious.png", "link.png")
    for name in ("broken.png", "link.png"):
        assert call(f"denoise in.png {name}") == 1
        assert "exists" in capsys.readouterr().err
        assert Path(name).is_symlink()
    assert call("denoise in.png link.png -y") == 0
    assert Path("precious.png").read_bytes() == kept


def test_measuring_again_requires_overwrite(capsys: pytest.CaptureFixture[str]) -> None:
    line = "experiments schemes/table-2 --quick --device cpu"
    assert call(line) == 0
    before = contents()
    capsys.readouterr()
    assert call(line) == 1
    message = capsys.readouterr().err
    assert "schemes/table-2 on cpu" in message
    assert "--overwrite" in message
    assert contents() == before
    assert call("experiments schemes/table-3 --quick --device cpu") == 0  # Adds to the results.
    assert len(json.loads(Path("experiments/results.json").read_text())["results"]) == 2
    assert call(f"{line} -y") == 0


def test_images_without_noise_are_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.png", "b.png"):
        io.write(tmp_path / name, io.Picture(np.full((32, 40), 90, "u1"), "png"))
    assert call(f"denoise {tmp_path}/a.png {tmp_path}/b.png --output {tmp_path}/clean") == 0
    said = "undula: warning: no noise was found, so nothing was changed; pass --sigma if there is some\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("over_time", [0, 2])
def test_clips_are_without_noise_if_no_plane_has_any(
    over_time: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    for name, sigma in (("noisy", 10), ("flat", 0)):
        with (tmp_path / f"{name}.y4m").open("wb") as file:
            file.write(b"YUV4MPEG2 W48 H40 F25:1 C420jpeg\n")
            for _ in range(4):
                luma = (120 + sigma * rng.normal(size=(40, 48))).astype("u1")
                file.write(b"FRAME\n" + luma.tobytes() + bytes([128]) * (2 * 20 * 24))
        options = f"--over-time {over_time}" if over_time else ""
        assert call(f"denoise {tmp_path}/{name}.y4m {tmp_path}/{name}-clean.y4m {options}") == 0
        assert ("no noise was found" in capsys.readouterr().err) == (name == "flat")
