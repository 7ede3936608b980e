"""Writes the pages and pictures of ``docs/`` that the code makes.

python tools/make_docs.py            writes them
python tools/make_docs.py --check    tells whether the pages that hold exact numbers are up to date
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import undula
from undula.backends import reference
from undula.plans.growth import growth

DOCS = Path(__file__).parents[1] / "docs"
PAPER = "sweldens iwahashi iwahashi* explosive explosive* monolithic monolithic* polyphase polyphase*".split()
NOTE = "*This page is made by `tools/make_docs.py`; every number in it is computed.*\n"


def table(head: list[str], rows: list[list[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)


def doubled() -> undula.Lifting:
    """Two pairs of degree-3 steps: a wavelet of its own, to count connected pairs with."""
    one = undula.lifting("dd137")
    return undula.Lifting.make((*one.steps, *one.steps))


def schemes_page() -> str:
    """Tables 2, 3 and 4 of Barina, Kula and Zemcik, and the matrices of the ten schemes."""
    counts = [
        [
            f"`{name}`",
            *(
                f"{s.barriers} / {s.operations}"
                for s in (undula.scheme(w, name) for w in ("cdf53", "cdf97", "dd137"))
            ),
        ]
        for name in undula.SCHEMES
    ]
    memory: list[list[object]] = []
    for name in PAPER:
        one, two = undula.scheme("cdf53", name), undula.scheme("cdf97", name)
        double = (
            f"({two.cells.double}) {one.cells.double}"
            if two.cells.double != one.cells.double
            else one.cells.double
        )
        memory.append([f"`{name}`", one.barriers, one.cells.single, double])
    traffic: list[list[object]] = []
    for name in PAPER:
        first, second = undula.scheme("cdf53", name), undula.scheme("cdf97", name)
        third, fourth = undula.scheme("dd137", name), undula.scheme(doubled(), name)
        per_pair = second.writes - first.writes
        constant = first.writes - per_pair
        assert second.reads == 2 * first.reads
        assert fourth.reads == 2 * third.reads
        assert fourth.writes == second.writes
        writes = f"{constant} + {per_pair}K" if constant else f"{per_pair}K"
        traffic.append([f"`{name}`", writes, f"{first.reads}K", f"{third.reads}K"])
    matrices = "\n".join(f"### {name}\n\n```text\n{undula.scheme('cdf53', name)}\n```\n" for name in PAPER)
    return f"""# Ten schemes for one transform

{NOTE}
A separable wavelet transform of an image can be cut into stages in many ways. Between two stages stands a
barrier: every thread must have written what its neighbours will read. Fewer barriers cost more operations. The
schemes below are those of Barina, Kula and Zemcik, "Parallel Wavelet Schemes for Images"; all compute the same
numbers, which the tests prove by multiplying their matrices, exactly for rational wavelets.

![operations and barriers of the ten schemes](images/schemes.png)

## Barriers and operations (Table 2)

Multiply-accumulates for one quadruple of samples: the terms of all matrices, ones on the diagonal and the scaling
left out. `convolution` has the scaling in its filters.

{table(["scheme", "CDF 5/3", "CDF 9/7", "DD 13/7"], [list(row) for row in counts])}
## Local memory (Table 3)

Cells per quadruple with one buffer and two barriers, and with two buffers and one; in brackets where connected
lifting pairs need more.

{table(["scheme", "barriers", "single", "double"], memory)}
## Reads and writes (Table 4)

Local memory accesses per quadruple, for K lifting pairs. Degree 1 is CDF 5/3 and 9/7, degree 3 is DD 13/7. A
value that has not changed is neither written nor read again.

{table(["scheme", "writes", "reads, degree 1", "reads, degree 3"], traffic)}
## The matrices

As `print(undula.scheme("cdf53", name))` shows them. The components are [LL, HL, LH, HH], a star means vertical,
zₘ runs along a row and zₙ down a column, `|` is a barrier, E chooses the samples called L and H, and Z scales the bands. Where a
chain begins with an update, updates are paired with the predicts that follow, L and H exchanged; primes mark such
matrices.

{matrices}"""


def lifting_page() -> str:
    """Every wavelet with its lifting and how well it keeps numbers."""
    rows: list[list[object]] = []
    banks = []
    for name in undula.wavelist():
        wavelet = undula.Wavelet(name)
        try:
            lifting = undula.lifting(name)
        except undula.ReconstructionError:
            banks.append(name)
            continue
        condition = lifting.conditioning
        if not condition.good:
            banks.append(name)
        marks = [mark for mark, on in (("exact", lifting.exact), ("symmetric", lifting.symmetric)) if on]
        rows.append(
            [
                name,
                wavelet.dec_len,
                len(lifting.steps),
                lifting.operations,
                f"{condition.largest:.2f}",
                f"{condition.float32_error * 1e7:.1f}",
                "exact" if lifting.exact else f"{condition.residual:.0e}",
                ", ".join(marks),
            ]
        )
    shown = "\n\n".join(
        f"```text\n{name}\n{undula.lifting(name)}\n```"
        for name in ("cdf53", "cdf97", "dd137", "burt57", "haar", "db2")
    )
    head = ["wavelet", "taps", "steps", "operations", "largest", "float32, 10⁻⁷", "residual", ""]
    return f"""# Lifting

