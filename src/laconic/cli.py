"""The ``laconic`` command: a demonstration, and models from tables without writing Python.

Only argparse is imported up front; every command imports what it needs.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from laconic import __version__, cli_fit, cli_holes
from laconic.cli_dates import add_dates
from laconic.cli_numbers import add_decimal
from laconic.cli_output import NAME as STANDARD_OUTPUT
from laconic.cli_output import standard_output
from laconic.cli_tables import rows_for, training_table
from laconic.look.console import (
    atom_table,
    majority_line,
    make_console,
    pixel_map,
    save_plot,
    say,
    size_table,
)
from laconic.tables import (
    UserError,
    check_files,
    check_name,
    check_picture,
    check_table_name,
    load_predictor,
    need,
    why_unsaved,
    write_table,
)

INTERRUPTED = 130  # 128 + SIGINT, what shells report
SEED = 0


class _Parser(argparse.ArgumentParser):
    """Reports a wrong command line the way every other user error is reported."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"laconic: error: {message} (see {self.prog} --help)\n")


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    try:
        with standard_output():
            return _run(argv)
    except KeyboardInterrupt:
        _tell("laconic: interrupted")
        return INTERRUPTED
    except OSError as error:
        if isinstance(error, BrokenPipeError) and error.filename == STANDARD_OUTPUT:
            return 1  # the reader went away (``laconic predict … | head``): not an error
        named = error.filename is not None and error.strerror is not None
        return _fail(f"{error.filename}: {error.strerror}" if named else str(error))
    except (UserError, ValueError, ImportError) as error:
        return _fail(str(error))


def _run(argv: list[str] | None) -> int:
    parser = _build_parser()
    args = parser.parse_args(argv)
    if args.command is None:
        parser.print_help()
        return 2
    with _plain_warnings():
        return int(args.command(args))


def _fail(message: str) -> int:
    lines = message.strip().splitlines() or ["unknown error"]
    _tell(f"laconic: error: {lines[0]}")
    return 2


