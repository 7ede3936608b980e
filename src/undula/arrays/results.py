"""Results of functions that compute with NumPy, as arrays of the library that the caller uses.

Transforms and filters restore their results by the library of their data. All other public functions that
return arrays are decorated by :func:`keeps_library`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from .inputs import numpy_array
from .libraries import NUMPY, library_of, mapped

__all__ = ["empty_like", "keeps_library"]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

PLAIN = (np.ndarray, np.generic, bool, int, float, complex, str, bytes, type(None))


def keeps_library(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Let a function that returns arrays of NumPy return arrays of the library of its arguments.

    Examples
    --------
    >>> doubled = keeps_library(lambda x: 2 * np.asarray(x))
    >>> doubled(np.ones(2))
    array([2., 2.])
    """

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        example = _array_on_host((*args, *kwargs.values()))
        if example is None:
            return function(*args, **kwargs)
        result = function(*mapped(args, _numpy), **mapped(kwargs, _numpy))
        return library_of(example).restore(result, example)  # type: ignore[no-any-return]

    return call


def empty_like(x: Any) -> Any:
    """Return an array without samples of the library and the device of another one, to keep in its place."""
    return library_of(x).restore(np.empty(0), x)


def _array_on_host(arguments: Iterable[Any]) -> Any:
    """Return the first array among nested arguments that is to be converted to NumPy; None without one."""
    for argument in arguments:
        if is_dataclass(argument):
            argument = tuple(getattr(argument, field.name) for field in fields(argument))
        if isinstance(argument, Mapping):
            argument = tuple(argument.values())
        if isinstance(argument, (list, tuple)):
            # The elements of a list of numbers, which may be long, are not looked at one by one.
            is_line = type(argument) is list and argument and isinstance(argument[0], (int, float, complex))
            found = None if is_line else _array_on_host(argument)
            if found is not None:
                return found
        elif not isinstance(argument, PLAIN) and _is_converted(argument):
            return argument
    return None


def _is_converted(x: Any) -> bool:
    """Whether this is an array of another library than NumPy on the host, which nobody differentiates."""
    library = library_of(x)
    return library is not NUMPY and not library.is_traced(x) and library.device(x).on_host


def _numpy(x: Any) -> Any:
    return numpy_array(x) if not isinstance(x, PLAIN) and _is_converted(x) else x
