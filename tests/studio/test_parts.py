"""The parts of the Studio without a page: chains, controls, code, files, exports, rendering."""

import asyncio
import json
import shlex
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import undula
from cases import some
from undula import io
from undula.cli import main
from undula.filters import METHODS, STAGES, Blur, FilterStage, Gain, Pipeline, Shrink, Trace, Unsharp
from undula.filters.spectrum import NoiseSpectrum
from undula.filters.verbs import VERBS
from undula.studio.budget import ServerBudget
from undula.studio.chain import PRESETS, FilterChain, History
from undula.studio.code import CodeSource, command_line, python_code
from undula.studio.controls import (
    Choice,
    MultiChoice,
    PerLevel,
    Slider,
    apply_control,
    control_value,
    controls,
    reset_stage,
)
from undula.studio.decoding import FileDecoder, StudioLimits, describe_file
from undula.studio.dicom import CT_WINDOWS, DicomFacts, dicom_facts
from undula.studio.export_jobs import ExportJob, ExportProcess, export_path, run_job
from undula.studio.extents import AppliedChain
from undula.studio.inputs import Camera, DisplayRange, open_input
from undula.studio.plots import histogram, wavelet_functions
from undula.studio.session import Session
from undula.studio.tasks import change_option, shown_options
from undula.studio.versions import ChainVersions
from undula.studio.views import (
    BandHistogram,
    Settings,
    filter_frame,
    render_difference,
    render_pyramids,
    view_layers,
)
from undula.studio.widgets import value_text

PHOTOGRAPH = io.read(io.sample("noisy")).pixels
stages = st.sampled_from(
    [*(kind() for kind in STAGES.values()), *(Shrink(m) for m in METHODS if m != "given")]
)


@given(st.lists(stages, max_size=4), st.sampled_from(["db2", "cdf97"]), st.integers(1, 5) | st.none())
def test_chains_are_pipelines_with_switches(
    stages: list[FilterStage], wavelet: str, level: int | None
) -> None:
    pipeline = Pipeline(wavelet, level, stages, mode="reflect", invariant=2, color="channels")
    chain = FilterChain.from_pipeline(pipeline)
    assert chain.pipeline() == pipeline
    for index, link in enumerate(chain.links):
        without = chain.enable(link.key, False)
        assert without.pipeline().stages == (*stages[:index], *stages[index + 1 :])
        assert without.enable(link.key, True) == chain
        assert chain.remove(link.key).pipeline() == without.pipeline()
        assert chain.move(link.key, 1).move(link.key, -1 if index < len(stages) - 1 else 0) == chain
    assert chain.enable_all(False).pipeline().stages == ()
    assert chain.enable_all(False).enable_all(True) == chain


def test_versions_are_restored_from_their_texts() -> None:
    chains = [FilterChain.from_pipeline(pipeline) for _, pipeline in PRESETS.values()]
    chains += [FilterChain().with_pipeline(verb().pipeline(), verb()) for verb in VERBS.values()]
    spectral = Pipeline("db2", 0, ["collaborative"], spectrum=NoiseSpectrum(2.0, (8, 8), (1.0,) * 64))
    chains += [
        chains[0].enable_all(False),
        FilterChain(extent="volume", over_time=4),
        FilterChain.from_pipeline(spectral),
    ]
    for chain in chains:
        versions = ChainVersions("B", {"A": chains[0], "B": chain})
        restored = ChainVersions.from_json(versions.to_json())
        assert restored == versions
        assert restored.chains["B"].task == chain.task
    parts = json.loads(versions.to_json())
    many = Pipeline("db2", 2, ["shrink"] * 41)
    for wrong in (
        None,
        [],
        {**parts, "slot": "C"},
        {**parts, "chains": {"A": 1, "B": 2}},
        {**parts, "chains": {"B": {**parts["chains"]["B"], "task": "paint"}}},
        {**parts, "chains": {"B": {**parts["chains"]["B"], "enabled": []}}},
        json.loads(ChainVersions("A", {"A": FilterChain.from_pipeline(many)}).to_json()),
    ):
        with pytest.raises(undula.ArgumentError):
            ChainVersions.from_json(json.dumps(wrong))


