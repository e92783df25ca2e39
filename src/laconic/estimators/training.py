"""The rows that an estimator learns from, wherever they are."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from laconic.data.fingerprint import fingerprint
from laconic.losses import Loss
from laconic.numeric.threads import Threads
from laconic.pools import Pool, bind_parts
from laconic.pools.signs import as_signs
from laconic.rows.limits import Limits
from laconic.rows.rows import Rows, rows_in_memory


class Training(Protocol):
    """Checked rows to learn from, with their class codes and weights."""

    def rows(
        self,
        pool: Pool,
        signs: bool,
        loss: Loss,
        n_outputs: int,
        threads: Threads,
        intercept: bool,
        limits: Limits,
    ) -> Rows:
        """Bind a pool to the rows, and return their shards.

        With ``signs``, columns of 0 and 1 are used as columns of -1 and 1.
        """

    def fingerprint(self, settings: dict[str, Any]) -> str:
        """Return a digest of the settings and of the rows, their labels and weights."""


class TrainingInMemory(NamedTuple):
    """Rows in one memory."""

    X: Any
    codes: np.ndarray
    weight: np.ndarray

    def rows(
        self,
        pool: Pool,
        signs: bool,
        loss: Loss,
        n_outputs: int,
        threads: Threads,
        intercept: bool,
        limits: Limits,
    ) -> Rows:
        """Bind a pool to the rows, and return their shards; see `Training.rows`."""
        bounds = bind_parts(pool, limits.parts(self.X, self.codes, self.weight), threads)
        if signs:
            bounds = [as_signs(bound) for bound in bounds]
        settings = n_outputs, threads, intercept, limits
        return rows_in_memory(bounds, loss, self.codes, self.weight, *settings)

    def fingerprint(self, settings: dict[str, Any]) -> str:
        """Return a digest of the settings and of the rows, their labels and weights."""
        return fingerprint(self.X, self.codes, self.weight, settings)
