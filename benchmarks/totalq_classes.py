"""How long does TotalQBoost take with more than two classes, and how good are its models?

There are three kinds of problems, all with ``loss="log"``: 300 points in three blobs (20 rounds),
50 classes of two rows each (100 rounds), and random problems of three to six classes that overlap
(15 rounds). ``--other`` is the source folder of another version of Laconic. Both versions then run
in turns, each in its own process. The table shows the ratio of their processor times and the
relative difference of their objectives. Processor time is that of the fit, after a small fit that
loads the compiled kernels. A run is cut off after ``--cap`` seconds.

Run: python benchmarks/totalq_classes.py [--other ../other/src] [--cap 100] [--json FILE]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from _common import ROOT, arguments, progress, save, table

RANDOM = 6


def problem(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the rows, classes and number of rounds of a problem."""
    from sklearn.datasets import make_blobs

    rng = np.random.default_rng(seed)
    if name == "blobs":
        return *make_blobs(300, random_state=seed), 20
    if name == "pairs":
        return rng.standard_normal((100, 5)), np.repeat(np.arange(50), 2), 100
    k = 3 + int(name) % 4
    X = rng.standard_normal((200, 4 + int(name)))
    scores = 2.0 * X @ rng.standard_normal((X.shape[1], k)) + rng.gumbel(size=(200, k))
    return X, scores.argmax(axis=1), 15


def fit(name: str, seed: int) -> dict[str, Any]:
    """Fit one problem in this process."""
    from laconic import TotalQBoostClassifier

    X, y, rounds = problem(name, seed)
    TotalQBoostClassifier(2, loss="log").fit(X, y)
    model = TotalQBoostClassifier(rounds, loss="log")
    clock = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - clock
    return {"seconds": seconds, "objective": model.objective_, "atoms": model.n_atoms_}


def fit_elsewhere(source: Path, name: str, seed: int, cap: float) -> dict[str, Any] | None:
    """Fit one problem in a process with the sources of a folder; return None if it is cut off."""
    code = f"import totalq_classes as t, json; print(json.dumps(t.fit({name!r}, {seed})))"
    path = os.pathsep.join([str(source.resolve()), str(Path(__file__).parent)])
    environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, timeout=cap, check=True,
            capture_output=True, text=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Run everything, print a table and save the figures."""
    parser = arguments(__doc__)
    parser.add_argument("--other", type=Path, help="source folder of another version")
    parser.add_argument("--cap", type=float, default=100.0, help="time limit of a run, in seconds")
    args = parser.parse_args()
    results, lines = [], []
    for name in ("blobs", "pairs", *map(str, range(RANDOM))):
        seed = args.seed + (int(name) if name.isdigit() else 0)
        new = fit_elsewhere(ROOT / "src", name, seed, args.cap)
        old = fit_elsewhere(args.other, name, seed, args.cap) if args.other else None
        results.append({"problem": name, "new": new, "other": old})
        progress(f"{name}: {new} and {old}")
        both = new is not None and old is not None
        lines.append([
            name,
            "cut off" if new is None else f"{new['seconds']:.2f}",
            "" if not args.other else "cut off" if old is None else f"{old['seconds']:.2f}",
            f"{old['seconds'] / new['seconds']:.0f}" if both else "",
            f"{new['objective'] / old['objective'] - 1:+.1e}" if both else "",
        ])  # fmt: skip
    heads = ["problem", "seconds", "other", "times", "objective"]
    table("TotalQBoost with many classes: processor seconds of a fit", heads, lines)
    save(args.json, args, (), {"problems": results})


if __name__ == "__main__":
    main()
