"""The ``laconic`` command: a demonstration, and models from tables without writing Python.

Only argparse is imported up front; every command imports what it needs.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from laconic import __version__

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from laconic.model.predictor import Predictor
    from laconic.share import ShareBoostClassifier

# Spelled out so that --help needs no heavy import; a test compares them with the library's own.
POOLS = ("columns", "stumps", "products")
LOSSES = ("margin", "log")
RULES = ("gradient", "projection", "step", "column", "refit")

INTERRUPTED = 130  # 128 + SIGINT, what shells report
SEED = 0


class UserError(Exception):
    """Something the user can put right; its message is all they need to see."""


class _Parser(argparse.ArgumentParser):
    """Reports a wrong command line the way every other user error is reported."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"laconic: error: {message} (see {self.prog} --help)\n")


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = _build_parser()
    args = parser.parse_args(argv)
    if args.command is None:
        parser.print_help()
        return 2
    try:
        with _plain_warnings():
            return int(args.command(args))
    except KeyboardInterrupt:
        print("laconic: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader went away (``laconic predict … | head``): not an error. Python would complain
        # at exit when it flushes what is left, so that goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        named = error.filename is not None and error.strerror is not None
        return _fail(f"{error.filename}: {error.strerror}" if named else str(error))
    except (UserError, ValueError, ImportError) as error:
        return _fail(str(error))


def _fail(message: str) -> int:
    lines = message.strip().splitlines() or ["unknown error"]
    print(f"laconic: error: {lines[0]}", file=sys.stderr)
    return 2


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings as one line without the place in the code."""

    def show(message: Any, *_: Any, **__: Any) -> None:
        print(f"laconic: warning: {message}", file=sys.stderr)

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
        "--max-atoms", type=int, default=20, metavar="N", help="largest size (%(default)s)"
    )
    fit.add_argument(
        "--pool", choices=POOLS, default="columns", help="where atoms come from (%(default)s)"
    )
    fit.add_argument(
        "--loss", choices=LOSSES, default="margin", help="what is minimised (%(default)s)"
    )
    fit.add_argument(
        "--rule", choices=RULES, default="gradient", help="how they are chosen (%(default)s)"
    )
    fit.add_argument(
        "--alpha", type=float, default=1e-6, help="strength of the penalty (%(default)s)"
    )
    fit.add_argument("--refine", action="store_true", help="improve every size by swapping atoms")
    size = fit.add_mutually_exclusive_group()
    size.add_argument(
        "--cv", type=int, metavar="K", help="choose the size by K-fold cross-validation"
    )
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
    predict.add_argument("--proba", action="store_true", help="add the class probabilities")
    predict.add_argument("--out", metavar="FILE", help="CSV to write; standard output if not given")

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

    console = _console()
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    digits = load_digits()
    X, X_test, y, y_test = train_test_split(
        digits.data, digits.target, test_size=0.25, random_state=SEED, stratify=digits.target
    )
    console.print(
        f"\n[bold]Reading handwritten digits from few of {X.shape[1]} pixels[/bold]\n"
        f"{len(X)} digits to learn from, {len(X_test)} to test on, {len(np.unique(y))} classes.\n"
    )
    model = ShareBoostClassifier(args.max_atoms, pool="columns", verbose=1).fit(X, y)
    console.print(_size_table(model, X_test, y_test))

    used = model.predictor_
    named = Predictor(
        used.map, used.weights, used.intercept, used.classes, used.loss, used.n_atoms,
        used.n_features, digits.feature_names,
    )  # fmt: skip
    side_by_side = Table.grid(padding=(0, 4))
    side_by_side.add_row(
        _atom_table(named, model.path_[model.n_atoms_].gains),
        _pixel_map([atom.feature for atom in model.atoms_], digits.images.shape[1:]),
    )
    console.print(side_by_side)

    file = out / "model.laconic"
    named.save(file)
    same = np.array_equal(Predictor.load(file).scores(X_test), used.scores(X_test))
    if not same:
        raise RuntimeError("the reloaded model does not predict what the saved one does")
    _say(console, f"saved  {file}", "reloaded, it predicts the same")
    try:
        _save_plot(model, out / "path.png", X_test, y_test)
        _say(console, f"saved  {out / 'path.png'}", "loss and error at every size")
    except UserError as error:
        _say(console, "no picture", str(error))

    console.print("\n[bold]Next[/bold]")
    _say(console, f"laconic describe {file}", "every weight on one page")
    _say(console, "laconic fit TABLE.csv --target COLUMN", "the same for a table of yours")
    _say(console, "laconic.ShareBoostClassifier().fit(X, y)", "the same from Python")
    return INTERRUPTED if model.status_ == "interrupted" else 0


def _fit(args: argparse.Namespace) -> int:
    """Fit, show the sizes and the card, save the predictor."""
    from sklearn.model_selection import train_test_split

    from laconic.look.card import card, count
    from laconic.share import ShareBoostClassifier

    _check_writable(args.out, args.plot, args.checkpoint)
    if args.plot:
        _need("matplotlib", "plot")
    if not 0.0 <= args.test_fraction < 1.0:
        raise UserError(f"--test-fraction must be at least 0 and below 1, not {args.test_fraction}")
    X, y = _training_table(args)
    X_test = y_test = None
    if args.test_fraction:
        X, X_test, y, y_test = train_test_split(
            X, y, test_size=args.test_fraction, random_state=SEED, stratify=y
        )
    model = ShareBoostClassifier(
        args.max_atoms,
        pool=args.pool,
        loss=args.loss,
        rule=args.rule,
        alpha=args.alpha,
        refine=args.refine,
        cv=args.cv,
        early_stopping=args.early_stopping,
        checkpoint=args.checkpoint,
        random_state=SEED,
        verbose=1,
    ).fit(X, y)

    console = _console()
    console.print(_size_table(model, X_test, y_test))
    if args.cv or args.early_stopping:
        how = f"{args.cv}-fold cross-validation" if args.cv else "the loss on held-out rows"
        console.print(f"{count(model.n_atoms_, 'atom')} chosen by {how}.\n")
    console.out(card(model) + "\n", highlight=False)
    model.predictor_.save(args.out)
    _say(console, f"saved  {args.out}", f"laconic predict {args.out} TABLE.csv")
    if args.plot:
        _save_plot(model, Path(args.plot), X_test, y_test)
        _say(console, f"saved  {args.plot}", "the picture of the path")
    return INTERRUPTED if model.status_ == "interrupted" else 0


def _predict(args: argparse.Namespace) -> int:
    """Write the predicted label of every row, and the class probabilities where asked for."""
    predictor = _load(args.model)
    X = _rows_for(predictor, args.table)
    out: dict[str, np.ndarray] = {"prediction": predictor.predict(X)}
    if args.proba:
        probabilities = predictor.predict_proba(X)
        out |= {f"p_{c}": p for c, p in zip(predictor.classes, probabilities.T, strict=True)}
    frame = _need("pandas", "data").DataFrame(out)
    frame.to_csv(args.out or sys.stdout, index=False, float_format="%.6g")
    sys.stdout.flush()
    return 0


def _describe(args: argparse.Namespace) -> int:
    """Print the card of a saved predictor."""
    from laconic.look.card import card

    predictor = _load(args.model)
    _console().out(card(predictor), highlight=False)
    return 0


# -- models and tables -------------------------------------------------------------------------


def _need(module: str, extra: str) -> Any:
    """Import what an extra of the package brings, or say how to get it."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError as error:
        raise UserError(f'this needs {module}: pip install "laconic[{extra}]"') from error


def _check_writable(*files: str | None) -> None:
    """Before a long fit, not after it: is there a folder for each file to be written?"""
    for file in files:
        if file and not Path(file).resolve().parent.is_dir():
            raise UserError(f"{file}: there is no folder {Path(file).parent}")


def _load(file: str) -> Predictor:
    from laconic.model.predictor import Predictor

    try:
        return Predictor.load(file)
    except (KeyError, TypeError) as error:
        raise UserError(f"{file} is not a sound Laconic model: {error!r}") from error


def _read_table(file: str, text: Iterable[str] = ()) -> Any:
    """A data frame with string column names; ``text`` names columns to read as they are spelled."""
    pandas = _need("pandas", "data")
    if file.endswith((".parquet", ".pq")):
        try:
            frame = pandas.read_parquet(file)
        except ImportError as error:
            raise UserError("reading parquet needs pyarrow: pip install pyarrow") from error
    else:
        tab = file.endswith((".tsv", ".tsv.gz"))
        # Reading a column in one go keeps numbers and text in it from getting different types.
        frame = pandas.read_csv(
            file, sep="\t" if tab else ",", low_memory=False, dtype=dict.fromkeys(text, str)
        )
    frame.columns = [str(name) for name in frame.columns]
    if len(frame) == 0:
        raise UserError(f"{file} has no rows")
    return frame


def _present(frame: Any, names: Iterable[str], file: str) -> None:
    missing = [repr(n) for n in names if n not in frame.columns]
    if missing:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if missing[5:] else "")
        raise UserError(f"{file} has no column {shown}")


