"""The emitters: golden texts, and kernels that compile for all supported architectures."""

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undula
from cases import parametrize_pairwise, some
from undula import color
from undula.arrays import ArrayView
from undula.engines.base import Knobs, TransformOptions
from undula.engines.gpu.cuda.runtime import compile_kernel
from undula.engines.gpu.emit import CUDA, OPENCL, Dialect, moves
from undula.engines.gpu.launches import DeviceLevel, DeviceLimits, DeviceProgram
from undula.engines.gpu.opencl.runtime import default_device
from undula.engines.gpu.strategies import STRATEGIES
from undula.engines.gpu.strategies.base import LIFTING
from undula.engines.gpu.transform import transform_program
from undula.errors import KernelError
from undula.lowering.choose import axis_op
from undula.lowering.spec import Task

GOLDEN = Path(__file__).parent / "golden"
DIALECTS = {"cuda": CUDA, "opencl": OPENCL}
ARCHITECTURES = ("sm_75", "sm_90")
SHAPE = (64, 128)


def program(
    dialect: Dialect,
    name: str | undula.Wavelet = "cdf97",
    mode: str = "symmetric",
    back: bool = False,
    dtypes: tuple[str, str] = ("float32", "float32"),
    lifted: bool = False,
    shape: tuple[int, ...] = SHAPE,
    axes: tuple[int, ...] = (0, 1),
    samples: str = "",
    dilation: int = 0,
    **options: Any,
) -> DeviceProgram:
    """Return the program of one level of contiguous arrays; with a dilation, it is undecimated."""
    wavelet = name if isinstance(name, undula.Wavelet) else undula.Wavelet(name)
    tasks = []
    for axis in axes:
        dtype = np.dtype("float32" if dtypes[1] == "float16" else dtypes[1])
        op = axis_op(wavelet, mode, shape[axis], lifted, dtype, LIFTING)
        tasks.append(Task(axis, op.undecimated(dilation) if dilation else op))
    shapes = {}
    for key in ("aa", "ad", "da", "dd") if len(axes) == 2 else ("a", "d"):
        band = list(shape)
        for letter, task in zip(key, tasks, strict=True):
            band[task.axis] = task.op.counts[letter == "d"]
        shapes[key] = tuple(band)
    level = DeviceLevel(shape, tuple(tasks), shapes)
    x = ArrayView.contiguous(0, shape, samples or (dtypes[1] if back else dtypes[0]))
    bands = [ArrayView.contiguous(number, s, dtypes[1]) for number, s in enumerate(shapes.values(), 1)]
    return transform_program(back, [level], x, bands, dialect, DeviceLimits(132), TransformOptions(**options))


SHOWN: dict[str, dict[str, Any]] = {
    "sliding_cdf53": {"name": "cdf53", "strategy": "sliding", "knobs": Knobs(pixels=4, prefetch=1)},
    "tiled_monolithic_star": {"name": "cdf53", "strategy": "tiled", "scheme": "monolithic*"},
    "rowcolumn_lifting_back": {"name": "cdf97", "strategy": "rowcolumn", "method": "lifting", "back": True},
    "sliding_cdf53_integers_back": {
        "name": "cdf53",
        "lifted": True,
        "dtypes": ("int16", "int16"),
        "back": True,
    },
    "naive_db2": {"name": "db2", "strategy": "naive", "mode": "antireflect"},
    "steps_db2": {"name": "db2", "lifted": True, "mode": "zero", "axes": (1,), "dtypes": ("float16",) * 2},
    "undecimated_haar": {"name": "haar", "dilation": 2, "axes": (0,)},
    "undecimated_plane_db2": {"name": "db2", "dilation": 2},
    "undecimated_plane_db2_back": {"name": "db2", "dilation": 2, "back": True},
}
# Every strategy of callers, and the one for undecimated transforms.
PASSES = {**{name: {"strategy": name} for name in STRATEGIES}, "undecimated": {"dilation": 1}}


def test_every_strategy_has_a_golden_text() -> None:
    shown = {options.get("strategy", "auto") for options in SHOWN.values()}
    assert shown == set(STRATEGIES)


