"""What does tuning do for pieces? (ShareBoost section 3.2 and figure 4, on MNIST)

`share_mnist_pieces.py` chooses balls from a list, on 50 principal components of the digits. Here
the centres and radii of the chosen balls are tuned, too, together with the weights
(`laconic.tune`). The test digits are read once for every seed, when all is fitted.

* plain: the 60,000 digits as they are.
* noisy: balls are chosen as for plain. In every epoch, new normal noise is added to the components.
  This knows nothing of images.
* deformed: balls are chosen as for plain. New deformed copies are made for every epoch: components
  are turned into images, deformed, and turned into components again.

Settings are compared with --choose, on 10,000 training digits that are held out of everything.

Run: python experiments/tuned_mnist_pieces.py [--kind plain] [--sizes N ...] [--seeds N] [--choose]
                                              [--checkpoint FILE] [--json FILE]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from _common import arguments, load, progress, save, table, timed
from share_mnist_pieces import BALLS, FIT, KINDS, POOL, components
from tuned_mnist_patches import HELD_OUT, MILD, means, measured

from laconic import ShareBoostClassifier
from laconic.deform import Deform
from laconic.pools import Pieces
from laconic.tune import Tuning

TUNED: dict[str, dict[str, Any]] = {
    "plain": {"epochs": 30, "alpha": FIT["alpha"]},
    "noisy": {"epochs": 60, "alpha": FIT["alpha"], "noise": 0.4},
    "deformed": {"epochs": 100, "alpha": 1e-4, "deform": MILD},
}


class Noise:
    """Makes copies of rows by adding normal noise of one size to all numbers."""

    def __init__(self, size: float, seed: int) -> None:
        self._size, self._seed = size, seed

    def copies_of(self, X: np.ndarray, number: int) -> np.ndarray:
        """Return one copy of every row."""
        rng = np.random.default_rng([self._seed, number])
        return X + self._size * rng.standard_normal(X.shape, dtype=X.dtype)


class DeformedComponents:
    """Makes deformed copies of digits that are given as principal components.

    Parameters
    ----------
    pca : sklearn.decomposition.PCA
    deform : Deform
    """

    def __init__(self, pca: Any, deform: Deform) -> None:
        self._pca, self._deform = pca, deform

    def copies_of(self, X: np.ndarray, number: int) -> np.ndarray:
        """Return one copy of every digit. What the components leave out does not change."""
        images = self._pca.inverse_transform(X)
        return self._pca.transform(self._deform.copies_of(images, number))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--kind", choices=list(TUNED), default="plain")
    parser.add_argument("--sizes", type=int, nargs="+", default=[BALLS], help="sizes to tune")
    parser.add_argument("--seeds", type=int, default=1, help="number of fits")
    parser.add_argument("--epochs", type=int, help="how often every digit is looked at")
    parser.add_argument("--alpha", type=float, help="strength of the penalty")
    parser.add_argument("--rate", type=float, default=0.03, help="length of the first steps")
    parser.add_argument("--centres", type=int, default=POOL["n_centres"], help="of the pool")
    parser.add_argument("--rows", type=int, default=60_000, help="number of training digits")
    parser.add_argument("--choose", action="store_true", help="report held-out training digits")
    parser.add_argument("--checkpoint", type=Path, help="file to save the path to, for one seed")
    args = parser.parse_args()
    data = load(args.data, "mnist")
    pca, X, X_new = components(data["X_train"], data["X_test"])
    y, y_new = data["y_train"], data["y_test"]
    if args.choose:
        order = np.random.default_rng(0).permutation(len(X))
        held, kept = order[:HELD_OUT], order[HELD_OUT:]
        X, y, X_new, y_new = X[kept], y[kept], X[held], y[held]
    runs = []
    for seed in range(args.seed, args.seed + args.seeds):
        runs.append(fit(pca, X[: args.rows], y[: args.rows], X_new, y_new, seed, args))
        save(args.json, args, [], {"kind": args.kind, "runs": runs, "means": means(runs)})
    show_means(means(runs), args)


def fit(
    pca: Any,
    X: np.ndarray,
    y: np.ndarray,
    X_new: np.ndarray,
    y_new: np.ndarray,
    seed: int,
    args: argparse.Namespace,
) -> dict[str, Any]:
    """Fit and tune one seed. Return the errors of every size, as chosen and tuned."""
    setting, sizes = TUNED[args.kind], sorted(args.sizes)
    copies: Any = None
    if "noise" in setting:
        copies = Noise(setting["noise"], seed)
    if "deform" in setting:
        copies = DeformedComponents(pca, Deform(random_state=seed, **setting["deform"]))
    tuning = Tuning(sizes, args.epochs or setting["epochs"], rate=args.rate, copies=copies)
    pool = Pieces(random_state=seed, **{**POOL, **KINDS["soft"], "n_centres": args.centres})
    alpha = setting["alpha"] if args.alpha is None else args.alpha
    own = {**FIT, "alpha": alpha, "validation_fraction": 0.05, "random_state": seed}
    model = ShareBoostClassifier(
        sizes[-1], pool=pool, tune=tuning, checkpoint=args.checkpoint, **own
    )
    seconds, _ = timed(model.fit, X, y)
    chosen, told = model.path_.chosen or model.path_, []
    progress(f"seed {seed}: {seconds:.0f} s, {chosen.seconds[-1]:.0f} s for the path")
    for size in sizes:
        forms = {"chosen": chosen[size], "tuned": model.path_[size]}
        found = {
            f"{name} {form}": value
            for form, entry in forms.items()
            for name, value in measured(entry, model.classes_, X_new, y_new).items()
        }
        accepted = forms["tuned"] is not forms["chosen"]
        told.append({"atoms": size, "accepted": accepted, **found})
    return {"seed": seed, "seconds": seconds, "sizes": told}


def show_means(found: list[dict[str, Any]], args: argparse.Namespace) -> None:
    """Print the means."""
    names = ["error chosen", "error tuned", "spread of the error", "accepted"]
    table(
        f"MNIST, {args.kind}: means of {found[0]['seeds']} seeds",
        ["balls", "error chosen, %", "error tuned, %", "spread", "accepted"],
        [[told["atoms"], *(told[name] for name in names)] for told in found],
    )


if __name__ == "__main__":
    main()
