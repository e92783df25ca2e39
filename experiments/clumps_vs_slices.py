"""Do clumps, SliceLine and a tree of errors find planted slices of errors?

A table is the census rows of adult, or six independent numbers. Every row is an error with
probability 0.05. In two planted slices of about 5 % of the rows each, the probability is 0.7.
Slices are *boxes*, conjunctions of two conditions, which SliceLine and trees are made to find, or
*balls*, the rows nearest to a random row, which clumps are made to find. Each method gets half of
the rows and names regions. On the other half

* precision is the share of the rows in its regions that are in a planted slice,
* recall is the share of the rows in planted slices that are in one of its regions.

The methods are:

* The search of `laconic.report_holes`, for balls and rules, and for each of them alone. There are
  two regions, and nothing is tuned.
* SliceLine (package sliceline). Numbers are cut into equally full bins. The number of bins, the
  largest number of conditions of a slice and the number of slices are tuned. There may also be two
  numbers of bins. Each cut is then a feature, so that conditions can have two widths.
* The tree of Responsible AI's error analysis (package erroranalysis: one LightGBM tree), with its
  leaves ranked by errors in excess of the overall rate. The depth, the smallest number of rows of a
  leaf and the number of leaves are tuned.

To tune a method, `BUDGET` fits are made, and the first 2, 4, 8 or 16 regions of each are tried. The
choice with the highest mean F1 on other planted tables of the same kind is taken.

Run: python experiments/clumps_vs_slices.py [--rows N] [--repeats N] [--tuning N] [--json FILE]
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from _common import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    arguments,
    figure,
    finish,
    frame,
    load,
    progress,
    save,
    table,
    timed,
)

from laconic.report.balls import ErrorBall
from laconic.report.columns import TableColumn
from laconic.report.features import NamedTable, as_table
from laconic.report.search import BALLS, RULES, RowOutcome, search

STREWN, PLANTED, SHARE = 0.05, 0.7, 0.05
REGIONS, COUNTS, LEAST = 2, (2, 4, 8, 16), 10
BUDGET = 8
TUNED_APART = 1  # distinguishes the seeds of tables for tuning from those for testing
SEEDS_OF_CENTRES = 0
COLOURS = {
    "report": BLUE,
    "report, balls only": GREEN,
    "report, rules only": "#56B4E9",
    "SliceLine": ORANGE,
    "error tree": PURPLE,
}

Finder = Callable[..., list[np.ndarray]]
"""A function of table, errors, training rows and settings. For each region it returns the indices
of its rows, among all rows of the table. The best region comes first."""


class Planted(NamedTuple):
    """A table with errors in planted slices."""

    rows: NamedTable
    planted: np.ndarray
    wrong: np.ndarray
    given: np.ndarray
    """Training rows."""


def main() -> None:
    """Plant errors, tune the methods, find regions and compare."""
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=4000, help="rows of each table (%(default)s)")
    parser.add_argument("--repeats", type=int, default=20, help="tables of each kind (%(default)s)")
    parser.add_argument(
        "--tuning", type=int, default=6, help="other tables for tuning (%(default)s)"
    )
    args = parser.parse_args()
    census = adult(load(args.data, "adult"))
    warm_up()
    runs, tuned = [], []
    for name, shape in product(("adult", "numbers"), ("boxes", "balls")):

        def tables(number: int, apart: int, name: str = name, shape: str = shape) -> list[Planted]:
            seeds = [[args.seed, apart, repeat] for repeat in range(number)]
            return [planted_table(census, name, shape, args.rows, seed) for seed in seeds]

        others = tables(args.tuning, TUNED_APART)
        chosen = {method: tune(find, grid, others) for method, (find, grid) in METHODS.items()}
        tuned += [{"table": name, "shape": shape, "method": method, "chosen": settings, "tried": f}
                  for method, (settings, f) in chosen.items()]  # fmt: skip
        for repeat, one in enumerate(tables(args.repeats, 0)):
            for method, (find, _) in METHODS.items():
                (*settings, count), _ = chosen[method]
                seconds, found = timed(find, one.rows, one.wrong, one.given, *settings)
                scores = measure(found[:count], one.planted, one.given)
                run = {"table": name, "shape": shape, "method": method, "repeat": repeat}
                runs.append({**run, "settings": chosen[method][0], "seconds": seconds, **scores})
                progress(f"{runs[-1]}")
    results = {
        "runs": runs, "tuned": tuned, "means": summarise(runs), "behind": behind(runs),
    }  # fmt: skip
    save(args.json, args, ["sliceline", "erroranalysis", "lightgbm", "pandas"], results)
    draw(results["means"], args)


def planted_table(census: Any, name: str, shape: str, n_rows: int, seed: list[int]) -> Planted:
    """Return rows of the census or of numbers, with many errors in two slices."""
    rng = np.random.default_rng(seed)
    if name == "adult":
        some = rng.permutation(len(census))[:n_rows]
        rows = as_table(census.iloc[some].reset_index(drop=True))
    else:
        rows = as_table(rng.standard_normal((n_rows, 6)))
    planted = plant(rows, shape, rng)
    wrong = rng.random(n_rows) < np.where(planted, PLANTED, STREWN)
    return Planted(rows, planted, wrong, rng.permutation(n_rows)[: n_rows // 2])


def tune(
    find: Finder, grid: list[tuple[Any, ...]], tables: list[Planted]
) -> tuple[tuple[Any, ...], list[dict[str, Any]]]:
    """Return settings and number of regions with the highest mean F1, and all that was tried."""
    if grid == [()]:
        return (REGIONS,), []
    tried = []
    for settings in grid:
        found = [find(t.rows, t.wrong, t.given, *settings) for t in tables]
        for count in COUNTS:
            pairs = zip(found, tables, strict=True)
            f1 = np.mean([measure(f[:count], t.planted, t.given)["F1"] for f, t in pairs])
            tried.append({"settings": (*settings, count), "F1": float(f1)})
    best = max(tried, key=lambda one: one["F1"])
    return best["settings"], tried


def adult(data: dict[str, np.ndarray]) -> Any:
    """Return the census as a frame."""
    import pandas as pd

    out = {}
    for i, name in enumerate(data["feature_names"].tolist()):
        values = data["X_train"][:, i]
        if data["categorical"][i]:
            known = data[f"categories_{name.replace('-', '_')}"].astype(object)
            out[name] = np.where(values < 0, None, known[values])
        else:
            out[name] = values
    return pd.DataFrame(out)


# -- planting ----------------------------------------------------------------------------------


def plant(rows: NamedTable, shape: str, rng: np.random.Generator) -> np.ndarray:
    """Plant slices, and return a mask of the rows in one of them."""
    inside = np.zeros(len(rows), dtype=bool)
    for _ in range(REGIONS):
        inside |= box(rows, rng) if shape == "boxes" else ball(rows, rng)
    return inside


def box(rows: NamedTable, rng: np.random.Generator) -> np.ndarray:
    """Return the rows that meet two conditions.

    Conditions are drawn until the rows are between half and twice as many as wanted.
    """
    while True:
        two = rng.choice(len(rows.columns), 2, replace=False)
        met = condition(rows.columns[two[0]], rng) & condition(rows.columns[two[1]], rng)
        if 0.5 * SHARE <= met.mean() <= 2 * SHARE:
            return met


def condition(column: TableColumn, rng: np.random.Generator) -> np.ndarray:
    """Return the rows of one category, or of an interval between two quantiles (in eighths)."""
    if column.names is not None:
        return column.values == rng.integers(len(column.names))
    low = rng.integers(0, 6)
    edges = np.quantile(column.values, [low / 8, (low + rng.integers(1, 4)) / 8])
    return (column.values >= edges[0]) & (column.values <= edges[1])


def ball(rows: NamedTable, rng: np.random.Generator) -> np.ndarray:
    """Return the rows nearest to a random row."""
    centre = rows.Z[rng.integers(len(rows))]
    distance = np.linalg.norm(rows.Z - centre, axis=1)
    return distance <= np.quantile(distance, SHARE)


# -- finding -----------------------------------------------------------------------------------


def regions(shapes: tuple[str, ...]) -> Finder:
    """Return a function that finds regions of these shapes as the report does."""

    def find(rows: NamedTable, wrong: np.ndarray, given: np.ndarray) -> list[np.ndarray]:
        rng = np.random.default_rng(SEEDS_OF_CENTRES)
        others = np.setdiff1d(np.arange(len(rows)), given)
        found, _ = search(rows, RowOutcome(wrong), given, others, REGIONS, LEAST, rng, shapes)
        return [np.flatnonzero(members(rows, kept.region.shape)) for kept in found]

    return find


def members(rows: NamedTable, shape: Any) -> np.ndarray:
    """Return which rows a ball or rule holds."""
    if isinstance(shape, ErrorBall):
        return np.asarray(shape.distances(rows.Z) <= shape.radius**2)
    return np.asarray(shape.holds())


def codes(rows: NamedTable, bins: tuple[int, ...]) -> np.ndarray:
    """Return features as integers from 1: categories, or equally full bins of numbers.

    There is one feature for each number of bins in ``bins``.
    """
    out = []
    for column in rows.columns:
        if column.names is not None:  # missing values are a category too
            out.append(np.where(column.values < 0, len(column.names), column.values))
            continue
        for n in bins:
            cuts = np.unique(np.quantile(column.values, np.arange(1, n) / n))
            out.append(np.searchsorted(cuts, column.values))
    return np.column_stack(out).astype(np.int64) + 1  # 0 would stand for any value


def sliceline(
    rows: NamedTable, wrong: np.ndarray, given: np.ndarray, bins: tuple[int, ...], conditions: int
) -> list[np.ndarray]:
    """Return the best slices of SliceLine."""
    from sliceline.slicefinder import Slicefinder

    coded = codes(rows, bins)
    finder = Slicefinder(alpha=0.95, k=max(COUNTS), max_l=conditions, min_sup=20, verbose=False)
    finder.fit(coded[given], wrong[given].astype(float))
    found = []
    for slice_ in finder.top_slices_:
        met = np.ones(len(rows), dtype=bool)
        for feature, value in enumerate(slice_):
            if value is not None:
                met &= coded[:, feature] == value
        found.append(np.flatnonzero(met))
    return found


def error_tree(
    rows: NamedTable, wrong: np.ndarray, given: np.ndarray, depth: int, least: int
) -> list[np.ndarray]:
    """Return the leaves of the tree of error analysis with the most excess errors."""
    from erroranalysis._internal import surrogate_error_tree as tree

    X = np.column_stack([column.values for column in rows.columns])
    named = [i for i, column in enumerate(rows.columns) if column.names is not None]
    task = SimpleNamespace(model_task=tree.ModelTask.CLASSIFICATION)
    model = tree.create_surrogate_model(
        task, X[given], wrong[given].astype(int), depth, tree.DEFAULT_NUM_LEAVES, least, named
    )
    leaf = model.predict(X, pred_leaf=True).reshape(-1)
    excess = np.bincount(leaf[given], wrong[given] - wrong[given].mean(), minlength=leaf.max() + 1)
    best = np.argsort(-excess, kind="stable")[: max(COUNTS)]
    return [np.flatnonzero(leaf == number) for number in best if excess[number] > 0]


METHODS: dict[str, tuple[Finder, list[tuple[Any, ...]]]] = {
    "report": (regions((BALLS, RULES)), [()]),
    "report, balls only": (regions((BALLS,)), [()]),
    "report, rules only": (regions((RULES,)), [()]),
    "SliceLine": (sliceline, list(product(((3,), (4,), (8,), (4, 8)), (2, 3)))),
    "error tree": (error_tree, list(product((3, 5, 7, 10), (20, 50)))),
}
"""Every method and the settings of its fits: `BUDGET` of them if they are tuned."""


def warm_up() -> None:
    """Compile and load everything before the clocks start."""
    rng = np.random.default_rng(0)
    rows = as_table(rng.standard_normal((400, 4)))
    wrong = rng.random(400) < np.where(rows.Z[:, 0] > 1, 0.8, 0.1)
    for find, grid in METHODS.values():
        find(rows, wrong, np.arange(200), *grid[0])


# -- comparing ---------------------------------------------------------------------------------


def measure(found: list[np.ndarray], planted: np.ndarray, given: np.ndarray) -> dict[str, float]:
    """Return precision and recall of all regions together, on the rows that were held out."""
    fresh = np.ones(len(planted), dtype=bool)
    fresh[given] = False
    covered = np.zeros(len(planted), dtype=bool)
    for rows in found:
        covered[rows] = True
    both = (covered & planted & fresh).sum()
    held = (covered & fresh).sum()
    hidden = (planted & fresh).sum()
    return {
        "precision": float(both / held) if held else 0.0,
        "recall": float(both / hidden),
        "F1": float(2 * both / (held + hidden)),
        "regions": len(found),
    }


def summarise(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Print and return means and standard errors over the repeats."""
    out = []
    kinds = list(dict.fromkeys((run["table"], run["shape"]) for run in runs))
    heads = ["method", "precision", "s.e.", "recall", "s.e.", "F1", "s.e.", "seconds"]
    for name, shape in kinds:
        lines = []
        for method in METHODS:
            of = [r for r in runs if (r["table"], r["shape"], r["method"]) == (name, shape, method)]
            line: dict[str, Any] = {}
            for what in ("precision", "recall", "F1", "seconds"):
                values = np.array([run[what] for run in of])
                line[what] = values.mean()
                line[f"{what} s.e."] = values.std(ddof=1) / np.sqrt(len(values))
            lines.append([method, *list(line.values())[:-1]])
            out.append({"table": name, "shape": shape, "method": method, **line})
        table(f"{shape} in {name}", heads, lines)
    return out


