"""Commands on Zarr stores, as users run them."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

import undula
from commands import call, json_of
from undula import io

zarr = pytest.importorskip("zarr", reason="Zarr is not installed")
pytest.importorskip("dask.array", reason="Dask is not installed")


def write(name: str, shape: tuple[int, ...] = (3, 96, 120), **options: Any) -> Any:
    x = np.random.default_rng(0).normal(1000, 50, shape).astype("u2")
    zarr.create_array(name, data=x, chunks=(1, 32, 32)[-x.ndim :], **options)
    return x


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_transform_and_inverse(zarr_format: int, capsys: pytest.CaptureFixture[str]) -> None:
    x = write("volume.zarr", zarr_format=zarr_format)
    assert call("transform volume.zarr coeffs.zarr --wavelet db2 --level 2 --axes 1,2") == 0
    assert capsys.readouterr().out == "coeffs.zarr\n"
    low = zarr.open_array("coeffs.zarr/approximation", mode="r")
    np.testing.assert_array_equal(low[...], undula.wavedecn(x.astype("f4"), "db2", level=2, axes=(1, 2))[0])
    assert json_of("inverse coeffs.zarr back.zarr", capsys) == {"output": "back.zarr"}
    back = zarr.open_array("back.zarr", mode="r")
    assert back.metadata.zarr_format == zarr_format
    np.testing.assert_array_equal(back[...], x)


def test_quiet_commands_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    write("in.zarr", (64, 64))
    lines = [
        "transform in.zarr c.zarr",
        "inverse c.zarr b.zarr",
        "pyramid in.zarr p.zarr",
        "denoise in.zarr d.zarr",
    ]
    for line in lines:
        assert call(f"{line} --quiet") == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


@pytest.mark.parametrize("line", ["denoise", "sharpen --amount 0.5", "filter -S soft:20 --level 2"])
def test_filters_have_the_numbers_of_the_whole_array(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    x = write("in.zarr", (70, 90), dimension_names=("y", "x"))
    assert json_of(f"{line} in.zarr out.zarr", capsys)["files"] == [
        {"input": "in.zarr", "output": "out.zarr", "status": "written", "shape": [70, 90], "frames": 1}
    ]
    np.save("in.npy", x)
    assert call(f"{line} in.npy out.npy --quiet") == 0
    np.testing.assert_array_equal(zarr.open_array("out.zarr", mode="r")[...], np.load("out.npy"))


def test_axes_of_time_and_channels_are_not_filtered() -> None:
    x = write("in.zarr", dimension_names=("t", "y", "x"))
    assert call("denoise in.zarr out.zarr --quiet") == 0
    expected = undula.denoise(x, axes=(1, 2), channel_axis=None)
    np.testing.assert_array_equal(zarr.open_array("out.zarr", mode="r")[...], expected)


def test_pyramid_of_nans(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.ones((32, 32), np.float32)
    x[4, 4] = np.nan
    zarr.create_array("nan.zarr", data=x, chunks=(16, 16))
    assert call("pyramid nan.zarr p.zarr -l 1") == 0
    captured = capsys.readouterr()
    assert captured.out == "p.zarr\n"
    assert captured.err.startswith("undula: warning: 1 sample of nan.zarr is NaN or infinite; so are")


def test_pyramid(capsys: pytest.CaptureFixture[str]) -> None:
    x = write("volume.zarr", (96, 120))
    report = json_of(
        "pyramid volume.zarr image.zarr -l 2 --scale 0.5,0.5 --unit micrometer --details", capsys
    )
    assert report == {"output": "image.zarr", "levels": [[96, 120], [48, 60], [24, 30]]}
    image = dict(zarr.open_group("image.zarr", mode="r").attrs)["ome"]["multiscales"][0]
    assert image["axes"] == [{"name": name, "type": "space", "unit": "micrometer"} for name in "yx"]
    assert image["name"] == "volume"
    assert call("inverse image.zarr/coefficients back.zarr") == 0
    np.testing.assert_array_equal(zarr.open_array("back.zarr", mode="r")[...], x)


def test_files_become_images_of_ome_zarr(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(0).normal(1000, 50, (16, 2, 40, 44)).astype("u2")
    metadata = {"axes": "ZCYX", "Channel": {"Name": ["DAPI", "GFP"]}, "PhysicalSizeZ": 0.5}
    tifffile.imwrite("in.ome.tif", x, ome=True, photometric="minisblack", metadata=metadata)
    assert call("denoise in.ome.tif out.zarr --filter-over ZYX") == 0
    assert call("denoise out.zarr again.zarr --filter-over YX") == 0
    assert call("pyramid in.ome.tif pyramid.zarr -l 1") == 0
    assert capsys.readouterr().out.split() == ["out.zarr", "again.zarr", "pyramid.zarr"]
    for name in ("out", "again", "pyramid"):
        ome = dict(zarr.open_group(f"{name}.zarr", mode="r").attrs)["ome"]
        assert [axis["name"] for axis in ome["multiscales"][0]["axes"]] == ["c", "z", "y", "x"]
        assert ome["multiscales"][0]["axes"][1]["unit"] == "micrometer"
        assert ome["multiscales"][0]["datasets"][0]["coordinateTransformations"][0]["scale"][1] == 0.5
        assert [channel["label"] for channel in ome["omero"]["channels"]] == ["DAPI", "GFP"]
    expected = np.stack([undula.denoise(x[:, c], channel_axis=None) for c in range(2)])
    np.testing.assert_array_equal(zarr.open_array("out.zarr/0", mode="r")[...], expected)
    assert sorted(os.listdir()) == ["again.zarr", "in.ome.tif", "out.zarr", "pyramid.zarr"]


def test_stores_among_files_in_folders(capsys: pytest.CaptureFixture[str]) -> None:
    for folder in ("in", "in/deep"):
        Path(folder).mkdir()
        write(f"{folder}/{Path(folder).name}.zarr", (40, 40))
        io.write(f"{folder}/picture.png", np.full((16, 16), 9, "u1"))
    Path("in/broken.zarr").mkdir()
    assert call("denoise in out --json") == 0
    outputs = [file["output"] for file in json.loads(capsys.readouterr().out)["files"]]
    assert outputs == ["out/in.zarr", "out/picture.png"]
    assert call("denoise in all --recursive --json") == 0
    outputs = [file["output"] for file in json.loads(capsys.readouterr().out)["files"]]
    assert outputs == ["all/deep/deep.zarr", "all/deep/picture.png", "all/in.zarr", "all/picture.png"]


@pytest.mark.parametrize(
    "line",
    [
        "denoise in.zarr",
        "denoise in.tif",
        "transform in.zarr -l 1",
        "inverse c.zarr",
        "pyramid in.zarr -l 1",
        "pyramid in.tif -l 1",
        "example",
    ],
)
def test_existing_stores_are_replaced_only_with_overwrite(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    io.write("in.tif", write("in.zarr", (64, 64)))
    zarr.create_array("out.zarr", data=np.arange(5))
    assert call("transform in.zarr c.zarr -l 1") == 0
    capsys.readouterr()
    assert call(f"{line} out.zarr") == 1
    assert capsys.readouterr().err.startswith("undula: out.zarr exists and would be lost; add --overwrite")
    assert zarr.open_array("out.zarr", mode="r").shape == (5,)
    assert call(f"{line} out.zarr --overwrite") == 0
    assert not Path("out.zarr/c/0").is_file()
    assert sorted(os.listdir()) == ["c.zarr", "in.tif", "in.zarr", "out.zarr"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("denoise missing.zarr out.zarr", "cannot read missing.zarr: no such file"),
        ("transform empty.zarr out.zarr", "empty.zarr is not a Zarr store"),
        ("pyramid folder out.zarr", "folder is not a Zarr store"),
        ("denoise in.zarr out.zarr --scheduler nowhere", "cannot reach the scheduler nowhere: missing port"),
        ("denoise missing.tif out.zarr", "cannot read missing.tif: no such file"),
        ("denoise in.zarr out.zarr --filter-over ZYX", "there is no axis 'Z' to filter over"),
        (
            "denoise in.zarr out.zarr --axes ZYX",
            "--axes must have a letter of its own for each axis",
        ),
        ("denoise in.zarr out.png", "name an output that ends in .zarr"),
        ("transform in.zarr out.npz", "name an output that ends in .zarr"),
        ("inverse in.zarr out.zarr", "a group is needed"),
        ("transform in.zarr out.zarr --picture p.png", "--picture applies to images only"),
        ("transform in.png out.npz --workers 2", "--workers applies to Zarr stores only"),
        ("transform in.zarr out.zarr --axes q", "unknown axis 'q'"),
        ("denoise in.zarr out.zarr --over-time 4", "--over-time applies to video only"),
        ("denoise in.zarr in.zarr --overwrite", "is an input"),
        ("pyramid in.zarr out.zarr --scale a,b", "--scale takes numbers"),
        ("denoise half.zarr.partial out.zarr", "half written"),
        ("denoise in.zarr out.zarr --method none", "unknown method 'none'"),
    ],
)
def test_errors_are_one_line(line: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    write("in.zarr", (40, 40))
    io.write("in.png", np.zeros((16, 16), "u1"))
    for folder in ("empty.zarr", "folder", "half.zarr.partial"):
        Path(folder).mkdir()
    Path("half.zarr.partial/.undula-journal").write_text("{}\nprepared\n")
    before = sorted(Path().rglob("*"))
    assert call(line) == 1
    error = capsys.readouterr().err
    assert error.startswith("undula: ")
    assert message in error
    assert error.count("\n") == 1
    assert sorted(Path().rglob("*")) == before


SLOW = """
import sys, time
from undula.stores import blocks, coefficients
from undula.cli import main
blocks.BLOCK_SAMPLES = 1 << 12
run = coefficients.ForwardStage.run
def slowly(stage, number):
    time.sleep(0.05)
    run(stage, number)
