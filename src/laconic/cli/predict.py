"""``laconic predict``: predict a label for each row of a table."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from laconic.cli.dates import add_dates
from laconic.cli.files import check_files, check_table_name, load_predictor, need, write_table
from laconic.cli.numbers import add_decimal
from laconic.cli.tables import rows_for
from laconic.data.errors import UserError

SUMMARY = "Predict a label for each row of a table with a saved model."


def add_arguments(predict: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    predict.add_argument("model", metavar="MODEL", help="file from laconic fit or Predictor.save")
    predict.add_argument("table", metavar="TABLE", help="CSV file with a header, or Parquet file")
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
    check_files({"--out": args.out}, {"the model": args.model, "the table": args.table})
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
    X, kept = rows_for(predictor, args.table, args.keep, args.decimal, args.dates)
    out: dict[str, Any] = {**kept, "prediction": predictor.predict(X)}
    if args.proba:
        probabilities = predictor.predict_proba(X).round(6)
        out |= {f"p_{c}": p for c, p in zip(predictor.classes, probabilities.T, strict=True)}
    frame = need("pandas", "data").DataFrame(out)
    if args.out:
        write_table(frame, args.out)
    else:
        frame.to_csv(sys.stdout, index=False)
    return 0
