# %% [markdown]
# # Clean an ultrasound clip
# Ultrasound images are grainy. The grain is *speckle*: echoes of many small scatterers that interfere. It
# is not additive noise, so filters for additive noise remove too much in dark regions and too little in
# bright ones. In this tutorial you clean a DICOM clip and keep what must not change: the text, the black
# background, and the data of the patient.
#
# You need the [extra](../install.md) `demo`.

# %% [markdown]
# ## Read the clip

# %%
import matplotlib.pyplot as plt
import numpy as np

import undula
from undula import io

clip = io.read(io.sample("ultrasound-clip"))
print(clip.kind, clip.pixels.shape, clip.pixels.dtype)
frames = clip.pixels[:8]  # the first eight frames, to be quick


def show(label, pictures):
    """Show pictures beside each other, each with its title."""
    _, axes = plt.subplots(1, len(pictures), figsize=(7.6, 2.6), num=label, layout="constrained")
    for axis, (title, picture) in zip(axes, pictures.items(), strict=True):
        axis.imshow((picture / 255) ** 0.6)  # brighter than it is, for a bright room
        axis.set_title(title, fontsize=14)
        axis.set_axis_off()
    plt.show()


# %% [markdown]
# ## Despeckle a frame
# Machines display the *logarithm* of the echo, because the echo varies by a factor of thousands. The
# logarithm turns multiplicative speckle into additive noise, and `kind="log"` says that this has already
# happened. The speckle of a scan is larger than one pixel; with this kind, Undula therefore measures its
# strength in each band of the transform.

# %%
strong = undula.despeckle(frames[0], kind="log")
gentle = undula.despeckle(frames[0], kind="log", strength=0.5)
heart = (slice(35, 175), slice(90, 250))
shown = {"as recorded": frames[0], "strength 1": strong, "strength 0.5": gentle}
show("the heart, and two strengths", {title: frame[heart] for title, frame in shown.items()})

# %% [markdown]
# At full strength the tissue looks smooth. But physicians read the texture of tissue from its speckle, so
# half the strength is a good start.
#
# The background stays black: `kind="log"` leaves dark samples out of all statistics.

# %%
background = frames[0].max(axis=-1) == 0
print(f"{background.mean():.0%} of the frame is background")
print("largest value there after the filter:", gentle[background].max())
assert gentle[background].max() <= 2

# %% [markdown]
# ## All frames
# A clip is a stack of images. Its first axis is time, neither space nor colour, so pass the spatial axes.
# Frames are then filtered one by one, on all cores.

# %%
cleaned = undula.despeckle(frames, kind="log", strength=0.5, axes=(1, 2), channel_axis=-1)
tissue = (slice(55, 100), slice(130, 200))  # a part with much speckle


def roughness(image):
    """The mean difference between neighbouring pixels of tissue."""
    return np.abs(np.diff(image[tissue].mean(axis=-1), axis=1)).mean()


for number in (0, 4):
    print(f"frame {number}: roughness {roughness(frames[number]):.1f} → {roughness(cleaned[number]):.1f}")
assert roughness(cleaned[4]) < roughness(frames[4])

columns = np.arange(90, 250)
_, axis = plt.subplots(figsize=(8, 3), num="a line through the tissue", layout="constrained")
axis.plot(columns, frames[0, 75, columns].mean(axis=-1), linewidth=0.8, label="as recorded")
axis.plot(columns, cleaned[0, 75, columns].mean(axis=-1), linewidth=1.8, label="despeckled")
axis.set_xlabel("column of row 75")
axis.set_ylabel("brightness")
axis.legend()
plt.show()

# %% [markdown]
# The line shows what happened: the grain is smaller, and borders of tissue are as steep as before.
#
# ## Write a DICOM file
# The command `undula despeckle` filters the pixels of a file and keeps the rest: patient, study,
# calibration and the time of each frame. It also takes whole folders. Here it is called from Python.

# %%
io.write("clip.dcm", clip)
from undula.cli import main

assert main(["despeckle", "clip.dcm", "clean.dcm", "--kind", "log", "--strength", "0.5"]) == 0
again = io.read("clean.dcm")
print(again.kind, again.pixels.shape, again.pixels.dtype)
assert again.pixels.shape == clip.pixels.shape

# %% [markdown]
# ## From here
# - [Denoise ultrasound](../guides/ultrasound.md) has masks, pipelines of your own, and measures of quality.
# - In [Studio](../studio.md) you move sliders while the clip plays, and copy the settings as a command.
# - These filters are for viewing. They are not approved for diagnosis.