def test_fewer_levels_drop_thresholds() -> None:
    stages = [Shrink("given", threshold=(5, 4, 3, 2)), Shrink(levels=[1, 4]), Blur(at="details", levels=[4])]
    chain = FilterChain.from_pipeline(Pipeline("db2", 4, stages)).configure(level=2)
    assert [link.stage for link in chain.links] == [
        Shrink("given", threshold=(5.0, 4.0)),
        Shrink(levels=[1]),
        Blur(at="details"),
    ]
    chain.pipeline()(PHOTOGRAPH)


def test_new_levels_get_values() -> None:
    chain = FilterChain.from_pipeline(
        Pipeline("db2", 2, [Shrink("given", threshold=(5, 4)), Gain((2, 1)), Gain(3.0)])
    )
    assert [link.stage for link in chain.configure(level=4).links] == [
        Shrink("given", threshold=(5, 4, 4, 4)),
        Gain((2, 1, 1, 1)),
        Gain(3.0),
    ]
    assert chain.fit_shape((3, 1)).level == 2
    assert chain.configure(level=7).fit_shape((5, 3, 3)).level == 3


def test_history() -> None:
    history = History(FilterChain())
    for level in (4, 5, 6):
        history.record(FilterChain(Pipeline(level=level)), "drag")
    history.end_gesture()
    history.record(FilterChain(Pipeline(level=7)), "drag")
    assert history.undo().level == 6
    assert history.undo().level == 3
    assert not history.can_undo
    assert history.redo().level == 6
    history.record(FilterChain(Pipeline(level=1)))
    assert not history.can_redo
    assert history.redo().level == 1


@pytest.mark.parametrize("name", PRESETS)
def test_presets_run_and_are_written_down(name: str) -> None:
    pipeline = PRESETS[name][1]
    assert Pipeline.from_json(pipeline.to_json()) == pipeline
    x = PHOTOGRAPH[100:190, 60:171]
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
        elif isinstance(control, MultiChoice):
            value = data.draw(st.lists(st.sampled_from(list(control.options)), unique=True))
        else:
            value = data.draw(st.booleans())
        stage = apply_control(stage, control, value, levels, span)
        shown = control_value(stage, control)
        if isinstance(control, MultiChoice):
            assert sorted(shown or []) == sorted(value)
        elif isinstance(control, Slider) and value is not None:
            assert shown == pytest.approx(value)
        elif not isinstance(control, PerLevel) or levels > 1:
            assert shown == value
        assert type(reset_stage(stage)) is type(stage)
    Pipeline("db2", levels, [stage])(np.zeros((64, 64)))