def _training_table(args: argparse.Namespace) -> tuple[Any, np.ndarray]:
    """Features and labels, checked so that what is wrong is said by the names of columns."""
    import numpy as np

    pandas = _need("pandas", "data")
    frame = _read_table(args.table)
    _present(frame, [args.target, *args.ignore], args.table)
    labels = frame[args.target]
    if unlabelled := int(labels.isna().sum()):
        raise UserError(f"{unlabelled} rows have no label in column {args.target!r}")
    stumps = args.pool == "stumps"
    X: dict[str, Any] = {}
    for name, column in frame.drop(columns=[args.target, *args.ignore]).items():
        if not _is_text(column):
            X[name] = _as_numbers(column, name, stumps, "; --pool stumps accepts missing values")
        elif stumps:
            X[name] = column
        else:
            raise UserError(
                f"column {name!r} holds text, which --pool {args.pool} cannot use; "
                "try --pool stumps, or leave it out with --ignore"
            )
    if not X:
        raise UserError(f"{args.table} has no column to learn from")
    # Through a list, labels get the plain type they share whatever pandas kept them in.
    return pandas.DataFrame(X), np.asarray(labels.tolist())


def _rows_for(predictor: Predictor, file: str) -> np.ndarray:
    """The table's rows as the predictor wants them; only the columns that it reads are needed."""
    import numpy as np

    names = predictor.feature_names
    reads = predictor.map.features().tolist()
    if names is None:
        frame = _read_table(file)
        if frame.shape[1] != predictor.n_features:
            raise UserError(
                f"the model has no feature names, so {file} must have its "
                f"{predictor.n_features} columns in order, not {frame.shape[1]}"
            )
        names = list(frame.columns)
    else:
        frame = _read_table(file, [names[f] for f in predictor.categories])
        _present(frame, [names[f] for f in reads], file)
    # Column by column in memory: columns that are not read are never touched.
    X = np.zeros((len(frame), predictor.n_features), order="F")
    stumps = predictor.map.kind == "stumps"
    for f in reads:
        column = frame[names[f]]
        if f in predictor.categories:
            code = {label: float(i) for i, label in enumerate(predictor.categories[f])}
            X[:, f] = [code.get(str(value), np.nan) for value in column]
        else:
            X[:, f] = _as_numbers(column, names[f], stumps)
    return X


