"""The holes of a fitted classifier: a table, a plot, and a progress bar."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from laconic.look.bars import progress_bar
from laconic.look.numbers import percent
from laconic.look.quiet import quiet
from laconic.model.card import GAP, count, shorten
from laconic.notebook import MOST_ROWS, cell, sentences
from laconic.notebook import table as html_table

# Significant digits of an error.
DIGITS = 3


def holes_card(model: Any, width: int = 88) -> str:
    """Return the holes of a fitted `HolePunchingClassifier`, one per line, with a headline.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.linear_model import LogisticRegression
    >>> from laconic import HolePunchingClassifier
    >>> X, y = make_moons(300, noise=0.1, random_state=0)
    >>> print(holes_card(HolePunchingClassifier(LogisticRegression(), 2).fit(X, y)))
    ... # doctest: +ELLIPSIS
    LogisticRegression with 2 holes · 2 features · 2 classes · training error 12.7 % → ...
    """
    lines = [_headline(model)]
    if not model.holes_:
        return "\n".join([*lines, "", f"No hole: {model.status_}."])
    table = _table(model)
    widths = [max(len(line[c]) for line in table) for c in range(len(table[0]))]
    for number, line in enumerate(table):
        *numbers, inside = (c.rjust(w) for c, w in zip(line, widths, strict=True))
        lines += [""] * (number == 0) + [GAP.join([*numbers, inside.strip()])]
        if number == 0:
            lines.append("─" * len(GAP.join("x" * w for w in widths)))
    return "\n".join([*lines, "", textwrap.fill(_reading(model), width)])


def html_holes(model: Any, most: int = MOST_ROWS) -> list[str]:
    """Return the same as parts of HTML, for notebooks, with at most ``most`` holes."""
    out = [sentences(_headline(model), strong=True)]
    if not model.holes_:
        return [*out, sentences(f"No hole: {model.status_}.")]
    heads, *lines = _table(model)

    def cells(line: list[str], tag: str) -> list[str]:
        return [*(cell(text, tag=tag) for text in line[:-1]), cell(line[-1], "name", tag)]

    out.append(
        html_table(cells(heads, "th"), ["".join(cells(line, "td")) for line in lines[:most]])
    )
    if len(lines) > most:
        out.append(sentences(f"… and {len(lines) - most:,} more holes."))
    return [*out, sentences(_reading(model))]


def _headline(model: Any) -> str:
    errors = model.errors_[: model.n_holes_ + 1]
    change = f"training error {percent(errors[0], DIGITS)}"
    if len(errors) > 1:
        change += f" → {percent(errors[-1], DIGITS)}"
    outside, punched = type(model.estimator_).__name__, len(model.errors_) - 1
    of = f" of {punched} punched" if model.n_holes_ < punched else ""
    return (
        f"{outside} with {count(model.n_holes_, 'hole')}{of} · "
        f"{count(model.n_features_in_, 'feature')} · "
        f"{count(len(model.classes_), 'class')} · {change}"
    )


def _table(model: Any) -> list[list[str]]:
    """Return the headings, and the cells of every hole."""
    heads = ["hole", "radius", "rows", "wrong before", "after", "inside"]
    if any(hole.held for hole in model.holes_):
        heads[5:5] = ["held-out rows", "before", "after"]
    table = [heads]
    for number, hole in enumerate(model.holes_, start=1):
        cells = [
            str(number),
            f"{hole.radius:.4g}",
            str(hole.n_rows),
            percent(hole.error_before, DIGITS),
            percent(hole.error_after, DIGITS),
        ]
        if hole.held is not None:
            cells += [str(hole.held[0]), *(percent(error, DIGITS) for error in hole.held[1:])]
        table.append([*cells, _inside(hole)])
    return table


def _reading(model: Any) -> str:
    return (
        "A hole is a ball around a training row. The newest hole that contains a row decides it, "
        "and the classifier outside decides the others. Errors are of the rows in the hole when it "
        f"was punched. How the fit ended: {model.status_}."
    )


def _inside(hole: Any) -> str:
    if hole.kind == "fitted":
        return type(hole.model).__name__
    return f"always {shorten(hole.model.classes_[np.argmax(hole.model.class_prior_)], 20)}"


def plot_holes(model: Any, X: Any = None, y: Any = None, ax: Any = None) -> Any:
    """Plot errors against the number of holes: training, held-out, and on (X, y) if given.

    Parameters
    ----------
    model : HolePunchingClassifier
        Fitted.
    X, y : array-like, default=None
        Rows and labels to measure the error of every number of holes on.
    ax : Axes, default=None
        Where to draw. The default is a new figure.

    Returns
    -------
    Axes
    """
    from laconic.look import plots

    if (X is None) != (y is None):
        raise ValueError("give both X and y to plot their error, or neither.")
    sizes = np.arange(len(model.errors_))
    lines = [("training", sizes, 100.0 * model.errors_, plots.BLUE)]
    if hasattr(model, "validation_errors_"):
        lines.append(("held out", sizes, 100.0 * model.validation_errors_, plots.GREEN))
    if X is not None:
        truth = np.asarray(y)
        errors = [100.0 * float(np.mean(p != truth)) for p in model.staged_predict(X)]
        lines.append(("given rows", sizes, np.array(errors), plots.ORANGE))
    if ax is None:
        figure, ax = plots.pyplot().subplots(figsize=(5.4, 3.4), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    plots.draw_lines(ax, lines, "holes", "error (%)")
    ax.set_ylim(bottom=0.0)
    plots.label_ends(ax, lines)
    plots.mark_size(ax, lines[-1], model.n_holes_, "error {:.1f} %", "hole")
    return quiet(ax)


@contextmanager
def progress(verbose: int, max_holes: int) -> Iterator[Callable[[Any], None]]:
    """Give a hook that moves a progress bar on the terminal, or does nothing at ``verbose=0``."""
    if not verbose:
        yield lambda state: None
        return
    with progress_bar("holes  training error {task.fields[error]:.2%}") as bar:
        task = bar.add_task("punching", total=max_holes, error=float("nan"))

        def show(state: Any) -> None:
            bar.update(task, completed=len(state.holes), error=state.errors[-1])

        yield show
