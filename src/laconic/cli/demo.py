"""``laconic demo``: find the best reader of digits that fits a chip, and write it as C."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from laconic.cli.console import make_console, save_plot, say
from laconic.cli.files import check_files, why_unsaved
from laconic.cli.frontier import frontier_table
from laconic.cli.output import INTERRUPTED, SEED
from laconic.data.errors import UserError

SUMMARY = "Find the best reader of handwritten digits that fits a chip, and write it as C."
CHIP = "cortex-m0"


def add_arguments(demo: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    demo.add_argument(
        "--max-bytes", type=int, default=2048, metavar="N",
        help="most bytes of the model on the chip (default: %(default)s)",
    )  # fmt: skip
    demo.add_argument(
        "--max-atoms", type=int, default=100, metavar="N",
        help="largest number of atoms (default: %(default)s)",
    )  # fmt: skip
    demo.add_argument(
        "--out", default="demo", metavar="DIR",
        help="folder for the results (default: %(default)s)",
    )  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Search for a model, show the frontier, save the model, and read digits with its C code."""
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    from laconic.compact.classifier import CompactClassifier
    from laconic.model.predictor import Predictor

    console, folder = make_console(), Path(args.out)
    file, header, picture = (folder / name for name in ("model.laconic", "digits.h", "pareto.png"))
    folder.mkdir(parents=True, exist_ok=True)
    outputs = {"the model": file, "the header": header, "the picture": picture}
    check_files({what: str(path) for what, path in outputs.items()}, {})
    images, labels = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(
        images.astype(np.uint8), labels, test_size=0.25, random_state=SEED, stratify=labels
    )
    console.print(
        f"\n[bold]The best reader of handwritten digits in {args.max_bytes:,} bytes[/bold]\n"
        f"{len(X)} digits of 8 x 8 pixels to learn from, {len(X_test)} to test on. The model runs "
        f"on a Cortex-M0.\n"
    )
    model = CompactClassifier(
        args.max_bytes, chip=CHIP, alphas=["auto"], bits=8, max_atoms=args.max_atoms,
        random_state=SEED, verbose=1,
    ).fit(X, y)  # fmt: skip
    console.print(frontier_table(model, X_test, y_test))
    console.print(model.why_ + "\n", markup=False)

    if unsaved := why_unsaved(str(file), lambda: model.predictor_.save(file)):
        raise UserError(unsaved)
    if not np.array_equal(Predictor.load(file).scores(X_test), model.predictor_.scores(X_test)):
        raise RuntimeError("the reloaded model does not predict what the saved one does")
    say(console, f"saved  {file}", "the reloaded model predicts the same")
    exported = model.predictor_.to_c("digits")
    if unsaved := why_unsaved(str(header), lambda: exported.save(header)):
        raise UserError(unsaved)
    say(console, f"saved  {header}", f"C code, {exported.table_bytes:,} bytes of tables")
    try:
        save_plot(model, str(picture), X_test, y_test)
        say(console, f"saved  {picture}", "error against bytes")
    except UserError as error:
        say(console, "no picture", str(error))
    console.print(f"\n{_read(exported, X_test, y_test)}", markup=False)
    if model.checked_.flash is not None:
        flash, compiler = model.checked_.flash, model.checked_.compiler
        console.print(f"On a Cortex-M0 it takes {flash:,} bytes ({compiler}).", markup=False)

    console.print("\n[bold]Next[/bold]")
    command = "laconic" if shutil.which("laconic") else os.path.relpath(sys.argv[0])
    say(console, f"{command} describe {file}", "show every weight")
    own = f"{command} fit TABLE.csv --target COLUMN --max-bytes 4096"
    say(console, own, "do the same with your own table")
    say(console, "laconic.CompactClassifier(4096).fit(X, y)", "do the same in Python")
    return INTERRUPTED if model.status_ == "interrupted" else 0


def _read(header: Any, X: Any, y: Any) -> str:
    """Read digits with the compiled header, and say how many are right."""
    try:
        compiled = header.compile()
    except FileNotFoundError as error:
        return f"The C code was not run: {error}."
    right = int((compiled.predict(X) == y).sum())
    return f"The compiled digits.h reads {right} of {len(y)} test digits right."
