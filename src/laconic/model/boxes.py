"""Masked responses of templates over a box of positions: what patch features are computed from."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from laconic.threads import row_blocks

# What copying a pixel into a window costs, in multiply-accumulates of BLAS.
COPY = 8.0
# Responses of an image that are computed together: 512 KB, which level-2 cache holds.
RESPONSES = 1 << 17


class Box(NamedTuple):
    """A box of positions, and the atoms of one template size that are computed from it."""

    size: int
    top: int
    left: int
    rows: int
    columns: int
    templates: np.ndarray
    """(templates, size²)"""
    masks: np.ndarray
    """(masks, rows x columns)"""
    first: np.ndarray
    last: np.ndarray
    """Positions of the box that each mask lies between."""
    template: np.ndarray
    mask: np.ndarray
    place: np.ndarray
    """Template and mask of every atom in the arrays above, and its column; by template."""
    runs: list[tuple[slice, slice]]
    """Templates whose responses are computed together, and their atoms."""

    @property
    def work(self) -> float:
        """Multiply-accumulates of an image, and what copying the windows costs beside them."""
        return self.rows * self.columns * self.size**2 * (len(self.templates) + COPY)

    def compute(self, images: np.ndarray, out: np.ndarray) -> None:
        """Write the atoms' values for images (n, h, w) in float32.

        BLAS is given one image at a time, so that no image depends on those beside it.
        """
        from laconic.model.windows import masked_maxima, windows  # Numba loads with it

        positions = self.rows * self.columns
        most = max(templates.stop - templates.start for templates, _ in self.runs)
        together = max(1, min(RESPONSES // (most * positions), len(images)))
        views = np.empty((together, self.size**2, positions), dtype=np.float32)
        room = np.empty(together * most * positions, dtype=np.float32)
        for rows in row_blocks(len(images), together):
            n = rows.stop - rows.start
            box = (self.size, self.top, self.left, self.rows, self.columns)
            windows(images[rows], *box, views[:n])
            for some, atoms in self.runs:
                shape = (n, some.stop - some.start, positions)
                responses = room[: math.prod(shape)].reshape(shape)
                np.matmul(self.templates[some], views[:n], out=responses)
                masked_maxima(
                    responses,
                    some.start,
                    self.masks,
                    self.first,
                    self.last,
                    self.template[atoms],
                    self.mask[atoms],
                    self.place[atoms],
                    out[rows],
                )


def make_box(
    size: int,
    templates: np.ndarray,
    masks: np.ndarray,
    template: np.ndarray,
    mask: np.ndarray,
    place: np.ndarray,
) -> Box:
    """The smallest box that holds the supports of ``masks``, (masks, rows, columns)."""
    support = np.any(masks > 0, axis=0)
    y, x = np.flatnonzero(support.any(axis=1)), np.flatnonzero(support.any(axis=0))
    cut = np.ascontiguousarray(masks[:, y[0] : y[-1] + 1, x[0] : x[-1] + 1])
    flat = cut.reshape(len(cut), -1)
    first = (flat > 0).argmax(axis=1)
    last = flat.shape[1] - (flat[:, ::-1] > 0).argmax(axis=1)
    order = np.argsort(template, kind="stable")
    template, mask, place = (np.asarray(a, dtype=np.int64)[order] for a in (template, mask, place))
    runs = []
    for some in row_blocks(len(templates), max(1, RESPONSES // flat.shape[1])):
        low, high = np.searchsorted(template, [some.start, some.stop])
        runs.append((some, slice(int(low), int(high))))
    return Box(
        size,
        int(y[0]),
        int(x[0]),
        cut.shape[1],
        cut.shape[2],
        np.ascontiguousarray(templates, dtype=np.float32),
        flat,
        first,
        last,
        template,
        mask,
        place,
        runs,
    )
