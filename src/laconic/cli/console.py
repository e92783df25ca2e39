"""What the command line shows: the sizes of a path, the atoms of a model, the pixels it reads."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from laconic.cli.files import need, picture_kind
from laconic.files.whole import whole_file

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from laconic.estimators.share import ShareBoostClassifier


def make_console() -> Console:
    """Return a console on standard output.

    A terminal that lacks the lines of a table shows question marks instead.
    """
    from rich.console import Console

    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.flush()  # what a bar left there, so that an error names standard output
        sys.stdout.reconfigure(errors="replace")
    return Console(highlight=False)


def say(console: Console, what: str, why: str) -> None:
    """Print one line: what, and then why in a lighter tone."""
    from rich.text import Text

    console.print(Text(f"  {what:<42} ") + Text(why, style="dim"), soft_wrap=True)


def save_plot(model: Any, file: str, X: Any, y: Any) -> None:
    """Write the picture of a path, or of the frontier of a search.

    The ending of the file's name says which kind of picture.
    """
    from io import BytesIO

    import numpy as np

    need("matplotlib", "plot").use("Agg")
    from matplotlib.pyplot import close

    from laconic.look.plots import plot_path

    search = hasattr(model, "plot_pareto")
    axes = model.plot_pareto() if search else plot_path(model, X, y, name="test")
    figure = np.atleast_1d(axes)[0].figure
    picture = BytesIO()  # in memory, as some writers hide why a disk refuses a file
    figure.savefig(picture, dpi=160, format=picture_kind(file))
    close(figure)
    with whole_file(file) as stream:
        stream.write(picture.getvalue())


def _shown_sizes(model: ShareBoostClassifier) -> list[int]:
    """Return the sizes to show: many small ones, few large ones, the one in use and the last."""
    sizes = model.path_.sizes.tolist()
    ladder = {n * 10**power for n in (1, 2, 3, 5, 8) for power in range(6)} | {15}
    return [n for n in sizes if n in ladder or n in (model.n_atoms_, sizes[-1])]


def size_table(model: ShareBoostClassifier, X_test: Any, y_test: Any) -> Table:
    """Return a table of sizes with their loss, their cost, and the scores that are known."""
    from rich import box
    from rich.table import Table

    from laconic.look.measures import measures

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
        if model.scoring is None:
            columns["cv\naccuracy"] = lambda n, m: f"{100 * mean[n]:.1f} %" if n in mean else ""
        else:
            columns[f"cv\n{scoring_name(model)}"] = lambda n, m: (
                f"{mean[n]:.4f}" if n in mean else ""
            )
    if X_test is not None:
        columns["test\naccuracy"] = lambda n, m: f"{100 * m.score(X_test, y_test):.1f} %"
        for name in measures(model, X_test, y_test):
            columns[f"test\n{name}"] = lambda n, m, name=name: (
                f"{measures(m, X_test, y_test)[name]:.3f}"
            )
    columns["features"] = lambda n, m: str(m.path_[n].predictor_cost.features)
    if model.max_bytes is None:
        columns["bytes"] = lambda n, m: str(m.path_[n].predictor_cost.bytes)
    else:
        columns[f"bytes on\n{model.chip.chip}"] = lambda n, m: str(m.path_[n].footprint)
    columns["seconds"] = lambda n, m: f"{m.path_[n].seconds:.2f}"
    narrow = (0, 0) if len(columns) > 7 else (0, 1)  # to fit into the 80 characters of a terminal
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", padding=narrow)
    for name in [*columns, ""]:
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for n in _shown_sizes(model):
        used = n == model.n_atoms_
        cells = [cell(n, model.at(n)) for cell in columns.values()]
        table.add_row(*cells, "in use" if used else "", style="bold" if used else "")
    return table


def majority_line(model: ShareBoostClassifier, y_test: Any) -> str:
    """Say how often the commonest label alone would be right."""
    from laconic.look.measures import majority, majority_rate

    where = "training rows" if y_test is None else "test rows"
    rate = 100 * majority_rate(model, y_test)
    return f"Always predicting {str(majority(model))!r} is right on {rate:.1f} % of the {where}.\n"


def scoring_name(model: Any) -> str:
    """Return the name of the cross-validation score."""
    return model.scoring if isinstance(model.scoring, str) else "score"
