"""What does tuning do for models of few patches? (ShareBoost section 5, on MNIST)

`share_mnist_patches.py` chooses patches from a list. Here the chosen patches are tuned, too: their
templates, and if operations cost nothing the places and widths of their masks, together with the
weights (`laconic.tune`). Every size of --sizes is tuned, each from the next smaller one that was
accepted, on held-out loss. The test digits are read once for every seed, when all is fitted.

* plain: the 60,000 digits as they are.
* deformed: patches are chosen as for plain. New deformed copies are made for every epoch.
* cheap: the same with templates that patches share, and with a price on operations. Tuning leaves
  the operations as they are.

Settings are compared with --choose, on 10,000 training digits that are held out of everything.

Run: python experiments/tuned_mnist_patches.py [--kind plain] [--sizes N ...] [--seeds N]
                                               [--processes N] [--choose] [--device cuda]
                                               [--json FILE]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import joblib
import numpy as np
from _common import arguments, load, progress, save, table
from share_mnist_patches import described, digits

HELD_OUT = 10_000
BROAD = {"n_templates": 250, "template_size": (5, 7), "mask_sigma": (6.0, 9.0)}
SHARED = {"n_templates": 200, "template_size": (5, 7, 9), "mask_sigma": (4.0, 7.0)}
NARROW = {"n_templates": 250, "template_size": 7, "mask_sigma": 4.5}
POOLS = {"broad": BROAD, "narrow": NARROW, "shared": SHARED}
MILD = {"elastic_alpha": 10.0, "rotation": 5.0, "scale": 0.05, "shear": 0.05, "shift": 0.5}
STRENGTHS: dict[str, dict[str, Any]] = {
    "mild": MILD,
    "usual": {},
    "strong": {"elastic_alpha": 20.0},
}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {"pool": BROAD, "alpha": 3e-6, "epochs": None, "sizes": [40, 266]},
    "deformed": {
        "pool": BROAD,
        "alpha": 1e-6,
        "epochs": 150,
        "copies": STRENGTHS["usual"],
        "sizes": [30, 40, 215],
    },
    "cheap": {
        "pool": SHARED,
        "alpha": 2e-6,
        "epochs": 150,
        "copies": MILD,
        "costs": "operations",
        "max_cost": 1e6,
        "sizes": [255, 1309],
    },
}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--kind", choices=list(KINDS), default="plain")
    parser.add_argument("--sizes", type=int, nargs="+", help="sizes to tune")
    parser.add_argument("--seeds", type=int, default=3, help="number of fits")
    parser.add_argument("--processes", type=int, default=1, help="fits at the same time")
    parser.add_argument("--pool", choices=list(POOLS), help="templates and masks to choose from")
    parser.add_argument("--strength", choices=list(STRENGTHS), help="how strongly copies deform")
    parser.add_argument("--epochs", type=int, help="how often every digit is looked at")
    parser.add_argument("--alpha", type=float, help="strength of the penalty")
    parser.add_argument("--rate", type=float, default=0.03, help="length of the first steps")
    parser.add_argument("--rows", type=int, default=60_000, help="number of training digits")
    parser.add_argument("--choose", action="store_true", help="report held-out training digits")
    parser.add_argument("--device", help="where to fit: cuda, or the processor if left out")
    args = parser.parse_args()
    data = load(args.data, "mnist")
    X, y = digits(data["X_train"]), data["y_train"]
    new = digits(data["X_test"]), data["y_test"]
    if args.choose:
        order = np.random.default_rng(0).permutation(len(X))
        held, kept = order[:HELD_OUT], order[HELD_OUT:]
        X, y, new = X[kept], y[kept], (X[held], y[held])
    setting = {**KINDS[args.kind], "rate": args.rate}
    setting |= {k: v for k, v in vars(args).items() if k in ("sizes", "epochs", "alpha") and v}
    if args.pool:
        setting["pool"] = POOLS[args.pool]
    if args.strength:
        setting["copies"] = STRENGTHS[args.strength]
    together = joblib.Parallel(n_jobs=args.processes, return_as="generator")
    runs: list[dict[str, Any]] = []
    for run in together(
        joblib.delayed(fit)(X[: args.rows], y[: args.rows], *new, setting, seed, args)
        for seed in range(args.seed, args.seed + args.seeds)
    ):
        runs.append(run)
        results = {"kind": args.kind, "setting": setting, "runs": runs, "means": means(runs)}
        save(args.json, args, [], {**results, **described(args.device)})
    show_means(results["means"], args)


def fit(
    X: np.ndarray,
    y: np.ndarray,
    X_new: np.ndarray,
    y_new: np.ndarray,
    setting: dict[str, Any],
    seed: int,
    args: argparse.Namespace,
) -> dict[str, Any]:
    """Fit and tune one seed. Return error and operations of every size, as chosen and tuned."""
    from laconic import ShareBoostClassifier
    from laconic.deform import Deform
    from laconic.pools import Patches
    from laconic.tune import Tuning

    sizes, copies = sorted(setting["sizes"]), setting.get("copies")
    made = None if copies is None else Deform(random_state=seed, **copies)
    tuning = Tuning(sizes, setting["epochs"], rate=setting["rate"], copies=made)
    own = {key: setting[key] for key in ("alpha", "costs", "max_cost") if key in setting}
    pool = Patches(random_state=seed, **setting["pool"])
    fixed = {"tol": 1e-4, "validation_fraction": 0.05, "random_state": seed}
    start = time.perf_counter()
    model = ShareBoostClassifier(
        sizes[-1], pool=pool, tune=tuning, device=args.device, **fixed, **own
    ).fit(X, y)
    seconds = time.perf_counter() - start
    progress(f"seed {seed}: {seconds:.0f} s")
    chosen = model.path_.chosen or model.path_
    told = []
    for size in (size for size in sizes if size in model.path_.sizes):
        before, after = chosen[size], model.path_[size]
        told.append(
            {
                "atoms": size,
                "accepted": after is not before,
                **{
                    f"{name} {form}": value
                    for form, entry in (("chosen", before), ("tuned", after))
                    for name, value in measured(entry, model.classes_, X_new, y_new).items()
                },
            }
        )
    return {"seed": seed, "seconds": seconds, "sizes": told}


def measured(entry: Any, classes: np.ndarray, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Return the error in per cent, the operations and the training loss of an entry."""
    wrong = classes[entry.scores(X).argmax(axis=1)] != y
    operations = float(entry.predictor_cost.operations)
    return {"error": 100.0 * float(wrong.mean()), "operations": operations, "loss": entry.loss}


def means(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the means over the seeds, and the standard deviation of the tuned error."""
    found = []
    for size in [told["atoms"] for told in runs[0]["sizes"]]:
        same = [told for run in runs for told in run["sizes"] if told["atoms"] == size]
        mean = {key: float(np.mean([told[key] for told in same])) for key in same[0]}
        spread = float(np.std([told["error tuned"] for told in same]))
        found.append({**mean, "spread of the error": spread, "seeds": len(same)})
    return found


def show_means(found: list[dict[str, Any]], args: argparse.Namespace) -> None:
    """Print the means."""
    table(
        f"MNIST, {args.kind}: means of {found[0]['seeds']} seeds",
        ["patches", "error chosen, %", "error tuned, %", "spread", "operations tuned", "accepted"],
        [
            [
                told["atoms"],
                told["error chosen"],
                told["error tuned"],
                told["spread of the error"],
                told["operations tuned"],
                told["accepted"],
            ]
            for told in found
        ],
    )


if __name__ == "__main__":
    main()
