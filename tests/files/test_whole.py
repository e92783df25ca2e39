"""Files are written in one piece or not at all, and an error names the file."""

import errno
import os
import stat
import threading

import numpy as np
import pytest

from laconic.files.whole import check_can_write, same_file, whole_file

WRITE = """
def write(path):
    try:
        check_can_write(path)
        with whole_file(path) as stream:
            stream.write(b"new")
        return "written"
    except OSError as error:
        return f"{error.filename}: {error.strerror}"

import sys
for path in sys.argv[1:]:
    print(write(path))
"""


def write(path, content=b"new"):
    with whole_file(path) as stream:
        stream.write(content)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.fixture
def old(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"old")
    return file


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield
    os.umask(before)


# -- what is written -------------------------------------------------------------------------------


def test_the_new_contents_appear_at_the_end(old):
    with whole_file(old) as stream:
        stream.write(b"new")
        stream.flush()
        assert old.read_bytes() == b"old"
    assert old.read_bytes() == b"new"
    assert os.listdir(old.parent) == ["file"]


def test_new_files_get_the_usual_permissions(tmp_path, umask):
    write(tmp_path / "file")
    assert mode(tmp_path / "file") == 0o640


@pytest.mark.parametrize("kept", [0o600, 0o664, 0o755])
def test_old_files_keep_their_permissions(old, umask, kept):
    old.chmod(kept)
    write(old)
    assert mode(old) == kept


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_old_files_keep_their_owner(old):
    os.chown(old, 65534, 65533)
    write(old)
    assert (old.stat().st_uid, old.stat().st_gid) == (65534, 65533)


def test_links_are_followed(old, tmp_path):
    (tmp_path / "one").symlink_to("file")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    write(tmp_path / "two")
    assert old.read_bytes() == b"new"
    assert (tmp_path / "two").is_symlink()
    (tmp_path / "ahead").symlink_to("not-yet")
    write(tmp_path / "ahead")
    assert (tmp_path / "not-yet").read_bytes() == b"new"


def test_names_may_be_as_long_as_names_can_be(tmp_path):
    write(tmp_path / ("n" * os.pathconf(tmp_path, "PC_NAME_MAX")))


def test_many_writers_leave_the_contents_of_one(tmp_path):
    file = tmp_path / "file"
    contents = [bytes([65 + i]) * 300_000 for i in range(8)]
    writers = [threading.Thread(target=write, args=(file, content)) for content in contents]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert file.read_bytes() in contents
    assert os.listdir(tmp_path) == ["file"]


# -- what cannot be replaced -----------------------------------------------------------------------


def test_devices_are_written_to():
    reader, writer = os.openpty()
    device = os.ttyname(writer)
    check_can_write(device)
    write(device)
    assert os.read(reader, 100) == b"new"
    assert stat.S_ISCHR(os.stat(device).st_mode)
    os.close(reader)
    os.close(writer)


def test_pipes_are_written_to(tmp_path):
    """By name, and as open files, which have no place in any folder."""
    os.mkfifo(tmp_path / "pipe")
    found = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    check_can_write(tmp_path / "pipe")
    write(tmp_path / "pipe")
    reader.join()
    assert found == [b"new"]
    out, into = os.pipe()
    check_can_write(f"/dev/fd/{into}")
    write(f"/dev/fd/{into}")
    os.close(into)
    assert os.read(out, 100) == b"new"
    os.close(out)


def test_an_open_file_without_a_name_is_written_to(old):
    with open(old, "r+b") as stream:
        old.unlink()
        write(f"/dev/fd/{stream.fileno()}")
        assert stream.read() == b"new"
    assert os.listdir(old.parent) == []


def test_a_file_that_is_mounted_by_itself_is_written_to(old, monkeypatch):
    def refuse(source, target):
        raise OSError(errno.EBUSY, "Device or resource busy", str(source), None, str(target))

    monkeypatch.setattr(os, "replace", refuse)
    write(old)
    assert old.read_bytes() == b"new"
    assert os.listdir(old.parent) == ["file"]


# -- errors ----------------------------------------------------------------------------------------


def refused(path, kind):
    """The reason that both functions give; neither leaves anything in the folder."""
    reasons = []
    for attempt in (check_can_write, write):
        with pytest.raises(kind) as caught:
            attempt(path)
        assert caught.value.filename == str(path)
        reasons.append(caught.value.strerror)
    assert reasons[0] == reasons[1]
    return reasons[0]


