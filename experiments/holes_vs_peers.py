"""Compare hole punching with other piecewise classifiers of the same number of pieces.

Measured is the test error with 1, 2, 4, 8 and 16 pieces of

* hole punching (the part outside and each hole is a piece), around error clumping or logistic
  regression;
* a linear model tree (package linear-tree) with ridge classifiers in its leaves;
* LightGBM with linear trees, where all leaves of all trees count (it makes no tree of one leaf);
* k-means, with a logistic regression in every cluster;

and of a Gaussian SVM, whose size is that of its support vectors. The size is the bytes of the
numbers that a prediction needs, at four bytes each. The data are MNIST (30 principal components;
0-4 against 5-9, and odd against even digits), adult (categories as 0/1 columns, numbers scaled) and
spambase (logarithms, scaled).

Every method has the same budget of `BUDGET` settings. A quarter of the training rows is held out to
choose among them for every number of pieces. The chosen settings are then fitted to all training
rows and tested once. All of this is repeated with other training rows (of spambase: another split),
and the settings are chosen again. Standard errors are over the repeats.

Run: python experiments/holes_vs_peers.py [--rows N] [--repeats N] [--sets mnist mnist-odd …]
                                          [--add] [--json FILE]
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from _common import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    Task,
    arguments,
    error,
    figure,
    finish,
    frame,
    load,
    logarithmic,
    progress,
    save,
    table,
    timed,
)
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from laconic import ErrorClumpingClassifier, HolePunchingClassifier

PIECES = (1, 2, 4, 8, 16)
DEPTHS = {n: n.bit_length() - 1 for n in PIECES}
BUDGET = 8
SETS = ("mnist", "mnist-odd", "adult", "spambase")
COLOURS = {"hole punching": BLUE, "linear tree": ORANGE, "LightGBM, linear leaves": GREEN,
           "k-means, then linear": PURPLE}  # fmt: skip

Answer = dict[int, tuple[np.ndarray, int]]
"""Predicted labels of new rows and bytes of the model, for every number of pieces."""
Method = Callable[..., Answer]


# -- methods -----------------------------------------------------------------------------------


def hole_punching(task: Task, base: str, strength: float, min_rows: int) -> Answer:
    """Punch holes. One fit gives every number of holes."""
    outside: Any = (
        ErrorClumpingClassifier(strength, tol=1e-4)
        if base == "clumping"
        else LogisticRegression(C=1.0 / (strength * len(task.y)), max_iter=500)
    )
    model = HolePunchingClassifier(
        outside, max(PIECES) - 1, min_rows=min_rows, n_candidates=1000, random_state=0
    ).fit(task.X, task.y)
    out = {}
    for n in PIECES:
        part = model.at(min(n - 1, len(model.errors_) - 1))
        # Count four bytes per number, as for the others. The predictor stores eight.
        out[n] = part.predict(task.X_new), part.predictor_.cost().bytes // 2
    return out


def linear_tree(task: Task, alpha: float, least: float) -> Answer:
    """Fit one tree, and cut it off at the depth that has as many leaves as pieces.

    A tree grows from the root by one greedy choice after another. So the tree of a smaller
    ``max_depth`` is the same tree, cut off.
    """
    from lineartree import LinearTreeClassifier

    model = LinearTreeClassifier(
        RidgeClassifier(alpha=alpha),
        max_depth=DEPTHS[max(PIECES)],
        max_bins=10,
        min_samples_leaf=least,
        split_features=split_features(task),
    ).fit(task.X, task.y)
    return {n: cut_off(model, DEPTHS[n], task.X_new) for n in PIECES}


def cut_off(model: Any, depth: int, X: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the predictions and bytes of a linear tree without the nodes below a depth."""
    X = X.astype(np.float32)  # the precision in which linear-tree reads rows
    ends = {key: leaf for key, leaf in model._leaves.items() if len(key) <= depth}
    ends |= {key: node for key, node in model._nodes.items() if len(key) == depth}
    said = np.empty(len(X), dtype=model.classes_.dtype)
    for end in ends.values():
        here = np.ones(len(X), dtype=bool)
        for feature, side, threshold in end.threshold:
            here &= (X[:, feature] <= threshold) == (side == "L")
        if here.any():
            said[here] = end.model.predict(X[here])
    return said, 4 * (len(ends) * (X.shape[1] + 1) + 2 * (len(ends) - 1))


