"""A path of which some sizes are tuned, as a search sees it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from laconic.estimators.share import ShareBoostClassifier
from laconic.tune import Tuning


class TunedSizes(NamedTuple):
    """The sizes of a tuned path."""

    sizes: np.ndarray


class TunedPath:
    """A path of which some sizes are tuned. Only these are its models.

    It has what a search asks of a path: ``fit``, ``path_.sizes``, ``at`` and ``status_``. It always
    draws the same rows to judge, whatever the seed of a search.

    Parameters
    ----------
    path : ShareBoostClassifier
        The estimator that fits the path.
    tuning : Tuning
        What is tuned. ``sizes`` is a list.
    """

    def __init__(self, path: ShareBoostClassifier, tuning: Tuning) -> None:
        self.path, self.tuning = path, tuning

    @property
    def max_bytes(self) -> int | None:
        """The cap on bytes of the path."""
        return self.path.max_bytes

    def set_params(self, **settings: Any) -> TunedPath:
        """Change settings of the estimator."""
        self.path.set_params(**settings)
        return self

    def fit(self, X: Any, y: np.ndarray, weight: np.ndarray) -> TunedPath:
        """Fit the path up to its largest size, and tune it."""
        sizes = [n for n in self._sizes() if n <= self.path.max_atoms]
        path = clone(self.path).set_params(
            max_atoms=max(sizes), tune=replace(self.tuning, sizes=sizes), random_state=0
        )
        self._fitted = path.fit(X, y, weight)
        self.status_ = path.status_
        known = [n for n in sizes if n in path.path_.sizes]
        self.path_ = TunedSizes(np.array(known, dtype=np.int64))
        return self

    def _sizes(self) -> list[int]:
        assert not isinstance(self.tuning.sizes, str)
        return list(self.tuning.sizes or ())

    def at(self, size: int) -> ShareBoostClassifier:
        """Return the model of a size, as a fitted classifier."""
        return self._fitted.at(size)
