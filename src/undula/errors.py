"""Every error that Undula raises on purpose, and the tree they form.

::

    UndulaError
    ├── ArgumentError (ValueError)          a value that cannot be used
    │   ├── UnknownNameError                an unknown wavelet, scheme or mode
    │   ├── UnknownAxisError (IndexError)   an axis that the array does not have; NumPy's AxisError, too
    │   ├── MismatchedBandsError (RuntimeError)  bands of one transform whose shapes do not belong together
    │   ├── UnknownNodeError (IndexError)   a path that leads to no node of a tree of wavelet packets
    │   ├── ReconstructionError             filters that do not give the signal back
    │   └── NotInvertibleError              a polynomial or matrix without an inverse
    ├── ArgumentTypeError (TypeError)       a value of the wrong kind
    ├── FileError (OSError)                 a file that cannot be read or written
    ├── MissingExtraError (ImportError)     a package that is not installed; says which extra has it
    ├── NotEnoughMemoryError (MemoryError)  work that does not fit into memory; says how much it takes
    ├── SchedulerError (ConnectionError)    a scheduler of Dask that cannot be reached, or was lost
    └── DeviceError (RuntimeError)          a device that is missing or does not do what it should
        ├── MissingDeviceError              no such device, driver or package; says how to get it
        ├── OutOfMemoryError (MemoryError)  a device with too little memory left
        └── KernelError                     a kernel that does not compile; has its text and the log

    FormatWarning (UserWarning)             what a file format could not store
    NoNoiseWarning (UserWarning)            a filter found no noise, and changed nothing

Each message repeats what was passed, says what is allowed and, where there is one, what to do.
"""

from collections.abc import Iterable
from itertools import takewhile

from numpy.exceptions import AxisError

__all__ = [
    "ArgumentError",
    "ArgumentTypeError",
    "DeviceError",
    "FileError",
    "FormatWarning",
    "KernelError",
    "MismatchedBandsError",
    "MissingDeviceError",
    "MissingExtraError",
    "NoNoiseWarning",
    "NotEnoughMemoryError",
    "NotInvertibleError",
    "OutOfMemoryError",
    "ReconstructionError",
    "SchedulerError",
    "UndulaError",
    "UnknownAxisError",
    "UnknownNameError",
    "UnknownNodeError",
    "install_hint",
]

NO_FILE = "no such file or directory"


def install_hint(extra: str) -> str:
    """Return how to install the packages of an extra: the one place in the code that says so.

    Parameters
    ----------
    extra : str
        Name of the extra.

    Returns
    -------
    str
        A command in words.

    Examples
    --------
    >>> install_hint("app")
    "run pip install '.[app]' in a clone of Undula"
    """
    return f"run pip install '.[{extra}]' in a clone of Undula"


class UndulaError(Exception):
    """Base class of all errors raised by Undula.

    Examples
    --------
    >>> import undula
    >>> try:
    ...     undula.dwt([1.0, 2.0], "db99")
    ... except UndulaError as error:
    ...     print(error)
    unknown wavelet 'db99'; did you mean 'db9', 'db19', 'db29' or 'db1'?
    """


class ArgumentError(UndulaError, ValueError):
    """A value that cannot be used.

    Examples
    --------
    >>> import undula
    >>> undula.wavedec([1.0, 2.0], "haar", level=-1)
    Traceback (most recent call last):
    undula.errors.ArgumentError: ...
    """


class ArgumentTypeError(UndulaError, TypeError):
    """A value of the wrong kind.

    Examples
    --------
    >>> import undula
    >>> undula.dwt("text", "haar")
    Traceback (most recent call last):
    undula.errors.ArgumentTypeError: ...
    """


class FileError(UndulaError, OSError):
    """A file that cannot be read or written.

    Examples
    --------
    >>> from undula import io
    >>> io.read("missing.png")
    Traceback (most recent call last):
    undula.errors.FileError: ...
    """


class FormatWarning(UserWarning):
    """Something that a file format cannot store, and that is missing from the file written.

    Examples
    --------
    >>> import tempfile, warnings
    >>> import numpy as np
    >>> import undula
    >>> picture = undula.io.Picture(np.zeros((8, 8), "uint8"), "png", texts={"Author": "Ada"})
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     undula.io.write(f"{tempfile.mkdtemp()}/square.bmp", picture)
    >>> print(caught[0].category.__name__, caught[0].message)
    FormatWarning square.bmp does not keep text (Author)
    """


class NoNoiseWarning(UserWarning):
    """A filter that estimates the noise found none, so that its result is the image.

    It is given once for a call, also for the frames of a video. Arrays on a device are not compared.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import undula
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     _ = undula.denoise(np.full((32, 32), 7.0))
    >>> print(caught[0].category.__name__, caught[0].message)
    NoNoiseWarning no noise was found, so nothing was changed; pass sigma= if there is some
    """


class MissingExtraError(UndulaError, ImportError):
    """A package that is not installed.

    Examples
    --------
    >>> raise MissingExtraError(install_hint("app"))
    Traceback (most recent call last):
    undula.errors.MissingExtraError: run pip install '.[app]' in a clone of Undula
    """


