"""Arrays as kernels see them."""

import numpy as np
import pytest

import undula
from undula.arrays import ArrayView, contiguous, library_of


def test_views_of_numpy_arrays() -> None:
    x = np.zeros((4, 6, 5), "f4")
    for array in (x, x[1:, ::2], x.T, x[..., 0], x[::-1]):
        view = library_of(array).view(array)
        assert (view.shape, view.dtype, view.buffer) == (array.shape, "float32", array.ctypes.data)
        assert view.byte_strides == array.strides
        assert view.owner is array


def test_complex_numbers_are_pairs() -> None:
    view = ArrayView(0, (4, 3), (5, 1), "complex128", 7)
    assert view.as_pairs() == ArrayView(0, (4, 3, 2), (10, 2, 1), "float64", 14)
    real = view.as_pairs()
    assert real.as_pairs() is real


def test_numbered_views_forget_their_owner() -> None:
    x = np.ones((2, 3))
    view = library_of(x).view(x)
    assert view.at(1) == ArrayView(1, (2, 3), (3, 1), "float64", 0, view.alignment)
    assert hash(view.at(1)) == hash(view.at(1))


@pytest.mark.parametrize("buffer", [1 << 20, object()])
def test_overlaps(buffer: object) -> None:
    image = ArrayView.contiguous(buffer, (8, 8), "float32")
    left, right = (ArrayView(buffer, (8, 4), (8, 1), "float32", start) for start in (0, 4))
    assert left.overlaps(image)
    assert image.overlaps(right)
    assert not left.overlaps(right)
    other = ArrayView.contiguous(1 << 30 if isinstance(buffer, int) else object(), (8, 8), "float32")
    assert not image.overlaps(other)
    if isinstance(buffer, int):
        assert image.overlaps(ArrayView.contiguous(buffer + 252, (1,), "float32"))
        assert not image.overlaps(ArrayView.contiguous(buffer + 256, (1,), "float32"))


def test_strides() -> None:
    assert contiguous((4, 3, 5)) == (15, 5, 1)
    assert contiguous((4, 3, 5), 8) == np.empty((4, 3, 5)).strides
    assert contiguous(()) == ()
    view = ArrayView(0, (5, 4, 3), (24, 6, 1), "float32")
    assert view.plane_strides(1, 2) == (24, 6)
    assert view.plane_strides(1, 1) is None
    assert view._replace(strides=(24, 6, 2)).plane_strides(1, 2) is None
    assert ArrayView.contiguous(0, (2, 0, 3), "float32").plane_strides(0, 1) == (0, 0)


def test_fields_of_records_have_no_strides_in_elements() -> None:
    x = np.zeros((4, 6), [("value", "f8"), ("flag", "u1")])["value"]
    with pytest.raises(undula.ArgumentError, match=r"strides \(54, 9\).*copy the array"):
        library_of(x).view(x)
    np.testing.assert_array_equal(undula.dwt2(x + 1, "haar")[0], undula.dwt2(x.copy() + 1, "haar")[0])
