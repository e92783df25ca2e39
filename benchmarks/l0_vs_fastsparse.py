"""Is the local search as good as FastSparse and abess at every number of columns, and faster?

The columns are stumps ``x > t`` of a training partition, with at most 200 thresholds per feature.
Every method gets the same 0/1 matrix. At every cardinality from 1 to 50 the training objective is
the mean loss at the best weights of the support, with an intercept and no penalty:

* Exponential loss: laconic.subset.path, one sweep of 3 tries without restarts, against one call of
  fastsparsegams with its own 100 penalties. Its algorithm is "CD", the default, or "CDPSI", with
  swaps. Each call has its own process, because some crash or do not end within --limit seconds. A
  call that crashes is made up to three times.
* Logistic loss: laconic.subset.path, one sweep of 3 tries and 8 restarts, against
  abess.LogisticRegression, one fit for every size. Its single call over all sizes, which is timed
  too, returns only one model.

A peer need not reach every cardinality. It counts with its best objective with at most that many
columns. The weights on its supports are optimised again by our solver, so that only supports are
compared. The results also have the objective at its own weights. If columns separate the classes,
the lowest objective is 0. Less than 1e-6 counts as 0.

Run: python benchmarks/l0_vs_fastsparse.py [--json FILE]
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from _common import (
    affinity_kept,
    arguments,
    progress,
    save,
    start_up,
    table,
    timed,
    verdict,
)
from _raetsch import rows, stumps

SETS = ("banana", "diabetis", "image", "twonorm", "waveform", "splice", "german")
PEERS = {
    "FastSparse CD": "exponential",
    "FastSparse CDPSI": "exponential",
    "abess by size": "logistic",
}
RESTARTS = {"exponential": 0, "logistic": 8}
EFFORT = {"sweeps": 1, "tries": 3}
SIZES = range(1, 51)
SHOWN = (1, 2, 5, 10, 20, 30, 40, 50)
# Objectives with a relative difference below this count as equal.
EQUAL = 1e-6
# Mean losses below this count as zero: the columns separate the classes, and weights can grow
# without limit.
ZERO = 1e-6


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument(
        "--limit", type=float, default=120.0, help="time limit of a FastSparse call, in seconds"
    )
    parser.add_argument("--skip-abess", action="store_true", help="run only the exponential loss")
    args = parser.parse_args()
    warm_up = start_up(lambda: ours(*toy(args.seed), "exponential"))
    results: dict[str, Any] = {"start-up seconds": warm_up, "sets": {}}
    for name in args.sets:
        X, y, train = rows(args.data, name, args.seed)
        results["sets"][name] = compare(name, stumps(X[train]), y[train], args)
    results["verdicts"] = judge(results["sets"])
    peers = ["fastsparsegams"] + ([] if args.skip_abess else ["abess"])
    save(args.json, args, peers, results)


def toy(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 2))
    return stumps(X), np.where(X.sum(axis=1) + rng.normal(size=60) > 0, 1, -1)


def compare(name: str, B: np.ndarray, y: np.ndarray, args: Any) -> dict[str, Any]:
    seconds: dict[str, float] = {}
    values: dict[str, list[float]] = {}
    own: dict[str, list[float]] = {}
    cpu: dict[str, float] = {}
    for loss in ("exponential",) if args.skip_abess else ("exponential", "logistic"):
        method = f"laconic, {loss}"
        seconds[method], (cpu[method], values[method]) = timed(with_cpu, ours, B, y, loss)
    progress(f"{name} {B.shape}: laconic took {seconds['laconic, exponential']:.2f} s")
    for algorithm in ("CD", "CDPSI"):
        peer = f"FastSparse {algorithm}"
        answer = fastsparse(B, y, algorithm, args.limit)
        if answer is None:
            progress(f"{name}: {peer} has crashed, or not ended within {args.limit} s")
            continue
        seconds[peer], (cpu[peer], models) = answer
        values[peer], own[peer] = by_size(B, y, models, "exponential")
        progress(f"{name}: {peer} took {seconds[peer]:.2f} s")
    if not args.skip_abess:
        peer = "abess by size"
        seconds["abess one call"] = timed(abess, B, y, [SIZES])[0]
        seconds[peer], (cpu[peer], models) = timed(with_cpu, abess, B, y, SIZES)
        values[peer], own[peer] = by_size(B, y, models, "logistic")
        progress(f"{name}: abess took {seconds['abess by size']:.2f} s")
    shape = f"{name}: {B.shape[0]} rows, {B.shape[1]} columns"
    table(
        f"{shape}: training objective by number of columns",
        ["method", *map(str, SHOWN), "seconds", "of a core"],
        [[m, *(v[n - 1] for n in SHOWN), seconds[m], cpu[m]] for m, v in values.items()],
    )
    return {
        "shape": B.shape,
        "seconds": seconds,
        "cpu seconds": cpu,
        "objective": values,
        "own weights": own,
    }


def with_cpu(function: Any, *args: Any) -> tuple[float, Any]:
    """Return the processor seconds of a call, and its result.

    Processor time does not depend on what else runs on the machine.
    """
    start = time.process_time()
    answer = function(*args)
    return time.process_time() - start, answer


def judge(sets: dict[str, Any]) -> list[dict[str, Any]]:
    """Count the cardinalities at which ours is worse, and compute the ratio of the times.

    Both are over all sets. Times are added up over the sets for which the peer has a result.
    """
    rows, out = [], []
    for peer, loss in PEERS.items():
        ours = f"laconic, {loss}"
        found = {name: f for name, f in sets.items() if peer in f["objective"]}
        if not found:
            continue
        for name, f in found.items():
            a, b = f["objective"][ours], f["objective"][peer]
            rows.append([name, peer, int(worse(a, b).sum()), int(worse(b, a).sum()), excess(a, b)])
        count = sum(row[2] for row in rows if row[1] == peer)
        title = f"{peer}, {len(found)} sets"
        out.append((f"cardinalities worse than {title}", count, 0))
        for clock in ("seconds", "cpu seconds"):
            total = [sum(f[clock][m] for f in found.values()) for m in (ours, peer)]
            name = f"{clock}, {total[0]:.2f}, by the {total[1]:.2f} of {title}"
            out.append((name, total[0] / total[1], 1))
    table(
        f"Cardinalities of {len(SIZES)} at which the objective is higher",
        ["set", "peer", "ours", "the peer's", "our worst excess"],
        rows,
    )
    return [verdict(name, value, limit, False) for name, value, limit in out]


def worse(a: Any, b: Any) -> np.ndarray:
    a, b = np.asarray(a), np.asarray(b)
    return (a > b * (1 + EQUAL)) & (a > ZERO)


def excess(a: Any, b: Any) -> float:
    a, b = np.asarray(a), np.asarray(b)
    return float(np.max(np.where(worse(a, b), a / np.maximum(b, ZERO) - 1, 0.0)))


def ours(B: np.ndarray, y: np.ndarray, loss: str) -> list[float]:
    from laconic.subset import path

    found = path(B, y, max(SIZES), loss=loss, restarts=RESTARTS[loss], **EFFORT)
    best = np.full(len(SIZES) + 1, np.inf)
    for result in found:
        best[len(result.support)] = min(best[len(result.support)], result.objective)
    return np.minimum.accumulate(best)[1:].tolist()


def fastsparse(
    B: np.ndarray, y: np.ndarray, algorithm: str, limit: float
) -> tuple[float, tuple[float, list[tuple[np.ndarray, float]]]] | None:
    """Run FastSparse. Return seconds, processor seconds and its path, if the call ends.

    The path holds weights and intercepts.
    """
    spawn = multiprocessing.get_context("spawn")
    for _ in range(3):
        receive, send = spawn.Pipe(duplex=False)
        child = spawn.Process(target=fastsparse_child, args=(send, B, y, algorithm), daemon=True)
        child.start()
        send.close()
        try:
            if receive.poll(limit):
                return receive.recv()
            return None
        except EOFError:  # it crashed
            continue
        finally:
            child.kill()
            child.join()
    return None


def fastsparse_child(send: Any, B: np.ndarray, y: np.ndarray, algorithm: str) -> None:
    import fastsparsegams

    columns, labels = np.asfortranarray(B, dtype=float), y.astype(float)
    fit = partial(
        fastsparsegams.fit,
        columns,
        labels,
        loss="Exponential",
        penalty="L0",
        algorithm=algorithm,
        max_support_size=max(SIZES),
        num_lambda=100,
    )
    seconds, (cpu, model) = timed(with_cpu, fit)
    weights = model.coeff(include_intercept=False).toarray()
    path = [(w, float(b)) for w, b in zip(weights.T, model.intercepts[0], strict=True)]
    send.send((seconds, (cpu, path)))


def abess(B: np.ndarray, y: np.ndarray, sizes: Iterable[Any]) -> list[tuple[np.ndarray, float]]:
    """Return weights and intercepts of one abess fit for each entry of ``sizes``."""
    from abess import LogisticRegression

    out = []
    with affinity_kept():
        for size in sizes:
            model = LogisticRegression(support_size=size).fit(B.astype(float), y)
            out.append((np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])))
    return out


def by_size(
    B: np.ndarray, y: np.ndarray, models: list[tuple[np.ndarray, float]], loss: str
) -> tuple[list[float], list[float]]:
    """Return the best objectives with at most 1, 2, … columns, at new and at the peer's weights."""
    from laconic.subset import make_problem

    problem = make_problem(B, y, loss, 0.0, False, True, None)
    refitted, own = np.full(len(SIZES) + 1, np.inf), np.full(len(SIZES) + 1, np.inf)
    refitted[0] = own[0] = problem.fit(()).value
    for weights, intercept in models:
        support = np.flatnonzero(weights)
        size = len(support)
        if size > max(SIZES):
            continue
        refitted[size] = min(refitted[size], problem.fit(tuple(support.tolist())).value)
        margins = y * (B @ weights + intercept)
        point = np.exp(-margins) if loss == "exponential" else np.logaddexp(0.0, -margins)
        own[size] = min(own[size], float(point.mean()))
    return tuple(np.minimum.accumulate(v)[1:].tolist() for v in (refitted, own))  # type: ignore


if __name__ == "__main__":
    main()
