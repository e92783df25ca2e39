"""Local fixes: chosen on some rows of a region, and tried once on others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binomtest
from sklearn.linear_model import RidgeClassifierCV
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from laconic.holes.local_models import constant

# Fewest fresh rows to judge a fix on, and fewest rows to fit a model to.
ENOUGH, FITTED = 8, 20
FOLDS = 5
# Most weights of a linear model that are named, and their smallest part of the largest weight.
NAMED, FAINT = 3, 0.2
# A fix helps, or may help, if the chance of so large a gain by luck is below these.
SURE, LIKELY = 0.05, 0.2


@dataclass(frozen=True)
class LocalFix:
    """A local model compared with the classifier."""

    kind: str
    """``"keep"`` (nothing local was better), ``"constant"`` or ``"linear"``."""
    before: int
    """Errors of the classifier on the fresh rows inside."""
    after: int
    """Errors of the local model on them."""
    rows: int
    """Number of fresh rows inside."""
    luck: float
    """Chance of such a difference if both were equally good (sign test where they differ)."""
    verdict: str
    """``"helps"``, ``"may help"``, ``"no clear difference"`` (fewer errors, perhaps by luck),
    ``"does not help"``, ``"too few rows to tell"`` or ``"not tried"`` (losses have no labels)."""
    says: Any = None
    """The label of the constant."""
    labels: np.ndarray | None = None
    """Labels of the local model for the fresh rows, or None if nothing changes."""
    leans_on: tuple[tuple[int, Any], ...] = ()
    """Largest weights of the linear model: the column, and the label that high values favour."""

    @classmethod
    def none(cls, rows: int) -> LocalFix:
        """Return the answer where no fix is tried, as there are losses and no labels."""
        return cls("keep", 0, 0, rows, 1.0, "not tried")


def try_fix(
    Z: np.ndarray, truth: np.ndarray, predicted: np.ndarray, old: np.ndarray, new: np.ndarray
) -> LocalFix:
    """Choose a model by cross-validation on the rows ``old``, and count its errors on ``new``.

    The choices are the classifier as it is, a constant, and a linear classifier on the columns of
    ``Z``. A tie goes to the simpler one. Only the chosen model is tried on the rows ``new``, once.
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
    """Return a classifier that is quick on many columns and tunes its penalty by leave-one-out."""
    return RidgeClassifierCV(alphas=np.logspace(0, 4, 5))


def _largest_weights(model: Any, Z: np.ndarray) -> tuple[tuple[int, Any], ...]:
    """Return the columns that move the scores of these rows most, and the labels they favour.

    A weight counts by the spread of its column, and by how differently it treats the labels. A
    column favours the label that its high values suggest.
    """
    coef = np.atleast_2d(model.coef_)
    coef = np.vstack([-coef, coef]) if len(coef) == 1 else coef
    moves = (coef.max(axis=0) - coef.min(axis=0)) * Z.std(axis=0)
    largest = np.argsort(-moves, kind="stable")[:NAMED]
    kept = largest[moves[largest] > FAINT * max(moves.max(initial=0.0), 1e-12)]
    return tuple((int(j), model.classes_[coef[:, j].argmax()]) for j in kept)


def _choice(Z: np.ndarray, truth: np.ndarray, predicted: np.ndarray) -> str:
    """Return the kind with the fewest cross-validated errors."""
    codes, counts = np.unique(truth, return_inverse=True, return_counts=True)[1:]
    errors = {
        "keep": int((predicted != truth).sum()),
        # If the largest class leads by two, it stays the largest without any one of its rows.
        "constant": len(truth) - int(counts.max(initial=0)),
    }
    # A label that occurs once is never in the training part of its row, so the row is an error.
    twice = counts >= 2
    kept = np.flatnonzero(twice[codes])
    if len(kept) >= FITTED and twice.sum() > 1:
        folds = min(FOLDS, int(counts[twice].min()))
        parts = StratifiedKFold(folds, shuffle=True, random_state=0)
        said = cross_val_predict(_linear(), Z[kept], truth[kept], cv=parts)
        errors["linear"] = int((said != truth[kept]).sum()) + len(truth) - len(kept)
    return min(errors, key=lambda kind: errors[kind])
