"""Files that are written in one piece, or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A stream whose contents become the file at the end: readers see the old file or the new one.

    The contents go to a file of a unique name in the same folder, so that several processes may
    write to one path; the last one to end wins. An error leaves the old file as it was, and names
    the file. Links are followed. A read-only file is not replaced. Pipes and devices, which cannot
    be replaced, are written to directly.
    """
    target = _target(path)
    try:
        if target.exists() and not target.is_file():
            with open(target, "wb") as stream:
                yield stream
            return
        partial, stream = _new_file(target)
        try:
            with stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(partial, target)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise _named(error, target) from error


def check_can_write(path: str | os.PathLike[str]) -> None:
    """Raise the `OSError` that `whole_file` would; to be called before long work, not after it."""
    target = _target(path)
    if target.exists() and not target.is_file():
        return
    try:
        partial, stream = _new_file(target)
    except OSError as error:
        raise _named(error, target) from error
    stream.close()
    partial.unlink(missing_ok=True)


def _target(path: str | os.PathLike[str]) -> Path:
    """The file that a path leads to; an error where there can be none, or it is read-only."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder; name a file in it", str(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {target.parent}", str(path))
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "is read-only and is not replaced", str(path))
    return target


def _new_file(target: Path) -> tuple[Path, BinaryIO]:
    """A new, empty file beside the target, with the permissions that the target has or would get."""
    partial = target.with_name(f".laconic-{secrets.token_hex(8)}.partial")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    stream = os.fdopen(os.open(partial, flags, 0o666), "wb")
    with suppress(OSError):  # some file systems know no permissions
        if target.exists():
            os.chmod(partial, stat.S_IMODE(target.stat().st_mode))
    return partial, stream


def _named(error: OSError, target: Path) -> OSError:
    """The error with the name of the file that the user asked for."""
    if error.errno is None:
        return error
    return type(error)(error.errno, error.strerror, str(target))
