"""Shared code of the experiments: the helpers of the benchmarks, and figures in one style."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(1, str(ROOT))  # the benchmarks' helpers, under their full name

from benchmarks._common import (  # noqa: E402
    CORES,
    arguments,
    error,
    load,
    median_time,
    progress,
    save,
    show,
    start_up,
    table,
    timed,
    verdict,
)

__all__ = [
    "BLUE", "CORES", "GREEN", "INK", "ORANGE", "PURPLE", "ROOT", "Task", "arguments", "error",
    "figure", "finish", "frame", "load", "logarithmic", "median_time", "progress", "save", "show",
    "start_up", "table", "tasks", "timed", "verdict",
]  # fmt: skip

# Okabe and Ito's colours, as in `laconic.look.plots`. Readers with any colour vision can tell them
# apart.
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
INK, FAINT = "#4B5563", "#E5E7EB"


class Task(NamedTuple):
    """Training rows and test rows. Classes are numbered from 0."""

    X: np.ndarray
    y: np.ndarray
    X_new: np.ndarray
    y_new: np.ndarray


def tasks(data: dict[str, np.ndarray], dtype: Any, seed: int) -> tuple[Task, Task]:
    """Return the task on which settings are chosen, and the task that is reported.

    The first uses only training rows. A quarter of them is held out, with every class in
    proportion. If the rows come in parts of different speakers (isolet), the last part is held out.
    """
    from sklearn.model_selection import train_test_split

    X, X_test = (data[key].astype(dtype) for key in ("X_train", "X_test"))
    y, y_test = (np.unique(data[key], return_inverse=True)[1] for key in ("y_train", "y_test"))
    part = data.get("part_train")
    if part is None:
        rows = np.arange(len(y))
        fit, held = train_test_split(rows, test_size=0.25, random_state=seed, stratify=y)
        fit, held = np.sort(fit), np.sort(held)
    else:
        fit, held = np.flatnonzero(part < part.max()), np.flatnonzero(part == part.max())
    return Task(X[fit], y[fit], X[held], y[held]), Task(X, y, X_test, y_test)


def figure(panels: int, inches: float = 3.8, height: float = 3.4) -> tuple[Any, np.ndarray]:
    """Return a figure with panels side by side, drawn without a display."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    sheet, axes = plt.subplots(
        ncols=panels, figsize=(inches * panels, height), layout="constrained", squeeze=False
    )
    sheet.get_layout_engine().set(w_pad=0.1, h_pad=0.08)
    return sheet, axes[0]


def frame(ax: Any, title: str, across: str, up: str) -> None:
    """Give axes a title, labels and a light grid behind the data, without a box."""
    ax.set_title(title, color=INK, fontsize="medium", loc="left")
    ax.set_xlabel(across, color=INK)
    ax.set_ylabel(up, color=INK)
    ax.grid(axis="y", color=FAINT, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_color(INK)
    ax.tick_params(which="both", colors=INK, length=0)
    ax.tick_params(axis="x", which="major", length=3)


def logarithmic(axis: Any, subs: tuple[float, ...] = (1.0, 2.0, 5.0)) -> None:
    """Set a logarithmic scale whose ticks are written as plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_locator(NullLocator())


def finish(sheet: Any, args: argparse.Namespace) -> None:
    """Write the figure next to the results, if a file is given."""
    if args.json is not None:
        sheet.savefig(args.json.with_suffix(".png"), dpi=130)
