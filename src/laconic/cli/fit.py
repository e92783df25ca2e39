"""``laconic fit``: fit a classifier to a table."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from laconic.cli import fit_options
from laconic.cli.console import majority_line, make_console, save_plot, say, size_table
from laconic.cli.dates import add_dates
from laconic.cli.files import TABLE, check_files, check_name, check_picture, why_unsaved
from laconic.cli.fit_files import check_options, fit_files, some_rows, training_files
from laconic.cli.frontier import frontier_table
from laconic.cli.headers import add_name, changed, check_export, is_onnx, told, with_numbers
from laconic.cli.numbers import add_decimal
from laconic.cli.output import INTERRUPTED, SEED
from laconic.cli.parquet_chunks import table_inputs
from laconic.cli.tables import training_table
from laconic.data.errors import UserError

SUMMARY = "Fit a classifier to a table and save it."
# Rows from which TotalQBoost's default price is high enough.
MANY = 3000


def add_arguments(fit: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    fit.add_argument("table", metavar="TABLE", help=TABLE)
    fit.add_argument("--target", required=True, metavar="COLUMN", help="column of class labels")
    fit.add_argument(
        "--ignore", action="append", default=[], metavar="COLUMN",
        help="column to leave out, for example an identifier (repeatable)",
    )  # fmt: skip
    fit.add_argument(
        "--keep-id", action="append", default=[], metavar="COLUMN",
        help="column to keep although it looks like an identifier (repeatable)",
    )  # fmt: skip
    add_decimal(fit)
    add_dates(fit)
    fit_options.add_arguments(fit)
    fit.add_argument(
        "--categorical", action="append", default=[], metavar="COLUMN",
        help="column of codes, such as 007, to read as categories (only for stumps; repeatable)",
    )  # fmt: skip
    fit.add_argument(
        "--include", action="append", default=[], metavar="COLUMN",
        help="column that the model always uses (not for stumps; repeatable)",
    )  # fmt: skip
    fit.add_argument("--balanced", action="store_true", help="give every class the same weight")
    fit.add_argument("--refine", action="store_true", help="improve each size by swapping atoms")
    fit.add_argument(
        "--tune", action="store_true",
        help="then re-optimise the atoms themselves, with their weights; for atoms that have "
        "parameters, such as --pool hinges",
    )  # fmt: skip
    size = fit.add_mutually_exclusive_group()
    size.add_argument(
        "--cv", type=int, metavar="K",
        help="choose the size (for totalq: the price) by K-fold cross-validation",
    )  # fmt: skip
    fit.add_argument(
        "--scoring", metavar="NAME",
        help="score that --cv compares, such as roc_auc or neg_log_loss (default: accuracy)",
    )  # fmt: skip
    size.add_argument(
        "--early-stopping", action="store_true", help="choose the size by held-out rows"
    )
    fit.add_argument(
        "--test-fraction", type=float, default=0.0, metavar="PART",
        help="share of the rows to set aside and test on, such as 0.25 (default: 0)",
    )  # fmt: skip
    fit.add_argument(
        "--checkpoint", metavar="FILE",
        help="file to save progress to, and to resume from if it exists",
    )  # fmt: skip
    fit.add_argument(
        "--out", default="model.laconic", metavar="FILE",
        help="file for the model (default: %(default)s)",
    )  # fmt: skip
    fit.add_argument(
        "--export", metavar="FILE",
        help="C header or ONNX model to write, such as model.h or model.onnx (see --bits)",
    )  # fmt: skip
    add_name(fit)
    fit.add_argument(
        "--plot", metavar="FILE",
        help="file for a plot of loss and error at each size, such as path.png (compact: error "
        "against bytes)",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Fit a classifier, save it, and show its sizes and its card."""
    from laconic.data.doubts import told_already

    paths = fit_files(args.table)
    export_name = _check(args, paths)
    X, y, test = _rows(args, paths)
    with told_already(labels=False):
        model = fit_options.make_model(args, SEED).fit(X, y)
    # Save before anything is shown, as the reader of the output may go away.
    done = "replaced" if Path(args.out).is_file() else "saved"
    unsaved = [why_unsaved(args.out, lambda: model.predictor_.save(args.out))]
    if args.plot:
        unsaved.append(why_unsaved(args.plot, lambda: save_plot(model, args.plot, *test)))
    header = None
    if args.export:
        rows = (X, y) if paths is None else some_rows(args, paths, model)
        header = _header(args, model, rows, export_name)
        unsaved.append(why_unsaved(args.export, lambda: header.save(args.export)))

    console = make_console()
    tell = _tell_search if args.method == "compact" else _tell_path
    tell(console, args, model, test, len(y) if paths is None else X.n_rows)
    if not unsaved[0]:
        say(console, f"{done}  {args.out}", f"laconic predict {args.out} TABLE.csv")
    if args.plot and not unsaved[1]:
        say(console, f"saved  {args.plot}", "the picture")
    if header is not None and not unsaved[-1]:
        if hasattr(header.predictor, "change"):
            console.print(changed(header.predictor), markup=False)
        say(console, f"saved  {args.export}", told(header, args.chip))
    if any(unsaved):
        raise UserError("; ".join(filter(None, unsaved)))
    return INTERRUPTED if model.status_ == "interrupted" else 0


