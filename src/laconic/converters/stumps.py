"""Ensembles of trees with one split, of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.converters.columns import Column, Value, WordCodes, is_plain
from laconic.converters.front import questions
from laconic.converters.linear import Converted
from laconic.converters.terms import TermSums
from laconic.data.frames import is_missing
from laconic.losses import ExponentialLoss, LogisticLoss, LogLoss
from laconic.model.conditions import EQUAL


def too_deep(model: Any, number: int, splits: int, advice: str) -> ValueError:
    """Return the error for a tree with more than one split."""
    return ValueError(
        f"tree {number} of this {type(model).__name__} has {splits} splits, but only trees with at "
        f"most one split can be converted; fit the model with {advice}"
    )


def add_split(
    terms: TermSums, column: Column, threshold: float, left: Any, right: Any, lost: Any
) -> None:
    """Add a tree: ``left`` up to the threshold, else ``right``, and ``lost`` if missing."""

    def curve(number: float) -> np.ndarray:
        if np.isnan(number):
            return np.asarray(lost, dtype=np.float64)
        return np.asarray(left if number <= threshold else right, dtype=np.float64)

    column.add_curve(terms, [threshold], curve)


def add_choice(
    terms: TermSums,
    column: Column,
    categories: list[Any],
    inside: Any,
    outside: Any,
    words: WordCodes,
) -> None:
    """Add a tree: ``inside`` for some categories, else ``outside``."""
    inside, outside = np.asarray(inside), np.asarray(outside)
    if not isinstance(column, Value) or not is_plain(column):
        raise ValueError("a feature of categories behind a scaler or encoder cannot be converted")
    terms.constant = terms.constant + outside
    for question in {q for c in categories for q in questions(column, c, words)}:
        if question.test == EQUAL:
            terms.equal(column.feature, question.value, inside - outside)
        else:
            terms.missing(column.feature, inside - outside)


# -- trees of scikit-learn -------------------------------------------------------------------------


def _single(columns: list[Column]) -> list[Column]:
    """Return the columns as trees see them: rounded to float32."""
    return [column.then(np.float32) for column in columns]


def _add_tree(terms: TermSums, columns: list[Column], tree: Any, leaf: Any) -> None:
    """Add a tree of at most one split. ``leaf`` says what a node adds to the scores."""
    if tree.node_count == 1:
        terms.constant = terms.constant + leaf(0)
        return
    left, right = leaf(int(tree.children_left[0])), leaf(int(tree.children_right[0]))
    refused = np.full(len(terms.constant), np.nan)
    add_split(terms, columns[tree.feature[0]], float(tree.threshold[0]), left, right, refused)


def ada_boost(model: Any, columns: list[Column], words: WordCodes) -> Converted:
    """Convert an AdaBoostClassifier of decision stumps. It must vote (SAMME)."""
    if getattr(model, "algorithm", "SAMME") == "SAMME.R":
        raise ValueError('AdaBoost with algorithm="SAMME.R" cannot be converted; use "SAMME"')
    classes, columns = model.classes_, _single(columns)
    n, total = len(classes), float(np.sum(model.estimator_weights_))
    # Two classes have one score, which is twice the vote for the second. Else their probabilities
    # are the softmax of the votes over n − 1.
    factor = 2.0 / total if n == 2 else 1.0 / (total * (n - 1))
    terms = TermSums(1 if n == 2 else n)
    for number, (stump, weight) in enumerate(
        zip(model.estimators_, model.estimator_weights_, strict=False)
    ):
        if not any(kind.__name__ == "DecisionTreeClassifier" for kind in type(stump).__mro__):
            raise TypeError(
                f"AdaBoost of {type(stump).__name__} cannot be converted; use its default, trees "
                "with max_depth=1"
            )
        tree = stump.tree_
        if tree.node_count > 3:
            raise too_deep(model, number, tree.node_count // 2, "max_depth=1 in its trees")

        def leaf(node: int, stump: Any = stump, weight: float = weight) -> np.ndarray:
            said = stump.classes_[np.argmax(stump.tree_.value[node, 0])]
            votes = np.where(classes == said, weight, -weight / (n - 1)) * factor
            return votes[1:] if n == 2 else votes

        _add_tree(terms, columns, tree, leaf)
    return Converted(terms, classes, LogisticLoss.name if n == 2 else LogLoss.name)


def gradient_boosting(model: Any, columns: list[Column], words: WordCodes) -> Converted:
    """Convert a GradientBoostingClassifier of depth 1."""
    constant = any(kind.__name__ == "DummyClassifier" for kind in type(model.init_).__mro__)
    if not constant and not (isinstance(model.init_, str) and model.init_ == "zero"):
        raise ValueError(
            f"GradientBoosting with init={type(model.init_).__name__} cannot be converted; use the "
            'default or init="zero"'
        )
    trees = model.estimators_
    terms, seen = TermSums(trees.shape[1]), _single(columns)
    terms.constant = model._raw_predict_init(np.zeros((1, len(columns)), np.float32))[0].copy()
    for (number, output), fitted in np.ndenumerate(trees):
        tree, at = fitted.tree_, np.arange(trees.shape[1]) == output
        if tree.node_count > 3:
            raise too_deep(model, number, tree.node_count // 2, "max_depth=1")

        def leaf(node: int, tree: Any = tree, at: np.ndarray = at) -> np.ndarray:
            return np.where(at, model.learning_rate * tree.value[node, 0, 0], 0.0)

        _add_tree(terms, seen, tree, leaf)
    if trees.shape[1] > 1:
        return Converted(terms, model.classes_, LogLoss.name)
    # A score of 0 means the second class here, but the first in a predictor.
    terms.constant = np.nextafter(terms.constant, np.inf)
    loss = ExponentialLoss.name if model.loss == "exponential" else LogisticLoss.name
    return Converted(terms, model.classes_, loss)


# -- HistGradientBoosting --------------------------------------------------------------------------


def hist_gradient_boosting(model: Any, columns: list[Column], words: WordCodes) -> Converted:
    """Convert a HistGradientBoostingClassifier of trees with at most one split."""
    seen, categories = _reordered(model, columns)
    n = model.n_trees_per_iteration_
    terms = TermSums(n)
    terms.constant = np.array(model._baseline_prediction, dtype=np.float64).reshape(n)
    for number, trees in enumerate(model._predictors):
        for output, tree in enumerate(trees):
            nodes, at = tree.nodes, np.arange(n) == output
            if len(nodes) > 3:
                raise too_deep(model, number, len(nodes) // 2, "max_leaf_nodes=2")
            root = nodes[0]
            if root["is_leaf"]:
                terms.constant = terms.constant + np.where(at, root["value"], 0.0)
                continue
            left, right = (np.where(at, nodes[root[k]]["value"], 0.0) for k in ("left", "right"))
            lost, place = left if root["missing_go_to_left"] else right, int(root["feature_idx"])
            if not root["is_categorical"]:
                add_split(terms, seen[place], float(root["num_threshold"]), left, right, lost)
                continue
            bits = tree.raw_left_cat_bitsets[root["bitset_idx"]]
            known = [c for c in categories[place] if not is_missing(c)]
            to_left = [bool(bits[code // 32] >> (code % 32) & 1) for code in range(len(known))]
            # Unknown categories go where missing values go, so ask about those that do not.
            other = right if root["missing_go_to_left"] else left
            asked = [c for c, is_left in zip(known, to_left, strict=True)
                     if is_left != bool(root["missing_go_to_left"])]  # fmt: skip
            add_choice(terms, seen[place], asked, other, lost, words)
    return Converted(terms, model.classes_, LogisticLoss.name if n == 1 else LogLoss.name)


def _reordered(model: Any, columns: list[Column]) -> tuple[list[Column], dict[int, list[Any]]]:
    """Return the columns in the order of the trees, categories first, and the categories."""
    chosen = model.is_categorical_
    if chosen is None or not chosen.any():
        return columns, {}
    order = [*np.flatnonzero(chosen), *np.flatnonzero(~chosen)]
    encoder = model._preprocessor.named_transformers_["encoder"]
    return [columns[f] for f in order], dict(enumerate(map(list, encoder.categories_)))
