"""Class labels in C."""

from __future__ import annotations

import numpy as np

from laconic.export.c_text import identifier


def label_values(classes: np.ndarray) -> np.ndarray:
    """Return the numbers that stand for the classes in C.

    Labels that are whole numbers of at most 15 bits stand for themselves. Other labels are counted
    from 0.
    """
    labels = np.asarray(classes)
    if labels.dtype.kind in "iu" and np.abs(labels.astype(np.float64)).max() < 2**15:
        return labels.astype(np.int64)
    return np.arange(len(labels))


def label_names(prefix: str, classes: np.ndarray) -> list[tuple[str, int]]:
    """Return the C name and the number of every label."""
    names = [f"{prefix}_LABEL_{identifier(label)}" for label in classes]
    return list(zip(names, label_values(classes).tolist(), strict=True))