def _tell(line: str) -> None:
    """One line for people; where nobody can be told, that is no reason to stop."""
    with suppress(OSError):
        print(line, file=sys.stderr)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings as one line without the place in the code."""

    def show(message: Any, *_: Any, **__: Any) -> None:
        _tell(f"laconic: warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="laconic",
        description="Compact predictors: few shared features, few weak learners, few pieces.",
    )
    parser.add_argument("--version", action="version", version=f"laconic {__version__}")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    def add(name: str, command: Any, text: str) -> argparse.ArgumentParser:
        new = commands.add_parser(name, help=text, description=text)
        new.set_defaults(command=command)
        return new

    demo = add("demo", _demo, "Learn to read handwritten digits from a few pixels.")
    demo.add_argument(
        "--max-atoms", type=int, default=20, metavar="N", help="largest size (%(default)s)"
    )
    demo.add_argument(
        "--out", default="demo", metavar="DIR", help="folder for the results (%(default)s)"
    )

    fit = add("fit", _fit, "Fit a classifier to a table and save it.")
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
    cli_fit.add_arguments(fit)
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

    predict = add("predict", _predict, "Predict the rows of a table with a saved model.")
    predict.add_argument("model", metavar="MODEL", help="file that fit or Predictor.save wrote")
    predict.add_argument("table", metavar="TABLE", help="CSV or parquet file with a header")
    add_decimal(predict)
    add_dates(predict)
    predict.add_argument("--proba", action="store_true", help="add the class probabilities")
    predict.add_argument(
        "--keep", action="append", default=[], metavar="COLUMN",
        help="column to copy to the output, an identifier say; may be repeated",
    )  # fmt: skip
    predict.add_argument(
        "--out",
        metavar="FILE",
        help="file to write: .csv, .tsv, .parquet or .xlsx (CSV to standard output)",
    )

    cli_holes.add_arguments(add("holes", cli_holes.run, cli_holes.SUMMARY))

    describe = add("describe", _describe, "Show a saved model: every atom and its weights.")
    describe.add_argument("model", metavar="MODEL", help="file that fit or Predictor.save wrote")
    return parser


# -- commands ----------------------------------------------------------------------------------


def _demo(args: argparse.Namespace) -> int:
    """Train on digits, show accuracy against size and the pixels that are read, save the model."""
    import numpy as np
    from rich.table import Table
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    from laconic.model.predictor import Predictor
    from laconic.share import ShareBoostClassifier

    console = make_console()
    file, picture = Path(args.out) / "model.laconic", str(Path(args.out) / "path.png")
    file.parent.mkdir(parents=True, exist_ok=True)
    check_files({"the model": str(file), "the picture": picture}, {})
    digits = load_digits()
    X, X_test, y, y_test = train_test_split(
        digits.data, digits.target, test_size=0.25, random_state=SEED, stratify=digits.target
    )
    console.print(
        f"\n[bold]Reading handwritten digits from few of {X.shape[1]} pixels[/bold]\n"
        f"{len(X)} digits to learn from, {len(X_test)} to test on, {len(np.unique(y))} classes.\n"
    )
    model = ShareBoostClassifier(args.max_atoms, pool="columns", verbose=1).fit(X, y)
    console.print(size_table(model, X_test, y_test))
    console.print(majority_line(model, y_test), markup=False)

    used = model.predictor_
    named = Predictor(
        used.map, used.weights, used.intercept, used.classes, used.loss, used.widths,
        used.n_features, digits.feature_names,
    )  # fmt: skip
    side_by_side = Table.grid(padding=(0, 4))
    side_by_side.add_row(
        atom_table(named, model.path_[model.n_atoms_].gains),
        pixel_map([atom.feature for atom in model.atoms_], digits.images.shape[1:]),
    )
    console.print(side_by_side)

    if unsaved := why_unsaved(str(file), lambda: named.save(file)):
        raise UserError(unsaved)
    same = np.array_equal(Predictor.load(file).scores(X_test), used.scores(X_test))
    if not same:
        raise RuntimeError("the reloaded model does not predict what the saved one does")
    say(console, f"saved  {file}", "reloaded, it predicts the same")
    try:
        save_plot(model, picture, X_test, y_test)
        say(console, f"saved  {picture}", "loss and error at every size")
    except UserError as error:
        say(console, "no picture", str(error))

    console.print("\n[bold]Next[/bold]")
    say(console, f"laconic describe {file}", "every weight on one page")
    say(console, "laconic fit TABLE.csv --target COLUMN", "the same for a table of yours")
    say(console, "laconic.ShareBoostClassifier().fit(X, y)", "the same from Python")
    return INTERRUPTED if model.status_ == "interrupted" else 0


def _fit(args: argparse.Namespace) -> int:
    """Fit, show the sizes and the card, save the predictor."""
    from sklearn.model_selection import train_test_split

    from laconic.doubts import told_already
    from laconic.look.card import card, count

    cli_fit.settle(args)
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
        model = cli_fit.make_model(args, X, y, SEED).fit(X, y)
    # Before anything is shown: whoever reads it may go away.
    unsaved = [why_unsaved(args.out, lambda: model.predictor_.save(args.out))]
    if args.plot:
        unsaved.append(why_unsaved(args.plot, lambda: save_plot(model, args.plot, X_test, y_test)))

    console = make_console()
    console.print(size_table(model, X_test, y_test))
    console.print(majority_line(model, y_test), markup=False)
    if args.cv or args.early_stopping:
        how = f"{args.cv}-fold cross-validation" if args.cv else "the loss on held-out rows"
        at = f" at a price of {model.price:g}," if args.method == "totalq" else ""
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


def _predict(args: argparse.Namespace) -> int:
    """Write the predicted label of every row, and the class probabilities where asked for."""
    check_files({"--out": args.out}, {"the model": args.model, "the table": args.table})
    if args.out:
        check_table_name(args.out)
    if not args.out and sys.stdout is None:
        raise UserError("standard output is closed; name a file with --out")
    predictor = load_predictor(args.model)
    if args.proba and not hasattr(predictor, "predict_proba"):
        raise UserError(f"{args.model} has scores but no probabilities; leave --proba out")
    made = ["prediction", *(f"p_{c}" for c in predictor.classes if args.proba)]
    if taken := set(made) & set(args.keep):
        raise UserError(f"--keep {min(taken)!r} would be overwritten; rename that column")
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


def _describe(args: argparse.Namespace) -> int:
    """Print the card of a saved predictor."""
    from laconic.look.card import card

    predictor = load_predictor(args.model)
    make_console().out(card(predictor), highlight=False)
    return 0
