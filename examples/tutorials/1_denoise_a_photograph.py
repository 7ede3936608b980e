# %% [markdown]
# # Denoise a photograph
# A photograph taken in low light is noisy. In this tutorial you see why wavelets can tell noise from
# structure, remove the noise by hand in five lines, find out what those five lines get wrong, and let
# `undula.denoise` do better.
#
# You need the [extra](../install.md) `demo`, which has the photograph and the plots.

# %% [markdown]
# ## A noisy photograph
# To know how good a result is, we need the truth. So we take a clean photograph and add the noise
# ourselves: Gaussian noise with a standard deviation of 25, on a scale from 0 to 255.

# %%
import matplotlib.pyplot as plt
import numpy as np

import undula
from undula import io, measures

photo = io.read(io.sample("astronaut")).pixels[:384, 64:448]
noise = 25 * np.random.default_rng(0).standard_normal(photo.shape)
noisy = np.clip(photo + noise, 0, 255).astype("uint8")


def show(label, pictures, gray=True):
    """Show pictures beside each other, each with its title."""
    rows = len(pictures) // 2
    _, axes = plt.subplots(rows, 2, figsize=(6.8, 3.7 * rows), num=label, layout="constrained")
    for axis, (title, picture) in zip(axes.flat, pictures.items(), strict=True):
        axis.imshow(picture, cmap="gray" if gray else None)
        axis.set_title(title, fontsize=13)
        axis.set_axis_off()
    plt.show()


show("a photograph, and the same with noise", {"photograph": photo, "with noise": noisy})

# %% [markdown]
# ## What a wavelet transform sees
# One level of a transform divides an image into an approximation of half the size, and three bands of
# details: horizontal edges, vertical edges, and diagonals. Compare the details of the two images. Those of
# the photograph are zero nearly everywhere, and large at edges. Those of the noise are small and similar
# everywhere.

# %%
grey, grey_noisy = photo.mean(axis=-1), noisy.mean(axis=-1)
_, (clean_details, *_) = undula.dwt2(grey, "db2")
_, (noisy_details, *_) = undula.dwt2(grey_noisy, "db2")
magnitudes = {"details of the photograph": clean_details, "with noise": noisy_details}
show("details", {title: np.minimum(np.abs(band), 60) for title, band in magnitudes.items()})

for title, band in magnitudes.items():
    print(f"{title}: median magnitude {np.median(np.abs(band)):.1f}, largest {np.abs(band).max():.0f}")

# %% [markdown]
# ## Five lines that remove noise
# So the recipe is: transform, set small details to zero, and transform back. How small is small? Noise with
# the standard deviation σ hardly ever exceeds σ√(2 ln n) among n coefficients, the *universal threshold*.
# The median of the finest details gives σ, because most of them are noise.

# %%
coeffs = undula.wavedec2(grey_noisy, "db2", level=4)
sigma = np.median(np.abs(coeffs[-1][2])) / 0.6745
limit = sigma * np.sqrt(2 * np.log(grey.size))
kept = [coeffs[0], *(tuple(undula.threshold(band, limit, "soft") for band in level) for level in coeffs[1:])]
by_hand = undula.waverec2(kept, "db2", shape=grey.shape)

print(f"estimated noise {sigma:.1f}, threshold {limit:.0f}")
zeros = np.mean([np.mean(band == 0) for level in kept[1:] for band in level])
print(f"{zeros:.0%} of the details are zero now")
for title, image in {"noisy": grey_noisy, "by hand": by_hand}.items():
    print(f"{title}: {measures.psnr(grey, image, 255):.1f} dB")

# %% [markdown]
# The estimate is good: the mean of three channels has noise of 25/√3 ≈ 14.4. The noise is gone, but so is
# texture, and so much of it that the error is larger than before. Three things went wrong. One threshold
# for all bands is too high for most. A coefficient is judged alone, although edges continue: a coefficient
# beside large ones is probably structure. And the result depends on where the grid of the transform happens
# to lie, which shows as ripples along edges.
#
# ## Let Undula do it
# `undula.denoise` solves all three problems: it judges each coefficient by its neighbours and by its parent
# at the next coarser level, and it averages over shifts of the grid. It estimates the noise by itself, and
# it filters luma and chroma of a colour image. There is nothing to tune.

# %%
clean = undula.denoise(noisy)
best = undula.denoise(noisy, quality="best")
cut = (slice(60, 220), slice(90, 250))
show(
    "parts of the images",
    {"noisy": noisy[cut], "by hand, grey": by_hand[cut], "denoise": clean[cut], "quality='best'": best[cut]},
)

for title, image in {"noisy": noisy, "denoise": clean, "quality='best'": best}.items():
    psnr, ssim = measures.psnr(photo, image), measures.ssim(photo, image, channel_axis=-1)
    print(f"{title:16} {psnr:.1f} dB, similarity {ssim:.2f}")
assert measures.psnr(photo, clean) > measures.psnr(photo, noisy) + 8
assert measures.psnr(photo, best) > measures.psnr(photo, clean)

# %% [markdown]
# `quality="best"` also filters groups of similar blocks together, which takes at least ten times as long.
#
# ## From here
# - The same on the command line, with colour profile and metadata kept: `undula denoise photo.jpg
#   clean.png`.
# - If you know the noise, pass it: `undula.denoise(noisy, sigma=25)`. For raw data of a sensor, use
#   `noise="poisson-gaussian"`.
# - [Denoising](../denoising.md) compares methods with other packages, and [Filters](../filters.md) has all
#   options.