def split_features(task: Task, most: int = 8) -> list[int]:
    """Return the features that a linear tree may split on, those most correlated with the class.

    Refitting for every split of all features would take hours.
    """
    centred = task.y - task.y.mean()
    size = np.linalg.norm(task.X - task.X.mean(axis=0), axis=0)
    strength = np.abs(centred @ task.X) / np.maximum(size, 1e-9)
    return sorted(np.argsort(-strength)[:most].tolist())


def lightgbm(task: Task, leaves: int, rate: float, shrink: float) -> Answer:
    """Fit as many trees of ``leaves`` leaves as give the number of pieces, from two on."""
    from lightgbm import LGBMClassifier

    out = {}
    for n in PIECES[1:]:
        each = min(leaves, n)
        model = LGBMClassifier(
            n_estimators=n // each,
            num_leaves=each,
            learning_rate=rate,
            linear_tree=True,
            linear_lambda=shrink,
            min_child_samples=20,
            verbosity=-1,
            n_jobs=1,
        ).fit(task.X, task.y)
        trees = model.booster_.dump_model()["tree_info"]
        size = sum(_tree_numbers(tree["tree_structure"]) for tree in trees)
        out[n] = np.asarray(model.predict(task.X_new)), 4 * size
    return out


def _tree_numbers(node: dict[str, Any]) -> int:
    if "left_child" in node:
        return 2 + _tree_numbers(node["left_child"]) + _tree_numbers(node["right_child"])
    return 1 + 2 * len(node.get("leaf_coeff", []))


def clustered(task: Task, strength: float, seed: int) -> Answer:
    """Fit a logistic regression in every cluster of k-means."""
    out = {}
    for n in PIECES:
        groups = KMeans(n, n_init=2, random_state=seed).fit(task.X)
        here, there = groups.labels_, groups.predict(task.X_new)
        said = np.empty(len(task.y_new), dtype=task.y.dtype)
        for group in range(n):
            rows, new = here == group, there == group
            if not new.any():
                continue
            labels = np.unique(task.y[rows])
            if len(labels) == 1:
                said[new] = labels[0]
                continue
            C = 1.0 / (strength * rows.sum())
            model = LogisticRegression(C=C, max_iter=500).fit(task.X[rows], task.y[rows])
            said[new] = model.predict(task.X_new[new])
        out[n] = said, 4 * n * (2 * task.X.shape[1] + 1)
    return out


def gaussian_svm(task: Task, C: float, gamma: float) -> Answer:
    """Fit one model. Its size does not depend on the number of pieces."""
    model = SVC(C=C, gamma=gamma / task.X.shape[1] / task.X.var()).fit(task.X, task.y)
    return {0: (model.predict(task.X_new), 4 * model.support_vectors_.size)}


METHODS: dict[str, tuple[Method, list[tuple[Any, ...]]]] = {
    "hole punching": (
        hole_punching,
        list(product(("clumping", "logistic"), (1e-3, 1e-2), (10, 40))),
    ),
    "linear tree": (linear_tree, list(product((1.0, 10.0, 100.0, 1000.0), (0.02, 0.1)))),
    "LightGBM, linear leaves": (
        lightgbm,
        list(product((2, 16), (0.3, 1.0), (0.0, 10.0))),
    ),
    "k-means, then linear": (clustered, list(product((1e-4, 1e-3, 1e-2, 1e-1), (0, 1)))),
    "Gaussian SVM": (gaussian_svm, list(product((1.0, 10.0), (0.03, 0.1, 0.3, 1.0)))),
}
"""Every method and its `BUDGET` settings to choose from."""


# -- data --------------------------------------------------------------------------------------