def _is_text(column: Any) -> bool:
    """Whether the column is categorical; truth values with gaps are numbers with gaps."""
    kind = str(column.dtype)
    if kind != "object":
        return kind == "category" or kind.startswith("str")
    return not all(isinstance(value, bool) for value in column.dropna())


def _as_numbers(column: Any, name: str, missing: bool, hint: str = "") -> np.ndarray:
    """Values as floats; an error says which column cannot be read and where it first goes wrong."""
    import numpy as np

    if column.dtype.kind in "mM":
        raise UserError(f"column {name!r} holds times; turn them into numbers first")
    try:
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise UserError(f"column {name!r} must hold numbers: {error}") from error
    bad = np.isinf(values) if missing else ~np.isfinite(values)
    if bad.any():
        row = int(bad.argmax())
        what = f"a missing value{{}}{hint}" if np.isnan(values[row]) else "an infinite value{}"
        raise UserError(f"column {name!r} has " + what.format(f" in row {row + 1}"))
    return values


# -- what is shown -----------------------------------------------------------------------------


def _console() -> Console:
    """Standard output for people: a terminal without the table's lines shows question marks."""
    from rich.console import Console

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")
    return Console(highlight=False)


def _say(console: Console, what: str, why: str) -> None:
    from rich.text import Text

    console.print(Text(f"  {what:<42} ") + Text(why, style="dim"), soft_wrap=True)


