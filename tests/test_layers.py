"""The pipeline has a direction: each layer imports only from those to its left."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import undula

ROOT = Path(undula.__file__).parent
# Left to right. What is not a layer (the package itself) may import everything.
LAYERS = (
    "errors",
    "arrays",
    "algebra",
    "wavelets",
    "liftings",
    "schemes",
    "lowering",
    "engines",
    "plan",
    "functions",
    "fixedpoint",
    "color",
    "filters",
    "measures",
    "io",
    "experiments",
    "studio",
    "cli",
)
MODULES = sorted(ROOT.rglob("*.py"))


def imported_layers(path: Path) -> set[str]:
    """First parts, below the package, of everything a module imports from the package."""
    package = path.relative_to(ROOT).parent.parts
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = ("undula", *package)[: len(package) + 2 - node.level]
            names = [".".join((*base, *filter(None, [node.module]))) + f".{a.name}" for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("undula.")}
    return found & set(LAYERS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_left(path: Path) -> None:
    layer = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if layer in ("__init__", "__main__"):
        return
    assert layer in LAYERS, f"{path} belongs to no layer; name it in LAYERS"
    right = [other for other in imported_layers(path) if LAYERS.index(other) > LAYERS.index(layer)]
    assert not right, f"{layer} imports from {right}, which stand to its right"


def test_the_walk_sees_imports() -> None:
    found = imported_layers(ROOT / "schemes" / "catalogue.py")
    assert found == {"algebra", "errors", "liftings", "schemes", "wavelets"}


def test_import_is_light() -> None:
    heavy = "numba llvmlite scipy pyopencl cuda cupy torch jax pywt PIL matplotlib".split()
    code = f"import sys, undula; print([m for m in {heavy!r} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
