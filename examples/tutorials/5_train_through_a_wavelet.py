# %% [markdown]
# # Train through a wavelet
# Shrinking wavelet coefficients removes noise, but by how much should each band be shrunk? There are
# formulas for this. Or let the data decide: make the thresholds parameters of a PyTorch module, and train
# them. For this, gradients must pass through the transform, and they do: the backward pass of a transform
# is its exact adjoint, borders included.
#
# You need PyTorch, and the [extra](../install.md) `demo`.

# %% [markdown]
# ## A module
# The module is a decomposition, one learned threshold for each band of each level, and the inverse. The
# transform functions take tensors as they take NumPy arrays.

# %%
import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

import undula
from undula import io

torch.manual_seed(0)
WAVELET, LEVELS = "db2", 3


class Shrinkage(nn.Module):
    """Soft thresholding of wavelet coefficients, with a learned threshold for each band."""

    def __init__(self, start):
        super().__init__()
        self.limits = nn.Parameter(torch.full((LEVELS, 3), float(start)))

    def forward(self, x):
        """Return denoised images."""
        low, *details = undula.wavedec2(x, WAVELET, level=LEVELS)
        shrunk = [
            tuple(
                torch.sign(band) * torch.relu(band.abs() - limit)
                for band, limit in zip(level, limits, strict=True)
            )
            for level, limits in zip(details, self.limits, strict=True)
        ]
        return undula.waverec2([low, *shrunk], WAVELET, shape=x.shape)


# %% [markdown]
# ## Data
# The data are pairs of noisy and clean patches of a photograph. One half of the photograph is for training,
# and the other is for the test.

# %%
SIGMA = 0.1
photo = torch.from_numpy(io.read(io.sample("camera")).pixels / np.float32(255))
rng = np.random.default_rng(0)


def patches(part, count, side=64):
    """Random patches of a part of the photograph."""
    tops, lefts = (
        rng.integers(part.shape[0] - side, size=count),
        rng.integers(part.shape[1] - side, size=count),
    )
    return torch.stack([part[t : t + side, s : s + side] for t, s in zip(tops, lefts, strict=True)])


train, test = patches(photo[:, :256], 32), photo[128:384, 256:]
noisy_test = test + SIGMA * torch.randn(test.shape)


def psnr(image):
    return float(-10 * torch.log10(((image - test) ** 2).mean()))


# %% [markdown]
# ## Training
# We begin with the universal threshold, σ√(2 ln n).

# %%
start = SIGMA * np.sqrt(2 * np.log(64 * 64))
module = Shrinkage(start)
with torch.no_grad():
    before = module(noisy_test)
optimizer = torch.optim.Adam(module.parameters(), lr=0.02)
losses = []
for _ in range(40):
    noisy = train + SIGMA * torch.randn(train.shape)
    loss = ((module(noisy) - train) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
with torch.no_grad():
    after = module(noisy_test)

_, axis = plt.subplots(figsize=(7, 2.6), num="the loss over the steps of training", layout="constrained")
axis.plot(losses)
axis.set_xlabel("step")
axis.set_ylabel("mean squared error")
plt.show()

for title, image in {"noisy": noisy_test, "universal threshold": before, "learned": after}.items():
    print(f"{title}: {psnr(image):.1f} dB")
assert psnr(after) > psnr(before) + 1

# %% [markdown]
# ## What was learned
# The thresholds, divided by σ, from the coarsest level to the finest:

# %%
for level, limits in zip(range(LEVELS, 0, -1), module.limits.detach() / SIGMA, strict=True):
    horizontal, vertical, diagonal = limits.tolist()
    print(f"level {level}: horizontal {horizontal:.2f}, vertical {vertical:.2f}, diagonal {diagonal:.2f}")
print(f"universal: {start / SIGMA:.2f}")
assert module.limits.detach()[0].mean() < module.limits.detach()[-1].mean()

_, axes = plt.subplots(2, 2, figsize=(6.8, 7.2), num="the test image before and after", layout="constrained")
images = {"clean": test, "noisy": noisy_test, "universal": before, "learned": after}
for axis, (title, image) in zip(axes.flat, images.items(), strict=True):
    axis.imshow(image[40:200, 40:200].numpy(), cmap="gray", vmin=0, vmax=1)
    axis.set_title(title, fontsize=13)
    axis.set_axis_off()
plt.show()

# %% [markdown]
# Training confirms the theory: coarse levels hold structure and should hardly be shrunk; the finest
# diagonals are mostly noise. Nine numbers were learned from 32 patches. `undula.denoise` still does better,
# because it looks at the neighbours of each coefficient; that can be trained in the same way.
#
# ## From here
# - [Gradients](../guides/gradients.md): losses in the wavelet domain, learned wavelets, `torch.compile`,
#   JAX.
# - `undula.torch` has layers with the names of pytorch_wavelets; tensors on a GPU stay there.
