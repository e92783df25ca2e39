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
from laconic.numeric.threads import Threads
from laconic.pools.bound_patches import STORAGES, BoundPatches
from laconic.pools.parts import Place, Unfinished, surveyed
from laconic.pools.scaling import LARGEST
from laconic.pools.templates import Windows, draw, learn_templates, mask_centres, windows_of


class Learning(NamedTuple):
    """What is known of all images before the templates of the next size are learned."""

    learned: tuple[np.ndarray, ...]
    """Templates of the sizes before."""
    drawn: np.ndarray
    """Windows of the next size that were drawn, by number; see `draw`."""
    random: np.random.RandomState
    """As it is after that draw."""


class Glimpse(NamedTuple):
    """What a part of the images says."""

    low: float
    high: float
    """Range of the pixels."""
    n_images: int
    """Of all parts."""
    shape: tuple[int, int]
    windows: Windows
    """Those drawn that lie in this part."""
    learning: Learning


class Learned(NamedTuple):
    """What all images say."""

    map: PatchesMap
    """Every template with every mask."""
    low: float
    high: float
    """Range of the pixels."""


class Patches(TransformerMixin, BaseEstimator):
    """Templates of image patches, each looked for near every place of a grid.

    An atom is a template v and a mask g. Its value on an image I is

        max_p g(p) · ⟨v, window of I at p⟩,

    the paper's max{(I ⊗ v) × g} (A.1). The mask is a Gaussian around one place, cut to zero beyond
    two standard deviations; positions where it is zero count with the value 0, so that no value is
    negative. Templates are the centres of a k-means clustering of windows of the training images,
    of zero mean and unit norm.

    As a pool, ``ShareBoostClassifier(pool=Patches(...))`` chooses the atoms worth their place, and
    its predictor computes no others. As a transformer, ``fit`` learns the templates and
    ``transform`` computes all atoms of new images.

    Parameters
    ----------
    shape : tuple of two int, default=None
        Height and width of an image. A row of X holds its pixels row by row:
        ``images.reshape(len(images), -1)``. ``None`` means square images.
    n_templates : int, default=1000
        Templates of every size; fewer if the images have fewer different windows.
    template_size : int or tuple of int, default=7
        Height and width of a template in pixels, or several sizes in one pool.
    mask_grid : int or tuple of two int, default=4
        Masks down and across the image: the positions of a template are cut into a grid of so many
        equal cells, and a mask is centred in each.
    mask_sigma : float or tuple of float, default=4.5
        Standard deviation of the masks in pixels, at least 0.5, or several for every place.
        ``inf`` weighs all positions alike.
    min_contrast : float, default=0.3
        Windows whose norm, at zero mean, is below this part of the largest one are not clustered
        (of 1.5 times the 99th percentile, if that is less: a spoiled pixel is no measure).
    scale : {"max", "std"} or None, default="max"
        Scale of the columns in a pool, where the rule of ShareBoost depends on it: divided by their
        largest value, by their weighted standard deviation, or left as they are.
    storage : {"uint8", "float16", "float32"}, default="uint8"
        How a pool keeps its columns: 1, 2 or 4 bytes an image and atom. See the notes.
    random_state : int, RandomState instance or None, default=0
        Draws the windows and starts the clustering.

    Attributes
    ----------
    map_ : PatchesMap
        Every template with every mask, after ``fit``: ``map_.templates()`` gives the templates as
        images, ``map_.atoms()`` the records of the columns of ``transform``.
    n_features_in_ : int

    Notes
    -----
    *Storage.* A pool scores its atoms on stored columns. As uint8 a value is rounded to one of 256
    even steps from 0 to the largest response that the template can have within the range of the
    pixels: an error of at most 1/510 of that. A chosen atom's column is computed anew from the
    images, exactly as for prediction, and only these exact columns are corrected: rounding can
    change which of two nearly equal atoms comes first, but no weight and no prediction.

    *Cost.* n images of P positions take n P (size² + masks) · n_templates operations once and n
    bytes an atom (uint8); a round is one pass over these. The images stay where they are.
    Features are computed in float32 whatever the images are.

    *Parts.* Images in parts have the templates of one memory. Windows are drawn by the numbers of
    the images, at most 400 for every template and size, and only these windows leave their part.
    The parts are surveyed once for every template size.

    *Weights.* Templates are learned from the images alone: weights of rows do not change them. So
    an image of weight 2 is not quite the image twice: windows are drawn from both copies of that.

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

    def survey(self, X: Any, weight: np.ndarray, place: Place, threads: Threads) -> Glimpse:
        """The range of the pixels, and those of the windows drawn that lie in these images.

        Windows of one size only: what is drawn for the next one depends on how these are clustered.
        So there is a survey for every size.
        """
        shape = image_shape(self.shape, X.shape[1])
        if not is_at_least(self.n_templates, Integral, 1):
            raise ValueError(f"n_templates must be a positive integer, not {self.n_templates!r}")
        sizes = self._sizes(shape)
        X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
        learning = place.known or self._drawn((), place.total, shape, self._random(place.seed))
        size = sizes[len(learning.learned)]
        windows = windows_of(X, place.first, learning.drawn, shape, size)
        return Glimpse(float(X.min()), float(X.max()), place.total, shape, windows, learning)

    def merge(self, surveys: Sequence[Glimpse], threads: Threads) -> Learned | Unfinished:
        """Learn the templates of one size, the same ones for any parts."""
        low, high = min(part.low for part in surveys), max(part.high for part in surveys)
        self._check_pixels(max(high, -low))
        shape, (learned, _, random) = surveys[0].shape, surveys[0].learning
        sizes = self._sizes(shape)
        self._check_masks(shape, max(sizes))
        n, windows = int(self.n_templates), [part.windows for part in surveys]
        size = sizes[len(learned)]
        learned = (*learned, learn_templates(windows, size, n, self.min_contrast, random))
        if len(learned) < len(sizes):
            return Unfinished(self._drawn(learned, surveys[0].n_images, shape, random))
        if isinstance(self.random_state, np.random.RandomState):
            self.random_state.set_state(random.get_state())
        return Learned(self._every(shape, sizes, learned), low, high)

    def bind(
        self,
        X: Any,
        weight: np.ndarray,
        threads: Threads,
        survey: Learned | None = None,
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

    def _learned(self, X: Any, weight: np.ndarray, threads: Threads) -> Learned:
        """What images in one memory say."""
        learned: Learned = surveyed(self, [(X, weight)], [Place(0, X.shape[0])], threads)
        return learned

    def _random(self, seed: int | None) -> np.random.RandomState:
        """What draws the windows of the first size."""
        random = check_random_state(seed if self.random_state is None else self.random_state)
        # All parts are to find it as it is.
        return deepcopy(random) if random is self.random_state else random

    def _drawn(
        self,
        learned: tuple[np.ndarray, ...],
        n_images: int,
        shape: tuple[int, int],
        random: np.random.RandomState,
    ) -> Learning:
        """What is known once windows of the next size are drawn."""
        size = self._sizes(shape)[len(learned)]
        return Learning(learned, draw(n_images, shape, size, int(self.n_templates), random), random)

    def _every(
        self, shape: tuple[int, int], sizes: list[int], learned: Sequence[np.ndarray]
    ) -> PatchesMap:
        """The map of every template with every mask, template by template."""
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
        """Refuse masks that make no sense for templates up to that size."""
        grid = pair(self.mask_grid, "mask_grid")
        positions = [n - size + 1 for n in shape]
        if any(g > p for g, p in zip(grid, positions, strict=True)):
            raise ValueError(
                f"mask_grid {grid[0]}x{grid[1]} has more places than a template of {size} "
                f"pixels has positions, {positions[0]}x{positions[1]}: give a smaller grid"
            )
        self._sigmas()
        if not (is_at_least(self.min_contrast, Real, 0) and self.min_contrast <= 1):
            raise ValueError(f"min_contrast must be from 0 to 1, not {self.min_contrast!r}")

    def _check_pixels(self, largest: float) -> None:
        """Refuse pixels that single precision has no room for."""
        if 0 < largest < SMALLEST_PIXEL:
            raise ValueError(
                f"X holds no pixel above {largest:.2g}; patches are computed in single precision, "
                f"so some must be at least {SMALLEST_PIXEL:.2g}: multiply the images by a power of "
                "ten"
            )
        if self.scale is None and largest > LARGEST[4]:
            raise ValueError(
                f"X holds pixels as large as {largest:.2g}, whose squares are too large for sums "
                "over images; take scale='max'"
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
        """Learn the templates from images; ``y`` is ignored."""
        X = self._validated(X, reset=True)
        with Threads(1) as threads:
            self.map_ = self._learned(X, np.full(X.shape[0], 1.0 / X.shape[0]), threads).map
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Values of all atoms, (n_images, n_atoms), float32."""
        check_is_fitted(self, "map_")
        return self.map_.columns(self._validated(X, reset=False))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Readable names of the columns of ``transform``."""
        check_is_fitted(self, "map_")
        return np.array(self.map_.names(), dtype=object)

    def _validated(self, X: Any, reset: bool) -> Any:
        kinds = (np.float32, np.float64)
        return validated(self, X, reset=reset, accept_sparse="csr", dtype=kinds)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
