"""Files that are written in one piece, or not at all."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

# Names of files that are not whole yet. They do not grow with the name of the file to be written,
# which may be as long as names can be.
PARTIAL = re.compile(r"\.laconic-[0-9a-f]{16}\.partial")


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A stream whose contents become the file at the end: readers see the old file or the new one.

    The contents go to a file of a unique name in the same folder, so that several processes may
    write to one path; the last one to end wins. An error leaves the old file as it was, and names
    the file. Links are followed. A new file replaces an old one with the same permissions, and the
    same owner where that is allowed. A read-only file is not replaced. What cannot be replaced is
    written to directly: pipes, devices, and a file that is mounted by itself.
    """
    with _naming(path):
        target = _target(path)
        if target is None:
            with open(path, "wb") as direct:
                yield direct
            return
        partial, stream = _new_file(target)
        try:
            with stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            _replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)


def check_can_write(path: str | os.PathLike[str]) -> None:
    """Raise the `OSError` that `whole_file` would; to be called before long work, not after it.

    Only a disk that is full, or gets full, shows later.
    """
    with _naming(path):
        target = _target(path)
        if target is not None:
            partial, stream = _new_file(target)
            stream.close()
            partial.unlink()


def same_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two paths, which need not exist, lead to one file; pipes and devices do not count."""
    try:
        first, second = os.stat(one), os.stat(other)
    except OSError:
        return os.path.normcase(os.path.realpath(one)) == os.path.normcase(os.path.realpath(other))
    return stat.S_ISREG(first.st_mode) and os.path.samestat(first, second)


def _target(path: str | os.PathLike[str]) -> Path | None:
    """The file to replace, or to make; None where the path must be written to directly."""
    found = _status(path)
    target = Path(os.path.realpath(path))
    if found is None:
        if not os.path.basename(path):
            raise FileNotFoundError(errno.ENOENT, "a file needs a name")
        if not target.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, f"there is no folder {target.parent}")
        return target
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder; name a file in it")
    # To the superuser every file is open; a file without any right to write is still meant to stay.
    if not os.access(path, os.W_OK) or not found.st_mode & 0o222:
        raise PermissionError(errno.EACCES, "you may not write to it, so it is not replaced")
    if not stat.S_ISREG(found.st_mode) or _is_open_file(path):
        return None
    folder = os.stat(target.parent)
    if folder.st_mode & stat.S_ISVTX and os.geteuid() not in (0, found.st_uid, folder.st_uid):
        raise PermissionError(
            errno.EPERM, "it belongs to another user, and only its owner can replace it there"
        )
    return target


def _is_open_file(path: str | os.PathLike[str]) -> bool:
    """Whether a path leads through the open files of a process, as /dev/stdout does.

    Such a file may have lost its name. The path alone can tell: what the system says of a file may
    be of one that another process has just replaced.
    """
    path = os.path.abspath(path)
    for _ in range(40):  # links that a system follows at most
        folder = os.path.realpath(os.path.dirname(path))
        if folder.startswith("/proc/"):
            return True
        if not os.path.islink(path):
            return False
        path = os.path.join(folder, os.readlink(path))
    return False


def _status(path: str | os.PathLike[str]) -> os.stat_result | None:
    """What the system knows of a file; None if there is none."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _new_file(target: Path) -> tuple[Path, BinaryIO]:
    """A new, empty file beside the target, as open to others as the target is or would be."""
    partial = target.with_name(f".laconic-{secrets.token_hex(8)}.partial")
    old = _status(target)
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode) & 0o777
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    stream = os.fdopen(os.open(partial, flags, mode), "wb")
    if old is not None:
        _give(partial, old)
        with suppress(OSError):  # some file systems know no permissions
            os.chmod(partial, mode)
    return partial, stream


def _give(partial: Path, old: os.stat_result) -> None:
    """Give a file the owner and the group of another; at least the group, if only that is ours."""
    if not hasattr(os, "chown"):
        return
    for owner in (old.st_uid, -1):
        with suppress(OSError):
            os.chown(partial, owner, old.st_gid)
            return


def _replace(partial: Path, target: Path) -> None:
    try:
        os.replace(partial, target)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        shutil.copyfile(partial, target)  # mounted by itself, as a container's files can be


@contextmanager
def _naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors name the file that was asked for; those that name another file pass as they are."""
    try:
        yield
    except OSError as error:
        about = error.filename
        if isinstance(about, str) and not PARTIAL.fullmatch(os.path.basename(about)):
            raise
        reason = error.strerror or str(error) or type(error).__name__
        if isinstance(error, PermissionError) and isinstance(about, str):
            reason = f"no files can be made in {os.path.dirname(about)}"
        raise OSError(error.errno or errno.EIO, reason, os.fspath(path)) from error
