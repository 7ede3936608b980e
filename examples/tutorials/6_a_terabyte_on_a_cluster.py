# %% [markdown]
# # A terabyte on a cluster
# A volume of a terabyte does not fit into the memory of any machine you have. In this tutorial you plan its
# transform, read what it will cost before a single byte moves, run the same program on a small cluster on
# your own machine, and check that its results equal those of the transform in memory.
#
# You need the [extra](../install.md) `scale`, and `demo` for the plot.

# %% [markdown]
# ## The array
# Dask arrays consist of chunks that are made when they are needed. Here is a terabyte. Nothing has been
# computed, and it takes no memory.

# %%
import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client, LocalCluster

import undula
from undula.dask import explain

huge = da.zeros((8192, 8192, 4096), chunks=(512, 512, 512), dtype="float32")
chunk = huge.blocks[0, 0, 0]
print(f"{huge.nbytes / 1e12:.1f} TB in {huge.npartitions:,} chunks of {chunk.nbytes / 1e6:.0f} MB")

# %% [markdown]
# ## The plan
# Coefficients near the border of a chunk need samples of its neighbours, the *halo*. There are two ways to
# compute several levels. If levels are *fused*, one task computes all levels of a chunk: nothing has to
# wait, but the halo is wide, and several tasks compute what lies in it. *Level by level*, the halo is
# narrow, but approximations travel between tasks. `explain` counts both and says which one is used.

# %%
print(explain(huge, "bior4.4", level=3))

# %% [markdown]
# Read the table like this: if levels were fused, a third of the samples would be transformed more than
# once, because the halo of three levels is wide in three dimensions. Level by level, it is one sample in
# 23. So `auto` goes level by level, with a stage for each level (`1+1+1`). Schedulers cope well with 23,000
# tasks. 54 GB travel between workers, a twentieth of the data. The largest task needs 1.2 GB, so give each
# thread of a worker at least twice that.
#
# ## The same program on a small cluster
# The program does not change with the size of the array or of the cluster. For practice, this cluster is
# two threads of this process; with `Client("tcp://scheduler:8786")` it would be a real one.

# %%
cluster = LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None)
client = Client(cluster)

image = np.random.default_rng(0).standard_normal((1024, 1024)).astype("float32")
chunked = da.from_array(image, chunks=256)
coeffs = undula.wavedec2(chunked, "bior4.4", level=3)
print(coeffs[0])  # a Dask array: nothing is computed yet

# %% [markdown]
# Compute all bands in *one* call. Then each chunk is read once; with one call for each band, it would be
# read once for each.

# %%
low, *details = dask.compute(*coeffs)
exact = undula.wavedec2(image, "bior4.4", level=3)
print("bit for bit as in memory:", np.array_equal(low, exact[0]))
assert np.array_equal(low, exact[0])
for level, same in zip(details, exact[1:], strict=True):
    assert all(np.array_equal(a, b) for a, b in zip(level, same, strict=True))

# %% [markdown]
# Bit for bit means that no seams can appear between chunks, whatever you do with the coefficients.
#
# ## Filters
# Filters also take Dask arrays. Pass `sigma` if you know it: estimating it needs several more passes over the
# data.

# %%
scene = np.add.outer(np.sin(np.arange(1024) / 40), np.cos(np.arange(1024) / 60)).astype("float32")
noisy = scene + 0.3 * image
result = undula.denoise(da.from_array(noisy, chunks=256), sigma=0.3)
clean = result.compute()
print(f"error {np.std(noisy - scene):.3f} → {np.std(clean - scene):.3f}")
assert np.std(clean - scene) < 0.3 * np.std(noisy - scene)

_, axes = plt.subplots(1, 2, figsize=(7, 3.7), num="before and after, chunk by chunk", layout="constrained")
for axis, (title, picture) in zip(
    axes, {"noisy": noisy, "denoised in chunks of 256²": clean}.items(), strict=True
):
    axis.imshow(picture[200:600, 200:600], cmap="gray", vmin=-2, vmax=2)
    axis.set_title(title, fontsize=11)
    axis.set_axis_off()
plt.show()
client.close()
cluster.close()

# %% [markdown]
# ## The terabyte
# On a real cluster, read from and write to Zarr: `undula.stores` does that region by region, and continues
# after an interruption where it stopped.
#
# ```text
# undula.stores.transform("huge.zarr", "coeffs.zarr", "bior4.4", level=3, scheduler="tcp://scheduler:8786")
# ```
#
# ## From here
# - [Beyond one machine](../scale.md): how large chunks should be, memory, the dashboard, GPUs.
# - [Clusters](../clusters.md): containers, Kubernetes and Slurm. [One petabyte on paper](../petabyte.md):
#   the next step.
