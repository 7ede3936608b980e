"""Fuzz the command line with damaged files: none may hang, crash or exhaust the memory.

    python tools/fuzz.py 5000              test 5000 files: flipped bits, truncated, extended, moved parts
    python tools/fuzz.py 300 --only dcm    test formats whose names contain a word

Every file is passed to ``undula info`` and ``undula denoise`` (coefficients: ``undula inverse``) in a worker
process. It must cause no traceback, errors must name a file, and each file may take at most 4 seconds of CPU
time and 1.5 GB. Some images are also filtered in a folder with another one, which must be written, and the
report must list both. Files that fail are saved in the folder ``fuzz-failures``.
"""

from __future__ import annotations

import argparse
import io as bytes_io
import os
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from undula.io.files import READ_ONLY_VIDEOS

MAX_SECONDS, MAX_BYTES = 4.0, 1_500_000_000  # CPU time and memory for one file.
TIMEOUT_S = 60.0  # Elapsed time after which a worker counts as hung.
FILES_PER_WORKER = 400
FOLDER_EVERY = 5  # How often an image is also filtered in a folder.

IMAGE = np.random.default_rng(0).integers(0, 256, (40, 48, 3)).astype("u1")
GREY = IMAGE[..., 0]


# --- valid files ----------------------------------------------------------------------------------


def _pillow(mode: str, **options: Any) -> Callable[[Path], None]:
    from PIL import Image

    def write(path: Path) -> None:
        if options.get("save_all"):
            options["append_images"] = [Image.fromarray(IMAGE[::-1]), Image.fromarray(IMAGE[:, ::-1])]
        Image.fromarray(IMAGE).convert(mode).save(path, **options)

    return write


def _tiff(channels: int, kind: str = "u1", **options: Any) -> Callable[[Path], None]:
    import tifffile

    def write(path: Path) -> None:
        planes = np.stack([np.roll(GREY, 7 * k, axis=0) for k in range(channels)], axis=-1).astype(kind)
        pixels = planes[..., 0] if channels == 1 else planes
        if options.get("planarconfig") == "separate":
            pixels = np.moveaxis(pixels, -1, 0)
        tifffile.imwrite(path, np.ascontiguousarray(pixels), **{"photometric": "minisblack", **options})

    return write


def _stack(**options: Any) -> Callable[[Path], None]:
    import tifffile

    pages = np.stack([np.roll(GREY, 5 * k, axis=0) for k in range(4)])
    return lambda path: tifffile.imwrite(path, pages, **{"photometric": "minisblack", **options})


def _dicom(bits: int, signed: bool = False, syntax: str = "ExplicitVRLittleEndian", **elements: Any) -> Any:
    import pydicom
    from pydicom import uid

    def write(path: Path) -> None:
        dataset = pydicom.Dataset()
        dataset.file_meta = pydicom.dataset.FileMetaDataset()
        how = getattr(uid, syntax)
        native = uid.ExplicitVRLittleEndian if how.is_encapsulated else how
        dataset.file_meta.TransferSyntaxUID = native
        dataset.SOPClassUID, dataset.SOPInstanceUID = uid.CTImageStorage, uid.generate_uid()
        dataset.Modality, dataset.PatientName, dataset.ImageType = "CT", "Nobody", ["ORIGINAL", "PRIMARY"]
        dataset.WindowCenter, dataset.WindowWidth = 400, 900
        dataset.Rows, dataset.Columns, dataset.SamplesPerPixel = *GREY.shape, 1
        dataset.PhotometricInterpretation, dataset.PixelRepresentation = "MONOCHROME2", int(signed)
        dataset.BitsAllocated = 8 if bits <= 8 else 16
        dataset.BitsStored, dataset.HighBit = bits, bits - 1
        for name, value in elements.items():
            setattr(dataset, name, value)
        values = (GREY.astype("i4") << bits >> 8) - ((1 << bits - 1) if signed else 0)
        order = "<" if native.is_little_endian else ">"
        cells = values.astype(f"{order}{'i' if signed else 'u'}{dataset.BitsAllocated // 8}")
        frames = int(dataset.get("NumberOfFrames", 1))
        dataset.add_new("PixelData", "OW", cells.tobytes() * frames)
        if syntax == "RLELossless":
            dataset.compress(how)
        elif how.is_encapsulated:
            _compressed(dataset, how, "JPEG2000" if "2000" in syntax else "JPEG")
        dataset.save_as(path, enforce_file_format=True)

    return write


