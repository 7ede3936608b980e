"""The release of PyWavelets whose names and behaviour ``undula.pywt`` has: programs compare it."""

__all__ = ["full_version", "release", "short_version", "version"]

version = short_version = full_version = "1.9.0"
release = True
