"""Networks of scikit-learn with one hidden layer, for libraries that write them as C.

Rows are scaled before the fit: columns are centred and divided by their standard deviation. If all
columns have the same type, as pixels do, a column is divided by no less than a quarter of the
largest deviation, and columns of 0 and 1 by no less than a quarter. For every size, the penalty,
the learning rate and the first weights are chosen on the validation rows.
"""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from _common import progress
from _forests import Rows
from sklearn.neural_network import MLPClassifier

HIDDEN = (4, 6, 8, 12, 16, 24, 32, 48, 64)
PENALTIES = (1e-4, 1e-1, 1.0)
RATES = (1e-3, 5e-3)
# Draws of the first weights. Where there are more rows than this, one is enough.
STARTS, MOST_STARTED = 2, 20_000
# Passes over the rows: at most this many, and fewer where there are many rows. Fits end before if
# the loss no longer falls.
PASSES = 1000
ROWS_SEEN = 2_000_000
LEAST_SCALE = 0.25


class Scales(NamedTuple):
    """How rows are scaled."""

    mean: np.ndarray
    scale: np.ndarray

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Return scaled rows."""
        return np.asarray((X - self.mean) / self.scale, np.float32)


def scales(X: np.ndarray) -> Scales:
    """Return the scales of rows."""
    deviation = X.std(axis=0)
    pixels = X.dtype == np.uint8
    binary = (X.min(axis=0) == 0) & (X.max(axis=0) == 1)
    floor = LEAST_SCALE * (deviation.max() if pixels else binary)
    return Scales(X.mean(axis=0), np.where(deviation > 0, np.maximum(deviation, floor), 1.0))


class Network(NamedTuple):
    """A network with its size, and the scales of its rows."""

    hidden: int
    penalty: float
    rate: float
    start: int
    model: Any
    scales: Scales


class Networks:
    """All networks that are tried on some rows."""

    def __init__(self, rows: Rows, seed: int) -> None:
        self.rows, self.seed = rows, seed
        fit, starts = rows.fit, STARTS if len(rows.X) <= MOST_STARTED else 1
        self.tried = [
            self._network(rows.X[fit], rows.y[fit], *setting)
            for setting in product(HIDDEN, PENALTIES, RATES, range(starts))
        ]
        self._whole: dict[tuple[int, float, float, int], Network] = {}

    def fitted(self, tried: Network) -> Network:
        """Return the network, fitted on all training rows."""
        key = tried.hidden, tried.penalty, tried.rate, tried.start
        if key not in self._whole:
            self._whole[key] = self._network(self.rows.X, self.rows.y, *key)
        return self._whole[key]

    def _network(
        self, X: np.ndarray, y: np.ndarray, hidden: int, penalty: float, rate: float, start: int
    ) -> Network:
        progress(f"{self.rows.title}: network of {hidden} units, penalty {penalty:g}, rate {rate}")
        own = scales(X)
        passes = min(PASSES, ROWS_SEEN // len(X))
        model = MLPClassifier(hidden, alpha=penalty, learning_rate_init=rate, max_iter=passes,
                              random_state=self.seed + start)  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it may not have converged
            return Network(hidden, penalty, rate, start, model.fit(own(X), y), own)


def best_of_sizes(found: list[tuple[float, Network]]) -> list[tuple[float, Network]]:
    """Return the network of the lowest error for each number of hidden units."""
    best: dict[int, tuple[float, Network]] = {}
    for error, network in found:
        if network.hidden not in best or error < best[network.hidden][0]:
            best[network.hidden] = error, network
    return list(best.values())
