"""``laconic predict``: predict a label for each row of a table."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from laconic.cli.chunks import Chunk, chunks, of_file
from laconic.cli.dates import add_dates
from laconic.cli.files import TABLE, check_files, check_table_name, load_predictor
from laconic.cli.kept_times import spelled
from laconic.cli.model_rows import Wanted
from laconic.cli.numbers import add_decimal
from laconic.cli.parquet_chunks import several_files, table_inputs
from laconic.cli.writing import table_writer, writes_text
from laconic.data.errors import UserError

SUMMARY = "Predict a label for each row of a table with a saved model."
# Rows that are predicted together. Their columns fit into the caches of a processor.
TOGETHER = 8192


def add_arguments(predict: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    predict.add_argument("model", metavar="MODEL", help="file from laconic fit or Predictor.save")
    predict.add_argument("table", metavar="TABLE", help=TABLE)
    add_decimal(predict)
    add_dates(predict)
    predict.add_argument("--proba", action="store_true", help="add a probability for each class")
    predict.add_argument(
        "--keep", action="append", default=[], metavar="COLUMN",
        help="column to copy to the output, for example an identifier (repeatable)",
    )  # fmt: skip
    predict.add_argument(
        "--out",
        metavar="FILE",
        help="file to write: .csv, .tsv, .parquet or .xlsx (default: CSV to standard output)",
    )


def run(args: argparse.Namespace) -> int:
    """Write the predicted label of every row, and the class probabilities if asked for."""
    from laconic.numeric.threads import Threads

    inputs = table_inputs(args.table, several_files(args.table))
    check_files({"--out": args.out}, {"the model": args.model, **inputs})
    if args.out:
        check_table_name(args.out)
    if not args.out and sys.stdout is None:
        raise UserError("standard output is closed. Name a file with --out.")
    predictor = load_predictor(args.model)
    if args.proba and not hasattr(predictor, "predict_proba"):
        raise UserError(f"{args.model} has scores but no probabilities. Leave --proba out.")
    made = ["prediction", *(f"p_{c}" for c in predictor.classes if args.proba)]
    if taken := set(made) & set(args.keep):
        raise UserError(f"--keep {min(taken)!r} would be overwritten. Rename that column.")
    wanted = Wanted(predictor, args.keep, args.dates)
    with table_writer(args.out) as write, Threads(1):
        for chunk in chunks(args.table, wanted, args.decimal, writes_text(args.out)):
            write(_answers(predictor, chunk, wanted, args.proba))
    return 0


def _answers(predictor: Any, chunk: Chunk, wanted: Wanted, proba: bool) -> Any:
    """Return the predictions for some rows as a data frame, beside the columns to keep."""
    import numpy as np
    import pandas

    from laconic.numeric.threads import row_blocks

    with of_file(chunk.file):
        X, kept = wanted.rows(chunk.frame)
        blocks = row_blocks(len(X), TOGETHER)
        labels = [predictor.predict(X[rows]) for rows in blocks]
        out = {name: spelled(column, chunk.finest.get(name)) for name, column in kept.items()}
        out["prediction"] = np.concatenate(labels)
        if proba:
            parts = [predictor.predict_proba(X[rows]) for rows in blocks]
            shares = np.concatenate(parts).round(6)
            out |= {f"p_{c}": p for c, p in zip(predictor.classes, shares.T, strict=True)}
    return pandas.DataFrame(out)
