"""Patch detectors: small templates that respond near a place of an image.

See appendix A.1 of ShareBoost, and `laconic.model.windows` for the values of the atoms.
"""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np

from laconic.files.layout import MOST, Array
from laconic.model.distinct_names import fewest_digits
from laconic.model.feature_maps import SUM
from laconic.model.lowering import LoweredMap, Primitive
from laconic.model.masks import mask_weights, pixels_under
from laconic.model.windows import WindowMaximum

# Pixels of at least this magnitude have responses that keep their digits in single precision.
SMALLEST_PIXEL = 2.0**-100


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
        return tuple(np.flatnonzero(pixels_under(self.mask(), self.size)).tolist())

    @property
    def width(self) -> int:
        """Number of columns the atom adds to the model."""
        return 1

    def mask(self) -> np.ndarray:
        """Return the weight of every position of the template's upper left pixel."""
        return mask_weights(self.shape, self.size, self.row, self.column, self.sigma)


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


def normed(template: Any) -> Any:
    """Return a template, or several along the last axis, with zero mean and unit norm."""
    template = template - template.mean(-1)[..., None]
    norm = ((template * template).sum(-1) ** 0.5)[..., None]
    return template / (norm + (norm == 0))


class PatchesMap(LoweredMap):
    """Largest masked responses of a few templates; see `laconic.model.windows`.

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
    """

    kind = "patches"
    worth = (
        "A patch is the largest response of its template near a pixel (row, column), weighted by a "
        "Gaussian around it."
    )
    reading = f"{worth} A class adds up weight × response for every patch and {SUM}"
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
        if self.number.shape != self.size.shape:
            raise ValueError("the parts of the patches do not fit together")
        places = (self.template, self.centre, self.sigma)
        self.windows = WindowMaximum(self.shape, self.size, self.values, *places)

    @property
    def n_features(self) -> int:
        """Number of pixels of an image."""
        return self.windows.n_features

    def lower(self) -> list[Primitive]:
        """Return the patches as one `WindowMaximum`."""
        return [self.windows]

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
        return self.windows.templates()

    def mask_numbers(self) -> np.ndarray:
        """Return a number for every atom. Atoms of the same size and mask have the same number."""
        return self.windows.mask_numbers()

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

    def beside(self, other: PatchesMap) -> PatchesMap:
        """Return the map of these patches and then those of another map of such images.

        Templates of the two maps are never shared.
        """
        both = {
            name: np.concatenate([own, other.arrays()[name]]) for name, own in self.arrays().items()
        }
        both["shape"] = self.shape
        both["template"][len(self.template) :] += len(self.size)
        return PatchesMap(**both)

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

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the flat arrays of the map."""
        names = ("shape", "number", "size", "values", "template", "centre", "sigma")
        return {name: getattr(self, name) for name in names}
