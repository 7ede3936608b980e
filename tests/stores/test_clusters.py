"""Work on a real cluster: workers and schedulers that are killed, and commands that use one."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undula
from commands import call, json_of
from undula import io, stores
from undula.errors import SchedulerError
from undula.stores import blocks, filter_passes

distributed = pytest.importorskip("distributed", reason="Dask's scheduler is not installed")
zarr = pytest.importorskip("zarr", reason="Zarr is not installed")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run each test in an empty folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(blocks, "BLOCK_SAMPLES", 1 << 12)
    monkeypatch.setattr(filter_passes, "WORK_BYTES", 1)
    return tmp_path


def volume(shape: tuple[int, ...] = (4, 128, 128)) -> Any:
    rng = np.random.default_rng(0)
    x = (np.indices(shape).sum(0) % 97 + rng.integers(0, 100, shape)).astype("u2")
    zarr.create_array("x.zarr", data=x, chunks=(1, 32, 32))
    return x


def same(first: str, second: str) -> bool:
    """Whether two stores have the same files with the same bytes."""

    def content(folder: str) -> dict[str, bytes]:
        files = (path for path in Path(folder).rglob("*") if path.is_file())
        return {str(path.relative_to(folder)): path.read_bytes() for path in files}

    return content(first) == content(second)


def processes(cluster: Any) -> list[int]:
    """Wait for all workers, and return their processes."""
    with distributed.Client(cluster) as client:
        client.wait_for_workers(len(cluster.workers))
        return list(client.run(os.getpid).values())


def test_a_worker_is_killed_in_the_middle(cluster: Any) -> None:
    volume()
    address = cluster.scheduler_address
    pids = processes(cluster)
    killed: list[int] = []

    def progress(done: int, total: int) -> None:
        if done >= 4 and not killed:
            killed.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)

    stores.transform("x.zarr", "c.zarr", "db2", level=2, axes=(1, 2), scheduler=address, progress=progress)
    assert killed
    stores.transform("x.zarr", "expected.zarr", "db2", level=2, axes=(1, 2))
    assert same("c.zarr", "expected.zarr")


def test_a_worker_is_killed_while_it_filters(cluster: Any) -> None:
    x = volume((8, 96, 96))
    pids = processes(cluster)
    killed: list[int] = []

    def progress(done: int, total: int) -> None:
        if done >= 4 and not killed:
            killed.append(pids[1])
            os.kill(pids[1], signal.SIGKILL)

    def work(array: Any) -> Any:
        return undula.denoise(array, axes=(1, 2), channel_axis=None, invariant=0)

    stores.apply("x.zarr", "y.zarr", work, scheduler=cluster.scheduler_address, progress=progress)
    assert killed
    expected = undula.denoise(x, axes=(1, 2), channel_axis=None, invariant=0)
    np.testing.assert_array_equal(zarr.open_array("y.zarr", mode="r")[...], expected)


def test_a_scheduler_is_lost_and_the_work_goes_on_elsewhere(cluster: Any) -> None:
    volume()
    lost = distributed.LocalCluster(
        n_workers=1, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0", silence_logs=50
    )

    def progress(done: int, total: int) -> None:
        if done >= 4:
            lost.close()

    options: dict[str, Any] = {"level": 1, "axes": (1, 2)}
    with pytest.raises(
        SchedulerError, match=r"was lost; \d+ of \d+ regions are done, run the same command"
    ) as e:
        stores.transform("x.zarr", "c.zarr", scheduler=lost.scheduler_address, progress=progress, **options)
    assert "\n" not in str(e.value)
    assert not Path("c.zarr").exists()
    counts: list[int] = []
    stores.transform(
        "x.zarr",
        "c.zarr",
        scheduler=cluster.scheduler_address,
        progress=lambda done, total: counts.append(done),
        **options,
    )
    assert counts[0] >= 4
    stores.transform("x.zarr", "expected.zarr", **options)
    assert same("c.zarr", "expected.zarr")
    undula.keep_memory(None)  # The worker in this process has limited it.


def test_errors_of_tasks_are_those_of_the_caller(cluster: Any) -> None:
    zarr.create_array("nan.zarr", data=np.full((64, 64), np.nan), chunks=(32, 32))
    with pytest.raises(undula.FileError, match=r"nan\.zarr has samples that are NaN"):
        stores.transform("nan.zarr", "c.zarr", "haar", level=1, scheduler=cluster.scheduler_address)
    assert os.listdir() == ["nan.zarr"]


@pytest.fixture
def pictures() -> Path:
    """A folder of images, one of which is truncated, and a Zarr array."""
    folder = Path("in")
    (folder / "deep").mkdir(parents=True)
    rng = np.random.default_rng(0)
    for number in range(6):
        io.write(folder / f"{number}.png", rng.integers(0, 256, (24, 24)).astype("u1"))
    io.write(folder / "deep" / "6.png", rng.integers(0, 256, (24, 24)).astype("u1"))
    (folder / "2.png").write_bytes((folder / "2.png").read_bytes()[:40])
    zarr.create_array(str(folder / "7.zarr"), data=rng.random((3, 48, 48)), chunks=(3, 24, 24))
    return folder


def test_many_files_on_a_cluster(cluster: Any, pictures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"denoise in out --recursive --scheduler {cluster.scheduler_address}"
    assert call(f"{line} --json") == 4
    captured = capsys.readouterr()
    report = json.loads(captured.out)
    names = ["0.png", "1.png", "3.png", "4.png", "5.png", "7.zarr", "deep/6.png"]
    assert [file["output"] for file in report["files"]] == [f"out/{name}" for name in names]
    assert [error["input"] for error in report["errors"]] == ["in/2.png"]
    assert captured.err.splitlines()[-1] == "undula: 1 of 8 files was not filtered"
    assert call("denoise in alone --recursive --quiet") == 4
    for name in names[:5]:
        assert (Path("out") / name).read_bytes() == (Path("alone") / name).read_bytes()
    assert same("out/7.zarr", "alone/7.zarr")
    capsys.readouterr()
    assert call(line) == 1  # Nothing is overwritten.
    assert "exist" in capsys.readouterr().err


def test_commands_on_a_cluster(cluster: Any, capsys: pytest.CaptureFixture[str]) -> None:
    x = volume()
    address = f"--scheduler {cluster.scheduler_address}"
    assert call(f"transform x.zarr c.zarr --level 2 --axes 1,2 {address}") == 0
    assert call(f"inverse c.zarr back.zarr {address}") == 0
    np.testing.assert_array_equal(zarr.open_array("back.zarr", mode="r")[...], x)
    assert json_of(f"pyramid x.zarr p.zarr --levels 1 {address}", capsys) == {
        "output": "p.zarr",
        "levels": [[4, 128, 128], [4, 64, 64]],
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("transform x.zarr c.zarr --level 1 --scheduler tcp://127.0.0.1:1", "cannot reach the scheduler"),
        ("denoise in out --scheduler nonsense://1", "cannot reach the scheduler nonsense://1"),
        ("denoise x.zarr y.zarr --scheduler tcp://127.0.0.1:1 --workers 2", "got both"),
        ("denoise - out.png --scheduler {address}", "cameras and pipes"),
    ],
)
def test_schedulers_that_cannot_be_used(
    line: str,
    message: str,
    cluster: Any,
    pictures: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("undula.stores.running.CONNECT_TIMEOUT_S", 0.5)
    volume()
    assert call(line.format(address=cluster.scheduler_address)) == 1
    error = capsys.readouterr().err
    assert error.startswith("undula: ")
    assert message in error
    assert error.count("\n") == 1
    assert sorted(os.listdir()) == ["in", "x.zarr"]
