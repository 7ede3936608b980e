"""Transforms from store to store: the bits of the whole transform, and arrays that come back as they were."""

import json
import os
import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undula
from undula.errors import ArgumentError, ArgumentTypeError, FileError
from undula.stores import blocks
from undula.stores.coefficients import work_dtype
from undula.stores.partial import JOURNAL, PartialStore
from undula.stores.pyramid_stages import lowpass_moments

zarr = pytest.importorskip("zarr", reason="Zarr is not installed")
pytest.importorskip("dask.array", reason="Dask is not installed")

from undula import stores  # noqa: E402

MODES = ("symmetric", "periodic", "periodization", "reflect", "zero")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run each test in an empty folder, with small blocks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(blocks, "BLOCK_SAMPLES", 1 << 12)
    return tmp_path


def write(name: str, x: Any, chunks: tuple[int, ...], **options: Any) -> Any:
    array = zarr.create_array(name, shape=x.shape, dtype=x.dtype, chunks=chunks, **options)
    array[...] = x
    return array


def ramp(shape: tuple[int, ...], dtype: str = "u2") -> Any:
    rng = np.random.default_rng(0)
    return (np.indices(shape).sum(0) % 97 + rng.integers(0, 100, shape)).astype(dtype)


def assert_bands(path: str, expected: list[Any]) -> None:
    group = zarr.open_group(path, mode="r")
    np.testing.assert_array_equal(group["approximation"][...], expected[0])
    for level, details in zip(range(len(expected) - 1, 0, -1), expected[1:], strict=True):
        assert sorted(name for name, _ in group[f"level{level}"].arrays()) == sorted(details)
        for key, band in details.items():
            np.testing.assert_array_equal(group[f"level{level}/{key}"][...], band)


def normalised(x: Any, wavelet: str, level: int, axes: tuple[int, ...]) -> Any:
    """A level of a pyramid, from the whole array."""
    work = x.astype(work_dtype(x.dtype))
    low = undula.lwtn(work, wavelet, level, axes=axes)[0]
    low = low * low.dtype.type(lowpass_moments(wavelet, "symmetric")[0] ** (-level * len(axes)))
    info = np.iinfo(x.dtype)
    return np.clip(np.rint(low), info.min, info.max).astype(x.dtype)