class SchedulerError(UndulaError, ConnectionError):
    """A scheduler of Dask that cannot be reached, or was lost.

    Examples
    --------
    >>> issubclass(SchedulerError, ConnectionError)
    True
    """


class DeviceError(UndulaError, RuntimeError):
    """A device that is missing or does not do what it should.

    Examples
    --------
    >>> import undula
    >>> try:
    ...     undula.dwt([1.0, 2.0], "haar", backend="opencl:99")
    ... except DeviceError:
    ...     print("no such device")
    no such device
    """


class MissingDeviceError(DeviceError):
    """No such device, driver or package.

    Examples
    --------
    >>> import undula
    >>> undula.dwt([1.0, 2.0], "haar", backend="opencl:99")
    Traceback (most recent call last):
    undula.errors.MissingDeviceError: ...
    """


class OutOfMemoryError(DeviceError, MemoryError):
    """A device with too little memory left.

    Examples
    --------
    >>> issubclass(OutOfMemoryError, MemoryError)
    True
    """


class NotEnoughMemoryError(UndulaError, MemoryError):
    """Work that does not fit into the memory of the machine.

    Examples
    --------
    >>> issubclass(NotEnoughMemoryError, MemoryError)
    True
    """


class KernelError(DeviceError):
    """A kernel that does not compile.

    Attributes
    ----------
    source, log : str
        The text of the kernel, and what the compiler said.

    Examples
    --------
    >>> error = KernelError("forward", "int x", "expected ';'")
    >>> error.source, error.log
    ('int x', "expected ';'")
    """

    def __init__(self, name: str, source: str, log: str) -> None:
        self.source, self.log = source, log
        numbered = "\n".join(f"{k:4} {line}" for k, line in enumerate(source.split("\n"), 1))
        super().__init__(f"kernel {name} does not compile:\n{log}\n{numbered}")


class UnknownAxisError(ArgumentError, AxisError):
    """An axis that the array does not have.

    Examples
    --------
    >>> import undula
    >>> undula.dwt([1.0, 2.0], "haar", axis=3)
    Traceback (most recent call last):
    undula.errors.UnknownAxisError: ...
    """


class MismatchedBandsError(ArgumentError, RuntimeError):
    """Bands of one transform whose shapes do not belong together.

    Examples
    --------
    >>> import undula
    >>> undula.iswt([([1.0, 2.0], [1.0, 2.0, 3.0])], "haar")
    Traceback (most recent call last):
    undula.errors.MismatchedBandsError: ...
    """


class UnknownNodeError(ArgumentError, IndexError):
    """A path that leads to no node of a tree of wavelet packets.

    Examples
    --------
    >>> import undula
    >>> undula.WaveletPacket([1.0, 2.0], "haar", maxlevel=1)["aa"]
    Traceback (most recent call last):
    undula.errors.UnknownNodeError: ...
    """


class ReconstructionError(ArgumentError):
    """Filters that do not give the signal back.

    Examples
    --------
    >>> import undula
    >>> undula.lifting("dmey")
    Traceback (most recent call last):
    undula.errors.ReconstructionError: ...
    """


class NotInvertibleError(ArgumentError):
    """A polynomial or matrix that has no inverse among Laurent polynomials.

    Examples
    --------
    >>> import undula
    >>> undula.PolyphaseMatrix([[1, 1], [1, 1]]).inverse()
    Traceback (most recent call last):
    undula.errors.NotInvertibleError: ...
    """


class UnknownNameError(ArgumentError):
    """An unknown name; the message lists the nearest known ones.

    Examples
    --------
    >>> str(UnknownNameError("wavelet", "db2x", ["db2", "db20", "haar"]))
    "unknown wavelet 'db2x'; did you mean 'db2' or 'db20'?"
    >>> str(UnknownNameError("mode", "cubic", ["zero", "smooth"]))
    "unknown mode 'cubic'; known: zero, smooth"
    """

    def __init__(self, kind: str, name: object, known: Iterable[str], hint: str = "") -> None:
        known = list(known)
        self._arguments = kind, name, known, hint
        near = _nearest(str(name).lower().strip(), known)
        if near:
            quoted = [repr(n) for n in near]
            hint = "did you mean " + " or ".join(filter(None, [", ".join(quoted[:-1]), quoted[-1]])) + "?"
        # The argument is what PyWavelets says, which programs compare; the text tells more.
        super().__init__(f"Invalid {kind} name {name!r}.")
        self._text = f"unknown {kind} {name!r}; {hint or 'known: ' + ', '.join(known)}"

    def __str__(self) -> str:
        return self._text

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), self._arguments


def _nearest(name: str, known: list[str]) -> list[str]:
    """Return up to four names like this one, those that begin alike first."""
    from difflib import SequenceMatcher  # here, since no import should pay for it

    def likeness(other: str) -> float:
        begin = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(name, other, strict=False)))
        return SequenceMatcher(None, name, other).ratio() + begin / len(name)

    if not name:
        return []
    ranked = sorted(known, key=likeness, reverse=True)
    return [other for other in ranked if likeness(other) > 0.85][:4]
