"""Masks of patch detectors: how much a template counts at each position of an image."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

# A mask is zero beyond this many standard deviations.
CUT = 2.0
# A mask is cached if its image has at most this many pixels.
REMEMBERED = 1 << 16


def mask_weights(
    shape: tuple[int, int], size: int, row: float, column: float, sigma: float
) -> np.ndarray:
    """Return the weight of every position: a Gaussian, but 0 beyond `CUT` standard deviations."""
    remembered = shape[0] * shape[1] <= REMEMBERED
    make = _remembered_mask if remembered else _remembered_mask.__wrapped__
    return make(shape, size, row, column, sigma)


@lru_cache(maxsize=1024)
def _remembered_mask(
    shape: tuple[int, int], size: int, row: float, column: float, sigma: float
) -> np.ndarray:
    y, x = (np.arange(n - size + 1) + (size - 1) / 2 for n in shape)
    squared = (y[:, None] - row) ** 2 + (x - column) ** 2
    with np.errstate(under="ignore", over="ignore", divide="ignore", invalid="ignore"):
        weights = np.exp(-squared / (2.0 * np.square(sigma)))
        mask = np.where(squared <= np.square(CUT * sigma), weights, 0.0).astype(np.float32)
    mask.setflags(write=False)
    return mask


def pixels_under(mask: np.ndarray, size: int) -> np.ndarray:
    """Return which pixels are in a window at a position under the mask, row by row.

    ``mask`` holds a weight for every position of the upper left pixel of a window of ``size``.
    """
    height, width = (n + size - 1 for n in mask.shape)
    under = np.zeros((height + 1, width + 1), dtype=np.int64)
    under[1 : mask.shape[0] + 1, 1 : mask.shape[1] + 1] = mask > 0
    under = under.cumsum(axis=0).cumsum(axis=1)  # running sums give the sum of any rectangle
    last, first = np.arange(height) + 1, np.maximum(np.arange(height) + 1 - size, 0)
    under = under[last] - under[first]
    last, first = np.arange(width) + 1, np.maximum(np.arange(width) + 1 - size, 0)
    read: np.ndarray = under[:, last] > under[:, first]
    return read.ravel()
