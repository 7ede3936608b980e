"""Volumes filtered in 3-D and clips filtered over time: previews, exports, commands and programs agree."""

import asyncio
import shlex
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undula
from undula import io
from undula.cli import main
from undula.filters import Pipeline, Shrink
from undula.filters.verbs import Denoising, Despeckling
from undula.io.samples import scene, write_clip
from undula.io.stack import StackAxes
from undula.studio import renderer as renderer_module
from undula.studio.budget import MemoryBudget, ServerBudget
from undula.studio.chain import FilterChain
from undula.studio.code import CodeSource, command_line, python_code
from undula.studio.decoding import StudioLimits
from undula.studio.export_jobs import ExportJob, run_job
from undula.studio.exports import _job_options
from undula.studio.extents import TIME, VOLUME, VOLUME_AND_TIME, StackNames, extents_of
from undula.studio.inputs import Input, open_input
from undula.studio.renderer import Renderer, RenderRequest
from undula.studio.session import Session
from undula.studio.views import FilteredFrame, Settings

PIPELINE = Pipeline("db2", 2, [Shrink("bayes")])
BLOCK = io.read(io.sample("volume")).pixels[:20, 60:100, 70:118]


@pytest.fixture
def opened() -> Iterator[Any]:
    """Open files, which are closed afterwards."""
    inputs: list[Input] = []

    def open_file(path: Path) -> Input:
        inputs.append(open_input(path, path.name, StudioLimits()))
        return inputs[-1]

    yield open_file
    for each in inputs:
        each.close()


def chain_of(extent: str, over_time: int = 8, verb: Any = None, pipeline: Pipeline = PIPELINE) -> FilterChain:
    chain = FilterChain().with_pipeline(pipeline if verb is None else verb.pipeline(), verb)
    return replace(chain, extent=extent, over_time=over_time)


def shown_frame(
    shown: Input, number: int, chain: FilterChain, renderer: Renderer | None = None, exact: bool = True
) -> FilteredFrame:
    """The frame that the Studio shows."""
    renderer = renderer or Renderer(MemoryBudget(1 << 30))
    applied = chain.applied(shown.first_frame.shape, shown.extents)
    request = RenderRequest(shown, number, applied, Settings(), exact=exact)
    return renderer.render(request, threading.Event()).result


def run_command(chain: FilterChain, shown: Input, target: str) -> None:
    applied = chain.applied(shown.first_frame.shape, shown.extents)
    assert main(shlex.split(command_line(applied, str(shown.path), target))[1:]) == 0


def run_export(chain: FilterChain, shown: Input, target: str, **more: Any) -> None:
    run_job(ExportJob(str(shown.path), target, **_job_options(chain), **more), lambda done, total: None)


def run_program(chain: FilterChain, shown: Input, target: str, page: int = 0) -> None:
    applied = chain.applied(shown.first_frame.shape, shown.extents)
    kind = "video" if shown.video else "dicom" if shown.dicom is not None else "picture"
    exec(python_code(applied, CodeSource(str(shown.path), page, kind=kind), target), {})


def test_what_can_be_filtered_together() -> None:
    assert extents_of("picture", False, StackNames("", ())) == {}
    assert list(extents_of("video", False, StackNames("", ()))) == [TIME]
    assert list(extents_of("clip", True, StackNames("I", (9,)))) == [TIME]
    assert list(extents_of("volume", True, StackNames("I", (9,)))) == [VOLUME]
    assert extents_of("volume", False, StackNames("C", (3,))) == {}
    assert [each.over for each in extents_of("volume", False, StackNames("I", (9,))).values()] == ["IYX"]
    assert extents_of("clip", False, StackNames("I", (9,)))[TIME].over == "IYX"
    stack = StackNames.of(StackAxes("TCZYX", (3, 2, 5, 8, 8)))
    overs = {key: (each.over, each.axes) for key, each in extents_of("volume", False, stack).items()}
    assert overs == {VOLUME: ("ZYX", None), TIME: ("TYX", None), VOLUME_AND_TIME: ("TZYX", None)}
    unknown = extents_of("volume", False, StackNames.of(StackAxes("QQYX", (3, 5, 8, 8))))
    assert (unknown[VOLUME].over, unknown[VOLUME].axes) == ("ZYX", "TZYX")


