"""Check settings of users: prices, and atoms that are always or never in the model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from laconic.pools.base import BoundPool

# For features that are given by name, but have no names, as in a pipeline.
NAMELESS = (
    "but X has no feature names; give numbers of columns (a fitted vectorizer has them in "
    'vocabulary_), or a data frame (in a pipeline: set_output(transform="pandas"), for '
    "transformers that are not sparse)"
)


def resolve_atoms(items: Any, pool: BoundPool, names: Any, argument: str) -> np.ndarray:
    """Return the pool's numbers of the atoms in an include or exclude list, in order, each once.

    An item is an atom record, or a feature's name or number. A feature stands for every atom that
    reads it.
    """
    found: list[int] = []
    for item in items or ():
        meant = item
        if isinstance(item, str):
            if names is None:
                raise ValueError(f"{argument} names {item!r}, {NAMELESS}")
            where = np.flatnonzero(np.asarray(names) == item)
            if len(where) == 0:
                raise ValueError(f"{argument} names {item!r}, which is not a feature of X")
            meant = int(where[0])
        try:
            numbers = pool.matching(meant)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{argument}: {error}") from error
        if argument == "include" and len(numbers) != 1:
            raise ValueError(
                f"include: {item!r} stands for {len(numbers)} atoms; give the record of one atom, "
                "for example an entry of atoms_"
            )
        found += [int(n) for n in numbers]
    _, first = np.unique(found, return_index=True)
    return np.array(found, dtype=np.int64)[np.sort(first)]


def check_repeatable(pool: Any, checkpoint: Any) -> None:
    """Refuse a checkpoint if every fit draws new atoms.

    The numbers of atoms in the checkpoint would mean other atoms when the fit is resumed.
    """
    for each in getattr(pool, "pools", [pool]):
        if checkpoint is not None and getattr(each, "random_state", 0) is None:
            raise ValueError(
                f"a checkpoint needs a pool that draws the same atoms when a fit is resumed; give "
                f"{type(each).__name__} an integer random_state"
            )


def check_base_terms(include: np.ndarray, exclude: np.ndarray, max_atoms: int) -> None:
    """Refuse an ``include`` list that shares an atom with ``exclude``, or is too long."""
    both = np.intersect1d(include, exclude)
    if len(both):
        raise ValueError(f"include and exclude both name atom {both[0]}; remove it from one")
    if len(include) > max_atoms:
        raise ValueError(f"include names {len(include)} atoms, more than max_atoms={max_atoms}")


def check_prices(price: Any) -> list[float] | None:
    """Return the prices to choose from, highest first, or None if one price is given."""
    try:
        prices = np.asarray(price, dtype=np.float64)
    except (TypeError, ValueError):
        prices = np.array([np.nan])
    if prices.ndim > 1 or not np.all((prices >= 0) & np.isfinite(prices)):
        raise ValueError(
            f"price must be a finite number of at least 0, or a list of such numbers, not {price!r}"
        )
    if prices.ndim == 0:
        return None
    if len(prices) == 0:
        raise ValueError("price is an empty list; give one number, or several to choose from")
    return sorted(prices.tolist(), reverse=True)


def check_weak_learner(estimator: Any, caps: Iterable[str]) -> None:
    """Refuse settings that need atoms with numbers, which a classifier as pool does not have."""
    if estimator.checkpoint is not None:
        raise ValueError("a checkpoint cannot hold fitted classifiers; leave it out")
    for name in ("include", "exclude", "costs", *caps):
        if getattr(estimator, name) is not None:
            raise ValueError(
                f"{name} needs atoms with numbers, and a classifier as pool has none before it is "
                "fitted; leave it out"
            )
