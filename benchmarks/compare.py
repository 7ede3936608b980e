"""Two versions of Undula on the CPU, measured in turns in one run.

    python benchmarks/compare.py BEFORE [AFTER]     sources of the two versions, such as old/src and src
    python benchmarks/compare.py BEFORE --save      save the figures to benchmarks/results/compare.json

Each version runs in its own process. For every case the two take turns, a few rounds each, and the best time
of each counts, so that other load on the machine strikes both. A case that seems slower than before gets more
rounds, again for both.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import warnings
from datetime import date
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
SIDES = (64, 512, 1024, 2048, 4096)
WAVELETS = ("bior4.4", "db4", "coif5", "haar")
DTYPES = ("float32", "float64")
LEVELS = (1, 5)
ROUNDS = 6
MORE_ROUNDS = 14
SLOWER = 0.97
ROUND_SECONDS = 0.06
MIN_CALLS = 8  # per round: the time of a large image varies with the pages that its results get.

Case = dict[str, Any]


def work() -> None:
    """Measure cases that arrive as lines of JSON: answer each with the best seconds of one round."""
    import numpy as np

    import undula

    arrays: dict[Any, Any] = {}
    for line in sys.stdin:
        case = json.loads(line)
        side, dtype, wavelet, level = (case[key] for key in ("side", "dtype", "wavelet", "level"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            key = side, dtype
            if key not in arrays:
                arrays = {key: np.random.default_rng(0).standard_normal((side, side)).astype(dtype)}
            x = arrays[key]
            if case["back"]:
                coeffs = undula.wavedec2(x, wavelet, level=level)
                seconds = best(partial(undula.waverec2, coeffs, wavelet))
            else:
                seconds = best(partial(undula.wavedec2, x, wavelet, level=level))
        print(seconds, flush=True)


def best(call: Any) -> float:
    """Return the least seconds of a call, of as many as fit into a round."""
    call()
    call()
    least, end = float("inf"), time.perf_counter() + ROUND_SECONDS
    for number in count(1):
        begin = time.perf_counter()
        call()
        now = time.perf_counter()
        least = min(least, now - begin)
        if now > end and number >= MIN_CALLS:
            break
    return least


class Worker:
    """A process that measures one version."""

    def __init__(self, source: Path) -> None:
        paths = [str(source.resolve()), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--work"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )

    def seconds(self, case: Case) -> float:
        """Return the best seconds of one round."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(case), file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def take_turns(workers: list[Worker], case: Case, rounds: int) -> tuple[float, float]:
    """Return the best microseconds of two versions."""
    times: list[list[float]] = [[], []]
    for _ in range(rounds):
        for number, worker in enumerate(workers):
            times[number].append(worker.seconds(case))
    before, after = (1e6 * min(part) for part in times)
    return before, after


def main() -> None:
    """Print a table of all cases."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path, nargs="?", help="folder with the earlier package")
    parser.add_argument("after", type=Path, nargs="?", default=ROOT.parent / "src", help="and the later one")
    parser.add_argument(
        "--save", type=Path, nargs="?", const=ROOT / "results" / "compare.json", help="save the figures"
    )
    parser.add_argument("--side", type=int, nargs="*", default=SIDES, help="sides of the images (all)")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work:
        work()
        return
    if arguments.before is None:
        parser.error("which version came before? Pass the folder that has its package")
    workers = [Worker(arguments.before), Worker(arguments.after)]
    rows = []
    for side, wavelet, dtype, level, back in product(arguments.side, WAVELETS, DTYPES, LEVELS, (False, True)):
        case = {"side": side, "wavelet": wavelet, "dtype": dtype, "level": level, "back": back}
        before, after = take_turns(workers, case, ROUNDS)
        if before < SLOWER * after:
            before, after = map(min, (before, after), take_turns(workers, case, MORE_ROUNDS))
        rows.append({**case, "before_us": before, "after_us": after, "speedup": before / after})
        print(
            f"{side:5}² {wavelet:8} {dtype} {level} level(s) {'back   ' if back else 'forward'}"
            f" {before:10.1f} µs {after:10.1f} µs  {before / after:5.2f}×",
            flush=True,
        )
    for worker in workers:
        worker.close()
    for side in arguments.side:
        speedups = sorted(row["speedup"] for row in rows if row["side"] == side)
        middle = speedups[len(speedups) // 2]
        print(f"{side:5}²: {speedups[0]:.2f}× to {speedups[-1]:.2f}×, median {middle:.2f}×")
    if arguments.save:
        machine = {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()}
        result = {"date": date.today().isoformat(), "machine": machine, "rows": rows}
        arguments.save.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