def task_of(name: str, folder: Any, rows: int, seed: int) -> Task:
    """Return training and test rows. Only the training rows determine how both are prepared."""
    data = load(folder, name.removesuffix("-odd"))
    rng = np.random.default_rng(seed)
    if name == "spambase":
        X = np.log1p(10.0 * data["X"])
        parts = train_test_split(
            X, data["y"].astype(np.int64), test_size=1 / 3, random_state=seed, stratify=data["y"]
        )
        X, X_new, y, y_new = parts
    else:
        some = rng.permutation(len(data["y_train"]))[:rows]
        X, X_new = data["X_train"][some], data["X_test"]
        y, y_new = data["y_train"][some].astype(np.int64), data["y_test"].astype(np.int64)
    if name.startswith("mnist"):
        X, X_new = (x.reshape(len(x), -1) / 255.0 for x in (X, X_new))
        y, y_new = (d % 2 if name == "mnist-odd" else (d > 4).astype(np.int64) for d in (y, y_new))
        pca = PCA(30, svd_solver="randomized", random_state=seed).fit(X)
        X, X_new = pca.transform(X), pca.transform(X_new)
        scale = X.std()
        return Task(X / scale, y, X_new / scale, y_new)
    if name == "adult":
        X, X_new = (spread(x, data) for x in (X, X_new))
    scaler = StandardScaler().fit(X)
    return Task(scaler.transform(X), y, scaler.transform(X_new), y_new)


def spread(X: np.ndarray, data: dict[str, np.ndarray]) -> np.ndarray:
    """Turn categories into 0/1 columns, and capital gains and losses into logarithms."""
    columns = []
    for i, name in enumerate(data["feature_names"].tolist()):
        if data["categorical"][i]:
            known = len(data[f"categories_{name.replace('-', '_')}"])
            columns.append((X[:, i, None] == np.arange(known)).astype(np.float64))
        else:
            values = X[:, i, None].astype(np.float64)
            columns.append(np.log1p(values) if name.startswith("capital") else values)
    return np.hstack(columns)


# -- comparing ---------------------------------------------------------------------------------


