"""Report where a classifier fails: clumps of errors, what their rows share, and local fixes.

Clumps are searched on one half of the rows and measured on the other, fresh half. So the numbers of
a clump are not those that it was chosen for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from laconic.clumping.score import ClumpScore, clump_score
from laconic.data.labels import check_labels
from laconic.holes.local_models import few_labels
from laconic.model.distances import inside_ball
from laconic.report.clumps import Clump, find_clumps
from laconic.report.columns import without
from laconic.report.facts import ClumpFacts, HolesReport, Rate
from laconic.report.features import NamedTable, as_table, feature_gaps, focus
from laconic.report.fix import try_fix
from laconic.report.models import in_groups, known_labels, may_classify, model_name, read_by

# Fewest rows that can be split into halves.
LEAST_ROWS = 4
# Most points on the map.
POINTS = 1500
# To judge a few errors: most rows that are right to compare them with, and the number of random
# placements of the errors.
COMPARED, PLACEMENTS = 2000, 999


def report_holes(
    model: Any,
    X: Any,
    y: Any,
    *,
    n_clumps: int = 8,
    min_rows: int = 10,
    ignore: Sequence[Any] = (),
    image_shape: tuple[int, int] | None = None,
    title: str | None = None,
    source: str | None = None,
    first_row: int = 0,
    random_state: int = 0,
) -> HolesReport:
    """Find where the errors of a fitted classifier clump.

    Parameters
    ----------
    model : object with ``predict``
        Any fitted classifier, or the labels that it predicted for the rows.
    X : data frame or array of shape (n_rows, n_features)
        Rows that the model was *not* trained on. For distances, numbers are scaled to unit variance
        and categories are one-hot coded. A feature counts more if errors depend on it more
        (`laconic.report.features.focus`). Pixels are used as they are. Dates and durations are
        numbers.
    y : array-like of shape (n_rows,)
        Their labels. For a model with ``label_groups``, they may be labels or groups.
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
    truth = np.asarray(y)
    if truth.ndim != 1 or len(truth) < LEAST_ROWS:
        raise ValueError(
            f"y must be a list of at least {LEAST_ROWS} labels, not of shape {truth.shape}."
        )
    if n_clumps < 1 or min_rows < 1:
        raise ValueError("n_clumps and min_rows must be at least 1.")
    check_labels(truth.astype(object) if truth.dtype.kind == "f" else truth)
    ignored = [ignore] if isinstance(ignore, str) else list(ignore)
    kept = without(X, ignored) if ignored else X
    table = as_table(kept, image_shape)
    if len(table) != len(truth):
        raise ValueError(f"X has {len(table)} rows, but y has {len(truth)} labels.")
    given = not hasattr(model, "predict")
    predicted = _given_labels(model) if given else _predicted(model, X, kept)
    if predicted.shape != truth.shape:
        raise ValueError(f"the model gave {predicted.shape} predictions for {truth.shape} labels.")
    if not given:
        truth = np.asarray(in_groups(model, truth))
    truth, predicted = _comparable(truth, predicted)
    rng = np.random.default_rng(random_state)
    wrong = truth != predicted
    fresh = _half(wrong, rng)
    searched = np.flatnonzero(~fresh)
    points = table.Z * focus(table, wrong, searched)
    found = find_clumps(points[searched], wrong[searched], n_clumps, min_rows, rng)
    clumps, fixed = _measure(table, points, truth, predicted, fresh, searched, found)
    name = title or ("this classifier" if given else model_name(model))
    report = HolesReport(
        name, table, truth, predicted, fresh, clumps, fixed, len(found),
        source=source, first_row=first_row, min_rows=min_rows,
        ignored=[str(name) for name in ignored], known=None if given else known_labels(model),
    )  # fmt: skip
    report.shown, report.places = _map(points, wrong, rng)
    if report.few_errors and not any(clump.confirmed for clump in clumps):
        report.nearness = _nearness(table.Z, wrong, rng)
    return report


def _given_labels(labels: Any) -> np.ndarray:
    """Return labels that were given in place of a model."""
    predicted = np.asarray(labels)
    if predicted.ndim == 0:
        what = "None" if labels is None else f"an object of type {type(labels).__name__}"
        raise ValueError(
            f"{what} is not a classifier: it has no predict, and is not a list of labels."
        )
    return predicted


def _predicted(model: Any, X: Any, kept: Any) -> np.ndarray:
    """Return the labels that a model predicts from the columns that it was fitted on."""
    if not may_classify(model):
        raise ValueError(f"{model_name(model)} is not a classifier.")
    return np.asarray(model.predict(read_by(model, X, kept)))


