"""Write the table of array libraries in docs/guides/libraries.md: run a small call of every public function.

python tools/make_libraries.py            write the page
python tools/make_libraries.py --check    fail if it is out of date
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "guides" / "libraries.md"
if str(ROOT / "tests") not in sys.path:
    sys.path.append(str(ROOT / "tests"))

from calls import CALLS, COLUMNS, GRADIENTS, JIT, outcome  # noqa: E402 (it is found beside the tests)

HEAD = """# Which functions take which arrays

<!-- Written by tools/make_libraries.py. -->

Every public function returns arrays of the library of its arguments, on their device, or raises an error that says what to
pass. The table is made by a small call of each function, and the tests compare it with what functions do.

- **NumPy, PyTorch, JAX, array API**: arrays on the CPU of NumPy, PyTorch and JAX, and of any other library whose arrays have
  `__array_namespace__` and DLPack. The latter are tested with `array_api_strict`, with its strictest flags, too. Results have no
  float64 where the library has none, as JAX by default.
- **Dask**: results are Dask arrays, and nothing is computed before `compute()`. `best_basis` alone computes what it compares.
- **Gradients**: results of tensors with `requires_grad=True` have gradients; other functions refuse such tensors. See
  [Gradients](gradients.md).
- **`jax.jit`**: the function can be traced by JAX; other functions refuse traced values.

Arrays of CuPy, JAX and PyTorch on a GPU, of Numba and of PyOpenCL are transformed and filtered where they are, by the functions
whose pages say so; see [GPU arrays](gpu-arrays.md). All others ask for arrays on the host. Functions for files, Zarr stores,
xarray and the layers of PyTorch take what their pages name.

| function | NumPy, PyTorch, JAX, array API | Dask | gradients | `jax.jit` |
|---|---|---|---|---|
"""


def row(name: str) -> str:
    """Return the row of a function."""
    # The tests show that every function returns arrays of the other libraries.
    cells = [True, *(outcome(CALLS[name], column) for column in (COLUMNS[-1], GRADIENTS, JIT))]
    return f"| `{name}` |" + "".join(" ✓ |" if cell else " |" for cell in cells)


def page() -> str:
    """Return the page."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the small arrays
        return HEAD + "".join(f"{row(name)}\n" for name in sorted(CALLS, key=str.lower))


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    text = page()
    if "--check" not in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != text:
        sys.exit(f"{PAGE.relative_to(ROOT)} is out of date; run: make pages")
