"""Test error against the number of holes, with and without error clumping (figure 2 of the paper).

Five ways to split the ten digits into two classes: 0-4 against 5-9, and four random ones. The
70,000 digits are halved at random, three times; models learn from the first rows of one half and
are tested on the whole other half. Hole punching as in section 5.2, with η = 0 and η = 0.5.

The paper gives neither λ nor ρ. Two regimes are shown:

* `strong`: λ so large that w₀ is wrong about as often as the paper's (25.7 % on 0-4 against 5-9);
  for each η the neighbourhoods (normalisation and ρ) are chosen on validation rows. The holes are
  found exactly as in the paper.
* `tuned`: for each η everything is chosen on validation rows, λ too, and every round compares the
  balls around 64 centres (`n_candidates`) instead of taking the first.

Settings are chosen by `--tune`: fits to fewer rows, compared on other rows of the same half of the
first halving, by the mean error over 3 to 20 holes and the five problems. No test row is read.

Run: python experiments/holes_mnist.py [--tune] [--rows N] [--regimes strong tuned] [--json FILE]
"""

from __future__ import annotations

import argparse
from itertools import product
from typing import Any

import numpy as np
from _common import (
    BLUE,
    ORANGE,
    arguments,
    figure,
    frame,
    load,
    progress,
    save,
    table,
    timed,
)

from laconic import ErrorClumpingClassifier, HolePunchingClassifier
from laconic.regions.neighbours import auto_radius

HOLES, FIRST = 20, 3
HALVINGS = 3
HALF = 35_000
MIN_ROWS = 10
DISCOUNTS = (0.0, 0.5)
TOLERANCE = 1e-3
TUNED_ON, TUNED_BY = 4_000, 5_000

Settings = dict[str, Any]
# Neighbourhoods: normalisation, and the share of the pairs of rows within ρ.
NEAR = {0.0: [("degree", share) for share in (0.05, 0.1, 0.2)]}
NEAR[0.5] = list(product(("degree", "pairs"), (0.05, 0.1, 0.2, 0.3)))
STRONG: list[Settings] = [{"alpha": 100.0, "candidates": 1}]
WEAK: list[Settings] = [{"alpha": alpha, "candidates": 64} for alpha in (0.01, 0.1, 1.0)]
TRIED = {"strong": (STRONG, NEAR), "tuned": (WEAK, {eta: NEAR[eta][:1] for eta in DISCOUNTS})}
# What --tune chose.
CHOSEN: dict[str, dict[float, Settings]] = {
    "strong": {
        0.0: {"alpha": 100.0, "candidates": 1, "normalize": "degree", "share": 0.05},
        0.5: {"alpha": 100.0, "candidates": 1, "normalize": "degree", "share": 0.2},
    },
    "tuned": {
        0.0: {"alpha": 0.01, "candidates": 64, "normalize": "degree", "share": 0.05},
        0.5: {"alpha": 0.01, "candidates": 64, "normalize": "degree", "share": 0.05},
    },
}


def main() -> None:
    """Tune, or fit and compare."""
    parser = arguments(__doc__)
    parser.add_argument("--tune", action="store_true", help="compare settings, read no test row")
    parser.add_argument("--rows", type=int, default=10_000, help="rows to learn from (%(default)s)")
    parser.add_argument("--regimes", nargs="+", choices=list(CHOSEN), default=list(CHOSEN))
    args = parser.parse_args()
    data = load(args.data, "mnist")
    X = np.concatenate([data["X_train"], data["X_test"]]).reshape(2 * HALF, -1)
    X = X.astype(np.float32) / np.float32(255)
    digit = np.concatenate([data["y_train"], data["y_test"]])
    if args.tune:
        tried = {regime: tune(X, digit, regime, args.seed) for regime in args.regimes}
        save(args.json, args, [], {"rows": TUNED_ON, "tried": tried})
        return
    results: dict[str, Any] = {"problems": [names(p) for p in problems(args.seed)], "curves": {}}
    for regime in args.regimes:
        results["curves"][regime] = curves(X, digit, regime, args, results)
    compare(results)
    save(args.json, args, [], results)
    if args.json is not None:
        draw(results, args)


def problems(seed: int) -> list[np.ndarray]:
    """The digits of the first class in five binary problems, 0-4 first."""
    rng = np.random.default_rng(seed)
    others = [np.sort(rng.permutation(10)[:5]) for _ in range(4)]
    return [np.arange(5), *others]


def names(first: np.ndarray) -> str:
    """A problem in words."""
    rest = np.setdiff1d(np.arange(10), first)
    return f"{''.join(map(str, first))} | {''.join(map(str, rest))}"


def punched(X: np.ndarray, y: np.ndarray, discount: float, settings: Settings) -> Any:
    """A fitted hole puncher."""
    radius = auto_radius(X, share=settings["share"])
    base = ErrorClumpingClassifier(
        settings["alpha"],
        discount=discount,
        radius=radius,
        normalize=settings["normalize"],
        tol=TOLERANCE,
    )
    model = HolePunchingClassifier(
        base, HOLES, radius=radius, min_rows=MIN_ROWS, n_candidates=settings["candidates"]
    )
    return model.fit(X, y)


