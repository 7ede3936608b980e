"""The runtime of OpenCL: the same kernels in OpenCL's words, on any device that has a driver for it."""
