"""Parts of Parquet files: row groups that follow each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from laconic.beyond.files import KnownFile
from laconic.beyond.parquet_columns import stored_columns
from laconic.beyond.read_again import ReadAgain
from laconic.beyond.same_columns import difference, not_a_column
from laconic.data.cells import odd_columns
from laconic.data.elsewhere import CHUNK

Convert = Callable[[Any, str, Path], Any]
"""Turns a column of a file into another one. It is given its name and the file for messages."""


class Groups(NamedTuple):
    """Row groups of one file that follow each other."""

    file: KnownFile
    groups: tuple[int, ...]
    n_rows: int

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self.file.path


class ParquetRows:
    """The rows of Parquet files with the same columns.

    Parameters
    ----------
    paths : sequence of Path
    unread : iterable of str, optional
        Columns that are left out.
    categories : iterable of str, optional
        Columns that are read as categories, such as codes.
    numbers : iterable of str, optional
        Columns that hold numbers, perhaps written as text.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        unread: Iterable[str] = (),
        categories: Iterable[str] = (),
        numbers: Iterable[str] = (),
    ) -> None:
        self.paths = list(paths)
        self._groups: list[Groups] = []
        self._schemas: dict[Path, Any] = {}
        for path in self.paths:
            file, opened = KnownFile.of(path), _opened(path)
            names = stored_columns(opened.schema_arrow)
            if path == self.paths[0]:
                self.names = names
                _check_twice(path, names)
            elif names != self.names:
                raise ValueError(difference(str(path), names, str(self.paths[0]), self.names))
            self._schemas[path] = opened.schema_arrow
            self._groups += _cut(file, opened.metadata)
        self.n_rows = sum(groups.n_rows for groups in self._groups)
        self._unread = set(unread)
        self._kinds = {name: as_categories for name in categories}
        self._kinds |= {name: as_numbers for name in numbers}

    def parts(self, y: Any, sample_weight: Any) -> ReadAgain:
        """Return the parts. Labels and weights are columns, given by name."""
        given = [(y, "y"), *([] if sample_weight is None else [(sample_weight, "sample_weight")])]
        for name, argument in given:
            if not isinstance(name, str):
                raise TypeError(
                    f"with Parquet files, {argument} must be the name of a column, not "
                    f"{type(name).__name__}"
                )
            if name not in self.names:
                raise ValueError(not_a_column(argument, name, str(self.paths[0]), self.names))
        if y == sample_weight:
            raise ValueError(f"column {y!r} cannot be both y and sample_weight")
        features = self._features(y, sample_weight)
        if not features:
            raise ValueError(f"{self.paths[0]} has no column besides y and sample_weight")
        sources = [
            partial(read, own, features, y, sample_weight, self._kinds) for own in self._groups
        ]
        paths = [own.path for own in self._groups]
        return ReadAgain(
            sources,
            names=[
                str(own.path)
                if paths.count(own.path) == 1
                else f"{own.path} from row group {own.groups[0]}"
                for own in self._groups
            ],
        )

    def glances(self, y: str, sample_weight: str | None) -> ReadAgain:
        """Return the parts for a first look: columns of plain numbers in all files are not read."""
        features = self._features(y, sample_weight)
        empty = (schema.empty_table().select(features) for schema in self._schemas.values())
        odd = {at for table in empty for at, _ in odd_columns(table)}
        read_too = [n for at, n in enumerate(features) if at in odd or n in self._kinds]
        asked = features, read_too, y, sample_weight, self._kinds
        return ReadAgain([partial(_glance, own, *asked) for own in self._groups])

    def _features(self, y: str, sample_weight: str | None) -> list[str]:
        left_out = {y, sample_weight} | self._unread
        return [name for name in self.names if name not in left_out]


def _check_twice(path: Path, names: Sequence[str]) -> None:
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise ValueError(
            f"{path} has {names.count(twice[0])} columns {twice[0]!r}; give each its own name"
        )


