"""The two-class data sets of the TotalQBoost studies: training rows, and stumps as columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from _common import load

# Training rows of a partition (Rätsch et al. 2001), and the number of hot-starting columns T′
# (TotalQBoost, appendix C).
SETS = {
    "banana": (400, 40),
    "breast_cancer": (200, 20),
    "diabetis": (468, 20),
    "flare_solar": (666, 10),
    "german": (700, 40),
    "heart": (170, 15),
    "image": (1300, 30),
    "ringnorm": (400, 40),
    "splice": (1000, 30),
    "thyroid": (140, 5),
    "twonorm": (400, 40),
    "waveform": (400, 40),
}
# Largest number of thresholds of one feature.
THRESHOLDS = 200


def rows(
    folder: Path, name: str, seed: int, partition: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X, y in {-1, 1}, and the training rows of a stored partition, or drawn at random."""
    data = load(folder, f"raetsch_{name}")
    y = np.where(data["y"] > 0, 1, -1)
    if partition < len(data.get("train_idx", ())):
        return data["X"].astype(float), y, np.sort(data["train_idx"][partition])
    order = np.random.default_rng([seed, partition]).permutation(len(y))
    return data["X"].astype(float), y, np.sort(order[: SETS[name][0]])


def stumps(X: np.ndarray) -> np.ndarray:
    """Return columns ``x > t`` of 0 and 1, with t between neighbouring values.

    If a feature has more than `THRESHOLDS` of them, an even selection is taken.
    """
    columns = []
    for x in X.T:
        values = np.unique(x)
        cuts = 0.5 * (values[1:] + values[:-1])
        if len(cuts) > THRESHOLDS:
            cuts = cuts[np.linspace(0, len(cuts) - 1, THRESHOLDS).round().astype(int)]
        columns.append(x[:, None] > cuts)
    return np.hstack(columns).astype(np.int8)