@pytest.mark.parametrize("back", [False, True], ids=["forward", "back"])
@pytest.mark.parametrize("strategy", PASSES)
def test_programs_are_fitted_without_a_driver(strategy: str, back: bool) -> None:
    """A device that runs more groups at once gets more strips; everything else stays."""
    built = program(CUDA, back=back, shape=(2048, 2048), **PASSES[strategy])
    few, many = (built.fitted(lambda kernel, n=n: n) for n in (132, 132 * 16))  # type: ignore[misc]
    assert few.source == many.source == built.source
    assert few.scratch == built.scratch
    for before, after in zip(few.launches, many.launches, strict=True):
        changed = {
            name
            for (name, _), a, b in zip(before.kernel.integers, before.values, after.values, strict=True)
            if a != b
        }
        assert before.buffers == after.buffers
        assert changed <= {"strip", "strips", "end_strip", "end_strips", "end_groups"}
        strips = strategy in ("auto", "sliding", "undecimated")
        assert bool(changed) == strips == (before.groups < after.groups)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_candidates_are_programs(strategy: str) -> None:
    for knobs in STRATEGIES[strategy].candidates:
        assert program(CUDA, strategy=strategy, knobs=knobs).launches


@pytest.mark.parametrize("language", DIALECTS)
@pytest.mark.parametrize("shown", SHOWN)
def test_golden(shown: str, language: str, request: pytest.FixtureRequest) -> None:
    """Texts change only on purpose: ``pytest --update-golden`` writes the new ones."""
    path = GOLDEN / f"{shown}.{'cu' if language == 'cuda' else 'cl'}"
    text = program(DIALECTS[language], **SHOWN[shown]).source
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), "no golden file yet: run pytest --update-golden"
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore::UserWarning:pyopencl")
@pytest.mark.parametrize("shown", SHOWN)
def test_golden_kernels_compile_with_the_header_of_the_driver(shown: str) -> None:
    """Other tests declare only the functions that kernels call: here all of OpenCL C is declared."""
    import pyopencl as cl

    for launch in program(OPENCL, **SHOWN[shown]).launches:
        cl.Program(default_device().context, launch.kernel.source).build()


def test_languages_differ_in_words_only() -> None:
    cuda, opencl = (
        program(d, strategy="tiled", scheme="sweldens").source.split("// sweldens")[1] for d in (CUDA, OPENCL)
    )
    for word, other in (
        ("__shared__ ", "__local "),
        ("__syncthreads();", "barrier(CLK_LOCAL_MEM_FENCE);"),
        ("long long", "long"),
        ("(int)threadIdx.x", "(int)get_local_id(0)"),
        ("(int)blockIdx.x", "(int)get_group_id(0)"),
        ("__restrict__", "restrict"),
        (CUDA.kernel.format(items=256), OPENCL.kernel.format(items=256)),
    ):
        cuda = cuda.replace(word, other)
    for line in CUDA.wait_for_previous.split("\n"):
        cuda = cuda.replace(f"    {line}\n", "")
    assert cuda == opencl.replace("__global ", "")


@pytest.mark.parametrize("axes", [(0, 1), (0,), (1,)])
@pytest.mark.parametrize("back", [False, True], ids=["forward", "back"])
def test_every_column_and_row_has_its_lane(back: bool, axes: tuple[int, ...]) -> None:
    """Groups at the ends of rows and all others together cover each strip exactly once."""
    for height, width in (
        (1, 1),
        (9, 64),
        (40, 240),
        (64, 256),
        (33, 512),
        (300, 1000),
        (70, 2048),
        (7, 4099),
    ):
        for name in ("haar", "cdf97", "db8"):
            made = program(CUDA, name, back=back, shape=(height, width), axes=axes, strategy="sliding")
            (launch,) = made.launches
            names = [integer for integer, _ in launch.kernel.integers]
            told = dict(zip(names, launch.values, strict=True))
            warps = launch.kernel.items // 32
            done = []
            for group in range(launch.groups):
                for warp in range(warps):
                    if group < told["end_groups"]:
                        turn = group * warps + warp
                        which, number = turn % told["ends"], turn // told["ends"]
                        across = which if which < told["ends_left"] else told["total"] - told["ends"] + which
                        strip, length = number % told["end_strips"], told["end_strip"]
                        if number // told["end_strips"] >= told["planes"]:
                            continue
                    else:
                        own = group - told["end_groups"]
                        across = told["ends_left"] + own % told["blocks"] * warps + warp
                        strip, length = own // told["blocks"] % told["strips"], told["strip"]
                        if across >= told["total"] - told["ends"] + told["ends_left"]:
                            continue
                    rows = range(strip * length, min((strip + 1) * length, told["row_pairs"]))
                    done += [(across, row) for row in rows]
            assert sorted(done) == [(a, r) for a in range(told["total"]) for r in range(told["row_pairs"])]


ONE_AXIS = [name for name in STRATEGIES if not STRATEGIES[name].needs_two_axes]


NAMES = undula.wavelist(undula.families(), kind="discrete")
# A wavelet of each length of filters.
ROOMS = some(NAMES, list({undula.Wavelet(name).dec_len: name for name in NAMES}.values()))


