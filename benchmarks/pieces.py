"""How long does it take to choose 230 balls out of 52,500, and to predict with them?

The data are MNIST, by PCA in 50 dimensions: 60,000 rows, 1,500 centres, 35 radii and groups of 51
columns, with the settings of `experiments/share_mnist_pieces.py`. The first part measures the fit:
its time, the parts of it for preparing, choosing and correcting, the multiplications per second of
scoring, and the peak memory. The second part measures the prediction of one row and of the 10,000
test rows, compared with scikit-learn's SVC with Gaussian kernel on the same rows.

Run: python benchmarks/pieces.py [--hard] [--rounds N] [--rows N] [--checkpoint FILE]
                                [--json FILE]
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

# The helpers of the experiments come first on the path. They include those of the benchmarks.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "experiments"))

from _common import arguments, error, load, progress, save, start_up, table, timed, verdict
from share_mnist_pieces import (
    BALLS,
    FIT,
    KINDS,
    POOL,
    components,
    prediction_times,
    show_prediction,
    support_vectors,
)

from laconic import ShareBoostClassifier
from laconic.correct import Newton
from laconic.pools import Pieces
from laconic.pools.bound_pieces import BoundPieces

MINUTES, GIGABYTES, FASTER = 30.0, 6.0, 20.0


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--hard", action="store_true", help="hard balls, as in the paper")
    parser.add_argument("--rounds", type=int, default=BALLS)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument(
        "--checkpoint", type=Path, help="file to keep the fit in, for the experiment"
    )
    args = parser.parse_args()
    data = load(args.data, "mnist")
    _, X, X_test = components(data["X_train"], data["X_test"])
    X, y = X[: args.rows], data["y_train"][: args.rows].astype(np.int64)
    y_test = data["y_test"].astype(np.int64)
    results = {"fit": fit(X, y, X_test, y_test, args)}
    # The memory is the peak of the process, so it must be read before the SVM runs.
    results["svm"] = support_vectors(X, y, X_test, y_test, args.seed)
    results["verdicts"] = judge(results)
    save(args.json, args, [], results)


def fit(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, args: argparse.Namespace
) -> dict[str, Any]:
    kind = "hard" if args.hard else "soft"
    pool = Pieces(random_state=args.seed, **POOL, **KINDS[kind])

    def told(state: Any) -> None:
        if state.last.size % 10 == 0:
            progress(f"{state.last.size} balls, {state.last.seconds:.0f} s")

    small = Pieces(n_radii=3, centres=X[:20], soft=not args.hard)
    once = start_up(lambda: ShareBoostClassifier(2, pool=small, **FIT).fit(X[:500], y[:500]))
    model = ShareBoostClassifier(
        args.rounds, pool=pool, checkpoint=args.checkpoint, callbacks=[told], **FIT
    )
    with clocks() as spent:
        seconds, model = timed(model.fit, X, y)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    rest = seconds - sum(spent.values())
    rows = [[name, s, 100 * s / seconds] for name, s in [*spent.items(), ("rest", rest)]]
    table(f"{model.n_atoms_} {kind} balls, {seconds:.0f} s", ["", "seconds", "%"], rows)
    predictor = model.predictor_
    inside = KINDS[kind]["max_share"] * len(X) * POOL["n_centres"]
    flops = 2.0 * inside * (X.shape[1] + 1) * 10 * (1 if args.hard else 2)
    rate = flops * (model.n_atoms_ + 1) / spent["choosing"] / 1e9
    print(f"choosing runs at {rate:.1f} GFLOP/s; peak memory {memory:.2f} GB")
    return {
        "kind": kind,
        "balls": model.n_atoms_,
        "seconds": seconds,
        "start_up": once,
        "spent": {**spent, "rest": rest},
        "choosing_gflops": rate,
        "products": [e.certificate.products for e in model.path_],
        "peak_gigabytes": memory,
        "test": error(predictor.predict(X_test), y_test),
        "cost": predictor.cost()._asdict(),
        **prediction_times(predictor.predict, X_test, 5),
    }


@contextmanager
def clocks() -> Iterator[dict[str, float]]:
    """Measure the seconds of the three parts of a fit."""
    parts = [
        (Pieces, "bind", "preparing"),
        (BoundPieces, "best", "choosing"),
        (Newton, "solve", "correcting"),
    ]
    spent: dict[str, float] = defaultdict(float)
    plain = [getattr(owner, method) for owner, method, _ in parts]

    def clocked(function: Any, name: str) -> Any:
        def run(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                spent[name] += time.perf_counter() - start

        return run

    for (owner, method, name), function in zip(parts, plain, strict=True):
        setattr(owner, method, clocked(function, name))
    try:
        yield spent
    finally:
        for (owner, method, _), function in zip(parts, plain, strict=True):
            setattr(owner, method, function)


def judge(results: dict[str, Any]) -> list[dict[str, Any]]:
    ours, svm = results["fit"], results["svm"]
    show_prediction(ours, svm)
    faster = svm["batch_seconds"] / ours["batch_seconds"]
    return [
        verdict("minutes of the fit", ours["seconds"] / 60, MINUTES, False),
        verdict("peak memory, GB", ours["peak_gigabytes"], GIGABYTES, False),
        verdict("times faster than the SVM in batches", faster, FASTER, True),
    ]


if __name__ == "__main__":
    main()
