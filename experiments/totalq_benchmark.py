"""Does a price on every weak learner help? (TotalQBoost section 5.1: figure 3 and table 1.)

The data are twelve sets of the Rätsch collection, with decision stumps at every threshold and the
exponential loss. On every split there are these experiments:

* A, l1-regularised column generation for `NU`;
* B, unregularised with early stopping, every round;
* C, with a price for every atom, for `PRICES`;
* D, the same, hot-started from T′ columns;
* E, one subset search over those columns;
* F, beyond the paper: C with an l1 term that is not negligible, `BOTH_NU` times `BOTH_PRICES`.

T = 100, T′ is that of appendix C, and subsets are found by local search. ν, λ and the tolerance of
5e-4 are for the loss summed over the m rows, as in the paper. The estimator gets them divided by m.

Split 0 is 80/20, as in the paper. It is drawn here, because the paper's own split is not known.
Splits 1 to 10 are the collection's partitions. The frontier of one split is read as in the paper.
That reading is optimistic, because it takes the best of many points on the same rows that judge
them. So there are two more readings: the frontier of errors *averaged* over the partitions, setting
by setting; and models chosen on the first half of the validation rows and judged on the second.

Splits are cached one by one (`--cache`), so that an interrupted run can continue.

With `--cluster ADDRESS`, the splits run on the workers of a Dask cluster. They must see the same
folders as this machine.

Run: python experiments/totalq_benchmark.py [--splits 0 1 2] [--sets heart] [--json FILE]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import totalq_frontier as reading
from _common import (
    BLUE,
    CORES,
    INK,
    ORANGE,
    PURPLE,
    ROOT,
    arguments,
    finish,
    frame,
    logarithmic,
    progress,
    save,
    table,
    verdict,
)
from joblib import Parallel, delayed, parallel_config
from totalq_runs import BOTH_NU, BOTH_PRICES, NU, PRICES, SETS

# Sets on which the paper's one split shows a sparsity or generalisation gain (table 1).
PAPER = {
    "banana", "diabetis", "flare_solar", "german", "image", "ringnorm", "splice", "twonorm",
    "waveform",
}  # fmt: skip


def one_split(result: dict[str, Any]) -> dict[str, Any]:
    """Read one split as table 1 does: the five best points with a gain, and their number."""
    convex = reading.points(result, reading.CONVEX)
    found = reading.gains(reading.points(result, reading.PRICED), convex)
    found.sort(key=lambda gain: gain["error"])
    families = [x for x in ("AB", "CDE", "F") if all(y in result["points"] for y in x)]
    best = {x: min(reading.points(result, x), key=lambda p: (p[1], p[0])) for x in families}
    return {
        "best_convex": min(error for _, error in convex),
        "best": {x: {"atoms": n, "error": error} for x, (n, error) in best.items()},
        "gains": len(found),
        "top": found[:5],
    }


def many_splits(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return errors averaged over the partitions, gains of their frontiers, and chosen models.

    Models are chosen on the first half of the validation rows and judged on the second.
    """
    letters_known = "".join(x for x in "ABCDEF" if all(x in r["points"] for r in results))
    means = {letter: reading.averaged(results, letter) for letter in letters_known}

    def pairs(letters: str) -> list[tuple[float, float]]:
        return [(p["atoms"], p["error"]) for letter in letters for p in means[letter]]

    found = reading.gains(pairs(reading.PRICED), pairs(reading.CONVEX))
    picked = {
        letters: [reading.chosen(r, letters) for r in results]
        for letters in ("AB", "CDE", *letters_known)
    }

    def against(letters: str) -> dict[str, list[float]]:
        """Return how much less error and how many fewer atoms than the best of A and B.

        Both are means with one standard error.
        """
        pairs = list(zip(picked["AB"], picked[letters], strict=True))
        lead, fewer = [b[1] - c[1] for b, c in pairs], [b[0] - c[0] for b, c in pairs]
        return {
            "less_error": [float(np.mean(lead)), reading.standard_error(lead)],
            "fewer_atoms": [float(np.mean(fewer)), reading.standard_error(fewer)],
        }

    return {
        "splits": len(results),
        "means": means,
        "gains": found,
        "chosen": {
            letters: {
                "atoms": float(np.mean([n for n, _ in of])),
                "error": float(np.mean([e for _, e in of])),
            }
            for letters, of in picked.items()
        },
        "priced": against("CDE"),
        **({"both": against("F")} if "F" in letters_known else {}),
    }


