"""Files with a digest: whole ones are read, damaged ones are not, and failures to write are reported."""

from pathlib import Path

from undula.engines.digests import read_file, write_file


def test_only_whole_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "code.bin"
    assert read_file(path) is None
    assert write_file(path, b"code")
    assert read_file(path) == b"code"
    assert [each.name for each in path.parent.iterdir()] == ["code.bin"]
    path.write_bytes(path.read_bytes()[:-1])
    assert read_file(path) is None


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    assert not write_file(tmp_path / "file" / "code.bin", b"code")
    (tmp_path / "code.bin").mkdir()
    assert not write_file(tmp_path / "code.bin", b"code")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["code.bin", "file"]
