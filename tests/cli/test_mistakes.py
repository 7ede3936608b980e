"""Incorrect arguments: each is reported at once, in one line, without a traceback."""

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import undula
from commands import call
from undula import io

ROOT = Path(__file__).parents[2]
HUGE = 10**20


@pytest.mark.parametrize("line", ["none", "denoise a b --none", "denoise a b --strength none"])
def test_lines_that_cannot_be_parsed(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(line) == 2
    assert capsys.readouterr().err.startswith("Usage: undula")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("filter in.png x.png -p in.png", "cannot read in.png: expected a pipeline as JSON"),
        ("filter in.png x.png -p folder", "cannot read folder"),
        ("denoise folder -", "several results cannot be written to standard output; name a folder"),
        ("filter in.png x.png -p missing.json", "cannot read missing.json"),
        ("filter in.png x.png -p broken.json", "cannot read broken.json"),
        ("filter in.png x.png -p list.json", "cannot read list.json"),
        ("filter in.png x.png -p deep.json", "cannot read deep.json"),
        (f"transform in.png x.npz --level {HUGE}", "level must be from 0 to 64"),
        (f"approximate in.png x.png --share 0.5 --level {HUGE}", "level must be from 0 to 64"),
        (f"verify in.png --first cpu --level {HUGE}", "level must be from 0 to 64"),
        (f"compare in.png in.png --level {HUGE}", "level must be from 0 to 64"),
        ("sharpen in.png x.png --sigma 1e9", "at most 1000"),
        ("filter in.png x.png -S unsharp:1e9:1", "at most 1000"),
        ("accept --frames 1 --rate nan", "rate"),
        ("accept --frames 1 --rate 0", "rate"),
        ("denoise '' x.png", "empty"),
        ("denoise in.png ''", "empty"),
        ("experiments schemes/table-2 --device cpu -o in.png", "in.png is a file"),
        ("inverse in.png x.png", "in.png is not a file of coefficients; write one with `undula transform`"),
        (
            "inverse arrays.npz x.png",
            "arrays.npz contains no coefficients; write them with `undula transform`",
        ),
        ("denoise in.png", "expected an input and an output"),
        ("denoise in.png x.png --method none", "unknown method 'none'"),
        ("filter in.png x.png", "expected either stages"),
        ("filter in.png x.png -p []", "a pipeline must be a JSON object"),
        ("filter in.png x.png -S soft:20 --level 100", "level must be an integer from 0 to 64; got 100"),
        ("filter in.png x.png -S soft:20 --save none/chain.json", "cannot write none/chain.json"),
        ("denoise in.png x.png --frames 3", "--frames applies to video only; in.png is an image"),
        ("denoise in.png x.png --codec ffv1", "--codec applies to video only; in.png is an image"),
        ("denoise in.png x.png --no-audio", "--no-audio applies to video only; in.png is an image"),
        ("denoise in.png arrays.npz -o y --crf 3", "--crf applies to video only"),
        ("filter in.png x.png -S none:1", "unknown stage 'none'"),
        ("compare in.png folder", "cannot read folder"),
        ("transform folder x.npz", "cannot read folder"),
    ],
)
def test_errors_are_one_line(line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    io.write("in.png", np.random.default_rng(0).integers(0, 256, (24, 32)).astype("u1"))
    np.savez("arrays.npz", x=np.ones((4, 4)))
    Path("folder").mkdir()
    Path("broken.json").write_text('{"wavelet"')
    Path("list.json").write_text("[1]")
    Path("deep.json").write_text("[" * 100_000)
    before = sorted(Path().rglob("*"))
    assert call(line) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("undula: ")
    assert error.count("\n") == 1
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize(
    "line",
    [
        "studio --no-browser --port 99999",
        "studio --no-browser --port -1",
        "studio --no-browser --max-upload 0",
        "studio --no-browser --max-pixels -1",
        "denoise in.png x.png --frames -1",
        "denoise in.png x.png --max-pixels 0",
        "denoise in.png x.png --over-time -1",
        "denoise in.png x.png --crf -1",
        "filter in.png x.png -S soft:20 --shifts -1",
        "accept --frames 0",
        "transform in.png x.npz --level -1",
    ],
)
def test_numbers_out_of_range_are_usage_errors(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(line) == 2
    assert f"Invalid value for '{line.split()[-2]}'" in capsys.readouterr().err.replace("' / '-l", "")


def test_options_replace_those_of_a_pipeline() -> None:
    image = np.random.default_rng(0).integers(0, 256, (64, 64)).astype("u1")
    io.write("in.png", image)
    undula.Pipeline("haar", 1, ["shrink"], mode="zero").save("chain.json")
    for options, expected in (
        ("--wavelet db3", undula.Pipeline("db3", 1, ["shrink"], mode="zero")),
        ("--level 2 --shifts 1", undula.Pipeline("haar", 2, ["shrink"], mode="zero", invariant=1)),
    ):
        assert call(f"filter in.png x.png -y -p chain.json {options} --save saved.json") == 0
        np.testing.assert_array_equal(io.read("x.png").pixels, expected(image))
        assert undula.Pipeline.load("saved.json") == expected


def test_compare_uses_the_given_level(capsys: pytest.CaptureFixture[str]) -> None:
    io.write("in.png", np.random.default_rng(0).integers(0, 256, (64, 64)).astype("u1"))
    for level, rows in ((0, 1), (1, 4), (2, 7)):
        assert call(f"compare in.png in.png --wavelet haar --level {level}") == 0
        assert len(capsys.readouterr().out.splitlines()) == 3 + rows


def test_number_of_levels_is_limited() -> None:
    with pytest.raises(undula.ArgumentError, match="from 0 to 64"):
        undula.wavedec([1.0, 2.0, 3.0], "haar", level=HUGE)
    for partial in (undula.upcoef, undula.downcoef):
        with pytest.raises(undula.ArgumentError, match="at most 64"):
            partial("a", [1.0, 2.0], "haar", level=HUGE)
    with pytest.raises(undula.ArgumentError, match="from 1 to 64"):
        undula.ForwardStream(32, "haar", level=HUGE)


@pytest.mark.parametrize("package", ["numpy", "typer", "rich"])
def test_interrupt_during_imports(package: str, tmp_path: Path) -> None:
    """An interrupt is reported in one line, whichever import it stops."""
    (tmp_path / f"{package}.py").write_text(
        f"import os, time\nos.kill(os.getpid(), {int(signal.SIGINT)})\ntime.sleep(20)\n"
    )
    entry = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["undula"]
    module, _, function = entry.partition(":")
    # Processes in the background of a shell ignore interrupts, and so do their children.
    heeded = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{heeded}; import sys; from {module} import {function}; sys.exit({function}())"
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", code, "info"],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 130
    assert done.stderr == "undula: interrupted; nothing was left half done\n"
