"""The path as a plot: the loss at every size, and the error if there are rows to measure it on."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.look.measures import majority, majority_rate, measures
from laconic.look.quiet import quiet

# Okabe and Ito's colours, which readers with any colour vision can tell apart.
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
INK, FAINT = "#4B5563", "#E5E7EB"
# Height of a label's line in points, which keeps labels at the ends of lines apart.
LABEL_HEIGHT = 13.0

Line = tuple[str, np.ndarray, np.ndarray, str]
"""Name, sizes, values and colour."""


def plot_path(
    model: Any, X: Any = None, y: Any = None, ax: Any = None, *, name: str = "given rows"
) -> Any:
    """Plot the loss, and the error if it is known, against the number of atoms.

    The left panel shows the training loss and, after ``early_stopping``, the held-out loss. The
    right panel shows the error of every size on (X, y) and, after ``cv``, the cross-validated error
    with a band of one standard error. Without either, there is no right panel. A dashed line shows
    the error of always predicting the commonest label. If sizes were chosen by another ``scoring``,
    the right panel shows that score instead of errors. The size in use is marked.

    Parameters
    ----------
    model : ShareBoostClassifier
        Fitted.
    X, y : array-like, default=None
        Rows and labels to measure the error of every size on.
    ax : Axes or pair of Axes, default=None
        Where to draw. The default is a new figure. One axes makes room for the second panel if
        there is one.
    name : str, default="given rows"
        What to call the rows of (X, y).

    Returns
    -------
    Axes, or ndarray of two Axes
        The panel of the loss, and the panel of the error if there is one. A notebook does not
        echo them.
    """
    if (X is None) != (y is None):
        raise ValueError("give both X and y to plot an error, or neither.")
    with_error = X is not None or hasattr(model, "cv_scores_")
    panels = np.atleast_1d(_new_axes(with_error) if ax is None else ax)
    if with_error and panels.shape == (1,):
        panels = _split(panels[0])
    if panels.shape != (1 + with_error,):
        raise ValueError("ax must be one axes, or a pair if there is an error to draw.")
    _draw_loss(panels[0], model)
    if with_error:
        draw = _draw_error if getattr(model, "scoring", None) is None else _draw_scores
        draw(panels[1], model, X, y, name)
    return quiet(panels if with_error else panels[0])


def pyplot() -> Any:
    """Return Matplotlib's pyplot, or raise an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('plots need matplotlib: pip install ".[plot]"') from error
    return plt


def _new_axes(with_error: bool) -> Any:
    columns, inches = (2, 9.0) if with_error else (1, 5.4)
    figure, axes = pyplot().subplots(ncols=columns, figsize=(inches, 3.4), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    return axes


def _split(ax: Any) -> np.ndarray:
    """Move the axes to the left half of its place in the grid, and add one in the right half."""
    place = ax.get_subplotspec()
    if place is None:
        raise ValueError("ax has no place in a grid of subplots to share. Give a pair of axes.")
    halves = place.subgridspec(1, 2, wspace=0.6)
    ax.set_subplotspec(halves[0])
    return np.array([ax, ax.figure.add_subplot(halves[1])])


def _draw_loss(ax: Any, model: Any) -> None:
    sizes, losses = model.path_.sizes, model.path_.losses
    lines, what = [("training", sizes, losses, BLUE)], "loss {:.3g}"
    if hasattr(model, "validation_losses_"):
        lines.append(("held out", sizes, model.validation_losses_, ORANGE))
        what = "held-out loss {:.3g}"
    draw_lines(ax, lines, "atoms", f"{model.predictor_.loss} loss")
    ax.set_ylim(bottom=0.0)
    label_ends(ax, lines)
    mark_size(ax, lines[-1], model.n_atoms_, what)


def _draw_error(ax: Any, model: Any, X: Any, y: Any, name: str) -> None:
    lines: list[Line] = []
    floor = np.inf
    sizes = model.path_.sizes
    what = "error {:.1f} %"
    if hasattr(model, "cv_scores_"):
        line, floor = _with_band(ax, sizes, 100.0 * (1.0 - model.cv_scores_))
        lines.append(line)
    if X is not None:
        truth = np.asarray(y)
        errors = np.array([100.0 * np.mean(p != truth) for p in model.staged_predict(X)])
        lines.append((name, sizes, errors, ORANGE))
        what += "".join(f", {n} {v:.3g}" for n, v in measures(model, X, y).items())
    draw_lines(ax, lines, "atoms", "error (%)")
    constant = 100.0 * (1.0 - majority_rate(model, y))
    values = np.concatenate([*(line[2] for line in lines), [constant]])
    # The first atoms halve the error again and again. The last ones change it by a few per cent.
    # A logarithmic scale shows both.
    if values.min() > 0 and values.max() > 5 * values.min():
        _logarithmic(ax, max(min(floor, values.min()), values.min() / 3), values.max())
        ax.set_ylabel("error (%), log scale")
    else:
        ax.set_ylim(bottom=0.0)
    _draw_constant(ax, constant, f"always {str(majority(model))!r}")
    label_ends(ax, lines)
    mark_size(ax, lines[-1], model.n_atoms_, what)


def _with_band(ax: Any, sizes: np.ndarray, values: np.ndarray) -> tuple[Line, float]:
    """Draw the band of cross-validated values (n_folds, n_sizes). Return line and band's floor."""
    at = sizes[0] + np.arange(values.shape[1])
    mean = values.mean(axis=0)
    spread = values.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0 * mean
    ax.fill_between(at, mean - spread, mean + spread, color=GREEN, alpha=0.18, linewidth=0)
    return ("cross-validated\n± 1 s.e.", at, mean, GREEN), float((mean - spread).min())


def _draw_scores(ax: Any, model: Any, X: Any, y: Any, name: str) -> None:
    """Draw the scores that the size was chosen by, instead of errors."""
    from sklearn.metrics import check_scoring

    lines: list[Line] = []
    sizes = model.path_.sizes
    if hasattr(model, "cv_scores_"):
        lines.append(_with_band(ax, sizes, model.cv_scores_)[0])
    if X is not None:
        scorer = check_scoring(model, model.scoring)
        lines.append((name, sizes, np.array([scorer(model.at(n), X, y) for n in sizes]), ORANGE))
    said = model.scoring if isinstance(model.scoring, str) else "score"
    draw_lines(ax, lines, "atoms", said)
    label_ends(ax, lines)
    mark_size(ax, lines[-1], model.n_atoms_, said + " {:.3g}")


def _draw_constant(ax: Any, value: float, label: str) -> None:
    """Draw a dashed line across, with its name above it."""
    ax.axhline(value, color=INK, linewidth=0.9, linestyle=(0, (5, 4)), zorder=1)
    ax.annotate(
        label,
        (ax.get_xlim()[1], value),
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5},  # covers the mark of a size
        xytext=(0, 2),
        textcoords="offset points",
        ha="right",
        va="bottom",
        color=INK,
        fontsize="small",
    )