def _compressed(dataset: Any, syntax: Any, kind: str) -> None:
    import pydicom
    from PIL import Image

    coded = bytes_io.BytesIO()
    Image.fromarray(GREY).save(coded, kind, **({"no_jp2": True} if kind == "JPEG2000" else {}))
    dataset.PixelData = pydicom.encaps.encapsulate([coded.getvalue()])
    dataset["PixelData"].VR = "OB"
    dataset["PixelData"].is_undefined_length = True
    dataset.file_meta.TransferSyntaxUID = syntax


def _example(name: str) -> Callable[[Path], None]:
    from pydicom import examples

    return lambda path: path.write_bytes(Path(examples.get_path(name)).read_bytes()) and None


def _colors(path: Path) -> None:
    import pydicom

    _dicom(8)(path)
    dataset = pydicom.dcmread(path)
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation, dataset.PlanarConfiguration = 3, "RGB", 0
    dataset.PixelData = IMAGE.tobytes()
    dataset.save_as(path)


def _clip(codec: str, pixels: str = "yuv420p", sound: str | None = None) -> Callable[[Path], None]:
    import av

    def write(path: Path) -> None:
        with av.open(str(path), "w", format={".3gp": "3gp"}.get(path.suffix)) as container:
            stream = container.add_stream(codec, rate=25)
            stream.width, stream.height, stream.pix_fmt = 64, 48, pixels
            if codec == "libx265":
                stream.options = {"x265-params": "log-level=none"}
            audio = container.add_stream(sound, rate=44100) if sound else None
            for number in range(8):
                moved = np.roll(np.pad(IMAGE, ((4, 4), (8, 8), (0, 0))), 3 * number, axis=1)
                frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(moved), format="rgb24")
                container.mux(stream.encode(frame.reformat(format=pixels)))
            container.mux(stream.encode(None))
            if audio is not None:
                tone = av.AudioFrame.from_ndarray(np.zeros((1, 2048), "i2"), format="s16", layout="mono")
                tone.sample_rate = 44100
                for resampled in av.AudioResampler(audio.format.name, "stereo", 44100).resample(tone):
                    container.mux(audio.encode(resampled))
                container.mux(audio.encode(None))

    return write


def _coefficients(path: Path) -> None:
    from undula import io
    from undula.cli import main

    picture = path.with_name("picture-for-coefficients.png")
    io.write(picture, GREY)
    main(["transform", str(picture), str(path), "--level", "2"])
    picture.unlink()


def _array(write: Callable[..., Any], pixels: Any) -> Callable[[Path], None]:
    return lambda path: write(path, pixels)


def _bare(path: Path) -> None:
    import pydicom

    _dicom(12)(path)
    dataset = pydicom.dcmread(path)
    dataset.preamble, dataset.file_meta = None, pydicom.dataset.FileMetaDataset()
    pydicom.dcmwrite(path, dataset, implicit_vr=True, little_endian=True)


# What a reader of raw files needs: the Bayer filter, the version of DNG, and the colours of the camera.
DNG_TAGS = [
    (33421, 3, 2, (2, 2), True),
    (33422, 1, 4, bytes([0, 1, 1, 2]), True),
    (50706, 1, 4, bytes([1, 4, 0, 0]), True),
    (50708, 2, 0, "Maker Model", True),
    (50721, 10, 9, (1, 1, 0, 1, 0, 1, 0, 1, 1, 1, 0, 1, 0, 1, 0, 1, 1, 1), True),
    (50778, 3, 1, 21, True),
]


