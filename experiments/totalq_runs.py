"""One split of one set of the Rätsch collection: the experiments A to E of TotalQBoost, section 4.

Split 0 is the paper's, 80 % to learn from and 20 % to validate on; splits 1 to 10 are the
collection's own partitions where they are stored, else drawn in its sizes.
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
# As in the paper for the loss summed over the m rows; the estimator is given them by m.
L1 = 1e-4  # negligibly small yet nonzero
TOLERANCE = 5e-4
NU = np.geomspace(0.1, 60.0, 8)
PRICES = np.geomspace(0.3, 30.0, 8)
# Beyond the paper, F: a price beside an l1 term that is not negligible.
BOTH_NU = (1.0, 5.0, 15.0)
BOTH_PRICES = np.array([0.1, 0.3, 1.0, 3.0])


def settings(rows: int) -> dict[str, Any]:
    """What all experiments share, for so many training rows."""
    return {"l1": L1 / rows, "tol": TOLERANCE / rows, "fit_intercept": False, "n_jobs": 1}


class Split(NamedTuple):
    """Rows to learn from, and rows to validate on: the first half of them to choose by."""

    X: np.ndarray
    y: np.ndarray
    X_new: np.ndarray
    y_new: np.ndarray


def split_of(folder: Path, name: str, number: int, seed: int) -> Split:
    """One split of one set; what is drawn depends on the seed, the set and the number alone."""
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
    """Setting, atoms, risk with its l1 term, and rows wrong: training, both halves of the new."""
    half, out = len(split.y_new) // 2, []
    for entry, setting in zip(entries, settings, strict=True):
        wrong = (entry.scores(split.X)[:, 0] > 0) != (split.y > 0)
        new = (entry.scores(split.X_new)[:, 0] > 0) != (split.y_new > 0)
        counts = [int(wrong.sum()), int(new[:half].sum()), int(new[half:].sum())]
        out.append([float(f"{setting:.6g}"), entry.size, float(f"{entry.objective:.9g}"), *counts])
    return out


def version(*settings: Any) -> str:
    """Settings as a few letters, for the names of files: other settings have other names."""
    plain = json.dumps([np.asarray(setting).tolist() for setting in settings])
    return hashlib.sha256(plain.encode()).hexdigest()[:8]


def run(
    name: str, number: int, folder: Path, seed: int, cache: Path, only_known: bool = False
) -> dict[str, Any] | None:
    """All experiments on one split, A to E and F each from a file where they are known.

    A file is known by its name, which says the settings too. With ``only_known`` nothing else:
    ``None`` without A to E.
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
    """C with an l1 term beside the price."""
    split = split_of(folder, name, number, seed)
    m, found, seconds = len(split.y), [], time.process_time()
    warnings.filterwarnings("ignore", message="no atom is worth its price")
    for nu in BOTH_NU:
        model = TotalQBoostClassifier(ROUNDS, **{**settings(m), "l1": nu / m})
        entries = _last(model.fit_path(split.X, split.y, price=BOTH_PRICES / m))
        found += points_of(entries, BOTH_PRICES, split)
    return {"seconds": {"F": round(time.process_time() - seconds, 3)}, "points": {"F": found}}


def _paper(name: str, number: int, folder: Path, seed: int) -> dict[str, Any]:
    """The paper's five experiments."""
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
