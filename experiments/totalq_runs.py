"""Run the experiments A to E of TotalQBoost, section 4, on one split of a set of Rätsch et al.

Split 0 is that of the paper, 80 % for training and 20 % for validation. Splits 1 to 10 are the
collection's own partitions if they are stored. Otherwise they are drawn in the same sizes.
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _common import load
from benchmarks._raetsch import SETS

from laconic import TotalQBoostClassifier

ROUNDS = 100
# As in the paper, for the loss summed over the m rows. The estimator gets them divided by m.
L1 = 1e-4  # negligibly small yet nonzero
TOLERANCE = 5e-4
NU = np.geomspace(0.1, 60.0, 8)
PRICES = np.geomspace(0.3, 30.0, 8)
# Beyond the paper, F: a price and an l1 term that is not negligible.
BOTH_NU = (1.0, 5.0, 15.0)
BOTH_PRICES = np.array([0.1, 0.3, 1.0, 3.0])


def settings(rows: int) -> dict[str, Any]:
    """Return the settings of all experiments, for a number of training rows."""
    return {"l1": L1 / rows, "tol": TOLERANCE / rows, "fit_intercept": False, "n_jobs": 1}


class Split(NamedTuple):
    """Training rows and validation rows. Models can be chosen on the first half of the latter."""

    X: np.ndarray
    y: np.ndarray
    X_new: np.ndarray
    y_new: np.ndarray


def split_of(folder: Path, name: str, number: int, seed: int) -> Split:
    """Return one split of one set. Draws depend only on the seed, the set and the number."""
    data = load(folder, f"raetsch_{name}")
    X, y = data["X"].astype(np.float64), data["y"].astype(np.int64)
    draw = np.random.default_rng([seed, sorted(SETS).index(name), number])
    order = draw.permutation(len(y))
    fit, new = np.split(order, [int(0.8 * len(y)) if number == 0 else SETS[name][0]])
    stored = data.get("partition", np.empty(0)).tolist()
    if number in stored:
        at = stored.index(number)
        fit, new = data["train_idx"][at], draw.permutation(data["test_idx"][at])
    return Split(X[fit], y[fit], X[new], y[new])


def points_of(entries: Any, settings: Any, split: Split) -> list[list[Any]]:
    """Return the points: setting, atoms, risk with its l1 term, and three numbers of errors.

    The errors are those on the training rows and on both halves of the new rows.
    """
    half, out = len(split.y_new) // 2, []
    for entry, setting in zip(entries, settings, strict=True):
        wrong = (entry.scores(split.X)[:, 0] > 0) != (split.y > 0)
        new = (entry.scores(split.X_new)[:, 0] > 0) != (split.y_new > 0)
        counts = [int(wrong.sum()), int(new[:half].sum()), int(new[half:].sum())]
        out.append([float(f"{setting:.6g}"), entry.size, float(f"{entry.objective:.9g}"), *counts])
    return out


def version(*settings: Any) -> str:
    """Return a few letters for the names of files, which differ for other settings."""
    plain = json.dumps([np.asarray(setting).tolist() for setting in settings])
    return hashlib.sha256(plain.encode()).hexdigest()[:8]


def run(
    name: str, number: int, folder: Path, seed: int, cache: Path, only_known: bool = False
) -> dict[str, Any] | None:
    """Return the results of all experiments on one split.

    A to E, and F, are each read from a file if there is one. The name of a file includes the
    settings. With ``only_known`` nothing is run, and the result is ``None`` without a file for A to
    E.
    """
    task, stem = (name, number, folder, seed), f"{name}_{number}_{seed}"
    shared = (ROUNDS, TOLERANCE, SETS[name])
    paper, beyond = version(*shared, L1, NU, PRICES), version(*shared, BOTH_NU, BOTH_PRICES)
    result = _cached(cache / f"{stem}_{paper}.json", only_known, _paper, *task)
    both = _cached(cache / f"{stem}_both_{beyond}.json", only_known, _both, *task)
    if result is not None and both is not None:
        for key in ("seconds", "points"):
            result[key]["F"] = both[key]["F"]
    return result


def _cached(file: Path, only_known: bool, function: Any, *args: Any) -> dict[str, Any] | None:
    if not file.exists():
        if only_known:
            return None
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(function(*args)))
    known: dict[str, Any] = json.loads(file.read_text())
    return known


def _last(models: list[TotalQBoostClassifier]) -> list[Any]:
    return [model.path_[model.n_atoms_] for model in models]


def _both(name: str, number: int, folder: Path, seed: int) -> dict[str, Any]:
    """Run C with an l1 term and a price."""
    split = split_of(folder, name, number, seed)
    m, found, seconds = len(split.y), [], time.process_time()
    warnings.filterwarnings("ignore", message="no atom is worth its price")
    for nu in BOTH_NU:
        model = TotalQBoostClassifier(ROUNDS, **{**settings(m), "l1": nu / m})
        entries = _last(model.fit_path(split.X, split.y, price=BOTH_PRICES / m))
        found += points_of(entries, BOTH_PRICES, split)
    return {"seconds": {"F": round(time.process_time() - seconds, 3)}, "points": {"F": found}}


def _paper(name: str, number: int, folder: Path, seed: int) -> dict[str, Any]:
    """Run the paper's five experiments."""
    split = split_of(folder, name, number, seed)
    hot, m = SETS[name][1], len(split.y)
    X, y, common = split.X, split.y, settings(m)
    warnings.filterwarnings("ignore", message="no atom is worth its price")

    def a() -> Any:
        model = TotalQBoostClassifier(ROUNDS, price=0.0, **common)
        return _last(model.fit_path(X, y, l1=NU / m)), NU

    def b() -> Any:
        model = TotalQBoostClassifier(ROUNDS, price=0.0, **common).fit(X, y)
        return model.rounds_[1:], range(1, len(model.rounds_))

    def c() -> Any:
        model = TotalQBoostClassifier(ROUNDS, **common)
        return _last(model.fit_path(X, y, price=PRICES / m)), PRICES

    def d() -> Any:
        model = TotalQBoostClassifier(ROUNDS, hot_start=hot, **common)
        return _last(model.fit_path(X, y, price=PRICES / m)), PRICES

    def e() -> Any:
        model = TotalQBoostClassifier(hot, hot_start=hot, **common)
        return _last(model.fit_path(X, y, price=PRICES / m)), PRICES

    result: dict[str, Any] = {
        "set": name,
        "split": number,
        "rows": [len(y), len(split.y_new) // 2, len(split.y_new) - len(split.y_new) // 2],
        "seconds": {},
        "points": {},
    }
    for letter, experiment in zip("ABCDE", (a, b, c, d, e), strict=True):
        began = time.process_time()
        entries, values = experiment()
        result["seconds"][letter] = round(time.process_time() - began, 3)
        result["points"][letter] = points_of(entries, values, split)
    return result
