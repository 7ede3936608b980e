"""Gradients of filters and of wavelet packets are those of finite differences, or are refused."""

from collections.abc import Callable
from typing import Any

import pytest

import undula
from undula.filters import Gain, Pipeline, Shrink, Unsharp

torch = pytest.importorskip("torch", reason="PyTorch is not installed")


def given(rule: str = "soft", **options: Any) -> Pipeline:
    return Pipeline("db2", 2, [Shrink("given", threshold=0.1, rule=rule)], **options)


FILTERS: dict[str, Callable[[Any], Any]] = {
    **{f"given, {rule}": given(rule) for rule in ("soft", "hard", "garrote", "firm")},
    "given, all shifts": given("soft", invariant=True),
    "given, colours": lambda x: given()(torch.stack([x, 2 * x, x * x], -1)),
    "given, a batch": lambda x: given()(x.reshape(2, 6, 10), axes=(1, 2)),
    "gain": Pipeline("db2", 2, [Gain(2.0)]),
    "unsharp": Pipeline("db2", 2, [Unsharp(sigma=1, amount=0.5, at="last")]),
    "bivariate": lambda x: undula.denoise(x, sigma=0.1),
    "directional": lambda x: undula.denoise(x, sigma=0.1, method="directional"),
    "universal": lambda x: undula.denoise(x, sigma=0.1, method="universal"),
    "sharpen": undula.sharpen,
    "VisuShrink": lambda x: undula.denoise_wavelet(x, sigma=0.1, method="VisuShrink"),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters(name: str) -> None:
    function = FILTERS[name]
    x = torch.rand(12, 10, dtype=torch.float64, generator=torch.manual_seed(0)).requires_grad_()
    torch.testing.assert_close(function(x).detach(), function(x.detach()), rtol=0, atol=1e-12)
    assert torch.autograd.gradcheck(function, (x,), atol=1e-4, fast_mode=True)


@pytest.mark.parametrize(
    "function",
    [
        undula.denoise,
        lambda x: undula.denoise(x, sigma=0.1, method="bayes"),
        lambda x: undula.denoise(x, sigma=0.1, method="sure"),
        lambda x: undula.denoise(x, sigma=0.1, quality="best"),
        lambda x: given()(x, mask=x.detach() > 0.1),
        undula.denoise_wavelet,
        lambda x: given()(x.half()),
        lambda x: given()(torch.ones(8, 8), sigma=x[0, 0]),
    ],
)
def test_filters_that_choose_their_thresholds(function: Callable[[Any], Any]) -> None:
    with pytest.raises(undula.ArgumentTypeError, match="gradients"):
        function(torch.rand(16, 16, requires_grad=True))


def _changed_nodes(x: Any) -> Any:
    packet = undula.WaveletPacket(x, "db2", "reflect", maxlevel=2)
    packet["ad"] = 2 * packet["ad"].data
    for node in packet.get_level(2):
        node.data = torch.tanh(node.data)
    return packet.reconstruct(update=False)


def _one_node(x: Any) -> Any:
    source, packet = (undula.WaveletPacket2D(data, "haar", maxlevel=1) for data in (x.reshape(4, 5), None))
    packet["h"] = source["h"]
    return packet.reconstruct(update=False)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: [node.data for node in undula.WaveletPacket(x, "db2", maxlevel=2).get_level(2, "freq")],
        _changed_nodes,
        _one_node,
    ],
)
def test_packets(function: Callable[[Any], Any]) -> None:
    x = torch.rand(20, dtype=torch.float64, generator=torch.manual_seed(0)).requires_grad_()
    assert torch.autograd.gradcheck(function, (x,))
