"""Sums over all rows of the columns that are in: means, class sums and the Gram matrix.

The Gram matrix shows whether columns are linearly dependent.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs


class ColumnsIn(NamedTuple):
    """Sums over all rows of the columns that are in, in the order in which they were added."""

    means: np.ndarray
    """What was subtracted from each column."""
    class_sums: np.ndarray
    """(n_columns, n_classes): Σ_i weight_i x_i e_{y_i}ᵀ."""
    gram: np.ndarray
    """Σ_i weight_i x_i x_iᵀ of the columns that are written down, without those of local atoms."""

    @classmethod
    def none(cls, n_classes: int) -> ColumnsIn:
        """Return the sums without any column."""
        return cls(np.zeros(0), np.zeros((0, n_classes)), np.zeros((0, 0)))

    def joined(self, means: np.ndarray, class_sums: np.ndarray, rows: np.ndarray) -> ColumnsIn:
        """Return the sums with new columns. ``rows`` are their rows of the Gram matrix."""
        first, last = len(self.gram), len(self.gram) + len(means)
        gram = np.empty((last, last))
        gram[:first, :first] = self.gram
        gram[first:] = rows
        gram[:, first:] = gram[first:].T
        return self.joined_local(means, class_sums)._replace(gram=gram)

    def joined_local(self, means: np.ndarray, class_sums: np.ndarray) -> ColumnsIn:
        """Return the sums with new columns that are not in the Gram matrix."""
        sums = np.vstack([self.class_sums, class_sums])
        return self._replace(means=np.append(self.means, means), class_sums=sums)

    def first(self, n: int, written: int) -> ColumnsIn:
        """Return the sums of the first n columns only, of which so many are written down."""
        return ColumnsIn(self.means[:n], self.class_sums[:n], self.gram[:written, :written])

    def explains_last(self, width: int, single: bool) -> bool:
        """Return whether the last columns are combinations of earlier ones, up to rounding.

        ``single`` says that the columns are in single precision.
        """
        n = len(self.gram) - width
        old, new = np.s_[:n], np.s_[n:]
        own = np.diag(self.gram)[new]
        whole = own + self.means[len(self.means) - width :] ** 2
        known = _explained(self.gram[old, old], self.gram[old, new])
        rounding = 1e-5 if single else 1e-9
        nothing = _rounding(single) ** 2 * whole
        return bool(np.all(own - known <= np.maximum(rounding * own, nothing)))

    def repeats_last(self, single: bool) -> bool:
        """Return whether the last column equals an earlier one, up to scale, sign and rounding."""
        size, cross = np.sqrt(np.diag(self.gram)), np.abs(self.gram[-1, :-1])
        same = cross >= (1.0 - _rounding(single)) * size[-1] * size[:-1]
        # A zero column is a multiple of every column, but other columns are not multiples of it.
        return bool(np.any(same & ((size[:-1] > 0) | (size[-1] == 0))))


def _rounding(single: bool) -> float:
    return 64.0 * float(np.finfo(np.float32 if single else np.float64).eps)


def _explained(gram: np.ndarray, cross: np.ndarray) -> np.ndarray:
    """Return squared norms of the projections of new columns on the columns in, diag(Cᵀ G⁺ C)."""
    if len(gram) == 0:  # LAPACK prints a complaint about a matrix without rows
        return np.zeros(cross.shape[1])
    lower, info = dpotrf(gram, lower=1)
    pivots = np.diag(lower) ** 2
    # Columns that the user includes may be linearly dependent. They need a pseudo-inverse.
    if info != 0 or np.any(pivots <= 1e-12 * np.diag(gram)):
        return np.sum(cross * np.linalg.lstsq(gram, cross, rcond=None)[0], axis=0)
    return np.sum(np.square(dtrtrs(lower, cross, lower=1)[0]), axis=0)
