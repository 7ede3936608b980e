"""Engines: the reference in NumPy, the CPU, and GPUs by CUDA and OpenCL."""
