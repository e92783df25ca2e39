"""How many stumps do AdaBoost, gradient boosting and TotalQBoost need for the same error?

The twelve data sets of the Rätsch collection are used. Models learn from training partitions, and
the rows outside them are validation rows. Measured is the validation error against the number of
stumps, averaged over the partitions, up to 100 stumps. AdaBoost and the gradient boosters
(scikit-learn, LightGBM, XGBoost, all at depth 1) run at their defaults. TotalQBoost runs in two
ways: every round of column generation (``price=0``) for each l1 of `L1`, and a price on every stump
for each l1 and each of `PRICES`, hot-started from 40 stumps.

The number of learners of every method, and our l1 and price, are chosen on the same validation
rows. The question is how short a model with a given error can be, not how to choose it. For each
set, take the smallest (mean) number of learners at which the mean error is no more than AdaBoost's
best. The measure is this number divided by the number at which AdaBoost first reaches its best.

Run: python benchmarks/boosting_peers.py [--partitions 3] [--json FILE]
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from _common import affinity_kept, arguments, error, progress, save, table, verdict
from _raetsch import SETS, rows

LEARNERS = 100
L1 = (1e-6, 1e-3, 3e-3, 1e-2, 3e-2)
PRICES = tuple(np.geomspace(3e-4, 3e-2, 9))
Curve = list[tuple[float, float]]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument(
        "--partitions", type=int, default=3, help="number of partitions of every set"
    )
    args = parser.parse_args()
    results = {name: one_set(name, args) for name in args.sets}
    methods = ["AdaBoost", "scikit-learn", "LightGBM", "XGBoost", "ours, no price", "ours"]
    table(
        f"Least validation error, % (learners, of {LEARNERS} at most)",
        ["set", *methods],
        [[name, *(best_text(found["curves"][m]) for m in methods)]
         for name, found in results.items()],
    )  # fmt: skip
    table(
        "Learners for the error of AdaBoost's best",
        ["set", *methods, "ratio"],
        [[name, *(found["needed"][m] for m in methods), found["ratio"]]
         for name, found in results.items()],
    )  # fmt: skip
    ratios = [found["ratio"] for found in results.values()]
    reach = verdict("median ratio of learners to AdaBoost's", float(np.median(ratios)), 0.5, False)
    peers = ["lightgbm", "xgboost"]
    for found in results.values():
        del found["curves"]  # the curves of the settings contain them
    save(args.json, args, peers, {"sets": results, "median": reach})


def one_set(name: str, args: Any) -> dict[str, Any]:
    runs = []
    for number in range(args.partitions):
        X, y, train = rows(args.data, name, args.seed, number)
        held = np.setdiff1d(np.arange(len(y)), train)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # models without stumps, where none is worth its price
            runs.append(dict(curves(X[train], y[train], X[held], y[held], args.seed)))
        progress(f"{name}: partition {number} done")
    mean = {key: averaged([run[key] for run in runs]) for key in runs[0]}
    merged = {key: points for key, points in mean.items() if not key.startswith("ours")}
    for label, kinds in (("ours, no price", ("rounds",)), ("ours", ("rounds", "price"))):
        merged[label] = sorted(
            point for key, points in mean.items()
            if key.startswith("ours") and key.split(", ")[1] in kinds for point in points
        )  # fmt: skip
    best = min(e for _, e in merged["AdaBoost"])
    needed = {key: needs(points, best) for key, points in merged.items()}
    ratio = needed["ours"] / needed["AdaBoost"]
    return {"curves": merged, "settings": mean, "needed": needed, "ratio": ratio}


def curves(
    X: np.ndarray, y: np.ndarray, Z: np.ndarray, z: np.ndarray, seed: int
) -> Iterator[tuple[str, Curve]]:
    """Return numbers of learners and validation errors of every method on one partition."""
    yield from peers(X, (y > 0).astype(int), Z, (z > 0).astype(int), seed)
    yield from ours(X, y, Z, z)


def peers(
    X: np.ndarray, y: np.ndarray, Z: np.ndarray, z: np.ndarray, seed: int
) -> Iterator[tuple[str, Curve]]:
    from lightgbm import LGBMClassifier
    from sklearn.ensemble import AdaBoostClassifier, GradientBoostingClassifier
    from xgboost import XGBClassifier

    count = {"n_estimators": LEARNERS, "random_state": seed}
    staged = {
        "AdaBoost": AdaBoostClassifier(**count),
        "scikit-learn": GradientBoostingClassifier(max_depth=1, **count),
    }
    for name, model in staged.items():
        found = [error(p, z) for p in model.fit(X, y).staged_predict(Z)]
        found += found[-1:] * (LEARNERS - len(found))  # AdaBoost may end early
        yield name, [(n, e) for n, e in enumerate(found, 1)]
    with affinity_kept():
        light = LGBMClassifier(num_leaves=2, n_jobs=1, verbose=-1, **count).fit(X, y)
        yield (
            "LightGBM",
            [(n, error(light.predict(Z, num_iteration=n), z)) for n in range(1, LEARNERS + 1)],
        )
        extreme = XGBClassifier(max_depth=1, n_jobs=1, **count).fit(X, y)
        yield (
            "XGBoost",
            [
                (n, error(extreme.predict(Z, iteration_range=(0, n)), z))
                for n in range(1, LEARNERS + 1)
            ],
        )


def ours(X: np.ndarray, y: np.ndarray, Z: np.ndarray, z: np.ndarray) -> Iterator[tuple[str, Curve]]:
    from laconic import TotalQBoostClassifier

    for l1 in L1:
        model = TotalQBoostClassifier(LEARNERS, price=0.0, l1=l1, tol=0.0).fit(X, y)
        by_size = dict(zip(model.path_.sizes, model.staged_predict(Z), strict=True))
        found = {n: error(p, z) for n, p in by_size.items()}
        sizes = sorted(found)
        curve = [(n, found[max(s for s in sizes if s <= n)]) for n in range(1, LEARNERS + 1)]
        yield f"ours, rounds, l1 {l1:.0e}", curve
        priced = TotalQBoostClassifier(40, hot_start=40, l1=l1, tol=0.0)
        models = priced.fit_path(X, y, price=PRICES)
        for price, one in zip(PRICES, models, strict=True):
            point = (one.n_atoms_, error(one.predict(Z), z))
            yield f"ours, price, l1 {l1:.0e}, price {price:.1e}", [point]


def averaged(runs: list[Curve]) -> Curve:
    """Return the mean numbers of learners and errors, point by point."""
    return [tuple(p) for p in np.mean(np.array(runs, dtype=float), axis=0).tolist()]  # type: ignore


def needs(points: Curve, wanted: float) -> float:
    """Return the smallest number of learners with at most this error, or infinity if none has."""
    return min((n for n, e in points if e <= wanted + 1e-12), default=np.inf)


def best_text(points: Curve) -> str:
    lowest = min(e for _, e in points)
    return f"{100 * lowest:.1f} ({needs(points, lowest):.0f})"


if __name__ == "__main__":
    main()
