"""Patch detectors: small templates that respond near a place of an image.

See appendix A.1 of ShareBoost. The value of an atom is max_p g(p) · ⟨v, window of the image at p⟩.
This is the largest response of its template v over the positions p, weighted by its mask g. The
mask is a Gaussian around a place, cut to zero beyond two standard deviations. Positions where the
mask is zero count with the value 0, so no value is negative.
"""

from __future__ import annotations

import math
from functools import lru_cache
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy import sparse

from laconic.files.layout import MOST, Array
from laconic.model.distinct_names import fewest_digits
from laconic.model.feature_maps import SUM
from laconic.model.patch_responses import Box, BoxLimits, make_box

if TYPE_CHECKING:
    from laconic.numeric.threads import Threads

# A mask is zero beyond this many standard deviations.
CUT = 2.0
# Images that one worker computes at a time, in a few milliseconds.
IMAGES = 64
# Pixels between these magnitudes have responses that keep their digits in single precision.
SMALLEST_PIXEL, LARGEST_PIXEL = 2.0**-100, 2.0**100
# Limits, because a file of a few bytes may ask for much memory. A mask is cached if its image has
# at most REMEMBERED pixels. All masks of a map have at most MOST_WEIGHTS weights (256 MiB). An
# image has at most MOST_PIXELS pixels.
REMEMBERED, MOST_WEIGHTS, MOST_PIXELS = 1 << 16, 1 << 26, 1 << 23


class Patch(NamedTuple):
    """A template and the mask that says where it may be found.

    ``template`` is its number in the pool. The mask is centred at the pixel (``row``, ``column``),
    where the middle of the template is expected.
    """

    template: int
    size: int
    row: float
    column: float
    sigma: float
    shape: tuple[int, int]

    @property
    def reads(self) -> tuple[int, ...]:
        """Input features (pixels, row by row) the atom reads."""
        return tuple(np.flatnonzero(self._read()).tolist())

    @property
    def width(self) -> int:
        """Number of columns the atom adds to the model."""
        return 1

    def mask(self) -> np.ndarray:
        """Return the weight of every position of the template's upper left pixel."""
        return mask_weights(self.shape, self.size, self.row, self.column, self.sigma)

    def _read(self) -> np.ndarray:
        """Return which pixels are in a window at a position under the mask, by running sums."""
        height, width = self.shape
        under = np.zeros((height + 1, width + 1), dtype=np.int64)
        rows, columns = (n - self.size + 1 for n in self.shape)
        under[1 : rows + 1, 1 : columns + 1] = self.mask() > 0
        under = under.cumsum(axis=0).cumsum(axis=1)
        last, first = np.arange(height) + 1, np.maximum(np.arange(height) + 1 - self.size, 0)
        under = under[last] - under[first]
        last, first = np.arange(width) + 1, np.maximum(np.arange(width) + 1 - self.size, 0)
        read: np.ndarray = under[:, last] > under[:, first]
        return read.ravel()


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


def image_shape(shape: Any, n_features: int) -> tuple[int, int]:
    """Return the height and width of images with ``n_features`` pixels, by default squares."""
    if shape is None:
        side = math.isqrt(n_features)
        if side * side != n_features:
            raise ValueError(
                f"X has {n_features} features, which is not a square image; give "
                "shape=(height, width)"
            )
        return side, side
    height, width = pair(shape, "shape")
    if height * width != n_features:
        raise ValueError(
            f"shape {height}x{width} has {height * width} pixels, but X has {n_features} features; "
            "flatten images with images.reshape(len(images), -1)"
        )
    return height, width


def pair(value: Any, name: str) -> tuple[int, int]:
    """Return two positive integers. A single integer stands for both."""
    pair = tuple(value) if isinstance(value, tuple | list | np.ndarray) else (value, value)
    if len(pair) != 2 or not all(is_at_least(v, Integral, 1) for v in pair):
        raise ValueError(f"{name} must be a positive integer or a pair of them, not {value!r}")
    return int(pair[0]), int(pair[1])


