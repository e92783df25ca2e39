"""A shard that can be lost: it is brought to the state of a recipe before it answers.

If the shard is where the recipe wants it, nothing is done. If the shard is new, because its worker
died, all steps are done again. It then answers with the same bits.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from laconic.numeric.threads import Threads
from laconic.rows.recipe import Call, In, Recipe
from laconic.rows.rest import Rest
from laconic.rows.shard import Shard
from laconic.rows.sums import whole
from laconic.rows.tree import OfRows

# Trials whose shards a keeper holds. A trial that comes back later is made again.
TRIALS = 8
# Number of atoms that are written down together when a shard is made again.
TOGETHER = 64


class Keeper:
    """A shard, the trials that began from it, and the state of each.

    A copy in another process, for example on another worker, starts without columns.

    Parameters
    ----------
    shard : Shard
        A shard without columns.
    """

    def __init__(self, shard: Shard) -> None:
        self.n_rows = shard.n_rows
        self._main = Answers(shard)
        self._trials: OrderedDict[int, Answers] = OrderedDict()
        self._lock = threading.Lock()

    def answer(self, recipe: Recipe, calls: Sequence[Call]) -> list[Any]:
        """Bring the shard to the state of the recipe, and answer the calls there."""
        with self._lock:
            answers = self._answers_of(recipe)
            answers.bring(recipe)
            return [getattr(answers, call.method)(*call.arguments) for call in calls]

    def _answers_of(self, recipe: Recipe) -> Answers:
        if recipe.trial is None:
            return self._main
        number, keep = recipe.trial
        if number not in self._trials:
            assert recipe.origin is not None
            self._main.bring(recipe.origin)
            self._trials[number] = self._main.trial(keep)
            while len(self._trials) > TRIALS:
                self._trials.popitem(last=False)
        self._trials.move_to_end(number)
        return self._trials[number]

    def class_shares(self) -> np.ndarray:
        """Return the sum of the weights of every class."""
        return self._main.shard.class_shares()

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (self._main.shard.rest,)


def _made_again(rest: Rest) -> Keeper:
    return Keeper(Shard(rest, Threads(1)))


class Answers:
    """A shard in a known state, and what it can be asked."""

    def __init__(self, shard: Shard, columns: tuple[In, ...] = ()) -> None:
        self.shard = shard
        self._state = Recipe(columns)
        self._run = 0
        self._sums: tuple[np.ndarray, np.ndarray] | None = None
        self._evaluated: tuple[float, np.ndarray] | None = None

    def trial(self, keep: bool) -> Answers:
        """Return a shard in which atoms are tried."""
        return Answers(self.shard.trial(keep), self._state.columns if keep else ())

    def bring(self, recipe: Recipe) -> None:
        """Bring the shard to the state of a recipe."""
        if not recipe.same_evaluation(self._state):
            assert recipe.weights is not None
            self._put(recipe.at)
            self._evaluate(recipe.weights)
        self._put(recipe.columns)

    def _evaluate(self, weights: np.ndarray) -> tuple[float, np.ndarray]:
        self._evaluated = self.shard.evaluate(weights)
        self._state = self._state._replace(weights=weights, at=self._state.columns)
        return self._evaluated

    def _put(self, columns: tuple[In, ...]) -> None:
        """Cut the columns that differ, and add those that are missing."""
        known = self._state.columns
        keep = 0
        while keep < min(len(known), len(columns)) and known[keep] == columns[keep]:
            keep += 1
        if keep < len(known):
            kept, self._run = known[:keep], 0
            written = sum(len(each.means) for each in kept if each.means is not None)
            self.shard.cut(written, sum(each.means is None for each in kept))
            self._state = self._state._replace(columns=kept)
        while len(self._state.columns) < len(columns):
            at = len(self._state.columns)
            self._add(columns[at : _end_of_run(columns, at)])

    def _add(self, run: tuple[In, ...]) -> None:
        """Add the constant column, a local atom, or some atoms that are written down together."""
        if run[0].means is None:
            self._sums = self.shard.put_local(run[0].atom), np.zeros((0, 0))
        elif run[0].atom < 0:
            self._sums = self.shard.put_constant()
        else:
            self.shard.offer([each.atom for each in run])
            self._sums = self.shard.take(np.concatenate([each.means for each in run]))
        self._run = len(run)
        self._state = self._state._replace(columns=(*self._state.columns, *run))

    # -- the columns that are in ---------------------------------------------------------------

    def sums_of_last(self, n_atoms: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the class sums and Gram rows of the last atoms; see `Shard.take`."""
        if self._run != n_atoms:  # a shard that was made again added others together with them
            columns = self._state.columns
            self._put(columns[: len(columns) - n_atoms])
            self._put(columns)
        assert self._sums is not None
        return self._sums

    def sums_of(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the weighted sums of the columns of some atoms."""
        return self.shard.offer(atoms)

    def unlike(self) -> tuple[int, np.ndarray]:
        """Return what `Shard.unlike` returns."""
        return self.shard.unlike()

    # -- the loss ------------------------------------------------------------------------------

    def evaluated(self) -> tuple[float, np.ndarray]:
        """Return the loss and its gradient at the last evaluation."""
        assert self._evaluated is not None
        return self._evaluated

    def evaluate_all(self, points: Sequence[np.ndarray]) -> list[tuple[float, np.ndarray]]:
        """Return the loss and its gradient at several points."""
        return [self._evaluate(W) for W in points]

    def whole_hessian(self, step: float | None) -> tuple[np.ndarray, float]:
        """Return the Hessian in all weights, and the curvature; see `Shard.whole_hessian`."""
        return self.shard.whole_hessian(step)

    def curvature(self) -> float:
        """Return the curvature of all rows."""
        return self.shard.curvature()

    def hessian(self, face: np.ndarray) -> np.ndarray | None:
        """Return the Hessian in the weights of a face."""
        return self.shard.hessian(face)

    def hessian_blocks(self) -> list[np.ndarray]:
        """Return diagonal blocks of the Hessian."""
        return self.shard.hessian_blocks()

    def curve(self, V: np.ndarray) -> np.ndarray:
        """Return the Hessian times ``V``."""
        return self.shard.curve(V)

    def gram_product(self, t: np.ndarray) -> np.ndarray:
        """Return Σ_i weight_i x_i ⟨x_i, t⟩."""
        return self.shard.gram_product(t)

    # -- the pool ------------------------------------------------------------------------------

    def gradients(self) -> np.ndarray:
        """Return negative gradients in the weights of all columns of the pool."""
        return whole(self.shard.gradients(), self.shard.pool.n_columns)

    def along(self, t: np.ndarray) -> np.ndarray:
        """Return Σ_i weight_i z_i ⟨x_i, t⟩ for all columns z of the pool."""
        return whole(self.shard.along(t), self.shard.pool.n_columns)

    def squares(self) -> np.ndarray:
        """Return the weighted squared norms of all columns of the pool."""
        return self.shard.squares()

    def sums_of_pool(self) -> np.ndarray:
        """Return the weighted sums of all columns of the pool."""
        return self.shard.sums_of_pool()

    # -- what grows with the rows --------------------------------------------------------------

    def residual_of_all_rows(self) -> OfRows:
        """Return the residual, one part for this shard."""
        return OfRows((self.shard.residual_of_all_rows(),))

    def labels_of_all_rows(self) -> tuple[OfRows, OfRows]:
        """Return the class codes and the weights, one part each for this shard."""
        codes, weights = self.shard.labels_of_all_rows()
        return OfRows((codes,)), OfRows((weights,))

    def columns_of_all_rows(self, atoms: Sequence[int]) -> OfRows:
        """Return the columns of some atoms, one part for this shard."""
        columns = self.shard.columns_of_all_rows(atoms)
        return OfRows((columns.astype(np.int8) if self.shard.pool.signs else columns,))


def _end_of_run(columns: tuple[In, ...], at: int) -> int:
    """Return where the atoms end that are added together with the one at a place."""
    end = at + 1
    if columns[at].means is None or columns[at].atom < 0:
        return end
    while end < min(len(columns), at + TOGETHER) and columns[end].means is not None:
        end += 1
    return end
