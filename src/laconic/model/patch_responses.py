"""Masked responses of templates over a box of positions. Patch features are computed from them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class BoxLimits(NamedTuple):
    """Settings for the computation of a box. They change values by rounding at most."""

    copy: float = 16.0
    """Cost of copying a pixel into a window, in multiply-accumulates of BLAS."""
    cached: int = 1 << 17
    """Most responses held together: 512 KB fit in level-2 cache."""
    multiplied: int = 1_000_000
    """Most multiplications in one call of BLAS. Up to this number OpenBLAS multiplies in place, on
    one thread. That is faster for matrices this flat, and a single image need not wait for other
    threads."""
    few: int = 8
    """Most atoms of a box that is computed without BLAS."""


class Run(NamedTuple):
    """Templates whose responses are computed together over a band of the box, and their atoms."""

    templates: np.ndarray
    """(templates, size²)"""
    positions: slice
    template: np.ndarray
    mask: np.ndarray
    place: np.ndarray
    """``template``, ``mask`` and ``place`` hold the template (in this run), the mask (in the box)
    and the column of every atom."""

    @property
    def responses(self) -> int:
        """Number of responses per image."""
        return len(self.templates) * (self.positions.stop - self.positions.start)


class Box(NamedTuple):
    """A box of positions, and the atoms of one template size that are computed from it.

    Positions of the box are numbered row by row.
    """

    size: int
    top: int
    left: int
    rows: int
    columns: int
    masks: np.ndarray
    """(masks, rows x columns)"""
    first: np.ndarray
    last: np.ndarray
    """Mask m is zero outside the positions ``first[m]:last[m]``."""
    runs: list[Run]
    limits: BoxLimits

    @property
    def work(self) -> float:
        """Multiply-accumulates per image, plus the cost of copying the windows."""
        responses = sum(run.responses for run in self.runs)
        return self.size**2 * (responses + self.limits.copy * self.rows * self.columns)

    def compute(self, images: np.ndarray, out: np.ndarray) -> None:
        """Write the atoms' values for images (n, h, w) in float32.

        BLAS computes many atoms. It is given one image at a time, so that no value depends on the
        other images. A few atoms are computed without BLAS, which saves copying the windows. All
        images are computed in one call, so that threads do not wait for the interpreter's lock.
        """
        if sum(len(run.place) for run in self.runs) <= self.limits.few:
            self._compute_few(images, out)
        else:
            self._compute_many(images, out)

    def _compute_few(self, images: np.ndarray, out: np.ndarray) -> None:
        from laconic.model.patch_kernels import LANES, lane_maxima  # it imports Numba

        pixels = np.zeros((*images.shape[1:], LANES), dtype=np.float32)
        sums, largest = np.empty((2, LANES), dtype=np.float32)
        masks = self.masks.reshape(-1, self.rows, self.columns)
        for run in self.runs:
            atoms = (run.templates, masks, run.template, run.mask, run.place)
            box = (self.top, self.left, self.size)
            lane_maxima(images, *atoms, *box, pixels, sums, largest, out)

    def _compute_many(self, images: np.ndarray, out: np.ndarray) -> None:
        from laconic.model.patch_kernels import masked_maxima  # it imports Numba

        windows = np.empty((self.size**2, self.rows * self.columns), dtype=np.float32)
        responses = np.empty(max(run.responses for run in self.runs), dtype=np.float32)
        box = (self.top, self.left, self.size, self.rows, self.columns)
        stacked, lines, *atoms = self._joined()
        limits = (self.masks, self.first, self.last)
        masked_maxima(images, stacked, *limits, *atoms, lines, *box, windows, responses, out)

    def _joined(self) -> tuple[np.ndarray, ...]:
        """Return all templates, a line for every run, and template, mask and place of all atoms.

        A line has the first template and the number of templates, the first position and the number
        of positions, and the first atom and the one after the last.
        """
        templates = np.cumsum([0, *(len(run.templates) for run in self.runs)])
        atoms = np.cumsum([0, *(len(run.place) for run in self.runs)])
        positions = np.array([[run.positions.start, run.positions.stop] for run in self.runs])
        lines = np.column_stack(
            [templates[:-1], np.diff(templates), positions[:, 0], np.diff(positions)[:, 0],
             atoms[:-1], atoms[1:]]
        )  # fmt: skip
        parts = [(run.templates, run.template, run.mask, run.place) for run in self.runs]
        stacked, *of_atoms = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return stacked, np.ascontiguousarray(lines, dtype=np.int64), *of_atoms


def make_box(
    size: int,
    templates: np.ndarray,
    masks: np.ndarray,
    template: np.ndarray,
    mask: np.ndarray,
    place: np.ndarray,
    banded: bool,
    limits: BoxLimits,
) -> Box:
    """Return the smallest box that contains the supports of ``masks``, (masks, rows, columns).

    With ``banded``, the responses of a template are computed once for every band of rows that its
    masks cover, not once for all rows. This is less work if few of its masks are used.
    """
    support = np.any(masks > 0, axis=0)
    y, x = np.flatnonzero(support.any(axis=1)), np.flatnonzero(support.any(axis=0))
    cut = np.ascontiguousarray(masks[:, y[0] : y[-1] + 1, x[0] : x[-1] + 1])
    _, rows, columns = cut.shape
    flat = cut.reshape(len(cut), -1)
    first = (flat > 0).argmax(axis=1)
    last = flat.shape[1] - (flat[:, ::-1] > 0).argmax(axis=1)
    bands = np.column_stack([first // columns, -(-last // columns)])
    if not banded:
        bands[:] = 0, rows
    edges, band = np.unique(bands, axis=0, return_inverse=True)
    band = band.ravel()[mask]
    runs = []
    for number, (low, high) in enumerate(edges.tolist()):
        positions = slice(low * columns, high * columns)
        among = np.unique(template[band == number])
        length = positions.stop - positions.start
        most = max(1, min(limits.cached // length, limits.multiplied // (length * size**2)))
        for part in np.array_split(among, -(-len(among) // most)):
            of = np.flatnonzero((band == number) & (template >= part[0]) & (template <= part[-1]))
            of = of[np.argsort(template[of], kind="stable")]
            within = np.searchsorted(part, template[of])
            stacked = np.ascontiguousarray(templates[part], dtype=np.float32)
            runs.append(Run(stacked, positions, within, mask[of], place[of]))
    return Box(size, int(y[0]), int(x[0]), rows, columns, flat, first, last, runs, limits)
