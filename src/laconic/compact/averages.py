"""Paths that are averaged: the same setting, fitted to rows of different random weights.

A model of many yes-or-no questions depends on chance: other rows would have led to other questions.
The mean of several such models depends on it less, and is often better. Each path gets random
weights of the rows (the Bayesian bootstrap of Rubin, 1981): every weight is multiplied by a number
from the exponential distribution. All paths see all rows, so they ask about the same thresholds,
and a question that several of them ask is written once. Path number i gets the same random weights
whatever the seed of a search, so trials of one setting on other rows or folds stay comparable.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from laconic.estimators.share import ShareBoostClassifier
from laconic.model.mean import mean_predictor
from laconic.pools import Columns, Products, Rules, Stumps
from laconic.pools.mixed import Mixed


def can_be_averaged(pool: Any) -> bool:
    """Return whether models of a pool have a mean: atoms that are alike can be told."""
    if isinstance(pool, Mixed):
        return all(map(can_be_averaged, pool.pools))
    # In a mean, columns of a group would be atoms of their own, with a cost each.
    grouped = getattr(pool, "groups", None) is not None
    return isinstance(pool, (Columns, Products, Rules, Stumps)) and not grouped


class Sizes(NamedTuple):
    """The sizes of averaged paths: how many atoms each of them has."""

    sizes: np.ndarray


class AveragedPath:
    """Several paths of one setting. Their model of a size is the mean of their models.

    It has what a search asks of a path: ``fit``, ``path_.sizes``, ``at`` and ``status_``. A size is
    the number of atoms in each path. The mean of ``n`` models has up to n times as many.

    Parameters
    ----------
    path : ShareBoostClassifier
        The estimator that fits each path.
    n : int
        How many paths there are.
    """

    def __init__(self, path: ShareBoostClassifier, n: int) -> None:
        self.path, self.n = path, n

    @property
    def max_bytes(self) -> int | None:
        """The cap on bytes of the path."""
        return self.path.max_bytes

    def set_params(self, **settings: Any) -> AveragedPath:
        """Change settings of the estimator that fits each path."""
        self.path.set_params(**settings)
        return self

    def fit(self, X: Any, y: np.ndarray, weight: np.ndarray) -> AveragedPath:
        """Fit all paths. Path number i always gets the same random weights."""
        self.paths: list[ShareBoostClassifier] = []
        for number in range(self.n):
            drawn = np.random.default_rng(number).exponential(size=len(y))
            fitted = clone(self.path).fit(X, y, weight * drawn)
            self.paths.append(fitted)
            self.status_ = fitted.status_
            if self.status_ == "interrupted":
                break
        every = [path.path_.sizes for path in self.paths]
        shared = [size for size in every[0] if all(size in sizes for sizes in every)]
        self.path_ = Sizes(np.array(shared))
        self._means: dict[int, Any] = {}
        return self

    def at(self, size: int) -> Any:
        """Return the mean of the models of ``size`` atoms, as a fitted classifier."""
        if size not in self._means:
            self._means[size] = mean_model([path.at(size) for path in self.paths])
        return self._means[size]

    def within_caps(self, model: Any) -> bool:
        """Return whether a mean keeps the caps on operations, features and cost.

        Paths keep them while they are fitted, but their mean has more atoms than each of them.
        """
        cost, own = model.predictor_.cost(), self.path
        pairs = (
            (own.max_operations, cost.operations),
            (own.max_features, cost.features),
            (own.max_cost, model.n_atoms_),
        )
        return all(cap is None or used <= cap for cap, used in pairs)


def mean_model(parts: Sequence[ShareBoostClassifier]) -> Any:
    """Return the mean of some fitted classifiers, as a fitted classifier with ``parts_``."""
    mean = copy.copy(parts[0])
    mean.predictor_ = mean_predictor([part.predictor_ for part in parts])
    mean.n_atoms_ = len(mean.predictor_.widths)
    mean.parts_ = list(parts)
    return mean


def parts_of(model: Any) -> list[ShareBoostClassifier]:
    """Return the models that a model is the mean of. A model of a single path has none."""
    return getattr(model, "parts_", [])


def cost_of(model: Any) -> tuple[Any, float]:
    """Return what prediction takes, and the price that the user set, of a model of a path.

    Means have no price of features, so theirs is their number of atoms.
    """
    if parts_of(model):
        return model.predictor_.cost(), float(model.n_atoms_)
    entry = model.path_[model.n_atoms_]
    return entry.predictor_cost, float(entry.cost)
