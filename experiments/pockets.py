"""Does the report find what is wrong, and not what is hard?

*Pockets.* A real model predicts rows that it was not trained on: LightGBM or logistic regression,
on adult, spambase, pendigits or satellite. In a pocket of about 3 % of the rows, at least 60 in
each half, 40 % of the labels are changed. The pocket is a *rule*, a conjunction of two conditions,
or a *ball*, the rows nearest to a random row. A table counts as found if the first clump of the
report is confirmed and its fresh rows have an F1 of at least 0.5 with the pocket. The models never
see changed labels. An *oracle* that is told the pocket tests it on the same fresh rows. Where it
does not confirm the pocket at 1 %, the pocket cannot be told from the model's own errors.

*No probabilities.* The same pockets, and the search gets only which rows of one half are wrong. It
either expects the same errors everywhere, as the report does, or those of a small model of
difficulty: boosted stumps that predict from the columns whether a row is wrong, cross-fitted on
this half. A pocket counts as found if the first region has an F1 of at least 0.5 on the other half.

*Null tables.* Labels are drawn from the recalibrated probabilities, so that every row fails as
expected. A surprising clump that is confirmed is a false alarm. For losses, losses are permuted
over the rows.

*Speed.* A report on 200,000 rows with 300 columns, rules included, in a process of its own. Seconds
of processors, of all threads together, depend less on other work on the machine.

Run: python experiments/pockets.py [--parts pockets,plain,null,speed] [--repeats N] [--json FILE]
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from _common import arguments, load, progress, save, table
from clumps_vs_slices import adult, condition, measure, members

from laconic import report_holes
from laconic.report.expected import recalibrate
from laconic.report.features import NamedTable, as_table
from laconic.report.search import RowOutcome, search
from laconic.report.tails import surprise

SETS, MODELS, SHAPES = (
    ("adult", "spambase", "pendigits", "satellite"),
    ("LightGBM", "logistic regression"),
    ("rule", "ball"),
)
SHARE, LEAST, FLIPPED, FOUND = 0.03, 60, 0.4, 0.5
MIN_ROWS = 10
NULLS, FOLDS = 60, 5
ROWS, COLUMNS = 200_000, 300


class Predicted(NamedTuple):
    """Rows that a model was not trained on, and its probabilities."""

    X: Any
    y: np.ndarray
    proba: np.ndarray

    @property
    def said(self) -> np.ndarray:
        """Predicted labels."""
        return self.proba.argmax(axis=1)

    @property
    def sure(self) -> np.ndarray:
        """Probabilities of the predicted labels."""
        return self.proba.max(axis=1)


def main() -> None:
    """Run the parts and print what they find."""
    parser = arguments(__doc__)
    parser.add_argument("--parts", default="pockets,plain,null,speed", help="(%(default)s)")
    parser.add_argument("--repeats", type=int, default=20, help="pockets of a kind (%(default)s)")
    parser.add_argument("--nulls", type=int, default=NULLS, help="null tables (%(default)s)")
    parser.add_argument("--sets", default=",".join(SETS), help="(%(default)s)")
    parser.add_argument("--one-report", action="store_true", help="time one report of the size of "
                        "--parts speed, and print seconds and megabytes")  # fmt: skip
    args = parser.parse_args()
    if args.one_report:
        one_report(args.seed)
        return
    warnings.filterwarnings("ignore", category=UserWarning)
    parts = args.parts.split(",")
    results: dict[str, Any] = {}
    if {"pockets", "plain", "null"} & set(parts):
        given = {(name, model): one for name in args.sets.split(",")
                 for model, one in predictions(args, name)}  # fmt: skip
    for part in parts:
        if part == "pockets":
            results[part] = pockets(given, args)
            show_pockets("pockets in the rows of a model", results[part])
        elif part == "plain":
            results[part] = plain(given, args)
            show_pockets("the same without probabilities", results[part])
        elif part == "null":
            results[part] = null_tables(given, args)
        elif part == "speed":
            results[part] = speed(args)
        save(args.json, args, ["lightgbm", "pandas"], results)


# -- models ------------------------------------------------------------------------------------


def predictions(args: Any, name: str) -> Iterator[tuple[str, Predicted]]:
    """Yield both models' probabilities: for the test rows of adult, out of fold for other sets."""
    from sklearn.model_selection import KFold, cross_val_predict

    data = load(args.data, name)
    if name == "adult":
        train, test = (adult({**data, "X_train": data[f"X_{part}"]}) for part in ("train", "test"))
        for model, fitted in models(train):
            fitted.fit(train, data["y_train"])
            yield model, Predicted(test, data["y_test"], fitted.predict_proba(test))
        return
    if "X" in data:
        X, y = data["X"], data["y"]
    else:
        X, y = (np.concatenate([data[f"{what}_train"], data[f"{what}_test"]]) for what in "Xy")
    X, y = X.astype(np.float64), np.unique(y, return_inverse=True)[1]
    folds = KFold(FOLDS, shuffle=True, random_state=args.seed)
    for model, unfitted in models(X):
        yield (
            model,
            Predicted(X, y, cross_val_predict(unfitted, X, y, cv=folds, method="predict_proba")),
        )