def test_a_volume_is_filtered_in_3d(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Any) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("volume.npy", BLOCK)
    shown, chain = opened(tmp_path / "volume.npy"), chain_of(VOLUME)
    expected = PIPELINE(BLOCK, channel_axis=None)
    assert (expected != np.stack([PIPELINE(page) for page in BLOCK])).any()
    run_command(chain, shown, "command.npy")
    run_program(chain, shown, "program.npy")
    run_export(chain, shown, "export.npy")
    run_export(chain, shown, "frames", frames=True)
    for name in ("command", "program", "export"):
        np.testing.assert_array_equal(np.load(f"{name}.npy"), expected)
    np.testing.assert_array_equal(io.read("frames/frame 00007.png").pixels, expected[6])
    renderer = Renderer(MemoryBudget(1 << 30))
    for number in (0, 7, 19):
        np.testing.assert_array_equal(shown_frame(shown, number, chain, renderer).after, expected[number])
    for plane in (1, 2):
        shown.set_plane(plane)
        np.testing.assert_array_equal(shown_frame(shown, 11, chain, renderer).after, expected.take(11, plane))
        np.testing.assert_array_equal(shown.frame(11), BLOCK.take(11, plane))


@pytest.mark.parametrize("extent", [VOLUME, TIME, VOLUME_AND_TIME])
def test_hyperstacks(extent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Any) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    pixels = rng.integers(0, 4000, (3, 5, 2, 24, 28)).astype(np.uint16)  # TZCYX
    axes = StackAxes("TZCYX", pixels.shape, channel_names=("DAPI", "GFP"))
    io.write("stack.ome.tif", io.Picture(pixels.reshape(-1, 24, 28), pages=True, stack=axes))
    shown, chain = opened(tmp_path / "stack.ome.tif"), chain_of(extent)
    assert shown.position_text(13) == "T 2 Z 2 C 2 · slice 14 / 30"
    over = shown.extents[extent].over
    expected = io.read("stack.ome.tif").filtered(PIPELINE, over=over).pixels
    run_command(chain, shown, "command.ome.tif")
    run_export(chain, shown, "export.ome.tif")
    for name in ("command", "export"):
        np.testing.assert_array_equal(io.read(f"{name}.ome.tif").pixels, expected)
    renderer = Renderer(MemoryBudget(1 << 30))
    for number in (0, 13, 29):
        np.testing.assert_array_equal(shown_frame(shown, number, chain, renderer).after, expected[number])
    shown.set_plane(1, 13)  # XZ at time 2, channel 2
    if extent == TIME:
        with pytest.raises(undula.ArgumentError, match="show that plane, or filter volumes"):
            shown_frame(shown, 9, chain, renderer)
        return
    volume = expected.reshape(pixels.shape)[1, :, 1]
    np.testing.assert_array_equal(shown_frame(shown, 9, chain, renderer).after, volume[:, 9])
    np.testing.assert_array_equal(shown.frame(9), pixels[1, :, 1, 9])


def test_images_without_noise_are_named(tmp_path: Path, opened: Any) -> None:
    for name, image in (("flat", np.full((40, 48), 90, "u1")), ("noisy", BLOCK[0])):
        np.save(tmp_path / f"{name}.npy", image)
        renderer, chain = Renderer(MemoryBudget(1 << 30)), FilterChain().with_pipeline(PIPELINE)
        shown_frame(opened(tmp_path / f"{name}.npy"), 0, chain, renderer)
        assert renderer.last is not None
        assert renderer.last.note == (renderer_module.NO_NOISE if name == "flat" else "")


def test_large_volumes_are_previewed_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Any
) -> None:
    monkeypatch.setattr(renderer_module, "MAX_LIVE_SAMPLES", 1 << 12)
    volume = np.concatenate([BLOCK, BLOCK[::-1]])
    np.save(tmp_path / "volume.npy", volume)
    shown, chain = opened(tmp_path / "volume.npy"), chain_of(VOLUME)
    renderer = Renderer(MemoryBudget(1 << 30))
    preview = shown_frame(shown, 30, chain, renderer, exact=False)
    assert preview.note == "preview of 16 slices; the whole volume follows"
    np.testing.assert_array_equal(preview.after, PIPELINE(volume[22:38], channel_axis=None)[8])
    result = shown_frame(shown, 30, chain, renderer)
    assert not result.note
    np.testing.assert_array_equal(result.after, PIPELINE(volume, channel_axis=None)[30])
    assert not shown_frame(shown, 3, chain, renderer, exact=False).note  # The volume is kept.