{NOTE}
`undula.lifting(wavelet)` factors a wavelet into predict and update steps. Two ways lead there.

**Euclid's algorithm** on the two polyphase halves of a filter (Daubechies and Sweldens). A quotient may clear
terms at either end of the polynomial, so every division has several results; a beam search follows the chains
with few multiplications, small coefficients and short reach. For the short symmetric wavelets it finds what
textbooks print:

{shown}

**Rotations.** The polyphase matrix of an orthogonal wavelet is a chain of plane rotations of neighbouring
samples, and a rotation is three shears with coefficients of at most 1. Long orthogonal wavelets, whose divisions
would lose digits, are factored this way: the largest coefficient of `coif17`, with 102 taps, is 1.

Every factorisation is multiplied out and compared with the polyphase matrix (*residual*), and run forward and
back in float32 on white noise of unit variance (*float32*, root mean square). Where that error exceeds 6·10⁻⁷ or
the residual 10⁻¹⁰, the filter bank is the better way to run the wavelet. That is the case for:
**{", ".join(banks)}** ({"its" if len(banks) == 1 else "their"} filters reconstruct only approximately, so no chain of
invertible steps can equal them).

*Operations* are multiplications for one pair of samples, the scaling left out; the filter bank takes twice the
number of taps.

{table(head, rows)}"""


def speed_page() -> str:
    """The figures of ``benchmarks/cpu.py --save``."""
    kept = json.loads((DOCS.parent / "benchmarks" / "results" / "cpu.json").read_text(encoding="utf-8"))
    where = kept["machine"]
    rows: list[list[object]] = []
    for row in kept["results"]:
        times = row["times"]
        shape = "×".join(map(str, row["shape"]))
        words = [
            shape,
            row["wavelet"],
            {"f4": "float32", "f8": "float64"}[row["dtype"]],
            row["levels"],
            "inverse" if row.get("back") else "forward",
            row.get("threads") or where["threads"],
        ]
        ours = times["undula"]
        peers = [
            f"{times[name] / ours:.3g}" if name in times else "" for name in ("PyWavelets", "ndwt", "ptwt")
        ]
        numbers = [times["copy"], ours, times["undula, out="], times["undula, out="] / times["copy"]]
        rows.append([*words, *(f"{number:.2f}" for number in numbers), *peers])
    head = "shape wavelet dtype levels way threads copy undula out= out=/copy ×PyWavelets ×ndwt ×ptwt".split()
    versions = ", ".join(
        f"{key} {where[key]}" for key in where if key not in ("date", "processor", "threads")
    )
    return f"""# Speed

*This page is made by `tools/make_docs.py` from the figures that `python benchmarks/cpu.py --save` measured.*

![time per pixel](images/cpu.png)

A level of an image cannot be faster than reading it once and writing it once, so the floor is a copy of the same bytes, by
as many threads, in the same run. `undula` is the function, which finds memory for its results; `out=` is a plan that
writes to arrays given to it; both in milliseconds, the best of several. The last columns say how many times longer the
peers take than `undula`. PyWavelets and ptwt compute the same numbers; ndwt's lifting transform has as many coefficients
as samples.

{where["date"]}, {where["processor"]}, {where["threads"]} threads; {versions}. `python benchmarks/cpu.py` measures your machine.

{table(head, rows)}
## How it works

- **One pass.** The steps down the columns remember a few rows; each finished row is lifted along its length while it is in
  the cache, and written once. The next rows are fetched meanwhile. Two levels are done in one pass where the mode allows,
  so the approximation between them never goes to memory.
- **Vector loops.** Compilers vectorise neither loops with several results nor loads that take every second sample. The inner
  loops are spelled out as vectors, which LLVM maps to what the processor has; a row is kept in two halves, its even and its
  odd columns, from the first load on.
- **Lifting or filters, whichever is right.** Short symmetric chains (CDF 5/3, CDF 9/7) are lifted: for 9/7 two multiplications a sample
  and axis, where the filters take eight. Everything else runs as two filters over the same sources, which by
  count of loads and fused multiply-adds cost no more than longer chains, and are as precise as PyWavelets; so does CDF 9/7 in double precision under
  PyWavelets' name `bior4.4`, whose filters differ from the lifting in the twelfth digit. `Plan.method` tells.
