"""The Studio as users see it: latency from a slider to the new image, and frames per second of a video.

This needs Chromium and Playwright. Everything is measured in the browser: the time from a key press that
moves a slider until the image is drawn, and until it is on the screen. Large images are first sent as JPEG,
and then exactly once nothing changes any more.

    python benchmarks/studio.py [--soak MINUTES] [--write]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import undula
from undula import io
from undula.io.samples import scene

FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --force-color-profile=srgb"
).split()
WATCH = """() => {
    const studio = window.undulaStudio, draw = studio.draw;
    window.times = [];
    window.exact = [];
    let moved = 0, last = 0;
    window.addEventListener('keydown', () => { moved = last = performance.now(); }, true);
    studio.draw = function (quick) {
        draw.call(studio, quick);
        const drawn = performance.now(), from = moved;
        moved = 0;
        if (from) requestAnimationFrame(() => window.times.push([drawn - from, performance.now() - from]));
        if (last && studio.painted.exact) { window.exact.push(drawn - last); last = 0; }
    };
}"""


def machine() -> str:
    """Describe the machine in one line."""
    name = platform.processor() or platform.machine()
    with open("/proc/cpuinfo") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    return f"{model[1] if model else name}, {os.cpu_count()} cores"


class Studio:
    """A server and a tab."""

    def __init__(self, driver: Any, *files: Path) -> None:
        self.folder = tempfile.mkdtemp()
        command = [
            sys.executable,
            "-m",
            "undula",
            "studio",
            "--no-browser",
            "--port",
            "0",
            "--exports",
            self.folder,
        ]
        self.process = subprocess.Popen([*command, *map(str, files)], stdout=subprocess.PIPE, text=True)
        address = re.search(r"http://\S+", self.process.stdout.readline())[0]
        chromium = shutil.which("chromium") or shutil.which("google-chrome")
        self.browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        self.page = self.browser.new_page(viewport={"width": 1280, "height": 720})
        self.page.goto(address)
        self.page.wait_for_function("window.undulaStudio?.shown", timeout=60_000)
        self.page.wait_for_timeout(4000)  # (all kernels are loaded)

    def close(self) -> None:
        """Close the browser and stop the server."""
        self.browser.close()
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder)

    def memory(self) -> float:
        """Anonymous memory of the server and its child processes, in MB."""
        import psutil

        server = psutil.Process(self.process.pid)
        kilobytes = 0
        for process in [server, *server.children(recursive=True)]:
            text = Path(f"/proc/{process.pid}/status").read_text()
            kilobytes += int(re.search(r"RssAnon:\s+(\d+)", text)[1])
        return kilobytes / 1000


def latency(
    driver: Any, pixels: np.ndarray[Any, Any], view: str, preset: str | None = None
) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "picture.png"
        io.write(path, pixels)
        studio = Studio(driver, path)
        page = studio.page
        if preset:
            page.get_by_test_id("presets").click()
            page.get_by_test_id(f"preset-{preset}").click()
            page.wait_for_timeout(1500)
        page.keyboard.press({"synthesis": "1", "divider": "2"}[view])
        page.wait_for_timeout(1500)
        page.evaluate(WATCH)
        page.get_by_test_id("strength-0").focus()
        for number in range(40):
            page.keyboard.press("ArrowRight" if number % 20 < 10 else "ArrowLeft")
            page.wait_for_timeout(700)
        timings, exact = page.evaluate("window.times"), page.evaluate("window.exact")
        inside = page.get_by_test_id("facts").inner_text()
        studio.close()
    drawn, seen = (sorted(each[k] for each in timings[2:]) for k in (0, 1))
    filter_ms = re.search(r"All\s+([\d.]+)", inside)
    return {
        "changes": len(drawn),
        "drawn, median": statistics.median(drawn),
        "drawn, 95 %": drawn[int(0.95 * len(drawn))],
        "on the screen, median": statistics.median(seen),
        "on the screen, 95 %": seen[int(0.95 * len(seen))],
        "exact, median": statistics.median(exact[2:]),
        "of that the filter": float(filter_ms[1]) if filter_ms else 0.0,
    }


def playback(driver: Any, speed: str) -> dict[str, float]:
    studio = Studio(driver, io.sample("bunny"))
    page = studio.page
    page.keyboard.press("1")
    if speed != "1 ×":
        page.get_by_test_id("speed").click()
        page.locator(".q-menu .q-item").filter(has_text=speed).click()
    page.locator(".stage-canvas").focus()
    page.keyboard.press("Space")
    page.wait_for_timeout(4000)
    shown, drawn = [], []
    for _ in range(20):
        page.wait_for_timeout(500)
        shown.append(float(page.get_by_test_id("fps").inner_text().split()[0] or 0))
        drawn.append(page.evaluate("undulaStudio.fps()"))
    studio.close()
    return {
        "shown in the page": statistics.median(shown),
        "least": min(shown),
        "drawn": statistics.median(drawn),
    }


def soak(driver: Any, minutes: float, name: str, pictures: int) -> tuple[list[tuple[float, float]], int]:
    """Memory of the server while a video plays, for some minutes or until enough images were drawn."""
    studio = Studio(driver, io.sample(name))
    page = studio.page
    if pictures:
        page.get_by_test_id("speed").click()
        page.locator(".q-menu .q-item").filter(has_text="max").click()
    page.locator(".stage-canvas").focus()
    page.keyboard.press("Space")
    begin, samples, drawn = time.time(), [], 0
    while (drawn < pictures or not pictures) and (time.time() - begin < 60 * minutes or not minutes):
        page.wait_for_timeout(10_000)
        last, drawn = drawn, page.evaluate("undulaStudio.painted.id")
        assert drawn > last, "playback has stopped"
        samples.append(((time.time() - begin) / 60, studio.memory()))
        if len(samples) % 30 == 1:
            print(f"{samples[-1][0]:5.1f} min  {samples[-1][1]:7.1f} MB", flush=True)
    studio.close()
    return samples, drawn


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--soak", type=float, default=0.0, help="minutes of playback")
    parser.add_argument("--clip", default="bunny", help="the sample that plays")
    parser.add_argument(
        "--pictures", type=int, default=0, help="play as fast as it goes, until so many were drawn"
    )
    parser.add_argument("--write", action="store_true", help="keep the figures in benchmarks/results/")
    arguments = parser.parse_args()
    from playwright.sync_api import sync_playwright

    rng = np.random.default_rng(0)
    color = scene(1024, 1024, 0.0, 12.0)
    grey = np.clip(color.mean(axis=-1) + 4 * rng.standard_normal((1024, 1024)), 0, 255).astype(np.uint8)
    results: dict[str, Any] = {"machine": machine(), "date": str(date.today()), "undula": undula.__version__}
    with sync_playwright() as driver:
        if arguments.soak or arguments.pictures:
            samples, drawn = soak(driver, arguments.soak, arguments.clip, arguments.pictures)
            settled = [mb for minute, mb in samples if minute > min(3.0, samples[-1][0] / 4)]
            third = max(1, len(settled) // 3)
            growth = statistics.mean(settled[-third:]) / statistics.mean(settled[:third]) - 1
            results["soak"] = {
                "clip": arguments.clip,
                "minutes": samples[-1][0],
                "pictures": drawn,
                "least, MB": min(settled),
                "most, MB": max(settled),
                "first third, MB": statistics.mean(settled[:third]),
                "last third, MB": statistics.mean(settled[-third:]),
                "growth": growth,
            }
            print(json.dumps(results["soak"], indent=1))
        else:
            results["slider"] = {}
            for name, pixels in (("1024² grey", grey), ("1024² colour", color)):
                for view in ("synthesis", "divider"):
                    figures = latency(driver, pixels, view)
                    results["slider"][f"{name}, {view}"] = figures
                    print(
                        f"{name}, {view}: "
                        + ", ".join(f"{key} {value:.1f}" for key, value in figures.items()),
                        flush=True,
                    )
            results["playback"] = {}
            for speed in ("1 ×", "max"):
                figures = playback(driver, speed)
                results["playback"][speed] = figures
                print(
                    f"720p, {speed}: " + ", ".join(f"{key} {value:.1f}" for key, value in figures.items()),
                    flush=True,
                )
    if arguments.write:
        path = (
            Path(__file__).parent
            / "results"
            / (f"studio-soak-{arguments.clip}.json" if "soak" in results else "studio.json")
        )
        path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
