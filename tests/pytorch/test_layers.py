"""Layers give what the functions give, nested and named as pytorch_wavelets and ptwt do."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pywt

import undula

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from undula import torch as layers  # noqa: E402
from undula.compat import ptwt  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Level value")


@pytest.mark.parametrize("mode", ["zero", "symmetric", "periodization", "reflect"])
@pytest.mark.parametrize("wave", ["db1", "db3", "bior2.4"])
def test_images(wave: str, mode: str) -> None:
    x = torch.randn(2, 3, 21, 32, dtype=torch.float64)
    low, details = layers.DWTForward(2, wave, mode)(x)
    expected = pywt.wavedec2(x.numpy(), wave, mode, 2)
    np.testing.assert_allclose(low, expected[0], atol=1e-9)
    for level, bands in zip(details, expected[:0:-1], strict=True):
        np.testing.assert_allclose(level, np.stack(bands, 2), atol=1e-9)
    inverse = layers.DWTInverse(wave, mode)
    np.testing.assert_allclose(inverse((low, details))[..., :21, :], x, atol=1e-9)
    np.testing.assert_allclose(
        inverse((low, [None, details[1]])),
        pywt.waverec2([expected[0][..., :], expected[1], (None,) * 3], wave, mode),
        atol=1e-9,
    )


def test_lines_volumes_and_stationary_transforms() -> None:
    line = torch.randn(2, 3, 20, dtype=torch.float64)
    low, (fine, coarse) = layers.DWT1DForward(2, "db2", "reflect")(line)
    for band, other in zip((low, coarse, fine), pywt.wavedec(line, "db2", "reflect", 2), strict=True):
        np.testing.assert_allclose(band, other, atol=1e-12)
    np.testing.assert_allclose(layers.DWT1DInverse("db2", "reflect")((low, [fine, coarse])), line, atol=1e-12)
    volume = torch.randn(1, 2, 8, 6, 4, dtype=torch.float64)
    low, (bands,) = layers.DWT3DForward(1, "haar")(volume)
    named = pywt.dwtn(volume.numpy(), "haar", axes=(2, 3, 4))
    expected = np.stack([named[key] for key in ("aad", "ada", "add", "daa", "dad", "dda", "ddd")], 2)
    np.testing.assert_allclose(bands, expected, atol=1e-12)
    np.testing.assert_allclose(layers.DWT3DInverse("haar")((low, [bands])), volume, atol=1e-12)
    image = torch.randn(2, 1, 8, 12, dtype=torch.float64)
    levels = layers.SWTForward(2, "db2")(image)
    for level, (approximation, details) in zip(levels, pywt.swt2(image, "db2", 2)[::-1], strict=True):
        np.testing.assert_allclose(level, np.stack([approximation, *details], 2), atol=1e-12)
    np.testing.assert_allclose(layers.SWTInverse("db2")(levels), image, atol=1e-12)


@pytest.mark.parametrize("mode", ["zero", "symmetric", "periodization"])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_gradients_of_stacked_details(ndim: int, mode: str) -> None:
    forward = (layers.DWT1DForward, layers.DWTForward, layers.DWT3DForward)[ndim - 1](2, "db2", mode)
    inverse = (layers.DWT1DInverse, layers.DWTInverse, layers.DWT3DInverse)[ndim - 1]("db2", mode)
    # A view whose rows are apart, as of an image that was cut.
    x = torch.randn(2, 2, *(9, 8, 7)[:ndim], 2, dtype=torch.float64)[..., 0].requires_grad_()

    def round_trip(x: Any) -> Any:
        low, details = forward(x)
        return inverse((low, [level.square() for level in details]))

    assert torch.autograd.gradcheck(round_trip, x)
    assert torch.autograd.gradgradcheck(round_trip, x, fast_mode=True)
    # Traced calls stack the bands of the operator; others let kernels write where the bands are in the stack.
    (direct,) = torch.autograd.grad(round_trip(x).square().sum(), x)
    torch.testing.assert_close(torch.func.grad(lambda x: round_trip(x).square().sum())(x), direct)


def test_gradients_of_some_levels() -> None:
    x = torch.randn(2, 3, 16, 12, dtype=torch.float64, requires_grad=True)
    low, (fine, coarse) = layers.DWTForward(2, "db2")(x)
    gradient = torch.randn_like(coarse)
    (direct,) = torch.autograd.grad(coarse, x, gradient)
    bands = undula.wavedec2(x, "db2", "zero", 2)[1]
    (expected,) = torch.autograd.grad(torch.stack(bands, 2), x, gradient)
    torch.testing.assert_close(direct, expected)
    assert fine.is_contiguous()
    assert low.is_contiguous()


def test_filters_in_place_of_names() -> None:
    wavelet, other = undula.Wavelet("bior2.2"), undula.Wavelet("db2")
    x = torch.randn(1, 1, 16, 16, dtype=torch.float64)
    forward = layers.DWTForward(1, (wavelet.dec_lo, wavelet.dec_hi, other.dec_lo, other.dec_hi))
    low, details = forward(x)
    np.testing.assert_allclose(low, undula.dwt2(x.numpy(), (wavelet, other), "zero")[0], atol=1e-12)
    inverse = layers.DWTInverse((wavelet.rec_lo, wavelet.rec_hi, other.rec_lo, other.rec_hi))
    np.testing.assert_allclose(inverse((low, details)), x, atol=1e-12)
    with pytest.raises(undula.ArgumentError, match="got 3 filters"):
        layers.DWTForward(1, (other.dec_lo,) * 3)


def test_checkpoints() -> None:
    layer = layers.DWTForward(2, "db3")
    state = layer.state_dict()
    assert {name: tuple(taps.shape) for name, taps in state.items()} == {
        "h0_col": (1, 1, 6, 1), "h1_col": (1, 1, 6, 1), "h0_row": (1, 1, 1, 6), "h1_row": (1, 1, 1, 6),
    }  # fmt: skip
    assert list(layers.DWT1DInverse("db2").state_dict()) == ["g0", "g1"]
    np.testing.assert_allclose(state["h0_col"].ravel(), pywt.Wavelet("db3").dec_lo[::-1], rtol=1e-6)
    layer.load_state_dict(state)
    with pytest.raises(undula.ArgumentError, match=r"h0_col.*'db3'"):
        layer.load_state_dict(layers.DWTForward(2, "coif1").state_dict())
    with pytest.raises(undula.ArgumentError, match=r"\(N, C, H, W\), got \(4, 4\)"):
        layer(torch.ones(4, 4))


BAD: dict[str, tuple[Any, str]] = {
    "an array": (lambda: layers.DWTForward()(np.ones((1, 1, 8, 8))), "tensor of shape .* got ndarray"),
    "no approximation": (
        lambda: layers.DWT1DInverse()((None, [torch.ones(1, 1, 4)])),
        r"approximation must be .*\(N, C, L\), got NoneType",
    ),
    "too many bands": (
        lambda: layers.DWTInverse()((torch.ones(1, 1, 4, 4), [torch.ones(1, 1, 4, 4, 4)])),
        r"details must have shape \(N, C, 3, H, W\), got \(1, 1, 4, 4, 4\)",
    ),
    "too few bands": (
        lambda: layers.SWTInverse()([torch.ones(1, 1, 3, 4, 4)]),
        r"\(N, C, 4, H, W\), got \(1, 1, 3, 4, 4\)",
    ),
    "no levels": (lambda: layers.SWTInverse()([]), "at least one level"),
    "negative J": (lambda: layers.SWTForward(-1), "J must be .* at least 0, got -1"),
    "negative J of a learned wavelet": (lambda: layers.LearnableDWT("haar", -1), "J must .* got -1"),
    "no axes": (lambda: layers.LearnableDWT("haar", ndim=0), "ndim must be .* at least 1, got 0"),
    "fewer taps": (lambda: layers.LearnableDWT("haar", extra_taps=-1), "extra_taps must .* got -1"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case: str) -> None:
    act, message = BAD[case]
    with pytest.raises((undula.ArgumentError, undula.ArgumentTypeError), match=message):
        act()


@pytest.mark.parametrize("layer", [layers.DWTForward(2, "db2"), layers.SWTForward(2, "db2")])
def test_tensors_without_memory(layer: Any) -> None:
    x = torch.ones(2, 3, 9, 12)
    shapes = [[part.shape for part in layer(each)[1]] for each in (x, x.to("meta"))]
    assert shapes[0] == shapes[1]
    low, *_ = undula.wavedec2(x.to("meta"), "db2", level=1)
    assert (low.is_meta, low.shape) == (True, (2, 3, 6, 7))


@pytest.mark.parametrize("wave", ["haar", "db2", "cdf97"])
def test_learnable_wavelets(wave: str) -> None:
    layer = layers.LearnableDWT(wave, 2, extra_taps=1).double()
    x = torch.randn(2, 8, 16, dtype=torch.float64)
    learned = layer.wavelet()
    taps = np.trim_zeros(np.round(learned.dec_lo, 6))
    expected = np.trim_zeros(np.round(undula.Wavelet(wave).dec_lo, 6))
    np.testing.assert_allclose(np.abs(taps), np.abs(expected), atol=1e-5)
    with torch.no_grad():
        for step in layer.steps:
            step += 0.1 * torch.randn_like(step)
    np.testing.assert_allclose(layer.inverse(layer(x)).detach(), x, atol=1e-9)
    assert torch.autograd.gradcheck(lambda x: layer(x)[0], x.requires_grad_(), fast_mode=True)
    integers = (100 * x.detach()).round()
    torch.testing.assert_close(layer(integers.int())[0], layer(integers)[0])
    with pytest.raises(undula.ArgumentError, match="multiples of 4"):
        layer(torch.ones(6, 8))


def test_a_wavelet_is_learned() -> None:
    example = Path(__file__).parents[2] / "examples" / "learn_wavelet.py"
    before, after, error = runpy.run_path(str(example))["learn"](40)
    assert after < before
    assert error < 1e-5


def test_names_of_ptwt() -> None:
    x = torch.randn(2, 16, 16, 16, dtype=torch.float64)
    low, details = ptwt.wavedec2(x, "db2", level=1)
    expected = pywt.wavedec2(x, "db2", "reflect", 1)
    for band, other in zip((low, *details), (expected[0], *expected[1]), strict=True):
        np.testing.assert_allclose(band, other, atol=1e-12)
    pairs: list[tuple[Any, Any, dict[str, Any]]] = [
        (ptwt.wavedec, ptwt.waverec, {"axis": 1}),
        (ptwt.wavedec2, ptwt.waverec2, {"axes": (-3, -1)}),
        (ptwt.wavedec3, ptwt.waverec3, {}),
        (ptwt.fswavedec2, ptwt.fswaverec2, {}),
        (ptwt.fswavedec3, ptwt.fswaverec3, {}),
        (ptwt.swt, ptwt.iswt, {}),
    ]
    for forward, inverse, options in pairs:
        np.testing.assert_allclose(
            inverse(forward(x, "db2", level=1, **options), "db2", **options), x, atol=1e-12
        )