- **No borders.** Samples beyond the ends are a table of combinations, so all modes run the same loops, and no loop tests
  for a border.
- **Threads** take bands of rows, or some of the images of a batch, and compute the few rows they share twice; every value is
  made by the same operations wherever it is computed, so results do not depend on their number.
- **Memory** of results is kept for the next ones, because fresh memory costs as much as the transform.
- **Machine code** is kept on disk and called without Numba: a program's first transform takes a tenth of a second.
"""


def gpu_page() -> str:
    """The figures of ``benchmarks/gpu.py --save``, and how the GPU engine is used and works."""
    kept = json.loads((DOCS.parent / "benchmarks" / "results" / "gpu.json").read_text(encoding="utf-8"))
    rows: list[list[object]] = [
        [
            row["what"],
            "×".join(map(str, row["shape"])),
            *(f"{row[key]:.1f}" for key in ("copy", "forward")),
            f"{row['ratio']:.2f}",
            f"{row['back']:.1f}",
            f"{row['ratio_back']:.2f}",
        ]
        for row in kept["sizes"]
    ]
    sizes = table("what shape copy forward copy/forward back copy/back".split(), rows)
    ways = list(dict.fromkeys(row["way"] for row in kept["strategies"]))
    names = list(dict.fromkeys(row["wavelet"] for row in kept["strategies"]))
    found = {(row["wavelet"], row["way"]): row for row in kept["strategies"]}
    each: list[list[object]] = []
    for way in ways:
        line: list[object] = [way]
        for name in names:
            row = found.get((name, way))
            line += ["", ""] if row is None else [f"{row['forward']:.0f}", f"{row['back']:.0f}"]
        each.append(line)
    strategies = table(["way", *(f"{name} {way}" for name in names for way in ("forward", "back"))], each)
    sides = sorted({row["n"] for row in kept["peers"]})
    others = {(row["peer"], row["n"]): row for row in kept["peers"]}
    beside: list[list[object]] = []
    for peer in dict.fromkeys(row["peer"] for row in kept["peers"]):
        line = [peer]
        for n in sides:
            line += [f"{others[peer, n]['forward']:.0f}", f"{others[peer, n]['back']:.0f}"]
        beside.append(line)
    peers = table(["", *(f"{n}² {way}" for n in sides for way in ("forward", "back"))], beside)
    host = kept["host"]
    later = max(host["first_calls_ms"][1:])
    return f"""# GPUs

*This page is made by `tools/make_docs.py` from the figures that `python benchmarks/gpu.py --save` measured.*

## Use

An array that is on a GPU is transformed there: by the same functions, on the stream its library works on, into new arrays of
the same library. Nothing is copied to the host, and nothing waits but for one case: JAX does not tell its stream, so its
input is waited for.

```text
x = torch.randn(4096, 4096, device="cuda")           # or CuPy, JAX, Numba, PyOpenCL, anything with
coeffs = undula.wavedec2(x, "bior4.4", level=5)      # __cuda_array_interface__
back = undula.waverec2(coeffs, "bior4.4")
```

A NumPy array goes to a device when asked, and its results come back: `undula.wavedec2(image, "bior4.4", backend="cuda")` or
`backend="opencl"`. The [extra](install.md) `cuda` brings what NVIDIA's GPUs need besides their driver, `opencl` what
all others need besides theirs; `pip install pocl-binary-distribution` is a driver that runs OpenCL on the CPU.

- **dtypes.** float32, float64, complex64 and complex128 stay. float16 stays, and is calculated in float32. uint8, uint16 and
  int16 are read as they are and become float32. Other integers become float64.
- **Views** of any strides are read where they are if their rows are in one piece, and are gathered on the device if not.
- **Results** go to arrays of yours with `out=`, as on the CPU; on the device their rows have to be in one piece.
- **Integers** of up to 32 bits are lifted exactly, with the bits of the CPU ([integers](integers.md)). Those on a device are
  not looked at, since the caller would have to wait: what their dtype alone does not prove to fit is refused, unless you give
  your word with `dtype=`.
- **Plans.** `undula.Plan(shape, wavelet, backend="cuda")` keeps its memory between runs, and what it runs again on the same
  arrays is one CUDA graph. `plan.source` is the text of its kernels. `tune=True` measures a few ways to lay out the work and
  remembers the fastest for that device. `plan.frames(arrays)` transforms a sequence of NumPy arrays, with transfers while others
  are transformed. `square=True` puts zeros around the samples up to a square whose side is a power of two, for the whole
  decomposition.
