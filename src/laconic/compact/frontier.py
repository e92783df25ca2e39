"""All models that were tried, the best of them within a budget, and the frontier."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from laconic.compact.trials import COLUMNS

# Mean scores that differ by less are equal.
ROUNDING = 1e-12
AT = {name: number for number, name in enumerate(COLUMNS)}


class Tried(NamedTuple):
    """A model that was tried: a setting, a word length and a size, and its mean over the folds."""

    rung: int
    rows: int
    setting: int
    bits: int
    size: int
    reached: float
    atoms: float
    score: float
    standard_error: float
    bytes: float
    operations: float
    features: float
    cost: float


def tried_models(
    rung: int, rows: int, setting: int, bits: Sequence[int], sizes: Sequence[int], tables: Any
) -> list[Tried]:
    """Return the models of one trial, from the tables (n_folds, n_bits, n_sizes, columns).

    A model that could not be made in every fold is left out. So is a size at which no fold has a
    larger model than at the size before.
    """
    found = []
    tables = np.asarray(tables)
    mean = tables.mean(axis=0)
    spread = tables[..., AT["score"]].std(axis=0, ddof=1 if len(tables) > 1 else 0)
    for b, word in enumerate(bits):
        before = None
        for s, size in enumerate(sizes):
            values = mean[b, s]
            if np.isnan(values).any() or values[AT["reached"]] == before:
                continue
            before = values[AT["reached"]]
            numbers = dict(zip(COLUMNS, map(float, values), strict=True))
            error = float(spread[b, s]) / len(tables) ** 0.5
            found.append(Tried(rung, rows, setting, word, size, standard_error=error, **numbers))
    return found


def best_of(models: Iterable[Tried], max_bytes: float, one_standard_error: bool) -> Tried:
    """Return the model of the best score. Of equal scores, the one of fewest bytes wins.

    With ``one_standard_error``, return the smallest model whose score is within one standard error
    of the best.
    """
    fitting = [model for model in models if model.bytes <= max_bytes]
    best = max(fitting, key=lambda model: (model.score, -model.bytes))
    if not one_standard_error:
        return best
    enough = best.score - best.standard_error
    return min((m for m in fitting if m.score >= enough), key=lambda m: (m.bytes, -m.score))


def best_scores(models: Iterable[Tried], settings: Sequence[int], max_bytes: float) -> np.ndarray:
    """Return the best score of every setting within a number of bytes, or -inf."""
    best = dict.fromkeys(settings, -np.inf)
    for model in models:
        if model.setting in best and model.bytes <= max_bytes:
            best[model.setting] = max(best[model.setting], model.score)
    return np.array([best[setting] for setting in settings])


def pareto(models: Iterable[Any]) -> list[Any]:
    """Return the models that no other beats in both bytes and score, smallest first.

    Examples
    --------
    >>> from types import SimpleNamespace as M
    >>> [m.bytes for m in pareto([M(bytes=3, score=1), M(bytes=2, score=1), M(bytes=9, score=2)])]
    [2, 9]
    """
    out: list[Any] = []
    for model in sorted(models, key=lambda model: (model.bytes, -model.score)):
        if not out or model.score > out[-1].score + ROUNDING:
            out.append(model)
    return out
