"""Journals: passing records, and files that are written anew without them."""

import os

import numpy as np
import pytest

from laconic.files import journal
from laconic.files.journal import Journal


def filled(path, what="LppLpp", size=10):
    """Write lasting (L) and passing (p) records, and return their numbers."""
    file = Journal(path, "test", "mine")
    for number, kind in enumerate(what):
        header = {"number": number} | ({"passing": True} if kind == "p" else {})
        assert file.append(header, {"values": np.full(size, number)})
    file.close()


def numbers(path):
    """Return the numbers of the records that count."""
    file = Journal(path, "test", "mine")
    file.close()
    for header, arrays in file.records:
        assert (arrays["values"] == header["number"]).all()
    return [header["number"] for header, _ in file.records]


@pytest.mark.parametrize(
    ("what", "left"),
    [("LpL", [0, 2]), ("LppL", [0, 3]), ("LLp", [0, 1, 2]), ("pp", [1]), ("LpLpp", [0, 2, 4])],
)
def test_a_passing_record_counts_until_the_next_one(tmp_path, what, left):
    filled(tmp_path / "file", what)
    assert numbers(tmp_path / "file") == left


def test_a_record_that_is_not_written_whole_leaves_the_one_before(tmp_path):
    path, what = tmp_path / "file", "LppLppppL"
    for number in range(1, len(what)):
        filled(path, what[:number], 2)
        before = numbers(path)
        path.unlink()
        filled(path, what[: number + 1], 2)
        path.write_bytes(path.read_bytes()[:-7])
        assert numbers(path) == before
        path.unlink()


def test_a_file_does_not_grow_with_its_passing_records(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "ROOM", 10_000)
    path = tmp_path / "file"
    filled(path, "L" + "p" * 50 + "L" + "p" * 51, 500)
    assert numbers(path) == [0, 51, 102]
    assert path.stat().st_size < 40_000
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_the_new_file_is_locked_and_goes_on(tmp_path, monkeypatch):
    pytest.importorskip("fcntl")
    monkeypatch.setattr(journal, "ROOM", 0)
    path = tmp_path / "file"
    (tmp_path / "link").symlink_to("file")
    file = Journal(tmp_path / "link", "test", "mine")
    before = None
    for number in range(8):
        file.append({"number": number, "passing": True}, {"values": np.full(100, number)})
        before = before or path.stat().st_ino
        with pytest.raises(ValueError, match="in use by another fit"):
            Journal(path, "test", "mine")
    assert path.stat().st_ino != before
    file.append({"number": 8}, {"values": np.full(3, 8)})
    file.close()
    assert (tmp_path / "link").is_symlink()
    assert numbers(path) == [8]


def test_a_file_that_cannot_be_replaced_grows(tmp_path, monkeypatch):
    def refused(*given):
        raise PermissionError(13, "no")

    monkeypatch.setattr(journal, "ROOM", 0)
    monkeypatch.setattr(os, "replace", refused)
    filled(tmp_path / "file", "LpppppL", 50)
    assert numbers(tmp_path / "file") == [0, 6]
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_passing_records_in_another_place_are_refused(tmp_path):
    path = tmp_path / "file"
    filled(path, "LLp")
    contents, parts, at = path.read_bytes(), [], len(b"laconic test\n")
    while at < len(contents):
        end = at + len(journal.prefix(0)) + int.from_bytes(contents[at : at + 8], "little")
        parts.append(contents[at:end])
        at = end
    for order in ([0, 2, 1], [2, 0, 1]):
        path.write_bytes(b"laconic test\n" + b"".join(parts[i] for i in order))
        with pytest.raises(ValueError, match=r"is damaged.*not in its original place"):
            Journal(path, "test", "mine")
