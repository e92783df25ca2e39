"""What does correcting all weights after every stump cost, and what does it gain?

200 stumps are fitted on a synthetic set of 1,000,000 training rows, 50 features and 3 classes (15
features matter, non-linearly; the Bayes error is known), and on adult. The peers are boosters that
do not correct: AdaBoost of scikit-learn on stumps, and HistGradientBoosting and LightGBM with trees
of two leaves. Errors are compared at equal numbers of stumps. With three classes or more, the last
two grow one tree per class and round. AdaBoost and Laconic grow one stump per round.

Every method has one setting. It is chosen separately for every number of stumps, on a validation
part of the training rows. The peers choose their learning rate among 0.1, 0.3 and 1.0, and Laconic
its rule among "gradient" and "projection". Times are for 200 rounds on all cores. LightGBM's is the
shortest of three, without the construction of its data set. Laconic's includes everything. AdaBoost
is timed for four rounds on all rows. For its errors it learns from at most 100,000 training rows.

Run: python benchmarks/stumps.py [--sets synthetic adult] [--rows N] [--json FILE]
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from _common import (
    CORES,
    TimedPool,
    arguments,
    load,
    progress,
    save,
    start_up,
    table,
    timed,
    verdict,
)
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import AdaBoostClassifier, HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

ROUNDS = 200
SHOWN = (1, 2, 5, 10, 20, 50, 100, 200)
RATES = (0.1, 0.3, 1.0)
ADABOOST_ROWS = 100_000


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", default=["synthetic", "adult"])
    parser.add_argument(
        "--rows", type=int, default=1_000_000, help="number of training rows of synthetic"
    )
    parser.add_argument("--alpha", type=float, help="strength of our penalty (auto)")
    parser.add_argument("--skip-errors", action="store_true", help="measure only the times")
    args = parser.parse_args()
    alpha = "auto" if args.alpha is None else args.alpha
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    results = {}
    for name in args.sets:
        task = (
            synthetic(args.rows, args.seed) if name == "synthetic" else adult(load(args.data, name))
        )
        results[name] = times(task, alpha)
        if not args.skip_errors:
            results[name] |= compared(task, args.seed, alpha)
    for name, found in results.items():
        found["verdicts"] = judge(name, found)
    save(args.json, args, ["lightgbm"], results)


class Task(NamedTuple):
    """A classification task. Categories are coded by numbers and missing values by NaN."""

    title: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    categorical: np.ndarray

    @property
    def k(self) -> int:
        """Number of classes, which are numbered from 0."""
        return int(self.y.max()) + 1


def synthetic(rows: int, seed: int, d: int = 50, k: int = 3, informative: int = 15) -> Task:
    """Draw a task whose scores are waves and steps of features and a few products of two.

    Four rows in five are for training. Labels are drawn from the softmax of the class scores, so
    the Bayes error is the mean of 1 − the largest probability.
    """
    rng = np.random.default_rng(seed)
    size = rng.uniform(0.2, 0.8, (informative, k))
    speed = rng.uniform(0.5, 3.0, (informative, k))
    phase = rng.uniform(0.0, 2.0 * np.pi, (informative, k))
    step = rng.normal(0.0, 0.6, (informative, k))
    place = rng.normal(0.0, 1.0, (informative, k))
    pair = rng.normal(0.0, 0.3, (5, k))

    def scores(block: np.ndarray) -> np.ndarray:
        f = np.zeros((len(block), k))
        for j in range(informative):
            v = block[:, j, None].astype(np.float64)
            f += size[j] * np.sin(speed[j] * v + phase[j]) + step[j] * (v > place[j])
        for j in range(len(pair)):
            f += pair[j] * (block[:, 2 * j] * block[:, 2 * j + 1])[:, None]
        return f

    centre = scores(rng.standard_normal((20_000, d), dtype=np.float32)).mean(axis=0)
    X = rng.standard_normal((rows * 5 // 4, d), dtype=np.float32)
    y = np.empty(len(X), dtype=np.int64)
    doubt = 0.0
    for start in range(0, len(X), 1 << 16):
        f = scores(X[start : start + (1 << 16)]) - centre
        p = np.exp(f - f.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        doubt += float((1.0 - p.max(axis=1)).sum())
        y[start : start + len(p)] = (p.cumsum(axis=1)[:, :-1] < rng.random((len(p), 1))).sum(axis=1)
    title = f"synthetic {rows} x {d}, {k} classes, Bayes error {doubt / len(X):.4f}"
    return Task(title, X[:rows], y[:rows], X[rows:], y[rows:], np.zeros(d, dtype=bool))


def adult(data: dict[str, np.ndarray]) -> Task:
    """Return the census data with its official split."""

    def numbers(X: np.ndarray) -> np.ndarray:
        out = X.astype(np.float64)
        out[:, data["categorical"]] = np.where(X < 0, np.nan, out)[:, data["categorical"]]
        return out

    X, X_test = numbers(data["X_train"]), numbers(data["X_test"])
    y, y_test = data["y_train"].astype(np.int64), data["y_test"].astype(np.int64)
    return Task(f"adult {X.shape[0]} x {X.shape[1]}", X, y, X_test, y_test, data["categorical"])


# -- the peers -------------------------------------------------------------------------------------


class Booster(ABC):
    """A booster of stumps that can predict after every round."""

    name: str
    settings: tuple[Any, ...] = RATES
    """Settings to choose from."""
    limit: int | None = None
    """Largest number of training rows for the errors."""
    rounds = ROUNDS
    """Number of rounds that are timed."""
    repeats = 1
    """Number of timed fits; the shortest time counts."""

    def __init__(self, task: Task) -> None:
        self.task = task

    @property
    def trees(self) -> int:
        """Number of stumps grown in a round."""
        return self.task.k if self.task.k > 2 else 1

    @abstractmethod
    def fit(self, X: np.ndarray, y: np.ndarray, setting: Any, rounds: int) -> tuple[float, Any]:
        """Return the seconds and the model."""

    def stages(self, model: Any, X: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the classes predicted after every round."""
        return model.staged_predict(X)


