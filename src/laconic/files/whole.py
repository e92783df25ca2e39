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
from io import BufferedWriter
from pathlib import Path
from typing import BinaryIO

# Names of incomplete files. They do not depend on the name of the target, which may already have
# the greatest length that is allowed.
PARTIAL = re.compile(r"\.laconic-[0-9a-f]{16}\.partial")


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a stream whose contents replace the file at the end.

    Readers see the old file or the new one. The contents first go to a file with a unique name in
    the same folder. So several processes may write to one path, and the last one to finish wins.
    After an error the old file is unchanged, and the error names it. Links are followed. The new
    file has the permissions of the old one, and its owner where that is allowed. A read-only file
    is not replaced. Pipes, devices and a file that is mounted by itself cannot be replaced, so they
    are written to directly.
    """
    with _naming(path):
        target = _target(path)
        if target is None:
            with open(path, "wb") as direct:
                yield direct
            return
        partial, stream = new_file(target)
        try:
            with stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            _replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)


def check_can_write(path: str | os.PathLike[str]) -> None:
    """Raise the `OSError` that `whole_file` would raise.

    Call this before long work. It finds every problem except a full disk.
    """
    with _naming(path):
        target = _target(path)
        if target is not None:
            partial, stream = new_file(target)
            stream.close()
            partial.unlink()


def same_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Return whether two paths lead to the same regular file. The paths need not exist."""
    try:
        first, second = os.stat(one), os.stat(other)
    except OSError:
        return os.path.normcase(os.path.realpath(one)) == os.path.normcase(os.path.realpath(other))
    return stat.S_ISREG(first.st_mode) and os.path.samestat(first, second)


def _target(path: str | os.PathLike[str]) -> Path | None:
    """Return the file to replace or create, or None if the path must be written to directly."""
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
    # The superuser may write to every file, but a file without any write permission must still
    # be kept.
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
    """Return whether a path leads through the open files of a process, as /dev/stdout does.

    Such a file may no longer have a name. Only the path is examined, because another process may
    replace the file before its status is read.
    """
    path = os.path.abspath(path)
    for _ in range(40):  # the most links that a system follows
        folder = os.path.realpath(os.path.dirname(path))
        if folder.startswith("/proc/"):
            return True
        if not os.path.islink(path):
            return False
        path = os.path.join(folder, os.readlink(path))
    return False


def _status(path: str | os.PathLike[str]) -> os.stat_result | None:
    """Return the status of a file, or None if it does not exist."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def new_file(target: Path) -> tuple[Path, BufferedWriter]:
    """Create an empty file next to the target, with the permissions that the target has or gets."""
    partial = target.with_name(f".laconic-{secrets.token_hex(8)}.partial")
    old = _status(target)
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode) & 0o777
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    stream = os.fdopen(os.open(partial, flags, mode), "wb")
    if old is not None:
        _give(partial, old)
        with suppress(OSError):  # some file systems have no permissions
            os.chmod(partial, mode)
    return partial, stream


def _give(partial: Path, old: os.stat_result) -> None:
    """Give a file the owner and group of the old file, or only the group if that is all we may."""
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
        shutil.copyfile(
            partial, target
        )  # a file can be mounted by itself, for example in a container


@contextmanager
def _naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Make errors name the requested file. Errors that name another file are not changed."""
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