def _save_plot(model: ShareBoostClassifier, file: Path, X: Any, y: Any) -> None:
    """Write the picture of the path; the file's ending says which kind of picture."""
    import numpy as np

    _need("matplotlib", "plot").use("Agg")
    from matplotlib.pyplot import close

    from laconic.look.plots import plot_path

    figure = np.atleast_1d(plot_path(model, X, y, name="test"))[0].figure
    figure.savefig(file, dpi=160)
    close(figure)


def _shown_sizes(model: ShareBoostClassifier) -> list[int]:
    """Sizes worth a line: close together where models are small, and those that matter anyway."""
    sizes = model.path_.sizes.tolist()
    ladder = {n * 10**power for n in (1, 2, 3, 5, 8) for power in range(6)} | {15}
    return [n for n in sizes if n in ladder or n in (model.n_atoms_, sizes[-1])]


def _size_table(model: ShareBoostClassifier, X_test: Any, y_test: Any) -> Table:
    """Every size's loss, accuracy where it is known, and cost."""
    from rich import box
    from rich.table import Table

    sizes = model.path_.sizes.tolist()
    columns: dict[str, Any] = {
        "atoms": lambda n, m: str(n),
        "training\nloss": lambda n, m: f"{m.path_[n].loss:.4f}",
    }
    if hasattr(model, "validation_losses_"):
        held = dict(zip(sizes, model.validation_losses_, strict=True))
        columns["held-out\nloss"] = lambda n, m: f"{held[n]:.4f}"
    if hasattr(model, "cv_scores_"):
        mean = dict(enumerate(model.cv_scores_.mean(axis=0), start=sizes[0]))
        columns["cv\naccuracy"] = lambda n, m: f"{100 * mean[n]:.1f} %" if n in mean else ""
    if X_test is not None:
        columns["test\naccuracy"] = lambda n, m: f"{100 * m.score(X_test, y_test):.1f} %"
    columns |= {
        "features": lambda n, m: str(m.predictor_.cost().features),
        "bytes": lambda n, m: str(m.predictor_.cost().bytes),
        "seconds": lambda n, m: f"{m.path_[n].seconds:.2f}",
    }
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in [*columns, ""]:
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for n in _shown_sizes(model):
        used = n == model.n_atoms_
        cells = [cell(n, model.at(n)) for cell in columns.values()]
        table.add_row(*cells, "in use" if used else "", style="bold" if used else "")
    return table


def _atom_table(predictor: Predictor, gains: tuple[float, ...]) -> Table:
    """The atoms in the order they came, their shares, and the classes they say most about."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from laconic.look.card import shares, shorten

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name, side in [("", "right"), ("atom", "left"), ("share", "right"), ("", "left"),
                       ("for", "left"), ("against", "left")]:  # fmt: skip
        table.add_column(name, justify=side, no_wrap=True)  # type: ignore[arg-type]
    percent = shares(gains)
    rows = zip(predictor.names(), percent, predictor.weights, strict=True)
    for place, (name, share, weights) in enumerate(rows, start=1):
        table.add_row(
            str(place),
            Text(shorten(name, 24)),
            f"{share:.1f} %",
            Text(_bar(share / max(percent.max(), 0.1), 8), style="blue"),
            Text(shorten(predictor.classes[weights.argmax()], 12)),
            Text(shorten(predictor.classes[weights.argmin()], 12)),
        )
    return table


def _bar(part: float, cells: int) -> str:
    """A bar of at most ``cells`` characters, in eighths of one; never quite nothing."""
    full, rest = divmod(max(1, round(8 * cells * part)), 8)
    return "█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")


def _pixel_map(pixels: list[int], shape: tuple[int, ...]) -> Text:
    """The picture with the number of every chosen pixel in its place, the first ones brightest."""
    from rich.text import Text

    text = Text("\nthe pixels it reads,\nin the order chosen\n\n")
    place = {pixel: i for i, pixel in enumerate(pixels)}
    for pixel in range(shape[0] * shape[1]):
        if pixel in place:
            fade = round(215 * place[pixel] / max(len(pixels), 1))
            style = f"bold black on rgb({fade},{120 + fade // 2},255)"
            text.append(f"{place[pixel] + 1:^3}", style=style)
        else:
            text.append(f"{'·':^3}", style="dim")
        if pixel % shape[1] == shape[1] - 1:
            text.append("\n")
    return text
