"""Fixtures that many tests share: wavelets, modes, schemes, devices."""

import gc
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any

import pytest
from hypothesis import settings

import undula
from cases import THOROUGH, WAVELETS, left_out
from undula.engines.cpu.machine_code import ADDRESSES, COLLABORATIVE, LIKE, TEMPORAL
from undula.engines.gpu.emit import Kernel
from undula.engines.gpu.opencl.runtime import OpenCLDevice

pytest_plugins = ["leftovers", "parts"]

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # or JAX takes the memory of all others

# The objects of the packages stay: to look through all of them again and again takes a tenth of the time.
gc.set_threshold(700, 10, 100)

if "forkserver" in multiprocessing.get_all_start_methods():
    # Processes of a cluster start as copies of one that has imported Dask.
    os.environ.setdefault("DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD", "forkserver")

if not THOROUGH:
    # Most of the time of these tests is that of a compiler; the thorough ones let it do all it can.
    os.environ.setdefault("PYOPENCL_BUILD_OPTIONS", "-cl-opt-disable")
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

settings.register_profile("default", deadline=None, max_examples=25, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=3000)  # make thorough
settings.load_profile("thorough" if THOROUGH else "default")


# The functions of OpenCL C that kernels call, for all scalars for which the standard declares them.
SCALARS = "char uchar short ushort int uint long ulong float double".split()
OPENCL_FUNCTIONS = "".join(
    f"__attribute__((overloadable, {attribute})) {declaration};\n"
    for attribute, declaration in [
        *(("const", f"{kind} {name}({kind}, {kind})") for name in ("min", "max") for kind in SCALARS),
        *(
            ("const", f"{kind} {name}({', '.join([kind] * count)})")
            for count, names in (
                (1, ("fabs", "floor", "sqrt", "rsqrt", "exp", "log", "rint")),
                (2, ("fmin", "fmax", "pow")),
            )
            for name in names
            for kind in SCALARS[-2:]
        ),
        ("const", "uint mul_hi(uint, uint)"),
        *(
            ("", f"{kind} atomic_add(volatile __{space} {kind} *, {kind})")
            for space in ("global", "local")
            for kind in ("int", "uint")
        ),
        *(("const", f"size_t {name}(uint)") for name in ("get_group_id", "get_local_id")),
        ("convergent", "void barrier(cl_mem_fence_flags)"),
    ]
)


@pytest.fixture(scope="session", autouse=not THOROUGH)
def _opencl_functions() -> Iterator[None]:
    """Declare to PoCL the functions that kernels call, in place of its header that declares all of OpenCL.

    PoCL reads this header of 17,000 lines before every kernel, which takes longer than to compile the kernel.
    A kernel that calls another function fails to compile until the function is added above.
    """
    compile_kernel, lock = OpenCLDevice.function, Lock()

    def function(device: OpenCLDevice, kernel: Kernel) -> Any:
        # The driver of a GPU may not be asked anything in a child of this process.
        if device.limits.gpu or device.handle.platform.name != "Portable Computing Language":
            return compile_kernel(device, kernel)
        options = f"{os.environ.get('PYOPENCL_BUILD_OPTIONS', '')} -D_OPENCL_H_"  # The guard of the header.
        with lock, pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYOPENCL_BUILD_OPTIONS", options)
            return compile_kernel(
                device, replace(kernel, source=f"{OPENCL_FUNCTIONS}#line 1\n{kernel.source}")
            )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OpenCLDevice, "function", function)
        yield


def _skip_missing_devices() -> Generator[None]:
    """Skip tests of a device that is missing, or whose driver does not know the processor."""
    try:
        return (yield)
    except Exception as error:
        if isinstance(error, undula.MissingDeviceError) or "unknown target CPU" in str(error):
            pytest.skip(str(error))
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None]:
    return (yield from _skip_missing_devices())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    return (yield from _skip_missing_devices())


@pytest.fixture(scope="session")
def opencl() -> None:
    """A driver of OpenCL, for tests that use it through commands."""
    undula.wavedec([1.0, 2.0], "haar", backend="opencl")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A cluster of two processes; it starts those again that a test kills."""
    distributed = pytest.importorskip("distributed", reason="Dask's scheduler is not installed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**options, silence_logs=50) as started:
        yield started


@pytest.fixture(scope="session", autouse=not THOROUGH)
def _fast_nvrtc() -> Iterator[None]:
    """Let NVRTC compile fast where no GPU runs the result: tests without a GPU check that kernels compile."""
    try:
        import cuda.core
    except ImportError:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        if not HAS_GPU:
            options = cuda.core.ProgramOptions
            patch.setattr(cuda.core, "ProgramOptions", partial(options, ofast_compile="max"))
        yield


@pytest.fixture(params=WAVELETS)
def wavelet(request: pytest.FixtureRequest) -> undula.Wavelet:
    return undula.Wavelet(request.param)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files anew")
    parser.addoption("--screenshots", help="a folder for pictures of the Studio, such as docs/images/studio")


# Kernels that the library never calls with samples of a type.
UNUSED = {(name, kind) for name in (*COLLABORATIVE, *TEMPORAL) for kind in LIKE if kind != "float32"}
UNUSED.add(("mix_planes", "float64"))
FILTERS = pytest.StashKey["subprocess.Popen[bytes]"]()
FILTER_ONCE = """
import gc; gc.disable()
import numpy as np, undula
for dtype in ("uint8", "float64"):
    image = (np.arange(64 * 64 * 3).reshape(64, 64, 3) * 37 % 251).astype(dtype)
    for filter in (undula.denoise, undula.despeckle, undula.sharpen, undula.enhance):
        filter(image[..., 0])
        filter(image)
