"""The docstrings of all public names: every parameter with its type and default, results, and an example.

Methods need no example of their own, because their class has one.

Shared parameters are written out in every docstring, so that ``help()``, editors and the site show them; the
tests keep their texts equal.
"""

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import pytest

import undula
from documented import MODULES, WITH_TORCH

DEFERRED = re.compile(r"^(As (for|in|of) )|\bsee :(func|class|meth):|^See ", re.M)


def public(module: str) -> Iterator[tuple[str, Any]]:
    """The public functions and classes of a module."""
    found = importlib.import_module(module)
    for name in found.__all__:
        value = getattr(found, name)
        if callable(value) and not inspect.ismodule(value):
            yield f"{module}.{name}", value


def members(value: type) -> Iterator[tuple[str, list[Any]]]:
    """The public methods and properties that a class or its parents define in Undula: name, and definitions.

    The first definition is the one that is called; it overrides the others. Methods that override those of
    another package are described there, and properties may be among the attributes of the class.
    """
    ancestors = [parent for parent in value.__mro__ if parent.__module__.partition(".")[0] == "undula"]
    elsewhere = {name for parent in value.__mro__ if parent not in ancestors for name in vars(parent)}
    elsewhere |= {name for parent in ancestors for name in described(sections(parent))}
    for name in dict.fromkeys(name for parent in ancestors for name in vars(parent)):
        if name.startswith("_") or name in elsewhere:
            continue
        items = [vars(parent)[name] for parent in ancestors if name in vars(parent)]
        items = [item.__func__ if isinstance(item, classmethod | staticmethod) else item for item in items]
        if inspect.isfunction(items[0]) or isinstance(items[0], property | cached_property):
            yield f"{value.__module__}.{value.__qualname__}.{name}", items


def sections(value: Any) -> dict[str, str]:
    """The sections of a docstring in the format of numpydoc, by title."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", inspect.getdoc(value) or "", flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def described(text: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Type and description of each parameter; several may share them."""
    entries = {}
    for title in ("Parameters", "Other Parameters", "Attributes"):
        for entry in re.split(r"\n(?=\S)", text.get(title, "").strip()):
            head, _, description = entry.partition("\n")
            names, _, kind = head.partition(" :")
            for name in names.split(","):
                entries.setdefault(name.strip("* "), (kind.strip(), inspect.cleandoc(description)))
    return entries


def problems(name: str, value: Any) -> Iterator[str]:
    if ">>>" not in sections(value).get("Examples", ""):
        yield "has no example"
    if not (inspect.isclass(value) and issubclass(value, Exception)):
        yield from undescribed(value)


def undescribed(value: Any) -> Iterator[str]:
    """What the docstring of a function, a class or a method does not say about parameters and results."""
    text = sections(value)
    entries = described(text)
    for parameter in inspect.signature(value).parameters.values():
        if parameter.name in ("self", "cls") or parameter.name.startswith("_"):
            continue
        if parameter.name not in entries:
            yield f"does not describe {parameter.name}"
            continue
        kind, description = entries[parameter.name]
        if not kind and parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            yield f"gives no type for {parameter.name}"
        if not description:
            yield f"does not say what {parameter.name} is"
        if DEFERRED.search(description):
            yield f"defers {parameter.name} to another function: {description!r}"
        stated = re.search(r"\bdefault:? (.+)$", kind)
        if parameter.default is not inspect.Parameter.empty and not inspect.isclass(value):
            if not stated and "optional" not in kind:
                yield f"does not say that {parameter.name} has the default {parameter.default!r}"
            elif stated and not _same(stated[1], parameter.default):
                yield f"gives {parameter.name} the default {stated[1]}, which is {parameter.default!r}"
    if inspect.isfunction(value):
        signature = inspect.signature(value)
        # A method without arguments says in its first line what it returns.
        brief = set(signature.parameters) <= {"self", "cls"} and "." in value.__qualname__
        returns = signature.return_annotation not in ("None", None)
        if returns and not brief and not {"Returns", "Yields"} & set(text):
            yield "does not describe what it returns"


def unexplained(member: Any) -> Iterator[str]:
    if not inspect.getdoc(member):
        yield "has no docstring"
    elif inspect.isfunction(member):
        yield from undescribed(member)


def _same(stated: str, default: Any) -> bool:
    try:
        return bool(ast.literal_eval(stated) == default)
    except (ValueError, SyntaxError):
        return stated in (repr(default), str(default))


@pytest.mark.parametrize("module", MODULES)
def test_public_names_are_documented_in_full(module: str) -> None:
    if module in WITH_TORCH:
        pytest.importorskip("torch", reason="the layers of PyTorch need torch")
    wanting = [f"{name} {problem}" for name, value in public(module) for problem in problems(name, value)]
    assert not wanting, "\n".join(wanting)


@pytest.mark.parametrize("module", MODULES)
def test_public_methods_are_documented_in_full(module: str) -> None:
    if module in WITH_TORCH:
        pytest.importorskip("torch", reason="the layers of PyTorch need torch")
    wanting = {}
    for _, value in public(module):
        for name, definitions in members(value) if inspect.isclass(value) else ():
            # An override may leave the description to what it overrides.
            problems = [list(unexplained(item)) for item in definitions]
            if all(problems):
                wanting[name] = problems[0]
    assert not wanting, "\n".join(f"{name} {problem}" for name in wanting for problem in wanting[name])


def test_choices_of_stages_are_those_that_they_accept() -> None:
    for kind, stage in undula.filters.STAGES.items():
        entries = described(sections(stage))
        for name, argument in stage.arguments().items():
            stated = re.match(r"(\{.*?\})", entries[name][0])
            if stated:
                assert ast.literal_eval(stated[1]) == set(argument.options), f"{kind}: {name}"


SHARED = {
    "undula.functions": ["backend"],
    "undula.filters.functions": ["axes"],
    "undula.stores": "backend overwrite progress resume runner scheduler workers".split(),
    "undula.xarray.filtering": ["channel_dim", "keep_attrs"],
    "undula.xarray.transforms": ["backend"],
}


@pytest.mark.parametrize("place", SHARED)
def test_shared_parameters_have_one_description(place: str) -> None:
    texts: dict[str, set[tuple[str, str]]] = {name: set() for name in SHARED[place]}
    for module in ("undula", "undula.stores", "undula.xarray"):
        for _, value in public(module):
            if value.__module__.startswith(place) and inspect.isfunction(value):
                entries = described(sections(value))
                for name in texts.keys() & entries.keys():
                    texts[name].add(entries[name])
    assert {name: len(text) for name, text in texts.items()} == dict.fromkeys(texts, 1), texts
