"""Examples in modules that import PyTorch are not collected where it is not installed."""

import re
from importlib.util import find_spec
from pathlib import Path

collect_ignore = []
if not find_spec("torch"):
    for path in Path(__file__).parent.glob("undula/**/*.py"):
        if path.parent.name == "torch" or re.search(
            "^(import|from) torch", path.read_text(encoding="utf-8"), re.M
        ):
            collect_ignore.append(str(path))
