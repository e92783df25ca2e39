"""What do tuned models lose when they become integer models of 8 or 16 bits?

Only training rows are used. They are split five times into four fifths to fit and a fifth to
measure. Each model is a tuned path with a budget in bytes. It is quantised twice: with every weight
rounded on its own, and with the weights whose scores are nearest to those of the model, as
`laconic.Predictor.quantise` does. Means over the splits of the errors, of the part of the labels
that integers change, and the standard error of the difference to the model in floats.

Run: python experiments/tuned_integers.py [--sets NAME ...] [--splits 5] [--json FILE]
"""

from __future__ import annotations

import warnings
from typing import Any
from unittest.mock import patch

import numpy as np
from _common import arguments, load, progress, save, table
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from laconic import ShareBoostClassifier
from laconic.export.footprint import Target
from laconic.model import quantise
from laconic.pools import Hinges, Patches
from laconic.tune import Tuning

SETS = ("digits", "satellite", "pendigits")
HELD_OUT, ROOMY, ALPHA = 0.2, 65_536, 1e-4
PATCHES = Patches(n_templates=100, template_size=3, mask_grid=4, mask_sigma=1.5)
HINGES, SHORT = Hinges(), Hinges(n_inputs=4)
JOBS: dict[str, list[tuple[str, Any, Tuning, int]]] = {
    "digits": [("patches", PATCHES, Tuning(epochs=30), n) for n in (5, 10, 20)],
    "satellite": [(title, pool, Tuning(epochs=60, rate=0.1), n) for title, pool in
                  (("hinges", HINGES), ("hinges of 4 inputs", SHORT)) for n in (8, 24)],
    "pendigits": [(title, pool, Tuning(epochs=60, rate=0.1), n) for title, pool in
                  (("hinges", HINGES), ("hinges of 4 inputs", SHORT)) for n in (8, 24)],
}  # fmt: skip


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS, help="sets to run")
    parser.add_argument("--splits", type=int, default=5, help="how often rows are split")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {}
    for name in args.sets:
        X, y = rows(args.data, name)
        for title, pool, tuning, n in JOBS[name]:
            splits = [one(X, y, pool, tuning, n, args.seed + k) for k in range(args.splits)]
            for bits in (8, 16):
                own = np.array([split[bits] for split in splits])
                found[f"{name}, {n} {title}, {bits} bits"] = summary(own)
            progress(f"{name}, {n} {title}")
            save(args.json, args, [], found)
    head = ("model", "floats, %", "rounded", "nearest", "changed, rounded", "changed, nearest",
            "error of difference")  # fmt: skip
    table("tuned models in integers", head, [[key, *own.values()] for key, own in found.items()])


def rows(folder: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the training rows of a set, in the type that a device hands over."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        X, _, y, _ = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
        return X.astype(np.uint8), y
    stored = load(folder, name)
    return stored["X_train"], stored["y_train"]


def one(
    X: np.ndarray, y: np.ndarray, pool: Any, tuning: Tuning, n: int, seed: int
) -> dict[int, list[float]]:
    """Return errors and changed labels of one split, by word length."""
    X, X_held, y, y_held = train_test_split(X, y, test_size=HELD_OUT, stratify=y, random_state=seed)
    model = ShareBoostClassifier(
        n, pool=pool, alpha=ALPHA, max_bytes=ROOMY, chip=Target("cortex-m0"), tune=tuning,
        random_state=seed,
    ).fit(X, y)  # fmt: skip
    given, out = model.predict(X_held), {}
    for bits in (8, 16):
        nearest = model.predictor_.quantise(X, bits=bits).predict(X_held)
        with patch.object(quantise._Trial, "nearer", lambda trial, rounded, *rest: rounded):
            rounded = model.predictor_.quantise(X, bits=bits).predict(X_held)
        answers = given, rounded, nearest
        out[bits] = [float(np.mean(labels != y_held)) for labels in answers]
        out[bits] += [float(np.mean(labels != given)) for labels in answers[1:]]
    return out


def summary(splits: np.ndarray) -> dict[str, float]:
    """Return means over the splits, in per cent."""
    names = "floats", "rounded", "nearest", "changed, rounded", "changed, nearest"
    means = dict(zip(names, (100 * splits.mean(axis=0)).tolist(), strict=True))
    gaps = 100 * (splits[:, 2] - splits[:, 0])
    return means | {"error of difference": float(gaps.std(ddof=1) / len(gaps) ** 0.5)}


if __name__ == "__main__":
    main()