def staged_errors(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Errors with 0 to 20 holes; a model with fewer keeps its last."""
    errors = [float(np.mean(p != y)) for p in model.staged_predict(X)]
    return np.array(errors + [errors[-1]] * (HOLES + 1 - len(errors)))


# -- settings ----------------------------------------------------------------------------------


def tune(X: np.ndarray, digit: np.ndarray, regime: str, seed: int) -> list[Settings]:
    """Validation errors of every setting, best first for each discount."""
    half = np.random.default_rng(seed).permutation(2 * HALF)[:HALF]
    fit, held = half[:TUNED_ON], half[-TUNED_BY:]
    grid, near = TRIED[regime]
    out = []
    for discount in DISCOUNTS:
        for given, (normalize, share) in product(grid, near[discount]):
            settings = {**given, "normalize": normalize, "share": share}
            found = []
            for first in problems(seed):
                y = np.isin(digit, first)
                model = punched(X[fit], y[fit], discount, settings)
                found.append(staged_errors(model, X[held], y[held]))
            mean = float(np.mean([errors[FIRST:] for errors in found]))
            start = float(np.mean([errors[0] for errors in found]))
            out.append({"discount": discount, **settings, "error": mean, "without holes": start})
            progress(f"{regime}: {out[-1]}")
    out.sort(key=lambda tried: (tried["discount"], tried["error"]))
    table(
        f"{regime}: mean validation error, {FIRST} to {HOLES} holes, five problems",
        list(out[0]),
        [list(tried.values()) for tried in out],
    )
    return out


# -- the figure --------------------------------------------------------------------------------


def curves(
    X: np.ndarray,
    digit: np.ndarray,
    regime: str,
    args: argparse.Namespace,
    results: dict[str, Any],
) -> list[dict[str, Any]]:
    """Test errors of every problem, discount and halving."""
    out: list[dict[str, Any]] = []
    for halving in range(HALVINGS):
        order = np.random.default_rng([args.seed, halving]).permutation(2 * HALF)
        fit, test = order[: args.rows], order[HALF:]
        for number, first in enumerate(problems(args.seed)):
            y = np.isin(digit, first)
            for discount in DISCOUNTS:
                settings = CHOSEN[regime][discount]
                seconds, model = timed(punched, X[fit], y[fit], discount, settings)
                out.append(
                    {
                        "problem": number,
                        "halving": halving,
                        "discount": discount,
                        "seconds": seconds,
                        "test": staged_errors(model, X[test], y[test]),
                        "training": model.errors_,
                        "rows": [hole.n_rows for hole in model.holes_],
                    }
                )
                last = out[-1]["test"]
                progress(f"{regime} {names(first)} η={discount}: {last[0]:.4f} → {last[-1]:.4f}")
        results["curves"][regime] = out
        save(args.json, args, [], results)  # a run that is cut short leaves what it has
    return out


def summary(runs: list[dict[str, Any]], problem: int, discount: float) -> tuple[Any, Any]:
    """Mean test errors over the halvings, and their standard error."""
    of = np.array(
        [r["test"] for r in runs if r["problem"] == problem and r["discount"] == discount]
    )
    spread = of.std(axis=0, ddof=1) / np.sqrt(len(of)) if len(of) > 1 else np.zeros(HOLES + 1)
    return of.mean(axis=0), spread


def compare(results: dict[str, Any]) -> None:
    """Print test errors, and where clumping falls below plain for good."""
    results["compared"] = {}
    for regime, runs in results["curves"].items():
        rows, below = [], []
        for number, name in enumerate(results["problems"]):
            (plain, _), (clumped, _) = (summary(runs, number, eta) for eta in DISCOUNTS)
            pairs = {
                (r["halving"], r["discount"]): r["test"] for r in runs if r["problem"] == number
            }
            gaps = np.array([pairs[h, 0.0] - pairs[h, 0.5] for h in range(HALVINGS)])
            error = gaps.std(axis=0, ddof=1) / np.sqrt(HALVINGS)
            above = np.flatnonzero(clumped >= plain)
            since = int(above[-1]) + 1 if len(above) else 0
            below.append({"problem": name, "since": since if since <= HOLES else None})
            below[-1] |= {"gap": gaps.mean(axis=0), "standard error": error}
            for eta, mean in zip(DISCOUNTS, (plain, clumped), strict=True):
                rows.append([name, eta, *(100 * mean[[0, 1, 2, 5, 10, 20]])])
            rows.append(["  gap ± s.e. at 20 holes", "", *[""] * 4,
                         f"{100 * gaps.mean(axis=0)[-1]:.2f}±{100 * error[-1]:.2f}",
                         f"since {below[-1]['since']}"])  # fmt: skip
        table(f"{regime}: test error (%) with 0, 1, 2, 5, 10 and 20 holes",
              ["problem", "η", "0", "1", "2", "5", "10", "20"], rows)  # fmt: skip
        results["compared"][regime] = below


def draw(results: dict[str, Any], args: argparse.Namespace) -> None:
    """A panel for every problem, a picture for every regime."""
    across = np.arange(HOLES + 1)
    for regime, runs in results["curves"].items():
        sheet, axes = figure(len(results["problems"]), inches=2.7, height=2.9)
        for number, (ax, name) in enumerate(zip(axes, results["problems"], strict=True)):
            for eta, colour in zip(DISCOUNTS, (ORANGE, BLUE), strict=True):
                mean, spread = (100 * part for part in summary(runs, number, eta))
                label = "error clumping, η = 0.5" if eta else "plain, η = 0"
                ax.plot(across, mean, color=colour, linewidth=1.8, label=label)
                ax.fill_between(across, mean - spread, mean + spread, color=colour, alpha=0.2,
                                linewidth=0)  # fmt: skip
            frame(ax, name, "holes", "test error (%)" if number == 0 else "")
            ax.set_xticks([0, 5, 10, 15, 20])
        axes[0].legend(frameon=False, fontsize="small")
        if args.json is not None:
            sheet.savefig(args.json.with_name(f"{args.json.stem}_{regime}.png"), dpi=130)


if __name__ == "__main__":
    main()
