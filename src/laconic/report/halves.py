"""Two random halves of the rows that do not depend on their order.

Each row gets a key from what it holds and from the seed. The first half of the keys is fresh. Rows
that hold the same are told apart by counting them, so that each goes to either half at random.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np

from laconic.report.columns import TableColumn

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def row_keys(columns: list[TableColumn], others: list[np.ndarray], seed: int) -> np.ndarray:
    """Return a key for every row, as random as a hash, from its cells and other values.

    The order of the rows and of the columns does not matter.

    Parameters
    ----------
    columns : list of TableColumn
    others : list of ndarray
        More values of each row: labels, probabilities or losses.
    seed : int
    """
    n = len(others[0])
    key = np.full(n, _text_key(f"seed {seed}"), dtype=np.uint64)
    for column in columns:
        if column.names is None:
            cells = _number_keys(column.values)
        else:
            names = [_text_key(name) for name in column.names]
            cells = np.array([*names, 1], dtype=np.uint64)[column.values.astype(np.int64)]
        key += _mixed(cells ^ np.uint64(_text_key(f"column {column.name}")))
    for place, values in enumerate(others):
        cells = _number_keys(values) if values.dtype.kind == "f" else _label_keys(values)
        key += _mixed(cells ^ np.uint64(_text_key(f"other {place}")))
    key = _mixed(key)
    order = np.argsort(key, kind="stable")
    same = np.append(False, key[order][1:] == key[order][:-1])
    start = np.maximum.accumulate(np.where(same, 0, np.arange(n)))
    copy = np.empty(n, dtype=np.uint64)
    copy[order] = np.arange(n) - start
    return _mixed(key + copy * GOLDEN)


def fresh_half(keys: np.ndarray, wrong: np.ndarray) -> np.ndarray:
    """Return a random half of the rows, with half of the errors."""
    fresh = np.zeros(len(wrong), dtype=bool)
    for rows in (np.flatnonzero(wrong), np.flatnonzero(~wrong)):
        fresh[rows[np.argsort(keys[rows], kind="stable")][: len(rows) // 2]] = True
    return fresh


def _number_keys(values: np.ndarray) -> np.ndarray:
    """Return the bits of numbers, with one zero and one NaN."""
    numbers = np.asarray(values, dtype=np.float64) + 0.0
    return np.where(np.isnan(numbers), np.nan, numbers).view(np.uint64)


def _label_keys(labels: np.ndarray) -> np.ndarray:
    names, codes = np.unique(labels.astype(str), return_inverse=True)
    return np.array([_text_key(name) for name in names.tolist()], dtype=np.uint64)[codes]


def _text_key(text: Any) -> int:
    return int.from_bytes(blake2b(str(text).encode(), digest_size=8).digest(), "little")


def _mixed(keys: np.ndarray) -> np.ndarray:
    """Scatter keys over all 64 bits (the last steps of SplitMix64)."""
    keys = keys + GOLDEN
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))
