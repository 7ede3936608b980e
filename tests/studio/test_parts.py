"""The parts of the Studio that need no page: chains, controls, code, files, exports, pictures."""

import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import undula
from undula import io
from undula.filters import METHODS, STAGES, Blur, FilterStage, Gain, Pipeline, Shrink, Unsharp
from undula.studio.chain import PRESETS, Chain, History
from undula.studio.code import command_line, python_code
from undula.studio.controls import Choice, Picks, Slider, Spread, changed, controls, usual, value_of
from undula.studio.decoding import Decoder, Limits
from undula.studio.exporting import Export, Job, named_path
from undula.studio.inputs import Camera, Screen, opened
from undula.studio.plots import histogram, wavelet_functions
from undula.studio.rendering import Band, Settings, bands, difference, layers, made
from undula.studio.room import ServerBudget
from undula.studio.session import Session

CAMERA = io.read(io.sample("noisy")).pixels
stages = st.sampled_from(
    [*(kind() for kind in STAGES.values()), *(Shrink(m) for m in METHODS if m != "given")]
)


@given(st.lists(stages, max_size=4), st.sampled_from(["db2", "cdf97"]), st.integers(1, 5) | st.none())
def test_a_chain_is_a_pipeline_with_switches(own: list[FilterStage], wavelet: str, level: int | None) -> None:
    pipeline = Pipeline(wavelet, level, own, mode="reflect", invariant=2, color="channels")
    chain = Chain.of(pipeline)
    assert chain.pipeline() == pipeline
    for place, link in enumerate(chain.links):
        without = chain.switched(link.key, False)
        assert without.pipeline().stages == (*own[:place], *own[place + 1 :])
        assert without.switched(link.key, True) == chain
        assert chain.removed(link.key).pipeline() == without.pipeline()
        assert chain.moved(link.key, 1).moved(link.key, -1 if place < len(own) - 1 else 0) == chain


def test_levels_that_are_gone_take_their_thresholds_with_them() -> None:
    stages = [Shrink("given", threshold=(5, 4, 3, 2)), Shrink(levels=[1, 4]), Blur(at="details", levels=[4])]
    chain = Chain.of(Pipeline("db2", 4, stages)).set(level=2)
    assert [link.stage for link in chain.links] == [
        Shrink("given", threshold=(5.0, 4.0)),
        Shrink(levels=[1]),
        Blur(at="details"),
    ]
    chain.pipeline()(CAMERA)


def test_new_levels_get_numbers_of_their_own() -> None:
    chain = Chain.of(Pipeline("db2", 2, [Shrink("given", threshold=(5, 4)), Gain((2, 1)), Gain(3.0)]))
    assert [link.stage for link in chain.set(level=4).links] == [
        Shrink("given", threshold=(5, 4, 4, 4)),
        Gain((2, 1, 1, 1)),
        Gain(3.0),
    ]
    assert chain.fitting((3, 1)).level == 2
    assert chain.set(level=7).fitting((5, 3, 3)).level == 3


def test_history() -> None:
    history = History(Chain())
    for level in (4, 5, 6):
        history.do(Chain(level=level), "drag")
    history.settle()
    history.do(Chain(level=7), "drag")
    assert history.undo().level == 6
    assert history.undo().level == 3
    assert not history.can_undo
    assert history.redo().level == 6
    history.do(Chain(level=1))
    assert not history.can_redo
    assert history.redo().level == 1


@pytest.mark.parametrize("name", PRESETS)
def test_presets_run_and_are_written_down(name: str) -> None:
    pipeline = PRESETS[name][1]
    assert Pipeline.from_json(pipeline.to_json()) == pipeline
    x = CAMERA[100:190, 60:171]
    assert pipeline(x).shape == x.shape
    assert (pipeline(x) != x).any()


