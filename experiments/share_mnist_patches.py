"""How few patches read handwritten digits? (ShareBoost section 5, figure 3, on MNIST)

Every feature is the largest masked response of a small template (appendix A.1); ShareBoost chooses
the ones worth computing. The paper has 0.71 % test error with 266 of them on the 60,000 training
digits, 0.47 % with 305 (3.3 million multiply-accumulates a digit) on 360,000, five deformed copies
of every digit added, and under 1 % with fewer than 75.

Settings are chosen with --choose: each of `CANDIDATES` is fitted on --rows training digits (and the
copies of these alone, with --deform) and compared on 20,000 others of the training digits. The
choice is written into `CHOSEN`. Without --choose, that setting is fitted on everything, and its
error on the test digits is reported for every size: the test digits are read for that only.

Run: python experiments/share_mnist_patches.py [--deform] [--choose NAME ...] [--json FILE]
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(1, str(ROOT / "benchmarks"))

from _common import arguments, load, progress, save, table  # noqa: E402

HELD_OUT = 20_000
SHOWN = (10, 20, 30, 40, 50, 75, 100, 150, 200, 266, 305)
PAPER = {
    "plain": {(266, 0.71): "the paper, 0.71 %"},
    "deformed": {(75, 1.0): "the paper, under 1 %", (305, 0.47): "the paper, 0.47 %"},
}

# Settings of the pool, and of the estimator, by name.
WIDTHS = (3.0, 4.5, 6.0, 9.0)
CANDIDATES: dict[str, dict[str, Any]] = {
    "paper": {"pool": {}, "alpha": 1e-5, "tol": 1e-4},
    "wide": {"pool": {"mask_sigma": 6.0}, "alpha": 1e-5, "tol": 1e-4},
    "projection": {"pool": {}, "alpha": 1e-5, "tol": 1e-4, "rule": "projection"},
    "small": {
        "pool": {"n_templates": 250, "template_size": 5, "mask_sigma": WIDTHS},
        "alpha": 1e-5,
        "tol": 1e-4,
    },
    "small, per operation": {
        "pool": {"n_templates": 250, "template_size": 5, "mask_sigma": WIDTHS},
        "alpha": 1e-5,
        "tol": 1e-4,
        "costs": "operations",
    },
    "mixed": {
        "pool": {"n_templates": 200, "template_size": (5, 7), "mask_sigma": WIDTHS},
        "alpha": 1e-5,
        "tol": 1e-4,
    },
    "mixed, 1e-6": {
        "pool": {"n_templates": 200, "template_size": (5, 7), "mask_sigma": WIDTHS},
        "alpha": 1e-6,
        "tol": 1e-4,
    },
    "broad, 1e-6": {
        "pool": {"n_templates": 250, "template_size": (5, 7), "mask_sigma": (6.0, 9.0)},
        "alpha": 1e-6,
        "tol": 1e-4,
    },
    "broad, 3e-6": {
        "pool": {"n_templates": 250, "template_size": (5, 7), "mask_sigma": (6.0, 9.0)},
        "alpha": 3e-6,
        "tol": 1e-4,
    },
}
CHOSEN = {"plain": "broad, 3e-6", "deformed": "broad, 1e-6"}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--deform", action="store_true", help="add deformed copies of every digit")
    parser.add_argument("--copies", type=int, default=5, help="how many")
    parser.add_argument("--choose", nargs="+", metavar="NAME", help="settings to compare")
    parser.add_argument("--atoms", type=int, help="most patches (266, or 305 with --deform)")
    parser.add_argument("--minutes", type=float, help="stop growing after so long")
    parser.add_argument("--rows", type=int, default=60_000, help="training digits to fit")
    parser.add_argument("--checkpoint", type=Path, help="file to resume a fit from")
    args = parser.parse_args()
    args.atoms = args.atoms or (305 if args.deform else 266)
    data = load(args.data, "mnist")
    X, y = digits(data["X_train"]), data["y_train"]
    if args.choose:
        results = choose(X, y, args)
    else:
        name = CHOSEN["deformed" if args.deform else "plain"]
        test = digits(data["X_test"]), data["y_test"]
        results = {"setting_name": name, "setting": CANDIDATES[name]}
        results |= fit(X[: args.rows], y[: args.rows], *test, name, args)
        if args.json is not None:
            draw(results, args)
    save(args.json, args, [], results)


def digits(images: np.ndarray) -> np.ndarray:
    """Rows of pixels from 0 to 1."""
    return images.reshape(len(images), -1) / np.float32(255)


def choose(X: np.ndarray, y: np.ndarray, args: argparse.Namespace) -> dict[str, Any]:
    """Errors of the named settings on training digits held out."""
    order = np.random.default_rng(args.seed).permutation(len(X))
    held, kept = order[:HELD_OUT], order[HELD_OUT:][: args.rows]
    found = {n: fit(X[kept], y[kept], X[held], y[held], n, args) for n in args.choose}
    return {n: {"setting": CANDIDATES[n], **of} for n, of in found.items()}


def fit(
    X: np.ndarray, y: np.ndarray, X_new: np.ndarray, y_new: np.ndarray, name: str, args: Any
) -> dict[str, Any]:
    """Fit one setting, and measure every size of its path on other digits."""
    from laconic import ShareBoostClassifier
    from laconic.deform import Deform
    from laconic.pools import Patches

    setting = dict(CANDIDATES[name])
    start, used = time.perf_counter(), time.process_time()
    if args.deform:
        how = setting.pop("deform", {})
        n = len(X)
        X, y = Deform(args.copies, random_state=args.seed, **how).enlarge(X, y)
        progress(f"{len(X)} digits with deformed ones")
        if args.json is not None:
            draw_copies(X, n, args.json.with_suffix(".copies.png"))
    setting.pop("deform", None)
    pool = Patches(random_state=args.seed, **setting.pop("pool"))

    def watch(state: Any) -> bool:
        entry, seconds = state.last, time.perf_counter() - start
        if entry.size % 25 == 0:
            progress(f"{name}: {entry.size} patches, loss {entry.loss:.5f}, {seconds:.0f} s")
        return args.minutes is not None and seconds > 60 * args.minutes

    model = ShareBoostClassifier(
        args.atoms,
        pool=pool,
        callbacks=[watch],
        checkpoint=args.checkpoint,
        **setting,
    ).fit(X, y)
    seconds = time.perf_counter() - start
    curve = errors(model, X_new, y_new)
    if args.json is not None and not args.choose:
        model.predictor_.save(args.json.with_suffix(".laconic"))
        pyplot()
        model.plot_atoms(40).figure.savefig(args.json.with_suffix(".patches.png"), dpi=130)
    rows = [[c["atoms"], c["error"], c["operations"], c["loss"]] for c in curve]
    table(
        f"{name}: {len(X)} training digits, {seconds:.0f} s",
        ["patches", "error, %", "multiply-accumulates", "loss"],
        [row for row in rows if row[0] in SHOWN or row is rows[-1]],
    )
    return {
        "training_digits": len(X),
        "seconds": seconds,
        "processor_seconds": time.process_time() - used,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "status": model.status_,
        "curve": curve,
    }


def errors(model: Any, X: np.ndarray, y: np.ndarray) -> list[dict[str, Any]]:
    """Error in percent and multiply-accumulates of every size; patches are computed once."""
    last = model.path_.entries[-1]
    columns = last.map.columns(X)
    place = {number: at for at, number in enumerate(last.numbers)}
    out = []
    for entry in model.path_:
        own = [place.get(number) for number in entry.numbers]
        values = entry.map.columns(X) if None in own else columns[:, own]
        scores = values @ entry.input_weights() + entry.intercept
        wrong = model.classes_[scores.argmax(axis=1)] != y
        out.append(
            {
                "atoms": entry.size,
                "error": 100.0 * float(wrong.mean()),
                "operations": entry.map.operations() + entry.weights.size,
                "loss": entry.loss,
            }
        )
    return out


def draw(results: dict[str, Any], args: argparse.Namespace) -> None:
    """The curve of figure 3, against patches and against operations, with the paper's marks."""
    from laconic.look.plots import BLUE, INK, ORANGE

    plt = pyplot()
    curve = [c for c in results["curve"] if c["atoms"] > 0]
    wrong = [c["error"] for c in curve]
    sheet, axes = plt.subplots(ncols=2, figsize=(9, 3.6), layout="constrained", sharey=True)
    panels = {
        "patches": [c["atoms"] for c in curve],
        "million multiply-accumulates a digit": [c["operations"] / 1e6 for c in curve],
    }
    for ax, (what, across) in zip(axes, panels.items(), strict=True):
        ax.plot(across, wrong, color=BLUE, linewidth=1.6)
        ax.set_xlabel(what, color=INK)
        ax.set_xlim(left=0)
        ax.grid(axis="y", color="#E5E7EB", linewidth=0.8)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(which="both", colors=INK, length=0)
        ax.set_yscale("log")
        ticks = [0.3, 0.5, 0.7, 1, 2, 5, 10]
        ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
        ax.set_ylim(0.3, 12)
    axes[0].set_ylabel("test error (%), log scale", color=INK)
    for (atoms, percent), words in PAPER["deformed" if args.deform else "plain"].items():
        axes[0].plot([atoms], [percent], "o", color=ORANGE)
        axes[0].annotate(
            words, (atoms, percent), xytext=(0, -14), textcoords="offset points", color=ORANGE,
            fontsize="small", ha="right" if atoms > 150 else "left",
        )  # fmt: skip
    if args.deform:
        axes[1].plot([3.3], [0.47], "o", color=ORANGE)
        axes[1].annotate(
            "the paper", (3.3, 0.47), xytext=(0, -14), textcoords="offset points", color=ORANGE,
            fontsize="small", ha="right",
        )  # fmt: skip
    axes[0].set_title(
        f"{results['training_digits']:,} training digits, {results['setting_name']}",
        loc="left", color=INK, fontsize="medium",
    )  # fmt: skip
    sheet.savefig(args.json.with_suffix(".png"), dpi=130)


def draw_copies(X: np.ndarray, n: int, file: Path) -> None:
    """The first digits, and below each its deformed copies."""
    plt = pyplot()
    across, copies = 20, min(len(X) // n, 6)
    lines = [
        np.hstack([i.reshape(28, 28) for i in X[c * n : c * n + across]]) for c in range(copies)
    ]
    sheet = plt.figure(figsize=(across * 0.4, copies * 0.4))
    ax = sheet.add_axes((0, 0, 1, 1))
    ax.imshow(np.vstack(lines), cmap="gray", interpolation="nearest")
    ax.axis("off")
    sheet.savefig(file, dpi=100)


def pyplot() -> Any:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    return plt


if __name__ == "__main__":
    main()