def consistency(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how often E is worse than B, and D than E, at the same size."""
    out: dict[str, Any] = {}
    for one, other in ("EB", "DE"):
        found = [(r, reading.worse(r, one, other)) for r in results]
        met = sum(len(f["met"]) for _, f in found)
        cases = [[r["set"], r["split"], *p] for r, f in found for p in f["risk"]]
        wrong = sum(len(f["wrong"]) for _, f in found)
        out[f"{one} than {other}"] = {
            "met": met,
            "risk_percent": 100.0 * len(cases) / max(met, 1),
            "training_error_percent": 100.0 * wrong / max(met, 1),
            "cases": cases[:50],
        }
    return out


def draw(by_set: dict[str, dict[str, Any]], args: Any) -> None:
    """Draw figure 3 with averaged errors, with a panel for every set."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    sheet, axes = plt.subplots(3, 4, figsize=(14, 9), layout="constrained")
    marks = {"A": ("x", BLUE), "C": ("^", ORANGE), "D": ("o", ORANGE), "E": ("s", ORANGE),
             "F": ("d", PURPLE)}  # fmt: skip
    labels = {"A": "A: l1", "C": "C: price", "D": "D: hot-started", "E": "E: subset of T'",
              "F": "F: price and l1"}  # fmt: skip
    for number, (ax, (name, found)) in enumerate(zip(axes.flat, by_set.items(), strict=False)):
        means = found["means"]
        b = [(p["atoms"], 100 * p["error"]) for p in means["B"]]
        ax.plot(*zip(*b, strict=True), color=BLUE, linewidth=0.9, label="B: early stopping")
        for letter, (mark, colour) in marks.items():
            dots = [
                (p["atoms"], 100 * p["error"]) for p in means.get(letter, ()) if p["atoms"] >= 0.5
            ]
            if dots:
                ax.scatter(*zip(*dots, strict=True), marker=mark, s=22, color=colour,
                           facecolors="none" if mark != "x" else colour, label=labels[letter],
                           linewidths=1.1)  # fmt: skip
        errors = 100 * np.array([p["error"] for letter in means for p in means[letter]])
        low, high = errors.min(), np.quantile(errors, 0.92)
        ax.set_ylim(low - 0.1 * (high - low), high + 0.1 * (high - low))
        ax.set_xscale("log")
        frame(ax, name, "atoms", "validation error, %" if number % 4 == 0 else "")
        logarithmic(ax.xaxis)
        ax.set_xlim(0.9, 110)
    for ax in axes.flat[len(by_set) :]:
        ax.set_visible(False)
    handles, names = axes.flat[0].get_legend_handles_labels()
    sheet.legend(handles, names, loc="outside lower center", ncols=6, frameon=False, labelcolor=INK)
    finish(sheet, args)


def report(results: list[dict[str, Any]], args: Any) -> dict[str, Any]:
    """Print the tables, and return all results."""
    names = [name for name in SETS if any(r["set"] == name for r in results)]
    single = {r["set"]: one_split(r) for r in results if r["split"] == 0}
    several = {
        name: many_splits(some)
        for name in names
        if (some := [r for r in results if r["set"] == name and r["split"] > 0])
    }
    rows = []
    for name, found in single.items():
        tops = "; ".join(
            f"{100 * g['error']:.2f}, {g['atoms']}, "
            + (f"-{g['sparsity']:.1f} %" if "sparsity" in g else f"* {g['generalisation']:.1f} %")
            for g in found["top"][:3]
        )
        rows.append([name, 100 * found["best_convex"], found["gains"], tops])
    table("The 80/20 split (error %, atoms, fewer atoms, or * less error than any of A and B)",
          ["set", "best of A, B", "points", "the best of them"], rows)  # fmt: skip
    rows = []
    for name, found in several.items():
        sparse = max((g["sparsity"] for g in found["gains"] if "sparsity" in g), default=0.0)
        better = max((g.get("generalisation", 0.0) for g in found["gains"]), default=0.0)
        line: list[Any] = [name, found["splits"], sparse, better]
        for letters in ("AB", "CDE", "F"):
            picked = found["chosen"].get(letters)
            line.append(f"{100 * picked['error']:.2f}, {picked['atoms']:.0f}" if picked else None)
        for family in ("priced", "both"):
            if family not in found:
                line += [None, None]
                continue
            lead, fewer = (found[family][key] for key in ("less_error", "fewer_atoms"))
            line += [
                f"{100 * lead[0]:.2f} ± {100 * lead[1]:.2f}",
                f"{fewer[0]:.0f} ± {fewer[1]:.0f}",
            ]
        rows.append(line)
    table("Partitions: gains of the averaged frontier; models chosen on half of the new rows",
          ["set", "splits", "sparser %", "better %", "A/B: %, atoms", "C-E", "F",
           "C-E less error", "fewer atoms", "F less error", "fewer atoms"], rows)  # fmt: skip
    held = consistency(results)
    for name, found in held.items():
        print(f"{name}: risk {found['risk_percent']:.2f} %, training error "
              f"{found['training_error_percent']:.2f} % of {found['met']} times")  # fmt: skip
    seconds = {x: sum(r["seconds"].get(x, 0.0) for r in results) for x in "ABCDEF"}
    gained = {name for name, found in single.items() if found["gains"]}
    mean_gained = {name for name, found in several.items() if found["gains"]}
    verdicts = {
        "E worse than B, risk %": verdict(
            "E worse than B, risk %", held["E than B"]["risk_percent"], 0.0, False
        ),
        "D worse than E, risk %": verdict(
            "D worse than E, risk %", held["D than E"]["risk_percent"], 2.0, False
        ),
        "sets with a gain": verdict(
            "sets with a gain on the 80/20 split", len(gained), len(PAPER & set(names)), True
        ),
        "core hours": verdict(
            "core hours, A to E", sum(seconds[x] for x in "ABCDE") / 3600, 2.0, False
        ),
    }
    if several:
        draw(several, args)
    return {
        "tasks": len(results),
        "core_seconds": seconds,
        "grids": {"nu": NU, "price": PRICES, "both_nu": BOTH_NU, "both_price": BOTH_PRICES},
        "sets_gained_one_split": sorted(gained),
        "sets_gained_averaged": sorted(mean_gained),
        "consistency": held,
        "verdicts": verdicts,
        "one_split": single,
        "partitions": several,
    }


@contextmanager
def on_cluster(address: str | None) -> Iterator[None]:
    """Let joblib run jobs on the workers of a Dask cluster, if there is the address of one."""
    if address is None:
        yield
        return
    from distributed import Client

    with Client(address), parallel_config(backend="dask"):
        yield


def one_timed(experiments: str, *task: Any) -> tuple[float, dict[str, Any] | None]:
    """Run a split. A worker, and its scheduler, import the experiments only here."""
    if experiments not in sys.path:
        sys.path.append(experiments)
    from _common import timed
    from totalq_runs import run

    seconds, result = timed(run, *task)
    return seconds, result


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), metavar="SET")
    parser.add_argument("--splits", nargs="+", type=int, default=list(range(11)), metavar="N")
    parser.add_argument(
        "--jobs", type=int, default=CORES, help="splits run at a time (%(default)s)"
    )
    parser.add_argument("--cluster", metavar="ADDRESS", help="scheduler of a Dask cluster")
    parser.add_argument("--cache", type=Path, default=ROOT / "build" / "totalq")
    parser.add_argument("--known", action="store_true", help="report only on cached splits")
    args = parser.parse_args()
    todo = [(name, number) for number in args.splits for name in args.sets]

    given, found = (args.data.resolve(), args.seed, args.cache.resolve(), args.known), []
    with on_cluster(None if args.known else args.cluster):
        jobs = Parallel(n_jobs=1 if args.known else args.jobs, return_as="generator")
        here = str(Path(__file__).resolve().parent)
        done = jobs(delayed(one_timed)(here, *task, *given) for task in todo)
        for (name, number), (seconds, result) in zip(todo, done, strict=True):
            found.append(result)
            if not args.known:
                progress(f"{name} {number}: {seconds:.1f} s")
    results = report([r for r in found if r is not None], args)
    args.cache = args.cache.name
    del args.cluster  # where it ran changes nothing
    save(args.json, args, ["joblib"], results)


if __name__ == "__main__":
    main()
