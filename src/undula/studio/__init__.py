"""The Studio: a page on which a wavelet filter is set up and seen at once. ``undula studio`` serves it."""

from .decoding import Limits
from .server import Options, serve

__all__ = ["Limits", "Options", "serve"]
