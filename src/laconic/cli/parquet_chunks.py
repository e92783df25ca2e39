"""Parquet files in chunks of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from laconic.cli.model_rows import Wanted
from laconic.cli.parquet_tables import check_parquet, parquet_errors
from laconic.cli.text_tables import check_twice
from laconic.data.errors import UserError

# Fewest rows of a chunk. Tables of very many columns would have none otherwise.
LEAST = 256


def parquet_files(file: str, cells: int) -> list[Path] | None:
    """Return the files of a path, a folder or a pattern, to be read in chunks.

    Return None for one file of at most ``cells`` cells, which need not be cut. Return it for a
    missing file and without pyarrow, too.
    """
    if Path(file).is_file() or not find_spec("pyarrow"):
        check_parquet(file)
        if not find_spec("pyarrow"):
            return None
        with opened(Path(file)) as one:
            small = one.metadata.num_rows * one.metadata.num_columns <= cells
        return None if small else [Path(file)]
    from laconic.beyond.files import files_of

    paths = files_of(file)
    if paths[0].suffix == ".npy":
        raise UserError(f"{paths[0]} is not a Parquet file, which rows in several files must be.")
    return paths


def opened(path: Path) -> Any:
    """Open a Parquet file."""
    from pyarrow.parquet import ParquetFile

    with parquet_errors(str(path)):
        return ParquetFile(path, memory_map=True)


def parquet_chunks(path: Path, paths: Sequence[Path], wanted: Wanted, cells: int) -> Iterator[Any]:
    """Yield the rows of one of several Parquet files as data frames.

    Their index counts the rows of the file. A column has the same type in every chunk of all files.
    """
    with opened(path) as file, parquet_errors(str(path)):
        names = stored_columns(file)
        check_twice(str(path), names)
        wanted.check(names, str(path))
        columns = names if wanted.columns is None else wanted.columns
        if file.metadata.num_rows == 0 and len(paths) == 1:
            raise UserError(f"{path} has no rows.")
        start = 0
        for batch in file.iter_batches(max(LEAST, cells // max(1, len(columns))), columns=columns):
            frame = batch.to_pandas()
            frame.columns = [str(name) for name in frame.columns]
            frame.index = range(start, start + len(frame))
            start += len(frame)
            yield frame


def stored_columns(file: Any) -> list[str]:
    """Return the names of the columns of a Parquet file, without an index that pandas wrote."""
    schema = file.schema_arrow
    index = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in schema.names if name not in [i for i in index if isinstance(i, str)]]


def first_rows(paths: Sequence[Path], most: int, each: int) -> Any:
    """Return at most ``each`` first rows of every file as a data frame, in all at most ``most``."""
    import pyarrow

    parts: list[Any] = []
    for path in paths:
        n_rows = min(each, most - sum(part.num_rows for part in parts))
        if n_rows <= 0:
            break
        with opened(path) as file, parquet_errors(str(path)):
            batch = next(file.iter_batches(n_rows, columns=stored_columns(file)), None)
        if batch is not None and batch.num_rows:
            parts.append(pyarrow.Table.from_batches([batch]))
    frame = pyarrow.concat_tables(parts, promote_options="permissive").to_pandas()
    frame.columns = [str(name) for name in frame.columns]
    return frame.reset_index(drop=True)
