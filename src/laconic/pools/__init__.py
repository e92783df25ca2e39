"""Pools of atoms. A pool object holds settings, and ``bind`` prepares it for the training rows."""

from __future__ import annotations

from typing import Any

from laconic.pools.base import BoundPool, Choice, Pool
from laconic.pools.columns import Columns
from laconic.pools.local_columns import LocalColumns
from laconic.pools.parts import Place, PoolOfParts, Unfinished, bind_parts
from laconic.pools.patches import Patches
from laconic.pools.pieces import Pieces
from laconic.pools.products import Products
from laconic.pools.stumps import Stumps
from laconic.registry import POOLS, find

__all__ = [
    "POOLS", "BoundPool", "Choice", "Columns", "LocalColumns", "Patches", "Pieces", "Place", "Pool",
    "PoolOfParts", "Products", "Stumps", "Unfinished", "bind_parts", "make_pool",
]  # fmt: skip


def make_pool(pool: Any, scale: str | None, groups: Any, categorical: list[int]) -> Pool:
    """Return the pool of that name with the estimator's settings, or the given pool object."""
    if isinstance(pool, str) and pool not in POOLS:
        known = ", ".join(map(repr, POOLS))
        hint = "; patches need settings: pool=laconic.pools.Patches(...)" * (pool == "patches")
        raise ValueError(f"pool must be one of {known}, not {pool!r}{hint}")
    if groups is not None and not (isinstance(pool, str) and "groups" in POOLS[pool].takes):
        takes = [f'pool="{name}"' for name, own in POOLS.items() if "groups" in own.takes]
        raise ValueError(
            f"groups need {' or '.join(takes)}; with a pool object, give the groups to that object"
        )
    if isinstance(pool, str):
        settings, own = {"scale": scale, "groups": groups}, POOLS[pool]
        pool = find(own.pool)(**{name: settings[name] for name in own.takes})
    if isinstance(pool, type):
        raise TypeError(f"pool must be an object, not a class: pass {pool.__name__}()")
    if categorical and hasattr(pool, "with_categories"):
        pool = pool.with_categories(categorical)
    if not callable(getattr(pool, "bind", None)):
        known = ", ".join(repr(name) for name in POOLS)
        raise TypeError(f"pool must be {known} or an object with a bind method, not {pool!r}")
    bindable: Pool = pool
    return bindable