def test_only_applicable_controls() -> None:
    def names(stage: FilterStage) -> list[str]:
        return [control.name for control in controls(stage, 3, 255.0)]

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
        Pipeline("db2", None, ["collaborative"], photons="poisson", gain=2.0, max_level=3),
        Pipeline("db2", 0, ["collaborative"], spectrum="estimated"),
    ],
    ids=str,
)
def test_code_and_commands_make_the_same_picture(
    pipeline: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    x = np.stack([PHOTOGRAPH[:60, :70]] * 2 + [PHOTOGRAPH[60:120, :70]], axis=-1)
    io.write("it's a picture.png", x)
    exec(python_code(AppliedChain(pipeline), CodeSource("it's a picture.png"), "one.png"), {})
    np.testing.assert_array_equal(io.read("one.png").pixels, pipeline(x))
    command = command_line(AppliedChain(pipeline), "it's a picture.png", "two.png")
    shell = subprocess.run(["sh", "-c", f"printf '%s\\0' {command}"], capture_output=True, check=True)
    words = shell.stdout.decode().rstrip("\0").split("\0")
    assert words == shlex.split(command)
    assert main(words[1:]) == 0
    np.testing.assert_array_equal(io.read("two.png").pixels, pipeline(x))


@pytest.mark.parametrize("name", VERBS)
def test_tasks_offer_options_that_work(name: str) -> None:
    verb = VERBS[name]()
    for each, description in shown_options(verb):
        for value in description.choices or ((*description.bounds[:2],) if description.bounds else ()):
            changed = change_option(verb, each.name, value)
            assert getattr(changed, each.name) == value
            chain = FilterChain.from_pipeline(changed.pipeline())
            assert chain == FilterChain.from_pipeline(chain.pipeline())
    if name == "denoise":
        shown = {each.name for each, _ in shown_options(verb)}
        assert {"quality", "noise", "strength"} <= shown
        assert "gain" not in shown
        assert "gain" in {each.name for each, _ in shown_options(change_option(verb, "noise", "poisson"))}


def test_facts_of_dicom_files() -> None:
    pydicom = pytest.importorskip("pydicom")
    dataset = pydicom.Dataset()
    assert dicom_facts(dataset) == DicomFacts()
    dataset.PatientName, dataset.Modality = "Doe^Jane", "CT"
    dataset.PixelSpacing = [0.5, 0.25]
    dataset.RescaleSlope, dataset.RescaleIntercept = 2, -1000
    dataset.WindowCenter, dataset.WindowWidth = [50, 300], [400, 1000]
    dataset.WindowCenterWidthExplanation = ["WINDOW1", "WINDOW2"]
    facts = dicom_facts(dataset)
    assert (facts.patient, facts.spacing, facts.unit) == ("Doe Jane", (0.5, 0.25), "HU")
    assert facts.windows[:2] == (("WINDOW1", 50.0, 400.0), ("WINDOW2", 300.0, 1000.0))
    assert [name for name, *_ in facts.windows[2:]] == list(CT_WINDOWS)
    assert facts.stored_window == (425.0, 625.0)  # -150 to 250 HU
    assert facts.to_stored(facts.to_modality(7.0)) == 7.0
    assert DicomFacts.from_dict(json.loads(json.dumps(facts.to_dict()))) == facts
    ultrasound = pydicom.Dataset()
    ultrasound.Modality, region = "US", pydicom.Dataset()
    region.PhysicalUnitsXDirection = region.PhysicalUnitsYDirection = 3
    region.PhysicalDeltaX, region.PhysicalDeltaY = 0.02, 0.03
    ultrasound.SequenceOfUltrasoundRegions = [region]
    ultrasound.WindowCenter, ultrasound.WindowWidth = 128, 0
    facts = dicom_facts(ultrasound)
    assert facts.spacing == pytest.approx((0.3, 0.2))
    assert facts.windows == ()
    region.PhysicalUnitsXDirection = 4  # seconds
    assert dicom_facts(ultrasound).spacing is None


def test_code_takes_slices_of_any_plane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    volume = io.read(io.sample("volume")).pixels[:20, :40, :50]
    io.write("x.npy", volume)
    pipeline = Pipeline("db2", 2, ["shrink"])
    for plane, number in enumerate((3, 30, 41)):
        exec(python_code(AppliedChain(pipeline), CodeSource("x.npy", number, plane), "y.png"), {})
        expected = pipeline(np.ascontiguousarray(volume.take(number, plane)))
        np.testing.assert_array_equal(io.read("y.png").pixels, expected)


def run_async(work: Any) -> None:
    """Run a coroutine in a thread, as the browser of other tests may have an event loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()


# --- files ----------------------------------------------------------------------------------------


# One of each kind, as each takes a process.
KINDS = ("noisy", "astronaut", "ultrasound-clip", "ct", "volume", "clip")


@pytest.mark.thorough
def test_a_decoder_gives_what_reading_gives() -> None:
    for name in some(list(io.samples()), KINDS):
        path = io.sample(name)
        decoded = open_input(path, name, StudioLimits())
        try:
            if decoded.video:
                frames = list(io.read_frames(path, 40))
                for number in (0, 1, 2, 30, 31, 3, 39):
                    np.testing.assert_array_equal(decoded.frame(number, number + 1), frames[number])
            else:
                picture = io.read(path)
                several = "clip" if decoded.rate else "volume"
                assert decoded.kind == (several if picture.pages else "picture")
                last = picture.pixels[-1] if picture.pages else picture.pixels
                np.testing.assert_array_equal(decoded.frame(decoded.frame_count - 1), last)
                assert (decoded.channel_axis is None) == (picture.channel_axis is None)
            assert decoded.thumbnail.startswith("data:image/jpeg;base64,")
        finally:
            decoded.close()


def test_a_decoder_has_limits(tmp_path: Path) -> None:
    np.lib.format.open_memmap(tmp_path / "large.npy", "w+", np.float64, (9000, 9000))  # a sparse file
    with pytest.raises(undula.FileError, match="memory"):
        FileDecoder(tmp_path / "large.npy", StudioLimits(memory=700 << 20))
    with pytest.raises(undula.FileError, match="81,000,000 pixels"):
        FileDecoder(tmp_path / "large.npy", StudioLimits(pixels=1_000_000))
    with pytest.raises(undula.FileError, match=r"more than 0\.01 seconds"):
        FileDecoder(tmp_path / "large.npy", StudioLimits(seconds=0.01))
    (tmp_path / "pickle.npy").write_bytes(
        b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"
    )
    with pytest.raises(undula.FileError, match="cannot read the file"):
        FileDecoder(tmp_path / "pickle.npy")


def test_the_worker_writes_no_files(tmp_path: Path) -> None:
    code = (
        "from undula.studio.decoding import limit_worker\nlimit_worker(4 << 30)\n"
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
        assert export_path(tmp_path, name, (".png",)) == tmp_path / "x.png"
        return
    with pytest.raises(undula.ArgumentError):
        export_path(tmp_path, name, (".png",))


@given(st.text(max_size=30))
def test_names_cannot_leave_the_folder(name: str) -> None:
    folder = Path("/tmp/exports")
    try:
        path = export_path(folder, name)
    except undula.ArgumentError:
        return
    assert path.parent == folder
    assert path.resolve().parent == folder.resolve()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "a.png").touch()
    assert export_path(tmp_path, "a.png") == tmp_path / "a 2.png"


def test_exports_run_in_a_process_and_can_fail(tmp_path: Path) -> None:
    pipeline = Pipeline("db2", 2, [Shrink()])
    volume = io.read(io.sample("volume")).pixels[:5]
    io.write(tmp_path / "in.tif", io.Picture(volume, pages=True))
    seen: list[tuple[int, int]] = []

    def job(target: str, **more: Any) -> ExportJob:
        return ExportJob(str(tmp_path / "in.tif"), str(tmp_path / target), pipeline.to_json(), **more)

    def progress(done: int, total: int) -> None:
        seen.append((done, total))

    run_async(ExportProcess(job("out.tif")).run(progress))
    assert seen == [(k, 5) for k in range(1, 6)]
    for filtered, page in zip(io.read(tmp_path / "out.tif").pixels, volume, strict=True):
        np.testing.assert_array_equal(filtered, pipeline(page))
    run_job(job("frames", frames=True), progress)
    assert seen == 2 * [(k, 5) for k in range(1, 6)]
    assert len(list((tmp_path / "frames").iterdir())) == 5
    with pytest.raises(undula.FileError, match="pixels"):
        run_async(ExportProcess(job("no.tif", pixels=10)).run(progress))
    with pytest.raises(undula.UndulaError, match="jpeg"):
        run_job(job("no.jpg"), progress)
    assert not (tmp_path / "no.tif").exists()


# --- pictures -------------------------------------------------------------------------------------


def test_every_kind_of_sample_is_displayed() -> None:
    byte = np.arange(256, dtype=np.uint8).reshape(16, 16)
    np.testing.assert_array_equal(DisplayRange().to_uint8(byte), byte)
    np.testing.assert_array_equal(DisplayRange(invert=True).to_uint8(byte), 255 - byte)
    deep = byte.astype(np.uint16) * 257
    np.testing.assert_array_equal(DisplayRange(0, 65535).to_uint8(deep), byte)
    floats = byte / np.float32(255)
    np.testing.assert_array_equal(DisplayRange(0, 1).to_uint8(floats), byte)
    floats[0, 0] = np.nan
    assert DisplayRange(0, 1).to_uint8(floats)[0, 0] == 0
    many = np.zeros((8, 8, 7), np.uint8)
    assert DisplayRange().to_uint8(many).shape == (8, 8, 3)
    assert DisplayRange().to_uint8(many[..., :2]).shape == (8, 8)
    alpha = np.full((4, 4, 4), 65535, np.uint16)
    assert (DisplayRange(0, 65535).to_uint8(alpha) == 255).all()


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**-900, 2.0**30])
def test_nothing_depends_on_the_unit(unit: float, tmp_path: Path) -> None:
    def shown(scale: float) -> tuple[Any, BandHistogram]:
        x = PHOTOGRAPH[:64, :64] * scale
        np.save(tmp_path / "x.npy", x)
        about = describe_file(tmp_path / "x.npy", 1 << 20)[0]
        band = BandHistogram.from_trace(render_pyramids(x, None, Pipeline("db2", 2, []))[2], 1, "dd")
        return DisplayRange(about["low"], about["high"]).to_uint8(x), band

    (bitmap, band), (small_bitmap, small_band) = shown(1.0), shown(unit)
    np.testing.assert_array_equal(small_bitmap, bitmap)
    assert small_band.before == band.before
    assert small_band.limit == band.limit * unit
    for control in controls(Shrink("given", threshold=unit), 2, 255 * unit):
        if isinstance(control, Slider) and control.name == "threshold":
            assert control.high > control.step > 0
            assert float(value_text(control.step, control.step)) == pytest.approx(control.step)


def test_layers_are_results_of_the_library() -> None:
    pipeline = Pipeline("cdf97", 3, [Shrink()])
    result = filter_frame(PHOTOGRAPH, None, pipeline, Settings())
    np.testing.assert_array_equal(result.after, pipeline(PHOTOGRAPH))
    assert result.milliseconds["total"] >= result.milliseconds["forward"] > 0
    views = pipeline.views(PHOTOGRAPH)
    before, after, trace = render_pyramids(PHOTOGRAPH, None, pipeline)
    np.testing.assert_array_equal(before, views.analysis)
    np.testing.assert_array_equal(after, views.filtered)
    assert set(view_layers("side", result, DisplayRange())) == {"before", "after"}
    shown = view_layers("filtered", result, DisplayRange(), (before, after))["filtered"]
    np.testing.assert_array_equal(shown, after)
    unchanged = filter_frame(PHOTOGRAPH, None, Pipeline("cdf97", 3, []), Settings())
    same, _ = render_difference(unchanged, DisplayRange())
    assert (same == 128).all()
    shown, gain = render_difference(result, DisplayRange())
    change = result.after.astype(float) - PHOTOGRAPH
    np.testing.assert_allclose(shown, np.clip(128 + gain * change, 0, 255), atol=1)
    band = BandHistogram.from_trace(trace, 1, "dd")
    coeffs = undula.dwt2(PHOTOGRAPH.astype(np.float32), "cdf97")[1][2]
    inside = np.abs(coeffs) <= band.limit
    assert abs(sum(band.before) - inside.sum()) <= 2
    assert "threshold" in histogram(band, 1, "diagonals")
    assert band.thresholds[0] == pytest.approx(trace.limits[0][0, "dd"][0])


def test_pyramids_of_scans_show_the_thresholds_of_their_filter() -> None:
    scan = np.zeros((128, 128), np.uint8)
    scan[30:90, 30:90] = 40 + PHOTOGRAPH[:60, :60] // 2
    pipeline = Pipeline("db2", 2, [Shrink(noise="bands")], speckle="log")
    filtering = Trace(keep=True)
    pipeline(scan, trace=filtering)
    _, _, shown = render_pyramids(scan, None, pipeline)
    assert shown.limits == filtering.limits


@pytest.mark.cuda
def test_a_gpu_makes_the_same_picture() -> None:
    pipeline = Pipeline("cdf97", 3, [Shrink()])
    for x in (PHOTOGRAPH, np.stack([PHOTOGRAPH] * 3, axis=-1)):
        result = filter_frame(x, -1 if x.ndim == 3 else None, pipeline, Settings("cuda:0"))
        assert np.abs(result.after.astype(int) - pipeline(x)).max() <= 1
        assert result.milliseconds["transfer"] > 0


def test_every_wavelet_is_drawn() -> None:
    for name in undula.wavelist(undula.families(), kind="discrete"):
        assert wavelet_functions(name).count("<polyline") in (2, 4)


def test_camera_frames_are_checked() -> None:
    camera = Camera()
    camera.set_frame(bytes(range(48)), 4, 3)
    assert camera.frame(0).shape == (3, 4, 3)
    assert camera.frame(0)[0, 1].tolist() == [4, 5, 6]
    for data, width, height in ((b"", 0, 0), (bytes(10), 4, 3), (bytes(16), 2, -2), (bytes(4), 5000, 1)):
        with pytest.raises(undula.FileError):
            camera.set_frame(data, width, height)


def test_changes_while_rendering_are_in_the_next_picture(tmp_path: Path) -> None:
    """A hundred changes result in fewer pictures, and the last picture shows the last change."""

    async def run() -> None:
        sent: list[bytes] = []
        with ThreadPoolExecutor(2) as pool:
            session = Session(ServerBudget(StudioLimits(), tmp_path), pool)

            async def send(data: bytes) -> None:
                sent.append(data)
                session.acknowledge(len(sent))

            session.attach(send)
            await session.open_file(io.sample("noisy"), "noisy")
            for number in range(100):
                stage = Shrink(strength=number / 50)
                session.set_chain(session.chain.replace_stage(session.chain.links[0].key, stage), "drag")
                await asyncio.sleep(0.002)
            deadline = time.monotonic() + 120
            while not session.figures or session.last_sent.version != session.version:  # type: ignore[union-attr]
                assert time.monotonic() < deadline
                await asyncio.sleep(0.02)
            (length,) = struct.unpack_from("<I", sent[-1])
            layers = json.loads(sent[-1][4 : 4 + length])["layers"]
            assert [(layer["name"], layer["format"]) for layer in layers] == [("after", "raw")]
            expected = Pipeline("cdf97", 3, [Shrink(strength=1.98)])(PHOTOGRAPH)
            assert sent[-1][4 + length :] == expected.tobytes()
            np.testing.assert_array_equal((await session.current_view()).result.after, expected)
            assert session.history.undo().links[0].stage == Shrink()
            assert len(sent) < 100
            folder = session.folder
            session.close()
            assert not folder.exists()

    run_async(run())


def test_the_ultrasound_preset_is_what_despeckle_does() -> None:
    if "ultrasound" not in io.samples():
        pytest.skip("pydicom's samples are not installed")
    x = io.read(io.sample("ultrasound")).pixels
    filtered = PRESETS["Ultrasound"][1](x, channel_axis=-1)
    np.testing.assert_array_equal(filtered, undula.despeckle(x, kind="log", strength=0.5, channel_axis=-1))
    assert (filtered != x).mean() > 0.02
