"""How much memory and time does a fit of rows in files take?

30 stumps are fitted to rows of 20 features in single precision, with two classes. The labels come
from ten stumps plus logistic noise. The rows are generated in a temporary folder, as a .npy file
and as a Parquet file, and are deleted at the end. Every fit runs in its own process. A thread of
it notes the anonymous memory (RssAnon) every 50 ms. Pages of files that are mapped or cached are
not part of it: the system takes them back when it needs them.

The first 10 million rows are also fitted in memory, as one array, and from the same memory map.
So the seconds of a round can be compared.

The limits are 20 bytes of codes and 16 bytes of the rest for a row, and 4 GB in all at 100 million
rows. The limit for a row is checked against the slope between the two numbers of rows, because the
libraries and the work on a single part take as much memory for any number of rows. The slope means
something only if there are many parts, of 1,048,576 rows each.

Run: python benchmarks/disk_rows.py [--rows 100000000] [--kinds npy parquet] [--json FILE]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _common import arguments, progress, save, table, timed, verdict
from numpy.lib.format import open_memmap

FEATURES, ATOMS = 20, 30
TOGETHER = 1 << 19
"""Rows that are generated together, and rows of a row group."""
CODES, REST, WHOLE = 20, 16, 4e9
"""Bytes that a row may take, and bytes that 100 million rows may take."""


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=100_000_000, help="number of rows")
    parser.add_argument("--few", type=int, default=10_000_000, help="rows that also fit in memory")
    parser.add_argument("--kinds", nargs="+", default=["npy", "parquet"])
    parser.add_argument("--folder", type=Path, help="where the rows are generated")
    args = parser.parse_args()
    few, results = min(args.few, args.rows), {}
    for kind in args.kinds:
        with tempfile.TemporaryDirectory(prefix="disk_rows-", dir=args.folder) as made:
            folder = Path(made)
            progress(f"{kind}: generating {args.rows} rows")
            seconds = timed(WRITERS[kind], folder, args.rows, args.seed)[0]
            size = sum(file.stat().st_size for file in folder.iterdir())
            results[kind] = {"bytes": size, "seconds to generate": seconds}
            results[kind] |= measured(kind, folder, args.rows)
            for smaller in ("map", "memory") if kind == "npy" else ():
                results[smaller] = measured(smaller, folder, few)
    shown(results)
    judged = judge(results)
    save(args.json, args, ["pyarrow"], {"fits": results, "verdicts": judged})


def blocks(rows: int, seed: int) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield the rows and their labels."""
    rng = np.random.default_rng(seed)
    for first in range(0, rows, TOGETHER):
        n = min(TOGETHER, rows - first)
        X = rng.standard_normal((n, FEATURES), dtype=np.float32)
        score = rng.logistic(size=n) - 9.5
        for feature in range(10):
            score += (feature % 3 + 1) * (X[:, feature] > 0.1 * feature - 0.5)
        yield slice(first, first + n), X, (score > 0).astype(np.int8)


def write_npy(folder: Path, rows: int, seed: int) -> None:
    """Write the features and the labels to a .npy file each."""
    X = open_memmap(folder / "X.npy", "w+", np.float32, (rows, FEATURES))
    y = open_memmap(folder / "y.npy", "w+", np.int8, (rows,))
    for s, own, labels in blocks(rows, seed):
        X[s], y[s] = own, labels
    X.flush()


def write_parquet(folder: Path, rows: int, seed: int) -> None:
    """Write a Parquet file with a column for every feature, and one for the labels."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    names = [f"x{feature}" for feature in range(FEATURES)]
    schema = pa.schema([*((name, pa.float32()) for name in names), ("label", pa.int8())])
    with ParquetWriter(folder / "rows.parquet", schema) as writer:
        for _, X, labels in blocks(rows, seed):
            columns = [*np.ascontiguousarray(X.T), labels]
            writer.write_table(pa.table(columns, schema=schema))


WRITERS = {"npy": write_npy, "parquet": write_parquet}


def measured(kind: str, folder: Path, rows: int) -> dict[str, Any]:
    """Return what a fit in its own process says of itself."""
    progress(f"{kind}: fitting {rows} rows")
    program = Path(__file__).with_name("_disk_fit.py")
    command = [sys.executable, str(program), kind, str(folder), str(rows), str(ATOMS)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def shown(results: dict[str, Any]) -> None:
    phases = ("look", "survey", "bind", "preparing", "rounds", "a round")
    table(
        "seconds",
        ["rows from", "rows", "whole", *phases],
        [
            [kind, r["rows"], r["seconds"], *(r["seconds of phases"][p] for p in phases)]
            for kind, r in results.items()
        ],
    )
    table(
        "anonymous memory",
        ["rows from", "peak in MB", "bytes a row", "train error", "asked"],
        [
            [
                kind,
                r["peak RssAnon"] / 1e6,
                r["peak RssAnon a row"],
                r["train error"],
                ", ".join(r["times read"]),
            ]
            for kind, r in results.items()
        ],
    )


def judge(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare with the limits."""
    print()
    judged = [
        verdict(f"{kind}, peak RssAnon in bytes", results[kind]["peak RssAnon"], WHOLE, False)
        for kind in WRITERS
        if kind in results
    ]
    if "npy" not in results:
        return judged
    npy, few, memory = (results[kind] for kind in ("npy", "map", "memory"))
    if npy["rows"] > few["rows"]:
        more = npy["peak RssAnon"] - few["peak RssAnon"]
        slope = more / (npy["rows"] - few["rows"])
        judged.append(verdict("npy, bytes for one more row", slope, CODES + REST, False))
    ratio = few["seconds of phases"]["a round"] / memory["seconds of phases"]["a round"]
    judged.append(verdict("round from a map / round in memory", ratio, 1.05, False))
    return judged


if __name__ == "__main__":
    main()
