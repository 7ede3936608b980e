"""The widgets: one for each verb of Undula, made from the table of its options, and one for pyramids.

Results are computed by a thread. While it works, changes are collected, and the newest state is computed
next, so that sliders never wait for a queue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from magicgui.widgets import CheckBox, ComboBox, Container, FloatSlider, PushButton, SpinBox, Widget
from napari.layers import Image
from napari.qt.threading import thread_worker
from napari.utils.notifications import show_error, show_warning

import undula
from undula.filters.verbs import VERBS, VerbOption

if TYPE_CHECKING:
    from napari.viewer import Viewer

__all__ = [
    "DenoiseWidget",
    "DespeckleWidget",
    "EnhanceWidget",
    "PyramidWidget",
    "SharpenWidget",
    "pyramid",
]

ADVANCED = ("profile", "rule", "color")
SLICES, VOLUMES = "2-D slices", "3-D volumes"
PYRAMID_WAVELETS = ("cdf53", "haar", "cdf97")
# What tells where a layer is; older versions of napari lack the last two.
PLACE = ("scale", "translate", "rotate", "shear", "affine", "axis_labels", "units")
SMALLEST_SIDE = 256  # of the coarsest level that is proposed


def pyramid(image: Any, levels: int, wavelet: str = "cdf53", axes: tuple[int, ...] = (-2, -1)) -> list[Any]:
    """Return an image and its approximations, each half as large as the one before.

    Parameters
    ----------
    image : array
    levels : int
        Number of approximations.
    wavelet : str, default "cdf53"
    axes : tuple of int, default (-2, -1)
        The axes to halve.

    Returns
    -------
    list of array
        All with the dtype of the image.
    """
    result, approximation = [image], np.asarray(image, np.float32)
    for _ in range(levels):
        # The low-pass filter of each axis has a gain of √2.
        approximation = undula.lwtn(approximation, wavelet, level=1, axes=axes)[0] / 2 ** (len(axes) / 2)
        level = approximation
        if np.issubdtype(image.dtype, np.integer):
            limits = np.iinfo(image.dtype)
            level = np.clip(np.round(level), limits.min, limits.max)
        result.append(level.astype(image.dtype))
    return result


class LayerWidget(Container):  # type: ignore[type-arg]
    """Base class of the widgets: a layer, controls, and results in a layer of its own."""

    title = ""

    def __init__(self, viewer: Viewer, controls: dict[str, Widget], function: Callable[..., Any]) -> None:
        self._viewer, self._controls, self._function = viewer, controls, function
        self._layer = ComboBox(choices=self._images, name="layer", label="Layer", nullable=False)
        self._live = CheckBox(text="Live", value=False, tooltip="Compute after every change of a control")
        self._apply = PushButton(text="Apply")
        self._busy = self._again = False
        super().__init__(widgets=[self._layer, *controls.values()])
        self.extend([self._live, self._apply])  # Widgets that are added later align all labels.
        self._apply.changed.connect(self.compute)
        for event in (viewer.layers.events.inserted, viewer.layers.events.removed):
            event.connect(self._list_layers)
        for control in (self._layer, self._live, *controls.values()):
            control.changed.connect(self._changed)

    def _images(self, _: Any) -> list[Image]:
        return [layer for layer in self._viewer.layers if isinstance(layer, Image)]

    def _list_layers(self) -> None:
        self._layer.reset_choices()

    def _changed(self) -> None:
        if self._live.value:
            self.compute()

    @property
    def result_name(self) -> str:
        """The name of the layer with the result."""
        return f"{self._layer.value.name} {self.title}"

    def compute(self) -> None:
        """Compute the result of the current state, after the one that is being computed."""
        layer = self._layer.value
        if layer is None:
            show_warning("Open or select an image layer first.")
            return
        if self._busy:
            self._again = True
            return
        self._busy, self._again = True, False
        name, options = self.result_name, {key: control.value for key, control in self._controls.items()}
        data = layer.data[0] if layer.multiscale else layer.data
        self._apply.text = "Computing …"
        worker = thread_worker(self._result)(data, layer.rgb, options)
        worker.returned.connect(lambda result: self._show(*result, name, layer))
        worker.finished.connect(self._finish)
        worker.start()

    def _result(self, data: Any, rgb: bool, options: dict[str, Any]) -> tuple[Any, str]:
        """Return the result, or the text that tells which options do not go together."""
        try:
            return self._function(np.asarray(data), rgb, options), ""
        except undula.UndulaError as error:
            return None, str(error)

    def _finish(self) -> None:
        self._busy, self._apply.text = False, "Apply"
        if self._again:
            self.compute()

    def _show(self, result: Any, error: str, name: str, layer: Image) -> None:
        """Show the result in its layer, which is added at first, at the place of the original."""
        if error:
            show_error(error)
            return
        several = isinstance(result, list)
        if name in self._viewer.layers:
            shown = self._viewer.layers[name]
            if shown.multiscale == several and np.ndim(shown.data[0] if several else shown.data) == np.ndim(
                result[0] if several else result
            ):
                shown.data = result
                return
            self._viewer.layers.remove(shown)
        look = {name: getattr(layer, name) for name in PLACE if hasattr(layer, name)} | {"rgb": layer.rgb}
        if not layer.rgb:
            look |= {
                "colormap": layer.colormap,
                "contrast_limits": layer.contrast_limits,
                "gamma": layer.gamma,
            }
        self._viewer.add_image(result, name=name, multiscale=several, **look)


def _axes(data: Any, rgb: bool, extent: str) -> tuple[int, ...]:
    """Return the axes that are filtered together: two, or three of volumes."""
    spatial = data.ndim - rgb
    count = min(spatial, 3 if extent == VOLUMES else 2)
    return tuple(range(spatial - count, spatial))


def _option_control(name: str, description: VerbOption, value: Any) -> Widget | None:
    """Return the control of an option; None if its value is left to the filter."""
    label = name.replace("_", " ").capitalize()
    common = {"name": name, "label": label, "tooltip": description.help}
    if description.choices:
        automatic = [("automatic", None)] if value is None else []
        choices = [*automatic, *((choice, choice) for choice in description.choices)]
        return ComboBox(choices=choices, value=value, **common)
    if isinstance(value, bool):
        return CheckBox(value=value, name=name, text=label, tooltip=description.help)
    if description.bounds is not None and value is not None:
        low, high, step = description.bounds
        return FloatSlider(value=value, min=low, max=high, step=step, **common)
    return None


class VerbWidget(LayerWidget):
    """A filter of Undula; subclasses name its verb.

    napari passes its viewer to a parameter of this name.
    """

    verb = ""

    def __init__(self, napari_viewer: Viewer) -> None:
        controls = {}
        for each in fields(VERBS[self.verb]):  # type: ignore[arg-type]
            description = each.metadata["option"]
            if each.name not in ADVANCED and not description.video_only:
                control = _option_control(each.name, description, each.default)
                if control is not None:
                    controls[each.name] = control
        controls["extent"] = ComboBox(
            choices=(SLICES, VOLUMES), value=SLICES, name="extent", label="Filter", tooltip="For stacks"
        )
        super().__init__(napari_viewer, controls, self._filtered)

    def _filtered(self, data: Any, rgb: bool, options: dict[str, Any]) -> Any:
        axes = _axes(data, rgb, options.pop("extent"))
        return getattr(undula, self.verb)(data, channel_axis=-1 if rgb else None, axes=axes, **options)


class DenoiseWidget(VerbWidget):
    """Remove noise."""

    verb, title = "denoise", "denoised"


class DespeckleWidget(VerbWidget):
    """Remove speckle."""

    verb, title = "despeckle", "despeckled"


class SharpenWidget(VerbWidget):
    """Sharpen."""

    verb, title = "sharpen", "sharpened"


class EnhanceWidget(VerbWidget):
    """Enhance weak structures."""

    verb, title = "enhance", "enhanced"


class PyramidWidget(LayerWidget):
    """Make a multiscale layer, of which napari draws the level that the zoom needs."""

    title = "pyramid"

    def __init__(self, napari_viewer: Viewer) -> None:
        controls: dict[str, Widget] = {
            "levels": SpinBox(value=3, min=1, max=12, name="levels", label="Levels"),
            "wavelet": ComboBox(choices=PYRAMID_WAVELETS, name="wavelet", label="Wavelet"),
            "extent": ComboBox(choices=(SLICES, VOLUMES), value=SLICES, name="extent", label="Halve"),
        }
        super().__init__(napari_viewer, controls, self._levels)
        self._layer.changed.connect(self._propose_levels)
        self._propose_levels()

    def _propose_levels(self) -> None:
        layer = self._layer.value
        if layer is not None:
            side = max(np.shape(layer.data[0] if layer.multiscale else layer.data)[-2 - layer.rgb :][:2])
            self._controls["levels"].value = max(1, int(np.ceil(np.log2(max(2, side / SMALLEST_SIDE)))))

    def _levels(self, data: Any, rgb: bool, options: dict[str, Any]) -> Any:
        return pyramid(data, options["levels"], options["wavelet"], _axes(data, rgb, options["extent"]))
