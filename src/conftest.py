"""Examples in modules that need PyTorch are not collected where it is not installed."""

from importlib.util import find_spec

NEED_TORCH = ["torch/*", "compat/ptwt.py", "engines/tensors/compiling.py", "engines/tensors/operators.py"]
collect_ignore_glob = [] if find_spec("torch") else [f"undula/{name}" for name in NEED_TORCH]
