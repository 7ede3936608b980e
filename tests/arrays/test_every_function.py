"""Every public function, with arrays of every library and of every dtype."""

import runpy
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import array_api_strict
import numpy as np
import pytest
from array_api_extra.testing import lazy_xp_function, patch_lazy_xp_functions

import undula
from calls import CALLS, WITHOUT_ARRAYS, leaves, library, public_names

lazy_xp_modules = [undula]
pytestmark = pytest.mark.filterwarnings("ignore")  # of the small arrays, which functions warn of


def test_every_public_function_has_a_call() -> None:
    assert public_names() == set(CALLS) | WITHOUT_ARRAYS
    assert not set(CALLS) & WITHOUT_ARRAYS


@pytest.mark.parametrize("name", CALLS)
def test_results_are_arrays_of_numpy(name: str) -> None:
    """Plain arrays, and no memory maps, for instance, even where a result is the argument."""
    subclass = type("Mapped", (np.ndarray,), {})
    results = list(leaves(CALLS[name](lambda x: np.asarray(x).view(subclass))))
    assert {type(x) for x in results} <= {np.ndarray, np.float64}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("of", ["PyTorch", "JAX", "array_api_strict"])
def test_results_are_arrays_of_the_callers_library(of: str, name: str) -> None:
    make, kind = library(of)
    results, expected = list(leaves(CALLS[name](make))), list(leaves(CALLS[name](np.asarray)))
    assert all(isinstance(x, kind) for x in results), [type(x) for x in results]
    for x, other in zip(results, expected, strict=True):
        size = np.abs(other).max(initial=0)
        np.testing.assert_allclose(np.asarray(x), other, rtol=1e-4, atol=1e-4 * size)  # JAX has float32


STRICTEST = {
    "api_version": "2022.12",
    "boolean_indexing": False,
    "data_dependent_shapes": False,
    "enabled_extensions": (),
}


@pytest.mark.parametrize("device", ["CPU_DEVICE", "device1"])
@pytest.mark.parametrize("flags", [{}, STRICTEST], ids=["usual", "strictest"])
def test_results_are_on_the_callers_device(flags: dict[str, Any], device: str) -> None:
    where = array_api_strict.Device(device)
    with array_api_strict.ArrayAPIStrictFlags(**flags) if flags else nullcontext():
        if flags and device != "CPU_DEVICE":
            pytest.skip("this version has no way to read arrays of another device")
        for name, call in CALLS.items():
            results = list(leaves(call(lambda x: array_api_strict.asarray(np.asarray(x), device=where))))
            assert all(x.device == where for x in results), name


def test_a_device_without_such_numbers() -> None:
    where = array_api_strict.Device("no_float64")
    image = array_api_strict.ones((8, 8), dtype=array_api_strict.float32, device=where)
    assert undula.dwt2(image, "haar")[0].device == where
    with pytest.raises(undula.ArgumentTypeError, match=r"float64.*convert the data to float32"):
        undula.dwt2(array_api_strict.ones((8, 8), dtype=array_api_strict.int32, device=where), "haar")


@pytest.mark.parametrize("name", sorted(set(CALLS) - {"best_basis"}))  # It compares costs.
def test_dask_arrays_are_transformed_later_or_refused(name: str) -> None:
    import dask

    def compute(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("chunks are computed before the function returns")

    make, kind = library("Dask")
    refusal = ""
    with dask.config.set(scheduler=compute):
        try:
            results = list(leaves(CALLS[name](make)))
        except undula.UndulaError as error:
            refusal, results = str(error), []
    assert all(isinstance(x, kind) for x in results), [type(x) for x in results]
    assert not refusal or "memory" in refusal


LAZY = ("dwt", "idwt", "wavedec2", "waverec2", "swt", "iswt", "modwt", "imodwt", "mra", "threshold_firm")


@pytest.fixture(params=["jax.numpy", "dask.array"])
def lazy(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A library whose arrays have no values within the functions that are tested."""
    xp = pytest.importorskip(request.param)
    functions = [getattr(undula, name) for name in LAZY]
    for function in functions:
        lazy_xp_function(function)
    with patch_lazy_xp_functions(request, xp=xp):
        yield xp
    for function in functions:
        del function._lazy_xp_function


def test_functions_are_lazy(lazy: Any) -> None:
    for name in LAZY:
        results = list(leaves(CALLS[name](lazy.asarray)))
        for x, other in zip(results, leaves(CALLS[name](np.asarray)), strict=True):
            np.testing.assert_allclose(np.asarray(x), other, atol=1e-4)


def test_the_page_says_which_functions_take_which_arrays() -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("jax", reason="JAX is not installed")
    tool = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "make_libraries.py"))
    assert tool["PAGE"].read_text(encoding="utf-8") == tool["page"](), "run: make pages"


def swapped(x: Any) -> Any:
    return x.astype(x.dtype.newbyteorder())


def unaligned(x: Any) -> Any:
    memory = np.zeros(x.nbytes + 1, np.uint8)
    copy = memory[1:].view(x.dtype).reshape(x.shape)
    copy[...] = x
    return copy


@pytest.mark.parametrize("change", [swapped, unaligned, np.asfortranarray])
@pytest.mark.parametrize("name", CALLS)
def test_arrays_of_any_layout(name: str, change: Any) -> None:
    results, expected = list(leaves(CALLS[name](change))), list(leaves(CALLS[name](np.asarray)))
    for x, other in zip(results, expected, strict=True):
        assert x.dtype.isnative
        np.testing.assert_allclose(x, other, rtol=1e-5, atol=1e-5 * np.abs(other).max(initial=0))


DTYPES = ["?", "u2", ">i4", "f2", "g", "c16", ">c16", ">c8", "G", "O", "M8[s]", "m8[s]", "S8", "U8", "f4,i2"]
WRONG: dict[str, Any] = {
    "0-d": lambda x: np.float64(1),
    "empty": lambda x: np.zeros((0,) * x.ndim),
    "ragged": lambda x: [[1, 2], [3]],
    "text": lambda x: "text",
    "None": lambda x: None,
    "masked": lambda x: np.ma.masked_greater(x, 0.5),
}


@pytest.mark.parametrize("kind", [*DTYPES, *WRONG])
def test_other_arrays_are_taken_or_refused(kind: str) -> None:
    """Errors are those of the package, which say what is expected."""
    for name, call in CALLS.items():
        make = WRONG.get(kind, lambda x: np.zeros(x.shape, kind) if kind in "M8[s]f4,i2" else x.astype(kind))
        try:
            call(make)
        except undula.UndulaError:
            continue
        except Exception as error:
            raise AssertionError(f"{name} raises {error!r}") from error