def _photo(path: Path) -> None:
    """Write a photograph with all kinds of metadata."""
    from PIL import Image

    from undula import io
    from undula.io.raster import save

    exif = Image.Exif()
    exif[271], exif[274], exif[282], exif[283] = "Maker", 6, 300.0, 300.0
    exif.get_ifd(34665).update({34855: 400, 37500: b"notes of the maker"})
    exif.get_ifd(34853).update({1: "N", 2: (47.0, 4.0, 3.0)})
    texts = {"Comment": "a comment", "Title": "Öl"}
    iptc = b"\x1c\x02\x5a\0\x04Graz"
    picture = io.Picture(IMAGE, exif=exif.tobytes(), orientation=6, xmp=b"<x/>", iptc=iptc, texts=texts)
    save(path, picture)


def seeds() -> dict[str, Callable[[Path], None]]:
    """Who writes what, by name; the suffix is that of a usual file."""
    from undula import io

    deep = IMAGE.astype("u2") * 250
    return {
        "grey.png": _pillow("L"),
        "palette.png": _pillow("P"),
        "opaque.png": _pillow("RGBA"),
        "deep.png": _array(io.write, deep),
        "frames.png": _pillow("RGB", save_all=True),
        "x.jpg": _pillow("RGB", progressive=True),
        "cmyk.jpg": _pillow("CMYK"),
        "several.jpg": _pillow("RGB", format="MPO", save_all=True),
        "x.bmp": _pillow("RGB"),
        "palette.bmp": _pillow("P"),
        "x.gif": _pillow("P"),
        "frames.gif": _pillow("P", save_all=True),
        "x.webp": _pillow("RGB"),
        "lossless.webp": _pillow("RGBA", lossless=True),
        "frames.webp": _pillow("RGB", save_all=True),
        "photo.heic": _array(io.write, IMAGE),
        "photo-deep.heic": _array(io.write, deep),
        "photo.avif": _pillow("RGBA"),
        "photo.jpg": _photo,
        "photo.png": _photo,
        "photo.tif": _photo,
        "photo.webp": _photo,
        "photo.dng": _tiff(1, "u2", photometric=32803, extratags=DNG_TAGS),
        "x.jp2": _pillow("RGB"),
        "x.j2k": _pillow("RGB", no_jp2=True),
        "deep.jp2": _array(io.write, deep[..., 0]),
        "x.tif": _array(io.write, IMAGE),
        "pages.tif": _array(io.write, io.Picture(np.stack([IMAGE, IMAGE[::-1]]), pages=True)),
        "channels2.tif": _tiff(2),
        "alpha.tif": _tiff(2, extrasamples=["unassalpha"]),
        "channels3.tif": _tiff(3, "u2", compression="zlib"),
        "channels4.tif": _tiff(4, photometric="rgb", extrasamples=["unspecified"]),
        "channels5.tif": _tiff(5, "f4", planarconfig="separate"),
        "tiles.tif": _tiff(3, tile=(16, 16), bigtiff=True),
        "stack.tif": _stack(metadata=None, compression="zlib"),
        "stack.ome.tif": _stack(metadata={"axes": "ZYX"}),
        "big.ome.tif": _stack(metadata={"axes": "ZYX"}, bigtiff=True, compression="zlib"),
        "imagej.tif": _stack(imagej=True, metadata={"axes": "ZYX"}),
        "packbits.tif": _pillow("RGB", compression="packbits"),
        "lzw.tif": _pillow("RGB", compression="tiff_lzw"),
        "jpeg.tif": _pillow("RGB", compression="jpeg"),
        "fax.tif": _pillow("1", compression="group4"),
        "lab.tif": _pillow("LAB"),
        "x.npy": _array(np.save, IMAGE),
        "x.npz": _array(np.savez_compressed, IMAGE),
        "coefficients.npz": _coefficients,
        "bits12.dcm": _dicom(12),
        "signed12.dcm": _dicom(12, True, PixelPaddingValue=-2000, SmallestImagePixelValue=-2048),
        "implicit.dcm": _dicom(10, syntax="ImplicitVRLittleEndian"),
        "big.dcm": _dicom(12, syntax="ExplicitVRBigEndian"),
        "deflated.dcm": _dicom(12, syntax="DeflatedExplicitVRLittleEndian"),
        "rle.dcm": _dicom(12, syntax="RLELossless"),
        "rle8.dcm": _dicom(8, syntax="RLELossless"),
        "rle-clip.dcm": _dicom(12, syntax="RLELossless", NumberOfFrames=3),
        "jpeg.dcm": _dicom(8, syntax="JPEGBaseline8Bit"),
        "jpeg2000.dcm": _dicom(8, syntax="JPEG2000Lossless"),
        "ct.dcm": _example("ct"),
        "rgb.dcm": _colors,
        "IM000001": _dicom(16),
        "bare": _bare,
        "x.mp4": _clip("libx264", sound="aac"),
        "hevc.mp4": _clip("libx265", "yuv420p10le"),
        "av1.mp4": _clip("libsvtav1"),
        "ffv1.mkv": _clip("ffv1", "yuv444p"),
        "x.mkv": _clip("libx264", sound="pcm_s16le"),
        "x.webm": _clip("libvpx-vp9"),
        "vp8.webm": _clip("libvpx"),
        "mpeg4.avi": _clip("mpeg4"),
        "mjpeg.avi": _clip("mjpeg", "yuvj420p"),
        "huffyuv.avi": _clip("huffyuv", "yuv422p"),
        "raw.avi": _clip("rawvideo"),
        "prores.mov": _clip("prores_ks", "yuv422p10le"),
        "qtrle.mov": _clip("qtrle", "rgb24"),
        "x.m4v": _clip("mpeg4"),
        "stream.ts": _clip("libx264", sound="aac"),
        "stream.mts": _clip("libx264", sound="ac3"),
        "stream.mpg": _clip("mpeg2video", sound="mp2"),
        "stream.mxf": _clip("mpeg2video"),
        "stream.y4m": _clip("rawvideo"),
        "x.wmv": _clip("wmv2"),
        "x.flv": _clip("flv"),
        "x.ogv": _clip("libvpx"),
        "x.3gp": _clip("libx264"),
        "x.nut": _clip("mpeg4"),
    }


