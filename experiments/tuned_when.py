"""When does it help to tune atoms: as they are chosen, after the path is grown, or both times?

Four models of every size are compared: as chosen, tuned at selection, tuned afterwards, and both.
Hinges learn pendigits and satellite, and patches learn scikit-learn's digits. One more row has
hinges of a short list of candidates. A quarter of the training rows is held out for the errors.
Test rows are never read. The settings are near those of docs/tuning.md, and none is chosen here.
Sizes that are tuned afterwards start from each other. If the rows that a fit holds out itself
prefer the untuned model, the tuned one is not used, as always.

Seconds are those of the processor on one thread. Sets that the --json file has already are not
computed again.

Run: python experiments/tuned_when.py [--sets NAME ...] [--seeds N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from typing import Any

import numpy as np
from _common import Task, arguments, load, progress, save, table, tasks
from benchmarks._common import commit
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from laconic import ShareBoostClassifier
from laconic.boost.path import PathEntry
from laconic.pools import Hinges, Patches
from laconic.tune import Tuning

SIZES = (5, 10, 20, 40)
SETS = ("pendigits", "pendigits, short", "satellite", "digits")
WAYS = ("as chosen", "at selection", "afterwards", "both")
SMALL = {"n_templates": 60, "template_size": 3, "mask_grid": 3, "mask_sigma": 1.5}
# The short list of hinges.
SHORT = {"n_directions": 10, "n_knots": 5}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--seeds", type=int, default=3, help="number of splits (%(default)s)")
    args = parser.parse_args()
    found = earlier(args)
    for name in args.sets:
        if name in found:
            continue
        runs = [run(name, args, seed) for seed in range(args.seed, args.seed + args.seeds)]
        found = {**earlier(args), **found, name: {"runs": runs, "commit": commit()}}
        save(args.json, args, [], found)
    told(found)


def earlier(args: argparse.Namespace) -> dict[str, Any]:
    """Return the sets that the file has already."""
    if args.json is None or not args.json.exists():
        return {}
    return dict(json.loads(args.json.read_text())["results"])


def run(name: str, args: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Return errors, losses and seconds of one split: for every way, a number for every size."""
    task = task_of(name, args, seed)
    out: dict[str, Any] = {}
    for at_selection, (plain, tuned) in ((False, WAYS[::2]), (True, WAYS[1::2])):
        model, seconds = fitted(name, task, seed, at_selection)
        path, chosen = model.path_, model.path_.chosen or model.path_
        for way, entries in ((plain, chosen), (tuned, path)):
            errors = [error_of(entries[size], task, model.classes_) for size in SIZES]
            losses = [entries[size].loss for size in SIZES]
            out[way] = {"errors": errors, "losses": losses, "seconds": seconds[way == tuned]}
        used = [path[size] is not chosen[size] for size in SIZES]
        out[tuned]["accepted"] = used
        progress(f"{name}, seed {seed}, {tuned}: {out[plain]['errors']}, {out[tuned]['errors']}")
    return out


def task_of(name: str, args: argparse.Namespace, seed: int) -> Task:
    """Return training rows, and other training rows as the rows for errors."""
    if name != "digits":
        return tasks(load(args.data, name.split(",")[0]), np.float64, seed)[0]
    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
    X, X_new, y, y_new = parts
    return Task(X.astype(np.float32), y, X_new.astype(np.float32), y_new)


def fitted(
    name: str, task: Task, seed: int, at_selection: bool
) -> tuple[ShareBoostClassifier, tuple[float, float]]:
    """Return a model, and the seconds until its path was grown and until it was tuned."""
    tuning = Tuning(list(SIZES), at_selection=at_selection)
    if name == "digits":
        pool: Any = Patches(**SMALL, random_state=seed)
    else:
        pool = Hinges(**(SHORT if name.endswith("short") else {}), random_state=seed)
        tuning = replace(tuning, epochs=40, rate=0.1)
    grown = []

    def watch(state: Any) -> None:
        grown.append(time.process_time())

    settings = {"pool": pool, "tune": tuning, "alpha": 1e-4, "random_state": seed, "n_jobs": 1}
    start = time.process_time()
    model = ShareBoostClassifier(max(SIZES), callbacks=[watch], **settings).fit(task.X, task.y)
    return model, (grown[-1] - start, time.process_time() - start)


def error_of(entry: PathEntry, task: Task, classes: np.ndarray) -> float:
    """Return the share of the held-out rows that are wrong, in per cent."""
    labels = classes[entry.scores(task.X_new).argmax(axis=1)]
    return float(100.0 * np.mean(labels != task.y_new))


def told(found: dict[str, Any]) -> None:
    """Print means and standard errors over the seeds."""
    lines = []
    for name, cell in found.items():
        for at, size in enumerate(SIZES):
            line = [f"{name}, {size}"]
            for way in WAYS:
                errors = np.array([run[way]["errors"][at] for run in cell["runs"]])
                spread = errors.std(ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else np.nan
                line.append(f"{errors.mean():.2f} ± {spread:.2f}")
            for way in WAYS:
                line.append(f"{np.mean([run[way]['losses'][at] for run in cell['runs']]):.3f}")
            lines.append(line)
    table(
        "Held-out errors in %, means and standard errors; training losses",
        ["set, atoms", *WAYS, *WAYS],
        lines,
    )
    for name, cell in found.items():
        seconds = [np.mean([run[way]["seconds"] for run in cell["runs"]]) for way in WAYS]
        print(name, *(f"{way} {s:.0f} s" for way, s in zip(WAYS, seconds, strict=True)))


if __name__ == "__main__":
    main()
