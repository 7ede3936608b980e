"""The modules whose public names are documented in full."""

import importlib
import importlib.util
from types import ModuleType

__all__ = ["MODULES", "WITH_TORCH", "documented_modules"]

WITH_TORCH = ["undula.torch", "undula.compat.ptwt"]
MODULES = (
    """
    undula undula.codecs undula.codecs.zarr2 undula.codecs.zarr3 undula.color undula.dask undula.data
    undula.errors undula.experiments undula.filters undula.fixedpoint undula.io undula.measures
    undula.operators undula.stores undula.xarray
""".split()
    + WITH_TORCH
)


def documented_modules() -> list[ModuleType]:
    """Return the modules that can be imported here: all but those for PyTorch if it is not installed."""
    has_torch = importlib.util.find_spec("torch") is not None
    return [importlib.import_module(name) for name in MODULES if has_torch or name not in WITH_TORCH]
