"""How many rows per millisecond does a predictor with holes decide, compared with an SVM?

The data are blobs of two classes in 2, 10 and 100 dimensions. The predictor is a logistic
regression and 15 holes with logistic regressions inside. It is compared with a Gaussian SVM of
scikit-learn that learned from the same rows, and with the logistic regression alone as the lower
limit. Each run decides 100,000 new rows, and the median of several runs counts.

Run: python benchmarks/holes_predict.py [--rows 4000] [--new 100000] [--json FILE]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _common import arguments, error, median_time, save, table, verdict

DIMENSIONS = (2, 10, 100)
HOLES, BLOBS = 15, 16
REPEATS = 5
# Required rows per millisecond in two dimensions.
ASKED = 1000.0


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "--rows", type=int, default=4000, help="number of training rows (%(default)s)"
    )
    parser.add_argument("--new", type=int, default=100_000, help="number of new rows (%(default)s)")
    args = parser.parse_args()
    results: dict[str, Any] = {}
    rows = []
    for d in DIMENSIONS:
        found = compare(d, args)
        results[str(d)] = found
        for name, one in found.items():
            rows.append([d, name, one["rows a millisecond"], one["error"]])
    table("Deciding new rows", ["dimensions", "", "rows a millisecond", "error"], rows)
    fast = results["2"]["holes, saved predictor"]["rows a millisecond"]
    results["verdict"] = verdict("rows a millisecond in two dimensions", fast, ASKED, True)
    save(args.json, args, [], results)


def blobs(d: int, n_rows: int, rng: np.random.Generator, middles: np.ndarray) -> Any:
    """Draw rows and labels. The blobs alternate between the two classes."""
    blob = rng.integers(len(middles), size=n_rows)
    return middles[blob] + rng.standard_normal((n_rows, d)), blob % 2


def compare(d: int, args: Any) -> dict[str, dict[str, float]]:
    """Return rows per millisecond and error of every model in ``d`` dimensions."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import SVC

    from laconic import HolePunchingClassifier

    rng = np.random.default_rng(args.seed)
    middles = 6.0 * rng.standard_normal((BLOBS, d)) / np.sqrt(d)
    X, y = blobs(d, args.rows, rng, middles)
    X_new, y_new = blobs(d, args.new, rng, middles)
    model = HolePunchingClassifier(
        LogisticRegression(), HOLES, n_candidates=200, random_state=args.seed
    ).fit(X, y)
    models = {
        "holes, saved predictor": model.predictor_,
        "holes, estimator": model,
        "logistic regression alone": model.estimator_,
        "Gaussian SVM": SVC().fit(X, y),
    }
    out = {}
    for name, one in models.items():
        some = args.new if name != "Gaussian SVM" else args.new // 10
        seconds = median_time(lambda one=one, some=some: one.predict(X_new[:some]), REPEATS)
        out[name] = {
            "rows a millisecond": some / seconds / 1e3,
            "error": error(one.predict(X_new[:some]), y_new[:some]),
        }
    return out


if __name__ == "__main__":
    main()