@pytest.mark.parametrize("length", [7, 8])
def test_windows_around_a_frame_give_what_the_whole_clip_gives(
    length: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    write_clip(tmp_path / "clip.mp4", 12.0, 23)
    shown, chain = opened(tmp_path / "clip.mp4"), chain_of(TIME, length)
    run_export(chain, shown, "frames", frames=True)
    expected = [io.read(path).pixels for path in sorted(Path("frames").iterdir())]
    for number in (0, 5, 11, 12, 18, 22):
        result = shown_frame(shown, number, chain)
        np.testing.assert_array_equal(result.after, expected[number])
        np.testing.assert_array_equal(result.before, shown.frame(number))
    renderer = Renderer(MemoryBudget(1 << 30))  # that goes on from frame to frame, and back
    for number in (3, 4, 6, 5, 14, 2):
        np.testing.assert_array_equal(shown_frame(shown, number, chain, renderer).after, expected[number])
    if length == 8:
        run_program(chain, shown, "frame.png", 11)
        np.testing.assert_array_equal(io.read("frame.png").pixels, expected[11])
        run_command(chain, shown, "command.mkv")
        run_export(chain, shown, "export.mkv")
        pairs = zip(io.read_frames("command.mkv"), io.read_frames("export.mkv"), strict=True)
        assert all((a == b).all() for a, b in pairs)


def test_denoising_over_time_follows_motion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    write_clip(tmp_path / "clip.mp4", 12.0, 12)
    task = Denoising(strength=1.2, luma=0.9)
    shown, chain = opened(tmp_path / "clip.mp4"), chain_of(TIME, 4, task)
    assert chain.follows_motion
    frames = np.stack(list(io.read_frames("clip.mp4")))
    expected = undula.denoise(frames, over_time=4, strength=1.2, luma=0.9)
    np.testing.assert_array_equal(shown_frame(shown, 5, chain).after, expected[5])
    run_program(chain, shown, "frame.png", 5)
    np.testing.assert_array_equal(io.read("frame.png").pixels, expected[5])
    run_command(chain, shown, "command.mkv")
    run_export(chain, shown, "export.mkv")
    pairs = zip(io.read_frames("command.mkv"), io.read_frames("export.mkv"), strict=True)
    assert all((a == b).all() for a, b in pairs)
    # What the filter cannot do is said in one line; a chain that was changed is filtered in windows.
    with pytest.raises(undula.ArgumentError, match=r"method='bayes' does not apply to over_time=4"):
        shown_frame(shown, 5, chain_of(TIME, 4, Denoising(method="bayes")))
    applied = chain.applied(shown.first_frame.shape, shown.extents)
    request, renderer = RenderRequest(shown, 5, applied, Settings("cuda:0")), Renderer(MemoryBudget(1 << 30))
    with pytest.raises(undula.ArgumentError, match="choose it as the device"):
        renderer.render(request, threading.Event())
    changed = chain.configure(wavelet="haar")
    assert not changed.follows_motion
    assert chain_of(TIME, 4, Despeckling()).applied((8, 8), shown.extents).task is None


def test_animations_are_filtered_over_all_frames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    frames = np.stack([scene(40, 50, k / 8, 12.0) for k in range(6)])
    frames = frames // 64 * 64  # GIF has no more than 256 colours.
    io.write("clip.gif", io.Picture(frames, pages=True, about={"durations": [40] * 6}))
    shown, chain = opened(tmp_path / "clip.gif"), chain_of(TIME)
    assert shown.kind == "clip"
    stored = io.read("clip.gif")
    expected = stored.filtered(PIPELINE, over="IYX").pixels
    np.testing.assert_array_equal(shown_frame(shown, 4, chain).after, expected[4])
    run_command(chain, shown, "command.npy")
    np.testing.assert_array_equal(np.load("command.npy"), expected)


def test_dicom_clips_keep_their_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Any) -> None:
    if "ultrasound-clip" not in io.samples():
        pytest.skip("pydicom's samples are not installed")
    monkeypatch.chdir(tmp_path)
    path = io.sample("ultrasound-clip")
    shown = opened(path)
    assert shown.protected is not None
    # The clip has so little noise that only a given one changes its text.
    chain = chain_of(TIME, 8)
    single = FilterChain.from_pipeline(Pipeline("db2", 2, [Shrink("bayes", sigma=5.0)]))
    for each, name in ((chain, "time"), (single, "single")):
        run_command(each, shown, f"{name}.dcm")
        run_export(each, shown, f"{name}-export.dcm")
        pixels = io.read(f"{name}.dcm").pixels
        np.testing.assert_array_equal(io.read(f"{name}-export.dcm").pixels, pixels)
        for number in (9, shown.frame_count - 1):
            result = shown_frame(shown, number, each)
            np.testing.assert_array_equal(result.after, pixels[number])
            mask = shown.protected if shown.protected.ndim == 2 else shown.protected[number]
            np.testing.assert_array_equal(result.after[mask], result.before[mask])
    run_program(single, shown, "program.dcm")
    np.testing.assert_array_equal(io.read("program.dcm").pixels, pixels)
    shown.protects = False
    assert (shown_frame(shown, number, single).after[mask] != pixels[number][mask]).any()