def _check(args: argparse.Namespace, paths: list[Path] | None) -> str:
    """Check the options before any row is read. Return the name of an exported model."""
    if paths is not None:
        check_options(args)
    fit_options.settle(args)
    outputs = {"--out": args.out, "--plot": args.plot, "--checkpoint": args.checkpoint}
    outputs["--export"] = args.export
    if not args.out:
        raise UserError("--out needs the name of a file.")
    check_files(outputs, table_inputs(args.table, paths))
    check_name(args.out, "a model", (".laconic", ".zip"))
    if args.plot:
        check_picture(args.plot)
    export_name = check_export(args.export, args.name) if args.export else ""
    if not 0.0 <= args.test_fraction < 1.0:
        raise UserError(
            f"--test-fraction must be at least 0 and below 1, not {args.test_fraction}."
        )
    args.cost = dict(_column_and_cost(text) for text in args.cost)
    return export_name


def _rows(args: argparse.Namespace, paths: list[Path] | None) -> tuple[Any, Any, tuple[Any, Any]]:
    """Return rows to fit with their labels, and rows that are set aside with theirs, or None."""
    from sklearn.model_selection import train_test_split

    if paths is not None:
        return training_files(args, paths), args.target, (None, None)
    X, y = training_table(args)
    if not args.test_fraction:
        return X, y, (None, None)
    settings = {"test_size": args.test_fraction, "random_state": SEED, "stratify": y}
    try:
        X, X_test, y, y_test = train_test_split(X, y, **settings)
    except ValueError as error:
        raise UserError(f"--test-fraction {args.test_fraction} does not work: {error}") from error
    return X, y, (X_test, y_test)


def _header(args: argparse.Namespace, model: Any, rows: tuple[Any, Any], name: str) -> Any:
    """Return a model as C or as ONNX. Some rows choose the scales of integers."""
    onnx, predictor = is_onnx(args.export), model.predictor_
    if args.method != "compact":  # the models of a search have their numbers already
        bits = 32 if onnx and not args.bits and not args.inputs else args.bits
        predictor = with_numbers(predictor, *rows, bits, args.inputs)
    return predictor.to_onnx(name) if onnx else predictor.to_c(name)


def _tell_path(console: Any, args: Any, model: Any, test: Any, n_rows: int) -> None:
    """Show the sizes of a path, how one was chosen, and the card of the model."""
    from laconic.model.card import card, count

    console.print(size_table(model, *test))
    console.print(majority_line(model, test[1]), markup=False)
    if args.cv or args.early_stopping:
        how = f"{args.cv}-fold cross-validation" if args.cv else "the loss on held-out rows"
        at = f" at a price of {model.price_:g}," if args.method == "totalq" else ","
        console.print(f"In use: {count(model.n_atoms_, 'atom')}{at} chosen by {how}.\n")
    if args.tune and model.n_atoms_ and model.status_ != "interrupted":
        console.print(f"{_told_of_tuning(args, model)}\n")
    few = args.method == "totalq" and args.price is None and not args.cv and n_rows < MANY
    if few and args.max_atoms is None:
        console.print(
            f"The default price, {model.price_:g}, is for thousands of rows. For {n_rows:,} rows, "
            "choose the price by --cv 5, or set a higher one, such as --price 0.01.\n"
        )
    _tell_rows(console, args, n_rows)
    if args.max_atoms is not None and model.path_.sizes[-1] < args.max_atoms:
        console.print(
            f"The path ends at {count(model.path_.sizes[-1], 'atom')}: {model.status_}.\n"
        )
    console.out(card(model) + "\n", highlight=False)


def _told_of_tuning(args: Any, model: Any) -> str:
    """Say whether the model in use has tuned atoms, and if not, why."""
    if model.path_.is_tuned(model.n_atoms_):
        return "The atoms of the model in use were tuned."
    why = ["is no better on held-out rows"]
    if args.max_operations is not None:
        why.append("takes more operations")
    if args.method == "totalq":
        why.append("has fewer atoms")
    return f"The atoms stay as they were chosen. The tuned model {' or '.join(why)}."


def _tell_search(console: Any, args: Any, model: Any, test: Any, n_rows: int) -> None:
    """Show the frontier of a search, why a model was chosen, and its card."""
    from laconic.model.card import card

    console.print(frontier_table(model, *test))
    console.print(majority_line(model, test[1]), markup=False)
    _tell_rows(console, args, n_rows)
    console.print(f"{model.why_}\n{model.checked_}\n", markup=False)
    console.out(card(model.predictor_) + "\n", highlight=False)


def _tell_rows(console: Any, args: Any, n_rows: int) -> None:
    if args.test_fraction:
        console.print(f"The model learned from the {n_rows:,} rows that were not set aside.\n")


def _column_and_cost(text: str) -> tuple[str, float]:
    """Split COLUMN=NUMBER into its two parts. `training_table` splits the columns of a sensor."""
    name, equals, number = text.rpartition("=")
    try:
        if not equals:
            raise ValueError
        return name, float(number)
    except ValueError:
        raise UserError(
            f"--cost must be COLUMN=NUMBER or COLUMN+COLUMN=NUMBER, such as age=2.5, not {text!r}."
        ) from None
