"""Tuning at selection: the best atom of the list moves to a local maximum of its score.

The score is that of the selection rule, as if the atom were in the pool's list
(`laconic.tune.score`). The ascent looks at all rows, if these are at most 65,536 and hold at most
eight million numbers. Otherwise it looks at as many of them, at even distances by their numbers.
The moved atom is offered only if its score on all rows is above the score that the pool gave to the
atom of its list.

*Theorem 2 holds.* Its proof uses of the chosen column only that it is in [-1, 1], and that its
gradient has an l1 norm of at least max_r ‖∇_r L‖₁ over the pool, since Lemma 2 then guarantees the
fall of the loss. A moved atom has both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from laconic.pools.base import Offer
from laconic.pools.opened import OutsideAtom
from laconic.rows.rows import Rows
from laconic.tune.ascent import ascend
from laconic.tune.kinds import kind_of
from laconic.tune.score import Score, Size, Unexplained, largest_value, no_size

# Most rows that an ascent looks at, and most numbers in them, but at least so many rows.
MOST_ROWS, MOST_NUMBERS, LEAST_ROWS = 65_536, 1 << 23, 1024


class AtSelection:
    """Moves chosen atoms; see `laconic.boost.moved.Mover`.

    Parameters
    ----------
    X : array or sparse matrix
        The training rows.
    scale : {"max", "std"} or None
        What the pool divides columns by.
    projection : bool
        Whether the rule divides scores by the lengths of what the model does not explain.
    free : bool
        Whether atoms may read more inputs than those of the list.
    """

    def __init__(self, X: Any, scale: str | None, projection: bool, free: bool) -> None:
        self._X = X.tocsr() if sparse.issparse(X) else X
        self._scale, self._projection, self._free = scale, projection, free

    def moved(self, rows: Rows, chosen: Sequence[int], atom: int, score: float) -> Offer | None:
        """Return the moved atom, or None if no move raises the score."""
        given: Any = rows.pool.extract([atom])
        kind = kind_of(given)
        factor = float(rows.pool.scales([atom])[0])
        start = kind.start(given, None, [-1], self._free)
        n, most = self._X.shape[0], self._most_rows(given)
        some = None if n <= most else np.arange(most) * n // most
        X = self._X if some is None else self._X[some]
        atoms: Any = kind.tunable(start, X, rows.threads, None, self._free)

        def score_on(X: Any, which: Any) -> Score:
            weight, size = self._size(rows, chosen, which)
            residual = rows.residual_of_all_rows()[which]
            return Score(atoms, X, residual, weight, factor, size, most)

        parameters, seen = ascend(score_on(X, slice(None) if some is None else some), atoms)
        if some is not None:
            seen = score_on(self._X, slice(None)).at(parameters)
        if not seen.value > score:
            return None
        size, _ = self._scaling(_shares(rows))(seen.column)
        return Offer(OutsideAtom(atoms.map(parameters), factor / size), seen.value)

    def _most_rows(self, given: Any) -> int:
        """Return how many rows an ascent looks at. Of sparse rows, only what is read is written."""
        d = len(given.features()) if sparse.issparse(self._X) else self._X.shape[1]
        return min(MOST_ROWS, max(LEAST_ROWS, MOST_NUMBERS // max(d, 1)))

    def _size(self, rows: Rows, chosen: Sequence[int], which: Any) -> tuple[np.ndarray, Size]:
        """Return the weights of some rows, and what the rule divides a score on them by."""
        weight = _shares(rows, which)
        if not self._projection:
            return weight, self._scaling(weight)
        columns = [np.ones((len(weight), 1))]
        if len(chosen):
            columns.append(rows.columns_of_all_rows(chosen)[which])
        return weight, Unexplained(np.hstack(columns), weight)

    def _scaling(self, weight: np.ndarray) -> Size:
        """Return the size that the pool divides columns by."""
        if self._scale is None:
            return no_size
        if self._scale == "max":
            return largest_value
        return Unexplained(np.ones((len(weight), 1)), weight)


def _shares(rows: Rows, which: Any = slice(None)) -> np.ndarray:
    """Return weights of some rows that sum to one."""
    weight = rows.labels_of_all_rows()[1][which].astype(np.float64)
    return np.asarray(weight / weight.sum())
