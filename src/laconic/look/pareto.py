"""The frontier of a search: error or score against bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from laconic.look.plots import BLUE, FAINT, GREEN, INK, ORANGE, pyplot
from laconic.look.quiet import quiet

# Marks and colours (Okabe and Ito's) of the pools, in the order in which they come up.
MARKS, COLOURS = "osD^vPX", (BLUE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", INK, "#000000")


def plot_pareto(
    points: list[dict[str, Any]],
    chosen: int,
    budget: float | None,
    where: str,
    what: str | None,
    ax: Any = None,
) -> Any:
    """Draw the models of the frontier, the chosen one and the budget.

    Parameters
    ----------
    points : list of dict
        The lines of ``pareto_``.
    chosen : int
        Bytes of the chosen model.
    budget : float or None
        The largest number of bytes that was asked for.
    where : str
        The chip.
    what : str or None
        The name of the score, or None for the error.
    ax : Axes, default=None
        Where to draw. The default is a new figure.

    Returns
    -------
    Axes
    """
    from matplotlib.ticker import LogLocator, NullLocator

    if ax is None:
        ax = pyplot().subplots(figsize=(5.8, 3.6), layout="constrained")[1]
    bytes = np.array([point["bytes"] for point in points], dtype=float)
    factor = 100.0 if what is None else 1.0
    values = factor * np.array([point["error" if what is None else "score"] for point in points])
    errors = factor * np.array([point["standard_error"] for point in points])
    ax.step(bytes, values, where="post", color=INK, linewidth=1, zorder=2)
    low = np.maximum(values - errors, values / 2) if what is None else values - errors
    ax.fill_between(bytes, low, values + errors, step="post", color=INK, alpha=0.12, linewidth=0)
    for number, pool in enumerate(dict.fromkeys(point["pool"] for point in points)):
        own = np.array([point["pool"] == pool for point in points])
        mark, colour = MARKS[number % len(MARKS)], COLOURS[number % len(COLOURS)]
        ax.plot(bytes[own], values[own], mark, color=colour, markersize=5, label=pool, zorder=3)
    at = int(np.argmin(np.abs(bytes - chosen)))
    ax.plot(bytes[at], values[at], "o", markersize=12, markerfacecolor="none",
            markeredgecolor=ORANGE, markeredgewidth=1.8, label="chosen", zorder=4)  # fmt: skip
    if budget is not None:
        ax.axvline(budget, color=INK, linestyle="--", linewidth=1, label="budget", zorder=1)
    ax.set_xscale("log", base=2)
    if what is None and values.min() > 0:
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    ax.set_xlabel(f"bytes on {where}")
    what = "error (%)" if what is None else what
    ax.set_ylabel(f"{what} in cross-validation")
    ax.grid(color=FAINT, linewidth=0.7)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, fontsize=9)
    return quiet(ax)
