# %% [markdown]
# # From lifting to a GPU kernel
# Undula is a compiler: it turns the name of a wavelet into the text of a program for your GPU. In this
# tutorial you follow one wavelet, CDF 5/3, from two filters to a few lines of OpenCL or CUDA, and run them.
# You need no GPU: [PoCL](../install.md), an OpenCL driver for the CPU, is enough.
#
# You need the [extras](../install.md) `demo` and `opencl`.

# %% [markdown]
# ## Two filters
# A wavelet transform applies a low-pass and a high-pass filter, and keeps every second result of each.

# %%
import matplotlib.pyplot as plt
import numpy as np

import undula

wavelet = undula.Wavelet("cdf53")
print("low  ", np.round(wavelet.dec_lo, 4))
print("high ", np.round(wavelet.dec_hi, 4))

# %% [markdown]
# ## Two lifting steps
# The filters share most of their arithmetic. [Lifting](../lifting.md) makes use of this: *predict* each odd
# sample from its two even neighbours and keep the error; then *update* each even sample with the errors
# beside it. Each step is undone by its opposite, so the inverse is free.

# %%
lifting = undula.lifting(wavelet)
print(lifting)
print("multiply-adds per pair of samples:", lifting.operations)

# %% [markdown]
# P and U are polynomials in z, the shift by one pair: P = −1/2 − 1/2·z⁻¹ means "subtract half of one
# neighbour and half of the other".
#
# ## A scheme for images
# An image has two axes, so each step is needed twice. Threads must wait for each other where a step reads
# what other threads wrote: at a *barrier*. [Ten schemes](../schemes.md) trade barriers for operations by
# multiplying matrices.

# %%
schemes = {name: undula.scheme(wavelet, name) for name in undula.SCHEMES}
names_at = {}  # Some schemes have the same barriers and operations.
for name, scheme in schemes.items():
    names_at.setdefault((scheme.barriers, scheme.operations), []).append(name)

_, axis = plt.subplots(figsize=(7, 3.4), num="barriers and operations of the schemes", layout="constrained")
raised = {"convolution": 2, "polyphase": -9}  # Their points almost touch.
for point, names in names_at.items():
    axis.plot(*point, "o")
    place = 7, raised.get(names[0], -3)
    axis.annotate(", ".join(names), point, xytext=place, textcoords="offset points", fontsize=9)
axis.set_xlabel("barriers")
axis.set_ylabel("operations per quadruple of samples")
axis.set_xticks(range(1, 1 + max(scheme.barriers for scheme in schemes.values())))
axis.margins(0.15)
plt.show()
print(schemes["monolithic"])

# %% [markdown]
# ## The kernel
# A plan for a device generates the text of its kernels. Here are the lines of one of them that compute the
# steps along a row; look for −1/2 and 1/4.

# %%
plan = undula.Plan((512, 512), "cdf53", level=1, dtype="float32", backend="opencl")
source = plan.source
print(len(source.splitlines()), "lines in all; strategy", plan.strategy)
start = source.index("static inline void run_along")
print(source[start : source.index("\n}\n", start) + 2])

# %% [markdown]
# Each lane of the GPU holds two pairs of samples in registers. To predict its last odd sample, it needs the
# first sample of the lane to its right, and it gets it through `exchange`, a small array in fast memory. In
# CUDA the same generator writes a *shuffle* there, which moves a register from lane to lane without any
# memory:
#
# ```c
# other[2] = __shfl_sync(0xffffffffu, v[0], lane + 1);
# ```
#
# With `backend="cuda"` the plan prints that text. Nothing else differs: both languages come from one
# emitter, with a table of keywords for each.
#
# ## Run it

# %%
image = np.random.default_rng(0).standard_normal((512, 512)).astype("float32")
on_device = plan.forward(image)
on_cpu = undula.wavedec2(image, "cdf53", level=1)
difference = np.abs(on_device[0] - on_cpu[0]).max()
print(f"largest difference from the CPU: {difference:.1e}")
assert difference < 1e-5
restored = plan.inverse(on_device)
print(f"largest error of the reconstruction: {np.abs(restored - image).max():.1e}")
assert np.abs(restored - image).max() < 1e-5

# %% [markdown]
# ## What it costs
# The plan knows what it does: bytes read and written, operations, barriers. Eight bytes for each pixel,
# four to read it and four to write a coefficient, is what a copy takes. No transform needs less.

# %%
cost = plan.cost
print(f"{cost.bytes / image.size:.2f} bytes and {cost.operations / image.size:.1f} operations for each pixel")
assert cost.bytes / image.size < 8.2

# %% [markdown]
# ## From here
# - [Why it is fast](../why.md): the four ideas. [GPUs](../gpu.md): strategies and measurements.
# - [Architecture](../developing/architecture.md) follows a call through the code; [Add a
#   strategy](../developing/add-strategy.md) lets you write your own kernel.
