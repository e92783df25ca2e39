"""Compare prediction in two source trees: do all kinds of models still predict as fast?

    python benchmarks/predict_old_and_new.py --other OLD/src

Each tree runs in its own process. Both load the same model files and score the same rows, once one
row and once 2,000 rows, in turns. The ratio is that of the shortest times. The scores of both trees
must have the same bits. Each tree has two processes, because the memory addresses of a process make
a difference of a few percent for as long as it lives.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _common import ROOT, arguments, progress, save, table, verdict
from scipy import sparse

from laconic import Predictor
from laconic.model.atoms import ColumnsMap, ProductsMap, StumpsMap
from laconic.model.patches import PatchesMap
from laconic.model.pieces import PiecesMap
from laconic.model.regions import AllColumns, RegionsMap

MANY, FEATURES, CLASSES = 2000, 60, 10
# Each process of a tree measures every case this many times for one turn.
CALLS = {1: 200, MANY: 3}
PROCESSES = 2
CHILD = """
import hashlib, json, sys, time
import numpy as np
from pathlib import Path
from scipy import sparse
from laconic import Predictor
folder = Path(sys.argv[1])
models = {file.stem: Predictor.load(file) for file in folder.glob("*.laconic")}
print("ready", flush=True)
for line in sys.stdin:
    name, n_rows, calls = json.loads(line)
    read = sparse.load_npz if (folder / f"{name}.sparse.npz").exists() else None
    X = read(folder / f"{name}.sparse.npz") if read else np.load(folder / f"{name}.npy")
    X, scores = X[:n_rows], models[name].scores
    found = scores(X)
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        scores(X)
        times.append(time.perf_counter() - start)
    digest = hashlib.sha256(np.ascontiguousarray(found).tobytes()).hexdigest()
    print(json.dumps([min(times), digest]), flush=True)
