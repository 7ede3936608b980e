"""Learn a wavelet for a kind of signal: lifting coefficients are changed until few details remain.

Run ``python examples/learn_wavelet.py``; it takes less than a minute on a CPU, and needs PyTorch. The signals
are damped oscillations of one frequency, which Haar cannot predict; the learned wavelet can. Whatever it
learns, the inverse gives the signals back.
"""

from __future__ import annotations

import argparse

import torch

from undula.torch import LearnableDWT


def signals(count: int, length: int, generator: torch.Generator) -> torch.Tensor:
    """Oscillations of nearly one frequency, with random phases, and little noise."""
    time = torch.arange(length)
    phase = 2 * torch.pi * torch.rand(count, 1, generator=generator)
    frequency = 0.9 + 0.02 * torch.randn(count, 1, generator=generator)
    return torch.sin(frequency * time + phase) + 0.01 * torch.randn(count, length, generator=generator)


def detail_energy(layer: LearnableDWT, x: torch.Tensor) -> torch.Tensor:
    """Share of the energy that is in the details, for a scaling that keeps the energy of pairs."""
    low, (details,) = layer(x)
    return details.square().sum() / (low.square().sum() + details.square().sum())


def learn(steps: int = 300) -> tuple[float, float, float]:
    """Return the share of energy in the details before and after learning, and the reconstruction error."""
    generator = torch.Generator().manual_seed(0)
    layer = LearnableDWT("cdf53", ndim=1, extra_taps=1)
    layer.scaling.requires_grad_(False)  # or the details would simply be scaled down
    test = signals(64, 256, generator)
    before = float(detail_energy(layer, test).detach())
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.01)
    for _ in range(steps):
        loss = detail_energy(layer, signals(32, 256, generator))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        error = float((layer.inverse(layer(test)) - test).abs().max())
        return before, float(detail_energy(layer, test)), error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    before, after, error = learn(parser.parse_args().steps)
    print(f"energy in the details: {before:.2%} with CDF 5/3, {after:.4%} with the learned wavelet")
    print(f"largest reconstruction error: {error:.1e}")


if __name__ == "__main__":
    main()
