"""Either a file is written completely, or the old one remains."""

import os
import tempfile
from pathlib import Path

import pytest

from aqmlab.errors import HostError
from aqmlab.system.files import locked, partial_directory, save, write_whole


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path):
    file = tmp_path / "a.txt"
    write_whole(file, "before")
    with pytest.raises(UnicodeEncodeError):
        write_whole(file, "a lone surrogate \ud800")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert file.read_text(encoding="utf-8") == "before"


def test_newlines_are_written_as_they_are(tmp_path):
    write_whole(tmp_path / "a.txt", "one\ntwo\r\n")
    assert (tmp_path / "a.txt").read_bytes() == b"one\ntwo\r\n"


def test_what_cannot_be_written_is_named(tmp_path):
    file = tmp_path / "nowhere" / "a.txt"
    with pytest.raises(HostError, match=r"cannot write `.*nowhere/a\.txt`: No such file or directory"):
        save(file, "x")


def test_a_link_is_followed_and_a_pipe_is_written_to(tmp_path):
    (tmp_path / "link").symlink_to("a.txt")
    write_whole(tmp_path / "link", "through")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "through"
    os.mkfifo(tmp_path / "pipe")
    # Both ends are open, so that opening the pipe for writing does not wait for a reader.
    end = os.open(tmp_path / "pipe", os.O_RDWR)
    try:
        write_whole(tmp_path / "pipe", "passed on")
        assert os.read(end, 100) == b"passed on"
    finally:
        os.close(end)
    assert (tmp_path / "pipe").is_fifo()


def test_a_full_device_is_named_and_kept():
    with pytest.raises(HostError, match="cannot write `/dev/full`: No space left on device"):
        save(Path("/dev/full"), "x")
    assert Path("/dev/full").is_char_device()


def test_what_killed_processes_left_is_removed_by_the_next_of_that_name(tmp_path):
    left, held, other = (tmp_path / name for name in (".a.12-0123abcd", ".a.13-0123abcd", ".a.swp"))
    for file in (left, held, other, tmp_path / ".ab.12-0123abcd"):
        file.write_text("half", encoding="utf-8")
    with held.open() as of_another:
        assert locked(of_another.fileno())
        write_whole(tmp_path / "a", "whole")
    assert not left.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"a", held.name, other.name, ".ab.12-0123abcd"}


def test_partial_directories_are_removed_if_nobody_holds_them(tmp_path):
    left = tmp_path / ".out.partial-abc_0123"
    (left / "experiment").mkdir(parents=True)
    with partial_directory(tmp_path, "out") as first:
        assert not left.exists()
        with partial_directory(tmp_path, "out") as second:
            assert first.is_dir()
            assert second != first
    assert not list(tmp_path.iterdir())


def test_a_directory_that_another_process_removes_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    made, original = [], tempfile.mkdtemp

    def mkdtemp(**options):
        made.append(original(**options))
        if len(made) == 1:
            Path(made[0]).rmdir()
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", mkdtemp)
    with partial_directory(tmp_path, "out") as directory:
        assert directory.is_dir()
        assert str(directory) == made[1]
    assert list(tmp_path.iterdir()) == []