def _opened(path: Path) -> Any:
    from pyarrow import ArrowInvalid
    from pyarrow.parquet import ParquetFile

    try:
        return ParquetFile(path, memory_map=True)
    except ArrowInvalid as error:
        raise ValueError(f"{path} cannot be read as a Parquet file: {error}") from error


def _cut(file: KnownFile, meta: Any) -> list[Groups]:
    """Join row groups until they have about `CHUNK` rows."""
    out: list[Groups] = []
    for number in range(meta.num_row_groups):
        n_rows = meta.row_group(number).num_rows
        if out and out[-1].n_rows + n_rows <= CHUNK:
            last = out[-1]
            out[-1] = Groups(file, (*last.groups, number), last.n_rows + n_rows)
        else:
            out.append(Groups(file, (number,), n_rows))
    return out


def read(
    groups: Groups,
    features: list[str],
    y: str,
    sample_weight: str | None,
    kinds: Mapping[str, Convert],
) -> Any:
    """Read the features of a part as an Arrow table, with its labels and weights."""
    names = [*features, y, *([] if sample_weight is None else [sample_weight])]
    stored = _opened(groups.file.unchanged()).read_row_groups(list(groups.groups), columns=names)
    table = _with_plain_text(stored)
    weight = None if sample_weight is None else _numbers(table.column(sample_weight))
    X = table.select(features)
    for name, convert in kinds.items():
        X = X.set_column(features.index(name), name, convert(X.column(name), name, groups.path))
    return X, _numbers(table.column(y)), weight


def _with_plain_text(table: Any) -> Any:
    """Return a table with views of text as plain text. Arrow cannot select rows of such views."""
    import pyarrow

    for at, field in enumerate(table.schema):
        if str(field.type) == "string_view":  # older Arrow has no such type to compare with
            text = table.column(at).cast(pyarrow.string())
            table = table.set_column(at, field.name, text)
    return table


def _glance(
    groups: Groups,
    features: list[str],
    read_too: list[str],
    y: str,
    sample_weight: str | None,
    kinds: Mapping[str, Convert],
) -> Any:
    """Read a part like `read`, with zeros in the features that are not read."""
    import pyarrow

    known, labels, weight = read(groups, read_too, y, sample_weight, kinds)
    schema = _opened(groups.path).schema_arrow
    columns = {}
    for name in features:
        if name in read_too:
            columns[name] = known.column(name)
        else:  # zeros of NumPy take no memory until they are read
            zeros = np.zeros(groups.n_rows, schema.field(name).type.to_pandas_dtype())
            columns[name] = pyarrow.array(zeros)
    return pyarrow.table(columns), labels, weight


def as_categories(column: Any, name: str, path: Path) -> Any:
    """Return a column as one that is declared as categorical."""
    import pyarrow

    if pyarrow.types.is_dictionary(column.type):
        return column
    return column.dictionary_encode()


def as_numbers(column: Any, name: str, path: Path) -> Any:
    """Return a column as numbers."""
    import pyarrow

    try:
        return column.cast(pyarrow.float64())
    except pyarrow.ArrowInvalid as error:
        raise ValueError(
            f"column {name!r} of {path} must hold numbers, as its first rows do: {error}"
        ) from error


def _numbers(column: Any) -> np.ndarray:
    """Return a column as an array. Missing values make it an array of objects.

    Text becomes an array of text, as it takes ten times as long to sort objects.
    """
    import pyarrow

    types, known = pyarrow.types, column.null_count == 0
    if known and (types.is_string(column.type) or types.is_large_string(column.type)):
        column = column.dictionary_encode()
    if known and types.is_dictionary(column.type):
        encoded = column.unify_dictionaries().combine_chunks()
        whole = encoded if isinstance(encoded, pyarrow.Array) else encoded.chunk(0)
        different = np.asarray(whole.dictionary.to_pylist())
        return different[whole.indices.to_numpy()]
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    values: np.ndarray = column.to_numpy()
    return values
