"""Journals: files that grow by a record at a time, so that what is there is never written again.

A journal is a line that says what it is, and records: the length of each with its check sum, then
an archive of `laconic.files.store`. Each record names the digest of the one before, so that none
can be left out or put elsewhere. A process that is killed while it writes leaves a part of a record
at the end, which the next one cuts off; everything before it holds. The check sum tells such a part
from a length that is damaged.

A slate holds one record only, and is written anew in one piece: for states that are as large in the
end as at the start, and of which only the last matters.
"""

from __future__ import annotations

import os
import struct
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO, FileIO
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from zlib import crc32

import numpy as np

try:
    import fcntl
except ImportError:  # Windows has other locks
    fcntl = None  # type: ignore[assignment]

from laconic.files.store import MARK, WrongKind, dump, parse, read_archive, write_archive
from laconic.files.whole import check_can_write

# Seconds between two records: what a kill can lose at most, beside the round under way.
EVERY = 5.0

_PREFIX = struct.Struct("<QI")

Record = tuple[dict[str, Any], dict[str, np.ndarray]]
Self = TypeVar("Self", bound="Saver")


def prefix(length: int) -> bytes:
    """What comes before a record of so many bytes: the length, and its check sum."""
    return _PREFIX.pack(length, crc32(length.to_bytes(8, "little")))


