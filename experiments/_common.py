"""What the experiments share: the helpers of the benchmarks, and figures of one look."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(1, str(ROOT))  # the benchmarks' helpers, under their full name

from benchmarks._common import (  # noqa: E402
    CORES,
    arguments,
    error,
    load,
    progress,
    save,
    show,
    start_up,
    table,
    timed,
    verdict,
)

__all__ = [
    "BLUE", "CORES", "GREEN", "INK", "ORANGE", "PURPLE", "arguments", "error", "figure", "finish",
    "frame", "load", "logarithmic", "progress", "save", "show", "split", "start_up", "table",
    "timed", "verdict",
]  # fmt: skip

# Okabe and Ito's colours, as in `laconic.look.plots`: told apart by readers with any colour vision.
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
INK, FAINT = "#4B5563", "#E5E7EB"


def split(codes: np.ndarray, part: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit and rows to choose settings on, every class in both in proportion."""
    from sklearn.model_selection import train_test_split

    rows = np.arange(len(codes))
    fit, held = train_test_split(rows, test_size=part, random_state=seed, stratify=codes)
    return np.sort(fit), np.sort(held)


def figure(panels: int, inches: float = 3.8, height: float = 3.4) -> tuple[Any, np.ndarray]:
    """A figure with panels side by side, drawn without a display."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    sheet, axes = plt.subplots(
        ncols=panels, figsize=(inches * panels, height), layout="constrained", squeeze=False
    )
    sheet.get_layout_engine().set(w_pad=0.1, h_pad=0.08)
    return sheet, axes[0]


def frame(ax: Any, title: str, across: str, up: str) -> None:
    """Axes that stay behind the data: no box, a light grid."""
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
    """A logarithmic scale with the ticks that people read, written out."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_locator(NullLocator())


def finish(sheet: Any, args: argparse.Namespace) -> None:
    """Write the figure beside the results, if a file was asked for."""
    if args.json is not None:
        sheet.savefig(args.json.with_suffix(".png"), dpi=130)
