"""Parquet files of tables: whether they are Parquet at all, and their errors in plain words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from laconic.cli.text_tables import START, check_start
from laconic.data.errors import UserError, cause


def check_parquet(file: str) -> None:
    """Refuse a file that does not begin as Parquet files do, and say what it looks like."""
    if not Path(file).is_file():
        return
    with open(file, "rb") as opened:
        start = opened.read(START)
    if not start.startswith((b"PAR1", b"PARE")):
        check_start(file, start)
        text = b"\0" not in start
        kind = "looks like text, and not like Parquet" if text else "is not a Parquet file"
        raise UserError(f"{file}: this {kind}." + " Let its name end in .csv." * text)


@contextmanager
def parquet_errors(file: str) -> Iterator[None]:
    """Say in plain words why a Parquet file cannot be read."""
    try:
        yield
    except ImportError as error:
        raise UserError('reading Parquet needs pyarrow: pip install ".[tables]"') from error
    except ValueError as error:
        if "magic bytes" in str(error) or "footer" in str(error):
            raise UserError(
                f"{file}: this Parquet file is damaged, or its end is missing."
            ) from error
        if twice := re.search(r"Multiple matches for FieldRef.Name\((.*?)\) in", str(error)):
            raise UserError(
                f"{file} has several columns {twice[1]!r}. Give each its own name."
            ) from error
        raise UserError(f"{file} cannot be read as Parquet: {cause(error)}") from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise UserError(f"{file}: this Parquet file is damaged ({cause(error)}).") from error
