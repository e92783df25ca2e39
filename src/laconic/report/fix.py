"""Does a local fix help? Chosen on some rows of a region, and tried once on others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binomtest
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from laconic.holes.local_models import constant

# Fresh rows below which nothing is said, and rows below which no model is fitted.
ENOUGH, FITTED = 8, 20
FOLDS = 5
# Weights of a linear model that are named, and the part of the largest below which they are not.
NAMED, FAINT = 3, 0.2
# Chances of so large a gain by luck below which a fix helps, and may help.
SURE, LIKELY = 0.05, 0.2


@dataclass(frozen=True)
class LocalFix:
    """A local model beside the classifier as it is."""

    kind: str
    """``"keep"`` (nothing local was better), ``"constant"`` or ``"linear"``."""
    before: int
    """Errors of the classifier on the fresh rows inside."""
    after: int
    """Errors of the local model on them."""
    rows: int
    """Fresh rows inside."""
    luck: float
    """Chance of such a difference were both equally good (sign test on the rows they differ on)."""
    verdict: str
    """``"helps"``, ``"may help"``, ``"no clear difference"`` (fewer errors, and luck might well do
    so), ``"does not help"`` or ``"too few rows to tell"``."""
    says: Any = None
    """The constant's label."""
    labels: np.ndarray | None = None
    """What the local model says of the fresh rows; None where nothing is to be changed."""
    leans_on: tuple[tuple[int, Any], ...] = ()
    """The linear model's largest weights: the column, and the label that high values speak for."""


def try_fix(
    Z: np.ndarray, truth: np.ndarray, predicted: np.ndarray, old: np.ndarray, new: np.ndarray
) -> LocalFix:
    """Choose a model by cross-validation on the rows ``old``, and count its errors on ``new``.

    The choices are the classifier as it is, a constant, and a linear classifier on the columns of
    ``Z``; ties go to the simpler. The rows of ``new`` are read once, by the choice.
    """
    missed = predicted[new] != truth[new]
    before = int(missed.sum())
    kind = _choice(Z[old], truth[old], predicted[old])
    if kind == "keep":
        verdict = "does not help" if len(new) >= ENOUGH else "too few rows to tell"
        return LocalFix(kind, before, before, len(new), 1.0, verdict)
    model = constant(Z[old], truth[old], None)
    says = model.predict(Z[:1])[0] if kind == "constant" else None
    leans_on: tuple[tuple[int, Any], ...] = ()
    if kind == "linear":
        model = _linear().fit(Z[old], truth[old])
        leans_on = _largest_weights(model, Z[old])
    labels = model.predict(Z[new]) if len(new) else truth[new]
    wrong = labels != truth[new]
    better, worse = int((missed & ~wrong).sum()), int((~missed & wrong).sum())
    luck = float(binomtest(better, better + worse).pvalue) if better + worse else 1.0
    if len(new) < ENOUGH:
        verdict = "too few rows to tell"
    elif better <= worse:
        verdict = "does not help"
    elif luck < SURE:
        verdict = "helps"
    else:
        verdict = "may help" if luck <= LIKELY else "no clear difference"
    after = int(wrong.sum())
    return LocalFix(kind, before, after, len(new), luck, verdict, says, labels, leans_on)


def _linear() -> RidgeClassifierCV:
    """Quick to fit to many columns; it chooses its penalty by leaving out one row at a time."""
    return RidgeClassifierCV(alphas=np.logspace(0, 4, 5))


def _largest_weights(model: Any, Z: np.ndarray) -> tuple[tuple[int, Any], ...]:
    """Columns that move the scores of these rows most, and the label their high values speak for.

    A weight counts by how far the column spreads, and by how differently it treats the labels.
    """
    coef = np.atleast_2d(model.coef_)
    coef = np.vstack([-coef, coef]) if len(coef) == 1 else coef
    moves = (coef.max(axis=0) - coef.min(axis=0)) * Z.std(axis=0)
    largest = np.argsort(-moves, kind="stable")[:NAMED]
    kept = largest[moves[largest] > FAINT * max(moves.max(initial=0.0), 1e-12)]
    return tuple((int(j), model.classes_[coef[:, j].argmax()]) for j in kept)


def _choice(Z: np.ndarray, truth: np.ndarray, predicted: np.ndarray) -> str:
    """The kind with the fewest cross-validated errors."""
    codes, counts = np.unique(truth, return_inverse=True, return_counts=True)[1:]
    errors = {
        "keep": int((predicted != truth).sum()),
        # Left out, a row of the largest class still sees it as the largest where it leads by two.
        "constant": len(truth) - int(counts.max(initial=0)),
    }
    # A label of its own is in no training part when it is left out: surely an error.
    twice = counts >= 2
    kept = np.flatnonzero(twice[codes])
    if len(kept) >= FITTED and twice.sum() > 1:
        folds = min(FOLDS, int(counts[twice].min()))
        parts = StratifiedKFold(folds, shuffle=True, random_state=0)
        said = cross_val_predict(_linear(), Z[kept], truth[kept], cv=parts)
        errors["linear"] = int((said != truth[kept]).sum()) + len(truth) - len(kept)
    return min(errors, key=lambda kind: errors[kind])
