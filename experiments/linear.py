"""Linear predictors over given atoms: the results of baselines, and refits of their atoms."""

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
    """Numbers in the pool of the atoms with nonzero weights."""
    map: FeatureMap
    weights: np.ndarray
    """Weights (n_atoms, n_classes) in the units of the input."""
    intercept: np.ndarray

    @property
    def size(self) -> int:
        """Number of atoms."""
        return len(self.numbers)

    def scores(self, X: Any) -> np.ndarray:
        """Return the scores (n_rows, n_classes) of new rows."""
        return self.map.columns(X) @ self.weights + self.intercept

    def predict(self, X: Any) -> np.ndarray:
        """Return the code of the class with the largest score."""
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
    """Return training rows with no atoms chosen. Classes are numbered from 0."""
    weight = np.ones(len(codes)) if weight is None else np.asarray(weight, dtype=float)
    weight = weight / weight.sum()
    bound = pool.bind(X, weight, threads)
    n_outputs = int(codes.max()) + 1
    return rows_in_memory([bound], LOSSES[loss](), codes, weight, n_outputs, threads, fit_intercept)


def linear(rows: Rows, W: np.ndarray) -> Linear:
    """Return the predictor with weights W of single-column atoms.

    W is in scaled units, with the intercept first.
    """
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
    """Fit weights of given atoms that minimise L + (alpha/2) ‖W‖²."""
    rows.reset([int(atom) for atom in atoms])
    start = np.zeros((rows.n_columns, rows.n_outputs))
    return linear(rows, Newton(tol).solve(rows, L2(alpha), start).weights)