def samples(folder: Path) -> dict[str, bytes]:
    """Small files of every kind, by name; those that this machine has an encoder for."""
    import av

    from undula.io.encoder import ordinary_threads

    os.environ.setdefault("SVT_LOG", "0")  # (or its encoder talks)
    if not folder.exists():
        folder.mkdir(parents=True)
        for name, write in seeds().items():
            try:
                with ordinary_threads():  # (SVT-AV1 makes them real-time ones, and workers inherit that)
                    write(folder / name)
            except (av.codec.codec.UnknownCodecError, av.error.FFmpegError) as error:
                print(f"no {name}: {error}", file=sys.stderr)
                (folder / name).unlink(missing_ok=True)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


# --- damaged files --------------------------------------------------------------------------------


def mutated(original: bytes, rng: np.random.Generator) -> bytes:
    """Damage a file in one to three random ways."""
    data = bytearray(original)
    for _ in range(int(rng.integers(1, 4))):
        what = int(rng.integers(0, 7))
        if what == 0 and data:  # Flip bits, most of them near the start.
            for _ in range(int(rng.integers(1, 12))):
                place = int(min(rng.integers(0, len(data)), rng.integers(0, len(data))))
                data[place] ^= 1 << int(rng.integers(0, 8))
        elif what == 1:  # Truncate.
            data = data[: int(rng.integers(0, len(data) + 1))]
        elif what == 2:  # Extend.
            data += rng.integers(0, 256, int(rng.integers(1, 4096))).astype("u1").tobytes()
        elif what == 3 and len(data) > 8:  # Write a huge number.
            place = int(rng.integers(0, min(len(data) - 4, 600)))
            data[place : place + 4] = b"\xff\xff\xff\x7f"
        elif what == 4 and len(data) > 64:  # Copy a part to another place.
            start, end = sorted(int(n) for n in rng.integers(0, len(data), 2))
            place = int(rng.integers(0, len(data)))
            data[place:place] = data[start : min(end, start + 1000)]
        elif what == 5 and len(data) > 8:  # Write a number that is a likely limit.
            number = int(rng.choice([0, 1, 2, 7, 255, 256, 4096, 32767, 32768, 65535]))
            place = int(rng.integers(0, min(len(data) - 2, 800)))
            struct.pack_into(str(rng.choice(["<H", ">H"])), data, place, number)
        elif data:  # Write zeros.
            place = int(rng.integers(0, len(data)))
            data[place : place + int(rng.integers(1, 200))] = b"\0" * 8
    return bytes(data)