@parametrize_pairwise(
    language=DIALECTS,
    strategy=ONE_AXIS,
    mode=undula.MODES,
    dtype=["float16", "float32", "float64"],
    channels=[1, 2, 4],
    pixels=[0, 2],
    back=[False, True],
)
def test_every_wavelet_has_room(
    language: str, strategy: str, mode: str, dtype: str, channels: int, pixels: int, back: bool
) -> None:
    """However long the filters, groups of lanes have results, and shared memory suffices."""
    shape, pair = (64, channels), (dtype, dtype)
    options: Any = {"strategy": strategy, "knobs": Knobs(pixels=pixels)}
    for name in ROOMS:
        made = program(DIALECTS[language], name, mode, back, pair, shape=shape, axes=(0,), **options)
        (launch,) = made.launches
        names = [integer for integer, _ in launch.kernel.integers]
        counts = dict(zip(names, launch.values, strict=True))
        positive = ("total", "strip", "strips", "end_strip", "end_strips", "blocks", "pieces")
        assert launch.groups > 0, name
        assert all(counts.get(count, 1) > 0 for count in positive), name
        cells = re.findall(r"(?:__shared__|__local) number \w+\[(\d+)\]", made.source)
        assert sum(map(int, cells)) * (8 if dtype == "float64" else 4) <= DeviceLimits().shared, name


@pytest.mark.parametrize("taps", [130, 400])
def test_filters_longer_than_any_wavelet_have_room(taps: int) -> None:
    low = [0.6, *[0.0] * (taps - 2), 0.8]  # orthogonal to its shifts by any even number
    high = [-0.8, *[0.0] * (taps - 2), 0.6]
    wavelet = undula.Wavelet("long", filter_bank=[low, high, low[::-1], high[::-1]])
    for knobs in (None, Knobs(pixels=4)):
        made = program(OPENCL, wavelet, dtypes=("float64",) * 2, strategy="sliding", knobs=knobs)
        (launch,) = made.launches
        total = [integer for integer, _ in launch.kernel.integers].index("total")
        assert launch.values[total] > 0


def test_a_device_that_runs_no_group_gets_strips() -> None:
    """A kernel with more registers than a unit has makes a driver count 0 groups that run at once."""
    (launch,) = program(CUDA, shape=(2048, 2048), strategy="sliding").fitted(lambda kernel: 0).launches
    assert launch.groups > 0


EACH_WAY: list[dict[str, Any]] = [
    *({"strategy": "sliding", "mode": mode, "name": "db2"} for mode in undula.MODES),
    *({"strategy": "sliding", "name": name} for name in ("haar", "cdf53", "cdf97", "dd137", "db8", "db20")),
    *({"strategy": "sliding", "dtypes": (name, name)} for name in ("float64", "float16")),
    *({"strategy": "sliding", "dtypes": (name, "float32")} for name in ("uint8", "uint16", "int16")),
    {"strategy": "sliding", "shape": (64, 128, 3)},
    {"strategy": "sliding", "axes": (0,)},
    {"strategy": "sliding", "axes": (1,)},
    {"strategy": "sliding", "lifted": True},
    *({"strategy": "tiled", "scheme": name} for name in undula.SCHEMES),
    {"strategy": "tiled", "dtypes": ("float16",) * 2, "mode": "smooth"},
    *({"strategy": "rowcolumn", "method": method} for method in ("lifting", "filters")),
    {"strategy": "naive", "mode": "antireflect"},
    {"strategy": "sliding", "name": "db2", "lifted": True, "mode": "zero"},
    {"name": "cdf53", "lifted": True, "dtypes": ("uint8", "int16")},
    {"name": "cdf53", "lifted": True, "dtypes": ("int32", "int32"), "mode": "periodic"},
    {"name": "cdf97", "lifted": True, "dtypes": ("int8", "int16"), "shape": (64, 128, 3)},
    {"name": "cdf97", "lifted": True, "dtypes": ("uint16", "int32")},
    {"name": "db2", "lifted": True, "mode": "zero", "dtypes": ("int16", "int32")},
    *({"dilation": 1, "mode": mode} for mode in ("symmetric", "smooth", "periodization")),
    {"dilation": 2, "name": "db10", "dtypes": ("float64",) * 2},
    {"dilation": 8, "name": "db2", "dtypes": ("uint8", "float32"), "shape": (64, 128, 3)},
    {"dilation": 2, "axes": (1,), "mode": "antireflect"},
]
WAYS = {"-".join(str(value) for value in way.values()): way for way in EACH_WAY}


