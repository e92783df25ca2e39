"""Report where a model fails: clumps of errors, what their rows share, and local fixes.

Clumps are searched on one half of the rows and measured on the other, fresh half. So the numbers of
a clump are not those that it was chosen for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from laconic.clumping.score import ClumpScore, clump_score
from laconic.data.elsewhere import in_words, is_elsewhere
from laconic.data.labels import check_labels
from laconic.numeric.threads import Threads
from laconic.report.columns import without
from laconic.report.facts import HolesReport
from laconic.report.features import as_table
from laconic.report.halves import fresh_half, row_keys
from laconic.report.inputs import (
    checked_losses,
    checked_probability,
    comparable,
    given_labels,
    predicted_by,
)
from laconic.report.measure import ReportRows, measure
from laconic.report.models import in_groups, known_labels, model_name
from laconic.report.search import RowOutcome, search

# Fewest rows that can be split into halves.
LEAST_ROWS = 4
# Most rows on the map, and most of them that decide on its directions.
POINTS, DECIDING = 20_000, 4000
# To judge a few errors: most rows that are right to compare them with, and the number of random
# placements of the errors.
COMPARED, PLACEMENTS = 2000, 999
# Share of the rows whose losses count as high, on the map and in tables.
HIGH = 0.1


def report_holes(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    probabilities: Any = None,
    losses: Any = None,
    n_clumps: int = 8,
    min_rows: int = 10,
    ignore: Sequence[Any] = (),
    image_shape: tuple[int, int] | None = None,
    title: str | None = None,
    source: str | None = None,
    first_row: int = 0,
    random_state: int = 0,
) -> HolesReport:
    """Find where the errors of a fitted classifier, or any losses, clump.

    If the classifier has probabilities, the report first looks for errors in excess of those that
    it expected: *surprising* clumps. Then it looks for *hard* ones, where errors are many, as
    expected.

    Parameters
    ----------
    model : object with ``predict``
        Any fitted classifier, or the labels that it predicted for the rows. None with ``losses``.
    X : data frame or array of shape (n_rows, n_features)
        Rows that the model was *not* trained on. For distances, numbers are scaled to unit variance
        and categories are one-hot coded. A feature counts more if errors depend on it more
        (`laconic.report.features.focus`), and all features also count alike. Pixels are used as
        they are. Dates and durations are numbers.
    y : array-like of shape (n_rows,)
        Their labels. For a model with ``label_groups``, they may be labels or groups. None with
        ``losses``.
    probabilities : array-like of shape (n_rows,), default=None
        For each row, the probability of its predicted label. By default the model is asked, if it
        has ``predict_proba``.
    losses : array-like of shape (n_rows,), default=None
        The loss of each row, for example |y − prediction| of a regression. Large losses are bad.
        The report then looks for clumps of large losses, and needs neither model nor labels.
    n_clumps : int, default=8
        Largest number of clumps to report.
    min_rows : int, default=10
        Smallest number of searched rows in a clump.
    ignore : list, default=()
        Columns to leave out of distances and sentences, by name (for an array, by number). The
        model still gets those that it was fitted on.
    image_shape : (height, width), default=None
        Shape of the pictures, if rows are pictures.
    title : str, default=None
        Name of the model in the headline. The default is its class, or the class of the last step
        of a pipeline.
    source : str, default=None
        Name of the rows in the headline, for example a file name.
    first_row : int, default=0
        Number that the report gives to the first row: 0 as in Python, or 1 as people count.
    random_state : int, default=0
        Seed of the random halves.

    Returns
    -------
    HolesReport

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 1, (2000, 2))
    >>> y = (X[:, 0] > 0.5) ^ (np.linalg.norm(X - 0.8, axis=1) < 0.15)
    >>> report = report_holes(LogisticRegression().fit(X[::2], y[::2]), X[1::2], y[1::2])
    >>> best = report.clumps[0]
    >>> best.confirmed, bool(best.inside.share > 0.7), best.fix.verdict
    (True, True, 'helps')
    """
    if is_elsewhere(X):
        raise TypeError(
            f"the report reads rows in one memory, and X is {in_words(X)}; give it a sample of the "
            "rows, with their labels and predictions"
        )
    if n_clumps < 1 or min_rows < 1:
        raise ValueError("n_clumps and min_rows must be at least 1.")
    ignored = [ignore] if isinstance(ignore, str) else list(ignore)
    kept = without(X, ignored) if ignored else X
    given = not hasattr(model, "predict")
    rows = losses if losses is not None else y
    if np.ndim(rows) != 1 or len(rows) < LEAST_ROWS:
        raise ValueError(
            f"{_name(losses)} must be a list of at least {LEAST_ROWS} {_what(losses)}, not of "
            f"shape {np.shape(rows)}."
        )
    table = as_table(kept, image_shape)
    if len(table) != len(rows):
        raise ValueError(
            f"X has {len(table)} rows, but {_name(losses)} has {len(rows)} {_what(losses)}."
        )
    if losses is not None:
        if model is not None or y is not None or probabilities is not None:
            raise ValueError("losses take the place of model, y and probabilities. Give None.")
        losses = checked_losses(losses)
        high = losses > np.quantile(losses, 1.0 - HIGH)
        truth, predicted, chance = high, np.zeros(len(high), dtype=bool), None
    else:
        truth, predicted, chance = _labels(model, X, kept, y, probabilities)
    wrong = truth != predicted
    outcome = RowOutcome(wrong, None if chance is None else 1.0 - chance, losses)
    others = [truth, predicted] if losses is None else [losses]
    if chance is not None:  # its last bits may depend on the order in which a model got the rows
        others.append(np.round(chance, 9))
    keys = row_keys(table.columns, others, random_state)
    fresh = fresh_half(keys, wrong)
    order = np.argsort(keys, kind="stable")
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    rng = np.random.default_rng(random_state)
    labels = (truth, predicted) if losses is None else None
    with Threads():  # small products are quicker on one thread of BLAS
        halves = order[~fresh[order]], order[fresh[order]]
        found, curve = search(table, outcome, *halves, n_clumps, min_rows, rng)
        measured, fixed = measure(ReportRows(table, outcome, labels, fresh, place), found, curve)
    clumps = measured[:n_clumps]
    name = title or ("this model" if losses is not None else "this classifier")
    report = HolesReport(
        name if given else title or model_name(model),
        table, truth, predicted, fresh, clumps, fixed, len(found),
        source=source, first_row=first_row, min_rows=min_rows,
        ignored=[str(name) for name in ignored], known=None if given else known_labels(model),
        probability=chance, losses=losses,
    )  # fmt: skip
    report.shown, report.places = _map(table.Z, order, rng)
    if losses is None and report.few_errors and not any(clump.confirmed for clump in clumps):
        report.nearness = _nearness(table.Z, wrong, order, rng)
    return report


def _labels(
    model: Any, X: Any, kept: Any, y: Any, probabilities: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return true and predicted labels, and the probabilities of the latter if there are any."""
    truth = np.asarray(y)
    check_labels(truth)
    if hasattr(model, "predict"):
        predicted, chance = predicted_by(model, X, kept)
        truth = np.asarray(in_groups(model, truth))
    else:
        predicted, chance = given_labels(model), None
    if predicted.shape != truth.shape:
        raise ValueError(f"the model gave {predicted.shape} predictions for {truth.shape} labels.")
    truth, predicted = comparable(truth, predicted)
    if probabilities is not None:
        labels = len(np.union1d(truth, predicted))
        chance = checked_probability(probabilities, predicted, labels)
    return truth, predicted, chance