class CheckpointFile(ABC):
    """A file of one kind, for data and settings of one fingerprint, that records are written to.

    Parameters
    ----------
    path : str or path-like
        A file that is there is taken up; otherwise one is made. An `OSError` says why where that
        cannot be.
    kind : str
        What is in it, ``"checkpoint"`` say.
    fingerprint : str
        A file of another one is refused.

    Attributes
    ----------
    records : list of (header, arrays)
        What the file held when it was opened. They are whole, but need not be sound: a stranger may
        have written them.
    """

    def __init__(self, path: str | os.PathLike[str], kind: str, fingerprint: str) -> None:
        self.path = path
        self.kind = kind
        self.fingerprint = fingerprint
        self.records: list[Record] = []
        self._written = -np.inf
        self._failed = False
        if Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir()):
            raise ValueError(f"{path} cannot be a checkpoint: it is no plain file")
        check_can_write(path)

    def _take(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Note a record of the file; one of another fit is refused."""
        if header.get("fingerprint") != self.fingerprint:
            raise ValueError(
                f"checkpoint {self.path} was written for other data or settings; "
                "name another file, or delete it to start anew"
            )
        self.records.append((header, arrays))

    @property
    def age(self) -> float:
        """Seconds since the last record was written; infinite before the first."""
        return time.monotonic() - self._written

    def append(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bool:
        """Write a record; whether that worked. Where it does not, a warning says so, once."""
        self._written = time.monotonic()
        try:
            self._put({**header, "fingerprint": self.fingerprint}, arrays)
        except OSError as error:
            if not self._failed:
                warnings.warn(
                    f"checkpoint {self.path} cannot be written ({error.strerror or error}); the "
                    "fit goes on without it",
                    RuntimeWarning,
                    stacklevel=2,
                )
            self._failed = True
            return False
        return True

    @abstractmethod
    def _put(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Write a record; after an `OSError` the file is as it was."""

    @abstractmethod
    def close(self) -> None:
        """Let other processes have the file."""


class Slate(CheckpointFile):
    """A file of one record: the next one takes its place, in one piece."""

    def __init__(self, path: str | os.PathLike[str], kind: str, fingerprint: str) -> None:
        super().__init__(path, kind, fingerprint)
        if Path(path).exists() and Path(path).stat().st_size:
            self._take(*read_archive(path, kind))

    def _put(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        write_archive(self.path, self.kind, header, arrays)

    def close(self) -> None:
        """Nothing is open between two records."""


class Journal(CheckpointFile):
    """A file of all records; those that are there stay as they are.

    While it is open no other process can open it, where the system has locks.
    """

    def __init__(self, path: str | os.PathLike[str], kind: str, fingerprint: str) -> None:
        super().__init__(path, kind, fingerprint)
        self._line = MARK + kind.encode() + b"\n"
        self._last = ""
        self._end = 0
        # Without a buffer: what could not be written must not be tried again unasked. A new file
        # is made where there is none, also by another fit at the same time: the lock decides.
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
        self._file = FileIO(os.open(path, flags, 0o666), "r+")
        try:
            _lock(self._file, path)
            with open(path, "rb") as stream:
                self._read(stream)
        except BaseException:
            self._file.close()
            raise

    def _read(self, stream: BinaryIO) -> None:
        """Take up all whole records; a part of one at the end is as if it had not been begun."""
        size = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        start = stream.read(len(self._line))
        if not self._line.startswith(start):
            read_archive(self.path, self.kind)  # says what else it is
            raise ValueError(
                f"checkpoint {self.path} was written by an older version of Laconic; name another "
                "file, or delete it to start anew"
            )
        if start != self._line:
            return
        self._end = len(start)
        while (found := self._next(stream, size)) is not None:
            header, arrays, self._last = found
            self._take(header, arrays)
            self._end = stream.tell()

    def _next(self, stream: BinaryIO, size: int) -> tuple[dict[str, Any], Any, str] | None:
        """The next record with its digest; ``None`` where there is no whole one."""
        before = stream.read(_PREFIX.size)
        if len(before) < _PREFIX.size:
            return None
        length = _PREFIX.unpack(before)[0]
        if before != prefix(length):
            if not any(before) and not any(stream.read()):  # what a power cut can leave
                return None
            raise self._damaged("a record has no sound length")
        if length > size - stream.tell():
            return None
        try:
            found = parse(BytesIO(stream.read(length)), length, self.kind)
            if found[0].get("after") != self._last:
                raise ValueError("a record is not where it was written")
        except WrongKind as error:
            raise ValueError(f"checkpoint {self.path} {error}") from error
        except Exception as error:  # whatever a damaged archive makes its readers raise
            if stream.tell() < size:
                raise self._damaged(error) from error
            warnings.warn(
                f"checkpoint {self.path} ends in a damaged record ({error}); the fit goes on from "
                "the one before",
                RuntimeWarning,
                stacklevel=2,
            )
            return None
        return found

    def _damaged(self, why: Any) -> ValueError:
        return ValueError(
            f"checkpoint {self.path} is damaged: {why}; name another file, or delete it to start "
            "anew"
        )

    def _put(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        stream = BytesIO()
        seal = dump(stream, self.kind, {**header, "after": self._last}, arrays)
        begun = self._line if self._end == 0 else b""
        whole = begun + prefix(stream.tell()) + stream.getvalue()
        try:
            self._write(whole)
        except OSError:
            with suppress(OSError):
                self._file.truncate(self._end)
            raise
        self._last, self._end = seal, self._end + len(whole)

    def _write(self, data: bytes) -> None:
        """Write after the last whole record, and see that it reaches the disk."""
        self._file.truncate(self._end)
        self._file.seek(self._end)
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Let other processes have the file."""
        if fcntl is not None:
            with suppress(OSError):  # a child of this process may still have the file open
                fcntl.flock(self._file, fcntl.LOCK_UN)
        self._file.close()


def _lock(file: FileIO, path: str | os.PathLike[str]) -> None:
    """Refuse a file that another fit writes to, where the system can tell."""
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ValueError(f"checkpoint {path} is in use by another fit; name another file") from None
    except OSError:  # some network file systems have no locks
        return


class Saver(ABC):
    """A hook of a loop that keeps its state in a file, a journal unless ``kept_in`` says otherwise.

    Called after every round, it writes the state down if the last record is ``every`` seconds old.
    As a context manager it writes down what is left at the end, however the fit ends: always the
    state after a whole round, never one in between.
    """

    kept_in: type[CheckpointFile] = Journal

    def __init__(
        self, path: str | os.PathLike[str], kind: str, fingerprint: str, every: float = EVERY
    ) -> None:
        self.path = path
        self.file = self.kept_in(path, kind, fingerprint)
        self.every = every
        self._waiting: Any = None

    @abstractmethod
    def snapshot(self, state: Any) -> Any:
        """What `write` needs of a state that goes on to change."""

    @abstractmethod
    def write(self, snapshot: Any) -> bool:
        """Append a record of what the journal does not hold yet; whether that worked."""

    @contextmanager
    def reading(self) -> Iterator[list[Record]]:
        """The records of the file, which are forgotten in the end.

        Whatever a stranger's record makes its reader raise becomes a `ValueError`.
        """
        try:
            yield self.file.records
        except Exception as error:
            what = f"it has no {error}" if isinstance(error, KeyError) else error
            raise ValueError(
                f"checkpoint {self.path} is not sound: {what}; name another file, or delete it to "
                "start anew"
            ) from error
        finally:
            self.file.records = []

    def __call__(self, state: Any) -> None:
        """Take note of a state, and write it down if it is time to."""
        self._waiting = self.snapshot(state)
        if self.file.age >= self.every:
            self._flush()

    def _flush(self) -> None:
        if self._waiting is not None and self.write(self._waiting):
            self._waiting = None

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            self._flush()
        finally:
            self.file.close()
