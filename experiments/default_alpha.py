"""Which strength of the penalty should `ShareBoostClassifier` have by default?

For every data set, of which only the training part is used (at most 1,200 rows of it), three folds:
a path on two thirds, its error on the rest. Pools of columns, stumps and products, the errors at 5,
10 and 20 atoms. Candidates are constants, and constants divided by the number of rows. A candidate
is judged by its *excess*: its error less the lowest of any candidate on that set, pool and size, in
per cent. The mean over all of them chooses; the worst excess is shown beside it.

Run: python experiments/default_alpha.py [--rows 1200] [--json FILE]
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _common import arguments, load, progress, save, table

CONSTANTS = (1e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3)
PER_ROW = (0.01, 0.03, 0.1, 0.3, 1.0)
POOLS = ("columns", "stumps", "products")
SIZES = (5, 10, 20)
FOLDS = 3
OFFICIAL = ("pendigits", "satellite", "isolet", "usps", "mnist", "adult", "chars74k_hnd")
RAETSCH = (
    "banana", "breast_cancer", "diabetis", "flare_solar", "german", "heart", "image", "ringnorm",
    "splice", "thyroid", "titanic", "twonorm", "waveform",
)  # fmt: skip
BUILT_IN = ("iris", "wine", "breast_cancer", "digits")
# Products of more columns than this are too many to be tried so often.
MOST_FOR_PRODUCTS = 100


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=1200, help="of a set, at most (%(default)s)")
    args = parser.parse_args()
    names = [f"{c:g}" for c in CONSTANTS] + [f"{c:g} / rows" for c in PER_ROW]
    found: dict[str, dict[str, list[list[float]]]] = {}
    for name, X, y in problems(args.data, args.rows, args.seed):
        found[name] = {}
        for pool in POOLS:
            if pool == "products" and X.shape[1] > MOST_FOR_PRODUCTS:
                continue
            found[name][pool] = errors(X, y, pool, args.seed).tolist()
        progress(f"{name}: {X.shape[0]} rows of {X.shape[1]}, {len(np.unique(y))} classes")
    judged = judge(found)
    rows = [[n, *(judged[pool][i] for pool in (*POOLS, "all", "worst"))]
            for i, n in enumerate(names)]  # fmt: skip
    table("Mean excess error, %", ["alpha", *POOLS, "all", "worst"], rows)
    best = names[int(np.argmin(judged["all"]))]
    print(f"lowest mean excess: {best}")
    save(
        args.json, args, [], {"candidates": names, "excess": judged, "errors": found, "best": best}
    )


def problems(folder: Path, most: int, seed: int) -> Any:
    """Name, rows and labels of the training part of every set."""
    import sklearn.datasets

    for name in BUILT_IN:
        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
        # Half of the rows are kept for others to test on.
        yield f"sklearn {name}", *drawn(X, y, min(most, len(y) // 2), seed)
    for name in RAETSCH:
        data = load(folder, f"raetsch_{name}")
        X, y = data["X"].astype(float), data["y"]
        train = data["train_idx"][0] if "train_idx" in data else np.arange(0, len(y), 2)
        yield f"raetsch {name}", *drawn(X[train], y[train], most, seed)
    for name in OFFICIAL:
        data = load(folder, name)
        half = "X_train" not in data
        X, y = (data["X"][::2], data["y"][::2]) if half else (data["X_train"], data["y_train"])
        yield name, *drawn(X.reshape(len(y), -1).astype(float), y, most, seed)


def drawn(X: np.ndarray, y: np.ndarray, most: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """At most so many rows, none of a class that folds cannot share."""
    order = np.random.default_rng(seed).permutation(len(y))[:most]
    X, y = X[order], y[order]
    classes, counts = np.unique(y, return_counts=True)
    kept = np.isin(y, classes[counts >= FOLDS])
    return X[kept], y[kept]


def errors(X: np.ndarray, y: np.ndarray, pool: str, seed: int) -> np.ndarray:
    """Mean error over the folds, %, (n_candidates, n_sizes)."""
    from sklearn.model_selection import StratifiedKFold

    from laconic import ShareBoostClassifier

    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(X, y))
    out = np.zeros((len(CONSTANTS) + len(PER_ROW), len(SIZES)))
    for fit, test in folds:
        strengths = [*CONSTANTS, *(c / len(fit) for c in PER_ROW)]
        for i, alpha in enumerate(strengths):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = ShareBoostClassifier(max(SIZES), pool=pool, alpha=alpha).fit(X[fit], y[fit])
            wrong = [100.0 * np.mean(p != y[test]) for p in model.staged_predict(X[test])]
            out[i] += [wrong[min(size, len(wrong) - 1)] / len(folds) for size in SIZES]
    return out


def judge(found: dict[str, dict[str, list[list[float]]]]) -> dict[str, list[float]]:
    """Mean excess of every candidate by pool and over all, and the worst of any set."""
    excess: dict[str, list[np.ndarray]] = {pool: [] for pool in POOLS}
    for of_pools in found.values():
        for pool, measured in of_pools.items():
            error = np.array(measured)
            excess[pool].append((error - error.min(axis=0)).mean(axis=1))
    every = [one for of_pool in excess.values() for one in of_pool]
    means = {pool: np.mean(of_pool, axis=0).tolist() for pool, of_pool in excess.items()}
    return {
        **means,
        "all": np.mean(every, axis=0).tolist(),
        "worst": np.max(every, axis=0).tolist(),
    }


if __name__ == "__main__":
    main()
