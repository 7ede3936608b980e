"""Generated samples are shared by all processes of a user."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

from undula import io


def test_all_that_generate_a_sample_at_once_get_the_same_file(tmp_path: Path) -> None:
    count = 4
    barrier = Barrier(count)

    def open_sample(_: int) -> Any:
        barrier.wait()
        return io.sample("scene", tmp_path).open("rb")

    with ThreadPoolExecutor(count) as pool:
        files = list(pool.map(open_sample, range(count)))
    try:
        # A file that was replaced keeps its number as long as it is open.
        assert len({os.fstat(file.fileno()).st_ino for file in files}) == 1
    finally:
        for file in files:
            file.close()
    assert os.listdir(tmp_path) == ["scene.png"]
