"""Journals: files that grow by one record at a time and never rewrite earlier records.

A journal begins with a line that names its kind. Records follow. Each record is its length, a check
sum of that length, and an archive of `laconic.files.store`. Each record holds the digest of the
record before it, so that none can be removed or moved. A process that is killed while it writes
leaves an incomplete record at the end. The next process cuts it off and keeps all records before
it. The check sum tells an incomplete record from a damaged length.

A record whose header says ``passing`` counts only until the next one. It suits a state of which
only the last form matters. The next record follows it in the file, so a kill always leaves one of
the two. If records that no longer count take most of the file, a new file without them replaces it
in one step.

A slate holds only one record, and every new record replaces the whole file. It suits states that do
not grow and of which only the last one matters.
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
from typing import IO, Any, BinaryIO, TypeVar
from zlib import crc32

import numpy as np

try:
    import fcntl
except ImportError:  # Windows has no fcntl
    fcntl = None  # type: ignore[assignment]

from laconic.files.store import MARK, WrongKind, dump, parse, read_archive, write_archive
from laconic.files.whole import check_can_write, new_file

# Bytes of records that no longer count, from which on the file may be written anew without them.
ROOM = 1 << 20

# Seconds between two records. A killed fit loses at most this much work and the current round.
EVERY = 5.0

_PREFIX = struct.Struct("<QI")

Record = tuple[dict[str, Any], dict[str, np.ndarray]]
Self = TypeVar("Self", bound="Saver")


def prefix(length: int) -> bytes:
    """Return the bytes before a record of ``length`` bytes: the length and its check sum."""
    return _PREFIX.pack(length, crc32(length.to_bytes(8, "little")))


class CheckpointFile(ABC):
    """A file of records of one kind, for data and settings of one fingerprint.

    Parameters
    ----------
    path : str or path-like
        An existing file is continued; otherwise a new one is created. An `OSError` says why the
        path cannot be used.
    kind : str
        What the file contains, for example ``"checkpoint"``.
    fingerprint : str
        A file with another fingerprint is refused.

    Attributes
    ----------
    records : list of (header, arrays)
        The records that the file held when it was opened. They are complete but not trusted: a
        stranger may have written them.
    """

    def __init__(self, path: str | os.PathLike[str], kind: str, fingerprint: str) -> None:
        self.path = path
        self.kind = kind
        self.fingerprint = fingerprint
        self.records: list[Record] = []
        self._written = -np.inf
        self._failed = False
        if Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir()):
            raise ValueError(f"{path} cannot be a checkpoint: it is not a regular file")
        check_can_write(path)

    def _take(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Add a record of the file to ``records``; refuse a record of another fit."""
        if header.get("fingerprint") != self.fingerprint:
            raise ValueError(
                f"checkpoint {self.path} was written for other data or settings; "
                "name another file, or delete it to start again"
            )
        self.records.append((header, arrays))

    @property
    def age(self) -> float:
        """Seconds since the last record was written; infinite before the first."""
        return time.monotonic() - self._written

    def append(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bool:
        """Write a record. Return whether that worked. The first failure gives a warning."""
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
        """Write a record. After an `OSError` the file is unchanged."""

    @abstractmethod
    def close(self) -> None:
        """Release the file for other processes."""


class Slate(CheckpointFile):
    """A file of one record. The next record replaces it as a whole."""

    def __init__(self, path: str | os.PathLike[str], kind: str, fingerprint: str) -> None:
        super().__init__(path, kind, fingerprint)
        if Path(path).exists() and Path(path).stat().st_size:
            self._take(*read_archive(path, kind))

    def _put(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        write_archive(self.path, self.kind, header, arrays)

    def close(self) -> None:
        """Do nothing, because the file is not open between two records."""


class Journal(CheckpointFile):
    """A file of all records. Earlier records never change.

    On systems with file locks, no other process can open the journal while it is open.
    """

    def __init__(self, path: str | os.PathLike[str], kind: str, fingerprint: str) -> None:
        super().__init__(path, kind, fingerprint)
        self._line = MARK + kind.encode() + b"\n"
        self._last = ""
        self._end = 0
        self._spans: list[tuple[int, int]] = []  # first and last bytes of the records that count
        self._passing = False  # whether the last of them is a passing one
        self._rewrites = True
        # There is no buffer, because a failed write must not be repeated later on its own. If two
        # fits create the file at the same time, the lock decides which one gets it.
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
        self._file = FileIO(os.open(path, flags, 0o666), "r+")
        try:
            _lock(self._file, path)
            if not os.path.samestat(os.fstat(self._file.fileno()), os.stat(path)):
                raise _in_use(path)  # another fit has just written the file anew
            with open(path, "rb") as stream:
                self._read(stream)
        except BaseException:
            self._file.close()
            raise

    def _read(self, stream: BinaryIO) -> None:
        """Read all complete records, and ignore an incomplete one at the end."""
        size = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        start = stream.read(len(self._line))
        if not self._line.startswith(start):
            read_archive(self.path, self.kind)  # raises an error that names the kind of file
            raise ValueError(
                f"checkpoint {self.path} was written by an older version of Laconic; name another "
                "file, or delete it to start again"
            )
        if start != self._line:
            return
        self._end = len(start)
        while (found := self._next(stream, size)) is not None:
            header, arrays, seal = found
            if self._passing:
                self.records.pop()
            self._take(header, arrays)
            self._count(header, seal, stream.tell())

    def _count(self, header: dict[str, Any], seal: str, end: int) -> None:
        """Take note of a record that ends at ``end``."""
        if self._passing:
            self._spans.pop()
        self._passing = header.get("passing") is True
        if not self._passing:
            self._last = seal
        self._spans.append((self._end, end))
        self._end = end

    def _next(self, stream: BinaryIO, size: int) -> tuple[dict[str, Any], Any, str] | None:
        """Return the next record with its digest, or ``None`` if there is no complete record."""
        before = stream.read(_PREFIX.size)
        if len(before) < _PREFIX.size:
            return None
        length = _PREFIX.unpack(before)[0]
        if before != prefix(length):
            if not any(before) and not any(stream.read()):  # zeros, as after a power cut
                return None
            raise self._damaged("a record has an invalid length")
        if length > size - stream.tell():
            return None
        try:
            found = parse(BytesIO(stream.read(length)), length, self.kind)
            if found[0].get("after") != self._last:
                raise ValueError("a record is not in its original place")
        except WrongKind as error:
            raise ValueError(f"checkpoint {self.path} {error}") from error
        except Exception as error:  # readers of a damaged archive may raise any error
            if stream.tell() < size:
                raise self._damaged(error) from error
            warnings.warn(
                f"checkpoint {self.path} ends in a damaged record ({error}); the fit goes on from "
                "the record before",
                RuntimeWarning,
                stacklevel=2,
            )
            return None
        return found

    def _damaged(self, why: Any) -> ValueError:
        return ValueError(
            f"checkpoint {self.path} is damaged: {why}; name another file, or delete it to start "
            "again"
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
        self._end += len(begun)
        self._count(header, seal, self._end + len(whole) - len(begun))
        counted = sum(end - start for start, end in self._spans)
        if self._rewrites and self._end - len(self._line) - counted > max(ROOM, counted):
            self._rewrite()

    def _rewrite(self) -> None:
        """Replace the file by one without the records that no longer count, if that is possible."""
        target, spans, at = Path(os.path.realpath(self.path)), list[tuple[int, int]](), 0
        try:
            partial, stream = new_file(target)
            try:
                _lock(stream, self.path)
                with open(target, "rb") as old:
                    at = stream.write(old.read(len(self._line)))
                    for start, end in self._spans:
                        old.seek(start)
                        spans.append((at, at + stream.write(old.read(end - start))))
                        at = spans[-1][1]
                stream.flush()
                os.fsync(stream.fileno())
                os.replace(partial, target)
            except BaseException:
                stream.close()
                partial.unlink(missing_ok=True)
                raise
        except OSError:  # the folder may be closed to us, and some systems keep open files
            self._rewrites = False
            return
        self._file.close()
        self._file, self._spans, self._end = FileIO(os.dup(stream.fileno()), "wb"), spans, at
        stream.close()

    def _write(self, data: bytes) -> None:
        """Write after the last complete record, and wait until the data is on the disk."""
        self._file.truncate(self._end)
        self._file.seek(self._end)
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Release the file for other processes."""
        if fcntl is not None:
            with suppress(OSError):  # a child of this process may still have the file open
                fcntl.flock(self._file, fcntl.LOCK_UN)
        self._file.close()


def _lock(file: IO[bytes], path: str | os.PathLike[str]) -> None:
    """Refuse a file that another fit writes to, if the system has locks."""
    if fcntl is None:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _in_use(path) from None
    except OSError:  # some network file systems have no locks
        return


def _in_use(path: str | os.PathLike[str]) -> ValueError:
    return ValueError(f"checkpoint {path} is in use by another fit; name another file")


class Saver(ABC):
    """A hook of a loop that saves its state to a file: a journal, or the type in ``kept_in``.

    It is called after every round, and writes the state if the last record is ``every`` seconds
    old. As a context manager it also writes the last state when the fit ends, for whatever reason.
    It always writes the state after a complete round.
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
        """Copy what `write` needs from a state that will change."""

    @abstractmethod
    def write(self, snapshot: Any) -> bool:
        """Append a record of what the journal does not hold yet. Return whether that worked."""

    @contextmanager
    def reading(self) -> Iterator[list[Record]]:
        """Give the records of the file, and drop them at the end."""
        try:
            with self.sound():
                yield self.file.records
        finally:
            self.file.records = []

    @contextmanager
    def sound(self) -> Iterator[None]:
        """Make a `ValueError` of any error that an untrusted record causes in its reader."""
        try:
            yield
        except Exception as error:
            what = f"it has no {error}" if isinstance(error, KeyError) else error
            raise ValueError(
                f"checkpoint {self.path} is not sound: {what}; name another file, or delete it to "
                "start again"
            ) from error

    def __call__(self, state: Any) -> None:
        """Keep a snapshot of a state, and write it if the last record is old enough."""
        self._waiting = self.snapshot(state)
        if self.file.age >= self.every:
            self.flush()

    def flush(self) -> None:
        """Write the snapshot that waits, if there is one."""
        if self._waiting is not None and self.write(self._waiting):
            self._waiting = None

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            self.flush()
        finally:
            self.file.close()
