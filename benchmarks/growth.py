"""Does the time of a fit of fixed size grow linearly in rows, columns and classes?

For every pool, one of the three is doubled at a time while the others stay fixed. The slope of log
time against log size is found by least squares. The data are random: classes are centred at random
points along 20 of the columns.

Run: python benchmarks/growth.py [--atoms 10] [--repeats 3] [--json FILE]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _common import arguments, save, start_up, table, timed, verdict

BASE = {"rows": 40_000, "columns": 100, "classes": 5}
AXES = {
    "rows": [20_000, 40_000, 80_000, 160_000, 320_000],
    "columns": [100, 200, 400, 800, 1600],
    "classes": [5, 10, 20, 40, 80],
}
POOLS = ("columns", "stumps")
LINEAR = 1.15


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--atoms", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--pools", nargs="+", default=POOLS, choices=POOLS)
    args = parser.parse_args()
    results: dict[str, Any] = {}
    for pool in args.pools:
        for axis, sizes in AXES.items():
            seconds = [
                fit_seconds({**BASE, axis: size}, pool, args.atoms, args.repeats, args.seed)
                for size in sizes
            ]
            slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
            last = float(np.log2(seconds[-1] / seconds[-2]))
            fixed = ", ".join(f"{n} {a}" for a, n in BASE.items() if a != axis)
            table(
                f"{args.atoms} atoms, pool={pool!r}, {fixed}: seconds",
                [axis, *map(str, sizes), "slope", "last doubling"],
                [["seconds", *seconds, slope, last]],
            )
            results[f"{pool}, {axis}"] = {
                "sizes": sizes,
                "seconds": seconds,
                "slope": slope,
                "last doubling": last,
            }
    print()
    largest = max(results, key=lambda name: results[name]["slope"])
    judged = verdict(f"largest slope ({largest})", results[largest]["slope"], LINEAR, False)
    save(args.json, args, [], {**results, "verdict": judged})


def fit_seconds(sizes: dict[str, int], pool: str, atoms: int, repeats: int, seed: int) -> float:
    """Return the shortest time of several fits, the best estimate of the work itself."""
    from laconic import ShareBoostClassifier

    X, y = drawn(sizes["rows"], sizes["columns"], sizes["classes"], seed)
    model = ShareBoostClassifier(max_atoms=atoms, pool=pool)
    start_up(lambda: model.fit(X[:2000], y[:2000]))
    return min(timed(model.fit, X, y)[0] for _ in range(repeats))


def drawn(m: int, d: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw Gaussian columns. The classes differ in the means of the first 20."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(0.0, 0.7, (k, 20))
    y = rng.permutation(np.arange(m) % k)
    X = rng.standard_normal((m, d), dtype=np.float32)
    X[:, :20] += centres[y]
    return X, y


if __name__ == "__main__":
    main()
