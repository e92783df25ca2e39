"""Load a model of any kind from a file: Laconic's own, skops, or a pickle that is trusted."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from laconic.cli.files import load_predictor, need
from laconic.cli.given import WAY_OUT
from laconic.data.errors import UserError, cause

# Types in a .skops file that hold only data, for example an encoder's type of number.
HARMLESS = ("numpy.dtype",)


def load_model(file: str, trust: bool) -> Any:
    """Load a model from a file: Laconic's own, skops, or a pickle if the user trusts it."""
    path = Path(file)
    if path.is_dir():
        raise UserError(f"{file} is a folder. Name the model's file in it.")
    if not path.is_file():
        raise UserError(f"{file}: there is no such file.")
    model = _loaded(file, path, trust)
    if not hasattr(model, "predict"):
        raise UserError(f"{file} holds a {type(model).__name__}, which does not predict.")
    return model


def _loaded(file: str, path: Path, trust: bool) -> Any:
    """Return what the file holds, which may not be a model."""
    names = _archived(path)
    if "schema.json" in names:
        return _load_skops(file, trust)
    if "header.npy" in names:
        return load_predictor(file)
    kind = {".laconic": "Laconic", ".skops": "skops"}.get(path.suffix.lower())
    if kind is not None:
        raise UserError(f"{file} is damaged, or is not a {kind} file.")
    if _start(file, 4) == b"PK\x03\x04":
        raise UserError(f"{file} is damaged, or is neither a Laconic nor a skops file.")
    if not trust:
        raise UserError(
            f"{file} is not a Laconic model. If it is a pickle and you trust its source, add "
            f"--trust. A pickle can run any code when it is loaded.{WAY_OUT}"
        )
    return _unpickle(file)


def _archived(path: Path) -> list[str]:
    """Return the names in a zip archive, such as a Laconic or skops file; none if it is damaged."""
    if not zipfile.is_zipfile(path):
        return []
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except zipfile.BadZipFile:
        return []


def _start(file: str, size: int) -> bytes:
    with open(file, "rb") as stream:
        return stream.read(size)


def _unpickle(file: str) -> Any:
    import joblib

    try:
        return joblib.load(file)
    except Exception as error:  # whatever unpickling another program's file raises
        # A pickle may ask for a package that is not installed. Another file asks for nonsense.
        module = getattr(error, "name", None) if isinstance(error, ImportError) else None
        if isinstance(error, AttributeError) or (module or "").replace(".", "_").isidentifier():
            raise UserError(f"{file} cannot be loaded here: {cause(error)}.{WAY_OUT}") from error
        what = "is not a pickle of a model, or is damaged"
        if _start(file, 1) == b"\x80":  # how pickles begin, except old and compressed ones
            what = "is damaged, or was made by other versions of its packages"
        raise UserError(f"{file} {what} ({cause(error)}).{WAY_OUT}") from error


def _load_skops(file: str, trust: bool) -> Any:
    io = need("skops.io", "skops")
    try:
        types = io.get_untrusted_types(file=file)
        unknown = [name for name in types if name not in HARMLESS]
        if unknown and not trust:
            raise UserError(
                f"{file} holds types that skops does not vouch for: {', '.join(unknown)}. Add "
                f"--trust if you trust the source of the file.{WAY_OUT}"
            )
        return io.load(file, trusted=types)
    except UserError:
        raise
    except Exception as error:  # whatever reading another program's file raises
        why = f"{file} is damaged or cannot be loaded here ({cause(error)}).{WAY_OUT}"
        raise UserError(why) from error
