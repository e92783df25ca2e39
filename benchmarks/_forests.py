"""Trees and forests of scikit-learn for libraries that write them as C.

* Settings are tried on some of the training rows. Their errors are those on the validation rows,
  with the vote that the C code takes. The best for each number of leaves are fitted again on all
  training rows.
* The first trees of a forest are a smaller forest, so one fit serves all numbers of trees.
* Trees grow best leaf first. So a tree that stops at fewer leaves is the first nodes of a larger
  one, and one fit serves all numbers of leaves too.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

LEAVES_OF_ONE = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
TREES = (3, 5, 7, 10, 15, 20, 30, 40)
LEAVES = (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
# The part of the columns that a split looks at. Half of the columns of wide rows takes long.
SHARES: tuple[str | float, ...] = ("sqrt", 0.5)
SHARES_OF_WIDE: tuple[str | float, ...] = ("sqrt", 0.1)
KINDS = {"random forest": RandomForestClassifier, "extra trees": ExtraTreesClassifier}
# A larger forest is kept if it has at most this part of the errors of the smaller one.
BETTER = 0.97
# Rows with more columns than this are wide.
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
        """Whether there are many columns."""
        return self.X.shape[1] > WIDE


class Grown(NamedTuple):
    """The first trees of a forest, with their first leaves, and the error on validation rows.

    ``leaves_of_one`` is the most leaves of a tree, and ``leaves`` are those of all trees.
    """

    title: str
    setting: int
    trees: int
    leaves_of_one: int
    leaves: int
    validation: float


class Forests:
    """All forests that are tried on some rows. Each is fitted once, for all votes."""

    def __init__(self, rows: Rows, seed: int) -> None:
        self.rows = rows
        self.titles, self.models = zip(*_settings(rows, seed), strict=True)
        X, y, fit = rows.X, rows.y, rows.fit
        self._tried = [clone(model).fit(X[fit], y[fit]) for model in self.models]
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
        whole = self._whole[grown.setting]
        if not hasattr(whole, "estimators_"):
            return first_leaves(whole, grown.leaves_of_one)
        model = copy.copy(whole)
        model.estimators_ = [
            first_leaves(tree, grown.leaves_of_one) for tree in whole.estimators_[: grown.trees]
        ]
        model.n_estimators = grown.trees
        return model

    def _grown(self, number: int, vote: Vote) -> Iterator[Grown]:
        X, y = self.rows.X[self.rows.held], self.rows.y[self.rows.held]
        trees, title = _trees(self._tried[number]), self.titles[number]
        for most in LEAVES if len(trees) > 1 else LEAVES_OF_ONE:
            votes, leaves = np.zeros(1), 0
            for n, whole in enumerate(trees, start=1):
                tree = first_leaves(whole, most)
                votes = votes + vote(tree.predict_proba(X))
                leaves += tree.tree_.n_leaves
                if n in TREES or len(trees) == 1:
                    wrong = float(np.mean(votes.argmax(axis=1) != y))
                    yield Grown(title.format(trees=n, leaves=most), number, n, most, leaves, wrong)


def first_leaves(model: Any, leaves: int) -> Any:
    """Return a copy of a tree that stops at some leaves. It is as if fitted with that limit."""
    whole = model.tree_
    state = whole.__getstate__()
    nodes = state["nodes"][: 2 * leaves - 1].copy()
    ends = nodes["left_child"] >= len(nodes)
    for name in ("left_child", "right_child"):
        nodes[name][ends] = -1
    for name in ("feature", "threshold"):
        nodes[name][ends] = -2
    tree = type(whole)(*whole.__reduce__()[1])
    values = state["values"][: len(nodes)].copy()
    tree.__setstate__({**state, "nodes": nodes, "values": values, "node_count": len(nodes)})
    model = copy.copy(model)
    model.tree_ = tree
    return model


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
    """Return the largest tree, and the largest forest of each kind."""
    one = DecisionTreeClassifier(max_leaf_nodes=max(LEAVES_OF_ONE), random_state=seed)
    found: list[tuple[str, Any]] = [("tree, {leaves} leaves", one)]
    for name, kind in KINDS.items():
        for share in SHARES_OF_WIDE if rows.wide else SHARES:
            title = f"{name}, {{trees}} trees, {{leaves}} leaves, max_features={share}"
            found.append((title, kind(max(TREES), max_leaf_nodes=max(LEAVES), max_features=share,
                                      random_state=seed)))  # fmt: skip
    return found
