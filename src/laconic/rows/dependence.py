"""Linear dependence of columns, from their Gram matrix."""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtrs


def explained(gram: np.ndarray, cross: np.ndarray) -> np.ndarray:
    """Squared norms of new columns' projections on those in: diag(Cᵀ G⁺ C)."""
    if len(gram) == 0:  # LAPACK complains on stdout of a matrix without rows
        return np.zeros(cross.shape[1])
    lower, info = dpotrf(gram, lower=1)
    pivots = np.diag(lower) ** 2
    # Columns that are combinations of each other, as included ones may be, need a pseudo-inverse.
    if info != 0 or np.any(pivots <= 1e-12 * np.diag(gram)):
        return np.sum(cross * np.linalg.lstsq(gram, cross, rcond=None)[0], axis=0)
    return np.sum(np.square(dtrtrs(lower, cross, lower=1)[0]), axis=0)