class LightGBM(Booster):
    """LightGBM, trees of two leaves."""

    name = "LightGBM"
    repeats = 3

    def fit(self, X: np.ndarray, y: np.ndarray, setting: Any, rounds: int) -> tuple[float, Any]:
        """Time the rounds, without the construction of the data set."""
        import lightgbm

        several = self.task.k > 2
        settings = {
            "objective": "multiclass" if several else "binary",
            "num_class": self.task.k if several else 1,
            "num_leaves": 2,
            "learning_rate": setting,
            "num_threads": CORES,
            "verbose": -1,
        }
        listed = np.flatnonzero(self.task.categorical).tolist()
        rows = lightgbm.Dataset(X, y, categorical_feature=listed or "auto", params=settings)
        rows.construct()
        return timed(lightgbm.train, settings, rows, num_boost_round=rounds)

    def stages(self, model: Any, X: np.ndarray) -> Iterator[np.ndarray]:
        """Add up the scores of single rounds."""
        total: Any = 0.0
        for stage in range(model.current_iteration()):
            total = total + model.predict(X, stage, 1, raw_score=True, num_threads=CORES)
            yield total.argmax(axis=1) if total.ndim == 2 else (total > 0).astype(int)


class HistGradientBoosting(Booster):
    """scikit-learn's histogram boosting, trees of two leaves."""

    name = "HistGradientBoosting"

    def fit(self, X: np.ndarray, y: np.ndarray, setting: Any, rounds: int) -> tuple[float, Any]:
        """Time the fit."""
        model = HistGradientBoostingClassifier(
            max_leaf_nodes=2,
            max_iter=rounds,
            learning_rate=setting,
            early_stopping=False,
            categorical_features=self.task.categorical,
        )
        return timed(model.fit, X, y)


