"""Tuning at selection: the best atom of the list moves to a local maximum of its score.

The score is that of the selection rule, as if the atom were in the pool's list
(`laconic.tune.score`). The ascent looks at all rows, or at 65,536 of them at even distances by their
numbers. The moved atom is offered only if its score on all rows is above the score that the pool
gave to the atom of its list.

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
from laconic.tune.contract import Tunable
from laconic.tune.kinds import kind_of
from laconic.tune.score import Score, Size, Unexplained, largest_value, no_size

# Most rows that an ascent looks at.
MOST_ROWS = 65_536


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
        n, factor = self._X.shape[0], float(rows.pool.scales([atom])[0])
        some = np.arange(n) if n <= MOST_ROWS else np.arange(MOST_ROWS) * n // MOST_ROWS
        X = self._X if n <= MOST_ROWS else self._X[some]
        start = kind.start(given, None, [-1], self._free)
        atoms = kind.tunable(start, X, rows.threads, None, self._free)
        seen_from = self._score(rows, chosen, atoms, X, some, factor)
        parameters, seen = ascend(seen_from, atoms.start, atoms.units, atoms.settled)
        if n > MOST_ROWS:
            every = np.arange(n)
            seen = self._score(rows, chosen, atoms, self._X, every, factor).at(parameters)
        if not seen.value > score:
            return None
        weight = rows.labels_of_all_rows()[1]
        size, _ = self._scaling(weight / weight.sum())(seen.column)
        return Offer(OutsideAtom(atoms.map(parameters), factor / size), seen.value)

    def _score(
        self,
        rows: Rows,
        chosen: Sequence[int],
        atoms: Tunable,
        X: Any,
        some: np.ndarray,
        factor: float,
    ) -> Score:
        """Return the score on some rows."""
        weight = rows.labels_of_all_rows()[1][some].astype(np.float64)
        weight /= weight.sum()
        size = self._scaling(weight)
        if self._projection:
            known = rows.columns_of_all_rows(chosen)[some] if len(chosen) else np.empty((len(some), 0))
            size = Unexplained(np.column_stack([np.ones(len(some)), known]), weight)
        return Score(atoms, X, rows.residual_of_all_rows()[some], weight, factor, size)

    def _scaling(self, weight: np.ndarray) -> Size:
        """Return the size that the pool divides columns by."""
        if self._scale is None:
            return no_size
        if self._scale == "max":
            return largest_value
        return Unexplained(np.ones((len(weight), 1)), weight)