def is_at_least(value: Any, kind: Any, least: float) -> bool:
    """Return whether a setting is a number of type ``kind`` and at least ``least``."""
    return isinstance(value, kind) and not isinstance(value, bool) and bool(value >= least)


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


class PatchesMap:
    """Largest masked responses of a few templates, as the module's docstring describes.

    Parameters
    ----------
    shape : ndarray of shape (2,)
        Height and width of an image. A row of X holds the pixels of one image, row by row.
    number, size : ndarray of shape (n_templates,)
        Number of every template in the pool, and its height, which is also its width.
    values : ndarray
        Pixels of the templates, one template after the other.
    template : ndarray of shape (n_atoms,)
        Index of every atom's template in the arrays above.
    centre : ndarray of shape (n_atoms, 2)
        Row and column of the pixel at the centre of every atom's mask.
    sigma : ndarray of shape (n_atoms,)
        Standard deviations of the masks, in pixels.

    Notes
    -----
    Masks of the same template share its responses where that saves work. An image has the same
    values alone and among other images, to the last bit.
    """

    kind = "patches"
    reading = (
        "A patch is the largest response of its template near a pixel (row, column), weighted by a "
        f"Gaussian around it. A class adds up weight × response for every patch and {SUM}"
    )
    to_see = "To see every patch with its mask: {}"
    layout: ClassVar[dict[str, Array]] = {
        "shape": Array("i", (2,), 1),
        "number": Array("i", ("templates",), 0),
        "size": Array("i", ("templates",), 1),
        "values": Array("f", ("values",)),
        "template": Array("i", ("atoms",), 0, below="templates"),
        "centre": Array("f", ("atoms", 2), -MOST, MOST),
        "sigma": Array("f", ("atoms",), 1e-3, finite=False),  # infinity means a mask of ones
    }
    remarks = ("number",)
    _limits = BoxLimits()

    def __init__(
        self,
        shape: np.ndarray,
        number: np.ndarray,
        size: np.ndarray,
        values: np.ndarray,
        template: np.ndarray,
        centre: np.ndarray,
        sigma: np.ndarray,
    ) -> None:
        self.shape = np.asarray(shape, dtype=np.int64)
        self.number = np.asarray(number, dtype=np.int64)
        self.size = np.asarray(size, dtype=np.int64)
        self.values = np.asarray(values, dtype=np.float32)
        self.template = np.asarray(template, dtype=np.int64)
        self.centre = np.asarray(centre, dtype=np.float64)
        self.sigma = np.asarray(sigma, dtype=np.float64)
        self._check()
        self._boxes: list[Box] | None = None

    def _check(self) -> None:
        n, sizes = len(self.template), self.size
        sound = (
            self.shape.shape == (2,)
            and sizes.ndim == self.template.ndim == self.values.ndim == 1
            and self.number.shape == sizes.shape
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
        """Return for each atom whether the position nearest to its mask's centre is under it."""
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
        """Number of columns, one per atom."""
        return len(self.template)

    def atoms(self, places: Any = None) -> list[Patch]:
        """Return the records of the atoms at ``places``, or of all atoms."""
        height, width = (int(n) for n in self.shape)
        places = range(len(self.template)) if places is None else places
        out = []
        for a in places:
            t, sigma = self.template[a], float(self.sigma[a])
            row, column = self.centre[a].tolist()
            number, size = int(self.number[t]), int(self.size[t])
            out.append(Patch(number, size, row, column, sigma, (height, width)))
        return out

    def templates(self) -> list[np.ndarray]:
        """Return the templates as images, each (size, size)."""
        ends = np.cumsum(self.size**2)[:-1]
        parts = np.split(self.values, ends)[: len(self.size)]
        return [v.reshape(s, s) for v, s in zip(parts, self.size, strict=True)]

    def columns(self, X: Any, threads: Threads | None = None) -> np.ndarray:
        """Return the values on new rows, (n_rows, n_atoms), in float32.

        An image that is not finite has the value NaN for every atom.
        """
        if X.shape[1] != self.shape.prod():
            height, width = self.shape
            raise ValueError(f"X has {X.shape[1]} columns, but images have {height}x{width} pixels")
        out = np.empty((X.shape[0], len(self.template)), dtype=np.float32)
        blocks = [slice(start, start + IMAGES) for start in range(0, X.shape[0], IMAGES)]
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

        There are three ways for the atoms of a size: over all positions, over the bands of rows
        that they need, or each mask by itself.
        """
        if self._boxes is None:
            found: list[Box] = []
            sizes, masks = self.size[self.template], self.mask_numbers()
            for size in np.unique(sizes):
                atoms = np.flatnonzero(sizes == size)
                of_mask = [atoms[masks[atoms] == m] for m in np.unique(masks[atoms])]
                ways = [
                    [self._box(atoms)],
                    [self._box(atoms, banded=True)],
                    [self._box(some) for some in of_mask],
                ]
                found += min(ways, key=lambda boxes: sum(box.work for box in boxes))
            self._boxes = found  # only when complete, as other threads may read it
        return self._boxes

    def mask_numbers(self) -> np.ndarray:
        """Return a number for every atom. Atoms of the same size and mask have the same number."""
        keys = np.column_stack([self.size[self.template], self.centre, self.sigma])
        return np.unique(keys, axis=0, return_inverse=True)[1].ravel()

    def _box(self, atoms: np.ndarray, banded: bool = False) -> Box:
        """Return the box for some atoms of one size."""
        _, first, mask = np.unique(
            self.mask_numbers()[atoms], return_index=True, return_inverse=True
        )
        masks = np.array([record.mask() for record in self.atoms(atoms[first])])
        used, template = np.unique(self.template[atoms], return_inverse=True)
        images = self.templates()
        templates = np.array([images[t].ravel() for t in used])
        size = int(self.size[used[0]])
        places = (template.ravel(), mask.ravel(), atoms)
        return make_box(size, templates, masks, *places, banded, self._limits)

    def take(self, atoms: Any) -> PatchesMap:
        """Return the map of some of the atoms, in the order given."""
        atoms = np.asarray(atoms, dtype=np.int64)
        used, template = np.unique(self.template[atoms], return_inverse=True)
        images = self.templates()
        values = np.concatenate([images[t].ravel() for t in used] or [self.values[:0]])
        return PatchesMap(
            self.shape,
            self.number[used],
            self.size[used],
            values,
            template.ravel(),
            self.centre[atoms],
            self.sigma[atoms],
        )

    def names(self, feature_names: Any = None, categories: Any = None) -> list[str]:
        """Return the template, size, place and mask width of every atom as text."""
        atoms = list(self.atoms())

        def write(digits: int) -> list[str]:
            return [
                f"patch {a.template} ({a.size}x{a.size}) "
                f"near ({a.row:.{digits}g}, {a.column:.{digits}g}) ± {a.sigma:.{digits}g}"
                for a in atoms
            ]

        return fewest_digits(write, len(set(atoms)), 3)

    def features(self) -> np.ndarray:
        """Return the sorted distinct pixels that are read."""
        read = np.zeros(int(self.shape.prod()), dtype=bool)
        _, first = np.unique(self.mask_numbers(), return_index=True)
        for atom in self.atoms(first):
            read[list(atom.reads)] = True
        return np.flatnonzero(read)

    def operations(self) -> int:
        """Count the multiply-accumulates per image.

        A template costs its number of pixels at every position where one of its masks is not zero.
        A position that several masks of one template share is counted once. The mask of every atom
        adds one multiplication for each position under it.
        """
        _, first, number = np.unique(self.mask_numbers(), return_index=True, return_inverse=True)
        under = [atom.mask() > 0 for atom in self.atoms(first)]
        weighed = np.array([mask.sum() for mask in under], dtype=np.int64)[number].sum()
        total = int(weighed)
        for t in np.unique(self.template):
            shared = np.unique(number[self.template == t])
            support = np.logical_or.reduce([under[m] for m in shared])
            total += int(support.sum()) * int(self.size[t]) ** 2
        return total

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the flat arrays of the map."""
        names = ("shape", "number", "size", "values", "template", "centre", "sigma")
        return {name: getattr(self, name) for name in names}
