"""The plugin in napari without a screen: layers get the results of the library."""

from typing import Any

import npe2
import numpy as np
import pytest
from napari.components import ViewerModel
from qtpy.QtWidgets import QLabel

import undula
import undula_napari
from undula_napari import DenoiseWidget, DespeckleWidget, PyramidWidget, pyramid

RNG = np.random.default_rng(0)
CLEAN = 100 + 60 * np.sin(np.add.outer(np.arange(96) / 9, np.arange(120) / 13))
GREY = np.clip(CLEAN + 12 * RNG.standard_normal(CLEAN.shape), 0, 255).astype(np.uint8)
RGB = np.stack([GREY, GREY[::-1], GREY[:, ::-1]], axis=-1)
STACK = np.stack([np.roll(GREY, k, axis=1) for k in range(10)])


@pytest.fixture
def viewer(qapp: Any) -> Any:
    """A viewer without a window: Qt draws nothing without a screen, and OpenGL needs one."""
    return ViewerModel()


def shown(qtbot: Any, widget: Any, viewer: Any, name: str) -> Any:
    """Wait until a widget has nothing left to compute, and return the data of a layer."""
    qtbot.waitUntil(lambda: not widget._busy and name in viewer.layers, timeout=60_000)
    return viewer.layers[name].data


def test_the_manifest_is_valid() -> None:
    manifest = npe2.PluginManifest.from_distribution("undula-napari")
    manifest.validate_imports()
    names = {command.python_name.split(":")[1] for command in manifest.contributions.commands}
    assert names == {name for name in undula_napari.__all__ if name.endswith("Widget")}


def test_napari_finds_the_widgets_and_they_list_the_layers(viewer: Any) -> None:
    plugins = npe2.PluginManager.instance()
    plugins.discover()
    offered = plugins.get_manifest("undula-napari").contributions.widgets
    assert [each.display_name for each in offered] == [
        "Denoise",
        "Despeckle",
        "Sharpen",
        "Enhance",
        "Pyramid",
    ]
    for each in offered:
        widget = each.get_callable()(viewer)
        layer = viewer.add_image(GREY, name="grey")
        viewer.add_labels(np.zeros((9, 9), int))
        assert widget.layer.choices == (layer,)
        viewer.layers.clear()
        assert widget.layer.choices == ()


@pytest.mark.parametrize("data", [GREY, RGB, STACK], ids=["grey", "rgb", "stack"])
def test_a_layer_is_denoised_as_by_the_library(viewer: Any, qtbot: Any, data: Any) -> None:
    rgb = data.shape[-1] == 3
    layer = viewer.add_image(data, name="x", rgb=rgb, scale=[2.0] * (data.ndim - rgb))
    widget = DenoiseWidget(viewer)
    widget.layer.value = layer
    widget.strength.value = 1.4
    widget.compute()
    axes = (0, 1) if data.ndim == 2 or rgb else (1, 2)
    expected = undula.denoise(data, strength=1.4, axes=axes, channel_axis=-1 if rgb else None)
    np.testing.assert_array_equal(shown(qtbot, widget, viewer, "x denoised"), expected)
    np.testing.assert_array_equal(viewer.layers["x denoised"].scale, layer.scale)
    np.testing.assert_array_equal(layer.data, data)


def test_results_are_where_their_originals_are(viewer: Any, qtbot: Any) -> None:
    place = {"scale": (2, 1, 1), "translate": (3, 4, 5), "rotate": [10, 20, 30], "shear": [0.1, 0, 0.2]}
    names = {"axis_labels": ("z", "y", "x"), "units": ("µm", "nm", "nm")}
    layer = viewer.add_image(STACK, name="x", affine=np.diag([1, 2, 3, 1]), **place, **names)
    widget = PyramidWidget(viewer)
    widget.compute()
    assert widget._apply.text == "Computing …"
    shown(qtbot, widget, viewer, "x pyramid")
    assert widget._apply.text == "Apply"
    result = viewer.layers["x pyramid"]
    corners = np.array([[0, 0, 0], [9, 95, 119], [9, 0, 7]])
    np.testing.assert_allclose(
        [result.data_to_world(corner) for corner in corners],
        [layer.data_to_world(corner) for corner in corners],
    )
    assert (result.axis_labels, result.units) == (layer.axis_labels, layer.units)


def test_labels_are_aligned(viewer: Any) -> None:
    labels = DenoiseWidget(viewer).native.findChildren(QLabel)
    widths = {label.minimumWidth() for label in labels if label.text()}
    assert len(widths) == 1
    assert widths.pop() > 0


def test_volumes_and_other_options(viewer: Any, qtbot: Any) -> None:
    widget = DespeckleWidget(viewer)
    widget.layer.value = viewer.add_image(STACK, name="stack")
    widget.extent.value = "3-D volumes"
    widget.kind.value = "log"
    widget.compute()
    expected = undula.despeckle(STACK, kind="log", channel_axis=None)
    np.testing.assert_array_equal(shown(qtbot, widget, viewer, "stack despeckled"), expected)


def test_sliders_are_live(viewer: Any, qtbot: Any) -> None:
    widget = DenoiseWidget(viewer)
    widget.layer.value = viewer.add_image(GREY, name="grey")
    widget.strength.value = 0.7
    assert len(viewer.layers) == 1  # Nothing happens until the box is ticked.
    widget[-2].value = True
    for strength in (0.9, 1.6, 2.0):  # Only the last one counts.
        widget.strength.value = strength
    np.testing.assert_array_equal(
        shown(qtbot, widget, viewer, "grey denoised"), undula.denoise(GREY, strength=2.0)
    )
    assert len(viewer.layers) == 2


def test_errors_are_shown(viewer: Any, qtbot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[str] = []
    monkeypatch.setattr("undula_napari._widgets.show_error", messages.append)
    widget = DenoiseWidget(viewer)
    widget.layer.value = viewer.add_image(GREY, name="grey")
    widget.method.value = "collaborative"
    widget.quality.value = "best"
    widget.compute()
    qtbot.waitUntil(lambda: bool(messages) and not widget._busy, timeout=60_000)
    assert "quality='best' selects the method" in messages[0]
    assert len(viewer.layers) == 1


@pytest.mark.parametrize("rgb", [False, True])
def test_pyramids_are_multiscale_layers(viewer: Any, qtbot: Any, rgb: bool) -> None:
    data = RGB if rgb else GREY
    widget = PyramidWidget(viewer)
    widget.layer.value = viewer.add_image(data, name="x", rgb=rgb)
    widget.levels.value = 2
    widget.compute()
    levels = shown(qtbot, widget, viewer, "x pyramid")
    assert [level.shape[:2] for level in levels] == [(96, 120), (48, 60), (24, 30)]
    assert viewer.layers["x pyramid"].multiscale
    approximation = undula.lwt2(data.astype(np.float32), "cdf53", axes=(0, 1))[0] / 2
    np.testing.assert_array_equal(levels[1], np.clip(np.round(approximation), 0, 255).astype(np.uint8))
    np.testing.assert_allclose(levels[2].mean(), data.mean(), atol=1)


def test_pyramids_keep_constants_and_dtype() -> None:
    for dtype in (np.uint8, np.uint16, np.float32):
        for level in pyramid(np.full((9, 33, 20), 77, dtype), 3, axes=(0, 1, 2)):
            assert level.dtype == dtype
            np.testing.assert_allclose(level, 77, rtol=1e-5)
