"""Are tuned hinges as good as a network of the same size that is trained with gradients?

Models of 8, 16 and 32 hinges are grown and tuned (`laconic.tune`). Their peer is scikit-learn's
`MLPClassifier` with one hidden layer of as many units. Both get the same standardised columns. The
categories of adult are 0/1 columns. Cells that the --json file has already are not computed again.

Each side has eight settings. For every set and size, the setting with the fewest errors on held-out
training rows is chosen with one seed. It is then fitted to all training rows with every seed. The
test rows are read once for every seed. A standard error is that of the mean over the seeds. It says
how far the draws of a fit change the error, not how far other test rows would. Seconds are those
of the processor, for one fit with one thread.

The penalties of a network end at 0.01, and those of hinges at 0.001. On some sets a stronger one,
such as 0.1 or 1, makes networks better: on isolet by over 1 point at 8 and 16 units.

Run: python experiments/hinges_vs_mlp.py [--sets NAME ...] [--units N ...] [--seeds N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from itertools import product
from typing import Any

import numpy as np
from _common import (
    BLUE,
    ORANGE,
    Task,
    arguments,
    figure,
    finish,
    frame,
    load,
    logarithmic,
    progress,
    save,
    table,
    tasks,
    verdict,
)
from benchmarks._common import commit
from holes_vs_peers import spread
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from laconic import ShareBoostClassifier
from laconic.pools import Hinges
from laconic.tune import Tuning

Setting = tuple[float, float]
"""Penalty, and length of the first steps."""

SETS = ("pendigits", "satellite", "isolet", "adult")
UNITS = (8, 16, 32)
# Passes over the rows: of tuning, and at most of a network. Networks end before that if their loss
# no longer falls.
EPOCHS, PASSES = 100, 1000
SETTINGS = {
    "hinges": list(product((1e-6, 1e-5, 1e-4, 1e-3), (0.03, 0.1))),
    "network": list(product((1e-5, 1e-4, 1e-3, 1e-2), (1e-3, 1e-2))),
}
COLOURS = {"hinges": BLUE, "network": ORANGE}


def main() -> None:
    warnings.filterwarnings("ignore")  # some networks have not converged; the results say which
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--units", nargs="+", type=int, default=list(UNITS))
    parser.add_argument("--seeds", type=int, default=5, help="number of fits (%(default)s)")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    for side in SETTINGS:  # loads the kernels
        fitted(side, rng.normal(size=(200, 3)), np.arange(200) % 2, 1, (1e-3, 0.03), 0)
    cells = earlier(args)
    there = [(cell["set"], cell["units"]) for cell in cells]
    for name, units in (one for one in product(args.sets, args.units) if one not in there):
        cell = compared(name, units, args)
        cells = [*(earlier(args) or cells), cell]  # another process may have added some
        cells.sort(key=lambda cell: (SETS.index(cell["set"]), cell["units"]))
        save(args.json, args, [], {"cells": cells})
    told(earlier(args) or cells, args)


def earlier(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the cells that the file has already."""
    if args.json is None or not args.json.exists():
        return []
    return list(json.loads(args.json.read_text())["results"]["cells"])


def compared(name: str, units: int, args: argparse.Namespace) -> dict[str, Any]:
    """Choose a setting for each side, and return the test errors of both."""
    data = load(args.data, name)
    if name == "adult":
        data |= {key: spread(data[key], data) for key in ("X_train", "X_test")}
    choice, reported = tasks(data, np.float64, args.seed)
    cell: dict[str, Any] = {"set": name, "units": units, "commit": commit()}
    for side, settings in SETTINGS.items():
        tried = [run(side, choice, units, one, args.seed)["error"] for one in settings]
        chosen = settings[int(np.argmin(tried))]
        seeds = range(args.seed, args.seed + args.seeds)
        runs = [run(side, reported, units, chosen, seed) for seed in seeds]
        errors = 100.0 * np.array([one["error"] for one in runs])
        cell[side] = {
            "chosen": chosen,
            "held out": list(zip(settings, tried, strict=True)),
            "errors": errors,
            "error": errors.mean(),
            "standard error": errors.std(ddof=1) / np.sqrt(len(errors)),
            **{key: np.mean([one[key] for one in runs]) for key in ("seconds", "weights", "ended")},
        }
        progress(f"{name}, {units} units, {side}: {chosen}, {cell[side]['error']:.2f} %")
    ours, theirs = cell["hinges"], cell["network"]
    cell["difference"] = ours["error"] - theirs["error"]
    cell["standard error"] = np.hypot(ours["standard error"], theirs["standard error"])
    return cell


