"""``laconic demo``: learn to read digits from a few of their pixels."""

from __future__ import annotations

import argparse
from pathlib import Path

from laconic.cli.console import (
    atom_table,
    majority_line,
    make_console,
    pixel_map,
    save_plot,
    say,
    size_table,
)
from laconic.cli.files import check_files, why_unsaved
from laconic.cli.output import INTERRUPTED, SEED
from laconic.data.errors import UserError

SUMMARY = "Learn to read handwritten digits from a few pixels."


def add_arguments(demo: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    demo.add_argument(
        "--max-atoms", type=int, default=20, metavar="N",
        help="largest number of pixels (default: %(default)s)",
    )  # fmt: skip
    demo.add_argument(
        "--out", default="demo", metavar="DIR",
        help="folder for the results (default: %(default)s)",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Fit digits, show the accuracy at each size and the chosen pixels, and save the model."""
    import numpy as np
    from rich.table import Table
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    from laconic.estimators.share import ShareBoostClassifier
    from laconic.model.predictor import Predictor

    console = make_console()
    file, picture = Path(args.out) / "model.laconic", str(Path(args.out) / "path.png")
    file.parent.mkdir(parents=True, exist_ok=True)
    check_files({"the model": str(file), "the picture": picture}, {})
    digits = load_digits()
    X, X_test, y, y_test = train_test_split(
        digits.data, digits.target, test_size=0.25, random_state=SEED, stratify=digits.target
    )
    console.print(
        f"\n[bold]Reading handwritten digits from a few of {X.shape[1]} pixels[/bold]\n"
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
    say(console, f"saved  {file}", "the reloaded model predicts the same")
    try:
        save_plot(model, picture, X_test, y_test)
        say(console, f"saved  {picture}", "loss and error at every size")
    except UserError as error:
        say(console, "no picture", str(error))

    console.print("\n[bold]Next[/bold]")
    say(console, f"laconic describe {file}", "show every weight")
    say(console, "laconic fit TABLE.csv --target COLUMN", "do the same with your own table")
    say(console, "laconic.ShareBoostClassifier().fit(X, y)", "do the same in Python")
    return INTERRUPTED if model.status_ == "interrupted" else 0
