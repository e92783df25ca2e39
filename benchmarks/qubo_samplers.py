"""How good and how fast are local search, tabu search, annealing and branch and bound?

The problems are those of experiment E of TotalQBoost. On a training partition of each of the twelve
sets, the columns are the T′ stumps of appendix C that unregularised column generation picks first.
Weights are at least 0, the loss is exponential, and ν = 1e-6. There are three prices, at which a
half, a quarter and an eighth of the columns pay off. Every method solves the same 36 problems with
its defaults. Branch and bound has a time limit. A hit is an objective within 1e-6 of the best that
any method found.

Run: python benchmarks/qubo_samplers.py [--seconds 20] [--json FILE]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _common import arguments, progress, save, table, timed
from _raetsch import SETS, rows, stumps

METHODS = ("local", "tabu", "anneal", "exact")
L1 = 1e-6
HIT = 1e-6


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="time limit of branch and bound"
    )
    args = parser.parse_args()
    found: list[dict[str, Any]] = []
    for name in args.sets:
        X, y, train = rows(args.data, name, args.seed)
        H = generated(stumps(X[train]), y[train], SETS[name][1])
        for price in prices(H, y[train]):
            found.append({"set": name, "columns": H.shape[1], "price": price})
            for method in METHODS:
                found[-1][method] = run(H, y[train], price, method, args)
            progress(f"{name}: price {price:.2g} done")
    report(found)
    save(args.json, args, ["dimod", "dwave-samplers"], {"problems": found, **summary(found)})


def generated(B: np.ndarray, y: np.ndarray, count: int) -> np.ndarray:
    """Return the columns of -1 and 1 that unregularised column generation (lines 3 to 8) picks."""
    from laconic.subset import make_problem

    signs = 2 * B.astype(np.int8) - 1
    every = np.hstack([signs, -signs])
    problem = make_problem(every, y, "exponential", L1, True, False, None)
    fit = problem.fit(())
    picked: list[int] = []
    for _ in range(min(count, B.shape[1])):
        S = problem.matrix(fit.support)
        _, first, second = problem.derivatives(S, fit.weights)
        slope = problem.across(S[:0], first, second)[1]
        slope[picked] = np.inf
        picked.append(int(slope.argmin()))
        fit = problem.fit(tuple(sorted(picked)))
    return every[:, picked]


def prices(H: np.ndarray, y: np.ndarray) -> list[float]:
    """Return prices at which a half, a quarter and an eighth of the columns pay off."""
    from laconic.subset import path

    found = path(H, y, H.shape[1], l1=L1, nonnegative=True, intercept=False)
    by_size = {len(result.support): result.objective for result in found}
    out = []
    for part in (2, 4, 8):
        size = max(H.shape[1] // part, 1)
        fall = [by_size[k - 1] - by_size[k] for k in (size, size + 1) if {k - 1, k} <= set(by_size)]
        out.append(float(np.mean(fall)))
    return out


def run(H: np.ndarray, y: np.ndarray, price: float, method: str, args: Any) -> dict[str, float]:
    from laconic.subset import search

    options = {"max_seconds": args.seconds} if method == "exact" else {}
    if method in ("tabu", "anneal"):
        options["seed"] = args.seed
    settings = {"l1": L1, "nonnegative": True, "intercept": False}
    seconds, answer = timed(search, H, y, method=method, price=price, **settings, **options)
    return {
        "objective": answer.objective,
        "size": len(answer.support),
        "seconds": seconds,
        "bound": answer.bound,
    }


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for method in METHODS:
        excess = [p[method]["objective"] / best(p) - 1 for p in found]
        out[method] = {
            "hits": int(np.sum(np.array(excess) <= HIT)),
            "problems": len(found),
            "largest excess": float(np.max(excess)),
            "median seconds": float(np.median([p[method]["seconds"] for p in found])),
            "seconds": float(np.sum([p[method]["seconds"] for p in found])),
        }
    gaps = np.array([1 - p["exact"]["bound"] / p["exact"]["objective"] for p in found])
    out["gaps"] = {"closed": int(np.sum(gaps <= HIT)), "median": float(np.median(gaps))}
    return out


def best(problem: dict[str, Any]) -> float:
    return min(problem[method]["objective"] for method in METHODS)


def report(found: list[dict[str, Any]]) -> None:
    table(
        "Objective in excess of the best found, in parts per million (seconds)",
        ["set", "columns", "price", "size", *METHODS, "proven gap, %"],
        [
            [
                p["set"],
                p["columns"],
                p["price"],
                p["exact"]["size"],
                *(f"{excess(p, m):.0f} ({p[m]['seconds']:.2f})" for m in METHODS),
                100 * max(1 - p["exact"]["bound"] / p["exact"]["objective"], 0.0),
            ]
            for p in found
        ],
    )
    total = summary(found)
    table(
        f"All {len(found)} problems",
        ["method", "hits", "largest excess", "median seconds", "seconds"],
        [[m, *(total[m][k] for k in ("hits", "largest excess", "median seconds", "seconds"))]
         for m in METHODS],
    )  # fmt: skip
    closed = total["gaps"]["closed"]
    print(f"proven best: {closed} of {len(found)}; median gap {total['gaps']['median']:.2g}")


def excess(problem: dict[str, Any], method: str) -> float:
    return 1e6 * (problem[method]["objective"] / best(problem) - 1)


if __name__ == "__main__":
    main()
