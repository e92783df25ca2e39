"""Read columns of data frames of any library as numpy arrays.

Frames are read through narwhals. It is imported when the first frame arrives.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

# Other names of a time zone.
_SAME_ZONE = dict.fromkeys(("Etc/UTC", "UTC+00:00", "+00:00", "Z"), "UTC")


@dataclass(frozen=True)
class Cells:
    """The cells of one column of a data frame."""

    name: Any
    values: np.ndarray
    """Numbers (NaN where missing), numpy's times or durations, or objects."""
    labels: list[Any] | None = None
    """The categories, if the column is declared as categorical; otherwise None."""
    zone: str = ""
    """The time zone of times, if it is known. The values are those of its clock."""

    @property
    def kind(self) -> str:
        """``"M"`` for times, ``"m"`` for durations, ``"O"`` for text and other objects.

        Every other kind holds numbers.
        """
        return self.values.dtype.kind


def is_frame(X: Any) -> bool:
    """Return whether an input has named columns, as data frames do."""
    return hasattr(type(X), "columns")


def column_names(X: Any) -> list[Any]:
    """Return the names of the columns of a frame."""
    return list(X.columns) if hasattr(X, "iloc") else list(_opened(X).columns)


def read_column(X: Any, position: int) -> Cells:
    """Return one column of a frame."""
    import narwhals

    # Select by position, because pandas allows two columns of one name and narwhals does not.
    if hasattr(X, "iloc"):
        return _cells(narwhals.from_native(X.iloc[:, position], series_only=True))
    return _cells(_opened(X)[:, position])


def odd_columns(X: Any) -> Iterator[tuple[int, Cells]]:
    """Yield position and cells of every column that numpy does not read as plain numbers."""
    if hasattr(X, "iloc"):
        plain = [_plain(dtype) for dtype in X.dtypes]
    else:
        plain = [_has_numpy_type(kind) for kind in _opened(X).schema.values()]
    for position in np.flatnonzero(~np.array(plain, dtype=bool)).tolist():
        yield position, read_column(X, position)


def missing_columns(X: Any) -> list[int]:
    """Return the positions of the columns of a frame in which all values are missing."""
    if hasattr(X, "iloc"):
        first = X.iloc[:1].isna().to_numpy().all(axis=0)  # most columns begin with a value
        return [at for at in np.flatnonzero(first).tolist() if X.iloc[:, at].isna().all()]
    gaps = _opened(X).null_count().row(0)
    return [at for at, number in enumerate(gaps) if number == len(X)]


def _plain(dtype: Any) -> bool:
    """Return whether a column of pandas can stay as it is.

    Numpy reads numbers and truth values. Scikit-learn reads sparse columns.
    """
    if isinstance(dtype, np.dtype):
        return dtype.kind in "biuf"
    return str(dtype).startswith("Sparse[")


def is_single(X: Any, names: Collection[str] | None = None) -> bool:
    """Return whether single precision holds a frame's columns without loss.

    With ``names``, only the columns of these names count. Numpy's rule for mixed types decides: it
    gives float32 for float32 mixed with truth values and small whole numbers. Categories, dates and
    text become double precision.
    """
    if hasattr(X, "iloc"):
        kinds = [_numpy_type(dtype) for dtype in X.dtypes]
    else:
        kinds = [_type_of_narwhals(kind) for kind in _opened(X).schema.values()]
    if names is not None:
        known = column_names(X)
        kinds = [kind for name, kind in zip(known, kinds, strict=True) if str(name) in names]
    return bool(kinds) and np.result_type(*kinds) == np.float32


def _has_numpy_type(kind: Any) -> bool:
    """Return whether numpy has this type of number of narwhals.

    Numpy has neither decimals nor int128.
    """
    return bool(kind.is_numeric()) and hasattr(np, str(kind).lower())


