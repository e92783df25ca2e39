"""How few patches read handwritten digits? (ShareBoost section 5, figure 3, on MNIST)

Every feature is the largest masked response of a small template (appendix A.1). ShareBoost chooses
the ones worth computing. The paper has 0.71 % test error with 266 patches on the 60,000 training
digits. It has 0.47 % with 305 patches (3.3 million multiply-accumulates per digit) on 360,000
digits, with five deformed copies of every digit added, and under 1 % with fewer than 75 patches.

Settings are chosen with --choose. Each of `CANDIDATES` is fitted on --rows training digits (with
--deform, also on copies of these digits only) and compared on 20,000 other training digits. The
choice is written into `CHOSEN`. Without --choose, that setting is fitted on everything, and its
error on the test digits is reported for every size. The test digits are used only for that.

There are three fits: on the 60,000 digits; with deformed digits too (--deform), for the fewest
patches; and with deformed digits too, for the fewest operations (--deform --cheap), with many
patches that share templates. With --device cuda they run on a GPU. --weights FILE keeps the patches
of a predictor and fits new weights to the first of them, in the numbers of --sizes, on --copies
copies of every digit. These can be more copies than could be kept while patches were chosen.

Run: python experiments/share_mnist_patches.py [--deform] [--cheap] [--choose NAME ...]
                                               [--device cuda] [--weights FILE] [--json FILE]
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
from _common import (
    BLUE,
    ORANGE,
    arguments,
    figure,
    finish,
    frame,
    load,
    logarithmic,
    progress,
    save,
    table,
)

HELD_OUT = 20_000
SHOWN = (
    10,
    20,
    30,
    40,
    50,
    75,
    100,
    150,
    200,
    266,
    305,
    450,
    600,
    800,
    1000,
    1200,
    1400,
    1600,
    1800,
)
PAPER = {
    "plain": {(266, 0.71): "the paper, 0.71 %"},
    "deformed": {(75, 1.0): "the paper, under 1 %", (305, 0.47): "the paper, 0.47 %"},
    "cheap": {(305, 0.47): "the paper, 0.47 %"},
}

# Settings of the pool and of the estimator, by name.
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
    "broad, fewer templates": {
        "pool": {"n_templates": 120, "template_size": (5, 7), "mask_sigma": (6.0, 9.0)},
        "alpha": 1e-6,
        "tol": 1e-4,
    },
    "broad, 3e-6": {
        "pool": {"n_templates": 250, "template_size": (5, 7), "mask_sigma": (6.0, 9.0)},
        "alpha": 3e-6,
        "tol": 1e-4,
    },
    "broad, more copies": {
        "pool": {"n_templates": 250, "template_size": (5, 7), "mask_sigma": (6.0, 9.0)},
        "alpha": 1e-6,
        "tol": 1e-4,
        "deform": {"copies": 11, "elastic_alpha": 20.0},
    },
    "broad, larger templates": {
        "pool": {"n_templates": 250, "template_size": (5, 7, 9), "mask_sigma": (6.0, 9.0)},
        "alpha": 1e-6,
        "tol": 1e-4,
        "deform": {"copies": 11, "elastic_alpha": 20.0},
    },
    "shared templates": {
        "pool": {"n_templates": 120, "template_size": (5, 7), "mask_sigma": 6.0},
        "alpha": 1e-6,
        "tol": 1e-4,
        "costs": "operations",
    },
    "shared templates, three sizes": {
        "pool": {"n_templates": 200, "template_size": (5, 7, 9), "mask_sigma": (4.0, 7.0)},
        "alpha": 2e-6,
        "tol": 1e-4,
        "costs": "operations",
        "deform": {"copies": 11, "elastic_alpha": 20.0},
    },
}
CHOSEN = {
    "plain": "broad, 3e-6",
    "deformed": "broad, more copies",
    "cheap": "shared templates, three sizes",
}
ATOMS = {"plain": 266, "deformed": 305, "cheap": 2000}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--deform", action="store_true", help="add deformed copies of every digit")
    parser.add_argument(
        "--cheap", action="store_true", help="aim for few operations, not few patches"
    )
    parser.add_argument("--copies", type=int, help="number of copies (default: from the setting)")
    parser.add_argument(
        "--choose", nargs="+", metavar="NAME", choices=CANDIDATES, help="settings to compare"
    )
    parser.add_argument("--atoms", type=int, help="largest number of patches (266, 305 or 2,000)")
    parser.add_argument("--minutes", type=float, help="stop growing after this many minutes")
    parser.add_argument("--rows", type=int, default=60_000, help="number of training digits")
    parser.add_argument("--checkpoint", type=Path, help="file to resume a fit from")
    parser.add_argument("--device", help="where to fit: cuda, or the processor if left out")
    parser.add_argument(
        "--weights", type=Path, metavar="FILE", help="predictor that gets new weights"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[1300, 2000], help="for --weights")
    args = parser.parse_args()
    if args.cheap and not args.deform:
        parser.error("--cheap needs --deform")
    args.kind = "cheap" if args.cheap else "deformed" if args.deform else "plain"
    args.atoms = args.atoms or ATOMS[args.kind]
    data = load(args.data, "mnist")
    X, y = digits(data["X_train"]), data["y_train"]
    if args.choose:
        choose(X, y, args)
        return
    name = CHOSEN[args.kind]
    test = digits(data["X_test"]), data["y_test"]
    results = {"setting_name": name, "setting": CANDIDATES[name]}
    results |= fit(X[: args.rows], y[: args.rows], *test, name, args)
    save(args.json, args, [], results)
    draw(results, args)


def digits(images: np.ndarray) -> np.ndarray:
    """Return rows of pixels from 0 to 1."""
    return images.reshape(len(images), -1) / np.float32(255)


def choose(X: np.ndarray, y: np.ndarray, args: argparse.Namespace) -> None:
    """Compare the named settings by their errors on held-out training digits."""
    order = np.random.default_rng(args.seed).permutation(len(X))
    held, kept = order[:HELD_OUT], order[HELD_OUT:][: args.rows]
    results: dict[str, Any] = {}
    for name in args.choose:
        found = fit(X[kept], y[kept], X[held], y[held], name, args)
        results[name] = {"setting": CANDIDATES[name], **found}
        save(args.json, args, [], results)


def fit(
    X: np.ndarray, y: np.ndarray, X_new: np.ndarray, y_new: np.ndarray, name: str, args: Any
) -> dict[str, Any]:
    """Fit one setting, and measure the error of every size of its path on other digits."""
    from laconic.deform import Deform
    from laconic.look.mosaic import plot_patches
    from laconic.pools import Patches

    setting = dict(CANDIDATES[name])
    how = setting.pop("deform", {})
    start, used = time.perf_counter(), time.process_time()
    if args.deform:
        n = len(X)
        how = how if args.copies is None else {**how, "copies": args.copies}
        X, y = Deform(random_state=args.seed, **how).enlarge(X, y)
        progress(f"{len(X)} digits with deformed ones")
        if args.json is not None:
            draw_copies(X, n, args.json.with_suffix(".copies.png"))
    pool = Patches(random_state=args.seed, **setting.pop("pool"))
    if args.weights:
        entries, predictor, told = weigh(X, y, setting, args)
    else:
        entries, predictor, told = grow(X, y, pool, setting, args)
    seconds = time.perf_counter() - start
    curve = errors(entries, np.unique(y), X_new, y_new)
    if args.json is not None and not args.choose:
        predictor.save(args.json.with_suffix(".laconic"))
        sheet, [ax] = figure(1, inches=8.7, height=4.3)
        plot_patches(predictor, 40, ax)
        sheet.savefig(args.json.with_suffix(".patches.png"), dpi=130)
    rows = [[c["atoms"], c["error"], c["operations"], c["loss"]] for c in curve]
    table(
        f"{name}: {len(X)} training digits, {seconds:.0f} s",
        ["patches", "error, %", "multiply-accumulates", "loss"],
        [row for row in rows if row[0] in (*SHOWN, *args.sizes) or row is rows[-1]],
    )
    return {
        "training_digits": len(X),
        "seconds": seconds,
        "processor_seconds": time.process_time() - used,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        **told,
        **described(args.device),
        "curve": curve,
    }


def grow(
    X: np.ndarray, y: np.ndarray, pool: Any, setting: dict[str, Any], args: Any
) -> tuple[Any, Any, dict[str, Any]]:
    """Choose patches one by one. Return the path, its last predictor, and how the fit ended."""
    from laconic import ShareBoostClassifier

    start = time.perf_counter()

    def watch(state: Any) -> bool:
        entry, seconds = state.last, time.perf_counter() - start
        if entry.size % 25 == 0:
            progress(f"{entry.size} patches, loss {entry.loss:.5f}, {seconds:.0f} s")
        return args.minutes is not None and seconds > 60 * args.minutes

    own = {"callbacks": [watch], "checkpoint": args.checkpoint, "device": args.device}
    model = ShareBoostClassifier(args.atoms, pool=pool, **own, **setting).fit(X, y)
    return model.path_, model.predictor_, {"status": model.status_}


def weigh(
    X: np.ndarray, y: np.ndarray, setting: dict[str, Any], args: Any
) -> tuple[Any, Any, dict[str, Any]]:
    """Fit new weights to the first patches of a predictor. Return what `grow` returns."""
    from new_weights import new_weights

    from laconic.model.predictor import Predictor

    chosen = Predictor.load(args.weights).map
    alpha, tol = setting["alpha"], setting["tol"]
    entries = new_weights(chosen, X, y, args.sizes, alpha, tol, args.device)
    last = entries[-1]
    given = last.map, last.input_weights(), last.intercept, np.unique(y), "margin"
    return entries, Predictor(*given, [1] * last.size, X.shape[1]), {"status": "new weights"}


def described(device: str | None) -> dict[str, Any]:
    """Describe the device of a fit, if it has one."""
    if device is None:
        return {}
    import torch

    on_gpu = torch.device(device).type == "cuda"
    name = torch.cuda.get_device_name(device) if on_gpu else "processor"
    return {"device": name, "torch": torch.__version__}


def errors(entries: Any, classes: np.ndarray, X: np.ndarray, y: np.ndarray) -> list[dict[str, Any]]:
    """Return error in per cent and multiply-accumulates of every size.

    Patches are computed once for all sizes.
    """
    *_, last = entries
    columns = last.map.columns(X).astype(np.float64)  # once, and not for every size
    out = []
    for entry in entries:
        first = entry.numbers == last.numbers[: entry.size]
        values = columns[:, : entry.size] if first else entry.map.columns(X)
        scores = values @ entry.input_weights() + entry.intercept
        wrong = classes[scores.argmax(axis=1)] != y
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
    """Draw the curve of figure 3, against patches and operations, with the paper's results."""
    curve = [c for c in results["curve"] if c["atoms"] > 0]
    sheet, (left, right) = figure(2, inches=4.6)
    title = f"MNIST, {results['training_digits']:,} training digits"
    frame(left, title, "patches", "test error (%), log scale")
    frame(right, "", "million multiply-accumulates a digit", "")
    marks = {left: PAPER[args.kind]}
    if args.deform:
        marks[right] = {(3.3, 0.47): "the paper, 0.47 %"}
    for ax, key, unit in ((left, "atoms", 1.0), (right, "operations", 1e6)):
        ax.plot([c[key] / unit for c in curve], [c["error"] for c in curve], color=BLUE)
        ax.set_yscale("log")
        logarithmic(ax.yaxis, (1.0, 2.0, 3.0, 5.0, 7.0))
        ax.set_ylim(0.3, 12)
        for (across, percent), words in marks.get(ax, {}).items():
            ax.plot([across], [percent], "o", color=ORANGE)
            side = "right" if across > max(c[key] / unit for c in curve) / 2 else "left"
            offset = (0, -14) if side == "right" else (0, 7)
            ax.annotate(
                words, (across, percent), xytext=offset, textcoords="offset points",
                color=ORANGE, fontsize="small", ha=side,
            )  # fmt: skip
        ax.set_xlim(left=0)
    finish(sheet, args)


def draw_copies(X: np.ndarray, n: int, file: Path) -> None:
    """Draw the first digits, with the deformed copies below each."""
    across, down = 20, min(len(X) // n, 6)
    lines = [
        np.hstack([image.reshape(28, 28) for image in X[copy * n : copy * n + across]])
        for copy in range(down)
    ]
    sheet, [ax] = figure(1, inches=0.4 * across, height=0.4 * down)
    ax.imshow(np.vstack(lines), cmap="gray", interpolation="nearest")
    ax.axis("off")
    sheet.savefig(file, dpi=100)


if __name__ == "__main__":
    main()
