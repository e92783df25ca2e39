"""Predictions, probabilities and losses that a table holds, from any model in any language."""

from __future__ import annotations

import argparse
import re
from typing import Any

from laconic.cli.files import check_present
from laconic.data.errors import UserError

WAY_OUT = (
    " If the model cannot be run here, add its predictions to the table and leave the model out: "
    "laconic holes TABLE --target COLUMN --predicted COLUMN --probability COLUMN."
)


def add_given(parser: argparse.ArgumentParser) -> None:
    """Add the files, and the options that name columns of predictions."""
    parser.add_argument(
        "model", metavar="MODEL",
        help="Laconic model, or scikit-learn model in a .skops, .joblib or .pkl file; leave it out "
        "if the table holds predictions (--predicted) or losses (--loss)",
    )  # fmt: skip
    table = parser.add_argument(
        "table", metavar="TABLE",
        help="CSV or Parquet file of rows that the model was not trained on",
    )  # fmt: skip
    # One file alone is the table. (With nargs="?", no option could stand between two files.)
    table.required = False
    parser.add_argument("--target", metavar="COLUMN", help="column of true labels")
    parser.add_argument(
        "--predicted", metavar="COLUMN",
        help="column of predicted labels, in place of MODEL",
    )  # fmt: skip
    parser.add_argument(
        "--probability", nargs="+", action="extend", default=[], metavar="COLUMN",
        help="column with the probability of the predicted label, or a column for each label, "
        "named by it, such as p_yes, or given as COLUMN=LABEL",
    )  # fmt: skip
    parser.add_argument(
        "--loss", metavar="COLUMN",
        help="column of losses, such as absolute errors of a regression, in place of MODEL and "
        "--target",
    )  # fmt: skip


def check_given(args: argparse.Namespace) -> None:
    """Refuse options that do not go together. One file alone is the table."""
    if args.table is None:
        args.model, args.table = None, args.model
    if args.loss is not None:
        for value, name in (
            (args.model, "MODEL"), (args.target, "--target"), (args.predicted, "--predicted"),
            (args.probability, "--probability"),
        ):  # fmt: skip
            if value:
                out = f" To leave that column out of the search, use --ignore {value}."
                hint = out if name == "--target" else ""
                raise UserError(f"--loss takes the place of {name}.{hint}")
        return
    if args.target is None:
        raise UserError("--target COLUMN is needed: the column of true labels.")
    if args.model is None and args.predicted is None:
        raise UserError(
            "give a model and a table, or a table with --predicted COLUMN (or --loss COLUMN)."
        )
    if args.model is not None and (args.predicted or args.probability):
        raise UserError("--predicted and --probability take the place of MODEL. Leave it out.")


def take(X: Any, names: list[str], file: str) -> tuple[Any, list[Any]]:
    """Return the table without some columns, and these columns."""
    check_present(X, names, file)
    rest = X.drop(columns=names)
    if rest.shape[1] == 0:
        raise UserError(f"{file} has no column to look at besides {', '.join(map(repr, names))}.")
    return rest, [X[name] for name in names]


def column_of(text: str, columns: Any) -> tuple[str, str | None]:
    """Return the column and the label of COLUMN or COLUMN=LABEL."""
    if text in columns or "=" not in text:
        return text, None
    # Columns and labels may hold signs of equality themselves.
    splits = [(text[:at], text[at + 1 :]) for at, sign in enumerate(text) if sign == "="]
    return next((split for split in splits if split[0] in columns), splits[-1])


def probability_of(
    predicted: Any, truth: Any, named: list[tuple[str, str | None]], values: list[Any]
) -> Any:
    """Return the probability of each predicted label, from one column or a column for each label.

    Parameters
    ----------
    predicted, truth : ndarray
        Labels.
    named : list of (str, str or None)
        Names of the columns, and the labels that they are said to be of.
    values : list of Series
        The columns.
    """
    import numpy as np

    numbers = [np.asarray(column, dtype=np.float64) for column in values]
    said = predicted.astype(str)
    labels = np.union1d(said, truth.astype(str)).tolist()
    owners = [label if label is not None else _label_in(name, labels) for name, label in named]
    if len(named) == 1 and owners[0] is None:
        return numbers[0]
    twice = [owner for owner in owners if owner is not None and owners.count(owner) > 1]
    if twice:
        raise UserError(f"--probability names two columns for the label {twice[0]!r}. Keep one.")
    of = dict(zip(owners, numbers, strict=True))
    if len(of) == 1 and len(labels) == 2 and owners[0] in labels:
        of[labels[1 - labels.index(owners[0])]] = 1.0 - numbers[0]
    absent = [label for label in np.unique(said).tolist() if label not in of]
    if absent or None in of:
        unknown = f"of which label {named[owners.index(None)][0]!r} is" if None in of else ""
        raise UserError(
            f"--probability does not say {unknown or f'which column is of {absent[0]!r}'}. Give "
            "one column with the probability of the predicted label, or COLUMN=LABEL for each "
            "label."
        )
    out = np.empty(len(said))
    for label, column in of.items():
        out[said == label] = column[said == label]
    return out


def _label_in(name: str, labels: list[str]) -> str | None:
    """Return the label that a column is named by: the whole name, or its last part."""
    ends = {label: rf"(^|[^a-zA-Z0-9]){re.escape(label)}$" for label in labels}
    found = [label for label in labels if re.search(ends[label], name)]
    return max(found, key=len, default=None)