- **Gradients** are not computed yet: tensors with `requires_grad=True`, and values that JAX traces, are refused. Pass
  `x.detach()`, or call within `torch.no_grad()`; [a guide](guides/gpu-arrays.md#cpu-tensors-and-gradients) shows how to make
  a level differentiable.
- **What is missing** is said: `undula.MissingDeviceError` names the package, the driver or the device, and what to do.
  `OutOfMemoryError` says how much was needed. `KernelError` has the text of the kernel and the compiler's log.

## Strategies and schemes

A *scheme* says what is computed between two barriers ([ten of them](schemes.md)); a *strategy* says where the numbers are
meanwhile. All give the same numbers.

| strategy | how | runs |
|---|---|---|
| `sliding` | one pass; a lane owns a few columns in registers and marches down the rows, neighbours exchange by shuffles | every wavelet |
| `tiled` | one pass; a tile of quads in shared memory, a barrier for each stage | every scheme that fits into a tile |
| `rowcolumn` | an axis at a time; pieces of lines in shared memory | `method="lifting"` or `"filters"` |
| `naive` | an axis at a time; every number from memory, one pair of results for each work item | every wavelet |

By default (`auto`) a level slides, and is laid out in tiles where it is too small to fill the device; `plan.strategy` tells.
`undula.Plan(shape, "cdf97", backend="opencl", scheme="monolithic*")` runs that scheme; what cannot be combined is refused with
what can.

![time of one level by strategy and scheme, beside a copy](images/gpu.png)

Microseconds for one level of 4096², float32, mode symmetric; a copy takes {kept["strategies"][0]["copy"]:.0f}.

{strategies}
## Figures

{kept["machine"]}, {kept["date"]}, undula {kept["undula"]}, PyTorch {kept["torch"]}. All data is on the device; microseconds between two
events of the device, medians; `copy` is a copy of as many bytes in the same run, the floor of one level. float32 unless said
otherwise, CDF 9/7 unless another wavelet is named. `python benchmarks/gpu.py` measures your machine.

{sizes}
A plan that is run again costs the host {host["reused_plan_us"]:.0f} µs; a call on a shape that is new, with its kernels on disk, up to
{later:.0f} ms.

One level of CDF 9/7, mode symmetric, beside PyTorch's packages, microseconds:

{peers}
## How it works

- **One emitter.** What is done along an axis is a *flow*: an operator on two sequences side by side, even and odd samples or low
  and high band, by lifting steps or by filters, forward or back. A strategy prints a kernel that runs flows; CUDA and OpenCL
  are two tables of words. Coefficients are literals, extents and strides arguments, so a kernel serves all shapes.
- **No borders.** A mode is a function that says of which samples a place beyond the ends is made. Groups of lanes that see an end
  of a row look places up once; the loop of all others asks nothing.
- **Every level once.** The approximation between two levels is written once, in padded rows, and read once.
- **Kernels on disk**, under a hash of their text, the architecture and the compiler; written whole or not at all.

- **Small levels start early.** Where a launch is too small to fill the GPU, the next one is started while it ends, and waits for
  what it reads by itself (programmatic dependent launches, from compute capability 9.0 on).

What limits `sliding` today: strips of rows that run side by side are far apart in memory, and short strips read more rows twice.
Haar, which shares no rows, has strips of two rows and runs at the speed of the copy; CDF 9/7 trades one for the other. Levels are
not fused: five levels of an image move a third more bytes than one, eight levels of a signal twice as many. Rows of a few hundred
columns leave lanes without work, which is what batches of small images and the planes of volumes wait for.
"""


def integers_page() -> str:
    kept = json.loads((DOCS.parent / "benchmarks" / "results" / "integers.json").read_text(encoding="utf-8"))
    times = table(
        ["one level", "dtype", "copy", "forward", "back"],
        [
            [row["what"], row["dtype"], *(f"{row[key]:.1f}" for key in ("copy", "forward", "back"))]
            for row in kept["transforms"]
        ],
    )
    colours = table(
        ["1080p RGB, 8 bits, 3 levels", "one call", "planes, then transform", "back"],
        [
            [
                f"{row['color']} + {row['wavelet']}",
                f"{row['one']:.1f}",
                f"{row['mix']:.1f} + {row['lwt']:.1f}",
                f"{row['back']:.1f}",
            ]
            for row in kept["colours"]
        ],
    )
    paper = table(
        ["image", "size", "D4 RMSE", "off", "by up to", "Burt RMSY", "Burt RMSE", "D4, ms", "Burt, ms"],
        [
            [
                row["image"],
                row["size"],
                f"{row['d4_rmse']:.3f}",
                f"{100 * row['d4_off']:.1f} %",
                str(row["d4_most"]),
                f"{row['burt_rmsy']:.3f}",
                f"{row['burt_rmse']:.2f}",
                f"{row['d4_ms']:.1f}",
                f"{row['burt_ms']:.1f}",
            ]
            for row in kept["paper"]
        ],
    )
    gpu = table(
        ["on an NVIDIA H200", "dtype", "copy, µs", "forward, µs", "of the copy", "back, µs", "of the copy"],
        [
            [
                row["what"] + (" (8192²)" if "copy" in row else ""),
                row.get("dtype", "uint8"),
                f"{row['copy']:.0f}" if "copy" in row else "",
                f"{row['forward']:.0f}",
                f"{row['copy'] / row['forward']:.2f}" if "copy" in row else "",
                f"{row['back']:.0f}",
                f"{row['copy'] / row['back']:.2f}" if "copy" in row else "",
            ]
            for row in kept["gpu"]
        ],
    )
    grown = []
    for name in ("haar", "cdf53", "dd137", "burt57", "db2", "cdf97"):
        own = undula.Wavelet(name)
        bounds = [growth((own, own), ("symmetric",) * 2, (512, 512), level) for level in (1, 3, 5)]
        fits = [next(b for b in (16, 32, 64) if bounds[1].fits(most, b)) for most in (255, 65535)]
        grown.append([name, *(f"{b.gains[0]:.1f}" for b in bounds), *(f"int{bits}" for bits in fits)])
    grows = table(
        ["wavelet", "1 level", "3 levels", "5 levels", "8 bits, 3 levels", "16 bits, 3 levels"], grown
    )
    return f"""\
# Integers and colour

## Integers that come back

`lwt lwt2 lwtn` of integers lift in integers: every step adds a rounded sum, so every step can be undone, and the inverse gives
back every bit, whatever the wavelet, the size, the level or the border. Nothing is scaled. Factors are fractions over powers of
two, so that a step is

    target += (Σ whole · other + offset) >> shift

in integers throughout, and the CPU, CUDA and OpenCL compute the same bits, forward and back. Factors that are such fractions (CDF 5/3, DD 13/7,
Haar) are exact; others are rounded to one, as fine as sums of 16-bit numbers in 32 bits allow. CDF 5/3 is the reversible
transform of JPEG 2000: the approximation at level k is what OpenJPEG decodes from a lossless file at `reduce=k`.

**What it is kept in.** How large a number can get is proved before the transform: every number, and every sum on the way to it, is
a sum of samples with known factors, borders included, and the sum of their magnitudes is what the largest sample can be multiplied
with. Rounding adds to that. Here, for images of 512 × 512, the largest number over the largest sample:

{grows}
Results of 8- and 16-bit integers are kept in the smallest of int16, int32 and int64 that holds whatever such samples can lead to,
so the dtype of results depends on the dtype and the shape of the samples, the wavelet, the mode and the level, and on nothing else.
Long wavelets may need int32 for 8 bits. Integers of 32 and 64 bits stay as wide. `dtype="int16"` keeps 11-bit samples of a uint16
image in 16 bits: then the samples are looked at, and an error says what would have fitted.
Coefficients may be changed before the inverse. On the CPU, where they could lead to more than their dtype holds on the way, the
inverse is computed in wider integers; if the samples then do not fit the dtype, that is an error. On devices, what does not fit is
clipped at every step. Devices lift integers of up to 32 bits.

## Colour

`color.forward(image, wavelet, level, color=...)` makes planes of an image of 3 or 4 channels (the fourth, opacity, is kept as it
is) while the first level reads it, and gives `[cA, (cH, cV, cD), …]` with the planes along the first axis. On a GPU the channels
become planes in registers, and channels again where the last level writes them. `color.to_planes` and `color.from_planes` do
the colours alone; `subsample` and `expand` are for chroma.

| space | planes | comes back |
|---|---|---|
| `rct` | integers: ⌊(R + 2G + B)/4⌋, B − G, R − G | bit for bit |
| `apple` | integers: 43/128, 42/128, 43/128 …, rounded | by additions alone, within 1/128 |
| `ict`, `bt601`, `bt709` | float32: luma, differences of blue and red from it, around 0 | rounded to the same integers (8 bits) |

## Fixed point

`undula.fixedpoint` has filter banks whose taps are fractions over a power of two, in 16-bit integers, with the rounding offset:
`d4` and `burt57` as Crandall and Klivington (Apple, 1999) give them, and `shift_rational(wavelet, bits)` for any wavelet, which
keeps constants out of the high band exactly. They tell their `moments`, their `norm`, their matrices for a line (`matrix`,
`matrix_back`) and how far one is from undoing the other (`error`). `color.d4_forward` and `color.burt_forward` are the two
pipelines of that paper. Their errors on photographs that come with scikit-image:

{paper}
(The paper has RMSE from 0.24 to 1.06 for D4 and RMSY from 0.51 to 0.57 for Burt on other images, in 111 + 106 ms and 57 ms at
640 × 480.)

## Figures

{kept["machine"]}, {kept["date"]}, undula {kept["undula"]}; milliseconds, the best of several, 4096² into arrays that exist.
`python benchmarks/integers.py` measures your machine.

{times}
{colours}
{gpu}"""


def filters_page() -> str:
    results = DOCS.parent / "benchmarks" / "results"
    kept = json.loads((results / "denoise.json").read_text(encoding="utf-8"))
    gpu = json.loads((results / "filters_gpu.json").read_text(encoding="utf-8"))
    names = [name for name in kept["quality"][0] if name not in ("image", "sigma")]
    rows: list[list[object]] = []
    for sigma in sorted({row["sigma"] for row in kept["quality"]}):
        some = [row for row in kept["quality"] if row["sigma"] == sigma]
        means = [
            f"{np.mean([row[name]['psnr'] for row in some]):.2f} / {np.mean([row[name]['ssim'] for row in some]):.3f}"
            for name in names
        ]
        rows.append([str(sigma), *means])
    quality = table(["σ", *names], rows)
    each = table(
        ["image", "σ", *names],
        [
            [row["image"], str(row["sigma"]), *(f"{row[name]['psnr']:.2f}" for name in names)]
            for row in kept["quality"]
        ],
    )
    timed = [name for name in names if name != "noisy"]
    times = table(
        ["size", *timed], [[f"{row['n']}²", *(f"{row[name]:.1f}" for name in timed)] for row in kept["times"]]
    )
    frames = table(
        ["size", "a plan", "`Pipeline.frames`"],
        [[f"{row['n']}²", f"{row['plan']:.0f}", f"{row['pipeline']:.0f}"] for row in kept["frames"]],
    )
    on_gpu = table(
        ["size", "dtype", "copy, µs", "analysis + soft + synthesis, µs", "times the copy", "frames/s"],
        [
            [
                f"{row['n']}²",
                row["dtype"],
                f"{row['copy']:.0f}",
                f"{row['whole']:.0f}",
                f"{row['whole'] / row['copy']:.2f}",
                f"{row['fps']:,.0f}",
            ]
            for row in gpu["frames"]
        ],
    )
    speckle_rows: list[list[object]] = []
    for row in kept["speckle"]:
        for what, found in row.items():
            if what != "image":
                speckle_rows.append(
                    [
                        row["image"],
                        what,
                        f"{found['looks']:.0f}",
                        f"{found['edges']:.2f}",
                        f"{found['psnr']:.1f}",
                        f"{found['mean']:.3f}",
                    ]
                )
    speckled = table(["image", "", "equivalent looks", "edges", "PSNR", "mean kept"], speckle_rows)
    return f"""\
# Filters

```python
import undula

clean = undula.denoise(image)  # no argument needed; the same shape, dtype, device
clean = undula.denoise(image, 12, strength=1.2)  # noise of 12 grey levels, a little more taken out
clean = undula.despeckle(scan, kind="intensity")  # multiplied noise: ultrasound, radar, OCT
sharp = undula.sharpen(image)
clear = undula.enhance(xray)  # weak structures at all scales
```

Integers come back as the same integers, rounded and cut; floats as floats. Integers of 32 and 64 bits are filtered in float64,
so those beyond 2⁵³ lose their last digits. A third axis of 3 or 4 is taken for colours; say
`channel_axis=None` where it is not, or which axis has them. Colour images are filtered as brightness and colour
differences, opacity is left alone. What is no number, or not valid (`mask=` is True where samples are), stays as it is and out of
all statistics. Volumes are
arrays with three axes; batches say which axes are those of an image (`axes=(-2, -1)`). Arrays of PyTorch, CuPy and JAX on a GPU
are filtered there, and nothing waits for the device. NumPy arrays with `backend="cuda"` or `"opencl"` are transformed on the device,
thresholds included; what looks at statistics or neighbours is done on the host in between.

![noisy, by scikit-image, by Undula](images/denoise.png)

## How noise is told from the rest

| `method` | what it goes by |
|---|---|
| `bivariate` | the coefficients around each one, and its parent at the next level (Şendur and Selesnick): the best |
| `block` | the coefficients around each one |
| `bayes` `sure` `hybrid` | a threshold for each band, from its energy, or where the estimated error is least |
| `universal` `minimax` | a threshold for all, from the size of the image |
| `given` | in pipelines, thresholds by hand: `20`, `[30, 20, 10]` by level, or `[{{"ad": 9, "da": 9, "dd": 12}}, …]` by band (a for low, d for high: down, then along) |

Thresholds are applied by a `rule`: `soft`, `hard`, `garrote`, `firm`, `greater`, `less`. The noise is estimated from the finest
diagonal band (its median magnitude), given as `sigma` (for all, for each channel, for each sample), or found in regions
(`regions=64`: by squares of 64 samples). Every wavelet spreads noise over its bands in its own way, which is taken into account.

**All shifts.** Decimated transforms leave artefacts that depend on where an image begins. `invariant=True` does every level for
all shifts by one sample, which is the undecimated transform at the price of four single levels each (thresholds and `block` then
do not depend on where an image begins; `bivariate` still does a little, by the parents it looks at); `invariant=2`, as usual in
`denoise`, has them for the two finest levels, which is most of the gain. `undula.filters.cycle_spin` does the same for any function.

## Pipelines

```python
from undula.filters import Pipeline, Shrink, Unsharp, Blur, Laplace, Gain, Contrast

pipeline = Pipeline(
    "cdf97",
    3,
    [
        Shrink("given", "soft", [30, 20, 10]),  # by level, finest first
        Unsharp(sigma=1, amount=0.5, at="last"),
    ],
)
filtered = pipeline(image)
for frame in pipeline.frames(video):  # several at once, in their order
    ...
pipeline.save("ultrasound.json")  # Pipeline.load("ultrasound.json") is equal to it
analysis, filtered_analysis, synthesis = pipeline.views(image)
```

A stage stands at one of four places: `image`, `approximation` (of a level, before it is decomposed further), `last` (the
approximation that is left), `details` (of all levels or some). `Gain` multiplies details by level, `Contrast` brings out weak ones.
For frames on a GPU, `Plan.inverse(coeffs, rule="soft", limits=...)` applies thresholds while it reads.

![analysis, filtered analysis, synthesis](images/views.png)

## Speckle

Coherent waves multiply an image with noise. Its logarithm is filtered, and on the way back the mean of the noise is taken out
again, or images would come out darker. Zeros have no logarithm, and stay zeros. The screen of an ultrasound machine shows
logarithms already: `kind="log"`.

![speckle, denoised and despeckled](images/speckle.png)

![ultrasound before and after](images/ultrasound.png)

Simulated speckle of four looks; `edges` is how the Laplacian of the result goes with that of the original (1 is all of it):

{speckled}
## Soft and hard

Too much hard thresholding shows the wavelets themselves; with thresholds by level, soft ones are smoother and hard ones keep
more. Coefficients of 16 bits make no difference to see.

![thresholds](images/thresholds.png)

## Figures

{kept["machine"]}, {kept["date"]}, undula {kept["undula"]}, scikit-image {kept["skimage"]}; `python benchmarks/denoise.py` measures
yours. Means over ten photographs of PSNR (dB) and SSIM; all methods are told σ:

{quality}
Milliseconds, best of several:

{times}
Three levels of CDF 9/7, soft thresholds and back, frames in a second (Nielsen's GPU of 2007: 975 at 512², 94 at 2048²):

{frames}
The same on an {gpu["machine"]}, {gpu["date"]}, with frames on the device (`python benchmarks/filters_gpu.py`): thresholds are applied
while the way back reads its details, and cost nothing.

{on_gpu}
<details><summary>PSNR of every photograph</summary>

{each}
</details>
"""


def studio_page() -> str:
    """The page as it is, with the figures that were measured last."""
    results = DOCS.parent / "benchmarks" / "results"
    kept, soak = (
        json.loads((results / f"studio{n}.json").read_text(encoding="utf-8")) for n in ("", "-soak-clip")
    )
    names = ("drawn, median", "drawn, 95 %", "on the screen, median", "on the screen, 95 %", "exact, median")
    rows: list[list[object]] = [
        [what, *(f"{own[name]:.0f}" for name in names)] for what, own in kept["slider"].items()
    ]
    slider = table(["milliseconds", *names], rows)
    plays: list[list[object]] = [
        [speed, f"{own['shown in the page']:.1f}", f"{own['least']:.1f}"]
        for speed, own in kept["playback"].items()
    ]
    playback = table(["speed", "frames in a second, shown in the page", "least"], plays)
    long = soak["soak"]
    minutes = long["pictures"] / 25 / 60
    figures = f"""
From a key that moves the strength of a three-level shrinkage to the new picture, measured in the browser ({kept["machine"]}, with
Chromium drawing on the same cores, without a GPU; {kept["date"]}):

{slider}

A video of 1280 × 720 in colour, three-level shrinkage, CDF 9/7, at its own rate of 25 and as fast as it goes:

{playback}

While {long["pictures"]:,} frames were played in a loop, {minutes:.0f} minutes at 25 in a second, the server and its decoder had
between {long["least, MB"]:.1f} and {long["most, MB"]:.1f} MB; in the last third {100 * long["growth"]:+.1f} % of the first.
`python benchmarks/studio.py` measures all that.

"""
    text = (DOCS / "studio.md").read_text(encoding="utf-8")
    begin, end = "<!-- figures -->\n", "<!-- end of figures -->"
    return text[: text.index(begin) + len(begin)] + figures + text[text.index(end) :]


def readme() -> str:
    """The first page as it is, with Undula beside its peers as they were measured last."""
    results = DOCS.parent / "benchmarks" / "results"
    cpu, gpu, denoising = (
        json.loads((results / f"{n}.json").read_text(encoding="utf-8")) for n in ("cpu", "gpu", "denoise")
    )
    names = ["PyWavelets", "ndwt", "ptwt", "pytorch_wavelets", "scikit-image"]

    def line(what: str, ours: float, unit: str, others: dict[str, float]) -> list[object]:
        ratios = [f"{others[name] / ours:.0f} ×" if name in others else "" for name in names]
        return [what, f"{ours:.3g} {unit}", *ratios]

    def measured(shape: list[int], levels: int, back: bool = False) -> dict[str, float]:
        wanted = {"shape": shape, "wavelet": "CDF 9/7", "levels": levels}
        return next(
            one["times"]
            for one in cpu["results"]
            if wanted.items() <= one.items() and one.get("back", False) == back and "threads" not in one
        )

    rows = []
    for what, shape, levels, back in (
        ("512², one level", [512, 512], 1, False),
        ("2048², one level", [2048, 2048], 1, False),
        ("4096², five levels", [4096, 4096], 5, False),
        ("4096², five levels, back", [4096, 4096], 5, True),
        ("1080p colour, three levels", [1080, 1920, 3], 3, False),
        ("256³, one level", [256, 256, 256], 1, False),
    ):
        times = measured(shape, levels, back)
        rows.append(line(f"two cores: {what}", times["undula, out="], "ms", times))
    for what, way in (("", "forward"), (", back", "back")):
        times = {one["peer"]: one[way] / 1e3 for one in gpu["peers"] if one["n"] == 8192}
        rows.append(line(f"H200: 8192², one level{what}", times["undula"], "ms", times))
    times = next(one for one in denoising["times"] if one["n"] == 2048)
    rows.append(
        line(
            "two cores: `denoise_wavelet` (Haar), 2048²",
            times["undula Bayes"],
            "ms",
            {"scikit-image": times["skimage Bayes"]},
        )
    )
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    begin, end = "<!-- peers -->\n", "<!-- end of peers -->"
    made = "\n" + table(["CDF 9/7, float32", "Undula", *names], rows) + "\n"
    return text[: text.index(begin) + len(begin)] + made + text[text.index(end) :]


def pages() -> Iterator[tuple[str, str]]:
    yield "filters.md", filters_page()
    yield "integers.md", integers_page()
    yield "schemes.md", schemes_page()
    yield "lifting.md", lifting_page()
    yield "speed.md", speed_page()
    yield "gpu.md", gpu_page()
    yield "studio.md", studio_page()
    yield "../README.md", readme()


def write_pictures() -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    import skimage.data

    import pictures

    images = DOCS / "images"
    images.mkdir(exist_ok=True)
    pictures.scheme_chart(images / "schemes.png")
    names = "haar db2 db8 sym4 coif2 rbio4.4 bior3.5 dmey cdf53 cdf97 dd137 burt57".split()
    pictures.wavelet_gallery(names, images / "wavelets.png")
    kept = json.loads((DOCS.parent / "benchmarks" / "results" / "gpu.json").read_text(encoding="utf-8"))
    pictures.strategy_chart(kept["strategies"], kept["machine"], images / "gpu.png")
    pictures.filter_gallery(images)
    photo = skimage.data.astronaut() / 255
    coeffs = reference.lwt2(photo, "cdf97", 3, axes=(0, 1))
    both = np.concatenate([photo, np.ones((photo.shape[0], 12, 3)), pictures.pyramid(coeffs)], axis=1)
    pictures.caption(both, []).save(images / "pyramid.jpg", quality=88)


if __name__ == "__main__":
    if "--check" in sys.argv:
        # Measured numbers differ in their last digit between machines; counts and matrices do not.
        for name, made in (
            ("schemes.md", schemes_page()),
            ("speed.md", speed_page()),
            ("gpu.md", gpu_page()),
            ("filters.md", filters_page()),
            ("studio.md", studio_page()),
            ("../README.md", readme()),
        ):
            if (DOCS / name).read_text(encoding="utf-8") != made:
                sys.exit(f"docs/{name} is out of date: run make pages")
        sys.exit(0)
    for name, text in pages():
        (DOCS / name).write_text(text, encoding="utf-8")
    write_pictures()
    print(f"wrote {DOCS}")
