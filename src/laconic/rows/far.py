"""Shards that are far away, for example on the workers of a cluster, as one shard.

`Far` stands for them where the loop runs. It knows the recipe that brings them to the present
state, and remembers their last answers. An *exchange* is one broadcast of a recipe and some
questions, and one gathering of the sums of the answers. It takes far longer than a few sums, so
`Far` puts questions that belong together into one exchange:

* New columns come with the loss, the gradient and the Hessian at the same weights, padded with
  zeros. The next solve starts there.
* The loss at other weights comes with its gradient and with the Hessian there, if the corrector
  asked for a Hessian the last time. So steps are found without the shards.
* Means of columns come for the whole pool at once.

There is no algorithm here. Every answer is the one that the shards would give one by one, with one
exception: with many rows, a Hessian that travels is estimated from some of them
(`laconic.rows.far_hessian`). It decides the steps of a corrector, and not where the corrector ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from laconic.pools.base import Choice, best_of
from laconic.rows.carrier import FarRows
from laconic.rows.exchanges import Exchanges
from laconic.rows.far_hessian import FarHessian
from laconic.rows.recipe import Call, In, Recipe


class Far:
    """Shards that are far away, as one shard; see `laconic.rows.contract.AnyShard`.

    Parameters
    ----------
    rows : FarRows
    recipe : Recipe, optional
        The state of the shards.
    """

    def __init__(self, rows: FarRows, recipe: Recipe | None = None) -> None:
        self._rows = rows
        self.pool, self.loss, self.dtype = rows.pool, rows.loss, rows.pool.dtype
        self.n_outputs, self.n_rows = rows.n_outputs, rows.n_rows
        self.gathers = rows.n_rows <= rows.limits.gathered
        self.exchanges: Exchanges | None = rows.carrier.exchanges
        self._recipe = recipe or Recipe()
        self._offered: list[int] = []
        self._hessian = FarHessian(rows.n_rows, rows.limits)
        self._forget()

    def _forget(self) -> None:
        """Forget the answers that belong to an evaluation."""
        self._evaluated: tuple[float, np.ndarray] | None = None
        self._gradients: np.ndarray | None = None
        self._hessian.known = None

    def _ask(self, *calls: Call) -> list[Any]:
        return self._rows.carrier.ask(self._recipe, calls)

    def _asked(self, method: str, *arguments: Any) -> Any:
        [answer] = self._ask(Call(method, arguments))
        return answer

    # -- which columns are in ------------------------------------------------------------------

    @property
    def _n_columns(self) -> int:
        return sum(self._width(each) for each in self._recipe.columns)

    def _width(self, each: In) -> int:
        return self.pool.width(each.atom) if each.means is None else len(each.means)

    def class_shares(self) -> np.ndarray:
        """Return the sum of the weights of every class."""
        return self._rows.shares

    def put_constant(self) -> tuple[np.ndarray, np.ndarray]:
        """Add a column of ones as the first column; see `AnyShard.put_constant`."""
        return self._put((In(-1, (0.0,)),))

    def offer(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the weighted sums of the columns of some atoms. The shards do not wait for them.

        If atoms are columns, all sums are asked for once. A pool may store rounded columns, as
        patches do. Then these sums are a little off. They only centre the columns, so any numbers
        near the means will do.
        """
        self._offered = list(atoms)
        if self.pool.n_atoms != self.pool.n_columns:  # some atoms are groups of columns
            sums: np.ndarray = self._asked("sums_of", self._offered)
            return sums
        if self._rows.sums_of_pool is None:
            self._rows.sums_of_pool = self._asked("sums_of_pool")
        return self._rows.sums_of_pool[self._offered]

    def take(self, means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Add the offered columns, minus their means; see `AnyShard.take`."""
        ends = np.cumsum([0, *(self.pool.width(atom) for atom in self._offered)])
        centres = (means[ends[at] : ends[at + 1]].tolist() for at in range(len(self._offered)))
        pairs = zip(self._offered, centres, strict=True)
        return self._put(tuple(In(atom, tuple(own)) for atom, own in pairs))

    def put_local(self, atom: int) -> np.ndarray:
        """Add a local atom, and return its class sums."""
        return self._put((In(atom, None),))[0]

    def _put(self, new: tuple[In, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Add columns. If the next solve can start at the present weights, evaluate there too."""
        start = self._recipe.weights_here(self.n_outputs)
        self._recipe = self._recipe._replace(columns=(*self._recipe.columns, *new))
        self._hessian.known = None
        last = Call("sums_of_last", (len(new),))
        if start is None or not self._recipe.all_written:
            [sums] = self._ask(last)
            return tuple(sums)
        zeros = np.zeros((sum(map(self._width, new)), self.n_outputs))
        [sums] = self._move(np.vstack([start, zeros]), last)
        return tuple(sums)

    def cut(self, n_written: int, n_local: int) -> None:
        """Keep the first columns that are written down, and the first local atoms."""
        recipe = self._recipe.cut(n_written, n_local)
        if len(recipe.columns) < len(self._recipe.columns):
            self._recipe, self._hessian.known = recipe, None

    def unlike(self) -> tuple[int, np.ndarray]:
        """Return the last local atom's number of rows, and which earlier atoms are unlike it."""
        n_rows, differ = self._asked("unlike")
        return n_rows, differ

    def forget(self) -> None:
        """Forget all answers: estimates of the Hessian depend on those before them."""
        self._hessian = FarHessian(self.n_rows, self._rows.limits)
        self._forget()

    def trial(self, keep: bool) -> Far:
        """Return shards in which atoms are tried; see `AnyShard.trial`."""
        columns = self._recipe.columns if keep else ()
        number = next(self._rows.trials)
        out = Far(self._rows, Recipe(columns, trial=(number, keep), origin=self._recipe))
        out._hessian = self._hessian.of_trial()
        return out

    # -- the loss ------------------------------------------------------------------------------

    def evaluate(self, W: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the loss at weights ``W`` and its gradient there; see `AnyShard.evaluate`."""
        there = self._recipe._replace(weights=W, at=self._recipe.columns)
        if self._evaluated is None or not there.same_evaluation(self._recipe):
            self._move(W)
        assert self._evaluated is not None
        return self._evaluated

    def _move(self, W: np.ndarray, *calls: Call) -> list[Any]:
        """Evaluate at ``W``, answer other calls in the same exchange, and return their answers."""
        self._recipe = self._recipe._replace(weights=W.copy(), at=self._recipe.columns)
        self._forget()
        exact = self._hessian.wanted if self._is_small() else None
        more = [] if exact is None else [self._hessian.call(self._n_weights, exact)]
        evaluated, *answers = self._ask(Call("evaluated"), *calls, *more)
        self._evaluated = float(evaluated[0]), evaluated[1]
        if exact is not None:
            self._hessian.receive(answers.pop(), exact)
        return answers

    def evaluate_all(self, points: Sequence[np.ndarray]) -> list[tuple[float, np.ndarray]]:
        """Return the loss and its gradient at several points, in one exchange."""
        answers = self._asked("evaluate_all", list(points))
        self._recipe = self._recipe._replace(weights=points[-1].copy(), at=self._recipe.columns)
        self._forget()
        found = [(float(value), gradient) for value, gradient in answers]
        self._evaluated = found[-1]
        return found

    @property
    def _n_weights(self) -> int:
        return self._n_columns * self.n_outputs

    def _is_small(self) -> bool:
        """Return whether the Hessian in all weights is small enough to travel."""
        return self._recipe.all_written and self._n_weights <= self._rows.limits.travelling

    def cheap_hessian(self) -> Callable[[], np.ndarray] | None:
        """Return what returns the Hessian in all weights; None if it is too large to travel."""
        return partial(self._whole_hessian, exact=False) if self._is_small() else None

    def _whole_hessian(self, exact: bool) -> np.ndarray:
        """Return the Hessian in all weights. From now on it comes with every evaluation.

        If it need not be exact, and if there are many rows, it is estimated from some of them. But
        once an exact one was asked for, all are exact.
        """
        known, hessian = self._hessian.known, self._hessian
        if known is not None and (known.exact or not exact):
            return known.matrix
        hessian.wanted = exact = exact or bool(hessian.wanted)
        [answer] = self._ask(hessian.call(self._n_weights, exact))
        return hessian.receive(answer, exact)

    def curve(self, V: np.ndarray) -> np.ndarray:
        """Return the Hessian of the loss at the last evaluated weights, applied to ``V``.

        If it may travel, see `_whole_hessian`.
        """
        if not self._is_small():
            out: np.ndarray = self._asked("curve", V)
            return out
        return (self._whole_hessian(exact=False) @ V.ravel()).reshape(V.shape)

    def hessian(self, face: np.ndarray) -> np.ndarray | None:
        """Return the Hessian in the weights of ``face``, or None; see `AnyShard.hessian`."""
        if not self._recipe.all_written or np.count_nonzero(face) > self._rows.limits.face:
            return None
        if not self._is_small():
            out: np.ndarray | None = self._asked("hessian", face)
            return out
        at = np.flatnonzero(face)
        return self._whole_hessian(exact=True)[np.ix_(at, at)]

    def hessian_blocks(self) -> list[np.ndarray]:
        """Return diagonal blocks of the Hessian; see `AnyShard.hessian_blocks`."""
        if not self._is_small():
            blocks: list[np.ndarray] = self._asked("hessian_blocks")
            return blocks
        hessian = self._whole_hessian(exact=False)
        n, k = self._n_columns, self.n_outputs
        return [np.einsum("icjc->cij", hessian.reshape(n, k, n, k)).copy()]

    def gram_product(self, t: np.ndarray) -> np.ndarray:
        """Return Σ_i weight_i x_i ⟨x_i, t⟩ of the columns that are in."""
        product: np.ndarray = self._asked("gram_product", t)
        return product

    # -- the pool ------------------------------------------------------------------------------

    def best(
        self, forbidden: np.ndarray, normaliser: np.ndarray | None, costs: np.ndarray | None
    ) -> Choice:
        """Return the pool's atom of largest l1 gradient norm, eq. (7); see `BoundPool.best`."""
        norms = ((first, np.abs(sums).sum(axis=1)) for first, sums in self.gradients())
        return best_of(self.pool, norms, forbidden, normaliser, costs)

    def gradients(self) -> Iterator[tuple[int, np.ndarray]]:
        """Return negative gradients in the weights of all columns of the pool."""
        if self._gradients is None:
            self._hold_gradients(self._ask(*self._gradient_calls()))
        assert self._gradients is not None
        yield from self._blocks(self._gradients)

    def _gradient_calls(self) -> list[Call]:
        """Return the questions for the gradients, and for what the next estimates need."""
        estimated = self._is_small() and self._hessian.is_estimated(self._n_weights)
        return [Call("gradients"), *([Call("curvature")] if estimated else [])]

    def _hold_gradients(self, answers: list[Any]) -> None:
        self._gradients, *masses = answers
        for mass in masses:
            self._hessian.weigh(mass)

    def _blocks(self, sums: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Cut sums of all columns of the pool into blocks."""
        for first, last in pairwise([*self.pool.seams(), len(sums)]):
            yield first, sums[first:last]

    def along(self, t: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Return Σ_i weight_i z_i ⟨x_i, t⟩ for all columns z of the pool, like `gradients`.

        The rule that asks for this asks for the gradients next, so they come along.
        """
        more = self._gradient_calls() if self._gradients is None and self._evaluated else []
        sums, *answers = self._ask(Call("along", (t,)), *more)
        if answers:
            self._hold_gradients(answers)
        yield from self._blocks(sums)

    def squares(self) -> np.ndarray:
        """Return the weighted squared norms of all columns of the pool."""
        squares: np.ndarray = self._asked("squares")
        return squares

    # -- what grows with the rows --------------------------------------------------------------

    def residual_of_all_rows(self) -> np.ndarray:
        """Return the negative gradient of the loss in the scores, (n_rows, n_outputs)."""
        residual: np.ndarray = self._asked("residual_of_all_rows").joined()
        return residual

    def labels_of_all_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the class codes and the weights of all rows."""
        codes, weights = self._asked("labels_of_all_rows")
        return codes.joined(), weights.joined()

    def columns_of_all_rows(self, atoms: Sequence[int]) -> np.ndarray:
        """Return the columns of some atoms, scaled but not centred, (n_rows, width)."""
        columns: np.ndarray = self._asked("columns_of_all_rows", list(atoms)).joined()
        return columns
