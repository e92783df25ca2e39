"""Which strength of the penalty should `ShareBoostClassifier` have by default?

Only the training part of every data set is used. From each, 300, 1,200 and 8,000 rows are drawn, or
all if there are fewer. Every draw has three folds: a path is fitted on two thirds, and its error is
measured on the rest. Pools are columns, stumps and products. Errors are those at 5, 10 and 20
atoms. Candidates are constants, and constants divided by the number of rows or its square, between
two limits. A candidate is judged by its *excess*: its error minus the lowest error of any candidate
on that draw, pool and size, in per cent. The means by number of rows show whether the strength
should depend on it. The mean of these means decides, so that many small draws do not outvote few
large ones.

Run: python experiments/default_alpha.py [--rows 300 1200 8000] [--json FILE]
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _common import arguments, load, progress, save, table

CONSTANTS = (1e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3)
# Constants to divide by a power of the number of rows. The result is kept between the best
# constants for many rows and for few.
FALLING = ((0.03, 1), (0.1, 1), (0.3, 1), (16, 2), (32, 2), (64, 2), (128, 2))
LOW, HIGH = 1e-6, 3e-4
POOLS = ("columns", "stumps", "products")
SIZES = (5, 10, 20)
FOLDS = 3
OFFICIAL = ("pendigits", "satellite", "isolet", "usps", "mnist", "adult", "chars74k_hnd")
RAETSCH = (
    "banana", "breast_cancer", "diabetis", "flare_solar", "german", "heart", "image", "ringnorm",
    "splice", "thyroid", "titanic", "twonorm", "waveform",
)  # fmt: skip
BUILT_IN = ("iris", "wine", "breast_cancer", "digits")
# With more columns than this, there are too many products to try so often.
MOST_FOR_PRODUCTS = 100


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[300, 1200, 8000], help="rows of a draw"
    )
    args = parser.parse_args()
    names = [f"{c:g}" for c in CONSTANTS] + [f"{c:g} / rows^{power}" for c, power in FALLING]
    found: dict[str, dict[str, dict[str, list[list[float]]]]] = {str(n): {} for n in args.rows}
    for name, X, y in problems(args.data):
        for fewer, most in zip([0, *args.rows], args.rows, strict=False):
            if len(y) <= fewer:
                continue
            drawn_X, drawn_y = drawn(X, y, most, args.seed)
            of_pools = {
                pool: errors(drawn_X, drawn_y, pool, args.seed).tolist()
                for pool in POOLS
                if pool != "products" or X.shape[1] <= MOST_FOR_PRODUCTS
            }
            found[str(most)][name] = of_pools
            progress(f"{name}: {len(drawn_y)} rows of {X.shape[1]}")
    judged = judge(found)
    rows = [[n, *(means[i] for means in judged.values())] for i, n in enumerate(names)]
    table("Mean excess error, %", ["alpha", *judged], rows)
    best = names[int(np.argmin(judged["all"]))]
    print(f"lowest mean excess: {best}")
    save(
        args.json, args, [], {"candidates": names, "excess": judged, "errors": found, "best": best}
    )


def problems(folder: Path) -> Any:
    """Yield name, rows and labels of the training part of every set."""
    import sklearn.datasets

    for name in BUILT_IN:
        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
        # Half of the rows are kept for the tests of other experiments.
        half = np.random.default_rng(0).permutation(len(y))[: len(y) // 2]
        yield f"sklearn {name}", X[half], y[half]
    for name in RAETSCH:
        data = load(folder, f"raetsch_{name}")
        X, y = data["X"].astype(float), data["y"]
        train = data["train_idx"][0] if "train_idx" in data else np.arange(0, len(y), 2)
        yield f"raetsch {name}", X[train], y[train]
    for name in OFFICIAL:
        data = load(folder, name)
        half = "X_train" not in data
        X, y = (data["X"][::2], data["y"][::2]) if half else (data["X_train"], data["y_train"])
        yield name, X.reshape(len(y), -1).astype(float), y


def drawn(X: np.ndarray, y: np.ndarray, most: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw at most ``most`` rows, without classes that are too small for the folds."""
    order = np.random.default_rng(seed).permutation(len(y))[:most]
    X, y = X[order], y[order]
    classes, counts = np.unique(y, return_counts=True)
    kept = np.isin(y, classes[counts >= FOLDS])
    return X[kept], y[kept]


def errors(X: np.ndarray, y: np.ndarray, pool: str, seed: int) -> np.ndarray:
    """Return the mean error over the folds in per cent, (n_candidates, n_sizes)."""
    from sklearn.model_selection import StratifiedKFold

    from laconic import ShareBoostClassifier

    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(X, y))
    out = np.zeros((len(CONSTANTS) + len(FALLING), len(SIZES)))
    for fit, test in folds:
        falling = [min(max(c / len(fit) ** power, LOW), HIGH) for c, power in FALLING]
        strengths = [*CONSTANTS, *falling]
        for i, alpha in enumerate(strengths):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = ShareBoostClassifier(max(SIZES), pool=pool, alpha=alpha).fit(X[fit], y[fit])
            wrong = [100.0 * np.mean(p != y[test]) for p in model.staged_predict(X[test])]
            out[i] += [wrong[min(size, len(wrong) - 1)] / len(folds) for size in SIZES]
    return out


def judge(found: dict[str, dict[str, dict[str, list[list[float]]]]]) -> dict[str, list[float]]:
    """Return every candidate's mean excess by pool, by rows and over all, and its worst excess."""
    excess: dict[str, list[np.ndarray]] = {}
    for rows, of_sets in found.items():
        for of_pools in of_sets.values():
            for pool, measured in of_pools.items():
                error = np.array(measured)
                own = (error - error.min(axis=0)).mean(axis=1)
                for key in (pool, f"{rows} rows"):
                    excess.setdefault(key, []).append(own)
    means = {key: np.mean(some, axis=0) for key, some in excess.items()}
    means["all"] = np.mean([means[f"{rows} rows"] for rows in found], axis=0)
    means["worst"] = np.max([own for some in excess.values() for own in some], axis=0)
    return {key: mean.tolist() for key, mean in means.items()}


if __name__ == "__main__":
    main()
