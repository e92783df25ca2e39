"""Rows of a table as a model needs them: a matrix, and the columns to keep as they are spelled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from laconic.cli.dates import mend_dates
from laconic.cli.files import check_listed
from laconic.cli.reading import read_table
from laconic.cli.tables import as_numbers, cells_named, check_numbers
from laconic.data.errors import UserError

if TYPE_CHECKING:
    import numpy as np

    from laconic.model.predictor import Predictor


class Wanted:
    """What a model needs of a table. The table needs only the columns that the model reads.

    Parameters
    ----------
    predictor : Predictor
    keep : sequence of str, optional
        Columns to keep.
    dates : str, optional
        Order of dates that are not written in ISO 8601.
    """

    def __init__(
        self, predictor: Predictor, keep: Sequence[str] = (), dates: str | None = None
    ) -> None:
        self._predictor, self.keep, self._dates = predictor, list(keep), dates
        self._reads = predictor.map.features().tolist()
        self._names = predictor.feature_names
        self.columns: list[str] | None = None
        """The columns to read. None stands for all, as a model without names counts them."""
        self.text: list[str] = []
        """The columns among them to read as they are spelled."""
        if self._names is not None:
            known = [self._names[f] for f in self._reads]
            kinds = (*predictor.categories, *predictor.units)
            self.columns = [*dict.fromkeys([*known, *keep])]
            self.text = [*{*(self._names[f] for f in kinds), *(set(keep) - set(known))}]

    def check(self, columns: Sequence[str], file: str) -> None:
        """Refuse a table that has not the columns that are needed."""
        check_listed(columns, self.keep if self.columns is None else self.columns, file)
        if self._names is None and len(columns) != self._predictor.n_features:
            raise UserError(
                f"the model has no feature names, so {file} must have its "
                f"{self._predictor.n_features} columns in order, not {len(columns)}."
            )

    def rows(self, frame: Any) -> tuple[np.ndarray, dict[str, Any]]:
        """Return rows as the predictor needs them, and the columns to keep, as spelled.

        The index of the frame counts the rows of the table from zero.
        """
        import numpy as np

        predictor, first = self._predictor, int(frame.index[0])
        names = self._names or list(frame.columns)
        kept = {name: frame[name] for name in self.keep}  # before dates are rewritten
        dated = {names[f] for f in predictor.units}
        mend_dates(frame, self._dates, frame.columns, dated)
        # The order is by columns, so that memory of columns that are not read is never touched.
        X = np.zeros((len(frame), predictor.n_features), order="F")
        missing = getattr(predictor.map, "allows_missing", False)
        for f in self._reads:
            column = frame[names[f]]
            if f in predictor.categories:
                X[:, f] = predictor.codes(f, column)
                continue
            with cells_named(first):
                dates = f in predictor.units
                numbers = predictor.numbers(f, column) if dates else None
            X[:, f] = as_numbers(column, names[f], first) if numbers is None else numbers
            check_numbers(X[:, f], names[f], missing, first=first)
        return X, kept


def rows_for(
    predictor: Predictor, file: str, decimal: str | None = None, dates: str | None = None
) -> np.ndarray:
    """Return all rows of a table as the predictor needs them."""
    wanted = Wanted(predictor, dates=dates)
    frame = read_table(file, wanted.text, decimal=decimal)
    wanted.check(list(frame.columns), file)
    return wanted.rows(frame)[0]
