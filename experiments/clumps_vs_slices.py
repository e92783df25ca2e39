"""Planted slices of errors: found by clumps, by SliceLine and by a tree of errors?

In a table (the census rows of adult, or six independent numbers) errors are strewn everywhere with
probability 0.05, and with probability 0.7 in two planted slices of about 5 % of the rows each:
*boxes*, conjunctions of two conditions, which SliceLine and trees are made to find, or *balls*, the
rows nearest to a random row, which clumps are made to find. Each method is given half of the rows
and names two regions; on the other half

* precision is the share of the rows of the two regions that lie in a planted slice,
* recall is the share of the rows of planted slices that lie in one of the two regions.

The methods: clumps of `laconic.report_holes`, with distances that weigh a feature by how much
errors depend on it, and with plain ones; SliceLine (package sliceline, at most two conditions;
numbers are cut into eighths, which the sides of planted boxes are one to three of); the tree of
Responsible AI's error analysis (package erroranalysis: one LightGBM tree, of depth 3 by default,
and 5), its leaves ranked by errors in excess of the overall rate.

Run: python experiments/clumps_vs_slices.py [--rows N] [--repeats N] [--json FILE]
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

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

from laconic.look.features import Column, Table, as_table, focus
from laconic.model.regions import inside_ball
from laconic.regions.clumps import find_clumps

STREWN, PLANTED, SHARE = 0.05, 0.7, 0.05
REGIONS = 2
BINS = 8
SEEDS_OF_CENTRES = 0
COLOURS = {"clumps": BLUE, "clumps, plain distances": GREEN, "SliceLine": ORANGE}
TREE = PURPLE

Finder = Callable[[Table, np.ndarray, np.ndarray], list[np.ndarray]]
"""Table, errors and the rows to learn from; rows (of all) in each region."""


def main() -> None:
    """Plant, find, compare."""
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=8000, help="rows of a table (%(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="tables of a kind (%(default)s)")
    args = parser.parse_args()
    census = adult(load(args.data, "adult"))
    warm_up()
    runs = []
    for repeat in range(args.repeats):
        rng = np.random.default_rng([args.seed, repeat])
        some = rng.permutation(len(census))[: args.rows]
        tables = {
            "adult": as_table(_frame(census, some)),
            "numbers": as_table(rng.standard_normal((args.rows, 6))),
        }
        for name, rows in tables.items():
            for shape in ("boxes", "balls"):
                planted = plant(rows, shape, rng)
                wrong = rng.random(len(rows)) < np.where(planted, PLANTED, STREWN)
                given = rng.permutation(len(rows))[: len(rows) // 2]
                for method, find in FINDERS.items():
                    seconds, found = timed(find, rows, wrong, given)
                    scores = measure(found, planted, given)
                    run = {"table": name, "shape": shape, "method": method, "repeat": repeat}
                    runs.append({**run, "seconds": seconds, **scores})
                    progress(f"{run} {scores}")
    results = {"runs": runs, "means": summarise(runs)}
    save(args.json, args, ["sliceline", "erroranalysis", "lightgbm", "pandas"], results)
    draw(results["means"], args)


def adult(data: dict[str, np.ndarray]) -> Any:
    """The census as a frame."""
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


def _frame(census: Any, rows: np.ndarray) -> Any:
    return census.iloc[rows].reset_index(drop=True)


# -- planting ----------------------------------------------------------------------------------


def plant(rows: Table, shape: str, rng: np.random.Generator) -> np.ndarray:
    """Which rows lie in one of the planted slices."""
    inside = np.zeros(len(rows), dtype=bool)
    for _ in range(REGIONS):
        inside |= box(rows, rng) if shape == "boxes" else ball(rows, rng)
    return inside


def box(rows: Table, rng: np.random.Generator) -> np.ndarray:
    """Rows that meet two conditions; drawn until they are half to twice as many as wanted."""
    while True:
        two = rng.choice(len(rows.columns), 2, replace=False)
        met = condition(rows.columns[two[0]], rng) & condition(rows.columns[two[1]], rng)
        if 0.5 * SHARE <= met.mean() <= 2 * SHARE:
            return met


def condition(column: Column, rng: np.random.Generator) -> np.ndarray:
    """One category, or an interval between two eighths."""
    if column.names is not None:
        return column.values == rng.integers(len(column.names))
    low = rng.integers(0, 6)
    edges = np.quantile(column.values, [low / 8, (low + rng.integers(1, 4)) / 8])
    return (column.values >= edges[0]) & (column.values <= edges[1])


def ball(rows: Table, rng: np.random.Generator) -> np.ndarray:
    """The rows nearest to one of them."""
    centre = rows.Z[rng.integers(len(rows))]
    distance = np.linalg.norm(rows.Z - centre, axis=1)
    return distance <= np.quantile(distance, SHARE)


# -- finding -----------------------------------------------------------------------------------


def clumps(weighed: bool) -> Finder:
    """Clumps as the report finds them."""

    def find(rows: Table, wrong: np.ndarray, given: np.ndarray) -> list[np.ndarray]:
        Z = rows.Z * focus(rows, wrong, given) if weighed else rows.Z
        rng = np.random.default_rng(SEEDS_OF_CENTRES)
        found = find_clumps(Z[given], wrong[given], REGIONS, 20, rng)
        return [inside_ball(Z, clump.centre, clump.radius) for clump in found]

    return find


def codes(rows: Table) -> np.ndarray:
    """Features as integers: categories, or eighths of numbers."""
    out = np.zeros((len(rows), len(rows.columns)), dtype=np.int64)
    for i, column in enumerate(rows.columns):
        if column.names is not None:
            out[:, i] = column.values
        else:
            cuts = np.unique(np.quantile(column.values, np.arange(1, BINS) / BINS))
            out[:, i] = np.searchsorted(cuts, column.values)
    return out + 1  # 0 would mean anything


def sliceline(rows: Table, wrong: np.ndarray, given: np.ndarray) -> list[np.ndarray]:
    """The best slices of SliceLine."""
    from sliceline.slicefinder import Slicefinder

    coded = codes(rows)
    finder = Slicefinder(alpha=0.95, k=REGIONS, max_l=2, min_sup=20, verbose=False)
    finder.fit(coded[given], wrong[given].astype(float))
    found = []
    for conditions in finder.top_slices_:
        met = np.ones(len(rows), dtype=bool)
        for feature, value in enumerate(conditions):
            if value is not None:
                met &= coded[:, feature] == value
        found.append(np.flatnonzero(met))
    return found


def error_tree(depth: int) -> Finder:
    """Leaves of the tree of error analysis with the most errors in excess."""

    def find(rows: Table, wrong: np.ndarray, given: np.ndarray) -> list[np.ndarray]:
        from erroranalysis._internal import surrogate_error_tree as tree

        X = np.column_stack([column.values for column in rows.columns])
        named = [i for i, column in enumerate(rows.columns) if column.names is not None]
        task = SimpleNamespace(model_task=tree.ModelTask.CLASSIFICATION)
        model = tree.create_surrogate_model(
            task, X[given], wrong[given].astype(int), depth, tree.DEFAULT_NUM_LEAVES,
            tree.DEFAULT_MIN_CHILD_SAMPLES, named,
        )  # fmt: skip
        leaf = model.predict(X, pred_leaf=True).reshape(-1)
        rate = wrong[given].mean()
        excess = {
            number: float((wrong[given] - rate)[leaf[given] == number].sum())
            for number in np.unique(leaf[given])
        }
        best = sorted(excess, key=lambda number: -excess[number])[:REGIONS]
        return [np.flatnonzero(leaf == number) for number in best]

    return find


FINDERS: dict[str, Finder] = {
    "clumps": clumps(weighed=True),
    "clumps, plain distances": clumps(weighed=False),
    "SliceLine": sliceline,
    "error tree, depth 3": error_tree(3),
    "error tree, depth 5": error_tree(5),
}


def warm_up() -> None:
    """Whatever compiles or loads does so now, before the clocks."""
    rng = np.random.default_rng(0)
    rows = as_table(rng.standard_normal((400, 4)))
    wrong = rng.random(400) < np.where(rows.Z[:, 0] > 1, 0.8, 0.1)
    for find in FINDERS.values():
        find(rows, wrong, np.arange(200))


# -- comparing ---------------------------------------------------------------------------------


def measure(found: list[np.ndarray], planted: np.ndarray, given: np.ndarray) -> dict[str, float]:
    """Precision and recall of the regions together, on rows that were not given."""
    fresh = np.ones(len(planted), dtype=bool)
    fresh[given] = False
    covered = np.zeros(len(planted), dtype=bool)
    for rows in found:
        covered[rows] = True
    both = (covered & planted & fresh).sum()
    held = (covered & fresh).sum()
    return {
        "precision": float(both / held) if held else 0.0,
        "recall": float(both / (planted & fresh).sum()),
        "regions": len(found),
    }


def summarise(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means and standard errors over the repeats, printed."""
    out = []
    kinds = list(dict.fromkeys((run["table"], run["shape"]) for run in runs))
    for name, shape in kinds:
        for method in FINDERS:
            of = [r for r in runs if (r["table"], r["shape"], r["method"]) == (name, shape, method)]
            line: dict[str, Any] = {"table": name, "shape": shape, "method": method}
            for what in ("precision", "recall", "seconds"):
                values = np.array([run[what] for run in of])
                line[what] = values.mean()
                line[f"{what} s.e."] = values.std(ddof=1) / np.sqrt(len(values))
            f = [2 / (1 / max(r["precision"], 1e-9) + 1 / max(r["recall"], 1e-9)) for r in of]
            line["F1"] = float(np.mean(f))
            out.append(line)
    heads = ["method", "precision", "s.e.", "recall", "s.e.", "F1", "seconds"]
    for name, shape in kinds:
        of = [line for line in out if (line["table"], line["shape"]) == (name, shape)]
        keys = ("method", "precision", "precision s.e.", "recall", "recall s.e.", "F1", "seconds")
        table(f"{shape} in {name}", heads, [[line[key] for key in keys] for line in of])
    return out


def draw(means: list[dict[str, Any]], args: Any) -> None:
    """Precision against recall, a panel for every kind of table."""
    kinds = list(dict.fromkeys((line["table"], line["shape"]) for line in means))
    sheet, axes = figure(len(kinds), inches=2.9, height=3.3)
    for ax, (name, shape) in zip(axes, kinds, strict=True):
        for line in means:
            if (line["table"], line["shape"]) != (name, shape):
                continue
            method = line["method"]
            colour = COLOURS.get(method, TREE)
            marker = "s" if method.endswith("5") else "o"
            ax.errorbar(
                line["recall"], line["precision"], xerr=line["recall s.e."],
                yerr=line["precision s.e."], color=colour, marker=marker, markersize=7,
                linewidth=1.2, label=method, linestyle="none",
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
