"""Linear predictors over given atoms: what baselines leave behind, and refits of their atoms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from laconic.correct import Newton
from laconic.losses import LOSSES
from laconic.model.feature_maps import FeatureMap
from laconic.numeric.threads import Threads
from laconic.penalties import L2
from laconic.pools import Pool
from laconic.rows.rows import Rows, rows_in_memory


class Linear(NamedTuple):
    """Scores = columns of the atoms times weights, plus the intercept."""

    numbers: np.ndarray
    """The pool's numbers of the atoms, whose weights are not all zero."""
    map: FeatureMap
    weights: np.ndarray
    """(n_atoms, n_classes) in the units of the input."""
    intercept: np.ndarray

    @property
    def size(self) -> int:
        """Number of atoms."""
        return len(self.numbers)

    def scores(self, X: Any) -> np.ndarray:
        """Scores (n_rows, n_classes) on new rows."""
        return self.map.columns(X) @ self.weights + self.intercept

    def predict(self, X: Any) -> np.ndarray:
        """Code of the class of the largest score."""
        return self.scores(X).argmax(axis=1)


def make_rows(
    pool: Pool,
    X: Any,
    codes: np.ndarray,
    threads: Threads,
    *,
    loss: str = "margin",
    weight: np.ndarray | None = None,
    fit_intercept: bool = True,
) -> Rows:
    """Training rows with no atoms in; classes are numbered from 0."""
    weight = np.ones(len(codes)) if weight is None else np.asarray(weight, dtype=float)
    weight = weight / weight.sum()
    bound = pool.bind(X, weight, threads)
    n_outputs = int(codes.max()) + 1
    return rows_in_memory([bound], LOSSES[loss](), codes, weight, n_outputs, threads, fit_intercept)


def linear(rows: Rows, W: np.ndarray) -> Linear:
    """The predictor of weights W (scaled units, the intercept's first) of single-column atoms."""
    free = int(rows.intercept)
    scaled = W[free:]
    used = np.abs(scaled).max(axis=1, initial=0.0) > 0
    numbers, scaled = np.array(rows.atoms, dtype=np.int64)[used], scaled[used]
    base = W[0] if free else np.zeros(rows.n_outputs)
    return Linear(
        numbers,
        rows.pool.extract(numbers),
        scaled * rows.pool.scales(numbers)[:, None],
        base - rows.means[free:][used] @ scaled,
    )


def refit(rows: Rows, atoms: Sequence[int], alpha: float, tol: float = 1e-5) -> Linear:
    """Weights of given atoms that minimise L + (alpha/2) ‖W‖², whatever chose the atoms."""
    rows.reset([int(atom) for atom in atoms])
    start = np.zeros((rows.n_columns, rows.n_outputs))
    return linear(rows, Newton(tol).solve(rows, L2(alpha), start).weights)
