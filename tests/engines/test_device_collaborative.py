"""Groups of similar blocks on devices, against the CPU."""

from typing import Any

import numpy as np
import pytest
import pywt
from numpy.typing import NDArray

import undula
from undula.engines.base import TransformOptions, engine
from undula.engines.gpu import collaborative
from undula.engines.gpu.emit import CUDA
from undula.engines.gpu.emit import collaborative as emit_collaborative
from undula.engines.gpu.graph_lowering import lower_graph
from undula.engines.gpu.launches import DeviceLimits
from undula.lowering.collaborative import PROFILES, CollaborativeProfile
from undula.lowering.graph import Collaborate, Graph
from undula.lowering.symbolic import symbolic, symbolic_input, symbolic_output

Array = NDArray[Any]
SMALL = CollaborativeProfile(5, 16, 32)
PHOTO = pywt.data.camera()[180:308, 150:300].astype(np.float32)


def collaborate_graph(
    shape: tuple[int, int, int], dtype: str, profile: CollaborativeProfile = SMALL, channels: int = 1
) -> Graph:
    graph = Graph()
    x, noise = symbolic_input(graph, "x", shape, dtype), symbolic_input(graph, "noise", shape[:1], dtype)
    result = graph.allocate(shape, dtype)
    views = (x.graph.inputs["x"].view, noise.graph.inputs["noise"].view)
    graph.append(Collaborate(profile, channels, *views, (result,)))
    symbolic_output(graph, "result", symbolic(graph, result))
    return graph


def filtered(target: str, x: Array, noise: Any, channels: int = 1) -> Array:
    graph = collaborate_graph(x.shape, x.dtype.name, SMALL, channels)
    arrays = {"x": x, "noise": np.asarray(noise, x.dtype)}
    return np.asarray(engine(target).compile_graph(graph, TransformOptions()).run(arrays)["result"])


def noisy_planes(shape: tuple[int, int, int], sigma: float, dtype: str = "float32") -> Array:
    """Return integers: with noise that is a power of two, distances in the first step are exact."""
    items, rows, columns = shape
    planes = [np.roll(PHOTO, (7 * k, 11 * k), (0, 1))[:rows, :columns] for k in range(items)]
    noise = np.random.default_rng(rows).standard_normal(shape)
    return np.rint(np.stack(planes) + sigma * noise).astype(dtype)


@pytest.mark.parametrize(
    ("shape", "channels", "dtype", "sigmas"),
    [
        ((1, 75, 139), 1, "float32", [8]),  # several tiles of references, down and across
        ((6, 21, 37), 3, "float32", [8, 8, 4, 0, 8, 0]),  # two images; channels without noise
        ((2, 38, 17), 2, "float64", [0, 8]),  # matched in a channel without noise
        ((2, 1, 5), 1, "float32", [8, 8]),
        ((3, 24, 28), 1, "float32", [0, 8, 1e-9]),  # less noise than rounding would leave
    ],
)
def test_groups_are_those_of_the_cpu(
    target: str, shape: tuple[int, int, int], channels: int, dtype: str, sigmas: list[float]
) -> None:
    x = noisy_planes(shape, 8, dtype)
    expected, result = filtered("cpu", x, sigmas, channels), filtered(target, x, sigmas, channels)
    difference = np.abs(result - expected)
    # Groups of a pilot differ where distances are equal up to rounding.
    assert np.median(difference) < 1e-3
    assert difference.mean() < 0.05
    np.testing.assert_array_equal(filtered(target, x, sigmas, channels), result)
    for before, after, sigma in zip(x, result, sigmas, strict=True):
        if sigma < 1:
            np.testing.assert_array_equal(before, after)
        elif after.size > 50:
            assert np.abs(before - after).mean() > sigma / 8


def test_large_changes_are_added_up(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = noisy_planes((1, 30, 41), 8)
    expected = filtered(target, x, [8])
    # Changes that do not fit into the sums of a tile are added in global memory: here, most of them.
    monkeypatch.setattr(emit_collaborative, "MAX_TOTAL", 2**18)
    monkeypatch.setattr(collaborative, "emit_groups", emit_collaborative.emit_groups.__wrapped__)
    np.testing.assert_array_equal(filtered(target, x, [8]), expected)


def test_batches_are_filtered_in_chunks(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = noisy_planes((6, 21, 37), 8)
    expected = filtered(target, x, [8] * 6, 2)
    monkeypatch.setattr(collaborative, "MAX_CHUNK_BYTES", 100_000)  # two of three images
    np.testing.assert_array_equal(filtered(target, x, [8] * 6, 2), expected)


@pytest.mark.parametrize(("name", "arch"), [("best", "sm_90"), ("normal", "sm_75")])
def test_kernels_compile_for_cuda(name: str, arch: str) -> None:
    pytest.importorskip("cuda.core")
    from undula.engines.gpu.cuda.runtime import compile_kernel

    graph = collaborate_graph((3, 64, 64), "float32", PROFILES[name], 3)
    lowered = lower_graph(graph.scheduled(), {}, CUDA, DeviceLimits(132, 49152, 1024), TransformOptions())
    kernels = {launch.kernel.source: launch.kernel for launch in lowered.program.launches}
    assert len(kernels) > 8
    for kernel in kernels.values():
        assert compile_kernel(kernel, arch)[:4] == b"\x7fELF"


def test_devices_that_are_too_small_are_named() -> None:
    graph = collaborate_graph((1, 64, 64), "float32").scheduled()
    with pytest.raises(undula.ArgumentError, match="shared memory"):
        lower_graph(graph, {}, CUDA, DeviceLimits(8, 8192, 256), TransformOptions())


def test_volumes_are_left_to_the_cpu(target: str) -> None:
    volume = np.random.default_rng(0).standard_normal((8, 20, 24)).astype(np.float32)
    with pytest.raises(undula.ArgumentError, match=r"backend='cpu'.* two axes"):
        undula.denoise(volume, 1.0, method="collaborative", backend=target)
    with pytest.raises(undula.ArgumentError, match="volumes are filtered on the CPU"):
        undula.denoise(volume, 1.0, quality="best", backend=target)
    assert (
        undula.denoise(volume, 1.0, quality="balanced", backend=target, axes=(-2, -1)).shape == volume.shape
    )


def test_denoise(target: str) -> None:
    color = np.stack([PHOTO, 0.5 * PHOTO + 60, 255 - PHOTO], axis=-1)[:44, :52]
    noisy = color + 12 * np.random.default_rng(3).standard_normal(color.shape)
    noisy = np.clip(np.rint(noisy), 0, 255).astype(np.uint8)
    result = undula.denoise(noisy, backend=target, quality="balanced")
    assert result.dtype == np.uint8
    assert np.abs(result.astype(float) - undula.denoise(noisy, quality="balanced")).mean() < 0.1
    assert undula.measures.psnr(color, result, 255) > undula.measures.psnr(color, noisy, 255) + 4