"""


def pytest_configure(config: pytest.Config) -> None:
    """Compiles the kernels of the CPU once, on all cores, before every worker needs all of them at once."""
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        return
    # Kernels of one direction and type have most functions in common, which a process compiles once.
    groups = []
    for number, kind in enumerate(LIKE):
        kernels = [(name, kind) for name in ADDRESSES if (name, kind) not in UNUSED]
        inverse = [each for each in kernels if each[0].startswith("synthesise")]
        forward = [each for each in kernels if each not in inverse]
        groups += [inverse, forward] if number % 2 else [forward, inverse]
    cores = os.cpu_count() or 1
    code = (
        "import gc; gc.disable()\n"
        "from undula.engines.cpu.machine_code import kernel\n"
        "for group in {}:\n  for each in group: kernel(*each)"
    )
    waiting = [
        subprocess.Popen([sys.executable, "-c", code.format(groups[core::cores])])
        for core in range(min(cores, len(groups)))
    ]
    if not sys.dont_write_bytecode:
        # One process compiles the imports of all tests to bytecode, or else each worker would compile them.
        collect = [sys.executable, "-m", "pytest", "-n0", "--collect-only", "-qq", *config.args]
        subprocess.run(collect, stdout=subprocess.DEVNULL, cwd=config.invocation_params.dir, check=False)
    assert not any(process.wait() for process in waiting)
    # The loops of the filters are kept on disk, too; they are compiled while the workers collect the tests.
    config.stash[FILTERS] = subprocess.Popen([sys.executable, "-c", FILTER_ONCE])


def pytest_unconfigure(config: pytest.Config) -> None:
    if FILTERS in config.stash:
        config.stash[FILTERS].wait()


LEFT_OUT = pytest.StashKey[int]()


def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is None:
        session.config.stash.setdefault(LEFT_OUT, left_out())
    else:
        output["left_out"] = left_out()  # The process that reports collects no tests by itself.


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.stash.get(LEFT_OUT, 0):
        terminalreporter.write_line(f"{config.stash[LEFT_OUT]:,} cases were left to `make thorough`")


def _has_gpu() -> bool:
    from undula.engines.gpu.cuda import runtime

    try:
        runtime.device(0)
    except undula.MissingDeviceError:
        return False
    return True


HAS_GPU = _has_gpu()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs a GPU is not collected where there is none, so that nothing is skipped in vain."""
    if not HAS_GPU:
        items[:] = [item for item in items if item.get_closest_marker("cuda") is None]
    items.sort(key=lambda item: FIRST.get(item.nodeid.partition("::")[0], len(FIRST)))
    gc.freeze()


# Files that share what takes long to make, and therefore run in one process: a server and its browser, a
# cluster.
TOGETHER = {
    "tests/studio/test_browser.py": "studio",
    "tests/studio/test_safety.py": "studio",
    "tests/engines/test_cluster.py": "cluster",
    "tests/stores/test_clusters.py": "cluster",
}
# The files that take longest run first, so that at the end all processes finish at about the same time.
LONGEST = """
    tests/test_docs.py tests/engines/test_devices.py tests/cli/test_commands.py tests/test_jax.py
    tests/engines/test_device_graphs.py tests/filters/test_chunked_filters.py tests/studio/test_extents.py
    tests/functions/test_adjoints.py tests/filters/test_pipeline.py tests/engines/test_emit.py
    tests/filters/test_functions.py tests/test_pywavelets.py tests/filters/test_masks.py
    tests/test_project.py tests/functions/test_dwt.py tests/engines/test_chunked.py
    tests/lowering/test_growth.py tests/schemes/test_schemes.py tests/filters/test_camera.py
    tests/studio/test_parts.py tests/test_gradients.py tests/engines/test_device_collaborative.py
    tests/functions/test_stationary.py tests/io/test_video_differential.py tests/engines/test_graphs.py
    tests/cli/test_channels.py tests/test_xarray.py tests/io/test_stacks.py tests/cli/test_zarr.py
    tests/engines/test_reference.py tests/codecs/test_nd_lift.py tests/stores/test_stores.py
    tests/io/test_dicom.py tests/color/test_color.py tests/experiments/test_experiments.py
    tests/engines/test_undecimated.py tests/functions/test_dual_tree.py
""".split()
FIRST = {path: number for number, path in enumerate([*TOGETHER, *LONGEST])}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distribute tests by files: those of one file share modules, fixtures and compiled kernels."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            return TOGETHER.get(path, path)

    assert all((config.rootpath / path).exists() for path in FIRST)
    config.option.loadscopereorder = False
    return Scheduling(config, log)


@pytest.fixture(scope="module", params=["opencl", pytest.param("cuda", marks=pytest.mark.cuda)])
def target(request: pytest.FixtureRequest) -> str:
    """Every device backend that there is."""
    name: str = request.param
    return name


@pytest.fixture(params=undula.SCHEMES)
def scheme_name(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name
