"""The runtime of CUDA: kernels compiled by NVRTC, kept on disk, launched on the caller's stream.

``cuda-core`` and ``cuda-bindings`` are all it needs; arrays may come from any library.
"""
