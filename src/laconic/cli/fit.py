"""``laconic fit``: a classifier from a table."""

from __future__ import annotations

import argparse

from laconic.cli import fit_options
from laconic.cli.console import majority_line, make_console, save_plot, say, size_table
from laconic.cli.dates import add_dates
from laconic.cli.files import check_files, check_name, check_picture, why_unsaved
from laconic.cli.numbers import add_decimal
from laconic.cli.output import INTERRUPTED, SEED
from laconic.cli.tables import training_table
from laconic.data.errors import UserError

SUMMARY = "Fit a classifier to a table and save it."


def add_arguments(fit: argparse.ArgumentParser) -> None:
    """What the command can be told."""
    fit.add_argument("table", metavar="TABLE", help="CSV or parquet file with a header")
    fit.add_argument("--target", required=True, metavar="COLUMN", help="column of class labels")
    fit.add_argument(
        "--ignore", action="append", default=[], metavar="COLUMN",
        help="column to leave out, an identifier say; may be repeated",
    )  # fmt: skip
    fit.add_argument(
        "--keep-id", action="append", default=[], metavar="COLUMN",
        help="column to learn from although it seems to name rows; may be repeated",
    )  # fmt: skip
    add_decimal(fit)
    add_dates(fit)
    fit_options.add_arguments(fit)
    fit.add_argument(
        "--categorical", action="append", default=[], metavar="COLUMN",
        help="column of codes, such as 007, to take as categories (for stumps); may be repeated",
    )  # fmt: skip
    fit.add_argument(
        "--include", action="append", default=[], metavar="COLUMN",
        help="column that is always in (not for stumps); may be repeated",
    )  # fmt: skip
    fit.add_argument(
        "--cost", action="append", default=[], metavar="COLUMN=NUMBER",
        help="cost of reading a column, 1 for those not named; may be repeated",
    )  # fmt: skip
    fit.add_argument("--max-cost", type=float, metavar="NUMBER", help="cap on the sum of costs")
    fit.add_argument("--balanced", action="store_true", help="give every class the same weight")
    fit.add_argument("--refine", action="store_true", help="improve every size by swapping atoms")
    size = fit.add_mutually_exclusive_group()
    size.add_argument(
        "--cv", type=int, metavar="K",
        help="choose the size (totalq: the price) by K-fold cross-validation",
    )  # fmt: skip
    fit.add_argument(
        "--scoring", metavar="NAME",
        help="what --cv compares by, such as roc_auc or neg_log_loss (accuracy)",
    )  # fmt: skip
    size.add_argument(
        "--early-stopping", action="store_true", help="choose the size on held-out rows"
    )
    fit.add_argument(
        "--test-fraction", type=float, default=0.0, metavar="PART",
        help="part of the rows to keep aside and test on, such as 0.25",
    )  # fmt: skip
    fit.add_argument("--checkpoint", metavar="FILE", help="resume from here, and write to here")
    fit.add_argument(
        "--out", default="model.laconic", metavar="FILE", help="the model (%(default)s)"
    )
    fit.add_argument("--plot", metavar="FILE", help="picture of the path, such as path.png")


def run(args: argparse.Namespace) -> int:
    """Fit, show the sizes and the card, save the predictor."""
    from sklearn.model_selection import train_test_split

    from laconic.data.doubts import told_already
    from laconic.model.card import card, count

    fit_options.settle(args)
    outputs = {"--out": args.out, "--plot": args.plot, "--checkpoint": args.checkpoint}
    if not args.out:
        raise UserError("--out needs the name of a file")
    check_files(outputs, {"the table": args.table})
    check_name(args.out, "a model", (".laconic", ".zip"))
    if args.plot:
        check_picture(args.plot)
    if not 0.0 <= args.test_fraction < 1.0:
        raise UserError(f"--test-fraction must be at least 0 and below 1, not {args.test_fraction}")
    args.cost = dict(_column_and_cost(text) for text in args.cost)
    X, y = training_table(args)
    X_test = y_test = None
    if args.test_fraction:
        try:
            X, X_test, y, y_test = train_test_split(
                X, y, test_size=args.test_fraction, random_state=SEED, stratify=y
            )
        except ValueError as error:
            raise UserError(
                f"--test-fraction {args.test_fraction} does not work: {error}"
            ) from error
    with told_already(labels=False):
        model = fit_options.make_model(args, X, SEED).fit(X, y)
    # Before anything is shown: whoever reads it may go away.
    unsaved = [why_unsaved(args.out, lambda: model.predictor_.save(args.out))]
    if args.plot:
        unsaved.append(why_unsaved(args.plot, lambda: save_plot(model, args.plot, X_test, y_test)))

    console = make_console()
    console.print(size_table(model, X_test, y_test))
    console.print(majority_line(model, y_test), markup=False)
    if args.cv or args.early_stopping:
        how = f"{args.cv}-fold cross-validation" if args.cv else "the loss on held-out rows"
        at = f" at a price of {model.price_:g}," if args.method == "totalq" else ""
        console.print(f"{count(model.n_atoms_, 'atom')}{at} chosen by {how}.\n")
    if args.max_atoms is not None and model.path_.sizes[-1] < args.max_atoms:
        console.print(
            f"The path ends at {count(model.path_.sizes[-1], 'atom')}: {model.status_}.\n"
        )
    console.out(card(model) + "\n", highlight=False)
    if not unsaved[0]:
        say(console, f"saved  {args.out}", f"laconic predict {args.out} TABLE.csv")
    if args.plot and not unsaved[1]:
        say(console, f"saved  {args.plot}", "the picture of the path")
    if any(unsaved):
        raise UserError("; ".join(filter(None, unsaved)))
    return INTERRUPTED if model.status_ == "interrupted" else 0


def _column_and_cost(text: str) -> tuple[str, float]:
    """The parts of COLUMN=NUMBER."""
    name, equals, number = text.rpartition("=")
    try:
        if not equals:
            raise ValueError
        return name, float(number)
    except ValueError:
        raise UserError(f"--cost wants COLUMN=NUMBER, such as age=2.5, not {text!r}") from None
