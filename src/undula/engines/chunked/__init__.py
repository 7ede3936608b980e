"""Transforms of arrays in chunks, which may be larger than memory: graphs of tasks for Dask.

A transform is divided into stages of one or more levels, a stage into blocks, and each block is one task that
transforms a window of the array; see :mod:`undula.lowering.windows`. Nothing is computed until Dask runs the
tasks. The numbers are those of the whole transform, bit for bit.
"""
