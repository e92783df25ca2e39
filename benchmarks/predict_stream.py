"""Rows a second and memory of `laconic predict`, from Parquet to Parquet and from CSV to CSV.

A model of 30 stumps predicts one of two classes from 20 columns of float32. It reads all columns.
The command runs as a process of its own. While it runs, the script reads RssAnon of the process:
its memory without the pages of files. VmHWM, the peak with these pages, is reported too.

A table with one row measures the start: imports, and reading the model. Rows a second are without
the start. Each kind of file has two sizes. They show that memory does not grow with the rows.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from _common import arguments, progress, save, table, verdict
from pyarrow.csv import CSVWriter
from pyarrow.parquet import ParquetFile, ParquetWriter

from laconic import ShareBoostClassifier

COLUMNS, STUMPS = 20, 30
NAMES = [f"x{column}" for column in range(COLUMNS)]
# Rows of a group of a Parquet file, and rows that the model learns from.
GROUP, LEARNED = 1 << 20, 50_000
# The smaller of two sizes has this part of the rows.
SMALLER = 4
LEAST_SPEED, MOST_ANON = 1e6, 1 << 30
# A memory that does not grow with the rows may still differ by this factor.
MOST_GROWTH = 1.25
SECONDS_BETWEEN_LOOKS = 0.002


def rows(n_rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return columns of float32."""
    values = rng.standard_normal((COLUMNS, n_rows), dtype=np.float32)
    return dict(zip(NAMES, values, strict=True))


def make_model(folder: Path, rng: np.random.Generator) -> tuple[Path, int]:
    """Fit and save a model that reads all columns. Return its file and its number of columns."""
    X = rows(LEARNED, rng)
    y = np.where(sum(X.values()) > 0, "yes", "no")
    matrix = pyarrow.table(X).to_pandas()
    model = ShareBoostClassifier(STUMPS, pool="stumps").fit(matrix, y)
    file = folder / "model.laconic"
    model.predictor_.save(file)
    return file, model.predictor_.cost().features


def write_rows(file: Path, n_rows: int, rng: np.random.Generator) -> None:
    """Write a table with random rows."""
    schema = pyarrow.schema([(name, pyarrow.float32()) for name in NAMES])
    make = ParquetWriter if file.suffix == ".parquet" else CSVWriter
    with make(file, schema) as writer:
        for start in range(0, n_rows, GROUP):
            writer.write_table(pyarrow.table(rows(min(GROUP, n_rows - start), rng), schema))


def measured(model: Path, file: Path, out: Path) -> dict[str, float]:
    """Return the seconds and the peaks of memory in bytes of one run of the command."""
    command = [sys.executable, "-m", "laconic", "predict", *map(str, (model, file, "--out", out))]
    start = time.perf_counter()
    process = subprocess.Popen(command)
    anon = peak = 0
    while process.poll() is None:
        now = memory_of(process.pid)
        anon, peak = max(anon, now["RssAnon"]), max(peak, now["VmHWM"])
        time.sleep(SECONDS_BETWEEN_LOOKS)
    seconds = time.perf_counter() - start
    if process.returncode:
        sys.exit(f"laconic predict ended with {process.returncode}")
    return {"seconds": seconds, "anon": anon, "peak": peak}


def memory_of(pid: int) -> dict[str, int]:
    """Return the memory of a process in bytes, or zeros if it has just ended."""
    found = {"RssAnon": 0, "VmHWM": 0}
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return found
    known = dict(line.split(":", 1) for line in lines if ":" in line)
    return {name: int(known.get(name, "0").split()[0]) << 10 for name in found}


def run(model: Path, folder: Path, kind: str, n_rows: int, args: Any) -> dict[str, Any]:
    """Write rows, predict them, and return the medians of some runs."""
    file, out = folder / f"rows.{kind}", folder / f"predicted.{kind}"
    write_rows(file, n_rows, np.random.default_rng(args.seed))
    progress(f"{kind}: {n_rows:,} rows, {file.stat().st_size / 1e9:.2f} GB")
    runs = [measured(model, file, out) for _ in range(args.repeats)]
    if kind == "parquet" and ParquetFile(out).metadata.num_rows != n_rows:
        sys.exit("not every row was predicted")
    file.unlink()
    out.unlink()
    peaks = {name: max(own[name] for own in runs) for name in ("anon", "peak")}
    seconds = float(np.median([own["seconds"] for own in runs]))
    return {"kind": kind, "rows": n_rows, "seconds": seconds, **peaks}


def main() -> None:
    """Measure both kinds of files."""
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000, help="rows of the Parquet file")
    parser.add_argument("--csv-rows", type=int, default=1_000_000, help="rows of the CSV file")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each size")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        model, n_read = make_model(folder, np.random.default_rng(args.seed + 1))
        found = []
        for kind, most in (("parquet", args.rows), ("csv", args.csv_rows)):
            start = run(model, folder, kind, 1, args)
            for n_rows in (most // SMALLER, most):
                own = run(model, folder, kind, n_rows, args)
                own["start"] = start["seconds"]
                own["rows_per_second"] = n_rows / (own["seconds"] - own["start"])
                found.append(own)
    heads = ("kind", "rows", "seconds", "start", "rows_per_second")
    table(
        f"laconic predict: {STUMPS} stumps on {n_read} columns",
        ["to and from", "rows", "seconds", "start", "rows/s", "RssAnon MB", "VmHWM MB"],
        [[*(own[h] for h in heads), own["anon"] / 1e6, own["peak"] / 1e6] for own in found],
    )
    small, large, *of_text = found
    verdicts = [
        verdict("rows a second, Parquet", large["rows_per_second"], LEAST_SPEED, True),
        verdict("RssAnon in bytes, Parquet", large["anon"], MOST_ANON, False),
        verdict("growth, Parquet", large["anon"] / small["anon"], MOST_GROWTH, False),
        verdict("growth, CSV", of_text[1]["anon"] / of_text[0]["anon"], MOST_GROWTH, False),
    ]
    results = {"stumps": STUMPS, "columns_read": n_read, "runs": found, "verdicts": verdicts}
    save(args.json, args, ["pandas", "pyarrow"], results)


if __name__ == "__main__":
    main()