# Prints for each file: exit statuses, CPU seconds, peak memory, and a description of the failure.
WORKER = """
import contextlib, faulthandler, io, json, resource, shutil, signal, sys, time, traceback
from pathlib import Path
import numpy as np
import undula
from undula.cli import main
from undula.io.files import READ_ONLY_VIDEOS, VIDEOS

IS_VIDEO = {*VIDEOS, *READ_ONLY_VIDEOS}

faulthandler.enable()
faulthandler.register(signal.SIGUSR1)  # Prints where it hangs.

def begin_peak():
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")

def peak():
    try:
        line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

number = 0
for line in sys.stdin:
    path, out, coefficients = line.rstrip("\\n").split("\\t")
    begin, codes, wrong = time.process_time(), [], ""
    begin_peak()
    frames = ["--frames", "10"] if Path(path).suffix in IS_VIDEO else []
    filtered = ["inverse", path, out] if coefficients else ["denoise", path, out, "--quiet", *frames]
    commands = [["info", path], filtered]
    batch = Path(path).parent / "batch"
    if number % FOLDER_EVERY == 0 and not coefficients and not frames:
        batch.mkdir()
        shutil.copy(path, batch / f"b{''.join(Path(path).suffixes)}")
        undula.io.write(batch / "a.png", np.zeros((8, 8), "u1"))
        commands.append(["denoise", str(batch), "-o", str(batch / "out"), "--json"])
    number += 1
    for words in commands:
        errors, output = io.StringIO(), io.StringIO()
        with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(output):
            try:
                codes.append(main(words))
            except BaseException:
                traceback.print_exc()
                codes.append(99)
        text = errors.getvalue()
        if words[1] == str(batch):
            code = codes.pop()
            report = json.loads(output.getvalue())
            entries = [*report["files"], *report["errors"], *report["left out"]]
            if code not in (0, 4) or len(entries) != 2 or not (batch / "out/a.png").exists():
                wrong += f"batch: {code} {report} {text[-1500:]}"
        elif codes[-1] not in (0, 1) or "Traceback" in text:
            wrong += text[-1500:]
        elif codes[-1] == 1 and not any(Path(each).name in text for each in (path, out)):
            wrong += "does not name the file: " + text
    Path(out).unlink(missing_ok=True)
    shutil.rmtree(batch, ignore_errors=True)
    seconds = time.process_time() - begin
    print("done", *codes, round(seconds, 2), peak(), repr(wrong), sep="\\t", flush=True)
"""


