"""Deformed copies of training images: elastic and affine distortions (Simard et al. 2003).

An image that is slightly bent, turned, slanted, stretched or moved shows the same thing. A training
set with such copies teaches this to a classifier (ShareBoost section 5: five copies per digit).
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter1d
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, validate_data

from laconic.model.patches import image_shape, is_at_least
from laconic.numeric.threads import Threads, row_blocks


class Deform(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Random elastic and affine deformations of images (Simard, Steinkraus, Platt 2003).

    A pixel p of the deformed image is the image's value, interpolated between four pixels, at

        A (p − centre) + centre + shift + elastic_alpha · (G_σ * u)(p),

    where A turns, slants and stretches at random, u is uniform noise in [-1, 1] for each pixel and
    direction, and G_σ is a Gaussian of standard deviation ``elastic_sigma`` that smooths u.

    Parameters
    ----------
    copies : int, default=5
        Number of deformed copies that `enlarge` adds for every image.
    elastic_alpha : float, default=15.0
        Strength of the elastic deformation, in pixels before the noise is smoothed. At σ = 4 a
        strength of 15 moves pixels by 0.6 on average. 0 switches the deformation off.
    elastic_sigma : float, default=4.0
        Smoothness of the elastic deformation, in pixels.
    rotation : float, default=8.0
        Largest rotation in degrees, either way.
    scale : float, default=0.08
        Largest stretch or shrinkage of the height and of the width, as a fraction of each.
    shear : float, default=0.08
        Largest slant, in pixels sideways per pixel of height.
    shift : float, default=1.0
        Largest shift in pixels, both down and across.
    fill : float, default=0.0
        Value of pixels that come from outside the image.
    shape : tuple of two int, default=None
        Height and width of an image. A row of X holds the pixels of an image row by row. ``None``
        means square images.
    random_state : int, RandomState instance or None, default=0
        Seed of everything that is drawn at random.
    n_jobs : int, default=None
        Number of threads. ``None`` and -1 use every core. The result does not depend on it.

    Notes
    -----
    Each copy of an image is drawn independently, so the first copies are the same for any
    ``copies``. The defaults are mild, for digits of 28 x 28 pixels.

    References
    ----------
    Simard, Steinkraus, Platt. Best practices for convolutional neural networks applied to visual
    document analysis. ICDAR 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from laconic.deform import Deform
    >>> X, y = load_digits(return_X_y=True)
    >>> X_more, y_more = Deform(copies=2, elastic_alpha=4, elastic_sigma=2).enlarge(X, y)
    >>> X_more.shape, y_more.shape
    ((5391, 64), (5391,))
    """

    _block = 1024
    """Number of images that are drawn and deformed together. The random draws depend on it."""

    def __init__(
        self,
        copies: int = 5,
        *,
        elastic_alpha: float = 15.0,
        elastic_sigma: float = 4.0,
        rotation: float = 8.0,
        scale: float = 0.08,
        shear: float = 0.08,
        shift: float = 1.0,
        fill: float = 0.0,
        shape: tuple[int, int] | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.copies = copies
        self.elastic_alpha = elastic_alpha
        self.elastic_sigma = elastic_sigma
        self.rotation = rotation
        self.scale = scale
        self.shear = shear
        self.shift = shift
        self.fill = fill
        self.shape = shape
        self.random_state = random_state
        self.n_jobs = n_jobs

    def enlarge(self, X: Any, *arrays: Any) -> Any:
        """Return the images followed by ``copies`` deformed copies of each, with their labels.

        Parameters
        ----------
        X : array-like of shape (n_images, height x width)
            Integers stay integers (deformed pixels are rounded), and floats keep their type.
            Deformed pixels are computed in float32.
        *arrays : array-like of length n_images
            Labels, weights or groups, which a copy takes over from its image.

        Returns
        -------
        X_more, or (X_more, *arrays_more) if arrays were given
            First the rows as given, then the first copy of each in the same order, and so on.
        """
        X, shape = self._checked(check_array(X, dtype=None, estimator=self))
        given = [np.asarray(a) for a in arrays]
        for a in given:
            if a.ndim == 0 or len(a) != len(X):
                raise ValueError(f"an array of {a.shape} does not belong to X of {len(X)} images.")
        out = np.empty(((1 + self.copies) * len(X), X.shape[1]), dtype=X.dtype)
        out[: len(X)] = X
        self._deform(X, shape, range(self.copies), out[len(X) :])
        if not given:
            return out
        return (out, *(np.concatenate([a] * (1 + self.copies)) for a in given))

    def fit(self, X: Any, y: Any = None) -> Deform:
        """Check the settings. There is nothing to learn."""
        self._checked(validate_data(self, X, dtype=None))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the first deformed copy of every image.

        It needs no `fit`. After a `fit`, images must have as many pixels as those that it got.
        """
        if hasattr(self, "n_features_in_"):
            X = validate_data(self, X, dtype=None, reset=False)
        else:
            X = check_array(X, dtype=None, estimator=self)
        X, shape = self._checked(X)
        out = np.empty_like(X, order="C")
        self._deform(X, shape, range(1), out)
        return out

    def copies_of(self, X: Any, number: int) -> np.ndarray:
        """Return a deformed copy of every image. Each number gives other copies, from 0 on.

        The copies ``0, 1, …`` are those that `enlarge` adds, whatever ``copies`` is.
        """
        X, shape = self._checked(check_array(X, dtype=None, estimator=self))
        out = np.empty_like(X, order="C")
        self._deform(X, shape, range(number, number + 1), out)
        return out

    def _checked(self, X: np.ndarray) -> tuple[np.ndarray, tuple[int, int]]:
        """Check the settings. Return the pixels as numbers, and the shape of an image."""
        for name in ("elastic_alpha", "rotation", "scale", "shear", "shift"):
            value = getattr(self, name)
            if not is_at_least(value, Real, 0) or value == np.inf:
                raise ValueError(f"{name} must be a number of at least 0, not {value!r}.")
        sigma = self.elastic_sigma
        if not is_at_least(sigma, Real, 0) or sigma in (0, np.inf):
            raise ValueError(f"elastic_sigma must be positive, not {sigma!r}.")
        if not self.scale < 1:
            raise ValueError(f"scale must be below 1, not {self.scale!r}.")
        if not is_at_least(self.copies, Integral, 0):
            raise ValueError(f"copies must be an integer of at least 0, not {self.copies!r}.")
        if not (isinstance(self.fill, Real) and abs(self.fill) < np.inf):
            raise ValueError(f"fill must be a finite number, not {self.fill!r}.")
        if X.dtype.kind not in "iuf":
            X = check_array(X, dtype=np.float64, estimator=self)
        return X, image_shape(self.shape, X.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def _deform(
        self, X: np.ndarray, shape: tuple[int, int], copies: range, out: np.ndarray
    ) -> None:
        """Write the copies of all images into ``out``, one copy after the other."""
        from laconic.deform.warp import bilinear  # imported late, as it loads Numba

        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        smooth = [
            gaussian_filter1d(np.eye(n), self.elastic_sigma, axis=0, mode="constant") for n in shape
        ]
        smooth = [s.astype(np.float32) for s in smooth]

        def one(item: tuple[int, int, slice]) -> None:
            copy, block, rows = item
            rng = np.random.default_rng([seed, copy, block])
            images = np.ascontiguousarray(X[rows], dtype=np.float32).reshape(-1, *shape)
            affine = self._affine(rng, len(images))
            bend = np.zeros((len(images), 2, 1, 1), dtype=np.float32)
            if self.elastic_alpha > 0:
                noise = rng.random((len(images), 2, *shape), dtype=np.float32)
                bend = smooth[0] @ (2.0 * noise - 1.0) @ smooth[1].T
                bend *= np.float32(self.elastic_alpha)
            warped = np.empty_like(images)
            bilinear(images, affine, bend, np.float32(self.fill), warped)
            made = warped.reshape(len(images), -1)
            if X.dtype.kind in "iu":
                limits = np.iinfo(X.dtype)
                made = np.clip(np.rint(made), limits.min, limits.max)
            before = (copy - copies.start) * len(X)
            out[before + rows.start : before + rows.stop] = made

        blocks = list(enumerate(row_blocks(len(X), self._block)))
        with Threads(self.n_jobs) as threads:
            list(threads.map(one, [(c, number, rows) for c in copies for number, rows in blocks]))

    def _affine(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Draw the matrix and shift of every image, (n, 2, 3), which map a pixel to its source."""
        turn, slant, *rest = rng.uniform(-1.0, 1.0, (6, n))
        angle = np.deg2rad(self.rotation) * turn
        down, across = 1.0 + self.scale * rest[0], 1.0 + self.scale * rest[1]
        cos, sin = np.cos(angle), np.sin(angle)
        # Rotation times shear times stretch, on (row, column).
        slope = self.shear * slant
        matrix = [[cos * down - sin * slope * down, -sin * across],
                  [sin * down + cos * slope * down, cos * across]]  # fmt: skip
        shift = self.shift * np.array(rest[2:])
        return np.concatenate([np.array(matrix), shift[:, None]], axis=1).transpose(2, 0, 1).copy()
