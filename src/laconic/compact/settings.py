"""What `CompactClassifier` tries: pools of atoms and strengths of the penalty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from laconic.compact.averages import can_be_averaged
from laconic.pools import Hinges, Patches, make_pool
from laconic.registry import allows_missing
from laconic.tune import Tuning

# Hinges of few inputs are better in few bytes than those of all.
FEW_INPUTS = 4
SHORT = Hinges(n_inputs=FEW_INPUTS)
# Pools that are tried on rows of numbers. A list is one pool of several kinds of atoms.
OF_NUMBERS = ("columns", "products", "stumps", "bumps", "hinges", SHORT, "pieces",
              ["columns", "products"], ["columns", "products", "stumps"])  # fmt: skip
# Only these pools take categories and missing values.
OF_TABLES = ("stumps", "rules", ["stumps", "rules"])
# Rules need two features. The time of a round grows with the square of their number.
MOST_OF_RULES = 100
ALPHAS: tuple[float | str, ...] = ("auto", 1e-3)
# Rows of fewer pixels than this squared are not taken for images.
SMALLEST_IMAGE = 8
# Neighbours in an image differ by less than this part of what two random pixels differ by.
SMOOTH = 0.8
# Rows that are looked at to tell images from other rows.
LOOKED_AT = 500
TEMPLATES = 200
# More paths than that are taken for a mistake.
MOST_PATHS = 100


class Setting(NamedTuple):
    """What a path is fitted with."""

    title: str
    """The name of the pool, for tables."""
    pool: Any
    alpha: float | str
    rule: str = "gradient"
    """How atoms are chosen. The l1 rule would prefer some pools of a mix to others, because their
    columns have other lengths."""
    averaged: int = 1
    """How many paths are averaged."""
    tuning: Tuning | None = None
    """How atoms are tuned, and at which sizes, or None if they stay as they are chosen."""


def check_pools(pools: Any) -> None:
    """Refuse what is neither ``"auto"`` nor a list of pools."""
    if isinstance(pools, str) and pools == "auto":
        return
    if isinstance(pools, str) or not isinstance(pools, Sequence):
        raise TypeError(
            f'pools must be "auto" or a list of pools, such as ["columns", "products"]; got '
            f"{pools!r}"
        )
    for pool in pools:
        if not _is_patches(pool):
            make_pool(pool, "max", None, [])


def find_settings(
    pools: Any,
    alphas: Any,
    X: Any,
    categorical: list[int],
    image_shape: Any,
    averages: Sequence[int] = (1,),
) -> list[Setting]:
    """Return the settings to try. With ``pools="auto"`` they depend on the rows ``X``."""
    check_pools(pools)
    if isinstance(pools, str):
        pools = _fitting_pools(X, categorical, image_shape)
    alphas = list(alphas)
    if not pools or not alphas:
        raise ValueError("pools and alphas must each have at least one entry")
    for alpha in alphas:
        number = isinstance(alpha, Real) and not isinstance(alpha, bool)
        if alpha != "auto" and not (number and 0 <= alpha < math.inf):
            raise ValueError(f'alphas must hold "auto" or numbers from 0 on, not {alpha!r}')
    _check_shape(image_shape, X.shape[1])
    made = [
        make_pool(_image_pool(X, image_shape) if _is_patches(pool) else pool, "max", None,
                  categorical)
        for pool in pools
    ]  # fmt: skip
    # All pools come before the next penalty, and all penalties before the next number of averaged
    # paths. So a time limit leaves out averages first, and then penalties.
    found = [
        Setting(_title(given, n), pool, alpha, "projection" if _is_mix(given) else "gradient", n)
        for n in averages
        for alpha in alphas
        for given, pool in zip(pools, made, strict=True)
        if n == 1 or can_be_averaged(pool)
    ]
    if not found:
        raise ValueError(
            f"averages={list(averages)} needs a pool of columns, products, stumps or rules; add 1 "
            "to averages, or such a pool to pools"
        )
    return found


def check_averages(averages: Any, costs: Any) -> list[int]:
    """Return the numbers of paths to average, in order, or refuse them."""
    given = [averages] if isinstance(averages, Integral) else averages
    listed: list[Any] = list(given) if isinstance(given, (Sequence, np.ndarray)) else []
    if not listed or not all(_is_whole(n) and 1 <= n <= MOST_PATHS for n in listed):
        raise ValueError(
            f"averages must be whole numbers from 1 to {MOST_PATHS}, such as (1, 8), not "
            f"{averages!r}"
        )
    if max(listed) > 1 and costs is not None:
        raise ValueError("averages of several paths cannot have costs; use averages=1")
    return sorted({int(n) for n in listed})


def _is_whole(n: Any) -> bool:
    return isinstance(n, Integral) and not isinstance(n, bool)


def _title(pool: Any, averaged: int) -> str:
    return title_of(pool) if averaged == 1 else f"{title_of(pool)}, mean of {averaged}"


def _is_patches(pool: Any) -> bool:
    return isinstance(pool, str) and pool == "patches"


def _is_mix(pool: Any) -> bool:
    return isinstance(pool, (list, tuple))


def _check_shape(shape: Any, n_features: int) -> None:
    """Refuse a shape of images that does not fit the rows."""
    if shape is None or isinstance(shape, str):
        return
    if len(shape) != 2 or not all(isinstance(n, Integral) and int(n) > 0 for n in shape):
        raise ValueError(f"image_shape must be (height, width), not {shape!r}")
    if math.prod(shape) != n_features:
        raise ValueError(
            f"image_shape={tuple(shape)} has {math.prod(shape)} pixels, but X has {n_features} "
            "columns"
        )


def check_whole(X: Any, inputs: str, categorical: list[int], estimator: Any) -> None:
    """Refuse rows that a device cannot hand over as integers of the type ``inputs``."""
    if inputs == "float":
        return
    numbers = np.setdiff1d(np.arange(X.shape[1]), categorical)
    names = getattr(estimator, "feature_names_in_", numbers.astype(str))
    values = X[:, numbers]
    values = np.asarray(values.toarray() if sparse.issparse(values) else values, dtype=np.float64)
    limits, missing = np.iinfo(inputs), np.isnan(values)
    most = limits.max - bool(missing.any())
    with np.errstate(invalid="ignore"):
        wrong = (values != np.rint(values)) | (values < limits.min) | (values > most)
    wrong &= ~missing
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        where = names[numbers[column]] if len(names) == X.shape[1] else numbers[column]
        raise ValueError(
            f"inputs={inputs!r} takes whole numbers from {limits.min} to {most}, but row {row} has "
            f'{values[row, column]:g} in column {str(where)!r}; use inputs="float", or scale the '
            "column"
        )


def title_of(pool: Any) -> str:
    """Return the name of a pool for tables.

    Examples
    --------
    >>> title_of(["columns", "products"])
    'columns + products'
    """
    if isinstance(pool, str):
        return pool
    if isinstance(pool, (list, tuple)):
        return " + ".join(map(title_of, pool))
    return " ".join(repr(pool).split()) if hasattr(pool, "get_params") else type(pool).__name__


def allow_missing(pools: Any) -> bool:
    """Return whether all pools take missing values. With ``"auto"``, some pool always does."""
    if isinstance(pools, str) or not isinstance(pools, Sequence):
        return pools == "auto"
    return all(map(allows_missing, pools))


def _fitting_pools(X: Any, categorical: list[int], image_shape: Any) -> list[Any]:
    """Return the pools that can take the rows."""
    values = X.data if sparse.issparse(X) else X
    if categorical or np.isnan(values).any():
        return list(OF_TABLES) if 1 < X.shape[1] <= MOST_OF_RULES else ["stumps"]
    images = image_shape not in ("auto", None) or (image_shape == "auto" and looks_like_images(X))
    fit = [pool for pool in OF_NUMBERS if pool is not SHORT or X.shape[1] > FEW_INPUTS]
    return [*fit, *(["patches"] if images else [])]


def looks_like_images(X: Any) -> bool:
    """Return whether rows seem to be square images: neighbouring pixels are alike."""
    side = math.isqrt(X.shape[1])
    if side < SMALLEST_IMAGE or side**2 != X.shape[1]:
        return False
    rows = X[: min(X.shape[0], LOOKED_AT)]
    rows = np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
    images = rows.reshape(-1, side, side)
    mixed = rows[:, np.random.default_rng(0).permutation(side * side)].reshape(images.shape)
    down, across = (_roughness(images, axis) for axis in (1, 2))
    return bool(max(down, across) < SMOOTH * _roughness(mixed, 2))


def _roughness(images: np.ndarray, axis: int) -> float:
    return float(np.abs(np.diff(images, axis=axis)).mean())


def _image_pool(X: Any, image_shape: Any) -> Patches:
    """Return patches whose size fits the images."""
    shape = image_shape if image_shape not in ("auto", None) else None
    if shape is None and math.isqrt(X.shape[1]) ** 2 != X.shape[1]:
        raise ValueError(
            f"pool 'patches' needs the shape of the images, because {X.shape[1]} pixels are not a "
            "square; give image_shape=(height, width)"
        )
    side = min(shape) if shape is not None else math.isqrt(X.shape[1])
    template = min(7, max(3, side // 4))
    return Patches(shape, TEMPLATES, template, mask_grid=4, mask_sigma=max(1.5, side / 6))
