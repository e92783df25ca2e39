"""Files that are safe to load from a stranger: flat arrays and a JSON header, never a pickle.

A file is a NumPy ``.npz`` archive. Its header names the format and carries a SHA-256 digest of
everything else, so that a truncated or altered file is refused, not half read. The digest guards
against damage; it does not prove who wrote the file.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np

VERSION = 1


def _digest(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    sha = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        sha.update(f"{name} {array.dtype.str} {array.shape}".encode())
        sha.update(array.tobytes())
    return sha.hexdigest()


def write_archive(
    path: str | os.PathLike[str], kind: str, header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Write a file in one piece: readers see the old file or the new one, never a part."""
    header = {**header, "format": f"laconic {kind}", "version": VERSION}
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"array {name!r} holds Python objects and cannot be stored safely")
    sealed = json.dumps({"header": header, "sha256": _digest(header, arrays)})
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}")
    partial = path.with_name(f".{path.name}.partial")
    try:
        with open(partial, "wb") as file:
            np.savez(file, **{"header": np.array(sealed), **arrays})  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def read_archive(
    path: str | os.PathLike[str], kind: str
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read a file written by `write_archive`; a `ValueError` says what is wrong with it."""
    try:
        with open(path, "rb") as stream:
            if not is_zipfile(stream):
                raise ValueError("`laconic fit` and `Predictor.save` write other files")
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
        sealed = json.loads(str(arrays.pop("header")))
        header, digest = dict(sealed["header"]), sealed["sha256"]
        sound = digest == _digest(header, arrays)
    except FileNotFoundError:
        raise
    except Exception as error:  # whatever a damaged archive makes its readers raise
        raise ValueError(
            f"{path} is not a readable Laconic file, or is damaged: {error}"
        ) from error
    if not sound:
        raise ValueError(f"{path} is damaged: its contents do not match its digest")
    if header.get("format") != f"laconic {kind}":
        raise ValueError(f"{path} is a {header.get('format')!r} file, not a 'laconic {kind}' one")
    if header.get("version") != VERSION:
        raise ValueError(f"{path} has format version {header.get('version')}, not {VERSION}")
    return header, arrays