def _name(losses: Any) -> str:
    return "y" if losses is None else "losses"


def _what(losses: Any) -> str:
    return "labels" if losses is None else "numbers"


def _nearness(
    Z: np.ndarray, wrong: np.ndarray, order: np.ndarray, rng: np.random.Generator
) -> ClumpScore | None:
    """Measure how clumped a few errors are among rows that are right. None if it is undefined."""
    right = rng.permutation(order[~wrong[order]])[:COMPARED]
    rows = np.concatenate([order[wrong[order]], right])
    if len(rows) - len(right) < 2 or not np.ptp(Z[rows], axis=0).any():
        return None
    return clump_score(Z[rows], wrong[rows], n_permutations=PLACEMENTS, random_state=0)


def _map(
    Z: np.ndarray, order: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Choose rows to draw, right or wrong, and return their first two principal components."""
    shown = rng.permutation(order)[:POINTS]
    if Z.shape[1] < 2:
        return shown, np.column_stack([Z[shown], np.zeros(len(shown))])
    if not np.ptp(Z[shown[:DECIDING]], axis=0).any():
        return shown, np.zeros((len(shown), 2))
    from sklearn.decomposition import PCA

    directions = PCA(2, svd_solver="randomized", random_state=0).fit(Z[shown[:DECIDING]])
    return shown, directions.transform(Z[shown])
