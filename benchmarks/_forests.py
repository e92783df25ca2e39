"""Trees and forests of scikit-learn for libraries that write them as C.

* Settings are tried on some of the training rows. Their errors are those on the validation rows,
  with the vote that the C code takes. The best for each number of leaves are fitted again on all
  training rows.
* The first trees of a forest are a smaller forest, so one fit serves all numbers of trees.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

LEAVES_OF_ONE = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
TREES = (3, 5, 7, 10, 15, 20, 30, 40)
LEAVES = (16, 32, 64, 128, 256)
# Fits on wide rows take long, so fewer settings are tried.
LEAVES_OF_WIDE = (64, 256)
LEAVES_OF_WIDE_ONE = (32, 128, 512)
KINDS = {"random forest": RandomForestClassifier, "extra trees": ExtraTreesClassifier}
# A larger forest is kept if it has at most this part of the errors of the smaller one.
BETTER = 0.97
# Rows with more columns than this are wide. There, splits look at few columns only.
WIDE = 200

Vote = Callable[[np.ndarray], np.ndarray]
"""Turns the class shares of a tree's leaves into the votes of the C code."""


class Rows(NamedTuple):
    """Training and test rows, and which training rows are for fitting and for validation."""

    title: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    fit: np.ndarray
    held: np.ndarray

    @property
    def wide(self) -> bool:
        """Whether there are many columns, so that fewer settings are tried."""
        return self.X.shape[1] > WIDE


class Grown(NamedTuple):
    """The first trees of a forest, their leaves, and the error on validation rows."""

    title: str
    setting: int
    trees: int
    leaves: int
    validation: float


class Forests:
    """All forests that are tried on some rows. Each is fitted once, for all votes."""

    def __init__(self, rows: Rows, seed: int) -> None:
        self.rows = rows
        self.titles, self.models = zip(*_settings(rows, seed), strict=True)
        X, y, fit = rows.X, rows.y, rows.fit
        self._tried = [clone(model).fit(X[fit], y[fit]) for model in self.models]
        self._shares = [
            [tree.predict_proba(X[rows.held]) for tree in _trees(model)] for model in self._tried
        ]
        self._whole: dict[int, Any] = {}

    def frontier(self, vote: Vote, most_leaves: float) -> list[Grown]:
        """Return the forests that are clearly better than all with fewer leaves, and the best."""
        every = [grown for number in range(len(self.models)) for grown in self._grown(number, vote)]
        every = [grown for grown in every if grown.leaves <= most_leaves]
        every.sort(key=lambda grown: (grown.leaves, grown.validation))
        kept: list[Grown] = []
        best = min(every, key=lambda grown: (grown.validation, grown.leaves))
        for grown in every:
            better = not kept or grown.validation <= BETTER * kept[-1].validation
            if grown.leaves <= best.leaves and (better or grown is best):
                kept.append(grown)
        return kept

    def fitted(self, grown: Grown) -> Any:
        """Return the forest, fitted on all training rows."""
        if grown.setting not in self._whole:
            model = clone(self.models[grown.setting])
            self._whole[grown.setting] = model.fit(self.rows.X, self.rows.y)
        model = copy.deepcopy(self._whole[grown.setting])
        if hasattr(model, "estimators_"):
            model.estimators_ = model.estimators_[: grown.trees]
            model.n_estimators = grown.trees
        return model

    def _grown(self, number: int, vote: Vote) -> list[Grown]:
        model, held = self._tried[number], self.rows.y[self.rows.held]
        votes = np.cumsum([vote(shares) for shares in self._shares[number]], axis=0)
        leaves = np.cumsum([tree.tree_.n_leaves for tree in _trees(model)])
        return [
            Grown(self.titles[number].format(n), number, n, int(leaves[n - 1]),
                  float(np.mean(votes[n - 1].argmax(axis=1) != held)))
            for n in (TREES if len(leaves) > 1 else (1,))
        ]  # fmt: skip


def voted(model: Any, X: np.ndarray, vote: Vote) -> np.ndarray:
    """Return the labels that all trees of a forest vote for."""
    shares = [vote(tree.predict_proba(X)) for tree in _trees(model)]
    return np.sum(shares, axis=0).argmax(axis=1)


def shift_thresholds(model: Any, by: float) -> Any:
    """Add a number to all thresholds, in place."""
    for tree in _trees(model):
        tree.tree_.threshold[tree.tree_.children_left >= 0] += by
    return model


def _trees(model: Any) -> Sequence[Any]:
    return getattr(model, "estimators_", [model])


def _settings(rows: Rows, seed: int) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = [
        (f"tree, {leaves} leaves", DecisionTreeClassifier(max_leaf_nodes=leaves, random_state=seed))
        for leaves in (LEAVES_OF_WIDE_ONE if rows.wide else LEAVES_OF_ONE)
    ]
    for leaves in LEAVES_OF_WIDE if rows.wide else LEAVES:
        for name, kind in KINDS.items():
            for share in ("sqrt",) if rows.wide else ("sqrt", 0.5):
                title = f"{name}, {{}} trees, {leaves} leaves, max_features={share}"
                found.append((title, kind(max(TREES), max_leaf_nodes=leaves, max_features=share,
                                          random_state=seed)))  # fmt: skip
    return found