def models(X: Any) -> Iterator[tuple[str, Any]]:
    """Yield LightGBM and logistic regression, with what they need before them."""
    from lightgbm import LGBMClassifier
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import (
        FunctionTransformer,
        OneHotEncoder,
        OrdinalEncoder,
        StandardScaler,
    )

    boosted = LGBMClassifier(n_jobs=1, verbose=-1)
    linear = LogisticRegression(max_iter=2000)
    if isinstance(X, np.ndarray):
        yield "LightGBM", boosted
        yield "logistic regression", make_pipeline(StandardScaler(), linear)
        return
    numbers = [name for name in X.columns if X[name].dtype.kind in "iuf"]
    text = [name for name in X.columns if name not in numbers]
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    words = OneHotEncoder(handle_unknown="ignore")
    for model, last, coded in (
        ("LightGBM", boosted, codes),
        ("logistic regression", linear, words),
    ):
        known = make_pipeline(FunctionTransformer(spelled), coded)
        columns = make_column_transformer((known, text), (StandardScaler(), numbers))
        yield model, make_pipeline(columns, last)


def spelled(frame: Any) -> Any:
    """Return text with a word for missing values."""
    return frame.astype(object).where(frame.notna(), "?")


# -- pockets -----------------------------------------------------------------------------------


class Pocket(NamedTuple):
    """A table with a pocket."""

    of: dict[str, Any]
    """Data set, model, shape and number of the repeat."""
    one: Predicted
    rows: NamedTable
    inside: np.ndarray
    truth: np.ndarray
    """Labels, some of those in the pocket changed."""


def tables(given: dict[tuple[str, str], Predicted], args: Any) -> Iterator[Pocket]:
    """Plant all pockets."""
    for (name, model), one in given.items():
        rows = as_table(one.X)
        for shape, repeat in product(SHAPES, range(args.repeats)):
            rng = np.random.default_rng([args.seed, repeat, SHAPES.index(shape)])
            inside = planted(rows, shape, rng)
            of = {"set": name, "model": model, "shape": shape, "repeat": repeat}
            yield Pocket(of, one, rows, inside, changed(one, inside, rng))


def pockets(given: dict[tuple[str, str], Predicted], args: Any) -> list[dict[str, Any]]:
    """Make reports, and return what the first clump is."""
    runs = []
    for pocket in tables(given, args):
        runs.append({**pocket.of, "way": "probabilities", **first_clump(pocket)})
        progress(f"{runs[-1]}")
    return runs


