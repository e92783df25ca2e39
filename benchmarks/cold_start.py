"""How long does the first fit on a fresh machine compile?

Every case runs in its own processes. The first has an empty folder as ``NUMBA_CACHE_DIR``. Then
``--repeats`` more processes use what the first one left there. The time is that of the fit alone,
on 300 rows, without the imports before it. The table shows wall time and the processor time of the
process, which hardly depends on how busy the machine is. ``--functions`` lists the time to compile
each kernel, which includes the kernels that it calls for the first time.

Run: python benchmarks/cold_start.py [--only stumps] [--functions] [--repeats 2] [--json FILE]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from _common import arguments, progress, save, table

FITS = {
    **{name: f"ShareBoostClassifier(5, pool={name!r})"
       for name in ("columns", "stumps", "products", "pieces")},
    "totalq": "TotalQBoostClassifier(10)",
    "totalq logistic": "TotalQBoostClassifier(10, loss='logistic')",
    "totalq hot start": "TotalQBoostClassifier(10, hot_start=8)",
    "totalq exact": "TotalQBoostClassifier(10, search='exact')",
    "totalq log": "TotalQBoostClassifier(10, loss='log')",
    "clumping": "ErrorClumpingClassifier()",
    "holes": "HolePunchingClassifier()",
}  # fmt: skip

PROGRAM = """
import json, sys, time
import numpy as np
from laconic import *
from sklearn.datasets import make_classification
functions = {}
if sys.argv[1] == "functions":
    from numba.core import event
    class Listener(event.Listener):
        def __init__(self):
            self.starts = []
        def on_start(self, happening):
            self.starts.append(time.process_time())
        def on_end(self, happening):
            name = happening.data["dispatcher"].py_func.__qualname__
            functions[name] = functions.get(name, 0) + time.process_time() - self.starts.pop()
    event.register("numba:compile", Listener())
X, y = make_classification(300, 6, random_state=0)
model = FIT
wall, processor = time.perf_counter(), time.process_time()
model.fit(X, y)
times = time.perf_counter() - wall, time.process_time() - processor
print(json.dumps({"wall": times[0], "processor": times[1], "functions": functions}))
"""


def run(fit: str, folder: str, functions: bool) -> dict[str, Any]:
    """Run one fit in its own process, with a folder for compiled kernels."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
    program = [sys.executable, "-W", "ignore", "-c", PROGRAM.replace("FIT", fit)]
    done = subprocess.run(
        [*program, "functions" if functions else "-"],
        env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Run every case, print a table and save the figures."""
    parser = arguments(__doc__)
    parser.add_argument("--only", nargs="*", default=list(FITS), help="cases to run")
    parser.add_argument(
        "--functions", action="store_true", help="list the kernels with their times"
    )
    parser.add_argument(
        "--repeats", type=int, default=2, help="number of warm runs; the fastest counts"
    )
    args = parser.parse_args()
    results = {}
    for name in args.only:
        with tempfile.TemporaryDirectory() as folder:
            cold = run(FITS[name], folder, args.functions)
            warm = [run(FITS[name], folder, False) for _ in range(args.repeats)]
        best = {clock: min(w[clock] for w in warm) for clock in ("wall", "processor")}
        results[name] = {"cold": cold, "warm": best}
        progress(f"{name}: {results[name]}")
    table(
        "Seconds of a fit: cold, warm and their difference",
        ["fit", "cold", "warm", "processor: cold", "warm", "difference"],
        [
            [name, r["cold"]["wall"], r["warm"]["wall"], r["cold"]["processor"],
             r["warm"]["processor"], r["cold"]["processor"] - r["warm"]["processor"]]
            for name, r in results.items()
        ],
    )  # fmt: skip
    for name, r in results.items() if args.functions else ():
        dearest = sorted(r["cold"]["functions"].items(), key=lambda item: -item[1])
        table(f"{name}: processor seconds of compiling", ["kernel", "seconds"], dearest)
    save(args.json, args, (), results)


if __name__ == "__main__":
    main()
