"""The pool of patch detectors: every template with every mask (ShareBoost appendix A.1)."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from laconic.data.validation import validated
from laconic.model.patches import SMALLEST_PIXEL, PatchesMap, image_shape, is_at_least, pair
from laconic.numeric.parts import Here
from laconic.numeric.threads import Threads
from laconic.pools.bound_patches import STORAGES, BoundPatches
from laconic.pools.parts import Place, Unfinished, surveyed
from laconic.pools.scaling import LARGEST
from laconic.pools.templates import Windows, draw, learn_templates, mask_centres, windows_of


class PatchesKnown(NamedTuple):
    """What is known about all images before the templates of the next size are learned."""

    learned: tuple[np.ndarray, ...]
    """Templates of the earlier sizes."""
    drawn: np.ndarray
    """Numbers of the windows drawn for the next size; see `draw`."""
    random: np.random.RandomState
    """The random generator in its state after that draw."""


class PatchesSurvey(NamedTuple):
    """The survey of one part of the images."""

    low: float
    high: float
    """Range of the pixels."""
    n_images: int
    """Number of images in all parts."""
    shape: tuple[int, int]
    windows: Windows
    """The drawn windows that are in this part."""
    known: PatchesKnown


class MergedPatches(NamedTuple):
    """The merged survey of all images."""

    map: PatchesMap
    """Every template with every mask."""
    low: float
    high: float
    """Range of the pixels."""


class Patches(TransformerMixin, BaseEstimator):
    """Templates of image patches, each searched for near every place of a grid.

    An atom is a template v and a mask g. Its value on an image I is

        max_p g(p) · ⟨v, window of I at p⟩,

    which is the paper's max{(I ⊗ v) × g} (A.1). The mask is a Gaussian around one place. It is zero
    beyond two standard deviations. Positions where it is zero count with the value 0, so no value
    of an atom is negative. Templates are the centres of a k-means clustering of windows of the
    training images. They have zero mean and unit norm.

    As a pool, ``ShareBoostClassifier(pool=Patches(...))`` chooses a few atoms, and its predictor
    computes only these. As a transformer, ``fit`` learns the templates and ``transform`` computes
    all atoms on new images.

    Parameters
    ----------
    shape : tuple of two int, default=None
        Height and width of an image. A row of X holds its pixels row by row:
        ``images.reshape(len(images), -1)``. ``None`` means square images.
    n_templates : int, default=1000
        Number of templates of every size. There are fewer if the images have fewer different
        windows.
    template_size : int or tuple of int, default=7
        Height and width of a template in pixels. A tuple gives several sizes in one pool.
    mask_grid : int or tuple of two int, default=4
        Number of masks down and across the image. The positions of a template are cut into a grid
        of this many equal cells, and a mask is centred in each cell.
    mask_sigma : float or tuple of float, default=4.5
        Standard deviation of the masks in pixels, at least 0.5. A tuple gives several masks for
        every place. ``inf`` gives all positions the same weight.
    min_contrast : float, default=0.3
        Windows of low contrast are not clustered. The contrast of a window is its norm after its
        mean is subtracted. It must be at least this fraction of the largest contrast. If 1.5 times
        the 99th percentile is less than the largest contrast, it is used instead, so that one
        spoiled pixel does not make all other windows look flat.
    scale : {"max", "std"} or None, default="max"
        How the columns of a pool are scaled. They are divided by their largest value, divided by
        their weighted standard deviation, or left as they are. The scale changes which atoms
        ShareBoost's rule chooses.
    storage : {"uint8", "float16", "float32"}, default="uint8"
        How a pool stores its columns: with 1, 2 or 4 bytes for every image and atom. See the notes.
    random_state : int, RandomState instance or None, default=0
        Draws the windows and starts the clustering.

    Attributes
    ----------
    map_ : PatchesMap
        Every template with every mask, after ``fit``. ``map_.templates()`` returns the templates as
        images. ``map_.atoms()`` returns the records of the columns of ``transform``.
    n_features_in_ : int

    Notes
    -----
    *Storage.* A pool scores its atoms on stored columns. As uint8, a value is rounded to one of 256
    even steps. They go from 0 to the largest response that the template can have within the range
    of the pixels. The error is at most 1/510 of that response. The column of a chosen atom is
    computed again from the images, exactly as for prediction. Weights are fitted to these exact
    columns only. So rounding can change which of two nearly equal atoms comes first, but it does
    not enter weights or predictions.

    *Cost.* For n images with P positions, the pool takes n P (size² + masks) · n_templates
    operations once, and n bytes per atom (uint8). A round is one pass over these bytes. The images
    are not copied. Features are computed in float32, whatever the type of the images.

    *Parts.* Images in parts have the same templates as in one memory. Windows are drawn by the
    numbers of the images, at most 400 for every template and size, and only these windows leave
    their part. The parts are surveyed once for every template size.

    *Weights.* Templates are learned from the images alone. The weights of rows do not change them.
    So an image of weight 2 is not exactly the same as the image twice, because windows are drawn
    from both copies.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from laconic import ShareBoostClassifier
    >>> from laconic.pools import Patches
    >>> X, y = load_digits(return_X_y=True)
    >>> pool = Patches(n_templates=50, template_size=3, mask_grid=3, mask_sigma=1.5)
    >>> model = ShareBoostClassifier(20, pool=pool).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.9
    True
    """

    tunable = True
    """Whether its atoms have parameters that can be tuned; see `laconic.tune`."""
    movable = True
    """Whether its atoms can be moved when they are chosen; see `laconic.tune.at_selection`."""

    def __init__(
        self,
        shape: tuple[int, int] | None = None,
        n_templates: int = 1000,
        template_size: int | tuple[int, ...] = 7,
        mask_grid: int | tuple[int, int] = 4,
        mask_sigma: float | tuple[float, ...] = 4.5,
        *,
        min_contrast: float = 0.3,
        scale: str | None = "max",
        storage: str = "uint8",
        random_state: Any = 0,
    ) -> None:
        self.shape = shape
        self.n_templates = n_templates
        self.template_size = template_size
        self.mask_grid = mask_grid
        self.mask_sigma = mask_sigma
        self.min_contrast = min_contrast
        self.scale = scale
        self.storage = storage
        self.random_state = random_state

    # -- as a pool -----------------------------------------------------------------------------

    def survey(self, X: Any, weight: np.ndarray, place: Place, threads: Threads) -> PatchesSurvey:
        """Return the range of the pixels, and the drawn windows that are in these images.

        The windows have one size only. The draw for the next size depends on how these are
        clustered. So there is a survey for every size.
        """
        shape, size, known = self.next_windows(X.shape[1], place)
        X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
        windows = windows_of(X, place.first, known.drawn, shape, size)
        return PatchesSurvey(float(X.min()), float(X.max()), place.total, shape, windows, known)

    def next_windows(
        self, n_features: int, place: Place
    ) -> tuple[tuple[int, int], int, PatchesKnown]:
        """Return the shape of the images, the size of the next templates, and what is known."""
        shape = image_shape(self.shape, n_features)
        if not is_at_least(self.n_templates, Integral, 1):
            raise ValueError(f"n_templates must be a positive integer, not {self.n_templates!r}")
        sizes = self._sizes(shape)
        known = place.known or self._drawn((), place.total, shape, self._random(place.seed))
        return shape, sizes[len(known.learned)], known

    def merge(
        self, surveys: Sequence[PatchesSurvey], threads: Threads
    ) -> MergedPatches | Unfinished:
        """Learn the templates of one size. They do not depend on the division into parts."""
        low, high = min(part.low for part in surveys), max(part.high for part in surveys)
        self._check_pixels(max(high, -low))
        shape, (learned, _, random) = surveys[0].shape, surveys[0].known
        sizes = self._sizes(shape)
        self._check_masks(shape, max(sizes))
        n, windows = int(self.n_templates), [part.windows for part in surveys]
        size = sizes[len(learned)]
        learned = (*learned, learn_templates(windows, size, n, self.min_contrast, random))
        if len(learned) < len(sizes):
            return Unfinished(self._drawn(learned, surveys[0].n_images, shape, random))
        if isinstance(self.random_state, np.random.RandomState):
            self.random_state.set_state(random.get_state())
        return MergedPatches(self._every(shape, sizes, learned), low, high)

    def bind(
        self,
        X: Any,
        weight: np.ndarray,
        threads: Threads,
        survey: MergedPatches | None = None,
        place: Place | None = None,
    ) -> BoundPatches:
        """Learn templates from the training images and compute every atom on them."""
        if not (self.scale is None or self.scale in ("max", "std")):
            raise ValueError(f"scale must be 'max', 'std' or None, not {self.scale!r}")
        if self.storage not in STORAGES:
            raise ValueError(f"storage must be one of {', '.join(STORAGES)}, not {self.storage!r}")
        X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
        learned = survey or self._learned(X, weight, threads)
        return BoundPatches(X, weight, *learned, self.scale, self.storage, threads)

    def _learned(self, X: Any, weight: np.ndarray, threads: Threads) -> MergedPatches:
        """Return the merged survey of images in one memory."""
        rows = Here([(X, weight)], threads)
        learned: MergedPatches = surveyed(self, rows, [Place(0, X.shape[0])])
        return learned

    def _random(self, seed: int | None) -> np.random.RandomState:
        """Return the random generator that draws the windows of the first size."""
        random = check_random_state(seed if self.random_state is None else self.random_state)
        # The user's generator must not change, because all parts start from it.
        return deepcopy(random) if random is self.random_state else random

    def _drawn(
        self,
        learned: tuple[np.ndarray, ...],
        n_images: int,
        shape: tuple[int, int],
        random: np.random.RandomState,
    ) -> PatchesKnown:
        """Draw windows of the next size, and return what is known then."""
        size = self._sizes(shape)[len(learned)]
        return PatchesKnown(
            learned, draw(n_images, shape, size, int(self.n_templates), random), random
        )

    def _every(
        self, shape: tuple[int, int], sizes: list[int], learned: Sequence[np.ndarray]
    ) -> PatchesMap:
        """Return the map of every template with every mask, template by template."""
        grid, sigmas = pair(self.mask_grid, "mask_grid"), self._sigmas()
        centres = [np.tile(mask_centres(shape, s, grid), (len(sigmas), 1)) for s in sizes]
        n_masks = len(centres[0])
        counts = [len(templates) for templates in learned]
        total = sum(counts)
        return PatchesMap(
            np.array(shape),
            np.arange(total),
            np.repeat(sizes, counts),
            np.concatenate([templates.ravel() for templates in learned]),
            np.repeat(np.arange(total), n_masks),
            np.concatenate([np.tile(c, (n, 1)) for c, n in zip(centres, counts, strict=True)]),
            np.tile(np.repeat(sigmas, n_masks // len(sigmas)), total),
        )

    def _check_masks(self, shape: tuple[int, int], size: int) -> None:
        """Refuse masks that do not fit templates up to that size."""
        grid = pair(self.mask_grid, "mask_grid")
        positions = [n - size + 1 for n in shape]
        if any(g > p for g, p in zip(grid, positions, strict=True)):
            raise ValueError(
                f"mask_grid {grid[0]}x{grid[1]} has more cells than a template of {size} "
                f"pixels has positions, {positions[0]}x{positions[1]}; give a smaller grid"
            )
        self._sigmas()
        if not (is_at_least(self.min_contrast, Real, 0) and self.min_contrast <= 1):
            raise ValueError(f"min_contrast must be from 0 to 1, not {self.min_contrast!r}")

    def _check_pixels(self, largest: float) -> None:
        """Refuse pixels that are too small or too large for single precision."""
        if 0 < largest < SMALLEST_PIXEL:
            raise ValueError(
                f"X holds no pixel above {largest:.2g}, but patches are computed in single "
                f"precision and need pixels of at least {SMALLEST_PIXEL:.2g}; multiply the images "
                "by a power of ten"
            )
        if self.scale is None and largest > LARGEST[4]:
            raise ValueError(
                f"X holds pixels as large as {largest:.2g}, and their squares are too large for "
                "sums over images; set scale='max'"
            )

    def _sizes(self, shape: tuple[int, int]) -> list[int]:
        given = self.template_size
        sizes = list(given) if isinstance(given, tuple | list | np.ndarray) else [given]
        for size in sizes:
            if not is_at_least(size, Integral, 1):
                raise ValueError(f"template_size must be positive integers, not {given!r}")
            if size > min(shape):
                raise ValueError(
                    f"template_size {size} does not fit into images of {shape[0]}x{shape[1]} pixels"
                )
        if not sizes or len(set(sizes)) < len(sizes):
            raise ValueError(f"template_size must name each size once, not {given!r}")
        return [int(size) for size in sizes]

    def _sigmas(self) -> np.ndarray:
        given = self.mask_sigma
        sigmas = list(given) if isinstance(given, tuple | list | np.ndarray) else [given]
        if not sigmas or not all(is_at_least(s, Real, 0.5) for s in sigmas):
            raise ValueError(f"mask_sigma must be numbers of at least 0.5 pixels, not {given!r}")
        if len(set(sigmas)) < len(sigmas):
            raise ValueError(f"mask_sigma must name each width once, not {given!r}")
        return np.array(sigmas, dtype=np.float64)

    # -- as a transformer ----------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Patches:
        """Learn the templates from images. ``y`` is ignored."""
        X = self._validated(X, reset=True)
        with Threads(1) as threads:
            self.map_ = self._learned(X, np.full(X.shape[0], 1.0 / X.shape[0]), threads).map
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the values of all atoms, (n_images, n_atoms), in float32."""
        check_is_fitted(self, "map_")
        return self.map_.columns(self._validated(X, reset=False))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return readable names of the columns of ``transform``."""
        check_is_fitted(self, "map_")
        return np.array(self.map_.names(), dtype=object)

    def _validated(self, X: Any, reset: bool) -> Any:
        kinds = (np.float32, np.float64)
        return validated(self, X, reset=reset, accept_sparse="csr", dtype=kinds)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