def plain(given: dict[tuple[str, str], Predicted], args: Any) -> list[dict[str, Any]]:
    """Search without probabilities in two ways, and return what the first region is."""
    runs = []
    for pocket in tables(given, args):
        wrong = pocket.one.said != pocket.truth
        order = np.random.default_rng([args.seed, pocket.of["repeat"]]).permutation(len(wrong))
        old, new = order[: len(order) // 2], order[len(order) // 2 :]
        own = np.zeros(len(wrong))
        own[old] = difficulty(pocket.rows.Z[old], wrong[old])
        for way, outcome in (
            ("same everywhere", RowOutcome(wrong)), ("difficulty", RowOutcome(wrong, own)),
        ):  # fmt: skip
            rng = np.random.default_rng(0)
            start = time.perf_counter()
            found, _ = search(pocket.rows, outcome, old, new, 1, MIN_ROWS, rng)
            inside = np.zeros(len(wrong), dtype=bool)
            if found:
                inside = members(pocket.rows, found[0].region.shape)
            f1 = measure([np.flatnonzero(inside)], pocket.inside, old)["F1"]
            runs.append({**pocket.of, "way": way, "F1": f1, "found": f1 >= FOUND,
                         "seconds": time.perf_counter() - start})  # fmt: skip
            progress(f"{runs[-1]}")
    return runs


def planted(rows: NamedTable, shape: str, rng: np.random.Generator) -> np.ndarray:
    """Return a mask of the rows of a random pocket."""
    share = max(SHARE, 2.6 * LEAST / len(rows))
    if shape == "ball":
        distance = np.linalg.norm(rows.Z - rows.Z[rng.integers(len(rows))], axis=1)
        return np.asarray(distance <= np.quantile(distance, share))
    while True:
        two = rng.choice(len(rows.columns), 2, replace=False)
        met = condition(rows.columns[two[0]], rng) & condition(rows.columns[two[1]], rng)
        if 0.95 * share <= met.mean() <= 1.3 * share:
            return met


def changed(one: Predicted, pocket: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the labels, 40 % of those in the pocket replaced by another label."""
    labels = one.proba.shape[1]
    other = (one.y + rng.integers(1, labels, len(one.y))) % labels
    return np.where(pocket & (rng.random(len(one.y)) < FLIPPED), other, one.y)


def first_clump(given: Pocket) -> dict[str, Any]:
    """Make a report and compare its first clump with the pocket, on fresh rows."""
    one, pocket, truth = given.one, given.inside, given.truth
    start = time.perf_counter()
    report = report_holes(one.said, one.X, truth, probabilities=one.sure)
    seconds = time.perf_counter() - start
    fresh, wrong = report.fresh, one.said != truth
    best = report.clumps[0] if report.clumps else None
    inside = np.zeros(len(truth), dtype=bool)
    if best is not None:
        inside[best.rows] = True
    both, either = (inside & pocket & fresh).sum(), (inside & fresh).sum() + (pocket & fresh).sum()
    curve = recalibrate(1 - one.sure[~fresh], wrong[~fresh].astype(float))
    told = pocket & fresh
    confirmed = best is not None and best.confirmed
    return {
        "confirmed": confirmed,
        "kind": None if best is None else best.kind,
        "is rule": best is not None and best.rule is not None,
        "F1": float(2 * both / either),
        "found": bool(confirmed and 2 * both / either >= FOUND),
        "fewest in a half": int(min(told.sum(), pocket.sum() - told.sum())),
        "oracle": surprise(int(wrong[told].sum()), 1 - one.sure[told], curve),
        "seconds": seconds,
    }


def difficulty(Z: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """Return the probability that each row is wrong, by cross-fitted boosted stumps."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    stumps = HistGradientBoostingClassifier(max_depth=1, max_iter=100, random_state=0)
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    return cross_val_predict(stumps, Z, wrong, cv=folds, method="predict_proba")[:, 1]


def show_pockets(title: str, runs: list[dict[str, Any]]) -> None:
    """Print how many pockets were found, for each set, model and shape."""
    lines = []
    for kind in dict.fromkeys((r["set"], r["model"], r["shape"], r["way"]) for r in runs):
        of = [r for r in runs if (r["set"], r["model"], r["shape"], r["way"]) == kind]
        tellable = [r for r in of if r.get("oracle", 0.0) < 0.01]
        lines.append([*kind, sum(r["found"] for r in of), len(of),
                      sum(r["found"] for r in tellable), len(tellable),
                      np.mean([r["F1"] for r in of]), min(r["F1"] for r in of),
                      float(np.median([r["seconds"] for r in of]))])  # fmt: skip
    heads = ["set", "model", "shape", "way", "found", "of", "found", "of those an oracle confirms",
             "F1", "least F1", "seconds"]  # fmt: skip
    table(title, heads, lines)


# -- null tables and speed ---------------------------------------------------------------------


def null_tables(given: dict[tuple[str, str], Predicted], args: Any) -> list[dict[str, Any]]:
    """Draw labels from recalibrated probabilities, and losses without any order; count alarms."""
    runs = []
    for number, (key, kind) in enumerate(product(given, ("labels", "losses"))):
        one = given[key]
        share = args.nulls // len(given) + (number // 2 < args.nulls % len(given))
        expected = recalibrate(1 - one.sure, (one.said != one.y).astype(float)).expected(
            1 - one.sure
        )
        for repeat in range(share):
            rng = np.random.default_rng([args.seed, repeat, number])
            if kind == "labels":
                labels = one.proba.shape[1]
                other = (one.said + rng.integers(1, labels, len(one.y))) % labels
                truth = np.where(rng.random(len(one.y)) < expected, other, one.said)
                report = report_holes(one.said, one.X, truth, probabilities=one.sure)
                alarms = [c for c in report.clumps if c.confirmed and c.kind == "surprising"]
            else:
                losses = rng.permutation(
                    -np.log(np.maximum(one.sure, 1e-9)) + rng.random(len(one.y))
                )
                report = report_holes(None, one.X, losses=losses)
                alarms = [c for c in report.clumps if c.confirmed]
            runs.append({"set": key[0], "model": key[1], "kind": kind, "repeat": repeat,
                         "alarms": len(alarms), "searched": report.found})  # fmt: skip
            progress(f"{runs[-1]}")
    lines = []
    for kind in ("labels", "losses"):
        of = [r for r in runs if r["kind"] == kind]
        lines.append(
            [kind, sum(r["alarms"] > 0 for r in of), len(of), sum(r["searched"] for r in of)]
        )
    table("null tables", ["kind", "with a false alarm", "of", "clumps searched"], lines)
    return runs


def speed(args: Any) -> dict[str, float]:
    """Time a large report in a process of its own."""
    command = [sys.executable, __file__, "--one-report", "--seed", str(args.seed)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    heads = ["seconds", "seconds of processors", "megabytes"]
    numbers = [float(word) for word in out[-3:]]
    table("200,000 rows x 300 columns", heads, [numbers])
    return dict(zip(heads, numbers, strict=True))


def one_report(seed: int) -> None:
    """Make a report on many rows and columns with a planted rule, and print its time and memory."""
    rng = np.random.default_rng(seed)
    small = rng.standard_normal((400, 4))
    report_holes(np.zeros(400), small, (small[:, 0] > 1).astype(float))  # compiles
    X = rng.standard_normal((ROWS, COLUMNS))
    sure = np.clip(rng.beta(6, 1, ROWS), 0.5, 1.0)
    wrong = rng.random(ROWS) > np.where((X[:, 7] > 1) & (X[:, 70] < -0.8), 0.5, sure)
    start, busy = time.perf_counter(), time.process_time()
    report = report_holes(np.zeros(ROWS), X, wrong.astype(float), probabilities=sure)
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(report.clumps[0].rule, seconds, busy, memory)


if __name__ == "__main__":
    main()
