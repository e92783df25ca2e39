"""One path on one fold: the score and the costs of every size and word length."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from laconic.compact.averages import AveragedPath, cost_of
from laconic.compact.tuned_path import TunedPath
from laconic.estimators.independent import whole
from laconic.estimators.scorers import FoldScorer
from laconic.estimators.share import ShareBoostClassifier
from laconic.estimators.sizes import part_of
from laconic.export.footprint import Target, footprint
from laconic.model.choose_codes import TooWide
from laconic.model.integer_predictor import IntegerPredictor
from laconic.model.program import program_of
from laconic.model.quantise import integers_of

COLUMNS = ("reached", "atoms", "score", "bytes", "operations", "features", "cost")
"""Columns of the table of a fold. A model that cannot be made has NaN. ``reached`` is the size of
the path: the largest one that fits."""
FLOAT = 32
"""Word length of a model that is not quantised."""


AnyPath = ShareBoostClassifier | AveragedPath | TunedPath


class Form(NamedTuple):
    """How models ship: the chip, what it hands over, and the word lengths that are tried."""

    chip: str
    inputs: str
    bits: tuple[int, ...]

    def target(self, bits: int) -> Target:
        """Return the target of one word length."""
        return Target(self.chip, None if bits == FLOAT else bits, self.inputs)

    def shipped(self, predictor: Any, X: Any, weight: np.ndarray, bits: int) -> Any:
        """Return a predictor in the form that ships. Encoded rows and weights set its scales."""
        if bits == FLOAT:
            return predictor
        if not (weight > 0).all():
            X, weight = X[weight > 0], weight[weight > 0]
        integers = integers_of(predictor, X, bits, self.inputs, weight)
        return IntegerPredictor.of(predictor, integers)


class Fold(NamedTuple):
    """The rows of a fold."""

    number: int
    fit: np.ndarray
    test: np.ndarray


def promised_bytes(predictor: Any, target: Target) -> int:
    """Return the bytes that a predictor takes at most on a target."""
    n_outputs = program_of(predictor).n_outputs
    return footprint(predictor.map, n_outputs, target, predictor.n_features, len(predictor.classes))


def model_at(
    path: AnyPath, size: int, target: Target, max_bytes: float, above: int = -1
) -> tuple[int, Any]:
    """Return the largest size of a path that fits, and its model.

    The size is larger than ``above``, and at most ``size``. If none fits, return 0 and None.
    """
    sizes = path.path_.sizes
    for own in reversed(sizes[(sizes > above) & (sizes <= size)].tolist()):
        model = path.at(own)
        if promised_bytes(model.predictor_, target) <= max_bytes and _within_caps(path, model):
            return own, model
    return 0, None


def _within_caps(path: AnyPath, model: Any) -> bool:
    return not isinstance(path, AveragedPath) or path.within_caps(model)


def fold_table(
    path: AnyPath,
    data: tuple[Any, np.ndarray, np.ndarray],
    fold: Fold,
    sizes: list[int],
    form: Form,
    scorer: FoldScorer | None,
) -> np.ndarray:
    """Fit a path to the rows of a fold, and return (n_bits, n_sizes, columns) of `COLUMNS`."""
    fit, test = (part_of(rows, *data) for rows in (fold.fit, fold.test))
    whole(path.fit(*fit))
    out = np.full((len(form.bits), len(sizes), len(COLUMNS)), np.nan)
    most = np.inf if path.max_bytes is None else float(path.max_bytes)
    for line, bits in zip(out, form.bits, strict=True):
        for place, size in enumerate(sizes):
            above = sizes[place - 1] if place else -1
            reached, model = model_at(path, size, form.target(bits), most, above)
            if model is not None:
                record = _record(model, fit, test, fold, bits, form, scorer)
                line[place] = np.append(float(reached), record)
            elif place:
                line[place] = line[place - 1]
    return out


def _record(
    model: Any, fit: Any, test: Any, fold: Fold, bits: int, form: Form, scorer: FoldScorer | None
) -> np.ndarray:
    """Return the line of one model in the table of a fold, without the size that was reached."""
    took = promised_bytes(model.predictor_, form.target(bits))
    own, price = cost_of(model)
    costs = took, own.operations, own.features, price
    try:
        shipped = as_shipped(model, form.shipped(model.predictor_, fit[0], fit[2], bits))
    except TooWide:
        return np.full(len(COLUMNS) - 1, np.nan)
    if scorer is None:
        right = shipped.predictor_.encoded_labels(test[0]) == test[1]
        score = float(np.average(right, weights=test[2]))
    else:
        score = scorer(fold.number, shipped, *test)
    return np.array([model.n_atoms_, score, *costs], dtype=np.float64)


def as_shipped(model: Any, predictor: Any) -> Any:
    """Return a fitted classifier that predicts with another form of its predictor."""
    other = copy.copy(model)
    other.predictor_ = predictor
    return other