"""


def main() -> None:
    """Time every kind of model with both trees and print the ratios."""
    parser = arguments(__doc__)
    parser.add_argument(
        "--other", type=Path, required=True, help="the src folder of the other tree"
    )
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    for name in args.kinds:
        _write(folder, name, np.random.default_rng(args.seed))
    sources = {"old": args.other.resolve(), "new": ROOT / "src"}
    trees = [(tree, _start(sources[tree], folder)) for _ in range(PROCESSES) for tree in sources]
    rows: list[dict[str, Any]] = []
    for name in args.kinds:
        for n_rows, calls in CALLS.items():
            least = {"old": math.inf, "new": math.inf}
            bits = set()
            for _ in range(args.turns):
                for tree, child in trees:
                    seconds, digest = _ask(child, [name, n_rows, calls])
                    least[tree] = min(least[tree], seconds)
                    bits.add(digest)
            row = {
                "model": name,
                "rows": n_rows,
                "old microseconds": 1e6 * least["old"],
                "new microseconds": 1e6 * least["new"],
                "ratio": least["new"] / least["old"],
                "same bits": len(bits) == 1,
            }
            rows.append(row)
            progress(f"{name}, {n_rows} rows: {row['ratio']:.3f}, same bits: {row['same bits']}")
    for _, child in trees:
        child.communicate()
    header = list(rows[0])
    table("Prediction, old and new", header, [[row[h] for h in header] for row in rows])
    verdicts = [
        verdict("largest ratio", max(row["ratio"] for row in rows), 1.1, at_least=False),
        verdict("cases with other bits", sum(not row["same bits"] for row in rows), 0, False),
    ]
    save(args.json, args, (), {"cases": rows, "verdicts": verdicts})


def _start(source: Path, folder: Path) -> subprocess.Popen[str]:
    """Start a process that has loaded all models with one tree."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder)],
        env={**os.environ, "PYTHONPATH": str(source)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    child.stdout.readline()
    return child


def _ask(child: subprocess.Popen[str], question: list[Any]) -> tuple[float, str]:
    """Return the shortest seconds of some calls, and a hash of the scores."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(json.dumps(question) + "\n")
    child.stdin.flush()
    seconds, digest = json.loads(child.stdout.readline())
    return float(seconds), str(digest)


# -- models of every kind --------------------------------------------------------------------------


def _write(folder: Path, name: str, rng: np.random.Generator) -> None:
    """Write a model with random weights, and its rows."""
    map, X = KINDS[name](rng)
    width = getattr(map, "n_columns", None) or len(map.names())
    weights, intercept = rng.standard_normal((width, CLASSES)), rng.standard_normal(CLASSES)
    made = Predictor(map, weights, intercept, np.arange(CLASSES), "log", [width], X.shape[1])
    made.save(folder / f"{name}.laconic")
    if sparse.issparse(X):
        sparse.save_npz(folder / f"{name}.sparse.npz", X)
    else:
        np.save(folder / f"{name}.npy", X)


def _rows(rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((MANY, FEATURES))


def _columns(rng: np.random.Generator) -> ColumnsMap:
    return ColumnsMap(rng.permutation(FEATURES)[:30])


def _stumps(rng: np.random.Generator, tests: int) -> StumpsMap:
    n = 100
    test = rng.integers(tests, size=n)
    value = np.where(test == 1, rng.integers(5, size=n), rng.standard_normal(n))
    return StumpsMap(rng.integers(FEATURES, size=n), value, test)


def _with_gaps(rng: np.random.Generator) -> np.ndarray:
    """Return rows with categories and missing values."""
    X = _rows(rng)
    X[:, ::2] = rng.integers(5, size=X[:, ::2].shape)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def _products(rng: np.random.Generator) -> ProductsMap:
    return ProductsMap(*rng.integers(FEATURES, size=(2, 50)))


def _pieces(rng: np.random.Generator, soft: bool, shared: bool = False) -> PiecesMap:
    n = 40
    centre = np.repeat(rng.standard_normal((n // 4, FEATURES)), 4, axis=0)
    radius = np.tile([9.0, 10.0, 11.0, 12.0], n // 4)
    origin = np.zeros((1, FEATURES)) if shared else centre
    return PiecesMap(centre, radius, origin, soft, np.full(n, 0.5), np.arange(n))


def _patches(rng: np.random.Generator, n: int) -> tuple[PatchesMap, np.ndarray]:
    templates, side = 20, 28
    values = rng.standard_normal(templates * 25)
    centre = rng.choice([7.0, 14.0, 21.0], size=(n, 2))
    template = rng.integers(templates, size=n)
    map = PatchesMap(
        [side, side], range(templates), [5] * templates, values, template, centre, np.full(n, 2.5)
    )
    return map, rng.random((MANY, side * side)).astype(np.float32)


def _regions(rng: np.random.Generator, *parts: Any) -> RegionsMap:
    holes = len(parts) - 1
    centre, radius = rng.standard_normal((holes, FEATURES)), np.full(holes, 10.5)
    share = np.full(holes + 1, 1 / (holes + 1))
    return RegionsMap(parts, centre, radius, share, np.arange(holes))


def _sparse(rng: np.random.Generator) -> sparse.csr_matrix:
    X = _rows(rng)
    X[rng.random(X.shape) < 0.9] = 0.0
    return sparse.csr_matrix(X)


def _linear(n: int) -> list[AllColumns]:
    return [AllColumns(FEATURES)] * n


KINDS: dict[str, Callable[[np.random.Generator], tuple[Any, Any]]] = {
    "columns": lambda rng: (_columns(rng), _rows(rng)),
    "columns, float32": lambda rng: (_columns(rng), _rows(rng).astype(np.float32)),
    "columns, sparse": lambda rng: (_columns(rng), _sparse(rng)),
    "stumps": lambda rng: (_stumps(rng, 1), _rows(rng)),
    "stumps, gaps": lambda rng: (_stumps(rng, 3), _with_gaps(rng)),
    "products": lambda rng: (_products(rng), _rows(rng)),
    "products, float32": lambda rng: (_products(rng), _rows(rng).astype(np.float32)),
    "pieces": lambda rng: (_pieces(rng, False), _rows(rng)),
    "pieces, soft": lambda rng: (_pieces(rng, True), _rows(rng)),
    "pieces, one origin": lambda rng: (_pieces(rng, False, shared=True), _rows(rng)),
    "patches, few": lambda rng: _patches(rng, 6),
    "patches, many": lambda rng: _patches(rng, 60),
    "regions, linear": lambda rng: (_regions(rng, *_linear(6)), _rows(rng)),
    "regions, columns": lambda rng: (_regions(rng, *(_columns(rng) for _ in "123")), _rows(rng)),
    "regions, stumps": lambda rng: (_regions(rng, *(_stumps(rng, 3) for _ in "123")), _rows(rng)),
    "regions, nested": lambda rng: (
        _regions(rng, AllColumns(FEATURES), _regions(rng, *_linear(3)), _pieces(rng, True)),
        _rows(rng),
    ),
    "regions, sparse": lambda rng: (_regions(rng, *_linear(6)), _sparse(rng)),
}


if __name__ == "__main__":
    main()