class Worker:
    """A process that tests files."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "log"
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"FOLDER_EVERY = {FOLDER_EVERY}\n{WORKER}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log.open("w"),
            text=True,
        )

    def run(self, path: Path, coefficients: bool) -> list[str]:
        """Test a file; returns the fields of the report, or an empty list if the process hangs or ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        suffixes = {".npz": ".png"} if coefficients else dict.fromkeys(READ_ONLY_VIDEOS, ".mkv")
        out = path.with_name(f"out{suffixes.get(path.suffix, ''.join(path.suffixes))}")
        self.process.stdin.write(f"{path}\t{out}\t{coefficients or ''}\n")
        self.process.stdin.flush()
        if not select.select([self.process.stdout], [], [], TIMEOUT_S)[0]:
            return []
        return self.process.stdout.readline().rstrip("\n").split("\t")[1:]

    def last_words(self) -> str:
        """Describe how the process ended, or where it hangs."""
        ended = self.process.poll()
        if ended is None:
            self.process.send_signal(signal.SIGUSR1)
            time.sleep(2)
        return f"{'hung' if ended is None else f'ended with {ended}'}: {self.log.read_text()[-3000:]}"

    def close(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.wait()


def main() -> None:
    """Create files, test them and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("count", nargs="?", type=int, default=5000)
    parser.add_argument("seed", nargs="?", type=int, default=0)
    parser.add_argument("--only", default="", help="test only formats whose names contain this")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="folder for files that fail")
    arguments = parser.parse_args()
    statuses: Counter[str] = Counter()
    slowest, largest = (0.0, ""), (0, "")
    bad, refused = [], []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        files = [(n, w) for n, w in samples(folder / "samples").items() if arguments.only in n]
        worker: Worker | None = None
        for number in range(-len(files), arguments.count):  # Start with each undamaged file once.
            name, original = files[number % len(files)]
            path = folder / f"broken{''.join(Path(name).suffixes)}"
            rng = np.random.default_rng([arguments.seed, max(0, number)])
            path.write_bytes(original if number < 0 else mutated(original, rng))
            if worker is None or (number > 0 and number % FILES_PER_WORKER == 0):
                if worker is not None:
                    worker.close()
                worker = Worker(folder)
                for sample in sorted((folder / "samples").iterdir()):  # Load modules before measuring.
                    worker.run(sample, "coefficients" in sample.name)
            reply = worker.run(path, "coefficients" in name)
            if reply and float(reply[-3]) > MAX_SECONDS:  # Kernels are compiled only once.
                reply = worker.run(path, "coefficients" in name)
            if not reply:
                reply = ["99", "99", "0", "0", repr(worker.last_words())]
            *codes, seconds, peak, wrong = reply
            if number >= 0:
                statuses[" ".join(codes)] += 1
            elif "0" not in codes:
                refused.append(name)
            slowest = max(slowest, (float(seconds), name))
            largest = max(largest, (int(peak), name))
            if wrong != "''" or float(seconds) > MAX_SECONDS or int(peak) > MAX_BYTES:
                bad.append(name)
                print(f"{number} {name}: {' '.join(codes)}, {seconds} s, {peak} bytes: {wrong}", flush=True)
                arguments.keep.mkdir(exist_ok=True)
                (arguments.keep / f"{number}-{name}").write_bytes(path.read_bytes())
                if "99" in codes or int(peak) > MAX_BYTES:
                    worker.close()
                    worker = None
            if number > 0 and number % 500 == 0:
                print(f"{number} files, {len(bad)} failed", file=sys.stderr, flush=True)
        if worker is not None:
            worker.close()
    if refused:
        print("rejected even when undamaged:", *refused)
    print(
        f"{arguments.count} files of {len(files)} kinds, {len(bad)} failed; slowest {slowest[0]:.1f} s"
        f" ({slowest[1]}), largest {largest[0] / 1e6:.0f} MB ({largest[1]}); exit statuses {dict(statuses)}"
    )
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
