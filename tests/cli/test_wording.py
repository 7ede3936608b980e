"""Errors name the options of the command, and those of the library the arguments of functions."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

from commands import call
from undula import io
from undula.cli import screen
from undula.cli.wording import OptionName, in_options

ROOT = Path(__file__).parents[2] / "src" / "undula"
NAMES = {
    "overwrite": OptionName("--overwrite", is_switch=True),
    "resume": OptionName("--resume", "--no-resume", True),
    "audio": OptionName("--no-audio", is_switch=True).reversed(),
    "count": OptionName("--frames"),
    "codec": OptionName("--codec"),
    "sigma": OptionName("--sigma"),
    "max_pixels": OptionName("--max-pixels"),
}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("read the frames that it has with count=37", "read the frames that it has with --frames 37"),
        ("pass overwrite=True to replace it", "pass --overwrite to replace it"),
        ("overwrite=False, resume=False", "no --overwrite, --no-resume"),
        ("resume=True; audio=False leaves it out", "--resume; --no-audio leaves it out"),
        ("audio=True keeps it", "no --no-audio keeps it"),
        ("write .mkv with codec='ffv1'.", "write .mkv with --codec ffv1."),
        ("codec='two words' and sigma=-1.5e-3", "--codec 'two words' and --sigma -1.5e-3"),
        ("codec=None", "no --codec"),
        ("replace(overwrite=True) of Python", "replace(overwrite=True) of Python"),
        ("undula.wavelist(kind='discrete') lists all", "undula info --wavelets lists all"),
        ("rename it with codec=", "rename it with --codec"),
        ("raise it with max_pixels if", "raise it with --max-pixels if"),
        # What is no argument, or has no option, stays: also names of files.
        ("channel_axis=None, sigma=[1, 2], a sigma", "channel_axis=None, sigma=[1, 2], a sigma"),
        ("cannot read a/count=3/max_pixels.png", "cannot read a/count=3/max_pixels.png"),
        ("cannot read count=3.png, 'max_pixels'", "cannot read count=3.png, 'max_pixels'"),
        ("already --max-pixels and --frames 3", "already --max-pixels and --frames 3"),
    ],
)
def test_arguments_become_options(text: str, words: str) -> None:
    assert in_options(text, NAMES) == words
    assert in_options(words, NAMES) == words


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("denoise in.png x.png --max-pixels 10", "raise it with --max-pixels if you trust the file"),
        ("denoise in.png x.png --quality best --method directional", "omit --method directional or quality"),
        (
            "despeckle in.png x.png --kind log --looks 4",
            "apply to --kind intensity and --kind amplitude only",
        ),
        (
            "denoise in.png x.png --calibrate --noise poisson",
            "--noise poisson does not apply to --calibrate,",
        ),
        (
            "denoise in.png x.png --method sure --profile fast",
            "--profile fast does not apply to --method sure",
        ),
        ("denoise in.png x.png --method given", "denoise takes no thresholds; give them to the stage Shrink"),
        ("denoise in.tif x.zarr", "x.zarr exists and would be lost; pass --overwrite to replace it"),
        ("denoise in.tif y.zarr --filter-over Q", "rename them with --axes"),
        ("denoise in.y4m x.mp4 --over-time 5 --backend opencl", "pass --backend cpu or 'auto', got 'opencl'"),
        ("denoise in.y4m x.mp4", "or read the frames that it has with --frames 2"),
        ("filter in.y4m x.mp4 -S soft:1 --crf 64", "from 0, the best, to"),
        ("compare in.png in.png --max-pixels 10", "raise it with --max-pixels"),
    ],
)
def test_errors_name_options(line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    image = np.random.default_rng(0).integers(0, 256, (24, 32)).astype("u1")
    io.write("in.png", image)
    io.write("in.tif", image)
    frame = b"FRAME\n" + bytes(24 * 32 * 3 // 2)
    Path("in.y4m").write_bytes(b"YUV4MPEG2 W32 H24 F25:1 Ip A1:1 C420jpeg\n" + 2 * frame + frame[:99])
    assert call("denoise in.tif x.zarr --quiet") == 0
    assert call(line) == 1
    error = capsys.readouterr().err
    assert message in error
    assert not re.search(r"\w=[\w'\"]", error)
    assert call(f"{line} --json") == 1
    assert message in capsys.readouterr().out
    assert screen.message_line("count=3") == "count=3"  # Outside of a command, nothing is translated.


def messages(path: Path) -> list[str]:
    """Return the texts of all errors that a module raises."""
    raised = [
        node.exc
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Raise) and node.exc
    ]
    return [
        constant.value
        for error in raised
        for constant in ast.walk(error)
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
    ]


def test_the_library_names_no_options() -> None:
    """Its callers are functions, the command and Studio: the command alone knows its options."""
    front_ends = ("cli", "studio", "experiments")
    for path in sorted(ROOT.rglob("*.py")):
        if path.relative_to(ROOT).parts[0] not in front_ends:
            for text in messages(path):
                assert not re.search(r"(?<![\w-])--[a-z]", text), f"{path}: {text}"
