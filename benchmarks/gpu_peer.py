"""How long does XGBoost take on this processor for the stumps of `gpu_fits.py`?

There is no XGBoost on the machine with the GPU. So this is its time on the cores of this machine:
10 million rows x 50 normal features, 3 classes by noisy sums of ten of them, and trees of depth 1.
Quantiles of the features are found before the clock starts.

Run: python benchmarks/gpu_peer.py [--rows N] [--rounds N] [--json FILE]
"""

from __future__ import annotations

import time

import numpy as np
import xgboost
from _common import CORES, arguments, progress, save, table


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()
    X, y = rows(args.seed, args.rows)
    progress(f"{args.rows} rows")
    start = time.perf_counter()
    data = xgboost.QuantileDMatrix(X, y, nthread=CORES)
    quantiles = time.perf_counter() - start
    settings = {"max_depth": 1, "objective": "multi:softprob", "num_class": 3, "nthread": CORES}
    xgboost.train(settings, data, 1)  # starts its threads
    start = time.perf_counter()
    xgboost.train(settings, data, args.rounds)
    seconds = time.perf_counter() - start
    found = {"quantiles": quantiles, "rounds": args.rounds, "seconds": seconds}
    found["a round"] = seconds / args.rounds
    table("XGBoost, trees of depth 1", list(found), [list(found.values())])
    save(args.json, args, [], {"xgboost": xgboost.__version__, **found})


def rows(seed: int, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return normal features, and classes by noisy sums of ten of them."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n_rows, 50), dtype=np.float32)
    weights = random.standard_normal((10, 3)).astype(np.float32)
    noise = random.standard_normal((n_rows, 3), dtype=np.float32)
    return X, (X[:, :10] @ weights + noise).argmax(1)


if __name__ == "__main__":
    main()