def _comparable(truth: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both kinds of labels in one type, as a table may hold numbers as text."""
    broken = predicted[predicted % 1 != 0] if predicted.dtype.kind == "f" else predicted[:0]
    if truth.dtype.kind in "OUS" or predicted.dtype.kind in "OUS":
        truth, predicted = truth.astype(str), predicted.astype(str)
    said, known = np.unique(predicted), np.unique(truth)
    if not np.isin(said, known).any():
        if len(broken):
            raise ValueError(
                f"the model is not a classifier: it predicts numbers such as {broken[0]:.3g}."
            )
        raise ValueError(
            f"the model predicts {few_labels(said.tolist())}, and the true labels are "
            f"{few_labels(known.tolist())}. They have none in common. Give y in the labels that "
            "the model predicts."
        )
    return truth, predicted


def _half(wrong: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a random half of the rows, with half of the errors."""
    fresh = np.zeros(len(wrong), dtype=bool)
    for rows in (np.flatnonzero(wrong), np.flatnonzero(~wrong)):
        fresh[rng.permutation(rows)[: len(rows) // 2]] = True
    return fresh


def _measure(
    table: NamedTable,
    points: np.ndarray,
    truth: np.ndarray,
    predicted: np.ndarray,
    fresh: np.ndarray,
    searched: np.ndarray,
    found: list[Clump],
) -> tuple[list[ClumpFacts], Rate]:
    """Return the ranked facts of all clumps, and the errors on fresh rows with every useful fix."""
    wrong = truth != predicted
    members = _members(points, found)
    taken = np.concatenate([*members, np.empty(0, dtype=np.int64)])
    rest = np.setdiff1d(np.flatnonzero(fresh), taken)
    outside = Rate(int(wrong[rest].sum()), len(rest))
    better = predicted.copy()
    facts = []
    for clump, inside in zip(found, members, strict=True):
        old, new = inside[~fresh[inside]], inside[fresh[inside]]
        within = Rate(int(wrong[new].sum()), len(new))
        fix = try_fix(table.Z, truth, predicted, old, new)
        if fix.labels is not None:
            better[new] = fix.labels
        facts.append(
            ClumpFacts(
                centre=int(searched[clump.row]),
                radius=clump.radius,
                rows=inside,
                searched=Rate(int(wrong[old].sum()), len(old)),
                inside=within,
                outside=outside,
                chance=_chance(within, outside),
                mistakes=_mistakes(truth[inside], predicted[inside]),
                gaps=feature_gaps(table, inside),
                fix=fix,
            )
        )
    borne_out = [fact for fact in facts if fact.excess > 0]
    ranked = sorted(borne_out, key=lambda fact: (not fact.confirmed, -fact.excess))
    return ranked, Rate(int((better != truth)[fresh].sum()), int(fresh.sum()))


def _members(points: np.ndarray, found: list[Clump]) -> list[np.ndarray]:
    """Return each clump's rows, nearest first. A row goes to the first clump that holds it."""
    free = np.ones(len(points), dtype=bool)
    members = []
    for clump in found:
        inside = inside_ball(points, clump.centre, clump.radius)
        inside = inside[free[inside]]
        free[inside] = False
        distance = np.linalg.norm(points[inside] - clump.centre, axis=1)
        members.append(inside[np.argsort(distance, kind="stable")])
    return members


def _chance(inside: Rate, outside: Rate) -> float:
    """Return the probability of at least as many errors inside if errors fell on rows at random."""
    from scipy.stats import hypergeom

    rows, errors = inside.rows + outside.rows, inside.errors + outside.errors
    return float(hypergeom.sf(inside.errors - 1, rows, errors, inside.rows))


def _mistakes(truth: np.ndarray, predicted: np.ndarray) -> list[tuple[Any, Any, int]]:
    wrong = truth != predicted
    pairs = Counter(zip(truth[wrong].tolist(), predicted[wrong].tolist(), strict=True))
    return [(true, taken, number) for (true, taken), number in pairs.most_common(3)]


def _nearness(Z: np.ndarray, wrong: np.ndarray, rng: np.random.Generator) -> ClumpScore | None:
    """Measure how clumped a few errors are among rows that are right. None if it is undefined."""
    right = rng.permutation(np.flatnonzero(~wrong))[:COMPARED]
    rows = np.concatenate([np.flatnonzero(wrong), right])
    if len(rows) - len(right) < 2 or not np.ptp(Z[rows], axis=0).any():
        return None
    return clump_score(Z[rows], wrong[rows], n_permutations=PLACEMENTS, random_state=0)


def _map(
    Z: np.ndarray, wrong: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Choose rows to draw, errors first, and return their first two principal components too."""
    bad, good = rng.permutation(np.flatnonzero(wrong)), rng.permutation(np.flatnonzero(~wrong))
    bad = bad[: POINTS // 2]
    shown = np.sort(np.concatenate([bad, good[: POINTS - len(bad)]]))
    if Z.shape[1] < 2:
        return shown, np.column_stack([Z[shown], np.zeros(len(shown))])
    if not np.ptp(Z[shown], axis=0).any():
        return shown, np.zeros((len(shown), 2))
    from sklearn.decomposition import PCA

    return shown, PCA(2, svd_solver="randomized", random_state=0).fit_transform(Z[shown])
