"""Tuned paths: the last step of a search fits its best tunable pools again, and tunes their atoms.

Tuning takes longer than growing a path. So it waits for the last rung, where all rows are used and
the sizes that fit the budget are known. It tunes a few of these sizes: the largest one for each
word length, and then half of it, and so on, because budgets are halved, too. Each size starts from
the next smaller one. A tuned model needs no more bytes, operations and features than the one it was
chosen as, so all budgets hold as before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from laconic.compact.frontier import Tried, best_of
from laconic.compact.settings import Setting
from laconic.pools import Hinges
from laconic.tune import Tuning

# So many pools are tuned: those with the best scores among the pools that can be.
MOST_POOLS = 2
# So many sizes of a pool, each this many times the one before, down to the smallest.
MOST_SIZES, APART, SMALLEST = 3, 2.0, 2
# Fewer rows are too few to judge tuned models.
FEWEST_ROWS = 200
# The penalty of tuned paths, where "auto" would be weaker. Free atoms need more of it.
ALPHA = 1e-4
# Weights of chosen hinges are large, and short steps hardly move them.
RATE_OF_HINGES = 0.1


def tuned_settings(
    settings: Sequence[Setting], models: Sequence[Tried], max_bytes: float, asked: bool | Tuning
) -> list[Setting]:
    """Return the settings of tuned paths, for the models of the last rung."""
    fitting = [model for model in models if model.bytes <= max_bytes]
    best: dict[int, Tried] = {}
    for model in fitting:
        setting = settings[model.setting]
        if getattr(setting.pool, "tunable", False) and setting.averaged == 1:
            known = best.get(id(setting.pool), model)
            best[id(setting.pool)] = best_of([known, model], max_bytes, False)
    chosen = sorted(best.values(), key=lambda model: (-model.score, model.bytes))[:MOST_POOLS]
    found = []
    for model in sorted(chosen, key=lambda model: model.setting):
        own = [other for other in fitting if other.setting == model.setting]
        given = settings[model.setting]
        tuning = _tuning(given.pool, sizes_to_tune(own), asked)
        if not tuning.sizes:
            continue
        alpha = ALPHA if given.alpha == "auto" else given.alpha
        found.append(given._replace(title=f"{given.title}, tuned", alpha=alpha, tuning=tuning))
    return found


def _tuning(pool: Any, sizes: list[int], asked: bool | Tuning) -> Tuning:
    """Return the settings of tuning: those that were asked for, or those of the pool."""
    if isinstance(asked, Tuning):
        own = asked.sizes
        kept = sizes if own is None or isinstance(own, str) else own
        within = [n for n in sorted(set(kept)) if n <= max(sizes, default=0)]
        return replace(asked, sizes=within or None)
    given = Tuning(sizes=sizes or None)
    return replace(given, rate=RATE_OF_HINGES) if isinstance(pool, Hinges) else given


def sizes_to_tune(models: Sequence[Tried]) -> list[int]:
    """Return the sizes to tune, of the models of one setting that fit.

    Examples
    --------
    >>> from types import SimpleNamespace as M
    >>> sizes_to_tune([M(bits=8, reached=37.3), M(bits=8, reached=10), M(bits=16, reached=20)])
    [9, 18, 20, 37]
    """
    largest: dict[int, int] = {}
    for model in models:
        largest[model.bits] = max(largest.get(model.bits, 0), int(model.reached))
    found = set(largest.values())
    if found:
        found |= {int(max(found) / APART**step) for step in range(MOST_SIZES)}
    return sorted(size for size in found if size >= SMALLEST)
