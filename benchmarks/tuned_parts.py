"""How good are atoms that were tuned on rows in parts, and how often are the parts asked?

12 hinges are chosen and tuned on rows of 10 features in single precision. Labels of three classes
come from sums of eight absolute values of directions, plus noise. The same rows are fitted in one
memory, from .npy files, and on a cluster of two processes. Batches in parts are a hundredth of the
rows. Those in one memory have at most 512 rows, so a fit has more steps.

A question is one broadcast to all parts. Questions of a fit without tuning are subtracted.

Run: python benchmarks/tuned_parts.py [--rows 150000] [--json FILE]
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from _common import arguments, error, progress, save, table, timed
from _dask_runs import cluster as workers

from laconic import ShareBoostClassifier
from laconic.beyond import cluster
from laconic.pools import Hinges
from laconic.tune import descent

FEATURES, CLASSES, ATOMS, PARTS = 10, 3, 12, 6


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=150_000, help="number of rows")
    args = parser.parse_args()
    X, y, X_test, y_test = drawn(args.rows, args.seed)
    results: dict[str, Any] = {}

    def fit(name: str, rows: Any, labels: Any, tune: bool) -> None:
        progress(name)
        settings = {"pool": Hinges(60, 5), "alpha": 1e-5, "random_state": args.seed}
        model = ShareBoostClassifier(ATOMS, tune=tune, **settings)
        with counted() as counts:
            seconds = timed(model.fit, rows, labels)[0]
        found = error(model.predict(X_test), y_test)
        results[name] = {"seconds": seconds, "error": found, **counts}

    fit("memory, chosen", X, y, False)
    fit("memory, tuned", X, y, True)
    with tempfile.TemporaryDirectory(prefix="tuned_parts-") as folder:
        files = [Path(folder) / f"{number}.npy" for number in range(PARTS)]
        for file, part in zip(files, np.array_split(X, PARTS), strict=True):
            np.save(file, part)
        fit("files, tuned", list(map(str, files)), y, True)
    with workers(2) as client:
        import dask.array as da

        size = -(-args.rows // PARTS)
        rows = client.persist(da.from_array(X, chunks=(size, -1)))
        for name, tune in (("cluster, chosen", False), ("cluster, tuned", True)):
            fit(name, rows, da.from_array(y, chunks=size), tune)
    shown(results)
    save(args.json, args, ["distributed"], results)


def drawn(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training rows with labels, and 50,000 test rows with labels."""
    rng = np.random.default_rng(seed)
    inner = rng.standard_normal((FEATURES, 8)) / FEATURES**0.5
    outer = 2 * rng.standard_normal((8, CLASSES))
    X = rng.standard_normal((rows + 50_000, FEATURES)).astype(np.float32)
    scores = np.abs(X @ inner) @ outer + 0.5 * rng.gumbel(size=(len(X), CLASSES))
    y = scores.argmax(axis=1)
    return X[:rows], y[:rows], X[rows:], y[rows:]


@contextmanager
def counted() -> Iterator[dict[str, int]]:
    """Count the steps of descents, and the questions to the parts of a cluster."""
    counts = {"steps": 0, "questions": 0}

    def counting(owner: Any, name: str, what: str) -> Any:
        plain = getattr(owner, name)

        def count(*given: Any, **named: Any) -> Any:
            counts[what] += 1
            return plain(*given, **named)

        setattr(owner, name, count)
        return lambda: setattr(owner, name, plain)

    undo = [
        counting(descent.Descent, "step", "steps"),
        counting(cluster.OnCluster, "ask", "questions"),
        counting(cluster.ClusterCarrier, "ask", "questions"),
    ]
    try:
        yield counts
    finally:
        for restore in undo:
            restore()


def shown(results: dict[str, Any]) -> None:
    header = ["fit", "seconds", "test error, %", "steps", "questions"]
    rows = [
        [name, own["seconds"], 100 * own["error"], own["steps"], own["questions"]]
        for name, own in results.items()
    ]
    table(f"{ATOMS} hinges", header, rows)
    tuned, chosen = results["cluster, tuned"], results["cluster, chosen"]
    more = tuned["questions"] - chosen["questions"]
    print(f"\nTuning asked {more} times, of which {tuned['steps']} were steps.")
    seconds = (tuned["seconds"] - chosen["seconds"]) / tuned["steps"]
    print(f"A step on the cluster took {1000 * seconds:.1f} ms, with all that belongs to tuning.")


if __name__ == "__main__":
    main()