class AdaBoost(Booster):
    """scikit-learn's AdaBoost on decision stumps, categories one-hot."""

    name = "AdaBoost"
    limit = ADABOOST_ROWS
    rounds = 4
    trees = 1

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        one_hot = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
        named = np.flatnonzero(task.categorical)
        self.encoder = ColumnTransformer([("categories", one_hot, named)], remainder="passthrough")
        self.encoder.fit(task.X[:ADABOOST_ROWS])

    def fit(self, X: np.ndarray, y: np.ndarray, setting: Any, rounds: int) -> tuple[float, Any]:
        """Time the fit, without the encoding."""
        stump = DecisionTreeClassifier(max_depth=1)
        model = AdaBoostClassifier(
            stump, n_estimators=rounds, learning_rate=setting, random_state=0
        )
        return timed(model.fit, self.encoder.transform(X), y)

    def stages(self, model: Any, X: np.ndarray) -> Iterator[np.ndarray]:
        """Predict from the encoded categories."""
        return model.staged_predict(self.encoder.transform(X))


def curve(peer: Booster, model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the errors at 1 to `ROUNDS` stumps.

    Before the first complete round, this is the error of the most frequent class.
    """
    out = np.full(ROUNDS, 1.0 - np.bincount(peer.task.y).max() / len(peer.task.y))
    for stage, predicted in enumerate(peer.stages(model, X), start=1):
        if stage * peer.trees > ROUNDS:
            break
        out[stage * peer.trees - 1 :] = np.mean(predicted != y)
    return out


def chosen_curve(booster: Booster, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return test error and setting at every number of stumps. Validation chooses the setting."""
    task = booster.task
    n = min(len(task.y), int(1.25 * booster.limit)) if booster.limit else len(task.y)
    fit, watch = train_test_split(np.arange(n), test_size=0.2, random_state=seed)
    rounds = -(-ROUNDS // booster.trees)
    watched, tested = [], []
    for setting in booster.settings:
        progress(f"{task.title}: {booster.name}, {setting}")
        model = booster.fit(task.X[fit], task.y[fit], setting, rounds)[1]
        watched.append(curve(booster, model, task.X[watch], task.y[watch]))
        if not booster.limit:
            model = booster.fit(task.X, task.y, setting, rounds)[1]
        tested.append(curve(booster, model, task.X_test, task.y_test))
    choice = np.argmin(watched, axis=0)
    return np.array(tested)[choice, np.arange(ROUNDS)], np.array(booster.settings)[choice]


class Laconic(Booster):
    """ShareBoost on stumps."""

    name = "Laconic"
    settings = ("gradient", "projection")
    trees = 1

    def __init__(self, task: Task, alpha: float | str) -> None:
        from laconic.pools import Stumps

        super().__init__(task)
        self.alpha = alpha
        self.pool = Stumps(categorical=np.flatnonzero(task.categorical).tolist() or None)

    def fit(self, X: np.ndarray, y: np.ndarray, setting: Any, rounds: int) -> tuple[float, Any]:
        """Time the fit."""
        from laconic import ShareBoostClassifier

        model = ShareBoostClassifier(rounds, pool=self.pool, rule=setting, alpha=self.alpha)
        return timed(model.fit, X, y)

    def stages(self, model: Any, X: np.ndarray) -> Iterator[np.ndarray]:
        """Yield predictions of every size. The path is nested, so all share the same columns."""
        columns = model.path_.entries[-1].map.columns(X)
        for entry in model.path_.entries[1:]:
            scores = columns[:, : entry.size] @ entry.input_weights() + entry.intercept
            yield model.classes_[scores.argmax(axis=1)]

    def seconds(self) -> dict[str, float]:
        """Return the seconds of the parts of a fit at the defaults."""
        from laconic import ShareBoostClassifier

        X, y, clocked = self.task.X, self.task.y, TimedPool(self.pool)
        few = np.unique(np.r_[np.unique(y, return_index=True)[1], : min(4000, len(y))])
        small = ShareBoostClassifier(max_atoms=2, pool=TimedPool(self.pool))
        once = start_up(lambda: small.fit(X[few], y[few]))
        model = ShareBoostClassifier(max_atoms=ROUNDS, pool=clocked, alpha=self.alpha)
        whole = timed(model.fit, X, y)[0] + once
        looped = float(model.path_.seconds[-1])
        return {
            "start-up": once,
            "preparing": whole - once - looped,
            "scoring": clocked.scoring,
            "correcting": looped - clocked.scoring,
            "whole": whole,
            "rounds": len(model.path_) - 1,
        }


def peers_on(task: Task) -> list[Booster]:
    return [LightGBM(task), HistGradientBoosting(task), AdaBoost(task)]


def times(task: Task, alpha: float | str) -> dict[str, Any]:
    """Return the seconds of the parts of Laconic's fit, and of one round of every method."""
    seconds = Laconic(task, alpha).seconds()
    table(
        f"{task.title}: seconds of Laconic, {seconds['rounds']} rounds",
        ["part", "seconds", "a round"],
        [[p, s, s / seconds["rounds"]] for p, s in seconds.items() if p != "rounds"],
    )
    a_round = {
        "Laconic scoring": seconds["scoring"] / seconds["rounds"],
        "Laconic corrected round": seconds["whole"] / seconds["rounds"],
    }
    for peer in peers_on(task):
        runs = [peer.fit(task.X, task.y, 0.1, peer.rounds)[0] for _ in range(peer.repeats)]
        a_round[peer.name] = min(runs) / peer.rounds
    table(f"{task.title}: seconds a round", ["method", "seconds"], a_round.items())
    return {"title": task.title, "seconds": seconds, "seconds a round": a_round}


def compared(task: Task, seed: int, alpha: float | str) -> dict[str, Any]:
    """Return test errors at every number of stumps, and the sizes where ours are not the lowest."""
    errors, chosen = {}, {}
    for booster in (Laconic(task, alpha), *peers_on(task)):
        errors[booster.name], chosen[booster.name] = chosen_curve(booster, seed)
    table(
        f"{task.title}: test error by number of stumps",
        ["method", *map(str, SHOWN)],
        [[name, *(e[n - 1] for n in SHOWN)] for name, e in errors.items()],
    )
    table(
        f"{task.title}: setting chosen by validation",
        ["method", *map(str, SHOWN)],
        [[name, *(r[n - 1] for n in SHOWN)] for name, r in chosen.items()],
    )
    ours = errors["Laconic"]
    best = np.min([e for name, e in errors.items() if name != "Laconic"], axis=0)
    deviation = np.sqrt(best * (1.0 - best) / len(task.y_test))
    counts = np.arange(1, ROUNDS + 1)
    return {
        "errors": errors,
        "chosen": chosen,
        "sizes above": counts[(counts >= 10) & (ours > best + deviation)],
        "sizes not below": counts[(counts >= 20) & (ours >= best)],
    }


def judge(name: str, found: dict[str, Any]) -> list[dict[str, Any]]:
    a_round = found["seconds a round"]
    scoring, corrected = a_round["Laconic scoring"], a_round["Laconic corrected round"]
    print()
    judged = [
        verdict(
            f"{name}, our scoring / LightGBM's round", scoring / a_round["LightGBM"], 3.0, False
        ),
        verdict(f"{name}, our round / LightGBM's", corrected / a_round["LightGBM"], 15.0, False),
        verdict(f"{name}, AdaBoost's round / ours", a_round["AdaBoost"] / corrected, 20.0, True),
    ]
    if "errors" in found:
        above, not_below = len(found["sizes above"]), len(found["sizes not below"])
        judged += [
            verdict(f"{name}, sizes from 10 on above the best peer + 1 s.e.", above, 0, False),
            verdict(f"{name}, sizes from 20 on not below every peer", not_below, 0, False),
        ]
    return judged


if __name__ == "__main__":
    main()