coefficients.ForwardStage.run = slowly
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_an_interrupted_command_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    write("in.zarr", (512, 512))
    command = [sys.executable, "-c", SLOW, "transform", "in.zarr", "out.zarr", "--level", "1"]
    journal = Path("out.zarr.partial/.undula-journal")
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while not journal.exists() or journal.read_text().count("\n") < 6:
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert error.count("\n") == 1
    assert "out.zarr.partial keeps what is done, run the same command again to continue" in error
    monkeypatch.setattr("undula.stores.blocks.BLOCK_SAMPLES", 1 << 12)
    assert call("transform in.zarr out.zarr --level 1") == 0
    assert call("transform in.zarr again.zarr --level 1") == 0
    for name in ("approximation", "level1/ad", "level1/da", "level1/dd"):
        parts = (zarr.open_array(f"{store}.zarr/{name}", mode="r")[...] for store in ("out", "again"))
        np.testing.assert_array_equal(*parts)


STUCK = """
import sys, time
from undula.stores import coefficients, filter_passes, filtering
from undula.cli import main
def until_stuck(run):
    left = [6]
    def patched(*arguments):
        left[0] -= 1
        if left[0] < 0:
            print("stuck", flush=True)
            time.sleep(3600)
        return run(*arguments)
    return patched
from undula.stores import blocks
blocks.BLOCK_SAMPLES = 1 << 12
filter_passes.WORK_BYTES = 1
for place, name in (
    (coefficients.ForwardStage, "run"), (filter_passes.StatisticTask, "__call__"), (filtering, "_write_block")
):
    setattr(place, name, until_stuck(getattr(place, name)))
if sys.argv[1] == "apply":
    import undula
    undula.stores.apply("in.zarr", "out.zarr", lambda x: x + 1, description="one more")
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize(
    "line", ["transform in.zarr out.zarr --level 1", "denoise in.zarr out.zarr", "apply"]
)
def test_an_interrupt_does_not_wait_for_tasks(line: str) -> None:
    write("in.zarr", (160, 160))
    command = [sys.executable, "-c", STUCK, *line.split()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            while (process.stdout.readline()) != "stuck\n":
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=60)
        finally:
            process.kill()
    if line == "apply":
        assert process.returncode == -signal.SIGINT
        assert error.rstrip().endswith("KeyboardInterrupt")
    else:
        assert process.returncode == 130
        assert error == (
            "undula: interrupted; out.zarr.partial keeps what is done, run the same command again to"
            " continue\n"
        )
    assert Path("out.zarr.partial").is_dir()
    assert not Path("out.zarr").exists()
