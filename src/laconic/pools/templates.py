"""Learn templates of image patches by k-means, and place their masks (ShareBoost A.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from threadpoolctl import threadpool_limits

from laconic.model.windows import images_of
from laconic.numeric.threads import row_blocks

# Windows that are clustered for every template.
DRAWN = 100
# Windows drawn for each window that is clustered. Many are flat, and are dropped.
SPARE = 4
# Images that are made dense together.
ROWS = 4096
# The largest contrast counts as at most this many times the 99th percentile. So one spoiled pixel
# does not make all other windows look flat.
UNUSUAL = 1.5


class Windows(NamedTuple):
    """Some of the windows that were drawn."""

    which: np.ndarray
    """Places of these windows in the order of the draw."""
    pixels: np.ndarray
    """(windows, size²), float32."""


def draw(
    n_images: int, shape: tuple[int, int], size: int, n_templates: int, random: Any
) -> np.ndarray:
    """Draw windows at random places of random images, enough for ``n_templates`` templates.

    Return the numbers of the windows. The number of a window is the number of its image times the
    places in an image, plus its place.
    """
    total = n_images * int(np.prod([length - size + 1 for length in shape]))
    n = SPARE * DRAWN * n_templates
    if total <= n:  # then every window is drawn once
        return np.asarray(random.permutation(total))
    return np.asarray(random.randint(0, total, n, dtype=np.int64))


def windows_of(X: Any, first: int, drawn: np.ndarray, shape: tuple[int, int], size: int) -> Windows:
    """Return the drawn windows that are in the images of X. Its first image is number ``first``."""
    rows, columns = (length - size + 1 for length in shape)
    image, place = np.divmod(drawn, rows * columns)
    image -= first
    order = np.argsort(image, kind="stable")
    which = order[slice(*np.searchsorted(image[order], [0, X.shape[0]]))]
    image, place = image[which], place[which]
    out = np.empty((len(which), size * size), dtype=np.float32)
    for images in row_blocks(X.shape[0], ROWS):
        some = slice(*np.searchsorted(image, [images.start, images.stop]))
        if some.start < some.stop:
            views = sliding_window_view(images_of(X[images], shape), (size, size), axis=(1, 2))
            y, x = np.divmod(place[some], columns)
            pixels = views[image[some] - images.start, y, x]
            out[some] = pixels.reshape(len(pixels), -1)
    return Windows(which, out)


def learn_templates(
    windows: Sequence[Windows], size: int, n_templates: int, min_contrast: float, random: Any
) -> np.ndarray:
    """Return templates of zero mean and unit norm, the k-means centres of drawn windows.

    The mean of each window is subtracted. A window is dropped if its norm is below
    ``min_contrast`` times the largest usual norm (see ``UNUSUAL``). The other windows are scaled to
    unit norm and clustered. The centres are normalised again.

    Parameters
    ----------
    windows : sequence of Windows
        All windows that were drawn, from one or several parts of the images.
    size : int
        Height and width of a template.
    n_templates : int
        Number of templates. There are fewer if there are fewer different windows.
    min_contrast : float
    random : RandomState

    Returns
    -------
    ndarray of shape (n, size²), float32
    """
    from sklearn.cluster import MiniBatchKMeans  # here, because it takes long to import

    drawn = np.empty((sum(len(part.which) for part in windows), size * size), dtype=np.float32)
    for which, pixels in windows:
        drawn[which] = pixels
    # Scaling by a power of two changes no digit. Squares then neither overflow nor vanish.
    np.ldexp(drawn, -np.frexp(np.abs(drawn).max(initial=0.0))[1], out=drawn)
    drawn -= drawn.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(drawn, axis=1)
    usual = UNUSUAL * np.quantile(norms[norms > 0], 0.99) if norms.any() else 0.0
    largest = min(float(norms.max()), float(usual))
    usable = np.flatnonzero((norms >= min_contrast * largest) & (norms > 0))
    if len(usable) == 0:
        raise ValueError(
            f"every {size}x{size} window of the images is flat; patches need images with contrast"
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
    with threadpool_limits(1):  # sums in another order would change the templates
        kmeans.fit(patches)
    centres = kmeans.cluster_centers_
    centres = centres - centres.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(centres, axis=1, keepdims=True)
    return (centres / norms)[norms.ravel() > 1e-6].astype(np.float32)


def mask_centres(shape: tuple[int, int], size: int, grid: tuple[int, int]) -> np.ndarray:
    """Return the centres of masks, (rows x columns of the grid, 2), in pixels of the image.

    The positions of a template of that size are cut into a grid of equal cells. A mask is centred
    in the middle of each cell.
    """
    lines = [
        (np.arange(g) + 0.5) * (n - size + 1) / g - 0.5 + (size - 1) / 2
        for n, g in zip(shape, grid, strict=True)
    ]
    return np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 2)
