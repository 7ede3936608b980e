"""Errors of the library in the words of the command.

The library names arguments as Python does: ``count=37``, ``max_pixels``. The command prints its own options
instead, ``--frames 37`` and ``--max-pixels``: :func:`in_options` translates, with the options that commands
declare.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["OptionName", "in_options", "option_names"]

QUOTES = "'\""
CALLS = {"undula.wavelist(kind='discrete')": "undula info --wavelets"}  # and what the command has instead
OTHER_NAMES = {"count": "frames", "over": "filter_over"}  # Arguments whose options have another name.
VALUE = r"'[^']*'|\"[^\"]*\"|-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|True|False|None"
# Neither a part of a path nor of an expression or a call.
ARGUMENT = re.compile(rf"(?<!\w\()(?<![\w./\\=-])([a-z][a-z_]*)=({VALUE})?(?=[\s,;:)]|\.(?:\s|$)|$)")
NAME = re.compile(r"(?<![\w./\\'\"=-])([a-z]+(?:_[a-z]+)+)(?![\w/\\'\"=(-]|\.\w)")


@dataclass(frozen=True)
class OptionName:
    """The words for an option: what sets it, and what a switch is turned off by, if anything."""

    flag: str
    opposite: str = ""
    is_switch: bool = False

    def with_value(self, text: str) -> str:
        """Return the words for the option with a value, given as Python prints it."""
        if text == "None" or (self.is_switch and text == "False"):
            return self.opposite or f"no {self.flag}"
        if self.is_switch or not text:
            return self.flag
        return f"{self.flag} {shlex.quote(text[1:-1]) if text[0] in QUOTES else text}"

    def reversed(self) -> OptionName:
        """Return the words for the argument that a switch turns off."""
        return OptionName(self.opposite or f"no {self.flag}", self.flag, True)


def option_names(commands: Iterable[Any]) -> dict[str, OptionName]:
    """Return the words for the options of commands of Click, by the names of arguments; the last ones win."""
    names: dict[str, OptionName] = {}
    for command in commands:
        for each in command.params:
            flag = next((word for word in each.opts if word.startswith("--")), None)
            if flag is not None:
                opposite = next(iter(each.secondary_opts), "")
                names[each.name.rstrip("_")] = OptionName(flag, opposite, bool(each.is_flag))
    for name, option in list(names.items()):
        if option.is_switch and name.startswith("no_"):
            names.setdefault(name.removeprefix("no_"), option.reversed())
    for name, other in OTHER_NAMES.items():
        if other in names:
            names.setdefault(name, names[other])
    return names


def in_options(text: str, names: Mapping[str, OptionName]) -> str:
    """Return a text with options in place of arguments.

    Parameters
    ----------
    text : str
        An error or a warning of the library.
    names : mapping of str to OptionName
        The words for each argument that has an option.

    Examples
    --------
    >>> names = {"overwrite": OptionName("--overwrite", is_switch=True), "count": OptionName("--frames")}
    >>> in_options("x.mp4 exists; pass overwrite=True to replace it", names)
    'x.mp4 exists; pass --overwrite to replace it'
    >>> in_options("read the frames before it with count=37, channel_axis=None", names)
    'read the frames before it with --frames 37, channel_axis=None'
    """

    def argument(match: re.Match[str]) -> str:
        name, value = match[1], match[2] or ""
        return names[name].with_value(value) if name in names else match[0]

    def bare(match: re.Match[str]) -> str:
        return names[match[1]].flag if match[1] in names else match[0]

    for call, command in CALLS.items():
        text = text.replace(call, command)
    return NAME.sub(bare, ARGUMENT.sub(argument, text))