@given(stages, st.integers(1, 5), st.sampled_from([1.0, 255.0, 65535.0]), st.data())
def test_controls_change_what_they_say(stage: FilterStage, levels: int, span: float, data: Any) -> None:
    for _ in range(6):
        control = data.draw(st.sampled_from(controls(stage, levels, span)))
        if isinstance(control, Slider):
            steps = round((control.high - control.low) / control.step)
            value: Any = control.low + control.step * data.draw(st.integers(0, steps))
            if control.auto and data.draw(st.booleans()):
                value = None
        elif isinstance(control, Choice):
            value = data.draw(st.sampled_from(list(control.options)))
        elif isinstance(control, Picks):
            value = data.draw(st.lists(st.sampled_from(list(control.options)), unique=True))
        else:
            value = data.draw(st.booleans())
        stage = changed(stage, control, value, levels, span)
        shown = value_of(stage, control)
        if isinstance(control, Picks):
            assert sorted(shown or []) == sorted(value)
        elif isinstance(control, Slider) and value is not None:
            assert shown == pytest.approx(value)
        elif not isinstance(control, Spread) or levels > 1:
            assert shown == value
        assert type(usual(stage)) is type(stage)
    Pipeline("db2", levels, [stage])(np.zeros((64, 64)))


def test_only_the_sliders_that_a_filter_has() -> None:
    def names(stage: FilterStage) -> list[str]:
        return [one.name for one in controls(stage, 3, 255.0)]

    assert "threshold" in names(Shrink("given", threshold=3.0))
    assert "strength" not in names(Shrink("given", threshold=3.0))
    assert "rule" not in names(Shrink("bivariate"))
    assert "radius" in names(Shrink("bivariate"))
    assert "second" in names(Shrink("bayes", "firm"))
    assert "second" not in names(Shrink("bayes", "soft"))
    assert "levels" in names(Blur(at="details"))
    assert "levels" not in names(Blur(at="last"))


@pytest.mark.parametrize(
    "pipeline",
    [
        Pipeline("cdf97", 3, [Shrink("given", "hard", (9.5, 4.0)), Unsharp(1, 0.5, at="last")]),
        Pipeline("db3", 2, [Shrink("bayes", levels=[1])], mode="reflect"),
        Pipeline("db2", None, [Gain((1.5, 1.2))], invariant=1, color="channels"),
        Pipeline("haar", 1, []),
    ],
    ids=str,
)
def test_code_and_commands_make_the_same_picture(pipeline: Pipeline, tmp_path: Path) -> None:
    x = np.stack([CAMERA[:60, :70]] * 2 + [CAMERA[60:120, :70]], axis=-1)
    io.write(tmp_path / "it's a picture.png", x)
    code = python_code(pipeline, "it's a picture.png", "one.png")
    names: dict[str, Any] = {}
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        exec(code, names)
    finally:
        os.chdir(before)
    np.testing.assert_array_equal(io.read(tmp_path / "one.png").pixels, pipeline(x))
    command = command_line(pipeline, "it's a picture.png", "two.png").replace(
        "undula", f"{sys.executable} -m undula", 1
    )
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True, capture_output=True)
    np.testing.assert_array_equal(io.read(tmp_path / "two.png").pixels, pipeline(x))


