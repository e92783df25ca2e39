"""Class labels in C."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from laconic.export.c_text import identifier, quoted


def label_values(classes: np.ndarray) -> np.ndarray:
    """Return the numbers that stand for the classes in C.

    Labels that are whole numbers from -32,767 to 32,767 stand for themselves, because an ``int``
    of some chips has 16 bits. Other labels are counted from 0.
    """
    labels = np.asarray(classes)
    if labels.dtype.kind in "iu" and np.abs(labels.astype(np.float64)).max() < 2**15:
        return labels.astype(np.int64)
    return np.arange(len(labels))


class Named(NamedTuple):
    """An entry of an enum: its C name, its number, and what it stands for."""

    name: str
    value: int
    means: str


def label_names(prefix: str, classes: np.ndarray) -> list[Named]:
    """Return the enum of the labels."""
    values = label_values(classes).tolist()
    return [
        Named(f"{prefix}_LABEL_{identifier(label)}", value, quoted(label))
        for label, value in zip(classes, values, strict=True)
    ]
