"""`WindowMaximum`: the largest response of a template near a place of an image.

See appendix A.1 of ShareBoost. A column is max_p g(p) · ⟨v, window of the image at p⟩: the largest
response of its template v over the positions p, weighted by its mask g. The mask is a Gaussian
around a place, cut to zero beyond two standard deviations. Positions where the mask is zero count
with the value 0, so no value is negative.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from laconic.model.lowering import Primitive
from laconic.model.masks import CUT, mask_weights, pixels_under
from laconic.model.patch_responses import Box, BoxLimits, make_box
from laconic.numeric.once import once

if TYPE_CHECKING:
    from laconic.numeric.threads import Threads

# Images that one worker computes at a time, in a few milliseconds.
IMAGES = 64
# Values of an image up to which more images are computed together. Then threads do more at a time.
VALUES = 256
# Tasks that there are at least, unless they would have fewer than `IMAGES` images.
TASKS = 32
# Pixels of at most this magnitude have responses that single precision can hold.
LARGEST_PIXEL = 2.0**100
# Limits, because a file of a few bytes may ask for much memory. All masks have at most MOST_WEIGHTS
# weights (256 MiB). An image has at most MOST_PIXELS pixels.
MOST_WEIGHTS, MOST_PIXELS = 1 << 26, 1 << 23


def images_of(X: Any, shape: tuple[int, int]) -> np.ndarray:
    """Return rows of pixels as contiguous images in float32."""
    rows = X.toarray() if sparse.issparse(X) else np.asarray(X)
    with np.errstate(over="ignore"):
        images = np.ascontiguousarray(rows, dtype=np.float32).reshape(-1, *shape)
    if max(images.max(initial=0.0), -images.min(initial=0.0)) <= LARGEST_PIXEL:
        return images
    largest = np.abs(rows).max(initial=0.0, where=np.isfinite(rows))
    if largest > LARGEST_PIXEL:
        raise ValueError(
            f"X holds pixels as large as {largest:.2g}, but patches are computed in single "
            f"precision, where pixels may be at most {LARGEST_PIXEL:.2g}; divide the images by a "
            "power of ten"
        )
    return images  # some are not finite, and the caller deals with them


class WindowMaximum(Primitive):
    """Largest masked responses of a few templates, as the module's docstring describes.

    Parameters
    ----------
    shape : array of shape (2,)
        Height and width of an image. A row of X holds the pixels of one image, row by row.
    size : array of shape (n_templates,)
        Height of every template, which is also its width.
    values : array
        Pixels of the templates, one template after the other, in float32.
    template : array of shape (n_columns,)
        Index of every column's template in the arrays above.
    centre : array of shape (n_columns, 2)
        Row and column of the pixel at the centre of every column's mask. The middle of the template
        is expected there.
    sigma : array of shape (n_columns,)
        Standard deviations of the masks, in pixels.
    limits : BoxLimits, optional

    Notes
    -----
    Masks of the same template share its responses where that saves work. An image has the same
    values alone and among other images, to the last bit.
    """

    fields = ("shape", "size", "values", "template", "centre", "sigma")

    def __init__(
        self,
        shape: Any,
        size: Any,
        values: Any,
        template: Any,
        centre: Any,
        sigma: Any,
        limits: BoxLimits | None = None,
    ) -> None:
        self.shape = np.asarray(shape, dtype=np.int64)
        self.size = np.asarray(size, dtype=np.int64)
        self.values = np.asarray(values, dtype=np.float32)
        self.template = np.asarray(template, dtype=np.int64)
        self.centre = np.asarray(centre, dtype=np.float64)
        self.sigma = np.asarray(sigma, dtype=np.float64)
        self._limits = limits or BoxLimits()
        self._boxes: list[Box] | None = None
        self._check()

    def _check(self) -> None:
        n, sizes = len(self.template), self.size
        sound = (
            self.shape.shape == (2,)
            and sizes.ndim == self.template.ndim == self.values.ndim == 1
            and self.centre.shape == (n, 2)
            and self.sigma.shape == (n,)
            and bool(((sizes >= 1) & (sizes <= self.shape.min())).all())
            and len(self.values) == sum(int(size) ** 2 for size in sizes)
            and bool(((self.template >= 0) & (self.template < len(sizes))).all())
            and bool(np.isfinite(self.values).all() and np.isfinite(self.centre).all())
            and bool((self.sigma > 0).all())
            and bool(self._find_a_place().all())
        )
        if not sound:
            raise ValueError("the parts of the patches do not fit together")
        masks = len(np.unique(self.mask_numbers()))
        if self.n_features > MOST_PIXELS or masks * self.n_features > MOST_WEIGHTS:
            height, width = self.shape.tolist()
            raise ValueError(
                f"{masks} masks over images of {height}x{width} take too much memory; use smaller "
                "images, or fewer places"
            )

    def _find_a_place(self) -> np.ndarray:
        """Return for each column whether the position nearest to its mask's centre is under it."""
        half = (self.size[self.template] - 1) / 2
        nearest = np.clip(
            np.round(self.centre - half[:, None]), 0, self.shape - 1 - 2 * half[:, None]
        )
        squared = np.square(nearest + half[:, None] - self.centre).sum(axis=1)
        with np.errstate(over="ignore", under="ignore"):
            near: np.ndarray = squared <= np.square(CUT * self.sigma)
        return near

    @property
    def n_features(self) -> int:
        """Number of pixels of an image."""
        return int(self.shape[0]) * int(self.shape[1])

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.template)

    def templates(self) -> list[np.ndarray]:
        """Return the templates as images, each (size, size)."""
        sizes = self.size.tolist()
        ends = accumulate(size**2 for size in sizes)
        return [
            self.values[end - size**2 : end].reshape(size, size)
            for end, size in zip(ends, sizes, strict=True)
        ]

    def mask_numbers(self) -> np.ndarray:
        """Return a number for every column. Columns of the same size and mask share it."""
        return self._mask_numbers

    @once
    def _mask_numbers(self) -> np.ndarray:
        """The numbers. Sorting masks takes long, and every box asks for them."""
        keys = np.column_stack([self.size[self.template], self.centre, self.sigma])
        return np.unique(keys, axis=0, return_inverse=True)[1].ravel()

    def mask(self, column: int) -> np.ndarray:
        """Return the weight of every position of the upper left pixel of a column's template."""
        height, width = self.shape.tolist()
        row, across = self.centre[column].tolist()
        size, sigma = int(self.size[self.template[column]]), float(self.sigma[column])
        return mask_weights((height, width), size, row, across, sigma)

    def columns(self, X: Any, threads: Threads | None = None) -> np.ndarray:
        """Return the values on new rows, (n_rows, n_columns), in float32.

        An image that is not finite has the value NaN in every column.
        """
        if X.shape[1] != self.n_features:
            height, width = self.shape
            raise ValueError(f"X has {X.shape[1]} columns, but images have {height}x{width} pixels")
        out = np.empty((X.shape[0], len(self.template)), dtype=np.float32)
        self.boxes()  # threads must not all look for them
        most = max(1, min(VALUES // max(len(self.template), 1), 16))
        together = IMAGES * min(most, -(-X.shape[0] // (TASKS * IMAGES)) or 1)
        blocks = [slice(start, start + together) for start in range(0, X.shape[0], together)]
        if threads is not None:
            list(threads.map(lambda rows: self._fill(X, rows, out), blocks))
        elif len(blocks) > 1:
            from laconic.numeric.threads import Threads  # one image needs no threads

            with Threads() as every_core:
                list(every_core.map(lambda rows: self._fill(X, rows, out), blocks))
        elif blocks:
            self._fill(X, blocks[0], out)
        return out

    def _fill(self, X: Any, rows: slice, out: np.ndarray) -> None:
        images = images_of(X[rows], (int(self.shape[0]), int(self.shape[1])))
        finite = np.isfinite(images).all(axis=(1, 2))
        if not finite.all():
            images = np.where(finite[:, None, None], images, np.float32(0))
        for box in self.boxes():
            box.compute(images, out[rows])
        out[rows][~finite] = np.nan

    def boxes(self) -> list[Box]:
        """Return the boxes that are computed together, in the way that takes the least work.

        There are three ways for the columns of a size: over all positions, over the bands of rows
        that they need, or each mask by itself.
        """
        if self._boxes is None:
            found: list[Box] = []
            sizes, masks = self.size[self.template], self.mask_numbers()
            for size in np.unique(sizes):
                atoms = np.flatnonzero(sizes == size)
                of_mask = [atoms[masks[atoms] == m] for m in np.unique(masks[atoms])]
                ways = [
                    [self.box(atoms)],
                    [self.box(atoms, banded=True)],
                    [self.box(some) for some in of_mask],
                ]
                found += min(ways, key=lambda boxes: sum(box.work for box in boxes))
            self._boxes = found  # only when complete, as other threads may read it
        return self._boxes

    def box(self, atoms: np.ndarray, banded: bool = False) -> Box:
        """Return the box for some columns of one size."""
        _, first, mask = np.unique(
            self.mask_numbers()[atoms], return_index=True, return_inverse=True
        )
        masks = np.array([self.mask(column) for column in atoms[first]])
        used, template = np.unique(self.template[atoms], return_inverse=True)
        images = self.templates()
        templates = np.array([images[t].ravel() for t in used])
        size = int(self.size[used[0]])
        places = (template.ravel(), mask.ravel(), atoms)
        return make_box(size, templates, masks, *places, banded, self._limits)

    def reads(self) -> np.ndarray:
        """Return the sorted distinct pixels that are read."""
        read = np.zeros(self.n_features, dtype=bool)
        for column in np.unique(self.mask_numbers(), return_index=True)[1]:
            read |= pixels_under(self.mask(column), int(self.size[self.template[column]]))
        return np.flatnonzero(read)

    def operations(self) -> int:
        """Count the multiply-accumulates per image.

        A template costs its number of pixels at every position where one of its masks is not zero.
        A position that several masks of one template share is counted once. The mask of every
        column adds one multiplication for each position under it.
        """
        _, first, number = np.unique(self.mask_numbers(), return_index=True, return_inverse=True)
        under = [self.mask(column) > 0 for column in first]
        weighed = np.array([mask.sum() for mask in under], dtype=np.int64)[number].sum()
        total = int(weighed)
        for t in np.unique(self.template):
            shared = np.unique(number[self.template == t])
            support = np.logical_or.reduce([under[m] for m in shared])
            total += int(support.sum()) * int(self.size[t]) ** 2
        return total
