"""The drawings of the mathematics: made from the matrices, and true to them."""

import importlib.util
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType

import pytest

import undula

ROOT = Path(__file__).parents[2]


def tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


dataflow = tool("dataflow")


@pytest.mark.parametrize("wavelet", ["cdf53", "cdf97", "dd137"])
@pytest.mark.parametrize("name", undula.SCHEMES)
def test_arrows_are_operations(wavelet: str, name: str) -> None:
    scheme = undula.scheme(wavelet, name)
    drawn = dataflow.draw_scheme(wavelet, name)
    assert dataflow.arrows(drawn) == scheme.operations
    assert dataflow.barriers(drawn) == scheme.barriers
    assert sum(len(dataflow.terms(factor)) for factor in scheme.factors) == scheme.operations


@pytest.mark.parametrize("name", undula.SCHEMES)
def test_no_arrow_is_hidden(name: str) -> None:
    assert dataflow.clearance("cdf53", name) > 0


def test_drawings_are_current() -> None:
    for name, text in dataflow.pictures().items():
        path = ROOT / "docs" / "images" / "diagrams" / f"{name.removesuffix('.svg')}.svg"
        assert path.read_text(encoding="utf-8") == text, "run python tools/dataflow.py"
        root = ET.fromstring(text)
        assert float(root.get("width", "0").removesuffix("px")) <= 800
        assert "id=" not in text
