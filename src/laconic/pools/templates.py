"""Templates of image patches by k-means, and the places of their masks (ShareBoost A.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from laconic.model.patches import images_of

# Windows drawn for every template that is to be found among them.
DRAWN = 100
# Windows drawn in all for each one wanted: many are flat, and dropped.
SPARE = 4
# Rows of images that are made dense together.
ROWS = 4096
# The largest contrast is taken as at most so many times that of all but one window in a hundred:
# one spoiled pixel does not make all other windows look flat.
UNUSUAL = 1.5


def learn_templates(
    X: Any,
    shape: tuple[int, int],
    size: int,
    n_templates: int,
    min_contrast: float,
    random_state: Any,
) -> np.ndarray:
    """Templates of zero mean and unit norm: k-means centres of windows drawn from the images.

    Windows are brought to zero mean; those whose norm is below ``min_contrast`` times the largest
    usual one are dropped, the others brought to unit norm, clustered, and the centres again
    normalised.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_images, height x width)
    shape : tuple of int
        Height and width of an image.
    size : int
        Height and width of a template.
    n_templates : int
        The most templates; fewer if there are fewer different windows.
    min_contrast : float
    random_state : int, RandomState instance or None

    Returns
    -------
    ndarray of shape (n, size²), float32
    """
    from sklearn.cluster import MiniBatchKMeans  # here, because it takes long to load

    random = check_random_state(random_state)
    drawn = _draw(X, shape, size, SPARE * DRAWN * n_templates, random)
    # In units of a power of two, which changes no digit, squares neither overflow nor vanish.
    np.ldexp(drawn, -np.frexp(np.abs(drawn).max(initial=0.0))[1], out=drawn)
    drawn -= drawn.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(drawn, axis=1)
    usual = UNUSUAL * np.quantile(norms[norms > 0], 0.99) if norms.any() else 0.0
    largest = min(float(norms.max()), float(usual))
    usable = np.flatnonzero((norms >= min_contrast * largest) & (norms > 0))
    if len(usable) == 0:
        raise ValueError(
            f"every {size}x{size} window of the images is flat: patches need images with contrast"
        )
    usable = usable[: DRAWN * n_templates]
    patches = drawn[usable] / norms[usable, None]
    different = np.unique(patches, axis=0)
    if len(different) <= n_templates:
        return different
    kmeans = MiniBatchKMeans(
        n_templates,
        batch_size=max(1024, 4 * n_templates),
        max_iter=20,
        n_init=1,
        random_state=random,
    )
    with threadpool_limits(1):  # sums in another order would give other templates
        kmeans.fit(patches)
    centres = kmeans.cluster_centers_
    centres = centres - centres.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(centres, axis=1, keepdims=True)
    return (centres / norms)[norms.ravel() > 1e-6].astype(np.float32)


def _draw(X: Any, shape: tuple[int, int], size: int, n: int, random: Any) -> np.ndarray:
    """Windows at random places of random images, in the order they were drawn."""
    rows, columns = (length - size + 1 for length in shape)
    total = X.shape[0] * rows * columns
    few = total <= n  # then every window once
    at = random.permutation(total) if few else random.randint(0, total, n, dtype=np.int64)
    image, place = np.divmod(at, rows * columns)
    out = np.empty((len(at), size * size), dtype=np.float32)
    order = np.argsort(image, kind="stable")
    for start in range(0, X.shape[0], ROWS):
        stop = min(start + ROWS, X.shape[0])
        low, high = np.searchsorted(image[order], [start, stop])
        if low < high:
            some = order[low:high]
            views = sliding_window_view(images_of(X[start:stop], shape), (size, size), axis=(1, 2))
            y, x = np.divmod(place[some], columns)
            out[some] = views[image[some] - start, y, x].reshape(len(some), -1)
    return out


def mask_centres(shape: tuple[int, int], size: int, grid: tuple[int, int]) -> np.ndarray:
    """Centres of masks, (rows x columns of the grid, 2), in pixels of the image.

    The positions of a template of that size are cut into a grid of equal cells; a mask is centred
    in the middle of each.
    """
    lines = [
        (np.arange(g) + 0.5) * (n - size + 1) / g - 0.5 + (size - 1) / 2
        for n, g in zip(shape, grid, strict=True)
    ]
    return np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 2)
