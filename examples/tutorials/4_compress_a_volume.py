# %% [markdown]
# # Compress a volume without loss
# Microscopes and scanners fill disks with volumes of 16-bit samples, and no bit of them may change. In this
# tutorial you see why wavelet transforms of *integers* make such data smaller, how much smaller, and how to
# store it in a Zarr array.
#
# You need the [extras](../install.md) `demo` and `scale`.

# %% [markdown]
# ## A volume
# We simulate light-sheet microscopy of cells: blurred, glowing spheres, and the noise of the photons that a
# camera counts.

# %%
import tempfile

import matplotlib.pyplot as plt
import numpy as np
import zarr

import undula

rng = np.random.default_rng(0)
shape = (48, 128, 128)
places = np.indices(shape)
light = np.full(shape, 20.0)
for _ in range(60):
    centre, radius = rng.uniform(0, shape), rng.uniform(5, 12)
    distance = np.sqrt(sum((place - c) ** 2 for place, c in zip(places, centre, strict=True)))
    light += 400 / (1 + np.exp((distance - radius) / 1.5))
volume = rng.poisson(4 * light).astype("uint16")
print(volume.shape, volume.dtype, f"{volume.nbytes / 1e6:.1f} MB, values {volume.min()} to {volume.max()}")

# %% [markdown]
# ## Why wavelets help
# A compressor spends few bits on values that occur often. Samples have many different values. Their
# *differences* from what their neighbours predict have few, around zero. The lifting transform of integers
# is exactly that: predict every second sample from its neighbours, keep the error, repeat along each axis
# and for the coarser samples. All steps round in a way that can be undone, so integers come back bit for
# bit.

# %%
coeffs = undula.lwtn(volume, "cdf53", level=2)
assert (undula.ilwtn(coeffs, "cdf53") == volume).all()
finest = coeffs[-1]["ddd"]


def entropy(values):
    """Bits per value that an ideal compressor of single values needs."""
    _, counts = np.unique(values, return_counts=True)
    share = counts / counts.sum()
    return -(share * np.log2(share)).sum()


print(f"samples: {entropy(volume):.2f} bits each; of the dtype: 16")
bands = [coeffs[0], *(band for level in coeffs[1:] for band in level.values())]
mean = sum(entropy(band) * band.size for band in bands) / volume.size
print(f"coefficients: {mean:.2f} bits each")
assert mean < entropy(volume)

_, axes = plt.subplots(
    1, 2, figsize=(9, 2.9), num="histograms of samples and of details", layout="constrained"
)
axes[0].hist(volume.ravel(), 120)
axes[0].set_title("samples", loc="left", fontsize=10)
axes[1].hist(np.concatenate([band.ravel() for band in coeffs[-1].values()]), 120, range=(-300, 300))
axes[1].set_title("details of the finest level", loc="left", fontsize=10)
for axis in axes:
    axis.set_yticks([])
plt.show()

# %% [markdown]
# The rest is photon noise, which nothing can compress: noise has no neighbours that predict it.
#
# ## In a Zarr array
# `nd_lift` is a codec: Zarr applies it to each chunk before the compressor, and undoes it after reading.
# Nothing changes for those who use the array. `"undula.zigzag"` folds the sign into the last bit, so that
# the high bytes of small values are zero whatever their sign.

# %%
from undula.codecs.zarr3 import NdLiftCodec, ZigZagCodec

steps = [{"dimension": axis, "kind": "lift53", "levels": 2} for axis in range(3)]
lifted = [NdLiftCodec(transforms=steps), ZigZagCodec()]
blosc = zarr.codecs.BloscCodec(cname="zstd", clevel=5, shuffle="bitshuffle")
folder = tempfile.mkdtemp()
sizes = {}
for name, filters in {"Blosc": [], "nd_lift and Blosc": lifted}.items():
    array = zarr.create_array(
        f"{folder}/{len(sizes)}.zarr", data=volume, chunks=(24, 64, 64), filters=filters, compressors=blosc
    )
    assert (array[...] == volume).all()
    sizes[name] = array.nbytes_stored()
    print(f"{name:18} {sizes[name] / 1e6:.2f} MB, ratio {volume.nbytes / sizes[name]:.2f}")
assert sizes["nd_lift and Blosc"] < sizes["Blosc"]

# %% [markdown]
# Others can read it without Undula if their Zarr library has `nd_lift`, which is a published format; with
# Undula installed, Zarr finds the codec by itself.
#
# ## From here
# - [Zarr codec](../zarr-codec.md): ratios and speeds for real volumes, and which transform to choose.
# - [Lossless transforms](../guides/lossless.md): images and colour, and how the integer types are chosen.
# - [Zarr stores](../zarr.md): pyramids, and transforms of arrays that are larger than memory.