def behind(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Print and return by how much every peer's F1 is ahead of the report's, on the same tables."""
    out, lines = [], []
    for name, shape in dict.fromkeys((run["table"], run["shape"]) for run in runs):
        f1 = {
            method: np.array([r["F1"] for r in runs
                              if (r["table"], r["shape"], r["method"]) == (name, shape, method)])
            for method in METHODS
        }  # fmt: skip
        for peer in ("SliceLine", "error tree"):
            ahead = f1[peer] - f1["report"]
            se = ahead.std(ddof=1) / np.sqrt(len(ahead))
            out.append({"table": name, "shape": shape, "peer": peer, "ahead": ahead.mean(),
                        "s.e.": se, "reached": bool(ahead.mean() <= se)})  # fmt: skip
            lines.append(list(out[-1].values()))
    table("F1 of a peer minus F1 of the report", list(out[0]), lines)
    return out


def draw(means: list[dict[str, Any]], args: Any) -> None:
    """Draw precision against recall, with a panel for every kind of table."""
    kinds = list(dict.fromkeys((line["table"], line["shape"]) for line in means))
    sheet, axes = figure(len(kinds), inches=2.9, height=3.3)
    for ax, (name, shape) in zip(axes, kinds, strict=True):
        for line in means:
            if (line["table"], line["shape"]) != (name, shape):
                continue
            ax.errorbar(
                line["recall"], line["precision"], xerr=line["recall s.e."],
                yerr=line["precision s.e."], color=COLOURS[line["method"]], marker="o",
                markersize=7, linewidth=1.2, label=line["method"], linestyle="none",
            )  # fmt: skip
        frame(ax, f"{shape} in {name}", "recall", "precision" if ax is axes[0] else "")
        ax.set_xlim(0, 1.03)
        ax.set_ylim(0, 1.03)
    handles, labels = axes[0].get_legend_handles_labels()
    sheet.legend(
        handles, labels, frameon=False, fontsize="small", ncols=5, loc="outside lower center"
    )
    finish(sheet, args)


if __name__ == "__main__":
    main()
