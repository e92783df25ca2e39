"""The rows that an estimator learns from, wherever they are."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from laconic.data.fingerprint import fingerprint
from laconic.pools import bind_parts
from laconic.pools.opened import as_open
from laconic.pools.signs import as_signs
from laconic.rows.asked import RowsAsked
from laconic.rows.rows import Rows, rows_in_memory


class Training(Protocol):
    """Checked rows to learn from, with their class codes and weights."""

    def rows(self, asked: RowsAsked) -> Rows:
        """Bind a pool to the rows, and return their shards."""

    def fingerprint(self, settings: dict[str, Any]) -> str:
        """Return a digest of the settings and of the rows, their labels and weights."""


class TrainingInMemory(NamedTuple):
    """Rows in one memory."""

    X: Any
    codes: np.ndarray
    weight: np.ndarray

    def rows(self, asked: RowsAsked) -> Rows:
        """Bind a pool to the rows, and return their shards; see `Training.rows`."""
        parts = asked.limits.parts(self.X, self.codes, self.weight)
        bounds = bind_parts(asked.pool, parts, asked.threads)
        if asked.opens:
            bounds = as_open(bounds, [part[0] for part in parts])
        if asked.signs:
            bounds = [as_signs(bound) for bound in bounds]
        settings = asked.n_outputs, asked.threads, asked.intercept, asked.limits
        return rows_in_memory(bounds, asked.loss, self.codes, self.weight, *settings)

    def fingerprint(self, settings: dict[str, Any]) -> str:
        """Return a digest of the settings and of the rows, their labels and weights."""
        return fingerprint(self.X, self.codes, self.weight, settings)