def draw_lines(ax: Any, lines: list[Line], across: str, up: str) -> None:
    """Draw lines of values against sizes, on axes that stay in the background."""
    _draw(ax, lines)
    _frame(ax, np.concatenate([line[1] for line in lines]), up, across)


def _draw(ax: Any, lines: list[Line]) -> None:
    for label, sizes, values, colour in lines:
        ax.plot(
            sizes,
            values,
            color=colour,
            label=label.replace("\n", " "),
            linewidth=1.8,
            marker="o",
            # Dots show the sizes, unless there are too many to tell apart.
            markersize=3.5 if len(sizes) <= 50 else 0.0,
            solid_capstyle="round",
        )


def _frame(ax: Any, sizes: np.ndarray, what: str, across: str) -> None:
    """Keep the axes in the background: no box, a light grid, whole numbers across."""
    from matplotlib.ticker import MaxNLocator

    first, last = int(sizes.min()), int(sizes.max())
    margin = 0.03 * (last - first) or 0.5
    ax.set_xlim(first - margin, last + margin)
    ax.set_xlabel(across, color=INK)
    ax.set_ylabel(what, color=INK)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
    ax.grid(axis="y", color=FAINT, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_color(INK)
    ax.tick_params(which="both", colors=INK, length=0)
    ax.tick_params(axis="x", length=3)


def _logarithmic(ax: Any, low: float, high: float) -> None:
    """Set a logarithmic scale with ticks that are easy to read: 1, 2, 5, 10, 20, 50."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    ax.set_yscale("log")
    decade = 10.0 ** np.floor(np.log10(low))
    ax.set_ylim(max(n * decade for n in (1.0, 2.0, 5.0) if n * decade <= low), 1.25 * high)
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_locator(NullLocator())


def label_ends(ax: Any, lines: list[Line]) -> None:
    """Write the name of every line next to its end, without overlaps."""
    points = ax.bbox.height * 72.0 / ax.figure.dpi
    top = -np.inf
    for label, sizes, values, colour in sorted(lines, key=lambda line: line[2][-1]):
        last = (sizes[-1], values[-1])
        end = ax.transAxes.inverted().transform(ax.transData.transform(last))[1] * points
        half = 0.5 * LABEL_HEIGHT * (1 + label.count("\n"))
        place = max(end, top + half)
        top = place + half
        ax.annotate(
            label,
            last,
            xytext=(9, place - end),
            textcoords="offset points",
            color=colour,
            va="center",
            fontsize="small",
            annotation_clip=False,
        )


def mark_size(ax: Any, line: Line, size: int, what: str, unit: str = "atom") -> None:
    """Draw a ring at the size in use, and write its value above the panel."""
    _, sizes, values, colour = line
    where = np.flatnonzero(sizes == size)
    if len(where) == 0:
        return
    value = values[where[0]]
    top = ax.get_ylim()[1]
    ax.plot([size, size], [value, top], color=INK, linewidth=0.8, linestyle=(0, (2, 3)), zorder=1)
    ring = {"markersize": 8, "markeredgecolor": "white", "markeredgewidth": 1.5, "zorder": 4}
    ax.plot([size], [value], "o", color=colour, clip_on=False, **ring)
    left, right = ax.get_xlim()
    along = (size - left) / (right - left)
    ax.annotate(
        f"in use: {size} {unit if size == 1 else unit + 's'}, {what.format(value)}",
        (size, top),
        xytext=(0, 3),
        textcoords="offset points",
        ha="left" if along < 0.35 else "right" if along > 0.65 else "center",
        va="bottom",
        color=INK,
        fontsize="small",
        annotation_clip=False,
    )