def main() -> None:
    """Choose settings, fit models and compare them."""
    warnings.filterwarnings("ignore")
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=3000, help="training rows (%(default)s)")
    parser.add_argument(
        "--repeats", type=int, default=3, help="number of training sets (%(default)s)"
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument(
        "--add", action="store_true", help="add to the results of other sets in the --json file"
    )
    args = parser.parse_args()
    results = earlier(args) if args.add else {}
    for name in args.sets:
        runs: dict[str, list[dict[int, Any]]] = {label: [] for label in METHODS}
        for repeat in range(args.repeats):
            whole = task_of(name, args.data, args.rows, args.seed + repeat)
            part = validation(whole, args.seed + repeat)
            for label in METHODS:
                runs[label].append(compare(f"{name} {repeat}", label, part, whole))
            results[name] = {label: summarise(found) for label, found in runs.items()}
            save(args.json, args, ["linear-tree", "lightgbm"], results)
        show(name, results[name], whole)
    draw(results, args)


def earlier(args: Any) -> dict[str, Any]:
    """Return results of other sets, from a run with the same rows, repeats and seed."""
    stored = json.loads(args.json.read_text())
    for setting in ("rows", "repeats", "seed"):
        if stored["provenance"]["settings"][setting] != getattr(args, setting):
            sys.exit(f"{args.json.name} was made with another --{setting}")
    return {
        name: {label: {int(n): one for n, one in of.items()} for label, of in methods.items()}
        for name, methods in stored["results"].items()
    }


def validation(whole: Task, seed: int) -> Task:
    """Split the training rows: three quarters to fit, and a quarter to compare settings."""
    X, X_held, y, y_held = train_test_split(
        whole.X, whole.y, test_size=0.25, random_state=seed, stratify=whole.y
    )
    return Task(X, y, X_held, y_held)


def compare(name: str, label: str, part: Task, whole: Task) -> dict[int, Any]:
    """Choose settings on held-out rows for every number of pieces, and return their results."""
    method, grid = METHODS[label]
    spent, tried = 0.0, []
    for settings in grid:
        seconds, answer = timed(method, part, *settings)
        spent += seconds
        tried.append({n: error(said, part.y_new) for n, (said, _) in answer.items()})
    best = {n: int(np.argmin([errors[n] for errors in tried])) for n in tried[0]}
    answers = {which: timed(method, whole, *grid[which]) for which in sorted(set(best.values()))}
    out = {}
    for n, which in best.items():
        seconds, answer = answers[which]
        said, size = answer[n]
        out[n] = {
            "test": error(said, whole.y_new),
            "held out": tried[which][n],
            "bytes": size,
            "settings": list(grid[which]),
            "seconds of all sizes": seconds,
            "seconds to choose": spent,
        }
    progress(f"{name}, {label}: { ({n: round(o['test'], 4) for n, o in out.items()}) }")
    return out


def summarise(runs: list[dict[int, Any]]) -> dict[int, Any]:
    """Return means and standard errors over the repeats, for every number of pieces."""
    out: dict[int, Any] = {}
    for n in runs[0]:
        tests = np.array([run[n]["test"] for run in runs])
        spread = float(tests.std(ddof=1) / np.sqrt(len(tests))) if len(tests) > 1 else None
        size = float(np.mean([run[n]["bytes"] for run in runs]))
        out[n] = {"test": tests.mean(), "standard error": spread, "bytes": size,
                  "runs": [run[n] for run in runs]}  # fmt: skip
    return out


def shown(found: dict[int, Any], n: int) -> str:
    """Return a test error in per cent, with its standard error."""
    if n not in found:
        return "-"
    spread = found[n]["standard error"]
    return f"{100 * found[n]['test']:.1f}" + ("" if spread is None else f" ± {100 * spread:.1f}")


def show(name: str, methods: dict[str, Any], task: Task) -> None:
    rows = []
    for label, found in methods.items():
        if label == "Gaussian SVM":
            rows.append([label, shown(found, 0), *[""] * (len(PIECES) - 1), found[0]["bytes"]])
            continue
        rows.append([label, *(shown(found, n) for n in PIECES), found[PIECES[-1]]["bytes"]])
    heads = ["test error (%) with pieces:", *map(str, PIECES), "bytes of the last"]
    shape = f"{len(task.y):,} x {task.X.shape[1]} training, {len(task.y_new):,} test rows"
    table(f"{name}: {shape}", heads, rows)


def draw(results: dict[str, Any], args: Any) -> None:
    """Draw test error against pieces, with a panel for every set."""
    sheet, axes = figure(len(results), inches=3.2, height=3.4)
    names = [name for name in SETS if name in results]
    for ax, name in zip(axes, names, strict=True):
        methods = results[name]
        for label, colour in COLOURS.items():
            found = {n: one for n, one in methods[label].items() if n in PIECES}
            errors = [100 * one["test"] for one in found.values()]
            spread = [100 * (one["standard error"] or 0.0) for one in found.values()]
            ax.errorbar(list(found), errors, yerr=spread, color=colour, marker="o", markersize=4,
                        capsize=2, elinewidth=1, label=label)  # fmt: skip
        ax.axhline(100 * methods["Gaussian SVM"][0]["test"], color=INK, linewidth=1,
                   linestyle=(0, (3, 3)), label="Gaussian SVM")  # fmt: skip
        frame(ax, name, "pieces", "test error (%)" if ax is axes[0] else "")
        ax.set_xscale("log")
        logarithmic(ax.xaxis, (1.0, 2.0, 4.0, 8.0))
        ax.set_xlim(0.9, 18)
        ax.set_xticks(PIECES)
    handles, labels = axes[0].get_legend_handles_labels()
    sheet.legend(
        handles, labels, frameon=False, fontsize="small", ncols=5, loc="outside lower center"
    )
    finish(sheet, args)


if __name__ == "__main__":
    main()
