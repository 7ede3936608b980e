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
    "dask",
    "functions",
    "operators",
    "codecs",
    "fixedpoint",
    "color",
    "filters",
    "data",
    "measures",
    "io",
    "stores",
    "xarray",
    "torch",
    "compat",
    "pywt",
    "experiments",
    "studio",
    "cli",
)
# Layers within folders, left to right; those of one line may import each other.
INNER_LAYERS = {
    "engines": (
        {"digests", "memory", "threads"},
        {"base", "convolution"},
        {"devices"},
        {"cpu", "numpy_engine"},
        {"gpu"},
        {"reference"},
        {"dispatch", "ceilings", "chunked", "tensors"},
    ),
    "engines/gpu": (
        {"disk", "emit", "process"},
        {"launches"},
        {"adjoints", "batches", "memory", "parts"},
        {"strategies"},
        {"builder"},
        {"batched_levels"},
        {"transform"},
        {"graph_builder"},
        {"collaborative", "reductions", "shifts", "stencils"},
        {"graph_lowering"},
        {"graphs"},
        {"arrays", "engine", "cuda", "opencl"},
    ),
}
MODULES = sorted(ROOT.rglob("*.py"))


def imported_names(path: Path, root: Path = ROOT) -> set[str]:
    """Return the full names of everything that a module imports from the package."""
    package = path.relative_to(root).parent.parts
    imported = set()
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
        imported |= {name for name in names if name.split(".")[0] == "undula"}
    return imported


def imported_layers(path: Path, root: Path = ROOT) -> set[str]:
    """Return the layers that a module imports; ``import undula`` is all that it re-exports."""
    names = imported_names(path, root)
    layers = {name.split(".")[1] for name in names if "." in name} & set(LAYERS)
    return layers | (PUBLIC_LAYERS if "undula" in names else set())


PUBLIC_LAYERS: set[str] = {name.split(".")[1] for name in imported_names(ROOT / "__init__.py")} & set(LAYERS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_left(path: Path) -> None:
    layer = path.relative_to(ROOT).parts[0].removesuffix(".py")
    if layer in ("__init__", "__main__"):
        return
    assert layer in LAYERS, f"{path} belongs to no layer; name it in LAYERS"
    right = [other for other in imported_layers(path) if LAYERS.index(other) > LAYERS.index(layer)]
    assert not right, f"{layer} imports from {right}, which stand to its right"


@pytest.mark.parametrize("folder", INNER_LAYERS)
def test_imports_within_a_folder_point_left(folder: str) -> None:
    order = {name: place for place, names in enumerate(INNER_LAYERS[folder]) for name in names}
    prefix = f"undula.{folder.replace('/', '.')}."
    for path in sorted((ROOT / folder).rglob("*.py")):
        layer = path.relative_to(ROOT / folder).parts[0].removesuffix(".py")
        if layer == "__init__":
            continue
        assert layer in order, f"{path} belongs to no layer of {folder}; name it in INNER_LAYERS"
        for name in imported_names(path):
            other = name.removeprefix(prefix).split(".")[0]
            if name.startswith(prefix) and other in order:
                assert order[other] <= order[layer], f"{path} imports {name}, which stands to its right"


def test_the_walk_sees_imports(tmp_path: Path) -> None:
    layers = imported_layers(ROOT / "schemes" / "catalogue.py")
    assert layers == {"algebra", "errors", "liftings", "schemes", "wavelets"}
    module = tmp_path / "lowering" / "module.py"
    module.parent.mkdir()
    module.write_text("def late():\n    import undula\n    from ..engines import cpu\n", encoding="utf-8")
    assert imported_names(module, tmp_path) == {"undula", "undula.engines.cpu"}
    assert {"engines", "io", "filters"} <= imported_layers(module, tmp_path)


def test_import_is_light() -> None:
    heavy = "numba llvmlite scipy pyopencl cuda cupy torch jax pywt PIL matplotlib".split()
    heavy += "zarr numcodecs xarray dask".split()
    code = f"import sys, undula; print([m for m in {heavy!r} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