@pytest.mark.parametrize("case", range(10))
def test_random_arrays_have_the_bits_of_the_whole_and_come_back(case: int) -> None:
    rng = np.random.default_rng(case)
    ndim = case % 3 + 1
    shape = tuple(int(n) for n in rng.integers(1, {1: 300, 2: 90, 3: 34}[ndim], ndim))
    chunks = tuple(int(rng.integers(max(1, n // 3), n + 3)) for n in shape)
    dtype = np.dtype(str(rng.choice("u1 u2 i2 i4 f4 f8 >u2".split())))
    x = (200 * rng.random(shape)).astype(dtype)
    wavelet, mode = str(rng.choice(["haar", "db2", "cdf97", "db5"])), str(rng.choice(MODES))
    level = int(rng.integers(0, 5))
    axes = tuple(int(axis) for axis in rng.permutation(ndim)[: rng.integers(1, ndim + 1)])
    write("x.zarr", x, chunks, zarr_format=2 + case % 2)
    native = dtype.newbyteorder("=")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about levels
        stores.transform("x.zarr", "c.zarr", wavelet, mode, level, axes)
        expected = undula.wavedecn(x.astype(work_dtype(native)), wavelet, mode, level, axes)
    assert_bands("c.zarr", expected)
    stores.inverse("c.zarr", "back.zarr")
    back = zarr.open_array("back.zarr", mode="r")
    assert (back.shape, back.dtype, back.metadata.zarr_format) == (shape, native, 2 + case % 2)
    if native.kind == "f":
        np.testing.assert_array_equal(back[...], undula.waverecn(expected, wavelet, mode, axes, shape=shape))
    else:
        np.testing.assert_array_equal(back[...], x)
    assert sorted(os.listdir()) == ["back.zarr", "c.zarr", "x.zarr"]


def test_headers_have_all_that_the_inverse_needs() -> None:
    x = ramp((40, 50), "i2")
    write("x.zarr", x, (16, 20), attributes={"stage": "raw"}, dimension_names=("y", "x"))
    stores.transform("x.zarr", "c.zarr", "db2", level=2, axes="x")
    header = dict(zarr.open_group("c.zarr", mode="r").attrs)["undula"]
    assert header == {
        "kind": "coefficients",
        "version": undula.__version__,
        "transform": "dwt",
        "wavelet": "db2",
        "mode": "symmetric",
        "levels": 2,
        "axes": [1],
        "shape": [40, 50],
        "dtype": "int16",
        "chunks": [16, 20],
        "dimension_names": ["y", "x"],
        "attributes": {"stage": "raw"},
    }
    stores.inverse("c.zarr", "back.zarr")
    back = zarr.open_array("back.zarr", mode="r")
    assert back.metadata.dimension_names == ("y", "x")
    assert back.chunks == (16, 20)
    assert dict(back.attrs) == {"stage": "raw"}
    coeffs = stores.read_coefficients("c.zarr")
    lazy = undula.waverecn(coeffs, "db2", axes=1, shape=x.shape)
    np.testing.assert_array_equal(np.rint(lazy.compute(scheduler="sync")), x)


def test_shards_are_written_whole_and_deep_transforms_in_stages() -> None:
    x = ramp((2, 146, 170))
    write("x.zarr", x, (1, 20, 20), shards=(1, 40, 40))
    stores.transform("x.zarr", "c.zarr", "cdf97", level=4, axes=(1, 2))
    expected = undula.wavedecn(x.astype("f4"), "cdf97", level=4, axes=(1, 2))
    assert_bands("c.zarr", expected)
    _, header = stores.coefficients.read_header("c.zarr")
    assert len(header.stages()) > 1
    stores.inverse("c.zarr", "back.zarr")
    np.testing.assert_array_equal(zarr.open_array("back.zarr", mode="r")[...], x)
    stores.apply("x.zarr", "same.zarr", lambda array: array + 1)
    same = zarr.open_array("same.zarr", mode="r")
    assert (same.chunks, same.shards) == ((1, 20, 20), (1, 40, 40))
    np.testing.assert_array_equal(same[...], x + 1)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_filters_keep_the_layout_of_the_source(zarr_format: int) -> None:
    x = ramp((60, 70), ">i2" if zarr_format == 2 else "i2")
    write("x.zarr", x, (16, 32), zarr_format=zarr_format, attributes={"a": 1}, fill_value=3)

    def work(array: Any) -> Any:
        coeffs = undula.wavedecn(array, "haar", level=1)
        return undula.waverecn([2 * coeffs[0], coeffs[1]], "haar").round().astype("i2")

    stores.apply("x.zarr", "y.zarr", work)
    y = zarr.open_array("y.zarr", mode="r")
    coeffs = undula.wavedecn(x, "haar", level=1)
    expected = undula.waverecn([2 * coeffs[0], coeffs[1]], "haar")
    np.testing.assert_array_equal(y[...], np.rint(expected))
    source = zarr.open_array("x.zarr", mode="r")
    assert y.metadata.to_dict() == source.metadata.to_dict()


@pytest.mark.parametrize(("wavelet", "centre"), [("haar", 0.5), ("cdf53", 0.0), ("cdf97", 0.0)])
def test_pyramids_have_the_approximations_of_the_whole(wavelet: str, centre: float) -> None:
    x = ramp((3, 150, 201))
    x[0, :20, :20] = 65535  # Approximations overshoot here, and are clipped.
    write("x.zarr", x, (1, 32, 32))
    stores.pyramid("x.zarr", "p.zarr", wavelet, 4, scale=(2, 0.5, 0.25), unit="micrometer")
    group = zarr.open_group("p.zarr", mode="r")
    np.testing.assert_array_equal(group["0"][...], x)
    image = dict(group.attrs)["ome"]["multiscales"][0]
    for level in range(1, 5):
        np.testing.assert_array_equal(group[str(level)][...], normalised(x, wavelet, level, (1, 2)))
        steps = image["datasets"][level]["coordinateTransformations"]
        assert steps[0] == {"type": "scale", "scale": [2, 0.5 * 2**level, 0.25 * 2**level]}
        shift = centre * (2**level - 1)
        assert steps[1:] == (
            [{"type": "translation", "translation": [0, 0.5 * shift, 0.25 * shift]}] if centre else []
        )
    assert not (Path("p.zarr") / "coefficients").exists()
    assert not list(Path("p.zarr").rglob(".undula*"))


@pytest.mark.parametrize("wavelet", ["haar", "cdf53", "cdf97", "db3"])
def test_levels_lie_where_their_metadata_say(wavelet: str) -> None:
    """A ramp is its own position: so is each sample of each level, away from the borders."""
    x = np.add.outer(np.arange(256.0), 3 * np.arange(256.0))
    write("x.zarr", x, (64, 64))
    stores.pyramid("x.zarr", "p.zarr", wavelet, 3)
    group = zarr.open_group("p.zarr", mode="r")
    for level, dataset in enumerate(dict(group.attrs)["ome"]["multiscales"][0]["datasets"]):
        scale, *shift = dataset["coordinateTransformations"]
        shifts = shift[0]["translation"] if shift else [0, 0]
        n = np.arange(256 >> level)
        y, x = (size * n + move for size, move in zip(scale["scale"], shifts, strict=True))
        inner = slice((256 >> level) // 3, (256 >> level) // 2)
        expected = np.add.outer(y, 3 * x)
        np.testing.assert_allclose(group[str(level)][inner, inner], expected[inner, inner], rtol=1e-6)


def test_pyramids_with_details_are_refined_to_the_image() -> None:
    x = ramp((100, 131))
    write("x.zarr", x, (32, 32))
    stores.pyramid("x.zarr", "p.zarr", "cdf97", 3, details=True)
    group = zarr.open_group("p.zarr", mode="r")
    levels = [level.compute(scheduler="sync") for level in stores.refine("p.zarr")]
    for number, level in zip((3, 2, 1, 0), levels, strict=True):
        # Approximations that were restored differ in their last bits, and so may the rounded ones.
        assert level.dtype == x.dtype
        difference = level.astype(int) - group[str(number)][...]
        assert np.abs(difference).max() <= (number not in (0, 3))
    stores.inverse("p.zarr/coefficients", "back.zarr")
    np.testing.assert_array_equal(zarr.open_array("back.zarr", mode="r")[...], x)


def test_pyramids_say_how_many_samples_are_not_finite() -> None:
    x = ramp((70, 90), "f4")
    x[3, 5], x[40:42, 60] = np.inf, np.nan
    write("x.zarr", x, (16, 16))
    with pytest.warns(RuntimeWarning, match=r"^3 samples of x\.zarr are NaN or infinite; so are"):
        stores.pyramid("x.zarr", "p.zarr", "cdf53", 2)
    group = zarr.open_group("p.zarr", mode="r")
    np.testing.assert_array_equal(group["0"][...], x)
    for level in (1, 2):
        expected = undula.lwtn(x, "cdf53", level)[0] / 2**level
        np.testing.assert_allclose(group[str(level)][...], expected, rtol=1e-6)
    # The low-pass filter of cdf53 has five taps: each hole spreads to three rows and columns of level 1.
    assert 3 < np.count_nonzero(~np.isfinite(group["1"][...])) <= 2 * 9
    with pytest.raises(FileError, match=r"x\.zarr has samples that are NaN .* omit the details"):
        stores.pyramid("x.zarr", "q.zarr", "cdf53", 2, details=True)
    assert not Path("q.zarr").exists()


def test_resumed_pyramids_count_samples_of_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    x = ramp((64, 64), "f4")
    x[::16, ::16] = np.nan
    write("x.zarr", x, (16, 16))

    def stop(done: int, total: int) -> None:
        if done == total - 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stores.pyramid("x.zarr", "p.zarr", "cdf53", 1, progress=stop)
    with pytest.warns(RuntimeWarning, match=r"^16 samples"):
        stores.pyramid("x.zarr", "p.zarr", "cdf53", 1)


def test_pyramids_open_in_other_software() -> None:
    models = pytest.importorskip("ome_zarr_models.v05.image", reason="ome-zarr-models is not installed")
    reader = pytest.importorskip("ome_zarr.reader", reason="ome-zarr is not installed")
    from ome_zarr.io import parse_url

    x = ramp((2, 90, 130))
    write("x.zarr", x, (1, 32, 32), zarr_format=2)
    stores.pyramid("x.zarr", "p.zarr", "cdf53", 2, details=True)
    image = models.Image.from_zarr(zarr.open_group("p.zarr", mode="r"))
    assert image.ome_attributes.version == "0.5"
    (node,) = list(reader.Reader(parse_url("p.zarr"))())
    assert [level.shape for level in node.data] == [(2, 90, 130), (2, 45, 65), (2, 23, 33)]
    np.testing.assert_array_equal(node.data[1].compute(scheduler="sync"), normalised(x, "cdf53", 1, (1, 2)))
    # The largest array of an image is the source of further work.
    stores.transform("p.zarr", "c.zarr", "haar", level=1)
    assert_bands("c.zarr", undula.wavedecn(x.astype("f4"), "haar", level=1))


def fail_after(count: int) -> Any:
    """Progress that interrupts the work."""

    def progress(done: int, total: int) -> None:
        if done >= count:
            raise KeyboardInterrupt

    return progress


def test_interrupted_work_is_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    x = ramp((200, 220))
    write("x.zarr", x, (32, 32))
    with pytest.raises(KeyboardInterrupt):
        stores.transform("x.zarr", "c.zarr", "db2", progress=fail_after(5))
    assert not Path("c.zarr").exists()
    with pytest.raises(FileError, match=r"half written.*run the command"):
        stores.inverse("c.zarr.partial", "back.zarr")
    with pytest.raises(FileError, match="half written"):
        stores.transform("c.zarr.partial/approximation", "other.zarr")
    with pytest.raises(FileError, match=r"other work \(wavelet was 'db2', and is 'haar'\).*overwrite=True"):
        stores.transform("x.zarr", "c.zarr", "haar")
    journal = Path("c.zarr.partial") / JOURNAL
    done = len(journal.read_text().splitlines()) - 2
    assert done >= 5
    with journal.open("a") as file:  # The line of a process that was killed while it wrote it.
        file.write("0 1")
    # A chunk of a process that was killed while it wrote it.
    leftover = Path("c.zarr.partial") / "level1" / "da" / "c" / "0" / "1.0123.partial"
    leftover.write_bytes(b"half")
    counts: list[int] = []
    stores.transform("x.zarr", "c.zarr", "db2", progress=lambda done, total: counts.append(done))
    assert counts[0] == done
    assert counts[-1] == len(counts) + done - 1
    assert_bands("c.zarr", undula.wavedecn(x.astype("f4"), "db2", level=3))
    assert not [
        path for path in Path("c.zarr").rglob("*") if path.suffix == ".partial" or "undula" in path.name
    ]


def test_work_begins_again_on_request() -> None:
    write("x.zarr", ramp((100, 100)), (32, 32))
    changes: list[dict[str, Any]] = [{"wavelet": "haar"}, {"resume": False}]
    for options in changes:
        with pytest.raises(KeyboardInterrupt):
            stores.transform("x.zarr", "c.zarr", "db2", level=1, overwrite=True, progress=fail_after(2))
        counts: list[tuple[int, int]] = []
        arguments = {"wavelet": "db2", "overwrite": True, "progress": lambda *now: counts.append(now)}  # noqa: B023
        stores.transform("x.zarr", "c.zarr", level=1, **{**arguments, **options})
        assert counts[0][0] == 0
    with pytest.raises(FileError, match=r"c\.zarr exists.*overwrite=True"):
        stores.transform("x.zarr", "c.zarr")
    assert not Path("c.zarr.partial").exists()


KILLED = """
import sys, time
from undula.stores import blocks, transform
blocks.BLOCK_SAMPLES = 1 << 12
def progress(done, total):
    print(done, flush=True)
    time.sleep(0.05)
transform("x.zarr", "c.zarr", "db2", level=2, progress=progress)
"""


def test_killed_work_is_resumed() -> None:
    x = ramp((512, 512))
    write("x.zarr", x, (32, 32))
    with subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while int(process.stdout.readline()) < 10:
            pass
        process.send_signal(signal.SIGKILL)
    assert not Path("c.zarr").exists()
    counts: list[int] = []
    stores.transform("x.zarr", "c.zarr", "db2", level=2, progress=lambda done, total: counts.append(done))
    assert counts[0] >= 10
    assert len(counts) > 10
    assert_bands("c.zarr", undula.wavedecn(x.astype("f4"), "db2", level=2))


FULL = """
import resource, sys
import undula
from undula.stores import blocks, transform
blocks.BLOCK_SAMPLES = 1 << 12
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
try:
    transform("x.zarr", "c.zarr", "db2", level=1)
except undula.FileError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="only POSIX systems can limit the size of files")
def test_a_full_disk_is_an_error_and_the_work_goes_on_later() -> None:
    x = np.zeros((256, 256), "f8")
    x[192:] = np.random.default_rng(0).random((64, 256))  # Only the last chunks are large.
    write("x.zarr", x, (64, 64))
    process = subprocess.run([sys.executable, "-c", FULL, "4096"], capture_output=True, text=True, timeout=60)
    assert process.stdout.count("\n") == 1, process.stderr
    assert "c.zarr: File too large; " in process.stdout
    assert "run the same command again to continue" in process.stdout
    assert sorted(os.listdir()) == ["c.zarr.partial", "x.zarr"]
    stores.transform("x.zarr", "c.zarr", "db2", level=1)
    assert_bands("c.zarr", undula.wavedecn(x, "db2", level=1))


def test_two_processes_do_not_write_one_output() -> None:
    pytest.importorskip("fcntl", reason="only POSIX systems lock files")
    with PartialStore(Path("out.zarr"), {"a": 1}, False, True) as first:
        with pytest.raises(FileError, match="another process is writing"):
            PartialStore(Path("out.zarr"), {"a": 1}, False, True).__enter__()
        zarr.create_group(str(first.path))
    assert Path("out.zarr/zarr.json").exists()


def test_folders_of_others_are_never_replaced() -> None:
    write("x.zarr", ramp((32, 32)), (16, 16))
    for name in ("mine", "c.zarr.partial"):
        Path(name).mkdir()
        (Path(name) / "notes.txt").write_text("mine")
    with pytest.raises(FileError, match="is not a Zarr store"):
        stores.transform("x.zarr", "mine", overwrite=True, level=1)
    with pytest.raises(FileError, match="no journal of Undula"):
        stores.transform("x.zarr", "c.zarr", overwrite=True, level=1)
    for target in ("x.zarr", "x.zarr/inside.zarr"):
        with pytest.raises(FileError, match="is an input or part of it"):
            stores.transform("x.zarr", target, overwrite=True, level=1)
    assert (Path("mine") / "notes.txt").exists()
    assert (Path("c.zarr.partial") / "notes.txt").exists()


def zarray(**changes: Any) -> str:
    """Metadata of an array of Zarr 2."""
    header = {
        "zarr_format": 2,
        "shape": [8, 8],
        "chunks": [4, 4],
        "dtype": "<f8",
        "compressor": None,
        "fill_value": 0,
        "order": "C",
        "filters": None,
    }
    return json.dumps({**header, **changes})


BAD = {
    "missing": (None, "no such file or directory"),
    "a folder": ({"notes.txt": "x"}, "is not a Zarr store"),
    "objects": ({".zarray": zarray(dtype="|O", filters=[{"id": "pickle"}], fill_value=None)}, "dtype object"),
    "text": ({".zarray": zarray(dtype="<U5", fill_value="")}, "must have numbers, got dtype"),
    "no samples": ({".zarray": zarray(shape=[0, 8])}, r"no samples to transform, its shape is \(0, 8\)"),
    "no axes": ({".zarray": zarray(shape=[], chunks=[])}, "no samples"),
    "empty chunks": ({".zarray": zarray(chunks=[0, 4])}, "bad.zarr"),
    "broken metadata": ({".zarray": '{"zarr_format": 2,'}, "cannot read bad.zarr as Zarr"),
    "several arrays": (
        {".zgroup": '{"zarr_format": 2}', "a/.zarray": zarray(), "b/.zarray": zarray()},
        "group with 2 arrays; name one of bad.zarr/a, bad.zarr/b",
    ),
    "no arrays": ({".zgroup": '{"zarr_format": 2}'}, "group with 0 arrays"),
    "broken OME": (
        {".zgroup": '{"zarr_format": 2}', ".zattrs": '{"multiscales": [{"datasets": []}]}'},
        "as OME-Zarr",
    ),
    "a damaged chunk": (
        {".zarray": zarray(compressor={"id": "zlib", "level": 1}), "0.0": "garbage"},
        r"cannot read .*bad\.zarr",
    ),
    "coefficients": (
        {
            "zarr.json": json.dumps(
                {"zarr_format": 3, "node_type": "group", "attributes": {"undula": {"kind": "coefficients"}}}
            )
        },
        "bad.zarr holds wavelet coefficients; run `undula inverse` first",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_sources_are_refused_and_leave_nothing(name: str) -> None:
    files, message = BAD[name]
    for path, content in (files or {}).items():
        (Path("bad.zarr") / path).parent.mkdir(parents=True, exist_ok=True)
        (Path("bad.zarr") / path).write_text(content)
    before = sorted(os.listdir())
    calls = [
        lambda: stores.transform("bad.zarr", "out.zarr", "haar", level=1),
        lambda: stores.pyramid("bad.zarr", "out.zarr", levels=1),
        lambda: stores.apply("bad.zarr", "out.zarr", lambda x: x),
    ]
    for call in calls:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(FileError, match=message) as caught:
                call()
        assert "\n" not in str(caught.value)
        assert sorted(os.listdir()) == before


def test_bad_arguments() -> None:
    write("x.zarr", ramp((32, 32)), (16, 16))
    write("nan.zarr", np.full((32, 32), np.nan), (16, 16))
    write("line.zarr", np.arange(50.0), (16,))
    cases: list[tuple[Any, str]] = [
        (lambda: stores.transform("x.zarr", "o.zarr", axes="z"), "unknown axis 'z'"),
        (lambda: stores.transform("x.zarr", "o.zarr", axes=(0, 0)), "once each"),
        (lambda: stores.transform("x.zarr", "o.zarr", axes=5), "axis 5 is out of range"),
        (lambda: stores.transform("x.zarr", "o.zarr", level=1, dtype="int32"), "float32 or float64"),
        (lambda: stores.transform("x.zarr", "o.zarr", level=1, zarr_format=1), "2 or 3"),
        (lambda: stores.transform("nan.zarr", "o.zarr", level=1), "NaN or infinite"),
        (lambda: stores.transform("x.zarr", "s3://bucket/o.zarr", level=1), "folders of a file system"),
        (lambda: stores.transform("x.zarr", "o.zarr", level=1, workers=0), "at least 1"),
        (lambda: stores.transform("x.zarr", "o.zarr", level=1, workers=1, scheduler="tcp://x"), "got both"),
        (lambda: stores.pyramid("line.zarr", "o.zarr"), "2 to 5 axes, got 1"),
        (lambda: stores.pyramid("x.zarr", "o.zarr", levels=6), "levels must be from 0 to 5"),
        (lambda: stores.pyramid("x.zarr", "o.zarr", scale=(1,)), "scale must have"),
        (lambda: stores.inverse("x.zarr", "o.zarr"), "a group is needed"),
        (lambda: stores.apply("x.zarr", "o.zarr", lambda x: x[1:]), "Dask array of shape"),
        (lambda: stores.apply("x.zarr", "o.zarr", lambda x: 1), "Dask array of shape"),
        (lambda: stores.apply(zarr.open("x.zarr"), "o.zarr", undula.denoise), "path or address, got Array"),
    ]
    for call, message in cases:
        with pytest.raises((ArgumentError, ArgumentTypeError, FileError), match=message):
            call()
    assert sorted(os.listdir()) == ["line.zarr", "nan.zarr", "x.zarr"]


def test_damaged_coefficients() -> None:
    write("x.zarr", ramp((64, 64)), (32, 32))
    stores.transform("x.zarr", "c.zarr", "haar", level=2)
    group = zarr.open_group("c.zarr")
    header = dict(group.attrs["undula"])
    for changes, message in (
        ({"levels": 1}, "the band approximation has shape"),
        ({"wavelet": "none"}, "unknown wavelet 'none'"),
        ({"kind": "none"}, "has no coefficients"),
        ({"axes": None}, "cannot read the coefficients"),
    ):
        group.attrs["undula"] = {**header, **changes}
        with pytest.raises(FileError, match=message):
            stores.inverse("c.zarr", "back.zarr")
    group.attrs["undula"] = header
    shutil.rmtree("c.zarr/level1/dd")
    with pytest.raises(FileError, match="the band level1/dd is missing"):
        stores.inverse("c.zarr", "back.zarr")
    assert sorted(os.listdir()) == ["c.zarr", "x.zarr"]
