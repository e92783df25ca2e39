"""How fast is the exact radius graph, and how much memory does it take, compared with scikit-learn?

The data are 35,000 MNIST digits of 784 pixels in [0, 1] (a random half of all, as in the paper's
section 5). The radius is the one within which 5 % of the pairs are. Each graph is made in its own
process. The memory reported is the peak above what the process held before. The time includes
everything but loading the data. Ours is with compiled kernels in the cache. scikit-learn's
`radius_neighbors_graph` runs with its fastest setting here, brute force on all cores, in float32
and in float64. The graphs are compared through the number of neighbours of every row.

Run: python benchmarks/radius_graph.py [--rows 35000] [--share 0.05] [--json FILE]
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from _common import arguments, load, save, show, table, timed, verdict

FASTER = 3.0
METHODS = ("laconic float32", "laconic float64", "scikit-learn float32", "scikit-learn float64")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=35_000)
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--only", choices=METHODS, help="run one method and print JSON")
    args = parser.parse_args()
    if args.only:
        print(json.dumps(measured(args)))
        return
    runs = {}
    for method in METHODS:
        command = [sys.executable, *sys.argv, "--only", method]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        runs[method] = json.loads(done.stdout)
        print(f"{method}: {show(runs[method]['seconds'])} s", file=sys.stderr, flush=True)
    table(
        f"{args.rows} x 784, {100 * args.share:g} % of the pairs",
        ["", "seconds", "peak MB above the data", "graph MB", "neighbours"],
        [[m, r["seconds"], r["peak_mb"], r["graph_mb"], r["neighbours"]] for m, r in runs.items()],
    )
    digests = {dtype: {r["degrees"] for m, r in runs.items() if dtype in m}
               for dtype in ("float32", "float64")}  # fmt: skip
    for dtype, found in digests.items():
        print(f"{dtype}: {'the same' if len(found) == 1 else 'NOT the same'} degrees by both")
    faster = {
        dtype: runs[f"scikit-learn {dtype}"]["seconds"] / runs[f"laconic {dtype}"]["seconds"]
        for dtype in ("float32", "float64")
    }
    least = verdict("times faster than scikit-learn", min(faster.values()), FASTER, True)
    save(args.json, args, [], {"runs": runs, "faster": faster, "verdict": least})


def rows(args: Any) -> np.ndarray:
    """Return a random half of all digits, with pixels in [0, 1]."""
    data = load(args.data, "mnist")
    X = np.concatenate([data["X_train"], data["X_test"]]).reshape(70_000, -1)
    some = np.random.default_rng(args.seed).permutation(len(X))[: args.rows]
    return X[some] / np.dtype(args.only.split()[1]).type(255)


def measured(args: Any) -> dict[str, Any]:
    """Return seconds, memory and the graph's figures for one method."""
    from laconic.clumping.neighbours import auto_radius, radius_graph

    X = rows(args)
    radius = auto_radius(X, share=args.share)
    if args.only.startswith("laconic"):
        radius_graph(X[:300], radius)  # loads the compiled kernels
        radius_graph(X[:300], radius / 4)
        seconds, peak, graph = watched(radius_graph, X, radius)
        degrees, size = graph.degrees, graph.nbytes
    else:
        from sklearn.neighbors import NearestNeighbors

        finder = NearestNeighbors(algorithm="brute", n_jobs=-1).fit(X)
        seconds, peak, matrix = watched(finder.radius_neighbors_graph, None, radius)
        degrees = np.diff(matrix.indptr)
        size = sum(a.nbytes for a in (matrix.data, matrix.indices, matrix.indptr))
    return {
        "radius": radius,
        "seconds": seconds,
        "peak_mb": peak / 1e6,
        "graph_mb": size / 1e6,
        "neighbours": int(degrees.sum()),
        "degrees": digest(degrees),
    }


def digest(degrees: np.ndarray) -> str:
    """Return a digest of the number of neighbours of every row."""
    return hashlib.sha256(degrees.astype(np.int64).tobytes()).hexdigest()[:16]


def memory(field: str) -> int:
    """Return the bytes that Linux counts for this process.

    ``field`` is VmRSS for the present size, or VmHWM for the peak since the last reset.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return 1024 * int(line.split()[1])
    raise ValueError(f"no {field} in /proc/self/status")


def watched(function: Any, *args: Any) -> tuple[float, int, Any]:
    """Return the seconds of a call, its peak memory above what was held before, and its result."""
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = memory("VmRSS")
    seconds, answer = timed(function, *args)
    return seconds, memory("VmHWM") - before, answer


if __name__ == "__main__":
    main()