def _numpy_type(dtype: Any) -> np.dtype:
    """Return the numpy type of a column of pandas; for a nullable type, ignore its gaps."""
    name = "subtype" if str(dtype).startswith("Sparse[") else "numpy_dtype"
    found = dtype if isinstance(dtype, np.dtype) else getattr(dtype, name, None)
    if isinstance(found, np.dtype) and found.kind in "biuf":
        return found
    return np.dtype(np.float64)


def _type_of_narwhals(kind: Any) -> np.dtype:
    if str(kind) == "Boolean":
        return np.dtype(bool)
    return np.dtype(str(kind).lower() if _has_numpy_type(kind) else "float64")


def check_names(X: Any) -> None:
    """Refuse a frame without columns, or in which two columns have the same name."""
    names = column_names(X)
    if not names:
        raise ValueError("X has no columns; give at least one feature")
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"X has {names.count(twice)} columns {twice!r}; give each its own name")


def read_series(column: Any, name: Any) -> Cells:
    """Return the cells of a column that belongs to no frame: a series or any sequence of values."""
    import narwhals

    series = narwhals.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, narwhals.Series):
        return _cells(series.alias(name))
    values = np.asarray(column)
    return Cells(name, values if values.dtype.kind in "biufmM" else values.astype(object))


def replaced(X: Any, new: Mapping[int, np.ndarray]) -> Any:
    """Return the frame with new values in some columns, given by position.

    The given frame does not change.
    """
    if not new:
        return X
    if hasattr(X, "iloc"):
        out = X.copy(deep=False)
        for position, values in new.items():
            out.isetitem(position, values)
        return out
    import narwhals

    frame = _opened(X)
    names, of = frame.columns, frame.implementation
    series = [narwhals.new_series(names[i], v, backend=of) for i, v in new.items()]
    return frame.with_columns(*series).to_native()


def dropped(X: Any, names: Iterable[Any]) -> Any:
    """Return the frame without some columns."""
    if hasattr(X, "iloc"):
        return X.drop(columns=list(names))
    return _opened(X).drop(*names).to_native()


def _opened(X: Any) -> Any:
    import narwhals

    try:
        return narwhals.from_native(X, eager_only=True)
    except TypeError as error:
        do = "call its collect() first" if hasattr(X, "collect") else "use pandas or polars"
        raise TypeError(f"X is a {type(X).__name__}, not a data frame in memory; {do}") from error


def _cells(series: Any) -> Cells:
    """Return the cells of a series of narwhals."""
    import narwhals as nw

    name, kind = series.name, series.dtype
    if isinstance(kind, nw.Datetime):
        zone = kind.time_zone
        clock = series if zone is None else series.dt.replace_time_zone(None)
        times = clock.to_numpy().astype(f"datetime64[{kind.time_unit}]")
        return Cells(name, times, zone=_SAME_ZONE.get(str(zone), str(zone or "")))
    if isinstance(kind, nw.Date | nw.Duration):
        return Cells(name, series.to_numpy())
    gaps = series.null_count()
    if gaps == len(series) and not kind.is_numeric():
        return Cells(name, np.full(gaps, np.nan))
    if isinstance(kind, nw.Boolean) and gaps == 0:
        return Cells(name, series.to_numpy().astype(bool))
    if kind.is_numeric() or isinstance(kind, nw.Boolean):
        numbers = series if _has_numpy_type(kind) else series.cast(nw.Float64)
        return Cells(name, numbers.to_numpy())
    values = np.empty(len(series), dtype=object)
    values[:] = series.to_list()
    return Cells(name, values, _declared(series, kind))


def _declared(series: Any, kind: Any) -> list[Any] | None:
    """Return the categories of a categorical series.

    If the series declares its categories, this includes those that no row has.
    """
    import narwhals as nw

    if not isinstance(kind, nw.Categorical | nw.Enum):
        return None
    native = series.to_native()
    if isinstance(kind, nw.Enum) or hasattr(native, "iloc"):
        told = getattr(native.dtype, "categories", None)  # Arrow's dictionaries declare none
        if told is not None:
            return list(told)
    return sorted(series.drop_nulls().unique().to_list(), key=str)