def alone(work: Any) -> None:
    """Runs something by an event loop of its own; the browser of other tests may have one in this thread."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()


# --- files ----------------------------------------------------------------------------------------


# (One of each kind; all of them take a process each.)
KINDS = ("noisy", "astronaut", "ultrasound-clip", "ct", "volume", "clip")


def test_a_decoder_gives_what_reading_gives(tmp_path: Path) -> None:
    for name in [
        name for name in io.samples() if name in KINDS or os.environ.get("UNDULA_TESTS") == "thorough"
    ]:
        path = io.sample(name)
        own = opened(path, name, Limits())
        try:
            if own.video:
                frames = list(io.read_frames(path, 40))
                for number in (0, 1, 2, 30, 31, 3, 39):
                    np.testing.assert_array_equal(own.frame(number, number + 1), frames[number])
            else:
                picture = io.read(path)
                assert own.kind == ("picture" if not picture.pages else "clip" if own.rate else "volume")
                np.testing.assert_array_equal(
                    own.frame(own.count - 1), picture.pixels[-1] if picture.pages else picture.pixels
                )
                assert (own.channel_axis is None) == (picture.channel_axis is None)
            assert own.thumbnail.startswith("data:image/jpeg;base64,")
        finally:
            own.close()


def test_a_decoder_has_limits(tmp_path: Path) -> None:
    io.write(tmp_path / "large.npy", np.zeros((9000, 9000), np.float64))
    with pytest.raises(undula.FileError, match=r"memory|did not survive"):
        Decoder(tmp_path / "large.npy", Limits(memory=700 << 20))
    with pytest.raises(undula.FileError, match="81,000,000 pixels"):
        Decoder(tmp_path / "large.npy", Limits(pixels=1_000_000))
    with pytest.raises(undula.FileError, match=r"more than 0\.01 seconds"):
        Decoder(tmp_path / "large.npy", Limits(seconds=0.01))
    (tmp_path / "pickle.npy").write_bytes(
        b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"
    )
    with pytest.raises(undula.FileError, match="cannot read the file"):
        Decoder(tmp_path / "pickle.npy")


def test_the_worker_writes_no_files(tmp_path: Path) -> None:
    code = (
        "from undula.studio.decoding import _limited\n_limited(4 << 30)\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "with open('x', 'w') as file: file.write('text')"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode != 0
    assert "File too large" in run.stderr


@pytest.mark.parametrize(
    "name",
    [
        "../x.png",
        "/etc/x.png",
        "a/b.png",
        "a\\b.png",
        ".hidden.png",
        "x\0.png",
        "",
        " ",
        "nul.png",
        "x.exe",
        "a..png",
        "x" * 130 + ".png",
        "x.png ",
    ],
    ids=repr,
)
def test_names_of_exports_stay_in_their_folder(name: str, tmp_path: Path) -> None:
    if name.strip() == "x.png":
        assert named_path(tmp_path, name, (".png",)) == tmp_path / "x.png"
        return
    with pytest.raises(undula.ArgumentError):
        named_path(tmp_path, name, (".png",))


@given(st.text(max_size=30))
def test_no_name_leads_elsewhere(name: str) -> None:
    folder = Path("/tmp/exports")
    try:
        path = named_path(folder, name)
    except undula.ArgumentError:
        return
    assert path.parent == folder
    assert path.resolve().parent == folder.resolve()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a.png").touch()
    assert named_path(tmp_path, "a.png") == tmp_path / "a 2.png"


def test_exports_run_beside_and_can_fail(tmp_path: Path) -> None:
    pipeline = Pipeline("db2", 2, [Shrink()])
    volume = io.read(io.sample("volume")).pixels[:5]
    io.write(tmp_path / "in.tif", io.Picture(volume, pages=True))
    seen: list[tuple[int, int]] = []

    def export(target: str, **more: Any) -> None:
        job = Job(str(tmp_path / "in.tif"), str(tmp_path / target), pipeline.to_json(), **more)
        alone(Export(job).run(lambda done, total: seen.append((done, total))))

    export("out.tif")
    assert seen == [(k, 5) for k in range(1, 6)]
    for made_, page in zip(io.read(tmp_path / "out.tif").pixels, volume, strict=True):
        np.testing.assert_array_equal(made_, pipeline(page))
    export("frames", frames=True)
    assert len(list((tmp_path / "frames").iterdir())) == 5
    with pytest.raises(undula.FileError, match="pixels"):
        export("no.tif", pixels=10)
    with pytest.raises(undula.FileError, match="jpeg"):
        export("no.jpg")
    assert not (tmp_path / "no.tif").exists()


# --- pictures -------------------------------------------------------------------------------------


def test_screens_show_every_kind_of_sample() -> None:
    byte = np.arange(256, dtype=np.uint8).reshape(16, 16)
    assert Screen().shown(byte) is not None
    np.testing.assert_array_equal(Screen().shown(byte), byte)
    np.testing.assert_array_equal(Screen(invert=True).shown(byte), 255 - byte)
    deep = byte.astype(np.uint16) * 257
    np.testing.assert_array_equal(Screen(0, 65535).shown(deep), byte)
    floats = byte / np.float32(255)
    np.testing.assert_array_equal(Screen(0, 1).shown(floats), byte)
    floats[0, 0] = np.nan
    assert Screen(0, 1).shown(floats)[0, 0] == 0
    many = np.zeros((8, 8, 7), np.uint8)
    assert Screen().shown(many).shape == (8, 8, 3)
    assert Screen().shown(many[..., :2]).shape == (8, 8)
    alpha = np.full((4, 4, 4), 65535, np.uint16)
    assert (Screen(0, 65535).shown(alpha) == 255).all()


def test_layers_are_what_the_library_makes() -> None:
    pipeline = Pipeline("cdf97", 3, [Shrink()])
    own = made(CAMERA, None, pipeline, Settings())
    np.testing.assert_array_equal(own.after, pipeline(CAMERA))
    assert own.milliseconds["all"] >= own.milliseconds["forward"] > 0
    views = pipeline.views(CAMERA)
    before, after, trace = bands(CAMERA, None, pipeline)
    np.testing.assert_array_equal(before, views.analysis)
    np.testing.assert_array_equal(after, views.filtered)
    assert set(layers("side", own, Screen())) == {"before", "after"}
    np.testing.assert_array_equal(layers("filtered", own, Screen(), (before, after))["filtered"], after)
    same, _ = difference(made(CAMERA, None, Pipeline("cdf97", 3, []), Settings()), Screen())
    assert (same == 128).all()
    found, gain = difference(own, Screen())
    change = own.after.astype(float) - CAMERA
    np.testing.assert_allclose(found, np.clip(128 + gain * change, 0, 255), atol=1)
    band = Band.of(trace, 1, "dd")
    coeffs = undula.dwt2(CAMERA.astype(np.float32), "cdf97")[1][2]
    inside = np.abs(coeffs) <= band.limit
    assert abs(sum(band.counts) - inside.sum()) <= 2
    assert "threshold" in histogram(band, 1, "diagonals")
    assert band.thresholds[0] == pytest.approx(trace.limits[0][0, "dd"][0])


@pytest.mark.parametrize("place", ["cuda:0"])
@pytest.mark.cuda
def test_a_gpu_makes_the_same_picture(place: str) -> None:
    pipeline = Pipeline("cdf97", 3, [Shrink()])
    for x in (CAMERA, np.stack([CAMERA] * 3, axis=-1)):
        own = made(x, -1 if x.ndim == 3 else None, pipeline, Settings(place))
        assert np.abs(own.after.astype(int) - pipeline(x)).max() <= 1
        assert own.milliseconds["transfer"] > 0


def test_every_wavelet_is_drawn() -> None:
    for name in undula.wavelist():
        assert wavelet_functions(name).count("<polyline") in (2, 4)


def test_cameras_take_what_fits() -> None:
    camera = Camera()
    camera.see(bytes(range(48)), 4, 3)
    assert camera.frame(0).shape == (3, 4, 3)
    assert camera.frame(0)[0, 1].tolist() == [4, 5, 6]
    for data, width, height in ((b"", 0, 0), (bytes(10), 4, 3), (bytes(16), 2, -2), (bytes(4), 5000, 1)):
        with pytest.raises(undula.FileError):
            camera.see(data, width, height)


def test_what_changed_meanwhile_is_in_the_next_picture(tmp_path: Path) -> None:
    """A hundred changes make few pictures, and the last one is that of the last change."""

    async def run() -> None:
        sent: list[bytes] = []
        with ThreadPoolExecutor(2) as pool:
            session = Session(ServerBudget(Limits(), tmp_path), pool)

            async def send(data: bytes) -> None:
                sent.append(data)
                session.acknowledged(len(sent))

            session.attach(send)
            await session.open(io.sample("noisy"), "noisy")
            for number in range(100):
                session.do(
                    session.chain.changed(session.chain.links[0].key, Shrink(strength=number / 50)), "drag"
                )
                await asyncio.sleep(0.002)
            for _ in range(200):
                await asyncio.sleep(0.02)
                if (
                    session.painted is not None
                    and session.painted.version == session.version
                    and session.figures
                ):
                    break
            assert session.result is not None
            np.testing.assert_array_equal(
                session.result.after, Pipeline("cdf97", 3, [Shrink(strength=1.98)])(CAMERA)
            )
            assert session.history.undo().links[0].stage == Shrink()
            assert len(sent) < 100
            folder = session.folder
            session.close()
            assert not folder.exists()

    alone(run())


def test_the_ultrasound_preset_is_what_despeckle_does() -> None:
    if "ultrasound" not in io.samples():
        pytest.skip("pydicom's samples are not installed")
    x = io.read(io.sample("ultrasound")).pixels
    found = PRESETS["Ultrasound"][1](x, channel_axis=-1)
    np.testing.assert_array_equal(found, undula.despeckle(x, kind="log", strength=0.5, channel_axis=-1))
    assert (found != x).mean() > 0.02