def test_a_session_keeps_cancels_and_compares_extents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renderer_module, "MAX_LIVE_SAMPLES", 1 << 12)
    np.save(tmp_path / "volume.npy", BLOCK)
    each = np.stack([PIPELINE(page) for page in BLOCK])
    whole = PIPELINE(BLOCK, channel_axis=None)

    async def run() -> None:
        with ThreadPoolExecutor(2) as pool:
            session = Session(ServerBudget(StudioLimits(), tmp_path), pool)
            sent = 0

            async def send(data: bytes) -> None:
                nonlocal sent
                sent += 1
                session.acknowledge(sent)

            async def drawn() -> None:
                for _ in range(6000):
                    last = session.renderer.last
                    done = session.last_sent is not None and session.last_sent.version == session.version
                    if done and last is not None and not last.result.note:
                        return
                    await asyncio.sleep(0.01)
                raise AssertionError("nothing was drawn")

            def result() -> Any:
                assert session.renderer.last is not None
                return session.renderer.last.result.after

            session.attach(send)
            await session.open_file(tmp_path / "volume.npy", "volume.npy")
            session.seek(5)
            session.set_chain(FilterChain.from_pipeline(PIPELINE))
            await drawn()
            np.testing.assert_array_equal(result(), each[5])
            session.switch_slot()
            session.set_chain(replace(session.chain, extent=VOLUME))
            await drawn()
            np.testing.assert_array_equal(result(), whole[5])
            # Both versions are kept, and undone like any other change.
            session.comparing, session.view = True, "side"
            session.invalidate()
            await drawn()
            layers = session.renderer.last.layers  # type: ignore[union-attr]
            np.testing.assert_array_equal(layers["after"], whole[5])
            session.switch_slot()
            assert session.chain.extent == ""
            session.history.undo()
            assert session.chain.extent == VOLUME
            session.comparing = False
            # Another file or a change stops what is no longer needed, without changing the chain.
            chain = session.chain
            session.select(session.current)
            await drawn()
            assert session.chain == chain
            np.testing.assert_array_equal(result(), whole[session.number])
            # Cancelling the first picture returns to single slices.
            session._restore_drawn()
            assert session.chain.extent == ""
            session.close()
            assert session.budget.memory.held == 0

    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, run()).result()


def test_slices_that_are_too_small_to_be_filtered_alone(tmp_path: Path) -> None:
    """They are shown with figures, but without the histogram of a slice."""
    np.save(tmp_path / "thin.npy", BLOCK[:6])

    async def run() -> None:
        with ThreadPoolExecutor(2) as pool:
            session = Session(ServerBudget(StudioLimits(), tmp_path), pool)

            async def send(data: bytes) -> None:
                session.acknowledge(session._sent_id)

            session.attach(send)
            shown = await session.open_file(tmp_path / "thin.npy", "thin.npy")
            shown.set_plane(1)
            session.set_chain(chain_of(VOLUME, verb=Denoising(noise="poisson")))
            session.figures = {}
            for _ in range(6000):
                if session.figures or session.error_message:
                    break
                await asyncio.sleep(0.01)
            assert session.error_message == ""
            assert session.figures["change"] > 0
            assert session.histogram is None
            session.close()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, run()).result()
