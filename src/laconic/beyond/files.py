"""Find the files that a path, a folder, a pattern or a list of paths means."""

from __future__ import annotations

from collections.abc import Sequence
from glob import glob, has_magic
from os import PathLike, fspath
from pathlib import Path
from typing import NamedTuple

from laconic.data.elsewhere import ENDINGS


class KnownFile(NamedTuple):
    """A file, and what shows whether it was changed since."""

    path: Path
    size: int
    written: int
    """When it was changed last, in nanoseconds."""
    number: int
    """Number of the file on its disk. A file that replaces it has another one."""

    @classmethod
    def of(cls, path: Path) -> KnownFile:
        """Remember a file as it is now."""
        told = path.stat()
        return cls(path, told.st_size, told.st_mtime_ns, told.st_ino)

    def unchanged(self) -> Path:
        """Return the path. Refuse a file that was changed: parts of a fit would not agree."""
        if KnownFile.of(self.path) != self:
            raise self._changed()
        return self.path

    def check_in_place(self) -> None:
        """Refuse a file that was changed in place. One that was replaced or deleted is unchanged.

        This is for files that are open, such as those of memory maps.
        """
        if self.path.exists():
            now = KnownFile.of(self.path)
            if now.number == self.number and now != self:
                raise self._changed()

    def _changed(self) -> ValueError:
        return ValueError(f"{self.path} was changed while its rows were in use; start again")


def files_of(paths: str | PathLike[str] | Sequence[str | PathLike[str]]) -> list[Path]:
    """Return the files with rows, in order.

    The files of a folder or of a pattern such as ``"rows/*.parquet"`` are sorted by name. A list
    stays in its order. Files and folders whose names begin with a dot or an underscore are no rows:
    programs that write folders of Parquet files keep their notes there.
    """
    listed = [paths] if isinstance(paths, str | PathLike) else list(paths)
    files = [file for path in listed for file in _files(fspath(path))]
    kinds = sorted({".npy" if file.suffix.lower() == ".npy" else "Parquet" for file in files})
    if len(kinds) > 1:
        raise ValueError(f"files must be of one kind, not {kinds[0]} and {kinds[1]}")
    return files


def may_be_files(text: str) -> bool:
    """Return whether a text looks like the name of files with rows, a folder or a pattern."""
    return text.lower().endswith(ENDINGS) or has_magic(text) or Path(text).is_dir()


def _files(path: str) -> list[Path]:
    if not path:
        raise FileNotFoundError('an empty text names no file; give "." for the current folder')
    given = Path(path)
    if given.is_dir():
        found = sorted(
            file
            for file in given.rglob("*")
            if file.suffix.lower() in ENDINGS and not _hidden(file.relative_to(given))
        )
        if not found:
            raise FileNotFoundError(f"folder {path} has no .npy or .parquet files")
        _check_folders(found, len(given.parts))
        return found
    if has_magic(path) and not given.exists():
        n_given = [has_magic(part) for part in given.parts].index(True)
        matches = sorted(map(Path, glob(path, recursive=True)))
        found = [file for file in matches if not _hidden(Path(*file.parts[n_given:]))]
        if not found:
            raise FileNotFoundError(f"no file matches {path}")
        _check_folders(found, n_given)
        given = found[0]
    else:
        found = [given]
    if not given.exists():
        raise FileNotFoundError(f"file {path} does not exist")
    if wrong := [file for file in found if file.suffix.lower() not in ENDINGS]:
        raise ValueError(f"{wrong[0]} must be a .npy or a .parquet file, or a folder of them")
    return found


def _hidden(file: Path) -> bool:
    return any(part.startswith((".", "_")) for part in file.parts)


def _check_folders(files: Sequence[Path], n_given: int) -> None:
    """Refuse columns that are only in names of folders, such as those that Spark writes.

    The first ``n_given`` parts of the paths were given by name, so they are the same for all files.
    """
    for file in files:
        named = next((name for name in file.parts[n_given:-1] if "=" in name), None)
        if named is not None:
            raise ValueError(
                f"{file} keeps columns in the names of its folders, such as {named!r}; write these "
                "columns into the files"
            )
