"""Rules on modules: their length, and names that say what things are, are unique, and stay private."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def _tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[1] / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


structure = _tool("structure")


def _name(path: Path) -> str:
    return path.relative_to(structure.SOURCE).as_posix()


MODULES = structure.modules()


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_names_say_what_things_are(path: Path) -> None:
    assert not [str(finding) for finding in structure.pronouns(path)]


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_private_attributes_are_read_at_home(path: Path) -> None:
    assert not [str(finding) for finding in structure.foreign_private_attributes(path)]


def test_modules_are_short() -> None:
    lines = {_name(path): structure.line_count(path) for path in MODULES}
    assert not {name: count for name, count in lines.items() if count > structure.MAX_LINES}


def test_class_names_are_unique() -> None:
    assert not structure.repeated_class_names()


def test_the_rules_see_what_they_forbid(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "class Box:\n    def __init__(self, own):\n        self._made = own\n\n\n"
        "def read(box):\n    found = box._hidden\n    a = 1\n    b = 2\n    c = 3\n    return found, a, b\n"
        "\n\ndef short(box):\n    one = box\n    return one\n",
        encoding="utf-8",
    )
    assert [finding.name for finding in structure.pronouns(module)] == ["own", "_made", "found"]
    assert [finding.name for finding in structure.foreign_private_attributes(module)] == ["box._hidden"]
    (tmp_path / "other.py").write_text("class _Box:\n    pass\n", encoding="utf-8")
    assert list(structure.repeated_class_names(tmp_path)) == ["Box"]


def test_each_idea_has_one_home() -> None:
    homes = {
        idea: [_name(path) for path in structure.homes(words)] for idea, words in structure.HOMES.items()
    }
    assert homes == {
        "a boundary mode": ["lowering/borders.py"],
        "a threshold rule": ["lowering/rules.py"],
        "the kind of an array": ["arrays/libraries.py"],
    }


def test_a_warm_call_is_short() -> None:
    assert structure.python_calls("wavedec2") <= 80
    assert structure.python_calls("denoise") <= 300
