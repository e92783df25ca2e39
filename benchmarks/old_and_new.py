"""Compare two source trees: run the same fits in turns, each in its own process.

    python benchmarks/old_and_new.py --other OLD/src

Each fit is our fit of one of the other benchmarks in this folder. It runs ``--repeats`` times with
each tree, in turns, after one run that compiles. The ratio is that of the shortest times.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _common import ROOT, arguments, load, progress, save, table, verdict

# The benchmark that each fit comes from, and the fit. X and y are the training rows.
FITS = {
    "path_vs_abess.py pendigits": "S(40).fit(X, y)",
    "path_vs_abess.py satellite": "S(40).fit(X, y)",
    "path_vs_abess.py isolet": "S(40).fit(X, y)",
    "path_vs_abess.py pendigits products": "S(60, pool='products').fit(X, y)",
    "stumps.py adult": "S(100, pool='stumps').fit(X, y)",
    "stumps.py synthetic": "S(50, pool='stumps').fit(X, y)",
    "corrector.py mnist": "S(100, loss='log').fit(X, y)",
    "products_isolet.py isolet": "S(30, pool='products').fit(X, y)",
    "patches.py mnist": "S(60, pool=Patches(n_templates=200)).fit(X[:20000], y[:20000])",
    "totalq pendigits": "T(40).fit(X, (y == 3).astype(int))",
}
CHILD = """
import json, sys, time, warnings
import numpy as np
warnings.simplefilter("ignore")
from laconic import ShareBoostClassifier as S, TotalQBoostClassifier as T
from laconic.pools import Patches
given = np.load(sys.argv[1])
X, y = given["X"], given["y"]
start = time.perf_counter(), time.process_time()
model = {fit}
seconds = time.perf_counter() - start[0], time.process_time() - start[1]
print(json.dumps([*seconds, model.path_[model.n_atoms_].loss]))
"""


def main() -> None:
    """Run every fit with both trees and print the ratios."""
    parser = arguments(__doc__)
    parser.add_argument(
        "--other", type=Path, required=True, help="the src folder of the other tree"
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--fits", nargs="+", default=list(FITS), choices=list(FITS))
    args = parser.parse_args()
    trees = {"new": ROOT / "src", "old": args.other.resolve()}
    rows: list[dict[str, Any]] = []
    for name in args.fits:
        given = _rows(args, name)
        times: dict[str, list[list[float]]] = {"new": [], "old": []}
        for go in range(args.repeats + 1):
            for tree, source in trees.items():
                found = _run(source, given, FITS[name])
                if go:  # the first run compiles
                    times[tree].append(found)
        least = {tree: [min(t[i] for t in runs) for i in (0, 1)] for tree, runs in times.items()}
        row = {
            "fit": name,
            "old seconds": least["old"][0],
            "new seconds": least["new"][0],
            "ratio": least["new"][0] / least["old"][0],
            "ratio of processor time": least["new"][1] / least["old"][1],
            "old loss": times["old"][0][2],
            "new loss": times["new"][0][2],
        }
        rows.append(row)
        progress(f"{name}: {row['ratio']:.3f}, of processor time "
                 f"{row['ratio of processor time']:.3f}")  # fmt: skip
    mean = math.exp(sum(math.log(row["ratio"]) for row in rows) / len(rows))
    header = list(rows[0])
    table("Old and new, best of several", header, [[row[h] for h in header] for row in rows])
    verdicts = [
        verdict("largest ratio", max(row["ratio"] for row in rows), 1.1, at_least=False),
        verdict("geometric mean of the ratios", mean, 1.05, at_least=False),
    ]
    save(args.json, args, (), {"fits": rows, "verdicts": verdicts})


def _rows(args: Any, name: str) -> Path:
    """Write the training rows of a fit to a file, and return its path."""
    if "synthetic" in name:
        rng = np.random.default_rng(args.seed)
        X = rng.standard_normal((200_000, 30))
        y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + rng.standard_normal(len(X)), [-1.0, 1.0])
    else:
        stored = load(args.data, name.split()[1] if name.split()[0] != "totalq" else "pendigits")
        X = stored["X_train"].reshape(len(stored["X_train"]), -1).astype(np.float32)
        y = stored["y_train"]
    file = Path(tempfile.mkdtemp()) / "rows.npz"
    np.savez(file, X=X, y=y)
    return file


def _run(source: Path, given: Path, fit: str) -> list[float]:
    """Return seconds, processor seconds and loss of one fit in its own process."""
    child = [sys.executable, "-c", CHILD.replace("{fit}", fit), str(given)]
    env = {**os.environ, "PYTHONPATH": str(source)}
    out = subprocess.run(child, env=env, check=True, capture_output=True, text=True).stdout
    found: list[float] = json.loads(out.splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
