"""What does a checkpoint cost?

There are two fits: 200 pixels of handwritten digits (2,000 rows, 10 classes), and 30 balls with a
linear function in 20 dimensions (500 rows; entries are large, and so is the file). Each runs with
and without a checkpoint, in turns, and the medians of several runs count. The table shows the bytes
of the finished file, which are written only once, next to the size of the whole path in memory.

Run: python benchmarks/checkpoint.py [--repeats 3] [--json FILE]
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _common import arguments, load, save, table, timed, verdict

ROWS = {"columns": 2000, "pieces": 500}
ATOMS = {"columns": 200, "pieces": 30}
DIMENSIONS = 20
# Allowed ratio of the times with and without a checkpoint.
ASKED = 1.1


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "--repeats", type=int, default=3, help="number of runs of each fit (%(default)s)"
    )
    args = parser.parse_args()
    digits = load(args.data, "mnist")
    results: dict[str, Any] = {}
    rows = []
    for pool in ROWS:
        found = compare(pool, digits, args)
        results[pool] = found
        rows.append([pool, *found.values()])
    titles = ["", "without, s", "with, s", "ratio", "file, MB", "path, MB"]
    table("A fit with a checkpoint", titles, rows)
    worst = max(found["ratio"] for found in results.values())
    results["verdict"] = verdict("time with a checkpoint to time without", worst, ASKED, False)
    save(args.json, args, [], results)


def compare(pool: str, digits: dict[str, np.ndarray], args: Any) -> dict[str, float]:
    """Return the median seconds with and without a checkpoint, and the size of its file."""
    from laconic import ShareBoostClassifier

    rng = np.random.default_rng(args.seed)
    some = rng.choice(len(digits["y_train"]), ROWS[pool], replace=False)
    X = digits["X_train"][some].reshape(len(some), -1).astype(np.float64)
    y = digits["y_train"][some]
    if pool == "pieces":
        X = principal(X, DIMENSIONS)
    seconds: dict[bool, list[float]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as folder:
        for repeat in range(args.repeats + 1):
            for kept in (False, True):
                file = Path(folder) / f"fit{repeat}" if kept else None
                model = ShareBoostClassifier(ATOMS[pool], pool=pool, checkpoint=file)
                took, fitted = timed(model.fit, X, y)
                if repeat:  # the first run compiles
                    seconds[kept].append(took)
        size = (Path(folder) / "fit1").stat().st_size
    without, with_ = (float(np.median(seconds[kept])) for kept in (False, True))
    return {
        "without": without,
        "with": with_,
        "ratio": with_ / without,
        "file": size / 1e6,
        "path": sum(entry.weights.nbytes for entry in fitted.path_) / 1e6,
    }


def principal(X: np.ndarray, n: int) -> np.ndarray:
    """Return the first ``n`` principal components."""
    X = X - X.mean(axis=0)
    return X @ np.linalg.svd(X, full_matrices=False)[2][:n].T


if __name__ == "__main__":
    main()
