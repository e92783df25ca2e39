"""A block of rows, and the small computations on one that make up the sums over all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg.blas import dsyrk, ssyrk


class Block:
    """One block of rows: its columns (Fortran order, room to grow), scores and loss state."""

    def __init__(
        self, target: np.ndarray, weight: np.ndarray, columns: np.ndarray, offset: np.ndarray | None
    ) -> None:
        self.target = target
        self.weight = weight
        self.room = columns
        self.offset = offset
        self.state: np.ndarray | None = None

    def put(self, first: int, columns: np.ndarray) -> None:
        """Write columns from position ``first`` on, growing the room where needed."""
        need = first + columns.shape[1]
        if need > self.room.shape[1]:
            grown = np.empty((len(self.weight), 2 * need), dtype=self.room.dtype, order="F")
            grown[:, :first] = self.room[:, :first]
            self.room = grown
        self.room[:, first:need] = columns


def spread(
    piece: tuple[np.ndarray, np.ndarray, float], step: float
) -> tuple[np.ndarray, np.ndarray]:
    """Rows at even steps of accumulated curvature, each standing for one step of it."""
    columns, h, before = piece
    mass = before + np.cumsum(h.sum(axis=0, dtype=np.float64))
    first, last = np.ceil(np.array([before, mass[-1]]) / step - 0.5)
    at = np.searchsorted(mass, (np.arange(first, last) + 0.5) * step)
    at = np.minimum(at, len(mass) - 1)
    return columns[at], step * h[:, at] / h[:, at].sum(axis=0)


def weighted_grams(piece: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """Σ_i h_ci x_i x_iᵀ for every c."""
    columns, h = np.asfortranarray(piece[0]), np.sqrt(piece[1])
    syrk = ssyrk if columns.dtype == np.float32 else dsyrk
    upper = np.array([syrk(1.0, columns * root[:, None], trans=1) for root in h])
    return upper + np.triu(upper, 1).transpose(0, 2, 1)


def total(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Sum in float64, in order."""
    out = parts[0].astype(np.float64)
    for part in parts[1:]:
        out += part
    return out