def test_what_can_be_no_file_is_refused_at_once(old, tmp_path):
    assert "it is a folder" in refused(tmp_path, IsADirectoryError)
    assert f"no folder {tmp_path}/none" in refused(tmp_path / "none" / "file", FileNotFoundError)
    assert "needs a name" in refused("", FileNotFoundError)
    assert "needs a name" in refused(f"{tmp_path}/none/", FileNotFoundError)
    refused(old / "file", NotADirectoryError)
    refused(tmp_path / ("n" * 10_000), OSError)
    (tmp_path / "loop").symlink_to("loop")
    refused(tmp_path / "loop", OSError)
    assert sorted(os.listdir(tmp_path)) == ["file", "loop"]


def test_permissions_are_respected(unprivileged, open_folder):
    locked, readonly, shared = (open_folder / name for name in ("locked", "readonly", "shared"))
    locked.mkdir(mode=0o555)
    readonly.write_bytes(b"old")
    readonly.chmod(0o444)
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "theirs").write_bytes(b"old")
    (shared / "theirs").chmod(0o666)
    paths = [locked / "file", readonly, shared / "theirs", shared / "ours"]
    said = unprivileged("from laconic.files.whole import *", WRITE, *paths).splitlines()
    assert said[0] == f"{paths[0]}: no files can be made in {locked}"
    assert said[1] == f"{paths[1]}: you may not write to it, so it is not replaced"
    if os.getuid() == 0:  # otherwise the file is our own
        assert said[2].startswith(f"{paths[2]}: it belongs to another user")
    assert said[3] == "written"
    assert readonly.read_bytes() == b"old"
    assert sorted(os.listdir(shared)) == ["ours", "theirs"]


def test_a_file_that_nobody_may_write_is_kept_even_by_the_superuser(old):
    os.chmod(old, 0o444)
    with pytest.raises(PermissionError, match="may not write"), whole_file(old) as file:
        file.write(b"new")
    assert old.read_bytes() != b"new"


def test_an_error_leaves_the_old_file(old):
    def fail(stream):
        stream.write(bytes(100_000))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), whole_file(old) as stream:
        fail(stream)
    assert old.read_bytes() == b"old"
    assert os.listdir(old.parent) == ["file"]


@pytest.mark.parametrize("size", [0, 10_000])
def test_a_full_disk_leaves_the_old_file(old, full_disk, size):
    arrays = {"a": np.arange(20_000)}
    with full_disk(size):
        for fill in (lambda s: s.write(bytes(100_000)), lambda s: np.savez(s, **arrays)):
            with (
                pytest.raises(OSError, match="File too large") as caught,
                whole_file(old) as stream,
            ):
                fill(stream)
            assert caught.value.errno == errno.EFBIG
            assert caught.value.filename == str(old)
    assert old.read_bytes() == b"old"
    assert os.listdir(old.parent) == ["file"]


def test_a_full_device_is_named(full_device):
    with pytest.raises(OSError, match="No space left") as caught:
        write(full_device)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(full_device)
    assert stat.S_ISCHR(full_device.stat().st_mode)


def test_errors_about_other_files_are_left_alone(old, tmp_path):
    for other in (tmp_path / "none", "/none"):
        with pytest.raises(FileNotFoundError) as caught, whole_file(old):
            os.stat(str(other))
        assert caught.value.filename == str(other)
    with pytest.raises(OSError, match="3 requested and 0 written") as caught, whole_file(old):
        raise OSError("3 requested and 0 written")
    assert caught.value.filename == str(old)


# -- the same file ---------------------------------------------------------------------------------


def test_one_file_by_several_names(old, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "soft").symlink_to("file")
    os.link(old, tmp_path / "hard")
    (tmp_path / "folder").mkdir()
    for name in ("file", "./file", "folder/../file", "soft", "hard"):
        assert same_file(old, name)
    assert same_file("not-yet", tmp_path / "folder" / ".." / "not-yet")
    (tmp_path / "ahead").symlink_to("not-yet")
    assert same_file("ahead", "not-yet")
    assert not same_file(old, "not-yet")
    assert not same_file(old, "folder")
    assert not same_file("/dev/null", "/dev/null")  # a device


WRITER = """
import sys
from laconic.files.whole import whole_file

path, letter = sys.argv[1:]
for _ in range(400):
    with whole_file(path) as file:
        file.write(letter.encode() * 3000)
"""


def test_readers_see_whole_files_while_several_processes_write(tmp_path, python):
    path = tmp_path / "shared"
    path.write_bytes(b"z" * 3000)
    writers = [python(WRITER, path, letter) for letter in "ab"]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        seen.add(path.read_bytes())
    for writer in writers:
        _, errors = writer.communicate(timeout=60)
        assert writer.returncode == 0, errors
    assert seen <= {letter * 3000 for letter in (b"a", b"b", b"z")}
    assert [p.name for p in tmp_path.iterdir()] == ["shared"]