@pytest.mark.parametrize("language", DIALECTS)
@pytest.mark.parametrize("mode", ["antisymmetric", "antireflect"])
def test_long_borders_are_out_of_line(mode: str, language: str) -> None:
    """Inlined for each column of each load, they made kernels fifteen times as large."""
    text = program(DIALECTS[language], mode=mode, strategy="sliding").source
    dialect = DIALECTS[language]
    assert f"{dialect.outlined_function} number along_beyond(" in text
    assert f"{dialect.outlined_function} int wrapped(" in text
    head, _, rest = text.partition("number along_beyond(")
    body, _, loads = rest.partition("}\n\n")
    assert "along_weight(" in head
    assert "along_weight(" in body
    assert "along_weight(" not in loads


@pytest.fixture
def new_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of this run, which all processes share: the kernels of many tests are the same."""
    base = tmp_path_factory.getbasetemp()
    folder = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "compiled"))


@parametrize_pairwise(name=WAYS, direction=["forward", "back"], arch=ARCHITECTURES)
@pytest.mark.usefixtures("new_cache")
def test_compiles(name: str, direction: str, arch: str) -> None:
    way, back = WAYS[name], direction == "back"
    if back and way.get("dtypes", ("",))[0] in ("uint8", "uint16", "int16"):
        way = {**way, "dtypes": (way["dtypes"][1],) * 2}
    for launch in program(CUDA, back=back, **way).launches:
        assert compile_kernel(launch.kernel, arch)[:4] == b"\x7fELF"


@pytest.mark.parametrize(("space", "arch"), [*((name, "sm_90") for name in color.SPACES), ("rct", "sm_75")])
def test_colours_compile(space: str, arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    own = color.space(space)
    for channels in (3, 4) if space == "apple" else (3,):
        shape, kept = (64, 128, channels), "int16" if own.integer else "float32"
        told: dict[str, Any] = {"name": "cdf53", "lifted": True, "shape": shape, "dtypes": ("uint8", kept)}
        there = program(CUDA, **told, mixing=own.mixing(channels))
        back = program(CUDA, **told, back=True, unmixing=own.unmixing, samples="uint8")
        for made in (there, back):
            for launch in made.launches:
                assert compile_kernel(launch.kernel, arch)[:4] == b"\x7fELF"


@pytest.mark.parametrize("back", [False, True], ids=["forward", "back"])
@pytest.mark.parametrize("strategy", PASSES)
def test_kernels_wait_before_they_access_memory(strategy: str, back: bool) -> None:
    """A kernel may start before the previous one has ended, so it waits before its first access."""
    from cuda.bindings import nvrtc

    for launch in program(CUDA, back=back, **PASSES[strategy]).launches:
        _, made = nvrtc.nvrtcCreateProgram(launch.kernel.source.encode(), b"kernel.cu", 0, [], [])
        (code,) = nvrtc.nvrtcCompileProgram(made, 1, [b"--gpu-architecture=compute_90"])
        assert not int(code)
        _, size = nvrtc.nvrtcGetPTXSize(made)
        text = b" " * size
        nvrtc.nvrtcGetPTX(made, text)
        waits = text.index(b"griddepcontrol.wait")
        assert waits < text.index(b"ld.global")
        assert waits < text.index(b"st.global")


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "uint8", "uint16", "int16"])
def test_fills_and_copies_compile(
    dtype: str, arch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for kernel in (moves.fill(dtype, CUDA), moves.copy(dtype, 1, CUDA), moves.copy(dtype, 4, CUDA)):
        assert compile_kernel(kernel, arch)[:4] == b"\x7fELF"


def test_compiled_kernels_are_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kernel = program(CUDA, "haar").launches[0].kernel
    code = compile_kernel(kernel, "sm_90")
    (kept,) = (tmp_path / "undula" / "kernels").iterdir()
    monkeypatch.setattr("undula.engines.gpu.cuda.runtime._compile", lambda *_: pytest.fail("compiled again"))
    assert compile_kernel(kernel, "sm_90") == code
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kept.write_bytes(kept.read_bytes()[:-1])  # A truncated entry is not used.
    assert compile_kernel(kernel, "sm_90") == code


def test_compile_errors_show_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kernel = program(CUDA, "haar").launches[0].kernel
    broken = replace(kernel, source=kernel.source.replace("typedef float number;", "typedef flaot number;"))
    with pytest.raises(KernelError, match="flaot") as caught:
        compile_kernel(broken, "sm_90")
    assert "typedef flaot number;" in caught.value.source
    assert "identifier" in caught.value.log


def test_missing_devices_suggest_a_remedy() -> None:
    from undula.engines.gpu.cuda import runtime

    with pytest.raises(undula.MissingDeviceError, match=r"backend 'cpu' needs none|no GPU number 1000"):
        runtime.device(1000)
