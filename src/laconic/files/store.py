"""Files that are safe to load from a stranger: flat arrays and a JSON header, never a pickle.

A file is a NumPy ``.npz`` archive whose members are not compressed. Its header names the format and
has a SHA-256 digest of everything else, so that a truncated or altered file is refused. The digest
protects against damage. It does not prove who wrote the file, so nothing in a file is trusted.
Reading a file takes no more memory than a small multiple of its size. Readers check its arrays
against a layout (`laconic.files.layout`).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from io import BytesIO
from typing import IO, Any, BinaryIO
from zipfile import ZIP_STORED, ZipFile, is_zipfile

import numpy as np
from numpy.lib import format as npy

from laconic.files.layout import MOST, check_text
from laconic.files.whole import whole_file

VERSION = 2
# Versions that can be read.
READABLE = (1, 2)
# Most characters of a header. There is a limit because each may become a much larger object.
LONGEST_HEADER = 2**24
# Start of the first line of a checkpoint; see `laconic.files.journal`.
MARK = b"laconic "


def digest(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    """Return the SHA-256 digest of a header and its arrays."""
    sha = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        sha.update(f"{name} {array.dtype.str} {array.shape}".encode())
        sha.update(array.tobytes())
    return sha.hexdigest()


def dump(
    stream: IO[bytes], kind: str, header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> str:
    """Write an archive to a stream and return its digest."""
    header = {**header, "format": f"laconic {kind}", "version": VERSION}
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"array {name!r} holds Python objects and cannot be stored safely")
    seal = digest(header, arrays)
    sealed = json.dumps({"header": header, "sha256": seal})
    np.savez(stream, **{"header": np.array(sealed), **arrays})  # type: ignore[arg-type]
    return seal


def parse(stream: BinaryIO, size: int, kind: str) -> tuple[dict[str, Any], Any, str]:
    """Return header, arrays and digest of an archive of ``size`` bytes that `dump` wrote.

    A `ValueError` says what is wrong with the archive.
    """
    arrays = _members(stream, size)
    text = arrays.pop("header")
    if text.dtype.kind != "U" or text.shape != () or text.dtype.itemsize > 4 * LONGEST_HEADER:
        raise ValueError("its header is not text, or is too long")
    check_text(text)
    sealed = json.loads(str(text))
    header, seal = dict(sealed["header"]), sealed["sha256"]
    json.dumps(header, ensure_ascii=False).encode()  # refuse escapes of invalid characters
    if seal != digest(header, arrays):
        raise ValueError("its contents do not match its digest")
    if header.get("format") != f"laconic {kind}":
        raise WrongKind(f"is a {header.get('format')!r} file, not a 'laconic {kind}' one")
    if header.get("version") not in READABLE:
        known = " or ".join(map(str, READABLE))
        raise WrongKind(f"has format version {header.get('version')!r}, not {known}")
    return header, arrays, seal


class WrongKind(ValueError):
    """A valid file of another kind than the one asked for."""


def write_archive(
    path: str | os.PathLike[str], kind: str, header: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Write a file in one piece. Readers see the old file or the new one, never a part."""
    stream = BytesIO()  # writing an archive needs seek(), which devices do not have
    dump(stream, kind, header, arrays)
    with whole_file(path) as file:
        file.write(stream.getbuffer())


def read_archive(
    path: str | os.PathLike[str], kind: str
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read a file written by `write_archive`. A `ValueError` says what is wrong with the file."""
    with open(path, "rb") as stream:
        try:
            return _read_archive(stream, kind)
        except WrongKind as error:
            raise ValueError(f"{path} {error}") from error
        except Exception as error:  # readers of a damaged archive may raise any error
            raise ValueError(
                f"{path} is not a readable Laconic file, or is damaged: {error}"
            ) from error


def _read_archive(stream: BinaryIO, kind: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    first = stream.readline(64)
    if first.startswith(MARK):
        is_kind = first.decode("ascii", "replace").strip()
        raise WrongKind(f"is a {is_kind!r} file, not a 'laconic {kind}' one")
    if not first.startswith(b"PK") or not is_zipfile(stream):
        raise ValueError("it is another kind of file, or its end is missing")
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    header, arrays, _ = parse(stream, size, kind)
    return header, arrays


def _members(stream: BinaryIO, size: int) -> dict[str, np.ndarray]:
    """Return the arrays of an archive. Each is checked before it is read."""
    arrays: dict[str, np.ndarray] = {}
    with ZipFile(stream) as archive:
        listed = archive.infolist()
        if any(member.compress_type != ZIP_STORED for member in listed):
            raise ValueError("it is compressed, but Laconic files never are")
        if sum(member.file_size for member in listed) > size:
            raise ValueError("its parts claim to be larger than the file")
        for member in listed:
            name = member.filename.removesuffix(".npy")
            if name in arrays or name == member.filename:
                raise ValueError(f"its part {name!r} occurs twice, or is not an array")
            with archive.open(member) as opened:
                arrays[name] = _array(opened, name)
    return arrays


def _array(member: IO[bytes], name: str) -> np.ndarray:
    """Read an array of plain numbers or text. Its size must agree with its own header."""
    version = npy.read_magic(member)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"array {name!r} has an unknown format")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read(member)
    data = bytearray(member.read())
    sound = (
        dtype.kind in "biufU"
        and dtype.itemsize > 0
        and all(0 <= n <= MOST for n in shape)
        and math.prod(shape) * dtype.itemsize == len(data)
    )
    if not sound:
        raise ValueError(f"array {name!r} is of an unknown type, or its size is wrong")
    return np.ndarray(shape, dtype, buffer=data, order="F" if fortran else "C")
