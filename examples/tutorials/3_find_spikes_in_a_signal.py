# %% [markdown]
# # Find spikes in a signal
# Heartbeats in an electrocardiogram, clicks in a recording, faults in a power line: the task is to find
# short events in a signal that also drifts and is noisy. In this tutorial you find the beats of a heart
# with an undecimated wavelet transform, and see why the usual decimated one is the wrong tool.
#
# You need the [extra](../install.md) `demo`.

# %% [markdown]
# ## A difficult signal
# We take an electrocardiogram and make it worse by adding noise and a drifting baseline, as breathing
# causes it.

# %%
import matplotlib.pyplot as plt
import numpy as np

import undula

ecg = undula.data.ecg().astype(float)
time = np.arange(ecg.size)
rng = np.random.default_rng(0)
signal = ecg + 60 * np.sin(time / 70) + 12 * rng.standard_normal(ecg.size)

_, axis = plt.subplots(
    figsize=(9, 2.6), num="an electrocardiogram with noise and drift", layout="constrained"
)
axis.plot(time, signal, linewidth=0.8)
axis.set_xlabel("sample")
plt.show()

# %% [markdown]
# A threshold on this signal would find the drift. We need to look at one *scale*: events that last a few
# samples are in the details of fine levels, and the drift is in the coarse ones.
#
# ## Why not the DWT
# The decimated transform keeps every second coefficient. Whether an event meets a coefficient or falls
# between two of them depends on where it is: move the signal by one sample, and the coefficients change
# their values, not only their places.

# %%
level = 3
for shift in range(3):
    details = undula.wavedec(np.roll(signal, shift), "sym4", level=level)[1]
    print(f"DWT, shifted by {shift}:   largest detail {np.abs(details).max():6.1f}")
for shift in range(3):
    details = undula.modwt(np.roll(signal, shift), "sym4", level)[level - 1]
    print(f"MODWT, shifted by {shift}: largest detail {np.abs(details).max():6.1f}")

# %% [markdown]
# `modwt`, the maximal overlap DWT, keeps all coefficients. A shift of the signal shifts them and changes
# nothing else. Signals may have any length. (`swt` is the same transform in PyWavelets' convention.)
#
# ## Look at all scales
# `modwt_mra` splits the signal into parts that add up to it again. Each has zero phase, so an event is at
# the same place in all of them.

# %%
parts = undula.modwt_mra(signal, "sym4", level=6)
assert np.allclose(sum(parts), signal)
names = [*(f"D{k}" for k in range(1, 7)), "S6"]
_, axes = plt.subplots(7, 1, figsize=(9, 6.4), sharex=True, num="details of six levels, and the rest")
for axis, name, part in zip(axes, names, parts, strict=True):
    axis.plot(time, part, linewidth=0.8)
    axis.set_ylabel(name, rotation=0, ha="right", va="center")
    axis.set_yticks([])
plt.show()

# %% [markdown]
# Noise is in D1 and D2. The drift is in S6. The beats stand out in D3 and D4, which contain little else.
#
# ## Find the beats
# Add these two parts, estimate their usual size by the median (which the few beats hardly affect), and keep
# what is far above it. One beat has several large samples, so take the largest of each group.

# %%
beats = np.abs(parts[2] + parts[3])
limit = 6 * np.median(beats) / 0.6745
above = np.flatnonzero(beats > limit)
groups = np.split(above, np.flatnonzero(np.diff(above) > 30) + 1)
found = np.array([group[np.argmax(beats[group])] for group in groups])
print("beats at", found.tolist())
print("distances", np.diff(found).tolist())

_, axis = plt.subplots(
    figsize=(9, 2.6), num="the signal with the beats that were found", layout="constrained"
)
axis.plot(time, signal, linewidth=0.8)
axis.plot(found, signal[found], "o", markersize=7, fillstyle="none", markeredgewidth=1.8)
axis.set_xlabel("sample")
plt.show()

# %% [markdown]
# Are they the beats? In the original signal, without noise and drift, they are easy to find: they are its
# peaks.

# %%
peaks = [
    k for k in range(20, ecg.size - 20) if ecg[k] == ecg[k - 20 : k + 21].max() and ecg[k] > 0.6 * ecg.max()
]
print("peaks of the original", peaks)
assert len(found) == len(peaks)
assert max(abs(a - b) for a, b in zip(found, peaks, strict=True)) <= 4

# %% [markdown]
# All beats are found, without false ones, and each is within four samples of its place.
#
# ## From here
# - [Transforms](../transforms.md) explains the conventions of `swt` and `modwt`.
# - Both take batches: `undula.modwt(signals, "sym4", axis=-1)` transforms all rows, on all cores or on a
#   GPU.
# - For rhythms rather than events, use [continuous transforms](../continuous.md).