def run(side: str, task: Task, units: int, setting: Setting, seed: int) -> dict[str, Any]:
    """Return error, seconds, weights, and whether tuning was accepted or the network converged."""
    start = time.process_time()
    model = fitted(side, task.X, task.y, units, setting, seed)
    seconds = time.process_time() - start
    weights, ended = described(side, model[-1])
    wrong = model.predict(task.X_new) != task.y_new
    return {"error": wrong.mean(), "seconds": seconds, "weights": weights, "ended": ended}


def fitted(side: str, X: np.ndarray, y: np.ndarray, units: int, setting: Setting, seed: int) -> Any:
    """Return a fitted model of standardised columns."""
    alpha, rate = setting
    if side == "network":
        own = {"learning_rate_init": rate, "max_iter": PASSES}
        model = MLPClassifier(units, alpha=alpha, random_state=seed, **own)
    else:
        own = {"pool": Hinges(random_state=seed), "tune": Tuning(epochs=EPOCHS, rate=rate)}
        model = ShareBoostClassifier(units, alpha=alpha, random_state=seed, **own)
    return make_pipeline(StandardScaler(), model).fit(X, y)


def described(side: str, model: Any) -> tuple[int, bool]:
    """Return the number of weights, and whether tuning was accepted or the network converged."""
    if side == "network":
        return sum(w.size for w in (*model.coefs_, *model.intercepts_)), model.n_iter_ < PASSES
    path = model.path_
    entry = path[max(path.sizes)]
    inner = sum(len(atom.features) + 1 for atom in entry.atoms)
    accepted = path.chosen is not None and path.chosen[entry.size] is not entry
    return inner + entry.weights.size + entry.base.size, accepted


def told(cells: list[dict[str, Any]], args: argparse.Namespace) -> None:
    """Print, save and draw the cells, with verdicts."""
    lines = []
    for cell in cells:
        line = [f"{cell['set']}, {cell['units']}"]
        for side in SETTINGS:
            line += [f"{cell[side]['error']:.2f} ± {cell[side]['standard error']:.2f}"]
        line += [f"{cell['difference']:+.2f} ± {cell['standard error']:.2f}"]
        for key in ("seconds", "weights", "ended"):
            line += [cell[side][key] for side in SETTINGS]
        lines.append(line)
    header = ["set, units", "hinges, %", "network, %", "difference", "hinges, s", "network, s"]
    header += ["hinges, weights", "network, weights", "accepted", "converged"]
    table("Test errors, means and standard errors over the seeds", header, lines)
    mean = float(np.mean([cell["difference"] for cell in cells]))
    worse = sum(cell["difference"] > cell["standard error"] for cell in cells)
    verdicts = [
        verdict(f"mean difference of {len(cells)} cells, points", mean, 0.0, False),
        verdict(f"of {len(cells)} cells, worse by over one standard error", worse, 2, False),
    ]
    save(args.json, args, [], {"cells": cells, "verdicts": verdicts})
    draw(cells, args)


def draw(cells: list[dict[str, Any]], args: argparse.Namespace) -> None:
    """Draw test error against units, with a panel for every set."""
    names = list(dict.fromkeys(cell["set"] for cell in cells))
    sheet, axes = figure(len(names), inches=3.0)
    for ax, name in zip(axes, names, strict=True):
        own = [cell for cell in cells if cell["set"] == name]
        for side, colour in COLOURS.items():
            units, errors, bars = np.transpose(
                [(c["units"], c[side]["error"], c[side]["standard error"]) for c in own]
            )
            look = {"marker": "o", "markersize": 4, "capsize": 2, "elinewidth": 1}
            ax.errorbar(units, errors, yerr=bars, color=colour, label=side, **look)
        frame(ax, name, "units", "test error (%)" if ax is axes[0] else "")
        ax.set_xscale("log")
        logarithmic(ax.xaxis, (1.0, 2.0, 4.0, 8.0))
        ax.set_xticks(UNITS)
    axes[0].legend(frameon=False, fontsize="small")
    finish(sheet, args)


if __name__ == "__main__":
    main()
