"""The table of the video guide: what each container keeps, cell by cell."""

import re
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

import undula
from films import (
    CHAPTERS,
    LINES,
    add_frames,
    add_video,
    chapter_times,
    jpeg,
    subtitle_lines,
    write_film,
)
from undula import io
from undula.io.decoder import Planes, display_matrix, frame_decoder, open_video

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "video.md"
QUARTER = (0, 1 << 16, 0, -(1 << 16), 0, 0, 0, 0, 1 << 30)
DISPLAY = "G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,1)"
UNEVEN = [0, 1, 2, 4, 5, 9, *range(10, 28)]  # Times of frames that have no constant rate.


def identity(planes: Planes) -> Planes:
    return planes


def survival_table() -> dict[str, dict[str, str]]:
    """The cells of the table, by suffix and by what may survive."""
    text = GUIDE.read_text(encoding="utf-8")
    section = text[text.index("### What survives") :]
    lines = section[section.index("\n|") + 1 :].partition("\n\n")[0].splitlines()
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {
        suffix: {row[0]: row[number] for row in rows}
        for number, containers in enumerate(head)
        for suffix in re.findall(r"`(\.\w+)`", containers)
    }


TABLE = survival_table()


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One file for each group of columns."""
    folder = tmp_path_factory.mktemp("films")
    paths = {name: folder / f"{name}.mkv" for name in ("film", "alpha", "hdr", "uneven")}
    paths["rotated"] = folder / "rotated.mov"
    write_film(paths["film"])
    with av.open(str(paths["alpha"]), "w") as container:
        for number in range(3):
            if number == 0:
                stream = add_video(container, "ffv1", "yuva420p")
            frame = av.VideoFrame(64, 48, "yuva420p")
            for k, plane in enumerate(frame.planes):
                plane.update(bytes([40 * k + 20 + number]) * plane.buffer_size)
            frame.pts, frame.time_base = number, Fraction(1, 25)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    with av.open(str(paths["hdr"]), "w") as container:
        parameters = (
            f"log-level=none:pools=none:frame-threads=1:hdr10=1:master-display={DISPLAY}:max-cll=1000,400"
        )
        stream = add_video(container, "libx265", "yuv420p10le", **{"x265-params": parameters})
        colors = {"color_primaries": 9, "color_trc": 16, "colorspace": 9, "color_range": 1}
        for name, value in colors.items():
            setattr(stream.codec_context, name, value)
        add_frames(container, stream, **colors)
    with av.open(str(paths["uneven"]), "w") as container:
        add_frames(container, add_video(container), UNEVEN)
    with av.open(str(paths["rotated"]), "w") as container:
        stream = add_video(container)
        stream.set_display_matrix(QUARTER)
        add_frames(container, stream)
    return paths


@pytest.fixture(scope="module")
def written(
    sources: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], tuple[Path | None, str]]:
    """A function that writes a source to a container, once, and returns the file and the warning or error."""
    folder = tmp_path_factory.mktemp("written")
    results: dict[tuple[str, str], tuple[Path | None, str]] = {}

    def write(name: str, suffix: str) -> tuple[Path | None, str]:
        if (name, suffix) not in results:
            target = folder / f"{name}{suffix}"
            with warnings.catch_warnings(record=True) as messages:
                warnings.simplefilter("always")
                try:
                    io.process(sources[name], target, identity, preset="ultrafast")
                except undula.FileError as error:
                    results[name, suffix] = None, str(error)
                else:
                    assert len(messages) <= 1, "one warning names everything"
                    results[name, suffix] = target, str(messages[0].message) if messages else ""
        return results[name, suffix]

    return write


def opened(path: Path) -> Any:
    return av.open(str(path))


def first_frame(path: Path) -> Any:
    container, stream = open_video(path)
    with container:
        decoder = frame_decoder(stream)
        return next(frame for packet in container.demux(stream) for frame in decoder.decode(packet))


def has_audio(path: Path) -> bool:
    with opened(path) as container:
        return [stream.codec_context.name for stream in container.streams.audio] == ["aac"]


def has_converted_audio(path: Path) -> bool:
    with opened(path) as container:
        (sound,) = container.streams.audio
        samples = sum(frame.samples for frame in container.decode(sound))
        return sound.codec_context.name != "aac" and abs(samples / sound.sample_rate - 0.96) < 0.06


def has_titles(path: Path) -> bool:
    with opened(path) as container:
        titles = [stream.metadata.get("title", stream.metadata.get("name")) for stream in container.streams]
        return {"The film", "Commentary"} <= set(titles)


def has_languages(path: Path) -> bool:
    with opened(path) as container:
        languages = {stream.language for stream in container.streams}
        return "fra" in languages and bool({"deu", "ger"} & languages)


def has_tags(path: Path) -> bool:
    with opened(path) as container:
        return {"All of it", "Made here"} <= set(container.metadata.values())


def has_font(path: Path) -> bool:
    with opened(path) as container:
        return b"letters" in [stream.data for stream in container.streams if stream.type == "attachment"]


def has_cover(path: Path) -> bool:
    with opened(path) as container:
        covers = [s for s in container.streams.video if s.disposition & av.stream.Disposition.attached_pic]
        return [bytes(next(container.demux(cover))) for cover in covers] == [jpeg()]


def has_alpha(path: Path) -> bool:
    frame = first_frame(path)
    planes = frame.reformat(format="yuva444p").planes
    return any(component.is_alpha for component in frame.format.components) and set(bytes(planes[3])) <= {
        139, 140, 141
    }  # fmt: skip


def has_ten_bits(path: Path) -> bool:
    return io.probe(path).bits == 10


def has_colors(path: Path) -> bool:
    frame = first_frame(path)
    return (frame.color_primaries, frame.color_trc, frame.colorspace) == (9, 16, 9)


def has_display(path: Path) -> bool:
    data = {each.type.name: bytes(each) for each in first_frame(path).side_data}
    if not {"MASTERING_DISPLAY_METADATA", "CONTENT_LIGHT_LEVEL"} <= set(data):
        return False
    numbers = np.frombuffer(data["MASTERING_DISPLAY_METADATA"], np.int32)[:20].reshape(10, 2)
    expected = [0.68, 0.32, 0.265, 0.69, 0.15, 0.06, 0.3127, 0.329, 0.0001, 1000]
    light = np.frombuffer(data["CONTENT_LIGHT_LEVEL"], np.uint32)[:2].tolist()
    return bool(np.allclose(numbers[:, 0] / numbers[:, 1], expected, atol=1e-4)) and light == [1000, 400]


def has_times(path: Path) -> bool:
    with opened(path) as container:
        times = [frame.time for frame in container.decode(video=0)]
    return [round((time - times[0]) * 25) for time in times] == UNEVEN


def has_rotation(path: Path) -> bool:
    return display_matrix(first_frame(path))[:5] == QUARTER[:5]


def has_lines(path: Path) -> bool:
    return subtitle_lines(path) == LINES


# For each column: the source, how to recognise it in the result, and how the warning or error names it.
COLUMNS: dict[str, tuple[str, Callable[[Path], bool], str]] = {
    "audio": ("film", has_audio, "audio"),
    "subtitles": ("film", has_lines, "subtitle"),
    "chapters": ("film", lambda path: chapter_times(path) == CHAPTERS, "chapters"),
    "tags": ("film", has_tags, "tags (comment, title)"),
    "titles": ("film", has_titles, "titles of streams"),
    "languages": ("film", has_languages, "languages"),
    "fonts": ("film", has_font, "font.ttf"),
    "cover": ("film", has_cover, "cover art"),
    "alpha": ("alpha", has_alpha, "yuva420p"),
    "10 bits": ("hdr", has_ten_bits, "yuv420p10le"),
    "HDR colours": ("hdr", has_colors, "the transfer function"),
    "mastering display": ("hdr", has_display, "the mastering display"),
    "uneven times": ("uneven", has_times, "times"),
    "rotation": ("rotated", has_rotation, "rotation"),
}


# What an error is about, by source.
ERRORS = {
    "alpha": "yuva420p",
    "hdr": "yuv420p10le",
    "uneven": "constant rate",
    "rotated": "rotated or mirrored",
}


def test_the_table_has_a_column_for_each_container_and_a_row_for_each_thing() -> None:
    assert set(TABLE) == set(io.VIDEOS)
    assert {tuple(row) for row in TABLE.values()} == {tuple(COLUMNS)}


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("suffix", [s for s in TABLE if s not in (".m4v", ".m2ts", ".mpeg")])
def test_what_survives(
    suffix: str, column: str, written: Callable[[str, str], tuple[Path | None, str]]
) -> None:
    name, is_kept, words = COLUMNS[column]
    path, message = written(name, suffix)
    cell = TABLE[suffix][column]
    if cell == "error":
        assert path is None
        assert ERRORS[name] in message
        return
    assert path is not None, message
    if cell == "–":
        assert not is_kept(path)
        assert re.search(rf"written without .*{re.escape(words)}", message)
    elif cell.startswith("as "):
        assert has_converted_audio(path) if column == "audio" else is_kept(path)
        assert re.search(rf"{words}s? w.* converted from \w+ to", message)
    else:
        assert cell == "✓"
        assert is_kept(path)
        assert words not in message


@pytest.mark.parametrize("suffix", [".mp4", ".mov", ".mkv", ".ts"])
def test_hdr_stays_hevc(suffix: str, written: Callable[[str, str], tuple[Path | None, str]]) -> None:
    path, message = written("hdr", suffix)
    assert path is not None
    assert (io.probe(path).codec, message) == ("hevc", "")
