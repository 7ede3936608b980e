"""Broken files through the command line: none may hang, crash, or take all memory.

    python tools/fuzz.py 2000      so many files: bits flipped, cut, extended, parts put elsewhere

Every file goes through ``undula info`` and ``undula denoise`` in a process that is watched: no traceback, no
more than ten seconds, no more than 2 GB.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

SECONDS, BYTES = 10, 2 << 30


def samples(folder: Path) -> dict[str, bytes]:
    """Small files of every kind, by name."""
    from pydicom import examples

    from undula import io
    from undula.cli import main

    if not folder.exists():
        folder.mkdir(parents=True)
        image = np.random.default_rng(0).integers(0, 256, (40, 48, 3)).astype("u1")
        for suffix in ("png", "jpg", "tif", "bmp", "webp", "jp2", "npy", "npz"):
            io.write(folder / f"x.{suffix}", image)
        io.write(folder / "grey.gif", image[..., 0])
        io.write(folder / "deep.png", image.astype("u2") * 250)
        io.write(folder / "pages.tif", io.Picture(np.stack([image, image[::-1]]), pages=True))
        (folder / "x.dcm").write_bytes(Path(examples.get_path("ct")).read_bytes())
        (folder / "rgb.dcm").write_bytes(Path(examples.get_path("rgb_color")).read_bytes()[:60_000])
        for suffix in ("mp4", "mkv"):
            main(["example", str(folder / f"x.{suffix}")])
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def mutated(whole: bytes, rng: np.random.Generator) -> bytes:
    """A file with something wrong."""
    data = bytearray(whole)
    for _ in range(int(rng.integers(1, 4))):
        what = int(rng.integers(0, 6))
        if what == 0 and data:  # bits flipped, most of them near the start
            for _ in range(int(rng.integers(1, 12))):
                place = int(min(rng.integers(0, len(data)), rng.integers(0, len(data))))
                data[place] ^= 1 << int(rng.integers(0, 8))
        elif what == 1:  # cut
            data = data[: int(rng.integers(0, len(data) + 1))]
        elif what == 2:  # extended
            data += rng.integers(0, 256, int(rng.integers(1, 4096))).astype("u1").tobytes()
        elif what == 3 and len(data) > 8:  # a number that is huge
            place = int(rng.integers(0, min(len(data) - 4, 600)))
            data[place : place + 4] = b"\xff\xff\xff\x7f"
        elif what == 4 and len(data) > 64:  # a part somewhere else
            start, end = sorted(int(n) for n in rng.integers(0, len(data), 2))
            place = int(rng.integers(0, len(data)))
            data[place:place] = data[start : min(end, start + 1000)]
        elif data:  # zeros
            place = int(rng.integers(0, len(data)))
            data[place : place + int(rng.integers(1, 200))] = b"\0" * 8
    return bytes(data)


def limited() -> None:
    """In the process that is watched; threads reserve far more addresses than memory."""
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS * 2, SECONDS * 2))


WORKER = """
import sys, resource, time, traceback
from undula.cli import main
for line in sys.stdin:
    path, out = line.rstrip("\\n").split("\\t")
    begin = time.perf_counter()
    codes = []
    for words in (["info", path], ["denoise", path, out, "--quiet", "-y", "--frames", "10"]):
        try:
            codes.append(main(words))
        except BaseException:
            traceback.print_exc()
            codes.append(99)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print("done", *codes, round(time.perf_counter() - begin, 2), peak, flush=True)
"""


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    rng = np.random.default_rng(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    found: Counter[str] = Counter()
    slowest, largest, bad = 0.0, 0, []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        files = list(samples(folder / "samples").items())
        worker: subprocess.Popen[str] | None = None
        for number in range(count):
            name, whole = files[number % len(files)]
            path = folder / f"broken{Path(name).suffix}"
            path.write_bytes(mutated(whole, rng))
            if worker is None or number % 100 == 0:
                if worker is not None:
                    worker.kill()
                worker = subprocess.Popen(
                    [sys.executable, "-c", WORKER],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=(folder / "log").open("w"),
                    text=True,
                )
            assert worker.stdin is not None
            assert worker.stdout is not None
            worker.stdin.write(f"{path}\t{folder / f'out{path.suffix}'}\n")
            worker.stdin.flush()
            answer = ""
            while not answer.startswith("done"):
                answer = worker.stdout.readline()
                if not answer:
                    break
            if not answer:
                bad.append((number, name, "the process ended", (folder / "log").read_text()[-300:]))
                (Path.cwd() / f"fuzz-{number}{path.suffix}").write_bytes(path.read_bytes())
                worker = None
                continue
            _, *codes, seconds, peak = answer.split()
            slowest, largest = max(slowest, float(seconds)), max(largest, int(peak))
            found[" ".join(codes)] += 1
            if not set(codes) <= {"0", "1"} or float(seconds) > SECONDS or int(peak) > BYTES:
                bad.append((number, name, answer.strip(), (folder / "log").read_text()[-600:]))
        if worker is not None:
            worker.kill()
    print(f"{count} files: {dict(found)}; slowest {slowest:.1f} s, largest {largest / 2**20:.0f} MB")
    for each in bad:
        print(*each)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
