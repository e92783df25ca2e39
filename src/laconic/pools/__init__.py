"""Pools of atoms. A pool object holds settings, and ``bind`` prepares it for the training rows."""

from __future__ import annotations

from typing import Any

from laconic.pools.base import BoundPool, Choice, Pool
from laconic.pools.bumps import Bumps
from laconic.pools.columns import Columns
from laconic.pools.hinges import Hinges
from laconic.pools.local_columns import LocalColumns
from laconic.pools.mixed import NOT_MIXED, Mixed
from laconic.pools.parts import Place, PoolOfParts, Unfinished, bind_parts
from laconic.pools.patches import Patches
from laconic.pools.pieces import Pieces
from laconic.pools.products import Products
from laconic.pools.rules import Rules
from laconic.pools.stumps import Stumps
from laconic.registry import POOLS, find

__all__ = [
    "POOLS", "BoundPool", "Bumps", "Choice", "Columns", "Hinges", "LocalColumns", "Mixed",
    "Patches", "Pieces", "Place", "Pool", "PoolOfParts", "Products", "Rules", "Stumps",
    "Unfinished", "bind_parts", "make_pool",
]  # fmt: skip


def make_pool(pool: Any, scale: str | None, groups: Any, categorical: list[int]) -> Pool:
    """Return the pool of that name with the estimator's settings, or the given pool object.

    A list of names and objects gives a `Mixed` pool. A list of one pool gives that pool.
    """
    listed = list(pool) if type(pool) in (list, tuple) else [pool]
    if not listed:
        raise ValueError("pool is an empty list; name one pool or several")
    takers = [item for item in listed if isinstance(item, str) and item in POOLS]
    if groups is not None and not any("groups" in POOLS[name].takes for name in takers):
        for item in listed:
            _check_name(item)
        takes = [f'pool="{name}"' for name, own in POOLS.items() if "groups" in own.takes]
        raise ValueError(
            f"groups need {' or '.join(takes)}; with a pool object, give the groups to that object"
        )
    made = [_one(item, scale, groups, len(listed) > 1) for item in listed]
    found: Any = made[0] if len(made) == 1 else Mixed(tuple(made))
    if categorical and hasattr(found, "with_categories"):
        found = found.with_categories(categorical)
    bindable: Pool = found
    return bindable


def _one(pool: Any, scale: str | None, groups: Any, mixed: bool) -> Pool:
    """Return one pool of a list, or the only pool."""
    _check_name(pool)
    if isinstance(pool, str):
        settings, own = {"scale": scale, "groups": groups}, POOLS[pool]
        pool = find(own.pool)(**{name: settings[name] for name in own.takes})
    if isinstance(pool, type):
        raise TypeError(f"pool must be an object, not a class: pass {pool.__name__}()")
    if type(pool) in (list, tuple) or (mixed and isinstance(pool, Mixed)):
        raise TypeError("pool must be one list of pools; put the pools of an inner list into it")
    if mixed and hasattr(pool, "predict"):
        raise TypeError(NOT_MIXED.format(type(pool).__name__))
    if not callable(getattr(pool, "bind", None)):
        known = ", ".join(repr(name) for name in POOLS)
        raise TypeError(f"pool must be {known} or an object with a bind method, not {pool!r}")
    bindable: Pool = pool
    return bindable


def _check_name(pool: Any) -> None:
    """Refuse text that is not the name of a pool."""
    if isinstance(pool, str) and pool not in POOLS:
        known = ", ".join(map(repr, POOLS))
        hint = "; patches need settings: pool=laconic.pools.Patches(...)" * (pool == "patches")
        raise ValueError(f"pool must be one of {known}, not {pool!r}{hint}")
