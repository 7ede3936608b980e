"""Laurent polynomials in one or two variables: the entries of every polyphase matrix.

``H(z) = Σ h_k z^k`` with finitely many terms and exponents of either sign. As an operator on a sequence,
``z^k`` reads ``k`` samples ahead: ``(z^k x)[n] = x[n + k]``; so ``z^-1`` is the usual delay. In two
variables the exponents are ``(m, n)``, horizontal and vertical.

Coefficients are exact (:class:`~fractions.Fraction` or :class:`~undula.algebra.Surd`) or floats; one
float makes all of them floats. Polynomials are immutable and hashable.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache, reduce
from operator import add, mul
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, ArgumentTypeError, NotInvertibleError
from .surd import Number, Surd, as_number, is_exact

__all__ = ["Laurent"]

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Laurent:
    """A Laurent polynomial, given by a mapping of exponents to coefficients.

    Parameters
    ----------
    terms : mapping
        ``{exponent: coefficient}``; in two variables the exponents are pairs ``(m, n)``.
    variables : int, optional
        Number of variables, 1 or 2. Required only for a polynomial without terms.

    Examples
    --------
    >>> from fractions import Fraction
    >>> P = Laurent({0: Fraction(-1, 2), -1: Fraction(-1, 2)})
    >>> print(P)
    -1/2 - 1/2·z⁻¹
    >>> print(P * P.reverse())
    1/4·z + 1/2 + 1/4·z⁻¹
    """

    # Dense storage: `_array[i, …]` is the coefficient of the exponent `_lowest + (i, …)`. Zeros at the
    # borders are trimmed, so equal polynomials have equal storage.
    __slots__ = ("_array", "_hash", "_lowest")
    _array: NDArray[Any]
    _lowest: tuple[int, ...]
    _hash: int | None

    def __init__(self, terms: Mapping[Any, Any], variables: int | None = None) -> None:
        if not isinstance(terms, Mapping):
            raise ArgumentTypeError(f"terms must be a mapping of exponents to coefficients, got {terms!r}")
        exponents = [key if isinstance(key, tuple) else (key,) for key in terms]
        counts = {len(key) for key in exponents}
        if variables is None:
            variables = counts.pop() if len(counts) == 1 else (1 if not counts else 0)
        elif counts - {variables}:
            variables = 0
        if variables not in (1, 2):
            raise ArgumentError(
                f"exponents must all be integers or all be pairs of integers, got {list(terms)!r}"
            )
        for key in exponents:
            if not all(isinstance(e, (int, np.integer)) for e in key):
                raise ArgumentError(f"exponents must be integers, got {key!r}")
        numbers = [as_number(value) for value in terms.values()]
        exact = all(is_exact(value) for value in numbers)
        if exponents:
            lowest = tuple(int(min(e[d] for e in exponents)) for d in range(variables))
            highest = tuple(int(max(e[d] for e in exponents)) for d in range(variables))
        else:
            lowest, highest = (0,) * variables, (-1,) * variables
        shape = tuple(h - low + 1 for low, h in zip(lowest, highest, strict=True))
        array = _zeros(shape, exact)
        for key, value in zip(exponents, numbers, strict=True):
            array[tuple(e - low for e, low in zip(key, lowest, strict=True))] = (
                value if exact else float(value)
            )
        self._set(lowest, array)

    def _set(self, lowest: tuple[int, ...], array: NDArray[Any], trimmed: bool = False) -> None:
        if not trimmed and not _is_trimmed(array):
            lowest, array = _trimmed(lowest, array)
        array.setflags(write=False)
        object.__setattr__(self, "_array", array)
        object.__setattr__(self, "_lowest", lowest)
        object.__setattr__(self, "_hash", None)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Laurent polynomial is immutable")

    @classmethod
    def _make(cls, lowest: tuple[int, ...], array: NDArray[Any], trimmed: bool = False) -> Laurent:
        self = object.__new__(cls)
        self._set(lowest, array, trimmed)
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (Laurent, (dict(self.items()), self.variables))

    # --- construction -----------------------------------------------------------------------------

    @staticmethod
    @cache
    def zero(variables: int = 1) -> Laurent:
        """Return the zero polynomial; always the same object."""
        return Laurent({}, variables)

    @classmethod
    def constant(cls, value: Any, variables: int = 1) -> Laurent:
        """Return the constant polynomial ``value``.

        Parameters
        ----------
        value : number
            The coefficient of ``z⁰``.
        variables : {1, 2}, default 1
            Number of variables.

        Returns
        -------
        Laurent
        """
        return cls({(0,) * variables: value}, variables)

    @classmethod
    def monomial(cls, *exponents: int, coefficient: Any = 1) -> Laurent:
        """Return ``coefficient · z^exponent`` (or ``zₘ^m zₙ^n`` for two exponents).

        Parameters
        ----------
        *exponents : int
            The exponent of ``z``, or those of ``zₘ`` and ``zₙ``.
        coefficient : number, default 1
            The factor of the monomial.

        Returns
        -------
        Laurent

        Examples
        --------
        >>> print(Laurent.monomial(-1), Laurent.monomial(1, -2, coefficient=3))
        z⁻¹ 3·zₘzₙ⁻²
        """
        return cls({exponents: coefficient}, len(exponents))

    # --- inspection -------------------------------------------------------------------------------

    @property
    def variables(self) -> int:
        """Number of variables, 1 or 2."""
        return self._array.ndim

    @property
    def exact(self) -> bool:
        """True if all coefficients are exact numbers."""
        return self._array.dtype.hasobject

    def items(self) -> Iterator[tuple[Any, Number]]:
        """Iterate over pairs of exponent and non-zero coefficient, in ascending order.

        Exponents are integers in one variable and pairs in two.
        """
        for index in zip(*(axis.tolist() for axis in np.nonzero(self._array)), strict=True):
            key = tuple(i + low for i, low in zip(index, self._lowest, strict=True))
            value = self._array[index]
            yield (key[0] if len(key) == 1 else key), (value if self.exact else float(value))

    def __getitem__(self, exponent: int | tuple[int, int]) -> Number:
        """Return the coefficient of an exponent, zero if there is no such term."""
        key = exponent if isinstance(exponent, tuple) else (exponent,)
        self._check_exponents(key)
        index = tuple(e - low for e, low in zip(key, self._lowest, strict=True))
        if all(0 <= i < n for i, n in zip(index, self._array.shape, strict=True)):
            value: Number = self._array[index] if self.exact else float(self._array[index])
            return value
        return Fraction(0) if self.exact else 0.0

    def __len__(self) -> int:
        """Return the number of terms."""
        return int(np.count_nonzero(self._array))

    def __bool__(self) -> bool:
        return self._array.size > 0

    @property
    def support(self) -> tuple[tuple[int, int], ...]:
        """Lowest and highest exponent of each variable (``(0, -1)`` for the zero polynomial)."""
        return tuple((low, low + n - 1) for low, n in zip(self._lowest, self._array.shape, strict=True))

    @property
    def degree(self) -> int:
        """Highest minus lowest exponent, the largest over all variables; -1 for the zero polynomial."""
        return int(max(self._array.shape)) - 1

    @property
    def is_monomial(self) -> bool:
        """True if there is exactly one term."""
        return len(self) == 1

    @property
    def is_scalar(self) -> bool:
        """True for a constant, including zero."""
        return all(pair in ((0, 0), (0, -1)) for pair in self.support)

    @property
    def is_one(self) -> bool:
        """True for the constant 1."""
        return self._array.size == 1 and self.is_scalar and bool(self._array.flat[0] == 1)

    @property
    def symmetry(self) -> int:
        """1 if the coefficients are symmetric, -1 if antisymmetric, else 0."""
        flipped = self._array[(slice(None, None, -1),) * self.variables]
        for sign in (1, -1):
            if self._equal(self._array, sign * flipped, 1e-9):
                return sign
        return 0

    def max_abs(self) -> float:
        """Return the largest magnitude among the coefficients."""
        return max((abs(float(value)) for value in self._array.flat), default=0.0)

    def norm1(self) -> float:
        """Return the sum of magnitudes: the largest amplification of the maximum norm."""
        return float(sum(abs(float(value)) for value in self._array.flat))

    def _check_exponents(self, key: tuple[int, ...]) -> None:
        if len(key) != self.variables or not all(isinstance(e, (int, np.integer)) for e in key):
            raise ArgumentError(f"{self.variables} integer exponent(s) expected, got {key!r}")

    # --- comparison -------------------------------------------------------------------------------

    @staticmethod
    def _equal(a: NDArray[Any], b: NDArray[Any], tolerance: float) -> bool:
        if a.dtype == object and b.dtype == object:
            return bool(np.all(a == b))
        return bool(np.allclose(a.astype(float), b.astype(float), rtol=tolerance, atol=tolerance))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Laurent):
            if is_exact(other) or isinstance(other, float):
                other = Laurent.constant(other, self.variables)
            else:
                return NotImplemented
        return (
            self._lowest == other._lowest
            and self._array.shape == other._array.shape
            and bool(np.all(self._array == other._array))
        )

    def __hash__(self) -> int:
        if self._hash is None:
            values = tuple(self._array.flat)
            # A constant equals a number, so it must have the same hash.
            key = (values[0] if values else 0) if self.is_scalar else (self.support, values)
            object.__setattr__(self, "_hash", hash(key))
        assert self._hash is not None
        return self._hash

    def distance(self, other: Laurent) -> float:
        """Return the largest magnitude among the coefficients of the difference.

        Parameters
        ----------
        other : Laurent
            A polynomial in the same variables.

        Returns
        -------
        float
        """
        return (self - other).max_abs()

    def close(self, other: Laurent, tolerance: float = 1e-10) -> bool:
        """Return True if no coefficient differs by more than ``tolerance``.

        Parameters
        ----------
        other : Laurent
            A polynomial in the same variables.
        tolerance : float, default 1e-10
            The largest difference that counts as equal.

        Returns
        -------
        bool
        """
        return self.distance(other) <= tolerance

    # --- arithmetic -------------------------------------------------------------------------------

    def _coerce(self, other: Any) -> Laurent:
        if isinstance(other, Laurent):
            if other.variables != self.variables:
                raise ArgumentError(
                    f"cannot combine polynomials in {self.variables} and {other.variables} variables;"
                    " see Laurent.along"
                )
            return other
        return Laurent.constant(other, self.variables)

    def _float(self) -> NDArray[Any]:
        return self._array.astype(np.float64, copy=False)

    def __add__(self, other: Any) -> Laurent:
        return Laurent.sum((self, self._coerce(other)))

    @staticmethod
    def sum(polynomials: Sequence[Laurent]) -> Laurent:
        """Add up polynomials in the same variables; faster than adding one after the other.

        Parameters
        ----------
        polynomials : sequence of Laurent
            At least one.

        Returns
        -------
        Laurent

        Examples
        --------
        >>> print(Laurent.sum([Laurent.monomial(1), Laurent.monomial(-1), Laurent.constant(2)]))
        z + 2 + z⁻¹
        """
        terms = [polynomial for polynomial in polynomials if polynomial] or polynomials[:1]
        exact = all(polynomial.exact for polynomial in polynomials)
        if len(terms) == 1:
            return terms[0] if exact or not terms[0].exact else terms[0].to_float()
        lowest = tuple(map(min, *(term._lowest for term in terms)))
        ends = ([low + n for low, n in zip(term._lowest, term._array.shape, strict=True)] for term in terms)
        total = _zeros(tuple(max(end) - low for *end, low in zip(*ends, lowest, strict=True)), exact)
        for term in terms:
            place = tuple(
                slice(start - low, start - low + n)
                for start, low, n in zip(term._lowest, lowest, term._array.shape, strict=True)
            )
            if exact:
                # Sums of Fractions take long, so they are formed only where terms overlap.
                overlap = total[place].astype(bool)
                total[place] = np.where(overlap, total[place], term._array)
                total[place][overlap] += term._array[overlap]
            else:
                total[place] += term._float()
        return Laurent._make(lowest, total)

    def __mul__(self, other: Any) -> Laurent:
        factor = self._coerce(other)
        if self.exact and self.is_one:
            return factor
        if factor.exact and factor.is_one:
            return self
        exact = self.exact and factor.exact
        small, large = (self, factor) if self._array.size <= factor._array.size else (factor, self)
        if not small:
            return Laurent._make((0,) * self.variables, _zeros((0,) * self.variables, exact))
        taps, body = (small._array, large._array) if exact else (small._float(), large._float())
        lowest = tuple(map(add, small._lowest, large._lowest))
        if taps.size == 1 or (not exact and all(1 in n for n in zip(taps.shape, body.shape, strict=True))):
            # A number times a polynomial, or a horizontal one times a vertical one: an outer product.
            return Laurent._make(lowest, taps * body, exact)
        # Borders of a product are products of borders, and products of exact numbers never vanish.
        return Laurent._make(lowest, (_exact_convolution if exact else _convolution)(taps, body), exact)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Laurent:
        return Laurent._make(self._lowest, -self._array, trimmed=True)

    def __sub__(self, other: Any) -> Laurent:
        return self + (-self._coerce(other))

    def __rsub__(self, other: Any) -> Laurent:
        return self._coerce(other) - self

    def __truediv__(self, other: Any) -> Laurent:
        """Divide by a number or a monomial; other quotients are not Laurent polynomials."""
        divisor = self._coerce(other)
        if not divisor.is_monomial:
            raise NotInvertibleError(f"the divisor must be a number or a monomial, got ({divisor})")
        return self * divisor**-1

    def __pow__(self, exponent: int) -> Laurent:
        if not isinstance(exponent, int):
            raise ArgumentTypeError(f"the exponent must be an integer, got {exponent!r}")
        if exponent >= 0:
            return reduce(mul, [self] * exponent, Laurent.constant(1, self.variables))
        if not self.is_monomial:
            raise NotInvertibleError(f"only a monomial has an inverse, got ({self})")
        value = self._array.flat[0]
        inverse = 1 / value if self.exact else np.float64(1) / value
        array = np.full((1,) * self.variables, inverse, dtype=self._array.dtype)
        return Laurent._make(tuple(-low for low in self._lowest), array) ** -exponent

    def reverse(self) -> Laurent:
        """Substitute ``z⁻¹`` for ``z`` in every variable."""
        flipped = self._array[(slice(None, None, -1),) * self.variables]
        lowest = tuple(-high for _, high in self.support) if self else self._lowest
        return Laurent._make(lowest, flipped, trimmed=True)

    def exchange(self) -> Laurent:
        """Exchange the two axes: ``P*(zₘ, zₙ) = P(zₙ, zₘ)``."""
        if self.variables != 2:
            raise ArgumentError(f"exchange() needs a polynomial in two variables, got ({self})")
        return Laurent._make(self._lowest[::-1], self._array.T, trimmed=True)

    def along(self, axis: int) -> Laurent:
        """Return a polynomial in one variable as one in two variables, along one axis.

        Parameters
        ----------
        axis : {0, 1}
            0 for horizontal, 1 for vertical.

        Returns
        -------
        Laurent

        Examples
        --------
        >>> print(Laurent({0: 1, -1: 2}).along(1))
        1 + 2·zₙ⁻¹
        """
        if self.variables != 1 or axis not in (0, 1):
            raise ArgumentError(
                f"along() needs a polynomial in one variable and the axis 0 or 1,"
                f" got {self.variables} variable(s) and {axis!r}"
            )
        shape = (-1, 1) if axis == 0 else (1, -1)
        lowest = (self._lowest[0], 0) if axis == 0 else (0, self._lowest[0])
        return Laurent._make(lowest, self._array.reshape(shape), trimmed=bool(self))

    def shift(self, *exponents: int) -> Laurent:
        """Multiply by the monomial with these exponents.

        Parameters
        ----------
        *exponents : int
            One exponent for each variable.

        Returns
        -------
        Laurent
        """
        self._check_exponents(exponents)
        if not self:
            return self
        return Laurent._make(tuple(map(add, self._lowest, exponents)), self._array, trimmed=True)

    def to_float(self) -> Laurent:
        """Convert the coefficients to floats."""
        return Laurent._make(self._lowest, self._float())

    def chop(self, tolerance: float) -> Laurent:
        """Drop float coefficients of magnitude ``tolerance`` or less.

        Parameters
        ----------
        tolerance : float
            The largest magnitude that is dropped.

        Returns
        -------
        Laurent
        """
        if self.exact:
            return self
        return Laurent._make(self._lowest, np.where(np.abs(self._array) <= tolerance, 0.0, self._array))

    def __call__(self, *point: complex) -> Any:
        """Evaluate the polynomial at a point, with one number for each variable."""
        if len(point) != self.variables:
            raise ArgumentError(f"{self.variables} value(s) expected, got {len(point)}")
        place = [Fraction(z) if isinstance(z, int) else z for z in point]
        value: Any = 0
        for key, coefficient in self.items():
            powers = key if isinstance(key, tuple) else (key,)
            value += coefficient * math.prod(z**e for z, e in zip(place, powers, strict=True))
        return value

    # --- formatting -------------------------------------------------------------------------------

    def __str__(self) -> str:
        if not self:
            return "0"
        text = ""
        for exponents, value in reversed(list(self.items())):  # Highest power first.
            key = exponents if isinstance(exponents, tuple) else (exponents,)
            # A sum a + b√2 is written in brackets, with its signs inside.
            negative = float(value) < 0 and not (isinstance(value, Surd) and value.a)
            sign = ("-" if negative else "") if not text else (" - " if negative else " + ")
            size = _number(-value if negative else value)
            power = self._power(key)
            body = power if power and size == "1" else "·".join(filter(None, [size, power]))
            text += sign + body
        return text

    def _power(self, key: tuple[int, ...]) -> str:
        names = ("z",) if len(key) == 1 else ("zₘ", "zₙ")
        return "".join(
            name + ("" if e == 1 else str(e).translate(_SUPERSCRIPTS))
            for name, e in zip(names, key, strict=True)
            if e
        )

    def __repr__(self) -> str:
        terms = ", ".join(f"{key}: {value!r}" for key, value in self.items())
        return f"Laurent({{{terms}}})" if self else f"Laurent({{}}, {self.variables})"


def _is_trimmed(array: NDArray[Any]) -> bool:
    """Return True when both ends along every axis hold a non-zero coefficient."""
    if array.size == 0:
        return False
    if array.flat[0] and array.flat[-1]:  # Opposite corners lie on all borders.
        return True
    if array.ndim == 1:
        return False
    return bool(array[0].any() and array[-1].any() and array[:, 0].any() and array[:, -1].any())


def _trimmed(lowest: tuple[int, ...], array: NDArray[Any]) -> tuple[tuple[int, ...], NDArray[Any]]:
    """Return the array without its zero borders, and its lowest exponents."""
    occupied = np.nonzero(array)
    if not occupied[0].size:
        return (0,) * array.ndim, array[(slice(0, 0),) * array.ndim]
    first = [int(index.min()) for index in occupied]
    last = [int(index.max()) for index in occupied]
    cut = tuple(slice(a, b + 1) for a, b in zip(first, last, strict=True))
    return tuple(low + a for low, a in zip(lowest, first, strict=True)), array[cut]


def _zeros(shape: tuple[int, ...], exact: bool) -> NDArray[Any]:
    return np.full(shape, Fraction(0), dtype=object) if exact else np.zeros(shape)


def _convolution(taps: NDArray[Any], body: NDArray[Any]) -> NDArray[Any]:
    """Convolve two arrays of one dtype."""
    shape = tuple(a + b - 1 for a, b in zip(taps.shape, body.shape, strict=True))
    total = np.zeros(shape, taps.dtype)
    for index in zip(*(axis.tolist() for axis in np.nonzero(taps)), strict=True):
        place = tuple(slice(i, i + n) for i, n in zip(index, body.shape, strict=True))
        total[place] += taps[index] * body
    return total


def _exact_convolution(taps: NDArray[Any], body: NDArray[Any]) -> NDArray[Any]:
    """Convolve two arrays of exact numbers: Fractions as integers, which is much faster."""
    if not all(type(value) is Fraction for array in (taps, body) for value in array.flat):
        total: NDArray[Any] = _convolution(taps, body) + Fraction(0)  # np.zeros holds integer zeros.
        return total
    numerators, denominators = zip(*map(_numerators, (taps, body)), strict=True)
    denominator = math.prod(denominators)
    bound = math.prod(max(map(abs, array.flat)) for array in numerators) * taps.size
    if bound < 2**63:
        numerators = tuple(array.astype(np.int64) for array in numerators)
    product = _convolution(*numerators)
    fractions = np.empty(product.size, object)
    fractions[:] = [Fraction(value, denominator) for value in product.ravel().tolist()]
    return fractions.reshape(product.shape)


def _numerators(array: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """Return the numerators of Fractions over their common denominator, and that denominator."""
    values = array.ravel().tolist()
    denominator = math.lcm(*(value.denominator for value in values))
    numerators = np.empty(array.size, object)
    numerators[:] = [value.numerator * (denominator // value.denominator) for value in values]
    return numerators.reshape(array.shape), denominator


def _number(value: Number) -> str:
    if isinstance(value, (Fraction, Surd)):
        return str(value)
    return f"{value:.6g}"
