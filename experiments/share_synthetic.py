"""How does the number of features needed grow with the number of classes? (Appendix C.)

There are k classes, from 4 to 4,096. bin(y) is the number of a class in binary digits ±1, with
b = log₂ k bits. Both examples of the appendix are run.

First example: x = [bin(y), 2 b e_y], with one row per class. The b bits are enough for all classes.
ShareBoost and the mixed norm ‖W‖_{∞,1} should find them. The entrywise l1 norm should use k
features. So does the Frobenius norm: at its optimum W_r = −∇_r L/α, and the gradient of no e_y is
zero. The l1 solution has a closed form. At W = c e_y e_yᵀ every wrong class has the same
probability p. The gradient is −2b (k−1) p/k on the diagonal, 2b p/k off the diagonal and ±p at the
bits. So this W, with exactly k features, is optimal for every λ = 2b (k−1) p/k below the largest
one. The solver runs up to `SOLVED` classes and must agree. Above, the closed form is reported.

Second example: 4 blocks, each equal to bin(y). Each class has two rows. One is complete and has
weight 0.9. The other has weight 0.1 and one block of zeros, every block equally often. One copy of
each bit is enough to be right except for a share of 0.1/4. The mixed norm should use all 4 b.

The features of the sparsest solution whose training error is at most 0 (first example) or 0.1
(second) are counted. Rivals get two λ, `FRACTIONS` of the largest. Above `SOLVED` classes they get
single precision and only the first λ, which was never the denser one below. There the mixed norm
starts near its solution, at W = c bin(y) on every copy with c = ½ ln 3 / copies (half the largest λ
leaves a bit wrong with probability ¼). From zero it would end at the same place, only later. There
is no intercept, no scaling and no test rows. Only the choice of rows that lose a block is random.

Run: python experiments/share_synthetic.py [--most 4096] [--json FILE]
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from _common import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    arguments,
    figure,
    finish,
    frame,
    logarithmic,
    progress,
    save,
    table,
    timed,
    verdict,
)
from mixed_norm import MixedNorm
from scipy import sparse

from laconic import ShareBoostClassifier
from laconic.numeric.threads import Threads
from laconic.pools import Columns

BLOCKS = 4
MISSING = 0.1
SOLVED = 256
FRACTIONS = (0.5, 0.2)
PAPER = {"alpha": 1e-4, "tol": 1e-2, "fit_intercept": False, "scale": None}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--most", type=int, default=4096, help="largest number of classes")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", message="The number of unique classes is greater")
    if args.most < 4:
        parser.error("--most must be at least 4 classes")
    counts = [2**b for b in range(2, int(np.log2(args.most)) + 1)]
    examples = {"first": [], "second": []}
    for k in counts:
        examples["first"].append(first_example(k))
        progress(f"first example, {k} classes: {examples['first'][-1]}")
        examples["second"].append(second_example(k, args.seed))
        progress(f"second example, {k} classes: {examples['second'][-1]}")
    for name, found in examples.items():
        table(f"{name} example: features used", list(found[0]), [list(f.values()) for f in found])
    print()
    verdicts = [
        verdict(
            f"{name} example, features of ShareBoost above log2 k, at most, from 16 classes on",
            max(f["ShareBoost"] - f["log2"] for f in found if f["classes"] >= 16),
            0,
            False,
        )
        for name, found in examples.items()
    ]
    save(args.json, args, [], {**examples, "verdicts": verdicts})
    finish(draw(examples), args)


def binary(k: int) -> np.ndarray:
    """Return bin(y) in ±1 for every class y, (k, log₂ k)."""
    bits = np.arange(int(np.log2(k)))
    return 2.0 * ((np.arange(k)[:, None] >> bits) & 1) - 1.0


def kind(k: int) -> type:
    """Return single precision for the largest problems, to save time and memory."""
    return np.float64 if k <= SOLVED else np.float32


def first_example(k: int) -> dict[str, Any]:
    """Return the number of features of every method, and the seconds of ours."""
    bits = int(np.log2(k))
    X = sparse.csr_matrix(sparse.hstack([binary(k), 2 * bits * sparse.eye(k)]), dtype=kind(k))
    y = np.arange(k)
    seconds, ours = timed(shareboost_size, X, y, None, 0.0)
    mixed = rival_size("linf_l1", X, y, None, 0.0)
    l1 = rival_size("l1", X, y, None, 0.0) if k <= SOLVED else k
    return {
        "classes": k, "log2": bits, "ShareBoost": ours, "mixed norm": mixed,
        "l1": l1, "l2": k + bits, "l1 solved": k <= SOLVED, "seconds": seconds,
    }  # fmt: skip


def second_example(k: int, seed: int) -> dict[str, Any]:
    """Return the number of features of ShareBoost and the mixed norm, and the seconds of ours."""
    bits = int(np.log2(k))
    whole = np.tile(binary(k), (1, BLOCKS)).reshape(k, BLOCKS, bits)
    lost = np.random.default_rng(seed).permutation(k) % BLOCKS
    holed = whole.copy()
    holed[np.arange(k), lost] = 0.0
    X = np.concatenate([whole, holed]).reshape(2 * k, -1).astype(kind(k))
    y = np.tile(np.arange(k), 2)
    weight = np.repeat([1.0 - MISSING, MISSING], k)
    seconds, ours = timed(shareboost_size, X, y, weight, MISSING)
    mixed = rival_size("linf_l1", X, y, weight, MISSING, BLOCKS)
    return {
        "classes": k, "log2": bits, "ShareBoost": ours, "mixed norm": mixed,
        "all": BLOCKS * bits, "seconds": seconds,
    }  # fmt: skip


def shareboost_size(X: Any, y: np.ndarray, weight: np.ndarray | None, target: float) -> int | None:
    """Return the number of atoms at which the training error is first at most ``target``."""
    enough: list[int] = []

    def stop(state: Any) -> bool:
        entry = state.last
        if np.average(entry.scores(X).argmax(axis=1) != y, weights=weight) <= target + 1e-9:
            enough.append(entry.size)
        return bool(enough)

    model = ShareBoostClassifier(X.shape[1], callbacks=[stop], **PAPER)
    model.fit(X, y, sample_weight=weight)
    return enough[0] if enough else None


def rival_size(
    norm: str, X: Any, y: np.ndarray, weight: np.ndarray | None, target: float, copies: int = 1
) -> int | None:
    """Return the number of features of the sparsest solution with at most the ``target`` error.

    The first columns hold ``copies`` copies of every bit.
    """
    sizes = []
    with Threads(None) as threads:
        solver = MixedNorm(
            Columns(None), X, y, threads, norm=norm, tol=5e-3, weight=weight, fit_intercept=False
        )
        largest = solver.largest_alpha
        fractions = FRACTIONS
        if (k := int(y.max()) + 1) > SOLVED:
            fractions = FRACTIONS[:1]
            near = 0.5 * np.log(3.0) / copies * np.tile(binary(k), (1, copies)).T
            solver.start(range(len(near)), near)
        for point in solver.path([f * largest for f in fractions]):
            wrong = np.average(point.model.predict(X) != y, weights=weight)
            if wrong <= target + 1e-9:
                sizes.append(point.model.size)
    return min(sizes, default=None)


def draw(examples: dict[str, list[dict[str, Any]]]) -> Any:
    """Draw features against classes, both on logarithmic scales."""
    sheet, axes = figure(2, 4.6)
    titles = {
        "first": "Example 1: bits or one-hot",
        "second": f"Example 2: {BLOCKS} copies of every bit",
    }
    lines = {
        "first": {"l1": (ORANGE, "l1 and l2 norm: k"), "mixed norm": (GREEN, "mixed norm ∞,1")},
        "second": {"mixed norm": (GREEN, "mixed norm ∞,1")},
    }
    for ax, (name, found) in zip(axes, examples.items(), strict=True):
        classes = [f["classes"] for f in found]
        frame(ax, titles[name], "classes", "features used")
        ax.set_xscale("log", base=2)
        ax.set_yscale("log")
        logarithmic(ax.yaxis)
        ax.set_xticks(classes[::2], [f"{k:,}" for k in classes[::2]])
        for method, (colour, label) in lines[name].items():
            ax.plot(classes, [f[method] for f in found], "o-", color=colour, label=label, ms=4)
        ax.plot(
            classes, [f["ShareBoost"] for f in found], "o-", color=BLUE, label="ShareBoost", ms=4
        )
        ax.plot(classes, [f["log2"] for f in found], ":", color=INK, label="log₂ k")
        ax.legend(frameon=False, labelcolor=INK, fontsize="small")
    return sheet


if __name__ == "__main__":
    main()
