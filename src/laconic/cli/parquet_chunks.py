"""Parquet files in chunks of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from glob import has_magic
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from laconic.beyond.parquet_columns import stored_columns
from laconic.cli.model_rows import Wanted
from laconic.cli.parquet_tables import check_parquet, parquet_errors
from laconic.cli.text_tables import check_twice
from laconic.data.errors import UserError, cause

# Bytes of a column that are read at once.
BUFFER = 1 << 18
# Fewest rows of a chunk. Tables of very many columns would have none otherwise.
LEAST = 256


def several_files(file: str) -> list[Path] | None:
    """Return the Parquet files of a folder or of a pattern. Return None for the name of a file."""
    path = Path(file)
    if not (path.is_dir() or (has_magic(file) and not path.exists())):
        return None
    from laconic.beyond.files import files_of

    paths = files_of(file)
    if paths[0].suffix.lower() == ".npy":
        raise UserError(f"{paths[0]} has no named columns. Give Parquet files.")
    return paths


def table_inputs(file: str, paths: Sequence[Path] | None) -> dict[str, str]:
    """Return what no output may replace, as `check_files` takes it: the table and its files."""
    return {"the table": file} | {f"{path}, a file of the table": str(path) for path in paths or ()}


def size_of(file: str) -> tuple[int, int]:
    """Return the numbers of rows and columns of a Parquet file, or zeros if they are not known."""
    check_parquet(file)
    if not Path(file).is_file() or not find_spec("pyarrow"):
        return 0, 0
    with opened(Path(file)) as one:
        return one.metadata.num_rows, one.metadata.num_columns


def opened(path: Path) -> Any:
    """Open a Parquet file."""
    with parquet_errors(str(path)):
        from pyarrow.parquet import ParquetFile

        return ParquetFile(path, buffer_size=BUFFER, pre_buffer=False)


def parquet_chunks(paths: Sequence[Path], wanted: Wanted, cells: int) -> Iterator[tuple[Path, Any]]:
    """Yield the rows of Parquet files as data frames, each with its file.

    The index of a frame counts the rows of its file. All files are checked before the first row.
    """
    gaps = _checked(paths, wanted)
    for path in paths:
        with opened(path) as file, parquet_errors(str(path)):
            columns = wanted.columns or stored_columns(file.schema_arrow)
            batches = file.iter_batches(max(LEAST, cells // len(columns)), columns=columns)
            start = 0
            for batch in batches:
                if batch.num_rows:
                    yield path, _frame(batch, start, gaps)
                    start += batch.num_rows


def _checked(paths: Sequence[Path], wanted: Wanted) -> set[str]:
    """Check the columns of all files. Return those with missing values."""
    gaps, n_rows = set(), 0
    for path in paths:
        with opened(path) as file, parquet_errors(str(path)):
            names = stored_columns(file.schema_arrow)
            check_twice(str(path), names)
            wanted.check(names, str(path))
            gaps |= {name for name in wanted.columns or names if null_count(file, name)}
            n_rows += file.metadata.num_rows
    if n_rows == 0:
        raise UserError(f"{paths[0]} has no rows.")
    return gaps


def _frame(batch: Any, start: int, gaps: set[str]) -> Any:
    """Return a batch of rows as a data frame.

    pandas keeps whole numbers with gaps as floats. Here this must not depend on the chunk.
    """
    import numpy as np

    frame = batch.to_pandas()
    frame.columns = [str(name) for name in frame.columns]
    frame.index = range(start, start + len(frame))
    for name in gaps & set(frame.columns):
        if isinstance(frame[name].dtype, np.dtype) and frame[name].dtype.kind in "iu":
            frame[name] = frame[name].astype(np.float64)
    return frame


def null_count(file: Any, name: str) -> int:
    """Return the number of missing values of a column, as far as statistics of the file tell it."""
    return sum(told.null_count or 0 for told in _statistics(file, name) if told is not None)


def value_range(paths: Sequence[Path], name: str) -> tuple[Any, Any] | None:
    """Return the smallest and the largest value of a column, if statistics of all files tell it."""
    told: list[Any] = []
    for path in paths:
        with opened(path) as file:
            told += _statistics(file, name)
    if not told or not all(own is not None and own.has_min_max for own in told):
        return None
    return min(own.min for own in told), max(own.max for own in told)


def _statistics(file: Any, name: str) -> list[Any]:
    """Return the statistics of a column in every row group. None stands for none."""
    groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
    columns = (group.column(at) for group in groups for at in range(group.num_columns))
    return [
        column.statistics if column.is_stats_set else None
        for column in columns
        if column.path_in_schema == name
    ]


def first_rows(paths: Sequence[Path], most: int, each: int) -> Any:
    """Return at most ``each`` first rows of every file as a data frame, in all at most ``most``."""
    import pyarrow

    parts: list[Any] = []
    read: list[Path] = []
    for path in paths:
        n_rows = min(each, most - sum(part.num_rows for part in parts))
        if n_rows <= 0:
            break
        with opened(path) as file, parquet_errors(str(path)):
            batch = next(file.iter_batches(n_rows, columns=stored_columns(file.schema_arrow)), None)
        if batch is not None and batch.num_rows:
            parts.append(pyarrow.Table.from_batches([batch]))
            read.append(path)
    parts = _text_where_not_all_have_categories(parts)
    try:
        frame = pyarrow.concat_tables(parts, promote_options="permissive").to_pandas()
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError) as error:
        raise UserError(_different_types(parts, read) or cause(error)) from error
    frame.columns = [str(name) for name in frame.columns]
    return frame.reset_index(drop=True)


def _text_where_not_all_have_categories(parts: list[Any]) -> list[Any]:
    """Return tables in which a column of categories is one in all tables, or else plain values."""
    from pyarrow.types import is_dictionary

    mixed = {
        field.name
        for part in parts
        for field in part.schema
        if is_dictionary(field.type)
        and not all(is_dictionary(p.schema.field(field.name).type) for p in parts)
    }
    out = []
    for part in parts:
        for at, field in enumerate(part.schema):
            if field.name in mixed and is_dictionary(field.type):
                plain = part.column(at).cast(field.type.value_type)
                part = part.set_column(at, field.name, plain)
        out.append(part)
    return out


def _different_types(parts: list[Any], paths: list[Path]) -> str:
    """Return which column has types that do not go together, and in which files."""
    import pyarrow

    first = parts[0]
    for part, path in zip(parts[1:], paths[1:], strict=True):
        for name in first.column_names:
            types = [table.schema.field(name).type for table in (first, part)]
            schemas = [pyarrow.schema([(name, own)]) for own in types]
            try:
                pyarrow.unify_schemas(schemas, promote_options="permissive")
            except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
                return (
                    f"column {name!r} holds {types[0]} in {paths[0]} and {types[1]} in {path}. "
                    "Give it one type in all files."
                )
    return ""
