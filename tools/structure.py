"""Measures the structure of the package: names, private attributes, class names, calls, lines.

``python tools/structure.py`` prints the table; ``--list`` prints every finding with its place. The tests hold
the package to those rows that are rules.
"""

from __future__ import annotations

import argparse
import ast
import cProfile
import pstats
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "undula"

# Words that say nothing about the thing they name.
PRONOUNS = frozenset({"own", "found", "made", "told", "one", "some", "wanted", "whole"})
MAX_LINES = 600  # of a module
SHORT_LIVED_LINES = 3  # A pronoun may name a local variable that is not used further down than this.
# Public members whose names begin with an underscore: of named tuples, and of Numba's structures.
PUBLIC_MEMBERS = frozenset({"_asdict", "_fields", "_make", "_replace", "_getvalue"})


@dataclass(frozen=True)
class Finding:
    """A name at a place that breaks a rule."""

    path: Path
    line: int
    name: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(SOURCE.parent)}:{self.line}: {self.name}"


def modules(folder: Path = SOURCE) -> list[Path]:
    """All modules of the package."""
    return sorted(folder.rglob("*.py"))


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(_tree(path)))


def _is_pronoun(name: str) -> bool:
    return name.strip("_") in PRONOUNS


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    arguments = function.args
    optional = [arg for arg in (arguments.vararg, arguments.kwarg) if arg is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *optional]


def _scopes(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in _nodes(path):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def pronouns(path: Path) -> list[Finding]:
    """Pronouns that name something that lives long.

    These are parameters, functions, classes, attributes, variables of modules and classes, and local
    variables that are used more than three lines below the line that binds them first.
    """
    findings: set[tuple[int, str]] = set()
    for node in _nodes(path):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and _is_pronoun(node.name):
            findings.add((node.lineno, node.name))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_pronoun(node.attr):
            findings.add((node.lineno, node.attr))
    for body in [_tree(path).body, *(node.body for node in _nodes(path) if isinstance(node, ast.ClassDef))]:
        for statement in body:
            targets: list[ast.expr] = []
            if isinstance(statement, ast.Assign):
                targets = statement.targets
            elif isinstance(statement, ast.AnnAssign):
                targets = [statement.target]
            names = [node for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
            findings |= {(node.lineno, node.id) for node in names if _is_pronoun(node.id)}
    for function in _scopes(path):
        findings |= {(arg.lineno, arg.arg) for arg in _arguments(function) if _is_pronoun(arg.arg)}
        parameters = {arg.arg for arg in _arguments(function)}
        lines: dict[str, list[int]] = defaultdict(list)
        bound: set[str] = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and _is_pronoun(node.id):
                lines[node.id].append(node.lineno)
                if isinstance(node.ctx, ast.Store):
                    bound.add(node.id)
        for name in bound - parameters:
            if max(lines[name]) - min(lines[name]) > SHORT_LIVED_LINES:
                findings.add((min(lines[name]), name))
    return [Finding(path, line, name) for line, name in sorted(findings)]


def foreign_private_attributes(path: Path) -> list[Finding]:
    """Reads of private attributes that the module does not define itself."""
    defined: set[str] = set()
    for node in _nodes(path):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            defined.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            defined.add(node.attr)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            defined.add(node.value)  # (slots, and names for setattr)
    findings = []
    for node in _nodes(path):
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_") or node.attr.startswith("__"):
            continue
        if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            continue
        if node.attr not in defined | PUBLIC_MEMBERS:
            findings.append(Finding(path, node.lineno, ast.unparse(node)))
    for node in _nodes(path):
        if isinstance(node, ast.ImportFrom) and node.level:
            private = [
                alias.name
                for alias in node.names
                if alias.name.startswith("_") and not alias.name.startswith("__")
            ]
            findings += [Finding(path, node.lineno, f"import {name}") for name in private]
    return findings


def repeated_class_names(folder: Path = SOURCE) -> dict[str, list[Finding]]:
    """Names that stand for several classes, by name."""
    classes: dict[str, list[Finding]] = defaultdict(list)
    for path in modules(folder):
        for node in _nodes(path):
            if isinstance(node, ast.ClassDef):
                classes[node.name.lstrip("_")].append(Finding(path, node.lineno, node.name))
    return {name: places for name, places in sorted(classes.items()) if len(places) > 1}


def line_count(path: Path) -> int:
    """Lines of a module."""
    return len(path.read_text(encoding="utf-8").splitlines())


def comment_share(folder: Path = SOURCE) -> float:
    """The share of lines that have a comment."""
    texts = [path.read_text(encoding="utf-8").splitlines() for path in modules(folder)]
    comments = sum("# " in line and "noqa" not in line for lines in texts for line in lines)
    return comments / sum(map(len, texts))


# Ideas that should have one home, and words that only their implementations write as constants.
HOMES = {
    "a boundary mode": ("antireflect",),
    "a threshold rule": ("garrote",),
    "the kind of an array": ("__cuda_array_interface__", "__dlpack__"),
}


def homes(words: tuple[str, ...], folder: Path = SOURCE) -> list[Path]:
    """The modules that have one of these words as a constant, outside of docstrings."""
    paths = []
    for path in modules(folder):
        constants = {node.value for node in _nodes(path) if isinstance(node, ast.Constant)}
        if constants & set(words):
            paths.append(path)
    return paths


def python_calls(function: str) -> int:
    """Calls of Python functions in a warm call with a 512 × 512 image on the CPU."""
    import numpy as np

    import undula

    arguments = {"wavedec2": ("bior4.4", "symmetric", 3), "denoise": ()}[function]
    image = np.random.default_rng(0).standard_normal((512, 512)).astype(np.float32)
    work = getattr(undula, function)
    work(image, *arguments)
    work(image, *arguments)
    profile = cProfile.Profile(builtins=False)
    profile.runcall(work, image, *arguments)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


def main() -> None:
    """Prints the table, or all findings."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="print every finding with its place")
    parser.add_argument("paths", nargs="*", type=Path, help="modules or folders to look at (all)")
    arguments = parser.parse_args()
    roots = [path.resolve() for path in arguments.paths] or [SOURCE]
    chosen = [path for path in modules() if any(path == root or root in path.parents for root in roots)]
    private = [finding for path in chosen for finding in foreign_private_attributes(path)]
    names = [finding for path in chosen for finding in pronouns(path)]
    classes = repeated_class_names()
    if arguments.list:
        print(*private, *names, *(place for places in classes.values() for place in places), sep="\n")
    rows = [
        ("modules", len(modules())),
        ("lines", sum(map(line_count, modules()))),
        (f"modules of more than {MAX_LINES} lines", sum(line_count(path) > MAX_LINES for path in modules())),
        ("lines with a comment, one in", round(1 / comment_share())),
        ("reads of other modules' private attributes", len(private)),
        ("pronouns as names", len(names)),
        ("class names that stand for several classes", len(classes)),
        *((f"modules that know {idea}", len(homes(words))) for idea, words in HOMES.items()),
        ("Python calls of a warm wavedec2", python_calls("wavedec2")),
        ("Python calls of a warm denoise", python_calls("denoise")),
    ]
    for label, value in rows:
        print(f"{label:<46}{value:>8}")


if __name__ == "__main__":
    main()
