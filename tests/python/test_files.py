"""Files are written whole, or what was there stays."""

import pytest

from aqmlab.errors import HostError
from aqmlab.files import save, write_whole


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
