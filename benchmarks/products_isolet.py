"""Can 100 of the 190,036 products of two features of isolet be found in minutes and little memory?

This runs `ShareBoostClassifier(max_atoms=100, pool="products")` on isolet in float32, alone in its
process. So the peak memory is that of Python, the libraries, the data and the fit.

Run: python benchmarks/products_isolet.py [--atoms 100] [--json FILE]
"""

from __future__ import annotations

import resource
import sys

import numpy as np
from _common import TimedPool, arguments, error, load, save, start_up, table, timed, verdict

SHOWN = (1, 2, 5, 10, 20, 50, 75, 100)
SECONDS = 180.0
MEGABYTES = 1500.0


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--atoms", type=int, default=100)
    parser.add_argument("--alpha", type=float, help="strength of the penalty (auto)")
    args = parser.parse_args()
    alpha = "auto" if args.alpha is None else args.alpha
    data = load(args.data, "isolet")
    loaded = peak_megabytes()
    from laconic import ShareBoostClassifier
    from laconic.pools import Products

    X, y = data["X_train"].astype(np.float32), data["y_train"]
    few = slice(None, None, 50)
    once = start_up(lambda: ShareBoostClassifier(2, pool="products").fit(X[few, :20], y[few]))
    pool = TimedPool(Products())
    model = ShareBoostClassifier(max_atoms=args.atoms, pool=pool, alpha=alpha)
    seconds = timed(model.fit, X, y)[0] + once
    megabytes = peak_megabytes()

    path, pairs = model.path_, X.shape[1] * (X.shape[1] - 1) // 2
    errors = dict(
        zip(
            path.sizes.tolist(),
            (error(p, data["y_test"]) for p in model.staged_predict(data["X_test"])),
            strict=True,
        )
    )
    at = dict(zip(path.sizes.tolist(), path.seconds.tolist(), strict=True))
    title = (
        f"isolet, {args.atoms} of {pairs} products, {X.shape[0]} rows, {len(np.unique(y))} classes"
    )
    table(
        f"{title}: by number of atoms",
        ["atoms", "test error", "loss", "seconds"],
        [[n, errors[n], path[n].loss, at[n]] for n in SHOWN if n in errors],
    )
    looped = float(path.seconds[-1])
    parts = {
        "start-up": once,
        "scoring": pool.scoring,
        "correcting": looped - pool.scoring,
        "whole": seconds,
    }
    table(f"{title}: seconds", ["part", "seconds"], parts.items())
    memory = {"libraries and data": loaded, "peak": megabytes}
    table(f"{title}: peak memory", ["when", "MB"], memory.items())
    print()
    verdicts = [
        verdict("peak memory in MB", megabytes, MEGABYTES, False),
        verdict("seconds", seconds, SECONDS, False),
    ]
    results = {
        "pairs": pairs,
        "errors": errors,
        "losses": path.losses,
        "seconds by size": at,
        "seconds": parts,
        "megabytes": memory,
        "verdicts": verdicts,
    }
    save(args.json, args, [], results)


def peak_megabytes() -> float:
    """Return the largest resident size of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (
        peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6
    )  # macOS counts bytes, Linux KiB


if __name__ == "__main__":
    main()
