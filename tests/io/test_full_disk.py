"""Writing to a full disk is an error for every format, and leaves nothing behind."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="only POSIX systems can limit the size of files")

# Runs in a process whose files cannot grow beyond 4 kB, so that writing fails as on a full disk.
SCRIPT = """
import resource, sys
from pathlib import Path
import numpy as np
from pydicom import examples
from undula import io
from undula.io.samples import write_clip

folder, *suffixes = sys.argv[1:]
noise = np.random.default_rng(0).integers(0, 256, (128, 160, 3)).astype("u1")
given = {"dcm": io.read(examples.get_path("ct"))}
clip = Path(folder) / "clip.mp4"
write_clip(clip, 12.0, 8)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
for suffix in suffixes:
    target = Path(folder) / f"picture.{suffix}"
    try:
        if suffix in ("mp4", "mkv"):
            write_clip(target, 12.0, 8)
        elif suffix in ("mov", "avi"):
            io.process(clip, target, lambda planes: planes)
        else:
            io.write(target, given.get(suffix, noise))
        print(suffix, "written")
    except io.files.FileError as error:
        print(suffix, "refused" if str(error) == f"cannot write {target}: File too large" else error)
"""
SUFFIXES = "png jpg tif bmp webp gif npy npz dcm mp4 mkv mov avi jp2 j2k".split()


def test_a_full_disk_is_an_error_for_every_format(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path), *SUFFIXES], capture_output=True, text=True, timeout=60
    )
    assert process.stdout.splitlines() == [f"{suffix} refused" for suffix in SUFFIXES], process.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["clip.mp4"]
