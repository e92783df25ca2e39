"""Networks of scikit-learn with one hidden layer, for libraries that write them as C.

Rows are scaled before the fit: columns are centred and divided by their standard deviation. If all
columns have the same type, as pixels do, a column is divided by no less than a quarter of the
largest deviation. For every size, the penalty is chosen on the validation rows.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from _common import progress
from _forests import Rows
from sklearn.neural_network import MLPClassifier

HIDDEN = (4, 6, 8, 12, 16, 24, 32, 48, 64)
HIDDEN_OF_WIDE = (4, 8, 16, 32, 64)
PENALTIES = (1e-4, 1e-1, 1.0)
PENALTIES_OF_WIDE = (1e-1, 1.0)
# Passes over the rows: at most this many, and fewer where there are many rows.
PASSES = 200
ROWS_SEEN = 600_000
LEAST_SCALE = 0.25


class Scales(NamedTuple):
    """How rows are scaled."""

    mean: np.ndarray
    scale: np.ndarray

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return scaled rows."""
        return np.asarray((X - self.mean) / self.scale)


def scales(X: np.ndarray) -> Scales:
    """Return the scales of rows."""
    deviation = X.std(axis=0)
    floor = LEAST_SCALE * deviation.max() if X.dtype == np.uint8 else 0.0
    return Scales(X.mean(axis=0), np.where(deviation > 0, np.maximum(deviation, floor), 1.0))


class Network(NamedTuple):
    """A network with its size, and the scales of its rows."""

    hidden: int
    penalty: float
    model: Any
    scales: Scales


class Networks:
    """All networks that are tried on some rows."""

    def __init__(self, rows: Rows, seed: int) -> None:
        self.rows, self.seed = rows, seed
        fit = rows.fit
        self.tried = [self._network(rows.X[fit], rows.y[fit], hidden, penalty)
                      for hidden in (HIDDEN_OF_WIDE if rows.wide else HIDDEN)
                      for penalty in (PENALTIES_OF_WIDE if rows.wide else PENALTIES)]  # fmt: skip
        self._whole: dict[tuple[int, float], Network] = {}

    def fitted(self, tried: Network) -> Network:
        """Return the network, fitted on all training rows."""
        key = tried.hidden, tried.penalty
        if key not in self._whole:
            self._whole[key] = self._network(self.rows.X, self.rows.y, *key)
        return self._whole[key]

    def _network(self, X: np.ndarray, y: np.ndarray, hidden: int, penalty: float) -> Network:
        progress(f"{self.rows.title}: network of {hidden} hidden units, penalty {penalty:g}")
        own = scales(X)
        passes = min(PASSES, ROWS_SEEN // len(X))
        model = MLPClassifier(hidden, alpha=penalty, max_iter=passes, random_state=self.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it may not have converged
            return Network(hidden, penalty, model.fit(own(X), y), own)


def best_of_sizes(found: list[tuple[float, Network]]) -> list[tuple[float, Network]]:
    """Return the network of the lowest error for each number of hidden units."""
    best: dict[int, tuple[float, Network]] = {}
    for error, network in found:
        if network.hidden not in best or error < best[network.hidden][0]:
            best[network.hidden] = error, network
    return list(best.values())
