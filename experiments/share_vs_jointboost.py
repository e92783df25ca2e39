"""Compare stumps of ShareBoost and JointBoost: error at every size, and time. (Figure 5, bottom.)

The data are satellite, pendigits and isolet, with decision stumps (appendix A.4). Both methods
choose from the same stumps, with up to 254 thresholds per feature, found from the same histograms
on the same threads. JointBoost searches subsets of the classes best-first over precomputed class
sums. Its rounds are thus far cheaper than those of a search that passes over the rows for every
subset.

At n stumps, a method counts with its last round of at most n *different* stumps. (JointBoost
chooses some stumps again, and these are not counted twice.) Settings are chosen for every n on a
validation part of the training rows: a quarter at random, or for isolet the speakers of isolet4.
The error there, averaged over five neighbouring sizes, decides. ShareBoost chooses its rule and
Frobenius penalty among `SETTINGS`, and JointBoost its shrinkage among `RATES`. Then all training
rows are used and the test error is computed, once.

Two times are reported, from the fits on all training rows: the time for the same number of stumps,
and the time until the test error is first as low as the best that JointBoost ever reaches.
ShareBoost's time is that of the setting chosen at the largest size. JointBoost's is that of its
plain form, without shrinkage.

To save time, isolet gets two settings of ShareBoost, plain JointBoost and 100 stumps, not 200.

Run: python experiments/share_vs_jointboost.py [--sets satellite pendigits isolet] [--json FILE]
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from _common import (
    BLUE,
    INK,
    ORANGE,
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
    tasks,
    verdict,
)
from jointboost import JointBoost

from laconic import ShareBoostClassifier
from laconic.pools import Stumps

SETTINGS = {
    f"{rule} {alpha:g}": {"rule": rule, "alpha": alpha}
    for rule, alpha in [
        ("gradient", 1e-4),
        ("gradient", 1e-3),
        ("gradient", 3e-3),
        ("gradient", 1e-2),
        ("projection", 1e-4),
    ]
}
RATES = {"rate 1": 1.0, "rate 0.3": 0.3}
STUMPS = {"satellite": 200, "pendigits": 200, "isolet": 100}
OFFERED = {"isolet": {"ShareBoost": ["gradient 0.001", "gradient 0.01"], "JointBoost": ["rate 1"]}}
SHOWN = (1, 2, 3, 5, 10, 20, 30, 50, 75, 100, 120, 150, 200)


class Curve(NamedTuple):
    """Error and seconds at 1, 2, ... stumps."""

    errors: np.ndarray
    seconds: np.ndarray


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(STUMPS), choices=list(STUMPS))
    args = parser.parse_args()
    results = {}
    for name in args.sets:
        results[name] = compare(name, load(args.data, name), args.seed)
    for name, found in results.items():
        found["verdicts"] = judge(name, found)
    save(args.json, args, [], results)
    finish(draw(results), args)


def compare(name: str, data: dict[str, np.ndarray], seed: int) -> dict[str, Any]:
    """Return test errors and seconds of both methods at every size."""
    held, whole = tasks(data, np.float32, seed)
    most = STUMPS[name]
    warm(whole.X, whole.y)
    everything = {"ShareBoost": list(SETTINGS), "JointBoost": list(RATES)}
    offered = OFFERED.get(name, everything)
    errors, chosen, final = {}, {}, {}
    for method, settings in offered.items():
        watched = {s: curve(s, held, most) for s in settings}
        progress(f"{name}: {method} on the validation part")
        picks = np.argmin([steadied(watched[s].errors) for s in settings], axis=0)
        timed_one = settings[picks[-1]] if method == "ShareBoost" else "rate 1"
        needed = {timed_one, *(settings[p] for p in picks)}
        tested = {s: curve(s, whole, most) for s in settings if s in needed}
        progress(f"{name}: {method} on the test part")
        chosen[method] = [settings[p] for p in picks]
        errors[method] = np.array([tested[settings[p]].errors[n] for n, p in enumerate(picks)])
        final[method] = tested[timed_one]
    shown = [n for n in SHOWN if n <= most]
    title = f"{name}: {whole.X.shape[0]} x {whole.X.shape[1]}, {whole.y.max() + 1} classes"
    table(
        f"{title}: test error by number of stumps",
        ["method", *map(str, shown)],
        [[method, *(e[n - 1] for n in shown)] for method, e in errors.items()],
    )
    table(
        f"{title}: seconds by number of stumps",
        ["method", *map(str, shown)],
        [[method, *(c.seconds[n - 1] for n in shown)] for method, c in final.items()],
    )
    goal = float(final["JointBoost"].errors.min())
    until = {method: first_time(c, goal) for method, c in final.items()}
    print(f"seconds and stumps until the error is {goal:.4f}: {until}")
    return {
        "stumps": most,
        "errors": errors,
        "settings": chosen,
        "seconds": {method: c.seconds for method, c in final.items()},
        "timed errors": {method: c.errors for method, c in final.items()},
        "goal": goal,
        "seconds and stumps until the goal": until,
    }


def warm(X: np.ndarray, y: np.ndarray) -> None:
    """Let both methods load and compile what they need."""
    some = np.unique(np.r_[np.unique(y, return_index=True)[1], : len(y) : 20])
    ShareBoostClassifier(2, pool="stumps").fit(X[some], y[some])
    JointBoost(2).fit(Stumps(), X[some], y[some])


def curve(setting: str, task: Task, most: int) -> Curve:
    """Return errors and seconds of one fit at 1 to ``most`` different stumps."""
    if setting in RATES:
        joint = JointBoost(int(1.3 * most), RATES[setting]).fit(Stumps(), task.X, task.y)
        sizes, seconds = joint.sizes(), np.array(joint.seconds)
        scores = joint.staged_scores(task.X_new)
        errors = np.array([error(s.argmax(axis=1), task.y_new) for s in scores])
    else:
        model = ShareBoostClassifier(most, pool="stumps", tol=1e-2, **SETTINGS[setting])
        model.fit(task.X, task.y)
        sizes, seconds = model.path_.sizes, model.path_.seconds
        errors = np.array([error(p, task.y_new) for p in model.staged_predict(task.X_new)])
    at = np.searchsorted(sizes, np.arange(1, most + 1), side="right") - 1
    return Curve(errors[at], seconds[at])


def steadied(errors: np.ndarray) -> np.ndarray:
    """Return means over up to five neighbouring sizes.

    So the choice does not depend on a few rows.
    """
    window = np.ones(5)
    return np.convolve(errors, window, "same") / np.convolve(np.ones_like(errors), window, "same")


def first_time(found: Curve, goal: float) -> tuple[float, int] | None:
    """Return seconds and stumps until the error is first at most ``goal``."""
    there = np.flatnonzero(found.errors <= goal)
    return (float(found.seconds[there[0]]), int(there[0]) + 1) if len(there) else None


def judge(name: str, found: dict[str, Any]) -> list[dict[str, Any]]:
    """Judge the errors at every size, and the two ratios of times."""
    print()
    ours, theirs = found["errors"]["ShareBoost"], found["errors"]["JointBoost"]
    found["not below"] = np.flatnonzero(ours >= theirs) + 1
    times = found["seconds"]
    same_size = times["JointBoost"][-1] / times["ShareBoost"][-1]
    until = found["seconds and stumps until the goal"]
    verdicts = [
        verdict(
            f"{name}, sizes at which ShareBoost is not below", len(found["not below"]), 0, False
        ),
        verdict(f"{name}, JointBoost's time / ours, same size", same_size, 10.0, True),
    ]
    if until["ShareBoost"] is not None:
        ratio = until["JointBoost"][0] / until["ShareBoost"][0]
        verdicts.append(verdict(f"{name}, JointBoost's time / ours, same error", ratio, 10.0, True))
    return verdicts


def draw(results: dict[str, Any]) -> Any:
    """Draw test error against the number of stumps, with a panel for every set."""
    sheet, axes = figure(len(results), 4.0, 3.5)
    for ax, (name, found) in zip(axes, results.items(), strict=True):
        sizes = np.arange(1, found["stumps"] + 1)
        frame(ax, name, "stumps", "test error (%)")
        for method, colour in (("JointBoost", ORANGE), ("ShareBoost", BLUE)):
            label = f"{method}, {found['seconds'][method][-1]:.1f} s"
            ax.plot(sizes, 100 * found["errors"][method], color=colour, label=label, linewidth=1.8)
        ax.set_xscale("log")
        ax.set_yscale("log")
        logarithmic(ax.xaxis)
        logarithmic(ax.yaxis)
        ax.legend(frameon=False, labelcolor=INK, fontsize="small", loc="lower left")
    return sheet


if __name__ == "__main__":
    main()
